"""Rules about the live heap: growth, steps, spikes, survival and ballasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.cycles import with_held
from gctrace_analyzer.analysis.metrics.goroutines import growth_of_goroutines, growth_of_stacks
from gctrace_analyzer.analysis.rules.finding import (
    Evidence,
    ProcessFacts,
    cycles_text,
    example_lines,
    maximum,
    minimum,
    total,
)
from gctrace_analyzer.analysis.rules.limit import cost_of_thrashing
from gctrace_analyzer.analysis.rules.registry import rule
from gctrace_analyzer.analysis.settings.known import nearest_limit
from gctrace_analyzer.analysis.trend import COMPARE_HEAPS, FIND_GROWTH, RAISE
from gctrace_analyzer.ingest.rows import complete, median, where
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.analysis.trend import LiveGrowth


_GOROUTINES = (
    "compare two goroutine profiles (`/debug/pprof/goroutine`), and then two heap profiles "
    "(`go tool pprof -base`)."
)


@rule(
    "GC021",
    "live-heap-growth",
    meaning="The live heap grew, and with it memory use and the cost of each cycle; if it goes on, "
    "it may be a leak.",
    condition="After the first quarter of the log, the live heap (less what was allocated during "
    "marking) grows: the lower 95 % bound of its robust slope (Theil–Sen) is above 0, and the "
    "growth is at least {t.growth_min_share:.0%} of the median and "
    "{t.growth_min_mib:g} MiB. Only a note if the growth slows down (in the last third "
    "under {t.growth_steady:.0%} of the mean), if the log covers less than "
    "{t.growth_min_span_s:.0f} s, or if the slope is uncertain (its upper bound is over "
    "{t.growth_regular_times:g} times the lower one). The last two do not count if a log of "
    "{t.short_log_s:g} s or more ends in thrashing, or in {t.min_cycles} goals under a memory "
    "limit with an effective GOGC under {t.limit_gogc_warn:.0f}. It ends where the live heap "
    "falls for good to under {t.fallen_share:.0%} of its highest level (90 % quantile over time). "
    "If it falls back to its start in the second half of the time, it does not grow. "
    "Needs at least {t.min_cycles} cycles.",
    advice=FIND_GROWTH,
    needs="live heap of at least {t.min_cycles} cycles over time",
    contradicted_by="a load that grew as much, or growth that ends, as of a cache that fills",
    source="the slope of what is live after each collection",
)
def live_heap_growth(facts: ProcessFacts) -> Iterator[Evidence]:
    """Reports the growth of the live heap (its robust slope), if there is any."""
    growth = facts.growth
    if growth is None:
        return
    also = _also_grew(facts)
    text = grown = growth.text_with(also)
    compare = _GOROUTINES if also else COMPARE_HEAPS
    advice = f"Find out why the live heap grows: {compare}"
    if growth.fall:
        advice = f"If it grows again, {compare}"
    elif not growth.is_steady and not facts.grew_into_limit:
        slower = ", but more slowly in the last third of that time"
        text = grown + (slower if growth.recent_mib > 0 else " and has not grown since")
        advice = "Watch whether it goes on growing."
    elif growth.is_lasting:
        text += (
            f", at {growth.mib_per_h:,.0f} MiB/h (95 % CI {growth.low:,.0f} to "
            f"{growth.high:,.0f})"
        ) + _time_to_limit(facts, growth.mib_per_h)
    else:
        advice = f"If the live heap still grows, {compare}"
    if not facts.grew_into_limit and growth.is_steady and not growth.is_lasting:
        text += (
            ", but too unevenly for a rate"
            if growth.is_long
            else ", which is too short to distinguish a leak from a start-up"
        )
        longer = "Select a longer range" if facts.is_range else "Record a longer log"
        advice = f"{longer}. {advice}"
    if facts.grew_into_limit:
        thrash = facts.thrashing.sort("start_s")
        since, reason = thrash["start_s"][0], thrash["reason"][0].rstrip(".")
        until = f"to {duration_text(maximum(thrash['end_s']))}" if growth.fall else "on"
        since_then = f"from {duration_text(since)} {until} " if since else ""
        text += f", and {since_then}{reason[0].lower()}{reason[1:]}"
    elif facts.fills_limit is not None:
        room = f"only as much room as GOGC={facts.fills_limit:.0f}"
        text += f". At the end the memory limit leaves {room}"
    fills = facts.grew_into_limit or facts.fills_limit is not None
    if fills and not growth.fall:
        advice = f"If this memory is needed, {RAISE}; if not, {compare}"
    serious = fills or growth.is_lasting
    yield Evidence(
        "warn" if serious else "info",
        f"{text}.{growth.fall}",
        {"growth_mib_per_h": growth.mib_per_h, "low": growth.low, "high": growth.high}
        | ({} if facts.fills_limit is None else {"room_pct": facts.fills_limit}),
        start_s=growth.first_s,
        end_s=growth.last_s,
        advice=advice,
        headline=_headline(facts, growth, grown),
        advises="higher-limit" if fills and not growth.fall else None,
    )


def _also_grew(facts: ProcessFacts) -> str:
    """Returns what grew with the live heap among the goroutines, as a part of a sentence.

    A goroutine that never ends keeps its stack and everything the stack refers to.
    """
    assert facts.growth is not None
    begin_s, end_s = facts.growth.first_s, facts.growth.last_s
    # Both are of the time in which the live heap grew.
    cycles = facts.cycles.filter(pl.col("start_s") >= begin_s, pl.col("end_s") <= end_s)
    if (numbers := growth_of_goroutines(cycles)) is not None:
        return f", and the number of goroutines from {numbers[0]:,} to {numbers[1]:,},"
    if (stacks := growth_of_stacks(cycles["stacks_mib"])) is not None:
        return f", and goroutine stacks from {stacks[0]:,.0f} to {stacks[1]:,.0f} MiB,"
    return ""


def _headline(facts: ProcessFacts, growth: LiveGrowth, grown: str) -> str:
    leak = "goroutine leak" if growth_of_goroutines(facts.cycles) else "leak"
    probably = f" This is probably a {leak}." if growth.is_lasting else ""
    if not facts.grew_into_limit:
        if (room := facts.fills_limit) is None:
            return f"{grown}: this is probably a {leak}."
        return (
            f"{grown}. At the end GOMEMLIMIT leaves only as much room as GOGC={room:.0f}."
            f"{probably}"
        )
    fits = "fitted" if growth.fall else "fits"
    cost = cost_of_thrashing(facts)
    return f"{grown} and no longer {fits} under GOMEMLIMIT{cost}.{growth.fall}{probably}"


def _time_to_limit(facts: ProcessFacts, mib_per_h: float) -> str:
    """Returns a sentence about when the live heap reaches its nearest limit.

    It is empty if no limit is known, or if the live heap is above all of them already.
    """
    live = facts.cycles["heap_live_mib"].drop_nulls()
    if not len(live) or (limit := nearest_limit(facts.settings, live[-1])) is None:
        return ""
    time = duration_text(3600 * limit.room_mib / mib_per_h)
    return f". At this rate the live heap alone reaches {limit.mib:,.0f} MiB in {time}"


_SPIKE_POINTS = 2000
"""Points of the search: in longer logs, evenly distributed cycles."""


@rule(
    "GC023",
    "live-heap-spike",
    meaning="In some cycles the live heap was far larger, and so was the next heap goal.",
    condition="In some cycles the live heap, without what was allocated during marking, is over "
    "{t.spike_times:g} times the median of the surrounding cycles (half of the log), and over "
    "{t.growth_min_mib:g} MiB above that median. These cycles are neither the "
    "first nor the last, and take under {t.step_least_time:.0%} of the time; the last live heap is "
    "under {t.spike_back_times:g} times the median of the whole log, and has not moved to another "
    "level (GC022). Needs at least {t.short_log_cycles} cycles.",
    advice="Find out what was in memory at that time. If it must be there, set a memory limit: it "
    "caps the heap goal that follows.",
    needs="live heap of at least {t.short_log_cycles} cycles",
    contradicted_by="a live heap that stays high until the end: then it grew, or rose in a step",
    source="golang/go#14735",
)
def live_heap_spike(facts: ProcessFacts) -> Iterator[Evidence]:
    """Looks for cycles whose live heap is far above that of the cycles around them."""
    needed = with_held(facts.cycles)[["start_s", "heap_live_mib", "source", "line_no"]]
    t, timed = facts.thresholds, complete(needed, "start_s", "heap_live_mib")
    if len(timed) < t.short_log_cycles or facts.moved is not None:
        return
    live = timed["heap_live_mib"].cast(pl.Float64)
    low, high_mib = minimum(live), maximum(live)
    if high_mib <= t.spike_times * low or high_mib - low <= t.growth_min_mib:
        return
    # A thousand points are enough for each median.
    step = len(live) // _SPIKE_POINTS + 1
    points = live.gather_every(step)
    medians = points.rolling_median(2 * (len(points) // 4) + 1, center=True, min_samples=1)
    around = medians.gather(pl.int_range(len(live), eager=True) // step)
    high = (live > t.spike_times * around) & (live - around > t.growth_min_mib)
    spikes = where(timed, high)
    if spikes.is_empty() or live[-1] >= t.spike_back_times * median(live):
        return
    steps_s = timed["start_s"].diff()
    is_level = total(steps_s.filter(high)) >= t.step_least_time * total(steps_s)
    if not (is_level or high[0] or high[-1]):
        yield Evidence(
            "info",
            f"In {cycles_text(len(spikes))} the live heap was over {t.spike_times:g} times the "
            f"usual one, up to {maximum(spikes['heap_live_mib']):,.0f} MiB.",
            {"cycles": len(spikes)},
            examples=example_lines(spikes, "heap_live_mib"),
        )


@rule(
    "GC022",
    "live-heap-step",
    meaning="The live heap moved to another level and stayed there, so GC costs changed for "
    "good.",
    condition="The median of {t.min_cycles} live heaps moves by over {t.step_share:.0%} of the "
    "smaller one. The new level did not occur before, and lasts to the end. Both levels last "
    "for {t.min_cycles} cycles and {t.step_least_time:.0%} of the log's time. The standard "
    "deviation of each is under {t.step_spread:.0%} of the level or the step. Neither level "
    "drifts: the medians of its first and last thirds differ by at most {t.step_drift:.0%} of "
    "the step. Needs at least {t.short_log_cycles} cycles.",
    advice="Find out what happened between the two levels, such as a filled cache or a release.",
    needs="live heap of at least {t.short_log_cycles} cycles",
    contradicted_by="steady growth (GC021)",
    source="golang/go#14735",
    explained_by=("GC021",),
)
def live_heap_step(facts: ProcessFacts) -> Iterator[Evidence]:
    """Looks for a level that the live heap moved to and stayed at."""
    if (move := facts.moved) is not None:
        text = move.text
        yield Evidence(
            "info",
            f"{text[0].upper()}{text[1:]}.",
            {"before_mib": move.before_mib, "after_mib": move.after_mib},
            start_s=move.at_s,
            headline=f"{text[0].upper()}{text[1:]}, so GC costs changed for good.",
        )


@rule(
    "GC028",
    "ballast-present",
    meaning="The live heap is constant from the start: it was allocated once, such as data, a "
    "pool or a ballast. Since Go 1.19 a ballast is unnecessary: GOGC and GOMEMLIMIT have the same "
    "effect.",
    condition="The live heap is at least {t.ballast_min_mib:.0f} MiB from the first or second "
    "cycle on and varies by at most {t.ballast_spread:.0%} of its minimum, and the memory "
    "limit does not set most goals. Needs at least {t.min_cycles} cycles.",
    advice="If it is a ballast, replace it with a higher GOGC and GOMEMLIMIT (Go 1.19 and later).",
    needs="live heap from the first cycles on",
    contradicted_by="a cache or data set that is loaded at the start: a heap profile shows "
    "which",
    source="blog.twitch.tv, Go memory ballast",
)
def ballast_present(facts: ProcessFacts) -> Iterator[Evidence]:
    """Checks whether the live heap is large and constant from the start."""
    t, live = facts.thresholds, facts.cycles["heap_live_mib"]
    if live.count() < t.min_cycles or not facts.cycles["start_s"].count():
        return
    low, high = minimum(live), maximum(live)
    # A ballast is allocated before the program does anything else.
    from_start = facts.cycles["gc_num"][0] <= 2
    constant = low >= t.ballast_min_mib and high - low <= t.ballast_spread * low
    if constant and from_start and not facts.limit_sets_most_goals:
        yield Evidence(
            "info",
            f"The live heap is {low:,.0f} MiB from the first cycle on, and never over "
            f"{high:,.0f} MiB.",
            {"live_min_mib": low, "live_max_mib": high},
            advice=None
            if facts.may_be_from(1, 19)
            else "If it is a ballast, keep it: this Go release has no memory limit to replace it.",
        )
