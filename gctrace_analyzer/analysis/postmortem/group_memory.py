"""The memory of the control group that reached its limit, as the kernel counted it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.postmortem.death import EVICTOR
from gctrace_analyzer.analysis.postmortem.facts import (
    LEAST_MIB,
    MOST_OF_ALL,
    MOST_OF_LIMIT,
    SetLimit,
)
from gctrace_analyzer.analysis.postmortem.heap_at_death import NOTABLE
from gctrace_analyzer.analysis.settings.known_programs import is_not_go
from gctrace_analyzer.analysis.settings.program_names import agree
from gctrace_analyzer.ingest.evidence.message import SLOWED
from gctrace_analyzer.units import MIB, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from gctrace_analyzer.analysis.postmortem.death import Death
    from gctrace_analyzer.analysis.postmortem.facts import Evidence
    from gctrace_analyzer.analysis.settings.known import Settings

_NO_HEAP_MIB = 1.0
"""MiB of anonymous memory. The runtime of a Go program alone needs more."""

_IN_MEMORY = "files in memory (tmpfs, /dev/shm, an emptyDir with medium Memory)"
_WRITTEN = "page cache"
_OF_KERNEL = "memory of the kernel (page tables, slab, sockets)"
_OTHERS = "anonymous memory of other processes in it"
_UNKNOWN = (
    f"{_IN_MEMORY}, files that were just written (page cache) or the kernel. `memory.stat` of the "
    "group has anon, shmem, file and kernel (cgroup v1: rss, shmem and cache); GOMEMLIMIT changes "
    "only the first."
)
FIND_NEIGHBOURS = (
    "Find out what else uses memory under this limit: other processes (`systemd-cgls`, `ps` in the "
    "container), and files in memory (tmpfs, /dev/shm)."
)
FIND_LARGEST = (
    "Find out which program has the most memory, and limit it, or give the host more."
)
# By the score of the kernel, in which only a negative oom_score_adj makes up for memory.
_NOT_IN_PROGRAMS = (
    "Find the memory outside of large programs: the kernel found none with more than the {} of {}, "
    "unless its oom_score_adj is negative. Look at tmpfs (`df -t tmpfs`), slab (`slabtop`), huge "
    "pages, and many small programs together."
)
_LARGEST_KILLED = (
    "Limit the memory of {1}, or give the host more: by the kernel's score {1} had the most memory "
    "({0}), unless another program's oom_score_adj is negative."
)
_NONE_LARGER = (
    "Limit the memory of {}, or give the host more: no other program in the list had more."
)
_MOST_OF_HOST = (
    "Limit the memory of {}, or give the host more: it had {:.0%} of the host's memory."
)
_FIND_UNLISTED = (
    "Find out what has most of the {}: the programs listed had less than half. Mem-Info in the "
    "message of the kernel counts slab_unreclaimable (`slabtop`), shmem and huge pages."
)
_FIND_PODS = (
    "Find out which pods of the node use the most memory (`kubectl top pods -A --sort-by=memory`), "
    "and give them requests and limits: {} had only {}, by its working set. If `free` shows much "
    "more available on the node, look for page cache and tmpfs in memory.stat of its root group."
)
_ACTIONS = {
    _IN_MEMORY: "Find out which program writes the {} of " + _IN_MEMORY + ", and limit them "
    "(sizeLimit of the volume, `--tmpfs …:size=`) or keep them on disk: GOMEMLIMIT does not change "
    "them.",
    _WRITTEN: "Find out which program writes or maps the files that {} of page cache belong to: "
    "GOMEMLIMIT does not change it, and the kernel frees it only once it is written to disk.",
    _OF_KERNEL: "Read in the message of the kernel what its own {} are (slab, pagetables, sock): "
    "GOMEMLIMIT does not change them.",
    _OTHERS: "Find out which other processes of the group have {}: sidecars, children and "
    "commands run in it count against the limit as well, and GOMEMLIMIT does not change them.",
}
"""What to do about the largest part of a group's memory outside its victim."""


def of_others(facts: Evidence) -> dict[str, float]:
    """Returns the notable parts (MiB) of the group's memory outside its victim."""
    death = facts.death
    mapped, own = death.shmem_rss_bytes or 0, death.anon_rss_bytes
    # Older kernels do not print what part of the cache is shared memory.
    shared = max(death.group_shmem_bytes or 0, mapped)
    whole = death.usage_bytes or death.limit_bytes or death.group_anon_bytes or 0
    listed = facts.memory.others_mib
    is_listed = listed is None or listed * MIB > NOTABLE * whole
    sizes = {
        _OTHERS: (death.group_anon_bytes or 0) - own if is_listed and own is not None else 0,
        _IN_MEMORY: shared - mapped,
        _WRITTEN: (death.group_file_bytes or 0) - shared,
        _OF_KERNEL: death.group_kernel_bytes or 0,
    }
    return {what: size / MIB for what, size in sizes.items() if size > NOTABLE * whole}


def counted(facts: Evidence) -> str | None:
    """Returns what the group's memory was, if much of it was outside its victim."""
    anonymous = facts.death.group_anon_bytes
    if anonymous is None or not (parts := of_others(facts)):
        return None
    other = parts.pop(_OTHERS, None)
    others = "" if is_not_go(facts.death.comm) else ", which includes all memory of Go"
    if other is not None:
        others = f", {size_text(other)} of it in other processes"
    listed = "".join(f"; {size_text(size)} were {what}" for what, size in parts.items())
    return (
        f"The kernel counted {size_text(anonymous / MIB)} of anonymous memory in its group"
        f"{others}{listed}."
    )


def has_no_heap(facts: Evidence) -> bool:
    """Returns whether the killed process had less memory than any Go heap needs."""
    anonymous, death = facts.death.anon_rss_bytes, facts.death
    is_sized = anonymous is not None and death.killer == "kernel" and not death.by_runtime
    return is_sized and (anonymous or 0) < _NO_HEAP_MIB * MIB and not facts.memory.swapped_mib


def find_rest(facts: Evidence) -> str:
    """Returns where the memory of the group or host outside the victim may be."""
    limit, own = facts.limit.limit_mib, facts.own_mib
    largest = facts.memory.largest
    if not limit:
        if facts.death.killer == EVICTOR:
            return _FIND_PODS.format(facts.death.victim, size_text(own))
        if_far = f"If its limit is well above {size_text(own)}, f{FIND_NEIGHBOURS[1:]}"
        return if_far if facts.death.scope == "memcg" else on_host(facts)
    if largest is not None and largest[1] > MOST_OF_ALL * (limit - own):
        return (
            f"Limit the memory of {largest[0]} ({size_text(largest[1])}), or raise the limit of "
            f"{size_text(limit)}: no GC setting of {facts.death.victim} makes up for it."
        )
    if facts.death.group_anon_bytes is not None and (parts := of_others(facts)):
        most = max(parts, key=lambda what: parts[what])
        return _ACTIONS[most].format(size_text(parts[most]))
    # The kernel lists every process of the group.
    others = "" if facts.memory.others_mib == 0 else "other processes of the group, "
    rest = f"the other {limit - own:,.0f} of the {limit:,.0f} MiB"
    return f"Find out what has {rest}: {others}{_UNKNOWN}"


def request_more(facts: Evidence) -> str:
    """Returns how to keep a pod from being evicted first."""
    limit = (
        ""
        if facts.is_before_limits
        else ", and GOMEMLIMIT of a Go program to 90 % of the request"
    )
    return (
        f"Set the memory request of the container to the most that it needs{limit}: while it uses "
        "less, pods that use more than their request are evicted first."
    )


def on_host(facts: Evidence) -> str:
    """Returns what to do about what holds most of a host's memory."""
    host_mib, others = (facts.death.host_bytes or 0) / MIB, facts.memory.others_mib
    listed = (others or 0.0) + (facts.memory.resident_mib or 0.0)
    if others is not None and listed < MOST_OF_ALL * host_mib:
        return _FIND_UNLISTED.format(size_text(host_mib))
    name, size_mib = facts.memory.largest or ("", 0.0)
    if not name or size_mib < MOST_OF_ALL * LEAST_MIB["global"]:
        if others is not None:
            return _NONE_LARGER.format(facts.death.victim)
        if host_mib and (of_host := facts.memory.host_share or 0.0) >= MOST_OF_ALL:
            return _MOST_OF_HOST.format(facts.death.victim, of_host).replace("%", " %")
        adjusted = facts.death.oom_score_adj
        is_small = facts.is_small or 0 < facts.own_mib < MOST_OF_ALL * LEAST_MIB["global"]
        if adjusted is None or adjusted > 0 or not (is_small or facts.own_mib):
            return FIND_LARGEST
        action = _NOT_IN_PROGRAMS if is_small else _LARGEST_KILLED
        return action.format(size_text(facts.own_mib), facts.death.victim)
    return f"To buy time, move {name} ({size_text(size_mib)}) to another host, or limit its memory."


def may_be_child(death: Death) -> bool:
    """Returns whether another program was killed than the one a unit is named after.

    Containers often have other names than their programs.
    """
    unit = death.unit or ""
    is_other = unit.endswith(".service") and agree([death.comm], [unit]) is False
    return is_not_go(death.comm) or is_other


def next_to_given(facts: Evidence, settings: Settings) -> Iterator[str]:
    """Yields what a kill means, given the program's GOMEMLIMIT and GOGC.

    Args:
        facts: what is known about the death.
        settings: the known settings of the program, or of the unit or container it was in.
    """
    given, limit = settings.value("memory_limit_mib"), facts.limit.limit_mib
    had, victim = facts.memory.resident_mib, facts.death.victim
    if given is None:
        if settings.value("gogc") == "off" and not may_be_child(facts.death):
            yield (
                "It ran with GOGC=off, and the input has no GOMEMLIMIT: without one, GC never runs."
            )
        return
    if settings.value("gogc") == "off" and not (
        may_be_child(facts.death) or is_low(facts, settings)
    ):
        yield f"It ran with GOGC=off: GC runs only near GOMEMLIMIT, {size_text(given)}."
    if may_be_child(facts.death):
        if _is_too_much(facts, settings):
            left = size_text(max((limit or 0.0) - given, 0.0))
            yield (
                f"GOMEMLIMIT of the Go program, {given:,.0f} MiB, leaves {left} of the limit to "
                f"everything else, and {victim} alone had {size_text(had or 0.0)}."
            )
    elif is_low(facts, settings):
        share = of_limit(given, limit) if limit else ""
        was = f"GOMEMLIMIT was {given:,.0f} MiB{share}"
        if had is None:
            other = f"more than the other {limit - given:,.0f} MiB"
            yield f"{was}. {either(other, facts.death)}"
        elif is_own(facts, settings):
            beyond = f"at least {had - given:,.0f} MiB"
            yield f"{was}, and the program had {had:,.0f} MiB. {either(beyond, facts.death)}"


def of_limit(size_mib: float, limit_mib: float, at_most: str = "") -> str:
    """Returns a share of the limit that was reached, as the end of a clause."""
    share = f"{at_most}{100 * size_mib / limit_mib:.0f} %"
    return f", {share} of the limit of {size_text(limit_mib)}"


def either(took: str, death: Death) -> str:
    """Returns why a program with a GOMEMLIMIT below its limit may have been killed.

    Args:
        took: what used the memory that Go does not count, if that is the reason.
        death: the death.
    """
    begin = "If the kill was at its own limit, either" if death.may_be_of_host else "Either"
    return (
        f"{begin} memory that Go does not count took {took}, or the heap grew past GOMEMLIMIT, "
        "which is a soft limit."
    )


def is_low(facts: Evidence, settings: Settings) -> bool:
    """Returns whether GOMEMLIMIT was well below the limit, or below the program's memory.

    A GOMEMLIMIT too close to the limit explains the kill.
    """
    given, limit = settings.value("memory_limit_mib"), facts.limit.limit_mib
    if given is None:
        return False
    if limit is None:
        return bool(given < (facts.memory.resident_mib or 0.0))
    return bool(given <= MOST_OF_LIMIT * limit)


def is_own(facts: Evidence, settings: Settings) -> bool:
    """Returns whether a program may have exceeded its GOMEMLIMIT."""
    had = facts.memory.resident_mib
    return had is None or had > (settings.value("memory_limit_mib") or 0.0)


def _is_too_much(facts: Evidence, settings: Settings) -> bool:
    """Returns whether GOMEMLIMIT and the memory of a child together exceed their limit."""
    given, limit = settings.value("memory_limit_mib"), facts.limit.limit_mib
    had = facts.memory.resident_mib or 0.0
    return given is not None and limit is not None and given + had > limit


def shared_with(facts: Evidence, settings: Settings) -> str | None:
    """Returns how to leave room for a child of a Go program; None if GOMEMLIMIT leaves it."""
    if not _is_too_much(facts, settings):
        return None
    victim, limit = facts.death.victim, facts.limit.limit_mib or 0.0
    had = facts.memory.resident_mib or 0.0
    given, room = settings.value("memory_limit_mib"), int(MOST_OF_LIMIT * limit - had)
    place = "unit" if (facts.death.unit or "").endswith(".service") else "container"
    own = (
        f"run fewer {victim} processes at a time, run {victim} in a {place} of its own, or raise "
        f"the limit of {size_text(limit)}"
    )
    if room < NOTABLE * limit:
        return f"{own[:1].upper()}{own[1:]}."
    return SetLimit(
        room,
        f", not {given:,.0f}, if the live heap fits: this leaves room for the {size_text(had)} of "
        f"{victim}. Otherwise, {own}.",
    )


def not_of_go(facts: Evidence, settings: Settings, with_go: str | None) -> Iterator[str]:
    """Yields what to do about a program other than Go; a Go program also runs in `with_go`."""
    victim = facts.death.victim
    if (shares := shared_with(facts, settings)) is not None:
        yield shares
    elif with_go is not None:
        yield (
            f"Find out which work of the Go program needs {victim}, and run fewer {victim} "
            f"processes at a time, or give the {with_go} more memory."
        )
    elif facts.is_small_part:
        yield find_rest(facts)
    elif facts.death.scope == "global" and (facts.memory.host_share or 0.0) < MOST_OF_ALL:
        # Nothing shows that it had most of the memory.
        yield on_host(facts)
    else:
        yield f"Limit the memory of {victim} by its own settings, or give it more memory."


SMALL_MIB = 64.0
"""MiB. A smaller process is mostly program code, and seldom filled a limit."""


def gomemlimit(facts: Evidence, settings: Settings) -> tuple[int | None, str] | None:
    """Returns the GOMEMLIMIT (MiB) that would have helped, and the text of it; None if none would.

    It is below the limit minus all memory known not to be Go's, and below the most that Go had. The
    text says what it is a share of; without a number, a part of that is unknown.
    """
    death, memory, limit = facts.death, facts.memory, facts.limit.limit_mib
    swapped, outside = memory.swapped_mib or 0.0, float(settings.value("off_heap_mib") or 0.0)
    own = facts.had_mib - outside
    of_others = f" less {size_text(outside)} outside Go" if outside else ""
    had_is = f"what it had{', with swap' * bool(swapped)}"
    if not outside and MOST_OF_ALL * own <= (memory.of_go_mib or 0.0) < own:
        # The rest may not be Go's.
        own, had_is = memory.of_go_mib or 0.0, "what Go held at its last dump"
    # A limit above what it had at another kill would not have acted there.
    least = (facts.least_had_mib or math.inf) - outside
    others = not_of_victim(facts)
    left = MOST_OF_LIMIT * (limit or 0.0) - sum(others.values())
    if limit is None or 0 < own <= left:
        if least <= own:
            own, had_is = least, "the least that it had at a kill"
        if own <= SMALL_MIB or (death.may_be_swapped and not swapped):
            return None
        room = int(MOST_OF_LIMIT * own)
        return room, f" (90 % of {had_is}{of_others})"
    most = f"{100 * MOST_OF_LIMIT:.0f} % of the limit"
    if not others and death.is_shared_limit:
        return None, f" to {most} minus what other processes under it need"
    if death.may_be_swapped or (left <= SMALL_MIB and others):
        return None
    less = " and ".join(f"the {size_text(size)} of {what}" for what, size in others.items())
    return int(left), f" ({most}{' less ' * bool(less)}{less})"


def set_to(room: tuple[int | None, str], words: str, if_go: str) -> str:
    """Returns the step that sets what `gomemlimit` returns, on a condition if there is one."""
    mib, of = room
    if mib is not None and not if_go:
        return SetLimit(mib, f"{of}{words}")
    own = "" if mib is None else f"={mib}MiB"
    return f"{if_go}{'set' if if_go else 'Set'} GOMEMLIMIT{own}{of}{words}"


def not_of_victim(facts: Evidence) -> dict[str, float]:
    """Returns the notable parts (MiB) under a limit that are not the victim's heap."""
    death, limit = facts.death, facts.limit.limit_mib or 0.0
    own, mapped = death.anon_rss_bytes or 0, death.shmem_rss_bytes or 0
    files, of_kernel = (death.group_shmem_bytes or 0) - mapped, death.group_kernel_bytes or 0
    others = [(facts.memory.others_mib or 0.0) * MIB]
    # The list counts files in memory in each process that has them mapped.
    if death.group_anon_bytes is not None:
        cached = 0 if death.group_shmem_bytes is not None else death.group_file_bytes or 0
        others.append(death.group_anon_bytes - own + cached)
    if death.usage_bytes is not None:
        others.append(death.usage_bytes - own - files - of_kernel)
    sizes = {
        "other processes under it": max(min(others), 0.0) / MIB,
        "files in memory": files / MIB,
        "the kernel": of_kernel / MIB,
    }
    if sum(sizes.values()) <= NOTABLE * limit:
        return {}
    return {what: size for what, size in sizes.items() if size > 0}


_READ_STAT = (
    "Read `memory.stat` first: page cache (`file`, in cgroup v1 `cache`) counts, and Go has no "
    "setting for it. "
)


LOWER_LIMIT = "Set GOMEMLIMIT={}MiB, 90 % of {}, if the live heap is smaller."


def near_limit(row: Mapping[str, Any], of: str, given_mib: float | None) -> str:
    """Returns what to do about a container near its limit that was not killed.

    Args:
        row: a row of `container_states`.
        of: the words for the container.
        given_mib: GOMEMLIMIT, if known. It is never raised.
    """
    least_mib = int(MOST_OF_LIMIT * row["memory_limit_bytes"] / MIB)
    limit = "MemoryHigh" if row["event"] == SLOWED else "the limit"
    if (given_mib or 0.0) > least_mib:
        return LOWER_LIMIT.format(least_mib, limit)
    anonymous = row["anon_rss_bytes"]
    if anonymous is not None and anonymous < MOST_OF_ALL * row["memory_limit_bytes"]:
        return (
            f"Only {size_text(anonymous / MIB)} of it are anonymous memory, to which all of Go's "
            "belongs, so GOMEMLIMIT changes little: find out which files it reads, writes or keeps "
            "in memory (tmpfs)."
        )
    first = _READ_STAT if row["failcnt"] and anonymous is None else ""
    if given_mib:
        beyond = (row["memory_now_bytes"] or row["memory_used_bytes"] or 0) / MIB - given_mib
        why = (
            f"at least {size_text(beyond)} are memory that Go does not count, page cache included, "
            "or its live heap does not fit: "
        )
        return (
            f"{first}GOMEMLIMIT is {size_text(given_mib)} already. If the program in {of} is "
            f"written in Go, {why * (beyond > 0)}raise {limit}, or lower GOMEMLIMIT if the live "
            "heap is smaller."
        )
    return (
        f"{first}If the program in {of} is written in Go, set GOMEMLIMIT={least_mib}MiB (90 % of "
        f"{limit}), if its live heap and the memory outside Go fit{_IF_NEW}. Otherwise, raise "
        f"{limit}."
    )


_IF_NEW = " and the program was built with Go 1.19 or later"


def if_new(settings: Settings) -> str:
    """Returns that GOMEMLIMIT needs Go 1.19, as the end of a condition; empty if it is known."""
    return "" if settings.value("go_version") else _IF_NEW


def below_size(facts: Evidence, settings: Settings, if_go: str) -> str | None:
    """Returns a GOMEMLIMIT below the size of a program whose Go memory may be unknown."""
    room = gomemlimit(facts, settings)
    if room is None:
        return None
    what = {"global": "its host more memory"}.get(facts.death.scope or "", "it more memory")
    what = what if facts.death.scope in (None, "global", "memcg") else "it more memory nodes"
    fits = f"if its live heap is smaller{if_new(settings)}. Otherwise, give {what}."
    return set_to(room, f", {fits}", if_go or "To buy time, ")
