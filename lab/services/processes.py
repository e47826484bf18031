"""Starts and stops processes, and measures what they and the machine spent."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from gctrace_analyzer.trials.machine import busy_s
from lab.services.build import GO_CACHE, HOME, PLAIN_GO, binary, libraries

if TYPE_CHECKING:
    from lab.services.programs import Load, Source

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
CGROUP = Path("/sys/fs/cgroup/cpu/gctrace-lab")
CPU_ACCOUNT = Path("/sys/fs/cgroup/cpuacct/cpuacct.usage")
PERIOD_US = 100_000
STARTED: list[Process] = []


@dataclass(slots=True)
class Process:
    """A child with its output, and its CPU time once it has ended."""

    child: subprocess.Popen[bytes]
    started: float
    cpu_after_s: float | None = None
    largest_rss_mib: float = 0

    @property
    def ended(self) -> bool:
        """Whether it has ended; its CPU time is kept when it has."""
        if self.cpu_after_s is None:
            pid, status, usage = os.wait4(self.child.pid, os.WNOHANG)
            if pid:
                self.child.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_after_s = usage.ru_utime + usage.ru_stime
                self.largest_rss_mib = usage.ru_maxrss / 1024
        return self.cpu_after_s is not None

    def cpu_s(self) -> float:
        """CPU time so far, its ended children included."""
        if self.ended:
            return self.cpu_after_s or 0.0
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rpartition(") ")[2].split()
        return sum(map(int, fields[11:15])) / TICKS_PER_S

    def peak_rss_mib(self) -> float:
        """Largest resident set so far (VmHWM)."""
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self.child.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 1024
        return self.largest_rss_mib if self.ended else 0.0

    def wait(self, seconds: float) -> bool:
        """Waits for its end, at most the given time; returns whether it has ended."""
        end = time.monotonic() + seconds
        while not self.ended and time.monotonic() < end:
            time.sleep(0.05)
        return self.ended

    def stop(self, grace_s: float = 4, first: signal.Signals = signal.SIGTERM) -> None:
        """Asks the process to end, then ends it and what it started."""
        if not self.ended:
            with contextlib.suppress(ProcessLookupError):
                self.child.send_signal(first)
            self.wait(grace_s)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.wait(10)
        if self in STARTED:
            STARTED.remove(self)


def start(
    source: Source,
    words: tuple[str, ...],
    *,
    env: dict[str, str],
    stdout: IO[bytes] | int = subprocess.DEVNULL,
    stderr: IO[bytes] | int = subprocess.DEVNULL,
    cpu_quota: float = 0,
) -> Process:
    """Starts a program in .services with a small environment of its own."""
    group = quota_group(cpu_quota) if cpu_quota else None
    child = subprocess.Popen(
        [str(binary(source)), *words],
        cwd=HOME,
        env={**base_environment(), **libraries(source), **env},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        preexec_fn=(lambda: join(group)) if group else None,
    )
    process = Process(child, time.monotonic())
    STARTED.append(process)
    return process


def base_environment() -> dict[str, str]:
    return {
        "PATH": f"{PLAIN_GO}:{os.environ['PATH']}",
        "HOME": str(HOME / "run"),
        "LANG": "C.UTF-8",
        # For staticcheck, which has the go command list packages.
        **GO_CACHE,
    }


def start_load(load: Load, seconds: float, stdout: IO[bytes] | int) -> Process:
    return start(load.source, load_words(load, seconds), env={}, stdout=stdout)


def load_words(load: Load, seconds: float) -> tuple[str, ...]:
    return tuple(word.replace("{seconds}", f"{seconds:g}") for word in load.words)


def stop_all() -> None:
    """Ends every process that still runs."""
    for process in STARTED.copy():
        process.stop(grace_s=1)


def join(group: Path) -> None:
    (group / "cgroup.procs").write_text(str(os.getpid()))


def quota_group(cpus: float) -> Path:
    """Returns a cgroup (version 1) with a CPU quota; OSError if none can be made here."""
    CGROUP.mkdir(exist_ok=True)
    (CGROUP / "cpu.cfs_period_us").write_text(str(PERIOD_US))
    (CGROUP / "cpu.cfs_quota_us").write_text(str(round(cpus * PERIOD_US)))
    return CGROUP


def answers(port: int) -> bool:
    """Whether something listens on the port."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def machine_busy_s() -> float:
    """CPU time that all CPUs of the machine were busy since boot.

    From cpuacct where cgroups of version 1 have it: the kernel samples /proc/stat at its
    timer ticks and misses most of a program that wakes up on timers (measured with dnsperf).
    """
    with contextlib.suppress(OSError):
        return int(CPU_ACCOUNT.read_text()) / 1e9
    return busy_s() or 0.0


def fixed_work_ms() -> float:
    """Returns how long a fixed piece of work takes now, the fastest of five times.

    A neighbour on the same host slows programs down without using this machine's CPU time.
    """
    times_s = []
    for _ in range(5):
        begin = time.perf_counter()
        sum(range(1_000_000))
        times_s.append(time.perf_counter() - begin)
    return round(1000 * min(times_s), 2)


def wait_until_quiet(most_s: float) -> None:
    """Waits for a second in which the machine is at most 5 % busy."""
    cores = os.cpu_count() or 1
    end = time.monotonic() + most_s
    while time.monotonic() < end:
        before = machine_busy_s()
        time.sleep(1)
        if machine_busy_s() - before <= 0.05 * cores:
            return
