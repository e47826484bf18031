"""The CPU time of units according to systemd, and the share of GC in it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.postmortem.death import Death
from gctrace_analyzer.analysis.postmortem.match import match_process
from gctrace_analyzer.analysis.spans import select
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.units import MIB, duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    num_gc: int | None


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
        num_gc=_last_num_gc(row, tables["memstats"]),
    )


def _is_whole(process: int, log: Log) -> bool:
    """Returns whether the log has all cycles of the process."""
    tables = (log.tables["processes"], log.all_processes)
    selected, inputs = (each.filter(process=process)["cycles"].to_list() for each in tables)
    return bool(selected == inputs)


def _last_num_gc(row: Row, memstats: pl.DataFrame) -> int | None:
    """Returns NumGC of the last MemStats dump of the same container."""
    identifier = row["container_id"]
    if not identifier or memstats.is_empty():
        return None
    dumps = memstats.filter(
        pl.any_horizontal(
            pl.lit(identifier).str.starts_with(pl.col(name).fill_null("-"))
            for name in ("ident", "container_id")
        )
    )["num_gc"].drop_nulls()
    return int(dumps[-1]) if len(dumps) else None


SAME_WORK = 0.02
"""Relative difference of the total allocation. Below it, two runs did the same work."""

MANY_TIMES = 3.0
"""Ratio of the GC cycles of two runs with the same work that is not chance."""


def compared(tables: Mapping[str, pl.DataFrame]) -> Iterator[str]:
    """Yields a sentence for each pair of runs with the same work, one with far more GC.

    GC cycles and allocation come from MemStats dumps, the CPU time from systemd units.
    """
    dumps = tables["memstats"].drop_nulls(["total_alloc_bytes", "num_gc"])
    if dumps.is_empty():
        return
    identity = ["host", "ident", "container", "container_id", "pod"]
    last = dumps.group_by(identity, maintain_order=True).agg(
        pl.col("total_alloc_bytes", "num_gc", "alloc_bytes").last()
    )
    cpu = {
        event["container_id"]: event["cpu_s"]
        for event in tables["unit_events"].filter(event="consumed").iter_rows(named=True)
        if event["container_id"]
    }
    rows = last.sort("num_gc").to_dicts()
    for few, many in pairwise(rows):
        difference = abs(few["total_alloc_bytes"] - many["total_alloc_bytes"])
        same = difference <= SAME_WORK * many["total_alloc_bytes"]
        if same and few["num_gc"] and many["num_gc"] >= MANY_TIMES * few["num_gc"]:
            total = many["total_alloc_bytes"] / MIB
            spent = [_cpu_of(row, cpu) for row in (few, many)]
            cpu_text = ""
            if spent[0] is not None and spent[1] is not None:
                less, more = duration_text(spent[0]), duration_text(spent[1])
                cpu_text = f" and {more} instead of {less} of CPU time"
            yield (
                f"For the same work ({total:,.0f} MiB allocated) {many['ident'] or 'one run'} "
                f"needed {many['num_gc']:,} instead of {few['num_gc']:,} GC cycles{cpu_text}: "
                "something kept its heap goal low, such as a memory limit (GOMEMLIMIT) below "
                "what the program needs."
            )


def _cpu_of(row: Row, cpu: Mapping[str, float]) -> float | None:
    """Returns the CPU time of the container with the name or id of the row."""
    named = [name for name in (row["ident"], row["container_id"]) if name]
    return next((s for key, s in cpu.items() if any(key.startswith(n) for n in named)), None)
