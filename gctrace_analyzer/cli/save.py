"""Output files: written beside their place and moved there, so never half-written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

from gctrace_analyzer.errors import UnwritableOutputError

if TYPE_CHECKING:
    from collections.abc import Callable


def save(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Makes the file that `write` writes.

    Raises:
        UnwritableOutputError: it cannot be written; what was there before is there still.
    """
    part = None
    try:
        handle, name = tempfile.mkstemp(dir=path.resolve().parent, prefix=f".{path.name}.")
        part = Path(name)
        with os.fdopen(handle, "wb") as file:
            write(file)
        part.chmod(0o666 & ~_umask())
        part.replace(path)
    except OSError as err:
        raise UnwritableOutputError(str(path), err.strerror or str(err)) from err
    finally:
        if part:
            part.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
