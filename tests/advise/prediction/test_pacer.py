"""The formulas of the runtime's pacer, checked against printed heap goals."""

from __future__ import annotations

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.advise.prediction import pacer
from tests.conftest import CORPUS
from tests.helpers.corpus import RUNS


@pytest.mark.parametrize("name", RUNS)
def test_gogc_sets_the_goals_that_are_printed(name: str) -> None:
    """Goal of line n + 1 from line n, within what the MiB floors leave open."""
    path = CORPUS / "gctrace" / name / "run.log"
    if not path.exists() or not RUNS[name] or not RUNS[name].get("gogc_effective"):
        pytest.skip("no single program with a known GOGC")
    metrics = gca.read(path).table("metrics")
    gogc = float(RUNS[name]["gogc_effective"])
    bound = metrics.filter(pl.col("goal_set_by").cast(pl.String) == "gogc")
    numbers = dict(metrics.select("gc_num", pl.struct(pl.all())).iter_rows())
    right = []
    for row in bound.iter_rows(named=True):
        before = numbers.get(row["gc_num"] - 1)
        if before is None:
            continue
        low, high = (
            pacer.goal_from_gogc(
                before["heap_live_mib"] + more,
                gogc,
                stacks=(before["stacks_mib"] or 0) + more * (before["stacks_mib"] is not None),
                globals_=(before["globals_mib"] or 0)
                + more * (before["globals_mib"] is not None),
            )
            for more in (0, 1)
        )
        right.append(low - 1 <= row["heap_goal_mib"] <= high + 1)
    assert not right or sum(right) >= 0.99 * len(right)


def test_formulas_of_the_pacer_are_inverse_to_each_other() -> None:
    goal = pacer.goal_from_gogc(100, 100, stacks=2, globals_=1)
    assert goal == 203
    limit = pacer.limit_for_gogc(100, 100, 12, stacks=2, globals_=1)
    assert pacer.goal_from_limit(limit, 12, 100) == pytest.approx(goal)
    assert pacer.gogc_for_memory(goal + 12, 100, 12, stacks=2, globals_=1) == pytest.approx(100)
    assert pacer.goal_from_gogc(0.5, 200) == 8
    assert pacer.goal_from_limit(50, 12, 100) == 100
    assert pacer.goal_from_limit(113, 12, 50, go_1_21=False) == 100
    assert pacer.mark_workers(4) == (1, 0.0)
    assert pacer.mark_workers(2) == (0, 0.25)
    assert pacer.trigger(100, 200, 1000) == pytest.approx(100 + 100 * 45 / 64)


def test_an_inferred_gogc_is_rounded_to_a_common_value() -> None:
    assert pacer.snapped(112, 8) == 100, "within what the MiB of so small a heap leave open"
    assert pacer.snapped(120, 5.5) == 100
    assert pacer.snapped(119, 60) == 120
    assert pacer.snapped(51, 30) == 50
    assert pacer.snapped(43, 60) == 43
