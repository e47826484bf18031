"""Frames that pile up for hours: packed, and the oldest let go."""

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


class Shelf:
    """The older frames of one table, packed to about a sixth of their size."""

    def __init__(self) -> None:
        self._packed: deque[_Packed] = deque()
        self.rows = 0

    def put(self, frames: Iterable[pl.DataFrame]) -> None:
        """Packs frames, which come after all others here."""
        for frame in frames:
            if len(frame):
                file = io.BytesIO()
                frame.write_ipc(file, compression="zstd")
                self._packed.append(_Packed(len(frame), file.getvalue()))
                self.rows += len(frame)

    def frames(self) -> list[pl.DataFrame]:
        """All of them, unpacked."""
        # Copied first: frames are put here while somebody reads.
        return [pl.read_ipc(io.BytesIO(each.data)) for each in tuple(self._packed)]

    def let_go(self, rows: int) -> int:
        """Drops the oldest frames as long as that is no more than `rows`; how many rows."""
        gone = 0
        while self._packed and gone + self._packed[0].rows <= rows:
            gone += self._packed.popleft().rows
        self.rows -= gone
        return gone
