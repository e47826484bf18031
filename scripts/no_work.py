"""A task of `fleet` that reads nothing, for `bench-scheduler`; workers import it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from environment import ROOT

if TYPE_CHECKING:
    from gctrace_analyzer.fleets.rows import Row
    from gctrace_analyzer.fleets.worker import Batch


@cache
def row() -> Row:
    """Returns the row of a sample."""
    from gctrace_analyzer.fleets.inputs import Item
    from gctrace_analyzer.fleets.worker import WorkerOptions, rows_here

    path = ROOT / "samples" / "steady-go1.26.log"
    return rows_here(Item(str(path), path.name, path.stat().st_size), WorkerOptions())[0]


def batch_rows(batch: Batch) -> list[Row]:
    """Returns the same row for every file of the batch."""
    return [row() | {"file": item.name} for item in batch.items]
