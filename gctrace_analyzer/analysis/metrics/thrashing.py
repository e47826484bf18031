"""Episodes from intervals: thrashing at the memory limit.

Under a limit that the live heap does not fit, each cycle can allocate only a small part of the
heap goal. GC CPU alone does not show it: it was 22 and 28 % in two runs that thrashed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.episodes import Part, costs, episode, runs
from gctrace_analyzer.analysis.limiter import IN_WORDS
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.analysis.totals import quotient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.schema import Row

CALM_TIMES = 2.0
"""Times the room of thrashing. An interval in which the limiter acted, and whose GC CPU is unknown,
was calm for most of its time if a cycle has more room than this."""


def found_in(spans: pl.DataFrame, thresholds: Thresholds = DEFAULT) -> list[Row]:
    """Returns every episode as a row of `schema.EPISODES` with its `ranges`."""
    several = spans.partition_by("process", maintain_order=True) if spans.width else ()
    return [row for part in several for row in _limit_thrash(part, thresholds)]


def _limit_thrash(part: pl.DataFrame, t: Thresholds) -> Iterator[Row]:
    windows = _windows(part, t)
    for first, last in runs(windows["thrash"], min_count=1, gap=1):
        rows = windows[first : last + 1]
        room, acted, known, gogc, share = rows.select(
            (pl.col("alloc").sum() / pl.col("cycles").sum() / pl.col("goal").mean()),
            pl.col("limiter").any(),
            pl.col("limiter").count().alias("known"),
            pl.col("gogc").median(),
            pl.col("thrash").mean(),
        ).row(0)
        own = part.filter(_window(t).is_between(rows["window"][0], rows["window"][-1]))
        spent = costs(own)
        state = "certain" if acted else "unlikely" if known else None
        reason = (
            f"A cycle allocates only {100 * (room or 0):.0f} % of the heap goal before "
            f"the next one starts ({spent['gc_per_s'] or 0:.1f} cycles per second): the "
            "memory limit leaves hardly any room above the live heap"
        )
        reason += IN_WORDS[state or "unlikely"]
        yield episode(
            Part(rows, share),
            "limit-thrash",
            "bad",
            reason,
            **spent,
            effective_gogc_p50=gogc,
            limiter=state,
        )


def _window(t: Thresholds) -> pl.Expr:
    return (pl.col("begin_s") / t.metrics_thrash_window_s).floor()


def _windows(part: pl.DataFrame, t: Thresholds) -> pl.DataFrame:
    """Returns windows of some seconds, or of one interval each if that is longer."""
    table = part.group_by(_window(t).alias("window"), maintain_order=True).agg(
        pl.col("begin_s").first().alias("start_s"),
        pl.col("end_s").last(),
        pl.col("process", "first_gc", "source", "line_no").first(),
        pl.col("gc_num").last(),
        cycles=pl.col("cycles").sum(),
        paced=pl.col("cycles").sum() - pl.col("forced_cycles").sum(),
        alloc=pl.col("alloc_mib").sum(),
        has_alloc=pl.col("alloc_mib").count() > 0,
        goal=pl.col("heap_goal_mib").mean(),
        limit=pl.col("memory_limit_mib").last(),
        limit_known=pl.col("limit_known").last(),
        by_limit=pl.any_horizontal("by_limit", "by_limit_before").mean(),
        above=(pl.col("heap_alloc_mib") >= pl.col("goal_mib")).mean(),
        limiter=pl.col("limiter_active").any(),
        limiter_share=pl.col("limiter_active").mean(),
        limiter_known=pl.col("limiter_active").count() > 0,
        gogc=pl.col("effective_gogc").median(),
        share=quotient("gc_cpu_share"),
    )
    room = pl.when(pl.col("has_alloc") & (pl.col("cycles") >= t.thrash_min_cycles)).then(
        pl.col("alloc") / pl.col("cycles") / pl.col("goal")
    )
    has_limit = pl.col("limit").is_not_null()
    least = (
        pl.when(has_limit)
        .then(t.metrics_thrash_room)
        # A low GOGC leaves as little room, without a limit.
        .when(~pl.col("limit_known"))
        .then(t.metrics_thrash_room_unknown)
    )
    # Only a limit that the live heap does not fit makes a goal that the heap is always above.
    by_limit = pl.coalesce("by_limit", "above", 1.0)
    at_limit = by_limit > t.thrash_limited_share
    mostly_paced = pl.col("paced") * 2 > pl.col("cycles")
    starved = (room < least) & at_limit & mostly_paced
    share = pl.col("share")
    under_limit = (has_limit | ~pl.col("limit_known")) & at_limit
    busy = (share > t.metrics_thrash_gc_cpu) & under_limit
    # Under a limit that is tight but fits, the limiter acts now and then, for a few cycles. That
    # alone is all that scrapes far apart show of it, so GC CPU or the room must agree.
    acted = ((pl.col("limiter_share") > t.thrash_limited_share) & under_limit).fill_null(
        value=False
    )
    again = acted.shift(1, fill_value=False) | acted.shift(-1, fill_value=False)
    limited = acted & pl.coalesce(
        share > t.gc_cpu_bad, room < CALM_TIMES * t.metrics_thrash_room, again
    )
    flag = pl.any_horizontal(each.fill_null(value=False) for each in (starved, busy, limited))
    return table.with_columns(
        thrash=flag, limiter=pl.when(pl.col("limiter_known")).then("limiter")
    )
