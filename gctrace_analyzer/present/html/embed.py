"""What every page embeds: charts, style, scripts, and its content security policy."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from gctrace_analyzer import __version__
from gctrace_analyzer.present.plots.plotly_backend import panel_alone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from gctrace_analyzer.present.plots.figure import Figure


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of the page; `plot` is its Plotly figure."""

    id: str
    title: str
    timed: bool
    plot: dict[str, Any]


def charts_of(figure: Figure, *, timed: bool = False) -> Iterator[Chart]:
    """Yields a chart for each panel; `timed` charts share the time axis of the page."""
    drawn = [panel for panel in figure.panels if panel.drawn]
    for panel in drawn:
        last = not figure.shared_x or panel is drawn[-1]
        yield Chart(
            f"{figure.name}-{panel.name}",
            panel.title,
            timed,
            panel_alone(figure, panel, last=last),
        )


def embedded(charts: Sequence[Chart], zero: datetime | None = None) -> dict[str, Any]:
    """Returns the values for `page.html.j2`; `zero` is the start of a wall-clock time axis."""
    code, library = _asset("report.js"), _plotly()
    return {
        "version": __version__,
        "style": _asset("report.css"),
        "script": code,
        "plotly": library,
        "policy": _policy(code, library),
        "data": _data(charts, zero),
    }


def _asset(name: str) -> Markup:
    return Markup(files(__package__).joinpath(name).read_text("utf-8"))


def _plotly() -> Markup:
    """Returns the Plotly script from the plotly package."""
    return Markup(files("plotly").joinpath("package_data/plotly.min.js").read_text("utf-8"))


def _policy(*scripts: str) -> str:
    """Returns the content security policy: only these scripts run, and nothing is loaded."""
    hashes = (
        base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts
    )
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _data(charts: Sequence[Chart], zero: datetime | None) -> Markup:
    """Returns the charts as JSON, with characters escaped that could end the script element."""
    whole = {
        "zero": None if zero is None else zero.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "charts": {each.id: {**each.plot, "timed": each.timed} for each in charts},
    }
    text = json.dumps(whole, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)
