"""Reads how platforms, batch systems and low-memory killers report a kill (see `wordings.py`)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.ingest import json_values, numbers
from gctrace_analyzer.ingest.evidence import cgroups, wordings
from gctrace_analyzer.ingest.evidence.docker import (
    EXITED,
    NEAR_LINES,
    Stops,
    got_sigkill,
    with_signal,
)
from gctrace_analyzer.ingest.evidence.message import (
    ASKED,
    AT_LIMIT,
    KILLED_AT_START,
    NO_ENTRYPOINT,
    OWN_CODE,
    after_asked,
    columns,
    given,
    size_bytes,
)
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from gctrace_analyzer.ingest.evidence.message import Message, Row, Rows

HINT = (
    rf"{wordings.HINT}|{wordings.KILLERS_HINT}|Error R1[45]|running mem=|sample#memory_|"
    r"Max Memory Used|START RequestId|maxMemoryUsedMB|signal: killed|"
    r"Runtime\.OutOfMemory|OutOfMemoryError: C|"
    r"exitCode\\*\": ?\d|xit\(137|exit(?:ed with)?(?: non-zero)?(?: exit)? (?:code|status):? ?137|"
    r"xit [Cc]ode:? '?137|xit status 137|non-zero exit \(137\)|non-zero code: 137|Error 137|"
    r"STOPPED +\| +137|SIGKILL|zsh: killed|\] Killed|[Kk]illed(?:  |: 9|$)|signal 9(?:\)|$)"
)

_SIZES = re.compile(
    # Of Heroku's dynos, and of AWS Lambda's functions
    r"Process running mem=(?P<used>\d{1,9})M\((?P<pct>\d{1,9}\.\d)%\)"
    r"|sample#memory_total=(?P<total>\d{1,9}(?:\.\d{1,4})?)MB.{0,400}?"
    r"sample#memory_quota=(?P<quota>\d{1,9}(?:\.\d{1,4})?)MB"
    r"|Memory Size: (?P<size>\d{1,9}) MB\s+Max Memory Used: (?P<most>\d{1,9}) MB"
    r"|memorySizeMB\\*\": ?(?P<json_size>\d{1,9}), ?"
    r"\\*\"maxMemoryUsedMB\\*\": ?(?P<json_most>\d{1,9})"
)
_SWAP = re.compile(r"sample#memory_swap=(?P<swap>\d{1,9}(?:\.\d{1,4})?)MB")
_KILLED = re.compile(
    r"Error R15|(?:Error Type: |errorType\\*\": ?\\*\")Runtime\.OutOfMemory"
    r"|(?P<by_signal>Runtime exited.{0,20}(?:signal: killed|exit status 137))"
)
_REQUEST = re.compile(r"(?i)request_?id\\*\"?: ?\\*\"?(?P<id>[\w-]{1,40})")
_EXIT_CODE = re.compile(r"(?i)\bexit ?code\\*\"?\s{0,9}[:=]?\s{0,9}\\*\"?(?P<code>\d{1,3})\b")
_NEAR_SIZE = 0.9
"""Share of a function's memory. If another run used less, memory was not the cause."""

_ERROR_CHARS = 200
"""Characters kept of each statement about an end."""


def read(messages: Sequence[Message], stops: Stops) -> Rows:
    """Returns kills by low-memory killers, and containers that a platform killed for memory.

    Args:
        messages: the messages.
        stops: the other ends in the messages (`stops_of`).
    """
    return {
        "oom_kills": list(_kills(messages)),
        "container_states": [*_containers(messages, stops), *_sized(messages)],
    }


def _kills(messages: Iterable[Message]) -> Iterator[Row]:
    """Yields each process that a killer ended once; its first message may lack the name."""
    ended: set[tuple[object, ...]] = set()
    known: dict[str, tuple[int, Row]] = {}
    last: Row = {}
    for message in messages:
        for killer in wordings.KILLERS:
            if (match := killer.pattern.search(message.text)) is None:
                continue
            row, supervises = columns(match), killer.who in wordings.SUPERVISORS
            line_no, before = known.get(killer.who, (message.line_no, {}))
            far = supervises and message.line_no - line_no > NEAR_LINES
            if not far and before.get("comm") in (None, row.get("comm", before.get("comm"))):
                row = before | row
            victim = (message.host, row.get("pid"), row.get("comm"))
            asks = killer.who in wordings.THRESHOLD_KILLERS
            is_sigterm = any(words in match[0] for words in ("SIGTERM", "signal 15"))
            is_cut = bool(last) and not (supervises or last.get("pid") or last.get("comm"))
            if asks and last and (victim in ended if killer.is_kill else not match.groupdict()):
                # A later signal is closer to the end, and a program may have grown until then.
                last |= message.place() | row if killer.is_kill else {}
                if not is_sigterm:
                    last["reason"] = after_asked(match[0], last["reason"])
            elif not killer.is_kill:
                known[killer.who] = (message.line_no, row)
            elif "usage_bytes" in row if supervises else not (victim in ended or is_cut):
                ended.add(victim)
                is_own = bool(row.get("limit_bytes")) or wordings.OWN_LIMIT in message.text
                scope = "memcg" if is_own else "global"
                asked = ASKED if asks and is_sigterm else row.get("reason")
                row |= {"killer": killer.who, "scope": scope, "reason": asked}
                row["unit"] = cgroups.unit(row.get("cgroup"))
                last = message.place() | row
                yield last
            elif is_cut or (last and victim == (last["host"], last["pid"], last["comm"])):
                ended.add(victim)
                last |= {key: value for key, value in row.items() if last.get(key) is None}
            break


@dataclass(slots=True)
class _Reports:
    """The rows of platforms: one per death, even if many lines are about it.

    Attributes:
        rows: the rows, in the order of the log.
        by_number: the row of each job or container whose number is on its lines.
        last: the last row of each platform, with its line and wordings.
    """

    rows: list[Row] = field(default_factory=list)
    by_number: dict[tuple[str, str], Row] = field(default_factory=dict)
    last: dict[str, tuple[int, Row, set[wordings.Wording]]] = field(default_factory=dict)

    def add(self, wording: wordings.Wording, row: Row, nearby: Row) -> None:
        """Adds a row, or its facts to the row of another line about the same death.

        The name on a nearby line may belong to several deaths.
        """
        line_no, who = row["line_no"], wording.who
        name = row.get("container_id") or row.get("name")
        number = re.search(r"\d+", name) if name else None
        of_name = (who, number[0] if number and not row.get("container_id") else name or "")
        before, last, of_last = self.last.get(who, (line_no, row, set[wordings.Wording]()))
        same = self.by_number.get(of_name) if name else None
        at, at_same = ([(each or {}).get(name) for name in _TIMES] for each in (row, same))
        if wording.says == "ended" and at != at_same:
            same = None  # A restarted process has the same name, and ends again.
        is_new = wording not in of_last or wording.says == "never ran"
        is_near = line_no - before <= NEAR_LINES and is_new
        is_unnamed = not name or not (last.get("name") or last.get("container_id"))
        if same is None and last is not row and is_near and is_unnamed:
            same = last
        row = nearby | row
        if same is None:
            self.rows.append(row)
            self.last[who] = (line_no, row, {wording})
        else:
            same |= {key: value for key, value in row.items() if same.get(key) is None}
            if wording.says in _PROVEN:
                same["oom_killed"] = True
            elif wording.says == "used":
                same |= max(same, row, key=lambda known: known["memory_used_bytes"] or 0)
            self.last[who] = (line_no, same, {*of_last, wording})
            row = same
        if name:
            self.by_number[of_name] = row


_PROVEN, _TIMES = ("killed", "in a group"), ("logged_at", "printed_at")


def _containers(messages: Sequence[Message], stops: Stops) -> Iterator[Row]:
    """Yields the containers and jobs that a platform killed, or whose limit was reached."""
    reports = _Reports()
    anyones: list[Row] = []
    for at, message in enumerate(messages):
        if "OutOfMemoryError: C" in message.text:
            near = messages[max(at - 2, 0) : at + 3]
            reports.rows += _of_ecs_in(message, "\n".join(other.text for other in near))
        for wording, match in _matches(_ENDS, message.text):
            row = _of_match(message, match, wording)
            if wording.who == _ANYONE:
                anyones += [row] if stops.of(row) and not EXITED.match(message.text) else []
            elif wording.says == "from the code" and stops.of(row):
                anyones.append(row | {"oom_killed": None})
            else:
                reports.add(wording, row, _nearby(messages, at, wording))
            break
    yield from reports.rows
    taken = {row["line_no"] for row in reports.rows}
    yield from (row for row in anyones if row["line_no"] not in taken)


def unexplained(messages: Iterable[Message], runs_on: Callable[[int], bool]) -> list[Row]:
    """Returns the ends by SIGKILL that nothing else in the input reports.

    Args:
        messages: the messages in which no other reader found a death.
        runs_on: whether the process whose records precede a line has more of them after it.
    """
    reports = _Reports()
    for message in messages:
        for wording, match in _matches(_BY_ANYONE, message.text):
            if not runs_on(message.line_no):
                row = _of_match(message, match, wording)
                reports.add(wording, row, {})
            break
    return reports.rows


_ANYONE = "anyone"
_STOPS, _ENDS = (
    [wording for wording in wordings.WORDINGS if (wording.says == "stopped") == is_stop]
    for is_stop in (True, False)
)
_BY_ANYONE = [wording for wording in _ENDS if wording.who == _ANYONE]


def _matches(
    known: Iterable[wordings.Wording], text: str
) -> Iterator[tuple[wordings.Wording, re.Match[str]]]:
    """Yields the wordings that match a line, with their groups."""
    for wording in known:
        if wording.word in text and (match := wording.pattern.search(text)) is not None:
            yield wording, match


def _nearby(messages: Sequence[Message], at: int, wording: wordings.Wording) -> Row:
    """Returns what lines near a kill add to it, starting at the last beginning of a report."""
    own = [near for near in wordings.NEARBY if near.who == wording.who]
    nearby = messages[max(at - NEAR_LINES, 0) : at + NEAR_LINES + 1]
    row = cgroups.of_sacct(messages[at], nearby) if wording.who == "Slurm" else {}
    is_own = False
    for near in sorted(nearby, key=lambda near: near.line_no):
        is_above = near.line_no <= messages[at].line_no
        for known, match in _matches(own, near.text):
            facts = _facts(match)
            # Below, it belongs to the line before it, which may be of another program.
            is_own = (
                is_above or (is_own and known.says == "at its limit") or not facts.keys() & row
            )
            more = row | facts if is_own and known.says == "at its limit" else facts | row
            row = facts if known is own[0] and is_above else more
            break
    return row


_OF_GROUPS = {
    "code": "exit_code", "error": "error",
    "name": "name", "id": "container_id", "limit": "memory_limit_bytes",
    "host": "memory_of_host_bytes",
    "used": "memory_used_bytes", "request": "memory_request_bytes", "kills": "kills",
}  # fmt: skip


def _facts(match: re.Match[str]) -> Row:
    """Returns the groups of a wording as columns."""
    parts = match.groupdict()
    row: Row = {}
    for group, column in _OF_GROUPS.items():
        text = parts.get(group)
        if text is not None:
            sized = column.endswith("_bytes")
            number = size_bytes(parts, group) if sized else numbers.whole(text)
            row[column] = number if sized or group in ("code", "kills") else text
    if at := parts.get("at"):
        row["finished_at"] = json_values.iso_utc(f"{at.replace(' ', 'T')}Z")
    return with_signal(row)


def _of_match(message: Message, match: re.Match[str], wording: wordings.Wording) -> Row:
    row = _killed(message, **_facts(match))
    if wording.says == "in a group":
        row["event"] = "oom"
    elif wording.says == "at its limit":
        row |= {"oom_killed": None, "status": "running", "event": AT_LIMIT}
    elif wording.says == "used":
        row |= {"oom_killed": None, "status": "running", "error": None}
    elif wording.says == "ended":
        row |= {"oom_killed": None, "signal": "KILL"}
    elif wording.says == "never ran":
        error = match.groupdict().get("error")
        row |= {"oom_killed": None, "status": "exited", "reason": NO_ENTRYPOINT, "error": error}
    elif wording.says == "from the code":
        row["finished_at"] = message.logged_at
    elif wording.word == KILLED_AT_START:
        row["error"] = wording.word
    return row


_SHELL = "a shell and supervisord"
_ANYWHERE: Row = {"line_no": 0}


def stops_of(messages: Iterable[Message]) -> Stops:
    """Returns the ends for other reasons than memory that messages report."""
    by_name: dict[str, tuple[Row, str]] = {}
    named: list[Row] = []
    unnamed: list[tuple[Row, str]] = []
    for message in messages:
        for wording, match in _matches(_STOPS, message.text):
            parts = match.groupdict()
            name = parts.get("name") or parts.get("id") or message.pod
            if name:
                # Only a command may be about another end than the one in the input.
                place = message.place() if wording.who == _SHELL else _ANYWHERE
                by_name.setdefault(name, (place, wording.cause))
                if wording.cause != wordings.ASKED:
                    row = {"line_no": message.line_no, "name": name, "event": "stop"}
                    named.append(row | {"stopped_by": wording.cause})
            else:
                unnamed.append((message.place(), wording.cause))
            break
    return Stops(by_name, unnamed, named)


def mark_stopped(states: Iterable[Row], stops: Stops, *, everywhere: bool = False) -> None:
    """Adds to each container that got SIGKILL why it was ended, if that was not for memory."""
    for state in states:
        got_kill = got_sigkill(state) and not state.get("oom_killed")
        if got_kill and (cause := stops.of(state, everywhere=everywhere)):
            state |= {"stop_requested": True, "stopped_by": state.get("stopped_by") or cause}


def _sizes(used_mib: float | None, limit_mib: float) -> dict[str, int | None]:
    used, limit = (numbers.whole(size, MIB) for size in (used_mib, limit_mib))
    return {"memory_used_bytes": used, "memory_limit_bytes": limit}


def _used(message: Message, used_mib: float, limit_mib: float) -> Row:
    """Returns the row of a container of which only the memory use is known."""
    sizes = _sizes(used_mib, limit_mib)
    if match := _SWAP.search(message.text):
        sizes["memory_swap_bytes"] = numbers.whole(float(match["swap"]), MIB)
    return _killed(message, **sizes, oom_killed=None, status="running")


def _of_ecs_in(message: Message, around: str) -> Iterator[Row]:
    """Yields the containers of task events in a log, or of the event that a text consists of."""
    begin = message.text.find("{")
    try:
        value = json_values.raw_decode(message.text, begin)[0] if begin >= 0 else {}
        rows = ecs_containers(value) if isinstance(value, dict) else []
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError):
        rows = []
    for row in rows:
        yield {"logged_at": message.logged_at, "line_no": message.line_no, **row}
    if not rows:
        code = _EXIT_CODE.search(message.text) or _EXIT_CODE.search(around)
        yield _killed(message, exit_code=numbers.whole(code["code"]) if code else None)


def ecs_containers(value: dict[str, object]) -> list[Row]:
    """Returns the containers of `aws ecs describe-tasks`, or of an event about a task or job."""
    tasks = value.get("tasks") or value.get("jobs") or [value.get("detail", value)]
    return [
        _of_ecs(container, task)
        for whole in json_values.objects(tasks)
        for task in (_attempts(whole) if "jobName" in whole else [whole])
        for container in json_values.objects(task.get("containers"))
        if "lastStatus" in container and _OF_ECS & {*container, *task}
    ]


_OF_ECS = {"taskArn", "containerArn", "stopCode", "stoppedReason"}


def _attempts(job: Row) -> list[Row]:
    """Returns the attempts of an AWS Batch job, whose own container repeats the last one."""
    own = job.get("container") or {}
    sizes = json_values.objects(own.get("resourceRequirements"))
    about = {
        **own,
        **{str(size.get("type")).lower(): size.get("value") for size in sizes},
        "name": job["jobName"],
        "lastStatus": job.get("status"),
    }
    attempts = json_values.objects(job.get("attempts")) or [job]
    return [
        {**task, "containers": [about | (task.get("container") or {})]} for task in attempts
    ]


def _time(value: Any) -> datetime | None:
    """Returns a time as AWS prints it: in ISO 8601, or since 1970 in s, or in ms as Batch."""
    if isinstance(value, str):
        return json_values.iso_utc(value)
    seconds = json_values.epoch_utc(numbers.whole(value, 10**9))
    return seconds or json_values.epoch_utc(numbers.whole(value, 10**6))


def _of_ecs(container: dict[str, object], task: dict[str, object]) -> Row:
    reason = container.get("reason")
    own, shared = (numbers.whole(of.get("memory")) for of in (container, task))
    # On Linux, the CPU units of a container are a share, and only those of its task a quota.
    is_quota = str(task.get("platformFamily")).lower().startswith("windows")
    units = numbers.real((is_quota and container.get("cpu")) or task.get("cpu"))
    is_why = task.get("stopCode") == "EssentialContainerExited"
    several = len(json_values.objects(task.get("containers"))) > 1
    # One container ends the task, and others end up to half a minute later.
    begun = ("stoppingAt",) * bool(reason or not several)
    ends = begun if is_why else ("executionStoppedAt", "stoppedAt")
    row: Row = {
        "name": container.get("name"),
        "container_id": container.get("runtimeId"),
        "status": None if reason else str(container["lastStatus"]).lower(),
        "oom_killed": "OutOfMemory" in str(reason or "") or None,
        "exit_code": container.get("exitCode"),
        "error": reason,
        "started_at": _time(task.get("startedAt")),
        "finished_at": _time(next(filter(None, map(task.get, ends)), None)),
        "memory_limit_bytes": numbers.whole(own or shared, MIB),
        "is_shared": (not own and several) or None,
        "cpu_limit": units / 1024 if units else None,
    }
    if got_sigkill(row) and not row["oom_killed"]:
        why = str(task.get("stoppedReason") or task.get("statusReason") or "")
        if why and task.get("stopCode") not in _NO_STOPS and not why.startswith("Essential"):
            row |= {"stop_requested": True, "stopped_by": f"AWS ECS stopped its task ({why})"}
    return with_signal(given(row))


_NO_STOPS = ("EssentialContainerExited", "TaskFailedToStart")
"""Reasons of ECS for a task that was not stopped from outside."""


def _sized(messages: Iterable[Message]) -> Iterator[Row]:
    """Yields dynos and functions: the killed ones, and the peak use of all others.

    A function that gets SIGKILL ran out of memory if that request used nearly all of it.
    """
    most: dict[str | None, tuple[Message, float, float]] = {}
    of_requests: dict[str, tuple[float, float] | None] = {}
    over: dict[str | None, Message] = {}
    ends: list[tuple[Message, bool, list[str]]] = []
    for message in messages:
        name = message.container
        own, sizes = _REQUEST.findall(message.text), _used_and_size(message.text)
        for request in own:
            of_requests[request] = sizes or of_requests.get(request)
        if sizes:
            used, size = sizes
            if size and (name not in most or used / size >= most[name][1] / most[name][2]):
                most[name] = (message, used, size)
        if "Error R14" in message.text:
            over.setdefault(name, message)
        last = ends[-1][0] if ends and ends[-1][0].container == name else None
        is_told = last is not None and message.line_no - last.line_no <= NEAR_LINES
        if (killed := _KILLED.search(message.text)) and not is_told:
            ends.append((message, killed["by_signal"] is not None, own))
    for message, by_signal, own in ends:
        # A line without an id may be of any request.
        known = [of_requests[request] for request in own or of_requests]
        of_any = most.get(message.container, (message, 0.0, 0.0))[1:]
        used, size = (own and known[0]) or of_any
        is_own = None not in known or not any(of_requests.values())
        yield _ended(message, used, size, is_own=is_own or not by_signal, by_signal=by_signal)
    ended = {message.container for message, *_ in ends}
    yield from (_used(*sizes) for name, sizes in most.items() if name not in ended)
    for name in over.keys() - most.keys() - ended:
        yield _killed(over[name], oom_killed=None, status="running", event=AT_LIMIT)


def _used_and_size(text: str) -> tuple[float, float] | None:
    """Returns the memory that a dyno or function used, and its size, in MiB."""
    if (match := _SIZES.search(text)) is None:
        return None
    parts = {key: float(number) for key, number in match.groupdict().items() if number}
    first, last = next(iter(parts.values())), [*parts.values()][-1]
    if "pct" in parts:
        return first, wordings.quota_mib(first, parts["pct"])
    return (first, last) if "total" in parts else (last, first)


def _ended(message: Message, used: float, size: float, *, is_own: bool, by_signal: bool) -> Row:
    """Returns the row of a function or dyno that ended, as far as its size shows why.

    If it is that of another request (not `is_own`), it proves nothing.
    """
    is_near = used >= _NEAR_SIZE * size > 0
    if OWN_CODE in message.text and used and not is_near:
        return _used(message, used, size)
    sizes = _sizes(used if is_own or is_near else None, size) if size else {}
    row = _killed(message, **sizes) | {"signal": "KILL"}
    return row if is_own and (is_near or not by_signal) else row | {"oom_killed": None}


def _killed(message: Message, **facts: str | int | None) -> Row:
    """Returns the row of a container that was killed for memory."""
    proven = {"oom_killed": True, "error": message.text.strip()[:_ERROR_CHARS]}
    return with_signal({**message.about(facts), **proven, **facts})
