"""Conditions for CI: `stw_p99_ms>2`, `gc_cpu_share>+10%`, `finding:bad`, `verdict:worse`.

A condition describes what must not happen. The figure of one run is compared with a limit. A
change between two sides must exceed the limit and be statistically significant, so that chance
does not fail a build. A condition that the input cannot answer is reported as unknown and
never passes silently.

Service levels are promises of another kind: the report shows how far each was kept.
"""

from __future__ import annotations

import math
import operator
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from gctrace_analyzer import schema, units
from gctrace_analyzer.analysis.compare.change import BY_LOAD, BY_TIME, Change
from gctrace_analyzer.analysis.pauses import single_pauses
from gctrace_analyzer.analysis.rules.finding import SEVERITIES
from gctrace_analyzer.analysis.rules.registry import RULES, find_rule, nearest_name
from gctrace_analyzer.errors import BadSettingError, list_of, nearest
from gctrace_analyzer.frozen import Plain, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import polars as pl

    from gctrace_analyzer.analysis.rules.finding import Finding
    from gctrace_analyzer.analysis.thresholds import Quantity

_FIGURE = re.compile(
    r"\s*+(\w++)\s*+(>=|<=|==|>|<)\s*+([-+]?)\s*+(\d++(?:\.\d++)?)\s*+(%|[A-Za-z]*+)\s*+"
)
_WORD = re.compile(r"\s*+(\w++)\s*+:\s*+([\w-]++)\s*+")
_OPERATORS = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
}
_PROBLEMS = SEVERITIES[:0:-1]
"""The severities that can be asked for, the worst first."""

_VERDICTS = ("better", "worse")


@frozen
class Facts:
    """What conditions are checked against.

    Attributes:
        figures: figures by name; of the "after" side if two sides are compared.
        findings: a function that returns the findings; only some conditions call it.
        changes: the change of each metric, if two sides are compared.
    """

    figures: Mapping[str, float | None]
    findings: Callable[[], Iterable[Finding]]
    changes: Mapping[str, Change] | None = None


@frozen
class Check:
    """A condition and whether it is met (`held`; None if unknown), with the reason.

    A condition that is met is a failure: it describes what must not happen. `is_noise` is True
    if a change exceeds its limit but is not statistically significant. `parts` are the results of
    the processes of a fleet, and `of` is the name of such a process.
    """

    text: str
    held: bool | None
    reason: str
    is_noise: bool = False
    of: str = ""
    parts: tuple[Check, ...] = ()

    def __str__(self) -> str:
        return f"{self.text}: {self.reason}"


@frozen
class FigureCondition:
    """The condition that a figure is above, below or equal to a limit in its own unit."""

    text: str
    figure: str
    comparison: str
    limit: float

    def __str__(self) -> str:
        return f"{self.figure}{self.comparison}{self.limit!r}"

    def check(self, facts: Facts) -> Check:
        """Returns whether the comparison of the figure with the limit is true, and why."""
        value = facts.figures.get(self.figure)
        if value is None:
            return Check(self.text, None, f"{self.figure} is unknown for this log")
        held = bool(_OPERATORS[self.comparison](value, self.limit))
        return Check(self.text, held, f"{self.figure} is {_written(self.figure, value)}")


@frozen
class ChangeCondition:
    """The condition that the change from before to after exceeds a limit.

    If `relative`, the limit is a share of the value of the side before; otherwise it is in the
    unit of the figure.
    """

    text: str
    figure: str
    comparison: str
    limit: float
    relative: bool

    def __str__(self) -> str:
        limit, unit = (self.limit * 100, "%") if self.relative else (self.limit, "")
        return f"{self.figure}{self.comparison}{limit:+}{unit}"

    def check(self, facts: Facts) -> Check:
        """Returns whether the change exceeds the limit and is statistically significant."""
        change = (facts.changes or {}).get(self.figure, Change(self.figure))
        before, delta = change.before, change.delta
        if before is None or delta is None:
            return Check(self.text, None, f"{self.figure} is unknown for these logs")
        reason = _before_and_after(change)
        if change.delta_low is None or change.delta_high is None:
            why = change.no_verdict_because or "there is no interval"
            return Check(self.text, None, f"{reason}: {why}")
        several = (delta, change.delta_low, change.delta_high)
        scaled, *interval = (self._scaled(before, value) for value in several)
        reason += f", {_change_text(scaled, relative=self.relative)}"
        exceeded = bool(_OPERATORS[self.comparison](scaled, self.limit))
        ends = " to ".join(_change_text(end, relative=self.relative) for end in interval)
        if exceeded and change.no_verdict_because in {BY_LOAD, BY_TIME}:
            return Check(self.text, None, f"{reason}: {change.no_verdict_because}")
        if exceeded and not change.is_significant:
            text = f"{reason}, but that is not significant ({ends})"
            return Check(self.text, held=False, reason=text, is_noise=True)
        return Check(self.text, exceeded, f"{reason} ({ends})")

    def _scaled(self, before: float, delta: float) -> float:
        """Returns the change in the limit's unit; a relative change from 0 is infinite."""
        if not self.relative:
            return delta
        if before:
            return delta / before
        return math.copysign(math.inf, delta) if delta else 0.0


@frozen
class FindingCondition:
    """The condition that there is a finding of a severity (or a worse one), id or name."""

    text: str
    wanted: str

    def __str__(self) -> str:
        return f"finding:{self.wanted}"

    def check(self, facts: Facts) -> Check:
        """Returns whether there is such a finding."""
        at = _PROBLEMS.index(self.wanted) if self.wanted in _PROBLEMS else None
        matching = [
            finding
            for finding in facts.findings()
            if (
                finding.severity in _PROBLEMS[: at + 1]
                if at is not None
                else self.wanted in (finding.id, finding.name)
            )
        ]
        if not matching:
            return Check(self.text, held=False, reason="no such finding")
        names = dict.fromkeys(
            f"{finding.id} {finding.name}" + f" ({finding.severity})" * bool(finding.evidence)
            for finding in matching
        )
        parts = filter(None, (", ".join(names), matching[0].evidence))
        return Check(self.text, held=True, reason=": ".join(parts))


@frozen
class VerdictCondition:
    """The condition that a figure has a verdict; any figure if `figure` is None."""

    text: str
    figure: str | None
    verdict: str

    def __str__(self) -> str:
        return f"{self.figure or 'verdict'}:{self.verdict}"

    def check(self, facts: Facts) -> Check:
        """Returns whether the figure, or any figure, has this verdict."""
        changes = facts.changes or {}
        candidates = [changes.get(self.figure, Change(self.figure))] if self.figure else []
        matching = [
            f"{_before_and_after(change)}, {_change_text(change.relative or 0.0, relative=True)}"
            for change in candidates or changes.values()
            if change.verdict == self.verdict
        ]
        if matching:
            return Check(self.text, held=True, reason="; ".join(matching))
        if candidates and candidates[0].verdict is None:
            why = candidates[0].no_verdict_because or "unknown for these logs"
            return Check(self.text, None, f"{self.figure} has no verdict: {why}")
        return Check(self.text, held=False, reason=f"nothing is {self.verdict}")


Condition = FigureCondition | ChangeCondition | FindingCondition | VerdictCondition


def known_of(checks: Sequence[Check]) -> list[Check]:
    """Returns one condition that was checked in several benchmarks or processes.

    A condition that is unknown in some of them does not fail in the others: a benchmark that
    allocates nothing has no cycles, and so no figures.
    """
    if all(check.held is None for check in checks):
        return list(checks)
    return [check if check.held is not None else replace(check, held=False) for check in checks]


def condition(text: str, figures: Sequence[str], *, changes: bool = False) -> Condition:
    """Parses the text of a condition; `str()` of the result is a text with the same meaning.

    Args:
        text: `stw_p99_ms>2`, `gc_cpu_share>10%`, `finding:bad`, `finding:GC016`; for a change
            also `gc_cpu_share>+10%`, `gc_per_s>+0.5`, `verdict:worse`, `stw_p99_ms:worse`.
        figures: the names of the known figures.
        changes: True if two sides are compared.

    Raises:
        BadSettingError: the text has none of these forms, or names an unknown figure or
            finding.
    """
    if not isinstance(text, str):
        several = "conditions as text, each an argument of its own: check('stw_p99_ms>2')"
        raise _bad_condition(str(text), several)
    if match := _WORD.fullmatch(text):
        return _word_condition(text.strip(), match[1], match[2], figures, changes=changes)
    match = _FIGURE.fullmatch(text)
    if match is None:
        example = "a condition such as gc_cpu_share>10%, stw_p99_ms>2 or finding:bad"
        meant = f"finding:{rule.name}" if (rule := find_rule(text)) else _of_benchmarks(text)
        of_two = " or gc_cpu_share>+10%; of benchmarks, bytes_per_op>+5%"
        raise _bad_condition(
            text, example + of_two * changes, meant if rule or changes else None
        )
    figure, comparison, sign, number, unit = match.groups()
    _require_known(figure, figures)
    is_change = changes and bool(sign)
    if sign == "+" and not changes:
        expected = (
            "a limit without a +, because one run has no change; compare two runs instead"
        )
        raise _bad_condition(text, expected)
    relative = is_change and unit == "%"
    limit = float(number) / 100 if relative else _limit(text, figure, number, unit)
    limit = -limit if sign == "-" else limit
    if not relative and _is_beyond_shares(figure, comparison, limit):
        raise _bad_condition(
            text,
            f"a limit that can be reached: {figure} is a share from 0 to 1",
            None if unit else f"{figure}{comparison}{sign}{number}%",
        )
    if is_change:
        return ChangeCondition(text, figure, comparison, limit, relative)
    return FigureCondition(text, figure, comparison, limit)


def _word_condition(
    text: str, subject: str, value: str, figures: Sequence[str], *, changes: bool
) -> Condition:
    if subject == "finding":
        rule = find_rule(value)
        if value not in _PROBLEMS and (rule is None or value not in (rule.id, rule.name)):
            names = [rule.name for rule in RULES.values()]
            expected = (
                "finding: followed by a severity (bad, warn, info), an id from "
                f"{min(RULES)} to {max(RULES)}, or a name such as limit-thrash"
            )
            raise _bad_condition(text, expected, nearest_name(value, [*_PROBLEMS, *names]))
        return FindingCondition(text, value)
    if not changes:
        raise _bad_condition(text, "finding:bad, finding:GC016 or a figure")
    if subject != "verdict":
        _require_known(subject, figures)
    if value not in _VERDICTS:
        raise _bad_condition(text, "a verdict: " + ", ".join(_VERDICTS))
    return VerdictCondition(text, None if subject == "verdict" else subject, value)


def _bad_condition(text: str, expected: str, suggestion: str | None = None) -> BadSettingError:
    return BadSettingError("condition", text, expected, suggestion)


def _of_benchmarks(text: str) -> str | None:
    """Returns a condition that names its figure as benchmarks do, such as `B/op>+5%`."""
    named = re.fullmatch(r"\s*+(B|allocs|ns|sec|time)/op(.*)", text)
    if named is None:
        return None
    words = {"B": "bytes_per_op", "allocs": "allocs_per_op"}
    return f"{words.get(named[1], 'ns_per_op')}{named[2]}"


def _require_known(figure: str, figures: Sequence[str]) -> None:
    if figure in figures:
        return
    # "max_pause" matches no name, but the words are in a name or its description.
    texts = {column.name: f"{column.name} {column.described}" for column in schema.SUMMARY}
    words = figure.lower().split("_")
    hits = {name: sum(word in texts.get(name, name) for word in words) for name in figures}
    best = max(figures, key=lambda name: hits[name])
    # Of a name, people leave out the end.
    starts = {name.rsplit("_", cut)[0]: name for cut in (2, 1, 0) for name in figures[::-1]}
    alike = nearest(figure, starts)
    near = starts[alike] if alike else best if hits[best] else None
    expected = f"a figure of the summary: {list_of(figures, near or figure)}"
    raise _bad_condition(figure, expected, near)


def _before_and_after(change: Change) -> str:
    ends = (change.after, change.before)
    after, before = (_written(change.metric, end or 0.0) for end in ends)
    return f"{change.metric} is {after} after {before}"


def _written(figure: str, value: float) -> str:
    """Returns a value in the unit that the figure's name ends with; a share in per cent."""
    return f"{100 * value:.4g} %" if _is_share(figure) else f"{value:.4g}"


def _change_text(value: float, *, relative: bool) -> str:
    if not relative:
        return f"{value:+.3g}"
    percent = 100 * value
    return f"{percent:+,.0f} %" if abs(percent) >= 100 else f"{percent:+.3g} %"


def _is_share(figure: str) -> bool:
    return "share" in figure


def _is_beyond_shares(figure: str, comparison: str, limit: float) -> bool:
    """Returns whether a limit can never be crossed by a share or by its change.

    A check with such a limit would pass or fail for ever: 10 was meant as 10 %.
    """
    is_end = (comparison, limit) in ((">", 1.0), ("<", -1.0))
    return _is_share(figure) and (abs(limit) > 1 or is_end)


def _limit(text: str, figure: str, number: str, unit: str) -> float:
    """Returns the limit in the unit that the name of the figure ends with."""
    if not unit:
        return float(number)
    if unit in ("%", "pp") and _is_share(figure):
        return float(number) / 100
    if figure.endswith("_ms"):
        return 1000 * units.duration_s(number + unit, argument="condition")
    if figure.endswith("_s") and not figure.endswith("_per_s"):
        return units.duration_s(number + unit, argument="condition")
    if "_mib" in figure:
        return units.size_mib(number + unit, argument="condition")
    raise _bad_condition(text, f"a limit for {figure} without a unit")


WINDOW_S = 10.0
"""Length of the windows in which GC CPU is compared."""


@frozen
class ServiceLevel(Plain):
    """A promise and how far it was kept.

    Attributes:
        quantity: `pause` or `gc_cpu`.
        limit: in milliseconds for pauses, as a share (0–1) for GC CPU.
        within_share: share of the pauses, or of the 10 s windows, within the limit; None if
            there is nothing to compare.
        worst: the longest pause in milliseconds, or the highest share of a window.
    """

    quantity: Quantity
    limit: float
    within_share: float | None
    worst: float | None


def service_levels(
    corrected: pl.DataFrame,
    windows: Callable[[float], pl.DataFrame],
    promised: Mapping[Quantity, float],
) -> tuple[ServiceLevel, ...]:
    """Returns how far each promise was kept.

    Args:
        corrected: what `on_real_cpus` returns.
        windows: returns the windows of this length in seconds.
        promised: what `limits` returns.
    """
    conditions = []
    for quantity, limit in promised.items():
        if quantity == "pause":
            values = single_pauses(corrected)
        else:
            values = windows(WINDOW_S)["gc_cpu_share"].drop_nulls()
        within = (values <= limit).mean() if len(values) else None
        worst = values.max() if len(values) else None
        conditions.append(ServiceLevel(quantity, limit, within, worst))  # type: ignore[arg-type]
    return tuple(conditions)
