"""The stretch of a log that predictions start from: without limit-thrash, and the present."""

from __future__ import annotations

from itertools import pairwise

import polars as pl

from gctrace_analyzer.advise.load import WARM_UP_S

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


DRIFT = 0.15
"""Of the live heap, from the first quarter of the cycles to the last: it is another by then."""

DIP = 0.95
"""From one quarter to the next: a heap that falls by more goes up and down."""

DRIFT_MIB = 2.5
"""Less is the rounding of sizes."""


def latest(cycles: pl.DataFrame) -> tuple[pl.DataFrame, tuple[float, float] | None]:
    """The last quarter where the live heap has grown, and from and to where it has.

    All cycles where it has not, or where a quarter of them is too few. A heap that has shrunk
    is taken as a whole: it may fill again.

    Args:
        cycles: of one program, in order.
    """
    in_mark = pl.col("heap_end_mib") - pl.col("heap_start_mib")
    steady = cycles.filter(~pl.col("forced") & (pl.col("start_s") >= WARM_UP_S)).select(
        "start_s", live=pl.col("heap_live_mib") - in_mark
    )
    quarter = len(steady) // 4
    if quarter < FEWEST_CALM:
        return cycles, None
    medians = [float(steady["live"][k * quarter :][:quarter].median() or 0) for k in range(4)]  # type: ignore[arg-type]
    first, last = medians[0], medians[-1]
    steps = pairwise(medians)
    if any(after < DIP * before for before, after in steps):
        return cycles, None
    if last - first <= max(DRIFT * (first + last) / 2, DRIFT_MIB):
        return cycles, None
    return cycles.filter(pl.col("start_s") >= steady["start_s"][-quarter]), (first, last)
