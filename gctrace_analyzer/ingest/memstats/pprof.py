"""Reads MemStats from the end of a heap profile in text form (debug=1)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.memstats import fields

if TYPE_CHECKING:
    from gctrace_analyzer.ingest.evidence.message import Row

_TRAILER = re.compile(r"^# (?P<key>\w+) = (?P<value>.*)$")
_IN_USE_AND_SYS = re.compile(r"\b(Stack|MSpan|MCache) = (\d{1,20}) / (\d{1,20})\b")


def read(lines: list[str]) -> list[Row]:
    """Returns the rows of the `# runtime.MemStats` sections of a heap profile."""
    rows: list[Row] = []
    for number, line in enumerate(lines, start=1):
        if line.startswith("# runtime.MemStats"):
            rows.append({"line_no": number})
        elif rows and (match := _TRAILER.match(line)):
            rows[-1] |= both_sizes(line) or _fields_of(match["key"], match["value"], rows[-1])
    return [row for row in rows if len(row) > fields.ENOUGH]


def both_sizes(line: str) -> Row:
    """Returns what is in use and what was obtained, of a part that has both on one line."""
    both = _IN_USE_AND_SYS.search(line)
    if both is None:
        return {}
    name = both[1].lower()
    return {f"{name}_inuse_bytes": int(both[2]), f"{name}_sys_bytes": int(both[3])}


def _fields_of(key: str, value: str, row: Row) -> Row:
    if key == "PauseNs":
        # Of a list that somebody cut, the longest is unknown.
        listed = re.fullmatch(r"\[([\d ]*)\]", value)
        pauses = [numbers.whole(pause) for pause in listed[1].split()] if listed else []
        return {"pauses": pauses, **fields.pauses(pauses)}
    column = fields.NAMES.get(fields.plain(key))
    if column is None:
        return {}
    take = numbers.whole if column in fields.INTEGERS else numbers.real
    if (number := take(value)) is None:
        return {}
    own: Row = {column: number}
    if column == "num_gc" and row.get("pauses"):
        own["last_pause_ns"] = fields.last_pause(row["pauses"], own["num_gc"])
    return own
