"""`run.plot`: every plot of a run, by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.present.plots import (
    distributions,
    live_heap,
    matplotlib_backend,
    memory,
    plotly_backend,
    timeline,
)
from gctrace_analyzer.present.plots.axis import axis_of
from gctrace_analyzer.present.plots.binning import BINS

if TYPE_CHECKING:
    from collections.abc import Callable

    from gctrace_analyzer.present.plots.axis import Axis
    from gctrace_analyzer.present.plots.figure import Figure
    from gctrace_analyzer.present.report import Report

Backend = Literal["plotly", "matplotlib"]

PLOTS: dict[str, Callable[[Report, Axis], Figure]] = {
    "timeline": timeline.timeline,
    "pauses": distributions.pauses,
    "frequency": timeline.frequency,
    "assist": timeline.assist,
    "live_heap": live_heap.live_heap,
    "goal": timeline.goal,
    "mmu": distributions.mmu,
    "trade_off": distributions.trade_off,
    "memory": memory.memory,
}


def described(report: Report, name: str, bins: int = BINS) -> Figure:
    """The plot called `name` of a report, not yet drawn.

    Raises:
        BadSettingError: no such plot.
    """
    if name not in PLOTS:
        raise BadSettingError.unknown(argument="plot", value=name, valid=PLOTS)
    return on(axis_of(report, bins=bins), report, name)


def on(axis: Axis, report: Report, name: str) -> Figure:
    """The plot called `name` on an axis that is there: what several plots of a report share."""
    figure = PLOTS[name](report, axis)
    return replace(figure, title=f"{figure.title} · {report.title}")


def drawn(
    figure: Figure, backend: Backend = "plotly", ax: Any = None, panel: str | None = None
) -> Any:
    """The plot by one of the libraries; Axes mean Matplotlib.

    Raises:
        BadSettingError: no such backend or panel, or too few Axes.
        MissingExtraError: the library is not installed.
    """
    if panel is not None:
        chosen = tuple(each for each in figure.panels if each.name == panel)
        if not chosen:
            raise BadSettingError.unknown(
                argument="panel", value=panel, valid=(each.name for each in figure.panels)
            )
        figure = replace(figure, panels=chosen)
    if ax is not None or backend == "matplotlib":
        return matplotlib_backend.draw(figure, ax)
    if backend != "plotly":
        raise BadSettingError(
            argument="backend", value=str(backend), expected="plotly or matplotlib"
        )
    return plotly_backend.draw(figure)


class Plots:
    """The plots of a run: `run.plot.timeline()` and its like.

    Each returns a Plotly figure; with `backend="matplotlib"` a Matplotlib figure; with `ax=`
    it draws on your Axes (one per panel, or one and `panel=`). More than `bins` cycles are
    binned: each bin keeps its lowest and highest, and the figure says so.
    """

    def __init__(self, report: Callable[[], Report]) -> None:
        self._report = report

    def __repr__(self) -> str:
        return "<plots: " + ", ".join(PLOTS) + ">"

    def timeline(self, **how: Any) -> Any:
        """Heap, GC CPU, mark assist, pauses and allocation, episodes as bands."""
        return self.draw("timeline", **how)

    def pauses(self, **how: Any) -> Any:
        """Pauses by phase: distribution, and over time."""
        return self.draw("pauses", **how)

    def frequency(self, **how: Any) -> Any:
        """Time between cycles: over time, and distribution."""
        return self.draw("frequency", **how)

    def assist(self, **how: Any) -> Any:
        """Mark assist against allocation."""
        return self.draw("assist", **how)

    def live_heap(self, **how: Any) -> Any:
        """Live heap with its growth and the time to the limit."""
        return self.draw("live_heap", **how)

    def goal(self, **how: Any) -> Any:
        """Heap goal and who set it, GOGC in effect."""
        return self.draw("goal", **how)

    def mmu(self, **how: Any) -> Any:
        """Minimum mutator utilization."""
        return self.draw("mmu", **how)

    def trade_off(self, **how: Any) -> Any:
        """GC CPU against peak heap, with the present and the advised setting."""
        return self.draw("trade_off", **how)

    def memory(self, **how: Any) -> Any:
        """Heap held against heap needed, from MemStats."""
        return self.draw("memory", **how)

    def draw(
        self,
        name: str,
        *,
        backend: Backend = "plotly",
        ax: Any = None,
        panel: str | None = None,
        bins: int = BINS,
    ) -> Any:
        """The plot called `name`.

        Raises:
            BadSettingError: no such plot, panel or backend, or too few Axes.
            MissingExtraError: the library is not installed.
        """
        return drawn(described(self._report(), name, bins), backend, ax, panel)
