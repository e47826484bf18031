"""Comparisons as people hold them: two sides, or a sweep over several settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import frames
from gctrace_analyzer.advise.expectation import Expected, expected, same_gogc
from gctrace_analyzer.analysis.checks import Check, Facts, condition
from gctrace_analyzer.analysis.compare.comparability import (
    Circumstances,
    Difference,
    differences,
)
from gctrace_analyzer.analysis.compare.compare import compare, sweep
from gctrace_analyzer.analysis.compare.metrics import METRICS
from gctrace_analyzer.present import comparison
from gctrace_analyzer.present.format import duration
from gctrace_analyzer.present.json import written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pandas as pd

    from gctrace_analyzer.analysis.rules.finding import Finding
    from gctrace_analyzer.present.text import Line
    from gctrace_analyzer.sides import Side


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Two sides, metric by metric; prints as the command line does.

    Attributes:
        before: one side, with its runs and their reports.
        after: the other.
        frame: `schema.COMPARISON`, one row per metric.
        differences: what differs besides the figures, what breaks comparability first.
        unexpected: why there is no expectation of the new settings; None: there is one, or
            the settings are the same.
        load_is_given: False if the program allocates as fast as it can, so that its
            allocation rate is a result.
    """

    before: Side
    after: Side
    frame: pl.DataFrame
    differences: tuple[Difference, ...]
    unexpected: str | None
    load_is_given: bool

    @property
    def comparable(self) -> bool:
        """Whether nothing but settings and the program itself made the difference."""
        return not any(each.kind == "incomparable" for each in self.differences)

    def rows(self) -> dict[str, dict[str, Any]]:
        """The frame's rows by metric."""
        return {row["metric"]: row for row in self.frame.iter_rows(named=True)}

    def judge(self, *conditions: str) -> list[Check]:
        """Each condition, and whether it holds (see `failures`)."""
        rows = self.rows()
        facts = Facts({name: row["after"] for name, row in rows.items()}, self._found, rows)
        names = [metric.name for metric in METRICS]
        return [condition(text, names, changes=True).check(facts) for text in conditions]

    def failures(self, *conditions: str) -> list[str]:
        """Those of the conditions that hold, or that the logs cannot tell, with the reason.

        Args:
            conditions: as `--fail-on` takes them: `gc_cpu_share>+10%` (a change beyond noise),
                `stw_p99_ms>2` (after), `verdict:worse`, `finding:bad` (after).

        Raises:
            BadSettingError: no such condition.
        """
        return [str(each) for each in self.judge(*conditions) if each.held is not False]

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return comparison.document(self)

    def to_json(self) -> str:
        """Everything as JSON text, with a line end."""
        return written(self.to_dict())

    def to_markdown(self) -> str:
        """For a pull request."""
        return comparison.markdown(self)

    def to_html(self) -> str:
        """One file that opens without a network, the runs laid over each other."""
        from gctrace_analyzer.present.html import comparison

        return comparison.dumps(self)

    def lines(self) -> Iterator[Line]:
        """The text, line by line, with styles."""
        return comparison.lines(self)

    def to_pandas(self) -> pd.DataFrame:
        """The frame as pandas.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return frames.to_pandas(self.frame)

    def __repr__(self) -> str:
        counts = self.frame["verdict"].drop_nulls().value_counts(sort=True).rows()
        told = ", ".join(f"{number} {verdict}" for verdict, number in counts)
        return f"<Comparison of {self.before.label} and {self.after.label}: {told}>"

    def __str__(self) -> str:
        return comparison.plain(self.lines())

    def _repr_html_(self) -> str:
        from gctrace_analyzer.present.html import comparison

        return comparison.cell(self)

    def _found(self) -> Iterable[Finding]:
        return self.after.findings()


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """Several settings of one program; prints as the command line does.

    Attributes:
        sides: the settings, in the order given.
        frame: `schema.SWEEP`, one row per setting and metric.
        differences: what differs from the first setting's runs besides settings and figures.
    """

    sides: tuple[Side, ...]
    frame: pl.DataFrame
    differences: tuple[Difference, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return comparison.sweep_document(self)

    def judge(self, *conditions: str) -> list[Check]:
        """Each condition on each setting but the first, which they are held against."""
        return [
            Check(f"{side.label}: {each.text}", each.held, each.reason)
            for side in self.sides[1:]
            for each in between(self.sides[0], side).judge(*conditions)
        ]

    def failures(self, *conditions: str) -> list[str]:
        """Those of the conditions that hold, or that the logs cannot tell, with the reason.

        Args:
            conditions: as `Comparison.failures` takes them.

        Raises:
            BadSettingError: no such condition.
        """
        return [str(each) for each in self.judge(*conditions) if each.held is not False]

    def to_json(self) -> str:
        """Everything as JSON text, with a line end."""
        return written(self.to_dict())

    def to_markdown(self) -> str:
        """For a pull request."""
        return comparison.sweep_markdown(self)

    def to_html(self) -> str:
        """One file that opens without a network, the runs laid over each other."""
        from gctrace_analyzer.present.html import comparison

        return comparison.dumps_sweep(self)

    def to_pandas(self) -> pd.DataFrame:
        """The frame as pandas.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return frames.to_pandas(self.frame)

    def lines(self) -> Iterator[Line]:
        """The text, line by line, with styles."""
        return comparison.sweep_lines(self)

    def __repr__(self) -> str:
        return f"<Sweep over {', '.join(side.label for side in self.sides)}>"

    def __str__(self) -> str:
        return comparison.plain(self.lines())

    def _repr_html_(self) -> str:
        from gctrace_analyzer.present.html import comparison

        return comparison.cell_of_sweep(self)


def between(before: Side, after: Side) -> Comparison:
    """The comparison of two sides."""
    given = before.load_is_given and after.load_is_given
    frame = compare(before.measured, after.measured, load_is_given=given)
    wanted, unexpected = _expectation(before, after)
    if wanted:
        late = after.after_start()
        wanted = {name: {**row, "measured": late[name]} for name, row in wanted.items()}
    frame = frame.with_columns(
        pl.col("metric")
        .replace_strict(
            {metric: row[name] for metric, row in wanted.items()},
            default=None,
            return_dtype=pl.Float64,
        )
        .alias(name)
        for name in ("expected", "expected_low", "expected_high", "measured")
    )
    rows = {row["metric"]: row for row in frame.iter_rows(named=True)}
    found = differences(
        (_same_named(before, after), before.measured),
        (after.circumstances, after.measured),
        rows,
        load_is_given=given,
    )
    return Comparison(before, after, frame, tuple(found), unexpected, given)


def over(sides: Sequence[Side]) -> Sweep:
    """The sweep over several settings."""
    frame = sweep([(side.label, side.measured) for side in sides])
    found: dict[str, Difference] = {}
    for side in sides[1:]:
        for each in between(sides[0], side).differences:
            if each.what == "live_heap":
                found.setdefault(each.what, _of_live_heaps(frame))
            elif each.what == "length":
                found.setdefault(each.what, _of_lengths(sides))
            elif each.kind == "incomparable":
                sentence = f"{sides[0].label}, {side.label}: {each.sentence}"
                found[sentence] = Difference(each.kind, each.what, sentence)
            elif each.what not in ("gogc", "memory_limit", "ballast", "throughput"):
                found[each.sentence] = each
    return Sweep(tuple(sides), frame, tuple(found.values()))


def _of_live_heaps(frame: pl.DataFrame) -> Difference:
    held = frame.filter(metric="true_live_heap_mib")["value"].drop_nulls().sort()
    sentence = (
        f"The program itself holds {held[0]:.3g} to {held[-1]:.3g} MiB live: goal, peak and "
        "the work of a cycle follow from it."
    )
    return Difference("note", "live_heap", sentence)


def _of_lengths(sides: Sequence[Side]) -> Difference:
    told = ", ".join(
        f"{side.label} {duration(side.seconds / len(side.runs))}" for side in sides
    )
    sentence = (
        f"Runs are not of one length ({told}): a longer one had more time for its peak and its "
        "longest pauses. Where all had the same work to do, its time is the first figure."
    )
    return Difference("note", "length", sentence)


def _same_named(before: Side, after: Side) -> Circumstances:
    """The circumstances before, in the words of after where they are the same."""
    was, now = before.circumstances, after.circumstances
    same = same_gogc(before.gogc, after.gogc)
    # What one side does not tell is no difference.
    gogc = now.gogc if same or was.gogc is None or now.gogc is None else was.gogc
    limits = (
        before.baseline.settings.memory_limit_mib,
        after.baseline.settings.memory_limit_mib,
    )
    limit = was.memory_limit if all(limits) else now.memory_limit
    return Circumstances(was.label, was.go, gogc, limit, was.ballast)


def _expectation(before: Side, after: Side) -> tuple[Expected, str | None]:
    """What the what-if says of the new settings by metric, or why it says nothing."""
    baseline, wanted = before.baseline, after.baseline.now
    for side in (before, after):
        if side.by_limit and not side.baseline.now.limit:
            return {}, f"a memory limit sets the goals of {side.label}, and it is not known"
        if side.gogc is None and not side.by_limit:
            return {}, None
    rest = wanted.limit == baseline.now.limit and wanted.ballast == baseline.now.ballast
    if rest and (same_gogc(before.gogc, after.gogc) or None in (before.gogc, after.gogc)):
        return {}, None
    return expected(baseline, wanted)
