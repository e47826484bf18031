"""The CPU a unit really used, as systemd counts it, and the collector's part of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.cycles import gc_cpu_ms
from gctrace_analyzer.analysis.postmortem import match

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Consumed:
    """A unit's run: its CPU, and how much of that was GC if its cycles are here too.

    `gc_cpu_share` is GC CPU (idle marking left out) over the CPU used, not over the CPUs there
    are; `complete` says whether the log has all cycles of that run.
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


def consumed(tables: Mapping[str, pl.DataFrame]) -> list[Consumed]:
    """One per `Consumed` line, in their order."""
    events = tables["unit_events"].filter(event="consumed").drop_nulls("cpu_s")
    return [_consumed(row, tables) for row in events.iter_rows(named=True)]


def _consumed(row: match.Row, tables: Mapping[str, pl.DataFrame]) -> Consumed:
    link = match.link({**row, "pid": None}, tables["processes"])
    spent = share = process = None
    complete = False
    if link and link.match_by[0] in ("unit", "container"):
        process = link.process
        cycles = tables["cycles"].filter(process=process)
        spent = float(cycles.select(gc_cpu_ms().sum()).item()) / 1000
        share = spent / row["cpu_s"] if row["cpu_s"] else None
        facts = tables["processes"].row(by_predicate=pl.col("process") == process, named=True)
        complete = facts["first_gc"] == 1 and not facts["missing_cycles"]
    peak = row["memory_peak_bytes"]
    return Consumed(
        unit=row["unit"], cpu_s=row["cpu_s"], wall_s=row["wall_s"],
        memory_peak_mib=None if peak is None else peak / (1 << 20),
        process=process, gc_cpu_s=spent, gc_cpu_share=share, complete=complete,
        num_gc=_dumped(row, tables["memstats"]),
    )  # fmt: skip


def _dumped(row: match.Row, memstats: pl.DataFrame) -> int | None:
    """NumGC of the last dump of the same container."""
    identifier = row["container_id"]
    if not identifier or memstats.is_empty():
        return None
    mine = memstats.filter(
        pl.any_horizontal(
            pl.lit(identifier).str.starts_with(pl.col(name).fill_null("-"))
            for name in ("ident", "container_id")
        )
    )["num_gc"].drop_nulls()
    return int(mine[-1]) if len(mine) else None


SAME_WORK = 0.02
"""Runs whose total allocation differs by no more did the same work."""

MANY_TIMES = 3.0
"""So many times the collections for the same work are no accident."""


def compared(tables: Mapping[str, pl.DataFrame]) -> Iterator[str]:
    """Runs that did the same work at a different price, as their dumps and units tell."""
    dumps = tables["memstats"].drop_nulls(["total_alloc_bytes", "num_gc"])
    if dumps.is_empty():
        return
    whose = ["host", "ident", "container", "container_id", "pod"]
    last = dumps.group_by(whose, maintain_order=True).agg(
        pl.col("total_alloc_bytes", "num_gc", "alloc_bytes").last()
    )
    cpu = {
        event["container_id"]: event["cpu_s"]
        for event in tables["unit_events"].filter(event="consumed").iter_rows(named=True)
        if event["container_id"]
    }
    rows = last.sort("num_gc").to_dicts()
    for few, many in pairwise(rows):
        same = abs(few["total_alloc_bytes"] / many["total_alloc_bytes"] - 1) <= SAME_WORK
        if same and few["num_gc"] and many["num_gc"] >= MANY_TIMES * few["num_gc"]:
            total = many["total_alloc_bytes"] / (1 << 20)
            spent = [_cpu_of(row, cpu) for row in (few, many)]
            price = (
                "" if None in spent else f" and {_span(spent[1])} of CPU, not {_span(spent[0])}"
            )
            yield (
                f"The same work ({total:,.0f} MiB allocated) took {many['ident'] or 'one run'} "
                f"{many['num_gc']:,} collections, not {few['num_gc']:,}{price}: a heap "
                f"goal held "
                "down, as by a memory limit (GOMEMLIMIT) below what the program needs."
            )


def _cpu_of(row: match.Row, cpu: Mapping[str, float]) -> float | None:
    named = [name for name in (row["ident"], row["container_id"]) if name]
    return next((s for key, s in cpu.items() if any(key.startswith(n) for n in named)), None)


def _span(seconds: float | None) -> str:
    minutes, rest = divmod(seconds or 0.0, 60)
    return f"{minutes:.0f} min {int(rest)} s" if minutes else f"{rest:.3g} s"
