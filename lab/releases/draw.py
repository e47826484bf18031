"""Draws the pictures of the page about Go versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pictures

from gctrace_analyzer.present.plots import ticks
from gctrace_analyzer.present.plots.palette import LOOKS, NEUTRAL, Look
from lab.releases.changes import RELEASES

if TYPE_CHECKING:
    from pathlib import Path

    from lab.releases.page import Recording, Spread


class Series(NamedTuple):
    """A figure of a panel."""

    column: str
    name: str
    look: Look


class Panel(NamedTuple):
    """A panel; shares are shown in percent."""

    title: str
    series: tuple[Series, ...]
    percent: bool = False
    log: bool = False


PICTURES = {
    "pauses": (
        Panel(
            "Stop-the-world pauses, ms (logarithmic)",
            (
                Series("stw_p50_ms", "median", LOOKS["median"]),
                Series("stw_p99_ms", "p99", LOOKS["p99"]),
                Series("stw_max_ms", "longest", LOOKS["maximum"]),
            ),
            log=True,
        ),
    ),
    "cost": (
        Panel("GC cycles per second", (Series("gc_per_s", "cycles", LOOKS["interval"]),)),
        Panel(
            "Share of all CPUs",
            (
                Series("gc_cpu_share", "GC CPU", LOOKS["GC CPU"]),
                Series("assist_share_of_cpu", "of which mark assist", LOOKS["mark assist"]),
            ),
            percent=True,
        ),
    ),
}
_MARKERS = {"circle": "o", "square": "s"}
_TALL_IN = {"pauses": 3.6, "cost": 4.6}


def draw(found: Recording, folder: Path) -> None:
    """Writes each picture as SVG."""
    from matplotlib.figure import Figure

    for name, panels in PICTURES.items():
        with pictures.style():
            size = (pictures.WIDE_IN, _TALL_IN[name])
            figure = Figure(figsize=size, layout="constrained")
            axes = figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0]
            for panel, ax in zip(panels, axes, strict=True):
                _panel(panel, found, ax)
            axes[-1].set_xlabel("Go version", fontsize=9)
            (folder / f"{name}.svg").write_text(pictures.svg(figure))


def _panel(panel: Panel, found: Recording, ax: Any) -> None:
    places = range(len(RELEASES))
    for number, series in enumerate(panel.series):
        shift = 0.18 * (number - (len(panel.series) - 1) / 2)
        spreads = [found.figures[each.version][series.column] for each in RELEASES]
        _series(series, spreads, [place + shift for place in places], ax)
    ax.set_title(panel.title, loc="left", fontsize=9)
    ax.set_xticks(list(places), labels=[each.minor for each in RELEASES])
    if panel.log:
        ax.set_yscale("log")
        every = [
            end
            for each in found.figures.values()
            for series in panel.series
            for end in each[series.column]
        ]
        values = ticks.logarithmic(min(every), max(every))
        ax.set_yticks(values, labels=[f"{each:g}" for each in values])
        ax.set_yticks([], minor=True)
    else:
        ax.set_ylim(bottom=0)
    if panel.percent:
        ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=8)
    ax.grid(visible=True, color=NEUTRAL, alpha=0.2, linewidth=0.7)
    if len(panel.series) > 1:
        places_of_legend = {"loc": "lower right", "bbox_to_anchor": (1, 1)}
        ax.legend(**places_of_legend, ncols=3, fontsize=8, frameon=False, borderaxespad=0.1)


def _series(series: Series, spreads: list[Spread], x: list[float], ax: Any) -> None:
    color = series.look.hex
    lows, highs = [each.low for each in spreads], [each.high for each in spreads]
    ax.vlines(x, lows, highs, color=color, linewidth=1.6, alpha=0.55)
    ax.plot(
        x,
        [each.median for each in spreads],
        color=color,
        linestyle="none",
        marker=_MARKERS[series.look.symbol],
        markersize=4.5,
        label=series.name,
    )
