"""Rules about memory outside the live heap: MemStats dumps and OOM kills."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from gctrace_analyzer.analysis.postmortem.death import WITH_CODE
from gctrace_analyzer.analysis.rules.finding import DeathFacts, Evidence, MemoryFacts
from gctrace_analyzer.analysis.rules.registry import rule
from gctrace_analyzer.units import duration_text, size_text

_SCAVENGER = " (last line of the scavenger)"


@rule(
    "GC036",
    "fragmentation",
    meaning="Memory is wasted because the heap's spans are only partly filled.",
    condition="The memory wasted is HeapInuse - HeapAlloc, less what the next cycle lets the "
    "program allocate (NextGC - HeapAlloc; if NextGC is unknown, HeapAlloc). It is over "
    "{t.fragmentation_share:.0%} of waste and HeapAlloc together, and over "
    "{t.memory_min_mib:.0f} MiB.",
    advice="Reuse objects of the same size and lifetime, for example with `sync.Pool`.",
    needs="HeapInuse and HeapAlloc of the same moment, with NextGC or, without it, more free than "
    "allocated; or a scavenger line of Go up to 1.13 "
    "(inuse) and the goal and size of the cycles around it",
    contradicted_by="a dump shortly after a large part of the heap was freed",
    source="golang/go#18896",
)
def fragmentation(facts: MemoryFacts) -> Iterator[Evidence]:
    """Checks how much of the heap in use is empty and stays empty until the next cycle."""
    t, memory = facts.thresholds, facts.memory
    wasted = memory.fragmentation_mib
    if wasted is None or memory.alloc_mib is None:
        return
    both = wasted + memory.alloc_mib
    if wasted > max(t.memory_min_mib, t.fragmentation_share * both):
        yield Evidence(
            "info",
            f"{'At least ' * memory.is_of_scavenger}{wasted:,.0f} MiB of the heap in use hold no "
            "objects, more than the heap fills until its goal"
            f"{_SCAVENGER * memory.is_of_scavenger}.",
            {"fragmentation_mib": wasted, "wasted_share": wasted / both},
        )


@rule(
    "GC037",
    "unreleased-idle",
    meaning="The process keeps memory that its heap does not use.",
    condition="The unused memory is HeapIdle - HeapReleased, less what the program allocates "
    "until the heap goal (NextGC - HeapAlloc). It is over {t.idle_share:.0%} of Sys (HeapSys if "
    "Sys is unknown) and over {t.memory_min_mib:.0f} MiB, in each dump of the second half.",
    advice="Set a memory limit (Go 1.19 and later), so that the runtime returns memory "
    "sooner; with earlier releases, call `debug.FreeOSMemory` after a peak.",
    needs="HeapIdle and HeapReleased, or a line of the scavenger, and the room until the goal",
    contradicted_by="a load that needs the memory again within minutes; in the only dump, a forced "
    "GC, as the runtime takes minutes to return what one freed",
    source="golang/go#33376",
)
def unreleased_idle(facts: MemoryFacts) -> Iterator[Evidence]:
    """Checks how much idle heap was neither needed soon nor returned to the operating system."""
    t, memory = facts.thresholds, facts.memory
    spare, total = memory.spare_mib, memory.sys_mib or memory.heap_sys_mib
    # The only dump may show the moment after a forced GC, not a lasting state.
    if spare is None or not total or (memory.dumps == 1 and memory.forced_gcs):
        return
    if spare > max(t.memory_min_mib, t.idle_share * total):
        # A line of Go 1.14 and later has no sizes of the heap in use.
        is_least = memory.dumps > 1 or (
            memory.is_of_scavenger and memory.fragmentation_mib is None
        )
        of = f"At least {spare:,.0f}" if is_least else f"{spare:,.0f} of {total:,.0f}"
        idle = (
            f"{of} MiB are idle, more than the heap needs until its goal, and were not returned to "
            f"the operating system{_SCAVENGER * memory.is_of_scavenger}."
        )
        yield Evidence(
            "warn", idle, {"spare_mib": spare}, headline=idle, advice=_to_return(facts)
        )


def _to_return(facts: MemoryFacts) -> str | None:
    """Returns how to return memory in a release without a memory limit; None for others."""
    if facts.newest_go is None or facts.newest_go >= (1, 19):
        return None
    return "Call `debug.FreeOSMemory` after a peak, or lower the peak."


@rule(
    "GC047",
    "off-heap-growth",
    meaning="Memory outside Go grows: no GOGC or GOMEMLIMIT changes it.",
    condition="Memory outside Go (resident memory less what Go obtained and did not return) is "
    "over {t.memory_min_mib:.0f} MiB larger in the last of at least four dumps than in any of "
    "the first half, and that growth is over {t.off_heap_share:.0%} of the resident memory.",
    advice="Find out what it is: `/proc/PID/smaps_rollup` has anonymous memory (cgo, mmap) and "
    "pages of files (Rss less Anonymous), which the kernel drops when memory is needed.",
    needs="resident memory, Sys and HeapReleased of four dumps or more",
    contradicted_by="files that the program maps (mmap), whose pages the kernel drops when memory "
    "is needed; Go 1.12 to 1.15, which still count memory that was returned",
    source="runtime.MemStats: Sys and HeapReleased; proc(5)",
)
def off_heap_growth(facts: MemoryFacts) -> Iterator[Evidence]:
    """Checks whether memory that Go does not count grew from dump to dump."""
    t, memory = facts.thresholds, facts.memory
    first, last, resident = memory.outside_first_mib, memory.outside_mib, memory.rss_mib
    if first is None or last is None or not resident:
        return
    if last - first > max(t.memory_min_mib, t.off_heap_share * resident):
        span = f" in {duration_text(memory.elapsed_s)}" if memory.elapsed_s else ""
        grew = (
            f"Memory outside Go grew to {last:,.0f} of the {resident:,.0f} MiB resident{span}"
        )
        yield Evidence(
            "warn",
            f"{grew}; in the first half of the dumps it was {first:,.0f} MiB at most.",
            {"outside_mib": last, "outside_first_mib": first},
            headline=f"{grew}: no GOGC or GOMEMLIMIT changes it.",
        )


@rule(
    "GC048",
    "near-container-limit",
    meaning="The container has hardly any memory left: above its limit, the kernel kills.",
    condition="Resident memory is over {t.tight_limit_share:.0%} of the container's limit, less "
    "what other programs under that limit use. If resident memory is unknown, the memory counts "
    "that Go obtained and did not return.",
    advice="Raise the container's memory limit, or keep less in memory.",
    needs="the container's limit, and the resident memory of its only program, or Sys and "
    "HeapReleased",
    contradicted_by="without resident memory, memory that was never written or is swapped out",
    source="cgroup v2, memory.max",
    explained_by=("GC039", "GC040"),
)
def near_container_limit(facts: MemoryFacts) -> Iterator[Evidence]:
    """Checks how much of its container's limit a program has."""
    memory, room = facts.memory, facts.room_mib
    has = (memory.sys_mib or 0.0) - (memory.released_mib or 0.0)
    has = has if memory.rss_mib is None else memory.rss_mib
    if not room or has <= facts.thresholds.tight_limit_share * room:
        return
    whose = "Go alone holds" if memory.rss_mib is None else "it has"
    sizes = f"{size_text(has)} of {size_text(room)} ({100 * has / room:.0f} %)"
    near = f"The program is near the container's limit: {whose} {sizes}."
    yield Evidence("warn", near, {"limit_used_share": has / room}, headline=near)


def _place(facts: DeathFacts) -> tuple[str, ...]:
    death = facts.death
    return (f"{PurePath(death.source).name}:{death.line_no}",) if death.source else ()


@rule(
    "GC039",
    "out-of-memory",
    meaning="The program ended because memory ran out (OOM kill, eviction, or Go's own error).",
    condition="A kernel log, systemd or a container state proves that a process was killed or "
    "evicted for memory, or the Go runtime got no more memory.",
    advice="Read the post-mortem in this report.",
    needs="a record of the kill: kernel, systemd, container runtime, platform or Go's own "
    "error",
    contradicted_by="a stop that was asked for before it, or a later line of the same process",
    source="kernel, systemd and container states",
)
def oom_kill(facts: DeathFacts) -> Iterator[Evidence]:
    """Reports a death that was certainly caused by a lack of memory."""
    death = facts.death
    if not death.proven:
        return
    text = f"{death.kind}{f' of {death.who}' if death.who else ''}"
    if death.gap_s is not None and death.gap_s > 0:
        text += f", {duration_text(death.gap_s)} after the last GC cycle"
    yield Evidence(
        "bad",
        text + ".",
        {"gap_s": death.gap_s},
        process=death.process,
        at=death.logged_at,
        examples=_place(facts),
    )


@rule(
    "GC040",
    "oom-not-proven",
    meaning="It ended by SIGKILL or with exit code 137; nothing proves that memory was the reason.",
    condition="A program ended by SIGKILL or with exit code 137 (128 + 9), and nothing in the "
    "input proves an OOM kill.",
    advice="Read the kernel's log of that minute (`journalctl -k`, `dmesg`), and keep it.",
    needs="exit code 137 or SIGKILL",
    contradicted_by="a `docker stop`, a liveness probe or a deadline before it",
    source="moby/moby#15621",
)
def oom_not_proven(facts: DeathFacts) -> Iterator[Evidence]:
    """Reports a death by SIGKILL for which there is no record of an OOM kill."""
    death = facts.death
    if not death.proven:
        program = "".join(death.subject_and_name)
        is_said = "no OOM kill" in death.cause or "OOM killer ran" in death.cause
        proof = "" if is_said else "; nothing in the input proves that memory was the reason"
        deed = "ended" if death.cause.startswith(WITH_CODE) else "was killed"
        killed = f"{program} {deed} {death.cause}{proof}."
        yield Evidence(
            "warn",
            killed,
            headline=" ".join((killed, *death.reading[1:])),
            advice=" ".join(death.advice),
            process=facts.death.process,
            at=facts.death.logged_at,
            examples=_place(facts),
        )


@rule(
    "GC038",
    "off-heap-heavy",
    meaning="Much of the resident memory is not heap objects; GOMEMLIMIT limits only what is Go's.",
    condition="At a proven OOM kill, over {t.off_heap_share:.0%} of the resident memory was "
    "neither heap objects (by the goal and the allocation rate) nor known memory of the runtime.",
    advice="MemStats shows fragmentation, free spans and stacks; `pmap -x` shows cgo and mmap: set "
    "GOMEMLIMIT lower by what is outside Go.",
    needs="resident memory at a proven kill, the heap of the last cycle, and its goal or the "
    "allocation rate and the time since then",
    contradicted_by="one last allocation that was larger than the heap goal",
    source="golang/go#71150",
)
def off_heap_heavy(facts: DeathFacts) -> Iterator[Evidence]:
    """Checks how much of the resident memory at a death was not heap objects."""
    death = facts.death
    off_heap, resident = death.off_heap_mib, death.resident_mib
    if not death.proven or off_heap is None or not resident:
        return
    if off_heap > facts.thresholds.off_heap_share * resident:
        yield Evidence(
            "info",
            f"At least {off_heap:,.0f} of {resident:,.0f} MiB resident{death.resident_is} were not "
            "heap objects.",
            {"off_heap_mib": off_heap},
            process=death.process,
            at=death.logged_at,
        )
