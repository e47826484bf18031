"""The result on its way: a folder of Parquet parts, beside it a manifest of those that count.

A part is written beside its place and moved there, then the manifest likewise; a part that the
manifest does not list does not count, whatever became of its writer. So a run can be cut off at
any moment, and the next one goes on from what the manifest lists. In an object store a PUT
is all or nothing by itself.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import __version__, schema
from gctrace_analyzer.errors import BadSettingError, UnreadableInputError, UnwritableOutputError
from gctrace_analyzer.fleets.identity import is_url, public
from gctrace_analyzer.fleets.inputs import OF_THE_WAY, problem_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MANIFEST = ".manifest.json"
"""What follows the output's name: beside the folder, so that this holds nothing but Parquet."""

FORMAT = 1
_FINAL, _ERRORS, _AGAIN = "rows", "errors", "again"


class Parts:
    """An output: where its parts lie, which files they hold.

    Args:
        where: a folder, made if it is not there, or an address in an object store.
        asked: what the rows depend on; an output made with something else is not gone on with.
        options: for fsspec.
        overwrite: forget what is there.
        retry: also forget the rows of files that could not be read.

    Raises:
        BadSettingError: there is something else, or it was made with other options.
        UnwritableOutputError: it cannot be written.
    """

    def __init__(
        self,
        where: str,
        asked: Mapping[str, Any],
        *,
        options: Mapping[str, Any] | None = None,
        overwrite: bool = False,
        retry: bool = False,
    ) -> None:
        self.name = public(where)
        self._folder = _Remote(where, options or {}) if is_url(where) else _Local(where)
        self._asked = {"format": FORMAT, "made_by": __version__, **asked}
        self._text = "" if overwrite else self._folder.get_manifest()
        self._parts: list[dict[str, Any]] = []
        if self._text:
            known = _parsed(self._text, self.name)
            self._must_agree(known["asked"])
            self._parts = known["parts"]
        elif self._folder.list() and not overwrite:
            raise BadSettingError(
                argument="--output", value=self.name,
                expected="a new folder, or one that fleet has made; there is something else",
            )  # fmt: skip
        gone = {_AGAIN, _ERRORS} if retry else {_AGAIN}
        self._parts = [part for part in self._parts if part["kind"] not in gone]
        self._write_manifest(total=None, complete=False)
        self._sweep()
        self.done = self._files()

    def _must_agree(self, made: Mapping[str, Any]) -> None:
        other = [name for name, value in self._asked.items() if made.get(name) != value]
        if other:
            raise BadSettingError(
                argument="--output", value=self.name,
                expected=f"another output, or --overwrite: this one was made with another "
                f"{', '.join(other)}",
            )  # fmt: skip

    def add(self, rows: Sequence[Mapping[str, Any]], total: int) -> None:
        """Keeps the rows, all rows of a file at once; nothing of it is lost after that."""
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            error = row["error_kind"]
            kind = _FINAL if error is None else _AGAIN if error in OF_THE_WAY else _ERRORS
            groups.setdefault(kind, []).append(row)
        for kind, mine in groups.items():
            frame = pl.DataFrame(mine, schema=schema.polars_schema("fleet"))
            name = f"{kind}-{len(self._parts):05d}-{secrets.token_hex(4)}.parquet"
            buffer = io.BytesIO()
            frame.write_parquet(buffer)
            self._folder.put(name, buffer.getvalue())
            files = frame["file"].n_unique()
            self._parts.append({"name": name, "kind": kind, "rows": len(frame), "files": files})
        self.done |= {str(row["file"]) for row in rows}
        self._write_manifest(total=total, complete=False)

    def finish(self, total: int) -> None:
        """Says in the manifest that all files were looked at."""
        self._write_manifest(total=total, complete=True)

    def frame(self) -> pl.LazyFrame:
        """All rows so far (`schema.FLEET`)."""
        return _scan(self._folder, self._parts)

    def _files(self) -> set[str]:
        return set(self.frame().select("file").collect()["file"])

    def _write_manifest(self, *, total: int | None, complete: bool) -> None:
        # Two runs into one output would forget each other's parts.
        if self._text and self._folder.get_manifest() != self._text:
            raise UnwritableOutputError(self.name, "another run is writing to it")
        document = {
            "made_by": f"gctrace-analyzer {__version__}", "asked": self._asked,
            "files": total, "complete": complete, "parts": self._parts,
        }  # fmt: skip
        text = json.dumps(document, indent=1) + "\n"
        self._folder.put_manifest(text)
        self._text = text

    def _sweep(self) -> None:
        """Removes parts of a run that ended before it could list them."""
        listed = {part["name"] for part in self._parts}
        for name in self._folder.list():
            if name.endswith(".parquet") and name not in listed:
                self._folder.remove(name)


def existing(where: str, options: Mapping[str, Any] | None = None) -> pl.LazyFrame:
    """The rows of an output made before.

    Raises:
        UnreadableInputError: there is none.
    """
    folder = _Remote(where, options or {}) if is_url(where) else _Local(where)
    text = folder.get_manifest()
    if not text:
        raise UnreadableInputError(
            public(where), "no output of fleet", f"Looked for {public(where)}{MANIFEST}."
        )
    return _scan(folder, _parsed(text, public(where))["parts"])


def _scan(folder: _Local | _Remote, parts: Iterable[Mapping[str, Any]]) -> pl.LazyFrame:
    files = [folder.readable(part["name"]) for part in parts]
    if not files:
        return pl.LazyFrame(schema=schema.polars_schema("fleet"))
    return pl.concat([pl.scan_parquet(file) for file in files])


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        known = json.loads(text)
        if {"asked", "parts"} <= set(known):
            return dict(known)
    except (ValueError, TypeError):
        pass
    raise BadSettingError(
        argument="--output",
        value=name,
        expected=f"an output of fleet; {name}{MANIFEST} is no manifest",
    )


class _Local:
    """A folder of this machine."""

    def __init__(self, where: str) -> None:
        self._path = Path(where).resolve()
        self._manifest = self._path.with_name(self._path.name + MANIFEST)
        if self._path.exists() and not self._path.is_dir():
            raise BadSettingError(
                argument="--output", value=where, expected="a folder: the rows are kept in parts"
            )

    def get_manifest(self) -> str:
        return self._manifest.read_text() if self._manifest.exists() else ""

    def put_manifest(self, text: str) -> None:
        self._write(self._manifest, text.encode())

    def list(self) -> list[str]:
        return sorted(each.name for each in self._path.iterdir()) if self._path.is_dir() else []

    def readable(self, name: str) -> Path:
        part = self._path / name
        if not part.exists():
            raise UnreadableInputError(
                str(part), "no such file, though the manifest lists it",
                "Put it back, or make the output anew: --overwrite",
            )  # fmt: skip
        return part

    def remove(self, name: str) -> None:
        (self._path / name).unlink(missing_ok=True)

    def put(self, name: str, data: bytes) -> None:
        self._write(self._path / name, data)

    def _write(self, place: Path, data: bytes) -> None:
        """Beside the folder, then into its place: whoever reads it sees whole files only."""
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            handle, beside = tempfile.mkstemp(
                dir=self._path.parent, prefix=f".{self._path.name}.", suffix=".partial"
            )
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                # As open() would have made it, not for this user alone.
                Path(beside).chmod(0o666 & ~_umask())
                Path(beside).replace(place)
            finally:
                Path(beside).unlink(missing_ok=True)
        except OSError as err:
            raise UnwritableOutputError(
                str(self._path), err.strerror or str(err), kept=True
            ) from err


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


class _Remote:
    """A prefix of an object store."""

    def __init__(self, where: str, options: Mapping[str, Any]) -> None:
        import fsspec

        self._url = where.rstrip("/")
        self._filesystem, self._path = fsspec.core.url_to_fs(self._url, **options)

    def get_manifest(self) -> str:
        try:
            return str(self._filesystem.cat_file(self._path + MANIFEST).decode())
        except FileNotFoundError:
            return ""
        except Exception as err:
            raise self._failed(err) from err

    def put_manifest(self, text: str) -> None:
        self._put(self._path + MANIFEST, text.encode())

    def list(self) -> list[str]:
        try:
            self._filesystem.invalidate_cache()
            entries = self._filesystem.ls(self._path, detail=False)
        except FileNotFoundError:
            return []
        return sorted(entry.rpartition("/")[2] for entry in entries)

    def readable(self, name: str) -> io.BytesIO:
        try:
            return io.BytesIO(self._filesystem.cat_file(f"{self._path}/{name}"))
        except Exception as err:
            raise self._failed(err) from err

    def remove(self, name: str) -> None:
        self._filesystem.rm_file(f"{self._path}/{name}")

    def put(self, name: str, data: bytes) -> None:
        self._put(f"{self._path}/{name}", data)

    def _put(self, path: str, data: bytes) -> None:
        try:
            self._filesystem.pipe_file(path, data)
        except Exception as err:
            raise self._failed(err) from err

    def _failed(self, err: Exception) -> UnwritableOutputError:
        return UnwritableOutputError(public(self._url), problem_of(err, self._url), kept=True)
