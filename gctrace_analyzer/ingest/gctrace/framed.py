"""Records inside a frame: the text that a log collector writes around each record.

The core reads such records and finds their frames, without times and counters. The meaning of each
frame is decided once (`wrappers.framing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import polars as pl

from gctrace_analyzer.ingest.rows import without

HEAD = b"gc"
"""Beginnings of records."""

TIMES = (b"Y-m-dTH:M:S", b"Y-m-d H:M:S", b"Y/m/d H:M:S", b"b e H:M:S", b"Lmd H:M:S")
"""Layouts of times: `Y m d H M S` are digits, `b` a month, `e` a day, `L` a level of glog. A
fraction may follow. The core also knows seconds since 1970."""

_OF_JOURNALD = {
    "__CURSOR": "quoted",
    "__SEQNUM": "quoted",
    "_SOURCE_REALTIME_TIMESTAMP": "quoted",
    "_SOURCE_MONOTONIC_TIMESTAMP": "quoted",
    "_SOURCE_BOOTTIME_TIMESTAMP": "quoted",
    "SYSLOG_TIMESTAMP": "quoted",
    "__MONOTONIC_TIMESTAMP": "clock",
}
CHANGES = (
    *(
        (f'"{name}"{colon}"'.encode(), change)
        for name, change in _OF_JOURNALD.items()
        for colon in (":", ": ", " : ")
    ),
    (b"^[", "digits"),
)
"""Other text that changes from line to line, and the text before it: for journald's JSON, and for
the counter of Fluent Bit at the start of a line (`^`)."""

SLOTS = ("slot_0", "slot_1", "slot_2")
"""Times and clocks of a frame in microseconds."""

UNITS = ("unit_0", "unit_1", "unit_2")
"""The units of their last digits in seconds."""

EMPTY = -(1 << 63)
OF_FRAMES = ("key", *SLOTS, *UNITS)
"""Columns that the core knows about a record's frame."""

INTEGERS = {"key": pl.Int64(), "new": pl.Int64()}


class Key(NamedTuple):
    """A frame without its changing text, the number of its lines, and some of these."""

    text: bytes
    lines: int
    some: tuple[int, ...]


@dataclass(frozen=True)  # without slots, so that rows are found once
class Framed:
    """The records of a chunk that are inside a frame.

    Attributes:
        cycles: the cycles, in several frames, with the columns `OF_FRAMES`.
        keys: the frames.
    """

    cycles: tuple[pl.DataFrame, ...]
    keys: tuple[Key, ...]

    @cached_property
    def rows(self) -> pl.DataFrame:
        """Returns `line_no` and `OF_FRAMES` of all records, in the order of their lines."""
        columns = ["line_no", *OF_FRAMES]
        parts = [frame[columns] for frame in self.cycles]
        return parts[0] if len(parts) == 1 else pl.concat(parts).sort("line_no")

    @cached_property
    def probes(self) -> list[int]:
        """Returns the lines to examine, in order."""
        return sorted(number for key in self.keys for number in key.some)

    @property
    def bare_cycles(self) -> list[pl.DataFrame]:
        """Returns the cycles alone (`columns.LINE_COLUMNS`)."""
        return [without(frame, *OF_FRAMES) for frame in self.cycles]

    def only(self, keys: Sequence[int]) -> Framed:
        """Returns the records with one of these keys, which are renumbered from 0."""
        numbers = pl.DataFrame(
            {"key": keys, "new": range(len(keys))}, schema_overrides=INTEGERS
        )
        cycles = (
            frame.join(numbers, on="key", maintain_order="left")
            .drop("key")
            .rename({"new": "key"})
            for frame in self.cycles
        )
        return Framed(
            tuple(frame for frame in cycles if len(frame)),
            tuple(self.keys[key] for key in keys),
        )
