"""The answers of a server as one compressed file, to be read or saved."""

from __future__ import annotations

import gzip
import json
import shutil
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any, Self, cast

from gctrace_analyzer.files import write_atomically
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_IN_MEMORY_BYTES = 64 << 20
"""Bytes. A larger recording goes to a temporary file."""

_LEVEL = 4
"""Compression that is faster than most networks; higher levels save little on numbers."""


class _Spool(SpooledTemporaryFile[bytes]):
    """A temporary file that messages call by the name of the question."""

    title = ""

    @property
    def name(self) -> str:
        return self.title


class Recording:
    """Compressed JSON lines: one answer of the server each, as its API gave it.

    It is a context manager, because it may have a temporary file.
    """

    def __init__(self, name: str) -> None:
        self._spool = _Spool(max_size=_IN_MEMORY_BYTES)
        self._spool.title = name
        self._packed: gzip.GzipFile | None = gzip.GzipFile(
            filename="", mode="wb", compresslevel=_LEVEL, fileobj=self._spool, mtime=0
        )
        self.container_limit_bytes: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._packed is not None:
            self._packed.close()
        self._spool.close()

    @property
    def container_limit_mib(self) -> float | None:
        """The memory limit that Kubernetes reports for the only process, if there is one."""
        limit = self.container_limit_bytes
        return None if limit is None else limit / MIB

    def add(self, answer: Mapping[str, Any]) -> None:
        """Adds an answer."""
        if self._packed is None:
            raise ValueError
        line = json.dumps(answer, separators=(",", ":"), ensure_ascii=False)
        self._packed.write(line.encode("utf-8", "replace") + b"\n")

    def file(self) -> IO[bytes]:
        """Returns the whole file, open at its beginning; nothing can be added any more."""
        if self._packed is not None:
            self._packed.close()
            self._packed = None
        self._spool.seek(0)
        return cast("IO[bytes]", self._spool)

    def save(self, path: Path) -> None:
        """Saves the file, compressed unless the name ends in `.json` or `.jsonl`.

        Raises:
            UnwritableOutputError: the file cannot be written; nothing has changed.
        """
        lines: Any = self.file()
        if path.suffix.lower() in (".json", ".jsonl"):
            lines = gzip.GzipFile(fileobj=lines, mode="rb")
        write_atomically(path, lambda file: shutil.copyfileobj(lines, file))
