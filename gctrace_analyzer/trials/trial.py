"""One run of one side: a program that ends by itself, or a server with its load."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
import urllib.error
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gctrace_analyzer.analysis.compare.rounds import TrialRun
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present.format import duration
from gctrace_analyzer.program import last_output
from gctrace_analyzer.trials.machine import MachineTime, cpu_s, listening_port
from gctrace_analyzer.trials.process import Command, Measured, Usage, is_benchmark

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gctrace_analyzer.trials.plan import Plan, Trial

_TICK_S = 0.05
_ANSWER_S = 1.0
"""Seconds for an answer that shows that a server is ready."""

_LOOKS_S = (5.0, 30.0)
"""Times at which to check whether a program is a server, which does not end by itself; after the
last time, it may be one anyway."""

_URL = re.compile(r"(https?|tcp)://\S+")


class _RunFailedError(Exception):
    """The run does not count as a measurement; the text is the reason."""


@frozen
class _Window:
    """The measured part of a run, and the CPU time of the load."""

    wall_s: float
    cpu_s: float
    load_cpu_s: float = 0.0


def run_trial(
    trial: Trial,
    plan: Plan,
    number: int,
    log: Path,
    runs_on: Callable[[int | None], None] = lambda _: None,
) -> TrialRun:
    """Runs a side once and returns the measurements; a failure is a result too.

    Args:
        trial: the side.
        plan: how its runs are made.
        number: the number of the round; 0 is the warm-up.
        log: the file for its standard error; other output goes next to it.
        runs_on: called with its port, if any, when the program may never end.

    Raises:
        ProgramError: a command cannot be started.
        BadSettingError: something else answers where the program should.
    """
    out = log if is_benchmark(trial.words) else log.with_suffix(".out")
    load_log = log.with_suffix(".load")
    for path in (log, out, load_log):
        path.unlink(missing_ok=True)
    if plan.ready and _URL.fullmatch(plan.ready) and _answers(plan.ready):
        expected = "an address at which nothing answers before the program is started"
        raise BadSettingError("ready", plan.ready, expected)
    command = Command(trial.words, trial.environment, out, log, plan.stdin)
    error: str | None = None
    window: _Window | None = None
    usage: Usage | None
    with Measured(command) as program:
        # The program was started by the measuring process, which is no other work.
        before = MachineTime.now()
        try:
            window, usage = _run(program, plan, command, load_log, runs_on)
        except _RunFailedError as err:
            error, usage = str(err), program.kill()
        after = MachineTime.now()
    used = 0.0 if usage is None else usage.all_cpu_s
    foreign_s = after.foreign_s(before, used + (window.load_cpu_s if window else 0.0))
    paths = [path for path in dict.fromkeys((log, out, load_log)) if path.exists()]
    if error is not None:
        # If the load failed, it gives the reason; else the program does.
        source = load_log if error.startswith("the load") and load_log.exists() else log
        error = "\n".join(filter(None, (error, last_output(source) if source.exists() else "")))
    for path in paths:
        if path != log and not path.stat().st_size:
            path.unlink()
    texts = [] if error else [_text(path) for path in paths if path.exists()]
    figures = plan.figures(texts)
    return TrialRun(
        trial.label,
        number,
        trial.gogc,
        trial.memory_limit_mib,
        wall_s=window.wall_s if window else None,
        cpu_s=window.cpu_s if window else None,
        max_rss_mib=usage.max_rss_mib if usage else None,
        exit_code=usage.exit_code if usage else None,
        disturbed=after.is_crowded(before, foreign_s),
        log=log.name,
        foreign_cpu_s=foreign_s,
        throttled_s=after.throttled_since(before),
        error=error,
        figures={name: value for name, (value, _) in figures.items()},
        times=[name for name, (_, unit) in figures.items() if unit],
        cpus=os.cpu_count(),
    )


def _run(
    program: Measured,
    plan: Plan,
    command: Command,
    load_log: Path,
    runs_on: Callable[[int | None], None],
) -> tuple[_Window, Usage]:
    if plan.is_server:
        return _serve(program, plan, command, load_log)
    usage = _ended(program, plan.timeout_s, runs_on)
    if usage is None:
        msg = f"did not end within {duration(plan.timeout_s)}"
        raise _RunFailedError(msg)
    if usage.exit_code:
        raise _RunFailedError(_ending(usage.exit_code))
    return _Window(usage.wall_s, usage.cpu_s), usage


def _ended(
    program: Measured, timeout_s: float, runs_on: Callable[[int | None], None]
) -> Usage | None:
    """Waits until a program has ended; None if it takes longer than this."""
    waited_s = 0.0
    for look_s in (look_s for look_s in _LOOKS_S if look_s < timeout_s):
        if (usage := program.wait(look_s - waited_s)) is not None:
            return usage
        waited_s = look_s
        port = None if program.pid is None else listening_port(program.pid)
        if port is not None or look_s == _LOOKS_S[-1]:
            runs_on(port)
            break
    return program.wait(timeout_s - waited_s)


def _serve(
    program: Measured, plan: Plan, command: Command, load_log: Path
) -> tuple[_Window, Usage]:
    _wait_until_ready(program, plan, command)
    begin_s, begin_cpu_s = time.monotonic(), _cpu_s(program)
    load_cpu_s = 0.0
    if plan.load:
        load_cpu_s = _run_load(program, plan, load_log)
    else:
        _require_running(program, plan.serve_for_s or 0.0)
    wall_s, end_cpu_s = time.monotonic() - begin_s, _cpu_s(program)
    usage = program.terminate()
    if usage is None:
        msg = "it could not be stopped"
        raise _RunFailedError(msg)
    known = begin_cpu_s is not None and end_cpu_s is not None
    spent_s = end_cpu_s - begin_cpu_s if known else usage.cpu_s  # type: ignore[operator]  # both are known
    return _Window(wall_s, spent_s, load_cpu_s), usage


def _cpu_s(program: Measured) -> float | None:
    return None if program.pid is None else cpu_s(program.pid)


def _require_running(program: Measured, seconds: float) -> None:
    """Waits this many seconds; if a server ends before, the run failed."""
    if (usage := program.wait(seconds)) is not None:
        msg = f"ended before it was stopped: {_ending(usage.exit_code)}"
        raise _RunFailedError(msg)


def _wait_until_ready(program: Measured, plan: Plan, command: Command) -> None:
    if plan.ready is None:
        return
    until = time.monotonic() + plan.timeout_s
    while not _is_ready(plan.ready, command):
        _require_running(program, _TICK_S)
        if time.monotonic() > until:
            msg = f"was not ready within {duration(plan.timeout_s)}: {plan.ready}"
            raise _RunFailedError(msg)


def _is_ready(ready: str, command: Command) -> bool:
    if _URL.fullmatch(ready):
        return _answers(ready)
    paths = [path for path in (command.err, command.out) if path.exists()]
    return any(re.search(ready, _text(path)) for path in paths)


def _answers(url: str) -> bool:
    """Returns whether a server answers at this address, except with a server error."""
    parts = urlsplit(url)
    with suppress(OSError, ValueError):
        if parts.scheme == "tcp":
            with socket.create_connection((parts.hostname or "", parts.port or 0), _ANSWER_S):
                return True
        # A proxy would answer for a missing server.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(url, timeout=_ANSWER_S):
                return True
        except urllib.error.HTTPError as err:
            return err.code < 500
    return False


def _run_load(program: Measured, plan: Plan, log: Path) -> float:
    """Runs the load, at most while the server is measured; returns its CPU time."""
    command = Command(plan.load, {}, log, log)
    begin = time.monotonic()
    most_s = plan.timeout_s if plan.serve_for_s is None else plan.serve_for_s
    with Measured(command) as load:
        while (usage := load.wait(_TICK_S)) is None and time.monotonic() - begin < most_s:
            _require_running(program, 0.0)
        if usage is None and plan.serve_for_s is None:
            msg = f"the load did not end within {duration(plan.timeout_s)}"
            raise _RunFailedError(msg)
        if usage is None:
            # Load generators print their summary when they are interrupted.
            usage = load.terminate(signal.SIGINT)
        elif usage.exit_code:
            msg = f"the load failed: {_ending(usage.exit_code)}"
            raise _RunFailedError(msg)
    return 0.0 if usage is None else usage.cpu_s


def _ending(code: int) -> str:
    """Returns how a process ended.

    >>> _ending(2), _ending(-9)
    ('exit code 2', 'killed by SIGKILL')
    """
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return f"killed by {signal.Signals(-code).name}"
    return f"killed by signal {-code}"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
