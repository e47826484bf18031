"""Loads of programs that do the same in every cycle, so that their figures are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gctrace_analyzer.advise.prediction.load import load_of
from gctrace_analyzer.testing import read_text

if TYPE_CHECKING:
    import polars as pl

    from gctrace_analyzer.advise.prediction.load import Load

LINE = (
    "gc {n} @{s:.3f}s 1%: {sweep_term}+{mark}+{mark_term} ms clock, "
    "{sweep_cpu}+{assist}/{background}/{idle}+{term_cpu} ms cpu, {start}->{end}->{live} MB, "
    "{goal} MB goal, {stacks} MB stacks, {globals} MB globals, {procs} P"
)
OLD_LINE = LINE.replace(", {stacks} MB stacks, {globals} MB globals", "")
STEADY: dict[str, Any] = {
    "sweep_term": 0.02, "mark": 10, "mark_term": 0.02, "sweep_cpu": 0.04, "assist": 1,
    "background": 5, "idle": 0, "term_cpu": 0.04, "start": 30, "end": 34, "live": 20,
    "goal": 40, "stacks": 0, "globals": 0, "procs": 2,
}  # fmt: skip
"""Every cycle allocates 10 MiB before and 4 MiB during marking; GOGC=100 sets the goal."""


def cycles_of(
    count: int = 41, every: float = 0.5, line: str = LINE, **values: Any
) -> pl.DataFrame:
    """The cycles of a program; a value may be a function of the cycle's number."""
    lines = [
        line.format(
            n=n,
            s=n * every,
            **{k: v(n) if callable(v) else v for k, v in {**STEADY, **values}.items()},
        )
        for n in range(1, count + 1)
    ]
    return read_text("\n".join(lines) + "\n").cycles


def steady_load(cpus: float | None = None, **values: Any) -> Load:
    """The load of such a program."""
    found = load_of(cycles_of(**values), cpus)
    assert found is not None
    return found
