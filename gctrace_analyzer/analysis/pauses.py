"""Stop-the-world pauses, phase by phase."""

from __future__ import annotations

import polars as pl

from gctrace_analyzer import schema

PHASES = {
    "sweep termination": "stw_sweep_term_ms",
    "mark termination": "stw_mark_term_ms",
}
BOTH = "all pauses"


def single_pauses(likely: pl.DataFrame) -> pl.DataFrame:
    """Each pause as a row: `phase pause_ms` and where its cycle stands.

    Two per cycle (one up to Go 1.4). `likely` is `precision.with_likely(cycles)`.
    """
    where = ["process", "gc_num", "start_s", "source", "line_no"]
    return pl.concat(
        likely.select(pl.lit(phase).alias("phase"), pl.col(name).alias("pause_ms"), *where)
        for phase, name in PHASES.items()
    ).drop_nulls("pause_ms")


def pauses(likely: pl.DataFrame) -> pl.DataFrame:
    """The pauses of each phase, and of both together: `schema.PAUSES`.

    Durations are the middle of what the printed ones stand for; `total_ms` is within 1 % of
    MemStats.PauseTotalNs on most logs.
    """
    each = single_pauses(likely)
    both = each.with_columns(pl.lit(BOTH).alias("phase"))
    worst = pl.col("pause_ms").arg_max()
    pause = pl.col("pause_ms")
    table = (
        pl.concat([each, both])
        .group_by("phase", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("pauses"),
            pause.sum().alias("total_ms"),
            *(
                pause.quantile(q, "linear").alias(f"p{round(100 * q)}_ms")
                for q in (0.5, 0.9, 0.99)
            ),
            pause.max().alias("max_ms"),
            pl.col("process").get(worst).alias("max_process"),
            pl.col("gc_num").get(worst).alias("max_gc"),
            pl.col("start_s").get(worst).alias("max_start_s"),
            pl.col("source").get(worst),
            pl.col("line_no").get(worst),
        )
    )
    return table.select(schema.names("pauses"))


def worst_cycles(likely: pl.DataFrame, most: int) -> pl.DataFrame:
    """The cycles that took most from the application, the worst first.

    Ranked by `taken_ms`: both pauses plus the assist time per processor.
    """
    assist = pl.col("assist_cpu_ms").fill_null(0) / pl.col("procs").fill_null(1)
    paused = pl.col("stw_sweep_term_ms").fill_null(0) + pl.col("stw_mark_term_ms")
    return likely.with_columns((paused + assist).alias("taken_ms")).top_k(most, by="taken_ms")
