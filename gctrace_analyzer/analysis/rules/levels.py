"""The level (ok, warn or bad) of each headline figure of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gctrace_analyzer.analysis.rules.finding import Finding
    from gctrace_analyzer.analysis.summary import Summary
    from gctrace_analyzer.analysis.thresholds import Thresholds

Level = Literal["ok", "warn", "bad"]


def levels(summary: Summary, thresholds: Thresholds, *, old_pacer: bool) -> dict[str, Level]:
    """Returns the levels of `gc_cpu`, `assist`, `pauses` and `live_heap`, if they are known.

    Args:
        summary: the figures.
        thresholds: their limits.
        old_pacer: True for Go 1.17 and earlier, whose pacer plans for some assist time.
    """
    t = thresholds
    result: dict[str, Level] = {}
    if (cpu := summary.gc_cpu_share) is not None:
        result["gc_cpu"] = _level(cpu, t.gc_cpu_warn, t.gc_cpu_bad)
    if (assist := summary.assist_share_of_gc_cpu) is not None:
        limit = t.assist_warn_old if old_pacer else t.assist_warn
        matters = (summary.assist_share_of_cpu or 0.0) >= t.assist_warn_cpu_share
        result["assist"] = "warn" if assist > limit and matters else "ok"
    if (p99 := summary.stw_p99_ms) is not None:
        result["pauses"] = _level(p99, t.stw_warn_ms, t.stw_bad_ms)
    growth, low = summary.live_heap_growth_mib_per_h, summary.live_heap_growth_mib_per_h_low
    if growth is not None and low is not None and (summary.span_s or 0) >= t.growth_min_span_s:
        steep = growth > t.growth_warn_per_h * (summary.live_heap_p50_mib or 0)
        result["live_heap"] = "warn" if low > 0 and steep else "ok"
    return result


def _level(value: float, warn: float, bad: float) -> Level:
    return "bad" if value > bad else "warn" if value > warn else "ok"


_RULES = {
    "gc_cpu": ("GC001",),
    "assist": ("GC005",),
    "pauses": ("GC009", "GC010", "GC011"),
    "live_heap": ("GC021",),
}
"""The rules whose findings are about a figure."""


def agreed(levels: dict[str, Level], findings: Iterable[Finding]) -> dict[str, Level]:
    """Returns the levels changed to agree with the findings, so that a report is consistent.

    A figure with a known level is `ok` if no finding warns about it.
    """
    every = list(findings)
    result: dict[str, Level] = {}
    for figure, rules in _RULES.items():
        severities = {each.severity for each in every if each.id in rules}
        if "bad" in severities:
            result[figure] = "bad"
        elif "warn" in severities:
            result[figure] = "warn"
        elif figure in levels:
            result[figure] = "ok"
    return result
