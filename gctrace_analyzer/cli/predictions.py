"""How predictions and recommendations are printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gctrace_analyzer.present.format import wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl

    from gctrace_analyzer.present.table import Line
    from gctrace_analyzer.run import Run

FORMATS = ("text", "csv", "json", "jsonl")

_WIDTH = 78
_LABEL = 12
_LOADS = {
    "fixed-rate": "a fixed-rate load",
    "cpu-bound": "a CPU-bound load",
    "between": "a load between fixed-rate and CPU-bound",
}


def write_rows(rows: pl.DataFrame, kind: str) -> None:
    """Prints rows as csv, json (one array) or jsonl."""
    if kind == "csv":
        sys.stdout.write(rows.write_csv())
    elif kind == "json":
        sys.stdout.write(rows.write_json() + "\n")
    else:
        sys.stdout.write(rows.write_ndjson())


def labelled(sentences: Iterable[tuple[str, str]]) -> Iterator[Line]:
    """Yields lines of sentences, each with a label in bold."""
    for label, sentence in sentences:
        for index, text in enumerate(wrap(sentence, _WIDTH - 2 - _LABEL)):
            yield ((f"  {'' if index else label:<{_LABEL}}", "bold"), (text, ""))


def basis(run: Run, rows: pl.DataFrame) -> Iterator[Line]:
    """Yields lines that say which measurements the predictions start from."""
    from gctrace_analyzer.present.sections import advice

    baseline = run.advice.baseline
    if baseline.load is None:
        return
    text = (
        f"Predicted from {advice.as_text(baseline.now)}, {_LOADS[baseline.load_model]}, "
        f"{baseline.load.cycles} steady cycles; 80 % intervals{advice.horizon_text(rows)}."
    )
    for line in wrap(text, _WIDTH - 2):
        yield ((f"  {line}", "dim"),)
