"""`run.plot`: every plot of a run, by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Literal, Required, TypedDict, TypeVar, overload

from gctrace_analyzer.errors import BadSettingError, NoDataError, by_nearness
from gctrace_analyzer.present.plots import matplotlib_backend, plotly_backend
from gctrace_analyzer.present.plots.axis import Axis, axis_of
from gctrace_analyzer.present.plots.binning import BINS, checked
from gctrace_analyzer.present.plots.kinds import (
    assist,
    frequency,
    goal,
    live_heap,
    memory,
    mmu,
    pause_heatmap,
    pauses,
    sites,
    timeline,
    trade_off,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias, Unpack

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure
    from plotly.graph_objects import Figure as PlotlyFigure

    from gctrace_analyzer.present.plots.figure import Figure
    from gctrace_analyzer.present.report import Report
    from gctrace_analyzer.schema import PlotName

    AxesTarget: TypeAlias = Axes | Sequence[Axes]
    Drawn: TypeAlias = PlotlyFigure | MatplotlibFigure | AxesTarget

Target = TypeVar("Target", bound="AxesTarget")
Backend = Literal["plotly", "matplotlib"]


class OnPlotly(TypedDict, total=False):
    """The keyword arguments for a plot as a Plotly figure."""

    backend: Literal["plotly"]
    ax: None
    panel: str | None


class OnMatplotlib(TypedDict, total=False):
    """The keyword arguments for a plot as a Matplotlib figure."""

    backend: Required[Literal["matplotlib"]]
    ax: None
    panel: str | None


class OnAxes(TypedDict, Generic[Target], total=False):
    """The keyword arguments for a plot drawn on axes."""

    backend: Backend
    ax: Required[Target]
    panel: str | None


class DrawOptions(TypedDict, total=False):
    """The keyword arguments of a plot."""

    backend: Backend
    ax: AxesTarget | None
    panel: str | None
    bins: int


def described(report: Report, name: str, bins: int = BINS) -> Figure:
    """Returns the description of a plot, not yet drawn.

    Raises:
        BadSettingError: there is no such plot, or no such number of bins.
    """
    if name not in PLOTS:
        raise BadSettingError.unknown("plot", name, PLOTS)
    return on(axis_of(report, bins=checked(bins)), report, name)


def on(axis: Axis, report: Report, name: str) -> Figure:
    """Returns the description of a plot on an axis that several plots of a report share."""
    figure = PLOTS[name](report, axis)
    return replace(figure, title=f"{figure.title} · {report.title.rpartition('/')[2]}")


def with_data(figure: Figure) -> Figure:
    """Returns the figure if it has any data.

    Raises:
        NoDataError: there is no data; the error says what the input lacks, and how to get it.
    """
    if figure.drawn:
        return figure
    problem = " ".join(["this input has no data for it.", *figure.notes]).rstrip(".")
    others = ", ".join(name for name in PLOTS if name != figure.name)
    hint = f"Other plots: {others}." if figure.notes else _CYCLES
    name = f"plot {figure.name}"
    raise NoDataError(name, problem, _NEEDED.get(figure.name, hint))


_CYCLES = "It needs GC cycles: GODEBUG=gctrace=1 ./server 2> run.log records them."
_NEEDED = {
    "memory": (
        "It needs three or more MemStats dumps, or scrapes of metrics, along with the log.\n"
        "  Of a program with expvar, repeat: curl http://localhost:8080/debug/vars >> vars.json"
    ),
    "sites": (
        "Of a program with net/http/pprof, this fetches one:\n"
        "  curl -o heap.pb.gz http://localhost:6060/debug/pprof/heap"
    ),
}
"""Data other than GC cycles that plots need."""


def drawn(
    figure: Figure,
    backend: Backend = "plotly",
    ax: AxesTarget | None = None,
    panel: str | None = None,
) -> Drawn:
    """Draws a figure with one of the libraries; `ax` implies Matplotlib.

    Raises:
        BadSettingError: there is no such backend or panel, or too few axes.
        MissingExtraError: the library is not installed.
        NoDataError: there is nothing to draw.
    """
    with_data(figure)
    if panel is not None:
        chosen = tuple(candidate for candidate in figure.panels if candidate.name == panel)
        if not chosen:
            raise BadSettingError.unknown(
                "panel", panel, (candidate.name for candidate in figure.panels)
            )
        figure = replace(figure, panels=chosen)
    if ax is not None or backend == "matplotlib":
        return matplotlib_backend.draw(figure, ax)
    if backend != "plotly":
        raise BadSettingError("backend", str(backend), "plotly or matplotlib")
    return plotly_backend.draw(figure)


class Drawing:
    """One plot of a run. Call it to draw it.

    Without arguments it returns a Plotly figure; with `backend="matplotlib"` a Matplotlib
    figure; with `ax=` it draws on your axes (one per panel, or one together with `panel=`) and
    returns them. If there are more than `bins` cycles, each bin keeps its lowest and highest
    value, and the figure says so.

    Raises:
        BadSettingError: there is no such panel or backend, or too few axes.
        MissingExtraError: the library is not installed.
        NoDataError: the input has no data for it.
    """

    def __init__(self, report: Callable[[], Report], name: PlotName) -> None:
        self._report, self._name = report, name

    @overload
    def __call__(self, *, bins: int = BINS, **how: Unpack[OnPlotly]) -> PlotlyFigure: ...
    @overload
    def __call__(
        self, *, bins: int = BINS, **how: Unpack[OnMatplotlib]
    ) -> MatplotlibFigure: ...
    @overload
    def __call__(self, *, bins: int = BINS, **how: Unpack[OnAxes[Target]]) -> Target: ...
    def __call__(
        self,
        *,
        backend: Backend = "plotly",
        ax: AxesTarget | None = None,
        panel: str | None = None,
        bins: int = BINS,
    ) -> Drawn:
        """Draws the plot."""
        return drawn(described(self._report(), self._name, bins), backend, ax, panel)

    def __repr__(self) -> str:
        return f"<plot {self._name}: call it to draw it>"


class _Plot(property):
    """A descriptor for the plot with the name of the attribute."""

    def __init__(self, figure: Callable[[Report, Axis], Figure]) -> None:
        self.figure, self.__doc__ = figure, figure.__doc__

    def __set_name__(self, _: type, name: PlotName) -> None:
        self._name = name

    def __get__(self, plots: Plots | None, _: Any = None) -> Drawing:  # type: ignore[override]
        if plots is None:
            return self  # type: ignore[return-value]  # `help` asks the class
        return Drawing(plots.report, self._name)


class Plots:
    """The plots of a run: `run.plot.timeline()` and the others. See `Drawing` for arguments."""

    timeline = _Plot(timeline.timeline)
    """Heap, GC CPU, mark assist, pauses and allocation over time, with episodes."""
    pauses = _Plot(pauses.pauses)
    """Pauses by phase: their distribution, and over time."""
    pause_heatmap = _Plot(pause_heatmap.pause_heatmap)
    """How many pauses of each length there were, over time."""
    frequency = _Plot(frequency.frequency)
    """Time between cycles: over time, and its distribution."""
    assist = _Plot(assist.assist)
    """Mark assist against allocation rate."""
    live_heap = _Plot(live_heap.live_heap)
    """The live heap with its growth and the time until it reaches the limit."""
    goal = _Plot(goal.goal)
    """The heap goal, what sets it, and the effective GOGC."""
    mmu = _Plot(mmu.mmu)
    """Minimum mutator utilization by window length."""
    trade_off = _Plot(trade_off.trade_off)
    """GC CPU against peak heap, with the present and the recommended setting."""
    memory = _Plot(memory.memory)
    """Heap obtained from the system and heap needed, from MemStats."""
    sites = _Plot(sites.sites)
    """The functions that allocate, and those that hold what grew, from heap profiles."""

    def __init__(self, report: Callable[[], Report]) -> None:
        self.report = report

    def __repr__(self) -> str:
        return "<plots: " + ", ".join(PLOTS) + ">"

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Raises an error that names the existing plots, the nearest first."""
            error = f"no plot {name!r}. Plots: {', '.join(by_nearness(name, PLOTS))}"
            raise AttributeError(error)

        def __call__(self, name="timeline", **_):
            """Raises an error that says how to draw a plot."""
            nearest = by_nearness(name, PLOTS)[0]
            error = f"run.plot is not a function. Did you mean run.plot.{nearest}()?"
            raise TypeError(error)

    def draw(self, name: PlotName, **options: Unpack[DrawOptions]) -> Drawn:
        """Draws the plot with this name.

        Raises:
            BadSettingError: there is no such plot, panel or backend, or too few axes.
            MissingExtraError: the library is not installed.
        """
        how: Any = options
        return Drawing(self.report, name)(**how)


PLOTS = {name: plot.figure for name, plot in vars(Plots).items() if isinstance(plot, _Plot)}
