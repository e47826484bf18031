"""The report as one HTML file with charts, findings, advice and tables."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.present.html.embed import charts_of, embedded
from gctrace_analyzer.present.html.methodology import methodology
from gctrace_analyzer.present.html.parts import environment, spark
from gctrace_analyzer.present.plots.accessor import on
from gctrace_analyzer.present.plots.axis import axis_of
from gctrace_analyzer.present.sections import advice, evidence, findings, overview, verdict
from gctrace_analyzer.present.sections.deployment import manifests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.present.plots.axis import Axis
    from gctrace_analyzer.present.plots.figure import Figure
    from gctrace_analyzer.present.report import Report

BINS = 500
"""Points per series: more than most screens show, while a day's report stays below 6 MB."""

_MOST_EPISODES = 50
_TIMED = ("timeline",)
_OTHERS = ("trade_off", "pauses", "live_heap", "goal", "frequency", "assist", "mmu", "memory")


@dataclass(frozen=True, slots=True)
class LinkedProblem:
    """A finding with a link to its range of the time axis."""

    problem: findings.Problem
    href: str | None


def dumps(report: Report) -> str:
    """Returns the report as an HTML document."""
    axis = axis_of(report, bins=BINS)
    plots = {name: on(axis, report, name) for name in (*_TIMED, *_OTHERS)}
    charts = {
        name: list(charts_of(figure, timed=name in _TIMED)) for name, figure in plots.items()
    }
    drawn = [each for several in charts.values() for each in several]
    advises, ranked = report.advice.is_available, report.advice.recommendations
    first = ranked.row(0, named=True)
    settings = advice.advice(ranked) if advises else None
    problems = [LinkedProblem(each, _href(each, axis)) for each in findings.problems(report)]
    page = environment().get_template("report.html.j2")
    return page.render(
        report=report,
        verdict=verdict.shown(report),
        state=[(each, spark(report, each)) for each in overview.state(report)]
        if report.analysis.summary.cycles
        else [],
        problems=problems,
        minor=findings.minor(report),
        inputs=evidence.inputs(report),
        settings=evidence.settings(report),
        deaths=list(evidence.deaths(report)),
        charts=charts,
        notes=_notes(plots),
        legend=_legend(plots["timeline"]),
        advice=settings,
        signs=advice.legend(settings) if settings else "",
        reasons=advice.reasons(ranked, report.advice.baseline.warnings) if advises else [],
        refused=report.advice.baseline.refused,
        manifests=manifests(advice.setting_of(first)) if advises and not first["now"] else {},
        tables=list(_tables(report)),
        memory_notes=evidence.memory_notes(report),
        examples=overview.rejected_examples(report),
        notes_on_input=[*overview.damage(report), *report.analysis.summary.warnings],
        episodes=_episodes(report, axis),
        all_episodes=len(report.analysis.episodes),
        methodology=methodology(report),
        **embedded(drawn, _zero(axis)),
    )


def _zero(axis: Axis) -> datetime | None:
    """Returns the start of the time axis, if the log has timestamps."""
    zero = axis.at(axis.processes[0], 0.0) if axis.is_time and axis.processes else None
    return zero if isinstance(zero, datetime) else None


def _notes(plots: dict[str, Figure]) -> dict[str, tuple[str, ...]]:
    return {name: figure.notes for name, figure in plots.items()}


def _legend(figure: Figure) -> list[tuple[str, str]]:
    """Returns the kinds of episodes that are drawn, with their severity."""
    return list(dict.fromkeys((band.name, band.severity) for band in figure.bands))


def _href(each: findings.Problem, axis: Axis) -> str | None:
    return _span(axis, each.process, each.start_s or 0.0, each.end_s)


def _span(axis: Axis, process: int | None, start_s: float, end_s: float | None) -> str | None:
    """Returns a link to a time range of the charts; None if it is not on the time axis."""
    if end_s is None or not axis.processes:
        return None
    begin, end = axis.at(process, start_s), axis.at(process, end_s)
    zero = axis.at(axis.processes[0], 0.0)
    if begin is None or end is None or zero is None:
        return None
    low, high = (
        (each - zero).total_seconds() if axis.is_time else each for each in (begin, end)
    )
    room = 0.02 * (high - low)
    return f"#t={max(low - room, 0):.3f}-{high + room:.3f}"


def _episodes(report: Report, axis: Axis) -> list[dict[str, Any]]:
    return [
        {**row, "href": _span(axis, row["process"], row["start_s"], row["end_s"])}
        for row in report.analysis.episodes.head(_MOST_EPISODES).iter_rows(named=True)
    ]


def _tables(report: Report) -> Iterator[overview.Table]:
    for table in (
        *overview.about_cycles(report),
        evidence.memory(report),
        evidence.units(report),
        overview.rejected(report),
    ):
        if table is not None and table.rows:
            yield table
