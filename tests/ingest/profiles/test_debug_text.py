"""Profiles in text form, with debug=1."""

from __future__ import annotations

import math

from gctrace_analyzer.testing import read_text
from tests.helpers.written_profiles import DECODE, MAIN, RUNTIME, UNMARSHAL, text

HEAP = text(
    "heap profile: 3: 3072 [10: 10240] @ heap/1048576",
    {"3: 3072 [10: 10240]": [UNMARSHAL, DECODE, MAIN], "0: 0 [2: 2097152]": [MAIN, RUNTIME]},
    ["# runtime.MemStats", "# Alloc = 1000000", "# TotalAlloc = 2000000", "# Sys = 3000000",
     "# HeapAlloc = 1000000", "# HeapSys = 2000000", "# NextGC = 4194304", "# NumGC = 3"],
)  # fmt: skip


def test_sampled_values_are_scaled_as_pprof_does() -> None:
    decode = read_text(HEAP).sites().filter(function="main.decode").row(0, named=True)
    sampled = 1 - math.exp(-1024 / 524_288)
    assert decode["attributed_alloc_bytes"] == int(10240 / sampled)
    assert decode["attributed_inuse_bytes"] == int(3072 / sampled)
    assert decode["alloc_bytes"] == 0
    assert decode["cum_alloc_objects"] == int(10 / sampled)


def test_the_dump_below_the_stacks_is_read_too() -> None:
    run = read_text(HEAP)
    assert run.memstats["next_gc_bytes"].to_list() == [4194304]
    assert run.sources[0].found["stacks"] == 2


def test_goroutines_are_counted_by_the_function_of_the_program() -> None:
    park = [("runtime.gopark", "/go/src/runtime/proc.go", 430)]
    run = read_text(
        text(
            "goroutine profile: total 774",
            {"773": [park, [("main.leak", "/src/main.go", 66)]], "1": [MAIN, RUNTIME]},
        )
    )
    columns = ("function", "line", "goroutines", "alloc_bytes")
    assert run.sites().select(columns).rows() == [
        ("main.leak", 66, 773, None),
        ("main.main", 10, 1, None),
    ]


def test_what_a_cut_profile_lacks_is_part_of_its_total() -> None:
    lacks = "3: 3072 [2000: 4194304]"
    run = read_text(HEAP.replace("3: 3072 [10: 10240] @ heap", f"{lacks} @ heap"))
    assert run.sources[0].found["stacks"] == 2
    (cut,) = run.sites().filter(function="(not in the input)").to_dicts()
    mean = (4194304 - 10240 - 2097152) / (2000 - 12)
    sampled = 1 - math.exp(-mean / 524_288)
    assert cut["alloc_bytes"] == int((4194304 - 10240 - 2097152) / sampled)
    assert read_text(HEAP).sites().filter(function="(not in the input)").is_empty()
