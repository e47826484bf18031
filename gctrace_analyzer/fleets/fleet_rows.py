"""Converts the report on a file to rows of the fleet table, one per process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.advise.subject import GROWS
from gctrace_analyzer.analysis.fleet.answers import READ_BEFORE
from gctrace_analyzer.analysis.postmortem.memory_of_dumps import last
from gctrace_analyzer.analysis.rules.finding import SEVERITIES
from gctrace_analyzer.analysis.sites.functions import place
from gctrace_analyzer.analysis.summary import FIGURES, Summary
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.fleets.identity import IDENTITY, service_of
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gctrace_analyzer.analysis.analysis import Analysis
    from gctrace_analyzer.analysis.postmortem.post_mortems import PostMortem
    from gctrace_analyzer.fleets.inputs import Item, Kind
    from gctrace_analyzer.present.report import Report
    from gctrace_analyzer.run import Run
    from gctrace_analyzer.schema import Row


WORST_EPISODES = 3
RANK = {severity: rank for rank, severity in enumerate(SEVERITIES)}
HEALTHY, SHORT = "GC044", "GC042"
"""Findings about a whole log: no problem found, and too short for a verdict."""

_SINCE_START = {
    "since_start_cycles": "gc_cycles",
    **{f"since_start_{name}": name for name in ("gc_cpu_share", "stw_max_ms")},
}
_SIZES = ("needed_mib", "sys_mib")
_LIMITER = ("unlikely", "likely", "certain")
_ENDS = ("", "_low", "_high")
_PREDICTED = ("gc_per_s", "gc_cpu_with_idle_share", "heap_peak_mib")


def rows_of(run: Run, item: Item, identity: Mapping[str, str]) -> list[Row]:
    """Returns one row per process of a file, or one without figures if it has no process."""
    numbers = run.processes["process"].to_list()
    damage = [f"{source.damage}{READ_BEFORE}" for source in run.sources if source.damage]
    runs = [run] if len(numbers) < 2 else [run.process(number) for number in numbers]
    rows = [
        {
            **_of_item(item),
            "stretches": 1,
            "rejected_lines": len(run.rejected),
            **row_of(own, alone=len(runs) == 1),
            **_identity(row, identity, run),
        }
        for own, row in zip(runs, run.processes.to_dicts() or [{}], strict=True)
    ]
    for row in rows:
        row["warnings"] += damage
    return rows


def error_row(item: Item, kind: Kind, problem: str, identity: Mapping[str, str]) -> Row:
    """Returns the row of a file that could not be read."""
    return {
        **_of_item(item),
        "error_kind": kind,
        "error": problem,
        **identity,
    }


def row_of(run: Run, *, alone: bool = True) -> Row:
    """Returns the figures of one process.

    If the process is `alone` in its file, all OOM kills in the file count as its own.
    """
    report = run.report()
    summary = _measured(report.analysis)
    processes = report.analysis.log.tables["processes"]
    process = processes.row(0, named=True) if len(processes) else None
    capacity = _times(summary.span_s, summary.cpus)
    few = summary.cycles < DEFAULT.short_log_cycles
    deaths = [death for death in report.analysis.post_mortems if death.proven]
    own = [death for death in deaths if process and death.process == process["process"]]
    return {
        **{name: getattr(summary, name) for name in FIGURES},
        "warnings": _warnings(report),
        "procs": last(report.analysis.spans["procs"]),
        "capacity_cpu_s": capacity,
        "gc_cpu_s": _times(summary.gc_cpu_share, capacity),
        "gc_cpu_with_idle_s": _times(summary.gc_cpu_with_idle_share, capacity),
        "goal_set_by": next(iter(report.analysis.goal_set_by), None),
        # Metrics may lack the GC CPU of some cycles.
        "short": few
        or (report.analysis.summary.gc_cpu_share is None and not run.cycles.is_empty()),
        "repaired_cycles": report.analysis.repaired,
        "oom_kills": len(deaths if alone else own),
        **(_memory(run, report.analysis) if len(run.memstats) else {}),
        **_top_site(report),
        **_settings(report),
        **({} if process else _limit_of(deaths)),
        **_findings(report),
        **_episodes(report.analysis.episodes, summary.span_s),
        **_advice(report),
    }


def _measured(analysis: Analysis) -> Summary:
    """Returns the figures, without those for which the clock of the log is too coarse."""
    unknown = [name for name in FIGURES if is_by_clock(name, analysis.too_coarse)]
    return replace(analysis.summary, **dict.fromkeys(unknown))  # type: ignore[arg-type]  # all of these may be None


_BY_CLOCK = {"gc_cpu": ("gc_cpu", "assist"), "pauses": ("stw",)}


def is_by_clock(name: str, figures: Iterable[str] = tuple(_BY_CLOCK)) -> bool:
    """Returns whether the clock is too coarse for a figure of a row (`summary.too_coarse`)."""
    return any(part in name for figure in figures for part in _BY_CLOCK[figure])


def _memory(run: Run, analysis: Analysis) -> Row:
    """Returns the mean memory held by Go, and the largest resident memory, from metrics.

    Of a dump without another one to compare with: its sizes, and its costs since the start.
    """
    intervals, since_start = run.intervals, analysis.dumps.since_start
    single: Row = {}
    if not analysis.summary.cycles and intervals["since_start"].all():
        single = {
            **{name: last(since_start[column]) for name, column in _SINCE_START.items()},
            **{name: getattr(own, name) for own in analysis.memory[-1:] for name in _SIZES},
        }
    if intervals.is_empty():
        return single
    # The runtime may export it as one figure.
    of_go = pl.coalesce("mapped_bytes", pl.col("sys_bytes") - pl.col("heap_released_bytes"))
    held = run.memstats.select(of_go.mean() / MIB)
    return {
        "go_memory_mib": held.item(), "rss_max_mib": intervals["rss_mib"].max(), **single
    }  # fmt: skip


def _top_site(report: Report) -> Row:
    """Returns the function that allocates most, if there is a heap profile."""
    profiled = report.analysis.profiled
    if profiled is None or profiled.top.is_empty():
        return {}
    first = profiled.top.row(0, named=True)
    return {"top_site": place(first), "top_site_share": first["attributed_share"]}


def _warnings(report: Report) -> list[str]:
    """Returns the notes on the figures, without notes on a time zone that changes none."""
    log = report.analysis.log
    unimportant = () if log.needs_dates else log.undated
    return [
        sentence for sentence in report.analysis.summary.warnings if sentence not in unimportant
    ]


def _of_item(item: Item) -> Row:
    return {
        **dict.fromkeys(schema.names("fleet")),
        "file": item.name,
        "file_bytes": item.size,
        "modified": item.modified,
        "parts": [part.name for part in item.parts] or None,
    }


def _identity(process: Mapping[str, Any], from_path: Mapping[str, str], run: Run) -> Row:
    """Returns the identity of a process; the path takes precedence over the log prefix.

    Without GC cycles, the service is the name of what was killed.
    """
    deaths = () if process else run.report().analysis.post_mortems
    victims = {death.victim for death in deaths if death.victim}
    names = set(schema.names("fleet")) & {*schema.names("processes"), *IDENTITY}
    own: Row = {name: process.get(name) for name in names - {"cycles", "missing_cycles"}}
    own |= from_path
    victim = victims.pop() if len(victims) == 1 else None
    return own | {"service": from_path.get("service") or service_of(own) or victim}


def _times(share: float | None, whole: float | None) -> float | None:
    return None if share is None or whole is None else share * whole


def _limit_of(deaths: Sequence[PostMortem]) -> Row:
    """Returns the limit of the killed program, which may not be that of the log."""
    limits = {death.limit_mib for death in deaths}
    return {"container_limit_mib": limits.pop()} if len(limits) == 1 else {}


def _settings(report: Report) -> Row:
    value = report.analysis.settings.value
    gogc, start = value("gogc"), report.advice.baseline
    # Under a limit that sets all goals, GOGC is only known to be at least some value.
    is_known = start.regime is None or start.regime.gogc_pct is not None
    return {
        "gogc": None if gogc is None else gogc if isinstance(gogc, str) else f"{gogc:g}",
        "memory_limit_mib": value("memory_limit_mib"),
        "container_limit_mib": value("container_limit_mib"),
        "gogc_inferred": start.now.gogc if start.load and is_known else None,
    }


def _findings(report: Report) -> Row:
    findings, verdict = report.analysis.findings, report.verdict
    ids = [finding.id for finding in findings]
    # Unless the limit is too low, there is none that is needed.
    is_too_low = not {"GC015", "GC016"}.isdisjoint(ids)
    return {
        "findings": ids,
        "severity": max(
            (finding.severity for finding in findings), key=RANK.__getitem__, default=None
        ),
        "headline": verdict.sentence if verdict else None,
        "grows": verdict is not None and verdict.grows,
        "action": verdict.action.replace("\n", " ") if verdict else None,
        "needed_limit_mib": report.advice.higher_limit_mib if is_too_low else None,
    }


def _episodes(episodes: pl.DataFrame, span_s: float | None) -> Row:
    rows = episodes.to_dicts()
    thrash = [row for row in rows if row["kind"] == "limit-thrash"]
    last_s = max((row["end_s"] for row in thrash), default=None)
    return {
        "episodes": len(rows),
        "worst_episodes": worst(rows),
        "thrash_s": sum(row["end_s"] - row["start_s"] for row in thrash),
        "thrashes_at_end": last_s is not None and last_s >= 0.98 * (span_s or 0.0),
        "limiter": strongest_limiter([row["limiter"] for row in thrash]),
    }


def worst(episodes: Sequence[Row]) -> list[Row]:
    """Returns the worst few episodes: bad before warn, long before short."""
    names = ("kind", "severity", "start_s", "end_s", "reason")
    order = sorted(
        episodes, key=lambda row: (-RANK[row["severity"]], row["start_s"] - row["end_s"])
    )
    return [{name: row[name] for name in names} for row in order[:WORST_EPISODES]]


def strongest_limiter(levels: Sequence[str | None]) -> str | None:
    """Returns the highest of several verdicts on the CPU limiter (see `_LIMITER`)."""
    return max(filter(None, levels), key=_LIMITER.index, default=None)


def _advice(report: Report) -> Row:
    """Returns the first recommendation with its prediction, and what it saves."""
    rows = report.advice.recommendations.to_dicts()
    if not report.analysis.summary.cycles or not rows:
        return {}
    first = rows[0]
    now = next((row for row in rows if row["now"]), first)
    changes = not first["now"] and first["refused"] is None
    is_of_growth = report.verdict is not None and report.verdict.finding == GROWS
    columns = {
        "advice_changes": changes,
        "advice_gogc": first["gogc"] if _has_load(report) else None,
        "advice_memory_limit_mib": first["memory_limit_mib"],
        **{f"advice_{name}": first[name] for name in ("why", "risk", "confidence", "thrash")},
        "advice_refused": first["refused"],
        "advice_lasts_h": (first["lasts_h"] or None) if is_of_growth else None,
        **{
            f"advice_{name}{end}": first[f"{name}{end}"] for name in _PREDICTED for end in _ENDS
        },
    }
    return columns | _saved(report, first, now, changes=changes)


def _has_load(report: Report) -> bool:
    """Returns whether the load is known, from gctrace or from metrics."""
    return report.advice.baseline.load is not None or report.advice.is_available


def _saved(report: Report, first: Row, now: Row, *, changes: bool) -> Row:
    if not _has_load(report) or first["refused"] is not None:
        return {}
    pairs = (("saved_cores", "gc_cpu_cores"), ("saved_heap_mib", "heap_peak_mib"))
    if not changes:
        return {f"{saved}{end}": 0.0 for saved, _ in pairs for end in _ENDS}
    # The lower end of the predicted use is the upper end of the saving.
    return {
        f"{saved}{end}": now[name] - first[f"{name}{other}"]
        for saved, name in pairs
        for end, other in zip(_ENDS, ("", "_high", "_low"), strict=True)
        # Metrics may lack the GC CPU, and settings that thrash have no figures.
        if now[name] is not None and first[f"{name}{other}"] is not None
    }
