"""What changed when a state began."""

from __future__ import annotations

import polars as pl

from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.analysis.trend import changes_at
from tests.helpers.facts import facts_of, log_of


def grown(n: int) -> int:
    return 100 if n <= 30 else 200


def test_a_larger_live_heap_is_named() -> None:
    text = log_of(
        60,
        start=lambda n: 2 * grown(n) - 10,
        end=lambda n: 2 * grown(n),
        live=grown,
        goal=lambda n: 2 * grown(n - 1),
    )
    cycles = facts_of(text).cycles
    start_s = cycles["start_s"][30]
    assert "the live heap rose from 90 MiB to 190 MiB" in changes_at(cycles, start_s, DEFAULT)


def test_a_smaller_live_heap_is_not_a_cause() -> None:
    def shrunk(n: int) -> int:
        return 300 - grown(n)

    text = log_of(
        60,
        start=lambda n: 2 * shrunk(n) - 10,
        end=lambda n: 2 * shrunk(n),
        live=shrunk,
        goal=lambda n: 2 * shrunk(n - 1),
    )
    cycles = facts_of(text).cycles
    found = changes_at(cycles, cycles["start_s"][30], DEFAULT)
    assert not any("live heap" in each for each in found)


def test_slow_growth_is_no_change_at_a_time() -> None:
    text = log_of(
        60, live=lambda n: 10 * n, start=lambda n: 10 * n + 5, end=lambda n: 10 * n + 9
    )
    cycles = facts_of(text).cycles
    assert changes_at(cycles, cycles["start_s"][25], DEFAULT) == []


def test_nothing_is_said_without_enough_cycles_on_both_sides() -> None:
    cycles = facts_of(log_of(20)).cycles
    assert changes_at(cycles, cycles["start_s"][1], DEFAULT) == []


def test_a_heap_without_room_is_no_question_of_allocation() -> None:
    """Cycles that follow each other at once count the same allocation in less time."""
    text = log_of(60, live=lambda n: min(3 * n, 90), start=94, end=95, goal=95)
    cycles = facts_of(text).cycles
    rate = [100.0] * 30 + [300.0] * 30
    cycles = cycles.with_columns(alloc_mib_per_s=pl.Series(rate))
    assert changes_at(cycles, cycles["start_s"][30], DEFAULT) == []
