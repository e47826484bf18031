"""A fleet's answers as one HTML page, without scripts: nothing is loaded, nothing runs."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup

from gctrace_analyzer import __version__
from gctrace_analyzer.present import fleet
from gctrace_analyzer.present.format import count
from gctrace_analyzer.present.html.parts import WORDS, environment

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.fleet import Answers


def dumps(answers: Answers, most: int = fleet.MOST_ROWS) -> str:
    """The answers as an HTML document."""
    first, *others = fleet.facts(answers)
    style = files(__package__).joinpath("report.css").read_text("utf-8")
    page = environment().get_template("fleet.html.j2")
    return page.render(
        title=first, facts=others, verdict=_verdict(answers), words=WORDS,
        state=fleet.state(answers), bars=_bars(answers, most),
        tables=fleet.tables(answers, most), notes=fleet.notes(answers), version=__version__,
        style=Markup(style),
    )  # fmt: skip


def _verdict(answers: Answers) -> tuple[str, str]:
    """How grave it is, and the first thing to know."""
    t = answers.totals
    if not t.processes:
        return "none", "no program's cycles were read"
    if t.thrashing:
        worst = answers.thrash.row(0, named=True)
        said = count(t.thrashing, "process thrashes", "processes thrash")
        return "bad", f"{said}, first of all {worst['file']}: {worst['headline'] or ''}"
    near = len(answers.thrash)
    if near or len(answers.limits):
        limits = count(len(answers.limits), "limit stands", "limits stand")
        return "warn", f"{near:,} have thrashed or are near it; {limits} too near the live heap"
    return "ok", "no process thrashes, or stands too near its limit"


def _bars(answers: Answers, most: int) -> list[tuple[str, str, str]]:
    """The services that burn most: name, width of 100, and the figure."""
    rows = answers.services.drop_nulls("gc_cores").head(most).to_dicts()
    top = max((row["gc_cores"] for row in rows), default=0.0)
    if top <= 0:
        return []
    return [
        (row["service"], f"{100 * row['gc_cores'] / top:.1f}", fleet.cores(row["gc_cores"]))
        for row in rows
    ]
