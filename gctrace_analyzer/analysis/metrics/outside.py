"""What grows outside the heap: goroutines, their stacks, and memory that is not Go's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

FEWEST = 8
"""Intervals. Of fewer, a quarter is a single one."""

STACKS_MIB, STACKS_TIMES = 8.0, 2.0
"""Stacks of some thousand goroutines, and twice as many of them."""

GOROUTINES, GOROUTINES_TIMES, QUARTERS = 100, 2.0, 4
"""A pool of workers or a burst of requests starts fewer, or they end again: a leak grows from
quarter to quarter of the dumps."""

FOREIGN_MIB = 64.0
"""Our heuristic: libraries that a program loads and buffers of the kernel take less."""


def growth(intervals: pl.DataFrame) -> Iterator[str]:
    """Yields a sentence on each part of the memory outside the heap that grew, and on goroutines.

    A part grew if all of the last quarter of the samples is above all of the first one.

    Args:
        intervals: what `intervals.intervals` returns.
    """
    if intervals["process"].n_unique() != 1:
        return
    numbers = growth_of_goroutines(intervals)
    if numbers is not None:
        yield (
            f"The number of goroutines grew steadily from {numbers[0]:,} to {numbers[1]:,}: "
            "compare two goroutine profiles (/debug/pprof/goroutine)."
        )
    if len(intervals) < FEWEST:
        return
    # Sys has the heap that was not returned, what is in use of it, and everything else of Go's.
    idle = pl.col("heap_sys_mib") - pl.col("heap_inuse_mib") - pl.col("heap_released_mib")
    of_go = pl.col("other_mib") + pl.col("heap_alloc_mib") + idle
    parts = intervals.select(stacks="stacks_mib", foreign=pl.col("rss_mib") - of_go)
    if numbers is None and (ends := growth_of_stacks(parts["stacks"])):
        yield (
            f"Goroutine stacks grew from {ends[0]:,.3g} to {ends[1]:,.3g} MiB: compare the number "
            "of goroutines at both ends (go_goroutines, /debug/pprof/goroutine)."
        )
    if (ends := _ends(parts["foreign"])) and _grew(ends, FOREIGN_MIB):
        yield (
            f"Resident memory that is not Go's grew by {ends[1] - ends[0]:,.0f} MiB (cgo, mmap): "
            "neither GOGC nor GOMEMLIMIT changes it."
        )


def growth_of_stacks(stacks_mib: pl.Series) -> tuple[float, float] | None:
    """Returns the stacks at the beginning and at the end; None if they did not grow by much."""
    ends = _ends(stacks_mib)
    if ends is None or not _grew(ends, max(STACKS_MIB, ends[0] * (STACKS_TIMES - 1))):
        return None
    return ends


def growth_of_goroutines(cycles: pl.DataFrame) -> tuple[int, int] | None:
    """Returns the number of goroutines at the beginning and at the end, if it grows steadily.

    Args:
        cycles: cycles, which do not have it, the points of metrics, or intervals.
    """
    if "goroutines" not in cycles.columns:
        return None
    # An interval has the number at its end.
    known = cycles["goroutines"].drop_nulls()
    if "goroutines_before" in cycles.columns:
        known = pl.concat([cycles["goroutines_before"].head(1).drop_nulls(), known])
    if len(known) < QUARTERS:
        return None
    first, last = int(known[0]), int(known[-1])
    if last - first < GOROUTINES or last < GOROUTINES_TIMES * first:
        return None
    parts = [
        known[len(known) * at // QUARTERS : len(known) * (at + 1) // QUARTERS]
        for at in range(QUARTERS)
    ]
    medians = pl.Series([part.median() for part in parts])
    return (first, last) if (medians.diff().drop_nulls() > 0).all() else None


def _ends(values: pl.Series) -> tuple[float, float] | None:
    """Returns the median of the first and the last quarter; None unless all of it is above."""
    known = values.drop_nulls()
    quarter = len(known) // QUARTERS
    if not quarter or known.head(quarter).max() >= known.tail(quarter).min():  # type: ignore[operator]
        return None
    first, last = known.head(quarter).median(), known.tail(quarter).median()
    return float(first), float(last)  # type: ignore[arg-type]  # a numeric column


def _grew(ends: tuple[float, float], least_mib: float) -> bool:
    return ends[1] - ends[0] >= least_mib
