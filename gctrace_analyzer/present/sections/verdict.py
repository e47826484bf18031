"""The verdict: level, sentence and action, for all output formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.ingest.evidence.words import OF_CRASH
from gctrace_analyzer.present.document import Statement
from gctrace_analyzer.present.format import printable
from gctrace_analyzer.present.sections.without_cycles import no_verdict, rise

if TYPE_CHECKING:
    from gctrace_analyzer.present.report import Report

WORDS = {
    "bad": "Action needed",
    "warn": "Worth a look",
    "info": "No problem seen",
    "ok": "Healthy",
    "none": "No verdict",
}


_AFTER_CRASH = (
    "Look at the goroutine that the traceback names first: no GC setting changes that."
)


def crash_of(report: Report) -> str:
    """Returns the sentence about the panic or fatal error that ended the program, if one did."""
    notes = (note.split(": ", 1)[-1] for note in report.analysis.log.notes)
    return next((note for note in notes if note.startswith(OF_CRASH)), "")


def shown(report: Report) -> Statement:
    """Returns the verdict on a report, with the time when the problem began."""
    verdict = report.verdict
    if verdict is None:
        sentence, action = no_verdict(report)
        if (crash := crash_of(report)) and not action:
            sentence, action = crash, _AFTER_CRASH
        return Statement("none", WORDS["none"], printable(sentence), action)
    parts = [verdict.sentence]
    if verdict.start_s is not None:
        when = f", when {verdict.changed}" if verdict.changed else ""
        parts.append(f"It began at {report.moment(verdict.process, verdict.start_s)}{when}.")
    parts.extend(rise(report))
    level, action = verdict.level, verdict.action
    if (crash := crash_of(report)) and level in ("ok", "info"):
        level, action = "warn", _AFTER_CRASH
        parts.insert(0, crash)
    return Statement(level, WORDS[level], printable(" ".join(parts)), printable(action))
