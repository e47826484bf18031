"""Values of a record that fit their type but cannot be true: overflows of the runtime, and damage.

Some are beyond what any machine has. Others contradict their own record: in a pause, processors
have only as much CPU time as the pause lasts, and the heap does not shrink while it is marked. The
limits are far outside of what real programs print.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import polars as pl

from gctrace_analyzer.ingest import numbers

NO_GOAL_MIB = 1 << 40
"""The runtime prints a goal of this size or more for "no goal" (GOGC=off)."""

ABSURD_MS = 1e9
"""Eleven days; a negative duration, printed unsigned, is about 1.8e13 ms."""

ABSURD_S = 1e9
"""Thirty years; an `@` that wrapped around prints 18446744073 s."""

ABSURD_MIB = numbers.ADDRESSABLE_BYTES >> 20

ABSURD_PROCS = 1 << 16
"""No machine has as many processors."""

_DURATIONS = (
    "stw_sweep_term_ms", "concurrent_mark_ms", "stw_mark_term_ms", "stw_sweep_term_cpu_ms",
    "assist_cpu_ms", "background_cpu_ms", "idle_cpu_ms", "stw_mark_term_cpu_ms",
)  # fmt: skip
_SIZES = ("heap_start_mib", "heap_end_mib", "heap_live_mib", "stacks_mib", "globals_mib")
_LIMITS = {
    "start_s": ABSURD_S,
    "heap_goal_mib": NO_GOAL_MIB,
    "procs": ABSURD_PROCS,
    **dict.fromkeys(_DURATIONS, ABSURD_MS),
    **dict.fromkeys(_SIZES, ABSURD_MIB),
}

_PAUSES = ("stw_sweep_term", "stw_mark_term")
_MARK_CPU = ("assist_cpu_ms", "background_cpu_ms", "idle_cpu_ms")

_PAUSE_TIMES, _PAUSE_SLACK_MS = 100, 1000.0
"""CPU time of a pause: the pause, times the processors at most. Measured: rounding."""

_MARK_TIMES, _MARK_SLACK_MS = 100, 1000.0
"""CPU time of marking: its duration times the processors at most. Measured: 5.7 times that, as
assists are measured by goroutine."""

_HEAP_TIMES, _HEAP_SLACK_MIB = 10, 4096
"""The heap of the end is at least as large as that of the start and the live one, and what was
allocated while marking counts as live. Measured: 1 MiB and 1.2 times what it should be."""

_ROOTS_TIMES, _ROOTS_SLACK_MIB = 100, 1 << 14
"""Stacks and globals count for the goal by GOGC, unless the memory limit sets it."""

_SUSPECT = {
    **dict.fromkeys(
        (f"{each}{of}_ms" for each in _PAUSES for of in ("", "_cpu")), _PAUSE_SLACK_MS
    ),
    **dict.fromkeys(_MARK_CPU, _MARK_SLACK_MS),
    **dict.fromkeys(("heap_start_mib", "heap_end_mib", "heap_live_mib"), _HEAP_SLACK_MIB),
    **dict.fromkeys(("stacks_mib", "globals_mib"), _ROOTS_SLACK_MIB),
}
"""Up to these values, none contradicts others: most logs need not be searched."""


def without_impossible(frame: pl.DataFrame) -> tuple[pl.DataFrame, Counter[str]]:
    """Returns the cycles with null for impossible values, and their number by column."""
    impossible = Counter[str]()
    largest = {name: frame[name].max() or 0 for name in _LIMITS}
    for name, limit in _LIMITS.items():
        if largest[name] >= limit:  # type: ignore[operator]  # all are numbers
            absurd = (frame[name] >= limit).fill_null(value=False)
            impossible[name] = int(absurd.sum())
            frame = frame.with_columns(pl.when(~absurd).then(pl.col(name)).alias(name))
    if (frame["procs"] == 0).any():
        impossible["procs"] += int((frame["procs"] == 0).sum())
        frame = frame.with_columns(pl.when(pl.col("procs") > 0).then("procs").alias("procs"))
    frame = _without_stale(frame)
    suspect = [name for name, least in _SUSPECT.items() if largest[name] > least]  # type: ignore[operator]
    return (_without_contradictions(frame, impossible) if suspect else frame), impossible


def _without_stale(frame: pl.DataFrame) -> pl.DataFrame:
    # Only Go 1.8 and earlier print a forced cycle without concurrent marking; its assist,
    # background and idle times are those of the last concurrent cycle (golang/go#15068).
    if not frame["forced"].any():
        return frame
    stale = (pl.col("forced") & (pl.col("concurrent_mark_ms") == 0)).fill_null(value=False)
    if not frame.select(stale.any()).item():
        return frame
    return frame.with_columns(
        pl.when(~stale).then(pl.col(name)).alias(name) for name in _MARK_CPU
    )


def _without_contradictions(frame: pl.DataFrame, impossible: Counter[str]) -> pl.DataFrame:
    """Returns the cycles without values that contradict others of their record, and counts them."""
    checks = _contradicting()
    counts = frame.select(**_sums()).row(0, named=True)
    damaged = {name: counts[name] for name in checks if counts[name]}
    impossible.update(damaged)
    # All are checked against the values as printed.
    return frame.with_columns(
        pl.when(~checks[name]).then(pl.col(name)).alias(name) for name in damaged
    )


@cache
def _sums() -> dict[str, pl.Expr]:
    return {name: each.sum() for name, each in _contradicting().items()}


@cache
def _contradicting() -> dict[str, pl.Expr]:
    """Returns for each column whether its value contradicts others of its record."""
    procs, mark_ms = pl.col("procs"), pl.col("concurrent_mark_ms")
    found: dict[str, pl.Expr] = {}
    for pause in _PAUSES:
        wall, cpu = pl.col(f"{pause}_ms"), pl.col(f"{pause}_cpu_ms")
        # Nothing shows which of the two is damaged.
        either = (wall > _PAUSE_TIMES * cpu + _PAUSE_SLACK_MS) | (
            cpu > _PAUSE_TIMES * procs * wall + _PAUSE_SLACK_MS
        )
        found |= {f"{pause}_ms": either, f"{pause}_cpu_ms": either}
    most_ms = _MARK_TIMES * procs * mark_ms + _MARK_SLACK_MS
    found |= {name: pl.col(name) > most_ms for name in _MARK_CPU}
    begin, end, live = (
        pl.col(f"heap_{name}_mib").cast(pl.Float64) for name in ("start", "end", "live")
    )
    # Up to Go 1.4, which prints no processors, the heap is swept before its end is measured.
    concurrent = procs.is_not_null()
    begin_off, live_off = (
        (each > _HEAP_TIMES * end + _HEAP_SLACK_MIB) & concurrent for each in (begin, live)
    )
    end_off = end > begin + _HEAP_TIMES * live + _HEAP_SLACK_MIB
    largest = pl.max_horizontal(end, pl.col("heap_goal_mib"))
    found |= {
        name: pl.col(name) > _ROOTS_TIMES * largest + _ROOTS_SLACK_MIB
        for name in ("stacks_mib", "globals_mib")
    }
    found |= {
        "heap_start_mib": begin_off & ~live_off,
        "heap_live_mib": live_off & ~begin_off,
        "heap_end_mib": concurrent & (end_off | (begin_off & live_off)),
    }
    return {name: each.fill_null(value=False) for name, each in found.items()}
