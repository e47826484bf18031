"""Rules about the allocation rate."""

from __future__ import annotations

from collections.abc import Iterator

from gctrace_analyzer.analysis.rules.finding import Evidence, ProcessFacts, percent, total
from gctrace_analyzer.analysis.rules.registry import rule


@rule(
    "GC033",
    "mutator-slowed-in-gc",
    meaning="The program allocates at half its rate or less while GC is marking.",
    condition="The allocation rate while marking is under {t.slowed_rate:g} of the rate "
    "between cycles, even if the MiB that truncation may hide is added in each of at least "
    "{t.min_cycles} cycles, after the first {t.warm_up_s:g} s, and GC takes over "
    "{t.slowed_gc_cpu:.0%} of the CPU.",
    advice="Make cycles less frequent (a higher GOGC or memory limit), because each one adds "
    "latency.",
    needs="allocation while marking and between cycles",
    contradicted_by="a load that pauses by itself when GC runs, or allocates a few large blocks",
    source="measured: 0.84 to 0.95 in calm runs, 0.18 to 0.46 in saturated ones",
    explained_by=("GC016", "GC015", "GC001", "GC005"),
)
def mutator_slowed_in_gc(facts: ProcessFacts) -> Iterator[Evidence]:
    """Compares the allocation rate while marking with the rate between cycles."""
    t, cycles = facts.thresholds, facts.warmed_up
    while_marking_mib = total(cycles["heap_end_mib"] - cycles["heap_start_mib"])
    marking_s = total(cycles["concurrent_mark_ms"]) / 1000
    allocated_mib, span_s = total(cycles["alloc_mib"]), total(cycles["interval_s"])
    if not marking_s or span_s <= marking_s or not allocated_mib:
        return
    between = (allocated_mib - while_marking_mib) / (span_s - marking_s)
    # Each size may hide up to one MiB.
    ratio = (while_marking_mib + len(cycles)) / marking_s / max(between, 1e-9)
    is_costly = (facts.summary.gc_cpu_share or 0) > t.slowed_gc_cpu
    if len(cycles) >= t.min_cycles and ratio < t.slowed_rate and is_costly:
        yield Evidence(
            "info",
            f"While GC is marking, the program allocates at {percent(ratio)} of its rate "
            "between cycles, or less.",
            {"alloc_rate_ratio": ratio},
        )
