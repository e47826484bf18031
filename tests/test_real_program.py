"""A Go program built and run here and now, against what it measures of itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    shutil.which("go") is None, reason="there is no go command here (https://go.dev/dl)"
)


def sample(path: Path, *words: str) -> tuple[gca.Run, list[dict[str, Any]]]:
    """Returns the run of a workload, and what each of its programs measured itself."""
    command = [sys.executable, str(ROOT / "lab" / "record"), "sample", str(path), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return gca.read(path), tomllib.loads(path.with_suffix(".toml").read_text())["truth"]


def test_a_real_service_is_reported_as_it_measured_itself(tmp_path: Path) -> None:
    run, (truth,) = sample(tmp_path / "run.log", "--scenario", "steady", "--seconds", "3")
    figures = run.summary()
    assert figures.cycles == truth["NumGC"]
    assert figures.forced_cycles == truth["NumForcedGC"]
    assert figures.stw_total_ms == pytest.approx(truth["PauseTotalNs"] / 1e6, rel=0.025)
    assert figures.gc_cpu_share == pytest.approx(truth["GCCPUFraction"], rel=0.08, abs=0.01)
    # What was allocated after the last cycle is in no log.
    assert figures.alloc_total_mib == pytest.approx(truth["TotalAlloc"] / 2**20, rel=0.1)
    assert len(run.rejected) == 0


def test_restarts_of_two_real_services_are_separated(tmp_path: Path) -> None:
    words = ("--scenario", "restart", "--together", "2", "--seconds", "1.5")
    run, truths = sample(tmp_path / "run.log", *words)
    # Two of the same program at once: a first cycle may fit either of them.
    assert len(truths) == 4
    assert 4 <= len(run.processes) <= 5
    # Where both programs wrote at the very same time, the numbers cannot be assigned to either.
    lost = sum(truth["NumGC"] for truth in truths) - run.summary().cycles
    assert 0 <= lost <= 2 * len(run.rejected) + 2
