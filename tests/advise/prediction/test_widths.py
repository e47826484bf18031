"""The width of intervals: each reason for an error adds to it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gctrace_analyzer.advise.prediction.gain import gain
from gctrace_analyzer.advise.prediction.model import Model, Prediction, Setting
from gctrace_analyzer.advise.prediction.widths import (
    FACTORS,
    QUANTITIES,
    WIDTHS,
    apart,
    deviation,
    interval,
    value_of,
)
from gctrace_analyzer.analysis.pauses import LatePauses
from tests.helpers.loads import steady_load

LOAD = replace(steady_load(start=340, end=344, live=200, goal=400), cycles=100, variation=0.0)
CENTER = replace(
    Model(LOAD, Setting(100.0)).predict(Setting(100.0)),
    gap=LOAD.gap_mib, gap_spread=0.0, peak_spread=0.0, gc_per_s=100 / LOAD.span_s,
)  # fmt: skip
RATE, PEAK, SHARE = "gc_per_s", "heap_peak_mib", "gc_cpu_share"


def squares(name: str, load: object = LOAD, center: Prediction = CENTER) -> float:
    """The variance beyond that of a load and a prediction that are equal in all respects."""
    return deviation(name, load, center) ** 2 - deviation(name, LOAD, CENTER) ** 2  # type: ignore[arg-type]


@pytest.mark.parametrize("name", QUANTITIES)
def test_a_prediction_of_the_present_has_the_error_of_any_distance(name: str) -> None:
    width = WIDTHS[name]
    expected = (
        width.always**2
        + width.cycles**2 / 100
        + width.target**2 / 100
        + 2 * (width.rounding / LOAD.gap_mib) ** 2
    )
    assert deviation(name, LOAD, CENTER) == pytest.approx(math.sqrt(expected))


@pytest.mark.parametrize("name", QUANTITIES)
def test_each_reason_adds_in_quadrature(name: str) -> None:
    width = WIDTHS[name]
    no_rounding = width.rounding / LOAD.gap_mib
    far = replace(CENTER, gap=LOAD.gap_mib * math.e**2)
    rounding = (width.rounding / far.gap) ** 2 - no_rounding**2
    assert squares(name, center=far) == pytest.approx((2 * width.distance) ** 2 + rounding)
    busy = replace(LOAD, work_variation=0.5)
    assert squares(name, busy) == pytest.approx((0.5 * width.work) ** 2 * (1 / 100 + 1 / 100))
    uneven = replace(LOAD, period_variation=0.5)
    both = 1 / 100**2 + 1 / 100**2
    assert squares(name, uneven) == pytest.approx((0.5 * width.ends) ** 2 * both)
    varied = replace(LOAD, variation=0.3)
    assert squares(name, varied) == pytest.approx((0.3 * width.variation) ** 2)
    bound = replace(LOAD, alloc_in=0.0)
    assert bound.cpu_bound == 1
    assert squares(name, bound) == pytest.approx(width.bound**2)
    old = replace(bound, new_pacer=False)
    assert squares(name, old) == pytest.approx(width.bound**2 + width.old_pacer**2)
    assert squares(name, replace(LOAD, new_pacer=False)) == 0
    contended = replace(LOAD, late_pauses=LatePauses(5, 100))
    assert squares(name, contended) == pytest.approx(width.contended**2)
    few = replace(CENTER, gc_per_s=4 / LOAD.span_s)
    assert squares(name, center=few) == pytest.approx(width.target**2 * (1 / 4 - 1 / 100))
    phases = replace(CENTER, gap_spread=0.2, peak_spread=0.1)
    spread = 0.1 if name == PEAK else 0.2
    assert squares(name, center=phases) == pytest.approx((spread * width.phases) ** 2)


def test_few_cycles_at_uneven_times_leave_their_number_open() -> None:
    """Where the first and the last of them fall is chance, so the error falls with 1 / cycles."""
    uneven = replace(LOAD, period_variation=0.6)
    few = replace(CENTER, gc_per_s=3 / LOAD.span_s)
    assert squares(RATE, uneven, few) - squares(RATE, LOAD, few) > 0.6**2
    assert squares(RATE, uneven, CENTER) < 0.001


def test_a_program_that_thrashes_has_an_uncertain_speed_but_a_bounded_heap() -> None:
    thrashing = replace(CENTER, thrash="risk")
    for name, more in ((RATE, 0.3), (SHARE, 0.3), (PEAK, 0.0), ("live_heap_mib", 0.0)):
        extra = deviation(name, LOAD, thrashing) - deviation(name, LOAD, CENTER)
        assert extra == pytest.approx(more)


@pytest.mark.parametrize("name", QUANTITIES)
def test_the_interval_is_the_error_around_the_value(name: str) -> None:
    value = value_of(name, CENTER)
    low, middle, high = interval(name, LOAD, CENTER, ())
    by = FACTORS[name] * deviation(name, LOAD, CENTER)
    half = 0.5 if name.endswith("_mib") else 0.0
    assert middle == value
    assert low == pytest.approx(value * math.exp(-by) - half)
    assert high == pytest.approx(value * math.exp(by) + half)


def test_the_interval_covers_other_assumptions() -> None:
    lower, higher = (replace(CENTER, gc_per_s=times * CENTER.gc_per_s) for times in (0.5, 1.2))
    below, above = apart(RATE, CENTER, (lower, higher))
    assert (below, above) == pytest.approx((math.log(0.5), math.log(1.2)))
    assert apart(RATE, CENTER, (higher,)) == pytest.approx((0, math.log(1.2)))
    by = FACTORS[RATE] * deviation(RATE, LOAD, CENTER)
    low, value, high = interval(RATE, LOAD, CENTER, (lower, higher))
    assert math.log(value / low) == pytest.approx(math.hypot(by, math.log(2)))
    assert math.log(high / value) == pytest.approx(math.hypot(by, math.log(1.2)))


def test_shares_are_at_most_one_and_nothing_is_negative() -> None:
    most = replace(CENTER, gc_cpu_share=0.97, heap_peak=0.3, gc_per_s=0.0)
    low, _, high = interval(SHARE, LOAD, most, ())
    assert high == 1
    assert low < 0.97
    assert interval(PEAK, LOAD, most, ())[0] == 0
    assert value_of(RATE, most) == 1e-9
    assert interval(RATE, LOAD, most, (CENTER,))[2] < math.inf


def test_the_deviation_of_a_gain_has_no_part_that_both_settings_share() -> None:
    name = "gc_cpu_with_idle_share"

    def found(**changes: object) -> float:
        center = replace(CENTER, **changes)  # type: ignore[arg-type]
        return gain(name, 0.2, 0.1, LOAD, center, ()).deviation

    assert gain(name, 0.2, 0.1, LOAD, CENTER, ()).ratio == pytest.approx(2)
    assert found() == found(gap_spread=0.5) == found(gap=10 * CENTER.gap)
    contended = replace(LOAD, late_pauses=LatePauses(5, 100))
    assert gain(name, 0.2, 0.1, contended, CENTER, ()).deviation == pytest.approx(1.5 * found())


@pytest.mark.parametrize("name", ["heap_peak_mib", "stw_share"])
def test_the_deviation_of_a_gain_grows_with_distance_and_with_few_cycles(name: str) -> None:
    def square(center: Prediction) -> float:
        return gain(name, 2.0, 1.0, LOAD, center, ()).deviation ** 2

    one, two = (replace(CENTER, gap=LOAD.gap_mib * math.e**times) for times in (1, 2))
    by_distance = square(one) - square(CENTER)
    assert by_distance > 0
    assert square(two) - square(CENTER) == pytest.approx(4 * by_distance)
    few = replace(CENTER, gc_per_s=4 / LOAD.span_s)
    fewer = replace(CENTER, gc_per_s=2 / LOAD.span_s)
    by_cycles = square(few) - square(CENTER)
    assert by_cycles > 0
    assert (square(fewer) - square(CENTER)) / by_cycles == pytest.approx(0.49 / 0.24)


def test_other_assumptions_make_a_gain_less_certain() -> None:
    other = replace(CENTER, heap_peak=CENTER.heap_peak * math.e)
    found = gain("heap_peak_mib", 2.0, 1.0, LOAD, CENTER, (other,)).deviation
    plain = gain("heap_peak_mib", 2.0, 1.0, LOAD, CENTER, ()).deviation
    # An 80 % interval that ends at a factor of e is 1.28 standard deviations wide.
    assert found**2 - plain**2 == pytest.approx(1 / 1.2816**2, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "always", "by_distance", "by_cycles"),
    [
        ("gc_cpu_with_idle_share", 0.22, 0.0, 0.0),
        ("heap_peak_mib", 0.06, 0.05, 0.45),
        ("stw_share", 0.30, 0.10, 0.40),
    ],
)
def test_the_errors_of_gains_are_those_measured(
    name: str, always: float, by_distance: float, by_cycles: float
) -> None:
    """docs/predictions.md has them."""
    far = replace(CENTER, gap=LOAD.gap_mib * math.e**3)
    found = gain(name, 2.0, 1.0, LOAD, far, ()).deviation
    expected = always**2 + (3 * by_distance) ** 2 + by_cycles**2 * (1 / 100 + 1 / 100)
    assert found == pytest.approx(math.sqrt(expected))
