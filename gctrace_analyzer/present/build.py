"""Gathers what a report is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.advise.recommend import recommend
from gctrace_analyzer.analysis.cycles import goal_setters
from gctrace_analyzer.analysis.pauses import pauses, worst_cycles
from gctrace_analyzer.analysis.postmortem.cpu import compared, consumed
from gctrace_analyzer.analysis.postmortem.memory import memories
from gctrace_analyzer.analysis.postmortem.report import post_mortems
from gctrace_analyzer.analysis.rules.diagnose import diagnose
from gctrace_analyzer.analysis.rules.levels import agreed, levels
from gctrace_analyzer.analysis.segments import segments
from gctrace_analyzer.analysis.summary import Summary, summarize
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.analysis.windows import windows
from gctrace_analyzer.present.report import Report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.advise.baseline import Baseline
    from gctrace_analyzer.analysis.settings import Settings
    from gctrace_analyzer.ingest.read import Log

WORST_CYCLES = 5
TREND_POINTS = 10


def build(
    log: Log,
    corrected: pl.DataFrame,
    enriched: pl.DataFrame,
    episodes: pl.DataFrame,
    settings: Settings,
    baseline: Baseline,
) -> Report:
    """The report on a log; `corrected` are its cycles as `correct_durations` makes them.

    `judged` and `episodes` are those of `analysis.episodes`.
    """
    cycles = log.tables["cycles"]
    summary = summarize(
        cycles, log.tables["processes"], impossible=log.impossible, said=log.notes
    )
    by_process = tuple(_by_process(log, summary))
    deaths = tuple(post_mortems(log.tables, settings))
    held = tuple(memories(log.tables["memstats"]))
    found = diagnose(
        enriched,
        {row["process"]: own for row, own in by_process},
        log.tables["processes"],
        episodes,
        settings,
        held,
        deaths,
    )
    return Report(
        corrected=corrected,
        episodes=episodes,
        segments=segments(enriched),
        recommendations=recommend(baseline),
        baseline=baseline,
        findings=tuple(found),
        sources=log.sources,
        summary=summary,
        levels=agreed(
            levels(summary, DEFAULT, old_pacer=not cycles["stacks_mib"].count()), found
        ),
        processes=by_process,
        trend=_trend(log.tables["processes"], corrected),
        pauses=pauses(corrected),
        worst=worst_cycles(corrected, WORST_CYCLES),
        rejected=log.tables["rejected"],
        repaired=int(cycles["repaired"].sum()),
        procs=tuple(cycles["procs"].drop_nulls().unique().sort()),
        goal_set_by=goal_setters(enriched),
        runtime_lines=log.runtime_lines,
        settings=settings,
        post_mortems=deaths,
        memories=held,
        consumed=tuple(consumed(log.tables)),
        comparisons=tuple(compared(log.tables)),
        tables=log.tables,
    )


def _by_process(log: Log, whole: Summary) -> Iterator[tuple[dict[str, Any], Summary]]:
    """Each program start with its own figures."""
    processes = log.tables["processes"]
    rows = processes.iter_rows(named=True)
    if len(processes) == 1:
        yield next(rows), whole
        return
    parts = log.tables["cycles"].partition_by("process", as_dict=True, maintain_order=True)
    for row in rows:
        only = processes.filter(process=row["process"])
        yield row, summarize(parts[(row["process"],)], only, impossible=log.impossible)


def _trend(processes: pl.DataFrame, corrected: pl.DataFrame) -> pl.DataFrame:
    """Equal windows over the process with the most cycles."""
    nothing = pl.DataFrame(schema=schema.polars_schema("windows"))
    if processes.is_empty():
        return nothing
    longest = processes.sort("cycles")["process"][-1]
    mine = corrected.filter(pl.col("process") == longest)
    begin, end = mine.select(
        (pl.col("end_s") - pl.col("elapsed_s")).min().alias("begin"), pl.col("end_s").max()
    ).row(0)
    if begin is None or end <= begin:
        return nothing
    return windows(mine, (end - begin) / TREND_POINTS, origin_s=begin).head(TREND_POINTS)
