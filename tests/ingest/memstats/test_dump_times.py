"""Times that stand in words near dumps."""

from __future__ import annotations

import pytest

from gctrace_analyzer.testing import read_text

FIRST = "Alloc = 100 MiB\nTotalAlloc = 500 MiB\nNumGC = 100\n"
SECOND = "Alloc = 110 MiB\nTotalAlloc = 800 MiB\nNumGC = 130\n"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("15:04:05\n", "15:04:35\n"),
        ("[23:59:45] ", "[00:00:15] "),
        ("--- 9:04:05.123 ---\n", "--- 9:04:35.123 ---\n"),
        ("2024-05-01T10:00:00Z\n", "2024-05-01T10:00:30Z\n"),
        ("=== stats at 2024/05/01 23:59:45 ===\n", "=== stats at 2024/05/02 00:00:15 ===\n"),
        ("Wed May  1 10:00:00 UTC 2024\n", "Wed May  1 10:00:30 UTC 2024\n"),
        ("uptime: 1h2m3s\n", "uptime: 1h2m33s\n"),
        ("uptime=3723.5 ", "uptime=3753.5 "),
        ("m=+1.500000001\n", "m=+31.500000001\n"),
    ],
)
def test_a_time_before_each_dump_shows_the_distance(first: str, second: str) -> None:
    run = read_text(first + FIRST + second + SECOND)
    assert run.memstats["elapsed_s"].to_list() == [0, 30]
    assert run.summary().gc_per_s == 1
    below = read_text(FIRST + first.strip() + "\n" + SECOND + second.strip() + "\n")
    assert below.memstats["elapsed_s"].to_list() == [0, 30]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # The same moment, a clock that was set back, the time of something else, one time alone
        ("started 10:00:00\n", "started 10:00:30\n"),
        ("10:00:00\n", "10:00:00\n"),
        ("10:00:30\n", "10:00:00\n"),
        ("LastGC: 2024-05-01 10:00:00\n", "LastGC: 2024-05-01 10:00:30\n"),
        ("10:00:00\n", ""),
    ],
)
def test_no_other_time_is_that_of_a_dump(first: str, second: str) -> None:
    run = read_text(first + FIRST + second + SECOND)
    assert run.memstats["elapsed_s"].null_count() == 2


@pytest.mark.parametrize(("count", "known"), [(3, False), (4, True)])
def test_what_may_be_the_time_of_a_step_must_rise_often(count: int, known: bool) -> None:
    run = read_text(
        "".join(
            f"Time: {15 * n:4}s  Sys:  8.0MB  Alloc:  2.3MB  TotalAlloc: {n}.5MB\n"
            for n in range(count)
        )
    )
    assert run.memstats["elapsed_s"].count() == (count if known else 0)
