"""Combines the figures of a process whose log was analysed in several sections ("stretches").

Counts, sums, maxima, shares and rates are the same as if the log had been read in one piece,
because the totals of the stretches are added, and also the spans between two stretches (at the
seam). Percentiles are calculated from counted values, the slope of the live heap from medians.
Episodes, findings and recommendations are not combined.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.pauses import single_pauses
from gctrace_analyzer.analysis.summary import growth_of
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.analysis.totals import Totals
from gctrace_analyzer.analysis.trend import POINTS
from gctrace_analyzer.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gctrace_analyzer.schema import Row


_SUMS = {
    "capacity_cpu_s": "cpus",
    "gc_cpu_s": "gc_cpu_share",
    "gc_cpu_with_idle_s": "gc_cpu_with_idle_share",
}
"""The sums in a fleet's rows, and the rates that divide them."""


@frozen
class StretchFigures:
    """The figures of one process in one stretch, with the data for combining stretches.

    Attributes:
        totals: totals of its spans, from the end of the cycle before the stretch if it was read.
        missing: cycles without a line since that cycle.
        check_points: the largest difference of the self-check.
        live: the live heap over time, thinned out: `start_s heap_live_mib`.
        first: the span of its first cycle.
        last: the span of its last cycle.
    """

    totals: Totals
    missing: int
    check_points: float | None
    live: pl.DataFrame
    first: Row
    last: Row


def of_stretch(spans: pl.DataFrame, check_points: float | None) -> StretchFigures:
    """Returns the figures of one process in one stretch, ready to be combined.

    Args:
        spans: the spans of the cycles in the stretch.
        check_points: the largest difference of the self-check.
    """
    late = spans.filter(pl.col("start_s") >= DEFAULT.warm_up_s)
    first, last = (spans.row(at, named=True) for at in (0, -1))
    return StretchFigures(
        Totals.of(spans, single_pauses(spans)).counted(),
        int((spans["steps"] - 1).clip(0).sum()),
        check_points,
        _thinned_out(late.select("start_s", "heap_live_mib").drop_nulls()),
        first,
        last,
    )


def combined(stretches: Sequence[StretchFigures]) -> Row:
    """Returns the figures of one process from its stretches, which are in order."""
    totals = stretches[0].totals
    for stretch in stretches[1:]:
        totals += stretch.totals
    missing = sum(stretch.missing for stretch in stretches)
    for seam in _seams(stretches):
        totals += Totals.of_one(seam)
        missing += int(max(seam["steps"] - 1, 0))
    checks = (stretch.check_points for stretch in stretches if stretch.check_points is not None)
    live = pl.concat([stretch.live for stretch in stretches])
    return {
        **totals.figures(),
        **{
            name: totals.rates[rate][0] if totals.rates[rate][1] else None
            for name, rate in _SUMS.items()
        },
        "missing_cycles": missing,
        "log_check_points": max(checks, key=abs, default=None),
        **growth_of(live),
    }


def _seams(stretches: Sequence[StretchFigures]) -> Iterator[Row]:
    """Yields the span between two stretches, if the second one begins with an unknown past."""
    for one, other in pairwise(stretches):
        last, first = one.last, other.first
        if first["steps"] is not None:
            continue
        gap = {"steps": first["gc_num"] - last["gc_num"]}
        if first["start_s"] is not None and last["end_s"] is not None:
            gap_s = first["start_s"] - last["end_s"]
            capacity = None if first["cpus"] is None else gap_s * first["cpus"]
            gap |= {
                "elapsed_s": gap_s,
                "steps_s": first["start_s"] - last["start_s"],
                "gc_cpu_s": 0.0,
                "idle_cpu_s": 0.0,
                "assist_cpu_s": 0.0,
                "active_s": 0.0,
                "pause_total_ms": 0.0,
                "capacity_s": capacity,
                "capacity_time_s": gap_s,
            }
        yield gap


def _thinned_out(series: pl.DataFrame) -> pl.DataFrame:
    size = max(len(series) // POINTS, 1)
    return (
        series.with_row_index("row")
        .group_by(pl.col("row") // size, maintain_order=True)
        .agg(pl.col("start_s", "heap_live_mib").median())
        .select("start_s", "heap_live_mib")
    )
