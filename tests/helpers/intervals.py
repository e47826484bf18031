"""Intervals between scrapes, as figures are made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.metrics import intervals
from gctrace_analyzer.run import Run

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.analysis import Analysis


def between_dumps(run: Run | Analysis) -> pl.DataFrame:
    """Returns the intervals without the time before the first dump."""
    rows = run.intervals if isinstance(run, Run) else run.dumps.intervals
    return rows.filter(~pl.col("since_start"))


USUAL: dict[str, Any] = {
    "process": 0, "gc_cycles": 10, "forced_cycles": 0, "length_s": 5.0, "alloc_mib": 120.0,
    "heap_goal_mib": 100.0, "goal_mib": 100.0, "goal_mib_before": 100.0, "heap_live_mib": 80.0,
    "live_row_mib": None, "live_row_mib_before": None, "roots_mib": 0.0, "roots_mib_before": 0.0,
    "heap_mib": None, "heap_mib_before": None, "heap_alloc_mib": 90.0, "memory_limit_mib": 120.0, "limit_known": True, "by_limit": True,
    "by_limit_before": True, "goal_is_old": False, "goal_is_old_before": False, "goroutines": None,
    "goroutines_before": None,
    "limit_is_shown": False, "limiter_active": None, "gogc_pct": 100.0,
    "gc_cpu_share": 0.4, "gc_cpu_base": 5.0, "gc_cpu_s": 4.0, "available_cpu_s": 10.0,
    "idle_cpu_s": 0.5, "assist_cpu_s": 1.0, "cpu_s": 6.0, "procs": 2, "stw_total_ms": 2.0,
    "stw_max_ms": 0.5, "new_max_ms": 0.5, "longest_ms": 0.5, "pause_cpu_s": 0.004, "has_fraction": False, "source": "log", "line_no": 1,
    "estimated": [], "assumed_gogc": None, "live_is_read": False,
    "stacks_mib": 1.0, "rss_mib": 130.0, "heap_sys_mib": 110.0, "heap_inuse_mib": 95.0,
    "heap_released_mib": 5.0, "other_mib": 10.0,
}  # fmt: skip
"""Five seconds of a program with 10 cycles, each of which allocates 12 MiB of a goal of 100 MiB
that the memory limit sets. GC takes 40 % of the CPU."""

_TYPES: dict[str, Any] = {
    name: pl.Boolean if value is None or isinstance(value, bool) else pl.Float64
    for name, value in USUAL.items()
    if not isinstance(value, (int, str, list)) or isinstance(value, bool)
} | {
    "assumed_gogc": pl.Float64,
    "heap_mib": pl.Float64,
    "heap_mib_before": pl.Float64,
    "live_row_mib": pl.Float64,
    "live_row_mib_before": pl.Float64,
    "estimated": pl.List(pl.String),
}


def interval_rows(*changed: dict[str, Any]) -> pl.DataFrame:
    """Returns one such interval after the other, each with values of its own."""
    rows = [
        {**USUAL, "begin_s": 5.0 * n, "end_s": 5.0 * n + 5, "num_gc": 100 + 10 * n, **row}
        for n, row in enumerate(changed)
    ]
    frame = pl.DataFrame(rows, schema_overrides=_TYPES)
    return frame.with_columns(
        gc_per_s=pl.col("gc_cycles") / pl.col("length_s"),
        alloc_mib_per_s=pl.col("alloc_mib") / pl.col("length_s"),
        begin_at=pl.lit(None, pl.Datetime("us", "UTC")),
        end_at=pl.lit(None, pl.Datetime("us", "UTC")),
        gc_cpu_share_low=pl.lit(None, pl.Float64),
        gc_cpu_share_high=pl.lit(None, pl.Float64),
        **{
            f"most_{name}{end}": most
            for end in ("", "_before")
            for name, most in (
                ("heap_mib", pl.max_horizontal(f"goal_mib{end}", "heap_alloc_mib")),
                ("live_mib", pl.col(f"live_row_mib{end}")),
            )
        },
        live_known_mib=pl.coalesce("live_row_mib", "heap_live_mib"),
        **{
            f"live_at_mib{end}": pl.coalesce(
                f"live_row_mib{end}",
                pl.col(f"goal_mib{end}") - pl.col("heap_goal_mib") + pl.col("heap_live_mib"),
                "heap_live_mib",
            )
            for end in ("", "_before")
        },
    )


def interval_spans(*changed: dict[str, Any]) -> pl.DataFrame:
    """Returns the same as spans."""
    return intervals.spans(interval_rows(*changed))
