"""The logs of the corpus, with the facts known about them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import gctrace_analyzer as gca
from tests.conftest import CORPUS

if TYPE_CHECKING:
    from pathlib import Path

_INPUTS = CORPUS / "inputs"
INPUTS = sorted(path for path in _INPUTS.glob("*/*") if not path.name.endswith(".expect.json"))


def named(path: Path) -> str:
    return path.relative_to(_INPUTS).as_posix()


def expectation(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.with_name(path.name + ".expect.json").read_text())
    return found


def read(path: Path) -> gca.Run:
    options = {
        name: value
        for name, value in expectation(path)["read_options"].items()
        if name in ("year", "tz")
    }
    return gca.read(path, **options)


RUNS = {
    run["dir"]: run.get("facts")
    for run in json.loads((CORPUS / "gctrace" / "manifest.json").read_text())["runs"]
}


LINE = (
    "gc {n} @{s:.3f}s {percent}%: 0.02+{mark}+0.02 ms clock, 0.04+{assist}/{background}/0+0.04 ms cpu, "
    "{start}->{end}->{live} MB, {goal} MB goal, 0 MB stacks, 0 MB globals, {procs} P"
)


def live(n: int) -> int:
    """Returns a live heap that varies a little."""
    return 92 + 7 * n % 17


def log_of(count: int, *, every: float = 0.2, **values: Any) -> str:
    """Returns a log of `count` cycles; a value may be a function of the cycle's number."""
    fields = {
        "percent": 0,
        "mark": 5,
        "assist": 0.1,
        "background": 2,
        "start": 175,
        "end": 180,
        "live": live,
        "goal": lambda n: 2 * live(n - 1),
        "procs": 2,
        **values,
    }
    lines = []
    for n in range(1, count + 1):
        row = {name: value(n) if callable(value) else value for name, value in fields.items()}
        lines.append(LINE.format(n=n, s=n * every, **row))
    return "\n".join(lines) + "\n"


def run_of(tmp_path: Path, count: int, every: float = 0.2, **values: Any) -> gca.Run:
    """Returns the run of such a log."""
    path = tmp_path / "log"
    path.write_text(log_of(count, every=every, **values))
    return gca.read(path)
