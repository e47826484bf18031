"""GC CPU as a share of the CPU time that systemd measured."""

from __future__ import annotations

import pytest

import gctrace_analyzer as gca


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
