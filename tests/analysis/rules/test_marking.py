"""Roots, idle marking and slow marking."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from gctrace_analyzer.analysis.rules import marking
from tests.helpers.facts import facts_of, log_of, matches


def test_large_stacks_and_globals_are_notes() -> None:
    text = log_of(40)
    facts = facts_of(text.replace("0 MB stacks", "30 MB stacks"))
    (finding,) = matches(marking.large_stacks, facts)
    assert finding.figures["stacks_mib"] == 30
    assert not matches(marking.large_globals, facts)
    (finding,) = matches(
        marking.large_globals, facts_of(text.replace("0 MB globals", "30 MB globals"))
    )
    assert finding.evidence.startswith("Global variables of 30 MiB")
    assert finding.severity == "info"
    small = facts_of(text.replace("0 MB stacks", "1 MB stacks"))
    assert not matches(marking.large_stacks, small)


def test_stacks_that_exceed_the_live_heap_are_a_warning_if_gc_is_costly() -> None:
    text = log_of(40)
    for size, costly, severity in (
        (120, 0.001, "warn"),
        (90, 0.001, "info"),
        (120, 0.10, "info"),
    ):
        facts = facts_of(text.replace("0 MB stacks", f"{size} MB stacks"))
        limits = replace(facts.thresholds, gc_cpu_warn=costly)
        (finding,) = matches(marking.large_stacks, replace(facts, thresholds=limits))
        assert finding.severity == severity


def test_a_log_without_stacks_has_no_finding_about_them() -> None:
    text = log_of(40).replace(", 0 MB stacks, 0 MB globals", "")
    assert not matches(marking.large_stacks, facts_of(text))


def test_slow_marking_is_a_warning() -> None:
    facts = facts_of(log_of(40, every=3, mark=1500, background=2500))
    (finding,) = matches(marking.low_mark_throughput, facts)
    assert finding.figures["mib_per_cpu_s"] < 100
    assert not matches(marking.low_mark_throughput, facts_of(log_of(40, every=3, mark=150)))


def test_mark_throughput_counts_stacks_and_globals_if_they_are_known() -> None:
    """101 MiB in 1.0101 s of CPU are less than 100 MiB per CPU second."""
    facts = facts_of(log_of(30, every=2, mark=200, live=100))
    known = {"assist_cpu_ms": 0.0, "background_cpu_ms": 1010.1, "idle_cpu_ms": 0.0}

    def found(**columns: float | None) -> int:
        literals = [pl.lit(value).alias(name) for name, value in (known | columns).items()]
        cycles = facts.cycles.with_columns(literals)
        return len(matches(marking.low_mark_throughput, replace(facts, cycles=cycles)))

    assert found() == found(stacks_mib=None) == found(globals_mib=None) == 1
    assert found(stacks_mib=1) == found(globals_mib=1) == 0
    assert found(background_cpu_ms=1009.9) == 0
    assert found(assist_cpu_ms=500.0, background_cpu_ms=500.0, idle_cpu_ms=20.0) == 1
    assert found(background_cpu_ms=0.0) == 0


@pytest.mark.parametrize(
    ("mark_ms", "background_ms", "found"),
    [(1000.0, 99.9, 1), (999.9, 99.9, 0), (1000.0, 100.1, 0)],
)
def test_marking_that_got_no_cpu_is_a_warning(
    mark_ms: float, background_ms: float, found: int
) -> None:
    """One cycle is enough: its marking waited, whatever the others did."""
    spent = {"assist_cpu_ms": 0.0, "background_cpu_ms": background_ms, "idle_cpu_ms": 0.0}
    columns = spent | {"concurrent_mark_ms": mark_ms}
    facts = facts_of(log_of(1, live=20))
    cycles = facts.cycles.with_columns([pl.lit(of).alias(name) for name, of in columns.items()])
    matched = matches(marking.low_mark_throughput, replace(facts, cycles=cycles))
    assert [each.severity for each in matched] == ["warn"] * found


@pytest.mark.parametrize("is_old", [True, False])
def test_slow_marking_of_an_old_go_may_be_of_roots_that_it_does_not_print(
    *, is_old: bool
) -> None:
    text = log_of(20, mark=200, background=300, live=4, start=5, end=5)
    if is_old:
        text = text.replace(" 0 MB stacks, 0 MB globals,", "")
    (finding,) = matches(marking.low_mark_throughput, facts_of(text))
    assert ("Large goroutine stacks and globals" in finding.advice) == is_old
