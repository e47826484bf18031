"""Metrics of comparisons and their means."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.compare.metrics import METRICS, Metric, mean_of
from gctrace_analyzer.analysis.durations import correct_durations, on_real_cpus
from gctrace_analyzer.analysis.metrics.dump_points import points
from gctrace_analyzer.analysis.metrics.typical import summarize as of_intervals
from gctrace_analyzer.analysis.spans import of_cycles
from gctrace_analyzer.analysis.summary import summarize
from gctrace_analyzer.analysis.totals import RATES
from tests.helpers.intervals import interval_rows, interval_spans
from tests.helpers.tables import cycle_tables, few


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
        assert metric.loose_noise is None
        return
    assert metric.loose_noise is not None
    assert 0 < metric.noise <= metric.loose_noise < 0.5
    assert 0 < metric.floor <= 1


@few
@given(cycle_tables())
def test_ratios_are_those_of_the_summary(cycles: pl.DataFrame) -> None:
    """The sums of the numerators by the sums of the denominators are the figures themselves."""
    # The percentages that lines print may contradict their times, and correct the shares then.
    cycles = cycles.with_columns(gc_cpu_since_start_pct=pl.lit(None, pl.Float64))
    spans = of_cycles(on_real_cpus(correct_durations(cycles)))
    summary = summarize(cycles, processes_of(cycles))
    for name, (numerator, denominator) in RATES.items():
        parts = spans.select(n=numerator, d=denominator).drop_nulls()
        expected = getattr(summary, name, None)
        if expected is not None:
            assert quotient(parts) == pytest.approx(expected, rel=1e-9), name


def quotient(parts: pl.DataFrame) -> float:
    return float(parts.select(pl.col("n").sum() / pl.col("d").sum()).item())


def processes_of(cycles: pl.DataFrame) -> pl.DataFrame:
    return pl.DataFrame(
        {"process": [0], "missing_cycles": [0], "cycles": [len(cycles)], "ended_by": [None]},
        schema_overrides=schema.polars_schema("processes"),
    )


def test_ratios_of_intervals_are_those_of_their_summary() -> None:
    rows = interval_spans({}, {"gc_cpu_base": 15.0, "gc_cpu_share": 0.1}, {"assist_cpu_s": 2.5})
    summary = of_intervals(rows, schema.empty("cycle_pauses"))
    for name, (numerator, denominator) in RATES.items():
        parts = rows.select(n=numerator, d=denominator)
        expected = getattr(summary, name, None)
        if expected is not None:
            assert quotient(parts) == pytest.approx(expected), name


def test_the_heap_ends_at_its_goal_or_above_it() -> None:
    rows = ({"goal_mib_before": 90.0 + n} for n in range(3))
    assert interval_spans(*rows)["heap_peak_mib"].to_list() == [100.0] * 3
    assert interval_spans({"heap_alloc_mib": 130.0})["heap_peak_mib"].to_list() == [130.0]


def test_intervals_in_the_columns_of_cycles() -> None:
    rows = interval_rows({"line_no": 4}, {"line_no": 5, "by_limit": False})
    like = pl.DataFrame(schema={"start_s": pl.Float64, "pause": pl.Int64, "source": pl.String})
    first, second = points(rows, like).to_dicts()
    assert (first["start_s"], first["end_s"], first["pause"]) == (5, 5, None)
    assert (first["gc_num"], first["line_no"], first["source"]) == (100, 4, "log")
    assert (first["goal_set_by"], second["goal_set_by"]) == ("memory-limit", None)
    assert (first["forced"], first["stacks_mib"]) == (False, 0)
    assert first["effective_gogc"] == pytest.approx(25)
    # In a file that is one line long, a line number helps nobody.
    (one, other) = points(interval_rows({}, {}), like).to_dicts()
    assert (one["gc_num"], one["line_no"], other["line_no"]) == (None, None, None)
