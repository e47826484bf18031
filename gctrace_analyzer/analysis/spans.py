"""Spans: what happened between two moments of a process, one row each, from any input.

A cycle of gctrace is the span from the end of the cycle before to its own end. Two successive
dumps or scrapes bound a span of several cycles (`metrics.intervals.spans`). What a source does not
show is null. `totals` adds spans up, and divides the sums.

Columns, besides those of the source:

- `process begin_s start_s end_s elapsed_s wall_time`: `start_s` is the start of the cycle, null
  where a span has several; `wall_time` is the moment of `start_s`, or else of `begin_s`.
- `cycles forced_cycles counted_s first_gc gc_num`: the cycles, the time in which they were counted,
  the first and the last one. `steps steps_s`: cycles from one moment to another.
- `gc_cpu_s` with its bounds `gc_cpu_low_s gc_cpu_high_s`, `idle_cpu_s assist_cpu_s`, and the
  `capacity_s` that they are a share of, which is all CPUs in `capacity_time_s`.
  `active_s pause_total_ms pause_max_ms`.
- `in_cycle_mib between_mib allocated_mib rounding_mib`: allocated from the start of the cycle on,
  before it, both if known for all of the span, and by how much truncation may move the latter.
- `heap_live_mib heap_goal_mib heap_peak_mib true_live_mib`, and `shown_gogc`, the effective GOGC of
  a heap large enough to show it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.cycles import (
    alloc_before_mib,
    alloc_while_marking_mib,
    counted_alloc_mib,
    gc_cpu_ms,
    is_of_unknown_time,
    pauses_ms,
    since_before,
    true_live_mib,
)
from gctrace_analyzer.analysis.durations import printed_ms
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.ingest.gctrace.columns import stops_for_all
from gctrace_analyzer.ingest.rows import within_process

if TYPE_CHECKING:
    from gctrace_analyzer.ingest.rows import Within


def of_cycles(corrected: pl.DataFrame, known: pl.DataFrame | None = None) -> pl.DataFrame:
    """Returns the cycles as spans, with all their columns.

    Args:
        corrected: what `on_real_cpus` returns.
        known: what `since_before` returns for them, if it is known already.
    """
    of_before = since_before(corrected) if known is None else known
    first, second = _derived(within_process(corrected))
    rows = corrected.with_columns(*of_before).with_columns(**first)
    return rows.with_columns(**second).rechunk()


@cache
def _derived(within: Within) -> tuple[dict[str, pl.Expr], dict[str, pl.Expr]]:
    """Returns the columns of spans of single cycles; the second ones need the first."""
    elapsed, live = pl.col("elapsed_s"), pl.col("_live")
    steady = (pl.col("start_s") >= DEFAULT.warm_up_s) & ~pl.col("forced")
    # What GC took in the time of a missing line is unknown, so that time counts for no share.
    whole = pl.when(within(pl.col("gc_num").diff()).fill_null(1) <= 1).then(elapsed)
    first = {
        "begin_s": pl.col("end_s") - elapsed,
        "cycles": pl.lit(1, pl.Int64),
        "first_gc": pl.col("gc_num"),
        "forced_cycles": pl.col("forced").cast(pl.Int64),
        "steps": within(pl.col("gc_num").diff()).cast(pl.Float64),
        "steps_s": within(pl.col("start_s").diff()),
        "gc_cpu_s": gc_cpu_ms(pl.col("counted_pauses")) / 1000,
        "gc_cpu_low_s": pl.when(~is_of_unknown_time(within))
        .then(gc_cpu_ms(pl.col("counted_pauses_low")) / 1000)
        .otherwise(0.0),
        "gc_cpu_high_s": gc_cpu_ms(pl.col("counted_pauses_high")) / 1000,
        "idle_cpu_s": pl.col("idle_cpu_ms").fill_null(0) / 1000,
        "assist_cpu_s": pl.col("assist_cpu_ms") / 1000,
        "counted_s": elapsed,
        "capacity_s": whole * pl.col("cpus"),
        "capacity_time_s": whole,
        "pause_total_ms": pauses_ms(),
        "pause_max_ms": printed_ms(pl.max_horizontal("stw_sweep_term_ms", "stw_mark_term_ms")),
        "in_cycle_mib": alloc_while_marking_mib().cast(pl.Float64),
        "between_mib": alloc_before_mib(live, within),
        # The goal of a cycle that stops for all is the heap at its start.
        "heap_goal_mib": pl.when(~stops_for_all()).then("heap_goal_mib"),
        "heap_peak_mib": pl.col("heap_end_mib").cast(pl.Float64),
        "true_live_mib": pl.when(steady).then(true_live_mib()),
        "shown_gogc": pl.when(live >= DEFAULT.gogc_min_live_mib).then("effective_gogc"),
    }
    second = {
        "active_s": (pl.col("pause_total_ms") + pl.col("concurrent_mark_ms")) / 1000,
        # What the first cycle of a log allocated while it marked has no time of its own.
        "allocated_mib": counted_alloc_mib(pl.col("between_mib")),
        "rounding_mib": _rounding_mib(within),
    }
    return first, second


_CANCELS = 0.25
"""Share of the truncation that is left in a sum over cycles whose sizes differ."""


def _rounding_mib(within: Within) -> pl.Expr:
    """Returns by how much truncation may move what a cycle allocated, in a sum over cycles.

    Differences of sizes in whole MiB are off by up to 1 MiB: of sizes that stay the same always to
    the same side, of others to both, so that most of it cancels.
    """
    stays = within(pl.col("heap_start_mib", "heap_live_mib").diff()) == 0
    same = pl.all_horizontal(stays).fill_null(value=False)
    known = pl.col("between_mib").is_not_null()
    return pl.when(known).then(pl.when(same).then(1.0).otherwise(_CANCELS))
