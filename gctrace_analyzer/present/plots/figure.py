"""A plot independent of the library that draws it: panels with marks, bands and moments."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from datetime import datetime

    import polars as pl

    X = float | datetime | str

# Okabe and Ito's palette: distinct for colour-blind readers, on light and dark background.
BLUE, SKY, GREEN, ORANGE, RED, PURPLE, GREY = (
    "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7", "#7F7F7F",
)  # fmt: skip

COLORS = {
    "heap start": SKY,
    "live heap": BLUE,
    "heap goal": ORANGE,
    "limit": RED,
    "container": PURPLE,
    "GC CPU": BLUE,
    "with idle marking": SKY,
    "mark assist": RED,
    "sweep termination": GREEN,
    "mark termination": PURPLE,
    "all pauses": GREY,
    "allocation": GREEN,
    "interval": BLUE,
    "trend": RED,
    "held": RED,
    "needed": BLUE,
    "given back": GREEN,
    "gogc": ORANGE,
    "memory-limit": RED,
    "heap-minimum": GREY,
    "before": BLUE,
    "after": RED,
    "now": GREY,
    "advised": GREEN,
}
"""The same quantity has the same colour in every plot."""

SEVERITY = {"bad": RED, "warn": ORANGE, "info": GREY}


@dataclass(frozen=True, slots=True)
class Mark:
    """One series: a line, steps or points; `low` and `high` make a band around it.

    `where` has the cycle and log line of each point. A null in `y` interrupts the line.
    """

    name: str
    x: pl.Series
    y: pl.Series
    kind: Literal["line", "step", "points"] = "line"
    color: str = GREY
    low: pl.Series | None = None
    high: pl.Series | None = None
    where: pl.Series | None = None
    dash: bool = False
    filled: bool = False
    size: int = 5


@dataclass(frozen=True, slots=True)
class Level:
    """A labelled horizontal line."""

    name: str
    y: float
    color: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes. A `percent` axis shows shares (0–1) as percentages."""

    name: str
    title: str
    marks: tuple[Mark, ...]
    percent: bool = False
    log_y: bool = False
    levels: tuple[Level, ...] = ()
    x_title: str = ""
    log_x: bool = False
    labels: tuple[tuple[float, float, str], ...] = ()
    from_zero: bool = True

    @property
    def drawn(self) -> bool:
        """Whether there is any data to draw."""
        return any(mark.y.count() for mark in self.marks)

    def ticks(self, axis: Literal["x", "y"]) -> list[float]:
        """Returns the labelled values of a logarithmic axis."""
        values = [mark.x if axis == "x" else mark.y for mark in self.marks]
        positive = [each.filter(each > 0).sort() for each in values if each.dtype.is_numeric()]
        ends = [float(each[at]) for each in positive if len(each) for at in (0, -1)]
        return log_ticks(min(ends), max(ends)) if ends else []


def log_ticks(low: float, high: float) -> list[float]:
    """Returns round values for a logarithmic axis: powers of ten, with 2 and 5 if they fit.

    >>> log_ticks(0.003, 0.13), log_ticks(1, 5e6)
    ([0.005, 0.01, 0.02, 0.05, 0.1], [1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0, 1000000.0])
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= 5 else (1,)
    ticks = (float(f"{step}e{decade}") for decade in decades for step in steps)
    return [tick for tick in ticks if low <= tick <= high]


@dataclass(frozen=True, slots=True)
class Band:
    """A range of the shared axis, shaded in every panel."""

    begin: X
    end: X
    name: str
    severity: str
    labelled: bool = True


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment on the shared axis, such as a kill or a restart."""

    at: X
    name: str
    severity: str = "bad"


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot.

    With `shared_x` all panels share one x axis (seconds or UTC time) that covers `x_range`.
    `notes` explain what is shown, how it was binned, and what is left out.
    """

    name: str
    title: str
    panels: tuple[Panel, ...]
    shared_x: bool = True
    x_title: str = ""
    x_range: tuple[X, X] | None = None
    bands: tuple[Band, ...] = ()
    moments: tuple[Moment, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def drawn(self) -> bool:
        """Whether there is any data to draw."""
        return any(panel.drawn for panel in self.panels)

    def noting(self, *notes: str) -> Figure:
        """Returns the plot with more notes."""
        return replace(self, notes=(*self.notes, *notes))
