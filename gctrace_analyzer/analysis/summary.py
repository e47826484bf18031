"""The headline figures of a log, or of one process in it."""

from __future__ import annotations

from dataclasses import asdict, fields
from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.caveats import caveats, log_check_points
from gctrace_analyzer.analysis.cycles import (
    alloc_before_mib,
    alloc_while_marking_mib,
    counted_alloc_mib,
    gc_cpu_ms,
    pauses_ms,
    since_before,
    true_live_mib,
)
from gctrace_analyzer.analysis.durations import correct_durations, on_real_cpus
from gctrace_analyzer.analysis.neighbours import within_process
from gctrace_analyzer.analysis.pauses import single_pauses
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.analysis.trend import MIN_POINTS, slope
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.rows import not_null, since

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gctrace_analyzer.analysis.neighbours import Within


@frozen
class Summary:
    """What the garbage collector did, in numbers; None where the log has no such figure.

    Shares are 0–1. `gc_cpu_*` and `assist_share_of_cpu` are shares of `cpus` × time, summed over
    the processes; `cpus` is GOMAXPROCS, or fewer if the log or the settings show that there are
    fewer CPUs. `gc_cpu_cores` is CPU seconds per second. `gc_cpu_share` does not count idle
    marking, like the percentage that the runtime prints; `gc_cpu_with_idle_share` counts it;
    `gc_cpu_nonidle_share` subtracts it from the denominator. Durations and their totals are
    corrected for the truncation of the printed ones (see `durations`). `estimated` names the
    figures that rest on an assumption.
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
    gc_cpu_cores: float | None
    gc_cpu_with_idle_cores: float | None
    cpus: float | None
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
    estimated: tuple[str, ...] = ()

    @property
    def is_in_bursts(self) -> bool:
        """Whether most cycles follow each other far faster than the rate of the whole log."""
        if not self.gc_per_s or self.gc_interval_p50_ms is None:
            return False
        return self.gc_interval_p50_ms < _IN_BURSTS * 1000 / self.gc_per_s

    @property
    def stopped_gc_share(self) -> float | None:
        """The share of GC CPU that pauses take, in which all CPUs count; None if unknown."""
        share = ratio(self.stw_share, self.gc_cpu_share)
        return None if share is None else min(share, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures by name, ready for JSON."""
        lists = {"warnings": list(self.warnings), "estimated": list(self.estimated)}
        return {**asdict(self), **lists}


_IN_BURSTS = 0.2
"""The median interval, as a share of the mean, below which the mean describes no cycle: a start-up
or requests at times, and idle cycles every two minutes."""

FIGURES = tuple(
    field.name for field in fields(Summary) if field.name not in ("warnings", "estimated")
)
"""The names of the figures."""


def summarize(
    cycles: pl.DataFrame,
    processes: pl.DataFrame,
    *,
    durations: pl.DataFrame | None = None,
    corrected: pl.DataFrame | None = None,
    known: pl.DataFrame | None = None,
    cpu_limit: float | None = None,
    impossible: Mapping[str, int] | None = None,
    notes: Sequence[str] = (),
) -> Summary:
    """Returns the figures of `cycles`, which may be of several processes.

    Args:
        cycles: `schema.CYCLES`.
        processes: `schema.PROCESSES` of these cycles.
        durations: what `correct_durations` returns for these cycles, if it is known already.
        corrected: what `on_real_cpus` returns for them, if it is known already.
        known: what `since_before` returns for them, if it is known already.
        cpu_limit: the CPUs that the program may use, if known.
        impossible: number of values that were dropped as impossible, by column.
        notes: sentences from reading the log, which are appended to the warnings.
    """
    if durations is None:
        durations = correct_durations(cycles)
    if corrected is None:
        corrected = on_real_cpus(durations, cpu_limit)
    if known is None:
        known = since_before(cycles)
    check = log_check_points(durations)
    within = within_process(corrected)
    figures = {
        "cycles": len(cycles),
        "forced_cycles": int(cycles["forced"].sum()),
        "missing_cycles": int(processes["missing_cycles"].sum()),
        **_sums_and_medians(corrected, known, DEFAULT, within),
        **_single_pauses(corrected),
        **growth_figures(cycles, DEFAULT),
        "log_check_points": check,
    }
    warnings = caveats(cycles, processes, impossible or {}, check, DEFAULT)
    return Summary(**figures, warnings=(*warnings, *notes))


def _total(values: pl.Expr) -> pl.Expr:
    """Returns the sum; null, not 0, if all values are null."""
    return pl.when(values.count() > 0).then(values.sum())


@cache
def _sums(within: Within) -> dict[str, pl.Expr]:
    """Returns what shares and rates are calculated from.

    It is built once, because a log may have hundreds of processes.
    """
    capacity = pl.col("elapsed_s") * pl.col("cpus")
    steps = (within(pl.col(name).diff()) for name in ("gc_num", "start_s"))
    return {
        "span_s": _total(pl.col("elapsed_s")),
        "capacity_s": _total(capacity),
        "gc_cpu_s": _total(gc_cpu_ms()) / 1000,
        "idle_s": _total(pl.col("idle_cpu_ms")) / 1000,
        "assist_s": _total(pl.col("assist_cpu_ms")) / 1000,
        "stw_total_ms": _total(pauses_ms()),
        "active_s": _total(pauses_ms() + pl.col("concurrent_mark_ms")) / 1000,
        "steps": _total(next(steps)),
        "steps_s": _total(next(steps)),
        "gc_interval_p50_ms": not_null(pl.col("interval_s")).median() * 1000,
    }


def _time_and_cpu(sums: dict[str, Any]) -> dict[str, Any]:
    span, capacity, gc_cpu = sums["span_s"], sums["capacity_s"], sums["gc_cpu_s"]
    idle = sums["idle_s"] or 0.0
    return {
        "span_s": span,
        "gc_per_s": ratio(sums["steps"], sums["steps_s"]),
        "gc_interval_p50_ms": sums["gc_interval_p50_ms"],
        "gc_cpu_share": ratio(gc_cpu, capacity),
        "gc_cpu_with_idle_share": ratio(None if gc_cpu is None else gc_cpu + idle, capacity),
        "gc_cpu_nonidle_share": ratio(gc_cpu, None if capacity is None else capacity - idle),
        "gc_cpu_cores": ratio(gc_cpu, span),
        "gc_cpu_with_idle_cores": ratio(None if gc_cpu is None else gc_cpu + idle, span),
        "cpus": ratio(capacity, span),
        "gc_active_share": ratio(sums["active_s"], span),
        "assist_share_of_gc_cpu": ratio(sums["assist_s"], gc_cpu),
        "assist_share_of_cpu": ratio(sums["assist_s"], capacity),
        "stw_total_ms": sums["stw_total_ms"],
        "stw_share": ratio(sums["stw_total_ms"], None if span is None else span * 1000),
    }


def ratio(part: float | None, whole: float | None) -> float | None:
    """Returns the quotient; None if one of the two is unknown or the whole is 0."""
    return part / whole if part is not None and whole else None


def _single_pauses(corrected: pl.DataFrame) -> dict[str, Any]:
    each_ms = single_pauses(corrected)
    return {
        "stw_p50_ms": each_ms.quantile(0.5, "linear"),
        "stw_p99_ms": each_ms.quantile(0.99, "linear"),
        "stw_max_ms": each_ms.max(),
    }


@cache
def _sizes(thresholds: Thresholds) -> dict[str, pl.Expr]:
    """Returns the figures of the heap; they need `_between` and what `since_before` returns."""
    steady = (pl.col("start_s") >= thresholds.warm_up_s) & ~pl.col("forced")
    between, gogc = pl.col("_between"), pl.col("effective_gogc")
    large_enough = pl.col("_live") >= thresholds.gogc_min_live_mib
    return {
        "alloc_total_mib": _total(alloc_while_marking_mib()) + between.sum(),
        # What the first cycle of a log allocated while it marked has no time of its own.
        "counted_mib": _total(counted_alloc_mib(between)),
        "covered_s": pl.col("elapsed_s").filter(between.is_not_null()).sum(),
        "live_heap_p50_mib": not_null(pl.col("heap_live_mib")).median(),
        "true_live_heap_mib": true_live_mib().filter(steady).mean(),
        "live_heap_max_mib": pl.col("heap_live_mib").max().cast(pl.Float64),
        "heap_peak_mib": pl.col("heap_end_mib").max().cast(pl.Float64),
        "heap_goal_p50_mib": not_null(pl.col("heap_goal_mib")).median(),
        "effective_gogc_p50": not_null(gogc.filter(large_enough)).median(),
    }


@cache
def _between(within: Within) -> pl.Expr:
    """Returns what was allocated since the cycle before."""
    return alloc_before_mib(pl.col("_live"), within).alias("_between")


def _sums_and_medians(
    corrected: pl.DataFrame, known: pl.DataFrame, thresholds: Thresholds, within: Within
) -> dict[str, Any]:
    rows = corrected.with_columns(*known).with_columns(_between(within)).rechunk()
    sizes = _sizes(thresholds)
    row = rows.select(**_sums(within), **sizes).row(0, named=True)
    heap = {name: row[name] for name in sizes}
    counted, covered = heap.pop("counted_mib"), heap.pop("covered_s")
    return {**_time_and_cpu(row), **heap, "alloc_mib_per_s": ratio(counted, covered)}


def growth_figures(cycles: pl.DataFrame, thresholds: Thresholds) -> dict[str, Any]:
    """Returns the growth of the live heap; None if the cycles are of several processes."""
    name = "live_heap_growth_mib_per_h"
    trend = None
    if len(cycles) >= MIN_POINTS and cycles["process"].n_unique() == 1:
        steady = since(cycles[["start_s", "heap_live_mib"]], thresholds.warm_up_s)
        trend = slope(steady, x="start_s", y="heap_live_mib")
    if trend is None:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    per_h = (trend.per_s * 3600, trend.low * 3600, trend.high * 3600)
    return dict(zip((name, f"{name}_low", f"{name}_high"), per_h, strict=True))
