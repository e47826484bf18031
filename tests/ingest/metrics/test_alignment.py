"""Gctrace without timestamps is placed at the times of metrics that count the same cycles."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.present.html import report
from tests.conftest import CORPUS
from tests.helpers.logs import logfile

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

OWN = CORPUS / "metrics" / "own"
LAYOUTS = ("expvar.jsonl.gz", "memstats.csv.gz", "query-raw.json.gz", "scrapes.om.gz")
PLACED = "placed at the times of the metrics"
APART = "has a time axis of its own"


def started(run: gca.Run) -> datetime | None:
    found: datetime | None = run.processes["started_at"].item()
    return found


def test_every_layout_gives_the_same_start() -> None:
    """Each layout was recorded at other moments of the same run."""
    folder = OWN / "gogc100"
    starts = [started(gca.read(folder / "run.log.gz", folder / name)) for name in LAYOUTS]
    known = [each for each in starts if each is not None]
    assert len(known) == len(LAYOUTS)
    assert (max(known) - min(known)).total_seconds() < 0.2


def test_cycles_and_dumps_share_an_axis_and_the_report_says_why() -> None:
    folder = OWN / "gogc200"
    run = gca.read(folder / "run.log.gz", folder / "memstats.csv.gz")
    assert any(PLACED in each for each in run.summary().warnings)
    assert run.cycles["wall_time"].null_count() == 0
    # Each dump lies after the end of the cycle that it counts.
    dumps = run.memstats.select("num_gc", "logged_at")
    met = dumps.join(run.cycles, left_on="num_gc", right_on="gc_num")
    late = (met["logged_at"] - met["wall_time"]).dt.total_microseconds() / 1e6
    assert len(met) > 20
    assert -0.1 < late.min() < late.max() < 5  # type: ignore[operator]  # both are numbers
    page = report.dumps(run.report())
    assert PLACED in page
    assert APART not in page


def test_metrics_of_another_run_place_nothing() -> None:
    run = gca.read(OWN / "gogc100" / "run.log.gz", OWN / "gogc200" / "memstats.csv.gz")
    assert started(run) is None
    assert not any(PLACED in each for each in run.summary().warnings)
    assert APART in report.dumps(run.report())


def test_the_start_that_is_given_is_used() -> None:
    folder = OWN / "gogc100"
    start = "2026-11-21T19:00:00Z"
    run = gca.read(folder / "run.log.gz", folder / "memstats.csv.gz", start=start)
    assert str(started(run)).startswith("2026-11-21 19:00:00")


@pytest.mark.parametrize("lines", [1, 2])
def test_too_few_cycles_place_nothing(tmp_path: Path, lines: int) -> None:
    folder = OWN / "gogc100"
    text = gzip.decompress((folder / "run.log.gz").read_bytes()).decode().splitlines()
    run = gca.read(logfile(tmp_path / "log", text[20 : 20 + lines]), folder / "memstats.csv.gz")
    assert started(run) is None
