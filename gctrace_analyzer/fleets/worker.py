"""What a worker does: reads the files of a batch, one after the other, to rows."""

from __future__ import annotations

import signal
import warnings
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from gctrace_analyzer import units
from gctrace_analyzer.errors import GctraceError, GctraceWarning
from gctrace_analyzer.fleets import cuts, identity, inputs, rows, stretches
from gctrace_analyzer.ingest.compression import compression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gctrace_analyzer.fleets.inputs import Item
    from gctrace_analyzer.fleets.rows import Row
    from gctrace_analyzer.fleets.stretches import Piece
    from gctrace_analyzer.ingest.sources import Source


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How files are read: options of `read`, what their paths tell, options for fsspec.

    Neither goes into a representation: workers log the arguments of tasks that fail.
    """

    read: Mapping[str, Any] = field(default_factory=dict, repr=False)
    id: str | None = None
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)
    stretch: int = cuts.STRETCH_BYTES

    @property
    def may_cut(self) -> bool:
        """Whether files may be read in stretches: not as documents, which are read whole."""
        return self.read.get("kind") in (None, "log") and not self.read.get("columns")

    @property
    def unpack_bytes(self) -> int | None:
        """The most that a compressed file may unpack to."""
        limit = self.read.get("unpack_limit")
        return None if limit is None else round(units.size_mib(limit) * units.MIB)

    def known(self, item: Item) -> dict[str, str]:
        """What the item's path tells of its identity."""
        return identity.identity(item.name, identity.pattern(self.id) if self.id else None)


class UnreachableError(GctraceError):
    """A store did not answer: worth another try, which is Dask's to make."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Files that are read by one task, or one file's part.

    `part` is its number and how many there are; `patient`: a store that fails is worth another
    try.
    """

    items: tuple[Item, ...]
    how: WorkerOptions
    patient: bool = True
    part: tuple[int, int] | None = None

    @property
    def bytes(self) -> int:
        """Their size, as far as it is known."""
        if self.part is None:
            return sum(item.size or 0 for item in self.items)
        return min(
            self.how.stretch, (self.items[0].size or 0) - self.part[0] * self.how.stretch
        )


def batch_rows(batch: Batch) -> list[Row] | list[Piece]:
    """The rows of all files of a batch, or what a part of one file holds.

    Raises:
        UnreachableError: a store did not answer, and the batch is patient.
    """
    if batch.part is not None:
        return _guarded(batch.items[0], batch, lambda item: _piece(item, batch))
    found: list[Row] = []
    for item in batch.items:
        found += _guarded(item, batch, lambda item: _rows(item, batch.how))
    return found


def rows_here(item: Item, how: WorkerOptions) -> list[Row]:
    """The rows of a file, read here and now: what a batch of it alone gives."""
    found = batch_rows(Batch((item,), how, patient=False))
    return [each for each in found if isinstance(each, dict)]


def _guarded(item: Item, batch: Batch, work: Callable[[Item], list[Any]]) -> list[Any]:
    """What `work` finds; what cannot be read is a row with its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GctraceWarning)
            return work(item)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as err:  # Polars' panics are no Exception.
        kind, problem = inputs.kind_of(err), inputs.problem_of(err, item.url)
    if kind == "unreachable" and batch.patient:
        # From None: the cause has the address with its secrets, and workers log it.
        raise UnreachableError(": ".join((item.name, problem))) from None
    return [rows.error_row(item, kind, problem, batch.how.known(item))]


def _rows(item: Item, how: WorkerOptions) -> list[Row]:
    with inputs.opened(item, how.storage) as file:
        return _whole(file, item, how)


def _piece(item: Item, batch: Batch) -> list[Row] | list[Piece]:
    """A part's piece; of a file that cannot be cut, all rows with the first part."""
    how = batch.how
    index, _ = batch.part or (0, 1)
    with inputs.opened(item, how.storage) as file:
        if how.may_cut and cuts.is_text(file):
            begin = index * how.stretch
            cut = cuts.range_of(file, begin, min(begin + how.stretch, item.size or 0))
            return [stretches.read_cut(cut, index, item, how.read, how.known(item))]
        return [] if index else _whole(file, item, how)


def _whole(file: IO[bytes], item: Item, how: WorkerOptions) -> list[Row]:
    """The rows of an open file, stretch by stretch if it is long."""
    from gctrace_analyzer.api import read
    from gctrace_analyzer.ingest.sources import Source

    known = how.known(item)
    small = item.size is not None and item.size <= how.stretch and not _compressed(file)
    if small or not how.may_cut:
        return rows.rows_of(read(file, **how.read), item, known)
    with Source(file, unpack_limit=how.unpack_bytes) as source:
        if cuts.is_log(source):
            return _stretches(source, item, how)
    file.seek(0)
    return rows.rows_of(read(file, **how.read), item, known)


def _stretches(source: Source, item: Item, how: WorkerOptions) -> list[Row]:
    known = how.known(item)
    found = []
    for index, cut in enumerate(cuts.stretches_of(source, how.stretch)):
        found.append(stretches.read_cut(cut, index, item, how.read, known))
    made = stretches.joined(found, item, known)
    if source.facts.damage:
        for row in made:
            row["warnings"] = [
                *(row["warnings"] or []), f"{source.facts.damage}; what came before was used",
            ]  # fmt: skip
    return made


def _compressed(file: IO[bytes]) -> bool:
    head = file.read(8)
    file.seek(0)
    return compression(head) is not None


def batches(items: Sequence[Item], how: WorkerOptions, *, files: int, size: int) -> list[Batch]:
    """The items in batches of at most so many files and bytes; long ones in parts, first."""
    found: list[Batch] = []
    here: list[Item] = []
    total = 0
    for item in items:
        bytes_ = item.size or 0
        if how.may_cut and bytes_ > how.stretch and not _named_compressed(item):
            parts = -(-bytes_ // how.stretch)
            found += [Batch((item,), how, part=(index, parts)) for index in range(parts)]
            continue
        if here and (len(here) >= files or total + bytes_ > size):
            found.append(Batch(tuple(here), how))
            here, total = [], 0
        here.append(item)
        total += bytes_
    return [*found, Batch(tuple(here), how)] if here else found


def _named_compressed(item: Item) -> bool:
    return item.name.endswith((".gz", ".zst", ".xz", ".bz2"))


def dask_setup(_worker: object) -> None:
    """Makes a worker of the embedded cluster ready: Dask calls it (`--preload`).

    Ctrl-C goes to all processes of a terminal, and it is the client's to obey.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import gctrace_analyzer.api  # noqa: F401  # loaded now, not in the first task
