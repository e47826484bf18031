"""Small logs written for a test."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import gctrace_analyzer as gca

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RECORDS = [
    "gc 1 @0.001s 16%: 0.52+0.10+0.003 ms clock, 1.0+0.051/0.086/0+0.006 ms cpu, 3->4->2 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P",
    "gc 2 @0.016s 2%: 0.018+0.19+0.058 ms clock, 0.037+0.058/0.035/0.025+0.11 ms cpu, 4->4->4 MB, 5 MB goal, 0 MB stacks, 0 MB globals, 2 P",
]

AT = datetime(2026, 2, 3, 10, 0, 0, 5000, tzinfo=UTC)


def records(count: int) -> list[str]:
    """Returns records of one process, one second apart."""
    rest = RECORDS[1].partition("s 2%")[2]
    return [f"gc {n} @{n}.016s 2%{rest}" for n in range(1, count + 1)]


def logfile(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read_lines(tmp_path: Path, *lines: str, **options: Any) -> gca.Run:
    """Returns the run of a log with these lines."""
    return gca.read(logfile(tmp_path / "log", list(lines)), **options)


KILL = (
    "Memory cgroup out of memory: Killed process {pid} ({comm}) total-vm:900000kB, "
    "anon-rss:{kb}kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:100kB oom_score_adj:0"
)


def journal(pid: int, ident: str, kill: str, records: list[str]) -> list[str]:
    """Returns the lines of a program, a second apart, and of the kernel that killed it."""
    lines = [
        f"2026-02-03T10:00:{n:02}Z h {ident}[{pid}]: {line}" for n, line in enumerate(records)
    ]
    return [*lines, f"2026-02-03T10:00:{len(records) + 1:02}Z h kernel: {kill}"]


_RECORD = re.compile(r"\bgc (\d+) @(\d+\.\d+)s")


def prolonged(text: str, size: int) -> Iterator[str]:
    """Yields the log of one process, extended to about `size` bytes, in pieces.

    Repeats the records after the first third (start-up) with increasing numbers and times.
    """
    records = list(_RECORD.finditer(text))
    nums, starts = (
        [int(record[1]) for record in records],
        [float(record[2]) for record in records],
    )
    # No cycle takes longer than the longest time between two starts.
    gap = max(two - one for one, two in itertools.pairwise(starts))
    first = len(records) // 3
    body = text[text.rfind("\n", 0, records[first].start()) + 1 :]
    cycles, seconds = nums[-1] - nums[first] + 1, starts[-1] - starts[first] + gap
    yield text
    written = len(text)
    for repetition in itertools.count(1):
        if written >= size:
            return

        def shifted(match: re.Match[str], times: int = repetition) -> str:
            num, start_s = int(match[1]) + times * cycles, float(match[2]) + times * seconds
            return f"gc {num} @{start_s:.3f}s"

        piece = _RECORD.sub(shifted, body)
        written += len(piece)
        yield piece
