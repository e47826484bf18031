"""A second reader of gctrace, as simple as possible, that the real one is compared with.

One regular expression per shape of a line, applied to one line after the other; nothing is
repaired, nothing is dated, and log prefixes are whatever precedes a record.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_N = r"\d+(?:\.\d+)?"
_OBJECTS = r"\d+ -> \d+ \(\d+-\d+\) objects"
_TAIL = r"\d+\(\d+\) handoff, \d+\(\d+\) steal, \d+/\d+/\d+ yields"

SHAPES = {
    "gc10": rf"gc(?P<n>\d+)\(\d+\): \d+\+\d+\+\d+ ms (?P<h0>\d+) -> (?P<h1>\d+) MB {_OBJECTS} \d+ handoff",
    "gc11": rf"gc(?P<n>\d+)\(\d+\): \d+\+\d+\+\d+ ms, (?P<h0>\d+) -> (?P<h1>\d+) MB {_OBJECTS}, {_TAIL}",
    "gc12x": r"gc(?P<n>\d+)\(\d+\): \d+\+\d+\+\d+ ms, (?P<h0>\d+) -> (?P<h1>\d+) MB, \d+ \(\d+-\d+\) objects, "
    rf"\d+/\d+/\d+ sweeps, {_TAIL}",
    "gc13": r"gc(?P<n>\d+)\(\d+\): \d+\+\d+\+\d+\+\d+ us, (?P<h0>\d+) -> (?P<h1>\d+) MB, \d+ \(\d+-\d+\) objects, "
    rf"(?:\d+ goroutines, )?\d+/\d+/\d+ sweeps, {_TAIL}",
    "gc15": rf"gc #?(?P<n>\d+) @(?P<at>{_N})s (?P<pct>-?\d+)%: (?P<wall>{_N}(?:\+{_N}){{4}}) ms clock, "
    rf"{_N}\+{_N}\+{_N}\+{_N}/{_N}/{_N}\+{_N} ms cpu, (?P<h0>\d+)->(?P<h1>\d+)->(?P<h2>\d+) MB, "
    r"(?P<goal>\d+) MB goal, (?P<p>0*[1-9]\d*) P",
    "gc16": rf"gc #?(?P<n>\d+) @(?P<at>{_N})s (?P<pct>-?\d+)%(?: \(checking for goroutine leaks\))?: "
    rf"(?P<wall>{_N}\+{_N}\+{_N}) ms clock, {_N}\+{_N}/{_N}/{_N}\+{_N} ms cpu, "
    r"(?P<h0>\d+)->(?P<h1>\d+)->(?P<h2>\d+) MB, (?P<goal>\d+) MB goal, "
    r"(?:\d+ MB stacks, \d+ MB globals, )?(?P<p>0*[1-9]\d*) P",
}  # fmt: skip
"""The shapes of a cycle's line, from the `println` calls of each version of the runtime."""

_PATTERNS = {name: re.compile(shape, re.ASCII) for name, shape in SHAPES.items()}
_NUMBER = re.compile(_N, re.ASCII)
_ESCAPED = {
    "\\u003e": ">", "\\u003c": "<", "&gt;": ">",
    "\u2192": "->", "\u2013>": "->", "\u2014>": "->",
}  # fmt: skip


_TAG = re.compile(r"</?[a-z][a-z0-9]*(?: +[a-z-]+=(?:\"[^\"<>]*\"|'[^'<>]*'))* */?>")
"""A tag of HTML. A line with an opening one alone is torn."""

LARGEST = 1 << 31
"""Records with larger numbers are not compared; the real reader makes most of them null."""


class Cycle(NamedTuple):
    """What both readers must agree on."""

    line_no: int
    gc_num: int
    start_s: float | None
    heap_start_mib: int
    heap_end_mib: int
    heap_live_mib: int | None
    procs: int | None

    @property
    def is_comparable(self) -> bool:
        """Whether no value is null because it was impossible, and none is near the limit."""
        is_old = self.start_s is None and self.procs is None
        needed = (self.heap_start_mib, self.heap_end_mib)
        modern = () if is_old else (self.start_s, self.heap_live_mib, self.procs)
        return all(each is not None and each < LARGEST for each in (*needed, *modern))


def cycles(text: str) -> Iterator[tuple[Cycle, bool]]:
    """Yields the cycles of a log, each with whether a runtime can print all of its numbers."""
    for line_no, line in enumerate(text.split("\n"), start=1):
        line = _TAG.sub("", line)
        for escape, plain in _ESCAPED.items():
            line = line.replace(escape, plain)
        shapes = [name for name, pattern in _PATTERNS.items() if pattern.search(line)]
        for name in shapes:
            for found in _PATTERNS[name].finditer(line):
                given = found.groupdict()
                cycle = Cycle(
                    line_no,
                    int(given["n"][:20]),
                    float(given["at"]) if given.get("at") else None,
                    int(given["h0"][:20]),
                    int(given["h1"][:20]),
                    _live(name, given),
                    int(given["p"][:20]) if given.get("p") else None,
                )
                # A goal may be the largest number of 64 bits: then there is none.
                goal = given.get("goal") or ""
                without_goal = (
                    found[0].replace(f" {goal} MB goal", "") if len(goal) < 19 else found[0]
                )
                numbers = _NUMBER.findall(without_goal)
                # No program prints the lines of two Go versions.
                yield cycle, len(shapes) == 1 and all(map(_is_possible, numbers))


def _is_possible(number: str) -> bool:
    """Returns whether a runtime can print a number; 0 processors are excluded by the shapes."""
    return len(number) < 20 and float(number) < LARGEST


def _live(shape: str, given: dict[str, str | None]) -> int | None:
    """Returns the live heap; before Go 1.3, sweeping is over when the line is printed."""
    live = given["h1"] if shape in ("gc10", "gc11") else given.get("h2")
    return None if live is None else int(live[:20])
