"""Writes files so that a reader never sees a half-written file."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

from gctrace_analyzer.errors import (
    BadSettingError,
    MissingInputError,
    UnreadableInputError,
    UnwritableOutputError,
    nearest,
)

_RECORD = re.compile(r"gc #?\d+ ?[@(]")
"""Beginning of a line of gctrace, which someone may pass in place of a path."""

_ANSWER_S = 30.0
"""How long to wait for a web server."""


def listed(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Returns inputs one by one, including those in a list.

    Raises:
        BadSettingError: there is no input.
        MissingInputError: an input is a text and not a path.
    """
    lists = (one if isinstance(one, list | tuple) else (one,) for one in inputs)
    single = tuple(chain.from_iterable(lists))
    names = [one for one in single if isinstance(one, str)]
    if not single or "" in names:
        raise BadSettingError("origins", "", 'a file at least, as in read("run.log")')
    if any("\n" in name or _RECORD.match(name) for name in names):
        name, hint = "the argument", "To read a text, pass io.StringIO(text)"
        hint += "; for lines, io.StringIO('\\n'.join(lines))."
        raise MissingInputError(name, "the text of a log, not a path", hint)
    return single


def is_url(name: str) -> bool:
    """Returns whether a name is the address of a file on a web server."""
    return name.lower().startswith(("http://", "https://"))


def fetched(url: str) -> IO[bytes]:
    """Returns the content of a web address in a temporary file.

    Raises:
        UnreadableInputError: the server does not answer, or answers with an error.
    """
    import shutil
    from http.client import HTTPException
    from tempfile import TemporaryFile
    from urllib.request import urlopen

    file = TemporaryFile()  # noqa: SIM115  # the caller closes it
    try:
        with urlopen(url, timeout=_ANSWER_S) as answer:
            shutil.copyfileobj(answer, file)
            if answer.length:
                raise HTTPException(f"it ends {answer.length:,} bytes early")  # noqa: EM102
    except (OSError, HTTPException, ValueError) as err:
        file.close()
        problem = f"cannot be fetched: {str(err).removeprefix('<urlopen error ').rstrip('>')}"
        name = without_secrets(url)
        host = name.rstrip("/")
        hint = "Try the address in a browser, or save the file and name that."
        if host.count("/") == 2:  # without a path
            hint = f"A Go program may show its figures at {host}/metrics or {host}/debug/vars."
        raise UnreadableInputError(name, problem, hint) from err
    file.seek(0)
    return file


def without_secrets(word: str) -> str:
    """Returns an argument without the user, password and query of a URL."""
    scheme, colon, rest = word.partition("://")
    if not colon:
        return word
    host, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def matching(pattern: str) -> list[str]:
    """Returns the files that match a pattern such as `before-*.log`, in order.

    Raises:
        MissingInputError: no file matches.
    """
    if paths := sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207 (may be absolute)
        return paths
    hint = f"Check the pattern; the current folder is {Path.cwd()}."
    raise MissingInputError(pattern, "no file matches this pattern", hint)


def not_found(name: str) -> MissingInputError:
    """Returns the error for a file that does not exist, or for a pattern.

    Raises:
        MissingInputError: no file matches the pattern.
    """
    path, problem = Path(name), "no such file"
    hint = f"Looked for it in {path.parent if path.is_absolute() else Path.cwd()}."
    hint += near_name(path)
    if "://" in name:
        hint = "Of addresses, http:// and https:// are read: save what is there to a file."
    elif glob.has_magic(name):
        problem = f"a pattern, not a file; the files that match it: {len(matching(name)):,}"
        hint = (
            f"Those of one program are read together: read(*sorted(glob.glob({name!r})))\n"
            "  in Python, and without quotes in a shell."
        )
    return MissingInputError(name, problem, hint)


def near_name(path: Path) -> str:
    """Returns ` Did you mean NAME?` for a missing file that has a similar one next to it."""
    try:
        names = [other.name for other in path.parent.iterdir()]
    except OSError:
        return ""
    # Two names are not alike because both end in `.log`.
    begin = path.name.partition(".")[0]
    alike = [name for name in names if nearest(begin, [name.partition(".")[0]])]
    near = nearest(path.name, alike)
    return f" Did you mean {path.with_name(near)}?" if near else ""


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
            if not _written_without_name(partial, write, sync=sync):
                with os.fdopen(_opened(partial, os.O_CREAT | os.O_EXCL), "wb") as file:
                    _written(file, write, sync=sync)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except UnwritableOutputError:
        raise
    except OSError as err:
        raise UnwritableOutputError(
            str(path), err.strerror or str(err), kept=path.exists()
        ) from err


def _written_without_name(
    partial: Path, write: Callable[[IO[bytes]], object], *, sync: bool
) -> bool:
    """Writes a file that gets its name when it is complete; False if the system cannot do that.

    If this process is killed meanwhile, nothing remains of the file. Linux and most of its file
    systems support this.
    """
    unnamed = getattr(os, "O_TMPFILE", None)
    try:
        handle = _opened(partial.parent, unnamed) if unnamed else None
    except OSError:
        handle = None
    if handle is None:
        return False
    with os.fdopen(handle, "wb") as file:
        _written(file, write, sync=sync)
        try:
            # Only with a descriptor does Python call linkat, which follows this link.
            os.link(f"/proc/self/fd/{handle}", partial, src_dir_fd=handle)
        except OSError:
            return False
    return True


def _opened(path: Path, flags: int) -> int:
    # tempfile is not used, because only the owner can read the files it creates. A file opened
    # like this gets the usual permissions, and the umask need not be read.
    return os.open(path, os.O_WRONLY | flags, 0o666)


def _written(file: IO[bytes], write: Callable[[IO[bytes]], object], *, sync: bool) -> None:
    write(file)
    file.flush()
    if sync:
        os.fsync(file.fileno())
