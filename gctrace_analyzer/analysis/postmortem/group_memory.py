"""What the control group that reached its limit had, as the kernel counted it at the kill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.postmortem.heap_at_death import NOTABLE
from gctrace_analyzer.units import MIB, size_text

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.postmortem.facts import Evidence

_IN_MEMORY = "files in memory (tmpfs, /dev/shm, an emptyDir with medium Memory)"
_WRITTEN = "page cache, most likely files that were just written"
_OF_KERNEL = "memory of the kernel (page tables, slab, sockets)"
_OTHERS = "anonymous memory of other processes in it"
_UNKNOWN = (
    f"other processes of the group, {_IN_MEMORY}, files that were just written (page cache) or "
    "the kernel. `memory.stat` of the group has anon, shmem, file and kernel; GOMEMLIMIT changes "
    "only the first."
)
_ACTIONS = {
    _IN_MEMORY: "Find out which program writes the {} of " + _IN_MEMORY + ", and limit them "
    "(sizeLimit of the volume, `--tmpfs …:size=`) or keep them on disk: GOMEMLIMIT does not change "
    "them.",
    _WRITTEN: "Find out which program writes or maps the files that {} of page cache belong to: "
    "GOMEMLIMIT does not change it, and the kernel frees it only once it is written to disk.",
    _OF_KERNEL: "Find out what the {} of the kernel are (`memory.stat` of the group: slab, "
    "pagetables, sock): GOMEMLIMIT does not change them.",
    _OTHERS: "Find out which other processes of the group have {}: sidecars, children and "
    "commands run in it count against the limit as well, and GOMEMLIMIT does not change them.",
}
"""What to do about the part of a group's memory that is the largest, next to its victim's."""


def of_others(facts: Evidence) -> dict[str, float]:
    """Returns the notable parts (MiB) of the group's memory that its victim did not have."""
    death = facts.death
    shared, own = death.group_shmem_bytes or 0, death.anon_rss_bytes
    sizes = {
        _OTHERS: (death.group_anon_bytes or 0) - own if own is not None else 0,
        _IN_MEMORY: shared - (death.shmem_rss_bytes or 0),
        _WRITTEN: (death.group_file_bytes or 0) - shared,
        _OF_KERNEL: death.group_kernel_bytes or 0,
    }
    whole = death.usage_bytes or death.limit_bytes or death.group_anon_bytes or 0
    return {what: size / MIB for what, size in sizes.items() if size > NOTABLE * whole}


def counted(facts: Evidence) -> str | None:
    """Returns what the memory of the group was, if much of it was not its victim's."""
    anonymous = facts.death.group_anon_bytes
    if anonymous is None or not (parts := of_others(facts)):
        return None
    other = parts.pop(_OTHERS, None)
    of_go = "to which all of Go's belongs"
    others = of_go if other is None else f"{size_text(other)} of it of other processes"
    listed = "".join(f"; {size_text(size)} were {what}" for what, size in parts.items())
    return (
        f"The kernel counted {size_text(anonymous / MIB)} of anonymous memory in its group, "
        f"{others}{listed}."
    )


def find_rest(facts: Evidence) -> str:
    """Returns what to do about the memory of a group with a limit that its victim did not have."""
    if facts.death.group_anon_bytes is not None and (parts := of_others(facts)):
        most = max(parts, key=lambda what: parts[what])
        return _ACTIONS[most].format(size_text(parts[most]))
    limit, own = facts.limit.limit_mib or 0.0, facts.memory.resident_mib or 0.0
    return f"Find out what has the other {limit - own:,.0f} of the {limit:,.0f} MiB: {_UNKNOWN}"
