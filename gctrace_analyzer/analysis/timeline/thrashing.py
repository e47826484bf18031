"""Whether a program thrashes at its memory limit, from cycles and from intervals between dumps.

If the live heap does not fit under the limit, goals are at or below the live heap. Between two
dumps, each cycle can allocate only a small part of the heap goal. GC CPU alone does not show
thrashing: it was only 22 and 28 % in two runs that thrashed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis import totals
from gctrace_analyzer.analysis.cycles import wall_ms
from gctrace_analyzer.analysis.spans import select
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.analysis.timeline import limiter
from gctrace_analyzer.analysis.timeline.lasting import Part, episode, parts, runs
from gctrace_analyzer.analysis.totals import quotient, rates_of
from gctrace_analyzer.ingest.gctrace.columns import WALL_PHASES
from gctrace_analyzer.ingest.rows import median, not_null
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.schema import Row

CALM_TIMES = 2.0
"""Multiple of the room in thrashing. If a cycle has more room than this, an interval with an active
limiter and unknown GC CPU was calm most of its time."""


def limit_thrash(cycles: pl.DataFrame, t: Thresholds) -> Iterator[Row]:
    """Yields the episodes in which the live heap does not fit under the memory limit.

    Either goals are at or below the previous live heap, or the limit sets the goals a few per
    cent above the live heap and GC is running most of the time.
    """
    live, newer = cycles["_live"], cycles["stacks_mib"].is_not_null()
    tight = may_be_tight(cycles, cycles) & newer
    below = tight & ~cycles["forced"]
    # After a burst, the goal is far above the live heap that the cycle itself leaves.
    room = cycles["heap_goal_mib"] / cycles["heap_live_mib"] - 1
    lasts = below & (room <= t.thrash_gogc / 100)
    large = live >= t.thrash_min_live_mib
    spans = runs(lasts & large, min_count=t.thrash_min_cycles, gap=t.thrash_gap_cycles)
    spans += runs(lasts & ~large, min_count=t.thrash_small_cycles, gap=1)
    spans += _tight_windows(cycles, t)
    if spans:
        below = tight.fill_null(value=False)
        spans += _at_like_cost(cycles, _rows(cycles, spans), t)
        # Rows of the spans: an episode also includes the cycles between them.
        marked = cycles.with_columns(below=below, tight=_rows(cycles, spans))
        for thrashing in parts(marked, spans, t):
            yield _thrash(thrashing, t)


def _rows(cycles: pl.DataFrame, spans: list[tuple[int, int]]) -> pl.Series:
    """Returns which cycles are in the spans."""
    ranges = pl.DataFrame(spans, schema=["first", "last"], orient="row")
    rows = ranges.select(pl.int_ranges("first", pl.col("last") + 1).explode()).to_series()
    return pl.int_range(len(cycles), eager=True).is_in(rows.implode())


def may_be_tight(cycles: pl.DataFrame, known: pl.DataFrame) -> pl.Series:
    """Returns whether each goal is at or below the live heap of the previous cycle.

    GOGC leaves at least 1 MiB for sweeping, so at any size only a limit sets such goals.
    """
    return cycles["heap_goal_mib"] <= known["_live"]


def _tight_windows(cycles: pl.DataFrame, t: Thresholds) -> list[tuple[int, int]]:
    """Returns the windows in which the memory limit leaves little headroom.

    GC also runs most of the time in these windows. Each window is given by the indices of its first
    and last cycle.
    """
    by_limit = cycles["goal_set_by"] == "memory-limit"
    if by_limit.sum() < t.thrash_limited_share * t.thrash_min_cycles:
        return []
    needed = ("start_s", "effective_gogc", "elapsed_s", *WALL_PHASES)
    rows = cycles.select(*needed, by_limit=by_limit).with_row_index("row")
    rows = rows.with_columns(window=(pl.col("start_s") / t.thrash_window_s).floor())
    # A log may end as soon as it begins to thrash.
    last = rows.tail(t.thrash_min_cycles).with_columns(window=pl.lit(-1.0))
    bound = pl.col("by_limit") & (pl.col("effective_gogc") < t.limit_gogc_bad)
    windows = (
        rows.vstack(last)
        .group_by("window", maintain_order=True)
        .agg(
            # The heap may reach the limit or be freed in the middle of a window.
            first=pl.col("row").filter(bound).min(),
            last=pl.col("row").filter(bound).max(),
            count=pl.len(),
            gogc=not_null(pl.col("effective_gogc")).median(),
            limited=pl.col("by_limit").fill_null(value=False).mean(),
            active=wall_ms().sum() / 1000 / pl.col("elapsed_s").sum(),
        )
    )
    tight = windows.filter(
        (pl.col("gogc") <= t.thrash_gogc)
        & (pl.col("limited") > t.thrash_limited_share)
        & (pl.col("active") >= t.thrash_active_share)
        & (pl.col("count") >= t.thrash_min_cycles)
    )
    return [(int(a), int(b)) for a, b in tight.select("first", "last").iter_rows()]


def _at_like_cost(
    cycles: pl.DataFrame, tight: pl.Series, t: Thresholds
) -> list[tuple[int, int]]:
    """Returns the ranges around tight cycles in which the same limit costs about as much.

    Thrashing begins and ends with its cause, not where the room or the time in GC passes a limit.
    """
    rate, few = "gc_cpu_nonidle_share", t.thrash_gap_cycles
    parts_of = totals.part(rate).alias("spent"), totals.whole(rate).alias("of")
    amounts = select(cycles, *parts_of).fill_null(0.0)
    spent, of = (float(amounts.filter(tight)[name].sum()) for name in ("spent", "of"))
    if not of:
        return []
    least = max(t.thrash_like_cost * spent / of, t.gc_cpu_warn)
    above = amounts["spent"] - least * amounts["of"]
    costly = above.rolling_sum(few, min_samples=1, center=True) >= 0
    by_limit = (cycles["goal_set_by"] == "memory-limit") & ~cycles["forced"]
    alike = by_limit & costly & (cycles["effective_gogc"] < t.limit_gogc_bad)
    ranges = runs(tight | alike, min_count=t.thrash_min_cycles, gap=few)
    return [(first, last) for first, last in ranges if tight[first : last + 1].any()]


def costs(spans: pl.DataFrame) -> dict[str, float | None]:
    """Returns what GC costs while a program thrashes: its frequency and its shares of the CPU."""
    rates = rates_of(spans, "counted_per_s", "gc_cpu_share", "gc_cpu_nonidle_share")
    return {"gc_per_s": rates.pop("counted_per_s"), **rates}


def _thrash(thrashing: Part, t: Thresholds) -> Row:
    part = thrashing.cycles
    share = float(part["below"].mean() or 0)  # type: ignore[arg-type]  # a boolean column
    gogc, fill = part.select(
        not_null(pl.col("effective_gogc")).median(), pl.col("limiter_fill").max()
    ).row(0)
    state, duty = limiter.verdict(fill, t), thrashing.duty
    if share >= t.thrash_limited_share:
        below = int(part["below"].sum())
        many = f"all {below:,}" if below == len(part) else f"{below:,} of {len(part):,}"
        # The runtime sets no goal below the live heap, so equal sizes mean no room. For a small
        # heap, whole MiB leave that open.
        is_small = median(part["_live"]) < t.thrash_min_live_mib
        where = "less than 1 MiB above" if is_small else "at or below"
        reason = f"The heap goal was {where} the live heap in {many} cycles"
    else:
        # If most cycles have no room, all count as tight: with a few MiB, not every goal shows it.
        has_room = round(gogc or 0) > 0
        tight, duty = (part.filter("tight"), duty) if has_room else (part, "")
        left_pct = round(max(median(tight["effective_gogc"]), 0))
        room = f"only as much room as GOGC={left_pct}" if left_pct else "no room"
        of_all = "" if len(tight) == len(part) else f" of the {len(part):,}"
        many = f"{len(tight):,}{of_all} cycles"
        reason = f"The memory limit left the live heap {room} (median of {many})"
    reason += duty
    reason += limiter.IN_WORDS[state]
    return episode(
        thrashing,
        "limit-thrash",
        "bad",
        reason,
        **costs(part),
        effective_gogc_p50=gogc,
        goal_at_or_below_live_share=share,
        limiter=state,
        limiter_fill_max=fill,
    )


def between_dumps(spans: pl.DataFrame, thresholds: Thresholds = DEFAULT) -> list[Row]:
    """Returns every episode as a row of `schema.EPISODES` with its `ranges`."""
    several = spans.partition_by("process", maintain_order=True) if spans.width else ()
    return [row for part in several for row in _between_dumps(part, thresholds)]


def _between_dumps(part: pl.DataFrame, t: Thresholds) -> Iterator[Row]:
    windows = _windows(part, t)
    lasts = windows["thrash"] | _alike(windows, t)
    for first, last in runs(lasts, min_count=1, gap=1):
        rows = windows[first : last + 1]
        if not rows["thrash"].any():
            continue
        room, acted, known, gogc = rows.select(
            (pl.col("alloc").sum() / pl.col("cycles").sum() / pl.col("goal").mean()),
            pl.col("limiter").any(),
            pl.col("limiter").count().alias("known"),
            pl.col("gogc").median(),
        ).row(0)
        own = part.filter(_window(t).is_between(rows["window"][0], rows["window"][-1]))
        spent = costs(own)
        state = "certain" if acted else "unlikely" if known else None
        is_limit = acted or rows["limit"].count() > 0
        cause = (
            "the memory limit" if is_limit else f"a memory limit, or {low_gogc(room or 0.0)},"
        )
        reason = (
            f"A cycle allocates only {100 * (room or 0):.0f} % of the heap goal before "
            f"the next one starts ({spent['gc_per_s'] or 0:.1f} cycles per second): {cause} "
            "leaves hardly any room above the live heap"
        )
        reason += limiter.IN_WORDS[state or "unlikely"]
        length_s = rows["end_s"][0] - rows["start_s"][0]
        if first and length_s >= _COARSE_S:
            reason += (
                f" Intervals of {duration_text(length_s)} do not show when exactly it began."
            )
        yield episode(
            Part(rows, float(lasts[first : last + 1].mean() or 0)),  # type: ignore[arg-type]
            "limit-thrash",
            "bad",
            reason,
            **spent,
            effective_gogc_p50=gogc,
            limiter=state,
        )


_COARSE_S = 30.0
"""Seconds. The begin of an interval this long is not the begin of what happened in it."""


def _alike(windows: pl.DataFrame, t: Thresholds) -> pl.Series:
    """Returns the windows in which the limit sets the goals at about the cost of thrashing."""
    cost = windows.filter("thrash")["share"].mean()
    least = max(t.thrash_like_cost * float(cost or math.inf), t.gc_cpu_warn)  # type: ignore[arg-type]
    alike = pl.col("bound") & (pl.col("share") >= least) & (pl.col("gogc") < t.limit_gogc_bad)
    return windows.select(alike.fill_null(value=False)).to_series()


def low_gogc(room: float) -> str:
    """Returns the GOGC under which a cycle allocates so small a share of the heap goal.

    A cycle starts at 0.7 of the way from the live heap to the goal, or later (mgcpacer.go).

    >>> low_gogc(0.05)
    'a GOGC of 8 or less'
    """
    way = min(room / _TRIGGER, 0.5)
    return f"a GOGC of {100 * way / (1 - way):.0f} or less"


_TRIGGER = 0.7


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
        # A low GOGC leaves the same little room, without a limit.
        .when(~pl.col("limit_known"))
        .then(t.metrics_thrash_room_unknown)
    )
    # Only if the live heap does not fit under the limit is the heap always above its goal.
    by_limit = pl.coalesce("by_limit", "above", 1.0)
    at_limit = by_limit > t.thrash_limited_share
    mostly_paced = pl.col("paced") * 2 > pl.col("cycles")
    starved = (room < least) & at_limit & mostly_paced
    share = pl.col("share")
    under_limit = (has_limit | ~pl.col("limit_known")) & at_limit
    is_bound = (has_limit & at_limit & mostly_paced).fill_null(value=False)
    busy = (share > t.metrics_thrash_gc_cpu) & under_limit
    # Under a limit that is tight but fits, the limiter acts briefly now and then. Widely spaced
    # scrapes show only that it acted, so GC CPU or the room must confirm thrashing.
    acted = ((pl.col("limiter_share") > t.thrash_limited_share) & under_limit).fill_null(
        value=False
    )
    again = acted.shift(1, fill_value=False) | acted.shift(-1, fill_value=False)
    limited = acted & pl.coalesce(
        share > t.gc_cpu_bad, room < CALM_TIMES * t.metrics_thrash_room, again
    )
    flag = pl.any_horizontal(each.fill_null(value=False) for each in (starved, busy, limited))
    return table.with_columns(
        thrash=flag, bound=is_bound, limiter=pl.when(pl.col("limiter_known")).then("limiter")
    )
