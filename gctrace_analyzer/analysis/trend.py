"""Trends: the slope of a series, the growth of the live heap, and changes at a given time."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Literal

import polars as pl

from gctrace_analyzer.analysis.cycles import with_held
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.rows import complete, grouped, median, not_null, since, where
from gctrace_analyzer.units import duration_text, size_text

POINTS = 200
"""A longer series is reduced to the medians of this many time ranges: 19,900 pairs of
points are quick to compare."""

MIN_POINTS = 8
"""With fewer points the interval says nothing."""

Z95 = 1.959964
"""The 97.5 % quantile of the normal distribution."""

_MAX_AUTOCORRELATION = 0.95
"""A series cannot show a higher autocorrelation reliably. Without this bound, the interval
could become infinite."""

_RANGES = 20
"""The live heap is reduced to the medians of this many time ranges before its slope is
calculated."""

_END_CYCLES = 5
"""The live heap at the beginning and at the end is the median of this many cycles, but of no more
than a fifth of all: in a short log of a growing heap, more would reach its middle. If these cycles
only rise, it is the value of the first or the last of them."""

_HIGH = 0.9
"""Quantile of the live heap over time that defines its high level."""

_DROPPED = (0.5, 0.1)
"""Shares of the range of the live heap. From above the first to the second is no growth."""

_FEWEST_RECENT = 4
"""Cycles. With fewer in the last third of the time, each half would have only one, or the same
one."""


@frozen
class Slope:
    """The change per second, with its 95 % interval."""

    per_s: float
    low: float
    high: float


def slope(series: pl.DataFrame, *, x: str, y: str) -> Slope | None:
    """Returns the Theil–Sen slope of `y` over `x`; None if there are too few points.

    The interval is Sen's (1968), from the variance of Kendall's S with ties. It is widened for
    the lag-1 autocorrelation of the residuals, because successive live heaps are not
    independent.
    """
    columns = (series[name].cast(pl.Float64).alias(new) for name, new in ((x, "x"), (y, "y")))
    points = _thinned(pl.DataFrame(columns))
    n = len(points)
    if n < MIN_POINTS:
        return None
    first, second = _pairs(n)
    run, rise = (points[name][second] - points[name][first] for name in "xy")
    later = run > 0
    if not later.any():
        return None
    slopes = rise / run if later.all() else rise.filter(later) / run.filter(later)
    median = _quantile(slopes, 0.5)
    tied = points["y"].value_counts()["count"].cast(pl.Int64)
    ties = float((tied * (tied - 1) * (2 * tied + 5)).sum())
    variance = (n * (n - 1) * (2 * n + 5) - ties) / 18
    half = Z95 * math.sqrt(max(variance, 0) * _inflation(points, median)) / 2
    low, high = 0.5 - half / len(slopes), 0.5 + half / len(slopes)
    return Slope(median, _quantile(slopes, low), _quantile(slopes, high))


@lru_cache(maxsize=8)
def _pairs(count: int) -> tuple[pl.Series, pl.Series]:
    """Returns the positions of both points of every pair, the earlier one first."""
    cycle = pl.int_range(count, dtype=pl.UInt32, eager=True).alias("i").to_frame()
    later = cycle.select("i", j=pl.int_ranges(pl.col("i") + 1, count, dtype=pl.UInt32))
    pairs = later.filter(pl.col("j").list.len() > 0).explode("j")
    return pairs["i"], pairs["j"]


def _thinned(series: pl.DataFrame) -> pl.DataFrame:
    series = complete(series, "x", "y")
    if not series["x"].is_sorted():
        series = series.sort("x", maintain_order=True)
    return series if len(series) <= POINTS else _medians(series, "x", "y", parts=POINTS)


def _medians(series: pl.DataFrame, x: str, y: str, *, parts: int) -> pl.DataFrame:
    """Returns the medians of equal ranges of `x`, which is in order, without empty ranges."""
    passed = series[x] - series[x][0]
    place = passed / max(passed[-1], 1e-9) * parts
    # A cast rounds times before the first one up; `floor` is a query.
    part = (place if passed.min() == 0 else place.floor()).cast(pl.Int64).alias("part")
    # The last point lies where another range would begin.
    part = part.set(part > parts - 1, parts - 1)
    numbered = series[[x, y]].hstack([part])
    return grouped(numbered, "part").agg(not_null(pl.col(x, y)).median())[[x, y]]


def _inflation(points: pl.DataFrame, per_s: float) -> float:
    """Returns the factor by which autocorrelation r increases the variance.

    It is (1 + r) / (1 - r).
    """
    residual = points["y"] - per_s * points["x"]
    residual = residual - not_null(residual).median()
    lagged = float((residual[1:] * residual[:-1]).sum())
    total = float((residual * residual).sum())
    r = min(max(lagged / total, 0.0), _MAX_AUTOCORRELATION) if total else 0.0
    return (1 + r) / (1 - r)


def _quantile(values: pl.Series, q: float) -> float:
    # Polars finds one position faster than it sorts all pairs.
    return float(values.quantile(min(max(q, 0.0), 1.0), "linear") or 0.0)


COMPARE_HEAPS = "compare two heap profiles (`go tool pprof -base`)."
RAISE = "raise GOMEMLIMIT"
FIND_GROWTH = f"Find out why the live heap grows: {COMPARE_HEAPS}"
"""Advice on a live heap that grows."""


def find_growth(*, is_lasting: bool, is_limited: bool = False) -> str:
    """Returns the advice on a live heap that grew, perhaps after that to set a memory limit."""
    if is_lasting:
        return f"{'A limit only buys time. ' * is_limited}{FIND_GROWTH}"
    if is_limited:
        return f"If the live heap grows further, a limit only buys time: {COMPARE_HEAPS}"
    return f"Find out whether the live heap grows further: {COMPARE_HEAPS}"


@frozen
class LiveGrowth:
    """Growth of the live heap (`with_held`) in MiB/h, with its 95 % interval and time range."""

    mib_per_h: float
    low: float
    high: float
    begin_s: float
    end_s: float
    first_mib: float
    last_mib: float
    recent_mib: float
    """The growth over the last third of the time range."""
    first_s: float = 0.0
    last_s: float = 0.0
    """When the live heap was `first_mib`, and when it was `last_mib`, or first was if it no longer
    grows."""
    fell_at_s: float | None = None
    fell_to_mib: float = 0.0
    """When the live heap fell after its growth, and to what size; None if it did not."""

    @property
    def is_steady(self) -> bool:
        """Whether the live heap still grows at the end, unlike a cache that has filled up."""
        return (
            self.fell_at_s is None
            and self.recent_mib >= DEFAULT.growth_steady * (self.last_mib - self.first_mib) / 3
        )

    @property
    def is_long(self) -> bool:
        """Whether the time range is long enough to exclude a start-up."""
        return self.span_s >= DEFAULT.growth_min_span_s

    @property
    def is_regular(self) -> bool:
        """Whether the growth is even enough for a rate per hour."""
        return self.high <= DEFAULT.growth_regular_times * self.low

    @property
    def is_lasting(self) -> bool:
        """Whether it looks like a leak: long, regular, and still going on at the end."""
        return self.is_steady and self.is_long and self.is_regular

    @property
    def span_s(self) -> float:
        """The length of the time range."""
        return self.end_s - self.begin_s

    @property
    def text(self) -> str:
        """The first and the last size of the live heap, as the beginning of a sentence."""
        return self.text_with("")

    def text_with(self, also: str) -> str:
        """Returns `text` with what else grew in that time."""
        sizes = f"The live heap grew from {self.first_mib:,.0f} to {self.last_mib:,.0f} MiB"
        return f"{sizes}{also} in {duration_text(self.last_s - self.first_s)}"

    @property
    def fall(self) -> str:
        """What followed the growth, as a sentence with a leading space; empty if nothing."""
        if self.fell_at_s is None:
            return ""
        to = f"{self.fell_to_mib:,.0f} MiB" if self.fell_to_mib >= 1 else "under 1 MiB"
        return f" At {duration_text(self.fell_at_s)} the live heap fell to {to}."

    @property
    def gained_mib(self) -> float:
        """The growth over the time range, calculated from the slope."""
        return self.mib_per_h * self.span_s / 3600


def live_growth(cycles: pl.DataFrame) -> LiveGrowth | None:
    """Returns the growth of a process's live heap; None if it is small or not significant.

    Args:
        cycles: the cycles of one process, in order, with `end_s`.
    """
    needed = with_held(cycles).with_columns(marked_mib=cycles["heap_live_mib"])
    timed = complete(needed, "start_s", "heap_live_mib")
    growth, live = _growth_of(timed), timed["heap_live_mib"]
    if growth is None:
        return None
    # A burst of cycles is no growth, however high it is.
    high_mib = _evenly_spaced(timed)["heap_live_mib"].quantile(_HIGH) or 0.0
    grown = int((live >= DEFAULT.fallen_share * high_mib).arg_true()[-1]) + 1
    if _was_dropped(timed[:grown]):
        return None
    if grown == len(timed):
        return growth
    # The heap grew until then; the rest is a separate fact.
    before, after_mib = _growth_of(timed[:grown]), median(live[grown:])
    fell_at_s = timed["end_s"][grown]
    return before and replace(before, fell_at_s=fell_at_s, fell_to_mib=after_mib)


def _was_dropped(timed: pl.DataFrame) -> bool:
    """Returns whether a live heap as large fell back to its start in the second half of the time.

    Some cycles mark in the middle of a batch, so the sizes in between show no growth.
    """
    live, times = timed["heap_live_mib"], timed["start_s"]
    high, low = _DROPPED
    kept = live - live.min()
    share = kept / (kept.max() or 1)
    at = (share <= low).arg_true()
    is_late = 2 * times[at[-1]] >= times[0] + times[-1]
    return bool(is_late and (share[at[0] : at[-1]] > high).any())


def _growth_of(timed: pl.DataFrame) -> LiveGrowth | None:
    t = DEFAULT
    if len(timed) < t.min_cycles:
        return None
    begin, end = timed["start_s"][0], timed["end_s"][-1]
    # The start-up is skipped: the first quarter of the time or the first quarter of the cycles,
    # whichever leaves more cycles.
    by_time = since(timed, begin + (end - begin) / 4)
    by_count = timed[len(timed) // 4 :]
    if "gc_num" in timed.columns and (numbers := timed["gc_num"]).null_count() == 0:
        # Cycles without a line count too: those that have one may all be of the start-up.
        skipped = numbers[0] + (numbers[-1] - numbers[0]) // 4
        by_count = where(by_count, by_count["gc_num"] >= skipped)
    later = by_time if len(by_time) >= len(by_count) else by_count
    trend = slope(_evenly_spaced(later), x="start_s", y="heap_live_mib")
    if (trend is None or trend.low <= 0) and (rising := _always_up(timed)) is not None:
        trend, later = rising, timed
    typical = median(later["heap_live_mib"])
    if trend is None or trend.low <= 0 or typical <= 0:
        return None
    ends = max(min(_END_CYCLES, len(later) // 5), 1)
    first, last = later.head(ends), later.tail(ends)
    first = where(first, first["heap_live_mib"] == _end(first["heap_live_mib"], 0, "lower"))
    last = where(last, last["heap_live_mib"] == _end(last["heap_live_mib"], -1, "higher"))
    recent_mib, reached = _recent_mib(later), last.tail(1)
    if recent_mib <= 0:
        reached = where(later, later["marked_mib"] >= last["marked_mib"][-1])
    growth = LiveGrowth(
        mib_per_h=3600 * trend.per_s,
        low=3600 * trend.low,
        high=3600 * trend.high,
        begin_s=float(later["start_s"][0]),
        end_s=end,
        first_mib=first["marked_mib"][0],
        last_mib=reached["marked_mib"][0],
        recent_mib=recent_mib,
        first_s=first["start_s"][0],
        last_s=reached["end_s"][0],
    )
    enough = max(t.growth_min_share * typical, t.growth_min_mib)
    return growth if growth.gained_mib >= enough else None


def _always_up(timed: pl.DataFrame) -> Slope | None:
    """Returns the slope of a live heap that no cycle lowered; None if one did, or it hardly grew.

    By chance, one in 120 series of five values is in rising order.
    """
    times, live = timed["start_s"], timed["heap_live_mib"]
    passed, grown = times[1:] - times[:-1], live[1:] - live[:-1]
    if (grown <= 0).any() or (passed <= 0).any():
        return None
    if live[-1] < DEFAULT.growth_times_up * live[0]:
        return None
    rates = grown / passed
    mean = float(live[-1] - live[0]) / float(times[-1] - times[0])
    return Slope(mean, float(rates.min() or 0), float(rates.max() or 0))  # type: ignore[arg-type]


def rise_of_few(cycles: pl.DataFrame) -> tuple[int, int] | None:
    """Returns the first and the last live heap of a few cycles that all raised it by much.

    They are too few for `live_growth`: a start-up looks the same.
    """
    t, live = DEFAULT, not_null(cycles["heap_live_mib"])
    if not t.warn_min_cycles <= len(live) < t.min_cycles or (live[1:] <= live[:-1]).any():
        return None
    first, last = int(live[0]), int(live[-1])
    is_much = last - first >= t.memory_min_mib and last >= t.growth_times_up * first
    return (first, last) if is_much else None


def _recent_mib(later: pl.DataFrame) -> float:
    """Returns the growth of the live heap over the last third of the time."""
    times, live = later["start_s"], later["heap_live_mib"]
    is_recent = times >= times[0] + 2 * (times[-1] - times[0]) / 3
    recent = live.filter(is_recent)
    if len(recent) < _FEWEST_RECENT:
        return float(recent[-1] - live.filter(~is_recent)[-1])
    half = max(len(recent) // 2, 1)
    # The medians of the halves are half of the time apart.
    return 2 * (median(recent.tail(half)) - median(recent.head(half)))


def _end(values: pl.Series, at: Literal[0, -1], side: Literal["lower", "higher"]) -> float:
    """Returns the value at one end, or the median there unless the values only rise."""
    known = not_null(values)
    return float(known[at] if known.is_sorted() else known.quantile(0.5, side) or 0)


def _evenly_spaced(cycles: pl.DataFrame) -> pl.DataFrame:
    """Returns the medians of equal time ranges, so that a burst of cycles counts once."""
    if len(cycles) < _RANGES:
        return cycles
    medians = _medians(cycles, "start_s", "heap_live_mib", parts=_RANGES)
    return medians if len(medians) >= _RANGES // 2 else cycles


_CHANGED = 1.5
"""Ratio of the medians before and after. Smaller changes are usual for a load."""

_NEXT = 3
"""Cycles next to the beginning on each side: between them lies most of a change at that time."""

_SIDE_S, _SIDE_CYCLES = 10.0, 20
"""Seconds and cycles compared before and after the beginning: whichever are fewer."""

_QUANTITIES = {
    "alloc_mib_per_s": ("the allocation rate", "/s", "rose"),
    "heap_live_mib": ("the live heap", "", "rose"),
    "heap_goal_mib": ("the heap goal", "", "fell"),
}
"""The figures that are compared: words, text after the size, and the change that costs GC time. The
opposite change would be an effect: a program that thrashes allocates less."""


def changes_at(cycles: pl.DataFrame, start_s: float, thresholds: Thresholds) -> list[str]:
    """Returns what changed at a time, as parts of a sentence; empty if nothing did.

    The medians of the cycles shortly before and shortly after are compared.

    Args:
        cycles: the cycles of one process, as `episodes.enrich` returns them.
        start_s: when the state began.
        thresholds: how many cycles are enough.
    """
    begin, end = start_s - _SIDE_S, start_s + _SIDE_S
    cycles = with_held(cycles)
    before = cycles.filter(pl.col("start_s").is_between(begin, start_s, closed="left"))
    after = cycles.filter(pl.col("start_s").is_between(start_s, end)).head(_SIDE_CYCLES)
    before = before.tail(_SIDE_CYCLES)
    if min(len(before), len(after)) < thresholds.min_cycles:
        return []
    room = pl.col("heap_goal_mib") - pl.col("heap_live_mib")
    rooms = (median(not_null(side.select(room).to_series())) for side in (before, after))
    # A heap that has no room left runs GC more often at any allocation rate.
    is_full = next(rooms) > _CHANGED * max(next(rooms), 0.0)
    sentences = []
    for name, (words, per, verb) in _QUANTITIES.items():
        if is_full and name == "alloc_mib_per_s":
            continue
        sides = not_null(before[name]), not_null(after[name])
        old, new, last, first = map(
            median, (*sides, sides[0].tail(_NEXT), sides[1].head(_NEXT))
        )
        if min(old, new, last, first) < 1:
            continue
        ratios = (new / old, first / last) if verb == "rose" else (old / new, last / first)
        # What changed slowly did not change then.
        if ratios[0] >= _CHANGED and ratios[1] ** 2 >= _CHANGED:
            sentences.append(
                f"{words} {verb} from {size_text(old)}{per} to {size_text(new)}{per}"
            )
    return sentences
