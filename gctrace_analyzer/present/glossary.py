"""The explained words of reports, for `explain`, `help`, the HTML page and docs."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.thresholds import filled
from gctrace_analyzer.present.document import Heading, Paragraphs

if TYPE_CHECKING:
    from gctrace_analyzer.present.document import Document

_ENTRY = re.compile(
    r"^## (?P<word>[^\n]+)\n\n(?P<text>(?:[^\n]+\n)+)(?:\nAlso: (?P<also>[^\n]+)\.\n)?",
    re.MULTILINE,
)

_MORE = re.compile(
    r"^\d+ |(?<=^go)1\.\d+\+$|^(max|p99|their|eff\.) |"
    r",? (p\d\d|max|mean|median|%|[mg]ib|ms|mib/s)( [mg]ib)?$|, .*"
)
"""What reports write around a word: a number, a unit, which of the values, or the process."""


def page() -> str:
    """Returns all words as a page in Markdown."""
    return filled(Path(__file__).with_suffix(".md").read_text("utf-8"))


@cache
def words() -> dict[str, str]:
    """Returns the text about each word, by the word as reports spell it."""
    return {word: " ".join(text.split("\n")).rstrip() for word, text, _ in _entries()}


def find_word(text: str) -> str | None:
    """Returns the word that `text` means, in any spelling; None for unknown text.

    >>> find_word("mark-assist"), find_word("STW"), find_word("oops")
    ('mark assist', 'stop the world', None)
    """
    named = _spelled(text.strip())
    # Reports write more with some words: 2 procs, go1.18+, heap peak MiB, pauses p99.
    wanted = {named, _spelled(_MORE.sub("", text.strip().lower()))}
    names = ((word, _spelled(f"{word}, {also}").split(", ")) for word, _, also in _entries())
    return next((word for word, spelled in names if wanted & {*spelled}), None)


def _spelled(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", text.lower().replace("%", " %"))


def explain_word(text: str) -> Document | None:
    """Explains a word of reports, or lists all (`words`); None for unknown text."""
    if text.strip() == "words":
        # The 80 % interval is found under its letter.
        listed = sorted(words(), key=lambda word: word.lstrip("0123456789 %").casefold())
        return [Heading("Words of reports"), Paragraphs([", ".join(listed)], indent=2)]
    word = find_word(text)
    return None if word is None else [Heading(word), Paragraphs([words()[word]], indent=2)]


def _entries() -> list[tuple[str, str, str]]:
    """Returns each word, its text and its other names."""
    return _ENTRY.findall(page())
