"""Records a program under known settings: its gctrace, and what it ran under from when on."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.own import built
from lab.services.build import HOME, BuildError, build, go_version, title
from lab.services.processes import STARTED, Process, start, start_load, stop_all
from lab.services.recorder import prepare, run_loads, wait_for_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.regimes.cases import Case

LINE = re.compile(rb"^gc \d+ @", re.MULTILINE)
METRICS = "127.0.0.1:17070"
OTHER_LINES = 20
MOST_S = 60
ABOUT_LOADS_S = 45
NOTE = (
    "gctrace of programs whose settings are known; regimes: the settings from when on, first_gc is"
    " the first cycle after a change (its goal may be of either); a limit or a GOGC that is off is"
    ' "off"; live_mib: median heap after marking; real: a program of others'
)


@dataclass(frozen=True, slots=True)
class Recording:
    """The files of a recording by their paths, and its row of the manifest."""

    files: dict[str, bytes]
    row: dict[str, Any]


def record(case: Case, watch: Callable[[], None] | None = None) -> Recording:
    """Runs the program of a case until it has enough cycles.

    Args:
        case: what to run.
        watch: is called all the time while it runs.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, truth = Path(folder) / "run.log", Path(folder) / "truth.txt"
        plan = {"PLAN": case.plan, "TRUTH": str(truth)} if case.plan else {}
        env = {"GODEBUG": "gctrace=1", **case.env, **plan}
        try:
            with path.open("wb") as log:
                process, program, version = (_real if case.program else _own)(case, env, log)
                _wait(process, path, case, watch or (lambda: None))
        finally:
            stop_all()
        changes = truth.read_text().splitlines() if truth.exists() else []
        text = path.read_bytes()
    kept = _kept(text, case.cycles)
    lives = sorted(int(live) for live in re.findall(rb"->(\d+) MB, ", kept))
    row = {
        "log": case.log,
        "program": program,
        "go_version": version.split()[0],
        "real": case.program is not None,
        "env": case.env,
        "plan": case.plan,
        "regimes": list(_regimes({**case.sets, **case.env}, changes)),
        "live_mib": lives[len(lives) // 2] if lives else None,
        "cycles": len(lives),
        "note": case.note,
    }
    return Recording({case.log: kept}, row)


def _own(case: Case, env: dict[str, str], log: Any) -> tuple[Process, str, str]:
    words = [*case.words.split()]
    command = [str(built("settings", case.go, case.tag)), *words]
    every = {**os.environ, "METRICS": METRICS, **env}
    child = subprocess.Popen(command, env=every, stderr=log, start_new_session=True)
    process = Process(child, time.monotonic())
    STARTED.append(process)
    tag = f" (-tags {case.tag})" if case.tag else ""
    return process, f"lab/go/settings{tag} {case.words}".strip(), f"go{case.go}"


def _real(case: Case, env: dict[str, str], log: Any) -> tuple[Process, str, str]:
    program = case.program
    assert program is not None
    if not build([program]):
        message = f"{program.name} cannot be had here"
        raise BuildError(message)
    prepare(program)
    for load in program.sidecars:
        start_load(load, 3600, subprocess.DEVNULL)
    words = (*program.words, *case.words.split())
    process = start(program.source, words, env={**program.env, **env}, stderr=log)
    if program.port and wait_for_port(program.port, process):
        with tempfile.TemporaryDirectory() as outputs:
            run_loads(program.fill, 0, Path(outputs))
        for load in program.load:
            start_load(load, ABOUT_LOADS_S, subprocess.DEVNULL)
    return process, f"{title(program.source)}: {' '.join(words)}", go_version(program.source)


def _wait(process: Process, path: Path, case: Case, watch: Callable[[], None]) -> None:
    """Waits until the program has ended or has enough cycles."""
    end = time.monotonic() + (case.seconds or MOST_S)
    while not process.ended and time.monotonic() < end:
        time.sleep(0.1)
        watch()
        if not case.plan and len(LINE.findall(path.read_bytes())) > case.cycles:
            break
    process.stop(grace_s=1)


def _kept(text: bytes, cycles: int) -> bytes:
    """Returns the log without most lines of the program, and without what follows `cycles`."""
    lines, others, traced = [], 0, 0
    for line in text.replace(str(HOME).encode(), b"/lab").splitlines():
        is_traced = bool(LINE.match(line))
        traced += is_traced
        others += not is_traced
        if traced > cycles:
            break
        if is_traced or others <= OTHER_LINES:
            lines.append(line)
    return b"\n".join(lines) + b"\n"


def _regimes(env: dict[str, str], changes: list[str]) -> Iterator[dict[str, Any]]:
    """Yields the settings of the start and after each change."""
    limit = env.get("GOMEMLIMIT", "off")
    now: dict[str, Any] = {
        "first_gc": 1,
        "from_s": 0.0,
        "gogc": _number(env.get("GOGC", "100")),
        "memory_limit_mib": _mib(limit),
        "procs": int(env.get("GOMAXPROCS", os.cpu_count() or 1)),
    }
    rows = [now]
    for line in changes:
        at, cycles, *settings = line.split()
        new: dict[str, Any] = {"first_gc": int(cycles) + 1, "from_s": float(at)}
        names = {"gogc": "gogc", "limit": "memory_limit_mib", "procs": "procs"}
        for setting in settings:
            name, _, value = setting.partition("=")
            if name in names:
                new[names[name]] = _number(value)
        if len(new) > 2:
            row = {**rows[-1], **new}
            if int(cycles) == 0:
                rows[-1] = {**row, "first_gc": 1, "from_s": 0.0}
            else:
                rows.append(row)
    yield from rows


def _number(text: str) -> float | str:
    return text if text == "off" else float(text) if "." in text else int(text)


def _mib(text: str) -> float | str:
    units = {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024}
    for unit, size in units.items():
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * size
    return "off" if text == "off" else float(text) / (1 << 20)
