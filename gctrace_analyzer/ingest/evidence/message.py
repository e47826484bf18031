"""A log message without its prefix, as the readers of OOM kills, events and dumps take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.schema import IDENTITY, TABLES
from gctrace_analyzer.schema import Row as Row

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping
    from datetime import datetime

Rows: TypeAlias = "dict[str, list[Row]]"
"""Rows by table; a column that a row lacks is null."""

AT_LIMIT = "at limit"
"""The event of a container or job that is only known to have reached its memory limit."""

WAITS = "waits"
"""The event of a container at its memory limit whose OOM killer is off: its processes wait."""

ASKED = "asked"
"""The reason of a kill by SIGTERM if no line shows that the program ended."""

NOT_ENDED = "not_ended"
"""The reason of an attempted kill: the program had not ended ten seconds after SIGTERM."""

ENDED = "ended"
"""The reason of a kill by SIGTERM if the program then ended by itself."""

OF_SIGTERM = (ASKED, ENDED, NOT_ENDED)

OWN_CODE = "exit status 137"
"""AWS Lambda prints this for a runtime that ended by itself, as a shell does after a child."""

SLOWED = "slowed"
"""The event of a unit that uses all of its MemoryHigh, which is below its limit."""

BELOW = "oom below"
"""The event of a control group if a process in it, or in a group below it, was killed."""

STATED = "stated"
"""The event of a container if the input only states its settings."""

WINDOWS_COMMIT_LIMIT = 1455
"""The errno of VirtualAlloc at the commit limit. The runtime commits only addresses that it has
reserved before (sysUsedOS in mem_windows.go), so they have not run out."""

IMPOSSIBLE_SIZE, UNUSABLE_ADDRESS = "impossible size", "unusable address"
LOCKED_MEMORY, AT_START, METADATA = "locked memory", "at start", "metadata"
ARENA_FULL = "arena full"
"""Kinds of `runtime_fatal`."""

TOOLCHAIN = ("compile", "link", "go")
"""The programs of the Go toolchain that need most memory. Other programs may have these names."""

LARGEST_STEP_MIB = 64
"""MiB by which the heap grows at a time, unless one allocation is larger (heapArenaBytes)."""

NO_ENTRYPOINT = "Runtime.InvalidEntrypoint"
"""The error of a function whose program AWS Lambda could not start."""

OOMD_ATTEMPT = "oomd-attempt"
"""The result of a main process that systemd-oomd probably killed."""

KILLED_AT_START = "container init was OOM-killed"
"""Message of runc if the limit is too low to start a container: no program has run."""


_WRITER = ("pod", "namespace", "container", "container_id")


class Message(NamedTuple):
    """A message and the metadata of its prefix; `native` is JSON of journald's own fields.

    If the time zone is unknown, `logged_at` is null and `local_s` has the local time: distances
    between such times are known. `printed_at` is that time as printed.
    """

    line_no: int
    text: str
    logged_at: datetime | None = None
    monotonic_s: float | None = None
    host: str | None = None
    ident: str | None = None
    log_pid: int | None = None
    unit: str | None = None
    container: str | None = None
    container_id: str | None = None
    pod: str | None = None
    namespace: str | None = None
    stream: str | None = None
    native: str | None = None
    local_s: float | None = None
    printed_at: str | None = None

    def place(self) -> Row:
        """Returns the line, time and host of the message, which every row has."""
        return {
            "line_no": self.line_no,
            "logged_at": self.logged_at,
            "printed_at": None if self.logged_at else self.printed_at,
            "monotonic_s": self.monotonic_s,
            "host": self.host,
        }

    def about(self, named: Mapping[str, object] | None = None) -> Row:
        """Returns the line and time, and which pod and container it is about, where known.

        A message is about the container that it names (`named`), or else about the one that printed
        it.
        """
        is_named = any((named or {}).get(name) for name in ("name", *_WRITER))
        names = ("line_no", "logged_at", "printed_at", *(() if is_named else _WRITER))
        return given({name: getattr(self, name) for name in names})

    def identity(self) -> Row:
        """Returns `place`, and the process that wrote the line."""
        return self.place() | {name: getattr(self, name) for name in IDENTITY}


def given(row: Mapping[str, object]) -> Row:
    """Returns the non-null columns of a row."""
    return {name: value for name, value in row.items() if value is not None}


_OF_KILLS = {column.name: column.dtype for column in TABLES["oom_kills"]}
_FACTORS = {"_kb": 1 << 10, "_mib": 1 << 20}


def columns(match: re.Match[str]) -> Row:
    """Returns the groups of a line about a kill that are columns of `oom_kills`.

    Sizes may be named `_kb` or `_mib` instead, or have a group `_unit`.
    """
    row: Row = {}
    for name, text in match.groupdict().items():
        ending = name[name.rfind("_") :]
        if text is None:
            continue
        if ending in _FACTORS:
            row[f"{name.removesuffix(ending)}_bytes"] = numbers.whole(text, _FACTORS[ending])
        elif f"{name}_unit" in match.groupdict():
            row[f"{name}_bytes"] = size_bytes(match.groupdict(), name)
        elif (dtype := _OF_KILLS.get(name)) is not None:
            number = numbers.real if dtype == "Float64" else numbers.whole
            row[name] = text if dtype == "String" else number(text)
    return row


def bare_id(text: str | None) -> str | None:
    """Returns a container id without the name of its runtime: `containerd://…`."""
    return (text or "").rpartition("/")[2] or None


def size_bytes(parts: Mapping[str, str | None], name: str) -> int | None:
    """Returns a size that a platform prints; MB and GB are binary, except next to `decimal`."""
    if (number := numbers.real(parts.get(name))) is None:
        return None
    # The unit of bytes is B or missing, and every other unit begins with its letter.
    letter = (parts[f"{name}_unit"] or "").upper()[:1]
    step = 1024 if parts.get("decimal") is None else 1000
    return numbers.whole(number, step ** max("BKMGTPE".find(letter), 0))


def after_asked(text: str, reason: str | None) -> str | None:
    """Returns the reason of a kill after one more line about a program asked to end."""
    if "Timer expired" in text:
        return NOT_ENDED
    return ENDED if "exited after" in text and reason else None
