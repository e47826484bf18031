"""The summary of a fleet as one HTML page without scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer import __version__
from gctrace_analyzer.present import fleet
from gctrace_analyzer.present.format import count
from gctrace_analyzer.present.html.embed import style
from gctrace_analyzer.present.html.parts import environment
from gctrace_analyzer.present.sections.verdict import WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.analysis.fleet import Answers
    from gctrace_analyzer.present.sections.overview import Table


def dumps(answers: Answers, most: int = fleet.MOST_ROWS) -> str:
    """Returns the summary as an HTML document."""
    first, *others = fleet.facts(answers)
    return page(
        first,
        others,
        _verdict(answers),
        fleet.tables(answers, most),
        fleet.notes(answers),
        state=fleet.state(answers),
        bars=_bars(answers, most),
    )


def page(
    title: str,
    facts: Sequence[str],
    verdict: tuple[str, str],
    tables: Sequence[Table],
    notes: Sequence[str],
    *,
    state: Sequence[tuple[str, str, str]] = (),
    bars: Sequence[tuple[str, str, str]] = (),
) -> str:
    """Returns a page of ranked tables; `verdict` is a severity and a sentence."""
    return (
        environment()
        .get_template("fleet.html.j2")
        .render(
            title=title,
            facts=facts,
            verdict=verdict,
            words=WORDS,
            state=state,
            bars=bars,
            tables=tables,
            notes=notes,
            version=__version__,
            style=style(),
        )
    )


def _verdict(answers: Answers) -> tuple[str, str]:
    """Returns the severity and the most important statement."""
    t = answers.totals
    if not t.processes:
        return "none", "no GC cycles were found"
    if t.thrashing:
        worst = answers.thrash.row(0, named=True)
        number = count(t.thrashing, "process is thrashing", "processes are thrashing")
        return "bad", f"{number}; the worst is {worst['file']}: {worst['headline'] or ''}"
    near = len(answers.thrash)
    if near or len(answers.limits):
        limits = count(len(answers.limits), "memory limit is", "memory limits are")
        thrashed = count(near, "process has", "processes have") + " thrashed or come close"
        return "warn", f"{thrashed}; {limits} too close to the live heap"
    return "ok", "no process is thrashing or close to its memory limit"


def _bars(answers: Answers, most: int) -> list[tuple[str, str, str]]:
    """Returns the services that spend most on GC: name, width of the bar in %, and cores."""
    rows = answers.services.drop_nulls("gc_cores").head(most).to_dicts()
    top = max((row["gc_cores"] for row in rows), default=0.0)
    if top <= 0:
        return []
    return [
        (row["service"], f"{100 * row['gc_cores'] / top:.1f}", fleet.cores(row["gc_cores"]))
        for row in rows
    ]
