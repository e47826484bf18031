"""MemStats from CSV files and spreadsheets."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.errors import UnreadableInputError
from gctrace_analyzer.ingest.memstats import csv
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS
from tests.helpers.logs import logfile, read_lines
from tests.helpers.memstats import DUMPS, MEMSTATS, row_of

if TYPE_CHECKING:
    from pathlib import Path


@settings(max_examples=30)
@given(st.lists(DUMPS, min_size=1, max_size=2), st.sampled_from(",;\t"))
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


@pytest.mark.parametrize(
    ("name", "per_s"),
    [("unix_ns", 10**9), ("ts_us", 10**6), ("time_ms", 1000), ("TimestampSec", 1)],
)
def test_times_since_1970_are_read_in_the_unit_of_their_name(name: str, per_s: int) -> None:
    begin = 1770112800
    rows = [f"{(begin + at) * per_s},{at + 1},100,{at + 1}" for at in range(3)]
    table = read_text("\n".join([f"{name},HeapAlloc,HeapSys,NumGC", *rows]) + "\n").memstats
    assert table["logged_at"].dt.epoch("s").to_list() == [begin, begin + 1, begin + 2]


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


@pytest.mark.parametrize(
    ("head", "separator"),
    [
        ("HeapAlloc,HeapSys\n1,2\n", ","),
        ("HeapAlloc;HeapSys\n1,5;2\n", ";"),
        ("HeapAlloc\tHeapSys\n1\t2\n", "\t"),
        ("| HeapAlloc | HeapSys |\n| 1 | 2 |\n", "|"),
        ("HeapAlloc,HeapSys\nno row\n", ","),
        ("a,b\n" + "1,2\n" * 9, ","),
        ("a,b\n" + "1,2\n" * 8 + "x\n", ","),  # nine of ten lines
        ("a,b\n" + "1,2\n" * 7 + "x\n" * 2, None),
        ("# comment\nsep=;\n\nHeapAlloc;HeapSys\n", ";"),
        ("gc 1 @0.1s 2%: 1+2+3 ms clock, 1,2\n", None),
        ("one line of words\n", None),
        ("", None),
    ],
)
def test_the_separator_is_the_one_of_the_header_or_of_nine_in_ten_lines(
    head: str, separator: str | None
) -> None:
    assert csv.delimiter(head) == separator


@pytest.mark.parametrize(
    ("head", "is_table"),
    [
        ("HeapAlloc,HeapSys\n", True),
        ("HeapAlloc,requests\n1,2\n", True),  # names, and a number below them
        ("HeapAlloc,requests\nx,y\n", False),
        ("requests,errors\n", False),
        ("1,2,3\n4,5,6\n", True),
        ("1,2,3\n4,x,6\n", False),
        ("1.5e3,-2\n", True),
        ("7\n8\n", False),
        ("hello, world\nof, words\n", False),
        ("Alloc Sys NumGC\n17036504 75580408 812\n", True),
    ],
)
def test_which_inputs_are_tables(head: str, is_table: bool) -> None:
    assert csv.is_table(head) is is_table


@pytest.mark.parametrize("absent", ["", "NA", "NaN", "null", "nil", "-", '""', " NA "])
def test_a_cell_without_a_value_is_null_and_no_damage(absent: str) -> None:
    table, rejected = csv.read(f"HeapAlloc,HeapSys,NumGC\n1,{absent},3\n4,5,6\n", "t.csv")
    assert table["heap_sys_bytes"].to_list() == [None, 5]
    assert rejected == []


@pytest.mark.parametrize(
    ("cells", "values", "resolution"),
    [
        (["1", "2"], [1 << 20, 2 << 20], 1 << 20),
        (["1.5", "2.25"], [3 << 19, 9 << 18], round((1 << 20) / 100)),
        (["0.5", "64"], [1 << 19, 64 << 20], round((1 << 20) / 10)),
    ],
)
def test_the_resolution_of_a_column_is_its_last_digit(
    cells: list[str], values: list[int], resolution: int
) -> None:
    rows = "".join(f"{cell},{n}\n" for n, cell in enumerate(cells))
    table, _ = csv.read(f"HeapAlloc MiB,NumGC\n{rows}", "t.csv")
    assert table["heap_alloc_bytes"].to_list() == values
    assert table["resolution_bytes"].unique().to_list() == [resolution]


def test_the_coarsest_column_gives_the_resolution() -> None:
    table, _ = csv.read("HeapAlloc MiB,HeapSys KiB,HeapIdle\n1.5,1,7\n", "t.csv")
    assert table["resolution_bytes"].to_list() == [round((1 << 20) / 10)]
    given, _ = csv.read("HeapAlloc MiB,HeapSys,resolution_bytes\n1,7,5\n", "t.csv")
    assert given["resolution_bytes"].to_list() == [5]
    plain, _ = csv.read("HeapAlloc,HeapSys\n1,7\n", "t.csv")
    assert "resolution_bytes" not in plain.columns


def test_a_row_with_several_damaged_cells_is_rejected_once() -> None:
    table, rejected = csv.read("HeapAlloc,HeapSys,NumGC\n1,2,3\nx,y,z\n4,5\n7,8,w\n", "t.csv")
    assert table["num_gc"].to_list() == [3]
    assert rejected == [
        (3, "column HeapAlloc: 'x' is not a number", "x,y,z"),
        (4, "2 cells instead of 3", "4,5"),
        (5, "column NumGC: 'w' is not a number", "7,8,w"),
    ]
    assert table["line_no"].to_list() == [2]


def test_unknown_columns_keep_their_values() -> None:
    text = "HeapAlloc,HeapSys,requests,version,load\n1,2,3,v1,0.5\n4,5,6,v2,x\n"
    table, rejected = csv.read(text, "t.csv")
    assert table["requests"].to_list() == [3, 6]
    assert table["version"].to_list() == ["v1", "v2"]
    assert table["load"].to_list() == ["0.5", "x"]
    assert rejected == []


def test_our_own_table_is_read_back() -> None:
    text = "logged_at,elapsed_s,source,heap_alloc_bytes,heap_sys_bytes,gc_cpu_fraction\n"
    rows = "2026-02-03T10:00:00.5Z,1.5,run.log,5,7,0.25\n,2.5,run.log,6,8,\n"
    table, rejected = csv.read(text + rows, "t.csv")
    assert rejected == []
    assert table["elapsed_s"].to_list() == [1.5, 2.5]
    assert table["gc_cpu_fraction"].to_list() == [0.25, None]
    run = read_text(text + rows)
    assert str(run.memstats["logged_at"][0]) == "2026-02-03 10:00:00.500000+00:00"


def test_only_the_first_time_of_a_row_counts() -> None:
    text = "time,date,HeapAlloc,HeapSys\n2026-02-03T10:00:00Z,2025-01-01T00:00:00Z,1,2\n"
    run = read_text(text)
    assert str(run.memstats["logged_at"][0]) == "2026-02-03 10:00:00+00:00"


@pytest.mark.parametrize("count", [6, 7, 8])
def test_a_table_without_a_header_has_six_or_seven_columns(count: int) -> None:
    text = "".join(",".join(map(str, [*ROW, 3, 4][:count])) + "\n" for _ in range(2))
    if count == 8:
        with pytest.raises(gca.UnreadableInputError, match="8 columns without a header"):
            csv.read(text, "x.csv")
        return
    table, _ = csv.read(text, "x.csv")
    assert table["heap_sys_bytes"].to_list() == [375, 375]
    assert table["makes"].to_list() == [7, 7]
    assert ("frees" in table.columns) == (count == 7)


def test_an_unknown_table_names_its_line_and_columns() -> None:
    many = ",".join(f"c{n}" for n in range(14))
    with pytest.raises(UnreadableInputError) as error:
        csv.read(f"# comment\n\n{many}\n" + ",".join("1" * 14) + "\n", "t.csv")
    assert error.value.line_no == 3
    assert "not MemStats fields: c0, c1, " in str(error.value)
    assert "c11, …" in str(error.value)
    assert "c12" not in str(error.value)
    assert (error.value.argument, error.value.argument_value) == (
        "columns",
        "HeapAlloc,HeapSys,…",
    )


def test_columns_of_our_tables_have_their_types() -> None:
    text = "HeapAlloc,HeapSys,started_at,go_version,gc_cpu_s\n1,2,2026-02-03T10:00:00Z,go1.24,1.5\n"
    table, _ = csv.read(text, "t.csv")
    assert str(table["started_at"][0]) == "2026-02-03 10:00:00+00:00"
    assert (table["go_version"][0], table["gc_cpu_s"][0]) == ("go1.24", 1.5)


def test_only_sizes_have_a_resolution() -> None:
    text = "HeapAlloc,HeapSys,NumGC,GCCPUFraction,requests,load,name\n1,2,3,0.25,4,1.5,a\n"
    table, rejected = csv.read(text, "x")
    assert rejected == []
    assert "resolution_bytes" not in table.columns
    assert table.select("requests", "load", "name").rows() == [(4, 1.5, "a")]


@pytest.mark.parametrize(("sys", "frees", "known"), [(9, 0, True), (9, 1, True), (0, 1, False)])
def test_a_table_without_a_header_has_a_heap(sys: int, frees: int, known: bool) -> None:
    """A program that recycles all buffers frees none."""
    text = f"{sys},1,0,0,0,20,{frees}\n" * 3
    if known:
        assert read_text(text).memstats["frees"].to_list() == [frees] * 3
    else:
        with pytest.raises(UnreadableInputError, match="without a header"):
            read_text(text)


def test_the_own_table_of_scrapes_is_read_back() -> None:
    scrapes = gca.read(CORPUS / "metrics" / "own" / "gogc100" / "query-raw.json.gz").memstats
    read = gca.read(StringIO(scrapes.write_csv())).memstats
    # What a row is of is in other columns of a file's rows.
    names = [
        name for name in scrapes.columns if name not in ("source", "line_no", "host", "ident")
    ]
    as_text = pl.col(names).cast(pl.String)
    assert read.select(as_text).equals(scrapes.select(as_text), null_equal=True)
    assert read["gomemlimit_off"].all()


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_rows_calculated_from_others_are_not_dumps(separator: str) -> None:
    rows = ["run,HeapAlloc,Sys,NumGC", "1,10,20,100", "2,12,24,120"]
    own = [*rows, "MEAN,11,22,110", "Max,12,24,120", "p99,12,24,120"]
    text = "\n".join(own).replace(",", separator)
    assert read_text(f"{text}\n").memstats["num_gc"].to_list() == [100, 120]
    alone = "\n".join([rows[0], *own[3:]]).replace(",", separator)
    assert len(read_text(f"{alone}\n").memstats) == 3


def test_times_of_day_without_a_date_have_distances() -> None:
    rows = [
        "TIME  ALLOC(MB)  SYS(MB)  NUMGC",
        "23:59:58  42.4  85.2  5",
        "00:00:02  61.0  119.7  9",
    ]
    run = read_text("\n".join(rows) + "\n")
    assert (run.memstats["elapsed_s"].to_list(), run.summary().cycles) == ([0.0, 4.0], 4)
    assert (
        "Sizes in MB are read as MiB; in decimal units, they are 5 % smaller."
        in run.to_markdown()
    )
    assert "decimal units" not in read_text("\n".join(rows).replace("MB", "MiB")).to_markdown()


def test_other_text_in_a_column_of_times_shows_no_distance() -> None:
    rows = [
        "TIME  ALLOC(MB)  SYS(MB)  NUMGC",
        "15:43:43  42.4  85.2  5",
        "noon  61.0  119.7  9",
    ]
    assert "elapsed_s" not in csv.read("\n".join(rows) + "\n", "t.txt")[0].columns
