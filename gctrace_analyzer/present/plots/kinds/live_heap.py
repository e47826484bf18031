"""The plot of the live heap: its growth, and when it reaches the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.settings.known import nearest_limit
from gctrace_analyzer.present.format import duration, mib, rate_of_growth
from gctrace_analyzer.present.plots.axis import Axis, limits
from gctrace_analyzer.present.plots.events import timed
from gctrace_analyzer.present.plots.figure import Figure, Mark, amounts
from gctrace_analyzer.present.plots.palette import LOOKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.present.report import Report


def live_heap(report: Report, axis: Axis) -> Figure:
    """Returns the plot of the live heap with its growth and the time to the limit."""
    live = axis.mark("live heap", "heap_live_mib")
    growth, notes = trend(report, axis)
    levels = tuple(limits(report))
    panel = amounts("live", "Live heap (marked)", "MiB", [live, *growth], levels=levels)
    return timed("live_heap", "Live heap", report, axis, (panel,)).noting(*notes)


def trend(report: Report, axis: Axis) -> tuple[list[Mark], tuple[str, ...]]:
    """Returns the growth as a line through the median point, and sentences about it."""
    s = report.analysis.summary
    growth = s.live_heap_growth_mib_per_h
    low, high = s.live_heap_growth_mib_per_h_low, s.live_heap_growth_mib_per_h_high
    if growth is None or low is None or high is None or len(axis.processes) != 1:
        return [], ()
    process = axis.processes[0]
    points = axis.cycles.select("start_s", "heap_live_mib").drop_nulls()
    first, last = points["start_s"].min(), points["start_s"].max()
    middle, height = points["start_s"].median(), points["heap_live_mib"].median()
    if not (isinstance(first, float) and isinstance(last, float)) or first == last:
        return [], ()
    assert isinstance(middle, float)
    assert isinstance(height, float)
    ends = (first, last)
    x = pl.Series([axis.at(process, end) for end in ends])
    at = {
        name: pl.Series([height + rate / 3600 * (end - middle) for end in ends])
        for name, rate in (("y", growth), ("a", low), ("b", high))
    }
    edges = pl.DataFrame(at)
    line = Mark(
        "growth (95 % interval)",
        x,
        at["y"],
        look=LOOKS["trend"],
        low=edges.select(pl.min_horizontal("a", "b")).to_series(),
        high=edges.select(pl.max_horizontal("a", "b")).to_series(),
    )
    rate_text = rate_of_growth(growth, low, high)
    if low <= 0 <= high:
        # Its wide band would look like a finding.
        return [], ("No significant growth.",)
    text = f"Growth {rate_text}, 95 % interval."
    return [line], (text, *_time_left(report, height + growth / 3600 * (last - middle)))


def _time_left(report: Report, live: float) -> Iterator[str]:
    """Yields a sentence with the time to the nearest limit, at both ends of the interval."""
    s = report.analysis.summary
    low, high = s.live_heap_growth_mib_per_h_low, s.live_heap_growth_mib_per_h_high
    limit = nearest_limit(report.analysis.settings, live)
    if limit is not None and low is not None and high is not None and low > 0:
        soon, late = (3600 * limit.room_mib / rate for rate in (high, low))
        yield (
            f"At this rate the live heap reaches the {limit.name} limit of {mib(limit.mib)} "
            f"{duration(soon)} to {duration(late)} after the last cycle."
        )
