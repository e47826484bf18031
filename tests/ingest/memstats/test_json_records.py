"""MemStats from JSON: expvar, documents and log lines."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gctrace_analyzer.ingest.memstats.json_records import from_record, from_text, is_record
from gctrace_analyzer.testing import read_text
from tests.helpers.memstats import DUMPS, MEMSTATS, row_of


@settings(max_examples=30)
@given(DUMPS, st.booleans())
def test_memstats_read_from_json_as_written(dump: dict[str, int], nested: bool) -> None:
    document = json.dumps({"memstats": dump} if nested else dump, indent=1)
    table = read_text(document).memstats
    assert table.select(MEMSTATS.values()).to_dicts() == [row_of(dump)]
    assert from_record(dump) == row_of(dump)


def test_alloc_is_the_heap_where_go_writes_only_that() -> None:
    row = from_record({"Alloc": 5, "HeapSys": 9, "time": "2026-02-03T10:00:00Z"})
    assert row["heap_alloc_bytes"] == 5
    assert f"{row['logged_at']:%Y-%m-%d}" == "2026-02-03"


@pytest.mark.parametrize("text", ["[1]", "{", '{"a": 1}', "5", "[" * 100_000])
def test_a_text_without_memstats_has_no_row(text: str) -> None:
    assert from_text(text) is None


def test_a_list_is_not_a_record() -> None:
    assert not is_record(["HeapAlloc", "HeapSys"])


def test_the_newest_pause_is_found_in_the_circular_buffer() -> None:
    dump = {"HeapAlloc": 1, "HeapSys": 2, "NumGC": 258, "PauseNs": list(range(256))}
    assert from_record(dump)["last_pause_ns"] == 1
    assert "last_pause_ns" not in from_record({**dump, "PauseNs": ["x"] * 256})
    assert "last_pause_ns" not in from_record({**dump, "PauseNs": []})


def test_fields_that_are_not_known_and_texts_without_a_number_are_ignored() -> None:
    record = {
        "HeapAlloc": 5,
        "HeapSys": 6,
        "requests": 7,
        "load": 0.5,
        "NumGC": "3",
        "HeapInuse": "many",
        "name": "x",
    }
    assert from_record(record) == {"heap_alloc_bytes": 5, "heap_sys_bytes": 6, "num_gc": 3}


def test_the_pauses_of_a_single_dump_are_those_of_its_cycles() -> None:
    pauses = [30_000, 1_440_000, 120_000]
    ring = [*pauses, *[0] * 253]
    dump = {"NumGC": 3, "PauseTotalNs": sum(pauses), "HeapAlloc": 1 << 20}
    text = json.dumps({**dump, "PauseNs": ring, "PauseEnd": [10**18 + each for each in ring]})
    (row,) = read_text(text).table("memstats").to_dicts()
    assert (row["pause_max_s"], row["last_pause_ns"]) == (0.00144, 120_000)
