"""The memory limit: bound, tight, thrashing, without headroom."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from gctrace_analyzer.analysis.rules import limit
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.corpus import live
from tests.helpers.facts import facts_of, facts_of_run, log_of, matches

CONSTANT_GOAL: dict[str, Any] = {"live": lambda n: 90 + 12 * n % 31, "start": 125, "end": 130}


def test_a_constant_goal_above_a_moving_live_heap_is_the_limits() -> None:
    facts = facts_of(log_of(60, goal=170, **CONSTANT_GOAL))
    (bound,) = matches(limit.limit_bound, facts)
    assert bound.figures["implied_limit_low_mib"] == 170
    assert not matches(limit.limit_tight, facts)


def test_goals_at_the_live_heap_do_not_prove_a_limit() -> None:
    """Above its limit the goal is the live heap itself."""
    above = gca.read(SAMPLES / "thrash-go1.19.log")
    (bound,) = matches(limit.limit_bound, facts_of_run(above))
    proven = bound.figures["implied_limit_low_mib"]
    assert proven is None or proven <= 70
    known = gca.read(SAMPLES / "thrash-go1.19.log", memory_limit="70MiB")
    (bound,) = matches(limit.limit_bound, facts_of_run(known))
    assert "at least" not in bound.evidence


@pytest.mark.parametrize(("goal", "severity"), [(140, "warn"), (125, "bad")])
def test_little_headroom_under_the_limit_is_a_warning_and_then_bad(
    goal: int, severity: str
) -> None:
    text = log_of(60, every=0.1, goal=goal, **CONSTANT_GOAL)
    (finding,) = matches(limit.limit_tight, facts_of(text))
    assert finding.severity == severity


def test_little_headroom_is_no_problem_where_gc_costs_little() -> None:
    """As with a low GOGC."""
    text = log_of(60, every=2, goal=140, **CONSTANT_GOAL)
    (finding,) = matches(limit.limit_tight, facts_of(text))
    assert finding.severity == "info"
    verdict = read_text(text).report().verdict
    assert verdict is not None
    assert "not a problem" in verdict.sentence


@pytest.mark.parametrize(
    ("goal", "memory_limit_mib", "part"),
    [
        (140, None, None),
        (140, 160.0, "may take 140 of 160 MiB"),
        # Goals above a limit are not its own.
        (140, 130.0, None),
    ],
)
def test_what_takes_the_rest_of_a_known_limit_is_said(
    goal: int, memory_limit_mib: float | None, part: str | None
) -> None:
    settings = {} if memory_limit_mib is None else {"memory_limit_mib": memory_limit_mib}
    facts = facts_of(log_of(60, goal=goal, **CONSTANT_GOAL), **settings)
    (finding,) = matches(limit.limit_tight, facts)
    assert ("may take" in finding.evidence) == (part is not None)
    assert (part or "") in finding.evidence


def test_a_limit_that_sets_few_goals_does_not_explain_how_often_gc_runs() -> None:
    """A burst that the limit held down; before and after it, GOGC=100 sets the goals."""
    tight = range(80, 100)
    text = log_of(
        200,
        every=0.05,
        background=20,
        live=lambda n: 128 if n in tight else 40 + 12 * n % 31,
        goal=lambda n: 140 if n - 1 in tight else 2 * (40 + 12 * (n - 1) % 31) + 1,
        start=60,
        end=62,
    )
    (finding,) = matches(limit.limit_tight, facts_of(text))
    assert finding.severity == "info"
    assert finding.evidence.startswith("In 20 of 200 cycles GOMEMLIMIT left the live heap ")


def test_a_goal_that_follows_gogc_is_not_the_limits() -> None:
    facts = facts_of(log_of(60))
    for rule in (limit.limit_bound, limit.limit_tight, limit.limit_thrash):
        assert not matches(rule, facts)


def test_thrashing_and_the_limiter_of_a_real_log() -> None:
    facts = facts_of_run(gca.read(SAMPLES / "thrash-go1.19.log"))
    (thrash,) = matches(limit.limit_thrash, facts)
    assert thrash.severity == "bad"
    assert "goal was at or below the live heap" in thrash.evidence
    (limiter,) = matches(limit.cpu_limiter_likely, facts)
    assert "was active" in limiter.evidence
    assert not matches(limit.cpu_limiter_likely, facts_of(log_of(60)))


def test_a_long_time_without_a_cycle_under_a_limit_means_gogc_off() -> None:
    text = log_of(60, every=190, goal=170, **CONSTANT_GOAL)
    (finding,) = matches(limit.gogc_off_idle, facts_of(text))
    assert finding.evidence.startswith("No GC cycle ran for 3m 10s")
    assert not matches(limit.gogc_off_idle, facts_of(log_of(60, every=190, live=live)))


def test_a_limit_close_to_the_containers_is_a_warning() -> None:
    def found(limit_mib: float | None, container_mib: float | None) -> int:
        known = {"memory_limit_mib": limit_mib, "container_limit_mib": container_mib}
        facts = facts_of(log_of(5), **known)
        return len(matches(limit.limit_without_headroom, facts))

    assert found(1000, 1024) == 1
    assert found(900, 1024) == 0
    assert found(None, 1024) == found(1000, None) == 0


@pytest.mark.parametrize(("container", "found"), [("159m", 1), ("200m", 0)])
def test_a_heap_as_large_as_the_container_is_a_problem_in_two_cycles(
    container: str, found: int
) -> None:
    text = f"$ docker run -m {container} app\n{log_of(2, live=80, end=160)}"
    found_now = read_text(text).findings().filter(id="GC018")
    assert found_now["severity"].to_list() == ["bad"] * found


@pytest.mark.parametrize(
    ("settings", "live", "said"),
    [
        ("", 80, "or set GOMEMLIMIT=144MiB: it helps if"),
        ("", 150, "the live heap alone was up to 150 MiB"),
        ("-e GOMEMLIMIT=100MiB", 80, "GOMEMLIMIT is below it"),
    ],
)
def test_no_limit_is_advised_that_the_live_heap_exceeds(
    settings: str, live: int, said: str
) -> None:
    text = f"$ docker run -m 160m {settings} app\n{log_of(9, live=live, end=165)}"
    (advice,) = read_text(text).findings().filter(id="GC018")["advice"]
    assert said in advice


@pytest.mark.parametrize(
    ("fill", "thrashes", "limited", "word"),
    [
        (1.0, True, False, "was active"),
        (1.0, False, True, "was active"),
        (0.6, True, True, "was probably active"),
        (0.99, False, True, "was probably active"),
        (0.59, True, True, None),
        (1.0, False, False, None),
        (None, True, True, None),
    ],
)
def test_a_full_bucket_counts_with_a_goal_of_the_limit_or_thrashing(
    fill: float | None, thrashes: bool, limited: bool, word: str | None
) -> None:
    facts = facts_of(log_of(60, goal=125, **CONSTANT_GOAL) if limited else log_of(60))
    thrash = facts_of_run(gca.read(SAMPLES / "thrash-go1.19.log")).episodes
    filled = pl.lit(fill, pl.Float64)
    facts = replace(
        facts,
        cycles=facts.cycles.with_columns(limiter_fill=filled),
        episodes=thrash if thrashes else thrash.clear(),
    )
    found = matches(limit.cpu_limiter_likely, facts)
    assert len(found) == (word is not None)
    assert all(f"limiter {word}:" in each.evidence for each in found)
    # What follows from it is no more certain.
    assert all(
        ("probably stops" in each.headline) == ("probably" in str(word)) for each in found
    )


def thrashing(*spans: tuple[float, float], **columns: Any) -> pl.DataFrame:
    rows = [
        {"kind": "limit-thrash", "start_s": begin, "end_s": end, "reason": f"Reason {n}.",
         "gc_cpu_share": 0.5, "gc_per_s": 12.34, "source": "log", "line_no": n,
         **{name: values[n] for name, values in columns.items()}}
        for n, (begin, end) in enumerate(spans)
    ]  # fmt: skip
    types = schema.polars_schema("episodes")
    return pl.DataFrame([{**dict.fromkeys(types), **row} for row in rows], schema=types)


def test_several_times_of_thrashing_are_one_finding_about_the_longest() -> None:
    facts = facts_of(log_of(60))
    (one,) = matches(limit.limit_thrash, replace(facts, episodes=thrashing((1.0, 3.0))))
    assert (one.evidence, one.figures["episodes"]) == ("Reason 0.", 1)
    assert (one.start_s, one.end_s) == (1, 3)
    # Longer and later than the first, with the second lines to look at
    several = thrashing((1.0, 3.0), (4.0, 9.0), (10.0, 10.5), gc_cpu_share=[0.1, 0.3, 0.2])
    (found,) = matches(limit.limit_thrash, replace(facts, episodes=several))
    assert (
        found.evidence
        == "The program thrashed 3 times, 7.5 s in total. In the longest episode, reason 1."
    )
    assert (found.start_s, found.end_s) == (1, 10.5)
    assert found.examples == ("log:1", "log:0", "log:2")
    two = replace(facts, episodes=several.head(2))
    assert matches(limit.limit_thrash, two)[0].evidence.startswith(
        "The program thrashed 2 times, 7.0 s"
    )


@pytest.mark.parametrize(
    ("seconds", "share", "cost"),
    [
        (8.0, 0.5, "GC takes 20 % of the CPU"),
        (9.0, 0.5, "GC takes 20 % of the CPU"),
        (7.9, 0.5, "GC took 50 % of the CPU for 7.9 s"),
        (7.9, None, "GC runs 12 times a second"),
        (7.9, 0.1, "GC took 10 % of the CPU for 7.9 s"),
    ],
)
def test_thrashing_for_most_of_a_run_costs_what_the_run_costs(
    seconds: float, share: float | None, cost: str
) -> None:
    facts = facts_of(log_of(60))
    summary = replace(facts.summary, span_s=10.0, gc_cpu_share=0.2, gc_cpu_share_high=None)
    episodes = thrashing((0.0, seconds), gc_cpu_share=[share])
    (found,) = matches(limit.limit_thrash, replace(facts, summary=summary, episodes=episodes))
    assert found.headline is not None
    assert found.headline.startswith(f"GOMEMLIMIT is too low for the live heap: {cost}.")


def test_the_cost_of_several_episodes_is_that_of_all_of_them() -> None:
    facts = facts_of(log_of(60))
    episodes = thrashing((1.0, 3.0), (4.0, 10.0), gc_cpu_share=[0.2, 0.4])
    summary = replace(facts.summary, span_s=60.0)
    (found,) = matches(limit.limit_thrash, replace(facts, summary=summary, episodes=episodes))
    cost = "GC took 35 % of the CPU for 8.0 s (2 episodes)."
    assert (found.headline or "").startswith(f"GOMEMLIMIT is too low for the live heap: {cost}")
    assert "thrashed 2 times, 8.0 s in total" in found.evidence
    unknown = thrashing((1.0, 3.0), (4.0, 10.0), gc_cpu_share=[0.2, None])
    (found,) = matches(limit.limit_thrash, replace(facts, summary=summary, episodes=unknown))
    assert ": GC runs 12 times a second." in (found.headline or "")


def test_thrashing_that_ended_says_so_and_what_holds_since_then() -> None:
    facts = facts_of(log_of(60))
    end_s = facts.cycles["end_s"].to_list()
    for last, is_said in ((29, True), (55, False)):
        episodes = thrashing((0.0, end_s[last]), gc_cpu_share=[0.5])
        (found,) = matches(limit.limit_thrash, replace(facts, episodes=episodes))
        assert ("That ended after" in (found.headline or "")) is is_said
        assert ("since then, GC has run" in (found.headline or "")) is is_said


def test_thrashing_that_costs_little_claims_no_cost() -> None:
    facts = facts_of(log_of(60))
    summary = replace(facts.summary, span_s=10.0, gc_cpu_share=0.009, gc_cpu_share_high=None)
    episodes = thrashing((0.0, 9.0), gc_cpu_share=[0.009])
    (found,) = matches(limit.limit_thrash, replace(facts, summary=summary, episodes=episodes))
    assert (found.headline or "").startswith(
        "GOMEMLIMIT is too low for the live heap. At this load GC takes only 0.90 % of the CPU; with "
        "more load, GC can run all the time. That ended after 9.0 s: "
    )


def passing(thrashing: range, count: int = 200) -> str:
    """A limit that leaves 10 % all the time, and less than nothing in some cycles."""
    return log_of(
        count,
        every=0.1,
        live=lambda n: 80 + 6 * n % 7,
        start=85,
        end=86,
        goal=lambda n: 79 if n in thrashing else 90,
    )


@pytest.mark.parametrize(
    ("thrashing", "root"),
    [
        (range(40, 48), "limit-tight"),
        (range(40, 70), "limit-thrash"),
        (range(190, 198), "limit-thrash"),
    ],
)
def test_thrashing_in_passing_is_an_effect_of_a_tight_limit(
    thrashing: range, root: str
) -> None:
    run = read_text(passing(thrashing))
    causes = dict(run.findings().select("name", "because_of").iter_rows())
    assert causes["limit-tight"] == (None if root == "limit-tight" else "GC016")
    assert causes["limit-thrash"] == ("GC015" if root == "limit-tight" else None)
    found = run.report().verdict
    assert found is not None
    tight = "GOMEMLIMIT leaves the live heap only as much room as GOGC=8"
    assert found.sentence.startswith(tight) == (root == "limit-tight")
    raised = r"Set GOMEMLIMIT=1\d\dMiB"
    assert re.match(raised, found.action)
    # At 1.5 times the least limit, the effective GOGC is about where a limit ceases to be tight.
    assert "(1.5 × the 125 MiB that the live heap" in found.action
    assert (found.start_s is None) == (root == "limit-tight")


@pytest.mark.parametrize(("high", "only"), [(0.06, True), (0.15, False)])
def test_a_range_that_reaches_a_high_gc_cpu_is_not_called_little(
    high: float, only: bool
) -> None:
    facts = facts_of(log_of(60, live=90, goal=90, start=90, end=92))
    of: dict[str, Any] = {
        "gc_cpu_share": 0.05,
        "gc_cpu_share_low": 0.002,
        "gc_cpu_share_high": high,
    }
    cost = limit.cost_of_thrashing(replace(facts, summary=replace(facts.summary, **of)))
    assert ("only" in cost) is only
