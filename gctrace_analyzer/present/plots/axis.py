"""The cycles a plot shows, on one axis: wall time where it is known, else seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.cycles import elapsed_s, end_s, with_metrics
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
"""More bands than that are a grey wall: the worst and longest are drawn."""

LABEL_ROOM = 0.13
"""Of the axis, for the name of a band: of two nearer to each other the graver one is named."""

_GRAVITY = {"bad": 0, "warn": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class Axis:
    """The shown cycles with their derived columns and `x`; `origins` has each start's zero."""

    cycles: pl.DataFrame
    is_time: bool
    processes: tuple[int, ...]
    origins: dict[int, datetime]
    title: str
    notes: tuple[str, ...]
    bins: int

    def at(self, process: int | None, seconds: float | None) -> Any:
        """The place on the axis of a time since the program's start; None if not shown."""
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
        """From the first cycle's start to the last one's end."""
        if self.cycles.is_empty():
            return None
        last = self.cycles.row(-1, named=True)
        end = self.at(last["process"], last["end_s"])
        return self.cycles["x"].min(), self.cycles["x"].max() if end is None else end

    def series(
        self, column: str, *, weight: str | None = None, only: pl.Expr | None = None
    ) -> pl.DataFrame:
        """`x low y high where` of a column, binned, with a gap between program starts."""
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
        """The column as a line: its mean, and a band of lowest to highest where binned."""
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
    """The axis of a run: all its program starts where they follow each other on one clock.

    Otherwise those that run side by side would be drawn over each other: the one with the
    most cycles is shown.
    """
    whole = report.analysis.tables["cycles"]
    shown, is_time = _shown(whole)
    cycles = with_metrics(whole.filter(pl.col("process").is_in(shown))).with_columns(
        end_s=end_s()
    )
    cycles = cycles.with_columns(
        x=pl.col("wall_time") if is_time else pl.col("start_s"), elapsed_s=elapsed_s()
    )
    busy_s = (pl.col("gc_cpu_ms") + pl.col("idle_cpu_ms").fill_null(0)) / 1000
    capacity_s = pl.col("procs") * pl.col("elapsed_s")
    cycles = cycles.with_columns(
        gc_cpu_with_idle_share=pl.when(capacity_s > 0).then(busy_s / capacity_s)
    ).filter(pl.col("x").is_not_null())
    notes = []
    if len(cycles) > bins:
        notes.append(
            f"{len(cycles):,} cycles in {bins:,} equal stretches of time: lines are their "
            "means, bands reach from the lowest to the highest cycle."
        )
    left = whole["process"].n_unique() - len(shown)
    if left:
        notes.append(
            f"Program start {shown[0]}, the one with the most cycles; {left:,} more are not "
            "drawn (--process N shows another)."
        )
    starts = {
        row["process"]: row["started_at"]
        for row in report.analysis.tables["processes"].iter_rows(named=True)
        if row["started_at"] is not None
    }
    title = "time (UTC)" if is_time else "seconds since the program's start"
    return Axis(cycles, is_time, tuple(shown), starts, title, tuple(notes), bins)


def _shown(cycles: pl.DataFrame) -> tuple[list[int], bool]:
    """Which program starts are drawn, and whether on wall time."""
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
    """A row that breaks the line."""
    return part.tail(1).with_columns(
        pl.lit(None, part[name].dtype).alias(name) for name in ("y", "low", "high")
    )


def _where() -> pl.Expr:
    name = pl.col("source").cast(pl.String).str.split("/").list.last()
    return pl.format("gc {} · {}:{}", "gc_num", name.fill_null("frame"), pl.col("line_no"))


def bands(report: Report, axis: Axis) -> Iterator[Band]:
    """The episodes, the grave and long ones if there are too many."""
    rows = report.analysis.episodes.to_dicts()
    rows.sort(key=lambda row: (_GRAVITY[row["severity"]], row["start_s"] - row["end_s"]))
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
    """Where a place lies between the axis's ends, 0–1."""
    first, last = axis.ends or (at, at)
    return float((at - first) / (last - first)) if last != first else 0.0


def moments(report: Report, axis: Axis) -> Iterator[Moment]:
    """Deaths and restarts."""
    for death in report.analysis.post_mortems:
        at = death.logged_at if axis.is_time else _last_seen(axis, death.process, death.gap_s)
        if at is not None:
            yield Moment(at, printable(death.kind))
    for process in axis.processes[1:]:
        at = axis.at(process, 0.0)
        if at is not None:
            yield Moment(at, "restart", "info")


def _last_seen(axis: Axis, process: int | None, gap_s: float | None) -> Any:
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
    """A plot of panels over the axis, with the run's episodes if they share it."""
    return Figure(
        name, title, panels, shared_x=shared, x_title=axis.title if shared else "",
        x_range=axis.ends if shared else None,
        bands=tuple(bands(report, axis)) if shared else (),
        moments=tuple(moments(report, axis)) if shared else (), notes=axis.notes,
    )  # fmt: skip


def limits(report: Report) -> Iterator[Level]:
    """The limits that the heap lives under, where they are known."""
    for name, key, color in (
        ("GOMEMLIMIT", "memory_limit_mib", "limit"),
        ("container", "container_limit_mib", "container"),
    ):
        value = report.analysis.settings.value(key)
        if isinstance(value, int | float):
            yield Level(f"{name} {mib(value)}", float(value), COLORS[color])
