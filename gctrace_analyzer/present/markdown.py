"""Documents as Markdown, for an issue or a pull request."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from gctrace_analyzer.present.document import (
    Code,
    Excerpts,
    Figures,
    Folded,
    Gap,
    Heading,
    Paragraphs,
    Problem,
    Sentences,
    Statement,
    Table,
    Title,
)
from gctrace_analyzer.present.format import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gctrace_analyzer.present.document import Block

_MOST_EXCERPT = 120
"""Characters of a line of the input."""


def dumps(blocks: Iterable[Block]) -> str:
    """Returns a document as Markdown text."""
    return "\n\n".join(chain.from_iterable(map(_parts, blocks))) + "\n"


def _parts(block: Block) -> Iterator[str]:  # noqa: C901  # one case for each block
    """Yields the parts of a block, which empty lines separate."""
    match block:
        case Title():
            yield f"## {block.kind}" + (f": {code(block.name)}" if block.name else "")
            if block.facts:
                yield escaped(" · ".join(block.facts))
        case Gap():
            return
        case Heading():
            yield f"### {escaped(block.text)}"
        case Statement():
            sentence = escaped(block.sentence)
            yield f"**{block.word}:** {sentence}" if block.word else f"**{sentence}**"
            if block.action:
                yield f"▸ **{escaped(block.action)}**"
        case Figures():
            yield from _figures(block)
        case Sentences():
            yield "\n".join(
                f"- {f'**{row.label}** ' if row.label else ''}{escaped(row.text)}"
                for row in block.rows
            )
        case Paragraphs():
            yield from map(escaped, block.texts)
        case Problem():
            yield _problem(block)
        case Table():
            yield from _table(block)
        case Excerpts():
            texts = ((code(where), code(text[:_MOST_EXCERPT])) for where, text in block.rows)
            yield "\n".join(f"- {where}: {text}" for where, text in texts)
        case Code():
            yield from filter(None, (f"{block.name}:" if block.name else "",))
            yield f"```\n{block.text}\n```"
        case Folded():
            yield from chain.from_iterable(map(_parts, block.brief))
            yield f"<details><summary>{escaped(block.title)}</summary>"
            yield from chain.from_iterable(map(_parts, block.blocks))
            yield "</details>"


def _figures(block: Figures) -> Iterator[str]:
    of = f" ({block.of[0].lower()}{block.of[1:]})" if block.of else ""
    has_levels = any(figure.level for figure in block.figures)
    rows = [
        (figure.label, figure.value, figure.note, *([figure.level] if has_levels else []))
        for figure in block.figures
    ]
    head = (f"Figure{of}", "value", "", *(["verdict"] if has_levels else []))
    yield from _table(Table(head, "lrll"[: len(head)], rows))


def _problem(problem: Problem) -> str:
    effects = f" Also caused by this: {problem.also_causes}." if problem.also_causes else ""
    place = f" ({code(problem.place)})" if problem.place else ""
    return (
        f"- **{escaped(problem.name)}** {problem.id}, {escaped(problem.when)}: "
        f"{escaped(f'{problem.meaning} {problem.evidence}'.lstrip())}{place}"
        f"{escaped(effects)}" + (f" *{escaped(problem.advice)}*" if problem.advice else "")
    )


def _table(shown: Table) -> Iterator[str]:
    """Yields a table; nothing if it has no rows."""
    if not shown.rows:
        return
    sides = "|".join("---:" if side == "r" else "---" for side in shown.align)
    rows = (f"| {' | '.join(escaped(cell) for cell in row)} |" for row in shown.rows)
    yield "\n".join((f"| {' | '.join(shown.head)} |", f"|{sides}|", *rows))
    if shown.more:
        yield escaped(shown.more)


def escaped(text: str) -> str:
    """Returns the text with Markdown and HTML markup escaped."""
    for char in "\\|`*_<>[]":
        text = text.replace(char, "\\" + char)
    return text


def code(text: str) -> str:
    """Returns the text as inline code, so that text from a log is never markup."""
    clean = printable(text).replace("`", "'")
    return f"`{clean}`" if clean else ""
