"""Keeps the relevant lines of an input that still grows, so that it can be read at any time.

Lines that no reader needs become empty, which takes no memory, so the other lines keep their
numbers. All kept lines can be read like a file (`text`). The newest cycles come from the results of
their pieces (`latest`).
"""

from __future__ import annotations

import io
import zlib
from collections import deque
from dataclasses import replace
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from gctrace_analyzer.ingest.gctrace import parse
from gctrace_analyzer.ingest.gctrace.lines import split
from gctrace_analyzer.ingest.gctrace.toolchain import GO_COMMANDS
from gctrace_analyzer.ingest.input import Part, part_of_log
from gctrace_analyzer.ingest.sniff import PROFILES, SNIFF_BYTES
from gctrace_analyzer.ingest.sources import CHUNK_BYTES

if TYPE_CHECKING:
    from gctrace_analyzer.ingest.gctrace.chunk import ChunkResult
    from gctrace_analyzer.ingest.sources import SourceFacts

RECENT_CYCLES = 20_000
"""Newest cycles that are available at any time."""

MOST_BYTES = 64 << 20
"""Compressed bytes of one input that are kept; the oldest are dropped."""

_PIECES = 32
"""Pieces that are read again as one, because each has a cost of its own."""

_FASTEST = 1


class _Block(NamedTuple):
    """Some lines, compressed, and their content."""

    lines: int
    cycles: int
    packed: bytes


class LiveInput:
    """One input that grows; one thread calls `add`, another may call everything else."""

    def __init__(self, facts: SourceFacts) -> None:
        self.facts = facts
        self.lines = self.cycles = 0
        """The number of lines, and of cycles without torn records, so far."""
        self.beginning = b""
        self.newest: dict[str, object] | None = None
        """The newest cycle as printed; None before the first."""
        self.dropped_cycles = self._dropped_lines = 0
        self._lock = Lock()
        self._blocks: deque[_Block] = deque()
        self._recent: deque[ChunkResult] = deque()
        self._pieces: list[bytes] = []
        self._results: list[ChunkResult] = []

    def add(self, data: bytes) -> None:
        """Adds the next lines, which are whole and clean, as `Source.chunks` yields them."""
        if (room := SNIFF_BYTES - len(self.beginning)) > 0:
            self.beginning += data[:room]
        result = parse.parse(data)
        is_full = (
            len(self._pieces) + 1 >= _PIECES
            or sum(map(len, self._pieces)) + len(data) >= CHUNK_BYTES
        )
        block = b"".join((*self._pieces, data)) if is_full else b""
        whole = parse.parse(block) if self._pieces and is_full else result
        packed = _packed(block, whole) if is_full else None
        with self._lock:
            self.lines += result.lines
            self.cycles += len(result.cycles)
            if len(result.cycles):
                self.newest = result.cycles.row(-1, named=True)
            if packed is None:
                self._pieces.append(data)
                self._results.append(result)
                return
            self._pieces, self._results = [], []
            self._blocks.append(packed)
            self._recent.append(whole)
            while (
                sum(len(each.cycles) for each in self._recent) - len(self._recent[0].cycles)
                >= RECENT_CYCLES
            ):
                self._recent.popleft()
            while sum(len(each.packed) for each in self._blocks) > MOST_BYTES:
                self._drop()

    def discard(self, cycles: int) -> int:
        """Drops blocks of the oldest lines, at most `cycles` cycles; returns how many."""
        before = self.dropped_cycles
        with self._lock:
            while self._blocks and self._blocks[0].cycles <= cycles - (
                self.dropped_cycles - before
            ):
                self._drop()
        return self.dropped_cycles - before

    def _drop(self) -> None:
        oldest = self._blocks.popleft()
        self._dropped_lines += oldest.lines
        self.dropped_cycles += oldest.cycles

    def text(self) -> io.BytesIO:
        """Returns the kept lines as a file of the same name, with the same numbers."""
        with self._lock:
            blocks, pieces = [*self._blocks], [*self._pieces]
            before = b"\n" * self._dropped_lines
        texts = (zlib.decompress(block.packed) for block in blocks)
        data = b"".join(chain((before,), texts, pieces))
        file = io.BytesIO(data if self.facts.ends_in_newline else data.removesuffix(b"\n"))
        file.name = self.facts.name
        return file

    def latest(self) -> Part:
        """Returns the newest cycles: about `RECENT_CYCLES`, including all of the last piece."""
        with self._lock:
            results = [*self._recent, *self._results]
            before = self.lines - sum(result.lines for result in results)
        return part_of_log(replace(self.facts, lines=before), iter(results))


def _packed(data: bytes, result: ChunkResult) -> _Block:
    """Returns lines with empty text for lines that no reader needed."""
    frames = (result.cycles, *result.companions.values(), result.messages, result.context)
    read = [frame["line_no"].cast(pl.Int64) for frame in frames]
    read.append(pl.Series([suspect.line_no for suspect in result.suspects], dtype=pl.Int64))
    lines = split(data).with_row_index("line_no", offset=1)
    kept = pl.col("line_no").cast(pl.Int64).is_in(pl.concat(read).unique().implode())
    kept |= pl.any_horizontal(
        pl.col("text").str.contains(words, literal=True) for words in (*GO_COMMANDS, PROFILES)
    )
    text = lines.select(pl.when(kept).then("text").fill_null("").str.join("\n")).item()
    packed = zlib.compress(f"{text}\n".encode(), _FASTEST)
    return _Block(result.lines, len(result.cycles), packed)
