"""The record of a death: what the kernel, systemd, a container engine or the Go runtime reports."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.evidence.cgroups import container_id, unit
from gctrace_analyzer.ingest.evidence.message import (
    ASKED,
    AT_START,
    ENDED,
    IMPOSSIBLE_SIZE,
    LARGEST_STEP_MIB,
    METADATA,
    NOT_ENDED,
    TOOLCHAIN,
    UNUSABLE_ADDRESS,
    WINDOWS_COMMIT_LIMIT,
)
from gctrace_analyzer.ingest.evidence.wordings import SUPERVISORS, THRESHOLD_KILLERS, VIRTUAL
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

REFUSED = "Out of memory in the Go runtime"
"""Kind of a death by the Go runtime, to which the system gave no memory."""

KILLED_FOR_MEMORY = "Killed for memory"
"""Kind of a death that a platform reports in its own words."""

ABORTED = "SIGABRT"
"""Kind of a death by systemd's watchdog."""

EVICTOR = "kubelet"
"""The killer of pods on a node that runs low on memory."""

UNITS = (".service", ".scope", ".slice")
"""Suffixes of systemd units that have processes."""

KINDS = {
    ASKED: "SIGTERM",
    NOT_ENDED: "SIGTERM without an end",
    ENDED: "SIGTERM",
    EVICTOR: "Eviction",
    **dict.fromkeys(SUPERVISORS, "Restart"),
}
"""The kind of a recorded kill by its reason, or else by its killer; otherwise it is an OOM kill."""

DEEDS = {
    KINDS[EVICTOR]: "evicted",
    "Restart": "restarted",
    REFUSED: "ended by the Go runtime",
    **dict.fromkeys((KINDS[ASKED], KINDS[NOT_ENDED]), "asked to end (SIGTERM)"),
}
"""Verb phrases for a death by its kind; all other programs were killed."""

_OF_JOB = re.compile(r"(?:step |StepId=|Step=|\d+(?:[._]|$))")
"""How Slurm names its jobs."""

_SAID_OF_JOB = re.compile(
    r"\bPBS\b|mem .{1,60} exceeded limit|slurmstepd|TERM_(?:MEM|SWAP)|"
    r"[Jj]ob (?:memory|has (?:gone|enc)|hard|\d)"
)
"""Messages of batch systems about jobs, which they may not name."""

_SAID_BY_PARENT = re.compile(r"(?<=: )(?<!Runtime exited with error: )signal: killed")
"""Messages of os/exec about a child process. AWS Lambda prints them for the program itself, and so
does `go run`, without words before it."""

WITH_CODE = "with exit code 137"
BY_CODE = f"{WITH_CODE} (SIGKILL to it, or to a child whose code it passes on)"
"""How what has no cause but its code ended."""

OR_CHILD = " or a child of it"
"""Words next to the name of a program that the kernel chose."""

RUNC = "runc:["
"""First words of the process names of runc, before it becomes the program of a container."""


def is_of_job(name: str | None, error: str | None) -> bool:
    """Returns whether a record is about a job of a batch system, or a step of a job."""
    return bool(_OF_JOB.match(name or "") or _SAID_OF_JOB.search(error or ""))


OF_32_BITS = ("386", "arm", "mipsx")
"""Names of 32-bit architectures in assembly file names of the runtime."""

RESERVED, ADDRESSES = "linux, reserved", "linux, addresses"
"""Linux, after the runtime reserved the addresses, which `ulimit -v` counts from then on."""

OF_32_BITS_MIB = (1536.0, 4096.0)
"""Least and most memory of a program that may have run out of a 32-bit address space."""

_OVER = "Ran out of memory (used over"
"""Words of Render about an instance above its limit."""

MOST_OF_MACHINE_TIB = 32
"""TiB of RAM in the largest servers."""
LEAST_REACHED = 0.95
"""Share of a limit. Sizes in GiB are rounded by up to a twentieth."""


@frozen
class Death:
    """The end of a process, from one record or from all of them joined.

    The fields are those of the tables that the records are from, and `kind`, `proven` and
    `logged_in`: the input and line of another record, which may be in the log of the program.
    """

    kind: str = ""
    proven: bool = True
    logged_at: datetime | None = None
    printed_at: str | None = None
    started_at: datetime | None = None
    not_before_at: datetime | None = None
    monotonic_s: float | None = None
    host: str | None = None
    killer: str | None = None
    reported_by: str | None = None
    scope: str | None = None
    pid: int | None = None
    comm: str | None = None
    name: str | None = None
    unit: str | None = None
    cgroup: str | None = None
    container: str | None = None
    container_id: str | None = None
    pod: str | None = None
    pod_uid: str | None = None
    limit_bytes: int | None = None
    is_limit_stated: bool | None = None
    oom_memcg: str | None = None
    oom_group: bool | None = None
    killed_with: tuple[str, ...] = ()
    restart_count: int | None = None
    restarts_in_s: float | None = None
    memory_now_bytes: int | None = None
    memory_request_bytes: int | None = None
    total_vm_bytes: int | None = None
    anon_rss_bytes: int | None = None
    shmem_rss_bytes: int | None = None
    oom_score_adj: int | None = None
    requested_bytes: int | None = None
    in_use_bytes: int | None = None
    used_bytes: int | None = None
    failcnt: int | None = None
    kills: int | None = None
    file_rss_bytes: int | None = None
    reason: str | None = None
    pressure_cgroup: str | None = None
    pressure_pct: float | None = None
    pressure_limit_pct: float | None = None
    pressure_window_s: float | None = None
    available_bytes: int | None = None
    host_bytes: int | None = None
    host_free_bytes: int | None = None
    zone_free_bytes: int | None = None
    constraint: str | None = None
    mems_allowed: str | None = None
    nodemask: str | None = None
    invoker_comm: str | None = None
    gfp_mask: str | None = None
    order: int | None = None
    available_limit_pct: float | None = None
    used_limit_pct: float | None = None
    usage_bytes: int | None = None
    group_anon_bytes: int | None = None
    group_file_bytes: int | None = None
    group_shmem_bytes: int | None = None
    group_kernel_bytes: int | None = None
    swap_usage_bytes: int | None = None
    swap_limit_bytes: int | None = None
    stopped_by: str | None = None
    exit_code: int | None = None
    is_inside: bool | None = None
    is_shared: bool | None = None
    is_below: bool | None = None
    is_restarted: bool | None = None
    is_not_oom: bool | None = None
    is_error: bool | None = None
    oom_killer_ran: bool | None = None
    is_at_start: bool | None = None
    refusal: str | None = None
    error: str | None = None
    goarch: str | None = None
    goos: str | None = None
    go_version: str | None = None
    errno: int | None = None
    is_reserved: bool | None = None
    truncated: bool | None = None
    score: int | None = None
    source: str | None = None
    line_no: int | None = None
    logged_in: tuple[str | None, int | None] | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any], **known: Any) -> Death:
        """Returns the death that a row of a table describes, with what else is known of it."""
        values = {name: row[name] for name in _FIELDS if name in row} | known
        return cls(**values | {"source": str(row["source"]) if row.get("source") else None})

    def completed(self, other: Death, names: Iterable[str]) -> Death:
        """Returns the death completed with details that only another record has."""
        unknown = (name for name in names if getattr(self, name) is None)
        return replace(self, **{name: getattr(other, name) for name in unknown})

    def joined(self, other: Death) -> Death:
        """Returns the death as both records describe it; the longer record gives the place."""
        place = max(self, other, key=_known)
        both = self.completed(other, _FIELDS)
        return replace(both, source=place.source, line_no=place.line_no)

    @property
    def ran_s(self) -> float | None:
        """How long the process had run, in seconds; None if a record lacks its start or its end."""
        if self.logged_at is None or self.started_at is None:
            return None
        lived_s = (self.logged_at - self.started_at).total_seconds()
        return lived_s if lived_s >= 0 else None

    @property
    def victim(self) -> str | None:
        """The name of the program, container or unit that ended."""
        identifier = f"container {self.container_id[:12]}" if self.container_id else None
        pod = f"pod {self.pod_uid}" if self.pod_uid else None
        names = (self.comm, self.name, self.unit, self.container, self.pod, identifier, pod)
        return next(filter(None, names), None)

    @property
    def own_bytes(self) -> int | None:
        """The memory of the killed process itself, as its killer reports it."""
        return self.anon_rss_bytes or (self.usage_bytes if self.killer == "macOS" else None)

    @property
    def names(self) -> tuple[str | None, ...]:
        """The names of its container, in any table."""
        return self.container_id, self.name, self.container, self.pod

    @property
    def is_of_files(self) -> bool:
        """Whether most of the resident memory was files or shared memory, which are not Go heap."""
        own, shared = self.anon_rss_bytes or 0, self.shmem_rss_bytes or 0
        return (self.file_rss_bytes or 0) > own + shared or shared > own

    @property
    def is_job(self) -> bool:
        """Whether it is a job of a batch system or a step of one, not a container."""
        return is_of_job(self.name, self.error)

    @property
    def is_instance(self) -> bool:
        """Whether a platform reports the memory of one of several numbered instances."""
        said = self.error or ""
        is_number = self.killer in SUPERVISORS and (self.comm or "").isdigit()
        return _OVER in said or "(out of memory)" in said or is_number

    @property
    def is_virtual(self) -> bool:
        """Whether the limit is of virtual memory."""
        return VIRTUAL.search(self.error or "") is not None

    @property
    def is_runc(self) -> bool:
        """Whether the process was runc, while it started a program in a container."""
        return (self.comm or "").startswith(RUNC)

    @property
    def is_unit(self) -> bool:
        """Whether only its systemd unit is known, and no program."""
        return (self.victim or "").endswith(UNITS)

    @property
    def is_below_limit(self) -> bool:
        """Whether it never reached its limit: even its peak was lower."""
        return 0 < (self.used_bytes or 0) < LEAST_REACHED * (self.limit_bytes or 0)

    @property
    def is_above(self) -> bool:
        """Whether the limit that was reached belongs to its host or a group above it."""
        # Platforms report samples, which may miss the peak.
        is_state = self.proven and self.killer is None and not self.error
        return is_state and (self.limit_bytes == 0 or self.is_below_limit)

    @property
    def may_be_of_host(self) -> bool:
        """Whether its host may have run out of memory: cgroup v2 counts any kill in it."""
        kinds = ("Container OOMKilled", KILLED_FOR_MEMORY, "OOM kill in a ", "Unit killed ")
        is_state = self.kind.startswith(kinds)
        hit = self.failcnt or self.used_bytes or _OVER in (self.error or "")
        return is_state and self.killer is None and not hit

    @property
    def is_container(self) -> bool:
        """Whether only a container is named, which may run several programs.

        Shells and supervisors name programs, in a message, and do not know why they ended.
        """
        if self.comm or self.unit or self.is_job:
            return False
        if self.container_id or self.container or self.kind.startswith("Container OOM"):
            return True
        return bool(self.name) and self.killer is None and (self.proven or not self.error)

    @property
    def subject(self) -> str:
        """What ended; for a container or unit, perhaps only a process in it."""
        if self.is_child:
            return "A child of the program"
        if self.name in TOOLCHAIN:
            return "The program"
        if self.killer == EVICTOR:
            return "The pod of the container" if self.victim == self.container else "The pod"
        if self.is_unit and not self.proven:
            # systemd reports the end of the unit's main process.
            return "The main process of the unit"
        if not self.is_inside:
            if not self.is_unit:
                is_pod = self.pod is not None and self.victim == self.pod
                # A shell may have named the program of a job.
                is_named = self.name is not None and not is_of_job(self.name, None)
                program = "The job" if self.is_job and not is_named else "The program"
                program = "The container" if self.is_container else program
                program = "The instance" if self.is_instance else program
                program += OR_CHILD * self.may_be_child
                return "A container of the pod" if is_pod else program
            return "The unit" if self.killer == "systemd-oomd" else "A process of the unit"
        if self.is_below:
            return "A process in the group"
        is_unit = self.unit or self.is_unit
        return (
            f"A process in the {'unit' if is_unit else 'job' if self.is_job else 'container'}"
        )

    @property
    def is_child(self) -> bool:
        """Whether it is an unnamed child of a Go program that reports the end (os/exec).

        A path names the child itself: `…/compile: signal: killed`.
        """
        said = self.error or ""
        named = self.name and f"/{self.name}: " in said
        return not (self.proven or named) and _SAID_BY_PARENT.search(said) is not None

    @property
    def may_be_child(self) -> bool:
        """Whether the kernel chose the program, and the line that names the victim is missing.

        Up to Linux 5.1, the kernel kills a child of the chosen program ("or sacrifice child"), and
        names it.
        """
        return bool(self.truncated) and self.score is not None

    @property
    def cause(self) -> str:
        """Why it ended, as a part of a sentence."""
        return self._proven_cause if self.proven else self._unproven_cause

    @property
    def _proven_cause(self) -> str:
        if self.refusal == IMPOSSIBLE_SIZE:
            return "because it asked for a block of memory of an impossible size"
        if self.by_runtime:
            return "because it got no more memory"
        if self.is_virtual:
            return "because it reached its limit of virtual memory"
        if self.reason == "memory_pressure":
            return f"by {self.killer} for memory pressure"
        if self.killer == "systemd-oomd":
            full = "because the host's memory and swap were nearly full"
            return f"by systemd-oomd {full}" if self.reason else "by systemd-oomd"
        if self.killer == EVICTOR:
            return "by the kubelet, which counted too little memory left on its node"
        if self.killer in SUPERVISORS:
            return f"by {self.killer} for its memory use"
        if self.killer == "macOS" and self.scope == "memcg":
            return "because it reached the memory limit that macOS sets for it"
        if self.killer in THRESHOLD_KILLERS:
            return f"by {self.killer} because little memory was available"
        return "because memory ran out"

    @property
    def _unproven_cause(self) -> str:
        # A shell, too, ends with 128 + 9 after a child that got SIGKILL.
        is_by_code = self.kind == "Exit code 137"
        cause = WITH_CODE if is_by_code else f"by {self.signal}"
        if self.oom_killer_ran:
            return f"{cause}, and the kernel's OOM killer ran"
        if self.stopped_by:
            return f"{cause} after {self.stopped_by}"
        saw_none = ", and the container's state records no OOM kill" * bool(self.is_not_oom)
        return f"{BY_CODE if is_by_code else cause}{saw_none}"

    @property
    def signal(self) -> str:
        """The signal that ended a program, if nothing proves a lack of memory."""
        return ABORTED if self.kind == ABORTED else "SIGKILL"

    @property
    def is_shared_limit(self) -> bool:
        """Whether the limit belongs to a group above its container or unit, shared with others."""
        above, own = (self.oom_memcg or "").rstrip("/"), self.cgroup or ""
        is_same = container_id(above) is not None or unit(above) == unit(own) is not None
        is_above = bool(above) and own.startswith(f"{above}/") and not is_same
        return is_above or bool(self.is_shared)

    @property
    def may_be_swapped(self) -> bool:
        """Whether it may have had more memory than was resident, or than its limit allows."""
        if self.killer in THRESHOLD_KILLERS:
            return self.swap_limit_bytes != 0
        if self.scope == "global" or self.swap_usage_bytes is None:
            return self.scope != "global" and bool(self.swap_limit_bytes)
        return self.swap_usage_bytes > (1 - LEAST_REACHED) * (self.limit_bytes or 0)

    @property
    def group(self) -> str | None:
        """The name of the group that has the memory limit."""
        return self.oom_memcg or self.unit or self.name or self.container

    @property
    def by_runtime(self) -> bool:
        """Whether the Go runtime ended the program itself."""
        return self.kind == REFUSED

    @property
    def is_of_one_allocation(self) -> bool:
        """Whether the runtime asked for memory for one allocation, and needs no more for others."""
        return (self.requested_bytes or 0) > LARGEST_STEP_MIB * MIB

    @property
    def is_beyond_memory(self) -> bool:
        """Whether the runtime asked for more memory than any machine has."""
        return self.by_runtime and (self.requested_bytes or 0) > MOST_OF_MACHINE_TIB * 2**40

    @property
    def refused_at_start(self) -> bool:
        """Whether the runtime got no memory before main ran, for a small request."""
        return self.refusal == AT_START and not self.is_of_one_allocation

    @property
    def is_of_32_bits(self) -> bool:
        """Whether the traceback is that of a 32-bit program."""
        return self.goarch in OF_32_BITS

    @property
    def system(self) -> str | None:
        """The operating system, if its memory limits differ from those of others."""
        if self.errno is not None:
            return "windows"
        if self.is_reserved is not None and self.goos in (None, "linux"):
            return RESERVED if self.is_reserved else ADDRESSES
        return "bsd" if (self.goos or "").endswith(("bsd", "dragonfly")) else self.goos

    @property
    def may_have_garbage(self) -> bool:
        """Whether an earlier GC could have freed what the runtime asked for."""
        asked, used = self.requested_bytes or 0, self.in_use_bytes
        return self.refusal not in (METADATA, AT_START) and (used is None or asked <= used)

    @property
    def may_be_of_32_bits(self) -> bool:
        """Whether a death by the runtime may come from a full 32-bit address space."""
        if self.refusal == UNUSABLE_ADDRESS:
            return True
        if self.errno == WINDOWS_COMMIT_LIMIT:
            return False
        if not self.is_of_32_bits and (self.goarch is not None or self.errno is not None):
            return False
        if self.requested_bytes is None or self.in_use_bytes is None:
            return self.is_of_32_bits
        low, high = OF_32_BITS_MIB
        return low * MIB <= self.requested_bytes + self.in_use_bytes <= high * MIB

    @property
    def fills_32_bits(self) -> bool:
        """Whether the message shows a full 32-bit address space."""
        is_shown = self.refusal == UNUSABLE_ADDRESS or self.in_use_bytes is not None
        return self.is_of_32_bits and is_shown and self.may_be_of_32_bits


_FIELDS = tuple(field.name for field in fields(Death))


def _known(death: Death) -> int:
    return sum(getattr(death, name) is not None for name in _FIELDS)
