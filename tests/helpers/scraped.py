"""Recordings of real programs by a real Prometheus, beside the gctrace of the same processes."""

from __future__ import annotations

import sys
from functools import lru_cache

from tests.conftest import CORPUS, ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from lab import accuracy


def compared(*, told: bool = True) -> tuple[accuracy.Compared, ...]:
    """Returns every file of metrics with what the gctrace of its time shows.

    Args:
        told: whether GOGC and the memory limit are given where the metrics lack them.
    """
    # To a cache, `compared()` and `compared(told=True)` are two different calls.
    return _compared(told)


@lru_cache(maxsize=2)
def _compared(told: bool) -> tuple[accuracy.Compared, ...]:
    return tuple(accuracy.compared(CORPUS / "scraped", told=told))


@lru_cache(maxsize=1)
def forecasts() -> tuple[accuracy.Forecast, ...]:
    """Returns what runs without a limit predict of those beside them with another GOGC."""
    return tuple(accuracy.forecasts(compared()))
