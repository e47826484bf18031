"""An input that arrives piece by piece gives the same as one that is read at once."""

from __future__ import annotations

import io
import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gctrace_analyzer import schema
from gctrace_analyzer.ingest import live_input
from gctrace_analyzer.ingest.frame_store import FrameStore
from gctrace_analyzer.ingest.gctrace import parse
from gctrace_analyzer.ingest.gctrace.chunk import CONTEXT_LINES
from gctrace_analyzer.ingest.live_input import LiveInput
from gctrace_analyzer.ingest.read import Log, ReadOptions, complete_part, joined_log, read_log
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
    part = live.whole()
    options = ReadOptions()
    return joined_log([part], options, complete_part(part, options.clock))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cuts=st.lists(st.integers(1, len(LOG)), max_size=8), size=st.sampled_from([200, 1 << 20])
)
def test_pieces_give_the_same_tables_as_the_whole(
    monkeypatch: pytest.MonkeyPatch, cuts: list[int], size: int
) -> None:
    monkeypatch.setattr(live_input, "CHUNK_BYTES", size)
    monkeypatch.setattr(live_input, "MOST_SUSPECTS", 0)
    live = LiveInput(SourceFacts("<stream>"))
    borders = [0, *sorted(cuts), len(LOG)]
    for begin, end in itertools.pairwise(borders):
        if LOG[begin:end]:
            live.add(("\n".join(LOG[begin:end]) + "\n").encode())
    whole = read_text("\n".join(LOG) + "\n")
    expected = read_log([io.BytesIO(("\n".join(LOG) + "\n").encode())]).tables
    assert live.lines == len(LOG)
    assert live.newest is not None
    for _ in range(2):
        tables = log_of(live).tables
        for name in schema.LOG_TABLES:
            assert tables[name].equals(expected[name]), name
        live.close()
    newest = [row for frame in live.latest().cycles for row in frame["gc_num"]]
    assert newest == whole.cycles["gc_num"].to_list()


def test_the_newest_cycles_are_available_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_input, "RECENT_CYCLES", 5)
    live = LiveInput(SourceFacts("<stream>"))
    for line in records(100):
        live.add(f"{line}\n".encode())
    part = live.latest()
    assert live.cycles == 100
    assert sum(map(len, part.cycles)) == live_input.RECENT_CYCLES
    assert part.cycles[-1]["gc_num"][-1] == 100


def test_the_oldest_frames_are_discarded() -> None:
    frames = [
        parse.parse(("\n".join(records(count)) + "\n").encode()).cycles for count in (3, 4, 5)
    ]
    store = FrameStore()
    store.add(frames)
    assert store.discard(8) == 7
    assert store.rows == 5
    assert store.frames()[0].equals(frames[-1])


def test_many_small_pieces_keep_the_newest_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_input, "RECENT_CYCLES", 2_000)
    live = LiveInput(SourceFacts("<stream>"))
    for line in records(live_input.RECENT_CYCLES // 4 + 400):
        live.add(f"{line}\n".encode())
    numbers = [n for frame in live.latest().cycles for n in frame["gc_num"]]
    assert numbers == sorted(numbers)
    assert numbers[-1] == live.cycles


def test_discarding_reports_how_many_cycles_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_input, "CHUNK_BYTES", 1)
    live = LiveInput(SourceFacts("<stream>"))
    for line in records(600):
        live.add(f"{line}\n".encode())
    discarded = live.discard(300)
    assert discarded == live.discarded["cycles"] > 0
    assert log_of(live).tables["cycles"]["gc_num"][0] == discarded + 1


def test_lines_that_are_not_yet_a_whole_chunk_belong_to_the_whole() -> None:
    live = LiveInput(SourceFacts("<stream>"))
    lines = [*records(3), LINES["scav21"], LINES["gc18"][:40]]
    for line in lines:
        live.add(f"{line}\n".encode())
    log = log_of(live)
    assert log.tables["cycles"]["gc_num"].to_list() == [1, 2, 3]
    assert len(log.tables["scavenges"]) == len(log.tables["rejected"]) == 1
    assert log.sources[0].lines == len(lines)


def torn(n: int) -> list[str]:
    """A record that another line interrupts."""
    record = records(n)[-1]
    return [f"{record[:30]}2026/11/21 12:00 flushed", record[30:]]


def test_torn_records_are_rejoined_while_the_input_grows() -> None:
    live = LiveInput(SourceFacts("<stream>"))
    count = 12
    for n in range(1, count + 1):
        filler = [f"2026/11/21 12:00 line {k}" for k in range(live_input.APART + 10)]
        live.add(("\n".join([*torn(n), *filler]) + "\n").encode())
        waiting = len(live._fresh.suspects)
        # The parts of all but the last few are together before anyone asks for the result.
        assert waiting <= 2 * 8 + 2
    assert [n for frame in live.latest().cycles for n in frame["gc_num"]] == [*range(1, 13)]


@given(st.lists(st.integers(1, 400), max_size=12, unique=True), st.integers(0, 200))
def test_a_torn_line_is_settled_if_no_later_line_can_be_its_other_part(
    at: list[int], more: int
) -> None:
    at.sort()
    lines = (at[-1] if at else 0) + more
    done = live_input._settled(at, lines)
    apart, context = live_input.APART, CONTEXT_LINES
    possible = [
        n
        for n in range(1, len(at) + 1)
        if at[n - 1] + context <= lines
        and (at[n] - at[n - 1] > apart if n < len(at) else lines + 1 - at[n - 1] > 0)
    ]
    ends = [n for n in possible if n < len(at) or lines + apart + 1 - at[-1] > apart]
    assert done == max(ends, default=0)


def test_a_table_of_memstats_is_read_though_its_rows_arrive_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = [*records(3), "HeapAlloc,HeapSys,NumGC", "1,2,3", *records(6)[3:], "4,5,6"]
    live = LiveInput(SourceFacts("<stream>"))
    for line in lines:
        live.add(f"{line}\n".encode())
    for _ in range(2):
        assert log_of(live).tables["memstats"]["num_gc"].to_list() == [3, 6]
        live.close()


def test_what_is_too_much_is_discarded_from_the_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_input, "CHUNK_BYTES", 1)
    for name in ("MOST_MESSAGES", "MOST_ROWS", "MOST_REJECTED"):
        monkeypatch.setattr(live_input, name, 3)
    monkeypatch.setattr(live_input, "MOST_SUSPECTS", 0)
    live = LiveInput(SourceFacts("<stream>"))
    count = 6
    for n in range(1, count + 1):
        for line in (
            LINES["scav21"].replace("3144", str(n)),
            f"Alloc = {n} MiB",
            LINES["gc18"][5:],
        ):
            live.add(f"{line}\n".encode())
            filler = "x\n" * (live_input.APART + CONTEXT_LINES + 1)
            live.add(filler.encode())
    log = log_of(live)
    assert log.tables["scavenges"]["released_total_kib"].to_list() == [4, 5, 6]
    assert live.discarded["scavenges"] == count - 3
    assert live.discarded["messages"] == count - 3
    kept = log.tables["rejected"]["line_no"].to_list()
    assert live.discarded["rejected"] == count - len(kept) > 0
    assert kept[-1] == live.lines - live_input.APART - CONTEXT_LINES - 1


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
        frames = live.latest().cycles
        kept = [n for frame in frames for n in frame["gc_num"]]
        assert kept == list(range(total - len(kept) + 1, total + 1))
        assert min(recent, total) <= len(kept) <= recent + 64 * size
        assert len(frames) <= 64
        assert live.newest is not None
        assert live.newest["gc_num"] == total
    assert live.cycles == 200


def test_what_is_stored_is_the_beginning_of_what_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cycles that a torn record may still need are not compressed; nothing is lost or twice."""
    monkeypatch.setattr(live_input, "CHUNK_BYTES", 1)
    live = LiveInput(SourceFacts("<stream>"))
    lines = records(300)
    lines[250:250] = [lines[250][:30] + "2026/11/21 12:00 x"]
    for at in range(0, len(lines), 3):
        live.add(("\n".join(lines[at : at + 3]) + "\n").encode())
        stored = live._stores["cycles"].rows
        assert stored <= live.cycles
    # All but the last 64 lines, and those around the torn record
    assert 150 < stored < 250
    numbers = log_of(live).tables["cycles"]["gc_num"].to_list()
    assert numbers == list(range(1, 301))


def test_an_input_without_cycles_has_no_newest() -> None:
    live = LiveInput(SourceFacts("<stream>"))
    assert live.newest is None
    live.add(b"started\n")
    assert (live.newest, live.cycles, live.lines) == (None, 0, 1)
    live.add((records(1)[0] + "\nready\n").encode())
    live.add(b"started\n")
    assert live.newest is not None
    assert (live.newest["gc_num"], live.cycles, live.lines) == (1, 1, 4)
