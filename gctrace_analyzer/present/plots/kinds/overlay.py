"""The plot of several runs in the same charts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.pauses import single_pauses
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present.format import duration
from gctrace_analyzer.present.plots.axis import Axis, axis_of
from gctrace_analyzer.present.plots.figure import (
    Figure,
    Mark,
    amounts,
    cumulative,
    distributed,
    shares,
)
from gctrace_analyzer.present.plots.kinds.frequency import LEAST_S
from gctrace_analyzer.present.plots.kinds.pauses import NOTE
from gctrace_analyzer.present.plots.palette import RUNS, Look

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gctrace_analyzer.present.plots.figure import Panel
    from gctrace_analyzer.present.report import Report

_RANGES, _FEWEST_RANGES = 120, 20
"""Time ranges for the longest run, and for a short one. Single cycles of several runs would hide
each other."""

_SINCE = "time since the start of each log"
_MOST_BANDS = 2
"""Runs with a band around their lines: bands of more runs would cover the lines."""


def overlay(
    runs: Mapping[str, Report],
    bins: int,
    sides: Mapping[str, str] | None = None,
    column: str | None = None,
) -> Figure:
    """Returns a plot of several runs: pauses, times between cycles, GC CPU, live heap.

    Args:
        runs: the runs by name.
        bins: points per run in distributions.
        sides: the side of each run; runs of one side look the same.
        column: draw only this column over time.

    Raises:
        BadSettingError: no run has such a column of numbers.
    """
    looks = _looks(runs, sides or {})
    lines = _Lines.of(runs, looks)
    title = " · ".join(runs)
    if column is not None:
        note = (f"Shown are {lines.means}",) if lines.means else ()
        return Figure("compared", title, (lines.panel(column),), shared_x=False, notes=note)
    pauses, gaps = [], []
    for name, report in runs.items():
        corrected = report.analysis.corrected
        pauses.append(distributed(name, single_pauses(corrected), looks[name], bins))
        gap_s = corrected.select(pl.col("start_s").diff().over("process")).to_series()
        gaps.append(
            distributed(name, gap_s.filter(gap_s > 0), looks[name], bins, least=LEAST_S)
        )
    panels = (
        cumulative("pauses", "Cumulative share of pauses", pauses, "pause", "ms"),
        cumulative(
            "intervals", "Cumulative share of intervals", gaps, "time between cycles", "s"
        ),
        shares(
            "gc_cpu",
            "GC CPU, share of all CPU",
            lines.marks("gc_cpu_share", "elapsed_s"),
            x_title=_SINCE,
            ceiling=lines.ceiling("gc_cpu_share"),
        ),
        amounts(
            "live", "Live heap (marked)", "MiB", lines.marks("heap_live_mib"), x_title=_SINCE
        ),
    )
    notes = (NOTE, *([f"GC CPU and live heap: {lines.means}"] if lines.means else []))
    return Figure("compared", title, panels, shared_x=False, notes=notes)


@frozen
class _Lines:
    """Runs over the time since the start of each; `means` says what their points are."""

    axes: dict[str, Axis]
    looks: Mapping[str, Look]
    means: str

    @classmethod
    def of(cls, runs: Mapping[str, Report], looks: Mapping[str, Look]) -> _Lines:
        spans = {name: report.analysis.summary.span_s or 0.0 for name, report in runs.items()}
        range_s = max(spans.values(), default=0.0) / _RANGES
        bins = {
            name: max(_FEWEST_RANGES, math.ceil(span / range_s)) if range_s else _RANGES
            for name, span in spans.items()
        }
        axes = {name: axis_of(report, bins=bins[name]) for name, report in runs.items()}
        means = f"the means of time ranges of {duration(range_s)}." if range_s else ""
        return cls(axes, looks, means)

    def marks(self, column: str, weight: str | None = None) -> list[Mark]:
        """Returns a column of each run that has it."""
        return [
            self._mark(name, axis, axis.series(column, weight=weight))
            for name, axis in self.axes.items()
            if column in axis.cycles.columns
        ]

    def _mark(self, name: str, axis: Axis, points: pl.DataFrame) -> Mark:
        """Returns the points of a run over the time since its start."""
        has_band = len(self.axes) <= _MOST_BANDS
        return Mark(
            name,
            _since(points["x"]) if axis.is_time else points["x"],
            points["y"],
            look=self.looks[name],
            low=points["low"] if has_band else None,
            high=points["high"] if has_band else None,
            where=points["where"],
        )

    def ceiling(self, column: str) -> float | None:
        """Returns where an axis ends that the start-up of a run would stretch."""
        known = [axis for axis in self.axes.values() if column in axis.cycles.columns]
        ends = (axis.ceiling(column) or axis.cycles[column].max() for axis in known)
        return max((end for end in ends if isinstance(end, float)), default=None)

    def panel(self, column: str) -> Panel:
        """Returns the panel of any column of numbers.

        Raises:
            BadSettingError: no run has such a column.
        """
        there = {name for axis in self.axes.values() for name in axis.cycles.columns}
        known = {
            about.name: about
            for about in (*schema.INTERVALS, *schema.METRICS, *schema.CYCLES)
            if about.name in there and about.unit and about.dtype in ("Int64", "Float64")
        }
        if column not in known:
            raise BadSettingError.unknown("column", column, known)
        about, marks = known[column], self.marks(column)
        if column.endswith("_share"):
            return shares(column, about.meaning, marks, x_title=_SINCE)
        return amounts(column, about.meaning, about.unit, marks, x_title=_SINCE)


def _looks(runs: Iterable[str], sides: Mapping[str, str]) -> dict[str, Look]:
    """Returns the look of each run, or that of its side."""
    order = list(dict.fromkeys(sides.get(name, name) for name in runs))
    return {name: RUNS[order.index(sides.get(name, name)) % len(RUNS)] for name in runs}


def _since(times: pl.Series) -> pl.Series:
    micros = times.dt.epoch("us")
    return (micros - (micros.min() or 0)) / 1e6
