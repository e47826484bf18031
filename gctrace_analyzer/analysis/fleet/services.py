"""The services of a fleet: their figures, ranked by the cores that they spend on GC."""

from __future__ import annotations

import polars as pl

from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.analysis.totals import quotient, total

_ENDS = ("", "_low", "_high")

STREAM = ("file", "pod", "container")
"""Columns of a stream, which has one process at a time. The pods in a file run side by side."""


def services(rows: pl.DataFrame, last: pl.DataFrame) -> pl.DataFrame:
    """Returns one row per service, those that spend the most cores on GC first.

    Args:
        rows: every process with its `service`.
        last: the last process of each `STREAM`, with the columns of `states.with_state` and the
            `setting` of its service. The savings are those of the processes it is right for.
    """
    known_s = pl.col("span_s").filter(pl.col("gc_cpu_share").is_not_null()).sum()
    shares_s = (pl.col("gc_cpu_share") * pl.col("span_s")).sum()
    counted = rows.group_by("service").agg(
        share_over_time=pl.when(known_s > 0).then(shares_s / known_s),
        files=pl.col("file").filter(pl.col("server").is_null()).n_unique(),
        processes=pl.len(),
        short=pl.col("short").sum(),
        killed=(pl.col("oom_kills") > 0).sum(),
    )
    saved = [f"saved_{what}{end}" for what in ("cores", "heap_mib") for end in _ENDS]
    is_counted = is_as_advised() | ~pl.col("advice_changes")
    now = last.group_by("service").agg(
        pl.col("live_heap_p50_mib").median(),
        pl.col("heap_peak_mib").max(),
        pl.col("stw_p99_ms").max(),
        pl.col("stw_max_ms").max(),
        pl.col("gc_per_s").mean(),
        probable_cores=pl.col("probable_cores").sum(),
        measured=pl.col("gc_cores").is_not_null().all(),
        advised=is_as_advised().sum(),
        advised_setting=setting_text(pl.col("setting").first()),
        **{name: pl.col(name).filter(is_counted).sum() for name in saved},
    )
    whole = counted.join(_gc_cpu(rows), on="service", how="left")
    # Shares of an unknown number of CPUs: their mean over time.
    whole = whole.with_columns(gc_cpu_share=pl.coalesce("gc_cpu_share", "share_over_time"))
    # If every process is measured, the rank follows the displayed figure.
    shown = pl.when("measured").then(pl.coalesce("gc_cores", "probable_cores"))
    ranked = whole.join(now, on="service", how="left").sort(
        shown.otherwise("probable_cores"), "service", descending=[True, False], nulls_last=True
    )
    return ranked.drop("probable_cores", "measured", "share_over_time")


def _gc_cpu(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the GC CPU of each service; the processes of a stream ran one after the other."""
    spans = rows.filter(pl.col("gc_cpu_s").is_not_null() & (pl.col("span_s") > 0)).select(
        "service",
        *STREAM,
        "gc_cpu_s",
        idle_cpu_s=pl.col("gc_cpu_with_idle_s") - pl.col("gc_cpu_s"),
        assist_cpu_s=pl.col("assist_share_of_gc_cpu") * pl.col("gc_cpu_s"),
        capacity_s="capacity_cpu_s",
        capacity_time_s="span_s",
    )
    by_stream = spans.group_by("service", *STREAM, maintain_order=True).agg(
        gc_cores=quotient("gc_cpu_cores"),
        gc_with_idle_cores=quotient("gc_cpu_with_idle_cores"),
        cores=quotient("cpus"),
    )
    cores = by_stream.group_by("service", maintain_order=True).agg(
        map(total, ("gc_cores", "gc_with_idle_cores", "cores"))
    )
    # A share of all CPUs, as in the total: otherwise long logs would count for more.
    cores = cores.with_columns(gc_cpu_share=pl.col("gc_cores") / pl.col("cores"))
    shares = spans.group_by("service", maintain_order=True).agg(
        assist_share_of_gc_cpu=quotient("assist_share_of_gc_cpu"),
        gc_cpu_h=pl.col("gc_cpu_s").sum() / 3600,
    )
    return cores.join(shares, on="service")


def _advised() -> pl.Expr:
    """Returns the recommended setting, in the form of `one_setting`; null if it is the present."""
    gogc = pl.col("advice_gogc").cast(pl.Int64).cast(pl.String).fill_null("off")
    setting = pl.struct(gogc.alias("gogc"), limit="advice_memory_limit_mib", most=_NONE)
    return pl.when("advice_changes").then(setting)


_NONE = pl.lit(None, pl.Float64)


def _at_least(limit: pl.Expr, most: pl.Expr = _NONE) -> pl.Expr:
    """Returns a setting that leaves GOGC as it is; with a null for the limit (MiB), it is none."""
    return pl.struct(gogc=pl.lit(None, pl.String), limit=limit, most=most)


def own_setting() -> pl.Expr:
    """Returns what the report of a process recommends, or the limit that it needs."""
    return pl.coalesce(_advised(), _at_least(pl.col("needed_limit_mib")))


def one_setting() -> pl.Expr:
    """Returns one setting for all processes of a service, which leaves room for each live heap.

    It is the most frequent recommendation, but of those with a memory limit, the one with the
    largest limit. If another process needs more, it is the limit that this process needs, and
    the range of these limits if the largest does not fit into the container of each process.

    Returns:
        `gogc` (text; null if only the limit is to be raised), `limit` (MiB), and `most` (MiB), the
        largest of the limits if they differ by process.
    """
    own, limit = _advised(), pl.when("advice_changes").then("advice_memory_limit_mib")
    needed = pl.coalesce(limit, "needed_limit_mib")
    # A process without a limit may have a larger live heap than those that need one. The limit must
    # not be tight for it either.
    times = DEFAULT.roomy_limit_times * DEFAULT.safe_limit_times
    live = pl.when(needed.is_null()).then(times * pl.col("live_heap_max_mib"))
    room, largest = pl.max_horizontal(needed, live.ceil()).max(), limit.max()
    usual = own.drop_nulls().mode(maintain_order=True).first()
    is_of_gogc = usual.struct["limit"].is_null() & (pl.col("needed_limit_mib").count() == 0)
    return (
        pl.when(usual.is_not_null() & is_of_gogc)
        .then(usual)
        .when((needed.min() < room) & (room > pl.col("container_limit_mib").min()))
        .then(_at_least(needed.min(), room))
        .when(needed.count() > 0, room > largest.fill_null(0))
        .then(_at_least(room))
        .otherwise(own.filter(limit == largest).mode(maintain_order=True).first())
    )


def setting_text(setting: pl.Expr) -> pl.Expr:
    """Returns a setting as environment variables."""
    gogc, limit, most = (setting.struct[name] for name in ("gogc", "limit", "most"))
    variable = pl.format("GOMEMLIMIT={}MiB", limit.cast(pl.Int64))
    return (
        pl.when(most.is_not_null())
        .then(pl.format("differs by process: {} to {}MiB", variable, most.cast(pl.Int64)))
        .when(gogc.is_null())
        .then(variable)
        .otherwise(pl.format("GOGC={}{}", gogc, pl.format(" {}", variable).fill_null("")))
    )


def is_as_advised() -> pl.Expr:
    """Returns whether the `setting` of the service saves what a process's own one does.

    It has the same GOGC. Its memory limit, if any, is at least as high, and saves no less GC CPU.
    """
    own, one = _advised().struct, pl.col("setting").struct
    same = own["limit"].is_null() == one["limit"].is_null()
    return ((own["gogc"] == one["gogc"]) & same).fill_null(value=False)
