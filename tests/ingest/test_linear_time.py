"""Long lines take time in proportion to their length, whatever they contain."""

from __future__ import annotations

import io
import json
import time
from contextlib import suppress

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.errors import GctraceError
from tests.helpers.lines import LINES
from tests.helpers.logs import KILL
from tests.helpers.regexes import Pattern, hard_texts, patterns_of, seconds
from tests.helpers.time_limits import ends_within
from tests.helpers.wrappers import WRAPPERS

PATTERNS = patterns_of(gca)
FOLDERS = sorted({".".join(name.split(".")[:3]) for name in PATTERNS})
SIZES = (1 << 8, 1 << 10, 8 << 10, 32 << 10)

QUICK_S = 0.0005
"""What takes the square of the length takes longer for the second size already."""

MOST_GROWTH = 8.0
"""Four times the text takes a linear pattern four times as long, a quadratic one 16 times."""

LONG = 200_000
SECONDS = 1.5
"""What a log may take in addition to a second per megabyte."""

SERIES = [[1_700_000_000 + n, str(1000 * n)] for n in range(16_000)]
PROMETHEUS = json.dumps(
    {"data": {"result": [{"metric": {"__name__": "go_goroutines"}, "values": SERIES}]}},
    separators=(",", ":"),
)
PAYLOADS = {
    **LINES,
    "JSON without blanks": PROMETHEUS,
    "kill": KILL.format(pid=1, comm="api", kb=5) + " ",
    "kills without an end": "Killed process 1 (",
    "cycle heads": "gc 1 @1.000s ",
    "bare heads": "gc ",
    "numbers": "gc 1 @" + "1" * 500,
    "units": "a.service.b.service:",
    "unit events": "a.service: Main process exited, code=killed, status=9",
    "consumed": "a.service: Consumed 1h 2min 3.4s CPU time over 1h wall clock time, ",
    "oomd": "Killed /a/b.service due to memory pressure for /a being 51.07% > 50.00% for > ",
    "processors": "CPU: 1 PID: 7 Comm: api Tainted: G  ",
    "tasks": "[ 1] 0 1 2 3 4 5 6 ",
    "memory statistics": "Alloc = 1 MiB ",
    "words": "HeapAlloc",
    "kill contexts": "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=",
    "docker events": "container oom abcdef012345 (a=b, ",
    "describe": "Last State: Terminated" + " " * 50,
    "open braces": '{"a":',
    "open brackets": "[",
    "blanks": " ",
    "digits": "1",
    "escapes": "\x1b[",
}


@pytest.mark.parametrize("folder", FOLDERS)
def test_patterns_take_linear_time(folder: str) -> None:
    for name, (pattern, use) in PATTERNS.items():
        if f"{name}.".startswith(f"{folder}."):
            for begin, repeated in hard_texts(pattern):
                growth = growth_of(pattern, use, begin, repeated)
                assert growth < MOST_GROWTH, f"{name}: {begin!r} + many {repeated!r}"


def growth_of(pattern: Pattern, use: str, begin: str, repeated: str) -> float:
    """How many times as long a pattern takes for four times the text; 0 if it is quick."""
    more = seconds(pattern, use, begin, repeated, SIZES[1])
    if more < QUICK_S:
        return 0.0
    # A long alternation takes long for each character. Only what takes clearly more than four times
    # as long for four times the text can grow with the square of it.
    few = min(seconds(pattern, use, begin, repeated, SIZES[0]) for _ in range(2))
    if more < 6 * few:
        return 0.0
    growth = 0.0
    # Measured again, as other programs may run at the same time.
    for _ in range(4):
        small, large = (seconds(pattern, use, begin, repeated, size) for size in SIZES[2:])
        if (growth := large / small) < MOST_GROWTH:
            break
    return growth


def took(data: bytes) -> float:
    """Returns how long it takes to read a log; the shortest of three times if it is long."""
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        with suppress(GctraceError), ends_within(30):
            gca.read(io.BytesIO(data), kind="log")
        best = min(best, time.process_time() - begin)
        if best < SECONDS:
            break
    return best


def long_line(fragment: str) -> str:
    return (fragment * (LONG // len(fragment) + 1))[:LONG]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_long_line_is_read_in_time(payload: str) -> None:
    line = long_line(PAYLOADS[payload])
    data = f"{line}\n{LINES['gc18']}\n{line}\n".encode()
    assert took(data) <= SECONDS + len(data) / 1e6


@pytest.mark.parametrize("payload", ["gc18", "kills without an end", "blanks"])
@pytest.mark.parametrize("prefix", WRAPPERS)
def test_a_long_line_with_a_prefix_is_read_in_time(prefix: str, payload: str) -> None:
    wrap = WRAPPERS[prefix]
    lines = [
        wrap(long_line(PAYLOADS[payload])),
        wrap(LINES["gc18"]),
        long_line(wrap("")),
    ]
    data = "\n".join(lines).encode()
    assert took(data) <= SECONDS + len(data) / 1e6
