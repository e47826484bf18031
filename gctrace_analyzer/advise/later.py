"""A live heap that grows: what it makes of a setting later, and how long a setting lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.advise.model import predict
from gctrace_analyzer.analysis.thresholds import DEFAULT

if TYPE_CHECKING:
    from gctrace_analyzer.advise.base import Base
    from gctrace_analyzer.advise.model import Setting

_HALVINGS = 24
"""To a ten-millionth of the memory there is."""


def refusal(base: Base, horizon_s: float) -> str | None:
    """Why nothing can be said of so much later."""
    if not horizon_s or base.growth_is_known:
        return None
    seen = base.seen_s if base.growth is None else base.growth.span_s
    if base.growth is None and seen >= DEFAULT.growth_min_span_s:
        return None
    grows = "its live heap grows, but " if base.growth is not None else ""
    return (
        f"{grows}{seen:.0f} s are too short to tell what the live heap does later: give a log "
        "of minutes"
    )


def grown_mib(base: Base, horizon_s: float) -> tuple[float, float, float]:
    """What the live heap gains until then: lower end, middle, upper end (95 %)."""
    growth = base.growth
    if growth is None or not horizon_s:
        return 0.0, 0.0, 0.0
    hours = (horizon_s + _behind_s(base)) / 3600
    return hours * growth.low, hours * growth.mib_per_h, hours * growth.high


def _behind_s(base: Base) -> float:
    """What figures start from is the middle of some time before the log's end."""
    if base.load is None or base.growth is None:
        return 0.0
    return max(base.growth.end_s - base.load.begin_s - base.load.span_s / 2, 0.0)


def lasts(base: Base, setting: Setting) -> dict[str, float]:
    """Hours until the growing live heap thrashes under the limit or fills the container.

    Nothing where it does not grow, where nothing bounds it, or where the log is too short to
    tell. The interval is that of the growth (95 %).
    """
    growth = base.growth
    if growth is None or not base.growth_is_known:
        return {}
    most = max(setting.limit or 0.0, base.room_mib or 0.0)
    if not most or not _fails(base, setting, most):
        return {}
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _fails(base, setting, middle) else (middle, high)
    behind = _behind_s(base) / 3600
    rates = {"": growth.mib_per_h, "_low": growth.high, "_high": growth.low}
    return {f"lasts_h{end}": max(low / rate - behind, 0.0) for end, rate in rates.items()}


def _fails(base: Base, setting: Setting, grown: float) -> bool:
    assert base.load is not None
    found = predict(base.load, base.now, setting, non_heap=base.non_heap, grown_mib=grown)
    if found.thrash in ("likely", "certain"):
        return True
    memory = base.memory_mib(found.heap_peak, found.non_heap, setting.ballast)
    return base.room_mib is not None and memory > base.room_mib
