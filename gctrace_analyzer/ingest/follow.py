"""Inputs that go on: a file that is written to, through rotation and truncation; a pipe.

Each is a file to read from, as `sources.Source` wants one: `read` waits until there is
something, gives all there is, and `b""` at the end, which comes when `stop` was called.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import IO, TYPE_CHECKING

from gctrace_analyzer.errors import UnreadableInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

POLL_S = 0.03
"""How often a file is asked for its size: soon enough for eyes, and it costs nothing."""

GATHER_S = 0.05
"""Bytes that come one after the other are taken together for so long: parsing has its price
per piece."""

QUIET_S = 0.3
"""A rotated file is written to until its program was told; so long it must be quiet."""

DRAIN_S = 1.0
"""So long what is already there may take to be read, once the input was told to end."""

_HEAD_BYTES = 256
_PIECE_BYTES = 1 << 16


class Stop:
    """Tells an input from outside to end: it gives what is there already, and then no more."""

    def __init__(self) -> None:
        self._asked = Event()
        self._until = float("inf")

    def ask(self) -> None:
        """No more waiting; for what is written all the while, there is an end as well."""
        if not self._asked.is_set():
            self._until = time.monotonic() + DRAIN_S
            self._asked.set()

    def wait(self, seconds: float) -> bool:
        """Waits so long, or until it is asked for; whether it is."""
        return self._asked.wait(seconds)

    @property
    def asked(self) -> bool:
        """Whether to give what is there, and end."""
        return self._asked.is_set()

    @property
    def overdue(self) -> bool:
        """Whether to end at once."""
        return time.monotonic() > self._until


class Pipe:
    """A pipe, or anything that ends by itself."""

    def __init__(self, fd: int, name: str, stop: Stop) -> None:
        self._fd, self.name, self._stop = fd, name, stop
        self._first = True

    def read(self, size: int) -> bytes:
        """What has come, once something has."""
        found: list[bytes] = []
        got, until = 0, float("inf")
        while got < size and not self._stop.overdue:
            enough = bool(found) and not self._first
            wait = min(max(until - time.monotonic(), 0), POLL_S) if enough else POLL_S
            if not select.select([self._fd], [], [], wait)[0]:
                if self._stop.asked or (enough and time.monotonic() >= until):
                    break
                continue
            data = os.read(self._fd, min(size - got, _PIECE_BYTES))
            if not data:
                break
            found.append(data)
            got += len(data)
            # What an input is, is told by its first bytes: at least a line of them.
            self._first = self._first and b"\n" not in data
            until = min(until, time.monotonic() + GATHER_S)
            if time.monotonic() >= until and not self._first:
                break
        return b"".join(found)


class Segment:
    """A file from its begin until it is rotated away, or truncated."""

    def __init__(self, file: IO[bytes], name: str, path: Path, stop: Stop) -> None:
        self._file, self.name, self._path, self._stop = file, name, path, stop
        self._begin = self._at = 0
        self._head = b""
        self.truncated = False

    def read(self, size: int) -> bytes:
        """What has been written, once something has."""
        since = time.monotonic()
        gathered = False
        while not self._stop.overdue:
            if self._is_truncated():
                self.truncated = True
                break
            there = os.fstat(self._file.fileno()).st_size - self._at
            last = self._stop.asked
            if there > 0 and (gathered or last or there >= _PIECE_BYTES):
                return self._take(size)
            if there <= 0 and (last or self._is_left(since)):
                break
            gathered = there > 0
            self._stop.wait(GATHER_S if gathered else POLL_S)
        return b""

    def _take(self, size: int) -> bytes:
        if not self._head:
            # A file truncated under a program that writes on begins with a hole.
            with suppress(OSError, AttributeError):
                self._begin = os.lseek(self._file.fileno(), self._at, os.SEEK_DATA)
                self._at = self._begin
        data = os.pread(self._file.fileno(), size, self._at)
        self._at += len(data)
        self._head += data[: _HEAD_BYTES - len(self._head)]
        return data

    def _is_truncated(self) -> bool:
        """Whether the file is not the one whose beginning was read: shorter, or begun anew."""
        if os.fstat(self._file.fileno()).st_size < self._at:
            return True
        now = os.pread(self._file.fileno(), len(self._head), self._begin)
        return now != self._head

    def _is_left(self, since: float) -> bool:
        """Whether another file has taken its name, and this one is quiet."""
        if time.monotonic() - since < QUIET_S:
            return False
        mine = os.fstat(self._file.fileno())
        try:
            there = self._path.stat()
        except OSError:
            return False
        return (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino)


class Followed:
    """A file followed by its name: until it is there, through rotation, through truncation.

    Raises:
        UnreadableInputError: a folder, or no permission.
    """

    def __init__(self, path: str, stop: Stop) -> None:
        self._given, self._path, self._stop = path, Path(path), stop
        self._turns = 0
        if self.is_there:
            self._open().close()

    @property
    def is_there(self) -> bool:
        """Whether there is a file of that name."""
        return self._path.exists()

    def segments(self) -> Iterator[Segment | Pipe]:
        """The file, then what came in its place, until told to stop."""
        while self._wait():
            with self._open() as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    yield Pipe(file.fileno(), self._given, self._stop)
                    return
                yield from self._begun_anew(file)
            if self._stop.asked:
                return

    def _begun_anew(self, file: IO[bytes]) -> Iterator[Segment]:
        again = True
        while again:
            name = f"{self._given} ({self._turns + 1})" if self._turns else self._given
            segment = Segment(file, name, self._path, self._stop)
            yield segment
            self._turns += 1
            again = segment.truncated

    def _wait(self) -> bool:
        """Until the file is there; whether it came."""
        while not self.is_there:
            if self._stop.wait(POLL_S):
                return False
        return True

    def _open(self) -> IO[bytes]:
        try:
            return self._path.open("rb", buffering=0)
        except IsADirectoryError as err:
            problem, hint = "a folder, not a log", f"Name the file: {self._path / 'run.log'}"
            raise UnreadableInputError(self._given, problem, hint) from err
        except OSError as err:
            problem, hint = (err.strerror or str(err)).lower(), "May this user read it?"
            raise UnreadableInputError(self._given, problem, hint) from err


def standard_input(stop: Stop) -> Pipe:
    """What is piped into the command."""
    return Pipe(sys.stdin.fileno(), "<stdin>", stop)
