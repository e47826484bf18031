"""Collects the deaths in a log, each once, even if several programs report it.

The kernel names the process that it killed, systemd the unit, Docker and Kubernetes the
container; `pairing.py` decides which of them mean the same death.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.postmortem.death import (
    ABORTED,
    EVICTOR,
    KILLED_FOR_MEMORY,
    KINDS,
    REFUSED,
    UNITS,
    Death,
    is_of_job,
)
from gctrace_analyzer.analysis.postmortem.pairing import (
    LATE_S,
    each_end_once,
    gap_s,
    name_pods,
    same_host,
    with_run,
    without_kill,
)
from gctrace_analyzer.analysis.postmortem.proof import (
    NOTICES,
    SYSTEMD_KILLS,
    is_kill,
    is_proven,
)
from gctrace_analyzer.ingest.evidence.docker import SIGKILL_CODE
from gctrace_analyzer.ingest.evidence.message import (
    BELOW,
    KILLED_AT_START,
    OF_SIGTERM,
    TOOLCHAIN,
)
from gctrace_analyzer.ingest.evidence.oom_lines import REPORTS

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping
    from datetime import datetime

    import polars as pl

    from gctrace_analyzer.schema import Row


SAME_PID_S = 600
"""Seconds. Two killers that name one pid within this time mean the same process."""

NESTED_S = 2
"""Seconds. The manager of a user's units reports a kill in one of them at the same time."""


def deaths(tables: Mapping[str, pl.DataFrame]) -> list[Death]:
    """Returns every death with what all reports say about it.

    Kills come first, then containers, units and what the Go runtime reports, each in the order
    of the log.
    """
    kills = _kills(tables["oom_kills"])
    states = list(_states(tables["container_states"], kills))
    incidents = list(_incidents(tables["unit_events"], states))
    states, incidents = each_end_once(states, incidents)
    reports = [*states, *(report for report in incidents if report.proven)]
    alone = {id(report) for report in without_kill(kills, reports)}
    # The end of a unit without a word about memory may name the unit of a kill. Otherwise it counts
    # only if its log is in the input, or nothing else is.
    ended = without_kill(kills, [report for report in incidents if not report.proven])
    traced = _traced(tables["processes"])
    is_all = not any(len(tables[name]) for name in ("processes", "oom_tasks"))
    left = [report for report in reports if id(report) in alone]
    left += [each for each in ended if is_all or (each.unit or "").partition(".")[0] in traced]
    if not kills and len(tables["oom_invocations"]):
        # The kernel killed a process, but one of its lines is not in the input.
        runs = [*map(Death.of, tables["oom_invocations"].iter_rows(named=True))]
        left = [each if each.proven else with_run(each, runs) for each in left]
    return [*kills, *left, *_fatal(tables["runtime_fatal"])]


def _traced(processes: pl.DataFrame) -> set[str]:
    """Returns the names of the programs and units whose cycles are in the input."""
    names = (processes[column].drop_nulls() for column in ("unit", "ident"))
    return {name.partition(".")[0] for column in names for name in column}


def _kills(table: pl.DataFrame) -> list[Death]:
    """Returns the recorded kills, without repetitions in other inputs or parts of one."""
    kills: list[Death] = []
    for row in table.iter_rows(named=True):
        kind = KINDS.get(row["reason"]) or KINDS.get(row["killer"], "OOM kill")
        death = Death.of(row, kind=kind, proven=is_proven("oom_kills", row))
        if kills and _is_with(kills[-1], death):
            names = (*kills[-1].killed_with, death.comm or "")
            kills[-1] = replace(kills[-1], killed_with=names)
        else:
            kills.append(death)
    by_sizes: dict[Hashable, int] = {}
    by_victim: dict[Hashable, int] = {}
    repeated: set[int] = set()
    # Reports of others have no sizes, and come after the kernel's lines.
    for number in sorted(range(len(kills)), key=lambda number: _is_reported(kills[number])):
        kill = kills[number]
        victim = (kill.pid, kill.comm)
        sizes: tuple[object, ...] = (*victim, kill.total_vm_bytes, kill.anon_rss_bytes)
        if kill.killer == EVICTOR:
            sizes = (EVICTOR, kill.pod, kill.container, kill.anon_rss_bytes)
        same = by_victim.get(victim) if _is_reported(kill) else by_sizes.get(sizes)
        first = by_victim.get(victim) if None not in victim else None
        twice = first is not None and _dies_once(kills[first], kill)
        same = first if twice else same
        if same is not None and (twice or same_host(kills[same], kill)):
            kills[same] = _joined(kills[same], kill)
            repeated.add(number)
        if None not in sizes:
            by_sizes.setdefault(sizes, number)
        by_victim.setdefault(victim, number)
    return [kill for number, kill in enumerate(kills) if number not in repeated]


def _is_with(one: Death, other: Death) -> bool:
    """Returns whether a process was killed only because its group was, after another process."""
    gap = gap_s(one, other)
    of_one_kill = ("source", "host", "oom_memcg", "failcnt", "usage_bytes", "oom_group")
    is_same = all(getattr(one, name) == getattr(other, name) for name in of_one_kill)
    return bool(one.oom_group) and is_same and (gap is None or abs(gap) <= NESTED_S)


def _joined(one: Death, other: Death) -> Death:
    """Returns one end as both reports describe it: a kill by the kernel follows a SIGTERM."""
    if one.reason in OF_SIGTERM and other.killer == "kernel":
        one, other = other, replace(one, reason=None, host_bytes=None)
    return one.joined(other)


def _dies_once(one: Death, other: Death) -> bool:
    """Returns whether two killers report the same end of a process, as pids are reused."""
    gap = gap_s(one, other)
    return one.killer != other.killer and (gap is None or abs(gap) <= SAME_PID_S)


def _is_reported(kill: Death) -> bool:
    return kill.reported_by in REPORTS


def _states(table: pl.DataFrame, kills: list[Death]) -> Iterator[Death]:
    """Yields killed containers, unless a record of that kill names the container."""
    ends: dict[str, list[Row]] = {}
    by_pod: dict[Hashable, list[int]] = {}
    in_container = [number for number, kill in enumerate(kills) if kill.container_id]
    # Events that prove the kill come first; the other events of the same container are then
    # skipped.
    rows = table.sort("oom_killed", descending=True, nulls_last=True).to_dicts()
    ended = {
        _identifier(row)
        for row in rows
        if row["exit_code"] is not None
        or row["event"] == "die"
        or row["status"] in ("exited", "dead", "terminated")
    }
    _tell_apart(rows)
    _name_ends(rows)
    _limit_again(rows)
    name_pods(rows, kills)
    for number, kill in enumerate(kills):
        by_pod.setdefault((kill.pod, kill.container), []).append(number)
    # A watched list repeats a pod with newer counts.
    latest: dict[Hashable, Row] = {}
    for row in sorted(rows, key=lambda row: row["restart_count"] or 0, reverse=True):
        latest.setdefault(row["pod"], row)
    known_pods = {row["pod"] for row in rows if row["oom_killed"] and _is_described(row)}
    for row in rows:
        if not is_kill("container_states", row):
            continue
        if row["pod"] in known_pods and not _is_described(row):
            continue
        identifier = _identifier(row)
        last = row if _is_described(row) or not row["pod"] else latest[row["pod"]]
        if row["pod"] and not identifier:
            counted = latest[row["pod"]] if row["restart_count"] is None else row
            identifier = f"{row['pod']} {counted['restart_count'] or 0}"
        known = by_pod.get((row["pod"], row["container"]), []) if row["pod"] else []
        # Another id is that of an earlier container, which was killed too.
        known = [n for n in known if not row["container_id"] or not kills[n].container_id]
        known = known or [
            number
            for number in in_container
            if _overlap(identifier, kills[number].container_id or "")
        ]
        is_below = row["event"] == BELOW
        at_start = KILLED_AT_START in (row["error"] or "")
        report = Death.of(
            row,
            kind=_ending(row),
            proven=is_proven("container_states", row),
            logged_at=row["finished_at"] or row["logged_at"],
            name=row["name"] or row["container"],
            limit_bytes=None if is_below else row["memory_limit_bytes"],
            used_bytes=None if is_below else row["memory_used_bytes"],
            is_below=is_below,
            is_not_oom=row["oom_killed"] is False and not any(row[name] for name in _OF_PODS),
            is_error=_ERROR in (row["reason"], row["last_reason"]),
            is_restarted=row["status"] == "running" and row["last_status"] == "terminated",
            is_inside=not at_start
            and row["name"] not in TOOLCHAIN
            and _is_inside(row, has_ended=identifier in ended),
            is_at_start=at_start,
            restart_count=last["restart_count"],
            restarts_in_s=last["restarts_in_s"],
            memory_request_bytes=None,
            scope="memcg" if row["oom_killed"] and not is_below else None,
        )
        for number in known:
            # The state describes the last kill.
            at = ("logged_at",) if len(known) == 1 else ()
            names = ("name", "limit_bytes", "used_bytes", "failcnt", "restart_count", *at)
            names = (*names, "started_at", "is_restarted", "restarts_in_s", "memory_now_bytes")
            names = (*names, "swap_limit_bytes")
            kills[number] = kills[number].completed(report, names)
        before = ends.setdefault(identifier, [])
        if known or (identifier and any(_is_same_end(row, other) for other in before)):
            continue
        before.append(row)
        yield report


def _name_ends(rows: list[Row]) -> None:
    """Adds to rows whose end they describe."""
    pods = {row["pod"] for row in rows if row["pod"]}
    ids = {row["name"]: row["container_id"] for row in rows if not row["pod"]}
    stops = {row["name"]: row["stopped_by"] for row in rows if row["event"] == "stop"}
    for row in rows:
        ends = (other for other in rows if row["event"] == "oom" and _is_end_of(row, other))
        if (end := next(ends, None)) and row["exit_code"] is None:
            row["exit_code"] = end["exit_code"]
            at, ended_at = row["logged_at"], _ended_at(end)
            is_late = at and ended_at and (ended_at - at).total_seconds() > LATE_S
            if is_late and end["exit_code"] == SIGKILL_CODE:
                # It went on: a later SIGKILL to its main process has another cause.
                row |= {"exit_code": None, "status": "running"}
        if not row["oom_killed"]:
            row["stopped_by"] = row["stopped_by"] or stops.get(row["name"])
        # A list of containers has their ids; a query result may lack one.
        if row["oom_killed"] is not None and not (row["pod"] or row["event"]):
            row["container_id"] = row["container_id"] or ids.get(row["name"])
        is_part = row["last_reason"] or not any(row[name] for name in _IDENTIFIERS)
        if len(pods) == 1 and is_part and not row["pod"]:
            # Part of a description belongs to the pod of the rest of the input.
            row["pod"] = next(iter(pods))


def _tell_apart(rows: list[Row]) -> None:
    """Adds the namespaces to the names of pods that several namespaces have."""
    known = {(row["pod"], row["namespace"]) for row in rows if row["pod"] and row["namespace"]}
    several = {pod for pod, number in Counter(pod for pod, _ in known).items() if number > 1}
    for row in rows:
        if row["pod"] in several and row["namespace"]:
            row["pod"] = f"{row['namespace']}/{row['pod']}"


def _limit_again(rows: list[Row]) -> None:
    """Adds the limit of a container that runs to its other ends, and its use to a stop."""
    alive = [row for row in rows if row["status"] == "running" and not row["oom_killed"]]
    known = {_identifier(row): row for row in alive if _identifier(row)}
    for row in rows:
        of, is_stop = known.get(_identifier(row), row), row["stopped_by"] and not row["event"]
        if (row["oom_killed"] or is_stop) and row["memory_limit_bytes"] is None:
            row["memory_limit_bytes"] = of["memory_limit_bytes"]
            if is_stop:
                row["memory_used_bytes"] = of["memory_used_bytes"]


def _is_end_of(row: Row, other: Row) -> bool:
    """Returns whether the exit code of another row may be that of a container after an event."""
    at, other_at = row["logged_at"], _ended_at(other)
    is_later = at is None or other_at is None or at <= other_at
    is_same = _overlap(_identifier(row), _identifier(other))
    return (
        other["exit_code"] is not None and other["status"] != "running" and is_later and is_same
    )


_IDENTIFIERS = ("container_id", "name", "container")


def _identifier(row: Row) -> str:
    return next((row[name] for name in _IDENTIFIERS if row[name]), "")


def _is_described(row: Row) -> bool:
    """Returns whether a row describes a container; a list of pods lacks its name and times."""
    return bool(row["container"] or row["finished_at"])


_OOM_KILLED = "OOMKilled"
_ERROR = "Error"
"""The reason of a container's end in Kubernetes if its runtime saw no OOM kill."""

_OF_PODS = ("pod", "container", "reason", "last_status")
"""Only Docker and Podman state that a container was not OOM-killed; Kubernetes gives a reason."""


def _is_same_end(one: Row, other: Row) -> bool:
    """Returns whether two states mean the same end; a job or container may end again.

    Few events have the time of the end, and all pods of a service have the same container names.
    """
    names = [(one[name], other[name]) for name in ("pod", "namespace", "container")]
    if any(mine and its and mine != its for mine, its in names):
        return False
    at, other_at = _ended_at(one), _ended_at(other)
    return at is None or other_at is None or abs((at - other_at).total_seconds()) <= NESTED_S


def _ended_at(row: Row) -> datetime | None:
    """Returns when a container ended: Docker prints its events at that moment."""
    at: datetime | None = row["finished_at"]
    return at or (row["logged_at"] if row["event"] in ("oom", "die") else None)


def _is_inside(row: Row, *, has_ended: bool) -> bool:
    """Returns whether a process in a container was killed, but not its main process.

    A killed main process has exit code 137. With another code it ended by itself, after a child or
    another command in the container was killed.
    """
    code = row["exit_code"]
    if row["event"] in ("oom", BELOW):
        is_alive = not has_ended or row["status"] == "running"
        return is_alive if code is None else code != SIGKILL_CODE
    is_flag = not (row["error"] or any(row[name] for name in _OF_PODS))
    if is_flag and row["oom_killed"] and code is None and row["status"] in (None, "running"):
        # Docker sets it for any process of a container.
        return not has_ended
    ended = {row["status"], row["last_status"]} & {"exited", "dead", "terminated"}
    return bool(row["oom_killed"] and (ended or code) and code not in (None, SIGKILL_CODE))


def _overlap(one: str, other: str) -> bool:
    """Returns whether two container ids are the same; either may be shortened."""
    return bool(one) and (one.startswith(other) or other.startswith(one))


def _ending(row: Row) -> str:
    code = "" if row["exit_code"] is None else f"exit code {row['exit_code']}"
    if not row["oom_killed"]:
        return code.capitalize() or "SIGKILL"
    is_job = is_of_job(row["name"], row["error"])
    if row["event"] in ("oom", BELOW):
        is_unit = (row["name"] or "").endswith(UNITS)
        within = "group" if row["event"] == BELOW else "job" if is_job else "container"
        within = "unit" if is_unit else within
        return f"OOM kill in a {within}"
    if is_job:
        return "Job killed for memory"
    # Docker and Kubernetes use this word; platforms use their own (`error`).
    own = _OOM_KILLED in (row["reason"], row["last_reason"]) or (code and not row["error"])
    kind = f"Container {_OOM_KILLED}" if own else KILLED_FOR_MEMORY
    return f"{kind} ({code})" if code else kind


_ENDS = ("failed", "restart_scheduled", "consumed")


def _incidents(table: pl.DataFrame, states: list[Death]) -> Iterator[Death]:
    """Yields every end of a unit by SIGKILL; `proven` if systemd names memory as the cause.

    An incident begins with a notice of a kill or the exit of the main process, and ends when the
    unit has failed, which takes minutes if other processes of the unit have to be stopped.
    """
    begun: list[Death] = []
    exits: dict[Hashable, int] = {}
    unfinished: dict[Hashable, tuple[int, Death]] = {}
    last_of: dict[Hashable, int] = {}
    for row in table.iter_rows(named=True):
        key = (row["source"], row["host"], row["unit"])
        proven = is_proven("unit_events", row)
        code = SIGKILL_CODE if row["status"] == SIGKILL_CODE else None
        sent = f"Exit code {code}" if code else "SIGKILL"
        sent = sent if row["event"] == "main_exited" else ABORTED
        event = Death.of(
            row,
            kind="Unit killed for memory" if proven else sent,
            proven=proven,
            name=row["unit"],
            exit_code=code,
            used_bytes=row["memory_peak_bytes"],
            swap_usage_bytes=row["memory_swap_peak_bytes"],
            killer="systemd-oomd" if row["event"] == "oomd_killed_processes" else None,
            is_inside=row["event"] == "oom_killed_process",
            stopped_by=SYSTEMD_KILLS.get(row["result"]),
        )
        if row["code"] == "exited":
            exits[key] = row["status"]
        is_notice = row["event"] in NOTICES
        incident = unfinished.get(key)
        if incident and is_notice and (gap_s(incident[1], event) or 0) > LATE_S:
            incident = None
        if is_kill("unit_events", row):
            if incident is None:
                incident = (len(begun), event)
                begun.append(event)
            number, last = incident
            first = begun[number]
            begun[number] = replace(
                first,
                kind=(event if event.proven else first).kind,
                proven=first.proven or event.proven,
                killer=event.killer or first.killer,
                is_inside=first.is_inside and event.is_inside,
            )
            unfinished[key] = (number, event if is_notice else last)
        if row["event"] in _ENDS and (ended := unfinished.pop(key, None)):
            begun[ended[0]] = _finished(begun[ended[0]], row["result"], exits.pop(key, None))
            last_of[key] = ended[0]
        if (last_end := last_of.get(key)) is not None:
            if row["event"] == "consumed":
                begun[last_end] = replace(
                    begun[last_end],
                    used_bytes=event.used_bytes,
                    swap_usage_bytes=event.swap_usage_bytes,
                )
            elif row["event"] == "restart_scheduled":
                begun[last_of.pop(key)] = replace(begun[last_end], restart_count=row["n"])
    yield from _of_one_unit(begun, states)


def _finished(incident: Death, result: str | None, code: int | None) -> Death:
    """Returns the end of a unit; `code` is the exit code if its main process ended by itself."""
    why = SYSTEMD_KILLS.get(result or "") or incident.stopped_by
    is_of_child = code is not None and incident.proven and incident.killer is None
    exit_code = code if is_of_child else incident.exit_code
    return replace(incident, is_inside=is_of_child, stopped_by=why, exit_code=exit_code)


def _of_one_unit(incidents: list[Death], states: list[Death]) -> Iterator[Death]:
    """Yields the incidents except those that another report repeats.

    Repeated reports are units around the killed one, scopes of containers with a known state, and
    messages that several inputs contain.
    """
    containers = {state.container_id for state in states}
    inner = [each for each in incidents if each.proven and not _is_around(each)]
    named = not all(map(_is_slice, incidents))
    of_unit: dict[Hashable, Death] = {}
    for incident in incidents:
        same = of_unit.setdefault((incident.unit, incident.logged_at), incident)
        is_again = incident.logged_at and same.source != incident.source
        if (
            (named and _is_slice(incident) and not _OF_TEMPLATE.fullmatch(incident.unit or ""))
            or (incident.container_id and incident.container_id in containers)
            or (_is_around(incident) and any(_is_in(each, incident) for each in inner))
            or (is_again and same_host(same, incident))
        ):
            continue
        yield incident


_OF_TEMPLATE = re.compile(r"system-(.+)\.slice")
"""The slice that contains the instances of one template (systemd.slice(5)), and nothing else."""


def _is_in(inner: Death, incident: Death) -> bool:
    """Returns whether the kill in a unit may be the one that a unit around it reports."""
    template = _OF_TEMPLATE.fullmatch(incident.unit or "")
    may_be = not template or (inner.unit or "").startswith(f"{template[1]}@")
    return (
        may_be and same_host(inner, incident) and abs(gap_s(inner, incident) or 0) <= NESTED_S
    )


def _is_around(incident: Death) -> bool:
    return (incident.unit or "").startswith("user@") or _is_slice(incident)


def _is_slice(incident: Death) -> bool:
    return (incident.unit or "").endswith(".slice")


def _fatal(table: pl.DataFrame) -> Iterator[Death]:
    for row in table.iter_rows(named=True):
        yield Death.of(
            row,
            kind=REFUSED,
            refusal=row["kind"],
            proven=is_proven("runtime_fatal", row),
            killer="the Go runtime",
            comm=row["ident"],
            pid=row["log_pid"],
        )
