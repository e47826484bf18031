"""Answers to queries of InfluxDB: JSON of InfluxQL, tables of its command line, CSV of Flux."""

from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import gctrace_analyzer as gca
from gctrace_analyzer.ingest.metrics import influx_answers, layouts
from gctrace_analyzer.ingest.metrics.samples import Samples
from gctrace_analyzer.testing import read_text
from tests.helpers.metrics import CORPUS

INFLUX = CORPUS.parent / "influx"
FIELDS = ("alloc_bytes", "total_alloc_bytes", "num_gc", "pause_total_ns", "heap_inuse_bytes")

FLUX = """\
#group,false,false,true,true,false,false,true,true,true
#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string,string,string
#default,mean,,,,,,,,
,result,table,_start,_stop,_time,_value,_field,_measurement,host
,,0,2026-11-23T11:00:00Z,2026-11-23T12:00:00Z,2026-11-23T11:30:00Z,31000000,gauge,go_memstats_next_gc_bytes,a
,,0,2026-11-23T11:00:00Z,2026-11-23T12:00:00Z,2026-11-23T11:30:10Z,32000000,gauge,go_memstats_next_gc_bytes,a

#group,false,false,true,true,false,false,true,true,true
#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string,string,string
#default,mean,,,,,,,,
,result,table,_start,_stop,_time,_value,_field,_measurement,host
,,1,2026-11-23T11:00:00Z,2026-11-23T12:00:00Z,2026-11-23T11:30:00Z,100,count,go_gc_duration_seconds,a
,,1,2026-11-23T11:00:00Z,2026-11-23T12:00:00Z,2026-11-23T11:30:10Z,180,count,go_gc_duration_seconds,a
,,2,2026-11-23T11:00:00Z,2026-11-23T12:00:00Z,2026-11-23T11:30:00.5Z,7,count,go_gc_duration_seconds,b
"""


@pytest.mark.parametrize("name", ["answer.json.gz", "answer-pretty.json.gz", "answer.txt.gz"])
def test_an_answer_has_the_values_of_the_export(name: str) -> None:
    exported = gca.read(INFLUX / "export.txt.gz").memstats
    run = gca.read(INFLUX / name)
    assert not len(run.rejected)
    both = [
        each.select("logged_at", *FIELDS).filter(
            each["logged_at"] < exported["logged_at"].dt.offset_by("50s").min()
        )
        for each in (run.memstats, exported)
    ]
    assert len(both[0]) > 45
    assert_frame_equal(*both)


def test_tags_that_are_columns_separate_processes() -> None:
    columns = ["time", "NumGC", "Alloc", "TotalAlloc", "hostname"]
    values = [
        [1_700_000_000_000 + 1000 * at, 3 + at, 4_000_000, 10_000_000 * at, host]
        for at in range(3)
        for host in ("db-1", "db-2")
    ]
    answer = {
        "results": [{"series": [{"name": "runtime", "columns": columns, "values": values}]}]
    }
    run = read_text(json.dumps(answer))
    assert sorted(run.processes["host"]) == ["db-1", "db-2"]
    assert run.memstats["num_gc"].to_list() == [3, 4, 5, 3, 4, 5]


def test_grouped_series_and_functions_are_read() -> None:
    series = [
        {
            "name": "go_memstats_next_gc_bytes",
            "tags": {"host": host, "url": ""},
            "columns": ["time", "mean"],
            "values": [["2026-11-23T11:30:00Z", 5e6], ["2026-11-23T11:30:10Z", None]],
        }
        for host in ("a", "b")
    ]
    memstats = read_text(
        json.dumps({"results": [{"statement_id": 0, "series": series}]})
    ).memstats
    assert memstats["next_gc_bytes"].to_list() == [5_000_000, 5_000_000]


def test_an_answer_that_is_cut_or_damaged_is_rejected() -> None:
    columns = ["time", "NumGC", "Alloc", "TotalAlloc"]
    rows = [[1_700_000_000 + at, at, 5, 10 * at] for at in range(1, 9)]
    series = {"name": "runtime", "columns": columns, "values": [*rows, [1, 2], 7]}
    text = json.dumps({"results": [{"series": [series]}]})
    run = read_text(f"{text}\n{text[:-30]}")
    assert len(run.memstats) == 8
    assert run.rejected["line_no"].to_list() == [1, 2]
    assert run.rejected["reason"].to_list() == [
        "2 of 10 rows have another number of values",
        "the answer is cut off or damaged here",
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_tables_of_flux_are_read(end: str) -> None:
    text = FLUX.replace("\n", end)
    assert layouts.layout_of(text) == "flux"
    run = read_text(text)
    assert run.memstats["next_gc_bytes"].to_list() == [31_000_000, 32_000_000, None]
    assert run.memstats["num_gc"].to_list() == [100, 180, 7]
    assert run.memstats["logged_at"].dt.epoch("ms").diff().to_list() == [None, 10_000, -9500]
    assert run.processes["host"].to_list() == ["a", "b"]


def test_fields_that_pivot_made_columns_are_read_and_tags_separate_processes() -> None:
    header = ",result,table,_start,_stop,_time,_measurement,host,app,pod,"
    fields = ("go_memstats_next_gc_bytes", "go_gc_duration_seconds_count", "other")
    rows = [
        f",,0,2026-11-23T11:00:00Z,2026-11-23T12:00:00Z,2026-11-23T11:30:{at:02}Z,prometheus,a,"
        f"shop,{pod},{goal},{factor * at},{'' if at else 7}"
        for at in (0, 10, 20)
        for pod, goal, factor in (("1", 31_000_000, 1), ("2", 62_000_000, 2))
    ]
    types = "#datatype,string,long" + ",dateTime:RFC3339" * 3 + ",string" * 4 + ",double" * 3
    run = read_text("\n".join([types, header + ",".join(fields), *rows]) + "\n")
    assert run.processes.sort("pod")["pod"].to_list() == ["1", "2"]
    assert run.processes["host"].to_list() == ["a", "a"]
    assert (len(run.memstats), len(run.rejected), run.summary().cycles) == (6, 0, 60)
    assert run.memstats["next_gc_bytes"].unique().sort().to_list() == [31_000_000, 62_000_000]


@pytest.mark.parametrize("tag", ["pod", "shard"])
@pytest.mark.parametrize("table", [True, False])
@pytest.mark.parametrize("alternate", [True, False])
def test_without_annotations_tags_of_digits_separate_processes(
    tag: str, table: bool, alternate: bool
) -> None:
    """As the same tables with annotations, in blocks or sorted by time."""
    fields = ("go_memstats_next_gc_bytes", "go_gc_duration_seconds_count", "goroutines")
    rows = [
        (number if not alternate else 0, at, number + 1, goal, factor * at, 7 + at % 3)
        for number, goal, factor in ((0, 31_000_000, 1), (1, 62_000_000, 2))
        for at in (0, 10, 20)
    ]
    if alternate:
        rows.sort(key=lambda row: row[1])
    name = "table," if table else ""
    lines = [
        f",,{f'{number},' if table else ''}2026-11-23T11:30:{at:02}Z,prometheus,a,{own},{goal},"
        f"{count},{goroutines}"
        for number, at, own, goal, count, goroutines in rows
    ]
    header = f",result,{name}_time,_measurement,host,{tag},{','.join(fields)}"
    run = read_text("\n".join([header, *lines]) + "\n")
    assert (len(run.processes), len(run.memstats)) == (2, 6)
    assert run.summary().cycles == 60
    assert run.memstats.group_by("process").agg(pl.col("next_gc_bytes").n_unique())[
        "next_gc_bytes"
    ].to_list() == [1, 1]


def test_numbers_that_change_within_a_series_are_no_tags() -> None:
    header = ",result,table,_time,_measurement,host,go_memstats_next_gc_bytes,goroutines"
    lines = [
        f",,0,2026-11-23T11:30:{at:02}Z,prometheus,a,{31_000_000 + at},{7 + at % 3}"
        for at in (0, 10, 20, 31)
    ]
    run = read_text("\n".join([header, *lines]) + "\n")
    assert (len(run.processes), len(run.memstats)) == (1, 4)


def test_go_metrics_may_come_after_other_measurements() -> None:
    cpu = ",,9,2026-11-23T11:00:00Z,2026-11-23T12:00:00Z,2026-11-23T11:30:00Z,1,usage,cpu,a\n"
    head, _, rows = FLUX.partition(",host\n")
    run = read_text(f"{head},host\n{cpu * 2000}{rows}")
    assert len(run.memstats) == len(read_text(FLUX).memstats) == 3


def test_a_damaged_row_of_flux_has_its_line() -> None:
    run = read_text(FLUX.replace(",180,count", ",1x0,count"))
    assert run.rejected["line_no"].to_list() == [13]
    assert run.memstats["num_gc"].to_list() == [100, None, 7]


@given(st.text('{}[]":,results time columns values123\n', max_size=120))
def test_any_answer_is_read_or_rejected(text: str) -> None:
    influx_answers.read_json('{"results":[{"series":[' + text, Samples())
    influx_answers.read_flux(FLUX[: len(text) * 10] + text, Samples())
    layouts.layout_of(text)
