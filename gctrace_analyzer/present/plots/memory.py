"""The plot of heap obtained and heap needed, from MemStats dumps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.postmortem.memory import programs
from gctrace_analyzer.present.plots.figure import COLORS, Figure, Mark, Panel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.present.plots.axis import Axis
    from gctrace_analyzer.present.report import Report

MIB = 1 << 20

FEWEST_DUMPS = 3
"""One or two dumps are shown in a table, not in a chart."""


def memory(report: Report, _axis: Axis) -> Figure:
    """Returns the plot of heap obtained and heap needed."""
    by_process = programs(report.analysis.tables["memstats"])
    dumps = max(by_process, key=len, default=report.analysis.tables["memstats"])
    notes = ["From MemStats dumps, as printed."]
    if len(by_process) > 1:
        notes.append(
            f"The process with the most dumps; {len(by_process) - 1} more are not drawn."
        )
    if len(dumps) < FEWEST_DUMPS:
        dumps = dumps.clear()
    x, title = _dump_axis(dumps)
    sys, released = _mib(dumps, "heap_sys_bytes"), _mib(dumps, "heap_released_bytes")
    in_use = _mib(dumps, "heap_inuse_bytes").fill_null(sys - _mib(dumps, "heap_idle_bytes"))
    pool = _mib(dumps, "pool_bytes")
    alloc = _mib(dumps, "heap_alloc_bytes").fill_null(_mib(dumps, "alloc_bytes"))
    series = (
        ("heap obtained from the system", sys, COLORS["container"], False),
        ("held: obtained minus returned", sys - released.fill_null(0.0), COLORS["held"], False),
        ("heap in use", in_use, COLORS["heap start"], False),
        ("heap allocated", alloc, COLORS["heap goal"], False),
        ("buffers of the program", pool, COLORS["needed"], False),
        ("returned to the system", released, COLORS["given back"], True),
    )
    marks = []
    for name, values, color, dash in series:
        if values.count():
            points = pl.DataFrame({"x": x, "y": values})
            marks.append(Mark(name, points["x"], points["y"], color=color, dash=dash))
    return Figure(
        "memory",
        "Heap obtained and heap needed",
        (Panel("memory", "MiB", tuple(marks)),),
        x_title=title,
        notes=tuple(notes),
    )


def memstats_marks(report: Report, axis: Axis) -> Iterator[Mark]:
    """Yields MemStats values as points on the time axis of a run."""
    dumps = report.analysis.tables["memstats"].filter(pl.col("logged_at").is_not_null())
    if not axis.is_time or dumps.is_empty():
        return
    for name, column in (("HeapAlloc", "heap_alloc_bytes"), ("Sys", "sys_bytes")):
        values = _mib(dumps, column)
        if values.count():
            yield Mark(
                f"{name} (MemStats)",
                dumps["logged_at"],
                values,
                "points",
                COLORS["needed" if name == "HeapAlloc" else "all pauses"],
            )


def _dump_axis(dumps: pl.DataFrame) -> tuple[pl.Series, str]:
    """Returns the x values of the dumps and the axis title."""
    if dumps["logged_at"].count():
        return dumps["logged_at"], "time (UTC)"
    if dumps["elapsed_s"].count():
        return dumps["elapsed_s"], "seconds"
    return pl.Series(range(len(dumps)), dtype=pl.Int64), "dumps"


def _mib(dumps: pl.DataFrame, column: str) -> pl.Series:
    return dumps[column].cast(pl.Float64) / MIB
