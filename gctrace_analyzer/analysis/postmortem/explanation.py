"""Explains a death: what the facts mean, what to do, and whether Go could have prevented it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.postmortem.circumstances import about_limit, about_runtime
from gctrace_analyzer.analysis.postmortem.death import EVICTOR
from gctrace_analyzer.analysis.postmortem.unseen import (
    FIND_SIZE,
    MOST_OF_LIMIT,
    REQUEST_MORE,
    advice_on_unseen,
    dumps_of,
    of_runtime,
    reading_of_unseen,
    without_limits,
)
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

    from gctrace_analyzer.analysis.postmortem.death import Death
    from gctrace_analyzer.analysis.postmortem.facts import Evidence
    from gctrace_analyzer.analysis.settings.known import Settings

OFF_HEAP_SHARE = 0.3
"""Share of the limit. More than this outside the Go heap is a separate cause."""

TIGHT_LIMIT = 0.95
"""Share of the container's limit. A higher GOMEMLIMIT leaves no room for memory that Go does
not count."""

LAST_S = 60.0
"""Seconds before the death: long enough for a trend, short enough to be about the death."""

NEARLY = 0.8
"""Share of that time. Less is not called a minute."""

QUIET_TIMES = 2.0
"""Times the usual interval between cycles. If no cycle ran for that long before the death,
memory grew between two cycles."""

GROWTH_TIMES = 1.5
GROWTH_MIN_MIB = 16
"""If the live heap grew by this factor and by this many MiB in the last minute, that is a
cause."""

STILL_TIMES = 1.1
"""A factor. At the end, the live heap must be above what it was in the first half of the last
minute: what a start-up fills, or each batch fills again, is no growth."""

PAST_GOAL_TIMES = 1.5
"""Times the heap goal: where the heap ends if the last cycle began late, or runs for long."""

EXPLAINED_TIMES = 3
"""A factor. If off-heap memory is more than this many times what the heap can have grown since
the last cycle, heap growth does not explain it."""

TIMESTAMP_S = 1.0
"""Seconds. Timestamps may be truncated to seconds."""


_NEEDS_LIMIT = (
    "Specify the container's memory limit, or add the output of `docker inspect` or `kubectl "
    "describe pod` to the input."
)
_FIND_GROWTH = (
    "That only buys time: find out why the live heap grows (compare two heap profiles, `go tool "
    "pprof -base`)."
)
_FIND_CAUSE = (
    "Find out why the live heap grows: compare two heap profiles (`go tool pprof -base`)."
)
_COMPARE_TOTAL = (
    "Next time, compare what Go counts (`/memory/classes/total:bytes` less "
    "`/memory/classes/heap/released:bytes`) with the resident memory. If it is below GOMEMLIMIT, "
    "find out what uses the rest (cgo, mmap, other processes of the container), and lower "
    "GOMEMLIMIT by that much; if it is above, give the program more memory."
)


_FIND_FILES = (
    "Find out which files the program maps (`pmap -x`, /proc/PID/smaps), and whether the limit "
    "leaves room for them."
)


_FIND_PROBE = (
    "Find out why the check failed: too little CPU, a deadlock, or too short a timeout; the "
    "gctrace of that minute shows whether GC had a part in it."
)
_END_IN_TIME = (
    "If it should end by itself, let it handle SIGTERM, or give it more time "
    "(terminationGracePeriodSeconds, `docker stop -t`, TimeoutStopSec)."
)


@frozen
class Explanation:
    """What the facts mean (`reading`), what to do, and whether Go could have prevented it.

    `preventable` is `yes`, `for a while`, `partly`, `no` or `cannot tell`.
    """

    reading: tuple[str, ...]
    advice: tuple[str, ...]
    preventable: str


def explain_death(
    facts: Evidence, tables: Mapping[str, pl.DataFrame], settings: Settings
) -> Explanation:
    """Returns the explanation of a death.

    Args:
        facts: what is known about it.
        tables: the tables of the log.
        settings: the known settings.
    """
    reading = [*about_limit(facts, tables), *about_runtime(facts.death)]
    if (decided := _without_the_heap(facts, reading)) is not None:
        return decided
    limit, live = facts.limit.limit_mib, facts.minute.live_mib
    ceiling = limit if limit is not None else facts.memory.resident_mib
    if live is None:
        dumps = dumps_of(facts, tables)
        reading += reading_of_unseen(facts, dumps)
        actions = advice_on_unseen(facts, dumps, settings)
        return Explanation(tuple(reading), tuple(actions), "cannot tell")
    if not ceiling and facts.death.by_runtime:
        to_do = tuple(of_runtime(facts.death))
        return Explanation((*reading, *_about_growth(facts)), to_do, "cannot tell")
    if not ceiling:
        grew = tuple(_about_growth(facts))
        reading += grew or (
            "What the heap did is unknown, because its limit and its resident size are not in the "
            "input.",
        )
        find = (_FIND_CAUSE,) if grew else ()
        return Explanation(tuple(reading), (_NEEDS_LIMIT, *find), "cannot tell")
    reading += _about_last_minute(facts, ceiling)
    if live > MOST_OF_LIMIT * ceiling:
        reading.append(
            f"The live heap alone, {live:,} MiB, takes {100 * live / ceiling:.0f} % of "
            f"{ceiling:,.0f} MiB."
        )
        advice = (
            "Give the program more memory, or keep less in memory (heap profile: `go tool "
            "pprof`): no GOGC or GOMEMLIMIT makes the live heap fit."
        )
        return Explanation(tuple(reading), (advice,), "no")
    if (why := _outside_heap(facts, ceiling)) is not None:
        reading.append(
            f"{why}: most of the other {facts.memory.off_heap_mib:,.0f} MiB is not the Go heap, "
            "and GOMEMLIMIT does not affect it."
        )
        advice = (
            "Find out what uses this memory: cgo, mmap, thread stacks (`pmap -x`, "
            "/proc/PID/smaps)."
        )
        return Explanation(tuple(reading), (advice,), "cannot tell")
    growth = tuple(_about_growth(facts))
    gomemlimit = settings.value("memory_limit_mib")
    in_spite_of = _in_spite_of(facts, gomemlimit)
    if in_spite_of is not None:
        # What the log shows comes before what may have been.
        causes = (_FIND_CAUSE,) if growth else ()
        return Explanation(
            (*reading, in_spite_of, *growth), (*causes, _COMPARE_TOTAL), "cannot tell"
        )
    preventable = "partly"
    if gomemlimit is None and not facts.is_before_limits:
        preventable = "for a while" if growth else "yes" if limit else "partly"
    advice_lines = tuple(_limit_advice(facts, live, settings))
    if growth and preventable != "yes":
        advice_lines += (_FIND_GROWTH,)
    return Explanation((*reading, *growth), advice_lines, preventable)


def _unproven(death: Death) -> Explanation:
    """Returns the explanation of an end by SIGKILL, which anybody may have sent."""
    if death.stopped_by is not None:
        reading = (
            f"It got SIGKILL after {death.stopped_by}: a program that does not end in time after "
            "SIGTERM gets it. Nothing in the input says that memory ran out."
        )
        about_health = any(word in death.stopped_by for word in ("probe", "health"))
        advice = _FIND_PROBE if about_health else _END_IN_TIME
        return Explanation((reading,), (advice,), "cannot tell")
    reading = (
        "Exit code 137 means SIGKILL, which any process may have sent. It does not prove "
        "that memory was the reason; the kernel's log of that minute would show it."
    )
    advice = "Next time, save the output of `journalctl -k` or `dmesg` on the host."
    return Explanation((reading,), (advice,), "cannot tell")


def _without_the_heap(facts: Evidence, reading: list[str]) -> Explanation | None:
    """Returns the explanation if memory, or the Go heap, is not known to be the cause."""
    if not facts.death.proven:
        return _unproven(facts.death)
    if facts.death.is_impossible:
        return Explanation(tuple(reading), (FIND_SIZE,), "no")
    if not facts.death.is_of_files:
        return None
    of_files = (
        f"Most of its {facts.memory.resident_mib or 0:,.0f} MiB of resident memory was pages of "
        "files (mmap), which are not Go heap: neither GOGC nor GOMEMLIMIT changes them."
    )
    return Explanation((*reading, of_files), (_FIND_FILES,), "no")


def _in_spite_of(facts: Evidence, gomemlimit: float | None) -> str | None:
    """Returns what a kill means although GOMEMLIMIT left room below the limit, if it did."""
    limit = facts.limit.limit_mib
    if limit is None:
        return None
    if gomemlimit is None:
        goal = facts.minute.goal_mib if facts.minute.limited else None
        if goal is None or goal > TIGHT_LIMIT * limit:
            return None
        was, room = (
            f"GOMEMLIMIT, whose value is unknown, set the heap goal to {goal:,} MiB",
            float(goal),
        )
    elif gomemlimit <= TIGHT_LIMIT * limit:
        was, room = f"GOMEMLIMIT was {gomemlimit:,.0f} MiB", gomemlimit
    else:
        return None
    return (
        f"{was}, {100 * room / limit:.0f} % of the limit. "
        f"Either memory that Go does not count took more than the other "
        f"{limit - room:,.0f} MiB, or the heap grew past GOMEMLIMIT, which the runtime "
        "allows once GC takes half of the CPU."
    )


def _about_last_minute(facts: Evidence, ceiling: float) -> Iterator[str]:
    gap, usual = facts.minute.gap_s, facts.minute.usual_interval_s
    if gap is not None and usual and gap > QUIET_TIMES * usual:
        yield (
            f"There was no GC cycle in the last {duration_text(gap)}, although there usually "
            f"is one every {duration_text(usual)}: memory grew between two GC cycles."
        )
    rest = facts.memory.off_heap_mib
    if rest is not None and rest > OFF_HEAP_SHARE * ceiling:
        yield (
            f"{rest:,.0f} MiB of the resident memory is not in the Go heap of the last cycle: "
            "it was allocated since then, or it is outside the heap (stacks, cgo, mmap)."
        )
    goal = facts.minute.next_goal_mib
    if goal is not None and goal > ceiling:
        yield (
            f"The heap goal could not fit: the next cycle was due at {goal:,} MiB, above "
            f"{ceiling:,.0f} MiB."
        )


def _outside_heap(facts: Evidence, ceiling: float) -> str | None:
    """Returns why most of the memory that is not in the Go heap of the last cycle never was.

    Returns None if the heap may have grown by that much since then, or if that is unknown.
    """
    rest, gap, rate = (
        facts.memory.off_heap_mib,
        facts.minute.gap_s,
        facts.minute.alloc_mib_per_s,
    )
    if rest is None or gap is None or rate is None or rest <= OFF_HEAP_SHARE * ceiling:
        return None
    grown = rate * (gap + TIMESTAMP_S)
    if rest > EXPLAINED_TIMES * grown:
        return f"At {rate:,.0f} MiB/s the heap can have grown by {grown:,.0f} MiB since then"
    goal, end, usual = (
        facts.minute.next_goal_mib,
        facts.minute.heap_end_mib,
        facts.minute.usual_interval_s,
    )
    if goal is None or end is None or not usual or gap > QUIET_TIMES * usual:
        return None
    # Freed memory stays resident for a while.
    peak = facts.minute.heap_peak_mib or end
    if rest <= EXPLAINED_TIMES * (max(PAST_GOAL_TIMES * goal, peak) - end):
        return None
    return (
        f"The next cycle was due at a heap of {goal:,} MiB, and the heap had at most {peak:,} MiB "
        "in the last minute"
    )


def _about_growth(facts: Evidence) -> Iterator[str]:
    first, live = facts.minute.live_before_mib, facts.minute.live_mib
    if not first or not live:
        return
    had = facts.minute.live_had_mib or first
    if (
        live > GROWTH_TIMES * first
        and live - first > GROWTH_MIN_MIB
        and live > STILL_TIMES * had
    ):
        span_s = facts.minute.live_span_s or LAST_S
        within = "minute" if span_s > NEARLY * LAST_S else duration_text(span_s)
        yield f"The live heap grew from {first:,} to {live:,} MiB within the last {within}."


def _limit_advice(facts: Evidence, live: int, settings: Settings) -> Iterator[str]:
    limit, gomemlimit = facts.limit.limit_mib, settings.value("memory_limit_mib")
    if facts.death.killer == EVICTOR:
        yield REQUEST_MORE
    elif limit is None and facts.death.scope == "memcg":
        yield (
            "Set GOMEMLIMIT to 90 % of the limit of its cgroup, which `docker inspect`, `kubectl "
            "describe pod` or `systemctl show` names, so that GC runs before memory reaches it."
        )
    elif limit is None:
        yield "Set a memory limit for the service, and GOMEMLIMIT to 90 % of it."
    elif facts.is_before_limits:
        yield without_limits(limit)
    elif gomemlimit is None:
        yield (
            f"Set GOMEMLIMIT={int(MOST_OF_LIMIT * limit)}MiB, so that GC runs before memory "
            f"reaches the limit of {limit:,.0f} MiB; the live heap of {live:,} MiB fits."
        )
    elif gomemlimit > TIGHT_LIMIT * limit:
        yield (
            f"Set GOMEMLIMIT={int(MOST_OF_LIMIT * limit)}MiB: it is "
            f"{100 * gomemlimit / limit:.0f} % of the limit now, which leaves no room for "
            "memory that Go does not count."
        )
