"""The document shown as text and Markdown, made of blocks. HTML has templates for blocks.

`sections/` makes the blocks; `text` and `markdown` have one `match` over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from gctrace_analyzer.frozen import frozen


@frozen
class Title:
    """The subject of the document: its kind, the name of the subject, and facts about it.

    A terminal shows only the name and the facts: its user has typed the rest.
    """

    kind: str
    name: str = ""
    facts: Sequence[str] = ()


@frozen
class Gap:
    """An empty line of a terminal; Markdown and HTML have their own spacing."""


@frozen
class Heading:
    """A title in the document; `severity` is a key of `sections.headline.WORDS`, or empty."""

    text: str
    severity: str = ""


@frozen
class Statement:
    """The verdict: `level` is a key of `sections.headline.WORDS`, `word` says it in words."""

    level: str
    word: str
    sentence: str
    action: str = ""

    @property
    def steps(self) -> list[str]:
        """The lines of the action."""
        return [*filter(None, self.action.split("\n"))]


@frozen
class KeyFigure:
    """A headline figure; `trend` has its values over time, `level` its verdict."""

    label: str
    value: str
    note: str
    trend: Sequence[float | None] = ()
    level: str = ""
    keeps_trend: bool = False
    """Whether the end of its note gives way first, where there is no room for both."""


@frozen
class Figures:
    """Headline figures; `of` names what they cover, unless that is the only process."""

    figures: Sequence[KeyFigure]
    of: str = ""
    wide: bool = False
    """Whether notes are sentences, which take several lines in a terminal."""


@frozen
class Sentence:
    """A sentence with its label, and the style of the label in a terminal."""

    label: str
    text: str
    style: str = ""


@frozen
class Sentences:
    """Labelled sentences. A terminal shows the labels in a column of `width` after `indent`."""

    rows: Sequence[Sentence]
    width: int = 12
    indent: int = 2
    style: str = ""
    """Style of the sentences in a terminal."""


@frozen
class Paragraphs:
    """Sentences without labels."""

    texts: Sequence[str]
    style: str = ""
    indent: int = 0
    hanging: int = 0


@frozen
class Problem:
    """A finding for display: its consequence (`meaning`), evidence, effects and advice.

    `start_s` and `end_s` count from the start of `process`.
    """

    process: int | None
    start_s: float | None
    end_s: float | None
    when: str
    id: str
    name: str
    severity: str
    meaning: str
    evidence: str
    place: str
    advice: str


@frozen
class TimeRange:
    """A range of the time axis of a page, in seconds.

    >>> TimeRange(10.0, 20.0).href
    '#t=9.800-20.200'
    """

    begin_s: float
    end_s: float

    @property
    def href(self) -> str:
        """A link to the range, with room on both sides."""
        room = 0.02 * (self.end_s - self.begin_s) or 0.001
        return f"#t={max(self.begin_s - room, 0):.3f}-{self.end_s + room:.3f}"


@frozen
class Table:
    """A table. The head of the first column is its title; `align` has l or r per column.

    `least` has the fewest characters of each column that a terminal keeps when it cuts cells; 0 or
    no value means that they are not cut. In the last column, they take several lines instead.
    `verdict` is the number of the column whose cells are coloured by verdict. `spans` has the time
    ranges that the rows of a page link to.
    """

    head: tuple[str, ...]
    align: str
    rows: Sequence[tuple[str, ...]]
    more: str = ""
    least: tuple[int, ...] = ()
    verdict: int | None = None
    spans: Sequence[TimeRange | None] = ()
    spare: tuple[int, ...] = ()
    """Columns that a terminal drops, in this order, if a row has no room."""

    def without(self, empty: str) -> Table:
        """Returns the head and rows without columns in which each cell is `empty`."""
        kept = [at for at in range(len(self.head)) if {row[at] for row in self.rows} != {empty}]
        return replace(
            self,
            head=tuple(self.head[at] for at in kept),
            align="".join(self.align[at] for at in kept),
            rows=[tuple(row[at] for at in kept) for row in self.rows],
        )


@frozen
class Excerpts:
    """Lines of an input: the position of each, and its text."""

    rows: Sequence[tuple[str, str]]


@frozen
class Code:
    """Text to paste. A terminal omits code with a name, and never wraps a command."""

    text: str
    name: str = ""


@frozen
class Folded:
    """Blocks beyond one screen, and short ones shown instead.

    Markdown folds the blocks under `title`, after the short ones; a terminal shows one or the
    other. Blocks are made when they are shown.
    """

    title: str
    blocks: Callable[[], Sequence[Block]]
    brief: Sequence[Block] = ()


Block: TypeAlias = (
    "Title | Gap | Heading | Statement | Figures | Sentences | Paragraphs | Problem | Table | "
    "Excerpts | Code | Folded"
)
Document: TypeAlias = "Sequence[Block]"
