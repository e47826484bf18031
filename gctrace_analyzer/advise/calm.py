"""The stretch of a log that predictions start from: without limit-thrash, if there is one."""

from __future__ import annotations

import polars as pl

FEWEST_CALM = 12
"""Cycles: fewer leave GC CPU rough."""


def calm(cycles: pl.DataFrame, episodes: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
    """The longest stretch of cycles outside limit-thrash, and whether any was in it.

    All cycles where none thrashed, or where too few did not: a program that thrashes allocates
    less than it would, so what it does then says little of what it would do elsewhere.

    Args:
        cycles: of one program (`schema.CYCLES`), in order.
        episodes: of the run (`schema.EPISODES`).
    """
    process = cycles["process"][0] if len(cycles) else None
    thrash = episodes.filter(kind="limit-thrash", process=process)
    if thrash.is_empty():
        return cycles, False
    spans = thrash.select("start_s", "end_s").rows()
    start = pl.col("start_s")
    inside = pl.any_horizontal(start.is_between(begin, end) for begin, end in spans)
    marked = cycles.with_columns(inside=inside.fill_null(value=False)).with_columns(
        stretch=pl.col("inside").rle_id()
    )
    longest = (
        marked.filter(~pl.col("inside"))
        .group_by("stretch")
        .agg(pl.len(), span_s=start.max() - start.min())
        .filter(pl.col("len") >= FEWEST_CALM)
        .sort("span_s", "stretch", descending=[True, False])
    )
    if longest.is_empty():
        return cycles, True
    chosen = marked.filter(stretch=longest["stretch"][0])
    return chosen.select(cycles.columns), True
