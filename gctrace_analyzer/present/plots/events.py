"""What happened on the time axis: episodes as bands, kills and restarts as moments."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.rules.finding import SEVERITIES
from gctrace_analyzer.analysis.settings.naming import changes
from gctrace_analyzer.present.format import printable, words
from gctrace_analyzer.present.plots.axis import Axis, limits
from gctrace_analyzer.present.plots.figure import (
    Event,
    Figure,
    Panel,
    is_flipped,
    share_of,
    width_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.present.report import Report

MOST_BANDS = 60
"""The most bands that are drawn: the most severe and longest ones."""

_THIN = 0.004
"""Share of the axis. A narrower band is only a line."""

_MANY_THIN = 12
"""More lines than this would stripe every panel."""

_PANELS = {
    "Pause outlier": ("pauses", "when"),
    "Allocation surge": ("allocation",),
    "GC burst": ("gc_cpu", "frequency", "interval"),
    "Assist storm": ("assist",),
    "Forced loop": ("heap",),
    "Limit thrash": ("heap", "gc_cpu", "goal", "gogc", "live"),
}
"""The panels that show the quantity of an episode; with many lines, each is drawn only there."""

_APART = 0.015
"""Share of the axis. Times of one state this close together are drawn as one band, because narrower
gaps would be stripes."""

MOST_MOMENTS = 40

ROWS = 3
"""Rows of labels at the top of a panel; labels beyond them are left out."""

_AFTER = 1.0
"""Multiple of the time span. A death that follows later does not stretch the axis."""

_SAME_S = 5.0
"""Seconds. Events of systemd this close to a kill are about that kill."""

_UNIT_EVENTS = {
    "main_exited": "process exited",
    "restart_scheduled": "restart",
    "failed": "unit failed",
}
_CONTAINER_EVENTS = {"oom": "container OOM", "die": "container exit", "restart": "restart"}


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
    if not shared or axis.ends is None:
        return Figure(name, title, panels, shared_x=shared, notes=axis.notes)
    ends = with_deaths(report, axis)
    events = placed(report, axis, ends)
    notes = (*axis.notes, *_on_episodes(len(report.analysis.episodes), events))
    return Figure(
        name, title, panels, x_title=axis.title, x_range=ends, events=events, notes=notes
    )


def _on_episodes(episodes: int, events: tuple[Event, ...]) -> Iterator[str]:
    """Yields notes on episodes that are not drawn, or not everywhere."""
    if episodes > MOST_BANDS:
        yield f"Of {episodes:,} episodes, the {MOST_BANDS} most severe and longest are drawn."
    if any(event.panels is not None for event in events):
        yield "Short episodes are lines, each in the chart of what it is about."


def with_deaths(report: Report, axis: Axis) -> tuple[Any, Any] | None:
    """Returns the ends of the axis, up to a death that follows its last cycle."""
    if axis.ends is None:
        return None
    begin, end = axis.ends
    span = end - begin
    late = [
        death.begin
        for death in _deaths(report, axis)
        if end < death.begin and (death.begin - end) <= _AFTER * span
    ]
    # A line at the very end of the axis would be cut in half.
    return begin, max(late) + 0.02 * span if late else end


def placed(report: Report, axis: Axis, ends: tuple[Any, Any] | None) -> tuple[Event, ...]:
    """Returns the events of the axis, with rows in which no label covers another."""
    if ends is None:
        return ()
    taken: list[list[tuple[float, float]]] = [[] for _ in range(ROWS)]
    for level in limits(report):
        # The name of a limit is on the left, in the second row.
        taken[1].append((0.0, width_of(level.name)))
    moments = [in_a_row(event, ends, taken) for event in _moments(report, axis, ends)]
    bands = [
        event if event.row is None else in_a_row(event, ends, taken)
        for event in _uncrowded(list(_bands(report, axis, ends)), ends)
    ]
    return (*bands, *moments)


def _uncrowded(bands: list[Event], ends: tuple[Any, Any]) -> list[Event]:
    """Returns the bands; thin ones without labels and in few panels, if there are many."""
    thin = [share_of(band.end, ends) - share_of(band.begin, ends) < _THIN for band in bands]
    if sum(thin) <= _MANY_THIN:
        return bands
    return [
        replace(band, row=None, panels=_PANELS.get(band.name)) if is_thin else band
        for band, is_thin in zip(bands, thin, strict=True)
    ]


def in_a_row(
    event: Event, ends: tuple[Any, Any], taken: list[list[tuple[float, float]]]
) -> Event:
    """Returns the event with the first row in which its label covers none in `taken`.

    Adds the place of the label to `taken`, which has a list for each row.
    """
    share, width = share_of(event.begin, ends), width_of(event.name)
    flipped = is_flipped(event.name, event.begin, ends)
    low, high = (share - width, share) if flipped else (share, share + width)
    for number, row in enumerate(taken):
        if all(high <= begin or low >= end for begin, end in row):
            row.append((low, high))
            return replace(event, row=number)
    return replace(event, row=None)


def _bands(report: Report, axis: Axis, ends: tuple[Any, Any]) -> Iterator[Event]:
    """Yields the times of the episodes' states; the first of each episode has a label.

    If there are too many episodes, the most severe and longest are drawn.
    """
    rows = report.analysis.episodes.to_dicts()
    rows.sort(
        key=lambda row: (-SEVERITIES.index(row["severity"]), row["start_s"] - row["end_s"])
    )
    lasted = report.analysis.active_ranges
    near_s = _APART * (axis.seconds(ends[1]) - axis.seconds(ends[0]))
    for row in rows[:MOST_BANDS]:
        within = lasted.filter(
            process=row["process"], kind=row["kind"], severity=row["severity"]
        ).filter(pl.col("start_s").is_between(row["start_s"], row["end_s"]))
        places = [
            (axis.at(row["process"], begin), axis.at(row["process"], end))
            for begin, end in _joined(within.sort("start_s"), near_s)
        ]
        known = [(begin, end) for begin, end in places if None not in (begin, end)]
        for index, (begin, end) in enumerate(known):
            yield Event(begin, end, words(row["kind"]), row["severity"], None if index else 0)


def _joined(lasted: pl.DataFrame, near_s: float) -> list[tuple[float, float]]:
    """Returns ranges in seconds, joined if they are at most `near_s` apart."""
    if lasted.is_empty():
        return []
    end = pl.col("end_s").cum_max()
    far = (pl.col("start_s") - end.shift()).fill_null(0) > near_s
    joined = lasted.group_by(far.cum_sum().alias("part"), maintain_order=True).agg(
        pl.col("start_s").first(), pl.col("end_s").max()
    )
    return list(joined.select("start_s", "end_s").iter_rows())


def _moments(report: Report, axis: Axis, ends: tuple[Any, Any]) -> list[Event]:
    deaths = list(_deaths(report, axis))
    others = [
        *_restarts(axis),
        *_settings(report, axis),
        *(_of_supervisor(report, deaths) if axis.is_time else ()),
    ]
    within = [moment for moment in (*deaths, *others) if ends[0] <= moment.begin <= ends[1]]
    return within[:MOST_MOMENTS]


def _deaths(report: Report, axis: Axis) -> Iterator[Event]:
    for death in report.analysis.post_mortems:
        at: Any = (
            death.logged_at if axis.is_time else _death_at(axis, death.process, death.gap_s)
        )
        if at is not None:
            yield Event(at, None, printable(death.kind))


def _death_at(axis: Axis, process: int | None, gap_s: float | None) -> Any:
    if process is None or process not in axis.processes or gap_s is None:
        return None
    last = axis.cycles.filter(process=process).select(pl.col("end_s").max()).item()
    return axis.at(process, None if last is None else last + gap_s)


def _restarts(axis: Axis) -> Iterator[Event]:
    for process in axis.processes[1:]:
        if (at := axis.at(process, 0.0)) is not None:
            yield Event(at, None, "restart", "info")


def _settings(report: Report, axis: Axis) -> Iterator[Event]:
    """Yields the changes of GOGC, memory limit and GOMAXPROCS while a process ran."""
    for process in axis.processes:
        for regime, setting in changes(report.analysis.regimes_of(process)):
            if (at := axis.at(process, regime.start_s)) is not None:
                yield Event(at, None, setting, "info")


def _of_supervisor(report: Report, deaths: list[Event]) -> Iterator[Event]:
    """Yields what systemd or Docker logged about the service, apart from the kills."""
    tables = report.analysis.tables
    for table, names in (
        ("unit_events", _UNIT_EVENTS),
        ("container_states", _CONTAINER_EVENTS),
    ):
        known = tables[table].filter(
            pl.col("event").is_in(list(names)) & pl.col("logged_at").is_not_null()
        )
        for row in known.unique(["event", "logged_at"], maintain_order=True).iter_rows(
            named=True
        ):
            at = row["logged_at"]
            if all(abs(at - death.begin) > timedelta(seconds=_SAME_S) for death in deaths):
                yield Event(at, None, names[row["event"]], "info")
