"""Benchmarks of `go test -bench`: what GC did in the runs of each, and what changed.

A benchmark does as much work as it can, so figures per second show its speed. GC is compared per
operation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.compare.change import FEW_RUNS, OTHER_MACHINE, PER_SECOND
from gctrace_analyzer.analysis.compare.compare import (
    OWN_SPREAD_RUNS,
    Paired,
    compare,
    measured_part,
)
from gctrace_analyzer.analysis.compare.metrics import (
    METRICS,
    PER_OP,
    PROPORTIONAL,
    RESULTS,
    mean_of,
)
from gctrace_analyzer.analysis.compare.sequential import SAME_SHARE
from gctrace_analyzer.analysis.thresholds import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gctrace_analyzer.analysis.analysis import Analysis
    from gctrace_analyzer.analysis.compare.change import Change
    from gctrace_analyzer.analysis.compare.compare import Measured

_NO_RESULTS = (*PROPORTIONAL, "alloc_mib_per_s")

_GC_CPU = "gc_cpu_ns_per_op"
OF_MACHINE = ("ns_per_op", _GC_CPU)
"""The figures of a benchmark that depend on the machine."""

_SLOWER = 1.1
"""Factor on the time of operations that shows a slower machine; less may be chance."""

_ALIKE = 1.2
"""Largest ratio between these factors for which all have one cause."""


def compare_benchmarks(
    before: Sequence[Analysis],
    after: Sequence[Analysis],
    *,
    side: str,
    error: float,
    rounds: Sequence[tuple[int, int]] | None = None,
) -> dict[str, dict[str, Change]]:
    """Returns the changes of each benchmark that both sides have, by its name and the metric.

    The intervals hold for all benchmarks together. A verdict is `better` or `worse` only if the
    whole interval is more than 2 % away from no change.

    Args:
        before: the runs of one side.
        after: the runs of the other side.
        side: the name of the other side.
        error: the probability that any of the intervals of a metric misses the change.
        rounds: the places of the runs of both sides that were made in the same round.
    """
    was, now = (
        [_by_benchmark(run, together=rounds is not None) for run in runs]
        for runs in (before, after)
    )
    after_names = {name for run in now for name in run}
    names = [
        name for name in dict.fromkeys(n for run in was for n in run) if name in after_names
    ]
    result = {}
    for name in names:
        sides = [[part for run in runs for part in run.get(name, ())] for runs in (was, now)]
        alpha, paired = error / len(names), None
        if rounds is not None:
            both = [(was[one].get(name), now[other].get(name)) for one, other in rounds]
            pairs = [(one[0], other[0]) for one, other in both if one and other]
            paired = Paired(pairs, alpha)
        changes = compare(
            *sides,
            side=side,
            load_is_given=False,
            paired=paired,
            metrics=(*PER_OP, *METRICS),
            error=alpha,
        )
        result[name] = {
            metric: _judged(change, in_rounds=rounds is not None)
            for metric, change in changes.items()
        }
    # In rounds, both sides had the same machine.
    if rounds is None and _is_of_machine(result):
        for own in result.values():
            own |= {
                metric: replace(own[metric], verdict=None, no_verdict_because=OTHER_MACHINE)
                for metric in OF_MACHINE
                if own[metric].is_tested
            }
    return result


def _is_of_machine(benchmarks: Mapping[str, Mapping[str, Change]]) -> bool:
    """Returns whether a slower machine explains the common factor of all times.

    That needs several benchmarks, one of which takes longer without allocating more.
    """
    times = [1 + (own["ns_per_op"].relative or 0.0) for own in benchmarks.values()]
    if len(times) < 2 or all(own["bytes_per_op"].verdict != "~" for own in benchmarks.values()):
        return False
    low, high = min(times), max(times)
    is_other = low >= _SLOWER or 0 < high <= 1 / _SLOWER
    return is_other and high <= _ALIKE * low


def _judged(change: Change, *, in_rounds: bool) -> Change:
    if change.metric in _NO_RESULTS and change.is_tested:
        return replace(change, verdict=None, no_verdict_because=PER_SECOND)
    runs = min(change.before_runs, change.after_runs)
    if change.unit == "ns/op" and not in_rounds and change.is_tested and runs < OWN_SPREAD_RUNS:
        unknown = replace(change, delta_low=None, delta_high=None, verdict=None)
        return replace(unknown, no_verdict_because=FEW_RUNS)
    if change.verdict != "~" and change.ends and min(map(abs, change.ends)) < SAME_SHARE:
        return replace(change, verdict="~")
    return change


def _by_benchmark(analysis: Analysis, *, together: bool) -> dict[str, list[Measured]]:
    """Returns the runs of each benchmark in a log by its name; `together` makes them one run."""
    rows = analysis.tables["benchmarks"]
    if rows.is_empty():
        return {}
    runs_of = rows.select("source", "first_line", "benchmark", run="line_no")
    keys = ["benchmark"] if together else ["benchmark", "source", "run"]
    cycles = _cycles_of(analysis.cycles, runs_of)
    parts = cycles.partition_by(keys, as_dict=True)
    result: dict[str, list[Measured]] = {}
    named = rows.rename({"line_no": "run"})
    for key, runs in named.partition_by(keys, maintain_order=True, as_dict=True).items():
        own = parts.get(key, cycles.clear()).drop("benchmark", "run")
        result.setdefault(str(key[0]), []).append(
            _with_figures(measured_part(own, analysis), runs)
        )
    return result


def _cycles_of(cycles: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """Returns the cycles of benchmarks with this name; `run` is the last line of a single run."""
    begun = cycles.sort("line_no").join_asof(
        runs.sort("first_line"),
        left_on="line_no",
        right_on="first_line",
        by="source",
        check_sortedness=False,
    )
    own = begun.filter(pl.col("line_no") <= pl.col("run")).drop("first_line")
    # The go command builds the next package meanwhile, and its compiler prints cycles too.
    of_process = pl.len().over("source", "run", "process")
    return own.filter(of_process == of_process.max().over("source", "run"))


def _with_figures(part: Measured, runs: pl.DataFrame) -> Measured:
    """Returns a run with its figures per operation; of several runs, the geometric means."""
    values = {metric.name: mean_of(metric, runs[metric.name].to_list()) for metric in RESULTS}
    spread: Mapping[str, float | None] = {metric.name: 0.0 for metric in RESULTS}
    values[_GC_CPU] = _gc_cpu_ns_per_op(part, values["ns_per_op"])
    own = {_GC_CPU: part.spread["gc_cpu_share"]}
    return replace(
        part, values={**part.values, **values}, spread={**part.spread, **spread, **own}
    )


def _gc_cpu_ns_per_op(part: Measured, ns_per_op: float | None) -> float | None:
    """Returns the CPU time of cycles per operation; None for too few cycles.

    It excludes the cycle that `go test` forces before each run, however many operations follow.
    """
    caused = part.spans.filter(pl.col("forced_cycles") == 0)
    if len(caused) < DEFAULT.min_cycles or not part.seconds or ns_per_op is None:
        return None
    return float(caused["gc_cpu_s"].sum()) / part.seconds * ns_per_op
