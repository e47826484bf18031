"""A document of tables and sentences, such as recommended settings, as a page or notebook cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.present.html.chart import charts_of
from gctrace_analyzer.present.html.embed import without_script
from gctrace_analyzer.present.html.parts import rendered
from gctrace_analyzer.present.plots.accessor import described

if TYPE_CHECKING:
    from gctrace_analyzer.present.document import Document
    from gctrace_analyzer.present.plots.palette import Theme
    from gctrace_analyzer.present.report import Report


def dumps(report: Report, blocks: Document, heading: str, theme: Theme = "auto") -> str:
    """Returns predictions as an HTML document without scripts, with the curve of all settings."""
    return rendered(
        "document.html.j2",
        report=report,
        blocks=blocks,
        cell=False,
        title=f"{heading}: {report.name}",
        charts=list(charts_of(described(report, "trade_off"), {}, linked=False)),
        **without_script(theme),
    )


def cell(blocks: Document) -> str:
    """Returns a document as an HTML fragment, for a notebook."""
    return rendered("document_cell.html.j2", blocks=blocks, cell=True)
