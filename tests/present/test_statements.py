"""Statements of one report that could contradict each other, or say more than is known."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.compare.metrics import METRICS
from gctrace_analyzer.analysis.cycles import with_held
from gctrace_analyzer.analysis.pauses import PHASES
from gctrace_analyzer.analysis.rules.finding import gc_cpu_text, often_text
from gctrace_analyzer.cli.main import main
from gctrace_analyzer.ingest.gctrace.toolchain import of_toolchain
from gctrace_analyzer.present import markdown
from gctrace_analyzer.present.document import Statement, Table
from gctrace_analyzer.present.format import as_wide_as, assists, gc_cpu, live_heap
from gctrace_analyzer.present.html import cycle_table, interval_chart, ranges, report_page
from gctrace_analyzer.present.html.captions import statements
from gctrace_analyzer.present.html.methodology import methodology
from gctrace_analyzer.present.plots.accessor import on
from gctrace_analyzer.present.plots.axis import axis_of
from gctrace_analyzer.present.plots.figure import Mark, Panel
from gctrace_analyzer.present.plots.palette import LOOKS
from gctrace_analyzer.present.sections import (
    advice,
    comparison,
    evidence,
    findings,
    headline,
    overview,
)
from gctrace_analyzer.present.sections.changes import LABELS
from gctrace_analyzer.present.sections.evidence import figures_of_deaths
from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.present.sections.without_cycles import no_verdict
from gctrace_analyzer.present.text import plain
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS, SAMPLES
from tests.helpers.facts import log_of
from tests.helpers.logs import AT, KILL, logfile, records

if TYPE_CHECKING:
    from pathlib import Path

    from gctrace_analyzer.present.document import KeyFigure
    from gctrace_analyzer.run import Run

STEADY = SAMPLES / "steady-go1.26.log"


@pytest.fixture(scope="module")
def loop() -> Run:
    return gca.read(CORPUS / "wild" / "k8s50632-oom-loop.log")


def test_the_kills_of_a_loop_are_one_statement(loop: Run) -> None:
    report = loop.report()
    assert report.verdict is not None
    assert report.verdict.sentence.startswith(
        "The program node was killed 8 times because memory ran out, with 66.7 to 108 MiB resident "
        "(without file pages)."
    )
    ((title, story),) = evidence.deaths(report)
    assert title == "OOM kill: node by the kernel, 8 times"
    assert dict(story)["Memory"] == "66.7 MiB to 108 MiB resident (without file pages)"
    (problem,) = findings.problems(report)
    assert problem.evidence == "8 times: OOM kill of node."


LINE = (
    "2026-02-03T10:{:02}:{:02}Z h kernel: Out of memory: Killed process {} ({}) total-vm:90000kB, "
    "anon-rss:80000kB, file-rss:0kB, shmem-rss:0kB"
)


@pytest.mark.parametrize(
    ("minutes", "apart"),
    [
        ((0, 20, 40), ", every 20m 01s,"),
        ((0, 20, 55), ", 20m 01s to 35m 01s apart,"),
        ((0,), ""),
    ],
)
def test_the_times_between_kills_are_said(minutes: tuple[int, ...], apart: str) -> None:
    lines = [LINE.format(minute, n, n + 9, "api") for n, minute in enumerate(minutes)]
    found = read_text("\n".join(lines)).report().verdict
    assert found is not None
    assert apart in found.sentence
    assert ("every" in found.sentence or "apart" in found.sentence) == bool(apart)


OF_BOOTS = (
    "{}Out of memory: Killed process {} (api) total-vm:4205720kB, anon-rss:{}kB, file-rss:0kB, "
    "shmem-rss:0kB"
)


@pytest.mark.parametrize(
    ("prefixes", "apart"),
    [
        # A clock that falls began again: the time between two boots is unknown.
        (("[698939.000] ", "[754740.500] ", "[ 2641.800] "), ""),
        (("[   50.000] ", "[ 5000.000] ", "[  100.000] ", "[  300.000] "), ""),
        (("[  100.000] ", "[  400.000] ", "[  900.000] "), "5m 00s to 8m 20s apart"),
        # Dates decide, in any order of the lines.
        (
            (
                "May  6 21:11:29 h kernel: [ 2641.800] ",
                "May  5 01:32:58 h kernel: [698939.000] ",
                "May  5 17:03:02 h kernel: [754740.500] ",
            ),
            "15h 30m to 1d 04h apart",
        ),
        (
            ("Dec 31 23:30:00 h kernel: [ 900.000] ", "Jan  1 01:00:00 h kernel: [ 20.000] "),
            "1h 30m apart",
        ),
    ],
)
def test_the_times_between_kills_are_on_one_clock(
    prefixes: tuple[str, ...], apart: str
) -> None:
    lines = [OF_BOOTS.format(at, 9 + n, 3_000_000) for n, at in enumerate(prefixes)]
    found = read_text("\n".join(lines)).report().verdict
    assert found is not None
    assert f"{len(prefixes)} times" in found.sentence
    assert apart in found.sentence
    assert ("every" in found.sentence or "apart" in found.sentence) == bool(apart)


def test_kernels_of_two_hosts_have_clocks_of_their_own(tmp_path: Path) -> None:
    for number, name in enumerate(("a.log", "b.log")):
        line = OF_BOOTS.format(f"[ {100 + 900 * number}.000] ", 9 + number, 3_000_000)
        (tmp_path / name).write_text(f"{line}\n")
    found = gca.read(tmp_path / "a.log", tmp_path / "b.log").report().verdict
    assert found is not None
    assert "2 times" in found.sentence
    assert "apart" not in found.sentence


@pytest.mark.parametrize("sizes", [(3984240, 3069552, 3272096), (3069552, 3272096, 3984240)])
def test_the_least_that_a_program_had_at_its_kills_counts(sizes: tuple[int, ...]) -> None:
    """90 % of 3,069,552 kB are 2,697 MiB, whatever the order of the lines."""
    lines = [OF_BOOTS.format(f"[{900 * n}.000] ", n, size) for n, size in enumerate(sizes, 1)]
    run = read_text("\n".join(lines))
    found = run.report().verdict
    assert found is not None
    for text in (found.action, *(death.advice[0] for death in run.post_mortems())):
        assert "GOMEMLIMIT=2697MiB (90 % of the least that it had at a kill)" in text


def test_a_process_in_a_unit_is_not_the_unit() -> None:
    text = "".join(
        f"2026-02-08T00:40:07.136882+00:00 w systemd[1]: {unit}: A process of this unit has been "
        "killed by the OOM killer.\n"
        for unit in ("system-postgresql.slice", "user@1021.service")
    )
    found = read_text(text).report().verdict
    assert found is not None
    begin = (
        "A process in system-postgresql.slice and a process in user@1021.service were killed"
    )
    assert found.sentence.startswith(begin)
    caveat = (
        "system-postgresql.slice and user@1021.service: The input shows that a process in it"
    )
    assert caveat in found.sentence


def test_an_eviction_is_no_oom_kill() -> None:
    text = (
        "Warning Evicted pod/api-{} The node was low on resource: memory. Threshold quantity: "
        "100Mi, available: 51036Ki. Container api was using {}Mi, request is 0, has larger "
        "consumption of memory.\n"
    )
    report = read_text(text.format("a", 1843) + text.format("b", 1243)).report()
    assert dict(evidence.inputs(report)).popitem()[1].endswith(": 2 evictions")
    (figure, *_) = figures_of_deaths(report)
    assert figure.label == "Ended for memory"
    both = read_text(text.format("a", 1843) + LINE.format(1, 2, 3, "api")).report()
    assert both.verdict is not None
    assert "was killed or evicted 2 times" in both.verdict.sentence


def test_a_program_that_got_two_signals_is_counted_once() -> None:
    asked = (
        'h earlyoom[1]: sending SIGTERM to process 9 uid 1 "api": badness 7, VmRSS 637 MiB\n'
    )
    failed = "h earlyoom[1]: kill failed: Timer expired\n"
    text = "".join(
        f"Jun 12 06:39:{at} {line}" for at, line in ((16, asked), (26, failed), (26, asked))
    )
    ((_, contents),) = evidence.inputs(read_text(text).report())
    assert contents.endswith(": 1 program (SIGTERM without an end)")


def test_of_several_kills_the_one_of_a_program_that_may_be_go_is_explained() -> None:
    lines = [LINE.format(n, 0, n + 9, comm) for n, comm in enumerate(["python3", "api"])]
    found = read_text("\n".join(lines)).report().verdict
    assert found is not None
    assert found.action.startswith("api: ")


def test_of_several_programs_that_were_killed_the_verdict_names_the_one_it_explains() -> None:
    events = gca.read(CORPUS / "inputs" / "kernel_oom" / "k4.14-gke-node-events.txt")
    shown = str(events.summary())
    assert "prometheus reached the memory limit of its cgroup" in " ".join(shown.split())
    assert "Meaning" not in shown
    assert shown.count("Where  ") == 2


def test_the_restarts_of_a_container_are_named() -> None:
    log = CORPUS / "wild" / "k8s-describe-pod-oomkilled-restart230.log"
    verdict = gca.read(log).report().verdict
    assert verdict is not None
    assert "It was restarted 230 times." in verdict.sentence


def test_dumps_before_the_first_cycle_are_not_of_1970() -> None:
    folder = CORPUS / "gctrace" / "go1.26-spike"
    found = gca.read(folder / "run.log", folder / "memstats.csv").summary().warnings
    assert "gctrace and metrics both cover 2.9 s, and agree within 10 %." in found


@pytest.mark.parametrize(
    ("file", "name"),
    [("api-go1.24.log", "api-go1.24"), ("api.log.2.gz", "api"), ("api.2024.txt", "api.2024")],
)
def test_the_name_of_a_report_is_that_of_the_file_without_suffixes(
    file: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_bytes(STEADY.read_bytes())
    assert gca.read(tmp_path / file).report().name == name


def test_one_report_names_one_number_of_cpus() -> None:
    run = gca.read(CORPUS / "procs/victoria-metrics/gogc100-procs4/run.log.gz")
    assert run.summary().cpus == 2
    # The finding has the number; that of a part of the log would be another one.
    assert not any("GOMAXPROCS" in each for each in run.advice.baseline.warnings)


@pytest.mark.parametrize(
    ("log", "procs"),
    [
        ("go18896-fragmentation-two-runs", 40),
        ("go19393-22gb-steady-scvg", 48),
        ("go19393-22gb-late-cycles", 48),
    ],
)
def test_pauses_that_stop_a_varying_number_of_processors_show_no_number_of_cpus(
    log: str, procs: int
) -> None:
    """Up to Go 1.8 a pause stops as many processors as there are idle threads."""
    run = gca.read(CORPUS / "wild" / f"{log}.log")
    assert run.summary().cpus == pytest.approx(procs)
    assert "GC012" not in run.findings()["id"].to_list()


@pytest.fixture(scope="module")
def small_problem() -> Run:
    """A healthy process with many cycles, and one with few that thrashes, in one log."""
    healthy = log_of(120, every=0.5, background=1, assist=0)
    thrashes = (CORPUS / "gctrace" / "go1.26-thrash" / "run.log").read_text()
    return read_text(healthy + thrashes)


def test_charts_show_the_process_that_the_verdict_is_about(small_problem: Run) -> None:
    report = small_problem.report()
    assert report.verdict is not None
    assert report.verdict.sentence.startswith("Process 1: GOMEMLIMIT is too low")
    assert report.analysis.longest_process == 0
    axis = axis_of(report, bins=100)
    assert axis.processes == (1,)
    assert axis.cycles["process"].unique().to_list() == [1]
    assert axis.notes == ("Process 1, which the verdict is about; 1 other is not drawn.",)
    said = statements(report, axis.processes)
    (mmu,) = (text for name, text in said.items() if name == "mmu-mmu")
    assert mmu.startswith("Process 1: in the worst")


def test_without_a_problem_charts_show_the_process_with_the_most_cycles() -> None:
    healthy = [log_of(count, every=0.5, background=1, assist=0) for count in (40, 80, 30)]
    report = read_text("".join(healthy)).report()
    axis = axis_of(report, bins=100)
    assert axis.processes == (1,)
    assert axis.notes == ("Process 1, which has the most cycles; 2 others are not drawn.",)


def test_processes_that_run_at_once_do_not_add_up_to_the_length_of_the_log(
    tmp_path: Path,
) -> None:
    def line(pod: str, text: str) -> str:
        second = float(text.partition("@")[2].partition("s")[0])
        at = (AT + timedelta(seconds=second)).isoformat()
        return json.dumps({"ts": at, "pod": pod, "log": text})

    pods = [f"api-{number}" for number in range(4)]
    rows = [line(pod, text) for text in records(20) for pod in pods]
    path = logfile(tmp_path / "pods.jsonl", rows)
    report = gca.read(path).report()
    assert report.analysis.summary.span_s == pytest.approx(4 * 20, abs=0.5)
    assert report.analysis.covered_s == pytest.approx(20, abs=0.5)
    assert report.facts[3:5] == ["20 s", "4 processes"]


def test_without_a_common_clock_the_first_line_says_that_times_are_added_up() -> None:
    texts = ["\n".join(records(count)) + "\n" for count in (30, 20)]
    report = read_text("".join(texts)).report()
    assert report.analysis.covered_s is None
    assert "50 s in total of 2 processes" in report.facts
    one = read_text(texts[0]).report()
    assert "30 s" in one.facts
    assert not any("process" in each for each in one.facts)


def test_charts_name_the_process_as_the_table_of_processes_does(tmp_path: Path) -> None:
    logs = (log_of(40, every=0.5), (CORPUS / "gctrace/go1.26-thrash/run.log").read_text())
    rows = [
        {"log": line, "kubernetes": {"pod_name": pod, "container_name": "app"}}
        for pod, text in zip(("api-a", "api-b"), logs, strict=True)
        for line in text.splitlines()
    ]
    path = logfile(tmp_path / "pods.jsonl", [json.dumps(row) for row in rows])
    axis = axis_of(gca.read(path).report(), bins=100)
    assert axis.notes[0].startswith("Process 1 (api-b), which the verdict is about")


@pytest.mark.parametrize("name", ["steady-go1.26", "spike-go1.26", "thrash-go1.19"])
def test_the_range_of_a_page_has_the_allocation_rate_of_the_summary(name: str) -> None:
    report = gca.read(SAMPLES / f"{name}.log").report()
    found = cycle_table.figures(report, axis_of(report, bins=100))
    known = [
        (rate, length)
        for rate, length in zip(found["alloc"], found["length"], strict=True)
        if rate is not None
    ]
    whole = sum(rate * length for rate, length in known) / sum(length for _, length in known)
    assert whole == pytest.approx(report.analysis.summary.alloc_mib_per_s, rel=0.01)


def test_the_allocation_of_a_few_cycles_is_that_of_its_chart() -> None:
    run = gca.read(CORPUS / "wild" / "go19393-22gb-late-cycles.log")
    rates = run.cycles.pipe(gca.add_metrics)["alloc_mib_per_s"].drop_nulls()
    rate = run.summary().alloc_mib_per_s
    assert rate is not None
    assert rates.filter(rates < rate).len()
    assert rates.filter(rates > rate).len()


def test_a_verdict_says_which_share_of_gc_cpu_is_with_idle_marking() -> None:
    service = gca.read(SAMPLES / "refill" / "service.log.gz").report().verdict
    assert service is not None
    assert "Predicted: GC CPU with idle 3.3 % instead of 24 %, heap peak" in service.action
    # Of Go 1.8: its pauses are charged to 26 and to 32 of 48 processors.
    old = gca.read(CORPUS / "wild" / "go19393-22gb-late-cycles.log").report().verdict
    assert old is not None
    assert old.sentence.startswith("GC takes 13–15 % of the CPU")
    assert "Go 1.9 or earlier printed this log (pauses count varying" in old.action


def test_a_rate_far_below_the_usual_one_says_when_cycles_come() -> None:
    """A rate of 90 cycles per hour and one every 102 ms would contradict each other."""
    idle = gca.read(CORPUS / "gctrace" / "go1.9-idle" / "run.log").report()
    notes = {each.label: (each.value, each.note) for each in headline.state(idle)}
    assert notes["Frequency"] == (
        "89.8/h", "every 102 ms at first, then 120 s; 1 of 7 forced",
    )  # fmt: skip
    steady = headline.state(gca.read(STEADY).report())
    assert not any("in bursts" in each.note for each in steady)


def test_a_load_that_varies_is_not_dozens_of_phases() -> None:
    rows = gca.read(CORPUS / "real" / "etcd" / "off-limit29" / "run.log.gz").segments()
    assert rows["kind"].to_list() == ["start-up", "steady", "thrash"]


def test_short_runs_show_milliseconds_and_several_programs_their_numbers() -> None:
    report = gca.read(CORPUS / "gctrace" / "go1.26-restart" / "run.log").report()
    axis = axis_of(report, bins=100)
    _, phases = ranges.phases(report, axis)
    assert phases.head[:4] == ("Phase", "process", "from", "to")
    assert [each[1] for each in phases.rows] == ["0", "0", "1", "1"]
    assert all(len(each[2].rpartition(".")[2]) == 3 for each in phases.rows)
    assert len(phases.align) == len(phases.head) == len(phases.rows[0])
    assert all(phases.spans[:1])
    assert "1 other is not drawn" in " ".join(axis.notes)


def test_a_table_shows_no_digits_that_were_not_printed() -> None:
    report = gca.read(STEADY).report()
    found = cycle_table.records(report, axis_of(report, bins=100))
    by_head = {each.head: each.values for each in found.columns}
    assert "forced" not in by_head
    assert all(round(each, 3) == each for each in by_head["total pause, ms"])
    printed = gca.cycles(STEADY)
    for head, name in (
        ("sweep term.", "stw_sweep_term_ms"),
        ("mark term.", "stw_mark_term_ms"),
    ):
        assert by_head[head].to_list() == printed[name].to_list()
    forced = gca.read(SAMPLES / "forced-go1.26.log").report()
    shown = cycle_table.records(forced, axis_of(forced, bins=100)).columns
    assert "forced" in [each.head for each in shown]


def test_a_page_about_metrics_does_not_describe_gctrace() -> None:
    report = gca.read(SAMPLES / "metrics" / "limit80.json.gz").report()
    text = " ".join(sentence for _, sentence in methodology(report))
    assert "gctrace" not in text
    assert "sweep termination" not in text
    memory = on(axis_of(report, bins=100), report, "memory")
    assert "From scrapes, as printed." in memory.notes


@pytest.mark.parametrize(
    ("values", "percent", "is_cut"),
    [
        ([680.0, 740.0], False, True),
        ([10.0, 10.004], False, False),
        ([13.1], False, False),
        ([0.95, 1.0], True, False),
    ],
)
def test_an_axis_begins_at_0_unless_there_is_a_change_to_see(
    values: list[float], *, percent: bool, is_cut: bool
) -> None:
    y = pl.Series("y", values)
    x = pl.Series("x", range(len(values)), dtype=pl.Float64)
    panel = Panel("p", "P", (Mark("m", x, y, look=LOOKS["live heap"]),), percent=percent)
    assert panel.span.is_cut == is_cut
    assert (panel.span.low == 0) != is_cut


def test_a_hundredth_of_a_few_pauses_is_not_named() -> None:
    found = gca.read(CORPUS / "gctrace" / "go1.26-steady" / "run.log").findings()
    long = found.filter(pl.col("id") == "GC009")["evidence"][0]
    assert "The median of the 27 pauses before marking is 0.19 ms" in long
    assert found["id"][0] == "GC009"


def test_memory_that_the_container_does_not_have_is_the_verdict() -> None:
    log = CORPUS / "advice" / "svc-big" / "gogc100" / "run.log"
    found = gca.read(log, container_limit="300MiB").report().verdict
    assert found is not None
    assert found.level == "warn"
    assert found.sentence.startswith("Memory may run out: the peak of 3")
    assert "exceeds the container's 300 MiB" in found.sentence
    assert "GOMEMLIMIT=270MiB" in found.action
    roomy = gca.read(log, container_limit="2GiB").report().verdict
    assert roomy is not None
    assert "Memory" not in roomy.sentence


def test_a_report_has_one_decision_on_a_tight_limit() -> None:
    """The verdict asks for the limit that the recommendation advises, however little GC costs."""
    log = CORPUS / "advice" / "svc-stkc" / "off-limit94" / "run.log"
    run = gca.read(log, gogc="off", memory_limit="94MiB")
    first = run.recommend().row(0, named=True)
    assert not first["now"]
    found = run.report().verdict
    assert found is not None
    assert found.finding == "GC015"
    assert "Optional" not in found.action
    assert f"GOMEMLIMIT={first['memory_limit_mib']:.0f}MiB" in found.action
    roomy = run.report().advice.higher_limit_mib
    assert first["memory_limit_mib"] == roomy


@pytest.mark.parametrize(
    ("log", "limit"), [("real/etcd/off-limit29", 29), ("real/caddy/off-limit24", 24)]
)
def test_the_start_up_of_a_program_that_thrashes_predicts_nothing(log: str, limit: int) -> None:
    path = CORPUS / log / "run.log.gz"
    baseline = gca.read(path, gogc="off", memory_limit=f"{limit}MiB").advice.baseline
    assert str(baseline.refused).startswith("the program was thrashing")


def test_forced_cycles_that_cost_little_explain_nothing() -> None:
    run = gca.read(CORPUS / "wild" / "felixge-gc-overhead-1p.log")
    found = {each["id"]: each for each in run.findings().to_dicts()}
    assert found["GC024"]["severity"] == "info"
    assert "They take only 0.1" in found["GC024"]["evidence"]
    assert found["GC001"]["because_of"] is None


def test_the_interval_of_a_heap_peak_is_possible() -> None:
    log = CORPUS / "advice" / "svc-big" / "gogc100" / "run.log"
    best = gca.read(log, container_limit="4GiB").recommend(aim="cpu").row(0, named=True)
    assert best["heap_peak_mib_high"] <= best["memory_limit_mib"] == 3686
    leaking = gca.read(CORPUS / "wild" / "go18896-fragmentation-two-runs.log").whatif(gogc=800)
    # The last cycle has no interval yet; the one before left 1,874 MiB.
    assert leaking["heap_peak_mib_low"][0] >= 1874


def test_a_log_of_a_few_milliseconds_does_not_show_that_all_is_well() -> None:
    report = gca.read(CORPUS / "wild" / "memlimit-1gib-overshoot-1p.log").report()
    assert report.verdict is not None
    assert report.verdict.sentence.startswith(
        "The log is too short to judge: GC has taken 1 % of the CPU since the start (the "
        "cycle: 4.0 ms of CPU time in 31 ms)"
    )
    assert "gc_cpu" not in report.analysis.levels
    assert report.analysis.levels["pauses"] == "ok"


def test_a_trend_is_of_the_same_processes_as_its_figure() -> None:
    alone = gca.read(SAMPLES / "steady-go1.26.log").report().analysis
    assert len(alone.trend) == 10
    assert gca.read(SAMPLES / "restart-go1.26.log").report().analysis.trend.is_empty()


def test_the_advice_is_for_the_process_that_the_verdict_is_about() -> None:
    """Figures of another program of the stream would raise a limit to below the live heap."""
    thrashing, healthy = SAMPLES / "thrash-go1.19.log", SAMPLES / "change/before-1.log.gz"
    alone = gca.read(thrashing).report().verdict
    both = gca.read(thrashing, healthy)
    report = both.report()
    assert alone is not None
    assert report.verdict is not None
    assert both.processes["cycles"].to_list() == [67, 81]
    assert report.verdict.process == 0
    assert report.verdict.sentence.startswith("thrash-go1.19.log: GOMEMLIMIT is too low")
    assert report.verdict.action == alone.action
    assert "1.5 × the 166 MiB that the live heap" in report.verdict.action


@pytest.mark.parametrize(("times", "unit"), [(1, "MiB"), (1000, "GiB")])
def test_settings_of_large_heaps_fit_80_columns(times: int, unit: str) -> None:
    run = gca.read(STEADY, memory_limit="120GiB", container_limit="600GiB")
    rows = run.recommend().with_columns(pl.col("^heap_peak_mib.*$") * times)
    lines = plain(filter(None, [advice.advice(rows, run.advice.baseline)])).splitlines()
    assert lines[1].endswith(f"peak {unit}")
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    "judged", [{"slo": {"gc_cpu": "2%"}}, {"thresholds": {"gc_cpu_warn": 0.02}}]
)
def test_the_advice_has_the_limit_by_which_findings_are_judged(judged: dict[str, Any]) -> None:
    """A broken promise of 2 % is not met by a setting that is good because it is below 10 %."""
    report = gca.read(STEADY, **judged).report()
    first = report.advice.recommendations.row(0, named=True)
    assert report.verdict is not None
    assert report.verdict.finding == "GC001"
    assert report.verdict.action.startswith(f"Try GOGC={first['gogc']:.0f}")
    assert first["gc_cpu_share"] <= 0.02
    assert "within the target of 2 %" in first["why"]
    usual = gca.read(STEADY).report().advice.recommendations.row(0, named=True)
    assert "below 10 %" in usual["why"]


def test_a_long_setting_does_not_make_a_line_wider_than_80_columns() -> None:
    run = gca.read(STEADY, memory_limit="122881MiB", container_limit="600GiB")
    rows = run.recommend().with_columns(ballast_mib=pl.lit(16_384.0))
    for name in ("heap_peak_mib", "heap_peak_mib_low", "heap_peak_mib_high"):
        rows = rows.with_columns(pl.col(name) * 1000 + 16_384)
    lines = plain(filter(None, [advice.advice(rows, run.advice.baseline)])).splitlines()
    assert max(map(len, lines)) <= 80
    at = next(n for n, line in enumerate(lines) if line.endswith("ballast 16.0 GiB"))
    assert "GOMEMLIMIT=122881MiB" in lines[at]
    # Its figures are below it, under their heads.
    assert lines[at + 1].startswith(" " * 20)
    assert len(lines[at + 1]) == len(lines[1])


def test_the_place_of_a_kill_and_the_growth_of_the_live_heap_fit_80_columns() -> None:
    kill = gca.read(CORPUS / "inputs/kernel_oom/carrier-rfc3339-rsyslog.log").report()
    text = plain(document(kill))
    assert " line 1\n" in text
    steady = plain(document(gca.read(CORPUS / "metrics/own/gogc100/run.log.gz").report()))
    assert "max 87 MiB; no significant growth" in steady
    for lines in (text.splitlines(), steady.splitlines()):
        assert max(map(len, lines[1:])) <= 80


def text_of(*cycles: str) -> str:
    return " ".join(plain(document(read_text("\n".join(cycles)).report())).split())


def test_one_goal_above_the_heap_minimum_is_not_set_by_it() -> None:
    text = text_of(
        *(
            f"gc {n} @0.{n}61s 1%: 0.01+0.6+0.2 ms clock, 0.01+0/0.7/0+0.2 ms cpu, "
            f"4->4->{live} MB, {goal} MB goal, 1 P"
            for n, live, goal in ((1, 0, 4), (2, 0, 4), (3, 2, 4), (4, 3, 4), (5, 5, 7))
        )
    )
    assert "set mostly by the heap minimum" in text


def test_a_printed_size_stands_for_anything_below_the_next() -> None:
    text = text_of(
        *(
            f"gc {n} @0.0{n}9s 3%: 0.05+0.4+0.04 ms clock, 0.8+0.06/0.7/0+0.7 ms cpu, "
            f"4->4->{live} MB, 5 MB goal, 16 P"
            for n, live in ((7, 0), (8, 1))
        )
    )
    assert "Live heap under 2 MiB" in text


def test_lines_without_goals_do_not_show_that_gogc_is_off() -> None:
    """Lines from before the release of Go 1.5 have none; these cycles started by themselves."""
    text = text_of(
        *(
            f"gc #{n} @{3 * n}.059s 1%: 0+0+0+57+12 ms clock, 0+0+0+3/0/0+12 ms cpu, "
            f"396->399->4 MB, 1 P"
            for n in range(1, 13)
        )
    )
    assert "GOGC" not in text
    assert "the lines have no heap goal" in text


def test_sizes_of_several_programs_are_no_course() -> None:
    """Each dump is of another program: the counters show it."""
    lines = [
        f"Alloc = {used} MiB TotalAlloc = {total} MiB Sys = {sys} MiB NumGC = {cycles}"
        for used, total, sys, cycles in ((954, 2822, 1009, 16), (182, 197, 205, 7))
    ]
    shown = plain(document(read_text("\n\n".join(lines)).report()))
    text = " ".join(shown.split())
    assert (
        "allocated was 954 MiB at most in the dumps; the runtime obtained 1,009 MiB from the"
        in text
    )
    assert "fell" not in text


def test_a_heap_that_was_filled_has_grown() -> None:
    """It is no leak, and no heap that stays as it is."""
    sizes = [10, 20, 39, 75, 146, 248, 248, 248, 248, 248, 248, 248]
    cycles = [
        f"gc {n} @{60 * n}.000s 0%: 0.01+60+0.1 ms clock, 0.1+0.1/60/170+0.5 ms cpu, "
        f"{2 * live}->{2 * live}->{live} MB, {2 * live} MB goal, 4 P"
        for n, live in enumerate(sizes, start=1)
    ]
    text = plain(document(read_text("\n".join(cycles)).report()))
    assert "median; max 248 MiB" in text
    assert "growth" not in text


def test_figures_of_all_processes_say_so(small_problem: Run) -> None:
    """The verdict has 53.1–53.5 % of GC CPU of one process, the figures 3.5 % of both."""
    report = small_problem.report()
    assert "GC takes 53.1–53.5 % of the CPU" in " ".join(plain(document(report)).split())
    assert (
        "\nBoth processes together, rates on average per process; numbered from 0\n  GC CPU         3.5 %"
        in plain(document(report))
    )
    assert (
        "| Figure (both processes together, rates on average per process; numbered from 0) |"
        in markdown.dumps(document(report))
    )
    assert (
        ">Both processes together, rates on average per process; numbered from 0<"
        in report_page.dumps(report)
    )
    assert (
        ">Both processes together, rates on average per process; numbered from 0<"
        in small_problem._repr_html_()
    )
    one = gca.read(STEADY).report()
    assert not any(
        "processes, as if" in text for text in (plain(document(one)), report_page.dumps(one))
    )


def killed(tmp_path: Path, *, resident_mib: int, container_limit: str) -> Run:
    """A steady program of 120 cycles, and its kill 0.1 s after the last one."""
    lines = [
        f"{AT + timedelta(seconds=0.2 * n):%Y-%m-%dT%H:%M:%S.%f}Z {line}"
        for n, line in enumerate(log_of(120).splitlines(), start=1)
    ]
    at = AT + timedelta(seconds=24.1)
    kill = KILL.format(pid=7, comm="api", kb=resident_mib * 1024)
    lines.append(f"{at:%Y-%m-%dT%H:%M:%S.%f}Z kernel: {kill}")
    return gca.read(logfile(tmp_path / "log", lines), container_limit=container_limit)


def test_no_larger_heap_is_advised_after_a_kill_by_memory_outside_the_heap(
    tmp_path: Path,
) -> None:
    report = killed(tmp_path, resident_mib=1000, container_limit="1GiB").report()
    assert report.verdict is not None
    assert report.verdict.action.startswith("Find out what uses the rest of the memory")
    assert "no GOGC or GOMEMLIMIT frees enough" in report.verdict.action
    refused = report.advice.baseline.refused
    assert refused is not None
    assert refused.startswith(
        "memory outside the Go heap may have led to the OOM kill; find out"
    )
    assert "GOMEMLIMIT=" not in plain(document(report))


def test_after_a_kill_keeping_the_setting_is_no_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "has_subject_died", lambda _: True)
    run = gca.read("samples/steady-go1.26.log")
    rows = run.report().advice.recommendations
    present = rows.filter("now")
    kept = advice.after_death(pl.concat([present, rows.filter(~pl.col("now"))]), run.report())
    assert kept["why"].null_count() == kept["rank"].null_count() == len(kept)
    baseline = run.report().advice.baseline
    shown = [row[0] for row in advice.advice(kept, baseline).rows]
    assert not any(row.startswith("▸") for row in shown)
    assert not any(label == "Why" for label, _ in advice.reasons(kept, baseline))


def test_of_a_program_that_was_killed_the_last_live_heap_is_shown(tmp_path: Path) -> None:
    report = killed(tmp_path, resident_mib=190, container_limit="200MiB").report()
    (death,) = report.analysis.post_mortems
    median = live_heap(report.analysis.summary.live_heap_p50_mib)
    shown = {figure.label: figure for figure in headline.state(report)}["Live heap"]
    assert shown.value == live_heap(death.live_mib)
    assert shown.note.startswith(f"last; median {median}; max ")
    assert shown.note in report_page.dumps(report).replace("\N{NO-BREAK SPACE}", " ")


def test_a_batch_job_that_ends_later_under_the_advised_setting_is_told_so() -> None:
    log = CORPUS / "advice" / "batch-mid" / "gogc400" / "run.log"
    report = gca.read(log, container_limit="374MiB").report()
    assert report.verdict is not None
    assert re.search(r"the same work takes [\d.]+ % more time", report.verdict.action)
    assert "% more time" in report.advice.recommendations["why"][0]


def test_the_command_that_tests_a_setting_is_named_once() -> None:
    report = gca.read(SAMPLES / "steady-go1.14.log").report()
    shown = " ".join(plain(document(report)).split())
    assert "Confidence low" in shown
    assert shown.count("gctrace-analyze measure") == 1
    rows = report.advice.recommendations
    alone = [text for _, text in advice.reasons(rows, report.advice.baseline)]
    assert "test it with gctrace-analyze measure" in " ".join(alone)


def test_a_steady_program_that_was_killed_does_not_leak(tmp_path: Path) -> None:
    report = killed(tmp_path, resident_mib=190, container_limit="200MiB").report()
    (death,) = report.analysis.post_mortems
    assert death.preventable == "yes"
    assert report.verdict is not None
    assert "live heap grew" not in report.verdict.sentence
    assert "GOMEMLIMIT=180MiB" in report.verdict.action
    assert "profiles" not in report.verdict.action


def test_a_comparison_leads_with_what_makes_it_unfair() -> None:
    """Shares of different numbers of CPUs are no change, and waiting for a CPU counts as GC CPU."""
    short = log_of(60, background=9)
    long = short.replace(": 0.02+", ": 3+", 6).replace("clock, 0.04+", "clock, 6+", 6)
    found = comparison.verdict(gca.compare(read_text(long), read_text(log_of(60))).pairs)
    assert found == (
        "No significant change of cycles or heap peak; same load, but other work or a CPU "
        "quota probably held up threads."
    )
    found = comparison.verdict(
        gca.compare(read_text(short), read_text(log_of(60, procs=1))).pairs
    )
    assert "GC CPU" not in found.removeprefix("No significant change of GC CPU")
    assert found.endswith("; same load, but GOMAXPROCS differs.")


def test_of_several_sides_the_cycles_decide_where_gc_cpu_was_not_compared() -> None:
    quiet, seldom = log_of(60), log_of(60, every=0.5)
    busy = quiet.replace(": 0.02+", ": 3+", 6).replace("clock, 0.04+", "clock, 6+", 6)
    logs = {"a": quiet, "busy": busy, "seldom": seldom}
    found = gca.compare({name: read_text(log) for name, log in logs.items()})
    assert "GC CPU" not in comparison.verdict(found.pairs)
    assert "cycles" in comparison.verdict(found.pairs)


def test_a_change_of_load_is_the_cause_and_no_improvement() -> None:
    """Half as many cycles for half of the allocation are neither better nor worse."""
    often, seldom = (read_text(log_of(60, every=s)) for s in (0.1, 0.2))
    found = gca.compare(often, seldom)
    assert found["alloc_mib_per_s"].relative == pytest.approx(-0.5, abs=0.02)
    assert comparison.verdict(found.pairs) == (
        "The allocation rate changed (-50 %); it explains the change of GC CPU and cycles."
    )
    assert {change.verdict for change in found.pairs[0].changes.values()} <= {"~", None}
    (table, _) = next(comparison.further_tables(found.pairs[0]))
    assert {row[0] for row in table.rows} >= {"GC CPU", "Frequency"}


def test_an_idle_program_is_called_idle() -> None:
    """Its start-up has cycles of its own, and a short log of it is short because it is idle."""
    line = log_of(1).split(" ", 3)[3]
    times = (0.01, 0.02, 120.01, 240.03, 360.06)
    idle = "".join(f"gc {n} @{at:.3f}s {line}" for n, at in enumerate(times, start=1))
    verdict = read_text(idle).report().verdict
    assert verdict is not None
    assert verdict.sentence.startswith(
        "The program allocates too little to reach the heap goal, and GC runs only every "
        "two minutes:"
    )
    assert verdict.action == "To see what GC costs, record a log under load."
    two = read_text(idle + log_of(120)).report().verdict
    assert two is not None
    assert "idle" not in two.sentence


def test_the_heap_goal_names_the_gogc_that_predictions_start_from() -> None:
    """The last setting has few cycles; the median is of the first one."""
    changed = log_of(
        38,
        live=100,
        start=lambda n: 190 if n < 32 else 480,
        end=lambda n: 195 if n < 32 else 490,
        goal=lambda n: 4 if n == 1 else 200 if n < 32 else 500,
    )
    report = read_text(changed).report()
    assert report.advice.baseline.now.gogc == 400
    (goal,) = (each for each in headline.state(report) if each.label == "Heap goal")
    assert goal.note == "set mostly by GOGC; last 500 MiB"


def test_predictions_show_the_gc_cpu_that_memstats_have() -> None:
    """GCCPUFraction has no idle marking: the column is called so, instead of having no figures."""
    run = gca.read(CORPUS / "metrics" / "own" / "gogc100" / "memstats.csv.gz")
    shown = advice.predictions(run.whatif(gogc=[200]), run.advice.baseline)
    assert shown.head == ("What if", "GC CPU %", "cycles/s", "heap peak MiB")
    assert shown.rows[1][1].startswith("2.1 (")
    assert "GC CPU %" in plain(document(run.report()))
    # The default collector of Prometheus has no CPU time of GC.
    rows = run.whatif(gogc=[100, 200]).with_columns(gc_cpu_share=pl.lit(None, pl.Float64))
    assert advice.predictions(rows, run.advice.baseline).head == (
        "What if",
        "cycles/s",
        "heap peak MiB",
    )


def test_a_narrow_table_keeps_the_frequency_or_says_that_it_is_left_out() -> None:
    cells = ("GOGC=140 GOMEMLIMIT=230MiB", "1.9 (1.3–2.7)", "1.6 (1.2–2.1)", "187 (154–225)")
    table = Table(
        ("What if", "GC CPU+idle %", "cycles/s", "heap peak MiB"), "lrrr", [cells], spare=(2,)
    )
    assert "1.6 (1.2–2.1)" in plain([table])
    for columns, last in ((66, cells[3]), (62, "(with --width 70 also: cycles/s)")):
        with as_wide_as(columns):
            shown = plain([table])
        assert (" 1.6 " in shown) == (columns == 66)
        assert "1.2–2.1" not in shown
        assert shown.rstrip().endswith(last)


def test_a_total_of_pauses_is_not_shown_as_a_pause() -> None:
    """MemStats have the total alone: the report says what it proves of a single cycle."""

    def pauses(setting: str) -> KeyFigure:
        run = gca.read(CORPUS / "metrics" / "own" / setting / "memstats.csv.gz")
        figures = headline.state(run.report())
        return next(each for each in figures if each.label == "Pauses")

    long, short = pauses("gogc100"), pauses("otel-old")
    assert (long.value, long.note) == ("≥ 74 ms", "in one cycle · 0.91 % of time")
    assert long.level == "bad"
    # The dumps have times to the second.
    assert (short.value, short.note) == ("0.044–0.049 %", "of time; 8.8 ms in total")


def test_after_a_kill_the_goal_is_not_under_the_live_heap(tmp_path: Path) -> None:
    log = (SAMPLES / "leak-go1.26.log").read_text().splitlines()
    kill = KILL.format(pid=1, comm="leak", kb=500_000)
    report = gca.read(logfile(tmp_path / "log", [*log, kill])).report()
    shown = {each.label: (each.value, each.note) for each in headline.state(report)}
    assert shown["Live heap"][0] == "238 MiB"
    assert shown["Heap goal"][0] == "477 MiB"
    assert shown["Heap goal"][1].startswith("next; median 36 MiB; set mostly by GOGC")


@pytest.mark.parametrize("name", ["leak-into-limit-go1.24.log", "leak/service.log.gz"])
def test_growth_is_in_its_finding_although_the_verdict_names_it(name: str) -> None:
    report = gca.read(SAMPLES / name).report()
    (problem,) = (each for each in findings.problems(report) if each.id == "GC021")
    assert problem.evidence.startswith("The live heap grew from ")


def test_growth_into_a_limit_is_dated_and_what_came_after_is_said() -> None:
    run = gca.read(SAMPLES / "leak-into-limit-go1.24.log")
    (growth,) = (each for each in run.analysis.findings if each.id == "GC021")
    rows = with_held(run.cycles).rows_by_key("heap_live_mib", named=True)
    assert growth.start_s == rows[84][0]["start_s"]
    assert growth.end_s == pytest.approx(rows[198][-1]["start_s"], abs=0.2)
    assert "GC takes 35 % of the CPU. At 5.0 s the live heap fell" in growth.headline
    assert "If it grows again, compare" in growth.advice
    (thrash,) = run.episodes().to_dicts()
    assert thrash["last_gc"] == 72, "gc 73 has room, and its goal is the heap minimum"
    shown = {each.label: each.note for each in headline.state(run.report())}
    assert shown["Live heap"] == "median; max 207 MiB; last < 1 MiB"


def test_ticks_of_changes_do_not_touch_on_a_phone() -> None:
    logs = ("spike-go1.26.log", "leak-into-limit-go1.24.log")
    before, after = (gca.read(SAMPLES / name) for name in logs)
    for chart in interval_chart.of_pairs(gca.compare(before, after).pairs):
        assert "0 %" in [text for _, text in chart.ticks]
        assert len(chart.ticks) >= 4
        for (left, first), (right, second) in pairwise(chart.ticks):
            # A letter of the axis is 6.5 px wide, and the axis of a phone 340 px.
            assert 3.4 * (right - left) > 6.5 * (len(first) + len(second)) / 2


def test_scrapes_of_several_jobs_are_counted_as_they_are_used() -> None:
    report = gca.read(SAMPLES / "metrics" / "limit80.json.gz").report()
    ((_, contents),) = evidence.inputs(report)
    assert contents.endswith(": 114 scrapes (57 used, because several jobs scrape it)")
    # The answer of a server is a single line.
    assert not any("line" in problem.when for problem in findings.problems(report))


def test_a_load_that_changes_within_the_log_is_noted() -> None:
    """A mean over both loads predicts neither of them."""
    first = log_of(40, every=0.6)
    later = "".join(
        line.replace(f"@{0.2 * n:.3f}s", f"@{24 + 0.2 * n:.3f}s").replace(
            f"gc {n} ", f"gc {40 + n} "
        )
        for n, line in enumerate(log_of(120).splitlines(keepends=True), start=1)
    )
    notes = read_text(first + later).report().advice.baseline.warnings
    (note,) = (each for each in notes if "depending on the part of the log" in each)
    assert note.endswith("the predictions are averages")
    steady = read_text(log_of(120)).report().advice.baseline.warnings
    assert not any("depending on the part" in each for each in steady)


def timed(starts: list[float], **values: Any) -> str:
    """Returns a log whose cycles start at these times."""
    lines = log_of(len(starts), **values).splitlines(keepends=True)
    return "".join(
        re.sub(r"@[0-9.]+s", f"@{start:.3f}s", line)
        for start, line in zip(starts, lines, strict=True)
    )


def test_a_load_that_changed_for_good_is_noted_from_one_and_a_half_times_on() -> None:
    starts = [0.4 * n for n in range(20)] + [8 + 0.22 * n for n in range(37)]
    baseline = read_text(timed(starts)).report().advice.baseline
    assert any("depending on the part of the log" in note for note in baseline.warnings)


def test_whether_gc_slows_down_a_program_that_works_in_bursts_is_not_known() -> None:
    starts = [4.0 * (n // 30) + 0.01 * (n % 30) for n in range(180)]
    text = read_text(timed(starts, mark=3)).to_markdown()
    assert "the program allocates in bursts" in text
    assert "load: fixed rate (" not in text


def test_intervals_that_grow_are_no_bursts() -> None:
    """At its start, a program doubles its heap: each interval is twice the last one."""
    starts = [0.0, 0.005, 0.015, 0.027, 0.037, 0.051, 0.081, 0.133, 0.231, 0.414, 0.782, 3.2]
    (frequency,) = (
        each
        for each in headline.state(read_text(timed(starts, mark=1)).report())
        if each.label == "Frequency"
    )
    assert frequency.note == "every 5.0 ms to 2.4 s"


def test_advice_names_no_recommended_setting_where_there_is_none() -> None:
    first = gca.read(SAMPLES / "refill" / "service.log.gz").report().analysis.findings[0]
    finding: Any = replace(first, advice="Use a recommended setting, or allocate less.")
    for is_now, text in (True, "Allocate less."), (False, finding.advice):
        rows = SimpleNamespace(recommendations=pl.DataFrame({"now": [is_now]}))
        report: Any = SimpleNamespace(advice=rows, subject=finding.process)
        assert findings._advice(finding, report) == text


def test_gc_cpu_is_a_range_from_five_per_cent_on() -> None:
    """Go 1.22 counts all of the time to stop the world, and 1.23 a part; both print such lines."""
    low, share, high = 0.0600, 0.0636, 0.0672
    summary = replace(
        read_text(log_of(20)).summary(),
        gc_cpu_share=share, gc_cpu_share_low=low, gc_cpu_share_high=high,
    )  # fmt: skip
    assert gc_cpu(summary) == "6.0–6.7 %"


def test_a_few_forced_cycles_are_named_although_they_are_no_finding() -> None:
    forced = "".join(
        line.replace(" P\n", " P (forced)\n") if n % 10 == 0 else line
        for n, line in enumerate(log_of(60).splitlines(keepends=True), start=1)
    )
    report = read_text(forced).report()
    assert "GC024" not in [each.id for each in report.analysis.findings]
    (frequency,) = (each for each in headline.state(report) if each.label == "Frequency")
    assert frequency.note == "every 200 ms; 6 of 60 forced"


def test_a_median_between_two_kinds_of_intervals_is_not_shown() -> None:
    """The usual time from one cycle to the next would be one that never passes."""
    starts = (0.0, 0.01, 0.02, 120.0, 240.0)
    text = "".join(
        re.sub(r"@[0-9.]+s", f"@{start:.3f}s", line)
        for start, line in zip(starts, log_of(5).splitlines(keepends=True), strict=True)
    )
    (frequency,) = (
        each for each in headline.state(read_text(text).report()) if each.label == "Frequency"
    )
    assert frequency.note == "every 10 ms to 120 s"


def test_the_verdict_names_the_present_setting_of_a_program_that_changed_it() -> None:
    """GOGC=100 on two processors, then GOGC=50 on one."""
    run = gca.read(CORPUS / "gctrace" / "go1.26-retune" / "run.log")
    verdict = run.report().verdict
    assert verdict is not None
    # As a report on this part has it: a range, because Go 1.26 does not count whole pauses.
    part = run.between("2s..").analysis.summary
    assert gc_cpu_text(part) == "17.9–18.8 %"
    assert verdict.sentence.endswith(
        f"The settings changed: since 2.0 s (GOGC=50, GOMAXPROCS=1) GC runs {often_text(part)} "
        "and takes 17.9–18.8 % of the CPU."
    )


def test_the_room_under_a_limit_is_one_figure_although_gogc_sets_the_first_goals() -> None:
    text = log_of(
        40, every=0.2, live=60, goal=lambda n: 120 if n < 6 else 81 if n < 24 else 83,
        start=lambda n: 110 if n < 6 else 80, end=lambda n: 111 if n < 6 else 81, background=9,
    )  # fmt: skip
    shown = plain(document(gca.read(StringIO(text), memory_limit="100MiB").report()))
    (room,) = set(re.findall(r"room as GOGC=(\d+)", shown))
    assert f"effective GOGC {room} " in shown


def test_a_present_setting_that_is_not_known_says_what_is_known_of_it() -> None:
    limited = gca.read(CORPUS / "gctrace" / "go1.27-near-limit" / "run.log").report()
    assert "now     GOGC≥35 GOMEMLIMIT=39–62MiB" in plain(document(limited))
    dumps = gca.read(CORPUS / "metrics" / "own" / "gogc100" / "expvar.jsonl.gz").report()
    assert not dumps.is_scraped, "a program dumped them itself"
    assert "now     GOGC=100 (assumed)" in plain(document(dumps))


def test_figures_below_the_resolution_of_the_clock_are_not_called_zero() -> None:
    line = "gc 1 @0.035s 0%: 0+0.99+0 ms clock, 0+0/0/0+0 ms cpu, 4->5->1 MB, 5 MB goal, 12 P\n"
    run = read_text(line)
    verdict = run.report().verdict
    assert verdict is not None
    assert "too coarse for the CPU time of GC and for its pauses" in verdict.sentence
    assert "all of them are printed as 0" in " ".join(run.summary().warnings)


def test_a_coarse_clock_is_no_evidence_of_health() -> None:
    """The figures that it cannot show get no level, and the sentence does not call them fine."""
    lines = log_of(60)
    pauses = read_text(lines.replace("0.02+5+0.02", "0+5+0")).report()
    assert pauses.verdict is not None
    assert pauses.verdict.sentence.startswith("There is no problem with GC CPU here: GC takes")
    assert pauses.verdict.level == "info"
    assert "pauses" not in pauses.analysis.levels
    assert "GC044" not in [found.id for found in pauses.analysis.findings]
    assert pauses.analysis.levels["gc_cpu"] == "ok"
    both = read_text(re.sub(r"[^ ]+ ms clock, [^ ]+ ms cpu", _ZERO, lines)).report()
    assert both.verdict is not None
    assert both.verdict.sentence.startswith(
        "The log does not show whether GC is a problem: the clock"
    )
    assert not {"pauses", "gc_cpu", "assist"} & both.analysis.levels.keys()
    assert [each.note for each in headline.state(both)][:2] == [
        "not measurable: all cycles are printed with 0",
        "p99 · not measurable: all are printed as 0",
    ]
    refused = both.advice.recommendations["refused"].to_list()
    assert refused == ["the clock of the log is too coarse for the CPU time of GC"]
    cpu = read_text(re.sub(r"[^ ]+ ms cpu", _ZERO.split(", ")[1], lines)).report()
    assert cpu.verdict is not None
    assert cpu.verdict.sentence.startswith("There is no problem with pauses here: the clock")


_ZERO = "0+0+0 ms clock, 0+0/0/0+0 ms cpu"


def test_the_worst_figures_of_one_process_name_it_for_both() -> None:
    worst = log_of(10, background=20).replace("+0.02 ms clock", "+1.9 ms clock")
    worst = worst.replace("+0.04 ms cpu", "+3.8 ms cpu")
    verdict = read_text(worst + log_of(8)).report().verdict
    assert verdict is not None
    assert verdict.sentence.endswith(
        "the longest pause took 1.9 ms, both in process 0, the highest of 2 processes."
    )


def test_a_comparison_says_which_side_was_thrashing() -> None:
    healthy, thrashing = read_text(log_of(60)), gca.read(SAMPLES / "thrash-go1.19.log")
    said = " ".join(str(gca.compare({"a": healthy, "b": thrashing})).split())
    assert "b: GOMEMLIMIT is too low for the live heap" in said
    assert "a: GOMEMLIMIT" not in said


@pytest.mark.parametrize("more", [0, 1])
def test_a_comparison_begins_with_a_bad_finding_that_only_the_side_after_has(more: int) -> None:
    healthy, thrashing = read_text(log_of(60)), gca.read(SAMPLES / "thrash-go1.19.log")
    sides = {"a": healthy, "b": thrashing} | ({"c": healthy} if more else {})
    made = gca.compare(sides)
    statement = next(
        one for one in comparison.document(made.pairs) if isinstance(one, Statement)
    )
    assert statement.level == "bad"
    assert statement.sentence.startswith("b: GOMEMLIMIT is too low for the live heap")
    assert str(made).count("GOMEMLIMIT is too low") == 1
    page = made.to_html()
    assert '<section class="verdict bad"' in page
    assert '<h2 class="word">b: GOMEMLIMIT is too low' in page
    solved = gca.compare({"b": thrashing, "a": healthy})
    statement = next(
        one for one in comparison.document(solved.pairs) if isinstance(one, Statement)
    )
    assert statement.level == "none"
    assert "b: GOMEMLIMIT is too low" in statement.sentence


def test_several_dumps_do_not_ask_for_a_second_one() -> None:
    inputs = CORPUS / "inputs" / "memstats"
    several = plain(document(gca.read(inputs / "csv-header-go126.csv").report()))
    assert "Since the start of the program, GC has taken" in " ".join(several.split())
    assert "Only a second" not in several
    # The list of pauses in this excerpt ends inside.
    excerpt = (CORPUS / "wild" / "go68136-pprof-heap-debug1.log").read_text().rstrip()
    cut = " ".join(plain(document(read_text(excerpt).report())).split())
    assert "Each of the 91 cycles in the input stopped the program for at most 0.280 ms" in cut
    assert "take a heap profile" not in cut, "it is the end of one"
    one = plain(document(read_text(f"{excerpt}]\n").report()))
    assert "Only a second dump" in " ".join(one.split())
    assert "Since its start" not in one, "a ring of pauses is not the time since the start"
    never = plain(
        document(read_text("Sys 2428028\nHeapAlloc 94696\nPauseTotalNs 0\n").report())
    )
    assert "No GC pause was measured. Only a second dump" in " ".join(never.split())


def test_two_dumps_without_times_show_what_lies_between_them(tmp_path: Path) -> None:
    """They were asked for a second dump again."""
    text = "Alloc = {} MiB\nTotalAlloc = {} MiB\nSys = {} MiB\nNumGC = {}\n"
    paths = [tmp_path / "first.txt", tmp_path / "later.txt"]
    for path, values in zip(paths, ((67, 98, 81, 6), (43, 239, 86, 11)), strict=True):
        path.write_text(text.format(*values))
    one, two = (
        " ".join(plain(document(gca.read(*paths[:n]).report())).split()) for n in (1, 2)
    )
    assert "second dump" not in one + two
    assert "take several dumps with their times" in one.replace("record", "take")
    assert (
        "Between the two dumps, if they are of the same run, the program ran 5 GC cycles and "
        "allocated 141 MiB; they have no times, so there are no rates." in two
    )
    together = plain(document(read_text("".join(path.read_text() for path in paths)).report()))
    assert "Between the two dumps, the program ran 5 GC cycles" in " ".join(together.split())


def test_a_dump_that_lacks_counters_gives_no_interval_and_no_returned_memory() -> None:
    """The third one was cut off: two others were "the two dumps", and one of them had returned."""
    dump = "Alloc = {0} MiB\tTotalAlloc = {1} MiB\tSys = {2} MiB\tHeapSys = {3} MiB"
    ends = "\tHeapReleased = {} MiB\tNumGC = {}\n---\n"
    text = (
        dump.format(40, 41, 68, 60) + ends.format(19, 1) + dump.format(4778, 4784, 4999, 4799)
    )
    whole = text + ends.format(19, 5)
    cut = whole + dump.format(7959, 9565, 8327, 7999) + "\n"
    shown = [" ".join(str(read_text(log).summary()).split()) for log in (whole, cut)]
    assert "Between the two dumps, the program ran 4 GC" in shown[0]
    assert "obtained 4,999 MiB from the OS and returned 19 MiB of it." in shown[0]
    assert "Between the dumps of <stream>:1 and <stream>:3, the program ran 4 GC" in shown[1]
    assert "obtained 8,327 MiB from the OS." in shown[1]


def test_dumps_with_times_are_not_asked_for_times() -> None:
    line = "Time: {:4d}s MemStats.Sys: 8.0MB MemStats.Alloc: {}MB MemStats.TotalAlloc: {}MB\n"
    text = "".join(line.format(50 * n, 2 + n / 10, 100 * n + 3) for n in range(4))
    (sentence, action) = no_verdict(read_text(text).report())
    assert "What GC has cost since the start is not in the input." in sentence
    assert action.startswith(
        "To see what GC costs, record NumGC and PauseTotalNs too, or run it"
    )
    assert (
        "record several dumps with their times"
        in no_verdict(read_text(text.replace("Time: ", "Loop ")).report())[1]
    )


def test_pauses_of_the_go_runtime_are_of_a_go_program() -> None:
    name = 'go_gc_pauses_seconds_total_bucket{{le="{}"}} {}\n'
    text = "".join(name.format(*row) for row in (("0.001", 5), ("0.02", 8), ("+Inf", 8)))
    assert no_verdict(read_text(text).report())[1].startswith("Run the program with GODEBUG")


def test_an_action_for_a_later_death_has_its_reason() -> None:
    """On one screen, "Find what allocates that" stood without what it allocated."""
    large = (
        "runtime stack:\nruntime.throw(0x96e88a, 0x16)\n\t/go/src/runtime/panic.go:616 +0x81\n"
        "runtime.sysMap(0xc420200000, 0xff000000, 0x0, 0xc30438)\n"
        "\t/go/src/runtime/mem_linux.go:216 +0x20a\n"
    )
    text = "fatal error: runtime: out of memory\n\n"
    shown = " ".join(str(read_text(f"{text}again:\n{text}{large}").summary()).split())
    assert "needed 4,080 MiB for one allocation" in shown
    assert shown.index("needed 4,080 MiB") < shown.index("Find what allocates that")


def test_dumps_in_two_blocks_of_code_may_be_of_two_runs() -> None:
    """As in two files."""
    dump = "Alloc = {} MiB\tTotalAlloc = {} MiB\tSys = {} MiB\tNumGC = {}\n"
    first, later = dump.format(66, 98, 81, 6), dump.format(243, 339, 286, 11)
    same = "if they are of the same run, the program ran 5 GC cycles and allocated 241 MiB"
    for between, is_open in (("```\nWith values:\n\n```\n", True), ("With values:\n", False)):
        text = f"With pointers:\n```\n{first}{between}{later}```\n"
        shown = " ".join(str(read_text(text).summary()).split())
        assert (same in shown, "rose from 66 MiB to 243 MiB" in shown) == (is_open, not is_open)


def test_the_end_times_of_cycles_in_one_dump_show_how_often_they_run() -> None:
    ends = [1779901840545833282 + 2_000_000_000 * n for n in range(5)]
    lists = f"# PauseNs = [7 8 9 8 7 0 0]\n# PauseEnd = [{' '.join(map(str, ends))} 0 0]\n"
    sizes = "# HeapAlloc = 58782960\n# HeapInuse = 73482240\n# Sys = 226316880\n"
    for pauses, often in ((lists, "Frequency 0.50/s last 5 cycles, in 8.0 s"), ("", "")):
        text = f"# runtime.MemStats\n{sizes}# LastGC = {ends[-1]}\n{pauses}# NumGC = 5\n"
        shown = " ".join(str(read_text(text).summary()).split())
        assert often in shown
        assert ("Frequency" in shown) == bool(often)


def test_a_note_that_a_finding_has_said_is_not_repeated() -> None:
    log = CORPUS / "wild" / "gogc-minus-one-goal-17592186044415.log"
    brief = plain(document(gca.read(log).report()), everything=False)
    assert brief.count("had no heap goal") == 1


def test_a_log_with_commas_is_not_called_a_table() -> None:
    with pytest.raises(gca.NoDataError) as caught:
        gca.read(CORPUS / "wild" / "otelcol36574-memorylimiter-forced-journald.log")
    assert "table" not in str(caught.value)


def test_the_name_of_a_log_keeps_the_version_in_it() -> None:
    assert gca.read(SAMPLES / "steady-go1.26.log").report().name == "steady-go1.26"


def test_a_report_says_once_what_a_program_needs_that_thrashes() -> None:
    brief = plain(document(gca.read(SAMPLES / "thrash-go1.19.log").report()), everything=False)
    said = " ".join(brief.split())
    assert said.count("leaves GC room") == 0
    assert said.count("Set GOMEMLIMIT=249MiB") == 1
    assert "No recommendation" not in said
    assert "Only GOMEMLIMIT" not in said


def test_a_report_names_one_gc_cpu_without_idle_marking() -> None:
    report = gca.read(SAMPLES / "steady-go1.26.log").report()
    first = report.advice.recommendations.row(0, named=True)
    assert first["why"] == "no change: GC CPU without idle marking is below 10 %"
    little = gca.read(SAMPLES / "ballast-go1.26.log").recommend().row(0, named=True)
    assert little["why"] == "no change: GC CPU is below 10 %"


def test_why_a_limit_is_advised_is_a_sum() -> None:
    report = gca.read(SAMPLES / "leak-into-limit-go1.24.log").report()
    assert "exceeds the largest live heap" not in plain(document(report))


def test_of_few_pauses_the_longest_is_shown_and_no_hundredth() -> None:
    def pauses(count: int) -> str:
        figures = headline.state(read_text(log_of(count)).report())
        (shown,) = (figure for figure in figures if figure.label == "Pauses")
        return shown.note

    assert pauses(49).startswith("max · ")
    assert pauses(50).startswith("p99 · 0.02 ms max · ")


def test_what_the_verdict_or_the_title_says_is_not_a_minor_finding() -> None:
    line = (
        "gc {0} @{1}s 1%: 0.01+1.4+0.02 ms clock, 0.1+0.4/1.4/0.1+0.2 ms cpu, {2}->{2}->{3} MB, "
        "{2} MB goal, 0 MB stacks, 0 MB globals, 8 P\n"
    )
    sizes = ((4, 2), (5, 3), (7, 5), (11, 9), (19, 15), (31, 24))
    text = "".join(line.format(n, 0.03 * n, *size) for n, size in enumerate(sizes, 1))
    report = read_text(text).report()
    assert report.verdict is not None
    assert "The log is too short" in report.verdict.sentence
    assert "The live heap grew from 2 to 24 MiB" in report.verdict.sentence
    assert findings.minor_text(report) is None


def test_an_idle_live_heap_is_less_than_the_unit_of_the_log_not_nothing() -> None:
    line = "gc {0} @{0}.1s 0%: 0.01+0.2+0.01 ms clock, 0.01+0/0.2/0+0.01 ms cpu, 4->4->0 MB, "
    text = "".join(line.format(n) + "4 MB goal, 2 P\n" for n in range(1, 9))
    shown = plain(document(read_text(text).report()))
    assert "< 1 MiB" in shown
    assert "max < 1 MiB" in shown
    assert " 0 MiB" not in shown


def test_a_program_that_never_collected_is_recorded_again_under_load() -> None:
    report = read_text(
        "go_gc_duration_seconds_sum 0\ngo_gc_duration_seconds_count 0\n"
        "go_memstats_alloc_bytes 1.741288e+06\n"
    ).report()
    shown = " ".join(plain(document(report), everything=False).split())
    assert "no GC cycle ran" in shown
    assert shown.count("1.7 MiB") == 1
    assert "record it again under load" in shown
    assert "GODEBUG" not in shown


def test_kills_of_one_program_have_one_action_and_their_own_tasks() -> None:
    kill = (
        "[{0}.031] [{1}]     0 {1}  8556396  {2}   16703        0             0 prometheus\n"
        "[{0}.031] Out of memory: Kill process {1} (prometheus) score 947 or sacrifice child\n"
        "[{0}.035] Killed process {1} (prometheus) total-vm:34225584kB, anon-rss:{3}kB, "
        "file-rss:0kB\n"
    )
    sizes = ((3907506, 50093, 8490383, 33961532), (3920674, 63061, 8492690, 33970760))
    report = read_text("".join(kill.format(*each) for each in sizes)).report()
    shown = " ".join(plain(document(report), everything=False).split())
    assert "tasks listed had" not in shown, "each kill has a list of its own"
    assert shown.count("set GOMEMLIMIT=") == 1


@pytest.mark.parametrize(
    ("fraction", "said", "asks"),
    [
        (
            0.41,
            "GC has taken 41.0 % of the CPU, which is high; 90 GC cycles",
            "To get settings",
        ),
        (0.05, "GC has taken 5.0 % of the CPU; 90 GC cycles", "To see what holds"),
        (0.0004, "GC has taken 0.04 % of the CPU, which is low; 90 GC", "To see what holds"),
    ],
)
def test_a_share_since_the_start_is_much_or_little(
    fraction: float, said: str, asks: str
) -> None:
    dump = {"HeapAlloc": 104857600, "Sys": 204857600, "NumGC": 90, "GCCPUFraction": fraction}
    shown = " ".join(plain(document(read_text(json.dumps(dump)).report())).split())
    assert said in shown
    assert f"▸ {asks}" in shown


def test_a_pause_far_above_the_median_is_not_of_the_heap() -> None:
    times = ("0.0001", "0.0004", "0.0008", "0.0021", "0.437")
    quantiles = zip(("0", "0.25", "0.5", "0.75", "1"), times, strict=True)
    page = [f'go_gc_duration_seconds{{quantile="{q}"}} {time}' for q, time in quantiles]
    page += ["go_gc_duration_seconds_sum 5.92", "go_gc_duration_seconds_count 461"]
    shown = plain(
        document(read_text("\n".join([*page, "go_memstats_heap_alloc_bytes 1.4e9"])).report())
    )
    words = " ".join(shown.split())
    assert "The size of the heap does not explain a pause of 437 ms: check" in words


def test_pauses_that_rise_with_the_heap_are_of_the_heap() -> None:
    pauses = [int(13e6 * 1.07**n) for n in range(80)]
    dump = {"HeapAlloc": 23 << 30, "NumGC": 81, "PauseNs": [*pauses, 5_060_000_000]}
    shown = plain(document(read_text(json.dumps(dump)).report()))
    assert "does not explain" not in " ".join(shown.split())


def test_few_cycles_have_no_median_but_a_range_of_sizes() -> None:
    goals = [0, 4, 7, 16, 16, 16]
    sizes: dict[str, Any] = {"goal": goals.__getitem__, "live": lambda n: goals[n] // 2}
    assert figures_of(log_of(1, **sizes))["Live heap"] == "2 MiB "
    few = figures_of(log_of(4, **sizes))
    assert few["Live heap"] == "2–8 MiB last 8 MiB"
    assert few["Heap goal"] == "4–16 MiB last 16 MiB"
    many = figures_of(log_of(5, **sizes))
    assert many["Live heap"].startswith("8 MiB median; max 8 MiB")
    assert many["Heap goal"].startswith("16 MiB ")


def test_at_the_heap_minimum_no_effective_gogc_is_named() -> None:
    text = log_of(60, live=lambda n: n % 2, start=3, end=4, goal=4)
    notes = {each.label: each.note for each in headline.state(read_text(text).report())}
    assert notes["Heap goal"] == "set by the heap minimum"


def test_the_numbers_of_two_cycles_count_those_between_them() -> None:
    lines = log_of(40, every=0.1).splitlines(keepends=True)
    assert figures_of(lines[2] + lines[-1])["Frequency"] == "38 cycles in 3.7 s"
    assert figures_of(lines[2] + lines[3])["Frequency"].startswith("2 cycles every 100 ms")


def test_a_command_whose_packages_are_headed_is_named_once() -> None:
    headed = f"$ GODEBUG=gctrace=1 go run main.go\n# command-line-arguments\n{log_of(3)}"
    assert "those of compile or link, started by `GODEBUG=gctrace=1 go run main.go`: go" in (
        of_toolchain(headed) or ""
    )
    assert "those of `GODEBUG=gctrace=1 go run main.go`: go, compile" in (
        of_toolchain(f"{headed}{log_of(3)}") or ""
    )
    tested = of_toolchain(f"# testmain\n{log_of(3)}=== RUN   TestSet\n") or ""
    assert "Build the program first (`go test -c`)" in tested
    alone = of_toolchain(f"# command-line-arguments\n{log_of(3)}")
    assert "those of `go`: go, compile" in (alone or "")


@pytest.mark.parametrize(
    ("heading", "is_package"),
    [
        ("# ./server", False), ("# bin/server", False), ("# before/after", False),
        ("# baseline", False), ("# shop/price.test", True), ("# github.com/shop/price", True),
        ("# internal/abi", True), ("# runtime", True),
    ],
)  # fmt: skip
def test_a_heading_or_a_command_of_root_is_no_package(heading: str, is_package: bool) -> None:
    assert (of_toolchain(f"{heading}\n{log_of(9)}") is not None) is is_package


@pytest.mark.parametrize(
    "prefix", ["", "2026-11-29T04:30:03.7301010Z ", "build | ", "[12:03:04] "]
)
def test_the_program_that_the_go_command_starts_last_is_judged(prefix: str) -> None:
    """Headings of packages show compile and link; the test program prints `goos:`."""
    compiled = f"# runtime\n{log_of(9, mark=160, background=200, every=0.2)}"
    tested = log_of(30, every=0.01, live=0, start=3, end=4, goal=4, mark=3)
    lines = f"{compiled}# example.test\n{log_of(3)}{tested}goos: linux\nPASS\n".splitlines()
    report = read_text("".join(f"{prefix}{line}\n" for line in lines)).report()
    assert report.subject == 2
    assert report.verdict is not None
    assert report.verdict.process in (2, None)
    assert all(finding.process in (2, None) for finding in report.analysis.findings)
    assert "`go test -c`" in report.analysis.summary.warnings[0]


def test_a_go_command_without_gctrace_of_its_own_prints_no_cycles() -> None:
    built = "$ go build -o main . && GODEBUG=gctrace=1 ./main\n"
    assert of_toolchain(f"{built}{log_of(3)}") is None
    both = of_toolchain(f"$ GODEBUG=gctrace=1 go build . && ./main\n{log_of(3)}") or ""
    assert "those of `GODEBUG=gctrace=1 go build .`: go, compile" in both
    # In PowerShell, the variable is set by a command of its own.
    later = 'go build -o a.exe .\n$env:GODEBUG = "gctrace=1"\n.\\a.exe\n'
    assert of_toolchain(later + log_of(3)) is None
    # Prose about a command is none.
    assert of_toolchain(f"  => go run 커맨드 앞에 GODEBUG\n{log_of(3)}") is None
    told = of_toolchain(f"Here is env GODEBUG=gctrace=1 GOMAXPROCS=1 go run .\n{log_of(3)}")
    assert "those of `GODEBUG=gctrace=1 GOMAXPROCS=1 go run .`" in (told or "")
    quoted = of_toolchain(f"Then `GODEBUG=gctrace=1 go run x.go` prints\n{log_of(3)}") or ""
    assert "those of `GODEBUG=gctrace=1 go run x.go`: go, compile" in quoted
    # What comes below all cycles, or has none before the next command, did not print them.
    only = "$ go run b.go\nHeapAlloc = 4\n$ GODEBUG=gctrace=1 go run x.go\n"
    below = "$ GODEBUG=gctrace=1 GOGC=400 go run x.go\n"
    several = of_toolchain(f"{only}{log_of(3)}{below}") or ""
    assert "those of `GODEBUG=gctrace=1 go run x.go`: go, compile" in several
    with_comment = (
        of_toolchain(f"$ GODEBUG=gctrace=1 go run x.go  # prints:\n{log_of(3)}") or ""
    )
    assert "those of `GODEBUG=gctrace=1 go run x.go`: go, compile" in with_comment


def test_cycles_that_go_test_forces_before_its_benchmarks_are_no_problem() -> None:
    """Also where the results of the benchmarks are cut off."""
    text = log_of(9).replace(" P\n", " P (forced)\n")
    report = read_text(f"$ GODEBUG=gctrace=1 go test -bench=.\n{text}").report()
    (forced,) = (each for each in report.analysis.findings if each.name == "forced-gc")
    assert (forced.severity, "`go test -bench` does" in forced.evidence) == ("info", True)


def test_a_range_of_gc_cpu_is_the_same_all_over_the_page() -> None:
    late = "".join(log_of(10).splitlines(keepends=True)[5:])
    report = read_text(late).report()
    value = next(figure.value for figure in headline.state(report) if figure.label == "GC CPU")
    assert "–" in value
    assert statements(report, (0,))["timeline-gc_cpu"].startswith(f"{value} of all CPU")
    of_page = cycle_table.figures(report, axis_of(report, bins=100))
    assert of_page["gcCpu"] == value
    # The bar of the page has the card's rate for the whole run.
    card = next(figure for figure in headline.state(report) if figure.label == "Allocation")
    assert of_page["allocation"] == card.value


def test_a_share_of_few_cycles_in_a_dump_is_up_to_the_last_of_them() -> None:
    dump = (
        "stats: numgc={} gccpufraction=0.2 pausetotalns=2708672 alloc=839463560 sys=1079372296"
    )
    few, many = (read_text(f"{dump.format(n)}\n").to_markdown() for n in (4, 400))
    assert "GC has taken 20.0 % of the CPU up to its last cycle;" in few
    assert "GC has taken 20.0 % of the CPU, which is high" in many


def test_two_intervals_are_no_rate_and_a_size_below_1_mib_no_range() -> None:
    lines = log_of(17).splitlines(keepends=True)[-3:]
    small = [re.sub(r"(\d+->\d+->)\d+ MB", rf"\g<1>{live} MB", line) for live, line in
             zip((0, 1, 1), lines, strict=True)]  # fmt: skip
    figures = {each.label: each for each in headline.state(read_text("".join(small)).report())}
    assert figures["Frequency"].value == "3 cycles"
    assert figures["Pauses"].note == "max", "the share of two intervals has three cycles"
    assert figures["Live heap"].value == "under 2 MiB"


def test_one_cycle_has_shares_of_its_own_time_and_no_course() -> None:
    line = log_of(17).splitlines()[-1]
    report = read_text(f"{line}\n").report()
    figures = {
        each.label: each for each in headline.with_trends(report, headline.state(report))
    }
    assert figures["GC CPU"].note == "of CPU time in 5.1 ms; under 1 % since the start"
    assert figures["Pauses"].note.endswith(" of the cycle")
    assert figures["Mark assist"].note == "of GC CPU"
    assert not any(each.trend for each in figures.values())


def test_why_gc_cpu_is_a_range_is_said_in_every_report() -> None:
    lines = log_of(20).splitlines(keepends=True)
    (note,) = [
        each for each in read_text("".join(lines[16:])).summary().warnings if "range" in each
    ]
    assert note == (
        "GC CPU is a range: the log begins and ends with a cycle, so it holds one more cycle than "
        "intervals."
    )


def test_what_was_repaired_is_said() -> None:
    text = log_of(20)
    report = read_text(text.replace("->", "-&gt;", 2)).report()
    assert ", 1 line repaired" in ", ".join(report.facts)
    assert "1 repaired (torn apart by other output, or changed on the way)" in str(
        evidence.self_check(report)
    )
    assert "repaired (" not in str(evidence.self_check(read_text(text).report()))


def test_a_finding_that_the_verdict_says_already_is_listed_with_what_it_means() -> None:
    (forced,) = findings.problems(gca.read(SAMPLES / "forced-go1.26.log").report())
    assert forced.meaning.startswith("The program forces GC")


def test_a_single_minor_finding_is_said_and_several_are_named() -> None:
    ballast = gca.read(SAMPLES / "ballast-go1.26.log").report()
    assert "a ballast is unnecessary" in str(findings.minor_text(ballast))
    assert "a ballast is unnecessary: GOGC and GOMEMLIMIT" in str(findings.minor_text(ballast))
    several = gca.read(SAMPLES / "together-go1.22.log").report()
    meaning, _, names = str(findings.minor_text(several)).partition(" (")
    assert meaning.startswith("Goroutines have to help with marking when they allocate")
    assert names.startswith("assist-pressure); also too-frequent, ")


@pytest.mark.parametrize(("sizes", "whose"), [((50, 0), " in process 0"), ((50, 50), "")])
def test_a_minor_finding_of_one_process_is_not_said_of_all(
    sizes: tuple[int, int], whose: str
) -> None:
    logs = [log_of(40).replace("0 MB stacks", f"{n} MB stacks") for n in sizes]
    text = str(findings.minor_text(read_text("".join(logs)).report()))
    assert text.endswith(f"(large-stacks{whose})"), text


def test_settings_of_one_of_several_processes_say_of_which_and_why() -> None:
    text = plain(document(gca.read(SAMPLES / "together-go1.22.log").report()), everything=False)
    assert "predicted from process 0 of 2, which has the most cycles" in text


def test_a_figure_that_a_minor_finding_is_about_has_a_status() -> None:
    report = gca.read(SAMPLES / "together-go1.22.log").report()
    figures = {figure.label: figure.level for figure in headline.state(report)}
    assert [figures[name] for name in ("GC CPU", "Pauses", "Mark assist")] == [
        "ok",
        "info",
        "info",
    ]


def test_settings_are_written_as_they_are_set() -> None:
    """Go reads no commas in GOGC and GOMEMLIMIT."""
    for module in sorted((CORPUS.parents[1] / "gctrace_analyzer").rglob("*.py")):
        assert not re.search(r"(?:GOGC|GOMEMLIMIT)=\{[^}]*:,", module.read_text()), module


def test_the_longest_pause_may_be_in_a_line_that_is_cut_after_it() -> None:
    whole = log_of(3)
    for pause, is_longest in (("9.1", True), ("0.01", False)):
        cut = f"gc 4 @0.924s 0%: 0.008+8.6+{pause} ms clock, 0.071+1.8/15/38+1.3 ms cpu, 1"
        shown = plain(document(read_text(whole + cut).report()))
        assert ("has a pause of 9.1 ms: no pause in the figures" in shown) is is_longest
    # Without cycles, there are no figures.
    assert "has a pause of 9.1 ms." in plain(
        document(read_text(cut.replace("0.01", "9.1")).report())
    )


def test_settings_of_a_container_that_are_not_used_can_be_stated(tmp_path: Path) -> None:
    log = tmp_path / "payments-5c9d.log"
    log.write_text((SAMPLES / "leak-go1.26.log").read_text())
    run = gca.read(SAMPLES / "describe-pod.txt", log)
    (note,) = (text for text in run.analysis.summary.warnings if "are not used" in text)
    options = "--memory-limit 400MiB --container-limit 512MiB --cpu-limit 0.5"
    assert note.endswith(f"If that is wrong, add `{options}`.")


def test_growth_that_a_post_mortem_names_is_not_minor() -> None:
    report = gca.read(SAMPLES / "oom-journal.jsonl").report()
    assert any(finding.name == "live-heap-growth" for finding in report.analysis.findings)
    said = plain(document(report))
    assert "The live heap grew from 6 to 125 MiB" in said
    assert "live-heap-growth" not in said


def test_figures_are_said_to_be_for_a_live_heap_only_where_settings_are_predicted() -> None:
    """The figures of the present setting alone are measured."""
    sizes = {"start": lambda n: 190 + 10 * n, "end": lambda n: 195 + 10 * n}
    grows = log_of(
        60, every=5, live=lambda n: 100 + 5 * n, goal=lambda n: 195 + 10 * n, **sizes
    )
    doubled = {name: lambda n: 200 << min(n - 1, 8) for name in ("start", "end", "goal")}
    rises = log_of(14, every=60, live=lambda n: 100 << min(n - 1, 8), **doubled)
    for log, settings in ((grows, 1), (rises, 2)):
        run = read_text(log)
        text = " ".join(plain(document(run.report())).split())
        assert len(run.recommend()) == settings
        assert "now GOGC=100" in text
        assert ("predicted cycles/s and GC CPU are for" in text) == (settings > 1)


def _starting(pause_ms: float, later_ms: float) -> str:
    """Returns a log whose first pause has this length."""
    return "".join(
        f"gc {n} @{0.1 + 0.5 * (n - 1):.3f}s 1%: {ms}+1+0.01 ms clock, {2 * ms}+0.1/1/0+0.02 ms "
        "cpu, 60->64->40 MB, 80 MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
        for n in range(1, 41)
        for ms in ((pause_ms if n == 1 else later_ms),)
    )


def test_a_long_pause_while_a_program_starts_is_named_as_such() -> None:
    report = read_text(_starting(60, 1)).report()
    assert report.verdict
    assert "took 60 ms (during start-up; 1.0 ms after it)" in report.verdict.sentence
    assert "single long pauses" not in report.verdict.sentence
    (pauses,) = (each for each in headline.state(report) if each.label == "Pauses")
    assert (pauses.value, pauses.level) == ("60 ms", "info")
    assert "1.0 ms max after start-up" in pauses.note
    assert set(report.analysis.episodes["severity"]) == {"info"}
    assert "pauses" not in (findings.healthy(report) or "")
    late = read_text(_starting(4, 60)).report()
    assert late.verdict
    assert "during start-up" not in late.verdict.sentence


def _growing(cycles: int, interval_s: float) -> str:
    return "".join(
        f"gc {n} @{interval_s * n:.3f}s 1%: 0.01+1+0.01 ms clock, 0.02+0.1/1/0+0.02 ms cpu, "
        f"{16 * n}->{16 * n + 1}->{8 * n} MB, {16 * n} MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
        for n in range(1, cycles + 1)
    )


def test_a_live_heap_that_grows_is_shown_by_its_last_value() -> None:
    report = read_text(_growing(30, 0.5)).report()
    figures = {each.label: (each.value, each.note) for each in headline.state(report)}
    assert figures["Live heap"] == ("240 MiB", "last; median 124 MiB; max 240 MiB")
    assert figures["Heap goal"][0] == "480 MiB"
    assert figures["Heap goal"][1].startswith("last; median 248 MiB")


def test_a_report_for_a_container_shows_what_fits_it_although_the_log_is_short() -> None:
    run = gca.read(StringIO(_growing(30, 0.2)), container_limit="512MiB")
    text = str(run.summary())
    assert "Record a longer log" in text
    assert "GOMEMLIMIT=460MiB" in text


def test_goroutines_are_named_where_their_stacks_have_no_row() -> None:
    scrape = (
        "go_goroutines 48213\ngo_memstats_alloc_bytes 4.12e+08\ngo_memstats_sys_bytes 7.1e+08\n"
        "go_memstats_heap_inuse_bytes 4.6e+08\nprocess_resident_memory_bytes 6.4e+08\n"
    )
    text = " ".join(str(read_text(scrape).summary()).split())
    assert "48,213 have stacks of at least 94.2 MiB" in text
    with_stacks = f"{scrape}go_memstats_stack_inuse_bytes 1.1e+08\n"
    assert "have stacks of" not in str(read_text(with_stacks).summary())


@pytest.mark.parametrize(
    ("low", "high", "of_lines", "texts"),
    [
        (0.05, 0.05, (5, 5, 5), ("30.0 %", "1.5 %")),
        (
            0.03,
            0.05,
            (5, 5, 5),
            ("30.0 %", "0.90–1.5 %"),
        ),  # a late log: one interval is missing
        (0.03, 0.07, (3, 5, 7), ("21–50 %", "1.5 %")),  # a part of the pauses is GC CPU
        (0.0, 0.1, (0, 5, 10), ("15–100 %", "1.5 %")),
        (0.05, 0.05, (5, 10, 10), ("30–60 %", "1.5 %")),
    ],
)
def test_the_shares_of_assists_are_ranges_where_what_they_are_of_is_one(
    low: float, high: float, of_lines: tuple[float, float, float], texts: tuple[str, str]
) -> None:
    summary = replace(
        read_text(log_of(40)).summary(), gc_cpu_share=0.05, gc_cpu_share_low=low,
        gc_cpu_share_high=high, assist_share_of_gc_cpu=0.3, assist_share_of_cpu=0.015,
        printed_cpu_s=of_lines,
    )  # fmt: skip
    assert assists(summary) == texts


def figures_of(text: str) -> dict[str, str]:
    figures = headline.state(read_text(text).report())
    return {figure.label: f"{figure.value} {figure.note}" for figure in figures}


def test_a_range_of_gc_cpu_is_one_wherever_it_is_shown() -> None:
    line = (
        "gc {0} @{0}.000s 3%: 40+50+0.05 ms clock, 80+10/50/18+0.1 ms cpu, 187->203->95 MB, "
        "220 MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
    )
    report = read_text("".join(map(line.format, [*range(1, 9), *range(1, 9)]))).report()
    table = overview.processes(report)
    assert table is not None
    for process, row in enumerate(table.rows):
        summary = report.analysis.summary_of(process)
        assert summary.gc_cpu_range is not None
        assert row[3] == gc_cpu(summary)
        assert "–" in row[3]


def test_the_sizes_of_the_heap_are_those_of_most_of_the_time() -> None:
    """A small heap has more cycles in the same time."""
    slow = log_of(40, every=1, live=lambda n: 10 + n, goal=lambda n: 20 + 2 * n)
    fast = log_of(400, every=0.01, live=1, goal=4).splitlines()
    later = (
        line.replace(f"gc {n} @{n * 0.01:.3f}s", f"gc {n + 40} @{40 + n * 0.01:.3f}s")
        for n, line in enumerate(fast, 1)
    )
    found = figures_of(slow + "\n".join(later) + "\n")
    assert found["Live heap"].startswith("28 MiB median over time; max 50 MiB; last 1 MiB")
    assert found["Heap goal"].startswith("58 MiB ")
    assert "heap minimum" not in found["Heap goal"]


def test_a_size_is_not_held_over_cycles_that_are_missing() -> None:
    lines = log_of(24, every=0.5, live=lambda n: 1 if n == 1 else 900).splitlines()
    found = figures_of("\n".join([lines[0], *lines[19:]]) + "\n")
    assert found["Live heap"].startswith("900 MiB median;")
    # Of most of the time, something is known.
    found = figures_of("\n".join([*lines[:12], *lines[13:]]) + "\n")
    assert found["Live heap"].startswith("900 MiB median;")


def test_figures_of_a_log_with_few_of_its_lines_are_of_these_lines() -> None:
    lines = log_of(200, every=0.5).splitlines(keepends=True)
    text = "".join([*lines[:40], *lines[-50:]])
    found = figures_of(text)
    assert "max seen" in found["Pauses"]
    assert "without missing cycles" in found["Allocation"]
    assert "–" in found["GC CPU"], "most of the cost may be in the lines that are missing"
    (refused,) = read_text(text).recommend()["refused"].unique()
    assert refused == "most cycles have no line in the log"


def test_stacks_that_raise_the_goal_are_in_its_row() -> None:
    text = log_of(40, live=10, goal=lambda n: 4 if n == 1 else 110, start=90, end=95)
    found = figures_of(text.replace("0 MB stacks", "90 MB stacks"))
    # Go 1.19 prints allocated stacks, of which the goal may have no part.
    assert found["Heap goal"] == "110 MiB set by GOGC≤1030; 90 MiB of stacks"
    # The mean of two sizes was never the size.
    line = (
        "gc {} @{}.157s 2%: 14+657+0.68 ms clock, 28+0.58/32/0+1.3 ms cpu, 1->3->2 MB, "
        "2 MB goal, {} MB stacks, 0 MB globals, 2 P\n"
    )
    found = figures_of(line.format(1, 0, 7) + line.format(2, 2, 56))
    assert found["Heap goal"].endswith(" 7 MiB of stacks")


def test_a_log_too_short_for_gc_cpu_shows_no_share_of_it() -> None:
    line = (
        "gc {} @4.542s 12%: 0.023+0.033+0.001 ms clock, 0.23+0.012/0.039/0+0.015 ms cpu, "
        "3->3->0 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 10 P\n"
    )
    assert "Mark assist" not in figures_of("".join(map(line.format, range(25, 31))))


def test_a_single_cycle_whose_pauses_are_those_of_fewer_cpus_gets_a_note() -> None:
    line = (
        "gc 35 @1130.489s 1%: 0.71+3290+0.12 ms clock, 5.7+5932/26084/4619+1.0 ms cpu, "
        "35956->37042->8445 MB, 37411 MB goal, 32 P\n"
    )
    notes = read_text(line).summary().warnings
    assert any(
        note.startswith("Pauses are counted for about 8 CPUs: if this is Go 1.10")
        for note in notes
    )


def test_pauses_that_are_charged_to_varying_numbers_of_processors_show_no_cpus() -> None:
    """Up to Go 1.9 the number counts idle threads."""
    line = (
        "gc {n} @{n}.489s 1%: {wall}+90+{wall} ms clock, {cpu}+50/84/19+{cpu} ms cpu, "
        "56->62->45 MB, 63 MB goal, 12 P\n"
    )
    pairs = ((0.1, 0.5), (0.1, 1.1), (0.2, 0.4), (0.1, 0.8))
    text = "".join(line.format(n=n, wall=w, cpu=c) for n, (w, c) in enumerate(pairs, 1))
    assert not any("counted for about" in note for note in read_text(text).summary().warnings)


def test_a_kill_has_one_step_per_line_and_its_growth_is_not_minor() -> None:
    log = log_of(
        60,
        live=lambda n: 60 + n // 2,
        start=lambda n: 118 + n,
        end=lambda n: 119 + n,
        goal=lambda n: 120 + n,
    )
    kill = "Memory cgroup out of memory: Killed process 7 (api), anon-rss:300000kB\n"
    report = read_text(f"{log}memory.max 335544320\noom_kill 1\n{kill}").report()
    steps = headline.verdict(report).steps
    assert len(steps) > 1
    assert steps[0].startswith("Try GOMEMLIMIT=163MiB: it leaves 157 of the 320 MiB")
    assert all(step.startswith(("Find ", "If the live heap still grows")) for step in steps[1:])
    shown = plain(document(report), everything=False)
    assert shown.count("\n▸ ") == len(steps)
    assert "Minor, not urgent" not in shown


def test_the_allocation_is_that_of_json_and_called_an_estimate() -> None:
    def allocation(goal: int, cycles: int) -> tuple[str, str]:
        sizes = {"start": goal, "end": goal, "live": goal // 2, "goal": goal}
        return headline.allocation(read_text(log_of(cycles, every=0.1, **sizes)).report())

    assert allocation(41, 20) == ("218 MiB/s", "estimated; 436 MiB in total")
    assert allocation(8, 188) == ("38.2 MiB/s", "estimated; 719 MiB in total")
    # Whole MiB hide as much as whole spans add: what a program counted was 1 % above this.
    assert allocation(410, 20)[1].startswith("estimated; ")


def test_a_log_that_begins_late_says_when_its_process_started() -> None:
    text = "\n".join(
        f"2026-03-03T09:00:0{n // 10}.{n % 10}50000000Z gc {n + 200} @{n / 10:.3f}s 1%: "
        "0.01+1.0+0.01 ms clock, 0.02+0/1/1+0.02 ms cpu, 9->9->5 MB, 10 MB goal, 2 P"
        for n in range(38, 90)
    )
    assert "started 2026-03-03 09:00:00 UTC" in read_text(text).report().facts


def test_a_comparison_calls_a_figure_by_its_name_in_the_report() -> None:
    figures = headline.state(gca.read(STEADY).report())
    # The report has phases of pauses and peaks of settings in tables of these names.
    known = (*(figure.label for figure in figures), *PHASES, "Heap peak")
    unknown = [m.name for m in METRICS if not LABELS[m.name].startswith(known)]
    assert not unknown
    assert LABELS["live_heap_p50_mib"] == "Live heap median"


def test_live_heap_and_goal_have_one_base() -> None:
    """A median over time next to an effective GOGC over cycles, 0, was a contradiction."""
    report = gca.read(SAMPLES / "refill" / "service.log.gz").report()
    figures = {each.label: each.note for each in headline.state(report)}
    assert figures["Live heap"].startswith("median over time")
    assert figures["Heap goal"].startswith("median over time")
    assert "effective GOGC" not in figures["Heap goal"]


def test_a_quantile_of_several_processes_says_so() -> None:
    parts = [log_of(count, every=0.5, background=1, assist=0) for count in (70, 80)]
    figures = {
        each.label: each.note for each in headline.state(read_text("".join(parts)).report())
    }
    assert figures["Pauses"].startswith("p99 of all together")


def test_a_selected_range_can_be_longer() -> None:
    run = read_text(_growing(60, 0.5)).between("10s..20s")
    assert "Select a longer range. If the live heap still grows" in run.to_markdown()


def test_a_comparison_prints_what_the_command_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs = [str(SAMPLES / f"steady-{name}.log") for name in ("go1.26", "gogc200-go1.26")]
    assert main(["compare", *logs, "--color", "never"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(str(gca.compare(*logs)).rstrip("\n"))


def test_a_chart_of_changes_names_the_rows_that_it_leaves_out() -> None:
    limits = [sorted(SAMPLES.glob(f"limits/{size}-mib-?.log.gz")) for size in (100, 120)]
    comparison = gca.compare({"tight": limits[0], "roomy": limits[1]})
    (chart,) = interval_chart.of_pairs(comparison.pairs)
    assert "Not drawn (no interval): Pauses p99" in chart.statement
    changes = comparison.pairs[0].changes
    for name, change in changes.items():
        label = LABELS.get(name, name)
        is_drawn = any(row.label == label for row in chart.rows)
        assert is_drawn or label in chart.statement or change.relative is None
    # One name of each side, although every run has its line.
    names = re.findall(r"</svg> *(\w+) <span class=\"now\">", comparison.to_html())
    assert set(names) == {"tight", "roomy"}
