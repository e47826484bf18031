"""Where inputs lie, here or in a store by fsspec: found, opened, their errors told."""

from __future__ import annotations

import glob
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from gctrace_analyzer import extras
from gctrace_analyzer.errors import (
    BadSettingError,
    GctraceError,
    MissingExtraError,
    MissingInputError,
    NoDataError,
    UnreadableInputError,
)
from gctrace_analyzer.fleets.identity import is_url, public, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Kind = Literal[
    "missing", "denied", "unreachable", "library", "empty", "no-records", "damaged", "memory",
    "crashed", "bug",
]  # fmt: skip

OF_THE_WAY = ("missing", "denied", "unreachable", "library")
"""What was wrong with the way to a file, not with the file: the next run tries again."""

_LIBRARIES = {
    "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs",
    "abfss": "adlfs", "az": "adlfs", "http": "aiohttp", "https": "aiohttp",
}  # fmt: skip
_HINTS = {
    "denied": "Credentials come from the environment or the store's own files, here and on "
    "every worker: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
    "GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_CONNECTION_STRING.",
    "unreachable": "Is the address right (AWS_ENDPOINT_URL), and is the store up?",
    "missing": "Look at it with the store's own tool.",
}


@dataclass(frozen=True, slots=True)
class Item:
    """A file to read: where it is, what it is called (no secrets), its size if it is known."""

    url: str = field(repr=False)
    name: str
    size: int | None


def found(
    inputs: Sequence[str], options: Mapping[str, Any] | None = None
) -> tuple[list[Item], list[str]]:
    """The files that paths, folders, globs and addresses name, each once, in order of names.

    Returns them, and the inputs that name none.

    Raises:
        UnreadableInputError: a store does not answer or does not let us in.
        MissingExtraError: the library for a kind of store is not installed.
    """
    items: dict[str, Item] = {}
    nothing = []
    for text in inputs:
        here = list(_remote(text, options or {}) if is_url(text) else _local(text))
        if not here:
            nothing.append(public(text))
        items |= {item.name: item for item in here}
    return [items[name] for name in sorted(items)], nothing


def _local(text: str) -> Iterator[Item]:
    path = Path(text).expanduser()
    if path.is_dir():
        names = [str(each) for each in path.rglob("*")]
    elif glob.has_magic(text) and not path.exists():
        # Absolute patterns, too, which Path.glob does not take.
        names = glob.glob(str(path), recursive=True)  # noqa: PTH207
    else:
        # Named, so it is a row even if it is not there.
        yield Item(str(path), str(path), path.stat().st_size if path.is_file() else None)
        return
    yield from (Item(name, name, Path(name).stat().st_size) for name in names if _is_file(name))


def _is_file(name: str) -> bool:
    path = Path(name)
    return path.is_file() and not path.name.startswith(".")


def _remote(url: str, options: Mapping[str, Any]) -> Iterator[Item]:
    try:
        filesystem, path = _filesystem(url, options)
        if url.startswith("http") and "*" not in urlsplit(url).path:
            yield Item(url, public(url), None)
            return
        if glob.has_magic(path):
            entries = filesystem.glob(path, detail=True)
        elif path.endswith("/") or filesystem.isdir(path):
            entries = filesystem.find(path, detail=True)
        else:
            yield Item(url, public(url), filesystem.info(path).get("size"))
            return
    except FileNotFoundError:
        return
    except (BadSettingError, MissingExtraError):
        raise
    except Exception as err:
        kind = kind_of(err)
        raise UnreadableInputError(
            public(url),
            problem_of(err, url),
            _HINTS.get(kind, "Nothing could be listed there."),
        ) from err
    for name, info in entries.items():
        if info.get("type") == "file":
            full = name if is_url(name) else filesystem.unstrip_protocol(name)
            yield Item(full, public(full), info.get("size"))


def _filesystem(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    scheme = urlsplit(url).scheme
    fsspec = extras.load("fsspec")
    if scheme in _LIBRARIES:
        extras.load(_LIBRARIES[scheme])
    elif scheme not in fsspec.available_protocols():
        raise BadSettingError(
            argument="input",
            value=public(url),
            expected="a path, s3://, gs://, abfs:// or http(s)://",
        )
    filesystem, path = fsspec.core.url_to_fs(url, **options)
    return filesystem, str(path)


@contextmanager
def opened(item: Item, options: Mapping[str, Any]) -> Iterator[IO[bytes]]:
    """The open file, called by the item's name.

    Raises:
        UnreadableInputError: a local file that is not there or may not be read.
    """
    if not is_url(item.url):
        try:
            local = Path(item.url).open("rb")  # noqa: SIM115  # closed below
        except OSError as err:
            problem = "no such file" if isinstance(err, FileNotFoundError) else err.strerror
            raise UnreadableInputError(
                item.name,
                str(problem or err).lower(),
                "May this user read it, on every worker?",
            ) from err
        with local:
            yield local
        return
    filesystem, path = _filesystem(item.url, options)
    # A log is read from its beginning to its end, a piece of it in one go.
    file: Any = filesystem.open(path, "rb", cache_type="readahead")
    with file:
        file.name = item.name
        yield file


def named_in(path: str) -> list[str]:
    """The paths that a file lists, a line each; `-` is standard input.

    Raises:
        UnreadableInputError: it cannot be read.
    """
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text()
    except OSError as err:
        raise UnreadableInputError(
            path, (err.strerror or str(err)).lower(), "It lists one path or address a line."
        ) from err
    return [line.strip() for line in text.splitlines() if line.strip() and line[0] != "#"]


def kind_of(err: BaseException) -> Kind:
    """What kind of failure an exception is."""
    cause = err.__cause__
    if isinstance(err, NoDataError):
        return "empty" if err.lines == 0 else "no-records"
    if isinstance(err, MissingExtraError | ImportError):
        return "library"
    if isinstance(err, UnreadableInputError) and not isinstance(cause, OSError):
        return "damaged"
    return _of_the_way(cause if isinstance(err, UnreadableInputError) and cause else err)


def _of_the_way(err: BaseException) -> Kind:
    status = getattr(err, "status", None)
    names = {each.__name__ for each in type(err).__mro__}
    if isinstance(err, FileNotFoundError | IsADirectoryError):
        return "missing"
    if isinstance(err, PermissionError) or status in (401, 403):
        return "denied"
    if names & {"NoCredentialsError", "PartialCredentialsError", "ClientAuthenticationError"}:
        return "denied"
    if isinstance(err, MemoryError):
        return "memory"
    if isinstance(err, OSError | TimeoutError) or names & {
        "BotoCoreError", "ClientError", "HTTPClientError", "AzureError", "HttpError",
    }:  # fmt: skip
        return "unreachable"
    return "bug"


def problem_of(err: BaseException, url: str) -> str:
    """The failure in one line, without secrets."""
    if isinstance(err, UnreadableInputError):
        text = err.problem
    elif isinstance(err, GctraceError):
        text = str(err).partition("\n")[0].removeprefix(f"{public(url)}: ")
    elif isinstance(err, FileNotFoundError):
        text = "no such file"
    else:
        text = f"{type(err).__name__}: {err}" if str(err) else type(err).__name__
    return without_secrets(text, url).partition("\n")[0][:300].rstrip(".")
