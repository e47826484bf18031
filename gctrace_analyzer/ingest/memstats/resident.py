"""Finds the resident memory of a program that ps, top or /proc shows next to its MemStats."""

from __future__ import annotations

import re

from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.memstats import fields

_LINE = re.compile(r"^(?:VmRSS|Rss):\s{1,20}(\d{1,15}()) kB", re.MULTILINE)
"""Of /proc/PID/status, and of its smaps_rollup."""

_TABLE = re.compile(
    r"^(?P<header>.*\bPID\b.*\b(?P<size>RSS|RES)\b.*)\n(?P<row>.+)(?:\n(?!\s*\S+\s+\d)|\Z)",
    re.MULTILINE,
)
"""What ps and top print of a single process."""

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,3})?)([kmgt]?)")


def resident_bytes(text: str) -> int | None:
    r"""Returns the resident memory of a process; None if a text shows none, or several sizes.

    >>> resident_bytes("  PID   RSS COMMAND\n 8812 20480 ledger"), resident_bytes("Rss:  8 kB")
    (20971520, 8192)
    """
    sizes = [match.groups() for match in _LINE.finditer(text)]
    for table in _TABLE.finditer(text):
        cells = dict(zip(table["header"].split(), table["row"].split(), strict=False))
        if match := _SIZE.fullmatch(cells.get(table["size"], "")):
            sizes.append(match.groups())
    known = {numbers.whole(size, fields.PREFIXES[unit or "k"]) for size, unit in sizes}
    return known.pop() if len(known) == 1 else None
