"""The gain of a setting over the present one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.advise.prediction.gain import Gain, gain
from gctrace_analyzer.advise.prediction.model import Setting
from tests.conftest import CORPUS


@given(st.floats(0.2, 50), st.floats(0.01, 2))
def test_the_interval_of_a_gain_is_around_it(ratio: float, deviation: float) -> None:
    found = Gain(ratio, deviation)
    assert found.low < ratio < found.high
    low, middle, high = found.saved(0.2)
    assert low < middle < high < 0.2
    assert found.certainty(ratio) == pytest.approx(0.5)
    assert found.certainty(found.low) == pytest.approx(0.9)


def test_an_unknown_non_heap_memory_makes_a_gain_under_a_limit_less_certain() -> None:
    baseline = gca.read(
        CORPUS / "advice" / "svc-big" / "gogc100" / "run.log", gogc=100
    ).advice.baseline
    assert baseline.load is not None

    def deviation(setting: Setting) -> float:
        found = baseline.at(setting)
        assert found.center is not None
        assert baseline.load is not None
        name = "gc_cpu_with_idle_share"
        return gain(
            name, 0.2, found.row[name], baseline.load, found.center, found.others
        ).deviation

    tight = (baseline.live_max_mib or 0.0) + 40
    assert deviation(Setting(None, tight)) > 1.2 * deviation(Setting(200.0))
