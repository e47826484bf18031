"""Heap held against heap needed, and what recycling saves, from dumps of MemStats."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20
_WHOSE = ("source", "host", "ident", "container", "container_id", "pod")


@dataclass(frozen=True, slots=True)
class Memory:
    """What one program's dumps say: sizes in MiB, of the last dump unless named `_max`.

    `held` is the heap taken from the system and not given back; `needed` what the program
    holds on to: its pool if it counts one, else the heap in use. `resolution_mib` is the unit
    of the last digit as printed.
    """

    source: str
    of: str | None
    dumps: int
    heap_sys_mib: float | None
    heap_sys_max_mib: float | None
    held_mib: float | None
    held_max_mib: float | None
    needed_mib: float | None
    needed_max_mib: float | None
    needed_is: str | None
    idle_unreleased_mib: float | None
    fragmentation_mib: float | None
    sys_mib: float | None
    off_heap_go_mib: float | None
    alloc_mib: float | None
    rss_mib: float | None
    num_gc: int | None
    gcs_between: int | None
    elapsed_s: float | None
    makes: int | None
    frees: int | None
    pool_hit_share: float | None
    resolution_mib: float | None
    advice: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The figures by name, ready for JSON."""
        return {**asdict(self), "advice": list(self.advice)}


HELD_TIMES = 1.5
"""A heap that is half as large again as what is needed is worth a word."""

WORTH_MIB = 64.0
"""So much idle memory is worth giving back."""

POOR_HITS = 0.5
"""Of the buffers let go less than half served again: no recycling to speak of."""

FEW_MAKES = 20


def programs(memstats: pl.DataFrame) -> list[pl.DataFrame]:
    """The dumps of each program, in the order of their first."""
    return memstats.partition_by(_WHOSE, maintain_order=True) if len(memstats) else []


def memories(memstats: pl.DataFrame) -> list[Memory]:
    """One per program, in the order of their first dumps."""
    return [_memory(part) for part in programs(memstats)]


def _memory(part: pl.DataFrame) -> Memory:
    def mib(name: str) -> pl.Series:
        return part[name].cast(pl.Float64) / MIB

    heap_sys, released, idle = (
        mib("heap_sys_bytes"),
        mib("heap_released_bytes"),
        mib("heap_idle_bytes"),
    )
    in_use = mib("heap_inuse_bytes").fill_null(heap_sys - idle)
    held = heap_sys - released.fill_null(0.0) if released.count() else heap_sys
    pool, alloc = mib("pool_bytes"), mib("heap_alloc_bytes").fill_null(mib("alloc_bytes"))
    needed, what = (
        (pool, "the program's own buffers")
        if pool.count()
        else (in_use, "heap in use")
        if in_use.count()
        else (alloc, "heap allocated")
    )
    sys = mib("sys_bytes")
    resolution = part["resolution_bytes"].max()
    figures: dict[str, Any] = {
        "source": str(part["source"][0]),
        "of": next((part[name][0] for name in _WHOSE[2:] if part[name][0]), None),
        "dumps": len(part),
        "heap_sys_mib": _last(heap_sys),
        "heap_sys_max_mib": heap_sys.max(),
        "held_mib": _last(held),
        "held_max_mib": held.max(),
        "needed_mib": _last(needed),
        "needed_max_mib": needed.max(),
        "needed_is": what if needed.count() else None,
        "idle_unreleased_mib": _last(idle - released),
        "fragmentation_mib": _last(in_use - alloc),
        "sys_mib": _last(sys),
        "off_heap_go_mib": _last(sys - heap_sys),
        "alloc_mib": _last(alloc),
        "rss_mib": _last(mib("rss_bytes")),
        "num_gc": _last(part["num_gc"]),
        "gcs_between": _difference(part["num_gc"]),
        "elapsed_s": _last(part["elapsed_s"]),
        "makes": _last(part["makes"]),
        "frees": _last(part["frees"]) if part["makes"].count() else None,
        "pool_hit_share": _hits(part),
        "resolution_mib": resolution / MIB if isinstance(resolution, int) else None,
    }
    return Memory(**figures, advice=tuple(_advice(figures)))


def _last(values: pl.Series) -> Any:
    given = values.drop_nulls()
    return given[-1] if len(given) else None


def _difference(values: pl.Series) -> int | None:
    given = values.drop_nulls()
    return int(given[-1] - given[0]) if len(given) > 1 else None


def _hits(part: pl.DataFrame) -> float | None:
    """Of the buffers let go, the part that served again instead of a new one."""
    made, freed = _difference(part["makes"]), _difference(part["frees"])
    if made is None or not freed:
        return None
    return max(0.0, 1 - made / freed)


def _advice(figures: dict[str, Any]) -> Iterator[str]:
    held, needed = figures["held_max_mib"], figures["needed_max_mib"]
    if held and needed and held > HELD_TIMES * needed and held - needed > WORTH_MIB:
        yield (
            f"The heap held {held:,.0f} MiB for {needed:,.0f} MiB of {figures['needed_is']}: "
            f"{held / needed:.1f} times as much."
        )
    idle = figures["idle_unreleased_mib"]
    if idle is not None and idle > WORTH_MIB and held and idle > held / 4:
        yield (
            f"{idle:,.0f} MiB of it is idle and not given back; a memory limit "
            f"(GOMEMLIMIT) makes "
            "the runtime give it back in time."
        )
    hits, makes = figures["pool_hit_share"], figures["makes"]
    if makes is not None and makes > FEW_MAKES and (hits is None or hits < POOR_HITS):
        served = "none" if not hits else f"{100 * hits:.0f} %"
        freed = (
            ""
            if figures["frees"] is None
            else f" and {figures['frees']:,} let go, {served} of which served again"
        )
        yield (
            f"{makes:,} buffers were made{freed}: recycle them (sync.Pool, or a free list "
            f"of channels)."
        )
    elif hits is not None and hits >= POOR_HITS:
        yield f"{100 * hits:.0f} % of the buffers let go served again: recycling works."
