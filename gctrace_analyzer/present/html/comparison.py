"""A comparison as one HTML file: verdict, figures, and charts of all runs."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from gctrace_analyzer.present.document import Sentence
from gctrace_analyzer.present.html import intervals
from gctrace_analyzer.present.html.chart import charts_of
from gctrace_analyzer.present.html.embed import embedded
from gctrace_analyzer.present.html.parts import environment
from gctrace_analyzer.present.plots.distributions import compared as overlaid
from gctrace_analyzer.present.report import Report
from gctrace_analyzer.present.sections import changes
from gctrace_analyzer.present.sections import comparison as rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gctrace_analyzer.advise.comparison import SeveralSides, Side, TwoSides
    from gctrace_analyzer.present.plots.figure import Figure
    from gctrace_analyzer.present.plots.palette import Theme

BINS = 500
_MOST_RUNS = 3
"""How many runs of each side are drawn; more would hide each other."""


def dumps(found: TwoSides, theme: Theme = "auto") -> str:
    """Returns two sides as an HTML document that opens with the colours of `theme`."""
    sides = (found.before, found.after)
    verdicts = set(found.frame["verdict"])
    return _page(
        sides,
        theme,
        title=_arrow(found),
        heading=rows.verdict(found),
        level="warn"
        if not found.comparable or "worse" in verdicts
        else "ok"
        if "better" in verdicts
        else "none",
        statements=_statements(found),
        plots=[each] if (each := intervals.of_changes(found.frame)) else [],
        tables=[changes.figures(found.frame)],
        method=rows.METHOD,
        more=list(rows.further_tables(found)),
        notes_on_input=list(rows.further_notes(found)),
    )


def dumps_sweep(found: SeveralSides, theme: Theme = "auto") -> str:
    """Returns several settings as an HTML document that opens with the colours of `theme`."""
    broken = [each.sentence for each in found.differences if each.kind == "incomparable"]
    others = [each.sentence for each in found.differences if each.kind != "incomparable"]
    return _page(
        found.sides,
        theme,
        title=_list(found),
        heading=rows.best(found.frame) or "One row per setting",
        level="warn" if broken else "none",
        statements=[Sentence("Note", sentence) for sentence in broken],
        plots=list(intervals.of_settings(found.frame)),
        tables=changes.settings(found.frame),
        method=rows.SWEEP_METHOD,
        more=[],
        notes_on_input=[*others, *rows.notes(found.sides)],
    )


def cell(found: TwoSides) -> str:
    """Returns two sides as an HTML fragment without scripts, for a notebook."""
    return _cell(
        title=_arrow(found),
        statements=_statements(found),
        tables=[changes.figures(found.frame)],
        method=rows.METHOD,
    )


def cell_of_sweep(found: SeveralSides) -> str:
    """Returns several settings as an HTML fragment for a notebook."""
    statements = [Sentence("Note", each.sentence) for each in found.differences]
    return _cell(
        title=_list(found),
        statements=statements,
        tables=changes.settings(found.frame),
        method=rows.SWEEP_METHOD,
    )


def _cell(**values: object) -> str:
    return environment().get_template("comparison_cell.html.j2").render(**values)


def _arrow(found: TwoSides) -> str:
    return f"{found.before.label} → {found.after.label}"


def _list(found: SeveralSides) -> str:
    return ", ".join(side.label for side in found.sides)


def _statements(found: TwoSides) -> list[Sentence]:
    return [*rows.circumstances(found), *rows.conclusion(found.frame)]


def _page(sides: Sequence[Side], theme: Theme, **values: object) -> str:
    figure = _on_one_axis(_figure(sides))
    charts = list(charts_of(figure, {}, linked=figure.x_range is not None))
    page = environment().get_template("comparison.html.j2")
    return page.render(
        sources=[rows.source(side, label=True) for side in sides],
        charts=charts,
        notes=[*figure.notes, *_left_out(sides)],
        **values,
        **embedded(charts, theme=theme),
    )


def _figure(sides: Sequence[Side]) -> Figure:
    """Returns a figure of all runs; those of one side have one colour."""
    runs: dict[str, Report] = {}
    of: dict[str, str] = {}
    for side in sides:
        several = len(side.analyses) > 1
        both = zip(side.analyses, side.advices, strict=True)
        for number, (analysis, advice) in enumerate(islice(both, _MOST_RUNS), start=1):
            name = f"{side.label}, run {number}" if several else side.label
            runs[name], of[name] = Report(analysis, advice), side.label
    return overlaid(runs, BINS, of)


def _on_one_axis(figure: Figure) -> Figure:
    """Returns the figure with one range for its time charts, so that they zoom together."""
    ranges = [each.time_range for each in figure.panels if each.is_timed and each.drawn]
    if not ranges:
        return figure
    begins, ends = zip(*ranges, strict=True)
    return replace(figure, x_range=(min(begins), max(ends)))


def _left_out(sides: Sequence[Side]) -> Iterator[str]:
    if any(len(side.analyses) > _MOST_RUNS for side in sides):
        yield f"Only the first {_MOST_RUNS} runs of each side are drawn; the figures include all."
