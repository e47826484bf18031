"""Every threshold of a rule: the finding is there on one side of it, and not on the other.

The threshold is moved to the figure that the rule compares with it, and a little to either side.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
import pytest

from gctrace_analyzer.analysis.postmortem.memory_of_dumps import Memory
from gctrace_analyzer.analysis.rules import (
    allocation,
    assists,
    cpu,
    frequency,
    goal,
    limit,
    live_heap,
    log,
    long_pauses,
    marking,
    memory,
)
from gctrace_analyzer.analysis.rules.finding import MemoryFacts
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.analysis.timeline import levels
from tests.helpers.corpus import live
from tests.helpers.facts import facts_of, log_of, matches

if TYPE_CHECKING:
    from collections.abc import Callable

    from gctrace_analyzer.analysis.rules.finding import ProcessFacts
    from gctrace_analyzer.analysis.rules.registry import Rule

QUIET = "0.02+5+0.02 ms clock, 0.04+"
UNDER_A_LIMIT: dict[str, Any] = {
    "live": lambda n: 90 + 12 * n % 31, "start": 120, "end": 130, "goal": 125,
}  # fmt: skip


def numbered(count: int, one: float, other: float) -> Callable[[int], float]:
    """Returns the first value for the first cycles, then the second."""
    return lambda n: one if n <= count else other


ballasted = numbered(30, 100, 105)


def timed(line: str, seconds: list[float]) -> str:
    """Returns a log whose cycles start at these times."""
    lines = log_of(len(seconds)).splitlines()
    return "\n".join(
        f"gc {n} @{at:.3f}s{row.split('s', 1)[1]}"
        for n, (row, at) in enumerate(zip(lines, seconds, strict=True), 1)
    )


LOGS: dict[str, Callable[[], str]] = {
    "busy": lambda: log_of(60, every=0.02, background=12),
    "assisted": lambda: log_of(40, every=0.02, assist=3.0, background=3.0),
    "always on": lambda: log_of(60, every=0.02, mark=15),
    "few processors": lambda: log_of(30, procs=8).replace(
        f": {QUIET}", ": 0.20+5+0.02 ms clock, 0.80+"
    ),
    "eight processors": lambda: log_of(30, procs=8),
    "quota": lambda: (
        log_of(30, procs=8, start=17, end=18, live=9, goal=18)
        .replace("+0.04 ms cpu", "+0.16 ms cpu")
        .replace("+0.02 ms clock, 0.04+0.1/2/0+0.16 ms", "+21 ms clock, 0.04+0.1/2/0+168 ms", 4)
    ),
    "spike of assists": lambda: log_of(40, assist=numbered(39, 0.1, 8)),
    "early": lambda: log_of(40, start=150, end=160),
    "forced": lambda: log_of(30).replace("2 P\n", "2 P (forced)\n", 8),
    "periodic": lambda: timed("", [*range(0, 1200, 120), 1210, 1220, 1230]),
    "small heap": lambda: log_of(
        30, every=0.02, background=6, start=3, end=4, live=1, goal=lambda n: 4 if n < 25 else 9
    ),
    "low GOGC": lambda: log_of(
        60,
        every=0.02,
        background=1,
        assist=1,
        live=live,
        start=115,
        goal=lambda n: int(1.3 * live(n - 1) + 0.5),
    ),
    "over the goal": lambda: log_of(60, live=100, goal=200, start=190, end=240),
    "no goal": lambda: log_of(40, goal=lambda n: 200 if n <= 10 else 17592186044415),
    "two levels": lambda: log_of(
        120, goal=lambda n: live(n - 1) + live(n - 1) // (1 if n <= 60 else 2)
    ),
    "GOGC 100": lambda: log_of(60),
    "step": lambda: log_of(60, live=numbered(30, 100, 200), goal=400),
    "spike": lambda: log_of(
        60, live=lambda n: 300 if n in (30, 31) else 100, goal=600, start=180
    ),
    "ballast": lambda: log_of(60, live=ballasted, goal=lambda n: 2 * ballasted(n - 1)),
    "roots": lambda: log_of(60, live=100, goal=200).replace(
        "0 MB stacks, 0 MB globals", "25 MB stacks, 30 MB globals"
    ),
    "slow marking": lambda: log_of(30, every=2, mark=200, background=3000, live=100),
    "long pauses": lambda: log_of(100).replace(f": {QUIET}", ": 7+5+0.02 ms clock, 14+"),
    "limited": lambda: log_of(60, **UNDER_A_LIMIT),
    "limited and idle": lambda: log_of(60, every=190, **UNDER_A_LIMIT),
}


@cache
def known(name: str) -> ProcessFacts:
    return facts_of(LOGS[name]())


class Case(NamedTuple):
    """A threshold, the figure it is compared with, and the severity of the finding with the
    threshold just below the figure, equal to it and just above."""

    rule: Rule[ProcessFacts]
    log: str
    threshold: str
    figure: str | float | Callable[[ProcessFacts], Any]
    below: str | None
    equal: str | None
    above: str | None
    others: dict[str, Any] = {}  # noqa: RUF012
    settings: dict[str, Any] = {}  # noqa: RUF012


def column(name: str) -> Callable[[ProcessFacts], Any]:
    return lambda facts: facts.cycles[name].max()


def effective_gogc(facts: ProcessFacts) -> Any:
    return facts.cycles["effective_gogc"].median()


CASES = [
    Case(cpu.high_gc_cpu, "busy", "gc_cpu_warn", "gc_cpu_share", "bad", None, None),
    Case(cpu.high_gc_cpu, "busy", "gc_cpu_bad", "gc_cpu_share", "bad", "warn", "warn"),
    Case(cpu.high_gc_cpu, "busy", "min_cycles", 36, "bad", "bad", None),
    Case(cpu.high_gc_cpu, "busy", "min_span_s", "span_s", "bad", "bad", None),
    Case(cpu.gomaxprocs_over_cpus, "few processors", "stopped_share", "stopped_share", None, None, "warn", others={"gc_cpu_little": 0}),
    Case(cpu.gomaxprocs_over_cpus, "few processors", "gc_cpu_little", lambda facts: facts.summary.gc_cpu_share, "warn", "warn", "info"),
    Case(cpu.cpu_quota_throttling, "eight processors", "quota_times", 2.0, "warn", "warn", None, settings={"cpu_limit": 4}),
    Case(cpu.cpu_quota_throttling, "quota", "stw_bad_ms", column("stw_mark_term_ms"), "warn", "warn", None),
    Case(cpu.cpu_quota_throttling, "quota", "small_heap_mib", 9.0, None, None, "warn"),
    Case(cpu.cpu_quota_throttling, "quota", "many_procs", 8, "warn", "warn", None),
    Case(cpu.cpu_quota_throttling, "quota", "stw_warn_ms", column("stw_mark_term_ms"), "warn", None, None),
    Case(cpu.cpu_quota_throttling, "quota", "late_pause_times", 21.0625 / 0.0205, "warn", None, None),
    Case(cpu.cpu_quota_throttling, "quota", "late_pauses", 4, "warn", "warn", None),
    Case(cpu.cpu_quota_throttling, "quota", "late_pause_share", 4 / 60, "warn", None, None),
    Case(assists.assist_pressure, "assisted", "assist_warn", "assist_share_of_gc_cpu", "warn", None, None),
    Case(assists.assist_pressure, "assisted", "assist_min_cpu_share", "assist_share_of_cpu", "warn", "warn", None, {"mark_pressure": 2.0}),
    Case(assists.assist_pressure, "assisted", "assist_warn_cpu_share", "assist_share_of_cpu", "warn", "warn", "info"),
    Case(assists.assist_pressure, "assisted", "mark_pressure", "mark_pressure", "warn", "warn", None, {"assist_min_cpu_share": 1.0}),
    Case(assists.assist_spike, "spike of assists", "assist_spike", lambda f: column("assist_cpu_ms")(f) / (2 * column("concurrent_mark_ms")(f)), "info", None, None),
    Case(assists.assist_spike, "spike of assists", "mark_min_ms", column("concurrent_mark_ms"), "info", "info", None),
    Case(assists.trigger_pinned_low, "early", "early_trigger", "trigger_share_p50", None, "info", "info"),
    Case(frequency.gc_always_on, "always on", "active_warn", "gc_active_share", "warn", None, None),
    Case(frequency.gc_always_on, "always on", "active_bad", "gc_active_share", "bad", "warn", "warn"),
    Case(frequency.gc_always_on, "always on", "short_log_cycles", 60, "warn", "warn", None),
    Case(frequency.gc_always_on, "always on", "min_span_s", "span_s", "warn", "warn", None),
    Case(frequency.too_frequent, "busy", "frequent_warn_ms", "gc_interval_p50_ms", None, None, "warn"),
    Case(frequency.too_frequent, "busy", "frequent_bad_ms", "gc_interval_p50_ms", "warn", "warn", "bad"),
    Case(frequency.too_frequent, "busy", "gc_cpu_warn", "gc_cpu_share", "warn", "info", "info"),
    Case(frequency.too_frequent, "busy", "min_cycles", 36, "warn", "warn", None),
    Case(frequency.forced_gc, "forced", "forced_min_cycles", 8, "warn", "warn", None),
    Case(frequency.forced_gc, "forced", "forced_share", 8 / 30, "warn", None, None),
    Case(frequency.periodic_only, "periodic", "periodic_share", lambda f: (9 * 120 + 130) / (f.summary.span_s or 0), "info", None, None),
    Case(goal.heap_minimum_bound, "small heap", "heap_minimum_share", lambda f: (f.goal_set_by == "heap-minimum").sum() / len(f.cycles), "warn", None, None),
    Case(goal.heap_minimum_bound, "small heap", "min_cycles", lambda f: len(f.goal_set_by.drop_nulls()), "warn", "warn", None),
    Case(goal.heap_minimum_bound, "small heap", "gc_cpu_warn", "gc_cpu_share", "warn", "info", "info"),
    Case(goal.low_gogc, "low GOGC", "low_gogc", lambda f: f.regimes[-1].gogc_pct, None, None, "warn"),
    Case(goal.low_gogc, "low GOGC", "thrash_min_live_mib", 100.0, "warn", "warn", None),
    Case(goal.low_gogc, "low GOGC", "short_log_cycles", 60, "warn", "warn", None),
    Case(goal.low_gogc, "low GOGC", "min_span_s", "span_s", "warn", "warn", None),
    Case(goal.low_gogc, "low GOGC", "low_gogc_cpu", "gc_cpu_share", "warn", "info", "info", {"low_gogc_active": 1.0}),
    Case(goal.low_gogc, "low GOGC", "low_gogc_active", "gc_active_share", "warn", "info", "info", {"low_gogc_cpu": 1.0}),
    Case(goal.low_gogc, "low GOGC", "assist_warn_cpu_share", "assist_share_of_cpu", "warn", "info", "info", {"low_gogc_cpu": 1.0, "low_gogc_active": 1.0}),
    Case(goal.low_gogc, "low GOGC", "gc_cpu_bad", "gc_cpu_share", "bad", "warn", "warn"),
    Case(goal.low_gogc, "low GOGC", "active_bad", "gc_active_share", "bad", "warn", "warn"),
    Case(goal.goal_overshoot, "over the goal", "overshoot", 1.2, "info", None, None),
    Case(goal.goal_overshoot, "over the goal", "min_cycles", lambda f: len(f.warmed_up), "info", "info", None),
    Case(goal.goal_overshoot, "over the goal", "gogc_min_live_mib", 100.0, "info", "info", None),
    Case(goal.gogc_off_without_limit, "no goal", "no_goal_share", 30 / 40, "warn", None, None),
    Case(goal.gogc_off_without_limit, "no goal", "min_cycles", 30, "warn", "warn", None),
    Case(goal.gogc_not_as_declared, "GOGC 100", "gogc_declared_points", lambda f: 110 - effective_gogc(f), "warn", None, None, {"gogc_declared_share": 0.0}, {"gogc": 110}),
    Case(goal.gogc_not_as_declared, "GOGC 100", "gogc_declared_share", lambda f: (effective_gogc(f) - 80) / 80, "warn", None, None, {"gogc_declared_points": 0.0}, {"gogc": 80}),
    Case(allocation.mutator_slowed_in_gc, "busy", "slowed_rate", "alloc_rate_ratio", None, None, "info"),
    Case(allocation.mutator_slowed_in_gc, "busy", "slowed_gc_cpu", "gc_cpu_share", "info", None, None),
    Case(live_heap.live_heap_step, "step", "step_share", 1.0, "info", None, None),
    Case(live_heap.live_heap_step, "step", "short_log_cycles", 60, "info", "info", None),
    Case(live_heap.live_heap_step, "step", "min_cycles", 30, "info", "info", None),
    Case(live_heap.live_heap_spike, "spike", "spike_times", 3.0, "info", None, None),
    Case(live_heap.live_heap_spike, "spike", "growth_min_mib", 200.0, "info", None, None),
    Case(live_heap.live_heap_spike, "spike", "short_log_cycles", 60, "info", "info", None),
    Case(live_heap.live_heap_spike, "spike", "spike_back_times", 1.0, None, None, "info"),
    Case(live_heap.ballast_present, "ballast", "ballast_min_mib", 100.0, "info", "info", None),
    Case(live_heap.ballast_present, "ballast", "ballast_spread", 0.05, None, "info", "info"),
    Case(live_heap.ballast_present, "ballast", "min_cycles", 60, "info", "info", None),
    Case(marking.large_stacks, "roots", "roots_min_mib", 25.0, "info", "info", None),
    Case(marking.large_stacks, "roots", "roots_share", 0.25, "info", None, None),
    Case(marking.large_globals, "roots", "roots_min_mib", 30.0, "info", "info", None),
    Case(marking.large_globals, "roots", "roots_share", 0.3, "info", None, None),
    Case(marking.low_mark_throughput, "slow marking", "mark_mib_per_cpu_s", "mib_per_cpu_s", None, None, "warn"),
    Case(marking.low_mark_throughput, "slow marking", "slow_mark_ms", column("concurrent_mark_ms"), "warn", "warn", None),
    Case(marking.low_mark_throughput, "slow marking", "min_cycles", 30, "warn", "warn", "info"),
    Case(long_pauses.long_sweep_termination, "long pauses", "stw_warn_ms", "p90_ms", "info", None, None, {"stw_single_ms": 100.0}),
    Case(long_pauses.long_sweep_termination, "long pauses", "stw_single_ms", "p99_ms", "warn", "info", "info"),
    Case(long_pauses.long_sweep_termination, "long pauses", "stw_bad_ms", "p99_ms", "bad", "warn", "warn"),
    Case(limit.limit_bound, "limited", "level_cycles", "cycles", "info", "info", None),
    Case(limit.limit_tight, "limited", "limit_gogc_warn", "effective_gogc_p50", None, None, "bad"),
    Case(limit.limit_tight, "limited", "limit_gogc_bad", "effective_gogc_p50", "info", "info", "bad"),
    Case(limit.limit_tight, "limited", "level_cycles", lambda f: len(f.limited_cycles), "bad", "bad", None),
    Case(limit.gogc_off_idle, "limited and idle", "periodic_s", 190.0, "info", None, None),
    Case(limit.limit_without_headroom, "limited", "limit_headroom", 0.75, "warn", "warn", None, settings={"memory_limit_mib": 750, "container_limit_mib": 1000}),
    Case(log.log_incomplete, "busy", "log_check_points", "log_check_points", "info", None, None),
    Case(log.short_log, "busy", "short_log_cycles", 60, None, None, "info", {"short_log_s": 0.0}),
    Case(log.short_log, "busy", "short_log_s", "span_s", None, None, "info"),
]  # fmt: skip


def value(case: Case, facts: ProcessFacts) -> Any:
    if callable(case.figure):
        return case.figure(facts)
    if not isinstance(case.figure, str):
        return case.figure
    for finding in matches(case.rule, facts, "GC005"):
        if case.figure in finding.figures:
            return finding.figures[case.figure]
    return getattr(facts.summary, case.figure)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule.name}-{case.threshold}")
def test_a_finding_changes_at_its_threshold(case: Case) -> None:
    facts = known(case.log)
    if case.settings:
        facts = facts_of(LOGS[case.log](), **case.settings)
    facts = replace(facts, thresholds=replace(DEFAULT, **case.others))
    at = value(case, facts)
    moved = (
        (at - 1, at, at + 1) if isinstance(at, int) else (at * (1 - 1e-9), at, at * (1 + 1e-9))
    )
    found = []
    for number in moved:
        to: Any = (119.9, number) if case.threshold == "periodic_s" else number
        t = replace(facts.thresholds, **{case.threshold: to})
        there = replace(facts, thresholds=t, moved=levels.moved(facts.cycles, t))
        severities = [each.severity for each in matches(case.rule, there, "GC005")]
        found.append(severities[0] if severities else None)
    assert found == [case.below, case.equal, case.above], f"at {at}"


SAID: list[tuple[Rule[ProcessFacts], str, str, tuple[int, ...]]] = [
    # 0.04 + 0.1 + 12 + 0.04 ms of CPU in 2 × 20 ms; 0.1 ms more for what is not printed.
    (cpu.high_gc_cpu, "busy", "GC takes 31.4–31.6 % of the CPU: 0.63 of 2 CPUs.", (57, 29, 35)),
    (cpu.cpu_quota_throttling, "quota", "Mark terminations take up to 21 ms, far too long for 9 MiB of live heap on 8 processors, and 4 of 60 pauses take over 1 ms and 10 times the median of their phase: threads probably waited for a CPU, because of a quota or other programs.", (1, 2, 3)),
    # 3 of 6 ms of marking, and 6 of 2 × 5 ms.
    (assists.assist_pressure, "assisted", "Goroutines do 50 % of the marking in mark assists, not counting idle CPUs.", (1, 2, 3)),
    (assists.assist_spike, "spike of assists", "In 1 cycle mark assists took over 50 % of the processors while marking.", (40,)),
    (assists.trigger_pinned_low, "early", "Cycles start 50 % of the way from the live heap to the goal, as early as the pacer may start them.", ()),
    (frequency.gc_always_on, "always on", "A GC cycle is running 77 % of the time.", ()),
    (frequency.too_frequent, "busy", "A cycle starts every 20 ms (median).", ()),
    (frequency.forced_gc, "forced", "8 of 30 cycles are marked as forced (`runtime.GC`, `debug.FreeOSMemory` or `/debug/pprof/heap?gc=1`).", (1, 2, 3)),
    (goal.heap_minimum_bound, "small heap", "The heap minimum set the goal of 4 MiB in 24 of 30 cycles.", ()),
    (goal.goal_overshoot, "over the goal", "In 58 of 58 cycles after the start-up the heap ends more than 10 % above its goal, up to 20 %.", (3, 4, 5)),
    (goal.gogc_off_without_limit, "no goal", "30 cycles had no heap goal: GOGC was off.", ()),
    (goal.nonconstant_gogc, "two levels", "The settings changed: GOGC=100, then GOGC=50 from 12 s.", ()),
    # While marking 5 MiB in 5.05 ms; between cycles the other 76 MiB in 14.95 ms.
    (allocation.mutator_slowed_in_gc, "busy", "While GC is marking, the program allocates at 24 % of its rate between cycles, or less.", ()),
    (live_heap.live_heap_step, "step", "The live heap was 100 MiB until 6.2 s, and is 200 MiB since.", ()),
    (live_heap.live_heap_spike, "spike", "In 2 cycles the live heap was over 2 times the usual one, up to 300 MiB.", (30, 31)),
    (live_heap.ballast_present, "ballast", "The live heap is 100 MiB from the first cycle on, and never over 105 MiB.", ()),
    (marking.large_stacks, "roots", "Stacks of 25 MiB, next to a live heap of 100 MiB, raise the heap goal.", ()),
    (marking.large_globals, "roots", "Global variables of 30 MiB, next to a live heap of 100 MiB, raise the heap goal.", ()),
    # 101 MiB in 3.0006 s of CPU.
    (marking.low_mark_throughput, "slow marking", "30 cycles marked less than 100 MiB per CPU second; the slowest, 33.7 MiB.", (1, 2, 3)),
    (long_pauses.long_sweep_termination, "long pauses", "The pause before marking takes up to 7.0 ms. The median of the 100 pauses before marking is 7.0 ms.", (1, 2, 3)),
    (limit.limit_bound, "limited", "The memory limit set the goal in 60 of 60 cycles.", ()),
    # The median of the live heap is 105 MiB, 20 MiB below the goal.
    (limit.limit_tight, "limited", "GOMEMLIMIT leaves the live heap only as much room as GOGC=19, so GC runs 5.00 times a second and takes 0.55 % of the CPU.", (19, 50, 6)),
    (limit.gogc_off_idle, "limited and idle", "No GC cycle ran for 3m 10s, so GOGC is probably off: otherwise the runtime runs a cycle every two minutes.", ()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "name", "text", "lines"), SAID, ids=[each[0].name for each in SAID]
)
def test_the_evidence_of_a_finding_by_hand(
    rule: Rule[ProcessFacts], name: str, text: str, lines: tuple[int, ...]
) -> None:
    (finding,) = matches(rule, known(name), "GC005")
    assert finding.evidence == text
    assert tuple(int(each.rpartition(":")[2]) for each in finding.examples) == lines


def test_goals_within_the_rounding_of_the_live_heap_do_not_prove_a_limit() -> None:
    facts = known("limited")
    for gogc, proven in ((5.0, None), (5.01, 125.0)):
        cycles = facts.cycles.with_columns(effective_gogc=pl.lit(gogc))
        (finding,) = matches(limit.limit_bound, replace(facts, cycles=cycles))
        assert finding.figures["implied_limit_low_mib"] == proven


@pytest.mark.parametrize(
    ("figures", "found"),
    [
        ({"alloc_mib": 279.9, "fragmentation_mib": 120.1}, 1),
        ({"alloc_mib": 280.0, "fragmentation_mib": 120.0}, 0),
        ({"alloc_mib": 135.9, "fragmentation_mib": 64.1}, 1),
        ({"alloc_mib": 136.0, "fragmentation_mib": 64.0}, 0),
        ({"alloc_mib": None, "fragmentation_mib": 90.0}, 0),
    ],
)
def test_fragmentation_is_compared_with_the_heap_in_use(
    figures: dict[str, float | None], found: int
) -> None:
    facts = MemoryFacts(replace(_memory(), **figures), DEFAULT)  # type: ignore[arg-type]
    assert len(list(memory.fragmentation.check(facts))) == found


@pytest.mark.parametrize(
    ("idle", "sys", "heap_sys", "found"),
    [(100.1, 400.0, 10.0, 1), (100.0, 400.0, 10.0, 0), (64.1, 90.0, None, 1),
     (64.0, 90.0, None, 0), (100.1, None, 400.0, 1), (100.0, None, 400.0, 0),
     (100.0, None, None, 0)],
)  # fmt: skip
def test_idle_memory_is_compared_with_all_memory(
    idle: float, sys: float | None, heap_sys: float | None, found: int
) -> None:
    figures = replace(_memory(), dumps=1, spare_mib=idle, sys_mib=sys, heap_sys_mib=heap_sys)
    facts = MemoryFacts(figures, DEFAULT)
    assert len(list(memory.unreleased_idle.check(facts))) == found


def _memory() -> Memory:
    unknown: dict[str, Any] = dict.fromkeys(field.name for field in fields(Memory))
    return Memory(**unknown | {"advice": ()})
