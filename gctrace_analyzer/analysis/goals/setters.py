"""What set each heap goal: `goal_set_by` in `schema.METRICS`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.goals import levels
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.ingest.rows import (
    before,
    is_one_process,
    not_null,
    of_each_process,
    within_process,
    without,
)

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.thresholds import Thresholds

HEAP_MINIMUM_MIB = 4
"""The heap minimum at GOGC=100; it scales with GOGC (heapMinimum in runtime/mgcpacer.go)."""

_TOP_QUANTILE = 0.95
"""If the memory limit sets most goals, only the highest values of the effective GOGC can show
GOGC; this quantile is taken as the highest value."""

_AT_TOP_SHARE = 0.03
_AT_TOP_POINTS = 2
"""An effective GOGC that differs from the top value by this share or less (or by this many
points, if that is more) counts as equal to it: rounding alone can move it that far."""

_BELOW_TOP = (0.85, 0.97)
"""Range just below the top value, relative to it. If many values are in this range, the top
values are the tail of a distribution rather than a step at GOGC."""

FIT_MIN_LIVE_MIB = 4
"""MiB. Goals of smaller live heaps may be the heap minimum."""

_GOGC_TOLERANCE = 0.02
"""Relative difference from GOGC that a goal set by GOGC may have, beyond rounding."""


_NEEDED = ("process", "heap_goal_mib", "stacks_mib", "forced", "effective_gogc")
"""Columns from which follows what set a goal, besides the live heap of the cycle before."""


def with_goal_set_by(frame: pl.DataFrame) -> pl.DataFrame:
    """Returns the cycles with `goal_set_by`: `gogc`, `memory-limit`, `heap-minimum` or null.

    A goal at or below the previous live heap can only come from the memory limit. A goal that
    stays the same while the live heap changes comes from the limit or the heap minimum. A goal
    that is a constant multiple of the live heap comes from GOGC, which the program may change
    while it runs (`levels`). Needs `effective_gogc`.
    """
    live = before("heap_live_mib", within_process(frame))
    return frame.with_columns(goal_setter_of_each(frame.select(*_NEEDED, _live=live)))


def goal_setter_of_each(cycles: pl.DataFrame) -> pl.Series:
    """Returns `goal_set_by` as `with_goal_set_by` does; needs `_live` too."""
    known = cycles[[*_NEEDED, "_live"]].with_columns(_known_gogc()).rechunk()
    inferred = _joined(known, _inferred_gogc(known, DEFAULT))
    setter = inferred.with_columns(_rounding()).with_columns(_setter(DEFAULT))
    several = setter.select(_unexplained().sum()).item() >= levels.FEW_CYCLES
    if several and setter.select(_perhaps_changed(setter, DEFAULT).any()).item():
        setter = _with_changed_gogc(setter, DEFAULT)
    return setter["goal_set_by"]


@cache
def _known_gogc() -> tuple[pl.Expr, pl.Expr]:
    """Returns the effective GOGC of large heaps, and of all but the smallest ones."""
    live, effective = pl.col("_live"), pl.col("effective_gogc")
    large = live >= DEFAULT.gogc_min_live_mib
    usable = (live >= FIT_MIN_LIVE_MIB) & ~pl.col("forced")
    return (
        pl.when(large).then(effective).alias("_usable_gogc"),
        pl.when(usable).then(effective).alias("_any_gogc"),
    )


@cache
def _rounding() -> pl.Expr:
    return levels.rounding(pl.col("_gogc"), pl.col("_live")).alias("_rounding")


def _perhaps_changed(found: pl.DataFrame, thresholds: Thresholds) -> pl.Expr:
    """Returns whether one GOGC leaves several goals of a stretch of the process unexplained."""
    stretch = thresholds.level_cycles
    most = _unexplained().cast(pl.Int64).rolling_sum(stretch, min_samples=1).max()
    return within_process(found)(most) >= levels.FEW_CYCLES


def _unexplained() -> pl.Expr:
    """Returns which goals show a GOGC, but not the one that was inferred."""
    return pl.col("_any_gogc").is_not_null() & pl.col("goal_set_by").ne_missing("gogc")


def _with_changed_gogc(found: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    """Returns the cycles with `goal_set_by` corrected where the program changed GOGC."""
    own_levels = levels.of_cycles(found, thresholds)
    if own_levels is None:
        return found
    effective, own, setter = pl.col("effective_gogc"), pl.col("own_gogc"), pl.col("goal_set_by")
    rounding = levels.rounding(own, pl.col("_live"))
    as_own = (effective - own).abs() <= rounding.clip(lower_bound=_GOGC_TOLERANCE * own)
    limited = (setter == "memory-limit") & (effective > 0)
    # Too few cycles show nothing, and the goal of the cycle in which GOGC changes is in between.
    too_few = pl.col("is_short") & (effective >= pl.col("least"))
    # Whatever other processes do
    enough = _perhaps_changed(found, thresholds)
    corrected = (
        pl.when(~enough)
        .then(setter.cast(pl.String))
        .when(as_own & setter.ne_missing("heap-minimum"))
        .then(pl.lit("gogc"))
        .when(limited & (own.is_not_null() | pl.col("is_unclear") | too_few))
        .then(None)
        .otherwise(setter.cast(pl.String))
        .cast(pl.Categorical)
    )
    rows = found.with_row_index("row")
    joined = rows.join(own_levels, on="row", how="left", maintain_order="left")
    return joined.with_columns(goal_set_by=corrected).select(found.columns)


def _joined(frame: pl.DataFrame, of_each: pl.DataFrame) -> pl.DataFrame:
    """Returns the cycles with figures of their process in each row."""
    if is_one_process(frame):
        return frame.with_columns(
            pl.lit(each[0], each.dtype).alias(each.name) for each in without(of_each, "process")
        )
    return frame.join(
        of_each, on="process", how="left", nulls_equal=True, maintain_order="left"
    )


@cache
def _levels() -> list[pl.Expr]:
    """Returns the levels that the goals of a process are compared with."""
    goal = pl.col("heap_goal_mib").filter(pl.col("_any_gogc").is_not_null())
    return [
        not_null(pl.col("_usable_gogc")).median().alias("_median"),
        not_null(pl.col("_usable_gogc")).quantile(_TOP_QUANTILE).alias("_top"),
        not_null(pl.col("_any_gogc")).median().alias("_any_median"),
        not_null(goal).median().alias("_goal_median"),
    ]


def _inferred_gogc(known: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    """Returns the GOGC that most goals of each process suggest, and whether they agree on it.

    One GOGC explains the goals of most programs to the printed MiB. The other signs take several
    medians of all cycles each, and are looked for only where they can be.

    Args:
        known: the cycles, with `_live`, `_usable_gogc` and `_any_gogc`.
        thresholds: how well a GOGC must explain the goals.

    Returns:
        `process`, `_gogc` and `_gogc_known`, one row per process.
    """
    found = of_each_process(known, *_levels())
    rows = _joined(known, found).with_columns(_misses())

    def add(**signs: pl.Expr) -> None:
        nonlocal found
        known = (sign.fill_null(value=False).alias(name) for name, sign in signs.items())
        each = of_each_process(rows, *known)
        found = found.with_columns(each[name] for name in signs)

    add(fits=_fits(thresholds))
    of_all = pl.coalesce("_median", "_any_median")
    if found["fits"].all():
        return found.select("process", _gogc=of_all, _gogc_known="fits")
    none = pl.lit(value=False)
    found = found.with_columns(contradicted=none, capped=pl.lit(None, pl.Float64))
    add(
        constant=_hardly_varies(thresholds),
        stepped=_is_step(thresholds),
        may_be_capped=levels.may_be_capped(thresholds),
    )
    if (found["constant"] & ~found["fits"]).any():
        rows = rows.with_columns(_near_miss=levels.near_miss())
        add(contradicted=levels.contradict_gogc() & _has_limits())
    if (found["may_be_capped"] & ~found["fits"]).any():
        capped = of_each_process(rows, levels.capped_gogc().alias("capped"))
        found = found.with_columns(
            pl.when("may_be_capped").then(capped["capped"]).alias("capped")
        )
    constant = pl.col("constant") & ~pl.col("contradicted")
    stepped = pl.col("stepped") & ~constant
    gogc = (
        pl.when("fits")
        .then(of_all)
        .when(pl.col("capped").is_not_null())
        .then("capped")
        .when(stepped)
        .then("_top")
        .otherwise("_median")
    )
    is_known = pl.col("fits") | pl.col("capped").is_not_null() | constant | stepped
    return found.select("process", _gogc=gogc, _gogc_known=is_known)


@cache
def _misses() -> tuple[pl.Expr, pl.Expr]:
    """Returns by how many MiB each goal misses that of one GOGC, and a constant one."""
    constant_miss = (pl.col("heap_goal_mib") - pl.col("_goal_median")).abs()
    is_known = pl.col("_any_gogc").is_not_null()
    return (
        levels.miss().alias("_miss"),
        pl.when(is_known).then(constant_miss).alias("_constant_miss"),
    )


def _has_limits() -> pl.Expr:
    """Returns whether a process may have a memory limit: there was none before Go 1.19."""
    return pl.col("stacks_mib").count() > 0


def _hardly_varies(thresholds: Thresholds) -> pl.Expr:
    """Returns whether the effective GOGC of a process hardly varies. Needs `_levels`."""
    spread = not_null((pl.col("_usable_gogc") - pl.col("_median")).abs()).median()
    return spread / pl.col("_median").first() <= thresholds.gogc_spread


def _is_step(thresholds: Thresholds) -> pl.Expr:
    """Returns whether the effective GOGC has a step at its top. Needs `_levels`.

    A memory limit only lowers goals. So if it sets most goals, GOGC is the highest effective value,
    provided that enough goals have it: then there is a step at this value.
    """
    gogc, top = pl.col("_usable_gogc"), pl.col("_top")
    tolerance = (_AT_TOP_SHARE * top).clip(lower_bound=_AT_TOP_POINTS)
    at_top = ((gogc - top).abs() <= tolerance).sum()
    low, high = _BELOW_TOP
    below = gogc.is_between(low * top, high * top, closed="left").sum()
    needed = pl.max_horizontal(2 * below, pl.lit(thresholds.gogc_step_cycles))
    return (top.first() >= thresholds.limit_gogc_bad) & (at_top >= needed)


@cache
def _fits(thresholds: Thresholds) -> pl.Expr:
    """Returns whether one GOGC explains the goals of a process to the printed MiB.

    The goals then follow the live heap, and a constant goal, as a limit sets it, does not
    explain them. This also holds for small heaps and a low GOGC, where the rounding to MiB
    makes the effective GOGC vary. Needs the columns of `_levels`, `_miss` and `_constant_miss`.
    """
    miss = pl.col("_miss")
    return (
        (pl.col("_any_gogc").count() >= thresholds.level_cycles)
        & levels.explains_goals(pl.col("_any_median").first(), miss)
        & levels.is_better(miss, pl.col("_constant_miss"))
    )


@cache
def _setter(thresholds: Thresholds) -> pl.Expr:
    """Returns `goal_set_by`; needs what `_inferred_gogc` returns, and `_rounding` of that GOGC."""
    effective, live = pl.col("effective_gogc"), pl.col("_live")
    gogc, gogc_known, rounding = (
        pl.col(name) for name in ("_gogc", "_gogc_known", "_rounding")
    )
    tolerance = rounding.clip(lower_bound=_GOGC_TOLERANCE * gogc)
    limited = (effective <= 0) & (live >= thresholds.thrash_min_live_mib)
    newer = pl.col("stacks_mib").is_not_null()  # there was no memory limit before Go 1.19
    minimum = (pl.col("heap_goal_mib") == HEAP_MINIMUM_MIB) & (2 * live <= HEAP_MINIMUM_MIB + 1)
    lowered = ~gogc_known | (effective < gogc - rounding)
    return (
        pl.when(limited & newer)
        .then(_category("memory-limit"))
        .when(minimum)
        .then(_category("heap-minimum"))
        .when(gogc_known & (effective - gogc).abs().le(tolerance))
        .then(_category("gogc"))
        .when(newer & pl.col("_usable_gogc").is_not_null() & lowered)
        .then(_category("memory-limit"))
        .alias("goal_set_by")
    )


def _category(name: str) -> pl.Expr:
    """Returns a category; to find those of text afterwards takes longer than everything else."""
    return pl.lit(name, dtype=pl.Categorical)


def goal_setters(metrics: pl.DataFrame) -> dict[str, int]:
    """Returns the number of cycles for each value of `goal_set_by`, the most common first."""
    counts = metrics["goal_set_by"].value_counts().iter_rows()
    known = [(str(setter), int(number)) for setter, number in counts if setter is not None]
    return dict(sorted(known, key=lambda each: (-each[1], each[0])))


def limit_sets_most_goals(metrics: pl.DataFrame) -> bool:
    """Returns whether the memory limit set most of the known goals, or two thirds of the time.

    While a heap fills, GOGC may set many goals in a moment.
    """
    if not (metrics["goal_set_by"] == "memory-limit").any():
        return False
    # Times of the next process begin again.
    setter, time = pl.col("goal_set_by"), pl.col("start_s").diff().clip(lower_bound=0)
    of_limit, timed = setter == "memory-limit", time.filter(setter.is_not_null())
    most = 2 * of_limit.sum() > setter.count()
    long = 3 * time.filter(of_limit).sum() > 2 * timed.sum()
    return bool(metrics.select(most | long).item())
