"""What memory statistics show about a heap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from tests.helpers.logs import logfile

if TYPE_CHECKING:
    from pathlib import Path


def test_the_heap_in_use_is_compared_with_the_live_heap(tmp_path: Path) -> None:
    mb = 1 << 20
    rows = [f"{375 * mb},{150 * mb},{300 * mb},{60 * mb},0,{n}" for n in range(1, 60)]
    (found,) = gca.read(logfile(tmp_path / "seed.csv", rows)).memory()
    assert (found.held_max_mib, found.needed_max_mib) == (375, 150)
    assert "375 MiB for 150 MiB" in found.advice[0]
    assert any("sync.Pool" in text for text in found.advice)
    rows = [
        f"{175 * mb},{150 * mb},{160 * mb},{10 * mb},0,{20 + n // 30},{n}" for n in range(1, 60)
    ]
    (recycled,) = gca.read(logfile(tmp_path / "recycled.csv", rows)).memory()
    assert recycled.pool_hit_share == pytest.approx(1 - 1 / 58, abs=0.02)
    assert any("buffer pool works" in text for text in recycled.advice)
