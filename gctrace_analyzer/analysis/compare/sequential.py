"""Intervals for the mean of paired differences: after a fixed number of rounds, or after each.

Ordinary 95 % intervals must not be checked after every round: whoever stops when a difference shows
claims one in far more than 5 % of the cases without any. The confidence sequence here covers the
mean after all rounds at once, so it may be looked at after each of them, and rounds may be added
later: a scale-invariant mixture t-test (Lai, 1976, The Annals of Statistics 4(2); closed form: Wang
and Ramdas, 2024, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown
variance"). Its test martingale for a mean of 0 is

    sqrt(c² / (n + c²)) · (V / (V - S² / (n + c²))) ^ (n / 2)

with the sum S and the sum of squares V of n differences: the likelihood ratio in which the
standardised mean has the prior N(0, 1 / c²) and the unknown scale the right Haar prior. By
Ville's inequality it ever exceeds 1 / alpha with probability alpha at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist, fmean

from gctrace_analyzer.frozen import frozen

SAME_SHARE = 0.02
"""Relative difference within which two settings count as the same."""

_PRIOR = 0.25
"""c²: the interval is tightest for means of one to three standard deviations of the differences.
Differences of 3 to 5 % are such means where runs vary by 1 to 2 %."""

_EXPANDED_FROM = 6
"""Degrees of freedom."""

_MOST_ROUNDS = 200
"""Rounds. Above it, no number is named."""


@frozen
class Interval:
    """The mean of differences of logarithms with its interval; null while unknown."""

    mean: float
    low: float | None
    high: float | None

    @property
    def differs(self) -> bool:
        """Whether the interval excludes "no difference"."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high

    @property
    def is_same(self) -> bool:
        """Whether the whole interval is within `SAME_SHARE`."""
        if self.low is None or self.high is None:
            return False
        return math.log1p(-SAME_SHARE) <= self.low and self.high <= math.log1p(SAME_SHARE)

    @property
    def decides(self) -> bool:
        """Whether the interval proves a difference, or that no difference matters."""
        return self.differs or self.is_same


def interval(differences: Sequence[float], alpha: float, *, fixed: bool) -> Interval:
    """Returns the mean of paired differences with its interval of confidence 1 - `alpha`.

    Args:
        differences: one per round.
        alpha: the probability that the interval, or any of the sequence, misses the mean.
        fixed: the number of rounds was fixed before the first; else the interval is that of the
            confidence sequence.
    """
    mean = fmean(differences)
    half = _half(len(differences), _deviation(differences, mean), alpha, fixed=fixed)
    return Interval(mean, *((None, None) if half is None else (mean - half, mean + half)))


def rounds_needed(differences: Sequence[float], alpha: float) -> int | None:
    """Returns the total number of rounds that would probably decide; None if too many."""
    if len(differences) < 2:
        return None
    mean = fmean(differences)
    deviation = _deviation(differences, mean)
    for rounds in range(len(differences) + 1, _MOST_ROUNDS):
        half = _half(rounds, deviation, alpha, fixed=False)
        if half is not None and half < max(abs(mean), SAME_SHARE - abs(mean)):
            return rounds
    return None


def _deviation(differences: Sequence[float], mean: float) -> float:
    return math.sqrt(fmean((difference - mean) ** 2 for difference in differences))


def _half(rounds: int, deviation: float, alpha: float, *, fixed: bool) -> float | None:
    """Returns half the width of the interval; None if there are too few rounds for one.

    Args:
        rounds: the number of differences.
        deviation: their standard deviation, with the number of differences as divisor.
        alpha: as in `interval`.
        fixed: as in `interval`.
    """
    if fixed:
        return (
            student(rounds - 1, alpha) * deviation / math.sqrt(rounds - 1)
            if rounds > 1
            else None
        )
    limit = (math.sqrt((rounds + _PRIOR) / _PRIOR) / alpha) ** (2 / rounds)
    share = 1 - 1 / limit
    room = rounds / (rounds + _PRIOR) - share
    return deviation * math.sqrt(share / room) if room > 0 else None


@cache
def student(dof: int, alpha: float) -> float:
    """Returns the two-sided quantile of Student's t.

    From 6 degrees of freedom on by its expansion in 1 / dof, which is off by at most 0.1 %.

    >>> [round(student(dof, 0.05), 2) for dof in (1, 2, 4, 6, 10, 30)]
    [12.71, 4.3, 2.78, 2.45, 2.23, 2.04]
    """
    if dof >= _EXPANDED_FROM:
        z: float = NormalDist().inv_cdf(1 - alpha / 2)
        terms = (
            z,
            (z**3 + z) / 4,
            (5 * z**5 + 16 * z**3 + 3 * z) / 96,
            (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        )
        return sum((term / float(dof) ** power for power, term in enumerate(terms)), 0.0)
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, dof) < 1 - alpha else (low, middle)
    return high


def _within(t: float, dof: int) -> float:
    """Returns the probability that |t| is below this (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(dof))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    is_odd = dof % 2
    term = math.cos(angle) if is_odd else 1.0
    total = term if dof > 1 else 0.0
    for step in range(2 + is_odd, dof, 2):
        term *= (step - 1) / step * square
        total += term
    return 2 / math.pi * (angle + sine * total) if is_odd else sine * total
