"""What a recommendation optimises, and when a setting is worth changing to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gctrace_analyzer.advise.objective import cost, failed_test, peak_of, run_time_text, score
from gctrace_analyzer.advise.policy import _worth_it
from gctrace_analyzer.advise.prediction.gain import Gain

PRESENT: dict[str, Any] = {
    "gc_cpu_share": 0.10, "gc_cpu_with_idle_share": 0.2, "assist_share_of_gc_cpu": 0.5,
    "stw_share": 0.01, "heap_peak_mib": 200.0, "ballast_mib": 50.0, "thrash": "no",
    "run_time_ratio": None, "gogc": 100.0, "memory_limit_mib": None, "allocation": 1.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("aim", "expected"), [("cpu", 0.2), ("memory", 150), ("latency", 0.06)]
)
def test_each_objective_has_its_own_cost(aim: str, expected: float) -> None:
    assert cost(PRESENT, aim) == pytest.approx(expected)


def test_the_ballast_is_not_part_of_the_peak() -> None:
    assert peak_of(PRESENT) == 150
    assert peak_of({"heap_peak_mib": 10, "ballast_mib": 50}) > 0


def test_a_target_counts_more_than_memory() -> None:
    larger = PRESENT | {"gc_cpu_share": 0.04, "heap_peak_mib": 900.0}
    assert score(larger, PRESENT, "balanced", 0.05) < score(PRESENT, PRESENT, "balanced", 0.05)


@pytest.mark.parametrize("aim", ["cpu", "latency", "memory", "balanced"])
def test_half_of_everything_is_worth_a_change(aim: str) -> None:
    half = {name: value / 2 for name, value in PRESENT.items() if isinstance(value, float)}
    assert failed_test(PRESENT | half, PRESENT, Gain(2.0, 0.2), aim) is None
    assert score(PRESENT | half, PRESENT, aim, None) < score(PRESENT, PRESENT, aim, None)


@pytest.mark.parametrize(
    ("other", "gain", "reason"),
    [
        ({}, Gain(1.1, 0.01), "no other setting would save 13 % of the GC CPU"),
        (
            {"gc_cpu_with_idle_share": 0.1},
            Gain(2.0, 0.6),
            "no other setting is certain to save 13 % of the",
        ),
        (
            {"gc_cpu_with_idle_share": 0.1, "heap_peak_mib": 650.0, "gogc": 400.0},
            Gain(2.0, 0.1),
            "GOGC=400 saves 10 % of the CPUs for 4.0 times the heap",
        ),
    ],
    ids=["small", "uncertain", "dear"],
)
def test_no_change_names_the_test_that_failed(
    other: dict[str, float], gain: Gain, reason: str
) -> None:
    failed = failed_test(PRESENT | other, PRESENT, gain, "balanced")
    assert failed is not None
    assert reason in failed.reason


@pytest.mark.parametrize("ratio", [None, 0.99])
def test_little_gc_cpu_is_the_reason_of_every_program_that_nothing_helps(
    ratio: float | None,
) -> None:
    present = PRESENT | {"gc_cpu_share": 0.02, "run_time_ratio": ratio}
    other = present | {"rule": "", "gain_run_time_share": 0.01, "gain_run_time_share_low": 0.0}
    wanted: Any = SimpleNamespace(aim="balanced", dear=list)
    predictor: Any = SimpleNamespace(load_is_known=True, differs_since_s=None, gc_slows=False)
    found = _worth_it([other], present, predictor, wanted)
    assert found == (None, "GC CPU without idle marking is below 10 %")


def test_a_shorter_run_time_of_an_assumed_load_is_no_reason_where_gc_costs_little() -> None:
    present = PRESENT | {"gc_cpu_share": 0.02, "run_time_ratio": 1.0}
    other = present | {"rule": "", "gain_run_time_share": 0.07, "gain_run_time_share_low": 0.01}
    other |= {"run_time_ratio": 0.93, "gc_cpu_with_idle_share": 0.1}
    wanted: Any = SimpleNamespace(aim="balanced", dear=list)
    for is_known in (True, False):
        predictor: Any = SimpleNamespace(
            load_is_known=is_known, differs_since_s=None, gc_slows=False
        )
        chosen, _ = _worth_it([other], present, predictor, wanted)
        assert (chosen is other) == is_known


@pytest.mark.parametrize(
    ("ratio", "low", "high", "cpu", "text"),
    [
        (
            0.83,
            0.78,
            0.88,
            0.37,
            "the same work takes 17 % less time if the CPU limits it (12–22)",
        ),
        (
            0.89,
            0.8,
            1.03,
            0.22,
            "the same work takes 11 % less time if the CPU limits it (between 3.0 % more and 20 % "
            "less; GC also slows the program itself)",
        ),
        (
            1.035,
            1.01,
            1.06,
            0.17,
            "the same work takes 3.5 % more time if the CPU limits it (1.0–6.0)",
        ),
        (0.97, 0.9, 1.0, 0.2, ""),
        (1.001, 0.99, 1.01, 0.2, ""),
    ],
)
def test_that_a_program_ends_later_is_said_however_little(
    ratio: float, low: float, high: float, cpu: float, text: str
) -> None:
    row = {"run_time_ratio": ratio, "run_time_ratio_low": low, "run_time_ratio_high": high}
    assert run_time_text(PRESENT | row, PRESENT | {"gc_cpu_with_idle_share": cpu}) == text


def test_half_a_point_of_the_cpus_is_the_least_saving() -> None:
    cheap = PRESENT | {"gc_cpu_with_idle_share": 0.006}
    failed = failed_test(
        PRESENT | {"gc_cpu_with_idle_share": 0.003}, cheap, Gain(2, 0.1), "cpu"
    )
    assert failed is not None
    assert "save 0.5 % of the CPUs" in failed.reason
