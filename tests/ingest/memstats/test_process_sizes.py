"""The resident memory that ps, top and /proc show next to MemStats."""

from __future__ import annotations

import pytest

from gctrace_analyzer.ingest.memstats.process_sizes import sentences, sizes
from gctrace_analyzer.testing import read_text

PS = "USER   PID %CPU %MEM    VSZ    RSS TTY STAT START   TIME COMMAND\n"
TOP = "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (f"{PS}app    812 41.2 13.4 6291456 2097152 ?   Ssl  Jun04 812:40 ./app\n", 2 << 30),
        (
            f"{TOP}    812 app  20   0 6291456   1.5g   1.1g S  41.2  13.4 812:40.11 app\n",
            3 << 29,
        ),
        ("Name:\tapp\nVmHWM:\t    4096 kB\nVmRSS:\t    2048 kB\n", 2 << 20),
        ("Rss:                2048 kB\nPss:                1024 kB\n", 2 << 20),
        # Which of two processes is the one with MemStats, nothing shows.
        (f"{PS}a 1 0 0 6291456 2048 ? S 1 0 a\nb 2 0 0 6291456 4096 ? S 1 0 b\n", None),
        ("Rss:  2048 kB\nVmRSS:  4096 kB\n", None),
        (PS, None),
    ],
)
def test_the_size_of_a_single_process_is_found(text: str, size: int | None) -> None:
    assert sizes(text).get("resident") == size


def test_the_resident_memory_is_that_of_the_dump_next_to_it() -> None:
    dump = "Alloc = 9 MiB Sys = 48 MiB NumGC = 7\n"
    log = read_text(f"{PS}app 8 1 1 9 2097152 ? S 1 0 app\n{dump}")
    assert log.table("memstats")["rss_bytes"].to_list() == [2 << 30]
    two = read_text(f"{PS}app 8 1 1 9 2097152 ? S 1 0 app\n{dump}{dump}")
    assert two.table("memstats")["rss_bytes"].to_list() == [None, None]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # The totals are of the group with those below it.
        (
            "memory.usage_in_bytes 1073741824\ncache 0\nrss 10485760\nshmem 0\n"
            "total_cache 838860800\ntotal_rss 209715200\ntotal_shmem 629145600\n",
            ("200 MiB are anonymous", "200 MiB are page cache", "600 MiB are shared memory"),
        ),
        (
            "Rss: 2097152 kB\nLazyFree: 1572864 kB\n",
            ("returned 1,536 MiB", "512 MiB are resident"),
        ),
        (
            "/gc/scan/heap:bytes: 104857600\n/gc/scan/stack:bytes: 943718400\n"
            "/gc/scan/total:bytes: 1048576000\n",
            ("1,000 MiB that each GC cycle scans, 900 MiB are goroutine stacks",),
        ),
    ],
)
def test_what_memory_consists_of_is_said(text: str, said: tuple[str, ...]) -> None:
    (sentence,) = sentences(sizes(text))
    assert [part for part in said if part not in sentence] == []


def test_tasklist_has_the_working_set() -> None:
    row = "scanner.exe    9144 Services    0  2,812,344 K"
    assert sizes(row) == {"resident": 2812344 << 10}
    assert sizes('"scanner.exe","9144","Services","0","2,812,344 K"\n')
