"""The answers about a fleet as a Python object that prints like the command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.checks import Check, Condition, Facts, condition, known_of
from gctrace_analyzer.analysis.fleet.answers import (
    Answers,
    after_all,
    answers,
    read_alone,
    worst_first,
)
from gctrace_analyzer.analysis.rules.finding import Finding
from gctrace_analyzer.analysis.rules.registry import RULES
from gctrace_analyzer.analysis.summary import FIGURES
from gctrace_analyzer.present import text
from gctrace_analyzer.present.fleet_tables import name_of
from gctrace_analyzer.present.format import count
from gctrace_analyzer.present.html import document_page
from gctrace_analyzer.present.sections import fleet

if TYPE_CHECKING:
    from gctrace_analyzer.schema import Row


@dataclass(frozen=True, slots=True, repr=False)
class FleetAnswers(Answers):
    """Answers about all processes of a fleet; prints like `gctrace-analyze fleet`."""

    def __repr__(self) -> str:
        t = self.totals
        parts = (
            count(t.files, "file"),
            count(t.processes, "process", "processes"),
            f"{t.thrashing:,} thrashing",
        )
        return f"<FleetAnswers: {', '.join(parts)}>"

    def __str__(self) -> str:
        return text.plain(fleet.document(self))

    def _repr_html_(self) -> str:
        return document_page.cell(fleet.document(self))


def check_fleet(rows: pl.DataFrame, *conditions: str) -> list[Check]:
    """Checks conditions as `Run.check` does; one is true if it is true for any process."""
    is_checked = pl.col("process").is_not_null() | (pl.col("oom_kills") > 0)
    processes = worst_first(read_alone(rows).filter(is_checked)).to_dicts()
    return [_checked(condition(text, FIGURES), text, processes) for text in conditions]


def _checked(wanted: Condition, text: str, rows: Sequence[Row]) -> Check:
    parts = known_of(
        [
            replace(wanted.check(Facts(row, partial(_findings, row))), of=name_of(row))
            for row in rows
        ]
    )
    true = [f"{check.of}: {check.reason}" for check in parts if check.held]
    if true:
        of = f"{len(true):,} of {count(len(parts), 'process', 'processes')}"
        first = f"{of}, {'such as ' if len(true) > 1 else ''}{true[0]}"
        return Check(text, held=True, reason=first, parts=tuple(parts))
    held = False if any(check.held is False for check in parts) else None
    reason = "unknown for all processes" if held is None else "true of none"
    return Check(text, held, reason, parts=tuple(parts))


def _findings(row: Row) -> list[Finding]:
    """Returns the findings of a process, the first with the severity and verdict of its report.

    A row has no severity of the others: they count where they are asked for by name.
    """
    known = [
        Finding("info", "", id=id_, name=RULES[id_].name, source="")
        for id_ in row["findings"] or ()
    ]
    why = str(row["headline"] or "")
    first = [replace(finding, severity=row["severity"], evidence=why) for finding in known[:1]]
    return first + known[1:]


def fleet_answers(
    rows: pl.DataFrame | pl.LazyFrame,
    *,
    before: pl.DataFrame | pl.LazyFrame | Sequence[pl.DataFrame | pl.LazyFrame] | None = None,
) -> FleetAnswers:
    """Returns the answers that the rows of a fleet give.

    Args:
        rows: what `fleet` returned, or a part of it, such as one region or one day.
        before: the rows of an earlier run, for `changes`. With the rows of several runs, the
            earliest first, `history` has the figures of each service over all runs.
    """
    summary = answers(rows.lazy().collect())
    if before is not None:
        several = [before] if isinstance(before, (pl.DataFrame, pl.LazyFrame)) else [*before]
        names = [f"run {number}" for number in range(1, len(several) + 1)]
        if len(several) == 1:
            names = ["the earlier run"]
        earlier = [answers(run.lazy().collect()) for run in several]
        summary = after_all(summary, list(zip(names, earlier, strict=True)))
    return FleetAnswers(
        **{field.name: getattr(summary, field.name) for field in fields(summary)}
    )
