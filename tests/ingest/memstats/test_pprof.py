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


def test_pauses_that_were_cut_say_nothing_of_the_longest() -> None:
    for cut in ("[... 256 values cut ...]", "[5 7 ... 254 more]", "[5 7"):
        head = ["# runtime.MemStats", "# HeapSys = 7"]
        (row,) = pprof.read([*head, f"# PauseNs = {cut}", "# NumGC = 2"])
        assert not {"last_pause_ns", "pause_max_s"} & row.keys()


def test_what_somebody_wrote_behind_a_size_does_not_hide_it() -> None:
    lines = ["# runtime.MemStats", "# Sys = 433315928\t433M", "# HeapSys = 375914496 =>> 375M"]
    (row,) = pprof.read([*lines, "# NumGC = 3"])
    assert (row["sys_bytes"], row["heap_sys_bytes"]) == (433315928, 375914496)


def test_a_damaged_number_of_a_heap_profile_leaves_the_others() -> None:
    lines = [
        "# runtime.MemStats",
        "# HeapAlloc = 5 MB",
        "# HeapSys = 7",
        "# NumGC = 3",
        "# Sys = ",
    ]
    assert pprof.read(lines) == [{"line_no": 1, "heap_sys_bytes": 7, "num_gc": 3}]


def test_every_profile_of_a_file_is_a_dump() -> None:
    one = [
        "heap profile: 1: 2 [3: 4] @ heap/1048576",
        "# runtime.MemStats",
        "# HeapSys = 7",
        "# NumGC = 3",
    ]
    rows = pprof.read(["# HeapSys = 1", *one, "", *one, "# runtime.MemStats", "# NumGC = 1"])
    assert [(row["line_no"], row["num_gc"]) for row in rows] == [(3, 3), (8, 3)]
