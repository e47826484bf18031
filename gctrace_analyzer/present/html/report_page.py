"""The report as one HTML file with charts, findings, advice and tables."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.advise.phrases import to_set
from gctrace_analyzer.present.document import KeyFigure, Paragraphs, Table
from gctrace_analyzer.present.format import printable
from gctrace_analyzer.present.html import cycle_table, ranges
from gctrace_analyzer.present.html.captions import statements
from gctrace_analyzer.present.html.chart import Chart, charts_of
from gctrace_analyzer.present.html.embed import embedded, without_script
from gctrace_analyzer.present.html.icicle import icicles
from gctrace_analyzer.present.html.methodology import methodology
from gctrace_analyzer.present.html.parts import made, rendered
from gctrace_analyzer.present.plots.accessor import on
from gctrace_analyzer.present.plots.axis import Axis, axis_of
from gctrace_analyzer.present.sections import (
    advice,
    evidence,
    findings,
    headline,
    overview,
    sites,
)
from gctrace_analyzer.present.sections.advice import manifests
from gctrace_analyzer.present.sections.evidence import figures_of_deaths
from gctrace_analyzer.present.sections.memory_parts import memory_parts
from gctrace_analyzer.present.sections.since_start import figures as figures_since_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gctrace_analyzer.present.plots.figure import Figure
    from gctrace_analyzer.present.plots.palette import Theme
    from gctrace_analyzer.present.report import Report

BINS = 1200
"""Points per series: enough to zoom in without losing a spike."""

_LIGHT_BINS = 400
_LIGHT_ROWS = 1_000

_GROUPS = {
    "timeline": ("timeline-",),
    "more": ("frequency-interval", "goal-gogc", "memory-memory"),
    "spread": ("pauses-spread", "frequency-distribution", "assist-against", "mmu-mmu"),
    "trade_off": ("trade_off-",),
}
"""The charts of the page and their places; each quantity has one chart."""

_MOST_SWITCHED = 11
"""Most further processes on a page with a switch."""

_MOST_SITES = 20
"""Rows of the tables of profiles."""

_FEWEST_INTERVALS = 2

_IN_POST_MORTEM = ("GC039",)

_TABS = {
    "pauses-spread": "Pauses",
    "frequency-distribution": "Time between cycles",
    "assist-against": "Assists by allocation",
    "mmu-mmu": "CPU left to the program",
}


def dumps(
    report: Report,
    *,
    light: bool = False,
    title: str = "",
    command: str | None = None,
    other_process: str | None = None,
    made_at: datetime | None = None,
    theme: Theme = "auto",
    on_drawing: Callable[[], object] | None = None,
) -> str:
    """Returns the report as an HTML document.

    Args:
        report: the report to show.
        light: a small page without scripts, for tickets and mail: its charts do not zoom, and
            its table has only the cycles with the longest pauses.
        title: the subject of the page; by default the name in the log.
        command: the command that made the page.
        other_process: a sentence on how to draw another process, if the log has several.
        made_at: when the page was made.
        theme: the colours that the page opens with; `auto` are those of the reader's system.
        on_drawing: called when everything is analysed, before anything is drawn.
    """
    # The core finds the worst windows, the slowest step, while the rest is made.
    with ThreadPoolExecutor(1) as pool:
        worst = pool.submit(_worst_windows(report))
        headline.verdict(report)
        if on_drawing:
            on_drawing()
        axis = axis_of(report, bins=_LIGHT_BINS if light else BINS)
        plots = _plots(axis, report, worst)
    charts = _charts(plots, report, axis.processes)
    records = cycle_table.records(report, axis, _LIGHT_ROWS if light else cycle_table.MOST_ROWS)
    zero = axis.zero if isinstance(axis.zero, datetime) else None
    axes = [axis, *([] if light else _other_axes(report, axis))]
    notes = _notes(plots, other_process if axis.leaves_out >= len(axes) else None)
    if len(axes) > 1:
        _add_charts(report, axes, charts)
        notes["timeline"] = [note for note in notes["timeline"] if note != axis.notes[-1]]
    problems = [
        (problem, ranges.span(axis, problem.process, problem.start_s, problem.end_s))
        for problem in findings.problems(report)
    ]
    shown = {
        "name": printable(title) if title else report.name,
        "report": report,
        "verdict": headline.verdict(report),
        # The finding on which the verdict rests.
        "evidence": [
            (problem, span)
            for problem, span in problems
            if report.verdict and problem.id == report.verdict.finding
        ][:1],
        "state": _state(report),
        "of_all": overview.of_all(report),
        # The post-mortem above says all that this finding says.
        "problems": [
            (problem, span) for problem, span in problems if problem.id not in _IN_POST_MORTEM
        ],
        "minor": findings.minor(report),
        "minor_title": findings.minor_title(report),
        "lists": [
            (title, table)
            for title, table in (ranges.episodes(report, axis), ranges.phases(report, axis))
            if table.rows
        ],
        "inputs": evidence.inputs(report),
        "settings": evidence.settings(report),
        "deaths": list(_deaths(report)),
        **_sites(report),
        "charts": charts,
        "tabs": _TABS,
        "has_timed": any(chart.timed for chart in charts["timeline"]),
        "notes": notes,
        "marks": {
            (event.name, event.kind, event.severity): 0 for event in plots["timeline"].events
        },
        **_advice(report),
        "tables": list(_tables(report)),
        "memory_notes": evidence.memory_notes(report),
        "records": records,
        "held": len(records.length),
        "first": list(cycle_table.first_page(records, zero)),
        "examples": evidence.rejected_examples(report),
        "notes_on_input": [*evidence.damage(report), *report.analysis.summary.warnings],
        "methodology": list(methodology(report)),
        "command": None if command is None else printable(command),
        "made": made(made_at),
    }
    shown["contents"] = list(_contents(shown))
    if light:
        shown |= without_script(theme)
    else:
        drawn = [chart for several in charts.values() for chart in several]
        processes = [_process(report, drawn_axis) for drawn_axis in axes]
        shown |= embedded(drawn, processes, records=records.values(), theme=theme)
        shown["processes"] = processes
    return rendered("report.html.j2", **shown)


def _other_axes(report: Report, axis: Axis) -> list[Axis]:
    """Returns the axes of processes that run side by side with the first drawn process."""
    rows = report.analysis.tables["processes"].sort(
        "cycles", "process", descending=[True, False]
    )
    others = [number for number in rows["process"] if number not in axis.processes]
    axes = (
        axis_of(report, bins=_LIGHT_BINS, process=number)
        for number in others[: _MOST_SWITCHED * bool(axis.leaves_out)]
    )
    return [other for other in axes if other.ends is not None]


def _add_charts(report: Report, axes: list[Axis], charts: dict[str, list[Chart]]) -> None:
    """Adds the charts over time of each further process, between which the reader switches."""
    said = statements(report, axes[0].processes)
    (first,) = axes[0].processes
    for group in ("timeline", "more"):
        # Dumps have their own chart, for the process with the most dumps.
        own = [chart for chart in charts[group] if not chart.id.startswith("memory-")]
        names = dict.fromkeys(chart.id.partition("-")[0] for chart in own)
        rest = [chart for chart in charts[group] if chart not in own]
        charts[group] = [replace(chart, process=first) for chart in own]
        for axis in axes[1:]:
            ends = on(axis, report, "timeline").x_range
            charts[group] += [
                replace(chart, id=f"{chart.id}-{number}", process=number, is_away=True)
                for number in axis.processes
                for name in names
                for chart in charts_of(
                    replace(on(axis, report, name), x_range=ends), said, linked=True
                )
                if chart.id.startswith(_GROUPS[group])
            ]
        charts[group] += rest


def _process(report: Report, axis: Axis) -> dict[str, object]:
    """Returns the script's values for one process, or for all if they follow each other."""
    zero = axis.zero if isinstance(axis.zero, datetime) else None
    number = axis.processes[0] if axis.processes else None
    return {
        "number": number,
        "name": "" if number is None else overview.named(report, number),
        "zero": None if zero is None else zero.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "figures": cycle_table.figures(report, axis),
    }


def _plots(axis: Axis, report: Report, worst: Future[object]) -> dict[str, Figure]:
    """Returns the plots with a chart on the page; plots over time share one axis."""
    names = ("timeline", "trade_off", "pauses", "frequency", "assist", "goal", "mmu", "memory")
    plots = {name: on(axis, report, name) for name in names if name != "mmu"}
    worst.result()
    plots = {name: plots.get(name) or on(axis, report, name) for name in names}
    shared = plots["timeline"]
    for name, figure in plots.items():
        own = figure.x_range
        # Dumps in a log without timestamps have their own clock.
        if shared.x_range and (own is None or type(own[0]) is type(shared.x_range[0])):
            plots[name] = replace(figure, x_range=shared.x_range, events=shared.events)
    return plots


def _charts(
    plots: dict[str, Figure], report: Report, processes: tuple[int, ...]
) -> dict[str, list[Chart]]:
    """Returns the charts of each group; `processes` are those that are drawn."""
    said = statements(report, processes)
    shared = plots["timeline"].x_range
    drawn = [
        chart
        for figure in plots.values()
        for chart in charts_of(figure, said, linked=shared is None or figure.x_range == shared)
    ]
    if report.analysis.by_dumps and len(report.analysis.dumps.between) < _FEWEST_INTERVALS:
        # Lines over a single interval are flat, and repeat the key figures.
        drawn = [chart for chart in drawn if not chart.timed or chart.id.startswith("memory-")]
    groups = {
        group: [chart for name in names for chart in drawn if chart.id.startswith(name)]
        for group, names in _GROUPS.items()
    }
    if not groups["timeline"]:
        # With a few dumps without GC figures, their memory is all there is.
        groups["timeline"], groups["more"] = groups["more"], []
    return groups


def _deaths(report: Report) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yields each death with the sentences that the verdict at the top omits."""
    shown = headline.verdict(report)
    above = f"{shown.sentence} {shown.action}"
    for title, story in evidence.deaths(report):
        label, last, left = "", "", []
        for own, text in story:
            label = own or label
            if text not in above:
                left.append(("" if label == last else label, text))
                last = label
        yield title, left


def _advice(report: Report) -> dict[str, object]:
    if not report.advice.is_available:
        refused = advice.refusal(report) if report.analysis.summary.cycles else None
        return {"advice": None, "refused": refused}
    ranked = advice.after_death(report.advice.recommendations, report)
    settings = advice.advice(ranked, report.advice.baseline, "Setting")
    first = ranked.row(0, named=True)
    said = "" if report.verdict is None else report.verdict.action
    is_set = first["rank"] == 1 and not first["now"]
    return {
        "advice": settings,
        "refused": None,
        "signs": advice.legend(settings, report, wide=True),
        "reasons": advice.reasons(ranked, report.advice.baseline, said),
        "manifests": manifests(to_set(first, report.advice.baseline)) if is_set else {},
    }


def _sites(report: Report) -> dict[str, list[Any]]:
    """Returns the tables of profiles, longer than in a terminal, and the notes on them."""
    blocks = list(sites.of_profiles(report, _MOST_SITES))
    return {
        "sites": [block for block in blocks if isinstance(block, Table)],
        "flames": list(icicles(report)),
        "site_notes": [
            note for block in blocks if isinstance(block, Paragraphs) for note in block.texts
        ],
    }


def _worst_windows(report: Report) -> Callable[[], object]:
    """Returns a function that finds the worst windows, if the page shows those of all cycles."""
    analysis = report.analysis
    # Shared inputs are calculated here, so only once.
    is_shown = len(analysis.corrected) and len(analysis.tables["processes"]) <= 1
    return lambda: analysis.mmu if is_shown else None


def _state(report: Report) -> list[KeyFigure]:
    """Returns the headline figures with their trends."""
    if not report.analysis.has_figures:
        return figures_since_start(report) or figures_of_deaths(report)
    return headline.with_trends(report, headline.state(report))


def _contents(shown: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the sections of the page in their order."""
    charts, records = shown["charts"], shown["records"]
    for id_, title, there in (
        ("deaths", "Kill", shown["deaths"]),
        ("recommended", "Recommended settings", shown["advice"] or shown["refused"]),
        ("findings", "What happened", shown["problems"] or shown["minor"]),
        ("sites", "Where it allocates", shown["sites"]),
        ("timeline", "Timeline", charts["timeline"]),
        ("distributions", "Distributions", charts["spread"]),
        ("cycles", records.noun.capitalize(), records.columns),
        ("tables", "Tables", shown["tables"] or shown["examples"]),
        ("methodology", "How the figures were computed", True),
    ):
        if there:
            yield id_, title


def _notes(plots: dict[str, Figure], other_process: str | None) -> dict[str, list[str]]:
    """Returns the notes on each group of charts, and how to draw another process."""
    binned = plots["timeline"].notes
    rest = [
        note
        for name in ("pauses", "frequency", "assist", "mmu")
        for note in plots[name].notes
        if note not in binned and plots[name].drawn
    ]
    return {
        "timeline": [
            *binned,
            *([other_process] if other_process else []),
            *_notes_on_memory(plots),
        ],
        "spread": rest,
        "trade_off": list(plots["trade_off"].notes),
    }


def _notes_on_memory(plots: dict[str, Figure]) -> Iterator[str]:
    """Yields the notes on the memory chart, including that it has its own time axis."""
    memory, shared = plots["memory"], plots["timeline"].x_range
    if not memory.drawn:
        return
    yield from memory.notes
    if shared is not None and memory.x_range != shared:
        yield (
            "The chart of memory has a time axis of its own: the gctrace lines have no timestamps, "
            "and the dumps do not count the same cycles. The start of the program, if you give it, "
            "puts both on one axis."
        )


def _tables(report: Report) -> Iterator[Table]:
    about = (
        overview.service_levels(report),
        overview.pauses(report),
        overview.pause_ranges(report),
        overview.processes(report),
    )
    several = about if report.analysis.summary.cycles else ()
    for table in (
        *several,
        evidence.memory(report),
        memory_parts(report),
        evidence.units(report),
        evidence.rejected(report),
    ):
        if table is not None and table.rows:
            yield table
