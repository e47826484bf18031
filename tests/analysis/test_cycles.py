"""Metrics of cycles: calculated by hand, and as the runtime was configured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.settings.setters import goal_setters, limit_sets_most_goals
from gctrace_analyzer.present.sections import headline
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS, SAMPLES
from tests.helpers import loads

if TYPE_CHECKING:
    from collections.abc import Callable

TWO = """\
gc 1 @0.100s 10%: 0.10+20+0.20 ms clock, 0.20+1.0/9.0/5.0+0.40 ms cpu, 40->44->30 MB, 41 MB goal, 0 MB stacks, 0 MB globals, 2 P
gc 2 @0.200s 8%: 0.10+10+0.20 ms clock, 0.20+1.0/3.0/5.0+0.40 ms cpu, 58->60->30 MB, 60 MB goal, 0 MB stacks, 0 MB globals, 2 P (forced)
"""


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


def short_cycle(number: int, start_s: float, assist_ms: float) -> str:
    """A line of a cycle that took 2 ms on 2 CPUs."""
    return (
        f"gc {number} @{start_s:.3f}s 30%: 0.5+1.0+0.5 ms clock, "
        f"1.0+{assist_ms:.1f}/0.5/0.0+1.0 ms cpu, 4->4->2 MB, 4 MB goal, 0 MB stacks, "
        "0 MB globals, 2 P\n"
    )


def test_a_cycle_counts_for_at_least_as_long_as_it_took() -> None:
    # The second seems to end 1 ms after the first: its start is printed in whole milliseconds.
    run = read_text(short_cycle(1, 0.010, 0.5) + short_cycle(2, 0.011, 0.5))
    of_the_second = gca.add_metrics(run.cycles)["gc_cpu_share"][1]
    assert math.isclose(of_the_second, 3 / (2 * 2))


def test_no_cycle_takes_more_than_all_of_the_cpu() -> None:
    # An assist that a pause interrupts counts the pause, too.
    run = read_text(short_cycle(1, 0.010, 0.5) + short_cycle(2, 0.012, 5.0))
    assert gca.add_metrics(run.cycles)["gc_cpu_share"][1] == 1.0


def test_the_share_of_a_cycle_without_the_one_before_is_unknown() -> None:
    run = read_text(short_cycle(7, 0.510, 0.5) + short_cycle(8, 0.612, 0.5))
    first, second = gca.add_metrics(run.cycles)["gc_cpu_share"]
    assert first is None
    assert math.isclose(second, 3 / (2 * 102), rel_tol=1e-6)


def test_the_memory_limit_sets_the_goals_of_a_thrashing_run() -> None:
    cycles = gca.add_metrics(gca.cycles(str(SAMPLES / "thrash-go1.19.log")))
    assert cycles["goal_set_by"].drop_nulls().unique().to_list() == ["memory-limit"]


def test_gogc_sets_the_goals_of_a_healthy_run() -> None:
    for name in ("steady-go1.9", "steady-go1.14", "steady-go1.26", "ballast-go1.26"):
        cycles = gca.add_metrics(gca.cycles(str(SAMPLES / f"{name}.log")))
        # The first cycle starts from the heap minimum.
        assert cycles["goal_set_by"][1:].drop_nulls().unique().to_list() == ["gogc"], name


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


def setters(goal: Any, live: Any, count: int = 60, line: str = loads.LINE) -> dict[str, int]:
    cycles = loads.cycles_of(
        count, line=line, live=live, goal=goal,
        start=lambda n: live(n) + 5, end=lambda n: live(n) + 8,
    )  # fmt: skip
    return goal_setters(gca.add_metrics(cycles))


def wave(n: int) -> int:
    """A live heap between 100 and 160 MiB."""
    return 100 + 7 * n % 61


def small_wave(n: int) -> int:
    return 10 + 3 * n % 7


@pytest.mark.parametrize("gogc", [25, 100, 400])
@pytest.mark.parametrize("live", [wave, small_wave])
def test_goals_that_follow_the_live_heap_are_set_by_gogc(
    gogc: int, live: Callable[[int], int]
) -> None:
    found = setters(lambda n: int(live(n - 1) * (1 + gogc / 100)), live)
    assert set(found) == {"gogc"}
    assert found["gogc"] >= 50


def test_a_constant_goal_above_a_live_heap_that_varies_is_set_by_the_limit() -> None:
    assert set(setters(lambda n: 220, wave)) == {"memory-limit"}
    # There was no limit before Go 1.19: the line has no stacks.
    assert "memory-limit" not in setters(lambda n: 220, wave, line=loads.OLD_LINE)


def test_a_goal_at_the_live_heap_is_set_by_the_limit() -> None:
    assert set(setters(lambda n: wave(n - 1), wave)) == {"memory-limit"}
    # GOGC leaves the sweeper at least 1 MiB, however small the heap is.
    assert set(setters(lambda n: 3 + n % 2, lambda n: 4 + n % 2)) == {"memory-limit"}


def test_where_both_set_goals_each_is_recognised() -> None:
    """GOGC=100 up to 260 MiB, where the limit sets the goal."""
    found = setters(lambda n: min(2 * wave(n - 1), 260), wave, count=200)
    assert set(found) == {"gogc", "memory-limit"}
    by_limit = sum(2 * wave(n - 1) > 266 for n in range(2, 201))
    assert found["memory-limit"] == pytest.approx(by_limit, abs=12)


@pytest.mark.parametrize(("ceiling", "limited"), [(50, 10), (1000, 0)])
def test_a_heap_that_fills_up_to_a_limit_shows_the_limit(ceiling: int, limited: int) -> None:
    """GOGC=100 while the heap fills; then the goal stays, although the live heap still grows."""
    lives = [1, 2, 3, 4, 5, 7, 9, 12, 15, 20, 26, 33, *[35] * 9]
    found = setters(
        lambda n: max(min(2 * lives[n - 2], ceiling), 4),
        lambda n: lives[n - 1],
        count=len(lives),
    )
    assert found.get("memory-limit", 0) == limited
    assert found["gogc"] + found.get("heap-minimum", 0) >= 6


def test_a_real_program_that_fills_its_heap_up_to_a_limit_is_not_one_with_a_low_gogc() -> None:
    """GOGC=100 and a limit of 64 MiB: the effective GOGC is 42, which nobody set."""
    run = gca.read(CORPUS / "services/nsqd/gogc100-x1.4/run.log.gz")
    counts = run.analysis.goal_set_by
    assert (counts["gogc"], counts["memory-limit"]) == (9, 9)
    (regime,) = run.analysis.regimes_of(0)
    assert regime.gogc_pct == 100
    assert regime.memory_limit_mib == pytest.approx(64, rel=0.05)
    # A limit a little lower than the true one would thrash, which this program does not.
    assert "the model predicts" in (run.advice.baseline.refused or "")
    notes = {each.label: each.note for each in headline.state(run.report())}
    assert notes["Heap goal"] == "median over time; set by GOGC and the memory limit"


def test_a_goal_of_4_mib_above_a_tiny_heap_is_the_minimum() -> None:
    assert setters(lambda n: 4, lambda n: 1 + n % 2) == {"heap-minimum": 60}
    assert "heap-minimum" not in setters(lambda n: 4, lambda n: 3)
    assert "heap-minimum" not in setters(lambda n: 5, lambda n: 1 + n % 2)


def test_setters_are_counted_and_most_is_more_than_half() -> None:
    def frame(**counts: int) -> pl.DataFrame:
        values = [name.replace("_", "-") for name, n in counts.items() for _ in range(n)]
        setter = pl.Series([*values, None], dtype=pl.Categorical)
        start = pl.Series(range(len(setter)), dtype=pl.Float64)
        return pl.DataFrame(
            {
                "goal_set_by": setter,
                "start_s": start,
                "process": 0,
                "gc_num": range(len(setter)),
            }
        )

    mixed = frame(gogc=3, memory_limit=5, heap_minimum=3)
    assert list(goal_setters(mixed).items()) == [
        ("memory-limit", 5), ("gogc", 3), ("heap-minimum", 3),
    ]  # fmt: skip
    assert not limit_sets_most_goals(mixed)
    assert not limit_sets_most_goals(frame(gogc=3, memory_limit=3))
    assert limit_sets_most_goals(frame(gogc=3, memory_limit=4))
    assert not limit_sets_most_goals(frame())
    # GOGC sets many goals in a moment while a heap fills, and the limit those of the rest.
    rarely = frame(gogc=6, memory_limit=4).with_columns(
        start_s=pl.when(pl.col("start_s") < 6)
        .then(pl.col("start_s") / 100)
        .otherwise("start_s")
    )
    assert limit_sets_most_goals(rarely)
