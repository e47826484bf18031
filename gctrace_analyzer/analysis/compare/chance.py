"""The standard error of each figure within one run, from how neighbouring cycles differ.

A program has phases: it starts, loads data, serves, cleans up. They are the same in each run, so
they are not chance, and they last longer than a few cycles. Differences between neighbouring blocks
of cycles are chance: half of their mean square is the variance of a block (von Neumann, 1941). No
random numbers are needed, and the same logs give the same interval. Quantiles have Woodruff's
interval (1952): the blocks give the error of the share of values below the quantile, and the values
at the ends of that interval of shares are the ends of the quantile's interval.
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
"""Blocks. With fewer, their spread is unknown."""


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
        quantiles: the columns and the quantile of the metrics that are quantiles. One that is close
            to the maximum, because there are too few values, has no standard error.
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
            result[name] = max(error / scale, _weight_of_one(spans, name))
    result["heap_peak_mib"] = _peak_error(spans)
    return result


def _weight_of_one(spans: pl.DataFrame, name: str) -> float:
    """Returns how far the most influential span moves a rate, on its metric's scale.

    A verdict must not depend on one cycle, such as one in which a thread waited for a CPU.
    """
    above, below = (end(name).fill_null(0.0) for end in (part, whole))
    floor = NAMED[name].floor
    without = (above.sum() - above) / (below.sum() - below)
    factor = (without.clip(0.0) + floor) / (above.sum() / below.sum() + floor)
    moved = spans.select(factor.log().abs().fill_nan(None).max()).item()
    return float(moved or 0.0)


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
    residuals = parts.select(
        (
            pl.col(f"{name}/n")
            - totals[f"{name}/n"] / totals[f"{name}/d"] * pl.col(f"{name}/d")
        ).alias(name)
        for name in known
    )
    blocks = residuals.select(pl.col(known).rolling_sum(length))
    block = pl.col(known)
    variances = (block.var(), (block.diff(length) ** 2).mean() / 2)
    rows = pl.concat([blocks.select(variance) for variance in variances])
    squares = rows.min()
    errors: dict[str, float | None] = dict.fromkeys(sums)
    for name, square in squares.row(0, named=True).items():
        if square is not None:
            variance = square * len(residuals) / length
            errors[name] = math.sqrt(variance) / totals[f"{name}/d"]
    return errors


def _woodruff(
    spans: pl.DataFrame, metric: Metric, quantile: tuple[tuple[str, ...], float], error: float
) -> float | None:
    columns, share = quantile
    values = pl.concat([spans[column].drop_nulls().cast(pl.Float64) for column in columns])
    # With this many independent values it would be open whether the quantile is the maximum.
    if share + Z95 * math.sqrt(share * (1 - share) / len(values)) > 1:
        return None
    # Pauses come in two groups. With a smaller factor, the range of shares would not reach
    # across the gap between the groups.
    low, high = (
        metric.scaled(values.quantile(min(max(end, 0.0), 1.0), "linear") or 0.0)
        for end in (share - Z95 * error, share + Z95 * error)
    )
    return (high - low) / (2 * Z95)


def _peak_error(spans: pl.DataFrame) -> float | None:
    """Returns how far the peak of all even cycles is from the peak of all odd ones."""
    peaks_mib = spans["heap_peak_mib"].drop_nulls()
    ends = [peaks_mib.gather_every(2, offset).max() for offset in (0, 1)]
    if not isinstance(ends[1], int | float):
        return None
    one, other = (NAMED["heap_peak_mib"].scaled(float(end)) for end in ends)  # type: ignore[arg-type]  # a numeric column
    return abs(one - other)
