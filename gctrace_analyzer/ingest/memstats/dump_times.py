"""Finds times of dumps in text near them: a date, `15:04:05`, or an uptime.

Programs print them on the line of a dump, or above or below its first field. Only their distances
matter, so a time without a date or zone is enough.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.ingest import clock
from gctrace_analyzer.ingest.gctrace.lines import Blocks
from gctrace_analyzer.ingest.wrappers import timestamps
from gctrace_analyzer.ingest.wrappers.formats import MONTH, WEEKDAY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gctrace_analyzer.schema import Row

_CLOCK = r"(?P<h>\d{1,2}):(?P<m>[0-5]\d):(?P<s>[0-5]\d(?:[.,]\d{1,9})?)(?![\d:])"
_OF_DAY = re.compile(rf"(?<![\d:.T]){_CLOCK}(?! ?[AaPp][Mm])")
_AT_BEGIN = re.compile(rf"\W{{0,9}}{_CLOCK}")
_DATE = re.compile(
    r"(?<![\d:])\d{4}[/-]\d\d[/-]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| ?[+-]\d\d:?\d\d)?"
    rf"|\b(?:{WEEKDAY} )?{MONTH} {{1,2}}\d{{1,2}} \d\d:\d\d:\d\d(?: [A-Z]{{2,5}})?(?: \d{{4}})?"
)
_LENGTH = (
    r"\b[\"']?[ :=]{1,9}[\"']?(?=\d)(?:(?P<h>\d{1,6})h)?(?:(?P<m>\d{1,6})m)?"
    r"(?:(?P<s>\d{1,9}(?:\.\d{1,9})?)"
)
_UPTIME = re.compile(
    r"(?i:\bup_?time(?:_?s(?:ec(?:onds)?)?)?|\brunning (?:for|time)|\bup for|\bsince start\w{0,2})"
    rf"{_LENGTH}(?: ?s(?:ec(?:onds?)?)?)?)?(?![\w.:])"
)
_ELAPSED = re.compile(rf"(?i:\btime|\belapsed|\bt){_LENGTH} ?s(?:ec(?:onds?)?)?)(?![\w.:])")
"""Times that may also be the duration of a step; several durations in a row do not rise."""

_MONOTONIC = re.compile(r"(?<!\S)m=\+(\d{1,9}\.\d{1,9})(?!\S)")
"""The last part of Go's time.Time as printed: the time since the start of the program."""

_OF_OTHERS = re.compile(r"(?i:last[ _]?gc|\bPauseEnd|\bstarted)\b")
"""Words on a line whose time is not that of the dump."""

_NEAR_LINES = 8
"""The most lines between a dump's first field and its time."""

_IDENTITY = ("host", "ident", "container")

_RISING = 4
"""Number of durations that rise by chance in only one of 24 cases."""


def of_day_s(text: str) -> float | None:
    """Returns the time of day, in seconds, at the start of a line.

    >>> of_day_s("[15:04:05] HeapAlloc=7"), of_day_s("HeapAlloc=7")
    (54245.0, None)
    """
    return _seconds(_AT_BEGIN.match(text))


def _seconds(match: re.Match[str] | None) -> float | None:
    if match is None:
        return None
    hours, minutes, seconds = ((match[name] or "0").replace(",", ".") for name in "hms")
    return float(hours) * 3600 + float(minutes) * 60 + float(seconds)


def _date_s(text: str) -> float | None:
    if (match := _DATE.search(text)) is None:
        return None
    date = re.sub(r"^(\d{4})/(\d\d)/", r"\1-\2-", match[0])
    at: float | None = clock.local_s(timestamps.read(pl.Series([date])))[0]
    return at


def _monotonic_s(text: str) -> float | None:
    match = _MONOTONIC.search(text)
    return match and float(match[1])


def _by(pattern: re.Pattern[str]) -> Callable[[str], float | None]:
    """Returns a function that reads the seconds that a pattern matches."""
    return lambda text: _seconds(pattern.search(text))


def add(rows: Iterable[Row], text: str, source: str) -> None:
    """Adds `elapsed_s` to dumps without any time, if the text has one near each of them."""
    dumps = sorted(rows, key=lambda row: row["line_no"])
    timed = any(
        row.get(name) is not None for row in dumps for name in ("logged_at", "elapsed_s")
    )
    if len(dumps) < 2 or timed:
        return
    lines = text.split("\n")
    at = [row["line_no"] for row in dumps]
    above = [
        lines[max(begin, end - _NEAR_LINES - 1) : end][::-1]
        for begin, end in pairwise([0, *at])
    ]
    below = [
        lines[begin - 1 : min(end, begin + _NEAR_LINES)]
        for begin, end in pairwise([*at, len(lines) + 1])
    ]
    lengths = (_by(_ELAPSED),) if len(dumps) >= _RISING else ()
    for read in (_date_s, _monotonic_s, _by(_UPTIME), _by(_OF_DAY), *lengths):
        for near in (above, below):
            if (since := _distances(near, read)) is not None:
                for row, elapsed in zip(dumps, since, strict=True):
                    row["elapsed_s"] = elapsed
                return
    # As with several files, nothing shows whether blocks of code are of the same run.
    block = [*map(Blocks(text).at, at)]
    if len({*block}) > 1 and not any(row.get("last_gc_unix_ns") for row in dumps):
        for row, number in zip(dumps, block, strict=True):
            row["target"] = " ".join(map(str, (source, number, *map(row.get, _IDENTITY))))


def _distances(
    near: Sequence[Sequence[str]], read: Callable[[str], float | None]
) -> Sequence[float] | None:
    """Returns the seconds since the first dump; None unless the lines near each have its time."""
    times: list[float] = []
    for lines in near:
        known = (read(line) for line in lines if not _OF_OTHERS.search(line))
        time = next((at for at in known if at is not None), None)
        if time is None:
            return None
        times.append(time)
    since = clock.distances_s(pl.Series(times))
    return since.to_list() if since is not None and since[-1] > 0 else None
