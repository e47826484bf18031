"""What makes the figures of a log less certain than they look, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gctrace_analyzer.analysis.thresholds import Thresholds

_OLD = ("gc10", "gc11", "gc12x", "gc13", "gc14")


def caveats(
    cycles: pl.DataFrame,
    processes: pl.DataFrame,
    impossible: Mapping[str, int],
    check_points: float | None,
    thresholds: Thresholds,
) -> Iterator[str]:
    """A sentence for each thing to keep in mind."""
    yield from _about_reading(cycles, processes, impossible)
    yield from _about_length(cycles, thresholds)
    yield from _about_meaning(cycles)
    if check_points is not None and abs(check_points) > thresholds.log_check_points:
        side = "more" if check_points > 0 else "less"
        yield (
            f"The log disagrees with itself: its lines add up to {abs(check_points):.1f} "
            f"points {side} GC CPU than it prints. Lines may be lost, or several programs "
            "mixed up."
        )


def _about_reading(
    cycles: pl.DataFrame, processes: pl.DataFrame, impossible: Mapping[str, int]
) -> Iterator[str]:
    missing = int(processes["missing_cycles"].sum())
    if missing:
        yield (
            f"{missing:,} of {missing + len(cycles):,} cycles have no line here: totals of "
            "CPU, pauses and allocation are too low by their share."
        )
    if len(processes) > 1:
        yield (
            f"{len(processes)} program starts are summed up here; `processes` has each by "
            "itself."
        )
    no_goal = impossible.get("heap_goal_mib", 0)
    if no_goal:
        cycles_had = "1 cycle" if no_goal == 1 else f"{no_goal:,} cycles"
        yield f"{cycles_had} had no heap goal: GOGC=off."
    others = sum(count for name, count in impossible.items() if name != "heap_goal_mib")
    if others == 1:
        yield "1 value that cannot be (a wrapped clock) was left out."
    elif others:
        yield f"{others:,} values that cannot be (wrapped clocks) were left out."


def _about_length(cycles: pl.DataFrame, thresholds: Thresholds) -> Iterator[str]:
    if 0 < len(cycles) < thresholds.short_log_cycles:
        count = "1 cycle" if len(cycles) == 1 else f"{len(cycles)} cycles"
        yield f"Only {count}: rates and percentiles are rough."


def _about_meaning(cycles: pl.DataFrame) -> Iterator[str]:
    shapes = set(cycles["format"].unique())
    if shapes & set(_OLD):
        yield "Go 1.4 and before print no times and no CPU: there are no rates and no shares."
    # What Go 1.20 fixed cannot be told from the line, but 1.18 and 1.19 are long out of use.
    forced = cycles.filter(pl.col("forced") & (pl.col("format") == "gc16"))
    if len(forced):
        yield (
            "forced_cycles is an upper bound: Go 1.9 to 1.19 also mark a cycle that a "
            "runtime.GC() call had to wait for."
        )
    pauses = [cycles[name].drop_nulls() for name in ("stw_sweep_term_ms", "stw_mark_term_ms")]
    if sum((each == 0).sum() for each in pauses) > sum(map(len, pauses)) / 2:
        yield "The clock is too coarse for the pauses: most read 0."
    if cycles["leak_check"].any():
        yield (
            "Goroutine leak checks restart mark termination; those pauses are not in the "
            "printed ones (5 to 9 % of the total, measured)."
        )
