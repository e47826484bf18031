"""The tables of episodes and phases, whose rows link to their time range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.present.document import Table, TimeRange
from gctrace_analyzer.present.format import NONE, duration, words
from gctrace_analyzer.present.plots import ticks
from gctrace_analyzer.present.sections import overview
from gctrace_analyzer.units import DAY_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from gctrace_analyzer.present.plots.axis import Axis
    from gctrace_analyzer.present.report import Report
    from gctrace_analyzer.schema import Row

_MOST_RANGES = 200
"""Rows of phases. A long log may have thousands; the longest are shown."""

_SHORT_S = 60.0
"""In a shorter run, whole seconds would often be equal at both ends of a range."""

_SHORT_RANGE_S = 2.0
_SHORT_STEP_S = 0.001


def span(
    axis: Axis, process: int | None, start_s: float | None, end_s: float | None
) -> TimeRange | None:
    """Returns a range of a process on the time axis of the page; None if it is not drawn."""
    if end_s is None or not axis.processes:
        return None
    begin, end = axis.at(process, start_s or 0.0), axis.at(process, end_s)
    if begin is None or end is None:
        return None
    return TimeRange(axis.seconds(begin), axis.seconds(end))


def episodes(report: Report, axis: Axis) -> tuple[str, Table]:
    """Returns every episode, with a title."""

    def cells(row: Row, times: tuple[str, ...]) -> tuple[str, ...]:
        return row["severity"], *times, row["reason"]

    head = ("severity", "from", "to", "length", "what happened")
    return _titled(axis, report, "Episode", head, "lrrrw", report.analysis.episodes, cells)


def phases(report: Report, axis: Axis) -> tuple[str, Table]:
    """Returns every load phase and idle time with its figures, and a title."""
    whole = report.analysis.segments
    length = pl.col("end_s") - pl.col("start_s")
    listed = whole.filter(
        (length.rank("ordinal", descending=True) <= _MOST_RANGES).fill_null(value=True)
    )

    def cells(row: Row, times: tuple[str, ...]) -> tuple[str, ...]:
        return *times, *overview.figures_of_phase(row)

    head = ("from", "to", "length", *overview.FIGURES_OF_PHASE)
    left = len(whole) - len(listed)
    return _titled(axis, report, "Phase", head, "rrrrrrrr", listed, cells, left)


def _titled(
    axis: Axis,
    report: Report,
    of: str,
    head: tuple[str, ...],
    align: str,
    listed: pl.DataFrame,
    cells: Callable[[Row, tuple[str, ...]], tuple[str, ...]],
    left: int = 0,
) -> tuple[str, Table]:
    """Returns rows that link to their ranges, with their kind and, of several, their process."""
    several = len(report.analysis.tables["processes"]) > 1
    times = _times_of(report, listed)
    rows = []
    for row in listed.iter_rows(named=True):
        process = NONE if row["process"] is None else f"{row['process']}"
        own = (process,) if several else ()
        rows.append((words(row["kind"]), *own, *cells(row, times(row))))
    ends = listed.select("process", "start_s", "end_s").iter_rows()
    table = Table(
        (of, *(["process"] if several else ()), *head),
        "l" + "r" * several + align,
        rows,
        spans=[span(axis, *where) for where in ends],
    )
    number = f"the {len(rows):,} longest of {len(rows) + left:,}" if left else f"{len(rows):,}"
    return f"{of}s ({number})", table


def _needs_ms(report: Report, ranges: pl.DataFrame) -> bool:
    """Returns whether the ends of some range would be the same in whole seconds."""
    lengths = ranges.select(pl.col("end_s") - pl.col("start_s")).to_series()
    span_s, shortest = report.analysis.summary.span_s or 0.0, lengths.min()
    is_short = isinstance(shortest, float) and shortest < _SHORT_RANGE_S
    return span_s < _SHORT_S or (is_short and span_s < DAY_S)


def _times_of(report: Report, ranges: pl.DataFrame) -> Callable[[Row], tuple[str, str, str]]:
    """Returns a function that formats the ends and the length of a range."""
    in_ms = _needs_ms(report, ranges)

    def at(process: int | None, seconds: float) -> str:
        if process not in report.analysis.started_at:
            return ticks.clock(seconds, _SHORT_STEP_S if in_ms else 1.0)
        return report.moment(process, seconds, in_ms=in_ms)

    def times(row: Row) -> tuple[str, str, str]:
        process, start, end = row["process"], row["start_s"], row["end_s"]
        if start is None or end is None:
            return NONE, NONE, NONE
        length = duration(end - start)
        if row["kind"] == "pause-outlier":
            # Its pauses are far shorter than the range in which they are.
            length = f"pauses ≤ {duration(row['stw_max_ms'] / 1000)}"
        return at(process, start), at(process, end), length

    return times
