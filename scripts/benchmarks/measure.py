"""Runs commands, each in a process of its own, and measures what they cost."""

from __future__ import annotations

import os
import platform
import re
import statistics
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from environment import BIN, PYTHON, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DATA = ROOT / "bench-data"
COMMAND = str(BIN / "gctrace-analyze")
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}
"""As pip does during an installation, Python compiles the modules of a checkout once."""


class Cost(NamedTuple):
    """What a command and the processes that it started cost.

    Attributes:
        s: seconds.
        cpu_s: CPU seconds of all processes.
        peak_mib: the largest resident set of one of them.
        printed: its standard output.
    """

    s: float
    cpu_s: float
    peak_mib: float
    printed: str


def cost_of(*command: str | Path, environment: Mapping[str, str] | None = None) -> Cost:
    """Runs a command once.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    words = [str(word) for word in command]
    begin = time.perf_counter()
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env={**ENVIRONMENT, **(environment or {})},
        text=True,
    )
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - begin
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, printed)


def best(costs: Iterable[Cost]) -> Cost:
    """Returns the least time, and the median of the memory, which varies up and down."""
    several = list(costs)
    least, cpu_s = min(cost.s for cost in several), min(cost.cpu_s for cost in several)
    peak_mib = statistics.median(cost.peak_mib for cost in several)
    return Cost(least, cpu_s, peak_mib, several[-1].printed)


def best_of(
    rounds: int, *command: str | Path, environment: Mapping[str, str] | None = None
) -> Cost:
    """Returns the best of some rounds: other work on the machine only adds time."""
    return best(cost_of(*command, environment=environment) for _ in range(rounds))


def simulated(name: str, *, kind: str = "half", mb: float = 0, cycles: int = 0) -> Path:
    """Returns a log of a simulated program, of some megabytes or cycles.

    It is made in a process of its own: programs start with the memory of the one that starts them.
    """
    path = DATA / name
    maker = Path(__file__).with_name("simulated_log.py")
    cost_of(PYTHON, maker, path, kind, str(mb), str(cycles))
    return path


def machine() -> str:
    """Returns the date, the processors, the Python version and who reads records."""
    cpuinfo = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else None
    name = model[1] if model else "unknown processor"
    version = cost_of(PYTHON, "-m", "gctrace_analyzer", "--version").printed
    core = version.partition("(")[2].rstrip(")\n")
    python = platform.python_version()
    return f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} × {name}, Python {python}, {core}"
