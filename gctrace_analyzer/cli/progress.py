"""What is said while inputs are read: progress on a terminal, warnings in one line each."""

from __future__ import annotations

import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.cli.screen import say
from gctrace_analyzer.errors import GctraceWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.ingest.sources import SourceFacts


@contextmanager
def reading() -> Iterator[Any]:
    """Gives what `read` takes as `progress`; says the warnings at the end."""
    with warnings.catch_warnings(record=True) as caught, _progress() as progress:
        warnings.simplefilter("always", GctraceWarning)
        yield progress
    for warning in caught:
        say(f"gctrace-analyze: {warning.message}")


@contextmanager
def _progress() -> Iterator[Any]:
    """A line on standard error that grows while a read takes longer than a second."""
    if not sys.stderr.isatty():
        yield None
        return
    begin, shown = time.monotonic(), False

    def progress(facts: SourceFacts) -> None:
        nonlocal shown
        if time.monotonic() - begin < 1:
            return
        shown = True
        path = Path(facts.name)
        size = path.stat().st_size if path.is_file() else 0
        done = f"{100 * facts.bytes / size:3.0f} %" if size else f"{facts.bytes >> 20} MiB"
        print(f"\r\033[Kreading {path.name}: {done}", end="", file=sys.stderr, flush=True)

    try:
        yield progress
    finally:
        if shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
