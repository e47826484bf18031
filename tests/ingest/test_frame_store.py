"""Compressed frames are those that were added, and the oldest are discarded first."""

from __future__ import annotations

import polars as pl
import pytest

from gctrace_analyzer.ingest.frame_store import FrameStore

FRAMES = [
    pl.DataFrame({"n": [*range(at, at + length)]}) for at, length in ((0, 3), (3, 5), (8, 2))
]


@pytest.mark.parametrize(
    ("most", "left"),
    [
        (0, [3, 5, 2]),
        (2, [3, 5, 2]),
        (3, [5, 2]),
        (7, [5, 2]),
        (8, [2]),
        (9, [2]),
        (10, []),
        (99, []),
    ],
)
def test_whole_frames_are_discarded_as_many_as_fit(most: int, left: list[int]) -> None:
    store = FrameStore()
    store.add([FRAMES[0], FRAMES[0].clear(), *FRAMES[1:]])
    assert store.rows == 10
    assert store.discard(most) == 10 - sum(left)
    assert store.rows == sum(left)
    kept = store.frames()
    assert [len(frame) for frame in kept] == left
    assert all(a.equals(b) for a, b in zip(reversed(kept), reversed(FRAMES), strict=False))
