"""Derived figures: calculated by hand for small logs, and consistent for real ones."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer import units
from gctrace_analyzer.analysis.trend import slope
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS, SAMPLES

TWO = """\
gc 1 @0.100s 10%: 0.10+20+0.20 ms clock, 0.20+1.0/9.0/5.0+0.40 ms cpu, 40->44->30 MB, 41 MB goal, 0 MB stacks, 0 MB globals, 2 P
gc 2 @0.200s 8%: 0.10+10+0.20 ms clock, 0.20+1.0/3.0/5.0+0.40 ms cpu, 58->60->30 MB, 60 MB goal, 0 MB stacks, 0 MB globals, 2 P (forced)
"""
LOGS = sorted(str(path) for path in SAMPLES.glob("*.log"))


def test_metrics_of_a_cycle_by_hand() -> None:
    first, second = gca.add_metrics(read_text(TWO).cycles).iter_rows(named=True)
    assert first["stw_total_ms"] == pytest.approx(0.3)
    assert first["gc_cpu_ms"] == pytest.approx(0.2 + 1.0 + 9.0 + 0.4)
    # From the program's start to the cycle's end, on two processors.
    assert first["gc_cpu_share"] == pytest.approx(10.6 / (2 * 120.3))
    assert first["alloc_mib"] == 4 + 28
    assert first["alloc_mib_per_s"] == pytest.approx(320)
    assert first["assist_share"] == pytest.approx(1 / 10.6)
    assert first["survival_share"] == pytest.approx(30 / 44)
    assert first["overshoot_share"] == pytest.approx(44 / 41 - 1)
    assert [
        first[name] for name in ("interval_s", "effective_gogc", "trigger_share", "goal_set_by")
    ] == [None] * 4
    assert second["interval_s"] == pytest.approx(0.1)
    # Half a MiB is missing in the printed live heap, on the mean.
    assert second["effective_gogc"] == pytest.approx(100 * 30 / 30.5)
    assert second["trigger_share"] == pytest.approx(28 / 30)
    assert second["goal_set_by"] == "gogc"
    assert second["alloc_mib"] is None


def test_the_summary_by_hand() -> None:
    s = read_text(TWO).summary()
    assert (s.cycles, s.forced_cycles, s.missing_cycles) == (2, 1, 0)
    assert s.span_s == pytest.approx(0.2103, abs=0.001)
    assert s.gc_per_s == pytest.approx(10)
    assert s.gc_interval_p50_ms == pytest.approx(100)
    # Printed durations stand for intervals: 0.10 for 0.10 to 0.11, 20 for 20 to 21.
    assert s.stw_total_ms == pytest.approx(2 * (0.105 + 0.205), rel=0.02)
    assert s.stw_share == pytest.approx(0.62 / 210.8, rel=0.02)
    assert s.gc_cpu_share == pytest.approx((10.7 + 4.7) / (2 * 210.3), rel=0.02)
    assert s.gc_cpu_with_idle_share == pytest.approx(
        (10.7 + 4.7 + 10.1) / (2 * 210.3), rel=0.02
    )
    assert s.gc_cpu_nonidle_share == pytest.approx((10.7 + 4.7) / (2 * 210.3 - 10.1), rel=0.02)
    assert s.gc_active_share == pytest.approx(31.6 / 210.3, rel=0.02)
    assert s.assist_share_of_gc_cpu == pytest.approx(2.1 / 15.4, rel=0.02)
    assert s.assist_share_of_cpu == pytest.approx(2.1 / (2 * 210.3), rel=0.02)
    # 40 before the first cycle, 4 and 2 during marking, 28 between; less what caches hold.
    assert s.alloc_total_mib == pytest.approx(74 - 0.4)
    assert (s.live_heap_p50_mib, s.live_heap_max_mib, s.heap_peak_mib) == (30, 30, 60)
    assert s.live_heap_growth_mib_per_h is None


def test_figures_that_a_log_does_not_have_are_none() -> None:
    s = gca.read(str(CORPUS / "gctrace/pre-1.9/go1.4.log")).summary()
    absent = [name for name, value in s.to_dict().items() if value is None]
    assert {
        "span_s",
        "gc_per_s",
        "gc_cpu_share",
        "assist_share_of_cpu",
        "alloc_total_mib",
    } <= set(absent)
    assert s.stw_max_ms is not None


def test_capacity_follows_a_change_of_gomaxprocs() -> None:
    """Capacity is the sum of each stretch of time times its own GOMAXPROCS."""
    run = read_text(TWO.replace("2 P (forced)", "4 P (forced)"))
    s = run.summary()
    assert s.gc_cpu_share == pytest.approx((10.7 + 4.7) / (2 * 120.8 + 4 * 89.5), rel=0.02)


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


@pytest.mark.parametrize("log", LOGS)
def test_the_processes_of_a_run_add_up_to_the_run(log: str) -> None:
    run = gca.read(log)
    parts = [run.process(number) for number in run.processes["process"]]
    assert sum(part.summary().cycles for part in parts) == run.summary().cycles
    longest = max(part.summary().stw_max_ms or 0 for part in parts)
    assert longest == run.summary().stw_max_ms
    assert run.pauses()["max_ms"].max() == longest


def test_a_run_can_be_limited_to_a_time_range() -> None:
    run = gca.read(str(SAMPLES / "leak-into-limit-go1.24.log"))
    part = run.between("1s", "2s")
    assert part.cycles["start_s"].is_between(1, 2).all()
    assert part.processes["cycles"].to_list() == [len(part.cycles)]
    assert part.summary().span_s == pytest.approx(1, abs=0.2)
    with pytest.raises(gca.BadSettingError, match="the last cycle starts at"):
        run.between("100s")


def test_the_memory_limit_sets_the_goals_of_a_thrashing_run() -> None:
    cycles = gca.add_metrics(gca.cycles(str(SAMPLES / "thrash-go1.19.log")))
    assert cycles["goal_set_by"].drop_nulls().unique().to_list() == ["memory-limit"]


def test_gogc_sets_the_goals_of_a_healthy_run() -> None:
    for name in ("steady-go1.9", "steady-go1.14", "steady-go1.26", "ballast-go1.26"):
        cycles = gca.add_metrics(gca.cycles(str(SAMPLES / f"{name}.log")))
        assert cycles["goal_set_by"].drop_nulls().unique().to_list() == ["gogc"], name


@pytest.mark.parametrize("gogc", [50, 100, 200, 400])
def test_effective_gogc_is_the_configured_one(gogc: int) -> None:
    rows, live = [], 61.3
    for n in range(1, 30):
        goal = live * (1 + gogc / 100)
        live = 60 + 3 * math.sin(n)
        rows.append(
            f"gc {n} @{n / 2:.3f}s 3%: 0.1+9.8+0.1 ms clock, 0.2+1.1/1.0/13+0.2 ms cpu, "
            f"{int(goal * 0.9)}->{int(goal * 0.95)}->{int(live)} MB, {int(goal)} MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
        )
    assert read_text("".join(rows)).summary().effective_gogc_p50 == pytest.approx(
        gogc, rel=0.02
    )


@given(st.floats(-5, 5), st.floats(0.01, 2))
def test_the_slope_of_a_noisy_line_is_found(per_s: float, noise: float) -> None:
    points = pl.DataFrame({"x": [float(n) for n in range(60)]}).with_columns(
        y=per_s * pl.col("x") + noise * (pl.col("x") * 2654435761 % 97 / 97 - 0.5)
    )
    found = slope(points, x="x", y="y")
    assert found is not None
    assert found.low <= per_s + 0.05 * noise
    assert per_s - 0.05 * noise <= found.high
    assert found.per_s == pytest.approx(per_s, abs=0.05 * noise)


def test_a_million_points_have_a_slope() -> None:
    points = pl.DataFrame({"x": pl.int_range(10**6, eager=True)}).with_columns(
        y=pl.col("x") * 2
    )
    found = slope(points, x="x", y="y")
    assert found is not None
    assert found.per_s == pytest.approx(2)
    assert slope(points.head(5), x="x", y="y") is None


@pytest.mark.parametrize("text", ["12 apples", "", "MiB", "-5MiB"])
def test_invalid_sizes_are_refused(text: str) -> None:
    with pytest.raises(gca.BadSettingError, match="a size such as"):
        units.size_mib(text)


@pytest.mark.parametrize("text", ["", "soon", "5 parsecs", "1m30"])
def test_invalid_durations_are_refused(text: str) -> None:
    if text == "1m30":
        assert units.duration_s(text) == 90
        return
    with pytest.raises(gca.BadSettingError, match="a duration such as"):
        units.duration_s(text)


def test_time_ranges_may_be_open_but_not_reversed() -> None:
    assert units.span_s("1m..") == (60, math.inf)
    for text in ("60s", "120s..60s"):
        with pytest.raises(gca.BadSettingError):
            units.span_s(text)
