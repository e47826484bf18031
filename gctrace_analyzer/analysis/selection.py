"""Parts of a log: one process, a range of times or of lines.

A part knows the whole, because a kill may belong to a process that is not selected, or may come
after the selected cycles. Such a kill says nothing about the selection.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import units
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.ingest import processes
from gctrace_analyzer.ingest.read import Log, Selection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gctrace_analyzer.analysis.analysis import Analysis
    from gctrace_analyzer.analysis.summary import Summary

_OF_PROCESSES = ("processes", "scavenges", "pacer", "scans")
_DUMPS = ("memstats", "cycle_pauses")


def one_process(analysis: Analysis, number: int) -> Log:
    """Returns the log of one process.

    Raises:
        BadSettingError: there is no process with that number.
    """
    log = analysis.log
    table = log.tables["processes"]
    own = pl.col("process") == processes.known_number(table, number)
    others = [other for other in table["process"] if other != number]
    if not others:
        return log
    if analysis.by_dumps:
        part = _with(
            log, {name: log.tables[name].filter(own) for name in ("processes", *_DUMPS)}
        )
    else:
        part = _of_cycles(log, own)
        dumps = {name: log.tables[name].filter(own.fill_null(value=True)) for name in _DUMPS}
        part = _with(part, dumps)
    name = f"process {number} of {len(table):,}"
    return _selected(log, part, name, others, is_range=False)


def between(analysis: Analysis, low: float, high: float) -> Log:
    """Returns the log of the cycles (or dumps) that start at `low` or later and before `high`.

    Raises:
        BadSettingError: no cycle starts in the range.
    """
    log, text = analysis.log, units.range_text(low, high)
    if analysis.by_dumps:
        return _selected(log, _dumps_between(analysis, low, high), text, _cut(analysis, high))
    cycles = log.tables["cycles"]
    inside = pl.col("start_s").is_between(low, high, closed="left")
    if not cycles.select(inside.any()).item():
        first, last = cycles.select(
            first=pl.col("start_s").min(), last=pl.col("start_s").max()
        ).row(0)
        covered = (
            "the cycles have no times"
            if last is None
            else f"the log covers {first:.3f} s to {last:.3f} s"
        )
        expected = f"a range in which a cycle starts; {covered}"
        raise BadSettingError("between", text, expected)
    return _selected(log, _of_cycles(log, inside), text, _cut(analysis, high))


def summary_between(analysis: Analysis, low: float, high: float) -> Summary:
    """Returns the figures of a range of times, as the report on it has them."""
    return type(analysis)(between(analysis, low, high), analysis.given).summary


def line_range(analysis: Analysis, first: int, last: int) -> Log:
    """Returns the log of a range of input lines, first and last line included.

    Raises:
        BadSettingError: the numbers are not whole, or in the wrong order.
    """
    log = analysis.log
    inside = pl.col("line_no").is_between(*units.line_numbers(first, last))
    tables = {
        name: table.filter(inside)
        for name, table in log.tables.items()
        if "line_no" in table.columns and name != "cycles"
    }
    part = _of_cycles(_with(log, tables), inside)
    return _selected(log, part, f"lines {first:,} to {last:,}", ())


def _selected(
    whole: Log, part: Log, text: str, without_end: Iterable[int], *, is_range: bool = True
) -> Log:
    before = whole.selection
    everyone = before.processes if before else whole.tables["processes"]
    left = frozenset(without_end) | (before.without_end if before else frozenset())
    texts = (before.text, text) if before else (text,)
    is_range |= before is not None and before.is_range
    return replace(part, selection=Selection(", ".join(texts), everyone, left, is_range))


def _cut(analysis: Analysis, high: float) -> list[int]:
    """Returns the processes that continue after a range that ends at `high`."""
    if high == math.inf:
        return []
    rows = analysis.dumps.between if analysis.by_dumps else analysis.cycles
    at = "end_s" if analysis.by_dumps else "start_s"
    last = rows.group_by("process").agg(pl.col(at).max())
    return last.filter(pl.col(at) >= high)["process"].to_list()


def _dumps_between(analysis: Analysis, low: float, high: float) -> Log:
    intervals, memstats = analysis.dumps.between, analysis.tables["memstats"]
    inside = intervals.filter(
        (pl.col("begin_s") >= low) & (pl.col("end_s") <= high)
    ).drop_nulls("begin_at")
    if inside.is_empty():
        begin, end = intervals.select(pl.min("begin_s"), pl.max("end_s")).row(0)
        expected = f"a range with two dumps; the input covers {begin:.3f} s to {end:.3f} s"
        if not intervals["begin_at"].count():
            expected = "an input whose dumps have dates: those of this one have none"
        value = units.range_text(low, high)
        raise BadSettingError("between", value, expected)
    spans = inside.group_by("process").agg(pl.col("begin_at").min(), pl.col("end_at").max())
    kept = memstats.join(spans, on="process", how="left", maintain_order="left").select(
        pl.col("logged_at").is_between(pl.col("begin_at"), pl.col("end_at"))
    )
    kept_rows = memstats.filter(kept.to_series().fill_null(value=False))
    return _with(analysis.log, {"memstats": kept_rows})


def _of_cycles(log: Log, which: pl.Expr) -> Log:
    """Returns the log of the cycles that match a condition, with the tables of their processes."""
    cycles = log.tables["cycles"].filter(which)
    kept = pl.col("process").is_in(cycles["process"].unique().implode())
    tables = {name: log.tables[name].filter(kept) for name in _OF_PROCESSES}
    columns = ("process", "first_gc", "last_gc", "cycles", "missing_cycles")
    counted = processes.processes(cycles).select(columns)
    tables["processes"] = tables["processes"].update(counted, on="process")
    return _with(log, tables | {"cycles": cycles})


def _with(log: Log, tables: dict[str, pl.DataFrame]) -> Log:
    return replace(log, tables=log.tables | tables)
