"""A robust slope with an interval, for series whose values hang together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

POINTS = 200
"""Medians of so many stretches of time stand for a series: 19,900 pairs are quick."""

FEWEST = 8
"""Fewer points give an interval that says nothing."""

_Z95 = 1.959964


@dataclass(frozen=True, slots=True)
class Slope:
    """Change per second, and the 95 % interval around it."""

    per_s: float
    low: float
    high: float


def slope(series: pl.DataFrame, *, x: str, y: str) -> Slope | None:
    """Theil–Sen slope of `y` over `x`; None where there are too few points.

    The interval is Sen's (1968), from the variance of Kendall's S with ties, widened for lag-1
    autocorrelation of the residuals: successive live heaps are no independent draws.
    """
    points = _thinned(series.select(x=pl.col(x).cast(pl.Float64), y=pl.col(y).cast(pl.Float64)))
    n = len(points)
    if n < FEWEST:
        return None
    pairs = points.with_row_index("i").join(
        points.with_row_index("j"), how="cross", suffix="_j"
    )
    slopes = (
        pairs.filter((pl.col("i") < pl.col("j")) & (pl.col("x") < pl.col("x_j")))
        .select(((pl.col("y_j") - pl.col("y")) / (pl.col("x_j") - pl.col("x"))).alias("slope"))
        .to_series()
        .sort()
    )
    if slopes.is_empty():
        return None
    middle = _quantile(slopes, 0.5)
    tied = pl.len() * (pl.len() - 1) * (2 * pl.len() + 5)
    ties = points.group_by("y").agg(tied.alias("tied"))["tied"].sum()
    variance = (n * (n - 1) * (2 * n + 5) - float(ties)) / 18
    half = _Z95 * math.sqrt(max(variance, 0) * _inflation(points, middle)) / 2
    low, high = 0.5 - half / len(slopes), 0.5 + half / len(slopes)
    return Slope(middle, _quantile(slopes, low), _quantile(slopes, high))


def _thinned(series: pl.DataFrame) -> pl.DataFrame:
    series = series.drop_nulls().sort("x")
    if len(series) <= POINTS:
        return series
    x = pl.col("x")
    stretch = ((x - x.min()) / (x.max() - x.min()) * POINTS).floor().clip(0, POINTS - 1)
    return (
        series.with_columns(stretch=stretch)
        .group_by("stretch")
        .agg(pl.col("x", "y").median())
        .sort("x")
        .drop("stretch")
    )


def _inflation(points: pl.DataFrame, per_s: float) -> float:
    """How much more the slope varies than for independent points: (1 + r) / (1 - r)."""
    rest = pl.col("y") - per_s * pl.col("x")
    rest = rest - rest.median()
    sums = points.select((rest * rest.shift()).sum().alias("a"), (rest * rest).sum().alias("b"))
    lagged, scale = sums.row(0)
    r = min(max(lagged / scale, 0.0), 0.95) if scale else 0.0
    return (1 + r) / (1 - r)


def _quantile(sorted_values: pl.Series, q: float) -> float:
    at = min(max(q, 0.0), 1.0) * (len(sorted_values) - 1)
    low, high = sorted_values[math.floor(at)], sorted_values[math.ceil(at)]
    value: float = low + (high - low) * (at - math.floor(at))
    return value
