"""Windows of time add up to the log."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.durations import COUNTED, correct_durations, on_real_cpus
from gctrace_analyzer.analysis.spans import of_cycles
from gctrace_analyzer.analysis.summary import summarize
from gctrace_analyzer.analysis.windows import divided, windows
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.ingest.processes import processes
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.facts import log_of
from tests.helpers.intervals import between_dumps
from tests.helpers.tables import cycle_tables, few

LOGS = sorted(str(path) for path in SAMPLES.glob("*.log"))


@few
@given(cycle_tables(), st.sampled_from([0.05, 0.3, 7.0, 500.0]))
def test_windows_add_up_to_the_whole_log(cycles: pl.DataFrame, length_s: float) -> None:
    spans = of_cycles(on_real_cpus(correct_durations(cycles)))
    found = windows(spans, length_s)
    assert found["cycles"].sum() == len(cycles)
    assert found["heap_peak_mib"].max() == cycles["heap_end_mib"].max()
    assert (found["gc_cpu_share"] >= 0).all()
    assert (found["gc_active_share"] <= 1 + 1e-9).all()
    assert found["end_s"].max() >= spans["end_s"].max()  # type: ignore[operator]  # floats


@few
@given(cycle_tables())
def test_one_window_over_everything_has_the_figures_of_the_summary(
    cycles: pl.DataFrame,
) -> None:
    (window,) = windows(of_cycles(on_real_cpus(correct_durations(cycles))), 1e5).to_dicts()
    summary = summarize(cycles, processes(cycles))
    names = ["gc_active_share", "stw_share", "assist_share_of_gc_cpu"]
    low, high = summary.gc_cpu_share_low, summary.gc_cpu_share_high
    assert low is not None
    assert high is not None
    if low * (1 + 1e-9) < window["gc_cpu_share"] < high * (1 - 1e-9) or low == high:
        # Otherwise the percentages that the lines print exclude it, or it is an end.
        names.append("gc_cpu_share")
    for name in names:
        assert window[name] == pytest.approx(getattr(summary, name), rel=1e-9)


@pytest.mark.parametrize("length_s", [0.0, -1.0, 1e-9, float("nan")])
def test_impossible_window_lengths_are_refused(length_s: float) -> None:
    spans = read_text(log_of(20)).analysis.spans
    with pytest.raises(BadSettingError, match=r"for every.\n.*a duration above 0 that fits"):
        windows(spans, length_s)


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


def hand_made(**columns: list[float | None]) -> pl.DataFrame:
    """Two cycles: 0.9 to 1.1 s, in two windows of a second; 1.5 to 1.6 s."""
    corrected = pl.DataFrame(
        {
            "process": [0, 0],
            "gc_num": [1, 2],
            "start_s": [0.9, 1.5],
            "wall_time": pl.Series([None, None], dtype=pl.Datetime("us", "UTC")),
            "end_s": [1.1, 1.6],
            "elapsed_s": [1.1, 0.5],
            "format": "gc18",
            "cpus": [2.0, 2.0],
            "procs": [2, 2],
            "stw_sweep_term_ms": [2.0, 1.0],
            "stw_mark_term_ms": [3.0, 4.0],
            "stw_sweep_term_cpu_ms": [4.0, 2.0],
            "stw_mark_term_cpu_ms": [6.0, 8.0],
            "concurrent_mark_ms": [195.0, 95.0],
            "assist_cpu_ms": [10.0, 30.0],
            "background_cpu_ms": [80.0, 60.0],
            "idle_cpu_ms": [100.0, 0.0],
            "heap_start_mib": [50, 90],
            "heap_end_mib": [60, 94],
            "heap_live_mib": [40, 44],
            "heap_goal_mib": [62, 96],
            "forced": [False, False],
            "stacks_mib": [0, 0],
            "globals_mib": [0, 0],
            **{name: [1.0, 1.0] for name in COUNTED},
            "waiting_cpu_ms": [0.0, 0.0],
            **columns,
        }
    )
    return of_cycles(corrected)


def test_the_figures_of_two_windows_by_hand() -> None:
    first, second = windows(hand_made(), 1.0).to_dicts()
    assert (first["start_s"], first["end_s"], second["start_s"]) == (0, 1, 1)
    assert (first["cycles"], second["cycles"]) == (1, 1)
    # Half of the first cycle is in each window; the log ends at 1.6 s.
    assert first["gc_per_s"] == pytest.approx(1)
    assert second["gc_per_s"] == pytest.approx(1 / 0.6)
    assert first["gc_cpu_share"] == pytest.approx(0.05 / 2)
    assert second["gc_cpu_share"] == pytest.approx((0.05 + 0.1) / 1.2)
    assert first["gc_cpu_with_idle_share"] == pytest.approx(0.1 / 2)
    assert second["gc_cpu_with_idle_share"] == pytest.approx((0.15 + 0.05) / 1.2)
    assert first["gc_active_share"] == pytest.approx(0.1)
    assert second["gc_active_share"] == pytest.approx((0.1 + 0.1) / 0.6)
    assert first["stw_share"] == pytest.approx(0.0025)
    assert second["stw_share"] == pytest.approx((0.0025 + 0.005) / 0.6)
    assert first["assist_share_of_gc_cpu"] == pytest.approx(5 / 50)
    assert second["assist_share_of_gc_cpu"] == pytest.approx(35 / 150)
    assert (first["stw_max_ms"], second["stw_max_ms"]) == (3, 4)
    assert (first["heap_peak_mib"], second["heap_peak_mib"]) == (60, 94)
    assert (first["heap_live_mib"], second["heap_goal_mib"]) == (40, 96)


def test_windows_may_begin_later() -> None:
    (only,) = windows(hand_made(), 0.8, origin_s=1.2).filter(cycles=1, start_s=1.2).to_dicts()
    assert only["gc_per_s"] == pytest.approx(1 / 0.4)


def test_a_window_that_the_log_hardly_covers_has_no_rates() -> None:
    rates = ["gc_per_s", "gc_cpu_share", "gc_cpu_with_idle_share", "gc_active_share",
             "assist_share_of_gc_cpu", "stw_share", "alloc_mib_per_s"]  # fmt: skip
    # The second window ends at 2.4 s, the log at 1.6 s.
    first, second = windows(hand_made(), 1.2).to_dicts()
    assert (first["covered_s"], second["covered_s"]) == pytest.approx((1.2, 0.4))
    assert None not in [first[name] for name in rates]
    assert [second[name] for name in rates] == [None] * len(rates)
    assert (second["cycles"], second["stw_max_ms"], second["heap_peak_mib"]) == (1, 4, 94)
    # It is all there is of the process.
    (only,) = windows(hand_made(), 10.0).to_dicts()
    assert only["gc_per_s"] == pytest.approx(2 / 1.6)


def test_a_range_is_divided_at_the_ends_of_windows() -> None:
    ranges = pl.DataFrame(
        {
            "process": [0, 0, 0, 1],
            "from_s": [0.5, 1.0, 2.5, None],
            "to_s": [3.5, 2.0, 2.5, 1.0],
            "value": [6.0, 10.0, 5.0, 9.0],
        }
    )
    parts = divided(ranges, 1.0).group_by("process", "window").agg(pl.col("value").sum())
    found = {(p, w): v for p, w, v in parts.iter_rows()}
    # A range of no length is in the window where it is.
    assert found == pytest.approx({(0, 0): 1, (0, 1): 2 + 10, (0, 2): 2 + 5, (0, 3): 1})


def test_windows_have_the_wall_clock_of_the_log() -> None:
    """So that they can be joined with what a load generator or Prometheus recorded."""
    lines = [
        f"2026-11-20T10:00:{10 + second:02}.000000Z {line}"
        for second, line in enumerate(
            f"gc {number} @{number - 0.5:.3f}s 1%: 0.01+1.0+0.01 ms clock, "
            "0.02+0.1/1.0/0+0.02 ms cpu, 8->9->5 MB, 10 MB goal, 0 MB stacks, 0 MB globals, 2 P"
            for number in range(1, 13)
        )
    ]
    run = read_text("\n".join(lines))
    found = run.windows("5s")
    started = run.processes["started_at"][0]
    assert started is not None
    assert found["begin_at"].to_list() == [
        started + timedelta(seconds=each) for each in (0, 5, 10)
    ]


def test_windows_of_metrics_have_their_wall_clock() -> None:
    run = gca.read(SAMPLES / "metrics" / "gogc100.json.gz")
    found = run.windows("1m")
    assert found["begin_at"].null_count() == 0
    begin = between_dumps(run)["begin_at"].min()
    assert found["begin_at"][0] <= begin < found["begin_at"][0] + timedelta(minutes=1)


@pytest.mark.parametrize(("mib", "is_known"), [(4, False), (40, True)])
def test_what_the_resolution_hides_is_hidden_in_every_part(mib: int, is_known: bool) -> None:
    """A cycle of a small heap allocates less than the whole MiB that its sizes are printed in."""
    end = 2 * mib if is_known else mib
    lines = (
        f"gc {n} @{n / 10}s 1%: 0.01+0.5+0.01 ms clock, 0.02+0/0.1/0+0.02 ms cpu, "
        f"{end}->{end}->{mib} MB, {2 * mib} MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
        for n in range(1, 301)
    )
    run = read_text("".join(lines))
    rates = [
        run.summary().alloc_mib_per_s,
        *run.windows("5s")["alloc_mib_per_s"].head(5),
        *run.segments()["alloc_mib_per_s"],
    ]
    assert {rate is not None for rate in rates} == {is_known}
