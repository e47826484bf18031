"""The GC CPU limiter's bucket, as far as a log lets it be followed: a lower bound.

Source: gcCPULimiterState in runtime/mgclimit.go (Go 1.19 and later). The bucket holds one CPU
second per processor; GC fills it, the program drains it, and when it is full assists stop.
The log does not tell how long processors were idle nor what scavenging cost; both would only
fill it more. So a log can show that the limiter was on, never that it was off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

LIKELY_FILL = 0.6
"""Two of three measured runs with the limiter on reached 0.68 and 0.84 by this bound."""

_BACKGROUND = 0.25
"""gcBackgroundUtilization: what marking counts for, whatever the workers really took."""


def fills(likely: pl.DataFrame) -> pl.Series:
    """The bucket at each cycle's end as a share of its capacity; null where it cannot be told.

    `corrected` is `correct_durations(cycles)`, sorted as `cycles` is.
    """
    procs = pl.col("procs")
    mark_s = pl.col("concurrent_mark_ms") / 1000
    assist_s, idle_s = pl.col("assist_cpu_ms") / 1000, pl.col("idle_cpu_ms") / 1000
    pause_s = [pl.col(f"stw_{name}_ms") / 1000 for name in ("sweep_term", "mark_term")]
    gap_s = pl.col("start_s") - (pl.col("end_s") - pl.col("elapsed_s"))
    steps = likely.with_row_index("row").select(
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
    each = steps.explode("step").with_columns(pl.col("step").fill_null(0.0))
    total = pl.col("step").cum_sum().over("process")
    each = each.with_columns(total=total).with_columns(
        fill=pl.col("total")
        - pl.min_horizontal(pl.col("total").cum_min().over("process"), pl.lit(0.0))
    )
    capacity = pl.col("procs").cast(pl.Float64)
    if each.select((pl.col("fill") > capacity).any()).item():
        # Once full it cannot be fuller: only then the steps must be taken one by one.
        parts = [
            part.with_columns(
                pl.Series("fill", _capped(part["step"].to_list(), part["procs"].to_list()))
            )
            for part in each.partition_by("process", maintain_order=True)
        ]
        each = pl.concat(parts).sort("row", maintain_order=True)
    ends = each.group_by("row", maintain_order=True).agg(
        pl.col("fill").last(), pl.col("procs").first()
    )
    known = likely["assist_cpu_ms"].is_not_null() & likely["stacks_mib"].is_not_null()
    share = ends.select(pl.when(pl.col("procs") > 0).then(pl.col("fill") / pl.col("procs")))
    return pl.select(pl.when(known).then(share.to_series())).to_series().alias("limiter_fill")


def _capped(steps: Sequence[float], procs: Sequence[int | None]) -> list[float]:
    found, fill = [], 0.0
    for step, capacity in zip(steps, procs, strict=True):
        fill = min(max(fill + step, 0.0), float(capacity or 0))
        found.append(fill)
    return found


def verdict(fill_max: float | None) -> str:
    """`certain`, `corrected` or `unlikely`; never off."""
    if fill_max is not None and fill_max >= 1 - 1e-9:
        return "certain"
    return "likely" if fill_max is not None and fill_max >= LIKELY_FILL else "unlikely"
