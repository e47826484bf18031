"""The interval of GOGC that each printed heap goal allows.

The runtime truncates every size to MiB, so "5 MB" stands for [5, 6) MiB. With the rule that sets
the goal (gcControllerState.commit, runtime/mgcpacer.go), each cycle leaves an interval of GOGC:

    goal = max(4 MiB × GOGC/100, live + (live + stacks + globals) × GOGC/100)

Live heap, stacks and globals are those of the cycle before; up to Go 1.17 only the live heap
counts. A goal that a single large allocation raised is only an upper bound, and so is one just
above the live heap, because the sweeper needs 1 MiB there (sweepMinHeapDistance).
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import polars as pl

from gctrace_analyzer.ingest.gctrace.columns import stops_for_all
from gctrace_analyzer.ingest.rows import (
    Within,
    before,
    distinct,
    follows,
    in_steps,
    within_process,
)

HEAP_MINIMUM_MIB = 4
"""MiB at GOGC=100. The heap minimum scales with GOGC (heapMinimum in runtime/mgcpacer.go)."""

_ROUNDING = 0.02
"""Relative error of GOGC beyond truncation: memory that the runtime counts but does not print."""

_BELOW = 1 - 2**-53
"""Factor on an interval's open end: the next number below it."""

_RAISED_ROOM_MIB, _RAISED_TO_START_MIB = 42, 16
"""MiB between live heap and goal. Above the first, the trigger is over 2 MiB below the goal, above
the second over 0.8 MiB, because it is at most 95 % of the way: the printed heap shows whether it
was passed. 0.8 is enough for the heap minimum of a usual GOGC, which is a whole number of MiB."""

_USUAL = 3
"""Larger heaps past their goal that show the usual case; the first cycle may be one of them."""

_FIRST_LIVE_MIB = HEAP_MINIMUM_MIB / (1 + 7 / 8)
"""MiB that count as marked before the first cycle, up to Go 1.18 (gcinit, runtime/mgc.go)."""

NEEDED = (
    *("process", "gc_num", "format", "heap_start_mib", "heap_live_mib", "heap_goal_mib"),
    *("stacks_mib", "globals_mib", "heap_end_mib", "forced", "concurrent_mark_ms"),
)
"""Columns of the cycles that the intervals need."""


_MAY_HAVE_NO_GOAL = ("gc15", "gc16", "gc18")
"""Formats that print no goal if GOGC is off and there is no limit."""

_BY_REACHABLE = "gc15"
"""Go 1.5 excludes allocation during marking from the live heap (`heap_reachable`)."""

_LIVE = pl.col("heap_live_mib")
_REACHABLE = (_LIVE - (pl.col("heap_end_mib") - pl.col("heap_start_mib"))).clip(0)


def has_go15(cycles: pl.DataFrame) -> bool:
    """Returns whether some lines come from Go 1.5, whose goals follow another rule."""
    return _BY_REACHABLE in distinct(cycles, "format")


def show_gogc_off(without_goal: pl.DataFrame) -> bool:
    """Returns whether cycles without a heap goal show that GOGC was off.

    Then no cycle starts by itself. Before the release of Go 1.5, no line had a goal.
    """
    return not has_go15(without_goal) or bool(without_goal["forced"].all())


def goal_base_mib(*, go15: bool) -> pl.Expr:
    """Returns the live heap to which GOGC is applied for the next goal.

    Source: gcMark and startCycle in runtime/mgc.go (go1.5); heap_marked in later releases.
    """
    return _by_release(_REACHABLE, _LIVE, go15=go15)


def _by_release(of_go15: pl.Expr, of_others: pl.Expr, *, go15: bool) -> pl.Expr:
    is_go15 = pl.col("format") == _BY_REACHABLE
    return pl.when(is_go15).then(of_go15).otherwise(of_others) if go15 else of_others


def at_goal(live: pl.Expr) -> dict[str, pl.Expr]:
    """Returns the columns that `goal_was_raised` needs."""
    goal, start = pl.col("heap_goal_mib"), pl.col("heap_start_mib")
    room, at_start = goal - live, start.is_between(goal - 1, goal)
    to_start = (start == goal) & (room >= _RAISED_TO_START_MIB)
    is_large = room >= _RAISED_ROOM_MIB
    return {"_at_start": at_start, "_is_large": is_large, "_to_start": to_start}


def goal_was_raised(within: Within) -> pl.Expr:
    """Returns whether one large allocation took the heap past the goal at the start of a cycle.

    The runtime then raises the goal to just above the heap, so it shows neither GOGC nor a limit.
    Smaller allocations start a cycle at the trigger, which is at most 95 % of the way from the live
    heap to the goal, or 4 MiB below the goal if that is closer. In small heaps both look the same,
    so the behaviour of most larger heaps of the process decides.

    Source: heapGoalInternal (64 KiB above the heap) and, up to Go 1.17, startCycle (1 MiB above).
    """
    at_start, is_large = pl.col("_at_start"), pl.col("_is_large")
    large = (at_start & is_large).sum()
    usual = within((large >= _USUAL) & (2 * large > is_large.sum()))
    return (at_start & (is_large | usual) | pl.col("_to_start")).fill_null(value=False)


def not_raised() -> pl.Expr:
    """Returns whether a setting set the goal: the heap, or the room for the sweeper, did not.

    It needs the columns of `gogc_ranges`.
    """
    return pl.col("low").is_finite() | (pl.col("goal") <= pl.col("live") + 1)


def gogc_ranges(cycles: pl.DataFrame) -> pl.DataFrame:
    """Returns the GOGC in per cent that can have set each goal, one row per cycle.

    Args:
        cycles: with the columns in `NEEDED`, of any number of processes.

    Returns:
        `goal` and `live` (of the cycle before) in MiB, `low` and `high` (a GOGC between them set
        the goal), `least` (`low`, or an estimate of it where a large block raised the goal),
        `low_raised` (the least GOGC if an allocation may have raised it),
        `by_minimum` (the highest GOGC whose heap minimum set the goal), `no_goal` (GOGC is off and
        there is no limit), and `stacks`. Null where the log does not show it.
    """
    *steps, ranges = _steps(within_process(cycles), go15=has_go15(cycles))
    return in_steps(cycles[[*NEEDED]], *steps).select(**ranges)


@cache
def _steps(within: Within, *, go15: bool) -> tuple[Any, ...]:
    """Returns the columns of `gogc_ranges` in six steps, each of which needs the ones before."""
    is_new = pl.col("stacks_mib").is_not_null()
    # The goal of a cycle that stops for all is the heap at its start.
    # Without stacks, only the format shows by which rules it was set.
    known = is_new | pl.col("format").is_not_null()
    shown = pl.when(~stops_for_all() & known).then("heap_goal_mib").cast(pl.Float64)
    sizes = [*_before(within, go15=go15), shown.alias("goal")]
    live, roots, error = pl.col("live"), pl.col("_roots"), pl.col("_error")
    goal, start = pl.col("goal"), pl.col("heap_start_mib").cast(pl.Float64)
    most_live = live + error
    near = start.is_between(pl.when(is_new).then(goal).otherwise(goal - 1), goal)
    near_goal, raised = pl.col("_near_goal"), pl.col("_raised")
    # The trigger was not above the goal, and the cycle hardly started long after it. A large block
    # passed it, probably no larger than what was ever allocated between two such cycles.
    block = within(pl.when(raised).then(start - live).min())
    least_goal = (
        pl.when(raised)
        .then(start - block - 1)
        .otherwise(pl.when(near_goal).then(start - 1).otherwise(goal))
    )
    least = pl.min_horizontal(
        # Go 1.5 replaces a live heap below the minimum by one that fits the trigger.
        _by_release(
            50 * ((1 + 4 * least_goal / HEAP_MINIMUM_MIB).sqrt() - 1),
            100 * least_goal / HEAP_MINIMUM_MIB,
            go15=go15,
        ),
        100 * (least_goal - most_live) / (most_live + roots + pl.col("_root_error")),
    )
    most = pl.col("_high")
    highest = (
        pl.when(live + roots > 0)
        .then(100 * (goal + 1 - live) / (live + roots))
        .otherwise(math.inf)
    )
    minimum = 100 * (goal + 1) / HEAP_MINIMUM_MIB
    swept = goal - live - 1  # The part above the room that the sweeper needs.
    was_raised = goal_was_raised(within) | ((swept <= 0) & (error > 0))
    # Up to Go 1.17, one large block and the heap minimum of a high GOGC look alike: the goal is
    # 1 MiB above the heap (startCycle and gcSetTriggerRatio in runtime/mgc.go, go1.16).
    was_raised |= (
        ~is_new & (start == goal - 1) & (goal > HEAP_MINIMUM_MIB + 1) & (minimum <= most)
    )
    perhaps = raised | (near_goal & (error > 0)) | (swept <= 1)
    low = pl.col("_low") * (1 - _ROUNDING)
    # The heap minimum is exact, and its goal is below the next printed MiB.
    high = pl.min_horizontal(minimum * _BELOW, most * (1 + _ROUNDING))
    # Since Go 1.18, GOGC always leaves the sweeper 1 MiB.
    # Where large blocks raise goals, from Go 1.20 on, only a limit sets one below the heap.
    is_passed = (start > goal + 1) & within((pl.col("_at_start") & pl.col("_is_large")).any())
    by_limit = is_new & ((goal <= live) | is_passed) & (error > 0)
    no_goal = pl.col("heap_goal_mib").is_null() & pl.col("format").is_in(_MAY_HAVE_NO_GOAL)
    no_goal = no_goal.fill_null(value=False)
    ranges = {
        "goal": goal,
        "live": live,
        "low": pl.when(raised).then(-math.inf).otherwise(low),
        "least": low,
        "low_raised": pl.when("_perhaps").then(-math.inf).otherwise(low),
        "high": pl.when(by_limit).then(-math.inf).otherwise(high),
        "by_minimum": pl.when(minimum <= most).then(minimum),
        "no_goal": no_goal,
        "stacks": pl.col("stacks_mib").cast(pl.Float64),
    }
    known = goal.is_not_null() & live.is_not_null()
    ends = {
        name: pl.when(known).then(ranges[name])
        for name in ("low", "least", "low_raised", "high")
    }
    states = [near.alias("_near_goal"), was_raised.alias("_raised")]
    bounds = [least.alias("_low"), perhaps.alias("_perhaps")]
    at = {**at_goal(live), "_high": highest}
    return follows(within).alias("_follows"), sizes, at, states, bounds, ranges | ends


def _before(within: Within, *, go15: bool) -> list[pl.Expr]:
    """Returns the sizes of the cycle before, and their possible truncation."""
    known = pl.col("_follows")
    is_first, is_new = pl.col("gc_num") == 1, pl.col("stacks_mib").is_not_null()
    first = pl.when(is_new).then(0.0).otherwise(_FIRST_LIVE_MIB)
    # The sum of three truncated sizes is at most 1 MiB too large.
    base = _by_release((_REACHABLE - 1).clip(0), _LIVE, go15=go15)
    live = pl.when(is_first).then(first).otherwise(before(base, within, known))
    stacks, globals_ = (before(name, within, known) for name in ("stacks_mib", "globals_mib"))
    # Before the first cycle, the runtime only knows the globals.
    roots = pl.when(is_first).then("globals_mib").otherwise(stacks + globals_)
    later, new = (pl.when(flag).then(1.0).otherwise(0.0) for flag in (~is_first, is_new))
    return [
        live.cast(pl.Float64).alias("live"),
        roots.fill_null(0).cast(pl.Float64).alias("_roots"),
        _by_release(3 * later, later, go15=go15).alias("_error"),
        (new * (1 + later)).alias("_root_error"),
    ]
