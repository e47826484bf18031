"""Watches one program or log from beginning to end: threads, signals, and the view."""

from __future__ import annotations

import os
import signal
import traceback
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from gctrace_analyzer.cli.options import as_option
from gctrace_analyzer.cli.screen import say
from gctrace_analyzer.cli.watch.child import FORWARDED_SIGNALS, Child, StderrFilter
from gctrace_analyzer.cli.watch.signals import handling
from gctrace_analyzer.cli.watch.views import create_view
from gctrace_analyzer.errors import GctraceError
from gctrace_analyzer.files import near_name
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.follow import Followed, Stop, standard_input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import IO

    from gctrace_analyzer.cli.watch.profiles import HeapProfiles
    from gctrace_analyzer.cli.watch.views import View, ViewOptions
    from gctrace_analyzer.ingest.follow import Pipe, Segment
    from gctrace_analyzer.live import Live, Readable

_NICE = 5
"""Priority of this thread: on a full machine it gets a third of the CPU time of a program
thread."""

_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that end the program: before the first one is forwarded, a heap profile is fetched."""

TICK_S = 0.05
"""How often to check whether the program has ended, and to redraw the age of the newest cycle."""


@frozen
class Program:
    """A program to start.

    Attributes:
        command: the program and its arguments.
        environment: its environment.
        log: where to keep its standard error.
        records: whether to show its gctrace records too.
        debug: whether to show tracebacks.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    log: IO[bytes] | None
    records: bool
    debug: bool = False


@frozen
class LogInput:
    """A file to follow, or `-` for standard input."""

    name: str


@frozen
class Watched:
    """The data that was read, and how watching ended.

    Attributes:
        live: everything that was read.
        code: the program's exit code.
        signal: the signal that ended the program, or that asked this process to end.
    """

    live: Live
    code: int | None = None
    signal: int | None = None


def watch(
    live: Live,
    options: ViewOptions,
    source: Program | LogInput,
    profiles: HeapProfiles | None = None,
) -> Watched:
    """Watches until the program or input ends, or the user ends it.

    Raises:
        ProgramError: the program cannot be started.
        UnreadableInputError: the input cannot be read.
    """
    view = create_view(options, live)
    try:
        if isinstance(source, Program):
            return _watch_program(live, view, source, profiles)
        return _watch_log(live, view, source, profiles)
    finally:
        if profiles is not None:
            profiles.end()
        view.end()


def _start(profiles: HeapProfiles | None, view: View) -> None:
    if profiles is not None:
        profiles.start(lambda text: view.write(f"gctrace-analyze: {text}\n".encode()))


class _ReaderThread:
    """Reads an input in a thread of its own.

    Args:
        read: reads the input to its end, with the `follow` of the reader that it gets.
    """

    def __init__(self, read: Callable[[_ReaderThread], None]) -> None:
        self.news = Event()
        self.error: Exception | None = None
        self._read = read
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def follow(self, live: Live, origin: Readable, view: View) -> None:
        """Reads an input to its end, and announces each piece."""

        def added() -> None:
            view.added()
            self.news.set()

        live.follow(origin, added)

    @property
    def is_done(self) -> bool:
        """Whether the input has ended."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Waits for new data, or for one tick."""
        self.news.wait(TICK_S)
        self.news.clear()

    def _run(self) -> None:
        try:
            self._read(self)
        except Exception as err:
            self.error = err
        self.news.set()


class _StopOnSignal:
    """A signal handler: the first signal asks reading to end, the second interrupts it at once."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self.signal: int | None = None

    def __call__(self, number: int, _: object) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number
        self._stop.ask()


def _watch_log(
    live: Live, view: View, source: LogInput, profiles: HeapProfiles | None
) -> Watched:
    stop = Stop()
    on_signal = _StopOnSignal(stop)

    def read(reader: _ReaderThread) -> None:
        for origin in _origins(source.name, stop, view):
            reader.follow(live, origin, view)

    with handling(on_signal, ("SIGINT", "SIGTERM", "SIGHUP")), _suspending(view):
        reader = _ReaderThread(read)
        _start(profiles, view)
        while not reader.is_done:
            reader.wait()
            view.tick()
        if profiles is not None and on_signal.signal:
            profiles.fetch(_occasion(on_signal.signal))
    if reader.error is not None:
        raise reader.error
    # Ctrl-C is the normal way to stop watching a file; any other signal ends this process.
    return Watched(live, signal=None if on_signal.signal == signal.SIGINT else on_signal.signal)


def _origins(name: str, stop: Stop, view: View) -> Iterator[Pipe | Segment]:
    if name == "-":
        yield standard_input(stop)
        return
    followed = Followed(name, stop)
    if not followed.exists:
        view.notice(f"waiting for {name}, which does not exist yet.{near_name(Path(name))}")
    for segment in followed.segments():
        view.notice("")
        yield segment


def _occasion(number: int) -> str:
    return (
        "before Ctrl-C" if number == signal.SIGINT else f"before {signal.Signals(number).name}"
    )


class _SignalForwarder:
    """A signal handler that forwards signals to the program, as soon as it has started.

    The first signal that asks the program to end waits for a heap profile, if these are fetched;
    the second does not.
    """

    def __init__(self, profiles: HeapProfiles | None) -> None:
        self._child: Child | None = None
        self._early: list[int] = []
        self._profiles = profiles

    def __call__(self, number: int, _: object) -> None:
        if self._child is None:
            self._early.append(number)
        elif self._profiles is not None and number in _ENDING_SIGNALS:
            profiles, self._profiles = self._profiles, None
            last = Thread(target=self._end, args=(self._child, number, profiles), daemon=True)
            last.start()
        else:
            self._child.signal(number)

    @staticmethod
    def _end(child: Child, number: int, profiles: HeapProfiles) -> None:
        try:
            profiles.fetch(_occasion(number))
        finally:
            child.signal(number)

    def started(self, child: Child) -> None:
        """Forwards signals to this program from now on, including earlier ones."""
        self._child = child
        for number in self._early:
            child.signal(number)


def _watch_program(
    live: Live, view: View, program: Program, profiles: HeapProfiles | None
) -> Watched:
    errors = StderrFilter(view.write, records=program.records)
    output = view.write if view.owns_standard_output else None
    forwarder = _SignalForwarder(profiles)
    with handling(forwarder, FORWARDED_SIGNALS):
        child = Child(
            program.command,
            program.environment,
            errors=errors,
            log=program.log,
            output=output,
            gather_s=view.gather_s,
            # A signal from the terminal must wait for a heap profile.
            lends_terminal=profiles is None,
        )
        forwarder.started(child)
        try:
            _watch_child(live, view, child, profiles, debug=program.debug)
        except BaseException:
            # A bug in gctrace-analyze must not leave the watched program running.
            child.signal(signal.SIGTERM)
            raise
    code = child.code or 0
    return Watched(live, code=max(code, 0), signal=-code if code < 0 else None)


@cache
def _give_way() -> None:
    """Lowers the priority of this thread and of those that it starts: the program comes first.

    The threads that empty the program's pipes already run, and keep their priority. This happens
    once per process, because it cannot be undone.
    """
    with suppress(OSError):
        os.nice(_NICE)


def _watch_child(
    live: Live,
    view: View,
    child: Child,
    profiles: HeapProfiles | None = None,
    *,
    debug: bool,
) -> None:
    def read(reader: _ReaderThread) -> None:
        try:
            reader.follow(live, child, view)
        except Exception as err:
            reader.error = err
            # Reads and discards the rest: otherwise the program would block.
            while child.read(1 << 20):
                pass

    _give_way()
    reader = _ReaderThread(read)
    _start(profiles, view)
    is_showing = True
    # The system reports only once that a program was stopped, so only one place asks.
    while (state := child.poll()) != "ended" or not reader.is_done:
        if state == "stopped":
            view.pause()
            child.suspend()
            view.resume()
        reader.wait()
        if is_showing:
            is_showing = _show(view, reader, debug=debug)
    child.join()


def _show(view: View, reader: _ReaderThread, *, debug: bool) -> bool:
    """Updates the view and returns True; after an error, prints it and returns False."""
    try:
        if reader.error is not None:
            raise reader.error
        view.tick()
    except Exception as err:
        with suppress(OSError):
            view.pause()
            message = err.message(as_option) if isinstance(err, GctraceError) else str(err)
            say(
                f"gctrace-analyze: {message}\n"
                "  Watching has stopped; the program keeps running."
            )
            if debug:
                traceback.print_exception(err)
        return False
    return True


@contextmanager
def _suspending(view: View) -> Iterator[None]:
    """Takes the dashboard off the screen before Ctrl-Z stops this process."""

    def suspend(number: int, _: object) -> None:
        view.pause()
        signal.raise_signal(signal.SIGSTOP)
        view.resume()

    with handling(suspend, ("SIGTSTP",)):
        yield
