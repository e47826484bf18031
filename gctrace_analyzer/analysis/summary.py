"""The figures of a whole log, and of each program start in it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.caveats import caveats
from gctrace_analyzer.analysis.cycles import before, effective_gogc, elapsed_s, end_s, gc_cpu_ms
from gctrace_analyzer.analysis.durations import with_corrected
from gctrace_analyzer.analysis.heap import (
    alloc_before_mib,
    alloc_while_marking_mib,
    true_live_mib,
)
from gctrace_analyzer.analysis.pauses import single_pauses
from gctrace_analyzer.analysis.selfcheck import log_check_points
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.analysis.trend import slope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Summary:
    """What the collector did, in numbers; None where the log does not tell.

    Shares are 0–1. `gc_cpu_*` and `assist_share_of_cpu` are of GOMAXPROCS × time, summed over
    the processes; `gc_cpu_share` leaves idle marking out, as the runtime's own percentage does,
    `gc_cpu_with_idle_share` counts it, `gc_cpu_nonidle_share` takes it off the denominator.
    Durations and their totals are corrected for the truncation of the printed ones.
    """

    cycles: int
    forced_cycles: int
    missing_cycles: int
    span_s: float | None
    gc_per_s: float | None
    gc_interval_p50_ms: float | None
    gc_cpu_share: float | None
    gc_cpu_with_idle_share: float | None
    gc_cpu_nonidle_share: float | None
    gc_active_share: float | None
    assist_share_of_gc_cpu: float | None
    assist_share_of_cpu: float | None
    stw_total_ms: float | None
    stw_share: float | None
    stw_p50_ms: float | None
    stw_p99_ms: float | None
    stw_max_ms: float | None
    alloc_total_mib: float | None
    alloc_mib_per_s: float | None
    live_heap_p50_mib: float | None
    true_live_heap_mib: float | None
    live_heap_max_mib: float | None
    heap_peak_mib: float | None
    heap_goal_p50_mib: float | None
    effective_gogc_p50: float | None
    live_heap_growth_mib_per_h: float | None
    live_heap_growth_mib_per_h_low: float | None
    live_heap_growth_mib_per_h_high: float | None
    log_check_points: float | None
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The figures by name, ready for JSON."""
        return {**asdict(self), "warnings": list(self.warnings)}


FIGURES = tuple(field.name for field in fields(Summary) if field.name != "warnings")


def summarize(
    cycles: pl.DataFrame,
    processes: pl.DataFrame,
    *,
    impossible: Mapping[str, int] | None = None,
    said: Sequence[str] = (),
    thresholds: Thresholds = DEFAULT,
) -> Summary:
    """The figures of `cycles`, which may be of several processes.

    Args:
        cycles: `schema.CYCLES`.
        processes: `schema.PROCESSES` of these cycles.
        impossible: values that became null as they cannot be, by column.
        said: what was noticed while reading, to be said with the caveats.
        thresholds: where warm-up ends and small heaps begin.
    """
    corrected = correct_durations(cycles)
    check = log_check_points(corrected)
    figures = {
        "cycles": len(cycles),
        "forced_cycles": int(cycles["forced"].sum()),
        "missing_cycles": int(processes["missing_cycles"].sum()),
        **_time_and_cpu(corrected),
        **_single_pauses(corrected),
        **_heap(corrected, thresholds),
        **_growth(cycles, thresholds),
        "log_check_points": check,
    }
    notes = caveats(cycles, processes, impossible or {}, check, thresholds)
    return Summary(**figures, warnings=(*notes, *said))


def correct_durations(cycles: pl.DataFrame) -> pl.DataFrame:
    """The cycles with the likeliest true durations, `end_s` and `elapsed_s`."""
    corrected = with_corrected(cycles).with_columns(end_s().alias("end_s"))
    return corrected.with_columns(elapsed_s().alias("elapsed_s"))


def _total(values: pl.Expr) -> pl.Expr:
    """The sum; null, not 0, where there is nothing to add up."""
    return pl.when(values.count() > 0).then(values.sum())


def _time_and_cpu(corrected: pl.DataFrame) -> dict[str, Any]:
    per_s = pl.col("elapsed_s") * pl.col("procs")
    pauses_ms = pl.col("stw_sweep_term_ms").fill_null(0) + pl.col("stw_mark_term_ms")
    steps = (pl.col(name).diff().over("process") for name in ("gc_num", "start_s"))
    intervals = pl.col("start_s") - before("start_s")
    sums = corrected.select(
        span_s=_total(pl.col("elapsed_s")),
        capacity_s=_total(per_s),
        gc_cpu_s=_total(gc_cpu_ms()) / 1000,
        idle_s=_total(pl.col("idle_cpu_ms")) / 1000,
        assist_s=_total(pl.col("assist_cpu_ms")) / 1000,
        stw_total_ms=_total(pauses_ms),
        active_s=_total(pauses_ms + pl.col("concurrent_mark_ms")) / 1000,
        steps=_total(next(steps)),
        steps_s=_total(next(steps)),
        gc_interval_p50_ms=intervals.median() * 1000,
    ).row(0, named=True)
    span, capacity, gc_cpu = sums["span_s"], sums["capacity_s"], sums["gc_cpu_s"]
    idle = sums["idle_s"] or 0.0
    return {
        "span_s": span,
        "gc_per_s": _share(sums["steps"], sums["steps_s"]),
        "gc_interval_p50_ms": sums["gc_interval_p50_ms"],
        "gc_cpu_share": _share(gc_cpu, capacity),
        "gc_cpu_with_idle_share": _share(None if gc_cpu is None else gc_cpu + idle, capacity),
        "gc_cpu_nonidle_share": _share(gc_cpu, None if capacity is None else capacity - idle),
        "gc_active_share": _share(sums["active_s"], span),
        "assist_share_of_gc_cpu": _share(sums["assist_s"], gc_cpu),
        "assist_share_of_cpu": _share(sums["assist_s"], capacity),
        "stw_total_ms": sums["stw_total_ms"],
        "stw_share": _share(sums["stw_total_ms"], None if span is None else span * 1000),
    }


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _single_pauses(corrected: pl.DataFrame) -> dict[str, Any]:
    pauses_ms = single_pauses(corrected)
    return {
        "stw_p50_ms": pauses_ms.quantile(0.5, "linear"),
        "stw_p99_ms": pauses_ms.quantile(0.99, "linear"),
        "stw_max_ms": pauses_ms.max(),
    }


def _heap(corrected: pl.DataFrame, thresholds: Thresholds) -> dict[str, Any]:
    steady = (pl.col("start_s") >= thresholds.warm_up_s) & ~pl.col("forced")
    between = alloc_before_mib()
    judged = before("heap_live_mib") >= thresholds.gogc_min_live_mib
    row = corrected.select(
        alloc_total_mib=_total(alloc_while_marking_mib()) + between.sum(),
        covered_s=pl.col("elapsed_s").filter(between.is_not_null()).sum(),
        live_heap_p50_mib=pl.col("heap_live_mib").median(),
        true_live_heap_mib=true_live_mib().filter(steady).mean(),
        live_heap_max_mib=pl.col("heap_live_mib").max().cast(pl.Float64),
        heap_peak_mib=pl.col("heap_end_mib").max().cast(pl.Float64),
        heap_goal_p50_mib=pl.col("heap_goal_mib").median(),
        effective_gogc_p50=effective_gogc().filter(judged).median(),
    ).row(0, named=True)
    covered = row.pop("covered_s")
    return {**row, "alloc_mib_per_s": _share(row["alloc_total_mib"], covered)}


def _growth(cycles: pl.DataFrame, thresholds: Thresholds) -> dict[str, Any]:
    """Of one program only: the live heaps of several are no series."""
    name = "live_heap_growth_mib_per_h"
    steady = cycles.filter(pl.col("start_s") >= thresholds.warm_up_s)
    one = cycles["process"].n_unique() == 1
    trend = slope(steady, x="start_s", y="heap_live_mib") if one else None
    if trend is None:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    per_h = (trend.per_s * 3600, trend.low * 3600, trend.high * 3600)
    return dict(zip((name, f"{name}_low", f"{name}_high"), per_h, strict=True))
