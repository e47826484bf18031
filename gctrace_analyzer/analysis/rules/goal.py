"""Rules about the heap goal and GOGC; those about the memory limit are in `limit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.goals.levels import FEW_CYCLES, last_level
from gctrace_analyzer.analysis.goals.setters import HEAP_MINIMUM_MIB
from gctrace_analyzer.analysis.rules.finding import (
    Evidence,
    ProcessFacts,
    cycles_text,
    example_lines,
    percent,
)
from gctrace_analyzer.analysis.rules.registry import rule
from gctrace_analyzer.ingest.rows import complete, not_null, where

if TYPE_CHECKING:
    from collections.abc import Iterator


@rule(
    "GC004",
    "heap-minimum-bound",
    meaning="The live heap is so small that the heap minimum sets the goal, not GOGC, and GC "
    "runs often.",
    condition=f"In over {{t.heap_minimum_share:.0%}} of the cycles (at least {{t.min_cycles}}) "
    f"for which it is known what set the goal, the goal is {HEAP_MINIMUM_MIB} MiB, the heap "
    "minimum at GOGC=100, and the live heap is at most half of it. A warning if GC takes over "
    "{t.gc_cpu_warn:.0%} of the CPU.",
    advice="Set GOGC=400 or more, which costs only a few MiB here.",
    source="heapMinimum in runtime/mgcpacer.go; golang/go#22743",
)
def heap_minimum_bound(facts: ProcessFacts) -> Iterator[Evidence]:
    """Checks how many goals are the heap minimum."""
    t, known = facts.thresholds, facts.goal_set_by.count()
    at_minimum = int((facts.goal_set_by == "heap-minimum").sum())
    if known >= t.min_cycles and at_minimum > t.heap_minimum_share * known:
        costly = (facts.summary.gc_cpu_share or 0) > t.gc_cpu_warn
        yield Evidence(
            "warn" if costly else "info",
            f"The goal was the heap minimum of {HEAP_MINIMUM_MIB} MiB in {at_minimum:,} of "
            f"{cycles_text(len(facts.cycles))}.",
            {"cycles": at_minimum},
            advice="Set GOGC=400 or more, which costs only a few MiB here.",
            headline=f"The live heap is so small that GC runs at every {HEAP_MINIMUM_MIB} MiB "
            f"of heap: it takes {percent(facts.summary.gc_cpu_share or 0)} of the CPU.",
        )


@rule(
    "GC045",
    "low-gogc",
    meaning="GOGC is low, so GC runs often and takes CPU time to save memory.",
    condition="GOGC sets most goals, the median effective GOGC is under {t.low_gogc:.0f}, and GC "
    "takes over {t.low_gogc_cpu:.0%} of the CPU, is running over {t.low_gogc_active:.0%} of the "
    "time, or takes over {t.assist_warn_cpu_share:.0%} of the CPU in mark assists; otherwise only "
    "a note; bad if it takes over {t.gc_cpu_bad:.0%} of the CPU or is running over "
    "{t.active_bad:.0%} of the time. Not if the program raised GOGC later. Needs at least "
    "{t.short_log_cycles} cycles, "
    "{t.min_span_s:g} s and a median live heap of {t.thrash_min_live_mib:.0f} MiB.",
    advice="Raise GOGC: at 100 GC costs a fraction of this, for a heap of up to twice the live "
    "heap.",
    source="go.dev/doc/gc-guide: the cost of GC is in inverse proportion to GOGC",
    explained_by=("GC016", "GC015"),
)
def low_gogc(facts: ProcessFacts) -> Iterator[Evidence]:
    """Checks whether a low GOGC makes GC expensive."""
    t, summary = facts.thresholds, facts.summary
    cpu, active = summary.gc_cpu_share or 0.0, summary.gc_active_share or 0.0
    short = summary.cycles < t.short_log_cycles or (summary.span_s or 0) < t.min_span_s
    if short or facts.live_heap_mib < t.thrash_min_live_mib or facts.limit_sets_most_goals:
        return
    is_own = facts.goal_set_by.ne_missing("memory-limit")
    effective = facts.cycles["effective_gogc"]
    gogc = not_null(effective.filter(is_own & (effective > 0))).median()
    if not isinstance(gogc, float) or gogc >= t.low_gogc:
        return
    last = last_level(facts.cycles, facts.gogc_levels, t)
    if last is not None and last.gogc >= t.low_gogc:
        return
    costly = cpu > t.low_gogc_cpu or active > t.low_gogc_active
    costly |= (summary.assist_share_of_cpu or 0.0) > t.assist_warn_cpu_share
    bad = cpu > t.gc_cpu_bad or active > t.active_bad
    cost = f"GC takes {percent(cpu)} of the CPU and is running {percent(active)} of the time"
    gogc = _without_rounding(gogc, facts.live_heap_mib)
    yield Evidence(
        "bad" if bad else "warn" if costly else "info",
        f"The heap may grow by only {gogc:.0f} % of the live heap (effective GOGC, median), and "
        f"{cost}.",
        {"effective_gogc_p50": gogc, "gc_cpu_share": cpu, "gc_active_share": active},
        examples=example_lines(facts.cycles.filter(is_own), "gc_cpu_share"),
        headline=f"GOGC is low (about {gogc:.0f}): {cost}.",
    )


_USUAL = (5.0, 10.0, 20.0, 25.0, 30.0, 40.0, 50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 400.0)


def _without_rounding(gogc: float, live_mib: float) -> float:
    """Returns the usual GOGC that the printed MiB may stand for, or the value itself."""
    nearest = min(_USUAL, key=lambda usual: abs(usual - gogc))
    rounding = (100 + gogc) / max(live_mib, 1.0)
    return nearest if abs(nearest - gogc) <= rounding else gogc


@rule(
    "GC008",
    "goal-overshoot",
    meaning="The heap ends well above its goal, so memory use is higher than GOGC or the "
    "memory limit suggests.",
    condition="After the first {t.warm_up_s:g} s, the {t.overshoot_quantile:.0%} quantile of "
    "heap at end / goal is over {t.overshoot:.2f}. Needs at least {t.min_cycles} cycles and a "
    "median live heap of {t.gogc_min_live_mib:.0f} MiB.",
    advice="Allocation is faster than marking: leave room for the overshoot below any limit.",
    source="maxOvershoot (1.1) in runtime/mgcpacer.go",
    explained_by=("GC016", "GC015", "GC005"),
)
def goal_overshoot(facts: ProcessFacts) -> Iterator[Evidence]:
    """Compares the heap at the end of marking with its goal."""
    t, cycles = facts.thresholds, facts.warmed_up
    of_goal = cycles["heap_end_mib"] / cycles["heap_goal_mib"]
    high = not_null(of_goal).quantile(t.overshoot_quantile, "linear")
    if high is None or high <= t.overshoot or len(cycles) < t.min_cycles:
        return
    if facts.live_heap_mib >= t.gogc_min_live_mib:
        yield Evidence(
            "info",
            f"In {percent(1 - t.overshoot_quantile)} of the cycles the heap ends at least "
            f"{percent(high - 1)} above its goal.",
            {"overshoot_p95": high - 1},
            examples=example_lines(cycles, "overshoot_share"),
        )


@rule(
    "GC019",
    "gogc-off-no-limit",
    meaning="GOGC is off and there is no memory limit: only `runtime.GC` starts GC, so the heap "
    "can grow until the program is killed.",
    condition="Over {t.no_goal_share:.0%} of the cycles, and at least {t.min_cycles}, have no "
    "heap goal.",
    advice="Set GOMEMLIMIT, or do not set GOGC=off.",
    source="gcPercent < 0 in runtime/mgcpacer.go",
)
def gogc_off_without_limit(facts: ProcessFacts) -> Iterator[Evidence]:
    """Counts the cycles without a heap goal."""
    t, goals = facts.thresholds, facts.cycles["heap_goal_mib"]
    if not goals.null_count():
        return
    # A frame that someone made may have no goals at all, and then no format either.
    without = where(facts.cycles, goals.is_null())
    count = len(complete(without, "start_s", "format"))
    if count > t.no_goal_share * len(facts.cycles) and count >= t.min_cycles:
        yield Evidence(
            "warn",
            f"{cycles_text(count)} had no heap goal.",
            {"cycles": count},
        )


@rule(
    "GC026",
    "nonconstant-gogc",
    meaning="GOGC changes while the program runs, so figures of the whole run mix several "
    "settings.",
    condition="The effective GOGC has at least 2 levels, each over at least {t.level_cycles} "
    "consecutive cycles with a relative standard deviation under {t.level_spread:.0%} and "
    "separated by jumps of over {t.level_jump:.0%} and more than the printed MiB explain; the "
    "highest is over {t.level_ratio:g} times the lowest. Counts cycles with a live heap of at "
    "least {t.gogc_min_live_mib:.0f} MiB that were not forced and whose goal was not set by the "
    "memory limit; needs 2 × {t.level_cycles} of them.",
    advice="Check whether a tuner or `debug.SetGCPercent` is intended, and look at the "
    "segments one by one.",
    source="debug.SetGCPercent",
)
def nonconstant_gogc(facts: ProcessFacts) -> Iterator[Evidence]:
    """Looks for several levels of the effective GOGC."""
    t = facts.thresholds
    if facts.gogc_levels.is_empty():
        return
    levels = facts.gogc_levels.filter(pl.col("count") >= t.level_cycles)
    long, live_mib = levels["gogc"], facts.live_heap_mib
    values = [round(_without_rounding(value, live_mib)) for value in long]
    if len(values) >= 2 and max(values) > t.level_ratio * min(values):
        text = f"The effective GOGC was {', then '.join(_levels(facts, levels))}."
        if facts.new_pacer and levels["unclear"].any():
            text += (
                " Either GOGC or the memory limit was changed: with a constant live heap, the log "
                "does not show which."
            )
        yield Evidence("info", text, {"levels": values})


_MOST_LEVELS = 6


def _levels(facts: ProcessFacts, long: pl.DataFrame) -> Iterator[str]:
    """Yields the levels in their order; of those with few cycles, the ones between the others."""
    first, last = long["first_gc"].min(), long["first_gc"].max()
    is_long = pl.col("count") >= facts.thresholds.level_cycles
    between = (pl.col("count") >= FEW_CYCLES) & pl.col("first_gc").is_between(first, last)
    rows = facts.gogc_levels.filter(is_long | between.fill_null(value=False))
    live_mib = facts.live_heap_mib
    texts = [
        f"{_without_rounding(row['gogc'], live_mib):.0f}"
        + (
            ""
            if row["count"] >= facts.thresholds.level_cycles
            else f" for {row['count']} cycles"
        )
        for row in rows.iter_rows(named=True)
    ]
    yield from texts[: _MOST_LEVELS - 1]
    if (more := len(texts) - _MOST_LEVELS) > 0:
        yield "another level" if more == 1 else f"{more} other levels"
    yield from texts[_MOST_LEVELS - 1 :][-1:]


@rule(
    "GC027",
    "gogc-not-as-declared",
    meaning="GOGC is not what it was set to, so the settings that you see are not in effect.",
    condition="The declared GOGC and the median effective GOGC of the cycles whose goal was "
    "set by GOGC differ by more than {t.gogc_declared_points:g} points and by more than "
    "{t.gogc_declared_share:.0%}.",
    advice="Check whether the variable reaches the process, and whether the code calls "
    "`debug.SetGCPercent`.",
    source="ethereum/go-ethereum#31441",
)
def gogc_not_as_declared(facts: ProcessFacts) -> Iterator[Evidence]:
    """Compares the declared GOGC with the effective GOGC."""
    t, declared = facts.thresholds, facts.settings.value("gogc")
    # Under a memory limit the effective GOGC is rightly lower than GOGC, so only goals that
    # GOGC set are compared.
    if not isinstance(declared, (int, float)):
        return
    own = facts.cycles["effective_gogc"].filter(facts.goal_set_by == "gogc")
    effective = not_null(own).median()
    if not isinstance(effective, float):
        return
    allowed = max(t.gogc_declared_points, t.gogc_declared_share * float(declared))
    if abs(effective - float(declared)) > allowed:
        yield Evidence(
            "warn",
            f"GOGC={declared:g} was given, but the heap goals follow GOGC={effective:.0f}.",
            {"declared": declared, "inferred": effective},
        )
