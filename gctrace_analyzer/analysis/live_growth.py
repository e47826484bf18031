"""Whether the live heap grows, and how fast: start-up left out, chance ruled out."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from gctrace_analyzer.analysis.rules.finding import middle
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.analysis.trend import slope

_STRETCHES = 20


@dataclass(frozen=True, slots=True)
class LiveGrowth:
    """Of the marked live heap: MiB per hour with a 95 % interval, and from when to when."""

    mib_per_h: float
    low: float
    high: float
    begin_s: float
    end_s: float
    first_mib: float
    last_mib: float
    median_mib: float

    @property
    def span_s(self) -> float:
        """The time it was seen over."""
        return self.end_s - self.begin_s

    @property
    def gained_mib(self) -> float:
        """What that makes over the span."""
        return self.mib_per_h * self.span_s / 3600


def live_growth(cycles: pl.DataFrame, thresholds: Thresholds = DEFAULT) -> LiveGrowth | None:
    """The growth of one program's live heap; None where it does not grow for sure.

    Args:
        cycles: of one program, in order, with `end_s`.
        thresholds: what is too little to be called growth.
    """
    t = thresholds
    timed = cycles.drop_nulls(["start_s", "heap_live_mib"])
    if len(timed) < t.few:
        return None
    begin, end = timed["start_s"][0], timed["end_s"][-1]
    # Without the start-up: a quarter of the time or of the cycles, whichever leaves more.
    by_time = timed.filter(pl.col("start_s") >= begin + (end - begin) / 4)
    by_count = timed[len(timed) // 4 :]
    later = by_time if len(by_time) >= len(by_count) else by_count
    trend = slope(_evenly(later), x="start_s", y="heap_live_mib")
    median = later["heap_live_mib"].median()
    if trend is None or not isinstance(median, float) or median <= 0:
        return None
    live, since = later["heap_live_mib"], float(later["start_s"][0])
    found = LiveGrowth(
        mib_per_h=3600 * trend.per_s,
        low=3600 * trend.low,
        high=3600 * trend.high,
        begin_s=since,
        end_s=end,
        first_mib=middle(live.head(5)),
        last_mib=middle(live.tail(5)),
        median_mib=median,
    )
    enough = max(t.growth_of_span * median, t.growth_min_mib)
    return found if found.low > 0 and found.gained_mib >= enough else None


def _evenly(cycles: pl.DataFrame) -> pl.DataFrame:
    """Medians of equal stretches of time: a burst of cycles is one moment, not many."""
    if len(cycles) < _STRETCHES:
        return cycles
    since = pl.col("start_s") - cycles["start_s"][0]
    span = max(cycles["start_s"][-1] - cycles["start_s"][0], 1e-9)
    stretch = (since / span * _STRETCHES).floor().clip(0, _STRETCHES - 1)
    medians = cycles.group_by(stretch.alias("stretch"), maintain_order=True).agg(
        pl.col("start_s").median(), pl.col("heap_live_mib").median()
    )
    return medians if len(medians) >= _STRETCHES // 2 else cycles
