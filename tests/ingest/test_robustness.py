"""No input raises anything but the documented errors."""

from __future__ import annotations

import io
from contextlib import suppress

from hypothesis import example, given, settings
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.errors import GctraceError
from gctrace_analyzer.ingest import sniff
from tests.helpers.lines import LINES
from tests.helpers.logs import KILL
from tests.helpers.wrappers import WRAPPERS

FRAGMENTS = [
    *LINES.values(),
    *(wrap("") for wrap in WRAPPERS.values()),
    KILL,
    "kernel: [1.0] Killed process 99999999999999999999 (x) total-vm:99999999999999999999kB,",
    "a.service: Main process exited, code=killed, status=99999999999999999999999",
    "a.service: Consumed 1.2.3s CPU time, 1.2.3M memory peak, 9" + "9" * 400 + "G memory peak",
    "HeapAlloc=1e999 HeapSys=99999999999999999999 NumGC=1.5",
    '{"HeapAlloc": 1e999, "HeapSys": 1' + "0" * 30 + ', "NumGC": -1}',
    '{"memstats": {"HeapAlloc": [1], "PauseNs": [1], "NumGC": 1e300, "HeapSys": 1}}',
    "go_memstats_alloc_bytes 1e",
    "go_memstats_sys_bytes 1.2.3",
    "go_memstats_heap_alloc_bytes 1e400",
    "# runtime.MemStats\n# Alloc = 1e\n# HeapSys = 1-2\n# NumGC = 1",
    "runtime stats: 1.2.3 GiB RSS, 5 goroutines, 1.2 GiB/2.3.4 GiB GO alloc",
    "runtime: out of memory: cannot allocate 99999999999999999999-byte block (1 in use)",
    '{"Type":"container","Action":"die","timeNano":1e300,"id":5}',
    '{"Type":"container","Action":["x"],"time":"now"}',
    '{"kind":"Pod","metadata":[],"status":{"containerStatuses":[1]}}',
    '{"State":{"ExitCode":"1"},"Config":{"Env":5}}',
    '{"data":{"resultType":"streams","result":[{"values":[["x","y"]]}]}}',
    '{"events":[{"message":1,"timestamp":"x"},{"message":2,"timestamp":3}]}',
    '{"hits":{"hits":[{"_source":{"message":1}}]}}',
    '{"dmesg":[{"msg":1,"time":"x"}]}',
    '{"results":[[{"field":1,"value":2}]]}',
    '{"kind":"List","items":[1,{"kind":"Pod"}]}',
    "State: Terminated\n Exit Code: 99999999999999999999999\nLast State: Running\n",
    "[pid] uid tgid total_vm rss name",
    "HeapAlloc,HeapSys\n1,2\n3\n9" + "9" * 30 + ",1",
    "oom_reaper: reaped process 1 (a), now anon-rss:1kB, file-rss:0kB, shmem-rss:0kB",
    "memory: usage 99999999999999999999kB, limit 1kB, failcnt 0",
]


@settings(max_examples=150)
@example(["scvg1: GC forced"], "\n", "yaml", 11)
@given(
    st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=6),
    st.sampled_from(["\n", " ", ""]),
    st.sampled_from([None, *sniff.KINDS]),
    st.integers(0, 40),
)
def test_mixed_fragments_raise_only_documented_errors(
    pieces: list[str], separator: str, kind: str | None, cut: int
) -> None:
    data = separator.join([*pieces, pieces[0][: len(pieces[0]) - cut]]).encode()
    with suppress(GctraceError):
        gca.read(io.BytesIO(data), kind=kind)  # type: ignore[arg-type]  # one of KINDS


@settings(max_examples=100)
@given(st.binary(max_size=300), st.sampled_from([None, *sniff.KINDS]))
def test_any_bytes_raise_only_documented_errors(data: bytes, kind: str | None) -> None:
    with suppress(GctraceError):
        gca.read(io.BytesIO(data), kind=kind)  # type: ignore[arg-type]  # one of KINDS
