"""The log's self-check: GC CPU reconstructed line by line against the printed percentage."""

from __future__ import annotations

import polars as pl

from gctrace_analyzer.analysis.cycles import gc_cpu_ms

FIRST_S = 0.1
"""Earlier, the millisecond of `@` moves the percentage by a point."""


def log_check_points(corrected: pl.DataFrame) -> float | None:
    """Reconstructed less printed GC CPU percentage, in points, where it is farthest off.

    The printed one is cumulative and cut to a whole number, so 0 to 1 is agreement; that much
    is taken off, and 0 means that the log agrees with itself. From Go 1.23 on the runtime
    charges the stopping part of a pause as the CPU really lost, so there the truth lies between
    no pause at all and the pause on every processor. A log that starts later than cycle 1 takes
    its first printed percentage as given. Lines lost and programs mixed up show here. None
    where nothing can be compared.

    `corrected` is `correct_durations(cycles)`.
    """
    pauses = pl.col("stw_sweep_term_cpu_ms") + pl.col("stw_mark_term_cpu_ms")
    newer = pl.col("stacks_mib").is_not_null()
    rows = corrected.select(
        "process",
        "end_s",
        pl.col("gc_cpu_since_start_pct").cast(pl.Float64).alias("printed"),
        (pl.col("gc_num").first().over("process") == 1).alias("whole"),
        _since_start(gc_cpu_ms() / 1000).alias("most_s"),
        _since_start((gc_cpu_ms() - pl.when(newer).then(pauses).otherwise(0)) / 1000).alias(
            "least_s"
        ),
        _since_start(pl.col("elapsed_s") * pl.col("procs")).alias("capacity_s"),
        (pl.col("procs") * pl.col("start_s")).first().over("process").alias("before_s"),
        pl.col("gc_cpu_since_start_pct").first().over("process").alias("first_printed"),
    ).filter(pl.col("end_s") >= FIRST_S)
    # A log cut at its head: what was before is known to half a point of that time.
    before_s = pl.when("whole").then(0.0).otherwise("before_s")
    total_s = before_s + pl.col("capacity_s")
    earlier_s = before_s * (pl.col("first_printed") + 0.5) / 100
    most = 100 * (earlier_s + pl.col("most_s")) / total_s + 50 * before_s / total_s
    least = 100 * (earlier_s + pl.col("least_s")) / total_s - 50 * before_s / total_s
    printed = pl.col("printed")
    off = (
        pl.when(least > printed + 1).then(least - printed - 1)
        .when(most < printed).then(most - printed)
        .otherwise(pl.when(printed.is_not_null() & most.is_not_null()).then(0.0))
    )  # fmt: skip
    values = rows.select(off.alias("off")).to_series().drop_nulls()
    values = values.filter(values.is_finite())
    if values.is_empty():
        return None
    worst: float = values.gather(values.abs().arg_sort(descending=True).head(1)).item()
    return worst


def _since_start(values: pl.Expr) -> pl.Expr:
    return values.fill_null(0).cum_sum().over("process")
