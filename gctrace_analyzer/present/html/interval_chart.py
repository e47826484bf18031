"""Changes with their intervals as points in rows: of all metrics, or of one metric by side."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

from gctrace_analyzer.analysis.compare.metrics import DECIDING
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present.format import printable
from gctrace_analyzer.present.sections import changes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gctrace_analyzer.advise.sides import Pair
    from gctrace_analyzer.analysis.compare.change import Change

Kind: TypeAlias = Literal["better", "worse", "same", "untested"]

_STEPS = (-95, -90, -80, -50, -25, -10, -5, -2, 2, 5, 10, 25, 50, 100, 300, 900, 1900)
"""Per cent values at which the axis of changes may have a tick."""

_WIDEST = math.log(20.0)
"""A change beyond this factor is drawn at the edge; its row has the number."""

_NARROWEST = math.log(1.05)
_LETTER, _BETWEEN = 2.1, 2.0
"""Per cent of the width of a phone: a letter of a tick, and the gap between two ticks."""

WORDS: dict[str, str] = {
    "better": "better",
    "worse": "worse",
    "same": "not significant",
    "untested": "no verdict",
}
"""The meaning of each marker, in the order of the legend."""
_KINDS: dict[str, Kind] = {"better": "better", "worse": "worse", "~": "same"}


@frozen
class Point:
    """A point with its interval, as positions in percent of the width; `low` may be None."""

    label: str
    at: float
    low: float | None
    high: float | None
    kind: Kind
    text: str


@frozen
class IntervalChart:
    """A plot; `zero` is the position of no change."""

    title: str
    statement: str
    rows: Sequence[Point]
    ticks: Sequence[tuple[float, str]]
    zero: float

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """The markers in use with their meaning, for the legend."""
        used = {row.kind for row in self.rows}
        return [(kind, word) for kind, word in WORDS.items() if kind in used]

    @property
    def alternative(self) -> str:
        """The plot in words."""
        said = "; ".join(f"{row.label} {row.text}" for row in self.rows)
        return f"{self.title}. {self.statement} {said}."


def of_pairs(pairs: Sequence[Pair]) -> list[IntervalChart]:
    """Returns the changes from the baseline: of all metrics, or of each main one by side."""
    first, is_one = pairs[0], len(pairs) == 1
    several = first.benchmarks if is_one else {pair.after.label: pair.changes for pair in pairs}
    measured = (
        [metric.name for metric in first.measurement.metrics] if first.measurement else []
    )
    metrics = DECIDING if is_one else (*measured, *changes.MAIN)
    rows = {
        changes.label_of(metric): [
            (printable(name), own[metric]) for name, own in several.items()
        ]
        for metric in metrics
    }
    if not several:
        named = [(changes.label_of(name), row) for name, row in first.changes.items()]
        rows = {"Changes with their 95 % intervals": named}
    is_named = not is_one or first.measurement is not None
    baseline = printable(first.before.label) if is_named else "before"
    plots = [_of_rows(title, baseline, own) for title, own in rows.items()]
    return [plot for plot in plots if plot.rows]


def _of_rows(title: str, baseline: str, several: Sequence[tuple[str, Change]]) -> IntervalChart:
    """Returns a plot of changes relative to the value of the baseline.

    The axis shows factors, so half and twice are equally far from no change.
    """
    known = [
        (label, change, part)
        for label, change in several
        if (part := change.relative) is not None
    ]
    without = [row for row in known if row[1].ends is None]
    # The interval of these would fill the plot, and the others would look alike.
    wide = [row for row in known if changes.says_nothing(row[1])]
    left_out = {"no interval": without, "chance explains a tenfold change": wide}
    drawn = [row for row in known if row not in (*without, *wide)]
    known, left_out = (drawn, left_out) if drawn else (known, {})
    ends = [
        _factor(share) for _, change, part in known for share in (part, *(change.ends or ()))
    ]
    low = max(min([*ends, -_NARROWEST]), -_WIDEST)
    high = min(max([*ends, _NARROWEST]), _WIDEST)
    room = 0.04 * (high - low)
    place = _scale(low - room, high + room)
    ticks = [(place(math.log1p(step / 100)), f"{step:+,d} %") for step in _STEPS]
    return IntervalChart(
        title,
        f"Relative to {baseline}; an interval that does not reach 0 % is significant."
        + "".join(
            f" Not drawn ({why}): {'; '.join(label for label, *_ in rows)}."
            for why, rows in left_out.items()
            if rows
        ),
        [_row(label, change, part, place) for label, change, part in known],
        _apart(ticks, place(0.0)),
        place(0.0),
    )


def _row(label: str, change: Change, part: float, place: Callable[[float], float]) -> Point:
    text = changes.percent(part)
    kind: Kind = _KINDS.get(change.verdict or "", "untested")
    low = high = None
    if change.ends is not None:
        low, high = (place(_factor(end)) for end in change.ends)
        text = f"{text} ({changes.interval(change)})"
    return Point(label, place(_factor(part)), low, high, kind, f"{text}, {WORDS[kind]}")


def _factor(part: float) -> float:
    """Returns the logarithm of the factor by which the figure changed."""
    factor = 1 + part
    return math.log(factor) if factor > math.exp(-_WIDEST) else -_WIDEST


def _scale(low: float, high: float) -> Callable[[float], float]:
    """Returns a function from values to per cent of the width, clamped to the plot."""
    return lambda value: min(max(100 * (value - low) / (high - low), 0.0), 100.0)


def _apart(several: Sequence[tuple[float, str]], zero: float) -> list[tuple[float, str]]:
    """Returns the tick at 0 and all others with room, from the inside out."""
    chosen = [(zero, "0 %")]
    for at, text in sorted(several, key=lambda tick: -abs(tick[0] - zero)):
        half = _LETTER * len(text) / 2
        is_free = all(
            abs(at - other) >= half + _LETTER * len(word) / 2 + _BETWEEN
            for other, word in chosen
        )
        if is_free and half < at < 100 - half:
            chosen.append((at, text))
    return sorted(chosen)
