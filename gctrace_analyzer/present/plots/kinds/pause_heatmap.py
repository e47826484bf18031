"""The latency heat map: how many pauses of each length there were, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.pauses import PHASES
from gctrace_analyzer.present.format import duration
from gctrace_analyzer.present.plots import ticks
from gctrace_analyzer.present.plots.figure import SMALLEST_MS, Figure, Mark, Panel
from gctrace_analyzer.units import digits

if TYPE_CHECKING:
    from gctrace_analyzer.present.plots.axis import Axis
    from gctrace_analyzer.present.report import Report

_COLUMNS, _CYCLES_PER_COLUMN = 80, 2
_ROWS_PER_DECADE = 8


def pause_heatmap(report: Report, axis: Axis) -> Figure:
    """Returns the plot of pauses over time, their length on a logarithmic axis."""
    title = "Pauses by length over time"
    pauses = _pauses(report, axis)
    if pauses["x"].n_unique() < 2:
        return Figure("pause_heatmap", title, (), notes=axis.notes)
    ends: tuple[Any, Any] = pauses["x"].min(), pauses["x"].max()
    begin, end = ends
    columns = max(1, min(_COLUMNS, len(pauses) // _CYCLES_PER_COLUMN))
    step: Any = (end - begin) / columns
    at = ((pl.col("x") - begin) / step).floor().cast(pl.Int64).clip(0, columns - 1)
    row = (pl.col("ms").log10() * _ROWS_PER_DECADE).floor().cast(pl.Int64)
    counts = pauses.group_by(at=at, row=row).len()
    numbers = counts["row"].to_list()
    rows = range(min(numbers), max(numbers) + 1)
    cells: list[list[int | None]] = [[None] * columns for _ in rows]
    for column, number, pauses_in_it in counts.iter_rows():
        cells[number - rows.start][column] = pauses_in_it
    mark = Mark(
        "pauses",
        pl.Series([begin + step * column for column in range(columns + 1)]),
        pl.Series([10 ** (edge / _ROWS_PER_DECADE) for edge in (*rows, rows.stop)]),
        "heat",
        cells=cells,
    )
    panel = Panel(
        "pauses",
        "Stop-the-world pauses, ms",
        (mark,),
        unit="ms",
        log_y=True,
        is_timed=True,
        x_title=ticks.title(*ends),
    )
    step_s = step if isinstance(step, float) else step.total_seconds()
    ratio = digits(10 ** (1 / _ROWS_PER_DECADE), 2)
    # Every pause is counted, however many there are.
    others = axis.notes[1:] if len(axis.cycles) > axis.bins else axis.notes
    note = (
        f"Colour: the number of pauses in {duration(step_s)} that took as long as the row says; "
        f"each row is {ratio} times the one below."
    )
    return Figure(
        "pause_heatmap",
        title,
        (panel,),
        shared_x=False,
        x_range=ends,
        notes=(note, *others),
    )


def _pauses(report: Report, axis: Axis) -> pl.DataFrame:
    """Returns the moment and length of each pause; in MemStats, both pauses of a cycle are one."""
    if axis.by_dumps or axis.cycles.is_empty():
        known = report.analysis.tables["cycle_pauses"]
        of_process = known.filter(pl.col("process").is_in(axis.processes or (0,)))
        pauses = of_process.select(x="ended_at", ms="pause_ms")
    else:
        pauses = pl.concat(axis.cycles.select("x", ms=name) for name in PHASES.values())
    return pauses.drop_nulls().with_columns(pl.col("ms").clip(lower_bound=SMALLEST_MS))
