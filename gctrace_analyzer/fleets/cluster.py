"""Connects to Dask workers: local processes, a scheduler, or an existing client."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from gctrace_analyzer import __version__, extras
from gctrace_analyzer.errors import BadSettingError, UnreadableInputError

MEMORY = "1GiB"
"""Memory limit per worker: enough for any file, because long files are read in sections."""

CONNECT_S = 30
"""Seconds to wait for a scheduler, and for its first worker."""

SETTINGS: dict[str, object] = {
    # Give up a task after two workers have died; its files are then tried one by one.
    "distributed.scheduler.allowed-failures": 1,
    # One task at a time on each worker, so that a crash is attributed to the right one.
    "distributed.scheduler.worker-saturation": 1.0,
    # A worker that has not responded for this long is considered dead.
    "distributed.scheduler.worker-ttl": "60s",
    # Dask's profiler samples every stack each 10 ms and keeps the samples: this takes 5 % of the
    # CPU, and 50 KiB per file that are never freed.
    "distributed.worker.profile.enabled": False,
    # Dask gives up a dead worker that has not restarted within this time (default: 15 s). On a busy
    # machine the restart takes longer, and no worker would be left.
    "distributed.deploy.lost-worker-timeout": "10m",
    # Polars gets one thread in each worker, because the workers already run in parallel.
    "distributed.nanny.pre-spawn-environ.POLARS_MAX_THREADS": "1",
    # A section needs 0.2 GiB of memory for half a second. By default, most of it is returned to the
    # kernel and requested again several times per section, page by page, which takes a quarter of
    # the CPU. Instead, freed memory is kept for the next section, in pages of 2 MiB.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 64 << 20,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 32 << 20,
    "distributed.nanny.pre-spawn-environ.GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    # Shares of the memory limit at which a worker moves results to disk, spills, starts no
    # further task, and is terminated before the kernel kills it.
    "distributed.worker.memory.target": 0.6,
    "distributed.worker.memory.spill": 0.7,
    "distributed.worker.memory.pause": 0.85,
    "distributed.worker.memory.terminate": 0.95,
    "distributed.admin.tick.limit": "30s",
}
"""Dask settings for the local cluster; an existing scheduler has its own."""

POLARS_MEMORY = {"_RJEM_MALLOC_CONF": "thp:always,dirty_decay_ms:5000"}
"""The same for the allocator of Polars, which reads it from the environment of workers. It is
separate, because Polars also sets it in this process, where the first value wins."""

RETRIES = 2
"""How often Dask repeats a batch whose store did not answer."""


@contextmanager
def connected(
    client: Any = None,
    scheduler: str | None = None,
    workers: int | None = None,
    memory: str | None = None,
) -> Iterator[Any]:
    """Yields a Dask client: the given one, one for the scheduler, or one for a local cluster.

    Raises:
        MissingExtraError: Dask is not installed.
        UnreadableInputError: the scheduler does not answer, or has no worker.
        BadSettingError: the workers have another version of this package.
    """
    dask, distributed = extras.load("dask"), extras.load("distributed")
    if client is not None:
        _wait_until_ready(client)
        yield client
    elif scheduler is not None:
        with _quiet(), _client_of(distributed, scheduler) as remote:
            _wait_until_ready(remote)
            yield remote
    else:

        def start() -> Any:
            return distributed.LocalCluster(
                n_workers=workers or os.cpu_count() or 1,
                threads_per_worker=1,
                processes=True,
                memory_limit=memory or MEMORY,
                # Any free port, because Dask warns if its default port is taken.
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
                preload=["gctrace_analyzer.fleets.worker"],
                env=POLARS_MEMORY,
            )

        with (
            _quiet(),
            _main_not_imported(),
            dask.config.set(SETTINGS),
            _uninterrupted(start) as cluster,
            distributed.Client(cluster) as local,
        ):
            yield local


def _uninterrupted(start: Callable[[], Any]) -> Any:
    """Returns the cluster that a function starts; after Ctrl-C, closes it when it is ready.

    Dask prints the stacks of all its processes if it is interrupted while it starts. A second
    Ctrl-C does not wait for it.
    """
    started: Future[Any] = Future()

    def run() -> None:
        if hasattr(signal, "pthread_sigmask"):
            from multiprocessing import resource_tracker

            # It is started when the first worker needs it, and then unblocks SIGINT.
            resource_tracker.ensure_running()
            # Workers inherit this. They also ignore SIGINT themselves, but only once they run.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            started.set_result(start())
        except BaseException as err:
            started.set_exception(err)

    threading.Thread(target=run, daemon=True).start()
    try:
        return started.result()
    except KeyboardInterrupt:
        with contextlib.suppress(Exception):
            started.result().close()
        raise


@contextmanager
def _main_not_imported() -> Iterator[None]:
    """Hides from new processes which script was started, while the block runs.

    Workers do not need the script. Otherwise each would run it again up to the call of `fleet`,
    unless `if __name__ == "__main__"` guards the call (get_preparation_data in
    multiprocessing/spawn.py).
    """
    main: dict[str, object] = vars(sys.modules["__main__"])
    names = ("__file__", "__spec__")
    hidden: dict[str, object] = {name: main[name] for name in names if name in main}
    main.pop("__file__", None)
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(hidden)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences Dask's logger while the block runs; this package reports what matters."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _client_of(distributed: Any, scheduler: str) -> Iterator[Any]:
    try:
        client = distributed.Client(scheduler, timeout=CONNECT_S)
    except (OSError, ValueError) as err:
        raise UnreadableInputError(
            scheduler,
            "no scheduler answers at this address",
            "Start one with `dask scheduler`, and workers with `dask worker ADDRESS`.",
        ) from err
    try:
        yield client
    finally:
        client.close(timeout=2)


def _wait_until_ready(client: Any) -> None:
    """Waits for a worker, and checks the version of this package on all of them."""
    try:
        client.wait_for_workers(1, timeout=CONNECT_S)
    except TimeoutError as err:
        address = str(client.scheduler.address)
        raise UnreadableInputError(
            address,
            f"no worker connected within {CONNECT_S} s",
            f"Start one: dask worker {address} --nthreads 1 --memory-limit {MEMORY}",
        ) from err
    versions = client.run(_version, on_error="return")
    for address, version in versions.items():
        if version != __version__:
            problem = (
                f"gctrace-analyzer {version}" if isinstance(version, str) else "no usable one"
            )
            raise BadSettingError(
                "scheduler",
                f"{problem} on {address}",
                f"{__version__} on every worker: "
                f"pip install 'gctrace-analyzer[fleet]=={__version__}'",
            )


def _version() -> str:
    return __version__
