"""The findings as rows of text: problems with their effects, and minor findings."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.subject import CURED_BY_SETTINGS, GROWS
from gctrace_analyzer.analysis.rules.diagnose import MEMORY_RULES
from gctrace_analyzer.analysis.rules.registry import RULES
from gctrace_analyzer.present.document import Problem
from gctrace_analyzer.present.format import printable

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.rules.finding import Finding
    from gctrace_analyzer.present.report import Report


DEATHS = ("GC039", "GC040")
"""Findings that the post-mortems fully explain."""

_IN_TITLE = ("GC041", "GC042")
"""Findings about existing or missing cycles, whose numbers are in the title."""

_EVENTS = ("GC038", *DEATHS)
"""Findings about the moment of a death, which ends a process."""

_OF_DUMPS = {rule.id for rule in MEMORY_RULES}
"""Findings about the last dumps."""


def problems(report: Report) -> list[Problem]:
    """Returns warnings and worse that no other finding causes, the worst first."""
    alike: dict[tuple[str, str, int | None], list[Finding]] = {}
    for finding in report.analysis.findings:
        is_suspect = _is_suspect(finding, report) and not _is_grown(report)
        if (finding.needs_action or is_suspect) and finding.because_of is None:
            alike.setdefault((finding.id, finding.evidence, finding.process), []).append(
                finding
            )
    return [_problem(_together(same), report) for same in alike.values()]


def _together(findings: list[Finding]) -> Finding:
    """Returns one finding for several with the same evidence, such as the kills of a loop."""
    first, times = findings[0], f"{len(findings):,} times: "
    return replace(first, evidence=times + first.evidence) if findings[1:] else first


def minor(report: Report) -> list[Problem]:
    """Returns the findings that need no action and are not reported above, each rule once."""
    return [_problem(finding, report) for finding in _minor(report)]


def _minor(report: Report) -> list[Finding]:
    said = report.verdict.sentence if report.verdict else ""
    by_rule: dict[str, Finding] = {}
    for finding in report.analysis.findings:
        is_minor = finding.severity == "info" and finding.because_of is None
        is_minor &= not _is_suspect(finding, report)
        if is_minor and finding.id not in _IN_TITLE and finding.evidence not in said:
            by_rule.setdefault(finding.id, finding)
    return [*by_rule.values()]


def _is_suspect(finding: Finding, report: Report) -> bool:
    """Returns whether a finding is the growth of a process that was killed."""
    killed = {death.process for death in report.analysis.post_mortems}
    return finding.id == GROWS and finding.process in killed


def _is_grown(report: Report) -> bool:
    """Returns whether a post-mortem reports that the live heap grew."""
    read = (sentence for death in report.analysis.post_mortems for sentence in death.reading)
    return any(sentence.startswith("The live heap grew") for sentence in read)


def minor_title(report: Report) -> str:
    """Returns what the minor findings are called; next to a kill, one may have led to it."""
    # A cycle alone does not show how often it happens.
    is_open = report.analysis.post_mortems or report.analysis.summary.is_of_single_cycles
    return "Also seen" if is_open else "Minor, not urgent"


def minor_text(report: Report) -> str | None:
    """Returns the minor findings as one line; None if there is none."""
    findings = _minor(report)
    if not findings:
        return None
    first, *names = (finding.name + _whose(finding, report) for finding in findings)
    meaning = RULES[findings[0].id].meaning.removesuffix(".")
    if names:
        meaning = re.split(r"[.:;] ", meaning)[0]
    return f"{meaning} ({first})" + "; also " * bool(names) + ", ".join(names)


def _whose(finding: Finding, report: Report) -> str:
    """Returns which processes a finding concerns; empty for all."""
    processes = len(report.analysis.log.tables["processes"])
    if finding.process is None or finding.others + 1 == processes:
        return ""
    return (
        f" in process {finding.process}{f' and {finding.others} more' * (finding.others > 0)}"
    )


def healthy(report: Report) -> str | None:
    """Returns how far a healthy run is from its thresholds; None if there is a problem."""
    return next(
        (finding.evidence for finding in report.analysis.findings if finding.severity == "ok"),
        None,
    )


def _without(evidence: str, said: str) -> str:
    """Returns the evidence without a first sentence whose beginning is reported already."""
    first, _, rest = evidence.partition(". ")
    clause = re.split(r"\.$|: | \(|; ", first)[0]
    return rest if f": {clause}" in f": {said}" else evidence


def _place(finding: Finding, report: Report) -> str:
    """Returns the file and the line of the first example; for a single file only the line.

    A server's answer is a single line.
    """
    place = finding.examples[0] if finding.examples else ""
    line = place.rpartition(":")[2]
    if not line or len(sources := report.analysis.log.sources) != 1:
        return place
    is_answer = sources[0].kind == "metrics" and sources[0].lines <= 1
    return "" if is_answer else f"line {line}"


def _is_answered(finding: Finding, report: Report) -> bool:
    """Returns whether the verdict says what to do first: find another cause, or a growth."""
    if _is_suspect(finding, report):
        return True
    return report.advice.baseline.other_cause is not None and finding.id in CURED_BY_SETTINGS


def _advice(finding: Finding, report: Report) -> str:
    """Returns what to do; it mentions a recommended setting only if there is one."""
    settings, of_setting = report.advice.recommendations, "Use a recommended setting, or "
    is_other = finding.process not in (None, report.subject)
    if not (is_other or settings.is_empty() or settings["now"][0]):
        return finding.advice
    rest = finding.advice.removeprefix(of_setting)
    return f"{rest[:1].upper()}{rest[1:]}"


def _problem(finding: Finding, report: Report) -> Problem:
    # The verdict already has the consequence of the first problem, and what to do.
    first = report.verdict
    leads = first is not None and first.finding == finding.id
    is_stated = _without(finding.evidence, finding.headline) != finding.evidence
    of = finding.process if finding.process is not None else report.analysis.longest_process
    begin = "start" if not finding.start_s else report.moment(of, finding.start_s)
    end = None if finding.end_s is None else report.moment(of, finding.end_s)
    when = "whole run" if end is None else " → ".join(dict.fromkeys((begin, end)))
    if finding.id in _OF_DUMPS:
        when = "at the end"
    elif finding.at is not None:
        when = f"{finding.at:%Y-%m-%d %H:%M:%S} UTC"
    elif finding.id in _EVENTS:
        printed = {death.printed_at for death in report.analysis.post_mortems}
        known = printed.pop() if len(printed) == 1 else None
        when = "at the end" if finding.process is not None else known or "time unknown"
    if len(report.analysis.log.tables["processes"]) > 1 and finding.process is not None:
        when = f"process {finding.process}: {when}"
    said = ""
    if first is not None and finding.headline in first.sentence:
        said = first.sentence if leads else finding.headline
    evidence = printable(_without(finding.evidence, said))
    return Problem(
        finding.process,
        finding.start_s,
        finding.end_s,
        when,
        finding.id,
        finding.name,
        finding.severity,
        "" if evidence and (leads or is_stated) else RULES[finding.id].meaning,
        evidence,
        _place(finding, report),
        "" if leads or _is_answered(finding, report) else _advice(finding, report),
    )
