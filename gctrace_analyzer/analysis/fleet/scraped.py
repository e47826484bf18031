"""Rows of a fleet from what a server computes for its processes (`prometheus.queries`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds

if TYPE_CHECKING:
    from collections.abc import Sequence

_TEXTS = ("service", "instance", "namespace", "pod", "container", "gogc", "go_version")
_NUMBERS = (
    "covered_s", "gc_cores", "cores", "gc_cpu_share", "assist_share_of_gc_cpu",
    "gc_per_s", "stw_share", "stw_max_ms", "alloc_mib_per_s", "alloc_mib_per_cycle",
    "heap_live_mib", "heap_live_max_mib", "heap_goal_mib", "heap_goal_max_mib", "go_memory_mib",
    "rss_max_mib", "memory_limit_mib", "container_limit_mib", "limiter_changes", "restarts",
)  # fmt: skip
_TYPES: dict[str, pl.DataType] = {
    **dict.fromkeys(_TEXTS, pl.String()),
    **dict.fromkeys(_NUMBERS, pl.Float64()),
    "oom_killed": pl.Boolean(),
}
_NOTE = "Rates and means over the whole time range, computed by the server."


def rows(
    figures: Sequence[dict[str, Any]],
    names: Sequence[str],
    server: str,
    t: Thresholds = DEFAULT,
) -> pl.DataFrame:
    """Returns one row per process (`schema.FLEET`); what a process does not export is null.

    Args:
        figures: what the server computes for each process.
        names: what each process is called, all different.
        server: the address of the server, without secrets.
        t: what counts as thrashing, and as near a limit.
    """
    span = pl.col("covered_s")
    frame = pl.DataFrame(figures, schema=_TYPES).with_columns(
        _state(t), file=pl.Series("file", names, pl.String)
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
        (pl.col(name) if name in known.columns else pl.lit(None)).cast(each).alias(name)
        for name, each in types.items()
    )


def _state(t: Thresholds) -> list[pl.Expr]:
    """Returns the state, the finding behind it, how bad it is, and the sentence that says why."""
    per_cycle = pl.col("alloc_mib_per_cycle") / pl.col("heap_goal_mib")
    limited = pl.col("memory_limit_mib").is_not_null() & (
        pl.col("gc_per_s") > t.server_min_per_s
    )
    of_container = pl.col("rss_max_mib") / pl.col("container_limit_mib")
    often = pl.format(
        "A cycle for every {} % of the heap goal under GOMEMLIMIT.", _percent(per_cycle)
    )
    rules: list[tuple[pl.Expr, str, pl.Expr]] = [
        (
            pl.col("limiter_changes") > 0,
            "thrashing",
            pl.lit("The runtime's CPU limiter was active."),
        ),
        (
            pl.col("gc_cpu_share") > t.server_thrash_gc_cpu_share,
            "thrashing",
            pl.format("{} % of all CPU is spent on GC.", _percent(pl.col("gc_cpu_share"))),
        ),
        (limited & (per_cycle < t.server_thrash_cycle_share), "thrashing", often),
        (
            pl.col("oom_killed").fill_null(value=False),
            "killed",
            pl.lit("The container was killed for memory."),
        ),
        (limited & (per_cycle < t.server_near_cycle_share), "near", often),
        (
            pl.col("heap_live_mib") > t.fleet_limit_share * pl.col("memory_limit_mib"),
            "near",
            pl.lit("GOMEMLIMIT is too close to the live heap."),
        ),
        (
            of_container > t.server_container_share,
            "near",
            pl.format("{} % of the container's memory was used.", _percent(of_container)),
        ),
    ]
    state: pl.Expr = pl.lit(None, pl.String)
    headline: pl.Expr = pl.lit(None, pl.String)
    for condition, name, why in reversed(rules):
        holds = condition.fill_null(value=False)
        state = pl.when(holds).then(pl.lit(name)).otherwise(state)
        headline = pl.when(holds).then(why).otherwise(headline)
    ids = {"thrashing": "GC016", "killed": "GC039", "near": "GC015"}
    severities = {"thrashing": "bad", "killed": "bad", "near": "warn"}
    return [
        state.alias("state"),
        headline.alias("headline"),
        pl.concat_list(state.replace_strict(ids, default=None))
        .list.drop_nulls()
        .alias("findings"),
        state.replace_strict(severities, default=None).alias("severity"),
    ]


def _percent(share: pl.Expr) -> pl.Expr:
    return (100 * share).round(0).cast(pl.Int64, strict=False)
