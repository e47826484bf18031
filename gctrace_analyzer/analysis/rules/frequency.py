"""Rules about how often GC runs: too often, all the time, forced, or only periodically."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from gctrace_analyzer.analysis.rules.cpu import is_start_up, stopped_gc_share
from gctrace_analyzer.analysis.rules.finding import (
    ALLOCATE_LESS,
    Evidence,
    ProcessFacts,
    Severity,
    cycles_text,
    example_lines,
    gc_cpu_text,
    percent,
    total,
)
from gctrace_analyzer.analysis.rules.registry import rule
from gctrace_analyzer.ingest.rows import since
from gctrace_analyzer.units import duration_text, times_text


@rule(
    "GC002",
    "gc-always-on",
    meaning="A GC cycle is running more often than not: write barriers and mark assists slow the "
    "program.",
    condition="(pauses + concurrent marking) / time is over {t.active_warn:.0%}; bad over "
    "{t.active_bad:.0%}. Needs at least {t.short_log_cycles} cycles and {t.min_span_s:g} s.",
    advice=f"Use a recommended setting, or {ALLOCATE_LESS}.",
    needs="begin and duration of at least {t.short_log_cycles} cycles",
    contradicted_by="missing lines (GC041): then the time between cycles is longer",
    source="golang/go#14812",
    explained_by=("GC016", "GC015", "GC024", "GC045", "GC004", "GC001"),
)
def gc_always_on(facts: ProcessFacts) -> Iterator[Evidence]:
    """Checks the share of the time in which a cycle is running."""
    t, share = facts.thresholds, facts.summary.gc_active_share
    if is_start_up(facts) or facts.summary.cycles < t.short_log_cycles:
        return
    if share is not None and share > t.active_warn:
        yield Evidence(
            "bad" if share > t.active_bad else "warn",
            text := f"A GC cycle is running {percent(share)} of the time.",
            {"gc_active_share": share},
            headline=f"{text} Write barriers and mark assists slow the program meanwhile.",
        )


@rule(
    "GC003",
    "too-frequent",
    meaning="GC cycles follow each other closely, and each has a fixed cost in CPU and pauses.",
    condition="The median time from one cycle to the next is under {t.frequent_warn_ms:g} ms, "
    "not all cycles are forced, and GC does not take less than {t.gc_cpu_little:.0%} of the CPU. "
    "A warning only if GC also takes over {t.gc_cpu_warn:.0%} "
    "of the CPU (GC001), and not mostly in pauses; bad if the median is then under "
    "{t.frequent_bad_ms:g} ms. Not a warning if the cycles come in bursts (mean "
    "time between cycles over 5 times the median). Needs at least {t.min_cycles} cycles and "
    "{t.min_span_s:g} s.",
    advice=f"Use a recommended setting, or {ALLOCATE_LESS}.",
    needs="times of at least {t.min_cycles} cycles over {t.min_span_s:g} s",
    contradicted_by="a mean time between cycles far above the median: bursts with idle times",
    source="golang/go#23044",
    explained_by=("GC016", "GC015", "GC024", "GC045", "GC004", "GC001", "GC026"),
)
def too_frequent(facts: ProcessFacts) -> Iterator[Evidence]:
    """Checks the median time from one cycle to the next."""
    t, summary = facts.thresholds, facts.summary
    interval_ms = summary.gc_interval_p50_ms
    if is_start_up(facts) or interval_ms is None or interval_ms >= t.frequent_warn_ms:
        return
    if summary.gc_cpu_share is not None and summary.gc_cpu_share < t.gc_cpu_little:
        return
    # Long pauses have other causes than the number of cycles.
    is_costly = (summary.gc_cpu_share or 0) > t.gc_cpu_warn and stopped_gc_share(facts) is None
    if summary.is_in_bursts and not is_costly:
        # A start-up, or a few busy moments of a program that is idle otherwise.
        return
    if summary.cycles > summary.forced_cycles:
        severity: Severity = "info"
        if is_costly:
            severity = "bad" if interval_ms < t.frequent_bad_ms else "warn"
        # Logs have times in whole milliseconds.
        often = duration_text(interval_ms / 1000) if interval_ms >= 1 else "1 ms or less"
        yield Evidence(
            severity,
            f"A cycle starts every {often} (median).",
            {"gc_interval_p50_ms": interval_ms},
        )


_FORCED_COST = 0.2
"""Share of the GC CPU time. With less, forced cycles do not explain the cost of GC."""


_WHO_FORCES = (
    "Find who forces {}: calls to `runtime.GC` or `debug.FreeOSMemory`, or heap profiles "
    "that are fetched with `/debug/pprof/heap?gc=1`."
)


@rule(
    "GC024",
    "forced-gc",
    meaning="The program forces GC, so GC runs when the pacer would not have started it.",
    condition="Over {t.forced_share:.0%} of the cycles (at least {t.forced_min_cycles}), or all of "
    f"them, are forced. Only a note if forced cycles take less than {_FORCED_COST:.0%} of the GC "
    "CPU time, if there are few of them, or if the log has benchmark results: package testing "
    "forces GC before each run. Costs little if GC takes less than {t.gc_cpu_little:.0%} of CPU.",
    advice=_WHO_FORCES.format("them"),
    needs="cycles that are marked as forced",
    contradicted_by="nothing: the runtime marks them",
    source="each forced cycle is a full collection beyond what the pacer planned",
)
def forced_gc(facts: ProcessFacts) -> Iterator[Evidence]:
    """Checks the share of forced cycles."""
    t, summary = facts.thresholds, facts.summary
    forced, cpu = summary.forced_cycles, summary.gc_cpu_share
    is_much = forced >= t.forced_min_cycles and forced > t.forced_share * summary.cycles
    if is_much or 0 < forced == summary.cycles:
        cost = facts.cost_share(facts.cycles["forced"])
        little = cost is not None and cost < _FORCED_COST
        so = ", so it costs little" * ((cpu or 0.0) < t.gc_cpu_little)
        takes = "" if cpu is None else f"; GC takes {gc_cpu_text(summary)} of the CPU{so}"
        only = f" They take only {percent(cost)} of the GC CPU time." if little and cost else ""
        count = f"{forced:,} of {cycles_text(summary.cycles)}"
        # Go 1.9 to 1.19 may also mark the cycle that a call waits for.
        marked = f"{count} {'are' if forced > 1 else 'is'} marked as forced"
        who, advice = "`runtime.GC`, `debug.FreeOSMemory` or `/debug/pprof/heap?gc=1`", None
        if facts.is_benchmark:
            who = "as `go test -bench` does before each run of a benchmark"
            advice = "No action needed."
        elif facts.freed:
            who = f"`debug.FreeOSMemory` was called {times_text(facts.freed)} in the log"
            advice = "Call `debug.FreeOSMemory` less often: each call forces a cycle."
            if forced > facts.freed * (2 if facts.may_be_before(1, 20) else 1):
                advice += f" {_WHO_FORCES.format('the others')}"
        yield Evidence(
            "info" if little or facts.is_benchmark or not is_much else "warn",
            f"{marked} ({who}).{only}",
            {"forced_cycles": forced},
            headline=f"The program forces GC: {marked}{takes}.",
            examples=example_lines(facts.cycles.filter(pl.col("forced"))),
            advice=advice,
        )


@rule(
    "GC025",
    "periodic-only",
    meaning="The program allocates too little to reach the heap goal: GC runs only because two "
    "minutes have passed.",
    condition="At least 2 intervals between cycles last {t.periodic_s[0]:g} to "
    "{t.periodic_s[1]:g} s and do not end with a forced cycle, and they are over "
    "{t.periodic_share:.0%} of the time. Cycles of the first {t.warm_up_s:g} s do not count.",
    advice="No action needed.",
    needs="times of at least three cycles",
    contradicted_by="cycles that the log lacks (GC041)",
    source="forcegcperiod in runtime/proc.go",
)
def periodic_only(facts: ProcessFacts) -> Iterator[Evidence]:
    """Checks whether nearly all of the time passed in intervals of two minutes."""
    idle = facts.idle
    if idle.is_empty():
        return
    span_s = facts.summary.span_s or 0.0
    is_all = duration_text(total(idle["interval_s"])) == duration_text(span_s)
    # What was allocated during the marking before does not count towards the next goal.
    rest = duration_text(total(idle["rest_s"]))
    when = (
        "The program allocates"
        if is_all
        else f"For {rest} of {duration_text(span_s)} the program allocated"
    )
    loaded = since(facts.cycles, facts.thresholds.warm_up_s)["interval_s"].count() - len(idle)
    yield Evidence(
        "info",
        f"{when} too little to reach the heap goal, and GC {'runs' if is_all else 'ran'} only "
        "every two minutes.",
        {"cycles": facts.summary.cycles, "loaded": loaded},
    )
