"""The line protocol of InfluxDB, as Telegraf and InfluxDB write it."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import gctrace_analyzer as gca
from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.ingest.metrics import influx, layouts
from gctrace_analyzer.ingest.metrics.samples import Samples
from gctrace_analyzer.testing import read_text
from tests.helpers.metrics import CORPUS

if TYPE_CHECKING:
    from pathlib import Path

INFLUX = CORPUS.parent / "influx"
TELEGRAF = ("telegraf-1.txt.gz", "telegraf-2.txt.gz")
AT = 1_700_000_000_000_000_000

RUNTIME = "\n".join(
    f"runtime,hostname=db-1 Alloc={alloc}i,HeapInUse=9000000i,NumGC={cycles}i,"
    f"TotalAlloc={total}i,NumGoroutine=14i {AT + 10**10 * at}"
    for at, (alloc, cycles, total) in enumerate(
        [(4_000_000, 3, 20_000_000), (5_000_000, 7, 60_000_000), (4_500_000, 11, 99_000_000)]
    )
)


def text_of(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


@pytest.mark.parametrize("name", TELEGRAF)
def test_what_telegraf_scraped_reads_like_the_pages(name: str) -> None:
    pages = gca.read(INFLUX / "pages.prom.gz")
    run = gca.read(INFLUX / name)
    assert layouts.layout_of(text_of(INFLUX / name)[: 1 << 16]) == "influx"
    assert len(run.memstats) == 40
    assert not len(run.rejected)
    own = ("source", "line_no", "host")
    assert_frame_equal(run.memstats.drop(own), pages.memstats.drop(own))
    (process,) = run.processes.to_dicts()
    assert (process["host"], process["go_version_min"]) == ("build-1", "1.19")


def test_an_export_has_the_cycles_that_gctrace_counts() -> None:
    run = gca.read(INFLUX / "export.txt.gz")
    traced = gca.read(INFLUX / "run.log.gz")
    assert layouts.layout_of(text_of(INFLUX / "export.txt.gz")[: 1 << 16]) == "influx"
    assert run.memstats["num_gc"].max() == traced.cycles["gc_num"].max() == 475
    assert run.memstats["num_gc"].is_sorted()
    assert not len(run.rejected)
    pauses_ms = run.memstats["pause_total_ns"].max() / 1e6  # type: ignore[operator]
    printed_ms = traced.cycles.select("stw_sweep_term_ms", "stw_mark_term_ms").sum_horizontal()
    assert pauses_ms == pytest.approx(printed_ms.sum(), rel=0.05)


def test_the_table_of_its_command_line_has_the_values_of_the_export() -> None:
    tables = [gca.read(INFLUX / name).memstats for name in ("export.txt.gz", "answer.txt.gz")]
    columns = ("logged_at", "alloc_bytes", "total_alloc_bytes", "num_gc", "pause_total_ns")
    end = tables[0]["logged_at"].dt.offset_by("50s").min()
    exported, printed = (
        table.select(columns).filter(pl.col("logged_at") < end) for table in tables
    )
    assert len(exported) > 45
    assert_frame_equal(printed, exported)


def test_fields_of_memstats_are_a_dump() -> None:
    run = read_text(RUNTIME)
    assert run.memstats["num_gc"].to_list() == [3, 7, 11]
    assert run.memstats["alloc_bytes"].to_list() == [4_000_000, 5_000_000, 4_500_000]
    assert run.memstats["logged_at"].dt.epoch("s").to_list() == [
        1_700_000_000,
        1_700_000_010,
        1_700_000_020,
    ]
    assert run.processes["host"].to_list() == ["db-1"]


def test_an_export_may_begin_with_other_measurements() -> None:
    begin = "# DDL\nCREATE DATABASE telegraf WITH NAME autogen\n# DML\n"
    cpu = "".join(f"cpu,host=a idle=9{at % 10} {AT + 10**9 * at}\n" for at in range(3000))
    assert len(cpu) > 1 << 16
    run = read_text(f"{begin}{cpu}{RUNTIME}\n")
    assert run.memstats["num_gc"].to_list() == [3, 7, 11]
    with pytest.raises(NoDataError, match="too few metrics of the memory or the GC cycles"):
        read_text(begin + cpu)


@pytest.mark.parametrize(
    ("unit", "at"), [("s", 10**9), ("ms", 10**6), ("µs", 10**3), ("ns", 1)]
)
def test_times_are_of_any_precision(unit: str, at: int) -> None:
    lines = (line.rpartition(" ") for line in RUNTIME.split("\n"))
    text = "\n".join(f"{head} {int(time) // at}" for head, _, time in lines)
    assert read_text(text).memstats["logged_at"].dt.epoch("s").min() == 1_700_000_000, unit


def test_what_telegraf_prints_in_a_test_is_read() -> None:
    noise = "2026-11-23T11:30:33Z I! Loaded inputs: prometheus\n"
    text = "\n".join(f"> {line}" for line in RUNTIME.split("\n"))
    assert len(read_text(noise + text).memstats) == 3


def test_escapes_strings_and_booleans_do_not_hide_numbers() -> None:
    text = RUNTIME.replace("hostname=db-1", r"hostname=db\ 1\,a\=b").replace(
        " Alloc=", ' note="a b, Alloc=1 \\" c",is_leader=true,Alloc='
    )
    run = read_text(text)
    assert run.processes["host"].to_list() == ["db 1,a=b"]
    assert run.memstats["alloc_bytes"].to_list() == [4_000_000, 5_000_000, 4_500_000]


def test_tags_separate_processes() -> None:
    text = RUNTIME + "\n" + RUNTIME.replace("db-1", "db-2")
    assert sorted(read_text(text).processes["host"]) == ["db-1", "db-2"]


def test_a_damaged_value_and_a_damaged_line_are_counted() -> None:
    metric = "go_memstats_next_gc_bytes,host=a gauge={} {}\n"
    lines = [metric.format(value, AT + 10**9 * at) for at, value in enumerate(("5e6", "5xe6"))]
    text = "".join(lines) + "go_memstats_next_gc_bytes,host=a gauge =7e6 7\n" + RUNTIME + "\n"
    rejected = read_text(text).rejected
    assert rejected["line_no"].to_list() == [2, 3]
    assert rejected["reason"][1] == "not line protocol"


def test_a_cut_last_line_is_rejected() -> None:
    run = read_text(RUNTIME[:-3])
    assert run.memstats["num_gc"].to_list() == [3, 7]
    assert run.rejected["reason"].to_list() == ["the input ends inside this line"]
    assert len(read_text(RUNTIME).memstats) == 3


def test_other_measurements_are_no_go_program() -> None:
    disk = "\n".join(f"disk,host=a free=1i,sys=2i,used=3i {AT + at}" for at in range(9))
    assert layouts.layout_of(disk) is None
    with pytest.raises(NoDataError):
        read_text(disk)


@given(st.text('go_memstats,=" \\1ie\n>#', max_size=80))
def test_any_text_is_read_or_rejected(text: str) -> None:
    samples = Samples()
    influx.read(text, samples)
    layouts.layout_of(text)
    assert all(isinstance(each, pl.DataFrame) for each in samples.frames)


def test_the_json_of_telegraf_reads_like_its_lines() -> None:
    lines = [
        f"go_memstats_heap_inuse_bytes,host=web\\ 1 gauge=7000000 {AT}",
        f"go_gc_duration_seconds,host=web\\ 1 0.5=0.0001,1=0.003,count=9,sum=0.004 {AT}",
    ]
    metrics: list[dict[str, object]] = [
        {"fields": {"gauge": 7_000_000}, "name": "go_memstats_heap_inuse_bytes"},
        {
            "fields": {"0.5": 0.0001, "1": 0.003, "count": 9, "sum": 0.004},
            "name": "go_gc_duration_seconds",
        },
    ]
    metrics = [each | {"tags": {"host": "web 1"}, "timestamp": AT // 10**9} for each in metrics]
    expected = read_text("\n".join(lines) + "\n").memstats
    assert len(expected) == 1
    texts = [
        json.dumps(each, separators=(",", ":")) for each in (*metrics, {"metrics": metrics})
    ]
    for text in ("\n".join(texts[:2]), texts[2]):
        assert_frame_equal(read_text(text).memstats, expected)
    run = read_text("\n".join([*texts[:2], texts[0][:60]]))
    assert_frame_equal(run.memstats, expected)
    assert len(run.rejected) == 1
