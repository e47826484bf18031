"""Plots over time: timeline, frequency, mark assist and heap goal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.pauses import PHASES
from gctrace_analyzer.present.plots.axis import Axis, limits, timed
from gctrace_analyzer.present.plots.binning import distribution
from gctrace_analyzer.present.plots.figure import COLORS, Figure, Mark, Panel
from gctrace_analyzer.present.plots.memory import memstats_marks

if TYPE_CHECKING:
    from gctrace_analyzer.present.report import Report


def timeline(report: Report, axis: Axis) -> Figure:
    """Returns the plot of heap, GC CPU, assists, pauses and allocation over time."""
    panels = (
        _heap(report, axis),
        _gc_cpu(axis),
        _assist(axis),
        _pauses(axis),
        _allocation(axis),
    )
    return timed("timeline", "Timeline", report, axis, panels)


def frequency(report: Report, axis: Axis) -> Figure:
    """Returns the plot of the time between cycles: over time, and its distribution."""
    intervals = axis.cycles["interval_s"]
    values, share = distribution(intervals.filter(intervals > 0), axis.bins)
    cycles = axis.mark(
        "interval",
        "interval_s",
        COLORS["interval"],
        only=pl.col("interval_s") > 0,
        kind="points",
    )
    panels = (
        Panel(
            "interval",
            "Time between cycles, s",
            (cycles,),
            log_y=True,
            x_title=axis.title,
            from_zero=False,
        ),
        Panel(
            "distribution",
            "Cumulative share of intervals",
            (Mark("intervals", values, share, "step", COLORS["interval"]),),
            percent=True,
            x_title="time between cycles, s",
            log_x=True,
        ),
    )
    return timed("frequency", "GC frequency", report, axis, panels, shared=False)


def assist(report: Report, axis: Axis) -> Figure:
    """Returns the plot of mark assist together with the allocation rate that causes it."""
    found = axis.cycles.select("alloc_mib_per_s", "assist_share", "gc_num", "source", "line_no")
    against = found.drop_nulls(["alloc_mib_per_s", "assist_share"])
    notes: tuple[str, ...] = ()
    if len(against) > 2 * axis.bins:
        # Keep the highest share for each step of the allocation rate.
        against = _highest(against, axis.bins)
        notes = (
            f"Share against allocation: the highest share in each of {axis.bins:,} steps, "
            f"from {len(found):,} cycles.",
        )
    each = Mark(
        "cycle",
        against["alloc_mib_per_s"],
        against["assist_share"],
        "points",
        COLORS["mark assist"],
        where=against.select(pl.format("gc {}", "gc_num")).to_series(),
        size=4,
    )
    panels = (
        _assist(axis),
        _allocation(axis),
        Panel(
            "against",
            "Mark assist, share of the cycle's GC CPU",
            (each,),
            percent=True,
            x_title="allocation, MiB/s",
        ),
    )
    figure = timed(
        "assist", "Mark assist against allocation", report, axis, panels, shared=False
    )
    return figure.noting(*notes)


def goal(report: Report, axis: Axis) -> Figure:
    """Returns the plot of the heap goal, what sets it, and the effective GOGC."""
    setters = axis.cycles["goal_set_by"].drop_nulls().unique().sort().to_list()
    goals = tuple(
        axis.mark(
            f"goal set by {setter.replace('-', ' ')}",
            "heap_goal_mib",
            COLORS.get(setter, COLORS["heap goal"]),
            only=pl.col("goal_set_by") == setter,
            kind="points",
        )
        for setter in setters
    )
    live = axis.mark("live heap", "heap_live_mib", COLORS["live heap"])
    gogc = axis.mark(
        "effective GOGC",
        "effective_gogc",
        COLORS["gogc"],
        only=(pl.col("effective_gogc") > 0) & (pl.col("goal_set_by") != "heap-minimum"),
    )
    panels = (
        Panel("goal", "Heap goal, MiB", (live, *goals), levels=tuple(limits(report))),
        Panel("gogc", "Effective GOGC, %", (gogc,)),
    )
    return timed("goal", "Heap goal and what sets it", report, axis, panels)


def _heap(report: Report, axis: Axis) -> Panel:
    marks = [
        axis.mark("heap at cycle start", "heap_start_mib", COLORS["heap start"]),
        axis.mark("live heap (marked)", "heap_live_mib", COLORS["live heap"]),
        axis.mark("heap goal", "heap_goal_mib", COLORS["heap goal"]),
        *memstats_marks(report, axis),
    ]
    return Panel("heap", "Heap, MiB", tuple(marks), levels=tuple(limits(report)))


def _gc_cpu(axis: Axis) -> Panel:
    marks = (
        axis.mark(
            "with idle marking",
            "gc_cpu_with_idle_share",
            COLORS["with idle marking"],
            weight="elapsed_s",
        ),
        axis.mark("GC CPU", "gc_cpu_share", COLORS["GC CPU"], weight="elapsed_s"),
    )
    return Panel("gc_cpu", "GC CPU, share of all CPU, per cycle", marks, percent=True)


def _assist(axis: Axis) -> Panel:
    each = axis.mark(
        "mark assist", "assist_share", COLORS["mark assist"], weight="gc_cpu_ms", filled=True
    )
    return Panel(
        "assist",
        "Mark assist, share of the cycle's GC CPU",
        (each,),
        percent=True,
        x_title=axis.title,
    )


def _pauses(axis: Axis) -> Panel:
    marks = tuple(
        axis.mark(phase, column, COLORS[phase], kind="points", size=4)
        for phase, column in PHASES.items()
    )
    return Panel("pauses", "Stop-the-world pauses, ms", marks)


def _allocation(axis: Axis) -> Panel:
    each = axis.mark(
        "allocation", "alloc_mib_per_s", COLORS["allocation"], weight="interval_s", filled=True
    )
    return Panel("allocation", "Allocation, MiB/s", (each,), x_title=axis.title)


def _highest(points: pl.DataFrame, bins: int) -> pl.DataFrame:
    step = (pl.col("alloc_mib_per_s") / pl.col("alloc_mib_per_s").max() * bins).floor()
    return (
        points.group_by(step.alias("step"), maintain_order=True)
        .agg(pl.all().get(pl.col("assist_share").arg_max()))
        .sort("step")
    )
