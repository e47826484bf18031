"""Formats numbers, times and names for people, within the width of the text."""

from __future__ import annotations

import math
import re
import textwrap
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from gctrace_analyzer import units
from gctrace_analyzer.units import between_text, digits, percent, share_text, shares_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from gctrace_analyzer.analysis.summary import Summary

NONE = "–"
"""Shown in place of an unknown value."""

MOST_NAME = 22
"""The longest file name, in characters, that a table row has room for."""

WIDTH, NARROWEST, WIDEST = 80, 60, 120
"""Columns that reports are designed for, and the fewest and most that they use."""

_WIDTH: ContextVar[int | None] = ContextVar("width", default=None)

_BARS = "▁▂▃▄▅▆▇█"


def width() -> int:
    """Returns how many columns a text may use."""
    return _WIDTH.get() or WIDTH


@contextmanager
def as_wide_as(columns: int | None) -> Iterator[None]:
    """Sets the width of texts in columns, within limits, inside the context.

    A width that is already set stays; None sets none.
    """
    limited = None if columns is None else min(max(columns, NARROWEST), WIDEST)
    token = _WIDTH.set(_WIDTH.get() or limited)
    try:
        yield
    finally:
        _WIDTH.reset(token)


def share(value: float | None) -> str:
    """Formats a share as a percentage.

    >>> share(0.3141), share(0.0406), share(0.00041), share(0.0), share(1.0), share(None)
    ('31.4 %', '4.1 %', '0.041 %', '0 %', '100 %', '–')
    """
    return NONE if value is None else share_text(value)


def gc_cpu(s: Summary) -> str:
    """Formats the share of the CPU that GC took, or the range of it."""
    return share(s.gc_cpu_share) if s.gc_cpu_range is None else shares_text(*s.gc_cpu_range)


_AS_ONE = 1.05
"""Ratio of the ends of a range. Below it, one value is shown."""


def assists(s: Summary) -> tuple[str, str]:
    """Formats the shares of GC CPU and of all CPU that mark assists took, or their ranges.

    Uncertain pauses do not change the assists' share of all CPU, and the uncertain time of cycles
    does not change their share of the GC CPU, which is that of the lines.
    """
    of_gc, of_all, gc_cpu = s.assist_share_of_gc_cpu, s.assist_share_of_cpu, s.gc_cpu_share
    if s.printed_cpu_s is None or not of_gc or not gc_cpu:
        return share(of_gc), share(of_all)
    low_s, own_s, high_s = s.printed_cpu_s
    ends = [min(of_gc * own_s / end_s, 1.0) if end_s else 1.0 for end_s in (high_s, low_s)]
    is_one = ends[1] < _AS_ONE * ends[0]
    of_gc_text = share(of_gc) if is_one else between_text(*map(percent, ends))
    low, high = s.assist_cpu_range
    return of_gc_text, share(of_all) if low == high else between_text(
        percent(low), percent(high)
    )


def gc_cpu_with_idle(s: Summary) -> str:
    """Formats the share of CPU that GC took with idle marking; for a range, its upper end."""
    if s.gc_cpu_with_idle_share is None or s.gc_cpu_share is None:
        return ""
    most = s.gc_cpu_range[1] if s.gc_cpu_range else s.gc_cpu_share
    return share(s.gc_cpu_with_idle_share + most - s.gc_cpu_share)


def milliseconds(value: float | None) -> str:
    """Formats a duration in milliseconds, to the microsecond that the runtime prints.

    >>> milliseconds(0.214), milliseconds(4.25), milliseconds(0.0034), milliseconds(1234)
    ('0.21 ms', '4.2 ms', '0.003 ms', '1.2 s')
    """
    if value is None:
        return NONE
    return f"{digits(value / 1000, 2)} s" if value >= 1000 else f"{digits(value, 2, 3)} ms"


def nanoseconds(value: float | None) -> str:
    """Formats a duration in nanoseconds, as short as the time of an operation.

    >>> nanoseconds(0.42), nanoseconds(669.4), nanoseconds(4641), nanoseconds(5.6e6)
    ('0.420 ns', '669 ns', '4.64 µs', '5.6 ms')
    """
    if value is None or value >= 1e6:
        return milliseconds(None if value is None else value / 1e6)
    return f"{digits(value, 3)} ns" if value < 1000 else f"{digits(value / 1000, 3)} µs"


_NEAR = 1.5
"""Ratio to the median. If no interval is this close, the median describes none of them."""

_APART, _MOST = 3.0, 0.75
"""Ratio to a time that is near it, and the share of all times near one of two, in bursts."""


def interval(
    summary: Summary, usual_ms: float | None = None, gaps_ms: pl.Series | None = None
) -> str:
    """Returns the usual time from one cycle to the next, if known: `every 33 ms (median)`.

    Args:
        summary: the figures of the cycles.
        usual_ms: the median time between cycles, weighted by time. In bursts it is the gap between
            bursts.
        gaps_ms: all times from one cycle to the next.
    """
    apart_ms = summary.gc_interval_p50_ms
    if apart_ms is None or summary.is_mostly_missing or summary.cycles <= 1:
        return ""
    bursts = ", in bursts" if summary.is_in_bursts else ""
    if summary.is_of_dumps and summary.gc_per_s:
        return f"about every {milliseconds(1000 / summary.gc_per_s)}{bursts}"
    if summary.is_in_bursts and usual_ms is not None and gaps_ms is not None:
        gaps_ms = gaps_ms.drop_nulls()
        known, is_inside = gaps_ms.clip(1.0), gaps_ms < 1000 / (summary.gc_per_s or 1)
        # A median of all intervals would count the gaps.
        inside = float(gaps_ms.filter(is_inside).median() or 0)  # type: ignore[arg-type]  # numbers
        near = [known.is_between(ms / _APART, ms * _APART) for ms in (max(inside, 1), usual_ms)]
        if ((near[0] | near[1]).mean() or 0) >= _MOST:  # type: ignore[operator]  # a number
            apart = "under 1 ms" if inside < 1 else milliseconds(inside)
            # A start-up is no burst: no gap precedes it.
            is_again = is_inside[is_inside.arg_min() or 0 :].any()
            form = "bursts: every {}; gaps: {}" if is_again else "every {} at first, then {}"
            return form.format(apart, milliseconds(usual_ms))
        return f"every {milliseconds(known.min())} to {milliseconds(known.max())}"  # type: ignore[arg-type]
    if apart_ms and gaps_ms is not None and gaps_ms.count():
        low, high = (milliseconds(end) for end in (gaps_ms.min(), gaps_ms.max()))  # type: ignore[arg-type]
        if not gaps_ms.is_between(apart_ms / _NEAR, apart_ms * _NEAR).any():
            # The mean of two distant values.
            return f"every {low} to {high}"
    if apart_ms < 1:  # The log has times in whole milliseconds.
        return f"less than 1 ms apart (median){bursts}"
    is_mean = math.isclose(apart_ms * (summary.gc_per_s or 0), 1000)
    return f"every {milliseconds(apart_ms)}{'' if is_mean else ' (median)'}{bursts}"


def duration(seconds: float | None) -> str:
    """Formats a duration given in seconds.

    >>> duration(0.124), duration(1.94), duration(842), duration(9000), duration(200000)
    ('124 ms', '1.9 s', '14m 02s', '2h 30m', '2d 07h')
    """
    return NONE if seconds is None else units.duration_text(seconds)


def moment(seconds: float) -> str:
    """Formats a time since the start of a process, to the second from one hour on.

    >>> moment(1.94), moment(842), moment(9005), moment(5184005)
    ('1.9 s', '14m 02s', '2:30:05', '60d 0:00:05')
    """
    if seconds < 3600:
        return duration(seconds)
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{f'{days}d ' if days else ''}{hour}:{minute:02}:{second:02}"


def mib(value: float | None) -> str:
    """Formats a size given in MiB.

    >>> mib(412), mib(0.4), mib(22528), mib(2.46)
    ('412 MiB', '0.4 MiB', '22.0 GiB', '2.5 MiB')
    """
    return NONE if value is None else units.size_text(value)


def is_rounded(value: float, step: float) -> bool:
    """Returns whether a size was printed with a last digit of at least this unit.

    >>> is_rounded(1433.6, 102.4), is_rounded(841, 102.4), is_rounded(841, 0)
    (True, False, False)
    """
    return step > 0 and abs(value / step - round(value / step)) < _ROUNDING


_ROUNDING = 1e-4
"""Steps. Sizes are whole bytes, but a tenth of a GiB is not a whole number of bytes."""

_ROUNDED_FROM_MIB = 100
"""MiB. Larger sizes are printed without decimals."""

_DIGITS_IN_MIB = 10.0
"""MiB. Sizes with a smaller last digit do not come from GiB with one or two decimals."""


def rounded(value: float | None, step: float | None) -> str:
    """Formats a size in MiB with no more digits than it was printed with.

    >>> rounded(1433.6, 102.4), rounded(841, 102.4), rounded(1919, 1.024), rounded(2048, None)
    ('1.4 GiB', '841 MiB', '1,919 MiB', '2,048 MiB')
    >>> rounded(7, 1), rounded(0, 1)
    ('7 MiB', 'under 1 MiB')
    """
    if value is None or step is None or not is_rounded(value, step):
        return mib(value)
    if step < _DIGITS_IN_MIB:
        whole = f"{value:,.0f} MiB" if value else "under 1 MiB"
        return whole if step >= 1 and value < _ROUNDED_FROM_MIB else mib(value)
    return f"{value / 1024:.{_decimals(step)}f} GiB"


def rounded_range(low: float, high: float, step: float) -> str:
    """Formats the range of a difference of such sizes, rounded outwards to whole digits.

    >>> rounded_range(110, 307.2, 102.4), rounded_range(-20, 90, 102.4), rounded_range(14.2, 17, 1)
    ('0.1–0.3 GiB', 'up to 0.1 GiB', '14–17 MiB')
    """
    if step < _DIGITS_IN_MIB:
        return _range(low, high, 0, "MiB")
    return _range(low / 1024, high / 1024, _decimals(step), "GiB")


def shares_between(low: float, high: float) -> str:
    """Formats a range of shares in whole percent.

    >>> shares_between(0.018, 0.052), shares_between(0.002, 0.031)
    ('1–6 %', 'up to 4 %')
    """
    return _range(100 * low, 100 * high, 0, "%")


def _range(low: float, high: float, decimals: int, unit: str) -> str:
    """Formats a range, rounded outwards."""
    scale = 10**decimals
    floor = math.floor(low * scale + _ROUNDING) / scale
    ceiling = f"{math.ceil(high * scale - _ROUNDING) / scale:.{decimals}f} {unit}"
    return f"{floor:.{decimals}f}–{ceiling}" if floor > 0 else f"up to {ceiling}"


def _decimals(step: float) -> int:
    return max(0, round(-math.log10(step / 1024)))


def live_heap(value: float | None) -> str:
    """Formats a live heap in MiB, which gctrace truncates.

    >>> live_heap(0), live_heap(4)
    ('< 1 MiB', '4 MiB')
    """
    return mib(value) if value != 0 else "< 1 MiB"


def mib_per_s(value: float | None) -> str:
    """Formats a rate given in MiB per second.

    >>> mib_per_s(96.4), mib_per_s(1386)
    ('96.4 MiB/s', '1.4 GiB/s')
    """
    if value is None:
        return NONE
    return f"{digits(value / 1024, 2)} GiB/s" if value >= 1000 else f"{mib(value)}/s"


def rate_of_growth(value: float, low: float, high: float) -> str:
    """Formats a growth rate in MiB per hour with its interval.

    >>> rate_of_growth(38.2, 31, 44), rate_of_growth(-3, -8, -1)
    ('+38.2 MiB/h (31 to 44)', '-3 MiB/h (-8 to -1)')
    >>> rate_of_growth(120365, 113681, 125981)
    '+33.4 MiB/s (31.6 to 35)'
    """
    fast = abs(value) >= 10 * 1024
    scale, unit = (3600, "MiB/s") if fast else (1, "MiB/h")
    digits = [
        f"{rate / scale:,.3g}" if abs(rate) < 1000 * scale else f"{rate / scale:,.0f}"
        for rate in (value, low, high)
    ]
    sign = "+" if value > 0 else ""
    return f"{sign}{digits[0]} {unit} ({digits[1]} to {digits[2]})"


def rate(value: float | None) -> str:
    """Formats a frequency given in 1/s.

    >>> rate(1.434), rate(12.6), rate(0.01), rate(None)
    ('1.43/s', '12.6/s', '36.0/h', '–')
    """
    if value is None:
        return NONE
    return f"{digits(value, 3)}/s" if value >= 0.05 else f"{digits(3600 * value, 3)}/h"


def count(value: int, singular: str, plural: str | None = None) -> str:
    """Formats a number with its noun.

    >>> count(1, "cycle"), count(1204, "cycle"), count(2, "process", "processes")
    ('1 cycle', '1,204 cycles', '2 processes')
    """
    return f"{value:,} {singular if value == 1 else plural or singular + 's'}"


def place(source: str | None, line_no: int | None, *, whole: bool = False) -> str:
    """Formats the position of a line: the file's base name, shortened if long, and the number.

    >>> place("logs/api/run.log", 18822), place("a-name-that-needs-half-of-the-line.log", 1)
    ('run.log:18822', '…-half-of-the-line.log:1')
    >>> place("logs/api/run.log", 18822, whole=True)  # to paste
    'logs/api/run.log:18822'
    """
    if line_no is None or source is None:
        return NONE
    if whole:
        return f"{printable(source)}:{line_no}"
    name = printable(source).rpartition("/")[2]
    return f"{name if len(name) <= MOST_NAME else '…' + name[1 - MOST_NAME :]}:{line_no}"


def printable(text: str) -> str:
    r"""Returns the text with all terminal control characters made visible.

    >>> printable("a\x1b[31mb\tc")
    'a\\x1b[31mb\tc'
    """
    return "".join(
        char if char.isprintable() or char == "\t" else char.encode("unicode_escape").decode()
        for char in text
    )


def sparkline(values: Sequence[float | None]) -> str:
    """Returns one bar per value, from 0 to the largest; a blank for an unknown value.

    >>> sparkline([0.0, 1.0, None, 2.0])
    '▁▅ █'
    """
    top = max((value for value in values if value is not None), default=0.0)
    scale = (len(_BARS) - 1) / top if top > 0 else 0.0
    return "".join(
        " " if value is None else _BARS[round(max(value, 0) * scale)] for value in values
    )


def short_paths(paths: Sequence[str]) -> list[str]:
    """Returns the file names, with as many parent folders as make them distinct.

    >>> short_paths(["a/run.log", "b/run.log"]), short_paths(["x/old.log", "y/new.log"])
    (['a/run.log', 'b/run.log'], ['old.log', 'new.log'])
    """
    parts = [path.split("/") for path in paths]
    for depth in range(1, max(map(len, parts), default=0) + 1):
        names = ["/".join(path[-depth:]) for path in parts]
        if len(set(names)) == len(set(paths)):
            return names
    return list(paths)


def shortened(names: Sequence[str], room: int) -> list[str]:
    """Shortens names so that they stay distinct: at the end, at the start or in the middle.

    The most useful part of a function is its end, with the line. Paths are shortened in the middle,
    because folders may name a service.

    >>> shortened(["before-1.26.log", "after-1.26.log"], 9), shortened(["a/run-1.log"], 7)
    (['before-1…', 'after-1.…'], ['a/ru…og'])
    >>> shortened(["a-with-go1.26.log", "a-with-go1.9.log", "b-with-go1.26.log"], 8)
    ['a-wit…6.log', 'a-wit…9.log', 'b-wit…6.log']
    """
    shown = [printable(name) for name in names]
    are_paths = any("/" in name for name in shown)
    are_functions = are_paths and all(name.endswith(")") for name in shown)
    for size in range(room, max(map(len, shown), default=0)):
        ends = (2 * size // 3, 0) if are_paths else (size - 1, 0)
        ends = (0, size - 1) if are_functions else ends
        for kept in (*ends, size // 2):
            cut = [_cut(name, size, kept) for name in shown]
            if len(set(cut)) == len(set(shown)):
                return cut
    return shown


def _cut(name: str, size: int, kept: int) -> str:
    """Returns a name of at most `size` characters, `kept` of them from its beginning."""
    if len(name) <= size:
        return name
    return f"{name[:kept]}…{name[len(name) - (size - 1 - kept) :]}"


_BEFORE_UNIT = re.compile(
    r"(?<=\d) (?=(?:%|ms|s|[KMGT]iB|MB|CPUs?|cycles?|GCs?)(?!\w))|(?<=\d[dhm]) (?=\d)"
    r"|(?<=gctrace-analyze) |(?<=gctrace-analyze explain) "
)
_UNBROKEN = "\N{NO-BREAK SPACE}"
_SENTENCE_END = re.compile(r"(?<=[.)]) (?=[A-Z])")


def unbroken(text: str) -> str:
    """Returns a text in which numbers keep their units, and commands stay whole."""
    return _BEFORE_UNIT.sub(_UNBROKEN, text)


def sentences(text: str) -> list[str]:
    """Returns the sentences of a text.

    >>> sentences("GC runs (idle). Set GOGC=1.5 times as high. It helps.")
    ['GC runs (idle).', 'Set GOGC=1.5 times as high.', 'It helps.']
    """
    return _SENTENCE_END.split(text)


def dotted(parts: Sequence[str], width: int, indent: str = "") -> Iterator[str]:
    """Yields parts separated by dots, in lines that fit.

    >>> list(dotted(["run.log", "Go 1.26", "2 procs"], 20))
    ['run.log · Go 1.26', '  2 procs']
    """
    first, *others = parts
    line = indent + first
    for part in others:
        if len(line) + 3 + len(part) > width:
            yield line
            line = f"{indent}  {part}"
        else:
            line += f" · {part}"
    yield line


def wrap(
    text: str, width: int, initial_indent: str = "", subsequent_indent: str = ""
) -> list[str]:
    """Wraps a text into lines, keeping option names and numbers with their units whole.

    >>> wrap("It stops for 5.2 ms.", 18)
    ['It stops for', '5.2 ms.']
    """
    lines = textwrap.wrap(
        unbroken(text),
        width,
        initial_indent=initial_indent,
        subsequent_indent=subsequent_indent,
        break_on_hyphens=False,
    )
    return [line.replace(_UNBROKEN, " ") for line in lines]


def words(name: str) -> str:
    """Returns the name of a finding as words, as pages and charts show it.

    >>> words("high-gc-cpu"), words("limit-thrash"), words("gogc-off-idle")
    ('High GC CPU', 'Limit thrash', 'GOGC off idle')
    """
    # It is about GOMEMLIMIT as well.
    name = name.replace("gogc-not-as", "settings-not-as")
    parts = [part.upper() if part in _ACRONYMS else part for part in name.split("-")]
    text = " ".join(parts).replace("GOMAXPROCS over CPUS", "GOMAXPROCS over CPUs")
    return text[:1].upper() + text[1:]


def in_words(name: str) -> str:
    """Returns the name of a finding as words inside a sentence.

    >>> in_words("long-stw-sweep-termination"), in_words("high-gc-cpu"), in_words("thrashing")
    ('long pauses in sweep termination', 'high GC CPU', 'thrashing')
    """
    name = name.replace("long-stw-", "long-pauses-in-").replace("old-go", "an-old-Go-version")
    text = printable(words(name))
    return text if text[:2].isupper() else f"{text[:1].lower()}{text[1:]}"


_ACRONYMS = ("gc", "cpu", "cpus", "stw", "gogc", "oom", "gomaxprocs")
