"""Reads the output of `docker inspect`, whole or in part, and of `docker events`."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gctrace_analyzer import units
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.ingest import json_values, numbers
from gctrace_analyzer.ingest.evidence import wordings
from gctrace_analyzer.ingest.evidence.message import WAITS, given, size_bytes
from gctrace_analyzer.ingest.evidence.words import PROMPT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gctrace_analyzer.ingest.evidence.message import Message, Row

SIGKILL_CODE = 137
"""Exit code of a container whose process got SIGKILL (128 + 9)."""

_SIGNALS = {SIGKILL_CODE: "KILL", 143: "TERM", 134: "ABRT", 139: "SEGV", 130: "INT"}
_EVENTS = ("oom", "die", "kill", "start", "stop", "restart", "destroy", "create")
_EVENT = re.compile(
    r"container (?P<event>oom|died?|kill|start|stop|restart|destroy|create) "
    r"(?P<id>[0-9a-f]{6,64})"
    r"(?: \((?P<attributes>.*)\))?"
)
_OLD_EVENT = re.compile(
    r"^(?P<id>[0-9a-f]{4,64}(?:\.{3}[0-9a-f]{1,60})?): \(from \S{1,200}\) "
    r"(?P<event>oom|die|kill|start|stop|restart|destroy|create)$"
)
"""Up to Docker 1.9."""

HINT = (
    r"\(from [^ ]+\) (?:oom|die|kill)|container (?:oom|died?|kill|start|stop|restart) [0-9a-f]|"
    r"\"Type\": ?\"container\"|"
    r"\"status\": ?\"(?:oom|die)\"|\"OOMKilled\"|(?:Exited|Restarting) \([1-9]|exited with code 137"
)


_LISTED = re.compile(
    # `docker ps` begins with the id and ends with the name; `docker compose ps` begins with the
    # name.
    r"^(?:(?P<id>(?=[a-f]{0,64}\d)[0-9a-f]{6,64}) .{0,500}?(?:Exited|Restarting) "
    r"\((?P<code>[1-9]\d{0,2})\).{0,300} (?P<last>\S{1,200}) {0,9}$"
    r"|(?P<name>[A-Za-z0-9][\w.-]*) .{0,500}?(?:Exited|Restarting) \((?P<status>[1-9]\d{0,2})\))"
)
EXITED = re.compile(r"^(?:Container )?(?P<name>[A-Za-z0-9][\w.-]*) exited with code 137\b")
"""The message of `docker compose up`."""


def inspections(value: dict[str, object]) -> list[Row]:
    """Returns the row of a container if a value comes from `docker inspect`."""
    is_state = "OOMKilled" in value and "ExitCode" in value
    return [inspected(value)] if is_state or isinstance(value.get("State"), dict) else []


def inspected(value: dict[str, Any]) -> Row:
    """Returns the row of a container from `docker inspect`, or from its `.State` alone."""
    state = value.get("State", value)
    host, config = value.get("HostConfig") or {}, value.get("Config") or {}
    environment = dict(
        entry.split("=", 1)
        for entry in config.get("Env") or []
        if isinstance(entry, str) and "=" in entry
    )
    row: Row = {
        "container_id": value.get("Id"),
        "name": (value.get("Name") or "").lstrip("/") or None,
        "status": state.get("Status"),
        "oom_killed": state.get("OOMKilled"),
        "exit_code": None if state.get("Status") == "running" else state.get("ExitCode"),
        "error": state.get("Error"),
        "started_at": json_values.iso_utc(state.get("StartedAt")),
        "finished_at": json_values.iso_utc(state.get("FinishedAt")),
        "restart_count": value.get("RestartCount"),
        "restarts_in_s": json_values.seconds_between(
            json_values.iso_utc(value.get("Created")),
            json_values.iso_utc(state.get("FinishedAt")),
        ),
        "memory_limit_bytes": host.get("Memory", value.get("Memory") or None),
        "swap_limit_bytes": swap_limit(host.get("Memory"), host.get("MemorySwap")),
        "cpu_limit": (numbers.real(host.get("NanoCpus")) or 0.0) / 1e9
        or quota_cpus(host.get("CpuQuota"), host.get("CpuPeriod")),
        **go_settings(environment),
    }
    if host.get("OomKillDisable") and row["oom_killed"]:
        row |= _WAITS
    return with_signal(row)


def swap_limit(memory: int | None, both: int | None) -> int | None:
    """Returns the limit of swap, of the limits of memory and of memory and swap together."""
    if not memory or not both:
        return None
    return both - memory if both > 0 else both


def quota_cpus(quota_us: object, period_us: object) -> float | None:
    """Returns the CPUs of a quota; the kernel's own period is 100 ms. None without a quota."""
    quota, period = numbers.real(quota_us), numbers.real(period_us)
    return quota / (period or 100_000) if quota and quota > 0 else None


def go_settings(environment: Mapping[str, str]) -> Row:
    """Returns the settings that environment variables give to the Go runtime."""
    row: Row = {}
    for name in ("GOGC", "GODEBUG"):
        if name in environment:
            row[name.lower()] = environment[name]
    if (limit := environment.get("GOMEMLIMIT")) and limit != "off":
        try:
            row["gomemlimit_bytes"] = numbers.whole(units.gomemlimit_mib(limit), units.MIB)
        except BadSettingError:
            row["gomemlimit_bytes"] = None
    if (procs := numbers.whole(environment.get("GOMAXPROCS"))) is not None:
        row["gomaxprocs"] = procs
    return row


def with_signal(row: Row) -> Row:
    """Returns the row with the signal that its exit code implies."""
    code = row.get("exit_code")
    return row | {"signal": _SIGNALS.get(code)} if isinstance(code, int) else row


def got_sigkill(row: Mapping[str, Any]) -> bool:
    """Returns whether a container ended by SIGKILL, judging by its exit code if it has one.

    An event `kill` only means the signal; the container may live on.
    """
    code, by_signal = row.get("exit_code"), row.get("signal") == "KILL" and not row.get("event")
    return code == SIGKILL_CODE or (code is None and by_signal)


def _is_later(stop: Row, state: Row) -> bool:
    """Returns whether a stop follows a death; without times, by the order of the lines."""
    if at := state.get("finished_at"):
        return bool(stop.get("logged_at") and stop["logged_at"] > at)
    times = [str(row.get("logged_at") or row.get("printed_at") or "") for row in (stop, state)]
    return stop["line_no"] > state["line_no"] and (times[0] >= times[1] or not all(times))


_BY_HAND = "somebody sent it SIGKILL (`docker kill`)"

NEAR_LINES = 8
"""Lines that may lie between all statements about one end."""


@dataclass(frozen=True)
class Stops:
    """Reasons other than memory why programs were ended, or asked to end.

    `by_name` has the cause by name or id of a container, `unnamed` those of lines without a name,
    in the order of the lines, and `named` the rows of containers that really stopped.
    """

    by_name: dict[str, tuple[Row, str]]
    unnamed: list[tuple[Row, str]]
    named: list[Row] = field(default_factory=list)

    def with_events(self, states: Iterable[Row]) -> Stops:
        """Returns these stops, and those that events of containers report."""
        by_name = {**self.by_name}
        for state in states:
            name = state.get("container_id") or state.get("name")
            if name and state.get("event") in ("kill", "stop"):
                forced = state["event"] == "kill" and state.get("signal") in ("KILL", None)
                cause = _BY_HAND if forced else wordings.ASKED
                by_name.setdefault(name, ({"line_no": 0}, cause))
        return replace(self, by_name=by_name)

    def of(self, state: Row, *, everywhere: bool = False) -> str | None:
        """Returns why a container was ended; None if nothing states it.

        Args:
            state: the row of the container.
            everywhere: whether lines without a name mean this container wherever they are.
        """
        names = ("container_id", "name", "container", "pod")
        stops = [self.by_name[of] for name in names if (of := state.get(name)) in self.by_name]
        line_no = state.get("line_no") or 0
        begin, end = (
            bisect_left(self.unnamed, line_no + distance, key=lambda stop: stop[0]["line_no"])
            for distance in (-NEAR_LINES, NEAR_LINES)
        )
        stops += self.unnamed if everywhere else self.unnamed[begin:end]
        if everywhere and len(self.by_name) == 1 and not any(map(state.get, names)):
            # A part of a container's description without its name, and its events.
            stops += self.by_name.values()
        known = [
            cause
            for stop, cause in stops
            if everywhere or cause != wordings.ASKED or not _is_later(stop, state)
        ]
        # Why it was asked to stop is more useful than that it was asked.
        return next(
            (cause for cause in known if cause != wordings.ASKED), next(iter(known), None)
        )


def is_event(value: dict[str, object]) -> bool:
    """Returns whether a value comes from `docker events --format '{{json .}}'` or Docker's API."""
    action = value.get("Action") or value.get("status")
    # Up to Docker 1.9 only containers had events, with the name of their image.
    kind = value.get("Type", "container" if {"from", "id"} <= value.keys() else None)
    return kind == "container" and str(action) in _EVENTS


def events(value: dict[str, Any]) -> list[Row]:
    """Returns the row of a docker event in JSON; nothing for other values."""
    if not is_event(value):
        return []
    actor = value.get("Actor") or {}
    attributes = actor.get("Attributes") or {}
    logged_at = json_values.epoch_utc(
        numbers.whole(value.get("timeNano")) or numbers.whole(value.get("time"), 10**9)
    )
    action = str(value.get("Action") or value.get("status"))
    row = _event(action, value.get("id") or actor.get("ID"), attributes)
    return [row | {"logged_at": logged_at}]


def stats(value: dict[str, object]) -> list[Row]:
    """Returns the row of a container if a value comes from `docker stats --format json`."""
    sizes = wordings.SIZES_OF_STATS.match(str(value.get("MemUsage")))
    if sizes is None:
        return []
    used, host = (size_bytes(sizes.groupdict(), name) for name in ("used", "host"))
    known = {"container_id": value.get("ID"), "name": value.get("Name"), "status": "running"}
    return [known | {"memory_used_bytes": used, "memory_of_host_bytes": host}]


def _event(action: str, container_id: str | None, attributes: Mapping[str, str]) -> Row:
    # Podman uses other names for both.
    code = attributes.get("exitCode") or attributes.get("containerExitCode")
    ran = attributes.get("execDuration")
    row: Row = {
        "event": "die" if action == "died" else action,
        "container_id": container_id,
        "name": attributes.get("name"),
        "exit_code": numbers.whole(code),
        "duration_s": numbers.real(ran),
    }
    if action == "oom":
        row["oom_killed"] = True
    row = with_signal(row)
    if (number := attributes.get("signal")) is not None:
        known = numbers.whole(number)
        row["signal"] = number if known is None else _SIGNALS.get(128 + known)
    return row


def _from_json(value: dict[str, object]) -> Row:
    """Returns the row of an event or a state; empty for other objects."""
    try:
        if rows := events(value):
            return rows[0]
        return inspected(value) if "OOMKilled" in value or "State" in value else {}
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError):
        return {}


_EXACT_BYTES = 10 << 30
"""`docker stats` prints four digits, which show single MiB below this."""


def mark_limits(states: Iterable[Row]) -> None:
    """Marks as a limit the memory of a container in `docker stats` that is not that of the host.

    For containers without a limit, it prints the memory of the host, which is the same for all, and
    no whole number of MiB, as the kernel keeps a part of it.
    """
    name = "memory_of_host_bytes"
    known = [row for row in states if row.get(name)]
    most = max((row[name] for row in known), default=0)
    for row in known:
        is_whole = row[name] < _EXACT_BYTES and row[name] % units.MIB == 0
        if row[name] < most or is_whole:
            row["memory_limit_bytes"] = row.pop(name)


_WAITS = {"oom_killed": None, "event": WAITS}
"""Docker sets the flag when the limit is reached, even if nothing is killed then."""

_OFF = re.compile(
    rf"(?:{PROMPT}|^\s{{0,40}})(?:sudo )?(?:docker|podman) "
    r".{1,500}?\s--oom-kill-disable(?:\s|=true\b)"
)
"""A command, not advice in a sentence."""


def mark_waits(states: Iterable[Row], messages: Iterable[Message]) -> None:
    """Marks the containers of which a command turned the OOM killer off."""
    if any(_OFF.search(message.text) for message in messages):
        for row in states:
            row |= _WAITS if row.get("event") == "oom" else {}


def read(messages: Iterable[Message]) -> list[Row]:
    """Returns the rows of docker events, in text or JSON, and of states on one line each."""
    rows = []
    for message in messages:
        if match := _EVENT.search(message.text):
            pairs = (match["attributes"] or "").split(", ")
            attributes = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
            row = _event(match["event"], match["id"], attributes)
        elif match := _OLD_EVENT.match(message.text.strip()):
            row = _event(match["event"], match["id"], {})
        elif match := _LISTED.match(message.text) or EXITED.match(message.text):
            named = match.groupdict()
            name = named.get("last") or named["name"]
            code = numbers.whole(named.get("code") or named.get("status") or "137")
            row = {"container_id": named.get("id"), "name": name, "exit_code": code}
            row = with_signal(row | {"status": "exited"})
        elif message.text.startswith("{"):
            try:
                value = json_values.loads(message.text)
            except ValueError:
                continue
            row = _from_json(value)
        else:
            continue
        if known := given(row):
            rows.append({"logged_at": message.logged_at, "line_no": message.line_no, **known})
    return rows
