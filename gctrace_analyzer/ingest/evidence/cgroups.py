"""Finds what the path of a control group names, and reads its memory files that people paste.

The files are `memory.max`, `memory.current`, `memory.peak` and `memory.events` of version 2, and
`memory.limit_in_bytes`, `memory.usage_in_bytes`, `memory.max_usage_in_bytes`, `memory.failcnt` and
`memory.oom_control` of version 1 (Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.ingest.evidence.message import Message, Row, Rows

_UNIT = re.compile(r"(?<![^/])[^/]+\.(?:service|scope|slice)(?=/|$)")
_CONTAINER = re.compile(r"(?:^|[-/:])([0-9a-f]{64})(?=\.scope|/|$)")
_POD = re.compile(
    r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})"
)
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")


def unit(path: str | None) -> str | None:
    """Returns the innermost systemd unit of a path."""
    names = units(path)
    return names[-1] if names else None


def units(path: str | None) -> list[str]:
    """Returns every systemd unit of a path, the innermost last."""
    return [_plain(name) for name in _UNIT.findall(path or "")]


def container_id(path: str | None) -> str | None:
    """Returns the container id: 64 hexadecimal digits for docker, containerd and CRI-O."""
    ids = _CONTAINER.findall(path or "")
    return ids[-1] if ids else None


def pod_uid(path: str | None) -> str | None:
    """Returns the uid of a Kubernetes pod; systemd slices have `_` instead of `-`."""
    match = _POD.search(path or "")
    return match[1].replace("_", "-") if match else None


def short_name(path: str) -> str:
    """Returns how to call a control group in a sentence: a path of Kubernetes fills three lines."""
    last = path.rstrip("/").rpartition("/")[2]
    container, uid = container_id(last), pod_uid(path)
    pod = f"pod {uid}"
    if container is not None:
        return f"container {container[:12]}" + (f" in {pod}" if uid else "")
    return pod if pod_uid(last) else path


def identity(path: str | None) -> Row:
    """Returns what the path of a control group names, as columns."""
    named = {"unit": unit(path), "container_id": container_id(path), "pod_uid": pod_uid(path)}
    return {"cgroup": path, **named}


def _plain(name: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name)


_FILES = {
    "max": "memory_limit_bytes", "limit_in_bytes": "memory_limit_bytes",
    "peak": "memory_used_bytes", "max_usage_in_bytes": "memory_used_bytes",
    "current": "current_bytes", "usage_in_bytes": "current_bytes", "failcnt": "failcnt",
}  # fmt: skip
_FILE = re.compile(
    rf"(?<![\w.])memory\.(?P<file>{'|'.join(_FILES)})\s{{0,40}}[:=]?\s{{0,40}}(?P<value>\d{{1,20}})\b"
)
_FILE_ALONE = re.compile(rf"(?<![\w.])memory\.(?P<file>{'|'.join(_FILES)})(?: <==)?\s*$")
_VALUE_ALONE = re.compile(r"^\s*(?P<value>\d{1,20})\s*$")
"""What loops of `echo` and `cat`, `head` and `tail` print: the file, and its value below it."""

_EVENT = re.compile(
    r"(?:^|[\s/:])(?P<event>low|high|max|oom|oom_kill|oom_group_kill)\s+(?P<n>\d{1,12})\b"
)
_NAMED = re.compile(r"memory\.(?:events|oom_control)")
HINT = (
    r"memory\.(?:max|peak|current|limit_in_bytes|usage_in_bytes|max_usage|failcnt|events)|"
    r"^(?:low|high|max|oom|oom_kill) \d|oom_kill \d|^\s*\d{4,20}\s*$"
)


_LEAST_EVENTS = 3
"""Of the five lines of `memory.events`. A line `max 7` alone may be anything."""


def read_files(messages: Sequence[Message]) -> Row | None:
    """Returns the row of the control group whose files the messages show; None without any."""
    row: Row = {}
    events: dict[str, int] = {}
    line_no = None
    named = False
    above: tuple[int, re.Match[str] | None] = (-1, None)
    for message in messages:
        text = message.text
        named |= _NAMED.search(text) is not None
        alone = _VALUE_ALONE.match(text) if above[0] == message.line_no - 1 else None
        joined_text = (
            f"memory.{above[1]['file']} {alone['value']}" if alone and above[1] else text
        )
        for match in _FILE.finditer(joined_text):
            value = numbers.whole(match["value"])
            if value is not None and value < numbers.ADDRESSABLE_BYTES:
                row[_FILES[match["file"]]] = value
                folder = text[: match.start()].split(" ")[-1]
                row |= {"cgroup": folder} if "/" in folder else {}
                line_no = line_no or message.line_no
        for match in _EVENT.finditer(text):
            events[match["event"]] = int(match["n"])
            line_no = line_no or message.line_no
        above = (message.line_no, _FILE_ALONE.search(text))
    current = row.pop("current_bytes", None)
    path = row.pop("cgroup", "")
    if named or len(events) >= _LEAST_EVENTS:
        row |= _of_events(events)
    if row.keys() <= {"memory_used_bytes"}:
        return None
    row.setdefault("memory_used_bytes", current)
    return row | {
        "line_no": line_no,
        "container_id": container_id(path),
        "status": "running",
    }


def _of_events(events: dict[str, int]) -> Row:
    row: Row = {}
    if "max" in events:
        row["failcnt"] = events["max"]
    if events.get("oom_kill"):
        row |= {"oom_killed": True, "event": "oom"}
    return row


def joined(group: Row | None, rows: Rows) -> list[Row]:
    """Adds the limit of a control group to the only kill in one, or returns it as a row."""
    if group is None:
        return []
    kills = [row for row in rows.get("oom_kills", []) if row.get("scope") == "memcg"]
    if len(kills) != 1:
        return [group]
    kill = kills[0]
    of_kill = {"limit_bytes": "memory_limit_bytes", "failcnt": "failcnt"}
    for column, name in of_kill.items():
        if kill.get(column) is None:
            kill[column] = group.get(name)
    return []
