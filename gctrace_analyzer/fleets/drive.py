"""Hands batches to Dask, keeps what comes back, and ends well whatever happens.

Queueing, placing and trying again are Dask's. What is ours: a batch that was given up has its
files tried one by one when nothing else runs, so that a file that kills workers is known for
sure and costs no other; and a store that no longer answers stops the run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.errors import FleetStoppedError
from gctrace_analyzer.fleets import cluster, rows, tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gctrace_analyzer.fleets.parts import Parts
    from gctrace_analyzer.fleets.store import Item
    from gctrace_analyzer.fleets.tasks import Batch, How

FILES_AT_ONCE = 16
BYTES_AT_ONCE = 16 << 20
"""A batch: long enough that Dask's millisecond per task is nothing, short enough to lose."""

KEEP_S = 5.0
KEEP_ROWS = 2_000
"""Rows are written after so long, or when there are so many."""

GIVE_UP_AFTER = 3
"""So many batches in a row whose store did not answer, each tried several times."""


@dataclass(slots=True)
class Progress:
    """How far it is; bytes are those of the files looked at in this run."""

    files: int
    done: int = 0
    before: int = 0
    errors: int = 0
    bytes: int = 0
    bytes_in_all: int = 0
    seconds: float = 0.0
    workers: int = 0

    @property
    def files_per_s(self) -> float | None:
        """The rate of this run."""
        return (self.done - self.before) / self.seconds if self.seconds else None

    @property
    def left_s(self) -> float | None:
        """The time that is left at this rate, by bytes where sizes are known."""
        if self.bytes and self.bytes_in_all:
            return self.seconds * (self.bytes_in_all - self.bytes) / self.bytes
        if self.done > self.before:
            return self.seconds * (self.files - self.done) / (self.done - self.before)
        return None


class Drive:
    """One run over the files that an output does not have yet."""

    def __init__(
        self,
        client: Any,
        parts: Parts,
        items: Sequence[Item],
        how: How,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._client, self._parts, self._how = client, parts, how
        self._tell = progress or (lambda _: None)
        self._todo = [item for item in items if item.name not in parts.done]
        self._items = {item.name: item for item in items}
        self._rows: list[rows.Row] = []
        self._held: set[str] = set()
        self._kept_at = self._begun_at = time.monotonic()
        before = len(items) - len(self._todo)
        self.progress = Progress(
            len(items), done=before, before=before,
            bytes_in_all=sum(item.size or 0 for item in self._todo),
        )  # fmt: skip

    def run(self) -> None:
        """Looks at every file.

        Raises:
            FleetStoppedError: the scheduler or the store was lost; what was done is kept.
            KeyboardInterrupt: likewise.
        """
        try:
            suspects = self._together()
            self._one_by_one(suspects)
        finally:
            # Also when it is broken off: nothing that was done is to be done again.
            self._keep()
        self._parts.finish(len(self._items))

    def _together(self) -> list[Item]:
        """Most files, in batches; gives those of batches that were given up."""
        many = tasks.batches(self._todo, self._how, files=self._per_batch(), size=BYTES_AT_ONCE)
        suspects: list[Item] = []
        silent = 0
        for batch, outcome in self._outcomes(many, retries=cluster.RETRIES):
            if isinstance(outcome, list):
                self._add(batch.items, outcome)
                silent = 0
                continue
            suspects += batch.items
            silent += isinstance(outcome, tasks.UnreachableError)
            if silent >= GIVE_UP_AFTER:
                raise self._stopped(
                    f"The store does not answer any more ({outcome})",
                    "Is it up, and reachable from the workers?",
                )
        return suspects

    def _one_by_one(self, suspects: Sequence[Item]) -> None:
        """Each of the files alone: what kills its worker now is guilty."""
        for item in suspects:
            alone = tasks.Batch((item,), self._how, patient=False)
            for _, outcome in self._outcomes([alone], retries=0):
                found = outcome if isinstance(outcome, list) else [self._crashed(item, outcome)]
                self._add([item], found)

    def _per_batch(self) -> int:
        """Few enough that every worker has several batches."""
        workers = max(len(self._client.nthreads()), 1)
        return min(FILES_AT_ONCE, max(len(self._todo) // (4 * workers), 1))

    def _outcomes(
        self, many: Sequence[Batch], *, retries: int
    ) -> Iterator[tuple[Batch, list[rows.Row] | BaseException]]:
        """Each batch with its rows or what became of it, as they come."""
        from distributed import as_completed

        if not many:
            return
        futures = self._client.map(tasks.batch_rows, many, retries=retries, pure=False)
        batch_of = dict(zip((future.key for future in futures), many, strict=True))
        try:
            arriving = as_completed(
                futures, loop=self._client.loop, with_results=True, raise_errors=False
            )
            del futures
            for future, result in arriving:
                self._check()
                yield batch_of[future.key], _outcome(future, result)
                future.release()
            self._check()
        except (OSError, RuntimeError) as err:
            self._check()
            raise RuntimeError(str(err)) from err

    def _check(self) -> None:
        """Ends the run if the scheduler is gone: its futures would never come."""
        if self._client.status != "running":
            raise self._stopped("The scheduler was lost", "Start it again, with its workers.")

    def _add(self, items: Iterable[Item], found: Iterable[rows.Row]) -> None:
        """Takes the rows of files, unless they are there already."""
        new = {item.name for item in items} - self._parts.done - self._held
        fresh = [row for row in found if row["file"] in new]
        self._rows += fresh
        self._held |= new
        now = time.monotonic()
        told = self.progress
        told.done += len(new)
        told.bytes += sum(self._items[name].size or 0 for name in new)
        told.errors += sum(row["error_kind"] is not None for row in fresh)
        told.seconds = now - self._begun_at
        self._tell(told)
        if len(self._rows) >= KEEP_ROWS or now - self._kept_at >= KEEP_S:
            self._keep()

    def _keep(self) -> None:
        if self._rows:
            self._parts.add(self._rows, len(self._items))
        self._rows, self._held = [], set()
        self._kept_at = time.monotonic()

    def _crashed(self, item: Item, outcome: BaseException) -> rows.Row:
        from distributed import KilledWorker

        known = self._how.known(item)
        if isinstance(outcome, KilledWorker):
            tries = int(outcome.allowed_failures) + 1
            problem = (
                f"the worker died {tries} times reading it alone: out of memory, or a crash"
            )
            return rows.error_row(item, "crashed", problem, known)
        return rows.error_row(item, "bug", f"{type(outcome).__name__}: {outcome}", known)

    def _stopped(self, problem: str, hint: str) -> FleetStoppedError:
        self._keep()
        return FleetStoppedError(
            problem, hint, self.progress.done, self.progress.files, self._parts.name
        )


def _outcome(future: Any, result: Any) -> list[rows.Row] | BaseException:
    """The rows, or the exception of a batch that failed."""
    if isinstance(result, list):
        return result
    error = future.exception() if future.status == "error" else None
    return error if error is not None else RuntimeError(f"{future.status}: {result!r}")
