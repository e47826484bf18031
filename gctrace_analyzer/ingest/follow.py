"""Follows inputs that grow: a pipe, or a file through rotation and truncation.

Each has the `read` method that `sources.Source` needs. It waits for data and returns the new bytes,
or `b""` at the end of the input or after `Stop.ask`.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import IO

from gctrace_analyzer.errors import UnreadableInputError
from gctrace_analyzer.ingest.sources import not_opened

POLL_S = 0.03
"""How often the size of a file is checked: cheap, and fast enough to feel immediate."""

GATHER_S = 0.1
"""How long to collect bytes before parsing, because parsing has a cost for each piece."""

QUIET_S = 0.3
"""How long a rotated file must be unchanged before it is left, because the program may still write
to it."""

DRAIN_S = 1.0
"""How long reading the existing data may take after the input was stopped."""

_HEAD_BYTES = 256
_PIECE_BYTES = 1 << 16


class Stop:
    """Stops an input: it returns the existing data and then ends."""

    def __init__(self) -> None:
        self._asked = Event()
        self._until = float("inf")

    def ask(self) -> None:
        """Asks the input to end; reading the existing data may take `DRAIN_S` at most."""
        if not self._asked.is_set():
            self._until = time.monotonic() + DRAIN_S
            self._asked.set()

    def wait(self, seconds: float) -> bool:
        """Waits for some seconds or until asked to stop; returns whether asked."""
        return self._asked.wait(seconds)

    @property
    def asked(self) -> bool:
        """Whether to return the existing data and end."""
        return self._asked.is_set()

    @property
    def overdue(self) -> bool:
        """Whether to end at once."""
        return time.monotonic() > self._until


class Pipe:
    """A pipe, or another input that ends by itself."""

    def __init__(self, fd: int, name: str, stop: Stop) -> None:
        self._fd, self.name, self._stop = fd, name, stop
        self._first = True

    def read(self, size: int) -> bytes:
        """Waits for data and returns it."""
        pieces: list[bytes] = []
        got, until = 0, float("inf")
        while got < size and not self._stop.overdue:
            enough = bool(pieces) and not self._first
            wait = min(max(until - time.monotonic(), 0), POLL_S) if enough else POLL_S
            if not select.select([self._fd], [], [], wait)[0]:
                if self._stop.asked or (enough and time.monotonic() >= until):
                    break
                continue
            data = os.read(self._fd, min(size - got, _PIECE_BYTES))
            if not data:
                break
            pieces.append(data)
            got += len(data)
            # The format is detected from the first bytes, so these must contain a whole line.
            self._first = self._first and b"\n" not in data
            until = min(until, time.monotonic() + GATHER_S)
            if time.monotonic() >= until and not self._first:
                break
        return b"".join(pieces)


class Segment:
    """A file from its beginning until it is rotated or truncated."""

    def __init__(self, file: IO[bytes], name: str, path: Path, stop: Stop) -> None:
        self._file, self.name, self._path, self._stop = file, name, path, stop
        self._begin = self._at = 0
        self._head = b""
        self.truncated = False

    def read(self, size: int) -> bytes:
        """Waits for data in the file and returns it.

        Raises:
            UnreadableInputError: the file can no longer be read.
        """
        try:
            return self._read(size)
        except OSError as err:
            problem = (err.strerror or str(err)).lower()
            hint = "It was readable before: was its disk or network share removed?"
            raise UnreadableInputError(self.name, problem, hint) from err

    def _read(self, size: int) -> bytes:
        since = time.monotonic()
        gathered = False
        while not self._stop.overdue:
            if self._is_truncated():
                self.truncated = True
                break
            size_left = os.fstat(self._file.fileno()).st_size - self._at
            last = self._stop.asked
            if size_left > 0 and (gathered or last or size_left >= _PIECE_BYTES):
                return self._take(size)
            if size_left <= 0 and (last or self._is_left(since)):
                break
            gathered = size_left > 0
            self._stop.wait(GATHER_S if gathered else POLL_S)
        return b""

    def _take(self, size: int) -> bytes:
        if not self._head:
            # A file truncated while the program writes to it begins with a hole.
            with suppress(OSError, AttributeError):
                self._begin = os.lseek(self._file.fileno(), self._at, os.SEEK_DATA)
                self._at = self._begin
        data = os.pread(self._file.fileno(), size, self._at)
        self._at += len(data)
        self._head += data[: _HEAD_BYTES - len(self._head)]
        return data

    def _is_truncated(self) -> bool:
        """Returns whether the file is shorter than before, or has another beginning."""
        if os.fstat(self._file.fileno()).st_size < self._at:
            return True
        now = os.pread(self._file.fileno(), len(self._head), self._begin)
        return now != self._head

    def _is_left(self, since: float) -> bool:
        """Returns whether the path now names another file, and this one no longer changes."""
        if time.monotonic() - since < QUIET_S:
            return False
        opened = os.fstat(self._file.fileno())
        try:
            current = self._path.stat()
        except OSError:
            return False
        return (current.st_dev, current.st_ino) != (opened.st_dev, opened.st_ino)


class Followed:
    """A path to follow: waits for the file, and continues after rotation or truncation.

    Raises:
        UnreadableInputError: a directory, or no permission.
    """

    def __init__(self, path: str, stop: Stop) -> None:
        self._given, self._path, self._stop = path, Path(path), stop
        self._turns = 0
        if self.exists:
            self._open().close()

    @property
    def exists(self) -> bool:
        """Whether the file exists."""
        return self._path.exists()

    def segments(self) -> Iterator[Segment | Pipe]:
        """Yields the file, and those that replace it, until stopped."""
        while self._wait():
            with self._open() as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    yield Pipe(file.fileno(), self._given, self._stop)
                    return
                yield from self._restarted(file)
            if self._stop.asked:
                return

    def _restarted(self, file: IO[bytes]) -> Iterator[Segment]:
        again = True
        while again:
            name = f"{self._given} ({self._turns + 1})" if self._turns else self._given
            segment = Segment(file, name, self._path, self._stop)
            yield segment
            self._turns += 1
            again = segment.truncated

    def _wait(self) -> bool:
        """Waits until the file exists; False if stopped before."""
        while not self.exists:
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
            raise not_opened(self._given, err) from err


def standard_input(stop: Stop) -> Pipe:
    """Returns standard input as a pipe."""
    return Pipe(sys.stdin.fileno(), "<stdin>", stop)
