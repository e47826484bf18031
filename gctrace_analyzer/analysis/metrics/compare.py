"""A run that was observed by its metrics, ready to be compared: see `analysis.compare`.

The chance within a run shows in its intervals as it does in the cycles of a log. Percentiles of
single pauses have no standard error here, because intervals contain only their sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.compare.bootstrap import spreads
from gctrace_analyzer.analysis.compare.compare import Measured
from gctrace_analyzer.analysis.compare.metrics import figures

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.summary import Summary

_QUANTILES: dict[str, tuple[tuple[str, ...], float]] = {
    "live_heap_p50_mib": (("heap_live_mib",), 0.5),
    "heap_goal_p50_mib": (("heap_goal_mib",), 0.5),
}


def measured(intervals: pl.DataFrame, summary: Summary) -> Measured:
    """Returns a run with its metrics and their standard errors.

    Args:
        intervals: what `intervals.intervals` returns.
        summary: the summary of the same intervals.
    """
    rows = intervals.with_columns(
        start_s="begin_s",
        # As in the summary: samples miss the peak, the goal is where the heap ends.
        heap_end_mib=pl.max_horizontal("goal_mib", "goal_mib_before", "heap_alloc_mib"),
    )
    values = figures(summary)
    by_limit = rows.select((pl.col("by_limit").mean() > 0.5).fill_null(value=False)).item()
    return Measured(
        rows, summary, values, spreads(rows, values, _ratios(), _QUANTILES), by_limit
    )


def _ratios() -> dict[str, tuple[pl.Expr, pl.Expr]]:
    """Returns numerator and denominator per interval, as the summary divides them."""
    share, base = pl.col("gc_cpu_share"), pl.col("gc_cpu_base")
    gc, assist, available = (
        pl.col("gc_cpu_s"),
        pl.col("assist_cpu_s"),
        pl.col("available_cpu_s"),
    )
    length = pl.col("length_s")
    return {
        "gc_cpu_share": (share * base, base),
        "gc_cpu_with_idle_share": (gc + pl.col("idle_cpu_s"), available),
        "gc_per_s": (pl.col("gc_cycles").cast(pl.Float64), length),
        "assist_share_of_gc_cpu": (assist, gc),
        "assist_share_of_cpu": (assist, available),
        "stw_share": (pl.col("stw_total_ms"), 1000 * length),
        "alloc_mib_per_s": (pl.col("alloc_mib"), length),
    }
