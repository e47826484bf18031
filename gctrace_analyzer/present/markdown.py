"""Documents as Markdown, for an issue or a pull request."""

from __future__ import annotations

import re
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
"""Characters of an input line that are shown."""


def dumps(blocks: Iterable[Block]) -> str:
    """Returns a document as Markdown text."""
    return "\n\n".join(filter(None, chain.from_iterable(map(_parts, blocks)))) + "\n"


def _parts(block: Block) -> Iterator[str]:  # noqa: C901  # one case for each block
    """Yields the parts of a block, separated by empty lines."""
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
            yield from (f"▸ **{escaped(step)}**" for step in block.steps)
        case Figures():
            yield from _figures(block)
        case Sentences():
            yield "\n".join(
                f"- {f'**{row.label}** ' if row.label else ''}{escaped(row.text)}"
                for row in block.rows
            )
        case Paragraphs():
            yield from map(paragraph, block.texts)
        case Problem():
            yield _problem(block)
        case Table():
            yield from _table(block)
        case Excerpts():
            texts = ((code(where), code(text[:_MOST_EXCERPT])) for where, text in block.rows)
            yield "\n".join(f"- {where}: {text}" for where, text in texts)
        case Code():
            yield from filter(None, (f"{block.name}:" if block.name else "",))
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block.text)), default=0))
            yield f"{fence}\n{block.text}\n{fence}"
        case Folded():
            yield from chain.from_iterable(map(_parts, block.brief))
            more = [*chain.from_iterable(map(_parts, blocks := block.blocks()))]
            if more and blocks != block.brief:
                yield f"<details><summary>{escaped(block.title)}</summary>"
                yield from (*more, "</details>")


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
    place = f" ({code(problem.place)})" if problem.place else ""
    text = f": {problem.meaning} {problem.evidence}".replace(":  ", ": ").rstrip(": ")
    return (
        f"- **{escaped(problem.name)}** {problem.id}, {escaped(problem.when)}{escaped(text)}{place}"
        + (f" *{escaped(problem.advice)}*" if problem.advice else "")
    )


def _table(shown: Table) -> Iterator[str]:
    """Yields a table; nothing if it has no rows."""
    if not shown.rows:
        return
    sides = "|".join("---:" if side == "r" else "---" for side in shown.align)
    rows = (f"| {' | '.join(escaped(cell) for cell in row)} |" for row in shown.rows)
    head = " | ".join(map(escaped, shown.head))
    yield "\n".join((f"| {head} |", f"|{sides}|", *rows))
    if shown.more:
        yield escaped(shown.more)


_MARKUP = re.compile(r"[\\|`*_<>\[\]$]|&(?=[#\w])|~(?=\S)|(?<=\S)~")
_LINKED = re.compile(
    r"(?<=[@#])(?=\S)|(?<=[!%])(?=\d)|(?<=\w:)(?=//)|(?<=:)(?=[a-z+][\w+-]*:)|(?<=www)(?=\.)",
    re.IGNORECASE,
)
"""Plain text that GitHub and GitLab turn into links despite a backslash: mentions of people, who
are then notified, issue numbers, addresses, and emoji names."""

_CODE = re.compile(r"(?<!`)(`[\w ./:=,+(){}'\"%~$-]{1,80}`)(?!`)")
"""Code as sentences have it, without what ends a cell of a table or begins markup elsewhere."""

_BREAK = "\N{WORD JOINER}"
_BEGINNING = re.compile(r"(\d*)(?=[-+=#/:.)])")


def escaped(text: str) -> str:
    r"""Returns the text with the markup of Markdown and HTML escaped, on one line.

    Only code in backticks stays what it is: nothing in it is markup.

    >>> escaped("a|b <b>x</b>"), escaped("run `go tool pprof`")
    ('a\\|b \\<b\\>x\\</b\\>', 'run `go tool pprof`')
    """
    parts = _CODE.split(printable(" ".join(text.splitlines())))
    parts[::2] = (_LINKED.sub(_BREAK, _MARKUP.sub(r"\\\g<0>", part)) for part in parts[::2])
    return "".join(parts)


def paragraph(text: str) -> str:
    """Returns a paragraph whose beginning cannot be read as a heading, list, rule or command."""
    text = escaped(text.lstrip())
    match = _BEGINNING.match(text)
    return f"{match[1]}\\{text[match.end() :]}" if match else text


def code(text: str) -> str:
    """Returns the text as inline code, so that text from a log is never markup."""
    clean = printable(text).replace("`", "'")
    return f"`{clean}`" if clean else ""
