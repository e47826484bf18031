"""MemStats from Prometheus metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from gctrace_analyzer.ingest.memstats import prometheus
from tests.helpers.logs import read_lines
from tests.helpers.memstats import DUMPS, row_of

if TYPE_CHECKING:
    from pathlib import Path


@given(DUMPS)
def test_memstats_read_from_metrics_as_written(dump: dict[str, int]) -> None:
    lines = [f"go_memstats_{column} {value}" for column, value in row_of(dump).items()]
    assert prometheus.read(lines) == [{"line_no": 1, **row_of(dump)}]


def test_metrics_of_several_pods_are_kept_apart(tmp_path: Path) -> None:
    names = ("heap_alloc_bytes", "heap_sys_bytes", "next_gc_bytes")
    lines = [
        f'go_memstats_{name}{{pod="{pod}"}} {n}e6 1772352000.123'
        for n, name in enumerate(names, 1)
        for pod in "ab"
    ]
    run = read_lines(tmp_path, *lines)
    assert run.memstats["pod"].to_list() == ["a", "b"]
    assert run.memstats["heap_sys_bytes"].to_list() == [2_000_000] * 2
    assert {at.year for at in run.memstats["logged_at"]} == {2026}


@pytest.mark.parametrize("at", ["1772352000.5", "1772352000500"])
def test_a_scrape_may_have_a_time_in_seconds_or_milliseconds(at: str) -> None:
    lines = [f"go_memstats_heap_{name}_bytes 5 {at}" for name in ("alloc", "sys", "idle")]
    (row,) = prometheus.read(lines)
    assert row["at_us"] == 1772352000_500_000


def test_values_that_are_not_finite_are_ignored() -> None:
    lines = [
        "go_memstats_heap_alloc_bytes 5",
        "go_memstats_heap_sys_bytes +Inf",
        "go_memstats_next_gc_bytes NaN",
        "go_memstats_sys_bytes 1.2.3",
        "go_memstats_heap_idle_bytes 7",
        "go_gc_gomemlimit_bytes 9.223372036854776e+18",
        'go_gc_duration_seconds{quantile="1"} 0.002',
        'go_gc_duration_seconds{quantile="0.5"} 0.001',
        "go_memstats_last_gc_time_seconds 1.5e+09",
        "go_memstats_unknown 1",
        "http_requests_total 1",
    ]
    (row,) = prometheus.read(lines)
    assert row == {
        "line_no": 1,
        "heap_alloc_bytes": 5,
        "heap_idle_bytes": 7,
        "gomemlimit_bytes": None,
        "pause_max_s": 0.002,
        "last_gc_unix_ns": 1_500_000_000_000_000_000,
    }
