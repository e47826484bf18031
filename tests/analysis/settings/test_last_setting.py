"""The present setting is never one that the last heap goals contradict."""

from __future__ import annotations

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


def test_the_goal_of_two_cycles_is_one_that_they_had() -> None:
    text = read_text(log_of(2, live=90, goal=lambda n: 100 * n)).to_markdown()
    assert "100 MiB" in next(line for line in text.splitlines() if "Heap goal" in line)
