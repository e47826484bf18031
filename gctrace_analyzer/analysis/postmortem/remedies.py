"""What to do about a death, and which missing input to add."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.postmortem import group_memory
from gctrace_analyzer.analysis.postmortem.circumstances import KEEP_BELOW, check_limits
from gctrace_analyzer.analysis.postmortem.death import EVICTOR
from gctrace_analyzer.analysis.postmortem.dumps_at_death import is_known_not_go, log_of
from gctrace_analyzer.analysis.postmortem.facts import LEAST_LIMIT_MIB, MOST_OF_LIMIT, SetLimit
from gctrace_analyzer.analysis.postmortem.match import (
    is_of,
    is_previous,
    of_neighbour,
    shared_place,
)
from gctrace_analyzer.analysis.settings.known_programs import is_go as is_known_go
from gctrace_analyzer.analysis.settings.releases import may_limit
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.analysis.trend import find_growth
from gctrace_analyzer.ingest.evidence.message import TOOLCHAIN, UNUSABLE_ADDRESS
from gctrace_analyzer.units import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gctrace_analyzer.analysis.postmortem.death import Death
    from gctrace_analyzer.analysis.postmortem.facts import Evidence
    from gctrace_analyzer.analysis.postmortem.heap_at_death import HeapAtDeath
    from gctrace_analyzer.analysis.settings.known import Settings

UNLOCK = "Raise `ulimit -l` (LimitMEMLOCK= of systemd), or do not lock memory (mlockall)."
UPDATE_GO = "Build it with Go 1.11 or later, which has no such limit, or keep less in memory."
FIND_ALLOCATION = (
    "Find what allocates that, and check the length that it passes: of the whole traceback after "
    "the error, it is the goroutine that was running (`goroutine N [running]`)."
)
BUILD_FOR_64_BITS = "If the program is a 32-bit one (GOARCH=386 or arm), build it for 64 bits."
EARLIER_GC = (
    "GOMEMLIMIT (Go 1.19 and later) makes GC run earlier, which helps if the live heap fits."
)

_BUILD_LESS = (
    "If {} is part of the Go toolchain, build where there is more memory, or less at a time "
    "(`go build -p 1`)."
)
FIND_PRESSURE = (
    "Find out what needs memory in that group (`systemd-cgtop -m`, `memory.pressure` of the "
    "cgroup), and give it more, or a higher ManagedOOMMemoryPressureLimit. A smaller Go heap "
    "helps only if the heap is most of it."
)
_FIND_TRIGGER = (
    "Compare the node's memory pressure (/proc/pressure/memory) with the trigger of Talos "
    "(`triggerExpression` of OOMConfig)."
)
_FIND_REASON = "Read why systemd-oomd acted: `journalctl -u systemd-oomd`, `journalctl --user`."
FIND_SIZE = (
    "Find the call in the traceback that allocates, and check the length that it passes: it comes "
    "from data that is damaged, or was calculated with an overflow."
)
FIND_VICTIM = (
    "Add the kernel's log of that time (`journalctl -k`, `dmesg`), which names the victim, or "
    "memory.events.local and memory.max (cgroup v1: memory.oom_control and memory.limit_in_bytes) "
    "of the groups below it."
)
FIND_FILES = "Find out which files the program maps (`pmap -x`, /proc/PID/smaps)."
_FIND_OUTSIDE = (
    "Find out what uses the rest of the memory: MemStats shows fragmentation (HeapInuse less "
    "HeapAlloc), free spans (HeapIdle less HeapReleased) and stacks; `pmap -x` shows cgo and mmap."
)
FIND_PROBE = (
    "Find out why the check failed: too little CPU, a deadlock, or too short a timeout."
)
FIND_HANG = (
    "Find out why it hung: after SIGABRT, a Go program prints what each goroutine was waiting for "
    "to its standard error."
)
_ALLOW_TIME = "Find out what takes so long, or allow more time."
_FIND_DISK = (
    "Find out what it writes to the disk of its node, and limit that (ephemeral-storage)."
)
_FIND_WRITER = "Find out what it writes to that volume: with medium Memory, that is memory."
_END_IN_TIME = (
    "To let it stop cleanly, handle the signal it gets first, or allow a longer grace period."
)
FIND_SENDER = (
    "Add what its platform records of that minute; an OOM kill is also in the log of the host's "
    "kernel."
)
FIND_EVENT = (
    "Look for the reason in the pod's events of that time (`kubectl get events`: Unhealthy, "
    'Killing, Evicted), and for "Killed process" in the kernel\'s log of the node (`journalctl '
    "-k`)."
)
COMPARE_SIZE = (
    "Compare `Max Memory Used` in its REPORT line with the memory size of the function: if they "
    "are near each other, AWS Lambda killed it for memory, and it needs a larger size."
)
RAISE_TO_START = (
    "Raise the memory limit of the container, and check the unit that it is given in (in "
    "Kubernetes, `m` is a thousandth of a byte)."
)
_MOSTLY_LIVE = 0.8
"""Share of the memory. If as much is live, or half and it grows, what is outside hardly matters."""

MORE_ADDRESSES = (
    "Ask for more virtual memory (vmem, h_vmem), or limit resident memory instead (mem, h_rss)."
)
MORE_MEMORY = (
    "Give the program more memory, or keep less in memory (heap profile: `go tool pprof`): no GOGC "
    "or GOMEMLIMIT makes the live heap fit."
)
COMPARE_TOTAL = (
    "Next time, compare what Go counts (`/memory/classes/total:bytes` less "
    "`/memory/classes/heap/released:bytes`) with the resident memory. If it is below GOMEMLIMIT, "
    "find out what uses the rest (cgo, mmap, pages of files, other processes of the container), "
    "and lower GOMEMLIMIT by that much; if it is above, give the program more memory."
)
ADD_TIMES = "Save the log with times: they show which kill, if any, ended it."
_RAISE_UNKNOWN = "To buy time, raise its memory limit."
_GIVE_MORE = (
    "To buy time, raise its memory limit if it has one, and otherwise free memory on the host: the "
    "input does not show which ran out."
)


_AFTER_TERM = ": a program that does not end in time after SIGTERM gets it"
_OF_STOPS = (
    (("systemd-oomd",), _FIND_REASON, ""),
    (("watchdog",), FIND_HANG, ""),
    (("probe", "health"), FIND_PROBE, _AFTER_TERM),
    (("emptyDir",), _FIND_WRITER, ""),
    (("evicted",), _FIND_DISK, ""),
    (("longer than", "deadline"), _ALLOW_TIME, ""),
    (("",), _END_IN_TIME, _AFTER_TERM),
)


def of_stop(stopped_by: str) -> tuple[str, str]:
    """Returns the advice for a program that was stopped, and why it got SIGKILL if known."""
    is_so = (any(word in stopped_by for word in words) for words, _, _ in _OF_STOPS)
    return next(row[1:] for row, fits in zip(_OF_STOPS, is_so, strict=True) if fits)


def with_sum(
    facts: Evidence,
    heap: HeapAtDeath,
    gomemlimit: float | None,
    *,
    in_spite: bool,
    preventable: str,
) -> Iterator[str]:
    """Yields what to do if the heap at the death has bounds.

    Args:
        facts: what is known about the death.
        heap: the bounds.
        gomemlimit: GOMEMLIMIT in MiB, if known.
        in_spite: whether GOMEMLIMIT left room below the limit.
        preventable: whether a memory limit could have prevented the death.
    """
    grew, keeps_growing = facts.minute.grew, facts.minute.keeps_growing
    is_full = (heap.live_mib or 0.0) > _MOSTLY_LIVE * (heap.ceiling_mib or 0.0)
    keeps_most = is_full or (grew and heap.is_mostly_live)
    is_beside = heap.neighbours_mib > (heap.off_heap_mib or 0.0)
    find_outside = group_memory.FIND_NEIGHBOURS if is_beside else _FIND_OUTSIDE
    if preventable == "no":
        limit = facts.limit.limit_mib if facts.death.killer != EVICTOR else None
        growth = find_growth(is_lasting=keeps_growing) if grew else MORE_MEMORY
        yield growth if keeps_most else find_outside
        if limit and grew and keeps_most:
            yield heap.raising(facts, limit)
        elif grew or not keeps_most:
            yield (
                f"Or give the program more memory: {heap.live_mib or 0:,.0f} MiB are live heap, so "
                "no GOGC or GOMEMLIMIT frees enough."
            )
        return
    if in_spite and not heap.is_outside:
        had_more = heap.go_least_mib > (gomemlimit or facts.gomemlimit_most_mib)
        yield from (find_growth(is_lasting=keeps_growing),) if grew else ()
        if (
            had_more
            and grew
            and heap.least_limit_mib > MOST_OF_LIMIT * (heap.ceiling_mib or 0.0)
        ):
            yield heap.raising(facts, heap.ceiling_mib or 0.0)
        yield from () if had_more and grew else (MORE_MEMORY if had_more else COMPARE_TOTAL,)
        return
    steps = list(_limits(facts, heap, gomemlimit, in_spite=in_spite))
    helps = any(step.startswith(("Set GOMEMLIMIT", "To buy time")) for step in steps)
    if heap.is_outside and not keeps_most:
        steps.insert(len(steps) if helps else 0, find_outside)
    yield from steps
    if grew:
        is_limited = any("GOMEMLIMIT=" in step for step in steps)
        yield find_growth(is_lasting=keeps_growing, is_limited=is_limited)


def _limits(
    facts: Evidence, heap: HeapAtDeath, gomemlimit: float | None, *, in_spite: bool
) -> Iterator[str]:
    """Yields the memory limit to set."""
    limit = facts.limit.limit_mib
    now = "" if gomemlimit is None else f" (now {size_text(gomemlimit)})"
    if facts.death.killer == EVICTOR:
        yield group_memory.request_more(facts)
    elif limit is None and facts.minute.limited:
        yield from _above_limit(facts, heap)
    elif limit is None and facts.is_before_limits:
        yield (
            _UPGRADE.format("90 % of its limit")
            if facts.death.scope == "memcg"
            else group_memory.on_host(facts)
        )
    elif limit is None and facts.death.scope == "memcg":
        yield (
            f"Set GOMEMLIMIT{now} to 90 % of the memory limit of its cgroup"
            f"{' if that is lower' * bool(now)}, so that GC runs before memory reaches it."
        )
    elif facts.is_small:
        yield group_memory.on_host(facts)
    elif limit is None:
        yield f"Set a memory limit for the service, and GOMEMLIMIT{now} to 90 % of it."
    elif facts.is_before_limits and heap.least_limit_mib <= MOST_OF_LIMIT * limit:
        yield without_limits(limit)
    elif heap.is_outside and not facts.is_before_limits:
        yield from _beside_outside(heap, gomemlimit, limit, in_spite=in_spite)
    elif (not gomemlimit and facts.had_room) or heap.least_limit_mib > MOST_OF_LIMIT * limit:
        yield heap.raising(facts, limit)
    else:
        yield from _below(facts, heap, gomemlimit)


def _below(facts: Evidence, heap: HeapAtDeath, gomemlimit: float | None) -> Iterator[str]:
    """Yields the GOMEMLIMIT that leaves room below the limit, unless it is as low already."""
    limit, of_dumps = facts.limit.limit_mib or 0.0, facts.minute.dump_age_s is not None
    if gomemlimit is None or gomemlimit > DEFAULT.tight_limit_share * limit:
        why = (
            f", so that GC runs before memory reaches the limit of {limit:,.0f} MiB; the live heap "
            f"of {'at most ' * of_dumps}{heap.live_mib or 0:,.0f} MiB"
            f"{' at the last dump' * of_dumps} fits."
            if gomemlimit is None
            else f": it is {gomemlimit:,.0f} MiB now, which leaves no room for memory that Go does "
            f"not count below the limit of {limit:,.0f} MiB."
        )
        least = int(MOST_OF_LIMIT * limit)
        yield SetLimit(least, f"{why}{heap.if_little_room(least, limit)}")


def _above_limit(facts: Evidence, heap: HeapAtDeath) -> Iterator[str]:
    """Yields what to do if a memory limit was set and made GC run."""
    if not heap.is_mostly_live:
        yield (group_memory.on_host(facts) if facts.death.scope != "memcg" else _FIND_OUTSIDE)
    elif not facts.minute.grew:
        yield MORE_MEMORY


def _beside_outside(
    heap: HeapAtDeath, gomemlimit: float | None, limit: float, *, in_spite: bool
) -> Iterator[str]:
    """Yields a memory limit with room for memory outside the heap, or that there is none."""
    room = heap.limit_with_room(limit)
    if room is not None and (gomemlimit is None or room < gomemlimit):
        yield SetLimit(
            room,
            f": it leaves {limit - room:,.0f} of the {limit:,.0f} MiB for memory that it does not "
            f"count, which must not grow.{heap.if_little_room(room, limit)}",
        )
    elif room is None and not (in_spite or heap.is_mostly_outside):
        live, outside = heap.live_most_mib or 0.0, heap.outside_most_mib
        needed = heap.roomy_container_mib
        yield (
            f"To buy time, raise the limit of {limit:,.0f} MiB to about {needed:,} MiB: "
            f"{heap.roomy_limit_mib:,.0f} MiB leave room above the live heap of {live:,.0f} MiB, "
            f"up to {outside:,.0f} MiB were outside the heap, and "
            f"{100 * (1 - MOST_OF_LIMIT):.0f} % are to stay free."
        )


def without_size(facts: Evidence) -> Iterator[str]:
    """Yields what to do if neither a limit nor the size of the process is known."""
    if facts.death.by_runtime:
        yield from of_runtime(facts.death)
        return
    minute = facts.minute
    yield from (find_growth(is_lasting=minute.keeps_growing),) if minute.grew else ()
    yield from _buy_time(facts)
    yield from _add_limit(facts.death)


def _add_limit(death: Death) -> Iterator[str]:
    """Yields where to find the limit that was reached, or what to do about memory pressure."""
    if death.killer in ("systemd-oomd", "macOS"):
        yield from (FIND_PRESSURE,) if death.pressure_pct is not None else ()
        return
    of_pod = death.kind.startswith("Container OOM") and (death.is_restarted or death.reason)
    if death.is_job:
        yield "Add what the batch system shows (`scontrol show job`, `qstat -f`, `bjobs -l`)."
        return
    shown = {
        "`kubectl describe pod`": death.pod or death.pod_uid,
        "its platform (in Kubernetes: `kubectl describe pod`)": of_pod,
        "`systemctl show`": death.is_unit,
        "`cf app`": "(out of memory)" in (death.error or ""),  # Cloud Foundry
    }
    by = next((where for where, is_so in shown.items() if is_so), "its platform")
    kernel = ", or the whole message of the kernel" * (death.killer == "kernel")
    yield f"Add the memory limit as well, which {by} shows{kernel}."


_UPGRADE = (
    "Upgrade to Go 1.19 or later, which has GOMEMLIMIT, and set it to {}; "
    "until then, a lower GOGC keeps the heap goal lower."
)

_IF_IT_FITS = (
    "Both help if the live heap and the memory outside of Go fit; otherwise, raise the limit."
)


def without_limits(limit_mib: float) -> str:
    """Returns what to do about a container's limit if Go has no memory limit."""
    return _UPGRADE.format(f"{int(MOST_OF_LIMIT * limit_mib)}MiB (90 % of the limit)")


def of_runtime(death: Death) -> Iterator[str]:
    """Yields what to do about a death by the Go runtime, apart from the heap."""
    if death.may_be_of_32_bits:
        yield "Build the program for 64 bits." if death.is_of_32_bits else BUILD_FOR_64_BITS
    if death.is_of_one_allocation:
        yield FIND_ALLOCATION
    if not (death.fills_32_bits or death.refusal == UNUSABLE_ADDRESS):
        check = check_limits(death)
        helps = may_limit(death.go_version) and death.may_have_garbage
        yield f"{check} {EARLIER_GC}" if helps else check


_SETTINGS_OF_GO = ("memory_limit_mib", "gogc", "go_version")


def without_cycles(
    facts: Evidence, tables: Mapping[str, pl.DataFrame], settings: Settings, *, is_go: bool
) -> Iterator[str]:
    """Yields what to do at once, and what to record before the next kill.

    Args:
        facts: what is known about the death.
        tables: the tables of the log.
        settings: the known settings.
        is_go: whether the input has MemStats of the program.
    """
    limit, victim = facts.limit.limit_mib, facts.death.victim
    if victim in TOOLCHAIN:
        yield _BUILD_LESS.format(victim)
        return
    is_of_child = facts.death.is_inside and facts.death.exit_code is not None
    with_go = shared_place(facts.death, tables["processes"])
    if facts.death.pressure_pct is not None:
        yield FIND_PRESSURE
    if group_memory.has_no_heap(facts):
        yield group_memory.find_rest(facts)
        return
    if is_known_not_go(facts):
        if facts.death.pressure_pct is None:
            yield from group_memory.not_of_go(facts, settings, with_go)
        return
    traced = log_of(facts, tables["container_states"])
    names = (facts.death.comm, facts.death.name, facts.death.unit, facts.death.container)
    is_go |= facts.death.by_runtime or any(map(is_known_go, names))
    is_go |= traced is not None or facts.minute.last_gc_num is not None
    is_child = group_memory.may_be_child(facts.death)
    is_go |= not is_child and any(settings.value(name) is not None for name in _SETTINGS_OF_GO)
    is_around = not facts.death.subject.startswith("The program")
    program = "the program in it" if is_around else victim or "it"
    if_go = "" if is_go else f"If {program} is written in Go, "
    of_limit = ", or on its host if it has none" * (limit is None)
    yield from (
        (_FIND_CHILD.format(of_limit),) if is_of_child else _steps(facts, settings, if_go)
    )
    if facts.death.by_runtime:
        yield from of_runtime(facts.death)
    if not (facts.is_small_part or is_of_child):
        yield _what_to_add(facts, tables, traced, if_go)
    may_have_limit = facts.death.scope in (None, "memcg") and facts.death.pressure_pct is None
    if limit is None and may_have_limit and not facts.death.by_runtime:
        yield from _add_limit(facts.death)


_FIND_CHILD = (
    "Find out which process was killed (the kernel's log of that time names it), and leave room "
    "for it under the limit{}."
)


def _steps(facts: Evidence, settings: Settings, if_go: str) -> Iterator[str]:
    """Yields what to do at once; `if_go` starts the advice that is only for Go programs."""
    limit, given = facts.limit.limit_mib, settings.value("memory_limit_mib")
    if limit is not None and facts.is_before_limits:
        yield f"{if_go}{without_limits(limit)} {_IF_IT_FITS}".replace(", U", ", u")
    elif limit is not None and limit < LEAST_LIMIT_MIB:
        yield f"Raise the limit: no Go program fits into {size_text(limit)}."
    elif facts.is_small_part:
        yield group_memory.find_rest(facts)
    elif if_go and (shares := group_memory.shared_with(facts, settings)) is not None:
        yield shares
    elif group_memory.is_low(facts, settings):
        yield from _in_spite_of_limit(facts, settings)
    elif (
        limit is not None
        and (given is None or given > MOST_OF_LIMIT * limit)
        and (room := group_memory.gomemlimit(facts, settings)) is not None
    ):
        too_high = f", not {size_text(given)}" if given else ""
        fits = f"the live heap and the memory outside of Go fit{group_memory.if_new(settings)}."
        yield group_memory.set_to(room, f"{too_high}, if {fits}", if_go)
    else:
        yield from _buy_time(facts, settings, if_go)


def _in_spite_of_limit(facts: Evidence, settings: Settings) -> Iterator[str]:
    """Yields what to do if GOMEMLIMIT was low enough: it is never raised."""
    if not group_memory.is_own(facts, settings):
        yield group_memory.find_rest(facts)
        return
    live, given = facts.minute.live_most_mib, settings.value("memory_limit_mib")
    if live and given and live > given:
        yield from _buy_time(facts)
        return
    if facts.limit.limit_mib is not None:
        yield (
            f"To buy time, raise the limit of {size_text(facts.limit.limit_mib)} if the host has "
            "room for more, and leave GOMEMLIMIT as it is: the rest is for memory that Go does not "
            "count."
        )
    yield COMPARE_TOTAL


def _what_to_add(
    facts: Evidence, tables: Mapping[str, pl.DataFrame], traced: str | None, if_go: str
) -> str:
    shows = "shows the live heap and the heap goal."
    ends_early = facts.minute.last_gc_num is not None and (facts.minute.gap_s or 0) > 0
    if ends_early and facts.match is not None:
        is_all = traced is None or is_previous(facts.match, tables["processes"])
        rest = ", up to the kill" if is_all else f" (`{traced}`)"
        return f"Add the rest of its log{rest}: it ends too early to show the cause."
    if traced is not None:
        is_new = facts.new_run_s is not None
        which = "the log of the container that was killed" if is_new else "its log"
        return f"Add {which} to the input: `{traced}`. It {shows}"
    undated = tables["processes"].filter(pl.col("ended_at").is_null())
    rows = undated.iter_rows(named=True) if len(tables["cycles"]) else ()
    states = tables["container_states"].to_dicts()
    if facts.match is None and any(
        is_of(facts.death, row) is not False and not of_neighbour(facts.death, row, states)
        for row in rows
    ):
        return ADD_TIMES
    run = f"{if_go}run it" if if_go else "Run the program"
    return (
        f"{run} with GODEBUG=gctrace=1, keep its standard error, and add it to the input: it "
        f"{shows}"
    )


def _buy_time(
    facts: Evidence, settings: Settings | None = None, if_go: str = ""
) -> Iterator[str]:
    """Yields how to delay the next kill while its cause is unknown, and on what condition."""
    death, limit = facts.death, facts.limit.limit_mib
    is_other = facts.memory.largest or facts.is_small
    own = not (death.is_inside or facts.is_before_limits or is_other)
    if death.killer == EVICTOR:
        yield group_memory.request_more(facts)
    elif limit is not None:
        of_go = ", and GOMEMLIMIT to 90 % of the new one" * (
            not (if_go or death.may_be_swapped)
        )
        yield (
            f"To buy time, raise the limit of {size_text(limit)}{of_go}, if the host has room for "
            "more."
        )
    elif death.killer == "systemd-oomd" and death.scope is None and death.pressure_pct is None:
        yield _FIND_REASON
    elif death.killer == "Talos":
        yield _FIND_TRIGGER
    elif death.killer == "macOS" and death.scope == "memcg":
        yield KEEP_BELOW
    elif settings and own and (below := group_memory.below_size(facts, settings, if_go)):
        yield below
    elif death.scope == "global":
        yield group_memory.on_host(facts)
    elif not death.by_runtime and death.pressure_pct is None:
        yield _GIVE_MORE if death.scope is None or death.may_be_of_host else _RAISE_UNKNOWN
