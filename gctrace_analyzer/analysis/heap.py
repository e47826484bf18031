"""Allocation and live heap."""

from __future__ import annotations

import polars as pl

from gctrace_analyzer.analysis.cycles import before

_CACHED_MIB_PER_P = 0.1
"""What a processor's span cache holds but has not handed out: some twenty half-used spans.

Our heuristic, from 160 measured runs on two processors: 0.1 to 0.4 MiB per cycle.
"""

_CACHED_AT_MOST = 0.08
"""Of what a cycle allocates: an idle processor's cache is empty."""


def alloc_while_marking_mib() -> pl.Expr:
    """Allocated between a cycle's start and its mark termination; null before Go 1.5."""
    timed = pl.col("start_s").is_not_null()
    return pl.when(timed).then(pl.col("heap_end_mib") - pl.col("heap_start_mib"))


def alloc_before_mib() -> pl.Expr:
    """Allocated between the cycle before and this one's start; null where a line is missing.

    The runtime counts a span as allocated when a processor takes it, so a cycle's start shows
    somewhat more heap than was handed out (mcache.refill, runtime/mcache.go); that is taken
    off. Number 1 counts from the program's start.
    """
    timed = pl.col("start_s").is_not_null()
    first = pl.when(pl.col("gc_num") == 1).then("heap_start_mib")
    grown = (pl.col("heap_start_mib") - before("heap_live_mib")).fill_null(first)
    cached = pl.min_horizontal(
        _CACHED_MIB_PER_P * pl.col("procs"),
        _CACHED_AT_MOST * (grown + alloc_while_marking_mib()).clip(0),
    )
    return pl.when(timed).then(grown - cached)


def true_live_mib() -> pl.Expr:
    """Live heap without what was allocated, and so kept, during the marking itself.

    The program's own constant: equal within 2 % at every GOGC and limit, where the marked
    live heap moves by a third. Each of the three figures is cut to whole MiB, which takes
    half a MiB off the mean.
    """
    return pl.col("heap_live_mib") + 0.5 - alloc_while_marking_mib()
