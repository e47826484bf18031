"""`Comparison` and `Sweep`: results of comparing runs, to be printed or exported."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from gctrace_analyzer import frames
from gctrace_analyzer.advise.comparison import (
    Change,
    SeveralSides,
    Side,
    TwoSides,
    compare_several,
    compare_two,
)
from gctrace_analyzer.analysis.checks import Facts, condition
from gctrace_analyzer.analysis.compare.metrics import METRICS
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.present import json, markdown, text
from gctrace_analyzer.present.sections import comparison as sections

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from gctrace_analyzer.analysis.checks import Check
    from gctrace_analyzer.present.document import Document
    from gctrace_analyzer.present.plots.palette import Theme
    from gctrace_analyzer.run import Run


class Comparison(TwoSides):
    """The comparison of two sides; it prints the same text as the command line.

    `comparison["gc_per_s"]` is the change of one metric; `frame` has the changes of all.
    """

    def __getitem__(self, metric: str) -> Change:
        """Returns the change of one metric: `comparison["gc_per_s"].verdict`.

        Raises:
            BadSettingError: there is no such metric. It is also a KeyError.
        """
        rows = self.rows()
        if metric not in rows:
            raise BadSettingError.unknown(argument="metric", value=metric, valid=rows)
        return Change(**{each.name: rows[metric][each.name] for each in fields(Change)})

    def check(self, *conditions: str) -> list[Check]:
        """Checks conditions; each result says whether its condition holds, with the reason.

        Args:
            conditions: for example `gc_cpu_share>+10%` (it rose significantly, by over 10 %),
                `stw_p99_ms>2` (after the change), `verdict:worse`, `finding:bad` (after the
                change).

        Raises:
            BadSettingError: a condition is not valid.
        """
        rows = self.rows()
        facts = Facts(
            {name: row["after"] for name, row in rows.items()}, self.after.findings, rows
        )
        names = [metric.name for metric in METRICS]
        return [condition(each, names, changes=True).check(facts) for each in conditions]

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as plain values, ready for JSON."""
        return json.of_two_sides(self)

    def to_json(self) -> str:
        """Returns everything as JSON text."""
        return json.written(self.to_dict())

    def to_markdown(self) -> str:
        """Returns Markdown for a pull request."""
        return markdown.dumps(self.document())

    def to_html(self, *, theme: Theme = "auto") -> str:
        """Returns one HTML file that opens without a network, with charts of all runs.

        Args:
            theme: the colours it opens with: light, dark, or auto for those of the reader's
                system.
        """
        from gctrace_analyzer.present.html import comparison

        return comparison.dumps(self, theme)

    def document(self) -> Document:
        """Returns what text and Markdown show."""
        return sections.two_sides(self)

    def to_pandas(self) -> pd.DataFrame:
        """Returns the frame as pandas.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return frames.to_pandas(self.frame)

    def __repr__(self) -> str:
        counts = self.frame["verdict"].drop_nulls().value_counts(sort=True).rows()
        verdicts = ", ".join(f"{number} {verdict}" for verdict, number in counts)
        return f"<Comparison of {self.before.label} and {self.after.label}: {verdicts}>"

    def __str__(self) -> str:
        return text.plain(self.document())

    def _repr_html_(self) -> str:
        from gctrace_analyzer.present.html import comparison

        return comparison.cell(self)


class Sweep(SeveralSides):
    """The comparison of several settings; it prints the same text as the command line."""

    def check(self, *conditions: str) -> list[Check]:
        """Checks conditions on each setting against the first one.

        Args:
            conditions: as `Comparison.check` takes them.

        Raises:
            BadSettingError: a condition is not valid.
        """
        return [
            replace(each, text=f"{side.label}: {each.text}")
            for side in self.sides[1:]
            for each in compared(self.sides[0], side).check(*conditions)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as plain values, ready for JSON."""
        return json.of_several_sides(self)

    def to_json(self) -> str:
        """Returns everything as JSON text."""
        return json.written(self.to_dict())

    def to_markdown(self) -> str:
        """Returns Markdown for a pull request."""
        return markdown.dumps(self.document())

    def to_html(self, *, theme: Theme = "auto") -> str:
        """Returns one HTML file that opens without a network, with charts of all runs.

        Args:
            theme: the colours it opens with: light, dark, or auto for those of the reader's
                system.
        """
        from gctrace_analyzer.present.html import comparison

        return comparison.dumps_sweep(self, theme)

    def to_pandas(self) -> pd.DataFrame:
        """Returns the frame as pandas.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return frames.to_pandas(self.frame)

    def document(self) -> Document:
        """Returns what text and Markdown show."""
        return sections.several_sides(self)

    def __repr__(self) -> str:
        return f"<Sweep over {', '.join(side.label for side in self.sides)}>"

    def __str__(self) -> str:
        return text.plain(self.document())

    def _repr_html_(self) -> str:
        from gctrace_analyzer.present.html import comparison

        return comparison.cell_of_sweep(self)


def side_of(label: str, runs: Sequence[Run]) -> Side:
    """Returns one side of a comparison: runs of one program under one setting.

    Metrics of several processes, such as the pods of a service, are one run for each process.

    Raises:
        NoDataError: a run has no cycle.
    """
    each = [part for run in runs for part in _by_process(run)]
    return Side(label, [(run.analysis, run.advice) for run in each])


def _by_process(run: Run) -> list[Run]:
    numbers = run.processes["process"] if run.analysis.by_dumps else ()
    if len(numbers) < 2:
        return [run]
    parts = [run.process(number) for number in numbers]
    return [part for part in parts if part.analysis.by_dumps] or [run]


def compared(before: Side, after: Side) -> Comparison:
    """Returns the comparison of two sides."""
    found = compare_two(before, after)
    return Comparison(**{each.name: getattr(found, each.name) for each in fields(TwoSides)})


def compared_settings(sides: Sequence[Side]) -> Sweep:
    """Returns the comparison of several settings."""
    found = compare_several(sides)
    return Sweep(**{each.name: getattr(found, each.name) for each in fields(SeveralSides)})
