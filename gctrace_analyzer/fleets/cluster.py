"""The workers: local processes, a scheduler somewhere, or a client somebody has."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gctrace_analyzer import __version__, extras
from gctrace_analyzer.errors import BadSettingError, UnreadableInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY = "1GiB"
"""Per worker: enough for any file, as long ones are analysed in stretches."""

CONNECT_S = 30
"""So long a scheduler and its first worker may take to be there."""

SETTINGS: dict[str, Any] = {
    # A task during which two workers died is given up; its files are then tried one by one.
    "distributed.scheduler.allowed-failures": 1,
    # One task on a worker at a time, so that a death blames no other.
    "distributed.scheduler.worker-saturation": 1.0,
    # A worker that says nothing for so long is taken for dead.
    "distributed.scheduler.worker-ttl": "60s",
    # Dask's own profiler looks at every stack each 10 ms and keeps what it saw: a twentieth of
    # the CPU, and 50 KiB a file that a worker never gives back.
    "distributed.worker.profile.enabled": False,
    # One thread each: the workers are the parallelism.
    "distributed.nanny.pre-spawn-environ.POLARS_MAX_THREADS": "1",
    # Of the memory limit: when results go to disk, when no task is begun, when the worker is
    # ended before the system does it.
    "distributed.worker.memory.target": 0.6,
    "distributed.worker.memory.spill": 0.7,
    "distributed.worker.memory.pause": 0.85,
    "distributed.worker.memory.terminate": 0.95,
    "distributed.admin.tick.limit": "30s",
}
"""Dask's own settings for the embedded cluster; a scheduler elsewhere has its own."""

RETRIES = 2
"""So many more times Dask runs a batch whose store did not answer."""


@contextmanager
def connected(
    client: Any = None,
    scheduler: str | None = None,
    workers: int | None = None,
    memory: str | None = None,
) -> Iterator[Any]:
    """A client: the one given, of the scheduler named, or of an embedded cluster.

    Raises:
        MissingExtraError: Dask is not installed.
        UnreadableInputError: the scheduler does not answer, or has no worker.
        BadSettingError: the workers cannot run our tasks.
    """
    dask, distributed = extras.load("dask"), extras.load("distributed")
    if client is not None:
        _ready(client)
        yield client
    elif scheduler is not None:
        with _reached(distributed, scheduler) as reached:
            _ready(reached)
            yield reached
    else:
        quiet = logging.CRITICAL
        logging.getLogger("distributed").setLevel(quiet)
        with (
            dask.config.set(SETTINGS),
            distributed.LocalCluster(
                n_workers=workers or os.cpu_count() or 1,
                threads_per_worker=1,
                processes=True,
                memory_limit=memory or MEMORY,
                # Any free port: the default one may be taken, which Dask would say.
                dashboard_address="127.0.0.1:0",
                silence_logs=quiet,
                preload=["gctrace_analyzer.fleets.worker"],
            ) as cluster,
            distributed.Client(cluster) as embedded,
        ):
            yield embedded


@contextmanager
def _reached(distributed: Any, scheduler: str) -> Iterator[Any]:
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = distributed.Client(scheduler, timeout=CONNECT_S)
    except (OSError, ValueError) as err:
        raise UnreadableInputError(
            scheduler,
            "no scheduler answers there",
            "Start one with `dask scheduler`, and workers with `dask worker ADDRESS`.",
        ) from err
    try:
        yield client
    finally:
        client.close(timeout=2)


def _ready(client: Any) -> None:
    """Waits for a worker, and asks all of them for their version of this package."""
    try:
        client.wait_for_workers(1, timeout=CONNECT_S)
    except TimeoutError as err:
        address = str(client.scheduler.address)
        raise UnreadableInputError(
            address,
            f"no worker in {CONNECT_S} s",
            f"Start some: dask worker {address} --nthreads 1 --memory-limit {MEMORY}",
        ) from err
    found = client.run(_version, on_error="return")
    for address, version in found.items():
        if version != __version__:
            has = version if isinstance(version, str) else "none that can be loaded"
            raise BadSettingError(
                argument="workers", value=f"{address} has gctrace-analyzer {has}",
                expected=f"{__version__} on every worker: "
                f"pip install 'gctrace-analyzer[fleet]=={__version__}'",
            )  # fmt: skip


def _version() -> str:
    from gctrace_analyzer import __version__

    return __version__
