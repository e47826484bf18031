"""The standard error of each figure within one run, by a block bootstrap in closed form.

Successive cycles are correlated, so blocks of neighbouring cycles are resampled, not single
cycles. The variance of a ratio of sums is that of the circular block bootstrap (Politis and
Romano, 1992). In the limit of infinitely many resamples, it is the variance of the blocks'
sums, so no random numbers are needed and the same logs give the same interval. Quantiles have
Woodruff's interval (1952): the blocks give the error of the share of values below the quantile,
and the values at the ends of that interval of shares are the ends of the quantile's interval.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.compare.metrics import METRICS, NAMED, QUANTILES
from gctrace_analyzer.analysis.totals import RATES, part, whole
from gctrace_analyzer.analysis.trend import Z95

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.analysis.compare.metrics import Metric

_PACER_MEMORY = 5
"""Cycles. The pacer's runway is the maximum over the last five cycles, so up to five
successive cycles are correlated."""

_MIN_BLOCKS = 5
"""Blocks. With fewer, the variance of their sums is unknown."""

_LEVEL_SHARE = 0.10
"""Relative difference. The live heap has settled when it differs by less than this from its
median in the second half of the run."""

_LEVEL_MIB = 2.0
"""MiB. A smaller difference is rounding and floating garbage."""

_SMOOTHED_CYCLES = 3
"""Cycles. A median of three removes single outliers without a delay."""


def block_cycles(cycles: int) -> int:
    """Returns the length of a block in cycles.

    It is the cube root of the number of cycles, but at least as many cycles as the pacer looks
    back. It is shorter if there would be fewer than `_MIN_BLOCKS` blocks otherwise.
    """
    wanted = max(_PACER_MEMORY, round(math.cbrt(cycles)))
    return max(min(wanted, cycles // _MIN_BLOCKS), 1)


def spreads(
    spans: pl.DataFrame,
    values: Mapping[str, float | None],
    quantiles: Mapping[str, tuple[tuple[str, ...], float]] = QUANTILES,
) -> dict[str, float | None]:
    """Returns the standard error of each metric within a run, on the metric's scale.

    Args:
        spans: what happened in the run (`analysis.spans`).
        values: what `metrics.figures` returns.
        quantiles: the columns and the quantile of the metrics that are quantiles.
    """
    length = block_cycles(len(spans))
    sums = {
        name: (part(name).fill_null(0.0), whole(name).fill_null(0.0))
        for name in RATES
        if values.get(name) is not None
    }
    quantiles = {
        name: quantile
        for name, quantile in quantiles.items()
        if values[name] is not None and set(quantile[0]) <= set(spans.columns)
    }
    for name, (columns, _) in quantiles.items():
        sums[name] = _below(columns, values[name] or 0.0)
    errors = _standard_errors(spans, sums, length)
    result: dict[str, float | None] = dict.fromkeys(metric.name for metric in METRICS)
    for name, error in errors.items():
        value = values[name]
        if error is None or value is None:
            continue
        if name in quantiles:
            result[name] = _woodruff(spans, NAMED[name], quantiles[name], error)
        elif (scale := value + NAMED[name].floor) > 0:
            result[name] = error / scale
    result["heap_peak_mib"] = _peak_error(spans)
    return result


def started(spans: pl.DataFrame) -> pl.Series:
    """Returns True for the spans after the start-up of their process.

    Every start-up differs from the rest of its run in the same way, so this difference is not
    noise: the start-up and the rest are each compared with their own mean. The start-up ends
    when the live heap first reaches its level in the second half. If that takes over a third
    of the time, no cycle counts as start-up.
    """
    time, live = pl.coalesce("start_s", "begin_s"), pl.col("heap_live_mib").cast(pl.Float64)
    begin, end = time.min(), time.max()
    level = live.filter(time >= (begin + end) / 2).median()
    smooth = live.rolling_median(_SMOOTHED_CYCLES, min_samples=1)
    settled = (smooth - level).abs() <= pl.max_horizontal(_LEVEL_SHARE * level, _LEVEL_MIB)
    first = time.filter(settled).min()
    warmed_up_s = pl.when(first - begin <= (end - begin) / 3).then(first).otherwise(begin)
    return spans.select((time >= warmed_up_s).over("process").alias("started")).to_series()


def _below(columns: tuple[str, ...], value: float) -> tuple[pl.Expr, pl.Expr]:
    """Returns the share of values below `value` as a ratio of sums; equal ones count half."""
    below = pl.sum_horizontal(
        (pl.col(column) < value).cast(pl.Float64).fill_null(0)
        + 0.5 * (pl.col(column) == value).cast(pl.Float64).fill_null(0)
        for column in columns
    )
    known = pl.sum_horizontal(
        pl.col(column).is_not_null().cast(pl.Float64) for column in columns
    )
    return below, known


def _standard_errors(
    spans: pl.DataFrame, sums: Mapping[str, tuple[pl.Expr, pl.Expr]], length: int
) -> dict[str, float | None]:
    parts = spans.select(
        expression.alias(f"{name}/{end}")
        for name, pair in sums.items()
        for end, expression in zip("nd", pair, strict=True)
    )
    totals = parts.sum().row(0, named=True)
    known = [name for name in sums if totals[f"{name}/d"]]
    # The block sums of the residuals give the variance of the ratio.
    residuals = (
        parts.select(
            (
                pl.col(f"{name}/n")
                - totals[f"{name}/n"] / totals[f"{name}/d"] * pl.col(f"{name}/d")
            ).alias(name)
            for name in known
        )
        .with_columns(started(spans))
        .select(pl.col(known) - pl.col(known).mean().over("started"))
    )
    n = len(residuals)
    ring = pl.concat([residuals, residuals.head(length - 1)]) if length > 1 else residuals
    block = ring.select(pl.col(known).rolling_sum(length)).tail(n)
    squares = block.select((pl.col(known) ** 2).mean()).row(0, named=True)
    # The mean is estimated from the data, which uses up one of the n / length blocks.
    correction = n / (n - length) if n > length else 1.0
    errors: dict[str, float | None] = dict.fromkeys(sums)
    for name in known:
        variance = squares[name] * n / length * correction
        errors[name] = math.sqrt(max(variance, 0.0)) / totals[f"{name}/d"]
    return errors


def _woodruff(
    spans: pl.DataFrame, metric: Metric, quantile: tuple[tuple[str, ...], float], error: float
) -> float:
    columns, share = quantile
    values = pl.concat([spans[column].drop_nulls().cast(pl.Float64) for column in columns])
    # Pauses come in two groups. With a smaller factor, the range of shares would not reach
    # across the gap between the groups.
    low, high = (
        metric.scaled(values.quantile(min(max(each, 0.0), 1.0), "linear") or 0.0)
        for each in (share - Z95 * error, share + Z95 * error)
    )
    return (high - low) / (2 * Z95)


def _peak_error(spans: pl.DataFrame) -> float | None:
    """Returns the standard error of the heap peak: half its distance to the 90 % quantile."""
    ends = spans["heap_peak_mib"].drop_nulls()
    if ends.is_empty():
        return None
    metric = NAMED["heap_peak_mib"]
    top = metric.scaled(float(ends.max() or 0.0))  # type: ignore[arg-type]  # a numeric column
    return (top - metric.scaled(ends.quantile(0.9, "linear") or 0.0)) / 2
