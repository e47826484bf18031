"""Lines of JSON that Go programs write: times, units, and dumps that differ from each other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gctrace_analyzer.ingest.memstats.json_records import dump_of
from gctrace_analyzer.ingest.metrics import go_json
from gctrace_analyzer.testing import read_text

AT_S = 1_770_112_800
MIB = 1 << 20


def line(n: int, time: Any = None, **more: Any) -> str:
    dump = {"Alloc": n * MIB, "HeapSys": 9 * MIB, "NumGC": n, **more}
    about = {} if time is None else {"time": time}
    return json.dumps({**about, "memstats": dump}) + "\n"


@pytest.mark.parametrize(
    "times",
    [
        (AT_S, AT_S + 15),
        (AT_S * 1000, (AT_S + 15) * 1000),
        ("2026-02-03T10:00:00Z", "2026-02-03T10:00:15Z"),
        ("2026-02-03T11:00:00+01:00", "2026-02-03T11:00:15+01:00"),
        (str(AT_S), str(AT_S + 15)),
        (AT_S, "2026-02-03T10:00:15Z"),
    ],
)
def test_a_dump_has_its_time_however_it_is_written(times: tuple[Any, Any]) -> None:
    rows = read_text("".join(line(n, at) for n, at in enumerate(times, 1))).memstats
    assert [at.timestamp() for at in rows["logged_at"]] == [AT_S, AT_S + 15]
    assert rows["elapsed_s"].to_list() == [0, 15]
    assert rows["num_gc"].to_list() == [1, 2]
    assert rows["line_no"].to_list() == [1, 2]


def test_dumps_without_a_time_have_none() -> None:
    rows = read_text(line(1) + line(2, "yesterday") + line(3, AT_S)).memstats
    assert rows.sort("line_no")["logged_at"].is_null().to_list() == [True, True, False]


def test_dumps_with_different_fields_keep_their_own() -> None:
    text = (
        line(1, AT_S, Frees=7, NextGC=5 * MIB)
        + line(2, AT_S + 1)
        + line(3, AT_S + 2, Mallocs=8)
        + line(4, AT_S + 3, Frees=9, NextGC=6 * MIB)
    )
    rows = read_text(text).memstats
    assert rows.select("num_gc", "frees", "next_gc_bytes", "mallocs").rows() == [
        (1, 7, 5 * MIB, None), (2, None, None, None), (3, None, None, 8), (4, 9, 6 * MIB, None)
    ]  # fmt: skip
    assert rows["heap_alloc_bytes"].to_list() == [n * MIB for n in (1, 2, 3, 4)]


def test_one_field_under_two_names_is_one_column() -> None:
    """Some programs add their own spelling of a field; the first one that has a value counts."""
    text = line(1, AT_S, heap_idle=5) + line(2, AT_S + 1, HeapIdle=6) + line(3, AT_S + 2)
    assert read_text(text).memstats["heap_idle_bytes"].to_list() == [5, 6, None]
    both = "".join(line(n, AT_S + n, HeapIdle=4, heap_idle_kb=None) for n in (1, 2))
    assert read_text(both).memstats["heap_idle_bytes"].to_list() == [4, 4]


def test_a_name_may_end_with_a_unit() -> None:
    text = "".join(line(n, AT_S + n, HeapIdle_KiB=2.5 * n, StackInuse_mb=n) for n in (1, 2))
    rows = read_text(text).memstats
    assert rows["heap_idle_bytes"].to_list() == [2560, 5120]
    assert rows["stack_inuse_bytes"].to_list() == [MIB, 2 * MIB]
    assert read_text(text).rejected.is_empty()


def test_lines_that_are_no_dumps_are_left_out() -> None:
    others = ['{"level": "info", "msg": "started"}\n', "[1, 2]\n", "text\n", "\n", '{"a": 5}\n']
    text = line(1, AT_S) + "".join(others) + line(2, AT_S + 1) + line(3, AT_S + 2)
    table, _, rejected = go_json.read(enumerate(text.split("\n"), start=1))
    assert table["line_no"].to_list() == [1, 7, 8]
    assert rejected == []


@pytest.mark.parametrize("value", [5, "x", [1], None, {"a": 1}])
def test_only_an_object_with_known_fields_is_a_dump(value: Any) -> None:
    assert dump_of(value) is None
    dump = {"Alloc": 1, "HeapSys": 2}
    assert dump_of({"other": value, "memstats": dump}) == dump
    assert dump_of(dump) == dump


@pytest.mark.parametrize("ring", [["x"], [None], [{}], [[1]], [1e400], [1 << 70], [True]])
def test_pauses_that_are_no_numbers_stop_no_dump(ring: list[Any]) -> None:
    at = [AT_S * 10**9, *ring]
    text = "".join(line(n, AT_S + n, PauseEnd=at, PauseNs=[5_000_000, *ring]) for n in (2, 3))
    run = read_text(text)
    assert run.memstats["num_gc"].to_list() == [2, 3]
    assert set(run.cycle_pauses["pause_ms"].drop_nulls()) <= {5.0, 1e-6}


def test_each_pause_of_a_dump_is_a_cycle_with_its_number_and_end() -> None:
    def ring(of: dict[int, int]) -> list[int]:
        """Cycle n is at (n + 255) % 256."""
        places = [0] * 256
        for n, value in of.items():
            places[(n + 255) % 256] = value
        return places

    ends = {n: (AT_S + n) * 10**9 for n in range(250, 261)}
    lengths = {n: n * 1000 for n in ends}
    text = "".join(
        line(count, AT_S + count, PauseEnd=ring({n: at for n, at in ends.items() if n <= count}),
             PauseNs=ring({n: ns for n, ns in lengths.items() if n <= count}))
        for count in (255, 260)
    )  # fmt: skip
    pauses = read_text(text).cycle_pauses
    assert pauses["gc_num"].sort().to_list() == list(ends)
    for row in pauses.to_dicts():
        n = row["gc_num"]
        assert (row["ended_at"].timestamp(), row["pause_ms"]) == (AT_S + n, n / 1000)
        assert row["line_no"] == (1 if n <= 255 else 2)


def test_a_ring_has_no_more_pauses_than_there_were_cycles() -> None:
    full = [(AT_S + n) * 10**9 for n in range(256)]
    text = line(3, AT_S, PauseEnd=full, PauseNs=[1000] * 256) * 2
    assert read_text(text).cycle_pauses["gc_num"].to_list() == [1, 2, 3]
    without = line(0, AT_S, PauseEnd=full, PauseNs=[1000] * 256)
    assert read_text(without * 2).cycle_pauses.is_empty()


def test_what_comes_before_the_place_where_a_dump_was_cut_is_used() -> None:
    text = line(3, BySize=[], PauseNs=[7, 8]).partition(", 8")[0] + "\n"
    log = read_text(text)
    assert log.memstats["num_gc"].to_list() == [3]
    (reason,) = log.rejected["reason"]
    assert reason.endswith("; what comes before is used")
    assert read_text(line(1) + line(2) + text).memstats["num_gc"].to_list() == [1, 2]
