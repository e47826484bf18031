"""Robust slopes and the growth of the live heap."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise
from statistics import median, median_high, median_low

import polars as pl
import pytest
from hypothesis import example, given, settings
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
    assert found.first_mib < 130
    assert found.last_mib > 170
    # The last third grows as the rest does.
    assert found.recent_mib == pytest.approx(20, abs=2)
    assert found.is_steady


@pytest.mark.parametrize("after", [[0.0], [20.0, 30.0, 20.0]])
def test_growth_ends_before_the_live_heap_falls(after: list[float]) -> None:
    grown = [100.0 + n for n in range(81)]
    found, before = found_growth([*grown, *after]), found_growth(grown)
    assert found is not None
    assert before is not None
    # Known when the cycle has marked, as the sizes over time.
    assert (found.fell_at_s, found.fell_to_mib) == (811, after[0])
    assert before.fall == ""
    assert not found.is_steady
    assert replace(found, fell_at_s=None, fell_to_mib=0.0) == before
    to = "20 MiB" if after[0] else "under 1 MiB"
    assert found.fall == f" At 13m 31s the live heap fell to {to}."
    low = found_growth([*grown, 50.0, 181.0])
    assert low is not None
    assert not low.fall, "it came back"


def test_a_live_heap_that_is_dropped_again_and_again_does_not_grow() -> None:
    """In later batches fewer cycles mark an empty heap, so their median rises."""
    batches = [3, 6, 10, 22, 1, 4, 13, 25, 2, 5, 8, 16, 30, 16, 35, 25]
    assert found_growth([10.0 * each for each in batches]) is None
    assert found_growth([10.0 * each for each in (*batches[:-2], 50, 60)]) is not None


def test_growth_is_dated_by_the_cycles_that_have_its_values() -> None:
    found = found_growth([100.0 + n for n in range(81)])
    assert found is not None
    assert found.first_mib == 100 + found.first_s / 10
    assert found.last_mib == 100 + (found.last_s - 1) / 10
    assert found.text == "The live heap grew from 120 to 180 MiB in 10m 01s"


def test_a_cache_that_has_filled_up_no_longer_grows_at_the_end() -> None:
    found = found_growth([100.0 + min(2 * n, 100) for n in range(100)])
    assert found is None or not found.is_steady
    filling = LiveGrowth(100, 50, 150, 0.0, 300.0, 100, 160, 4.9)
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
    """The slope and its interval, pair by pair (Sen, 1968), widened for autocorrelation."""
    slopes = sorted(
        (ys[j] - ys[i]) / (xs[j] - xs[i])
        for i, j in combinations(range(len(xs)), 2)
        if xs[j] > xs[i]
    )

    def quantile(share: float) -> float:
        at = min(max(share, 0.0), 1.0) * (len(slopes) - 1)
        low = slopes[math.floor(at)]
        return low + (slopes[math.ceil(at)] - low) * (at - math.floor(at))

    middle = quantile(0.5)
    off = [y - middle * x for x, y in zip(xs, ys, strict=True)]
    off = [each - median(off) for each in off]
    squares = sum(each * each for each in off)
    r = sum(one * two for one, two in pairwise(off)) / squares if squares else 0.0
    r = min(max(r, 0.0), 0.95)
    n = len(xs)
    ties = sum(t * (t - 1) * (2 * t + 5) for t in Counter(ys).values())
    variance = (n * (n - 1) * (2 * n + 5) - ties) / 18 * (1 + r) / (1 - r)
    width = 1.959964 * math.sqrt(variance) / 2 / len(slopes)
    return quantile(0.5 - width), middle, quantile(0.5 + width)


def thinned(xs: list[float], ys: list[float], ranges: int) -> tuple[list[float], list[float]]:
    """The medians of equal ranges of `xs`."""
    begin, span = min(xs), max(xs) - min(xs)
    parts: dict[int, list[tuple[float, float]]] = {}
    for x, y in zip(xs, ys, strict=True):
        part = min(math.floor((x - begin) / span * ranges), ranges - 1)
        parts.setdefault(part, []).append((x, y))
    each = [(median(x for x, _ in part), median(y for _, y in part)) for part in parts.values()]
    return [x for x, _ in each], [y for _, y in each]


walks = st.tuples(
    st.integers(0, 2**20),
    st.integers(20, 80),
    st.sampled_from([0.0, 0.5, 3.0]),
    st.sampled_from([0, 20]),
)
"""Seed, length, rise per point, and how much the walk wanders."""


def walk(seed: int, count: int, rise: float, wander: int) -> tuple[list[float], list[float]]:
    """Returns times that are not evenly apart, and whole numbers, some of them equal."""
    rng = random.Random(seed)
    xs, ys, x, off = [], [], 0.0, 0
    for n in range(count):
        # Never at the very end of a range, where rounding decides
        x += rng.choice([0.1, 1.0, 1.5, 7.0]) * rng.uniform(0.9, 1.1)
        off += rng.randint(-wander, wander) // 8
        xs.append(x)
        ys.append(float(100 + round(rise * n) + rng.randint(-2, 2) + off))
    return xs, ys


@settings(max_examples=30, deadline=None)
@given(walks)
def test_a_slope_is_that_of_all_pairs_of_points(one: tuple[int, int, float, int]) -> None:
    xs, ys = walk(*one)
    found = slope(pl.DataFrame({"x": xs[::-1], "y": ys[::-1]}), x="x", y="y")
    assert found is not None
    assert (found.low, found.per_s, found.high) == pytest.approx(theil_sen(xs, ys))


@pytest.mark.parametrize(("count", "ranges"), [(200, None), (201, 200), (700, 200)])
def test_a_long_series_is_reduced_to_the_medians_of_time_ranges(
    count: int, ranges: int | None
) -> None:
    xs, ys = walk(3, count, 0.5, 20)
    expected = theil_sen(*(thinned(xs, ys, ranges) if ranges else (xs, ys)))
    found = slope(pl.DataFrame({"x": xs, "y": ys}), x="x", y="y")
    assert found is not None
    assert (found.low, found.per_s, found.high) == pytest.approx(expected)


@settings(max_examples=40, deadline=None)
@given(walks)
@example((301, 34, 0.5, 0))  # Its last third does not rise.
def test_the_growth_of_the_live_heap_is_calculated_by_hand(
    one: tuple[int, int, float, int],
) -> None:
    xs, ys = walk(*one)
    ends = [x + 0.0625 for x in xs]
    table = {"start_s": xs, "end_s": ends, "heap_live_mib": ys}
    found = live_growth(pl.DataFrame(table))
    if ys == sorted(set(ys)) and ys[-1] >= 2 * ys[0]:
        return  # These grow however few they are.
    after_start_up = xs[0] + (ends[-1] - xs[0]) / 4
    skipped = min(sum(x < after_start_up for x in xs), len(xs) // 4)
    times, heaps = xs[skipped:], ys[skipped:]
    points = (times, heaps)
    if len(times) >= 20 and len(thinned(*points, 20)[0]) >= 10:
        points = thinned(*points, 20)
    if len(points[0]) < 8:
        assert found is None
        return
    low, per_s, high = theil_sen(*points)
    span_s, usual = ends[-1] - times[0], median(heaps)
    if low <= 0 or per_s * span_s < max(0.1 * usual, 4.0):
        assert found is None
        return
    assert found is not None
    assert (found.low, found.mib_per_h, found.high) == pytest.approx(
        (3600 * low, 3600 * per_s, 3600 * high)
    )
    assert (found.begin_s, found.end_s) == (times[0], ends[-1])
    few = max(min(5, len(heaps) // 5), 1)
    first, last = heaps[:few], heaps[-few:]
    begun = first[0] if first == sorted(first) else median_low(first)
    reached = last[-1] if last == sorted(last) else median_high(last)
    late = [y for x, y in zip(times, heaps, strict=True)
            if x >= times[0] + 2 * (times[-1] - times[0]) / 3]  # fmt: skip
    half = max(len(late) // 2, 1)
    recent = 2 * (median(late[-half:]) - median(late[:half]))
    if len(late) < 4:
        recent = heaps[-1] - heaps[-len(late) - 1]
    if recent <= 0:  # It no longer grows, and shows when it was first as large.
        reached = next(y for y in heaps if y >= reached)
    assert (found.first_mib, found.last_mib) == (begun, reached)
    assert found.recent_mib == recent
    assert found.gained_mib == pytest.approx(per_s * span_s)


@pytest.mark.parametrize(
    ("sizes", "grows"),
    [
        ([10, 20, 30, 50, 90], True),
        ([10, 20, 20, 50, 90], False),
        ([50, 60, 70, 80, 90], False),
        ([10, 20, 30, 90], False),
    ],
)
def test_a_live_heap_that_rises_from_each_of_a_few_cycles_to_the_next_grows(
    sizes: list[int], *, grows: bool
) -> None:
    starts = [0.0, 1.0, 2.0, 4.0, 8.0][: len(sizes)]
    table = {"start_s": starts, "end_s": starts, "heap_live_mib": sizes}
    found = live_growth(pl.DataFrame(table))
    assert (found is not None) is grows
    if found is not None:
        assert (found.first_mib, found.last_mib) == (10, 90)
        assert not found.is_lasting


def test_a_heap_that_still_grows_in_the_last_of_a_few_cycles_has_not_settled() -> None:
    """Cycles become rarer as the heap grows, so that one alone is in the last third."""
    starts = [0.001, 0.016, 0.031, 0.059, 0.101, 0.157, 0.238, 0.361, 0.551, 0.839]
    sizes = [2, 4, 6, 10, 16, 24, 36, 55, 82, 125]
    table = {"start_s": starts, "end_s": [at + 0.001 for at in starts], "heap_live_mib": sizes}
    found = live_growth(pl.DataFrame(table))
    assert found is not None
    assert found.is_steady
    assert (found.first_mib, found.last_mib, found.recent_mib) == (6, 125, 43)


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


@pytest.mark.parametrize(("recent", "steady"), [(5.0, True), (4.9, False)])
def test_a_growth_is_steady_if_it_goes_on_a_quarter_as_fast(
    recent: float, steady: bool
) -> None:
    """60 MiB in all are 20 in each third."""
    growth = LiveGrowth(100, 50, 150, 0.0, 300.0, 100, 160, recent)
    assert growth.is_steady is steady


def test_a_growth_of_a_minute_is_long() -> None:
    growth = LiveGrowth(100, 50, 150, 10.0, 70.0, 100, 160, 5.0)
    assert growth.is_long
    assert not replace(growth, end_s=69.9).is_long
    assert growth.span_s == 60
    assert growth.gained_mib == pytest.approx(100 / 60)


def test_what_changed_is_of_ten_seconds_and_twenty_cycles() -> None:
    """The other values far before and after do not count."""
    starts = [0.25 * n for n in range(160)]
    steady = {each: [100.0] * 160 for each in _QUANTITIES}

    def changed(live: list[float], start_s: float = 20.0) -> list[str]:
        frame = pl.DataFrame({"start_s": starts, **(steady | {"heap_live_mib": live})})
        return changes_at(frame, start_s, DEFAULT)

    rose = ["the live heap rose from 100 MiB to 150 MiB"]
    assert changed([100.0] * 80 + [150.0] * 80) == rose
    # Twenty cycles are 5 s here.
    assert changed([900.0] * 60 + [100.0] * 20 + [150.0] * 20 + [900.0] * 60) == rose
    # Half of the twenty cycles after are not enough for a median.
    assert changed([100.0] * 80 + [150.0] * 9 + [100.0] * 71) == []
    assert changed([100.0] * 80 + [150.0] * 80, start_s=1.25) == []
    # Ten seconds, if cycles are rare; five cycles are enough.
    starts[:] = [2.0 * n for n in range(160)]
    assert changed([900.0] * 5 + [100.0] * 5 + [150.0] * 6 + [900.0] * 144) == rose
    starts[:] = [2.6 * n for n in range(160)]
    assert changed([100.0] * 8 + [150.0] * 152, start_s=20.8) == []
    starts[:] = [0.25 * n for n in range(160)]
    assert changed([1.0] * 80 + [1.5] * 80) == ["the live heap rose from 1 MiB to 1.5 MiB"]
    assert changed([0.9] * 80 + [1.5] * 80) == []
