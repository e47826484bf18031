"""Progress and warnings while inputs are read, on standard error."""

from __future__ import annotations

import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gctrace_analyzer.cli.screen import say
from gctrace_analyzer.errors import GctraceWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from gctrace_analyzer.ingest.sources import SourceFacts
    from gctrace_analyzer.run import Run

    OnProgress: TypeAlias = Callable[[SourceFacts], None]

_SHOWN_AFTER_S = 1.0
CLEAR_LINE = "\r\033[K"


@contextmanager
def reading() -> Iterator[OnProgress | None]:
    """Yields the `progress` argument for `read`; prints the warnings at the end."""
    with warnings.catch_warnings(record=True) as caught, _progress_line() as progress:
        warnings.simplefilter("always", GctraceWarning)
        yield progress
    for warning in caught:
        say(f"gctrace-analyze: {warning.message}")


def say_damage(*runs: Run) -> None:
    """Prints which inputs could only be read in part, such as an archive that was cut short."""
    for run in runs:
        for source in run.sources:
            if source.damage:
                loss = f"{source.damage}; everything before it was used"
                say(f"gctrace-analyze: {source.name}: {loss}")


@contextmanager
def _progress_line() -> Iterator[OnProgress | None]:
    """Yields a callback that draws one line, if reading takes longer than a second."""
    if not sys.stderr.isatty():
        yield None
        return
    begin, shown = time.monotonic(), False

    def progress(facts: SourceFacts) -> None:
        nonlocal shown
        if time.monotonic() - begin < _SHOWN_AFTER_S:
            return
        shown = True
        path = Path(facts.name)
        size = path.stat().st_size if path.is_file() else 0
        done = f"{100 * facts.bytes / size:3.0f} %" if size else f"{facts.bytes >> 20} MiB"
        line = f"{CLEAR_LINE}reading {path.name}: {done}"
        print(line, end="", file=sys.stderr, flush=True)

    try:
        yield progress
    finally:
        if shown:
            print(CLEAR_LINE, end="", file=sys.stderr, flush=True)
