"""Where pmap and smaps show the memory of a Go program."""

from __future__ import annotations

import pytest

from gctrace_analyzer.ingest.memstats.mappings import of_mappings

PMAP = """Address           Kbytes     RSS   Dirty Mode  Mapping
0000000000400000    9120    6120       0 r-x-- app
000000c000000000 4194304 4194304 4194304 rw---   [ anon ]
000000c100000000 1048576 1048576 1048576 rw---   [ anon ]
00007f1b2f7fd000 1048576 1048576 1048576 rw---   [ anon ]
"""
NAMED = """c000000000-c040000000 rw-p 00000000 00:00 0                 [anon: Go: heap]
Size:            1048576 kB
KernelPageSize:        4 kB
MMUPageSize:           4 kB
Rss:             1048576 kB
7f1a00000000-7f1a04000000 rw-p 00000000 00:00 0                 [anon: Go: heap metadata]
Size:              65536 kB
Rss:                1024 kB
"""


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        (
            PMAP,
            "5,120 MiB are resident where Go has its heap, and 1,024 MiB in other anonymous",
        ),
        # Of two readings, the last
        (PMAP + PMAP, "5,120 MiB are resident where Go has its heap, and 1,024 MiB in other"),
        (NAMED, "1,025 MiB are resident where Go has its heap, and 0.0 MiB in other"),
    ],
)
def test_the_heap_is_where_the_runtime_maps_it(text: str, begin: str) -> None:
    (sentence,) = of_mappings(text)
    assert sentence.startswith(begin)


def test_without_a_mapping_of_go_nothing_is_said() -> None:
    assert not [*of_mappings("00007f1b2f7fd000 1048576 1048576 1048576 rw---   [ anon ]\n")]
