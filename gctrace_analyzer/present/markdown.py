"""The report as Markdown, for an issue or a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.present.format import printable
from gctrace_analyzer.present.sections import advice, evidence, findings, overview, verdict
from gctrace_analyzer.present.sections.deployment import manifests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.present.report import Report


def dumps(report: Report) -> str:
    """Returns the report as Markdown text."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    title, *facts = report.facts
    yield f"## Go garbage collection: {code(title)}"
    yield ""
    yield " · ".join(facts)
    found = verdict.shown(report)
    yield f"\n**{found.word}:** {escaped(found.sentence)}"
    if found.action:
        yield f"\n▸ **{escaped(found.action)}**"
    if inputs := evidence.inputs(report):
        yield ""
        yield from (f"- {code(name)}: {escaped(what)}" for name, what in inputs)
    if settings := evidence.settings(report):
        yield f"\n{escaped(settings)}"
    if report.analysis.summary.cycles or report.analysis.by_dumps:
        state = [(f.label, f.value, f.note, f.level) for f in overview.state(report)]
        of_all = overview.of_all(report)
        head = f"Figure ({of_all[0].lower()}{of_all[1:]})" if of_all else "Figure"
        yield from table(overview.Table((head, "value", "", "verdict"), "lrll", state))
    yield from _findings(report)
    if report.advice.is_available:
        yield from _advice(report)
    elif report.analysis.summary.cycles:
        yield f"\n**No recommendation:** {escaped(str(report.advice.baseline.refused))}."
    for each in overview.about_cycles(report):
        yield from table(each)
    yield from _evidence(report)
    yield from table(overview.rejected(report))
    examples = overview.rejected_examples(report)
    if examples:
        yield ""
        yield from (f"- {code(where)}: {code(text[:120])}" for where, text in examples)
    for text in (*overview.damage(report), *report.analysis.summary.warnings):
        yield ""
        yield f"> {escaped(text)}"


def _evidence(report: Report) -> Iterator[str]:
    for title, sentences in evidence.deaths(report):
        yield f"\n### {escaped(title)}\n"
        for label, text in sentences:
            yield f"- {f'**{label}** ' if label else ''}{escaped(text)}"
    for each in (evidence.memory(report), evidence.units(report)):
        yield from table(each)
    for text in evidence.memory_notes(report):
        yield f"\n{escaped(text)}"


def _advice(report: Report) -> Iterator[str]:
    ranked = report.advice.recommendations
    shown = advice.advice(ranked)
    if shown is None:
        return
    yield from table(shown)
    signs = filter(None, (escaped(advice.legend(shown)), "80 % intervals"))
    yield f"\n{'; '.join(signs)}"
    for label, text in advice.reasons(ranked, report.advice.baseline.warnings):
        yield f"\n**{label}** {escaped(text)}"
    first = ranked.row(0, named=True)
    if not first["now"]:
        pasted = manifests(advice.setting_of(first))
        yield "\n<details><summary>Copy and paste</summary>\n"
        for name, text in pasted.items():
            yield f"{name}:\n\n```\n{text}\n```\n"
        yield "</details>"


def _findings(report: Report) -> Iterator[str]:
    problems = findings.problems(report)
    if problems:
        yield "\n### What happened\n"
    for each in problems:
        effects = f" Also caused by this: {each.also_causes}." if each.also_causes else ""
        place = f" ({code(each.place)})" if each.place else ""
        yield (
            f"- **{escaped(each.name)}** {each.id}, {escaped(each.when)}: "
            f"{escaped(f'{each.meaning} {each.evidence}'.lstrip())}{place}"
            f"{escaped(effects)}" + (f" *{escaped(each.advice)}*" if each.advice else "")
        )
    if minor := findings.minor(report):
        yield f"\nMinor: {escaped(minor)}."


def table(shown: overview.Table | None) -> Iterator[str]:
    """Yields a table after an empty line; nothing if it has no rows."""
    if shown is None or not shown.rows:
        return
    yield ""
    yield f"| {' | '.join(shown.head)} |"
    yield f"|{'|'.join('---:' if side == 'r' else '---' for side in shown.align)}|"
    for row in shown.rows:
        yield f"| {' | '.join(escaped(cell) for cell in row)} |"
    if shown.more:
        yield f"\n{shown.more}"


def escaped(text: str) -> str:
    """Returns the text with Markdown and HTML markup escaped."""
    for char in "\\|`*_<>[]":
        text = text.replace(char, "\\" + char)
    return text


def code(text: str) -> str:
    """Returns the text as inline code, so that text from a log is never markup."""
    clean = printable(text).replace("`", "'")
    return f"`{clean}`" if clean else ""
