"""MemStats at the end of a heap profile in text form."""

from __future__ import annotations

from hypothesis import given

from gctrace_analyzer.ingest.memstats import pprof
from tests.helpers.memstats import DUMPS, row_of


@given(DUMPS)
def test_memstats_read_from_a_heap_profile_as_written(dump: dict[str, int]) -> None:
    lines = ["# runtime.MemStats", *(f"# {name} = {value}" for name, value in dump.items())]
    assert pprof.read(lines) == [{"line_no": 1, **row_of(dump)}]


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
