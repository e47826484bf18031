"""The plot of heap obtained and heap needed, from MemStats dumps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.postmortem.memory_of_dumps import in_mib, programs
from gctrace_analyzer.present.format import count
from gctrace_analyzer.present.plots import ticks
from gctrace_analyzer.present.plots.figure import Figure, Mark, Panel
from gctrace_analyzer.present.plots.palette import LOOKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.present.plots.axis import Axis
    from gctrace_analyzer.present.report import Report


FEWEST_DUMPS = 3
"""One or two dumps are shown in a table, not in a chart."""


def memory(report: Report, _axis: Axis) -> Figure:
    """Returns the plot of heap obtained and heap needed."""
    by_process = programs(report.analysis.tables["memstats"])
    dumps = max(by_process, key=len, default=report.analysis.tables["memstats"])
    notes = [f"From {'scrapes' if report.is_scraped else 'MemStats dumps'}, as printed."]
    if (left := len(by_process) - 1) > 0:
        others = count(left, "other is", "others are")
        notes.append(f"The process with the most dumps; {others} not drawn.")
    if len(dumps) < FEWEST_DUMPS:
        dumps, notes = dumps.clear(), []
    x, is_timed = _dump_axis(dumps)
    sys, released = in_mib(dumps, "heap_sys_bytes"), in_mib(dumps, "heap_released_bytes")
    in_use = in_mib(dumps, "heap_inuse_bytes").fill_null(sys - in_mib(dumps, "heap_idle_bytes"))
    pool = in_mib(dumps, "pool_bytes")
    alloc = in_mib(dumps, "heap_alloc_bytes").fill_null(in_mib(dumps, "alloc_bytes"))
    series = (
        ("heap obtained from the system", sys, "system"),
        ("held: obtained minus returned", sys - released.fill_null(0.0), "held"),
        ("heap in use", in_use, "heap in use"),
        ("heap allocated", alloc, "heap goal"),
        ("buffers of the program", pool, "needed"),
        ("returned to the system", released, "given back"),
    )
    marks = []
    for name, values, look in series:
        if values.count():
            points = pl.DataFrame({"x": x, "y": values})
            marks.append(Mark(name, points["x"], points["y"], look=LOOKS[look]))
    title = "Heap obtained and heap needed"
    if len(marks) == 1:
        title = f"{marks[0].name[0].upper()}{marks[0].name[1:]}"
    panel = Panel(
        "memory",
        f"{title}, MiB",
        tuple(marks),
        unit="MiB",
        is_timed=is_timed,
    )
    ends = panel.time_range if is_timed and panel.drawn else None
    return Figure(
        "memory",
        "Heap obtained and heap needed",
        (panel,),
        x_title=ticks.title(*ends) if ends else "number of the dump",
        x_range=ends,
        notes=tuple(notes),
    )


def memstats_marks(report: Report, axis: Axis) -> Iterator[Mark]:
    """Yields MemStats values as points on the time axis of a run."""
    dumps = report.analysis.tables["memstats"].filter(pl.col("logged_at").is_not_null())
    if not axis.is_time or dumps.is_empty():
        return
    for name, column, look in (
        ("HeapAlloc (MemStats)", "heap_alloc_bytes", "heap allocated"),
        ("Sys (MemStats)", "sys_bytes", "system"),
        ("resident memory", "rss_bytes", "resident"),
    ):
        values = in_mib(dumps, column)
        if values.count():
            yield Mark(name, dumps["logged_at"], values, "points", LOOKS[look])


def at_deaths(report: Report, axis: Axis) -> Iterator[Mark]:
    """Yields the resident memory at each kill as points on the time axis of a run."""
    known = [
        (each.logged_at, each.resident_mib)
        for each in report.analysis.post_mortems
        if each.logged_at is not None and each.resident_mib is not None
    ]
    if axis.is_time and known:
        times, sizes = (pl.Series(values) for values in zip(*known, strict=True))
        yield Mark("resident at the kill", times, sizes, "points", LOOKS["killed"], size=9)


def _dump_axis(dumps: pl.DataFrame) -> tuple[pl.Series, bool]:
    """Returns the x values of the dumps, and whether they are times."""
    if dumps["logged_at"].count():
        return dumps["logged_at"], True
    if dumps["elapsed_s"].count():
        return dumps["elapsed_s"], True
    return pl.Series(range(1, len(dumps) + 1), dtype=pl.Int64), False
