"""Robust slopes and the growth of the live heap."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import combinations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.analysis.trend import (
    _QUANTITIES,
    LiveGrowth,
    changes_at,
    live_growth,
    slope,
)


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


def found_growth(live: list[float], every_s: float = 10.0) -> LiveGrowth | None:
    start = [every_s * n for n in range(len(live))]
    end = [each + 1 for each in start]
    return live_growth(pl.DataFrame({"start_s": start, "end_s": end, "heap_live_mib": live}))


def test_the_growth_of_a_steady_leak_by_hand() -> None:
    """A MiB every 10 seconds; the first quarter counts as start-up."""
    found = found_growth([100.0 + n for n in range(81)])
    assert found is not None
    assert (found.mib_per_h, found.low, found.high) == pytest.approx((360, 360, 360))
    assert (found.begin_s, found.end_s) == (200, 801)
    assert found.span_s == 601
    assert found.gained_mib == pytest.approx(60.1)
    assert found.median_mib == pytest.approx(150)
    assert found.first_mib < 130
    assert found.last_mib > 170
    # The last third grows as the rest does.
    assert found.recent_mib == pytest.approx(20, abs=2)
    assert found.is_steady


def test_a_cache_that_has_filled_up_no_longer_grows_at_the_end() -> None:
    found = found_growth([100.0 + min(2 * n, 100) for n in range(100)])
    assert found is None or not found.is_steady
    filling = LiveGrowth(100, 50, 150, 0.0, 300.0, 100, 160, 130, 4.9)
    assert not filling.is_steady
    assert not replace(filling, recent_mib=2.0).is_steady
    assert replace(filling, recent_mib=20.0).is_steady


@pytest.mark.parametrize("count", [4, 9, 10, 20])
def test_a_few_cycles_are_needed_for_a_growth(count: int) -> None:
    grows = found_growth([100.0 + 10 * n for n in range(count)]) is not None
    assert grows == (count >= 10), "eight after the first quarter"


def test_small_growth_is_none() -> None:
    """It must be a tenth of the live heap, and some MiB."""
    assert found_growth([1000.0 + 0.1 * n for n in range(81)]) is None
    assert found_growth([4.0 + 0.02 * n for n in range(81)]) is None
    assert found_growth([100.0 - n for n in range(81)]) is None


def test_a_burst_of_cycles_counts_once() -> None:
    """Thousands of cycles within a second have no more weight than that second."""
    calm = [(10.0 * n, 100.0 + n) for n in range(100)]
    burst = [(500.0 + n / 1000, 400.0) for n in range(1, 3000)]
    rows = sorted(calm + burst)
    found = live_growth(
        pl.DataFrame(rows, schema=["start_s", "heap_live_mib"], orient="row").with_columns(
            end_s="start_s"
        )
    )
    assert found is not None
    assert found.mib_per_h == pytest.approx(360, rel=0.1)


def test_correlated_values_have_a_wider_interval() -> None:
    # The same values in another order: alternating, and in long waves.
    noise = [(-1) ** n for n in range(200)]
    waves = [1 if n // 25 % 2 else -1 for n in range(200)]
    widths = []
    for values in (noise, waves):
        y = [0.05 * n + value for n, value in enumerate(values)]
        found = slope(pl.DataFrame({"x": [float(n) for n in range(200)], "y": y}), x="x", y="y")
        assert found is not None
        assert found.low <= 0.05 <= found.high
        widths.append(found.high - found.low)
    assert widths[1] > 2 * widths[0]


def around(before: float, after: float, name: str, count: int = 15) -> list[str]:
    starts = [float(n) for n in range(2 * count)]
    values = [before] * count + [after] * count
    steady = {each: [100.0] * (2 * count) for each in _QUANTITIES}
    frame = pl.DataFrame({"start_s": starts, **(steady | {name: values})})
    return changes_at(frame, float(count), DEFAULT)


def test_what_changed_when_a_state_began() -> None:
    assert around(100.0, 150.0, "alloc_mib_per_s") == [
        "the allocation rate rose from 100 MiB/s to 150 MiB/s"
    ]
    assert around(100.0, 149.0, "alloc_mib_per_s") == []
    assert around(150.0, 100.0, "alloc_mib_per_s") == [], "an effect, not a cause"
    assert around(100.0, 200.0, "heap_live_mib") == [
        "the live heap rose from 100 MiB to 200 MiB"
    ]
    assert around(200.0, 100.0, "heap_goal_mib") == [
        "the heap goal fell from 200 MiB to 100 MiB"
    ]
    assert around(100.0, 200.0, "heap_goal_mib") == []
    assert around(0.5, 5.0, "heap_live_mib") == [], "rounding"
    assert around(100.0, 200.0, "heap_live_mib", count=3) == [], "too few cycles"


def theil_sen(xs: list[float], ys: list[float]) -> tuple[float, float, float]:
    """The slope and its interval, pair by pair, without autocorrelation (Sen, 1968)."""
    slopes = sorted(
        (ys[j] - ys[i]) / (xs[j] - xs[i])
        for i, j in combinations(range(len(xs)), 2)
        if xs[j] > xs[i]
    )
    n = len(xs)
    ties = sum(t * (t - 1) * (2 * t + 5) for t in Counter(ys).values())
    half = 1.959964 * math.sqrt((n * (n - 1) * (2 * n + 5) - ties) / 18) / 2

    def quantile(share: float) -> float:
        at = min(max(share, 0.0), 1.0) * (len(slopes) - 1)
        low = slopes[math.floor(at)]
        return low + (slopes[math.ceil(at)] - low) * (at - math.floor(at))

    width = half / len(slopes)
    return quantile(0.5 - width), quantile(0.5), quantile(0.5 + width)


@pytest.mark.parametrize("levels", [2, 5, 1000], ids=["many ties", "some ties", "none"])
def test_the_interval_is_that_of_sen(levels: int) -> None:
    xs = [float(n) for n in range(40)]
    # Alternating, so that nothing is correlated with the value before it.
    ys = [
        float(round((0.3 * n + (7 if n % 2 else -7) + n * 37 % 11) * levels / 40))
        for n in range(40)
    ]
    found = slope(pl.DataFrame({"x": xs, "y": ys}), x="x", y="y")
    assert found is not None
    low, middle, high = theil_sen(xs, ys)
    assert found.per_s == pytest.approx(middle)
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high)


def test_growth_must_be_large_and_certain() -> None:
    """A jump in the middle of noise is large, a slow rise certain; neither is both."""
    noise = [100.0 + (40 if n % 2 else -40) + 0.05 * n for n in range(100)]
    assert found_growth(noise) is None
    slow = [1000.0 + 0.01 * n for n in range(100)]
    assert found_growth(slow) is None
