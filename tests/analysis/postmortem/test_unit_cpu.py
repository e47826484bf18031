"""GC CPU as a share of the CPU time that systemd measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from gctrace_analyzer.analysis.postmortem.unit_cpu import compared
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import logfile, records

if TYPE_CHECKING:
    from pathlib import Path


def test_runs_with_the_same_work_and_far_more_gc_are_compared() -> None:
    run = gca.read("samples/gomemlimit-paper.txt", "samples/gomemlimit-paper-inspect.txt")
    text = " ".join(str(run.summary()).split())
    for word in ("344 instead of 31 GC cycles", "6m 24s instead of 1m 25s", "xit code 137"):
        assert word in text


def test_gc_cpu_is_a_share_of_the_cpu_time_that_the_unit_used() -> None:
    report = gca.read("samples/oom-journal.jsonl").report()
    (found,) = report.analysis.unit_cpu
    assert found.cpu_s == pytest.approx(1.217)
    assert found.gc_cpu_share == pytest.approx(found.gc_cpu_s / 1.217)  # type: ignore[operator]
    assert found.complete


@pytest.mark.parametrize(
    ("lines", "complete"),
    [([1, 2, 3, 4], True), ([2, 3, 4], False), ([1, 2, 4], False)],
)
def test_gc_cpu_of_a_log_with_missing_lines_is_not_that_of_the_whole_unit(
    lines: list[int], complete: bool
) -> None:
    every = records(4)
    own = [f"2026-02-03T10:00:{n:02}Z h api[7]: {every[n - 1]}\n" for n in lines]
    done = "2026-02-03T10:00:30Z h systemd[1]: api.service: Consumed 2.500s CPU time.\n"
    (found,) = read_text("".join([*own, done])).analysis.unit_cpu
    assert found.cpu_s == 2.5
    assert found.complete == complete
    # Each cycle: 0.037 + 0.058 + 0.035 + 0.11 ms, each a little more than printed; a log with gaps
    # shows less well how much of both pauses (0.072 ms × 2) the runtime counts.
    each_ms = found.gc_cpu_s * 1000 / len(lines)  # type: ignore[operator]
    # Durations are corrected for truncation, as in the summary.
    assert 0.094 <= each_ms <= 0.2486
    if complete:
        assert each_ms == pytest.approx(0.2485, rel=0.001)
    assert found.gc_cpu_share == pytest.approx(found.gc_cpu_s / 2.5)  # type: ignore[operator]


def frame(table: str, *rows: dict[str, Any]) -> pl.DataFrame:
    types = schema.polars_schema(table)
    return pl.DataFrame([{**dict.fromkeys(types), **row} for row in rows], schema=types)


def sentences(
    mib: tuple[float, float], num_gc: tuple[int, int], cpu_s: tuple[float | None, float | None]
) -> list[str]:
    """Returns what is said about two containers that allocated so much in so many cycles."""
    names = ("a" * 64, "b" * 64)
    dumps = [
        {"ident": name[:12], "total_alloc_bytes": int(size * 2**20), "num_gc": number}
        for name, size, number in zip(names, mib, num_gc, strict=True)
    ]
    events = [
        {"event": "consumed", "container_id": name, "cpu_s": spent}
        for name, spent in zip(names, cpu_s, strict=True)
    ]
    tables = {
        "memstats": frame("memstats", *dumps),
        "unit_events": frame("unit_events", *events),
    }
    return list(compared(tables))


def test_the_same_work_with_three_times_the_cycles_is_worth_a_sentence() -> None:
    (text,) = sentences((1000, 1000), (10, 30), (5.0, 20.0))
    assert text == (
        "For the same work (1,000 MiB allocated) bbbbbbbbbbbb needed 30 instead of 10 GC cycles "
        "and 20 s instead of 5.0 s of CPU time: something kept its heap goal low, such as a "
        "memory limit (GOMEMLIMIT) below what the program needs."
    )
    (text,) = sentences((1000, 1000), (10, 30), (None, 20.0))
    assert "CPU time" not in text
    assert len(sentences((1000, 1000), (30, 10), (5.0, 20.0))) == 1


@pytest.mark.parametrize(
    ("mib", "num_gc", "found"),
    [
        ((1000, 1000), (10, 29), 0),
        ((980, 1000), (10, 30), 1),
        ((979, 1000), (10, 30), 0),
        ((1020, 1000), (10, 30), 1),
        ((1021, 1000), (10, 30), 0),
        ((1000, 1000), (0, 30), 0),
    ],
)
def test_other_work_or_fewer_cycles_are_not_compared(
    mib: tuple[float, float], num_gc: tuple[int, int], found: int
) -> None:
    assert len(sentences(mib, num_gc, (5.0, 20.0))) == found


def test_a_unit_without_cycles_has_its_own_figures_only(tmp_path: Path) -> None:
    text = "2026-02-03T10:00:30Z h systemd[1]: api.service: Consumed 2.500s CPU time, 512.0M memory peak."
    (found,) = gca.read(logfile(tmp_path / "log", [text])).analysis.unit_cpu
    assert (found.unit, found.cpu_s, found.memory_peak_mib) == ("api.service", 2.5, 512)
    assert (found.process, found.gc_cpu_s, found.gc_cpu_share, found.num_gc) == (None,) * 4
    assert not found.complete
