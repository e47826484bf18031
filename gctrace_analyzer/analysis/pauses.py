"""Stop-the-world pauses, phase by phase."""

from __future__ import annotations

from typing import Any

import polars as pl

from gctrace_analyzer import schema

PHASES = {
    "sweep termination": "stw_sweep_term_ms",
    "mark termination": "stw_mark_term_ms",
}
BOTH = "all pauses"

_WHERE = ("process", "gc_num", "start_s", "source", "line_no")


def single_pauses(corrected: pl.DataFrame) -> pl.Series:
    """Every pause by itself, two per cycle (one up to Go 1.4), in milliseconds.

    `corrected` is `correct_durations(cycles)`.
    """
    return pl.concat([corrected[name].drop_nulls() for name in PHASES.values()])


def pauses(corrected: pl.DataFrame) -> pl.DataFrame:
    """The pauses of each phase, and of both together: `schema.PAUSES`.

    Durations are the middle of what the printed ones stand for; `total_ms` is within 1 % of
    MemStats.PauseTotalNs on most logs. `corrected` is `correct_durations(cycles)`.
    """
    rows = [
        {"phase": phase, **_spread(corrected[name].drop_nulls()), **_longest(corrected, name)}
        for phase, name in PHASES.items()
        if corrected[name].count()
    ]
    if rows:
        longest = max(rows, key=lambda row: row["max_ms"])
        both = {"phase": BOTH, **_spread(single_pauses(corrected))}
        rows.append({**longest, **both})
    return pl.DataFrame(rows, schema=schema.polars_schema("pauses"))


def worst_cycles(corrected: pl.DataFrame, most: int) -> pl.DataFrame:
    """The cycles that took most from the application, the worst first.

    Ranked by `taken_ms`: both pauses plus the assist time per processor.
    """
    assist = pl.col("assist_cpu_ms").fill_null(0) / pl.col("procs").fill_null(1)
    paused = pl.col("stw_sweep_term_ms").fill_null(0) + pl.col("stw_mark_term_ms")
    taken = corrected.select((paused + assist).alias("taken_ms")).to_series()
    # Sorted by line as well, so that equals keep an order.
    rows = taken.arg_sort(descending=True, nulls_last=True)[:most]
    return corrected[rows].with_columns(taken[rows])


def _spread(pauses_ms: pl.Series) -> dict[str, Any]:
    """How many, how long in all, percentiles."""
    quantiles = {
        f"p{round(100 * q)}_ms": pauses_ms.quantile(q, "linear") for q in (0.5, 0.9, 0.99)
    }
    return {
        "pauses": len(pauses_ms),
        "total_ms": pauses_ms.sum(),
        **quantiles,
        "max_ms": pauses_ms.max(),
    }


def _longest(corrected: pl.DataFrame, name: str) -> dict[str, Any]:
    """Where the longest pause of a phase stands."""
    row = corrected.select(_WHERE).row(corrected[name].arg_max() or 0, named=True)
    return {
        "max_process": row["process"],
        "max_gc": row["gc_num"],
        "max_start_s": row["start_s"],
        "source": row["source"],
        "line_no": row["line_no"],
    }
