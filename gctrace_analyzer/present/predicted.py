"""`Predictions`: what `whatif` and `recommend` return."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.present import text
from gctrace_analyzer.present.sections import predictions as sections

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gctrace_analyzer.present.document import Document
    from gctrace_analyzer.present.report import Report


class Predictions(pl.DataFrame):
    """Settings with their predicted figures: a Polars frame that prints as a short table.

    The table has the units, the intervals and the basis of the predictions, as on the command line.
    Otherwise it is a normal frame (`schema.WHATIF`, `schema.RECOMMENDATIONS`); selections from it
    print as frames.
    """

    _document: Callable[[], Document] | None = None

    @classmethod
    def of(cls, rows: pl.DataFrame, report: Report, evidence: Sequence[Report]) -> Predictions:
        """Returns rows that print with the basis of their predictions."""
        shown = cls(rows)
        section = sections.recommend if "rank" in rows.columns else sections.whatif
        shown._document = lambda: section(report, rows, evidence)
        return shown

    @property
    def frame(self) -> pl.DataFrame:
        """All columns, as a frame that prints normally."""
        return pl.DataFrame(self)

    def document(self) -> Document:
        """Returns the document for text, Markdown and HTML; empty for a part of the rows."""
        return self._document() if self._document else ()

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return text.plain(self.document()).strip("\n") if self._document else super().__str__()

    def _repr_html_(self, *, _from_series: bool = False) -> str:
        if not self._document:
            return super()._repr_html_(_from_series=_from_series)
        # Imported only when a notebook shows it, because loading the templates takes 0.1 s.
        from gctrace_analyzer.present.html import document_page

        return document_page.cell(self.document())
