"""Rules about CPU time: GC CPU, GOMAXPROCS and CPU quotas."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gctrace_analyzer.analysis.pauses import LatePauses
from gctrace_analyzer.analysis.rules.finding import (
    ALLOCATE_LESS,
    CHECK_CPUS,
    Evidence,
    ProcessFacts,
    example_lines,
    gc_cpu_text,
    maximum,
    often_text,
    percent,
    total,
)
from gctrace_analyzer.analysis.rules.registry import rule
from gctrace_analyzer.analysis.timeline.thrashing import low_gogc
from gctrace_analyzer.ingest.rows import column_of, median, not_null, where
from gctrace_analyzer.units import cores_text, cpus_text, duration_text, size_text


@rule(
    "GC001",
    "high-gc-cpu",
    meaning="Garbage collection takes much of the CPU time.",
    condition="GC CPU time (pauses, mark assists and background marking, without idle marking) "
    "is over {t.gc_cpu_warn:.0%} of CPUs × time; bad over {t.gc_cpu_bad:.0%}. Needs at least "
    "{t.min_cycles} cycles after {t.warm_up_s:g} s, and {t.min_span_s:g} s. If pauses take "
    "over {t.stopped_gc_share:.0%} of it, long pauses (GC009, GC010) are the cause; if one cycle "
    "takes more than half of it, and over twice its share of all live heaps, the cause is what ran "
    "at that time. If metrics do not show GOGC, "
    "and a cycle allocates less than {t.metrics_thrash_room_unknown:.0%} of the heap goal, the "
    "cause is a low GOGC or a memory limit.",
    advice=f"Use a recommended setting, or {ALLOCATE_LESS}.",
    needs="CPU times of at least {t.min_cycles} cycles over {t.min_span_s:g} s",
    contradicted_by="a lower GC share in the printed percentage, in GCCPUFraction or in "
    "/cpu/classes/gc",
    source="the pacer may use 25 % of the CPU while it marks (gcBackgroundUtilization in "
    "runtime/mgcpacer.go)",
    explained_by=("GC016", "GC015", "GC024", "GC045", "GC004", "GC026", "GC012"),
)
def high_gc_cpu(facts: ProcessFacts) -> Iterator[Evidence]:
    """Checks the share of GC in all CPU time."""
    t, share = facts.thresholds, facts.summary.gc_cpu_share
    if is_start_up(facts) or share is None or share <= t.gc_cpu_warn:
        return
    stopped = stopped_gc_share(facts)
    of_cpu = f"{gc_cpu_text(facts.summary)} of the CPU"
    of_time = percent(facts.summary.stw_share or 0.0)
    # Go 1.23 and later count only a part of the time to stop the world.
    is_old = not facts.cycles["stacks_mib"].count()
    own = f": pauses take {of_time} of the time{', with all CPUs counted' * is_old}"
    of_pauses = _in_pauses(facts) if stopped is None else own
    used, cpus = facts.summary.gc_cpu_most_cores, facts.summary.cpus
    of_cores = "" if used is None or not cpus else f": {cores_text(used, cpus)}"
    one = _costliest(facts)
    is_odd = one is not None and not one
    why = of_pauses or (_why_often(facts) if one is None else f", most of it in one cycle{one}")
    yield Evidence(
        "bad" if share > t.gc_cpu_bad else "warn",
        f"GC takes {of_cpu}{of_pauses or of_cores}.",
        {"gc_cpu_share": share, "gc_cpu_cores": facts.summary.gc_cpu_cores},
        examples=example_lines(facts.cycles, "gc_cpu_share" if one is None else "gc_cpu_ms"),
        headline=f"GC takes {of_cpu}{why}.",
        advice=f"{CHECK_CPUS}." if stopped or is_odd else _RAISE if _room(facts) else None,
        advises="check-cpus" if stopped or is_odd else None,
        explained_by=(*high_gc_cpu.explained_by, "GC010", "GC009") if stopped else None,
    )


def _costliest(facts: ProcessFacts) -> str | None:
    """Returns what explains the cost of the cycle that takes most of GC CPU; None without one.

    It is empty if the live heap does not: then something else ran on the CPUs at that time.
    """
    costs_ms, live_mib = facts.cycles["gc_cpu_ms"], facts.cycles["heap_live_mib"].fill_null(0)
    if 2 * maximum(costs_ms) <= total(costs_ms) or facts.summary.missing_cycles:
        return None
    marked_mib = live_mib[costs_ms.arg_max() or 0]
    is_odd = maximum(costs_ms) * total(live_mib) > 2 * total(costs_ms) * marked_mib
    return "" if is_odd else f", which marked {marked_mib:,} MiB"


def _in_pauses(facts: ProcessFacts) -> str:
    """Returns how much of GC CPU long pauses are, as the end of a sentence; else empty."""
    s = facts.summary
    longest_ms, all_ms = s.stw_max_ms or 0.0, s.stw_total_ms or 0.0
    is_one, are_long = (
        2 * longest_ms >= all_ms,
        all_ms > facts.thresholds.stw_warn_ms * s.cycles,
    )
    if (s.stopped_gc_share or 0.0) < _MUCH_OF_IT or not (is_one or are_long):
        return ""
    return (
        f": up to {percent(s.stw_share or 0.0)} in pauses, for which all CPUs count "
        f"({'one' if is_one else 'the longest'} took {duration_text(longest_ms / 1000)}), and the "
        "rest in marking"
    )


_MUCH_OF_IT = 0.2
"""Share of GC CPU. If pauses take less, the work of GC explains nearly all of it."""


def stopped_gc_share(facts: ProcessFacts) -> float | None:
    """Returns the share of GC CPU that pauses take, if it is most of it; else None.

    While the world is stopped, all processors count, although most of them wait for one thread: the
    operating system does not run it, or an old release cannot interrupt it.
    """
    share = facts.summary.stopped_gc_share
    return share if share is not None and share > facts.thresholds.stopped_gc_share else None


def is_start_up(facts: ProcessFacts) -> bool:
    """Returns True if the log covers only a start-up, which is busy under any settings."""
    t, summary = facts.thresholds, facts.summary
    if summary.cycles < t.min_cycles or (summary.span_s or 0) < t.min_span_s:
        return True
    # Predictions leave these cycles out too: the program has not done its work yet.
    starts_s = not_null(facts.cycles["start_s"])
    few = int((starts_s >= t.warm_up_s).sum()) < t.min_cycles
    return facts.cycle_pauses is None and len(starts_s) > 0 and few


def _why_often(facts: ProcessFacts) -> str:
    """Returns why GC runs so often, as the end of a sentence."""
    s = facts.summary
    if s.alloc_mib_per_s is None or s.gc_per_s is None:
        return ""
    if room := _room(facts):
        why = f"which {low_gogc(room)}, or a memory limit, explains"
        return f": a cycle allocates only {percent(room)} of the heap goal, {why}"
    allocates = f"the program allocates {size_text(s.alloc_mib_per_s)}/s"
    return f": {allocates}, and GC runs {often_text(s)}"


_RAISE = "Raise GOGC, or the memory limit if it has one."


def _room(facts: ProcessFacts) -> float | None:
    """Returns the share of the heap goal that a cycle allocates, if metrics show little room."""
    s, goal = facts.summary, facts.summary.heap_goal_p50_mib
    is_known = facts.cycle_pauses is None or facts.settings.value("gogc") is not None
    if is_known or not goal or not s.gc_per_s or s.alloc_mib_per_s is None or s.forced_cycles:
        return None
    room = s.alloc_mib_per_s / s.gc_per_s / goal
    return room if room < facts.thresholds.metrics_thrash_room_unknown else None


@rule(
    "GC012",
    "gomaxprocs-over-cpus",
    meaning="GOMAXPROCS is larger than the number of CPUs, so threads can wait for a CPU, and "
    "a pause lasts until all of them have run.",
    condition="The median of pause CPU / (pause × GOMAXPROCS) is below {t.stopped_share:.0%}. "
    "Up to Go 1.9 the CPU time of a pause includes idle threads, 32 at most, so lines of Go "
    "1.5 do not show the number of CPUs. Lines of Go 1.6 to 1.17 show it if the version is "
    "known to be 1.10 or later, or if the number is steady and not 32. A warning if GC takes at "
    "least {t.gc_cpu_little:.0%} of the CPU or a pause is longer than {t.stw_warn_ms:g} ms.",
    advice="Set GOMAXPROCS to the number of CPUs, or less if a CPU quota allows less.",
    needs="pauses with their CPU time",
    contradicted_by="marking that uses more CPUs than this in any cycle",
    source="stwprocs in runtime/mgc.go",
    explained_by=("GC013",),
)
def gomaxprocs_over_cpus(facts: ProcessFacts) -> Iterator[Evidence]:
    """Compares the number of processors that a pause stopped with GOMAXPROCS."""
    t = facts.thresholds
    stopped = column_of(facts.cycles, "stopped_procs")
    if not stopped.count():
        return
    cpus, procs = round(median(stopped)), median(column_of(facts.cycles, "procs"))
    if cpus < t.stopped_share * procs:
        # Where GC takes hardly anything and all pauses are short, it costs nothing here.
        longest_ms = facts.summary.stw_max_ms
        is_short = longest_ms is not None and longest_ms <= t.stw_warn_ms
        is_little = (facts.summary.gc_cpu_share or 1.0) < t.gc_cpu_little
        more = " with Go 1.10 or later" * facts.may_be_before(1, 10)
        yield Evidence(
            "info" if is_little and is_short else "warn",
            f"GOMAXPROCS is {procs:.0f}, but the runtime counts the CPU time of pauses for only "
            f"{cpus_text(cpus)}:{more} the process sees no more. All shares in this report are of "
            f"{cpus_text(cpus)}.",
            {"stopped_share": cpus / procs, "procs": procs, "cpus": cpus},
            advice=f"Set GOMAXPROCS={cpus}, or less if a CPU quota allows less (cpu.max).",
            headline=f"GOMAXPROCS is {procs:.0f}, but{more} the process sees only "
            f"{cpus_text(cpus)}: threads can wait for each other, and marking counts that as GC "
            "CPU.",
        )


@rule(
    "GC013",
    "cpu-quota-throttling",
    meaning="The CPU quota can stop the program in the middle of a pause, which makes the "
    "pause many times longer.",
    condition="GOMAXPROCS is at least {t.quota_times:g} times the known CPU limit. If no CPU "
    "limit is known: GOMAXPROCS is at least {t.many_procs}, the median live heap is under "
    "{t.small_heap_mib:.0f} MiB, a mark termination took at least {t.stw_bad_ms:g} ms, and over "
    "{t.late_pause_share:.1%} of the pauses, at least {t.late_pauses}, took over "
    "{t.stw_warn_ms:g} ms and more than {t.late_pause_times:g} times the median of their phase "
    "(Go 1.18 and later).",
    advice="Set GOMAXPROCS to the CPU quota, or raise the quota.",
    needs="a known CPU limit, or late pauses of a small heap as evidence",
    contradicted_by="`nr_throttled` in cpu.stat that does not rise",
    source="golang/go#59715, #73193; istio/istio#10855",
)
def cpu_quota_throttling(facts: ProcessFacts) -> Iterator[Evidence]:
    """Compares GOMAXPROCS with the CPU limit.

    If no limit is known, looks for long pauses with a small heap.
    """
    t, cycles = facts.thresholds, facts.cycles
    procs = column_of(cycles, "procs").max()
    if not isinstance(procs, int):
        return
    late = LatePauses.of(cycles, t)
    if (cpus := facts.settings.value("cpu_limit")) is not None:
        if procs >= t.quota_times * cpus:
            yield Evidence(
                "warn",
                f"GOMAXPROCS is {procs}, but the CPU limit is {cpus:g}: when all threads are "
                "busy, they use up the quota early in a period, and the kernel stops them for the "
                f"rest of it, also in the middle of a pause. {_throttled(late)}",
                {"procs": procs, "cpu_limit": cpus, "late_pauses": late.late},
                advice=f"Set GOMAXPROCS={math.ceil(cpus)}, or raise the quota.",
                headline=f"GOMAXPROCS is {procs}, but the CPU limit is {cpus:g}: when all threads "
                "are busy, the program can be throttled, also in the middle of a pause.",
            )
        return
    if not late.are_common:
        return
    long = where(cycles, cycles["stw_mark_term_ms"] >= t.stw_bad_ms)
    live = facts.summary.live_heap_p50_mib
    small = live is not None and live < t.small_heap_mib
    if procs >= t.many_procs and small and len(long) and cycles["assist_cpu_ms"].count():
        longest = maximum(long["stw_mark_term_ms"])
        waited = (
            f"Mark terminations take up to {duration_text(longest / 1000)}, far too long for "
            f"{live:,.0f} MiB of live heap on {procs} processors, and {late}: threads probably "
            "waited for a CPU, because of a quota or other programs."
        )
        yield Evidence(
            "warn",
            waited,
            {"procs": procs, "stw_mark_term_max_ms": long["stw_mark_term_ms"].max()},
            examples=example_lines(long, "stw_mark_term_ms"),
            advice="Check the quota (cpu.max) and `nr_throttled` in cpu.stat. Raise a quota of "
            "less than 1 CPU, and set GOMAXPROCS to the quota, rounded up.",
            headline=waited,
        )


def _throttled(late: LatePauses) -> str:
    """Returns whether the pauses show throttling, as a sentence."""
    if late.are_common:
        return f"That probably happened: {late}."
    return "The log does not show whether that happened; `nr_throttled` in cpu.stat does."
