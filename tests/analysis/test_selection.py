"""Parts of a log: one process, or a range of times or lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.cli.main import main
from tests.helpers.logs import KILL, logfile, records

if TYPE_CHECKING:
    from pathlib import Path


def lines(name: str, pid: int, count: int) -> list[str]:
    return [
        f"2026-02-03T10:00:{second:02}Z h {name}[{pid}]: {record}"
        for second, record in enumerate(records(count), start=1)
    ]


def killed(name: str, pid: int) -> str:
    return f"2026-02-03T10:00:09Z h kernel: {KILL.format(pid=pid, comm=name, kb=10240)}"


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Two programs side by side, the second of which is killed at the end."""
    text = [*lines("api", 7, 8), *lines("worker", 9, 8), killed("worker", 9)]
    return logfile(tmp_path / "two.log", text)


def test_a_process_has_its_own_kill_only(two: Path) -> None:
    whole = gca.read(two)
    assert [each.process for each in whole.post_mortems()] == [1]
    assert whole.process(0).post_mortems() == []
    (death,) = whole.process(1).post_mortems()
    assert (death.process, death.match_by) == (1, ("pid", "comm"))


def test_a_kill_of_an_unknown_process_stays_unknown(tmp_path: Path) -> None:
    text = [*lines("api", 7, 8), *lines("worker", 9, 8), killed("other", 5)]
    whole = gca.read(logfile(tmp_path / "log", text))
    (death,) = whole.process(0).post_mortems()
    assert death.process is None


def test_the_limit_of_a_kill_is_that_of_the_killed_process(tmp_path: Path) -> None:
    constraint = (
        "2026-02-03T10:00:09Z h kernel: memory: usage 65536kB, limit 65536kB, failcnt 17"
    )
    text = [
        *lines("api", 7, 8),
        *lines("worker", 9, 8),
        "2026-02-03T10:00:09Z h kernel: worker invoked oom-killer: gfp_mask=0xcc0, order=0",
        constraint,
        killed("worker", 9),
    ]
    whole = gca.read(logfile(tmp_path / "log", text))
    assert whole.process(1).settings.value("container_limit_mib") == 64
    assert whole.process(0).settings.value("container_limit_mib") is None


def test_a_range_before_the_kill_has_no_post_mortem(two: Path) -> None:
    whole = gca.read(two)
    assert whole.between("2s", "5s").post_mortems() == []
    assert len(whole.between("5s").post_mortems()) == 1
    assert len(whole.between(0, "1h").post_mortems()) == 1
    assert whole.process(1).between("2s", "5s").post_mortems() == []


def test_a_cycle_at_a_boundary_is_in_one_range(two: Path) -> None:
    whole = gca.read(two)
    parts = [whole.between("0s", "4.016s"), whole.between("4.016s")]
    assert sum(len(part.cycles) for part in parts) == len(whole.cycles)


def test_the_only_process_is_the_whole_log(tmp_path: Path) -> None:
    whole = gca.read(logfile(tmp_path / "log", lines("api", 7, 8)))
    assert whole.process(0).summary().to_dict() == whole.summary().to_dict()


def test_a_report_says_what_is_selected(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(two), "--process", "1", "--between", "2s..5s"]) == 0
    printed = capsys.readouterr().out
    assert "only process 1 of 2, 2s..5s" in " ".join(printed.split())
    assert "killed" not in printed
    assert "Select a longer range" in printed
    assert main([str(two), "--between", "2s..5s", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["selection"] == "2s..5s"
    assert main([str(two), "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["selection"] is None


def test_a_range_is_written_as_for_the_command_line() -> None:
    run = gca.read("samples/steady-go1.26.log")
    for part in (run.between("0.5s..1s"), run.between("500ms", "1s")):
        assert part.cycles.equals(run.between(0.5, 1.0).cycles)
    assert run.between("1s..").cycles.equals(run.between(1).cycles)
    with pytest.raises(gca.BadSettingError, match=r"Did you mean 2s\.\.5s\?"):
        run.between("5s..2s")
    with pytest.raises(gca.BadSettingError, match=r"or a range such as 60s\.\.120s"):
        run.between("2s-5s")
