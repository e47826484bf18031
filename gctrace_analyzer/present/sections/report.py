"""The report on a run as a document: verdict, figures, what happened, settings, evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.present.document import (
    Code,
    Excerpts,
    Figures,
    Folded,
    Gap,
    Heading,
    Paragraphs,
    Sentence,
    Sentences,
    Title,
)
from gctrace_analyzer.present.sections import (
    advice,
    evidence,
    findings,
    overview,
    sites,
    verdict,
)
from gctrace_analyzer.present.sections.advice import manifests
from gctrace_analyzer.present.sections.memory_parts import memory_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.present.document import Block, Document
    from gctrace_analyzer.present.report import Report


def document(report: Report) -> Document:
    """Returns the whole report."""
    return [*_blocks(report)]


def _blocks(report: Report) -> Iterator[Block]:
    yield title(report)
    if known := evidence.settings(report):
        yield Paragraphs([known], indent=2)
    if inputs := evidence.inputs(report):
        yield Sentences([Sentence(*input_) for input_ in inputs], width=26, style="dim")
    yield Gap()
    yield verdict.shown(report)
    if report.analysis.has_figures:
        yield Gap()
        figures = overview.with_trends(report, overview.state(report))
        yield Figures(figures, overview.of_all(report))
    yield from _what_happened(report)
    yield from settings(report)
    yield from sites.of_profiles(report)
    yield from overview.about_cycles(report)
    yield from _evidence(report)
    yield from _skipped(report)
    yield from _notes(report)


def title(report: Report) -> Title:
    """Returns the inputs, and what is known about the program and the time they cover."""
    name, *facts = report.facts
    return Title("Go garbage collection", name, facts)


def _what_happened(report: Report) -> Iterator[Block]:
    """Yields each problem with its evidence, further effects and advice, which is given once."""
    problems, minor = findings.problems(report), findings.minor(report)
    if not (problems or minor):
        return
    yield Gap()
    yield Heading("What happened")
    given: set[str] = set()
    for problem in problems:
        yield replace(problem, advice="") if problem.advice in given else problem
        given.add(problem.advice)
    if minor:
        yield Paragraphs([f"Minor: {minor}."], "dim", indent=2, hanging=2)


def settings(report: Report) -> Iterator[Block]:
    """Yields the recommended settings, if the log has cycles."""
    if not report.analysis.summary.cycles:
        return
    if not report.advice.is_available:
        yield Gap()
        yield Heading("Recommended settings")
        refused = report.advice.baseline.refused
        yield Paragraphs([f"No setting can be predicted: {refused}."], indent=2)
        return
    ranked = report.advice.recommendations
    shown = advice.advice(ranked, report.advice.baseline)
    if shown is None:
        return
    yield shown
    reasons = advice.reasons(ranked, report.advice.baseline)
    yield Sentences([Sentence(*reason) for reason in reasons])
    if signs := advice.legend(shown):
        yield Paragraphs([signs], "dim", indent=2)
    first = ranked.row(0, named=True)
    if not first["now"]:
        pasted = manifests(Setting.of(first)).items()
        yield Folded("Copy and paste", [Code(text, name) for name, text in pasted])


def _evidence(report: Report) -> Iterator[Block]:
    """Yields deaths, memory from MemStats, and the CPU time of systemd units."""
    for name, sentences in evidence.deaths(report):
        yield Gap()
        yield Heading(name, "bad")
        if sentences:
            yield Sentences([Sentence(*sentence) for sentence in sentences], width=13)
    yield from filter(None, (evidence.memory(report), memory_parts(report)))
    if notes := evidence.memory_notes(report):
        yield Paragraphs(notes, indent=2)
    yield from filter(None, (evidence.units(report),))


def _skipped(report: Report) -> Iterator[Block]:
    """Yields the lines that could not be parsed, and what is wrong with whole inputs."""
    if rejected := overview.rejected(report):
        yield rejected
        yield Excerpts(overview.rejected_examples(report))
    if damage := overview.damage(report):
        yield Gap()
        yield Paragraphs(damage, "yellow")


def _notes(report: Report) -> Iterator[Block]:
    warnings = report.analysis.summary.warnings
    notes = [Sentence("" if at else "Note", text, "bold") for at, text in enumerate(warnings)]
    if check := overview.self_check(report):
        notes.append(Sentence("Check", check, "bold"))
    if notes:
        yield Gap()
        yield Sentences(notes, width=7, indent=0)
