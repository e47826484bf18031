"""Heap held against heap needed: what dumps of MemStats tell."""

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
"""One or two dumps are a table's, not a chart's."""


def memory(report: Report, _axis: Axis) -> Figure:
    """Heap held against heap needed, from dumps of MemStats."""
    by_program = programs(report.analysis.tables["memstats"])
    dumps = max(by_program, key=len, default=report.analysis.tables["memstats"])
    notes = ["From dumps of MemStats, as they were written."]
    if len(by_program) > 1:
        notes.append(
            f"The program with the most dumps; {len(by_program) - 1} more are not drawn."
        )
    if len(dumps) < FEWEST_DUMPS:
        dumps = dumps.clear()
    x, title = _dump_axis(dumps)
    sys, released = _mib(dumps, "heap_sys_bytes"), _mib(dumps, "heap_released_bytes")
    in_use = _mib(dumps, "heap_inuse_bytes").fill_null(sys - _mib(dumps, "heap_idle_bytes"))
    pool = _mib(dumps, "pool_bytes")
    alloc = _mib(dumps, "heap_alloc_bytes").fill_null(_mib(dumps, "alloc_bytes"))
    series = (
        ("heap taken from the system", sys, COLORS["container"], False),
        ("held: taken less given back", sys - released.fill_null(0.0), COLORS["held"], False),
        ("heap in use", in_use, COLORS["heap start"], False),
        ("heap allocated", alloc, COLORS["heap goal"], False),
        ("the program's own buffers", pool, COLORS["needed"], False),
        ("given back", released, COLORS["given back"], True),
    )
    marks = []
    for name, values, color, dash in series:
        if values.count():
            points = pl.DataFrame({"x": x, "y": values})
            marks.append(Mark(name, points["x"], points["y"], color=color, dash=dash))
    return Figure(
        "memory", "Heap held against heap needed",
        (Panel("memory", "MiB", tuple(marks)),), x_title=title,
        notes=tuple(notes),
    )  # fmt: skip


def dumped(report: Report, axis: Axis) -> Iterator[Mark]:
    """MemStats as points on a run's own clock."""
    dumps = report.analysis.tables["memstats"].filter(pl.col("logged_at").is_not_null())
    if not axis.is_time or dumps.is_empty():
        return
    for name, column in (("HeapAlloc", "heap_alloc_bytes"), ("Sys", "sys_bytes")):
        values = _mib(dumps, column)
        if values.count():
            yield Mark(
                f"{name} (MemStats)", dumps["logged_at"], values, "points",
                COLORS["needed" if name == "HeapAlloc" else "all pauses"],
            )  # fmt: skip


def _dump_axis(dumps: pl.DataFrame) -> tuple[pl.Series, str]:
    """What the dumps say of their time."""
    if dumps["logged_at"].count():
        return dumps["logged_at"], "time (UTC)"
    if dumps["elapsed_s"].count():
        return dumps["elapsed_s"], "seconds"
    return pl.Series(range(len(dumps)), dtype=pl.Int64), "dumps"


def _mib(dumps: pl.DataFrame, column: str) -> pl.Series:
    return dumps[column].cast(pl.Float64) / MIB
