"""Rules about marking: what is marked besides the heap, by which workers, and how fast."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from gctrace_analyzer.analysis.rules.finding import (
    Evidence,
    ProcessFacts,
    cycles_text,
    example_lines,
    maximum,
    minimum,
)
from gctrace_analyzer.analysis.rules.registry import rule
from gctrace_analyzer.ingest.rows import not_null, where
from gctrace_analyzer.units import digits, duration_text

_LARGE_ROOTS = (
    "After the first {{t.warm_up_s:g}} s, the median of {what} is at least "
    "{{t.roots_min_mib:g}} MiB and over {{t.roots_share:.0%}} of the median live heap. It is a "
    "warning if they exceed the live heap and GC takes over {{t.gc_cpu_warn:.0%}} of the CPU."
)


@rule(
    "GC029",
    "large-stacks",
    meaning="Goroutine stacks are large: GC scans what is in use of them, and they raise the heap "
    "goal.",
    condition=_LARGE_ROOTS.format(what="the stacks"),
    advice="Use fewer goroutines, or shallower ones; stacks count towards the heap goal.",
    needs="stacks that each line prints (Go 1.18 and later)",
    contradicted_by="few goroutines in /debug/pprof/goroutine",
    source="gcControllerState.commit in runtime/mgcpacer.go (Go 1.18 and later)",
)
def large_stacks(facts: ProcessFacts) -> Iterator[Evidence]:
    """Compares the stacks with the live heap."""
    yield from _large_roots(facts, "stacks_mib", "Stacks")


@rule(
    "GC030",
    "large-globals",
    meaning="Global variables are a large part of what GC has to mark.",
    condition=_LARGE_ROOTS.format(what="the globals"),
    advice="Keep large tables in globals free of pointers, or smaller: each cycle marks globals "
    "with pointers, and the heap goal counts them.",
    needs="globals that each line prints (Go 1.18 and later)",
    contradicted_by="nothing: the runtime counts them",
    source="golang/go#19839",
)
def large_globals(facts: ProcessFacts) -> Iterator[Evidence]:
    """Compares the globals with the live heap."""
    yield from _large_roots(facts, "globals_mib", "Global variables")


def _large_roots(facts: ProcessFacts, column: str, words: str) -> Iterator[Evidence]:
    t = facts.thresholds
    if maximum(facts.warmed_up[column]) < t.roots_min_mib:
        return
    # A mean of two distant sizes was never the size.
    size, live = (
        not_null(facts.warmed_up[name]).quantile(0.5, "lower")
        for name in (column, "heap_live_mib")
    )
    if size is None or live is None:
        return
    if size >= t.roots_min_mib and size > t.roots_share * max(live, 1):
        text = f"{words} of {size:,.0f} MiB, next to a live heap of {live:,.0f} MiB,"
        # Up to Go 1.19 the lines print the allocated stacks, of which GC scans what is in use.
        is_scanned = column != "stacks_mib" or not facts.may_be_before(1, 20)
        most = f"{'are' if is_scanned else 'may be'} most of what GC scans, and raise"
        most = most if size > live else "raise"
        text = f"{text} {most} the heap goal."
        is_costly = (facts.summary.gc_cpu_share or 0.0) > t.gc_cpu_warn
        yield Evidence(
            "warn" if size > live and is_costly else "info",
            text,
            {column: size, "heap_live_mib": live, "roots_share": size / (size + live)},
            headline=text,
        )


_MARKED = (
    *("concurrent_mark_ms", "assist_cpu_ms", "background_cpu_ms", "idle_cpu_ms"),
    *("heap_live_mib", "stacks_mib", "globals_mib", "source", "line_no"),
)
"""Columns that show how much each cycle marked, and in how much time."""


_SLOW = "Look for swapping, CPU throttling, or a heap of very many small objects with pointers."
_NOT_PRINTED = (
    " Large goroutine stacks and globals, which Go before 1.18 marks and does not print, look the "
    "same."
)


@rule(
    "GC032",
    "low-mark-throughput",
    meaning="Marking is slow for the size of the heap, so cycles take long.",
    condition="In a cycle that marks for at least {t.slow_mark_ms:.0f} ms with a live heap of "
    "1 MiB or more, (live heap + stacks + globals) / marking CPU time is under "
    "{t.mark_mib_per_cpu_s:.0f} MiB per CPU second. A warning if there are at least "
    "{t.min_cycles} such cycles, or if a cycle marks for at least "
    "{t.starved_mark_ms:,.0f} ms and uses under {t.starved_cpu:.0%} of one CPU for it.",
    advice=_SLOW,
    needs="live heap and marking time of cycles of 100 ms and longer",
    contradicted_by="late pauses: the host took the CPU away, and the heap is not the cause",
    source="measured: 1.8 GB per CPU second of pointer trees",
    explained_by=("GC016", "GC013", "GC012"),
)
def low_mark_throughput(facts: ProcessFacts) -> Iterator[Evidence]:
    """Looks for cycles that mark little memory per CPU second."""
    t = facts.thresholds
    long = where(facts.cycles[[*_MARKED]], facts.cycles["concurrent_mark_ms"] >= t.slow_mark_ms)
    if long.is_empty():
        return
    spent_ms = pl.col("assist_cpu_ms") + pl.col("background_cpu_ms") + pl.col("idle_cpu_ms")
    roots = pl.col("stacks_mib").fill_null(0) + pl.col("globals_mib").fill_null(0)
    # The sizes are truncated to whole MiB; adding 1 MiB compensates for that.
    rate = (pl.col("heap_live_mib") + roots + 1) / spent_ms * 1000
    # With hardly any live heap, an idle worker may have waited for a stack to scan.
    is_slow = (spent_ms > 0) & (pl.col("heap_live_mib") > 0) & (rate < t.mark_mib_per_cpu_s)
    slow = long.filter(is_slow).with_columns(rate=rate)
    starved = long.filter(
        pl.col("concurrent_mark_ms") >= t.starved_mark_ms,
        spent_ms < t.starved_cpu * pl.col("concurrent_mark_ms"),
    )
    if len(starved):
        yield _starved(starved.with_columns(spent_ms=spent_ms))
    elif len(slow):
        lowest = minimum(slow["rate"])
        yield Evidence(
            "warn" if len(slow) >= t.min_cycles else "info",
            f"{cycles_text(len(slow))} marked less than {t.mark_mib_per_cpu_s:.0f} MiB per CPU "
            f"second; the slowest, {digits(lowest, 3)} MiB.",
            {"mib_per_cpu_s": lowest},
            examples=example_lines(slow, "concurrent_mark_ms"),
            advice=None if facts.new_pacer else _SLOW + _NOT_PRINTED,
        )


def _starved(cycles: pl.DataFrame) -> Evidence:
    """Returns that these cycles waited while marking."""
    longest = cycles.sort("concurrent_mark_ms", descending=True).row(0, named=True)
    mark_s, spent_s = (longest[name] / 1000 for name in ("concurrent_mark_ms", "spent_ms"))
    text = f"marking took {duration_text(mark_s)} for {duration_text(spent_s)} of CPU time"
    return Evidence(
        "warn",
        f"Marking waited in {cycles_text(len(cycles))}; in the longest, {text}.",
        {"concurrent_mark_ms": longest["concurrent_mark_ms"]},
        examples=example_lines(cycles, "concurrent_mark_ms"),
        advice="Check the CPU quota (`nr_throttled` in cpu.stat), other programs on the same CPUs, "
        "swapping, and whether the host was suspended. Up to Go 1.13, a loop without function "
        "calls makes marking wait as well.",
        headline=f"Marking waited, for CPU or for a goroutine: {text}.",
    )
