"""The report on a run as a document: verdict, figures, what happened, settings, evidence."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.observed import OF_LEVEL
from gctrace_analyzer.advise.phrases import to_set
from gctrace_analyzer.advise.subject import advised_process, which_process
from gctrace_analyzer.analysis.metrics.goroutines import GREW
from gctrace_analyzer.analysis.postmortem.memory_of_dumps import HEAP_ALLOCATED
from gctrace_analyzer.analysis.summary import seen_anyway
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.ingest.gctrace.toolchain import is_toolchain_alone
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
from gctrace_analyzer.present.format import printable, width
from gctrace_analyzer.present.sections import (
    advice,
    evidence,
    findings,
    headline,
    overview,
    sites,
)
from gctrace_analyzer.present.sections.advice import manifests
from gctrace_analyzer.present.sections.memory_parts import memory_parts, shows_scavenger
from gctrace_analyzer.present.sections.since_start import figures as figures_since_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from gctrace_analyzer.present.document import Block, Document, Statement
    from gctrace_analyzer.present.report import Report


MOST_INPUTS = 3
MOST_PROBLEMS = 2
MOST_NOTES = 3
"""Notes that fit on one screen; the others are behind `--all`."""


def document(report: Report) -> Document:
    """Returns the whole report; parts beyond one screen are folded."""
    return [*_blocks(report)]


def _blocks(report: Report) -> Iterator[Block]:
    yield title(report)
    yield Gap()
    yield (statement := headline.verdict(report))
    said = f"{statement.sentence} {statement.action}"
    # For a program that died, the death comes first, then the cost of GC.
    is_death = headline.is_of_death(report)
    if is_death:
        yield from _deaths(report, said)
    if report.analysis.has_figures:
        yield Gap()
        figures = headline.with_trends(report, headline.state(report))
        yield Figures(figures, overview.of_all(report))
    elif since_start := figures_since_start(report):
        yield from (Gap(), Figures(since_start, wide=True))
    if not is_death:
        yield from _deaths(report, said)
    yield from _what_happened(report, said)
    yield from settings(report, said)
    yield from sites.of_profiles(report)
    if levels := overview.service_levels(report):
        yield levels
    if processes := overview.processes(report):
        in_brief = report.analysis.summary.cycles and _is_sick(statement)
        yield Folded("Processes", lambda: [processes], [processes] if in_brief else [])
    yield from _memory(report, is_sick=_is_sick(statement))
    yield from _inputs(report)
    yield from _skipped(report)
    units = [*filter(None, (evidence.units(report),))]
    # Without GC cycles, a unit's CPU time is the only known cost.
    brief = [] if report.analysis.summary.cycles else units
    yield Folded("Details", lambda: [*overview.about_cycles(report), *units], brief)
    yield from _notes(report, statement.sentence)


def _is_sick(statement: Statement) -> bool:
    return statement.level in ("warn", "bad")


def _inputs(report: Report) -> Iterator[Block]:
    """Yields the sources of settings, and the kind of each input, unless it is one plain log."""
    rows = [Sentence(*input_) for input_ in evidence.inputs(report)]
    known = evidence.settings(report)
    if known or rows:
        yield from (Gap(), Heading("Inputs"))
    if known:
        yield Paragraphs([known], indent=2)
    if not rows:
        return
    shown = Sentences(rows, width=26, style="dim")
    if len(rows) <= MOST_INPUTS:
        yield shown
        return
    rest = Sentence("", f"… and {len(rows) - MOST_INPUTS + 1:,} more inputs")
    brief = [*rows[: MOST_INPUTS - 1], rest]
    yield Folded("Inputs", lambda: [shown], [Sentences(brief, width=26, style="dim")])


def title(report: Report) -> Title:
    """Returns the inputs, and what is known about the program and the time they cover."""
    name, *facts = report.facts
    fits = len(" · ".join(report.facts)) <= width()
    return Title("Go garbage collection", name if fits else name.rpartition("/")[2], facts)


def _what_happened(report: Report, said: str) -> Iterator[Block]:
    """Yields each problem with its evidence, further effects and advice, which is given once."""
    problems, minor = findings.problems(report), findings.minor_text(report)
    for at, problem in enumerate(problems):
        if problem.advice in said:
            problems[at] = replace(problem, advice="")
        said += problem.advice
    # The death is explained above; its finding adds the name and the place.
    explained = findings.DEATHS if report.analysis.post_mortems else ()
    deaths = [problem for problem in problems if problem.id in explained]
    others = [problem for problem in problems if problem.id not in explained]
    shown, left = others[:MOST_PROBLEMS], others[MOST_PROBLEMS:]
    title: list[Block] = [Gap(), Heading("What happened")]
    if others:
        yield from (*title, *shown)
    if left or deaths:
        names = ", ".join(problem.name for problem in left)
        brief = [Paragraphs([f"Also: {names}."], indent=2, hanging=2)] if left else []
        more = [*([] if others else title), *left, *deaths]
        yield Folded("Further findings", lambda: more, brief)
    if minor:
        if not others:
            yield Gap()
        text = f"{findings.minor_title(report)}: {minor}."
        yield Paragraphs([text], "dim", indent=2, hanging=2)


_OF_EACH_DEATH = ("Where", "Program", "At the end", "Run")


def _deaths(report: Report, said: str) -> Iterator[Block]:
    """Yields each death; one screen shows everything of the first that the verdict omits."""
    shown = {said}
    is_apart = True
    for at, (name, sentences) in enumerate(evidence.deaths(report)):
        if is_apart:
            yield Gap()
        yield Heading(name, "bad")
        whole = [Sentence(*sentence) for sentence in sentences]
        # With several kills of a program, all have the same action with another number.
        kinds = {row.text: re.sub(r"\d+", "", name + row.text) for row in whole}
        new = {text for text, kind in kinds.items() if not shown & {text, kind}}
        actions = [row for row in whole if row.label == "Action" and row.text in new]
        facts = [row for row in whole if row.label in _OF_EACH_DEATH]
        # An action that no death above has follows from what this one means.
        why = [row for row in _unsaid(whole, said) if row.label == "Meaning" and actions]
        brief = [*facts, *why, *actions] if at else _unsaid(whole, said)
        is_apart = len(brief) > 1  # Kills of one line each form a list.
        shown |= {*kinds, *kinds.values()}
        yield Folded("Post-mortem", partial(_of, whole, 13), _of(brief, 13))


def _unsaid(rows: Sequence[Sentence], said: str) -> list[Sentence]:
    """Returns the rows with new facts; the first one with a label keeps it."""
    kept: list[Sentence] = []
    label = shown = ""
    for row in rows:
        label = row.label or label
        # The verdict names the program, if several were killed, and the resident memory.
        text = row.text.removeprefix("It ").removeprefix("Set ")
        if label != "Memory" and text not in said:
            kept.append(replace(row, label="" if label == shown else label))
            shown = label
    return kept


def _of(rows: Sequence[Sentence], width: int, indent: int = 2) -> list[Block]:
    return [Sentences(rows, width=width, indent=indent)] if rows else []


def settings(report: Report, said: str = "") -> Iterator[Block]:
    """Yields the recommended settings, if the log has cycles.

    Args:
        report: the report.
        said: the text of the verdict, whose reason against predictions one screen does not repeat.
    """
    if not report.analysis.summary.cycles:
        return
    refused = report.advice.baseline.refused or ""
    # The verdict may already say what to raise, or to record first.
    is_raised = "raise gomemlimit" in said.casefold() or "Set GOMEMLIMIT=" in said
    is_answered = is_raised or "record a longer log" in said.casefold()
    is_answered |= is_toolchain_alone(report.analysis.log.notes)
    if not report.advice.is_available:
        sentence = Paragraphs([advice.refusal(report)], indent=2)
        refusal: Document = [Gap(), Heading(_title_of_settings(report)), sentence]
        is_answered |= bool(refused) and refused.casefold() in said.casefold()
        yield Folded("Recommended settings", lambda: refusal, [] if is_answered else refusal)
        return
    ranked = advice.after_death(report.advice.recommendations, report)
    first = ranked.row(0, named=True)
    whole = partial(_setting_blocks, report, ranked, said)
    if first["now"] or is_answered:
        # If no change is needed, one alternative and one reason are enough.
        brief = _setting_blocks(report, ranked.head(2), said, 1)
        # With few cycles, predictions that nobody needs would claim more than they know.
        is_few = report.analysis.summary.cycles < DEFAULT.short_log_cycles
        is_said = (is_few if first["now"] else is_raised) or not first["why"]
        yield Folded("Alternatives", whole, [] if is_said else brief)
        return
    yield from whole()
    if first["rank"] == 1:
        pasted = manifests(to_set(first, report.advice.baseline)).items()
        blocks = [Code(text, name) for name, text in pasted]
        yield Folded("Copy and paste", lambda: blocks)


_MOST_SETTINGS = 3
"""Rows of a report's table of settings, which is to fit one screen."""


def _setting_blocks(
    report: Report, ranked: pl.DataFrame, said: str, most: int | None = None
) -> Document:
    """Returns a table of settings, `most` new reasons, and the legend of its signs."""
    shown = advice.advice(
        ranked.head(_MOST_SETTINGS), report.advice.baseline, _title_of_settings(report)
    )
    # A setting that is not needed is not to be tested.
    above = said if most is None else f"{said} gctrace-analyze measure"
    reasons = advice.reasons(ranked, report.advice.baseline, above)
    if most is not None:
        which = (*which_process(report.analysis, advised_process(report.analysis)),)
        needed = (*OF_LEVEL, "low")
        kept = (row for row in reasons[most:] if row[1] in which or row[1].startswith(needed))
        reasons = [*reasons[:most], *kept]
    said += "the container's memory limit is unknown" * ("container has room" in said)
    reasons = [(label, text) for label, text in reasons if text.partition(": s")[0] not in said]
    signs = advice.legend(shown, report)
    return [
        shown,
        Sentences([Sentence(*reason) for reason in reasons]),
        *([Paragraphs([signs], "dim", indent=2)] if signs else []),
    ]


def _title_of_settings(report: Report) -> str:
    """Returns the subject of the settings, with several processes or after another one's kill."""
    title = "Recommended settings"
    rows = report.analysis.tables["processes"].to_dicts()
    if len(rows) > 1:
        return f"{title}, process {advised_process(report.analysis)}"
    if all(death.process is not None for death in report.analysis.post_mortems):
        return title
    own = rows[0]
    subject = printable(own["ident"] or own["container"] or PurePath(str(own["source"])).name)
    return f"{title}, {subject}"


def _memory(report: Report, *, is_sick: bool) -> Iterator[Block]:
    """Yields memory from MemStats: its parts in brief, else its sizes."""
    sizes, parts = evidence.memory(report), memory_parts(report)
    notes = evidence.memory_notes(report)
    if sizes:
        # The verdict says all that one dump without the size of the heap shows.
        only = [(memory.dumps, memory.needed_is) for memory in report.analysis.memory]
        is_said = report.verdict is None and only == [(1, HEAP_ALLOCATED)]
        yield Folded("Memory", lambda: [sizes], [] if parts or is_said else [sizes])
    if parts:
        yield parts
    if notes:
        is_shown = is_sick or sizes or shows_scavenger(report.analysis.tables)
        brief: list[Block] = [Paragraphs(notes[:MOST_NOTES], indent=2)]
        gap = [] if sizes or parts else [Gap()]
        yield Folded(
            "Notes on memory",
            lambda: [Paragraphs(notes, indent=2)],
            [*gap, *brief] if is_shown else [],
        )


def _skipped(report: Report) -> Iterator[Block]:
    """Yields the lines that could not be parsed, and damage to whole inputs."""
    if rejected := evidence.rejected(report):
        yield rejected
        yield Folded("Skipped lines", lambda: [Excerpts(evidence.rejected_examples(report))])
    if damage := evidence.damage(report):
        yield Gap()
        yield Paragraphs(damage, "yellow")


def _notes(report: Report, said: str) -> Iterator[Block]:
    """Yields caveats and the log's self-check; in brief, those that nothing above says."""
    whole, analysis = [], report.analysis
    for at, text in enumerate(analysis.summary.warnings):
        whole.append(Sentence("" if at else "Note", text, "bold"))
    if check := evidence.self_check(report):
        whole.append(Sentence("Check", check, "bold"))
    seen = seen_anyway(analysis.cycles, analysis.tables["processes"])
    seen |= {finding.evidence for finding in analysis.findings}
    # A note on goroutines is shown with its number and its advice.
    parts = {
        text: text.split(": ", 1)[0 if text.startswith(GREW) else -1]
        for text in analysis.summary.warnings
    }
    seen |= {text for text, part in parts.items() if part in said}
    shown = [text for text in analysis.summary.warnings if text not in seen][:MOST_NOTES]
    brief = [Sentence("" if at else "Note", text, "bold") for at, text in enumerate(shown)]
    if brief:
        yield Gap()
    gap: list[Block] = [] if brief else [Gap()]
    if whole:
        yield Folded("Notes", lambda: [*gap, *_of(whole, 7, 0)], _of(brief, 7, 0))
