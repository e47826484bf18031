"""Compares reading speed with other readers of the same log, and measures wrapped logs.

Each reader runs in its own process, and its best round counts. "alone" is the time without
starting Python and importing libraries. CPU seconds are those of all threads; on a machine with
other work they say more than the time. Ratios can be compared between machines, times cannot.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from environment import PYTHON, say

from benchmarks.measure import DATA, cost_of, simulated
from tests.helpers.wrappers import COLLECTORS, collected

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from benchmarks.measure import Cost

OTHERS = Path(__file__).resolve().parent / "readers_of_others"
ANALYZER = (str(PYTHON), str(OTHERS / "analyzer.py"))
READERS = {
    "gctrace-analyzer": ANALYZER,
    "gctrace-analyzer, pure Python": ("env", "GCTRACE_ANALYZER_CORE=off", *ANALYZER),
    "one regex, lean": (str(PYTHON), str(OTHERS / "lean.py")),
    "regex per line": (str(PYTHON), str(OTHERS / "per_line.py")),
    "DuckDB regexp": (str(PYTHON), str(OTHERS / "duck.py")),
    "grep -c": ("grep", "-c", "gc .* P"),
}


@dataclass
class Measured:
    """The best of some rounds: of the process, and of reading alone."""

    cycles: int = 0
    frames_bytes: int | None = None
    peak_kib: int | None = None
    s: float = math.inf
    cpu_s: float = math.inf
    alone_s: float | None = None
    alone_cpu_s: float | None = None

    def add(self, cost: Cost) -> None:
        """Adds a round; the reader prints its figures, or only the number of cycles."""
        self.s, self.cpu_s = min(self.s, cost.s), min(self.cpu_s, cost.cpu_s)
        printed = json.loads(cost.printed)
        if isinstance(printed, int):
            self.cycles = printed
            return
        self.cycles, self.frames_bytes, self.peak_kib, *alone = printed
        if alone:
            self.alone_s = min(self.alone_s or math.inf, alone[0])
            self.alone_cpu_s = min(self.alone_cpu_s or math.inf, alone[1])


def side_by_side(log: Path, rounds: int) -> Iterator[str]:
    """Yields a table of the readers, with their ratios to the leanest one with an expression."""
    measured = {name: Measured() for name in READERS}
    for _ in range(rounds):
        for name, command in READERS.items():
            measured[name].add(cost_of(*command, log))
    size, lean = log.stat().st_size / 1e6, measured["one regex, lean"]
    yield (
        f"| reader of {size:,.0f} MB | cycles | s | CPU s | alone: s | CPU s | MB/s "
        "| times lean | by CPU | peak MiB | frames MiB |"
    )
    yield f"|---|{'---:|' * 10}"
    for name, one in measured.items():
        alone_s = one.s if one.alone_s is None else one.alone_s
        alone_cpu_s = one.cpu_s if one.alone_cpu_s is None else one.alone_cpu_s
        cells = (
            f"{one.cycles:,}",
            f"{one.s:.2f}",
            f"{one.cpu_s:.2f}",
            f"{alone_s:.2f}",
            f"{alone_cpu_s:.2f}",
            f"{size / alone_s:,.0f}",
            f"{(lean.alone_s or 0) / alone_s:.1f}",
            f"{(lean.alone_cpu_s or 0) / alone_cpu_s:.1f}",
            f"{one.peak_kib / 1024:,.0f}" if one.peak_kib else "",
            f"{one.frames_bytes / 2**20:,.0f}" if one.frames_bytes else "",
        )
        yield f"| {name} | {' | '.join(cells)} |"


def wrapped(log: Path, wrapper: str, path: Path) -> Path:
    """Writes the log as a wrapper has it, one line every 40 ms."""
    with log.open(encoding="utf-8") as lines, path.open("w", encoding="utf-8") as file:
        for number, line in enumerate(lines):
            file.write(f"{collected(line[:-1], wrapper, number)}\n")
    return path


def wrappers(log: Path, rounds: int) -> Iterator[str]:
    """Yields a table of wrapped logs, as ratios to the bare one."""
    yield "| wrapper | cycles | MB | alone: s | times bare | CPU s | times bare | peak MiB |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    bare = Measured()
    for name in COLLECTORS:
        path = wrapped(log, name, DATA / "wrapped.log")
        one = bare if name == "bare" else Measured()
        for _ in range(rounds):
            one.add(cost_of(*ANALYZER, path))
        yield (
            f"| {name} | {one.cycles:,} | {path.stat().st_size / 1e6:,.0f} | {one.alone_s:.2f} "
            f"| {(one.alone_s or 0) / (bare.alone_s or 1):.1f} | {one.alone_cpu_s:.2f} "
            f"| {(one.alone_cpu_s or 0) / (bare.alone_cpu_s or 1):.1f} "
            f"| {(one.peak_kib or 0) / 1024:,.0f} |"
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.add_argument(
        "--mb", type=float, nargs="+", default=[81, 370], help="sizes (default: 81 370)"
    )
    parser.add_argument(
        "--kind",
        choices=("half", "plain"),
        default="half",
        help="half: every second line is a record; plain: all are",
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default: 3)")


def tables(args: argparse.Namespace) -> Iterator[str]:
    """Makes the logs, and yields the lines of the tables."""
    say("making the logs …")
    logs = [
        simulated(f"{args.kind}-{mb:g}.log", kind=args.kind, mb=mb) for mb in sorted(args.mb)
    ]
    for log in logs:
        yield from side_by_side(log, args.rounds)
        yield ""
    yield from wrappers(logs[0], args.rounds)
