"""Plots over time: timeline, frequency, mark assist and heap goal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.pauses import PHASES
from gctrace_analyzer.present.plots import intervals, steps
from gctrace_analyzer.present.plots.axis import Axis, limits
from gctrace_analyzer.present.plots.binning import distribution
from gctrace_analyzer.present.plots.events import timed
from gctrace_analyzer.present.plots.figure import Figure, Mark, Panel
from gctrace_analyzer.present.plots.memory import at_deaths, memstats_marks
from gctrace_analyzer.present.plots.palette import LOOKS

if TYPE_CHECKING:
    from gctrace_analyzer.present.report import Report


_GC_CPU = {"with idle marking": "gc_cpu_with_idle_share", "GC CPU": "gc_cpu_share"}
_ASSIST = "Mark assist against allocation"
_GOAL = "Heap goal and what sets it"


def timeline(report: Report, axis: Axis) -> Figure:
    """Returns the plot of heap, pauses, GC CPU, assists and allocation over time."""
    panels = intervals.panels(report, axis) if axis.by_dumps else _panels(report, axis)
    return timed("timeline", "Timeline", report, axis, panels)


def _panels(report: Report, axis: Axis) -> tuple[Panel, ...]:
    return (
        _heap(report, axis),
        _pauses(axis),
        _gc_cpu(axis),
        _assist(axis),
        _allocation(axis),
    )


def frequency(report: Report, axis: Axis) -> Figure:
    """Returns the plot of the time between cycles: over time, and its distribution."""
    if axis.by_dumps:
        return timed("frequency", "GC frequency", report, axis, (intervals.frequency(axis),))
    times = axis.cycles["interval_s"]
    values, share = distribution(times.filter(times > 0), axis.bins)
    cycles = axis.mark(
        "interval",
        "interval_s",
        LOOKS["interval"],
        only=pl.col("interval_s") > 0,
        kind="points",
    )
    panels = (
        Panel(
            "interval",
            "Time between cycles, s",
            (cycles,),
            unit="s",
            log_y=True,
            x_title=axis.title,
            from_zero=False,
            is_timed=True,
        ),
        Panel(
            "distribution",
            "Cumulative share of intervals",
            (Mark("intervals", values, share, "step", LOOKS["interval"]),),
            percent=True,
            x_title="time between cycles, s",
            x_unit="s",
            log_x=True,
        ),
    )
    return timed("frequency", "GC frequency", report, axis, panels, shared=False)


def assist(report: Report, axis: Axis) -> Figure:
    """Returns the plot of mark assist together with the allocation rate that causes it."""
    if axis.by_dumps:
        return timed("assist", _ASSIST, report, axis, ())
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
        LOOKS["mark assist"],
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
            x_unit="MiB/s",
        ),
    )
    figure = timed("assist", _ASSIST, report, axis, panels, shared=False)
    return figure.noting(*notes)


def goal(report: Report, axis: Axis) -> Figure:
    """Returns the plot of the heap goal, what sets it, and the effective GOGC."""
    if axis.by_dumps:
        return timed("goal", _GOAL, report, axis, ())
    setters = axis.cycles["goal_set_by"].drop_nulls().unique().sort().to_list()
    goals = tuple(
        axis.mark(
            f"goal set by {setter.replace('-', ' ')}",
            "heap_goal_mib",
            LOOKS[setter],
            only=pl.col("goal_set_by") == setter,
            kind="points",
        )
        for setter in setters
    )
    live = axis.mark("live heap", "heap_live_mib", LOOKS["heap start"])
    gogc = axis.mark("effective GOGC", "drawn_gogc", LOOKS["effective GOGC"])
    panels = (
        Panel(
            "goal",
            "Heap goal, MiB",
            (live, *goals),
            unit="MiB",
            levels=tuple(limits(report)),
            is_timed=True,
        ),
        Panel(
            "gogc",
            "Effective GOGC, %",
            (gogc,),
            unit="%",
            is_timed=True,
            ceiling=axis.ceiling("drawn_gogc"),
        ),
    )
    return timed("goal", _GOAL, report, axis, panels)


def _heap(report: Report, axis: Axis) -> Panel:
    forced = axis.mark(
        "forced cycle", "heap_start_mib", LOOKS["forced"], only=pl.col("forced"), kind="points"
    )
    marks = [
        axis.mark("heap at cycle start", "heap_start_mib", LOOKS["heap start"]),
        axis.mark("live heap (marked)", "heap_live_mib", LOOKS["live heap"]),
        axis.mark("heap goal", "heap_goal_mib", LOOKS["heap goal"]),
        *([forced] if forced.y.count() else []),
        *memstats_marks(report, axis),
        *at_deaths(report, axis),
    ]
    return Panel(
        "heap",
        "Heap, MiB",
        tuple(marks),
        unit="MiB",
        levels=tuple(limits(report)),
        is_timed=True,
    )


def _gc_cpu(axis: Axis) -> Panel:
    title, columns = "GC CPU, share of all CPU, per cycle", _GC_CPU
    few = steps.are_few(axis)
    marks = tuple(
        steps.since_before(axis, name, column, LOOKS[name])
        if few
        else axis.mark(name, column, LOOKS[name], weight="elapsed_s")
        for name, column in columns.items()
    )
    ceiling = axis.ceiling(*columns.values())
    return Panel("gc_cpu", title, marks, percent=True, is_timed=True, ceiling=ceiling)


def _assist(axis: Axis) -> Panel:
    look = LOOKS["mark assist"]
    if steps.are_few(axis):
        each = axis.mark("mark assist", "assist_share", look, **steps.points_of(axis))
    else:
        each = axis.mark("mark assist", "assist_share", look, weight="gc_cpu_ms", filled=True)
    return Panel(
        "assist",
        "Mark assist, share of the cycle's GC CPU",
        (each,),
        percent=True,
        x_title=axis.title,
        is_timed=True,
    )


def _pauses(axis: Axis) -> Panel:
    how = steps.points_of(axis)
    marks = tuple(
        axis.mark(phase, column, LOOKS[phase], **how) for phase, column in PHASES.items()
    )
    return Panel("pauses", "Stop-the-world pauses, ms", marks, unit="ms", is_timed=True)


def _allocation(axis: Axis) -> Panel:
    name, column, look = "allocation", "alloc_mib_per_s", LOOKS["allocation"]
    if steps.are_few(axis):
        each = steps.until_next(axis, name, column, look)
    else:
        each = axis.mark(name, column, look, weight="interval_s", filled=True)
    return Panel(
        "allocation",
        "Allocation, MiB/s",
        (each,),
        unit="MiB/s",
        x_title=axis.title,
        is_timed=True,
        ceiling=axis.ceiling(column),
    )


def _highest(points: pl.DataFrame, bins: int) -> pl.DataFrame:
    step = (pl.col("alloc_mib_per_s") / pl.col("alloc_mib_per_s").max() * bins).floor()
    return (
        points.group_by(step.alias("step"), maintain_order=True)
        .agg(pl.all().get(pl.col("assist_share").arg_max()))
        .sort("step")
    )
