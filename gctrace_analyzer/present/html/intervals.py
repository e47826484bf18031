"""Points with their intervals, one row each: changes of metrics, and metrics by setting."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present.format import printable
from gctrace_analyzer.present.plots import ticks
from gctrace_analyzer.present.sections import changes as rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    Kind = Literal["better", "worse", "same", "untested", "best", "near", "higher"]

_STEPS = (-95, -90, -80, -50, -25, -10, -5, -2, 2, 5, 10, 25, 50, 100, 300, 900, 1900)
"""Percent: where the axis of changes may have a tick."""

_WIDEST = math.log(20.0)
"""A change beyond this factor is drawn at the edge; its row has the number."""

_NARROWEST = math.log(1.05)
_APART = 9.0
"""Percent of the width: ticks that are closer would touch."""

WORDS: dict[str, str] = {
    "better": "improved",
    "worse": "regressed",
    "same": "not significant",
    "untested": "not tested",
    "best": "best",
    "near": "not significantly worse",
    "higher": "significantly worse",
}
"""What each marker means, in the order of the legend."""


@frozen
class Row:
    """A point with its interval, as positions in percent of the width; `low` may be None."""

    label: str
    at: float
    low: float | None
    high: float | None
    kind: Kind
    text: str


@frozen
class Intervals:
    """A plot: `zero` is where nothing changes, None without such a line."""

    title: str
    statement: str
    rows: Sequence[Row]
    ticks: Sequence[tuple[float, str]]
    zero: float | None = None

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """The markers in use with their meaning, for the legend."""
        used = {each.kind for each in self.rows}
        return [(kind, word) for kind, word in WORDS.items() if kind in used]

    @property
    def alternative(self) -> str:
        """The plot in words."""
        said = "; ".join(f"{each.label} {each.text}" for each in self.rows)
        return f"{self.title}. {self.statement} {said}."


def of_changes(frame: pl.DataFrame) -> Intervals | None:
    """Returns the changes of two sides (`schema.COMPARISON`), relative to the value before.

    The axis shows factors, so that half and twice are equally far from no change.
    """
    known = [
        row
        for row in frame.iter_rows(named=True)
        if row["before"] and row["delta"] is not None and row["verdict"] is not None
    ]
    if not known:
        return None
    ends = [
        _factor(row, end)
        for row in known
        for end in ("delta", "delta_low", "delta_high")
        if row[end] is not None
    ]
    low = max(min(*ends, -_NARROWEST), -_WIDEST)
    high = min(max(*ends, _NARROWEST), _WIDEST)
    room = 0.04 * (high - low)
    place = _scale(low - room, high + room)
    return Intervals(
        "Changes with their 95 % intervals",
        "Relative to before; an interval that does not reach 0 % is significant.",
        [_change(row, place) for row in known],
        _apart(
            [(place(math.log1p(step / 100)), f"{step:+d} %") for step in _STEPS], place(0.0)
        ),
        place(0.0),
    )


def of_settings(frame: pl.DataFrame) -> Iterator[Intervals]:
    """Yields each main metric of several settings (`schema.SWEEP`), with its best setting."""
    for metric in rows.MAIN:
        several = [
            row
            for row in frame.filter(metric=metric).iter_rows(named=True)
            if row["value"] is not None
        ]
        if several:
            yield _by_setting(metric, several)


def _by_setting(metric: str, several: list[dict[str, Any]]) -> Intervals:
    ends = [
        row[name]
        for row in several
        for name in ("value", "value_low", "value_high")
        if row[name] is not None
    ]
    # A figure that is many times another is read from 0; close ones would be one point there.
    low = 0.0 if min(ends) < 0.5 * max(ends) else min(ends)
    high = max(ends)
    room = 0.04 * (high - low) or 0.05 * abs(high) or 1.0
    place = _scale(low - (room if low else 0.0), high + room)
    scale = 100 if "share" in metric else 1
    begin, end = scale * (low - (room if low else 0.0)), scale * (high + room)
    return Intervals(
        rows.LABELS[metric],
        _reason(metric, several),
        [_setting(metric, row, place) for row in several],
        [
            (place(at / scale), rows.value(metric, at / scale) if at else "0")
            for at in ticks.linear(begin, end, 5)
        ],
    )


def _setting(metric: str, row: dict[str, Any], place: Callable[[float], float]) -> Row:
    kind: Kind = {"best": "best", "~": "near", "worse": "higher"}.get(  # type: ignore[assignment]
        row["standing"] or "", "untested"
    )
    low, high = row["value_low"], row["value_high"]
    text = rows.value(metric, row["value"])
    if low is None or high is None:
        return Row(printable(row["setting"]), place(row["value"]), None, None, kind, text)
    within = f"{rows.bare(rows.value(metric, low))} to {rows.value(metric, high)}"
    return Row(
        printable(row["setting"]),
        place(row["value"]),
        place(low),
        place(high),
        kind,
        f"{text} ({within})",
    )


def _reason(metric: str, several: list[dict[str, Any]]) -> str:
    """Returns which setting is best, and how sure that is."""
    best = next((row for row in several if row["standing"] == "best"), None)
    if best is None:
        return "No setting is marked as the best."
    others = [printable(row["setting"]) for row in several if row["standing"] == "~"]
    first = f"Lowest: {printable(best['setting'])} ({rows.value(metric, best['value'])})"
    if not others:
        return f"{first}, significantly below all others."
    return f"{first}; not significantly worse: {', '.join(others)}."


def _change(row: dict[str, Any], place: Callable[[float], float]) -> Row:
    verdict = row["verdict"]
    tested = row["delta_low"] is not None
    kind: Kind = "untested" if not tested else verdict if verdict != "~" else "same"
    text = rows.percent(row["delta"] / row["before"])
    if tested:
        text = f"{text} ({rows.interval(row)})"
    return Row(
        rows.LABELS[row["metric"]],
        place(_factor(row, "delta")),
        place(_factor(row, "delta_low")) if tested else None,
        place(_factor(row, "delta_high")) if tested else None,
        kind,
        f"{text}, {WORDS[kind]}",
    )


def _factor(row: dict[str, Any], end: str) -> float:
    """Returns the logarithm of the factor by which the figure changed."""
    factor = 1 + row[end] / row["before"]
    return math.log(factor) if factor > math.exp(-_WIDEST) else -_WIDEST


def _scale(low: float, high: float) -> Callable[[float], float]:
    """Returns a function from values to percent of the width, which stays in the plot."""
    return lambda value: min(max(100 * (value - low) / (high - low), 0.0), 100.0)


def _apart(several: Sequence[tuple[float, str]], zero: float) -> list[tuple[float, str]]:
    """Returns the tick at 0 and those of the others that have room, from the inside out."""
    chosen = [(zero, "0 %")]
    for at, text in sorted(several, key=lambda each: -abs(each[0] - zero)):
        near = min(abs(at - other) for other, _ in chosen)
        if near >= _APART and 1 < at < 99:
            chosen.append((at, text))
    return sorted(chosen)
