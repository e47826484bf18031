"""Figures of the summary: calculated by hand, and consistent with their parts."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.rules.finding import gc_cpu_text
from gctrace_analyzer.present.format import assists, gc_cpu
from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.present.text import plain
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS, SAMPLES
from tests.helpers.facts import log_of

TWO = """\
gc 1 @0.100s 10%: 0.10+20+0.20 ms clock, 0.20+1.0/9.0/5.0+0.40 ms cpu, 40->44->30 MB, 41 MB goal, 0 MB stacks, 0 MB globals, 2 P
gc 2 @0.200s 8%: 0.10+10+0.20 ms clock, 0.20+1.0/3.0/5.0+0.40 ms cpu, 58->60->30 MB, 60 MB goal, 0 MB stacks, 0 MB globals, 2 P (forced)
"""

LOGS = sorted(str(path) for path in SAMPLES.glob("*.log"))


def test_gc_cpu_is_a_range_where_its_ends_round_to_other_figures() -> None:
    summary = read_text(log_of(40)).analysis.summary
    one = replace(
        summary, gc_cpu_share=0.1375, gc_cpu_share_low=0.1371, gc_cpu_share_high=0.1379
    )
    assert gc_cpu(one) == "13.7 %"
    wide = replace(one, gc_cpu_share_low=0.1358, gc_cpu_share_high=0.1392)
    assert gc_cpu(wide) == gc_cpu_text(wide) == "13.6–13.9 %"


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
    # 40 to 41 before the first cycle, 4 and 2 during marking, 28 between; less what caches hold.
    assert s.alloc_total_mib == pytest.approx(74.5 - 0.4)
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
    four = "0.40+1.0/3.0/5.0+0.80 ms cpu, 58->60->30 MB, 60 MB goal, 0 MB stacks, 0 MB globals, 4 P"
    first, second = TWO.splitlines()
    run = read_text(f"{first}\n{second.split('clock, ')[0]}clock, {four}\n")
    s = run.summary()
    assert s.gc_cpu_share == pytest.approx((10.7 + 5.3) / (2 * 120.8 + 4 * 89.5), rel=0.02)


def test_where_a_pause_stops_fewer_processors_the_capacity_is_of_the_cpus() -> None:
    run = read_text(TWO.replace("2 P", "4 P"))
    assert run.summary().cpus == pytest.approx(2)


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
    with pytest.raises(gca.BadSettingError, match=r"the log covers 0\.012 s to 5\.037 s"):
        run.between("100s")


def test_the_growth_of_the_live_heap_is_that_of_one_process() -> None:
    text = log_of(60, every=1, live=lambda n: 100 + n)
    summary = read_text(text).summary()
    assert summary.live_heap_growth_mib_per_h == pytest.approx(3600)
    assert summary.live_heap_growth_mib_per_h_low == pytest.approx(3600)
    assert read_text(text + text).summary().live_heap_growth_mib_per_h is None


START = (
    "gc 1 @0.001s 22%: 0.052+0.74+0.018 ms clock, 0.10+0.61/0.022/0+0.036 ms cpu, 4->4->2 MB, "
    "4 MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
)


@pytest.mark.parametrize(
    ("sizes", "total_alloc_mib"), [("8->10->10", 10.3), ("8->20->19", 19.8)]
)
def test_the_allocation_until_a_first_cycle_is_that_of_memstats(
    sizes: str, total_alloc_mib: float
) -> None:
    """Measured with Go 1.25: two programs that print MemStats right after their first cycle."""
    line = f"gc 1 @0.002s 3%: 0.022+0.47+0.11 ms clock, 0.17+0.25/0.27/0+1.3 ms cpu, {sizes} MB, 12 MB goal, 0 MB stacks, 0 MB globals, 8 P\n"
    assert read_text(line).summary().alloc_total_mib == pytest.approx(total_alloc_mib, rel=0.07)


def test_one_cycle_makes_no_warning_and_is_too_short_to_compare() -> None:
    run = read_text(START)
    assert set(run.findings()["severity"]) == {"info"}
    said = " ".join(plain(document(run.report())).split())
    assert "too short to judge" in said
    assert "the runtime's own percentage" not in said


def test_a_log_without_its_first_cycles_is_not_said_to_agree() -> None:
    run = read_text(
        "gc 9 @60.210s 12%: 0.080+8450+0.27 ms clock, 0.64+4100/13200/1500+2.1 ms cpu, "
        "7020->8611->4402 MB, 9100 MB goal, 8 P\n"
    )
    assert run.summary().log_check_points is None
    said = " ".join(str(run.summary()).split())
    # The runtime calculates it at the end of the cycle, which takes 8.5 s.
    assert "Since the start (1m 08s, 9 cycles), GC has taken 12 % of the CPU" in said
    assert "GC CPU 17 s of CPU time in 8.5 s; 1.5 s more idle" in said
    assert "agrees" not in said


def test_single_cycles_of_several_processes_are_not_their_whole_time() -> None:
    line = (
        "gc {} @{}s 9%: 0.013+50+0.002 ms clock, 0.013+3.0/12/0+0.002 ms cpu, "
        "440->499->264 MB, 517 MB goal, 1 P\n"
    )
    run = read_text(line.format(428, 66.864) + line.format(20, 47.276))
    assert run.summary().is_of_single_cycles
    assert "of CPU time in 101 ms" in plain(document(run.report()))


@pytest.mark.parametrize(
    "heading",
    [
        "$ GOGC=25 GODEBUG=gctrace=1 go run .",
        "✗ go run .",
        "# testmain",
        "# github.com/shop/cart",
    ],
)
def test_the_processes_of_the_go_command_are_named(heading: str) -> None:
    run = read_text(f"{heading}\n{START}")
    # Whose cycles they are comes before everything else.
    assert "go, compile and link print gctrace too" in run.summary().warnings[0]
    assert not any("compile" in w for w in read_text(START).summary().warnings)
    tested = read_text(f"$ GODEBUG=gctrace=1 go test -bench .\n{START}").summary().warnings
    assert any("first (`go test -c`), and run it" in each for each in tested)


def test_cycles_that_follow_each_other_at_once_leave_no_range() -> None:
    line = (
        "gc {0} @{0}.000s 25%: 0.010+1000+0.010 ms clock, 0.010+0/1000/3000+0.010 ms cpu, "
        "90->90->90 MB, 180 MB goal, 4 P (forced)\n"
    )
    summary = read_text("".join(line.format(number) for number in range(6, 11))).summary()
    assert summary.gc_cpu_share == pytest.approx(0.25, rel=0.01)
    assert summary.gc_cpu_range is None
    assert (summary.gc_cpu_share_low or 1) <= (summary.gc_cpu_share or 0)


def test_the_first_cycle_of_a_late_log_is_of_an_unknown_time() -> None:
    line = (
        "gc {0} @{0}.000s 12%: 0.010+119+0.010 ms clock, 0.010+0/119/0+0.010 ms cpu, "
        "10->11->5 MB, 10 MB goal, 0 MB stacks, 0 MB globals, 1 P\n"
    )
    late = read_text("".join(line.format(number) for number in range(7, 13))).summary()
    assert late.span_s == pytest.approx(5.12, abs=0.001)
    assert late.gc_cpu_share == pytest.approx(6 * 0.1195 / 5.12, rel=0.01)
    # Of five intervals, each from the end of one cycle to that of the next.
    assert late.gc_cpu_share_low == pytest.approx(5 * 0.1195 / 5, rel=0.01)
    whole = read_text("".join(line.format(number) for number in range(1, 13))).summary()
    assert whole.gc_cpu_share_low == pytest.approx(12 * 0.1195 / 12.12, rel=0.02)


def test_cycles_within_a_millisecond_have_the_share_that_they_print() -> None:
    line = (
        "gc {} @0.000s 5%: 0.007+0.14+0.001 ms clock, 0.007+0/0.032/0.10+0.001 ms cpu, "
        "0->0->0 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 1 P (forced)\n"
    )
    summary = read_text(line.format(1) + line.format(2)).summary()
    assert (summary.gc_cpu_share_low, summary.gc_cpu_share_high) == pytest.approx((0.05, 0.06))
    assert summary.gc_cpu_with_idle_share is None


GO15 = (
    "gc 1 @1.000s 14%: 3.2+0+0+0+7.4 ms clock, 25+0+0+15/0.002/0+59 ms cpu, "
    "883->883->862 MB, 883 MB goal, 8 P (forced)\n"
    "gc 2 @1.100s 14%: 8.5+72+17+18+9.7 ms clock, 68+72+0+35/0.41/0+78 ms cpu, "
    "944->1825->1293 MB, 1294 MB goal, 8 P\n"
    "gc 3 @1.300s 14%: 8.5+72+17+18+9.7 ms clock, 68+72+0+31/0.41/0+78 ms cpu, "
    "944->1825->1293 MB, 1294 MB goal, 8 P\n"
)


def test_a_cycle_that_stops_the_program_has_no_assists() -> None:
    """Otherwise the shares of GC CPU and of all CPU are over different cycles."""
    s = read_text(GO15).analysis.summary
    assert s.assist_share_of_gc_cpu is not None
    assert s.assist_share_of_cpu is not None
    assert s.gc_cpu_share is not None
    assert s.assist_share_of_gc_cpu * s.gc_cpu_share == pytest.approx(s.assist_share_of_cpu)


def test_a_finding_has_the_range_of_its_row() -> None:
    run = gca.read(CORPUS / "gctrace" / "go1.26-retune" / "run.log")
    (pressure,) = (own for own in run.analysis.findings if own.id == "GC005")
    _, of_all = assists(run.analysis.summary)
    assert f"mark assists take {of_all} of the CPU" in pressure.headline


def test_a_median_of_scattered_goals_is_no_effective_gogc() -> None:
    goals = [100, 260, 60, 240, 100, 70, 230, 60, 200, 110]
    scattered = read_text(log_of(40, live=lambda _: 60, goal=lambda n: goals[n % 10]))
    assert scattered.analysis.summary.effective_gogc_p50 is None
    assert "effective GOGC" not in scattered.to_markdown()
    steady = read_text(log_of(40, live=lambda _: 60, goal=lambda _: 90))
    assert steady.analysis.summary.effective_gogc_p50 == pytest.approx(50, rel=0.02)
