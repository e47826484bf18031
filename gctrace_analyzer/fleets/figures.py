"""Combines the figures of a process whose log was analysed in several sections ("stretches").

Counts, sums, maxima, shares and rates are the same as if the log had been read in one piece,
because whatever lies between two stretches (at the seam) is added here. Percentiles are
calculated from counted values, the slope of the live heap from medians. Episodes, findings and
recommendations are not combined.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from gctrace_analyzer.analysis.cycles import (
    alloc_before_mib,
    counted_alloc_mib,
    effective_gogc,
    true_live_mib,
)
from gctrace_analyzer.analysis.neighbours import before
from gctrace_analyzer.analysis.pauses import single_pauses
from gctrace_analyzer.analysis.summary import ratio
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.analysis.trend import POINTS, slope
from gctrace_analyzer.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

Row: TypeAlias = dict[str, Any]

_QUANTILES = {
    "stw_p50_ms": ("pause_ms", 0.5), "stw_p99_ms": ("pause_ms", 0.99),
    "gc_interval_p50_ms": ("interval_ms", 0.5), "live_heap_p50_mib": ("live_mib", 0.5),
    "heap_goal_p50_mib": ("goal_mib", 0.5), "effective_gogc_p50": ("gogc", 0.5),
}  # fmt: skip

DISTRIBUTIONS = ("interval_ms", "live_mib", "goal_mib", "gogc", "pause_ms")
"""The names of the values that are counted."""

_SUMS = (
    "cycles", "forced_cycles", "missing_cycles", "span_s", "stw_total_ms", "alloc_total_mib",
    "capacity_cpu_s", "gc_cpu_s", "gc_cpu_with_idle_s",
)  # fmt: skip
_MAXIMA = ("stw_max_ms", "live_heap_max_mib", "heap_peak_mib")
_CHECK = "log_check_points"
_SEAM_COLUMNS = ("gc_num", "start_s", "end_s", "cpus")
_GROWTH = "live_heap_growth_mib_per_h"


@frozen
class StretchFigures:
    """The figures of one process in one stretch, with what is needed to combine stretches.

    Attributes:
        figures: the figures of the summary, and `capacity_cpu_s gc_cpu_s gc_cpu_with_idle_s`.
        first: number and times of the first cycle.
        last: number and times of the last cycle.
        distributions: values and how often they occur, by name.
        live: the live heap over time, thinned out: `start_s heap_live_mib`.
        seam_alloc_mib: MiB allocated between the last cycle before the stretch and the first
            cycle in it.
        true_live: sum and count of the estimates whose mean is `true_live_heap_mib`.
        allocated: MiB, and the seconds in which they were allocated.
    """

    figures: Row
    first: Row
    last: Row
    distributions: dict[str, pl.DataFrame]
    live: pl.DataFrame
    seam_alloc_mib: float | None
    true_live: tuple[float, int]
    allocated: tuple[float, float]


def of_stretch(corrected: pl.DataFrame, own: pl.Expr, figures: Row) -> StretchFigures:
    """Returns the figures of one process in one stretch, ready to be combined.

    Args:
        corrected: the cycles, and some before and after them, with corrected durations.
        own: selects the cycles that belong to the stretch.
        figures: the figures of the stretch alone.
    """
    t = DEFAULT
    steady = (pl.col("start_s") >= t.warm_up_s) & ~pl.col("forced")
    is_large = before("heap_live_mib") >= t.gogc_min_live_mib
    values = {
        "interval_ms": ((pl.col("start_s") - before("start_s")) * 1000).round(3),
        "live_mib": pl.col("heap_live_mib"),
        "goal_mib": pl.col("heap_goal_mib"),
        # Rounded, so that values can be counted: otherwise hardly any two would be equal.
        "gogc": pl.when(is_large).then(effective_gogc()).round(6),
        "true_live": pl.when(steady).then(true_live_mib()),
    }
    cycles = corrected.select(
        own.alias("own"),
        *_SEAM_COLUMNS,
        "elapsed_s",
        seam=alloc_before_mib(),
        allocated_mib=counted_alloc_mib(alloc_before_mib()),
        **values,
    ).filter("own")
    distributions = {name: _counts(cycles[name]) for name in values if name != "true_live"}
    distributions["pause_ms"] = _counts(single_pauses(corrected.filter(own)))
    late = corrected.filter(own & (pl.col("start_s") >= t.warm_up_s))
    first, last = (cycles.select(_SEAM_COLUMNS).row(at, named=True) for at in (0, -1))
    return StretchFigures(
        figures,
        first,
        last,
        distributions,
        _thinned_out(late.select("start_s", "heap_live_mib").drop_nulls()),
        cycles["seam"][0],
        (float(cycles["true_live"].sum()), cycles["true_live"].count()),
        (
            float(cycles["allocated_mib"].sum()),
            float(cycles.drop_nulls("allocated_mib")["elapsed_s"].sum()),
        ),
    )


def combined(stretches: Sequence[StretchFigures]) -> Row:
    """Returns the figures of one process from its stretches, which are in order."""
    every = [each.figures for each in stretches]
    found: Row = {name: _total(every, name) for name in _SUMS}
    found |= {name: max(_known(every, name), default=None) for name in _MAXIMA}
    found[_CHECK] = max(_known(every, _CHECK), key=abs, default=None)
    for one, other in pairwise(stretches):
        _add_seam(found, one.last, other)
    idle = _difference(found["gc_cpu_with_idle_s"], found["gc_cpu_s"])
    capacity, gc, span = found["capacity_cpu_s"], found["gc_cpu_s"], found["span_s"]
    first, last = stretches[0].first, stretches[-1].last
    live, count = (sum(each.true_live[i] for each in stretches) for i in (0, 1))
    assist = _weighted(every, "assist_share_of_gc_cpu", "gc_cpu_s")
    return (
        found
        | {name: _quantile(stretches, *what) for name, what in _QUANTILES.items()}
        | {
            "gc_per_s": ratio(
                _difference(last["gc_num"], first["gc_num"]),
                _difference(last["start_s"], first["start_s"]),
            ),
            "gc_cpu_share": ratio(gc, capacity),
            "gc_cpu_with_idle_share": ratio(found["gc_cpu_with_idle_s"], capacity),
            "gc_cpu_nonidle_share": ratio(gc, _difference(capacity, idle)),
            "gc_cpu_cores": ratio(gc, span),
            "gc_cpu_with_idle_cores": ratio(found["gc_cpu_with_idle_s"], span),
            "cpus": ratio(capacity, span),
            "gc_active_share": ratio(_weighted(every, "gc_active_share", "span_s"), span),
            "assist_share_of_gc_cpu": ratio(assist, gc),
            "assist_share_of_cpu": ratio(assist, capacity),
            "stw_share": ratio(found["stw_total_ms"], None if span is None else span * 1000),
            "alloc_mib_per_s": ratio(
                *(sum(each.allocated[i] for each in stretches) for i in (0, 1))
            ),
            "true_live_heap_mib": ratio(live, count),
        }
        | _growth(stretches)
    )


def _add_seam(found: Row, last: Row, later: StretchFigures) -> None:
    """Adds what lies between two stretches to `found`."""
    first = later.first
    found["missing_cycles"] += max(first["gc_num"] - last["gc_num"] - 1, 0)
    gap_s = _difference(first["start_s"], last["end_s"])
    if gap_s is None:
        return
    found["span_s"] += gap_s
    if first["cpus"] is not None and found["capacity_cpu_s"] is not None:
        found["capacity_cpu_s"] += gap_s * first["cpus"]
    if later.seam_alloc_mib is not None and found["alloc_total_mib"] is not None:
        found["alloc_total_mib"] += later.seam_alloc_mib


def _total(every: Sequence[Row], name: str) -> Any:
    known = _known(every, name)
    return sum(known) if known else None


def _known(every: Sequence[Row], name: str) -> list[Any]:
    return [row[name] for row in every if row[name] is not None]


def _weighted(every: Sequence[Row], share: str, of: str) -> float | None:
    known = [row[share] * row[of] for row in every if row[share] is not None and row[of]]
    return sum(known) if known else None


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _counts(values: pl.Series) -> pl.DataFrame:
    known = values.drop_nulls().cast(pl.Float64).alias("value")
    return known.value_counts(name="count")


def _quantile(stretches: Sequence[StretchFigures], name: str, q: float) -> float | None:
    """Returns the quantile of counted values, interpolated linearly as Polars does."""
    counted = pl.concat([each.distributions[name] for each in stretches])
    whole = counted.group_by("value").agg(pl.col("count").sum()).sort("value")
    total = int(whole["count"].sum())
    if not total:
        return None
    at = q * (total - 1)
    last = (
        whole["count"].cast(pl.Int64).cum_sum() - 1
    )  # the rank of each value's last occurrence
    low, high = (
        float(whole["value"][int(last.search_sorted(place))])
        for place in (int(at), min(int(at) + 1, total - 1))
    )
    return low + (high - low) * (at - int(at))


def _thinned_out(series: pl.DataFrame) -> pl.DataFrame:
    size = max(len(series) // POINTS, 1)
    return (
        series.with_row_index("row")
        .group_by(pl.col("row") // size, maintain_order=True)
        .agg(pl.col("start_s", "heap_live_mib").median())
        .select("start_s", "heap_live_mib")
    )


def _growth(stretches: Sequence[StretchFigures]) -> Row:
    trend = slope(pl.concat([each.live for each in stretches]), x="start_s", y="heap_live_mib")
    ends = (None, None, None) if trend is None else (trend.per_s, trend.low, trend.high)
    return {
        f"{_GROWTH}{end}": None if value is None else value * 3600
        for end, value in zip(("", "_low", "_high"), ends, strict=True)
    }
