"""A memory limit near the live heap: how far to raise it, and what the container needs for that."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.candidates import HEADROOM, highest_limit, times_the_least
from gctrace_analyzer.analysis.thresholds import roomy_limit

if TYPE_CHECKING:
    from gctrace_analyzer.advise.prediction.outcome import Predictor


def higher_limit(predictor: Predictor, needed: tuple[float, float] | None) -> float | None:
    """Returns the limit that leaves room, in MiB; None if it is unknown or the present one does.

    Args:
        predictor: what is known of the program and its limit.
        needed: the lowest limit that does not thrash, and the largest live heap.
    """
    if needed is None:
        return None
    now, roomy = predictor.now.limit, roomy_limit(needed[0])
    return None if now and now >= roomy else roomy


def raising(predictor: Predictor, limit: float) -> str:
    """Returns what to raise so that a limit in MiB fits: it, and that of the container."""
    highest = highest_limit(predictor)
    if highest is None or limit <= highest:
        return f"raise GOMEMLIMIT to at least {limit:,.0f} MiB"
    room = math.ceil((limit + predictor.off_heap_mib) / HEADROOM)
    return (
        f"raise the container's memory limit to at least {room:,} MiB and GOMEMLIMIT to at least "
        f"{limit:,.0f} MiB"
    )


def raising_to_least(predictor: Predictor) -> str:
    """Returns `raising` for a present limit that is too low for the live heap; empty for others."""
    now, least = predictor.now.limit, predictor.least_limit_mib
    too_low = now and least is not None and now < least
    return raising(predictor, roomy_limit(least or 0.0)) if too_low else ""


def raise_limit(predictor: Predictor, needed: tuple[float, float] | None) -> str:
    """Returns the advice to raise a limit that is too low; empty if it is not known how far.

    The arguments are those of `higher_limit`.
    """
    limit = higher_limit(predictor, needed)
    if limit is None or needed is None:
        return ""
    order = raising(predictor, limit)
    room = "" if predictor.settings.value("container_limit_mib") else ", if there is room"
    why = times_the_least(*needed)
    return f"{order[0].upper()}{order[1:]}{room} ({why}), or keep less in memory."
