"""Draws plots with Matplotlib: for print, and for PNG and SVG files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from io import BytesIO
from textwrap import fill
from typing import TYPE_CHECKING, Any

from gctrace_analyzer import extras
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.present.plots import ticks
from gctrace_analyzer.present.plots.palette import DARK, LIGHT, NEUTRAL, PAGE, Theme

if TYPE_CHECKING:
    import polars as pl

    from gctrace_analyzer.present.plots.figure import Figure, Mark, Panel

WIDTH_IN, PANEL_IN = 9.0, 2.1
"""Width of a figure and height of a panel, in inches."""

_LEGEND_COLUMNS, _LEGEND_LETTERS, _LEGEND_ROW = 4, 75, 13
"""Names of series per row above a panel, their total letters, and the height of a row in points."""

_LEVEL_TEXT = 0.08
"""The height of the name of a level, as a share of a panel."""


def draw(figure: Figure, ax: Any = None, theme: Theme = "auto") -> Any:
    """Draws on given axes (one, or one per panel), or on a new Matplotlib figure.

    Returns the Figure, or the Axes it was given.

    Raises:
        MissingExtraError: Matplotlib is not installed.
        BadSettingError: there are more panels than Axes.
    """
    extras.load("matplotlib")
    panels = figure.drawn_panels
    if ax is not None:
        return _on(figure, panels, ax)
    notes = fill(" ".join(figure.all_notes), 120)
    below = 0.25 + 0.17 * notes.count("\n") if notes else 0.0
    tall = (
        PANEL_IN * max(sum(panel.height for panel in panels), 1.5)
        + 0.9
        + below
        + (0.35 * len(panels) * (not figure.shared_x))
    )
    drawn = _new_figure(figsize=(WIDTH_IN, tall), layout="constrained")
    drawn.get_layout_engine().set(rect=(0, below / tall, 1, 1 - below / tall), hspace=0.04)
    axes = drawn.subplots(len(panels), 1, sharex=figure.shared_x, squeeze=False)[:, 0]
    drawn.suptitle(fill(figure.title, _TITLE_LETTERS), x=0.01, ha="left", fontweight="bold")
    _draw_all(figure, panels, list(axes), DARK if theme == "dark" else LIGHT)
    drawn.text(0.01, 0.02 / tall, notes, fontsize=8, color=NEUTRAL, va="bottom")
    return drawn


def image(figure: Figure, kind: str, theme: Theme = "auto") -> bytes:
    """Returns the plot as a PNG or SVG file, for a white or a dark background."""
    file = BytesIO()
    settings = {"dpi": 150} if kind == "png" else {"metadata": {"Date": None}}
    with extras.load("matplotlib").rc_context(ground(theme)):
        drawn = draw(figure, theme=theme)
        drawn.savefig(file, format=kind, **settings)
    return file.getvalue()


def ground(theme: Theme) -> dict[str, str]:
    """Returns Matplotlib's settings for a background; none for `auto`, Matplotlib's own style."""
    if theme == "auto":
        return {}
    colors = PAGE[theme]
    inked = (
        "text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor", "xtick.color",
        "ytick.color",
    )  # fmt: skip
    grounds = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
    return dict.fromkeys(inked, colors["ink"]) | dict.fromkeys(grounds, colors["ground"])


def _new_figure(**settings: Any) -> Any:
    """Returns a figure that pyplot does not manage, so that a notebook shows it only once."""
    plain = extras.load("matplotlib.figure").Figure

    class Shown(plain):  # type: ignore[misc, valid-type]  # the class is known at run time only
        def _repr_png_(self) -> bytes:
            file = BytesIO()
            self.savefig(file, format="png", dpi=100)
            return file.getvalue()

    Shown.__name__ = Shown.__qualname__ = plain.__name__
    return Shown(**settings)


def _on(figure: Figure, panels: Sequence[Panel], ax: Any) -> Any:
    several = [ax] if hasattr(ax, "plot") else getattr(ax, "flat", ax)
    axes = list(several) if isinstance(several, Iterable) else [several]
    if not all(hasattr(each, "plot") for each in axes):
        raise BadSettingError("ax", str(ax), "Axes of Matplotlib, one or one for each panel")
    if len(axes) < len(panels):
        raise BadSettingError(
            "ax",
            f"{len(axes)} Axes",
            f"{len(panels)}: {figure.name} has the panels "
            + ", ".join(panel.name for panel in panels)
            + " (panel=NAME draws one)",
        )
    _draw_all(figure, panels, axes[: len(panels)], LIGHT)
    return ax


def _draw_all(
    figure: Figure, panels: Sequence[Panel], axes: list[Any], colors: dict[str, str]
) -> None:
    for index, (panel, ax) in enumerate(zip(panels, axes, strict=False)):
        _panel(panel, ax, colors)
        _shade(figure, panel, ax, colors)
        last = index == len(panels) - 1
        if not figure.shared_x or last:
            ax.set_xlabel(figure.x_title if figure.shared_x else panel.x_title, fontsize=9)
        if panel.is_timed:
            _time_axis(figure, panel, ax)


def _time_axis(figure: Figure, panel: Panel, ax: Any) -> None:
    ends: tuple[Any, Any] = figure.x_range or panel.time_range
    begin, end = ends
    if begin != end:
        singles = any(mark.has_stems for each in figure.panels for mark in each.marks)
        room = (_EDGE if singles else 0.0) * (end - begin)
        ax.set_xlim(begin - room, end + room)
    chosen = ticks.times(begin, end)
    ax.set_xticks([at for at, _ in chosen], labels=[label for _, label in chosen])
    ax.xaxis.get_offset_text().set_visible(False)


def _panel(panel: Panel, ax: Any, colors: dict[str, str]) -> None:
    for mark in panel.marks:
        if mark.y.count():
            _mark(mark, ax, colors)
    span = panel.span
    named: list[float] = []
    for level in span.levels:
        crowded = any(abs(level.y - y) < _LEVEL_TEXT * (span.high - span.low) for y in named)
        named.append(level.y)
        ax.axhline(level.y, color=colors["ink"], linestyle=_DASHES[level.dash], linewidth=1)
        ax.annotate(
            level.name,
            (0.995 if crowded else 0.005, level.y),
            xycoords=("axes fraction", "data"),
            color=colors["ink"],
            fontsize=8,
            xytext=(0, -2 if span.is_near_the_top(level) and not crowded else 1),
            textcoords="offset points",
            va="top" if span.is_near_the_top(level) and not crowded else "bottom",
            ha="right" if crowded else "left",
        )
    for x, y, text in panel.labels:
        ax.annotate(text, (x, y), xytext=(4, 3), textcoords="offset points", fontsize=8)
    columns = _legend_columns(panel)
    rows = math.ceil(sum(bool(mark.y.count()) for mark in panel.marks) / columns)
    # Several rows of names leave no room next to them.
    pad = 6 + (_LEGEND_ROW * rows if rows > 1 else 0)
    ax.set_title(panel.title, loc="left", fontsize=9, pad=pad)
    _scales(panel, ax)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=8)
    ax.grid(visible=True, color=NEUTRAL, alpha=0.2, linewidth=0.7)
    if len(panel.marks) > 1:
        ax.legend(
            loc="lower right",
            bbox_to_anchor=(1, 1),
            ncols=columns,
            fontsize=8,
            frameon=False,
            borderaxespad=0.1,
            handlelength=2.2,
            columnspacing=1.2,
        )


def _legend_columns(panel: Panel) -> int:
    """Returns the number of series names that fit in a row."""
    longest = max((len(mark.name) for mark in panel.marks if mark.y.count()), default=1)
    return max(1, min(_LEGEND_COLUMNS, _LEGEND_LETTERS // longest))


_DASHES = {
    "solid": "-",
    "dash": (0, (5, 2.5)),
    "dot": (0, (1.4, 1.6)),
    "dashdot": (0, (6, 2, 1.4, 2)),
    "longdash": (0, (10, 3)),
    "longdashdot": (0, (10, 2, 1.4, 2)),
}
_TITLE_LETTERS = 80
_BAR_ROOM = 0.45
"""Room to the right of the longest bar, as a share of it."""

_STEM_ALPHA = 0.35
_EDGE = 0.008
"""Margin of the time axis on either side of single cycles: a point at the edge would be cut in
half."""

_BEHIND = {"boxstyle": "square,pad=0.1", "edgecolor": "none", "alpha": 0.75}
"""Background of the names of bands and moments, so that no line crosses their letters."""

_LABEL_ROW = 0.09
"""Room for a row of such names above all lines, as a share of the vertical axis."""

_SYMBOLS = {"circle": "o", "square": "s"}


def _scales(panel: Panel, ax: Any) -> None:
    ticker = extras.load("matplotlib.ticker")
    span = panel.span
    if panel.log_y:
        ax.set_yscale("log")
        _ticks(ax.yaxis, panel.ticks("y"))
    else:
        ax.set_ylim(span.low, span.high)
    if panel.log_x:
        ax.set_xscale("log")
        _ticks(ax.xaxis, panel.ticks("x"))
    if panel.names:
        ax.set_yticks(range(len(panel.names)), labels=panel.names)
        ax.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,g}"))
    elif panel.percent:
        ax.yaxis.set_major_formatter(
            ticker.FuncFormatter(lambda share, _: f"{100 * share:,.10g} %")
        )
    elif not panel.log_y:
        ax.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,g}"))


def _ticks(axis: Any, ticks: list[float]) -> None:
    axis.set_ticks(ticks, labels=[f"{tick:,.10g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def _mark(mark: Mark, ax: Any, colors: dict[str, str]) -> None:
    x, y, color = _plain(mark.x), _plain(mark.top), colors[mark.look.color]
    if mark.kind == "bar":
        bars = ax.barh(y, x, height=0.7, color=color)
        ax.bar_label(
            bars,
            mark.where.to_list() if mark.where is not None else None,
            padding=3,
            fontsize=8,
        )
        # Room for the text at the end of the longest bar.
        ax.margins(x=_BAR_ROOM)
        ax.set_axisbelow(True)
        return
    if mark.kind == "heat":
        cells = [[math.nan if n is None else n for n in row] for row in mark.cells]
        # The highest counts differ most from the background.
        cmap = "viridis_r" if min(ax.get_facecolor()[:3]) > 0.5 else "viridis"
        mesh = ax.pcolormesh(x, y, cells, norm="log", cmap=cmap, rasterized=True)
        mesh.set_clim(1, mark.counts[-1])
        _ticks(ax.figure.colorbar(mesh, ax=ax, label=mark.name).ax.yaxis, mark.counts)
        return
    if mark.has_stems:
        ax.vlines(x, 0, y, color=color, alpha=_STEM_ALPHA, linewidth=1)
    ax.plot(x, y, color=color, label=mark.name, **_style(mark))
    if mark.band or mark.filled:
        low, high = (_plain(edge) for edge in mark.band) if mark.band else (y, 0)
        step = "post" if mark.kind == "step" else None
        ax.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0, step=step)


def _style(mark: Mark) -> dict[str, object]:
    """Returns how the values of a mark are connected, or that they are points."""
    if mark.kind == "points":
        marker = _SYMBOLS[mark.look.symbol]
        return {"linestyle": "none", "marker": marker, "markersize": mark.size * 0.55}
    style = "steps-post" if mark.kind == "step" else "default"
    return {"linewidth": 1.3, "drawstyle": style, "linestyle": _DASHES[mark.look.dash]}


def _shade(figure: Figure, panel: Panel, ax: Any, colors: dict[str, str]) -> None:
    """Draws bands and moments, and their names in rows in the first panel."""
    for event in figure.events_of(panel.name):
        color = colors[event.severity]
        if event.end is None:
            ax.axvline(event.begin, color=color, linestyle=":", linewidth=1.3)
        else:
            ax.axvspan(event.begin, event.end, color=color, alpha=0.16, linewidth=0)
    for event, row, flipped in figure.labelled(panel):
        ax.annotate(
            event.name,
            (event.begin, 0.98),
            xycoords=("data", "axes fraction"),
            fontsize=8,
            xytext=(-3 if flipped else 3, -10 * row),
            textcoords="offset points",
            ha="right" if flipped else "left",
            va="top",
            annotation_clip=True,
            color=colors[event.severity],
            bbox={**_BEHIND, "facecolor": ax.get_facecolor()},
        )
    rows = max((row + 1 for _, row, _ in figure.labelled(panel)), default=0)
    if not panel.log_y:
        low, high = ax.get_ylim()
        ax.set_ylim(low, high + rows * _LABEL_ROW * (high - low))


def _plain(series: pl.Series) -> list[Any]:
    """Returns values for Matplotlib, in which NaN interrupts a line."""
    if series.dtype.is_numeric():
        return series.cast(float).fill_null(float("nan")).to_list()
    return series.to_list()
