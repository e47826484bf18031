"""Reads what the path of a control group names, and its memory files that people paste.

The files are `memory.max`, `memory.current`, `memory.peak` and `memory.events` of version 2, and
`memory.limit_in_bytes`, `memory.usage_in_bytes`, `memory.max_usage_in_bytes`, `memory.failcnt` and
`memory.oom_control` of version 1 (Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst).

The limits of jobs, which Slurm sets as those of control groups, are read from tables of sacct.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.evidence.kubernetes import quantity
from gctrace_analyzer.ingest.evidence.message import BELOW, SLOWED, WAITS, size_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
    """Returns the container id: 64 hexadecimal digits in docker, containerd and CRI-O."""
    ids = _CONTAINER.findall(path or "")
    return ids[-1] if ids else None


def pod_uid(path: str | None) -> str | None:
    """Returns the uid of a Kubernetes pod; systemd slices have `_` instead of `-`."""
    match = _POD.search(path or "")
    return match[1].replace("_", "-") if match else None


def short_name(path: str) -> str:
    """Returns a short name of a control group: a Kubernetes path fills three lines."""
    last = path.rstrip("/").rpartition("/")[2]
    container, uid = container_id(last), pod_uid(path)
    pod = f"pod {uid}"
    if container is not None:
        return f"container {container[:12]}" + (f" in {pod}" if uid else "")
    if uid is None or pod_uid(last):
        return pod if uid else path if len(path) <= _LONG_PATH else f"…/{last}"
    return f"{last} in {pod}"


_LONG_PATH = 60
"""Characters. A longer path is shortened to its last name."""


def identity(path: str | None) -> Row:
    """Returns the names in the path of a control group, as columns."""
    named = {"unit": unit(path), "container_id": container_id(path), "pod_uid": pod_uid(path)}
    return {"cgroup": path, **named}


def _plain(name: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name)


_FILES = {
    "max": "memory_limit_bytes", "limit_in_bytes": "memory_limit_bytes",
    "peak": "memory_used_bytes", "max_usage_in_bytes": "memory_used_bytes",
    "current": "memory_now_bytes", "usage_in_bytes": "memory_now_bytes", "failcnt": "failcnt",
    "swap.max": "swap_limit_bytes", "swap.peak": "swap_usage_bytes",
}  # fmt: skip
_FILE = re.compile(
    rf"(?<![\w.])memory\.(?P<file>{'|'.join(_FILES)})\s{{0,40}}[:=]?\s{{0,40}}(?P<value>\d{{1,20}}|max)\b"
)
_FILE_ALONE = re.compile(rf"(?<![\w.])memory\.(?P<file>{'|'.join(_FILES)})(?: <==)?\s*$")
_SIZED = "Memory(?:Swap)?(?:Max|High|Peak|Current)"
_KEYS = f"Id|Result|NRestarts|ActiveState|ExecMain(?:Code|Status)|{_SIZED}"
_PROPERTY = re.compile(rf"^(?P<key>{_KEYS})=(?P<value>\S{{1,255}})$")
"""A line of `systemctl show`."""

STATUS = re.compile(r"^\W{0,4}(?P<unit>[\w@\\.:-]{1,255}\.(?:service|scope))(?: - |$)")
_SHOW = re.compile(
    r"\bsystemctl show (?:-p \S{1,200} |--?[\w-]{1,40}(?:=\S{1,200})? ){0,9}"
    r"(?P<unit>[A-Za-z0-9][\w@\\.:-]{0,255})(?= |$)"
)
_OF_STATUS = re.compile(r"^\s{0,40}Memory: \d{1,9}(?:\.\d)?[BKMGT](?: \(.{0,300}\)?)?$")
_SHOWN_SIZES = re.compile(
    r"\b(?P<name>(?:swap )?(?:Memory|high|max|limit|peak)|swap): (?P<size>\d{1,9}(?:\.\d)?)"
    r"(?P<size_unit>[BKMGT])"
)
"""Two lines of `systemctl status` (print_status_info of systemd): the unit, and its memory."""

_ANY_FILE = re.compile(rf"(?<![\w.])memory\.(?:{'|'.join(_FILES)}|events)\b")
_PATH_ALONE = re.compile(r"\s*/sys/fs/cgroup/\S{1,500}\s*$")
_VALUE_ALONE = re.compile(r"^\s*(?P<value>\d{1,20}|max)\s*$")
"""Output of loops of `echo` and `cat`, `head` and `tail`: the file, and its value below it."""

_SEVERAL = re.compile(r"\bcat(?: \S{0,300}memory\.[a-z_.]{1,40}){2,12}")
_FOLDER = re.compile(r"\bcd (?P<folder>/sys/fs/cgroup/\S{1,300}?)/?(?:;|\s|$)")
"""A command that prints the values of several files in their order, and its folder."""

_EVENT = re.compile(
    r"(?:^|[\s/:])(?P<event>low|high|max|oom|oom_kill|oom_group_kill|oom_kill_disable|under_oom)\s+(?P<n>\d{1,12})\b"
)
_NAMED = re.compile(r"memory\.(?:events|oom_control)")
HINT = (
    r"memory\.(?:max|peak|current|swap|limit_in_bytes|usage_in_bytes|max_usage|failcnt|events)|"
    r"^(?:low|high|max|oom|oom_kill|under_oom) \d|oom_kill \d|^\s*(?:\d{4,20}|max)\s*$|"
    rf"^(?:{_KEYS})=\S|"
    r"\.(?:service|scope)(?: - |$)|^\s*Memory: \d|systemctl show "
)


_LEAST_EVENTS = 3
"""Fewest of the five lines of `memory.events`: a line `max 7` alone may be anything."""

_PATH = re.compile(r"(?P<folder>/\S{0,500}/)memory\.[a-z_]+(?P<local>\.local)?")
_PARENT = re.compile(r"(?:\.slice|/user@\d+\.service)/$")


@dataclass(slots=True)
class _Group:
    """The content of a control group's files; the events are its own if `is_local`."""

    row: Row = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    is_named: bool = False
    is_local: bool = False


def read_files(messages: Sequence[Message]) -> list[Row]:
    """Returns a row for each control group whose files the messages show.

    The events of a group include those of all groups below it. So the events of a parent are
    returned only if no group below it has any.
    """
    groups: dict[str, _Group] = {}
    folder, is_local = "", False
    above: tuple[int, str | None] = (-1, None)
    listed: list[str] = []
    for message in messages:
        text = message.text
        if path := _PATH.search(text):
            folder, is_local = path["folder"], path["local"] is not None
        elif path := _FOLDER.search(text):
            folder = f"{path['folder']}/"
        group = groups.setdefault(folder, _Group())
        if is_local and not group.is_local:
            group.is_local = True
            group.events.clear()
        group.is_named |= _NAMED.search(text) is not None
        alone = _VALUE_ALONE.match(text) if above[0] == message.line_no - 1 else None
        joined_text = f"memory.{above[1]} {alone['value']}" if alone and above[1] else text
        for match in _FILE.finditer(joined_text):
            # The word of cgroup v2 for no limit.
            none = -1 if match["file"] == "swap.max" else 0
            value = none if match["value"] == "max" else numbers.whole(match["value"])
            if value is not None and value < numbers.ADDRESSABLE_BYTES:
                group.row[_FILES[match["file"]]] = value
                group.row.setdefault("line_no", message.line_no)
        for match in _EVENT.finditer(text):
            if is_local == group.is_local:
                group.events[match["event"]] = int(match["n"])
                group.row.setdefault("line_no", message.line_no)
        if several := _SEVERAL.search(text):
            listed = re.findall(r"memory\.([a-z_.]+)", several[0])
        file = _FILE_ALONE.search(text)
        above = (
            message.line_no,
            listed.pop(0) if listed else file["file"] if file else None,
        )
    return [*_rows(groups), *_units(messages)]


def lines_of(text: str) -> list[tuple[int, str]]:
    """Returns the lines of a text about the files of a control group, with their numbers.

    The lines are empty if the text names none of the files.
    """
    if not _ANY_FILE.search(text):
        return []
    lines = enumerate(text.split("\n"), start=1)
    return [
        (number, line)
        for number, line in lines
        if _ANY_FILE.search(line) or _VALUE_ALONE.match(line) or _PATH_ALONE.match(line)
    ]


def _units(messages: Iterable[Message]) -> Iterator[Row]:
    """Yields the systemd units with a limit in the text, and those ended for memory."""
    shown: list[tuple[int, dict[str, str | int | None]]] = []
    for message in messages:
        if match := _PROPERTY.match(message.text):
            if not shown or match["key"] in shown[-1][1]:
                shown.append((message.line_no, {}))
            shown[-1][1][match["key"]] = match["value"]
        elif match := STATUS.match(message.text) or _SHOW.search(message.text):
            name = match["unit"] if "." in match["unit"] else f"{match['unit']}.service"
            shown.append((message.line_no, {"Id": name}))
        elif shown and (match := _OF_STATUS.match(message.text)):
            for size in _SHOWN_SIZES.finditer(match[0]):
                shown_as = size["name"].title().replace(" ", "")
                name = f"Memory{_SHOWN_AS.get(size['name'], shown_as)}"
                shown[-1][1][name] = size_bytes(size.groupdict(), "size")
    for line_no, unit in shown:
        row = _of_unit(unit)
        if row["memory_limit_bytes"] or row["memory_now_bytes"] or "signal" in row:
            yield {"line_no": line_no, "name": unit.get("Id"), **row}


def _of_unit(unit: Mapping[str, str | int | None]) -> Row:
    """Returns the state of a unit from its properties."""
    row: Row = {column: numbers.whole(unit.get(key)) for column, key in _OF_PROPERTIES.items()}
    if unit.get("MemoryMax") == "infinity":
        row["memory_limit_bytes"] = 0
    if unit.get("MemorySwapMax") == "infinity":
        row["swap_limit_bytes"] = -1
    row["status"] = "exited" if unit.get("ActiveState") in ("failed", "inactive") else "running"
    if unit.get("Result") == "oom-kill":
        row |= {"oom_killed": True, "status": "exited", "signal": "KILL"}
    elif (high := numbers.whole(unit.get("MemoryHigh"))) and (
        _REACHED * high
        <= max(now := row["memory_now_bytes"] or 0, row["memory_used_bytes"] or 0)
        and max(now, high) < (row["memory_limit_bytes"] or math.inf)
    ):
        row |= {"memory_limit_bytes": high, "event": SLOWED}
    elif (unit.get("ExecMainCode"), unit.get("ExecMainStatus")) == ("2", "9"):
        row |= {"signal": "KILL"}  # CLD_KILLED
    return row


_SHOWN_AS = {"Memory": "Current", "limit": "Max", "swap": "SwapCurrent"}
"""Names of properties in `systemctl status`, if they differ."""

_REACHED = 0.99
"""Share of MemoryHigh that counts as reaching it: the kernel keeps the use near it."""

_OF_PROPERTIES = {
    "memory_limit_bytes": "MemoryMax",
    "memory_used_bytes": "MemoryPeak",
    "memory_now_bytes": "MemoryCurrent",
    "memory_swap_bytes": "MemorySwapCurrent",
    "swap_limit_bytes": "MemorySwapMax",
    "swap_usage_bytes": "MemorySwapPeak",
    "restart_count": "NRestarts",
}


def _rows(groups: dict[str, _Group]) -> Iterator[Row]:
    killed = [path for path, group in groups.items() if group.events.get("oom_kill")]
    for path, group in groups.items():
        row = group.row
        is_below = not group.is_local and _PARENT.search(path) is not None
        if group.is_named or len(group.events) >= _LEAST_EVENTS:
            row |= _of_events(group.events, is_below=is_below)
        is_said = is_below and any(path < other and other.startswith(path) for other in killed)
        if row.keys() - _USES and not is_said:
            about = {"name": unit(path), "container_id": container_id(path)}
            yield row | about | {"status": "running"}


_USES = {*_FILES.values(), "line_no"} - {"memory_limit_bytes", "failcnt"}
"""Values that do not show a limit by themselves."""


def _of_events(events: dict[str, int], *, is_below: bool) -> Row:
    row: Row = {}
    if "max" in events:
        row["failcnt"] = events["max"]
    if events.get("oom_kill"):
        row |= {"oom_killed": True, "event": BELOW if is_below else "oom"}
        row["kills"] = events["oom_kill"]
    if events.get("oom_kill_disable") and events.get("under_oom"):
        row["event"] = WAITS
    return row


def joined(groups: list[Row], rows: Rows) -> list[Row]:
    """Adds the limit of the only control group to the only kill in one, or returns the groups."""
    kills = [row for row in rows.get("oom_kills", []) if row.get("scope") == "memcg"]
    if len(kills) != 1 or len(groups) != 1 or groups[0].get("event") == BELOW:
        return groups
    kill = kills[0]
    of_kill = {"limit_bytes": "memory_limit_bytes", "failcnt": "failcnt"}
    of_kill |= {name: name for name in ("swap_limit_bytes", "swap_usage_bytes")}
    for column, name in of_kill.items():
        if kill.get(column) is None:
            kill[column] = groups[0].get(name) or None
    return []


def of_sacct(about: Message, nearby: Iterable[Message]) -> Row:
    """Returns what a table of sacct shows of a job: the memory it requested, and its peak use."""
    header, spans, sizes = "", list[tuple[int, int]](), {"ReqMem": 0, "MaxRSS": 0}
    named = re.search(r"(?i:step|job)_?id=(\d{1,12})", about.text)
    job = named[1] if named else about.text.split()[0].partition(".")[0]
    for message in nearby:
        if spans and message.text.split(".")[0].split(" ")[0] == job:
            for begin, end in spans:
                name, cell = header[begin:end].strip(), message.text[begin:end].strip()
                if name in sizes:
                    # Up to 21.08, `n` is for memory per node, and `c` per CPU.
                    size = numbers.whole(quantity(f"{cell.removesuffix('n')}i"))
                    sizes[name] = max(sizes[name], size or 0)
        elif message.text.startswith("---"):
            spans = [match.span() for match in re.finditer("-+", message.text)]
        elif "JobID" in message.text:
            header, spans = message.text, []
    limit, used = sizes.values()
    return {"memory_limit_bytes": limit or None, "memory_used_bytes": used or None}
