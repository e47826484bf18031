"""The plot of mark assist together with the allocation rate that causes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.present.plots import steps
from gctrace_analyzer.present.plots.events import timed
from gctrace_analyzer.present.plots.figure import Figure, Mark, Panel, amounts, shares
from gctrace_analyzer.present.plots.palette import LOOKS

if TYPE_CHECKING:
    from gctrace_analyzer.present.plots.axis import Axis
    from gctrace_analyzer.present.report import Report

_TITLE = "Mark assist against allocation"
_SHARE = "Mark assist, share of the cycle's GC CPU"


def assist(report: Report, axis: Axis) -> Figure:
    """Returns the plot of mark assist together with the allocation rate that causes it."""
    if axis.by_dumps:
        return timed("assist", _TITLE, report, axis, ())
    cycles = axis.cycles.select("alloc_mib_per_s", "assist_share", "gc_num")
    against = cycles.drop_nulls(["alloc_mib_per_s", "assist_share"])
    notes: tuple[str, ...] = ()
    if len(against) > 2 * axis.bins:
        # Keep the highest share for each step of the allocation rate.
        against = _highest(against, axis.bins)
        notes = (
            f"Share against allocation: the highest share in each of {axis.bins:,} steps, "
            f"from {len(cycles):,} cycles.",
        )
    mark = Mark(
        "cycle",
        against["alloc_mib_per_s"],
        against["assist_share"],
        "points",
        LOOKS["mark assist"],
        where=against.select(pl.format("gc {}", "gc_num")).to_series(),
        size=4,
    )
    unit = "MiB/s"
    each_cycle = Panel(
        "against", _SHARE, (mark,), percent=True, x_title=f"allocation, {unit}", x_unit=unit
    )
    panels = (over_time(axis), allocation(axis), each_cycle)
    return timed("assist", _TITLE, report, axis, panels, shared=False).noting(*notes)


def over_time(axis: Axis) -> Panel:
    """Returns the panel of mark assist over time."""
    if steps.are_few(axis):
        mark = axis.mark("mark assist", "assist_share", **steps.points_of(axis))
    else:
        mark = axis.mark("mark assist", "assist_share", weight="gc_cpu_ms", filled=True)
    return shares("assist", _SHARE, [mark], x_title=axis.title)


def allocation(axis: Axis) -> Panel:
    """Returns the panel of the allocation rate over time."""
    name, column = "allocation", "alloc_mib_per_s"
    if steps.are_few(axis):
        mark = steps.until_next(axis, name, column)
    else:
        mark = axis.mark(name, column, weight="interval_s", filled=True)
    ceiling = axis.ceiling(column)
    return amounts(name, "Allocation", "MiB/s", [mark], x_title=axis.title, ceiling=ceiling)


def _highest(points: pl.DataFrame, bins: int) -> pl.DataFrame:
    step = (pl.col("alloc_mib_per_s") / pl.col("alloc_mib_per_s").max() * bins).floor()
    return (
        points.group_by(step.alias("step"), maintain_order=True)
        .agg(pl.all().get(pl.col("assist_share").arg_max()))
        .sort("step")
    )
