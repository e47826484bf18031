"""Metrics of comparisons and their means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer.analysis.compare.compare import mean_of
from gctrace_analyzer.analysis.compare.metrics import METRICS, Metric


@given(st.sampled_from(METRICS), st.lists(st.floats(0, 1e6), min_size=1, max_size=9))
def test_a_mean_is_between_the_smallest_and_the_largest(
    metric: Metric, values: list[float]
) -> None:
    mean = mean_of(metric, [*values, None])
    assert mean is not None
    assert min(values) <= mean <= max(values)
    assert mean_of(metric, [None]) is None


@given(st.sampled_from(METRICS), st.floats(0, 1e9))
def test_scaling_a_metric_can_be_undone(metric: Metric, value: float) -> None:
    assert metric.unscaled(metric.scaled(value)) == pytest.approx(value, abs=1e-6, rel=1e-6)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_repeated_runs_differ_by_less_than_half_and_more_under_a_limit(metric: Metric) -> None:
    if metric.noise is None:
        assert metric.limited_noise is None
        return
    assert metric.limited_noise is not None
    assert 0 < metric.noise <= metric.limited_noise < 0.5
    assert 0 < metric.floor <= 1
