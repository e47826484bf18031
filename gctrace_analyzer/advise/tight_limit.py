"""A memory limit near the live heap: how far to raise it, and what the container needs for that."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.candidates import highest_limit
from gctrace_analyzer.analysis.postmortem.facts import MOST_OF_LIMIT
from gctrace_analyzer.analysis.thresholds import roomy_limit

if TYPE_CHECKING:
    from gctrace_analyzer.advise.prediction.outcome import Predictor


def raising(predictor: Predictor, limit: float) -> str:
    """Returns what to raise so that a limit in MiB fits: the limit, and perhaps the container's."""
    highest = highest_limit(predictor)
    if highest is None or limit <= highest:
        return f"raise GOMEMLIMIT to at least {limit:,.0f} MiB"
    if is_raised_by(predictor, highest):
        return f"raise GOMEMLIMIT to {highest:,.0f} MiB, {most_that_fits(predictor, limit)}"
    room = _container_for(predictor, limit)
    return (
        f"raise the container's memory limit to at least {room:,} MiB and GOMEMLIMIT to at least "
        f"{limit:,.0f} MiB"
    )


def is_raised_by(predictor: Predictor, highest: float) -> bool:
    """Returns whether a limit is above the present one and above the point where it thrashes."""
    least, now = predictor.least_limit_mib, predictor.now.limit
    return bool(least and now) and (least or 0.0) <= highest and (now or 0.0) < highest


def most_that_fits(predictor: Predictor, roomy: float) -> str:
    """Returns why a limit is less than the live heap needs as room, and where that would fit."""
    room = _container_for(predictor, roomy)
    return f"the most that fits the container; better {roomy:,.0f} MiB in one of {room:,} MiB"


def _container_for(predictor: Predictor, limit: float) -> int:
    return math.ceil((limit + predictor.off_heap_mib) / MOST_OF_LIMIT)


def raising_to_least(predictor: Predictor) -> str:
    """Returns `raising` if the present limit is too low for the live heap; else an empty text."""
    now, least = predictor.now.limit, predictor.least_limit_mib
    return raising(predictor, roomy_limit(least)) if now and least and now < least else ""
