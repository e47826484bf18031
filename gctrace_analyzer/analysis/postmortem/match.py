"""Matches a kill to the process in the log that was killed.

Common facts decide, the most certain first: process id, unit, container, pod, name, the name of the
log's file, and the time of the start. If none is known, it is the only process that ended within a
minute before the kill, unless it has the names of another program. Docker's journald driver logs
the process id of dockerd, and process ids inside a container differ from those of the kernel, so
these two kinds of process ids never match. The name of a file alone excludes a log only if the
times do not fit either, or if there are others.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import polars as pl

from gctrace_analyzer.analysis.settings.known_programs import ROLES, is_not_go
from gctrace_analyzer.analysis.settings.of_containers import is_same_moment
from gctrace_analyzer.analysis.settings.program_names import (
    agree,
    carry,
    fullness,
    of_process,
    traces,
)
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.profiles.bundles import age
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from gctrace_analyzer.analysis.postmortem.death import Death
    from gctrace_analyzer.schema import Row

Confidence = Literal["high", "medium", "low"]

NEAR = timedelta(seconds=60)
"""A process that logged nothing for this long before a kill need not be the one killed."""

_CONTAINER_ID = re.compile(r"[0-9a-f]{12,64}")

_COMM_BYTES = 15
"""The kernel truncates the name of a task to this length (TASK_COMM_LEN)."""

_CERTAINTY = ("pid", "unit", "container", "pod", "comm", "file name", "start time")
ONLY_LOG = "only log"
"""What matches a process if the name of its file does not fit, but no other log is there."""

_BY_PLACE = "place in the log"
_UNNAMED = (ONLY_LOG, _BY_PLACE, "only program", "time")
"""What matches a process that has no name in common with what was killed."""

WITH_SWAP = 2.0
"""Ratio of a heap to the limit of a container. Above it, the heap is of another process: by default
Docker allows as much swap as memory."""

_LESS_CERTAIN = ("comm", "file name", "start time")


@frozen
class Match:
    """The process that was killed; `match_by` lists what agrees, the most certain first."""

    process: int
    match_by: tuple[str, ...]
    confidence: Confidence


def match_process(
    kill: Death, processes: pl.DataFrame, containers: Sequence[Row] = ()
) -> Match | None:
    """Returns the process that was killed; None if it is unknown.

    Args:
        kill: the kill.
        processes: `schema.PROCESSES`.
        containers: rows of `schema.CONTAINER_STATES`, to exclude processes of other containers.
    """
    matches: list[tuple[tuple[str, ...], Row]] = []
    rows = [row for row in processes.to_dicts() if not of_neighbour(kill, row, containers)]
    for row in rows:
        if kill.host and row["host"] and kill.host != row["host"]:
            continue
        if lived_after(kill, row):
            continue
        agrees = tuple(_agreeing(kill, row))
        # A child that is not Go wrote no GC cycles, whatever unit it ran in.
        if agrees and (agrees[0] == "pid" or not is_not_go(kill.comm)):
            matches.append((agrees, row))
    if matches:
        best = min((agrees for agrees, _ in matches), key=_rank)
        tied = [row for agrees, row in matches if _rank(agrees) == _rank(best)]
        if best[0] not in _LESS_CERTAIN:
            return Match(tied[-1]["process"], best, "high")
        # In a crash loop, the process that started last is the one that was killed.
        own = _of_one_log(kill, tied)
        return Match(own[-1]["process"], best, "medium") if own else None
    unnamed = [row for row in rows if is_of(kill, row) is None]
    return _only_recent_process(kill, unnamed) or _of_only_log(kill, rows)


def _of_only_log(kill: Death, rows: list[Row]) -> Match | None:
    """Returns the only process of the input, although its file is named after something else.

    A file may have the name of a service, and the kernel that of its program.
    """
    by_file = [row for row in rows if is_of(kill, row | {"source": None}) is None]
    if len(rows) == 1 and (match := _only_recent_process(kill, by_file)):
        return replace(match, match_by=(ONLY_LOG,))
    return None


def _rank(agrees: tuple[str, ...]) -> tuple[int, int]:
    return _CERTAINTY.index(agrees[0]), -len(agrees)


def _of_one_log(kill: Death, rows: list[Row]) -> list[Row]:
    """Returns the processes of the only log that can belong to a kill; empty if several can.

    Replicas share a name, so only the end of a log shows which of them was killed.
    """
    files = [(row, str(row["source"])) for row in rows]
    of_pod = [row for row, file in files if kill.pod and carry([file], kill.pod)]
    previous = [row for row, file in files if "previous" in file.lower()]
    for own in (rows, of_pod, previous, _near(kill, rows)):
        if len({(age(str(row["source"]))[0], row["pod"]) for row in own}) == 1:
            return own
    return []


def is_previous(match: Match, processes: pl.DataFrame) -> bool:
    """Returns whether the file name shows that `kubectl logs --previous` printed the log."""
    own = processes.filter(process=match.process)["source"].cast(pl.String)
    return "previous" in str(own[0]).lower()


def is_of(kill: Death, process: Row) -> bool | None:
    """Returns whether a process belongs to the killed program; None if no name shows it."""
    if kill.is_below or is_not_go(kill.comm):
        return False
    agrees = agree(of_process(process, kill.source), _names_of(kill), (kill.host,))
    return False if agrees is None and is_named_not_go(kill) else agrees


def is_named_not_go(kill: Death) -> bool:
    """Returns whether what was killed has the name of a well-known program that is not Go."""
    is_around = kill.is_job or kill.is_container or kill.is_unit
    around = kill.name or kill.container if is_around else None
    return is_not_go(kill.comm or kill.unit or (None if around in ROLES else around))


def is_of_another(kill: Death, row: Row) -> bool:
    """Returns whether a record belongs to another pod or container than the killed one."""
    pairs = ((getattr(kill, name), row.get(name)) for name in ("pod", "container", "name"))
    return any(mine and its and mine != its for mine, its in pairs)


def of_neighbour(kill: Death, process: Row, containers: Iterable[Row]) -> Row | None:
    """Returns the container of a process if it is not the one that was killed.

    A file name may contain all or part of the name of a pod or container. If it does not, a log
    with GC cycles belongs to a container with gctrace, not to a sidecar.
    """
    names = [name for name in of_process(process, kill.source) if name]

    def fit(row: Row) -> tuple[bool, tuple[int, int], int]:
        own = carry(names, str(row["pod"]))
        return own, fullness(names, [row["container"] or row["name"]]), traces(row)

    known = [row for row in containers if bool(row["pod"]) == bool(kill.pod)]
    own = [fit(row) for row in known if not is_of_another(kill, row)]
    others = [row for row in known if is_of_another(kill, row)]
    if not own or not others:
        return None
    best = max(others, key=fit)
    return best if fit(best) > max(own) else None


def _names_of(kill: Death) -> tuple[str | None, ...]:
    return (kill.comm, kill.name, kill.unit, kill.container, kill.pod)


def match_all(
    kills: Sequence[Death], processes: pl.DataFrame, containers: pl.DataFrame | None = None
) -> list[Match | None]:
    """Returns the process of each kill.

    A process dies once: of several possible kills, only the nearest to its end counts. If only the
    time connects a process with kills of several victims or at several times, or only the lack of
    other processes, it belongs to none of them.
    """
    rows = [] if containers is None else containers.to_dicts()
    matches = [match_process(kill, processes, rows) for kill in kills]
    ends = dict(processes.select("process", "ended_at").iter_rows())
    by_process: dict[int, list[int]] = {}
    for number, match in enumerate(matches):
        if match:
            by_process.setdefault(match.process, []).append(number)
    for process, numbers in by_process.items():
        victims = {_victim(kills[number]) for number in numbers}
        times = {number: at for number in numbers if (at := kills[number].logged_at)}
        # The process continued after all kills before its end.
        first = min(times.values(), default=None)
        far = {number for number, at in times.items() if first and at > first + NEAR}
        unclear = len(victims) > 1 or (far and ends[process] is None)
        for number in numbers:
            is_low = (match := matches[number]) and match.confidence == "low"
            if (is_low and unclear) or (number in far and ends[process]):
                matches[number] = None
    return matches


def by_places(
    kills: Sequence[Death],
    matches: Sequence[Match | None],
    processes: pl.DataFrame,
    cycles: pl.DataFrame,
) -> list[Match | None]:
    """Returns the matches of all kills; if time and name do not decide, by place among cycles.

    The runtime ends a program once: of two such ends after its cycles, only the first is its own.
    """
    placed = []
    ended: set[int] = set()
    for kill, known in zip(kills, matches, strict=True):
        match = _by_place(kill, known, processes, cycles)
        is_again = match and match.match_by == (_BY_PLACE,) and match.process in ended
        placed.append(None if is_again else match)
        ended |= {match.process} if match and kill.by_runtime else set()
    return placed


def _by_place(
    kill: Death, match: Match | None, processes: pl.DataFrame, cycles: pl.DataFrame
) -> Match | None:
    """Returns the match of a kill, if needed by its place among cycles."""
    is_low = match is not None and match.confidence == "low"
    named = None if is_low else match
    is_dated = kill.logged_at is not None and not kill.logged_in
    if not is_low and (is_dated or (named and named.match_by != ("container",))):
        return match
    source, line_no = kill.logged_in or (kill.source, kill.line_no)
    own = cycles.filter(pl.col("source").cast(pl.String) == source)
    if named:
        # A container that was started again has several processes.
        same = processes.filter(pl.col("container").is_in([kill.name, kill.container]))
        own = own.join(same, on="process", how="semi")
    before = own.sort("line_no").filter(pl.col("line_no") < line_no)["process"]
    if named:
        return replace(named, process=before[-1]) if len(before) else named
    if own.is_empty() or before.is_empty() or is_named_not_go(kill):
        return match if own.is_empty() or kill.logged_at else None
    # A report by the kernel or systemd may be about any program.
    is_reported = kill.logged_in or not (kill.killer or kill.unit)
    is_at_end = match and match.process == before[-1] and is_reported
    if kill.victim and not is_at_end:
        return match
    return Match(before[-1], (_BY_PLACE,), "medium")


def is_too_large(kill: Death, match: Match | None, live_mib: int | None) -> bool:
    """Returns whether a process matched without a name has more live heap than the limit allows."""
    most = WITH_SWAP * (kill.limit_bytes or math.inf)
    return bool(match and match.match_by[0] in _UNNAMED and (live_mib or 0) * MIB > most)


def _victim(kill: Death) -> object:
    """Returns the known identity of a victim."""
    names = ("container_id", "name", "unit", "pid", "comm")
    return next(((name, value) for name in names if (value := getattr(kill, name))), None)


def listed_tasks(tasks: pl.DataFrame, source: object, line_no: int | None) -> pl.DataFrame:
    """Returns the rows of `oom_tasks` that the kernel listed with the kill on this line."""
    same_line = pl.col("kill_line_no") == (line_no or -1)
    return tasks.filter(same_line & (pl.col("source").cast(pl.String) == str(source)))


def resident_bytes(death: Death, tasks: pl.DataFrame) -> int | None:
    """Returns the resident memory at the death, from the kill or else from a list of tasks."""
    if death.anon_rss_bytes is not None:
        own = death.anon_rss_bytes + (death.shmem_rss_bytes or 0)
        # File pages can be dropped, so they count only if they are nearly all of the memory.
        return own + (death.file_rss_bytes or 0) if death.is_of_files else own
    listed = listed_tasks(tasks, death.source, death.line_no)
    listed = listed.filter(pl.col("pid") == (death.pid or -1))
    sizes = listed["rss_bytes"].drop_nulls()
    return int(sizes[0]) if len(sizes) else None


def _agreeing(kill: Death, row: Row) -> list[str]:
    """Returns what the kill and the process have in common."""
    agrees = []
    by_docker = bool(_CONTAINER_ID.fullmatch(row["ident"] or ""))
    if kill.pid and kill.pid == row["log_pid"] and not by_docker:
        agrees.append("pid")
    if unit := kill.unit:
        stem = unit.rpartition(".")[0]
        if unit == row["unit"] or (not row["unit"] and stem and stem == row["ident"]):
            agrees.append("unit")
    known = row["container_id"] or (row["ident"] if by_docker else None)
    if known and (identifier := kill.container_id):
        same = identifier.startswith(known) or known.startswith(identifier)
        agrees += ["container"] if same else []
    elif not kill.pod and row["container"] and row["container"] in (kill.container, kill.name):
        agrees += [] if row["pod"] else ["container"]
    if kill.pod and kill.pod == row["pod"]:
        same = not kill.container or kill.container == row["container"]
        agrees += ["pod"] if same else []
    names = [name for name in (row["ident"], row["container"]) if name]
    if kill.comm and any(task_name(name) == kill.comm for name in names):
        agrees.append("comm")
    file = None if row["source"] is None else str(row["source"])
    if file != kill.source and agree([file], _names_of(kill)):
        agrees.append("file name")
    if (
        not agrees
        and is_same_moment(kill.started_at, row["started_at"])
        and is_of(kill, row | {"source": None}) is None
    ):
        agrees.append("start time")
    return agrees


def shared_place(kill: Death, processes: pl.DataFrame) -> str | None:
    """Returns the unit, container or pod that a kill and a process share."""
    common = {fact for row in processes.to_dicts() for fact in _agreeing(kill, row)}
    return next((place for place in ("unit", "container", "pod") if place in common), None)


def task_name(name: str) -> str:
    """Returns the kernel's name for a process of a program with this name."""
    return name.encode()[:_COMM_BYTES].decode(errors="ignore")


def _latest(kill: Death) -> datetime | None:
    """Returns when the killed process was certainly alive, shortly before its death."""
    return kill.not_before_at or kill.logged_at


def lived_after(kill: Death, row: Row) -> bool:
    """Returns whether the process was there after the kill, and so is not the one killed."""
    at, started = _latest(kill), row["started_at"]
    is_later = bool(at and started and started > at + timedelta(seconds=1))
    return is_later or outlived(kill, row)


def outlived(kill: Death, row: Row) -> bool:
    """Returns whether the process was scraped or ended a cycle after the kill."""
    ended, killed = row["ended_at"], kill.logged_at
    if not ended or not killed:
        return False
    if kill.not_before_at:
        return bool(ended >= killed)
    # A time in whole seconds may hide up to one second on another clock.
    hidden_s = 1 if str(row["source"]) == kill.source or killed.microsecond else 2
    return bool(ended - killed >= timedelta(seconds=hidden_s))


def _near(kill: Death, rows: Iterable[Row]) -> list[Row]:
    """Returns the processes that ended within a minute before a kill."""
    at, early = _latest(kill), timedelta(seconds=-1)
    return [
        row for row in rows if at and row["ended_at"] and early <= at - row["ended_at"] <= NEAR
    ]


def _only_recent_process(kill: Death, rows: Sequence[Row]) -> Match | None:
    """Returns the only process that ended shortly before the kill; None if there are others."""
    at = _latest(kill)
    if len(rows) == 1 and (at is None or rows[0]["ended_at"] is None):
        return Match(rows[0]["process"], ("only program",), "low")
    near = _near(kill, rows)
    return Match(near[0]["process"], ("time",), "low") if len(near) == 1 else None
