"""Totals of spans: sums, and rates that are ratios of sums; two totals add up.

A rate covers the spans in which both its parts are known. The same definitions hold for a run, a
window, a segment, an episode, and a part of a long log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Literal

import polars as pl

from gctrace_analyzer.analysis.spans import columns, select
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.rows import not_null

_with_idle = pl.col("gc_cpu_s") + pl.col("idle_cpu_s")

ROUNDING = "alloc_rounding_share"
"""The rate that bounds the error of the allocation by truncated sizes."""

RATES: dict[str, tuple[pl.Expr, pl.Expr]] = {
    "gc_per_s": (pl.col("steps"), pl.col("steps_s")),
    "counted_per_s": (pl.col("cycles").cast(pl.Float64), pl.col("counted_s")),
    "gc_cpu_share": (pl.col("gc_cpu_s"), pl.col("capacity_s")),
    "gc_cpu_share_low": (pl.col("gc_cpu_low_s"), pl.col("capacity_between_s")),
    "gc_cpu_share_high": (pl.col("gc_cpu_high_s"), pl.col("capacity_s")),
    "gc_cpu_with_idle_share": (_with_idle, pl.col("capacity_s")),
    "gc_cpu_nonidle_share": (pl.col("gc_cpu_s"), pl.col("capacity_s") - pl.col("idle_cpu_s")),
    "gc_cpu_cores": (pl.col("gc_cpu_s"), pl.col("capacity_time_s")),
    "gc_cpu_with_idle_cores": (_with_idle, pl.col("capacity_time_s")),
    "cpus": (pl.col("capacity_s"), pl.col("capacity_time_s")),
    "gc_active_share": (pl.col("active_s"), pl.col("elapsed_s")),
    "assist_share_of_gc_cpu": (pl.col("assist_cpu_s"), pl.col("gc_cpu_s")),
    "assist_share_of_cpu": (pl.col("assist_cpu_s"), pl.col("capacity_s")),
    "stw_share": (pl.col("pause_total_ms") / 1000, pl.col("elapsed_s")),
    "alloc_mib_per_s": (pl.col("allocated_mib"), pl.col("elapsed_s")),
    ROUNDING: (pl.col("rounding_mib"), pl.col("allocated_mib")),
    "true_live_heap_mib": (pl.col("true_live_mib"), pl.lit(1.0)),
}
"""Each rate: numerator and denominator, in the columns of spans.

The frequency of a run counts from the start of its first cycle to that of its last one. For a part
of a run (a window, a segment, an episode) it is `counted_per_s`: its cycles in its time.
"""


@cache
def part(rate: str) -> pl.Expr:
    """Returns the numerator of a rate, null in spans that do not count for it."""
    above, below = RATES[rate]
    return pl.when(below.is_not_null()).then(above)


@cache
def whole(rate: str) -> pl.Expr:
    """Returns the denominator of a rate, null in spans that do not count for it."""
    above, below = RATES[rate]
    return pl.when(above.is_not_null()).then(below)


def sums(rates: Iterable[str]) -> list[pl.Expr]:
    """Returns both sums of each rate, for `quotients` to divide."""
    return [
        end(rate).sum().alias(f"{rate}/{end.__name__}")
        for rate in rates
        for end in (part, whole)
    ]


def quotients(rates: Iterable[str]) -> list[pl.Expr]:
    """Returns the rates from their sums; null if the denominator is 0 or truncation hides it.

    The allocation needs `ROUNDING`: its sums decide whether the allocation is known.
    """
    return [
        _divided(rate, lambda name, end: pl.col(f"{name}/{end.__name__}")).alias(rate)
        for rate in rates
    ]


def quotient(rate: str) -> pl.Expr:
    """Returns a rate over some spans, such as a group; null under the same conditions."""
    return _divided(rate, lambda name, end: end(name).sum())


def _divided(rate: str, summed: Callable[[str, Callable[[str], pl.Expr]], pl.Expr]) -> pl.Expr:
    below = summed(rate, whole)
    above, known = summed(rate, part), below > 0
    if rate == "alloc_mib_per_s":
        known &= ~_hides(summed(ROUNDING, part), summed(ROUNDING, whole))
    elif rate == "gc_cpu_share":
        # Within a few milliseconds, truncated times hide the real length.
        known &= above <= below
    elif rate == "gc_cpu_share_high":
        above = pl.min_horizontal(above, below)
    return pl.when(known).then(above / below)


def _hides(rounding_mib: Any, allocated_mib: Any) -> Any:
    """Returns whether truncated sizes hide the allocation."""
    return rounding_mib > _HIDES * allocated_mib


def rates_of(spans: pl.DataFrame, *rates: str) -> dict[str, float | None]:
    """Returns rates over some spans; None if a denominator is 0."""
    figures = (quotient(rate).alias(rate) for rate in rates)
    return select(spans, *figures).row(0, named=True)


def total(column: str | pl.Expr) -> pl.Expr:
    """Returns the sum of a column; null, not 0, if all values are null."""
    values = pl.col(column) if isinstance(column, str) else column
    return pl.when(values.count() > 0).then(values.sum())


@frozen
class Values:
    """Values with the number of times that each occurs; None if each stands for itself.

    Quantiles are exact, even over several parts: counts of equal values add up.
    """

    values: pl.Series
    counts: pl.Series | None = None

    @classmethod
    def of(cls, values: pl.Series) -> Values:
        """Returns the values that are not null."""
        return cls(not_null(values))

    def counted(self, decimals: int = 6) -> Values:
        """Returns how often each value occurs; rounded, or hardly any two would be equal."""
        rounded = self.values.cast(pl.Float64).round(decimals).alias("value")
        table = rounded.value_counts(sort=False, name="count")
        return Values(table["value"], table["count"])

    def __add__(self, other: Values) -> Values:
        """Returns the counted values of both."""
        tables = [
            pl.DataFrame({"value": totals.values, "count": totals.counts})
            for totals in (self, other)
        ]
        table = pl.concat(tables).group_by("value").agg(pl.col("count").sum())
        return Values(table["value"], table["count"])

    def median(self) -> float | None:
        """Returns the median; None without values."""
        if self.counts is None:
            return self.values.quantile(0.5, "linear")
        low, high = self.at_most(0.5), self.at_most(0.5, "right")
        return None if low is None or high is None else low + (high - low) / 2

    def at_most(self, share: float, side: Literal["left", "right"] = "left") -> float | None:
        """Returns the smallest value that this share (right: more) of all do not exceed."""
        if self.counts is None:
            return self.values.quantile(share, "equiprobable")
        table = pl.DataFrame({"value": self.values, "count": self.counts}).sort("value")
        until = table["count"].cast(pl.Int64).cum_sum()
        rank = share * int(until[-1]) if len(until) else 0.0
        return (
            float(table["value"][int(until.search_sorted(rank, side))]) if len(until) else None
        )

    def is_scattered(self, base: float) -> bool:
        """Returns whether no value describes most, by the middle half of them.

        Args:
            base: what the values are in addition to: GOGC is in addition to the live heap, 100 %.
        """
        low, high = (self.at_most(share) for share in (0.25, 0.75))
        return low is not None and high is not None and base + high > _FAR * (base + low)


_FAR = 1.5
"""Ratio. If the ends of the middle half of the heap goals, as multiples of the live heap, are
farther apart, their median is that of a scatter."""

_MEDIANS = {
    "gc_interval_p50_ms": ("interval_s", 1000.0),
    "live_heap_p50_mib": ("heap_live_mib", 1.0),
    "heap_goal_p50_mib": ("heap_goal_mib", 1.0),
    "effective_gogc_p50": ("shown_gogc", 1.0),
}
"""The figures that are medians over cycles: the column of spans, and a factor."""

_COUNTED = tuple(name for name, _ in _MEDIANS.values())


@frozen
class Totals:
    """The sums over some spans, and the values for quantiles.

    Attributes:
        cycles: number of cycles.
        forced_cycles: number of cycles that the program forced.
        sums: sums by name, in the units of the summary; None if no span has the value.
        maxima: maxima by name, in the same form.
        rates: both sums of each rate.
        values: values by column of spans, and `pause_ms`.
    """

    cycles: int
    forced_cycles: int
    sums: Mapping[str, float | None]
    maxima: Mapping[str, float | None]
    rates: Mapping[str, tuple[float, float]]
    values: Mapping[str, Values]

    @classmethod
    def of(cls, spans: pl.DataFrame, pauses_ms: pl.Series) -> Totals:
        """Returns the totals of spans that do not contain each other.

        Args:
            spans: as described in `spans`.
            pauses_ms: every single pause in them; empty if some are unknown.
        """
        row = select(spans, *_totals()).row(0, named=True)
        counted = columns(spans, *_COUNTED)
        return cls(
            int(row.pop("cycles") or 0),
            int(row.pop("forced_cycles") or 0),
            {name: row[name] for name in _SUMS},
            {name: row[name] for name in _MAXIMA},
            {rate: (row[f"{rate}/part"], row[f"{rate}/whole"]) for rate in RATES},
            {
                **{name: Values.of(counted[name]) for name in counted},
                "pause_ms": Values.of(pauses_ms),
            },
        )

    @classmethod
    def of_one(cls, span: Mapping[str, float | None]) -> Totals:
        """Returns the totals of one span from its known values, by column."""
        names = {name for expression in _totals() for name in expression.meta.root_names()}
        row = {name: [span.get(name)] for name in (*names, *_COUNTED)}
        frame = pl.DataFrame(row, schema_overrides=dict.fromkeys(row, pl.Float64))
        return cls.of(frame, pl.Series([], dtype=pl.Float64)).counted()

    def __add__(self, other: Totals) -> Totals:
        """Returns the totals of the spans of both; their values must be counted."""
        return Totals(
            self.cycles + other.cycles,
            self.forced_cycles + other.forced_cycles,
            {name: _both(sum, self.sums[name], other.sums[name]) for name in _SUMS},
            {name: _both(max, self.maxima[name], other.maxima[name]) for name in _MAXIMA},
            {
                rate: (above + other.rates[rate][0], below + other.rates[rate][1])
                for rate, (above, below) in self.rates.items()
            },
            {name: values + other.values[name] for name, values in self.values.items()},
        )

    def counted(self) -> Totals:
        """Returns a copy with counted values, which are small and add up."""
        values = {name: each.counted() for name, each in self.values.items()}
        return Totals(
            self.cycles, self.forced_cycles, self.sums, self.maxima, self.rates, values
        )

    def rate(self, name: str) -> float | None:
        """Returns a rate; None if there is nothing to divide by, or it is impossible.

        Within a few milliseconds, truncated times hide the real length.
        """
        above, below = self.rates[name]
        spent_s, capacity_s = self.rates["gc_cpu_with_idle_share"]
        is_hidden = name in _OF_ALL_CPUS and spent_s > ROUNDED * capacity_s
        time_s = below if name in _OF_TIME else self.rates["gc_cpu_cores"][1]
        is_hidden |= name in _OF_TIME | _OF_ALL_CPUS and 0 < time_s < _SHORTEST_S
        if name == "gc_cpu_share_high":
            above = min(above, below)
        return above / below if below > 0 and not is_hidden else None

    def figures(self) -> dict[str, Any]:
        """Returns the figures of the summary that follow from the spans."""
        medians = {}
        for figure, (name, factor) in _MEDIANS.items():
            median = self.values[name].median() if name in self.values else None
            medians[figure] = None if median is None else factor * median
        if (gogc := self.values.get("shown_gogc")) and gogc.is_scattered(100.0):
            medians["effective_gogc_p50"] = None
        pauses = self.values["pause_ms"]
        # The longest is as printed; the others are the middle of what a line stands for.
        longest = self.maxima["stw_max_ms"]
        quantiles = {"stw_p50_ms": pauses.median(), "stw_p99_ms": pauses.at_most(0.99)}
        sums, rates = dict(self.sums), {rate: self.rate(rate) for rate in RATES}
        if _hides(*self.rates[ROUNDING]):
            sums["alloc_total_mib"] = rates["alloc_mib_per_s"] = None
        return {
            "cycles": self.cycles,
            "forced_cycles": self.forced_cycles,
            **sums,
            **self.maxima,
            **{rate: value for rate, value in rates.items() if rate not in _NOT_SHOWN},
            **medians,
            **{name: ms and min(ms, longest or ms) for name, ms in quantiles.items()},
        }


def _both(join: Any, one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return join(known) if known else None


_HIDES = 1 / 3
"""Share of the allocation by which truncated sizes may be off. Above it, the ends of the sum's
interval differ more than twofold, and the allocation is unknown."""

ROUNDED = 1.02
"""Multiple of the time of all processors. If GC took more, truncated times hide the real length."""

_OF_ALL_CPUS = frozenset(
    rate for rate in RATES if "cpu_" in rate or rate == "assist_share_of_cpu"
)
"""The rates that are over the time of all processors."""

_OF_TIME = frozenset(
    (*("gc_per_s", "counted_per_s", "gc_active_share", "stw_share"), "alloc_mib_per_s")
)
"""The rates that are over time."""

FEW_S = 20
"""Seconds. Over a longer time, an error of one second hardly changes a rate."""

_SHORTEST_S = 0.004
"""Seconds. Times are printed in whole milliseconds, so a third of a shorter time may be missing."""

_NOT_SHOWN = ("counted_per_s", ROUNDING)

_SUMS = ("span_s", "stw_total_ms", "alloc_total_mib")
_MAXIMA = ("stw_max_ms", "live_heap_max_mib", "heap_peak_mib")


@cache
def _totals() -> list[pl.Expr]:
    """Returns all sums and maxima; built once, because a log may have hundreds of processes."""
    return [
        pl.col("cycles").sum(),
        pl.col("forced_cycles").sum(),
        total("elapsed_s").alias("span_s"),
        total("pause_total_ms").alias("stw_total_ms"),
        (total("in_cycle_mib") + pl.col("between_mib").sum()).alias("alloc_total_mib"),
        pl.col("pause_max_ms").max().alias("stw_max_ms"),
        pl.col("heap_live_mib").max().cast(pl.Float64).alias("live_heap_max_mib"),
        pl.col("heap_peak_mib").max(),
        *sums(RATES),
    ]
