"""Gctrace without timestamps is placed at the times of metrics that count the same cycles."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.ingest.metrics import alignment
from gctrace_analyzer.present.html import report_page
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS
from tests.helpers.logs import logfile

if TYPE_CHECKING:
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


@pytest.mark.parametrize(
    ("name", "within"), [("memstats.csv.gz", "0.01"), ("query-raw.json.gz", "0.073")]
)
def test_the_note_says_how_exact_the_start_is(name: str, within: str) -> None:
    """Never less than 0.01 s, because lines are written after the end of a cycle."""
    folder = OWN / "gogc100"
    (note,) = [
        each
        for each in gca.read(folder / "run.log.gz", folder / name).summary().warnings
        if PLACED in each
    ]
    assert note.endswith(f"this is exact to about {within} s.")


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
    page = report_page.dumps(run.report())
    assert PLACED in page
    assert APART not in page


def test_metrics_of_another_run_place_nothing() -> None:
    run = gca.read(OWN / "gogc100" / "run.log.gz", OWN / "gogc200" / "memstats.csv.gz")
    assert started(run) is None
    assert not any(PLACED in each for each in run.summary().warnings)
    assert APART in report_page.dumps(run.report())


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


BEGIN_S = 1_770_112_800.0


def aligned(
    counted: list[tuple[int, float]], last_gc_s: list[float] | None = None, count: int = 8
) -> tuple[float, float] | None:
    """Returns start and uncertainty; cycle n begins after n seconds and takes 0.4 s.

    `counted` are numbers of cycles, and the seconds after the start at which they were read.
    """
    lines = [
        f"gc {n} @{n}.000s 0%: 100+200+100 ms clock, 1+1/1/1+1 ms cpu, 4->4->2 MB, 4 MB goal, 2 P"
        for n in range(1, count + 1)
    ]
    cycles = read_text("\n".join(lines) + "\n").cycles
    memstats = pl.DataFrame({
        "logged_at": [datetime.fromtimestamp(BEGIN_S + at, UTC) for _, at in counted],
        "num_gc": [n for n, _ in counted],
        "last_gc_unix_ns": [int((BEGIN_S + at) * 1e9) for at in last_gc_s]
        if last_gc_s else [0] * len(counted),
    })  # fmt: skip
    found = alignment.started_at(cycles, memstats)
    return found and (found[0].timestamp() - BEGIN_S, found[1])


def test_the_start_is_between_the_ends_of_the_cycles_that_were_counted() -> None:
    """Read 0.3 s after the end of cycle 2 and 0.1 s before that of cycle 4: 0.1 s too early to
    0.3 s too late."""
    found = aligned([(2, 2.7), (3, 4.3), (5, 5.9)])
    assert found is not None
    assert found == pytest.approx((0.1, 0.2), abs=1e-5)


def test_the_time_of_the_last_cycle_is_exact() -> None:
    found = aligned([(2, 2.7), (3, 3.9), (5, 5.9)], [2.4, 3.4, 5.4])
    assert found == pytest.approx((0, 0), abs=1e-5)


@pytest.mark.parametrize(
    ("counted", "fits"),
    [
        ([(2, 2.7), (3, 3.7)], False),  # two numbers could fit by chance
        ([(2, 2.7), (2, 2.8), (3, 3.7)], False),
        ([(2, 2.7), (3, 3.7), (4, 4.7)], True),
        ([(2, 2.5), (3, 4.8), (4, 4.8)], False),  # 3 cycles, 0.4 s after cycle 4 has ended
        ([(2, 2.5), (3, 4.7), (4, 4.8)], True),  # a little later than the timestamp says
        ([(3, 3.7), (2, 4.7), (4, 5.7)], False),  # a restart between them
        ([(20, 2.7), (30, 3.7), (40, 4.7)], False),
    ],
)
def test_three_numbers_of_cycles_must_agree_on_the_start(
    counted: list[tuple[int, float]], fits: bool
) -> None:
    assert (aligned(counted) is not None) is fits
