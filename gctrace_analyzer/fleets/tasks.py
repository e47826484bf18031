"""What a worker does: reads the files of a batch, one after the other, to rows."""

from __future__ import annotations

import signal
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.errors import GctraceError, GctraceWarning
from gctrace_analyzer.fleets import names, rows, store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gctrace_analyzer.fleets.store import Item


@dataclass(frozen=True, slots=True)
class How:
    """How files are read: options of `read`, what their paths tell, options for fsspec.

    Neither goes into a representation: workers log the arguments of tasks that fail.
    """

    read: Mapping[str, Any] = field(default_factory=dict, repr=False)
    id: str | None = None
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def known(self, item: Item) -> dict[str, str]:
        """What the item's path tells of its identity."""
        return names.identity(item.name, names.pattern(self.id) if self.id else None)


class UnreachableError(GctraceError):
    """A store did not answer: worth another try, which is Dask's to make."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Files that are read by one task; `patient`: a store that fails is worth another try."""

    items: tuple[Item, ...]
    how: How
    patient: bool = True

    @property
    def bytes(self) -> int:
        """Their size, as far as it is known."""
        return sum(item.size or 0 for item in self.items)


def batch_rows(batch: Batch) -> list[dict[str, Any]]:
    """The rows of all files of a batch.

    Raises:
        UnreachableError: a store did not answer, and the batch is patient.
    """
    found: list[dict[str, Any]] = []
    for item in batch.items:
        found += file_rows(item, batch.how, patient=batch.patient)
    return found


def file_rows(item: Item, how: How, *, patient: bool = False) -> list[dict[str, Any]]:
    """The rows of a file; what cannot be read is a row with its error."""
    known = how.known(item)
    try:
        return _read(item, how, known)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as err:  # Polars' panics are no Exception.
        kind, problem = store.kind_of(err), store.problem_of(err, item.url)
    if kind == "unreachable" and patient:
        # From None: the cause has the address with its secrets, and workers log it.
        raise UnreachableError(f"{item.name}: {problem}") from None
    return [rows.error_row(item, kind, problem, known)]


def _read(item: Item, how: How, known: Mapping[str, str]) -> list[dict[str, Any]]:
    from gctrace_analyzer.entry import read

    origin = store.opened(item, how.storage)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GctraceWarning)
            run = read(origin, **how.read)
        return rows.rows_of(run, item, known)
    finally:
        if not isinstance(origin, str):
            origin.close()


def batches(items: Sequence[Item], how: How, *, files: int, size: int) -> list[Batch]:
    """The items in batches of at most so many files and, unless it is one file, bytes."""
    found: list[Batch] = []
    here: list[Item] = []
    total = 0
    for item in items:
        bytes_ = item.size or 0
        if here and (len(here) >= files or total + bytes_ > size):
            found.append(Batch(tuple(here), how))
            here, total = [], 0
        here.append(item)
        total += bytes_
    return [*found, Batch(tuple(here), how)] if here else found


def dask_setup(_worker: object) -> None:
    """Makes a worker of the embedded cluster ready: Dask calls it (`--preload`).

    Ctrl-C goes to all processes of a terminal, and it is the client's to obey.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import gctrace_analyzer.entry  # noqa: F401  # loaded now, not in the first task
