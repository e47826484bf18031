"""The tasks that workers run: read the files of a batch and return their rows."""

from __future__ import annotations

import gc
import signal
import warnings
from dataclasses import field
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, TypeVar

import polars as pl

from gctrace_analyzer import units
from gctrace_analyzer.analysis.fleet.answers import READ_BEFORE
from gctrace_analyzer.errors import GctraceWarning
from gctrace_analyzer.fleets import fleet_rows, identity, inputs, stretches
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.compression import compression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gctrace_analyzer.fleets.inputs import Item
    from gctrace_analyzer.fleets.stretches import StretchResult
    from gctrace_analyzer.ingest.sources import Source
    from gctrace_analyzer.schema import Row

_Result = TypeVar("_Result")


@frozen
class WorkerOptions:
    """How workers read files.

    Attributes:
        read: options of `read`.
        id: the pattern that reads identity from paths.
        storage: options for fsspec.
        stretch: the size in bytes from which on files are read in stretches.
    """

    # The options are not in the repr, because workers log the arguments of failed tasks.

    read: Mapping[str, Any] = field(default_factory=dict, repr=False)
    id: str | None = None
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)
    stretch: int = stretches.STRETCH_BYTES

    @property
    def can_split(self) -> bool:
        """Whether files may be read in stretches.

        Documents must be read whole. So must logs whose first line has a given year or time,
        because a later stretch does not have that line.
        """
        whole = any(self.read.get(name) for name in ("columns", "year", "start"))
        return self.read.get("kind") in (None, "log") and not whole

    @property
    def unpack_bytes(self) -> int | None:
        """The largest unpacked size of a compressed file, in bytes."""
        limit = self.read.get("unpack_limit")
        return None if limit is None else round(units.size_mib(limit) * units.MIB)

    def identity_of(self, item: Item) -> dict[str, str]:
        """Returns the identity that the item's path gives."""
        return identity.identity(item.name, identity.pattern(self.id) if self.id else None)


class StoreUnreachableError(ConnectionError):
    """A store did not answer; Dask will run the batch again."""


@frozen
class Batch:
    """Files that one task reads, or one part of a long file.

    Attributes:
        items: the files.
        how: how to read them.
        retry: raise an error if the store does not answer, so that Dask runs the batch again.
        part: the number of the part, and how many parts the file has.
    """

    items: tuple[Item, ...]
    how: WorkerOptions
    retry: bool = True
    part: tuple[int, int] | None = None

    @property
    def bytes(self) -> int:
        """The size of the files, as far as known."""
        if self.part is None:
            return sum(item.size or 0 for item in self.items)
        return min(
            self.how.stretch, (self.items[0].size or 0) - self.part[0] * self.how.stretch
        )


def batch_rows(batch: Batch) -> list[Row] | list[StretchResult]:
    """Returns the rows of all files of a batch, or the result of a part of one file.

    Raises:
        StoreUnreachableError: a store did not answer, and the batch is to be retried.
    """
    return _within_a_query(lambda: _batch_rows(batch))


def _within_a_query(work: Callable[[], _Result]) -> _Result:
    """Returns the result of `work`, which a Polars query calls.

    Polars runs each query in another thread and waits for it, except for queries inside another
    query. A small file takes 130 queries of a tenth of a millisecond each: inside one query they
    take a fifth less CPU (measured with Polars 2.1).
    """
    results: list[_Result] = []
    failed: list[BaseException] = []

    def call(frame: pl.DataFrame) -> pl.DataFrame:
        try:
            results.append(work())
        except BaseException as err:  # Polars would wrap it in its own error.
            failed.append(err)
        return frame

    pl.LazyFrame({"_": [0]}).map_batches(call).collect()
    if failed:
        raise failed[0]
    return results[0]


def _batch_rows(batch: Batch) -> list[Row] | list[StretchResult]:
    if batch.part is not None:
        return _or_error_row(batch.items[0], batch, lambda item: _part(item, batch))
    rows: list[Row] = []
    for item in batch.items:
        rows += _or_error_row(item, batch, lambda item: _rows(item, batch.how))
    return rows


def rows_here(item: Item, how: WorkerOptions) -> list[Row]:
    """Returns the rows of a file, read in this process."""
    results = batch_rows(Batch((item,), how, retry=False))
    return [result for result in results if isinstance(result, dict)]


def _or_error_row(item: Item, batch: Batch, work: Callable[[Item], list[Any]]) -> list[Any]:
    """Returns the result of `work`, or a row with the error if the item cannot be read."""
    try:
        with warnings.catch_warnings(action="ignore", category=GctraceWarning):
            return work(item)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as err:  # A panic in Polars is not an Exception.
        kind, problem = inputs.kind_of(err), inputs.problem_of(err, item.url)
    if kind == "no-records":
        problem = inputs.with_form(item, batch.how.storage, problem)
    if kind == "unreachable" and batch.retry:
        # `from None`, because the cause has the URL with its secrets, and workers log it.
        raise StoreUnreachableError(": ".join((item.name, problem))) from None
    return [fleet_rows.error_row(item, kind, problem, batch.how.identity_of(item))]


def _rows(item: Item, how: WorkerOptions) -> list[Row]:
    with inputs.all_opened(item, how.storage) as files:
        return _whole(files, item, how)


def _part(item: Item, batch: Batch) -> list[Row] | list[StretchResult]:
    """Returns the result of a part; a file that cannot be split is all in the first part."""
    how = batch.how
    index, _ = batch.part or (0, 1)
    with inputs.opened(item, how.storage) as file:
        if how.can_split and stretches.is_text_log(file):
            begin = index * how.stretch
            end = min(begin + how.stretch, item.size or 0)
            stretch = stretches.stretch_of_range(file, begin, end)
            return [stretches.analyse(stretch, index, item, how.read, how.identity_of(item))]
        return [] if index else _whole([file], item, how)


def _whole(files: Sequence[IO[bytes]], item: Item, how: WorkerOptions) -> list[Row]:
    """Returns the rows of the open parts of a log; long logs are read in stretches."""
    from gctrace_analyzer.api import read
    from gctrace_analyzer.ingest.sources import Source

    identity_ = how.identity_of(item)
    is_short = item.size is not None and item.size <= how.stretch
    is_small = is_short and not any(map(_compressed, files))
    if not is_small and how.can_split:
        sources = [Source(file, unpack_limit=how.unpack_bytes) for file in files]
        if all(map(stretches.is_log, sources)):
            return _stretches(sources, item, how)
        for file in files:
            file.seek(0)
    return fleet_rows.rows_of(read(*files, **how.read), item, identity_)


def _stretches(sources: Sequence[Source], item: Item, how: WorkerOptions) -> list[Row]:
    identity_ = how.identity_of(item)
    chunks = chain.from_iterable(source.chunks() for source in sources)
    results = [
        stretches.analyse(stretch, index, item, how.read, identity_)
        for index, stretch in enumerate(stretches.stretches_of(chunks, how.stretch))
    ]
    rows = stretches.rows_of_file(results, item, identity_)
    damage = [
        f"{source.facts.damage}{READ_BEFORE}" for source in sources if source.facts.damage
    ]
    for row in rows:
        row["warnings"] = [*(row["warnings"] or []), *damage]
    return rows


def _compressed(file: IO[bytes]) -> bool:
    head = file.read(8)
    file.seek(0)
    return compression(head) is not None


def batches(items: Sequence[Item], how: WorkerOptions, *, files: int, size: int) -> list[Batch]:
    """Groups items into batches of limited size; long files come first, in parts."""
    groups: list[Batch] = []
    group: list[Item] = []
    total = 0
    for item in items:
        bytes_ = item.size or 0
        is_plain = not (item.parts or item.name.endswith((".gz", ".zst", ".xz", ".bz2")))
        if how.can_split and bytes_ > how.stretch and is_plain:
            parts = -(-bytes_ // how.stretch)
            groups += [Batch((item,), how, part=(index, parts)) for index in range(parts)]
            continue
        if group and (len(group) >= files or total + bytes_ > size):
            groups.append(Batch(tuple(group), how))
            group, total = [], 0
        group.append(item)
        total += bytes_
    return [*groups, Batch(tuple(group), how)] if group else groups


def dask_setup(_worker: object) -> None:
    """Prepares a worker of the local cluster; Dask calls it (`preload`).

    Ctrl-C reaches all processes of a terminal, but only the client should act on it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import gctrace_analyzer.api  # noqa: F401  # now rather than in the first task

    # With Python's own 700, searching modules for garbage takes a twelfth of the CPU.
    gc.set_threshold(20_000, *gc.get_threshold()[1:])
    gc.freeze()
