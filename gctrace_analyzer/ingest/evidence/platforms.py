"""Reads how platforms and tools other than the kernel report a kill for memory.

earlyoom names the process that it kills. Google Cloud Run and App Engine, Heroku, Cloud Foundry,
Nomad, containerd, AWS Lambda and AWS ECS name the limit, the container, or neither.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.ingest import json_values, numbers
from gctrace_analyzer.ingest.evidence.docker import with_signal
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from gctrace_analyzer.ingest.evidence.message import Message, Row, Rows

HINT = (
    r"sending SIG|emory limit of \d|Error R15|running mem=|xit status \d+ \(out of memory|"
    r"OOM Killed|TaskOOM|Max Memory Used|signal: killed|OutOfMemoryError: C"
)

# kill.c of earlyoom 1.2 to 1.9: the badness was renamed, and some fields came later.
_EARLYOOM = re.compile(
    r"sending SIG(?:TERM|KILL) to process (?P<pid>\d{1,10})(?: uid (?P<uid>\d{1,10}))? "
    r'"(?P<comm>.{0,64}?)"(?:: (?:badness|oom_score) (?P<score>-?\d{1,10})|$)'
    r"(?:.{0,64}?VmRSS (?P<rss>\d{1,12}) MiB)?"
)
_SIZE = r"(?P<{0}>\d{{1,12}}(?:\.\d{{1,6}})?) ?(?P<{0}_unit>[MG])i?B?"
_GOOGLE = re.compile(
    rf"(?:Memory limit of {_SIZE.format('limit')} exceeded with"
    rf"|Exceeded (?:soft|hard) memory limit of {_SIZE.format('old')} with)"
)
_HEROKU_SIZE = re.compile(r"Process running mem=(?P<mem>\d{1,9})M\((?P<pct>\d{1,9}\.\d)%\)")
_HEROKU = re.compile(r"Error R15 \(Memory quota vastly exceeded\)")
_CLOUD_FOUNDRY = re.compile(
    r"(?:\[(?:APP|CELL)(?:/PROC)?/(?P<name>[\w./-]{1,100})\] )?.{0,8}?"
    r"Exit status (?P<code>\d{1,3}) \(out of memory\)"
)
_NOMAD = re.compile(
    r"Exit Code: (?P<code>\d{1,3}),(?: Signal: \d{1,3},)? Exit Message: \"OOM Killed"
)
_CONTAINERD = re.compile(
    r"TaskOOM event .{0,16}?[Cc]ontainer_?(?:id|ID):\s?\\*\"?(?P<id>[0-9a-f]{12,64})"
)
_LAMBDA = re.compile(
    r"Memory Size: (?P<size>\d{1,9}) MB\s+Max Memory Used: (?P<used>\d{1,9}) MB"
)
_LAMBDA_KILLED = re.compile(
    r"Error Type: Runtime\.OutOfMemory|Runtime exited.{0,20}signal: killed"
)

_ECS = "OutOfMemoryError: Container killed"

_NEAR_LINES = 8
"""AWS Lambda writes the size and the end of a function within so many lines."""

_ERROR_CHARS = 200


def read(messages: Sequence[Message]) -> Rows:
    """Returns kills by earlyoom, and containers that a platform killed for memory."""
    return {
        "oom_kills": list(_earlyoom(messages)),
        "container_states": [*_containers(messages), *_functions(messages)],
    }


def _earlyoom(messages: Iterable[Message]) -> Iterator[Row]:
    """Yields the processes that earlyoom ended; SIGKILL after SIGTERM is the same kill."""
    last: tuple[str | None, str] | None = None
    for message in messages:
        if not (match := _EARLYOOM.search(message.text)):
            continue
        if last == (message.host, match["pid"]):
            continue
        last = (message.host, match["pid"])
        yield message.place() | {
            "killer": "earlyoom",
            "scope": "global",
            "pid": numbers.whole(match["pid"]),
            "comm": match["comm"],
            "uid": numbers.whole(match["uid"]),
            "score": numbers.whole(match["score"]),
            "anon_rss_bytes": numbers.whole(match["rss"], MIB),
        }


def _containers(messages: Iterable[Message]) -> Iterator[Row]:
    quotas: dict[str | None, int] = {}
    for message in messages:
        text = message.text
        if match := _HEROKU_SIZE.search(text):
            share = float(match["pct"]) / 100
            if share:
                quotas[message.container] = round(int(match["mem"]) / share) * MIB
        elif match := _GOOGLE.search(text):
            yield _killed(message, memory_limit_bytes=_limit(match))
        elif _HEROKU.search(text):
            limit = quotas.get(message.container)
            yield _killed(message, memory_limit_bytes=limit, exit_code=137)
        elif match := _CLOUD_FOUNDRY.search(text):
            name = {"name": match["name"]} if match["name"] else {}
            yield _killed(message, exit_code=numbers.whole(match["code"]), **name)
        elif match := _NOMAD.search(text):
            yield _killed(message, exit_code=numbers.whole(match["code"]))
        elif match := _CONTAINERD.search(text):
            yield _killed(message, container_id=match["id"])
        elif _ECS in text:
            yield from _of_ecs_in(message)


def _of_ecs_in(message: Message) -> Iterator[Row]:
    """Yields the containers of an event about a task in a log, or the one that a text is about."""
    begin = message.text.find("{")
    try:
        value = json_values.raw_decode(message.text, begin)[0] if begin >= 0 else {}
        rows = ecs_containers(value) if isinstance(value, dict) else []
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError):
        rows = []
    for row in rows:
        yield {"logged_at": message.logged_at, "line_no": message.line_no, **row}
    if not rows:
        yield _killed(message)


def ecs_containers(value: dict[str, Any]) -> list[Row]:
    """Returns the containers of `aws ecs describe-tasks`, or of ECS's event about one task.

    Returns nothing for other documents.
    """
    tasks = value.get("tasks") or [value.get("detail", value)]
    return [
        _of_ecs(container, task)
        for task in json_values.objects(tasks)
        for container in json_values.objects(task.get("containers"))
        if "lastStatus" in container and {"taskArn", "containerArn"} & {*container, *task}
    ]


def _time(value: Any) -> datetime | None:
    """Returns a time as version 1 (seconds since 1970) or 2 of the AWS command line prints it."""
    if isinstance(value, str):
        return json_values.iso_utc(value)
    return json_values.epoch_utc(numbers.whole(value, 10**9))


def _of_ecs(container: dict[str, Any], task: dict[str, Any]) -> Row:
    reason = container.get("reason")
    ended = task.get("executionStoppedAt") or task.get("stoppedAt")
    # The memory of a task is a limit too, which its containers share.
    limit = numbers.whole(container.get("memory")) or numbers.whole(task.get("memory"))
    units = numbers.real(container.get("cpu")) or numbers.real(task.get("cpu"))
    row: Row = {
        "name": container.get("name"),
        "container_id": container.get("runtimeId"),
        "status": None if reason else str(container["lastStatus"]).lower(),
        "oom_killed": "OutOfMemory" in str(reason or "") or None,
        "exit_code": container.get("exitCode"),
        "error": reason,
        "started_at": _time(task.get("startedAt")),
        "finished_at": _time(ended),
        "memory_limit_bytes": numbers.whole(limit, MIB),
        "cpu_limit": units / 1024 if units else None,
    }
    return with_signal({name: each for name, each in row.items() if each is not None})


def _limit(match: re.Match[str]) -> int | None:
    """Returns the limit that Google prints, in its MB and GB, which are binary."""
    name = "limit" if match["limit"] else "old"
    factor = MIB if match[f"{name}_unit"] == "M" else 1024 * MIB
    return numbers.whole(numbers.real(match[name]), factor)


def _functions(messages: Iterable[Message]) -> Iterator[Row]:
    """Yields functions of AWS Lambda that used all their memory and were killed."""
    full: tuple[Message, int] | None = None
    killed: Message | None = None
    for message in messages:
        if match := _LAMBDA.search(message.text):
            size, used = int(match["size"]), int(match["used"])
            full = (message, size * MIB) if used >= size else None
        if _LAMBDA_KILLED.search(message.text):
            killed = message
        if full and killed and abs(full[0].line_no - killed.line_no) <= _NEAR_LINES:
            yield _killed(full[0], memory_limit_bytes=full[1])
            full = killed = None


def _killed(message: Message, **facts: str | int | None) -> Row:
    """Returns the row of a container that was killed for memory."""
    about = {
        "logged_at": message.logged_at,
        "line_no": message.line_no,
        "pod": message.pod,
        "container": message.container,
        "container_id": message.container_id,
        "oom_killed": True,
        "error": message.text.strip()[:_ERROR_CHARS],
    }
    return with_signal({**about, **facts})
