"""What is said of a death without GC cycles: what died, and what MemStats show of its heap."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

    from gctrace_analyzer.analysis.postmortem.facts import Evidence
    from gctrace_analyzer.analysis.postmortem.memory_of_dumps import Memory

MOSTLY = 0.8
"""Share of the resident memory. A heap above it leaves little to any other cause."""


_NOT_GO = re.compile(
    r"(?:git(?:-\w+)?|python[\d.]*|java|node|nodejs|ruby[\d.]*|perl|php(?:-fpm)?[\d.]*|postgres|"
    r"postmaster|mysqld|mariadbd|mongod|redis-server|memcached|nginx|httpd|apache2|chrom(?:e|ium)|"
    r"firefox|Xorg|gnome-shell|sshd|bash|sh|zsh|clang(?:\+\+)?|gcc|cc1(?:plus)?|rustc|cargo|ld|"
    r"qemu-\S+|beam\.smp|dotnet|ffmpeg|make|ninja|tar|rsync)"
)
"""Names of programs that people know, and that are not written in Go."""


def is_not_go(facts: Evidence) -> bool:
    """Returns whether what was killed is known not to be a Go program: a child or a neighbour."""
    name = facts.death.comm or ""
    known = facts.death.by_runtime or facts.match is not None
    return not known and _NOT_GO.fullmatch(name) is not None


def reading_of_dumps(facts: Evidence, dumps: list[Memory]) -> Iterator[str]:
    """Yields what the size at the kill and MemStats dumps say about a death.

    Args:
        facts: what is known about the death.
        dumps: what `dumps_of` returns.
    """
    resident = facts.memory.resident_mib
    if is_not_go(facts):
        yield (
            f"{facts.death.comm} is not a Go program: it is a child or a neighbour of one, or has "
            "nothing to do with Go. No GOGC or GOMEMLIMIT changes its memory."
        )
    elif not dumps:
        yield (
            "How much of its memory was the Go heap is unknown: the input has neither its GC "
            "cycles nor MemStats."
        )
    elif len(dumps) == 1:
        yield _last_dump(dumps[0], resident)
    else:
        yield _several_dumps([each.alloc_mib or 0.0 for each in dumps], resident)


def _several_dumps(sizes: list[float], resident: float | None) -> str:
    least, most = (f"{end:,.0f}" for end in (min(sizes), max(sizes)))
    if resident and min(sizes) > MOSTLY * resident:
        return (
            f"The input has MemStats of {len(sizes)} programs, each with {least} MiB of heap "
            f"allocated or more: {100 * min(sizes) / resident:.0f} % of what was resident, so the "
            "Go heap was the cause."
        )
    return (
        f"The input has MemStats of {len(sizes)} programs, with {least} to {most} MiB of heap "
        "allocated, and does not say which of them was killed."
    )


def dumps_of(facts: Evidence, tables: Mapping[str, pl.DataFrame]) -> list[Memory]:
    """Returns the MemStats of the process that was killed, or of all if it is not known."""
    dumps = tables.get("memstats")
    if dumps is None or dumps.is_empty():
        return []
    from gctrace_analyzer.analysis.postmortem.memory_of_dumps import memories

    if facts.match is not None:
        dumps = dumps.filter(process=facts.match.process)
    return [each for each in memories(dumps) if each.alloc_mib is not None]


def _last_dump(memory: Memory, resident: float | None) -> str:
    alloc = memory.alloc_mib or 0.0
    text = f"Its last MemStats dump shows {alloc:,.0f} MiB of heap allocated"
    if memory.sys_mib is not None:
        text += f" and {memory.sys_mib:,.0f} MiB obtained from the system"
    if not resident:
        return f"{text}."
    share = f"{text}: the heap was {100 * alloc / resident:.0f} % of the resident memory"
    cause = alloc > MOSTLY * resident
    return share + (", and so the cause." if cause else "; it may have grown since the dump.")
