"""Figures of real programs as Prometheus scraped them, compared with their gctrace."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import pytest

from tests.helpers.intervals import between_dumps
from tests.helpers.scraped import compared

if TYPE_CHECKING:
    from lab.evaluation.accuracy import Compared

ENOUGH = 5
"""With fewer scrapes, a median is of the few moments that they hit."""

SMALL_MIB = 8
"""gctrace prints whole MiB: half of one is 6 % of this."""


def _named(one: Compared) -> str:
    return f"{one.name} {one.layout}"


def _errors(figure: str, found: tuple[Compared, ...]) -> dict[str, float]:
    """Returns how far off a figure is, by recording."""
    return {
        _named(one): abs(error) for one in found if (error := one.error(figure)) is not None
    }


def _heaps(*, given_limits: bool) -> tuple[Compared, ...]:
    return tuple(
        one
        for one in compared(given_limits=given_limits)
        if one.samples >= ENOUGH and one.truth["live_heap_p50_mib"] >= SMALL_MIB
    )


def test_the_recordings_are_of_many_programs_versions_and_intervals() -> None:
    runs = [one.run for one in compared()]
    spans = [run["window_unix_s"][1] - run["window_unix_s"][0] for run in runs]
    assert len({run["name"] for run in runs}) >= 8
    assert {run["go_version"].split(".")[1] for run in runs} >= {"19", "22", "24", "26", "27"}
    assert {one.layout for one in compared()} >= {"1 s", "15 s", "60 s", "query_range, 15 s"}
    assert min(spans) < 80
    assert max(spans) >= 3600


def test_the_frequency_of_a_whole_span_is_within_two_percent() -> None:
    errors = _errors("gc_per_s", compared())
    assert len(errors) > 60
    assert {name: error for name, error in errors.items() if error > 0.02} == {}


def test_the_pause_total_is_within_three_percent() -> None:
    errors = _errors("stw_total_ms", compared())
    off = {name for name, error in errors.items() if error > 0.03}
    # On the crowded machine a thread was preempted after a pause, before gctrace took the time:
    # gctrace then counts up to 24 ms in one cycle that the runtime's counter does not have.
    preempted = set()
    for one in compared():
        total, found = one.truth["stw_total_ms"], one.found["stw_total_ms"]
        if 0 < total - found <= one.truth["longest_mark_term_ms"] + 0.03 * total:
            preempted.add(_named(one))
    assert len(off) < 0.1 * len(errors)
    assert off <= preempted


def test_the_allocation_is_within_two_percent_of_the_counter() -> None:
    errors = _errors("alloc_total_mib", compared())
    assert len(errors) > 60
    assert {name: error for name, error in errors.items() if error > 0.02} == {}


@pytest.mark.parametrize("given_limits", [True, False])
def test_the_live_heap_is_within_five_percent_in_the_median(given_limits: bool) -> None:
    errors = _errors("live_heap_p50_mib", _heaps(given_limits=given_limits))
    assert len(errors) > 30
    assert median(errors.values()) <= 0.05
    assert {name: error for name, error in errors.items() if error > 0.15} == {}


def test_the_cpu_of_marking_is_within_five_percent_where_it_is_exported() -> None:
    errors = _errors("mark_share", tuple(o for o in compared() if o.samples >= ENOUGH))
    assert len(errors) > 30
    assert {name: error for name, error in errors.items() if error > 0.05} == {}


@pytest.mark.parametrize("given_limits", [True, False])
def test_every_thrashing_series_is_found_and_no_other(given_limits: bool) -> None:
    series = [one for one in compared(given_limits=given_limits) if one.layout != "60 s"]
    thrashing = {_named(one) for one in series if one.state == "thrash"}
    between = {_named(one) for one in series if one.state == "partly"}
    called = {_named(one) for one in series if one.thrashing}
    assert len({one.run["name"] for one in series if one.state == "thrash"}) >= 4
    assert thrashing <= called
    assert called - between == thrashing


def test_a_low_gogc_is_not_called_thrashing() -> None:
    low = [one for one in compared(given_limits=False) if one.run["wave"] == "low"]
    assert len({one.name for one in low}) == 4
    assert not any(one.thrashing for one in low)


def test_a_limit_that_sets_the_goal_is_read_from_the_goals() -> None:
    shown = {}
    for one in compared(given_limits=False):
        limits = between_dumps(one.source)["memory_limit_mib"].drop_nulls().unique()
        if len(limits) and not one.source.memstats["gomemlimit_bytes"].count():
            shown[one.name] = (limits[0], float(one.run["env"]["GOMEMLIMIT"][:-3]))
    assert len(shown) >= 4
    for found, true in shown.values():
        assert found == pytest.approx(true, rel=1e-3)
