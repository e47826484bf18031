"""The ways in: from files, from frames."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from gctrace_analyzer import frames, schema, units
from gctrace_analyzer.analysis.cycles import with_metrics
from gctrace_analyzer.analysis.settings import given_settings
from gctrace_analyzer.errors import BadSettingError, UnreadableInputError
from gctrace_analyzer.ingest import processes
from gctrace_analyzer.ingest.clock import Clock, moment
from gctrace_analyzer.ingest.read import Log, ReadOptions, read_log
from gctrace_analyzer.live import Live
from gctrace_analyzer.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from typing import TypeAlias

    from gctrace_analyzer.comparison import Comparison, Sweep
    from gctrace_analyzer.ingest.sources import Input, SourceFacts

    Runs: TypeAlias = Input | Run | Sequence[Input | Run]

_Frame = TypeVar("_Frame")


def read(
    *origins: Input,
    strict: bool = False,
    kind: str | None = None,
    columns: Sequence[str] | None = None,
    year: int | None = None,
    tz: str | None = None,
    start: str | datetime | None = None,
    gogc: str | float | None = None,
    memory_limit: str | float | None = None,
    container_limit: str | float | None = None,
    cpu_limit: float | None = None,
    go_version: str | None = None,
    ballast: str | float | None = None,
    off_heap: str | float | None = None,
    unpack_limit: str | float | None = None,
    progress: Callable[[SourceFacts], None] | None = None,
) -> Run:
    """Reads the logs of one service.

    Args:
        origins: paths, `-` for standard input, or open files; several are parts of one log in
            this order. Compressed (gz, xz, bz2, zst) or not is told by content.
        strict: a line that looks like the runtime's and cannot be read is an error.
        kind: what the inputs are, if they should not be asked (`ingest.sniff.KINDS`).
        columns: names of the columns of a table of MemStats that has none.
        year: the year of the first line, for stamps that have none.
        tz: the zone of stamps that name none, such as `Europe/Berlin`.
        start: when the first program started, for a log without stamps.
        gogc: GOGC the program ran with, in percent or `off`.
        memory_limit: its GOMEMLIMIT: a size with its unit, or MiB.
        container_limit: the memory its container or unit may have.
        cpu_limit: the CPUs it may have.
        go_version: the Go it was built with, as `1.22`.
        ballast: the ballast it keeps.
        off_heap: memory of the process that Go does not count (cgo, mmap), as `200MiB`.
        unpack_limit: the most an input may unpack to, as `64GiB`.
        progress: called after each few megabytes with the facts of the input so far.

    Raises:
        UnreadableInputError: an input is missing, a folder, or not a log; with `strict`, also
            when a line could not be read.
        NoDataError: the inputs are empty, or nothing in them is the Go runtime's.
    """
    if not origins:
        raise BadSettingError(
            argument="origins", value="nothing", expected="at least one path, - or open file"
        )
    how = _how(
        strict=strict,
        kind=kind,
        columns=columns,
        year=year,
        tz=tz,
        start=start,
        unpack_limit=unpack_limit,
    )
    given = given_settings(
        gogc, memory_limit, container_limit, cpu_limit, go_version, ballast, off_heap
    )
    return Run(read_log(origins, how, progress=progress), given)


def live(
    *,
    year: int | None = None,
    tz: str | None = None,
    start: str | datetime | None = None,
    gogc: str | float | None = None,
    memory_limit: str | float | None = None,
    container_limit: str | float | None = None,
    cpu_limit: float | None = None,
    go_version: str | None = None,
    ballast: str | float | None = None,
    off_heap: str | float | None = None,
) -> Live:
    """What is being written now, to be fed piece by piece; the options are those of `read`."""
    given = given_settings(
        gogc, memory_limit, container_limit, cpu_limit, go_version, ballast, off_heap
    )
    return Live(how=_how(year=year, tz=tz, start=start), settings=given)


def _how(
    *,
    strict: bool = False,
    kind: str | None = None,
    columns: Sequence[str] | None = None,
    year: int | None = None,
    tz: str | None = None,
    start: str | datetime | None = None,
    unpack_limit: str | float | None = None,
) -> ReadOptions:
    begun = moment(start) if isinstance(start, str) else start
    return ReadOptions(
        strict=strict,
        kind=kind,
        columns=columns,
        clock=Clock(year=year, tz=tz, start=begun),
        unpack_limit=None
        if unpack_limit is None
        else round(units.size_mib(unpack_limit, argument="unpack_limit") * units.MIB),
    )


def cycles(*origins: Input, strict: bool = False) -> pl.DataFrame:
    """The cycles of a log as a Polars frame (`schema.CYCLES`): `read(…).cycles`.

    Raises:
        GctraceError: as `read`.
    """
    return read(*origins, strict=strict).cycles


def compare(before: Runs, after: Runs) -> Comparison:
    """Two sides of a change: what is better, worse, or noise.

    Args:
        before: a run, a path, a pattern such as `before-*.log`, or several of them: each run
            and each path is one run of the same program under the same setting.
        after: the other side, likewise.

    Raises:
        NoDataError: a run has no cycle.
        GctraceError: as `read`.

    >>> found = compare("samples/steady-go1.26.log", "samples/ballast-go1.26.log")
    >>> found.rows()["gc_per_s"]["verdict"]
    'better'
    """
    from gctrace_analyzer.comparison import between
    from gctrace_analyzer.sides import Side

    sides = [Side(_label(side, name), runs_of(side)) for side, name in (
        (before, "before"), (after, "after"),
    )]  # fmt: skip
    return between(*sides)


def sweep(settings: Mapping[str, Runs]) -> Sweep:
    """Several settings of one program, each with one or more runs; the best is marked.

    Args:
        settings: what `compare` takes as a side, by the setting's name.

    Raises:
        BadSettingError: fewer than two settings.
        NoDataError: a run has no cycle.
        GctraceError: as `read`.
    """
    from gctrace_analyzer.comparison import over
    from gctrace_analyzer.sides import Side

    if len(settings) < 2:
        raise BadSettingError(
            argument="settings", value=f"{len(settings)} setting", expected="two or more"
        )
    return over([Side(name, runs_of(side)) for name, side in settings.items()])


def runs_of(side: Runs, **settings: Any) -> list[Run]:
    """A side's runs: those given, and one for each path and each file of a pattern.

    Args:
        side: a run, path, pattern or open file, or several of them.
        settings: as `read` takes them, for what must be read.

    Raises:
        UnreadableInputError: a pattern that no file has.
        GctraceError: as `read`.
    """
    several: list[Any] = list(side) if isinstance(side, (list, tuple)) else [side]
    return [
        each if isinstance(each, Run) else read(each, **settings)
        for one in several
        for each in _expanded(one)
    ]


def _expanded(origin: Input | Run) -> list[Any]:
    if not isinstance(origin, str) or not glob.has_magic(origin) or Path(origin).exists():
        return [origin]
    found = sorted(glob.glob(origin, recursive=True))  # noqa: PTH207 (patterns may be absolute)
    if not found:
        raise UnreadableInputError(
            origin, "no file has such a name", "Quote the pattern, and look where you are."
        )
    return list(found)


def _label(side: Runs, otherwise: str) -> str:
    return Path(side).name if isinstance(side, str) and not glob.has_magic(side) else otherwise


def from_frame(frame: Any) -> Run:
    """A run from a pandas, polars or Arrow frame with the columns of `cycles`.

    Columns it lacks are null; rows are in the order of the log. Processes are told apart
    anew if there is no `process` column.

    Raises:
        MissingColumnsError: there is no `gc_num`.
    """
    table = frames.cycles_of(frame)
    if table["process"].has_nulls():
        table = table.with_columns(processes.process_of([table])[0].alias("process"))
    tables = {
        name: pl.DataFrame(schema=schema.polars_schema(name)) for name in schema.LOG_TABLES
    }
    tables |= {"cycles": table, "processes": processes.processes(table)}
    return Run(Log(tables, (), {}, {}))


def add_metrics(frame: _Frame) -> _Frame:
    """The frame with the columns derived cycle by cycle (`schema.METRICS`).

    Args:
        frame: pandas, polars (eager or lazy) or Arrow, with the columns of `cycles`; the
            result is of the same kind.

    Raises:
        MissingColumnsError: a column the calculation needs is absent.
    """
    return frames.same_kind(frame, with_metrics)
