"""MemStats from CSV files and spreadsheets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.errors import UnreadableInputError
from gctrace_analyzer.ingest.memstats import csv
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import logfile, read_lines
from tests.helpers.memstats import DUMPS, MEMSTATS, row_of

if TYPE_CHECKING:
    from pathlib import Path


@settings(max_examples=30)
@given(st.lists(DUMPS, min_size=1, max_size=5), st.sampled_from(",;\t"))
def test_memstats_read_from_csv_as_written(dumps: list[dict[str, int]], separator: str) -> None:
    header = separator.join(MEMSTATS)
    rows = [separator.join(str(dump[name]) for name in MEMSTATS) for dump in dumps]
    table = read_text("\n".join([header, *rows]) + "\n").memstats
    assert table.select(MEMSTATS.values()).to_dicts() == [row_of(dump) for dump in dumps]


def test_a_decimal_comma_of_a_spreadsheet_is_read(tmp_path: Path) -> None:
    run = read_lines(tmp_path, "sep=;", "HeapAlloc;HeapSys;NumGC;GCCPUFraction", "1;2;3;0,0012")
    assert run.memstats["gc_cpu_fraction"].to_list() == [0.0012]


@pytest.mark.parametrize(
    "text",
    [
        "time,HeapAlloc (MiB),heap_sys_mb,HeapIdleKB,NumGC\n2026-01-01T00:00:00Z,12.5,64,20480,3\n",
        '{"time":"2026-01-01T00:00:00Z","heap_alloc_mib":12.5,"heapSysMB":64,'
        '"heap_idle_kib":20480,"num_gc":3}\n',
    ],
    ids=("csv", "json"),
)
def test_column_names_may_end_with_a_unit(text: str, tmp_path: Path) -> None:
    path = tmp_path / "memory"
    path.write_text(text)
    row = gca.read(path).memstats.row(0, named=True)
    assert row["heap_alloc_bytes"] == 12.5 * (1 << 20)
    assert (row["heap_sys_bytes"], row["heap_idle_bytes"]) == (64 << 20, 20 << 20)
    assert row["num_gc"] == 3


def test_every_damaged_row_is_counted_once(tmp_path: Path) -> None:
    rows = ["HeapSys,HeapAlloc,NumGC", "1,2,3", *["1,x,y"] * 50]
    rejected = gca.read(logfile(tmp_path / "t.csv", rows)).rejected
    assert rejected["line_no"].to_list() == list(range(3, 53))


def test_sizes_in_a_unit_that_is_not_named_are_not_bytes(tmp_path: Path) -> None:
    rows = ["time;HeapAlloc;HeapSys;NumGC", "22.11.2026 10:00:00;101,5;180,2;10"]
    (rejected,) = read_lines(tmp_path, *rows).rejected.to_dicts()
    assert rejected["reason"] == (
        "column HeapAlloc: '101.5' is not a number of bytes: put the unit into its name, such as "
        "`HeapAlloc MiB`"
    )
    run = read_lines(tmp_path, rows[0].replace("HeapSys", "HeapSys MiB").replace("c;", "c MB;"),
                     *rows[1:], tz="UTC")  # fmt: skip
    assert run.memstats["heap_alloc_bytes"].to_list() == [round(101.5 * (1 << 20))]
    assert str(run.memstats["logged_at"][0]) == "2026-11-22 10:00:00+00:00"
    # The mean of some samples, in bytes
    mean = read_lines(tmp_path, "HeapAlloc,HeapSys,NumGC", "120000000.5,180000000.25,10")
    assert mean.memstats["heap_sys_bytes"].to_list() == [180_000_000]


def test_a_damaged_row_is_kept_with_its_reason(tmp_path: Path) -> None:
    rows = ["HeapSys,HeapAlloc,NumGC", "1,2,3", "1,x,3", "1,2"]
    run = gca.read(logfile(tmp_path / "t.csv", rows))
    assert len(run.memstats) == 1
    assert run.rejected.select("line_no", "reason").rows() == [
        (3, "column HeapAlloc: 'x' is not a number"),
        (4, "2 cells instead of 3"),
    ]


def test_a_table_of_comments_has_unknown_columns() -> None:
    with pytest.raises(UnreadableInputError, match="not MemStats fields"):
        csv.read("# only\n# comments\n", "empty.csv")


def test_a_header_alone_is_an_empty_table() -> None:
    table, rejected = csv.read("HeapAlloc,HeapSys,NumGC\n", "header.csv")
    assert (len(table), rejected) == (0, [])
    assert {"heap_alloc_bytes", "heap_sys_bytes", "num_gc"} <= set(table.columns)


def test_a_column_of_seconds_is_the_elapsed_time() -> None:
    table, _ = csv.read("elapsed,HeapAlloc,HeapSys\n0.5,1,2\n1.5,3,4\n", "t.csv")
    assert table["elapsed_s"].to_list() == [0.5, 1.5]


def test_a_repeated_column_is_read_once() -> None:
    table, _ = csv.read("HeapAlloc,heap_alloc,HeapSys\n1,2,3\n", "t.csv")
    assert table["heap_alloc_bytes"].to_list() == [1]


def test_sizes_with_decimals_have_a_resolution() -> None:
    table, _ = csv.read("HeapAlloc (MiB),HeapSys (MiB)\n1.5,2.5\n", "t.csv")
    assert table["resolution_bytes"].to_list() == [round((1 << 20) / 10)]


def test_a_time_column_without_times_keeps_its_name() -> None:
    table, _ = csv.read("time,HeapAlloc,HeapSys\nearly,1,2\nlate,3,4\n", "t.csv")
    assert table["time"].to_list() == ["early", "late"]


ROW = (375, 150, 300, 60, 40, 7)
"""HeapSys, bytes of the pool, HeapAlloc, HeapIdle, HeapReleased, made buffers."""


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({}, True),
        ({2: 375, 3: 375, 4: 375}, True),
        ({2: 376}, False),  # more allocated than the heap has
        ({3: 376}, False),
        ({4: 61}, False),  # more released than is idle
    ],
)
def test_columns_without_a_header_must_agree_in_every_row(
    changes: dict[int, int], fits: bool
) -> None:
    odd = [changes.get(place, value) for place, value in enumerate(ROW)]
    text = "".join(",".join(map(str, row)) + "\n" for row in (ROW, odd, ROW))
    if fits:
        table, rejected = csv.read(text, "x.csv", None)
        assert table["heap_alloc_bytes"].to_list()[0] == ROW[2]
        assert rejected == []
        return
    with pytest.raises(gca.UnreadableInputError, match="6 columns without a header"):
        csv.read(text, "x.csv", None)


def test_the_last_column_without_a_header_never_falls() -> None:
    falling = [(*ROW[:5], made) for made in (7, 9, 8)]
    text = "".join(",".join(map(str, row)) + "\n" for row in falling)
    with pytest.raises(gca.UnreadableInputError, match="without a header"):
        csv.read(text, "x.csv", None)
    text = "0,0,0,0,0,0\n" * 3
    with pytest.raises(gca.UnreadableInputError, match="without a header"):
        csv.read(text, "x.csv", None)
