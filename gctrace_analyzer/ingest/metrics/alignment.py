"""Infers the start of a program without timestamps from metrics that count its cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.ingest.gctrace.columns import end_s

if TYPE_CHECKING:
    from datetime import datetime

_LEAST_COUNTS = 3
"""Fewer different cycle numbers could fit by chance."""

_SLACK_S = 0.25
"""Seconds by which a scrape may read the counter after its timestamp, and the end of a cycle may be
printed late."""


def started_at(cycles: pl.DataFrame, memstats: pl.DataFrame) -> tuple[datetime, float] | None:
    """Returns the start of the only process of a log without timestamps, and its uncertainty.

    Metrics that count n cycles at a time were read after the end of cycle n and before the end of
    cycle n + 1. So each scrape gives an interval for the start of the program, and together they
    give a narrow one. If metrics have the time of the last cycle, it is exact.

    Args:
        cycles: `schema.CYCLES` before they have times.
        memstats: `schema.MEMSTATS` with `logged_at`.

    Returns:
        The start, and half of the interval in seconds; None if there are timestamps already,
        several processes, too few metrics, or metrics of another program.
    """
    if not len(cycles) or not len(memstats) or cycles["logged_at"].count():
        return None
    counts = memstats.drop_nulls(["logged_at", "num_gc"]).sort("logged_at")
    if cycles["process"].n_unique() > 1 or not counts["num_gc"].is_sorted():
        return None
    ends = cycles.select(num_gc="gc_num", end=end_s()).drop_nulls().unique("num_gc")
    after = ends.select(pl.col("num_gc") - 1, later="end")
    pairs = counts.join(ends, on="num_gc").join(after, on="num_gc", how="left")
    if pairs["num_gc"].n_unique() < _LEAST_COUNTS:
        return None
    at = pl.col("logged_at").dt.epoch("us") / 1e6
    last = pl.col("last_gc_unix_ns") / 1e9
    # A program without this metric, or before its first cycle, exports 0.
    exact = pl.when(last > 0).then(last - pl.col("end"))
    low, high = pairs.select(
        low=pl.max_horizontal((at - pl.col("later")).max(), exact.max()),
        high=pl.min_horizontal((at - pl.col("end")).min(), exact.min()),
    ).row(0)
    if low is None or high is None or low > high + _SLACK_S:
        return None
    middle = pl.Series([(low + high) / 2 * 1e6]).round().cast(pl.Int64)
    start = middle.cast(pl.Datetime("us", "UTC"))[0]
    return start, abs(high - low) / 2
