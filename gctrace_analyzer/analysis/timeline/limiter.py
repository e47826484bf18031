"""A lower bound of the fill of the runtime's GC CPU limiter's bucket.

The bucket holds one CPU second per processor. GC fills it, the program drains it, and when it
is full, the runtime stops mark assists. The log shows neither how long processors were idle nor
what scavenging cost; both would only fill the bucket more. So a log can prove that the limiter
was active, but never that it was not.

Source: gcCPULimiterState in runtime/mgclimit.go (Go 1.19 and later).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

import polars as pl

from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.ingest.rows import column_of, within_process

if TYPE_CHECKING:
    from gctrace_analyzer.ingest.rows import Within

Verdict = Literal["certain", "likely", "unlikely"]

IN_WORDS = {
    "certain": ", and the runtime's CPU limiter was active.",
    "likely": ", and the runtime's CPU limiter was probably active.",
    "unlikely": ".",
}
"""How each verdict ends a sentence."""

_STEPS = ("gap", "first_pause", "mark", "second_pause")

BACKGROUND_SHARE = 0.25
"""gcBackgroundUtilization: the limiter counts this share of the processors as used by marking,
whatever the workers really used."""


def fills(corrected: pl.DataFrame) -> pl.Series:
    """Returns how full the bucket is at the end of each cycle (0–1); null where unknown.

    Args:
        corrected: what `correct_durations` returns.
    """
    steps = corrected.select(_steps())
    if not steps["known"].any():
        # Up to Go 1.17 there was no limiter.
        return pl.repeat(None, len(steps), dtype=pl.Float64, eager=True).alias("limiter_fill")
    filled = _unbounded(steps)
    if (filled["most"] > column_of(steps, "procs")).any():
        filled = steps.with_columns(fill=_bounded(steps)).select(_share())
    return filled["limiter_fill"]


@cache
def _share() -> pl.Expr:
    """Returns how full the bucket is, from its `fill` in CPU seconds."""
    share = pl.col("fill") / pl.col("procs")
    is_known = pl.col("known") & (pl.col("procs") > 0)
    return pl.when(is_known).then(share).alias("limiter_fill")


@cache
def _steps() -> list[pl.Expr]:
    """Returns what fills or drains the bucket, in CPU seconds, and whether it is known.

    From one cycle to the next the bucket drains; pauses fill it, and marking may do either.
    """
    procs = pl.col("procs")
    mark_s = pl.col("concurrent_mark_ms") / 1000
    assist_s, idle_s = pl.col("assist_cpu_ms") / 1000, pl.col("idle_cpu_ms") / 1000
    pause_s = [pl.col(f"stw_{name}_ms") / 1000 for name in ("sweep_term", "mark_term")]
    gap_s = pl.col("start_s") - (pl.col("end_s") - pl.col("elapsed_s"))
    steps = {
        "gap": -gap_s.clip(0) * procs,
        "first_pause": pause_s[0] * procs,
        "mark": 2 * assist_s + idle_s - (1 - 2 * BACKGROUND_SHARE) * mark_s * procs,
        "second_pause": pause_s[1] * procs,
    }
    known = pl.col("assist_cpu_ms").is_not_null() & pl.col("stacks_mib").is_not_null()
    filled = (step.fill_null(0.0).alias(name) for name, step in steps.items())
    return [pl.col("process"), procs, known.alias("known"), *filled]


def _unbounded(steps: pl.DataFrame) -> pl.DataFrame:
    """Returns `limiter_fill`, and the `most` within each cycle in CPU seconds.

    Here the bucket is never less than empty, but may be more than full: its fill is the sum of
    all steps minus the lowest sum so far.
    """
    end, lowest, fills = _fills_of_sums(within_process(steps))
    sums = steps.with_columns(end).with_columns(lowest).with_columns(fills)
    return sums.select("most", _share())


@cache
def _fills_of_sums(within: Within) -> tuple[pl.Expr, pl.Expr, list[pl.Expr]]:
    """Returns the sum at the end of each cycle, the lowest so far, and `fill` and `most`."""
    gap, first, mark, second = (pl.col(name) for name in _STEPS)
    end, lowest = pl.col("end"), pl.col("lowest")
    marked = end - second
    paused = marked - mark
    drained = paused - first
    before = within(lowest.shift()).fill_null(0.0)
    fill = end - lowest
    most = pl.max_horizontal(fill, paused - pl.min_horizontal(drained, before))
    return (
        within((gap + first + mark + second).cum_sum()).alias("end"),
        within(pl.min_horizontal(drained, marked, pl.lit(0.0)).cum_min()).alias("lowest"),
        [fill.alias("fill"), most.alias("most")],
    )


def _bounded(steps: pl.DataFrame) -> pl.Series:
    """Returns the fill at the end of each cycle if the bucket cannot be more than full either.

    Together, the steps of a cycle are one function of the fill before it: they add a sum, and keep
    the result between two bounds. These functions have to be applied one by one.
    """
    full = pl.col("procs").fill_null(0).cast(pl.Float64)
    added, low, high = pl.lit(0.0), pl.lit(0.0), full
    for name in _STEPS:
        step = pl.col(name)
        added, low, high = (
            added + step,
            (low + step).clip(0.0, full),
            (high + step).clip(0.0, full),
        )
    functions = steps.select("process", added=added, low=low, high=high).with_row_index("row")
    parts = [
        part.select("row", fill=pl.Series(_applied(part.select("added", "low", "high"))))
        for part in functions.partition_by("process", maintain_order=True)
    ]
    return pl.concat(parts).sort("row")["fill"]


def _applied(functions: pl.DataFrame) -> list[float]:
    fills, fill = [], 0.0
    for added, low, high in functions.iter_rows():
        fill = min(max(fill + added, low), high)
        fills.append(fill)
    return fills


def verdict(fill_max: float | None, thresholds: Thresholds = DEFAULT) -> Verdict:
    """Returns whether the limiter was active: `certain`, `likely` or `unlikely`."""
    if fill_max is not None and fill_max >= 1 - 1e-9:
        return "certain"
    likely = fill_max is not None and fill_max >= thresholds.limiter_likely
    return "likely" if likely else "unlikely"
