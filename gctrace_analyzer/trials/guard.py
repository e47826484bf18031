"""Runs one program, measures it, and leaves none of its processes behind.

Started as a process of its own (`python -I -S guard.py`), for three reasons. First, it lives as
long as its standard input is open, so the program ends together with the process that started it,
even after SIGKILL. Second, it adopts processes that the program leaves behind, and ends them.
Third, a process inherits the peak resident memory of the process that forks it, which is small
here.

It can also measure programs built by `go run` and `go test`. These get this file as `-exec`, which
runs the built program with the settings meant only for it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

Record: TypeAlias = dict[str, Any]
"""A task or a report, as JSON."""

EXEC = "GCTRACE_ANALYZER_TRIAL"
"""The variable with the task for the guard that the go command starts."""

_POLL_S = 0.05
"""Seconds between readings of the peak memory, so that only the last moments may be missed."""

_MOST_S = 5.0
"""Seconds for trying to end processes, which the kernel may hold."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
"""From linux/prctl.h."""

_RSS_UNITS_PER_MIB = 1 << 20 if sys.platform == "darwin" else 1 << 10


def main() -> int:
    """Measures the program that the first line of standard input describes, or `-exec` one."""
    if EXEC in os.environ:
        return _measure_for_go(json.loads(os.environ.pop(EXEC)), sys.argv[1:])
    line = _line(0)
    if not line.endswith(b"\n"):
        # The process that started this one was interrupted first.
        return 0
    task = json.loads(line)
    _control(_PR_SET_CHILD_SUBREAPER, 1)
    report = _measure(task, 0, lambda started: _write(1, started))
    _end_descendants(report.pop("group", None))
    _write(1, report)
    return 0


def _measure_for_go(task: Record, command: list[str]) -> int:
    """Runs a program that the go command has built, writes its report, and exits like it."""
    # A signal that ends the go command is for the program, whose report is still needed.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)

    def write(record: Record) -> None:
        with Path(task["report"]).open("ab", buffering=0) as file:
            file.write(json.dumps(record).encode() + b"\n")

    # `go test` would put standard error into its own standard output.
    own = {
        "command": command,
        "env": {**os.environ, **task["env"]},
        "session": False,
        **({"err": task["err"]} if "err" in task else {}),
    }
    report = _measure(own, None, write)
    report.pop("group", None)
    write(report)
    code: int = report.get("code", 127)
    return code if code >= 0 else 128 - code


def _measure(task: Record, lifeline: int | None, started: Any) -> Record:
    """Runs a program to its end, and returns its figures.

    Args:
        task: `command` and `env`; `cwd`, `stdin`, `out` and `err` are paths.
        lifeline: the program is killed when this descriptor is closed at the other end.
        started: called with a record with the process id, once the program runs.
    """
    awake, wake = os.pipe()
    for end in (awake, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    failing, failure = os.pipe()
    begin = time.monotonic()
    pid = os.fork()
    if not pid:
        _become(task, failure)
    os.close(failure)
    if problem := os.read(failing, 1 << 12):
        os.waitpid(pid, 0)
        return {"failed": problem.decode(errors="replace")}
    started({"pid": pid})
    peak_kib = 0
    waited = [awake] if lifeline is None else [awake, lifeline]
    while True:
        peak_kib = max(peak_kib, _peak_kib(pid))
        ready = select.select(waited, [], [], _POLL_S)[0]
        if lifeline in ready and not os.read(lifeline or 0, 64):
            waited.remove(lifeline)
            _kill(pid)
        with suppress(BlockingIOError):
            os.read(awake, 64)
        while (ended := _reaped())[0]:
            if ended[0] == pid:
                return _report(ended, begin, peak_kib)


def _report(ended: tuple[int, int, Any], begin: float, peak_kib: int) -> Record:
    end = time.monotonic()
    pid, status, usage = ended
    peak_mib = usage.ru_maxrss / _RSS_UNITS_PER_MIB
    # A program inherits the peak of this program (not that of the process that became it, which
    # `ru_maxrss` has). Below that peak, the last reading counts, if there was more than one.
    if peak_mib <= _peak_kib(os.getpid()) / 1024:
        peak_mib = peak_kib / 1024 if end - begin > 2 * _POLL_S else None
    return {
        "group": pid,
        "wall_s": end - begin,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "max_rss_mib": peak_mib or None,
        "code": os.waitstatus_to_exitcode(status),
    }


def _become(task: Record, failure: int) -> None:
    """Turns this forked process into the program."""
    try:
        _control(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if task.get("session", True):
            os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        writing = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        for name, descriptor, flags in (
            ("stdin", 0, os.O_RDONLY),
            ("out", 1, writing),
            ("err", 2, writing),
        ):
            if name in task:
                os.dup2(os.open(task[name], flags, 0o666), descriptor)
        if task.get("cwd"):
            os.chdir(task["cwd"])
        os.execvpe(task["command"][0], task["command"], task["env"])
    except OSError as err:
        os.write(failure, f"{err.errno} {err.strerror}".encode())
    os._exit(127)


def _reaped() -> tuple[int, int, Any]:
    """Returns a child that has ended, or one with process id 0 if none has."""
    try:
        return os.wait4(-1, os.WNOHANG)
    except ChildProcessError:
        return 0, 0, None


def _kill(pid: int) -> None:
    for end in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)


def _end_descendants(group: int | None) -> None:
    """Kills everything that the program left behind: its group, and adopted processes."""
    if group is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    until = time.monotonic() + _MOST_S
    while (pids := _descendants()) and time.monotonic() < until:
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        while _reaped()[0]:
            pass
        time.sleep(0.005)


def _descendants() -> list[int]:
    """Returns all descendants of this process; none without /proc."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            text = path.read_text(errors="replace")
            children.setdefault(int(text.rpartition(") ")[2].split()[1]), []).append(
                int(path.parent.name)
            )
    pids, new = [], [os.getpid()]
    while new:
        new = [child for parent in new for child in children.get(parent, ())]
        pids += new
    return pids


def _peak_kib(pid: int) -> int:
    """Returns the largest resident memory so far; 0 if it is unknown."""
    # A process that has ended has a status without this line.
    with suppress(OSError, ValueError, IndexError):
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0])
    return 0


def _control(option: int, value: int) -> None:
    """Calls prctl, if it exists."""
    if sys.platform == "linux":
        with suppress(ImportError, OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None).prctl(option, int(value), 0, 0, 0)


def _line(descriptor: int) -> bytes:
    """Returns the first line, without reading beyond it."""
    data = b""
    while not data.endswith(b"\n") and (piece := os.read(descriptor, 1 << 16)):
        data += piece
    return data


def _write(descriptor: int, record: Record) -> None:
    with suppress(OSError):
        os.write(descriptor, json.dumps(record).encode() + b"\n")


if __name__ == "__main__":
    # The interpreter's own cleanup is not needed.
    os._exit(main())
