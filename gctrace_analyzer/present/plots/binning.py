"""A million cycles in as many points as a screen has: spikes survive, and it is said how."""

from __future__ import annotations

import polars as pl

BINS = 1000
"""About as many as a wide screen has pixels to spare."""


def binned(points: pl.DataFrame, bins: int) -> pl.DataFrame:
    """`x low y high` and where the highest stands; `points` has `x y`, maybe `weight`.

    Up to `bins` points stay as they are. More are put in so many equal stretches of `x`: of
    each the lowest, the highest at its own place, and the mean (by `weight`) are kept.
    """
    points = points.drop_nulls(["x", "y"])
    if len(points) <= bins:
        return points.with_columns(low="y", high="y").drop("weight", strict=False)
    at = pl.col("x").to_physical().cast(pl.Float64)
    stretch = ((at - at.min()) / (at.max() - at.min()) * bins).floor().clip(0, bins - 1)
    weight = pl.col("weight").fill_null(0.0) if "weight" in points.columns else pl.lit(1.0)
    points = points.with_columns(
        pl.col("y").cast(pl.Float64), stretch=stretch.cast(pl.Int64), weight=weight
    )
    highest = pl.col("y").arg_max()
    others = [name for name in points.columns if name not in ("y", "weight", "stretch")]
    mean = (pl.col("y") * pl.col("weight")).sum() / pl.col("weight").sum()
    return (
        points.group_by("stretch")
        .agg(
            pl.col(others).get(highest),
            low=pl.col("y").min(),
            high=pl.col("y").max(),
            y=pl.when(pl.col("weight").sum() > 0).then(mean).otherwise(pl.col("y").mean()),
        )
        .sort("stretch")
        .drop("stretch")
    )


def distribution(values: pl.Series, bins: int) -> tuple[pl.Series, pl.Series]:
    """Values and the share of all that is no larger, at most `bins` of them, ends included."""
    ordered = values.drop_nulls().cast(pl.Float64).sort()
    count = len(ordered)
    rank = pl.Series(range(1, count + 1), dtype=pl.Float64) if count <= bins else None
    if rank is not None:
        return ordered, rank / count
    # Half by equal steps, half the largest: the tail is what pauses are about.
    steps = [round(i * (count - 1) / (bins // 2)) for i in range(bins // 2 + 1)]
    chosen = sorted({*steps, *range(count - bins // 2, count)})
    return ordered.gather(chosen), (pl.Series(chosen, dtype=pl.Float64) + 1) / count
