"""The path of a program through its log: live heap and allocation, cycle by cycle.

A path belongs to the program, not to its settings: it says how large the live heap was after how
many bytes allocated. A replay (`replay.py`) walks along it under another setting.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import core
from gctrace_analyzer.advise.prediction import pacer
from gctrace_analyzer.analysis.settings.goal_ranges import HEAP_MINIMUM_MIB
from gctrace_analyzer.ingest.rows import at_least, largest, mean_of, median, or_zero

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gctrace_analyzer.core import Core, Walker

NO_ROOM = 0.10
"""Room between the live heap and the goal, relative to the marked memory. With less, the program
has hardly any room to allocate: it is at its limit."""

LEAST_LIVE_MIB = 0.3
LEAST_GAP_MIB = 0.05
"""Sizes are in whole MiB, so a difference of 0 stands for a fraction of one."""

HALF = 0.5
"""MiB. Sizes are truncated to whole MiB, so half of one is added."""

_LARGEST = 3


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """Live heap and allocation of one process, one entry per cycle.

    Attributes:
        make: returns `at` (MiB allocated from the first cycle's start to each cycle's start),
            `live` (the true live heap there: without what was allocated during marking) and
            `in_mark` (MiB allocated during that cycle's marking, without bursts).
        length_mib: MiB allocated from the first cycle's start to the last one's.
        mean_live: mean of `live`.
        mean_in_mark: mean of `in_mark`.
        largest: the entries of `at` with the largest live heaps.
        walker: walks these columns in the compiled core; None without the core.
        lists: the columns for walking in Python; None if there is a walker.
        offset: by how much the live heap is larger than `live` throughout.
    """

    make: Callable[[], pl.DataFrame]
    length_mib: float
    mean_live: float
    mean_in_mark: float
    largest: tuple[float, ...]
    walker: Walker | None
    lists: tuple[list[float], ...] | None
    offset: float = 0.0

    @classmethod
    def of(cls, make: Callable[[], pl.DataFrame]) -> Path:
        """Returns a path with its means and its largest live heaps."""
        columns = make()
        at, live, in_mark = columns
        ends = tuple(at[largest(live, _LARGEST)])
        figures = (float(at[-1]), mean_of(live), mean_of(in_mark), ends)
        compiled = core.compiled()
        if compiled is None:
            return cls(make, *figures, None, tuple(column.to_list() for column in columns))
        # Each column is freed once it is packed, and the core makes its own copies.
        del at, live, in_mark
        names = columns.columns
        packed = (core.packed(columns.drop_in_place(name).to_frame())[0] for name in names)
        return cls(make, *figures, _walker(compiled, packed), None)

    def __reduce__(self) -> tuple[Callable[..., Path], tuple[Any, ...]]:
        """Returns how to rebuild the path, because the core's walker cannot be copied."""
        return _again, (self.make(), self.offset)

    def shifted(self, by_mib: float) -> Path:
        """Returns the path with a live heap that is larger everywhere, as with a ballast."""
        return replace(self, offset=self.offset + by_mib, mean_live=self.mean_live + by_mib)

    def scaled(self, times: float, in_mark_times: float) -> Path:
        """Returns the path of a program that allocates less for the same work.

        Args:
            times: factor on the allocation.
            in_mark_times: factor on the allocation during marking.
        """
        scaled = (pl.col("at") * times, pl.col("in_mark") * in_mark_times)
        return Path.of(lambda: self.make().with_columns(scaled)).shifted(self.offset)

    def without_growth(self, along_mib: float) -> Path:
        """Returns the path of a steadily growing heap as if it had its final size throughout.

        Args:
            along_mib: growth from the first cycle to the last one.
        """
        end = self.length_mib
        missing = along_mib / max(end, 1e-9) * (end - pl.col("at"))
        live = (pl.col("live") + missing).clip(LEAST_LIVE_MIB)
        return Path.of(lambda: self.make().with_columns(live))


def _again(columns: pl.DataFrame, offset: float) -> Path:
    """Returns the path with these columns."""
    return Path.of(lambda: columns).shifted(offset)


def _walker(compiled: Core, numbers: Iterator[bytes]) -> Walker:
    return compiled.Walker(
        numbers,
        lowest_trigger=pacer.LOWEST_TRIGGER,
        highest_trigger=pacer.HIGHEST_TRIGGER,
        highest_trigger_1_17=pacer.HIGHEST_TRIGGER_1_17,
        least_runway_mib=pacer.LEAST_RUNWAY_MIB,
        heap_minimum_mib=HEAP_MINIMUM_MIB,
        no_room=NO_ROOM,
    )


def path_of(steady: pl.DataFrame) -> Path:
    """Returns the path of the steady cycles of one process, in order (at least two)."""
    return Path.of(partial(_columns, steady[[*_SIZES, "gc_num"]]))


_SIZES = ("heap_start_mib", "heap_end_mib", "heap_live_mib", "heap_goal_mib")

BURST_TIMES = 2
"""A marking is a burst, which also exceeds the goal, if it allocates this many times the usual
amount. No setting changes the size of a burst in another marking."""


def bursts_mib(steady: pl.DataFrame) -> pl.Series:
    """Returns how much each cycle allocated during marking beyond the goal and the usual amount."""
    start, end, _, goal = (steady[name] for name in _SIZES)
    grown = end - start
    usual = int(BURST_TIMES * max(median(grown), 1.0))
    return or_zero(at_least(grown - at_least(goal - start, usual), 0))


def calm_end_max_mib(steady: pl.DataFrame) -> float:
    """Returns the largest heap without bursts, neither in the marking nor in the next goal.

    A burst's allocation is marked, so the goal after it is for a larger live heap.
    """
    burst = bursts_mib(steady)
    times = steady["heap_goal_mib"][1:] / at_least(steady["heap_live_mib"][:-1], 1)
    calm = steady["heap_end_mib"] - burst
    return float(max(calm[0], (calm[1:] - burst[:-1] * times).max() or 0))


def _columns(steady: pl.DataFrame) -> pl.DataFrame:
    start, end, live, _ = (steady[name] for name in _SIZES)
    grown = at_least((end - start).cast(pl.Float64), 0)
    true_live = at_least(live + HALF - grown, LEAST_LIVE_MIB)
    at = _at(start, true_live, steady["gc_num"])
    in_mark = grown - bursts_mib(steady)
    return pl.DataFrame({"at": at, "live": true_live, "in_mark": in_mark})


def _at(start: pl.Series, true_live: pl.Series, numbers: pl.Series) -> pl.Series:
    """Returns what had been allocated at the start of each cycle, in MiB."""
    cycles = numbers[1:] - numbers[:-1]
    mib = at_least(start[1:] + HALF - true_live[:-1], LEAST_GAP_MIB)
    # A missing cycle, or a forced one that was left out, counts as a usual one.
    is_next = cycles == 1
    if not is_next.all():
        usual = mib.filter(is_next).mean() or mib.mean()
        mib = mib.zip_with(is_next, cycles * usual)
    return pl.Series([0.0]).append(mib.cum_sum()).rechunk()
