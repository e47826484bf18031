"""Plots along the run's time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.memory import programs
from gctrace_analyzer.analysis.pauses import PHASES
from gctrace_analyzer.present.figures import duration, mib, rate_of_growth
from gctrace_analyzer.present.plots.axis import Axis, axis_of, bands, moments
from gctrace_analyzer.present.plots.binning import distribution
from gctrace_analyzer.present.plots.figure import COLORS, Figure, Level, Mark, Panel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.present.report import Report

MIB = 1 << 20

FEWEST_DUMPS = 3
"""One or two dumps are a table's, not a chart's."""


def timeline(report: Report, bins: int) -> Figure:
    """Heap, GC CPU, mark assist, pauses and allocation on one axis, episodes as bands."""
    axis = axis_of(report, bins=bins)
    panels = (
        _heap(report, axis),
        _gc_cpu(axis),
        _assist(axis),
        _pauses(axis),
        _allocation(axis),
    )
    return _figure("timeline", "Timeline", report, axis, panels)


def frequency(report: Report, bins: int) -> Figure:
    """How often: the time between cycles, and how it is distributed."""
    axis = axis_of(report, bins=bins)
    intervals = axis.cycles["interval_s"]
    values, share = distribution(intervals.filter(intervals > 0), bins)
    cycles = axis.mark(
        "interval", "interval_s", COLORS["interval"],
        only=pl.col("interval_s") > 0, kind="points",
    )  # fmt: skip
    panels = (
        Panel(
            "interval", "Time between cycles, s", (cycles,), log_y=True, x_title=axis.title,
            from_zero=False,
        ),
        Panel(
            "distribution",
            "Share of intervals no longer",
            (Mark("intervals", values, share, "step", COLORS["interval"]),),
            percent=True,
            x_title="time between cycles, s",
            log_x=True,
        ),
    )  # fmt: skip
    return _figure("frequency", "GC frequency", report, axis, panels, shared=False)


def assist(report: Report, bins: int) -> Figure:
    """Mark assist beside the allocation that calls for it."""
    axis = axis_of(report, bins=bins)
    found = axis.cycles.select("alloc_mib_per_s", "assist_share", "gc_num", "source", "line_no")
    against = found.drop_nulls(["alloc_mib_per_s", "assist_share"])
    notes: tuple[str, ...] = ()
    if len(against) > 2 * bins:
        # The highest of each step of the allocation rate: what assists can come to.
        against = _highest(against, bins)
        notes = (
            f"Right: of {len(found):,} cycles the highest share in each of {bins:,} steps.",
        )
    each = Mark(
        "a cycle", against["alloc_mib_per_s"], against["assist_share"], "points",
        COLORS["mark assist"],
        where=against.select(pl.format("gc {}", "gc_num")).to_series(), size=4,
    )  # fmt: skip
    panels = (
        _assist(axis),
        _allocation(axis),
        Panel(
            "against", "Mark assist, share of the cycle's GC CPU", (each,), percent=True,
            x_title="allocation, MiB/s",
        ),
    )  # fmt: skip
    figure = _figure(
        "assist", "Mark assist against allocation", report, axis, panels, shared=False
    )
    return _with(figure, notes)


def live_heap(report: Report, bins: int) -> Figure:
    """Live heap, its growth with an interval, and when it meets the limit."""
    axis = axis_of(report, bins=bins)
    live = axis.mark("live heap", "heap_live_mib", COLORS["live heap"])
    trend, notes = _trend(report, axis)
    panel = Panel(
        "live", "Live heap (marked), MiB", (live, *trend), levels=tuple(_limits(report))
    )
    return _with(_figure("live_heap", "Live heap", report, axis, (panel,)), notes)


def goal(report: Report, bins: int) -> Figure:
    """The heap goal, what set it, and the GOGC in effect."""
    axis = axis_of(report, bins=bins)
    setters = axis.cycles["goal_set_by"].drop_nulls().unique().sort().to_list()
    goals = tuple(
        axis.mark(
            f"goal set by {setter.replace('-', ' ')}", "heap_goal_mib",
            COLORS.get(setter, COLORS["heap goal"]), only=pl.col("goal_set_by") == setter,
            kind="points",
        )
        for setter in setters
    )  # fmt: skip
    live = axis.mark("live heap", "heap_live_mib", COLORS["live heap"])
    gogc = axis.mark(
        "GOGC in effect",
        "effective_gogc",
        COLORS["gogc"],
        only=(pl.col("effective_gogc") > 0) & (pl.col("goal_set_by") != "heap-minimum"),
    )
    panels = (
        Panel("goal", "Heap goal, MiB", (live, *goals), levels=tuple(_limits(report))),
        Panel("gogc", "GOGC in effect, %", (gogc,)),
    )
    return _figure("goal", "Heap goal and who set it", report, axis, panels)


def memory(report: Report, bins: int) -> Figure:
    """Heap held against heap needed, from dumps of MemStats."""
    by_program = programs(report.tables["memstats"])
    dumps = max(by_program, key=len, default=report.tables["memstats"])
    notes = ["From dumps of MemStats, as they were written."]
    if len(by_program) > 1:
        notes.append(
            f"The program with the most dumps; {len(by_program) - 1} more are not drawn."
        )
    if len(dumps) < FEWEST_DUMPS:
        dumps = dumps.clear()
    x, title = _dump_axis(dumps)
    sys, released = _mib(dumps, "heap_sys_bytes"), _mib(dumps, "heap_released_bytes")
    in_use = _mib(dumps, "heap_inuse_bytes").fill_null(sys - _mib(dumps, "heap_idle_bytes"))
    pool = _mib(dumps, "pool_bytes")
    alloc = _mib(dumps, "heap_alloc_bytes").fill_null(_mib(dumps, "alloc_bytes"))
    series = (
        ("heap taken from the system", sys, COLORS["container"], False),
        ("held: taken less given back", sys - released.fill_null(0.0), COLORS["held"], False),
        ("heap in use", in_use, COLORS["heap start"], False),
        ("heap allocated", alloc, COLORS["heap goal"], False),
        ("the program's own buffers", pool, COLORS["needed"], False),
        ("given back", released, COLORS["given back"], True),
    )
    marks = []
    for name, values, color, dash in series:
        if values.count():
            points = pl.DataFrame({"x": x, "y": values})
            marks.append(Mark(name, points["x"], points["y"], color=color, dash=dash))
    return Figure(
        "memory", "Heap held against heap needed",
        (Panel("memory", "MiB", tuple(marks)),), x_title=title,
        notes=tuple(notes),
    )  # fmt: skip


def _figure(
    name: str,
    title: str,
    report: Report,
    axis: Axis,
    panels: tuple[Panel, ...],
    *,
    shared: bool = True,
) -> Figure:
    return Figure(
        name, title, panels, shared_x=shared, x_title=axis.title if shared else "",
        x_range=axis.ends if shared else None,
        bands=tuple(bands(report, axis)) if shared else (),
        moments=tuple(moments(report, axis)) if shared else (), notes=axis.notes,
    )  # fmt: skip


def _with(figure: Figure, notes: tuple[str, ...]) -> Figure:
    return replace(figure, notes=(*figure.notes, *notes))


def _heap(report: Report, axis: Axis) -> Panel:
    marks = [
        axis.mark("heap at the start", "heap_start_mib", COLORS["heap start"]),
        axis.mark("live heap (marked)", "heap_live_mib", COLORS["live heap"]),
        axis.mark("heap goal", "heap_goal_mib", COLORS["heap goal"]),
        *_dumped(report, axis),
    ]
    return Panel("heap", "Heap, MiB", tuple(marks), levels=tuple(_limits(report)))


def _dumped(report: Report, axis: Axis) -> Iterator[Mark]:
    """MemStats on the same clock."""
    dumps = report.tables["memstats"].filter(pl.col("logged_at").is_not_null())
    if not axis.is_time or dumps.is_empty():
        return
    for name, column in (("HeapAlloc", "heap_alloc_bytes"), ("Sys", "sys_bytes")):
        values = _mib(dumps, column)
        if values.count():
            yield Mark(
                f"{name} (MemStats)", dumps["logged_at"], values, "points",
                COLORS["needed" if name == "HeapAlloc" else "all pauses"],
            )  # fmt: skip


def _limits(report: Report) -> Iterator[Level]:
    for name, key, color in (
        ("GOMEMLIMIT", "memory_limit_mib", "limit"),
        ("container", "container_limit_mib", "container"),
    ):
        value = report.settings.value(key)
        if isinstance(value, int | float):
            yield Level(f"{name} {mib(value)}", float(value), COLORS[color])


def _gc_cpu(axis: Axis) -> Panel:
    marks = (
        axis.mark(
            "with idle marking", "gc_cpu_with_idle_share", COLORS["with idle marking"],
            weight="elapsed_s",
        ),
        axis.mark("GC CPU", "gc_cpu_share", COLORS["GC CPU"], weight="elapsed_s"),
    )  # fmt: skip
    return Panel(
        "gc_cpu", "GC CPU, share of all CPU, each cycle's interval", marks, percent=True
    )


def _assist(axis: Axis) -> Panel:
    each = axis.mark(
        "mark assist", "assist_share", COLORS["mark assist"], weight="gc_cpu_ms", filled=True
    )
    return Panel(
        "assist", "Mark assist, share of the cycle's GC CPU", (each,), percent=True,
        x_title=axis.title,
    )  # fmt: skip


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


def _trend(report: Report, axis: Axis) -> tuple[list[Mark], tuple[str, ...]]:
    """The growth as a line through the middle, and what it means."""
    s = report.summary
    growth = s.live_heap_growth_mib_per_h
    low, high = s.live_heap_growth_mib_per_h_low, s.live_heap_growth_mib_per_h_high
    if growth is None or low is None or high is None or len(axis.processes) != 1:
        return [], ()
    process = axis.processes[0]
    points = axis.cycles.select("start_s", "heap_live_mib").drop_nulls()
    first, last = points["start_s"].min(), points["start_s"].max()
    middle, height = points["start_s"].median(), points["heap_live_mib"].median()
    if not (isinstance(first, float) and isinstance(last, float)) or first == last:
        return [], ()
    assert isinstance(middle, float)
    assert isinstance(height, float)
    ends = (first, last)
    x = pl.Series([axis.at(process, end) for end in ends])
    at = {
        name: pl.Series([height + rate / 3600 * (end - middle) for end in ends])
        for name, rate in (("y", growth), ("a", low), ("b", high))
    }
    edges = pl.DataFrame(at)
    line = Mark(
        "growth (95 % interval)", x, at["y"], color=COLORS["trend"], dash=True,
        low=edges.select(pl.min_horizontal("a", "b")).to_series(),
        high=edges.select(pl.max_horizontal("a", "b")).to_series(),
    )  # fmt: skip
    said = f"Growth {rate_of_growth(growth, low, high)}: Theil–Sen slope, Sen's 95 % interval."
    if low <= 0 <= high:
        return [line], (said + " It may as well be none.",)
    return [line], (said, *_time_left(report, height + growth / 3600 * (last - middle)))


def _time_left(report: Report, live: float) -> Iterator[str]:
    """How long until the nearest limit, at the fastest and slowest of the growth."""
    s = report.summary
    low, high = s.live_heap_growth_mib_per_h_low, s.live_heap_growth_mib_per_h_high
    rooms = [
        (value, name)
        for name, key in (
            ("GOMEMLIMIT", "memory_limit_mib"),
            ("container", "container_limit_mib"),
        )
        if isinstance(value := report.settings.value(key), int | float) and value > live
    ]
    if rooms and low is not None and high is not None and low > 0:
        room, name = min(rooms)
        soon, late = (3600 * (room - live) / rate for rate in (high, low))
        yield (
            f"The live heap meets the {name} of {mib(room)} in {duration(soon)} to "
            f"{duration(late)} after the last cycle, if it goes on like this."
        )


def _highest(points: pl.DataFrame, bins: int) -> pl.DataFrame:
    step = (pl.col("alloc_mib_per_s") / pl.col("alloc_mib_per_s").max() * bins).floor()
    return (
        points.group_by(step.alias("step"), maintain_order=True)
        .agg(pl.all().get(pl.col("assist_share").arg_max()))
        .sort("step")
    )


def _dump_axis(dumps: pl.DataFrame) -> tuple[pl.Series, str]:
    """What the dumps say of their time."""
    if dumps["logged_at"].count():
        return dumps["logged_at"], "time (UTC)"
    if dumps["elapsed_s"].count():
        return dumps["elapsed_s"], "seconds"
    return pl.Series(range(len(dumps)), dtype=pl.Int64), "dumps"


def _mib(dumps: pl.DataFrame, column: str) -> pl.Series:
    return dumps[column].cast(pl.Float64) / MIB
