"""Replays of a program's path: steady programs have known results, and some order must hold."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gctrace_analyzer.advise.prediction.path import Path
from gctrace_analyzer.advise.prediction.replay import (
    STEPS,
    Costs,
    Rules,
    first_times,
    gap_and_work,
    replay,
)
from tests.helpers.core import needs_core, pure_python

if TYPE_CHECKING:
    from collections.abc import Sequence

COSTS = Costs(fixed=2.0, ballast=0.0, mark_s_per_mib=1e-3, mib_per_s=100.0, least_off=0.3)


def steady(cycles: int, gap: float = 30.0, live: float = 40.0, in_mark: float = 2.0) -> Path:
    """A program with a steady live heap."""
    at = tuple(gap * number for number in range(cycles))
    return path_along(at, (live,) * cycles, (in_mark,) * cycles)


def path_along(at: Sequence[float], live: Sequence[float], in_mark: Sequence[float]) -> Path:
    columns = {"at": at, "live": live, "in_mark": in_mark}
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Float64))
    return Path.of(lambda: frame)


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
    path = path_along(tuple(30.0 * number for number in range(6_000)), waves, (2.0,) * 6_000)
    thin, whole = (replay(path, rules(), COSTS, steps=steps) for steps in (STEPS, 40_000))
    assert thin.gap == pytest.approx(whole.gap, rel=0.05)
    assert thin.work == pytest.approx(whole.work, rel=0.05)
    assert thin.peak == pytest.approx(whole.peak, rel=0.02)


def test_the_largest_live_heap_of_a_long_path_is_not_missed() -> None:
    live = [40.0] * 20_000
    live[12_345:12_360] = [400.0] * 15
    path = path_along(
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
    path = path_along(tuple(10.0 * number for number in range(300)), live, (1.0,) * 300)
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
    path = path_along(at, tuple(live), (2.0,) * len(live))
    arguments = (path, rules(cap=cap), COSTS)
    found = replay(*arguments, steps=steps, in_mark_times=times, live_times=times)
    short = gap_and_work(*arguments, steps=steps, in_mark_times=times, live_times=times)
    assert short == (found.gap, found.work)


def test_each_figure_of_a_steady_program_follows_from_the_rules() -> None:
    """Marked 42 of a goal of 84; the cycle starts 2 MiB before it, as the pacer expects."""
    found = replay(steady(60), rules(), COSTS)
    assert (found.marked, found.marked_max, found.in_mark) == pytest.approx((42, 42, 2))
    assert (found.goal, found.trigger, found.room) == pytest.approx((84, 82, 2))
    assert (found.gap, found.peak) == pytest.approx((42, 84))
    assert found.work == pytest.approx(42 + 2), "with the fixed cost"
    assert (found.by_limit, found.no_room, found.no_room_time) == (0, 0, 0)
    assert (found.gap_spread, found.peak_spread) == pytest.approx((0, 0), abs=0.02)


def test_roots_count_for_the_goal_and_a_ballast_is_not_marked() -> None:
    costs = replace(COSTS, ballast=12.0)
    found = replay(steady(60), replace(rules(), roots=8.0), costs)
    assert found.goal == pytest.approx(42 + (42 + 8) * 1)
    assert found.work == pytest.approx(42 + 8 + 2 - 12)


def test_under_a_limit_a_cycle_starts_before_the_goal_in_effect() -> None:
    found = replay(steady(60), replace(rules(None, cap=60.0), limit_gap=0.1), COSTS)
    # 54 in effect, 2 MiB before that
    assert (found.goal, found.trigger, found.gap) == pytest.approx((60, 52, 12))
    assert (found.by_limit, found.no_room) == (1, 0)
    # Of GOGC and limit, the smaller goal holds; equal ones are set by GOGC.
    assert replay(steady(60), rules(100.0, cap=84.1), COSTS).by_limit == 0
    assert replay(steady(60), rules(100.0, cap=83.9), COSTS).by_limit == 1


@pytest.mark.parametrize(("cap", "no_room"), [(47.0, 0), (45.6, 1), (45.0, 1)])
def test_room_below_a_tenth_of_what_is_marked_is_none(cap: float, no_room: int) -> None:
    found = replay(steady(60), rules(None, cap=cap), COSTS)
    assert found.marked == pytest.approx(41.6, abs=0.1)
    assert (found.no_room, found.no_room_time) == (no_room, no_room)


def test_the_largest_and_the_lowest_trigger_of_the_old_pacer() -> None:
    old = replace(rules(), lowest_trigger=0.6)
    assert replay(steady(60), old, COSTS).trigger == pytest.approx(42 + 0.95 * 42)
    early = replace(old, runway=12.0)
    assert replay(steady(60), early, COSTS).trigger == pytest.approx(42 + 0.6 * 42)


def test_more_is_allocated_during_marking_and_kept_by_its_factors() -> None:
    found = replay(steady(60), rules(), COSTS, in_mark_times=2.0, live_times=1.5)
    assert (found.marked, found.in_mark) == pytest.approx((40 * 1.5 + 4, 4))
    assert found.goal == pytest.approx(128)
    assert found.gap == pytest.approx(64 - 4 + 4, rel=0.02)


def test_what_is_allocated_during_marking_is_limited_by_assists() -> None:
    path = steady(60, in_mark=50.0)
    # Up to the goal: a quarter of 45/64 is used before marking, the rest meanwhile.
    found = replay(path, rules(25.0), COSTS)
    rest = 0.25 * 19 / 64
    assert found.in_mark == pytest.approx(40 * rest / (1 - rest), rel=3e-3)
    # At the goal there is always a little, 3 % of what is marked,
    found = replay(path, rules(None, cap=10.0), COSTS)
    assert found.in_mark == pytest.approx((0.03 * 40 + 0.3) / 0.97, rel=0.02)
    # or 2 % of a goal that is much larger.
    late = replay(steady(60, gap=300.0, live=90.0, in_mark=50.0), LATE, COSTS)
    assert late.marked == pytest.approx((90 + 0.3) / 0.9, rel=1e-3)


LATE = Rules(4.0, None, roots=0.0, runway=0.0, limit_gap=0.0, lowest_trigger=None)
"""GOGC=400, and a pacer that expects nothing to be allocated during marking."""


def test_a_small_heap_has_the_goal_of_the_minimum() -> None:
    tiny = steady(60, gap=1.0, live=0.5, in_mark=0.1)
    assert replay(tiny, rules(100.0), COSTS).goal == 4
    assert replay(tiny, rules(200.0), COSTS).goal == 8
    # The limit is stronger than the minimum.
    assert replay(tiny, rules(100.0, cap=3.0), COSTS).goal == 3


def test_time_is_that_of_allocating_and_of_marking() -> None:
    """Half of what is allocated meets a heap at its limit, in far more and longer cycles."""
    live = (20.0,) * 200 + (57.0,) * 200
    path = path_along(tuple(2.0 * n for n in range(400)), live, (0.02,) * 400)
    slow = replace(COSTS, mark_s_per_mib=1.0)
    quick = replace(COSTS, mark_s_per_mib=0.0)
    marking, none = (replay(path, rules(None, cap=60.0), each) for each in (slow, quick))
    assert marking.no_room == none.no_room
    # By allocation alone, each cycle takes as long as what it allocates; half in all.
    assert none.no_room_time == pytest.approx(0.5, abs=0.1)
    # By marking alone, each takes as long as its heap is large.
    few, many = (1 - marking.no_room) * (20 + 2), marking.no_room * (57 + 2)
    assert marking.no_room_time == pytest.approx(many / (few + many), abs=0.02)


def test_a_path_shorter_than_a_cycle_shows_one() -> None:
    found = replay(steady(3, gap=1.0), rules(), COSTS)
    assert (found.goal, found.marked) == pytest.approx((84, 42))
    assert found.gap >= 2
    tight = replay(steady(3, gap=0.05), rules(None, cap=30.0), COSTS)
    assert (tight.by_limit, tight.no_room) == (1, 1)
    roomy = replay(steady(3, gap=1.0), rules(None, cap=70.0), COSTS)
    assert (roomy.by_limit, roomy.no_room, roomy.no_room_time) == (1, 0, 0)


@pytest.mark.parametrize(("gogc", "expected"), [(100.0, 42.2), (800.0, 200.0)])
def test_what_nothing_holds_back_is_allocated_up_to_the_goal(
    gogc: float, expected: float
) -> None:
    """200 MiB would be allocated during marking; there is room for 19/64 of live heap × GOGC."""
    path, held = steady(400, gap=50.0, live=100.0, in_mark=10.0), rules(gogc)
    free = replace(COSTS, free_times=20.0, first_times=first_times(path, held, 20.0))
    found = replay(path, held, free, in_mark_times=20.0)
    assert found.in_mark == pytest.approx(expected, rel=0.01)
    assert found.marked == pytest.approx(100 + found.in_mark)
    assert found.goal == pytest.approx(found.marked * (1 + gogc / 100), rel=0.01)
    # Nothing that is allocated during marking is marked, beyond what the log has.
    assert found.work == pytest.approx(100 + 10 + COSTS.fixed, rel=0.01)
    # It raises no peak that the program does not reach.
    assert found.peak <= found.goal * 1.01


def test_what_is_allocated_at_first_is_what_the_setting_allows() -> None:
    path = steady(50, live=100.0, in_mark=10.0)
    assert first_times(path, rules(100.0), 3.0) == 3.0
    assert first_times(path, rules(100.0), 9.0) == pytest.approx(4.22, rel=0.01)
    assert first_times(path, rules(10.0), 9.0) == 1.0
    assert first_times(path, rules(None, cap=130.0), 9.0) == 1.0
    assert first_times(path, rules(None), 9.0) == 9.0


@needs_core
@settings(max_examples=200, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.floats(0, 300), st.floats(0.3, 500), st.floats(0, 80)),
        min_size=2,
        max_size=60,
    ),
    repeats=st.sampled_from([1, 1, 40]),
    ratio=st.none() | st.floats(0.05, 8),
    cap=st.none() | st.floats(1, 900),
    lowest=st.none() | st.floats(0, 0.9),
    others=st.tuples(
        st.floats(0, 50),
        st.floats(0, 2),
        st.floats(0, 0.05),
        st.floats(0, 20),
        st.floats(-5, 99),
    ),
    times=st.tuples(st.floats(0.1, 5), st.floats(0.9, 1.3)),
    free=st.sampled_from([(1.0, 1e9), (1.0, 1.0), (7.5, 2.5)]),
)
def test_the_compiled_core_replays_the_same(
    steps: list[tuple[float, float, float]],
    repeats: int,
    ratio: float | None,
    cap: float | None,
    lowest: float | None,
    others: tuple[float, float, float, float, float],
    times: tuple[float, float],
    free: tuple[float, float],
) -> None:
    """To the last bit, for any path and setting, with or without a limit that is too low."""
    gaps, live, in_mark = zip(*steps * repeats, strict=True)
    columns = tuple(accumulate(gaps[1:], initial=0.0)), live, in_mark
    roots, runway, limit_gap, ballast, offset = others
    changed = Rules(ratio, cap, roots, runway, limit_gap, lowest)
    free_times, first_times = free
    costs = replace(COSTS, ballast=ballast, free_times=free_times, first_times=first_times)
    found = []
    for is_compiled, implementation in ((True, nullcontext()), (False, pure_python())):
        with implementation:
            path = path_along(*columns).shifted(offset)
        assert (path.walker is not None) == is_compiled
        in_mark_times, live_times = times
        try:
            found.append(
                [
                    str(
                        find(
                            path,
                            changed,
                            costs,
                            in_mark_times=in_mark_times,
                            live_times=live_times,
                        )
                    )
                    for find in (replay, gap_and_work)
                ]
            )
        except (ValueError, ZeroDivisionError, OverflowError) as err:
            found.append([str(err)])
    assert found[0] == found[1]


def test_without_the_compiled_core_python_replays() -> None:
    with pure_python():
        path = steady(50)
    assert path.walker is None
    assert replay(path, rules(), COSTS) == replay(steady(50), rules(), COSTS)
