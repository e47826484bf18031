"""Reads how much of a process is mapped in Go's heap range, from pmap and /proc/PID/smaps."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gctrace_analyzer.ingest.memstats.size_sentences import mib
from gctrace_analyzer.units import MIB

_OF_PMAP = re.compile(
    r"^\s{0,20}[0-9a-f]{8,16}\s+(?P<kib>\d{1,12})K\s(?P<mode>[r-][w-][x-][sp-])", re.MULTILINE
)
_NAME = r"(?:: (?P<name>[^\]\n]{1,80}))?"
_RESIDENT = [
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        # pmap -x, smaps
        rf"^\s{{0,20}}(?P<at>[0-9a-f]{{8,16}})\s+\d{{1,15}}\s+(?P<kib>\d{{1,15}})\s[^\n]*"
        rf"\[ ?anon{_NAME} ?\]",
        r"^(?P<at>[0-9a-f]{8,16})-[0-9a-f]{8,16} [r-]w.p 0+ 00:00 0 *+"
        rf"(?:\[anon{_NAME}\] *+)?\n(?:\w{{1,30}}:[^\n]{{0,60}}\n){{1,5}}?"
        r"Rss:\s+(?P<kib>\d{1,15}) kB",
    )
]
_ARENAS = range(0x40, 0x1C0)
"""Where the heap of a 64-bit program is, in units of 4 GiB: it begins at 0xC0, on arm64 at 0x40
(mallocinit, runtime/malloc.go). Nothing else is mapped there."""

_MUCH = 0.1
"""Share of the address space, or of the heap. Smaller parts are left out."""


def of_mappings(text: str) -> Iterator[str]:
    """Yields how much address space a process reserved, and where its memory is mapped."""
    modes = [(match["mode"], int(match["kib"]) << 10) for match in _OF_PMAP.finditer(text)]
    reserved = sum(size for mode, size in modes if mode.startswith("---"))
    if reserved > _MUCH * (whole := sum(size for _, size in modes)):
        writable = sum(size for mode, size in modes if mode[1] == "w")
        yield (
            f"The {mib(whole)} that pmap lists are address space: {mib(reserved)} are only "
            f"reserved, and {mib(writable)} are writable, which is the most that the program can "
            "have there. `pmap -x` shows what is resident."
        )
    # Of several readings, the last counts.
    rows = {row["at"]: row for pattern in _RESIDENT for row in pattern.finditer(text)}.values()
    of_go = sum(int(row["kib"]) << 10 for row in rows if _is_heap(row))
    others = sum(int(row["kib"]) << 10 for row in rows if not _is_heap(row))
    if of_go > MIB:
        rest = f"{mib(others)} in other anonymous mappings"
        if others > _MUCH * of_go:
            rest += ": tables of the runtime, or memory outside Go, of C (cgo), mmap or threads"
        yield f"{mib(of_go)} are resident where Go has its heap, and {rest}."


def _is_heap(row: re.Match[str]) -> bool:
    """Returns whether a mapping belongs to Go's heap, by its name (since Go 1.25) or address."""
    if row["name"]:
        return row["name"].startswith("Go: heap")
    return int(row["at"], 16) >> 32 in _ARENAS
