"""The load of a program, from logs whose figures can be calculated by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.advise.prediction.load import load_of, with_hidden_roots
from gctrace_analyzer.analysis.pauses import LatePauses
from tests.conftest import CORPUS
from tests.helpers.loads import OLD_LINE, cycles_of, steady_load

OFF_S = 0.5 - 0.01004
"""From the end of a cycle to the start of the next, which is half a second after its start."""


def test_a_steady_program_has_the_figures_of_each_cycle() -> None:
    load = steady_load()
    assert load.gc_per_s == pytest.approx(2)
    assert load.alloc == pytest.approx(28), "14 MiB every half a second"
    assert load.gap_mib == pytest.approx(14)
    assert load.alloc_off == pytest.approx(10 / OFF_S)
    assert load.alloc_in == pytest.approx(4 / 0.010)
    assert (load.mark_ms, load.assist_ms, load.background_ms, load.idle_ms) == (10, 1, 5, 0)
    assert load.work_ms == 6
    assert load.stw_ms == pytest.approx(0.04)
    assert load.stw_cpu_ms == pytest.approx(0.08)
    # Sizes are truncated to whole MiB, so half of one is added.
    assert load.marked_live == load.marked_live_p50 == 20.5
    assert (load.goal, load.goal_p50) == (40.5, 40.5)
    assert load.heap_end_max == 34.5
    assert load.in_mark == 4
    assert load.true_live == 16.5
    assert load.true_live_first == load.true_live_last == pytest.approx(16.5, abs=0.51)
    assert load.effective_gogc == pytest.approx(100 * 20 / 20.5)
    assert load.trigger_share == pytest.approx(0.5)
    assert (load.variation, load.work_variation, load.no_room_share) == (0, 0, 0)
    assert (load.roots, load.stacks, load.forced_share) == (0, 0, 0)
    assert (load.procs, load.cpus) == (2, 2)
    assert load.new_pacer
    assert load.span_s == pytest.approx(0.5 * (load.cycles - 1))
    assert load.begin_s + load.span_s == pytest.approx(0.5 * 41)
    assert load.is_possible


def test_the_shares_follow_from_the_cost_of_a_cycle() -> None:
    load = steady_load(idle=3)
    spent = 1 + 5 + 0.08
    assert load.spent_ms == pytest.approx(spent)
    assert load.gc_cpu_share == pytest.approx(2 * spent / 1000 / 2)
    assert load.gc_cpu_with_idle_cores == pytest.approx(2 * (spent + 3) / 1000)
    assert load.gc_cpu_with_idle_share == pytest.approx((spent + 3) / 1000)
    assert load.gc_active_share == pytest.approx(0.02)
    figures = load.figures
    assert figures["assist_share_of_gc_cpu"] == pytest.approx(1 / spent)
    assert figures["stw_share"] == pytest.approx(2 * 0.04 / 1000)
    assert figures["heap_peak_mib"] == 34.5
    assert figures["live_heap_mib"] == 20.5


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # Assists of 1 ms in 2 × 10 ms: 0.25 + 0.05, so 3 × 4 MiB × 0.3 / 0.7
        ({}, 3 * 4 * 0.3 / 0.7),
        ({"idle": 2}, 3 * 4 * (0.3 + 0.1) / 0.7),
        ({"start": 26}, 3 * 8 * 0.3 / 0.7),
        # More than 95 % of the processors cannot mark for the program.
        ({"assist": 19}, 3 * 4 * 0.95 / 0.05),
    ],
)
def test_the_runway_is_what_the_pacer_expects(
    values: dict[str, float], expected: float
) -> None:
    assert steady_load(**values).runway == pytest.approx(expected, rel=1e-6)


def test_where_little_is_allocated_rounding_does_not_swell_the_runway() -> None:
    # One MiB every fourth cycle: the largest of five is always 1.
    load = steady_load(end=lambda n: 30 + (n % 4 == 0))
    mean = load.in_mark
    assert mean == pytest.approx(0.25, abs=0.02)
    assert load.runway == pytest.approx(3.6 * (1.3 * mean + 0.2) * 0.3 / 0.7)


def test_the_old_pacer_expects_its_own_share_of_the_processors() -> None:
    load = steady_load(line=OLD_LINE)
    assert not load.new_pacer
    assert load.runway == pytest.approx(4 * 0.3 / 0.30)


def test_shares_are_of_the_cpus_that_there_are() -> None:
    load = steady_load(2, procs=8)
    assert (load.procs, load.cpus) == (8, 2)
    assert steady_load(16, procs=8).cpus == steady_load(procs=8).cpus == 8
    assert load.gc_cpu_share == pytest.approx(4 * steady_load(procs=8).gc_cpu_share)


def test_how_far_a_program_is_limited_by_the_cpu() -> None:
    load = replace(steady_load(), alloc_off=100.0)
    # Marking takes 6 ms of 2 × 10 ms: 70 % of the CPUs are left.
    for slower, bound in ((1.0, 0.0), (0.9, 0.0), (0.85, 0.5), (0.8, 1.0), (0.3, 1.0)):
        each = replace(load, alloc_in=slower * load.alloc_off)
        assert each.cpu_bound == pytest.approx(bound, abs=1e-6), slower
    # Idle marking that had the last processor, too, shows that the program waited.
    slow = replace(load, alloc_in=0.3 * load.alloc_off)
    assert replace(slow, idle_ms=16.0).cpu_bound == 0
    assert replace(slow, idle_ms=5.0).cpu_bound == 1, "one busy goroutine leaves the others"
    # Where sizes hide the rate, marking that leaves no processor idle shows it.
    hidden = replace(load, alloc_off=0.0, mark_ms=100.0)
    assert replace(hidden, idle_ms=1.0).cpu_bound == 0
    assert hidden.cpu_bound == 1
    assert replace(hidden, cycles=19).cpu_bound == 0, "too few cycles"
    assert replace(hidden, mark_ms=99.0).cpu_bound == 0, "it may sleep for the rest of the time"
    assert replace(load, alloc_in=0.0, mark_ms=460.0).cpu_bound == 0, "always marking"


def test_room_below_a_tenth_is_none() -> None:
    assert steady_load(goal=22).no_room_share == 1
    assert steady_load(goal=23).no_room_share == 0
    assert steady_load(goal=lambda n: 22 if n % 2 else 40).no_room_share == pytest.approx(
        0.5, abs=0.02
    )


def test_the_variation_of_the_live_heap_is_relative_and_beyond_rounding() -> None:
    load = steady_load(live=lambda n: 100 + 10 * (-1) ** n, start=150, end=154, goal=200)
    # A standard deviation of 10 around a true live heap of 96.5, less 5 % for rounding.
    assert load.variation == pytest.approx(10 / 96.5 - 0.05, abs=0.003)
    load = steady_load(background=lambda n: 5 + 2 * (-1) ** n)
    assert load.work_variation == pytest.approx(2 / 6, rel=0.03)


def test_stacks_and_globals_are_roots() -> None:
    load = steady_load(stacks=2, globals=3)
    assert load.stacks == 2.5
    assert load.roots == 5.5
    assert load.effective_gogc == pytest.approx(100 * 20 / 26)


def test_hidden_roots_are_what_the_goals_exceed_the_formula_by() -> None:
    cycles = cycles_of(goal=41)
    load = load_of(cycles)
    assert load is not None
    # 41.5 = 20.5 + (20.5 + 0.5) × 100 %
    assert with_hidden_roots(load, cycles, 100).roots == pytest.approx(0.5)
    # 41.5 = 20.5 + (20.5 + 5.75) × 80 %: at most 2.5 MiB are hidden
    assert with_hidden_roots(load, cycles, 80).roots == pytest.approx(2.5)
    # 41.5 < 20.5 × 2.5
    assert with_hidden_roots(load, cycles, 150).roots == 0
    assert with_hidden_roots(load, cycles.head(5), 100).roots == load.roots
    assert with_hidden_roots(load, cycles.head(6), 100).roots == pytest.approx(0.5)
    known = replace(load, roots=2.0)
    assert with_hidden_roots(known, cycles, 150).roots == pytest.approx(0.6)


def test_the_path_is_the_live_heap_and_the_allocation() -> None:
    path = steady_load().path
    columns = path.make().to_dict(as_series=False)
    assert columns["at"][:3] == pytest.approx((0, 14, 28))
    assert set(columns["live"]) == {16.5}
    assert set(columns["in_mark"]) == {4.0}
    assert path.length_mib == pytest.approx(14 * (len(path.make()) - 1))
    assert path.shifted(5).mean_live == 21.5
    assert path.shifted(5).offset == 5
    grown = path.without_growth(8.0)
    assert grown.make()["live"][-1] == 16.5
    assert grown.make()["live"][0] == pytest.approx(24.5)
    assert path.without_growth(-80.0).make()["live"][0] == 0.3


def test_a_missing_cycle_counts_as_a_usual_one() -> None:
    cycles = cycles_of()
    missing = load_of(cycles.filter(cycles["gc_num"] != 20))
    assert missing is not None
    assert missing.path.length_mib == pytest.approx(steady_load().path.length_mib)
    assert missing.gc_per_s == pytest.approx(2)


def test_a_load_that_cannot_be_is_noticed() -> None:
    load = steady_load()

    def is_possible(**changes: Any) -> bool:
        return replace(load, **changes).is_possible

    for name in ("span_s", "gc_per_s", "mark_ms", "marked_live", "goal", "heap_end_max"):
        assert not is_possible(**{name: 0.0})
        assert not is_possible(**{name: -1.0})
    for name in ("assist_ms", "background_ms", "idle_ms", "stw_ms", "stw_cpu_ms"):
        assert is_possible(**{name: 0.0})
        assert not is_possible(**{name: -1.0})
    for name in ("alloc", "runway", "effective_gogc", "gc_per_s"):
        assert not is_possible(**{name: math.inf})
    assert not replace(load, true_live=-1.0).is_possible
    assert replace(load, true_live=-0.9).is_possible


def test_late_pauses_are_a_sign_of_other_work_unless_there_are_fewer_cpus() -> None:
    # Of 40 steady cycles with two pauses each
    few = steady_load(mark_term=lambda n: 1.1 if n > 39 else 0.02)
    many = steady_load(mark_term=lambda n: 1.1 if n > 37 else 0.02)
    assert (few.late_pauses, many.late_pauses) == (LatePauses(2, 82), LatePauses(4, 82))
    assert (few.is_contended, many.is_contended) == (False, True)
    assert not replace(many, procs=4).is_contended
    # All pauses of this program are long, which shows no other program.
    assert not steady_load(sweep_term=17, mark_term=18).is_contended


def test_three_steady_cycles_are_needed() -> None:
    cycles = cycles_of(60)
    steady = cycles.filter(cycles["start_s"] > 5)
    assert load_of(steady.head(2)) is None
    found = load_of(steady.head(3))
    assert found is not None
    assert found.cycles == 3


def test_the_allocation_is_that_from_each_live_heap_to_the_next_start() -> None:
    load = steady_load(
        live=lambda n: 20 + n, start=lambda n: 30 + 2 * n, end=lambda n: 34 + 3 * n, goal=400
    )
    # From live heap n to start n + 1, and from start n to end n during marking
    numbers = range(41 - load.cycles + 1, 41)
    off = sum((32 + 2 * n) - (20 + n) for n in numbers)
    inside = sum(4 + n for n in numbers)
    assert load.alloc == pytest.approx((off + inside) / load.span_s)
    assert load.alloc_off == pytest.approx(off / (len(numbers) * OFF_S))
    assert load.in_mark == pytest.approx((inside + 4 + 41) / load.cycles)
    assert load.heap_end_max == 34 + 3 * 41 + 0.5
    # What is allocated during marking grows as fast as the live heap.
    assert load.true_live_first == load.true_live_last == 16.5


def test_a_constant_load_on_a_crowded_machine_is_not_limited_by_the_cpu() -> None:
    """While it marks, the program gets less CPU than usual, as every program there does."""
    fixed, bound = (
        gca.read(CORPUS / "contended" / f"{name}.log.gz").advice.baseline
        for name in ("fixed-rate", "cpu-bound")
    )
    assert fixed.load is not None
    assert fixed.load.is_contended
    assert fixed.load.alloc_in < 0.5 * fixed.load.alloc_off
    assert (fixed.load_model, bound.load_model) == ("fixed-rate", "cpu-bound")


def test_less_than_the_printed_sizes_show_is_no_sign_of_a_limit() -> None:
    load = replace(steady_load(), alloc_in=0.0, idle_ms=1.0)
    assert replace(load, alloc_off=51.0).cpu_bound == 1, "0.51 MiB in 10 ms"
    assert replace(load, alloc_off=49.0).cpu_bound == 0


@pytest.mark.parametrize(
    ("cycles", "in_mark_mib", "is_certain"),
    [(3, 40.0, False), (17, 0.6, False), (17, 40.0, True), (400, 0.6, True)],
)
def test_a_few_mib_during_marking_do_not_prove_that_the_cpu_limits_a_program(
    cycles: int, in_mark_mib: float, is_certain: bool
) -> None:
    """Sizes are in whole MiB: 17 cycles with 0.6 MiB each may seem to allocate less by chance."""
    load = replace(
        steady_load(), cycles=cycles, mark_ms=10.0, alloc_off=100 * in_mark_mib, alloc_in=0.0
    )
    load = replace(load, alloc_in=0.6 * load.alloc_off, stw_ms=0.01)
    assert load.cpu_bound == 1
    assert load.is_surely_bound is is_certain
    assert not replace(load, alloc_in=load.alloc_off).is_surely_bound
