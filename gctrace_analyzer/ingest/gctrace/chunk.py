"""What a chunk of a log holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

if TYPE_CHECKING:
    from collections import Counter

CONTEXT_LINES = 32
"""How far apart the parts of a torn line may stand: one write of an application."""

REJECTED_CHARS = 500


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """What a chunk holds.

    `cycles` and `companions` (by table) have `line_no`, those columns of their tables that a
    line tells, and what a carrier said of it (`metadata`), if there is one. `near` has the
    lines around the suspects, and those at both ends. `messages` are lines that may hold
    something else of ours (`dispatch`). `impossible` counts values that became null as
    they cannot be, by column; `carriers` lines by what they were wrapped in, up to `depth`
    times.
    """

    lines: int
    cycles: pl.DataFrame
    companions: dict[str, pl.DataFrame]
    suspects: list[Suspect]
    near: pl.DataFrame
    messages: pl.DataFrame
    impossible: Counter[str]
    wrappers: Counter[str]
    depth: int

    def copy(self) -> ChunkResult:
        """The same in frames of its own: `shifted` changes them."""
        return replace(
            self,
            cycles=self.cycles.clone(),
            companions={table: frame.clone() for table, frame in self.companions.items()},
            near=self.near.clone(),
            messages=self.messages.clone(),
        )

    def shifted(self, by: int) -> ChunkResult:
        """The same with line numbers that are larger by so many."""
        frames = (self.cycles, *self.companions.values(), self.near, self.messages)
        for frame in frames:
            at = frame.get_column_index("line_no")
            frame.replace_column(at, (frame["line_no"].cast(pl.Int64) + by).alias("line_no"))
        return replace(
            self, suspects=[s._replace(line_no=s.line_no + by) for s in self.suspects]
        )


class Suspect(NamedTuple):
    """A line, from its first runtime word on, that looks like the runtime's but is no record.

    `head`: a record's beginning. `headless`: its rest, from the time or percentage on.
    `piece`: some other part. `glued`: a record that was read, with other text at its end.
    `range`: a record with a number that does not fit. `long`: over the limit of a line.
    `origin` tells streams apart whose lines a carrier has put into one file.
    """

    line_no: int
    prefix: str
    text: str
    kind: str
    origin: str = ""
