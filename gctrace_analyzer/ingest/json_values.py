"""Decodes untrusted JSON, where any defect is a `ValueError`, and its timestamps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from gctrace_analyzer.ingest.numbers import EARLIEST, LATEST

_SURROGATE = re.compile(r"\\u[dD]")
_DECODER = json.JSONDecoder()
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?')
_ENDS = {"{": "}", "[": "]"}
TOO_DEEP = "nested too deeply"
CUT = "JSON that ends inside a value"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def loads(text: str) -> Any:
    """Returns the value of a JSON text.

    Raises:
        ValueError: the text is not JSON, or nested more deeply than Python can decode.
    """
    try:
        value = json.loads(text)
        return _encodable(value) if _SURROGATE.search(text) else value
    except RecursionError as err:
        raise ValueError(TOO_DEEP) from err


def before_cut(text: str) -> Any:
    """Returns the whole members of a truncated object; None if there are none.

    >>> before_cut('{"memstats": {"Sys": 8, "NumGC": 2, "PauseNs": [7, 8')
    {'memstats': {'Sys': 8, 'NumGC': 2}}
    """
    whole = re.match(r'.*(?=,\s*")', text, re.DOTALL)
    begun = whole[0] if whole else ""
    ends = ""
    for bracket in re.findall(r"[][{}]", _STRING.sub("", begun)):
        ends = _ENDS[bracket] + ends if bracket in _ENDS else ends[1:]
    try:
        return loads(begun + ends)
    except ValueError:
        return None


def raw_decode(text: str, at: int) -> tuple[Any, int]:
    """Returns the JSON value that begins at `at`, and where it ends.

    Raises:
        ValueError: the text is not JSON, or nested more deeply than Python can decode.
    """
    try:
        value, end = _DECODER.raw_decode(text, at)
        return _encodable(value) if _SURROGATE.search(text, at, end) else value, end
    except RecursionError as err:
        raise ValueError(TOO_DEEP) from err


def documents(
    text: str, begins: re.Pattern[str], damaged: list[tuple[int, str, str]]
) -> Iterator[tuple[int, Any]]:
    """Yields the JSON values of a text one after another, each with its first line.

    Args:
        text: the values, with anything between them that `begins` does not match.
        begins: a pattern of the first character of a value.
        damaged: called with line, reason and text of invalid values; the search continues on the
            next line.
    """
    line_no, at = 1, 0
    while match := begins.search(text, at):
        line_no += text.count("\n", at, match.start())
        begin = match.start()
        try:
            value, at = raw_decode(text, begin)
        except ValueError:
            damaged.append((line_no, CUT, text[begin : begin + 200]))
            newline = text.find("\n", begin)
            if newline < 0:
                return
            at = newline
            continue
        yield line_no, value
        line_no += text.count("\n", begin, at)


def objects(value: Any) -> list[dict[str, Any]]:
    """Returns the objects of an array; values of other types count as damage."""
    return [each for each in array(value) if isinstance(each, dict)]


def array(value: Any) -> list[Any]:
    """Returns an array; an empty one for other values."""
    return value if isinstance(value, list) else []


def _encodable(value: Any) -> Any:
    """Returns a value without lone surrogates, which JSON may have but UTF-8 may not."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_encodable(each) for each in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    return value


def iso_utc(
    text: str | None, read: Callable[[str], datetime] = datetime.fromisoformat
) -> datetime | None:
    """Returns a timestamp in UTC; None if it is unset, invalid or without a time zone.

    Go prints the zero time, of the year 1, for something that never happened.

    Args:
        text: the timestamp.
        read: parses the format; some parsers read the year 1 as 2001.
    """
    if not text:
        return None
    try:
        time = read(text)
        is_read = time.tzinfo and str(time.year) in text
        return plausible(time.astimezone(UTC)) if is_read else None
    except (ValueError, OverflowError):
        return None


def seconds_between(begin: datetime | None, end: datetime | None) -> float | None:
    """Returns the time from one timestamp to another; None if one is unknown, or it is negative."""
    seconds = (end - begin).total_seconds() if begin and end else -1.0
    return seconds if seconds >= 0 else None


def epoch_utc(nanoseconds: int | None) -> datetime | None:
    """Returns the time from nanoseconds since 1970; None if it is implausible."""
    return plausible(_EPOCH + timedelta(microseconds=(nanoseconds or 0) // 1000))


def plausible(time: datetime) -> datetime | None:
    """Returns the time, or None if no log can have been written then."""
    return time if EARLIEST < time.replace(tzinfo=None) < LATEST else None
