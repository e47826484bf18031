"""A live heap that grows from dump to dump is said, also where no cycle ended between two."""

from __future__ import annotations

import io

import gctrace_analyzer as gca

HEAD = "timestamp,HeapAlloc,NextGC,NumGC,Sys,PauseTotalNs\n"


def test_intervals_without_a_cycle_do_not_hide_growth() -> None:
    """By hand: ten dumps a second apart, a cycle in every other, GOGC=100: 20 MiB more each."""
    rows = (
        f"2026-01-01T00:00:{n:02}Z,{(40 + 10 * n) << 20},{(2 * (20 + 20 * (n // 2))) << 20},"
        f"{1 + n // 2},{300 << 20},{1000 * (n // 2)}\n"
        for n in range(14)
    )
    run = gca.read(io.StringIO(HEAD + "".join(rows)), gogc=100)
    assert "live-heap-growth" in run.findings()["name"].to_list()
