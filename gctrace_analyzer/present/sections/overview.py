"""Tables about cycles, phases, pauses and processes, as rows of text for all output formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gctrace_analyzer.analysis import pauses as pauses_of
from gctrace_analyzer.analysis.cycles import median_over_time
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.ingest.processes import distinct_names
from gctrace_analyzer.ingest.rows import not_null
from gctrace_analyzer.present.document import Table
from gctrace_analyzer.present.format import (
    NONE,
    duration,
    gc_cpu,
    live_heap,
    mib_per_s,
    milliseconds,
    place,
    printable,
    rate,
    share,
)
from gctrace_analyzer.units import between_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

    from gctrace_analyzer.present.report import Report
    from gctrace_analyzer.schema import Row

MOST_PROCESSES = 12
MOST_PHASES = 8
SHORT_PHASE = 0.05
"""Share of the time span. A shorter phase is only a transition and is not listed."""


def of_all(report: Report) -> str:
    """Returns that the headline figures cover all processes; empty for a single process.

    Whether processes ran at the same time is not always known, so their rates are no sums.
    """
    several = len(report.analysis.tables["processes"])
    if several < 2 or not report.analysis.has_figures:
        return ""
    every = "Both" if several == 2 else f"All {several:,}"
    # A process with only one dump has no intervals.
    between = report.analysis.dumps.detailed
    covered = between["process"].n_unique() if between.width else several
    if report.analysis.by_dumps and 1 < covered < several:
        every = f"{covered:,} of {several:,}"
    return f"{every} processes together, rates on average per process; numbered from 0"


def about_cycles(report: Report) -> Iterator[Table]:
    """Yields the tables about cycles in the order of every report; none without cycles."""
    if report.analysis.summary.cycles:
        several = (phases(report), pauses(report), pause_ranges(report), worst(report))
        yield from (table for table in several if table is not None)


FIGURES_OF_PHASE = ("cycles", "GC CPU", "mark assist", "live heap", "allocation")


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


_LEAST_CYCLES = {50: DEFAULT.min_cycles, 90: 10, 99: pauses_of.FOR_P99 // 2}
"""Cycles that a quantile needs, by its percentage. With fewer, it is one of the extremes."""


def pauses(report: Report) -> Table:
    """Returns the pauses by phase."""
    known, cycles = report.analysis.pauses, report.analysis.summary.cycles
    quantiles = [f"p{percent}" for percent, least in _LEAST_CYCLES.items() if cycles >= least]
    names = ("total", *quantiles, "max")
    is_old = "sweep termination" not in known["phase"]  # up to Go 1.4
    rows = [
        (
            "whole cycle" if is_old and row["phase"] == "mark termination" else row["phase"],
            *(milliseconds(row[f"{name}_ms"]) for name in names),
            NONE if row["max_gc"] is None else f"gc {row['max_gc']}",
        )
        for row in known.iter_rows(named=True)
    ]
    head = ("Pauses by phase", *names, "longest at")
    return Table(head, f"l{'r' * len(names)}l", rows)


def pause_ranges(report: Report) -> Table | None:
    """Returns how many pauses are in each range of lengths; None if no pause is known."""
    ranges = pauses_of.pause_ranges(report.analysis.corrected)
    if sum(row["pauses"] or 0 for row in ranges) < 2 * DEFAULT.min_cycles:
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
            # The longest pause is as printed, like that of the figures above.
            worst_one = milliseconds(report.analysis.summary.stw_max_ms)
            name = f"pauses ≤ {level.limit:g} ms"
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
            NONE if s.is_too_short_for_rates else gc_cpu(s),
            milliseconds(s.stw_max_ms),
            usual_size(s.live_heap_p50_mib, few_sizes(report, "heap_live_mib", row["process"])),
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


_LOW_MIB = 10
"""Size up to which a printed size stands for much larger ones too."""


def usual_size(median_mib: float | None, few: pl.Series | None) -> str:
    """Returns the median of a size of the heap, or the range of `few_sizes`."""
    if few is None:
        return live_heap(median_mib)
    low, high = few.sort()[[0, -1]]
    if low < 1 <= high:
        # A printed 1 stands for anything under 2.
        return f"under {high + 1:.0f} MiB" if high < _LOW_MIB else f"0–{high:.0f} MiB"
    return between_text(live_heap(low), live_heap(high))


def few_sizes(report: Report, column: str, process: int | None = None) -> pl.Series | None:
    """Returns the sizes of too few cycles for a median, in order; None with more or none."""
    cycles = report.analysis.cycles
    sizes = not_null((cycles if process is None else cycles.filter(process=process))[column])
    return sizes if 0 < len(sizes) < DEFAULT.min_cycles else None


def named(report: Report, process: int) -> str:
    """Returns the number of a process, with its name if the processes have different ones."""
    rows = report.analysis.tables["processes"]
    names = dict(zip(rows["process"], distinct_names(rows), strict=True))
    return f"{process} ({printable(names[process])})" if names[process] else f"{process}"


_MOST_OF_NAME = 15


def _named(row: Row, name: str | None) -> str:
    """Returns the end of a process's name, or its cycles if the name is not unique."""
    if name:
        name = printable(name)
        return name if len(name) <= _MOST_OF_NAME else "…" + name[1 - _MOST_OF_NAME :]
    return "" if row["first_gc"] is None else f"gc {row['first_gc']}–{row['last_gc']}"


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


FAR = 1.5
"""Factor from the median. If the end of the log is further away, no median describes it."""


def over_time(
    report: Report, column: str, median: float, few: pl.Series | None
) -> tuple[float, str]:
    """Returns the median over time if it is far from that over cycles, and which one it is.

    While the heap is small, cycles follow each other faster. Live heap and goal have the same.
    """
    analysis = report.analysis
    if few is not None or analysis.by_dumps or len(analysis.tables["processes"]) > 1:
        return median, "median"
    medians = {
        "heap_live_mib": analysis.summary.live_heap_p50_mib,
        "heap_goal_mib": analysis.summary.heap_goal_p50_mib,
    }
    usual = {name: median_over_time(analysis.enriched, name) or 0 for name in medians}
    is_far = any(
        usual[name] and not 1 / FAR < max(usual[name], 1) / max(of_cycles or 0, 1) < FAR
        for name, of_cycles in medians.items()
    )
    return (
        (usual[column], "median over time") if is_far and usual[column] else (median, "median")
    )
