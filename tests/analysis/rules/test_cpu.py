"""GC CPU, GOMAXPROCS and CPU quotas."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.rules import cpu
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS
from tests.helpers.facts import facts_of, log_of, matches


def test_gc_cpu_is_a_warning_and_then_bad() -> None:
    severities = [
        [
            each.severity
            for each in matches(
                cpu.high_gc_cpu, facts_of(log_of(60, every=0.02, background=size))
            )
        ]
        for size in (1, 5.0, 12)
    ]
    assert severities == [[], ["warn"], ["bad"]]


def test_a_busy_start_up_is_not_a_finding() -> None:
    facts = facts_of(log_of(4, every=0.04, background=24))
    assert (facts.summary.gc_cpu_share or 0) > 0.25
    assert not matches(cpu.high_gc_cpu, facts)


def test_a_start_up_does_not_end_with_its_first_slow_cycle() -> None:
    """Four cycles after the first half second, as a program that loads data and then waits."""
    facts = facts_of(log_of(6, every=0.2, background=120))
    assert (facts.summary.gc_cpu_share or 0) > 0.25
    assert not matches(cpu.high_gc_cpu, facts)


def test_the_cost_of_a_single_cycle_is_not_explained_by_how_often_gc_runs() -> None:
    text = log_of(20, every=0.2, background=lambda n: 1500 if n == 9 else 1)
    (finding,) = matches(cpu.high_gc_cpu, facts_of(text))
    assert finding.headline.endswith(", most of it in one cycle.")
    assert "allocate less" not in finding.advice
    assert finding.examples[0].endswith(":9")


def test_the_cost_of_a_cycle_that_marks_most_is_explained_by_its_live_heap() -> None:
    """The heap doubles until the program ends, and so does the work of each cycle."""
    text = log_of(
        8, every=1.0, live=lambda n: 2**n, start=lambda n: 2**n, goal=lambda n: 2**n,
        end=lambda n: 2**n, background=lambda n: round(5 * 2.1**n),
    )  # fmt: skip
    (finding,) = matches(cpu.high_gc_cpu, facts_of(text))
    assert finding.headline.endswith(", most of it in one cycle, which marked 256 MiB.")
    assert "allocate less" in finding.advice


def test_a_wait_that_counts_for_all_cpus_is_not_explained_by_the_allocation_rate() -> None:
    lines = log_of(20, every=0.4, mark=60, background=100).split("\n")
    lines[8] = lines[8].replace(": 0.02+", ": 300+").replace(", 0.04+", ", 600+")
    (finding,) = matches(cpu.high_gc_cpu, facts_of("\n".join(lines)))
    assert "in pauses, for which all CPUs count (one took 300 ms)" in finding.headline
    assert "allocates" not in finding.headline


def test_the_evidence_names_the_processors_unless_they_change() -> None:
    (same,) = matches(cpu.high_gc_cpu, facts_of(log_of(60, every=0.02, background=12)))
    assert same.evidence.endswith("of 2 CPUs.")
    (one,) = matches(cpu.high_gc_cpu, facts_of(log_of(60, every=0.02, background=8, procs=1)))
    assert one.evidence.endswith("of 1 CPU.")
    text = log_of(60, every=0.02, background=12, procs=lambda n: 2 + n % 2)
    (several,) = matches(cpu.high_gc_cpu, facts_of(text))
    assert several.evidence.endswith("of 2.5 CPUs.")


def test_fewer_stopped_processors_than_gomaxprocs_are_reported() -> None:
    text = log_of(30, procs=8).replace(
        ": 0.02+5+0.02 ms clock, 0.04", ": 0.20+5+0.02 ms clock, 0.80"
    )
    (finding,) = matches(cpu.gomaxprocs_over_cpus, facts_of(text))
    assert finding.figures["stopped_share"] < 0.55
    assert not matches(cpu.gomaxprocs_over_cpus, facts_of(log_of(30, procs=8)))
    # One line proves it, but not that a long pause comes from it.
    first, *more = text.splitlines(keepends=True)[:5]
    assert matches(cpu.gomaxprocs_over_cpus, facts_of(first))
    one = read_text(first.replace("0.20+5", "28+5").replace("0.80", "112") + "".join(more))
    causes = {row["name"]: row["because_of"] for row in one.findings().iter_rows(named=True)}
    assert causes["gomaxprocs-over-cpus"] is None
    assert causes["long-stw-sweep-termination"] is None


def test_with_fewer_cpus_than_gomaxprocs_gomaxprocs_is_set_first() -> None:
    """Mark workers take their CPU time by the clock: on 2 CPUs, 16 processors gave 2.4 times it."""
    text = log_of(60, every=0.02, background=40, procs=8).replace(
        ": 0.02+5+0.02 ms clock, 0.04", ": 0.20+5+0.02 ms clock, 0.40"
    )
    run = read_text(text)
    verdict = run.report().verdict
    assert verdict is not None
    assert verdict.finding == "GC012"
    assert verdict.sentence.endswith(
        "threads can wait for each other, and marking counts that as GC CPU."
    )
    assert verdict.action.startswith("Set GOMAXPROCS=2")
    (costly,) = run.findings().filter(id="GC001").to_dicts()
    assert costly["severity"] in ("warn", "bad")
    first, *others = run.recommend().iter_rows(named=True)
    assert first["now"]
    assert first["why"] == (
        "no change: while GOMAXPROCS is above the number of CPUs, threads that wait for a CPU "
        "count as GC CPU; set GOMAXPROCS first"
    )
    assert others
    assert not run.recommend(aim="cpu").row(0, named=True)["now"]


def test_gomaxprocs_is_compared_with_a_known_cpu_limit() -> None:
    facts = facts_of(log_of(30, procs=8), cpu_limit=4)
    (finding,) = matches(cpu.cpu_quota_throttling, facts)
    assert "GOMAXPROCS is 8, but the CPU limit is 4" in finding.evidence
    assert not matches(cpu.cpu_quota_throttling, facts_of(log_of(30, procs=8), cpu_limit=5))


def test_long_mark_terminations_of_a_small_heap_suggest_a_quota() -> None:
    sizes = {"start": 17, "end": 18, "live": 9, "goal": 18}
    short = log_of(30, procs=8, **sizes).replace("+0.04 ms cpu", "+0.16 ms cpu")
    printed, late = "+0.02 ms clock, 0.04+0.1/2/0+0.16 ms", "+21 ms clock, 0.04+0.1/2/0+168 ms"
    long = short.replace(printed, late, 4)
    (finding,) = matches(cpu.cpu_quota_throttling, facts_of(long))
    assert "4 of 60 pauses take over 1 ms and 10 times the median" in finding.evidence
    # Equal pauses show no other work, however long they are: Go 1.7 rescanned stacks in them.
    assert not matches(cpu.cpu_quota_throttling, facts_of(short.replace(printed, late)))
    assert not matches(cpu.cpu_quota_throttling, facts_of(log_of(30, procs=8, **sizes)))


def test_an_unknown_gomaxprocs_gives_no_quota_finding() -> None:
    facts = facts_of(log_of(30), cpu_limit=1)
    unknown = replace(facts, cycles=facts.cycles.with_columns(procs=pl.lit(None, pl.Int64)))
    assert matches(cpu.cpu_quota_throttling, facts)
    assert not matches(cpu.cpu_quota_throttling, unknown)


def test_gc_cpu_that_is_mostly_pauses_leads_to_what_stops_the_program() -> None:
    """Go 1.10 on six processors: pauses of 20 ms for a live heap of 4 MiB."""
    run = gca.read(CORPUS / "wild" / "istio10855-steady-24pct.log")
    verdict = run.report().verdict
    assert verdict is not None
    assert verdict.finding == "GC010"
    assert verdict.sentence == (
        "The pause after marking takes up to 34 ms: pauses take 27 % of the time. "
        "GC takes 29–30 % of the CPU (up to 1.8 of 6 CPUs)."
    )
    assert verdict.action.startswith(
        "Check for a CPU quota and other programs on the same CPUs"
    )
    (costly,) = run.findings().filter(id="GC001").to_dicts()
    assert costly["because_of"] == "GC010"
    (frequent,) = run.findings().filter(id="GC003").to_dicts()
    assert frequent["severity"] == "info"
    first = run.recommend().row(0, named=True)
    assert first["now"]
    assert first["why"] == ("no change: find out first why pauses take 27 % of the time")


def test_frequent_cycles_that_cost_under_one_percent_are_no_finding() -> None:
    for background, found in ((0.1, False), (5, True)):
        text = log_of(200, every=0.05, mark=0.1, background=background, assist=0)
        assert ("GC003" in read_text(text).findings()["id"].to_list()) is found


def test_many_short_pauses_that_take_most_of_gc_cpu_are_named() -> None:
    text = log_of(60, every=0.02, background=1).replace(
        ": 0.02+5+0.02 ms clock, 0.04", ": 3.00+5+0.02 ms clock, 6.00"
    )
    run = read_text(text)
    verdict = run.report().verdict
    assert verdict is not None
    assert verdict.finding == "GC001"
    assert verdict.sentence == "GC takes 2.9–18 % of the CPU: pauses take 15 % of the time."
    assert verdict.action.startswith("Check for a CPU quota")
    assert run.recommend().row(0, named=True)["now"]


def test_long_pauses_that_are_a_part_of_gc_cpu_are_named() -> None:
    """None is half of them, but each is far longer than stopping the world takes."""
    text = log_of(60, every=0.05, background=12).replace(
        ": 0.02+5+0.02 ms clock, 0.04", ": 3.00+5+0.02 ms clock, 6.00"
    )
    verdict = read_text(text).report().verdict
    assert verdict is not None
    assert "in pauses, for which all CPUs count (the longest took 3.0 ms)" in verdict.sentence


def test_a_small_heap_is_not_blamed_for_what_long_pauses_take() -> None:
    line = "gc {} @{:.3f}s 9%: {}+1.0+0.02 ms clock, {}+0.1/1/0.5+0.08 ms cpu, 4->4->1 MB, 5 MB goal, 4 P"
    run = read_text("\n".join(line.format(n + 1, n / 10, 12, 48) for n in range(40)))
    said = run.to_markdown()
    assert "GC runs at every" not in said
    assert "a pause counts as all CPUs" in said


def test_gc_cpu_that_is_mostly_marking_still_leads_to_gogc() -> None:
    verdict = read_text(log_of(60, every=0.02, background=12)).report().verdict
    assert verdict is not None
    assert verdict.finding == "GC001"
    assert verdict.action.startswith(("Set GOGC=", "Try GOGC="))
