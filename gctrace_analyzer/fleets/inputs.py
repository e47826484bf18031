"""Finds and opens inputs, local or in an object store (with fsspec), and classifies errors."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal
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
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.compression import compression
from gctrace_analyzer.ingest.profiles.bundles import age
from gctrace_analyzer.ingest.sniff import SNIFF_BYTES

Kind = Literal[
    "missing",
    "denied",
    "unreachable",
    "library",
    "empty",
    "no-records",
    "damaged",
    "memory",
    "crashed",
    "bug",
]

RETRIED = ("missing", "denied", "unreachable", "library")
"""Kinds of failures to reach a file. The file itself is not at fault, so the next run reads it
again."""

_LIBRARIES = {
    "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs",
    "abfss": "adlfs", "az": "adlfs", "http": "aiohttp", "https": "aiohttp",
}  # fmt: skip
_PACKED = {".gz": "gzip", ".zst": "zstd", ".xz": "xz", ".bz2": "bzip2"}
_MOST_UNREADABLE = 0.1
"""Share of bytes that are not UTF-8, above which a file is not text."""

_HINTS = {
    "denied": "Credentials are taken from the environment or the store's own configuration, "
    "here and on every worker: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
    "GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_CONNECTION_STRING.",
    "unreachable": "Is the address correct (AWS_ENDPOINT_URL), and is the store running?",
    "missing": "Check the path with the store's own tool.",
}


@frozen
class Item:
    """A file to read, with the older parts of the same log.

    Attributes:
        url: its URL or path.
        name: the URL or path without secrets.
        size: the size of all parts in bytes, if known.
        modified: when the latest of them was changed, if known.
        parts: the older rotated parts, the oldest first.
    """

    url: str = field(repr=False)
    name: str
    size: int | None
    modified: datetime | None = None
    parts: tuple[Item, ...] = ()


def find(
    inputs: Sequence[str],
    options: Mapping[str, Any] | None = None,
    own: Sequence[str] = (),
) -> tuple[list[Item], list[str]]:
    """Finds the files that paths, folders, globs and URLs mean.

    Returns the files, each once and sorted by name, and the inputs that match no file. The
    rotated parts of one log, and the logs of one container's restarts, are one `Item`.

    Args:
        inputs: paths, folders, globs and URLs.
        options: options for fsspec.
        own: files and folders that the run itself writes. Folders and globs do not find what an
            earlier run left there.

    Raises:
        UnreadableInputError: a store does not answer or denies access.
        MissingExtraError: the library for a store is not installed.
    """
    items: dict[str, Item] = {}
    known: set[str] = set()
    written = tuple(
        public(place) if is_url(place) else os.path.realpath(place) for place in own
    )
    unmatched = []
    for text in inputs:
        here = list(_remote(text, options or {}) if is_url(text) else _local(text))
        if not here:
            unmatched.append(public(text))
        # One file may be named in several ways: logs/a.log and /srv/logs/a.log.
        # A key that is equal for two names of one file.
        files = {
            item.name if is_url(item.url) else os.path.realpath(item.url): item for item in here
        }
        if text not in {item.url for item in here}:
            files = {same: item for same, item in files.items() if not _is_in(same, written)}
        items |= {item.name: item for same, item in files.items() if same not in known}
        known |= files.keys()
    return _joined([items[name] for name in sorted(items)]), unmatched


_RESTARTS = re.compile(r"(_[0-9a-f-]{32,36}/[^/]+/)(\d+)\.log$")
"""A log of the kubelet, which counts the restarts of a container."""

_LOG = re.compile(r"\.(?:log|txt|out|err)$")


def _joined(items: Sequence[Item]) -> list[Item]:
    """Joins the parts of each log; the name of the newest is that of the log."""
    names = {item.name for item in items}
    logs: dict[str, list[tuple[int, int, int, Item]]] = {}
    for item in items:
        log, is_newest, order = age(item.name)
        if log not in names and not _LOG.search(log):
            log = item.name
        restarts = _RESTARTS.search(log)
        key = log if restarts is None else log[: restarts.end(1)]
        number = 0 if restarts is None else int(restarts[2])
        logs.setdefault(key, []).append((number, is_newest, order, item))
    return [
        _log([item for *_, item in sorted(parts, key=lambda part: part[:3])])
        for parts in logs.values()
    ]


def _log(parts: Sequence[Item]) -> Item:
    *older, newest = parts
    if not older:
        return newest
    sizes = [part.size for part in parts]
    return replace(
        newest,
        size=None if None in sizes else sum(filter(None, sizes)),
        modified=max((part.modified for part in parts if part.modified), default=None),
        parts=tuple(older),
    )


def _is_in(same: str, places: Iterable[str]) -> bool:
    """Returns whether a file is one of these files or in one of these folders."""
    return any(same == place or same.startswith(f"{place.rstrip('/')}/") for place in places)


def named(inputs: Sequence[str]) -> list[Item]:
    """Returns the URLs among the inputs, whose public names lack what reading them needs.

    Nothing is listed: files in folders and stores can be read by their names.
    """
    return [Item(text, public(text), None) for text in inputs if is_url(text)]


def _local(text: str) -> Iterator[Item]:
    path = Path(text).expanduser()
    if path.is_dir():
        names = []
        refused: list[OSError] = []
        for folder, _, files in os.walk(path, onerror=refused.append):
            names += [str(Path(folder) / name) for name in files]
        # A folder that cannot be listed is a row with its error.
        yield from (Item(str(err.filename), str(err.filename), None) for err in refused)
    elif glob.has_magic(text) and not path.exists():
        # Patterns may be absolute, which Path.glob does not accept.
        names = glob.glob(str(path), recursive=True)  # noqa: PTH207
    else:
        if text.endswith("/") and not path.exists():
            raise MissingInputError(text, "no such folder", "Check the path.")
        # The user named this file, so it gets a row even if it does not exist.
        yield _item(str(path))
        return
    yield from (_item(name) for name in names if _is_file(name))


def _is_file(name: str) -> bool:
    path = Path(name)
    # A link to a missing file is a row with its error, not silently skipped.
    is_broken = path.is_symlink() and not path.exists()
    return (path.is_file() or is_broken) and not path.name.startswith(".")


def _item(name: str) -> Item:
    path = Path(name)
    if not path.is_file():
        return Item(name, name, None)
    known = path.stat()
    return Item(name, name, known.st_size, datetime.fromtimestamp(known.st_mtime, UTC))


def _remote(url: str, options: Mapping[str, Any]) -> Iterator[Item]:
    try:
        store, path = filesystem(url, options)
        if url.startswith("http") and "*" not in urlsplit(url).path:
            yield Item(url, public(url), None)
            return
        if glob.has_magic(path):
            entries = store.glob(path, detail=True)
        elif path.endswith("/") or store.isdir(path):
            entries = store.find(path, detail=True)
        else:
            yield Item(url, public(url), store.info(path).get("size"))
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
            _HINTS.get(kind, "Its files could not be listed."),
        ) from err
    for name, info in entries.items():
        if info.get("type") == "file":
            full = name if is_url(name) else store.unstrip_protocol(name)
            yield Item(full, public(full), info.get("size"))


def filesystem(
    url: str, options: Mapping[str, Any], *, argument: str = "inputs"
) -> tuple[Any, str]:
    """Returns the file system of a URL for fsspec, and the path in it.

    Raises:
        BadSettingError: this kind of URL is unknown; `argument` names its argument.
        MissingExtraError: the library for the store is not installed.
    """
    # Loading it takes as long as a short report.
    import fsspec

    scheme = urlsplit(url).scheme
    if scheme in _LIBRARIES:
        extras.load(_LIBRARIES[scheme])
    elif scheme not in fsspec.available_protocols():
        raise BadSettingError(
            argument, public(url), "a path, or a URL: s3://, gs://, abfs:// or http(s)://"
        )
    store, path = fsspec.core.url_to_fs(url, **options)
    return store, str(path)


@contextmanager
def opened(item: Item, options: Mapping[str, Any]) -> Iterator[IO[bytes]]:
    """Opens a file; its `name` is that of the item.

    Raises:
        UnreadableInputError: a local file that does not exist or cannot be read.
    """
    if not is_url(item.url):
        try:
            local = Path(item.url).open("rb")  # noqa: SIM115  # closed below
        except OSError as err:
            is_missing = isinstance(err, FileNotFoundError)
            problem = "no such file or folder" if is_missing else err.strerror
            if isinstance(err, IsADirectoryError) and not os.access(
                item.url, os.R_OK | os.X_OK
            ):
                err, problem = (
                    PermissionError(),
                    "permission denied: the folder cannot be listed",
                )
            error = MissingInputError if is_missing else UnreadableInputError
            hint = "It must be readable on every worker."
            raise error(item.name, str(problem or err).lower(), hint) from err
        with local:
            yield local
        return
    store, path = filesystem(item.url, options)
    # Logs, and stretches of them, are read sequentially.
    file: Any = store.open(path, "rb", cache_type="readahead")
    with file:
        file.name = item.name
        yield file


@contextmanager
def all_opened(item: Item, options: Mapping[str, Any]) -> Iterator[list[IO[bytes]]]:
    """Opens all parts of a log, the oldest first (`opened`)."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(opened(part, options))
            for part in (*item.parts, replace(item, parts=()))
        ]


def listed_in(path: str) -> list[str]:
    """Returns the inputs that a file lists, one per line; `-` is standard input.

    Raises:
        UnreadableInputError: it cannot be read.
    """
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text()
    except OSError as err:
        raise UnreadableInputError(
            path, (err.strerror or str(err)).lower(), "It should list one path or URL per line."
        ) from err
    return [line.strip() for line in text.splitlines() if line.strip() and line[0] != "#"]


def kind_of(err: BaseException) -> Kind:
    """Returns the kind of failure that an exception stands for."""
    cause = err.__cause__
    if isinstance(err, NoDataError):
        return "empty" if err.lines == 0 else "no-records"
    if isinstance(err, MissingExtraError | ImportError):
        return "library"
    if isinstance(err, UnreadableInputError) and not isinstance(cause, OSError):
        # Damage has the error of the library that unpacks or parses; other files have no cause.
        is_other = cause is None and err.argument != "unpack_limit"
        return "no-records" if is_other else "damaged"
    return _kind_of_access_error(
        cause if isinstance(err, UnreadableInputError) and cause else err
    )


def _kind_of_access_error(err: BaseException) -> Kind:
    status = getattr(err, "status", None)
    names = {class_.__name__ for class_ in type(err).__mro__}
    if isinstance(err, FileNotFoundError | IsADirectoryError):
        return "missing"
    if isinstance(err, PermissionError) or status in (401, 403):
        return "denied"
    if names & {"NoCredentialsError", "PartialCredentialsError", "ClientAuthenticationError"}:
        return "denied"
    if isinstance(err, MemoryError):
        return "memory"
    if isinstance(err, OSError | TimeoutError) or names & {
        "BotoCoreError",
        "ClientError",
        "HTTPClientError",
        "AzureError",
        "HttpError",
    }:
        return "unreachable"
    return "bug"


def with_form(item: Item, options: Mapping[str, Any], problem: str) -> str:
    """Returns why a file has no records, and its real format if its name says otherwise."""
    with opened(item, options) as file:
        head = file.read(SNIFF_BYTES)
    suffix = PurePosixPath(item.name).suffix
    if suffix in _PACKED and compression(head) is None:
        return f"not {_PACKED[suffix]}, although its name ends in {suffix}: {problem}"
    unreadable = head.decode("utf-8", "replace").count("\ufffd") + head.count(0)
    if compression(head) is None and unreadable > _MOST_UNREADABLE * len(head):
        return f"not text in UTF-8: {problem}"
    return problem


def problem_of(err: BaseException, url: str) -> str:
    """Returns the failure in one line, without secrets."""
    if isinstance(err, UnreadableInputError):
        text = err.problem
    elif isinstance(err, GctraceError):
        text = str(err).partition("\n")[0].removeprefix(f"{public(url)}: ")
    elif isinstance(err, FileNotFoundError):
        text = "no such file"
    else:
        text = f"{type(err).__name__}: {err}" if str(err) else type(err).__name__
    return without_secrets(text, url).partition("\n")[0][:300].rstrip(".")
