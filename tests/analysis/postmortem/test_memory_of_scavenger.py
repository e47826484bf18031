"""Memory that only the scavenger's lines and sizes of the process show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.advise.verdict import verdict
from tests.helpers.logs import logfile

if TYPE_CHECKING:
    from pathlib import Path

    from gctrace_analyzer.advise.verdict import Verdict


def log(after: str, *, live: int = 2, new: bool = False) -> list[str]:
    """A program with a heap of a few MiB, and a line after its 20th cycle."""
    other = ", 0 MB stacks, 0 MB globals" if new else ""
    lines = [
        f"gc {gc} @{3 * gc}.100s 0%: 0.02+2.1+0.03 ms clock, 0.17+0.31/1.1/0.9+0.26 ms cpu, "
        f"{2 * live}->{2 * live}->{live} MB, {2 * live + 1} MB goal{other}, 8 P"
        for gc in range(1, 25)
    ]
    return [*lines[:20], after, *lines[20:]]


def shown(tmp_path: Path, lines: list[str]) -> Verdict:
    run = gca.read(logfile(tmp_path / "run.log", lines))
    found = verdict(run.analysis, run.advice)
    assert found is not None
    return found


def test_idle_memory_of_a_scavenger_line_is_in_the_verdict(tmp_path: Path) -> None:
    idle = "scvg1: inuse: 5, idle: 1000, sys: 1005, released: 0, consumed: 1005 (MB)"
    found = shown(tmp_path, log(idle))
    assert found.finding == "GC037"
    assert "997 of 1,005 MiB are idle" in found.sentence
    assert "debug.FreeOSMemory" in found.action
    # These lines are older than GOMEMLIMIT.
    assert "memory limit" not in found.action


@pytest.mark.parametrize("line", [
    "scvg1: inuse: 5, idle: 1000, sys: 1005, released: 990, consumed: 15 (MB)",
    "scvg1: inuse: 9, idle: 40, sys: 49, released: 0, consumed: 49 (MB)",
    "scvg1: 3 MB released",
])  # fmt: skip
def test_returned_or_little_memory_is_no_problem(tmp_path: Path, line: str) -> None:
    found = shown(tmp_path, log(line))
    assert found.finding is None
    assert "idle" not in found.sentence


def test_spans_in_use_without_objects_are_in_the_verdict(tmp_path: Path) -> None:
    in_use = "scvg1: inuse: 1000, idle: 5, sys: 1005, released: 0, consumed: 1005 (MB)"
    small = log(in_use)
    grown = [small[0].replace("4->4->2 MB, 5", "999->999->2 MB, 999"), *small[1:]]
    assert (
        "At least 995 MiB of the heap in use hold no objects" in shown(tmp_path, grown).sentence
    )
    # The heap was never that large, so an explanation quotes the line of another program.
    assert shown(tmp_path, small).finding is None
    assert "995 MiB" in shown(tmp_path, small[1:]).sentence


@pytest.mark.parametrize(("live", "found"), [(20, "GC037"), (1, None)])
def test_the_share_in_use_and_the_live_heap_bound_what_is_idle(
    tmp_path: Path, live: int, found: str | None
) -> None:
    """3 % in use may be 4 %: of 20 MiB live, at least 480 MiB more are kept, 459 beyond the goal."""
    line = "scav 0 KiB work (bg), 0 KiB work (eager), 1024 KiB now, 3% util"
    result = shown(tmp_path, log(line, live=live, new=True))
    assert result.finding == found
    assert ("At least 459 MiB are idle" in result.sentence) is (found is not None)


def test_the_heap_of_the_cycles_bounds_the_heap_in_resident_memory(tmp_path: Path) -> None:
    traced = logfile(tmp_path / "run.log", [*log("")])
    status = logfile(tmp_path / "status", ["Name:\tapi", "VmRSS:\t 1048576 kB"])
    for inputs in ((traced, status), (status, traced)):
        notes = " ".join(gca.read(*inputs).summary().warnings)
        assert "1,024 MiB are resident; the heap of the GC cycles in the input was 4" in notes
