"""A run's stretches of different life: start-up, phases of load, idle times, other settings.

A figure over all of them is nobody's: each has its own. Borders are where GOMAXPROCS changes,
where the two-minute cycles begin and end, and where allocation rate or GOGC in effect moves to
another level for ten cycles and more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    rows: list[dict[str, Any]] = []
    for part in judged.partition_by("process", maintain_order=True):
        timed = part.filter(pl.col("start_s").is_not_null())
        if len(timed):
            rows += _of_program(timed, thresholds)
    return pl.DataFrame(rows, schema=schema.polars_schema("segments"))


def _of_program(cycles: pl.DataFrame, t: Thresholds) -> Iterator[dict[str, Any]]:
    label = _labels(cycles, t)
    border = (label != label.shift(1)).fill_null(value=False)
    border |= _moves(cycles["alloc_mib_per_s"], OTHER_RATE, t.level_cycles)
    sound = cycles["heap_live_mib"] >= t.gogc_min_live_mib
    gogc = cycles.select(pl.when(sound).then("effective_gogc")).to_series()
    border |= _moves(gogc, OTHER_GOGC, t.level_cycles)
    border |= (cycles["procs"] != cycles["procs"].shift(1)).fill_null(value=False)
    number = border.cum_sum()
    for index, part in enumerate(cycles.with_columns(segment=number, label=label).partition_by(
        "segment", maintain_order=True
    )):  # fmt: skip
        yield _row(part, index)


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


def _row(part: pl.DataFrame, index: int) -> dict[str, Any]:
    first, last = part.row(0, named=True), part.row(-1, named=True)
    sums = part.select(
        gc=pl.col("gc_cpu_ms").sum() / 1000,
        capacity=(pl.col("elapsed_s") * pl.col("procs")).sum(),
        span=pl.col("elapsed_s").sum(),
        assist=pl.col("assist_cpu_ms").sum() / 1000,
        alloc=pl.col("alloc_mib").sum(),
        alloc_s=pl.col("interval_s").shift(-1).sum(),
        live=pl.col("heap_live_mib").median(),
        gogc=pl.col("effective_gogc").median(),
    ).row(0, named=True)

    def ratio(part: float | None, whole: float | None) -> float | None:
        return part / whole if part is not None and whole else None

    return {
        "process": first["process"], "segment": index, "kind": first["label"],
        "start_s": first["start_s"], "end_s": last["end_s"], "first_gc": first["gc_num"],
        "last_gc": last["gc_num"], "cycles": len(part), "procs": first["procs"],
        "gc_per_s": ratio(len(part), sums["span"]),
        "gc_cpu_share": ratio(sums["gc"], sums["capacity"]),
        "assist_share_of_gc_cpu": ratio(sums["assist"], sums["gc"]),
        "alloc_mib_per_s": ratio(sums["alloc"], sums["alloc_s"]) if len(part) > 1 else None,
        "live_heap_p50_mib": sums["live"], "effective_gogc_p50": sums["gogc"],
    }  # fmt: skip
