"""When something happened: stretches of cycles that stand out, with begin, end and reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis import limiter
from gctrace_analyzer.analysis.cycles import before
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds

if TYPE_CHECKING:
    from collections.abc import Iterator

Row = dict[str, Any]


def episodes(enriched: pl.DataFrame, thresholds: Thresholds = DEFAULT) -> pl.DataFrame:
    """Every episode (`schema.EPISODES`), in the order of their begins.

    `judged` is what `judge` gives: cycles with metrics, likely durations and the limiter.
    """
    rows: list[Row] = []
    for part in enriched.partition_by("process", maintain_order=True):
        timed = part.filter(pl.col("start_s").is_not_null())
        if len(timed) > 1:
            for find in _KINDS:
                rows += find(timed, thresholds)
    frame = pl.DataFrame(rows, schema=schema.polars_schema("episodes"))
    return frame.sort("process", "start_s", "kind")


def enrich(metrics: pl.DataFrame, corrected: pl.DataFrame) -> pl.DataFrame:
    """The cycles with their metrics, `end_s`, `elapsed_s`, likely durations and the limiter."""
    durations = [name for name in corrected.columns if name.endswith("_ms")]
    return metrics.with_columns(
        corrected[name] for name in (*durations, "end_s", "elapsed_s")
    ).with_columns(limiter.fills(corrected))


def runs(flags: pl.Series, *, fewest: int, gap: int = 0) -> list[tuple[int, int]]:
    """First and last index of each run of true, gaps of up to so many bridged."""
    at = flags.fill_null(value=False).arg_true()
    if at.is_empty():
        return []
    run = (at.cast(pl.Int64).diff().fill_null(1) > gap + 1).cum_sum()
    table = pl.DataFrame({"at": at, "run": run}).group_by("run", maintain_order=True)
    ends = table.agg(first=pl.col("at").first(), last=pl.col("at").last(), count=pl.len())
    return [
        (int(first), int(last)) for _, first, last, count in ends.iter_rows() if count >= fewest
    ]


def _episode(part: pl.DataFrame, kind: str, severity: str, reason: str, **figures: Any) -> Row:
    first, last = part.row(0, named=True), part.row(-1, named=True)
    return {
        "process": first["process"], "kind": kind, "start_s": first["start_s"],
        "end_s": last["end_s"],
        "first_gc": first["gc_num"], "last_gc": last["gc_num"], "severity": severity,
        "reason": reason, "source": first["source"], "line_no": first["line_no"], **figures,
    }  # fmt: skip


def limit_thrash(cycles: pl.DataFrame, t: Thresholds) -> Iterator[Row]:
    """The live heap does not fit under the memory limit.

    Rule 1: goals at or below what was live before. Rule 2: the limit sets the goals, a few per
    cent above the live heap, and the collector runs most of the time.
    """
    live = cycles.select(before("heap_live_mib").alias("live"))["live"]
    newer = cycles["stacks_mib"].is_not_null()
    below = (cycles["heap_goal_mib"] <= live) & (live >= t.thrash_min_live_mib) & newer
    below = (below & ~cycles["forced"]).fill_null(value=False)
    spans = runs(below, fewest=t.thrash_min_cycles, gap=t.thrash_gap_cycles)
    spans += _tight(cycles, t)
    for first, last in _merged(spans):
        part = cycles[first : last + 1]
        share = float(below[first : last + 1].mean() or 0)  # type: ignore[arg-type]
        yield _thrash(part, share)


def _tight(cycles: pl.DataFrame, t: Thresholds) -> list[tuple[int, int]]:
    """Stretches of rule 2, from windows of its length."""
    active = pl.sum_horizontal("stw_sweep_term_ms", "concurrent_mark_ms", "stw_mark_term_ms")
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
            active=active.sum() / 1000 / pl.col("elapsed_s").sum(),
        )
    )
    tight = windows.filter(
        (pl.col("gogc") <= t.thrash_gogc)
        & (pl.col("limited") > 0.5)
        & (pl.col("active") >= t.thrash_active_share)
        & (pl.col("count") >= t.thrash_min_cycles)
    )
    return [(int(a), int(b)) for a, b in tight.select("first", "last").iter_rows()]


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 5:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def _thrash(part: pl.DataFrame, share: float) -> Row:
    sums = part.select(
        gc=pl.col("gc_cpu_ms").sum() / 1000,
        idle=pl.col("idle_cpu_ms").sum() / 1000,
        capacity=(pl.col("elapsed_s") * pl.col("procs")).sum(),
        span=pl.col("elapsed_s").sum(),
        gogc=pl.col("effective_gogc").median(),
        fill=pl.col("limiter_fill").max(),
    ).row(0, named=True)
    left = (sums["capacity"] or 0) - (sums["idle"] or 0)
    state = limiter.verdict(sums["fill"])
    if share >= 0.5:
        reason = (
            f"the goal was at or below the live heap in {100 * share:.0f} % of "
            f"{len(part):,} cycles"
        )
    else:
        reason = (
            f"the memory limit left {sums['gogc'] or 0:.0f} % above the live heap "
            f"in {len(part):,} cycles"
        )
    on = {"certain": "the CPU limiter was on", "likely": "the CPU limiter was likely on"}
    reason += f"; {on[state]}" if state in on else ""
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
    """Goroutines do much of the marking for a while."""
    storm = (cycles["assist_share"] >= t.storm_assist_share) & (
        cycles["gc_cpu_share"] >= t.gc_cpu_warn
    )
    for first, last in runs(storm, fewest=t.storm_min_cycles, gap=2):
        part = cycles[first : last + 1]
        if part["end_s"][-1] - part["start_s"][0] < t.storm_min_s:
            continue
        share = float(part["assist_cpu_ms"].sum()) / float(part["gc_cpu_ms"].sum())
        reason = f"mark assists were {100 * share:.0f} % of GC CPU in {len(part):,} cycles"
        yield _episode(part, "assist-storm", "warn", reason, assist_share_of_gc_cpu=share)


def gc_burst(cycles: pl.DataFrame, t: Thresholds) -> Iterator[Row]:
    """Cycles follow each other much faster than they usually do."""
    usual = cycles["interval_s"].median()
    if not isinstance(usual, float) or len(cycles) < 4 * t.burst_min_cycles:
        return
    fast = (cycles["interval_s"] < usual / t.burst_times) & ~cycles["forced"]
    for first, last in runs(fast, fewest=t.burst_min_cycles, gap=1):
        part = cycles[first : last + 1]
        span = part["end_s"][-1] - part["start_s"][0]
        rate = (len(part) - 1) / span if span else 0.0
        if rate >= t.burst_min_per_s:
            reason = f"{len(part):,} cycles at {rate:.1f} per second, usually {1 / usual:.1f}"
            yield _episode(part, "gc-burst", "info", reason, gc_per_s=rate)


def forced_loop(cycles: pl.DataFrame, t: Thresholds) -> Iterator[Row]:
    """The program asks for collections again and again."""
    for first, last in runs(cycles["forced"], fewest=t.forced_min_cycles, gap=1):
        part = cycles[first : last + 1]
        span = part["end_s"][-1] - part["start_s"][0]
        reason = f"{len(part):,} cycles asked for by the program in {span:.3g} s"
        rate = (len(part) - 1) / span if span else None
        yield _episode(part, "forced-loop", "warn", reason, gc_per_s=rate)


def pause_outlier(cycles: pl.DataFrame, t: Thresholds) -> Iterator[Row]:
    """A pause that is nothing like the others."""
    for name, words in (
        ("stw_sweep_term_ms", "sweep termination"),
        ("stw_mark_term_ms", "mark termination"),
    ):
        typical = cycles[name].median()
        if not isinstance(typical, float) or len(cycles) < t.short_log_cycles:
            continue
        far = (cycles[name] > t.outlier_times * typical) & (cycles[name] > t.stw_warn_ms)
        for first, last in runs(far, fewest=1, gap=1):
            part = cycles[first : last + 1]
            longest = float(part[name].max() or 0)  # type: ignore[arg-type]
            severity = "bad" if longest > t.stw_bad_ms else "warn"
            reason = f"{words} took {longest:.3g} ms, usually {typical:.2g} ms"
            yield _episode(part, "pause-outlier", severity, reason, stw_max_ms=longest)


def allocation_surge(cycles: pl.DataFrame, t: Thresholds) -> Iterator[Row]:
    """The program allocates much faster than it usually does."""
    usual = cycles["alloc_mib_per_s"].median()
    if not isinstance(usual, float) or usual <= 0 or len(cycles) < t.short_log_cycles:
        return
    surge = cycles["alloc_mib_per_s"] > t.surge_times * usual
    for first, last in runs(surge, fewest=t.burst_min_cycles, gap=1):
        part = cycles[first : last + 1]
        span = part["end_s"][-1] - part["start_s"][0]
        rate = float(part["alloc_mib"].sum()) / span if span else 0.0
        reason = f"{rate:,.0f} MiB/s allocated, usually {usual:,.0f}"
        yield _episode(part, "allocation-surge", "info", reason, alloc_mib_per_s=rate)


def idle(cycles: pl.DataFrame, t: Thresholds) -> Iterator[Row]:
    """Only the periodic cycle every two minutes."""
    low, high = t.periodic_s
    periodic = cycles["interval_s"].is_between(low, high)
    for first, last in runs(periodic, fewest=1):
        part = cycles[max(first - 1, 0) : last + 1]
        reason = f"{last - first + 1:,} cycles only because two minutes had passed"
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
