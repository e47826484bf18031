"""The live heap of dumps that do not have it, from the heap goal.

Since Go 1.18 the goal is live + (live + stacks + globals) × GOGC/100 (mgcpacer.go,
commitHeapGoal). Under a memory limit, or with an unknown GOGC, the allocation per cycle shows
it: a cycle starts when the heap has covered most of the way from the live heap to the goal.
"""

from __future__ import annotations

import polars as pl

from gctrace_analyzer.units import MIB

HEAP_MINIMUM_MIB = 4.2
"""A goal up to this times GOGC/100 is set by the heap minimum (4 MiB), not by the live heap."""

AT_LIMIT = 0.93
"""Share of the goal that the memory limit allows, from which on the limit sets the goal."""

TRIGGER, TRIGGER_WIDE = 0.8, 0.87
"""The share of the room between live heap and goal that is allocated per cycle; the second if
a cycle allocates more than half of the goal. Fitted on 24 runs of 7 programs."""

USUAL_GOGC = (70.0, 140.0)
"""If GOGC is unknown and the allocation per cycle shows an effective GOGC in this range, GOGC is
assumed to be 100, the default."""

FEWEST_CYCLES = 2


def with_limits(rows: pl.DataFrame) -> pl.DataFrame:
    """Adds goal, roots, other memory, whether the limit sets the goal, and the live heap."""
    limit, other = pl.col("limit_mib"), pl.col("other_mib")
    g = pl.col("gogc") / 100
    rows = rows.with_columns(
        goal_mib=pl.col("next_gc_bytes") / MIB,
        roots_mib=(
            pl.coalesce("stack_scan_bytes", "stack_inuse_bytes", 0)
            + pl.col("globals_scan_bytes").fill_null(0)
        )
        / MIB,
        other_mib=(pl.col("sys_bytes") - pl.col("heap_idle_bytes") - pl.col("heap_alloc_bytes"))
        / MIB,
    )
    # The runtime keeps 3 % of headroom below the limit, at least 1 MiB (memoryLimitHeapGoal).
    allowed = limit - other - pl.max_horizontal(0.03 * (limit - other), pl.lit(1.0))
    goal, roots = pl.col("goal_mib"), pl.col("roots_mib")
    by_gogc = (
        (pl.col("gogc") > 0)
        & ~pl.col("by_limit").fill_null(value=False)
        & (goal > HEAP_MINIMUM_MIB * g)
    )
    read = pl.col("heap_live_bytes") / MIB
    return rows.with_columns(
        by_limit=pl.when(limit.is_not_null()).then(goal >= AT_LIMIT * allowed)
    ).with_columns(
        live_is_read=read.is_not_null(),
        live_row_mib=pl.coalesce(read, pl.when(by_gogc).then((goal - roots * g) / (1 + g))),
    )


def with_live_heap(found: pl.DataFrame) -> pl.DataFrame:
    """Adds the means of goal and live heap to intervals."""
    found = found.with_columns(heap_goal_mib=_mean("goal_mib"))
    whole = (
        found.group_by("process")
        .agg(
            alloc=pl.col("alloc_mib").sum() / pl.col("gc_cycles").sum(),
            cycles=pl.col("gc_cycles").sum(),
            goal=pl.col("heap_goal_mib").mean(),
            roots=pl.col("roots_mib").mean(),
            unknown=pl.col("live_row_mib").is_null().all(),
            limited=pl.col("by_limit").mean(),
        )
        .with_columns(ident=_by_cycle(pl.col("alloc"), pl.col("goal")))
    )
    effective = 100 * (pl.col("goal") - pl.col("ident")) / (pl.col("ident") + pl.col("roots"))
    assumed = (
        pl.col("unknown")
        & (pl.col("cycles") >= FEWEST_CYCLES)
        & effective.is_between(*USUAL_GOGC)
        & (pl.col("goal") > HEAP_MINIMUM_MIB)
        & ~(pl.col("limited") > 0.5).fill_null(value=False)
    )
    whole = whole.select("process", is_usual=assumed.fill_null(value=False))
    found = found.join(whole, on="process", how="left", maintain_order="left")
    per_cycle = pl.when(pl.col("gc_cycles") >= FEWEST_CYCLES).then(
        # Whole cycles over the time between their ends have no error at the edges.
        pl.col("alloc_mib_per_s")
        * pl.when(pl.col("ends_s") > 0).then("ends_s").otherwise("length_s")
        / pl.col("gc_cycles")
    )
    goal = pl.col("heap_goal_mib")
    usual = pl.when(pl.col("is_usual")).then(
        (goal - pl.mean_horizontal("roots_mib", "roots_mib_before")) / 2
    )
    ident = _by_cycle(per_cycle, goal)
    return found.with_columns(
        alloc_per_cycle_mib=per_cycle,
        heap_live_mib=pl.coalesce(_mean("live_row_mib"), usual, pl.when(ident > 0).then(ident)),
    )


def _mean(name: str) -> pl.Expr:
    return pl.mean_horizontal(name, f"{name}_before")


def _by_cycle(alloc: pl.Expr, goal: pl.Expr) -> pl.Expr:
    share = pl.when(alloc < 0.5 * goal).then(TRIGGER).otherwise(TRIGGER_WIDE)
    return goal - alloc / share
