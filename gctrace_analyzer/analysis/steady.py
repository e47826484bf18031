"""What of a run is evidence: one stretch of each program start, without its beginning.

A program that starts fills its caches, and its pacer has no history: figures of that time are
those of the start, not of the setting. Idle time at the end belongs to nobody. What is left is
one stretch of time, so its figures are those of the report of `--between`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.segments import OTHER_RATE
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds

if TYPE_CHECKING:
    from collections.abc import Iterator

FEWEST_CYCLES = 5
"""Fewer have no spread that could be estimated."""

LEVEL_SHARE = 0.10
"""The live heap has settled when it is this near to what it is in the second half."""

LEVEL_MIB = 2.0
"""Two whole MiB of a small heap are rounding and floating garbage."""

MOST_START_SHARE = 1 / 3
"""A start that takes more of the run than this is no start, but a phase of the load."""

_SMOOTHED_CYCLES = 3
"""A median of three takes out single cycles and delays nothing."""


@dataclass(frozen=True, slots=True)
class Steady:
    """The cycles of a program start that count, and what was left out.

    `cycles` are as printed; `left_out_s` is the time before them; `drift_share` is how much
    the live heap grew from their first to their last quarter.
    """

    process: int
    cycles: pl.DataFrame
    from_s: float | None
    left_out_s: float
    drift_share: float | None


def steady(
    cycles: pl.DataFrame, segments: pl.DataFrame, thresholds: Thresholds = DEFAULT
) -> Iterator[Steady]:
    """The steady stretch of each program start, as far as it has one.

    Args:
        cycles: `schema.CYCLES`.
        segments: `schema.SEGMENTS` of them.
        thresholds: where warm-up ends.
    """
    for part in cycles.partition_by("process", maintain_order=True):
        number = int(part["process"][0])
        if not part["start_s"].count():
            # Up to Go 1.4 there is no time: nothing tells the start from the rest.
            yield Steady(number, part, None, 0.0, _drift(part))
            continue
        mine = segments.filter(process=number)
        kept = _kept(part, mine, thresholds)
        if len(kept):
            begin = float(kept["start_s"][0])
            first = 0.0 if part["gc_num"][0] == 1 else float(part["start_s"].drop_nulls()[0])
            yield Steady(number, kept, begin, begin - first, _drift(kept))


def _kept(cycles: pl.DataFrame, segments: pl.DataFrame, t: Thresholds) -> pl.DataFrame:
    late = cycles.filter(pl.col("start_s") >= t.warm_up_s)
    busy = segments.filter(pl.col("kind") == "load")
    if len(busy):
        late = late.filter(pl.col("start_s") <= busy["end_s"].max())
    if late.is_empty():
        return late
    begin = max(_level_from(late), _phase_from(busy))
    kept = late.filter(pl.col("start_s") >= begin)
    return kept if len(kept) >= FEWEST_CYCLES else late


def _level_from(cycles: pl.DataFrame) -> float:
    """When the live heap first is where it is in the second half; 0 if it never settles."""
    begin, end = float(cycles["start_s"][0]), float(cycles["start_s"][-1])
    half = cycles.filter(pl.col("start_s") >= (begin + end) / 2)["heap_live_mib"].median()
    if half is None:
        return 0.0
    level = float(half)  # type: ignore[arg-type]  # a numeric column
    live = pl.col("heap_live_mib").cast(pl.Float64)
    smooth = live.rolling_median(_SMOOTHED_CYCLES, min_samples=1)
    near = (smooth - level).abs() <= max(LEVEL_SHARE * level, LEVEL_MIB)
    there = cycles.filter(near)
    first = float(there["start_s"][0]) if len(there) else end
    return first if first - begin <= MOST_START_SHARE * (end - begin) else 0.0


def _phase_from(busy: pl.DataFrame) -> float:
    """When the first phase of the load ends, if none like it comes again; else 0."""
    if len(busy) < 2:
        return 0.0
    first, rest = busy.row(0, named=True), busy[1:]
    rate = first["alloc_mib_per_s"]
    if not rate:
        return 0.0
    ratio = (rest["alloc_mib_per_s"] / rate).drop_nulls()
    comes_again = ratio.is_between(1 / OTHER_RATE, OTHER_RATE).any()
    whole = busy["end_s"][-1] - first["start_s"]
    if comes_again or first["end_s"] - first["start_s"] > MOST_START_SHARE * whole:
        return 0.0
    return float(rest["start_s"][0])


def _drift(cycles: pl.DataFrame) -> float | None:
    """Growth of the live heap from the first to the last quarter, as a share."""
    quarter = len(cycles) // 4
    if quarter < 1:
        return None
    live = cycles["heap_live_mib"].cast(pl.Float64)
    first, last = live.head(quarter).median(), live.tail(quarter).median()
    if not first or last is None:
        return None
    return float(last) / float(first) - 1  # type: ignore[arg-type]  # numeric columns
