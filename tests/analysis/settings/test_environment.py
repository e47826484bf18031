"""The settings that a program was started with hold until its heap goals contradict them."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.settings.environment import of_process, started_in
from gctrace_analyzer.analysis.settings.known import Known, Settings, given_settings
from gctrace_analyzer.api import live
from gctrace_analyzer.cli.main import main
from tests.helpers.corpus import log_of

if TYPE_CHECKING:
    from collections.abc import Iterator

linux_only = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs /proc")


@pytest.fixture
def pid() -> Iterator[int]:
    """A process that was started with GOGC=200, and that runs."""
    words = [sys.executable, "-c", "print(flush=True); input()"]
    environment = {**os.environ, "GOGC": "200"}
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, env=environment) as process:
        assert process.stdout is not None
        # Until exec has set up the new program, its environment in /proc is empty.
        process.stdout.readline()
        yield process.pid
        process.communicate(b"\n")


def of_gogc(gogc: int, live_mib: int = 100) -> str:
    goal = live_mib + live_mib * gogc // 100
    first = 4 * gogc // 100  # before the first cycle there is only the heap minimum
    goals = {1: first}
    return log_of(
        60, live=live_mib, start=goal - 9, end=goal - 8, goal=lambda n: goals.get(n, goal)
    )


@pytest.mark.parametrize(
    ("variables", "gogc", "limit_mib"),
    [
        ({}, None, None),
        ({"GOGC": "50", "GOMEMLIMIT": "1GiB"}, 50.0, 1024.0),
        ({"GOGC": "off", "GOMEMLIMIT": "off"}, "off", "off"),
        # Go ignores a GOGC that it cannot read, and counts a limit without a unit in bytes.
        ({"GOGC": "50 %", "GOMEMLIMIT": "1073741824"}, None, 1024.0),
        ({"GOGC": "", "GOMEMLIMIT": "1 GB"}, None, None),
    ],
)
def test_variables_are_read_as_go_reads_them(
    variables: dict[str, str], gogc: object, limit_mib: object
) -> None:
    settings = started_in(Settings(), variables, "environment")
    assert (settings.value("gogc"), settings.value("memory_limit_mib")) == (gogc, limit_mib)


def test_what_the_user_gives_wins() -> None:
    settings = started_in(given_settings(gogc=100), {"GOGC": "50"}, "environment")
    assert settings.gogc == Known(100.0, "given")


@linux_only
def test_settings_of_a_running_process_hold_until_its_goals_contradict_them(
    pid: int, tmp_path: Path
) -> None:
    assert of_process(pid)["GOGC"] == "200"
    for gogc, source in ((200, "stated"), (50, "inferred")):
        log = tmp_path / f"{gogc}.log"
        log.write_text(of_gogc(gogc))
        run = gca.read(log, pid=pid)
        regime = run.regimes().row(-1, named=True)
        assert regime["gogc_pct"] == pytest.approx(gogc, rel=0.05)
        assert regime["gogc_source"] == source
        contradicted = [row for row in run.findings().to_dicts() if row["id"] == "GC027"]
        assert bool(contradicted) == (gogc != 200)
        for row in contradicted:
            assert f"environment of process {pid}" in row["evidence"]


def test_a_followed_program_may_change_what_it_was_started_with() -> None:
    for gogc, source in ((200, "stated"), (50, "inferred")):
        log = live(environment={"GOGC": "200"})
        log.follow(io.BytesIO(of_gogc(gogc).encode()), lambda: None)
        assert log.run().regimes()["gogc_source"].to_list() == [source]


@linux_only
def test_a_process_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.log"
    log.write_text(of_gogc(100))
    assert main([str(log), "--pid", "99999999"]) == 2
    assert "/proc/99999999/environ" in capsys.readouterr().err.replace("\n    ", " ")


def test_settings_are_printed_with_their_sources() -> None:
    settings = given_settings(gogc=100, memory_limit="1536MiB", go_version="1.22")
    assert [line.split("  ")[0] for line in str(settings).splitlines()] == [
        "GOGC",
        "GOMEMLIMIT",
        "Go version",
    ]
    assert "GOMEMLIMIT  1,536 MiB  given" in str(settings)
    assert str(Settings()) == "no setting is known"
