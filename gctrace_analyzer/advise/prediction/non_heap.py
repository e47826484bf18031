"""Memory outside the heap that a memory limit counts: stacks, spans, metadata, fragmentation.

gctrace does not print it. MemStats or metrics in the same input contain it; a log whose goals are
set by a memory limit shows it; otherwise a prior from real programs is used, with its spread.
"""

from __future__ import annotations

from dataclasses import replace

from gctrace_analyzer.advise.prediction import pacer
from gctrace_analyzer.analysis.settings.limits import LIMIT_HEADROOM_SHARE, STACK_TIMES
from gctrace_analyzer.frozen import frozen

PRIOR_LOW = (-4.0, -0.03)
PRIOR_HIGH = (5.0, 0.04)
"""Added at the prior's upper end (80 %): MiB to the fixed part, and to the share of the goal."""

VARYING_HIGH, VARIATIONS = 0.30, (0.2, 0.5)
"""Addition to the share of the goal at the prior's upper end where the live heap varies, and the
variations between which it rises from nothing to this. Dead objects leave slots in their spans that
the next objects, of other sizes, do not fill: 0.02 to 0.6 of the goal in compilers, indexers and
scanners, 0.06 to 0.17 in databases."""

OWN_LIMIT_LOW = (-1.0, -0.015)
OWN_LIMIT_HIGH = (1.5, 0.02)
"""The same for a log whose own limit shows the non-heap memory."""


@frozen
class NonHeap:
    """Non-heap memory: a fixed part (MiB) and a part that grows with the goal.

    Attributes:
        fixed: the fixed part in MiB.
        share: the other part, as a share of the heap goal.
        source: `given` (MemStats or metrics), `the log's own limit`, `inferred` (together with that
            limit, from a known goal), or `assumed`.
        stacks: MiB of stacks from which the fixed part is assumed.
        variation: standard deviation of the live heap relative to its mean.
    """

    fixed: float
    share: float
    source: str
    stacks: float = 0.0
    variation: float = 0.0

    def given(self, mib: float, goal: float) -> NonHeap:
        """Returns non-heap memory from its known size in MiB at a heap goal."""
        # Memory above the fixed part counts as fragmentation, which grows with the heap.
        rest = max(mib - self.fixed, 0.0) / max(goal, 1.0)
        return NonHeap(min(self.fixed, mib), rest, "given")

    def under(self, limit: float, goal: float, *, is_known: bool) -> NonHeap:
        """Returns the memory that a limit leaves when it sets a goal; either may be inferred."""
        if (measured := limit - goal / (1 - LIMIT_HEADROOM_SHARE)) <= 0:
            return self
        share = min(self.share, measured / goal)
        source = "the log's own limit" if is_known else "inferred"
        return replace(self, fixed=measured - share * goal, share=share, source=source)

    def ranges(self, *, under_own_limit: bool = False) -> tuple[tuple[float, float], ...]:
        """What both ends of the 80 % range add to the fixed part and the share, or nothing.

        Args:
            under_own_limit: whether the limit stays; if it is inferred, its goal is known.
        """
        if self.source == "given":
            return ()
        if not self.is_measured and not (under_own_limit and self.source == "inferred"):
            low, high = VARIATIONS
            varies = min(max((self.variation - low) / (high - low), 0.0), 1.0)
            least, middle, _ = STACK_TIMES
            return (
                (PRIOR_LOW[0] + (least - middle) * self.stacks, PRIOR_LOW[1]),
                (PRIOR_HIGH[0] + self.hidden_stacks, PRIOR_HIGH[1] + VARYING_HIGH * varies),
            )
        return (OWN_LIMIT_LOW, OWN_LIMIT_HIGH)

    @property
    def hidden_stacks(self) -> float:
        """MiB of stacks that may exist beyond those assumed from what GC scans."""
        _, middle, most = STACK_TIMES
        return 0.0 if self.is_measured else (most - middle) * self.stacks

    @property
    def is_measured(self) -> bool:
        """Whether it is measured: neither assumed nor inferred together with the limit."""
        return self.source in ("given", "the log's own limit")

    def shifted(self, by: tuple[float, float]) -> NonHeap:
        """Returns a copy with another fixed part and another share."""
        return replace(
            self, fixed=max(self.fixed + by[0], 1.0), share=max(self.share + by[1], 0.0)
        )

    def at(self, goal: float, ballast: float = 0.0) -> float:
        """Returns the non-heap memory at a heap goal. A ballast is one object, so it adds none."""
        return self.fixed + self.share * max(goal - ballast, 0.0)

    def cap(self, limit: float, ballast: float, *, go_1_21: bool) -> float:
        """Returns the heap goal that a memory limit sets.

        Part of the non-heap memory grows with the goal, so the equation is solved for the goal.
        """
        room = limit - self.fixed + self.share * ballast
        kept = 1 - (LIMIT_HEADROOM_SHARE if go_1_21 else 0.0)
        return pacer.goal_from_limit(room / (1 + kept * self.share), 0.0, go_1_21=go_1_21)
