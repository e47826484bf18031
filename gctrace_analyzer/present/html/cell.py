"""A run as a notebook cell: verdict, headline figures, problems, recommended setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.present.html.parts import rendered
from gctrace_analyzer.present.sections import advice, findings, headline, overview

if TYPE_CHECKING:
    from gctrace_analyzer.present.report import Report

_MOST_PROBLEMS = 3


def dumps(report: Report) -> str:
    """Returns a short report as an HTML fragment without scripts."""
    problems = findings.problems(report)
    ranked = report.advice.recommendations
    return rendered(
        "cell.html.j2",
        report=report,
        verdict=headline.verdict(report),
        of_all=overview.of_all(report),
        state=headline.with_trends(report, headline.state(report))
        if report.analysis.summary.cycles
        else [],
        problems=problems[:_MOST_PROBLEMS],
        more=len(problems) - _MOST_PROBLEMS,
        advised=advice.setting_text(ranked.row(0, named=True)) if len(ranked) else None,
        no_change=bool(len(ranked) and ranked["now"][0]),
        refused="" if report.advice.is_available else advice.refusal(report),
    )
