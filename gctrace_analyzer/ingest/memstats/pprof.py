"""Reads MemStats from the end of a heap profile (debug=1), and what `go tool pprof -top` prints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.memstats import fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.ingest.evidence.message import Row

# People write behind a size what it is in MB; a unit makes it another number.
_TRAILER = re.compile(r"^# (?P<key>\w+) = (?P<value>\d+(?=\s+(?![kKMGT]?i?B\b)\S)|.*$)")
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


_TYPE = re.compile(r"^Type: (\w+)$", re.MULTILINE)
_TOTAL = re.compile(r"^Showing nodes accounting for .{1,60} of (\S+) total$", re.MULTILINE)
_ROW = re.compile(
    r"^ *(?P<flat>\d\S*) +(?P<flat_pct>[\d.]+)% +[\d.]+% +(?P<cum>\d\S*) +(?P<cum_pct>[\d.]+)% +"
    r"(?P<name>\S.*)$",
    re.MULTILINE,
)
_LARGEST = 3
_OF_MALG = (
    " runtime.malg allocates goroutines, which Go keeps for later ones: it shows how many there "
    "were at once, and is no leak."
)


def of_table(text: str) -> Iterator[str]:
    """Yields which functions the output of `go tool pprof -top` names first."""
    kind, total = _TYPE.search(text), _TOTAL.search(text)
    by = "cum" if kind and kind[1] == "goroutine" else "flat"
    rows = [
        row
        for row in _ROW.finditer(text)
        if by == "flat" or not row["name"].startswith("runtime.")
    ]
    if kind and total and rows:
        rows.sort(key=lambda row: -float(row[f"{by}_pct"]))
        texts = (f"{row[by]} ({row[f'{by}_pct']} %) {row['name']}" for row in rows[:_LARGEST])
        listed = ", ".join(texts)
        kept = _OF_MALG if "runtime.malg" in listed else ""
        yield f"Of {total[1]} ({kind[1]}), {by}: {listed}.{kept}"
