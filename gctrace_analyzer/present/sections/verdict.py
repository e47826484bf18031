"""The verdict as text: level, sentence and action, for all output formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.frozen import frozen
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


@frozen
class Shown:
    """A verdict to print: `level` is a key of `WORDS`."""

    level: str
    sentence: str
    action: str

    @property
    def word(self) -> str:
        """The level in words."""
        return WORDS[self.level]


def shown(report: Report) -> Shown:
    """Returns the verdict on a report, with the time when the problem began."""
    verdict = report.verdict
    if verdict is None:
        sentence, action = no_verdict(report)
        return Shown("none", printable(sentence), action)
    parts = [verdict.sentence]
    if verdict.start_s is not None:
        when = f", when {verdict.changed}" if verdict.changed else ""
        parts.append(f"It began at {report.moment(verdict.process, verdict.start_s)}{when}.")
    return Shown(verdict.level, printable(" ".join(parts)), printable(verdict.action))
