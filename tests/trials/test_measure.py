"""`measure`: a real Go program under several settings."""

from __future__ import annotations

import json
import shlex
import sys
import time
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.compare.rounds import TrialRun
from gctrace_analyzer.cli import main
from gctrace_analyzer.trials import experiment
from tests.helpers.go_programs import built, needs_go
from tests.helpers.loads import LINE, STEADY

if TYPE_CHECKING:
    from pathlib import Path

    from gctrace_analyzer.trials.plan import Trial

BATCH = ("-mode", "batch", "-live", "10", "-total", "80")


@pytest.fixture(scope="module")
def loads(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(built("loads", tmp_path_factory.mktemp("programs")))


@needs_go
def test_two_settings_of_a_real_program_are_compared(
    loads: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["measure", "--gogc", "50,400", "--runs", "3", "-f", "json", "--", loads, *BATCH]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    runs = found["measured"]["runs"]
    assert [(run["side"], run["warm_up"]) for run in runs[:2]] == [
        ("GOGC=50", True),
        ("GOGC=400", True),
    ]
    assert len(runs) == 8
    assert all(run["exit_code"] == 0 and run["cpu_s"] > 0.01 for run in runs)
    assert {run["gogc"] for run in runs} == {50.0, 400.0}
    rows = {row["metric"]: row for row in found["metrics"]}
    assert rows["max_rss_mib"]["after"] > rows["max_rss_mib"]["before"]
    assert rows["gc_per_s"]["after"] < rows["gc_per_s"]["before"] / 2
    assert {"wall_s", "cpu_s"} <= rows.keys()
    promises = found["measured"]["promises"]
    assert {promise["side"] for promise in promises} <= {"GOGC=400"}
    assert all(promise["held"] in (True, False, None) for promise in promises)

    # What is kept can be shown again, as a folder too, and continued.
    assert main(["compare", "measured-1", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == found
    more = gca.measure(logs="measured-1", runs=4)
    assert more["cpu_s"].before_runs == 4
    for page in ("page.html", "comment.md", "rows.csv"):
        assert main(["compare", "measured-1", "-o", page]) == 0
        assert (tmp_path / page).stat().st_size > 500
    assert "GOGC=400" in (tmp_path / "page.html").read_text()


@needs_go
def test_a_side_without_a_cycle_is_compared_too(loads: str, tmp_path: Path) -> None:
    several = gca.measure([loads, *BATCH], gogc=[100, "off"], runs=2, logs=tmp_path / "runs")
    assert several["max_rss_mib"].after is not None
    assert several["gc_per_s"].after is None
    assert "GOGC=off" in str(several)


def script(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "program.py"
    path.write_text(text)
    return [sys.executable, str(path)]


def test_a_warm_up_that_shows_no_load_leaves_the_prediction_to_a_run_in_the_table(
    tmp_path: Path,
) -> None:
    """On a busy machine, marking may take nearly all the time of the first run only."""
    line = (
        "gc {n} @{at:.3f}s 9%: 0.01+{mark}+0.01 ms clock, 0.02+0/{mark}/0+0.02 ms cpu, "
        "36->40->20 MB, 40 MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
    )
    for name, mark in (("busy", 49), ("calm", 5)):
        cycles = (line.format(n=n + 1, at=0.05 * n, mark=mark) for n in range(100))
        (tmp_path / name).write_text("".join(cycles))
    words = script(
        tmp_path,
        "import os, sys\n"
        f"os.chdir({str(tmp_path)!r})\n"
        "name = 'calm' if os.path.exists('seen') else 'busy'\n"
        "open('seen', 'a').close()\n"
        "sys.stderr.write(open(name).read())\n",
    )
    measured = gca.measure(words, gogc=[100, 400], runs=2, logs=tmp_path / "runs")
    assert measured.no_expectation is None
    promises = measured.to_dict()["measured"]["promises"]
    assert {promise["side"] for promise in promises} == {"GOGC=400"}
    first = gca.read(tmp_path / "busy").advice.baseline.refused
    assert "GC was running 98 % of the time" in str(first)


def test_commands_are_sides(tmp_path: Path) -> None:
    quick = [sys.executable, "-c", "sum(range(10**5))"]
    slow = [sys.executable, "-c", "sum(range(3 * 10**6))"]
    found = gca.measure(sides={"base": slow, "head": quick}, runs=4, logs=tmp_path / "runs")
    assert found["cpu_s"].verdict == "better"
    assert "head" in str(found)
    assert found.check("cpu_s>+10%")[0].held is False


def test_without_a_terminal_each_round_that_ended_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    own = f"{shlex.quote(sys.executable)} -c 0"
    names = ("the release that runs now", "the one that is built from the branch")
    sides = [word for name in names for word in ("--side", f"{name}={own}")]
    assert main(["measure", *sides, "--runs", "2"]) == 0
    shown, said = capsys.readouterr()
    lines = said.splitlines()
    assert [line.partition(" · ")[0] for line in lines[:2]] == ["round 1 of 2", "round 2 of 2"]
    assert not lines[2:]
    # Names that are too long for the table have letters.
    assert f"A: {names[0]} · " in " ".join(shown.split())
    head = next(line for line in shown.splitlines() if "95 % interval" in line)
    assert head.split()[:2] == ["A", "B"]
    assert max(map(len, shown.splitlines())) <= 80


def test_the_peak_is_the_programs_and_not_that_of_who_measures(tmp_path: Path) -> None:
    held = bytearray(200 << 20)
    program = [sys.executable, "-c", "held = bytearray(40 << 20)"]
    found = gca.measure(program, gogc=[50, 400], runs=2, logs=tmp_path / "runs")
    assert len(held) > 0
    assert found["max_rss_mib"].before == pytest.approx(50, rel=0.2)
    assert found["max_rss_mib"].after == pytest.approx(50, rel=0.2)


def test_figures_of_the_output_decide(tmp_path: Path) -> None:
    words = script(
        tmp_path,
        "import os, random\n"
        "rate = 1000 * int(os.environ['GOGC']) / 100 + random.random()\n"
        "print(f'99% in {2000 / rate:.4f}s'); print(f'requests/s: {rate / 1000:.4f}k')\n",
    )
    found = gca.measure(
        words,
        gogc=[100, 200],
        metric={"p99": r"99% in (\S+)"},
        metric_up={"rps": r"requests/s: (\S+)"},
        logs=tmp_path / "runs",
    )
    assert found["p99"].before == pytest.approx(2000, rel=0.01)  # in milliseconds
    assert found["rps"].after == pytest.approx(2000, rel=0.01)
    assert found["p99"].verdict == found["rps"].verdict == "better"
    assert found["p99"].before_runs == 6  # decided early
    assert "has 50 % lower p99" in str(found)
    (row,) = (line for line in str(found).splitlines() if line.startswith("  p99"))
    assert [word for word in row.split() if word in ("s", "ms")] == ["s", "s"]
    with pytest.raises(gca.BadSettingError, match="output of a run"):
        gca.measure(words, gogc=[1, 2], metric={"p99": "nothing"}, logs=tmp_path / "other")


def test_the_metric_that_is_named_first_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "print('rate 5'); print('p99 7 secs')"
    options = ["--runs", "1", "--logs", str(tmp_path / "runs"), "-f", "json", "--gogc", "1,2"]
    figures = ["--metric-up", "rate=rate (.+)", "--metric", "p99=p99 (.+)"]
    assert main(["measure", *options, *figures, "--", sys.executable, "-c", text]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["measured"]["decided_by"] == "rate"


def test_a_run_that_fails_is_shown_and_not_averaged_in(tmp_path: Path) -> None:
    words = script(
        tmp_path,
        "import os, sys\n"
        "if os.environ['GOGC'] == '200': print('no such luck', file=sys.stderr); sys.exit(7)\n",
    )
    found = gca.measure(words, gogc=[100, 200, 300], runs=2, logs=tmp_path / "runs")
    assert [side.label for side in found.sides] == ["GOGC=100", "GOGC=300"]
    assert "GOGC=200 failed in the warm-up: exit code 7" in str(found)
    assert "no such luck" in str(found)


def test_a_program_that_fails_or_does_not_start_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = script(tmp_path, "import sys; sys.exit('it is broken')")
    assert main(["measure", "--gogc", "1,2", "--", *words]) == 3
    error = capsys.readouterr().err
    assert "exit code 1" in error
    assert "it is broken" in error
    assert main(["measure", "--gogc", "1,2", "--", "./missing"]) == 3
    assert "no such program" in capsys.readouterr().err
    assert [path.name for path in tmp_path.glob("measured-*")] == ["measured-1"]


def test_the_program_reads_a_file_or_nothing(tmp_path: Path) -> None:
    words = script(tmp_path, "import sys; print('length', len(sys.stdin.read()))")
    (tmp_path / "input").write_text("12345")
    for stdin, length in ((None, 0), (tmp_path / "input", 5)):
        folder = tmp_path / f"runs-{length}"
        gca.measure(words, gogc=[1, 2], runs=1, stdin=stdin, logs=folder)
        # A run that other work disturbed is made again.
        (output,) = folder.glob("gogc1-01*.out")
        assert output.read_text() == f"length {length}\n"


def test_a_folder_of_other_runs_is_refused(tmp_path: Path) -> None:
    words = script(tmp_path, "")
    gca.measure(words, gogc=[1, 2], runs=1, logs=tmp_path / "runs")
    with pytest.raises(gca.BadSettingError, match="other commands"):
        gca.measure(words, gogc=[1, 3], runs=1, logs=tmp_path / "runs")
    with pytest.raises(gca.UnreadableInputError, match="manifest"):
        gca.measure(logs=tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ["measure"],
        ["measure", "--gogc", "1,2"],
        ["measure", "--gogc", "x", "--", "true"],
        ["measure", "--metric", "p99=(", "--gogc", "1,2", "--", "true"],
        ["measure", "--load", "true", "--gogc", "1,2", "--", "true"],
        ["measure", "--side", "a=true"],
        ["measure", "--side", "a=true", "--side", "b=true", "--gogc", "1"],
        ["measure", "--stdin", "missing", "--gogc", "1,2", "--", "true"],
        ["measure", "--fail-on", "wal_s>+1%", "--gogc", "1,2", "--", "true"],
        ["measure", "--for", "soon", "--gogc", "1,2", "--", "true"],
    ],
)
def test_mistakes_are_found_before_anything_runs(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert not list(tmp_path.iterdir())


@needs_go
def test_without_settings_it_is_compared_with_what_is_recommended(
    loads: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("GOGC", "GOMEMLIMIT"):
        monkeypatch.delenv(name, raising=False)
    service = ("-mode", "service", "-live", "5", "-rate", "20", "-dur", "0.3s")
    assert main(["measure", "--logs", "runs", "-f", "json", "--", loads, *service]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"].startswith("Nothing could be predicted.")
    assert "the run took" in found["verdict"]
    assert found["try"].startswith("gctrace-analyze measure --gogc 100,200 --logs runs")
    # The command to try works as it stands.
    words = shlex.split(found["try"])[1:]
    assert main([words[0], "--runs", "1", *words[1:]]) == 0


def test_a_result_ends_with_the_command_that_continues_and_leaves_no_empty_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own = [sys.executable, "-c", "0"]
    assert main(["measure", "--", *own]) == 3
    assert "Is it a Go program that ran long enough" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    assert main(["measure", "--gogc", "100,200", "--runs", "1", "--", *own]) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "Logs: measured-1",
        "  gctrace-analyze compare measured-1 --all",
        "  gctrace-analyze measure --logs measured-1 --runs 6    # continue",
    ]


STOPPED = {"sweep_term": 12, "sweep_cpu": 24, "assist": 3, "background": 20, "mark": 20}
"""12 % of the time is in pauses."""
SMALL = STOPPED | {"start": 3, "end": 4, "live": 1, "goal": 4}
"""A larger heap costs little, so GOGC=200 is better."""


@pytest.mark.parametrize(
    ("values", "disturbed", "said"),
    [
        (SMALL, False, "find out first why pauses take 12 % of the time. To try one:"),
        (SMALL, True, None),
        (STOPPED, True, "Pauses were long, because other work took 1.5 of"),
    ],
    ids=["quiet", "disturbed", "disturbed without a gain"],
)
def test_long_pauses_that_other_work_caused_do_not_end_a_measurement(
    values: dict[str, float],
    disturbed: bool,
    said: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run_trial(trial: Trial, _: object, number: int, log: Path, *__: object) -> TrialRun:
        text = [LINE.format(n=n, s=n / 10, **{**STEADY, **values}) for n in range(1, 61)]
        log.write_text("\n".join([*text, ""]))
        return TrialRun(
            trial.label, number, wall_s=6.0, cpu_s=3.0, foreign_cpu_s=9.0,
            log=log.name, disturbed=disturbed,
        )  # fmt: skip

    monkeypatch.setattr(experiment, "run_trial", run_trial)
    monkeypatch.chdir(tmp_path)
    assert main(["measure", "--runs", "1", "--", sys.executable, "-c", "0"]) == 0
    printed = capsys.readouterr().out
    if said is None:
        assert "GOGC=200 · " in printed
    else:
        assert said in " ".join(printed.split())
        # The folder is no log: the command that reads the one in it.
        assert printed.endswith("Logs: measured-1\n  gctrace-analyze measured-1/now-00.log\n")


def test_repeated_runs_count_in_the_remaining_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]

    def run_trial(trial: Trial, _: object, number: int, log: Path, *__: object) -> TrialRun:
        clock[0] += 5.0
        log.write_text("")
        return TrialRun(
            trial.label, number, wall_s=5.0, cpu_s=5.0, log=log.name, disturbed=number > 0
        )

    monkeypatch.setattr(experiment, "run_trial", run_trial)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    seen: list[experiment.Progress] = []
    gca.measure("x", gogc=[1, 2], runs=2, logs=tmp_path / "runs", progress=seen.append)
    assert [now.left_s for now in seen if now.round == 1 and not now.side] == [20.0]


def test_the_remaining_time_falls_with_each_run_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]

    def run_trial(trial: Trial, _: object, number: int, log: Path, *__: object) -> TrialRun:
        clock[0] += 5.0 if number else 60.0
        log.write_text("")
        return TrialRun(trial.label, number, wall_s=5.0, cpu_s=5.0, log=log.name)

    monkeypatch.setattr(experiment, "run_trial", run_trial)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    seen: list[experiment.Progress] = []
    gca.measure("x", gogc=[1, 2], runs=3, logs=tmp_path / "runs", progress=seen.append)
    left = [now.left_s for now in seen if now.side and now.round]
    assert left[1:] == [25.0, 20.0, 15.0, 10.0, 5.0]


@needs_go
def test_go_test_itself_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "go.mod").write_text("module x\n\ngo 1.21\n")
    (tmp_path / "x_test.go").write_text(
        "package x\n\n"
        'import "testing"\n\n'
        "var keep []byte\n\n"
        "func BenchmarkX(b *testing.B) {\n"
        "\tfor i := 0; i < b.N; i++ {\n\t\tkeep = make([]byte, 1<<20)\n\t}\n}\n"
    )
    monkeypatch.chdir(tmp_path)
    words = ["go", "test", "-run", "^$", "-bench", ".", "-benchtime", "200x"]
    found = gca.measure(words, gogc=[100, 400], runs=1, metric={"ns": r"(\S+) ns/op"})
    # The compiler has far more cycles than that, and would be traced too.
    assert 20 < sum(part.summary.cycles for part in found.before.measured) < 100
    assert found["gc_per_s"].after is not None
    assert found["ns"].before is not None
    assert not list((tmp_path / "measured-1").glob("*.exec"))
