"""Episodes: groups of cycles in which something unusual happened, with time and reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.pauses import longest_ms
from gctrace_analyzer.analysis.spans import gc_cpu
from gctrace_analyzer.analysis.thresholds import Thresholds
from gctrace_analyzer.analysis.timeline import limiter
from gctrace_analyzer.analysis.timeline.lasting import Part, episode, parts, runs
from gctrace_analyzer.analysis.timeline.segments import idle_gap, may_idle
from gctrace_analyzer.analysis.timeline.thrashing import limit_thrash, may_be_tight
from gctrace_analyzer.analysis.totals import rates_of
from gctrace_analyzer.ingest.rows import (
    before,
    by_process,
    complete,
    is_one_process,
    not_null,
    within_process,
    without,
)
from gctrace_analyzer.units import duration_text

_SEVERAL_BURSTS = 4
"""A log needs this many times the cycles of the shortest burst. A shorter log has no usual
frequency to compare a burst with."""


def found_in(enriched: pl.DataFrame, thresholds: Thresholds) -> list[schema.Row]:
    """Returns every episode as a row of `schema.EPISODES` with its `ranges`.

    Args:
        enriched: what `enrich` returns.
        thresholds: the limits that the kinds of episodes depend on.
    """
    rows: list[schema.Row] = []
    timed = complete(enriched, "start_s")
    possible = possible_kinds(timed, thresholds)
    for part in by_process(timed) if possible else ():
        for find in possible.get(part[0]["process"][0], ()):
            rows += find(part, thresholds)
    return rows


def as_table(rows: list[schema.Row]) -> pl.DataFrame:
    """Returns episodes as `schema.EPISODES`, ordered by process and start."""
    if not rows:
        return schema.empty("episodes")
    frame = pl.DataFrame(rows, schema=schema.polars_schema("episodes"))
    return frame.sort("process", "start_s", "kind")


def active_ranges(rows: list[schema.Row]) -> pl.DataFrame:
    """Returns the time ranges of each episode's state: `process kind severity start_s end_s`.

    There is one row for each time that a state came and went, in the order of `rows`, and one for
    each of the longest unusual pauses.
    """
    known = schema.polars_schema("episodes")
    own = {name: known[name] for name in ("process", "kind", "severity")}
    span = pl.List(pl.Struct({"start_s": pl.Float64, "end_s": pl.Float64}))
    return pl.DataFrame(rows, schema={**own, "ranges": span}).explode("ranges").unnest("ranges")


OF_FEW_RULES = ("stw_total_ms", "trigger_share", "overshoot_share", "survival_share")
"""Metrics that are calculated only if a rule needs them."""


def fills(goal_set_by: pl.Series, known: pl.DataFrame, durations: pl.DataFrame) -> pl.Expr:
    """Returns `limiter.fills`, or null if no goal can be that of a limit.

    Args:
        goal_set_by: what set each goal.
        known: what `since_before` returns for the same cycles.
        durations: what `correct_durations` returns for them. The CPU limiter counts by the clock.
    """
    limited = (goal_set_by == "memory-limit") | may_be_tight(durations, known)
    return pl.lit(limiter.fills(durations) if limited.any() else None, pl.Float64)


def enrich(metrics: pl.DataFrame, fills: pl.Expr, spans: pl.DataFrame) -> pl.DataFrame:
    """Returns the cycles with all columns that episodes, segments and rules need.

    Args:
        metrics: what `with_metrics` returns; it may lack `OF_FEW_RULES`, and the
            `gc_cpu_share` that is added.
        fills: what `fills` returns for the same cycles: `limiter_fill`.
        spans: what `spans.of_cycles` returns for these cycles. Its durations replace the printed
            ones, and its other columns are added.
    """
    printed = [name for name in metrics.columns if not name.endswith("_ms")]
    # Side by side, because a column that is handed over is no longer stored as one value.
    both = pl.concat([metrics[printed], without(spans, *printed)], how="horizontal")
    return both.with_columns(*gc_cpu(spans), limiter_fill=fills)


def assist_storm(cycles: pl.DataFrame, t: Thresholds) -> Iterator[schema.Row]:
    """Yields the episodes in which goroutines do most of the marking."""
    storm = (cycles["assist_share"] >= t.storm_assist_share) & (
        cycles["gc_cpu_share"] >= t.gc_cpu_warn
    )
    spans = runs(storm, min_count=t.storm_min_cycles, gap=t.storm_gap_cycles)
    for storming in parts(cycles, spans, t):
        part = storming.cycles
        if storming.span_s < t.storm_min_s:
            continue
        share = rates_of(part, "assist_share_of_gc_cpu")["assist_share_of_gc_cpu"] or 0.0
        reason = (
            f"Mark assists took {100 * share:.0f} % of GC CPU in {len(part):,} cycles"
            f"{storming.duty}."
        )
        yield episode(storming, "assist-storm", "warn", reason, assist_share_of_gc_cpu=share)


def gc_burst(cycles: pl.DataFrame, t: Thresholds) -> Iterator[schema.Row]:
    """Yields the episodes in which GC runs far more often than usual."""
    usual = not_null(cycles["interval_s"]).median()
    if not isinstance(usual, float) or len(cycles) < _SEVERAL_BURSTS * t.burst_min_cycles:
        return
    fast = (cycles["interval_s"] < usual / t.burst_times) & ~cycles["forced"]
    for burst in parts(cycles, runs(fast, min_count=t.burst_min_cycles, gap=t.gap_cycles), t):
        rate = (len(burst.cycles) - 1) / burst.span_s if burst.span_s else 0.0
        # Bursts far apart are one episode, in which GC may run less often than usual.
        if rate >= t.burst_min_per_s and rate * usual > 1:
            reason = (
                f"GC ran {len(burst.cycles):,} times at {rate:.1f} cycles per second"
                f"{burst.duty}; the usual rate is {1 / usual:.1f}."
            )
            yield episode(burst, "gc-burst", "info", reason, gc_per_s=rate)


def forced_loop(cycles: pl.DataFrame, t: Thresholds) -> Iterator[schema.Row]:
    """Yields the episodes in which the program forces GC again and again."""
    spans = runs(cycles["forced"], min_count=t.forced_min_cycles, gap=t.gap_cycles)
    for loop in parts(cycles, spans, t):
        forced, span_s = int(loop.cycles["forced"].sum()), loop.span_s
        reason = f"{forced:,} GC cycles are marked as forced in {duration_text(span_s)}."
        rate = (len(loop.cycles) - 1) / span_s if span_s else None
        yield episode(loop, "forced-loop", "warn", reason, gc_per_s=rate)


def pause_outlier(cycles: pl.DataFrame, t: Thresholds) -> Iterator[schema.Row]:
    """Yields the pauses that are far longer than the others."""
    for name, words in (
        ("stw_sweep_term_ms", "Sweep termination"),
        ("stw_mark_term_ms", "Mark termination"),
    ):
        few = len(cycles) < t.short_log_cycles
        if few or not (cycles[name] > t.stw_warn_ms).any():
            continue
        typical = float(not_null(cycles[name]).median() or 0.0)  # type: ignore[arg-type]  # not null
        far = cycles.select(_is_far(pl.col(name), typical, t)).to_series()
        for outlier in parts(cycles, runs(far, min_count=1, gap=t.gap_cycles), t):
            as_printed = longest_ms(outlier.cycles, name) or 0.0
            long = outlier.cycles.filter(_is_far(pl.col(name), typical, t))
            often = f"up to {{}} in {len(long)} cycles" if len(long) > 1 else "{}"
            took = often.format(duration_text(as_printed / 1000))
            reason = f"{words} took {took}; the usual pause is {duration_text(typical / 1000)}."
            yield {
                **episode(outlier, "pause-outlier", "info", reason, stw_max_ms=as_printed),
                "ranges": _longest(long, name),
            }


_MOST_RANGES = 20
"""The most pauses of an episode that charts mark: the longest."""


def _is_far(pause: pl.Expr, typical: float, t: Thresholds) -> pl.Expr:
    return (pause > t.outlier_times * typical) & (pause > t.stw_warn_ms)


def _longest(cycles: pl.DataFrame, name: str) -> list[schema.Row]:
    """Returns the times of the cycles with the longest pauses, in their order."""
    times = cycles.top_k(_MOST_RANGES, by=name).sort("start_s").select("start_s", "end_s")
    return times.to_dicts()


def allocation_surge(cycles: pl.DataFrame, t: Thresholds) -> Iterator[schema.Row]:
    """Yields the episodes in which the program allocates far faster than usual."""
    usual = not_null(cycles["alloc_mib_per_s"]).median()
    if not isinstance(usual, float) or usual <= 0 or len(cycles) < t.short_log_cycles:
        return
    surge = cycles["alloc_mib_per_s"] > t.surge_times * usual
    for surging in parts(
        cycles, runs(surge, min_count=t.burst_min_cycles, gap=t.gap_cycles), t
    ):
        span_s = surging.span_s
        rate = float(surging.cycles["alloc_mib"].sum()) / span_s if span_s else 0.0
        reason = (
            f"The program allocated {rate:,.0f} MiB/s{surging.duty}; the usual rate is "
            f"{usual:,.0f} MiB/s."
        )
        yield episode(surging, "allocation-surge", "info", reason, alloc_mib_per_s=rate)


def idle(cycles: pl.DataFrame, t: Thresholds) -> Iterator[schema.Row]:
    """Yields the times in which only the periodic cycle runs, every two minutes."""
    if not may_idle(cycles, t):
        return
    low, high = t.periodic_s
    periodic = cycles["interval_s"].is_between(low, high)
    for first, last in runs(periodic, min_count=1):
        part = cycles[max(first - 1, 0) : last + 1]
        reason = (
            f"{last - first + 1:,} cycles ran only because two minutes had passed since the "
            "one before."
        )
        yield episode(Part(part, 1.0), "idle", "info", reason)
    gaps = cycles["interval_s"]
    usual = not_null(gaps.filter(cycles["start_s"] >= t.warm_up_s)).median()
    if not isinstance(usual, float):
        return
    long = cycles.select(idle_gap(t, within_process(cycles))).to_series() & ~periodic
    for at in long.fill_null(value=False).arg_true():
        if not at:
            continue
        gap_s = float(gaps[at])
        reason = (
            f"No GC cycle ran for {duration_text(gap_s)}; usually there is one every "
            f"{duration_text(usual)}."
        )
        yield episode(Part(cycles[at - 1 : at + 1], 1.0), "idle", "info", reason)


_Find = Callable[[pl.DataFrame, Thresholds], Iterator[schema.Row]]

KINDS: tuple[_Find, ...] = (
    limit_thrash,
    assist_storm,
    gc_burst,
    forced_loop,
    pause_outlier,
    allocation_surge,
    idle,
)


def possible_kinds(timed: pl.DataFrame, t: Thresholds) -> dict[int, list[_Find]]:
    """Returns the kinds of episodes that each process may have.

    A log may have thousands of processes with a few cycles each, and a search for one kind in one
    process takes a millisecond. So the minimum for each kind is checked for all processes at once.
    """
    if timed.is_empty():
        return {}
    if is_one_process(timed):
        # The search takes no longer than this check.
        return {timed[0]["process"][0]: list(KINDS)} if len(timed) > 1 else {}
    limited = pl.col("goal_set_by").cast(pl.String) == "memory-limit"
    below = pl.col("heap_goal_mib") <= before("heap_live_mib")
    storm = pl.col("assist_share") >= t.storm_assist_share
    pause = pl.max_horizontal("stw_sweep_term_ms", "stw_mark_term_ms").max()
    count, gap_s = pl.len(), pl.col("interval_s").max()
    least = {
        limit_thrash: (count >= t.thrash_min_cycles) & (limited.any() | pl.col("below").any()),
        assist_storm: storm.sum() >= t.storm_min_cycles,
        gc_burst: count >= _SEVERAL_BURSTS * t.burst_min_cycles,
        forced_loop: pl.col("forced").sum() >= t.forced_min_cycles,
        pause_outlier: (count >= t.short_log_cycles) & (pause > t.stw_warn_ms),
        allocation_surge: count >= t.short_log_cycles,
        idle: gap_s >= min(t.idle_gap_s, t.periodic_s[0]),
    }
    table = (
        timed.with_columns(below=below)
        .group_by("process", maintain_order=True)
        .agg(
            ((count > 1) & needed.fill_null(value=False)).alias(find.__name__)
            for find, needed in least.items()
        )
    )
    kinds = {
        row["process"]: [find for find in KINDS if row[find.__name__]]
        for row in table.iter_rows(named=True)
    }
    return {process: finds for process, finds in kinds.items() if finds}
