"""Recordings of real programs by a real Prometheus, together with the gctrace of the same processes."""

from __future__ import annotations

from functools import lru_cache

from lab.evaluation import accuracy
from tests.conftest import CORPUS


def compared(*, given_limits: bool = True) -> tuple[accuracy.Compared, ...]:
    """Returns every file of metrics with what the gctrace of its time shows.

    Args:
        given_limits: whether GOGC and the memory limit are given where the metrics lack them.
    """
    # To a cache, `compared()` and `compared(given_limits=True)` are two different calls.
    return _compared(given_limits)


@lru_cache(maxsize=2)
def _compared(given_limits: bool) -> tuple[accuracy.Compared, ...]:
    return tuple(accuracy.compared(CORPUS / "scraped", given_limits=given_limits))


@lru_cache(maxsize=1)
def forecasts() -> tuple[accuracy.Forecast, ...]:
    """Returns what runs without a limit predict of those next to them with another GOGC."""
    return tuple(accuracy.forecasts(compared()))
