"""Conditions that must not hold: `stw_p99_ms>2`, `gc_cpu_share>+10%`, `finding:bad`.

A figure of one run is held against a limit; a change between two sides must be beyond noise as
well as beyond the limit, so that chance fails no build. What cannot be judged is told, and
never passes silently.
"""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gctrace_analyzer import units
from gctrace_analyzer.analysis.rules.registry import RULES
from gctrace_analyzer.errors import BadSettingError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gctrace_analyzer.analysis.rules.finding import Finding

_FIGURE = re.compile(
    r"\s*(\w+)\s*(>=|<=|==|>|<)\s*([-+]?)\s*(\d+(?:\.\d+)?)\s*(%|[A-Za-z]*)\s*"
)
_WORD = re.compile(r"\s*(\w+)\s*:\s*([\w-]+)\s*")
_COMPARE = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
}
_SEVERITIES = {"bad": ("bad",), "warn": ("warn", "bad"), "info": ("info", "warn", "bad")}
_VERDICTS = ("better", "worse")


@dataclass(frozen=True, slots=True)
class Facts:
    """What conditions are held against; `changes` are rows of `schema.COMPARISON` by metric."""

    figures: Mapping[str, float | None]
    findings: Callable[[], Iterable[Finding]]
    changes: Mapping[str, Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A condition and whether it holds; None where that cannot be told. `reason` has why."""

    text: str
    held: bool | None
    reason: str

    def __str__(self) -> str:
        return f"{self.text}: {self.reason}"


@dataclass(frozen=True, slots=True)
class FigureGate:
    """A figure against a limit in its own unit."""

    text: str
    figure: str
    comparison: str
    limit: float

    def judge(self, facts: Facts) -> Judged:
        """Whether the figure is beyond the limit."""
        value = facts.figures[self.figure]
        if value is None:
            return Judged(self.text, None, f"this log does not tell {self.figure}")
        held = bool(_COMPARE[self.comparison](value, self.limit))
        return Judged(self.text, held, f"{self.figure} is {value:.6g}")


@dataclass(frozen=True, slots=True)
class ChangeGate:
    """A change from before to after, in the figure's unit or as a part of the value before."""

    text: str
    figure: str
    comparison: str
    limit: float
    relative: bool

    def judge(self, facts: Facts) -> Judged:
        """Whether the change is beyond the limit, and beyond noise."""
        row = (facts.changes or {})[self.figure]
        delta, low, high = (row[name] for name in ("delta", "delta_low", "delta_high"))
        if delta is None:
            return Judged(self.text, None, f"these logs do not tell {self.figure}")
        told = f"{self.figure} is {row['after']:.4g} after {row['before']:.4g}"
        if low is None:
            why = "one extreme value, or too few cycles, which is not judged"
            return Judged(self.text, None, f"{told}: {why}")
        change, *between = (self._part(row["before"], each) for each in (delta, low, high))
        told += f", {_change(change, relative=self.relative)}"
        beyond = bool(_COMPARE[self.comparison](change, self.limit))
        ends = " to ".join(_change(end, relative=self.relative) for end in between)
        if beyond and row["verdict"] == "~":
            return Judged(self.text, held=False, reason=f"{told}, but that is noise ({ends})")
        return Judged(self.text, beyond, f"{told} ({ends})")

    def _part(self, before: float, delta: float) -> float:
        """The change as the limit counts it; from 0 to anything is beyond every percentage."""
        if not self.relative:
            return delta
        if before:
            return delta / before
        return math.copysign(math.inf, delta) if delta else 0.0


@dataclass(frozen=True, slots=True)
class FindingGate:
    """A finding of a severity or worse, of an id or of a name."""

    text: str
    wanted: str

    def judge(self, facts: Facts) -> Judged:
        """Whether there is such a finding."""
        severities = _SEVERITIES.get(self.wanted)
        found = [
            each
            for each in facts.findings()
            if (each.severity in severities if severities else self._is(each))
        ]
        if not found:
            return Judged(self.text, held=False, reason="no such finding")
        named = dict.fromkeys(f"{each.id} {each.name} ({each.severity})" for each in found)
        return Judged(self.text, held=True, reason=f"{', '.join(named)}: {found[0].evidence}")

    def _is(self, finding: Finding) -> bool:
        return self.wanted in (finding.id, finding.name)


@dataclass(frozen=True, slots=True)
class VerdictGate:
    """A verdict of any figure, or of one."""

    text: str
    figure: str | None
    verdict: str

    def judge(self, facts: Facts) -> Judged:
        """Whether a figure has this verdict."""
        changes = facts.changes or {}
        looked = [self.figure] if self.figure else list(changes)
        named = [name for name in looked if changes[name]["verdict"] == self.verdict]
        if named:
            return Judged(self.text, held=True, reason=", ".join(named))
        if self.figure and changes[self.figure]["delta_low"] is None:
            return Judged(self.text, None, f"these logs do not tell {self.figure}")
        return Judged(self.text, held=False, reason=f"nothing is {self.verdict}")


Gate = FigureGate | ChangeGate | FindingGate | VerdictGate


def gate(text: str, figures: Sequence[str], *, changes: bool = False) -> Gate:
    """The gate that a condition describes.

    Args:
        text: `stw_p99_ms>2`, `gc_cpu_share>10%`, `finding:bad`, `finding:GC016`; of a change
            also `gc_cpu_share>+10%`, `gc_per_s>+0.5`, `verdict:worse`, `stw_p99_ms:worse`.
        figures: the names there are.
        changes: whether two sides are compared.

    Raises:
        BadSettingError: not of these forms, or no such figure or finding.
    """
    if match := _WORD.fullmatch(text):
        return _word(text.strip(), match[1], match[2], figures, changes=changes)
    match = _FIGURE.fullmatch(text)
    if match is None:
        expected = "a condition such as gc_cpu_share>10%, stw_p99_ms>2 or finding:bad"
        raise BadSettingError(
            argument="condition",
            value=text,
            expected=expected + (" or gc_cpu_share>+10%" if changes else ""),
        )
    figure, comparison, sign, number, unit = match.groups()
    _known(figure, figures)
    if not sign or (sign == "-" and not changes):
        limit = _limit(text, figure, number, unit) * (-1 if sign else 1)
        return FigureGate(text, figure, comparison, limit)
    if not changes:
        raise BadSettingError(
            argument="condition",
            value=text,
            expected=f"a limit without a +: a change needs two sides (compare BEFORE AFTER "
            f"{text!r})",
        )
    relative = unit == "%"
    limit = float(number) / 100 if relative else _limit(text, figure, number, unit)
    return ChangeGate(text, figure, comparison, -limit if sign == "-" else limit, relative)


def _word(text: str, what: str, value: str, figures: Sequence[str], *, changes: bool) -> Gate:
    if what == "finding":
        names = {rule.name for rule in RULES.values()}
        if value not in _SEVERITIES and value not in names and value not in RULES:
            raise BadSettingError(
                argument="condition", value=text,
                expected="finding: and a severity (bad, warn, info), an id such as GC016 or a "
                "name such as limit-thrash",
                suggestion=nearest(value, [*_SEVERITIES, *names, *RULES]),
            )  # fmt: skip
        return FindingGate(text, value)
    if not changes:
        raise BadSettingError(
            argument="condition", value=text, expected="finding:bad, finding:GC016 or a figure"
        )
    if what != "verdict":
        _known(what, figures)
    if value not in _VERDICTS:
        raise BadSettingError(
            argument="condition", value=text, expected="a verdict: " + ", ".join(_VERDICTS)
        )
    return VerdictGate(text, None if what == "verdict" else what, value)


def _known(figure: str, figures: Sequence[str]) -> None:
    if figure not in figures:
        raise BadSettingError(
            argument="condition",
            value=figure,
            expected="a figure of the summary: " + ", ".join(figures),
            suggestion=nearest(figure, figures),
        )


def _change(value: float, *, relative: bool) -> str:
    if not relative:
        return f"{value:+.3g}"
    percent = 100 * value
    return f"{percent:+,.0f} %" if abs(percent) >= 100 else f"{percent:+.3g} %"


def _limit(text: str, figure: str, number: str, unit: str) -> float:
    """The limit in the figure's own unit, which its name ends with."""
    if not unit:
        return float(number)
    if unit in ("%", "pp") and "share" in figure:
        return float(number) / 100
    if figure.endswith("_ms"):
        return 1000 * units.duration_s(number + unit, argument="condition")
    if figure.endswith("_s") and not figure.endswith("_per_s"):
        return units.duration_s(number + unit, argument="condition")
    if "_mib" in figure:
        return units.size_mib(number + unit, argument="condition")
    raise BadSettingError(
        argument="condition", value=text, expected=f"a limit for {figure} without a unit"
    )
