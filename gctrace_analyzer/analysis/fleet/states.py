"""Which processes of a fleet thrash or are near a limit, and how to order them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.settings.known import MEMORY_LIMITS

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.thresholds import Thresholds


OF_DUMP = (
    "since_start_cycles", "since_start_gc_cpu_share", "since_start_stw_max_ms", "needed_mib",
    "sys_mib",
)  # fmt: skip
"""Columns with the totals and sizes of a process of which there is only one dump."""


def is_single() -> pl.Expr:
    """Returns whether there is only one dump of a process, so nothing shows its course."""
    return pl.any_horizontal(pl.col(OF_DUMP).is_not_null())


def with_state(last: pl.DataFrame, t: Thresholds) -> pl.DataFrame:
    """Adds `state` (thrashes, thrashed, near or null) and its evidence."""
    state = (
        pl.when("thrashes_at_end")
        .then(pl.lit("thrashes"))
        .when(pl.col("thrash_s") > 0)
        .then(pl.lit("thrashed"))
        .when(
            pl.col("findings").list.contains("GC015")
            | (pl.col("hours_to_limit") <= t.hours_to_limit)
        )
        .then(pl.lit("near"))
    )
    return last.with_columns(
        hours_to_limit=_hours_to_limit(t), limit_mib=_known_limit(), gc_cores=_cores()
    ).with_columns(state=state, probable_cores=_probable_cores())


_MARK_S_PER_MIB = 0.0005
"""CPU seconds to mark a MiB of live heap. Measured programs need 0.0001 to 0.0024, so this only
serves to order processes with unknown GC CPU."""


def _probable_cores() -> pl.Expr:
    """Returns the cores spent on GC, or a guess for sorting if they are unknown."""
    live = pl.coalesce("live_heap_p50_mib", pl.col("heap_goal_p50_mib") / 2)
    return pl.coalesce("gc_cores", pl.col("gc_per_s") * live * _MARK_S_PER_MIB)


def _cores() -> pl.Expr:
    """Returns the cores that a process spent on GC."""
    return pl.when(pl.col("span_s") > 0).then(pl.col("gc_cpu_s") / pl.col("span_s"))


def _known_limit() -> pl.Expr:
    return pl.min_horizontal(*MEMORY_LIMITS)


def _hours_to_limit(t: Thresholds) -> pl.Expr:
    """Returns the time to the `nearest_limit` in hours; 0 above all limits, null without growth.

    As in a report, a start-up or uneven growth has no rate per hour.
    """
    live = pl.col("live_heap_max_mib")
    above = [pl.when(pl.col(name) > live).then(pl.col(name)) for name in MEMORY_LIMITS]
    hours = (pl.min_horizontal(above) - live) / pl.col("live_heap_growth_mib_per_h")
    low, high = (pl.col(f"live_heap_growth_mib_per_h_{end}") for end in ("low", "high"))
    regular = (pl.col("span_s") >= t.growth_min_span_s) & (high <= t.growth_regular_times * low)
    grows = (low > 0) & regular
    return pl.when(grows & _known_limit().is_not_null()).then(hours.fill_null(0.0))


def of_server(t: Thresholds) -> list[pl.Expr]:
    """Returns what the figures of a server show: state, finding, severity, and the reason.

    A server gives one figure for the whole time range. So it shows no episodes (see
    `analysis.episodes`), only that a process thrashed most of the time.
    """
    per_cycle = pl.col("alloc_mib_per_cycle") / pl.col("heap_goal_mib")
    of_limit = pl.col("go_memory_mib") / pl.col("memory_limit_mib")
    limited = (
        pl.col("memory_limit_mib").is_not_null()
        & (pl.col("gc_per_s") > t.server_min_per_s)
        & (of_limit > t.server_at_limit_share).fill_null(value=True)
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
            pl.col("oom_killed"),
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
    state = pl.coalesce(pl.when(holds).then(pl.lit(name)) for holds, name, _ in rules)
    headline = pl.coalesce(pl.when(holds).then(why) for holds, _, why in rules)
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
