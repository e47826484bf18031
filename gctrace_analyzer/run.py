"""`Run`: what `read` returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Never

import polars as pl

from gctrace_analyzer import frames, schema, units
from gctrace_analyzer.advise.advice import Advice
from gctrace_analyzer.advise.policy import parse_objective, parse_target, recommend
from gctrace_analyzer.advise.whatif import PRESENT, combined, tried, usual
from gctrace_analyzer.analysis import selection
from gctrace_analyzer.analysis.analysis import Analysis
from gctrace_analyzer.analysis.rules import finding
from gctrace_analyzer.analysis.settings.known import ProgramFacts, Settings
from gctrace_analyzer.analysis.summary import FIGURES, Summary
from gctrace_analyzer.analysis.thresholds import DEFAULT, Quantity, Thresholds
from gctrace_analyzer.errors import BadSettingError, Suggesting, unexpected
from gctrace_analyzer.present.format import count
from gctrace_analyzer.present.predicted import Predictions
from gctrace_analyzer.present.report import Report
from gctrace_analyzer.present.run_summary import RunSummary

if TYPE_CHECKING:
    import pandas as pd

    from gctrace_analyzer.advise.objective import Aim
    from gctrace_analyzer.advise.prediction.outcome import Predictor
    from gctrace_analyzer.advise.whatif import GogcValues, Present, SizeValues
    from gctrace_analyzer.analysis.checks import Check
    from gctrace_analyzer.analysis.postmortem.memory_of_dumps import Memory
    from gctrace_analyzer.analysis.postmortem.post_mortems import PostMortem
    from gctrace_analyzer.ingest.read import Log
    from gctrace_analyzer.ingest.sources import SourceFacts
    from gctrace_analyzer.present.plots.accessor import Plots
    from gctrace_analyzer.present.plots.palette import Theme
    from gctrace_analyzer.schema import TableName


class _Table(property):
    """A descriptor for the table with the name of the attribute."""

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name
        self.__doc__ = f"Frame (`schema.{name.upper()}`) of {schema.ABOUT[name]}."

    def __get__(self, run: Run | None, _: Any = None) -> pl.DataFrame:  # type: ignore[override]
        if run is None:
            return self  # type: ignore[return-value]  # `help` asks the class
        return run.analysis.log.tables[self._name]


_OF_COMMANDS = (
    "advice", "analysis", "has_only_profiles", "line_range", "with_notes", "with_profiles_of",
)  # fmt: skip
"""Attributes of a run that only the command line uses."""


class Run(Suggesting):
    """The garbage collection of one service, read from its logs.

    The tables are Polars frames with the columns of `gctrace_analyzer.schema`; figures come
    from `summary()`, `pauses()` and `windows()`, explanations from `findings()` and
    `post_mortems()`, advice from `whatif()` and `recommend()`. Tables that were read are
    attributes (`run.cycles`), what is computed is a method (`run.pauses()`), and
    `run.table(name)` returns either. The whole report is `print(run.summary())`, `to_html()`,
    `to_markdown()` and `to_json()`.

    >>> from gctrace_analyzer import read
    >>> read("samples/steady-go1.26.log")
    <Run of samples/steady-go1.26.log: 33 cycles, 1 process>
    """

    cycles = _Table()
    """The GC cycles, one row per cycle, with values as printed (`schema.CYCLES`)."""
    processes = _Table()
    """The processes in the log, one row per program run (`schema.PROCESSES`)."""
    scavenges = _Table()
    """What the scavenger printed (`GODEBUG=scavtrace=1`)."""
    pacer = _Table()
    """What the pacer printed (`GODEBUG=gcpacertrace=1`)."""
    scans = _Table()
    """What `GODEBUG=gctrace=2` printed about scanning (Go 1.25 and later)."""
    rejected = _Table()
    """Lines that look like runtime output but could not be parsed, with the reason."""
    memstats = _Table()
    """Dumps of runtime.MemStats, one row per dump."""
    cycle_pauses = _Table()
    """The pauses that MemStats dumps remember, one row per cycle (`schema.CYCLE_PAUSES`)."""
    oom_kills = _Table()
    """Processes killed for memory, one row per kill."""
    oom_invocations = _Table()
    """Invocations of the OOM killer that killed nothing."""
    oom_tasks = _Table()
    """The tasks that the kernel listed when its OOM killer ran."""
    unit_events = _Table()
    """Exits, kills, restarts and CPU accounting of systemd units."""
    container_states = _Table()
    """States of containers, as Docker and Kubernetes report them."""
    runtime_fatal = _Table()
    """The Go runtime's own out-of-memory errors."""
    benchmarks = _Table()
    """Runs of benchmarks of `go test -bench`, and where their cycles stand."""

    def __init__(
        self,
        log: Log,
        settings: Settings | None = None,
        thresholds: Thresholds = DEFAULT,
        slo: Mapping[Quantity, float] | None = None,
    ) -> None:
        self._log, self._given = log, settings
        self._thresholds, self._slo = thresholds, slo
        self._analysis = Analysis(log, settings, thresholds, slo)
        self._advice = Advice(self._analysis)
        self._report = Report(self._analysis, self._advice)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in _OF_COMMANDS]

    def __repr__(self) -> str:
        names = ", ".join(source.name for source in self.sources) or "frame"
        rows = count(len(self.cycles), "cycle")
        if self.cycles.is_empty() and len(self.memstats):
            rows = count(len(self.memstats), "dump")
        return f"<Run of {names}: {rows}, {count(len(self.processes), 'process', 'processes')}>"

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    @property
    def intervals(self) -> pl.DataFrame:
        """What happened between successive dumps or scrapes (`schema.INTERVALS`)."""
        return self._analysis.dumps.intervals

    @property
    def metrics(self) -> pl.DataFrame:
        """The cycles with their derived columns (`schema.METRICS`), as `add_metrics` adds them."""
        return self._analysis.metrics

    @property
    def sources(self) -> tuple[SourceFacts, ...]:
        """The known facts about each input."""
        return self._log.sources

    @property
    def settings(self) -> Settings:
        """GOGC, limits and other settings, given to `read` or found in the inputs."""
        return self._analysis.settings

    @property
    def analysis(self) -> Analysis:
        """Every derived table, computed once, when it is first used."""
        return self._analysis

    @property
    def advice(self) -> Advice:
        """The baseline of predictions and the default recommendation."""
        return self._advice

    @property
    def is_empty(self) -> bool:
        """True if nothing was read except lines that could not be parsed."""
        names = (name for name in schema.LOG_TABLES if name not in ("processes", "rejected"))
        known = self._log.profiles or any(
            source.found.get("notes") for source in self._log.sources
        )
        return not (known or any(len(self._log.tables[name]) for name in names))

    @property
    def has_only_profiles(self) -> bool:
        """Whether nothing but profiles was read."""
        return bool(self._log.profiles) and self.cycles.is_empty() and self.memstats.is_empty()

    def with_profiles_of(self, others: Sequence[Run]) -> Run:
        """Returns the run with the profiles of other runs of the same program added."""
        profiles = (*self._log.profiles, *(p for run in others for p in run._log.profiles))
        return self._of(replace(self._log, profiles=profiles))

    def table(self, name: TableName) -> pl.DataFrame:
        """Returns a table by its name.

        Tables that were read: `cycles`, `processes`, `memstats`, `oom_kills` and the others in
        `schema.LOG_TABLES`. Derived tables: `metrics` (the cycles with derived columns),
        `intervals` (between two MemStats dumps or scrapes), `pauses`, `windows` (of 10 s),
        `episodes`, `segments`, `regimes`, `mmu`, `findings`, `recommendations`, `post_mortems`,
        `memory`, and of profiles `sites` and `gc_functions`.

        Raises:
            BadSettingError: there is no such table.
        """
        derived: dict[str, Callable[[], pl.DataFrame]] = {
            "metrics": lambda: self.metrics,
            "intervals": lambda: self.intervals,
            "pauses": self.pauses,
            "windows": self.windows,
            "episodes": self.episodes,
            "segments": self.segments,
            "regimes": self.regimes,
            "mmu": self.mmu,
            "findings": self.findings,
            "recommendations": self.recommend,
            "post_mortems": lambda: _rows("post_mortems", self._analysis.post_mortems),
            "memory": lambda: _rows("memory", self._analysis.memory),
            "sites": self.sites,
            "gc_functions": self.gc_functions,
        }
        if name in derived:
            return derived[name]()
        if name not in self._log.tables:
            raise BadSettingError.unknown("table", name, [*self._log.tables, *derived])
        return self._log.tables[name]

    def to_pandas(self, table: TableName = "cycles") -> pd.DataFrame:
        """Returns a table as a pandas frame; integer columns with nulls stay integers.

        Raises:
            BadSettingError: there is no such table.
            MissingExtraError: pandas is not installed.
        """
        return frames.to_pandas(self.table(table))

    def summary(self) -> RunSummary:
        """Returns the figures of the whole input with their caveats."""
        summary = self._analysis.figures
        figures = {name: getattr(summary, name) for name in Summary.__dataclass_fields__}
        return RunSummary(**figures, report=self.report())

    def pauses(self) -> pl.DataFrame:
        """Returns the stop-the-world pauses by phase (`schema.PAUSES`)."""
        return self._analysis.pauses

    def windows(self, every: units.Duration = "10s") -> pl.DataFrame:
        """Returns the figures of consecutive windows of equal length (`schema.WINDOWS`).

        Args:
            every: length of a window, as `"10s"`, in seconds, or a timedelta.

        Raises:
            BadSettingError: `every` is not a duration above 0, or makes over a million windows.
        """
        return self._analysis.windows(units.duration_s(every, argument="every"))

    def episodes(self) -> pl.DataFrame:
        """Returns the time ranges in which something unusual happened (`schema.EPISODES`)."""
        return self._analysis.episodes

    def segments(self) -> pl.DataFrame:
        """Returns start-up, load phases and idle times, with figures (`schema.SEGMENTS`)."""
        return self._analysis.segments

    def regimes(self) -> pl.DataFrame:
        """Returns the settings that each process ran under, and when (`schema.REGIMES`).

        GOGC and the memory limit are given, stated by an input, or inferred from the heap goals
        with their intervals. Off is infinite, unknown is null.
        """
        return self._analysis.regimes

    def mmu(self) -> pl.DataFrame:
        """Returns the minimum mutator utilization by window length (`schema.MMU`)."""
        return self._analysis.mmu

    def findings(self) -> pl.DataFrame:
        """Returns what is wrong and what to do (`schema.FINDINGS`), causes before effects."""
        return finding.frame(self._analysis.findings)

    def post_mortems(self) -> list[PostMortem]:
        """Returns an explanation of every process killed for memory."""
        return list(self._analysis.post_mortems)

    def memory(self) -> list[Memory]:
        """Returns how much heap each program with MemStats dumps obtained and needed."""
        return list(self._analysis.memory)

    def sites(self, *, lines: bool = False) -> pl.DataFrame:
        """Returns where the program allocates, from the profiles in the input (`schema.SITES`).

        One row per function and profile, those that allocate most first. With a log, the rows also
        have the GC CPU cost of each.

        Args:
            lines: return one row per line of the program instead.
        """
        profiled = self._analysis.profiled
        if profiled is None:
            return schema.empty("sites")
        return profiled.lines if lines else profiled.sites

    def gc_functions(self) -> pl.DataFrame:
        """Returns the CPU time of GC in the CPU profiles of the input (`schema.GC_FUNCTIONS`)."""
        profiled = self._analysis.profiled
        return schema.empty("gc_functions") if profiled is None else profiled.gc_functions

    @property
    def plot(self) -> Plots:
        """The plots of this run: `run.plot.timeline()`; `repr(run.plot)` lists all."""
        from gctrace_analyzer.present.plots.accessor import Plots

        return Plots(self.report)

    def process(self, number: int) -> Run:
        """Returns the run of one process, with the post-mortem of its own kill only.

        Raises:
            BadSettingError: there is no process with that number.
        """
        return self._of(selection.one_process(self._analysis, number))

    def between(self, begin: units.Duration, end: units.Duration | None = None) -> Run:
        """Returns the run of the cycles that start from one time on and before another.

        Kills after the range have no post-mortem. By wall time, filter the frame:
        `gca.read(run.cycles.filter(pl.col("wall_time") >= time))` is a run too.

        Args:
            begin: since the start of each process: seconds, `"60s"`, or a timedelta. Or both ends:
                `"60s..120s"`, `"60s.."` or `"..120s"`.
            end: in the same form; by default the end of the log.

        Raises:
            BadSettingError: a time is not a duration, or no cycle started in the range.
        """
        low, high = units.range_s(begin, end, argument="between")
        return self._of(selection.between(self._analysis, low, high))

    def line_range(self, first: int, last: int) -> Run:
        """Returns the run of a range of input lines, first and last line included.

        Raises:
            BadSettingError: the numbers are not whole, or in the wrong order.
        """
        return self._of(selection.line_range(self._analysis, first, last))

    def whatif(
        self,
        gogc: GogcValues | Present = PRESENT,
        memory_limit: SizeValues | Present = PRESENT,
        ballast: SizeValues | Present = PRESENT,
        *,
        less: Mapping[str, str | float] | None = None,
        horizon: str | float | None = None,
        evidence: Run | Sequence[Run] = (),
        **facts: Never,
    ) -> Predictions:
        """Predicts the figures under other settings (`schema.WHATIF`), with 80 % intervals.

        The present setting is among the rows. Without a setting to try, it tries GOGC=50, 100, 200
        and 400, or the recommended memory limit if the present one is too low.

        Args:
            gogc: one or several values of GOGC, or a range such as "100..400", which is five
                values in equal ratios; None or "off" means off. If left out, the present setting.
            memory_limit: one or several limits, as "1GiB" or in MiB; None or "off" means off.
            ballast: one or several ballast sizes, in the same form.
            less: functions that would allocate less, including their callees: `{"main.decode":
                "50%"}`. The input needs a heap profile. The settings are predicted with and without
                this saving; the live heap stays unchanged.
            horizon: predict this far ahead, as "12h" or in seconds, extrapolating the growth
                of the live heap. By default, now.
            evidence: a run of the same program at another setting, or several. Each log
                gives a prediction; the result is their mean. Logs at a similar setting count more.
            facts: not accepted here: pass facts about the program to `gca.read`.

        Raises:
            BadSettingError: a value is not a valid setting, or a function is not in the profile.
        """
        _refuse(self.whatif, facts)
        baseline, others = self._with_evidence(evidence)
        if not less and gogc is memory_limit is ballast is PRESENT:
            gogc, memory_limit = usual(self.advice.recommendations)
        settings = combined(baseline.now, gogc, memory_limit, ballast)
        horizon_s = units.duration_s(horizon, argument="horizon") if horizon else 0.0
        if less:
            from gctrace_analyzer.analysis.sites.profiled import Profiled

            profiled = self._analysis.profiled or Profiled((), self.summary)
            kept = profiled.kept_share(less)
            settings += [replace(setting, allocation=kept) for setting in settings]
        rows = tried(baseline, settings, horizon_s)
        return Predictions.of(rows, self._report, others)

    def recommend(
        self,
        *,
        aim: Aim = "balanced",
        gc_cpu_target: str | float | None = None,
        evidence: Run | Sequence[Run] = (),
        **facts: Never,
    ) -> Predictions:
        """Recommends settings (`schema.RECOMMENDATIONS`), the best first.

        The present setting is always among the rows, and may be the best. The recommended settings
        fit the container if its limit is known: `gca.read(path, container_limit="2GiB")`.

        Args:
            aim: what to optimise for: balanced, cpu, memory or latency.
            gc_cpu_target: the GC CPU share to aim for, as 0.03 or "3%".
            evidence: runs of the same program at other settings; see `whatif`.
            facts: not accepted here: pass facts about the program to `gca.read`.

        Raises:
            BadSettingError: there is no such aim, or the target is not a share.
        """
        _refuse(self.recommend, facts)
        objective = parse_objective(aim)
        target = parse_target(gc_cpu_target)
        baseline, others = self._with_evidence(evidence)
        if objective == "balanced" and target is None and not others:
            rows = self._advice.recommendations
        else:
            rows = recommend(baseline, aim=objective, gc_cpu_target=target)
        return Predictions.of(rows, self._report, others)

    def _with_evidence(self, evidence: Run | Sequence[Run]) -> tuple[Predictor, list[Report]]:
        runs = tuple(evidence) if isinstance(evidence, Iterable) else (evidence,)
        if not all(isinstance(run, Run) for run in runs):
            expected = "runs of the same program, such as [gca.read(path)]"
            raise BadSettingError("evidence", str(evidence), expected)
        baseline = self._advice.with_evidence([run.advice for run in runs])
        return baseline, [run.report() for run in runs]

    def check(self, *conditions: str) -> list[Check]:
        """Checks conditions; `held` of each result says whether it is true, `str` gives the reason.

        `held` is None if the log lacks the figure.

        Args:
            conditions: for example `stw_p99_ms>2`, `gc_cpu_share>10%`,
                `finding:bad`, `finding:GC016`.

        Raises:
            BadSettingError: a condition is not valid.

        >>> from gctrace_analyzer import read
        >>> print(read("samples/steady-go1.26.log").check("gc_per_s>1")[0])
        gc_per_s>1: gc_per_s is 16.45
        """
        from gctrace_analyzer.analysis.checks import Facts, condition

        facts = Facts(self._analysis.figures.to_dict(), lambda: self._analysis.findings)
        return [condition(text, FIGURES).check(facts) for text in conditions]

    def report(self) -> Report:
        """Returns the data that every output format shows."""
        return self._report

    def to_json(self) -> str:
        """Returns the whole report as JSON text; `json.loads` makes plain values of it."""
        from gctrace_analyzer.present import json

        return json.dumps(self._report)

    def to_markdown(self) -> str:
        """Returns the report as Markdown, for an issue or a pull request."""
        from gctrace_analyzer.present import markdown
        from gctrace_analyzer.present.sections.report import document

        return markdown.dumps(document(self._report))

    def to_html(self, *, theme: Theme = "auto") -> str:
        """Returns the report as one HTML file that opens without a network, with all charts.

        Args:
            theme: the first colours of the page: light, dark, or auto (as the reader's system).
        """
        from gctrace_analyzer.present.html import report_page

        return report_page.dumps(self._report, theme=theme)

    def with_notes(self, change: Callable[[str], str]) -> Run:
        """Returns the run with each note about reading its inputs changed by `change`."""
        return self._of(replace(self._log, notes=tuple(map(change, self._log.notes))))

    def _of(self, log: Log) -> Run:
        return Run(log, self._given, self._thresholds, self._slo)


def _refuse(method: Callable[..., object], facts: Mapping[str, object]) -> None:
    """Refuses arguments that a method does not have: facts about the program belong to `read`."""
    for name, value in facts.items():
        where = ""
        if name in ProgramFacts.__annotations__:
            where = f" It is a fact about the program: gca.read(path, {name}={value!r})."
        if name in ("gogc", "memory_limit", "ballast"):
            where += f" To try it: run.whatif({name}={value!r})."
        raise unexpected(method.__name__, name, method.__annotations__, where)


def _rows(name: str, values: Sequence[PostMortem | Memory]) -> pl.DataFrame:
    rows = [item.to_dict() for item in values]
    return pl.DataFrame(rows, schema=schema.polars_schema(name), orient="row")
