"""Decides whether the record of a death proves that memory ran out, and whether that of the host.

A container that ended with exit code 137, or a unit whose process got SIGKILL, may have been
killed by anyone. Such a record is a death, but its post-mortem says that it is not proven.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gctrace_analyzer.ingest.evidence.docker import SIGKILL_CODE, got_sigkill
from gctrace_analyzer.ingest.evidence.message import OOMD_ATTEMPT
from gctrace_analyzer.units import MIB, size_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.analysis.postmortem.death import Death

NOTICES = ("oom_killed_process", "oomd_killed_processes")
"""The events of a unit that announce OOM kills; they are not ends of a process."""

SYSTEMD_KILLS = {
    "timeout": "it did not start or stop within its time (TimeoutStartSec, TimeoutStopSec)",
    "watchdog": "it did not report to the watchdog in time (WatchdogSec)",
    OOMD_ATTEMPT: "systemd-oomd began to kill processes, most likely this one too",
}
"""Results of a unit that systemd or systemd-oomd ended, or probably did."""


def is_kill(table: str, row: Mapping[str, Any]) -> bool:
    """Returns whether a record is about a death by SIGKILL or a lack of memory.

    Args:
        table: the table with the record.
        row: the record.
    """
    match table:
        case "container_states":
            killed = got_sigkill(row)
        case "unit_events":
            got_kill = row["signal"] == "KILL" or row["status"] == SIGKILL_CODE
            killed = (row["event"] == "main_exited" and got_kill) or row["result"] == "watchdog"
        case _:  # The other tables contain only deaths.
            killed = True
    return killed or is_proven(table, row)


def is_proven(table: str, row: Mapping[str, Any]) -> bool:
    """Returns whether a record proves that memory ran out.

    Args:
        table: the table with the record.
        row: the record.
    """
    match table:
        case "container_states":
            return bool(row["oom_killed"])
        case "unit_events":
            return row["event"] in NOTICES or row["result"] == "oom-kill"
        case _:  # A kill by the kernel or another OOM killer, or the runtime's own message.
            return True


BY_KERNEL = "by the kernel's OOM killer"
"""The cause of a death, as a part of a sentence, if its host may have had enough memory."""

_PAGE_KIB = 4
"""KiB in a page of most machines."""


def is_host_full(death: Death) -> bool:
    """Returns whether the kernel's message proves that its host ran out of memory.

    "Out of memory: Killed process" alone only shows that no group was at its limit: the kernel
    also prints it for memory nodes, SysRq+F and failed page faults (mm/oom_kill.c).
    """
    lists_memory = death.host_bytes is not None or death.constraint == "CONSTRAINT_NONE"
    may_be_in_pieces = bool(death.order) and death.zone_free_bytes is None
    is_other = may_be_in_pieces or of_other_cause(death) is not None
    return lists_memory and not (is_other or death.zone_free_bytes)


def of_other_cause(death: Death) -> tuple[str, str] | None:
    """Returns why the kernel killed on the whole host, and what to do, if its memory was not full.

    None if the message does not show another cause.
    """
    if death.killer != "kernel" or death.scope != "global":
        return None
    if death.order == -1:
        return (
            "Somebody made the kernel kill the program with the most memory: SysRq+F, or `f` "
            "written to /proc/sysrq-trigger. Memory need not have been short.",
            "Find out who or what did that (SysRq+F, /proc/sysrq-trigger): no memory limit and no "
            "GC setting prevents it.",
        )
    free, total = death.host_free_bytes, death.host_bytes
    if (death.gfp_mask or "").partition("(")[0] == "0x0":
        of = f" of {size_text(total / MIB)}" if total else ""
        had = f" {size_text(free / MIB)}{of} were free on the host." if free else ""
        return (
            f"A page fault got no memory (gfp_mask=0x0).{had} Before Linux 5.16, the kernel then "
            "kills on the whole host, even if only a container reached its limit of kernel memory.",
            "Remove the limit of kernel memory from containers (`--kernel-memory`, "
            "memory.kmem.limit_in_bytes), or update the kernel to 5.16 or later.",
        )
    order, in_zone = death.order or 0, death.zone_free_bytes
    if order > 0 and in_zone:
        free_text = size_text((free or in_zone) / MIB)
        return (
            f"The kernel found no free block of {_PAGE_KIB << order} KiB (order={order}), although "
            f"{free_text} were free: memory was in too small pieces, not used up.",
            f"Raise vm.min_free_kbytes, and find out why {death.invoker_comm or 'a program'} needs "
            "such blocks: a smaller heap does not join the pieces.",
        )
    return None


def on_host(death: Death) -> str:
    """Returns why the kernel killed on the whole host, as far as its message proves it."""
    if (other := of_other_cause(death)) is not None:
        return other[0]
    if is_host_full(death):
        return (
            f"The host ran out of memory{_of_host(death)}; no limit of a container or unit was the "
            "reason."
        )
    if death.reason is not None:
        return f'The host was short of memory: its kernel gives "{death.reason}" as the reason.'
    size = _PAGE_KIB << max(death.order or 0, 0)
    or_pieces = f", or of free blocks of {size} KiB (order={death.order})" * (size > _PAGE_KIB)
    return (
        f"The host probably ran out of memory{_of_host(death)}{or_pieces}: the kernel's whole "
        "message (`journalctl -k`: Mem-Info, constraint=) would prove it."
    )


def on_nodes(death: Death) -> str:
    """Returns which memory nodes ran out."""
    own, which = "memory policy (numactl, mbind)", f"nodemask={death.nodemask}"
    if death.scope == "cpuset":
        own, which = "cpuset", f"mems_allowed={death.mems_allowed}"
    nodes = "" if which.endswith("=None") else f" ({which})"
    return f"The memory nodes of its {own} ran out{nodes}; no memory limit was the reason."


def _of_host(death: Death) -> str:
    """Returns how much memory and swap the host has, as a part of a sentence."""
    if not death.host_bytes:
        return ""
    used, total = death.swap_usage_bytes, death.swap_limit_bytes
    swap = ""
    if total == 0:
        swap = ", no swap"
    elif total and used is not None:
        of_swap = size_text(total / MIB)
        swap = f", and {size_text(used / MIB)} of {of_swap} of swap in use"
    return f" ({size_text(death.host_bytes / MIB)} of RAM{swap})"
