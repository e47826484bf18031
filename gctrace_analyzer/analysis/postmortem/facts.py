"""The known facts about one death: records without a sentence, sizes in MiB, None if unknown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.analysis.postmortem.death import Death
    from gctrace_analyzer.analysis.postmortem.match import Match
    from gctrace_analyzer.analysis.trend import LiveGrowth


GROWTH_TIMES = 1.5
GROWTH_MIN_MIB = 16
"""Growth by this factor and by this many MiB in the last minute makes the live heap a cause."""

STILL_TIMES = 1.1
"""A factor. The live heap at the end must be above this multiple of the first half of the last
minute: memory that a start-up or each batch fills is not growth."""


class SetLimit(str):
    """A step after a death that sets GOMEMLIMIT to `mib`, or only tries it."""

    mib: int
    words: str

    def __new__(cls, mib: int, words: str, verb: str = "Set") -> SetLimit:
        """Returns the step; `words` follow the setting."""
        step = super().__new__(cls, f"{verb} GOMEMLIMIT={mib}MiB{words}")
        step.mib, step.words = mib, words
        return step


class RaiseLimit(str):
    """A step after a death that raises a limit under which no GOMEMLIMIT leaves room to GC."""

    form: str

    def __new__(cls, form: str, container_mib: float, limit_mib: float) -> RaiseLimit:
        """Returns the step; `form` has places for the memory of the container and GOMEMLIMIT."""
        step = super().__new__(cls, form.format(container_mib, limit_mib))
        step.form = form
        return step


@frozen
class Limit:
    """The limit that a process reached, and what kind it is."""

    limit_mib: float | None = None
    limit_is: str | None = None


@frozen
class LastMinute:
    """What the cycles, dumps or scrapes of the last minute show.

    `growth` covers the whole log, so that all sentences state the same figures. `live_span_s` is
    the time from the first live heap to the last, `live_had_mib` the 90 % quantile of the live heap
    in the first half, `live_most_mib` the largest live heap, `heap_peak_mib` the largest heap,
    `heap_most_mib` the largest one of a log from the first cycle on, `limited` whether a memory
    limit set most goals, `alloc_most_mib_per_s` the highest allocation rate over several cycles,
    `stw_max_ms` the longest pause, and `overshoot` the highest ratio of a heap to its goal; None if
    single allocations jumped over the goal, because then a heap may have any size. `dump_age_s` is
    the time from the last dump or scrape to the death, infinite if unknown; None for cycles. Dumps
    do not show the cycles after the last one.
    """

    last_gc_num: int | None = None
    gap_s: float | None = None
    usual_interval_s: float | None = None
    live_before_mib: int | None = None
    live_mib: int | None = None
    heap_end_mib: int | None = None
    goal_mib: int | None = None
    next_goal_mib: int | None = None
    gc_cpu_share: float | None = None
    alloc_mib_per_s: float | None = None
    live_span_s: float | None = None
    live_had_mib: float | None = None
    live_most_mib: int | None = None
    growth: LiveGrowth | None = None
    heap_peak_mib: int | None = None
    heap_most_mib: int | None = None
    limited: bool = False
    alloc_most_mib_per_s: float | None = None
    stw_max_ms: float | None = None
    overshoot: float | None = 1.0
    dump_age_s: float | None = None

    @property
    def grew(self) -> bool:
        """Whether the live heap grew, and did not fall after that."""
        first, live = self.live_before_mib or 0, self.live_mib or 0
        least = max(GROWTH_TIMES * first, STILL_TIMES * (self.live_had_mib or first))
        is_highest = STILL_TIMES * live >= (self.live_most_mib or 0)
        has_grown = first > 0 and is_highest and live > max(least, first + GROWTH_MIN_MIB)
        return has_grown or self.keeps_growing

    @property
    def keeps_growing(self) -> bool:
        """Whether the whole log shows growth that goes on: in a short one, start-ups look alike."""
        return self.growth is not None and self.growth.is_lasting


@frozen
class Resident:
    """The resident memory at the death, and the part that the Go runtime had outside its heap.

    `resident_is` says which pages are not counted, as the end of a clause. `host_share` is the
    process's share of the host's memory, if the host ran short. `largest` is the largest other
    program, listed or killed with it, and its MiB. `swapped_mib` is the swapped-out part of the
    process, and `others_mib` the memory of the other processes in the same list. `of_go_mib` is
    what Go held at the last dump.
    """

    resident_mib: float | None = None
    go_other_mib: float | None = None
    resident_is: str = ""
    host_share: float | None = None
    largest: tuple[str, float] | None = None
    swapped_mib: float | None = None
    others_mib: float | None = None
    of_go_mib: float | None = None


MOST_OF_ALL = 0.5
"""Share of the memory of a host or group. A program with less did not exhaust it."""

LEAST_LIMIT_MIB = 4.0
"""MiB. Less is not enough for the code, stacks and tables of the smallest Go program."""

MOST_OF_LIMIT = 0.9
"""Share of the limit. A live heap above it leaves less than a tenth to everything else, and a
higher GOMEMLIMIT leaves too little to memory that Go does not count."""


def container_for(limit_mib: float, outside_mib: float = 0.0) -> int:
    """Returns the memory limit (MiB) of a container in which a GOMEMLIMIT leaves a tenth free.

    Args:
        limit_mib: GOMEMLIMIT.
        outside_mib: other memory in the container, which GOMEMLIMIT does not count.
    """
    return math.ceil((limit_mib + outside_mib) / MOST_OF_LIMIT)


LEAST_MIB = {"global": 256.0, "memcg": 64.0}
"""MiB. Hosts and groups of unknown memory or limit have at least this."""


@frozen
class Evidence:
    """Everything that is known about one death.

    `is_before_limits` says that the program has a Go version without GOMEMLIMIT. `new_run_s` is the
    length of a log that may come from the container started after the kill, and `is_new_run` says
    that it does. `by_goals_mib` is the lowest and highest GOMEMLIMIT that the heap goals allow.
    `least_had_mib` is the least that the program had at its kills, if they differ.
    """

    death: Death
    match: Match | None = None
    limit: Limit = Limit()
    minute: LastMinute = LastMinute()
    memory: Resident = Resident()
    is_before_limits: bool = False
    by_goals_mib: tuple[float, float] | None = None
    new_run_s: float | None = None
    is_new_run: bool = False
    least_had_mib: float | None = None

    @property
    def had_mib(self) -> float:
        """Its anonymous memory, with swap where known, or else `own_mib`."""
        own = self.death.own_bytes
        return (own / MIB if own else self.own_mib) + (self.memory.swapped_mib or 0.0)

    @property
    def had_room(self) -> bool:
        """Whether the memory limit that set the goals may have left a tenth of the one reached."""
        limit, known = self.limit.limit_mib, self.by_goals_mib
        if limit is None or known is None or not self.minute.limited:
            return False
        return known[0] <= MOST_OF_LIMIT * limit

    @property
    def gomemlimit_most_mib(self) -> float:
        """The highest GOMEMLIMIT that the heap goals allow; infinite if unknown."""
        return self.by_goals_mib[1] if self.by_goals_mib else math.inf

    @property
    def is_small(self) -> bool:
        """Whether other programs had most of the memory of a host that ran short."""
        return (self.memory.host_share or 1.0) < MOST_OF_ALL

    @property
    def own_mib(self) -> float:
        """Its resident memory, or the most that was used of its limit; 0 if unknown."""
        used = self.limit.limit_mib and (self.death.used_bytes or 0) / MIB
        return self.memory.resident_mib or used or 0.0

    @property
    def is_small_part(self) -> bool:
        """Whether a process had so little of its limit that something else filled it."""
        _, larger = self.memory.largest or ("", 0.0)
        least = max(LEAST_MIB.get(self.death.scope or "", 0.0), larger)
        known = None if self.death.is_limit_stated else self.limit.limit_mib
        limit, own = known or least, self.own_mib
        if known is None and self.death.scope == "memcg":
            # The kernel frees file pages before it kills.
            own = min(own, (self.death.anon_rss_bytes or 0) / MIB)
        return limit >= LEAST_LIMIT_MIB and 0 < own < MOST_OF_ALL * limit


def least_had(deaths: Sequence[Evidence]) -> list[float | None]:
    """Returns the least memory (MiB) that the program of each death had at its kills.

    It is None if it had as much at all of them.
    """
    sizes: dict[str | None, set[float]] = {}
    for facts in deaths:
        sizes.setdefault(facts.death.victim, set()).add(facts.had_mib)
    least = {victim: min(had - {0.0}) for victim, had in sizes.items() if len(had - {0.0}) > 1}
    return [least.get(facts.death.victim) for facts in deaths]
