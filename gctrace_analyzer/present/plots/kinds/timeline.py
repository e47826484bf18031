"""The plot of heap, pauses, GC CPU, assists and allocation over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.present.plots import steps
from gctrace_analyzer.present.plots.axis import Axis, limits
from gctrace_analyzer.present.plots.events import timed
from gctrace_analyzer.present.plots.figure import Figure, Panel, amounts, shares
from gctrace_analyzer.present.plots.kinds import assist, intervals, pauses
from gctrace_analyzer.present.plots.kinds.memory import at_deaths, memstats_marks

if TYPE_CHECKING:
    from gctrace_analyzer.present.report import Report

_GC_CPU = {"with idle marking": "gc_cpu_with_idle_share", "GC CPU": "gc_cpu_share"}


def timeline(report: Report, axis: Axis) -> Figure:
    """Returns the plot of heap, pauses, GC CPU, assists and allocation over time."""
    panels = intervals.panels(report, axis) if axis.by_dumps else _panels(report, axis)
    return timed("timeline", "Timeline", report, axis, panels)


def _panels(report: Report, axis: Axis) -> tuple[Panel, ...]:
    return (
        _heap(report, axis),
        pauses.over_time("pauses", axis),
        _gc_cpu(axis),
        assist.over_time(axis),
        assist.allocation(axis),
    )


def _heap(report: Report, axis: Axis) -> Panel:
    is_forced = pl.col("forced")
    forced = axis.mark(
        "forced cycle", "heap_start_mib", "forced", only=is_forced, kind="points"
    )
    marks = [
        axis.mark("heap at cycle start", "heap_start_mib", "heap start"),
        axis.mark("live heap (marked)", "heap_live_mib", "live heap"),
        axis.mark("heap goal", "heap_goal_mib"),
        *([forced] if forced.y.count() else []),
        *memstats_marks(report, axis),
        *at_deaths(report, axis),
    ]
    return amounts("heap", "Heap", "MiB", marks, levels=tuple(limits(report)))


def _gc_cpu(axis: Axis) -> Panel:
    few = steps.are_few(axis)
    marks = [
        steps.since_before(axis, name, column)
        if few
        else axis.mark(name, column, weight="elapsed_s")
        for name, column in _GC_CPU.items()
    ]
    ceiling = axis.ceiling(*_GC_CPU.values())
    return shares("gc_cpu", "GC CPU, share of all CPU, per cycle", marks, ceiling=ceiling)
