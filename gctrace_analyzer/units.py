"""Converts sizes, durations and percentages written by people to numbers.

Sizes become MiB (the unit the runtime prints as "MB"), durations seconds, shares 0–1.
"""

from __future__ import annotations

import math
import re
from datetime import timedelta
from numbers import Integral
from typing import Any, SupportsFloat, TypeAlias

from gctrace_analyzer.errors import BadSettingError

Duration: TypeAlias = str | float | timedelta
"""As `90s` or `1m30s`, in seconds, or a timedelta, which is also the one of pandas."""

MIB = 1 << 20
SIGNIFICANT_DIGITS = 12
"""Digits of numbers in CSV and JSON. Later ones depend on the order of additions."""
DAY_S = 86_400

IN_GIB_FROM_MIB = 10 * 1024
"""MiB. Sizes above this are shown in GiB."""
_IN_KIB_BELOW_MIB = 0.1

PIB_IN_MIB = 1 << 30
"""MiB. No program has this much memory: a larger number means bytes."""

MOST_GOGC = 100_000.0
"""The largest accepted GOGC: with a goal of a thousand times the live heap, GC is in effect off."""

_BYTES = {
    "b": 1,
    "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,  # GOMEMLIMIT
    "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40,  # Kubernetes
    "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,  # docker
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
}  # fmt: skip
_DECIMAL = {"M": 10**6, "G": 10**9, "T": 10**12}
"""Suffixes of Kubernetes. systemd reads them as powers of 1024, but reading a limit too low does no
harm."""
_SECONDS = {
    "d": DAY_S, "h": 3600.0, "m": 60.0, "min": 60.0, "s": 1.0, "": 1.0, "ms": 1e-3,
    "us": 1e-6,
}  # fmt: skip

_QUANTITY = re.compile(r"\s*+(\d++(?:\.\d++)?)\s*+([A-Za-z]*+)\s*+")
"""A number and its unit."""

_GO_SIZE = re.compile(r"(\d+)(B|[KMGT]iB)?")


def size_mib(value: str | float, *, argument: str = "size") -> float:
    """Returns a size in MiB; a number is read as MiB, and a string must have a unit.

    Raises:
        BadSettingError: the value is not a size, its unit is missing or unknown, or it is 1 PiB or
            more, which means bytes.

    >>> size_mib("1GiB"), size_mib("512Mi"), size_mib(64), size_mib("1.5g"), size_mib("0")
    (1024.0, 512.0, 64.0, 1536.0, 0.0)
    >>> round(size_mib("2G")), round(size_mib("2GB"))
    (1907, 1907)
    """
    if not isinstance(value, str):
        return _number_of_mib(value, argument)
    match = _QUANTITY.fullmatch(value)
    if match is None:
        raise BadSettingError(argument, value, "a size such as 512MiB, 1.5GiB or 2Gi")
    number, unit = match.groups()
    if not unit and float(number):
        near = f"{number}B" if float(number) >= MIB else None
        raise BadSettingError(argument, value, "a size with its unit, such as 2GiB", near)
    factor = _DECIMAL.get(unit) or _BYTES.get(unit.lower(), None if unit else 1)
    if factor is None:
        raise BadSettingError(
            argument, value, "a size in MiB, Mi, M or MB, or the same with K, G or T"
        )
    return float(number) * factor / MIB


def _number_of_mib(value: object, argument: str) -> float:
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        raise BadSettingError(argument, str(value), "a size such as 512MiB, or a number of MiB")
    size = float(value)
    if not (math.isfinite(size) and size >= 0):
        raise BadSettingError(argument, str(value), "a size of 0 or more")
    if size >= PIB_IN_MIB:
        raise BadSettingError(
            argument,
            str(value),
            "a size below 1 PiB: a number without a unit is in MiB",
            f"{size / MIB:.0f}MiB",
        )
    return size


def positive_size_mib(
    value: str | float, *, argument: str, expected: str = "a size above 0"
) -> float:
    """Returns a size in MiB that is above 0.

    Raises:
        BadSettingError: the value is not a size, or is 0.
    """
    size = size_mib(value, argument=argument)
    if size <= 0:
        raise BadSettingError(argument, str(value), expected)
    return size


def memory_limit_mib(value: str | float, *, argument: str = "memory_limit") -> float | None:
    """Returns a memory limit in MiB; None when it is off.

    A string has the form of `GOMEMLIMIT`. So values that Go refuses at startup are refused here
    (`900M`, `1.5GiB`), and so are numbers without a unit, which Go reads as bytes.

    Raises:
        BadSettingError: the value is neither a size above 0 nor `off`.

    Source: parseByteCount in runtime/string.go (go1.19 and later).

    >>> memory_limit_mib("1GiB"), memory_limit_mib("off"), memory_limit_mib(512)
    (1024.0, None, 512.0)
    """
    if isinstance(value, str) and value.strip().lower() == "off":
        return None
    expected = "a size above 0 such as 900MiB or 2GiB, or off"
    size = positive_size_mib(value, argument=argument, expected=expected)
    if isinstance(value, str) and not _GO_SIZE.fullmatch(value.strip()):
        raise BadSettingError(
            argument, value, "a size that Go accepts as GOMEMLIMIT", _in_go_units(value, size)
        )
    return size


def gomemlimit_mib(text: str) -> float | None:
    """Returns the limit in MiB that Go reads from the environment variable; None if off.

    Unlike everywhere else, a number without a unit is bytes.

    Raises:
        BadSettingError: Go refuses it.

    >>> gomemlimit_mib("1073741824"), gomemlimit_mib("900MiB"), gomemlimit_mib("off")
    (1024.0, 900.0, None)
    """
    if text == "off":
        return None
    match = _GO_SIZE.fullmatch(text)
    if match is None:
        raise BadSettingError("GOMEMLIMIT", text, "a size such as 900MiB, or off")
    return int(match[1]) * _BYTES[(match[2] or "b").lower()] / MIB


def size_as_set(size_mib: float) -> str:
    """Returns a limit in the form of GOMEMLIMIT, which has no decimals.

    >>> size_as_set(2048), size_as_set(900), size_as_set(512.5)
    ('2GiB', '900MiB', '524800KiB')
    """
    size = round(size_mib * MIB)
    power = next(power for power in (3, 2, 1, 0) if size % 1024**power == 0)
    return f"{size // 1024**power}{('B', 'KiB', 'MiB', 'GiB')[power]}"


def _in_go_units(text: str, size: float) -> str | None:
    """Returns the size in a form that Go accepts: the same number in Go's units, else whole MiB."""
    match = _QUANTITY.fullmatch(text)
    unit = match[2][:1].upper() if match else ""
    if match and unit in "KMGT" and match[1].isdigit():
        return f"{match[1]}{unit}iB"
    return f"{size:.0f}MiB" if size >= 1 else None


def duration_s(value: Duration, *, argument: str = "duration") -> float:
    """Returns a duration in seconds; a number is read as seconds.

    Raises:
        BadSettingError: the value is not a duration, or is negative.

    >>> duration_s("90s"), duration_s("1m30s"), duration_s("250ms"), duration_s(2)
    (90.0, 90.0, 0.25, 2.0)
    """
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, int | float) and not isinstance(value, bool):
        if math.isfinite(value) and value >= 0:
            return float(value)
        raise BadSettingError(
            argument, str(value), "a duration such as 90s, or seconds from 0 on"
        )
    text = str(value)
    total, at = 0.0, 0
    while match := _QUANTITY.match(text, at):
        factor = _SECONDS.get(match[2].lower())
        if factor is None:
            break
        total, at = total + float(match[1]) * factor, match.end()
    if at == 0 or at != len(text):
        raise BadSettingError(argument, text, "a duration such as 90s, 1m30s or 250ms")
    return total


def range_text(begin_s: float, end_s: float) -> str:
    """Formats a time range as on a command line.

    >>> range_text(10.5, 20), range_text(60, math.inf)
    ('10.5s..20s', '60s..')
    """
    return f"{begin_s:g}s.." + ("" if math.isinf(end_s) else f"{end_s:g}s")


def line_numbers(first: int, last: int) -> tuple[int, int]:
    """Returns the first and the last line of a range.

    Raises:
        BadSettingError: the numbers are not whole, or in the wrong order. An empty range ends one
            line before it begins.
    """
    for argument, number in (("first", first), ("last", last)):
        # NumPy numbers, which pandas returns, are not ints.
        if isinstance(number, bool) or not isinstance(number, Integral):
            raise BadSettingError(argument, str(number), "the number of a line, as an int")
    if last < first - 1:
        expected = f"a line at or after {first}, the first one"
        raise BadSettingError("last", str(last), expected)
    return first, last


def cpus_text(cpus: float) -> str:
    """Formats a number of CPUs.

    >>> cpus_text(2.0), cpus_text(1.0), cpus_text(0.5), cpus_text(1.9996)
    ('2 CPUs', '1 CPU', '0.5 CPUs', '2 CPUs')
    """
    return f"{cpus:.3g} CPU{'' if f'{cpus:.3g}' == '1' else 's'}"


def share_of(value: str | float, *, argument: str, example: str, whole: bool = False) -> float:
    """Returns a share given as a number or a percentage; `whole` also allows 1.

    >>> share_of("3%", argument="gc_cpu_target", example="3%")
    0.03

    Raises:
        BadSettingError: it is not between 0 and 1.
    """
    text = str(value).strip()
    try:
        share = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not (0 < share < 1 or (whole and share == 1)):
        raise BadSettingError(argument, text, f"a share such as {example}")
    return share


LEAST_CORES = 0.01
"""CPUs. Smaller values are not shown."""


def cores_text(cores: float, cpus: float) -> str:
    """Formats CPU time per second with the number of CPUs.

    >>> cores_text(0.634, 2.0), cores_text(0.0004, 2.0)
    ('0.63 of 2 CPUs', 'under 0.01 of 2 CPUs')
    """
    few = f"under {LEAST_CORES}"
    return f"{digits(cores, 2) if cores >= LEAST_CORES else few} of {cpus_text(cpus)}"


def duration_text(seconds: float) -> str:
    """Formats a duration as a person would say it.

    >>> duration_text(0.00034), duration_text(0.1243), duration_text(2.41), duration_text(220)
    ('0.34 ms', '124 ms', '2.4 s', '3m 40s')
    >>> duration_text(842), duration_text(49800), duration_text(200000)
    ('14m 02s', '13h 50m', '2d 07h')
    """
    if 0 < seconds < 0.9995:
        return f"{digits(1000 * seconds, 2, 3)} ms"
    if seconds < 60:
        return f"{digits(seconds, 2)} s"
    for large, small, size, name in (
        (DAY_S, 3600, "d", "h"),
        (3600, 60, "h", "m"),
        (60, 1, "m", "s"),
    ):
        if seconds >= large:
            whole, rest = divmod(math.floor(seconds), large)
            return f"{whole}{size} {rest // small:02d}{name}"
    raise AssertionError(seconds)


def size_text(size_mib: float) -> str:
    """Formats a size given in MiB.

    >>> size_text(412), size_text(0.4), size_text(22528), size_text(2.46), size_text(0.0078)
    ('412 MiB', '0.4 MiB', '22.0 GiB', '2.5 MiB', '8.0 KiB')

    gctrace and settings have whole MiB, and a decimal would say more than they do.

    >>> size_text(27), size_text(27.04)
    ('27 MiB', '27.0 MiB')
    """
    if abs(size_mib) >= IN_GIB_FROM_MIB:
        return f"{digits(size_mib / 1024, 3)} GiB"
    if size_mib == round(size_mib):
        return f"{size_mib:,.0f} MiB"
    if 0 < abs(size_mib) < _IN_KIB_BELOW_MIB:
        return f"{digits(size_mib * 1024, 2)} KiB"
    significant = 1 if abs(size_mib) < 1 else 2 if abs(size_mib) < 10 else 3
    return f"{digits(size_mib, significant)} MiB"


LEAST_PERCENT = 0.001
"""Smaller percentages would need more digits than anyone reads."""


def percent(share: float) -> str:
    """Returns a share (0–1) as a percentage.

    >>> percent(0.384), percent(0.04), percent(0.0004), percent(3e-7)
    ('38 %', '4.0 %', '0.04 %', 'under 0.001 %')

    Less than all is not rounded to all.

    >>> percent(0.9994), percent(1.0)
    ('over 99 %', '100 %')
    """
    value = 100 * share
    if 99.5 <= value < 100:
        return "over 99 %"
    if 0 < value < LEAST_PERCENT:
        return f"under {LEAST_PERCENT:g} %"
    return f"{value:.0f} %" if value >= 9.95 else f"{digits(value, 2)} %"


def share_text(share: float) -> str:
    """Returns a share (0–1) as a percentage with the digits of a table of figures."""
    is_tiny = 0 < 100 * share < LEAST_PERCENT
    return (
        percent(share) if is_tiny else f"{digits(100 * share, 3 if abs(share) >= 0.1 else 2)} %"
    )


def shares_text(low: float, high: float) -> str:
    """Returns a range of shares (0–1) as percentages.

    >>> shares_text(0.0141, 0.0152), shares_text(0.1358, 0.1392)
    ('1.4–1.5 %', '13.6–13.9 %')
    """
    # In whole percent, a range within one would look wider than it is.
    form = percent if high - low >= 0.01 else share_text
    return between_text(form(low), form(high))


def times_text(count: int) -> str:
    """Returns how often something happened, in words.

    >>> times_text(1), times_text(1204)
    ('once', '1,204 times')
    """
    return "once" if count == 1 else f"{count:,} times"


def frequency_text(rate: float) -> str:
    """Returns a number of cycles a second in words.

    >>> frequency_text(0.5), frequency_text(52.34)
    ('every 2.0 s', '52.3 times a second')
    """
    if 0 < rate < 1:
        return f"every {duration_text(1 / rate)}"
    return f"{digits(rate, 3)} times a second"


def between_text(low: str, high: str) -> str:
    """Formats a range of two formatted values, with their unit only once.

    >>> between_text("7.1 %", "14.1 %"), between_text("300 MiB", "300 MiB")
    ('7.1–14.1 %', '300 MiB')
    >>> between_text("under 0.001 %", "0.0015 %")
    'at most 0.0015 %'
    >>> between_text("< 1 MiB", "1.0 MiB")
    'at most 1.0 MiB'
    """
    if low.startswith(("under ", "< ")) and low != high:
        return f"at most {high}"
    unit = high.lstrip("0123456789.,")
    return high if low == high else f"{low.removesuffix(unit)}–{high}"


def without_noise(value: Any) -> Any:
    """Returns a number without the digits that depend on the order of additions.

    >>> without_noise(0.004749999999999999), without_noise(None)
    (0.00475, None)
    """
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}") if isinstance(value, float) else value


def digits(value: float, significant: int, most_decimals: int = 6) -> str:
    """Rounds to a number of significant digits; digits before the point are always kept.

    Halves are rounded towards 0, so that the middle of a truncated duration reads as printed.

    >>> digits(1234.5, 2), digits(0.0456, 2), digits(0.0, 2), digits(2.1 + 0.05, 2)
    ('1,234', '0.046', '0', '2.1')
    >>> digits(0.9999, 2), digits(9.99, 2)
    ('1.0', '10')
    """
    if value == 0:
        return "0"
    value *= 1 - 1e-9
    decimals = max(0, significant - 1 - int(f"{value:.{significant - 1}e}".partition("e")[2]))
    text = f"{value:,.{min(decimals, most_decimals)}f}"
    if "." in text and decimals > significant:
        return text.rstrip("0").rstrip(".") or "0"
    return text


def span_s(value: str, *, argument: str = "range") -> tuple[float, float]:
    """Returns both ends of a range such as `60s..120s`, in seconds.

    A missing beginning is 0, and a missing end is infinity.

    Raises:
        BadSettingError: there is no `..`, or the end lies before the beginning.

    >>> span_s("60s..2m"), span_s("..30s")
    ((60.0, 120.0), (0.0, 30.0))
    """
    begin, dots, end = value.partition("..")
    if not dots:
        raise BadSettingError(argument, value, "a range such as 60s..120s, 60s.. or ..120s")
    low = duration_s(begin, argument=argument) if begin.strip() else 0.0
    high = duration_s(end, argument=argument) if end.strip() else math.inf
    if high < low:
        raise BadSettingError(
            argument,
            value,
            "a range that begins before it ends",
            f"{end.strip()}..{begin.strip()}",
        )
    return low, high


def range_s(
    begin: Duration, end: Duration | None = None, *, argument: str = "range"
) -> tuple[float, float]:
    """Returns both ends of a range in seconds, from one text or from a time for each end.

    Raises:
        BadSettingError: as `span_s`.

    >>> range_s("60s..2m"), range_s(5, "10s"), range_s("90s")
    ((60.0, 120.0), (5.0, 10.0), (90.0, inf))
    """
    if end is None and isinstance(begin, str) and ".." in begin:
        return span_s(begin, argument=argument)
    try:
        low = duration_s(begin, argument=argument)
        high = math.inf if end in (None, math.inf) else duration_s(end, argument=argument)
    except BadSettingError as err:
        expected = "durations such as 90s, 1m30s or 250ms, or a range such as 60s..120s"
        raise BadSettingError(argument, err.value, expected) from err
    if high < low:
        # The text has both ends in the right order.
        return span_s(f"{begin}..{end}", argument=argument)
    return low, high


def gogc_percent(value: str | float | None, *, argument: str = "gogc") -> float | None:
    """Returns GOGC in percent; None when it is off.

    Raises:
        BadSettingError: the value is neither a number nor `off`.

    >>> gogc_percent("100"), gogc_percent("off"), gogc_percent(-1)
    (100.0, None, None)
    """
    if value is None or (isinstance(value, str) and value.strip().lower() == "off"):
        return None
    expected = f"a percentage from 0 to {MOST_GOGC:,.0f}, or off"
    if isinstance(value, bool):
        raise BadSettingError(argument, str(value), expected)
    try:
        percent = float(value)
    except (TypeError, ValueError) as err:
        text = str(value)
        number = re.fullmatch(r"\s*(\d+)\s*%\s*", text)
        raise BadSettingError(argument, text, expected, number and number[1]) from err
    if math.isnan(percent) or percent > MOST_GOGC:
        raise BadSettingError(argument, str(value), expected)
    return percent if percent >= 0 else None
