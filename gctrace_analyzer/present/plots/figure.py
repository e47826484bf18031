"""A plot independent of the library that draws it: panels with marks, bands and moments."""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present.format import share
from gctrace_analyzer.present.plots import ticks
from gctrace_analyzer.present.plots.binning import distribution
from gctrace_analyzer.present.plots.palette import LOOKS, Look
from gctrace_analyzer.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import polars as pl

    from gctrace_analyzer.present.plots.ticks import X

TOP_TENTH = 0.9
"""A series that stays above this share of its maximum is drawn without zero; otherwise it would
look constant."""

LEAST_CUT = 0.02
"""Share of the maximum. A series that varies by less counts as constant: drawn large, its rounding
would look like changes."""

_LEVEL_ROOM = 2.5
"""Share of the data's height. A limit farther above would press the data into the lower part of a
panel, so it is named at the upper edge instead."""

_HEADROOM = 0.06
_LEVEL_HEADROOM = 0.2
"""Room above the highest level, for its name and for names of events."""

_LOG_HEADROOM = 0.03
_ROWS, _BESIDE = 6, 0.6
"""Rows of bars in a panel of the usual height, and the room below the first and above the last."""

_NEAR_THE_TOP = 0.15


@frozen
class Mark:
    """One series: a line, steps or points; `low` and `high` make a band around it.

    Points can have stems: lines down to zero, which connect a few points visually. Bars are
    horizontal: each reaches from 0 to its `x` in the row `y`, with `where` at its end. For heat,
    `x` and `y` are the edges of `cells`, which are counts by row and column, None for empty cells.

    `where` has the cycle and log line of each point. A null in `y` interrupts the line.
    """

    name: str
    x: pl.Series
    y: pl.Series
    kind: Literal["line", "step", "points", "bar", "heat"] = "line"
    look: Look = LOOKS["interval"]
    low: pl.Series | None = None
    high: pl.Series | None = None
    where: pl.Series | None = None
    filled: bool = False
    size: int = 5
    has_stems: bool = False
    cells: Sequence[Sequence[int | None]] = ()

    @property
    def top(self) -> pl.Series:
        """The values to draw.

        Points show the highest value of their bin, because a mean would hide long pauses.
        """
        return self.high if self.kind == "points" and self.high is not None else self.y

    @property
    def counts(self) -> list[float]:
        """The labels of the heat colours: round numbers, and the highest count at the top."""
        most = max(2, *(n or 0 for row in self.cells for n in row))
        return [n for n in ticks.logarithmic(1, most / 1.3) if n.is_integer()] + [most]

    @property
    def band(self) -> tuple[pl.Series, pl.Series] | None:
        """The edges of the band; points already show the highest value of their bin."""
        if self.kind == "points" or self.low is None or self.high is None:
            return None
        return self.low, self.high


@frozen
class Level:
    """A labelled horizontal line."""

    name: str
    y: float
    dash: Literal["dash", "dot"] = "dash"


@frozen
class AxisSpan:
    """The range of a vertical axis with its levels, and the values above it.

    Values above are further levels, and the peak of a start-up.
    """

    low: float
    high: float
    is_cut: bool = False
    levels: tuple[Level, ...] = ()
    above: tuple[Level, ...] = ()
    peak: float | None = None

    def is_near_the_top(self, level: Level) -> bool:
        """Returns whether a level's name belongs below its line, to leave room for events."""
        return level.y > self.high - _NEAR_THE_TOP * (self.high - self.low)


@frozen
class Panel:
    """One pair of axes. A `percent` axis shows shares (0–1) as percentages.

    `unit` is appended to single values, as in "4.2 ms". With `is_timed` the horizontal axis is
    time. `ceiling` is the highest value after a start-up that is far higher: the axis ends there.
    `names` has the names of the rows of bars, from below.
    """

    name: str
    title: str
    marks: tuple[Mark, ...]
    percent: bool = False
    unit: str = ""
    log_y: bool = False
    levels: tuple[Level, ...] = ()
    x_title: str = ""
    log_x: bool = False
    labels: tuple[tuple[float, float, str], ...] = ()
    from_zero: bool = True
    is_timed: bool = False
    x_unit: str = ""
    ceiling: float | None = None
    names: tuple[str, ...] = ()

    @property
    def height(self) -> float:
        """The height, in usual panels: rows of bars need room for their names."""
        return max(1.0, len(self.names) / _ROWS)

    @property
    def drawn(self) -> bool:
        """Whether there is any data to draw."""
        return any(mark.y.count() for mark in self.marks)

    @property
    def above(self) -> tuple[str, ...]:
        """The values above the axis, by name."""
        span = self.span
        peak = () if span.peak is None else (f"the start-up, up to {self._written(span.peak)}",)
        return (*peak, *(level.name for level in span.above))

    def _written(self, value: float) -> str:
        if self.percent:
            return share(value)
        return f"{digits(value, 3)} {self.unit}".rstrip()

    def ticks(self, axis: Literal["x", "y"]) -> list[float]:
        """Returns the labelled values of a logarithmic axis."""
        low, high = self.extent(axis)
        return ticks.logarithmic(low, high) if low > 0 else []

    def extent(self, axis: Literal["x", "y"]) -> tuple[float, float]:
        """Returns the lowest and the highest drawn value; for a log axis, only above 0."""
        several = [
            values
            for mark in self.marks
            for values in ((mark.x,) if axis == "x" else (mark.y, mark.low, mark.high))
            if values is not None and values.dtype.is_numeric()
        ]
        if self.log_x if axis == "x" else self.log_y:
            several = [values.filter(values > 0) for values in several]
        ends = [
            float(end)
            for values in several
            for end in (values.min(), values.max())
            if isinstance(end, int | float) and math.isfinite(end)
        ]
        return (min(ends), max(ends)) if ends else (0.0, 0.0)

    @property
    def time_range(self) -> Any:
        """The first and the last moment of a panel whose horizontal axis is time."""
        several = [mark.x for mark in self.marks if mark.x.count()]
        lows, highs = [values.min() for values in several], [values.max() for values in several]
        return min(lows), max(highs)  # type: ignore[type-var]  # all of them are of one type

    @property
    def span(self) -> AxisSpan:
        """The range of the vertical axis.

        It starts at 0, unless all values are in the top tenth and differ: then it is cut, and
        `is_cut` is True. Shares and areas always start at 0. Levels are inside the range, unless
        they are far above the data.
        """
        if self.names:
            return AxisSpan(-_BESIDE, len(self.names) - 1 + _BESIDE)
        low, high = self.extent("y")
        if self.log_y:
            # A point at the edge would be cut in half.
            room = (high / low) ** _LOG_HEADROOM if low > 0 else 1.0
            return AxisSpan(low / room, high * room, levels=self.levels)
        peak = None
        if self.ceiling is not None and self.ceiling < high:
            high, peak = self.ceiling, high
        near = tuple(level for level in self.levels if level.y <= _LEVEL_ROOM * high)
        above = tuple(level for level in self.levels if level not in near)
        top = max([high, *(level.y for level in near)])
        highest = max((level.y for level in near), default=0.0)
        # An area shows amounts by its size, which only starts at 0.
        varies = (
            top - low >= LEAST_CUT * top
            and not self.percent
            and not any(mark.filled for mark in self.marks)
        )
        if self.from_zero and not (varies and low >= TOP_TENTH * top > 0):
            end = max((top or 1.0) * (1 + _HEADROOM), highest * (1 + _LEVEL_HEADROOM))
            return AxisSpan(min(low, 0.0), end, levels=near, above=above, peak=peak)
        room = _HEADROOM * (top - low) or 0.01 * abs(top) or 1.0
        return AxisSpan(low - room, top + room, self.from_zero, near, above)


@frozen
class Event:
    """A range of the shared axis, shaded in every panel, or a moment: then it has no `end`.

    `row` is the row of its label, if any. `panels` names the panels that show it, if not all do.
    """

    begin: X
    end: X | None
    name: str
    severity: str = "bad"
    row: int | None = 0
    panels: tuple[str, ...] | None = None

    @property
    def kind(self) -> Literal["band", "moment"]:
        """What it is drawn as."""
        return "moment" if self.end is None else "band"

    @property
    def ends(self) -> tuple[X, X]:
        """Where it begins and ends; both are the same for a moment."""
        return self.begin, self.begin if self.end is None else self.end


CHARACTER = 0.0095
"""Width of a character of a label, as a share of a narrow figure."""


def width_of(name: str) -> float:
    """Returns the width of a label, as a share of the axis."""
    return CHARACTER * (len(name) + 1)


def share_of(at: Any, ends: tuple[Any, Any]) -> float:
    """Returns the place of a position on the axis: 0 at its beginning, 1 at its end."""
    first, last = ends
    return float((at - first) / (last - first)) if last != first else 0.0


def is_flipped(name: str, at: Any, ends: tuple[Any, Any]) -> bool:
    """Returns whether a label is to the left of its position, for lack of room on the right."""
    return share_of(at, ends) + width_of(name) > 1


@frozen
class Figure:
    """A plot.

    With `shared_x` all panels share one time axis (seconds or UTC time) that covers `x_range`.
    `notes` explain what is shown, how it was binned, and what is omitted.
    """

    name: str
    title: str
    panels: tuple[Panel, ...]
    shared_x: bool = True
    x_title: str = ""
    x_range: tuple[X, X] | None = None
    events: tuple[Event, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def drawn(self) -> bool:
        """Whether there is any data to draw."""
        return bool(self.drawn_panels)

    @property
    def drawn_panels(self) -> list[Panel]:
        """The panels that have any data."""
        return [panel for panel in self.panels if panel.drawn]

    def events_of(self, panel: str) -> Iterator[Event]:
        """Yields the events to draw in a panel, bands before moments."""
        for event in self.events:
            if event.panels is None or panel in event.panels:
                yield event

    def labelled(self, panel: Panel) -> Iterator[tuple[Event, int, bool]]:
        """Yields the events with a label in a panel, the row, and whether it is to the left.

        The first panel that is drawn has all labels.
        """
        for event in self.events if [panel] == self.drawn_panels[:1] else ():
            if event.row is not None:
                ends = self.x_range
                flipped = ends is not None and is_flipped(event.name, event.begin, ends)
                yield event, event.row, flipped

    def noting(self, *notes: str) -> Figure:
        """Returns the plot with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes, and what vertical axes omit: 0, or values above them."""
        drawn = self.drawn_panels
        cut = [panel.title for panel in drawn if panel.span.is_cut]
        above = [
            ABOVE.format(panel.title.partition(",")[0], "; ".join(panel.above))
            for panel in drawn
            if panel.above
        ]
        return (*self.notes, *above, *([CUT.format(" and ".join(cut))] if cut else []))


ABOVE = "{}, above the axis: {}."
CUT = "The axis of {} does not start at 0, so that small changes are visible."


SMALLEST_MS = 0.001
"""The shortest printed duration. Shorter ones are drawn at this value, because a logarithmic axis
has no 0."""


def amounts(name: str, what: str, unit: str, marks: Iterable[Mark], **settings: Any) -> Panel:
    """Returns a panel of amounts over time."""
    return Panel(name, f"{what}, {unit}", tuple(marks), unit=unit, is_timed=True, **settings)


def shares(name: str, title: str, marks: Iterable[Mark], **settings: Any) -> Panel:
    """Returns a panel of shares over time."""
    return Panel(name, title, tuple(marks), percent=True, is_timed=True, **settings)


def cumulative(name: str, what: str, marks: Iterable[Mark], x: str, unit: str) -> Panel:
    """Returns a panel of shares up to each value of a logarithmic axis."""
    return Panel(
        name, what, tuple(marks), percent=True, log_x=True, x_title=f"{x}, {unit}", x_unit=unit
    )


def distributed(
    name: str, values: pl.Series, look: Look, bins: int, *, least: float = SMALLEST_MS
) -> Mark:
    """Returns the cumulative share of values as steps."""
    x, share = distribution(values.clip(lower_bound=least), bins)
    return Mark(name, x, share, "step", look)
