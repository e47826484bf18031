"""Growth outside the heap: goroutines and their stacks."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

FEWEST = 8
"""Intervals. With fewer, a quarter has only one."""

STACKS_MIB, STACKS_TIMES = 8.0, 2.0
"""MiB of stacks that some thousand goroutines need, and the growth factor that counts."""

GOROUTINES, GOROUTINES_TIMES, QUARTERS = 100, 2.0, 4
"""Least growth of goroutines, as a number and a factor, over this many parts of the log. A pool of
workers or a burst of requests starts fewer, or they end again: a leak grows from quarter to
quarter."""


GREW = "The number of goroutines grew steadily"
_COMPARE = "compare two goroutine profiles (/debug/pprof/goroutine)."


def growth(intervals: pl.DataFrame) -> Iterator[str]:
    """Yields a sentence on goroutines, or else on their stacks, if they grew.

    Stacks grew if all of the last quarter of the samples is above all of the first one.

    Args:
        intervals: what `intervals.intervals` returns.
    """
    if intervals["process"].n_unique() != 1:
        return
    numbers = growth_of_goroutines(intervals)
    if numbers is not None:
        yield f"{GREW} from {numbers[0]:,} to {numbers[1]:,}: {_COMPARE}"
    if len(intervals) < FEWEST:
        return
    if numbers is None and (ends := growth_of_stacks(intervals["stacks_mib"])):
        yield (
            f"Goroutine stacks grew from {ends[0]:,.3g} to {ends[1]:,.3g} MiB: compare the number "
            "of goroutines at both ends (go_goroutines, /debug/pprof/goroutine)."
        )


def growth_of_stacks(stacks_mib: pl.Series) -> tuple[float, float] | None:
    """Returns the first and the last size of the stacks; None if they hardly grew."""
    ends = _ends(stacks_mib)
    if ends is None or ends[1] - ends[0] < max(STACKS_MIB, ends[0] * (STACKS_TIMES - 1)):
        return None
    known = stacks_mib.drop_nulls()
    return float(known[0]), float(known[-1])


def growth_of_goroutines(cycles: pl.DataFrame) -> tuple[int, int] | None:
    """Returns the number of goroutines at the beginning and at the end, if it grows steadily.

    Args:
        cycles: points of metrics or intervals; cycles have no number of goroutines.
    """
    if "goroutines" not in cycles.columns:
        return None
    # An interval has the number at its end.
    known = cycles["goroutines"].drop_nulls()
    if "goroutines_before" in cycles.columns:
        known = pl.concat([cycles["goroutines_before"].head(1).drop_nulls(), known])
    if (several := min(len(known), QUARTERS)) < QUARTERS - 1:
        return None
    first, last = int(known[0]), int(known[-1])
    if last - first < GOROUTINES or last < GOROUTINES_TIMES * first:
        return None
    parts = [
        known[len(known) * at // several : len(known) * (at + 1) // several]
        for at in range(several)
    ]
    medians = pl.Series([part.median() for part in parts])
    return (first, last) if (medians.diff().drop_nulls() > 0).all() else None


def _ends(values: pl.Series) -> tuple[float, float] | None:
    """Returns the medians of the first and the last quarter, if the whole last one is above."""
    known = values.drop_nulls()
    quarter = len(known) // QUARTERS
    if not quarter or known.head(quarter).max() >= known.tail(quarter).min():  # type: ignore[operator]
        return None
    first, last = known.head(quarter).median(), known.tail(quarter).median()
    return float(first), float(last)  # type: ignore[arg-type]  # a numeric column
