"""Spans: what happened between two moments of a process, one row each, from any input.

A cycle of gctrace is the span from the end of the cycle before to its own end. Two successive dumps
or scrapes bound a span of several cycles (`metrics.intervals.spans`). Values that a source does not
show are null. `totals` adds spans up, and divides the sums.

Columns, besides those of the source:

- `process begin_s start_s end_s elapsed_s wall_time`: `start_s` is the start of the cycle, null
where a span has several; `wall_time` is the moment of `start_s`, or else of `begin_s`. - `cycles
forced_cycles counted_s first_gc gc_num`: the cycles, the time in which they were counted, the first
and the last one. `steps steps_s`: cycles from one moment to another. - `gc_cpu_s` with its bounds
`gc_cpu_low_s gc_cpu_high_s`, `idle_cpu_s assist_cpu_s`, and the `capacity_s` to divide them by,
which is the time of all CPUs in `capacity_time_s`; `capacity_between_s` is null for the first cycle
of a late log, because the time before it is unknown. `active_s pause_total_ms pause_max_ms`. -
`in_cycle_mib between_mib allocated_mib rounding_mib`: allocation since the start of the cycle,
allocation before it, their sum if known for the whole span, and the possible error of the sum by
truncation. - `heap_live_mib heap_goal_mib heap_peak_mib true_live_mib`, and `shown_gogc`, the
effective GOGC of a heap large enough to show it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.cycles import (
    alloc_before_mib,
    alloc_while_marking_mib,
    capacity_s,
    counted_alloc_mib,
    gc_cpu_ms,
    grown_mib,
    is_of_unknown_time,
    marking_cpu_ms,
    pauses_ms,
    share_of_capacity,
    since_before,
    true_live_mib,
)
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.ingest.gctrace.columns import printed_ms, stopping, stops_for_all
from gctrace_analyzer.ingest.rows import in_steps, is_long, within_process

if TYPE_CHECKING:
    from gctrace_analyzer.ingest.rows import Within


def of_cycles(corrected: pl.DataFrame, known: pl.DataFrame | None = None) -> pl.DataFrame:
    """Returns the cycles as spans, with all their columns.

    For a long log, columns that follow from one row are not stored but calculated when needed: some
    twenty columns would take more memory than all printed values.

    Args:
        corrected: what `on_real_cpus` returns.
        known: what `since_before` returns for these cycles, if known already.
    """
    of_before = since_before(corrected) if known is None else known
    rows = in_steps(corrected, [*of_before], _of_process(within_process(corrected)))
    if len(stopping(corrected)):
        # The goal of a stop-the-world cycle is the heap at its start.
        rows = rows.with_columns(heap_goal_mib=pl.when(~stops_for_all()).then("heap_goal_mib"))
    if not is_long(rows):
        return whole(rows)
    if rows["steps_s"].equals(rows["interval_s"]):  # No cycle is missing.
        rows = rows.with_columns(steps=pl.lit(1.0), steps_s="interval_s")
    return rows.rechunk()


def whole(spans: pl.DataFrame) -> pl.DataFrame:
    """Returns spans with all their columns."""
    if _is_whole(spans):
        return spans
    return in_steps(spans, *_of_row()).rechunk()


def select(spans: pl.DataFrame, *columns: pl.Expr | str) -> pl.DataFrame:
    """Returns `spans.select(columns)`, after adding the columns that are not stored."""
    if _is_whole(spans):
        return spans.select(columns)
    # All at once would need the memory that storing them needs.
    begins = range(0, len(columns), _AT_ONCE)
    parts = (_selected(spans, *columns[begin : begin + _AT_ONCE]) for begin in begins)
    return pl.concat(parts, how="horizontal")


_AT_ONCE = 12
"""Columns calculated together: several need the same columns that are not stored."""


def columns(spans: pl.DataFrame, *names: str) -> dict[str, pl.Series]:
    """Returns columns by name, without those that the source does not show."""
    shown = {name: spans[name] for name in names if name in spans.columns}
    lacking = () if _is_whole(spans) else set(names) - shown.keys()
    return {**shown, **{name: select(spans, name).to_series() for name in lacking}}


def _is_whole(spans: pl.DataFrame) -> bool:
    return "_is_first" not in spans.columns or "rounding_mib" in spans.columns


def _selected(spans: pl.DataFrame, *columns: pl.Expr | str) -> pl.DataFrame:
    needed = (pl.col(each) if isinstance(each, str) else each for each in columns)
    names = {name for column in needed for name in column.meta.root_names()}
    steps: list[dict[str, pl.Expr]] = []
    for step in reversed(_of_row()):
        steps.append({name: value for name, value in step.items() if name in names})
        names.update(name for value in steps[-1].values() for name in value.meta.root_names())
    return in_steps(spans, *reversed(steps)).select(columns)


@cache
def _of_process(within: Within) -> dict[str, pl.Expr]:
    """Returns the columns that depend on the cycle before."""
    step = within(pl.col("gc_num").diff())
    stays = within(pl.col("heap_start_mib", "heap_live_mib").diff()) == 0
    return {
        "steps": step.cast(pl.Float64),
        "steps_s": within(pl.col("start_s").diff()),
        "_is_next": step.fill_null(1) <= 1,
        "_is_first": is_of_unknown_time(within),
        "_stays": pl.all_horizontal(stays).fill_null(value=False),
    }


@cache
def _of_row() -> tuple[dict[str, pl.Expr], ...]:
    """Returns the other columns of spans of single cycles; each group needs those before."""
    elapsed, live = pl.col("elapsed_s"), pl.col("_live")
    # Columns, because Polars would calculate them each time that an expression has them.
    repeated = {
        "_pause_ms": pl.max_horizontal("stw_sweep_term_ms", "stw_mark_term_ms"),
        "_grown_mib": grown_mib(live),
    }
    steady = (pl.col("start_s") >= DEFAULT.warm_up_s) & ~pl.col("forced")
    # The GC CPU during a missing line is unknown, so its time counts for no share.
    known = pl.when("_is_next").then(elapsed)
    first = {
        "begin_s": pl.col("end_s") - elapsed,
        "cycles": pl.lit(1, pl.Int64),
        "first_gc": pl.col("gc_num"),
        "forced_cycles": pl.col("forced").cast(pl.Int64),
        "gc_cpu_s": gc_cpu_ms(pl.col("counted_pauses")) / 1000,
        "gc_cpu_low_s": gc_cpu_ms(pl.col("counted_pauses_low")) / 1000,
        "gc_cpu_high_s": (gc_cpu_ms(pl.col("counted_pauses_high")) + pl.col("waiting_cpu_ms"))
        / 1000,
        "idle_cpu_s": marking_cpu_ms("idle_cpu_ms") / 1000,
        # No goroutine that could assist runs while the program is stopped.
        "assist_cpu_s": pl.when(stops_for_all())
        .then(0.0)
        .otherwise(pl.col("assist_cpu_ms") / 1000),
        "counted_s": elapsed,
        "capacity_s": known * pl.col("cpus"),
        "capacity_time_s": known,
        "capacity_between_s": pl.when(~pl.col("_is_first")).then(known * pl.col("cpus")),
        "pause_total_ms": pauses_ms(),
        "pause_max_ms": printed_ms(pl.col("_pause_ms"), pl.col("format")),
        "in_cycle_mib": alloc_while_marking_mib().cast(pl.Float64),
        "between_mib": alloc_before_mib(pl.col("_grown_mib")),
        "heap_peak_mib": pl.col("heap_end_mib").cast(pl.Float64),
        "true_live_mib": pl.when(steady).then(true_live_mib()),
        "shown_gogc": pl.when(live >= DEFAULT.gogc_min_live_mib).then("effective_gogc"),
    }
    second = {
        "active_s": (pl.col("pause_total_ms") + pl.col("concurrent_mark_ms")) / 1000,
        # The allocation during marking of a log's first cycle has no time of its own.
        "allocated_mib": counted_alloc_mib(pl.col("between_mib")),
        "rounding_mib": _rounding_mib(),
    }
    return repeated, first, second


def gc_cpu(spans: pl.DataFrame) -> pl.DataFrame:
    """Returns `gc_cpu_ms`, and `gc_cpu_share` of the existing CPUs.

    Args:
        spans: what `of_cycles` returns.
    """
    spent, share = _gc_cpu(within_process(spans))
    return select(spans, *spent).with_columns(share)[["gc_cpu_ms", "gc_cpu_share"]]


@cache
def _gc_cpu(within: Within) -> tuple[list[pl.Expr], pl.Expr]:
    """Returns the GC CPU time and all CPU time, and the share that needs both as columns."""
    capacity = capacity_s(pl.col("cpus"), pl.col("elapsed_s"), within)
    share = share_of_capacity(pl.col("gc_cpu_ms"), pl.col("_capacity_s"))
    spent = [(1000 * pl.col("gc_cpu_s")).alias("gc_cpu_ms"), capacity.alias("_capacity_s")]
    return spent, share.alias("gc_cpu_share")


_CANCELS = 0.25
"""Share of the truncation error that remains in a sum over cycles with different sizes."""


def _rounding_mib() -> pl.Expr:
    """Returns how much truncation may change the allocation of a cycle, in a sum over cycles.

    Differences of sizes in whole MiB are off by up to 1 MiB. For sizes that stay the same, the
    errors have the same sign; for others they have both, so that most of them cancel.
    """
    known = pl.col("between_mib").is_not_null()
    return pl.when(known).then(pl.when("_stays").then(1.0).otherwise(_CANCELS))
