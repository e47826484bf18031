"""The functions that read logs, compare runs and draw several runs together."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar, Unpack, cast, overload

from gctrace_analyzer import frames, units
from gctrace_analyzer.analysis.cycles import with_metrics
from gctrace_analyzer.analysis.settings.environment import of_process, started_in
from gctrace_analyzer.analysis.settings.known import ProgramFacts, Settings, given_settings
from gctrace_analyzer.analysis.thresholds import limits as service_limits
from gctrace_analyzer.analysis.thresholds import thresholds_from
from gctrace_analyzer.errors import BadSettingError, unexpected
from gctrace_analyzer.files import listed, matching
from gctrace_analyzer.ingest.clock import Clock, moment
from gctrace_analyzer.ingest.read import InputOptions, ReadOptions, read_log
from gctrace_analyzer.ingest.sources import SERVER, Input, SourceFacts, is_server
from gctrace_analyzer.present.format import short_paths
from gctrace_analyzer.present.plots.binning import BINS, checked
from gctrace_analyzer.run import Run

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

    import pandas as pd
    import polars as pl
    from matplotlib.figure import Figure as MatplotlibFigure
    from plotly.graph_objects import Figure as PlotlyFigure

    from gctrace_analyzer.advise.expectation import Promise
    from gctrace_analyzer.comparison import Comparison
    from gctrace_analyzer.ingest.sniff import Kind
    from gctrace_analyzer.live import Live
    from gctrace_analyzer.present.plots.accessor import (
        AxesTarget,
        Backend,
        Drawn,
        OnAxes,
        OnMatplotlib,
        OnPlotly,
        Target,
    )
    from gctrace_analyzer.present.report import Report
    from gctrace_analyzer.prometheus.access import ServerOptions

    Frame: TypeAlias = pl.DataFrame | pl.LazyFrame | pd.DataFrame | frames.ArrowStream
    Several: TypeAlias = Mapping[str, Run] | Sequence[Run]
    Runs: TypeAlias = Input | Frame | Run | Sequence[Input | Frame | Run]

    class ReadKwargs(InputOptions, ProgramFacts, ServerOptions, total=False):
        """The keyword arguments of `read`."""

        thresholds: Mapping[str, float] | None
        slo: Mapping[str, str | float] | None
        pid: int | None
        progress: Callable[[SourceFacts], None] | None


_Frame = TypeVar("_Frame")
_Value = TypeVar("_Value")


def read(
    *origins: Input | Frame | Sequence[Input | Frame],
    strict: bool = False,
    kind: Kind | None = None,
    columns: Sequence[str] | None = None,
    year: int | None = None,
    tz: str | tzinfo | None = None,
    start: str | datetime | None = None,
    gogc: str | float | None = None,
    memory_limit: str | float | None = None,
    container_limit: str | float | None = None,
    cpu_limit: str | float | None = None,
    go_version: str | None = None,
    ballast: str | float | None = None,
    off_heap: str | float | None = None,
    pid: int | None = None,
    unpack_limit: str | float | None = None,
    thresholds: Mapping[str, float] | None = None,
    slo: Mapping[str, str | float] | None = None,
    progress: Callable[[SourceFacts], None] | None = None,
    **server: Unpack[ServerOptions],
) -> Run:
    """Reads the logs of one service.

    Formats, log prefixes and compression (gz, xz, bz2, zst, zip) are detected automatically.

    Args:
        origins: paths, `-` for standard input, URLs (http, https), open files, bytes, or the
            address of a Prometheus server as `prometheus+http://…`. Several inputs are one log: the
            parts of a rotated log from the oldest to the newest, MemStats dumps and messages about
            OOM kills in any order. Or one pandas, Polars or Arrow frame with the columns of
            `cycles`, as `from_frame` takes it.
        strict: raise an error for a line that looks like runtime output but cannot be parsed.
        kind: the kind of all inputs, instead of detecting it.
        columns: column names for a MemStats table without a header.
        year: the year of the first line, for timestamps without a year.
        tz: the time zone of timestamps, and of `start`, without one: `Europe/Berlin`, a `ZoneInfo`.
        start: when the first process started, for logs without timestamps.
        gogc: the GOGC the program ran with, in percent or `off`.
        memory_limit: its GOMEMLIMIT, as `2GiB`; like all sizes here, a number is in MiB.
        container_limit: the memory limit of its container or unit, as `2GiB`.
        cpu_limit: the number of CPUs that the program may use, such as 1.5 or `500m`.
        go_version: the Go version it was built with, such as `1.22`.
        ballast: the size of its heap ballast.
        off_heap: memory of the process that Go does not count (cgo, mmap), such as `200MiB`.
        pid: the program, if it still runs on this machine (Linux). Its GOGC and GOMEMLIMIT at the
            start are read from `/proc/PID/environ`, and hold until its heap goals contradict them.
        unpack_limit: the largest size an input may unpack to, such as `64GiB`.
        thresholds: other limits for findings and episodes, by name (`Thresholds`), such as
            `{"gc_cpu_warn": 0.05}`.
        slo: service levels, such as `{"pause": "2ms", "gc_cpu": "5%"}`. The report shows how far
            each was kept, and findings are judged by them.
        progress: called after every few megabytes with the facts about the current input.
        server: the processes and the time range to read from a server, such as
            `match='{job="api"}', since="6h"`, and how to reach it (`ServerOptions`).

    Raises:
        UnreadableInputError: an input is missing, a folder, or not a log; with `strict` also if
            a line could not be parsed.
        NoDataError: the inputs are empty, or nothing in them comes from the Go runtime.
        BadSettingError: an argument is not valid.

    >>> read("samples/leak-into-limit-go1.24.log", container_limit="512MiB")
    <Run of samples/leak-into-limit-go1.24.log: 73 cycles, 1 process>
    """
    origins = listed(origins)
    options = _options(
        strict=strict,
        kind=kind,
        columns=columns,
        year=year,
        tz=tz,
        start=start,
        unpack_limit=unpack_limit,
    )
    limits = thresholds_from(_by_name("thresholds", thresholds or {}, '{"gc_cpu_warn": 0.05}'))
    promised = service_limits(_by_name("slo", slo or {}, '{"pause": "2ms"}'))
    given = partial(
        given_settings,
        gogc=gogc,
        memory_limit=memory_limit,
        cpu_limit=cpu_limit,
        go_version=go_version,
        ballast=ballast,
        off_heap=off_heap,
    )
    # Invalid facts are reported before anything is read.
    settings = _started(given(container_limit=container_limit), pid)
    if any(map(frames.is_frame, origins)):
        return Run(frames.log_of(origins), settings, limits, promised)
    inputs = cast("tuple[Input, ...]", origins)
    if not (server or any(map(is_server, inputs))):
        return Run(read_log(inputs, options, progress=progress), settings, limits, promised)
    from gctrace_analyzer.prometheus.access import ServerOptions
    from gctrace_analyzer.prometheus.question import with_answers

    valid = [*(read.__kwdefaults__ or ()), *ServerOptions.__annotations__]
    for name in server.keys() - ServerOptions.__annotations__:
        raise unexpected(read.__name__, name, valid)
    with ExitStack() as stack:
        files, limit_mib = with_answers(inputs, server, stack)
        log = read_log(files, options, progress=progress)
    if container_limit is None and len(origins) == 1:
        settings = _started(given(container_limit=limit_mib), pid)
    return Run(log, settings, limits, promised)


def _started(given: Settings, pid: int | None) -> Settings:
    if pid is None:
        return given
    return started_in(given, of_process(pid), f"environment of process {pid}")


def read_prometheus(url: str, **options: Unpack[ReadKwargs]) -> Run:
    """Reads the metrics of Go processes from a Prometheus server, as `read` does.

    Args:
        url: the address of Prometheus, or of a store with the same API: Mimir, Thanos,
            VictoriaMetrics, with their path prefix.
        options: as `read` takes them: `match`, `since` and others.

    Raises:
        GctraceError: as `read`.
    """
    return read(url if is_server(url) else f"{SERVER}{url}", **options)


def live(
    *,
    year: int | None = None,
    tz: str | tzinfo | None = None,
    start: str | datetime | None = None,
    environment: Mapping[str, str] | None = None,
    **facts: Unpack[ProgramFacts],
) -> Live:
    """Returns an empty log, to which lines are added as the program writes them.

    The options are those of `read`, and `environment`: the environment variables of the program.
    Their GOGC and GOMEMLIMIT hold until the heap goals contradict them.
    """
    from gctrace_analyzer.live import Live

    how = _options(year=year, tz=tz, start=start)
    settings = started_in(given_settings(**facts), environment or {}, "environment")
    return Live(how=how, settings=settings)


def _options(**given: Unpack[InputOptions]) -> ReadOptions:
    start, tz, limit = given.get("start"), given.get("tz"), given.get("unpack_limit")
    # str() of a ZoneInfo is its name.
    name = Clock(tz=None if tz is None else str(tz)).tz
    begun = start if start is None else moment(str(start), name)
    return ReadOptions(
        strict=given.get("strict", False),
        kind=given.get("kind"),
        columns=given.get("columns"),
        clock=Clock(year=given.get("year"), tz=name, start=begun),
        unpack_limit=None
        if limit is None
        else round(units.size_mib(limit, argument="unpack_limit") * units.MIB),
    )


def cycles(*origins: Input | Frame, **options: Unpack[ReadKwargs]) -> pl.DataFrame:
    """Reads the GC cycles of a log as a Polars frame (`schema.CYCLES`).

    Short for `read(...).cycles`; takes the same arguments.

    Raises:
        GctraceError: as `read`.

    >>> cycles("samples/steady-go1.26.log").shape
    (33, 28)
    """
    return read(*origins, **options).cycles


def compare(
    before: Runs | Mapping[str, Runs],
    after: Runs | None = None,
    *,
    promise: Promise | None = None,
) -> Comparison:
    """Compares runs before and after a change: what is better, worse, or not significant.

    Args:
        before: the runs before the change: a run, a path, a pattern such as `before-*.log`, or
            several of them. Each run and each file counts as one run of the same program under
            the same setting. Or several sides by name, `{"100": "gogc100-*.log", "200": …}`:
            each is compared with the first.
        after: the runs after the change, in the same form.
        promise: the rows of `recommend` from before the change, or the JSON file with them. The row
            with the settings of a side is compared with the measured figures.

    Raises:
        BadSettingError: a side has no run, or there is only one.
        NoDataError: a run has neither a cycle nor a benchmark.
        GctraceError: as `read`.

    >>> compare("samples/steady-go1.26.log", "samples/ballast-go1.26.log")["gc_per_s"].verdict
    'better'
    """
    from gctrace_analyzer.advise.expectation import promised_by
    from gctrace_analyzer.comparison import Comparison, side_of

    promised = None if promise is None else promised_by(promise)
    if isinstance(before, Mapping):
        if after is not None or len(before) < 2:
            given = f"{len(before)} {'side' if len(before) == 1 else 'sides'}"
            raise BadSettingError("before", given, "two or more sides by name")
        return Comparison(
            [side_of(name, _some_runs("before", side)) for name, side in before.items()],
            promised=promised,
        )
    if after is None:
        raise BadSettingError("after", "", "the runs after the change")
    return Comparison(
        [
            side_of(_label(before, "before"), _some_runs("before", before)),
            side_of(_label(after, "after"), _some_runs("after", after)),
        ],
        promised=promised,
    )


def _by_name(argument: str, values: Mapping[str, _Value], example: str) -> Mapping[str, _Value]:
    """Returns values given by name; without this check, a list would end in a vague error.

    Raises:
        BadSettingError: the argument is not a mapping.
    """
    if isinstance(values, Mapping):
        return values
    raise BadSettingError(argument, str(values), f"values by name, such as {example}")


def _reports(runs: Mapping[str, Run] | Sequence[Run]) -> dict[str, Report]:
    """Returns the reports of runs by name, for a plot; by default the names of their logs.

    Raises:
        BadSettingError: they are not runs, or there is none.
    """
    several = list(runs.values()) if isinstance(runs, Mapping) else runs
    are_several = isinstance(several, list | tuple) and several
    if not are_several or not all(isinstance(run, Run) for run in several):
        example = '[run, other], or {"before": run, "after": other}'
        expected = f"runs, with or without names: {example}"
        raise BadSettingError("runs", str(runs), expected)
    if isinstance(runs, Mapping):
        return {name: run.report() for name, run in runs.items()}
    names = short_paths([run.report().title for run in several])
    numbered = (
        f"{name} ({before + 1})" if (before := names[:at].count(name)) else name
        for at, name in enumerate(names)
    )
    return {name: run.report() for name, run in zip(numbered, several, strict=True)}


def _some_runs(argument: str, side: Runs) -> list[Run]:
    """Returns the runs of one side of a comparison, which has at least one.

    Raises:
        BadSettingError: the side has no runs.
    """
    if runs := runs_of(side):
        return runs
    raise BadSettingError(argument, str(side), "at least one run, path or pattern on each side")


def runs_of(side: Runs, **options: Unpack[ReadKwargs]) -> list[Run]:
    """Returns the runs of one side of a comparison; paths and patterns are read.

    Args:
        side: a run, path, pattern or open file, or several of them. Profiles belong to the first
            other run.
        options: the options of `read`, for every file that is read here.

    Raises:
        UnreadableInputError: no file matches a pattern.
        GctraceError: as `read`.
    """
    several: Sequence[Input | Run]
    several = side if isinstance(side, list | tuple) else [cast("Input | Run", side)]
    runs = [
        part if isinstance(part, Run) else read(part, **options)
        for one in several
        for part in _expanded(one)
    ]
    profiles = [run for run in runs if run.has_only_profiles]
    others = [run for run in runs if not run.has_only_profiles]
    if not profiles or not others:
        return runs
    return [others[0].with_profiles_of(profiles), *others[1:]]


def _expanded(origin: Input | Run) -> Sequence[Input | Run]:
    if not isinstance(origin, str) or not glob.has_magic(origin) or Path(origin).exists():
        return [origin]
    return matching(origin)


def _label(side: Runs, otherwise: str) -> str:
    return Path(side).name if isinstance(side, str) and not glob.has_magic(side) else otherwise


def from_frame(frame: object, **facts: Unpack[ProgramFacts]) -> Run:
    """Makes a run from a pandas, polars or Arrow frame with the columns of `cycles`.

    Missing columns become null. If there is no `process` column, processes are detected as in
    `read`. The cycles of each process must be in the order of the log, and each log needs
    `process` numbers of its own: `.sort("process", "gc_num")` puts them in order.

    Args:
        frame: pandas, polars or Arrow.
        facts: facts about the program, as `read` takes them: `gogc=100`.

    Raises:
        MissingColumnsError: there is no `gc_num` column.
        BadSettingError: a fact is not valid, or the cycles of a process are not in order.
    """
    return Run(frames.log_of([frame]), given_settings(**facts))


def add_metrics(frame: _Frame) -> _Frame:
    """Returns the frame with the derived columns of each cycle (`schema.METRICS`).

    They are computed from neighbouring rows, so the cycles of each process must be in the order
    of the log, and each log needs `process` numbers of its own: `.sort("process", "gc_num")`
    puts them in order.

    Args:
        frame: pandas, polars (eager or lazy) or Arrow, with the columns of `cycles`. The
            result is of the same kind.

    Raises:
        MissingColumnsError: a required column is absent.
        BadSettingError: the cycles of a process are not in order, or a number is a text.

    >>> cycles("samples/steady-go1.26.log").pipe(add_metrics)["stw_total_ms"].max()
    0.289
    """
    return frames.same_kind(
        frame, lambda cycles: with_metrics(frames.in_log_order(frames.of_numbers(cycles)))
    )


@overload
def overlay(
    runs: Several, column: str | None = None, *, bins: int = BINS, **how: Unpack[OnPlotly]
) -> PlotlyFigure: ...
@overload
def overlay(
    runs: Several, column: str | None = None, *, bins: int = BINS, **how: Unpack[OnMatplotlib]
) -> MatplotlibFigure: ...
@overload
def overlay(
    runs: Several, column: str | None = None, *, bins: int = BINS, **how: Unpack[OnAxes[Target]]
) -> Target: ...
def overlay(
    runs: Several,
    column: str | None = None,
    *,
    backend: Backend = "plotly",
    ax: AxesTarget | None = None,
    panel: str | None = None,
    bins: int = BINS,
) -> Drawn:
    """Draws several runs in the same charts: pauses, times between cycles, GC CPU, live heap.

    Args:
        runs: any number of runs, or runs by name: `{"before": run, "after": other}`.
        column: draw only this column of `cycles`, `metrics` or `intervals` over time, such as
            `heap_live_mib`.
        backend: `plotly` or `matplotlib`.
        ax: Matplotlib axes to draw on: one per panel, or a single one if `panel` is given.
        panel: draw only this panel.
        bins: the number of bins; if a run has more cycles than this, each bin keeps its lowest
            and highest value.

    Raises:
        BadSettingError: there is no such panel or backend, too few axes, no such column, or no
            runs.
        MissingExtraError: the library is not installed.
    """
    from gctrace_analyzer.present.plots.accessor import drawn
    from gctrace_analyzer.present.plots.kinds.overlay import overlay

    return drawn(overlay(_reports(runs), checked(bins), column=column), backend, ax, panel)


@overload
def side_by_side(runs: Several, **how: Unpack[OnPlotly]) -> PlotlyFigure: ...
@overload
def side_by_side(runs: Several, **how: Unpack[OnMatplotlib]) -> MatplotlibFigure: ...
@overload
def side_by_side(runs: Several, **how: Unpack[OnAxes[Target]]) -> Target: ...
def side_by_side(
    runs: Several,
    *,
    backend: Backend = "plotly",
    ax: AxesTarget | None = None,
    panel: str | None = None,
) -> Drawn:
    """Draws the pauses of several runs side by side, such as one program under many Go versions.

    Args:
        runs: the runs in order, with or without names, as in `overlay`.
        backend: as in `overlay`.
        ax: as in `overlay`.
        panel: as in `overlay`.

    Raises:
        BadSettingError: there is no such panel or backend, too few axes, or no runs.
        MissingExtraError: the library is not installed.
    """
    from gctrace_analyzer.present.plots.accessor import drawn
    from gctrace_analyzer.present.plots.kinds.across import across

    return drawn(across(_reports(runs)), backend, ax, panel)
