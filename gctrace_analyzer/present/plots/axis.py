"""The time axis of a plot: wall-clock time if it is known, else seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.rules.finding import SEVERITIES
from gctrace_analyzer.present.format import mib, printable
from gctrace_analyzer.present.plots.binning import binned
from gctrace_analyzer.present.plots.figure import (
    COLORS,
    Band,
    Figure,
    Level,
    Mark,
    Moment,
    Panel,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from gctrace_analyzer.present.report import Report

MOST_BANDS = 60
"""The most bands that are drawn: the most severe and longest ones."""

LABEL_ROOM = 0.13
"""Share of the axis that a band's label needs. If two bands are closer than this, only the worse
one is labelled."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The drawn cycles with derived columns and `x`; `origins` has the start of each process."""

    cycles: pl.DataFrame
    is_time: bool
    processes: tuple[int, ...]
    origins: dict[int, datetime]
    title: str
    notes: tuple[str, ...]
    bins: int

    def at(self, process: int | None, seconds: float | None) -> Any:
        """Returns the position of a time since the start of a process; None if not drawn."""
        if seconds is None or (process is not None and process not in self.processes):
            return None
        if not self.is_time:
            return seconds
        origin = self.origins.get(self.processes[0] if process is None else process)
        if origin is None:
            return None
        return pl.select(origin + pl.duration(microseconds=round(seconds * 1e6))).item()

    @property
    def ends(self) -> tuple[Any, Any] | None:
        """The start of the first cycle and the end of the last."""
        if self.cycles.is_empty():
            return None
        last = self.cycles.row(-1, named=True)
        end = self.at(last["process"], last["end_s"])
        return self.cycles["x"].min(), self.cycles["x"].max() if end is None else end

    def series(
        self, column: str, *, weight: str | None = None, only: pl.Expr | None = None
    ) -> pl.DataFrame:
        """Returns a column as points to draw (`x low y high where`).

        The points are binned, and a row without values separates the processes.
        """
        chosen = self.cycles if only is None else self.cycles.filter(only)
        extra = [] if weight is None else [pl.col(weight).alias("weight")]
        points = chosen.select(
            "x", "process", "gc_num", "source", "line_no", pl.col(column).alias("y"), *extra
        )
        parts = [
            binned(part, max(2, self.bins * len(part) // max(len(points), 1)))
            for part in points.partition_by("process", maintain_order=True)
        ]
        rows = [row for part in parts for row in (part, _gap(part))][:-1]
        whole = (
            pl.concat(rows, how="diagonal") if rows else points.with_columns(low="y", high="y")
        )
        return whole.with_columns(where=_where())

    def mark(self, name: str, column: str, color: str, **settings: Any) -> Mark:
        """Returns a column as a line.

        If it was binned, the line shows the mean of each bin, and a band its lowest and its
        highest value.
        """
        found = self.series(
            column, weight=settings.pop("weight", None), only=settings.pop("only", None)
        )
        is_binned = bool((found["low"] != found["high"]).any())
        return Mark(
            name,
            found["x"],
            found["y"],
            color=color,
            low=found["low"] if is_binned else None,
            high=found["high"] if is_binned else None,
            where=found["where"],
            **settings,
        )


def axis_of(report: Report, *, bins: int) -> Axis:
    """Returns the axis of a run.

    All processes are drawn if they follow each other on one clock. Otherwise only the one with
    the most cycles is drawn, because processes that run side by side would overlap.
    """
    whole = report.analysis.tables["cycles"]
    shown, is_time = _shown(whole)
    drawn = pl.col("process").is_in(shown)
    cycles = report.analysis.enriched.filter(drawn).with_columns(
        x=pl.col("wall_time") if is_time else pl.col("start_s")
    )
    busy_s = (pl.col("gc_cpu_ms") + pl.col("idle_cpu_ms").fill_null(0)) / 1000
    capacity_s = pl.col("cpus") * pl.col("elapsed_s")
    cycles = cycles.with_columns(
        gc_cpu_with_idle_share=pl.when(capacity_s > 0).then(busy_s / capacity_s)
    ).filter(pl.col("x").is_not_null())
    notes = []
    if len(cycles) > bins:
        notes.append(
            f"{len(cycles):,} cycles in {bins:,} bins of equal length: lines show the mean of "
            "each bin, bands its lowest and highest cycle."
        )
    left = whole["process"].n_unique() - len(shown)
    if left:
        notes.append(
            f"Process {shown[0]}, which has the most cycles; {left:,} more are not drawn. "
            "Select a process to draw another."
        )
    starts = {
        row["process"]: row["started_at"]
        for row in report.analysis.tables["processes"].iter_rows(named=True)
        if row["started_at"] is not None
    }
    title = "time (UTC)" if is_time else "seconds since the start of the process"
    return Axis(cycles, is_time, tuple(shown), starts, title, tuple(notes), bins)


def _shown(cycles: pl.DataFrame) -> tuple[list[int], bool]:
    """Returns which processes are drawn, and whether the axis shows wall-clock time."""
    if cycles.is_empty():
        return [], False
    per = (
        cycles.group_by("process")
        .agg(
            pl.len(),
            begin=pl.col("wall_time").min(),
            end=pl.col("wall_time").max(),
            known=pl.col("wall_time").is_not_null().all(),
        )
        .sort("begin", "process")
    )
    longest = per.sort("len", "process", descending=[True, False]).row(0, named=True)
    alone = bool((per["begin"] >= per["end"].shift()).drop_nulls().all())
    if per["known"].all() and alone:
        return per["process"].to_list(), True
    return [longest["process"]], longest["known"]


def _gap(part: pl.DataFrame) -> pl.DataFrame:
    """Returns a row that breaks the line."""
    return part.tail(1).with_columns(
        pl.lit(None, part[name].dtype).alias(name) for name in ("y", "low", "high")
    )


def _where() -> pl.Expr:
    name = pl.col("source").cast(pl.String).str.split("/").list.last()
    return pl.format("gc {} · {}:{}", "gc_num", name.fill_null("frame"), pl.col("line_no"))


def bands(report: Report, axis: Axis) -> Iterator[Band]:
    """Yields the episodes; if there are too many, the most severe and longest."""
    rows = report.analysis.episodes.to_dicts()
    rows.sort(
        key=lambda row: (-SEVERITIES.index(row["severity"]), row["start_s"] - row["end_s"])
    )
    taken: list[float] = []
    for row in rows[:MOST_BANDS]:
        begin = axis.at(row["process"], row["start_s"])
        end = axis.at(row["process"], row["end_s"])
        if begin is not None and end is not None:
            at = _share(axis, begin)
            free = all(abs(at - other) > LABEL_ROOM for other in taken)
            taken += [at] if free else []
            yield Band(begin, end, row["kind"], row["severity"], labelled=free)


def _share(axis: Axis, at: Any) -> float:
    """Returns the position between the ends of the axis, 0–1."""
    first, last = axis.ends or (at, at)
    return float((at - first) / (last - first)) if last != first else 0.0


def moments(report: Report, axis: Axis) -> Iterator[Moment]:
    """Yields the moments to mark on the axis: deaths and restarts."""
    for death in report.analysis.post_mortems:
        at = death.logged_at if axis.is_time else _death_at(axis, death.process, death.gap_s)
        if at is not None:
            yield Moment(at, printable(death.kind))
    for process in axis.processes[1:]:
        at = axis.at(process, 0.0)
        if at is not None:
            yield Moment(at, "restart", "info")


def _death_at(axis: Axis, process: int | None, gap_s: float | None) -> Any:
    if process is None or process not in axis.processes or gap_s is None:
        return None
    last = axis.cycles.filter(process=process).select(pl.col("end_s").max()).item()
    return axis.at(process, None if last is None else last + gap_s)


def timed(
    name: str,
    title: str,
    report: Report,
    axis: Axis,
    panels: tuple[Panel, ...],
    *,
    shared: bool = True,
) -> Figure:
    """Returns a plot of panels, with episodes if the panels share the time axis."""
    return Figure(
        name,
        title,
        panels,
        shared_x=shared,
        x_title=axis.title if shared else "",
        x_range=axis.ends if shared else None,
        bands=tuple(bands(report, axis)) if shared else (),
        moments=tuple(moments(report, axis)) if shared else (),
        notes=axis.notes,
    )


def limits(report: Report) -> Iterator[Level]:
    """Yields the known memory limits."""
    for name, key, color in (
        ("GOMEMLIMIT", "memory_limit_mib", "limit"),
        ("container", "container_limit_mib", "container"),
    ):
        value = report.analysis.settings.value(key)
        if isinstance(value, int | float):
            yield Level(f"{name} {mib(value)}", float(value), COLORS[color])
