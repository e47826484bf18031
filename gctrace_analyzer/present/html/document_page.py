"""A document of tables and sentences, such as recommended settings, as a page or notebook cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.present.html.chart import charts_of
from gctrace_analyzer.present.html.embed import embedded
from gctrace_analyzer.present.html.parts import made, rendered
from gctrace_analyzer.present.plots.accessor import described
from gctrace_analyzer.present.plots.kinds.trade_off import of_tried
from gctrace_analyzer.present.sections.advice import setting_text, word_of

if TYPE_CHECKING:
    from datetime import datetime

    import polars as pl

    from gctrace_analyzer.present.document import Document
    from gctrace_analyzer.present.plots.palette import Theme
    from gctrace_analyzer.present.report import Report

_DO = {"advised": "Set", "try": "Try", "now": "Keep"}


def dumps(
    report: Report,
    rows: pl.DataFrame,
    blocks: Document,
    heading: str,
    made_at: datetime | None = None,
    theme: Theme = "auto",
) -> str:
    """Returns predictions as an HTML document, with the curve of all settings and these rows."""
    figure = described(report, "trade_off")
    if "rank" not in rows.columns:
        figure = of_tried(figure, rows, report.advice.baseline)
    charts = list(charts_of(figure, {}, linked=False))
    first = rows.row(0, named=True) if len(rows) and "rank" in rows.columns else None
    return rendered(
        "document.html.j2",
        report=report,
        blocks=blocks,
        cell=False,
        title=f"{heading}: {report.name}",
        answer=f"{_DO[word_of(first)]} {setting_text(first)}" if first else "",
        charts=charts,
        made=made(made_at),
        **embedded(charts, theme=theme),
    )


def cell(blocks: Document) -> str:
    """Returns a document as an HTML fragment, for a notebook."""
    return rendered("document_cell.html.j2", blocks=blocks, cell=True)
