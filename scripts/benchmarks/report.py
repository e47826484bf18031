"""Measures what comes after reading: report, page, advice, and streams of several programs.

Every line is a ratio of two measurements of this run, next to what is aimed at.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from environment import PYTHON, say

from benchmarks.measure import COMMAND, DATA, best_of, cost_of, simulated

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

WARM = """
import json, sys, time
import gctrace_analyzer as gca

def took(analyse):
    begin = time.perf_counter()
    run = gca.read(sys.argv[1])
    if analyse:
        run.summary(), run.findings(), run.recommend()
    return time.perf_counter() - begin

took(True)
best = [min(took(analyse) for _ in range(9)) for analyse in (False, True)]
print(json.dumps(best))
"""


def row(what: str, one: float, other: float, aim: str, unit: str = "s") -> str:
    """Returns a row of the table."""
    digits = 0 if unit == "MiB" else 2
    values = f"{one:,.{digits}f} {unit} | {other:,.{digits}f} {unit}"
    return f"| {what} | {values} | {one / other:.1f} | {aim} |"


def cold(log: Path, rounds: int) -> Iterator[str]:
    """Yields how long a report takes from a cold start."""
    polars = best_of(rounds + 2, PYTHON, "-c", "import polars")
    report = best_of(rounds + 2, COMMAND, log)
    yield row("report of 5,000 cycles, cold, to `import polars`", report.s, polars.s, "1.7")


def warm(log: Path) -> Iterator[str]:
    """Yields what analysis and advice add to reading in a process that runs."""
    read, whole = json.loads(cost_of(PYTHON, "-c", WARM, log).printed)
    what = "reading, findings and advice, warm, to reading (5,000 cycles)"
    yield row(what, 1000 * whole, 1000 * read, "2", "ms")


def long(log: Path, rounds: int) -> Iterator[str]:
    """Yields what a report and a page take, compared with writing the cycles to Parquet."""
    parquet = best_of(rounds, COMMAND, log, "-o", DATA / "cycles.parquet")
    text = best_of(rounds, COMMAND, log)
    page = best_of(rounds, COMMAND, log, "-o", DATA / "report.html")
    yield row("report of 300,000 cycles, to writing them to Parquet", text.s, parquet.s, "2")
    yield row("page of 300,000 cycles, to the same", page.s, parquet.s, "3")
    yield row("memory of that report", text.peak_mib, parquet.peak_mib, "1.5", "MiB")


def growth(small: Path, large: Path, rounds: int) -> Iterator[str]:
    """Yields how the time of a report grows with the log."""
    times = [best_of(rounds, COMMAND, log).s for log in (large, small)]
    yield row("report of 1,000,000 cycles, to 50,000", *times, "22")


def streams(log: Path, rounds: int) -> Iterator[str]:
    """Yields what several programs in one stream cost, compared with one program."""
    lines = [line for line in log.read_text().splitlines(keepends=True) if line[:3] == "gc "]
    half, twentieth = len(lines) // 2, len(lines) // 20
    # The second of two programs does the same as the first, with a larger heap.
    several = {
        "one": lines,
        "two": [
            line
            for pair in zip(lines[:half], map(_larger, lines[:half]), strict=True)
            for line in pair
        ],
        "pod": [f"api-0 | {line}" for line in lines],
        "pods": [f"api-{pod} | {line}" for line in lines[:twentieth] for pod in range(20)],
    }
    seconds = {}
    for name, content in several.items():
        path = DATA / f"{name}.log"
        path.write_text("".join(content))
        seconds[name] = best_of(rounds, COMMAND, path, "-o", DATA / "x.parquet").s
    yield row("two programs in one stream, to one", seconds["two"], seconds["one"], "2.5")
    yield row("20 pods with a prefix, to one pod", seconds["pods"], seconds["pod"], "2")


def _larger(line: str) -> str:
    """Returns a record of a program with more memory, which otherwise does the same."""
    head, _, rest = line.partition(" ms cpu, ")
    sizes, _, tail = rest.partition(" MB, ")
    goal, _, end = tail.partition(" MB goal")
    larger = "->".join(str(int(size) + 3000) for size in sizes.split("->"))
    return f"{head} ms cpu, {larger} MB, {int(goal) + 3000} MB goal{end}"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default: 3)")


def tables(args: argparse.Namespace) -> Iterator[str]:
    """Makes the logs, and yields the lines of the table."""
    say("making the logs …")
    logs = {
        count: simulated(f"{count}.log", cycles=count)
        for count in (5_000, 50_000, 300_000, 1_000_000)
    }
    yield "| what | takes | compared with | ratio | aim |"
    yield "|---|---:|---:|---:|---:|"
    yield from cold(logs[5_000], args.rounds)
    yield from warm(logs[5_000])
    yield from long(logs[300_000], args.rounds)
    yield from growth(logs[50_000], logs[1_000_000], args.rounds)
    yield from streams(logs[300_000], args.rounds)
