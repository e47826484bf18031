"""Measures `gctrace-analyze watch`: throughput, memory, and the delay until a cycle is shown.

The lines are those of a real log, half of them from the application, with increasing numbers and
times. The watcher has a processor to itself; this script runs on another one.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import pty
import re
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from bisect import bisect_left
from collections import deque
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Self

from environment import ROOT, say

from benchmarks.measure import COMMAND

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

SAMPLE = ROOT / "samples" / "steady-go1.26.log"
LINES_PER_S = 20_000
INTERVAL_MS = 83
"""Time between two cycles on the clock of the program, as in the sample. At 20,000 lines/s, half
of them records, that clock is 830 times as fast as real time."""

EVERY = "20m"
"""The length of an interval on that clock: 1.4 s in real time."""

SERVICE_LINES_PER_S, SERVICE_CYCLES_PER_S = 1000, 5
SERVICE = f"""
import os, sys, time
begin = time.time()
for number in range(1, int(float(sys.argv[1]) * {SERVICE_LINES_PER_S})):
    os.write(2, b"2026/11/22 10:00:00 GET /v1/users/%d 200 12ms\\n" % number)
    cycle, rest = divmod(number, {SERVICE_LINES_PER_S // SERVICE_CYCLES_PER_S})
    if not rest:
        os.write(2, b"gc %d @%.3fs 3%%: 0.027+5.5+0.030 ms clock, "
            b"0.054+0.28/2.34/4.9+0.061 ms cpu, 70->73->38 MB, "
            b"76 MB goal, 0 MB stacks, 0 MB globals, 2 P\\n"
            % (cycle, time.time() - begin))
    time.sleep(max(begin + number / {SERVICE_LINES_PER_S} - time.time(), 0))
"""
"""A service that logs line by line, as loggers do, with GC cycles in between."""

_TICK = os.sysconf("SC_CLK_TCK")
_NEWEST = re.compile(rb"gc ([\d,]+) (?:just now|[\d.]+ s ago)")


class Lines:
    """The lines of the sample, repeated, half of them records."""

    def __init__(self) -> None:
        data = SAMPLE.read_bytes()
        self._records = re.findall(rb"^gc \d+ @[\d.]+s(.* P\n)", data, re.M)
        lines = data.splitlines(keepends=True)
        self._others = [line for line in lines if not line.startswith(b"gc ")]
        self.number = 0

    def take(self, lines: int) -> bytes:
        """Returns the next lines."""
        parts = []
        for number in range(self.number + 1, self.number + lines // 2 + 1):
            at = b"gc %d @%d.%03ds" % (number, *divmod(INTERVAL_MS * number, 1000))
            parts += [
                at,
                self._records[number % len(self._records)],
                self._others[number % len(self._others)],
            ]
        self.number += lines // 2
        return b"".join(parts)


def _on_its_own() -> None:
    """Gives the watcher one processor, and SIGINT, which shells take from background jobs."""
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Watcher:
    """The command, on a processor of its own, with or without a terminal."""

    def __init__(self, *words: str, terminal: bool, piped: bool) -> None:
        self.screen = -1
        out: int = subprocess.DEVNULL
        if terminal:
            self.screen, out = pty.openpty()
            fcntl.ioctl(out, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
        self._process = subprocess.Popen(
            [COMMAND, "watch", *words],
            stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, "TERM": "xterm-256color"},
            preexec_fn=_on_its_own,
        )
        if terminal:
            os.close(out)
        self.pipe = self._process.stdin
        self.seen: deque[tuple[float, int]] = deque()
        self._observer = Thread(target=self._observe, daemon=True)
        if terminal:
            self._observer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def _observe(self) -> None:
        """Records which cycle is on the screen, and since when."""
        try:
            while data := os.read(self.screen, 1 << 16):
                for match in _NEWEST.finditer(data):
                    number = int(match[1].replace(b",", b""))
                    if not self.seen or self.seen[-1][1] != number:
                        self.seen.append((time.perf_counter(), number))
        except OSError:
            return

    def cpu_s(self) -> float:
        """Returns the CPU time so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK

    def memory_mib(self) -> float:
        """Returns the size of its resident set."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024

    def end(self) -> tuple[float, float]:
        """Ends the input; returns the seconds until the report is done, and the peak memory."""
        begin = time.perf_counter()
        if self.pipe is not None:
            self.pipe.close()
        else:
            self._process.send_signal(signal.SIGINT)
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        assert self._process.returncode == 0, self._process.returncode
        return time.perf_counter() - begin, usage.ru_maxrss / 1024


def paced(seconds: float, *, terminal: bool) -> str:
    """Measures CPU use and delay at 20,000 lines a second."""
    lines, numbers, times = Lines(), list[int](), list[float]()
    with Watcher("-", "--every", EVERY, terminal=terminal, piped=True) as watcher:
        assert watcher.pipe is not None
        time.sleep(2)
        begin, cpu, late = time.perf_counter(), watcher.cpu_s(), 0.0
        for step in itertools.count(1):
            data = lines.take(LINES_PER_S // 50)
            watcher.pipe.write(data)
            watcher.pipe.flush()
            now = time.perf_counter()
            numbers.append(lines.number)
            times.append(now)
            ahead = begin + step / 50 - now
            late = max(late, -ahead)
            time.sleep(max(ahead, 0))
            if now - begin > seconds:
                break
        spent = (watcher.cpu_s() - cpu) / (time.perf_counter() - begin)
        delays = [
            1000 * (at - times[bisect_left(numbers, number)]) for at, number in watcher.seen
        ]
        took, _ = watcher.end()
    where = "dashboard" if terminal else "lines"
    seen = _delays(delays) if terminal else ""
    return (
        f"| {where}, {LINES_PER_S:,} lines/s for {seconds:.0f} s | {100 * spent:.0f} % | "
        f"{1000 * max(late, 0):.0f} ms | {seen} | {took:.1f} s |"
    )


def service(seconds: float, *, terminal: bool) -> str:
    """Measures CPU use while a program logs line by line."""
    program = ("--", sys.executable, "-c", SERVICE, str(seconds + 10))
    words = () if terminal else ("-f", "lines", "--every", "10s")
    with Watcher(*words, *program, terminal=terminal, piped=False) as watcher:
        time.sleep(5)
        begin, cpu = time.perf_counter(), watcher.cpu_s()
        time.sleep(seconds)
        spent = (watcher.cpu_s() - cpu) / (time.perf_counter() - begin)
    where = "dashboard" if terminal else "lines"
    return (
        f"| {where}, a program with {SERVICE_LINES_PER_S:,} lines/s and "
        f"{SERVICE_CYCLES_PER_S} cycles/s | {100 * spent:.0f} % | | | |"
    )


def single_cycles(rounds: int) -> str:
    """Measures the delay for single cycles, written to a file now and then."""
    lines, delays = Lines(), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.log"
        path.write_bytes(lines.take(200))
        with Watcher(str(path), terminal=True, piped=False) as watcher:
            while not watcher.seen or watcher.seen[-1][1] != lines.number:
                time.sleep(0.05)
            time.sleep(3)
            cpu, begin = watcher.cpu_s(), time.perf_counter()
            with path.open("ab", buffering=0) as file:
                for turn in range(rounds):
                    time.sleep(1.1 + 0.1 * (turn % 7))
                    written = time.perf_counter()
                    file.write(lines.take(2))
                    while watcher.seen[-1][1] != lines.number:
                        time.sleep(0.001)
                    delays.append(1000 * (watcher.seen[-1][0] - written))
            spent = (watcher.cpu_s() - cpu) / (time.perf_counter() - begin)
            took, _ = watcher.end()
    return (
        f"| dashboard, a cycle every 1.1–1.7 s | {100 * spent:.0f} % | | {_delays(delays)} | "
        f"{took:.1f} s |"
    )


def _delays(delays: list[float]) -> str:
    ordered = sorted(delays)
    p99 = ordered[int(0.99 * (len(ordered) - 1))]
    return f"{statistics.median(ordered):.0f} · {p99:.0f} · {ordered[-1]:.0f} ms"


def memory(minutes: float) -> Iterator[str]:
    """Measures memory for the lines of `minutes`, written as fast as they are read."""
    lines, steps = Lines(), 12
    per_step = max(int(60 * minutes * LINES_PER_S / steps), 20_000)
    with Watcher("-", "--every", "1000h", terminal=False, piped=True) as watcher:
        assert watcher.pipe is not None
        begin = time.perf_counter()
        yield "| lines | MiB | lines/s so far |"
        yield "|---:|---:|---:|"
        for step in range(1, steps + 1):
            for _ in range(per_step // 20_000):
                watcher.pipe.write(lines.take(20_000))
            done = step * (per_step // 20_000) * 20_000
            speed = done / (time.perf_counter() - begin)
            yield f"| {done:,} | {watcher.memory_mib():,.0f} | {speed:,.0f} |"
        took, peak = watcher.end()
    yield f"\nFinal report: {took:.1f} s; peak memory {peak:,.0f} MiB."


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.add_argument(
        "--minutes", type=float, default=60, help="lines of this many minutes (default: 60)"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=60,
        help="length of a run at a fixed rate (default: 60)",
    )
    parser.add_argument(
        "--rounds", type=int, default=40, help="number of single cycles (default: 40)"
    )


def tables(args: argparse.Namespace) -> Iterator[str]:
    """Yields the lines of the tables."""
    yield (
        "| what | CPU | writer delayed by | delay until shown (p50 · p99 · max) "
        "| last line to end of report |"
    )
    yield "|---|---:|---:|---:|---:|"
    say("single cycles …")
    yield single_cycles(args.rounds)
    say("a program that logs …")
    yield service(args.seconds, terminal=True)
    yield service(args.seconds, terminal=False)
    say(f"{LINES_PER_S:,} lines a second …")
    yield paced(args.seconds, terminal=True)
    yield paced(args.seconds, terminal=False)
    say(f"{args.minutes:g} minutes of lines …")
    yield ""
    yield from memory(args.minutes)
