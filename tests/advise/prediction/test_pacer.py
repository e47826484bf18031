"""The formulas of the runtime's pacer, checked against printed heap goals."""

from __future__ import annotations

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.advise.prediction import pacer
from gctrace_analyzer.analysis.settings.naming import distinct
from tests.conftest import CORPUS
from tests.helpers.corpus import RUNS


@pytest.mark.parametrize("name", RUNS)
def test_gogc_sets_the_goals_that_are_printed(name: str) -> None:
    """Goal of line n + 1 from line n, within what the MiB floors leave open."""
    path = CORPUS / "gctrace" / name / "run.log"
    if not path.exists() or not RUNS[name] or not RUNS[name].get("gogc_effective"):
        pytest.skip("no single program with a known GOGC")
    run = gca.read(path)
    metrics = run.table("metrics")
    gogc = float(RUNS[name]["gogc_effective"])
    bound = metrics.filter(pl.col("goal_set_by").cast(pl.String) == "gogc")
    # The GOGC that is known is the last one.
    settings = distinct(run.analysis.regimes_of(0))
    bound = bound.filter(pl.col("gc_num") > settings[-1].first_gc)
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
                roots=sum(
                    before[name] + more
                    for name in ("stacks_mib", "globals_mib")
                    if before[name] is not None
                ),
            )
            for more in (0, 1)
        )
        right.append(low - 1 <= row["heap_goal_mib"] <= high + 1)
    assert not right or sum(right) >= 0.96 * len(right)


def test_the_formulas_of_the_pacer() -> None:
    goal = pacer.goal_from_gogc(100, 100, roots=3)
    assert goal == 203
    assert pacer.goal_from_gogc(0.5, 200) == 8
    assert pacer.goal_from_limit(5, 12) == 1
    assert pacer.goal_from_limit(113, 12, go_1_21=False) == 100
    assert pacer.trigger(100, 200, 1000) == pytest.approx(100 + 100 * 45 / 64)


def test_a_ballast_can_be_replaced_by_gogc() -> None:
    # 100 MiB live and 300 MiB of ballast: a cycle each 400 MiB, which GOGC=400 gives without.
    assert pacer.gogc_like_ballast(100, 100, 300) == 400
    assert pacer.goal_from_gogc(100, 400) == 500


def test_the_cpu_of_a_single_thread_follows_gogc() -> None:
    # A tenth of the CPU at GOGC=100: 1 of 10 parts, so half as many cycles are 1 of 19.
    assert pacer.gogc_for_cpu(0.1, 100, 1 / 19) == pytest.approx(200)
    assert pacer.gogc_for_cpu(0.1, 100, 0.1) == pytest.approx(100)


def test_the_trigger_is_never_too_near_to_the_goal_or_to_the_live_heap() -> None:
    assert pacer.trigger(100, 200, 0) == pytest.approx(196), "4 MiB are always left"
    assert pacer.trigger(100, 110, 0) == pytest.approx(max(100 + 10 * 61 / 64, 106))
    assert pacer.trigger(100, 200, 20) == 180
    assert pacer.trigger_1_17(100, 200, 20, 0.6) == 180
    assert pacer.trigger_1_17(100, 200, 90, 0.6) == 160
    assert pacer.trigger_1_17(100, 200, 0, 0.6) == 195
