"""A log that arrives in two parts, or is read in two stretches, gives the same cycles."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.api import live
from gctrace_analyzer.fleets import stretches, worker
from tests.conftest import ROOT
from tests.helpers.fleet import item
from tests.helpers.lines import LINES

if TYPE_CHECKING:
    from pathlib import Path

CORPUS = ROOT / "tests/corpus"
SPLITS = 40
"""Places in each log at which it is split; they fall on every part of a record."""

LOGS = {
    "plain": "samples/assists-go1.16.log",
    "go1.4": "samples/go1.4.log",
    "go1.27 with gctrace=2": "samples/gctrace2-go1.27.log",
    "restart": "samples/restart-go1.26.log",
    "docker": "tests/corpus/inputs/carriers/docker-json-file.log",
    "CRI": "tests/corpus/inputs/carriers/cri.log",
    "colours": "tests/corpus/inputs/carriers/plain-ansi-crlf.log",
    "journal": "tests/corpus/inputs/journalctl/leakd-short.log",
    "torn": "",
}
COLUMNS = ["line_no", "gc_num", "start_s", "heap_live_mib", "process", "repaired"]


def content(name: str) -> bytes:
    """The first lines of a log, as many as are split in moderate time."""
    if name == "torn":
        line = LINES["gc18"]
        torn = [
            f"{line[:40]}2026/11/21 12:00 flushed",
            line[40:],
            "GC forced",
            line.replace("gc 1 @0.004s", "gc 2 @1.500s"),
        ]
        return "\n".join(["starting", *torn, line[:50]]).encode()
    return b"".join((ROOT / LOGS[name]).read_bytes().splitlines(keepends=True)[:30])


def splits(data: bytes) -> range:
    step = max(len(data) // SPLITS, 1) | 1
    return range(1, len(data), step)


class TwoParts(io.BytesIO):
    """A file of which a part has arrived when it is first read."""

    name = "parts"

    def __init__(self, data: bytes, at: int) -> None:
        super().__init__(data)
        self.at = at

    def read(self, size: int | None = -1) -> bytes:
        here = self.tell()
        return super().read(self.at - here if here < self.at else size)


def tables(run: gca.Run) -> dict[str, Any]:
    return {
        "cycles": run.cycles.select(COLUMNS).rows(),
        "rejected": run.rejected.select("line_no", "reason").rows(),
        "kills": len(run.oom_kills),
        "memstats": len(run.memstats),
    }


@pytest.mark.parametrize("name", LOGS)
def test_a_log_that_arrives_in_two_parts_reads_like_the_whole(name: str) -> None:
    data = content(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gca.GctraceWarning)
        whole = tables(gca.read(io.BytesIO(data), year=2026, tz="UTC"))
        for at in splits(data):
            seen = live(year=2026, tz="UTC")
            seen.follow(TwoParts(data, at), lambda: None)
            assert tables(seen.run()) == whole, at


@pytest.mark.parametrize("name", ["plain", "go1.4", "restart", "CRI", "journal", "torn"])
def test_a_log_read_in_two_stretches_has_the_same_cycles(name: str, tmp_path: Path) -> None:
    data = content(name)
    path = tmp_path / "service.log"
    path.write_bytes(data)
    (whole, *others) = rows(path, len(data))
    assert not others or name == "restart"
    for at in splits(data)[SPLITS // 2 :: 2]:
        assert rows(path, at)[0] == whole, at


def rows(path: Path, stretch: int) -> list[dict[str, Any]]:
    """What a fleet says about the processes of a file that is read in such stretches."""
    how = worker.WorkerOptions(stretch=stretch)
    many = worker.batches([item(path)], how, files=16, size=1 << 24)
    found = [each for batch in many for each in worker.batch_rows(batch)]
    parts = [each for each in found if not isinstance(each, dict)]
    whole = [each for each in found if isinstance(each, dict)]
    given = stretches.rows_of_file(parts, item(path), {}) if parts else whole
    kept = (
        "process",
        "cycles",
        "first_gc",
        "missing_cycles",
        "rejected_lines",
        "repaired_cycles",
    )
    return [{name: row[name] for name in kept if name in row} for row in given]
