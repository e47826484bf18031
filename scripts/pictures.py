"""Pictures for the documentation: small SVG files that follow the reader's light or dark theme."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.present.plots.palette import DARK, LIGHT, PAGE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

WIDE_IN = 7.5
_NUMBER = re.compile(r"-?\d+\.\d{2,}")
_POINTS = re.compile(r'(?:<use [^>]*?style="([^"]*)"/>\n)(?:<use [^>]*? style="\1"/>\n)+')
_NAMED = {f"c-{name}": (color, DARK[name]) for name, color in LIGHT.items()} | {
    "ground": (PAGE["light"]["ground"], PAGE["dark"]["ground"])
}
"""Variables of a picture, with their colours on light and on dark ground."""


def style() -> AbstractContextManager[None]:
    """Returns Matplotlib's settings for these pictures, as a context."""
    import matplotlib as mpl

    ink = dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"),
        LIGHT["ink"],
    )
    ground = dict.fromkeys(
        ("figure.facecolor", "axes.facecolor", "savefig.facecolor"), PAGE["light"]["ground"]
    )
    # Text stays text: that is small, and can be searched. Names of elements do not change.
    written = {"svg.fonttype": "none", "svg.hashsalt": "gctrace-analyzer"}
    settings: Any = {**ink, **ground, **written}
    return mpl.rc_context(settings)


def svg(figure: Any) -> str:
    """Returns a Matplotlib figure as SVG with the colours of the reader's theme."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    text = "".join(_lines(file.getvalue()))
    text = _POINTS.sub(_grouped, text)
    light, dark = (
        "".join(f"--{name}:{pair[index]};" for name, pair in _NAMED.items() if name in text)
        for index in (0, 1)
    )
    rules = f"svg{{{light}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}"
    return text.replace("</style>", f"{rules}</style>", 1)


def _rounded(match: re.Match[str]) -> str:
    """Returns a number of a path with the digits that can be seen."""
    return f"{float(match[0]):.1f}".removesuffix(".0")


def _grouped(match: re.Match[str]) -> str:
    """Returns points with their common style written once."""
    style = f' style="{match[1]}"'
    return f"<g{style}>\n{match[0].replace(style, '')}</g>\n"


def _lines(text: str) -> Iterator[str]:
    """Yields the file without what Matplotlib says about itself, with variables as colours."""
    colors = {light: f"var(--{name})" for name, (light, _) in _NAMED.items()}
    inside = False
    for line in text.splitlines():
        inside = inside or line.strip() == "<metadata>"
        if not inside and not line.strip().startswith(("<?xml", "<!", '"http')):
            for light, variable in colors.items():
                line = line.replace(light, variable)
            # What stands between tags is text, and is not rounded.
            tag, end, words = line.strip().partition(">")
            yield f"{_NUMBER.sub(_rounded, tag)}{end}{words}\n"
        inside = inside and line.strip() != "</metadata>"
