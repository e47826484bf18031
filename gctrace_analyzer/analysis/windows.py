"""The figures of a run in windows of equal length."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis import spans as spans_of
from gctrace_analyzer.analysis.spans import select
from gctrace_analyzer.analysis.totals import RATES, ROUNDING, part, quotients, whole
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.ingest.rows import by_number, complete, not_null, of_each_process, parted

MOST_WINDOWS = 1_000_000
"""More windows than this are requested only by mistake, for example with a wrong unit."""

LEAST_COVERED = 0.5
"""Share of a window. If the input covers less, its rates say nothing about the window."""


_ROWS_AT_ONCE = 1 << 15
"""Spans copied at a time, to keep memory small."""

_RATES = tuple(
    name for name in RATES if name in {*schema.names("windows"), ROUNDING} - {"gc_per_s"}
)
_PLACES = ("process", "begin_s", "start_s", "end_s")
_SIZES = ("heap_live_mib", "heap_goal_mib")


def parts(spans: pl.DataFrame, count: int) -> pl.DataFrame:
    """Returns the figures of equal parts of a process (`schema.WINDOWS`); empty without a time."""
    begin, end = select(spans, pl.col("begin_s").min(), pl.col("end_s").max()).row(0)
    if begin is None or end <= begin:
        return schema.empty("windows")
    return windows(spans, (end - begin) / count, origin_s=begin).head(count)


def windows(spans: pl.DataFrame, length_s: float, *, origin_s: float = 0.0) -> pl.DataFrame:
    """Returns the figures of windows of `length_s` (`schema.WINDOWS`).

    The CPU time of a cycle is distributed evenly over its duration, because the log does not show
    when an assist ran. A cycle with its maxima belongs to the window in which it started. If a span
    has several cycles, they are distributed evenly too, so windows shorter than the time between
    two dumps show nothing new. Its maxima belong to the window in which it ended. Rates and shares
    refer to the part of the window that the input covers. They are null if that is less than half
    of the window and the process has another window: a log ends with a cycle, so a short last
    window would multiply the cost of GC.

    Args:
        spans: as described in `spans`.
        length_s: the length of a window.
        origin_s: where the first window begins, after the start of each process.

    Raises:
        BadSettingError: `length_s` is not above 0, or would make more than a million windows.
    """
    if not spans.width:
        return schema.empty("windows")
    known = complete(spans, "end_s")
    sizes = select(known, *_PLACES, *_SIZES, "pause_max_ms", "heap_peak_mib")
    _check_length(length_s, _span_s(sizes))
    slices = known.iter_slices(_ROWS_AT_ONCE) if len(known) else (known,)
    timed = (_timed(spans_of.whole(rows), origin_s) for rows in slices)
    pieces = pl.concat(
        chain.from_iterable(_pieces(rows, length_s) for rows in timed), how="diagonal"
    )
    added = [name for name in pieces.columns if name not in ("process", "window")]
    # These have one value for each window.
    counted = _counted(sizes, length_s, origin_s)
    others = [name for name in counted.columns if name not in ("process", "window")]
    covered, cycles = pl.col("covered_s"), pl.col("started").fill_null(0) + pl.col("spread")
    enough = (covered >= LEAST_COVERED * length_s) | (pl.len().over("process") == 1)
    figures = (
        pl.concat([pieces, counted], how="diagonal")
        .group_by("process", "window")
        .agg(pl.col(added).sum(), pl.col(others).max())
        .filter(covered > 0)
        .with_columns(enough=enough)
        .with_columns(
            cycles.round().cast(pl.Int64).alias("cycles"),
            pl.when(pl.col("counted_s") > 0)
            .then(cycles / pl.col("counted_s"))
            .alias("gc_per_s"),
            *quotients(_RATES),
            *(_size(name) for name in _SIZES),
        )
        .with_columns(
            pl.when("enough").then(name).alias(name) for name in ("gc_per_s", *_RATES)
        )
    )
    moment = zero("wall_time", pl.coalesce("start_s", "begin_s"))
    zeros = of_each_process(select(spans, *_PLACES, "wall_time"), moment.alias("zero"))
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


def _check_length(length_s: float, span_s: float) -> None:
    if length_s > 0 and span_s / length_s <= MOST_WINDOWS:
        return
    expected = f"a duration above 0 that fits the {span_s:g} s of the input"
    raise BadSettingError("every", f"{length_s:g}s", expected)


def zero(moment: str, seconds: pl.Expr) -> pl.Expr:
    """Returns the moment that the seconds of a process count from; null without a clock."""
    return (pl.col(moment) - duration(seconds)).drop_nulls().first()


def duration(seconds: pl.Expr) -> pl.Expr:
    """Returns seconds as a duration."""
    return pl.duration(microseconds=(seconds * 1e6).round().cast(pl.Int64))


def _timed(spans: pl.DataFrame, origin_s: float) -> pl.DataFrame:
    """Returns the amounts that each span adds to windows; times count from the first window."""
    begin_s, elapsed = pl.col("begin_s") - origin_s, pl.col("elapsed_s")
    allocated = pl.col("allocated_mib").is_not_null()
    # Amounts outside a single cycle are spread over the span.
    several = pl.col("start_s").is_null()
    spread = {
        "spread": pl.when(several).then(pl.col("cycles").cast(pl.Float64)).fill_null(0),
        **{
            f"{name}/{end}": pl.when(several & pl.col(name).is_not_null()).then(value)
            for name in _SIZES
            for end, value in (("part", pl.col(name) * elapsed), ("whole", elapsed))
        },
    }
    return spans.select(
        "process",
        begin_s=begin_s,
        spends_s=pl.coalesce(pl.col("start_s") - origin_s, begin_s),
        end_s=pl.col("end_s") - origin_s,
        covered_s=elapsed,
        counted_s=pl.col("counted_s"),
        in_cycle_mib=pl.when(allocated).then("in_cycle_mib"),
        between_mib=pl.when(allocated).then("between_mib"),
        **{f"{rate}/part": part(rate) for rate in _RATES if rate != "alloc_mib_per_s"},
        **{f"{rate}/whole": whole(rate) for rate in _RATES},
        **spread,
    )


def _span_s(places: pl.DataFrame) -> float:
    """Returns the length of the longest process."""
    begin_s = pl.coalesce("begin_s", "start_s")
    spans = of_each_process(places, (pl.col("end_s").max() - begin_s.min()).alias("span"))
    return spans["span"].max() or 0.0  # type: ignore[return-value]  # a number


_ALLOCATED = "alloc_mib_per_s/part"
_OF_GC = "assist_share_of_gc_cpu/whole"
_SPENT = (*(f"{rate}/part" for rate in _RATES if rate != "alloc_mib_per_s"), _OF_GC)
"""Amounts that a span spends after the start of its cycle."""

_PASSED = (
    *("covered_s", "counted_s", "spread"),
    *(f"{rate}/whole" for rate in _RATES if f"{rate}/whole" != _OF_GC),
    *(f"{name}/{end}" for name in _SIZES for end in ("part", "whole")),
)
"""Amounts that pass from the start to the end of a span."""


def _pieces(rows: pl.DataFrame, length_s: float) -> Iterator[pl.DataFrame]:
    """Yields tables of sums by window, to be added.

    The CPU time of a cycle belongs to the time from its start to its end. Elapsed time and CPU
    capacity belong to the time since the end of the previous cycle. Allocation before the cycle
    belongs to the time from there to its start. For nearly all cycles, all three lie in one window.
    """
    begin, spends, end = pl.col("begin_s"), pl.col("spends_s"), pl.col("end_s")
    placed = rows.with_columns(
        first=(pl.min_horizontal(begin, spends) / length_s).floor().cast(pl.Int64),
        last=(end / length_s).ceil().cast(pl.Int64) - 1,
    )
    in_one = (placed["first"] == placed["last"]) & placed["begin_s"].is_not_null()
    inside, across = parted(placed, in_one.fill_null(value=False))
    in_cycle, between = pl.col("in_cycle_mib"), pl.col("between_mib")
    yield by_number(
        inside.rename({"first": "window"}),
        "window",
        pl.col(*_SPENT, *_PASSED).sum(),
        (in_cycle.sum() + between.sum()).alias(_ALLOCATED),
    )
    ranges = [
        across.select("process", pl.col(names), *allocated, from_s=from_s, to_s=to_s)
        for from_s, to_s, names, allocated in (
            (spends, end, _SPENT, [in_cycle.alias(_ALLOCATED)]),
            (begin, end, _PASSED, []),
            (begin, spends, (), [between.alias(_ALLOCATED)]),
        )
    ]
    yield divided(pl.concat(ranges, how="diagonal"), length_s)


def divided(ranges: pl.DataFrame, length_s: float) -> pl.DataFrame:
    """Divides the time ranges at the ends of the windows and returns the sums by window."""
    added = [name for name in ranges.columns if name not in ("process", "from_s", "to_s")]
    first = (pl.col("from_s") / length_s).floor().cast(pl.Int64)
    last = pl.max_horizontal(first, (pl.col("to_s") / length_s).ceil().cast(pl.Int64) - 1)
    begin = pl.max_horizontal("from_s", pl.col("window") * length_s)
    end = pl.min_horizontal("to_s", (pl.col("window") + 1) * length_s)
    share = (end - begin) / (pl.col("to_s") - pl.col("from_s"))
    weight = pl.when(pl.col("is_inside")).then(1.0).otherwise(share)
    return (
        ranges.drop_nulls(["from_s", "to_s"])
        .with_columns(window=pl.int_ranges(first, last + 1), is_inside=first == last)
        .explode("window")
        .group_by("process", "window")
        .agg((pl.col(added) * weight).sum())
    )


def _counted(sizes: pl.DataFrame, length_s: float, origin_s: float) -> pl.DataFrame:
    """Returns counts, medians and maxima of values that belong to one window each."""
    started_s, end_s = pl.col("start_s") - origin_s, pl.col("end_s") - origin_s
    ends_in = (end_s / length_s).ceil() - 1
    at = pl.coalesce((started_s / length_s).floor(), ends_in).cast(pl.Int64)
    started = pl.col("start_s").is_not_null()
    return by_number(
        sizes.with_columns(window=at),
        "window",
        started.sum().cast(pl.Float64).alias("started"),
        pl.col("pause_max_ms").max().alias("stw_max_ms"),
        *(not_null(pl.col(name).filter(started)).median() for name in _SIZES),
        pl.col("heap_peak_mib").max(),
    )


def _size(name: str) -> pl.Expr:
    """Returns a size of the heap: the mean over time, or the median of the cycles that started."""
    below = pl.col(f"{name}/whole")
    return pl.when(below > 0).then(pl.col(f"{name}/part") / below).otherwise(name).alias(name)
