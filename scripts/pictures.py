"""Pictures for the documentation: small SVG files that follow the reader's light or dark theme."""

from __future__ import annotations

import io
import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environment import BIN, PYTHON, ROOT, browser, run, say

from gctrace_analyzer.present.plots.palette import DARK, LIGHT, PAGE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

LOG = ["samples/refill/service.log.gz", "--gogc=100", "--memory-limit=104MiB",
       "--container-limit=256MiB"]  # fmt: skip
PICTURES = ROOT / "docs" / "pictures"
WIDTH, HEIGHT = 1180, 1560
TERMINAL = """
import sys
from rich.console import Console
from rich.text import Text
console = Console(record=True, width=82, file=open("/dev/null", "w"))
console.print(Text.from_ansi(sys.stdin.read()))
console.save_svg(sys.argv[1], title=sys.argv[2])
"""
BROWSER = """
import sys
from playwright.sync_api import sync_playwright
page_path, picture, width, height, found = sys.argv[1:]
with sync_playwright() as playwright:
    found = found or playwright.chromium.executable_path
    browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": int(width), "height": int(height)})
    page.goto("file://" + page_path)
    page.wait_for_selector(":root.live")
    page.screenshot(path=picture)
    browser.close()
"""
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

    from gctrace_analyzer.present.plots.matplotlib_backend import ground

    # Text stays text: that is small, and can be searched. Names of elements do not change.
    written = {"svg.fonttype": "none", "svg.hashsalt": "gctrace-analyzer"}
    settings: Any = {**ground("light"), **written}
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


def readme() -> None:
    """Makes the pictures of the README."""
    PICTURES.mkdir(exist_ok=True)
    command = [str(BIN / "gctrace-analyze"), *LOG]
    shown = subprocess.run(
        [*command, "--color", "always"], cwd=ROOT, check=True, capture_output=True
    )
    subprocess.run(
        [str(PYTHON), "-c", TERMINAL, str(PICTURES / "terminal.svg"), "gctrace-analyze"],
        input=shown.stdout,
        check=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        run(*command, "-o", page)
        picture = PICTURES / "report.png"
        run(PYTHON, "-c", BROWSER, page, picture, str(WIDTH), str(HEIGHT), browser() or "")


def findings() -> None:
    """Draws a chart for each rule."""
    from matplotlib.figure import Figure
    from rule_examples import EXAMPLES, figures

    from gctrace_analyzer.present.plots.matplotlib_backend import draw

    folder = PICTURES / "findings"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    for rule in EXAMPLES:
        charts = figures(rule)
        if not charts:
            continue
        with style():
            size = (WIDE_IN, 2.3 * len(charts))
            drawn = Figure(figsize=size, layout="constrained")
            axes = drawn.subplots(len(charts), squeeze=False)[:, 0]
            for chart, ax in zip(charts, axes, strict=True):
                draw(chart, ax)
            path = folder / f"{rule.lower()}.svg"
            path.write_text(svg(drawn))
    whole = sum(path.stat().st_size for path in folder.glob("*.svg"))
    say(f"{folder.relative_to(ROOT)}: {whole / 1024:.0f} KiB")


PICTURES_OF = {"readme": readme, "findings": findings}
"""What makes each group of pictures."""
