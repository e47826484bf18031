"""The rule that stops measuring early: how often it is wrong, and how soon it decides."""

from __future__ import annotations

import math
import random

import pytest

from gctrace_analyzer.analysis.compare.sequential import (
    SAME_SHARE,
    Interval,
    interval,
    rounds_needed,
    student,
)

MOST = 20


def decided(rng: random.Random, change: float, spread: float) -> tuple[int, Interval]:
    """The round in which a pair of settings is decided, and the interval then."""
    differences: list[float] = []
    while True:
        differences.append(math.log1p(change) + rng.gauss(0, spread) - rng.gauss(0, spread))
        found = interval(differences, 0.05, fixed=False)
        if found.decides or len(differences) == MOST:
            return len(differences), found


@pytest.mark.parametrize("spread", [0.003, 0.01, 0.02, 0.1])
def test_equal_settings_are_told_apart_in_at_most_5_percent_of_trials(spread: float) -> None:
    rng = random.Random(f"equal {spread}")
    several = [decided(rng, 0.0, spread) for _ in range(2000)]
    # Trials that go on for longer are looked at more often, and claim no more.
    assert sum(found.differs for _, found in several) <= 0.05 * len(several)


def test_a_claim_that_nothing_differs_is_wrong_in_at_most_5_percent_of_trials() -> None:
    rng = random.Random("at the border")
    several = [decided(rng, 1.02 * SAME_SHARE, 0.01) for _ in range(2000)]
    assert sum(found.is_same for _, found in several) <= 0.05 * len(several)


@pytest.mark.parametrize("spread", [0.01, 0.02])
def test_a_difference_of_5_percent_is_decided_within_20_rounds(spread: float) -> None:
    rng = random.Random(f"different {spread}")
    several = [decided(rng, 0.05, spread) for _ in range(500)]
    right = [rounds for rounds, found in several if found.differs and found.mean > 0]
    assert len(right) >= 0.98 * len(several)
    assert sum(right) / len(right) < 10


def test_settings_that_hardly_vary_are_known_to_be_the_same() -> None:
    rng = random.Random("same")
    several = [decided(rng, 0.0, 0.01) for _ in range(200)]
    assert sum(found.is_same for _, found in several) >= 0.9 * len(several)


def test_the_first_rounds_decide_nothing() -> None:
    for rounds in (1, 2, 3):
        assert interval([0.1] * rounds, 0.05, fixed=False).low is None
    assert interval([0.1, 0.1, 0.1, 0.1, 0.1], 0.05, fixed=False).differs
    assert interval([0.1], 0.05, fixed=True).low is None


def test_a_fixed_number_of_rounds_has_the_interval_of_student() -> None:
    found = interval([0.1, 0.2, 0.3], 0.05, fixed=True)
    assert found.high is not None
    assert found.high - found.mean == pytest.approx(4.303 * 0.1 / math.sqrt(3), rel=1e-3)
    assert student(1, 0.1) == pytest.approx(6.314, rel=1e-3)


def test_it_is_named_how_many_rounds_would_decide() -> None:
    rng = random.Random("needed")
    differences = [rng.gauss(0.03, 0.07) for _ in range(20)]
    needed = rounds_needed(differences, 0.05)
    assert needed is not None
    assert 20 < needed < 400
    assert rounds_needed([0.1], 0.05) is None
