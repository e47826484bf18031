"""Windows of time add up to the log."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.durations import correct_durations, on_real_cpus
from gctrace_analyzer.analysis.summary import summarize
from gctrace_analyzer.analysis.windows import windows
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.ingest.processes import processes
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.facts import log_of
from tests.helpers.tables import cycle_tables, few

LOGS = sorted(str(path) for path in SAMPLES.glob("*.log"))


@few
@given(cycle_tables(), st.sampled_from([0.05, 0.3, 7.0, 500.0]))
def test_windows_add_up_to_the_whole_log(cycles: pl.DataFrame, length_s: float) -> None:
    corrected = on_real_cpus(correct_durations(cycles))
    found = windows(corrected, length_s)
    assert found["cycles"].sum() == len(cycles)
    assert found["heap_peak_mib"].max() == cycles["heap_end_mib"].max()
    assert (found["gc_cpu_share"] >= 0).all()
    assert (found["gc_active_share"] <= 1 + 1e-9).all()
    assert found["end_s"].max() >= corrected["end_s"].max()  # type: ignore[operator]  # floats


@few
@given(cycle_tables())
def test_one_window_over_everything_has_the_figures_of_the_summary(
    cycles: pl.DataFrame,
) -> None:
    (window,) = windows(on_real_cpus(correct_durations(cycles)), 1e5).to_dicts()
    summary = summarize(cycles, processes(cycles))
    for name in ("gc_cpu_share", "gc_active_share", "stw_share", "assist_share_of_gc_cpu"):
        assert window[name] == pytest.approx(getattr(summary, name), rel=1e-9)


@pytest.mark.parametrize("length_s", [0.0, -1.0, 1e-9, float("nan")])
def test_impossible_window_lengths_are_refused(length_s: float) -> None:
    corrected = correct_durations(read_text(log_of(20)).cycles)
    with pytest.raises(BadSettingError, match="a duration that fits"):
        windows(corrected, length_s)


@pytest.mark.parametrize("log", LOGS)
def test_windows_add_up_to_the_summary(log: str) -> None:
    run = gca.read(log)
    s, windows = run.summary(), run.windows("0.3s")
    if s.span_s is None:
        assert len(windows) == 0
        return
    assert windows["cycles"].sum() == s.cycles
    derived = windows.with_columns(
        covered=pl.min_horizontal("end_s", pl.col("end_s").max().over("process"))
        - pl.col("start_s")
    )
    assert derived["covered"].sum() >= s.span_s
    assert windows["heap_peak_mib"].max() == s.heap_peak_mib
    assert windows["gc_cpu_share"].min() >= 0  # type: ignore[operator]
    assert windows["gc_active_share"].max() <= 1.0001  # type: ignore[operator]
