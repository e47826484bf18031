"""Phases of load and idle times from scrapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from tests.helpers.metrics import CORPUS

if TYPE_CHECKING:
    from pathlib import Path


def page(path: Path, rates: list[tuple[float, float]]) -> Path:
    """Writes a scrape every 15 s, with the given MiB/s and cycles/s in between."""
    lines, alloc, cycles = [], 0.0, 0.0
    for number, (mib_per_s, gc_per_s) in enumerate(rates):
        at = f"{1_700_000_000 + 15 * number}000"
        lines += [
            f"go_gc_duration_seconds_count {int(cycles)} {at}",
            f"go_memstats_alloc_bytes_total {alloc} {at}",
            f"go_memstats_next_gc_bytes 1.0e8 {at}",
        ]
        alloc += 15 * mib_per_s * 2**20
        cycles += 15 * gc_per_s
    path.write_text("\n".join(lines) + "\n")
    return path


def test_another_allocation_rate_is_another_phase(tmp_path: Path) -> None:
    log = page(tmp_path / "m.prom", [(10, 0.2)] * 12 + [(40, 0.8)] * 12 + [(0.01, 0)] * 12)
    found = gca.read(log).segments()
    assert found["kind"].to_list() == ["load", "load", "idle"]
    assert found["start_s"].to_list() == pytest.approx([0, 180, 360], abs=15)
    assert found["alloc_mib_per_s"][1] == pytest.approx(40, rel=0.1)
    assert found["gc_per_s"][0] == pytest.approx(0.2)
    assert found["cycles"].sum() == gca.read(log).summary().cycles


def test_a_steady_load_is_one_phase() -> None:
    for door in ("query-raw.json.gz", "memstats.csv.gz"):
        found = gca.read(CORPUS / "own" / "gogc100" / door).segments()
        assert found["kind"].to_list() == ["load"]
