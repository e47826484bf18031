"""`Comparison`: the result of comparing sides, to be printed or exported."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import frames
from gctrace_analyzer.advise.sides import Side, all_differences, compare_sides, sides_of
from gctrace_analyzer.analysis.checks import (
    Facts,
    FindingCondition,
    VerdictCondition,
    condition,
    known_of,
)
from gctrace_analyzer.analysis.compare.metrics import DECIDING, NAMED
from gctrace_analyzer.errors import BadSettingError, Suggesting
from gctrace_analyzer.present import json, markdown, text
from gctrace_analyzer.present.sections import comparison as sections

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

    from gctrace_analyzer.advise.sides import Pair, Promised
    from gctrace_analyzer.analysis.checks import Check, Condition
    from gctrace_analyzer.analysis.compare.change import Change
    from gctrace_analyzer.analysis.compare.comparability import Difference
    from gctrace_analyzer.analysis.compare.rounds import Measurement
    from gctrace_analyzer.present.document import Document
    from gctrace_analyzer.present.plots.palette import Theme
    from gctrace_analyzer.run import Run


class Comparison(Suggesting):
    """Sides compared with the first one; it prints the same text as the command line.

    `comparison["gc_per_s"]` is the change of one metric on the last side, `comparison["gc_per_s",
    "200"]` that on the side `200`.

    Attributes:
        pairs: each side with the baseline.

    Args:
        sides: two or more; the first is the baseline.
        measurement: the rounds of the runs, if they were made for this comparison.
        promised: the prediction for a side; by default, it is made from the baseline.
    """

    def __init__(
        self,
        sides: Sequence[Side],
        *,
        measurement: Measurement | None = None,
        promised: Promised | None = None,
    ) -> None:
        self.pairs: tuple[Pair, ...] = compare_sides(
            sides, measurement=measurement, promised=promised
        )

    @property
    def before(self) -> Side:
        """The first side, which is the baseline."""
        return self.pairs[0].before

    @property
    def after(self) -> Side:
        """The last side."""
        return self.pairs[-1].after

    @property
    def sides(self) -> tuple[Side, ...]:
        """All sides, the baseline first."""
        return sides_of(self.pairs)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """One row per side and metric (`schema.COMPARISON`)."""
        return pl.concat([pair.frame for pair in self.pairs])

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Differences other than in the figures, starting with those that make it unfair."""
        return all_differences(self.pairs)

    @property
    def comparable(self) -> bool:
        """Whether only the settings and the program itself can explain the changes."""
        return all(pair.comparable for pair in self.pairs)

    @property
    def verdict(self) -> str:
        """What changed, in one sentence; or why that is not known."""
        return sections.statement(self.pairs).sentence

    @property
    def no_expectation(self) -> str | None:
        """Why the last change cannot be predicted; None if it was, or if settings are the same."""
        return self.pairs[-1].no_expectation

    @property
    def load_is_given(self) -> bool:
        """False if the program is CPU-bound: its allocation rate is then a result."""
        return self.pairs[-1].load_is_given

    def _pair(self, side: str | None) -> Pair:
        by_label = {pair.after.label: pair for pair in self.pairs}
        label = self.after.label if side is None else side
        if label not in by_label:
            raise BadSettingError.unknown("side", label, by_label)
        return by_label[label]

    def rows(self, side: str | None = None) -> dict[str, dict[str, Any]]:
        """Returns the rows of a side by metric; by default those of the last one.

        The rows of single benchmarks are in `frame`.

        Raises:
            BadSettingError: there is no such side.
        """
        frame = self._pair(side).frame
        whole = frame.filter(pl.col("benchmark").is_null())
        return {row["metric"]: row for row in whole.iter_rows(named=True)}

    def __getitem__(self, metric: str | tuple[str, str]) -> Change:
        """Returns the change of one metric: `comparison["gc_per_s"].verdict`.

        Raises:
            BadSettingError: there is no such metric or side. It is also a KeyError.
        """
        name, side = (metric, None) if isinstance(metric, str) else metric
        changes = self._pair(side).changes
        if name not in changes:
            raise BadSettingError.unknown("metric", name, changes)
        return changes[name]

    def check(self, *conditions: str) -> list[Check]:
        """Checks conditions on each side; each result says whether it is true, and why.

        Conditions on figures are checked in each benchmark, if there are any.

        Args:
            conditions: for example `gc_cpu_share>+10%` (it rose significantly, by over 10 %),
                `stw_p99_ms>2` (after the change), `verdict:worse`, `finding:bad` (after the
                change).

        Raises:
            BadSettingError: a condition is not valid.
        """
        names = [*dict.fromkeys((*self.pairs[0].changes, *NAMED))]
        checks = []
        for pair in self.pairs:
            label = f"{pair.after.label}: " if len(self.pairs) > 1 else ""
            for wanted in conditions:
                parsed = condition(wanted, names, changes=True)
                several = pair.benchmarks if not isinstance(parsed, FindingCondition) else {}
                own = [
                    _checked(parsed, changes, pair, f"{label}{name}: ")
                    for name, changes in several.items()
                ]
                checks += (
                    known_of(own) if own else [_checked(parsed, pair.changes, pair, label)]
                )
        return checks

    def document(self) -> Document:
        """Returns the document for text and Markdown."""
        return sections.document(self.pairs)

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as plain values, ready for JSON."""
        return json.of_comparison(self.pairs)

    def to_json(self) -> str:
        """Returns everything as JSON text."""
        return json.written(self.to_dict())

    def to_markdown(self) -> str:
        """Returns Markdown for a pull request."""
        return markdown.dumps(self.document())

    def to_html(self, *, theme: Theme = "auto") -> str:
        """Returns one HTML file that opens without a network, with charts of all runs.

        Args:
            theme: the first colours of the page: light, dark, or auto (as the reader's system).
        """
        from gctrace_analyzer.present.html import comparison_page

        return comparison_page.dumps(self.pairs, theme)

    def to_pandas(self) -> pd.DataFrame:
        """Returns the frame as pandas.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return frames.to_pandas(self.frame)

    def __repr__(self) -> str:
        counts = self.frame["verdict"].drop_nulls().value_counts(sort=True).rows()
        verdicts = ", ".join(f"{number} {verdict}" for verdict, number in counts)
        verdicts = verdicts.replace("~", "not significant")
        *others, last = (side.label for side in self.sides)
        return f"<Comparison of {', '.join(others)} and {last}: {verdicts}>"

    def __str__(self) -> str:
        return text.plain(self.document(), everything=False)

    def _repr_html_(self) -> str:
        from gctrace_analyzer.present.html import document_page

        return document_page.cell(self.document())


def _checked(parsed: Condition, changes: Mapping[str, Change], pair: Pair, label: str) -> Check:
    of_any = isinstance(parsed, VerdictCondition) and parsed.figure is None
    if of_any:
        deciding = DECIDING if changes is not pair.changes else _deciding(pair)
        changes = {name: changes[name] for name in deciding if name in changes}
    values = {name: change.after for name, change in changes.items()}
    check = parsed.check(Facts(values, pair.after.findings, changes))
    return replace(check, text=f"{label}{check.text}")


def _deciding(pair: Pair) -> Iterator[str]:
    """Yields the metrics that the verdict is about: what a program costs, and what was measured."""
    yield from sections.COSTS
    if pair.measurement is not None:
        yield from (metric.name for metric in pair.measurement.metrics)


def side_of(label: str, runs: Sequence[Run], *, may_be_empty: bool = False) -> Side:
    """Returns one side of a comparison: runs of one program under one setting.

    Metrics of several processes, such as the pods of a service, are one run for each process.

    Raises:
        NoDataError: a run has no cycle.
    """
    parts = [part for run in runs for part in _by_process(run)]
    own = [(run.analysis, run.advice) for run in parts]
    return Side(label, own, may_be_empty=may_be_empty)


def _by_process(run: Run) -> list[Run]:
    numbers = run.processes["process"] if run.analysis.by_dumps else ()
    if len(numbers) < 2:
        return [run]
    parts = [run.process(number) for number in numbers]
    return [part for part in parts if part.analysis.by_dumps] or [run]
