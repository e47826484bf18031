"""Memory outside the heap that a memory limit counts: stacks, spans, metadata, fragmentation.

gctrace does not print it. MemStats or metrics in the same input contain it; a log whose goals are
set by a memory limit shows it; otherwise a prior from real programs is used, with its spread.
"""

from __future__ import annotations

from dataclasses import dataclass

from gctrace_analyzer.advise.prediction import pacer

PRIOR_LOW = (-4.0, -0.03)
PRIOR_HIGH = (5.0, 0.04)
"""Ends of the 80 % range of the prior: MiB to add to the fixed part, and what to add to the share
of the goal."""

OWN_LIMIT_LOW = (-1.0, -0.015)
OWN_LIMIT_HIGH = (1.5, 0.02)
"""The same for a log whose own limit shows the non-heap memory."""


@dataclass(frozen=True, slots=True)
class NonHeap:
    """Non-heap memory: a fixed part (MiB) and a part that grows with the goal.

    Attributes:
        fixed: the fixed part in MiB.
        share: the other part, as a share of the heap goal.
        source: `given` (MemStats or metrics), `the log's own limit` or `assumed`.
    """

    fixed: float
    share: float
    source: str

    @property
    def ranges(self) -> tuple[tuple[float, float], ...]:
        """What the 80 % range adds to the fixed part and to the share: both ends, or none."""
        if self.source == "given":
            return ()
        if self.source == "assumed":
            return (PRIOR_LOW, PRIOR_HIGH)
        return (OWN_LIMIT_LOW, OWN_LIMIT_HIGH)

    def shifted(self, by: tuple[float, float]) -> NonHeap:
        """Returns it with another fixed part and another share."""
        return NonHeap(max(self.fixed + by[0], 1.0), max(self.share + by[1], 0.0), self.source)

    def at(self, goal: float, ballast: float = 0.0) -> float:
        """Returns the non-heap memory at a heap goal. A ballast is one object: nothing is lost."""
        return self.fixed + self.share * max(goal - ballast, 0.0)

    def cap(self, limit: float, ballast: float, *, go_1_21: bool) -> float:
        """Returns the heap goal that a memory limit sets.

        Part of the non-heap memory grows with the goal, so the equation is solved for the goal.
        """
        room = limit - self.fixed + self.share * ballast
        kept = 1 - (pacer.LIMIT_HEADROOM_SHARE if go_1_21 else 0.0)
        return pacer.goal_from_limit(room / (1 + kept * self.share), 0.0, 0.0, go_1_21=go_1_21)
