"""Durations corrected for truncation."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer.analysis import durations
from gctrace_analyzer.analysis.durations import correct_durations, on_real_cpus
from gctrace_analyzer.ingest.gctrace import columns
from gctrace_analyzer.testing import read_text
from tests.helpers.lines import LINES
from tests.helpers.tables import cycle_tables, few


def steps(values: list[float], formats: list[str] | None = None) -> list[float]:
    frame = pl.DataFrame({"x": values, "format": formats or ["gc18"] * len(values)})
    whole = formats is not None
    return frame.select(columns.step_ms("x", whole=whole)).to_series().to_list()


def of(values: dict[str, list[Any]]) -> pl.DataFrame:
    """Cycles of one process with 4 processors and these columns, other durations 0."""
    count = len(next(iter(values.values())))
    zero = [0.0] * count
    return pl.DataFrame(
        {
            "process": [0] * count,
            "procs": [4] * count,
            "format": ["gc18"] * count,
            "forced": [False] * count,
            **{f"{name}{kind}_ms": zero for name in durations.PAUSES for kind in ("", "_cpu")},
            "concurrent_mark_ms": zero,
            **{f"{name}_cpu_ms": zero for name in ("assist", "background", "idle")},
            **values,
        }
    )


def go_prints(ns: int) -> float:
    """A duration as the runtime prints it (fmtNSAsMS, runtime/mgc.go)."""
    if ns >= 10e6:
        return float(ns // 1_000_000)
    x, decimals = ns // 1000, 3
    if x == 0:
        return 0.0
    while x >= 100:
        x //= 10
        decimals -= 1
    return float(x / 10**decimals)


def test_a_printed_duration_stands_for_an_interval_of_its_last_digit() -> None:
    assert steps([0.001, 0.099, 0.1, 0.99]) == [0.001, 0.001, 0.01, 0.01]
    assert steps([1.0, 9.9, 10.0, 11.0, 4830.0]) == [0.1, 0.1, 1.0, 1.0, 1.0]


def test_old_formats_print_a_sum_of_three_whole_numbers() -> None:
    assert steps([2.0, 2.0, 2.0, 2.0], ["gc10", "gc11", "gc12x", "gc13"]) == [3, 3, 3, 0.1]


@given(st.integers(1000, 10**11))
def test_the_true_duration_is_in_the_interval(ns: int) -> None:
    printed = go_prints(ns)
    (step,) = steps([printed])
    assert printed <= ns / 1e6 + 1e-9
    assert ns / 1e6 < printed + step + 1e-9


def test_the_middle_of_the_interval_is_the_most_probable() -> None:
    frame = pl.DataFrame({"x": [0.0, 0.004, 0.17, 9.9, 11.0, None]})
    corrected = frame.select(durations.corrected_ms("x", whole=False)).to_series()
    assert corrected.to_list() == pytest.approx([0.0, 0.0045, 0.175, 9.95, 11.5, None])


@pytest.mark.parametrize(
    ("pause_ms", "cpu_ms", "stopped"),
    [
        (0.2, 0.8, 4),  # all four
        (0.20, 0.41, 2),  # two CPUs under a limit
        (0.20, 0.60, 3),
        (0.20, 0.79, 4),  # more than 95 % of GOMAXPROCS: the rest is rounding
        (0.20, 0.05, 1),  # at least one
        (0.03, 0.06, 2),  # long enough
        (0.029, 0.058, 4),  # too short: the ratio is rounding
        (None, None, 4),
    ],
)
def test_cpu_time_by_duration_is_the_number_of_stopped_processors(
    pause_ms: float | None, cpu_ms: float | None, stopped: int
) -> None:
    durations_ms = pl.col("stw_sweep_term_ms", "stw_sweep_term_cpu_ms").cast(pl.Float64)
    frame = of({"stw_sweep_term_ms": [pause_ms] * 3, "stw_sweep_term_cpu_ms": [cpu_ms] * 3})
    frame = frame.with_columns(durations_ms)
    for processes in ([0, 0, 0], [0, 0, 1]):
        log = frame.with_columns(process=pl.Series(processes))
        assert durations.with_corrected(log)["stopped_procs"].to_list() == [stopped] * 3


@pytest.mark.parametrize(
    ("shape", "go", "ratio", "stopped"),
    [
        ("gc18", None, 32, 32),
        ("gc16", None, 5, 5),  # steady
        ("gc16", None, 32, None),  # _MaxGcproc of Go 1.9, or 32 CPUs
        ("gc16", "1.9.2", 32, None),
        ("gc16", "1.9.2", 5, None),  # idle threads, or five CPUs
        ("gc16", "1.10", 32, 32),
        ("gc15", None, 5, None),
        ("gc15", "1.5", 40, 40),
    ],
)
def test_up_to_go_1_9_a_pause_shows_no_number_of_cpus(
    shape: str, go: str | None, ratio: float, stopped: int | None
) -> None:
    pauses = {"stw_sweep_term_ms": [0.2] * 8, "stw_sweep_term_cpu_ms": [0.205 * ratio] * 8}
    frame = of({**pauses, "procs": [40] * 8, "format": [shape] * 8})
    found = durations.with_corrected(frame, go=go)["stopped_procs"]
    assert found.to_list() == [stopped] * 8
    assert (
        on_real_cpus(durations.with_corrected(frame, go))["cpus"].to_list()
        == [stopped or 40] * 8
    )


def test_one_pause_of_more_threads_shows_that_threads_were_counted() -> None:
    """As up to Go 1.9: of ten cycles that a report published, one had 32 and nine had 26."""
    ratios = [26.0] * 9 + [32.0]
    cpu_ms = [0.205 * ratio for ratio in ratios]
    pauses = {"stw_sweep_term_ms": [0.2] * 10, "stw_sweep_term_cpu_ms": cpu_ms}
    for shape, stopped in (("gc16", None), ("gc18", 26)):
        frame = of({**pauses, "procs": [48] * 10, "format": [shape] * 10})
        assert durations.with_corrected(frame)["stopped_procs"].to_list() == [stopped] * 10


def test_stopped_processors_are_the_median_of_both_pauses_per_process_and_procs() -> None:
    frame = of(
        {
            "process": [0, 0, 0, 0, 1],
            "procs": [4, 4, 4, 8, 4],
            # The last of process 0 at 4 processors is an outlier.
            "stw_sweep_term_ms": [0.2, 0.2, 0.2, 0.2, 0.2],
            "stw_sweep_term_cpu_ms": [0.4, 0.4, 0.7, 0.6, 0.8],
            "stw_mark_term_ms": [0.2, 0.2, 0.2, 0.2, 0.2],
            "stw_mark_term_cpu_ms": [0.4, 0.4, 0.7, 0.6, 0.8],
        }
    )
    assert durations.with_corrected(frame)["stopped_procs"].to_list() == [2, 2, 2, 3, 4]


def test_the_cpu_time_of_a_pause_narrows_its_interval() -> None:
    frame = of(
        {
            # By the clock 0.17 to 0.18 ms; 0.68 to 0.69 ms on four processors is at most 0.1725;
            # 0.71 is at least 0.1775.
            "stw_sweep_term_ms": [0.17, 0.17, 0.17, 0.0],
            "stw_sweep_term_cpu_ms": [0.68, 0.71, 0.90, 0.0],
        }
    )
    corrected = durations.with_corrected(frame)
    assert corrected["stopped_procs"].to_list() == [4] * 4
    # The third contradicts itself: the middle by the clock. What prints 0 took nothing.
    expected = [0.17125, 0.17875, 0.175, 0.0]
    assert corrected["stw_sweep_term_ms"].to_list() == pytest.approx(expected)
    by_cpu = [4 * each for each in expected]
    assert corrected["stw_sweep_term_cpu_ms"].to_list() == pytest.approx(by_cpu)
    assert corrected["stw_mark_term_ms"].to_list() == [0.0] * 4


def test_cycles_get_their_corrected_end_and_the_time_since_the_cycle_before() -> None:
    line = LINES["gc18"].replace(" (forced)", "")
    run = read_text(line + "\n" + line.replace("gc 1 @0.004s", "gc 2 @0.104s") + "\n")
    first, second = correct_durations(run.cycles).to_dicts()
    # 0.17+11+0.037 ms clock, 0.34+…+0.075 ms cpu on two processors
    assert first["stw_sweep_term_ms"] == pytest.approx(0.1725)
    assert first["concurrent_mark_ms"] == pytest.approx(11.5)
    assert first["stw_mark_term_ms"] == pytest.approx((0.0375 + 0.038) / 2)
    assert first["assist_cpu_ms"] == pytest.approx(0.345)
    assert first["background_cpu_ms"] == pytest.approx(0.665)
    assert first["idle_cpu_ms"] == pytest.approx(0.0695)
    assert first["end_s"] == pytest.approx(0.004 + (0.1725 + 11.5 + 0.03775) / 1000)
    assert first["elapsed_s"] == pytest.approx(first["end_s"])
    assert second["elapsed_s"] == pytest.approx(0.1)


def test_a_log_of_whole_milliseconds_is_corrected_by_half_of_three() -> None:
    corrected = correct_durations(read_text(LINES["gc10"] + "\n").cycles)
    # The three numbers add up to what the table has as the second pause.
    assert corrected["stw_mark_term_ms"].to_list() == pytest.approx([2 + 1.5])


def test_the_longest_pause_of_whole_milliseconds_is_the_sum_that_its_line_prints() -> None:
    sizes = "62 -> 31 MB 19455 -> 3211 (1291202-1287991) objects, 0(0) handoff, 0(0) steal"
    printed = [
        f"gc{n}(1): {sum_}+0+1 ms, {sizes}, 0/0/0 yields" for n, sum_ in ((83, 7), (84, 2))
    ]
    summary = read_text("\n".join(printed)).summary()
    assert summary.stw_max_ms == 8
    assert summary.stw_total_ms == pytest.approx(8 + 3 + 2 * 1.5)


def test_with_a_cpu_per_processor_nothing_is_scaled() -> None:
    frame = of({"concurrent_mark_ms": [10.0], "background_cpu_ms": [90.0]}).with_columns(
        stopped_procs=pl.lit(4)
    )
    assert on_real_cpus(frame).drop("cpus", "waiting_cpu_ms").equals(frame)
    assert on_real_cpus(frame, 8.0)["cpus"].to_list() == [4.0]


def test_marking_takes_no_more_cpu_time_than_there_is() -> None:
    frame = of(
        {
            "concurrent_mark_ms": [10.0, 10.0],
            # 40 ms by the clock, on 2 CPUs for 10 ms; then 16 ms, which fits.
            "assist_cpu_ms": [4.0, 4.0],
            "background_cpu_ms": [16.0, 10.0],
            "idle_cpu_ms": [20.0, 2.0],
        }
    ).with_columns(stopped_procs=pl.lit(2))
    real = on_real_cpus(frame)
    assert real["cpus"].to_list() == [2.0, 2.0]
    assert real["assist_cpu_ms"].to_list() == [2.0, 4.0]
    assert real["background_cpu_ms"].to_list() == [8.0, 10.0]
    assert real["idle_cpu_ms"].to_list() == [10.0, 2.0]


def test_a_cpu_limit_is_a_quota_per_period_which_short_marking_may_use_at_once() -> None:
    workers = {name: [0.0, 0.0] for name in ("assist_cpu_ms", "idle_cpu_ms")}
    # 4 CPUs for 10 ms are less than the quota of one period; for 2 s they are 8 s, and a limit
    # of 2 CPUs gives 4.4 s in the 22 periods that these may be part of.
    times = {"concurrent_mark_ms": [10.0, 2000.0], "background_cpu_ms": [40.0, 8000.0]}
    frame = of({**workers, **times}).with_columns(stopped_procs=pl.lit(4))
    real = on_real_cpus(frame, 2.0)
    assert real["cpus"].to_list() == [2.0, 2.0]
    assert real["background_cpu_ms"].to_list() == pytest.approx([40.0, 4400.0])


def test_gc_cpu_on_few_cpus_is_a_range_up_to_what_the_runtime_counts() -> None:
    """Marking for 100 ms on two CPUs takes at most 200 ms; the line has 240 ms, on 4 threads."""
    line = (
        "gc {} @{:.3f}s 9%: 1.0+100+0.01 ms clock, 2.0+40/200/0+0.02 ms cpu, "
        "8->9->4 MB, 10 MB goal, 0 MB stacks, 0 MB globals, 4 P\n"
    )
    text = "".join(line.format(n, 0.65 * n) for n in range(1, 30))
    summary = read_text(text).summary()
    assert summary.cpus == 2
    low, high = summary.gc_cpu_range or (0.0, 0.0)
    assert low == pytest.approx(200 / 1300, rel=0.02)
    assert high == pytest.approx(244 / 1300, rel=0.02)
    assert any("threads that wait for a CPU" in text for text in summary.warnings)


def test_a_pause_takes_no_more_cpu_time_than_there_is() -> None:
    pauses = {
        f"{name}{kind}_ms": [value, value]
        for name in durations.PAUSES
        for kind, value in (("", 0.5), ("_cpu", 2.0))
    }
    frame = of({**pauses, "procs": [4, 2]}).with_columns(stopped_procs=pl.lit(2))
    for limit in (None, 0.5):
        real = on_real_cpus(frame, limit)
        assert real["cpus"].to_list() == [limit or 2.0] * 2
        # The second has as many CPUs as processors: it stays as it was printed.
        assert real["stw_sweep_term_cpu_ms"].to_list() == [1.0, 2.0]
        assert real["stw_mark_term_cpu_ms"].to_list() == [1.0, 2.0]


def test_gc_takes_no_more_cpu_time_than_its_cpus_have() -> None:
    """The runtime counts a pause for all of GOMAXPROCS=4, but there are 2 CPUs."""
    sizes = "5->6->5 MB, 6 MB goal, 0 MB stacks, 0 MB globals, 4 P"
    first = "331+31+0.010 ms clock, 663+0.050/0/0.28+0.020 ms cpu"
    second = "0.15+0.89+0.004 ms clock, 0.30+0/0.003/0.26+0.009 ms cpu"
    text = f"gc 1 @0.021s 64%: {first}, {sizes}\ngc 2 @0.404s 61%: {second}, {sizes}\n"
    summary = read_text(text).summary()
    assert summary.cpus == 2
    assert summary.printed_cpu_s is not None
    assert summary.printed_cpu_s[2] <= 2 * (summary.span_s or 0)


@few
@given(cycle_tables())
def test_a_longest_pause_is_as_a_line_prints_it(cycles: pl.DataFrame) -> None:
    corrected = correct_durations(cycles)
    for name in durations.PAUSES:
        printed, shown = cycles[f"{name}_ms"], pl.col(f"{name}_ms")
        known = printed.is_not_null()
        as_printed = columns.printed_ms(shown, pl.col("format"))
        longest = corrected.filter(known).select(as_printed).to_series()
        assert longest.to_list() == pytest.approx(printed.filter(known).to_list())


@few
@given(cycle_tables())
def test_corrected_durations_are_within_the_interval_of_the_printed_ones(
    cycles: pl.DataFrame,
) -> None:
    corrected = correct_durations(cycles)
    printed = cycles["concurrent_mark_ms"]
    assert (corrected["concurrent_mark_ms"] >= printed).all()
    assert (corrected["concurrent_mark_ms"] <= printed + 1.0).all()


def test_few_pauses_on_a_coarse_clock_show_no_number_of_cpus() -> None:
    pauses = {
        "stw_sweep_term_ms": [1.0, 0, 1.0, 0, 1.0],
        "stw_sweep_term_cpu_ms": [3.0, 0, 3, 0, 3],
    }
    frame = of({**pauses, "procs": [4] * 5, "format": ["gc16"] * 5})
    assert durations.with_corrected(frame)["stopped_procs"].to_list() == [None] * 5


def test_a_cycle_that_stops_for_all_is_of_a_release_that_shows_no_number_of_cpus() -> None:
    pauses = {"stw_mark_term_ms": [0.2] * 8, "stw_mark_term_cpu_ms": [0.205 * 12] * 8}
    others: dict[str, list[Any]] = {
        "procs": [16] * 8,
        "format": ["gc16"] * 8,
        "forced": [True] * 8,
    }
    for mark_ms, stopped in ((0.0, None), (1.0, 12)):
        frame = of({**pauses, **others, "concurrent_mark_ms": [mark_ms] * 8})
        assert durations.with_corrected(frame)["stopped_procs"].to_list() == [stopped] * 8
