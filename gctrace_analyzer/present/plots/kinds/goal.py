"""The plot of the heap goal, its setter, and the effective GOGC."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.present.plots.axis import Axis, limits
from gctrace_analyzer.present.plots.events import timed
from gctrace_analyzer.present.plots.figure import Figure, amounts

if TYPE_CHECKING:
    from gctrace_analyzer.present.report import Report

_TITLE = "Heap goal and what sets it"


def goal(report: Report, axis: Axis) -> Figure:
    """Returns the plot of the heap goal, its setter, and the effective GOGC."""
    if axis.by_dumps:
        return timed("goal", _TITLE, report, axis, ())
    goals = [
        axis.mark(
            f"goal set by {setter.replace('-', ' ').replace('gogc', 'GOGC')}",
            "heap_goal_mib",
            setter,
            only=pl.col("goal_set_by") == setter,
            kind="points",
        )
        for setter in axis.cycles["goal_set_by"].drop_nulls().unique().sort()
    ]
    live = axis.mark("live heap", "heap_live_mib", "heap start")
    gogc = axis.mark("effective GOGC", "drawn_gogc")
    ceiling = axis.ceiling("drawn_gogc")
    panels = (
        amounts("goal", "Heap goal", "MiB", [live, *goals], levels=tuple(limits(report))),
        amounts("gogc", "Effective GOGC", "%", [gogc], ceiling=ceiling),
    )
    return timed("goal", _TITLE, report, axis, panels)
