"""A comparison as one HTML file: verdict, figures, and charts of all runs."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.sides import Pair, Side, all_differences, sides_of
from gctrace_analyzer.present.document import Sentence
from gctrace_analyzer.present.html import interval_chart
from gctrace_analyzer.present.html.chart import charts_of
from gctrace_analyzer.present.html.embed import embedded
from gctrace_analyzer.present.html.parts import rendered
from gctrace_analyzer.present.plots.kinds.overlay import overlay
from gctrace_analyzer.present.report import Report
from gctrace_analyzer.present.sections import benchmarks, changes
from gctrace_analyzer.present.sections import comparison as rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.present.plots.figure import Figure
    from gctrace_analyzer.present.plots.palette import Theme

BINS = 500
_MOST_RUNS = 3
"""Runs of each side that are drawn; more would hide each other."""


def dumps(pairs: Sequence[Pair], theme: Theme = "auto") -> str:
    """Returns a comparison as an HTML document that opens with the colours of `theme`."""
    sides = sides_of(pairs)
    several = [rows.costs(pair) for pair in pairs]
    is_better = any(costs["better"] for costs in several)
    is_worse = len(pairs) == 1 and any(costs["worse"] for costs in several) and not is_better
    is_fair = all(pair.comparable for pair in pairs)
    new = rows.problems(pairs)
    level = "warn" if is_worse or not is_fair else "ok" if is_better else "none"
    return _page(
        sides,
        theme,
        **_shown(pairs),
        problems=new,
        heading=rows.verdict(pairs),
        level="bad" if new else level,
        plots=interval_chart.of_pairs(pairs),
        more=list(rows.further_tables(pairs[0])) if len(pairs) == 1 else [],
        notes_on_input=list(rows.further_notes(pairs)),
    )


def _shown(pairs: Sequence[Pair]) -> dict[str, object]:
    """Returns the title of the comparison, and its tables."""
    if len(pairs) == 1:
        (pair,) = pairs
        whole = changes.figures(pair)
        methods = [benchmarks.method(pair)] if pair.benchmarks else []
        methods += [rows.method(pairs)] if whole.rows else []
        return {
            "title": f"{pair.before.label} → {pair.after.label}",
            "statements": list(rows.circumstances(pair)),
            "tables": [table for table in (*benchmarks.tables(pair), whole) if table.rows],
            "method": " ".join(methods),
        }
    broken = [one for one in all_differences(pairs) if one.kind == "incomparable"]
    return {
        "title": ", ".join(side.label for side in sides_of(pairs)),
        "statements": [Sentence("Note", difference.sentence) for difference in broken],
        "tables": changes.settings(pairs),
        "method": rows.method(pairs),
    }


def _page(sides: Sequence[Side], theme: Theme, **values: object) -> str:
    figure = _on_one_axis(_figure(sides))
    charts = list(charts_of(figure, {}, linked=figure.x_range is not None))
    return rendered(
        "comparison.html.j2",
        sources=[rows.source(side, label=True) for side in sides],
        charts=charts,
        notes=figure.notes,
        **values,
        **embedded(charts, theme=theme),
    )


def _figure(sides: Sequence[Side]) -> Figure:
    """Returns a figure of all runs; those of one side have one colour."""
    runs: dict[str, Report] = {}
    of: dict[str, str] = {}
    for side in sides:
        several = len(side.analyses)
        both = zip(side.analyses, side.advices, strict=True)
        for number, (analysis, advice) in enumerate(islice(both, _MOST_RUNS), start=1):
            name = f"{side.label} ({number} of {several})" if several > 1 else side.label
            runs[name], of[name] = Report(analysis, advice), side.label
    return overlay(runs, BINS, of)


def _on_one_axis(figure: Figure) -> Figure:
    """Returns the figure with one range for its time charts, so that they zoom together."""
    ranges = [panel.time_range for panel in figure.panels if panel.is_timed and panel.drawn]
    if not ranges:
        return figure
    begins, ends = zip(*ranges, strict=True)
    return replace(figure, x_range=(min(begins), max(ends)))
