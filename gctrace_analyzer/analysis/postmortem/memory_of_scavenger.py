"""The heap in the last line of the scavenger: idle, kept and returned memory."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.analysis.postmortem.memory_of_dumps import Memory
    from gctrace_analyzer.schema import Row


def last_scavenge(tables: Mapping[str, pl.DataFrame]) -> Row | None:
    """Returns the last line with the total of returned memory; None without one.

    In a log with cycles, a line without a process is a quotation.
    """
    lines = tables["scavenges"]
    needed = ["released_total_kib", *["process"] * bool(len(tables["cycles"]))]
    known = lines.drop_nulls(needed) if len(lines) else lines
    return None if known.is_empty() else known.row(-1, named=True)


def calls_of_free_os_memory(scavenges: pl.DataFrame) -> dict[int | None, int]:
    """Returns how often each process called debug.FreeOSMemory, as its scavenger printed.

    Nothing else forces the scavenger, whose lines have the number -1 up to Go 1.12.
    """
    if scavenges.is_empty():
        return {}  # The case of most logs.
    is_call = pl.col("forced").fill_null(value=False) | pl.col("scavenge_num").eq_missing(-1)
    # There is another line for each call that returned memory.
    calls = scavenges.drop_nulls("released_total_kib").filter(is_call)
    return dict(calls.group_by("process").len().iter_rows())


def idle_kept_mib(scavenge: Row) -> float:
    """Returns the idle memory in MiB that is not returned, from a line with all sizes."""
    kept: float = scavenge["idle_mib"] - scavenge["released_total_kib"] / 1024
    return max(0.0, kept)


def memory_of_scavenger(tables: Mapping[str, pl.DataFrame]) -> tuple[Memory, ...]:
    """Returns the last line as a dump would show it; none if the line or its cycles are missing.

    A cycle next to the line bounds the heap in use: at least what it marked as live, at most its
    goal, or its end if that is higher, because the next cycle starts below that. Up to Go 1.13 the
    line has the sizes. Later lines have only the used share of the kept memory, truncated to whole
    per cent: the live heap then gives lower bounds.

    Source: scavenge of runtime/mheap.go (go1.13), printScavTrace of runtime/mgcscavenge.go.
    """
    line = last_scavenge(tables)
    heap = None if line is None else _heap_near(line, tables["cycles"])
    if line is None or heap is None:
        return ()
    live, most = heap
    kept = _kept_mib(line, live)
    return () if kept is None else (_memory(line, kept, live, most),)


def _heap_near(line: Row, cycles: pl.DataFrame) -> tuple[float, float] | None:
    """Returns the least live heap and the largest heap around a line, in MiB; None: unknown."""
    if line["process"] is None:
        return None
    after = line["after_gc"] or 0
    near = cycles.filter(
        pl.col("process") == line["process"], pl.col("gc_num").is_between(after, after + 1)
    )
    live, goal, end = near.select(
        pl.col("heap_live_mib").min(),
        pl.col("heap_goal_mib").max(),
        pl.col("heap_end_mib").max(),
    ).row(0)
    return None if None in (live, goal, end) else (float(live), float(max(goal, end)))


def _kept_mib(line: Row, live_mib: float) -> float | None:
    """Returns the idle memory that is kept, or its lower bound, in MiB; None: unknown."""
    if line["idle_mib"] is not None and line["sys_mib"] is not None:
        return idle_kept_mib(line)
    in_use_pct = line["heap_in_use_pct"]
    return None if in_use_pct is None else max(live_mib * (100 / (in_use_pct + 1) - 1), 0.0)


def _memory(line: Row, kept_mib: float, live_mib: float, most_mib: float) -> Memory:
    from gctrace_analyzer.analysis.postmortem.memory_of_dumps import Memory

    returned_mib, in_use_mib = line["released_total_kib"] / 1024, line["inuse_mib"]
    unknown: dict[str, Any] = dict.fromkeys(field.name for field in fields(Memory))
    known = {
        "source": str(line["source"]),
        "dumps": 0,
        "heap_sys_mib": line["sys_mib"] or live_mib + kept_mib + returned_mib,
        "released_mib": returned_mib,
        "idle_unreleased_mib": kept_mib,
        "spare_mib": max(kept_mib - (most_mib - live_mib), 0.0),
        "fragmentation_mib": None if in_use_mib is None else max(in_use_mib - most_mib, 0.0),
        "alloc_mib": most_mib,
        "advice": (),
    }
    return Memory(**unknown | known)
