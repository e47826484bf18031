"""What happened between two successive dumps or scrapes of one process.

Counters give exact differences. The live heap and the GC CPU are read where the source has them;
otherwise they follow from the heap goal and from GCCPUFraction, and the column `estimated` names
the figures that then rest on an assumption.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.metrics import live_from_goal
from gctrace_analyzer.analysis.settings.known import LONGEST_REST_S, METRICS
from gctrace_analyzer.ingest.memstats.fields import RING
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.analysis.settings.known import Settings

YOUNG_SHARE = 0.1
"""Share of the observed time. If a process started less than this before the first dump, judging by
the rate of its cycles, its start is known well enough for GCCPUFraction."""

SIZES = {
    "heap_alloc_mib": "heap_alloc_bytes",
    "heap_inuse_mib": "heap_inuse_bytes",
    "heap_sys_mib": "heap_sys_bytes",
    "heap_released_mib": "heap_released_bytes",
    "stacks_mib": "stack_inuse_bytes",
    "rss_mib": "rss_bytes",
}


def intervals(
    memstats: pl.DataFrame,
    pauses: pl.DataFrame,
    settings: Settings,
    kinds: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """Returns the columns of `schema.INTERVALS`, and some more that figures need.

    Args:
        memstats: `schema.MEMSTATS`, with processes.
        pauses: `schema.CYCLE_PAUSES`.
        settings: GOGC and GOMEMLIMIT where the dumps do not have them.
        kinds: the format of each source.
    """
    rows = _rows(memstats, pauses, settings)
    if rows.is_empty():
        return pl.DataFrame()
    rows = rows.with_columns(_starts(rows, pauses))
    rows = live_from_goal.one_per_time(live_from_goal.with_limits(rows))
    spans = _differences(rows).filter(pl.col("length_s") > 0)
    spans = _with_pauses(spans, pauses)
    spans = live_from_goal.with_live_heap(spans)
    return spans.with_columns(
        source_kind=source_kind(kinds or {}),
        estimated=_estimated(),
        since_start=pl.lit(value=False),
    )


def source_kind(kinds: Mapping[str, str]) -> pl.Expr:
    """Returns the format of the source of each row."""
    names = pl.col("source").cast(pl.String)
    return names.replace_strict(dict(kinds), default=None, return_dtype=pl.String)


def _rows(memstats: pl.DataFrame, pauses: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """Returns the dumps of each process in order of time, without repeated ones."""
    at = pl.col("logged_at").dt.epoch("us") / 1e6
    rows = memstats.with_columns(t_s=pl.coalesce(at, pl.col("elapsed_s").cast(pl.Float64)))
    timeless = pl.col("t_s").is_null().all().over("process")
    last_gc_s = pl.when(pl.col("last_gc_unix_ns") > 0).then(pl.col("last_gc_unix_ns") / 1e9)
    # Without a date, a dump is at least as late as its last cycle; before the first one, LastGC
    # is 0, which is not a time.
    undated = pl.col("logged_at").is_null().all().over("process")
    later = pauses.unique(["process", "gc_num"], keep="first").select(
        "process",
        num_gc=pl.col("gc_num") - 1,
        next_gc_s=pl.col("ended_at").dt.epoch("us") / 1e6,
    )
    rows = rows.join(later, on=["process", "num_gc"], how="left", maintain_order="left")
    begin = pl.when(undated).then((last_gc_s - pl.col("t_s")).max().over("process"))
    rows = rows.with_columns(
        t_s=pl.when(timeless)
        .then(of_a_loop(rows.select("process", "next_gc_s", last_gc_s=last_gc_s)))
        .otherwise(pl.col("t_s") + begin.fill_null(0.0)),
        is_timeless=timeless,
        is_dated=timeless | begin.is_not_null() | pl.col("logged_at").is_not_null(),
    )
    rows = rows.drop_nulls(["process", "t_s"]).sort("process", "t_s", maintain_order=True)
    # The same sample again: the query step is finer than the scrapes, or the target is down. A
    # living process allocates between scrapes, if only for the scrape itself, unless its sizes are
    # rounded.
    same = [
        (pl.col(name) == pl.col(name).shift().over("process")).fill_null(value=False)
        for name in ("total_alloc_bytes", "heap_alloc_bytes")
    ]
    rows = rows.filter(~pl.all_horizontal(*same, pl.col("resolution_bytes").is_null()))
    gogc = _given(settings, "gogc")
    limit = _given(settings, "memory_limit_mib")
    # The runtime has no other figure for either (runtime/mstats.go).
    idle = pl.col("heap_sys_bytes") - pl.col("heap_inuse_bytes")
    return rows.with_columns(
        heap_alloc_bytes=pl.coalesce("heap_alloc_bytes", "alloc_bytes"),
        heap_idle_bytes=pl.coalesce("heap_idle_bytes", idle),
        gogc=pl.coalesce(
            pl.col("gogc_pct").cast(pl.Float64),
            pl.lit(-1.0 if gogc == "off" else gogc, pl.Float64),
            live_from_goal.gogc_of_minimum(),
        ),
        limit_mib=pl.coalesce(pl.col("gomemlimit_bytes") / MIB, pl.lit(limit, pl.Float64)),
        limit_known=pl.any_horizontal(
            pl.col("gomemlimit_bytes", "gomemlimit_off").is_not_null(),
            pl.lit(limit is not None),
        ),
    )


def _given(settings: Settings, name: str) -> Any:
    """Returns a setting from the user, not from the metrics of some process."""
    setting = getattr(settings, name)
    return None if setting is None or setting.source.startswith(METRICS) else setting.value


def _starts(rows: pl.DataFrame, pauses: pl.DataFrame) -> list[pl.Series]:
    """Returns the start of each row's process in seconds, and whether it is an estimate.

    `seen_start` lacks the starts that are computed from the rate of the cycles. The process may
    have started up to `earlier_s` before, or `later_s` after an estimated start.
    """
    by_process = rows.group_by("process").agg(
        known=pl.col("started_at").drop_nulls().first().dt.epoch("us") / 1e6,
        num=pl.col("num_gc").first(),
        ended=pl.when(pl.col("last_gc_unix_ns") > 0)
        .then(pl.col("last_gc_unix_ns") / 1e9)
        .first(),
        cycles=pl.col("num_gc").last() - pl.col("num_gc").first(),
        begin=pl.col("t_s").first(),
        end=pl.col("t_s").last(),
        # The last cycle of a dump may be long before it, so that it shows no time of other dumps.
        has_times=(pl.col("is_timeless") | pl.col("logged_at").is_not_null()).first(),
    )
    first_gc = (
        pauses.filter(gc_num=1)
        .group_by("process")
        .agg(first_gc=pl.col("ended_at").min().dt.epoch("us") / 1e6)
    )
    age = pl.col("num") * (pl.col("end") - pl.col("begin")) / pl.col("cycles")
    # The first cycle stands for the start if it was a small part of the cycles until the first
    # dump: the program started up to two minutes before it.
    soon = pl.when(~pl.col("num").is_between(1, 1 / YOUNG_SHARE, closed="left")).then(
        "first_gc"
    )
    observed_s = pl.col("end") - pl.col("begin")
    is_young = pl.col("has_times") & (age <= YOUNG_SHARE * observed_s)
    # Its first cycles may be slower than the others: then the rate does not show its start.
    by_rate = pl.col("begin") - age
    is_young &= (by_rate <= pl.min_horizontal("first_gc", "ended")).fill_null(value=True)
    is_seen = pl.col("known").is_null() & soon.is_not_null()
    table = by_process.join(first_gc, on="process", how="left").select(
        "process",
        start=pl.coalesce("known", soon, pl.when(is_young).then(by_rate)),
        seen_start=pl.coalesce("known", "first_gc"),
        start_is_estimate=pl.col("known").is_null(),
        earlier_s=pl.when(is_seen)
        .then(pl.min_horizontal(pl.col("begin") - soon, LONGEST_REST_S))
        .otherwise(pl.max_horizontal(age, YOUNG_SHARE * observed_s)),
        later_s=pl.when(is_seen).then(0.0).otherwise(age),
    )
    own = rows.select("process").join(table, on="process", how="left", maintain_order="left")
    return own.drop("process").get_columns()


def _differences(rows: pl.DataFrame) -> pl.DataFrame:
    def before(name: str) -> pl.Expr:
        return pl.col(name).shift().over("process")

    def step(name: str) -> pl.Expr:
        """The growth of a counter; null where it fell or is unknown."""
        growth = pl.col(name) - before(name)
        return pl.when(growth >= 0).then(growth)

    # GCCPUFraction is an average from the start to the end of the last cycle.
    last_gc = pl.col("last_gc_unix_ns") / 1e9
    until = last_gc - pl.col("start")
    until = pl.when(pl.col("num_gc") == 0).then(0.0).otherwise(pl.when(until > 0).then(until))
    # A truncated list may lack the longest pause.
    is_cut = pl.col("pauses") < pl.min_horizontal("num_gc", pl.lit(RING))
    rows = rows.with_columns(
        pause_max_s=pl.when(~is_cut.fill_null(value=False)).then("pause_max_s"),
        until_s=until,
        spent=pl.col("gc_cpu_fraction") * until,
        last_gc_s=last_gc,
    )
    # With a computed start, times would end after the input.
    since = pl.coalesce(
        pl.when("is_dated").then("seen_start"), pl.col("t_s").first().over("process")
    )
    cycles, length = step("num_gc"), pl.col("t_s") - before("t_s")
    base, spent = step("until_s"), pl.col("spent") - before("spent")
    by_fraction = pl.when(base > 0).then((spent / base).clip(lower_bound=0.0))
    # A start that is earlier by d adds d × fraction to what was spent until each dump.
    faster = (pl.col("gc_cpu_fraction") - before("gc_cpu_fraction")) / base
    moved = [faster * pl.col("earlier_s"), -faster * pl.col("later_s")]
    is_moved = pl.col("start_is_estimate") & by_fraction.is_not_null()
    ends = {
        end: pl.when(is_moved).then((by_fraction + of(*moved, 0.0)).clip(lower_bound=0.0))
        for end, of in (("low", pl.min_horizontal), ("high", pl.max_horizontal))
    }
    available = step("available_cpu_s")
    by_classes = step("gc_cpu_s") - step("gc_cpu_idle_s")
    return rows.select(
        "process",
        "source",
        "line_no",
        "procs",
        "start_is_estimate",
        "is_timeless",
        "num_gc",
        begin_s=before("t_s") - since,
        end_s=pl.col("t_s") - since,
        begin_at=before("logged_at"),
        end_at=pl.col("logged_at"),
        length_s=length,
        gc_cycles=cycles,
        forced_cycles=step("num_forced_gc"),
        gc_per_s=cycles / length,
        ends_s=pl.when(before("num_gc") > 0).then(step("last_gc_s")),
        available_cpu_s=pl.coalesce(
            available, pl.when(by_fraction.is_not_null()).then(base * pl.col("procs"))
        ),
        gc_cpu_s=pl.coalesce(by_classes, by_fraction * base * pl.col("procs")),
        gc_cpu_share=pl.coalesce(
            pl.when(available > 0).then(by_classes / available), by_fraction
        ),
        **{f"gc_cpu_share_{end}": share for end, share in ends.items()},
        gc_cpu_base=pl.coalesce(available, base),
        has_fraction=pl.col("gc_cpu_fraction").is_not_null(),
        by_fraction=by_classes.is_null() & by_fraction.is_not_null(),
        assist_cpu_s=step("gc_cpu_assist_s"),
        pause_cpu_s=step("gc_cpu_pause_s"),
        idle_cpu_s=step("gc_cpu_idle_s"),
        cpu_s=step("process_cpu_s"),
        stw_total_ms=step("pause_total_ns") / 1e6,
        longest_ms=pl.col("pause_max_s") * 1000,
        longest_before_ms=before("pause_max_s") * 1000,
        alloc_mib=step("total_alloc_bytes") / MIB,
        alloc_mib_per_s=step("total_alloc_bytes") / MIB / length,
        **{name: pl.col(column) / MIB for name, column in SIZES.items()},
        goroutines=pl.col("goroutines"),
        goroutines_before=before("goroutines"),
        memory_limit_mib=pl.col("limit_mib"),
        limit_known=pl.col("limit_known"),
        limit_is_shown=pl.col("limit_is_shown"),
        gogc_pct=pl.col("gogc"),
        limiter_active=pl.when(pl.col("limiter_last_gc") > 0)
        .then(pl.col("limiter_last_gc") > before("num_gc"))
        .when(pl.col("limiter_last_gc") == 0)
        .then(pl.lit(value=False)),
        **{
            f"{name}{end}": value
            for name in (
                "goal_mib",
                "heap_mib",
                "live_row_mib",
                "roots_mib",
                "other_mib",
                "most_live_mib",
                "most_heap_mib",
            )
            for end, value in (("", pl.col(name)), ("_before", before(name)))
        },
        by_limit=pl.col("by_limit"),
        by_limit_before=before("by_limit"),
        goal_is_old=pl.col("goal_is_old"),
        goal_is_old_before=before("goal_is_old"),
        live_is_read=pl.col("live_is_read"),
    )


def _with_pauses(intervals: pl.DataFrame, pauses: pl.DataFrame) -> pl.DataFrame:
    """Adds the longest pause of each interval, where it is known."""
    intervals = intervals.with_row_index("row")
    of_dumps = (
        in_intervals(pauses, intervals)
        .group_by("row")
        .agg(known=pl.len(), ring_max_ms=pl.col("pause_ms").max())
    )
    intervals = intervals.join(of_dumps, on="row", how="left", maintain_order="left").drop(
        "row"
    )
    # The quantile covers the last 256 cycles, whenever they ran: it belongs to this interval if it
    # rose, or if the interval has all 256.
    rose = (pl.col("longest_ms") > pl.col("longest_before_ms")) | (pl.col("gc_cycles") >= RING)
    whole = pl.col("known") == pl.col("gc_cycles")
    new_max = pl.when(rose & (pl.col("gc_cycles") > 0)).then("longest_ms")
    whole_max = pl.coalesce(pl.when(whole).then("ring_max_ms"), new_max)
    only_one = pl.when(pl.col("gc_cycles") == 1).then("stw_total_ms")
    return intervals.with_columns(
        # Of more cycles than the runtime remembers, the longest of those.
        new_max_ms=pl.coalesce(whole_max, "ring_max_ms"),
        stw_max_ms=pl.coalesce(whole_max, only_one),
    )


def spans(intervals: pl.DataFrame) -> pl.DataFrame:
    """Returns intervals as spans of several cycles, with all their columns (`analysis.spans`).

    Args:
        intervals: what `intervals` returns.
    """
    elapsed, procs, goal = pl.col("length_s"), pl.col("procs"), pl.col("heap_goal_mib")
    # Whole cycles: from the last end before the interval to the last end in it.
    by_cycles = pl.col("gc_cpu_base") * pl.col("procs").fill_null(1)
    capacity = pl.coalesce("available_cpu_s", by_cycles, elapsed * procs)
    nothing = pl.lit(None, pl.Float64)
    return intervals.with_columns(
        start_s=nothing,
        wall_time=pl.col("begin_at"),
        elapsed_s=elapsed,
        cycles=pl.col("gc_cycles"),
        counted_s=pl.when(pl.col("gc_cycles").is_not_null()).then(elapsed),
        steps=pl.col("gc_cycles").cast(pl.Float64),
        steps_s=elapsed,
        gc_cpu_s=pl.col("gc_cpu_share") * capacity,
        **{
            f"gc_cpu_{end}_s": pl.coalesce(f"gc_cpu_share_{end}", "gc_cpu_share") * capacity
            for end in ("low", "high")
        },
        capacity_s=capacity,
        capacity_between_s=capacity,
        capacity_time_s=capacity / procs,
        active_s=nothing,
        pause_total_ms=pl.col("stw_total_ms"),
        pause_max_ms=pl.col("stw_max_ms"),
        in_cycle_mib=pl.col("alloc_mib"),
        between_mib=nothing,
        allocated_mib=pl.col("alloc_mib"),
        rounding_mib=nothing,
        # Samples miss the peak; the goal is where the heap ends at a steady load.
        heap_peak_mib=pl.max_horizontal("most_heap_mib", "most_heap_mib_before"),
        true_live_mib=nothing,
        effective_gogc=100 * (goal - pl.col("heap_live_mib")) / pl.col("heap_live_mib"),
        first_gc=pl.col("num_gc") - pl.col("gc_cycles") + 1,
        gc_num=pl.col("num_gc"),
    )


def in_intervals(pauses: pl.DataFrame, intervals: pl.DataFrame) -> pl.DataFrame:
    """Returns `row` and `pause_ms` of each pause whose cycle ended in one of the intervals.

    Args:
        pauses: `schema.CYCLE_PAUSES`.
        intervals: what `intervals` returns, with `row`.
    """
    with_cycles = intervals.filter(pl.col("gc_cycles") > 0).select(
        "row", "process", "num_gc", "gc_cycles"
    )
    return (
        pauses.drop_nulls(["process", "pause_ms"])
        .unique(["process", "gc_num"], keep="first")
        .sort("gc_num")
        .join_asof(
            with_cycles.sort("num_gc"),
            left_on="gc_num", right_on="num_gc", by="process", strategy="forward",
            check_sortedness=False,
        )
        # The ring of the first dump also holds earlier pauses.
        .filter(pl.col("gc_num") > pl.col("num_gc") - pl.col("gc_cycles"))
        .select("row", "pause_ms")
    )  # fmt: skip


def observed_pauses(pauses: pl.DataFrame, intervals: pl.DataFrame) -> pl.DataFrame:
    """Returns the pauses of the cycles in the intervals.

    Earlier cycles in the first dump, such as those of the start-up, are left out everywhere.

    Args:
        pauses: `schema.CYCLE_PAUSES`.
        intervals: what `intervals` returns.
    """
    if not intervals.width:
        return pauses
    counted = intervals.filter(pl.col("gc_cycles").is_not_null())
    spans = counted.group_by("process").agg(
        before=(pl.col("num_gc") - pl.col("gc_cycles")).min(), last=pl.col("num_gc").max()
    )
    observed = (pl.col("gc_num") > pl.col("before")) & (pl.col("gc_num") <= pl.col("last"))
    return (
        pauses.join(spans, on="process", how="inner", maintain_order="left")
        .filter(observed)
        .select(pauses.columns)
    )


def _estimated() -> pl.Expr:
    by_start = pl.col("by_fraction") & pl.col("start_is_estimate")
    flags = {
        "begin_s": pl.col("is_timeless"),
        "end_s": pl.col("is_timeless"),
        "alloc_mib_per_s": pl.col("is_timeless") & pl.col("alloc_mib").is_not_null(),
        "gc_cpu_share": by_start,
        "gc_cpu_s": by_start & pl.col("gc_cpu_s").is_not_null(),
        "heap_live_mib": pl.col("heap_live_mib").is_not_null() & ~pl.col("live_is_read"),
        "memory_limit_mib": pl.col("limit_is_shown"),
    }
    names = [
        pl.when(flag.fill_null(value=False)).then(pl.lit(name)) for name, flag in flags.items()
    ]
    return pl.concat_list(names).list.drop_nulls()


FEWEST, FEWEST_ENDS = 5, 3
"""Dumps, and different last cycles. Fewer do not show the time between dumps."""

TOLERANCE = 0.5
"""Tolerance of the bounds, in times between dumps: a busy machine delays some dumps."""

_STEPS = 48
"""Steps of the search; each leaves two thirds of the range."""


def of_a_loop(dumps: pl.DataFrame) -> pl.Series:
    """Returns the time of each dump in seconds since 1970; null if it is unknown.

    A dump is later than the end of its last cycle, and earlier than the end of the next one.
    Programs and shell loops dump at regular intervals, so an interval that fits all these bounds is
    taken. The bounds alone are far off if cycles are rare: several dumps have the same last cycle.

    Args:
        dumps: in the order in which they were written: `process`, `last_gc_s`, the end of the last
            cycle (null before the first cycle), and `next_gc_s`, that of the next one (null where
            no dump lists it).
    """
    ends = dumps.with_row_index("row").drop_nulls("last_gc_s")
    parts = [_of_process(part) for part in ends.partition_by("process", maintain_order=True)]
    table = pl.concat(parts) if parts else ends.select("row", t_s="last_gc_s")
    rows = dumps.with_row_index("row")
    return rows.join(table, on="row", how="left", maintain_order="left")["t_s"]


def _of_process(ends: pl.DataFrame) -> pl.DataFrame:
    """Returns the times of one process's dumps; the ends of cycles if no regular interval fits."""
    at = _at_equal_distances(ends["last_gc_s"], ends["next_gc_s"])
    return ends.select("row").hstack([at.alias("t_s")])


def _at_equal_distances(last: pl.Series, following: pl.Series) -> pl.Series:
    first = float(last[0])
    early = last - first
    if len(last) < FEWEST or last.n_unique() < FEWEST_ENDS or not last.is_sorted():
        return last
    number = pl.Series(range(len(last)), dtype=pl.Float64)
    # A cycle ended before the first dump that names a later one.
    named = pl.when(early.shift(-1) > early).then(early.shift(-1)).backward_fill()
    late = pl.select(pl.coalesce(following - first, named)).to_series()

    def room(distance: float) -> tuple[float, float]:
        """Returns the earliest and the latest time of the first dump for this interval."""
        low = (early - distance * number).max()
        high = (late - distance * number).min()
        return float(low), float(high)  # type: ignore[arg-type]  # numeric columns

    def width(distance: float) -> float:
        low, high = room(distance)
        return high - low

    least, most = 0.0, 2.0 * float(early[-1]) / (len(last) - 1)
    for _ in range(_STEPS):
        third = (most - least) / 3
        if width(least + third) < width(most - third):
            least += third
        else:
            most -= third
    distance = (least + most) / 2
    low, high = room(distance)
    if high - low < -TOLERANCE * distance:
        return last
    at = (low + high) / 2 + distance * number
    bounded = pl.max_horizontal(pl.min_horizontal(at, late.fill_null(float("inf"))), early)
    return pl.select(first + bounded).to_series()
