"""An input that still grows: read piece by piece, held so that it is as if read whole.

Its lines are parsed twice. As soon as they come, for what is to be shown now; and once more in
chunks as large as those of an input that is read at once, for what is to be reported in the
end: what a line is may depend on the lines around it, and so nothing can come out otherwise.
Only cycles, what is rejected, and lines that hold something else of ours are kept, the older
ones packed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.ingest.frame_store import Shelf
from gctrace_analyzer.ingest.gctrace import parse
from gctrace_analyzer.ingest.gctrace.chunk import CONTEXT_LINES
from gctrace_analyzer.ingest.input import Part, add_rejoined
from gctrace_analyzer.ingest.sources import CHUNK_BYTES
from gctrace_analyzer.ingest.wrappers.peel import by_depth

if TYPE_CHECKING:
    from gctrace_analyzer.ingest.gctrace.chunk import ChunkResult, Suspect
    from gctrace_analyzer.ingest.sources import SourceFacts

APART = 2 * CONTEXT_LINES
"""Suspects further apart than that have no line in common."""

MOST_SUSPECTS = 1000
"""So many wait for their other parts before the first of them are joined."""

_FEW_SUSPECTS = 8

MOST_REJECTED = 20_000
MOST_MESSAGES = 200_000
MOST_ROWS = 2_000_000
"""Rows that are kept of rejected lines, of messages, of any other table; the oldest go."""

RECENT_CYCLES = 20_000
"""So many of the newest cycles can be looked at at any time."""

_MOST_FRAMES = 64


class _Pieces:
    """A part in the making: what was parsed, and suspects whose other part may still come."""

    def __init__(self, facts: SourceFacts, lines: int = 0) -> None:
        self.part = Part(facts)
        self.lines = lines
        self.suspects: list[Suspect] = []
        self.near: list[pl.DataFrame] = []
        self.depth = 0

    def add(self, found: ChunkResult) -> None:
        here = found.shifted(self.lines)
        self.lines += found.lines
        self.suspects += here.suspects
        self.near.append(here.context)
        self.depth = max(self.depth, here.depth)
        self.part.add(here)

    def copy(self) -> _Pieces:
        part, other = self.part, _Pieces(self.part.facts, self.lines)
        other.part = replace(
            part,
            facts=replace(part.facts, lines=self.lines),
            cycles=[*part.cycles],
            companions={table: [*frames] for table, frames in part.companions.items()},
            messages=[*part.messages],
            rows={},
            rejected=[*part.rejected],
            impossible=Counter(part.impossible),
            wrappers=Counter(part.wrappers),
        )
        other.suspects, other.near, other.depth = [*self.suspects], [*self.near], self.depth
        return other

    def settle(self, most: int) -> None:
        """Joins torn lines that nothing to come can change, if more than `most` wait."""
        at = [suspect.line_no for suspect in self.suspects]
        if len(at) > most:
            done = _settled(at, self.lines)
            if not done and len(at) > 4 * most:
                done = sum(line + APART <= self.lines for line in at)
            if done:
                self._mend(self.suspects[:done])
                self.suspects = self.suspects[done:]
        first = self.suspects[0].line_no if self.suspects else self.lines
        ends = [(frame, frame["line_no"][-1]) for frame in self.near if len(frame)]
        self.near = [frame for frame, end in ends if end > first - APART]

    def keep_newest(self, cycles: int) -> None:
        """Forgets everything but the newest cycles, those of the last piece at least."""
        part = self.part
        part.messages.clear()
        part.companions.clear()
        part.rejected.clear()
        frames = part.cycles
        if len(frames) >= _MOST_FRAMES:
            *before, last = frames
            older = pl.concat(before, how="diagonal_relaxed").rechunk()
            frames = [older.tail(max(cycles - len(last), 0)), last]
        while len(frames) > 1 and sum(map(len, frames[1:])) >= cycles:
            frames = frames[1:]
        part.cycles = frames

    def mended(self) -> Part:
        """The part with all that waits joined or rejected; use it once, on a copy."""
        if self.suspects:
            self._mend(self.suspects)
        return self.part

    def _mend(self, suspects: list[Suspect]) -> None:
        first, last = suspects[0].line_no, suspects[-1].line_no
        around = pl.col("line_no").is_between(first - APART, last + APART)
        near = pl.concat(self.near).filter(around)
        add_rejoined(self.part, suspects, by_depth(near, self.depth))


class Growing:
    """One input that grows. `add` by one thread; all else may be asked by another."""

    def __init__(self, facts: SourceFacts) -> None:
        self.facts = facts
        self._lock = Lock()
        self._read = _Pieces(facts)
        self._shelves = {"cycles": Shelf()}
        self._rest: list[bytes] = []
        self._fresh = _Pieces(facts)
        self._all_cycles = 0
        self.gone: Counter[str] = Counter()
        """The oldest rows, that were let go, by table."""

    @property
    def lines(self) -> int:
        """Lines so far."""
        return self._fresh.lines

    @property
    def cycles(self) -> int:
        """Cycles so far, but for the torn ones."""
        return self._all_cycles

    @property
    def newest(self) -> dict[str, Any] | None:
        """The newest cycle, columns as printed; None before the first."""
        frames = [frame for frame in tuple(self._fresh.part.cycles) if len(frame)]
        return frames[-1].row(-1, named=True) if frames else None

    def add(self, data: bytes) -> None:
        """Takes the next whole, clean lines, in any pieces (`sources.Source.chunks`)."""
        now = parse.parse(data)
        self._rest.append(data)
        whole = None
        if sum(map(len, self._rest)) >= CHUNK_BYTES:
            alone = len(self._rest) == 1
            whole = now if alone else parse.parse(b"".join(self._rest))
        with self._lock:
            self._all_cycles += len(now.cycles)
            self._fresh.add(now)
            self._fresh.settle(_FEW_SUSPECTS)
            self._fresh.keep_newest(RECENT_CYCLES)
            if whole is not None:
                self._rest.clear()
                self._read.add(whole)
                self._read.settle(MOST_SUSPECTS)
                self._shelve()

    def close(self) -> None:
        """Nothing more will come."""
        if self._rest:
            whole = parse.parse(b"".join(self._rest))
            with self._lock:
                self._rest.clear()
                self._read.add(whole)

    def let_go(self, cycles: int) -> int:
        """Forgets so many of the oldest cycles, or a few less; how many."""
        with self._lock:
            gone = self._shelves["cycles"].let_go(cycles)
            self.gone["cycles"] += gone
        return gone

    def whole(self) -> Part:
        """All that is kept, as reading the whole input would give it."""
        with self._lock:
            pieces = self._read.copy()
            rest = b"".join(self._rest)
            shelved = {table: shelf.frames() for table, shelf in self._shelves.items()}
        if rest:
            pieces.add(parse.parse(rest))
        part = pieces.mended()
        part.facts.lines = pieces.lines
        part.cycles = shelved.pop("cycles") + part.cycles
        part.messages = shelved.pop("messages", []) + part.messages
        for table, frames in shelved.items():
            part.companions[table] = frames + part.companions.get(table, [])
        return part

    def latest(self) -> Part:
        """The newest cycles, as many as `RECENT_CYCLES` and those of the last piece."""
        with self._lock:
            fresh = self._fresh.copy()
        return fresh.mended()

    def _shelve(self) -> None:
        """Packs all that does not wait for a torn line to be joined."""
        part = self._read.part
        wanted = min((each.line_no for each in self._read.suspects), default=self._read.lines)
        old = sum(
            not len(frame) or frame["line_no"][-1] + APART < wanted for frame in part.cycles
        )
        # The last cycle before a torn line helps to tell its number.
        self._shelves["cycles"].put(part.cycles[: max(old - 1, 0)])
        part.cycles = part.cycles[max(old - 1, 0) :]
        for table, frames in {**part.companions, "messages": part.messages}.items():
            shelf = self._shelves.setdefault(table, Shelf())
            shelf.put(frames)
            frames.clear()
            most = MOST_MESSAGES if table == "messages" else MOST_ROWS
            self.gone[table] += shelf.let_go(shelf.rows - most)
        self.gone["rejected"] += len(part.rejected[:-MOST_REJECTED])
        del part.rejected[:-MOST_REJECTED]


def _settled(at: list[int], lines: int) -> int:
    """How many of the suspects at these lines have nothing in common with what is to come."""
    found = 0
    for index, (line, after) in enumerate(pairwise([*at, lines + APART + 1]), start=1):
        if after - line > APART and line + CONTEXT_LINES <= lines:
            found = index
    return found
