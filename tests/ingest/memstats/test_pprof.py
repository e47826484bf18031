"""MemStats at the end of a heap profile in text form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from gctrace_analyzer.ingest.memstats import pprof
from tests.helpers.memstats import DUMPS, row_of


def read(lines: list[str]) -> list[dict[str, Any]]:
    rows = pprof.read(lines)
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


@given(DUMPS)
def test_memstats_read_from_a_heap_profile_as_written(dump: dict[str, int]) -> None:
    lines = ["# runtime.MemStats", *(f"# {name} = {value}" for name, value in dump.items())]
    assert read(lines) == [{"line_no": 2, **row_of(dump)}]


def test_a_heap_profile_has_pairs_pauses_and_fractions() -> None:
    (row,) = read(
        [
            "# runtime.MemStats",
            "# Stack = 10 / 20",
            f"# PauseNs = [5 7 9{' 0' * 253}]",
            "# NumGC = 2",
            "# GCCPUFraction = 0.25",
            "# HeapAlloc = 1e+06",
            "# Unknown = 5",
        ]
    )
    assert (row["stack_inuse_bytes"], row["stack_sys_bytes"]) == (10, 20)
    assert (row["num_gc"], row["last_pause_ns"]) == (2, 7)
    assert (row["gc_cpu_fraction"], row["heap_alloc_bytes"]) == (0.25, 1_000_000)


def test_of_pauses_that_were_cut_those_that_are_whole_are_read() -> None:
    pauses = {"[... 256 values cut ...]": None, "[5 7 ... 254 more]": 7e-9, "[5 7 9": 7e-9}
    for cut, longest in pauses.items():
        head = ["# runtime.MemStats", "# HeapSys = 7"]
        (row,) = read([*head, f"# PauseNs = {cut}", "# NumGC = 2"])
        assert row.get("pause_max_s") == longest
        # Which of them is the last one, only the whole list shows.
        assert "last_pause_ns" not in row


TABLE = """\
      flat  flat%   sum%        cum   cum%
 2685.23MB 93.51% 93.51%  2686.20MB 93.54%  io.copyBuffer
   74.07MB  2.58% 96.09%    74.07MB  2.58%  runtime.malg
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"Type: inuse_space\n(pprof) top\nShowing nodes accounting for 2784.62MB, 96.97% of "
         f"2871.60MB total\n{TABLE}", "The profile shows 2871.60MB (inuse_space); largest (flat)"),
        # As it was up to Go 1.9, with the kind on the command line.
        (f"$ go tool pprof --inuse_space x heap\n2784.62MB of 2871.60MB total (96.97%)\n{TABLE}",
         "shows 2871.60MB (inuse_space); largest (flat): 2685.23MB (93.51 %) io.copyBuffer"),
        # Without what stands above the rows, a share shows the total.
        (TABLE, "shows a total that was cut off (of what: see its line Type); largest"),
        ("Type: alloc_space\nShowing nodes accounting for 1MB, 50% of 2MB total\n  1MB 50",
         "shows 2MB (alloc_space: all that was allocated since the start, not what is held); the rows of the largest functions are not in the input"),
    ],
)  # fmt: skip
def test_a_table_of_pprof_is_read_in_part(text: str, said: str) -> None:
    assert said in " ".join(pprof.of_table(text, ""))


def test_gc_in_a_table_of_a_cpu_profile_is_named() -> None:
    rows = """\
         0     0%   100%      0.05s  2.60%  runtime.gcBgMarkWorker.func2
         0     0%   100%      0.01s  0.52%  runtime.gcDrainN
         0     0%   100%      0.47s 24.48%  runtime.main
"""
    said = " ".join(pprof.of_table(rows, ""))
    assert "the rows of the largest functions are not in the input" in said
    assert "assists 0.01s (0.52 %), background 0.05s (2.60 %)" in said


def test_what_somebody_wrote_behind_a_size_does_not_hide_it() -> None:
    lines = ["# runtime.MemStats", "# Sys = 433315928\t433M", "# HeapSys = 375914496 =>> 375M"]
    (row,) = pprof.read([*lines, "# NumGC = 3"])
    assert (row["sys_bytes"], row["heap_sys_bytes"]) == (433315928, 375914496)


def test_a_damaged_number_of_a_heap_profile_leaves_the_others() -> None:
    lines = [
        "# runtime.MemStats",
        "# HeapAlloc = five",
        "# HeapSys = 7",
        "# NumGC = 3",
        "# Sys = ",
    ]
    assert read(lines) == [{"line_no": 3, "heap_sys_bytes": 7, "num_gc": 3}]


def test_every_profile_of_a_file_is_a_dump() -> None:
    one = [
        "heap profile: 1: 2 [3: 4] @ heap/1048576",
        "# runtime.MemStats",
        "# HeapSys = 7",
        "# NumGC = 3",
    ]
    rows = read(["# HeapSys = 1", *one, "", *one, "# runtime.MemStats", "# NumGC = 1"])
    assert [(row["line_no"], row["num_gc"]) for row in rows] == [(4, 3), (9, 3)]


@pytest.mark.parametrize(
    ("asked", "total", "said"),
    [
        ("$ go tool pprof -top --alloc_space heap.pb.gz", "16393840.61MB",
         "shows 16393840.61MB = 15.6 TiB (alloc_space: all that was allocated since the start, not"),
        ("(pprof) alloc_space\n(pprof) top", "176.99MB",
         "shows 176.99MB (alloc_space: all that was allocated since the start, not"),
        ("(pprof) top", "2253.29kB", "shows 2253.29kB (of what: see its line Type)"),
    ],
)  # fmt: skip
def test_what_was_allocated_is_not_what_is_held(asked: str, total: str, said: str) -> None:
    table = f"{asked}\nShowing nodes accounting for 1MB, 90.41% of {total} total\n"
    assert said in " ".join(pprof.of_table(table, ""))
