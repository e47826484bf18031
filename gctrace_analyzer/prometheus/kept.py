"""What an interrupted comparison of many processes has computed, next to its output."""

from __future__ import annotations

import io
import json
import shutil
from datetime import UTC, datetime
from operator import methodcaller
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.errors import UnwritableOutputError
from gctrace_analyzer.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gctrace_analyzer.prometheus.samples import Span

_PLAN = "plan.json"


class Kept:
    """The finished batches of a comparison, as files in a folder next to its output.

    Args:
        output: the file that the comparison will write.
        question: what was asked for, without secrets. Batches of another question are
            discarded.
    """

    def __init__(self, output: Path, question: Mapping[str, str]) -> None:
        self._folder = output.with_name(f"{output.name}.partial")
        self._question = dict(question)

    def span(self) -> tuple[datetime, datetime] | None:
        """Returns the time range of an interrupted comparison; None if there is none."""
        try:
            plan = json.loads((self._folder / _PLAN).read_text())
            if plan["question"] == self._question:
                begin, end = (datetime.fromtimestamp(plan[name], UTC) for name in _ENDS)
                return begin, end
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def begin(self, span: Span) -> None:
        """Makes the folder, and discards batches of another question."""
        if self.span() is not None:
            return
        self.discard()
        try:
            self._folder.mkdir()
        except OSError as err:
            raise UnwritableOutputError(str(self._folder), err.strerror or str(err)) from err
        plan = {"question": self._question, "begin": span.begin, "end": span.end}
        self._write(_PLAN, json.dumps(plan).encode())

    def get(self, number: int, instances: Sequence[str]) -> pl.DataFrame | None:
        """Returns the rows of a batch; None if it is not there or about other processes."""
        try:
            rows = pl.read_parquet(self._path(number))
        except (OSError, pl.exceptions.PolarsError):
            return None
        return rows if rows["instance"].to_list() == list(instances) else None

    def put(self, number: int, rows: pl.DataFrame) -> None:
        """Keeps the rows of a batch."""
        buffer = io.BytesIO()
        rows.write_parquet(buffer)
        self._write(self._path(number).name, buffer.getvalue())

    def discard(self) -> None:
        """Removes what is kept."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, number: int) -> Path:
        return self._folder / f"batch-{number:05d}.parquet"

    def _write(self, name: str, data: bytes) -> None:
        write_atomically(self._folder / name, methodcaller("write", data))


_ENDS = ("begin", "end")
