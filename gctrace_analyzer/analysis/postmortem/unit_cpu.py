"""The CPU time of units according to systemd, and the share of GC in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.postmortem.death import Death
from gctrace_analyzer.analysis.postmortem.match import match_process
from gctrace_analyzer.analysis.spans import select
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from gctrace_analyzer.ingest.read import Log
    from gctrace_analyzer.schema import Row


@frozen
class Consumed:
    """One run of a unit: its CPU time and, if its cycles are known, the part spent on GC.

    `gc_cpu_share` is GC CPU time (without idle marking) divided by the CPU time that the unit
    used, not by the time of all CPUs. `complete` is True if the log has all cycles of the run.
    """

    unit: str
    cpu_s: float
    wall_s: float | None
    memory_peak_mib: float | None
    process: int | None
    gc_cpu_s: float | None
    gc_cpu_share: float | None
    complete: bool


def consumed(log: Log, spans: pl.DataFrame) -> list[Consumed]:
    """Returns one entry for each `Consumed` line of systemd, in their order.

    Args:
        log: the log.
        spans: its cycles as spans.
    """
    events = log.tables["unit_events"].filter(event="consumed").drop_nulls("cpu_s")
    return [_consumed(row, log, spans) for row in events.iter_rows(named=True)]


def _consumed(row: Row, log: Log, spans: pl.DataFrame) -> Consumed:
    tables, processes = log.tables, log.all_processes
    # Only gctrace has the GC CPU of a whole process.
    processes = processes if len(tables["cycles"]) else processes.clear()
    match = match_process(Death.of(row), processes)
    spent = share = process = None
    complete = False
    if match and match.match_by[0] in ("unit", "container") and _is_whole(match.process, log):
        process = match.process
        spent = float(select(spans.filter(process=process), "gc_cpu_s").sum().item())
        share = spent / row["cpu_s"] if row["cpu_s"] else None
        facts = tables["processes"].row(by_predicate=pl.col("process") == process, named=True)
        complete = facts["first_gc"] == 1 and not facts["missing_cycles"]
    peak = row["memory_peak_bytes"]
    return Consumed(
        unit=row["unit"],
        cpu_s=row["cpu_s"],
        wall_s=row["wall_s"],
        memory_peak_mib=None if peak is None else peak / MIB,
        process=process,
        gc_cpu_s=spent,
        gc_cpu_share=share,
        complete=complete,
    )


def _is_whole(process: int, log: Log) -> bool:
    """Returns whether the log has all cycles of the process."""
    tables = (log.tables["processes"], log.all_processes)
    selected, inputs = (each.filter(process=process)["cycles"].to_list() for each in tables)
    return bool(selected == inputs)
