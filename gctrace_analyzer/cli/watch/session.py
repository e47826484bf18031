"""Watches one thing from its beginning to its end: threads, signals, what is shown."""

from __future__ import annotations

import signal
import sys
import traceback
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING

from gctrace_analyzer.cli.screen import say
from gctrace_analyzer.cli.watch.child import PASSED_ON, Child, Passing
from gctrace_analyzer.cli.watch.views import shown
from gctrace_analyzer.ingest.follow import Followed, Stop, standard_input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import IO

    from gctrace_analyzer.cli.watch.views import Plan, Shown
    from gctrace_analyzer.ingest.follow import Pipe, Segment
    from gctrace_analyzer.live import Live

TICK_S = 0.05
"""How often we look whether the program has ended, and the clock at the age of the cycle."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program to start; `records`: its lines of gctrace are shown, too."""

    command: Sequence[str]
    environment: Mapping[str, str]
    log: IO[bytes] | None
    records: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """A file to follow, or `-`."""

    name: str


@dataclass(frozen=True, slots=True)
class End:
    """What was seen; the program's exit code, or the signal that ended it or us."""

    live: Live
    code: int | None = None
    signal: int | None = None


def watch(live: Live, plan: Plan, what: Program | Reading) -> End:
    """Watches until the program or pipe ends, or somebody ends it.

    Raises:
        ProgramError: it cannot be started.
        UnreadableInputError: it cannot be read.
    """
    view = shown(plan, live)
    try:
        return _run(live, view, what) if isinstance(what, Program) else _read(live, view, what)
    finally:
        view.end()


class _Reader:
    """Takes an input in a thread of its own; `take` gets the reader, to say what is new."""

    def __init__(self, take: Callable[[_Reader], None]) -> None:
        self.news = Event()
        self.error: Exception | None = None
        self._take = take
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        """Whether the input has ended."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Until there is something new, or it is time to look at the clock."""
        self.news.wait(TICK_S)
        self.news.clear()

    def _run(self) -> None:
        try:
            self._take(self)
        except Exception as err:
            self.error = err
        self.news.set()


class _Asked:
    """Somebody asks us to end; a second time, at once."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self.signal: int | None = None

    def __call__(self, number: int, _: object) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number
        self._stop.ask()


def _read(live: Live, view: Shown, what: Reading) -> End:
    stop = Stop()
    asked = _Asked(stop)

    def take(reader: _Reader) -> None:
        def added() -> None:
            view.added()
            reader.news.set()

        for origin in _origins(what.name, stop, view):
            live.follow(origin, added)

    with _handled(asked, ("SIGINT", "SIGTERM", "SIGHUP")), _stopping(view):
        reader = _Reader(take)
        while not reader.is_done:
            reader.wait()
            view.tick()
    if reader.error is not None:
        raise reader.error
    # Ctrl-C is how watching a file ends; by any other signal we die, as it wants.
    return End(live, signal=None if asked.signal == signal.SIGINT else asked.signal)


def _origins(name: str, stop: Stop, view: Shown) -> Iterator[Pipe | Segment]:
    if name == "-":
        yield standard_input(stop)
        return
    followed = Followed(name, stop)
    if not followed.exists:
        view.notice(f"{name}: not there yet; waiting for it")
    for segment in followed.segments():
        view.notice("")
        yield segment


class _PassedOn:
    """Signals go to the program; those that come before it is there, as soon as it is."""

    def __init__(self) -> None:
        self._child: Child | None = None
        self._early: list[int] = []

    def __call__(self, number: int, _: object) -> None:
        if self._child is None:
            self._early.append(number)
        else:
            self._child.signal(number)

    def to(self, child: Child) -> None:
        """This is the program."""
        self._child = child
        for number in self._early:
            child.signal(number)


def _run(live: Live, view: Shown, what: Program) -> End:
    errors = Passing(view.pass_on, records=what.records)
    output = view.pass_on if view.owns_standard_output else None
    passed_on = _PassedOn()
    with _handled(passed_on, PASSED_ON):
        child = Child(
            what.command, what.environment, errors=errors, log=what.log, output=output
        )
        passed_on.to(child)
        try:
            _until_it_ends(live, view, child)
        except BaseException:
            # A bug of ours; nothing may be left running.
            child.signal(signal.SIGTERM)
            raise
    code = child.code or 0
    return End(live, code=max(code, 0), signal=-code if code < 0 else None)


def _until_it_ends(live: Live, view: Shown, child: Child) -> None:
    def take(reader: _Reader) -> None:
        def added() -> None:
            view.added()
            reader.news.set()

        try:
            live.follow(child, added)
        except Exception as err:
            reader.error = err
            # Whatever befalls us, the program can go on writing.
            while child.read(1 << 20):
                pass

    reader = _Reader(take)
    shows = True
    while child.poll() != "ended" or not reader.is_done:
        reader.wait()
        if child.poll() == "stopped":
            view.pause()
            child.suspend()
            view.resume()
        if shows:
            shows = _shows(view, reader)
    child.join()


def _shows(view: Shown, reader: _Reader) -> bool:
    """Shows what is new. If we cannot go on, that is said: the program need not end."""
    try:
        if reader.error is not None:
            raise reader.error
        view.tick()
    except Exception as err:
        with suppress(OSError):
            view.pause()
            say(f"{err}\n  Watching has stopped; the program goes on.")
            if "--debug" in sys.argv:
                traceback.print_exception(err)
        return False
    return True


@contextmanager
def _handled(handler: Callable[[int, object], None], names: Sequence[str]) -> Iterator[None]:
    """Signals of these names go to `handler`; but for those that are to be ignored (nohup)."""
    before = {}
    for name in names:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def _stopping(view: Shown) -> Iterator[None]:
    """Ctrl-Z takes the dashboard off the screen before we stop."""

    def stopped(number: int, _: object) -> None:
        view.pause()
        signal.raise_signal(signal.SIGSTOP)
        view.resume()

    with _handled(stopped, ("SIGTSTP",)):
        yield
