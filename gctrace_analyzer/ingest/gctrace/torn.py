"""Joins torn lines again, and says of every other suspect why it could not be read.

The runtime prints a record in many small writes, so a write of the application (or of another
program on the same stream) may land anywhere in it: `gc 14 @0.918s 9%: 0.006+16+`, other text,
a line end, and the rest of the record on the next line. People wrap lines by hand, too.

Where the rest of a record begins is told by skeletons: what stands before it and what it has,
both without digits, must make up the skeleton of a record. Only between digits is there a
choice, and there the log itself decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from gctrace_analyzer.ingest.gctrace.chunk import CONTEXT_LINES, REJECTED_CHARS, Suspect
from gctrace_analyzer.ingest.gctrace.grammar import COMPANIONS, GCTRACE, MODERN, Shape
from gctrace_analyzer.ingest.gctrace.patterns import MODERN_HEAD
from gctrace_analyzer.ingest.gctrace.seams import (
    cycle_num,
    look,
    oddity,
    reach,
    seams,
    whole_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl


_REASONS = {
    "long": "longer than 1 MiB",
    "range": "a number that does not fit 64 bits",
    "headless": "its beginning is missing",
    "piece": "a piece of a record, the rest is missing",
}
_CUT = "cut short"
_TORN = "torn by another write, and its rest is missing"
_BRAIDED = "two programs wrote at once, and their numbers cannot be told apart"
_ORDER = "the fields stand in an order no Go version prints"

_MOST_TEARS = 3
"""How often one record may be torn; twice was never seen in 4,369 real cycles."""

_OLD = tuple(shape for shape in GCTRACE if shape not in MODERN)
_HEAD = re.compile(MODERN_HEAD)
_GC = re.compile(r"gc (?:#?\d*)|gc$")
_MIDDLE = re.compile(r"[-\d.+/>@%: s]*(?:%|ms c|MB|->)")
_RUNTIMES_OWN = re.compile(r"gc #?\d+ @\d+\.\d{3}|(?!gc #?\d+ ).*?\d\D+\d")
_RECORD_WORDS = re.compile(r" ms cpu| MB |\d P\b")
_TWO_RECORDS = re.compile(r"gc gc #?\d| ms (clock|cpu),.* ms \1,|gc #?\d+ @.*gc \d[^@]*@[^%]*%")
_PIECE_WORDS = re.compile(
    r"(?:[-\d.+/>@%:,()\s]|gc |clock|cpu|ms|MB|goal|stacks|globals|forced|[Ps])*"
)


class Joined(NamedTuple):
    """A record whose parts stood on several lines; `line_no` is where it begins."""

    line_no: int
    text: str


class Reject(NamedTuple):
    """A line that looks like the runtime's and could not be read."""

    line_no: int
    reason: str
    text: str


@dataclass(slots=True)
class Mended:
    """What became of the suspects.

    `forced` are the lines of records that were read and whose ` (forced)` stands alone.
    """

    joined: list[Joined] = field(default_factory=list)
    forced: list[int] = field(default_factory=list)
    rejected: list[Reject] = field(default_factory=list)


def mend(
    suspects: Sequence[Suspect],
    near: pl.DataFrame,
    expected_num: Callable[[int], int | None],
) -> Mended:
    """Joins what belongs together among the suspects of one input.

    Args:
        suspects: in line order.
        near: `line_no text origin` of the lines around them (`wrappers.by_depth`).
        expected_num: the cycle number that would continue the log at a line.
    """
    lines: dict[str, dict[int, str]] = {}
    for number, text, origin in near.select("line_no", "text", "origin").iter_rows():
        lines.setdefault(origin, {})[number] = text
    result = Mended()
    for origin in sorted({suspect.origin for suspect in suspects}):
        mine = [suspect for suspect in suspects if suspect.origin == origin]
        found = _Mender(lines.get(origin, {}), expected_num).mend(mine)
        result.joined += found.joined
        result.forced += found.forced
        result.rejected += found.rejected
    result.rejected.sort()
    return result


class _Mender:
    def __init__(
        self, lines: dict[int, str], expected_num: Callable[[int], int | None]
    ) -> None:
        self.lines = lines
        self.expected_num = expected_num
        self.used: set[int] = set()
        self.result = Mended()

    def mend(self, suspects: Sequence[Suspect]) -> Mended:
        for suspect in suspects:
            if suspect.kind == "glued":
                self._find_forced(suspect)
            elif suspect.kind == "head":
                self._find_rest(suspect)
        for suspect in suspects:
            if suspect.kind == "headless" and suspect.line_no not in self.used:
                self._find_head(suspect)
        for suspect in suspects:
            reason = None if suspect.line_no in self.used else _reason(suspect)
            if reason:
                text = (suspect.prefix + suspect.text)[:REJECTED_CHARS]
                self.result.rejected.append(Reject(suspect.line_no, reason, text))
        return self.result

    def _after(self, line_no: int) -> list[tuple[int, str]]:
        near = range(line_no + 1, line_no + 1 + CONTEXT_LINES)
        return [(n, self.lines[n]) for n in near if n in self.lines and n not in self.used]

    def _find_forced(self, glued: Suspect) -> None:
        """Finds the ` (forced)` of a record that was torn just before it."""
        for number, text in self._after(glued.line_no):
            if _HEAD.search(text):
                return
            if text.strip() == "(forced)":
                self.result.forced.append(glued.line_no)
                self.used.add(number)
                return

    def _find_rest(self, head: Suspect) -> None:
        """Finds the rest of a record that begins at `head`."""
        if _TWO_RECORDS.search(head.text):
            return
        following = self._after(head.line_no)
        shapes = _family(head.text)
        parts = _unwrapped(head, following, shapes) or self._completed(
            head, head.text, following, shapes, _MOST_TEARS
        )
        if parts:
            text, used = parts
            self.result.joined.append(Joined(head.line_no, text))
            self.used.update(used, (head.line_no,))

    def _completed(
        self,
        head: Suspect,
        begin: str,
        following: list[tuple[int, str]],
        shapes: tuple[Shape, ...],
        tears: int,
    ) -> tuple[str, list[int]] | None:
        """A record of which `begin` has the beginning and then another write's text."""
        for number, line in following:
            for rest in _rests(line, head.prefix):
                if records := list(seams(begin, rest, shapes)):
                    return self._best(head.line_no, begin, records), [number]
        if tears > 1:
            for index, (number, line) in enumerate(following):
                later = following[index + 1 :]
                if torn := self._torn_again(head, begin, line, later, shapes, tears):
                    return torn[0], [number, *torn[1]]
        return None

    def _torn_again(
        self,
        head: Suspect,
        begin: str,
        line: str,
        later: list[tuple[int, str]],
        shapes: tuple[Shape, ...],
        tears: int,
    ) -> tuple[str, list[int]] | None:
        """A record of which `line` has the middle, and again another write's text."""
        if not _MIDDLE.match(line) or _HEAD.match(line):
            return None
        found: dict[int, tuple[str, list[int]]] = {}
        for cut in range(reach(begin, shapes), 2, -1):
            middle = begin[:cut] + line
            gained = middle[cut : reach(middle, shapes)]
            if len(gained) >= 4 and re.search("[a-zA-Z%]", gained):
                rest = self._completed(head, middle, later, shapes, tears - 1)
                found |= {cut: rest} if rest else {}
        if not found:
            return None
        best = self._best(
            head.line_no, begin, [(cut, text) for cut, (text, _) in found.items()]
        )
        return next(parts for parts in found.values() if parts[0] == best)

    def _find_head(self, tail: Suspect) -> None:
        """Finds the `gc N` that belongs to a record's rest, which may be torn in its turn."""
        heads = list(self._heads_before(tail.line_no))
        for number, begin, prefix in heads:
            for rest in _rests(tail.text, prefix):
                if found := list(seams(begin, rest, MODERN)):
                    text = self._best(number, begin, found)
                    self.result.joined.append(Joined(number, text))
                    self.used.update((number, tail.line_no))
                    return
        later = self._after(tail.line_no)
        for number, begin, prefix in heads:
            head = Suspect(number, prefix, begin, "head")
            torn = self._torn_again(head, begin, tail.text, later, MODERN, _MOST_TEARS)
            if torn:
                self.result.joined.append(Joined(number, torn[0]))
                self.used.update((number, tail.line_no, *torn[1]))
                return

    def _heads_before(self, line_no: int) -> Iterator[tuple[int, str, str]]:
        """What may be a bare `gc N` before a line: its line, it and what follows, its prefix.

        The nearest first, those at the start of a line before all others.
        """
        near = range(line_no - 1, line_no - 1 - CONTEXT_LINES, -1)
        before = [(n, self.lines[n]) for n in near if n in self.lines and n not in self.used]
        for at_start in (True, False):
            for number, line in before:
                for match in _GC.finditer(line):
                    at = match.start()
                    if (at == 0) == at_start and not _HEAD.match(line, at):
                        yield number, line[at:], line[:at]

    def _best(self, line_no: int, begin: str, found: list[tuple[int, str]]) -> str:
        """The most plausible of several cuts that give a whole record.

        What was cut off should begin as other lines of the log do; then the cycle should
        continue the numbers; then the numbers should be ones the runtime prints.
        """
        if len(found) == 1:
            return found[0][1]
        near = range(line_no - CONTEXT_LINES, line_no + CONTEXT_LINES)
        looks = {look(self.lines[n][:12]) for n in near if n in self.lines and n != line_no}
        familiar = [seam for seam in found if look(begin[seam[0] :][:12]) in looks] or found
        if len(familiar) == 1:
            return familiar[0][1]
        expected = self.expected_num(line_no)
        return max(
            familiar, key=lambda seam: (cycle_num(seam[1]) == expected, -oddity(seam[1]))
        )[1]


def _family(text: str) -> tuple[Shape, ...]:
    if text.startswith("gc "):
        return MODERN
    return _OLD if text.startswith("gc") else COMPANIONS


def _unwrapped(
    head: Suspect, following: list[tuple[int, str]], shapes: tuple[Shape, ...]
) -> tuple[str, list[int]] | None:
    """A record that somebody, or a mail program, has wrapped."""
    text, used = head.text.rstrip(), []
    if not _PIECE_WORDS.fullmatch(text) or reach(text, shapes) < len(text):
        return None
    for number, line in following:
        part = line.removeprefix(head.prefix).strip()
        candidates = (f"{text} {part}", text + part)
        grown = (c for c in candidates if reach(c, shapes) == len(c) > len(text))
        text = next(grown, "")
        if not text:
            return None
        used.append(number)
        if whole_record(shapes).fullmatch(text):
            return text, used
    return None


def _rests(line: str, prefix: str) -> Iterator[str]:
    """The line as the rest of a record: as it is, and without a prefix like the head's."""
    for text in (line, line[len(prefix) :] if prefix else ""):
        if text.strip() and not _HEAD.match(text) and not _HEAD.match(line):
            yield text.rstrip()


def _reason(suspect: Suspect) -> str | None:
    """Why the line could not be read; None for an application's line that only looks alike."""
    if _TWO_RECORDS.search(suspect.prefix[-3:] + suspect.text):
        return _BRAIDED
    if suspect.kind == "piece" and not _PIECE_WORDS.fullmatch(suspect.text):
        return None
    if suspect.kind != "head":
        return _REASONS.get(suspect.kind)
    text = suspect.text.rstrip(" .…")
    ours = reach(text, _family(text))
    if ours == len(text):
        return _CUT
    # Two numbers in their places, `gc 12 @0.345` at least, are no accident.
    if not _RUNTIMES_OWN.match(text[:ours]):
        return None
    return _ORDER if _RECORD_WORDS.search(text, ours) else _TORN
