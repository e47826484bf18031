"""A memory limit near the live heap: how far to raise it, and what the container needs for that."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.candidates import HEADROOM, highest_limit
from gctrace_analyzer.analysis.thresholds import roomy_limit

if TYPE_CHECKING:
    from gctrace_analyzer.advise.prediction.outcome import Predictor


def raising(predictor: Predictor, limit: float) -> str:
    """Returns what to raise so that a limit in MiB fits: the limit, and perhaps the container's."""
    highest = highest_limit(predictor)
    if highest is None or limit <= highest:
        return f"raise GOMEMLIMIT to at least {limit:,.0f} MiB"
    room = math.ceil((limit + predictor.off_heap_mib) / HEADROOM)
    least, now = predictor.least_limit_mib, predictor.now.limit
    if least and least <= highest and (now or 0.0) < highest:
        # Less than the live heap needs as room, and more than the point where it thrashes.
        return (
            f"raise GOMEMLIMIT to {highest:,.0f} MiB, the most that fits the container, or better "
            f"to {limit:,.0f} MiB in a container of {room:,} MiB"
        )
    return (
        f"raise the container's memory limit to at least {room:,} MiB and GOMEMLIMIT to at least "
        f"{limit:,.0f} MiB"
    )


def raising_to_least(predictor: Predictor) -> str:
    """Returns `raising` if the present limit is too low for the live heap; else an empty text."""
    now, least = predictor.now.limit, predictor.least_limit_mib
    return raising(predictor, roomy_limit(least)) if now and least and now < least else ""
