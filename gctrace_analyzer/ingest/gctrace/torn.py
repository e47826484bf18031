"""Rejoins records that were split over several lines, and rejects the others with a reason.

The runtime prints a record in many small writes, so a write of the application (or of another
process on the same stream) may land anywhere in it: `gc 14 @0.918s 9%: 0.006+16+`, other text,
a line end, and the rest of the record on the next line. Mail programs and people also wrap
records.

Skeletons show where the rest of a record begins: what stands before the cut and what comes
after it, both without digits, must make up the skeleton of a record. Only a cut between digits
is ambiguous; there, the neighbouring lines and the plausibility of the numbers decide.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.gctrace.chunk import (
    CONTEXT_LINES,
    REJECTED_CHARS,
    SUSPECT_CHARS,
    Reject,
    Suspect,
)
from gctrace_analyzer.ingest.gctrace.grammar import (
    COMPANIONS,
    MODERN,
    OLD,
    Field,
    Shape,
    any_of,
    variants_of,
)
from gctrace_analyzer.ingest.gctrace.patterns import MODERN_HEAD, without_markup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

_REASONS = {
    "long": "longer than 1 MiB",
    "range": "a number is larger than any that the runtime prints",
    "headless": "the beginning of the record is missing",
    "piece": "part of a record, and the rest is missing",
}
_CUT_SHORT = "cut short"
_OTHER_TEXT = "goes on with other text than the runtime prints"
_INTERLEAVED = "two processes wrote at the same time, and their numbers cannot be separated"
_WRONG_ORDER = "fields, or an order of fields, that no Go release prints"
_LEFT_OUT = "its author left parts out (...)"
_NO_COLON = "the colon after the percentage is missing"
_OTHER_CASE = "other capital letters than the runtime prints"
_NO_RECORD = "begins like a record, and does not go on like one of any Go release"

_BEGINS = re.compile(r"gc #?\d+ @\d+(?:\.\d+)?s -?\d+%: ")
_WITH_COMMAS = re.compile(r"@\d+,\d+s -?\d+%: \d+,\d+\+")
_WITHOUT_COLON = re.compile(r"gc #?\d+ @\d+\.\d+s -?\d+% +\d+(?:\.\d+)?\+")
# A sentence about a record: the runtime writes a percentage after the time.
_EXPLAINED = re.compile(r"gc #?\d+ @\d+(?:\.\d+)?s ?[:`”*：,，、（(]")
_ELLIPSIS = re.compile(r"\.\.\.|…")

_MAX_TEARS = 3
"""Most tears of one record; two were never seen in 4,369 real cycles."""

RECORD_CHARS = 1024
"""No record is longer: the longest, from Go 1.5, has 22 numbers and 100 other characters."""

_MAX_HEADS = 256
"""Possible beginnings that are tried before the rest of a record."""

_CUTS, _CUTS_PER_SUSPECT = 5_000, 2
"""Places that are tried as second cuts in the parts of records. A log needs a few hundred; damaged
lines that resemble each other would need millions."""

_MAX_HEADS_OF_A_LINE = 16
"""Most beginnings of records on one line that are joined; a Go program prints no more."""

_HEAD = re.compile(MODERN_HEAD)
_BARE_GC = re.compile(r"gc (?:#?\d*)|gc$")
_MIDDLE = re.compile(r"^(?:[-\d.+/>@%: s]*(?:%|ms c|MB|->)|#?\d* ?@\d)")
# Text with two numbers in the places of a record, such as `gc 12 @0.345`, is part of a record.
_CERTAINLY_A_RECORD = re.compile(r"^(?:gc #?\d+ @\d+\.\d{3}|(?!gc #?\d+ ).*?\d\D+\d)")
_RECORD_WORDS = re.compile(r" ms cpu| MB |\d P\b")
_PIECE_WORDS = re.compile(
    r"^(?:[-\d.+/>@%:,()\s]|gc |clock|cpu|ms|MB|goal|stacks|globals|forced|[Ps])*"
)
_TWO_HEADS = re.compile(r"gc gc #?\d")
_HEAD_START = re.compile(r"gc #?\d+ @")
_NEXT_CYCLE = re.compile(r"gc \d")

_NUMERIC = re.compile(r"[\d.]+")
# These match any number, even one that is cut short or too long for 64 bits.
_PARTIAL_NUMBER = {
    "int": r"\d{0,24}",
    "sint": r"-?\d{0,24}",
    "dec": r"[\d.]{0,32}",
    "float": r"[-+\w.]{0,32}",
}


class Joined(NamedTuple):
    """A record whose parts were on several lines; `line_no` is the line where it begins."""

    line_no: int
    text: str


@dataclass(slots=True)
class Rejoined:
    """The records that torn lines of one input make up, and the lines that were rejected.

    `forced` has the lines of complete records whose ` (forced)` was found on a later line.
    """

    joined: list[Joined] = field(default_factory=list)
    forced: list[int] = field(default_factory=list)
    rejected: list[Reject] = field(default_factory=list)


def rejoin(
    suspects: Sequence[Suspect],
    context: pl.DataFrame,
    expected_num: Callable[[int], int | None],
) -> Rejoined:
    """Joins the lines of one input that are parts of the same record; rejects the others.

    Args:
        suspects: the lines that look like parts of records, in line order.
        context: `line_no text origin` of the lines around them (`strip.by_depth`).
        expected_num: returns the cycle number that would continue the log at a line.
    """
    lines: dict[str, dict[int, str]] = {}
    plain = without_markup(context).select("line_no", "text", "origin")
    for number, text, origin in zip(*(column.to_list() for column in plain), strict=True):
        lines.setdefault(origin, {})[number] = text[:SUSPECT_CHARS]
    result = Rejoined()
    used: set[int] = set()  # also of other origins: an indented line may be a quoted one
    for origin in sorted({suspect.origin for suspect in suspects}):
        of_origin = [suspect for suspect in suspects if suspect.origin == origin]
        part = _Rejoiner(lines.get(origin, {}), expected_num, used).rejoin(of_origin)
        result.joined += part.joined
        result.forced += part.forced
        result.rejected += part.rejected
    result.rejected.sort()
    return result


class _Rejoiner:
    """Joins the torn lines of one origin (see `Suspect`); each is used at most once."""

    def __init__(
        self, lines: dict[int, str], expected_num: Callable[[int], int | None], used: set[int]
    ) -> None:
        self.lines, self.expected_num, self.used = lines, expected_num, used
        self.result = Rejoined()
        self._cuts_left = _CUTS

    def rejoin(self, suspects: Sequence[Suspect]) -> Rejoined:
        self._cuts_left += _CUTS_PER_SUSPECT * len(suspects)
        heads = Counter[int]()
        for suspect in suspects:
            if suspect.kind == "glued":
                self._find_forced(suspect)
            elif suspect.kind == "head":
                heads[suspect.line_no] += 1
                if heads[suspect.line_no] <= _MAX_HEADS_OF_A_LINE:
                    self._find_rest(suspect)
        for suspect in suspects:
            if suspect.kind in ("headless", "piece") and suspect.line_no not in self.used:
                self._find_head(suspect)
        for suspect in suspects:
            reason = None if suspect.line_no in self.used else _reason(suspect)
            if reason:
                text = (suspect.prefix + suspect.text)[:REJECTED_CHARS]
                self.result.rejected.append(Reject(suspect.line_no, reason, text))
        return self.result

    def _unused(self, numbers: range) -> list[tuple[int, str]]:
        """Returns the given lines with their text, except lines that are part of a record."""
        return [(n, self.lines[n]) for n in numbers if n in self.lines and n not in self.used]

    def _after(self, line_no: int) -> list[tuple[int, str]]:
        return self._unused(range(line_no + 1, line_no + 1 + CONTEXT_LINES))

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
        """Finds the rest of the record that begins at `head`."""
        if _holds_two_records(head.text):
            return
        following, shapes = self._after(head.line_no), _possible_shapes(head.text)
        parts = _unwrapped(head, following, shapes) or self._completed(
            head, head.text, following, shapes, _MAX_TEARS
        )
        if parts:
            self.result.joined.append(Joined(head.line_no, parts[0]))
            self.used.update(parts[1], (head.line_no,))

    def _completed(
        self,
        head: Suspect,
        begin: str,
        following: list[tuple[int, str]],
        shapes: tuple[Shape, ...],
        tears: int,
    ) -> tuple[str, list[int]] | None:
        """Returns the record made of `begin` and a following line, and the lines used.

        `begin` is the beginning of the record, followed by the text of another write.
        """
        for number, line in following:
            for rest in _possible_rests(line, head.prefix):
                if records := list(_completions(begin, rest, shapes)):
                    return self._most_plausible(head.line_no, begin, records), [number]
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
        """Returns a record that a second write cut again: `line` begins with its middle part."""
        if not _MIDDLE.match(line) or _HEAD.match(line):
            return None
        rests: dict[int, tuple[str, list[int]]] = {}
        for cut in range(_record_length(begin, shapes), 2, -1):
            self._cuts_left -= 1
            if self._cuts_left < 0:
                return None
            middle = begin[:cut] + line
            gained = middle[cut : _record_length(middle, shapes)]
            if len(gained) >= 4 and re.search("[a-zA-Z%@]", gained):
                rest = self._completed(head, middle, later, shapes, tears - 1)
                rests |= {cut: rest} if rest else {}
        if not rests:
            return None
        cuts = [(cut, text) for cut, (text, _) in rests.items()]
        best = self._most_plausible(head.line_no, begin, cuts)
        return next(parts for parts in rests.values() if parts[0] == best)

    def _find_head(self, tail: Suspect) -> None:
        """Finds the `gc N` that the rest of a record belongs to; the rest may be torn too."""
        nearest: dict[tuple[str, str], int] = {}
        for number, begin, prefix in islice(self._heads_before(tail.line_no), _MAX_HEADS):
            # If the nearest of equal lines does not fit, the others do not either.
            nearest.setdefault((begin, prefix), number)
        heads = [(number, *head) for head, number in nearest.items()]
        for number, begin, prefix in heads:
            for rest in _possible_rests(tail.text, prefix):
                if completions := list(_completions(begin, rest, MODERN)):
                    text = self._most_plausible(number, begin, completions)
                    self.result.joined.append(Joined(number, text))
                    self.used.update((number, tail.line_no))
                    return
        for number, begin, prefix in heads:
            head = Suspect(number, prefix, begin, "head")
            following = self._unused(range(number + 1, tail.line_no + 1 + CONTEXT_LINES))
            for at, (middle, line) in enumerate(following, start=1):
                torn = middle <= tail.line_no and self._torn_again(
                    head, begin, line, following[at:], MODERN, _MAX_TEARS
                )
                if torn and tail.line_no in (used := (number, middle, *torn[1])):
                    self.result.joined.append(Joined(number, torn[0]))
                    self.used.update(used)
                    return

    def _heads_before(self, line_no: int) -> Iterator[tuple[int, str, str]]:
        """Yields each possible bare `gc N` before a line: line, text from there, and prefix.

        Those at the start of a line come before all others; otherwise the nearest comes first.
        """
        before = self._unused(range(line_no - 1, line_no - 1 - CONTEXT_LINES, -1))
        for at_start in (True, False):
            for number, line in before:
                for match in _BARE_GC.finditer(line):
                    at = match.start()
                    if (at == 0) == at_start and not _HEAD.match(line, at):
                        yield number, line[at:], line[:at]

    def _most_plausible(self, line_no: int, begin: str, cuts: list[tuple[int, str]]) -> str:
        """Returns the most plausible of several cuts that complete a record.

        There are three criteria, the most important first: the other text begins like nearby lines,
        the record has the expected cycle number, and the runtime could have printed its numbers.
        """
        if len(cuts) == 1:
            return cuts[0][1]
        near = range(line_no - CONTEXT_LINES, line_no + CONTEXT_LINES)
        begins = {self.lines[n][:12] for n in near if n in self.lines and n != line_no}
        known = set(map(_outline, begins))
        familiar = [cut for cut in cuts if _outline(begin[cut[0] :][:12]) in known] or cuts
        if len(familiar) == 1:
            return familiar[0][1]
        expected = self.expected_num(line_no)
        return max(
            familiar, key=lambda cut: (_cycle_num(cut[1]) == expected, -_implausibility(cut[1]))
        )[1]


def _possible_shapes(text: str) -> tuple[Shape, ...]:
    if text.startswith("gc "):
        return MODERN
    return OLD if text.startswith("gc") else COMPANIONS


def _unwrapped(
    head: Suspect, following: list[tuple[int, str]], shapes: tuple[Shape, ...]
) -> tuple[str, list[int]] | None:
    """Returns the record that a person or a mail program wrapped, and the lines used."""
    text, used = head.text.rstrip(), []
    if not _PIECE_WORDS.fullmatch(text) or _record_length(text, shapes) < len(text):
        return None
    for number, line in following:
        part = line.removeprefix(head.prefix).strip()
        candidates = (f"{text} {part}", text + part)
        grown = (c for c in candidates if _record_length(c, shapes) == len(c) > len(text))
        text = next(grown, "")
        if not text:
            return None
        used.append(number)
        if _whole_record(shapes).fullmatch(text):
            return text, used
    return None


def _possible_rests(line: str, prefix: str) -> Iterator[str]:
    """Yields possible rests of a record: the line, and the line without its prefix."""
    for text in (line, line[len(prefix) :] if prefix else ""):
        if text.strip() and not _HEAD.match(text) and not _HEAD.match(line):
            yield text.rstrip()


def _reason(suspect: Suspect) -> str | None:
    """Returns why the line could not be read; None if it is probably an application line."""
    if _holds_two_records(suspect.prefix[-3:] + suspect.text):
        return _INTERLEAVED
    # No application writes all of these words, so such a line is a record with damage inside.
    if _WITH_COMMAS.search(suspect.text):
        return "commas instead of decimal points"
    is_record = all(words in suspect.text for words in (" ms clock,", " ms cpu,", "->", " MB"))
    if suspect.kind == "piece" and not _PIECE_WORDS.fullmatch(suspect.text):
        return _WRONG_ORDER if is_record else None
    if suspect.kind != "head" or _EXPLAINED.match(suspect.text):
        return _REASONS.get(suspect.kind)
    text = suspect.text.rstrip(" .…")
    if _ELLIPSIS.search(text):
        return _LEFT_OUT
    if _WITHOUT_COLON.match(text):
        return _NO_COLON
    if _HEAD.match(text) and _in_any_case(_possible_shapes(text)).fullmatch(text):
        return _OTHER_CASE
    length = _record_length(text, _possible_shapes(text))
    if length == len(text):
        return _CUT_SHORT
    if not is_record and not _CERTAINLY_A_RECORD.match(text[:length]):
        return _NO_RECORD if _BEGINS.match(text) else None
    return _WRONG_ORDER if _RECORD_WORDS.search(text, length) else _OTHER_TEXT


@cache
def _in_any_case(shapes: tuple[Shape, ...]) -> re.Pattern[str]:
    return re.compile(any_of(shapes), re.IGNORECASE)


def _holds_two_records(text: str) -> bool:
    """Returns whether parts of two records are mixed on one line."""
    if _TWO_HEADS.search(text) or max(map(text.count, (" ms clock,", " ms cpu,"))) > 1:
        return True
    # Looks for the start of one record before the number, time and percentage of another.
    first = _HEAD_START.search(text)
    second = first and _NEXT_CYCLE.search(text, first.end())
    at = text.find("@", second.end()) if second else -1
    return at >= 0 and "%" in text[at:]


def _record_length(text: str, shapes: tuple[Shape, ...]) -> int:
    """Returns the length of the text at the start of `text` that may begin a record."""
    longest = 0
    for beginning in _beginnings(shapes):
        if match := beginning.match(text):
            longest = max(longest, match.end())
            if longest == len(text):
                break
    return longest


def _completions(begin: str, rest: str, shapes: tuple[Shape, ...]) -> Iterator[tuple[int, str]]:
    """Yields each cut of `begin` at which `rest` completes a record, and that record."""
    if len(rest) > RECORD_CHARS:
        return
    skeleton_of_rest = _NUMERIC.sub("", rest)
    seen = set()
    for variant in variants_of(shapes):
        if not variant.skeleton.endswith(skeleton_of_rest):
            continue
        cut = _completed_by(variant.skeleton.removesuffix(skeleton_of_rest)).match(begin)
        at = cut.end() or None if cut else None
        while at is not None and at <= RECORD_CHARS:
            record = begin[:at] + rest
            if at not in seen and _whole_record((variant.shape,)).fullmatch(record):
                seen.add(at)
                yield at, record
            at = at + 1 if begin[at : at + 1].isdigit() or begin[at : at + 1] == "." else None


@lru_cache(1024)
def _completed_by(skeleton: str) -> re.Pattern[str]:
    """Returns a pattern of the texts that equal `skeleton` without digits and dots."""
    return re.compile("".join(rf"[\d.]*+{re.escape(char)}" for char in skeleton))


@cache
def _whole_record(shapes: tuple[Shape, ...]) -> re.Pattern[str]:
    return re.compile(any_of(shapes))


@cache
def _beginnings(shapes: tuple[Shape, ...]) -> tuple[re.Pattern[str], ...]:
    """Returns for each variant a pattern of all its beginnings."""
    patterns = []
    for variant in variants_of(shapes):
        steps: list[str] = []
        for part in variant.parts:
            if isinstance(part, Field):
                steps.append(_PARTIAL_NUMBER.get(part.kind, r"\w{0,32}"))
            else:
                steps += map(re.escape, part)
        patterns.append(re.compile("(?:".join(["^", *steps]) + ")?" * len(steps)))
    return tuple(patterns)


@lru_cache(4096)
def _outline(text: str) -> str:
    """Returns the text with digits and letters replaced, to compare beginnings of lines."""
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "0", text))


def _implausibility(record: str) -> float:
    """Returns how much a record's numbers differ from runtime output; 0: nothing unusual."""
    matches = ((shape, re.fullmatch(shape.pattern, record)) for shape in MODERN)
    shape, match = next(((s, m) for s, m in matches if m), (None, None))
    if shape is None or match is None:
        return 0.0
    score = 10.0 * sum(
        not _is_printable(f, match[f.name]) for f in shape.fields if match[f.name]
    )
    score += int(match["heap_start_mib"]) > int(match["heap_end_mib"]) + 1
    score += int(match["heap_live_mib"]) > int(match["heap_end_mib"]) + 1
    for phase in ("stw_sweep_term", "stw_mark_term"):
        # The CPU time of a pause is its length times the number of processors stopped.
        expected = numbers.real(match[f"{phase}_ms"], numbers.whole(match["procs"]) or 0)
        printed = numbers.real(match[f"{phase}_cpu_ms"])
        if expected is None or printed is None:
            score += 5
            continue
        score += min(abs(math.log((printed + 0.001) / (expected + 0.001))), 5)
    return score


def _cycle_num(record: str) -> int | None:
    match = re.match(r"gc #?(\d+)", record)
    return int(match[1]) if match else None


def _is_printable(part: Field, text: str) -> bool:
    """Returns whether the runtime prints such a number (fmtNSAsMS in runtime/mgc.go)."""
    if part.name == "start_s":
        return bool(re.fullmatch(r"\d+\.\d{3}", text))
    if part.kind == "dec":
        return bool(re.fullmatch(r"[1-9]\d+|\d\.\d|0\.\d\d|0\.0\d\d|0", text))
    return text == "0" or not text.startswith("0")
