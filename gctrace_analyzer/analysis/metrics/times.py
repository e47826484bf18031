"""The times of dumps that have none, from the ends of their last cycles.

A dump is later than the end of its last cycle, and earlier than the end of the next one. Programs
and shell loops dump at equal distances; if some distance fits between all these ends, it is the
one. The bounds alone are far off where cycles are rare: several dumps have the same last cycle.
"""

from __future__ import annotations

import polars as pl

FEWEST, FEWEST_ENDS = 5, 3
"""Fewer dumps, or fewer different last cycles, show no distance."""

TOLERANCE = 0.5
"""How far the ends may be off, in distances: a busy machine delays some dumps."""

_STEPS = 48
"""Each step leaves two thirds of the range in which the distance is searched."""


def of_a_loop(dumps: pl.DataFrame) -> pl.Series:
    """Returns the time of each dump in seconds since 1970; null if it is unknown.

    Args:
        dumps: in the order in which they were written, `process` and `last_gc_s`, the end of the
            last cycle, null before the first one.
    """
    ends = dumps.with_row_index("row").drop_nulls()
    parts = [_of_process(part) for part in ends.partition_by("process", maintain_order=True)]
    table = pl.concat(parts) if parts else ends.select("row", t_s="last_gc_s")
    rows = dumps.with_row_index("row")
    return rows.join(table, on="row", how="left", maintain_order="left")["t_s"]


def _of_process(ends: pl.DataFrame) -> pl.DataFrame:
    """Returns the times of the dumps of one process; the ends themselves if no distance fits."""
    last = ends["last_gc_s"]
    return ends.select("row").hstack([_at_equal_distances(last).alias("t_s")])


def _at_equal_distances(last: pl.Series) -> pl.Series:
    first = float(last[0])
    early = last - first
    if len(last) < FEWEST or last.n_unique() < FEWEST_ENDS or not last.is_sorted():
        return last
    number = pl.Series(range(len(last)), dtype=pl.Float64)
    # The end of the next cycle is at most that of the next dump with another last cycle.
    late = pl.select(
        pl.when(early.shift(-1) > early).then(early.shift(-1)).backward_fill()
    ).to_series()

    def room(distance: float) -> tuple[float, float]:
        """Returns the earliest and the latest time of the first dump at this distance."""
        low = (early - distance * number).max()
        high = (late - distance * number).min()
        return float(low), float(high)  # type: ignore[arg-type]  # numeric columns

    def width(distance: float) -> float:
        low, high = room(distance)
        return high - low

    least, most = 0.0, 2.0 * float(early[-1]) / (len(last) - 1)
    for _ in range(_STEPS):
        third = (most - least) / 3
        if width(least + third) < width(most - third):
            least += third
        else:
            most -= third
    distance = (least + most) / 2
    low, high = room(distance)
    if high - low < -TOLERANCE * distance:
        return last
    at = (low + high) / 2 + distance * number
    bounded = pl.max_horizontal(pl.min_horizontal(at, late.fill_null(float("inf"))), early)
    return pl.select(first + bounded).to_series()
