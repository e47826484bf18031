"""The searchable and sortable table of cycles, and the figures of a range of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.rows import largest
from gctrace_analyzer.present.format import NONE, gc_cpu
from gctrace_analyzer.present.plots import ticks
from gctrace_analyzer.present.plots.axis import Axis, with_idle
from gctrace_analyzer.present.sections.headline import allocation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from gctrace_analyzer.present.report import Report

MOST_ROWS = 50_000
"""The most cycles that a page holds: 50,000 take about 2 MB."""

_EXACT = 5_000
"""With more cycles than this, the figures of a range are summed over windows."""

_WINDOWS = 2_000
_DIGITS, _SUM_DIGITS = 3, 6
"""Significant digits of a value in a table, and of one to be summed, whose errors add up."""


class RecordColumn(NamedTuple):
    """A column: its title, the format of its values, and the values."""

    head: str
    kind: str
    values: pl.Series


@frozen
class Records:
    """The table of cycles or intervals, in the form that the script takes.

    Attributes:
        noun: the name for a row.
        total: the number of all rows.
        of_processes: a note on the times of processes that are not drawn.
        columns: the columns, with the rows of the longest pauses.
        length: the duration of each row in seconds.
        off: 1 for rows whose time has no place on the axis; empty if there are none.
        single: the values of single rows that charts draw close up.
        files: the names of the inputs.
        file: the input of each row, if there are several.
        sort: the column that sorts the rows at first.
    """

    noun: str
    total: int
    of_processes: str
    columns: list[RecordColumn]
    length: pl.Series
    off: list[int]
    single: dict[str, object]
    files: list[str]
    file: list[int]
    sort: int

    def values(self) -> dict[str, object]:
        """Returns the values for the script."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**fields, "columns": [column._asdict() for column in self.columns]}


def records(report: Report, axis: Axis, most: int = MOST_ROWS) -> Records:
    """Returns the table of all cycles (or of all intervals, without gctrace) by column.

    If there are more rows than `most`, it holds those with the longest pauses.
    """
    frame = axis.cycles.with_columns(t=_position(axis))
    if len(frame) < len(report.analysis.enriched):
        # Processes that run side by side are listed, but only one of them is drawn.
        clock = "wall_time" if axis.is_time else "start_s"
        frame = with_idle(report.analysis.enriched).with_columns(x=pl.col(clock))
        frame = frame.with_columns(t=_position(axis))
    total = len(frame)
    if axis.by_dumps:
        columns, longest = _INTERVALS, "stw_max_ms"
    else:
        columns, longest = _CYCLES, "pause_ms"
        frame = frame.with_columns(
            pause_ms=pl.sum_horizontal("stw_sweep_term_ms", "stw_mark_term_ms")
        )
    if total > most:
        frame = frame[largest(frame[longest], most).sort()]
    if frame["process"].n_unique() < 2:
        columns = [column for column in columns if column[1] != "process"]
    shown = [
        RecordColumn(head, kind, _values(frame, name))
        for head, name, kind in columns
        if name in frame.columns and frame[name].count() and _says_something(frame[name])
    ]
    sources = frame["source"].cast(pl.String)
    names = sources.unique(maintain_order=True).to_list()
    heads = [column.head for column in shown]
    numbers = range(len(names) if len(names) > 1 else 0)
    return Records(
        noun=axis.noun,
        total=total,
        of_processes=_note_on_processes(frame, axis),
        columns=shown,
        length=_values(frame, "elapsed_s"),
        off=_off_axis(frame, axis),
        single=_single(frame, axis, shown) if total <= most else {},
        files=[str(name or "frame").rpartition("/")[2] for name in names],
        file=sources.replace_strict(names, list(numbers)).to_list() if numbers else [],
        sort=heads.index(_FIRST) if _FIRST in heads else 0,
    )


_SINGLE = {
    "heap at cycle start": "heap_start_mib",
    "live heap (marked)": "heap_live_mib",
    "heap goal": "heap_goal_mib",
    "sweep termination": "stw_sweep_term_ms",
    "mark termination": "stw_mark_term_ms",
    "with idle marking": "gc_cpu_with_idle_share",
    "GC CPU": "gc_cpu_share",
    "mark assist": "assist_share",
    "allocation": "alloc_mib_per_s",
    "interval": "interval_s",
    "effective GOGC": "drawn_gogc",
}
"""The column for each series over time: close up, the page draws single cycles, not bins."""


def _single(frame: pl.DataFrame, axis: Axis, shown: list[RecordColumn]) -> dict[str, object]:
    """Returns the values of each series, by its name; empty if every chart has all cycles.

    A number refers to a column of the table; `drawn` has 0 for rows that are not in the charts.
    """
    if axis.by_dumps or len(axis.cycles) <= axis.bins:
        return {}
    heads = {name: head for head, name, _ in _CYCLES}
    at = {column.head: index for index, column in enumerate(shown)}
    series_of: dict[str, object] = {}
    for series, name in _SINGLE.items():
        index = at.get(heads.get(name, ""))
        series_of[series] = _values(frame, name) if index is None else index
    drawn = frame["process"].is_in(list(axis.processes))
    return {"series": series_of, "drawn": [] if drawn.all() else drawn.cast(pl.Int8).to_list()}


_LONGEST_NAME = 18


def _short(name: str) -> str:
    """Returns a name shortened in the middle, so that the table stays narrow.

    >>> _short("api-7d9f-very-long-name.log.gz")
    'api-7d9f…me.log.gz'
    """
    half = _LONGEST_NAME // 2
    return name if len(name) <= _LONGEST_NAME else f"{name[: half - 1]}…{name[-half:]}"


def _off_axis(frame: pl.DataFrame, axis: Axis) -> list[int]:
    """Returns 1 for each row whose time counts from the start of a process that is not drawn.

    The list is empty if there are none: on one clock, every row has its place.
    """
    if axis.is_time:
        return []
    off = ~frame["process"].is_in(list(axis.processes))
    return off.cast(pl.Int8).to_list() if off.any() else []


def _note_on_processes(frame: pl.DataFrame, axis: Axis) -> str:
    """Returns how to read the times of processes that are not drawn; empty without any."""
    if frame["process"].n_unique() <= len(axis.processes):
        return ""
    drawn = ", ".join(map(str, axis.processes))
    own = "" if axis.is_time else " Times count from the start of each process."
    return f"The charts begin with process {drawn}.{own}"


def _says_something(values: pl.Series) -> bool:
    """Returns False for a column about forced cycles without any: it would only take room."""
    return values.name not in ("forced", "forced_cycles") or bool(values.cast(pl.Int64).sum())


_FIRST = "total pause, ms"


_CYCLES = [
    ("cycle", "gc_num", "cycle"),
    ("process", "process", "int"),
    ("time", "t", "time"),
    (_FIRST, "pause_ms", "number"),
    ("sweep term.", "stw_sweep_term_ms", "number"),
    ("mark term.", "stw_mark_term_ms", "number"),
    ("marking, ms", "concurrent_mark_ms", "number"),
    ("GC CPU", "gc_cpu_share", "share"),
    ("assists", "assist_share", "share"),
    ("start, MiB", "heap_start_mib", "int"),
    ("end, MiB", "heap_end_mib", "int"),
    ("live, MiB", "heap_live_mib", "int"),
    ("goal, MiB", "heap_goal_mib", "int"),
    ("forced", "forced", "flag"),
    ("line", "line_no", "line"),
]
_INTERVALS = [
    ("from", "t", "time"),
    ("length, s", "elapsed_s", "number"),
    ("cycles", "gc_cycles", "int"),
    ("forced", "forced_cycles", "int"),
    ("GC CPU", "gc_cpu_share", "share"),
    (_FIRST, "stw_total_ms", "number"),
    ("longest, ms", "stw_max_ms", "number"),
    ("allocation, MiB/s", "alloc_mib_per_s", "number"),
    ("live, MiB", "heap_live_mib", "number"),
    ("goal, MiB", "heap_goal_mib", "number"),
    ("resident, MiB", "rss_mib", "number"),
    ("limit, MiB", "memory_limit_mib", "number"),
]


def figures(report: Report, axis: Axis) -> Mapping[str, Any]:
    """Returns the values to sum for the figures of a chosen range: cycles or windows."""
    if axis.by_dumps or len(axis.cycles) <= _EXACT:
        rows = axis.cycles.with_columns(t=_position(axis), length="elapsed_s")
    else:
        whole = (report.analysis.summary.span_s or 1.0) / _WINDOWS
        rows = report.analysis.windows(whole).filter(pl.col("process").is_in(axis.processes))
        rows = rows.with_columns(
            t=pl.col("start_s") + _offset(axis),
            length=pl.col("end_s") - pl.col("start_s"),
            pause_max_ms="stw_max_ms",
            spent_share="gc_cpu_share",
            allocated_mib_per_s="alloc_mib_per_s",
        )
    names = {
        "t": "t",
        "length": "length",
        "cycles": "cycles",
        # The sums are the key figures of the page.
        "cpu": "spent_share",
        "pause": "pause_max_ms",
        "live": "heap_live_mib",
        "alloc": "allocated_mib_per_s",
    }
    several = report.analysis.tables["processes"]["process"].n_unique() > len(axis.processes)
    s = report.analysis.summary
    return {
        # For the whole run they are known better than from the ends of intervals.
        "mostLive": None if several else s.live_heap_max_mib,
        "gcCpu": None if several or s.gc_cpu_range is None else gc_cpu(s),
        "allocation": None if several or s.alloc_mib_per_s is None else allocation(report)[0],
        "of": f"Process {axis.processes[0]}" if several and axis.processes else "Whole run",
        **{key: _values(rows, name, _SUM_DIGITS) for key, name in names.items()},
    }


def _position(axis: Axis) -> pl.Expr:
    """Returns the start of each row in seconds on the time axis of the page."""
    if not axis.is_time:
        return pl.col("x").cast(pl.Float64).round(3)
    since = (pl.col("x") - pl.lit(axis.zero)).dt.total_microseconds() / 1e6
    return since.round(3)


def _offset(axis: Axis) -> pl.Expr:
    """Returns where the seconds of each process start on the time axis of the page."""
    if not axis.is_time:
        return pl.lit(0.0)
    starts = {process: axis.at(process, 0.0) for process in axis.processes}
    known = {process: axis.seconds(at) for process, at in starts.items() if at is not None}
    return pl.col("process").replace_strict(
        list(known), list(known.values()), default=None, return_dtype=pl.Float64
    )


def _values(frame: pl.DataFrame, name: str, digits: int = _DIGITS) -> pl.Series:
    values = frame[name]
    if values.dtype == pl.Boolean:
        return values.cast(pl.Int8)
    if not values.dtype.is_float():
        return values
    if name == "t":
        return values.round(3)
    large = values.abs() >= 10**digits
    return values.round_sig_figs(digits).zip_with(
        ~large.fill_null(value=False), values.round(0)
    )


_FIRST_ROWS = 25


def first_page(table: Records, zero: datetime | None) -> Iterator[tuple[str, ...]]:
    """Yields the rows with the longest pauses as text, for readers that run no scripts."""
    columns = table.columns
    if not columns:
        return
    order = largest(columns[table.sort].values, _FIRST_ROWS).to_list()
    # Reading single values of a column is slow.
    chosen = [column.values[order].to_list() for column in columns]
    for at, row in zip(order, zip(*chosen, strict=True), strict=True):
        yield tuple(
            _cell(value, column.kind, at, table, zero)
            for column, value in zip(columns, row, strict=True)
        )


def _cell(value: Any, kind: str, at: int, table: Records, zero: datetime | None) -> str:
    if value is None:
        return NONE
    if kind == "line":
        if len(table.files) < 2:
            return f"{value:,}"
        return f"{_short(table.files[table.file[at]])}:{value}"
    return _TEXT[kind](value) if kind != "time" else ticks.moment(value, zero)


def _number(value: float) -> str:
    """Formats a number with three digits, so that columns are of one precision.

    >>> _number(0.06), _number(2.0), _number(30.5), _number(1476.0), _number(0.0)
    ('0.060', '2.00', '30.5', '1,476', '0')
    """
    decimals = min(3, max(0, 2 - math.floor(math.log10(abs(value))))) if value else 0
    return f"{value:,.{decimals}f}"


def _share(value: float) -> str:
    """Formats a share with one decimal.

    >>> _share(0.13), _share(0.00007), _share(0.0)
    ('13.0 %', '< 0.1 %', '0 %')
    """
    if 0 < value < 0.0005:
        return "< 0.1 %"
    return f"{100 * value:.1f} %" if value else "0 %"


_TEXT: dict[str, Callable[[Any], str]] = {
    "share": _share,
    "flag": lambda value: "yes" if value else "",
    "cycle": lambda value: f"gc {value}",
    "int": lambda value: f"{value:,}",
    "number": _number,
}
