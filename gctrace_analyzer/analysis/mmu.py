"""Minimum mutator utilization (MMU): the smallest share of a time window left to the program.

Pauses take all processors. Assists are printed as the CPU time of a whole cycle, so it is
assumed that they are distributed evenly over its marking.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.core import compiled, packed
from gctrace_analyzer.ingest.rows import by_process

WINDOWS_MS = (1.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0)
"""Window lengths, from the length of a pause to the timeout of a request."""

_PHASES = ("begin", "first", "mark", "second", "shared")
"""Phases of a cycle in milliseconds; `shared` is the share of marking lost to assists."""

LOSSES = ("stopped", "assisted")
"""Time lost to pauses alone, and to pauses and mark assists together."""


def mmu(corrected: pl.DataFrame) -> pl.DataFrame:
    """Returns the smallest share left to the program, by window length (`schema.MMU`).

    The worst window begins where a pause or a marking phase begins, or ends where a pause or a
    marking phase ends, so no other window has to be considered.

    Args:
        corrected: what `on_real_cpus` returns.
    """
    is_timed = pl.col("start_s").is_not_null() & pl.col("concurrent_mark_ms").is_not_null()
    timed = corrected.lazy().filter(is_timed).select("process", *_phases()).collect()
    rows = []
    for part in by_process(timed):
        if len(part) > 1:
            rows += _of_process(part)
    return pl.DataFrame(rows, schema=schema.polars_schema("mmu"), orient="row")


def _phases() -> list[pl.Expr]:
    mark = pl.col("concurrent_mark_ms")
    shared = pl.col("assist_cpu_ms").fill_null(0.0) / pl.max_horizontal(
        mark * pl.col("cpus"), pl.lit(1e-9)
    )
    return [
        (pl.col("start_s") * 1000).alias("begin"),
        pl.col("stw_sweep_term_ms").fill_null(0.0).alias("first"),
        mark.alias("mark"),
        pl.col("stw_mark_term_ms").fill_null(0.0).alias("second"),
        shared.clip(0, 1).alias("shared"),
    ]


def _of_process(cycles: pl.DataFrame) -> list[dict[str, float]]:
    process = int(cycles["process"][0])
    core = compiled()
    if core is None:
        worst = _worst(cycles)
    else:
        begin, first, mark, second, shared = packed(cycles[[*_PHASES]])
        worst = core.worst_windows((begin, first, mark, second, shared), WINDOWS_MS)
    return [
        {
            "process": process,
            "window_ms": window,
            "mmu_share": 1 - min(stopped / window, 1.0),
            "mmu_with_assists_share": 1 - min(assisted / window, 1.0),
            "start_s": start / 1000,
        }
        for window, stopped, assisted, start in worst
    ]


def _worst(cycles: pl.DataFrame) -> list[tuple[float, float, float, float]]:
    """Returns each window length with the most milliseconds lost in one.

    Lost to pauses, and to pauses and assists; then the start of the worst window with assists.
    """
    # With a running total of the time lost, the loss in a window is the difference of the
    # totals at its two ends.
    lost = _lost(_ranges(cycles))
    if lost.is_empty():
        return []
    begins, ends = _candidates(lost)
    first, last = float(begins[0]), float(ends[-1])
    until_begins, until_ends = _lost_until(lost, begins), _lost_until(lost, ends)
    rows = []
    for window in WINDOWS_MS:
        if last - window < first:
            break
        # All of these are in order, and no window begins before the first or ends after the last.
        # There is at least the window that begins with the first and the one that ends with the
        # last.
        from_begin = begins.head(begins.search_sorted(last - window, side="right"))
        to_end = (ends - window).set_sorted()
        skipped = to_end.search_sorted(first)
        to_end = to_end.slice(skipped)
        most = (
            _most_lost(lost, from_begin + window, until_begins.head(len(from_begin)), 1),
            _most_lost(lost, to_end, until_ends.slice(skipped), -1),
        )
        stopped, assisted = (max(row[name] for row in most) for name in LOSSES)
        starts = [
            times[row["at"]]
            for row, times in zip(most, (from_begin, to_end), strict=True)
            if row["assisted"] == assisted
        ]
        rows.append((window, stopped, assisted, min(starts)))
    return rows


def _candidates(lost: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
    """Returns the possible starts and ends of the worst window, in order.

    Nothing is lost faster than in a pause. So a window that begins where marking follows a pause
    is no worse than one that begins with that pause, and one that ends where a pause follows
    marking is no worse than one that ends with that pause.
    """
    at, is_pause = lost["at"], lost["stopped"] == 1.0
    ends = at + lost["length"]
    following, followed = at == ends.shift(), ends == at.shift(-1)
    if (at < ends.shift()).any():
        # If ranges overlap by a rounding error, that is not certain.
        return at, _sorted(ends)
    begins = at.filter(~(following & is_pause.shift()).fill_null(value=False))
    ends = ends.filter(~(followed & is_pause.shift(-1)).fill_null(value=False))
    return begins.set_sorted(), _sorted(ends)


def _sorted(times: pl.Series) -> pl.Series:
    """Returns the times in order; nearly always they are, and sorting is the slowest step."""
    return times.set_sorted() if times.is_sorted() else times.sort()


def _ranges(cycles: pl.DataFrame) -> pl.DataFrame:
    """Returns the time ranges in which time is lost, in order."""
    begin, first, mark, second = (pl.col(name) for name in ("begin", "first", "mark", "second"))
    whole = pl.lit(1.0)
    ranges = pl.concat(
        cycles.select(at=at, length=length, stopped=stopped, assisted=assisted)
        for at, length, stopped, assisted in (
            (begin, first, whole, whole),
            (begin + first, mark, pl.lit(0.0), pl.col("shared")),
            (begin + first + mark, second, whole, whole),
        )
    )
    # The three ranges of a cycle one after another: with that, all of them are in order.
    row = pl.int_range(3 * len(cycles))
    by_cycle = pl.select(row % 3 * len(cycles) + row // 3).to_series()
    ranges = ranges[by_cycle].filter(pl.col("length") > 0)
    return ranges if ranges["at"].is_sorted() else ranges.sort("at", maintain_order=True)


def _lost(ranges: pl.DataFrame) -> pl.DataFrame:
    """Returns the ranges with the milliseconds lost before each (`…_before`)."""
    return ranges.with_columns(
        pl.col("at").set_sorted(),
        **{
            f"{name}_before": (pl.col(name) * pl.col("length"))
            .cum_sum()
            .shift(1, fill_value=0.0)
            for name in LOSSES
        },
    )


def _lost_until(lost: pl.DataFrame, times: pl.Series) -> pl.DataFrame:
    """Returns the milliseconds lost until each of `times`, which are in order.

    Column `stopped` counts only pauses; `assisted` counts pauses and mark assists.
    """
    return _placed(lost, times).select(_until(name) for name in LOSSES)


def _most_lost(
    lost: pl.DataFrame, times: pl.Series, until: pl.DataFrame, sign: int
) -> dict[str, Any]:
    """Returns the most time lost in windows with one given end, and `at`: the other end.

    Args:
        lost: what `_lost` returns.
        times: the other end of each window.
        until: the time lost until the given end of each window.
        sign: 1 if `times` are the later ends, -1 if they are the earlier ones.
    """
    losses = {name: sign * (_until(name) - until[name]) for name in LOSSES}
    return (
        _placed(lost, times)
        .select(**losses)
        .select(pl.col(LOSSES).max(), at=pl.col("assisted").arg_max())
        .row(0, named=True)
    )


def _placed(lost: pl.DataFrame, times: pl.Series) -> pl.DataFrame:
    """Returns the last range that begins before each of `times`, which are in order."""
    at = times.set_sorted().alias("at").to_frame()
    return at.join_asof(lost.with_columns(since="at"), on="at")


def _until(name: str) -> pl.Expr:
    into = pl.min_horizontal(pl.col("at") - pl.col("since"), pl.col("length"))
    return (pl.col(f"{name}_before") + into * pl.col(name)).fill_null(0.0).alias(name)
