"""Headline figures and tables about cycles, as rows of text for all output formats."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.advise.verdict import too_large_for_container
from gctrace_analyzer.analysis.cycles import usual_interval_ms
from gctrace_analyzer.analysis.settings.naming import (
    distinct,
    gogc_name,
    gogc_text,
    percent_text,
    present,
    setting_text,
)
from gctrace_analyzer.ingest.processes import distinct_names
from gctrace_analyzer.ingest.rows import median as median_of
from gctrace_analyzer.ingest.rows import not_null
from gctrace_analyzer.present.document import KeyFigure, Table
from gctrace_analyzer.present.format import (
    NONE,
    duration,
    gc_cpu,
    gc_cpu_with_idle,
    interval,
    live_heap,
    mib,
    mib_per_s,
    milliseconds,
    place,
    printable,
    rate,
    rate_of_growth,
    share,
)
from gctrace_analyzer.present.sections.findings import DEATHS
from gctrace_analyzer.units import LEAST_CORES, cores_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gctrace_analyzer.analysis.postmortem.post_mortems import PostMortem
    from gctrace_analyzer.analysis.rules.finding import Finding
    from gctrace_analyzer.analysis.summary import Summary
    from gctrace_analyzer.present.report import Report
    from gctrace_analyzer.schema import Row

MOST_PROCESSES = 12
MOST_PHASES = 8
SHORT_PHASE = 0.05
"""Share of the time span. A shorter phase is only a transition, which is not listed."""

_SETTERS = {
    "gogc": "GOGC",
    "memory-limit": "the memory limit",
    "heap-minimum": "the heap minimum",
}


_NEARLY_ALL = 0.9
"""Share of the goals. What sets at least this share is said to set all."""

_FEW = 0.2
"""Share of the goals. What sets fewer is not named with the other setter."""


TRENDS = {
    "GC CPU": "gc_cpu_share", "Pauses": "stw_max_ms", "Frequency": "gc_per_s",
    "Mark assist": "assist_share_of_gc_cpu", "Live heap": "heap_live_mib",
}  # fmt: skip
"""The figures that a report shows over time, with the column of the windows that has them."""


def state(report: Report) -> list[KeyFigure]:
    """Returns the headline figures that the log provides."""
    s, coarse = report.analysis.summary, report.analysis.too_coarse
    figures: list[KeyFigure] = []
    if s.gc_cpu_share is not None:
        many = coarse.get("gc_cpu")
        note = f"not measurable: {many} cycles are printed with 0" if many else _cores(s)
        figures.append(_with_level(report, "GC CPU", gc_cpu(s), note, "gc_cpu"))
    if pauses := _pauses(report):
        figures.append(_with_level(report, "Pauses", *pauses, "pauses"))
    if s.gc_per_s is not None:
        forced = f"{s.forced_cycles:,} of {s.cycles:,} forced" if s.forced_cycles else ""
        often = interval(s, usual_interval_ms(report.analysis.enriched))
        note = "; ".join(filter(None, (often, forced)))
        figures.append(_with_level(report, "Frequency", rate(s.gc_per_s), note, "frequency"))
    if s.assist_share_of_gc_cpu is not None:
        value = share(s.assist_share_of_gc_cpu)
        note = "of GC CPU"
        if s.assist_share_of_cpu is not None and not s.is_of_single_cycles:
            note += f"; {share(s.assist_share_of_cpu)} of all CPU"
        note = "not measurable" if coarse.get("gc_cpu") else note
        figures.append(_with_level(report, "Mark assist", value, note, "assist"))
    if s.live_heap_p50_mib is not None:
        value, note = _live(report, live_heap(s.live_heap_p50_mib))
        figures.append(_with_level(report, "Live heap", value, note, "live_heap"))
    if s.heap_goal_p50_mib is not None:
        value, note = _goal(report, mib(s.heap_goal_p50_mib))
        figures.append(_with_level(report, "Heap goal", value, note, "heap_goal"))
    return [*figures, *_allocation(report)]


def _pauses(report: Report) -> tuple[str, str] | None:
    """Returns the length of the pauses, and which it is; None if nothing is known of them."""
    s, coarse = report.analysis.summary, report.analysis.too_coarse
    pauses = {"p99": s.pause_p99_ms, "max": s.stw_max_ms}
    known = {name: milliseconds(ms) for name, ms in pauses.items() if ms is not None}
    if not known:
        return _total_of_pauses(report)
    first, value = next(iter(known.items()))
    longest = [f"{known['max']} max"] if first == "p99" and "max" in known else []
    time = _these(s, "the cycle", "the cycles") if s.is_of_single_cycles else "time"
    of_time = [] if s.stw_share is None else [f"{share(s.stw_share)} of {time}"]
    if many := coarse.get("pauses"):
        longest, of_time = [], [f"not measurable: {many} are printed as 0"]
    return value, " · ".join((first, *longest, *of_time))


def _total_of_pauses(report: Report) -> tuple[str, str] | None:
    """Returns what the total of the pauses proves: metrics need not have each of them."""
    s = report.analysis.summary
    if s.stw_total_ms is None:
        return None
    proved = [each.figures["max_ms"] for each in report.analysis.findings if each.id == "GC046"]
    if proved:
        of_time = [] if s.stw_share is None else [f"{share(s.stw_share)} of time"]
        return f"≥ {milliseconds(max(proved))}", " · ".join(["in one cycle", *of_time])
    total = f"{milliseconds(s.stw_total_ms)} in total"
    if s.stw_share is not None:
        return share(s.stw_share), f"of time; {total}"
    return "unknown", total


def _allocation(report: Report) -> Iterator[KeyFigure]:
    s = report.analysis.summary
    if s.alloc_mib_per_s is not None:
        total = f"{mib(s.alloc_total_mib)} in total"
        yield KeyFigure("Allocation", mib_per_s(s.alloc_mib_per_s), total)
    elif s.heap_peak_mib is not None and not report.analysis.by_dumps and s.gc_per_s:
        note = "a cycle allocates too little for sizes in whole MiB"
        missing = s.is_mostly_missing
        yield KeyFigure("Allocation", "unknown", "most lines are missing" if missing else note)


def of_all(report: Report) -> str:
    """Returns that the headline figures are of all processes; empty if there is only one."""
    several = len(report.analysis.tables["processes"])
    has_figures = report.analysis.has_figures
    every = "Both" if several == 2 else f"All {several:,}"
    return f"{every} processes together" if several > 1 and has_figures else ""


def about_cycles(report: Report) -> Iterator[Table]:
    """Yields the tables about cycles in the order of every report; none without cycles."""
    if report.analysis.summary.cycles:
        several = (phases(report), pauses(report), pause_ranges(report), worst(report))
        yield from (table for table in several if table is not None)


FIGURES_OF_PHASE = ("cycles", "GC CPU", "assists", "live heap", "allocation")


def figures_of_phase(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the figures of a row of `schema.SEGMENTS` (`FIGURES_OF_PHASE`)."""
    return (
        rate(row["gc_per_s"]),
        share(row["gc_cpu_share"]),
        share(row["assist_share_of_gc_cpu"]),
        live_heap(row["live_heap_p50_mib"]),
        mib_per_s(row["alloc_mib_per_s"]),
    )


def phases(report: Report) -> Table | None:
    """Returns the load phases and idle times if there are several, without short ones."""
    long = (
        report.analysis.segments["end_s"] - report.analysis.segments["start_s"]
    ) >= SHORT_PHASE * (report.analysis.summary.span_s or 0.0)
    listed = report.analysis.segments.filter(
        long & (report.analysis.segments["kind"] != "start-up")
    )
    if len(listed) < 2 or len(listed) == listed["process"].n_unique():
        return None
    several = listed["process"].n_unique() > 1
    rows = [
        (
            (f"{row['process']} " if several else "") + row["kind"],
            duration(row["start_s"]),
            duration(row["end_s"]),
            *figures_of_phase(row),
        )
        for row in listed.head(MOST_PHASES).iter_rows(named=True)
    ]
    head = ("Phases", "from", "to", *FIGURES_OF_PHASE)
    left = len(report.analysis.segments) - len(rows)
    more = f"… and {left:,} shorter (table segments)" if left else ""
    return Table(head, "lrrrrrrr", rows, more)


def pauses(report: Report) -> Table:
    """Returns the pauses by phase."""
    names = ("total_ms", "p50_ms", "p90_ms", "p99_ms", "max_ms")
    known = report.analysis.pauses
    is_old = "sweep termination" not in known["phase"]  # up to Go 1.4
    rows = [
        (
            "whole cycle" if is_old and row["phase"] == "mark termination" else row["phase"],
            *(milliseconds(row[name]) for name in names),
            NONE if row["max_gc"] is None else f"gc {row['max_gc']}",
        )
        for row in known.iter_rows(named=True)
    ]
    head = ("Pauses by phase", "total", "p50", "p90", "p99", "max", "longest at")
    return Table(head, "lrrrrrl", rows)


def pause_ranges(report: Report) -> Table | None:
    """Returns how many pauses are in each range of lengths; None if no pause is known."""
    ranges = report.analysis.pause_ranges
    if not any(row["pauses"] for row in ranges):
        return None
    head = [
        f"< {row['to_ms']:g} ms"
        if not row["from_ms"]
        else f"> {row['from_ms']:g} ms"
        if row["to_ms"] is None
        else f"{row['from_ms']:g}–{row['to_ms']:g} ms"
        for row in ranges
    ]
    counts = (f"{row['pauses']:,}" for row in ranges)
    shares = (share(row["share"]) for row in ranges)
    return Table(
        ("Pauses by length", *head),
        "lrrrr",
        [("number", *counts), ("share", *shares)],
    )


def service_levels(report: Report) -> Table | None:
    """Returns how far each service level was kept; None if none was given."""
    if not (levels := report.analysis.service_levels):
        return None
    rows = []
    for level in levels:
        if level.quantity == "pause":
            name, worst_one = f"pauses ≤ {level.limit:g} ms", milliseconds(level.worst)
        else:
            name = f"GC CPU (10 s windows) ≤ {100 * level.limit:g} %"
            worst_one = share(level.worst)
        rows.append((name, share(level.within_share), worst_one))
    return Table(("Service levels", "kept in", "worst pause or window"), "lrr", rows)


def worst(report: Report) -> Table | None:
    """Returns the cycles that cost the program most time, by pauses and mark assists."""
    if report.analysis.cycles.is_empty():
        return None
    head = ("Most pauses + assists", "at", "pauses", "mark", "assists", "heap MiB", "line")
    several = len(report.analysis.log.sources) > 1
    rows = [
        (*_cycle(row), place(row["source"], row["line_no"]) if several else f"{row['line_no']}")
        for row in report.analysis.worst_cycles.iter_rows(named=True)
    ]
    return Table(head, "lrrrrlr", rows, spare=(3,))


_ENDS = {"restart": "new process"}


def processes(report: Report) -> Table | None:
    """Returns the processes, if there are several."""
    processes = report.analysis.log.tables["processes"]
    if len(processes) < 2:
        return None
    shown = processes.head(MOST_PROCESSES).iter_rows(named=True)
    killed = {death.process for death in report.analysis.post_mortems}
    rows = [
        (
            f"{row['process']}  {_named(row, name)}".rstrip(),
            f"{s.cycles:,}",
            duration(s.span_s),
            share(s.gc_cpu_share),
            milliseconds(s.stw_max_ms),
            live_heap(s.live_heap_p50_mib),
            "its kill"
            if row["process"] in killed
            else _ENDS.get(row["ended_by"], row["ended_by"]),
        )
        for row, name in zip(shown, distinct_names(processes), strict=False)
        for s in (report.analysis.summary_of(row["process"]),)
    ]
    left = len(processes) - len(rows)
    head = ("Processes", "cycles", "time", "GC CPU", "max pause", "live heap", "followed by")
    return Table(head, "lrrrrrl", rows, f"… and {left:,} more" if left else "")


def named(report: Report, process: int) -> str:
    """Returns the number of a process, with its name if the processes have different ones."""
    rows = report.analysis.tables["processes"]
    names = dict(zip(rows["process"], distinct_names(rows), strict=True))
    return f"{process} ({printable(names[process])})" if names[process] else f"{process}"


_MOST_OF_NAME = 15


def _named(row: Row, name: str | None) -> str:
    """Returns the end of a process's name, or its cycles if nothing else tells it apart."""
    if name:
        name = printable(name)
        return name if len(name) <= _MOST_OF_NAME else "…" + name[1 - _MOST_OF_NAME :]
    return "" if row["first_gc"] is None else f"gc {row['first_gc']}–{row['last_gc']}"


def with_trends(report: Report, figures: Iterable[KeyFigure]) -> list[KeyFigure]:
    """Returns the figures with their values over time; one cycle or interval has no course."""
    analysis = report.analysis
    number = len(analysis.dumps.between) if analysis.by_dumps else analysis.summary.cycles
    if not len(analysis.trend) or number < 2:
        return list(figures)
    return [
        replace(figure, trend=analysis.trend[TRENDS[figure.label]].to_list())
        if figure.label in TRENDS
        else figure
        for figure in figures
    ]


def _with_level(report: Report, label: str, value: str, note: str, level: str) -> KeyFigure:
    own: str = report.analysis.levels.get(level, "")
    if level == "heap_goal" and own in ("ok", "info"):
        # How much heap there was room for is part of what killed a program.
        own = "" if _death(report) is not None else own
        own = "warn" if too_large_for_container(report.advice) else own
    return KeyFigure(label, value, note, level=own)


def _cores(s: Summary) -> str:
    """Returns GC CPU in CPUs, and its share with idle marking: `0.63 of 2 CPUs; 40 % with idle`."""
    note = "of all CPU"
    if s.gc_cpu_most_cores is not None and s.cpus is not None:
        note = cores_text(s.gc_cpu_most_cores, s.cpus)
    if with_idle := gc_cpu_with_idle(s):
        note += f"; {with_idle} with idle"
    if s.is_of_single_cycles:
        note += f", in {_these(s, 'this cycle', 'these cycles')}"
    is_range = s.gc_cpu_range and (s.gc_cpu_most_cores or 0) >= LEAST_CORES
    return f"up to {note}" if is_range else note


def _these(s: Summary, one: str, several: str) -> str:
    return one if s.cycles == 1 else several


def _live(report: Report, median: str) -> tuple[str, str]:
    """Returns the live heap and what it is: the median, that since it moved, or before a death."""
    growth, death = _growth(report), _death(report)
    if death is None and (moved := _moved(report)) is not None:
        at, before = moved.start_s or 0.0, live_heap(moved.figures["before_mib"])
        since = f"since {duration(at)}; {before} before"
        return live_heap(moved.figures["after_mib"]), since
    if death is None:
        return median, growth
    return live_heap(death.live_mib), f"last; {growth.replace('median', f'median {median}')}"


def _moved(report: Report) -> Finding | None:
    """Returns the finding that the live heap of the only process moved to another level."""
    if len(report.analysis.tables["processes"]) > 1:
        return None
    return next((each for each in report.analysis.findings if each.id == "GC022"), None)


def _death(report: Report) -> PostMortem | None:
    """Returns the death that the report is about, if the last live heap before it is known."""
    is_subject = report.verdict is not None and report.verdict.finding in DEATHS
    if not is_subject or len(report.analysis.tables["processes"]) > 1:
        return None
    return next((each for each in report.analysis.post_mortems[::-1] if each.live_mib), None)


def _goal(report: Report, median: str) -> tuple[str, str]:
    """Returns the heap goal of the live heap that is shown, and who set it."""
    death, setter = _death(report), _setter(report)
    if death is None and (moved := _moved(report)) is not None:
        later = report.analysis.cycles.filter(pl.col("start_s") > moved.start_s)
        median = mib(median_of(later["heap_goal_mib"]))
    if death is None or not (last := death.next_goal_mib or death.goal_mib):
        return median, setter
    which = "next" if death.next_goal_mib else "last"
    return mib(last), "; ".join(filter(None, (which, f"median {median}", setter)))


def _growth(report: Report) -> str:
    highest = f"max {live_heap(report.analysis.summary.live_heap_max_mib)}"
    last, live = "", not_null(report.analysis.cycles["heap_live_mib"])
    if report.analysis.summary.is_in_bursts and len(live):
        # Most cycles are of little time.
        last = f" of cycles; last {live_heap(live[-1])}"
    most = f"median{last}; {highest}" if report.analysis.summary.cycles != 1 else ""
    process = report.subject
    if "live_heap" not in report.analysis.levels or process is None:
        return most
    growth = report.analysis.live_growth(process)
    several = len(report.analysis.tables["processes"]) > 1
    if growth is None:
        # Of the other processes it would be a guess.
        return most if several else f"{most}; no significant growth"
    if not growth.is_lasting:
        return f"{most}; last {live_heap(growth.fell_to_mib)}" if growth.fall else most
    grows = rate_of_growth(growth.mib_per_h, growth.low, growth.high)
    return f"process {process}: {grows}" if several else grows


def _setter(report: Report) -> str:
    """Returns what set the heap goals."""
    gogc = report.analysis.summary.effective_gogc_p50
    # Between samples the live heap and the goal may be of different cycles.
    unclear = gogc is None or (report.analysis.by_dumps and gogc < 0)
    effective = (
        [] if unclear else [f"effective GOGC {_levels_of_gogc(report) or f'{gogc:.0f}'}"]
    )
    live = report.analysis.summary.live_heap_p50_mib
    if effective and live is not None and live < report.analysis.thresholds.gogc_min_live_mib:
        # It is the median of heaps that are large enough to show it.
        effective = [f"{effective[0]} in larger heaps"]
    setters = report.analysis.goal_set_by
    setter, cycles = max(setters.items(), key=lambda item: item[1], default=("", 0))
    # Nothing is said of a goal whose setter is known for a few cycles only.
    regimes = distinct(report.analysis.only_regimes)
    if len(regimes) == 1 and (regime := regimes[0]).set_by == "either":
        low, high = regime.memory_limit_mib_low or 0, regime.memory_limit_mib_high
        limit = f" of {low:,.0f}–{high:,.0f} MiB" if high else ""
        return f"set by {gogc_text(regime)} or a limit{limit}"
    if 2 * cycles <= report.analysis.summary.cycles:
        both = [setters.get(name, 0) for name in ("gogc", "memory-limit")]
        if 2 * sum(both) > report.analysis.summary.cycles and min(both) >= _FEW * sum(both):
            return "; ".join(["set by GOGC and the memory limit", *effective])
        return "; ".join(effective)
    # The first cycles of most programs start from the heap minimum.
    mostly = "mostly " if cycles < _NEARLY_ALL * sum(setters.values()) else ""
    limit = _limit(report) if setter == "memory-limit" else ""
    if setter == "gogc" and len(regimes) == 1:
        # The quotient of sizes in whole MiB is near it, and would look like another one.
        return f"set {mostly}by {gogc_name(regimes[0])}"
    # GOGC does not show at the minimum.
    effective = [] if setter == "heap-minimum" else effective
    return "; ".join([f"set {mostly}by {limit or _SETTERS[setter]}", *effective])


def _limit(report: Report) -> str:
    """Returns the memory limit as it was stated or inferred; empty if it is unknown."""
    regime = present(report.analysis.only_regimes)
    if regime is None or not regime.is_limited or not regime.memory_limit_mib_high:
        return ""
    if regime.memory_limit_source != "inferred":
        return setting_text(regime)
    # Shorter than in a sentence: 80 columns have no more room.
    low, high = regime.memory_limit_mib_low, regime.memory_limit_mib_high
    return f"a {low:,.0f}–{high:,.0f} MiB limit" if low else f"a limit under {high:,.0f} MiB"


def _levels_of_gogc(report: Report) -> str:
    """Returns the first and the last GOGC if the program changed it: a median is neither."""
    levels = [regime.gogc_pct for regime in distinct(report.analysis.only_regimes)]
    known = [percent_text(gogc) for gogc in levels if gogc is not None]
    if len(known) < 2:
        return ""
    return f"{known[0]}, {'then' if len(known) == 2 else 'at the end'} {known[-1]}"


def _sum_of_pauses(*pauses: float | None) -> str:
    """Formats the pauses of a cycle, with their unit once if it is the same.

    >>> _sum_of_pauses(0.21, 0.0034), _sum_of_pauses(0.21, 1234), _sum_of_pauses(None, None)
    ('0.21+0.003 ms', '0.21 ms+1.2 s', '–')
    """
    texts = [milliseconds(pause) for pause in pauses if pause is not None]
    units = {text.split(" ")[1] for text in texts}
    if len(units) == 1:
        return "+".join(text.split(" ")[0] for text in texts) + f" {units.pop()}"
    return "+".join(texts) or NONE


def _cycle(row: Row) -> tuple[str, ...]:
    sizes = (row[f"heap_{when}_mib"] for when in ("start", "end", "live"))
    return (
        f"gc {row['gc_num']}",
        NONE if row["start_s"] is None else f"{row['start_s']:.1f} s",
        _sum_of_pauses(row["stw_sweep_term_ms"], row["stw_mark_term_ms"]),
        milliseconds(row["concurrent_mark_ms"]),
        milliseconds(row["assist_cpu_ms"]),
        "→".join(f"{size:,}" for size in sizes if size is not None),
    )
