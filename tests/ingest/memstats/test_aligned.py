"""Tables of MemStats with columns aligned by blanks, as databases and `column -t` print them."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gctrace_analyzer.ingest.memstats import aligned
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import records
from tests.helpers.memstats import DUMPS, MEMSTATS, row_of

# As the influx shell of InfluxDB 1.8 prints it
INFLUX = """\
> SHOW STATS FOR 'runtime'
name: runtime
Alloc    Frees    HeapAlloc HeapIdle HeapInUse HeapObjects HeapReleased HeapSys  Lookups Mallocs  NumGC NumGoroutine PauseTotalNs Sys      TotalAlloc
-----    -----    --------- -------- --------- ----------- ------------ -------  ------- -------  ----- ------------ ------------ ---      ----------
17036504 11094571 17036504  44834816 20340736  131297      40796160     65175552 0       11225868 812   21           160424417    75580408 3011258280

"""
DATABASE = """\
name: database
tags: database=_internal
numMeasurements numSeries
--------------- ---------
12              52

"""
SELECTED = """\
name: runtime
time                 Alloc    NumGC TotalAlloc
----                 -----    ----- ----------
2026-05-01T12:00:00Z 17036504 812   3011258280
2026-05-01T12:00:10Z 15036504 813   3021258280
"""


def test_the_statistics_of_an_influx_database_are_a_dump() -> None:
    run = read_text(INFLUX)
    (row,) = run.memstats.to_dicts()
    assert (row["heap_alloc_bytes"], row["heap_inuse_bytes"]) == (17036504, 20340736)
    assert (row["num_gc"], row["pause_total_ns"], row["sys_bytes"]) == (
        812,
        160424417,
        75580408,
    )
    assert row["goroutines"] == 21
    assert row["line_no"] == 5
    assert run.rejected.is_empty()


def test_other_tables_of_the_same_answer_are_not_of_the_runtime() -> None:
    run = read_text(DATABASE + INFLUX + DATABASE + INFLUX.replace("812", "815") + DATABASE)
    assert run.memstats["num_gc"].to_list() == [812, 815]
    assert run.memstats["line_no"].to_list() == [11, 23]
    assert run.rejected.is_empty()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("2026-05-01T12:00:00Z", "2026-05-01 12:00:00Z"),
        ("2026-05-01T12:00:00Z", "1777636800000000000"),
    ],
)
def test_rows_have_the_time_of_their_first_column(old: str, new: str) -> None:
    text = SELECTED
    if old:
        text = text.replace(old, new)
        other = new.replace("12:00:00", "12:00:10").replace("00000000000", "10000000000")
        text = text.replace(old.replace(":00Z", ":10Z"), other)
    table = read_text(text).memstats
    assert table["num_gc"].to_list() == [812, 813]
    assert table["logged_at"].to_list() == [
        datetime(2026, 5, 1, 12, 0, second, tzinfo=UTC) for second in (0, 10)
    ]
    assert table["elapsed_s"].to_list() == [0, 10]


@settings(max_examples=30, deadline=None)
@given(st.lists(DUMPS, min_size=1, max_size=2), st.booleans(), st.integers(0, 99))
def test_an_aligned_table_reads_as_printed(
    dumps: list[dict[str, int]], by_right: bool, seed: int
) -> None:
    names = list(dumps[0])
    rows = [[str(dump[name]) for name in names] for dump in dumps]
    widths = [max(map(len, each)) for each in zip(names, *rows, strict=True)]
    gap = " " * random.Random(seed).randint(1, 4)
    lines = [
        gap.join(
            cell.rjust(width) if by_right else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        )
        for row in [names, *rows]
    ]
    table = read_text("\n".join(lines) + "\n").memstats
    assert table.select(MEMSTATS.values()).to_dicts() == [row_of(dump) for dump in dumps]


def test_a_header_that_is_printed_again_is_no_row() -> None:
    table = "Alloc    Sys      NumGC\n17036504 75580408 812\n"
    assert read_text(table * 3).memstats["num_gc"].to_list() == [812] * 3


def test_rows_with_other_cells_are_rejected() -> None:
    run = read_text(SELECTED + "2026-05-01T12:00:20Z 15036504\n2026-05-01T12:00:30Z x 815 9\n")
    assert run.memstats["num_gc"].to_list() == [812, 813]
    assert run.rejected["line_no"].to_list() == [6, 7]


def test_a_log_with_gctrace_that_prints_a_table_is_a_log() -> None:
    run = read_text("Alloc Sys NumGC\n17036504 75580408 812\n" + "\n".join(records(5)) + "\n")
    assert len(run.cycles) == 5


@pytest.mark.parametrize("row", ["of the heap", "none none none", "1 2", "1 2 3 4"])
def test_words_without_a_row_of_numbers_are_no_table(row: str) -> None:
    text = f"Alloc Sys NumGC\n{row}\nAlloc = 5 MiB Sys = 9 MiB NumGC = 3\n"
    assert read_text(text).memstats.select(pl.col("num_gc")).to_series().to_list() == [3]


@pytest.mark.parametrize(
    ("row", "is_table"), [("5 7", True), ("5 7 9", False), ("high low", False), ("", False)]
)
@pytest.mark.parametrize("line", ["", "----- -----\n", " ---- -----\n"])
def test_a_table_has_a_row_of_numbers_below_its_header(
    row: str, is_table: bool, line: str
) -> None:
    assert aligned.has_table(f"Alloc NumGC\n{line}{row}\n") is is_table
