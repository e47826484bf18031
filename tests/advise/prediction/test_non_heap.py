"""Memory outside the heap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer.advise.prediction.non_heap import NonHeap

TEN = NonHeap(10.0, 0.1, "assumed")


def test_it_grows_with_the_goal_but_not_with_a_ballast() -> None:
    assert TEN.at(100) == 20
    assert TEN.at(100, 60) == 14
    assert TEN.at(100, 200) == 10


@given(st.floats(60, 10_000), st.floats(0, 50))
def test_goal_and_non_heap_memory_fill_the_limit(limit: float, ballast: float) -> None:
    goal = TEN.cap(limit, ballast, go_1_21=True)
    room = limit - TEN.at(goal, ballast) if goal > ballast else limit - 10 + 0.1 * ballast
    if goal > ballast + 1 and 0.03 * room > 1.1:
        assert goal == pytest.approx(0.97 * room, rel=0.01)
    older = TEN.cap(limit, ballast, go_1_21=False)
    assert older >= goal
    if older > ballast + 1:
        assert older == pytest.approx(limit - TEN.at(older, ballast) - 1, abs=0.2)


def test_the_ranges_are_wider_the_less_is_known() -> None:
    given, own, assumed = (
        NonHeap(10.0, 0.1, source).ranges()
        for source in ("given", "the log's own limit", "assumed")
    )
    assert given == ()
    for low, high in (own, assumed):
        assert low[0] < 0 < high[0]
        assert low[1] < 0 < high[1]
        assert max(-low[1], high[1]) < 0.1
    assert assumed[0][0] < own[0][0]
    assert assumed[1][0] > own[1][0]


def test_shifting_keeps_it_possible() -> None:
    more = TEN.shifted((5.0, 0.05))
    assert (more.fixed, more.share) == pytest.approx((15.0, 0.15))
    assert more.source == "assumed"
    assert TEN.shifted((-20.0, -0.5)) == NonHeap(1.0, 0.0, "assumed")


def test_a_live_heap_that_varies_widens_the_range_upwards() -> None:
    """Under a limit, Go's compiler lost 0.25 to 0.40 of the goal in half-empty spans."""
    steady, varying = (NonHeap(10.0, 0.06, "assumed", variation=each) for each in (0.1, 0.6))
    assert varying.ranges()[0] == steady.ranges()[0]
    assert varying.share + varying.ranges()[1][1] == pytest.approx(0.40)
    assert NonHeap(10.0, 0.06, "given", variation=0.6).ranges() == ()


def test_stacks_widen_the_range_of_what_is_assumed() -> None:
    """100,000 goroutines that wait for a channel: 27 MiB are scanned, and 195 MiB are in use."""
    assumed = NonHeap(10.0 + 1.8 * 27, 0.0, "assumed", stacks=27.0)
    low, high = (assumed.shifted(end).at(0.0) for end in assumed.ranges())
    assert low == pytest.approx(10.0 - 4.0 + 1.1 * 27)
    assert high == pytest.approx(10.0 + 5.0 + 7.3 * 27)


def test_a_limit_inferred_from_the_goals_does_not_show_what_is_outside_the_heap() -> None:
    """The limit was 600 MiB; goals of 373 MiB allow 424 to 645."""
    assumed = NonHeap(10.0 + 1.8 * 27, 0.06, "assumed", stacks=27.0)
    known = assumed.under(600.0, 373.0, is_known=True)
    inferred = assumed.under(466.0, 373.0, is_known=False)
    assert known.at(373.0) == pytest.approx(600 - 373 / 0.97)
    assert inferred.at(373.0) + inferred.ranges()[1][0] > known.at(373.0)
    assert inferred.ranges(under_own_limit=True) == known.ranges()
