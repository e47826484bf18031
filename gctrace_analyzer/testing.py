"""Helpers for tests of Go programs, and for tests of code that uses this package.

A pytest fixture runs Go programs with gctrace on. In the topmost `conftest.py`:

    pytest_plugins = ["gctrace_analyzer.testing"]

and in a test:

    def test_the_importer_spends_little_cpu_on_gc(gctrace):
        run = gctrace([gctrace.build("./cmd/importer"), "testdata/big.csv"], gogc=100)
        checks = run.check("gc_cpu_share>10%", "finding:bad")
        assert not [str(check) for check in checks if check.held is not False]

`held` is None if the log lacks the figure: nothing was checked then.

`format_cycle` formats a row of the cycles table as a line of gctrace; `cycles()` is a
hypothesis strategy for such rows. pytest is needed only for the fixture, hypothesis only for
the strategy.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, TypeVar, cast

from gctrace_analyzer.api import read
from gctrace_analyzer.ingest.gctrace.grammar import SHAPES, Field, Optional
from gctrace_analyzer.program import Gctrace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from hypothesis.strategies import DrawFn, SearchStrategy

    from gctrace_analyzer.run import Run
    from gctrace_analyzer.schema import Row

__all__ = [
    "Gctrace",
    "cycles",
    "format_cycle",
    "format_ms",
    "gctrace",
    "read_text",
]

_Function = TypeVar("_Function", bound="Callable[..., object]")


def _fixture(function: _Function) -> _Function:
    """Makes a pytest fixture if pytest is installed; nothing else here needs it."""
    try:
        import pytest
    except ModuleNotFoundError:
        return function
    return cast("_Function", pytest.fixture(function))


@_fixture
def gctrace(tmp_path: Path) -> Gctrace:
    """Runs Go programs with gctrace on and returns their `Run`."""
    return Gctrace(tmp_path)


def read_text(text: str | bytes) -> Run:
    """Reads a log from a string and returns its run.

    Raises:
        GctraceError: as `gctrace_analyzer.read`.
    """
    return read(io.BytesIO(text.encode() if isinstance(text, str) else text))


def format_ms(nanoseconds: int) -> str:
    """Returns a duration in milliseconds as the runtime prints it.

    Source: fmtNSAsMS in runtime/mgc.go: whole milliseconds from 10 ms on, else two significant
    digits and at most three decimals, truncated.

    >>> format_ms(39_900_000), format_ms(9_990_000), format_ms(791_000), format_ms(4_200)
    ('39', '9.9', '0.79', '0.004')
    """
    if nanoseconds >= 10_000_000:
        return str(nanoseconds // 1_000_000)
    microseconds = nanoseconds // 1000
    if microseconds == 0:
        return "0"
    decimals = 3
    while microseconds >= 100:
        microseconds //= 10
        decimals -= 1
    digits = f"{microseconds:0{decimals + 1}d}"
    return f"{digits[:-decimals]}.{digits[-decimals:]}"


def format_cycle(row: Mapping[str, Any]) -> str:
    """Returns the gctrace line for a row of the cycles table (Go 1.6 and later)."""
    shape = SHAPES[row["format"]]
    text = ""
    for part in shape.parts:
        if isinstance(part, Optional):
            text += "".join(map(str, part.parts)) if part.flag and row[part.flag] else ""
        elif isinstance(part, Field):
            text += _format_field(part, row[part.name])
        else:
            text += part
    return text


def _format_field(part: Field, value: float) -> str:
    if part.name == "start_s":
        return f"{value:.3f}"
    return format_ms(round(value * 1e6)) if part.kind == "dec" else str(value)


def cycles() -> SearchStrategy[Row]:
    """Returns a strategy for rows of the cycles table, as Go 1.6 or later can print them."""
    from hypothesis import strategies as st

    def duration(most_ns: float) -> SearchStrategy[float]:
        """Draws only durations that stay the same when truncated to two digits."""
        return st.integers(0, int(most_ns)).map(lambda ns: float(format_ms(ns)))

    def cpu(wall_ms: float, procs: int) -> SearchStrategy[float]:
        return duration(wall_ms * 1e6 * procs)

    size = st.integers(0, 1 << 26)

    @st.composite
    def rows(draw: DrawFn) -> Row:
        shape = draw(st.sampled_from(["gc16", "gc18", "gc26"]))
        procs = draw(st.integers(1, 1024))
        first, mark, second = (draw(duration(10**11)) for _ in range(3))
        live = draw(size)
        start = draw(size)
        end = draw(st.integers(max(start, live), start + live))
        roots = draw(st.integers(0, end)) if shape != "gc16" else None
        row: Row = {
            "format": shape,
            "gc_num": draw(st.integers(1, 10**6)),
            "start_s": draw(st.integers(0, 10**11)) / 1000,
            "gc_cpu_since_start_pct": draw(st.integers(0, 100)),
            "stw_sweep_term_ms": first,
            "concurrent_mark_ms": mark,
            "stw_mark_term_ms": second,
            "stw_sweep_term_cpu_ms": float(format_ms(round(first * 1e6) * procs)),
            "assist_cpu_ms": draw(cpu(mark, procs)),
            "background_cpu_ms": draw(cpu(mark, procs)),
            "idle_cpu_ms": draw(cpu(mark, procs)),
            "stw_mark_term_cpu_ms": float(format_ms(round(second * 1e6) * procs)),
            "heap_start_mib": start,
            "heap_end_mib": end,
            "heap_live_mib": live,
            "heap_goal_mib": draw(size),
            "stacks_mib": roots,
            "globals_mib": roots,
            "procs": procs,
            "leak_check": shape == "gc26",
        }
        # A forced cycle with no concurrent phase has stale CPU times, which are not read.
        return {**row, "forced": draw(st.booleans()) and mark > 0}

    return rows()
