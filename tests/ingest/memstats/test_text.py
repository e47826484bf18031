"""MemStats that programs print into their logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gctrace_analyzer.ingest.evidence.message import Message
from gctrace_analyzer.ingest.memstats import text as memstats_text
from gctrace_analyzer.testing import read_text
from tests.helpers.lines import LINES
from tests.helpers.logs import read_lines
from tests.helpers.memstats import DUMPS, MEMSTATS, row_of

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


def dumps(*lines: str) -> list[dict[str, Any]]:
    return memstats_text.read(Message(n, line) for n, line in enumerate(lines, 1))


@settings(max_examples=30)
@given(DUMPS, st.sampled_from(["{} = {}", "{}={}", "{}: {}"]))
def test_memstats_read_from_text_as_printed(dump: dict[str, int], form: str) -> None:
    line = " ".join(form.format(name, value) for name, value in dump.items())
    table = read_text(f"{line}\n{LINES['gc18']}\n").memstats
    assert table.select(MEMSTATS.values()).to_dicts() == [row_of(dump)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Alloc = 25 mb TotalAlloc = 38 mb Sys = 35 mb NumGC = 5",
            {"alloc_bytes": 25 * MIB, "sys_bytes": 35 * MIB},
        ),
        ("Alloc=12M Sys=30M NumGC=3", {"alloc_bytes": 12 * MIB, "sys_bytes": 30 * MIB}),
        ("Alloc = 1 MiB Sys = 2 MiB PauseTotal = 1.5ms", {"pause_total_ns": 1_500_000}),
        (
            "runtime.MemStats{Alloc:0x1e240, TotalAlloc:0x23cace, NumGC:0x2}",
            {"alloc_bytes": 0x1E240, "num_gc": 2},
        ),
        (
            "{Alloc:123456 Mallocs:5000 Frees:4000 NumGC:2 BySize:[{Size:0 Mallocs:0 Frees:0} {Size:16 Mallocs:11 Frees:9}]}",
            {"mallocs": 5000, "frees": 4000},
        ),
        (
            "{Alloc:123456 Mallocs:5000 BySize:[{Size:16 Mallocs:11 Frees:9}] NumGC:2}",
            {"mallocs": 5000, "num_gc": 2},
        ),
        (
            "Alloc = 25 MiB\nTotalAlloc = 38 MiB\nSys = 35 MiB\nNumGC = 5",
            {"sys_bytes": 35 * MIB, "num_gc": 5},
        ),
        (
            "heap_alloc=12.5MiB heap_sys=20.0MiB num_gc=7",
            {"heap_alloc_bytes": 12.5 * MIB, "num_gc": 7},
        ),
    ],
)
def test_memstats_printed_by_programs_are_read(
    text: str, expected: dict[str, float], tmp_path: Path
) -> None:
    (row,) = read_lines(tmp_path, *text.split("\n")).memstats.to_dicts()
    assert {name: row[name] for name in expected} == expected


def test_runtime_statistics_of_cockroachdb_are_read() -> None:
    line = "runtime stats: 3.0 GiB RSS, 300 goroutines, 1.5 GiB/512 MiB/2.0 GiB GO alloc/idle/total"
    row = read_text(line + "\n").memstats.row(0, named=True)
    assert row["rss_bytes"] == 3 << 30
    assert (row["alloc_bytes"], row["heap_idle_bytes"]) == (3 << 29, 1 << 29)


def test_sizes_with_units_have_the_resolution_of_their_last_digit() -> None:
    row = read_text("Alloc = 1.5 MiB\tSys = 10 MiB\tNumGC = 3\n").memstats.row(0, named=True)
    assert (row["alloc_bytes"], row["sys_bytes"], row["num_gc"]) == (3 << 19, 10 << 20, 3)
    assert row["resolution_bytes"] == 1 << 20


def test_fields_on_nearby_lines_are_one_dump_until_one_is_repeated() -> None:
    rows = dumps("Alloc = 1 MiB", "Sys = 2 MiB", "Alloc = 3 MiB", "Sys = 4 MiB")
    assert [row["sys_bytes"] for row in rows] == [2 * MIB, 4 * MIB]
    far = ["text"] * 20
    assert dumps("Alloc = 1 MiB", *far, "Sys = 2 MiB") == []


def test_json_objects_between_printed_dumps_are_dumps_or_ignored() -> None:
    rows = dumps('{"HeapAlloc": 5, "HeapSys": 9}', '{"msg": "started"}', "Alloc=1 Sys=2")
    assert [row.get("heap_sys_bytes") for row in rows] == [9, None]


def test_values_in_other_notations_are_read() -> None:
    (row,) = dumps("Alloc: 1.5e+06 Sys: 0x10 PauseTotalNs: 2ms NumGC: 3 GCCPUFraction: 0.25")
    assert (row["alloc_bytes"], row["sys_bytes"]) == (1_500_000, 16)
    assert (row["pause_total_ns"], row["gc_cpu_fraction"]) == (2_000_000, 0.25)


def test_a_count_with_a_unit_is_not_a_count() -> None:
    (row,) = dumps("Alloc = 1 Sys = 2 NumGC = 5 MiB Mallocs = 7")
    assert "num_gc" not in row
    assert row["mallocs"] == 7


def test_statistics_of_older_cockroachdb_have_no_idle_heap() -> None:
    line = "runtime stats: 3.0 GiB RSS, 300 goroutines, 1.5 GiB/2.0 GiB GO alloc/total"
    (row,) = dumps(line)
    assert row["sys_bytes"] == 2 << 30
    assert "heap_idle_bytes" not in row
