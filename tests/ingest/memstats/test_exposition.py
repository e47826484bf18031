"""MemStats from Prometheus metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given

from gctrace_analyzer.ingest.memstats import exposition
from tests.helpers.logs import read_lines
from tests.helpers.memstats import DUMPS, row_of

if TYPE_CHECKING:
    from pathlib import Path


@given(DUMPS)
def test_memstats_read_from_metrics_as_written(dump: dict[str, int]) -> None:
    lines = [f"go_memstats_{column} {value}" for column, value in row_of(dump).items()]
    assert exposition.read(lines) == [{"line_no": 1, **row_of(dump)}]


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
