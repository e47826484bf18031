"""A program started with gctrace on: its streams, its signals, its end.

The program gets a process group of its own. So a signal reaches it once, whoever sent it: what
is sent to us is passed on, and what the terminal sends goes to the group in its foreground,
which is the program's if we were in the foreground ourselves. It reads from the terminal as if
it had been started without us, and can be stopped with Ctrl-Z and continued.
"""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Literal, NoReturn

from gctrace_analyzer.errors import ProgramError
from gctrace_analyzer.ingest.follow import GATHER_S
from gctrace_analyzer.ingest.gctrace.grammar import MODERN, any_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO

    Sink = Callable[[bytes], None]

PASSED_ON = (
    "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGTSTP",
)  # fmt: skip

TWICE_S = 0.05
"""The same signal twice within so long is one: some send it to a process and to its group."""

_PIECE_BYTES = 1 << 16
_MOST_PIECES = 256
_LEFT_OPEN_S = 0.5
_RECORD = re.compile(f"^(?:{any_of(MODERN)})\r?\n".encode(), re.MULTILINE)
_HEAD = b"gc "


def with_gctrace(godebug: str) -> str:
    """GODEBUG with gctrace on; one that is on already stays as it is.

    >>> with_gctrace("madvdontneed=1"), with_gctrace("gctrace=2,x=1"), with_gctrace("")
    ('madvdontneed=1,gctrace=1', 'gctrace=2,x=1', 'gctrace=1')
    >>> with_gctrace("gctrace=0")  # the last one counts
    'gctrace=0,gctrace=1'
    """
    had = ""
    for setting in godebug.split(","):
        name, _, value = setting.partition("=")
        if name.strip() == "gctrace":
            had = value.strip()
    if had.isdigit() and int(had) > 0:
        return godebug
    return ",".join([*([godebug] if godebug else []), "gctrace=1"])


class Passing:
    """Passes on what the program writes to standard error, but for records of gctrace."""

    def __init__(self, sink: Sink, *, records: bool) -> None:
        self._sink, self._records = sink, records
        self._carry = b""

    def __call__(self, data: bytes) -> None:
        """Takes the next bytes."""
        if self._records:
            self._sink(data)
            return
        data = self._carry + data
        end = data.rfind(b"\n") + 1
        lines, self._carry = data[:end], data[end:]
        lines = _RECORD.sub(b"", lines)
        if not self._carry.startswith(_HEAD[: len(self._carry)]):
            # No record begins so: a prompt need not wait for its line end.
            lines, self._carry = lines + self._carry, b""
        if lines:
            self._sink(lines)

    def end(self) -> None:
        """What is left of a line that never ended."""
        if self._carry:
            self._sink(self._carry)


class Child:
    """A program that runs; to be read from like a file, which gives its standard error.

    Raises:
        ProgramError: it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        errors: Passing,
        log: IO[bytes] | None,
        output: Sink | None,
    ) -> None:
        # Where a line stands can be looked up in what is kept.
        self.name = command[0] if log is None else str(log.name)
        self._errors, self._log = errors, log
        try:
            self._process = subprocess.Popen(
                command,
                env=dict(env),
                stdout=None if output is None else subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                process_group=0,
            )
        except OSError as err:
            _cannot_start(command[0], err)
        self.pid = self._process.pid
        self.code: int | None = None
        self._ended_at = float("inf")
        self._last: dict[int, float] = {}
        self._pieces: queue.Queue[bytes] = queue.Queue(_MOST_PIECES)
        self._terminal = _Terminal()
        self._terminal.give(self.pid)
        self._threads = [Thread(target=self._pump, daemon=True)]
        if output is not None:
            self._threads.append(Thread(target=self._pass, args=(output,), daemon=True))
        for thread in self._threads:
            thread.start()

    def read(self, size: int) -> bytes:
        """What it has written to standard error, once it has; `b""` at the end."""
        found: list[bytes] = []
        got, until = 0, float("inf")
        while got < size:
            wait = min(max(until - time.monotonic(), 0), GATHER_S)
            try:
                data = self._pieces.get(timeout=wait or None, block=bool(wait))
            except queue.Empty:
                if found or time.monotonic() > self._ended_at + _LEFT_OPEN_S:
                    break
                continue
            if not data:
                # For the next call, which is to find nothing but the end.
                self._pieces.put(data)
                break
            found.append(data)
            got += len(data)
            until = min(until, time.monotonic() + GATHER_S)
        return b"".join(found)

    def signal(self, number: int) -> None:
        """Passes a signal on to all of the program's group, once."""
        now = time.monotonic()
        if now - self._last.get(number, -TWICE_S) >= TWICE_S and self.code is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)
        self._last[number] = now

    def poll(self) -> Literal["running", "stopped", "ended"]:
        """How it is: `stopped` if that was at the terminal, which then waits for us to stop."""
        if self.code is not None:
            return "ended"
        pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
        if not pid:
            # We may have been brought to the foreground.
            self._terminal.give(self.pid)
            return "running"
        if os.WIFSTOPPED(status):
            early = os.WSTOPSIG(status) in (signal.SIGTTIN, signal.SIGTTOU)
            return "running" if early or not self._terminal.given else "stopped"
        self.code = self._process.returncode = os.waitstatus_to_exitcode(status)
        self._ended_at = time.monotonic()
        self._terminal.take()
        return "ended"

    def suspend(self) -> None:
        """Stops ourselves, as Ctrl-Z stops a program without us; both go on when continued."""
        self._terminal.take()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._terminal.give(self.pid)
        self.signal(signal.SIGCONT)

    def join(self) -> None:
        """Waits for what it still has to say; those it leaves behind may hold its streams."""
        for thread in self._threads:
            thread.join(_LEFT_OPEN_S)
        self._errors.end()

    def _pump(self) -> None:
        assert self._process.stderr is not None
        fd = self._process.stderr.fileno()
        while data := os.read(fd, _PIECE_BYTES):
            if self._log is not None:
                self._keep(data)
            self._errors(data)
            self._pieces.put(data)
        self._pieces.put(b"")

    def _keep(self, data: bytes) -> None:
        assert self._log is not None
        try:
            self._log.write(data)
            self._log.flush()
        except OSError as err:
            # The program must not suffer for a full disk; it is said once.
            print(f"gctrace-analyze: --log: {err.strerror or err}", file=sys.stderr)
            self._log = None

    def _pass(self, output: Sink) -> None:
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        while data := os.read(fd, _PIECE_BYTES):
            output(data)


class _Terminal:
    """Whose turn it is to read from the terminal, if standard input is one and ours."""

    def __init__(self) -> None:
        self.given = False

    def give(self, group: int) -> None:
        """To the program's group."""
        with suppress(OSError):
            if not self.given and os.tcgetpgrp(0) == os.getpgrp():
                # We write to the terminal from the background now, and take it back.
                signal.signal(signal.SIGTTOU, signal.SIG_IGN)
                os.tcsetpgrp(0, group)
                self.given = True
                # It may have asked for input before it had the right to.
                os.killpg(group, signal.SIGCONT)

    def take(self) -> None:
        """Back to us."""
        if self.given:
            with suppress(OSError):
                os.tcsetpgrp(0, os.getpgrp())
            self.given = False


def _cannot_start(name: str, err: OSError) -> NoReturn:
    missing = isinstance(err, FileNotFoundError)
    if missing:
        problem = "no such program"
        hint = "Is it built, and in PATH? A program in this folder is ./NAME."
    else:
        problem = (err.strerror or str(err)).lower()
        hint = "May this user run it, and is it a program?"
    raise ProgramError(name, problem, hint, 127 if missing else 126) from err
