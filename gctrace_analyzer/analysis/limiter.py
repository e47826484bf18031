"""A lower bound of how full the bucket of the runtime's GC CPU limiter is.

The bucket holds one CPU second per processor. GC fills it, the program drains it, and when it
is full, the runtime stops mark assists. The log shows neither how long processors were idle nor
what scavenging cost; both would only fill the bucket more. So a log can prove that the limiter
was active, but never that it was not.

Source: gcCPULimiterState in runtime/mgclimit.go (Go 1.19 and later).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl

from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds

if TYPE_CHECKING:
    from collections.abc import Sequence

Verdict = Literal["certain", "likely", "unlikely"]

_BACKGROUND = 0.25
"""gcBackgroundUtilization: the share of the processors that the limiter counts as used by
marking, whatever the workers really took."""


def fills(corrected: pl.DataFrame) -> pl.Series:
    """Returns how full the bucket is at the end of each cycle (0–1); null where unknown.

    Args:
        corrected: what `correct_durations` returns.
    """
    procs = pl.col("procs")
    mark_s = pl.col("concurrent_mark_ms") / 1000
    assist_s, idle_s = pl.col("assist_cpu_ms") / 1000, pl.col("idle_cpu_ms") / 1000
    pause_s = [pl.col(f"stw_{name}_ms") / 1000 for name in ("sweep_term", "mark_term")]
    gap_s = pl.col("start_s") - (pl.col("end_s") - pl.col("elapsed_s"))
    cycles = corrected.with_row_index("row").select(
        "row",
        "process",
        "procs",
        step=pl.concat_list(
            -gap_s.clip(0) * procs,
            pause_s[0] * procs,
            2 * assist_s + idle_s - (1 - 2 * _BACKGROUND) * mark_s * procs,
            pause_s[1] * procs,
        ),
    )
    steps = cycles.explode("step").with_columns(pl.col("step").fill_null(0.0))
    total = pl.col("step").cum_sum().over("process")
    steps = steps.with_columns(total=total).with_columns(
        fill=pl.col("total")
        - pl.min_horizontal(pl.col("total").cum_min().over("process"), pl.lit(0.0))
    )
    capacity = pl.col("procs").cast(pl.Float64)
    if steps.select((pl.col("fill") > capacity).any()).item():
        # A full bucket cannot get fuller, so the steps have to be added one by one.
        parts = [
            part.with_columns(
                pl.Series("fill", _capped(part["step"].to_list(), part["procs"].to_list()))
            )
            for part in steps.partition_by("process", maintain_order=True)
        ]
        steps = pl.concat(parts).sort("row", maintain_order=True)
    ends = steps.group_by("row", maintain_order=True).agg(
        pl.col("fill").last(), pl.col("procs").first()
    )
    known = corrected["assist_cpu_ms"].is_not_null() & corrected["stacks_mib"].is_not_null()
    share = ends.select(pl.when(pl.col("procs") > 0).then(pl.col("fill") / pl.col("procs")))
    return pl.select(pl.when(known).then(share.to_series())).to_series().alias("limiter_fill")


def _capped(steps: Sequence[float], procs: Sequence[int | None]) -> list[float]:
    """Returns the fill after each step, never below 0 or above the number of processors."""
    fills, fill = [], 0.0
    for step, capacity in zip(steps, procs, strict=True):
        fill = min(max(fill + step, 0.0), float(capacity or 0))
        fills.append(fill)
    return fills


def verdict(fill_max: float | None, thresholds: Thresholds = DEFAULT) -> Verdict:
    """Returns whether the limiter was active: `certain`, `likely` or `unlikely`."""
    if fill_max is not None and fill_max >= 1 - 1e-9:
        return "certain"
    likely = fill_max is not None and fill_max >= thresholds.limiter_likely
    return "likely" if likely else "unlikely"
