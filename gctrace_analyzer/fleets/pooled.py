"""The figures of a program too long to be held at once, from stretches of its cycles.

Counts, sums, maxima, shares and rates come out as if it had been read in one piece: between two
stretches lies a seam, and what the second's first cycle says of the time before it is added
here. Percentiles come from counted values. The slope of the live heap comes from medians of
times, as ever. Episodes, findings and advice are the stretches' own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.cycles import (
    alloc_before_mib,
    before,
    effective_gogc,
    true_live_mib,
)
from gctrace_analyzer.analysis.pauses import single_pauses
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.analysis.trend import POINTS, slope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Row = dict[str, Any]

_QUANTILES = {
    "stw_p50_ms": ("pause_ms", 0.5), "stw_p99_ms": ("pause_ms", 0.99),
    "gc_interval_p50_ms": ("interval_ms", 0.5), "live_heap_p50_mib": ("live_mib", 0.5),
    "heap_goal_p50_mib": ("goal_mib", 0.5), "effective_gogc_p50": ("gogc", 0.5),
}  # fmt: skip

_SUMS = (
    "cycles", "forced_cycles", "missing_cycles", "span_s", "stw_total_ms", "alloc_total_mib",
    "capacity_cpu_s", "gc_cpu_s", "gc_cpu_with_idle_s",
)  # fmt: skip
_LARGEST = ("stw_max_ms", "live_heap_max_mib", "heap_peak_mib", "log_check_points")
_FACTS = ("gc_num", "start_s", "end_s", "procs")
_GROWTH = "live_heap_growth_mib_per_h"


@dataclass(frozen=True, slots=True)
class Stretch:
    """What is kept of a stretch of one program.

    Attributes:
        figures: those of the summary, and `capacity_cpu_s gc_cpu_s gc_cpu_with_idle_s`.
        first: its first cycle, as far as a seam needs it.
        last: its last cycle.
        spreads: values with how often they were there, by name.
        live: live heaps over time, thinned: `start_s heap_live_mib`.
        seam_alloc_mib: allocated between the cycle above the seam and the first one.
        true_live: sum and count of the estimates that `true_live_heap_mib` is the mean of.
    """

    figures: Row
    first: Row
    last: Row
    spreads: dict[str, pl.DataFrame]
    live: pl.DataFrame
    seam_alloc_mib: float | None
    true_live: tuple[float, int]


def stretch(
    corrected: pl.DataFrame, own: pl.Expr, figures: Row, t: Thresholds = DEFAULT
) -> Stretch:
    """What is to be kept of the cycles of one program.

    Args:
        corrected: they, and some of the cycles before and after, with corrected durations.
        own: which of them are the stretch's.
        figures: those of the stretch alone.
        t: where warm-up ends and small heaps begin.
    """
    steady = (pl.col("start_s") >= t.warm_up_s) & ~pl.col("forced")
    judged = before("heap_live_mib") >= t.gogc_min_live_mib
    values = {
        "interval_ms": ((pl.col("start_s") - before("start_s")) * 1000).round(3),
        "live_mib": pl.col("heap_live_mib"),
        "goal_mib": pl.col("heap_goal_mib"),
        # With more digits hardly two values were the same.
        "gogc": pl.when(judged).then(effective_gogc()).round(6),
        "true_live": pl.when(steady).then(true_live_mib()),
    }
    mine = corrected.select(
        own.alias("own"), *_FACTS, seam=alloc_before_mib(), **values
    ).filter("own")
    spreads = {name: _counted(mine[name]) for name in values if name != "true_live"}
    spreads["pause_ms"] = _counted(single_pauses(corrected.filter(own)))
    late = corrected.filter(own & (pl.col("start_s") >= t.warm_up_s))
    first, last = (mine.select(_FACTS).row(at, named=True) for at in (0, -1))
    return Stretch(
        figures, first, last, spreads,
        _thinned(late.select("start_s", "heap_live_mib").drop_nulls()),
        mine["seam"][0], (float(mine["true_live"].sum()), mine["true_live"].count()),
    )  # fmt: skip


def pooled(stretches: Sequence[Stretch]) -> Row:
    """The figures of one program from its stretches, in order."""
    every = [each.figures for each in stretches]
    found: Row = {name: _total(every, name) for name in _SUMS}
    found |= {name: _most(every, name, max) for name in _LARGEST}
    covered = _covered_s(every)
    for one, other in pairwise(stretches):
        covered += _add_seam(found, one.last, other)
    idle = _less(found["gc_cpu_with_idle_s"], found["gc_cpu_s"])
    capacity, gc, span = found["capacity_cpu_s"], found["gc_cpu_s"], found["span_s"]
    first, last = stretches[0].first, stretches[-1].last
    live, count = (sum(each.true_live[i] for each in stretches) for i in (0, 1))
    assist = _weighted(every, "assist_share_of_gc_cpu", "gc_cpu_s")
    return (
        found
        | {name: _quantile(stretches, *what) for name, what in _QUANTILES.items()}
        | {
            "gc_per_s": _over(
                _less(last["gc_num"], first["gc_num"]),
                _less(last["start_s"], first["start_s"]),
            ),
            "gc_cpu_share": _over(gc, capacity),
            "gc_cpu_with_idle_share": _over(found["gc_cpu_with_idle_s"], capacity),
            "gc_cpu_nonidle_share": _over(gc, _less(capacity, idle)),
            "gc_active_share": _over(_weighted(every, "gc_active_share", "span_s"), span),
            "assist_share_of_gc_cpu": _over(assist, gc),
            "assist_share_of_cpu": _over(assist, capacity),
            "stw_share": _over(found["stw_total_ms"], None if span is None else span * 1000),
            "alloc_mib_per_s": _over(found["alloc_total_mib"], covered),
            "true_live_heap_mib": _over(live, count),
        }
        | _growth(stretches)
    )


def _add_seam(found: Row, last: Row, other: Stretch) -> float:
    """Adds what lies between two stretches; the seconds over which allocation is known."""
    first = other.first
    between = max(first["gc_num"] - last["gc_num"] - 1, 0)
    found["missing_cycles"] += between
    apart = _less(first["start_s"], last["end_s"])
    if apart is None:
        return 0.0
    found["span_s"] += apart
    if first["procs"] is not None and found["capacity_cpu_s"] is not None:
        found["capacity_cpu_s"] += apart * first["procs"]
    if other.seam_alloc_mib is None or found["alloc_total_mib"] is None:
        return 0.0
    found["alloc_total_mib"] += other.seam_alloc_mib
    return float(_less(first["end_s"], last["end_s"]) or 0.0)


def _covered_s(every: Sequence[Row]) -> float:
    """The seconds that the stretches' allocation rates are of."""
    known = (row for row in every if row["alloc_mib_per_s"])
    return float(sum(row["alloc_total_mib"] / row["alloc_mib_per_s"] for row in known))


def _total(every: Sequence[Row], name: str) -> Any:
    known = [row[name] for row in every if row[name] is not None]
    return sum(known) if known else None


def _most(every: Sequence[Row], name: str, which: Callable[..., Any]) -> Any:
    return which((row[name] for row in every if row[name] is not None), default=None)


def _weighted(every: Sequence[Row], share: str, of: str) -> float | None:
    known = [row[share] * row[of] for row in every if row[share] is not None and row[of]]
    return sum(known) if known else None


def _less(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _over(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _counted(values: pl.Series) -> pl.DataFrame:
    known = values.drop_nulls().cast(pl.Float64).alias("value")
    return known.value_counts(name="count")


def _quantile(stretches: Sequence[Stretch], name: str, q: float) -> float | None:
    """The quantile of counted values, linear between neighbours, as Polars has it."""
    counted = pl.concat([each.spreads[name] for each in stretches])
    whole = counted.group_by("value").agg(pl.col("count").sum()).sort("value")
    total = int(whole["count"].sum())
    if not total:
        return None
    at = q * (total - 1)
    last = whole["count"].cast(pl.Int64).cum_sum() - 1  # the place of each value's last one
    low, high = (
        float(whole["value"][int(last.search_sorted(place))])
        for place in (int(at), min(int(at) + 1, total - 1))
    )
    return low + (high - low) * (at - int(at))


def _thinned(series: pl.DataFrame) -> pl.DataFrame:
    size = max(len(series) // POINTS, 1)
    return (
        series.with_row_index("row")
        .group_by(pl.col("row") // size, maintain_order=True)
        .agg(pl.col("start_s", "heap_live_mib").median())
        .select("start_s", "heap_live_mib")
    )


def _growth(stretches: Sequence[Stretch]) -> Row:
    trend = slope(pl.concat([each.live for each in stretches]), x="start_s", y="heap_live_mib")
    ends = (None, None, None) if trend is None else (trend.per_s, trend.low, trend.high)
    return {
        f"{_GROWTH}{end}": None if value is None else value * 3600
        for end, value in zip(("", "_low", "_high"), ends, strict=True)
    }
