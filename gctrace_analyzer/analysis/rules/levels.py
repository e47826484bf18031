"""How a log's headline figures stand against their thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gctrace_analyzer.analysis.rules.finding import Finding
    from gctrace_analyzer.analysis.summary import Summary
    from gctrace_analyzer.analysis.thresholds import Thresholds

Level = Literal["ok", "warn", "bad"]


def levels(summary: Summary, thresholds: Thresholds, *, old_pacer: bool) -> dict[str, Level]:
    """`ok`, `warn` or `bad` for `gc_cpu assist pauses live_heap`; absent: not judged.

    `old_pacer`: Go 1.17 or before, which plans for some assist time.
    """
    t = thresholds
    found: dict[str, Level] = {}
    if (cpu := summary.gc_cpu_share) is not None:
        found["gc_cpu"] = _level(cpu, t.gc_cpu_warn, t.gc_cpu_bad)
    if (assist := summary.assist_share_of_gc_cpu) is not None:
        limit = t.assist_warn_old if old_pacer else t.assist_warn
        felt = (summary.assist_share_of_cpu or 0.0) >= t.assist_burden
        found["assist"] = "warn" if assist > limit and felt else "ok"
    if (p99 := summary.stw_p99_ms) is not None:
        found["pauses"] = _level(p99, t.stw_warn_ms, t.stw_bad_ms)
    growth, low = summary.live_heap_growth_mib_per_h, summary.live_heap_growth_mib_per_h_low
    if growth is not None and low is not None and (summary.span_s or 0) >= t.growth_min_span_s:
        steep = growth > t.growth_warn_per_h * (summary.live_heap_p50_mib or 0)
        found["live_heap"] = "warn" if low > 0 and steep else "ok"
    return found


def _level(value: float, warn: float, bad: float) -> Level:
    return "bad" if value > bad else "warn" if value > warn else "ok"


_RULES = {
    "gc_cpu": ("GC001",),
    "assist": ("GC005",),
    "pauses": ("GC009", "GC010", "GC011"),
    "live_heap": ("GC021",),
}


def agreed(judged: dict[str, Level], found: Iterable[Finding]) -> dict[str, Level]:
    """The levels as the findings have them: a report says one thing only.

    What no finding warns of is `ok`, if it could be judged at all.
    """
    said = list(found)
    result: dict[str, Level] = {}
    for key, rules in _RULES.items():
        severities = {each.severity for each in said if each.id in rules}
        if "bad" in severities:
            result[key] = "bad"
        elif "warn" in severities:
            result[key] = "warn"
        elif key in judged:
            result[key] = "ok"
    return result
