"""The figures of windows of equal length, from intervals."""

from __future__ import annotations

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis import windows as windows_of


def windows(intervals: pl.DataFrame, length_s: float, *, origin_s: float = 0.0) -> pl.DataFrame:
    """Returns the figures of windows of `length_s` (`schema.WINDOWS`).

    What happened in an interval is spread evenly over it, so windows shorter than the time
    between two dumps show nothing new.

    Args:
        intervals: what `intervals.intervals` returns.
        length_s: the length of a window.
        origin_s: where the first window begins.

    Raises:
        BadSettingError: `length_s` is not above 0, or would make more than a million windows.
    """
    if not intervals.width or intervals.is_empty():
        return schema.empty("windows")
    span = float(intervals["end_s"].max() or 0.0) - origin_s  # type: ignore[arg-type]
    windows_of.check_length(length_s, span, f"the {span:g} s of the input")
    length, share = pl.col("length_s"), pl.col("gc_cpu_share")
    known = share.is_not_null()
    base = pl.col("gc_cpu_base")
    ranges = intervals.select(
        "process",
        from_s=pl.col("begin_s") - origin_s,
        to_s=pl.col("end_s") - origin_s,
        covered_s=length,
        counted_s=pl.when(pl.col("gc_cycles").is_not_null()).then(length).otherwise(0.0),
        cycles=pl.col("gc_cycles").cast(pl.Float64).fill_null(0),
        gc=pl.when(known).then(share * base).otherwise(0.0),
        gc_base=pl.when(known).then(base).otherwise(0.0),
        idle=pl.when(known).then(pl.col("idle_cpu_s").fill_null(0)).otherwise(0.0),
        idle_known=pl.when(pl.col("idle_cpu_s").is_not_null() & known)
        .then(base)
        .otherwise(0.0),
        assist=pl.col("assist_cpu_s").fill_null(0),
        gc_of_assist=pl.when(pl.col("assist_cpu_s").is_not_null())
        .then("gc_cpu_s")
        .fill_null(0),
        stw=pl.col("stw_total_ms").fill_null(0) / 1000,
        stw_s=pl.when(pl.col("stw_total_ms").is_not_null()).then(length).otherwise(0.0),
        alloc=pl.col("alloc_mib").fill_null(0),
        alloc_s=pl.when(pl.col("alloc_mib").is_not_null()).then(length).otherwise(0.0),
        **{
            f"{name}{end}": value
            for name in ("heap_live_mib", "heap_goal_mib")
            for end, value in (
                ("", pl.col(name).fill_null(0) * length),
                ("_s", pl.when(pl.col(name).is_not_null()).then(length).otherwise(0.0)),
            )
        },
    )
    pieces = windows_of.divided(ranges, length_s)
    sums = pieces.group_by("process", "window").agg(pl.exclude("process", "window").sum())
    ended = (((pl.col("end_s") - origin_s) / length_s).ceil().cast(pl.Int64) - 1).alias(
        "window"
    )
    maxima = intervals.group_by("process", ended).agg(
        pl.col("stw_max_ms").max(), heap_peak_mib=pl.col("heap_alloc_mib").max()
    )
    figures = sums.filter(pl.col("covered_s") > 0).join(
        maxima, on=["process", "window"], how="left"
    )

    def over(part: str, whole: str) -> pl.Expr:
        return pl.when(pl.col(whole) > 0).then(pl.col(part) / pl.col(whole))

    zeros = intervals.group_by("process").agg(zero=windows_of.zero("begin_at", "begin_s"))
    return windows_of.placed(
        figures.with_columns(
            gc_per_s=over("cycles", "counted_s"),
            gc_cpu_share=over("gc", "gc_base"),
            gc_cpu_with_idle_share=pl.when(pl.col("idle_known") > 0).then(
                (pl.col("gc") + pl.col("idle")) / pl.col("gc_base")
            ),
            gc_active_share=pl.lit(None, pl.Float64),
            assist_share_of_gc_cpu=over("assist", "gc_of_assist"),
            stw_share=over("stw", "stw_s"),
            alloc_mib_per_s=over("alloc", "alloc_s"),
            heap_live_mib=over("heap_live_mib", "heap_live_mib_s"),
            heap_goal_mib=over("heap_goal_mib", "heap_goal_mib_s"),
            cycles=pl.col("cycles").round().cast(pl.Int64),
        ),
        zeros,
        length_s,
        origin_s,
    )
