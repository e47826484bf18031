"""`--fail-on`: conditions on one run, on a change, and on a Go program under test."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.summary import FIGURES
from gctrace_analyzer.cli import main
from tests.conftest import CORPUS, ROOT

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.checks import Check
    from gctrace_analyzer.program import Gctrace

STEADY = "samples/steady-go1.26.log"
DOUBLED = "samples/steady-gogc200-go1.26.log"
THRASH = "samples/thrash-go1.19.log"
NOISE = [str(CORPUS / "advice" / "noise-a" / f"gogc100-r{n}" / "run.log") for n in (0, 2)]

needs_go = pytest.mark.skipif(
    shutil.which("go") is None, reason="there is no go command here (https://go.dev/dl)"
)


def held(results: list[Check]) -> list[str]:
    return [str(each) for each in results if each.held is not False]


@pytest.mark.parametrize(
    ("log", "condition", "code"),
    [
        (STEADY, "finding:bad", 0),
        (THRASH, "finding:bad", 1),
        (THRASH, "finding:GC016", 1),
        (THRASH, "finding:limit-thrash", 1),
        (STEADY, "finding:limit-thrash", 0),
        (STEADY, "gc_cpu_share>10%", 0),
        (THRASH, "gc_cpu_share>10%", 1),
        (STEADY, "finding:worst", 2),
        (STEADY, "gc_cpu_share>+10%", 2),
        (STEADY, "gc_cpu>10%", 2),
    ],
)
def test_a_run_fails_on_the_conditions_that_it_meets(
    log: str, condition: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([log, "--fail-on", condition]) == code
    out, err = capsys.readouterr()
    assert bool(err) == bool(code)
    assert bool(out) == (code < 2)


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        ([STEADY, "--fail-on", "gc_cpu_share>10"], "gc_cpu_share>10%"),
        (["compare", STEADY, DOUBLED, "--fail-on", "gc_cpu_share>+10"], "gc_cpu_share>+10%"),
    ],
)
def test_a_check_that_could_never_fail_is_wrong_usage(
    words: list[str], suggestion: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    message = capsys.readouterr().err
    assert "gc_cpu_share is a share from 0 to 1" in message
    assert f"Did you mean {suggestion}?" in message


def test_an_unknown_figure_is_reported_with_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([STEADY, "--fail-on", "limit-thrash"]) == 2
    assert "Did you mean finding:limit-thrash?" in capsys.readouterr().err
    assert main([STEADY, "--fail-on", "gcpu>10%"]) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert (
        "Did you mean gc_cpu_share? Expected a figure of the summary: gc_cpu_share" in message
    )
    assert all(name in message for name in FIGURES)
    assert main([STEADY, "--fail-on", "gc_cpu>10%"]) == 2
    assert "gc_cpu_share" in capsys.readouterr().err
    assert main(["compare", STEADY, DOUBLED, "--fail-on", "heap_peak>+10%"]) == 2
    assert "heap_peak_mib" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("gc_cpu_share>+10%", 0),
        ("heap_peak_mib>+10%", 1),
        ("heap_peak_mib>+10MiB", 1),
        ("heap_peak_mib>+100MiB", 0),
        ("gc_per_s<-20%", 1),
        ("gc_per_s<-0.5", 1),
        ("heap_peak_mib>60", 1),
        ("heap_peak_mib>60MiB", 1),
        ("heap_peak_mib>1GiB", 0),
        ("verdict:worse", 1),
        ("gc_cpu_share:worse", 0),
        ("gc_cpu_share:better", 1),
        ("finding:bad", 0),
        ("stw_max_ms>+1%", 3),
        ("stw_max_ms>10", 0),
    ],
)
def test_a_change_fails_on_the_conditions_that_it_meets(condition: str, code: int) -> None:
    assert main(["compare", STEADY, DOUBLED, "--fail-on", condition]) == code


def test_the_reason_is_printed_before_the_comparison(capfd: pytest.CaptureFixture[str]) -> None:
    tool = Path(sys.executable).with_name("gctrace-analyze")
    done = subprocess.run(
        [tool, "compare", STEADY, DOUBLED, "--fail-on", "heap_peak_mib>+10%"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    first = done.stdout.splitlines()[0]
    assert first.startswith(
        "fail-on is true: heap_peak_mib>+10%: heap_peak_mib is 73 after 55, +32.7 %"
    )


@pytest.mark.parametrize("words", [(THRASH,), ("compare", STEADY, THRASH)], ids=len)
def test_a_closed_pipe_does_not_hide_a_failure(words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [
        sys.executable,
        "-m",
        "gctrace_analyzer",
        *words,
        "--fail-on",
        "gc_cpu_share>10%",
    ]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert done.returncode == 1
    assert done.stderr.startswith(b"fail-on is true: gc_cpu_share>10%: ")
    assert done.stderr.count(b"\n") == 1


def test_noise_fails_nothing_and_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    limit = "gc_cpu_share>+1%"
    before, after = sorted(NOISE, key=lambda path: gca.read(path).summary().gc_cpu_share or 0)
    assert main(["compare", before, after, "--fail-on", limit]) == 0
    assert "but that is not significant" in capsys.readouterr().err


def test_a_condition_that_was_not_decided_does_not_read_like_a_failure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["compare", STEADY, DOUBLED, "--fail-on", "stw_max_ms>+1%"]) == 3
    assert capsys.readouterr().err.startswith("fail-on was not decided: stw_max_ms>+1%: ")


def test_zero_before_and_after_is_not_a_change(tmp_path: Path) -> None:
    none = tmp_path / "none.log"
    none.write_text(re.sub(r"\+[\d.]+/", "+0/", Path(STEADY).read_text()))
    limit = ("--fail-on", "assist_share_of_cpu>+10%")
    assert gca.read(none).summary().assist_share_of_cpu == 0
    assert main(["compare", str(none), str(none), *limit]) == 0
    assert main(["compare", str(none), STEADY, *limit]) == 1


def test_several_settings_are_compared_with_the_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["compare", f"a={STEADY}", f"b={DOUBLED}", f"c={THRASH}"]
    assert main([*words, "--fail-on", "gc_cpu_share>+10%"]) == 1
    err = capsys.readouterr().err
    assert "fail-on is true: c: gc_cpu_share>+10%" in err
    assert "b:" not in err


def test_conditions_are_written_as_junit(tmp_path: Path) -> None:
    path = tmp_path / "gates.xml"
    conditions = ("heap_peak_mib>+10%", "gc_cpu_share>+10%", "stw_max_ms>+1%")
    words = [word for each in conditions for word in ("--fail-on", each)]
    assert main(["compare", STEADY, DOUBLED, *words, "--junit", str(path)]) == 1
    (suite,) = ElementTree.parse(path).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert [case.get("name") for case in suite] == list(conditions)
    assert [[child.tag for child in case] for case in suite] == [["failure"], [], ["error"]]


def test_a_github_workflow_shows_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert main([THRASH, "--fail-on", "gc_cpu_share>10%"]) == 1
    assert "::error title=gctrace-analyze::gc_cpu_share>10%25: " in capsys.readouterr().err


def test_the_library_fails_on_the_same_conditions_as_the_command() -> None:
    run = gca.read(THRASH)
    assert not held(run.check("gc_cpu_share>90%"))
    (reason,) = held(run.check("gc_cpu_share>10%", "gc_cpu_share>90%"))
    assert reason.startswith("gc_cpu_share>10%: gc_cpu_share is 55.72 %")
    (reason,) = held(gca.compare(STEADY, THRASH).check("gc_cpu_share>+10%"))
    assert "gc_cpu_share is 55.72 % after " in reason


SCRIPT = """
set -eu
gctrace-analyze compare "$1" "$2" --fail-on 'heap_peak_mib>+10%' > comparison.txt
echo "may be merged"
"""


def test_a_shell_script_stops_at_a_failed_condition(tmp_path: Path) -> None:
    (tmp_path / "gate.sh").write_text(SCRIPT)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for after, code, said in ((DOUBLED, 1, ""), (STEADY, 0, "may be merged\n")):
        done = subprocess.run(
            ["bash", "gate.sh", ROOT / STEADY, ROOT / after],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (code, said)
        assert (tmp_path / "comparison.txt").read_text().startswith("before ")


@needs_go
def test_a_real_program_with_another_gogc(gctrace: Gctrace) -> None:
    program = gctrace.build(".", cwd=ROOT / "lab" / "go" / "loads")
    words = [str(program), "-live", "30", "-rate", "200", "-dur", "2s"]
    before, after = (gctrace(words, gogc=gogc) for gogc in (25, 100))
    assert before.settings.value("gogc") == 25
    assert not held(before.check("finding:limit-thrash", "gc_cpu_share>90%"))
    found = gca.compare(before, after)
    assert found.rows()["heap_peak_mib"]["verdict"] == "worse"
    assert held(found.check("heap_peak_mib>+10%"))
    assert not held(found.check("heap_peak_mib>+900%"))


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_the_fixture_adds_to_godebug(gctrace: Gctrace, tmp_path: Path) -> None:
    printing = program(
        tmp_path / "printing", f'echo "$GODEBUG $GOGC" >&2; cat {ROOT / STEADY} >&2'
    )
    run = gctrace(printing, gogc=50, env={"GODEBUG": "madvdontneed=1"})
    assert run.summary().cycles == gca.read(STEADY).summary().cycles
    assert (tmp_path / "gctrace-1.log").read_text().startswith("madvdontneed=1,gctrace=1 50\n")


def test_the_fixture_reports_what_went_wrong(gctrace: Gctrace, tmp_path: Path) -> None:
    with pytest.raises(gca.ProgramError, match=r"(?s)bad: exit code 3\..*panic: no"):
        gctrace(program(tmp_path / "bad", "echo 'panic: no' >&2; exit 3"))
    with pytest.raises(gca.ProgramError, match=r"slow: did not finish within 200 ms"):
        gctrace(program(tmp_path / "slow", "exec sleep 20"), timeout_s=0.2)
    with pytest.raises(gca.ProgramError, match="did not start: No such file"):
        gctrace(tmp_path / "absent")
    with pytest.raises(gca.BadSettingError, match="build it first"):
        gctrace(["go", "run", "."])
    with pytest.raises(gca.NoDataError):
        gctrace(program(tmp_path / "quiet", "echo ready >&2"))
