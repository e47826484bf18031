"""For each rule, a real log on which it is reported, and the chart that shows why."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.present.plots.accessor import on
from gctrace_analyzer.present.plots.axis import axis_of
from gctrace_analyzer.present.plots.figure import Event, Figure, Level, Panel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.analysis.rules.finding import Finding
    from gctrace_analyzer.present.plots.axis import Axis
    from gctrace_analyzer.present.report import Report

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.helpers import archives

archives.unpack_all()
PICTURES = ROOT / "docs" / "pictures" / "findings"
BINS = 66
"""Points of a series: more would be too small to see, and make the picture larger."""

_WHOLE = 0.97
"""A finding about more of the log than this is about all of it, and nothing is marked."""

_NARROW = 0.006
"""The least width of what is marked, as a share of the time axis."""


@dataclass(frozen=True, slots=True)
class Example:
    """A log, and where to look.

    Attributes:
        log: its path in the repository.
        chart: plot and panel, such as `timeline gc_cpu`; several, with + between them, are drawn
            below each other; empty if no chart shows it.
        options: facts about the program, as options of the command line.
        columns: columns of `cycles` to draw, in MiB, for what has no chart of its own.
        levels: thresholds to draw in the first chart, in its unit.
    """

    log: str
    chart: str = ""
    options: dict[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()

    @property
    def charts(self) -> list[str]:
        """The plots and panels one by one."""
        return self.chart.split(" + ") if self.chart else []


_GC = "tests/corpus/gctrace"
_WILD = "tests/corpus/wild"
_RULES = "tests/corpus/rules"
_OWN = "tests/corpus/metrics/own"

EXAMPLES = {
    "GC001": Example("samples/thrash-go1.19.log", "timeline gc_cpu",
                     levels=(DEFAULT.gc_cpu_warn, DEFAULT.gc_cpu_bad)),
    "GC002": Example(f"{_GC}/go1.19-thrash/run.log", "timeline gc_cpu"),
    "GC003": Example(f"{_GC}/go1.26-steady-gogc10/run.log", "frequency interval",
                     levels=(DEFAULT.frequent_warn_ms / 1e3, DEFAULT.frequent_bad_ms / 1e3)),
    "GC004": Example(f"{_WILD}/blog-sysmon-2min-gc-forced-scvg.log", "goal goal"),
    "GC005": Example("samples/assists-go1.16.log", "timeline assist",
                     levels=(DEFAULT.assist_warn_old,)),
    "GC006": Example("samples/leak-into-limit-go1.24.log", "timeline assist"),
    "GC007": Example("samples/ballast/as-it-is.log.gz", "timeline heap"),
    "GC008": Example(f"{_GC}/go1.27-near-limit/run.log", columns=("heap_end_mib", "heap_goal_mib")),
    "GC009": Example(f"{_OWN}/gogc100/run.log.gz", "timeline pauses",
                     levels=(DEFAULT.stw_single_ms,)),
    "GC010": Example(f"{_WILD}/istio10855-steady-24pct.log", "timeline pauses",
                     levels=(DEFAULT.stw_single_ms,)),
    "GC011": Example("tests/corpus/real/caddy/gogc100-r2/run.log.gz", "timeline pauses"),
    "GC012": Example("tests/corpus/states/pushgateway/few-cpus/run.log.gz"),
    "GC013": Example("tests/corpus/states/coredns/few-cpus/run.log.gz"),
    "GC014": Example("samples/refill/service.log.gz", "goal goal"),
    "GC015": Example("samples/leak-into-limit-go1.24.log", "goal gogc",
                     levels=(DEFAULT.limit_gogc_warn, DEFAULT.limit_gogc_bad)),
    "GC016": Example("samples/leak-into-limit-go1.24.log", "timeline heap"),
    "GC017": Example("samples/leak-into-limit-go1.24.log", "timeline gc_cpu"),
    "GC018": Example("samples/refill/service.log.gz", "timeline heap",
                     {"memory-limit": "104MiB", "container-limit": "108MiB"}),
    "GC019": Example(f"{_WILD}/gogc-minus-one-goal-17592186044415.log", "timeline heap"),
    "GC020": Example(f"{_RULES}/gogc-off-idle.log", "frequency interval",
                     {"memory-limit": "100MiB"}, levels=(DEFAULT.periodic_s[1],)),
    "GC021": Example("samples/leak/service.log.gz", "live_heap live"),
    "GC023": Example("tests/corpus/settings/gojq-change-gogc.log", "timeline heap"),
    "GC024": Example("samples/forced-go1.26.log", "timeline heap"),
    "GC025": Example(f"{_WILD}/blog-sysmon-2min-gc-forced-scvg.log", "frequency interval"),
    "GC026": Example(f"{_GC}/go1.26-retune/run.log", "goal gogc"),
    "GC027": Example("samples/steady-gogc200-go1.26.log", "goal gogc", {"gogc": "100"}),
    "GC028": Example("samples/ballast-go1.26.log", "timeline heap"),
    "GC029": Example(f"{_GC}/go1.18-manygoroutines/run.log",
                     columns=("stacks_mib", "heap_live_mib")),
    "GC030": Example(f"{_GC}/go1.18-bigglobals/run.log", columns=("globals_mib", "heap_live_mib")),
    "GC032": Example(f"{_WILD}/kubeflow4793-mixer-190ms-mark.log"),
    "GC033": Example("samples/assists-go1.16.log", "timeline allocation"),
    "GC036": Example(f"{_RULES}/fragmentation.csv", "memory memory"),
    "GC038": Example("samples/oom-journal.jsonl", "timeline heap"),
    "GC039": Example("samples/oom-journal.jsonl", "timeline heap"),
    "GC041": Example(f"{_GC}/pre-1.9/go1.5.3.log"),
    "GC042": Example("samples/oom-journal.jsonl"),
    "GC043": Example("samples/go1.4.log"),
    "GC044": Example("samples/ballast/as-it-is.log.gz", "timeline pauses",
                     levels=(DEFAULT.stw_single_ms,)),
    "GC045": Example(f"{_GC}/go1.26-steady-gogc10/run.log", "goal gogc + timeline gc_cpu",
                     levels=(DEFAULT.low_gogc,)),
    "GC047": Example(f"{_RULES}/off-heap-growth.csv", "memory memory"),
    "GC046": Example("tests/corpus/metrics/own/gogc100/query-raw.json.gz"),
}  # fmt: skip
"""Examples by rule. No log of the repository shows the others well."""

_LOOKS = {
    "heap_end_mib": ("heap at the end of a cycle", "heap start"),
    "heap_goal_mib": ("heap goal", "heap goal"),
    "heap_live_mib": ("live heap (marked)", "live heap"),
    "stacks_mib": ("goroutine stacks", "resident"),
    "globals_mib": ("global variables", "resident"),
}


@cache
def report_of(log: str, options: tuple[tuple[str, str], ...]) -> Report:
    """Returns the report on a log of the repository."""
    facts: dict[str, Any] = {name.replace("-", "_"): value for name, value in options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gca.read(str(ROOT / log), **facts).report()


def reported(rule: str) -> tuple[Report, Finding]:
    """Returns the report on the example of a rule, and its finding.

    Raises:
        LookupError: the rule is not reported on its example.
    """
    example = EXAMPLES[rule]
    report = report_of(example.log, tuple(example.options.items()))
    found = [each for each in report.analysis.findings if each.id == rule]
    if not found:
        message = f"{rule} is not reported on {example.log}: choose another example"
        raise LookupError(message)
    return report, found[0]


def command(example: Example) -> str:
    """Returns the command that reports the finding."""
    options = (f" --{name} {value}" for name, value in example.options.items())
    return f"gctrace-analyze {example.log}{''.join(options)}"


def figures(rule: str) -> list[Figure]:
    """Returns the charts of a rule, with what the finding is about marked."""
    example = EXAMPLES[rule]
    if not (example.chart or example.columns):
        return []
    report, finding = reported(rule)
    axis = axis_of(report, bins=_bins(example))
    if example.columns:
        shown = [_own(report, axis, example.columns)]
    else:
        shown = [_panel(report, axis, *each.split()) for each in example.charts]
    first, *others = [_marked(each, axis, finding) for each in shown]
    return [_with_levels(first, example.levels), *others]


def _with_levels(figure: Figure, levels: tuple[float, ...]) -> Figure:
    (panel,) = figure.panels
    own = tuple(Level(f"reported: {_value(each, panel)}", each, "dot") for each in levels)
    return replace(figure, panels=(replace(panel, levels=(*panel.levels, *own)),))


def _value(level: float, panel: Panel) -> str:
    return f"{100 * level:g} %" if panel.percent else f"{level:,g} {panel.unit}"


def _bins(example: Example) -> int:
    return BINS // max(2 * len(example.charts) - 1, 1)


def _panel(report: Report, axis: Axis, plot: str, name: str) -> Figure:
    figure = on(axis, report, plot)
    panel = next(each for each in figure.panels if each.name == name)
    return replace(figure, panels=(panel,))


def _own(report: Report, axis: Axis, columns: tuple[str, ...]) -> Figure:
    marks = tuple(
        axis.mark(name, column, look) for column in columns for name, look in [_LOOKS[column]]
    )
    panel = Panel("own", "Memory, MiB", marks, unit="MiB", is_timed=True)
    figure = on(axis, report, "timeline")
    return replace(figure, panels=(panel,))


def _marked(figure: Figure, axis: Axis, finding: Finding) -> Figure:
    """Marks the range of the finding, unless that is the whole log."""
    moments = tuple(
        each for each in figure.events if each.end is None and finding.at is not None
    )
    plain = replace(figure, events=moments, notes=())
    begin, end = (axis.at(finding.process, at) for at in (finding.start_s, finding.end_s))
    if begin is None or end is None or not axis.ends:
        return replace(plain, events=(*moments, *_examples(axis, finding)))
    first, last = axis.ends
    if (end - begin) >= _WHOLE * (last - first):
        return plain
    end = max(end, begin + _NARROW * (last - first))
    severity = finding.severity if finding.severity in ("bad", "warn") else "info"
    return replace(plain, events=(Event(begin, end, finding.name, severity), *moments))


def _examples(axis: Axis, finding: Finding) -> Iterator[Event]:
    """Yields the cycles that the finding names as its examples."""
    lines = [int(each.rpartition(":")[2]) for each in finding.examples if ":" in each]
    if "line_no" in axis.cycles.columns and finding.at is None:
        found = axis.cycles.filter(pl.col("line_no").is_in(lines), pl.col("x").is_not_null())
        for number, row in enumerate(found.iter_rows(named=True)):
            name = f"gc {row['gc_num']}"
            yield Event(row["x"], None, name, "warn", row=0 if number == 0 else None)
