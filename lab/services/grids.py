"""Records the programs of others: their gctrace under settings, or their metrics."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from lab.services.build import build, origin, title
from lab.services.plans import Plan, plan
from lab.services.processes import stop_all
from lab.services.recorder import Lab
from lab.services.scraped import MetricsLab
from lab.services.scraped_programs import TARGETS, chosen, waves

if TYPE_CHECKING:
    import argparse

ABOUT = """Records real Go programs under a grid of settings and a real load, on this machine.

    lab/record programs --list                      the programs
    lab/record programs --build                     download and build them, nothing else
    lab/record programs -o FOLDER                   record all of them
    lab/record programs -o FOLDER --programs etcd,hugo --seconds 20 --resume
    lab/record programs -o FOLDER --settings versions
    lab/record programs -o FOLDER --settings advised --resume

    grid      GOGC from 50 to 400; memory limits from impossible to ample
    versions  two programs, each built with Go 1.12 to 1.27
    procs     three programs with GOMAXPROCS 1 to 8 and, where cgroups allow it, a CPU quota
    states    what ails programs: GOGC or the memory limit too low, too few CPUs, forced
              collections, a leak without and with a limit
    advised   what is recommended for each program of a recorded grid, in the same folder

The programs are Debian packages and Go modules at fixed versions; they lie in .services and
listen on 127.0.0.1 only. FOLDER gets NAME/SETTING/run.log.gz of each run, the program's metrics
if it serves any, and manifest.json with the settings, the load and what was measured. It needs
Debian 12 (apt, dpkg), Go 1.21 or newer, and a machine that has nothing else to do.
"""
METRICS_ABOUT = """Records programs with gctrace, and their metrics through a real Prometheus.

    lab/record metrics --list                       the programs
    lab/record metrics -o FOLDER --waves minutes,limits

They are scraped each 1, 15 and 60 s, and several run at the same time: ten for an hour (hour),
groups under three values of GOGC for six minutes (minutes), under memory limits (limits), with a
very low GOGC (low), and for a minute (minute).
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of programs."""
    parser.add_argument("--list", action="store_true", help="list the programs")
    parser.add_argument("--build", action="store_true", help="only download and build")
    parser.add_argument("-o", dest="folder", type=Path, help="folder for the recordings")
    parser.add_argument("--programs", metavar="A,B", help="only these programs")
    parser.add_argument("--settings", choices=get_args(Plan), default="grid")
    parser.add_argument("--repeats", type=int, default=2, help="rounds (default: 2)")
    parser.add_argument(
        "--seconds", type=float, default=14, help="length of the load (default: 14)"
    )
    parser.add_argument(
        "--resume", action="store_true", help="keep the manifest and record what it lacks"
    )


def run(given: argparse.Namespace) -> None:
    """Records programs under settings."""
    programs = list(plan(given.settings))
    if given.programs:
        names = given.programs.split(",")
        known = {program.name: program for program in programs}
        if unknown := [name for name in names if name not in known]:
            sys.exit(f"--programs: unknown {', '.join(unknown)}; known: {', '.join(known)}")
        programs = [known[name] for name in names]
    if given.list:
        for program in programs:
            print(f"{program.name:24} {program.kind:9} {origin(program.source)}")
        return
    if not (given.build or given.folder):
        sys.exit("-o FOLDER, --list or --build is required")
    ready = build(programs)
    if given.build:
        for program in ready:
            print(f"{program.name:24} {title(program.source)}")
        return
    try:
        lab = Lab.opened(given.folder, given.seconds, resume=given.resume)
        lab.record(given.settings, ready, given.repeats)
    finally:
        stop_all()


def add_metrics_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of metrics."""
    parser.add_argument("--list", action="store_true", help="list the programs")
    parser.add_argument("-o", dest="folder", type=Path, help="folder for the recordings")
    parser.add_argument("--waves", metavar="A,B", help="groups of programs, by default all")
    parser.add_argument("--seconds", type=float, help="length of the load (default: by group)")


def run_metrics(given: argparse.Namespace) -> None:
    """Records the metrics of programs."""
    if given.list:
        for target in TARGETS.values():
            print(f"{target.name:24} {origin(target.source)}")
        return
    if not given.folder:
        sys.exit("-o FOLDER or --list is required")
    names = given.waves.split(",") if given.waves else [wave.name for wave in waves()]
    if unknown := [name for name in names if not chosen([name])]:
        known = ", ".join(wave.name for wave in waves())
        sys.exit(f"--waves: unknown {', '.join(unknown)}; known: {known}")
    try:
        lab = MetricsLab.opened(given.folder)
        for wave in chosen(names):
            lab.record(wave, given.seconds)
    finally:
        stop_all()
