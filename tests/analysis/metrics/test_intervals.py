"""Intervals between dumps, and the runs of a part of them."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from gctrace_analyzer.errors import BadSettingError
from tests.helpers.metrics import CORPUS, recording

if TYPE_CHECKING:
    from pathlib import Path

RAW = "own/gogc100/query-raw.json.gz"


def test_intervals_have_the_columns_of_the_schema() -> None:
    run = recording(RAW).run
    assert run.intervals.columns == schema.names("intervals")
    assert run.table("intervals").equals(run.intervals)
    assert set(run.intervals["source_kind"]) == {"Prometheus JSON"}


def test_read_columns_are_not_named_as_estimated() -> None:
    assert recording(RAW).run.intervals["estimated"].list.len().sum() == 0
    by_goal = recording("caddy/gogc100/query-raw.json.gz").run
    assert set(by_goal.intervals["estimated"].explode()) == {"heap_live_mib"}
    assert "live_heap_p50_mib" in by_goal.summary().estimated
    assert "live_heap_p50_mib" not in recording(RAW).run.summary().estimated


def test_gc_cpu_from_the_fraction_needs_the_start_of_the_process() -> None:
    by_ring = recording("own/gogc100/expvar.jsonl.gz").run
    young = recording("own/gogc100/memstats.csv.gz").run
    late = recording("own/otel-old/memstats.csv.gz").run
    by_classes = recording(RAW).run.summary().gc_cpu_share
    for run in (by_ring, young):
        assert run.summary().gc_cpu_share == pytest.approx(by_classes, rel=0.2)
        assert "gc_cpu_share" in run.summary().estimated
    assert late.summary().gc_cpu_share is None
    assert any("because the start of the process is" in w for w in late.summary().warnings)


def test_the_ring_of_a_dump_has_each_pause_once() -> None:
    run = recording("own/gogc100/expvar.jsonl.gz").run
    pauses = run.cycle_pauses
    assert pauses["gc_num"].to_list() == list(range(1, 134))
    observed = pauses.filter(pl.col("gc_num") > 133 - 127)
    assert observed["pause_ms"].sum() == pytest.approx(run.summary().stw_total_ms, rel=1e-6)
    (row,) = run.pauses().to_dicts()
    assert (row["pauses"], row["max_gc"]) == (127, 125)


def test_dumps_without_times_are_placed_by_their_last_cycle(tmp_path: Path) -> None:
    text = (CORPUS / "own/gogc100/expvar.jsonl.gz").read_bytes()
    timed = gca.read(CORPUS / "own/gogc100/expvar.jsonl.gz")
    path = tmp_path / "vars.jsonl"
    path.write_bytes(re.sub(rb'"time":[\d.]+,', b"", gzip.decompress(text)))
    run = gca.read(path)
    assert run.summary().gc_per_s == pytest.approx(timed.summary().gc_per_s, rel=0.02)
    assert "end_s" in run.intervals["estimated"][0]


def test_one_process_of_several() -> None:
    run = recording("own/restart/query-raw.json.gz").run
    second = run.process(1)
    assert set(second.intervals["process"]) == {1}
    assert second.summary().cycles == 64


def test_a_part_of_the_time() -> None:
    run = recording(RAW).run
    part = run.between("10s", "30s")
    assert part.intervals["begin_s"].min() >= 10  # type: ignore[operator]
    assert part.intervals["end_s"].max() <= 30  # type: ignore[operator]
    assert 0 < part.summary().cycles < run.summary().cycles
    with pytest.raises(BadSettingError, match="the input covers"):
        run.between("1h", "2h")


def test_windows_have_the_totals_of_the_intervals() -> None:
    run = recording(RAW).run
    windows = run.windows("10s")
    assert windows["start_s"].to_list() == [0, 10, 20, 30, 40, 50, 60]
    assert windows["cycles"].sum() == pytest.approx(run.summary().cycles, abs=3)
    share = windows["gc_cpu_share"].mean()
    assert share == pytest.approx(run.summary().gc_cpu_share, rel=0.3)


def test_the_figures_of_intervals_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "dumps.csv"
    dumps = [("125", 10), ("375", 12), ("875", 20)]
    lines = [
        f"2026-02-03T10:00:00.{ms}Z,{n},{4 * n << 20},{3 << 20},{500_000 * n},{12 << 20}"
        for ms, n in dumps
    ]
    path.write_text("time,NumGC,TotalAlloc,HeapAlloc,PauseTotalNs,Sys\n" + "\n".join(lines))
    first, second = gca.read(path).intervals.to_dicts()
    assert (first["begin_s"], first["end_s"], second["end_s"]) == (0, 0.25, 0.75)
    assert (first["gc_cycles"], second["gc_cycles"]) == (2, 8)
    assert (first["gc_per_s"], second["gc_per_s"]) == (8, 16)
    assert (first["alloc_mib"], second["alloc_mib"]) == (8, 32)
    assert (first["alloc_mib_per_s"], second["alloc_mib_per_s"]) == (32, 64)
    assert (first["stw_total_ms"], second["stw_total_ms"]) == (1, 4)
    assert (first["heap_alloc_mib"], second["line_no"]) == (3, 4)
