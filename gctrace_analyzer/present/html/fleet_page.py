"""The summary of a fleet as one HTML page whose tables can be sorted and filtered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present import fleet_tables
from gctrace_analyzer.present.fleet_sizes import cores
from gctrace_analyzer.present.format import count, live_heap, milliseconds, share
from gctrace_analyzer.present.html.embed import embedded
from gctrace_analyzer.present.html.parts import rendered
from gctrace_analyzer.present.sections import fleet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gctrace_analyzer.analysis.fleet.answers import Answers
    from gctrace_analyzer.present.plots.palette import Theme

    Links: TypeAlias = Mapping[tuple[str, int], str]
    """The address of the report of a process, by file and number of the process."""

MOST_ON_PAGE = 1_000
"""Rows of each table on the page; its filter searches all of them."""

_MOST_BARS = 10


@frozen
class Bar:
    """A service as a bar: its width in per cent, and the text next to it."""

    name: str
    width: str
    cores: str
    share: str
    hover: str
    href: str


def dumps(
    answers: Answers,
    most: int = fleet.MOST_ROWS,
    links: Links | None = None,
    *,
    theme: Theme = "auto",
) -> str:
    """Returns the summary as an HTML document.

    Args:
        answers: the answers to show.
        most: the number of rows of a table shown at first.
        links: the reports that rows link to.
        theme: the colours that the page opens with.
    """
    title, *facts = fleet.facts(answers)
    linked = _Linked(answers, links or {})
    rankings = fleet_tables.rankings(answers, MOST_ON_PAGE)
    changes = [ranking for ranking in rankings if ranking.says_first == "change"]
    tables = [ranking for ranking in rankings if ranking not in changes]
    processes = fleet_tables.processes(answers, MOST_ON_PAGE)
    tables.insert(0 if answers.problems.is_empty() else 1, processes)
    return rendered(
        "fleet.html.j2",
        title=title,
        facts=facts,
        verdict=fleet.verdict(answers),
        state=fleet.state(answers),
        bars=list(_bars(answers, linked)),
        since="" if answers.changes is None else fleet.since(answers.changes),
        changes=changes,
        tables=[ranking for ranking in tables if ranking.rows],
        processes=processes.title,
        first=most,
        notes=fleet.notes(answers),
        linked=linked,
        **embedded([], theme=theme),
    )


class _Linked:
    """Finds the report for a row: of its process, or of its service's only process."""

    def __init__(self, answers: Answers, links: Links) -> None:
        self.links = links
        several = answers.processes.group_by("service").agg("file", "process")
        self._alone = {
            row["service"]: (row["file"][0], row["process"][0])
            for row in several.to_dicts()
            if len(row["file"]) == 1
        }

    def of(self, row: Mapping[str, Any]) -> str:
        """Returns the address of the report; empty if there is none."""
        key = (row["file"], row["process"]) if "process" in row else None
        return self.links.get(key or self._alone.get(row.get("service", ""), ("", 0)), "")


def _bars(answers: Answers, linked: _Linked) -> Iterator[Bar]:
    """Yields the services that spend most on GC, if there are several."""
    rows = answers.services.drop_nulls("gc_cores").head(_MOST_BARS).to_dicts()
    top = max((row["gc_cores"] for row in rows), default=0.0)
    for row in rows if top > 0 and len(answers.services) > 1 else ():
        yield Bar(
            row["service"],
            f"{100 * row['gc_cores'] / top:.1f}",
            cores(row["gc_cores"]),
            share(row["gc_cpu_share"]),
            ", ".join(_said(row)),
            linked.of(row),
        )


def _said(row: Mapping[str, Any]) -> Iterator[str]:
    """Yields the text shown when a pointer is on a bar."""
    yield f"{row['service']}: {cores(row['gc_cores'])} cores spent on GC"
    yield f"{share(row['gc_cpu_share'])} of its CPU"
    yield f"live heap {live_heap(row['live_heap_p50_mib'])}"
    yield f"99 % of pauses at most {milliseconds(row['stw_p99_ms'])}"
    if row["files"]:
        yield count(row["files"], "file")
