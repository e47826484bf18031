"""Properties of reading: what was written is read, however it is wrapped, cut or combined."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.errors import GctraceError
from gctrace_analyzer.ingest import sniff, sources
from gctrace_analyzer.ingest.evidence import docker, kubernetes
from gctrace_analyzer.ingest.evidence.message import Message
from gctrace_analyzer.ingest.evidence.systemd import consumed, span_s
from gctrace_analyzer.ingest.evidence.systemd import read as read_systemd
from gctrace_analyzer.ingest.gctrace.grammar import SHAPES, Field
from gctrace_analyzer.ingest.gctrace.parse import parse
from gctrace_analyzer.ingest.memstats import pprof, prometheus
from gctrace_analyzer.ingest.memstats.json import from_record
from gctrace_analyzer.ingest.wrappers import timestamps
from gctrace_analyzer.testing import cycles, format_cycle, read_text
from tests.helpers.lines import LINES
from tests.helpers.logs import KILL, records

if TYPE_CHECKING:
    from collections.abc import Callable

BYTES = st.integers(0, 1 << 50)
INSTANTS = st.datetimes(datetime(2001, 9, 9, 2), datetime(2038, 1, 1))
NAMES = st.from_regex(r"[a-z][a-z0-9]{0,9}(-[a-z0-9]{1,4})?", fullmatch=True)
KUBERNETES_UNITS = {"": 1, "k": 1e3, "M": 1e6, "Ki": 1024, "Mi": 1 << 20, "Gi": 1 << 30}
PACKERS = (gzip.compress, bz2.compress, lzma.compress)
WRAPPERS: dict[str, Callable[[str], str]] = {
    "journald": "Feb 03 10:00:00 web-1 api[4242]: {}".format,
    "syslog": "<11>Feb  3 10:00:00 web-1 api[4242]: {}".format,
    "RFC 5424": "<11>1 2026-02-03T10:00:00.005Z web-1 api 4242 ID47 - {}".format,
    "CRI": "2026-02-03T11:00:00.005000123+01:00 stderr F {}".format,
    "kubectl": "[pod/api-7d9f-abcde/api] {}".format,
    "compose": "api-1  | {}".format,
    "Go log": "2026/02/03 10:00:00.005000 {}".format,
    "quoted": "> {}".format,
    "docker": lambda line: json.dumps({"log": line + "\n", "stream": "stderr"}),
    "slog": lambda line: json.dumps({"time": "2026-02-03T11:00:00Z", "msg": line}),
}
MEMSTATS = {
    "HeapAlloc": "heap_alloc_bytes",
    "HeapSys": "heap_sys_bytes",
    "NextGC": "next_gc_bytes",
    "NumGC": "num_gc",
}
DUMPS = st.fixed_dictionaries(dict.fromkeys(MEMSTATS, BYTES))


def expected(dump: dict[str, int]) -> dict[str, int]:
    return {MEMSTATS[name]: value for name, value in dump.items()}


@st.composite
def lines_of(draw: st.DrawFn, shape: str) -> tuple[str, dict[str, int]]:
    """A line of the shape with all its optional parts, and its integer fields."""
    text, fields = "", {}
    for part in SHAPES[shape].variants[-1].parts:
        if isinstance(part, Field) and part.kind in ("int", "sint"):
            fields[part.name] = draw(st.integers(0, 10**9))
            text += str(fields[part.name])
        else:
            text += "1" if isinstance(part, Field) else part
    return text, fields


@pytest.mark.parametrize("shape", [n for n, shape in SHAPES.items() if shape.table == "cycles"])
@settings(max_examples=15)
@given(data=st.data())
def test_a_cycle_of_every_shape_reads_as_written(shape: str, data: st.DataObject) -> None:
    text, fields = data.draw(lines_of(shape))
    row = read_text(text + "\n").cycles.row(0, named=True)
    assert row["format"] == shape
    assert {name: row[name] for name in fields if name in row} == {
        name: value for name, value in fields.items() if name in row
    }


@pytest.mark.parametrize("wrapper", WRAPPERS)
@settings(max_examples=15)
@given(row=cycles())
def test_a_wrapped_cycle_reads_like_a_bare_one(wrapper: str, row: dict[str, Any]) -> None:
    run = read_text(WRAPPERS[wrapper](format_cycle(row)) + "\n")
    assert {name: run.cycles.row(0, named=True)[name] for name in row} == row
    assert not run.cycles["repaired"].any()


@settings(max_examples=20)
@given(st.integers(1, 12), st.integers(1, 12), st.randoms(use_true_random=False))
def test_interleaved_logs_of_two_services_give_the_cycles_of_each(
    one: int, other: int, random: Any
) -> None:
    queues = {
        name: [f"2026-02-03T10:00:00Z host {name}[{pid}]: {line}" for line in records(count)]
        for name, pid, count in (("api", 11, one), ("web", 12, other))
    }
    lines = []
    while any(queues.values()):
        lines.append(random.choice([queue for queue in queues.values() if queue]).pop(0))
    processes = read_text("\n".join(lines) + "\n").processes
    assert dict(processes.select("ident", "cycles").iter_rows()) == {"api": one, "web": other}
    assert processes["missing_cycles"].sum() == 0


@settings(max_examples=20)
@given(st.permutations(range(3)))
def test_the_order_of_unrelated_inputs_does_not_matter(order: list[int]) -> None:
    parts = [
        "".join(f"2026-02-03T10:00:00Z h svc{n}[{n}]: {line}\n" for line in records(n + 2))
        for n in range(3)
    ]
    run = gca.read(*(io.BytesIO(parts[n].encode()) for n in order))
    counts = run.processes.select("ident", "cycles").sort("ident").rows()
    assert counts == [("svc0", 2), ("svc1", 3), ("svc2", 4)]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(size=st.integers(64, 2000), count=st.integers(1, 12), cut=st.integers(3, 60))
def test_chunk_borders_do_not_matter(
    monkeypatch: pytest.MonkeyPatch, size: int, count: int, cut: int
) -> None:
    lines = records(count)
    log = "\n".join(
        [*lines, f"{LINES['gc18'][:cut]}2026/11/21 12:00 x", LINES["gc18"][cut:], ""]
    )
    monkeypatch.setattr(sources, "CHUNK_BYTES", 1 << 20)
    whole = read_text(log)
    monkeypatch.setattr(sources, "CHUNK_BYTES", size)
    parts = read_text(log)
    assert parts.cycles.equals(whole.cycles)
    assert parts.rejected.equals(whole.rejected)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_shifting_a_chunk_changes_only_the_copy(by: int, more: int) -> None:
    chunk = parse(
        ("\n".join([*records(3), LINES["scav21"], LINES["gc18"][:40]]) + "\n").encode()
    )
    numbers = chunk.cycles["line_no"].to_list()
    twice = chunk.shifted(by).shifted(more)
    assert chunk.cycles["line_no"].to_list() == numbers == [1, 2, 3]
    assert twice.cycles["line_no"].to_list() == [n + by + more for n in numbers]
    assert [s.line_no for s in twice.suspects] == [5 + by + more]


@settings(max_examples=30)
@given(st.lists(DUMPS, min_size=1, max_size=5), st.sampled_from(",;\t"))
def test_memstats_read_from_csv_as_written(dumps: list[dict[str, int]], separator: str) -> None:
    header = separator.join(MEMSTATS)
    rows = [separator.join(str(dump[name]) for name in MEMSTATS) for dump in dumps]
    table = read_text("\n".join([header, *rows]) + "\n").memstats
    assert table.select(MEMSTATS.values()).to_dicts() == [expected(dump) for dump in dumps]


@settings(max_examples=30)
@given(DUMPS, st.booleans())
def test_memstats_read_from_json_as_written(dump: dict[str, int], nested: bool) -> None:
    document = json.dumps({"memstats": dump} if nested else dump, indent=1)
    table = read_text(document).memstats
    assert table.select(MEMSTATS.values()).to_dicts() == [expected(dump)]
    assert from_record(dump) == expected(dump)


@settings(max_examples=30)
@given(DUMPS, st.sampled_from(["{} = {}", "{}={}", "{}: {}"]))
def test_memstats_read_from_text_as_printed(dump: dict[str, int], form: str) -> None:
    line = " ".join(form.format(name, value) for name, value in dump.items())
    table = read_text(f"{line}\n{LINES['gc18']}\n").memstats
    assert table.select(MEMSTATS.values()).to_dicts() == [expected(dump)]


@given(DUMPS)
def test_memstats_read_from_a_heap_profile_as_written(dump: dict[str, int]) -> None:
    lines = ["# runtime.MemStats", *(f"# {name} = {value}" for name, value in dump.items())]
    assert pprof.read(lines) == [{"line_no": 1, **expected(dump)}]


@given(DUMPS)
def test_memstats_read_from_metrics_as_written(dump: dict[str, int]) -> None:
    lines = [f"go_memstats_{column} {value}" for column, value in expected(dump).items()]
    assert prometheus.read(lines) == [{"line_no": 1, **expected(dump)}]


@settings(max_examples=30)
@given(st.integers(1, 1 << 22), NAMES, st.integers(1, 1 << 40))
def test_a_kernel_kill_reads_as_printed(pid: int, comm: str, kb: int) -> None:
    line = "kernel: " + KILL.format(pid=pid, comm=comm[:15], kb=kb)
    kill = read_text(line + "\n").oom_kills.row(0, named=True)
    assert (kill["pid"], kill["comm"], kill["scope"]) == (pid, comm[:15], "memcg")
    assert kill["anon_rss_bytes"] == kb * 1024


@given(NAMES, st.integers(0, 255), st.sampled_from(["exited", "killed", "dumped"]))
def test_a_systemd_exit_reads_as_printed(name: str, status: int, code: str) -> None:
    text = f"{name}.service: Main process exited, code={code}, status={status}/KILL"
    (event,) = read_systemd([Message(1, text)])["unit_events"]
    assert (event["unit"], event["code"], event["status"]) == (f"{name}.service", code, status)


@given(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59_999))
def test_a_systemd_time_span_reads_as_printed(d: int, h: int, m: int, ms: int) -> None:
    text = f"{d}d {h}h {m}min {ms / 1000:.3f}s"
    seconds = d * 86400 + h * 3600 + m * 60 + ms / 1000
    assert span_s(text) == pytest.approx(seconds)
    assert consumed(f"{text} CPU time") == {"cpu_s": span_s(text)}


@given(NAMES, st.integers(4 << 20, 1 << 44), st.integers(1, 10**6), INSTANTS)
def test_docker_inspect_reads_as_written(
    name: str, limit: int, gogc: int, start: datetime
) -> None:
    row = docker.inspected(
        {
            "Id": "f" * 64,
            "Name": f"/{name}",
            "State": {
                "Status": "exited",
                "ExitCode": 137,
                "StartedAt": f"{start.isoformat()}Z",
            },
            "HostConfig": {"Memory": limit},
            "Config": {"Env": [f"GOGC={gogc}", "PATH=/bin"]},
        }
    )
    assert (row["name"], row["memory_limit_bytes"], row["gogc"]) == (name, limit, str(gogc))
    assert (row["signal"], row["started_at"]) == ("KILL", start.replace(tzinfo=UTC))


@given(st.integers(0, 10**9), st.sampled_from(sorted(KUBERNETES_UNITS)))
def test_a_kubernetes_quantity_reads_as_written(number: int, unit: str) -> None:
    assert kubernetes.quantity(f"{number}{unit}") == number * KUBERNETES_UNITS[unit]


@given(st.text(max_size=30))
def test_any_text_is_a_kubernetes_quantity_or_none(text: str) -> None:
    assert (kubernetes.quantity(text) or 0) >= 0


@settings(max_examples=60)
@given(st.lists(INSTANTS, min_size=1, max_size=4), st.integers(-14 * 60, 14 * 60))
def test_a_timestamp_with_an_offset_reads_as_its_utc_time(
    instants: list[datetime], minutes: int
) -> None:
    sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
    texts = [
        f"{at + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%S.%f}{sign}{hours:02}:{rest:02}"
        for at in instants
    ]
    found = timestamps.read(pl.Series(texts))
    assert found["local_time"].to_list() == instants
    assert found["zone"].unique().to_list() == ["UTC"]


@settings(max_examples=60)
@given(INSTANTS, st.sampled_from([0, 3, 6, 9]))
def test_an_epoch_reads_as_its_time_in_every_unit(at: datetime, digits: int) -> None:
    seconds = int(at.replace(tzinfo=UTC).timestamp())
    number = seconds * 10**digits + at.microsecond * 10**digits // 1_000_000
    found = timestamps.read(pl.Series([str(number)]))["local_time"][0]
    assert abs(found - at) < timedelta(seconds=1 if not digits else 10 ** -min(digits, 6) * 2)


@settings(max_examples=30)
@given(st.sampled_from(PACKERS), st.integers(1, 40), st.integers(1, 3))
def test_compressed_logs_read_like_plain_ones(
    pack: Callable[[bytes], bytes], count: int, members: int
) -> None:
    log = ("\n".join(records(count)) + "\n").encode()
    cut = len(log) // members
    packed = b"".join(
        pack(log[n * cut : (n + 1) * cut if n + 1 < members else None]) for n in range(members)
    )
    assert gca.read(io.BytesIO(packed)).cycles.equals(read_text(log).cycles)


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
