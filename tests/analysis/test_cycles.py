"""Metrics of cycles: calculated by hand, and as the runtime was configured."""

from __future__ import annotations

import math

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES

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
