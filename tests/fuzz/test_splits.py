"""A log that arrives in two parts, or is read in two stretches, gives the same cycles."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.api import live
from gctrace_analyzer.fleets import stretches, worker
from tests.conftest import ROOT
from tests.fuzz import splitting, targets
from tests.helpers.fleet import item
from tests.helpers.lines import LINES

if TYPE_CHECKING:
    from pathlib import Path

INPUTS = "tests/corpus/inputs"
LOGS = {
    "go1.4": ("samples/go1.4.log", 0, 9),
    "go1.16 with pacer": ("samples/pacertrace-go1.16.log", 0, 9),
    "go1.27 with gctrace=2": ("samples/gctrace2-go1.27.log", 0, 9),
    "scavenger": ("samples/scavtrace-go1.26.log", 0, 9),
    "restart": ("samples/restart-go1.26.log", 0, 6),
    "docker": (f"{INPUTS}/carriers/docker-json-file.log", 0, 6),
    "CRI": (f"{INPUTS}/carriers/cri.log", 0, 8),
    "colours": (f"{INPUTS}/carriers/plain-ansi-crlf.log", 0, 6),
    "zap": (f"{INPUTS}/carriers/logrus-json.jsonl", 0, 6),
    "syslog": (f"{INPUTS}/carriers/syslog-rfc5424.log", 0, 6),
    "journal": (f"{INPUTS}/journalctl/leakd-short.log", 0, 8),
    "kernel": (f"{INPUTS}/kernel_oom/k5.15-lxc-nested-memcg.log", 0, 60),
    "unit": (f"{INPUTS}/systemd/slices-rfc3339.log", 0, 8),
    "torn": ("", 0, 0),
}
"""Logs, and which of their lines: few, but with every kind of line and prefix."""

MOST_BYTES = 1800


def content(name: str) -> bytes:
    """Some lines of a log; a kernel's report of a kill is split whole."""
    if name == "torn":
        line = LINES["gc18"]
        torn = [
            f"{line[:40]}2026/11/21 12:00 flushed",
            line[40:],
            "GC forced",
            line.replace("gc 1 @0.004s", "gc 2 @1.500s"),
        ]
        return "\n".join(["starting", *torn, line[:50]]).encode()
    path, begin, end = LOGS[name]
    lines = (ROOT / path).read_bytes().splitlines(keepends=True)
    return b"".join(lines[begin:end])[:MOST_BYTES]


@pytest.mark.parametrize("name", LOGS)
def test_a_log_split_at_any_byte_reads_like_the_whole(name: str) -> None:
    data = content(name)
    assert splitting.is_log(data)
    assert splitting.at_once(data) is not None
    assert splitting.differences(data) == []


@pytest.mark.parametrize("number", range(4))
def test_any_lines_split_at_any_byte_read_like_the_whole(number: int) -> None:
    targets.tried("splits", number, examples=3)


def test_every_line_end_is_a_split_of_its_own() -> None:
    data = content("torn")
    # The pieces change where a line ends. The last line has no end: after the one before it,
    # the pieces are those of a first part without a whole line.
    *ends, _ = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
    assert list(splitting.pieces(data).values()) == [1, *ends]


@pytest.mark.parametrize("name", ["go1.4", "colours", "torn"])
def test_following_a_file_in_two_parts_is_the_same(name: str) -> None:
    data = content(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gca.GctraceWarning)
        for at in (1, len(data) // 2, len(data) - 1):
            seen = live(year=2026, tz="UTC")
            seen.follow(splitting.TwoParts(data, at), lambda: None)
            assert splitting.tables(seen.run()) == splitting.at_once(data), at


@pytest.mark.parametrize("name", ["go1.4", "restart", "torn"])
def test_a_fleet_reads_a_file_in_stretches_of_any_size(name: str, tmp_path: Path) -> None:
    data = content(name)
    path = tmp_path / "service.log"
    path.write_bytes(data)
    (whole, *others) = rows(path, len(data))
    assert not others or name == "restart"
    for size in (len(data) // 7, len(data) // 2 + 1):
        assert rows(path, size)[0] == whole, size


def rows(path: Path, stretch: int) -> list[dict[str, Any]]:
    """What a fleet says about the processes of a file that is read in such stretches."""
    how = worker.WorkerOptions(stretch=stretch)
    many = worker.batches([item(path)], how, files=16, size=1 << 24)
    found = [each for batch in many for each in worker.batch_rows(batch)]
    parts = [each for each in found if not isinstance(each, dict)]
    whole = [each for each in found if isinstance(each, dict)]
    given = stretches.rows_of_file(parts, item(path), {}) if parts else whole
    return [{name: row[name] for name in splitting.FLEET_COLUMNS} for row in given]
