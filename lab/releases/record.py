"""Records one Go program under the same load on Go 1.9 to 1.27, for docs/go-versions.md."""

from __future__ import annotations

import csv
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gctrace_analyzer as gca
from lab.own import BUILT, ROOT, built, ran
from lab.releases.changes import RELEASES
from lab.releases.draw import draw
from lab.releases.page import (
    GOROUTINES,
    KEPT_UP,
    LIVE_MIB,
    PROCS,
    RATE_MIB_PER_S,
    page,
    read,
)
from lab.services.recorder import say

if TYPE_CHECKING:
    import argparse

ABOUT = """Records one Go program under the same load on Go 1.9 to 1.27.

    lab/record releases                  record (10 minutes), draw, write docs/go-versions.md
    lab/record releases --draw           only draw, from docs/go-versions/runs.csv
    lab/record releases --runs 5         runs of each version (default: 3)
    lab/record releases --seconds 20     length of a run (default: 10)

The program is lab/go/loads: 40 MiB of live heap, 400 MiB allocated per second, GOMAXPROCS=2,
GOGC=100. Versions take turns, so that whatever else the machine does affects all alike. The go
command of this machine (1.21 or newer) downloads the other toolchains; programs and logs are kept
in build/lab. A run that could not keep up with its load, because the machine was busy, is
repeated once. The page says so if too many runs were disturbed to compare versions.
"""
TABLE = ROOT / "docs" / "go-versions" / "runs.csv"
PAGE = ROOT / "docs" / "go-versions.md"
UNIT_MIB = 1 / 16
"""What the program allocates at a time."""

FIGURES = (
    "cycles", "gc_per_s", "gc_cpu_share", "assist_share_of_cpu", "assist_share_of_gc_cpu",
    "stw_p50_ms", "stw_p99_ms", "stw_max_ms", "stw_share", "heap_peak_mib", "alloc_mib_per_s",
)  # fmt: skip
FIELDS = (
    "go_version", "run", "recorded_on", "machine", "seconds", "load_share", *FIGURES, "cpu_s",
)  # fmt: skip


def recorded(version: str, number: int, seconds: float) -> dict[str, Any]:
    """Runs the program, and once more if it did not keep up; returns a row of the table."""
    row = _run(version, number, seconds)
    if row["load_share"] < KEPT_UP:
        row = max(row, _run(version, number, seconds), key=lambda each: each["load_share"])
    say(f"go{version}, run {number}: {row['load_share']:.0%} of the load")
    return row


def _run(version: str, number: int, seconds: float) -> dict[str, Any]:
    log, truth = BUILT / f"go{version}-{number}.log", BUILT / "truth.json"
    settings = {"GODEBUG": "gctrace=1", "GOGC": "100", "GOMAXPROCS": str(PROCS)}
    words = (
        "-mode", "paced", "-live", LIVE_MIB, "-rate", RATE_MIB_PER_S, "-goroutines", GOROUTINES,
        "-dur", f"{seconds:g}s", "-truth", truth,
    )  # fmt: skip
    usage = ran([built("loads", version), *words], log, settings)
    figures = gca.read(log, gogc=100, go_version=version).summary().to_dict()
    allocated = json.loads(truth.read_text())["units_64KiB"] * UNIT_MIB
    return {
        "go_version": version,
        "run": number,
        "recorded_on": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "seconds": f"{seconds:g}",
        "load_share": round(allocated / (RATE_MIB_PER_S * seconds), 3),
        **{name: float(f"{figures[name]:.5g}") for name in FIGURES},
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
    }


def machine() -> str:
    """Returns the kind of processor, as Linux names it, and how many there are."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return f"{names[0] if names else 'unknown processor'}, {os.cpu_count()} CPUs"


def record(runs: int, seconds: float) -> None:
    """Records all versions, which take turns, and writes the table."""
    BUILT.mkdir(parents=True, exist_ok=True)
    versions = [release.version for release in RELEASES]
    for version in versions:
        built("loads", version)
    rows = []
    for number in range(1, runs + 1):
        # Every other round goes backwards, so that a slow change of the machine cancels.
        order = versions if number % 2 else versions[::-1]
        rows += [recorded(version, number, seconds) for version in order]
    rows.sort(key=lambda row: (versions.index(row["go_version"]), row["run"]))
    TABLE.parent.mkdir(exist_ok=True)
    with TABLE.open("w", newline="") as file:
        table = csv.DictWriter(file, FIELDS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of releases."""
    parser.add_argument("--draw", action="store_true", help="draw what was recorded before")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10)


def run(args: argparse.Namespace) -> None:
    """Records, draws, and writes the page."""
    if not args.draw:
        record(args.runs, args.seconds)
    draw(read(TABLE), TABLE.parent)
    PAGE.write_text(page(TABLE))
