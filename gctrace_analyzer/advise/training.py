"""Selects the part of a log from which predictions start: recent, without limit thrashing."""

from __future__ import annotations

from itertools import pairwise

import polars as pl

from gctrace_analyzer.analysis.thresholds import DEFAULT

FEWEST_CYCLES = 12
"""With fewer cycles GC CPU is only a rough estimate."""


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
    process = cycles["process"][0] if len(cycles) else None
    thrash = episodes.filter(kind="limit-thrash", process=process)
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
        .filter(pl.col("len") >= FEWEST_CYCLES)
        .sort("span_s", "part", descending=[True, False])
    )
    if longest.is_empty():
        return cycles, True
    chosen = marked.filter(part=longest["part"][0])
    return chosen.select(cycles.columns), True


DRIFT = 0.15
"""If the live heap grew by more than this share, from the first quarter of the cycles to the last,
only the last quarter represents the present."""

DIP = 0.95
"""Ratio of the live heap in one quarter to that in the quarter before. If a ratio is lower than
this, the heap does not simply grow: it rises and falls."""

DRIFT_MIB = 2.5
"""Smaller movements are within the rounding of the printed sizes."""


def recent(cycles: pl.DataFrame) -> tuple[pl.DataFrame, tuple[float, float] | None]:
    """Returns the last quarter of a log whose live heap has grown, and the sizes it grew between.

    Returns all cycles and None if the heap has not grown, or if a quarter has too few cycles.
    A log whose heap has shrunk is used as a whole, because the heap may fill again.

    Args:
        cycles: the cycles of one process, in order.
    """
    in_mark = pl.col("heap_end_mib") - pl.col("heap_start_mib")
    steady = cycles.filter(~pl.col("forced") & (pl.col("start_s") >= DEFAULT.warm_up_s)).select(
        "start_s", live=pl.col("heap_live_mib") - in_mark
    )
    quarter = len(steady) // 4
    if quarter < FEWEST_CYCLES:
        return cycles, None
    medians = [float(steady["live"][k * quarter :][:quarter].median() or 0) for k in range(4)]  # type: ignore[arg-type]
    first, last = medians[0], medians[-1]
    steps = pairwise(medians)
    if any(after < DIP * before for before, after in steps):
        return cycles, None
    if last - first <= max(DRIFT * (first + last) / 2, DRIFT_MIB):
        return cycles, None
    return cycles.filter(pl.col("start_s") >= steady["start_s"][-quarter]), (first, last)
