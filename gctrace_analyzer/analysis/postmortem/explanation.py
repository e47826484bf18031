"""Explains a death from the sum in `heap_at_death`: what was heap, what was not, what would help.

Every sentence and every piece of advice follows from the bounds of the heap. If they are far apart,
the report asks for the one input that would settle the question.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.postmortem import remedies
from gctrace_analyzer.analysis.postmortem.circumstances import (
    about_limit,
    about_runtime,
    check_limits,
    restarts_of,
    used_and_limit,
)
from gctrace_analyzer.analysis.postmortem.death import WITH_CODE
from gctrace_analyzer.analysis.postmortem.dumps_at_death import (
    dumps_of,
    is_doubtful,
    reading_of_dumps,
)
from gctrace_analyzer.analysis.postmortem.facts import MOST_OF_LIMIT
from gctrace_analyzer.analysis.postmortem.group_memory import (
    SMALL_MIB,
    counted,
    either,
    find_rest,
    next_to_given,
    of_limit,
)
from gctrace_analyzer.analysis.postmortem.heap_at_death import MAX_OVERSHOOT, NOTABLE
from gctrace_analyzer.analysis.postmortem.proof import of_other_cause
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.analysis.trend import find_growth
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.evidence.message import ARENA_FULL, IMPOSSIBLE_SIZE, LOCKED_MEMORY
from gctrace_analyzer.units import MIB, between_text, duration_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

    from gctrace_analyzer.analysis.postmortem.facts import Evidence, LastMinute
    from gctrace_analyzer.analysis.postmortem.heap_at_death import HeapAtDeath
    from gctrace_analyzer.analysis.settings.known import Settings

NEARLY = 0.8
"""Share of the last minute. A shorter time is not called a minute."""

LAST_S = 60.0
"""Seconds before the death: long enough for a trend, short enough to be about the death."""


@frozen
class Explanation:
    """What the facts mean (`reading`), what to do, and whether Go could have prevented it.

    `preventable` is `yes`, `for a while` (if the live heap, which grew, had grown further),
    `partly`, `no` or `unknown`.
    """

    reading: tuple[str, ...]
    advice: tuple[str, ...]
    preventable: str


def explain_death(
    facts: Evidence, heap: HeapAtDeath, tables: Mapping[str, pl.DataFrame], settings: Settings
) -> Explanation:
    """Returns the explanation of a death.

    Args:
        facts: what is known about the death.
        heap: the bounds of the heap at the death.
        tables: the tables of the log.
        settings: the known settings.
    """
    death = facts.death
    if not death.proven:
        return _unproven(facts)
    reading = [*about_limit(facts, tables), *about_runtime(death)]
    reading += [of_group] if (of_group := counted(facts)) else []
    if (action := _whatever_the_heap(facts)) is not None:
        reading += [_AT_START] if death.is_at_start else []
        reading += [_BY_RUNC] if death.is_runc else []
        reading += [_OF_ADDRESSES] if death.is_virtual else []
        reading += [_of_files(facts)] if action == remedies.FIND_FILES else []
        is_unknown = death.is_below or death.is_virtual or death.is_runc
        is_unknown |= death.refusal == ARENA_FULL or of_other_cause(death) is not None
        return Explanation(tuple(reading), (action,), "unknown" if is_unknown else "no")
    if heap.live_mib is None:
        dumps = dumps_of(facts, tables)
        is_go = bool(dumps) and not is_doubtful(facts, tables["processes"])
        if is_go and len(dumps) == 1 and (held := dumps[0].of_go_mib):
            facts = replace(facts, memory=replace(facts.memory, of_go_mib=held))
        parts = (reading_of_dumps(facts, dumps, tables), next_to_given(facts, settings))
        # The last is in the verdict: why the cycles in a log do not explain the death.
        reading += chain(*(parts if tables["processes"].is_empty() else reversed(parts)))
        actions = remedies.without_cycles(facts, tables, settings, is_go=is_go)
        return Explanation(tuple(reading), tuple(actions), "unknown")
    if facts.match and (doubt := DOUBTS.get(facts.match.match_by[0])):
        reading.append(doubt)
    growth = tuple(_about_growth(facts.minute))
    if not (ceiling := heap.ceiling_mib):
        actions = remedies.without_size(facts)
        return Explanation((*reading, *growth), tuple(actions), "unknown")
    gomemlimit = settings.value("memory_limit_mib")
    reading += [*growth, *_about_goal(facts, ceiling), *_sum(facts, heap)]
    if heap.live_mib > MOST_OF_LIMIT * ceiling:
        reading.append(
            f"The live heap alone, {heap.live_mib:,.0f} MiB, takes "
            f"{100 * heap.live_mib / ceiling:.0f} % of {ceiling:,.0f} MiB."
        )
    if (spite := _in_spite_of(facts, heap, gomemlimit)) is not None:
        reading.append(spite)
    preventable = _preventable(facts, heap, gomemlimit, in_spite=spite is not None)
    actions = remedies.with_sum(
        facts, heap, gomemlimit, in_spite=spite is not None, preventable=preventable
    )
    return Explanation(tuple(reading), tuple(actions), preventable)


_IF_OWN = "What follows holds if the GC cycles in the input are its own: "
DOUBTS = {
    "only program": f"{_IF_OWN}no others fit.",
    "only log": f"{_IF_OWN}no others fit, but their file has another name.",
    "time": f"{_IF_OWN}they end shortly before.",
}
"""Sentences about cycles that no name connects with the death."""

_AT_START = (
    "It was killed while the container was being started, before any program in it ran: most "
    "likely the limit is too low to start one."
)
_BY_RUNC = (
    "This was runc, which starts a program in a container: its main one, or later a command or "
    "probe (`exec`). The program itself had not begun."
)
_OF_ADDRESSES = (
    "That limit is of virtual memory (address space), of which a Go program reserves more than it "
    "uses: GOMEMLIMIT does not keep it low."
)


_NOT_OOM = (
    "Any process may have sent SIGKILL. Its state has OOMKilled=false, which does not rule out an "
    "OOM kill: the flag need not show those by the host, and some releases of Docker leave it out."
)


_NOT_OOM_IN_POD = (
    "Any process may have sent SIGKILL. The reason is Error, not OOMKilled: the container runtime "
    "saw no OOM kill. After a failed liveness probe, the kubelet sends SIGTERM, and SIGKILL to "
    "what does not end in time."
)
KERNEL_LOG = (
    "Add the whole message of the kernel (`journalctl -k` or `dmesg` of that minute): its line "
    '"Killed process" names the victim and its memory.'
)
_MOST_LIKELY = "Memory most likely ran out: the kernel's line that names the victim is missing."
_OF_HOST = (
    'The kubelet names "/", the whole host: the host had probably no memory left. On Linux 5.0 or '
    "later, a kubelet before 1.21 also names it when a container reached its limit."
)
_NO_PROOF = "Nothing in the input proves that memory was the reason."
_ANYONE = "Any process may have sent SIGKILL."
_BY_PARENT = (
    "`signal: killed` is what Go's os/exec says of a child process. Its parent kills it when the "
    "context of the command ends (exec.CommandContext); any other process, or the OOM killer, may "
    "have sent SIGKILL, too."
)
_FIND_PARENT = (
    "Look whether the context of that command had a deadline or was canceled. If not: an OOM kill "
    "is in the log of the host's kernel."
)
_BY_CODE = "Exit code 137 most likely means SIGKILL, which any process may have sent."


def _unproven(facts: Evidence) -> Explanation:
    """Returns the explanation of an end by a signal, which anyone may have sent."""
    death, growth = facts.death, tuple(_about_growth(facts.minute))
    if death.stopped_by is not None:
        advice, why = remedies.of_stop(death.stopped_by)
        got = "most likely got" if death.cause.startswith(WITH_CODE) else "got"
        reading = f"It {got} {death.signal} after {death.stopped_by}{why}. {_NO_PROOF}"
    elif death.oom_killer_ran:
        is_by_kubelet = death.scope == "global" and death.invoker_comm is None
        advice = KERNEL_LOG
        reading = f"{_MOST_LIKELY} {_OF_HOST * is_by_kubelet}".rstrip()
    elif death.is_child:
        advice, reading = _FIND_PARENT, _BY_PARENT
    elif "Runtime exited" in (death.error or ""):
        advice, reading = remedies.COMPARE_SIZE, _ANYONE
        if death.used_bytes and not death.is_below_limit:
            used, limit = used_and_limit(death)
            reading = f"Memory probably ran out: another request used {used} of {limit}."
    elif death.is_error and death.exit_code is not None:
        advice, reading = remedies.FIND_EVENT, _NOT_OOM_IN_POD
    elif death.is_not_oom:
        advice, reading = remedies.FIND_SENDER, _NOT_OOM
    else:
        advice = remedies.FIND_SENDER
        reading = _ANYONE if death.exit_code is None else _BY_CODE
    lasts = facts.minute.keeps_growing
    causes = (find_growth(is_lasting=lasts),) if growth else ()
    if death.is_below_limit or (death.stopped_by and death.used_bytes):
        used, limit = used_and_limit(death)
        reading += f" It used {used} at most; its limit is {limit}."
    said = f"{reading}{restarts_of(death)}"
    return Explanation((said, *growth), (advice, *causes), "unknown")


def _whatever_the_heap(facts: Evidence) -> str | None:
    """Returns what to do about a death to which the heap did not contribute; None for others."""
    death = facts.death
    maps_files = death.is_of_files and (facts.memory.resident_mib or 0.0) > SMALL_MIB
    actions = (
        (death.refusal == IMPOSSIBLE_SIZE, remedies.FIND_SIZE),
        (death.is_beyond_memory, remedies.FIND_ALLOCATION),
        (death.refusal == LOCKED_MEMORY, remedies.UNLOCK),
        (
            death.refusal == ARENA_FULL,
            remedies.UPDATE_GO if death.may_have_garbage else remedies.FIND_ALLOCATION,
        ),
        (death.refused_at_start, check_limits(death)),
        (death.is_at_start, remedies.RAISE_TO_START),
        (death.is_below, remedies.FIND_VICTIM),
        (death.is_virtual, remedies.MORE_ADDRESSES),
        (death.is_runc and facts.is_small_part, find_rest(facts)),
        (death.is_runc, remedies.RAISE_TO_START),
        (maps_files and not facts.is_small_part, remedies.FIND_FILES),
    )
    if (other := of_other_cause(death)) is not None:
        return other[1]
    return next((action for is_so, action in actions if is_so), None)


def _of_files(facts: Evidence) -> str:
    death = facts.death
    shared, files = death.shmem_rss_bytes or 0, death.file_rss_bytes or 0
    is_shared = shared > (death.anon_rss_bytes or 0)
    what = "shared memory (tmpfs, /dev/shm)" if is_shared else "pages of files (mmap)"
    part_mib = (shared if is_shared else files) / MIB
    return (
        f"{part_mib:,.0f} of its {facts.memory.resident_mib or 0:,.0f} MiB of resident memory were "
        f"{what}, not Go heap: neither GOGC nor GOMEMLIMIT changes it."
    )


def _preventable(
    facts: Evidence, heap: HeapAtDeath, gomemlimit: float | None, *, in_spite: bool
) -> str:
    """Returns whether a memory limit for Go could have prevented the death.

    A limit keeps the heap close to the live heap: the remaining memory has to fit.
    """
    limit, ceiling = facts.limit.limit_mib, heap.ceiling_mib or 0.0
    # Under a limit that leaves GC no room, a growing heap reaches it at about the same time.
    is_too_low = limit is not None and facts.minute.keeps_growing and heap.is_mostly_live
    is_too_low &= heap.least_limit_mib > MOST_OF_LIMIT * ceiling
    if is_too_low or heap.needed_mib > MOST_OF_LIMIT * ceiling:
        return "no"
    held = limit is None and facts.minute.limited and not heap.is_mostly_live
    if in_spite or held or facts.is_small:
        return "unknown"
    has_room = limit is not None and heap.limit_with_room(limit) is not None
    is_known = heap.is_outside or heap.outside_most_mib <= NOTABLE * ceiling
    could = has_room and is_known and gomemlimit is None and not facts.is_before_limits
    if heap.is_outside and not could:
        return "unknown"
    return "for a while" if facts.minute.grew else "yes" if could else "partly"


def _sum(facts: Evidence, heap: HeapAtDeath) -> Iterator[str]:
    """Yields how much of the memory can have been heap, why, and the remainder."""
    if (parts := heap.parts) is None:
        return
    total, (least, most), (outside, outside_most) = parts
    if heap.neighbours_mib > NOTABLE * (facts.limit.limit_mib or 0.0) and not counted(facts):
        yield (
            f"The process had {total:,.0f} of these MiB: the other {heap.neighbours_mib:,.0f} "
            "belonged to other processes in the group, to files in memory (tmpfs, page cache) or "
            "to the kernel."
        )
    is_resident = facts.memory.resident_mib is not None
    of = f"the {total:,.0f} MiB {'resident' if is_resident else 'of the limit'}"
    if heap.live_mib is not None and heap.live_mib > total:
        yield (
            f"The live heap, {heap.live_mib:,.0f} MiB, is larger than {of}: parts of it were "
            "never written (a ballast), or are swapped out."
        )
        return
    if outside_most <= NOTABLE * total:
        yield _last_known(facts, least, f"which is {100 * least / total:.0f} % of {of}")
        return
    if heap.most_is == "total":
        yield (
            f"At least {least:,.0f} MiB of {of} was Go heap. The input does not show whether "
            f"the other {outside_most:,.0f} MiB were allocated since the last "
            f"{_last_is(facts.minute)} or are outside it."
        )
        return
    yield f"{_range(least, most)} of {of} can have been heap objects.{_bounds(facts, heap, least)}"
    if outside > NOTABLE * total:
        yield (
            f"At least {outside:,.0f} of {of} were other memory, unless a last allocation was that "
            "large: fragmentation or free spans of the Go heap, stacks, or memory outside Go."
        )


def _last_known(facts: Evidence, least: float, share: str) -> str:
    """Returns the last known size of the heap, and what its goal allowed."""
    minute = facts.minute
    end, live, goal = minute.heap_end_mib, minute.live_mib, minute.next_goal_mib
    due = "" if goal is None else f", and the heap goal allowed about {goal:,} MiB"
    if end is None or round(least) != end or facts.death.not_before_at:
        return f"At least {least:,.0f} MiB were Go heap before the kill, {share}{due}."
    before = "When last printed"
    if minute.gap_s is not None and minute.gap_s >= 0:
        before = f"At its last cycle, {duration_text(minute.gap_s)} before"
    return f"{before}, the Go heap was {end:,} MiB, {share}; {live:,} MiB of it were live{due}."


def _last_is(minute: LastMinute) -> str:
    return "cycle" if minute.dump_age_s is None else "dump"


def _range(least: float, most: float) -> str:
    ends = f"{least:,.0f}", f"{most:,.0f}"
    return f"{ends[0]} MiB" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]} MiB"


def _bounds(facts: Evidence, heap: HeapAtDeath, least: float) -> str:
    """Returns the size of the heap at the last cycle, and why it was not larger at the kill."""
    end, goal = facts.minute.heap_end_mib, facts.minute.next_goal_mib
    is_last = end is not None and round(least) == end and facts.death.not_before_at is None
    what = _last_is(facts.minute)
    at = "the last dump" if what == "dump" else "the end of the last cycle"
    last = f" At {at}, the heap was {end:,} MiB." if is_last else ""
    if heap.most_is == "goal":
        due = f"{goal:,} MiB, which a heap rarely exceeds by {100 * (MAX_OVERSHOOT - 1):.0f} %"
        return f"{last} The next cycle was due at about {due}."
    rate, since = size_text(heap.rate_mib_per_s or 0.0), duration_text(heap.since_s or 0.0)
    return f"{last} After the last {what}, it can have grown by {rate}/s for {since}."


def _about_goal(facts: Evidence, ceiling: float) -> Iterator[str]:
    goal = facts.minute.next_goal_mib
    if goal is not None and goal > ceiling:
        yield (
            f"The heap goal could not fit: the next cycle was due at about {goal:,} MiB, above "
            f"{ceiling:,.0f} MiB."
        )


def _in_spite_of(facts: Evidence, heap: HeapAtDeath, gomemlimit: float | None) -> str | None:
    """Returns why a kill came although GOMEMLIMIT left room below the limit; else None."""
    limit = facts.limit.limit_mib
    if limit is None:
        return None
    minute, room, at_most = facts.minute, gomemlimit, ""
    was = f"GOMEMLIMIT was {room or 0:,.0f} MiB"
    if room is None and minute.limited and facts.by_goals_mib is not None:
        ends = [f"{end:,.0f} MiB" for end in facts.by_goals_mib]
        room, at_most = facts.gomemlimit_most_mib, "at most "
        was = f"By the heap goals, GOMEMLIMIT was {between_text(*ends)}"
    elif room is None and minute.limited and minute.goal_mib is not None:
        room = float(minute.goal_mib)
        was = f"GOMEMLIMIT, whose value is unknown, set the heap goal to {room:,.0f} MiB"
    if room is None or room > DEFAULT.tight_limit_share * limit:
        return None
    share = f"{was}{of_limit(room, limit, at_most)}"
    if heap.go_heap_most_mib is not None and heap.go_most_mib < room:
        return f"{share}, and Go had less: the rest is memory that Go does not count."
    if heap.go_least_mib > room:
        return f"{share}, and Go had more: GOMEMLIMIT is a soft limit."
    return f"{share}. {either(f'more than the other {limit - room:,.0f} MiB', facts.death)}"


def _about_growth(minute: LastMinute) -> Iterator[str]:
    if minute.grew and (growth := minute.growth) is not None:
        yield f"{growth.text}.{_whether_it_ends(minute)}"
    elif minute.grew:
        span_s = minute.live_span_s or LAST_S
        within = "minute" if span_s > NEARLY * LAST_S else duration_text(span_s)
        sizes = f"{minute.live_before_mib:,} to {minute.live_mib:,} MiB"
        unknown = _whether_it_ends(minute)
        yield f"The live heap grew from {sizes} within the last {within}.{unknown}"


def _whether_it_ends(minute: LastMinute) -> str:
    return "" if minute.keeps_growing else " Whether it would have grown further is unknown."
