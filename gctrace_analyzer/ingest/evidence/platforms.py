"""Reads how platforms and tools other than the kernel report a kill for memory.

earlyoom names the process that it kills. Google Cloud Run and App Engine, Heroku, Cloud Foundry,
Nomad, containerd, AWS Lambda and AWS ECS, Mesos, Slurm, Render and Fly.io name the limit, what was
used, the container, or nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.ingest import json_values, numbers
from gctrace_analyzer.ingest.evidence.docker import with_signal
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from gctrace_analyzer.ingest.evidence.message import Message, Row, Rows

HINT = (
    r"sending SIG|mem avail: |ow memory! |emory limit |Error R1[45]|running mem=|"
    r"sample#memory_|xit(?:ed with)? status \d+ \(out of memory|OOM Killed|TaskOOM|"
    r"Max Memory Used|signal: killed|Runtime\.OutOfMemory|OutOfMemoryError: C|oom[-_]kill event|"
    r"emory limit exceeded|appears to have been OOM killed|oom_killed[=:] ?true|"
    r"Ran out of memory \(used over|using too much memory and|"
    r"exit(?:ed with)?(?: non-zero)?(?: exit)? code:? 137|"
    r"xit Code: 137|non-zero exit \(137\)|force[- ]killing|Stopping container|liveness probe"
)

# kill.c of earlyoom 1.2 to 1.9: the badness was renamed, and some fields came later.
_EARLYOOM = re.compile(
    r"sending SIG(?:TERM|KILL) to process (?P<pid>\d{1,10})(?: uid (?P<uid>\d{1,10}))? "
    r'"(?P<comm>.{0,64}?)"(?:: (?:badness|oom_score) (?P<score>-?\d{1,10})|$)'
    r"(?:.{0,64}?VmRSS (?P<rss>\d{1,12}) MiB)?"
)
_AVAILABLE = re.compile(
    r"mem avail: *(?P<available>\d{1,12}) of +(?P<host>\d{1,12}) MiB"
    r"|low memory! at or below SIG\w{4} limits: mem +(?P<limit>\d{1,3}(?:\.\d{1,3})?) ?%",
    re.IGNORECASE,
)
_SIZE = r"(?P<{0}>\d{{1,12}}(?:\.\d{{1,6}})?) ?(?P<{0}_unit>[KMG])(?:i?B)?"
_LIMIT, _USED = _SIZE.format("limit"), _SIZE.format("used")
_CODE = r"(?P<code>\d{1,3})"
_KILLED = tuple(
    (word, re.compile(pattern))
    for word, pattern in (
        # Cloud Run, Cloud Functions and App Engine print binary "MB", "M" or "MiB".
        ("emory limit of", rf"Memory limit of {_LIMIT} exceeded with(?: {_USED})?"),
        (
            "memory limit of",
            rf"Exceeded (?:soft |hard )?(?:private )?memory limit of {_LIMIT} with(?: {_USED})?",
        ),
        ("emory limit exceeded", r"Error: memory limit exceeded"),
        # Mesos and Marathon
        (
            "emory limit exceeded",
            rf"Memory limit exceeded: Requested: {_LIMIT} Maximum Used: {_USED}",
        ),
        ("Ran out of memory", rf"Ran out of memory \(used over {_LIMIT}\)"),  # Render
        ("Error R15", r"Error R15 \(Memory quota vastly exceeded\)"),
        (
            "(out of memory)",
            r"(?:\[(?:APP|CELL)(?:/PROC)?/(?P<name>[\w./-]{1,100})\] )?.{0,8}?"
            rf"Exit(?:ed with)? status {_CODE} \(out of memory\)",
        ),
        # Nomad's events, and the log of its client
        (
            "OOM Killed",
            rf"Exit Code: {_CODE},(?: Signal: \d{{1,3}},)? Exit Message: \\*\"OOM Killed"
            r"|(?:task \"(?P<name>[^\"]{1,100})\".{0,100}?)?exit code (?P<of_client>\d{1,3})"
            r",? signal \d{1,3},? and error:? \"?OOM Killed",
        ),
        (
            "TaskOOM",
            r"TaskOOM event .{0,16}?[Cc]ontainer_?(?:id|ID):\s?\\*\"?(?P<id>[0-9a-f]{12,64})",
        ),
        (
            "kill event",  # Slurm
            r"Detected (?P<kills>\d{1,9}) oom[-_]kill event(?:\(s\)|s)? in "
            r"(?P<name>(?:step |StepId=|Step=)\S{1,60})",
        ),
        ("OOM killed", r"appears to have been OOM killed"),  # Fly.io
        ("oom_killed", r"oom_killed[=:] ?true"),
        ("OutOfMemoryError", r"OutOfMemoryError: Container killed"),
        ("too much memory", r"found to be using too much memory and was terminated"),
    )
)
"""A word that the lines of a platform have, and what they say about a kill for memory."""

_IN_A_GROUP = ("TaskOOM", "kill event")
"""These report the kill of a process, and not the end of its container."""

_ANYONES = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: a)?(?: non-zero)?(?: exit)? code:?|Exit Code:|non-zero exit) ?"
    r"\(?137\b"
)
"""An exit code by which nothing is proven."""

_STOP = re.compile(
    r"Sent interrupt|[Ff]orce[- ]killing|Stopping container|liveness probe.{0,60}restarted|"
    r"User requested task to stop|Kill Timeout|container stop "
)
_HEROKU_SIZE = re.compile(r"Process running mem=(?P<mem>\d{1,9})M\((?P<pct>\d{1,9}\.\d)%\)")
_HEROKU_SAMPLE = re.compile(
    r"sample#memory_total=(?P<used>\d{1,9}(?:\.\d{1,4})?)MB.{0,400}?"
    r"sample#memory_quota=(?P<quota>\d{1,9}(?:\.\d{1,4})?)MB"
)
_LAMBDA = re.compile(
    r"Memory Size: (?P<size>\d{1,9}) MB\s+Max Memory Used: (?P<used>\d{1,9}) MB"
)
_LAMBDA_KILLED = re.compile(
    r"Error Type: Runtime\.OutOfMemory|Runtime exited.{0,20}signal: killed"
)
_NEAR_SIZE = 0.9
"""Share of a function's memory. A function that another run of used less was not killed for it."""

_NEAR_LINES = 8
"""AWS Lambda writes the size and the end of a function within so many lines."""

_ERROR_CHARS = 200


def read(messages: Sequence[Message]) -> Rows:
    """Returns kills by earlyoom, and containers that a platform killed for memory."""
    return {
        "oom_kills": list(_earlyoom(messages)),
        "container_states": [
            *_containers(messages),
            *_dynos(messages),
            *_functions(messages),
        ],
    }


def _earlyoom(messages: Iterable[Message]) -> Iterator[Row]:
    """Yields the processes that earlyoom ended; all signals to one are the same kill."""
    ended: set[tuple[str | None, str, str]] = set()
    state: Row = {}
    for message in messages:
        if of_host := _AVAILABLE.search(message.text):
            state |= (
                {
                    "available_bytes": numbers.whole(of_host["available"], MIB),
                    "host_bytes": numbers.whole(of_host["host"], MIB),
                }
                if of_host["host"]
                else {"available_limit_pct": numbers.real(of_host["limit"])}
            )
        if not (match := _EARLYOOM.search(message.text)):
            continue
        victim = (message.host, match["pid"], match["comm"])
        if victim in ended:
            continue
        ended.add(victim)
        yield (
            message.place()
            | state
            | {
                "killer": "earlyoom",
                "scope": "global",
                "pid": numbers.whole(match["pid"]),
                "comm": match["comm"],
                "uid": numbers.whole(match["uid"]),
                "score": numbers.whole(match["score"]),
                "anon_rss_bytes": numbers.whole(match["rss"], MIB),
            }
        )


def _containers(messages: Sequence[Message]) -> Iterator[Row]:
    """Yields the containers that a platform says were killed, or ended by an exit code of 137."""
    stops = sorted(message.line_no for message in messages if _STOP.search(message.text))
    for message in messages:
        matches = (
            (word, pattern.search(message.text))
            for word, pattern in _KILLED
            if word in message.text
        )
        word, match = next((pair for pair in matches if pair[1]), ("", None))
        after = bisect_left(stops, message.line_no - _NEAR_LINES)
        stopped = after < len(stops) and stops[after] <= message.line_no + _NEAR_LINES
        if match is None:
            if stopped and _ANYONES.search(message.text):
                row = _killed(message, exit_code=137, stop_requested=True)
                yield row | {"oom_killed": None}
        elif word == "OutOfMemoryError":
            yield from _of_ecs_in(message)
        elif word != "Error R15":
            yield from _of_match(message, match, word, stopped=stopped)


def _of_match(
    message: Message, match: re.Match[str], word: str, *, stopped: bool
) -> Iterator[Row]:
    parts = match.groupdict()
    code = numbers.whole(parts.get("code") or parts.get("of_client"))
    facts = {
        "exit_code": code,
        "name": parts.get("name"),
        "container_id": parts.get("id"),
        "memory_limit_bytes": _bytes(parts, "limit"),
        "memory_used_bytes": _bytes(parts, "used"),
        "event": "oom" if word in _IN_A_GROUP else None,
    }
    row = _killed(message, **{name: fact for name, fact in facts.items() if fact is not None})
    if stopped and code == 137:
        # Nomad makes its words from the exit code, which SIGKILL after a stop has too.
        row |= {"oom_killed": None, "stop_requested": True}
    yield row


def _bytes(parts: dict[str, str | None], name: str) -> int | None:
    """Returns a size that a platform prints: its MB and GB are binary."""
    if (number := numbers.real(parts.get(name))) is None:
        return None
    return numbers.whole(
        number, {"K": 1024, "M": MIB, "G": 1024 * MIB}[parts[f"{name}_unit"] or "M"]
    )


def _dynos(messages: Iterable[Message]) -> Iterator[Row]:
    """Yields the dynos of Heroku: those that it killed, and the most that each other one used."""
    most: dict[str | None, tuple[Message, float, float]] = {}
    killed: set[str | None] = set()
    for message in messages:
        name = message.container
        if match := _HEROKU_SIZE.search(message.text):
            used, share = float(match["mem"]), float(match["pct"]) / 100
            size = (used, round(used / share) if share else 0.0)
        elif match := _HEROKU_SAMPLE.search(message.text):
            size = (float(match["used"]), float(match["quota"]))
        elif "Error R15" in message.text:
            killed.add(name)
            last = most.get(name)
            yield _killed(message, exit_code=137, **({} if last is None else _sizes(*last[1:])))
            continue
        else:
            continue
        if size[1] and (name not in most or size[0] >= most[name][1]):
            most[name] = (message, *size)
    for name, (message, used, quota) in most.items():
        if name not in killed:
            yield _used(message, used, quota)


def _sizes(used_mib: float, limit_mib: float) -> dict[str, int | None]:
    return {
        "memory_used_bytes": numbers.whole(used_mib, MIB),
        "memory_limit_bytes": numbers.whole(limit_mib, MIB),
    }


def _used(message: Message, used_mib: float, limit_mib: float) -> Row:
    """Returns the row of a container of which only is known how much memory it used."""
    row = _killed(message, **_sizes(used_mib, limit_mib))
    return row | {"oom_killed": None, "status": "running"}


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


def ecs_containers(value: dict[str, object]) -> list[Row]:
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


def _of_ecs(container: dict[str, object], task: dict[str, object]) -> Row:
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


def _functions(messages: Iterable[Message]) -> Iterator[Row]:
    """Yields functions of AWS Lambda: those that were killed, and the most that others used.

    A function that gets SIGKILL ran out of memory, if it or another run of it used nearly all.
    """
    most: tuple[Message, int, int] | None = None
    ends: list[Message] = []
    for message in messages:
        if match := _LAMBDA.search(message.text):
            used, size = int(match["used"]), int(match["size"])
            if most is None or used / size >= most[1] / most[2]:
                most = (message, used, size)
        if _LAMBDA_KILLED.search(message.text) and not (
            ends and message.line_no - ends[-1].line_no <= _NEAR_LINES
        ):
            ends.append(message)
    for message in ends:
        sizes = {} if most is None else _sizes(most[1], most[2])
        row = _killed(message, **sizes)
        near = most is not None and most[1] >= _NEAR_SIZE * most[2]
        yield row if near or "OutOfMemory" in message.text else row | _UNPROVEN
    if most is not None and not ends:
        yield _used(*most)


_UNPROVEN: Row = {"oom_killed": None, "exit_code": 137, "signal": "KILL"}


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
