"""The plots of programs without gctrace, over the intervals between dumps or scrapes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.present.plots.axis import Axis, limits
from gctrace_analyzer.present.plots.figure import Mark, Panel, amounts, shares

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gctrace_analyzer.present.report import Report

_MEMORY = (
    ("live heap", "heap_live_mib", "live heap"),
    ("heap goal", "heap_goal_mib", "heap goal"),
    ("heap allocated", "heap_alloc_mib", "heap allocated"),
    ("heap obtained from the system", "heap_sys_mib", "system"),
    ("resident memory", "rss_mib", "resident"),
)


def panels(report: Report, axis: Axis) -> tuple[Panel, ...]:
    """Returns memory, pauses, GC CPU, frequency and allocation, as far as they are known."""
    levels = tuple(limits(report))
    cpu = _marks(axis, [("GC CPU", "gc_cpu_share", "GC CPU")])
    allocation = _marks(axis, [("allocation", "alloc_mib_per_s", "allocation")])
    return (
        amounts("heap", "Memory", "MiB", _marks(axis, _MEMORY), levels=levels),
        pauses(axis),
        shares("gc_cpu", "GC CPU, share of all CPU, per interval", cpu),
        frequency(axis),
        amounts("allocation", "Allocation", "MiB/s", allocation, x_title=axis.title),
    )


def pauses(axis: Axis) -> Panel:
    """Returns the longest pause of each interval, or the total if only that is known."""
    longest = list(_marks(axis, [("longest pause", "stw_max_ms", "mark termination")]))
    total = _marks(axis, [("pauses, total", "stw_total_ms", "mark termination")])
    title = "Longest pause of a cycle in each interval" if longest else "Pauses per interval"
    return amounts("pauses", title, "ms", longest or total)


def frequency(axis: Axis) -> Panel:
    """Returns the cycles per second of each interval."""
    marks = _marks(axis, [("cycles per second", "gc_per_s", "interval")])
    title = "GC frequency, cycles per second"
    return Panel("frequency", title, tuple(marks), unit="/s", is_timed=True)


def _marks(axis: Axis, columns: Sequence[tuple[str, str, str]]) -> Iterator[Mark]:
    for name, column, look in columns:
        mark = axis.mark(name, column, look, weight="elapsed_s", kind="step")
        if mark.y.count() and axis.ends is not None:
            yield _to_the_end(mark, axis.ends[1])


def _to_the_end(mark: Mark, end: Any) -> Mark:
    """Returns the steps, with an end for the last one."""
    parts = {
        name: values.append(values.tail(1))
        for name in ("y", "low", "high", "where")
        if (values := getattr(mark, name)) is not None
    }
    return replace(mark, x=mark.x.append(pl.Series([end], dtype=mark.x.dtype)), **parts)
