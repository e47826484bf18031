"""What memory statistics show about a heap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from tests.helpers.logs import logfile

if TYPE_CHECKING:
    from pathlib import Path

    from gctrace_analyzer.analysis.postmortem.memory import Memory


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


def dump(path: Path, header: str, *rows: tuple[float, ...]) -> Memory:
    text = "\n".join(",".join(str(int(mib * (1 << 20))) for mib in row) for row in rows)
    (found,) = gca.read(logfile(path / "dump.csv", [header, text])).memory()
    return found


def test_the_heap_in_use_is_what_is_not_idle_if_no_figure_says_so(tmp_path: Path) -> None:
    found = dump(
        tmp_path,
        "Sys,HeapSys,HeapIdle,HeapReleased,HeapAlloc",
        (300, 200, 50, 20, 140),
        (320, 250, 90, 30, 130),
    )
    assert (found.heap_sys_mib, found.heap_sys_max_mib) == (250, 250)
    assert (found.held_mib, found.held_max_mib) == (220, 220)
    assert (found.needed_mib, found.needed_max_mib) == (160, 160)
    assert found.needed_is == "heap in use"
    assert found.idle_unreleased_mib == 60
    assert found.fragmentation_mib == 30
    assert (found.sys_mib, found.off_heap_go_mib, found.alloc_mib) == (320, 70, 130)
    assert found.dumps == 2


def test_held_but_idle_memory_is_named(tmp_path: Path) -> None:
    header = "HeapSys,HeapIdle,HeapReleased,HeapInuse,HeapAlloc"
    found = dump(tmp_path, header, (400, 300, 0, 100, 90))
    assert "held up to 400 MiB for 100 MiB of heap in use: 4.0 times" in found.advice[0]
    assert "300 MiB of it are idle" in found.advice[1]
    calm = dump(tmp_path, header, (120, 20, 10, 100, 90))
    assert calm.advice == ()
