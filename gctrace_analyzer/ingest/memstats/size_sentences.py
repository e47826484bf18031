"""What the memory of a process or container means, in sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gctrace_analyzer.units import MIB, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DIGIT = "digit"
"""Among sizes, the unit of the last digit of the coarsest one."""

MUCH = 0.1
"""Share of the whole. Smaller parts are left out."""

_MUCH_MIB = 64.0
"""MiB. If more of the memory, and much of it, is not heap, the rest is explained."""

_BEYOND = (
    " The rest is idle or returned heap that the OS still counts, other memory of the runtime, or "
    "outside Go (cgo, mmap, pages of files such as the executable's): a MemStats dump and RssFile "
    "of /proc/PID/status show which."
)

_PARTS = {
    "file": "page cache and mapped files, which the kernel drops when memory is needed",
    "shared": "shared memory (tmpfs, /dev/shm, an emptyDir in memory)",
    "kernel": "memory of the kernel, with its slab",
    "slab": "slab (inodes, dentries and the like)",
}
_ROOTS = {
    "scan_stack": "goroutine stacks (too many or too deep goroutines)",
    "scan_globals": "global variables",
}


def sentences(known: Mapping[str, int]) -> Iterator[str]:
    """Yields the parts of a process's or container's memory that are not its program's."""
    resident, charged, anonymous, scanned, returned = (
        known.get(name, 0)
        for name in ("resident", "charged", "anonymous", "scan_total", "returned")
    )
    parts = _large(known, _PARTS, max(charged, anonymous or resident))
    whole, of = (charged, "charged to its control group") if charged else (resident, "resident")
    if whole and anonymous and parts:
        if "inactive" in known and "page cache" in parts:
            parts += f" ({mib(known['inactive'])} of all files are inactive)"
        yield (
            f"Of the {mib(whole)} {of}, {mib(anonymous)} are anonymous memory, to which all of "
            f"Go's belongs; {parts}."
        )
    elif resident and charged - resident > MUCH * charged:
        yield (
            f"Of the {mib(charged)} charged to the control group, {mib(resident)} are resident; "
            "the rest is of other processes, page cache or memory of the kernel."
        )
    if roots := _large(known, _ROOTS, scanned):
        yield f"Of the {mib(scanned)} that each GC cycle scans, {roots}: not heap."
    if resident and returned > MUCH * resident:
        yield (
            f"The program has returned {mib(returned)} (MADV_FREE) that count as resident until "
            f"the kernel needs them; without them {mib(resident)} are resident. "
            "GODEBUG=madvdontneed=1, or Go 1.16 and later, lets RSS fall at once."
        )


def whole_text(known: Mapping[str, int]) -> str:
    """Returns the memory of a process or container as a clause; empty if unknown."""
    if "resident" in known:
        # Of `2.5g` in top, 2,560 MiB would have digits that it does not print.
        size, digit = known["resident"] / MIB, known.get(DIGIT, 0) / MIB
        coarse = f"{size / 1024:.{round(math.log10(1024 / digit))}f} GiB" if digit > 10 else ""
        return f"{coarse or mib(known['resident'])} are resident"
    charged = known.get("charged")
    return f"{mib(charged)} are in use in its control group, with page cache" if charged else ""


def alone(
    known: Mapping[str, int], heap_mib: float | None = None, process: str | None = None
) -> Iterator[str]:
    """Yields the sizes of a process or container if at most its heap is known (MiB)."""
    resident, peak, virtual = (known.get(name, 0) for name in ("resident", "peak", "virtual"))
    if whole := whole_text(known):
        anonymous = known.get("anonymous")
        of_these = f", {mib(anonymous)} of them anonymous memory" if anonymous else ""
        most = f" ({mib(peak)} at most)" if peak > resident > 0 else ""
        size_mib = (resident or known.get("charged", 0)) / MIB
        rest = (
            "."
            if heap_mib is None
            else f"; {of_heap(size_mib, heap_mib, 'the GC cycles in the input')}"
        )
        named = f"Memory of {process}: " if process and resident else ""
        yield f"{named}{whole}{most}{of_these}{rest}"
    if virtual > 2 * resident > 0:
        yield f"The {mib(virtual)} of address space (VSZ, VIRT) are not memory in use."


def _large(known: Mapping[str, int], names: Mapping[str, str], whole: int) -> str:
    """Returns the parts that are a large share of the whole; empty if its size is unknown."""
    sizes = ((known.get(name, 0), what) for name, what in names.items() if whole)
    return "; ".join(f"{mib(size)} are {what}" for size, what in sizes if size > MUCH * whole)


def of_heap(size_mib: float, heap_mib: float, cycles: str) -> str:
    """Returns the size of the heap in the cycles, and what the rest of the memory may be."""
    beyond = size_mib - heap_mib
    rest = _BEYOND if beyond > max(_MUCH_MIB, MUCH * size_mib) else ""
    return f"the heap of {cycles} was {size_text(heap_mib)} at most.{rest}"


def mib(size: int) -> str:
    """Formats a size in bytes."""
    return f"{size / MIB:,.{int(size < 10 * MIB)}f} MiB"
