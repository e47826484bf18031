"""The ranked table of several processes, in every output format."""

from __future__ import annotations

import sys
from operator import methodcaller
from typing import TYPE_CHECKING

from gctrace_analyzer.cli.output import csv_text, format_of
from gctrace_analyzer.cli.screen import Colors, show, to_a_reader
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gctrace_analyzer.present.plots.palette import Theme
    from gctrace_analyzer.present.services import Services

FORMATS = ("text", "md", "html", "json", "csv", "jsonl")
SUFFIXES = {
    ".txt": "text", ".md": "md", ".html": "html", ".json": "json", ".csv": "csv",
    ".jsonl": "jsonl", ".parquet": "parquet",
}  # fmt: skip


def show_or_write(
    found: Services,
    kind: str | None,
    outputs: Sequence[Path],
    colors: Colors,
    top: int = 10,
    *,
    safe: bool = False,
) -> None:
    """Writes the table to files by their suffixes, or prints it."""
    named = [(path, format_of(path, SUFFIXES)) for path in outputs]
    if kind is not None and kind not in FORMATS:
        raise BadSettingError.unknown(argument="format", value=kind, valid=FORMATS)
    for path, suffix in named:
        write_atomically(
            path, methodcaller("write", _dumped(found, suffix, top, colors.theme, safe=safe))
        )
    if outputs and not kind:
        return
    with to_a_reader():
        if kind in (None, "text"):
            from gctrace_analyzer.present.services import lines

            show(lines(found, top), colors)
        else:
            sys.stdout.buffer.write(
                _dumped(found, kind or "text", top, colors.theme, safe=safe)
            )
            sys.stdout.buffer.flush()


def _dumped(found: Services, kind: str, top: int, theme: Theme, *, safe: bool) -> bytes:
    from gctrace_analyzer.present import services
    from gctrace_analyzer.present.table import joined

    if kind == "csv":
        return csv_text(found.rows, safe=safe).encode()
    if kind == "jsonl":
        return found.rows.write_ndjson().encode()
    if kind == "parquet":
        import io

        buffer = io.BytesIO()
        found.rows.write_parquet(buffer)
        return buffer.getvalue()
    if kind == "json":
        return services.to_json(found).encode()
    if kind == "md":
        return services.dumps(found, top).encode()
    if kind == "html":
        return services.to_html(found, top, theme=theme).encode("utf-8", "replace")
    return f"{joined(services.lines(found, top))}\n".encode()
