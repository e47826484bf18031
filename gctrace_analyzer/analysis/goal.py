"""Who set a cycle's heap goal: GOGC, the memory limit, or the heap minimum."""

from __future__ import annotations

import polars as pl

from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds

HEAP_MINIMUM_MIB = 4
"""At GOGC=100; the minimum scales with GOGC (heapMinimum in runtime/mgcpacer.go)."""


def goal_set_by(thresholds: Thresholds = DEFAULT) -> pl.Expr:
    """`gogc`, `memory-limit`, `heap-minimum` or null for each cycle.

    A goal at or below what was live before can only be the limit's; a goal that stays while
    the live heap moves is the limit's or the minimum's; a goal that is a constant multiple of
    the live heap is GOGC's. Needs `effective_gogc`.
    """
    live = pl.when(pl.col("gc_num") == pl.col("gc_num").shift().over("process") + 1).then(
        pl.col("heap_live_mib").shift().over("process")
    )
    # GOGC's value is the one most cycles agree on; without agreement there is none.
    gogc = pl.col("effective_gogc")
    judged = pl.when(live >= thresholds.gogc_min_live_mib).then(gogc)
    centre = judged.median().over("process")
    spread = (judged - centre).abs().median().over("process") / centre
    agreed = spread <= thresholds.gogc_spread
    # A limit only lowers goals: where it sets most, GOGC is the step at the top, if any.
    top = judged.quantile(0.95).over("process")
    on_top = ((judged - top).abs() <= (0.03 * top).clip(lower_bound=2)).sum().over("process")
    below = judged.is_between(0.85 * top, 0.97 * top, closed="left").sum().over("process")
    stepped = ~agreed & (top >= thresholds.limit_gogc_bad) & (
        on_top >= (2 * below).clip(lower_bound=thresholds.gogc_step_cycles)
    )  # fmt: skip
    centre, agreed = pl.when(stepped).then(top).otherwise(centre), agreed | stepped
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
        .when(newer & judged.is_not_null() & (~agreed | (gogc < centre - rounding)))
        .then(pl.lit("memory-limit"))
        .otherwise(None)
        .cast(pl.Categorical)
        .alias("goal_set_by")
    )
