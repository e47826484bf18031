"""Rows of a fleet from what a server computes for its processes (`prometheus.queries`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.fleet.states import of_server
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds

_TEXTS = ("service", "instance", "namespace", "pod", "container", "gogc", "go_version")
_NUMBERS = (
    "covered_s", "gc_cores", "cores", "assist_cores", "gc_per_s", "stw_share", "stw_max_ms",
    "alloc_mib_per_s",
    "heap_live_mib", "heap_live_max_mib", "heap_goal_mib", "heap_goal_max_mib", "go_memory_mib",
    "rss_max_mib", "memory_limit_mib", "container_limit_mib", "limiter_changes", "restarts",
)  # fmt: skip
_TYPES: dict[str, pl.DataType] = {
    **dict.fromkeys(_TEXTS, pl.String()),
    **dict.fromkeys(_NUMBERS, pl.Float64()),
    "oom_killed": pl.Boolean(),
}
_RATES = ("gc_per_s", "stw_share", "alloc_mib_per_s", "gc_cores", "cores", "assist_cores")
"""Figures that a server divides by the whole time range, even for shorter processes."""

_NOTE = "Rates and means over the whole time range, computed by the server."


def rows(
    figures: Sequence[Mapping[str, float | str | None]],
    range_s: float,
    names: Sequence[str],
    server: str,
    t: Thresholds = DEFAULT,
) -> pl.DataFrame:
    """Returns one row per process (`schema.FLEET`); figures that it does not export are null.

    Args:
        figures: the figures that the server computes for each process.
        range_s: the length of the time range.
        names: a unique name for each process.
        server: the address of the server, without secrets.
        t: the thresholds of thrashing, and of being near a limit.
    """
    span = pl.col("covered_s")
    frame = (
        pl.DataFrame(figures, schema=_TYPES)
        .with_columns(pl.col(_RATES) * (range_s / span).fill_null(1.0))
        .with_columns(
            gc_cpu_share=_ratio("gc_cores", "cores"),
            assist_share_of_gc_cpu=_ratio("assist_cores", "gc_cores"),
            alloc_mib_per_cycle=_ratio("alloc_mib_per_s", "gc_per_s"),
        )
        .with_columns(of_server(t), file=pl.Series("file", names, pl.String))
    )
    known = frame.with_columns(
        process=pl.lit(0),
        server=pl.lit(server),
        span_s=span,
        cycles=(pl.col("gc_per_s") * span).round(),
        go_version_min="go_version",
        go_version_max="go_version",
        procs=pl.col("cores").round(),
        cpus="cores",
        gc_cpu_cores="gc_cores",
        gc_cpu_s=pl.col("gc_cores") * span,
        capacity_cpu_s=pl.col("cores") * span,
        live_heap_p50_mib="heap_live_mib",
        live_heap_max_mib="heap_live_max_mib",
        heap_goal_p50_mib="heap_goal_mib",
        heap_peak_mib="heap_goal_max_mib",
        alloc_total_mib=pl.col("alloc_mib_per_s") * span,
        stw_total_ms=1000 * pl.col("stw_share") * span,
        thrashes_at_end=pl.col("state") == "thrashing",
        oom_kills=pl.col("oom_killed").fill_null(value=False).cast(pl.Int64),
        short=pl.col("gc_per_s") * span < t.short_log_cycles,
        warnings=pl.lit([_NOTE]),
        estimated=pl.lit(["live_heap_p50_mib", "heap_goal_p50_mib", "heap_peak_mib"]),
    ).with_columns(
        thrash_s=pl.when("thrashes_at_end").then(span).otherwise(0.0),
        missing_cycles=pl.lit(0),
    )
    types = schema.polars_schema("fleet")
    return known.select(
        (pl.col(name) if name in known.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in types.items()
    )


def _ratio(above: str, below: str) -> pl.Expr:
    return pl.when(pl.col(below) != 0).then(pl.col(above) / pl.col(below))
