"""Plots of several runs, by the names they are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gctrace_analyzer.present.plots import distributions
from gctrace_analyzer.present.plots.accessor import drawn
from gctrace_analyzer.present.plots.binning import BINS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.present.report import Report
    from gctrace_analyzer.run import Run


def overlay(runs: Mapping[str, Run], *, bins: int = BINS, **how: Any) -> Any:
    """Runs laid over each other: pauses, times between cycles, GC CPU, live heap.

    Args:
        runs: the runs by the names they shall have: `{"before": run, "after": other}`.
        bins: points of a series; more cycles are binned, lowest and highest kept.
        how: `backend="matplotlib"`, `ax=`, `panel=`, as in `run.plot`.

    Raises:
        BadSettingError: no such panel or backend, or too few Axes.
        MissingExtraError: the library is not installed.
    """
    return drawn(distributions.compared(_reports(runs), bins), **how)


def side_by_side(runs: Mapping[str, Run], **how: Any) -> Any:
    """Pauses of runs by phase, one beside the other, as a program's under many Go versions.

    Args:
        runs: the runs by the names they shall have, in order.
        how: as in `overlay`.

    Raises:
        BadSettingError: no such panel or backend, or too few Axes.
        MissingExtraError: the library is not installed.
    """
    return drawn(distributions.across(_reports(runs)), **how)


def _reports(runs: Mapping[str, Run]) -> dict[str, Report]:
    return {name: run.report() for name, run in runs.items()}
