"""Makes a sample: the log of a real Go program, with a note on how it was made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.own import built

if TYPE_CHECKING:
    import argparse

ABOUT = """Makes a sample: the log of a real Go program, with a note on how it was made.

    lab/record sample samples/steady-go1.26.log --go 1.26.8 --scenario steady --seconds 3
    lab/record sample /tmp/thrash.log --go 1.19.13 --scenario thrash --memory-limit 70MiB

The program is lab/go/workload (its scenarios: steady spike leak ballast forced restart thrash
manygoroutines bigglobals assistheavy memlimit idle goroleak retune); the Go toolchain, 1.9 or
newer, is downloaded by the go command of this machine (1.21 or newer). RUN.toml, next to RUN.log,
has versions, settings, command, and what the program itself measured.
"""
TRUTH = ("NumGC", "NumForcedGC", "PauseTotalNs", "GCCPUFraction", "TotalAlloc")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a sample."""
    parser.add_argument("log", type=Path, help="file to write the log to")
    parser.add_argument(
        "--go",
        default="local",
        metavar="VERSION",
        help="Go version, such as 1.19.13 (default: that of this machine)",
    )
    parser.add_argument(
        "--scenario", default="steady", help="what the program does (default: steady)"
    )
    parser.add_argument(
        "--seconds", type=float, default=3, help="how long it runs (default: 3)"
    )
    parser.add_argument(
        "--together",
        type=int,
        default=1,
        help="number of programs that write to the log at the same time",
    )
    parser.add_argument("--live", type=int, help="live heap in MiB")
    parser.add_argument("--gogc", help="GOGC")
    parser.add_argument("--memory-limit", help="GOMEMLIMIT (Go 1.19 and newer)")
    parser.add_argument("--godebug", default="gctrace=1", help="GODEBUG (default: gctrace=1)")
    parser.add_argument(
        "--stdout", type=Path, default=Path(os.devnull), help="file for its standard output"
    )
    parser.add_argument("--what", default="", help="a sentence for the note")


def settings(args: argparse.Namespace) -> dict[str, str]:
    """Returns the environment variables that affect the garbage collector."""
    chosen = {"GODEBUG": args.godebug, "GOGC": args.gogc, "GOMEMLIMIT": args.memory_limit}
    return {name: value for name, value in chosen.items() if value}


def _recorded(
    program: Path, args: argparse.Namespace, folder: Path
) -> tuple[list[str], list[dict[str, Any]]]:
    """Runs the program; returns the command and what the program measured itself.

    `restart` runs it twice, one after the other; `--together` runs several at the same time.
    """
    words = ["-scenario", args.scenario, "-dur", f"{args.seconds:g}s"]
    words += ["-live", str(args.live)] if args.live else []
    rounds = 2 if args.scenario == "restart" else 1
    env = {**os.environ, **settings(args)}
    truths = []
    with args.log.open("ab") as log, args.stdout.open("wb") as stdout:
        log.truncate(0)
        for number in range(rounds):
            parts = [f".{number}.{one}" for one in range(args.together)]
            commands = [[str(program), *words, "-out", str(folder), "-part", p] for p in parts]
            running = [
                subprocess.Popen(command, env=env, stderr=log, stdout=stdout)
                for command in commands
            ]
            if any(process.wait() for process in running):
                sys.exit(f"the program failed: see {args.log}")
            truths += [json.loads((folder / f"truth{p}.json").read_text()) for p in parts]
    return words, truths


def note(args: argparse.Namespace, words: list[str], truths: list[dict[str, Any]]) -> str:
    """Returns the note on the log, as TOML."""
    first = truths[0]
    lines = [
        f'what = "{args.what or "scenario " + args.scenario}"',
        f'go_version = "{first["go_version"]}"',
        f'command = "workload {" ".join(words)}"',
        'licence = "Apache-2.0"',
        "",
        "[env]",
        *(f'{name} = "{value}"' for name, value in settings(args).items()),
    ]
    for truth in truths:
        lines += [
            "",
            "# What the program itself measured at its end (runtime.MemStats).",
            "[[truth]]",
        ]
        lines += [f"{name} = {truth[name]}" for name in TRUTH]
        lines += [f"gomaxprocs = {truth['gomaxprocs']}", f"num_cpu = {truth['num_cpu']}"]
    return "\n".join(lines) + "\n"


def run(args: argparse.Namespace) -> None:
    """Makes the sample."""
    with tempfile.TemporaryDirectory() as name:
        words, truths = _recorded(built("workload", args.go), args, Path(name))
    args.log.with_suffix(".toml").write_text(note(args, words, truths))
    lines = args.log.read_bytes().count(b"\n")
    print(f"{args.log}: {lines} lines, {sum(truth['NumGC'] for truth in truths)} cycles")
