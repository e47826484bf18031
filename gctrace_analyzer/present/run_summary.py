"""`RunSummary`: what `run.summary()` returns."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.analysis.summary import Summary
from gctrace_analyzer.frozen import frozen

if TYPE_CHECKING:
    from gctrace_analyzer.present.report import Report


@frozen
class RunSummary(Summary):
    """The figures of a run; printing it shows the same report as the command line.

    Each figure is an attribute whose name ends with its unit (`gc_cpu_share` is 0 to 1); None means
    unknown. `gctrace-analyze help tables` and `Summary` describe them.
    """

    report: Report = field(repr=False, kw_only=True)

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures by name, ready for JSON."""
        return self.report.analysis.figures.to_dict()

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        from gctrace_analyzer.present import text
        from gctrace_analyzer.present.sections.report import document

        return text.plain(document(self.report), everything=False)

    def _repr_html_(self) -> str:
        # Imported only when a notebook shows a report, because loading the templates takes 0.1 s.
        from gctrace_analyzer.present.html import cell

        return cell.dumps(self.report)
