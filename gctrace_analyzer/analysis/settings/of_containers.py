"""Finds the container in the input that runs the program, by the names of both."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.analysis.settings import program_names
from gctrace_analyzer.ingest.evidence.message import BELOW, STATED
from gctrace_analyzer.ingest.evidence.wordings import VIRTUAL
from gctrace_analyzer.ingest.processes import longest_process
from gctrace_analyzer.ingest.rows import distinct, where
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from gctrace_analyzer.schema import Row

_OF_CONTAINERS = {
    "gomemlimit_bytes": "memory-limit",
    "memory_limit_bytes": "container-limit",
    "cpu_limit": "cpu-limit",
    "gogc": "gogc",
}
"""The columns of a container's settings, and the options that state them."""


def container_of(containers: pl.DataFrame, processes: pl.DataFrame) -> dict[str, Any] | None:
    """Returns the container that most probably runs the program; None if there is none.

    A container with the program's name comes first, then one with gctrace, then one that was
    OOM-killed, then the one with the most known settings. A container named after another program
    is excluded.
    """
    longest = _longest(processes)
    rows = [
        row
        for row in containers.iter_rows(named=True)
        # The limit of a group is not that of one container, nor is a limit of virtual memory one of
        # size.
        if row["event"] != BELOW
        and (row["event"] != STATED or any(row[name] is not None for name in _OF_CONTAINERS))
        and not VIRTUAL.search(row["error"] or "")
        and (longest is None or is_of(longest, row) is not False)
    ]

    def rank(row: dict[str, Any]) -> tuple[bool, bool, tuple[int, int], int, bool, int]:
        names = [] if longest is None else program_names.of_process(longest, row["source"])
        own = [row["name"], row["container"]]
        return (
            bool({*own} & {*names} - {None}),
            any(row["pod"] in name for name in names if name and row["pod"]),
            program_names.fullness(names, own),
            program_names.traces(row),
            bool(row["oom_killed"]),
            sum(row[name] is not None for name in _OF_CONTAINERS),
        )

    return max(rows, key=rank, default=None)


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


def is_of(process: Mapping[str, Any], container: Mapping[str, Any]) -> bool | None:
    """Returns whether a container runs the program of a process; None if no name shows it."""
    return program_names.agree(
        program_names.of_process(process, container["source"]),
        [container[name] for name in ("name", "container", "pod")],
        [container[name] for name in ("namespace", "node")],
    )


def of_other_programs(tables: Mapping[str, pl.DataFrame]) -> str | None:
    """Returns a sentence about containers of other programs, whose settings are not used."""
    states, processes = tables["container_states"], tables["processes"]
    longest = _longest(processes)
    if longest is None or states.is_empty() or container_of(states, processes) is not None:
        return None
    rows = states.iter_rows(named=True)
    stated = [row for row in rows if {row[name] for name in _OF_CONTAINERS} != {None}]
    if not stated:
        return None
    row = stated[0]
    given = [
        f"--{option} {row[name] / MIB:.0f}MiB"
        if name.endswith("_bytes")
        else f"--{option} {row[name]}"
        for name, option in _OF_CONTAINERS.items()
        if row[name] is not None
    ]
    name = row["name"] or row["container"] or row["pod"]
    of = next(filter(None, program_names.of_process(longest, row["source"])))
    return (
        f"The settings of {name} ({PurePath(str(row['source'])).name}) are not used: by its name, "
        f"{PurePath(of).name} is of another program. If it is not, add "
        f"`{' '.join(given)}`."
    )


def _longest(processes: pl.DataFrame) -> Row | None:
    own = processes["process"] == (longest_process(processes) or 0)
    return None if processes.is_empty() else where(processes, own).row(0, named=True)
