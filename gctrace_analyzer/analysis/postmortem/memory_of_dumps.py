"""What MemStats dumps show: the heap that a program holds, needs and wastes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.settings.releases import outside_go
from gctrace_analyzer.frozen import Plain, frozen
from gctrace_analyzer.ingest.processes import distinct_names
from gctrace_analyzer.ingest.rows import not_null
from gctrace_analyzer.schema import IDENTITY
from gctrace_analyzer.units import MIB, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES = tuple(
    name for name in IDENTITY if name not in ("host", "log_pid", "unit", "namespace", "stream")
)
HEAP_ALLOCATED = "heap allocated"
_IDENTITY = ("source", "host", *_NAMES)
"""The columns that distinguish programs; a restarted program still counts as the same."""


@frozen
class Memory(Plain):
    """The dumps of one program: sizes in MiB, from the last dump unless named `_max` or `_first`.

    `held` is the heap that was obtained from the OS and not returned; None if the dumps do not say
    what was returned. `needed` is what the program keeps: its buffer pool if the dumps have one,
    otherwise the heap in use or, if that is unknown, the allocated heap; `needed_is` says which.
    `spare_mib` is the least idle heap that was not returned in the second half of the dumps,
    without what the program allocates until the heap goal: right after a cycle that is half of the
    goal under GOGC=100. A single dump shows a moment: the runtime returns memory in the background,
    within minutes after a peak. `fragmentation_mib` is
    the free memory inside spans, also without that part. `outside_mib` is the resident memory that
    Go does not hold, and `outside_first_mib` its maximum in the first half of the dumps; None for
    fewer than four dumps. `num_gc` is the largest value, because a restart counts from 0.
    `resolution_mib` is the unit of the last printed digit. Without `dumps`, the sizes come from the
    last line of the scavenger.
    """

    source: str
    of: str | None
    dumps: int
    heap_sys_mib: float | None
    heap_sys_max_mib: float | None
    held_mib: float | None
    held_max_mib: float | None
    needed_first_mib: float | None
    needed_mib: float | None
    needed_max_mib: float | None
    needed_is: str | None
    released_mib: float | None
    idle_unreleased_mib: float | None
    spare_mib: float | None
    fragmentation_mib: float | None
    sys_mib: float | None
    off_heap_go_mib: float | None
    alloc_mib: float | None
    alloc_max_mib: float | None
    rss_mib: float | None
    outside_first_mib: float | None
    outside_mib: float | None
    num_gc: int | None
    forced_gcs: int | None
    gcs_between: int | None
    elapsed_s: float | None
    makes: int | None
    frees: int | None
    pool_hit_share: float | None
    resolution_mib: float | None
    advice: tuple[str, ...] = ()

    @property
    def of_go_mib(self) -> float | None:
        """What GOMEMLIMIT counts, in MiB: Sys without HeapReleased."""
        known = self.sys_mib is not None and self.released_mib is not None
        return (self.sys_mib or 0.0) - (self.released_mib or 0.0) if known else None

    @property
    def is_of_scavenger(self) -> bool:
        """Whether the sizes come from a line of the scavenger."""
        return self.dumps == 0


HELD_TIMES = 1.5
"""Ratio of held to needed heap. A program that holds this much more than it needs is reported."""

MIN_IDLE_MIB = 64.0
"""MiB. Less idle memory is not worth returning."""

POOR_HITS = 0.5
"""Share of the freed buffers. If fewer are reused, the pool does not work."""

FEWEST_DUMPS = 4
"""Dumps. With fewer, their halves hardly show whether a size grows."""

FEW_MAKES = 20
"""Buffers. Fewer are not worth a pool."""


def programs(memstats: pl.DataFrame) -> list[pl.DataFrame]:
    """Returns the dumps of each program, in the order of their first dumps."""
    if memstats.is_empty():
        return []
    # Several files of one process, such as one dump of expvar each, belong to one program.
    first = pl.col("source").first().over("process")
    first = pl.when(pl.col("process").is_null()).then("source").otherwise(first)
    return [
        part.drop("first_source")
        for part in memstats.with_columns(first_source=first).partition_by(
            "first_source", *_IDENTITY[1:], maintain_order=True
        )
    ]


def memories(memstats: pl.DataFrame) -> list[Memory]:
    """Returns one entry for each program, in the order of their first dumps."""
    of_programs = [_memory(part) for part in programs(memstats)]
    if len({(memory.source, memory.of) for memory in of_programs}) == len(of_programs):
        return of_programs
    names = distinct_names(pl.concat([part.head(1) for part in programs(memstats)]))
    return [
        replace(memory, of=name or memory.of)
        for memory, name in zip(of_programs, names, strict=True)
    ]


def in_mib(part: pl.DataFrame, name: str) -> pl.Series:
    """Returns a column of bytes in MiB."""
    return part[name].cast(pl.Float64) / MIB


def _heap(part: pl.DataFrame) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Returns what the heap obtained, what of it is idle, and what is in use, in MiB."""
    heap_sys, idle, in_use = (
        in_mib(part, f"heap_{name}_bytes") for name in ("sys", "idle", "inuse")
    )
    # HeapSys is HeapIdle + HeapInuse: two values give the third, unless they contradict each other.
    heap_sys = heap_sys.fill_null(idle + in_use)
    # Values that contradict each other do not.
    idle, in_use = (
        known.fill_null(rest.set(rest < 0, None))
        for known, rest in ((idle, heap_sys - in_use), (in_use, heap_sys - idle))
    )
    return heap_sys, idle, in_use


def _allocated(part: pl.DataFrame) -> pl.Series:
    return in_mib(part, "heap_alloc_bytes").fill_null(in_mib(part, "alloc_bytes"))


def needed_mib(part: pl.DataFrame) -> tuple[pl.Series, str]:
    """Returns what the program needs in each of its dumps, and which memory that is."""
    pool, (_, _, in_use) = in_mib(part, "pool_bytes"), _heap(part)
    if pool.count():
        return pool, "the memory in the program's own buffers"
    if in_use.count():
        return in_use, "heap in use"
    return _allocated(part), HEAP_ALLOCATED


def _memory(part: pl.DataFrame) -> Memory:
    heap_sys, idle, in_use = _heap(part)
    released, alloc, next_goal = (
        in_mib(part, "heap_released_bytes"), _allocated(part), in_mib(part, "next_gc_bytes"),
    )  # fmt: skip
    held = heap_sys - released
    needed, needed_is = needed_mib(part)
    sys = in_mib(part, "sys_bytes")
    resolution = _largest(part["resolution_bytes"])
    first_outside, last_outside = _outside(part)
    memory = Memory(
        source=_sources(part["source"]),
        of=next((part[name][0] for name in _NAMES if part[name][0]), None),
        dumps=len(part),
        heap_sys_mib=last(heap_sys),
        heap_sys_max_mib=_largest(heap_sys),
        held_mib=last(held),
        held_max_mib=_largest(held),
        needed_first_mib=last(needed.reverse()),
        needed_mib=last(needed),
        needed_max_mib=_largest(needed),
        needed_is=needed_is if needed.count() else None,
        released_mib=last(released),
        idle_unreleased_mib=last(idle - released),
        spare_mib=_lasting(_at_least_0(idle - released - _at_least_0(next_goal - alloc))),
        fragmentation_mib=last(_at_least_0(in_use - alloc - _room(next_goal, alloc))),
        # It only grows in a process; in several, the largest fits the maxima of the others.
        sys_mib=_largest(sys),
        off_heap_go_mib=last(sys - heap_sys),
        alloc_mib=last(alloc),
        alloc_max_mib=_largest(alloc),
        rss_mib=last(in_mib(part, "rss_bytes")),
        outside_first_mib=first_outside,
        outside_mib=last_outside,
        num_gc=_largest(part["num_gc"]),
        forced_gcs=last(part["num_forced_gc"]),
        gcs_between=_difference(part["num_gc"]),
        elapsed_s=last(part["elapsed_s"]),
        makes=last(part["makes"]),
        frees=last(part["frees"]) if part["makes"].count() else None,
        pool_hit_share=_hits(part),
        resolution_mib=resolution / MIB if isinstance(resolution, int) else None,
    )
    return replace(memory, advice=tuple(_advice(memory)))


def _room(goal: pl.Series, alloc: pl.Series) -> pl.Series:
    """Returns how much the heap still allocates before its goal; part of that goes into free slots.

    Right after a cycle, the free slots are the swept ones. Without a goal, all of them may be used.
    """
    return _at_least_0(goal - alloc).fill_null(alloc)


def _outside(part: pl.DataFrame) -> tuple[float | None, float | None]:
    """Returns the memory outside Go in MiB: the most in the first half, and the last."""
    sizes = outside_go(part).clip(0) / MIB
    if len(sizes) < FEWEST_DUMPS:
        return None, None
    return _largest(sizes.head(len(sizes) // 2)), last(sizes)


def _sources(names: pl.Series) -> str:
    others = names.n_unique() - 1
    return f"{names[0]} and {others} more" if others else str(names[0])


def last(values: pl.Series) -> Any:
    """Returns the last known value of a column; None if there is none."""
    given = not_null(values)
    return given[-1] if len(given) else None


def _lasting(values: pl.Series) -> Any:
    """Returns the least value in the second half of the dumps and in the one before it."""
    return values.tail(len(values) // 2 + 1).min()


def _largest(values: pl.Series) -> Any:
    return values.max()


def _at_least_0(values: pl.Series) -> pl.Series:
    return values.clip(lower_bound=0.0)


def _difference(values: pl.Series) -> int | None:
    given = values.drop_nulls()
    return int(given[-1] - given[0]) if len(given) > 1 else None


def _hits(part: pl.DataFrame) -> float | None:
    """Returns the share of buffers that were reused after being freed."""
    made, freed = _difference(part["makes"]), _difference(part["frees"])
    if made is None or not freed:
        return None
    return max(0.0, 1 - made / freed)


def _advice(memory: Memory) -> Iterator[str]:
    held, needed = memory.held_max_mib, memory.needed_max_mib or 0.0
    kept = (memory.heap_sys_max_mib if held is None else held) or 0.0
    is_much = 0 < HELD_TIMES * needed < kept > needed + MIN_IDLE_MIB
    if is_much and held is None:
        yield (
            f"The heap holds between {needed:,.0f} and {kept:,.0f} MiB: how much of it was "
            "returned to the OS (HeapReleased) is not in the input."
        )
    elif is_much:
        yield (
            f"The heap had {'up to ' * (memory.dumps > 1)}{size_text(kept)} from the OS, "
            f"{kept / needed:.1f} times the "
            f"{size_text(needed)} of {memory.needed_is}."
        )
    hits, makes = memory.pool_hit_share, memory.makes
    if makes is not None and makes > FEW_MAKES and (hits is None or hits < POOR_HITS):
        reused = "none" if not hits else f"{100 * hits:.0f} %"
        freed = ""
        if memory.frees is not None:
            freed = f" and {memory.frees:,} freed, {reused} of which were reused"
        yield (
            f"{makes:,} buffers were allocated{freed}: reuse them (`sync.Pool`, or a channel "
            "as a free list)."
        )
    elif hits is not None and hits >= POOR_HITS:
        yield f"{100 * hits:.0f} % of the freed buffers were reused: the buffer pool works."
