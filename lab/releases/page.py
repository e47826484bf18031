"""Writes docs/go-versions.md from the recorded figures."""

from __future__ import annotations

import csv
import re
import statistics
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from gctrace_analyzer.present.format import milliseconds, share
from lab.releases.changes import RELEASES, Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LIVE_MIB, RATE_MIB_PER_S, GOROUTINES, PROCS = 40, 400, 100, 2
"""The load: live heap, allocation rate, idle goroutines, and GOMAXPROCS."""

KEPT_UP = 0.95
"""A run that allocated less than this share of the load was disturbed by other work."""

MOST_DISTURBED = 0.1
"""With a larger share of disturbed runs, versions are not compared."""


class Figure(NamedTuple):
    """A column of runs.csv, and how it is written."""

    column: str
    name: str
    shown: Callable[[float], str]


def _per_s(value: float) -> str:
    return f"{value:.1f}/s"


FIGURES = (
    Figure("stw_p50_ms", "pause, median", milliseconds),
    Figure("stw_p99_ms", "pause, p99", milliseconds),
    Figure("stw_max_ms", "pause, longest", milliseconds),
    Figure("gc_per_s", "cycles", _per_s),
    Figure("gc_cpu_share", "GC CPU", share),
    Figure("assist_share_of_cpu", "mark assist", share),
)


class Spread(NamedTuple):
    """The median of a figure over the runs of a version, and its lowest and highest value."""

    median: float
    low: float
    high: float


class Recording(NamedTuple):
    """The rows of runs.csv, and each figure by version."""

    rows: list[dict[str, str]]
    figures: dict[str, dict[str, Spread]]

    @property
    def disturbed(self) -> int:
        """How many runs did not keep up with the load."""
        return sum(float(row["load_share"]) < KEPT_UP for row in self.rows)

    @property
    def is_comparable(self) -> bool:
        """Whether so few runs were disturbed that versions can be compared."""
        return self.disturbed <= MOST_DISTURBED * len(self.rows)


def read(path: Path) -> Recording:
    """Returns the recorded figures of each version by column."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    figures: dict[str, dict[str, Spread]] = {}
    for release in RELEASES:
        own = [row for row in rows if row["go_version"] == release.version]
        values = {each.column: [float(row[each.column]) for row in own] for each in FIGURES}
        figures[release.version] = {
            name: Spread(statistics.median(several), min(several), max(several))
            for name, several in values.items()
        }
    return Recording(rows, figures)


def page(path: Path) -> str:
    """Returns the page, in Markdown."""
    found = read(path)
    return "\n".join([*_introduction(found), "", *_table(found), "", *_releases(found)]) + "\n"


def _introduction(found: Recording) -> Iterator[str]:
    first, last = RELEASES[0], RELEASES[-1]
    runs = max(int(row["run"]) for row in found.rows)
    seconds, machine = found.rows[0]["seconds"], found.rows[0]["machine"]
    yield f"# The same load on Go {first.minor} to {last.minor}"
    yield ""
    yield (
        f"One program, built with {len(RELEASES)} releases of Go, under the same load: a live heap "
        f"of {LIVE_MIB} MiB, {RATE_MIB_PER_S} MiB allocated per second, {GOROUTINES} waiting "
        f"goroutines, GOMAXPROCS={PROCS} and GOGC=100. This page shows how each release changed "
        "the pauses, the frequency and the cost of GC."
    )
    yield ""
    yield from _disturbed(found)
    yield ""
    yield "![Pauses by Go version](go-versions/pauses.svg)"
    yield ""
    yield "![GC cycles, GC CPU and mark assist by Go version](go-versions/cost.svg)"
    yield ""
    yield (
        f"Points are medians of {runs} runs of {seconds} seconds, and lines reach from the lowest "
        "run to the highest. The versions were run in turn. Recorded on "
        f"{' and '.join(sorted({row['recorded_on'] for row in found.rows}))} on a shared virtual "
        f"machine ({machine}), which can itself cause a long pause. `lab/record releases` repeats "
        "the recording, which takes ten minutes on an idle machine."
    )


def _disturbed(found: Recording) -> Iterator[str]:
    """Says what changed over all releases, or why that cannot be said."""
    least = min(float(row["load_share"]) for row in found.rows)
    if found.is_comparable:
        yield _overall(found)
        yield ""
        yield f"Every run allocated at least {_percent(least)} of the load."
        return
    yield (
        f"**This recording compares nothing yet**: the machine was busy with other work, and "
        f"{found.disturbed} of {len(found.rows)} runs allocated less than {_percent(KEPT_UP)} of "
        f"the load, the worst {_percent(least)}. It shows how pauses and mark assists look on an "
        "overloaded machine; what differs between versions may be the machine."
    )


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def _overall(found: Recording) -> str:
    """Compares the first release with the last, in the figures whose runs do not overlap."""
    first, last = RELEASES[0], RELEASES[-1]
    changed = list(_changes(found, first, last))
    if not changed:
        return (
            f"Go {last.minor} does not differ from Go {first.minor} by more than its runs do."
        )
    return (
        f"From Go {first.minor} to Go {last.minor}, this changed by more than the runs of one "
        f"version differ: {'; '.join(changed)}."
    )


def _changes(found: Recording, before: Release, after: Release) -> Iterator[str]:
    """Yields the figures that changed by more than the runs of a version differ."""
    for figure in FIGURES:
        old = found.figures[before.version][figure.column]
        new = found.figures[after.version][figure.column]
        if new.low > old.high or new.high < old.low:
            yield f"{figure.name} {figure.shown(old.median)} → {figure.shown(new.median)}"


_UNIT = re.compile(r"(?<=\d)(?=[ /])")


def _table(found: Recording) -> Iterator[str]:
    yield "## The figures"
    yield ""
    yield f"| Go | {' | '.join(each.name for each in FIGURES)} |"
    yield f"|---|{'---:|' * len(FIGURES)}"
    for release in RELEASES:
        cells = (_cell(found, release, figure) for figure in FIGURES)
        yield f"| {release.version} | {' | '.join(cells)} |"
    yield ""
    yield (
        "Medians of the runs, with the lowest and the highest in brackets. GC CPU and mark assist "
        "are shares of all CPUs. [runs.csv](go-versions/runs.csv) lists every run."
    )


def _cell(found: Recording, release: Release, figure: Figure) -> str:
    median, low, high = found.figures[release.version][figure.column]
    return f"{figure.shown(median)} ({_range(figure.shown(low), figure.shown(high))})"


def _range(low: str, high: str) -> str:
    """Returns a range, with its unit once if both ends have the same.

    >>> _range("0.15 ms", "0.34 ms"), _range("0.9 ms", "1.2 s")
    ('0.15–0.34 ms', '0.9 ms–1.2 s')
    """
    (number, unit), (_, other) = (_UNIT.split(each, maxsplit=1) for each in (low, high))
    return f"{number}–{high}" if unit == other else f"{low}–{high}"


_HERE = (
    " “Here” lists the figures that differ from the previous release by more than the runs of "
    "either release do. The change may be the cause, but this does not prove it."
)


def _releases(found: Recording) -> Iterator[str]:
    yield "## What each release changed"
    yield ""
    yield (
        "Changes are taken from the release notes and, where it is named, from the runtime's "
        "source." + (_HERE if found.is_comparable else "")
    )
    for before, release in pairwise(RELEASES):
        changed = list(_changes(found, before, release)) if found.is_comparable else []
        if not (release.changed or changed):
            continue
        notes = f"https://go.dev/doc/go{release.minor}"
        source = f"; {release.source}" if release.source else ""
        yield ""
        yield f"### Go {release.minor}"
        yield ""
        yield release.changed or "The release notes mention no change to the collector."
        yield f"([release notes]({notes}){source})"
        if found.is_comparable:
            yield ""
            yield f"Here: {'; '.join(changed) or 'no difference beyond the spread of the runs'}."
