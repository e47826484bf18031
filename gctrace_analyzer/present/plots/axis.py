"""The time axis of a plot: wall-clock time if it is known, else time since the start."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from gctrace_analyzer.advise.subject import process_of_verdict
from gctrace_analyzer.analysis.cycles import alloc_while_marking_mib, metrics, share_of_cpu
from gctrace_analyzer.analysis.pauses import as_printed
from gctrace_analyzer.analysis.spans import whole
from gctrace_analyzer.analysis.timeline.episodes import OF_FEW_RULES
from gctrace_analyzer.analysis.totals import quotient
from gctrace_analyzer.analysis.windows import zero
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.rows import before, by_process, complete, where
from gctrace_analyzer.present.format import count, mib
from gctrace_analyzer.present.plots import ticks
from gctrace_analyzer.present.plots.binning import binned
from gctrace_analyzer.present.plots.figure import Level, Mark
from gctrace_analyzer.present.plots.palette import LOOKS
from gctrace_analyzer.present.sections.overview import named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.present.report import Report


_SOON = 0.25
"""Share of the time of a log. After a longer wait for its first cycle, the axis begins with that
cycle, because the wait would take the room of the data."""


_FAR_ABOVE = 2.0
"""Multiple of the later maximum. A start-up this high is drawn above the axis."""

_FEWEST_LATER = 10
"""Cycles after the start-up. With fewer, the log is about the start-up."""


@frozen
class Axis:
    """The drawn rows with derived columns and `x`; `origins` has the start of each process.

    The rows are cycles, or with `by_dumps` intervals between dumps or scrapes. `leaves_out` is the
    number of processes that are not drawn.
    """

    cycles: pl.DataFrame
    is_time: bool
    by_dumps: bool
    processes: tuple[int, ...]
    origins: dict[int, datetime]
    notes: tuple[str, ...]
    bins: int
    warm_up_s: float
    leaves_out: int

    @property
    def noun(self) -> str:
        """The name for a row."""
        return "intervals" if self.by_dumps else "cycles"

    @property
    def title(self) -> str:
        """The title of the axis, with the date if it is one day."""
        return ticks.title(*self.ends) if self.ends else ""

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
        """The start of the first cycle, or of its process, and the end of the last."""
        if self.cycles.is_empty():
            return None
        last = self.cycles.row(-1, named=True)
        end = self.at(last["process"], last["end_s"])
        return self._begin, self.cycles["x"].max() if end is None else end

    @property
    def _begin(self) -> Any:
        """The start of the process, if the log has its first cycle soon after it."""
        first = self.cycles.row(0, named=True)
        begin: Any = self.cycles["x"].min()
        if first.get("gc_num") != 1 or first["x"] != begin:
            return begin
        last = self.cycles.row(-1, named=True)
        waited_s = first["start_s"]
        if last["process"] == first["process"] and waited_s > _SOON * last["start_s"]:
            return begin
        return begin - timedelta(seconds=waited_s) if self.is_time else 0.0

    def seconds(self, at: Any) -> float:
        """Returns a position as seconds: since the left end, or since the start."""
        if not self.is_time:
            return float(at)
        return float((at - self.zero).total_seconds())

    def ceiling(self, *columns: str) -> float | None:
        """Returns where an axis ends that a start-up would stretch; None if none would.

        The end is the highest value after the start-up, because a start-up must not flatten
        everything after it. A later peak is always drawn.
        """
        known = [name for name in columns if name in self.cycles.columns]
        if not known:
            return None
        started = self.cycles["start_s"] >= self.warm_up_s
        early, later = (self.cycles[known].filter(which) for which in (~started, started))
        if len(later) < _FEWEST_LATER:
            return None
        first, high = (
            each.select(pl.max_horizontal(pl.col(known).max())).item()
            for each in (early, later)
        )
        return high if high and first and first > _FAR_ABOVE * high else None

    @property
    def zero(self) -> Any:
        """The left end, from which `seconds` counts; 0.0 if the axis does not show moments."""
        return self._begin if self.is_time else 0.0

    def series(
        self, column: str, *, weight: str | None = None, only: pl.Expr | None = None
    ) -> pl.DataFrame:
        """Returns a column as points to draw (`x low y high where`).

        The points are binned, and a row without values separates the processes.
        """
        chosen = self.cycles if only is None else self.cycles.filter(only)
        extra = [] if weight is None else [pl.col(weight).alias("weight")]
        numbered = ["gc_num"] if "gc_num" in chosen.columns else []
        points = chosen.select(
            "x", "process", *numbered, "source", "line_no", pl.col(column).alias("y"), *extra
        )
        parts = [
            binned(
                part, max(2, self.bins * len(part) // max(len(points), 1)), gaps=self.by_dumps
            )
            for part in by_process(points)
        ]
        rows = [row for part in parts for row in (part, _gap(part))][:-1]
        whole = (
            pl.concat(rows, how="diagonal") if rows else points.with_columns(low="y", high="y")
        )
        return whole.with_columns(where=self.where())

    def where(self) -> pl.Expr:
        """Returns the cycle and the line of each row, as tooltips show them."""
        name = pl.col("source").cast(pl.String).str.split("/").list.last().fill_null("frame")
        place = pl.format("{}:{}", name, pl.col("line_no"))
        is_cycle = "gc_num" in self.cycles.columns
        return pl.format("gc {} · {}", "gc_num", place) if is_cycle else place

    def mark(self, name: str, column: str, look: str = "", **settings: Any) -> Mark:
        """Returns a column as a line; its look depends on its name, unless one is given.

        If it was binned, the line shows the mean of each bin, and a band its lowest and its
        highest value.
        """
        points = self.series(
            column, weight=settings.pop("weight", None), only=settings.pop("only", None)
        )
        is_binned = bool((points["low"] != points["high"]).any())
        return Mark(
            name,
            points["x"],
            points["y"],
            look=LOOKS[look or name],
            low=points["low"] if is_binned else None,
            high=points["high"] if is_binned else None,
            where=points["where"],
            **settings,
        )


def axis_of(report: Report, *, bins: int, process: int | None = None) -> Axis:
    """Returns the axis of a run, or of one process.

    All processes are drawn if they follow each other on one clock. Otherwise only one is drawn,
    because processes that run side by side would overlap: the process of the verdict, or else the
    one with the most cycles.
    """
    by_dumps = report.analysis.by_dumps
    whole = _intervals(report) if by_dumps else report.analysis.tables["cycles"]
    shown, is_time = _shown(whole, report, process)
    rows = whole if by_dumps else report.analysis.enriched
    rows = where(rows, rows["process"].is_in(shown))
    rows = rows if by_dumps else with_idle(rows)
    rows = complete(rows.with_columns(x="wall_time" if is_time else "start_s"), "x")
    notes = []
    if len(rows) > bins:
        noun = "intervals" if by_dumps else "cycles"
        notes.append(
            f"{len(rows):,} {noun} in {bins:,} bins of equal length: lines show the mean of "
            f"each bin, bands its lowest and highest {noun[:-1]}."
        )
    left = whole["process"].n_unique() - len(shown)
    if left:
        of_verdict = shown[0] == process_of_verdict(report.analysis)
        why = "which the verdict is about" if of_verdict else "which has the most cycles"
        notes.append(
            f"Process {named(report, shown[0])}, {why}; "
            f"{count(left, 'other is', 'others are')} not drawn."
        )
    starts = {
        row["process"]: row["started_at"]
        for row in report.analysis.tables["processes"].iter_rows(named=True)
        if row["started_at"] is not None
    }
    if by_dumps:
        starts = _origins(rows)
    warm_up_s = report.analysis.thresholds.warm_up_s
    return Axis(
        rows, is_time, by_dumps, tuple(shown), starts, tuple(notes), bins, warm_up_s, left
    )


def with_idle(cycles: pl.DataFrame) -> pl.DataFrame:
    """Returns the cycles with the columns that only charts and figures of a range need.

    Single durations are as printed, so that a reader finds them in the log.
    """
    busy_ms = pl.col("gc_cpu_ms") + pl.col("idle_cpu_ms").fill_null(0)
    elapsed_s = pl.col("elapsed_s")
    allocated_mib = alloc_while_marking_mib() + pl.col("between_mib")
    # Values that the resolution hides have no curve per cycle either.
    is_known = quotient("alloc_mib_per_s").is_not_null().over("process")
    drawn = whole(cycles).with_columns(
        **{name: metrics()[name] for name in OF_FEW_RULES},
        gc_cpu_with_idle_share=share_of_cpu(busy_ms, pl.col("cpus"), elapsed_s),
        alloc_mib_per_s=pl.when(is_known).then("alloc_mib_per_s"),
        allocated_mib_per_s=pl.when(is_known & (elapsed_s > 0)).then(allocated_mib / elapsed_s),
        spent_share=_spent_share(),
        drawn_gogc=_drawn_gogc(),
    )
    return drawn.with_columns(as_printed())


def _spent_share() -> pl.Expr:
    """Returns the GC CPU of a cycle over its time, which adds up to that of the run.

    For a single short cycle it may be above 1, because its start is printed in whole milliseconds.
    """
    length_ms = 1000 * pl.col("elapsed_s") * pl.col("cpus")
    return pl.when(length_ms != 0).then(pl.col("gc_cpu_ms") / length_ms)


def _drawn_gogc() -> pl.Expr:
    """Returns the effective GOGC as charts show it.

    It is 0 if the goal is below the live heap. It is null if the goal does not show it: at the heap
    minimum, and after a cycle that found the heap empty.
    """
    by_minimum = (pl.col("goal_set_by") == "heap-minimum").fill_null(value=False)
    is_empty = (before("heap_live_mib") < 1).fill_null(value=False)
    return pl.when(~by_minimum & ~is_empty).then(pl.col("effective_gogc").clip(lower_bound=0))


def _intervals(report: Report) -> pl.DataFrame:
    """Returns the intervals between dumps with the names that cycles have."""
    return report.analysis.dumps.between.with_columns(
        wall_time=pl.col("begin_at"),
        start_s=pl.col("begin_s"),
        elapsed_s=pl.col("end_s") - pl.col("begin_s"),
        cycles="gc_cycles",
        pause_max_ms="stw_max_ms",
        allocated_mib_per_s="alloc_mib_per_s",
        spent_share="gc_cpu_share",
    )


def _origins(intervals: pl.DataFrame) -> dict[int, datetime]:
    """Returns the moment that the seconds of each process count from."""
    first = intervals.group_by("process").agg(zero("begin_at", pl.col("begin_s")))
    return dict(first.drop_nulls().iter_rows())


def _shown(cycles: pl.DataFrame, report: Report, process: int | None) -> tuple[list[int], bool]:
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
    alone = bool((per["begin"] >= per["end"].shift()).drop_nulls().all())
    if process is None and per["known"].all() and alone:
        return per["process"].to_list(), True
    if process is None and len(per) > 1:
        process = process_of_verdict(report.analysis)
    is_subject = (pl.col("process") == pl.lit(process)).fill_null(value=False)
    # The process with the most cycles is last.
    one = per.sort(is_subject, "len", pl.col("process").neg()).row(-1, named=True)
    return [one["process"]], one["known"]


def _gap(part: pl.DataFrame) -> pl.DataFrame:
    """Returns a row that breaks the line."""
    return part.tail(1).with_columns(
        pl.lit(None, part[name].dtype).alias(name) for name in ("y", "low", "high")
    )


_LIMITS: tuple[tuple[str, str, Literal["dash", "dot"]], ...] = (
    ("GOMEMLIMIT", "memory_limit_mib", "dash"),
    ("container limit", "container_limit_mib", "dot"),
)


def limits(report: Report) -> Iterator[Level]:
    """Yields the known memory limits of the process that the verdict is about."""
    subject, analysis = report.subject, report.analysis
    settings = analysis.settings if subject is None else analysis.settings_of(subject)
    for name, key, dash in _LIMITS:
        value = settings.value(key)
        if isinstance(value, int | float):
            yield Level(f"{name} {mib(value)}", float(value), dash)
