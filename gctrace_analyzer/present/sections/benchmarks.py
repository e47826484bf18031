"""Benchmarks compared: which of them allocate more or less, or cost more or less GC CPU."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.compare.change import OTHER_MACHINE
from gctrace_analyzer.analysis.compare.metrics import DECIDING, PER_OP
from gctrace_analyzer.analysis.compare.sequential import SAME_SHARE
from gctrace_analyzer.present.document import Folded, Paragraphs, Table
from gctrace_analyzer.present.format import count, printable, shortened
from gctrace_analyzer.present.sections.changes import label_of, percent, value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gctrace_analyzer.advise.sides import Pair
    from gctrace_analyzer.analysis.compare.change import Change
    from gctrace_analyzer.present.document import Block

_SHOWN = 16
"""Benchmarks; of more, those that changed are shown first."""

_NAMED = 3
"""Benchmarks that a sentence names."""

_GC_CPU = "gc_cpu_ns_per_op"
_ROOM = 30
"""Characters of a name."""


def verdict(pair: Pair) -> str:
    """Returns in one sentence which benchmarks are worse, and which are better."""
    total = count(len(pair.benchmarks), "benchmark")
    parts: list[str] = []
    for word, more in (("worse", "more"), ("better", "less")):
        costs = {
            name: cost for name, own in pair.benchmarks.items() if (cost := _cost(own, word))
        }
        # What is allocated is exact; CPU time also depends on the machine.
        several = sorted(
            costs,
            key=lambda name: (costs[name].metric == _GC_CPU, -abs(costs[name].relative or 9.0)),
        )
        named = ", ".join(
            f"{printable(name)} {_changed(costs[name])}" for name in several[:_NAMED]
        )
        rest = f" and {len(several) - _NAMED} more" if len(several) > _NAMED else ""
        if costs:
            of = total if not parts else str(len(pair.benchmarks))
            verb = "costs" if len(costs) == 1 else "cost"
            parts.append(f"{len(costs)} of {of} {verb} {more}: {named}{rest}")
    if parts:
        return f"{'; '.join(parts)}."
    if not any(
        own[metric].is_tested for own in pair.benchmarks.values() for metric in DECIDING
    ):
        return f"There is too little evidence to tell changes of {total} from chance."
    return f"No significant change of allocation or GC CPU per operation in {total}."


def costs(pair: Pair) -> dict[str, list[str]]:
    """Returns the benchmarks that are better, and those that are worse."""
    return {
        word: [name for name, own in pair.benchmarks.items() if _cost(own, word)]
        for word in ("better", "worse")
    }


def _cost(changes: Mapping[str, Change], word: str) -> Change | None:
    """Returns the first change of what decides that has this verdict; None if none has."""
    return next((changes[name] for name in DECIDING if changes[name].verdict == word), None)


def _changed(change: Change) -> str:
    if change.relative is None:
        return f"{value(change.metric, change.after)} after 0"
    return f"{percent(change.relative)} {label_of(change.metric)}"


def blocks(pair: Pair) -> Iterator[Block]:
    """Yields a table with one row per benchmark; Markdown folds those that did not change."""
    if len(pair.benchmarks) <= _SHOWN:
        yield from tables(pair)
    else:
        changed = [*dict.fromkeys(name for names in costs(pair).values() for name in names)]
        brief = [_table(pair, changed)] if changed else []
        yield Folded("All benchmarks", partial(tables, pair), brief)
    notes = [
        f"Only in {printable(side.label)}: "
        + ", ".join(map(printable, sorted(alone)[:_NAMED]))
        + (f" and {len(alone) - _NAMED} more" if len(alone) > _NAMED else "")
        + "."
        for side in (pair.before, pair.after)
        if (alone := set(side.benchmarks) - pair.benchmarks.keys())
    ]
    if not any(own["bytes_per_op"].before for own in pair.benchmarks.values()):
        notes.append(
            "No B/op and allocs/op: run the benchmarks with -benchmem to compare them."
        )
    yield Paragraphs([*notes, _method(pair)], "dim", indent=2)


def other_machine(pair: Pair) -> Iterator[str]:
    """Yields a note if one side seems to have had a slower machine."""
    if any(
        own[_GC_CPU].no_verdict_because == OTHER_MACHINE for own in pair.benchmarks.values()
    ):
        times = [1 + (own["ns_per_op"].relative or 0.0) for own in pair.benchmarks.values()]
        factors = dict.fromkeys(f"{factor:.2g}" for factor in (min(times), max(times)))
        yield (
            f"All benchmarks take {' to '.join(factors)} times as long per operation, also where "
            "B/op is the same: one side probably had the slower or busier machine, so GC CPU/op "
            "has no verdict."
        )


def tables(pair: Pair) -> list[Table]:
    """Returns a table with one row per benchmark, if there are any."""
    return [_table(pair, [*pair.benchmarks])] if pair.benchmarks else []


def _table(pair: Pair, names: Sequence[str]) -> Table:
    shown = [
        metric.name
        for metric in PER_OP
        if any(pair.benchmarks[name][metric.name].after is not None for name in names)
    ]
    rows = [
        (label, *(_cell(pair.benchmarks[name][metric]) for metric in shown))
        for name, label in zip(names, shortened(names, _ROOM), strict=True)
    ]
    return Table(("Benchmark", *map(label_of, shown)), "l" + "r" * len(shown), rows)


def _cell(change: Change) -> str:
    """Formats the value after, with its change if that is significant."""
    number = value(change.metric, change.after)
    if change.verdict in ("better", "worse"):
        part = "new" if change.relative is None else percent(change.relative)
        return f"{number} {part}"
    return f"{number} {change.verdict}" if change.verdict else number


def _method(pair: Pair) -> str:
    first = next(iter(pair.benchmarks.values()))["bytes_per_op"]
    several = dict.fromkeys(map(str, filter(None, (first.before_runs, first.after_runs))))
    runs = f", {' and '.join(several)} runs of each benchmark" if several else ""
    return (
        f"Values of {printable(pair.after.label)} with their change from "
        f"{printable(pair.before.label)}{runs}. The 95 % intervals hold for all benchmarks "
        f"together. ~: not significant, or at most {100 * SAME_SHARE:.0f} %. No mark: not judged, "
        "because other work competed for the CPUs, the machine was slower, or there are too few "
        "cycles. GC CPU: CPU time of the collector per operation."
    )
