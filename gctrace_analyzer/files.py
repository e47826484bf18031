"""Writes files so that a reader never sees a half-written file."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING

from gctrace_analyzer.errors import UnwritableOutputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def write_atomically(
    path: Path,
    write: Callable[[IO[bytes]], object],
    *,
    folder: Path | None = None,
    sync: bool = False,
) -> None:
    """Writes a new file and then moves it to `path`, replacing what is there.

    Args:
        path: where the file goes; its folder must exist.
        write: writes the content to the open file.
        folder: where the file is written before it is moved; must be on the same file system.
            By default, the folder of `path`.
        sync: wait until the content is on the disk.

    Raises:
        UnwritableOutputError: the file cannot be written; nothing has changed.
    """
    target = path.resolve()
    partial = (folder or target.parent) / f".{path.name}.{os.urandom(4).hex()}.partial"
    try:
        try:
            # tempfile is not used, because only the owner can read the files it creates. A
            # file opened like this gets the usual permissions, and the umask need not be read.
            handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            with os.fdopen(handle, "wb") as file:
                write(file)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except UnwritableOutputError:
        raise
    except OSError as err:
        raise UnwritableOutputError(
            str(path), err.strerror or str(err), kept=path.exists()
        ) from err
