"""The present setting is never one that the last heap goals contradict."""

from __future__ import annotations

from io import StringIO

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.testing import read_text
from tests.helpers.facts import log_of


def retuned(gogc: int, cycles: int) -> str:
    """Returns a log of 40 cycles under GOGC=30, and at its end under another GOGC."""

    def live(n: int) -> int:
        return 40 + 5 * (n % 5)

    def goal(n: int) -> int:
        percent = gogc if n > 40 - cycles else 30
        return int((live(n - 1) + 0.5) * (1 + percent / 100))

    return log_of(
        40, live=live, start=lambda n: goal(n) - 5, end=lambda n: goal(n) - 4, goal=goal
    )


def test_two_higher_goals_at_the_end_are_a_change_of_gogc() -> None:
    run = read_text(retuned(300, 2))
    first, last = run.analysis.regimes_of(0)
    assert first.gogc_pct_low is not None
    assert first.gogc_pct_low <= 30 <= (first.gogc_pct_high or 0)
    assert (last.cycles, last.gogc_pct) == (2, 300)
    text = run.to_markdown()
    assert "GOGC is low" not in text
    assert "now" not in text.partition("Recommended settings")[2]
    assert "only 1 cycle since then" in text


def test_one_higher_goal_at_the_end_is_no_change() -> None:
    assert len(read_text(retuned(300, 1)).analysis.regimes_of(0)) == 1


def changed(
    before: tuple[int, int], after: tuple[int, int], cycles: tuple[int, int], start: int = 2
) -> str:
    """Returns a log from its second cycle: two settings, each a GOGC and a limit's goal."""

    def live(n: int) -> int:
        return 60 + n % 3

    def goal(n: int) -> int:
        gogc, most = before if n <= cycles[0] else after
        return min(int((live(n - 1) + 0.5) * (1 + gogc / 100)), most + n % 2)

    log = log_of(
        sum(cycles),
        live=live,
        start=lambda n: goal(n) - 3,
        end=lambda n: goal(n) - 2,
        goal=goal,
    )
    return "".join(log.splitlines(keepends=True)[start - 1 :])


NO_LIMIT = 1000


@pytest.mark.parametrize(
    ("before", "after", "cycles"),
    [
        ((200, NO_LIMIT), (200, 79), (7, 5)),
        ((100, NO_LIMIT), (50, NO_LIMIT), (20, 5)),
        ((100, NO_LIMIT), (100, 95), (20, 5)),
        ((100, NO_LIMIT), (100, 95), (5, 8)),
        ((200, NO_LIMIT), (100, NO_LIMIT), (5, 8)),
        ((100, 90), (100, NO_LIMIT), (10, 5)),
        ((50, NO_LIMIT), (50, 75), (30, 4)),
    ],
)
def test_a_short_log_with_two_settings_has_no_third_one(
    before: tuple[int, int], after: tuple[int, int], cycles: tuple[int, int]
) -> None:
    """At the same live heap, the goals at one end of a log do not jump without a change."""
    run = read_text(changed(before, after, cycles))
    first, last = run.analysis.regimes_of(0)
    assert (first.cycles, last.cycles) == (cycles[0] - 1, cycles[1])
    assert "inferred limit" not in run.to_markdown()


def test_a_limit_is_not_claimed_if_two_values_of_gogc_in_turn_explain_the_goals() -> None:
    run = read_text(changed((50, NO_LIMIT), (200, NO_LIMIT), (5, 2)))
    (regime,) = run.analysis.regimes_of(0)
    assert (regime.set_by, regime.gogc_pct, regime.memory_limit_mib) == ("either", None, None)
    assert (regime.gogc_pct_low, regime.gogc_pct_high) == (50, 200)
    assert "set by GOGC=50 and 200 in turn or a limit" in run.to_markdown()
    assert "specify GOGC and the limit" in str(run.recommend())
    # A limit alone explains goals that stay while the live heap changes.
    by_limit = log_of(8, live=lambda n: 30 + 7 * (n % 4), goal=lambda n: 90 + n % 2)
    assert read_text(by_limit).analysis.regimes_of(0)[0].set_by == "memory-limit"


def test_a_limit_set_in_the_middle_does_not_cause_what_came_before() -> None:
    text = read_text(changed((200, NO_LIMIT), (200, 72), (40, 60), 1)).to_markdown()
    assert "so GC runs often. The settings changed: since" in text
    assert "GC runs 5.00 times a second and takes" in text
    assert "It began at" not in text


def test_a_given_gogc_that_is_too_high_for_the_goals_did_not_set_them() -> None:
    text = changed((200, 79), (200, 79), (3, 3))
    run = gca.read(StringIO(text), gogc=200, memory_limit="90MiB", go_version="1.25")
    (regime,) = run.analysis.regimes_of(0)
    assert (regime.set_by, regime.gogc_pct) == ("memory-limit", 200)
    assert "set by GOMEMLIMIT=90 MiB" in run.to_markdown()


def test_an_effective_gogc_is_not_that_of_several_processes() -> None:
    text = retuned(30, 0) + log_of(30)
    assert "effective GOGC" not in read_text(text).to_markdown()


def test_few_goals_from_the_middle_of_a_log_show_only_the_least_limit() -> None:
    """A larger heap before them may have left holes, which the limit counts."""
    lines = log_of(40, goal=140).splitlines(keepends=True)
    run = read_text("".join(lines[-5:]))
    (regime,) = run.analysis.regimes_of(0)
    assert regime.memory_limit_mib_low
    assert regime.memory_limit_mib_high is None
    assert "inferred limit of at least" in run.to_markdown()


def test_up_to_go_1_7_goals_below_gogc_100_are_those_of_the_default() -> None:
    """They leave out what was allocated during marking (heap_reachable, runtime/mgc.go)."""
    log = log_of(40, live=65, start=122, end=124, goal=lambda n: 128 + n % 2)
    log = log.replace("0 MB stacks, 0 MB globals, ", "")
    assert "set by GOGC=100" in read_text(log).to_markdown()
