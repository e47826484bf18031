"""Sizes, durations and shares as people write them, to one number and back.

Sizes become MiB (the unit the runtime prints as "MB"), durations seconds, shares 0–1.
"""

from __future__ import annotations

import math
import re

from gctrace_analyzer.errors import BadSettingError

MIB = 1 << 20

MOST_GOGC = 100_000.0
"""A thousand times the live heap is off in all but name."""

_BYTES = {
    "": 1, "b": 1,
    "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,  # GOMEMLIMIT
    "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40,  # Kubernetes
    "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,  # docker, systemd
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
}  # fmt: skip
_SECONDS = {
    "d": 86_400.0, "h": 3600.0, "m": 60.0, "min": 60.0, "s": 1.0, "": 1.0, "ms": 1e-3,
    "us": 1e-6,
}  # fmt: skip

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_DURATION_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def size_mib(value: str | float, *, what: str = "size") -> float:
    """The size in MiB: a number is MiB already, a string carries its unit.

    Raises:
        BadSettingError: no number, or a unit that is not one of bytes.

    >>> size_mib("1GiB"), size_mib("512Mi"), size_mib(64), size_mib("1048576")
    (1024.0, 512.0, 64.0, 1.0)
    """
    if not isinstance(value, str):
        if math.isfinite(value) and value >= 0:
            return float(value)
        raise BadSettingError(what=what, value=str(value), expected="a size of 0 or more")
    match = _SIZE.fullmatch(value)
    factor = _BYTES.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise BadSettingError(
            what=what, value=value, expected="a size such as 512MiB, 1.5GiB, 2Gi or 1073741824"
        )
    return float(match[1]) * factor / MIB


def some_mib(value: str | float, *, what: str, expected: str = "a size above 0") -> float:
    """The size in MiB of something that cannot be nothing.

    Raises:
        BadSettingError: no size, or 0.
    """
    size = size_mib(value, what=what)
    if size <= 0:
        raise BadSettingError(what=what, value=str(value), expected=expected)
    return size


def memory_limit_mib(value: str | float) -> float | None:
    """A memory limit in MiB; None when it is off.

    Raises:
        BadSettingError: neither a size above 0 nor `off`.

    >>> memory_limit_mib("1GiB"), memory_limit_mib("off")
    (1024.0, None)
    """
    if isinstance(value, str) and value.strip().lower() == "off":
        return None
    return some_mib(value, what="memory_limit", expected="a size above 0, or off")


def duration_s(value: str | float, *, what: str = "duration") -> float:
    """The duration in seconds: a number is seconds already.

    Raises:
        BadSettingError: no duration, or a negative one.

    >>> duration_s("90s"), duration_s("1m30s"), duration_s("250ms"), duration_s(2)
    (90.0, 90.0, 0.25, 2.0)
    """
    text = value if isinstance(value, str) else f"{value}s"
    total, at = 0.0, 0
    while match := _DURATION_PART.match(text, at):
        factor = _SECONDS.get(match[2].lower())
        if factor is None:
            break
        total, at = total + float(match[1]) * factor, match.end()
    if at == 0 or at != len(text):
        raise BadSettingError(
            what=what, value=text, expected="a duration such as 90s, 1m30s or 250ms"
        )
    return total


def duration_text(seconds: float) -> str:
    """Returns a duration as a person would say it.

    >>> duration_text(0.00034), duration_text(0.1243), duration_text(2.41), duration_text(220)
    ('0.34 ms', '124 ms', '2.4 s', '3m 40s')
    >>> duration_text(49800), duration_text(200000)
    ('13h 50m', '2d 07h')
    """
    if seconds < 60:
        value, unit = (1000 * seconds, "ms") if seconds < 1 else (seconds, "s")
        digits = f"{value:.0f}" if value >= 10 else f"{value:.2g}"
        return f"{digits} {unit}"
    for large, small, size, name in (
        (86_400, 3600, "d", "h"),
        (3600, 60, "h", "m"),
        (60, 1, "m", "s"),
    ):
        if seconds >= large:
            whole, rest = divmod(math.floor(seconds), large)
            return f"{whole}{size} {rest // small:02d}{name}"
    raise AssertionError(seconds)


def span_s(value: str, *, what: str = "range") -> tuple[float, float]:
    """The two ends of `60s..120s` in seconds; an end left out is open.

    Raises:
        BadSettingError: no `..`, or the end lies before the beginning.

    >>> span_s("60s..2m"), span_s("..30s")
    ((60.0, 120.0), (0.0, 30.0))
    """
    begin, dots, end = value.partition("..")
    if not dots:
        raise BadSettingError(
            what=what, value=value, expected="a range such as 60s..120s, 60s.. or ..120s"
        )
    low = duration_s(begin, what=what) if begin.strip() else 0.0
    high = duration_s(end, what=what) if end.strip() else math.inf
    if high < low:
        raise BadSettingError(
            what=what, value=value, expected="a range that begins before it ends"
        )
    return low, high


def gogc_percent(value: str | float | None, *, what: str = "GOGC") -> float | None:
    """GOGC in percent; None when the collector's GOGC trigger is off.

    Raises:
        BadSettingError: neither a number nor `off`.

    >>> gogc_percent("100"), gogc_percent("off"), gogc_percent(-1)
    (100.0, None, None)
    """
    if value is None or (isinstance(value, str) and value.strip().lower() == "off"):
        return None
    try:
        percent = float(value)
    except (TypeError, ValueError) as err:
        raise BadSettingError(
            what=what, value=str(value), expected="a percentage such as 100, or off"
        ) from err
    if math.isnan(percent) or percent > MOST_GOGC:
        raise BadSettingError(
            what=what, value=str(value), expected=f"a percentage up to {MOST_GOGC:,.0f}, or off"
        )
    return percent if percent >= 0 else None
