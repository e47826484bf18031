"""Episodes from intervals: thrashing at the memory limit.

Under a limit that the live heap does not fit, each cycle can allocate only a small part of the
heap goal. GC CPU alone does not show it: it was 22 and 28 % in two runs that thrashed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.episodes import runs
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds

if TYPE_CHECKING:
    from collections.abc import Iterator

_CALM_TIMES = 2.0
"""Times the room of thrashing. An interval in which the limiter acted, and whose GC CPU is unknown,
was calm for most of its time if a cycle has more room than this."""


def episodes(intervals: pl.DataFrame, thresholds: Thresholds = DEFAULT) -> pl.DataFrame:
    """Returns every episode (`schema.EPISODES`), ordered by process and start."""
    rows: list[dict[str, Any]] = []
    if intervals.width:
        for part in intervals.partition_by("process", maintain_order=True):
            rows += _limit_thrash(part, thresholds)
    return pl.DataFrame(rows, schema=schema.polars_schema("episodes"))


def _limit_thrash(part: pl.DataFrame, t: Thresholds) -> Iterator[dict[str, Any]]:
    windows = _windows(part, t)
    for first, last in runs(windows["thrash"], min_count=1, gap=1):
        rows = windows[first : last + 1]
        sums = rows.select(
            cycles=pl.col("cycles").sum(),
            span=pl.col("length").sum(),
            room=(pl.col("alloc").sum() / pl.col("cycles").sum() / pl.col("goal").mean()),
            gc=(pl.col("spent").sum() / pl.col("base").sum()),
            idle=pl.col("idle").sum(),
            base=pl.col("base").sum(),
            active=pl.col("limiter").any(),
            known=pl.col("limiter").count(),
            gogc=pl.col("gogc").median(),
        ).row(0, named=True)
        state = "certain" if sums["active"] else "unlikely" if sums["known"] else None
        rate = sums["cycles"] / sums["span"]
        reason = (
            f"A cycle allocates only {100 * (sums['room'] or 0):.0f} % of the heap goal before "
            f"the next one starts ({rate:.1f} cycles per second): the memory limit leaves hardly "
            "any room above the live heap"
        )
        reason += ", and the runtime's CPU limiter was active." if state == "certain" else "."
        left = 1 - sums["idle"] / sums["base"] if sums["base"] else None
        yield {
            "process": part["process"][0],
            "kind": "limit-thrash",
            "start_s": rows["start_s"][0],
            "end_s": rows["end_s"][-1],
            "first_gc": rows["first_gc"][0],
            "last_gc": rows["last_gc"][-1],
            "severity": "bad",
            "reason": reason,
            "active_share": rows["thrash"].mean(),
            "gc_per_s": rate,
            "gc_cpu_share": sums["gc"] if sums["base"] else None,
            "gc_cpu_nonidle_share": sums["gc"] / left if sums["base"] and left else None,
            "effective_gogc_p50": sums["gogc"],
            "limiter": state,
            "source": str(rows["source"][0]),
            "line_no": rows["line_no"][0],
        }


def _windows(part: pl.DataFrame, t: Thresholds) -> pl.DataFrame:
    """Returns windows of some seconds, or of one interval each if that is longer."""
    live, goal = pl.col("heap_live_mib"), pl.col("heap_goal_mib")
    window = (pl.col("begin_s") / t.metrics_thrash_window_s).floor()
    share = pl.col("gc_cpu_share")
    table = part.group_by(window.alias("window"), maintain_order=True).agg(
        pl.col("begin_s").first().alias("start_s"),
        pl.col("end_s").last(),
        (pl.col("num_gc") - pl.col("gc_cycles") + 1).first().alias("first_gc"),
        pl.col("num_gc").last().alias("last_gc"),
        pl.col("source", "line_no").first(),
        cycles=pl.col("gc_cycles").sum(),
        paced=pl.col("gc_cycles").sum() - pl.col("forced_cycles").sum(),
        length=pl.col("length_s").sum(),
        alloc=pl.col("alloc_mib").sum(),
        has_alloc=pl.col("alloc_mib").count() > 0,
        goal=goal.mean(),
        limit=pl.col("memory_limit_mib").last(),
        limit_known=pl.col("limit_known").last(),
        by_limit=pl.any_horizontal("by_limit", "by_limit_before").mean(),
        above=(pl.col("heap_alloc_mib") >= pl.col("goal_mib")).mean(),
        limiter=pl.col("limiter_active").any(),
        limiter_share=pl.col("limiter_active").mean(),
        limiter_known=pl.col("limiter_active").count() > 0,
        gogc_set=pl.col("gogc_pct").last(),
        gogc=(100 * (goal - live) / live).median(),
        spent=(share * pl.col("gc_cpu_base")).sum(),
        base=pl.col("gc_cpu_base").filter(share.is_not_null()).sum(),
        idle=pl.col("idle_cpu_s").filter(share.is_not_null()).sum(),
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
    share = pl.when(pl.col("base") > 0).then(pl.col("spent") / pl.col("base"))
    under_limit = (has_limit | ~pl.col("limit_known")) & at_limit
    busy = (share > t.metrics_thrash_gc_cpu) & under_limit
    # Under a limit that is tight but fits, the limiter acts now and then, for a few cycles. That
    # alone is all that scrapes far apart show of it, so GC CPU or the room must agree.
    acted = ((pl.col("limiter_share") > t.thrash_limited_share) & under_limit).fill_null(
        value=False
    )
    again = acted.shift(1, fill_value=False) | acted.shift(-1, fill_value=False)
    limited = acted & pl.coalesce(
        share > t.gc_cpu_bad, room < _CALM_TIMES * t.metrics_thrash_room, again
    )
    flag = pl.any_horizontal(each.fill_null(value=False) for each in (starved, busy, limited))
    return table.with_columns(
        thrash=flag, limiter=pl.when(pl.col("limiter_known")).then("limiter")
    )
