"""Starts a program with gctrace on; handles its streams, its signals and its exit.

The program gets a process group of its own, so that every signal reaches it once: signals sent
to this process are forwarded, and signals from the terminal go to the foreground group. If
this process is in the foreground, it gives the foreground to the program's group. So the
program can read from the terminal as if it had been started directly, and can be stopped with
Ctrl-Z and continued.
"""

from __future__ import annotations

import ctypes
import os
import queue
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal

from gctrace_analyzer.errors import ProgramError
from gctrace_analyzer.ingest.follow import GATHER_S
from gctrace_analyzer.ingest.gctrace.grammar import MODERN, any_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO, TypeAlias

    Sink: TypeAlias = Callable[[bytes], None]

FORWARDED_SIGNALS = (
    "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGTSTP",
)  # fmt: skip

DUPLICATE_S = 0.05
"""If the same signal arrives again within this time, it is a duplicate: some senders signal a
process and then its group."""

_PIECE_BYTES = 1 << 16
_SMALL_BYTES, _REST_S = 1 << 12, 0.02
"""After a piece smaller than this, the next one may wait this long: a program that writes line by
line would otherwise wake this process each time. The pipe holds 64 kB meanwhile."""

_MOST_PIECES = 256
_DRAIN_S = 0.5
"""Seconds to wait for output after the program has exited: a process that it started may keep its
streams open."""

_RECORD = re.compile(f"^(?:{any_of(MODERN)})\r?\n".encode(), re.MULTILINE)
_RECORD_START = b"gc "
_TORN = re.compile(rb"^(gc [^\n]*)\n([^\n]*\n)", re.MULTILINE)
_PR_SET_PDEATHSIG = 1
"""From linux/prctl.h."""


class StderrFilter:
    """Forwards the program's standard error, by default without its gctrace records."""

    def __init__(self, sink: Sink, *, records: bool) -> None:
        self._sink, self._records = sink, records
        self._incomplete = b""

    def __call__(self, data: bytes) -> None:
        """Takes the next bytes and forwards them, by default without gctrace records."""
        if self._records:
            self._sink(data)
            return
        data = self._incomplete + data
        end = data.rfind(b"\n") + 1
        lines, rest = _TORN.sub(_other_text, _RECORD.sub(b"", data[:end])), data[end:]
        begun = lines.rfind(b"\n", 0, -1) + 1
        if lines.startswith(_RECORD_START, begun):
            # The next line may be the rest of a record.
            lines, rest = lines[:begun], lines[begun:] + rest
        elif not rest.startswith(_RECORD_START[: len(rest)]):
            # The incomplete line cannot become a gctrace record. It may be a prompt, so it is
            # forwarded before it ends.
            lines, rest = lines + rest, b""
        self._incomplete = rest
        if lines:
            self._sink(lines)

    def end(self) -> None:
        """Forwards an unfinished last line."""
        if self._incomplete:
            self._sink(self._incomplete)


def _other_text(torn: re.Match[bytes]) -> bytes:
    """Returns the program's text between two parts of a record; all text if it is no record."""
    begin, rest = torn.groups()
    for end in range(len(begin), len(_RECORD_START) - 1, -1):
        # The runtime writes each number in one piece.
        in_number = begin[end - 1 : end].isdigit() and rest[:1].isdigit()
        if not in_number and _RECORD.fullmatch(begin[:end] + rest):
            return begin[end:] + b"\n"
    return torn[0]


class Child:
    """A running program whose standard error can be read like a file.

    Bytes that arrive within `gather_s` are read together, because parsing has a cost for each
    piece. The program gets the terminal at once with `lends_terminal`, otherwise when it first uses
    it: until then, signals from the terminal reach this process, which forwards them.

    Raises:
        ProgramError: it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        errors: StderrFilter,
        log: IO[bytes] | None,
        output: Sink | None,
        gather_s: float = GATHER_S,
        lends_terminal: bool = True,
    ) -> None:
        # Line numbers in the report refer to the log file, if there is one.
        self.name = command[0] if log is None else str(log.name)
        self._errors, self._log, self._gather_s = errors, log, gather_s
        try:
            self._process = subprocess.Popen(
                command,
                env=dict(env),
                stdout=None if output is None else subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                process_group=0,
                preexec_fn=_end_with_parent(),
            )
        except OSError as err:
            problem = err.strerror or str(err)
            raise ProgramError.not_started(
                command[0], err.errno, problem, like_a_shell=True
            ) from err
        self.pid = self._process.pid
        self.code: int | None = None
        self._exited_at = float("inf")
        self._signalled_at: dict[int, float] = {}
        self._pieces: queue.Queue[bytes] = queue.Queue(_MOST_PIECES)
        self._terminal = _Terminal(is_lent=lends_terminal)
        self._terminal.give_to(self.pid)
        self._threads = [Thread(target=self._read_errors, daemon=True)]
        if output is not None:
            self._threads.append(
                Thread(target=self._forward_output, args=(output,), daemon=True)
            )
        for thread in self._threads:
            thread.start()

    def read(self, size: int) -> bytes:
        """Waits for standard error and returns the next bytes; `b""` at the end."""
        blocks: list[bytes] = []
        total, until = 0, float("inf")
        while total < size:
            wait = min(max(until - time.monotonic(), 0), self._gather_s)
            try:
                data = self._pieces.get(timeout=wait or None, block=bool(wait))
            except queue.Empty:
                if blocks or time.monotonic() > self._exited_at + _DRAIN_S:
                    break
                continue
            if not data:
                # The mark for the end is put back, because the next call must find it too.
                self._pieces.put(data)
                break
            blocks.append(data)
            total += len(data)
            until = min(until, time.monotonic() + self._gather_s)
        return b"".join(blocks)

    def signal(self, number: int) -> None:
        """Sends a signal to the program's process group, without duplicates."""
        now = time.monotonic()
        is_duplicate = now - self._signalled_at.get(number, -DUPLICATE_S) < DUPLICATE_S
        if not is_duplicate and self.code is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)
        self._signalled_at[number] = now

    def poll(self) -> Literal["running", "stopped", "ended"]:
        """Returns the program's state; `stopped` if it was stopped from the terminal."""
        if self.code is not None:
            return "ended"
        pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
        if not pid:
            # This process may have been brought to the foreground since the last call.
            self._terminal.give_to(self.pid)
            return "running"
        if os.WIFSTOPPED(status):
            uses_terminal = os.WSTOPSIG(status) in (signal.SIGTTIN, signal.SIGTTOU)
            self._terminal.is_lent |= uses_terminal
            is_ours = self._terminal.given or self._terminal.is_kept
            return "running" if uses_terminal or not is_ours else "stopped"
        self.code = self._process.returncode = os.waitstatus_to_exitcode(status)
        self._exited_at = time.monotonic()
        self._terminal.take_back()
        return "ended"

    def suspend(self) -> None:
        """Stops this process after Ctrl-Z stopped the program; both continue together."""
        self._terminal.take_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._terminal.give_to(self.pid)
        self.signal(signal.SIGCONT)

    def join(self) -> None:
        """Waits for the program's remaining output."""
        for thread in self._threads:
            thread.join(_DRAIN_S)
        self._errors.end()

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        fd = self._process.stderr.fileno()
        while data := os.read(fd, _PIECE_BYTES):
            if self._log is not None:
                self._write_log(data)
            self._errors(data)
            self._pieces.put(data)
            _rest_after(data)
        self._pieces.put(b"")

    def _write_log(self, data: bytes) -> None:
        assert self._log is not None
        try:
            self._log.write(data)
            self._log.flush()
        except OSError as err:
            # A full disk must not disturb the program; it is reported once.
            print(f"gctrace-analyze: --log: {err.strerror or err}", file=sys.stderr)
            self._log = None

    def _forward_output(self, output: Sink) -> None:
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        while data := os.read(fd, _PIECE_BYTES):
            output(data)
            _rest_after(data)


def _rest_after(data: bytes) -> None:
    if len(data) < _SMALL_BYTES:
        time.sleep(_REST_S)


def _end_with_parent() -> Callable[[], None] | None:
    """Returns a function that makes the program receive SIGTERM if this process is killed.

    Only Linux has this. Elsewhere the program ends when it next writes to its closed standard
    error, as every Go program does.
    """
    if sys.platform != "linux":
        return None
    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None
    return lambda: prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))


class _Terminal:
    """Sets which process group may read from the terminal, if standard input is a terminal.

    While the program's group is in the foreground, this process writes to the terminal from
    the background. SIGTTOU would stop it then, so this signal is ignored.
    """

    def __init__(self, *, is_lent: bool) -> None:
        self.given, self.is_lent = False, is_lent
        self._on_sigttou: Any = signal.SIG_DFL

    @property
    def is_kept(self) -> bool:
        """Whether our own process group stays the foreground group."""
        with suppress(OSError):
            return not self.is_lent and os.tcgetpgrp(0) == os.getpgrp()
        return False

    def give_to(self, group: int) -> None:
        """Makes a process group the foreground group, if ours is the foreground group now."""
        with suppress(OSError):
            if self.is_lent and not self.given and os.tcgetpgrp(0) == os.getpgrp():
                self._on_sigttou = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
                os.tcsetpgrp(0, group)
                self.given = True
                # The program may have been stopped because it read from the terminal while it
                # was in the background.
                os.killpg(group, signal.SIGCONT)

    def take_back(self) -> None:
        """Makes our own process group the foreground group again."""
        if self.given:
            with suppress(OSError):
                os.tcsetpgrp(0, os.getpgrp())
            signal.signal(signal.SIGTTOU, self._on_sigttou)
            self.given = False
