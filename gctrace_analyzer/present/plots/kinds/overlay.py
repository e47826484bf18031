"""The plot of several runs in the same charts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.pauses import single_pauses
from gctrace_analyzer.present.format import duration
from gctrace_analyzer.present.plots.axis import axis_of
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
from gctrace_analyzer.present.plots.palette import RUNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gctrace_analyzer.present.plots.axis import Axis
    from gctrace_analyzer.present.plots.palette import Look
    from gctrace_analyzer.present.report import Report

_RANGES, _FEWEST_RANGES = 120, 20
"""Time ranges of the longest run, and of a short one. Single cycles of several runs would hide
each other."""

_MOST_BANDS = 2
"""Runs with a band around their lines: those of more would cover each other's lines."""


def overlay(
    runs: Mapping[str, Report], bins: int, sides: Mapping[str, str] | None = None
) -> Figure:
    """Returns a plot of several runs: pauses, times between cycles, GC CPU, live heap.

    Args:
        runs: the runs by name.
        bins: points per run in distributions.
        sides: what each run belongs to; runs of one side look the same.
    """
    looks = _looks(runs, sides or {})
    pauses, gaps = [], []
    for name, report in runs.items():
        corrected = report.analysis.corrected
        pauses.append(distributed(name, single_pauses(corrected), looks[name], bins))
        gap_s = corrected.select(pl.col("start_s").diff().over("process")).to_series()
        gaps.append(
            distributed(name, gap_s.filter(gap_s > 0), looks[name], bins, least=LEAST_S)
        )
    spans = {name: report.analysis.summary.span_s or 0.0 for name, report in runs.items()}
    range_s = max(spans.values(), default=0.0) / _RANGES
    cpu, live = [], []
    for name, report in runs.items():
        ranges = math.ceil(spans[name] / range_s) if range_s else _RANGES
        axis = axis_of(report, bins=max(_FEWEST_RANGES, ranges))
        has_band = len(runs) <= _MOST_BANDS
        cpu.append(
            _line(name, axis, "gc_cpu_share", looks[name], "elapsed_s", has_band=has_band)
        )
        live.append(_line(name, axis, "heap_live_mib", looks[name], has_band=has_band))
    at = "time since the start of each log, h:mm:ss"
    panels = (
        cumulative("pauses", "Cumulative share of pauses", pauses, "pause", "ms"),
        cumulative(
            "intervals", "Cumulative share of intervals", gaps, "time between cycles", "s"
        ),
        shares("gc_cpu", "GC CPU, share of all CPU", cpu, x_title=at),
        amounts("live", "Live heap (marked)", "MiB", live, x_title=at),
    )
    binned = f"GC CPU and live heap: the means of time ranges of {duration(range_s)}."
    notes = (NOTE, *([binned] if range_s else []))
    return Figure("compared", " · ".join(runs), panels, shared_x=False, notes=notes)


def _line(
    name: str,
    axis: Axis,
    column: str,
    look: Look,
    weight: str | None = None,
    *,
    has_band: bool,
) -> Mark:
    """Returns a column over the time since the start of the run."""
    points = axis.series(column, weight=weight)
    return Mark(
        name,
        _since(points["x"]) if axis.is_time else points["x"],
        points["y"],
        look=look,
        low=points["low"] if has_band else None,
        high=points["high"] if has_band else None,
        where=points["where"],
    )


def _looks(runs: Iterable[str], sides: Mapping[str, str]) -> dict[str, Look]:
    """Returns the look of each run: that of its side, if it has one."""
    order = list(dict.fromkeys(sides.get(name, name) for name in runs))
    return {name: RUNS[order.index(sides.get(name, name)) % len(RUNS)] for name in runs}


def _since(times: pl.Series) -> pl.Series:
    micros = times.dt.epoch("us")
    return (micros - (micros.min() or 0)) / 1e6
