"""Episodes: groups of cycles in which something unusual happened, with time and reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis import limiter
from gctrace_analyzer.analysis.cycles import gc_cpu, wall_ms
from gctrace_analyzer.analysis.segments import idle_gap, may_idle
from gctrace_analyzer.analysis.thresholds import Thresholds
from gctrace_analyzer.analysis.totals import rates_of
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.gctrace.columns import WALL_PHASES
from gctrace_analyzer.ingest.rows import (
    before,
    by_process,
    complete,
    is_one_process,
    not_null,
    the_process,
    within_process,
)
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Sequence


_SEVERAL_BURSTS = 4
"""A log needs this many times the cycles of the shortest burst. In a shorter log there is no
usual frequency that a burst could be compared with."""


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
        for find in possible.get(part["process"][0], ()):
            rows += find(part, thresholds)
    return rows


def as_table(rows: list[schema.Row]) -> pl.DataFrame:
    """Returns episodes as `schema.EPISODES`, ordered by process and start."""
    if not rows:
        return schema.empty("episodes")
    frame = pl.DataFrame(rows, schema=schema.polars_schema("episodes"))
    return frame.sort("process", "start_s", "kind")


def active_ranges(rows: list[schema.Row]) -> pl.DataFrame:
    """Returns when the state of each episode lasted: `process kind severity start_s end_s`.

    There is one row for each time that a state came and went, in the order of `rows`, and for
    each of the longest pauses among those that are far longer than usual.
    """
    lasting = [
        {
            **{name: row[name] for name in ("process", "kind", "severity")},
            "ranges": row["ranges"],
        }
        for row in rows
    ]
    span = pl.List(pl.Struct({"start_s": pl.Float64, "end_s": pl.Float64}))
    own = {
        name: schema.polars_schema("episodes")[name] for name in ("process", "kind", "severity")
    }
    return (
        pl.DataFrame(lasting, schema={**own, "ranges": span}).explode("ranges").unnest("ranges")
    )


def enrich(metrics: pl.DataFrame, durations: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Returns the cycles with everything that episodes, segments and rules need.

    Args:
        metrics: what `with_metrics` returns.
        durations: what `correct_durations` returns for the same cycles. The CPU limiter counts
            by the clock, so its fill level comes from these.
        spans: what `spans.of_cycles` returns for the same cycles. Its durations replace the
            printed ones; its other columns and `limiter_fill` are added.
    """
    own = (
        column
        for column in spans
        if column.name.endswith("_ms") or column.name not in metrics.columns
    )
    return metrics.with_columns(*own, limiter.fills(durations), *gc_cpu(spans))


def runs(flags: pl.Series, *, min_count: int, gap: int = 0) -> list[tuple[int, int]]:
    """Returns the first and last index of each run of true values.

    Args:
        flags: null counts as false.
        min_count: runs with fewer true values are dropped.
        gap: a run continues over this many false values.

    >>> runs(pl.Series([True, False, True, False, False, True]), min_count=1, gap=1)
    [(0, 2), (5, 5)]
    """
    if flags.sum() < min_count:
        return []
    at = flags.arg_true()
    # In most logs no run is long enough, which is quick to see.
    steps = min_count - 1
    if not (at[steps:] - at[: len(at) - steps] <= steps * (gap + 1)).any():
        return []
    far = at[1:] - at[:-1] > gap + 1
    if not far.any():
        return [(int(at[0]), int(at[-1]))]
    last = far.arg_true().append(pl.Series([len(at) - 1], dtype=pl.UInt32))
    first = pl.Series([0], dtype=pl.UInt32).append(last[:-1] + 1)
    long = last - first + 1 >= min_count
    return list(zip(at[first.filter(long)], at[last.filter(long)], strict=True))


_NEARLY_ALL = 0.95
"""Share of an episode's time. A state that lasts longer needs no mention of its interruptions."""


@frozen
class Part:
    """The cycles of an episode, and the share of its time in which its state lasted.

    `ranges` is when it lasted, as `start_s` and `end_s`; None if all the time.
    """

    cycles: pl.DataFrame
    active_share: float
    ranges: list[schema.Row] | None = None

    @property
    def span_s(self) -> float:
        """From the start of the first cycle to the end of the last one."""
        return float(self.cycles["end_s"][-1] - self.cycles["start_s"][0])

    @property
    def duty(self) -> str:
        """How much of its time the state lasted, as words for a reason; empty if nearly all."""
        if self.active_share >= _NEARLY_ALL:
            return ""
        share = f"{100 * self.active_share:.0f} %"
        return f", on and off: in {share} of the {duration_text(self.span_s)}"


def parts(
    cycles: pl.DataFrame, spans: Sequence[tuple[int, int]], t: Thresholds
) -> Iterator[Part]:
    """Yields the episodes that ranges of cycles form: one state may come and go.

    Ranges at most `episode_join_cycles` cycles or `episode_join_s` seconds apart are one episode.

    Args:
        cycles: the cycles of one process.
        spans: the indices of the first and the last cycle of each range.
        t: how far apart ranges may be.
    """
    if not spans:
        return
    ordered = pl.DataFrame(spans, schema=["first", "last"], orient="row").sort("first", "last")
    end_s, last = pl.col("end_s").cum_max(), pl.col("last").cum_max()
    ranges = (
        ordered.with_columns(
            begin_s=cycles["start_s"].gather(ordered["first"]),
            end_s=cycles["end_s"].gather(ordered["last"]),
        )
        .with_columns(
            # Of ranges that overlap, only what those before do not cover.
            active_s=(pl.col("end_s") - pl.max_horizontal("begin_s", end_s.shift(1))).clip(0),
            far=(pl.col("begin_s") - end_s.shift(1) > t.episode_join_s)
            & (pl.col("first") - last.shift(1) - 1 > t.episode_join_cycles),
        )
        .group_by(pl.col("far").fill_null(value=False).cum_sum(), maintain_order=True)
        .agg(
            pl.col("first").min(),
            pl.col("last").max(),
            pl.col("active_s").sum(),
            pl.struct("end_s", start_s="begin_s").alias("ranges"),
        )
    )
    for begin, end, active_s, lasted in ranges.select(
        "first", "last", "active_s", "ranges"
    ).iter_rows():
        part = cycles[begin : end + 1]
        span_s = part["end_s"][-1] - part["start_s"][0]
        yield Part(part, min(active_s / span_s, 1.0) if span_s > 0 else 1.0, lasted)


def episode(lasting: Part, kind: str, severity: str, reason: str, **figures: Any) -> schema.Row:
    """Returns a row of `schema.EPISODES` with its `ranges`."""
    part = lasting.cycles
    first, last = part.row(0, named=True), part.row(-1, named=True)
    return {
        "process": first["process"],
        "kind": kind,
        "start_s": first["start_s"],
        "end_s": last["end_s"],
        "first_gc": first["first_gc"],
        "last_gc": last["gc_num"],
        "severity": severity,
        "reason": reason,
        "active_share": lasting.active_share,
        "source": first["source"],
        "line_no": first["line_no"],
        "ranges": lasting.ranges or [{"start_s": first["start_s"], "end_s": last["end_s"]}],
        **figures,
    }


def limit_thrash(cycles: pl.DataFrame, t: Thresholds) -> Iterator[schema.Row]:
    """Yields the episodes in which the live heap does not fit under the memory limit.

    Either goals are at or below the previous live heap, or the limit sets the goals a few per
    cent above the live heap and GC is running most of the time.
    """
    live = cycles.select(before("heap_live_mib", the_process)).to_series()
    # GOGC leaves at least 1 MiB for sweeping: only a limit sets such goals, at every size.
    below = cycles["heap_goal_mib"] <= live
    if below.any():
        newer = cycles["stacks_mib"].is_not_null()
        below &= newer & ~cycles["forced"]
    large = below & (live >= t.thrash_min_live_mib)
    spans = runs(large, min_count=t.thrash_min_cycles, gap=t.thrash_gap_cycles)
    spans += runs(below & ~large, min_count=t.thrash_small_cycles, gap=1)
    spans += _tight_windows(cycles, t)
    if spans:
        below = below.fill_null(value=False)
        for thrashing in parts(cycles.with_columns(below=below), spans, t):
            yield _thrash(thrashing, t)


def _tight_windows(cycles: pl.DataFrame, t: Thresholds) -> list[tuple[int, int]]:
    """Returns the windows in which the memory limit leaves little headroom.

    GC is also running most of the time in them. Each window is given by the indices of its
    first and last cycle.
    """
    by_limit = cycles["goal_set_by"] == "memory-limit"
    if by_limit.sum() < t.thrash_limited_share * t.thrash_min_cycles:
        return []
    needed = ("start_s", "effective_gogc", "elapsed_s", *WALL_PHASES)
    windows = (
        cycles.select(*needed, by_limit.alias("by_limit"))
        .with_row_index("row")
        .with_columns(window=(pl.col("start_s") / t.thrash_window_s).floor())
        .group_by("window", maintain_order=True)
        .agg(
            first=pl.col("row").min(),
            last=pl.col("row").max(),
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


def costs(spans: pl.DataFrame) -> dict[str, float | None]:
    """Returns what GC costs while a program thrashes: its frequency and its shares of the CPU."""
    rates = rates_of(spans, "counted_per_s", "gc_cpu_share", "gc_cpu_nonidle_share")
    return {"gc_per_s": rates.pop("counted_per_s"), **rates}


def _thrash(thrashing: Part, t: Thresholds) -> schema.Row:
    part = thrashing.cycles
    share = float(part["below"].mean() or 0)  # type: ignore[arg-type]  # a boolean column
    gogc, fill = part.select(
        not_null(pl.col("effective_gogc")).median(), pl.col("limiter_fill").max()
    ).row(0)
    state, duty = limiter.verdict(fill, t), thrashing.duty
    if share >= t.thrash_limited_share:
        reason = (
            f"The heap goal was at or below the live heap in {100 * share:.0f} % of "
            f"{len(part):,} cycles"
        )
    else:
        left_pct = round(max(gogc or 0, 0))
        room = f"room for only {left_pct} % more than" if left_pct else "no room above"
        reason = f"The memory limit left {room} the live heap (median of {len(part):,} cycles)"
        # Of heaps of a few MiB, cycles without room are not marked one by one.
        duty = duty if left_pct else ""
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
        if rate >= t.burst_min_per_s:
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
        reason = f"The program forced {forced:,} GC cycles in {duration_text(span_s)}."
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
            longest = float(outlier.cycles[name].max() or 0)  # type: ignore[arg-type]
            severity = "bad" if longest > t.stw_bad_ms else "warn"
            reason = (
                f"{words} took up to {duration_text(longest / 1000)}; the usual "
                f"pause is {duration_text(typical / 1000)}."
            )
            yield {
                **episode(outlier, "pause-outlier", severity, reason, stw_max_ms=longest),
                "ranges": _longest(
                    outlier.cycles.filter(_is_far(pl.col(name), typical, t)), name
                ),
            }


_MOST_RANGES = 20
"""The most pauses of an episode that are marked in charts: the longest."""


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

    A log may have thousands of processes with a few cycles each, and looking for one kind in
    one process takes a millisecond. So what each kind needs at least is calculated for all
    processes at once.
    """
    if timed.is_empty():
        return {}
    if is_one_process(timed):
        # Looking takes no longer than finding out beforehand.
        return {timed["process"][0]: list(KINDS)} if len(timed) > 1 else {}
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
