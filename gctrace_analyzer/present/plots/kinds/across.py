"""The plot of the pauses of several runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.pauses import PHASES
from gctrace_analyzer.present.plots.figure import SMALLEST_MS, Figure, Mark, Panel
from gctrace_analyzer.present.plots.palette import LOOKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.present.report import Report

_ONE_PAUSE = "Go 1.4 and earlier print one pause per cycle, shown as mark termination."
_FIGURES = {"p50_ms": "median", "p99_ms": "p99", "max_ms": "maximum"}
"""Columns of pauses, and their looks."""


def across(runs: Mapping[str, Report]) -> Figure:
    """Returns a plot of the pauses of several runs side by side."""
    rows = {name: report.analysis.pauses for name, report in runs.items()}
    panels = [
        Panel(
            phase.replace(" ", "_"),
            f"{phase.capitalize()}, ms",
            tuple(_mark(rows, phase, figure) for figure in _FIGURES),
            unit="ms",
            log_y=True,
            from_zero=False,
        )
        for phase in PHASES
    ]
    notes = () if all(len(pauses) > 1 for pauses in rows.values()) else (_ONE_PAUSE,)
    return Figure("across", "Pauses by phase", tuple(panels), notes=notes)


def _mark(rows: Mapping[str, pl.DataFrame], phase: str, figure: str) -> Mark:
    values = [_of_phase(pauses, phase, figure) for pauses in rows.values()]
    return Mark(
        figure.removesuffix("_ms"),
        pl.Series(list(rows)),
        pl.Series(values),
        "points" if figure == "max_ms" else "line",
        LOOKS[_FIGURES[figure]],
        size=8,
    )


def _of_phase(pauses: pl.DataFrame, phase: str, figure: str) -> float | None:
    values = pauses.filter(phase=phase)[figure]
    return max(float(values[0]), SMALLEST_MS) if len(values) else None
