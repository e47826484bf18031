"""Programs whose allocation is known: what their profiles and logs say of it."""

from __future__ import annotations

import json
import math
import statistics
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from tests.helpers.profiles import MANIFEST, OWN, PROFILES, printed, truth

if TYPE_CHECKING:
    from pathlib import Path

RATE_BYTES = 512 << 10
REMOVED = [
    (row["name"], function, side)
    for row in MANIFEST["own"]
    for function, side in row["removed"].items()
]


@pytest.mark.parametrize("program", OWN)
def test_a_profile_samples_what_the_program_counted(program: str) -> None:
    """What is sampled of an allocation is Poisson: one standard error is sqrt(bytes * rate)."""
    rows = printed(PROFILES / program / "pprof" / "alloc_space-cum.txt")
    for function, counted in truth(program).items():
        assert abs(rows[function].cum - counted) < 4 * math.sqrt(counted * RATE_BYTES)


def _gc_cpu_s(log: Path) -> float:
    """GC CPU time of a run, with idle marking: what would not be spent without GC."""
    summary = gca.read(log, gogc=100).summary()
    assert summary.gc_cpu_with_idle_cores is not None
    wall_s: float = json.loads(log.with_suffix(".json").read_text())["wall_s"]
    return summary.gc_cpu_with_idle_cores * wall_s


@pytest.mark.parametrize(("program", "function", "side"), REMOVED)
def test_gc_cpu_follows_allocation(program: str, function: str, side: str) -> None:
    runs = PROFILES / program / "runs"
    before, after = (
        statistics.median(_gc_cpu_s(runs / f"{name}-{number}.log") for number in range(1, 6))
        for name in ("all", side)
    )
    allocated = truth(program)
    predicted = allocated[function] / sum(allocated.values())
    assert predicted == pytest.approx(1 - after / before, rel=0.25)
