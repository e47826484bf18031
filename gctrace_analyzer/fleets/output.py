"""Saves the rows of a fleet run: a folder of Parquet files, and a manifest next to it.

A Parquet file is written to a temporary place and then moved; after that, the manifest is written
in the same way. A file that the manifest does not list is ignored. So a run can be interrupted at
any moment, and the next run resumes from the files in the manifest. (In an object store, a PUT is
atomic anyway.)
"""

from __future__ import annotations

import io
import secrets
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.errors import (
    BadSettingError,
    GctraceError,
    UnreadableInputError,
    UnwritableOutputError,
)
from gctrace_analyzer.files import write_atomically
from gctrace_analyzer.fleets import manifest
from gctrace_analyzer.fleets.identity import is_url, public
from gctrace_analyzer.fleets.inputs import RETRIED, Item, filesystem, problem_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gctrace_analyzer.fleets.fleet_answers import FleetAnswers
    from gctrace_analyzer.fleets.manifest import Manifest, Part

_ROWS, _ERRORS, _RETRIED, _COMPUTED = "rows", "errors", "again", "computed"
"""Kinds of Parquet files: results, unreadable files, files that are tried again later, and rows
computed by a server, which rows from samples replace."""


class Output:
    """Where the rows of a fleet run go, and which files are done already.

    Args:
        where: a folder, created if necessary, or a URL of an object store.
        options: everything that the rows depend on; an output with other options is not resumed.
        storage_options: options for fsspec.
        overwrite: discard what is there.
        retry: also discard the rows of files that could not be read, so that they are read
            again.
        span: the time range of the rows, in seconds since 1970, if a server gives them.

    Raises:
        BadSettingError: something else is there, or it was made with other options.
        MissingExtraError: the library for the store is not installed.
        UnwritableOutputError: it cannot be written.
    """

    def __init__(
        self,
        where: str,
        options: Mapping[str, Any],
        *,
        storage_options: Mapping[str, Any] | None = None,
        overwrite: bool = False,
        retry: bool = False,
        span: tuple[float, float] | None = None,
    ) -> None:
        self.name = public(where)
        self._span = span
        self._folder = _folder(where, storage_options)
        self._options = manifest.options_of(options)
        # Make a deleted folder again.
        again = overwrite or not self._folder.list()
        self._text = "" if again else self._folder.get_manifest()
        self._parts: list[Part] = []
        if self._text:
            existing_output = manifest.load(self._text, self.name)
            self._must_agree(existing_output["asked"])
            self._parts = existing_output["parts"]
        elif not again:
            raise BadSettingError(
                "output",
                self.name,
                "a new folder, or the output of an earlier run; it contains something else",
            )
        kept = {_ROWS, _COMPUTED} if retry else {_ROWS, _COMPUTED, _ERRORS}
        self._parts = [part for part in self._parts if part["kind"] in kept]
        self.done = self._files()
        self._write_manifest(files=None, complete=False)
        self._remove_unlisted()

    def _must_agree(self, made_with: Mapping[str, Any]) -> None:
        different = [
            name for name, value in self._options.items() if made_with.get(name) != value
        ]
        if different:
            raise BadSettingError(
                "output",
                self.name,
                "a new output, because this one was made with different options: "
                f"{', '.join(different)}",
                remedy="overwrite",
            )

    def forget_changed(self, items: Iterable[Item]) -> None:
        """Discards the rows of files whose size or time has changed, so that they are read again.

        If a store or an earlier output does not know the size or time, it counts as unchanged.
        """
        now = {item.name: (item.size, item.modified) for item in items}
        known = self.frame().select("file", "file_bytes", "modified", "parts").collect()
        changed = [
            file
            for file, *then in known.drop("parts").unique().iter_rows()
            if any(
                None not in pair and pair[0] != pair[1]
                for pair in zip(then, now.get(file, ()), strict=False)
            )
        ]
        read_with = pl.col("parts").list.set_intersection(changed).list.len() > 0
        self._forget([*changed, *known.filter(read_with)["file"]])

    def replace(self, rows: Sequence[Mapping[str, Any]], files: int) -> None:
        """Saves rows in place of those of the same files; they keep their size and time."""
        then = {
            row["file"]: {name: row[name] for name in ("file_bytes", "modified")}
            for row in self.frame().collect().iter_rows(named=True)
        }
        self._forget([str(row["file"]) for row in rows])
        self.add([{**row, **then[str(row["file"])]} for row in rows], files)

    def _forget(self, changed: Sequence[str]) -> None:
        if not changed:
            return
        is_kept = ~pl.col("file").is_in(changed)
        listed, self._parts = self._parts, []
        for part in listed:
            rows = _scan(self._folder, [part]).collect()
            kept = rows.filter(is_kept)
            if len(kept) == len(rows):
                self._parts.append(part)
            elif len(kept):
                self._put(part["kind"], kept)
        self.done -= set(changed)
        self._write_manifest(files=None, complete=False)
        self._remove_unlisted()

    def add(self, rows: Sequence[Mapping[str, Any]], files: int) -> None:
        """Saves rows; all rows of a file must be given in the same call.

        Args:
            rows: rows of `schema.FLEET`.
            files: the number of files in the whole run, for the manifest.
        """
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            error = row["error_kind"]
            kind = _ROWS if error is None else _RETRIED if error in RETRIED else _ERRORS
            groups.setdefault(kind, []).append(row)
        for kind, group in groups.items():
            self._put(kind, pl.DataFrame(group, schema=schema.polars_schema("fleet")))
        self.done |= {str(row["file"]) for row in rows}
        self._write_manifest(files=files, complete=False)

    def add_computed(self, rows: pl.DataFrame, files: int) -> None:
        """Saves rows computed by a server; `add` replaces those of a process."""
        self._put(_COMPUTED, rows)
        self.done |= set(rows["file"])
        self._write_manifest(files=files, complete=False)

    def _put(self, kind: str, frame: pl.DataFrame) -> None:
        """Writes a Parquet file, which counts once the manifest is written."""
        name = f"{kind}-{len(self._parts):05d}-{secrets.token_hex(4)}.parquet"
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        self._folder.put(name, buffer.getvalue())
        count = frame["file"].n_unique()
        self._parts.append({"name": name, "kind": kind, "rows": len(frame), "files": count})

    def finish(self, files: int) -> None:
        """Marks the output as complete."""
        self._write_manifest(files=files, complete=True)

    def frame(self) -> pl.LazyFrame:
        """Returns all rows saved so far (`schema.FLEET`)."""
        return _scan(self._folder, self._parts)

    def _files(self) -> set[str]:
        return set(self.frame().select("file").collect()["file"])

    def _write_manifest(self, *, files: int | None, complete: bool) -> None:
        # Two runs with one output would overwrite each other's list of files.
        if self._text and self._folder.get_manifest() != self._text:
            raise UnwritableOutputError(self.name, "another run is writing to it")
        content: Manifest = {
            "asked": self._options,
            "files": files,
            "complete": complete,
            "parts": self._parts,
        }
        if self._span is not None:
            content["span"] = self._span
        text = manifest.dump(content)
        self._folder.put_manifest(text)
        self._text = text

    def _remove_unlisted(self) -> None:
        """Removes files of a run that ended before it could list them."""
        listed = {part["name"] for part in self._parts}
        for name in self._folder.list():
            if name.endswith(".parquet") and name not in listed:
                self._folder.remove(name)


def is_output(where: str) -> bool:
    """Returns whether a folder of this machine is the output of an earlier run."""
    return Path(where.rstrip("/") + manifest.SUFFIX).is_file()


def existing(where: str) -> pl.LazyFrame:
    """Returns the rows of the output of an earlier run.

    Raises:
        UnreadableInputError: there is no such output.
        MissingExtraError: the library for the store is not installed.
    """
    folder = _folder(where, None)
    text = folder.get_manifest()
    name = public(where)
    if not text:
        raise UnreadableInputError(
            name, "not an output of fleet", f"There is no {name}{manifest.SUFFIX}."
        )
    return _scan(folder, manifest.load(text, name)["parts"])


def span_of(where: str, options: Mapping[str, Any]) -> tuple[datetime, datetime] | None:
    """Returns the time range of an unfinished output with the same options; None without one."""
    name, text = public(where), _folder(where, None).get_manifest()
    if not text:
        return None
    kept = manifest.load(text, name)
    if kept.get("complete") or kept["asked"] != manifest.options_of(options):
        return None
    span = kept.get("span")
    return None if span is None else (_moment(span[0]), _moment(span[1]))


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _folder(where: str, storage_options: Mapping[str, Any] | None) -> _Local | _Remote:
    return _Remote(where, storage_options or {}) if is_url(where) else _Local(where)


class FleetRows(pl.LazyFrame):
    """The rows of a fleet (`schema.FLEET`): a lazy Polars frame that prints the answers they give.

    So does a part of the rows. A frame with other columns prints as any lazy frame.
    """

    @property
    def _answers(self) -> FleetAnswers | None:
        # Imported only to print, because loading the templates takes 0.1 s.
        from gctrace_analyzer.fleets.fleet_answers import fleet_answers

        whole = self.collect_schema().names() == [*schema.names("fleet")]
        return fleet_answers(self) if whole else None

    def __str__(self) -> str:
        return super().__str__() if (own := self._answers) is None else str(own)

    def _repr_html_(self) -> str:
        return super()._repr_html_() if (own := self._answers) is None else own._repr_html_()


def _scan(folder: _Local | _Remote, parts: Iterable[Part]) -> FleetRows:
    empty = pl.LazyFrame(schema=schema.polars_schema("fleet"))
    kinds = (_ROWS, _ERRORS, _RETRIED, _COMPUTED)
    several = [
        (part["kind"], folder.readable(part["name"])) for part in parts if part["kind"] in kinds
    ]
    read, computed = (
        # Outputs of earlier versions may lack columns.
        pl.concat(
            [empty, *(pl.scan_parquet(file) for kind, file in several if is_kind(kind))],
            how="diagonal",
        )
        for is_kind in (_COMPUTED.__ne__, _COMPUTED.__eq__)
    )
    if any(kind == _COMPUTED for kind, _ in several):
        read = pl.concat([read, computed.join(read, on="file", how="anti")])
    return cast("FleetRows", FleetRows._from_pyldf(read._ldf))


class _Local:
    """A folder on this machine."""

    def __init__(self, where: str) -> None:
        self._path = Path(where).resolve()
        self._manifest = self._path.with_name(self._path.name + manifest.SUFFIX)
        if self._path.exists() and not self._path.is_dir():
            raise BadSettingError(
                "output",
                where,
                "a folder such as fleet.parquet: rows are saved in several files",
            )

    def get_manifest(self) -> str:
        return self._manifest.read_text() if self._manifest.exists() else ""

    def put_manifest(self, text: str) -> None:
        self._write(self._manifest, text.encode())

    def list(self) -> list[str]:
        return sorted(path.name for path in self._path.iterdir()) if self._path.is_dir() else []

    def readable(self, name: str) -> Path:
        part = self._path / name
        if not part.exists():
            raise UnreadableInputError(
                str(part),
                "no such file, although the manifest lists it",
                "Restore it, or make the output again with",
                argument="overwrite",
            )
        return part

    def remove(self, name: str) -> None:
        (self._path / name).unlink(missing_ok=True)

    def put(self, name: str, data: bytes) -> None:
        self._write(self._path / name, data)

    def _write(self, path: Path, data: bytes) -> None:
        """Writes a file next to the folder and moves it: readers see only complete files."""
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            write_atomically(
                path, lambda file: file.write(data), folder=self._path.parent, sync=True
            )
        except OSError as err:
            problem = err.strerror or str(err)
            raise UnwritableOutputError(str(self._path), problem, kept=True) from err


class _Remote:
    """A prefix in an object store."""

    def __init__(self, where: str, storage_options: Mapping[str, Any]) -> None:
        self._url = where.rstrip("/")
        with self._reported():
            self._filesystem, self._path = filesystem(
                self._url, storage_options, argument="output"
            )

    def get_manifest(self) -> str:
        with self._reported(), suppress(FileNotFoundError):
            return str(self._filesystem.cat_file(self._path + manifest.SUFFIX).decode())
        return ""

    def put_manifest(self, text: str) -> None:
        self._put(self._path + manifest.SUFFIX, text.encode())

    def list(self) -> list[str]:
        with self._reported(), suppress(FileNotFoundError):
            self._filesystem.invalidate_cache()
            entries = self._filesystem.ls(self._path, detail=False)
            return sorted(entry.rpartition("/")[2] for entry in entries)
        return []

    def readable(self, name: str) -> io.BytesIO:
        with self._reported():
            return io.BytesIO(self._filesystem.cat_file(f"{self._path}/{name}"))

    def remove(self, name: str) -> None:
        with self._reported(), suppress(FileNotFoundError):
            self._filesystem.rm_file(f"{self._path}/{name}")

    def put(self, name: str, data: bytes) -> None:
        self._put(f"{self._path}/{name}", data)

    def _put(self, path: str, data: bytes) -> None:
        with self._reported():
            self._filesystem.pipe_file(path, data)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Raises errors of the store as ours; each store has its own error classes."""
        try:
            yield
        except GctraceError:
            raise
        except Exception as err:
            problem = problem_of(err, self._url)
            raise UnwritableOutputError(public(self._url), problem, kept=True) from err
