"""A run's summary as people hold it: the figures, which print as the command line does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.analysis.summary import Summary
from gctrace_analyzer.present import text

if TYPE_CHECKING:
    from gctrace_analyzer.present.report import Report


@dataclass(frozen=True, slots=True)
class RunSummary(Summary):
    """A run's summary; prints as the command line does."""

    report: Report = field(repr=False, kw_only=True)

    def to_dict(self) -> dict[str, Any]:
        """The figures by name, ready for JSON."""
        return self.report.summary.to_dict()

    def __str__(self) -> str:
        return text.plain(self.report)

    def _repr_html_(self) -> str:
        return cell(self.report)


def summary_of(report: Report) -> RunSummary:
    """The summary of a report."""
    figures = {name: getattr(report.summary, name) for name in Summary.__dataclass_fields__}
    return RunSummary(**figures, report=report)


def cell(report: Report) -> str:
    """A report as a notebook shows it."""
    # Loaded when a notebook asks: templates take a tenth of a second.
    from gctrace_analyzer.present.html import cell as page

    return page.dumps(report)
