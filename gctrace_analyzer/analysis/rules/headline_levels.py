"""The level (ok, info, warn or bad) of each headline figure of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.rules.finding import SEVERITIES, Severity

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from gctrace_analyzer.analysis.rules.finding import Finding
    from gctrace_analyzer.analysis.summary import Summary
    from gctrace_analyzer.analysis.thresholds import Thresholds

_RULES = {
    "gc_cpu": ("GC001",),
    "assist": ("GC005",),
    "pauses": ("GC009", "GC010", "GC011", "GC046"),
    # Thrashing means cycles without a break, because goals leave no room.
    "frequency": ("GC003", "GC016"),
    "heap_goal": (
        *("GC016", "GC015", "GC014", "GC018", "GC019", "GC027", "GC045", "GC008", "GC004"),
    ),
    "live_heap": ("GC021",),
}
"""The rules with findings about a figure."""

_STOPPED = 0.05
"""Share of the time. Pauses that take more are not ok, even if each is short."""


def levels(
    summary: Summary | None,
    processes: Iterable[Summary],
    findings: Iterable[Finding],
    thresholds: Thresholds,
    too_coarse: Container[str] = (),
) -> dict[str, Severity]:
    """Returns the levels that agree with the findings, so that a report is consistent.

    A figure is `info` if a minor finding is about it, else `ok` if it is known. It has no level if
    it is high in any process but the log is too short for a finding, or if the clock is
    `too_coarse` for it. Without a `summary`, which is of processes that were not checked as well,
    none is `ok`.
    """
    every = list(findings)
    known = set() if summary is None else _known(summary, thresholds, too_coarse)
    unproven = costly(processes, thresholds)
    if "gc_cpu" in unproven and {finding.id for finding in every}.isdisjoint(_RULES["gc_cpu"]):
        # What makes up that cost may be the problem as well.
        unproven |= {"assist", "frequency"}
    well = known - unproven
    result: dict[str, Severity] = {}
    for figure, rules in _RULES.items():
        about = [each for each in every if each.id in rules]
        if figure == "heap_goal":
            # A live heap that fills its limit leaves no room below the goal.
            about += [each for each in every if "room_pct" in each.figures]
        if about:
            result[figure] = max((each.severity for each in about), key=SEVERITIES.index)
        elif figure in well:
            result[figure] = "ok"
    return result


def costly(summaries: Iterable[Summary], thresholds: Thresholds) -> set[str]:
    """Returns the figures that would be a problem if the log were long enough to show one.

    Args:
        summaries: the summary of each process.
        thresholds: the values above which a figure is a problem.
    """
    return {
        name
        for own in summaries
        for name, share, most in (
            ("gc_cpu", own.gc_cpu_share, thresholds.gc_cpu_warn),
            ("pauses", own.stw_share, _STOPPED),
        )
        if share is not None and share > most
    }


def _known(summary: Summary, t: Thresholds, too_coarse: Container[str]) -> set[str]:
    low, most = summary.gc_cpu_range or (summary.gc_cpu_share,) * 2
    is_either = low is not None and most is not None and low <= t.gc_cpu_warn < most
    figures = {
        "gc_cpu": None if is_either else summary.gc_cpu_share,
        "assist": summary.assist_share_of_gc_cpu,
        "pauses": summary.stw_p99_ms,
        "frequency": summary.gc_per_s,
        "heap_goal": summary.heap_goal_p50_mib,
    }
    if summary.is_mostly_missing:
        del figures["assist"], figures["pauses"]
    if summary.is_too_short_for_rates:
        figures = {name: figures.get(name) for name in ("pauses", "heap_goal")}
    elif (summary.span_s or 0) >= t.growth_min_span_s:
        figures["live_heap"] = summary.live_heap_growth_mib_per_h
    return {
        name
        for name, value in figures.items()
        if value is not None and _SHARE_OF.get(name, name) not in too_coarse
    }


_SHARE_OF = {"assist": "gc_cpu"}
"""The figure that another figure is a share of."""
