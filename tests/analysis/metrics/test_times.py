"""The times of dumps that have none."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer.analysis.metrics.intervals import of_a_loop

START = 1_795_403_614.0


def found(*last_gc_s: float | None, processes: list[int] | None = None) -> list[float | None]:
    table = pl.DataFrame(
        {"process": processes or [0] * len(last_gc_s), "last_gc_s": last_gc_s},
        schema={"process": pl.Int64, "last_gc_s": pl.Float64},
    )
    return of_a_loop(table.with_columns(next_gc_s=pl.lit(None, pl.Float64))).to_list()


def last_ends(times: list[float], ends: list[float]) -> list[float]:
    return [max(end for end in ends if end <= at) for at in times]


@pytest.mark.parametrize("every", [0.3, 0.9, 1.7, 4.1])
def test_a_loop_has_equal_distances_however_often_cycles_end(every: float) -> None:
    """Between two cycles several dumps have the same last one."""
    ends = [START + every * n for n in range(-1, 400)]
    times = [START + 1.01 * n for n in range(60)]
    at = found(*last_ends(times, ends))
    assert at == pytest.approx(times, abs=max(every, 0.6))
    distances = pl.Series(at).diff().drop_nulls()
    assert distances.max() == pytest.approx(distances.min(), abs=1e-5)
    assert distances.mean() == pytest.approx(1.01, rel=0.02)


@given(st.lists(st.floats(0, 0.2), min_size=20, max_size=40), st.floats(0.1, 3))
def test_no_dump_is_before_its_last_cycle_or_after_the_next(
    delays: list[float], every: float
) -> None:
    ends = [START + every * n for n in range(-1, 900)]
    last = last_ends([START + n + delay for n, delay in enumerate(delays)], ends)
    at = found(*last)
    later = [min((each for each in last if each > own), default=float("inf")) for own in last]
    for own, time, after in zip(last, at, later, strict=True):
        assert time is not None
        assert own <= time <= after


def test_a_listed_end_of_the_next_cycle_refutes_a_loop() -> None:
    """The dumps alone would fit one: they do not show when the cycles in between ended."""
    last = [START + end for end in (14, 14, 583, 703, 703, 823)]
    table = pl.DataFrame({"process": [0] * 6, "last_gc_s": last})
    unlisted = table.with_columns(next_gc_s=pl.lit(None, pl.Float64))
    assert of_a_loop(unlisted).to_list() != last
    listed = unlisted.with_columns(next_gc_s=pl.Series([START + 134] * 2 + [None] * 4))
    assert of_a_loop(listed).to_list() == last


def test_a_gap_is_no_loop() -> None:
    ends = [START + 0.2 * n for n in range(-1, 3000)]
    times = [START + n + (300 if n > 20 else 0) for n in range(60)]
    last = last_ends(times, ends)
    assert found(*last) == last


@pytest.mark.parametrize(
    "last",
    [
        [START, START + 1, START + 2],
        [START, START, START, START, START + 9],
        [START + 4, START + 3, START + 2, START + 1, START],
        [None, None, START],
    ],
)
def test_too_little_shows_no_distance(last: list[float | None]) -> None:
    assert found(*last) == last


def test_processes_have_loops_of_their_own() -> None:
    ends = [START + 0.5 * n for n in range(-1, 200)]
    slow = last_ends([START + 2.0 * n for n in range(20)], ends)
    fast = last_ends([START + 1.0 * n for n in range(20)], ends)
    both = [each for pair in zip(slow, fast, strict=True) for each in pair]
    at = found(*both, processes=[0, 1] * 20)
    assert at[0::2] == found(*slow)
    assert at[1::2] == found(*fast)
