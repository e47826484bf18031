"""Figures of a process that was read in several stretches."""

from __future__ import annotations

import gctrace_analyzer as gca
from gctrace_analyzer.fleets import figures
from tests.conftest import SAMPLES


def test_the_largest_difference_of_the_self_check_keeps_its_sign() -> None:
    spans = gca.read(SAMPLES / "steady-go1.26.log").analysis.spans
    parts = [figures.of_stretch(spans, points) for points in (0.5, -7.0, None)]
    assert figures.combined(parts)["log_check_points"] == -7.0


def test_a_seam_counts_whether_the_cycle_before_it_was_read_or_not() -> None:
    run = gca.read(SAMPLES / "leak-go1.26.log")
    spans = run.analysis.spans
    half = len(spans) // 2
    expected = run.summary().to_dict()
    later = gca.testing.read_text(
        "".join((SAMPLES / "leak-go1.26.log").read_text().splitlines(keepends=True)[-40:])
    ).analysis.spans
    known = [figures.of_stretch(rows, None) for rows in (spans[:half], spans[half:])]
    before = spans[: len(spans) - len(later)]
    unknown = [figures.of_stretch(rows, None) for rows in (before, later)]
    assert later["steps"][0] is None
    for parts in (known, unknown):
        found = figures.combined(parts)
        for name in ("span_s", "cpus", "gc_cpu_share", "gc_per_s", "missing_cycles"):
            # A part does not show how much of its pauses the runtime counts: the start decides.
            near = 1e-2 if name == "gc_cpu_share" else 1e-3
            assert abs(found[name] - expected[name]) <= near * abs(expected[name]), name
