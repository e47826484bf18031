"""Reads logs that are still being written; a run can be made of them at any time.

The run has everything read so far, or only the newest cycles. Reading a log piece by piece
gives the same run as reading it at once. Memory is bounded: about 50 bytes per cycle, up to
`MOST_CYCLES` cycles; then the oldest are dropped, and the report says so.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Protocol, cast

import polars as pl

from gctrace_analyzer.analysis.settings.known import Settings
from gctrace_analyzer.errors import BadSettingError, NoDataError, UnreadableInputError
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.gctrace.columns import end_s
from gctrace_analyzer.ingest.input import Part, read_parts
from gctrace_analyzer.ingest.live_input import MOST_BYTES, RECENT_CYCLES, LiveInput
from gctrace_analyzer.ingest.read import ReadOptions, complete_part, joined_log, with_sizes
from gctrace_analyzer.ingest.sources import Source, SourceFacts
from gctrace_analyzer.ingest.wrappers import journal
from gctrace_analyzer.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from gctrace_analyzer.schema import Row


class Readable(Protocol):
    """An input whose `read` waits for data and returns `b""` at the end."""

    name: str

    def read(self, size: int, /) -> bytes:
        """Returns the next bytes, at most `size`."""


MOST_CYCLES = 500_000
"""Cycles that are kept: an hour of a program with 140 GC cycles per second. They take 25 MiB of
memory, and about 700 MiB while a report is made."""

_OF_BYTES = ("compression", "encoding", "bytes", "damage", "first")
"""Facts about an input that are known before its lines are read (`SourceFacts`)."""


@frozen
class LatestWindow:
    """The newest cycles of the process that wrote last.

    Attributes:
        run: the run of the cycles in the window.
        end_s: when the last cycle ended, in seconds since the start of that process.
        gc_num: the number of the last cycle.
    """

    run: Run
    end_s: float | None
    gc_num: int


class Live:
    """The logs of one service, as far as they have been read.

    One thread adds to it; any thread may read from it.
    """

    def __init__(
        self, *, how: ReadOptions | None = None, settings: Settings | None = None
    ) -> None:
        self._options = how or ReadOptions()
        self._settings = settings or Settings()
        self._inputs: list[LiveInput] = []

    @property
    def cycles(self) -> int:
        """The number of cycles read so far."""
        return sum(input_.cycles for input_ in self._inputs)

    @property
    def lines(self) -> int:
        """The number of lines read so far."""
        return sum(input_.lines for input_ in self._inputs)

    def begin(self, facts: SourceFacts) -> None:
        """Starts another input; everything added from now on belongs to it."""
        self._inputs.append(LiveInput(facts))

    def add(self, data: bytes) -> None:
        """Adds complete, clean lines, any number at a time (see `Source.chunks`)."""
        self._inputs[-1].add(data)
        kept = sum(input_.cycles - input_.dropped_cycles for input_ in self._inputs)
        for input_ in self._inputs:
            if kept > MOST_CYCLES:
                kept -= input_.discard(kept - MOST_CYCLES)

    def follow(self, origin: Readable, added: Callable[[], None]) -> None:
        """Adds an input until its end; calls `added` after each piece.

        Raises:
            UnreadableInputError: it cannot be read line by line.
        """
        source = Source(cast("IO[bytes]", origin))
        has_begun = False
        try:
            for data in source.chunks():
                if not has_begun:
                    _refuse_journal_export(source.facts.name, data)
                    self.begin(source.facts)
                    has_begun = True
                self.add(data)
                added()
        except NoDataError:
            return

    def run(self) -> Run:
        """Returns everything read so far, as `read` would."""
        parts, notes = [], []
        for input_ in self._inputs:
            with Source(input_.text()) as source:
                (part,) = read_parts(
                    source, kind="log", columns=None, whole_bytes=None, progress=None
                )
            # Without the notes on the kept lines.
            given = {name: getattr(input_.facts, name) for name in _OF_BYTES}
            part.facts = replace(part.facts, **given)
            part.beginning = input_.beginning.decode(errors="replace")
            notes += complete_part(part, self._options.clock)
            notes += with_sizes(part)
            parts.append(part)
        if dropped := sum(input_.dropped_cycles for input_ in self._inputs):
            notes.append(
                f"The oldest {dropped:,} cycles are not in these figures: watch keeps the last "
                f"{MOST_CYCLES:,}, or {MOST_BYTES >> 20} MiB of each input."
            )
        return Run(joined_log(parts, self._options, notes), self._settings)

    @property
    def newest(self) -> Row | None:
        """The newest cycle with its printed columns; None before the first."""
        return next(
            (newest for input_ in reversed(self._inputs) if (newest := input_.newest)), None
        )

    def recent(self) -> Run | None:
        """Returns a run of the newest cycles of all processes; None before the first cycle."""
        parts: list[Part] = []
        for input_ in reversed(self._inputs):
            parts.insert(0, input_.latest())
            parts[0].beginning = input_.beginning.decode(errors="replace")
            if sum(map(len, parts[0].cycles)) >= RECENT_CYCLES // 2:
                break
        for part in parts:
            complete_part(part, self._options.clock)
        if not any(part.facts.found.get("cycles") for part in parts):
            return None
        return Run(joined_log(parts, self._options, ()), self._settings)

    def latest(self, window_s: float) -> LatestWindow | None:
        """Returns the last `window_s` seconds of the process that wrote the newest cycle.

        Returns None before the first cycle.
        """
        recent = self.recent()
        if recent is None:
            return None
        last = recent.cycles.select(pl.all().last(), end_s=end_s().last()).row(0, named=True)
        run = recent.process(last["process"])
        if last["end_s"] is not None:
            run = run.between(max(last["end_s"] - window_s, 0.0))
        return LatestWindow(run, last["end_s"], last["gc_num"])


MOST_SILENT = 10_000
"""Intervals without a cycle before a later cycle is accepted at once. Unless GOGC is off, there is
a cycle at least every two minutes."""

MOST_AT_END = 100
"""Most intervals that the last cycle may span."""


class Intervals:
    """Reports the figures of each interval once, as soon as it is complete.

    An interval is complete when a cycle starts after it; before that, its cost is unknown.
    """

    def __init__(self, live: Live, every_s: float) -> None:
        self._live, self._every_s = live, every_s
        self._reported: dict[int, int] = {}
        self._lines: dict[tuple[str, int], int] = {}
        self._last: tuple[int, float | None] = (0, None)
        self._live_mib: dict[tuple[int, int], float] = {}

    def new(self, *, ended: bool = False) -> list[Row]:
        """Returns the intervals completed since the last call, as rows of `schema.WINDOWS`.

        With `ended`, incomplete intervals at the end are included.
        """
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
            # An interval has more cycles than `recent()` returns, so all of them are needed.
            recent = self._live.run()
            numbers, lines = self._numbers(recent.cycles)
        silent = {
            key: value for key, value in self._lines.items() if value not in numbers.values()
        }
        self._lines = silent | lines
        starts = self._newest_starts(recent.cycles)
        current = {process: self._index(at) for process, at in starts.items()}
        end_s = max(starts.values())
        if recent.cycles.select((pl.col("start_s") > end_s).any()).item():
            recent = recent.between(0.0, math.nextafter(end_s, math.inf))
        try:
            rows = recent.windows(self._every_s)
        except BadSettingError:
            # A duration is damaged, as the next cycle shows.
            return []
        at = (pl.col("start_s") / self._every_s).floor().cast(pl.Int64)
        sizes = recent.cycles.select("process", "heap_live_mib", at=at).drop_nulls()
        last_sizes = sizes.unique(("process", "at"), keep="last")
        self._live_mib = {
            (numbers[process], index): mib for process, mib, index in last_sizes.iter_rows()
        }
        intervals = []
        for row in rows.iter_rows(named=True):
            process, index = numbers[row["process"]], round(row["start_s"] / self._every_s)
            last = current[row["process"]] + (MOST_AT_END if ended else -1)
            if self._reported.get(process, -1) < index <= last:
                self._reported[process] = index
                intervals.append({**row, "process": process})
        return intervals

    def last_live_mib(self, row: Row) -> float | None:
        """Returns the live heap of the last cycle of an interval that `new` just returned."""
        return self._live_mib.get((row["process"], round(row["start_s"] / self._every_s)))

    def _newest_starts(self, cycles: pl.DataFrame) -> dict[int, float]:
        """Returns the start of the newest cycle of each process.

        A start far after all others may be damaged, so it counts only when another cycle follows.
        """
        starts = cycles.drop_nulls("start_s").group_by("process").agg(pl.col("start_s").tail(2))
        newest_starts = {}
        for process, newest in starts.iter_rows():
            before, last = newest[0], newest[-1]
            is_near = self._index(last) - self._index(before) <= MOST_SILENT
            newest_starts[process] = last if is_near else before
        return newest_starts

    def _index(self, seconds: float) -> int:
        """Returns the number of the interval that contains a time."""
        return math.floor(seconds / self._every_s)

    def _is_due(self, newest: tuple[int, float | None]) -> bool:
        (num, start_s), (last_num, last_s) = newest, self._last
        if start_s is None:
            return False
        if num < last_num or last_s is None:
            return True
        return self._index(start_s) != self._index(last_s)

    def _covers(self, cycles: pl.DataFrame, numbers: dict[int, int]) -> bool:
        """Returns whether the cycles of each process reach back far enough.

        They must reach back to the interval reported last, or to the start of the process.
        """
        if len(cycles) >= self._live.cycles:
            return True
        first = cycles.group_by("process", maintain_order=True).first()
        return all(
            (
                start_s is not None
                and (self._index(start_s) <= self._reported.get(numbers[process], -1))
            )
            or (gc_num <= 1 and numbers[process] not in self._reported)
            for process, gc_num, start_s in first.select(
                "process", "gc_num", "start_s"
            ).iter_rows()
        )

    def _numbers(
        self, cycles: pl.DataFrame
    ) -> tuple[dict[int, int], dict[tuple[str, int], int]]:
        """Maps the process numbers of these cycles to numbers that stay the same between calls.

        The second map has these numbers by input and line of each process's newest cycle, from
        which the next call recognises the process.
        """
        at = pl.struct(pl.col("source").cast(pl.String), "line_no")
        known = cycles.select("process", at=at).group_by("process", maintain_order=True).all()
        numbers_, lines = {}, {}
        following = max(self._lines.values(), default=-1) + 1
        for process, places in known.iter_rows():
            keys = [(place["source"], place["line_no"]) for place in (places[-1], *places)]
            number = next((self._lines[key] for key in keys if key in self._lines), following)
            following = max(following, number + 1)
            numbers_[process] = number
            lines[keys[0]] = number
        return numbers_, lines


def _refuse_journal_export(name: str, data: bytes) -> None:
    if journal.EXPORT_FIRST.search(data[:4096]):
        raise UnreadableInputError(
            name,
            "the export format of journalctl cannot be read line by line",
            "Use the JSON format: journalctl -f -o json | gctrace-analyze watch -",
        )
