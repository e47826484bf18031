"""The plot of the time between cycles: over time, and its distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.present.plots.events import timed
from gctrace_analyzer.present.plots.figure import Figure, amounts, cumulative, distributed
from gctrace_analyzer.present.plots.kinds import intervals
from gctrace_analyzer.present.plots.palette import LOOKS

if TYPE_CHECKING:
    from gctrace_analyzer.present.plots.axis import Axis
    from gctrace_analyzer.present.report import Report

LEAST_S = 1e-6
"""Shortest time between cycles on a logarithmic axis."""


def frequency(report: Report, axis: Axis) -> Figure:
    """Returns the plot of the time between cycles: over time, and its distribution."""
    if axis.by_dumps:
        return timed("frequency", "GC frequency", report, axis, (intervals.frequency(axis),))
    known = pl.col("interval_s") > 0
    cycles = axis.mark("interval", "interval_s", only=known, kind="points")
    times = axis.cycles["interval_s"]
    spread = distributed(
        "intervals", times.filter(times > 0), LOOKS["interval"], axis.bins, least=LEAST_S
    )
    title = "Time between cycles"
    panels = (
        amounts(
            "interval", title, "s", [cycles], log_y=True, x_title=axis.title, from_zero=False
        ),
        cumulative(
            "distribution", "Cumulative share of intervals", [spread], title.lower(), "s"
        ),
    )
    return timed("frequency", "GC frequency", report, axis, panels, shared=False)
