"""The metrics of a comparison: unit, direction, and how much runs differ by chance.

Metrics are compared on the scale log(value + floor), so changes are factors, and values below
the floor do not differ from zero in practice.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from gctrace_analyzer.analysis.pauses import PHASES, pauses
from gctrace_analyzer.frozen import frozen

if TYPE_CHECKING:
    import polars as pl

    from gctrace_analyzer.analysis.summary import Summary

Better = Literal["lower", "by load"]


@frozen
class Metric:
    """A figure that is compared.

    Attributes:
        name: the name of the figure.
        unit: the unit of its values.
        floor: differences of this size, in `unit`, are rounding or too small to matter.
        noise: how much runs of the same program and setting differ, beyond the standard error
            within each run, as the standard deviation of the logarithm. If it is None, the
            metric has no interval and no verdict.
        limited_noise: the same if a memory limit sets the goal, which amplifies differences.
        better: `lower` if a lower value is better. `by load` if that depends: lower is better
            if the load is given, higher for a program that does as much work as it can.
    """

    name: str
    unit: str
    floor: float
    noise: float | None
    limited_noise: float | None
    better: Better = "lower"

    def scaled(self, value: float) -> float:
        """Returns the value on the scale of the comparison."""
        return math.log(max(value, 0.0) + self.floor)

    def unscaled(self, scaled: float) -> float:
        """Returns the value for a number on the scale of the comparison."""
        return max(math.exp(scaled) - self.floor, 0.0)


METRICS = (
    Metric("gc_cpu_share", "0–1", 0.0005, 0.10, 0.16),
    Metric("gc_cpu_with_idle_share", "0–1", 0.0005, 0.06, 0.08),
    Metric("gc_per_s", "1/s", 0.005, 0.04, 0.12),
    Metric("assist_share_of_gc_cpu", "0–1", 0.01, 0.06, 0.06),
    Metric("assist_share_of_cpu", "0–1", 0.0005, 0.10, 0.18),
    Metric("stw_share", "0–1", 0.00002, 0.10, 0.18),
    Metric("stw_p50_ms", "ms", 0.005, 0.20, 0.20),
    Metric("stw_p99_ms", "ms", 0.02, 0.30, 0.30),
    Metric("stw_max_ms", "ms", 0.02, None, None),
    Metric("stw_sweep_term_p50_ms", "ms", 0.005, 0.10, 0.45),
    Metric("stw_sweep_term_p99_ms", "ms", 0.02, 0.30, 0.30),
    Metric("stw_mark_term_p50_ms", "ms", 0.005, 0.15, 0.15),
    Metric("stw_mark_term_p99_ms", "ms", 0.02, 0.40, 0.40),
    Metric("alloc_mib_per_s", "MiB/s", 0.2, 0.04, 0.08, "by load"),
    Metric("live_heap_p50_mib", "MiB", 1.0, 0.015, 0.02),
    Metric("true_live_heap_mib", "MiB", 1.0, 0.01, 0.01),
    Metric("heap_goal_p50_mib", "MiB", 1.0, 0.015, 0.045),
    Metric("heap_peak_mib", "MiB", 1.0, 0.02, 0.03),
)
"""The metrics. Their noise was measured on repeated runs of one program
(docs/comparison.md)."""

NAMED = {metric.name: metric for metric in METRICS}
"""The metrics by name."""

_PHASES = {column.removesuffix("_ms"): phase for phase, column in PHASES.items()}


def figures(summary: Summary, spans: pl.DataFrame) -> dict[str, float | None]:
    """Returns the value of each metric; None where it is unknown.

    Args:
        summary: the summary of the run.
        spans: those of the same run; without gctrace, the phases of a pause are unknown.
    """
    has_phases = all(name in spans.columns for name in PHASES.values())
    table = pauses(spans).iter_rows(named=True) if has_phases else ()
    rows = {row["phase"]: row for row in table}
    values = {
        f"{prefix}_{which}": rows[phase][which] if phase in rows else None
        for prefix, phase in _PHASES.items()
        for which in ("p50_ms", "p99_ms")
    }
    return {
        metric.name: values[metric.name]
        if metric.name in values
        else getattr(summary, metric.name)
        for metric in METRICS
    }


QUANTILES: dict[str, tuple[tuple[str, ...], float]] = {
    "stw_p50_ms": (tuple(PHASES.values()), 0.5),
    "stw_p99_ms": (tuple(PHASES.values()), 0.99),
    "stw_sweep_term_p50_ms": (("stw_sweep_term_ms",), 0.5),
    "stw_sweep_term_p99_ms": (("stw_sweep_term_ms",), 0.99),
    "stw_mark_term_p50_ms": (("stw_mark_term_ms",), 0.5),
    "stw_mark_term_p99_ms": (("stw_mark_term_ms",), 0.99),
    "live_heap_p50_mib": (("heap_live_mib",), 0.5),
    "heap_goal_p50_mib": (("heap_goal_mib",), 0.5),
}
"""The metrics that are quantiles: the columns whose values are pooled, and the quantile."""
