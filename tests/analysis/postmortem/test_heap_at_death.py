"""The sum of a post-mortem: bounds of the heap, and of what is not heap."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer.analysis.postmortem.heap_at_death import HeapAtDeath, heap_at_death
from tests.helpers.deaths import evidence

SIZES = st.integers(0, 1 << 20)
RATES = st.floats(0.0, 1e6)
UNKNOWN = st.none()
FACTS = st.fixed_dictionaries(
    {
        "live_mib": SIZES,
        "heap_end_mib": SIZES | UNKNOWN,
        "heap_peak_mib": SIZES | UNKNOWN,
        "next_goal_mib": SIZES | UNKNOWN,
        "resident_mib": st.floats(0.0, 1e6) | UNKNOWN,
        "limit_mib": st.floats(1.0, 1e6) | UNKNOWN,
        "go_other_mib": st.floats(0.0, 1e4) | UNKNOWN,
        "gap_s": st.floats(0.0, 1e4) | UNKNOWN,
        "alloc_mib_per_s": RATES | UNKNOWN,
        "alloc_most_mib_per_s": RATES | UNKNOWN,
        "overshoot": st.floats(0.0, 9.0) | UNKNOWN,
        "limited": st.booleans(),
        "scope": st.sampled_from(["memcg", "global", None]),
    }
)


def heap(**facts: Any) -> HeapAtDeath:
    return heap_at_death(evidence(kind="OOM kill", **facts))


@given(FACTS)
def test_the_parts_are_within_the_whole(facts: dict[str, Any]) -> None:
    found = heap(**facts)
    least, most = found.go_heap_mib, found.go_heap_most_mib
    outside, outside_most = found.off_heap_mib, found.off_heap_most_mib
    if found.total_mib is None:
        assert outside is None
        assert outside_most is None
        return
    assert least is not None
    assert most is not None
    assert outside is not None
    assert outside_most is not None
    assert 0 <= least <= most <= max(found.total_mib, least)
    assert 0 <= outside <= outside_most <= found.total_mib


@given(FACTS)
def test_without_the_time_since_the_last_cycle_no_more_is_certain(
    facts: dict[str, Any],
) -> None:
    known, unknown = (heap(**facts | {"gap_s": gap}) for gap in (facts["gap_s"], None))
    assert (unknown.off_heap_mib or 0) <= (known.off_heap_mib or 0) + 1e-6
    assert known.off_heap_most_mib == unknown.off_heap_most_mib


def test_the_sample_by_hand() -> None:
    """A cycle was due at 252 MiB (277 with overshoot); 125 + 0.54 * 278 = 275 MiB."""
    facts: dict[str, Any] = {
        "live_mib": 125, "heap_end_mib": 164, "next_goal_mib": 252, "resident_mib": 510.0,
        "monotonic_s": 1.0, "gap_s": 0.54, "alloc_most_mib_per_s": 278.0,
    }  # fmt: skip
    by_rate = heap(**facts)
    assert (by_rate.go_heap_mib, by_rate.most_is) == (164, "rate")
    assert by_rate.go_heap_most_mib == 125 + 0.54 * 278
    assert by_rate.off_heap_mib == 510 - 125 - 0.54 * 278
    assert by_rate.off_heap_most_mib == 510 - 164
    by_goal = heap(**facts | {"gap_s": 9.0})
    assert (by_goal.most_is, by_goal.go_heap_most_mib) == ("goal", 252 * 1.1)
    # A kill in whole seconds may have been up to a second later.
    assert heap(**facts | {"monotonic_s": None}).since_s == 1.54
    jumped = heap(**facts | {"gap_s": 9.0, "overshoot": None})
    assert (jumped.most_is, jumped.off_heap_mib) == ("total", 0)


def test_a_limit_that_was_reached_stands_for_the_size_of_the_process() -> None:
    facts: dict[str, Any] = {"live_mib": 10, "heap_end_mib": 20, "next_goal_mib": 20}
    assert heap(**facts, limit_mib=512.0, scope="memcg").off_heap_mib == 490
    assert heap(**facts, limit_mib=512.0).off_heap_mib is None


def test_other_memory_of_the_runtime_is_neither() -> None:
    facts: dict[str, Any] = {"live_mib": 10, "heap_end_mib": 20, "next_goal_mib": 20}
    found = heap(**facts, resident_mib=500.0, go_other_mib=300.0)
    assert (found.off_heap_mib, found.off_heap_most_mib) == (178, 180)
    assert found.go_most_mib == 322
    assert heap(**facts, resident_mib=500.0, limited=True).go_heap_mib == 10


def test_a_dump_does_not_show_the_cycles_after_it() -> None:
    """The goal of the next cycle bounds the heap only if no cycle ended since the dump."""
    facts: dict[str, Any] = {
        "live_mib": 149, "heap_end_mib": 209, "next_goal_mib": 299, "limit_mib": 512.0,
        "scope": "memcg", "alloc_most_mib_per_s": 150.0, "monotonic_s": 1.0,
    }  # fmt: skip
    assert heap(**facts).most_is == "goal"
    undated = heap(**facts | {"dump_age_s": math.inf})
    assert (undated.most_is, undated.go_heap_mib, undated.off_heap_mib) == ("total", 209, 0)
    dated = heap(**facts | {"dump_age_s": 1.0})
    assert (dated.most_is, dated.go_heap_most_mib) == ("rate", 209 + 150)
