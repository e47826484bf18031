"""The segments of a run: start-up, phases of different load, idle times, changed settings.

A figure calculated over several segments describes none of them, so each segment has its own
figures. A segment ends where GOMAXPROCS changes, where limit thrashing or idle times (only periodic
cycles, or no cycles for long) begin or end, and where the allocation rate or the effective GOGC
moves to another level for at least ten cycles and a second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.spans import whole
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.analysis.totals import ROUNDING, quotient, quotients, sums
from gctrace_analyzer.ingest.rows import (
    before,
    by_number,
    by_process,
    complete,
    constant,
    is_one_process,
    not_null,
    within_process,
)

OTHER_RATE = 2.0
"""If the allocation rate changes by more than this factor, another load phase begins."""

OTHER_GOGC = 1.2
"""If the effective GOGC changes by more than this factor, GOGC was set to another value."""

_IDLE_RATE = 0.5
"""Share of the usual allocation rate. At or below it, a program with its usual load when busy was
idle for half of the time or more."""

LEVEL_S = 1.0
"""Least duration of a level in seconds. At a hundred cycles per second, ten cycles take a tenth of
a second, and normal load variation would give dozens of phases."""

_KINDS = pl.Enum(["start-up", "steady", "idle", "thrash"])

_MOSTLY = 0.5
"""Share of the longest segment's time. A shorter one with unusually much allocation is a spike."""


_FEWEST_WITH_SPIKE = 2
"""Number of steady segments: one is a spike only next to another."""


def may_idle(cycles: pl.DataFrame, t: Thresholds) -> bool:
    """Returns whether any cycle came so late that the program may have been idle."""
    longest = cycles["interval_s"].max()
    return isinstance(longest, float) and longest >= min(t.idle_gap_s, t.periodic_s[0])


def idle_gap(t: Thresholds, within: Callable[[pl.Expr], pl.Expr]) -> pl.Expr:
    """Returns whether `within` a process hardly anything was allocated for unusually long.

    After a peak of the heap the goal is high, so even a busy program has no cycle for long. While a
    program fills its heap, cycles are more frequent than later, so the start-up does not count as
    usual.
    """
    gap, late = pl.col("interval_s"), pl.col("start_s") >= t.warm_up_s
    usual = within(not_null(pl.col("alloc_mib_per_s").filter(late)).median())
    usual_s = within(not_null(gap.filter(late)).median())
    idle = (before("alloc_mib_per_s", within) <= _IDLE_RATE * usual).fill_null(value=True)
    return (gap >= t.idle_gap_s) & (gap >= t.idle_gap_times * usual_s) & idle


def segments(enriched: pl.DataFrame, episodes: pl.DataFrame | None = None) -> pl.DataFrame:
    """Returns the segments of each process (`schema.SEGMENTS`).

    Args:
        enriched: what `episodes.enrich` returns.
        episodes: `schema.EPISODES`; those of limit-thrash are segments.
    """
    thrashes = _thrashes(pl.col("start_s"), episodes)
    timed = complete(enriched, "start_s").with_columns(thrashes=thrashes)
    return _of_numbered(timed if timed.is_empty() else _numbered(timed, DEFAULT))


LEAST_INTERVALS = 5
LEAST_S = 30.0
"""Intervals, and seconds. A shorter level of dumps is not a phase."""


def _thrashes(begin: pl.Expr, episodes: pl.DataFrame | None) -> pl.Expr:
    """Returns whether a cycle, or an interval between dumps, begins in an episode of thrashing."""
    rows = [] if episodes is None else episodes.filter(kind="limit-thrash").to_dicts()
    inside = (
        pl.col("process").eq_missing(pl.lit(row["process"]))
        & begin.is_between(row["start_s"], row["end_s"], closed="left")
        for row in rows
    )
    return pl.any_horizontal(pl.lit(value=False), *inside).fill_null(value=False)


def segments_of_spans(
    spans: pl.DataFrame,
    thresholds: Thresholds = DEFAULT,
    episodes: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Returns the segments of each process between its dumps (`schema.SEGMENTS`).

    A segment ends where GOMAXPROCS or GOGC changes, and where the allocation rate moves to
    another level for five intervals and 30 s or more.

    Args:
        spans: what `metrics.intervals.spans` returns.
        thresholds: the time between idle cycles.
        episodes: `schema.EPISODES`; those of limit-thrash are segments.
    """
    if not spans.width or spans.is_empty():
        return schema.empty("segments")
    begin = pl.coalesce("start_s", "begin_s")
    spans = spans.with_columns(thrashes=_thrashes(begin, episodes))
    numbered = pl.concat(_numbered_spans(part) for part in by_process(spans))
    # An idle program collects every two minutes, because the runtime forces it.
    most = 1 / thresholds.periodic_s[0]
    is_idle = (quotient("counted_per_s") <= most).over("process", "segment")
    kind = pl.when(is_idle).then(_kind("idle")).otherwise(_kind("steady"))
    kind = pl.when("thrashes").then(_kind("thrash")).otherwise(kind)
    return _of_numbered(numbered.with_columns(kind=kind))


def _numbered_spans(rows: pl.DataFrame) -> pl.DataFrame:
    usual_s = max(float(rows["length_s"].median() or 0.0), 1e-3)  # type: ignore[arg-type]
    least = max(LEAST_INTERVALS, math.ceil(LEAST_S / usual_s))
    rate = rows.select(pl.when(~pl.col("thrashes")).then("alloc_mib_per_s")).to_series()
    boundary = level_changes(rate, OTHER_RATE, least) & ~rows["thrashes"]
    for name in ("procs", "gogc_pct", "thrashes"):
        known = rows[name].fill_null(strategy="forward")
        boundary |= (known != known.shift(1)).fill_null(value=False)
    return rows.with_columns(segment=boundary.cum_sum())


def named(segments: pl.DataFrame) -> pl.DataFrame:
    """Returns the segments (`schema.SEGMENTS`) with their kinds: steady ones may be `spike`."""
    if (segments["kind"] == "steady").sum() < _FEWEST_WITH_SPIKE:
        return segments
    length, is_steady = pl.col("end_s") - pl.col("start_s"), pl.col("kind") == "steady"
    usual = pl.col("alloc_mib_per_s").filter(is_steady).sort_by(length.filter(is_steady))
    longest = length.filter(is_steady).max().over("process")
    is_more = pl.col("alloc_mib_per_s") > OTHER_RATE * usual.last().over("process")
    is_spike = is_steady & is_more & (length < _MOSTLY * longest)
    return segments.with_columns(kind=pl.when(is_spike).then(pl.lit("spike")).otherwise("kind"))


def _of_numbered(spans: pl.DataFrame) -> pl.DataFrame:
    """Returns the segments (`schema.SEGMENTS`) of spans with `segment` and `kind`."""
    types = schema.polars_schema("segments")
    if spans.is_empty():
        return schema.empty("segments")
    rows = (
        by_number(whole(spans), "segment", *_figures())
        .with_columns(*quotients(_RATES))
        .rename({"counted_per_s": "gc_per_s"})
    )
    if not is_one_process(spans):
        rows = rows.sort("process", "segment")
    return rows.select(pl.col(name).cast(kind) for name, kind in types.items())


def _numbered(cycles: pl.DataFrame, t: Thresholds) -> pl.DataFrame:
    """Returns the cycles with the number of their segment in its process, and its kind."""
    within = within_process(cycles)
    known = cycles.with_columns(kind=_labels(cycles, t))
    changes = [
        (pl.col(name) != within(pl.col(name).shift(1))).fill_null(value=False)
        for name in ("kind", "procs")
    ]
    levels = _level_changes(cycles, t) & ~cycles["thrashes"]
    boundary = known.select(pl.any_horizontal(changes)).to_series() | levels
    return known.with_columns(segment=boundary).with_columns(
        segment=within(pl.col("segment").cum_sum())
    )


def _level_changes(cycles: pl.DataFrame, t: Thresholds) -> pl.Series:
    """Returns where the allocation rate or the effective GOGC of a process changes its level."""
    # A program that thrashes allocates less: levels are of the time before and after.
    is_free = ~pl.col("thrashes")
    large_enough = is_free & (pl.col("heap_live_mib") >= t.gogc_min_live_mib)
    levels = cycles.select(
        "process",
        rate=pl.when(is_free).then("alloc_mib_per_s"),
        gogc=pl.when(large_enough).then("effective_gogc"),
        row=pl.int_range(pl.len()),
    )
    changed = pl.repeat(value=False, n=len(cycles), eager=True)
    for fewest, rows in _by_length_of_levels(cycles, levels, t):
        process = None if is_one_process(rows) else rows["process"]
        changes = level_changes(rows["rate"], OTHER_RATE, fewest, process) | level_changes(
            rows["gogc"], OTHER_GOGC, fewest, process
        )
        changed = changed.scatter(rows["row"].filter(changes), values=True)
    return changed


def _by_length_of_levels(
    cycles: pl.DataFrame, levels: pl.DataFrame, t: Thresholds
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yields the least number of cycles of a level, and the rows of the processes with that number.

    The rows of a process are consecutive. Processes too short for two levels are left out.
    """
    count, usual_s = pl.col("count"), pl.col("usual_s")
    most = pl.max_horizontal(t.level_cycles, count // 4)
    long = pl.when(usual_s > 0).then((LEVEL_S / usual_s).ceil().cast(pl.Int64)).fill_null(0)
    fewest = pl.min_horizontal(pl.max_horizontal(t.level_cycles, long), most)
    processes = (
        cycles.group_by("process", maintain_order=True)
        .agg(count=pl.len().cast(pl.Int64), usual_s=not_null(pl.col("interval_s")).median())
        .filter(count >= 2 * t.level_cycles)
        .select("process", fewest=fewest)
    )
    for part in processes.partition_by("fewest", maintain_order=True):
        rows = levels
        if len(part) > 1 or not is_one_process(levels):
            chosen = pl.col("process").is_in(part["process"].implode(), nulls_equal=True)
            rows = levels.filter(chosen).sort("process", maintain_order=True)
        yield int(part["fewest"][0]), rows


_RATES = (
    "counted_per_s",
    "gc_cpu_share",
    "assist_share_of_gc_cpu",
    "alloc_mib_per_s",
    ROUNDING,
)


def _figures() -> list[pl.Expr]:
    return [
        pl.col("kind").first().cast(pl.String),
        # An idle time begins where the previous cycle ended.
        pl.when(pl.col("kind").first() == "idle")
        .then(pl.col("begin_s").first())
        .otherwise(pl.coalesce("start_s", "begin_s").first())
        .alias("start_s"),
        pl.col("end_s").last(),
        pl.col("first_gc").drop_nulls().first(),
        pl.col("gc_num").drop_nulls().last().alias("last_gc"),
        pl.col("cycles").sum(),
        pl.col("procs").drop_nulls().first(),
        *sums(_RATES),
        not_null(pl.col("heap_live_mib")).median().alias("live_heap_p50_mib"),
        not_null(pl.col("effective_gogc")).median().alias("effective_gogc_p50"),
    ]


def _kind(name: str) -> pl.Expr:
    return pl.lit(name, _KINDS)


def _labels(cycles: pl.DataFrame, t: Thresholds) -> pl.Series:
    low, high = t.periodic_s
    idle = pl.lit(value=False)
    if may_idle(cycles, t):
        # The cycle before the first long gap was still caused by load.
        idle = pl.col("interval_s").is_between(low, high) | idle_gap(t, within_process(cycles))
    return cycles.select(
        label=pl.when("thrashes")
        .then(_kind("thrash"))
        .when(pl.col("start_s") < t.warm_up_s)
        .then(_kind("start-up"))
        .when(idle.fill_null(value=False))
        .then(_kind("idle"))
        .otherwise(_kind("steady"))
    ).to_series()


def level_changes(
    values: pl.Series, times: float, min_cycles: int, process: pl.Series | None = None
) -> pl.Series:
    """Returns True where the level changes.

    The level changes where the medians of the `min_cycles` values before and after differ by more
    than a factor of `times`. Of neighbouring places, only the one with the largest difference
    counts, or the middle one of several.

    Args:
        values: the values of one process, or of several one after another.
        times: the ratio of two levels.
        min_cycles: the least length of a level.
        process: the process of each value, if there are several.
    """
    nothing = constant(pl.Series([False]), len(values))
    if len(values) < 2 * min_cycles or values.null_count() == len(values):
        return nothing
    low, high = values.min(), values.max()
    if low > 0 and high <= times * low:  # type: ignore[operator]  # numbers, not all are null
        # Medians differ no more than values.
        return nothing
    rows = values.cast(pl.Float64).alias("value").to_frame()
    if process is not None:
        rows = rows.hstack([process.alias("process")])

    def within(each: pl.Expr) -> pl.Expr:
        return each if process is None else each.over("process")

    # The place before the first value counts as that value.
    filled = pl.col("value").forward_fill().backward_fill()
    value = filled if values.null_count() else pl.col("value")
    medians = rows.with_columns(median=within(value.rolling_median(min_cycles)))
    before, after = (within(pl.col("median").shift(by)) for by in (1, 1 - min_cycles))
    # From nothing to nothing is no change.
    ratio, row = pl.col("ratio"), pl.col("row")
    ratios = medians.with_columns(ratio=(after / before).fill_nan(None).log().abs())
    far = ratios.with_row_index("row").filter(ratio > math.log(times))
    if far.is_empty():
        return nothing
    is_new = row != row.shift(1) + 1
    if process is not None:
        is_new |= pl.col("process").ne_missing(pl.col("process").shift(1))
    runs = far.with_columns(run=is_new.fill_null(value=False).cum_sum())
    tops = runs.filter(ratio == ratio.max().over("run")).group_by("run")
    return nothing.scatter(tops.agg(row.get((pl.len() - 1) // 2))["row"], values=True)
