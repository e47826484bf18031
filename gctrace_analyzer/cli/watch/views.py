"""What is shown while something is watched: a dashboard, lines, JSON lines."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol

from gctrace_analyzer.live import Intervals
from gctrace_analyzer.present import dashboard, json

if TYPE_CHECKING:
    from typing import IO, TextIO

    import polars as pl

    from gctrace_analyzer.cli.watch.terminal import Dashboard
    from gctrace_analyzer.live import Live, View
    from gctrace_analyzer.present.report import Report

REST = 3
"""For each second that the figures take, so many without: a quarter of a processor at most."""

MOST_REST_S = 1.0
"""The very first figures take long, as libraries are loaded; the next need not wait for it."""

AGE_S = 0.5
"""How often the age of the newest cycle is drawn anew."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to show, and where."""

    kind: str
    out: TextIO
    color: str
    title: str
    every_s: float
    window_s: float
    advise: bool
    intervals: IO[bytes] | None


class Shown(Protocol):
    """Something that shows a program while it is watched."""

    owns_standard_output: bool

    def added(self) -> None:
        """There are new lines; called by the thread that reads them."""

    def tick(self) -> None:
        """It is time to look at the clock, or there is something new."""

    def notice(self, text: str) -> None:
        """Something to say beside the figures; empty: no more."""

    def pass_on(self, data: bytes) -> None:
        """What the program has written."""

    def pause(self) -> None:
        """Leaves the terminal to others."""

    def resume(self) -> None:
        """Takes it again."""

    def end(self) -> None:
        """Leaves nothing on the screen but what the program wrote."""


def shown(plan: Plan, live: Live) -> Shown:
    """What the plan wants."""
    logs = [_Log(live, plan.every_s, plan.intervals)] if plan.intervals else []
    if plan.kind == "dashboard":
        return _Board(plan, live, logs)
    return _Lines(plan, live, logs)


class _Log:
    """Intervals as JSON lines, into a file."""

    def __init__(self, live: Live, every_s: float, file: IO[bytes]) -> None:
        self._intervals, self._file = Intervals(live, every_s), file

    def write(self, *, ended: bool = False) -> None:
        for row in self._intervals.new(ended=ended):
            with suppress(OSError):
                self._file.write(json.line("interval", row).encode())


class _Lines:
    """A line per interval, and one when an episode begins."""

    def __init__(self, plan: Plan, live: Live, logs: list[_Log]) -> None:
        self._plan, self._live, self._logs = plan, live, logs
        self._intervals = Intervals(live, plan.every_s)
        self._lock = RLock()
        self._midline = self._ended = False
        self._kinds: set[str] = set()
        self._said_at = time.monotonic()
        self._cycles = 0
        self.owns_standard_output = False

    def added(self) -> None:
        for log in self._logs:
            log.write()
        self._tell(self._intervals.new())

    def tick(self) -> None:
        now = time.monotonic()
        if now - self._said_at < self._plan.every_s:
            return
        if self._plan.kind == "lines" and self._cycles == self._live.cycles:
            newest = self._live.newest
            last = f"; the last was gc {newest['gc_num']:,}" if newest else " yet"
            self._line(f"no GC cycle for {dashboard.elapsed(now - self._said_at)}{last}")
            self._said_at = now

    def notice(self, text: str) -> None:
        if text:
            self._line(text) if self._plan.kind == "lines" else None

    def pass_on(self, data: bytes) -> None:
        with self._lock, suppress(OSError):
            _write(sys.stderr.fileno(), data)
            self._midline = not data.endswith(b"\n")

    def pause(self) -> None:
        """Nothing is on the screen."""

    def resume(self) -> None:
        """Nothing was on the screen."""

    def end(self) -> None:
        if not self._ended:
            self._ended = True
            for log in self._logs:
                log.write(ended=True)
            self._tell(self._intervals.new(ended=True))

    def _tell(self, rows: list[dict[str, Any]]) -> None:
        if not rows:
            return
        for row in rows:
            self._line(
                json.line("interval", row)[:-1]
                if self._plan.kind == "jsonl"
                else dashboard.interval_line(row)
            )
        self._said_at, self._cycles = time.monotonic(), self._live.cycles
        view = self._live.latest(self._plan.window_s)
        present = (
            [] if view is None else dashboard.current_episodes(view.run.report(), view.gc_num)
        )
        for each in present:
            if each["kind"] not in self._kinds:
                self._line(
                    json.line("episode", each)[:-1]
                    if self._plan.kind == "jsonl"
                    else dashboard.episode_line(each)
                )
        self._kinds = {each["kind"] for each in present}

    def _line(self, text: str) -> None:
        with self._lock:
            # The program may not have ended its line.
            begin = "\n" if self._midline and self._plan.out is sys.stderr else ""
            self._midline = False
            try:
                self._plan.out.write(f"{begin}{text}\n")
                self._plan.out.flush()
            except OSError:
                # A program need not end because nobody reads what we say of it.
                if self._plan.out is sys.stdout:
                    raise


class _Board:
    """A dashboard; what the program writes goes above it."""

    def __init__(self, plan: Plan, live: Live, logs: list[_Log]) -> None:
        from gctrace_analyzer.cli.watch.terminal import Dashboard

        self._plan, self._live, self._logs = plan, live, logs
        self._notice = ""
        self._key: tuple[int, int] | None = None
        self._arrived = self._next = self._drawn = 0.0
        self._state: tuple[View, Report, pl.DataFrame] | None = None
        self._is_stale = True
        self._screen: Dashboard = Dashboard(plan.out, plan.color)
        # On the same terminal the program's output would run through the dashboard.
        self.owns_standard_output = plan.out is sys.stderr and sys.stdout.isatty()

    def added(self) -> None:
        for log in self._logs:
            log.write()

    def tick(self) -> None:
        now = time.monotonic()
        newest = self._live.newest
        key = (self._live.cycles, newest["gc_num"]) if newest else None
        if key != self._key:
            self._key, self._arrived, self._is_stale = key, now, True
        elif now < self._drawn + AGE_S and not (self._is_stale and now >= self._next):
            self._screen.flush()
            return
        # The newest cycle first, at once; its figures take a moment.
        self._draw(newest)
        if self._is_stale and now >= self._next:
            self._look()
            self._draw(newest)
        self._drawn = time.monotonic()

    def notice(self, text: str) -> None:
        self._notice = text

    def pass_on(self, data: bytes) -> None:
        with suppress(OSError):
            self._screen.write(data)

    def pause(self) -> None:
        self._screen.stop()

    def resume(self) -> None:
        self._screen.start()

    def end(self) -> None:
        for log in self._logs:
            log.write(ended=True)
        with suppress(OSError):
            self._screen.end()

    def _look(self) -> None:
        """The figures anew, which costs most of all."""
        begin = time.monotonic()
        view = self._live.latest(self._plan.window_s)
        if view is not None:
            span_s = view.run.summary().span_s or 1.0
            bar_s = dashboard.bar_s(
                min(span_s, self._plan.window_s), dashboard.bars(self._screen.width)
            )
            self._state = view, view.run.report(), view.run.windows(bar_s)
        self._is_stale = False
        done = time.monotonic()
        self._next = done + min(REST * (done - begin), MOST_REST_S)

    def _draw(self, newest: dict[str, Any] | None) -> None:
        seen = dashboard.Progress(
            title=self._plan.title,
            cycles=self._live.cycles,
            lines=self._live.lines,
            newest=newest,
            age_s=time.monotonic() - self._arrived,
            window_s=self._plan.window_s,
            notice=self._notice,
        )
        if self._state is None:
            self._screen.update(dashboard.waiting(seen))
            return
        view, report, trend = self._state
        now_s = None if view.end_s is None else view.end_s + seen.age_s
        self._screen.update(
            dashboard.dashboard(
                report,
                trend,
                seen,
                now_s=now_s,
                width=self._screen.width,
                advise=self._plan.advise,
            )
        )


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
