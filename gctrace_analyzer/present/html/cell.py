"""A run as a notebook shows it: the verdict, the state, what happened, what to set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.present.html.parts import WORDS, environment, spark, verdict
from gctrace_analyzer.present.sections import advice, findings, overview

if TYPE_CHECKING:
    from gctrace_analyzer.present.report import Report

_MOST_TOLD = 3


def dumps(report: Report) -> str:
    """The report in short, as a piece of HTML without scripts."""
    told = findings.told(report)
    ranked = report.advice.recommendations
    return (
        environment()
        .get_template("cell.html.j2")
        .render(
            report=report, verdict=verdict(report), words=WORDS,
            state=[(each, spark(report, each)) for each in overview.state(report)]
            if report.analysis.summary.cycles
            else [],
            told=told[:_MOST_TOLD], more=len(told) - _MOST_TOLD,
            advised=advice.named(ranked.row(0, named=True)) if len(ranked) else None,
            leave=bool(len(ranked) and ranked["now"][0]), refused=report.advice.baseline.refused,
        )
    )  # fmt: skip
