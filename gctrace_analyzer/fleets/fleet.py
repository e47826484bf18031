"""Reads the logs of many processes into one frame: the public function `fleet`."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import shutil
import tempfile
import warnings
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import polars as pl

from gctrace_analyzer import units
from gctrace_analyzer.analysis.settings.known import ProgramFacts
from gctrace_analyzer.errors import (
    BadSettingError,
    GctraceWarning,
    MissingInputError,
    NoDataError,
    UnreadableInputError,
)
from gctrace_analyzer.fleets import identity, inputs, manifest
from gctrace_analyzer.fleets.cluster import connected
from gctrace_analyzer.fleets.output import Output
from gctrace_analyzer.fleets.scheduler import FleetRun, RunHere
from gctrace_analyzer.fleets.stretches import STRETCH_BYTES
from gctrace_analyzer.fleets.worker import WorkerOptions, rows_here
from gctrace_analyzer.ingest.read import InputOptions
from gctrace_analyzer.ingest.sources import is_server
from gctrace_analyzer.prometheus.access import QuestionOptions, without_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from distributed import Client

    from gctrace_analyzer.fleets.inputs import Item
    from gctrace_analyzer.run import Run

_FEW, _FEW_BYTES = 100, 16 << 20
"""Number and size of files that are read faster than processes start."""

WORST = 3
"""Processes of a server whose samples are read."""


class FleetKwargs(InputOptions, ProgramFacts, QuestionOptions, total=False):
    """The options of `read` that `fleet` takes: for files, or for a server."""


def fleet(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    client: Client | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    memory: str | None = None,
    output: str | os.PathLike[str] | None = None,
    id: str | None = None,
    overwrite: bool = False,
    retry_errors: bool = False,
    ignore: Sequence[str | os.PathLike[str]] = (),
    storage_options: Mapping[str, object] | None = None,
    stretch: str | float = f"{STRETCH_BYTES >> 20}MiB",
    progress: Callable[[Any], None] | None = None,
    worst: int = WORST,
    **read: Unpack[FleetKwargs],
) -> pl.LazyFrame:
    """Reads the logs of many processes in parallel; returns one row each (`schema.FLEET`).

    The frame prints the answers that its rows give, as the command does.

    Instead of files it also takes the address of a Prometheus server, which computes the rows.

    Without `client` and `scheduler`, a local Dask cluster of processes is started and stopped. A
    few small files are read in this process one by one, and so are all files without Dask.

    Args:
        paths: files, folders, globs and URLs (`s3://`, `gs://`, `abfs://`, `http(s)://`), or
            the address of one server, `prometheus+http://…`.
        client: an existing `distributed.Client`.
        scheduler: the address of a Dask scheduler, such as `tcp://10.0.0.5:8786`.
        workers: the number of local processes; by default one per processor.
        memory: the memory limit of each of them (default: 1GiB).
        output: a folder for the Parquet files, or a URL. The same call with the same output
            resumes an interrupted run. By default a temporary folder.
        id: how to read identity from paths, such as `{service}/{pod}.log`.
        overwrite: discard what is in the output already.
        retry_errors: read files again that could not be read before.
        ignore: files and folders to skip in folders and globs, such as reports and outputs of
            earlier runs. `output` is always skipped.
        storage_options: options for fsspec; by default credentials come from the environment.
        stretch: longer files are read in stretches of this size, in parallel unless they are
            compressed. A worker needs about 12 times this much memory. With `year` or `start`,
            files are read whole.
        progress: called with a `Progress` as results arrive, or with an `Asking` of a server.
        worst: how many of a server's worst processes are read sample by sample, and get
            recommendations.
        read: options of `read` for all files, such as `container_limit="2GiB"`, and options for a
            server: `match`, `since` (by default the last 6 hours) and others.

    Raises:
        UnreadableInputError: no file is found, or a store or scheduler does not answer.
        MissingExtraError: Dask or the library for a store is not installed.
        BadSettingError: an option is invalid, or the output was made with other options.
        FleetStoppedError: the scheduler or the store was lost; finished files are kept.
    """
    several = [paths] if isinstance(paths, (str, os.PathLike)) else [*paths]
    where = os.fspath(output) if output is not None else _temporary_folder()
    of_server = [name for name in read if name in QuestionOptions.__annotations__]
    asked = {name: read.pop(name) for name in of_server}  # type: ignore[misc]  # its own keys
    if any(is_server(os.fspath(path)) for path in several):
        from gctrace_analyzer.fleets.server_fleet import fleet_of_server

        if len(several) > 1:
            raise BadSettingError(
                "inputs", f"{len(several)} inputs", "one server, or files without a server"
            )
        return fleet_of_server(
            os.fspath(several[0]),
            where,
            worst=worst,
            overwrite=overwrite,
            progress=progress,
            server=asked,  # type: ignore[arg-type]  # it has the keys of QuestionOptions only
            facts=read,
        )
    if asked:
        raise without_server(asked)
    _validate(read, id, memory)
    options = storage_options or {}
    left_out = [where, *(os.fspath(path) for path in ignore)]
    own = [*left_out, *(f"{path.rstrip('/')}{manifest.SUFFIX}" for path in left_out)]
    items, unmatched = inputs.find([os.fspath(path) for path in several], options, own)
    if unmatched or not items:
        raise UnreadableInputError(
            ", ".join(unmatched) or "the list of files",
            "no file found",
            "Check the path or pattern.",
        )
    gone = [
        item for item in items if not (identity.is_url(item.url) or os.path.lexists(item.url))
    ]
    if len(gone) == len(items):
        named = ", ".join(item.name for item in gone[:3])
        raise MissingInputError(named, "no such file", f"Looked for it in {Path.cwd()}.")
    size = round(units.size_mib(stretch, argument="stretch") * units.MIB)
    target = Output(
        where,
        {
            "id": id,
            "read": {name: str(value) for name, value in read.items() if value},
            "stretch": size,
        },
        storage_options=options,
        overwrite=overwrite,
        retry=retry_errors,
    )
    target.forget_changed(items)
    if others := sorted(target.done - {item.name for item in items}):
        warnings.warn(
            GctraceWarning(
                f"{target.name} also has the rows of {len(others):,} other "
                f"{'file' if len(others) == 1 else 'files'}, such as {others[0]}"
            ),
            stacklevel=2,
        )
    how = WorkerOptions(read, id, options, size)
    if all(item.name in target.done for item in items):
        return _finished(target, items, how)
    asks_for_workers = any(given is not None for given in (client, scheduler, workers, memory))
    few = len(items) <= _FEW and sum(item.size or 0 for item in items) <= _FEW_BYTES
    if not asks_for_workers and (few or find_spec("distributed") is None):
        RunHere(None, target, items, how, progress).run()
        return _finished(target, items, how)
    with connected(client, scheduler, workers, memory) as connection:
        FleetRun(connection, target, items, how, progress).run()
    return _finished(target, items, how)


def _finished(target: Output, items: Sequence[Item], how: WorkerOptions) -> pl.LazyFrame:
    """Reads kills again together with the log of the program that was killed."""
    known = {item.name: item for item in items}
    rows = target.frame().select("file", "process", "service", "oom_kills", "parts").collect()
    alone = rows.filter(
        pl.col("process").is_null()
        & (pl.col("oom_kills") > 0)
        & pl.col("file").is_in([*known])
        & ~pl.col("file").is_in(rows["parts"].explode().drop_nulls().to_list())
    ).drop_nulls("service")
    name = pl.col("service").str.split("/").list.last()
    in_folder: dict[str, list[Item]] = {}
    for file in rows.filter(pl.col("process").is_not_null())["file"].unique():
        if file in known:
            in_folder.setdefault(_folder(known[file]), []).append(known[file])
    for file, service, kills in alone.select("file", "service", "oom_kills").iter_rows():
        same = rows.filter(pl.col("process").is_not_null() & (name == service))
        logs = [known[name] for name in same["file"].unique() if name in known]
        kill = known[file]
        log = logs[0] if len(logs) == 1 else _log_of_pod(logs, kill, how)
        if log is None and not logs:
            log = _killed_log(in_folder.get(_folder(kill), []), kill, how)
        if log is None:
            continue
        both = _with_kill(log, kill)
        own = rows_here(both, how)
        if sum(row["oom_kills"] or 0 for row in own) == kills:
            target.replace(own, len(items))
    target.finish(len(items))
    return target.frame()


def _with_kill(log: Item, kill: Item) -> Item:
    return replace(log, parts=(*kill.parts, replace(kill, parts=()), *log.parts))


def _read(item: Item, how: WorkerOptions) -> Run:
    from gctrace_analyzer.api import read

    with inputs.all_opened(item, how.storage) as files:
        return read(*files, **how.read)


def _folder(item: Item) -> str:
    return item.name.rpartition("/")[0]


def _killed_log(logs: Sequence[Item], kill: Item, how: WorkerOptions) -> Item | None:
    """Returns the only log in the folder of a kill, if their report says that it was killed."""
    if len(logs) != 1:
        return None
    deaths = _read(_with_kill(logs[0], kill), how).report().analysis.post_mortems
    return logs[0] if all(death.process is not None for death in deaths) else None


def _log_of_pod(logs: Sequence[Item], kill: Item, how: WorkerOptions) -> Item | None:
    """Returns the log whose path names the killed pod."""
    if not logs:
        return None
    pods = _read(kill, how).oom_kills["pod_uid"].drop_nulls().unique()
    own = [log for log in logs if any(pod in log.name for pod in pods)]
    return own[0] if len(own) == 1 else None


def _validate(read: Mapping[str, Any], id: str | None, memory: str | None) -> None:
    """Refuses invalid options before any worker is started."""
    from gctrace_analyzer.api import read as read_log

    if id is not None:
        identity.pattern(id)
    if memory is not None:
        units.size_mib(memory, argument="memory")
    with contextlib.suppress(NoDataError):
        read_log(io.BytesIO(), **read)


def _temporary_folder() -> str:
    folder = tempfile.mkdtemp(prefix="gctrace-fleet-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
