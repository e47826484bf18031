"""Compared benchmarks: which allocate more or less, or cost more or less GC CPU."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.compare.benchmarks import OF_MACHINE
from gctrace_analyzer.analysis.compare.change import OTHER_MACHINE, Change
from gctrace_analyzer.analysis.compare.metrics import DECIDING, PER_OP
from gctrace_analyzer.analysis.compare.sequential import SAME_SHARE
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.present.document import Block, Folded, Paragraphs, Table
from gctrace_analyzer.present.format import NONE, count, printable, shortened
from gctrace_analyzer.present.sections.changes import (
    interval,
    label_of,
    names_of,
    percent,
    value,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gctrace_analyzer.advise.sides import Pair

_SHOWN = 24
"""Rows of all tables; if there are more, changed ones come first."""

_NAMED = 3
"""Benchmarks that a sentence names."""

_GC_CPU = "gc_cpu_ns_per_op"
_ROOM = 40
_LEAST = 24
"""Characters of a name, normally and on a narrow terminal."""


def verdict(pair: Pair) -> str:
    """Returns in one sentence which benchmarks are worse, and which are better."""
    total = count(len(pair.benchmarks), "benchmark")
    groups: list[tuple[str, list[str]]] = []
    is_slower = any(True for _ in other_machine(pair))
    times = {name: "" if is_slower else _time(own) for name, own in pair.benchmarks.items()}
    for word, more in (("worse", "more"), ("better", "less")):
        costs = {
            name: cost for name, own in pair.benchmarks.items() if (cost := _cost(own, word))
        }
        # Allocation is exact; CPU time also depends on the machine.
        several = sorted(
            costs,
            key=lambda name: (costs[name].metric == _GC_CPU, -abs(costs[name].relative or 9.0)),
        )
        named = [f"{printable(name)} {_changed(costs[name])}{times[name]}" for name in several]
        groups.append((f"cost{'s' * (len(named) == 1)} {more}", named))
    # The time has other causes too, but what costs less must not hide what takes longer.
    for word, more in (("worse", "longer"), ("better", "less time")):
        named = [
            f"{printable(name)} {_changed(own['ns_per_op'])}"
            for name, own in pair.benchmarks.items()
            if times[name] and own["ns_per_op"].verdict == word
            if not any(_cost(own, change) for change in ("better", "worse"))
        ]
        groups.append((f"{'takes' if len(named) == 1 else 'take'} {more}", named))
    parts: list[str] = []
    for what, named in groups:
        rest = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        of = len(pair.benchmarks) if parts else total
        if named:
            parts.append(f"{len(named)} of {of} {what}: {', '.join(named[:_NAMED])}{rest}")
    if parts:
        return f"{'; '.join(parts)}."
    if not any(
        own[metric].is_tested for own in pair.benchmarks.values() for metric in DECIDING
    ):
        return f"There is too little evidence to tell changes of {total} from chance."
    known = " or GC CPU" if _shows_gc_cpu(pair) else ""
    return f"No significant change of allocation{known} per operation in {total}."


def _shows_gc_cpu(pair: Pair) -> bool:
    return any(own[_GC_CPU].relative is not None for own in pair.benchmarks.values())


def costs(pair: Pair) -> dict[str, list[str]]:
    """Returns the benchmarks that are better, and those that are worse."""
    return {
        word: [name for name, own in pair.benchmarks.items() if _cost(own, word)]
        for word in ("better", "worse")
    }


def _cost(changes: Mapping[str, Change], word: str) -> Change | None:
    """Returns the first deciding change with this verdict; None without any."""
    return next((changes[name] for name in DECIDING if changes[name].verdict == word), None)


def _time(changes: Mapping[str, Change]) -> str:
    """Returns how the time of an operation changed; nothing if that is not significant."""
    time = changes["ns_per_op"]
    return f" ({_changed(time)})" if time.verdict in ("better", "worse") else ""


def _changed(change: Change) -> str:
    if change.relative is None:
        return f"{value(change.metric, change.after)} after 0"
    return f"{percent(change.relative)} {label_of(change.metric)}"


def blocks(pair: Pair) -> Iterator[Block]:
    """Yields a table per figure with one row per benchmark; of many, only changed ones."""
    if sum(len(table.rows) for table in tables(pair)) <= _SHOWN:
        yield from tables(pair)
        shown = True
    else:
        brief = _tables(pair, changed=True)
        yield Folded("All benchmarks", partial(tables, pair), brief)
        shown = bool(brief)
    notes = [
        f"Only in {printable(side.label)}: "
        + ", ".join(map(printable, sorted(alone)[:_NAMED]))
        + (f" and {len(alone) - _NAMED} more" if len(alone) > _NAMED else "")
        + "."
        for side in (pair.before, pair.after)
        if (alone := set(side.benchmarks) - pair.benchmarks.keys())
    ]
    if all(own["bytes_per_op"].delta is None for own in pair.benchmarks.values()):
        notes.append(
            "No B/op and allocs/op: run the benchmarks of both sides with -benchmem to compare "
            "them."
        )
    if not (pair.before.cycles and pair.after.cycles):
        notes.append(
            "No GC CPU/op: run the benchmarks of both sides with GODEBUG=gctrace=1 to compare it."
        )
    elif not _shows_gc_cpu(pair):
        notes.append(
            f"No GC CPU/op: it needs {DEFAULT.min_cycles} cycles of a benchmark on each side, "
            "without those that go test forces."
        )
    if shown:
        notes.append(method(pair))
    yield Paragraphs(notes, "dim", indent=2)


def other_machine(pair: Pair) -> Iterator[str]:
    """Yields a note if one side seems to have had a slower machine."""
    several = (own[metric] for own in pair.benchmarks.values() for metric in OF_MACHINE)
    if any(change.no_verdict_because == OTHER_MACHINE for change in several):
        times = [1 + (own["ns_per_op"].relative or 0.0) for own in pair.benchmarks.values()]
        factors = dict.fromkeys(f"{factor:.2g}" for factor in (min(times), max(times)))
        yield (
            f"All benchmarks take {' to '.join(factors)} times as long per operation, also where "
            "B/op is the same: one side probably had the slower or busier machine, so time/op "
            "and GC CPU/op have no verdict."
        )


def tables(pair: Pair) -> list[Table]:
    """Returns a table per figure with one row per benchmark, if there are any."""
    return _tables(pair, changed=False)


def _tables(pair: Pair, *, changed: bool) -> list[Table]:
    """Returns the non-empty tables; `changed` keeps only rows with a significant change."""
    several = [_table(pair, metric.name, changed=changed) for metric in PER_OP]
    return [table for table in several if table.rows]


def _table(pair: Pair, metric: str, *, changed: bool) -> Table:
    own = {name: changes[metric] for name, changes in pair.benchmarks.items()}
    shown = {
        name: change
        for name, change in own.items()
        if (change.verdict in ("better", "worse") if changed else change.after is not None)
    }
    rows = [
        (
            label,
            value(metric, change.before),
            value(metric, change.after),
            _relative(change),
            interval(change),
            change.verdict or NONE,
        )
        for label, change in zip(shortened([*shown], _ROOM), shown.values(), strict=True)
    ]
    head = (label_of(metric), *names_of(pair), "change", "95 % interval", "")
    return Table(head, "lrrrrl", rows, verdict=5, least=(_LEAST,), spare=(4,))


def _relative(change: Change) -> str:
    if change.relative is not None:
        return percent(change.relative)
    return "0 %" if change.delta == 0 else "from 0" if change.before == 0 else NONE


def method(pair: Pair) -> str:
    """Returns how the tables of benchmarks were computed."""
    first = next(iter(pair.benchmarks.values()))["bytes_per_op"]
    several = [*dict.fromkeys(filter(None, (first.before_runs, first.after_runs)))]
    runs = " and ".join(map(str, several))
    changes = (own[metric.name] for own in pair.benchmarks.values() for metric in PER_OP)
    reasons = dict.fromkeys(filter(None, (change.no_verdict_because for change in changes)))
    runs = f"{runs} {'run' if several == [1] else 'runs'} of each benchmark. " if runs else ""
    return (
        f"{runs}The 95 % intervals of the changes hold for all benchmarks together. ~: not "
        f"significant, or at most {100 * SAME_SHARE:.0f} %."
        + (f" –: no verdict, because {'; or '.join(reasons)}." if reasons else "")
        + " GC CPU/op: CPU time of the collector per operation." * _shows_gc_cpu(pair)
    )
