"""Reads the output of `go test -bench` between the lines of gctrace.

A benchmark prints its name, runs, and then prints its figures after the name
(testing/benchmark.go), so the cycles of the run come in between. With -v and -json, it first prints
its name on a separate line, and later the name again with the figures.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.ingest.evidence.message import Message, Row

WORD = b"Benchmark"
"""What a log with benchmarks contains."""

HINT = r"Benchmark(?:[^a-z]|$)|\d ns/op|(?:^|[ \t\"])pkg: "
"""Every relevant line contains a match of this."""

BARE = r"^(?:Benchmark|[ \t]*[0-9]+[ \t]|pkg: |=== |gc )"
"""Beginning of such a line without a log prefix."""

_NAME = re.compile(
    # The runtime writes a record in pieces, between which the name may come.
    r"(?:=== RUN +|gc #?\d[^B]{0,300})?(?P<name>Benchmark(?![a-z])\S{0,300})"
)
_FIGURES = re.compile(
    r"(?<!\d)(?P<iterations>\d{1,18})"
    r"(?P<figures>(?:[ \t]+\d[\d.]{0,30}(?:e[+-]?\d{1,3})? [^\s\d]\S{0,60}){1,12})\s{0,9}$"
)
_FIGURE = re.compile(r"(?<![\d.])(\d[\d.]{0,30}(?:e[+-]?\d{1,3})?) (\S{1,61})")
_PACKAGE = re.compile(r"pkg: (\S{1,300})\s*$")
_PROCS = re.compile(r"-\d{1,6}$")
_COLUMNS = {"ns/op": "ns_per_op", "B/op": "bytes_per_op", "allocs/op": "allocs_per_op"}
_CHARS = 2_000
"""Characters of a line that are searched."""


def read(messages: Sequence[Message]) -> list[Row]:
    """Returns one row per run of a benchmark that has ended."""
    rows: list[Row] = []
    package = begun = None
    first_line = last_line = 0
    for message in messages:
        text = message.text[:_CHARS]
        if line := _PACKAGE.match(text):
            package, begun, last_line = line[1], None, message.line_no
            continue
        name = _NAME.match(text)
        figures = _FIGURES.search(text, name.end() if name else 0)
        benchmark = name["name"] if name else begun
        if benchmark is None:
            continue
        if begun not in (benchmark, _PROCS.sub("", benchmark)):
            # A benchmark that takes as long as -benchtime has run once before its name.
            is_one = figures is not None and figures["iterations"] == "1"
            first_line = last_line + 1 if is_one else message.line_no
        if figures:
            rows.append(
                {
                    "benchmark": benchmark.removeprefix("Benchmark"),
                    "package": package,
                    "iterations": int(figures["iterations"]),
                    **_values(figures["figures"]),
                    "first_line": first_line,
                    "line_no": message.line_no,
                }
            )
            # With -count and -v, this line begins the next run of the same benchmark.
            first_line = last_line = message.line_no
        begun = benchmark
    return _named(rows)


def is_cut(messages: Sequence[Message]) -> bool:
    """Returns whether a message is part of a benchmark's line: only its result or its name."""
    return any(_CUT.search(message.text[:_CHARS]) for message in messages)


_CUT = re.compile(r"^#?Benchmark(?![a-z])\S{1,300}-\d{1,6}\s|\d ns/op\b")


def _values(text: str) -> Row:
    """Returns the figures per operation, without others such as MB/s."""
    figures = {unit: number for number, unit in _FIGURE.findall(text)}
    return {name: numbers.real(figures.get(unit)) for unit, name in _COLUMNS.items()}


def _named(rows: list[Row]) -> list[Row]:
    """Returns the rows with names that are the same on another machine.

    The suffix -8 is GOMAXPROCS if all names have it. With several packages, each name begins with
    its package.
    """
    procs = {_PROCS.search(row["benchmark"]) for row in rows}
    suffixes = {match[0] if match else "" for match in procs}
    suffix = suffixes.pop() if len(suffixes) == 1 else ""
    several = len({row["package"] for row in rows}) > 1
    for row in rows:
        name = row["benchmark"].removesuffix(suffix)
        row["benchmark"] = f"{row['package']}.{name}" if several and row["package"] else name
    return rows
