"""The figures of a run in windows of equal length."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.cycles import (
    alloc_before_mib,
    alloc_while_marking_mib,
    gc_cpu_ms,
    pauses_ms,
    ratio,
)
from gctrace_analyzer.analysis.neighbours import before, within_process
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.ingest.rows import (
    by_number,
    complete,
    not_null,
    of_each_process,
    parted,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_WINDOWS = 1_000_000
"""More windows than this are requested only by mistake, for example with a wrong unit."""

LEAST_COVERED = 0.5
"""Share of a window. If the log covers less, rates in it say nothing about the window."""


_ROWS_AT_ONCE = 1 << 16
"""So many cycles are copied at a time, to keep memory small."""


def check_length(length_s: float, span_s: float, span: str) -> None:
    """Refuses a length of windows that is not above 0 or far too short.

    Args:
        length_s: the length of a window.
        span_s: how long the input is.
        span: the same as a noun, for the message.

    Raises:
        BadSettingError: there is no window of this length, or there are over a million.
    """
    if length_s > 0 and span_s / length_s <= MOST_WINDOWS:
        return
    expected = f"a duration above 0 that fits {span}"
    raise BadSettingError(argument="every", value=f"{length_s:g}s", expected=expected)


def windows(corrected: pl.DataFrame, length_s: float, *, origin_s: float = 0.0) -> pl.DataFrame:
    """Returns the figures of windows of `length_s` (`schema.WINDOWS`).

    What a cycle spent is distributed evenly over its duration, because the log does not show
    when an assist ran. Counts and maxima belong to the window in which the cycle started.
    Rates and shares are of the part of the window that the log covers. They are null if that is
    less than half of the window and the process has another one: a log ends with a cycle, so a
    short rest would show GC that costs many times what it does.

    Args:
        corrected: what `on_real_cpus` returns.
        length_s: the length of a window.
        origin_s: where the first window begins, after the start of each process.

    Raises:
        BadSettingError: `length_s` is not above 0, or would make more than a million windows.
    """
    cycles = _spent(complete(corrected, "start_s"), origin_s)
    span = _span_s(cycles)
    check_length(length_s, span, f"the log's {span:g} s")
    slices = cycles.iter_slices(_ROWS_AT_ONCE) if len(cycles) else (cycles,)
    pieces = pl.concat(
        chain.from_iterable(_pieces(rows, length_s) for rows in slices), how="diagonal"
    )
    sums = [name for name in pieces.columns if name not in ("process", "window")]
    # Of these, there is one value for each window.
    started = _started(cycles, length_s)
    others = [name for name in started.columns if name not in ("process", "window")]
    covered, gc_cpu, capacity = map(pl.col, ("covered_s", "gc_cpu_s", "capacity_s"))
    enough = (covered >= LEAST_COVERED * length_s) | (pl.len().over("process") == 1)
    shown = pl.when("_enough")
    figures = (
        pl.concat([pieces, started], how="diagonal")
        .group_by("process", "window")
        .agg(pl.col(sums).sum(), pl.col(others).max())
        .filter(covered > 0)
        .with_columns(_enough=enough)
        .with_columns(
            cycles=pl.col("cycles").fill_null(0).cast(pl.Int64),
            gc_per_s=shown.then(pl.col("cycles").fill_null(0) / covered),
            gc_cpu_share=shown.then(ratio(gc_cpu, capacity)),
            gc_cpu_with_idle_share=shown.then(ratio(gc_cpu + pl.col("idle_s"), capacity)),
            gc_active_share=shown.then(pl.col("active_s") / covered),
            assist_share_of_gc_cpu=shown.then(ratio(pl.col("assist_s"), gc_cpu)),
            stw_share=shown.then(pl.col("stw_s") / covered),
            alloc_mib_per_s=shown.then(pl.col("alloc_mib") / covered),
        )
    )
    zeros = of_each_process(corrected, zero("wall_time", "start_s").alias("zero"))
    return placed(figures, zeros, length_s, origin_s)


def zero(moment: str, seconds: str) -> pl.Expr:
    """Returns the moment that the seconds of a process count from; null without a clock."""
    return (pl.col(moment) - duration(pl.col(seconds))).drop_nulls().first()


def placed(
    figures: pl.DataFrame, zeros: pl.DataFrame, length_s: float, origin_s: float
) -> pl.DataFrame:
    """Returns figures of windows in order, with the time of each (`schema.WINDOWS`).

    Args:
        figures: `process`, `window` (its number from 0) and the figures.
        zeros: `process`, and what `zero` returns for it.
        length_s: the length of a window.
        origin_s: where the first window begins.
    """
    start = origin_s + pl.col("window") * length_s
    return (
        figures.join(zeros, on="process", how="left", nulls_equal=True)
        .with_columns(
            start_s=start,
            end_s=start + length_s,
            begin_at=(pl.col("zero") + duration(start)).cast(pl.Datetime("us", "UTC")),
        )
        .sort("process", "window")
        .select(schema.names("windows"))
    )


def duration(seconds: pl.Expr) -> pl.Expr:
    """Returns seconds as a duration."""
    return pl.duration(microseconds=(seconds * 1e6).round().cast(pl.Int64))


def _spent(timed: pl.DataFrame, origin_s: float) -> pl.DataFrame:
    """Returns what each cycle adds to windows; times count from the first window."""
    pauses_s = pauses_ms() / 1000
    end_s = pl.col("end_s") - origin_s
    within = within_process(timed)
    return timed.with_columns(_live=before("heap_live_mib", within)).select(
        "process",
        pl.col("start_s") - origin_s,
        end_s,
        last_end_s=end_s - pl.col("elapsed_s"),
        gc_cpu_s=gc_cpu_ms() / 1000,
        idle_s=pl.col("idle_cpu_ms") / 1000,
        assist_s=pl.col("assist_cpu_ms") / 1000,
        stw_s=pauses_s,
        active_s=pauses_s + pl.col("concurrent_mark_ms") / 1000,
        in_mark_mib=alloc_while_marking_mib().cast(pl.Float64),
        covered_s=pl.col("elapsed_s"),
        capacity_s=pl.col("elapsed_s") * pl.col("cpus"),
        between_mib=alloc_before_mib(pl.col("_live"), within),
        longest_ms=pl.max_horizontal("stw_sweep_term_ms", "stw_mark_term_ms"),
        heap_live_mib="heap_live_mib",
        heap_goal_mib="heap_goal_mib",
        heap_end_mib="heap_end_mib",
    )


def _span_s(cycles: pl.DataFrame) -> float:
    """Returns how long the longest process is."""
    begin_s = pl.coalesce("last_end_s", "start_s")
    spans = of_each_process(cycles, (pl.col("end_s").max() - begin_s.min()).alias("span"))
    return spans["span"].max() or 0.0  # type: ignore[return-value]  # a number


def _pieces(cycles: pl.DataFrame, length_s: float) -> Iterator[pl.DataFrame]:
    """Yields tables of sums by window, which have to be added.

    What a cycle spent belongs to the time from its start to its end, the time that passes and what
    it could have used to the time since the end of the cycle before, and what was allocated before
    it to the time from there to its start. Nearly all cycles are in one window with all three.
    """
    begin, end, last_end = (pl.col(f"{name}_s") for name in ("start", "end", "last_end"))
    spent = cycles.with_columns(
        first=(pl.min_horizontal(last_end, begin) / length_s).floor().cast(pl.Int64),
        last=(end / length_s).ceil().cast(pl.Int64) - 1,
    )
    in_one = (spent["first"] == spent["last"]) & spent["last_end_s"].is_not_null()
    inside, across = parted(spent, in_one.fill_null(value=False))
    sums = pl.col(*_OF_CYCLE, "covered_s", "capacity_s").sum()
    alloc_mib = pl.col("in_mark_mib").sum() + pl.col("between_mib").sum()
    yield by_number(
        inside.rename({"first": "window"}), "window", sums, alloc_mib.alias("alloc_mib")
    )
    ranges = [
        across.select("process", *names, from_s=from_s, to_s=to_s)
        for from_s, to_s, names in (
            (begin, end, (*_OF_CYCLE, pl.col("in_mark_mib").alias("alloc_mib"))),
            (last_end, end, ("covered_s", "capacity_s")),
            (last_end, begin, (pl.col("between_mib").alias("alloc_mib"),)),
        )
    ]
    yield divided(pl.concat(ranges, how="diagonal"), length_s)


_OF_CYCLE = ("gc_cpu_s", "idle_s", "assist_s", "stw_s", "active_s")
"""What a cycle spends while it runs."""


def divided(ranges: pl.DataFrame, length_s: float) -> pl.DataFrame:
    """Divides the time ranges at the ends of the windows and returns the sums by window."""
    sums = [name for name in ranges.columns if name not in ("process", "from_s", "to_s")]
    first = (pl.col("from_s") / length_s).floor().cast(pl.Int64)
    last = pl.max_horizontal(first, (pl.col("to_s") / length_s).ceil().cast(pl.Int64) - 1)
    begin = pl.max_horizontal("from_s", pl.col("window") * length_s)
    end = pl.min_horizontal("to_s", (pl.col("window") + 1) * length_s)
    part = (end - begin) / (pl.col("to_s") - pl.col("from_s"))
    weight = pl.when(pl.col("is_inside")).then(1.0).otherwise(part)
    return (
        ranges.drop_nulls(["from_s", "to_s"])
        .with_columns(window=pl.int_ranges(first, last + 1), is_inside=first == last)
        .explode("window")
        .group_by("process", "window")
        .agg((pl.col(sums) * weight).sum())
    )


def _started(cycles: pl.DataFrame, length_s: float) -> pl.DataFrame:
    """Returns counts, medians and maxima of the cycles that started in each window."""
    return by_number(
        cycles.with_columns(window=(pl.col("start_s") / length_s).floor().cast(pl.Int64)),
        "window",
        pl.len().alias("cycles"),
        pl.col("longest_ms").max().alias("stw_max_ms"),
        not_null(pl.col("heap_live_mib")).median(),
        not_null(pl.col("heap_goal_mib")).median(),
        pl.col("heap_end_mib").max().cast(pl.Float64).alias("heap_peak_mib"),
    )
