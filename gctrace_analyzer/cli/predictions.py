"""How predictions and recommendations are printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.cli.progress import reading, say_damage
from gctrace_analyzer.present.format import wrap
from gctrace_analyzer.present.table import width

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    import polars as pl

    from gctrace_analyzer.advise.baseline import Baseline
    from gctrace_analyzer.present.table import Line
    from gctrace_analyzer.run import Run

FORMATS = ("text", "csv", "json", "jsonl")

_LABEL = 12
_LOADS = {
    "fixed-rate": "a fixed-rate load",
    "cpu-bound": "a CPU-bound load",
    "between": "a load between fixed-rate and CPU-bound",
}


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Adds the inputs, and whether each is a run of its own."""
    group = parser.add_argument_group("input")
    group.add_argument(
        "inputs", nargs="+", metavar="FILE", help="a log, or - for standard input"
    )
    group.add_argument(
        "--separate",
        action="store_true",
        help="each FILE is a run of the program under its own settings: the first one has the "
        "present settings, and all of them together make the predictions",
    )


def read_separately(args: argparse.Namespace, options: dict[str, Any]) -> tuple[Run, list[Run]]:
    """Reads the inputs: the run to predict from, and the runs that are further evidence.

    Settings given as options are those of the first run.
    """
    from gctrace_analyzer.api import read

    first, others = args.inputs, []
    with reading() as progress:
        if args.separate:
            first, others = args.inputs[:1], args.inputs[1:]
        run = read(*first, progress=progress, **options)
        own = {**options, **dict.fromkeys(("gogc", "memory_limit", "ballast"))}
        evidence = [read(each, progress=progress, **own) for each in others]
    say_damage(run, *evidence)
    return run, evidence


def missing(run: Run) -> tuple[str, str] | None:
    """Returns what an input without cycles shows, and what to add to it; None if it has some."""
    from gctrace_analyzer.present.sections import verdict

    found = verdict.shown(run.report())
    return (found.sentence, found.action) if found.level == "none" and found.action else None


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
        for index, text in enumerate(wrap(sentence, width() - 4 - _LABEL)):
            yield ((f"  {'' if index else label:<{_LABEL}}", "bold"), (text, ""))


def notes(run: Run) -> Iterator[tuple[str, str]]:
    """Yields labelled sentences on options that do not fit the input."""
    if (ignored := run.analysis.ignored_version) is not None:
        yield "Note", ignored


def basis(run: Run, rows: pl.DataFrame, evidence: Sequence[Run] = ()) -> Iterator[Line]:
    """Yields lines that say which measurements the predictions start from."""
    from gctrace_analyzer.present.sections import advice

    baseline = run.advice.baseline
    if baseline.load is None:
        return
    # Without a prediction of GC CPU, the load does not matter.
    load = "" if baseline.refused else f"{_load(baseline)}, "
    text = (
        f"Predicted from {advice.as_text(baseline.now)}, {load}"
        f"{baseline.load.cycles} steady cycles{_also(evidence)}; 80 % intervals"
        f"{advice.horizon_text(rows)}."
    )
    for line in wrap(text, width() - 4):
        yield ((f"  {line}", "dim"),)


def _load(baseline: Baseline) -> str:
    """Returns the kind of the load; that the CPU limits a program is certain only if proven."""
    load = baseline.load
    if baseline.load_model == "cpu-bound" and load is not None and not load.is_surely_bound:
        return "a load that seems to be CPU-bound"
    return _LOADS[baseline.load_model]


def _also(evidence: Sequence[Run]) -> str:
    """Returns the settings of the other runs; those that cannot be used, with the reason."""
    from gctrace_analyzer.present.sections import advice

    parts = []
    for run in evidence:
        baseline = run.advice.baseline
        if baseline.load is None or baseline.no_evidence:
            name = run.sources[0].name
            parts.append(f" ({name} is not used: {baseline.no_evidence})")
        else:
            parts.append(
                f" and from {advice.as_text(baseline.now)}, {baseline.load.cycles} steady cycles"
            )
    return "".join(parts)
