"""Blocks of the bootstrap, and the errors that follow from them."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer.analysis.compare.bootstrap import block_cycles, spreads, started
from gctrace_analyzer.analysis.compare.metrics import METRICS, NAMED


@given(st.integers(1, 10**6))
def test_there_are_at_least_five_blocks_of_cycles(cycles: int) -> None:
    length = block_cycles(cycles)
    assert 1 <= length <= max(cycles // 5, 1)


@pytest.mark.parametrize(
    ("cycles", "length"),
    [(1, 1), (4, 1), (5, 1), (20, 4), (25, 5), (100, 5), (343, 7), (1000, 10), (10**6, 100)],
)
def test_a_block_is_the_cube_root_of_the_cycles_within_its_limits(
    cycles: int, length: int
) -> None:
    assert block_cycles(cycles) == length


LEVEL = 200.0


def cycles(live: list[float], every_s: float = 1.0) -> pl.DataFrame:
    return pl.DataFrame({
        "process": 0,
        "start_s": [n * every_s for n in range(len(live))],
        "heap_live_mib": [float(each) for each in live],
        "begin_s": [n * every_s for n in range(len(live))],
        "heap_peak_mib": [2.0 * each for each in live],
        "gc_cpu_s": [1.0 + (n * n) % 7 for n in range(len(live))],
        "capacity_s": [10.0 + n % 3 for n in range(len(live))],
    })  # fmt: skip


@pytest.mark.parametrize(
    ("low", "count", "expected"),
    [
        (100, 6, 7),  # a median of three rises one cycle later than its values
        (181, 6, 0),  # less than 10 % below the level
        (179, 6, 7),
        (100, 11, 0),  # over a third of the time is no start-up
    ],
)
def test_the_start_up_ends_when_the_live_heap_reaches_its_level(
    low: float, count: int, expected: int
) -> None:
    rows = cycles([low] * count + [LEVEL] * (30 - count))
    known = started(rows)
    assert known.to_list() == [False] * expected + [True] * (30 - expected)


def test_two_mib_are_rounding_however_small_the_live_heap_is() -> None:
    for low, expected in ((2.0, 0), (1.9, 7)):
        assert (~started(cycles([low] * 6 + [4.0] * 24))).sum() == expected


def by_hand(rows: pl.DataFrame, length: int) -> float:
    """Returns the standard error of sum(spent) / sum(time), from the sums of circular blocks."""
    spent, time = rows["gc_cpu_s"].to_list(), rows["capacity_s"].to_list()
    ratio = sum(spent) / sum(time)
    rest = [a - ratio * b for a, b in zip(spent, time, strict=True)]
    known = started(rows).to_list()
    for part in (True, False):
        of_part = [each for each, is_it in zip(rest, known, strict=True) if is_it is part]
        if of_part:
            mean = sum(of_part) / len(of_part)
            rest = [
                r - mean if is_it is part else r for r, is_it in zip(rest, known, strict=True)
            ]
    count = len(rest)
    blocks = [sum(rest[(n + k) % count] for k in range(length)) for n in range(count)]
    variance = sum(each * each for each in blocks) / count * count / length
    correction = count / (count - length) if count > length else 1.0
    return math.sqrt(variance * correction) / float(sum(time))


@pytest.mark.parametrize("count", [2, 4, 12, 30, 200])
def test_the_error_of_a_ratio_is_that_of_its_blocks(count: int) -> None:
    rows = cycles([100.0] * (count // 5) + [LEVEL] * (count - count // 5))
    values = dict.fromkeys((metric.name for metric in METRICS), None)
    value = float(rows["gc_cpu_s"].sum()) / float(rows["capacity_s"].sum())
    found = spreads(rows, {**values, "gc_cpu_share": value})
    expected = by_hand(rows, block_cycles(count)) / (value + NAMED["gc_cpu_share"].floor)
    assert found["gc_cpu_share"] == pytest.approx(expected)
    assert found["stw_p99_ms"] is None


def test_cycles_without_one_of_both_numbers_do_not_count() -> None:
    rows = cycles([LEVEL] * 30)
    some = rows.with_columns(
        capacity_s=pl.when(pl.int_range(pl.len()) % 5 != 2).then(pl.col("capacity_s")),
        gc_cpu_s=pl.when(pl.int_range(pl.len()) % 5 != 4).then(pl.col("gc_cpu_s")),
    )
    zeros = some.with_columns(
        pl.when(pl.col("capacity_s").is_not_null() & pl.col("gc_cpu_s").is_not_null())
        .then(pl.col("capacity_s", "gc_cpu_s"))
        .otherwise(0.0)
    )
    values = {**dict.fromkeys(metric.name for metric in METRICS), "gc_cpu_share": 0.3}
    assert spreads(some, values) == spreads(zeros, values)


def test_the_error_of_the_peak_is_half_its_distance_to_the_highest_tenth() -> None:
    rows = cycles([float(n) for n in range(1, 102)])
    values = {**dict.fromkeys(metric.name for metric in METRICS), "gc_cpu_share": 0.3}
    found = spreads(rows, values)["heap_peak_mib"]
    floor = NAMED["heap_peak_mib"].floor
    # The ends are 2, 4, … 202 MiB, and nine tenths of them at most 182 MiB.
    assert found == pytest.approx(math.log((202 + floor) / (182 + floor)) / 2)


def test_the_error_of_a_quantile_is_the_range_of_values_around_it() -> None:
    rows = cycles([LEVEL] * 400).with_columns(
        pause=(pl.int_range(pl.len()) * 37 % 400).cast(pl.Float64)
    )
    values = {**dict.fromkeys(metric.name for metric in METRICS), "stw_p99_ms": 199.5}
    found = spreads(rows, values, {"stw_p99_ms": (("pause",), 0.5)})["stw_p99_ms"]
    # Half of the values are below the median; the error of this share, 0.5 / 20 for independent
    # values, is 10 values to either side. These here are spread more evenly than that.
    assert found is not None
    floor = NAMED["stw_p99_ms"].floor
    widest = (math.log(199.5 + 2 * 20 + floor) - math.log(199.5 - 2 * 20 + floor)) / (2 * 1.96)
    assert 0 < found < widest
    twice = rows.with_columns(other=pl.col("pause"))
    both = spreads(twice, values, {"stw_p99_ms": (("pause", "other"), 0.5)})
    assert both["stw_p99_ms"] == pytest.approx(found, rel=0.1)


def test_a_metric_without_an_error_does_not_hide_the_others() -> None:
    known = cycles([LEVEL] * 30)
    rows = known.with_columns(
        gc_cpu_s=pl.lit(None, pl.Float64), steps=known["gc_cpu_s"], steps_s=known["capacity_s"]
    )
    values = {
        **dict.fromkeys((metric.name for metric in METRICS), None),
        "gc_cpu_share": 0.3, "gc_per_s": 0.3, "live_heap_p50_mib": LEVEL,
    }  # fmt: skip
    found = spreads(rows, values)
    assert found["gc_cpu_share"] is None
    assert found["gc_per_s"] == pytest.approx(
        by_hand(known, block_cycles(30)) / (0.3 + NAMED["gc_per_s"].floor)
    )
    assert found["live_heap_p50_mib"] == 0
