"""Stores the frames of a long-running input compressed, and discards the oldest."""

from __future__ import annotations

import io
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable


class _Packed(NamedTuple):
    rows: int
    data: bytes


class FrameStore:
    """The older frames of one table, compressed to about a sixth of their size."""

    def __init__(self) -> None:
        self._packed: deque[_Packed] = deque()
        self.rows = 0

    def add(self, frames: Iterable[pl.DataFrame]) -> None:
        """Adds frames, in order."""
        for frame in frames:
            if len(frame):
                file = io.BytesIO()
                frame.write_ipc(file, compression="zstd")
                self._packed.append(_Packed(len(frame), file.getvalue()))
                self.rows += len(frame)

    def frames(self) -> list[pl.DataFrame]:
        """Returns all frames, decompressed."""
        # `tuple` makes a copy, because another thread may add frames at the same time.
        return [pl.read_ipc(io.BytesIO(each.data)) for each in tuple(self._packed)]

    def discard(self, rows: int) -> int:
        """Discards the oldest frames, at most `rows` rows; returns how many rows."""
        discarded = 0
        while self._packed and discarded + self._packed[0].rows <= rows:
            discarded += self._packed.popleft().rows
        self.rows -= discarded
        return discarded
