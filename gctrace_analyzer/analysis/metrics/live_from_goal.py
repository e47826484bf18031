"""The live heap of dumps that lack it, from the heap goal.

Since Go 1.18 the goal is live + (live + stacks + globals) × GOGC/100 (mgcpacer.go, commitHeapGoal).
Under a memory limit, or with an unknown GOGC, the allocation per cycle shows the live heap: a cycle
starts when the heap has covered most of the way from the live heap to the goal.
"""

from __future__ import annotations

import math

import polars as pl

from gctrace_analyzer.analysis.settings.search import DEFAULT_GOGC
from gctrace_analyzer.units import MIB

HEAP_MINIMUM_MIB = 4.2
"""A goal up to this times GOGC/100 is set by the heap minimum (4 MiB), not by the live heap."""

STEADY = 2.5
"""Ratio of goals. Between dumps that differ more, cycles had goals that no dump shows, and their
allocation does not show a live heap."""

AT_LIMIT = 0.93
"""Share of the goal that the memory limit allows. Above it, the limit sets the goal."""

MAY_LIMIT = 0.5
"""Share of the memory limit. A goal above it may be set by the limit if other memory is unknown."""

TRIGGER, TRIGGER_WIDE = 0.8, 0.87
"""Share of the room between live heap and goal that a cycle allocates; the second value applies if
a cycle allocates more than half of the goal. Fitted on 24 runs of 7 programs."""

USUAL_GOGC = (50.0, DEFAULT_GOGC, 200.0, 400.0)
"""Values assumed for an unknown GOGC: the nearest to the estimate from the allocation per cycle.
The estimate is 10 to 30 % off, and programs use round values."""

USUAL_WITHIN = math.log(math.sqrt(2))

USUAL_INTERVALS, USUAL_CYCLES = 8, 10
"""With fewer intervals or cycles, or if their two halves disagree, GOGC is unknown. When real
programs were cut to 4 to 10 samples, one in eight showed twice or half of its GOGC."""

LEAST_WITHIN = 1.1
"""Lowest possible GOGC: its value if all of the heap were live. The tolerance allows for sizes that
are not read at the same moment."""

LIMIT_WITHIN = 0.001
"""If the limit sets the goal, then goal, headroom and other memory add up to the limit within this
share: in 8 recordings the sum was exact to 0.01 %. Otherwise the sum moves with the goal."""

LIMIT_MOVES = 5
"""Least movement of the goal, in multiples of the allowed movement of the sum."""

MAX_OVERSHOOT = 1.1
"""Multiple of the goal. A heap above it was allocated during marking, so the allocation of its
cycles does not show the room that GOGC gave."""

FEW_OVERSHOTS = 0.1
"""Share of the samples. Fewer with such a heap change the mean allocation per cycle little: it
says which GOGC fits, but does not show it."""

_SOON_S = 100
"""Seconds. After more without a cycle, the runtime may have started it because two minutes had
passed, whatever was allocated."""

_LEAST_PACED = 2
"""Cycles between two dumps whose allocation shows the room that GOGC gave."""

FEWEST_GOALS = 5

STRETCH_CYCLES = 5
"""Cycles that the allocation per cycle is averaged over; with fewer than `USUAL_CYCLES`, as many
intervals must have one, whose goals are those of their cycles."""


def with_limits(rows: pl.DataFrame) -> pl.DataFrame:
    """Adds goal, roots, other memory, whether the limit sets the goal, and the live heap.

    An unknown limit is added where the goals show it; then `limit_is_shown` is true.
    """
    g = pl.col("gogc") / 100
    rows = rows.with_columns(
        goal_is_old=_is_of_another_gogc(),
        goal_mib=pl.col("next_gc_bytes") / MIB,
        heap_mib=_least_heap(),
        roots_mib=(
            pl.coalesce("stack_scan_bytes", "stack_inuse_bytes", 0)
            + pl.col("globals_scan_bytes").fill_null(0)
        )
        / MIB,
        other_mib=(pl.col("sys_bytes") - pl.col("heap_idle_bytes") - pl.col("heap_alloc_bytes"))
        / MIB,
    )
    shown = _shown_limit()
    rows = rows.with_columns(
        limit_mib=pl.coalesce("limit_mib", shown),
        limit_is_shown=pl.col("limit_mib").is_null() & shown.is_not_null(),
    )
    limit, other = pl.col("limit_mib"), pl.col("other_mib")
    # The runtime keeps 3 % of headroom below the limit, at least 1 MiB (memoryLimitHeapGoal).
    allowed = limit - other - pl.max_horizontal(0.03 * (limit - other), pl.lit(1.0))
    goal, roots = pl.col("goal_mib"), pl.col("roots_mib")
    may_be_by_limit = pl.coalesce("by_limit", goal > MAY_LIMIT * limit)
    by_gogc = (
        (pl.col("gogc") > 0)
        & ~may_be_by_limit.fill_null(value=False)
        & ~pl.col("goal_is_old")
        & (goal > HEAP_MINIMUM_MIB * g)
    )
    read = pl.col("heap_live_bytes") / MIB
    return rows.with_columns(
        by_limit=pl.when(limit.is_not_null()).then(goal >= AT_LIMIT * allowed)
    ).with_columns(
        live_is_read=read.is_not_null(),
        live_row_mib=pl.coalesce(
            read,
            pl.when(by_gogc).then(_at_most(_of_goal(goal, roots, g), pl.col("heap_mib"))),
        ),
    )


def one_per_time(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the last of the dumps with the same time, with the largest heaps of them all.

    Of the first time it is the first dump, to count from there.
    """
    largest = {
        "most_live_mib": pl.col("live_row_mib"),
        "most_heap_mib": pl.max_horizontal("goal_mib", pl.col("heap_alloc_bytes") / MIB),
    }
    rows = rows.with_columns(
        value.max().over("process", "t_s").alias(name) for name, value in largest.items()
    )
    is_first = pl.col("t_s") == pl.col("t_s").first().over("process")
    time = pl.struct("process", "t_s")
    return rows.filter(
        pl.when(is_first).then(time.is_first_distinct()).otherwise(time.is_last_distinct())
    )


def _least_heap() -> pl.Expr:
    """Returns the smallest heap since the last cycle, an upper bound of the live heap."""
    heap = pl.col("heap_alloc_bytes") / MIB
    least = heap.min().over("process", "num_gc")
    return pl.when(pl.col("num_gc").is_not_null()).then(least).otherwise(heap)


def _is_of_another_gogc() -> pl.Expr:
    """Returns whether GOGC was changed, perhaps without a cycle since.

    After a lower GOGC, the goal is the present heap if that is above the new goal
    (heapGoalInternal, mgcpacer.go).
    """
    changed = pl.col("gogc") != pl.col("gogc").shift().over("process")
    seen = pl.when(changed.fill_null(value=False)).then("num_gc")
    since = seen.forward_fill().over("process")
    return (pl.col("num_gc") <= since).fill_null(value=False)


def _shown_limit() -> pl.Expr:
    """Returns the memory limit that most goals of a process add up to, if there is one."""
    goal = pl.col("goal_mib")
    # Go 1.21 has a headroom of 3 %; before, it was 1 MiB.
    minor = pl.col("go_version").str.extract(r"^1\.(\d+)").cast(pl.Int64)
    share = pl.when(minor < 21).then(1.0).otherwise(0.97)
    total = pl.max_horizontal(goal / share, goal + 1) + pl.col("other_mib")
    # Between two cycles nothing moves, so equal sums prove nothing.
    counts = (pl.col("num_gc").diff().over("process") > 0) & ~pl.col("limit_known")
    middle = total.filter(counts).median().over("process")
    agrees = ((total / middle - 1).abs() <= LIMIT_WITHIN) & counts
    goals = goal.filter(agrees)
    moves = (goals.max() / goals.min() - 1 > LIMIT_MOVES * LIMIT_WITHIN).over("process")
    number = agrees.sum().over("process")
    is_limit = moves & (number >= FEWEST_GOALS) & (2 * number >= counts.sum().over("process"))
    return pl.when(is_limit).then(middle)


def with_live_heap(intervals: pl.DataFrame) -> pl.DataFrame:
    """Adds the mean goal and live heap to intervals."""
    goal = pl.col("heap_goal_mib")
    stretch = (
        (pl.col("gc_cycles").fill_null(0).cum_sum() / STRETCH_CYCLES).floor().over("process")
    )
    intervals = intervals.with_columns(heap_goal_mib=_mean("goal_mib"), stretch=stretch)
    intervals = intervals.join(
        _usual(intervals), on="process", how="left", maintain_order="left"
    )
    # Before GOGC is assumed.
    known = pl.col("live_row_mib").alias("live_known_mib")
    intervals = intervals.with_columns(known, *(_by_usual(end) for end in ("", "_before")))
    own, whole = (
        pl.when("many", _are_steady().over(part)).then(_by_cycle(_per_cycle().over(part), goal))
        for part in (["process", "stretch"], ["process"])
    )
    least = pl.min_horizontal("heap_mib", "heap_mib_before")
    is_old = pl.any_horizontal("goal_is_old", "goal_is_old_before", "overshot").fill_null(
        value=False
    )
    live = pl.coalesce(
        _mean("live_row_mib"),
        *(pl.when((each > 0) & ~is_old).then(_at_most(each, least)) for each in (own, whole)),
    )
    return (
        intervals.with_columns(heap_live_mib=live)
        .with_columns(_at_end(end) for end in ("", "_before"))
        .drop("stretch", "many", "overshot")
    )


def _at_end(end: str) -> pl.Expr:
    """Returns the live heap at one end of an interval.

    The allocation per cycle is estimated for the interval; the goal is that of its end.
    """
    live = pl.col("heap_live_mib")
    of_end = pl.col(f"goal_mib{end}") - pl.col("heap_goal_mib") + live
    is_by_cycle = pl.all_horizontal(pl.col("live_row_mib", "live_row_mib_before").is_null())
    known = pl.when(is_by_cycle & (of_end > 0)).then(_at_most(of_end, pl.col(f"heap_mib{end}")))
    return pl.coalesce(f"live_row_mib{end}", known, live).alias(f"live_at_mib{end}")


def _by_usual(end: str) -> pl.Expr:
    """Returns the live heap at one end of an interval, from the goal and an assumed GOGC."""
    goal, g = pl.col(f"goal_mib{end}"), pl.col("usual_gogc") / 100
    usual = pl.when(goal > HEAP_MINIMUM_MIB * g).then(
        _at_most(_of_goal(goal, pl.col(f"roots_mib{end}"), g), pl.col(f"heap_mib{end}"))
    )
    return pl.coalesce(f"live_row_mib{end}", usual)


def _usual(intervals: pl.DataFrame) -> pl.DataFrame:
    """Returns the assumed GOGC of each process with an unknown GOGC.

    `usual_gogc` serves to estimate the live heap; `assumed_gogc` is the same where the samples are
    enough to show it.
    """
    # A cycle lasts until part of its goal is allocated: so take the harmonic mean of both goals.
    ends, cycles = (pl.col("goal_mib"), pl.col("goal_mib_before")), pl.col("gc_cycles")
    goal = 2 * ends[0] * ends[1] / (ends[0] + ends[1])
    counted = cycles.filter(goal.is_not_null())
    row = pl.int_range(pl.len()).over("process")
    halved = intervals.with_columns(half=2 * row >= pl.len().over("process"))
    heap, roots = pl.col("heap_mib"), pl.col("roots_mib")
    overshot = pl.col("heap_alloc_mib") > MAX_OVERSHOOT * pl.col("goal_mib")
    figures = {
        "alloc": _per_cycle(),
        "goal": pl.when(counted.sum() > 0).then((goal * cycles).sum() / counted.sum()),
        "roots": roots.mean(),
    }
    halves = (
        halved.group_by("process", "half")
        .agg(**figures)
        .with_columns(near=_nearest())
        .group_by("process")
        .agg(agreed=(pl.col("near").n_unique() == 1) & (pl.len() == 2), half=pl.first("near"))
    )
    whole = intervals.group_by("process").agg(
        **figures,
        often=cycles.sum() >= USUAL_CYCLES,
        busy=(cycles > 0).sum(),
        enough=(cycles.sum() >= USUAL_CYCLES) & (pl.len() >= USUAL_INTERVALS),
        least=(100 * (pl.col("goal_mib") - heap) / (heap + roots)).max(),
        unknown=pl.col("live_row_mib").is_null().all() & pl.col("gogc_pct").is_null().all(),
        limited=pl.col("by_limit").mean(),
        steady=_are_steady(),
        overshot=overshot.any(),
        overshoots=overshot.mean(),
    )
    near = _nearest()
    assumed = (
        pl.col("unknown")
        & pl.col("often")
        & (pl.col("steady") | pl.col("enough"))
        & (pl.col("least") <= LEAST_WITHIN * near).fill_null(value=True)
        & ~(pl.col("limited") > 0.5).fill_null(value=False)
        & ~(pl.col("overshoots") > FEW_OVERSHOTS).fill_null(value=False)
    )
    shown = (
        assumed
        & ~pl.col("overshot").fill_null(value=False)
        & pl.col("enough")
        & pl.col("agreed")
        & (near == pl.col("half"))
    )
    return whole.join(halves, on="process", how="left").select(
        "process",
        "overshot",
        many=pl.col("often") | (pl.col("busy") >= STRETCH_CYCLES),
        usual_gogc=pl.when(assumed).then(near),
        assumed_gogc=pl.when(shown).then(near),
    )


def _nearest() -> pl.Expr:
    """Returns the usual GOGC nearest to what the allocation per cycle shows; null if none is."""
    alloc, goal, roots = (pl.col(name) for name in ("alloc", "goal", "roots"))
    live = _by_cycle(alloc, goal)
    effective = 100 * (goal - live) / (live + roots)
    near = [
        pl.when((effective / gogc).log().abs() <= USUAL_WITHIN).then(gogc)
        for gogc in USUAL_GOGC
    ]
    # A program with little to mark allocates nearly all of the room (0.96 in three runs), which
    # looks like a higher GOGC. Only more than the whole room refutes the default.
    room = goal - _of_goal(goal, roots, pl.lit(DEFAULT_GOGC / 100))
    is_default = (alloc <= room) & (effective > DEFAULT_GOGC)
    return pl.when(live > 0).then(pl.coalesce(pl.when(is_default).then(DEFAULT_GOGC), *near))


def _at_most(live: pl.Expr, heap: pl.Expr) -> pl.Expr:
    """Returns an estimated live heap, limited to the size of the objects in the heap."""
    return pl.when(live > heap).then(heap).otherwise(live)


def _per_cycle() -> pl.Expr:
    """Returns the allocation per cycle of a group of intervals."""
    # Whole cycles divided by the time between their ends have no error at the edges.
    between_ends = pl.coalesce("ends_s", "length_s").sum()
    cycles, alloc = pl.col("gc_cycles").sum(), pl.col("alloc_mib")
    known_s = pl.col("length_s").filter(alloc.is_not_null()).sum()
    per_s = pl.when(known_s > 0).then(alloc.sum() / known_s)
    return pl.when(cycles >= STRETCH_CYCLES).then(per_s * between_ends / cycles)


def _are_steady() -> pl.Expr:
    """Returns whether the goals at both ends of each interval of a group are near each other."""
    ends = [pl.col("goal_mib"), pl.col("goal_mib_before")]
    return (pl.max_horizontal(ends) / pl.min_horizontal(ends)).max() <= STEADY


def gogc_of_minimum() -> pl.Expr:
    """Returns the GOGC of each process that a goal at the heap minimum shows; null if none does.

    Then the goal is 4 MiB × GOGC/100 to the byte, which no other goal is by chance. If later goals
    do not fit it, GOGC was changed at run time, and no value is that of the whole run.
    """
    goal, minimum = pl.col("next_gc_bytes"), 4 * MIB
    gogc = (goal * 100 / minimum).ceil()
    # Up to Go 1.17, the goal before the first cycle is (1 + GOGC/100) / 1.875 times 4 MiB: under
    # GOGC=50, that of 80.
    counts = (goal > 0) & (
        (pl.col("num_gc") > 0).fill_null(value=True) | gogc.is_in(USUAL_GOGC)
    )
    is_it = counts & ((gogc * minimum / 100).floor() == goal)
    # Sizes printed in KiB or MiB fit by chance, and one of many goals may: but none is lower.
    is_exact = (pl.col("heap_alloc_bytes") % 1024 != 0).any()
    only = gogc.filter(is_it).min()
    is_least = goal.filter(is_it).max() == goal.filter(counts).min()
    is_one = is_exact & is_least & (only == gogc.filter(is_it).max())
    # All of the heap is the most that can be live.
    heap, roots = pl.col("heap_alloc_bytes"), pl.col("stack_inuse_bytes").fill_null(0)
    least = (100 * (goal - heap) / (heap + roots)).filter(~is_it).max()
    # What cycles allocate shows the room that GOGC gave, unless something else started them.
    names = ("total_alloc_bytes", "num_gc", "num_forced_gc", "t_s")
    allocated, cycles, forced, time_s = (pl.col(name).diff() for name in names)
    is_paced = (cycles >= _LEAST_PACED) & (forced.fill_null(0) == 0)
    is_paced &= (time_s < cycles * _SOON_S) & ~is_it & ~is_it.shift()
    is_paced &= (goal / goal.shift()).is_between(1 / STEADY, STEADY)
    live = _by_cycle(allocated / cycles, (goal + goal.shift()) / 2)
    paced = (100 * (goal - live) / (live + roots)).filter(is_paced).median()
    fits = ~(least > LEAST_WITHIN * only).fill_null(value=False)
    fits &= ~((paced / only).log() < -math.log(2)).fill_null(value=False)
    return pl.when(is_one & fits).then(only).over("process")


def _of_goal(goal: pl.Expr, roots: pl.Expr, g: pl.Expr) -> pl.Expr:
    """Returns the live heap that leads to this goal under GOGC = 100 g."""
    return (goal - roots * g) / (1 + g)


def _mean(name: str) -> pl.Expr:
    return pl.mean_horizontal(name, f"{name}_before")


def _by_cycle(alloc: pl.Expr, goal: pl.Expr) -> pl.Expr:
    share = pl.when(alloc < 0.5 * goal).then(TRIGGER).otherwise(TRIGGER_WIDE)
    return goal - alloc / share
