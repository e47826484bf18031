"""Draws plots with Matplotlib: for print, and for PNG and SVG files."""

from __future__ import annotations

from io import BytesIO
from textwrap import fill
from typing import TYPE_CHECKING, Any

from gctrace_analyzer import extras
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.present.plots.figure import GREY, SEVERITY

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from gctrace_analyzer.present.plots.figure import Figure, Mark, Panel

WIDTH_IN, PANEL_IN = 9.0, 2.1
"""Width of a figure and height of a panel, in inches."""


def draw(figure: Figure, ax: Any = None) -> Any:
    """Draws on given axes (one, or one per panel), or on a new Matplotlib figure.

    Returns the Figure, or the Axes it was given.

    Raises:
        MissingExtraError: Matplotlib is not installed.
        BadSettingError: there are more panels than Axes.
    """
    extras.load("matplotlib")
    panels = [panel for panel in figure.panels if panel.drawn]
    if ax is not None:
        return _on(figure, panels, ax)
    notes = fill(" ".join(figure.notes), 120)
    below = 0.25 + 0.17 * notes.count("\n") if notes else 0.0
    tall = (
        PANEL_IN * max(len(panels), 1.5)
        + 0.9
        + below
        + (0.35 * len(panels) * (not figure.shared_x))
    )
    drawn = _new_figure(figsize=(WIDTH_IN, tall), layout="constrained")
    drawn.get_layout_engine().set(rect=(0, below / tall, 1, 1 - below / tall), hspace=0.04)
    axes = drawn.subplots(
        max(len(panels), 1), 1, sharex=figure.shared_x and bool(panels), squeeze=False
    )[:, 0]
    drawn.suptitle(figure.title, x=0.01, ha="left", fontweight="bold")
    _draw_all(figure, panels, list(axes))
    if not panels:
        axes[0].set_axis_off()
    drawn.text(0.01, 0.02 / tall, notes, fontsize=8, color=GREY, va="bottom")
    return drawn


def image(figure: Figure, kind: str) -> bytes:
    """Returns the plot as a PNG or SVG file."""
    file = BytesIO()
    settings = {"dpi": 150} if kind == "png" else {"metadata": {"Date": None}}
    draw(figure).savefig(file, format=kind, **settings)
    return file.getvalue()


def _new_figure(**settings: Any) -> Any:
    """Returns a figure that pyplot does not manage, so that a notebook shows it only once."""
    plain = extras.load("matplotlib.figure").Figure

    class Shown(plain):  # type: ignore[misc, valid-type]  # the class is known at run time only
        def _repr_png_(self) -> bytes:
            file = BytesIO()
            self.savefig(file, format="png", dpi=100)
            return file.getvalue()

    return Shown(**settings)


def _on(figure: Figure, panels: Sequence[Panel], ax: Any) -> Any:
    axes = [ax] if hasattr(ax, "plot") else list(getattr(ax, "flat", ax))
    if len(axes) < len(panels):
        raise BadSettingError(
            argument="ax",
            value=f"{len(axes)} Axes",
            expected=f"{len(panels)}: {figure.name} has the panels "
            + ", ".join(panel.name for panel in panels)
            + " (panel=NAME draws one)",
        )
    _draw_all(figure, panels, axes[: len(panels)])
    return ax


def _draw_all(figure: Figure, panels: Sequence[Panel], axes: list[Any]) -> None:
    if figure.x_range:
        axes[0].set_xlim(*figure.x_range)
    for index, (panel, ax) in enumerate(zip(panels, axes, strict=False)):
        _panel(panel, ax)
        _shade(figure, ax, named=index == 0)
        last = index == len(panels) - 1
        if not figure.shared_x or last:
            ax.set_xlabel(figure.x_title if figure.shared_x else panel.x_title)


def _panel(panel: Panel, ax: Any) -> None:
    for mark in panel.marks:
        if mark.y.count():
            _mark(mark, ax)
    for level in panel.levels:
        ax.axhline(level.y, color=level.color, linestyle="--", linewidth=1)
        ax.annotate(
            level.name,
            (0.005, level.y),
            xycoords=("axes fraction", "data"),
            color=level.color,
            fontsize=8,
            va="bottom",
        )
    for x, y, text in panel.labels:
        ax.annotate(text, (x, y), xytext=(4, 3), textcoords="offset points", fontsize=8)
    ax.set_title(panel.title, loc="left", fontsize=9)
    _scales(panel, ax)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(visible=True, color=GREY, alpha=0.2, linewidth=0.7)
    if len(panel.marks) > 1:
        ax.legend(
            loc="lower right",
            bbox_to_anchor=(1, 1),
            ncols=4,
            fontsize=8,
            frameon=False,
            borderaxespad=0.1,
            handlelength=1.4,
            columnspacing=1.2,
        )


def _scales(panel: Panel, ax: Any) -> None:
    ticker = extras.load("matplotlib.ticker")
    if panel.log_y:
        ax.set_yscale("log")
        _ticks(ax.yaxis, panel.ticks("y"))
    elif panel.from_zero:
        ax.set_ylim(bottom=0)
    if panel.log_x:
        ax.set_xscale("log")
        _ticks(ax.xaxis, panel.ticks("x"))
    if panel.percent:
        ax.yaxis.set_major_formatter(ticker.PercentFormatter(1.0, decimals=None))
    elif not panel.log_y:
        ax.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,g}"))


def _ticks(axis: Any, ticks: list[float]) -> None:
    axis.set_ticks(ticks, labels=[f"{tick:,g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def _mark(mark: Mark, ax: Any) -> None:
    x = _plain(mark.x)
    if mark.kind == "points":
        top = mark.high if mark.high is not None else mark.y
        ax.plot(
            x,
            _plain(top),
            linestyle="none",
            marker="o",
            markersize=mark.size * 0.55,
            color=mark.color,
            label=mark.name,
        )
    else:
        style = "steps-post" if mark.kind == "step" else "default"
        ax.plot(
            x,
            _plain(mark.y),
            color=mark.color,
            linewidth=1.2,
            label=mark.name,
            drawstyle=style,
            linestyle="--" if mark.dash else "-",
        )
    if mark.low is not None and mark.high is not None:
        ax.fill_between(
            x, _plain(mark.low), _plain(mark.high), color=mark.color, alpha=0.18, linewidth=0
        )
    elif mark.filled:
        ax.fill_between(x, _plain(mark.y), 0, color=mark.color, alpha=0.18, linewidth=0)


def _shade(figure: Figure, ax: Any, *, named: bool) -> None:
    for band in figure.bands:
        ax.axvspan(band.begin, band.end, color=SEVERITY[band.severity], alpha=0.16, linewidth=0)
        if named and band.labelled:
            ax.annotate(
                band.name,
                (band.begin, 0.97),
                xycoords=("data", "axes fraction"),
                fontsize=8,
                xytext=(3, 0),
                textcoords="offset points",
                va="top",
                annotation_clip=True,
                color=SEVERITY[band.severity],
            )
    for moment in figure.moments:
        color = SEVERITY.get(moment.severity, GREY)
        ax.axvline(moment.at, color=color, linestyle=":", linewidth=1.3)
        if named:
            ax.annotate(
                moment.name,
                (moment.at, 0.97),
                xycoords=("data", "axes fraction"),
                rotation=90,
                color=color,
                fontsize=8,
                ha="right",
                va="top",
            )


def _plain(series: pl.Series) -> list[Any]:
    """Returns values for Matplotlib, where NaN interrupts a line."""
    if series.dtype.is_numeric():
        return series.cast(float).fill_null(float("nan")).to_list()
    return series.to_list()
