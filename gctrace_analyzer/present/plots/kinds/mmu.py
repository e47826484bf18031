"""The plot of the minimum CPU share left to the program, by window length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.present.plots.figure import Figure, Mark, cumulative
from gctrace_analyzer.present.plots.palette import LOOKS

if TYPE_CHECKING:
    from gctrace_analyzer.present.plots.axis import Axis
    from gctrace_analyzer.present.report import Report

_NOTE = "Assists are assumed to be spread evenly over marking: the log has no times for them."


def mmu(report: Report, axis: Axis) -> Figure:
    """Returns the plot of the minimum CPU share left to the program, by window length."""
    rows = report.analysis.mmu_of(axis.processes[-1] if axis.processes else None)
    marks = [
        Mark(name, rows["window_ms"], rows[column], look=LOOKS[look])
        for name, column, look in (
            ("pauses only", "mmu_share", "all pauses"),
            ("pauses and assists", "mmu_with_assists_share", "mark assist"),
        )
    ]
    title = "Minimum CPU share left to the program"
    panel = cumulative("mmu", title, marks, "window length", "ms")
    notes = (_NOTE,) if len(rows) else ()
    return Figure("mmu", "Minimum mutator utilization", (panel,), shared_x=False, notes=notes)
