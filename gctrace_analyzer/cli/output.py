"""Output files: kind by suffix, and nothing ever half-written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

from gctrace_analyzer.errors import BadSettingError, UnwritableOutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def output(path: Path, suffixes: Mapping[str, str], option: str = "--output") -> str:
    """The kind of file that `path` asks for, by its suffix.

    Raises:
        BadSettingError: no such kind, or no such folder.
    """
    kind = suffixes.get(path.suffix.lower())
    if kind is None:
        raise BadSettingError(
            argument=option, value=str(path), expected="a name ending in " + ", ".join(suffixes)
        )
    if not path.resolve().parent.is_dir():
        raise BadSettingError(
            argument=option, value=str(path), expected=f"an existing folder: {path.parent} is none"
        )
    return kind


def save(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Writes the file beside its place and moves it there.

    Raises:
        UnwritableOutputError: that could not be done; nothing is left.
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
