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
