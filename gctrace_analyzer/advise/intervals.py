"""The 80 % intervals of predictions, from the measured errors of the model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.advise.load import Load
    from gctrace_analyzer.advise.model import Prediction

_Z80 = 1.2815515655446004
"""Quantile of the normal distribution: 80 % lies within this many standard deviations."""

_SPREAD: dict[str, tuple[float, ...]] = {
    "gc_per_s": (0.04, 0.05, 0.12, 0.10, 0.14, 0.08, 0.3, 0.1),
    "gc_cpu_share": (0.17, 0.12, 0.30, 0.45, 0.18, 0.0, 0.2, 0.0),
    "gc_cpu_with_idle_share": (0.115, 0.10, 0.20, 0.25, 0.02, 0.03, 0.2, 0.0),
    "assist_share_of_gc_cpu": (0.24, 0.32, 0.60, 1.1, 0.0, 0.0, 0.3, 0.0),
    "heap_peak_mib": (0.035, 0.02, 0.02, 0.05, 0.06, 0.06, 0.4, 0.25),
    "live_heap_mib": (0.009, 0.005, 0.01, 0.02, 0.05, 0.02, 0.25, 0.12),
    "stw_share": (0.20, 0.14, 0.40, 0.40, 0.0, 0.08, 0.3, 0.0),
}
"""Standard deviation of the logarithm of the error: always; per factor e of distance in cycles/s;
times 1/√cycles of the log, and of the predicted run; by how CPU-bound and by how bursty the
program is (measured on 640 pairs of runs); by how unsteady its live heap is (measured on gofmt
and the Go compiler); by how CPU-bound it is under the pacer of Go 1.17 and earlier
(docs/predictions.md)."""

QUANTITIES = tuple(_SPREAD)
"""The predicted quantities that have an interval."""

_RESOLUTION_MIB = 0.5
"""Resolution of the size allocated between two cycles, which the log prints in whole MiB."""

_SHARES = ("gc_cpu_share", "gc_cpu_with_idle_share", "assist_share_of_gc_cpu", "stw_share")
_ATTRIBUTES = {"heap_peak_mib": "heap_peak", "live_heap_mib": "marked_live"}


def interval(
    quantity: str, load: Load, center: Prediction, others: Sequence[Prediction]
) -> tuple[float, float, float]:
    """Returns the lower end, the value and the upper end of a predicted quantity.

    Args:
        quantity: one of `QUANTITIES`.
        load: the load that the prediction starts from.
        center: the prediction.
        others: predictions under other plausible assumptions; the interval covers them.
    """
    value = _value(quantity, center)
    deviation = _deviation(quantity, load, center)
    apart = [math.log(_value(quantity, other) / value) for other in others]
    low = -math.hypot(_Z80 * deviation, min(0.0, *apart))
    high = math.hypot(_Z80 * deviation, max(0.0, *apart))
    if center.thrash in ("certain", "likely") and quantity != "live_heap_mib":
        more = 0.2 if quantity == "heap_peak_mib" else 0.4
        low, high = low - more, high + more
    # The log truncates sizes to whole MiB.
    truncation = 0.4 if quantity.endswith("_mib") else 0.0
    most = 1.0 if quantity in _SHARES else math.inf
    ends = (value * math.exp(low) - truncation, value, value * math.exp(high) + truncation)
    low, value, high = (min(max(each, 0.0), most) for each in ends)
    return low, value, high


def _deviation(quantity: str, load: Load, center: Prediction) -> float:
    """Standard deviation of the logarithm of the error."""
    always, by_distance, by_cycles, by_target, by_bound, by_burst, by_unsteady, by_old = (
        _SPREAD[quantity]
    )
    target_cycles = max(center.gc_per_s * load.span_s, 1.5)
    distance = abs(math.log(max(center.gc_per_s, 1e-6) / load.gc_per_s))
    return math.sqrt(
        always**2
        + (by_distance * distance) ** 2
        + by_cycles**2 / load.cycles
        + by_target**2 / target_cycles
        + (by_bound * load.cpu_bound) ** 2
        + (by_burst * load.burst) ** 2
        + (by_unsteady * load.unsteady) ** 2
        + (0.0 if load.new_pacer else by_old * load.cpu_bound) ** 2
        + (0.0 if quantity.endswith("_mib") else _RESOLUTION_MIB / load.gap_mib) ** 2
    )


def _value(quantity: str, prediction: Prediction) -> float:
    return max(float(getattr(prediction, _ATTRIBUTES.get(quantity, quantity))), 1e-9)
