"""A log while it is written gives the figures of the same log read at once."""

from __future__ import annotations

import io
import re
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import gctrace_analyzer as gca
from gctrace_analyzer.api import live
from gctrace_analyzer.errors import GctraceError
from gctrace_analyzer.ingest import sniff
from gctrace_analyzer.ingest.sources import Source, SourceFacts
from gctrace_analyzer.ingest.wrappers.quoting import quoting
from gctrace_analyzer.live import Intervals, Live
from tests.conftest import CORPUS, SAMPLES
from tests.fuzz.inputs import of_every_kind

if TYPE_CHECKING:
    from pathlib import Path

    from gctrace_analyzer.run import Run

PARTS = 4
"""Several tests share the logs, so that they run on several processors."""

PIECES = (1, 700, 64, 5000, 13, 30_000, 1)
"""Sizes of the pieces a log comes in, over and over."""

NOT_FOLLOWED = {
    # Documents of metrics, below the command that printed them.
    "k1-victoria-export-jsonl-f.log", "k19-vault-sys-metrics-json-f.log",
    # A page of metrics that was indented with its command.
    "k1-timbala-indented-scrape-no-cycle-yet-i.log",
    # What another command printed is of the only dump of a whole file.
    "k19-ps-rss-and-print-f.log", "k19-smaps-rollup-file-f.log", "k19-top-shr-f.log",
}  # fmt: skip
"""Inputs that somebody pasted, and that nothing writes while it is followed."""

LEARNT = {
    # How many of its 40 processors a pause stops.
    "go18896-fragmentation-two-runs.log",
    # When it started: its clocks differ by half a second within two minutes.
    "k19-gctrace-go122-globals-641mb-l.log",
}
"""Logs from all of whose few cycles something is learnt: the first intervals were reported before."""


class Trickle(io.RawIOBase):
    """A file that gives its bytes in small pieces."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name, self._data, self._at, self._turn = name, data, 0, 0

    def read(self, size: int = -1) -> bytes:
        size = PIECES[self._turn % len(PIECES)] * max(1, len(self._data) // 10_000)
        self._turn, begin = self._turn + 1, self._at
        self._at += size
        return self._data[begin : self._at]


def read_log(path: Path) -> Run | None:
    """What is read of a file that can be followed: lines, and something of ours among them."""
    try:
        with Source(path) as source:
            raw, text = source.head(sniff.SNIFF_BYTES)
            # A text that is quoted or indented as a whole is a paste, which does not grow.
            if sniff.sniff(raw, text) != "log" or quoting(raw.decode(errors="replace")):
                return None
        run = gca.read(path)
    except GctraceError:
        return None
    # Documents, also between the lines, cannot be followed.
    whole = {"mixed", "json", "pprof"}
    return None if any(source.kind in whole for source in run.sources) else run


@cache
def logs() -> list[Path]:
    names = {".json", ".md", ".py", ".toml"}
    return of_every_kind(
        path
        for path in (*SAMPLES.rglob("*.log"), *CORPUS.glob("*/**/*"))
        if path.is_file() and not {path.suffix, path.name} & (names | NOT_FOLLOWED)
    )


def followed(path: Path, every_s: float) -> tuple[Live, list[dict[str, object]]]:
    """The log as it comes, and its intervals as they were reported."""
    seen = live()
    intervals, reported = Intervals(seen, every_s), list[dict[str, object]]()
    seen.follow(Trickle(path.read_bytes(), str(path)), lambda: reported.extend(intervals.new()))
    return seen, reported + intervals.new(ended=True)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.filterwarnings("ignore::gctrace_analyzer.GctraceWarning")
def test_a_log_read_in_pieces_is_the_same_as_the_whole(part: int) -> None:
    followed_logs = 0
    for path in logs()[part::PARTS]:
        if whole := read_log(path):
            followed_logs += 1
            every_s = max(1.0, (whole.summary().span_s or 0.0) / 3)
            seen, reported = followed(path, every_s)
            assert differences(seen.run(), whole) == [], path
            if whole.cycles["start_s"].count() and path.name not in LEARNT:
                windows = whole.windows(every_s)
                rows = pl.DataFrame(reported, schema=windows.schema)
                assert_same_windows(
                    rows.sort("process", "start_s"), windows.sort("process", "start_s"), path
                )
    assert followed_logs > 12


def differences(one: Run, other: Run) -> list[str]:
    """Which facts, or tables, of two runs differ; all of a report is made of them."""
    first, second = one.analysis.log, other.analysis.log
    facts = [each.name for each in fields(first) if each.name not in ("tables", "profiles")]
    return [
        *(name for name in facts if getattr(first, name) != getattr(second, name)),
        *(first.tables.keys() ^ second.tables.keys()),
        *(
            name
            for name, table in first.tables.items()
            if not table.equals(second.tables[name])
        ),
        *(["settings"] if one.settings != other.settings else []),
    ]


GC_CPU = ("gc_cpu_share", "gc_cpu_with_idle_share", "assist_share_of_gc_cpu")
"""What the percentages of later lines bound too: an interval is reported before they come."""


def assert_same_windows(reported: pl.DataFrame, whole: pl.DataFrame, path: Path) -> None:
    try:
        assert_frame_equal(reported.drop(GC_CPU), whole.drop(GC_CPU), abs_tol=1e-9)
        last = [frame.group_by("process").last().sort("process") for frame in (reported, whole)]
        assert_frame_equal(*(frame.select(GC_CPU) for frame in last), abs_tol=1e-9)
    except AssertionError as err:
        err.add_note(f"{path}")
        raise


@cache
def intervals_of(
    text: str, every_s: float, seen: Live | None = None
) -> list[dict[str, object]]:
    """The intervals of a log whose lines come one by one."""
    seen = seen or live()
    intervals, reported = Intervals(seen, every_s), list[dict[str, object]]()
    seen.begin(SourceFacts("stream"))
    for line in text.splitlines(keepends=True):
        seen.add(line.encode())
        reported += intervals.new()
    return reported + intervals.new(ended=True)


def test_an_interval_may_have_more_cycles_than_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gctrace_analyzer.ingest.live_input.RECENT_CYCLES", 10)
    path = SAMPLES / "thrash-go1.19.log"
    whole = gca.read(path).windows(2.0)
    seen = live()
    reported = intervals_of(path.read_text(), 2.0, seen)
    recent = seen.recent()
    assert recent is not None
    assert len(recent.cycles) < 50 < len(gca.read(path).cycles)
    assert_same_windows(pl.DataFrame(reported, schema=whole.schema), whole, path)


STEADY = (SAMPLES / "steady-go1.26.log").read_text()
MIDDLE = re.findall(r"^gc \d+ @.*\n", STEADY, re.MULTILINE)[16]


@pytest.mark.parametrize("start_s", ["3000.000", "4294967.296", "429496729.600"])
@pytest.mark.parametrize("is_last", [False, True])
def test_a_damaged_start_makes_no_intervals(start_s: str, is_last: bool) -> None:
    damaged = re.sub(r"@[\d.]+s", f"@{start_s}s", MIDDLE)
    text = STEADY.replace(MIDDLE, damaged)
    if is_last:
        text = text[: text.index(damaged) + len(damaged)]
    reported = intervals_of(text, 0.1)
    assert 9 <= len(reported) <= 20
    expected = {row["start_s"]: row["cycles"] for row in intervals_of(STEADY, 0.1)}
    assert all(row["cycles"] in (expected[row["start_s"]], 0, 1, 2) for row in reported)


def test_a_damaged_duration_makes_few_intervals() -> None:
    damaged = re.sub(r"\+\d+\+", "+900000000+", MIDDLE, count=1)
    text = STEADY.replace(MIDDLE, damaged)
    assert len(intervals_of(text, 0.1)) == len(intervals_of(STEADY, 0.1))
    cut = text[: text.index(damaged) + len(damaged)]
    assert len(intervals_of(cut, 5.0)) <= 120
    assert len(intervals_of(cut, 0.1)) <= 20


def test_a_program_that_has_run_for_long_has_intervals() -> None:
    old = re.sub(r"@([\d.]+)s", lambda at: f"@{float(at[1]) + 8e6:.3f}s", STEADY)
    old = re.sub(r"^gc (\d+) ", r"gc 90\1 ", old, flags=re.MULTILINE)
    reported = intervals_of(old, 1.0)
    assert [row["start_s"] for row in reported] == [8e6, 8e6 + 1]
