"""A fleet's answers for people in Python: they print as the command does."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.fleet import Answers, answers
from gctrace_analyzer.present import fleet, text

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class FleetAnswers(Answers):
    """What the rows of a fleet tell together; prints as `gctrace-analyze fleet` does."""

    def __str__(self) -> str:
        return text.joined(fleet.lines(self))

    def _repr_markdown_(self) -> str:
        return fleet.dumps(self)


def fleet_answers(rows: pl.DataFrame | pl.LazyFrame) -> FleetAnswers:
    """The answers that rows of `fleet` give.

    Args:
        rows: what `fleet` gave, or a part of it: one region, one day.
    """
    found = answers(rows.lazy().collect())
    return FleetAnswers(**{each.name: getattr(found, each.name) for each in fields(found)})
