"""Long lines without blanks take time in proportion to their length."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gctrace_analyzer import ingest
from tests.helpers.lines import LINES
from tests.helpers.regexes import fragments, growth, patterns_of

if TYPE_CHECKING:
    import re
    from pathlib import Path

PATTERNS = patterns_of(ingest)
LINE_CHARS = 400_000
SECONDS = 30
SERIES = [[1_700_000_000 + n, str(1000 * n)] for n in range(16_000)]
PROMETHEUS = json.dumps(
    {"data": {"result": [{"metric": {"__name__": "go_goroutines"}, "values": SERIES}]}},
    separators=(",", ":"),
)
ONE_LINE = {
    "JSON without blanks": PROMETHEUS,
    "kills": "Killed process 1 (",
    "cycle heads": "gc 1 @1.000s ",
    "heads before the rest of a record": "gc 1 @1.000s " * 30_000 + "\n1 MB goal, ",
    "units": "a.service.b.service:",
    "unit events": "a.service: Main process exited, code=killed, status=9",
    "digits after a head": "gc 1 @" + "1" * LINE_CHARS + "\n1",
    "bare heads": "gc ",
    "records": LINES["gc18"],
    "scavenger lines": "scvg1: inuse: 1, ",
    "memory statistics": "Alloc = 1 MiB ",
    "kill contexts": "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=",
    "open braces": '{"a":',
    "open brackets": "[",
}


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_takes_linear_time(name: str) -> None:
    pattern: re.Pattern[str] = PATTERNS[name]
    for fragment in fragments(pattern):
        # Eight times the text: linear patterns take 8 times as long, quadratic ones 64 times.
        # Measured once more if slow, as other programs may run at the same time.
        linear = any(growth(pattern, fragment, 1024, 8192) < 24 for _ in range(3))
        assert linear, f"{fragment!r} repeated takes more than linear time"


@pytest.mark.parametrize("name", ONE_LINE)
def test_a_long_line_is_read_within_seconds(name: str, tmp_path: Path) -> None:
    fragment = ONE_LINE[name]
    line = (fragment * (LINE_CHARS // len(fragment) + 1))[: max(LINE_CHARS, len(fragment))]
    path = tmp_path / "run.log"
    path.write_text(f"{line}\n{LINES['gc18']}\n")
    code = (
        "import sys, gctrace_analyzer as gca\n"
        "try: gca.read(sys.argv[1], kind='log')\n"
        "except gca.GctraceError: pass"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True, timeout=SECONDS)
