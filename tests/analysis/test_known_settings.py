"""Settings that logs show, compared with known ones: how the comparison judges, and its logs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gctrace_analyzer.testing import read_text
from lab.evaluation.regimes import Log, Truth, Verdict, judged, logs, recorded, set_by_limit
from tests.conftest import CORPUS

SETTINGS = ("gogc_pct", "memory_limit_mib")
COLUMNS = [f"{name}{end}" for name in SETTINGS for end in ("", "_low", "_high")]
EMPTY = dict.fromkeys([*COLUMNS, "set_by", "memory_limit_source"])
FREE, OFF = math.inf, math.inf


def cycles(goal: int, *, live: int = 10, count: int = 40) -> pl.DataFrame:
    sizes = {"heap_live_mib": live, "stacks_mib": 0, "globals_mib": 0, "heap_goal_mib": goal}
    return pl.DataFrame({"gc_num": range(1, count + 1)}).with_columns(
        pl.lit(value).alias(name) for name, value in sizes.items()
    )


def verdict(truth: Truth, frame: pl.DataFrame, **said: Any) -> Verdict:
    row = {**EMPTY, "first_gc": 1, "last_gc": frame.height, **said}
    (only,) = judged(Log("a", Path("a"), (truth,)), frame, pl.DataFrame([row]))
    return only


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ({"gogc_pct": 106.0}, True),
        ({"gogc_pct": 120.0}, False),
        ({"gogc_pct": 120.0, "gogc_pct_low": 95.0, "gogc_pct_high": 130.0}, True),
        ({"gogc_pct_low": 50.0}, False),
        ({}, False),
    ],
)
def test_without_a_limit_gogc_must_be_seen(said: dict[str, float], right: bool) -> None:
    only = verdict(Truth(1, 100.0, FREE), cycles(20), set_by="gogc", **said)
    assert (only.gogc, only.false_limit, only.limit) == (right, False, None)


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ({}, True),
        ({"gogc_pct_low": 50.0}, True),
        ({"gogc_pct_low": 150.0}, False),
        ({"set_by": "either", "gogc_pct": 40.0}, True),
        ({"set_by": "gogc", "gogc_pct": 40.0}, False),
    ],
)
def test_behind_a_limit_gogc_may_be_left_open(said: dict[str, Any], right: bool) -> None:
    assert verdict(Truth(1, 100.0, 22.0), cycles(14), **said).gogc is right


def test_a_claimed_limit_is_wrong_where_there_is_none() -> None:
    claim = {"set_by": "memory-limit", "memory_limit_mib": 30.0, "gogc_pct": 100.0}
    assert verdict(Truth(1, 100.0, FREE), cycles(20), **claim).false_limit
    assert not verdict(Truth(1, 100.0, 31.0), cycles(20), **claim).false_limit
    ends = {"memory_limit_mib_low": 20.0, "memory_limit_mib_high": 40.0}
    assert verdict(Truth(1, 100.0, 400.0), cycles(20), **claim, **ends).false_limit


def test_a_limit_in_force_has_a_value_and_an_interval() -> None:
    truth = Truth(1, OFF, 100.0)
    said = {"memory_limit_mib": 111.0, "memory_limit_mib_low": 105.0}
    only = verdict(truth, cycles(90), set_by="memory-limit", **said)
    assert (only.in_force, only.limit, only.inside) == (1.0, True, False)
    either = {"memory_limit_mib_low": 95.0, "memory_limit_mib_high": 120.0}
    only = verdict(truth, cycles(90), set_by="either", **either)
    assert (only.limit, only.inside) == (True, True)


def test_the_goals_say_how_often_a_limit_set_them() -> None:
    truth = Truth(1, 100.0, 22.0)
    goals = pl.concat([cycles(20, count=20), cycles(14, count=20)])
    assert set_by_limit(goals, truth) == pytest.approx(20 / 39)
    assert set_by_limit(goals, Truth(1, 100.0, FREE)) == 0


def test_every_recording_has_its_log_and_settings_in_order() -> None:
    every = list(recorded(CORPUS / "settings"))
    assert len(every) > 150
    for log in every:
        first = [truth.first_gc for truth in log.truths]
        assert log.path.exists()
        assert first == sorted(set(first))
        assert first[0] == 1


def test_no_log_has_two_names() -> None:
    names = [log.name for log in logs()]
    assert len(names) == len(set(names)) > 700


@pytest.mark.parametrize(
    ("metric", "known"),
    [
        ("go_gc_gomemlimit_bytes 9.223372036854776e+18\n", True),
        ("go_gc_gogc_percent 100\n", False),
    ],
)
def test_only_its_own_metric_shows_that_there_is_no_limit(metric: str, known: bool) -> None:
    page = f"go_memstats_alloc_bytes_total 1e9\ngo_memstats_heap_alloc_bytes 1e7\n{metric}"
    assert ("GOMEMLIMIT off (metrics)" in str(read_text(page).summary())) == known
