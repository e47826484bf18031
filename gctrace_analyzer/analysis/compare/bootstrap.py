"""How far a figure of a run may be off, from the run itself: cycles hang together.

The variance of a ratio of sums is that of the circular block bootstrap (Politis and Romano,
1992), in its closed form: with infinitely many resamples of blocks of neighbouring cycles, the
variance of a sum is that of the blocks' sums. No dice, so the same logs give the same interval.
Quantiles have Woodruff's interval (1952): the blocks tell how far the share of values below the
quantile may be off, and the values at these shares are its ends.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.compare.metrics import METRICS, NAMED, QUANTILES, ratios

if TYPE_CHECKING:
    from collections.abc import Mapping

_PACER_MEMORY = 5
"""The pacer's runway is the largest of five cycles: neighbours that near hang together."""

_FEWEST_BLOCKS = 5

_LEVEL_SHARE = 0.10
"""The live heap has settled when it is this near to what it is in the second half."""

_LEVEL_MIB = 2.0
"""Two whole MiB of a small heap are rounding and floating garbage."""

_SMOOTHED_CYCLES = 3
"""A median of three takes out single cycles and delays nothing."""

_Z95 = 1.959964
"""Pauses of two kinds lie apart: a narrower look would not see across the gap."""


def block_cycles(cycles: int) -> int:
    """The length of a block: the cube root of the cycles, but the pacer's memory at least."""
    wanted = max(_PACER_MEMORY, round(math.cbrt(cycles)))
    return max(min(wanted, cycles // _FEWEST_BLOCKS), 1)


def spreads(
    corrected: pl.DataFrame, values: Mapping[str, float | None]
) -> dict[str, float | None]:
    """The standard error of each metric on the scale of the comparison, within this run.

    Args:
        corrected: `correct_durations(cycles)`.
        values: the metrics' values (`measures.figures`).
    """
    length = block_cycles(len(corrected))
    sums = {
        name: _Sum(numerator, denominator)
        for name, (numerator, denominator) in ratios().items()
        if values[name] is not None
    }
    for name, (columns, _) in QUANTILES.items():
        if (value := values[name]) is not None:
            sums[name] = _below(columns, value)
    errors = _standard_errors(corrected, sums, length)
    found: dict[str, float | None] = dict.fromkeys(metric.name for metric in METRICS)
    for name, error in errors.items():
        value = values[name]
        if error is None or value is None:
            continue
        if name in QUANTILES:
            found[name] = _woodruff(corrected, name, error)
        else:
            found[name] = error / (value + NAMED[name].floor)
    found["heap_peak_mib"] = _of_peak(corrected)
    return found


def started(corrected: pl.DataFrame) -> pl.Series:
    """Whether a cycle is of the time after its program's start-up.

    A start-up is different in the same way each time, which is no chance: the two stretches
    are each held against their own mean. It ends when the live heap is first where it is in
    the second half; one that takes more than a third of the run is no start-up.
    """
    time, live = pl.col("start_s"), pl.col("heap_live_mib").cast(pl.Float64)
    begin, end = time.min(), time.max()
    level = live.filter(time >= (begin + end) / 2).median()
    smooth = live.rolling_median(_SMOOTHED_CYCLES, min_samples=1)
    near = (smooth - level).abs() <= pl.max_horizontal(_LEVEL_SHARE * level, _LEVEL_MIB)
    first = time.filter(near).min()
    settled = pl.when(first - begin <= (end - begin) / 3).then(first).otherwise(begin)
    return corrected.select((time >= settled).over("process").alias("started")).to_series()


class _Sum:
    """A ratio of sums over the cycles where both parts are known."""

    def __init__(self, numerator: pl.Expr, denominator: pl.Expr) -> None:
        known = numerator.is_not_null() & denominator.is_not_null()
        self.numerator = pl.when(known).then(numerator).otherwise(0.0)
        self.denominator = pl.when(known).then(denominator).otherwise(0.0)


def _below(columns: tuple[str, ...], value: float) -> _Sum:
    """How many of a cycle's values are below; those equal count half."""
    below = pl.sum_horizontal(
        (pl.col(column) < value).cast(pl.Float64).fill_null(0)
        + 0.5 * (pl.col(column) == value).cast(pl.Float64).fill_null(0)
        for column in columns
    )
    known = pl.sum_horizontal(
        pl.col(column).is_not_null().cast(pl.Float64) for column in columns
    )
    return _Sum(below, known)


def _standard_errors(
    corrected: pl.DataFrame, sums: Mapping[str, _Sum], length: int
) -> dict[str, float | None]:
    parts = corrected.select(
        *(each.numerator.alias(f"{name}/n") for name, each in sums.items()),
        *(each.denominator.alias(f"{name}/d") for name, each in sums.items()),
    )
    totals = parts.sum().row(0, named=True)
    told = [name for name in sums if totals[f"{name}/d"]]
    # What the ratio's own value leaves over: its block sums tell the ratio's variance.
    rest = parts.select(
        (pl.col(f"{name}/n") - totals[f"{name}/n"] / totals[f"{name}/d"] * pl.col(f"{name}/d"))
        .alias(name)
        for name in told
    ).with_columns(started(corrected)).select(
        pl.col(told) - pl.col(told).mean().over("started")
    )  # fmt: skip
    n = len(rest)
    ring = pl.concat([rest, rest.head(length - 1)]) if length > 1 else rest
    block = ring.select(pl.col(told).rolling_sum(length)).tail(n)
    squares = block.select((pl.col(told) ** 2).mean()).row(0, named=True)
    # A mean taken from the data takes up one of n / length blocks.
    small = n / (n - length) if n > length else 1.0
    found: dict[str, float | None] = dict.fromkeys(sums)
    for name in told:
        variance = squares[name] * n / length * small
        found[name] = math.sqrt(max(variance, 0.0)) / totals[f"{name}/d"]
    return found


def _woodruff(corrected: pl.DataFrame, name: str, error: float) -> float:
    columns, share = QUANTILES[name]
    metric = NAMED[name]
    values = pl.concat([corrected[column].drop_nulls().cast(pl.Float64) for column in columns])
    low, high = (
        metric.scaled(values.quantile(min(max(each, 0.0), 1.0), "linear") or 0.0)
        for each in (share - _Z95 * error, share + _Z95 * error)
    )
    return (high - low) / (2 * _Z95)


def _of_peak(corrected: pl.DataFrame) -> float | None:
    """The largest of some values: as far off as it lies above its tenth-largest part."""
    ends = corrected["heap_end_mib"].drop_nulls().cast(pl.Float64)
    if ends.is_empty():
        return None
    metric = NAMED["heap_peak_mib"]
    top = metric.scaled(float(ends.max() or 0.0))  # type: ignore[arg-type]  # a numeric column
    return (top - metric.scaled(ends.quantile(0.9, "linear") or 0.0)) / 2
