"""The level of the live heap at the end of a log, if it moved there and stayed."""

from __future__ import annotations

import math
from itertools import pairwise

import polars as pl

from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.analysis.timeline.segments import level_changes
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.rows import at_least, complete, median
from gctrace_analyzer.units import duration_text, size_text


@frozen
class Moved:
    """The live heap moved to another level and stayed there.

    Attributes:
        at_s: when the first cycle of the present level started, since the start of the process.
        cycles: the number of cycles since then.
        before_mib: the median of the live heap at the level before.
        after_mib: its median since then.
    """

    at_s: float
    cycles: int
    before_mib: float
    after_mib: float

    @property
    def text(self) -> str:
        """Both levels, as the beginning of a sentence."""
        before, after = (
            size_text(size) if size >= 1 else "under 1 MiB"
            for size in (self.before_mib, self.after_mib)
        )
        return (
            f"the live heap was {before} until {duration_text(self.at_s)}, and is {after} since"
        )


def moved(cycles: pl.DataFrame, t: Thresholds = DEFAULT) -> Moved | None:
    """Returns the move of the live heap to its present level; None if there was none.

    A return to an earlier level that lasted as long is no move: the load goes up and down.

    Args:
        cycles: the cycles of one process, in order, with `start_s` and `heap_live_mib`.
        t: the thresholds of GC022.
    """
    timed = complete(cycles[["start_s", "heap_live_mib"]], "start_s", "heap_live_mib")
    if len(timed) < t.short_log_cycles:
        return None
    live, times = timed["heap_live_mib"].cast(pl.Float64), timed["start_s"]
    # Sizes in whole MiB jump between 0, 1 and 2 while a small heap stays as it is.
    seen = at_least(live, _SMALL_MIB)
    changes = level_changes(seen, 1 + t.step_share, t.min_cycles).arg_true().to_list()
    if not changes:
        return None
    begins, ends = [0, *changes], [*changes, len(live)]
    levels = [live[begin:end] for begin, end in zip(begins, ends, strict=True)]
    before, after = levels[-2:]
    step = abs(median(after) - median(before))
    least_s = t.step_least_time * (times[-1] - times[0])
    lengths = [end - begin for begin, end in pairwise(map(times.item, (*begins, -1)))]
    lasting = [
        level for level, length in zip(levels, lengths, strict=True) if length >= least_s
    ]
    is_level = (
        min(lengths[-2:]) >= least_s
        and all(_is_level(values, step, t) for values in (before, after))
        and not any(_are_same(level, after, t) for level in lasting[:-1])
    )
    if not is_level:
        return None
    middle = math.sqrt(max(median(before), 1.0) * max(median(after), 1.0))
    # Medians of five may move up to two cycles early or late.
    is_before = (live < middle) == (median(before) < middle)
    at = int(is_before.arg_true()[-1]) + 1
    if at >= len(live):
        return None
    return Moved(float(times[at]), len(live) - at, median(before), median(after))


def _is_level(values: pl.Series, step_mib: float, t: Thresholds) -> bool:
    """Returns whether values stay at one level, unlike those of a growing heap."""
    # A level's ends may include cycles of the next level.
    inner = values[1:-1] if len(values) > t.min_cycles else values
    spread, third = inner.std(), max(len(inner) // 3, 1)
    if len(values) < t.min_cycles or not isinstance(spread, float):
        return False
    drift = abs(median(inner.tail(third)) - median(inner.head(third)))
    most = t.step_spread * max(median(inner), step_mib)
    return spread < most and drift <= t.step_drift * step_mib


_SMALL_MIB = 2.0
"""Smaller sizes count as one level."""


def _are_same(one: pl.Series, other: pl.Series, t: Thresholds) -> bool:
    low, high = sorted((median(one), median(other)))
    return high <= (1 + t.step_share) * low
