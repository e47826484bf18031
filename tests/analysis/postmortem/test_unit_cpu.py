"""GC CPU as a share of the CPU time that systemd measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import logfile, records

if TYPE_CHECKING:
    from pathlib import Path


def test_runs_of_units_have_their_cpu_time_and_the_cycles_of_their_dumps() -> None:
    run = gca.read("samples/gomemlimit-paper.txt", "samples/gomemlimit-paper-inspect.txt")
    text = " ".join(str(run.summary()).split())
    for word in ("6m 24s", "1m 25s", "15.2 GiB 344", "xit code 137"):
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


def test_a_unit_without_cycles_has_its_own_figures_only(tmp_path: Path) -> None:
    text = "2026-02-03T10:00:30Z h systemd[1]: api.service: Consumed 2.500s CPU time, 512.0M memory peak."
    (found,) = gca.read(logfile(tmp_path / "log", [text])).analysis.unit_cpu
    assert (found.unit, found.cpu_s, found.memory_peak_mib) == ("api.service", 2.5, 512)
    assert (found.process, found.gc_cpu_s, found.gc_cpu_share) == (None,) * 3
    assert not found.complete
