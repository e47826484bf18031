"""Passes log messages to the readers of everything except gctrace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import json_values, numbers
from gctrace_analyzer.ingest.evidence import (
    docker,
    oom,
    oom_lines,
    platforms,
    pods,
    printed_states,
    systemd,
)
from gctrace_analyzer.ingest.memstats import log_messages
from gctrace_analyzer.ingest.metrics import runtime_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gctrace_analyzer.ingest.evidence.message import Message, Row, Rows

_BYTES = r"\"MESSAGE\" ?: ?\["
_FATAL = (
    r"runtime: out of memory|fatal error: |runtime: VirtualAlloc|not in usable range|"
    r"runtime: address space conflict"
)
_SAME_DEATH_LINES = 3
_BLOB = re.compile(r"^\[[\d.]+[BKMG] blob data\]$")
_CUT = re.compile(r"^\{.*\"(?:Heap)?Alloc\"\s*:")
HINT = "|".join(
    [
        oom_lines.HINT,
        systemd.HINT,
        docker.HINT,
        platforms.HINT,
        pods.HINT,
        printed_states.HINT,
        log_messages.HINT,
        runtime_lines.HINT,
        _FATAL,
        "blob data",
        _BYTES,
    ]
)
"""Every line that one of the readers understands contains a match of this."""

_OUT_OF_MEMORY = re.compile(
    # Whatever precedes it is a prefix of a log.
    r"(?<![\w.])(?:"
    r"(?:(?P<fatal>fatal error: )(?:runtime: |\w{1,20}: )?|runtime: )"
    r"(?:out of memory(?: \(stackalloc\)| allocating [A-Za-z ]{1,40})?|cannot allocate memory)"
    r"(?:: cannot allocate (?P<requested>\d{1,30})-byte block "
    r"\((?P<in_use>\d{1,30}) in use\))?"
    # Windows: no memory, and no room in the paging file
    r"|runtime: VirtualAlloc of (?P<asked>\d{1,30}) bytes failed with errno=(?:8|1455)"
    r")[\s\"'`]*$"
)
_UNUSABLE = re.compile(r"not in usable range|runtime: address space conflict")
"""The system gave the runtime memory at an address that it cannot use, in a 32-bit program."""


def read(messages: Sequence[Message]) -> Rows:
    """Returns the rows that the messages contain, by table."""
    rows: Rows = {}
    for reader in (oom, systemd, platforms, pods):
        for table, more in reader.read(messages).items():
            rows.setdefault(table, []).extend(more)
    rows["memstats"] = [*log_messages.read(messages), *runtime_lines.read(messages)]
    states = docker.read(messages) + printed_states.read(messages)
    rows.setdefault("container_states", []).extend(states)
    rows["runtime_fatal"] = list(_fatal(messages))
    rows["rejected"] = list(_unreadable(messages))
    return rows


def _fatal(messages: Sequence[Message]) -> list[Row]:
    rows: list[Row] = []
    unusable_line = -_SAME_DEATH_LINES
    for message in messages:
        if _UNUSABLE.search(message.text):
            unusable_line = message.line_no
        match = _OUT_OF_MEMORY.search(message.text)
        if not match:
            continue
        if (
            match["fatal"]
            and rows
            and message.line_no - rows[-1]["line_no"] <= _SAME_DEATH_LINES
        ):
            continue
        requested = numbers.whole(match["requested"] or match["asked"]) or None
        is_unusable = message.line_no - unusable_line < _SAME_DEATH_LINES
        rows.append(
            message.identity()
            | {
                "kind": "unusable address" if is_unusable else "out of memory",
                "requested_bytes": requested,
                "in_use_bytes": numbers.whole(match["in_use"]),
            }
        )
    return rows


def _unreadable(messages: Sequence[Message]) -> Iterator[Row]:
    """Yields a rejection for each message that is incomplete."""
    for message in messages:
        reason = None
        if _BLOB.match(message.text):
            reason = "journalctl omitted a message that is not text; use journalctl -o json"
        elif _CUT.match(message.text) and not _is_json(message.text):
            reason = json_values.CUT
        if reason:
            yield {"line_no": message.line_no, "reason": reason, "text": message.text[:500]}


def _is_json(text: str) -> bool:
    try:
        json_values.loads(text)
    except ValueError:
        return False
    return True
