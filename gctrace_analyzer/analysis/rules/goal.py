"""Rules about the heap goal and GOGC; those about the memory limit are in `limit`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.cycles import metrics
from gctrace_analyzer.analysis.rules.cpu import stopped_gc_share
from gctrace_analyzer.analysis.rules.finding import (
    Evidence,
    ProcessFacts,
    cycles_text,
    example_lines,
    gc_cpu_text,
    maximum,
    percent,
)
from gctrace_analyzer.analysis.rules.registry import rule
from gctrace_analyzer.analysis.settings.explained import above_limit
from gctrace_analyzer.analysis.settings.goal_ranges import (
    HEAP_MINIMUM_MIB,
    gogc_ranges,
    show_gogc_off,
)
from gctrace_analyzer.analysis.settings.limits import limit_range
from gctrace_analyzer.analysis.settings.naming import (
    distinct,
    gogc_range,
    limit_text,
    most_gogc,
    percent_text,
    present,
    setting_text,
)
from gctrace_analyzer.analysis.settings.regimes import STATED_LIMIT
from gctrace_analyzer.ingest.rows import complete, median, not_null, since, where
from gctrace_analyzer.units import between_text, duration_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.analysis.settings.regimes import Regime


_MOST_OF_COST = 0.5
"""Share of the GC CPU time. With less, the heap minimum does not explain the cost of GC."""

_FEW_MIB = 16.0
"""MiB. If the live heap was larger at times, a high GOGC may cost more memory than this."""

_LARGER_AT_TIMES = "No action needed: most of what GC costs is in the other cycles."


@rule(
    "GC004",
    "heap-minimum-bound",
    meaning=f"The live heap is so small that the heap minimum ({HEAP_MINIMUM_MIB} MiB × GOGC/100) "
    "sets the goal.",
    condition=f"The heap minimum ({HEAP_MINIMUM_MIB} MiB × GOGC/100) set the goal, and the cycle "
    "is not forced, in over {t.heap_minimum_share:.0%} of the cycles (at least {t.min_cycles} with "
    "an explained goal). A warning if GC takes over {t.gc_cpu_warn:.0%} of "
    f"the CPU, these cycles over {_MOST_OF_COST:.0%} of that, and pauses at most half.",
    advice="Set GOGC=400 or more, which costs only a few MiB here.",
    needs="goals and live heaps of at least {t.min_cycles} cycles",
    contradicted_by="a GOMEMLIMIT so low that it sets the goals",
    source="heapMinimum in runtime/mgcpacer.go; golang/go#22743",
)
def heap_minimum_bound(facts: ProcessFacts) -> Iterator[Evidence]:
    """Checks how many goals are the heap minimum."""
    t, known = facts.thresholds, facts.goal_set_by.count()
    # A goal never starts a forced cycle.
    own = (facts.goal_set_by == "heap-minimum") & ~facts.cycles["forced"]
    at_minimum = int(own.sum())
    if known >= t.min_cycles and at_minimum > t.heap_minimum_share * len(own):
        cost = facts.cost_share(own)
        # Where pauses are most of the cost, their length is the cause.
        is_start = facts.summary.is_too_short_for_rates
        is_costly = (facts.summary.gc_cpu_share or 0) > t.gc_cpu_warn
        is_costly &= not is_start and stopped_gc_share(facts) is None
        # If a heap was larger for some time, those cycles may cost the most.
        little = cost is not None and cost <= _MOST_OF_COST
        only = f" They take only {percent(cost)} of the GC CPU time." if little and cost else ""
        goal_mib = median(facts.cycles["heap_goal_mib"].filter(own))
        yield Evidence(
            "warn" if is_costly and not little else "info",
            f"The heap minimum set the goal of {goal_mib:.0f} MiB in {at_minimum:,} of "
            f"{cycles_text(len(facts.cycles))}.{only}",
            {"cycles": at_minimum},
            advice=_LARGER_AT_TIMES if little else _costly_gogc(facts),
            headline=f"The live heap is so small that GC runs at every {goal_mib:.0f} MiB "
            f"of heap: it takes {gc_cpu_text(facts.summary)} of the CPU.",
        )


def _costly_gogc(facts: ProcessFacts) -> str | None:
    """Returns the cost of a high GOGC if the live heap was not always small; else None."""
    most = facts.summary.live_heap_max_mib or 0.0
    if most <= _FEW_MIB:
        return None
    return (
        f"Set GOGC=400 if the memory is there: it costs a few MiB most of the time, but up to "
        f"{size_text(3 * most)} more when the live heap is at its largest ({size_text(most)})."
    )


@rule(
    "GC045",
    "low-gogc",
    meaning="GOGC is low: to save memory, GC runs more often than under a higher GOGC and "
    "takes more CPU time.",
    condition="GOGC sets most goals, and the present GOGC is under {t.low_gogc:.0f}. A warning if "
    "GC takes over {t.low_gogc_cpu:.0%} of the CPU, is running over {t.low_gogc_active:.0%} of the "
    "time, or takes over {t.assist_warn_cpu_share:.0%} of the CPU in mark assists. Bad if GC takes "
    "over {t.gc_cpu_bad:.0%} of the CPU or is running over {t.active_bad:.0%} of the time. "
    "Otherwise a note, unless a limit explains the goals as well. Needs at least "
    "{t.short_log_cycles} cycles, {t.min_span_s:g} s and a median live heap of "
    "{t.thrash_min_live_mib:.0f} MiB.",
    advice="Raise GOGC: at 100 GC costs a fraction of this, for a heap of up to twice the live "
    "heap.",
    needs="goals set by GOGC, live heap and CPU times",
    contradicted_by="a limit that sets the goals; the report names one that explains them as well",
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
    regime = present(facts.regimes)
    gogc = None if regime is None else regime.gogc_pct
    if gogc is None or gogc >= t.low_gogc:
        return
    costly = cpu > t.low_gogc_cpu or active > t.low_gogc_active
    costly |= (summary.assist_share_of_cpu or 0.0) > t.assist_warn_cpu_share
    bad = cpu > t.gc_cpu_bad or active > t.active_bad
    takes = f"GC takes {gc_cpu_text(summary)} of the CPU"
    cost = f"{takes} and is running {percent(active)} of the time"
    is_own = facts.goal_set_by.ne_missing("memory-limit")
    most = most_gogc(regime)
    low = between_text(*(f"{end:.0f}" for end in gogc_range(regime) or (gogc, gogc)))
    low = low if most is None else f"at most {most:.0f}"
    is_either = regime is not None and regime.set_by == "either"
    if is_either and not (costly or bad):
        # A limit explains the goals as well, and neither costs anything.
        return
    limit = f", or {limit_text(regime)} leaves no more" if regime and is_either else ""
    yield Evidence(
        "bad" if bad else "warn" if costly else "info",
        f"The heap may grow by {'only ' * (most is None)}{low} % of the live heap{limit}, "
        f"and {cost}.",
        {"effective_gogc_p50": gogc, "gc_cpu_share": cpu, "gc_active_share": active},
        examples=example_lines(facts.cycles.filter(is_own), "gc_cpu_share"),
        headline=f"GOGC is low ({low}){limit}: {cost}.",
        advice="Specify which of them the program runs with, and raise that one."
        if limit
        else None,
    )


@rule(
    "GC008",
    "goal-overshoot",
    meaning="The heap ends well above its goal in some cycles, so memory use is then higher than "
    "GOGC or the memory limit suggests.",
    condition="After the first {t.warm_up_s:g} s, the {t.overshoot_quantile:.0%} quantile of "
    "heap at end / goal is over {t.overshoot:.2f}. Needs at least {t.min_cycles} cycles and a "
    "median live heap of {t.gogc_min_live_mib:.0f} MiB. A warning, with any number of cycles, if "
    "it is over {t.overshoot_far:g} and such a heap has {t.gogc_min_live_mib:.0f} MiB or more.",
    advice="Allocation is faster than marking: leave room for the overshoot below any limit.",
    needs="heap at end and goal of at least {t.min_cycles} cycles",
    contradicted_by="goals that one large allocation raised: start and goal are equal",
    source="maxOvershoot (1.1) in runtime/mgcpacer.go",
    explained_by=("GC016", "GC015", "GC005"),
)
def goal_overshoot(facts: ProcessFacts) -> Iterator[Evidence]:
    """Compares the heap at the end of marking with its goal."""
    t = facts.thresholds
    cycles = since(facts.warmed_up, t.warm_up_s)
    of_goal = not_null(cycles["heap_end_mib"] / cycles["heap_goal_mib"])
    few = len(of_goal) < t.min_cycles
    high = of_goal.quantile(1.0 if few else t.overshoot_quantile, "lower")
    if high is None or high <= t.overshoot:
        return
    ends = cycles.filter(pl.col("heap_end_mib") > t.overshoot_far * pl.col("heap_goal_mib"))
    if high > t.overshoot_far and maximum(ends["heap_end_mib"]) >= t.gogc_min_live_mib:
        end, goal = ends.sort("heap_end_mib").select("heap_end_mib", "heap_goal_mib").row(-1)
        far = (
            f"The heap grew to {end:,} MiB while GC was marking, {end / goal:.0f} times its goal "
            f"of {goal:,} MiB"
        )
        yield Evidence(
            "warn",
            f"{far}.",
            {"overshoot_p95": high - 1},
            headline=f"{far}.",
            examples=example_lines(ends, "heap_end_mib"),
        )
        return
    if few:
        return
    if facts.live_heap_mib >= t.gogc_min_live_mib:
        share = metrics()["overshoot_share"]
        above = (
            f"In {int((of_goal > t.overshoot).sum()):,} of {cycles_text(len(of_goal))} after the "
            f"start-up the heap ends more than {percent(t.overshoot - 1)} above its goal"
        )
        yield Evidence(
            "info",
            f"{above}, up to {percent(maximum(of_goal) - 1)}.",
            {"overshoot_p95": high - 1},
            headline=f"{above}.",
            examples=example_lines(cycles.with_columns(_share=share), "_share"),
        )


@rule(
    "GC019",
    "gogc-off-no-limit",
    meaning="GOGC is off and there is no memory limit: only `runtime.GC` starts GC, so the heap "
    "can grow until the program is killed.",
    condition="Over {t.no_goal_share:.0%} of the cycles, and at least {t.min_cycles}, have no "
    "heap goal.",
    advice="Do not set GOGC=off, or set GOMEMLIMIT too (Go 1.19 and later).",
    needs="cycles that print no goal",
    contradicted_by="a GOMEMLIMIT, under which goals would be printed",
    source="gcPercent < 0 in runtime/mgcpacer.go",
)
def gogc_off_without_limit(facts: ProcessFacts) -> Iterator[Evidence]:
    """Counts the cycles without a heap goal."""
    t, goals = facts.thresholds, facts.cycles["heap_goal_mib"]
    if not goals.null_count():
        return
    # A frame made by a caller may have no goals at all, and then no format either.
    without = where(facts.cycles, goals.is_null())
    if not show_gogc_off(without):
        return
    count = len(complete(without, "start_s", "format"))
    if count > t.no_goal_share * len(facts.cycles) and count >= t.min_cycles:
        yield Evidence(
            "warn",
            f"{cycles_text(count)} had no heap goal: GOGC was off.",
            {"cycles": count},
        )


@rule(
    "GC026",
    "nonconstant-gogc",
    meaning="GOGC or the memory limit changes while the program runs, so figures of the whole run "
    "mix several settings.",
    condition="No single setting explains the heap goals, and several in turn do: a change "
    "counts if it explains at least 6 more goals, or all of 3 or more goals at one end of a log "
    "next to steady ones with the same live heap (`regimes`).",
    advice="Check whether a tuner, `debug.SetGCPercent` or `debug.SetMemoryLimit` is intended, and "
    "look at the segments one by one.",
    needs="goals that only several settings in turn explain",
    contradicted_by="memory outside the heap that grew: a limit's goals drift with it",
    source="debug.SetGCPercent, debug.SetMemoryLimit",
)
def nonconstant_gogc(facts: ProcessFacts) -> Iterator[Evidence]:
    """Names the settings that a process changed while running, and when."""
    settings = distinct(facts.regimes)
    if len(settings) < 2:
        return
    starts_s = [None, *(regime.start_s for regime in settings[1:])]
    texts = [
        setting_text(regime) + ("" if start_s is None else f" from {duration_text(start_s)}")
        for regime, start_s in zip(settings, starts_s, strict=True)
    ]
    more = len(texts) - _MOST_SETTINGS
    if more > 0:
        others = "another setting" if more == 1 else f"{more} other settings"
        texts = [*texts[: _MOST_SETTINGS - 1], others, texts[-1]]
    levels = [regime.gogc_pct for regime in settings if regime.gogc_pct is not None]
    yield Evidence(
        "info",
        f"The settings changed: {', then '.join(texts)}.",
        {"levels": [round(gogc) if math.isfinite(gogc) else "off" for gogc in levels]},
    )


_MOST_SETTINGS = 6
"""Settings that are named one by one."""


@rule(
    "GC027",
    "gogc-not-as-declared",
    meaning="GOGC or GOMEMLIMIT is not what it was set to, so the settings that you see are not in "
    "effect.",
    condition="More than half of the goals that GOGC set cannot be those of the declared GOGC, and "
    "their median effective GOGC differs from it by more than {t.gogc_declared_points:g} points "
    "and by more than {t.gogc_declared_share:.0%}; or at least {t.min_cycles} heap goals, or one "
    "{t.safe_limit_times:g} times as high, are above the declared GOMEMLIMIT and the live heap; or "
    "another limit sets {t.level_cycles} goals or more.",
    advice="Check whether the stated value is right, whether the variable reaches the process, and "
    "whether the code calls `debug.SetGCPercent` or `debug.SetMemoryLimit`.",
    needs="a setting from outside the log, and goals that contradict it",
    contradicted_by="large allocations: they raise the goal to the heap at the start of the cycle",
    source="ethereum/go-ethereum#31441",
)
def gogc_not_as_declared(facts: ProcessFacts) -> Iterator[Evidence]:
    """Compares the declared settings with the heap goals."""
    yield from _limit_not_as_declared(facts)
    yield from _gogc_not_as_declared(facts)


def _limit_not_as_declared(facts: ProcessFacts) -> Iterator[Evidence]:
    t = facts.thresholds
    if limit := facts.settings.value("memory_limit_mib"):
        goal, live = pl.col("heap_goal_mib"), pl.col("heap_live_mib").shift(1)
        is_above = above_limit(limit, "heap_goal_mib", live)
        is_far = goal > t.safe_limit_times * pl.max_horizontal(limit, live + 1)
        above = facts.cycles.filter(is_above)
        far = facts.cycles.filter(is_above & is_far)
        if len(above) >= t.min_cycles or len(far):
            yield Evidence(
                "warn",
                f"GOMEMLIMIT={size_text(limit)} {_stated(facts, 'memory_limit_mib')}, but the "
                f"heap goal is above it in {cycles_text(len(above))}, up to "
                f"{size_text(maximum(above['heap_goal_mib']))}.",
                {"declared_mib": limit, "cycles": len(above)},
                headline=f"GOMEMLIMIT={size_text(limit)} is not in effect: goals are above it.",
                examples=example_lines(above),
            )
        elif (followed := _followed_limit(facts, limit)) is not None:
            other, goals = followed
            goal_mib = median(goals if len(goals) else facts.limited_cycles["heap_goal_mib"])
            text = (
                f"GOMEMLIMIT={size_text(limit)} {_stated(facts, 'memory_limit_mib')}, but the "
                f"heap goals stop at {size_text(goal_mib)}, as under {limit_text(other)}"
            )
            yield Evidence(
                "warn",
                f"{text}.",
                {"declared_mib": limit, "goal_mib": goal_mib},
                headline=f"{text}: another limit is in effect, or much memory outside the heap "
                "counts towards it.",
                examples=example_lines(facts.limited_cycles),
            )


def _followed_limit(facts: ProcessFacts, stated_mib: float) -> tuple[Regime, pl.Series] | None:
    """Returns the last setting with the limit that its goals show, unless it is the stated one.

    Returns:
        The setting, and the goals that the limit set above the live heap.
    """
    shown = [regime for regime in facts.regimes if regime.is_limited]
    if not shown or len(facts.limited_cycles) < facts.thresholds.level_cycles:
        return None
    has_room = pl.col("heap_goal_mib") > pl.col("heap_live_mib").shift(1)
    roomy = facts.cycles.filter(has_room & (facts.goal_set_by == "memory-limit"))
    goals = roomy["heap_goal_mib"]
    if shown[-1].memory_limit_source == "inferred":
        return shown[-1], goals
    # A given limit counts as the one in effect, so the goals are asked here.
    if len(roomy) < facts.thresholds.min_cycles:
        return None
    low, _, high = limit_range(maximum(goals), median(roomy["stacks_mib"]))
    if stated_mib <= STATED_LIMIT[1] * high:
        return None
    return replace(shown[-1], memory_limit_mib_low=low, memory_limit_mib_high=high), goals


def _gogc_not_as_declared(facts: ProcessFacts) -> Iterator[Evidence]:
    t, setting = facts.thresholds, facts.settings.gogc
    if setting is None:
        return
    # Under a memory limit the effective GOGC is rightly lower than GOGC, so only goals that
    # GOGC set are compared.
    is_off = setting.value in (None, "off")
    declared = math.inf if is_off else float(setting.value or 0)
    # A cycle that starts at its goal may follow an allocation that raised it.
    before = facts.cycles["heap_start_mib"] < facts.cycles["heap_goal_mib"]
    by_gogc = (facts.goal_set_by == "gogc") & before
    effective = not_null(facts.cycles["effective_gogc"].filter(by_gogc)).median()
    if not isinstance(effective, float):
        return
    # For small heaps, the printed MiB leave a wide range.
    ranges = gogc_ranges(facts.cycles).filter(by_gogc)
    possible = pl.lit(declared).is_between("low_raised", "high")
    allowed = max(t.gogc_declared_points, t.gogc_declared_share * (0 if is_off else declared))
    contradict = 2 * ranges.select(possible.sum()).item() < len(ranges)
    contradict &= not (effective < declared and _may_be_limit(facts, by_gogc))
    if contradict and abs(effective - declared) > allowed:
        name = percent_text(declared)
        # The quotient of whole MiB is seldom a value that people set.
        inferred = {
            regime.gogc_pct for regime in facts.regimes if regime.gogc_source == "inferred"
        }
        known = inferred.pop() if len(inferred) == 1 else None
        shown = (
            f"GOGC={known:.0f}" if known else f"a GOGC of about {float(f'{effective:.2g}'):.0f}"
        )
        yield Evidence(
            "warn",
            f"GOGC={name} {_stated(facts, 'gogc')}, but the heap goals follow {shown}.",
            {"declared": "off" if is_off else declared, "inferred": effective},
            headline=f"The program runs under {shown}, not GOGC={name}.",
        )


def _may_be_limit(facts: ProcessFacts, chosen: pl.Series) -> bool:
    """Returns whether a known memory limit can have set goals a little below those of GOGC."""
    limit, goals = facts.settings.value("memory_limit_mib"), facts.cycles.filter(chosen)
    low, _, high = limit_range(maximum(goals["heap_goal_mib"]), median(goals["stacks_mib"]))
    is_known = isinstance(limit, int | float)
    return is_known and STATED_LIMIT[0] * low <= limit <= STATED_LIMIT[1] * high


def _stated(facts: ProcessFacts, name: str) -> str:
    """Returns where a setting's value is stated, as the end of a clause."""
    source = getattr(facts.settings, name).source
    return "was given" if source == "given" else f"is stated ({source})"
