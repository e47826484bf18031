"""Submits batches of files to Dask and saves the rows that come back.

Dask queues, places and repeats tasks. This module adds two things. First, when Dask gives up a
batch, its files are read one by one while nothing else runs, so that only the file that crashes
workers is reported as unreadable. Second, the run ends if a store no longer answers.
"""

from __future__ import annotations

import math
import time
import warnings
from asyncio import CancelledError, run_coroutine_threadsafe
from concurrent.futures import wait
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.errors import FleetStoppedError
from gctrace_analyzer.fleets import cluster, fleet_rows, stretches, worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gctrace_analyzer.fleets.inputs import Item
    from gctrace_analyzer.fleets.output import Output
    from gctrace_analyzer.fleets.worker import Batch, WorkerOptions
    from gctrace_analyzer.schema import Row

FILES_AT_ONCE = 16
BYTES_AT_ONCE = 16 << 20
"""The size of a batch: large enough to make Dask's millisecond per task negligible, and so
small that little is lost if a batch fails."""

BATCHES_AT_ONCE = 64
"""Batches fetched at once (about 10 MiB of rows)."""

SAVE_S = 5.0
SAVE_ROWS = 2_000
"""Rows are saved after this many seconds, or as soon as there are this many."""

WORKERS_S = 2.0
"""How often the scheduler is asked for the number of workers."""

_POLL_S = 0.01
_GONE_S = 60.0
"""Seconds that a local cluster may be without workers, which normally restart at once."""

GIVE_UP_AFTER = 3
"""Batches in a row without an answer from the store that end the run."""


@dataclass(slots=True)
class Progress:
    """How far a fleet run has come.

    Attributes:
        files: the total number of files.
        done: the number of files that are in the output.
        before: the number of files that were in the output at the start.
        errors: the number of files that could not be read.
        bytes: the size of the files that this run has finished.
        bytes_in_all: the total size of the files that this run has to read.
        part_bytes: how much of unfinished long files has been read.
        seconds: the time since the start.
        workers: the number of workers.
    """

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
        """Files finished per second in this run."""
        return (self.done - self.before) / self.seconds if self.seconds else None

    @property
    def bytes_read(self) -> int:
        """The bytes that this run has read."""
        return self.bytes + self.part_bytes

    @property
    def left_s(self) -> float | None:
        """The remaining seconds at the present rate, by bytes if sizes are known."""
        if self.bytes_read and self.bytes_in_all:
            left = self.bytes_in_all - self.bytes_read
            return self.seconds * max(left, 0) / self.bytes_read
        if self.done > self.before:
            return self.seconds * (self.files - self.done) / (self.done - self.before)
        return None


class FleetRun:
    """One run over the files that are not in the output yet."""

    def __init__(
        self,
        client: Any,
        output: Output,
        items: Sequence[Item],
        how: WorkerOptions,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._client, self._output, self._how = client, output, how
        self._on_progress = progress or (lambda _: None)
        self._todo = [item for item in items if item.name not in output.done]
        self._items = {item.name: item for item in items}
        self._rows: list[Row] = []
        self._results: dict[str, dict[int, list[Any]]] = {}
        self._unsaved: set[str] = set()
        self._saved_at = self._started_at = time.monotonic()
        self._counted_at = -math.inf
        before = len(items) - len(self._todo)
        self.progress = Progress(
            len(items),
            done=before,
            before=before,
            bytes_in_all=sum(item.size or 0 for item in self._todo),
        )

    def run(self) -> None:
        """Reads every file.

        Raises:
            FleetStoppedError: the scheduler or the store was lost; finished files are kept.
            KeyboardInterrupt: the user pressed Ctrl-C; finished files are kept.
        """
        try:
            suspects = self._run_batches()
            self._run_one_by_one(suspects)
        finally:
            # This happens even if the run is interrupted, so that no finished file is read again.
            self._save()
        self._output.finish(len(self._items))

    def _run_batches(self) -> list[Batch]:
        """Reads the files in batches and returns the batches that Dask gave up."""
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
            silent += isinstance(outcome, worker.StoreUnreachableError)
            if silent >= GIVE_UP_AFTER:
                raise self._stopped(
                    problem=f"The store no longer answers ({outcome})",
                    hint="Is it running, and reachable from the workers?",
                )
        return suspects

    def _run_one_by_one(self, suspects: Sequence[Batch]) -> None:
        """Reads each file of the batches alone: if its worker dies, the file is the cause."""
        for batch in suspects:
            for item in batch.items:
                alone = replace(batch, items=(item,), retry=False)
                for _, outcome in self._outcomes([alone], retries=0):
                    rows_ = (
                        outcome if isinstance(outcome, list) else [self._crashed(item, outcome)]
                    )
                    self._take(alone, rows_)

    def _take(self, batch: Batch, results: list[Any]) -> None:
        """Takes the rows of a batch; parts of a file are joined when all have arrived."""
        if batch.part is None:
            self._add(batch.items, results)
            return
        item, (index, count) = batch.items[0], batch.part
        parts = self._results.setdefault(item.name, {})
        parts[index] = results
        self.progress.part_bytes += batch.bytes
        if len(parts) < count:
            self._report_progress()
            return
        every = [result for part in parts.values() for result in part]
        del self._results[item.name]
        self.progress.part_bytes -= item.size or 0
        if ready := [result for result in every if isinstance(result, dict)]:
            # There are rows instead of parts: either the file cannot be split, or a part could
            # not be read. In the second case the whole file counts as unreadable.
            failed = [row for row in ready if row["error_kind"]]
            self._add([item], failed[:1] or ready)
            return
        self._add([item], stretches.rows_of_file(every, item, self._how.identity_of(item)))

    def _per_batch(self) -> int:
        """Returns the number of files in a batch: every worker should get several batches."""
        return min(FILES_AT_ONCE, max(len(self._todo) // (4 * max(self._workers(), 1)), 1))

    def _workers(self) -> int:
        """Returns the number of workers, asking the scheduler only from time to time."""
        now = time.monotonic()
        if now - self._counted_at > WORKERS_S:
            self._counted_at = now
            info = self._client.scheduler_info(n_workers=-1)
            self.progress.workers = len(info.get("workers", ()))
        return self.progress.workers

    def _outcomes(
        self, many: Sequence[Batch], *, retries: int
    ) -> Iterator[tuple[Batch, list[Any] | BaseException]]:
        """Yields each batch with its rows or its error, as they arrive."""
        from distributed import as_completed

        if not many:
            return
        with warnings.catch_warnings():
            # A hundred thousand files make a large graph, but it is sent only once, in a second.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            futures = self._client.map(worker.batch_rows, many, retries=retries, pure=False)
        batch_of = dict(zip((future.key for future in futures), many, strict=True))
        try:
            # Without results: otherwise Dask waits for ever if a worker died with a batch's rows
            # and Dask then gives up the batch (seen with distributed 2026.8).
            arriving = as_completed(futures, loop=self._client.loop)  # type: ignore[no-untyped-call]  # Dask has no types for it
            del futures
            for ready in self._ready(arriving):
                for future, outcome in zip(ready, self._gathered(ready), strict=True):
                    yield batch_of[future.key], outcome
                    future.release()
                self._check_scheduler()
        except FleetStoppedError:
            raise
        except (OSError, RuntimeError) as err:
            self._check_scheduler()
            raise RuntimeError(str(err)) from err

    def _gathered(self, ready: list[Any]) -> list[list[Any] | BaseException]:
        """Returns the results of finished futures, all rows in one request if possible."""
        if all(future.status == "finished" for future in ready):
            every: list[list[Any] | BaseException] | BaseException = self._received(ready)
            if isinstance(every, list):
                return every
        return [self._received(future) for future in ready]

    def _received(self, futures: Any) -> Any:
        """Returns the results of finished futures, or the exception of the first that failed.

        If a worker has died since, with its results, Dask repeats their batches, and this waits
        for them.
        """

        async def gather() -> Any:
            return await self._client.gather(futures, asynchronous=True)

        received = run_coroutine_threadsafe(gather(), self._client.loop.asyncio_loop)
        self._wait(lambda: bool(wait([received], _POLL_S).done))
        try:
            return received.result()
        except (Exception, CancelledError) as err:
            return err

    def _ready(self, arriving: Any) -> Iterator[list[Any]]:
        """Yields futures as they finish."""
        while not arriving.is_empty():
            self._wait(arriving.has_ready)
            ready = iter(arriving.next_batch(block=False))
            while some := list(islice(ready, BATCHES_AT_ONCE)):
                yield some

    def _wait(self, is_over: Callable[[], bool]) -> None:
        """Waits for what workers do; ends the run if none is left to do it."""
        gone_at = None
        while not is_over():
            time.sleep(_POLL_S)
            self._check_scheduler()
            if not self._is_local or self._workers():
                gone_at = None
                continue
            gone_at = gone_at or time.monotonic()
            if time.monotonic() - gone_at > _GONE_S:
                raise self._stopped(
                    problem="All workers have died and none could be started",
                    hint="Is there enough memory for that many workers?",
                )

    @property
    def _is_local(self) -> bool:
        """Whether the workers were started here; remote ones may still be about to join."""
        from distributed import LocalCluster

        return isinstance(self._client.cluster, LocalCluster)

    def _check_scheduler(self) -> None:
        """Ends the run if the scheduler is lost, because its results would never arrive."""
        if self._client.status != "running":
            raise self._stopped(
                problem="The scheduler was lost", hint="Start it again, with its workers."
            )

    def _add(self, items: Iterable[Item], rows_: Iterable[Row]) -> None:
        """Takes the rows of files that are not in the output yet."""
        new = {item.name for item in items} - self._output.done - self._unsaved
        fresh = [row for row in rows_ if row["file"] in new]
        self._rows += fresh
        self._unsaved |= new
        progress = self.progress
        progress.done += len(new)
        progress.bytes += sum(self._items[name].size or 0 for name in new)
        progress.errors += sum(row["error_kind"] is not None for row in fresh)
        self._report_progress()
        late = time.monotonic() - self._saved_at >= SAVE_S
        if late or len(self._rows) >= SAVE_ROWS:
            self._save()

    def _report_progress(self) -> None:
        self.progress.seconds = time.monotonic() - self._started_at
        self._workers()
        self._on_progress(self.progress)

    def _save(self) -> None:
        if self._rows:
            self._output.add(self._rows, len(self._items))
        self._rows, self._unsaved = [], set()
        self._saved_at = time.monotonic()

    def _crashed(self, item: Item, outcome: BaseException) -> Row:
        from distributed import KilledWorker

        identity = self._how.identity_of(item)
        if isinstance(outcome, KilledWorker):
            tries = int(outcome.allowed_failures) + 1
            problem = (
                f"its worker died {tries} times while reading only this file: out of memory, "
                "or a crash"
            )
            return fleet_rows.error_row(item, "crashed", problem, identity)
        problem = f"{type(outcome).__name__}: {outcome}"
        return fleet_rows.error_row(item, "bug", problem, identity)

    def _stopped(self, problem: str, hint: str) -> FleetStoppedError:
        self._save()
        return FleetStoppedError(
            problem, hint, self.progress.done, self.progress.files, self._output.name
        )


class RunHere(FleetRun):
    """The same in this process without Dask, one file after another."""

    def _workers(self) -> int:
        self.progress.workers = 1
        return 1

    def _outcomes(
        self, many: Sequence[Batch], *, retries: int
    ) -> Iterator[tuple[Batch, list[Any] | BaseException]]:
        del retries
        for batch in many:
            try:
                outcome: list[Any] | BaseException = worker.batch_rows(batch)
            except worker.StoreUnreachableError as err:
                outcome = err
            yield batch, outcome
