"""Predictions for a growing live heap, and how long each setting lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.advise.model import predict
from gctrace_analyzer.analysis.thresholds import DEFAULT

if TYPE_CHECKING:
    from gctrace_analyzer.advise.baseline import Baseline
    from gctrace_analyzer.advise.model import Setting

_HALVINGS = 24
"""Steps of the bisection: to a ten-millionth of the available memory."""


def refusal(baseline: Baseline, horizon_s: float) -> str | None:
    """Returns why the horizon cannot be predicted; None if it can."""
    if not horizon_s or baseline.growth_is_known:
        return None
    observed_s = baseline.observed_s if baseline.growth is None else baseline.growth.span_s
    if baseline.growth is None and observed_s >= DEFAULT.growth_min_span_s:
        return None
    grows = "the live heap grows, but " if baseline.growth is not None else ""
    return (
        f"{grows}{observed_s:.0f} s is too short to extrapolate the live heap: record several "
        "minutes"
    )


def grown_mib(baseline: Baseline, horizon_s: float) -> tuple[float, float, float]:
    """Returns the live heap's growth until the horizon: lower end, middle, upper end (95 %)."""
    growth = baseline.growth
    if growth is None or not horizon_s:
        return 0.0, 0.0, 0.0
    hours = (horizon_s + _age_s(baseline)) / 3600
    return hours * growth.low, hours * growth.mib_per_h, hours * growth.high


def _age_s(baseline: Baseline) -> float:
    """Returns the time from the middle of the range that the load describes to the log's end."""
    if baseline.load is None or baseline.growth is None:
        return 0.0
    return max(baseline.growth.end_s - baseline.load.begin_s - baseline.load.span_s / 2, 0.0)


def lasts(baseline: Baseline, setting: Setting) -> dict[str, float]:
    """Returns the hours until the growing live heap thrashes or fills the container.

    Empty if the heap does not grow, if nothing bounds it, or if the log is too short. The
    interval is that of the growth (95 %).
    """
    growth = baseline.growth
    if growth is None or not baseline.growth_is_known:
        return {}
    most = max(setting.limit or 0.0, baseline.room_mib or 0.0)
    if not most or not _fails(baseline, setting, most):
        return {}
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _fails(baseline, setting, middle) else (middle, high)
    age_h = _age_s(baseline) / 3600
    rates = {"": growth.mib_per_h, "_low": growth.high, "_high": growth.low}
    return {f"lasts_h{end}": max(low / rate - age_h, 0.0) for end, rate in rates.items()}


def _fails(baseline: Baseline, setting: Setting, grown: float) -> bool:
    assert baseline.load is not None
    found = predict(
        baseline.load, baseline.now, setting, non_heap=baseline.non_heap, grown_mib=grown
    )
    if found.thrash in ("likely", "certain"):
        return True
    memory = baseline.memory_mib(found.heap_peak, found.non_heap, setting.ballast)
    return baseline.room_mib is not None and memory > baseline.room_mib
