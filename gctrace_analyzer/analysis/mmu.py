"""Minimum mutator utilization (MMU): the smallest share of a time window left to the program.

Pauses take all processors. Assists are printed as the CPU time of a whole cycle, so it is
assumed that they are distributed evenly over its marking.
"""

from __future__ import annotations

import polars as pl

from gctrace_analyzer import schema

WINDOWS_MS = (1.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0)
"""Window lengths, from a pause to the timeout of a request."""


def mmu(corrected: pl.DataFrame) -> pl.DataFrame:
    """Returns the smallest share left to the program, by window length (`schema.MMU`).

    The worst window begins where a pause or a marking phase begins, or ends where a pause or a
    marking phase ends, so no other window has to be considered.

    Args:
        corrected: what `on_real_cpus` returns.
    """
    rows = []
    for part in corrected.partition_by("process", maintain_order=True):
        timed = part.filter(
            pl.col("start_s").is_not_null() & pl.col("concurrent_mark_ms").is_not_null()
        )
        if len(timed) > 1:
            rows += _of_process(timed)
    return pl.DataFrame(rows, schema=schema.polars_schema("mmu"), orient="row")


def _of_process(cycles: pl.DataFrame) -> list[dict[str, float]]:
    begin = pl.col("start_s") * 1000
    first, second = (
        pl.col("stw_sweep_term_ms").fill_null(0.0),
        pl.col("stw_mark_term_ms").fill_null(0.0),
    )
    mark = pl.col("concurrent_mark_ms")
    shared = pl.col("assist_cpu_ms").fill_null(0.0) / pl.max_horizontal(
        mark * pl.col("cpus"), pl.lit(1e-9)
    )
    whole = pl.lit(1.0)
    pieces = (
        (begin, first, whole, whole),
        (begin + first, mark, pl.lit(0.0), shared.clip(0, 1)),
        (begin + first + mark, second, whole, whole),
    )
    ranges = pl.concat(
        cycles.select(at=at, length=length, stopped=stopped, assisted=assisted)
        for at, length, stopped, assisted in pieces
    )
    ranges = ranges.filter(pl.col("length") > 0).sort("at")
    ends = ranges.select(at=pl.col("at") + pl.col("length"))
    # With a running total of the time lost, the loss in a window is the difference of the
    # totals at its two ends.
    boundaries = pl.concat([ranges.select("at"), ends]).unique().sort("at")
    lost = _lost(ranges)
    span = float(boundaries["at"][-1] - boundaries["at"][0])
    process = int(cycles["process"][0])
    rows = []
    for window in WINDOWS_MS:
        if window > span:
            break
        starts = pl.concat([ranges["at"], (ends["at"] - window)]).unique().sort()
        inside = starts.filter(
            (starts >= boundaries["at"][0]) & (starts <= boundaries["at"][-1] - window)
        )
        if inside.is_empty():
            continue
        used = _lost_until(lost, inside + window) - _lost_until(lost, inside)
        worst = int(used["assisted"].arg_max() or 0)
        rows.append(
            {
                "process": process,
                "window_ms": window,
                "mmu_share": 1 - min(_maximum(used["stopped"]) / window, 1.0),
                "mmu_with_assists_share": 1 - min(_maximum(used["assisted"]) / window, 1.0),
                "start_s": float(inside[worst]) / 1000,
            }
        )
    return rows


def _maximum(values: pl.Series) -> float:
    return float(values.max() or 0)  # type: ignore[arg-type]  # a numeric column


def _lost(ranges: pl.DataFrame) -> pl.DataFrame:
    """Returns the ranges with the milliseconds lost before each of them (`…_before`)."""
    return ranges.with_columns(
        **{
            f"{name}_before": (pl.col(name) * pl.col("length"))
            .cum_sum()
            .shift(1, fill_value=0.0)
            for name in ("stopped", "assisted")
        }
    )


def _lost_until(lost: pl.DataFrame, times: pl.Series) -> pl.DataFrame:
    """Returns the milliseconds lost from the first range to each of `times`, which are in order.

    Column `stopped` counts only pauses, `assisted` pauses and mark assists.
    """
    joined = times.to_frame("at").join_asof(lost.with_columns(since="at"), on="at")
    into = pl.min_horizontal(pl.col("at") - pl.col("since"), pl.col("length"))
    return joined.select(
        (pl.col(f"{name}_before") + into * pl.col(name)).fill_null(0.0).alias(name)
        for name in ("stopped", "assisted")
    )
