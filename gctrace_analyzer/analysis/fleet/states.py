"""Which processes of a fleet thrash, or are near a limit, and what they are ordered by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.settings import MEMORY_LIMITS

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.thresholds import Thresholds


def with_state(last: pl.DataFrame, t: Thresholds) -> pl.DataFrame:
    """Adds `state`: thrashes, thrashed, near or null; and what it rests on."""
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
orders processes whose GC CPU is not known."""


def _probable_cores() -> pl.Expr:
    """Returns the cores spent on GC; where they are not known, a guess to sort by."""
    live = pl.coalesce("live_heap_p50_mib", pl.col("heap_goal_p50_mib") / 2)
    return pl.coalesce("gc_cores", pl.col("gc_per_s") * live * _MARK_S_PER_MIB)


def _cores() -> pl.Expr:
    """Returns the cores that a process spent on GC."""
    return pl.when(pl.col("span_s") > 0).then(pl.col("gc_cpu_s") / pl.col("span_s"))


def _known_limit() -> pl.Expr:
    return pl.min_horizontal(*MEMORY_LIMITS)


def _hours_to_limit(t: Thresholds) -> pl.Expr:
    """Returns the time to the `nearest_limit`; 0 above all limits, null without growth.

    As in a report, a start-up or an uneven growth has no rate per hour.
    """
    live = pl.col("live_heap_max_mib")
    above = [pl.when(pl.col(name) > live).then(pl.col(name)) for name in MEMORY_LIMITS]
    hours = (pl.min_horizontal(above) - live) / pl.col("live_heap_growth_mib_per_h")
    low, high = (pl.col(f"live_heap_growth_mib_per_h_{end}") for end in ("low", "high"))
    regular = (pl.col("span_s") >= t.growth_min_span_s) & (high <= t.growth_regular_times * low)
    grows = (low > 0) & regular
    return pl.when(grows & _known_limit().is_not_null()).then(hours.fill_null(0.0))
