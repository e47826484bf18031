"""Phases of load and idle times from scrapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.timeline.segments import segments_of_spans as segments
from tests.helpers.intervals import interval_spans
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
    assert found["kind"].to_list() == ["steady", "steady", "idle"]
    assert found["start_s"].to_list() == pytest.approx([0, 180, 360], abs=15)
    assert found["alloc_mib_per_s"][1] == pytest.approx(40, rel=0.1)
    assert found["gc_per_s"][0] == pytest.approx(0.2)
    assert found["cycles"].sum() == gca.read(log).summary().cycles


def test_a_steady_load_is_one_phase() -> None:
    for door in ("query-raw.json.gz", "memstats.csv.gz"):
        found = gca.read(CORPUS / "own" / "gogc100" / door).segments()
        assert found["kind"].to_list() == ["steady"]


def test_the_figures_of_phases_by_hand() -> None:
    """Ends of phases: another number of processors, another GOGC, and six minutes of peace."""
    rows = interval_spans(
        {"gc_cycles": None, "num_gc": None, "procs": None},
        {"gc_cpu_share": None, "heap_live_mib": 50.0},
        {"gc_cpu_s": None, "gc_cpu_share": 0.1, "gc_cpu_base": 15.0},
        {"procs": 4, "assist_cpu_s": None},
        {"procs": None, "gogc_pct": None, "alloc_mib": None},
        {"procs": 4, "gogc_pct": 50.0, "gc_cpu_share": None},
        {"process": 1, "length_s": 359.7, "gc_cycles": 3},
        {"process": 2, "length_s": 359.6, "gc_cycles": 3},
    )
    found = segments(rows).to_dicts()
    assert [row["process"] for row in found] == [0, 0, 0, 1, 2]
    assert [row["kind"] for row in found] == ["steady", "steady", "steady", "idle", "steady"]
    first, second, third, *_ = found
    assert (first["start_s"], first["end_s"], first["procs"]) == (0, 15, 2)
    assert (first["first_gc"], first["last_gc"], first["cycles"]) == (101, 120, 20)
    # Where the number of cycles is known
    assert first["gc_per_s"] == pytest.approx(2)
    assert first["gc_cpu_share"] == pytest.approx((0.4 * 10 + 0.1 * 10) / 20)
    assert first["assist_share_of_gc_cpu"] == pytest.approx(2 / (0.4 * 10 + 0.1 * 10))
    assert first["alloc_mib_per_s"] == pytest.approx(24)
    assert (first["live_heap_p50_mib"], first["effective_gogc_p50"]) == (80, 25)
    assert (second["procs"], second["cycles"], second["alloc_mib_per_s"]) == (4, 20, 24)
    assert second["assist_share_of_gc_cpu"] == pytest.approx(0.25)
    assert (third["gc_cpu_share"], third["start_s"]) == (None, 25)
    assert segments(rows.clear()).is_empty()


@pytest.mark.parametrize(
    ("length_s", "count", "phases"), [(5.0, 4, 2), (5.0, 3, 1), (15.0, 3, 2), (15.0, 2, 1)]
)
def test_a_burst_of_less_than_half_of_five_intervals_or_half_a_minute_is_no_phase(
    length_s: float, count: int, phases: int
) -> None:
    slow: dict[str, Any] = {"length_s": length_s, "alloc_mib": 120.0}
    fast = slow | {"alloc_mib": 250.0}
    assert len(segments(interval_spans(*[slow] * 12, *[fast] * count))) == phases


def test_a_phase_whose_cycles_are_not_counted_is_no_idle_time() -> None:
    (row,) = segments(interval_spans({"gc_cycles": None}, {"gc_cycles": None})).to_dicts()
    assert (row["kind"], row["gc_per_s"], row["first_gc"]) == ("steady", None, None)
