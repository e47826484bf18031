"""Memory outside the heap that a memory limit counts: stacks, spans, metadata, fragmentation.

gctrace does not print it. MemStats or metrics in the same input contain it; a log whose goals are
set by a memory limit shows it; otherwise a prior from real programs is used, with its spread.
"""

from __future__ import annotations

from dataclasses import replace

from gctrace_analyzer.advise.prediction import pacer
from gctrace_analyzer.analysis.settings.limits import LIMIT_HEADROOM_SHARE
from gctrace_analyzer.frozen import frozen

PRIOR_LOW = (-4.0, -0.03)
PRIOR_HIGH = (5.0, 0.04)
"""Ends of the 80 % range of the prior: MiB to add to the fixed part, and what to add to the share
of the goal."""

PER_STACK_LOW, PER_STACK_HIGH = -0.6, 1.6
"""What the prior's ends add per MiB of stacks. What is in use per MiB that is scanned depends on
how deep the goroutines are: 1.2 to 1.4 where stacks are nearly full, 2.4 in the median of ten
programs, 4.1 for idle goroutines of 4 KiB each, 5.3 for idle connections of net/http."""

VARYING_HIGH, VARIATIONS = 0.30, (0.2, 0.5)
"""What the prior's upper end adds to the share of the goal where the live heap varies, and the
variations between which it passes from nothing to this. Objects that die leave slots in their spans
which the next objects, of other sizes, do not fill: 0.02 to 0.6 of the goal in compilers, indexers
and scanners, 0.06 to 0.17 in databases."""

OWN_LIMIT_LOW = (-1.0, -0.015)
OWN_LIMIT_HIGH = (1.5, 0.02)
"""The same for a log whose own limit shows the non-heap memory."""


@frozen
class NonHeap:
    """Non-heap memory: a fixed part (MiB) and a part that grows with the goal.

    Attributes:
        fixed: the fixed part in MiB.
        share: the other part, as a share of the heap goal.
        source: `given` (MemStats or metrics), `the log's own limit` or `assumed`.
        stacks: MiB of stacks that the fixed part is assumed from.
        variation: standard deviation of the live heap relative to its mean.
    """

    fixed: float
    share: float
    source: str
    stacks: float = 0.0
    variation: float = 0.0

    @property
    def ranges(self) -> tuple[tuple[float, float], ...]:
        """What the 80 % range adds to the fixed part and to the share: both ends, or none."""
        if self.source == "given":
            return ()
        if self.source == "assumed":
            low, high = VARIATIONS
            varies = min(max((self.variation - low) / (high - low), 0.0), 1.0)
            return (
                (PRIOR_LOW[0] + PER_STACK_LOW * self.stacks, PRIOR_LOW[1]),
                (
                    PRIOR_HIGH[0] + PER_STACK_HIGH * self.stacks,
                    PRIOR_HIGH[1] + VARYING_HIGH * varies,
                ),
            )
        return (OWN_LIMIT_LOW, OWN_LIMIT_HIGH)

    def shifted(self, by: tuple[float, float]) -> NonHeap:
        """Returns it with another fixed part and another share."""
        return replace(
            self, fixed=max(self.fixed + by[0], 1.0), share=max(self.share + by[1], 0.0)
        )

    def at(self, goal: float, ballast: float = 0.0) -> float:
        """Returns the non-heap memory at a heap goal. A ballast is one object: nothing is lost."""
        return self.fixed + self.share * max(goal - ballast, 0.0)

    def cap(self, limit: float, ballast: float, *, go_1_21: bool) -> float:
        """Returns the heap goal that a memory limit sets.

        Part of the non-heap memory grows with the goal, so the equation is solved for the goal.
        """
        room = limit - self.fixed + self.share * ballast
        kept = 1 - (LIMIT_HEADROOM_SHARE if go_1_21 else 0.0)
        return pacer.goal_from_limit(room / (1 + kept * self.share), 0.0, 0.0, go_1_21=go_1_21)
