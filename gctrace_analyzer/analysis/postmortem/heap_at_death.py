"""How much of the memory at a death can have been Go heap: the figures before any sentence.

The last cycle shows the size of the heap. The goal of the next cycle, which did not end, and the
allocation rate bound what was allocated since then. The rest of the resident memory is not heap.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.cycles import goal_mib
from gctrace_analyzer.analysis.postmortem.facts import MOST_OF_LIMIT, RaiseLimit, container_for
from gctrace_analyzer.analysis.thresholds import DEFAULT, least_limit, roomy_limit
from gctrace_analyzer.frozen import frozen

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.postmortem.facts import Evidence, LastMinute
    from gctrace_analyzer.schema import Row

MAX_OVERSHOOT = 1.1
"""Times the heap goal. Assists keep the heap of a cycle below it (maxOvershoot, mgcpacer.go)."""

NOTABLE = 0.1
"""Share of the memory. Every program has less outside the heap: code, spans, fragments."""

TIMESTAMP_S = 1.0
"""Seconds. Timestamps may be truncated to seconds."""


@frozen
class HeapAtDeath:
    """Bounds of the Go heap and of the rest at a death, in MiB; None where unknown.

    Attributes:
        total_mib: the memory to divide: the resident memory or, if unknown, the whole limit.
        ceiling_mib: the limit that was reached; without a limit, `total_mib`.
        live_mib: the live heap after the last cycle.
        go_heap_mib: the least that was heap.
        go_heap_most_mib: the most that can have been heap.
        neighbours_mib: the part of the limit that the process did not use.
        go_other_mib: stacks and other memory of the runtime; 0 if unknown.
        most_is: the source of `go_heap_most_mib`: `rate`, `goal` or `total`.
        rate_mib_per_s: the allocation rate used.
        since_s: the longest time since the last cycle that the timestamps allow.
        run_most_mib: the most that was heap since the start of the program.
        live_most_mib: the largest live heap of the last minute.
    """

    total_mib: float | None = None
    ceiling_mib: float | None = None
    live_mib: float | None = None
    go_heap_mib: float | None = None
    go_heap_most_mib: float | None = None
    go_other_mib: float = 0.0
    neighbours_mib: float = 0.0
    most_is: str = "total"
    rate_mib_per_s: float | None = None
    since_s: float | None = None
    run_most_mib: float | None = None
    live_most_mib: float | None = None

    @property
    def least_limit_mib(self) -> float:
        """The lowest GOMEMLIMIT under which the live heap does not thrash."""
        return least_limit(self.live_most_mib or 0.0, self.go_other_mib)

    @property
    def roomy_limit_mib(self) -> float:
        """The GOMEMLIMIT to advise, under which GC does not run often."""
        return roomy_limit(self.least_limit_mib)

    @property
    def roomy_container_mib(self) -> int:
        """The limit to advise for the container, with room for what was outside the heap."""
        return container_for(self.roomy_limit_mib, self.outside_most_mib * self.is_outside)

    def if_little_room(self, gomemlimit: float, limit: float) -> str:
        """Returns what a GOMEMLIMIT close to the live heap costs, and which limits avoid that."""
        is_close = gomemlimit < self.roomy_limit_mib
        return (
            " GC then runs often, because the live heap has little room. Better: raise the limit "
            f"of {limit:,.0f} MiB to about {self.roomy_container_mib:,} MiB, and the setting to "
            f"about {self.roomy_limit_mib:,.0f} MiB."
        ) * (self.live_mib is not None and is_close)

    def raising(self, facts: Evidence, limit: float) -> RaiseLimit:
        """Returns how far to raise a limit under which no GOMEMLIMIT leaves room to GC."""
        first = "To buy time, raise" if facts.minute.grew else "Raise"
        needs = " (Go 1.19 or later)" * facts.is_before_limits
        return RaiseLimit(
            f"{first} the limit of {limit:,.0f} MiB to about {{:,}} MiB, and set "
            f"GOMEMLIMIT={{:.0f}}MiB{needs}: {self.live_most_mib or 0:,.0f} MiB are live heap, so "
            f"no GOGC or GOMEMLIMIT leaves GC enough room under {limit:,.0f} MiB.",
            container_for(self.roomy_limit_mib),
            self.roomy_limit_mib,
        )

    def limit_with_room(self, limit: float) -> int | None:
        """Returns the GOMEMLIMIT (MiB) that leaves room outside the heap; None if there is none."""
        outside, room = self.outside_most_mib, MOST_OF_LIMIT * limit
        if self.is_mostly_outside:
            return None
        if outside > limit - room:
            room = DEFAULT.tight_limit_share * limit - outside
        return int(room) if room >= self.least_limit_mib else None

    @property
    def memory_limit_most_mib(self) -> float | None:
        """The highest GOMEMLIMIT with room for what was outside Go: 0 if none, None if unknown."""
        if self.live_mib is None or not self.is_outside:
            return None
        return float(self.limit_with_room(self.ceiling_mib or 0.0) or 0)

    @property
    def off_heap_mib(self) -> float | None:
        """The least memory that was neither heap objects nor known memory of the runtime."""
        return None if self.parts is None else self.parts[2][0]

    @property
    def off_heap_most_mib(self) -> float | None:
        """The most memory that was neither heap objects nor known memory of the runtime."""
        return None if self.parts is None else self.parts[2][1]

    @property
    def parts(self) -> tuple[float, tuple[float, float], tuple[float, float]] | None:
        """The total, and the ranges inside and outside the heap; None if unknown."""
        total, least, most = self.total_mib, self.go_heap_mib, self.go_heap_most_mib
        if total is None or least is None or most is None:
            return None
        rest = total - self.go_other_mib
        return total, (least, most), (max(rest - most, 0.0), max(rest - least, 0.0))

    @property
    def go_most_mib(self) -> float:
        """The most memory that GOMEMLIMIT counts."""
        return (self.go_heap_most_mib or 0.0) + self.go_other_mib

    @property
    def go_least_mib(self) -> float:
        """The least memory that GOMEMLIMIT counts."""
        return (self.go_heap_mib or 0.0) + self.go_other_mib

    @property
    def is_outside(self) -> bool:
        """Whether a notable part of the memory was certainly not heap objects."""
        outside = (self.off_heap_mib or 0.0) + self.neighbours_mib
        return outside > NOTABLE * (self.ceiling_mib or 0.0)

    @property
    def is_mostly_outside(self) -> bool:
        """Whether more memory was certainly not heap objects than can have been."""
        return (self.off_heap_mib or 0.0) + self.neighbours_mib > self.go_most_mib

    @property
    def is_mostly_live(self) -> bool:
        """Whether half of the memory was live, so that a setting hardly makes the heap fit."""
        return 2 * (self.live_mib or 0.0) > (self.ceiling_mib or 0.0)

    @property
    def outside_most_mib(self) -> float:
        """The most memory under the limit that GOMEMLIMIT does not count."""
        return (self.off_heap_most_mib or 0.0) + self.neighbours_mib

    @property
    def needed_mib(self) -> float:
        """The least memory that would have remained after GC freed everything not live.

        A memory limit also makes the runtime return free spans, which are at most as large as the
        heap ever was.
        """
        kept = (self.live_mib or 0.0) + self.go_other_mib + self.neighbours_mib
        free = max((self.run_most_mib or math.inf) - (self.go_heap_most_mib or 0.0), 0.0)
        return kept + max((self.off_heap_mib or 0.0) - free, 0.0)


def heap_at_death(facts: Evidence) -> HeapAtDeath:
    """Returns how much of the memory at a death can have been Go heap."""
    minute, live = facts.minute, facts.minute.live_mib
    total, limit, neighbours = facts.memory.resident_mib, facts.limit.limit_mib, 0.0
    if facts.death.scope == "memcg" and limit is not None and not facts.death.not_before_at:
        total = limit if total is None else total
        neighbours = max(limit - total, 0.0)
    other = facts.memory.go_other_mib or 0.0
    if live is None:
        return HeapAtDeath(total, limit or total, go_other_mib=other)
    rate = minute.alloc_most_mib_per_s or minute.alloc_mib_per_s
    gap_s = minute.gap_s if minute.dump_age_s is None else minute.dump_age_s
    since = None if gap_s is None or math.isinf(gap_s) else gap_s + _hidden_s(facts)
    allocated = None if rate is None or since is None else rate * max(since, 0.0)
    least, bounds = _least(minute, live), _bounds(minute, live, allocated)
    if total is not None:
        # A larger live heap has parts that were never written, such as a ballast.
        least = 0.0 if live > total else min(least, total)
        bounds["total"] = max(total - other, least)
    most_is = min(bounds, key=lambda name: bounds[name]) if bounds else "total"
    most = bounds.get(most_is)
    return HeapAtDeath(
        total, limit or total, live, least, most, other, neighbours, most_is, rate, since,
        minute.heap_most_mib, minute.live_most_mib or live,
    )  # fmt: skip


def _least(minute: LastMinute, live: float) -> float:
    """Returns the smallest possible heap.

    Freed memory stays resident up to the heap goal, because the scavenger keeps what the heap needs
    next (retainExtraPercent, mgcscavenge.go), unless a memory limit requires it.
    """
    kept = minute.heap_end_mib
    if kept is None or minute.limited or minute.next_goal_mib is None:
        return live
    return max(live, min(kept, minute.next_goal_mib))


def _bounds(minute: LastMinute, live: float, allocated: float | None) -> dict[str, float]:
    """Returns the largest heap that the goal and the allocation rate allow."""
    bounds: dict[str, float] = {}
    end, goal = max(minute.heap_end_mib or live, live), minute.next_goal_mib
    # Freed memory stays resident for a while.
    peak = max(minute.heap_peak_mib or end, end)
    if goal is not None and minute.overshoot is not None and minute.dump_age_s is None:
        bounds["goal"] = max(peak, goal * max(minute.overshoot, MAX_OVERSHOOT))
    if allocated is not None and minute.dump_age_s is not None:
        bounds["rate"] = max(peak, end + allocated)
    elif allocated is not None:
        # Sweeping frees the garbage of the last cycle before the next one begins.
        swept = end + allocated if goal is None else min(end + allocated, goal)
        bounds["rate"] = max(peak, live + allocated, swept)
    return bounds


def _hidden_s(facts: Evidence) -> float:
    """Returns the seconds that a kill time in whole seconds hides."""
    at = facts.death.logged_at
    in_whole = facts.death.monotonic_s is None and (at is None or not at.microsecond)
    return TIMESTAMP_S if in_whole else 0.0


def overshoot_of(minute: pl.DataFrame) -> float | None:
    """Returns the highest ratio of a cycle's heap to its goal.

    None if single allocations jumped over the goal: the next one may have any size.
    """
    goals = minute.filter(pl.col("heap_goal_mib") > _LEAST_GOAL_MIB)
    jumped = (goals["heap_start_mib"] >= goals["heap_goal_mib"]).any()
    most = (goals["heap_end_mib"] / goals["heap_goal_mib"]).max()
    if jumped:
        return None
    return most if isinstance(most, float) else 1.0


def next_goal_mib(minute: pl.DataFrame, last: Row, gogc: float | None = None) -> int | None:
    """Returns the heap goal (MiB) of the next cycle, from the inferred or the effective GOGC.

    Goals that a memory limit set in the last minute bound it: the limit is still set.
    """
    setter, live = minute["goal_set_by"].cast(pl.String), last["heap_live_mib"]
    effective = minute.filter(setter == "gogc")["effective_gogc"].median()
    if not isinstance(effective, float) or live is None:
        return None
    is_known = gogc is not None and math.isfinite(gogc)
    # The live heap is truncated: the middle of its range stands for it.
    gogc, middle = (gogc or 0.0, live + 0.5) if is_known else (effective, live)
    roots = (last["stacks_mib"] or 0) + (last["globals_mib"] or 0)
    by_gogc = round(goal_mib(middle, roots, gogc))
    limited = minute.filter(setter == "memory-limit")["heap_goal_mib"].drop_nulls().to_list()
    # If the live heap was above the limit, the goal was the live heap.
    return min(by_gogc, max(min(limited), live)) if limited else by_gogc


_LEAST_GOAL_MIB = 64
"""MiB. In whole MiB, a heap just below a smaller goal may be printed as equal to it."""
