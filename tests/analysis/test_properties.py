"""Properties of windows, MMU, episodes and pauses on arbitrary logs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gctrace_analyzer.analysis.compare.bootstrap import block_cycles
from gctrace_analyzer.analysis.compare.compare import mean_of
from gctrace_analyzer.analysis.compare.metrics import METRICS, Metric
from gctrace_analyzer.analysis.cycles import with_metrics
from gctrace_analyzer.analysis.durations import correct_durations
from gctrace_analyzer.analysis.episodes import enrich, episodes, runs
from gctrace_analyzer.analysis.limiter import fills
from gctrace_analyzer.analysis.mmu import mmu
from gctrace_analyzer.analysis.pauses import pauses
from gctrace_analyzer.analysis.segments import segments
from gctrace_analyzer.analysis.summary import summarize
from gctrace_analyzer.analysis.windows import windows
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.ingest.processes import processes
from gctrace_analyzer.testing import read_text
from tests.helpers.facts import log_of


@st.composite
def logs(draw: Any) -> pl.DataFrame:
    """The cycles of a log of one process whose figures vary from cycle to cycle."""
    count = draw(st.integers(2, 40))
    every = draw(st.sampled_from([0.02, 0.2, 1.0, 120.2]))
    sizes = st.lists(st.integers(1, 200), min_size=count, max_size=count)
    live, grown, room, mark = (draw(sizes) for _ in range(4))
    text = log_of(
        count,
        every=every,
        mark=lambda n: min(mark[n - 1], 900 * every) // 1 or 1,
        assist=lambda n: grown[n - 1] / 50,
        live=lambda n: live[n - 1],
        start=lambda n: live[n - 2] + grown[n - 1],
        end=lambda n: max(live[n - 2] + grown[n - 1], live[n - 1]) + room[n - 1] // 20,
        goal=lambda n: live[n - 2] + room[n - 1],
    )
    return read_text(text).cycles


few = settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])


@few
@given(logs(), st.sampled_from([0.05, 0.3, 7.0, 500.0]))
def test_windows_add_up_to_the_whole_log(cycles: pl.DataFrame, length_s: float) -> None:
    corrected = correct_durations(cycles)
    found = windows(corrected, length_s)
    assert found["cycles"].sum() == len(cycles)
    assert found["heap_peak_mib"].max() == cycles["heap_end_mib"].max()
    assert (found["gc_cpu_share"] >= 0).all()
    assert (found["gc_active_share"] <= 1 + 1e-9).all()
    assert found["end_s"].max() >= corrected["end_s"].max()  # type: ignore[operator]  # floats


@few
@given(logs())
def test_one_window_over_everything_has_the_figures_of_the_summary(
    cycles: pl.DataFrame,
) -> None:
    (window,) = windows(correct_durations(cycles), 1e5).to_dicts()
    summary = summarize(cycles, processes(cycles))
    for name in ("gc_cpu_share", "gc_active_share", "stw_share", "assist_share_of_gc_cpu"):
        assert window[name] == pytest.approx(getattr(summary, name), rel=1e-9)


@few
@given(logs())
def test_mmu_grows_with_the_window_and_is_a_share(cycles: pl.DataFrame) -> None:
    """A multiple of a window is at least as good as the window; 1, 5 and 10 ms are multiples."""
    found = mmu(correct_durations(cycles))
    for column in ("mmu_share", "mmu_with_assists_share"):
        assert found[column].is_between(0, 1).all()
        shares = dict(found.select("window_ms", column).iter_rows())
        for small, large in (
            (1.0, 5.0),
            (5.0, 10.0),
            (10.0, 20.0),
            (10.0, 50.0),
            (50.0, 100.0),
        ):
            if large in shares:
                assert shares[small] <= shares[large] + 1e-6
    assert (found["mmu_with_assists_share"] <= found["mmu_share"] + 1e-9).all()


@few
@given(logs())
def test_episodes_and_segments_are_within_the_log(cycles: pl.DataFrame) -> None:
    corrected = correct_durations(cycles)
    enriched = enrich(with_metrics(cycles), corrected)
    begin, end = corrected["start_s"].min(), corrected["end_s"].max()
    for table in (episodes(enriched), segments(enriched)):
        assert (table["start_s"] >= begin).all()
        assert (table["end_s"] <= end).all()
        assert (table["start_s"] <= table["end_s"]).all()
        assert (table["first_gc"] <= table["last_gc"]).all()
    assert segments(enriched)["cycles"].sum() == len(cycles)


@few
@given(logs())
def test_the_limiter_is_never_fuller_than_full(cycles: pl.DataFrame) -> None:
    assert fills(correct_durations(cycles)).drop_nulls().is_between(0, 1 + 1e-9).all()


@few
@given(logs())
def test_quantiles_of_pauses_are_ordered(cycles: pl.DataFrame) -> None:
    for row in pauses(correct_durations(cycles)).iter_rows(named=True):
        assert row["p50_ms"] <= row["p90_ms"] <= row["p99_ms"] <= row["max_ms"]
        assert row["max_ms"] <= row["total_ms"] + 1e-9


@few
@given(logs())
def test_corrected_durations_are_within_the_interval_of_the_printed_ones(
    cycles: pl.DataFrame,
) -> None:
    corrected = correct_durations(cycles)
    printed = cycles["concurrent_mark_ms"]
    assert (corrected["concurrent_mark_ms"] >= printed).all()
    assert (corrected["concurrent_mark_ms"] <= printed + 1.0).all()


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 5), st.integers(0, 3))
def test_runs_are_ordered_and_apart(flags: list[bool], min_count: int, gap: int) -> None:
    found = runs(pl.Series(flags, dtype=pl.Boolean), min_count=min_count, gap=gap)
    for first, last in found:
        assert flags[first]
        assert flags[last]
        assert sum(flags[first : last + 1]) >= min_count
    assert all(a[1] + gap + 1 < b[0] for a, b in pairwise(found))


@given(st.integers(1, 10**6))
def test_there_are_at_least_five_blocks_of_cycles(cycles: int) -> None:
    length = block_cycles(cycles)
    assert 1 <= length <= max(cycles // 5, 1)


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


@pytest.mark.parametrize("length_s", [0.0, -1.0, 1e-9, float("nan")])
def test_impossible_window_lengths_are_refused(length_s: float) -> None:
    corrected = correct_durations(read_text(log_of(20)).cycles)
    with pytest.raises(BadSettingError, match="a duration that fits"):
        windows(corrected, length_s)
