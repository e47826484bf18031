"""Reads an input that still grows, with the same result as reading it at once.

Its lines are parsed twice: as they arrive, for the live view, and again in chunks of the usual
size, for the final result. The meaning of a line may depend on the lines around it, so only
equal chunks give an equal result. Cycles, rejected lines and messages are kept, the older ones
compressed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.ingest.frame_store import FrameStore
from gctrace_analyzer.ingest.gctrace import parse
from gctrace_analyzer.ingest.gctrace.chunk import CONTEXT_LINES
from gctrace_analyzer.ingest.input import Part, add_rejoined
from gctrace_analyzer.ingest.sources import CHUNK_BYTES
from gctrace_analyzer.ingest.wrappers.strip import by_depth

if TYPE_CHECKING:
    from gctrace_analyzer.ingest.gctrace.chunk import ChunkResult, Suspect
    from gctrace_analyzer.ingest.sources import SourceFacts

APART = 2 * CONTEXT_LINES
"""A number of lines. Suspects (lines that may be parts of torn records) that are further apart
have no context line in common."""

MOST_SUSPECTS = 1000
"""How many suspects may wait for the other parts of their record before the first are
rejoined."""

_FEW_SUSPECTS = 8

MOST_REJECTED = 20_000
MOST_MESSAGES = 200_000
MOST_ROWS = 2_000_000
"""How many rejected lines, messages and other rows are kept; the oldest are discarded."""

RECENT_CYCLES = 20_000
"""How many of the newest cycles are available at any time."""

_MOST_FRAMES = 64


class _Pieces:
    """A `Part` that still grows, and the suspects, whose other parts may still arrive."""

    def __init__(self, facts: SourceFacts, lines: int = 0) -> None:
        self.part = Part(facts)
        self.lines = lines
        self.suspects: list[Suspect] = []
        self.context: list[pl.DataFrame] = []
        self.depth = 0

    def add(self, found: ChunkResult) -> None:
        here = found.shifted(self.lines)
        self.lines += found.lines
        self.suspects += here.suspects
        self.context.append(here.context)
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
        other.suspects, other.context, other.depth = (
            [*self.suspects],
            [*self.context],
            self.depth,
        )
        return other

    def rejoin_settled(self, most: int) -> None:
        """Rejoins the torn records that no later line can change, if more than `most` wait."""
        at = [suspect.line_no for suspect in self.suspects]
        if len(at) > most:
            done = _settled(at, self.lines)
            if not done and len(at) > 4 * most:
                done = sum(line + APART <= self.lines for line in at)
            if done:
                self._rejoin(self.suspects[:done])
                self.suspects = self.suspects[done:]
        first = self.suspects[0].line_no if self.suspects else self.lines
        ends = [(frame, frame["line_no"][-1]) for frame in self.context if len(frame)]
        self.context = [frame for frame, end in ends if end > first - APART]

    def keep_newest(self, cycles: int) -> None:
        """Discards everything except the newest cycles, and keeps all of the last piece."""
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

    def rejoin_all(self) -> Part:
        """Rejoins or rejects all torn lines that still wait, and returns the part."""
        if self.suspects:
            self._rejoin(self.suspects)
        return self.part

    def _rejoin(self, suspects: list[Suspect]) -> None:
        first, last = suspects[0].line_no, suspects[-1].line_no
        around = pl.col("line_no").is_between(first - APART, last + APART)
        context = pl.concat(self.context).filter(around)
        add_rejoined(self.part, suspects, by_depth(context, self.depth))


class LiveInput:
    """One input that grows; one thread calls `add`, another may call everything else."""

    def __init__(self, facts: SourceFacts) -> None:
        self.facts = facts
        self._lock = Lock()
        self._read = _Pieces(facts)
        self._stores = {"cycles": FrameStore()}
        self._rest: list[bytes] = []
        self._fresh = _Pieces(facts)
        self._all_cycles = 0
        self.discarded: Counter[str] = Counter()
        """How many of the oldest rows were discarded, by table."""

    @property
    def lines(self) -> int:
        """The number of lines so far."""
        return self._fresh.lines

    @property
    def cycles(self) -> int:
        """The number of cycles so far, without torn records."""
        return self._all_cycles

    @property
    def newest(self) -> dict[str, Any] | None:
        """The newest cycle as printed; None before the first."""
        frames = [frame for frame in tuple(self._fresh.part.cycles) if len(frame)]
        return frames[-1].row(-1, named=True) if frames else None

    def add(self, data: bytes) -> None:
        """Adds the next lines, which are whole and clean, as `Source.chunks` yields them."""
        now = parse.parse(data)
        self._rest.append(data)
        whole = None
        if sum(map(len, self._rest)) >= CHUNK_BYTES:
            alone = len(self._rest) == 1
            whole = now if alone else parse.parse(b"".join(self._rest))
        with self._lock:
            self._all_cycles += len(now.cycles)
            self._fresh.add(now)
            self._fresh.rejoin_settled(_FEW_SUSPECTS)
            self._fresh.keep_newest(RECENT_CYCLES)
            if whole is not None:
                self._rest.clear()
                self._read.add(whole)
                self._read.rejoin_settled(MOST_SUSPECTS)
                self._store()

    def close(self) -> None:
        """Parses the remaining lines."""
        if self._rest:
            whole = parse.parse(b"".join(self._rest))
            with self._lock:
                self._rest.clear()
                self._read.add(whole)

    def discard(self, cycles: int) -> int:
        """Discards about this many of the oldest cycles; returns how many."""
        with self._lock:
            discarded = self._stores["cycles"].discard(cycles)
            self.discarded["cycles"] += discarded
        return discarded

    def whole(self) -> Part:
        """Returns everything that is kept, in the form that reading the whole input gives."""
        with self._lock:
            pieces = self._read.copy()
            rest = b"".join(self._rest)
            stored = {table: store.frames() for table, store in self._stores.items()}
        if rest:
            pieces.add(parse.parse(rest))
        part = pieces.rejoin_all()
        part.facts.lines = pieces.lines
        part.cycles = stored.pop("cycles") + part.cycles
        part.messages = stored.pop("messages", []) + part.messages
        for table, frames in stored.items():
            part.companions[table] = frames + part.companions.get(table, [])
        return part

    def latest(self) -> Part:
        """Returns the newest cycles: about `RECENT_CYCLES`, with all of the last piece."""
        with self._lock:
            fresh = self._fresh.copy()
        return fresh.rejoin_all()

    def _store(self) -> None:
        """Compresses everything that is no longer needed to rejoin torn records."""
        part = self._read.part
        wanted = min((each.line_no for each in self._read.suspects), default=self._read.lines)
        old = sum(
            not len(frame) or frame["line_no"][-1] + APART < wanted for frame in part.cycles
        )
        # Keeps the last cycle before a torn record: it helps to find the number of that record.
        self._stores["cycles"].add(part.cycles[: max(old - 1, 0)])
        part.cycles = part.cycles[max(old - 1, 0) :]
        for table, frames in {**part.companions, "messages": part.messages}.items():
            store = self._stores.setdefault(table, FrameStore())
            store.add(frames)
            frames.clear()
            most = MOST_MESSAGES if table == "messages" else MOST_ROWS
            self.discarded[table] += store.discard(store.rows - most)
        self.discarded["rejected"] += len(part.rejected[:-MOST_REJECTED])
        del part.rejected[:-MOST_REJECTED]


def _settled(at: list[int], lines: int) -> int:
    """Returns how many of the suspects at these lines are not affected by later lines."""
    found = 0
    for index, (line, after) in enumerate(pairwise([*at, lines + APART + 1]), start=1):
        if after - line > APART and line + CONTEXT_LINES <= lines:
            found = index
    return found
