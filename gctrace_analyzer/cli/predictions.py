"""How predictions and recommendations are printed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.cli.deliver import Result, row_writers, text_writer, without_noise
from gctrace_analyzer.cli.options import add_options
from gctrace_analyzer.cli.reading import add_server_as_input, reading_inputs, say_damage

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from gctrace_analyzer.cli.deliver import Writer
    from gctrace_analyzer.cli.options import Parser
    from gctrace_analyzer.present.plots.palette import Theme
    from gctrace_analyzer.present.predicted import Predictions
    from gctrace_analyzer.run import Run

FORMATS = ("text", "csv", "json", "jsonl", "md", "html", "parquet")


def add_inputs(parser: Parser) -> None:
    """Adds the inputs, and whether each is a separate run."""
    add_options(
        parser.add_files(),
        ("--separate", "", "each FILE is one run of the program under its own settings, the first "
         "one under the present settings; the predictions use all of them"),
    )  # fmt: skip


def add_common(parser: Parser, formats: Sequence[str] = FORMATS, *, suffix: str = "") -> None:
    """Adds the options after those for the settings: output, facts and reading."""
    parser.add_output(formats)
    parser.add_facts(suffix=suffix, one_program=True)
    parser.add_reading()
    add_server_as_input(parser)
    parser.add_general()


def read_separately(args: argparse.Namespace, **facts: Any) -> tuple[Run, list[Run]]:
    """Reads the run to predict from, and the runs that are further evidence.

    Settings given as options belong to the first run; `facts` take precedence.
    """
    from gctrace_analyzer.api import read

    first, others = args.inputs, []
    with reading_inputs(args) as given:
        options = {**given, **facts}
        if args.separate:
            first, others = args.inputs[:1], args.inputs[1:]
        run = read(*first, **options)
        own = {**options, **dict.fromkeys(("gogc", "memory_limit", "ballast"))}
        evidence = [read(origin, **own) for origin in others]
    say_damage(run, *evidence)
    return run, evidence


def prediction(
    run: Run,
    rows: Predictions,
    theme: Theme,
    heading: str,
    more: Mapping[str, Writer] | None = None,
) -> Result:
    """Returns predicted rows in every format, and those of `more`."""

    def page() -> str:
        from gctrace_analyzer.present.html import document_page

        return document_page.dumps(
            run.report(), rows, rows.document(), heading, datetime.now(UTC), theme
        )

    return Result(
        is_empty=run.is_empty,
        document=rows.document,
        writers={
            "html": text_writer(page),
            **(more or {}),
            "json": text_writer(lambda: f"{without_noise(rows).write_json()}\n"),
            **row_writers(lambda: rows, safe=False),
        },
    )
