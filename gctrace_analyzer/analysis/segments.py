"""The segments of a run: start-up, phases of different load, idle times, changed settings.

A figure calculated over several segments describes none of them, so each segment has its own
figures. A segment ends where GOMAXPROCS changes, where idle times (periodic cycles, or none for
long) begin or end, and where the allocation rate or the effective GOGC moves to another level for
ten cycles and a second or more.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.cycles import (
    alloc_before_mib,
    before,
    by_process,
    counted_alloc_mib,
    is_one_process,
    ratio,
    within_process,
)
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.ingest.rows import complete, parted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OTHER_RATE = 2.0
"""If the allocation rate changes by more than this factor, another load phase begins."""

OTHER_GOGC = 1.2
"""If the effective GOGC changes by more than this factor, GOGC was set to another value."""

_IDLE_RATE = 0.5
"""Share of the usual allocation rate. At or below it, a program that has its usual load when it
is busy was idle for half of the time or more."""

LEVEL_S = 1.0
"""Seconds that a level lasts at least. At a hundred cycles per second, ten cycles are a tenth of
a second, and a load that varies as every load does would be dozens of phases."""

_KINDS = pl.Enum(["start-up", "load", "idle"])


def idle_gap(t: Thresholds, within: Callable[[pl.Expr], pl.Expr]) -> pl.Expr:
    """Returns whether hardly anything was allocated for far longer than usual `within` a process.

    After a peak of the heap the goal is high, and a busy program has no cycle for long either.
    While it fills its heap, cycles are more frequent than ever after, so start-up is not usual.
    """
    gap, late = pl.col("interval_s"), pl.col("start_s") >= t.warm_up_s
    usual = within(pl.col("alloc_mib_per_s").filter(late).median())
    usual_s = within(gap.filter(late).median())
    idle = (before("alloc_mib_per_s") <= _IDLE_RATE * usual).fill_null(value=True)
    return (gap >= t.idle_gap_s) & (gap >= t.idle_gap_times * usual_s) & idle


def segments(enriched: pl.DataFrame) -> pl.DataFrame:
    """Returns the segments of each process (`schema.SEGMENTS`).

    Args:
        enriched: what `episodes.enrich` returns.
    """
    timed = complete(enriched, "start_s")
    parts = [_numbered(part, DEFAULT) for part in _apart(timed, DEFAULT)]
    types = schema.polars_schema("segments")
    if not parts:
        return pl.DataFrame(schema=types)
    rows = pl.concat(parts).group_by("process", "segment", maintain_order=True).agg(_figures())
    if len(parts) > 1:
        rows = rows.sort("process", "segment")
    return rows.select(pl.col(name).cast(kind) for name, kind in types.items())


def _apart(timed: pl.DataFrame, t: Thresholds) -> list[pl.DataFrame]:
    """Returns the cycles of each process whose levels may change, and those of all others."""
    if is_one_process(timed):
        return [timed]
    is_long = pl.len().over("process") >= 2 * t.level_cycles
    long, short = parted(timed, timed.select(is_long).to_series())
    return [*(by_process(long) if len(long) else []), *([short] if len(short) else [])]


def _numbered(cycles: pl.DataFrame, t: Thresholds) -> pl.DataFrame:
    """Returns the cycles with the number and kind of their segment.

    Args:
        cycles: those of one process, or of several that are too short for changes of a level.
        t: how short that is.
    """
    within = within_process(cycles)
    label = _labels(cycles, t)
    known = cycles.with_columns(kind=label, allocated_mib=counted_alloc_mib(alloc_before_mib()))
    changes = [
        (pl.col(name) != within(pl.col(name).shift(1))).fill_null(value=False)
        for name in ("kind", "procs")
    ]
    boundary = known.select(pl.any_horizontal(changes)).to_series()
    if len(cycles) >= 2 * t.level_cycles and is_one_process(cycles):
        boundary |= _level_changes(cycles, t)
    return known.with_columns(boundary.alias("segment")).with_columns(
        within(pl.col("segment").cum_sum()).alias("segment")
    )


def _level_changes(cycles: pl.DataFrame, t: Thresholds) -> pl.Series:
    """Returns where the allocation rate or the effective GOGC of a process changes its level."""
    usual_s = cycles["interval_s"].median()
    long = LEVEL_S / usual_s if isinstance(usual_s, float) and usual_s > 0 else 0.0
    most = max(t.level_cycles, len(cycles) // 4)
    fewest = min(max(t.level_cycles, math.ceil(long)), most)
    large_enough = cycles["heap_live_mib"] >= t.gogc_min_live_mib
    gogc = cycles.select(pl.when(large_enough).then("effective_gogc")).to_series()
    return level_changes(cycles["alloc_mib_per_s"], OTHER_RATE, fewest) | level_changes(
        gogc, OTHER_GOGC, fewest
    )


def _figures() -> Iterator[pl.Expr]:
    def total(name: str) -> pl.Expr:
        return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum())

    gc, span = total("gc_cpu_ms") / 1000, pl.col("elapsed_s").sum()
    capacity = (pl.col("elapsed_s") * pl.col("cpus")).sum()
    # As in the summary of the run, so that phases and run can be compared.
    alloc_s = pl.col("elapsed_s").filter(pl.col("allocated_mib").is_not_null()).sum()
    alloc = pl.when(pl.len() > 1).then(ratio(total("allocated_mib"), alloc_s))
    yield from (
        pl.col("kind").first().cast(pl.String),
        # An idle time begins where the cycle before it ended.
        pl.when(pl.col("kind").first() == "idle")
        .then((pl.col("end_s") - pl.col("elapsed_s")).first())
        .otherwise(pl.col("start_s").first())
        .alias("start_s"),
        pl.col("end_s").last(),
        pl.col("gc_num").first().alias("first_gc"),
        pl.col("gc_num").last().alias("last_gc"),
        pl.len().alias("cycles"),
        pl.col("procs").first(),
        ratio(pl.len(), span).alias("gc_per_s"),
        ratio(gc, capacity).alias("gc_cpu_share"),
        ratio(total("assist_cpu_ms") / 1000, gc).alias("assist_share_of_gc_cpu"),
        alloc.alias("alloc_mib_per_s"),
        pl.col("heap_live_mib").median().alias("live_heap_p50_mib"),
        pl.col("effective_gogc").median().alias("effective_gogc_p50"),
    )


def _kind(name: str) -> pl.Expr:
    return pl.lit(name, _KINDS)


def _labels(cycles: pl.DataFrame, t: Thresholds) -> pl.Series:
    low, high = t.periodic_s
    # The cycle before the first long gap was still caused by load.
    idle = pl.col("interval_s").is_between(low, high) | idle_gap(t, within_process(cycles))
    return cycles.select(
        pl.when(pl.col("start_s") < t.warm_up_s)
        .then(_kind("start-up"))
        .when(idle.fill_null(value=False))
        .then(_kind("idle"))
        .otherwise(_kind("load"))
        .alias("label")
    ).to_series()


def level_changes(values: pl.Series, times: float, min_cycles: int) -> pl.Series:
    """Returns True where the level changes.

    The level changes where the medians of the `min_cycles` values before and after differ by
    more than a factor of `times`. Of neighbouring places where this is so, only the one with
    the largest difference counts, or the middle one of several.
    """
    nothing = pl.repeat(value=False, n=len(values), eager=True)
    if len(values) < 2 * min_cycles:
        return nothing
    filled = (
        values.cast(pl.Float64).fill_null(strategy="forward").fill_null(strategy="backward")
    )
    if filled.null_count():
        return nothing
    medians = filled.rolling_median(min_cycles)
    before, after = medians.shift(1), medians.shift(1 - min_cycles)
    ratio = (after / before).log().abs()
    far = (ratio > pl.Series([times]).log()[0]).fill_null(value=False)
    if not far.any():
        return nothing
    table = pl.DataFrame({"run": far.rle_id(), "ratio": ratio}).filter(far)
    top = pl.col("ratio") == pl.col("ratio").max().over("run")
    number = top.cast(pl.Int64).cum_sum().over("run")
    middle = top & (number == (top.cast(pl.Int64).sum().over("run") + 1) // 2)
    changes = far.arg_true().filter(table.select(middle.fill_null(value=False)).to_series())
    return nothing.scatter(changes, values=True)
