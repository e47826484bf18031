"""Views for watching a program or log: a dashboard, text lines or JSON lines."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Protocol

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.follow import GATHER_S
from gctrace_analyzer.live import Intervals
from gctrace_analyzer.present import dashboard, json
from gctrace_analyzer.present.format import duration

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, TextIO

    import polars as pl

    from gctrace_analyzer.cli.screen import Colors
    from gctrace_analyzer.cli.watch.terminal import BottomLines
    from gctrace_analyzer.live import LatestWindow, Live
    from gctrace_analyzer.present.report import Report
    from gctrace_analyzer.schema import Row

PAUSE_FACTOR = 14
"""After each calculation of the figures, the view waits for this many times the CPU time that it
took, so that it does not take the CPU from the program."""

MOST_PAUSE_S, FIRST_PAUSE_S = 5.0, 0.5
"""The longest wait, and the wait after the first calculation, which is slow because libraries are
loaded."""

REDRAW_FACTOR, MOST_REDRAW_S = 10, 0.2
"""The same for drawing the newest cycle, and the longest time until it appears."""

MOST_GATHER_S = 0.5
"""How long lines are collected if only intervals are printed."""

AGE_REDRAW_S = 0.5
"""How often the age of the newest cycle is redrawn."""


@frozen
class ViewOptions:
    """What to show, and where.

    Attributes:
        kind: dashboard, lines or jsonl.
        out: where it is printed.
        colors: whether to use colours, and for which background.
        title: the program or log that is watched.
        every_s: the length of an interval.
        window_s: how far back the dashboard looks.
        advise: whether to show the recommended settings.
        intervals: a file for the intervals as JSON lines.
    """

    kind: str
    out: TextIO
    colors: Colors
    title: str
    every_s: float
    window_s: float
    advise: bool
    intervals: IO[bytes] | None


class View(Protocol):
    """Shows a program or log while it is watched.

    `owns_standard_output` is True if the program's standard output has to go through `write`,
    like its standard error. `gather_s` is how long lines of the program may be collected before
    they are parsed.
    """

    owns_standard_output: bool
    gather_s: float

    def added(self) -> None:
        """Handles new lines; called by the thread that reads them."""

    def tick(self) -> None:
        """Updates what is shown, after new lines or after some time."""

    def notice(self, text: str) -> None:
        """Shows a remark, or removes it if `text` is empty."""

    def write(self, data: bytes) -> None:
        """Prints what the program has written."""

    def pause(self) -> None:
        """Leaves the terminal to other programs."""

    def resume(self) -> None:
        """Uses the terminal again."""

    def end(self) -> None:
        """Writes the last intervals, and removes a dashboard from the screen."""


def create_view(options: ViewOptions, live: Live) -> View:
    """Returns the view that the options ask for."""
    log = _IntervalLog(live, options.every_s, options.intervals)
    if options.kind == "dashboard":
        return _DashboardView(options, live, log)
    return _LinesView(options, live, log)


class _IntervalLog:
    """Writes intervals to a file as JSON lines, if there is one."""

    def __init__(self, live: Live, every_s: float, file: IO[bytes] | None) -> None:
        self._intervals, self._file = Intervals(live, every_s), file

    def write(self, *, ended: bool = False) -> None:
        if (file := self._file) is None:
            return
        for row in self._intervals.new(ended=ended):
            with suppress(OSError):
                file.write(json.line("interval", row).encode())


class _NewEpisodes:
    """Finds the episodes that have begun since the last call, including those that are over."""

    def __init__(self) -> None:
        self._last_gc = 0
        self._printed: dict[tuple[str, str], int] = {}

    def of(self, view: LatestWindow) -> Iterator[Row]:
        """Yields the new episodes of a window, in order."""
        if view.gc_num < self._last_gc:
            # Another process
            self._printed = {}
        self._last_gc = view.gc_num
        for episode in (
            view.run.report().analysis.episodes.sort("start_s").iter_rows(named=True)
        ):
            # The first word distinguishes the two kinds of pauses.
            key = (episode["kind"], episode["reason"].partition(" ")[0])
            if episode["first_gc"] > self._printed.get(key, -1):
                yield episode
            self._printed[key] = max(episode["last_gc"], self._printed.get(key, -1))


class _LinesView:
    """Prints a line per interval, and one when an episode begins."""

    def __init__(self, options: ViewOptions, live: Live, log: _IntervalLog) -> None:
        self._options, self._live, self._log = options, live, log
        self._intervals = Intervals(live, options.every_s)
        self._lock = RLock()
        self._midline = self._ended = False
        self._episodes = _NewEpisodes()
        self._printed_at = self._reported_at = time.monotonic()
        self._cycles = 0
        self.owns_standard_output = False
        # A line per interval need not be as fast as a dashboard.
        self.gather_s = max(GATHER_S, min(options.every_s / 20, MOST_GATHER_S))

    def added(self) -> None:
        self._log.write()
        self._report(self._intervals.new())

    def tick(self) -> None:
        now = time.monotonic()
        if now - self._printed_at < self._options.every_s:
            return
        if self._options.kind == "lines" and self._cycles == self._live.cycles:
            newest = self._live.newest
            last = f"; the last was gc {newest['gc_num']:,}" if newest else ""
            self._print(f"no GC cycle for {duration(now - self._reported_at)}{last}")
            self._printed_at = now

    def notice(self, text: str) -> None:
        if text:
            self._print(text) if self._options.kind == "lines" else None

    def write(self, data: bytes) -> None:
        with self._lock, suppress(OSError):
            _write(sys.stderr.fileno(), data)
            self._midline = not data.endswith(b"\n")

    def pause(self) -> None:
        """Does nothing, because printed lines do not occupy the terminal."""

    def resume(self) -> None:
        """Does nothing, because printed lines do not occupy the terminal."""

    def end(self) -> None:
        if not self._ended:
            self._ended = True
            self._log.write(ended=True)
            rows = self._intervals.new(ended=True)
            self._report(rows if self._options.kind == "jsonl" else self._ending(rows))

    def _ending(self, rows: list[Row]) -> list[Row]:
        """Returns the last intervals, the last one ending with the program."""
        view = self._live.latest(self._options.window_s) if rows else None
        if view is None or view.end_s is None or any(row["process"] for row in rows):
            return rows
        return [{**row, "end_s": min(row["end_s"], view.end_s)} for row in rows]

    def _report(self, rows: list[Row]) -> None:
        if not rows:
            return
        for row in rows:
            self._print(
                json.line("interval", row)[:-1]
                if self._options.kind == "jsonl"
                else dashboard.interval_line(row, self._intervals.last_live_mib(row))
            )
        self._printed_at = self._reported_at = time.monotonic()
        self._cycles = self._live.cycles
        view = self._live.latest(self._options.window_s)
        begin_s = min(row["start_s"] for row in rows)
        for episode in [] if view is None else self._episodes.of(view):
            if self._options.kind == "jsonl":
                self._print(json.line("episode", episode)[:-1])
            elif episode["end_s"] >= begin_s or not dashboard.needs_no_action(episode):
                # What had no consequence is no news later.
                self._print(dashboard.episode_line(episode))

    def _print(self, text: str) -> None:
        with self._lock:
            # If the program has written only part of a line, a new line is begun.
            begin = "\n" if self._midline and self._options.out is sys.stderr else ""
            self._midline = False
            try:
                self._options.out.write(f"{begin}{text}\n")
                self._options.out.flush()
            except OSError:
                # A closed standard error must not end the program.
                if self._options.out is sys.stdout:
                    raise


class _DashboardView:
    """Draws a dashboard; what the program writes goes above it."""

    def __init__(self, options: ViewOptions, live: Live, log: _IntervalLog) -> None:
        from gctrace_analyzer.cli.watch.terminal import BottomLines

        self._options, self._live, self._log = options, live, log
        self._notice = ""
        self._newest: tuple[int, int] | None = None
        self._arrived_at = self._next_at = self._drawn_at = self._redraw_at = 0.0
        self._figures: tuple[LatestWindow, Report, pl.DataFrame] | None = None
        self._is_stale, self._is_drawn = True, False
        self._screen: BottomLines = BottomLines(options.out, options.colors)
        self.gather_s = GATHER_S
        # If both are on the same terminal, the program's output would mix with the dashboard.
        self.owns_standard_output = options.out is sys.stderr and sys.stdout.isatty()

    def added(self) -> None:
        self._log.write()

    def tick(self) -> None:
        self._screen.flush()
        now = time.monotonic()
        newest = self._live.newest
        key = (self._live.cycles, newest["gc_num"]) if newest else None
        if key != self._newest:
            self._newest, self._arrived_at, self._is_stale = key, now, True
            self._is_drawn = False
        is_due = self._is_stale and now >= self._next_at
        is_old = now >= self._drawn_at + AGE_REDRAW_S
        if now < self._redraw_at or (self._is_drawn and not is_old and not is_due):
            return
        # The newest cycle is drawn at once; calculating the figures takes a moment.
        self._draw()
        self._is_drawn, self._drawn_at = True, time.monotonic()
        took_s = self._drawn_at - now
        self._redraw_at = self._drawn_at + min(REDRAW_FACTOR * took_s, MOST_REDRAW_S)
        if is_due:
            self._calculate()
            self._draw()

    def notice(self, text: str) -> None:
        self._notice = text

    def write(self, data: bytes) -> None:
        with suppress(OSError):
            self._screen.write(data)

    def pause(self) -> None:
        self._screen.stop()

    def resume(self) -> None:
        self._screen.start()

    def end(self) -> None:
        self._log.write(ended=True)
        with suppress(OSError):
            self._screen.end()

    def _calculate(self) -> None:
        """Calculates the figures again, which is the expensive part."""
        begin_s = time.process_time()
        view = self._live.latest(self._options.window_s)
        if view is not None:
            span_s = view.run.summary().span_s or 1.0
            bar_s = dashboard.bar_s(
                min(span_s, self._options.window_s), dashboard.bars(self._screen.width)
            )
            self._figures = view, view.run.report(), view.run.windows(bar_s)
        self._is_stale = False
        pause_s = PAUSE_FACTOR * (time.process_time() - begin_s)
        most_s = MOST_PAUSE_S if self._next_at else FIRST_PAUSE_S
        self._next_at = time.monotonic() + min(pause_s, most_s)

    def _draw(self) -> None:
        seen = dashboard.WatchProgress(
            title=self._options.title,
            cycles=self._live.cycles,
            lines=self._live.lines,
            newest=self._live.newest,
            age_s=time.monotonic() - self._arrived_at,
            window_s=self._options.window_s,
            notice=self._notice,
        )
        if self._figures is None:
            self._screen.update(dashboard.waiting(seen))
            return
        view, report, trend = self._figures
        now_s = None if view.end_s is None else view.end_s + seen.age_s
        self._screen.update(
            dashboard.dashboard(
                report,
                trend,
                seen,
                last_gc=view.gc_num,
                now_s=now_s,
                width=self._screen.width,
                advise=self._options.advise,
            )
        )


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
