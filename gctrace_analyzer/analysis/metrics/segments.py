"""The segments of a process from its intervals: phases of different load, idle times."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.segments import OTHER_RATE, level_changes
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds

if TYPE_CHECKING:
    from collections.abc import Iterator

LEAST_INTERVALS = 5
LEAST_S = 30.0
"""A level that lasts for less is not a phase."""


def segments(intervals: pl.DataFrame, thresholds: Thresholds = DEFAULT) -> pl.DataFrame:
    """Returns the segments of each process (`schema.SEGMENTS`).

    A segment ends where GOMAXPROCS or GOGC changes, and where the allocation rate moves to
    another level for five intervals and 30 s or more.

    Args:
        intervals: what `intervals.intervals` returns.
        thresholds: how long idle cycles are apart.
    """
    types = schema.polars_schema("segments")
    if not intervals.width or intervals.is_empty():
        return pl.DataFrame(schema=types)
    live, goal = pl.col("heap_live_mib"), pl.col("heap_goal_mib")
    rows = intervals.with_columns(effective_gogc=100 * (goal - live) / live)
    parts = [_numbered(part) for part in rows.partition_by("process", maintain_order=True)]
    found = pl.concat(parts).group_by("process", "segment", maintain_order=True).agg(_figures())
    # An idle program collects every two minutes, because the runtime forces it.
    most = 1 / thresholds.periodic_s[0]
    is_idle = (pl.col("gc_per_s") <= most).fill_null(value=False)
    kind = pl.when(is_idle).then(pl.lit("idle")).otherwise(pl.lit("load"))
    return found.with_columns(kind=kind).select(
        pl.col(name).cast(each) for name, each in types.items()
    )


def _numbered(rows: pl.DataFrame) -> pl.DataFrame:
    usual_s = max(float(rows["length_s"].median() or 0.0), 1e-3)  # type: ignore[arg-type]
    least = max(LEAST_INTERVALS, math.ceil(LEAST_S / usual_s))
    boundary = level_changes(rows["alloc_mib_per_s"], OTHER_RATE, least)
    for name in ("procs", "gogc_pct"):
        known = rows[name].fill_null(strategy="forward")
        boundary |= (known != known.shift(1)).fill_null(value=False)
    return rows.with_columns(segment=boundary.cum_sum())


def _figures() -> Iterator[pl.Expr]:
    share, base = pl.col("gc_cpu_share"), pl.col("gc_cpu_base")
    cycles, length = pl.col("gc_cycles"), pl.col("length_s")
    yield from (
        pl.col("begin_s").first().alias("start_s"),
        pl.col("end_s").last(),
        (pl.col("num_gc") - cycles + 1).drop_nulls().first().alias("first_gc"),
        pl.col("num_gc").drop_nulls().last().alias("last_gc"),
        cycles.sum().alias("cycles"),
        pl.col("procs").drop_nulls().first(),
        _ratio(cycles, length).alias("gc_per_s"),
        _ratio(share * base, base).alias("gc_cpu_share"),
        _ratio(pl.col("assist_cpu_s"), pl.col("gc_cpu_s")).alias("assist_share_of_gc_cpu"),
        _ratio(pl.col("alloc_mib"), length).alias("alloc_mib_per_s"),
        pl.col("heap_live_mib").median().alias("live_heap_p50_mib"),
        pl.col("effective_gogc").median().alias("effective_gogc_p50"),
    )


def _ratio(numerator: pl.Expr, denominator: pl.Expr) -> pl.Expr:
    """Returns the ratio of the sums where both are known; null if the divisor is 0."""
    known = numerator.is_not_null() & denominator.is_not_null()
    below = denominator.filter(known).sum()
    return pl.when(below > 0).then(numerator.filter(known).sum() / below)
