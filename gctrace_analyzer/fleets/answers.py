"""The answers about a fleet as a Python object that prints like the command."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.fleet import Answers, answers
from gctrace_analyzer.present import fleet
from gctrace_analyzer.present.table import joined

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class FleetAnswers(Answers):
    """Answers about all processes of a fleet; prints like `gctrace-analyze fleet`."""

    def __str__(self) -> str:
        return joined(fleet.lines(self))

    def _repr_markdown_(self) -> str:
        return fleet.dumps(self)


def fleet_answers(rows: pl.DataFrame | pl.LazyFrame) -> FleetAnswers:
    """Returns the answers that the rows of a fleet give.

    Args:
        rows: what `fleet` returned, or a part of it, such as one region or one day.
    """
    found = answers(rows.lazy().collect())
    return FleetAnswers(**{each.name: getattr(found, each.name) for each in fields(found)})
