"""Hands batches to Dask, keeps what comes back, and ends well whatever happens.

Queueing, placing and trying again are Dask's. What is ours: a batch that was given up has its
files tried one by one when nothing else runs, so that a file that kills workers is known for
sure and costs no other; and a store that no longer answers stops the run.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.errors import FleetStoppedError
from gctrace_analyzer.fleets import cluster, rows, stretches, worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gctrace_analyzer.fleets.inputs import Item
    from gctrace_analyzer.fleets.output import Parts
    from gctrace_analyzer.fleets.worker import Batch, WorkerOptions

FILES_AT_ONCE = 16
BYTES_AT_ONCE = 16 << 20
"""A batch: long enough that Dask's millisecond per task is nothing, short enough to lose."""

KEEP_S = 5.0
KEEP_ROWS = 2_000
"""Rows are written after so long, or when there are so many."""

ASK_S = 2.0
"""How often the scheduler is asked for its workers, for the line of progress."""

GIVE_UP_AFTER = 3
"""So many batches in a row whose store did not answer, each tried several times."""


@dataclass(slots=True)
class Progress:
    """How far it is; bytes are of this run, `part_bytes` those of files not yet whole."""

    files: int
    done: int = 0
    before: int = 0
    errors: int = 0
    bytes: int = 0
    bytes_in_all: int = 0
    part_bytes: int = 0
    seconds: float = 0.0
    workers: int = 0

    @property
    def files_per_s(self) -> float | None:
        """The rate of this run."""
        return (self.done - self.before) / self.seconds if self.seconds else None

    @property
    def left_s(self) -> float | None:
        """The time that is left at this rate, by bytes where sizes are known."""
        seen = self.bytes + self.part_bytes
        if seen and self.bytes_in_all:
            return self.seconds * max(self.bytes_in_all - seen, 0) / seen
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
        how: WorkerOptions,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._client, self._parts, self._how = client, parts, how
        self._tell = progress or (lambda _: None)
        self._todo = [item for item in items if item.name not in parts.done]
        self._items = {item.name: item for item in items}
        self._rows: list[rows.Row] = []
        self._pieces: dict[str, dict[int, list[Any]]] = {}
        self._held: set[str] = set()
        self._kept_at = self._begun_at = time.monotonic()
        self._asked_at = -math.inf
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

    def _together(self) -> list[Batch]:
        """Most files, in batches; gives the batches that were given up."""
        many = worker.batches(
            self._todo, self._how, files=self._per_batch(), size=BYTES_AT_ONCE
        )
        suspects: list[Batch] = []
        silent = 0
        for batch, outcome in self._outcomes(many, retries=cluster.RETRIES):
            if isinstance(outcome, list):
                self._take(batch, outcome)
                silent = 0
                continue
            suspects.append(batch)
            silent += isinstance(outcome, worker.UnreachableError)
            if silent >= GIVE_UP_AFTER:
                raise self._stopped(
                    problem=f"The store does not answer any more ({outcome})",
                    hint="Is it up, and reachable from the workers?",
                )
        return suspects

    def _one_by_one(self, suspects: Sequence[Batch]) -> None:
        """Each file, or part of one, alone: what kills its worker now is guilty."""
        for batch in suspects:
            for item in batch.items:
                alone = replace(batch, items=(item,), patient=False)
                for _, outcome in self._outcomes([alone], retries=0):
                    found = (
                        outcome if isinstance(outcome, list) else [self._crashed(item, outcome)]
                    )
                    self._take(alone, found)

    def _take(self, batch: Batch, found: list[Any]) -> None:
        """Takes rows; pieces only when all of their file are there."""
        if batch.part is None:
            self._add(batch.items, found)
            return
        item, (index, count) = batch.items[0], batch.part
        here = self._pieces.setdefault(item.name, {})
        here[index] = found
        self.progress.part_bytes += batch.bytes
        if len(here) < count:
            self._told()
            return
        every = [each for one in here.values() for each in one]
        del self._pieces[item.name]
        self.progress.part_bytes -= item.size or 0
        if ready := [each for each in every if isinstance(each, dict)]:
            # Not to be cut, or a part of it could not be read, and then none of it counts.
            failed = [row for row in ready if row["error_kind"]]
            self._add([item], failed[:1] or ready)
            return
        self._add([item], stretches.joined(every, item, self._how.known(item)))

    def _per_batch(self) -> int:
        """Few enough that every worker has several batches."""
        return min(FILES_AT_ONCE, max(len(self._todo) // (4 * max(self._workers(), 1)), 1))

    def _workers(self) -> int:
        """How many there are; asked for now and then, as the scheduler has to be."""
        now = time.monotonic()
        if now - self._asked_at > ASK_S:
            self._asked_at = now
            info = self._client.scheduler_info(n_workers=-1)
            self.progress.workers = len(info.get("workers", ()))
        return self.progress.workers

    def _outcomes(
        self, many: Sequence[Batch], *, retries: int
    ) -> Iterator[tuple[Batch, list[Any] | BaseException]]:
        """Each batch with its rows or what became of it, as they come."""
        from distributed import as_completed

        if not many:
            return
        futures = self._client.map(worker.batch_rows, many, retries=retries, pure=False)
        batch_of = dict(zip((future.key for future in futures), many, strict=True))
        try:
            arriving = as_completed(  # type: ignore[no-untyped-call]  # Dask has no types here
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
            raise self._stopped(
                problem="The scheduler was lost", hint="Start it again, with its workers."
            )

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
        self._told()
        if len(self._rows) >= KEEP_ROWS or now - self._kept_at >= KEEP_S:
            self._keep()

    def _told(self) -> None:
        self.progress.seconds = time.monotonic() - self._begun_at
        self._workers()
        self._tell(self.progress)

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


def _outcome(future: Any, result: Any) -> list[Any] | BaseException:
    """The rows, or the exception of a batch that failed."""
    if isinstance(result, list):
        return result
    error = future.exception() if future.status == "error" else None
    return error if error is not None else RuntimeError(f"{future.status}: {result!r}")
