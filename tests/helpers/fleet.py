"""Items, rows and outputs for tests of fleets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gctrace_analyzer import schema
from gctrace_analyzer.fleets import inputs, worker
from tests.conftest import SAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from gctrace_analyzer.fleets.inputs import Item
    from gctrace_analyzer.schema import Row


def item(path: Path | str) -> Item:
    """The file as an input of a fleet."""
    return inputs.find([str(path)])[0][0]


def rows_of(path: Path | str, **options: Any) -> list[Row]:
    """The rows of a file, read in this process."""
    return worker.rows_here(item(path), worker.WorkerOptions(**options))


def row(name: str, **values: Any) -> Row:
    """A row of the fleet table that has only these values."""
    return {**dict.fromkeys(schema.names("fleet")), "file": name, **values}


def sample(name: str = "steady-go1.26") -> str:
    """The text of a sample."""
    return (SAMPLES / f"{name}.log").read_text()
