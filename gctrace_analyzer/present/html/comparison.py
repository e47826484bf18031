"""A comparison as one HTML file: the verdict, the figures, the runs laid over each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.present import comparison
from gctrace_analyzer.present.html.embed import charts_of, embedded
from gctrace_analyzer.present.html.parts import environment
from gctrace_analyzer.present.plots.distributions import compared as overlaid
from gctrace_analyzer.present.report import Report
from gctrace_analyzer.present.sections import comparison as rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gctrace_analyzer.advise.comparison import SeveralSides, Side, TwoSides
    from gctrace_analyzer.present.plots.figure import Figure
    from gctrace_analyzer.present.sections.overview import Table

BINS = 500
_MOST_RUNS = 3
"""Runs of a side that are drawn: more hide each other."""


def dumps(found: TwoSides) -> str:
    """Two sides as an HTML document."""
    sides = (found.before, found.after)
    verdicts = set(found.frame["verdict"])
    return _page(
        sides,
        title=_arrow(found),
        heading="Before and after",
        level="warn" if not found.comparable or "worse" in verdicts
        else "ok" if "better" in verdicts
        else "none",
        said=[*_circumstances(found), *rows.conclusion(found.frame)],
        tables=[rows.figures(found.frame)], method=rows.METHOD,
        more=list(_more(found)), mind=list(comparison.minded(found)),
    )  # fmt: skip


def dumps_sweep(found: SeveralSides) -> str:
    """Several settings as an HTML document."""
    broken = [each.sentence for each in found.differences if each.kind == "incomparable"]
    minded = [each.sentence for each in found.differences if each.kind != "incomparable"]
    return _page(
        found.sides, title=_list(found), heading="One row per setting", level="warn",
        said=[("Mind", sentence) for sentence in broken],
        tables=rows.settings(found.frame), method=rows.SWEEP_METHOD, more=[],
        mind=[*minded, *comparison.notes(found.sides)],
    )  # fmt: skip


def cell(found: TwoSides) -> str:
    """Two sides as a notebook shows them: a piece of HTML without scripts."""
    return _cell(
        title=_arrow(found),
        said=[*_circumstances(found), *rows.conclusion(found.frame)],
        tables=[rows.figures(found.frame)], method=rows.METHOD,
    )  # fmt: skip


def cell_of_sweep(found: SeveralSides) -> str:
    """Several settings as a notebook shows them."""
    said = [("Mind", each.sentence) for each in found.differences]
    return _cell(
        title=_list(found), said=said, tables=rows.settings(found.frame),
        method=rows.SWEEP_METHOD,
    )  # fmt: skip


def _cell(**values: object) -> str:
    return environment().get_template("comparison_cell.html.j2").render(**values)


def _arrow(found: TwoSides) -> str:
    return f"{found.before.label} → {found.after.label}"


def _list(found: SeveralSides) -> str:
    return ", ".join(side.label for side in found.sides)


def _circumstances(found: TwoSides) -> list[tuple[str, str]]:
    return [(word, sentence) for word, sentence, _ in comparison.circumstances(found)]


def _more(found: TwoSides) -> Iterator[tuple[Table, str]]:
    if (load := rows.of_load(found.frame)) is not None:
        yield load, rows.LOAD_NOTE
    if (table := rows.expectation(found.frame)) is not None:
        yield table, rows.EXPECTED_NOTE


def _page(sides: Sequence[Side], **values: object) -> str:
    figure = _figure(sides)
    charts = list(charts_of(figure))
    page = environment().get_template("comparison.html.j2")
    return page.render(
        sources=[comparison.source(side, label=True) for side in sides], charts=charts,
        notes=[*figure.notes, *_left_out(sides)], **values, **embedded(charts),
    )  # fmt: skip


def _figure(sides: Sequence[Side]) -> Figure:
    """Each side's runs in turn, so that a side's first run has the side's colour."""
    runs: dict[str, Report] = {}
    for number in range(_MOST_RUNS):
        for side in sides:
            if number < len(side.analyses):
                several = f", run {number + 1}" if len(side.analyses) > 1 else ""
                runs[f"{side.label}{several}"] = Report(
                    side.analyses[number], side.advices[number]
                )
    return overlaid(runs, BINS)


def _left_out(sides: Sequence[Side]) -> Iterator[str]:
    if any(len(side.analyses) > _MOST_RUNS for side in sides):
        yield f"Of each side the first {_MOST_RUNS} runs are drawn; the figures are of all."
