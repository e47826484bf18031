"""Measures what `watch` does to the latency of a web server."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import statistics
import struct
import subprocess
import tempfile
import termios
import time
from threading import Thread
from typing import TYPE_CHECKING

from environment import BIN

from lab.services.build import HOME, binary, build
from lab.services.processes import answers, base_environment, load_words
from lab.services.programs import PROGRAMS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

ABOUT = """Measures the latency of a web server that is watched, and of one that is not.

Caddy (a Debian package) runs under a load that uses all processors, on 127.0.0.1: with gctrace
going to a file, with the dashboard, and with lines, in turns.
"""
COMMAND = str(BIN / "gctrace-analyze")
WAYS = {
    "gctrace to a file": (),
    "dashboard": ("watch", "--"),
    "lines": ("watch", "-f", "lines", "--every", "10s", "--"),
}


def _measured(rounds: int, seconds: float) -> Iterator[str]:
    """Measures the latency of a web server that is watched, and of one that is not."""
    (caddy,) = build([program for program in PROGRAMS if program.name == "caddy"])
    page = caddy.load[0]
    figures_of: dict[str, list[tuple[float, ...]]] = {way: [] for way in WAYS}
    environment = {**base_environment(), "GODEBUG": "gctrace=1", "TERM": "xterm-256color"}
    for turn in range(rounds):
        for way in list(WAYS)[:: 1 if turn % 2 else -1]:
            screen, terminal = pty.openpty()
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
            words = [*([COMMAND, *WAYS[way]] if WAYS[way] else []), str(binary(caddy.source))]
            with tempfile.TemporaryFile() as log:
                process = subprocess.Popen(
                    [*words, *caddy.words],
                    cwd=HOME,
                    env=environment,
                    stdout=terminal if WAYS[way] else log,
                    stderr=terminal if WAYS[way] else log,
                )
                os.close(terminal)
                Thread(target=_drained, args=(screen,), daemon=True).start()
                while not answers(caddy.port):
                    time.sleep(0.1)
                for length in (5, seconds):
                    command = [str(binary(page.source)), *load_words(page, length)]
                    printed = subprocess.run(
                        command, capture_output=True, text=True, check=True
                    )
                process.send_signal(signal.SIGINT)
                process.wait(30)
            figures = (r"50% in ([\d.]+)", r"99% in ([\d.]+)", r"Requests/sec:\s+([\d.]+)")
            figures_of[way].append(
                tuple(float(re.findall(at, printed.stdout)[0]) for at in figures)
            )
    yield "| Caddy with | p50 ms | p99 ms | requests/s | p99 against the file, by round |"
    yield "|---|---:|---:|---:|---:|"
    plain = figures_of["gctrace to a file"]
    for way, rows in figures_of.items():
        p50, p99, rate = (statistics.median(column) for column in zip(*rows, strict=True))
        ratios = sorted(row[1] / base[1] - 1 for row, base in zip(rows, plain, strict=True))
        change = f"{statistics.median(ratios):+.0%} ({ratios[0]:+.0%} to {ratios[-1]:+.0%})"
        yield f"| {way} | {1000 * p50:.1f} | {1000 * p99:.1f} | {rate:,.0f} | {change} |"


def _drained(screen: int) -> None:
    """Reads what is drawn, so that the other side never waits."""
    try:
        while os.read(screen, 1 << 16):
            pass
    except OSError:
        os.close(screen)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.add_argument("--rounds", type=int, default=6, help="rounds (default: 6)")
    parser.add_argument(
        "--seconds", type=float, default=10, help="load of a round (default: 10)"
    )


def run(args: argparse.Namespace) -> None:
    """Prints the table."""
    for line in _measured(args.rounds, args.seconds):
        print(line, flush=True)
