"""A second reader of gctrace lines for the audit: one regular expression, nothing of the package."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

NUMBER = r"\d[\d,]*(?:\.\d+)?"
SIZE = rf"({NUMBER}) (MiB|GiB|KiB)"
TIME = r"(?:\d+h \d+m|\d+m \d+s|[\d.,]+ (?:ms|s|µs))"

_CYCLE = re.compile(
    r"^gc (?P<num>\d+) @(?P<at>[\d.]+)s (?P<pct>\d+)%: (?P<clock>[\d.]+\+[\d.]+\+[\d.]+) ms clock, "
    r"(?P<cpu>[\d.]+\+[\d.]+/[\d.]+/[\d.]+\+[\d.]+) ms cpu, (?P<heap>\d+->\d+->\d+) MB, "
    r"(?P<goal>\d+) MB goal, (?P<newer>\d+ MB stacks, \d+ MB globals, )?(?P<procs>\d+) P"
    r"(?P<forced> \(forced\))?(?: \(checking for goroutine leaks\))?\s*$"
)
_ANY_CYCLE = re.compile(r"\bgc ?#?\d+ ?@")
_MOST_MIB = 2**20
"""Sizes above this are of damaged lines, or a goal of GOGC=off."""


@dataclass(frozen=True)
class Cycle:
    """What one line says; sizes in MiB, durations in ms as printed, which is truncated."""

    num: int
    at_s: float
    pct: int
    clock: tuple[str, ...]
    cpu: tuple[str, ...]
    start: int
    end: int
    live: int
    goal: int
    procs: int
    roots: int
    forced: bool
    newer: bool

    @property
    def pauses(self) -> tuple[float, float]:
        return float(self.clock[0]), float(self.clock[2])

    @property
    def end_s(self) -> float:
        return self.at_s + self.active_s

    @property
    def active_s(self) -> float:
        return sum(map(float, self.clock)) / 1000

    @property
    def kept(self) -> int:
        """What surely was reachable: the live heap without what was allocated during marking."""
        return max(self.live - max(self.end - self.start, 0), 0)

    @property
    def assist_share(self) -> tuple[float, float]:
        """The least and the greatest share of assists in the GC CPU of this cycle."""
        before, assist, background, _, after = map(float, self.cpu)
        most = sum(float(text) + step(text) for text in (self.cpu[0], self.cpu[2], self.cpu[4]))
        # From Go 1.23 on, only a part of the pauses counts.
        least = background if self.newer else background + before + after
        high = assist + step(self.cpu[1])
        return assist / (assist + most), high / (high + least)


def step(text: str) -> float:
    """Returns by how much a duration may be greater than it was printed."""
    return 10.0 ** -len(text.partition(".")[2])


@dataclass(frozen=True)
class Trace:
    """The cycles of one process, in order, each on an ordinary line of Go 1.6 or later."""

    cycles: list[Cycle]

    @property
    def follow(self) -> list[tuple[Cycle, Cycle]]:
        """Each cycle whose next one has a line, with that."""
        return [(a, b) for a, b in pairwise(self.cycles) if b.num == a.num + 1]

    @property
    def apart_ms(self) -> list[float]:
        return [1000 * (b.at_s - a.at_s) for a, b in self.follow]

    @property
    def is_whole(self) -> bool:
        return self.cycles[0].num == 1

    @property
    def span_s(self) -> float:
        return self.cycles[-1].end_s - (0.0 if self.is_whole else self.cycles[0].at_s)

    @property
    def phases(self) -> dict[str, list[float]]:
        names = ("before marking", "after marking")
        return {
            name: sorted(c.pauses[at] for c in self.cycles) for at, name in enumerate(names)
        }

    @property
    def goals(self) -> list[int]:
        return [c.goal for c in self.cycles if c.goal < _MOST_MIB]


def trace_of(text: str) -> Trace | None:
    """Returns what a log of one process says; None of others, and of lines that are damaged."""
    cycles = []
    for line in text.splitlines():
        if (row := _CYCLE.match(line)) is None:
            if _ANY_CYCLE.search(line):
                return None
            continue
        clock, cpu = row["clock"].split("+"), re.split(r"[+/]", row["cpu"])
        start, end, live = map(int, row["heap"].split("->"))
        flags = bool(row["forced"]), bool(row["newer"])
        roots = sum(map(int, re.findall(r"\d+", row["newer"] or "")))
        numbers = start, end, live, int(row["goal"]), int(row["procs"]), roots
        begin = int(row["num"]), float(row["at"]), int(row["pct"])
        cycles.append(Cycle(*begin, tuple(clock), tuple(cpu), *numbers, *flags))
    in_order = all(a.num < b.num and a.at_s <= b.at_s for a, b in pairwise(cycles))
    if not cycles or not in_order or max(max(c.start, c.end) for c in cycles) > _MOST_MIB:
        return None
    return Trace(cycles)


def number(text: str) -> float:
    return float(text.replace(",", ""))


def half_digit(text: str) -> float:
    """Returns half of the last digit of a printed number."""
    return 0.5 * step(text.replace(",", ""))


def mib(value: str, unit: str) -> float:
    return number(value) * {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024}[unit]


def milliseconds(text: str) -> float:
    """Returns a duration as a report prints it, in ms."""
    units = {"h": 3.6e6, "m": 6e4, "s": 1e3, "ms": 1, "µs": 1e-3, "d": 8.64e7}
    found = re.findall(rf"({NUMBER}) ?(ms|µs|[dhms])", text)
    return sum(number(value) * units[unit] for value, unit in found)


def is_near(value: float, low: float, high: float, slack: float = 0.0) -> bool:
    return low - slack <= value <= high + slack


def is_about(value: float, other: float, least: float = 0.002) -> bool:
    """Returns whether one value is the other, truncated and rounded to two digits."""
    return abs(value - other) <= 0.1 * other + least
