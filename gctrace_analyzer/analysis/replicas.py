"""Replicas of one service, and which of them are unlike the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.thresholds import Thresholds

OUTLYING = {
    "gc_cpu_share": "GC CPU", "live_heap_p50_mib": "live heap", "alloc_mib_per_s": "allocation",
    "stw_p99_ms": "pauses p99", "gc_per_s": "cycles/s",
}  # fmt: skip
"""Figures in which replicas of one service are compared, and what people call them."""


def outliers(last: pl.DataFrame, t: Thresholds) -> pl.DataFrame:
    """One row per replica and figure that is far from what is usual in its service."""
    judged = last.filter(~pl.col("short"))
    found = [_far(judged, name, t) for name in OUTLYING]
    return pl.concat(found).sort(pl.col("z").abs(), descending=True)


def _far(judged: pl.DataFrame, name: str, t: Thresholds) -> pl.DataFrame:
    value = pl.col(name)
    whole = (
        judged.filter(value.is_not_null())
        .with_columns(usual=value.median().over("service"), replicas=pl.len().over("service"))
        .with_columns(mad=(value - pl.col("usual")).abs().median().over("service"))
    )
    # 0.6745: the MAD of a normal distribution with standard deviation 1.
    least = t.fleet_mad_floor * pl.col("usual").abs()
    z = 0.6745 * (value - pl.col("usual")) / pl.max_horizontal("mad", least)
    return (
        whole.with_columns(z=z)
        .filter(
            (pl.col("replicas") >= t.fleet_min_replicas)
            & (pl.col("z").abs() > t.fleet_outlier_z)
            & pl.col("z").is_finite()
        )
        .select(
            "service", "file", "process", pl.lit(name).alias("figure"),
            value.cast(pl.Float64).alias("value"), pl.col("usual").cast(pl.Float64), "z",
            pl.col("replicas").cast(pl.Int64),
        )
    )  # fmt: skip
