"""Draws plots with Plotly, as plain dicts for its script and for `go.Figure`."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gctrace_analyzer import extras
from gctrace_analyzer.present.plots.figure import GREY, SEVERITY

if TYPE_CHECKING:
    import polars as pl

    from gctrace_analyzer.present.plots.figure import Figure, Mark, Panel

GRID = "rgba(127,127,127,0.22)"
PANEL_HEIGHT = 230
LINE, LEGEND_KEY = 100, 7
"""How many characters fit above a panel, and how many a legend entry takes beyond its name."""
LEGEND_ROW = 20

_DIGITS = 5


def draw(figure: Figure) -> Any:
    """Returns the plot as a `plotly.graph_objects.Figure`.

    Raises:
        MissingExtraError: Plotly is not installed.
    """
    return extras.load("plotly.graph_objects").Figure(described(figure))


def described(figure: Figure) -> dict[str, Any]:
    """Returns the whole plot with its panels below each other."""
    panels = [panel for panel in figure.panels if panel.drawn]
    height = 90 + PANEL_HEIGHT * max(len(panels), 1) + 18 * len(figure.notes)
    layout: dict[str, Any] = {
        "title": {
            "text": figure.title,
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
            "b": 56 + 18 * len(figure.notes),
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
    _note(layout, figure, height)
    return {"data": data, "layout": layout}


def panel_alone(figure: Figure, panel: Panel, *, last: bool = True) -> dict[str, Any]:
    """Returns one panel as a plot of its own, without its title.

    Of the panels that share an axis, only the `last` one shows the title of that axis.
    """
    layout: dict[str, Any] = {
        "margin": {"l": 56, "r": 12, "t": 8, "b": 40},
        "hovermode": _hover(figure),
        "annotations": [],
        "shapes": [],
        "showlegend": len(panel.marks) > 1,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    }
    data: list[dict[str, Any]] = []
    _axes(layout, figure, panel, index=0, last=True, domain=[0, 1])
    if not last:
        layout["xaxis"].pop("title")
        layout["margin"]["b"] = 24
    data += _all_traces(panel, index=0, shared=True, legend="legend")
    _shade(layout, figure, panel, index=0, named=False)
    return {"data": data, "layout": layout}


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
    data += _all_traces(panel, index=index, shared=figure.shared_x, legend=legend)
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
    layout[f"yaxis{number}"] = {
        "domain": domain,
        "anchor": f"x{own_x}",
        "gridcolor": GRID,
        "zerolinecolor": GRID,
        **(_log(panel.ticks("y")) if panel.log_y else {}),
        **({"tickformat": ".3~p"} if panel.percent else {}),
        **({"rangemode": "tozero"} if panel.from_zero and not panel.log_y else {}),
    }
    if figure.shared_x and not last:
        return
    layout[f"xaxis{own_x}"] = {
        "anchor": f"y{number}",
        "gridcolor": GRID,
        "zerolinecolor": GRID,
        "title": {"text": figure.x_title if figure.shared_x else panel.x_title},
        **(_log(panel.ticks("x")) if panel.log_x else {}),
        **({"range": [_value(end) for end in figure.x_range]} if figure.x_range else {}),
    }


def _log(ticks: list[float]) -> dict[str, Any]:
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,g}" for tick in ticks]}


def _hover(figure: Figure) -> str:
    """Returns the hover mode: one box for all series over time, else one for each point."""
    return "x unified" if figure.shared_x and figure.x_range else "closest"


def _all_traces(panel: Panel, *, index: int, shared: bool, legend: str) -> list[dict[str, Any]]:
    traces: list[dict[str, Any]] = []
    named: list[pl.Series] = []
    for mark in panel.marks:
        # Equal names of cycles are stored once: they would make up most of the size of a page.
        again = mark.where is not None and any(mark.where.equals(each) for each in named)
        if mark.where is not None:
            named.append(mark.where)
        shown = replace(mark, where=None) if again else mark
        traces += _traces(
            shown, index=index, shared=shared, legend=legend, percent=panel.percent
        )
    return traces


def _traces(
    mark: Mark, *, index: int, shared: bool, legend: str, percent: bool
) -> list[dict[str, Any]]:
    number = str(index + 1) if index else ""
    axes = {"xaxis": "x" if shared else f"x{number}", "yaxis": f"y{number}"}
    x = _values(mark.x)
    traces = []
    if mark.low is not None and mark.high is not None:
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
                "fillcolor": faint(mark.color),
            }
        )
    shown = "%{y:.3~p}" if percent else "%{y:,.4~g}"
    main: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers" if mark.kind == "points" else "lines",
        "name": mark.name,
        "legend": legend,
        "legendgroup": f"{index}{mark.name}",
        "x": x,
        "y": _values(_top(mark)),
        **axes,
        "hovertemplate": f"{shown}<extra>{mark.name}</extra>",
    }
    if mark.where is not None:
        main["customdata"] = mark.where.to_list()
        main["hovertemplate"] = f"{shown} · %{{customdata}}<extra>{mark.name}</extra>"
    if mark.kind == "points":
        main["marker"] = {"color": mark.color, "size": mark.size}
    else:
        main["line"] = {
            "color": mark.color,
            "width": 1.6,
            **({"dash": "dash"} if mark.dash else {}),
            **({"shape": "hv"} if mark.kind == "step" else {}),
        }
    if mark.filled and mark.low is None:
        main |= {"fill": "tozeroy", "fillcolor": faint(mark.color)}
    return [*traces, main]


def _top(mark: Mark) -> pl.Series:
    """Returns the values to draw.

    Points show the highest value of their bin, because a mean would hide long pauses.
    """
    return mark.high if mark.kind == "points" and mark.high is not None else mark.y


def _shade(
    layout: dict[str, Any], figure: Figure, panel: Panel, *, index: int, named: bool
) -> None:
    number = str(index + 1) if index else ""
    across = {"yref": f"y{number} domain", "y0": 0, "y1": 1, "xref": "x"}
    for band in figure.bands:
        layout["shapes"].append(
            {
                "type": "rect",
                "layer": "below",
                "line": {"width": 0},
                **across,
                "x0": _value(band.begin),
                "x1": _value(band.end),
                "fillcolor": faint(SEVERITY[band.severity]),
            }
        )
        if named and band.labelled:
            layout["annotations"].append(
                {
                    "text": band.name,
                    "x": _value(band.begin),
                    "xref": "x",
                    "xanchor": "left",
                    "y": 1,
                    "yref": f"y{number} domain",
                    "yanchor": "top",
                    "showarrow": False,
                    "font": {"color": SEVERITY[band.severity], "size": 11},
                }
            )
    for moment in figure.moments:
        color = SEVERITY.get(moment.severity, GREY)
        layout["shapes"].append(
            {
                "type": "line",
                **across,
                "x0": _value(moment.at),
                "x1": _value(moment.at),
                "line": {"color": color, "width": 1.5, "dash": "dot"},
            }
        )
        if named or not index:
            layout["annotations"].append(
                {
                    "text": moment.name,
                    "x": _value(moment.at),
                    "xref": "x",
                    "y": 1,
                    "yref": f"y{number} domain",
                    "yanchor": "top",
                    "xanchor": "right",
                    "showarrow": False,
                    "font": {"color": color, "size": 11},
                    "textangle": -90,
                }
            )
    for level in panel.levels:
        own_x = "x" if figure.shared_x else f"x{number}"
        layout["shapes"].append(
            {
                "type": "line",
                "xref": f"{own_x} domain",
                "x0": 0,
                "x1": 1,
                "yref": f"y{number}",
                "y0": level.y,
                "y1": level.y,
                "line": {"color": level.color, "width": 1.3, "dash": "dash"},
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
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"color": level.color, "size": 11},
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


def _note(layout: dict[str, Any], figure: Figure, height: int) -> None:
    for index, note in enumerate(figure.notes):
        layout["annotations"].append(
            {
                "text": note,
                "x": 0,
                "xref": "paper",
                "xanchor": "left",
                "yref": "paper",
                "y": 0,
                "yanchor": "top",
                "yshift": -44 - 18 * index,
                "showarrow": False,
                "font": {"size": 11, "color": GREY},
            }
        )


def faint(color: str) -> str:
    """Returns the colour with transparency.

    >>> faint("#0072B2")
    'rgba(0,114,178,0.18)'
    """
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"


def _values(series: pl.Series) -> list[Any]:
    """Returns rounded numbers, or times in the format that Plotly parses."""
    if series.dtype.is_temporal():
        return series.dt.replace_time_zone(None).dt.strftime("%Y-%m-%d %H:%M:%S%.3f").to_list()
    if series.dtype.is_float():
        return series.round_sig_figs(_DIGITS if len(series) > 1 else 9).to_list()
    return series.to_list()


def _value(at: Any) -> Any:
    return at.strftime("%Y-%m-%d %H:%M:%S.%f") if isinstance(at, datetime) else at
