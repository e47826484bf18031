"""Replays of a program's path: steady programs have known results, and some order must hold."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gctrace_analyzer.advise.prediction.path import Path
from gctrace_analyzer.advise.prediction.replay import (
    STEPS,
    Costs,
    Rules,
    gap_and_work,
    replay,
)

COSTS = Costs(fixed=2.0, ballast=0.0, mark_s_per_mib=1e-3, mib_per_s=100.0, least_off=0.3)


def steady(cycles: int, gap: float = 30.0, live: float = 40.0, in_mark: float = 2.0) -> Path:
    """A program with a steady live heap."""
    at = tuple(gap * number for number in range(cycles))
    return Path.of(at, (live,) * cycles, (in_mark,) * cycles)


def rules(gogc: float | None = 100.0, cap: float | None = None) -> Rules:
    return Rules(
        None if gogc is None else gogc / 100, cap, roots=0.0, runway=1.0, limit_gap=0.0,
        lowest_trigger=None,
    )  # fmt: skip


@pytest.mark.parametrize("cycles", [5, 50, 5_000], ids=["short", "usual", "long"])
@pytest.mark.parametrize("gogc", [25.0, 100.0, 400.0])
def test_a_steady_program_has_the_goal_of_the_formula(cycles: int, gogc: float) -> None:
    """Marked 42 MiB; the goal is 42 × (1 + GOGC / 100)."""
    found = replay(steady(cycles), rules(gogc), COSTS)
    assert found.goal == pytest.approx(42 * (1 + gogc / 100), rel=1e-6)
    assert found.marked == pytest.approx(42, rel=1e-6)
    if cycles > 20:
        assert found.trigger < found.goal
        assert found.gap == pytest.approx(found.trigger - 42 + 2, rel=0.01)
        assert found.peak <= found.goal + 0.5


def test_a_long_path_is_thinned_without_bias() -> None:
    waves = tuple(40 + 20 * (number // 7 % 3) for number in range(6_000))
    path = Path.of(tuple(30.0 * number for number in range(6_000)), waves, (2.0,) * 6_000)
    thin, whole = (replay(path, rules(), COSTS, steps=steps) for steps in (STEPS, 40_000))
    assert thin.gap == pytest.approx(whole.gap, rel=0.05)
    assert thin.work == pytest.approx(whole.work, rel=0.05)
    assert thin.peak == pytest.approx(whole.peak, rel=0.02)


def test_the_largest_live_heap_of_a_long_path_is_not_missed() -> None:
    live = [40.0] * 20_000
    live[12_345:12_360] = [400.0] * 15
    path = Path.of(
        tuple(30.0 * number for number in range(20_000)), tuple(live), (2.0,) * 20_000
    )
    assert replay(path, rules(), COSTS).peak > 600


def test_a_limit_below_the_live_heap_leaves_no_room() -> None:
    found = replay(steady(100), rules(None, cap=30.0), COSTS)
    assert found.no_room == found.no_room_time == found.by_limit == 1
    assert found.goal == pytest.approx(42, abs=1)


def test_the_time_without_room_counts_by_duration() -> None:
    """A third of the bytes are allocated with a heap that is at its limit."""
    live = (20.0,) * 200 + (58.0,) * 100
    path = Path.of(tuple(10.0 * number for number in range(300)), live, (1.0,) * 300)
    found = replay(path, rules(None, cap=60.0), COSTS)
    assert 0.5 < found.no_room < 1
    assert found.no_room_time < found.no_room + 0.3
    assert found.by_limit == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 600), st.floats(0.05, 500), st.floats(0.3, 2_000), st.floats(1, 4_000))
def test_every_replay_ends_and_has_finite_figures(
    cycles: int, gap: float, live: float, cap: float
) -> None:
    found = replay(steady(cycles, gap, live, in_mark=0.0), rules(None, cap=cap), COSTS)
    assert 0 < found.gap < float("inf")
    assert 0 < found.work < float("inf")
    assert found.peak >= live * 0.99 or found.peak > 0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.5, 500), min_size=2, max_size=400),
    st.sampled_from([10, 50, STEPS // 4, STEPS]),
    st.floats(0.8, 1.3),
    st.one_of(st.none(), st.floats(1, 2_000)),
)
def test_an_intermediate_replay_has_the_gap_and_the_work_of_a_whole_one(
    live: list[float], steps: int, times: float, cap: float | None
) -> None:
    at = tuple(30.0 * number for number in range(len(live)))
    path = Path.of(at, tuple(live), (2.0,) * len(live))
    arguments = (path, rules(cap=cap), COSTS)
    found = replay(*arguments, steps=steps, in_mark_times=times, live_times=times)
    short = gap_and_work(*arguments, steps=steps, in_mark_times=times, live_times=times)
    assert short == (found.gap, found.work)
