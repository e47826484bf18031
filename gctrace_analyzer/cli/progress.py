"""Progress and warnings while inputs are read, on standard error."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gctrace_analyzer.cli.screen import say, working
from gctrace_analyzer.errors import GctraceWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from gctrace_analyzer.ingest.sources import SourceFacts
    from gctrace_analyzer.run import Run

    OnProgress: TypeAlias = Callable[[SourceFacts], None]


@contextmanager
def reading() -> Iterator[OnProgress]:
    """Yields the `progress` argument for `read`; prints the warnings at the end."""
    with warnings.catch_warnings(record=True) as caught, working() as say_what:
        warnings.simplefilter("always", GctraceWarning)
        yield lambda facts: say_what(_how_far(facts))
    for warning in caught:
        say(f"gctrace-analyze: {warning.message}")


def say_damage(*runs: Run) -> None:
    """Prints which inputs could only be read in part, such as an archive that was cut short."""
    for run in runs:
        for source in run.sources:
            if source.damage:
                loss = f"{source.damage}; everything before it was used"
                say(f"gctrace-analyze: {source.name}: {loss}")


def _how_far(facts: SourceFacts) -> str:
    """Returns how much of an input is read, and that its tables are made once it all is."""
    path = Path(facts.name)
    size = path.stat().st_size if path.is_file() else 0
    if not size:
        return f"reading {path.name}: {facts.bytes >> 20} MiB"
    if facts.bytes >= size:
        return f"reading {path.name}: 100 %, putting its tables together"
    return f"reading {path.name}: {100 * facts.bytes / size:.0f} %"
