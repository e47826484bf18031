"""What the records of a kill show: the killer, the limit that was reached, the memory used."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.postmortem import proof
from gctrace_analyzer.analysis.postmortem.death import ADDRESSES, EVICTOR, RESERVED
from gctrace_analyzer.analysis.postmortem.heap_at_death import NOTABLE
from gctrace_analyzer.analysis.postmortem.match import listed_tasks
from gctrace_analyzer.ingest.evidence.cgroups import short_name
from gctrace_analyzer.ingest.evidence.message import (
    ARENA_FULL,
    ASKED,
    ENDED,
    IMPOSSIBLE_SIZE,
    LOCKED_MEMORY,
    NOT_ENDED,
    UNUSABLE_ADDRESS,
)
from gctrace_analyzer.ingest.evidence.wordings import SUPERVISORS, THRESHOLD_KILLERS
from gctrace_analyzer.units import MIB, duration_text, size_text, times_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gctrace_analyzer.analysis.postmortem.death import Death
    from gctrace_analyzer.analysis.postmortem.facts import Evidence


def about_limit(facts: Evidence, tables: Mapping[str, pl.DataFrame]) -> Iterator[str]:
    """Yields what was killed, by whom, and which limit was reached."""
    death = facts.death
    yield from _inside(death)
    if (by_killer := _by_killer(facts)) is not None:
        yield by_killer
    elif death.is_above:
        own = "It has no memory limit"
        if death.limit_bytes:
            used, limit = used_and_limit(death)
            own = f"It used {used} at most and so never reached its limit, {limit}"
        yield (
            f"{own}: its host ran out of memory, or a group above it reached its limit."
            f"{_swap_and_restarts(facts)}"
        )
    elif death.scope == "global":
        yield f"{proof.on_host(death)}{_swap_and_restarts(facts)}"
    elif death.scope in ("cpuset", "mempolicy"):
        yield f"{proof.on_nodes(death)}{_swap_and_restarts(facts)}"
    elif death.scope == "memcg" and facts.limit.limit_mib is None and death.killer != "macOS":
        own = "its job" if death.is_job else ""
        own = "its cgroup or of one above it" if death.killer == "kernel" else own
        group = short_name(death.oom_memcg or "") or own
        which = f"the memory limit of {group}" if group else "its memory limit"
        hits = f" {death.failcnt:,} times" if (death.failcnt or 0) > 1 else ""
        used = _with_used(death.used_bytes)
        used += ", which it shares with others" * death.is_shared_limit
        yield f"It reached {which}{hits}{used}{_or_host(death)}.{_swap_and_restarts(facts)}"
    elif facts.limit.limit_mib is not None and facts.limit.limit_is:
        yield _at_limit(facts, facts.limit.limit_mib)
    else:
        most = death.used_bytes
        used = "" if most is None else f"It used {in_tenths(most / MIB)} at most."
        if said := f"{used}{restarts_of(death)}".strip():
            yield said
    if death.killed_with or death.oom_group:
        others = f": {', '.join(dict.fromkeys(death.killed_with))}" * bool(death.killed_with)
        yield f"With it, the whole group was killed (memory.oom.group){others}."
    yield from holders(
        listed_tasks(tables["oom_tasks"], death.source, death.line_no), death.pid
    )


def in_tenths(size_mib: float) -> str:
    """Returns a size, in GiB if it is a number of tenths of them, as systemd prints sizes."""
    tenths = size_mib * 10 / 1024
    is_cut = tenths >= 10 and abs(tenths - round(tenths)) < MIB**-1
    return f"{tenths / 10:.1f} GiB" if is_cut else size_text(size_mib)


def _inside(death: Death) -> Iterator[str]:
    """Yields what is known about the end of a group in which a process was killed."""
    if death.is_inside and death.exit_code is not None:
        what = "unit" if death.is_unit else "container"
        of_go = _OF_GO_CODE * (death.exit_code == GO_CODE)
        yield (
            f"The {what} ended with exit code {death.exit_code}, so its main process was not "
            f"killed. The victim was a child of it, or a command run in the {what}.{of_go}"
        )
    elif death.is_below:
        yield (
            "Its memory.events counts kills in all groups below it, so neither the victim nor the "
            "limit that was reached is known."
        )
    elif death.is_inside and not death.is_job:
        several = (death.kills or 0) > 1
        killed = f"{death.kills:,} processes in it were" if several else "a process in it was"
        yield (
            f"The input shows that {killed} killed, not that it ended by this: it may have gone on "
            "running."
        )


def used_and_limit(death: Death) -> tuple[str, str]:
    """Returns the most memory used, and the limit, as texts."""
    return size_text((death.used_bytes or 0) / MIB), size_text((death.limit_bytes or 0) / MIB)


GO_CODE = 2
"""The exit code of a Go program after a panic or a fatal error (runtime/panic.go)."""

_OF_GO_CODE = " In Go, that is the code of a panic, a fatal error or a wrong flag."


def _and_swap(death: Death) -> str:
    """Returns the swap that a program may have had as well, as a part of a sentence."""
    used, limit = death.swap_usage_bytes, death.swap_limit_bytes
    if not death.may_be_swapped:
        return ""
    if used is not None:
        return f" and {size_text(used / MIB)} of swap"
    if limit == -1:
        return ", and as much swap as its host has"
    return f", and up to {size_text((limit or 0) / MIB)} of swap if its host has any"


def _or_host(death: Death) -> str:
    """Returns which other cause a container's record leaves open, as a part of a sentence."""
    return " (or its host was short of memory)" if death.may_be_of_host else ""


_TIME_LOST = "Pressure is time lost, not a size"


KEEP_BELOW = (
    "Usually nobody can raise that limit: keep the heap below it with `debug.SetMemoryLimit` in "
    "the program, and a lower GOGC."
)
"""What to do about a Go program that jetsam ended."""


def _by_killer(facts: Evidence) -> str | None:
    """Returns why a killer other than the kernel acted; None if there was none."""
    death = facts.death
    if death.killer == EVICTOR:
        return _eviction(facts)
    if death.pressure_pct is not None:
        return _pressure(death)
    if death.killer == "Talos":
        return f"Its trigger for memory pressure was met. {_TIME_LOST}."
    if death.killer in THRESHOLD_KILLERS:
        own = None if death.may_be_swapped else facts.memory.host_share
        return _little_available(death, own)
    if death.reason == "memory_used":
        return _nearly_full(death)
    if death.killer in (*SUPERVISORS, "macOS") and death.usage_bytes is not None:
        limit, used = death.limit_bytes, size_text(death.usage_bytes / MIB)
        over = f", at or above its limit there, {size_text(limit / MIB)}" if limit else ""
        is_low = death.killer == "macOS" and death.scope == "global"
        low = " ran low on memory and" if is_low else ""
        return f"{death.killer}{low} ended it: it used {used}{over}."
    return None


def _at_limit(facts: Evidence, limit_mib: float) -> str:
    """Returns how close to its limit the program was."""
    death, resident = facts.death, facts.memory.resident_mib
    if death.not_before_at is None or resident is None:
        used = _with_used(death.used_bytes)
        hits = f" The limit was hit {times_text(death.failcnt)}." if death.failcnt else ""
        if (death.kills or 0) > 1:
            hits += f" {death.kills:,} processes in it were killed."
        own = (
            death.victim and facts.limit.limit_is == f"the limit of {short_name(death.victim)}"
        )
        limit_is = "its limit" if own else facts.limit.limit_is
        shared = ", which it shares with others" * death.is_shared_limit
        size = f"{size_text(limit_mib)}{used}{_and_swap(death)}{shared}{_or_host(death)}"
        said = f"It reached {limit_is}: {size}"
        limit, most = size_text(limit_mib), size_text((death.used_bytes or 0) / MIB)
        # The kernel compares what it counts itself; others may report a limit that was not hit.
        is_below = (death.used_bytes or math.inf) < limit_mib * MIB and most != limit
        if death.killer != "kernel" and is_below:
            said = f"It used {most} of {limit_is}, {limit}"
        if death.is_limit_stated:
            limit += _and_swap(death)
            said = f"If the limit in the input, {limit}, is its own, it reached it{_or_host(death)}"
        looked = ""
        if death.memory_now_bytes is not None:
            now = death.memory_now_bytes / MIB
            share = f"{100 * now / limit_mib:.3g} % of the limit"
            looked = f" When inspected, it used {size_text(now)} ({share})."
        return f"{said}.{hits}{_swap_and_restarts(facts)}{looked}"
    return (
        f"At the last scrape before the kill, {resident:,.0f} MiB were resident, "
        f"{100 * resident / limit_mib:.0f} % of {facts.limit.limit_is} ({size_text(limit_mib)})."
    )


def _eviction(facts: Evidence) -> str:
    """Returns why the kubelet chose a pod, as far as its message shows."""
    used, request = facts.memory.resident_mib, facts.death.memory_request_bytes
    if used is None or request is None:
        return "Pods that use more than they request are evicted first."
    # The message names the containers that used more than they request.
    all_mib = (facts.death.usage_bytes or 0) / MIB
    others = f" ({all_mib:,.0f} MiB with the others above their requests)" * (all_mib > used)
    return (
        f"The container used {used:,.0f} MiB and requests {request / MIB:,.0f} MiB{others}; pods "
        "that use more than they request are evicted first."
    )


def _with_used(used_bytes: int | None) -> str:
    return "" if used_bytes is None else f", with {size_text(used_bytes / MIB)} in use"


def _pressure(death: Death) -> str:
    """Returns what memory pressure is, and how high it was."""
    window = death.pressure_window_s
    how_long = "" if window is None else f" for over {duration_text(window)}"
    return (
        f"The processes of {short_name(death.pressure_cgroup or '')} waited for memory "
        f"{death.pressure_pct:.4g} % of the time, above the limit of "
        f"{death.pressure_limit_pct:.4g} %{how_long}. {_TIME_LOST}: other "
        "programs in that group, or swapping, may be the cause."
    )


_ASKED = {
    ASKED: "The lines of {} do not show that it ended. ",
    ENDED: "It ended after that. ",
    NOT_ENDED: "It had not ended ten seconds later. ",
}


def _little_available(death: Death, own: float | None) -> str:
    """Returns how much memory was left when earlyoom acted, by its own threshold."""
    limit, available = death.available_limit_pct, death.available_bytes
    asked = _ASKED.get(death.reason or "", "").format(death.killer)
    threshold = "the threshold" if limit is None else f"the threshold ({limit:.4g} %)"
    if available is None:
        return f"{asked}{death.killer} acts at {threshold} of available memory."
    size = f"{available / MIB:,.0f} MiB of the host's memory were"
    if host := death.host_bytes:
        size = f"{available / MIB:,.0f} of {host / MIB:,.0f} MiB were"
        if limit is not None and 100 * available > limit * host:
            # earlyoom prints this from time to time, not when it acts.
            size = f"{death.killer} last printed that {size}"
            return f"{asked}{size} available; it acts at {threshold}."
    # That of earlyoom may leave out memory of the kernel ("user mem total").
    whole = f"the {host / MIB:,.0f} MiB" if host else "the host's memory"
    had = f" The program had {100 * own:.2g} % of {whole}." if own is not None else ""
    return (
        f"{asked}{size} available, at or below {threshold} of {death.killer}, and free swap at or "
        f"below its own.{had}"
    )


def _nearly_full(death: Death) -> str:
    """Returns how full memory and swap of the host were when systemd-oomd acted."""
    limit = "" if death.used_limit_pct is None else f" of {death.used_limit_pct:.4g} %"
    sizes = (
        ("memory", death.usage_bytes, death.host_bytes),
        ("swap", death.swap_usage_bytes, death.swap_limit_bytes),
    )
    parts = [
        f"{100 * used / total:.3g} % of the host's {name} ({size_text(used / MIB)} of "
        f"{size_text(total / MIB)})"
        for name, used, total in sizes
        if used is not None and total
    ]
    of_host = " and ".join(parts) or "More memory and swap of the host"
    return (
        f"{of_host} were in use, above the limit{limit} of systemd-oomd, which ends the group that "
        "uses the most swap."
    )


def _swap_and_restarts(facts: Evidence) -> str:
    """Returns how much was swapped out, and how often a looping container was restarted."""
    size_mib = facts.memory.swapped_mib or 0.0
    swapped = f" Another {size_text(size_mib)} of the process were swapped out."
    return swapped * (size_mib > 0) + restarts_of(facts.death)


def restarts_of(death: Death) -> str:
    """Returns how often the program was restarted, as a sentence; empty if that is no loop."""
    number = death.restart_count or 0
    if number < _LOOP:
        return ""
    # `kubectl get pods` adds up the restarts of all containers of a pod.
    is_pod = death.pod is not None and death.victim == death.pod
    is_container = death.container_id or death.pod or not (death.unit or death.is_unit)
    which = "Its containers were" if is_pod else "Its unit was"
    if is_container and not is_pod:
        which = "It was" if death.subject == "The container" else "Its container was"
    return f" {which} {restarted(number, death.restarts_in_s)}."


_LOOP = 2
"""Restarts that count as a loop."""


def restarted(number: int, within_s: float | None) -> str:
    """Returns how often something was restarted, and over what time, as the end of a sentence.

    >>> restarted(17, 11400.0), restarted(1, None)
    ('restarted 17 times within 3h 10m', 'restarted once')
    """
    often = times_text(number)
    within = f" within {duration_text(within_s)}" if within_s else ""
    return f"restarted {often}{within}"


_MOST_HOLDERS = 3
"""Programs whose memory is named."""


def by_program(tasks: pl.DataFrame) -> pl.DataFrame:
    """Returns `comm rss_bytes count` of the tasks that the kernel listed, the largest first."""
    sizes = tasks.drop_nulls(["comm", "rss_bytes"]).group_by("comm", maintain_order=True)
    sums = sizes.agg(pl.col("rss_bytes").sum(), count=pl.len())
    return sums.sort("rss_bytes", descending=True, maintain_order=True)


def holders(tasks: pl.DataFrame, victim: int | None = None) -> Iterator[str]:
    """Yields a sentence about which programs held the memory, from the kernel's list of tasks.

    Args:
        tasks: rows of `oom_tasks`.
        victim: the process id of the killed process.
    """
    sums, total = by_program(tasks).with_row_index("rank"), int(tasks["rss_bytes"].sum())
    if not total or len(tasks) == 1:
        return
    own = tasks.filter(pl.col("pid") == (victim or -1))["comm"]
    parts = [
        f"{comm} {size_text(size / MIB)}{f' ({count} tasks)' if count > 1 else ''}"
        for rank, comm, size, count in sums.iter_rows()
        if rank < _MOST_HOLDERS or comm in own
    ]
    yield (
        f"The {len(tasks):,} tasks listed had {size_text(total / MIB)} resident (shared pages "
        f"counted in each): {', '.join(parts)}."
    )


def swapped_mib(tasks: pl.DataFrame) -> float | None:
    """Returns how much of the listed tasks was swapped out; None if little or unknown."""
    pages, swapped = int(tasks["rss_pages"].sum()), int(tasks["swapents_pages"].sum())
    size = int(tasks["rss_bytes"].sum())
    return swapped * size / pages / MIB if pages and swapped > NOTABLE * pages else None


_OVERCOMMIT = "the overcommit limit of the host"
_CAUSES = {
    "linux": "most often a limit of the process (`ulimit -v`, `ulimit -d`), or " + _OVERCOMMIT,
    RESERVED: "most often the data limit of the process (`ulimit -d`), or " + _OVERCOMMIT,
    ADDRESSES: "most often the limit of the address space of the process (`ulimit -v`)",
    "windows": "the commit limit of Windows (memory and page file together) or the memory limit of "
    "its job, such as a container",
    "js": "WebAssembly has addresses for 4 GiB at most, and its host may allow less",
    "bsd": "most often a limit of the process (`ulimit -d`, `ulimit -v`), or full swap",
    "darwin": "most often a limit of the process (`ulimit -v`), or no disk space for swap is left",
}
"""Why systems refuse memory.

Linux counts only mappings that may be written for RLIMIT_DATA and overcommit (mm/mmap.c:
is_data_mapping, accountable_mapping). From Go 1.11 on, the runtime reserves addresses without that
(sysReserve), and then maps them: no more addresses, but data (sysMap, mem_linux.go)."""

_OF_MAPPINGS = (RESERVED, ADDRESSES, "linux")
"""Systems that limit the number of mappings."""

_CHECK_LIMITS = {
    "linux": "Check the limits of the process (`ulimit -v`, `ulimit -d`, /proc/PID/limits) and the "
    "host's vm.overcommit_memory",
    RESERVED: "Check the data limit of the process (`ulimit -d`, /proc/PID/limits) and the host's "
    "vm.overcommit_memory",
    ADDRESSES: "Check the limit of the address space (`ulimit -v`, /proc/PID/limits)",
    "windows": "In a container, raise its memory limit; otherwise, enlarge the page file of "
    "Windows, or free memory: Task Manager shows what is committed.",
    "js": "Keep less in memory, or build the program for another platform than WebAssembly.",
    "bsd": "Check the limits of the process (`ulimit -a`; OpenBSD has datasize in login.conf) and "
    "the swap of the host (`swapctl -l`, `swapinfo`).",
    "darwin": "Check the limits of the process (`ulimit -a`), swap (`sysctl vm.swapusage`) and the "
    "free space of the disk.",
}
"""Where to look for the limit."""


def check_limits(death: Death) -> str:
    """Returns where to look for the limit that made the system refuse memory."""
    system = death.system or "linux"
    check = _CHECK_LIMITS.get(system, _CHECK_LIMITS["linux"])
    if check.endswith("."):
        return check
    # A process that has just started has some twenty mappings.
    of_host = " and the host's" if system == ADDRESSES else " and"
    return f"{check}{'' if death.refused_at_start else f'{of_host} vm.max_map_count'}."


def _causes(death: Death) -> str:
    """Returns why the system most often refuses memory."""
    if death.refusal == LOCKED_MEMORY:
        return "the limit of locked memory (`ulimit -l`) is reached"
    system = death.system or "linux"
    causes = _CAUSES.get(system, _CAUSES["linux"])
    if system == "windows":
        causes = f"most often {causes}" if death.errno is None else f"{causes}, was reached"
    if death.refused_at_start:
        return causes
    if death.fills_32_bits:
        return f"the address space of a 32-bit program ({death.goarch}) is used up"
    if death.may_be_of_32_bits and system == ADDRESSES:
        return (
            "most often it is a 32-bit program whose address space is used up; or it has a limit "
            "of the address space (`ulimit -v`)"
        )
    if system in _OF_MAPPINGS:
        causes = f"{causes.replace(', or ', ', ')}, or too many mappings (vm.max_map_count)"
    of_32_bits = "; or the address space of a 32-bit program is used up"
    return causes + of_32_bits * death.may_be_of_32_bits


def about_runtime(death: Death) -> Iterator[str]:
    """Yields why the operating system gave the Go runtime no memory."""
    if not death.by_runtime:
        return
    asked, used = death.requested_bytes, death.in_use_bytes
    asked_text = "memory" if asked is None else size_text(asked / MIB)
    used_text = "" if used is None else f", whose heap had obtained {size_text(used / MIB)}"
    single = " for one allocation" if death.is_of_one_allocation else ""
    if death.refusal == IMPOSSIBLE_SIZE:
        is_address = asked is not None and (
            f"asked for {asked_text}, which is not a size but the value of an address in "
            f"Go's heap ({asked:#x})"
        )
        bug = (
            "a pointer that was used as a length, or damaged memory (unsafe, cgo)"
            if is_address
            else "a length read from damaged data, or an overflow"
        )
        yield (
            f"The program {is_address or 'asked for a block of a size that no memory has'}"
            f"{used_text.replace('whose', 'when its')}. Memory is not "
            f"short: this is a bug, such as {bug}."
        )
        return
    if death.refusal == UNUSABLE_ADDRESS:
        yield (
            f"The Go runtime{used_text}{',' if used_text else ''} asked for {asked_text}, and the "
            "operating system gave it "
            "an address that it cannot use: the address space of a 32-bit program may be used up "
            "or in pieces. It was not the OOM killer."
        )
        return
    if death.refusal == ARENA_FULL:
        most, on = ("32 GiB", "Windows") if death.goos == "windows" else ("512 GiB", "64 bits")
        if_old = "probably " * (death.go_version in (None, "<1.17"))
        yield (
            f"The heap had obtained {size_text((used or 0) / MIB)} and needed {asked_text}: "
            f"{if_old}too much for its Go, whose heap has at most {most} on {on} before Go 1.11. "
            "The operating system did not refuse it."
        )
        return
    if death.refused_at_start:
        single, used_text = ", at the start of the program, before main", ""
    why = "more than any machine has" if death.is_beyond_memory else _causes(death)
    yield (
        f"The Go runtime{used_text}{',' * bool(used_text)} needed {asked_text}{single}, and the "
        f"operating system refused it: {why}. It was not the OOM killer."
    )
