"""Heap goals and GOGC."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from gctrace_analyzer.analysis.rules import goal
from gctrace_analyzer.testing import read_text
from tests.helpers.corpus import live
from tests.helpers.facts import facts_of, log_of, matches


def test_a_tiny_heap_is_bound_by_the_heap_minimum() -> None:
    facts = facts_of(log_of(40, start=3, end=4, live=1, goal=4))
    (finding,) = matches(goal.heap_minimum_bound, facts)
    assert finding.figures == {"cycles": 40}
    assert finding.severity == "info"
    assert not matches(goal.heap_minimum_bound, facts_of(log_of(40)))
    # The goals of most cycles are unexplained: a large block comes and goes.
    blocks = log_of(40, goal=lambda n: 4 if n % 4 == 1 else 57, live=lambda n: n % 4 and 24)
    assert not matches(goal.heap_minimum_bound, facts_of(blocks))


def test_a_tiny_heap_explains_no_cost_of_another_time() -> None:
    """Of 40 cycles, 25 are those of a tiny heap; the 15 before take nearly all of the time."""
    sizes = {
        "start": lambda n: 3 if n > 15 else 190, "end": lambda n: 4 if n > 15 else 200,
        "live": lambda n: 1 if n > 15 else 100, "goal": lambda n: 4 if n > 16 else 200,
        "background": lambda n: 1 if n > 15 else 90,
    }  # fmt: skip
    text = log_of(40, **sizes)  # type: ignore[arg-type]
    (finding,) = matches(goal.heap_minimum_bound, facts_of(text))
    assert finding.severity == "info"
    assert "of the GC CPU time." in finding.evidence
    (costly,) = matches(
        goal.heap_minimum_bound,
        facts_of(log_of(40, start=3, end=4, live=1, goal=4, background=90)),
    )
    assert costly.severity == "warn"


def test_a_heap_that_ends_above_its_goal_is_reported() -> None:
    assert not matches(goal.goal_overshoot, facts_of(log_of(60)))
    text = log_of(60, end=lambda n: int(2.4 * live(n - 1)))
    (finding,) = matches(goal.goal_overshoot, facts_of(text))
    assert finding.figures["overshoot_p95"] == pytest.approx(0.2, abs=0.02)
    assert finding.headline.startswith(
        "In 58 of 58 cycles after the start-up the heap ends more"
    )
    # Cycles of the first second are a start-up.
    of_start_up = log_of(7, every=0.1, end=lambda n: int(2.4 * live(n - 1)))
    assert not matches(goal.goal_overshoot, facts_of(of_start_up))


def test_a_heap_far_above_its_goal_is_a_warning_in_a_single_cycle() -> None:
    last = log_of(60, start=4, end=125, live=2, goal=4).splitlines(keepends=True)[-1]
    report = read_text(last).report()
    assert report.verdict is not None
    assert report.verdict.sentence.startswith(
        "The heap grew to 125 MiB while GC was marking, 31 times its goal of 4 MiB."
    )
    assert report.analysis.levels["heap_goal"] == "warn"


def test_the_overshoot_of_a_small_heap_is_rounding() -> None:
    facts = facts_of(log_of(60, start=10, end=13, live=5, goal=10))
    assert not matches(goal.goal_overshoot, facts)


def test_cycles_without_a_goal_mean_gogc_off() -> None:
    facts = facts_of(log_of(30))
    without = facts.cycles.with_columns(heap_goal_mib=pl.lit(None, pl.Int64))
    (finding,) = matches(goal.gogc_off_without_limit, replace(facts, cycles=without))
    assert finding.evidence.startswith("30 cycles had no heap goal")
    assert not matches(goal.gogc_off_without_limit, facts)


def test_levels_of_gogc_are_listed_in_their_order() -> None:
    text = log_of(120, goal=lambda n: live(n - 1) + live(n - 1) // (1 if n <= 60 else 2))
    (finding,) = matches(goal.nonconstant_gogc, facts_of(text))
    assert finding.evidence == "The settings changed: GOGC=100, then GOGC=50 from 12 s."
    assert not matches(goal.nonconstant_gogc, facts_of(log_of(120)))
    assert not matches(goal.nonconstant_gogc, facts_of(log_of(15)))


def test_a_declared_gogc_that_is_not_in_effect_is_reported() -> None:
    (finding,) = matches(goal.gogc_not_as_declared, facts_of(log_of(60), gogc=50))
    assert finding.evidence == ("GOGC=50 is stated (test), but the heap goals follow GOGC=100.")
    for declared in (100, 102):
        assert not matches(goal.gogc_not_as_declared, facts_of(log_of(60), gogc=declared))
    assert not matches(goal.gogc_not_as_declared, facts_of(log_of(60)))


def test_goals_above_a_declared_memory_limit_contradict_it() -> None:
    (finding,) = matches(
        goal.gogc_not_as_declared, facts_of(log_of(60), memory_limit_mib=150.0)
    )
    assert finding.evidence.startswith("GOMEMLIMIT=150 MiB is stated (test), but ")
    assert not matches(goal.gogc_not_as_declared, facts_of(log_of(60), memory_limit_mib=450.0))


def test_one_goal_far_above_a_declared_memory_limit_contradicts_it() -> None:
    text = log_of(7, live=lambda n: 2**n, start=lambda n: int(0.9 * 2**n), goal=lambda n: 2**n)
    (finding,) = matches(goal.gogc_not_as_declared, facts_of(text, memory_limit_mib=100.0))
    assert finding.evidence.endswith("the heap goal is above it in 1 cycle, up to 128 MiB.")


def test_goals_that_one_large_allocation_raised_do_not_contradict_a_limit() -> None:
    """Cycles 6 to 12 of a program under GOMEMLIMIT=256MiB, with blocks of 128 MiB."""
    sizes = (642, 514, 386, 258, 130)
    text = log_of(
        5,
        live=lambda n: sizes[n - 1],
        start=lambda n: sizes[max(n - 2, 0)],
        goal=lambda n: sizes[max(n - 2, 0)],
    )
    assert not matches(goal.gogc_not_as_declared, facts_of(text, memory_limit_mib=256.0))


def test_goals_at_a_live_heap_above_the_limit_do_not_contradict_it() -> None:
    """The goal is never below the live heap, whatever the limit."""
    text = log_of(60, live=lambda n: 100 + n, start=lambda n: 99 + n, goal=lambda n: 99 + n)
    assert not matches(goal.gogc_not_as_declared, facts_of(text, memory_limit_mib=120.0))


def test_no_goal_starts_a_forced_cycle() -> None:
    text = log_of(40, start=1, end=1, live=1, goal=4).replace(" P\n", " P (forced)\n")
    assert not matches(goal.heap_minimum_bound, facts_of(text))


def test_a_high_gogc_is_not_said_to_cost_little_if_the_heap_was_large_at_times() -> None:
    small = {"goal": 4, "start": 3, "end": 4}
    for largest, said in ((1, "only a few MiB"), (200, "up to 600 MiB more")):
        text = log_of(60, live=lambda n, most=largest: most if n == 60 else 1, **small)
        (finding,) = matches(goal.heap_minimum_bound, facts_of(text))
        assert said in finding.advice


def test_a_limit_that_explains_the_goals_as_well_as_a_low_gogc_is_named() -> None:
    text = log_of(60, live=lambda n: 100 + n % 3, goal=130, start=122, background=60)
    # The first goal alone would show the limit.
    finding = read_text(text.partition("\n")[2]).findings().filter(id="GC045")
    assert "or a memory limit of 136 to 167 MiB leaves no more" in finding["evidence"][0]
    assert finding["advice"][0].startswith("Specify which of them the program runs with")


def test_a_higher_gogc_is_advised_without_the_limit_that_may_set_the_goals() -> None:
    """Under that limit, a higher GOGC alone would change nothing."""
    text = log_of(
        80,
        every=0.06,
        live=lambda n: 36 + (n % 9 == 0),
        start=40,
        end=42,
        goal=42,
        background=8,
    )
    verdict = read_text("".join(text.splitlines(keepends=True)[20:])).report().verdict
    assert verdict is not None
    assert "GOGC=" in verdict.action
    assert "GOMEMLIMIT=off" in verdict.action


def test_goals_of_a_known_limit_just_below_those_of_gogc_do_not_contradict_gogc() -> None:
    """Measured: GOGC=100 GOMEMLIMIT=81MiB, and 13 MiB of memory outside the heap."""
    live = (11, 26, 36, 35, 36, 35, 35, 36, 36, 35, 36, 35)
    goals = (4, 22, 54, 69, 69, 69, 69, 68, 68, 68, 68, 68)
    starts = (3, 19, 45, 59, 59, 59, 59, 64, 64, 64, 65, 65)
    columns = {"live": live, "goal": goals, "start": starts, "end": starts}
    sizes = {name: lambda n, values=values: values[n - 1] for name, values in columns.items()}
    text = log_of(12, every=0.3, **sizes)
    assert matches(goal.gogc_not_as_declared, facts_of(text, gogc=100.0))
    limited = facts_of(text, gogc=100.0, memory_limit_mib=81.0)
    assert not matches(goal.gogc_not_as_declared, limited)
