"""Other activity on the machine during a run: work on the CPUs, and throttling."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from gctrace_analyzer.frozen import frozen

CROWDED_SHARE = 0.06
"""Share of the CPU time of all CPUs. Above it, other work disturbs a run."""

_LEAST_FOREIGN_S = 0.05
"""CPU seconds: /proc/stat counts in steps of 10 ms for each CPU."""

_PROC = Path("/proc")
_LISTEN = "0A"
"""The state of a socket that accepts connections (include/net/tcp_states.h)."""
_MOUNTED = Path("/sys/fs/cgroup")
_UNITS = {"throttled_usec": 1e6, "throttled_time": 1e9}
"""The fields of cpu.stat with the throttled time (cgroup versions 2 and 1), and their units per
second."""


@frozen
class MachineTime:
    """Readings at one moment, in seconds; None if the system lacks them.

    Attributes:
        clock_s: the time.
        busy_s: CPU time of everything on this machine since it started.
        own_s: CPU time of this process.
        throttled_s: time for which the CPU limit stopped this container.
    """

    clock_s: float
    busy_s: float | None
    own_s: float
    throttled_s: float | None

    @classmethod
    def now(cls) -> MachineTime:
        """Returns the readings."""
        return cls(time.monotonic(), busy_s(), time.process_time(), _throttled_s())

    def foreign_s(self, since: MachineTime, measured_s: float) -> float | None:
        """Returns the CPU time of other work, without `measured_s`; None if unknown."""
        if self.busy_s is None or since.busy_s is None:
            return None
        own = self.own_s - since.own_s
        return max(self.busy_s - since.busy_s - own - measured_s, 0.0)

    def throttled_since(self, since: MachineTime) -> float | None:
        """Returns how long the container was throttled since then; None if unknown."""
        if self.throttled_s is None or since.throttled_s is None:
            return None
        return self.throttled_s - since.throttled_s

    def is_crowded(self, since: MachineTime, foreign_s: float | None) -> bool:
        """Returns whether other work took enough CPU to change the result."""
        if foreign_s is None:
            return False
        whole = (self.clock_s - since.clock_s) * (os.cpu_count() or 1)
        return foreign_s > max(CROWDED_SHARE * whole, _LEAST_FOREIGN_S)


def cpu_s(pid: int) -> float | None:
    """Returns the CPU time of a running process; None if the system does not show it."""
    with suppress(OSError, ValueError):
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return None


def listening_port(pid: int) -> int | None:
    """Returns a TCP port that a process accepts connections on; None if none is known."""
    with suppress(OSError, ValueError):
        folder = _PROC / str(pid)
        files = {str(path.readlink()) for path in (folder / "fd").iterdir()}
        for name in ("tcp", "tcp6"):
            for line in (folder / "net" / name).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN and f"socket:[{fields[9]}]" in files:
                    return int(fields[1].rpartition(":")[2], 16)
    return None


def busy_s() -> float | None:
    """Returns the time that the CPUs were not idle; guests are in user time already."""
    with suppress(OSError, ValueError):
        user, nice, system, _, _, *more = (_PROC / "stat").read_text().split(maxsplit=9)[1:9]
        return sum(map(int, (user, nice, system, *more))) / os.sysconf("SC_CLK_TCK")
    return None


def _throttled_s() -> float | None:
    """Returns the throttled time of this process, in its cgroup or one above it."""
    times = [time_s for path in _cgroups() if (time_s := _stopped_s(path)) is not None]
    return sum(times) if times else None


def _cgroups() -> list[Path]:
    """Returns the folders of its cgroups that may have a CPU limit; empty if not mounted.

    The mounted folder may be its own cgroup; the path is then that outside the container.
    """
    try:
        lines = (_PROC / "self" / "cgroup").read_text().splitlines()
    except OSError:
        lines = []
    paths = [
        (controllers, Path(name.lstrip("/")))
        for _, controllers, name in (line.split(":", 2) for line in lines)
        if not controllers or "cpu" in controllers.split(",")
    ]
    above = (
        _MOUNTED / controllers / part
        for controllers, path in paths
        for part in (path, *path.parents)
    )
    return [path for path in dict.fromkeys(above) if (path / "cpu.stat").exists()]


def _stopped_s(cgroup: Path) -> float | None:
    with suppress(OSError, ValueError):
        for line in (cgroup / "cpu.stat").read_text().splitlines():
            name, _, value = line.partition(" ")
            if name in _UNITS:
                return int(value) / _UNITS[name]
    return None
