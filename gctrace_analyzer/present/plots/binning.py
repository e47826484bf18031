"""Reduces a million cycles to the points that a screen can show, without losing spikes."""

from __future__ import annotations

import polars as pl

from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.ingest.rows import complete

BINS = 1000
"""About as many points as a wide screen can show."""


def checked(bins: int) -> int:
    """Returns the number of bins.

    Raises:
        BadSettingError: the value is not a whole number, or is less than 2.
    """
    if isinstance(bins, int) and not isinstance(bins, bool) and bins >= 2:
        return bins
    raise BadSettingError("bins", str(bins), "a whole number, 2 or more")


def binned(points: pl.DataFrame, bins: int, *, gaps: bool = False) -> pl.DataFrame:
    """Returns `x low y high` for each bin.

    Up to `bins` points stay as they are. More points are grouped into bins of equal length in
    `x`; each bin keeps the lowest value, the highest value at its position, and the mean.

    Args:
        points: `x` and `y`, optionally `weight` for the mean, and further columns.
        bins: the number of bins.
        gaps: keep points (or bins) without a value, which interrupt a line.
    """
    if gaps and len(points):
        x = points["x"].to_physical().cast(pl.Float64)
        size = bins if len(points) > bins else 1e9
        cells = ((x - x.min()) / (x.max() - x.min()) * size).floor()  # type: ignore[operator]
        count = points.select("y", cell=cells).select(pl.col("y").count().over("cell"))
        empty = points.filter(count.to_series() == 0).drop("weight", strict=False)
        return pl.concat([binned(points, bins), empty], how="diagonal").sort("x")
    known = points.select("x", "y").with_columns(row=pl.int_range(pl.len()))
    known = complete(known, "x", "y")
    if len(known) <= bins:
        drawn = complete(points, "x", "y").with_columns(low="y", high="y")
        return drawn.drop("weight", strict=False)
    at = pl.col("x").to_physical().cast(pl.Float64)
    number = ((at - at.min()) / (at.max() - at.min()) * bins).floor().clip(0, bins - 1)
    y, mean = pl.col("y"), pl.col("y").mean()
    grouped = known.select(y.cast(pl.Float64), "row", bin=number.cast(pl.Int64))
    if "weight" in points.columns:
        weight = pl.col("weight")
        weights = points["weight"].fill_null(0.0)
        same = len(known) == len(points)
        grouped = grouped.with_columns(weights if same else weights[known["row"]])
        mean = pl.when(weight.sum() > 0).then((y * weight).sum() / weight.sum()).otherwise(mean)
    if known["x"].is_sorted():
        # Then groups are slices, which are much faster than scattered rows.
        grouped = grouped.with_columns(pl.col("bin").set_sorted())
    drawn = (
        grouped.group_by("bin")
        .agg(pl.col("row").get(y.arg_max()), low=y.min(), high=y.max(), y=mean)
        .sort("bin")
    )
    # Only over the rows that are drawn
    others = points.drop("y", "weight", strict=False)[drawn["row"]]
    return others.hstack(drawn.select("low", "high", "y"))


def distribution(values: pl.Series, bins: int) -> tuple[pl.Series, pl.Series]:
    """Returns values and the cumulative share at each, thinned to at most `bins` points.

    The share climbs from 0 at the smallest value, so that a single value is a visible line.
    """
    ordered = values.drop_nulls().cast(pl.Float64).sort()
    count = len(ordered)
    if count <= bins:
        chosen = list(range(count))
    else:
        # Half of the points are at equal steps. The other half are the largest values, because the
        # tail of the pauses matters most.
        steps = [round(i * (count - 1) / (bins // 2)) for i in range(bins // 2 + 1)]
        chosen = sorted({*steps, *range(count - bins // 2, count)})
    ranks = pl.Series([0, *(at + 1 for at in chosen)] if chosen else [], dtype=pl.Float64)
    return ordered.gather([*chosen[:1], *chosen]), ranks / max(count, 1)
