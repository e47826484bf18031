"""The tables of episodes and phases, whose rows lead to their range."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present.format import NONE, duration, mib, mib_per_s, rate, share
from gctrace_analyzer.present.plots import ticks

if TYPE_CHECKING:
    from gctrace_analyzer.present.plots.axis import Axis
    from gctrace_analyzer.present.report import Report

_MOST_RANGES = 200
"""Rows of phases. A long log can have thousands, of which the longest are shown."""

_SHORT_S = 60.0
"""Of a shorter run, whole seconds would often be the same at both ends of a range."""

_SHORT_RANGE_S, _DAY_S = 2.0, 86_400.0
_SHORT_STEP_S = 0.001


@frozen
class TimeRange:
    """A range of the time axis of the page.

    >>> TimeRange(10.0, 20.0).href
    '#t=9.800-20.200'
    """

    begin_s: float
    end_s: float

    @property
    def href(self) -> str:
        """A link to the range, with room on both sides."""
        room = 0.02 * (self.end_s - self.begin_s) or 0.001
        return f"#t={max(self.begin_s - room, 0):.3f}-{self.end_s + room:.3f}"


@frozen
class RangeRow:
    """A row that leads to its range; None if that is not on the time axis."""

    cells: tuple[str, ...]
    span: TimeRange | None


@frozen
class Ranges:
    """A table of rows that lead to their ranges. `align` has l, r or w (wraps) per column."""

    title: str
    head: tuple[str, ...]
    align: str
    rows: tuple[RangeRow, ...]
    left: int = 0

    @property
    def number(self) -> str:
        """How many rows there are, and how many of them are shown."""
        shown = f"{len(self.rows):,}"
        return f"the {shown} longest of {len(self.rows) + self.left:,}" if self.left else shown


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


def episodes(report: Report, axis: Axis) -> Ranges:
    """Returns every episode."""
    several, listed = _several(report), report.analysis.episodes
    in_ms = _needs_ms(report, listed)
    rows = [
        _row(
            axis,
            row,
            row["kind"],
            *_process(row, several=several),
            row["severity"],
            *_times(report, row, in_ms=in_ms),
            row["reason"],
        )
        for row in listed.iter_rows(named=True)
    ]
    head = ("severity", "from", "to", "length", "what happened")
    return _ranges("Episode", head, "lrrrw", rows, several=several)


def phases(report: Report, axis: Axis) -> Ranges:
    """Returns every load phase and idle time, with its figures."""
    several, whole = _several(report), report.analysis.segments
    length = pl.col("end_s") - pl.col("start_s")
    listed = whole.filter(
        (length.rank("ordinal", descending=True) <= _MOST_RANGES).fill_null(value=True)
    )
    in_ms = _needs_ms(report, listed)
    rows = [
        _row(
            axis,
            row,
            row["kind"],
            *_process(row, several=several),
            *_times(report, row, in_ms=in_ms),
            rate(row["gc_per_s"]),
            share(row["gc_cpu_share"]),
            share(row["assist_share_of_gc_cpu"]),
            mib(row["live_heap_p50_mib"]),
            mib_per_s(row["alloc_mib_per_s"]),
        )
        for row in listed.iter_rows(named=True)
    ]
    head = (
        "from", "to", "length", "cycles", "GC CPU", "assists", "live heap", "allocation",
    )  # fmt: skip
    shown = _ranges("Phase", head, "rrrrrrrr", rows, several=several)
    return replace(shown, left=len(whole) - len(listed))


def _several(report: Report) -> bool:
    return len(report.analysis.tables["processes"]) > 1


def _process(row: dict[str, Any], *, several: bool) -> tuple[str, ...]:
    """Returns the number of the process as a cell; nothing if there is only one."""
    if not several:
        return ()
    return (NONE if row["process"] is None else f"{row['process']}",)


def _ranges(
    of: str, head: tuple[str, ...], align: str, rows: list[RangeRow], *, several: bool
) -> Ranges:
    process = ("process",) if several else ()
    columns = "l" + "r" * several + align
    return Ranges(f"{of}s", (of, *process, *head), columns, tuple(rows))


def _row(axis: Axis, row: dict[str, Any], *cells: str) -> RangeRow:
    return RangeRow(cells, span(axis, row["process"], row["start_s"], row["end_s"]))


def _needs_ms(report: Report, ranges: pl.DataFrame) -> bool:
    """Returns whether the ends of some range would be the same in whole seconds."""
    lengths = ranges.select(pl.col("end_s") - pl.col("start_s")).to_series()
    span_s, shortest = report.analysis.summary.span_s or 0.0, lengths.min()
    is_short = isinstance(shortest, float) and shortest < _SHORT_RANGE_S
    return span_s < _SHORT_S or (is_short and span_s < _DAY_S)


def _times(report: Report, row: dict[str, Any], *, in_ms: bool) -> tuple[str, str, str]:
    start, end = row["start_s"], row["end_s"]
    if start is None or end is None:
        return NONE, NONE, NONE
    begun = report.analysis.started_at.get(row["process"])
    shown = [
        ticks.clock(seconds, _SHORT_STEP_S if in_ms else 1.0)
        if begun is None
        else report.moment(row["process"], seconds, in_ms=in_ms)
        for seconds in (start, end)
    ]
    return shown[0], shown[1], duration(end - start)
