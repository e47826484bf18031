"""A run's stretches of different life: start-up, phases of load, idle times, other settings.

A figure over all of them is nobody's: each has its own. Borders are where GOMAXPROCS changes,
where the two-minute cycles begin and end, and where allocation rate or GOGC in effect moves to
another level for ten cycles and more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds

if TYPE_CHECKING:
    from collections.abc import Iterator

OTHER_RATE = 2.0
"""Times the allocation rate: another phase of the load."""

OTHER_GOGC = 1.2
"""Times the GOGC in effect: somebody has set another."""


def segments(judged: pl.DataFrame, thresholds: Thresholds = DEFAULT) -> pl.DataFrame:
    """`schema.SEGMENTS` of each program; `judged` is what `episodes.judge` gives."""
    timed = judged.filter(pl.col("start_s").is_not_null())
    parts = [
        _numbered(part, thresholds)
        for part in timed.partition_by("process", maintain_order=True)
    ]
    types = schema.polars_schema("segments")
    if not parts:
        return pl.DataFrame(schema=types)
    rows = pl.concat(parts).group_by("process", "segment", maintain_order=True).agg(_figures())
    return rows.select(pl.col(name).cast(kind) for name, kind in types.items())


def _numbered(cycles: pl.DataFrame, t: Thresholds) -> pl.DataFrame:
    """The cycles of one program with the number and kind of their segment."""
    label = _labels(cycles, t)
    border = (label != label.shift(1)).fill_null(value=False)
    border |= _moves(cycles["alloc_mib_per_s"], OTHER_RATE, t.level_cycles)
    sound = cycles["heap_live_mib"] >= t.gogc_min_live_mib
    gogc = cycles.select(pl.when(sound).then("effective_gogc")).to_series()
    border |= _moves(gogc, OTHER_GOGC, t.level_cycles)
    border |= (cycles["procs"] != cycles["procs"].shift(1)).fill_null(value=False)
    return cycles.with_columns(segment=border.cum_sum(), kind=label)


def _figures() -> Iterator[pl.Expr]:
    def total(name: str) -> pl.Expr:
        return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum())

    def ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
        return pl.when(whole > 0).then(part / whole)

    gc, span = total("gc_cpu_ms") / 1000, pl.col("elapsed_s").sum()
    capacity = (pl.col("elapsed_s") * pl.col("procs")).sum()
    alloc_s = pl.col("interval_s").shift(-1).sum()
    alloc = pl.when(pl.len() > 1).then(ratio(total("alloc_mib"), alloc_s))
    yield from (
        pl.col("kind").first(), pl.col("start_s").first(), pl.col("end_s").last(),
        pl.col("gc_num").first().alias("first_gc"), pl.col("gc_num").last().alias("last_gc"),
        pl.len().alias("cycles"), pl.col("procs").first(),
        ratio(pl.len(), span).alias("gc_per_s"),
        ratio(gc, capacity).alias("gc_cpu_share"),
        ratio(total("assist_cpu_ms") / 1000, gc).alias("assist_share_of_gc_cpu"),
        alloc.alias("alloc_mib_per_s"),
        pl.col("heap_live_mib").median().alias("live_heap_p50_mib"),
        pl.col("effective_gogc").median().alias("effective_gogc_p50"),
    )  # fmt: skip


def _labels(cycles: pl.DataFrame, t: Thresholds) -> pl.Series:
    low, high = t.periodic_s
    idle = pl.col("interval_s").is_between(low, high)
    # The cycle before the first two-minute one ends the busy time.
    return cycles.select(
        pl.when(pl.col("start_s") < t.warm_up_s)
        .then(pl.lit("start-up"))
        .when(idle.fill_null(value=False))
        .then(pl.lit("idle"))
        .otherwise(pl.lit("load"))
        .alias("label")
    ).to_series()


def _moves(values: pl.Series, times: float, fewest: int) -> pl.Series:
    """Where the level moves: the medians of the cycles before and after are so far apart.

    Of neighbouring places the one where they are farthest.
    """
    nothing = pl.repeat(value=False, n=len(values), eager=True)
    if len(values) < 2 * fewest:
        return nothing
    filled = (
        values.cast(pl.Float64).fill_null(strategy="forward").fill_null(strategy="backward")
    )
    if filled.null_count():
        return nothing
    before = filled.rolling_median(fewest).shift(1)
    after = filled.reverse().rolling_median(fewest).reverse()
    ratio = (after / before).log().abs()
    far = (ratio > pl.Series([times]).log()[0]).fill_null(value=False)
    run = far.rle_id()
    table = pl.DataFrame({"far": far, "run": run, "ratio": ratio})
    top = (pl.col("ratio") == pl.col("ratio").max().over("run")) & pl.col("far")
    first = top & (top.cast(pl.Int64).cum_sum().over("run") == 1)
    return table.select(first.fill_null(value=False)).to_series()
