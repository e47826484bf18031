"""Who set a cycle's heap goal: GOGC, the memory limit, or the heap minimum."""

from __future__ import annotations

import polars as pl

from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds

HEAP_MINIMUM_MIB = 4
"""At GOGC=100; the minimum scales with GOGC (heapMinimum in runtime/mgcpacer.go)."""


def with_goal_set_by(frame: pl.DataFrame, thresholds: Thresholds = DEFAULT) -> pl.DataFrame:
    """The cycles with `goal_set_by`: `gogc`, `memory-limit`, `heap-minimum` or null.

    A goal at or below what was live before can only be the limit's; a goal that stays while
    the live heap moves is the limit's or the minimum's; a goal that is a constant multiple of
    the live heap is GOGC's. Needs `effective_gogc`.
    """
    gogc, live = pl.col("effective_gogc"), pl.col("_live")
    follows = pl.col("gc_num") == pl.col("gc_num").shift().over("process") + 1
    before = pl.when(follows).then(pl.col("heap_live_mib").shift().over("process"))
    judged = pl.when(live >= thresholds.gogc_min_live_mib).then(gogc)
    known = frame.with_columns(_live=before).with_columns(_judged=judged)
    per_process = known.group_by("process").agg(_of_process(thresholds))
    found = known.join(
        per_process, on="process", how="left", nulls_equal=True, maintain_order="left"
    )
    return found.with_columns(_setter(thresholds)).drop(
        "_live", "_judged", "_centre", "_agreed"
    )


def _of_process(thresholds: Thresholds) -> list[pl.Expr]:
    """GOGC is the value most cycles of a program agree on; without agreement there is none."""
    judged = pl.col("_judged")
    centre = judged.median()
    agreed = (judged - centre).abs().median() / centre <= thresholds.gogc_spread
    # A limit only lowers goals: where it sets most, GOGC is the step at the top, if any.
    top = judged.quantile(0.95)
    on_top = ((judged - top).abs() <= (0.03 * top).clip(lower_bound=2)).sum()
    below = judged.is_between(0.85 * top, 0.97 * top, closed="left").sum()
    least = pl.max_horizontal(2 * below, pl.lit(thresholds.gogc_step_cycles))
    stepped = ~agreed & (top >= thresholds.limit_gogc_bad) & (on_top >= least)
    return [
        pl.when(stepped).then(top).otherwise(centre).alias("_centre"),
        (agreed | stepped).alias("_agreed"),
    ]


def _setter(thresholds: Thresholds) -> pl.Expr:
    gogc, live = pl.col("effective_gogc"), pl.col("_live")
    centre, agreed = pl.col("_centre"), pl.col("_agreed")
    # The floors of goal and live heap move effective GOGC by so many points.
    rounding = 100 * (2 + centre / 100) / live
    limited = (gogc <= 0) & (live >= thresholds.thrash_min_live_mib)
    newer = pl.col("stacks_mib").is_not_null()  # no limit before Go 1.19
    minimum = (pl.col("heap_goal_mib") == HEAP_MINIMUM_MIB) & (2 * live <= HEAP_MINIMUM_MIB + 1)
    return (
        pl.when(limited & newer)
        .then(pl.lit("memory-limit"))
        .when(pl.col("heap_goal_mib").is_null() | live.is_null())
        .then(None)
        .when(minimum)
        .then(pl.lit("heap-minimum"))
        .when(agreed & (gogc - centre).abs().le(rounding.clip(lower_bound=0.02 * centre)))
        .then(pl.lit("gogc"))
        .when(newer & pl.col("_judged").is_not_null() & (~agreed | (gogc < centre - rounding)))
        .then(pl.lit("memory-limit"))
        .otherwise(None)
        .cast(pl.Categorical)
        .alias("goal_set_by")
    )
