"""Printed MemStats have their units, and pauses of a heap profile their newest one."""

from __future__ import annotations

from gctrace_analyzer.ingest.memstats import pprof
from gctrace_analyzer.testing import read_text


def test_runtime_statistics_of_cockroachdb_are_read() -> None:
    line = "runtime stats: 3.0 GiB RSS, 300 goroutines, 1.5 GiB/512 MiB/2.0 GiB GO alloc/idle/total"
    row = read_text(line + "\n").memstats.row(0, named=True)
    assert row["rss_bytes"] == 3 << 30
    assert (row["alloc_bytes"], row["heap_idle_bytes"]) == (3 << 29, 1 << 29)


def test_sizes_with_units_have_the_resolution_of_their_last_digit() -> None:
    row = read_text("Alloc = 1.5 MiB\tSys = 10 MiB\tNumGC = 3\n").memstats.row(0, named=True)
    assert (row["alloc_bytes"], row["sys_bytes"], row["num_gc"]) == (3 << 19, 10 << 20, 3)
    assert row["resolution_bytes"] == 1 << 20


def test_a_heap_profile_has_pairs_pauses_and_fractions() -> None:
    (row,) = pprof.read(
        [
            "# runtime.MemStats",
            "# Stack = 10 / 20",
            "# PauseNs = [5 7 9]",
            "# NumGC = 2",
            "# GCCPUFraction = 0.25",
            "# HeapAlloc = 1e+06",
            "# Unknown = 5",
        ]
    )
    assert (row["stack_inuse_bytes"], row["stack_sys_bytes"]) == (10, 20)
    assert (row["num_gc"], row["last_pause_ns"]) == (2, 7)
    assert (row["gc_cpu_fraction"], row["heap_alloc_bytes"]) == (0.25, 1_000_000)
