"""Selects the part of a log from which predictions start: without limit thrashing."""

from __future__ import annotations

import polars as pl

from gctrace_analyzer.advise.refusal import FEW_CYCLES
from gctrace_analyzer.ingest.rows import of_process, where


def longest_calm_part(
    cycles: pl.DataFrame, episodes: pl.DataFrame
) -> tuple[pl.DataFrame, bool]:
    """Returns the longest part without limit thrashing, and whether there was any thrashing.

    Returns all cycles if none thrashed, or if too few did not. A program that thrashes allocates
    less than it otherwise would, so its thrashing cycles do not predict other settings.

    Args:
        cycles: the cycles of one process (`schema.CYCLES`), in order.
        episodes: the episodes of the run (`schema.EPISODES`).
    """
    if cycles.is_empty():
        return cycles, False
    thrash = where(episodes, episodes["kind"] == "limit-thrash")
    thrash = of_process(thrash, cycles["process"][0])
    if thrash.is_empty():
        return cycles, False
    spans = thrash.select("start_s", "end_s").rows()
    start = pl.col("start_s")
    inside = pl.any_horizontal(start.is_between(begin, end) for begin, end in spans)
    marked = cycles.with_columns(inside=inside.fill_null(value=False)).with_columns(
        part=pl.col("inside").rle_id()
    )
    longest = (
        marked.filter(~pl.col("inside"))
        .group_by("part")
        .agg(pl.len(), span_s=start.max() - start.min())
        .filter(pl.col("len") >= FEW_CYCLES)
        .sort("span_s", "part", descending=[True, False])
    )
    if longest.is_empty():
        return cycles, True
    chosen = marked.filter(part=longest["part"][0])
    return chosen.select(cycles.columns), True
