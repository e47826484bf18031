"""Blocks of cycles, and the errors that follow from how they differ."""

from __future__ import annotations

import math
import statistics

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer.analysis.compare.chance import block_cycles, spreads
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


def by_hand(rows: pl.DataFrame, length: int) -> float:
    """Returns the standard error of sum(spent) / sum(time), from blocks that follow each other."""
    spent, time = rows["gc_cpu_s"].to_list(), rows["capacity_s"].to_list()
    ratio = sum(spent) / sum(time)
    rest = [a - ratio * b for a, b in zip(spent, time, strict=True)]
    sums = [sum(rest[n : n + length]) for n in range(len(rest) - length + 1)]
    squares = [(b - a) ** 2 for a, b in zip(sums, sums[length:], strict=False)]
    square = min(sum(squares) / len(squares) / 2, statistics.variance(sums))
    return math.sqrt(square * len(rest) / length) / float(sum(time))


@pytest.mark.parametrize("count", [2, 4, 12, 30, 200])
def test_the_error_of_a_ratio_is_that_of_its_blocks(count: int) -> None:
    rows = cycles([100.0] * (count // 5) + [LEVEL] * (count - count // 5))
    values = dict.fromkeys((metric.name for metric in METRICS), None)
    value = float(rows["gc_cpu_s"].sum()) / float(rows["capacity_s"].sum())
    found = spreads(rows, {**values, "gc_cpu_share": value})
    floor = NAMED["gc_cpu_share"].floor
    spent, time = rows["gc_cpu_s"], rows["capacity_s"]
    without = [
        (spent.sum() - one) / (time.sum() - other)
        for one, other in zip(spent, time, strict=True)
    ]
    hangs = max(abs(math.log((rest + floor) / (value + floor))) for rest in without)
    expected = max(by_hand(rows, block_cycles(count)) / (value + floor), hangs)
    assert found["gc_cpu_share"] == pytest.approx(expected)
    assert found["stw_p99_ms"] is None


@pytest.mark.parametrize("place", [0, 1, 4])
def test_a_verdict_does_not_hang_on_one_cycle(place: int) -> None:
    """Without it, GC CPU is a fifth; the interval of Student has to reach that far."""
    costs = [1.0] * 5
    costs[place] = 21.0
    rows = cycles([LEVEL] * 5).with_columns(gc_cpu_s=pl.Series(costs), capacity_s=100.0)
    values = dict.fromkeys((metric.name for metric in METRICS), None)
    error = spreads(rows, {**values, "gc_cpu_share": 0.05})["gc_cpu_share"] or 0.0
    assert error >= math.log(0.0505 / 0.0105)


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


def test_phases_that_last_are_no_chance() -> None:
    rows = cycles([LEVEL] * 200)
    values = {**dict.fromkeys(metric.name for metric in METRICS), "gc_cpu_share": 0.3}
    later = pl.when(pl.int_range(pl.len()) >= 100).then(10).otherwise(1)
    phases = rows.with_columns(gc_cpu_s=pl.col("gc_cpu_s") * later)
    mixed = phases.sample(fraction=1, shuffle=True, seed=1)
    found, of_mixed = (spreads(each, values)["gc_cpu_share"] or 0 for each in (phases, mixed))
    assert found < of_mixed / 2


def test_the_error_of_the_peak_is_that_of_every_second_cycle() -> None:
    rows = cycles([float(n % 7) for n in range(40)] + [91.0, 101.0])
    values = {**dict.fromkeys(metric.name for metric in METRICS), "gc_cpu_share": 0.3}
    found = spreads(rows, values)["heap_peak_mib"]
    floor = NAMED["heap_peak_mib"].floor
    assert found == pytest.approx(math.log((202 + floor) / (182 + floor)))


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


@pytest.mark.parametrize(("pauses", "is_known"), [(54, False), (380, False), (381, True)])
def test_the_p99_of_few_pauses_is_a_maximum_and_has_no_error(
    pauses: int, *, is_known: bool
) -> None:
    rows = cycles([LEVEL] * pauses).with_columns(
        pause=pl.int_range(pl.len()).shuffle(seed=1).cast(pl.Float64)
    )
    values = {**dict.fromkeys(metric.name for metric in METRICS), "stw_p99_ms": 0.99 * pauses}
    found = spreads(rows, values, {"stw_p99_ms": (("pause",), 0.99)})["stw_p99_ms"]
    assert (found is not None) == is_known


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
