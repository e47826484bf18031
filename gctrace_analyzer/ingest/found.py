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
class Found:
    """What a chunk holds.

    `cycles` and `companions` (by table) have `line_no` and those columns of their tables that
    a line tells. `context` has the lines around the suspects, and those at both ends, by
    number: plain strings, as a slice of a string column would keep the whole chunk alive.
    `impossible` counts values that became null as they cannot be, by column.
    """

    lines: int
    cycles: pl.DataFrame
    companions: dict[str, pl.DataFrame]
    suspects: list[Suspect]
    context: dict[int, str]
    impossible: Counter[str]

    def shifted(self, by: int) -> Found:
        """The same with line numbers that are larger by so many."""
        for frame in (self.cycles, *self.companions.values()):
            at = frame.get_column_index("line_no")
            frame.replace_column(at, (frame["line_no"].cast(pl.Int64) + by).alias("line_no"))
        return replace(
            self,
            suspects=[s._replace(line_no=s.line_no + by) for s in self.suspects],
            context={number + by: text for number, text in self.context.items()},
        )


class Suspect(NamedTuple):
    """A line, from its first runtime word on, that looks like the runtime's but is no record.

    `head`: a record's beginning. `headless`: its rest, from the time or percentage on.
    `piece`: some other part. `glued`: a record that was read, with other text at its end.
    `range`: a record with a number that does not fit. `long`: over the limit of a line.
    """

    line_no: int
    prefix: str
    text: str
    kind: str
