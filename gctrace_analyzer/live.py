"""A log while it is written: all of it as a run, or what its newest cycles say.

What was seen so far gives the same run as reading it at once. Memory is bounded: about 30 bytes
a cycle, up to `MOST_CYCLES` of them; the oldest are let go then, and the report says so.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

import polars as pl

from gctrace_analyzer.analysis.cycles import end_s
from gctrace_analyzer.analysis.settings import Settings
from gctrace_analyzer.errors import EmptyInputError, UnreadableInputError
from gctrace_analyzer.ingest.live_input import RECENT_CYCLES, LiveInput
from gctrace_analyzer.ingest.read import ReadOptions, complete_part, joined_log
from gctrace_analyzer.ingest.sources import Source
from gctrace_analyzer.ingest.wrappers import journal
from gctrace_analyzer.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from gctrace_analyzer.ingest.input import Part
    from gctrace_analyzer.ingest.sources import SourceFacts


class Readable(Protocol):
    """What can be read from: `read` waits for something, and gives `b""` at the end."""

    name: str

    def read(self, size: int, /) -> bytes:
        """The next bytes, no more than `size`."""


MOST_CYCLES = 500_000
"""An hour of a program that collects 140 times a second: 15 MiB while they are kept, and about
700 MiB when they are reported."""


@dataclass(frozen=True, slots=True)
class View:
    """The newest cycles of the program that spoke last.

    `run` holds those of the last `window_s`; `end_s` is when the last of them ended, since that
    program's start, and `gc_num` its number.
    """

    run: Run
    end_s: float | None
    gc_num: int


class Live:
    """What has been seen of one service so far.

    One thread adds to it; any may ask.
    """

    def __init__(
        self, *, how: ReadOptions | None = None, settings: Settings | None = None
    ) -> None:
        self._how = how or ReadOptions()
        self._settings = settings or Settings()
        self._inputs: list[LiveInput] = []

    @property
    def cycles(self) -> int:
        """Cycles seen."""
        return sum(each.cycles for each in self._inputs)

    @property
    def lines(self) -> int:
        """Lines seen."""
        return sum(each.lines for each in self._inputs)

    def begin(self, facts: SourceFacts) -> None:
        """From here on, what is added is of another input."""
        if self._inputs:
            self._inputs[-1].close()
        self._inputs.append(LiveInput(facts))

    def add(self, data: bytes) -> None:
        """Takes whole, clean lines in pieces of any size (`Source.chunks`)."""
        self._inputs[-1].add(data)
        kept = sum(each.cycles - each.discarded["cycles"] for each in self._inputs)
        for each in self._inputs:
            if kept > MOST_CYCLES:
                kept -= each.discard(kept - MOST_CYCLES)

    def follow(self, origin: Readable, added: Callable[[], None]) -> None:
        """Takes all of an input, until its end; `added` is called after each piece.

        Raises:
            UnreadableInputError: it cannot be read line by line.
        """
        source = Source(cast("IO[bytes]", origin))
        begun = False
        try:
            for data in source.chunks():
                if not begun:
                    _check(source.facts.name, data)
                    self.begin(source.facts)
                    begun = True
                self.add(data)
                added()
        except EmptyInputError:
            return

    def run(self) -> Run:
        """Everything seen, as `read` gives it."""
        parts = [each.whole() for each in self._inputs]
        notes = [note for part in parts for note in complete_part(part, self._how.clock)]
        gone = sum((each.discarded for each in self._inputs), Counter[str]())
        if cycles := gone.pop("cycles", 0):
            notes.append(
                f"{cycles:,} older cycles are not in these figures: watching keeps the last "
                f"{MOST_CYCLES:,}."
            )
        notes += [
            f"{rows:,} older rows of {table} were not kept." for table, rows in gone.items()
        ]
        return Run(joined_log(parts, self._how, notes), self._settings)

    @property
    def newest(self) -> dict[str, Any] | None:
        """The newest cycle, columns as printed; None before the first."""
        return next((found for each in reversed(self._inputs) if (found := each.newest)), None)

    def recent(self) -> Run | None:
        """The newest cycles, of all programs that wrote them; None before the first."""
        parts: list[Part] = []
        for each in reversed(self._inputs):
            parts.insert(0, each.latest())
            if sum(map(len, parts[0].cycles)) >= RECENT_CYCLES // 2:
                break
        for part in parts:
            complete_part(part, self._how.clock)
        if not any(part.facts.found.get("cycles") for part in parts):
            return None
        return Run(joined_log(parts, self._how, ()), self._settings)

    def latest(self, window_s: float) -> View | None:
        """What the last `window_s` say; None before the first cycle."""
        recent = self.recent()
        if recent is None:
            return None
        last = recent.cycles.select(pl.all().last(), end_s=end_s().last()).row(0, named=True)
        run = recent.process(last["process"])
        if last["end_s"] is not None:
            run = run.between(max(last["end_s"] - window_s, 0.0))
        return View(run, last["end_s"], last["gc_num"])


class Intervals:
    """The figures of one interval after the other, each once, as soon as it is over.

    An interval is over when a cycle begins after it: only then is it known what it cost.
    """

    def __init__(self, live: Live, every_s: float) -> None:
        self._live, self._every_s = live, every_s
        self._told: dict[int, int] = {}
        self._lines: dict[tuple[str, int], int] = {}
        self._last: tuple[int, float | None] = (0, None)

    def new(self, *, ended: bool = False) -> list[dict[str, Any]]:
        """Rows of `schema.WINDOWS`; with the last ones, that are not over, if it `ended`."""
        if not ended:
            row = self._live.newest
            newest = (row["gc_num"], row.get("start_s")) if row else None
            if newest is None or not self._is_due(newest):
                return []
            self._last = newest
        recent = self._live.recent()
        if recent is None or not recent.cycles["start_s"].count():
            return []
        numbers, lines = self._numbers(recent.cycles)
        if not self._covers(recent.cycles, numbers):
            # More cycles in an interval than are at hand.
            recent = self._live.run()
            numbers, lines = self._numbers(recent.cycles)
        quiet = {key: each for key, each in self._lines.items() if each not in numbers.values()}
        self._lines = quiet | lines
        begun = recent.cycles.group_by("process").agg(pl.col("start_s").max()).rows()
        over = {process: math.floor(start_s / self._every_s) for process, start_s in begun}
        found = []
        for row in recent.windows(self._every_s).iter_rows(named=True):
            process, index = numbers[row["process"]], round(row["start_s"] / self._every_s)
            is_over = ended or index < over[row["process"]]
            if is_over and index > self._told.get(process, -1):
                self._told[process] = index
                found.append({**row, "process": process})
        return found

    def _is_due(self, newest: tuple[int, float | None]) -> bool:
        (num, start_s), (last_num, last_s) = newest, self._last
        if start_s is None:
            return False
        if num < last_num or last_s is None:
            return True
        return math.floor(start_s / self._every_s) > math.floor(last_s / self._every_s)

    def _covers(self, cycles: pl.DataFrame, numbers: dict[int, int]) -> bool:
        """Whether these newest cycles reach back to what was told already, or to the begin."""
        if len(cycles) >= self._live.cycles:
            return True
        first = cycles.group_by("process", maintain_order=True).first()
        return all(
            (
                start_s is not None
                and (
                    math.floor(start_s / self._every_s) <= self._told.get(numbers[process], -1)
                )
            )
            or (gc_num <= 1 and numbers[process] not in self._told)
            for process, gc_num, start_s in first.select(
                "process", "gc_num", "start_s"
            ).iter_rows()
        )

    def _numbers(
        self, cycles: pl.DataFrame
    ) -> tuple[dict[int, int], dict[tuple[str, int], int]]:
        """The number of each program in all that was seen, by its number among these cycles.

        And its newest line, by which it is known the next time.
        """
        at = pl.struct(pl.col("source").cast(pl.String), "line_no")
        known = cycles.select("process", at=at).group_by("process", maintain_order=True).all()
        found, lines = {}, {}
        following = max(self._lines.values(), default=-1) + 1
        for process, places in known.iter_rows():
            keys = [(place["source"], place["line_no"]) for place in (places[-1], *places)]
            number = next((self._lines[key] for key in keys if key in self._lines), following)
            following = max(following, number + 1)
            found[process] = number
            lines[keys[0]] = number
        return found, lines


def _check(name: str, data: bytes) -> None:
    if journal.EXPORT_FIRST.search(data[:4096]):
        raise UnreadableInputError(
            name,
            "journalctl -o export, which is no lines",
            "Let it print lines: journalctl -f -o json | gctrace-analyze watch -",
        )
