"""Records inside the frames of log collectors: the same with the compiled core and without it."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer import core
from gctrace_analyzer.ingest.gctrace import parse
from gctrace_analyzer.ingest.gctrace.records import lines_of
from gctrace_analyzer.ingest.wrappers import framing
from gctrace_analyzer.testing import read_text
from tests.helpers.both_readers import difference

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

needs_core = pytest.mark.skipif(core.compiled() is None, reason="no compiled core")
BEGIN = datetime(2026, 11, 20, 8, tzinfo=UTC)
Wrapped = tuple[int, datetime, str]


def record(number: int) -> str:
    return (
        f"gc {number} @{number / 10:.3f}s 2%: 0.018+1.3+0.076 ms clock, 0.055+0.12/1.2/3.1+0.23 ms "
        "cpu, 4->5->3 MB, 5 MB goal, 0 MB stacks, 0 MB globals, 8 P"
    )


def journal(number: int, at: datetime, line: str) -> str:
    return json.dumps(
        {
            "__CURSOR": f"s=a;i={number:x}",
            "__REALTIME_TIMESTAMP": str(int(at.timestamp() * 1e6)),
            "__MONOTONIC_TIMESTAMP": str(10_000 * number),
            "_HOSTNAME": "web-1",
            "_PID": "12",
            "MESSAGE": line,
        },
        separators=(",", ":"),
    )


FORMATS: dict[str, Callable[[int, datetime, str], str]] = {
    "compose": lambda _, at, line: f"api-1  | {line}",
    "pod": lambda _, at, line: f"[pod/api-7d9f8b6c5d-x2x4z/api] {line}",
    "CRI": lambda _, at, line: f"{at:%Y-%m-%dT%H:%M:%S.%f}123Z stderr F {line}",
    "zone": lambda _, at, line: f"{at:%Y-%m-%dT%H:%M:%S}.5+02:00 {line}",
    "nano": lambda n, at, line: (
        f"{at:%Y-%m-%dT%H:%M:%S}.{str(n)[:5].rstrip('0') or '1'}Z {line}"
    ),
    "short": lambda _, at, line: f"{at:%b} {at.day:2} {at:%H:%M:%S} web-1 api[12]: {line}",
    "short-iso": lambda _, at, line: f"{at:%Y-%m-%dT%H:%M:%S}+0000 web-1 api[12]: {line}",
    "Go log": lambda _, at, line: f"{at:%Y/%m/%d %H:%M:%S} {line}",
    "klog": lambda n, at, line: f"I{at:%m%d %H:%M:%S.%f} {n % 3:7} main.go:57] {line}",
    "RFC 5424": lambda _, at, line: f"<30>1 {at:%Y-%m-%dT%H:%M:%S.%f}Z web-1 api 12 - - {line}",
    "docker": lambda _, at, line: json.dumps(
        {"log": line + "\n", "stream": "stderr", "time": f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"}
    ),
    "escaped": lambda _, at, line: json.dumps(
        {"log": line + "\n", "stream": "stderr", "time": f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"}
    ).replace(">", "\\u003e"),
    "zap": lambda _, at, line: json.dumps({"ts": at.timestamp(), "msg": line}),
    "journal": journal,
    "Fluent Bit": lambda n, at, line: (
        f'[{n}] kube.a: [[{at.timestamp():.9f}, {{}}], {{"log"=>"{line}"}}]'
    ),
    "two times": lambda _, at, line: (
        f"{at:%Y-%m-%dT%H:%M:%S.%f}Z stdout F {at + timedelta(hours=1):%Y/%m/%d %H:%M:%S} {line}"
    ),
    "dmesg": lambda n, at, line: f"[{n / 10:12.6f}] {line}",
    "bare": lambda _, at, line: line,
}


def log(lines: Sequence[tuple[str, str]]) -> bytes:
    """Lines, each with the name of its format, one after the other in time."""
    texts = [
        FORMATS[name](number, BEGIN + timedelta(milliseconds=137 * number), line)
        for number, (name, line) in enumerate(lines, 1)
    ]
    return "\n".join([*texts, ""]).encode()


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_read_the_same(name: str) -> None:
    lines = [(name, line) for number in range(1, 150) for line in (record(number), "a request")]
    data = log(lines)
    assert difference(data) is None
    # What is known of the frames is used for the next chunk.
    assert difference(log(lines[20:])) is None
    run = gca.read(io.BytesIO(data))
    assert run.cycles["gc_num"].to_list() == list(range(1, 150))
    assert run.rejected.is_empty()


@needs_core
@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("bare", "dmesg")])
def test_the_core_reads_the_records_of_a_format(name: str) -> None:
    data = log([(name, record(number)) for number in range(1, 100)])
    found = lines_of(data, parse._words()).framed
    assert found is not None
    assert len(found.rows) == 99
    assert sum(key.lines for key in found.keys) == 99
    parse.parse(data)
    assert name == "nano" or framing.recalled(found) is not None


@needs_core
def test_times_that_are_no_times_are_left_to_the_patterns() -> None:
    data = log([("Go log", record(number)) for number in range(1, 9)]).replace(
        b"11/20", b"13/20"
    )
    assert difference(data) is None


@needs_core
def test_a_number_that_is_missing_is_no_number() -> None:
    """A sample of the lines must show that one of the two prefixes is that of Fluent Bit."""
    data = log([("Fluent Bit", record(1)), ("Fluent Bit", record(2)), ("Go log", "1 ms c")])
    assert difference(data.replace(b"[1]", b"[]", 1)) is None


LINES = st.lists(
    st.tuples(
        st.sampled_from(list(FORMATS)),
        st.one_of(
            st.integers(1, 400).map(record),
            st.sampled_from(
                [
                    "a request", "out of memory: killed process 12", "", "gc", record(7)[:60],
                    record(8) + " (forced)", f"{record(9)} {record(10)}", f"x {record(11)}",
                    "scvg: inuse: 1, idle: 2, sys: 3, released: 4, consumed: 5 (MB)",
                    f'"{record(12)}"', record(13) + "\\n",
                ]
            ),
        ),
    ),
    min_size=1,
    max_size=120,
)  # fmt: skip


@needs_core
@settings(max_examples=15)
@given(lines=LINES, most=st.sampled_from([1, 2, len(FORMATS)]), begin=st.integers(0, 99))
def test_mixtures_are_read_the_same(
    lines: list[tuple[str, str]], most: int, begin: int
) -> None:
    names = (list(FORMATS) * 2)[begin % len(FORMATS) :][:most]
    chosen = [(names[index % most], line) for index, (_, line) in enumerate(lines)]
    assert difference(log(chosen)) is None
    assert difference(log(lines)) is None


def test_what_is_known_of_frames_is_bounded() -> None:
    for host in range(100):
        line = f"web-{'x' * host} api[12]: {record(1)}"
        parse.parse("".join(f"Nov 20 08:00:{s:02} {line}\n" for s in range(20)).encode())
    assert len(framing._meanings) <= framing._MOST_MEANINGS


@needs_core
def test_a_time_of_an_impossible_year_has_no_unit_either() -> None:
    line = f"build\tRun tests\t0026-11-20T10:15:31.1814560Z {record(1)}\n"
    assert difference(line.encode()) is None


@needs_core
def test_a_line_of_another_reader_in_front_of_a_record_keeps_lines_of_values() -> None:
    """Lines of numbers only belong to readers of other formats."""
    scavenged = "scvg: inuse: 1, idle: 2, sys: 3, released: 4, c00:02"
    assert difference(f"20\n26/11/20 08:00:02 {scavenged} {record(1)}\n".encode()) is None


def test_microseconds_are_the_same_milliseconds_in_lines_of_one_shape_and_of_two() -> None:
    """Polars divides a single value and a column differently in the last bit."""
    prefixes = ("2026-02-03T00:00:00.000000123Z stderr F ",) * 2 + (
        "2026-02-03T00:00:00.000Z ",
    )
    cycle = "gc{0}(1): {0}+0+102+0 us, 0 -> 0 MB, 178 (197-19) objects, 5 goroutines, 25/0/0 sweeps, "
    rest = "0(0) handoff, 0(0) steal, 0/0/0 yields\n"
    log = "".join(f"{own}{cycle.format(n)}{rest}" for n, own in enumerate(prefixes, 1))
    assert difference(log.encode()) is None
    assert read_text(log).cycles["stw_mark_term_ms"].to_list() == [0.103, 0.104, 0.105]
