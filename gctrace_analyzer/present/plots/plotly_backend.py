"""Draws plots with Plotly, with a static picture for viewers that run no scripts."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import extras
from gctrace_analyzer.errors import MissingExtraError
from gctrace_analyzer.present.plots import matplotlib_backend
from gctrace_analyzer.present.plots.events import is_flipped
from gctrace_analyzer.present.plots.palette import LIGHT, NEUTRAL

if TYPE_CHECKING:
    from gctrace_analyzer.present.plots.figure import Band, Figure, Mark, Moment, Panel

GRID = "rgba(127,127,127,0.22)"
PANEL_HEIGHT = 230
LINE, LEGEND_KEY = 100, 7
"""How many characters fit above a panel, and how many a legend entry takes beyond its name."""
LEGEND_ROW = 20

_DIGITS = 5
_FONT = "system-ui, -apple-system, Segoe UI, sans-serif"
_APART = {"ticks": "outside", "ticklen": 4, "tickcolor": "rgba(0,0,0,0)"}
"""Keeps the lowest label of one axis from the first of the other."""


_DAY_S = 86_400


def draw(figure: Figure) -> Any:
    """Returns the plot as a `plotly.graph_objects.Figure`.

    Where it is displayed, a PNG drawn by Matplotlib comes with it, if that is installed: viewers
    that run no scripts show this one.

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

        def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
            forms = dict(super()._repr_mimebundle_(*args, **kwargs))
            # Otherwise a notebook stores every value once more, as text.
            forms["text/plain"] = f"<{figure.title}>"
            try:
                forms["image/png"] = matplotlib_backend.draw(figure)._repr_png_()
            except MissingExtraError:
                return forms
            return forms

    Shown.__name__ = Shown.__qualname__ = plain.__name__
    return Shown(described(figure))


def described(figure: Figure) -> dict[str, Any]:
    """Returns the whole plot with its panels below each other."""
    panels = [panel for panel in figure.panels if panel.drawn]
    height = 90 + PANEL_HEIGHT * max(len(panels), 1) + 18 * len(figure.all_notes)
    layout: dict[str, Any] = {
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
        "height": height,
        "margin": {
            "l": 64,
            "r": 16,
            "t": 64 + LEGEND_ROW * (_legend_rows(panels[0]) if panels else 0),
            "b": 62 + 18 * len(figure.all_notes),
        },
        "hovermode": _hover(figure),
        "annotations": [],
        "shapes": [],
    }
    data: list[dict[str, Any]] = []
    gap = (0.07 if figure.shared_x else 0.13) * 3 / max(len(panels), 3)
    tall = (1 - gap * (len(panels) - 1)) / max(len(panels), 1)
    for index, panel in enumerate(panels):
        top = 1 - index * (tall + gap)
        _place(
            layout,
            data,
            figure,
            panel,
            index=index,
            last=index == len(panels) - 1,
            domain=[max(top - tall, 0), top],
        )
    if panels:
        _note(layout, figure)
    else:
        _say_why(layout, figure)
    return {"data": data, "layout": layout}


def _say_why(layout: dict[str, Any], figure: Figure) -> None:
    """Writes why there is nothing to draw, in place of empty axes."""
    layout |= {"xaxis": {"visible": False}, "yaxis": {"visible": False}}
    text = "<br>".join(figure.all_notes) or matplotlib_backend.NOTHING
    layout["annotations"].append(
        {"text": text, "x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper", "showarrow": False}
    )


def _place(
    layout: dict[str, Any],
    data: list[dict[str, Any]],
    figure: Figure,
    panel: Panel,
    *,
    index: int,
    last: bool,
    domain: list[float],
) -> None:
    _axes(layout, figure, panel, index=index, last=last, domain=domain)
    legend = f"legend{index + 1 if index else ''}"
    layout[legend] = {
        "orientation": "h",
        "x": 1,
        "xanchor": "right",
        "y": domain[1],
        "yanchor": "bottom",
        "bgcolor": "rgba(0,0,0,0)",
    }
    layout["annotations"].append(
        {
            "text": panel.title,
            "font": {"size": 12, "weight": 600},
            "x": 0,
            "xref": "paper",
            "xanchor": "left",
            "y": domain[1],
            "yref": "paper",
            "yanchor": "bottom",
            "showarrow": False,
            "yshift": LEGEND_ROW * _legend_rows(panel),
        }
    )
    for mark in panel.marks:
        data += _traces(mark, panel, index=index, shared=figure.shared_x, legend=legend)
    _shade(layout, figure, panel, index=index, named=index == 0)


def _legend_rows(panel: Panel) -> int:
    """Returns the number of legend rows that do not fit next to the title and go below it."""
    names = [len(mark.name) + LEGEND_KEY for mark in panel.marks if mark.y.count()]
    fits = len(names) < 2 or len(panel.title) + sum(names) <= LINE
    return 0 if fits else math.ceil(sum(names) / LINE)


def _axes(
    layout: dict[str, Any],
    figure: Figure,
    panel: Panel,
    *,
    index: int,
    last: bool,
    domain: list[float],
) -> None:
    number = str(index + 1) if index else ""
    own_x = number if not figure.shared_x else ""
    span = panel.span
    layout[f"yaxis{number}"] = {
        "domain": domain,
        "anchor": f"x{own_x}",
        "gridcolor": GRID,
        "zerolinecolor": GRID,
        **_APART,
        **({"tickformat": ".3~p"} if panel.percent else {}),
        **(_log(panel.ticks("y")) if panel.log_y else {"range": [span.low, span.high]}),
    }
    if figure.shared_x and not last:
        return
    layout[f"xaxis{own_x}"] = {
        "anchor": f"y{number}",
        "gridcolor": GRID,
        "zerolinecolor": GRID,
        **_APART,
        "title": {
            "text": figure.x_title if figure.shared_x else panel.x_title,
            "font": {"size": 12},
        },
        **(_log(panel.ticks("x")) if panel.log_x else {}),
        **(_time_axis(panel) if panel.is_timed else {}),
        **(
            {"range": [_value(end, timed=panel.is_timed) for end in figure.x_range]}
            if figure.x_range
            else {}
        ),
    }


def _time_axis(panel: Panel) -> dict[str, Any]:
    """Returns the format of times: of the clock as Plotly knows it, else h:mm:ss."""
    first = panel.marks[0].x
    if first.dtype.is_temporal():
        return {"type": "date", "hoverformat": "%Y-%m-%d %H:%M:%S.%L"}
    is_long = panel.extent("x")[1] >= _DAY_S
    # Hours of a second day are beyond what a format for dates can count.
    hours = "day %-j %H:%M:%S" if is_long else "%-H:%M:%S"
    stops = [
        {"dtickrange": [None, 999], "value": f"{hours}.%L"},
        {"dtickrange": [1000, 59_999], "value": hours},
        {"dtickrange": [60_000, None], "value": "day %-j %H:%M" if is_long else hours},
    ]
    axis: dict[str, Any] = {
        "type": "date",
        "hoverformat": f"{hours}.%L",
        "tickformatstops": stops,
    }
    if is_long:
        axis["title"] = {"text": "time since the start (day 1: the first 24 hours)"}
    return axis


def _log(ticks: list[float]) -> dict[str, Any]:
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,g}" for tick in ticks]}


def _hover(figure: Figure) -> str:
    """Returns the hover mode: one box for all series over time, else one for each point."""
    return "x unified" if figure.shared_x and figure.x_range else "closest"


def _traces(
    mark: Mark, panel: Panel, *, index: int, shared: bool, legend: str
) -> list[dict[str, Any]]:
    number = str(index + 1) if index else ""
    axes = {"xaxis": "x" if shared else f"x{number}", "yaxis": f"y{number}"}
    x = _values(mark.x, timed=panel.is_timed)
    traces = []
    # Points show the highest of their bin already.
    if mark.low is not None and mark.high is not None and mark.kind != "points":
        edge = {
            "type": "scatter",
            "mode": "lines",
            "line": {"width": 0},
            "hoverinfo": "skip",
            "showlegend": False,
            "legendgroup": f"{index}{mark.name}",
            "x": x,
            **axes,
        }
        traces.append({**edge, "y": _values(mark.low)})
        traces.append(
            {
                **edge,
                "y": _values(mark.high),
                "fill": "tonexty",
                "fillcolor": faint(mark.look.hex),
            }
        )
    unit = f" {panel.unit}" if panel.unit else ""
    shown = "%{y:.3~p}" if panel.percent else f"%{{y:,.4~g}}{unit}"
    main: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers" if mark.kind == "points" else "lines",
        "name": mark.name,
        "legend": legend,
        "legendgroup": f"{index}{mark.name}",
        "x": x,
        "y": _values(mark.top),
        **axes,
        "hovertemplate": f"{shown}<extra>{mark.name}</extra>",
    }
    if mark.where is not None:
        main["customdata"] = mark.where.to_list()
        main["hovertemplate"] = f"{shown} · %{{customdata}}<extra>{mark.name}</extra>"
    if mark.kind == "points":
        main["marker"] = {
            "color": mark.look.hex,
            "size": mark.size,
            "symbol": mark.look.symbol,
        }
        if mark.has_stems:
            # Error bars down to zero move with their points, whatever is zoomed.
            main["error_y"] = {
                "type": "data",
                "symmetric": False,
                "array": [0] * len(mark.top),
                "arrayminus": _values(mark.top),
                "color": faint(mark.look.hex, 0.45),
                "thickness": 1,
                "width": 0,
            }
            # A point at the edge would be cut in half.
            main["cliponaxis"] = False
    else:
        main["line"] = {
            "color": mark.look.hex,
            "width": 1.6,
            "dash": mark.look.dash,
            **({"shape": "hv"} if mark.kind == "step" else {}),
        }
    if mark.filled and mark.low is None:
        main |= {"fill": "tozeroy", "fillcolor": faint(mark.look.hex)}
    return [*traces, main]


def _shade(
    layout: dict[str, Any], figure: Figure, panel: Panel, *, index: int, named: bool
) -> None:
    number = str(index + 1) if index else ""
    across = {"yref": f"y{number} domain", "y0": 0, "y1": 1, "xref": "x"}
    for band in figure.bands_of(panel.name):
        ends = [_value(each, timed=panel.is_timed) for each in (band.begin, band.end)]
        layout["shapes"].append(
            {
                "type": "rect",
                "layer": "below",
                "line": {"width": 0},
                **across,
                "x0": ends[0],
                "x1": ends[1],
                "fillcolor": faint(LIGHT[band.severity]),
            }
        )
        if named and band.row is not None:
            layout["annotations"].append(_label(figure, band, band.begin, panel, number))
    for moment in figure.moments:
        at = _value(moment.at, timed=panel.is_timed)
        layout["shapes"].append(
            {
                "type": "line",
                **across,
                "x0": at,
                "x1": at,
                "line": {"color": LIGHT[moment.severity], "width": 1.5, "dash": "dot"},
            }
        )
        if named and moment.row is not None:
            layout["annotations"].append(_label(figure, moment, moment.at, panel, number))
    span = panel.span
    own_x = "x" if figure.shared_x else f"x{number}"
    for level in panel.levels:
        if level in span.above:
            continue
        layout["shapes"].append(
            {
                "type": "line",
                "xref": f"{own_x} domain",
                "x0": 0,
                "x1": 1,
                "yref": f"y{number}",
                "y0": level.y,
                "y1": level.y,
                "line": {"color": LIGHT["ink"], "width": 1.3, "dash": level.dash},
            }
        )
        layout["annotations"].append(
            {
                "text": level.name,
                "xref": f"{own_x} domain",
                "x": 0,
                "xanchor": "left",
                "yref": f"y{number}",
                "y": level.y,
                "yanchor": "top" if span.is_near_the_top(level) else "bottom",
                "showarrow": False,
                "font": {"color": LIGHT["ink"], "size": 11},
            }
        )
    for x, y, text in panel.labels:
        layout["annotations"].append(
            {
                "text": text,
                "x": x,
                "y": y,
                "xref": "x" if figure.shared_x else f"x{number}",
                "yref": f"y{number}",
                "yanchor": "bottom",
                "xanchor": "left",
                "showarrow": False,
                "font": {"size": 11},
            }
        )


def _label(
    figure: Figure, each: Band | Moment, at: Any, panel: Panel, number: str
) -> dict[str, Any]:
    """Returns the label of a band or a moment, in its row."""
    flipped = figure.x_range is not None and is_flipped(each.name, at, figure.x_range)
    return {
        "text": each.name,
        "x": _value(at, timed=panel.is_timed),
        "xref": "x",
        "xanchor": "right" if flipped else "left",
        "y": 1,
        "yref": f"y{number} domain",
        "yanchor": "top",
        "yshift": -14 * (each.row or 0),
        "showarrow": False,
        "font": {"color": LIGHT[each.severity], "size": 11},
        # No line goes through its letters.
        "bgcolor": "rgba(255,255,255,0.75)",
    }


def _note(layout: dict[str, Any], figure: Figure) -> None:
    for index, note in enumerate(figure.all_notes):
        layout["annotations"].append(
            {
                "text": note,
                "x": 0,
                "xref": "paper",
                "xanchor": "left",
                "yref": "paper",
                "y": 0,
                "yanchor": "top",
                "yshift": -50 - 18 * index,
                "showarrow": False,
                "font": {"size": 11, "color": NEUTRAL},
            }
        )


def faint(color: str, alpha: float = 0.18) -> str:
    """Returns the colour with transparency.

    >>> faint("#1a4fd6")
    'rgba(26,79,214,0.18)'
    """
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def _values(series: pl.Series, *, timed: bool = False) -> list[Any]:
    """Returns rounded numbers, or times in the format that Plotly parses.

    Times since the start become moments of 1970, because only an axis of dates shows h:mm:ss at
    every zoom.
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
