"""The result of parsing one chunk of a log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.rows import with_replaced

if TYPE_CHECKING:
    from collections import Counter

CONTEXT_LINES = 32
"""Largest distance in lines between the parts of a torn record: another write of several lines may
have come in between."""

REJECTED_CHARS = 500

SUSPECT_CHARS = 4096
"""Characters of a suspect, and of a line around it, that are searched for a record.

No record is longer than `torn.RECORD_CHARS`; this keeps long lines cheap.
"""


@frozen
class ChunkResult:
    """The content of one chunk.

    Attributes:
        lines: the number of lines in the chunk.
        cycles: the cycles: `line_no`, the columns that a line itself gives
            (`columns.LINE_COLUMNS`), and the metadata of its log prefix, if it has one.
        companions: lines of other traces by table, with the same columns added.
        suspects: lines that look like runtime output but could not be read alone. They may be parts
            of torn records.
        context: the lines around the suspects, and those at both ends of the chunk.
        messages: lines that other readers may understand (`evidence.dispatch`).
        impossible: how many values became null because they cannot be true, by column.
        wrappers: how many lines had each log prefix.
        depth: how many log prefixes were nested at most.
    """

    lines: int
    cycles: pl.DataFrame
    companions: dict[str, pl.DataFrame]
    suspects: list[Suspect]
    context: pl.DataFrame
    messages: pl.DataFrame
    impossible: Counter[str]
    wrappers: Counter[str]
    depth: int

    def shifted(self, by: int) -> ChunkResult:
        """Returns a copy with line numbers that are larger by `by`."""
        return replace(
            self,
            cycles=_shifted(self.cycles, by),
            companions={table: _shifted(frame, by) for table, frame in self.companions.items()},
            context=_shifted(self.context, by),
            messages=_shifted(self.messages, by),
            suspects=[s._replace(line_no=s.line_no + by) for s in self.suspects],
        )


def _shifted(lines: pl.DataFrame, by: int) -> pl.DataFrame:
    return with_replaced(lines, lines["line_no"].cast(pl.Int64) + by)


class Suspect(NamedTuple):
    """A line that looks like runtime output but is not a whole record; it may be part of one.

    `text` is the line from the apparent beginning of a record; `prefix` precedes it.

    Kinds: `head`, the beginning of a record; `headless`, the rest of a record, starting at the time
    or percentage; `piece`, some other part; `glued`, a record that was read, followed by other
    text; `range`, a record with a number out of range; `long`, a line over the length limit.
    `origin` separates the streams that a log collector merged into one file.
    """

    line_no: int
    prefix: str
    text: str
    kind: str
    origin: str = ""


class Reject(NamedTuple):
    """A line that looks like runtime output but could not be read."""

    line_no: int
    reason: str
    text: str
