"""The verdict: level, sentence and action, for all output formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.present.document import Statement
from gctrace_analyzer.present.format import printable
from gctrace_analyzer.present.sections.without_cycles import no_verdict

if TYPE_CHECKING:
    from gctrace_analyzer.present.report import Report

WORDS = {
    "bad": "Action needed",
    "warn": "Worth a look",
    "info": "No problem seen",
    "ok": "Healthy",
    "none": "No verdict",
}


def shown(report: Report) -> Statement:
    """Returns the verdict on a report, with the time when the problem began."""
    verdict = report.verdict
    if verdict is None:
        sentence, action = no_verdict(report)
        return Statement("none", WORDS["none"], printable(sentence), action)
    parts = [verdict.sentence]
    if verdict.start_s is not None:
        when = f", when {verdict.changed}" if verdict.changed else ""
        parts.append(f"It began at {report.moment(verdict.process, verdict.start_s)}{when}.")
    sentence, action = printable(" ".join(parts)), printable(verdict.action)
    return Statement(verdict.level, WORDS[verdict.level], sentence, action)
