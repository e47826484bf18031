"""What a recommendation optimises, and when a setting is really better."""

from __future__ import annotations

from typing import Any

import pytest

from gctrace_analyzer.advise.objective import cost, cost_high, is_better, peak_of, score

PRESENT: dict[str, Any] = {
    "gc_cpu_share": 0.10, "gc_cpu_share_high": 0.12, "gc_cpu_with_idle_share": 0.2,
    "gc_cpu_with_idle_share_high": 0.25, "assist_share_of_gc_cpu": 0.5, "stw_share": 0.01,
    "stw_share_high": 0.02, "heap_peak_mib": 200.0, "heap_peak_mib_high": 220.0,
    "ballast_mib": 50.0, "thrash": "no",
}  # fmt: skip


@pytest.mark.parametrize(
    ("aim", "expected", "high"),
    [("cpu", 0.2, 0.25), ("memory", 150, 170), ("latency", 0.06, 0.08)],
)
def test_each_objective_has_its_own_cost(aim: str, expected: float, high: float) -> None:
    assert cost(PRESENT, aim) == pytest.approx(expected)
    assert cost_high(PRESENT, aim) == pytest.approx(high)


def test_the_ballast_is_not_part_of_the_peak() -> None:
    assert peak_of(PRESENT) == 150
    assert peak_of({"heap_peak_mib": 10, "ballast_mib": 50}) > 0


def test_a_target_counts_more_than_memory() -> None:
    larger = PRESENT | {"gc_cpu_share": 0.04, "heap_peak_mib": 900.0}
    assert score(larger, PRESENT, "balanced", 0.05) < score(PRESENT, PRESENT, "balanced", 0.05)
    assert is_better(larger, PRESENT, "balanced", 0.05, healthy=True)
    assert not is_better(larger, PRESENT, "balanced", 0.2, healthy=True)


@pytest.mark.parametrize("aim", ["cpu", "latency", "memory", "balanced"])
def test_a_setting_is_better_if_its_gain_exceeds_the_uncertainty(aim: str) -> None:
    half = {name: value / 2 for name, value in PRESENT.items() if isinstance(value, float)}
    assert is_better(PRESENT | half, PRESENT, aim, None, healthy=False)
    assert not is_better(PRESENT, PRESENT, aim, None, healthy=False)
    assert score(PRESENT | half, PRESENT, aim, None) < score(PRESENT, PRESENT, aim, None)


def test_little_gc_cpu_is_not_worth_a_change() -> None:
    cheap = PRESENT | {"gc_cpu_with_idle_share": 0.02}
    none = cheap | {"gc_cpu_with_idle_share": 0.0, "gc_cpu_with_idle_share_high": 0.0}
    assert not is_better(none, cheap, "cpu", None, healthy=False)
    assert not is_better(none, cheap, "balanced", None, healthy=True)
    assert is_better(cheap, cheap | {"thrash": "certain"}, "balanced", None, healthy=True)
