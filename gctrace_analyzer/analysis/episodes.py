"""Episodes: groups of cycles in which something unusual happened, with time and reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis import limiter
from gctrace_analyzer.analysis.cycles import before, wall_ms
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator

Row = dict[str, Any]

_SEVERAL_BURSTS = 4
"""A log needs this many times the cycles of the shortest burst. In a shorter log there is no
usual frequency that a burst could be compared with."""


def episodes(enriched: pl.DataFrame) -> pl.DataFrame:
    """Returns every episode (`schema.EPISODES`), ordered by process and start.

    Args:
        enriched: what `enrich` returns.
    """
    rows: list[Row] = []
    for part in enriched.partition_by("process", maintain_order=True):
        timed = part.filter(pl.col("start_s").is_not_null())
        if len(timed) > 1:
            for find in _KINDS:
                rows += find(timed, DEFAULT)
    frame = pl.DataFrame(rows, schema=schema.polars_schema("episodes"))
    return frame.sort("process", "start_s", "kind")


def enrich(metrics: pl.DataFrame, corrected: pl.DataFrame) -> pl.DataFrame:
    """Returns the cycles with everything that episodes, segments and rules need.

    Args:
        metrics: what `with_metrics` returns.
        corrected: what `correct_durations` returns for the same cycles. Its durations replace
            the printed ones; `end_s`, `elapsed_s` and `limiter_fill` are added.
    """
    durations = [name for name in corrected.columns if name.endswith("_ms")]
    return metrics.with_columns(
        corrected[name] for name in (*durations, "end_s", "elapsed_s")
    ).with_columns(limiter.fills(corrected))


def runs(flags: pl.Series, *, min_count: int, gap: int = 0) -> list[tuple[int, int]]:
    """Returns the first and last index of each run of true values.

    Args:
        flags: null counts as false.
        min_count: runs with fewer true values are dropped.
        gap: a run continues over this many false values.

    >>> runs(pl.Series([True, False, True, False, False, True]), min_count=1, gap=1)
    [(0, 2), (5, 5)]
    """
    at = flags.fill_null(value=False).arg_true()
    if at.is_empty():
        return []
    run = (at.cast(pl.Int64).diff().fill_null(1) > gap + 1).cum_sum()
    table = pl.DataFrame({"at": at, "run": run}).group_by("run", maintain_order=True)
    ends = table.agg(first=pl.col("at").first(), last=pl.col("at").last(), count=pl.len())
    long = ends.filter(pl.col("count") >= min_count).select("first", "last")
    return [(int(first), int(last)) for first, last in long.iter_rows()]


def _episode(part: pl.DataFrame, kind: str, severity: str, reason: str, **figures: Any) -> Row:
    first, last = part.row(0, named=True), part.row(-1, named=True)
    return {
        "process": first["process"],
        "kind": kind,
        "start_s": first["start_s"],
        "end_s": last["end_s"],
        "first_gc": first["gc_num"],
        "last_gc": last["gc_num"],
        "severity": severity,
        "reason": reason,
        "source": first["source"],
        "line_no": first["line_no"],
        **figures,
    }


def limit_thrash(cycles: pl.DataFrame, t: Thresholds) -> Iterator[Row]:
    """Yields the episodes in which the live heap does not fit under the memory limit.

    Either goals are at or below the previous live heap, or the limit sets the goals a few per
    cent above the live heap and GC is running most of the time.
    """
    live = cycles.select(before("heap_live_mib").alias("live"))["live"]
    newer = cycles["stacks_mib"].is_not_null()
    below = (cycles["heap_goal_mib"] <= live) & (live >= t.thrash_min_live_mib) & newer
    below = (below & ~cycles["forced"]).fill_null(value=False)
    spans = runs(below, min_count=t.thrash_min_cycles, gap=t.thrash_gap_cycles)
    spans += _tight_windows(cycles, t)
    for first, last in _merged(spans, t.thrash_join_cycles):
        part = cycles[first : last + 1]
        share = float(below[first : last + 1].mean() or 0)  # type: ignore[arg-type]
        yield _thrash(part, share, t)


def _tight_windows(cycles: pl.DataFrame, t: Thresholds) -> list[tuple[int, int]]:
    """Returns the windows in which the memory limit leaves little headroom.

    GC is also running most of the time in them. Each window is given by the indices of its
    first and last cycle.
    """
    by_limit = pl.col("goal_set_by").cast(pl.String) == "memory-limit"
    windows = (
        cycles.with_row_index("row")
        .with_columns(window=(pl.col("start_s") / t.thrash_window_s).floor())
        .group_by("window", maintain_order=True)
        .agg(
            first=pl.col("row").min(),
            last=pl.col("row").max(),
            count=pl.len(),
            gogc=pl.col("effective_gogc").median(),
            limited=by_limit.fill_null(value=False).mean(),
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


def _merged(spans: list[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Joins the index ranges that overlap or have at most `gap` cycles in between.

    >>> _merged([(8, 9), (0, 4), (2, 5)], gap=1)
    [(0, 5), (8, 9)]
    """
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1] + 1 + gap:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _thrash(part: pl.DataFrame, share: float, t: Thresholds) -> Row:
    sums = part.select(
        gc=pl.col("gc_cpu_ms").sum() / 1000,
        idle=pl.col("idle_cpu_ms").sum() / 1000,
        capacity=(pl.col("elapsed_s") * pl.col("procs")).sum(),
        span=pl.col("elapsed_s").sum(),
        gogc=pl.col("effective_gogc").median(),
        fill=pl.col("limiter_fill").max(),
    ).row(0, named=True)
    left = (sums["capacity"] or 0) - (sums["idle"] or 0)
    state = limiter.verdict(sums["fill"], t)
    if share >= t.thrash_limited_share:
        reason = (
            f"The heap goal was at or below the live heap in {100 * share:.0f} % of "
            f"{len(part):,} cycles"
        )
    else:
        reason = (
            f"The memory limit left a headroom of only {sums['gogc'] or 0:.0f} % above the "
            f"live heap in {len(part):,} cycles"
        )
    reason += {
        "certain": ", and the runtime's CPU limiter was active.",
        "likely": ", and the runtime's CPU limiter was probably active.",
        "unlikely": ".",
    }[state]
    return _episode(
        part,
        "limit-thrash",
        "bad",
        reason,
        gc_per_s=len(part) / sums["span"] if sums["span"] else None,
        gc_cpu_nonidle_share=sums["gc"] / left if left else None,
        effective_gogc_p50=sums["gogc"],
        goal_at_or_below_live_share=share,
        limiter=state,
        limiter_fill_max=sums["fill"],
    )


def assist_storm(cycles: pl.DataFrame, t: Thresholds) -> Iterator[Row]:
    """Yields the episodes in which goroutines do most of the marking."""
    storm = (cycles["assist_share"] >= t.storm_assist_share) & (
        cycles["gc_cpu_share"] >= t.gc_cpu_warn
    )
    for first, last in runs(storm, min_count=t.storm_min_cycles, gap=t.storm_gap_cycles):
        part = cycles[first : last + 1]
        if part["end_s"][-1] - part["start_s"][0] < t.storm_min_s:
            continue
        share = float(part["assist_cpu_ms"].sum()) / float(part["gc_cpu_ms"].sum())
        reason = f"Mark assists took {100 * share:.0f} % of GC CPU in {len(part):,} cycles."
        yield _episode(part, "assist-storm", "warn", reason, assist_share_of_gc_cpu=share)


def gc_burst(cycles: pl.DataFrame, t: Thresholds) -> Iterator[Row]:
    """Yields the episodes in which GC runs far more often than usual."""
    usual = cycles["interval_s"].median()
    if not isinstance(usual, float) or len(cycles) < _SEVERAL_BURSTS * t.burst_min_cycles:
        return
    fast = (cycles["interval_s"] < usual / t.burst_times) & ~cycles["forced"]
    for first, last in runs(fast, min_count=t.burst_min_cycles, gap=t.gap_cycles):
        part = cycles[first : last + 1]
        span = part["end_s"][-1] - part["start_s"][0]
        rate = (len(part) - 1) / span if span else 0.0
        if rate >= t.burst_min_per_s:
            reason = (
                f"GC ran {len(part):,} times at {rate:.1f} cycles per second; the usual "
                f"rate is {1 / usual:.1f}."
            )
            yield _episode(part, "gc-burst", "info", reason, gc_per_s=rate)


def forced_loop(cycles: pl.DataFrame, t: Thresholds) -> Iterator[Row]:
    """Yields the episodes in which the program forces GC again and again."""
    for first, last in runs(cycles["forced"], min_count=t.forced_min_cycles, gap=t.gap_cycles):
        part = cycles[first : last + 1]
        span = part["end_s"][-1] - part["start_s"][0]
        reason = f"The program forced {len(part):,} GC cycles in {duration_text(span)}."
        rate = (len(part) - 1) / span if span else None
        yield _episode(part, "forced-loop", "warn", reason, gc_per_s=rate)


def pause_outlier(cycles: pl.DataFrame, t: Thresholds) -> Iterator[Row]:
    """Yields the pauses that are far longer than the others."""
    for name, words in (
        ("stw_sweep_term_ms", "Sweep termination"),
        ("stw_mark_term_ms", "Mark termination"),
    ):
        typical = cycles[name].median()
        if not isinstance(typical, float) or len(cycles) < t.short_log_cycles:
            continue
        far = (cycles[name] > t.outlier_times * typical) & (cycles[name] > t.stw_warn_ms)
        for first, last in runs(far, min_count=1, gap=t.gap_cycles):
            part = cycles[first : last + 1]
            longest = float(part[name].max() or 0)  # type: ignore[arg-type]
            severity = "bad" if longest > t.stw_bad_ms else "warn"
            reason = (
                f"{words} took {duration_text(longest / 1000)}; the usual "
                f"pause is {duration_text(typical / 1000)}."
            )
            yield _episode(part, "pause-outlier", severity, reason, stw_max_ms=longest)


def allocation_surge(cycles: pl.DataFrame, t: Thresholds) -> Iterator[Row]:
    """Yields the episodes in which the program allocates far faster than usual."""
    usual = cycles["alloc_mib_per_s"].median()
    if not isinstance(usual, float) or usual <= 0 or len(cycles) < t.short_log_cycles:
        return
    surge = cycles["alloc_mib_per_s"] > t.surge_times * usual
    for first, last in runs(surge, min_count=t.burst_min_cycles, gap=t.gap_cycles):
        part = cycles[first : last + 1]
        span = part["end_s"][-1] - part["start_s"][0]
        rate = float(part["alloc_mib"].sum()) / span if span else 0.0
        reason = (
            f"The program allocated {rate:,.0f} MiB/s; the usual rate is {usual:,.0f} MiB/s."
        )
        yield _episode(part, "allocation-surge", "info", reason, alloc_mib_per_s=rate)


def idle(cycles: pl.DataFrame, t: Thresholds) -> Iterator[Row]:
    """Yields the times in which only the periodic cycle runs, every two minutes."""
    low, high = t.periodic_s
    periodic = cycles["interval_s"].is_between(low, high)
    for first, last in runs(periodic, min_count=1):
        part = cycles[max(first - 1, 0) : last + 1]
        reason = (
            f"{last - first + 1:,} cycles ran only because two minutes had passed since the "
            "one before."
        )
        yield _episode(part, "idle", "info", reason)


_KINDS = (
    limit_thrash,
    assist_storm,
    gc_burst,
    forced_loop,
    pause_outlier,
    allocation_surge,
    idle,
)
