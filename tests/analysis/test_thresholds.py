"""The default thresholds make sense together."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from gctrace_analyzer.analysis.rules.registry import RULES
from gctrace_analyzer.analysis.thresholds import DEFAULT, filled
from tests.conftest import ROOT

SHARES = (
    "_share", "_cpu", "_spread", "_quantile", "active_warn", "active_bad", "gc_cpu_warn",
    "gc_cpu_bad", "assist_warn", "assist_warn_old", "mark_pressure", "assist_spike",
    "early_trigger", "early_trigger_old", "limit_headroom", "limiter_likely", "room",
    "room_unknown", "growth_steady", "slowed_rate", "level_jump",
    "mad_floor",
)  # fmt: skip
FACTORS = ("_times", "overshoot", "level_ratio", "outlier_z")

STRICTER = [
    ("gc_cpu_warn", "gc_cpu_bad"),
    ("low_gogc_cpu", "gc_cpu_bad"),
    ("low_gogc_active", "active_bad"),
    ("active_warn", "active_bad"),
    ("frequent_bad_ms", "frequent_warn_ms"),
    ("assist_min_cpu_share", "assist_warn_cpu_share"),
    ("assist_warn", "assist_warn_old"),
    ("early_trigger_old", "early_trigger"),
    ("stw_warn_ms", "stw_single_ms"),
    ("stw_single_ms", "stw_bad_ms"),
    ("limit_gogc_bad", "limit_gogc_warn"),
    ("thrash_gogc", "limit_gogc_bad"),
    ("no_room_gogc", "thrash_gogc"),
    ("spike_back_times", "spike_times"),
    ("metrics_thrash_room_unknown", "metrics_thrash_room"),
    ("server_thrash_cycle_share", "server_near_cycle_share"),
    ("thrash_min_cycles", "min_cycles"),
    ("min_cycles", "level_cycles"),
    ("level_cycles", "short_log_cycles"),
    ("min_span_s", "warm_up_s"),
    ("warm_up_s", "short_log_s"),
    ("thrash_min_live_mib", "gogc_min_live_mib"),
    ("gap_cycles", "storm_gap_cycles"),
    ("storm_gap_cycles", "thrash_min_cycles"),
]


@pytest.mark.parametrize("name", [n for n in asdict(DEFAULT) if n.endswith(SHARES)])
def test_a_share_is_between_nothing_and_everything(name: str) -> None:
    assert 0 < getattr(DEFAULT, name) < 1


@pytest.mark.parametrize("name", [n for n in asdict(DEFAULT) if n.endswith(FACTORS)])
def test_a_factor_is_above_one(name: str) -> None:
    assert getattr(DEFAULT, name) > 1


def test_every_other_threshold_is_positive() -> None:
    numbers = {name: value for name, value in asdict(DEFAULT).items() if name != "periodic_s"}
    assert all(value > 0 for value in numbers.values())
    low, high = DEFAULT.periodic_s
    assert low < 120 < high  # forcegcperiod in runtime/proc.go: two minutes


@pytest.mark.parametrize(("lower", "higher"), STRICTER)
def test_thresholds_of_the_same_figure_are_in_order(lower: str, higher: str) -> None:
    assert getattr(DEFAULT, lower) < getattr(DEFAULT, higher)


def test_the_documented_limits_of_the_rules_are_those_in_use() -> None:
    page = (ROOT / "docs" / "findings.md").read_text()
    for rule in RULES.values():
        assert f"- Reported if: {filled(rule.condition)}\n" in page, rule.name
