"""What the what-if expected of a change that was then made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.advise.whatif import row

if TYPE_CHECKING:
    from gctrace_analyzer.advise.baseline import Baseline
    from gctrace_analyzer.advise.model import Setting

SAME_GOGC = 0.08
"""An inferred GOGC is right to some points: values this near are the same setting."""

_METRICS = {
    "gc_per_s": "gc_per_s", "gc_cpu_share": "gc_cpu_share",
    "gc_cpu_with_idle_share": "gc_cpu_with_idle_share",
    "assist_share_of_gc_cpu": "assist_share_of_gc_cpu", "stw_share": "stw_share",
    "heap_peak_mib": "heap_peak_mib",
}  # fmt: skip
"""Figures of a what-if, and the metrics they are expectations of. Its live heap is a mean, that
of the report a median: they are not held against each other."""

Expected = dict[str, dict[str, float | None]]


def expected(baseline: Baseline, wanted: Setting) -> tuple[Expected, str | None]:
    """By metric `expected`, `expected_low` and `expected_high`; or why there is nothing."""
    found = row(baseline, wanted)
    if found["refused"]:
        return {}, str(found["refused"])
    return {
        metric: {f"expected{end}": found[f"{name}{end}"] for end in ("", "_low", "_high")}
        for name, metric in _METRICS.items()
    }, None


def same_gogc(one: float | None, other: float | None) -> bool:
    """Whether two values of GOGC, which may be inferred, are the same setting."""
    if one is None or other is None:
        return False
    return one == other or abs(one / other - 1) < SAME_GOGC
