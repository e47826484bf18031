"""The metrics of a comparison: unit, direction, and how much runs differ by chance.

Metrics are compared on the scale log(value + floor), so changes are factors, and values below
the floor do not differ from zero in practice.
"""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from gctrace_analyzer.analysis.pauses import PHASES, has_phases, pauses
from gctrace_analyzer.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from gctrace_analyzer.analysis.compare.change import Change
    from gctrace_analyzer.analysis.summary import Summary

_NORMAL = 1.96
"""The 97.5 % quantile of the normal distribution."""

Better = Literal["lower", "by load", "neither"]


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
        loose_noise: the same if a memory limit sets the goal, or if other work takes the CPUs: both
            amplify differences.
        better: `lower` if a lower value is better. `by load` if that depends: lower is better if
            the load is given, higher for a program that does as much work as it can. `neither`: the
            metric is a cause, and other metrics show its costs.
    """

    name: str
    unit: str
    floor: float
    noise: float | None
    loose_noise: float | None
    better: Better = "lower"

    @property
    def is_time(self) -> bool:
        """Whether it is a time or a share of time, which waiting for a CPU lengthens."""
        return self.unit in ("0–1", "ms", "ns/op")

    def scaled(self, value: float) -> float:
        """Returns the value on the scale of the comparison."""
        return math.log(max(value, 0.0) + self.floor)

    def differs(self, change: Change) -> bool:
        """Returns whether a change exceeds what runs under one setting usually differ by."""
        was, now, runs = change.before, change.after, (change.before_runs, change.after_runs)
        if was is None or now is None or self.noise is None:
            return False
        error = self.noise * math.sqrt(sum(1 / max(count, 1) for count in runs))
        return abs(self.scaled(now) - self.scaled(was)) > _NORMAL * error

    def unscaled(self, scaled: float) -> float:
        """Returns the value for a number on the scale of the comparison."""
        return max(math.exp(scaled) - self.floor, 0.0)


METRICS = (
    Metric("gc_cpu_share", "0–1", 0.0005, 0.1, 0.13),
    Metric("gc_cpu_with_idle_share", "0–1", 0.0005, 0.08, 0.1),
    Metric("gc_per_s", "1/s", 0.005, 0.04, 0.17),
    Metric("assist_share_of_gc_cpu", "0–1", 0.01, 0.17, 0.17),
    Metric("assist_share_of_cpu", "0–1", 0.0005, 0.14, 0.2),
    Metric("stw_share", "0–1", 0.00002, 0.22, 0.22),
    Metric("stw_p50_ms", "ms", 0.005, 0.2, 0.2),
    Metric("stw_p99_ms", "ms", 0.02, 0.3, 0.3),
    Metric("stw_max_ms", "ms", 0.02, None, None),
    Metric("stw_sweep_term_p50_ms", "ms", 0.005, 0.16, 0.25),
    Metric("stw_sweep_term_p99_ms", "ms", 0.02, 0.3, 0.3),
    Metric("stw_mark_term_p50_ms", "ms", 0.005, 0.26, 0.26),
    Metric("stw_mark_term_p99_ms", "ms", 0.02, 0.4, 0.4),
    Metric("alloc_mib_per_s", "MiB/s", 0.2, 0.04, 0.07, "by load"),
    Metric("live_heap_p50_mib", "MiB", 1.0, 0.01, 0.09),
    Metric("true_live_heap_mib", "MiB", 1.0, 0.01, 0.04),
    Metric("heap_goal_p50_mib", "MiB", 1.0, 0.015, 0.075, "neither"),
    Metric("heap_peak_mib", "MiB", 1.0, 0.02, 0.07),
)
"""The metrics. Nine of ten programs stay below the noise, in 95 pairs of recorded runs under one
setting and load (`lab/evaluate compare --fit`, docs/comparison.md). Few runs have enough p99
pauses, so their noise comes from one program's repeated runs."""

PROPORTIONAL = (
    "gc_per_s", "gc_cpu_share", "gc_cpu_with_idle_share", "assist_share_of_cpu", "stw_share",
)  # fmt: skip
"""Metrics that grow in proportion to the allocation rate: with the same live heap and goal,
each cycle costs the same, and the allocation rate determines how many cycles there are."""

CPU_SHARES = ("gc_cpu_share", "gc_cpu_with_idle_share", "assist_share_of_cpu")
"""Shares of the CPU time of GOMAXPROCS: of fewer processors, the same work takes a larger share."""

CYCLES = Metric("cycles_per_run", "", 1.0, 0.04, 0.17)
"""The number of cycles, which is exact, however few they are."""

PER_RUN = (Metric("alloc_mib_per_run", "MiB", 1.0, 0.01, 0.02), CYCLES)
"""The totals of a run, compared only if each run of a side does the same work. Then they are the
cost of that work, and waiting for a CPU does not change them. The noise is that of rates."""

RESULTS = (
    Metric("ns_per_op", "ns/op", 1.0, 0.08, 0.15),
    Metric("bytes_per_op", "B/op", 8.0, 0.01, 0.01),
    Metric("allocs_per_op", "allocs/op", 0.5, 0.01, 0.01),
)
"""The results that a benchmark prints; their sums have no standard error. Less than the smallest
object per operation is a share of memory that was allocated once. In nine of ten benchmarks, B/op
differs less than this noise from run to run (244 series of ten runs of 20 ms, six modules). The
noise of the time is for a quiet machine."""

PER_OP = (*RESULTS, Metric("gc_cpu_ns_per_op", "ns/op", 1.0, 0.12, 0.2))
"""The metrics that only benchmarks have."""

DECIDING = ("bytes_per_op", "allocs_per_op", "gc_cpu_ns_per_op")
"""Metrics that decide whether a benchmark is worse, in this order. The time of an operation has
other causes too, and heaps of a few MiB differ by chance."""

NAMED = {metric.name: metric for metric in (*METRICS, *PER_RUN, *PER_OP)}
"""The metrics by name."""

_PHASES = {column.removesuffix("_ms"): phase for phase, column in PHASES.items()}


def figures(summary: Summary, spans: pl.DataFrame) -> dict[str, float | None]:
    """Returns the value of each metric; None where it is unknown.

    Args:
        summary: the summary of the run.
        spans: the spans of the same run; without gctrace, the phases of a pause are unknown.
    """
    table = pauses(spans).iter_rows(named=True) if has_phases(spans) else ()
    rows = {row["phase"]: row for row in table}
    values = {
        f"{prefix}_{which}": rows[phase][which] if phase in rows else None
        for prefix, phase in _PHASES.items()
        for which in ("p50_ms", "p99_ms")
    }
    values |= {
        "alloc_mib_per_run": summary.alloc_total_mib,
        "cycles_per_run": float(summary.cycles),
    }
    return {
        metric.name: values[metric.name]
        if metric.name in values
        else getattr(summary, metric.name)
        for metric in (*METRICS, *PER_RUN)
    }


def mean_of(metric: Metric, values: Sequence[float | None]) -> float | None:
    """Returns the geometric mean; of one value, exactly that value."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    mean = metric.unscaled(fmean(metric.scaled(value) for value in known))
    return min(max(mean, min(known)), max(known))


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
"""The metrics that are quantiles: the columns with the pooled values, and the quantile."""
