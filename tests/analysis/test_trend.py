"""Robust slopes and the growth of the live heap."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer.analysis.trend import live_growth, slope


def line(per_s: float, count: int, offset: float = 0.0) -> pl.DataFrame:
    x = pl.Series("x", [float(n) for n in range(count)], dtype=pl.Float64)
    return pl.DataFrame({"x": x, "y": offset + per_s * x})


@given(st.floats(-1e3, 1e3), st.integers(8, 500), st.floats(-1e3, 1e3))
def test_the_slope_of_an_exact_line_is_recovered(
    per_s: float, count: int, offset: float
) -> None:
    found = slope(line(per_s, count, offset), x="x", y="y")
    assert found is not None
    for value in (found.low, found.per_s, found.high):
        assert value == pytest.approx(per_s, abs=1e-6)


@given(st.lists(st.floats(-1e6, 1e6), min_size=8, max_size=60))
def test_the_slope_is_within_its_interval(values: list[float]) -> None:
    series = pl.DataFrame({"x": [float(n) for n in range(len(values))], "y": values})
    found = slope(series, x="x", y="y")
    assert found is not None
    assert found.low <= found.per_s <= found.high


@given(st.integers(0, 7))
def test_too_few_points_have_no_slope(count: int) -> None:
    assert slope(line(1, count), x="x", y="y") is None


def test_points_at_one_time_have_no_slope() -> None:
    series = pl.DataFrame({"x": [1.0] * 20, "y": [float(n) for n in range(20)]})
    assert slope(series, x="x", y="y") is None


def growth_of(live: list[int]) -> object:
    start = [float(10 * n) for n in range(len(live))]
    cycles = pl.DataFrame({"start_s": start, "end_s": start, "heap_live_mib": live})
    return live_growth(cycles)


@given(st.integers(20, 200), st.integers(50, 500))
def test_a_constant_live_heap_does_not_grow(count: int, size: int) -> None:
    assert growth_of([size] * count) is None


@given(st.integers(30, 200), st.integers(2, 20))
def test_a_live_heap_that_grows_all_the_time_is_found(count: int, step: int) -> None:
    assert growth_of([100 + step * n for n in range(count)]) is not None


def test_few_cycles_and_an_empty_heap_have_no_growth() -> None:
    assert growth_of([1, 2, 3]) is None
    assert growth_of([0] * 30) is None


@given(st.floats(-5, 5), st.floats(0.01, 2))
def test_the_slope_of_a_noisy_line_is_found(per_s: float, noise: float) -> None:
    points = pl.DataFrame({"x": [float(n) for n in range(60)]}).with_columns(
        y=per_s * pl.col("x") + noise * (pl.col("x") * 2654435761 % 97 / 97 - 0.5)
    )
    found = slope(points, x="x", y="y")
    assert found is not None
    assert found.low <= per_s + 0.05 * noise
    assert per_s - 0.05 * noise <= found.high
    assert found.per_s == pytest.approx(per_s, abs=0.05 * noise)


def test_a_million_points_have_a_slope() -> None:
    points = pl.DataFrame({"x": pl.int_range(10**6, eager=True)}).with_columns(
        y=pl.col("x") * 2
    )
    found = slope(points, x="x", y="y")
    assert found is not None
    assert found.per_s == pytest.approx(2)
    assert slope(points.head(5), x="x", y="y") is None
