"""Estimates, intervals and verdicts of comparisons, calculated run by run."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.compare.change import (
    BY_LOAD,
    BY_TIME,
    CONTENDED,
    IS_LOAD,
    NO_COST,
    ONE_RUN,
    OVER_CYCLES,
    Change,
)
from gctrace_analyzer.analysis.compare.compare import Measured, compare
from gctrace_analyzer.analysis.compare.metrics import METRICS, PROPORTIONAL, Metric
from gctrace_analyzer.analysis.pauses import LatePauses
from gctrace_analyzer.comparison import Comparison, side_of
from gctrace_analyzer.testing import read_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.advise.expectation import Expectation

T = {6: 2.4469, 7: 2.3646, 8: 2.3060, 9: 2.2622, 10: 2.2281}
"""Student's t for 95 %, by degrees of freedom."""


def run(
    values: Mapping[str, float | None],
    spread: float | None = 0.05,
    *,
    seconds: float = 60.0,
    cycles: int = 30,
    by_limit: bool = False,
    peaks: list[int] | None = None,
) -> Measured:
    """Returns a run whose other figures are 1, with a cycle per second."""
    points = pl.DataFrame({
        "start_s": [float(n) for n in range(cycles)],
        "begin_s": [float(n) for n in range(cycles)],
        "heap_peak_mib": (peaks or [1] * cycles)[:cycles],
        "procs": [4] * cycles,
    })  # fmt: skip
    names = [metric.name for metric in METRICS]
    return Measured(
        points,
        cast("Any", SimpleNamespace(span_s=seconds, cycles=cycles)),
        {**dict.fromkeys(names, 1.0), **values},
        dict.fromkeys(names, spread),
        by_limit,
    )


def estimate(
    metric: Metric, sides: list[list[Measured]]
) -> tuple[list[tuple[float, float]], int]:
    """The mean and the variance of each side on the metric's scale, and degrees of freedom."""
    means, variances, apart, repeats = [], [], 0.0, 0
    for side in sides:
        ys, own = [], []
        for each in side:
            value, spread = each.values[metric.name], each.spread[metric.name]
            if value is None:
                continue
            noise = (metric.loose_noise if each.by_limit else metric.noise) or 0.0
            ys.append(math.log(max(value, 0.0) + metric.floor))
            own.append(noise**2 + (spread or 0.0) ** 2)
        means.append(fmean(ys))
        variances.append(sum(own) / len(own) ** 2)
        apart += sum((y - means[-1]) ** 2 / v for y, v in zip(ys, own, strict=True))
        repeats += len(ys) - 1
    scale = (6 + apart) / (6 + repeats)
    return [(m, scale * v) for m, v in zip(means, variances, strict=True)], 6 + repeats


runs = st.lists(
    st.builds(
        lambda value, spread, limited: run(
            dict.fromkeys((metric.name for metric in METRICS), value), spread, by_limit=limited
        ),
        st.floats(1, 9),
        st.sampled_from([0.0, 0.05, 0.5]),
        st.booleans(),
    ),
    min_size=1,
    max_size=3,
)
TESTED = [metric for metric in METRICS if metric.noise is not None]


@settings(max_examples=40, deadline=None)
@given(runs, runs)
def test_a_comparison_is_that_of_the_means_of_its_runs(
    before: list[Measured], after: list[Measured]
) -> None:
    rows = {name: change.to_dict() for name, change in compare(before, after).items()}
    for metric in TESTED:
        ((was, was_variance), (now, now_variance)), dof = estimate(metric, [before, after])
        row = rows[metric.name]
        assert row["before"] == pytest.approx(math.exp(was) - metric.floor, abs=1e-9)
        assert row["after"] == pytest.approx(math.exp(now) - metric.floor, abs=1e-9)
        assert row["delta"] == pytest.approx(row["after"] - row["before"])
        assert (row["before_runs"], row["after_runs"]) == (len(before), len(after))
        assert (row["before_s"], row["after_s"]) == (60 * len(before), 60 * len(after))
        half = T[dof] * math.sqrt(was_variance + now_variance)
        low, high = now - was - half, now - was + half
        floored = row["before"] + metric.floor
        ends = [math.log1p(row[end] / floored) for end in ("delta_low", "delta_high")]
        # No figure falls below 0; t is known to 0.1 %.
        lowest = math.log1p(-row["before"] / floored)
        assert ends == pytest.approx([max(low, lowest), high], abs=0.002 * half)
        if min(abs(low), abs(high)) > 0.01 * half:
            expected = "better" if high < 0 else "worse" if low > 0 else "~"
            # All figures change by the same factor, and so does the load.
            reason = row["no_verdict_because"]
            assert row["verdict"] == (None if reason else expected)
            if reason:
                assert expected != "~" or metric.better == "neither"
                is_of_load = metric.name in (*PROPORTIONAL, "live_heap_p50_mib")
                assert metric.better != "lower" or is_of_load


def test_a_median_over_cycles_of_the_live_heap_is_judged_only_without_its_mean() -> None:
    """A setting changes the share of the start-up in the cycles, not what is live."""

    def row(metric: str, mean_mib: float | None) -> Any:
        before, after = (
            run({"live_heap_p50_mib": median, "true_live_heap_mib": mean_mib})
            for median in (25.0, 70.0)
        )
        return row_of([before], [after], metric)

    median = row("live_heap_p50_mib", 70.0)
    assert (median["verdict"], median["no_verdict_because"]) == (None, OVER_CYCLES)
    assert row("true_live_heap_mib", 70.0)["verdict"] == "~"
    assert row("live_heap_p50_mib", None)["verdict"] == "worse"
    goal = row("heap_goal_p50_mib", 70.0)
    assert (goal["verdict"], goal["no_verdict_because"]) == (None, NO_COST), (
        "also without change"
    )


def row_of(before: list[Measured], after: list[Measured], name: str, **more: Any) -> Any:
    return compare(before, after, **more)[name].to_dict()


def test_without_evidence_there_is_no_interval() -> None:
    name = "gc_per_s"
    for other in (run({name: 9.0}, cycles=4), run({name: 9.0}, spread=None)):
        row = row_of([run({}), run({})], [other], name)
        assert (row["delta"], row["verdict"]) == (8, None)
        assert (row["delta_low"], row["delta_high"]) == (None, None)
    assert row_of([run({}, cycles=5)], [run({name: 9.0})], name)["verdict"] == "worse"
    unknown = row_of([run({})], [run({name: None}, spread=None)], name)
    assert unknown["before"] == 1
    assert (unknown["after"], unknown["delta"], unknown["verdict"]) == (None, None, None)
    assert (unknown["before_runs"], unknown["after_runs"]) == (1, 0)
    # A run without the figure does not count, nor does it spoil the others.
    some = row_of([run({}), run({name: None}, spread=None)], [run({name: 9.0})], name)
    assert (some["before_runs"], some["verdict"]) == (1, "worse")
    assert row_of([run({})], [run({"stw_max_ms": 9.0})], "stw_max_ms")["delta_low"] is None


def test_a_run_with_few_intervals_is_no_evidence_however_many_cycles_it_has() -> None:
    many = run({"gc_per_s": 9.0})
    few = Measured(many.spans.head(4), many.summary, many.values, many.spread)
    assert (many.evidence, few.evidence) == (30, 4)
    assert (many.long_enough, few.long_enough) == (True, False)
    assert Measured(many.spans.head(5), many.summary, many.values, many.spread).long_enough


@pytest.mark.parametrize(
    ("after", "verdict"),
    [(3.0, "better"), (0.3, "worse")],
)
def test_only_of_a_program_that_does_what_it_can_more_allocation_is_better(
    after: float, verdict: str
) -> None:
    name = "alloc_mib_per_s"
    sides = ([run({})], [run({name: after})])
    given = row_of(*sides, name)
    assert (given["verdict"], given["no_verdict_because"]) == (None, IS_LOAD)
    twice = (sides[0] * 2, sides[1] * 2)
    assert row_of(*twice, name, load_is_given=False)["verdict"] == verdict
    once = row_of(*sides, name, load_is_given=False)
    assert (once["verdict"], once["no_verdict_because"]) == (None, ONE_RUN)
    row = row_of(*sides, "gc_per_s")
    assert row["by_load"] == pytest.approx(after - 1)
    assert row_of(*sides, "gc_per_s", load_is_given=False)["by_load"] is None
    assert row_of(*sides, "heap_peak_mib")["by_load"] is None


@pytest.mark.parametrize(
    ("load", "after", "verdict", "reason"),
    [
        (3.0, 3.0, None, BY_LOAD),  # as many cycles for what is allocated
        (3.0, 9.0, "worse", None), (0.3, 0.3, None, BY_LOAD), (0.3, 0.05, "better", None),
        (3.0, 0.3, "better", None),  # in the opposite direction
        (3.0, 1.0, "~", None),
        (0.3, 1.1, "~", None),
        (9.0, 3.0, None, BY_LOAD),  # fewer for what is allocated, but more all the same
        (1.05, 3.0, "worse", None),  # as good as the same load
    ],
)  # fmt: skip
def test_what_the_load_explains_is_neither_better_nor_worse(
    load: float, after: float, verdict: str | None, reason: str | None
) -> None:
    changed = run({"alloc_mib_per_s": load, "gc_per_s": after, "heap_peak_mib": 9.0})
    row = row_of([run({})], [changed], "gc_per_s")
    assert (row["verdict"], row["no_verdict_because"]) == (verdict, reason)
    assert row_of([run({})], [changed], "heap_peak_mib")["verdict"] == "worse"


@pytest.mark.parametrize("contended", [0, 1])
def test_where_other_work_took_the_cpus_only_cycles_and_heap_are_compared(
    contended: int,
) -> None:
    names = [metric.name for metric in METRICS]
    sides = [run({}), run(dict.fromkeys(names, 9.0))]
    sides[contended] = replace(sides[contended], late=LatePauses(9, 100))
    changes = compare([sides[0]], [sides[1]])
    for metric in METRICS:
        change = changes[metric.name]
        if metric.is_time and metric.noise is not None:
            assert (change.delta, change.verdict, change.delta_low) == (8, None, None)
            assert change.no_verdict_because == CONTENDED
        else:
            assert (change.delta_low is None) == (metric.noise is None)
    assert changes["heap_peak_mib"].verdict == "worse"
    throughput = compare([sides[0]], [sides[1]], load_is_given=False)["alloc_mib_per_s"]
    assert (throughput.verdict, throughput.no_verdict_because) == (None, CONTENDED)


def test_what_the_load_explains_of_a_share_is_at_most_the_whole() -> None:
    before, after = run({"gc_cpu_share": 0.4}), run({"alloc_mib_per_s": 3.0})
    assert row_of([before], [after], "gc_cpu_share")["by_load"] == pytest.approx(0.6)
    small = run({"gc_cpu_share": 0.1})
    assert row_of([small], [after], "gc_cpu_share")["by_load"] == pytest.approx(0.2)
    unknown = run({"gc_cpu_share": None}, spread=None)
    assert row_of([unknown], [after], "gc_cpu_share")["by_load"] is None


@pytest.mark.parametrize(
    ("before", "delta", "half", "other"),
    [
        (100.0, 10.1, 5.0, True), (100.0, -10.1, 5.0, True), (100.0, 10.0, 5.0, False),
        (100.0, 50.0, 60.0, False), (100.0, None, 0.0, False), (0.0, 5.0, 1.0, False),
        (None, 5.0, 1.0, False),
    ],
)  # fmt: skip
def test_another_load_differs_by_more_than_a_tenth(
    before: float | None, delta: float | None, half: float, other: bool
) -> None:
    ends = (None, None) if delta is None else (delta - half, delta + half)
    change = Change(
        "alloc_mib_per_s", before=before, delta=delta, delta_low=ends[0], delta_high=ends[1]
    )
    assert change.is_other_load is other


def test_a_longer_run_had_more_time_to_reach_its_peak() -> None:
    name, peak = "heap_peak_mib", {"heap_peak_mib": 40.0}
    short = run({name: 20.0}, seconds=10.0, cycles=10, peaks=[20] * 10)
    # In thirds of its time, the peaks are 20, 20 and 40 MiB.
    peaks = [20] * 29 + [40]
    long = run(peak, seconds=30.0, peaks=peaks)
    floor = next(metric.floor for metric in METRICS if metric.name == name)
    more = math.log(40 + floor) - fmean(math.log(each + floor) for each in (20, 20, 40))
    ((was, one), (now, two)), dof = estimate(
        next(metric for metric in METRICS if metric.name == name), [[short], [long]]
    )
    half = T[dof] * math.sqrt(one + two)
    low = (20 + floor) * math.expm1(now - was - half - more)
    assert row_of([short], [long], name)["delta_low"] == pytest.approx(low, rel=0.01)
    # The other way round, it is the upper end that is higher.
    row = row_of([long], [short], name)
    assert row["delta_high"] == pytest.approx(
        (40 + floor) * math.expm1(was - now + half + more), rel=0.01
    )
    # A quarter more time is as much.
    same = run(peak, seconds=12.5, peaks=peaks)
    low = (20 + floor) * math.expm1(now - was - half)
    assert row_of([short], [same], name)["delta_low"] == pytest.approx(low, rel=0.01)
    # Other figures do not need time.
    others = run({"live_heap_p50_mib": 40.0}, seconds=30.0, peaks=peaks)
    row = row_of([short], [others], "live_heap_p50_mib")
    assert row["delta_low"] > 30


def _log(cycles: int, interval_s: float, mib: int = 8) -> str:
    return "".join(
        f"gc {n} @{n * interval_s:.3f}s 2%: 0.01+1+0.01 ms clock, 0.02+0.1/1/0+0.02 ms cpu, "
        f"{3 + mib}->{4 + mib}->4 MB, {4 + mib} MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
        for n in range(1, cycles + 1)
    )


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        # The same work, on a machine that is not always as fast.
        (
            [(40, 0.010), (40, 0.014), (40, 0.012)],
            [(20, 0.011), (20, 0.015), (20, 0.009)],
            True,
        ),
        # A service: a longer log has more cycles.
        (
            [(40, 0.010), (60, 0.010), (50, 0.010)],
            [(20, 0.010), (40, 0.010), (30, 0.010)],
            False,
        ),
        # A timer ends each run.
        (
            [(40, 0.010), (40, 0.010), (40, 0.010)],
            [(20, 0.020), (20, 0.020), (20, 0.020)],
            False,
        ),
        ([(40, 0.010), (40, 0.014)], [(20, 0.011), (20, 0.015)], False),
    ],
    ids=["batch", "service", "timer", "two runs"],
)
def test_totals_are_compared_if_each_run_does_the_same_work(
    before: list[tuple[int, float]], after: list[tuple[int, float]], *, same: bool
) -> None:
    sides = [[read_text(_log(*run)) for run in side] for side in (before, after)]
    comparison = gca.compare(*sides)
    assert ("alloc_mib_per_run" in comparison.frame["metric"]) is same
    text = " ".join(str(comparison).split())
    assert ("49 % less allocated per run and 50 % fewer cycles per run" in text) is same
    assert ("each run of a side does the same work" in text) is same
    assert not same or comparison["alloc_mib_per_s"].verdict not in ("better", "worse")


def test_half_the_cycles_in_a_quarter_of_the_time_are_not_a_higher_frequency() -> None:
    before, after = (
        [read_text(_log(cycles, times * step)) for step in (0.010, 0.014, 0.012)]
        for cycles, times in ((60, 1.0), (30, 0.2))
    )
    comparison = gca.compare(before, after)
    frequency = comparison["gc_per_s"]
    assert frequency.is_significant
    assert (frequency.relative or 0) > 1
    assert (frequency.verdict, frequency.no_verdict_because) == (None, BY_TIME)
    assert comparison["cycles_per_run"].verdict == "better"
    assert comparison.check("gc_per_s>+10%")[0].held is None


@pytest.mark.parametrize(("cycles", "shown"), [(55, False), (70, True)])
def test_a_few_cycles_after_the_start_up_do_not_show_what_held(
    cycles: int, shown: bool
) -> None:
    """Half a second is the start-up of a run; after it, there are 5 or 20 cycles."""
    sides = [
        side_of(name, [read_text(_log(number, 0.010))])
        for name, number in (("before", 60), ("after", cycles))
    ]
    promised: Expectation = {"gc_cpu_share": (0.05, 0.04, 0.06)}
    found = Comparison(sides, promised=lambda *_: (promised, None))
    assert (found["gc_cpu_share"].measured is not None) is shown
