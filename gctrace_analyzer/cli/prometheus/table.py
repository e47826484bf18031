"""The ranked table of several processes, in every output format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.cli.deliver import Result, row_writers, text_writer

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from gctrace_analyzer.present.document import Document
    from gctrace_analyzer.present.services import Services

FORMATS = ("text", "md", "html", "json", "csv", "jsonl", "parquet")


def result(
    found: Services,
    args: argparse.Namespace,
    top: int = 10,
    closing: Document = (),
    done: Callable[[], object] | None = None,
) -> Result:
    """Returns the table in every format."""
    from gctrace_analyzer.present import services

    return Result(
        document=lambda: services.document(found, top),
        writers={
            **row_writers(lambda: found.rows, safe=args.csv_safe),
            "json": text_writer(lambda: services.to_json(found)),
            "html": text_writer(lambda: services.to_html(found, top, theme=args.theme)),
        },
        closing=closing,
        done=done,
    )
