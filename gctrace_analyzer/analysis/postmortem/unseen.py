"""Explains a death whose GC cycles are not in the input, from what else is known about it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.postmortem.death import EVICTOR
from gctrace_analyzer.units import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

    from gctrace_analyzer.analysis.postmortem.death import Death
    from gctrace_analyzer.analysis.postmortem.facts import Evidence
    from gctrace_analyzer.analysis.postmortem.memory_of_dumps import Memory
    from gctrace_analyzer.analysis.settings.known import Settings

REQUEST_MORE = (
    "Set the memory request of the container to what it needs at most, and GOMEMLIMIT to 90 % of "
    "the request: as long as it stays below, other pods are evicted first."
)

CHECK_LIMITS = (
    "Check the address-space limit of the process (`ulimit -v`, /proc/PID/limits) and the free "
    "memory of the host; GOMEMLIMIT makes GC run earlier, if the live heap fits."
)
BUILD_FOR_64_BITS = "If the program is a 32-bit one (GOARCH=386 or arm), build it for 64 bits."

FREE_COMMIT = (
    "Enlarge the page file of Windows, or free memory: Task Manager shows what is committed. "
    "GOMEMLIMIT makes GC run earlier, if the live heap fits."
)
FIND_PRESSURE = (
    "Find out what needs memory in that group (`systemd-cgtop -m`, `memory.pressure` of the "
    "cgroup), and give it more, or a higher ManagedOOMMemoryPressureLimit. A smaller Go heap "
    "helps only if the heap is most of it."
)
FIND_SIZE = (
    "Find the call in the traceback that allocates, and check the length that it passes: it comes "
    "from data that is damaged, or was calculated with an overflow."
)

MOST_OF_LIMIT = 0.9
"""Share of the limit. A live heap above it leaves less than a tenth to everything else, and a
higher GOMEMLIMIT leaves too little to memory that Go does not count."""

LEAST_LIMIT_MIB = 4.0
"""Less than this is not enough for the code, stacks and tables of the smallest Go program."""

MOSTLY = 0.8
"""Share of the resident memory. A heap above it leaves no other cause."""


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


def reading_of_unseen(facts: Evidence, dumps: list[Memory]) -> Iterator[str]:
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


def without_limits(limit_mib: float) -> str:
    """Returns what to do about a container's limit with a Go version that has no memory limit."""
    return (
        "Upgrade to Go 1.19 or later, which has GOMEMLIMIT, and set it to "
        f"{int(MOST_OF_LIMIT * limit_mib)}MiB (90 % of the limit); until then, a lower GOGC keeps "
        "the heap goal lower."
    )


def of_runtime(death: Death) -> Iterator[str]:
    """Yields what to do about a death by the Go runtime, without what the heap did."""
    if death.errno is not None:
        yield FREE_COMMIT
        return
    if death.may_be_of_32_bits:
        is_known = death.is_of_32_bits
        yield "Build the program for 64 bits." if is_known else BUILD_FOR_64_BITS
    if not death.is_of_32_bits:
        yield CHECK_LIMITS


def advice_on_unseen(facts: Evidence, dumps: list[Memory], settings: Settings) -> Iterator[str]:
    """Yields what can be done at once, and what to record before the next kill."""
    limit, victim = facts.limit.limit_mib, facts.death.victim
    if facts.death.pressure_pct is not None:
        yield FIND_PRESSURE
    if is_not_go(facts):
        yield (
            f"Limit what {victim} may use by its own settings or its unit (MemoryMax), run fewer "
            "of them at a time, or give the host or container more memory. If a Go program starts "
            "it, find out with which work."
        )
        return
    is_go = (
        facts.death.by_runtime
        or bool(dumps)
        or any(
            settings.value(name) is not None
            for name in ("memory_limit_mib", "gogc", "go_version")
        )
    )
    if_go = "" if is_go else f"If {victim or 'it'} is written in Go, "
    if limit is not None and facts.is_before_limits:
        yield without_limits(limit)
    elif limit is not None and limit < LEAST_LIMIT_MIB:
        yield f"Raise the limit: no Go program fits into {size_text(limit)}."
    elif limit is not None and settings.value("memory_limit_mib") is None:
        mib = int(MOST_OF_LIMIT * limit)
        yield (
            f"{if_go}{'Set' if is_go else 'set'} GOMEMLIMIT={mib}MiB (90 % of the limit): this "
            "prevents the next kill if the live heap fits."
        )
    run = "Run the program" if is_go else f"{if_go}run it"
    yield (
        f"{run} with GODEBUG=gctrace=1, keep its standard error, and add it to the input: it shows "
        "whether the live heap grew or the heap goal was above the limit."
    )
    if facts.death.by_runtime:
        yield from of_runtime(facts.death)
    elif facts.death.killer == EVICTOR:
        yield REQUEST_MORE
    elif limit is None and facts.death.scope != "global":
        yield (
            "Add the memory limit as well: the output of `docker inspect`, `kubectl describe pod` "
            "or `systemctl show`, or the whole message of the kernel (`journalctl -k`)."
        )
