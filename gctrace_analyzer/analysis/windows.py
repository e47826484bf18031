"""The figures of a run in windows of equal length."""

from __future__ import annotations

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
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.ingest.rows import by_number, not_null

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_WINDOWS = 1_000_000
"""More windows than this are requested only by mistake, for example with a wrong unit."""

LEAST_COVERED = 0.5
"""Share of a window. If the log covers less, rates in it say nothing about the window."""


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
    since = [pl.col("start_s") - origin_s, pl.col("end_s") - origin_s]
    timed = corrected.filter(pl.col("start_s").is_not_null()).with_columns(since)
    begin_s = pl.coalesce(pl.col("end_s") - pl.col("elapsed_s"), "start_s")
    spans = timed.group_by("process").agg(span=pl.col("end_s").max() - begin_s.min())
    span = spans.select(pl.col("span").max()).item() or 0.0
    check_length(length_s, span, f"the log's {span:g} s")
    pieces = pl.concat([divided(part, length_s) for part in _ranges(timed)], how="diagonal")
    sums = [name for name in pieces.columns if name not in ("process", "window")]
    totals = pieces.group_by("process", "window").agg(pl.col(sums).sum())
    covered, gc_cpu, capacity = map(pl.col, ("covered_s", "gc_cpu_s", "capacity_s"))
    figures = totals.filter(covered > 0).join(
        _started(timed, length_s), on=["process", "window"], how="left"
    )
    enough = (covered >= LEAST_COVERED * length_s) | (pl.len().over("process") == 1)
    shown = pl.when(enough)
    zeros = corrected.group_by("process").agg(zero=zero("wall_time", "start_s"))
    return placed(
        figures.with_columns(
            cycles=pl.col("cycles").fill_null(0).cast(pl.Int64),
            gc_per_s=shown.then(pl.col("cycles").fill_null(0) / covered),
            gc_cpu_share=shown.then(ratio(gc_cpu, capacity)),
            gc_cpu_with_idle_share=shown.then(ratio(gc_cpu + pl.col("idle_s"), capacity)),
            gc_active_share=shown.then(pl.col("active_s") / covered),
            assist_share_of_gc_cpu=shown.then(ratio(pl.col("assist_s"), gc_cpu)),
            stw_share=shown.then(pl.col("stw_s") / covered),
            alloc_mib_per_s=shown.then(pl.col("alloc_mib") / covered),
        ),
        zeros,
        length_s,
        origin_s,
    )


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


def _ranges(corrected: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yields tables of time ranges with what was spent in them.

    The first table has the cycles; the second, the times from the end of each cycle to the end
    of the next; the third, the times from the end of each cycle to the start of the next.
    """
    pauses_s = pauses_ms() / 1000
    yield corrected.select(
        "process",
        pl.col("start_s").alias("from_s"),
        pl.col("end_s").alias("to_s"),
        (gc_cpu_ms() / 1000).alias("gc_cpu_s"),
        (pl.col("idle_cpu_ms") / 1000).alias("idle_s"),
        (pl.col("assist_cpu_ms") / 1000).alias("assist_s"),
        pauses_s.alias("stw_s"),
        (pauses_s + pl.col("concurrent_mark_ms") / 1000).alias("active_s"),
        alloc_while_marking_mib().cast(pl.Float64).alias("alloc_mib"),
    )
    last_end_s = (pl.col("end_s") - pl.col("elapsed_s")).alias("from_s")
    yield corrected.select(
        "process",
        last_end_s,
        pl.col("end_s").alias("to_s"),
        pl.col("elapsed_s").alias("covered_s"),
        (pl.col("elapsed_s") * pl.col("cpus")).alias("capacity_s"),
    )
    yield corrected.select(
        "process",
        last_end_s,
        pl.col("start_s").alias("to_s"),
        alloc_before_mib().alias("alloc_mib"),
    )


def divided(ranges: pl.DataFrame, length_s: float) -> pl.DataFrame:
    """Divides the time ranges at the ends of the windows and returns the sums by window."""
    sums = [name for name in ranges.columns if name not in ("process", "from_s", "to_s")]
    first = (pl.col("from_s") / length_s).floor().cast(pl.Int64)
    last = pl.max_horizontal(first, (pl.col("to_s") / length_s).ceil().cast(pl.Int64) - 1)
    ranges = ranges.drop_nulls(["from_s", "to_s"]).with_columns(window=first, last=last)
    # Nearly all ranges are within one window; only the others have to be divided.
    inside = ranges.filter(pl.col("window") == pl.col("last"))
    across = ranges.filter(pl.col("window") < pl.col("last")).with_columns(
        pl.int_ranges("window", pl.col("last") + 1).alias("window")
    )
    begin = pl.max_horizontal("from_s", pl.col("window") * length_s)
    end = pl.min_horizontal("to_s", (pl.col("window") + 1) * length_s)
    weight = (end - begin) / (pl.col("to_s") - pl.col("from_s"))
    cut = across.explode("window").with_columns(pl.col(sums) * weight)
    by_window = (by_number(part, "window", pl.col(sums).sum()) for part in (inside, cut))
    return pl.concat(by_window, how="diagonal")


def _started(corrected: pl.DataFrame, length_s: float) -> pl.DataFrame:
    """Returns counts, medians and maxima of the cycles that started in each window."""
    return by_number(
        corrected.with_columns(
            window=(pl.col("start_s") / length_s).floor().cast(pl.Int64),
            longest_ms=pl.max_horizontal("stw_sweep_term_ms", "stw_mark_term_ms"),
        ),
        "window",
        pl.len().alias("cycles"),
        pl.col("longest_ms").max().alias("stw_max_ms"),
        not_null(pl.col("heap_live_mib")).median(),
        not_null(pl.col("heap_goal_mib")).median(),
        pl.col("heap_end_mib").max().cast(pl.Float64).alias("heap_peak_mib"),
    )
