"""An input that arrives piece by piece gives the same as one that is read at once."""

from __future__ import annotations

import io
import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gctrace_analyzer import schema
from gctrace_analyzer.ingest import live_input
from gctrace_analyzer.ingest.live_input import LiveInput
from gctrace_analyzer.ingest.read import Log, ReadOptions, read_log
from gctrace_analyzer.ingest.sources import SourceFacts
from gctrace_analyzer.testing import read_text
from tests.helpers.lines import LINES
from tests.helpers.logs import records

LINE = LINES["gc18"].replace("gc 1 @0.004s", "gc 31 @31.016s")

LOG = [
    *records(30),
    f"{LINE[:30]}2026/11/21 12:00 flushed",
    LINE[30:],
    *(f"2026/11/21 12:00 line {n}" for n in range(80)),
    LINES["scav21"],
    LINES["gc18"][:40],
]


def log_of(live: LiveInput) -> Log:
    return read_log([live.text()], ReadOptions(kind="log"))


def numbers_of(live: LiveInput) -> list[int]:
    return [number for frame in live.latest().cycles for number in frame["gc_num"]]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cuts=st.lists(st.integers(1, len(LOG)), max_size=8), size=st.sampled_from([200, 1 << 20])
)
def test_pieces_give_the_same_tables_as_the_whole(
    monkeypatch: pytest.MonkeyPatch, cuts: list[int], size: int
) -> None:
    monkeypatch.setattr(live_input, "CHUNK_BYTES", size)
    live = LiveInput(SourceFacts("<stream>"))
    borders = [0, *sorted(cuts), len(LOG)]
    for begin, end in itertools.pairwise(borders):
        if LOG[begin:end]:
            live.add(("\n".join(LOG[begin:end]) + "\n").encode())
    whole = read_text("\n".join(LOG) + "\n")
    expected = read_log([io.BytesIO(("\n".join(LOG) + "\n").encode())]).tables
    assert live.lines == len(LOG)
    assert live.newest is not None
    tables = log_of(live).tables
    for name in schema.LOG_TABLES:
        assert tables[name].equals(expected[name]), name
    assert numbers_of(live) == whole.cycles["gc_num"].to_list()


@pytest.mark.parametrize(("recent", "size"), [(5, 1), (5, 3), (7, 10), (100, 1), (70, 2)])
def test_at_least_the_newest_cycles_are_there_after_each_piece(
    recent: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_input, "RECENT_CYCLES", recent)
    live = LiveInput(SourceFacts("<stream>"))
    lines = records(200)
    for at in range(0, len(lines), size):
        piece = lines[at : at + size]
        live.add(("\n".join(piece) + "\n").encode())
        total = at + len(piece)
        kept = numbers_of(live)
        assert kept == list(range(total - len(kept) + 1, total + 1))
        assert min(recent, total) <= len(kept) <= recent + 64 * size
        assert live.newest is not None
        assert live.newest["gc_num"] == total
    assert live.cycles == 200


def test_discarding_reports_how_many_cycles_are_gone() -> None:
    live = LiveInput(SourceFacts("<stream>"))
    for line in records(600):
        live.add(f"{line}\n".encode())
    discarded = live.discard(300)
    assert 300 - live_input._PIECES <= discarded == live.dropped_cycles <= 300
    log = log_of(live)
    assert log.tables["cycles"]["gc_num"][0] == discarded + 1
    assert log.tables["cycles"]["line_no"][0] == discarded + 1
    assert log.sources[0].lines == 600


def test_lines_without_cycles_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_input, "MOST_BYTES", 5_000)
    live = LiveInput(SourceFacts("<stream>"))
    for n in range(1_000):
        live.add(f"Alloc = {n} MiB, Sys = {n * n} MiB, NumGC = {n}\n".encode())
    numbers = log_of(live).tables["memstats"]["num_gc"].to_list()
    assert 50 < len(numbers) < 900
    assert numbers == list(range(1_000 - len(numbers), 1_000))


def test_lines_that_no_reader_looks_at_take_no_memory() -> None:
    live = LiveInput(SourceFacts("<stream>"))
    line = "2026/11/21 12:00:00 GET /checkout/{} 200\n"
    data = "".join(map(line.format, range(20_000)))
    for _ in range(live_input._PIECES):
        live.add(data.encode())
    live.add(f"{records(1)[0]}\n".encode())
    assert sum(len(block.packed) for block in live._blocks) < 10_000
    log = log_of(live)
    assert log.tables["cycles"]["line_no"].to_list() == [live_input._PIECES * 20_000 + 1]


def torn(n: int) -> list[str]:
    """A record that another line interrupts."""
    record = records(n)[-1]
    return [f"{record[:30]}2026/11/21 12:00 flushed", record[30:]]


def test_torn_records_are_rejoined_while_the_input_grows() -> None:
    live = LiveInput(SourceFacts("<stream>"))
    for n in range(1, 13):
        filler = [f"2026/11/21 12:00 line {k}" for k in range(74)]
        live.add(("\n".join([*torn(n), *filler]) + "\n").encode())
        assert numbers_of(live) == [*range(1, n + 1)]
    assert log_of(live).tables["cycles"]["gc_num"].to_list() == [*range(1, 13)]


def test_a_table_of_memstats_is_read_though_its_rows_arrive_later() -> None:
    lines = [*records(3), "HeapAlloc,HeapSys,NumGC", "1,2,3", *records(6)[3:], "4,5,6"]
    live = LiveInput(SourceFacts("<stream>"))
    for line in lines:
        live.add(f"{line}\n".encode())
    assert log_of(live).tables["memstats"]["num_gc"].to_list() == [3, 6]


def test_an_input_without_cycles_has_no_newest() -> None:
    live = LiveInput(SourceFacts("<stream>"))
    live.add(b"nothing\n")
    assert live.newest is None
    assert live.latest().cycles[0].is_empty()
