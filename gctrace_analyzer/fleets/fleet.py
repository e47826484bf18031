"""The way in: many files to one frame."""

from __future__ import annotations

import atexit
import contextlib
import io
import shutil
import tempfile
from typing import TYPE_CHECKING, Any

from gctrace_analyzer import extras, units
from gctrace_analyzer.errors import NoDataError, UnreadableInputError
from gctrace_analyzer.fleets import identity, inputs
from gctrace_analyzer.fleets.cluster import connected
from gctrace_analyzer.fleets.cuts import STRETCH_BYTES
from gctrace_analyzer.fleets.output import Parts
from gctrace_analyzer.fleets.scheduler import Drive, Progress
from gctrace_analyzer.fleets.worker import WorkerOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import polars as pl


def fleet(
    paths: str | Path | Sequence[str | Path],
    *,
    client: Any = None,
    scheduler: str | None = None,
    workers: int | None = None,
    memory: str | None = None,
    output: str | Path | None = None,
    id: str | None = None,
    overwrite: bool = False,
    retry_errors: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    stretch: str | float = f"{STRETCH_BYTES >> 20}MiB",
    progress: Callable[[Progress], None] | None = None,
    **read: Any,
) -> pl.LazyFrame:
    """The processes in many files, a row each (`schema.FLEET`), read by a Dask cluster.

    Without `client` and `scheduler` a local cluster of processes is started for the time. A
    script that does so needs `if __name__ == "__main__":`, as with every use of processes.

    Args:
        paths: files, folders, globs and addresses (`s3://`, `gs://`, `abfs://`, `http(s)://`).
        client: a `distributed.Client` to use.
        scheduler: the address of a Dask scheduler, such as `tcp://10.0.0.5:8786`.
        workers: processes of the local cluster; all processors if left out.
        memory: the most each of them may use (default: 1GiB).
        output: a folder for the Parquet parts, or an address; the same call with the same
            output goes on where an earlier one ended. Left out: a temporary folder.
        id: what paths tell, as `{service}/{pod}.log`.
        overwrite: forget what is in the output.
        retry_errors: look again at files that could not be read before.
        storage_options: for fsspec; else credentials come from the environment.
        stretch: longer files are read in stretches of this size, side by side if they are no
            archives; what a worker needs is some 12 times this.
        progress: called as results come.
        read: options of `read` that hold for all files, such as `container_limit="2GiB"`.

    Raises:
        UnreadableInputError: nothing is named, or a store or scheduler does not answer.
        MissingExtraError: Dask or the library of a store is not installed.
        BadSettingError: an option that cannot be, or an output made with other ones.
        FleetStoppedError: scheduler or store were lost; what was done is in the output.
    """
    several = [paths] if isinstance(paths, str) or not hasattr(paths, "__iter__") else paths
    for library in ("dask", "distributed", "fsspec"):
        extras.load(library)
    _checked(read, id, memory)
    options = storage_options or {}
    items, nothing = inputs.found([str(path) for path in several], options)
    if nothing or not items:
        raise UnreadableInputError(
            ", ".join(nothing) or "the list of files", "no file there", "Look at the pattern."
        )
    size = round(units.size_mib(stretch, argument="stretch") * units.MIB)
    where = str(output) if output is not None else _temporary()
    parts = Parts(
        where,
        {
            "id": id, "read": {name: str(value) for name, value in read.items() if value},
            "stretch": size,
        },
        options=options, overwrite=overwrite, retry=retry_errors,
    )  # fmt: skip
    how = WorkerOptions(read, id, options, size)
    if all(item.name in parts.done for item in items):
        parts.finish(len(items))
        return parts.frame()
    with connected(client, scheduler, workers, memory) as reached:
        Drive(reached, parts, items, how, progress).run()
    return parts.frame()


def _checked(read: Mapping[str, Any], id: str | None, memory: str | None) -> None:
    """Refuses now what no file could be read with."""
    from gctrace_analyzer.api import read as read_log

    if id is not None:
        identity.pattern(id)
    if memory is not None:
        units.size_mib(memory, argument="memory")
    with contextlib.suppress(NoDataError):
        read_log(io.BytesIO(), **read)


def _temporary() -> str:
    folder = tempfile.mkdtemp(prefix="gctrace-fleet-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
