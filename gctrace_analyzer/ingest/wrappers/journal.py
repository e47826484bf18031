"""Reads journalctl's multi-line formats as one JSON object per record."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

NumberedLine = tuple[int, str]

EXPORT_FIRST = re.compile(rb"(?:\A|\n)__(?:CURSOR|REALTIME_TIMESTAMP)=")
VERBOSE_FIRST = re.compile(
    r"^\w{3} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \S+ \[s=[0-9a-f]+;.*\]$", re.MULTILINE
)
_VERBOSE_HEAD = re.compile(
    r"^(?P<at>\w{3} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \S+) \[s=[0-9a-f]+;.*\]$"
)
_VERBOSE_FIELD = re.compile(r"^ {4}(?P<key>[A-Z_][A-Z0-9_]*)=(?P<value>.*)$")
_LENGTH_BYTES = 8
_FIRST = b"__CURSOR"
"""The first field of every exported record."""


def export(data: bytes) -> Iterator[NumberedLine]:
    """Yields first line number and JSON of each record of `journalctl -o export`."""
    at, line_no, begins = 0, 1, 1
    record: dict[str, str] = {}
    while at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        # A value with a control character has a length, so this is a copy with other line ends.
        line = data[at:end].removesuffix(b"\r")
        step = end + 1
        if not line:
            if record:
                yield begins, json.dumps(record)
            record, begins = {}, line_no + 1
        elif b"=" in line:
            key, _, value = line.partition(b"=")
            if key == _FIRST and record:
                # Without empty lines, as after `grep .`.
                yield begins, json.dumps(record)
                record, begins = {}, line_no
            record[key.decode(errors="replace")] = value.decode(errors="replace")
        else:
            # KEY, the length of the value in eight bytes, and the value with any bytes.
            size = int.from_bytes(data[step : step + _LENGTH_BYTES], "little")
            start = step + _LENGTH_BYTES
            value = data[start : start + size]
            record[line.decode(errors="replace")] = value.decode(errors="replace")
            step = start + size + 1
        line_no += data.count(b"\n", at, step)
        at = step
    if record:
        yield begins, json.dumps(record)


def verbose(text: str) -> Iterator[NumberedLine]:
    """Yields first line number and JSON of each record of `journalctl -o verbose`."""
    record: dict[str, str] = {}
    begins, last = 1, ""
    for number, line in enumerate(text.split("\n"), start=1):
        if head := _VERBOSE_HEAD.match(line):
            if record:
                yield begins, json.dumps(record)
            record, begins = {"time": head["at"]}, number
        elif field := _VERBOSE_FIELD.match(line):
            last = field["key"]
            record[last] = field["value"]
        elif record and last and line.startswith("     "):
            record[last] += "\n" + line.strip()
    if record:
        yield begins, json.dumps(record)
