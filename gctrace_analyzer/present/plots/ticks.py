"""Round values for axes, and times as people write them."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from gctrace_analyzer.units import DAY_S

if TYPE_CHECKING:
    X = float | datetime | str
    """A position on a horizontal axis."""

STEPS_S = (
    *(step * 10.0**power for power in (-3, -2, -1) for step in (1, 2, 5)),
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 3 * 3600, 6 * 3600,
    12 * 3600, *(days * DAY_S for days in (1, 2, 7, 14, 28, 91, 182, 364)),
)  # fmt: skip
"""Distances between ticks on a time axis, in seconds."""

BRIEF_S = 60.0
"""Seconds. A shorter time axis shows seconds."""

MOST = 7
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def clock(seconds: float, step_s: float = 1.0) -> str:
    """Formats a time since the start as h:mm:ss, with the decimals that a step needs.

    >>> clock(5), clock(49811.8), clock(5.25, 0.05)
    ('0:00:05', '13:50:12', '0:00:05.25')
    """
    decimals = max(0, -math.floor(math.log10(step_s) + 1e-9)) if step_s < 1 else 0
    whole = round(seconds, decimals)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(int(minutes), 60)
    width = decimals + 3 if decimals else 2
    return f"{hours}:{minutes:02d}:{rest:0{width}.{decimals}f}"


def moment(seconds: float, zero: datetime | None) -> str:
    """Formats a position on a time axis: by the clock if it has one, else as h:mm:ss.

    >>> moment(3.5, None), moment(3.5, datetime(2026, 3, 1, 12))
    ('0:00:03.500', '03-01 12:00:03.500')
    """
    if zero is None:
        return clock(seconds, 0.001)
    return f"{zero + timedelta(seconds=seconds):%m-%d %H:%M:%S.%f}"[:-3]


def times(begin: X, end: X, most: int = MOST) -> list[tuple[X, str]]:
    """Returns the ticks of a time axis: seconds since the start, or moments in UTC.

    >>> times(0.0, 12.0, 4), times(0.0, 300.0, 3)
    ([(0, '0 s'), (5, '5 s'), (10, '10 s')], [(0, '0:00:00'), (120, '0:02:00'), (240, '0:04:00')])
    >>> [label for _, label in times(datetime(2026, 3, 1, 22), datetime(2026, 3, 2, 4), 4)]
    ['22:00', 'Mar 2', '02:00', '04:00']
    """
    if isinstance(begin, datetime) and isinstance(end, datetime):
        epoch = _EPOCH if begin.tzinfo else _EPOCH.replace(tzinfo=None)
        low, high = ((at - epoch).total_seconds() for at in (begin, end))
        return [
            (epoch + timedelta(seconds=at), _of_day(epoch + timedelta(seconds=at), step))
            for at, step in _steps(low, high, most)
        ]
    assert not isinstance(begin, datetime | str)
    assert not isinstance(end, datetime | str)
    brief = end < BRIEF_S
    return [
        (at, f"{at:g} s" if brief else clock(at, step)) for at, step in _steps(begin, end, most)
    ]


def _steps(low: float, high: float, most: int) -> list[tuple[float, float]]:
    span = high - low
    if span <= 0:
        return [(low, 0.001 if low % 1 else 1.0)]
    step = next((step for step in STEPS_S if span / step <= most), STEPS_S[-1])
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    stride = max(1, math.ceil((last - first) / most))
    return [(number * step, step) for number in range(first, last + 1, stride)]


def _of_day(at: datetime, step_s: float) -> str:
    if step_s >= DAY_S or (at.hour, at.minute, at.second, at.microsecond) == (0, 0, 0, 0):
        return f"{at:%b} {at.day}"
    if step_s >= 60:
        return f"{at:%H:%M}"
    if step_s >= 1:
        return f"{at:%H:%M:%S}"
    decimals = max(1, -math.floor(math.log10(step_s) + 1e-9))
    return f"{at:%H:%M:%S.%f}"[: decimals - 6]


def title(begin: X, end: X) -> str:
    """Returns the title of a time axis, with the date that its ticks leave out.

    >>> title(0.0, 99.0), title(datetime(2026, 3, 1), datetime(2026, 3, 1, 2))
    ('time since the start of the process, h:mm:ss', 'time on 2026-03-01 (UTC)')
    """
    if not (isinstance(begin, datetime) and isinstance(end, datetime)):
        unit = "" if isinstance(end, float | int) and end < BRIEF_S else ", h:mm:ss"
        return f"time since the start of the process{unit}"
    if begin.date() == end.date():
        return f"time on {begin:%Y-%m-%d} (UTC)"
    return f"time, {begin:%Y-%m-%d} to {end:%Y-%m-%d} (UTC)"


def linear(low: float, high: float, most: int = 5) -> list[float]:
    """Returns round values from `low` to `high`.

    >>> linear(0, 207), linear(96.2, 103.9), linear(0, 0.31)
    ([0.0, 50.0, 100.0, 150.0, 200.0], [98.0, 100.0, 102.0], [0.0, 0.1, 0.2, 0.3])
    """
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return [low]
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(
        factor * power for factor in (1, 2, 2.5, 5, 10) if span / (factor * power) <= most
    )
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def logarithmic(low: float, high: float) -> list[float]:
    """Returns round values for a logarithmic axis: powers of ten, with 2 and 5 if they fit.

    A range with fewer than two of these has the values of a linear axis.

    >>> logarithmic(0.003, 0.13), logarithmic(1, 5e6)
    ([0.005, 0.01, 0.02, 0.05, 0.1], [1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0, 1000000.0])
    >>> logarithmic(119.98, 120.02)
    [119.98, 119.99, 120.0, 120.01, 120.02]
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= 5 else (1,)
    ticks = (float(f"{step}e{decade}") for decade in decades for step in steps)
    inside = [tick for tick in ticks if low <= tick <= high]
    return inside if len(inside) > 1 or low == high else linear(low, high, 4)
