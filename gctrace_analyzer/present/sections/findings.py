"""What happened, in rows of words: causes, what follows from them, what was noted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.rules.registry import RULES
from gctrace_analyzer.present.format import duration, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.analysis.rules.finding import Finding
    from gctrace_analyzer.present.report import Report


@dataclass(frozen=True, slots=True)
class Told:
    """A finding as it is told: when, what, its numbers, what follows, what to do.

    `start_s` and `end_s` count from the start of `process`.
    """

    process: int | None
    start_s: float | None
    end_s: float | None
    when: str
    id: str
    name: str
    severity: str
    evidence: str
    place: str
    follows: str
    advice: str


def told(report: Report) -> list[Told]:
    """The findings that stand for themselves, warnings and worse, the worst first."""
    several = len(report.analysis.per_process) > 1
    causes = [each for each in report.analysis.findings if _stands(each)]
    return [_told(each, report.analysis.findings, several=several) for each in causes]


def noted(report: Report) -> str | None:
    """What is worth knowing and no trouble, in one sentence."""
    ids = dict.fromkeys(
        each.id
        for each in report.analysis.findings
        if each.severity == "info" and each.because_of is None
    )
    return ", ".join(f"{RULES[each].name} ({each})" for each in ids) or None


def healthy(report: Report) -> str | None:
    """That nothing needs doing, with the margins."""
    return next(
        (each.evidence for each in report.analysis.findings if each.severity == "ok"), None
    )


def _stands(finding: Finding) -> bool:
    return finding.severity in ("warn", "bad") and finding.because_of is None


def _told(finding: Finding, every: Sequence[Finding], *, several: bool) -> Told:
    below = dict.fromkeys(
        other.id
        for other in every
        if other.because_of == finding.id and other.severity != "info"
    )
    begin = "start" if not finding.start_s else duration(finding.start_s)
    when = "all along" if finding.end_s is None else f"{begin} → {duration(finding.end_s)}"
    if several and finding.process is not None:
        when = f"[{finding.process}] {when}"
    return Told(
        finding.process,
        finding.start_s,
        finding.end_s,
        when,
        finding.id,
        finding.name,
        finding.severity,
        printable(finding.evidence),
        finding.examples[0] if finding.examples else "",
        ", ".join(RULES[each].name for each in below),
        finding.advice or RULES[finding.id].advice,
    )
