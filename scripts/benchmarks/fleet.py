"""Measures `fleet`: speed by workers, overhead over a plain loop, cost per file, a large file.

The files have 1 to 2 MB and are made from the samples; a few dozen differ, and the others are
hard links to them, so they are read from the page cache, not from disk. Each variant runs in its
own process, imports and the start of workers included, with one Polars thread per process
(POLARS_MAX_THREADS=1), also in the plain loop, which would otherwise use all processors. The
rows of all variants must be equal. CPU time is that of all processes together, which other work
on the machine hardly changes; memory is the largest resident set of any of them.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from typing import TYPE_CHECKING

from environment import PYTHON, ROOT, say

from benchmarks.measure import DATA, best, cost_of
from benchmarks.readers import wrapped
from tests.helpers.wrappers import COLLECTORS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.measure import Cost

KINDS = ("steady-go1.26", "leak-go1.26", "steady-go1.14", "spike-go1.26", "assists-go1.16")
DISTINCT = 40
ONE_THREAD = {"POLARS_MAX_THREADS": "1"}

LOOP = """
import sys, polars as pl
from pathlib import Path
from gctrace_analyzer import schema
from gctrace_analyzer.fleets import worker
from gctrace_analyzer.fleets.inputs import Item
how = worker.WorkerOptions()
rows = [row for path in sorted(Path(sys.argv[1]).rglob("*.log"))
        for row in worker.rows_here(Item(str(path), str(path), path.stat().st_size), how)]
frame = pl.DataFrame(rows, schema=schema.polars_schema("fleet"))
Path(sys.argv[2]).mkdir()
frame.write_parquet(Path(sys.argv[2]) / "rows.parquet")
"""
MADE = """
import sys
from pathlib import Path
from tests.helpers.logs import prolonged
with open(sys.argv[2], "w") as file:
    file.writelines(prolonged(Path(sys.argv[1]).read_text(), int(sys.argv[3])))
"""
COMPARED = """
import sys, polars as pl
frames = (pl.read_parquet(f"{path}/*.parquet").drop("modified") for path in sys.argv[1:])
one, *others = (frame.sort("file", "process") for frame in frames)
sys.exit(0 if all(one.equals(each) for each in others) else "the rows differ")
"""


def made(name: str, path: Path, size: int) -> None:
    """Writes a log of about `size` bytes that continues a sample."""
    sample = str(ROOT / "samples" / f"{name}.log")
    subprocess.run([PYTHON, "-c", MADE, sample, str(path), str(size)], check=True, cwd=ROOT)


def many(count: int, wrapper: str) -> Path:
    """Returns a folder with `count` logs of 1 to 2 MB, and what a log collector adds to that."""
    pool = DATA / f"pool-{wrapper}"
    pool.mkdir(parents=True, exist_ok=True)
    chance = random.Random(8)
    for number in range(DISTINCT):
        path = pool / f"{number:03d}.log"
        size = chance.randint(1_000_000, 2_000_000)
        if not path.exists():
            bare = path.with_suffix(".bare")
            made(KINDS[number % len(KINDS)], bare, size)
            wrapped(bare, wrapper, path)
            bare.unlink()
    folder = DATA / f"of-{count}"
    shutil.rmtree(folder, ignore_errors=True)
    for number in range(count):
        path = folder / f"service-{number % 20:02d}" / f"pod-{number:05d}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        os.link(pool / f"{number % DISTINCT:03d}.log", path)
    return folder


def fleet(inputs: Path, output: Path, workers: int) -> Cost:
    """Runs the `fleet` command."""
    words = ("fleet", inputs, "-o", output, "--overwrite", "--workers", str(workers))
    return cost_of(PYTHON, "-m", "gctrace_analyzer", *words, environment=ONE_THREAD)


def loop(inputs: Path, output: Path) -> Cost:
    """Makes the same rows with a plain loop in one process."""
    shutil.rmtree(output, ignore_errors=True)
    return cost_of(PYTHON, "-c", LOOP, inputs, output, environment=ONE_THREAD)


def measured(
    inputs: Path, files: int, rounds: int, workers: list[int], *, with_loop: bool
) -> Iterator[str]:
    """Yields a row for each variant, whose rows must be equal, and their ratios."""
    variants = [*([0] if with_loop else []), *workers]
    outputs = {number: DATA / f"out-{number or 'loop'}.parquet" for number in variants}
    costs: dict[int, list[Cost]] = {number: [] for number in variants}
    for _ in range(rounds):
        for number, output in outputs.items():
            costs[number].append(
                fleet(inputs, output, number) if number else loop(inputs, output)
            )
    least = {number: best(several) for number, several in costs.items()}
    for number, cost in least.items():
        name = f"{number} workers" if number else "plain loop"
        yield (
            f"| {files:,} files, {name} | {cost.s:.1f} | {cost.cpu_s:.1f} "
            f"| {1000 * cost.cpu_s / files:.0f} ms | {cost.peak_mib:.0f} MiB |"
        )
    subprocess.run([PYTHON, "-c", COMPARED, *map(str, outputs.values())], check=True)
    for few, many in ((0, 1), (1, 2)):
        if few in least and many in least:
            times = least[few].s / least[many].s, least[few].cpu_s / least[many].cpu_s
            yield f"| {many} to {few} workers | ×{1 / times[0]:.2f} | ×{1 / times[1]:.2f} | | |"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.add_argument(
        "--files", type=int, nargs="*", default=[100, 300], help="numbers of files"
    )
    parser.add_argument(
        "--wrapper", choices=COLLECTORS, default="bare", help="as what collector writes them"
    )
    parser.add_argument(
        "--large-mib", type=int, default=256, help="size of the large file; 0: none"
    )
    parser.add_argument(
        "--rounds", type=int, default=1, help="rounds, of which the best counts"
    )
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[1, 2], help="numbers of workers"
    )
    parser.add_argument(
        "--skip-loop", action="store_true", help="skip the plain loop, which takes longest"
    )


def tables(args: argparse.Namespace) -> Iterator[str]:
    """Makes the logs, and yields the lines of the table."""
    yield f"load {os.getloadavg()[0]:.1f} before"
    yield ""
    yield "| what | elapsed s | CPU s | CPU per file | largest process |"
    yield "|---|---:|---:|---:|---:|"
    for count in args.files:
        folder, with_loop = many(count, args.wrapper), not args.skip_loop
        yield from measured(folder, count, args.rounds, args.workers, with_loop=with_loop)
    if args.large_mib:
        path = DATA / f"large-{args.large_mib}.log"
        say(f"making {path.name} …")
        made(KINDS[0], path, args.large_mib << 20)
        yield from measured(path, 1, args.rounds, args.workers, with_loop=False)
    yield f"\nload {os.getloadavg()[0]:.1f} after"
