"""Predictions for a growing live heap, and how long each setting lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.advise.prediction.model import SOMETIMES
from gctrace_analyzer.analysis.thresholds import DEFAULT

if TYPE_CHECKING:
    from gctrace_analyzer.advise.baseline import Baseline
    from gctrace_analyzer.advise.prediction.model import Setting

_HALVINGS = 10
"""Steps of the bisection: to a thousandth of the available memory."""


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
    """Returns the live heap's growth from the log's end until the horizon: low, middle, high.

    The interval is that of the growth (95 %).
    """
    growth = baseline.growth
    if growth is None or not horizon_s:
        return 0.0, 0.0, 0.0
    hours = horizon_s / 3600
    return hours * growth.low, hours * growth.mib_per_h, hours * growth.high


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
    rates = {"": growth.mib_per_h, "_low": growth.high, "_high": growth.low}
    return {f"lasts_h{end}": low / rate for end, rate in rates.items()}


def _fails(baseline: Baseline, setting: Setting, grown: float) -> bool:
    """Returns whether the grown heap would thrash or no longer fit into the container."""
    model = baseline.model
    assert model is not None
    found = model.look(setting, grown)
    if setting.limit and found.no_room >= SOMETIMES:
        return True
    non_heap = model.non_heap.at(found.goal, setting.ballast)
    memory = baseline.memory_mib(found.peak, non_heap, setting.ballast)
    return baseline.room_mib is not None and memory > baseline.room_mib
