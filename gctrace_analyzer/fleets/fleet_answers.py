"""The answers about a fleet as a Python object that prints like the command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import polars as pl

from gctrace_analyzer.analysis.fleet.answers import Answers, after_all, answers
from gctrace_analyzer.present import text
from gctrace_analyzer.present.format import count
from gctrace_analyzer.present.html import document_page
from gctrace_analyzer.present.sections import fleet


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


def fleet_answers(
    rows: pl.DataFrame | pl.LazyFrame,
    *,
    before: pl.DataFrame | pl.LazyFrame | Sequence[pl.DataFrame | pl.LazyFrame] | None = None,
) -> FleetAnswers:
    """Returns the answers that the rows of a fleet give.

    Args:
        rows: what `fleet` returned, or a part of it, such as one region or one day.
        before: the rows of an earlier run: `changes` then has what changed since. With the rows
            of several, the earliest first, `history` has the figures of each service over all
            of them.
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
