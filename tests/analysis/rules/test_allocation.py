"""Allocation rates."""

from __future__ import annotations

from gctrace_analyzer.analysis.rules import allocation
from tests.helpers.facts import facts_of, log_of, matches


def test_a_program_that_allocates_slowly_while_gc_marks_is_slowed_down() -> None:
    slow = {"every": 0.02, "mark": 10, "background": 5, "goal": 200}
    (finding,) = matches(
        allocation.mutator_slowed_in_gc, facts_of(log_of(80, start=178, end=180, **slow))
    )
    assert finding.figures["alloc_rate_ratio"] < 0.5
    steady = facts_of(log_of(80, start=130, end=180, **slow))
    assert not matches(allocation.mutator_slowed_in_gc, steady)


def test_without_marking_there_is_no_slowdown() -> None:
    facts = facts_of(log_of(80, mark=0))
    assert not matches(allocation.mutator_slowed_in_gc, facts)
