"""Splits logs at every byte, and compares what is read in two parts with what is read at once.

A reader of a growing log sees whole lines only. So the lines are made of the two parts at every
byte, which is cheap; those parts that give the same pieces of lines are then read once. A fleet
reads a long file in ranges of bytes: their lines are found for every byte in the same way.
"""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

import gctrace_analyzer as gca
from gctrace_analyzer.api import live
from gctrace_analyzer.fleets import stretches
from gctrace_analyzer.fleets.inputs import Item
from gctrace_analyzer.ingest.compression import compression
from gctrace_analyzer.ingest.sniff import SNIFF_BYTES, sniff
from gctrace_analyzer.ingest.sources import Source, SourceFacts

if TYPE_CHECKING:
    from collections.abc import Iterator

_FACTS: dict[str, Any] = {"year": 2026, "tz": "UTC"}
_COLUMNS = ("line_no", "gc_num", "start_s", "logged_at", "heap_live_mib", "process", "repaired")
FLEET_COLUMNS = (
    "process", "cycles", "first_gc", "missing_cycles", "rejected_lines", "repaired_cycles",
    "oom_kills",
)  # fmt: skip


class TwoParts(io.BytesIO):
    """A file of which a part has arrived when it is first read."""

    name = "parts"

    def __init__(self, data: bytes, at: int) -> None:
        super().__init__(data)
        self.at = at

    def seekable(self) -> bool:
        return False

    def read(self, size: int | None = -1) -> bytes:
        here = self.tell()
        return super().read(self.at - here if here < self.at else size)


def is_log(data: bytes) -> bool:
    """Whether an input is read line by line, not as one document."""
    head = data[:SNIFF_BYTES]
    return compression(head) is None and sniff(head, head.decode(errors="replace")) == "log"


def tables(run: gca.Run) -> dict[str, Any]:
    """Returns what must be equal: the cycles, the rejected lines, and the rows of the others."""
    return {
        "cycles": run.cycles.select(_COLUMNS).rows(),
        "rejected": run.rejected.select("line_no", "reason").rows(),
        "kills": run.oom_kills.select("line_no", "pid", "logged_at").rows(),
        "memstats": len(run.memstats),
    }


def pieces(data: bytes) -> dict[tuple[Any, ...], int]:
    """Returns the pieces of lines that a log arrives in, of every split, and its first byte."""
    found: dict[tuple[Any, ...], int] = {}
    for at in range(1, len(data)):
        source = Source(TwoParts(data, at))
        lines = tuple(source.chunks())
        known = source.facts
        found.setdefault((lines, known.encoding, known.first, known.ends_in_newline), at)
    return found


def arriving_in_two_parts(data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields what is read of a log in two parts, for every way it can be split, and where."""
    for (lines, *_), at in pieces(data).items():
        seen = live(**_FACTS)
        seen.begin(SourceFacts("parts"))
        for each in lines:
            seen.add(each)
        yield at, tables(seen.run())


def at_once(data: bytes) -> dict[str, Any] | None:
    """Returns what is read of a whole log; None if nothing in it is recognised."""
    try:
        return tables(gca.read(io.BytesIO(data), kind="log", **_FACTS))
    except gca.GctraceError:
        return None


def in_two_stretches(data: bytes) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yields a fleet's rows of a file read in two ranges, for every way it can be split."""
    item = Item("split.log", "split.log", len(data))
    found: dict[tuple[stretches.Stretch, stretches.Stretch], int] = {}
    for at in range(1, len(data)):
        file = io.BytesIO(data)
        two = (
            stretches.stretch_of_range(file, 0, at),
            stretches.stretch_of_range(file, at, len(data)),
        )
        found.setdefault(two, at)
    for two, at in found.items():
        results = [
            stretches.analyse(stretch, index, item, _FACTS, {})
            for index, stretch in enumerate(two)
        ]
        rows = stretches.rows_of_file(results, item, {})
        yield at, [{name: row[name] for name in FLEET_COLUMNS} for row in rows]


def differences(data: bytes) -> list[tuple[str, int]]:
    """Returns the bytes at which a split changes what is read, and by whom it was read."""
    found: list[tuple[str, int]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gca.GctraceWarning)
        if (whole := at_once(data)) is None:
            return []
        for at, parts in arriving_in_two_parts(data):
            if parts != whole:
                found.append(("watch", at))
        if not whole["cycles"]:
            return found
        expected = None
        for at, rows in in_two_stretches(data):
            expected = expected or fleet_rows(data)
            if rows != expected:
                found.append(("fleet", at))
    return found


def fleet_rows(data: bytes) -> list[dict[str, Any]]:
    """Returns a fleet's rows of a file read in one range."""
    item = Item("split.log", "split.log", len(data))
    whole = stretches.stretch_of_range(io.BytesIO(data), 0, len(data))
    rows = stretches.rows_of_file([stretches.analyse(whole, 0, item, _FACTS, {})], item, {})
    return [{name: row[name] for name in FLEET_COLUMNS} for row in rows]
