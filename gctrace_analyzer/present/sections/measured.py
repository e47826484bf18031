"""Runs made to compare settings: the verdict, failures, and how far to trust the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.advise.sides import sides_of
from gctrace_analyzer.analysis.compare.compare import OWN_SPREAD_RUNS
from gctrace_analyzer.analysis.compare.rounds import CPU, RSS, WALL, Measurement
from gctrace_analyzer.analysis.compare.sequential import SAME_SHARE
from gctrace_analyzer.present.document import Block, Gap, Paragraphs
from gctrace_analyzer.present.format import NONE, count, duration, mib, printable
from gctrace_analyzer.present.sections.changes import (
    end_text,
    held,
    interval,
    label_of,
    percent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gctrace_analyzer.advise.sides import Pair
    from gctrace_analyzer.analysis.compare.change import Change

_WORDS = {
    WALL.name: ("ends {} sooner", "ends {} later"),
    CPU.name: ("uses {} less CPU", "uses {} more CPU"),
    "alloc_mib_per_s": ("allocates {} less", "allocates {} more"),
}
_NO_GCTRACE = (
    "No run printed gctrace: the program is not written in Go, it ended before GC ran, or its "
    "standard error goes elsewhere."
)
_LEAST_MIB = 1.0
"""MiB. A smaller difference of memory is not mentioned."""

_THROTTLED_SHARE = 0.02
"""Share of the time of a run. Above it, the CPU limit of the container lengthens the run."""


def verdict(pairs: Sequence[Pair], measurement: Measurement) -> str:
    """Returns which side is better, for which aim, and the prediction."""
    if not any(side.cycles or side.benchmarks for side in sides_of(pairs)):
        return f"{_NO_GCTRACE} {_of_sides(pairs, measurement)}"
    return _of_sides(pairs, measurement)


def _of_sides(pairs: Sequence[Pair], measurement: Measurement) -> str:
    decider = measurement.decider.name
    better = [pair for pair in pairs if pair.changes[decider].verdict == "better"]
    if len(pairs) == 1:
        return _sentence(pairs[0], measurement)
    if better:
        sign = -1 if measurement.decider.up else 1
        best = min(better, key=lambda pair: sign * (pair.changes[decider].relative or 0.0))
        return _sentence(best, measurement)
    none = f"No side is better than {printable(pairs[0].before.label)}"
    return f"{none}. {' '.join(_sentence(pair, measurement) for pair in pairs)}"


def _sentence(pair: Pair, measurement: Measurement) -> str:
    """Returns what a side changes, at what price, and whether that was predicted."""
    label, decider = printable(pair.after.label), measurement.decider
    change = pair.changes[decider.name]
    decision = measurement.decision(pair.after.label)
    if decision is None or decision.low is None:
        if not change.before_runs or not change.after_runs:
            return f"{label}: no run that counts."
        return f"{label}: too few rounds to tell ({count(measurement.rounds, 'round')})."
    if decision.differs:
        text = f"{label} {_how_much(change, decider.name)}{_price(pair)}"
    elif decision.is_same:
        text = f"{label}: no difference above {SAME_SHARE:.0%}".replace("%", " %")
        text += f" in {_noun(decider.name)}{_price(pair)}"
    else:
        text = _undecided(pair, measurement)
    rate = pair.changes["alloc_mib_per_s"]
    if measurement.fixed_time_s and rate.verdict in ("better", "worse"):
        more = "less" if (rate.relative or 0.0) < 0 else "more"
        much = _how_much(rate, rate.metric)
        text += f"; in the same time it {much}, so it probably does {more} work"
    runs = [*measurement.counted()]
    disturbed = sum(run.disturbed for run in runs)
    doubt = f"; other work disturbed {disturbed} of {count(len(runs), 'run')}"
    promises = _promises(pair, decider.name) * decision.decides
    return f"{text}{promises}{doubt * measurement.is_disturbed}."


def _how_much(change: Change, metric: str) -> str:
    part, ends = change.relative or 0.0, change.ends or (0.0, 0.0)
    less, more = _WORDS.get(metric, (f"has {{}} lower {metric}", f"has {{}} higher {metric}"))
    low, high = sorted(abs(end) for end in ends)
    template = less if part < 0 else more
    return f"{template.format(f'{_number(part)} %')} ({_number(low)}–{_number(high)})"


def _number(part: float) -> str:
    return end_text(part, exact=True).strip("+-").removesuffix(" %")


def _noun(metric: str) -> str:
    return {WALL.name: "run time", CPU.name: "CPU time"}.get(metric, printable(metric))


def _memory(pair: Pair) -> str:
    """Returns how much memory changes; nothing if the change is not significant."""
    change = pair.changes[RSS.name]
    if not change.is_significant or change.delta is None or abs(change.delta) < _LEAST_MIB:
        return ""
    return f"{mib(abs(change.delta))} {'more' if change.delta > 0 else 'less'}"


def _price(pair: Pair) -> str:
    """Returns the same, as what another change costs or brings as well."""
    size = _memory(pair)
    return size and (f" for {size}" if size.endswith("more") else f" and takes {size}")


def _promises(pair: Pair, decider: str) -> str:
    change = pair.changes[decider]
    low, high, was = change.expected_low, change.expected_high, change.before
    if change.expected is not None and was and low is not None and high is not None:
        values = [end / was - 1 for end in (change.expected, low, high)]
        sign = -1 if (change.relative or 0.0) < 0 else 1
        middle, *ends = (sign * value for value in values)
        word = held(change)
        if change.open_because:
            word += f", as {change.open_because}"
        low, high = sorted(ends)
        to = " to " if low < 0 else "–"
        shown = [f"{100 * value:z.0f}" for value in (middle, low, high)]
        return f"; predicted {shown[0]} ({shown[1]}{to}{shown[2]}): {word}"
    known = [change for change in pair.changes.values() if change.expected is not None]
    if not known:
        return ""
    kept = sum(change.held is True for change in known)
    broken = sum(change.held is False for change in known)
    parts = [f"{kept} of {count(len(known), 'prediction')} held"]
    parts += [f"{broken} did not"] if broken else []
    still = len(known) - kept - broken
    parts += [f"{still} undecided"] if still else []
    return f"; {', '.join(parts)}"


def _undecided(pair: Pair, measurement: Measurement) -> str:
    """Returns what is known of a side, and how many rounds would decide it."""
    label, decider = printable(pair.after.label), measurement.decider.name
    change = pair.changes[decider]
    between = interval(change)
    text = (
        f"{label}: undecided after {count(measurement.rounds, 'round')}, {_noun(decider)} "
        f"{percent(change.relative or 0.0)}{f' ({between})' * (between != NONE)}"
    )
    needed = measurement.rounds_needed(pair.after.label)
    text += (
        "; the runs differ too much to decide it"
        if needed is None
        else f"; about {needed:,} rounds would decide it"
    )
    # Other work makes runs longer, but takes none of their CPU time.
    cpu = pair.changes[CPU.name]
    if measurement.rounds < OWN_SPREAD_RUNS:
        return text
    if decider == CPU.name or not cpu.is_significant:
        return f"{text}; it takes {size}" if (size := _memory(pair)) else text
    return f"{text}; it {_how_much(cpu, CPU.name)}{_price(pair)}"


def failures(measurement: Measurement) -> Iterator[Block]:
    """Yields the runs that failed, with their last lines."""
    for run in measurement.failed:
        problem, *lines = (run.error or "").splitlines()
        yield Gap()
        where = "in the warm-up" if run.warm_up else f"in round {run.round}"
        yield Paragraphs(
            [f"✗ {printable(run.side)} failed {where}: {printable(problem)} ({run.log})"],
            "bold red",
        )
        yield Paragraphs([printable(line) for line in lines[-5:]], "dim", indent=4)


_REPEATED = " A disturbed run was repeated: the log of the second try has -again in its name."


def notes(measurement: Measurement) -> Iterator[str]:
    """Yields other possible causes of changed figures besides the settings."""
    runs = [*measurement.counted()]
    disturbed = [run for run in runs if run.disturbed]
    if disturbed:
        cpus, log = max((run.foreign_cpus or 0.0, run.log) for run in disturbed)
        is_few = measurement.is_disturbed and measurement.rounds < OWN_SPREAD_RUNS
        judged = f" GC CPU and pauses have a verdict from {OWN_SPREAD_RUNS} rounds on." * is_few
        yield (
            f"Other work disturbed {len(disturbed)} of {count(len(runs), 'run')}: it took up to "
            f"{cpus:.1f} CPUs ({log}). On an idle machine, times may differ less; their intervals "
            f"include this.{judged}{_REPEATED * any('-again' in run.log for run in runs)}"
        )
    if (took := measurement.fixed_time_s) and measurement.metrics[0] == WALL:
        yield (
            f"Run time is not a result: the program ran for {duration(took)} under every setting, "
            f"probably because it has to. {label_of(measurement.decider.name)} is compared "
            "instead. If the program does as much work as it can in this time, print how much it "
            "did and compare that (--metric-up NAME=REGEX)."
        )
    stopped = [
        run for run in runs if (run.throttled_s or 0.0) > _THROTTLED_SHARE * (run.wall_s or 0.0)
    ]
    if stopped:
        longest = max(stopped, key=lambda run: run.throttled_s or 0.0)
        yield (
            f"The CPU limit of the container stopped {len(stopped)} of {count(len(runs), 'run')}, "
            f"for up to {duration(longest.throttled_s)}: run times are those under this limit."
        )


def method(pairs: Sequence[Pair], measurement: Measurement) -> str:
    """Returns how changes and intervals were computed."""
    decider = label_of(measurement.decider.name)
    looked = f" The interval of {decider} allows for stopping as soon as it decides."
    looked = "" if measurement.fixed else looked
    share = (
        f" The intervals hold for all {len(pairs)} comparisons together."
        if len(pairs) > 1
        else ""
    )
    return (
        f"Change: relative to {printable(pairs[0].before.label)}, within each of "
        f"{count(measurement.rounds, 'round')}, with its 95 % interval.{looked}"
        f"{share} ~: not significant."
    )
