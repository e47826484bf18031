"""Finds the container in the input that runs the program, by the names of both."""

from __future__ import annotations

from datetime import timedelta
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.analysis.settings import program_names
from gctrace_analyzer.analysis.settings.known_programs import is_not_go
from gctrace_analyzer.ingest.evidence.message import BELOW, STATED
from gctrace_analyzer.ingest.evidence.wordings import VIRTUAL
from gctrace_analyzer.ingest.processes import longest_process
from gctrace_analyzer.ingest.rows import distinct, where
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    import polars as pl

    from gctrace_analyzer.schema import Row

_OPTIONS = {
    "gomemlimit_bytes": "memory-limit",
    "memory_limit_bytes": "container-limit",
    "cpu_limit": "cpu-limit",
    "gogc": "gogc",
}
"""The columns of a container's settings, and the options that state them."""


def container_of(containers: pl.DataFrame, processes: pl.DataFrame) -> dict[str, Any] | None:
    """Returns the container that most probably runs the program; None if there is none.

    A container with the program's name comes first, then one with gctrace, then one that was
    OOM-killed, then the one with the most known settings. A setting that containers equal in all
    of this have differently is unknown.
    """
    likely = _likely(containers, _longest(processes))
    return likely[0] | dict.fromkeys(_differing(likely)) if likely else None


def _differing(rows: Sequence[Row]) -> list[str]:
    """Returns the settings that are not the same in all of these containers."""
    by_name = {name: row for row in rows if (name := _name(row))}
    values = [
        # `docker stats` prints the memory of the host as the limit of those without one.
        {"memory_limit_bytes": row["memory_of_host_bytes"]}
        | {name: row[name] for name in _OPTIONS if row[name] is not None}
        for row in by_name.values()
    ]
    return [name for name in _OPTIONS if len({row.get(name) for row in values} - {None}) > 1]


def _likely(containers: pl.DataFrame, longest: Row | None) -> list[Row]:
    """Returns the containers that most probably run the program, the one best known first."""
    rows = [
        row
        for row in containers.iter_rows(named=True)
        # The limit of a group is not that of one container, nor is a limit of virtual memory one of
        # size.
        if row["event"] != BELOW
        and (row["event"] != STATED or any(row[name] is not None for name in _OPTIONS))
        and not VIRTUAL.search(row["error"] or "")
        and (longest is None or _may_run(row, longest))
    ]

    def rank(row: Row) -> tuple[bool, bool, tuple[int, int], int, bool]:
        names = [] if longest is None else program_names.of_process(longest, row["source"])
        own = [row["name"], row["container"]]
        return (
            bool({*own} & {*names} - {None}),
            any(row["pod"] in name for name in names if name and row["pod"]),
            program_names.fullness(names, own),
            program_names.traces(row),
            bool(row["oom_killed"]),
        )

    best = max(map(rank, rows), default=None)
    likely = [row for row in rows if rank(row) == best]
    return sorted(likely, key=lambda row: sum(row[name] is None for name in _OPTIONS))


def _may_run(container: Row, process: Row) -> bool:
    """Returns whether a container may run the program of a process, by names, and else by time."""
    if (agrees := is_of(process, container)) is not None:
        return agrees
    if _begins_with(process, container):
        return not is_not_go(_name(container))
    started, ended, end = process["started_at"], process["ended_at"], container["finished_at"]
    if is_not_go(_name(container)) or not (started and ended):
        return not is_not_go(_name(container))
    first = container["started_at"] if container["restart_count"] == 0 else None
    if first and started < first - _SAME_END:
        return False
    if end and container["oom_killed"] and ended < end - _LONG_BEFORE:
        return False
    # The log may be that of the run after the last end.
    is_next = end and started >= end and container["status"] == "running"
    return not end or is_next or bool(ended <= end + _SAME_END)


def _begins_with(process: Mapping[str, Any], container: Mapping[str, Any]) -> bool:
    """Returns whether a process began with the last run of a container, or right after its end."""
    began, start, end = process["started_at"], container["started_at"], container["finished_at"]
    is_again = bool(began and end) and timedelta() <= began - end <= _RESTART
    return is_same_moment(began, start) or is_again


def is_same_moment(one: datetime | None, other: datetime | None) -> bool:
    """Returns whether two records may be of one start or end; False if a time is unknown."""
    return one is not None and other is not None and abs(one - other) <= _SAME_END


_SAME_END = timedelta(seconds=2)
"""Clocks of two records of one start or end may differ by this."""

_RESTART = timedelta(seconds=5)
"""Time in which a container engine starts a container again, unless it delays that."""

_LONG_BEFORE = timedelta(seconds=60)
"""A log that ends this long before a kill need not be that of the killed program."""


def stated_version(states: pl.DataFrame, processes: pl.DataFrame) -> tuple[str, str] | None:
    """Returns the only Go version that the logs of these processes state, and its source."""
    if states.is_empty():
        return None
    sources = distinct(processes, "source") - {None}
    stated = where(states, states["event"] == STATED).iter_rows(named=True)
    rows = [row for row in stated if row["go_version"] and row["source"] in sources]
    if len({row["go_version"] for row in rows}) != 1:
        return None
    row = rows[0]
    return row["go_version"], f"{PurePath(str(row['source'])).name}:{row['line_no']}"


def of_program(processes: pl.DataFrame) -> list[int]:
    """Returns the longest process, and others of its program, such as those after a restart."""
    names, longest = ("ident", "unit", "container"), _longest(processes) or {}
    return [
        row["process"]
        for row in processes.iter_rows(named=True)
        if all(row[name] == longest[name] for name in names)
    ]


def is_of(process: Mapping[str, Any], container: Mapping[str, Any]) -> bool | None:
    """Returns whether a container runs the program of a process; None if no name shows it.

    The file of a process that began with the container may have any name.
    """
    agrees = None
    for source in (container["source"], process["source"])[
        : 1 + _begins_with(process, container)
    ]:
        agrees = program_names.agree(
            program_names.of_process(process, source),
            [container[name] for name in ("name", "container", "pod")],
            [container[name] for name in ("namespace", "node")],
        )
        if agrees is not False:
            break
    return agrees


def unused_settings(tables: Mapping[str, pl.DataFrame]) -> str | None:
    """Returns a sentence about the settings of containers that are not used, and why."""
    states, processes = tables["container_states"], tables["processes"]
    longest = _longest(processes)
    if longest is None or states.is_empty():
        return None
    if likely := _likely(states, longest):
        names = list(dict.fromkeys(filter(None, map(_name, likely))))
        options = [f"`--{_OPTIONS[name]}`" for name in _differing(likely)]
        if not options:
            return None
        which = f"{', '.join(names[:-1])} or {names[-1]}"
        return (
            f"The log may be of {which}, which have different settings: {', '.join(options)} "
            "states those of the program."
        )
    rows = states.iter_rows(named=True)
    stated = [row for row in rows if {row[name] for name in _OPTIONS} != {None}]
    if not stated:
        return None
    row = stated[0]
    given = [
        f"--{option} {row[name] / MIB:.0f}MiB"
        if name.endswith("_bytes")
        else f"--{option} {row[name]}"
        for name, option in _OPTIONS.items()
        if row[name] is not None
    ]
    why = "it ended while the program of the log went on"
    if is_of(longest, row) is False:
        of = next(filter(None, program_names.of_process(longest, row["source"])))
        why = f"by its name, {PurePath(of).name} is of another program"
    elif is_not_go(_name(row)):
        why = "by its name, it is not written in Go"
    return (
        f"The settings of {_name(row) or row['pod']} ({PurePath(str(row['source'])).name}) are not "
        f"used: {why}. If that is wrong, add `{' '.join(given)}`."
    )


def _name(row: Row) -> str | None:
    name: str | None = row["name"] or row["container"]
    return name


def _longest(processes: pl.DataFrame) -> Row | None:
    own = processes["process"] == (longest_process(processes) or 0)
    return None if processes.is_empty() else where(processes, own).row(0, named=True)
