"""Draws plots with Plotly, with a static picture for viewers that run no scripts."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import extras
from gctrace_analyzer.errors import MissingExtraError
from gctrace_analyzer.present.plots import matplotlib_backend
from gctrace_analyzer.present.plots.palette import LIGHT, NEUTRAL
from gctrace_analyzer.present.plots.ticks import BRIEF_S
from gctrace_analyzer.units import DAY_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.present.plots.figure import Figure, Mark, Panel

GRID = "rgba(127,127,127,0.22)"
CLEAR = "rgba(0,0,0,0)"
PANEL_HEIGHT = 230
LINE, LEGEND_KEY = 100, 7
"""Characters that fit above a panel, and those that a legend entry takes besides its name."""
LEGEND_ROW = 20

_DIGITS = 5
_FONT = "system-ui, -apple-system, Segoe UI, sans-serif"
_AXIS = {
    "gridcolor": GRID,
    "zerolinecolor": GRID,
    # Separates the lowest label of one axis from the first of the other.
    "ticks": "outside",
    "ticklen": 4,
    "tickcolor": CLEAR,
}
_NOTE_HEIGHT = 18
_MODES = {"line": "lines", "step": "lines", "points": "markers"}
_STEM_ALPHA = 0.45
_BAR_END = 1.7
"""End of the axis of bars, relative to the longest bar."""


def draw(figure: Figure) -> Any:
    """Returns the plot as a `plotly.graph_objects.Figure`.

    When displayed, it includes a PNG drawn by Matplotlib, if that is installed, for viewers that
    run no scripts.

    Raises:
        MissingExtraError: Plotly is not installed.
    """
    plain = extras.load("plotly.graph_objects").Figure

    class Shown(plain):  # type: ignore[misc, valid-type]  # the class is known at run time only
        # Otherwise IPython would use this and ignore the pictures.
        _ipython_display_ = None

        def __reduce__(self) -> Any:
            # A class inside a function cannot be pickled.
            _, *state = super().__reduce__()
            return (plain, *state)

        def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> dict[str, object]:
            forms = dict(super()._repr_mimebundle_(*args, **kwargs))
            # Otherwise a notebook stores every value once more, as text.
            forms["text/plain"] = f"<{figure.title}>"
            with suppress(MissingExtraError):
                forms["image/png"] = matplotlib_backend.draw(figure)._repr_png_()
            return forms

    Shown.__name__ = Shown.__qualname__ = plain.__name__
    return Shown(described(figure))


def described(figure: Figure) -> dict[str, object]:
    """Returns the whole plot, with its panels one below the other."""
    return _Description(figure).whole()


class _Description:
    """A plot in Plotly's form, to which panels are added.

    Panels that share the time axis have one axis below the last of them, so that one hover box
    shows the values of all.
    """

    def __init__(self, figure: Figure) -> None:
        self.figure = figure
        self.panels = figure.drawn_panels
        self.data: list[dict[str, object]] = []
        self.annotations: list[dict[str, object]] = []
        self.shapes: list[dict[str, object]] = []
        notes = _NOTE_HEIGHT * len(figure.all_notes)
        heights = sum(panel.height for panel in self.panels)
        legend_rows = _legend_rows(self.panels[0]) if self.panels else 0
        self.layout: dict[str, object] = {
            "template": "plotly_white",
            "font": {"family": _FONT, "size": 12, "color": LIGHT["ink"]},
            "title": {
                "text": figure.title,
                "font": {"size": 15, "weight": 600},
                "x": 0,
                "xref": "paper",
                "y": 1,
                "yref": "container",
                "yanchor": "top",
                "pad": {"t": 12},
            },
            "height": 90 + round(PANEL_HEIGHT * max(heights, 1)) + notes,
            "margin": {"l": 64, "r": 16, "t": 64 + LEGEND_ROW * legend_rows, "b": 62 + notes},
            # One hover box for all series over time, else one for each point.
            "hovermode": "x unified" if figure.shared_x and figure.x_range else "closest",
            "annotations": self.annotations,
            "shapes": self.shapes,
        }

    def whole(self) -> dict[str, object]:
        """Returns the plot."""
        for index, panel in enumerate(self.panels):
            self._add(panel, index)
        for index, note in enumerate(self.figure.all_notes):
            self._write(
                note,
                **_at("paper", 0, "paper", 0),
                xanchor="left",
                yanchor="top",
                yshift=-50 - _NOTE_HEIGHT * index,
                font={"size": 11, "color": NEUTRAL},
            )
        return {"data": self.data, "layout": self.layout}

    def _write(self, text: str, **place: Any) -> None:
        self.annotations.append(
            {"text": text, "showarrow": False, "font": {"size": 11}, **place}
        )

    def _add(self, panel: Panel, index: int) -> None:
        number = str(index + 1) if index else ""
        x, y = f"x{'' if self.figure.shared_x else number}", f"y{number}"
        gap = (0.07 if self.figure.shared_x else 0.13) * 3 / max(len(self.panels), 3)
        tall = (1 - gap * (len(self.panels) - 1)) / len(self.panels)
        top = 1 - index * (tall + gap)
        self._axes(panel, x, y, [max(top - tall, 0), top])
        self.layout[f"legend{number}"] = {
            "orientation": "h",
            "x": 1,
            "xanchor": "right",
            "y": top,
            "yanchor": "bottom",
            "bgcolor": CLEAR,
        }
        self._write(
            panel.title,
            **_at("paper", 0, "paper", top),
            xanchor="left",
            yanchor="bottom",
            yshift=LEGEND_ROW * _legend_rows(panel),
            font={"size": 12, "weight": 600},
        )
        for mark in panel.marks:
            place = {
                "xaxis": x,
                "yaxis": y,
                "legendgroup": f"{index}{mark.name}",
                "x": _values(mark.x, timed=panel.is_timed),
            }
            self.data += _traces(mark, panel, place, f"legend{number}")
        self._shade(panel, y)
        self._levels(panel, x, y)

    def _axes(self, panel: Panel, x: str, y: str, domain: list[float]) -> None:
        figure, span = self.figure, panel.span
        self.layout[f"yaxis{y[1:]}"] = {
            **_AXIS,
            "domain": domain,
            "anchor": x,
            **({"tickformat": ".3~p"} if panel.percent else {}),
            **(_rows(panel) if panel.names else {}),
            **(_log(panel.ticks("y")) if panel.log_y else {"range": [span.low, span.high]}),
        }
        if figure.shared_x and panel is not self.panels[-1]:
            return
        title = figure.x_title if figure.shared_x else panel.x_title
        # Room for the text at the end of the longest bar.
        ends = {"range": [0, _BAR_END * panel.extent("x")[1]]} if panel.names else {}
        axis = {
            **_AXIS,
            **ends,
            "anchor": y,
            "title": {"text": title, "font": {"size": 12}},
            **(_log(panel.ticks("x")) if panel.log_x else {}),
            **(_time_axis(panel) if panel.is_timed else {}),
        }
        if figure.x_range:
            axis["range"] = [_value(end, timed=panel.is_timed) for end in figure.x_range]
        self.layout[f"xaxis{x[1:]}"] = axis

    def _shade(self, panel: Panel, y: str) -> None:
        """Adds bands and moments, and their names in rows to the first panel."""

        def at(place: Any) -> Any:
            return _value(place, timed=panel.is_timed)

        across = {"xref": "x", "yref": f"{y} domain", "y0": 0, "y1": 1}
        for event in self.figure.events_of(panel.name):
            begin, color = at(event.begin), LIGHT[event.severity]
            line: dict[str, object] = {"color": color, "width": 1.5, "dash": "dot"}
            look: dict[str, object] = {"type": "line", "x1": begin, "line": line}
            if event.end is not None:
                look = {"type": "rect", "x1": at(event.end), "fillcolor": faint(color)}
                look |= {"layer": "below", "line": {"width": 0}}
            self.shapes.append({**across, "x0": begin, **look})
        for event, row, flipped in self.figure.labelled(panel):
            self._write(
                event.name,
                **_at("x", at(event.begin), f"{y} domain", 1),
                xanchor="right" if flipped else "left",
                yanchor="top",
                yshift=-14 * row,
                font={"color": LIGHT[event.severity], "size": 11},
                # No line crosses its letters.
                bgcolor="rgba(255,255,255,0.75)",
            )

    def _levels(self, panel: Panel, x: str, y: str) -> None:
        """Adds lines across the panel, and the labels of points."""
        span, across = panel.span, f"{x} domain"
        for level in span.levels:
            line = {"color": LIGHT["ink"], "width": 1.3, "dash": level.dash}
            ends = {"xref": across, "x0": 0, "x1": 1, "y0": level.y, "y1": level.y}
            self.shapes.append({"type": "line", **ends, "yref": y, "line": line})
            self._write(
                level.name,
                **_at(across, 0, y, level.y),
                xanchor="left",
                yanchor="top" if span.is_near_the_top(level) else "bottom",
                font={"color": LIGHT["ink"], "size": 11},
            )
        for at, height, text in panel.labels:
            self._write(text, **_at(x, at, y, height), xanchor="left", yanchor="bottom")


def _at(xref: str, x: Any, yref: str, y: float) -> dict[str, object]:
    """Returns a position: on an axis, in its domain, or on the paper."""
    return {"xref": xref, "x": x, "yref": yref, "y": y}


def _legend_rows(panel: Panel) -> int:
    """Returns the number of legend rows that do not fit next to the title."""
    names = [len(mark.name) + LEGEND_KEY for mark in panel.marks if mark.y.count()]
    fits = len(names) < 2 or len(panel.title) + sum(names) <= LINE
    return 0 if fits else math.ceil(sum(names) / LINE)


def _time_axis(panel: Panel) -> dict[str, object]:
    """Returns the format of times: Plotly's for the clock, else h:mm:ss."""
    first = panel.marks[0].x
    if first.dtype.is_temporal():
        return {"type": "date", "hoverformat": "%Y-%m-%d %H:%M:%S.%L"}
    end = panel.extent("x")[1]
    is_long, unit = end >= DAY_S, " s" if end < BRIEF_S else ""
    # Hours beyond the first day exceed what a date format can count.
    hours = "%-S" if unit else "day %-j %H:%M:%S" if is_long else "%-H:%M:%S"
    stops = [
        {"dtickrange": [None, 999], "value": f"{hours}.%L{unit}"},
        {"dtickrange": [1000, 59_999], "value": f"{hours}{unit}"},
        {"dtickrange": [60_000, None], "value": "day %-j %H:%M" if is_long else hours},
    ]
    axis: dict[str, object] = {
        "type": "date",
        "hoverformat": f"{hours}.%L{unit}",
        "tickformatstops": stops,
    }
    if is_long:
        axis["title"] = {"text": "time since the start (day 1: the first 24 hours)"}
    return axis


def _log(ticks: list[float]) -> dict[str, object]:
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,g}" for tick in ticks]}


def _traces(
    mark: Mark, panel: Panel, place: dict[str, Any], legend: str
) -> Iterator[dict[str, object]]:
    """Yields the band of a mark, if it has one, and the mark itself."""
    color = mark.look.hex
    if mark.band:
        low, high = mark.band
        edge = {
            "type": "scatter",
            "mode": "lines",
            "line": {"width": 0},
            "hoverinfo": "skip",
            "showlegend": False,
            **place,
        }
        yield {**edge, "y": _values(low)}
        yield {**edge, "y": _values(high), "fill": "tonexty", "fillcolor": faint(color)}
    if mark.kind == "bar":
        yield _bars(mark, panel, place)
        return
    if mark.kind == "heat":
        yield _heat(mark, panel, place)
        return
    unit = f" {panel.unit}" if panel.unit else ""
    shown = "%{y:.3~p}" if panel.percent else f"%{{y:,.4~g}}{unit}"
    trace: dict[str, object] = {
        "type": "scatter",
        "mode": _MODES[mark.kind],
        "name": mark.name,
        "legend": legend,
        **place,
        "y": _values(mark.top),
    }
    if mark.where is not None:
        trace["customdata"] = mark.where.to_list()
        shown += " · %{customdata}"
    trace["hovertemplate"] = f"{shown}<extra>{mark.name}</extra>"
    if mark.kind == "points":
        trace["marker"] = {"color": color, "size": mark.size, "symbol": mark.look.symbol}
    else:
        shape = {"shape": "hv"} if mark.kind == "step" else {}
        trace["line"] = {"color": color, "width": 1.6, "dash": mark.look.dash, **shape}
    if mark.has_stems:
        # Error bars down to zero move with their points, whatever is zoomed.
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [0] * len(mark.top),
            "arrayminus": trace["y"],
            "color": faint(color, _STEM_ALPHA),
            "thickness": 1,
            "width": 0,
        }
        # A point at the edge would be cut in half.
        trace["cliponaxis"] = False
    if mark.filled and mark.low is None:
        trace |= {"fill": "tozeroy", "fillcolor": faint(color)}
    yield trace


def _bars(mark: Mark, panel: Panel, place: dict[str, Any]) -> dict[str, object]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": mark.name,
        "showlegend": False,
        "marker": {"color": mark.look.hex},
        **place,
        "y": _values(mark.y),
        "text": None if mark.where is None else mark.where.to_list(),
        "textposition": "outside",
        "hovertext": panel.names,
        "hovertemplate": "%{hovertext}<br>%{text}<extra></extra>",
    }


def _heat(mark: Mark, panel: Panel, place: dict[str, object]) -> dict[str, object]:
    """Returns counts as colours on a logarithmic scale, with the counts as text."""
    return {
        "type": "heatmap",
        "name": mark.name,
        **place,
        "y": _values(mark.y),
        "z": [[n and math.log10(n) for n in row] for row in mark.cells],
        "text": mark.cells,
        "colorscale": "Viridis_r",  # most is darkest, on a light ground
        "colorbar": {
            "title": {"text": mark.name},
            "tickvals": [math.log10(n) for n in mark.counts],
            "ticktext": [f"{n:,g}" for n in mark.counts],
        },
        "hovertemplate": f"%{{x}}<br>%{{y:.3g}} {panel.unit}: %{{text}} {mark.name}<extra></extra>",
    }


def _rows(panel: Panel) -> dict[str, object]:
    """Returns the axis of rows with names."""
    names = {"tickvals": [*range(len(panel.names))], "ticktext": panel.names}
    return {**names, "automargin": True, "showgrid": False, "zeroline": False}


def faint(color: str, alpha: float = 0.18) -> str:
    """Returns the colour with transparency.

    >>> faint("#1a4fd6")
    'rgba(26,79,214,0.18)'
    """
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def _values(series: pl.Series, *, timed: bool = False) -> list[Any]:
    """Returns rounded numbers, or times in the format that Plotly parses.

    Times since the start become moments of 1970, because only a date axis shows h:mm:ss at every
    zoom.
    """
    if timed and series.dtype.is_numeric():
        series = pl.select(
            pl.from_epoch((series * 1e6).round().cast(pl.Int64), time_unit="us")
        ).to_series()
    if series.dtype.is_temporal():
        return series.dt.replace_time_zone(None).dt.strftime("%Y-%m-%d %H:%M:%S%.3f").to_list()
    if series.dtype.is_float():
        return series.round_sig_figs(_DIGITS if len(series) > 1 else 9).to_list()
    return series.to_list()


def _value(at: Any, *, timed: bool = False) -> Any:
    if isinstance(at, datetime):
        return at.strftime("%Y-%m-%d %H:%M:%S.%f")
    return _values(pl.Series([float(at)]), timed=True)[0] if timed else at
