"""Levels of the effective GOGC: what shows that the program changed GOGC while it runs.

`debug.SetGCPercent` moves the effective GOGC by a step, as a memory limit may do that begins or
ceases to set the goals. The goals tell them apart:

- GOGC sets live heap + (live heap + stacks + globals) × GOGC/100 (gcControllerState.commit,
  runtime/mgcpacer.go), so one GOGC explains all goals of a level to the printed MiB.
- A limit sets what it leaves after memory that is not heap (memoryLimitHeapGoal, same file): the
  live heap does not matter, and unused parts of spans count, so that goals vary by more.

If the live heap is constant, and the goals are too, both explain them. Then it still cannot be the
same limit all the time if it allowed far higher goals at another time: the program changed GOGC or
the limit, and the log does not show which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.rows import not_null, where, without

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.thresholds import Thresholds

FIT_MIN_GOGC = 5.0
"""Effective GOGC. Lower goals are the live heap itself, above a memory limit."""

_FIT_MIB, _FIT_MIB_PER_GOGC = 0.75, 0.6
"""MiB by which a goal may miss GOGC in nine of ten cycles: what the truncation of goal, live heap
and stacks to MiB causes. Measured in real programs: 0.7 to 0.8 at GOGC=10, at most 1.24 at 100."""

_NEAR_SHARE = 0.625
"""MiB by which goals may miss GOGC where a limit explains them too, as a share of what truncation
causes at most (2 + GOGC/100). Measured: goals set by GOGC of a constant live heap miss it by up to
0.6 of that; of 317 stretches of real programs under a limit, those with far higher goals at another
time miss it by 0.79 and more."""

DEFAULT_GOGC, _NEAR_DEFAULT = 100.0, 1.5
"""GOGC unless a program sets it, and by how many points its median in a level may be off: what the
truncation of sizes to MiB causes."""

_SAME_GOGC = 0.25
"""Relative distance from the median. What is farther away has other reasons than truncation."""

_FAR_MISS_TIMES = 2.0
"""Times what truncation causes."""

_FOLLOWS = 0.7
"""Correlation of goals and live heaps. Measured in the same runs: at least 0.82 with GOGC, at most
0.5 under a limit that explains the goals as well to twice the truncation."""

_CEILING_SHARE = 0.03
"""Share of the highest goal. What a memory limit leaves to the heap varies with other memory."""

_SMOOTH_CYCLES = 5
"""The median of this many cycles has no outliers, and steps stay where they are."""

_FEWEST = 3
"""Cycles. Fewer of another effective GOGC are outliers, even next to long levels."""

FEW_CYCLES, _FEW_TIMES, _FEW_RANGE = 4, 6, 0.15
"""A level of so few cycles shows its GOGC only if a constant goal explains it worse by this factor,
and if its goals differ by this share: if the live heap grows, or swings widely. A limit does not
raise goals as the live heap grows; with other memory outside the heap they differ by a tenth."""


_BELOW_LIMIT, _FAR_BELOW_LIMIT = 0.75, 0.6
"""Shares of a known memory limit: what it leaves to the heap is above the first, and goals below
the second are not set by it. Go uses about 10 MiB outside the heap, and more in large programs."""

_LOWERED = 0.8
"""Share of GOGC. A goal with a lower effective GOGC is not set by that GOGC."""


@frozen
class LastLevel:
    """The last of several levels of GOGC: the setting of a program that changed it.

    Attributes:
        gogc: the median of the effective GOGC.
        first_gc: the first cycle whose whole course was under this level.
        start_s: its start, in seconds since the start of the process; null before Go 1.5.
        cycles: how many cycles the level has.
    """

    gogc: float
    first_gc: int
    start_s: float | None
    cycles: int


def rounding(gogc: pl.Expr, live_mib: pl.Expr) -> pl.Expr:
    """Returns the points by which the truncation of sizes to MiB moves an effective GOGC at most.

    Args:
        gogc: the GOGC that set the goal.
        live_mib: the live heap of the cycle before.
    """
    return 100 * (2 + gogc / 100) / live_mib


def near(gogc: pl.Expr, median: pl.Expr, live_mib: pl.Expr) -> pl.Expr:
    """Returns which effective values of GOGC may be of the GOGC that is their median.

    Others may have another GOGC, or goals raised by a single large allocation.
    """
    by_rounding = rounding(median, live_mib)
    return (gogc - median).abs() <= pl.max_horizontal(_SAME_GOGC * median, by_rounding)


def miss_mib(gogc: pl.Expr, median: pl.Expr) -> pl.Expr:
    """Returns by how many MiB each goal misses what the GOGC `median` would have set.

    Args:
        gogc: the effective GOGC of each cycle; what is not finite counts as no miss.
        median: the GOGC that may have set all goals.
    """
    # An error of 1 point of GOGC is an error of 1 % of what it is a percentage of.
    off = ((gogc - median) * (pl.col("heap_goal_mib") - pl.col("_live")) / gogc).abs()
    return pl.when(off.is_finite()).then(off).otherwise(0.0)


def explains_goals(gogc: pl.Expr, miss: pl.Expr) -> pl.Expr:
    """Returns whether one GOGC explains goals to the printed MiB."""
    near = not_null(miss).quantile(0.9) <= _FIT_MIB + _FIT_MIB_PER_GOGC * gogc / 100
    return (gogc >= FIT_MIN_GOGC) & near


def miss() -> pl.Expr:
    """Returns by how many MiB each goal misses what the median GOGC of its process would have set.

    Needs `_any_gogc` (the effective GOGC, null where it is not to be used), `_any_median`,
    `heap_goal_mib` and `_live`.
    """
    each = pl.col("_any_gogc")
    return pl.when(each.is_not_null()).then(miss_mib(each, pl.col("_any_median")))


def near_miss() -> pl.Expr:
    """Returns `_miss` where the effective GOGC is near the median; needs the columns of `miss`."""
    is_near = near(pl.col("_any_gogc"), pl.col("_any_median"), pl.col("_live"))
    return pl.when(is_near).then("_miss")


def contradict_gogc() -> pl.Expr:
    """Returns whether the goals of a process show that the GOGC they suggest did not set them.

    An effective GOGC that hardly varies is not enough: a limit causes the same if the live heap
    hardly varies. But goals that GOGC sets follow every change of the live heap. Needs the columns
    of `miss`, and `_near_miss`.
    """
    miss, is_near = pl.col("_near_miss"), pl.col("_near_miss").is_not_null()
    usual = _FIT_MIB + _FIT_MIB_PER_GOGC * pl.col("_any_median").first() / 100
    far = not_null(miss).quantile(0.75) > _FAR_MISS_TIMES * usual
    goal, live = (pl.col(name).filter(is_near) for name in ("heap_goal_mib", "_live"))
    # A constant has no correlation with anything.
    together = pl.corr(goal, live).fill_nan(0.0) >= _FOLLOWS
    enough = miss.count() >= 2 * FEW_CYCLES
    return enough & (far | ((not_null(miss).quantile(0.9) > usual) & ~together))


def may_be_capped(thresholds: Thresholds) -> pl.Expr:
    """Returns whether the goals of a process may follow a GOGC up to a ceiling (`capped_gogc`).

    Null for small heaps, whose goals may be of either. Needs `_any_gogc`, `heap_goal_mib`,
    `stacks_mib` and `_live`.
    """
    at, below, _ = _at_ceiling()
    live_at = pl.col("_live").filter(at)
    varies = live_at.max() >= (1 + _FEW_RANGE) * live_at.min()
    enough = (at.sum() >= 2 * FEW_CYCLES) & (below.sum() >= FEW_CYCLES)
    enough &= live_at.max() >= thresholds.gogc_min_live_mib
    # There was no memory limit before Go 1.19.
    return enough & varies & (pl.col("stacks_mib").count() > 0)


def capped_gogc() -> pl.Expr:
    """Returns the GOGC of a process whose goals follow it up to a ceiling, else null.

    The ceiling is a memory limit that leaves the same to the heap however large the live heap is:
    goals near the highest one have live heaps that differ, and under the GOGC of the other goals
    all of them would be higher. Only for processes that `may_be_capped`.
    """
    effective = pl.col("_any_gogc")
    at, below, highest = _at_ceiling()
    gogc = not_null(effective.filter(below)).median()
    follows = explains_goals(gogc, miss_mib(effective, gogc).filter(below))
    least_live = pl.col("_live").filter(at).min()
    would_be_higher = least_live * (1 + gogc / 100) >= highest - (2 + gogc / 100)
    lowered = not_null(effective.filter(at)).median() < _LOWERED * gogc
    return pl.when(follows & would_be_higher & lowered).then(gogc)


def _at_ceiling() -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """Returns which goals are near the highest one of a process, which are not, and that one."""
    is_known, goal = pl.col("_any_gogc").is_not_null(), pl.col("heap_goal_mib")
    highest = goal.filter(is_known).max()
    is_near = goal >= highest - pl.max_horizontal(1.0, _CEILING_SHARE * highest)
    return is_known & is_near, is_known & ~is_near, highest


def is_better(miss: pl.Expr, constant_miss: pl.Expr, times: int = 3) -> pl.Expr:
    """Returns whether one GOGC explains goals far better than a constant goal does."""
    own_miss = pl.max_horizontal(not_null(miss).median(), pl.lit(1 / 3))
    return not_null(constant_miss).median() >= times * own_miss


def numbered(cycles: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    """Returns the cycles with `level`, the number of the level that each belongs to.

    `is_outlier` is true for those that are far from the others around them.

    A level ends where the effective GOGC moves by more than `level_jump` and more than the
    truncation of goal and live heap to MiB explains.

    Args:
        cycles: `gogc` (the effective one) and `live_mib`, which must be known, and `process` if
            there may be several.
        thresholds: how far apart levels are.
    """
    several = "process" in cycles.columns and cycles["process"].n_unique() > 1

    def within(values: pl.Expr) -> pl.Expr:
        return values.over("process") if several else values

    smoothed = cycles.with_columns(
        _smooth=within(
            pl.col("gogc").rolling_median(_SMOOTH_CYCLES, center=True, min_samples=1)
        )
    )
    smooth, before = pl.col("_smooth"), within(pl.col("_smooth").shift(1))
    jump = (smooth - before).abs() > pl.max_horizontal(
        thresholds.level_jump * before.abs(), rounding(smooth, pl.col("live_mib"))
    )
    level = within(jump.fill_null(value=False).cum_sum())
    off = (pl.col("gogc") - smooth).abs() > thresholds.level_jump * smooth.abs()
    return without(smoothed.with_columns(level=level, is_outlier=off), "_smooth")


def _are_near(gogc: pl.Series, thresholds: Thresholds) -> bool:
    """Returns whether all values are so near each other that they cannot be of two levels."""
    low, high = (float(each or 0) for each in (gogc.min(), gogc.max()))  # type: ignore[arg-type]
    return low > 0 and high - low <= thresholds.level_jump * low


def steady(cycles: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    """Returns the levels whose effective GOGC hardly varies, one row each, in order; of one, none.

    Goals set by the memory limit and those of forced cycles and small heaps do not count.

    Args:
        cycles: those of one process, with `goal_set_by` and `effective_gogc`.
        thresholds: how far apart levels are.

    Returns:
        `gogc` (median), `count`, `first_gc`, `last_gc`, and `unclear` (whether the limit may have
        set the goals).
    """
    t = thresholds
    usable = (
        (pl.col("heap_live_mib") >= t.gogc_min_live_mib)
        & ~pl.col("forced")
        & pl.col("goal_set_by").ne_missing("memory-limit")
        & pl.col("effective_gogc").is_not_null()
    )
    are_usable = cycles.select(usable).to_series()
    gogc_of_each = cycles["effective_gogc"].filter(are_usable)
    if len(gogc_of_each) < 2 * FEW_CYCLES or _are_near(gogc_of_each, t):
        return pl.DataFrame()
    columns = cycles.select(
        "goal_set_by", "gc_num", gogc="effective_gogc", live_mib="heap_live_mib"
    )
    known = where(columns, are_usable)
    rows, gogc, outlier = numbered(known, t), pl.col("gogc"), pl.col("is_outlier")
    if not rows["level"].max():
        return pl.DataFrame()
    return (
        rows.group_by("level", maintain_order=True)
        .agg(
            gogc=not_null(gogc).median(),
            count=pl.len(),
            # Next to a long level, one or two cycles of another GOGC are part of it.
            spread=pl.when(outlier.sum() < _FEWEST)
            .then(gogc.filter(~outlier).std())
            .otherwise(gogc.std()),
            first_gc=pl.col("gc_num").first(),
            last_gc=pl.col("gc_num").last(),
            unclear=pl.col("goal_set_by").null_count() * 2 > pl.len(),
        )
        .filter((pl.col("count") >= _FEWEST) & (pl.col("spread") < t.level_spread * gogc))
    )


def last_level(
    cycles: pl.DataFrame, levels: pl.DataFrame, thresholds: Thresholds
) -> LastLevel | None:
    """Returns the last level of GOGC; None if the program did not change GOGC.

    Args:
        cycles: those of one process.
        levels: what `steady` returns for them.
        thresholds: how far apart levels are, and how many cycles show a change.
    """
    # Samples of metrics have no number of a cycle.
    if len(levels) < 2 or levels["first_gc"].null_count():
        return None
    last = levels.row(-1, named=True)
    ratio = pl.max_horizontal("gogc", pl.lit(last["gogc"])) / pl.min_horizontal(
        "gogc", pl.lit(last["gogc"])
    )
    others = levels.filter((pl.col("gogc") <= 0) | (ratio > thresholds.level_ratio))
    if others.is_empty():
        return None
    # The cycle in which GOGC changes began under the setting of before.
    since = levels.filter(pl.col("first_gc") > others["last_gc"].max())
    own = cycles.filter(pl.col("gc_num") > since["first_gc"].min())
    counts = since["count"].sum(), max(others["count"])
    if since["unclear"].any() or others["unclear"].any():
        # A few lower goals after or before others may be those of a memory limit.
        is_highest = bool((others["gogc"] < last["gogc"]).all())
        enough = (max if is_highest else min)(counts) >= thresholds.level_cycles
    else:
        enough = min(counts) >= FEW_CYCLES
    if own.is_empty() or not enough:
        return None
    return LastLevel(last["gogc"], own["gc_num"][0], own["start_s"][0], len(own))


def with_known_limit(
    cycles: pl.DataFrame, limit_mib: float, gogc: float | None, thresholds: Thresholds
) -> pl.DataFrame:
    """Returns the cycles with `goal_set_by` corrected by a memory limit that is known.

    Goals of a constant live heap look like a lower GOGC. If they are just below the limit, and
    others far below it had a higher GOGC, the limit set them.

    Args:
        cycles: with `goal_set_by` and `effective_gogc`.
        limit_mib: the memory limit.
        gogc: GOGC if it is known, else None.
        thresholds: from which live heap on goals show GOGC.
    """
    goal, effective = pl.col("heap_goal_mib"), pl.col("effective_gogc")
    setter = pl.col("goal_set_by").cast(pl.String)
    open_ = setter.is_null() | (setter == "gogc")
    large = (pl.col("heap_live_mib") >= thresholds.gogc_min_live_mib) & ~pl.col("forced")
    free = open_ & large & (effective > 0) & (goal < _FAR_BELOW_LIMIT * limit_mib)
    free = free.fill_null(value=False)
    free_gogc = effective.filter(free)
    shown = (
        pl.when(free_gogc.count() >= _FEWEST).then(not_null(free_gogc).median()).over("process")
    )
    own = shown if gogc is None else pl.lit(gogc)
    near = goal.is_between(_BELOW_LIMIT * limit_mib, limit_mib)
    limited = open_ & near & (effective < _LOWERED * own)
    # Where the limit sets others, those that are free of it only looked unclear.
    cleared = free & setter.is_null() & limited.any().over("process")
    return cycles.with_columns(
        goal_set_by=pl.when(limited)
        .then(pl.lit("memory-limit"))
        .when(cleared)
        .then(pl.lit("gogc"))
        .otherwise(setter)
        .cast(pl.Categorical)
    )


def of_cycles(frame: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame | None:
    """Returns the level of each cycle whose effective GOGC is known; None if none shows a GOGC.

    Args:
        frame: cycles with `process heap_goal_mib stacks_mib`, `_live` (the live heap of the cycle
            before) and `_any_gogc` (the effective GOGC, null where it is not to be used).
        thresholds: how many cycles are a level, and how far apart levels are.

    Returns:
        `row` (the number of the row in `frame`), `own_gogc` (the GOGC that certainly set the
        goals of the level, or null), `is_unclear` (GOGC or the limit was changed, and the log
        does not show which), `is_short` (too few cycles for a level), and `least` (the lowest GOGC
        of the process's levels of the first two kinds).
    """
    known = (
        frame.select(
            "process",
            "heap_goal_mib",
            "stacks_mib",
            "_live",
            gogc="_any_gogc",
            live_mib="_live",
        )
        .with_row_index("row")
        .filter(pl.col("gogc").is_not_null())
    )
    rows = numbered(known, thresholds)
    each, goal = pl.col("gogc"), pl.col("heap_goal_mib")
    # As columns, because several figures of a level need them.
    medians = {"_median": not_null(each).median(), "_goal_median": not_null(goal).median()}
    keys = ["process", "level"]
    if rows.select(keys).n_unique() > 1:
        medians = {name: median.over(keys) for name, median in medians.items()}
    compared = rows.with_columns(**medians).with_columns(
        _miss=miss_mib(each, pl.col("_median")),
        _constant_miss=(goal - pl.col("_goal_median")).abs(),
    )
    miss, constant_miss = pl.col("_miss"), pl.col("_constant_miss")
    median, goal_median = pl.col("_median").first(), pl.col("_goal_median").first()
    levels = compared.group_by(keys, maintain_order=True).agg(
        median=median,
        # A limit leaves less for the heap if there are more stacks.
        taken_mib=goal_median + not_null(pl.col("stacks_mib")).median().fill_null(0),
        is_short=pl.len() < thresholds.level_cycles,
        explained=explains_goals(median, miss),
        near=not_null(miss).quantile(0.9) <= _NEAR_SHARE * (2 + median / 100),
        better=is_better(miss, constant_miss),
        proven=(pl.len() >= FEW_CYCLES)
        & is_better(miss, constant_miss, _FEW_TIMES)
        & (goal.max() - goal.min() >= _FEW_RANGE * goal_median),
    )
    long_mib = pl.col("taken_mib").filter(~pl.col("is_short"))
    raised = long_mib.max().over("process") > thresholds.level_ratio * pl.col("taken_mib")
    # A limit that happens to leave exactly what the default does is far less likely.
    is_default = ((pl.col("median") - DEFAULT_GOGC).abs() <= _NEAR_DEFAULT) & pl.col("near")
    shown = pl.when("is_short").then("proven").otherwise(pl.col("better") | is_default)
    certain = pl.col("explained") & shown
    # Goals close to the live heap are left to the search for thrashing.
    roomy = pl.col("median") > thresholds.thrash_gogc
    judged = levels.with_columns(
        own_gogc=pl.when(certain).then("median"),
        is_unclear=~certain & ~pl.col("is_short") & pl.col("near") & raised & roomy,
    )
    set_gogc = pl.col("median").filter(pl.col("own_gogc").is_not_null() | pl.col("is_unclear"))
    judged = judged.with_columns(least=set_gogc.min().over("process"))
    if judged["least"].null_count() == len(judged):
        return None
    return (
        rows.select("row", "process", "level")
        .join(
            judged, on=["process", "level"], how="left", nulls_equal=True, maintain_order="left"
        )
        .select("row", "own_gogc", "is_unclear", "is_short", "least")
    )
