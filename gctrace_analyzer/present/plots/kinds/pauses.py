"""The plot of pauses by phase: their distribution, and over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.pauses import PHASES, as_printed, single_pauses
from gctrace_analyzer.present.plots import steps
from gctrace_analyzer.present.plots.events import timed
from gctrace_analyzer.present.plots.figure import Figure, amounts, cumulative, distributed
from gctrace_analyzer.present.plots.kinds import intervals
from gctrace_analyzer.present.plots.palette import LOOKS

if TYPE_CHECKING:
    from gctrace_analyzer.present.plots.axis import Axis
    from gctrace_analyzer.present.plots.figure import Panel
    from gctrace_analyzer.present.report import Report

NOTE = "Cumulative share: the share of pauses up to that length. All long pauses are drawn."


def pauses(report: Report, axis: Axis) -> Figure:
    """Returns the plot of pauses by phase: their distribution, and over time."""
    if axis.by_dumps:
        return timed("pauses", "Pauses", report, axis, (intervals.pauses(axis),))
    printed = report.analysis.corrected.with_columns(as_printed())
    series = {
        phase: printed[column] for phase, column in PHASES.items() if printed[column].count()
    }
    if len(series) > 1:
        series["all pauses"] = single_pauses(printed)
    spread = [
        distributed(name, values, LOOKS[name], axis.bins) for name, values in series.items()
    ]
    panels = (
        cumulative("spread", "Cumulative share of pauses", spread, "pause", "ms"),
        over_time("when", axis, x_title=axis.title),
    )
    notes = (*axis.notes, NOTE)
    return Figure("pauses", "Pauses by phase", panels, shared_x=False, notes=notes)


def over_time(name: str, axis: Axis, x_title: str = "") -> Panel:
    """Returns the panel of pauses over time."""
    how = steps.points_of(axis)
    marks = [axis.mark(phase, column, **how) for phase, column in PHASES.items()]
    return amounts(name, "Stop-the-world pauses", "ms", marks, x_title=x_title)
