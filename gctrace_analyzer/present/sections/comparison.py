"""Comparisons as documents: whether they are fair, figures, effect of the load, prediction."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.sides import all_differences, sides_of
from gctrace_analyzer.advise.subject import root_of
from gctrace_analyzer.analysis.compare.change import BY_LOAD, CONTENDED, ONE_RUN, OTHER_PROCS
from gctrace_analyzer.analysis.compare.metrics import NAMED
from gctrace_analyzer.present.document import (
    Folded,
    Gap,
    Heading,
    Paragraphs,
    Sentence,
    Sentences,
    Statement,
    Table,
    Title,
)
from gctrace_analyzer.present.format import count, duration, mib, printable, short_paths
from gctrace_analyzer.present.report import Report
from gctrace_analyzer.present.sections import benchmarks, measured, sites
from gctrace_analyzer.present.sections.changes import (
    LOAD_NOTE,
    expectation,
    expectation_note,
    few_cycles,
    figures,
    gc_cpu_ranges,
    letters,
    names_of,
    of_load,
    percent,
    settings,
    value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gctrace_analyzer.advise.sides import Pair, Side
    from gctrace_analyzer.analysis.compare.rounds import Measurement
    from gctrace_analyzer.analysis.rules.finding import Finding
    from gctrace_analyzer.present.document import Block, Document

_FIRST = ("same_log", "other_gogc", "changed_gogc", "live_heap", "unclear_load")
"""Differences that are shown first: a log does not differ from itself, a side with several settings
has no common figure, and a different live heap means a different load."""
_KINDS = {"incomparable": "bold yellow", "changed": "bold", "note": ""}


def document(pairs: Sequence[Pair]) -> Document:
    """Returns a comparison: whether it is fair, its verdict, its figures."""
    if (measurement := pairs[0].measurement) is not None:
        return [*_measured(pairs, measurement)]
    return [*(_two_sides(pairs[0]) if len(pairs) == 1 else _several_sides(pairs))]


def _two_sides(pair: Pair) -> Iterator[Block]:
    names = names_of(pair)
    what = "benchmarks" if pair.benchmarks else "garbage collection"
    yield Title(f"Go {what}, {' and '.join(names)}")
    sides = zip(names, (pair.before, pair.after), strict=True)
    yield _labelled(Sentence(name, source(side), "bold") for name, side in sides)
    yield Gap()
    yield statement([pair])
    yield Gap()
    yield _labelled(circumstances(pair))
    yield from _figures(pair)
    yield from _further(pair)
    yield Gap()
    yield _labelled(Sentence("Note", text, "bold") for text in further_notes([pair]))
    # The table of benchmarks has its own legend.
    how = _remark(method([pair]))
    yield Folded("How changes are computed", lambda: [how]) if pair.benchmarks else how


def _several_sides(pairs: Sequence[Pair]) -> Iterator[Block]:
    yield from _opening("Go garbage collection by setting", pairs)
    if differences := all_differences(pairs):
        yield Gap()
        yield _labelled(
            Sentence("Load" if one.what == "load" else "Note", one.sentence, _KINDS[one.kind])
            for one in differences
        )
    if all(pair.benchmarks for pair in pairs):
        for pair in pairs:
            yield Gap()
            yield Heading(_against(pair))
            yield from benchmarks.blocks(pair)
    else:
        yield from settings(pairs, letters(pairs))
    yield Gap()
    several = (*notes(pairs), *_on_pairs(pairs))
    yield _labelled(Sentence("Note", text, "bold") for text in several)
    if not all(pair.benchmarks for pair in pairs):
        yield _remark(method(pairs))


def _against(pair: Pair) -> str:
    return f"{printable(pair.after.label)} against {printable(pair.before.label)}"


def _opening(title: str, pairs: Sequence[Pair]) -> Iterator[Block]:
    yield Title(title)
    sides = [source(side, label=True) for side in sides_of(pairs)]
    if brief := letters(pairs):
        sides = [": ".join(both) for both in zip(brief, sides, strict=True)]
    yield Paragraphs(sides, "bold", hanging=2)
    yield Gap()
    yield statement(pairs)


def _measured(pairs: Sequence[Pair], measurement: Measurement) -> Iterator[Block]:
    what = "Go benchmarks" if pairs[0].benchmarks else "Go garbage collection by setting"
    yield from _opening(f"{what}, measured", pairs)
    yield from measured.failures(measurement)
    if len(pairs) == 1:
        yield from _figures(pairs[0])
    else:
        yield from settings(pairs, letters(pairs))
    for pair in pairs:
        yield from _further(pair)
    yield Gap()
    first = [one for one in circumstances(pairs[0]) if one.label == "Note"] * (len(pairs) == 1)
    several = [Sentence("Note", text, "bold") for text in further_notes(pairs)]
    yield _labelled([*first, *several])
    yield _remark(method(pairs))


def _further(pair: Pair) -> Iterator[Block]:
    for table, note in further_tables(pair):
        yield table
        yield _remark(note)


def _figures(pair: Pair) -> Iterator[Block]:
    """Yields the benchmarks and the figures; figures of all benchmarks together are no headline."""
    if pair.benchmarks:
        yield from benchmarks.blocks(pair)
    own = letters([pair])
    brief = [] if pair.benchmarks else [figures(pair, headline=True, brief=own)]
    yield Folded("All figures", lambda: [figures(pair, brief=own)], brief)


def method(pairs: Sequence[Pair]) -> str:
    """Returns how changes and intervals were computed."""
    if (measurement := pairs[0].measurement) is not None:
        return measured.method(pairs, measurement)
    sides = [pairs[0].before, *(pair.after for pair in pairs)]
    runs = max(len(side.measured) for side in sides)
    means = " Figures of several runs are their geometric means." * (runs > 1)
    baseline = printable(sides[0].label) if len(pairs) > 1 else "the value before"
    return (
        f"Change: relative to {baseline}, with its 95 % interval. ~: not significant. –: not "
        "judged, such as a maximum or a figure close to one, a different load and its effects, or "
        f"the heap goal.{means}"
    )


def _labelled(sentences: Iterable[Sentence]) -> Sentences:
    return Sentences([*sentences], width=11, indent=0)


def _remark(text: str) -> Paragraphs:
    return Paragraphs([text], "dim", indent=2)


def further_tables(pair: Pair) -> Iterator[tuple[Table, str]]:
    """Yields the tables about the load and the prediction, each with its note."""
    is_other_load = pair.changes["alloc_mib_per_s"].is_significant and not pair.benchmarks
    if is_other_load and pair.measurement is None and (load := of_load(pair)) is not None:
        yield load, LOAD_NOTE
    if (predicted := expectation(pair)) is not None:
        yield predicted, expectation_note(pair)
    before, after = pair.before.profiled, pair.after.profiled
    if before and after and (changed := sites.changes(before, after, names_of(pair))):
        yield changed, sites.CHANGES_NOTE


def source(side: Side, *, label: bool = False) -> str:
    """Returns the inputs, runs, time and cycles of a side."""
    names = short_paths([printable(name) for name in side.names])
    shown = printable(side.names[0]) if len(names) == 1 else ", ".join(names[:3])
    shown += f" and {len(names) - 3} more" if len(names) > 3 else ""
    of_frame = Report(side.analyses[0], side.advices[0]).title if side.cycles else "no gctrace"
    parts = [shown if names else of_frame]
    if len(side.measured) > 1:
        parts.append(count(len(side.measured), "run"))
    if side.benchmarks and not side.cycles:
        parts += [count(len(side.benchmarks), "benchmark"), "no gctrace"]
    elif names or side.cycles:
        parts.append(duration(side.seconds) if side.seconds else "no times")
        parts.append(count(side.cycles, "cycle"))
    if len(side.measured) == 1 and (total := side.measured[0].summary.alloc_total_mib):
        parts.append(f"{mib(total)} allocated")
    title = printable(side.label)
    if label and (len(names) != 1 or title not in (names[0], shown)):
        parts.insert(0, title)
    return " · ".join(parts)


_THRASH = "GC016"
"""The finding that explains most differences if one side has it."""


def notes(pairs: Sequence[Pair]) -> Iterator[str]:
    """Yields sentences on what limits the figures of the sides."""
    if (measurement := pairs[0].measurement) is not None:
        yield from measured.notes(measurement)
        yield from few_cycles(side for side in sides_of(pairs) if side.cycles)
        return
    sides = sides_of(pairs)
    # Each benchmark is compared by its own runs, whatever the number of logs and processes.
    of_benchmarks = all(pair.benchmarks for pair in pairs)
    if len(pairs) > 1 or of_benchmarks:
        yield from _thrashing(pairs)
    yield from () if of_benchmarks else few_cycles(sides)
    for side in sides:
        if side.processes > len(side.measured) and not of_benchmarks:
            runs = count(len(side.measured), "run")
            yield (
                f"{side.label}: {side.processes} processes in {runs}. The figures cover all of "
                "them together."
            )
    if not of_benchmarks and (ranges := ", ".join(gc_cpu_ranges(sides))):
        yield f"GC CPU is compared by one value of each run. The reports have a range: {ranges}."
    if any(len(side.measured) < 2 for side in sides) and not of_benchmarks:
        where = "per side" if all(len(side.measured) < 2 for side in sides) else "on one side"
        yield (
            f"One run {where}. The intervals assume that runs of this program differ as much as "
            "those of other programs; five runs per side measure it (before=a1.log,a2.log,… "
            "after=b1.log,…)."
        )


def _thrashing(pairs: Sequence[Pair]) -> Iterator[str]:
    """Yields which other sides have too low a memory limit, so that it causes their figures."""
    first = problems(pairs)
    for side in sides_of(pairs):
        thrash = next((one for one in side.findings() if one.id == _THRASH), None)
        if thrash and (text := _headline(side, thrash)) not in first:
            yield text


def _headline(side: Side, finding: Finding) -> str:
    """Returns the headline of a finding of a side, and in how many other runs it is as well."""
    runs = sum(any(one.id == finding.id for one in run.findings) for run in side.analyses)
    likewise = f" Likewise in {count(runs - 1, 'other run')}." if runs > 1 else ""
    return f"{printable(side.label)}: {printable(finding.headline)}{likewise}"


def further_notes(pairs: Sequence[Pair]) -> Iterator[str]:
    """Yields the notes about the inputs and the predictions, except those shown first."""
    first = _FIRST if len(pairs) == 1 else ()
    for difference in all_differences(pairs):
        if difference.kind == "note" and difference.what not in first:
            yield difference.sentence
    yield from notes(pairs)
    yield from _on_pairs(pairs)


def _on_pairs(pairs: Sequence[Pair]) -> Iterator[str]:
    for pair in pairs:
        yield from benchmarks.other_machine(pair)
        if expectation(pair) is None and pair.no_expectation and not pair.benchmarks:
            is_one = pair.measurement is None and len(pairs) == 1
            what = "The new setting" if is_one else printable(pair.after.label)
            yield f"{what} was not compared with a prediction: {pair.no_expectation}."


def circumstances(pair: Pair) -> Iterator[Sentence]:
    """Yields whether a comparison is fair, and which settings changed."""
    broken = [one for one in pair.differences if one.kind == "incomparable"]
    other = [one for one in pair.differences if one.what in _FIRST]
    changed = [one.sentence for one in pair.differences if one.kind == "changed"]
    for sentence in (*broken, *other):
        yield Sentence("Note", sentence.sentence, _KINDS["incomparable"])
    if not broken and (shared := "; ".join(same(pair))):
        yield Sentence("Same", shared, "green")
    if changed:
        yield Sentence("Changed", ", ".join(changed), "bold")


COSTS = {
    "alloc_mib_per_run": ("", "less allocated per run", "more allocated per run"),
    "cycles_per_run": ("", "fewer cycles per run", "more cycles per run"),
    "gc_cpu_share": ("GC CPU", "less GC CPU", "more GC CPU"),
    "gc_per_s": ("cycles", "fewer cycles", "more cycles"),
    "alloc_mib_per_s": ("", "less allocated per second", "more allocated per second"),
    "heap_peak_mib": ("heap peak", "less heap", "more heap"),
    "stw_p99_ms": ("", "shorter p99 pauses", "longer p99 pauses"),
}
"""Deciding figures in this order, with words for the figure, for less and for more of it. The
allocation rate decides only for a program that does as much work as it can."""


def statement(pairs: Sequence[Pair]) -> Statement:
    """Returns the verdict, with new problems before the changes."""
    new = problems(pairs)
    return Statement("bad" if new else "none", "", " ".join([*new, verdict(pairs)]))


def problems(pairs: Sequence[Pair]) -> list[str]:
    """Returns the cause of each side's worst finding, if that is bad, in most runs, and new.

    Equal runs may differ in a finding by chance: one figure is worse by more than that.
    """
    known = {finding.id for finding in pairs[0].before.findings() if finding.severity == "bad"}
    sentences = []
    for pair in pairs:
        every = [*pair.after.findings()]
        bad = [one for one in every if one.severity == "bad" and one.id not in known]
        runs, most = Counter(one.id for one in bad), len(pair.after.analyses) / 2
        worst = next((one for one in bad if runs[one.id] > most), None)
        is_worse = any(change.verdict == "worse" for change in pair.changes.values())
        if worst and is_worse and not pair.benchmarks:
            sentences.append(_headline(pair.after, root_of(worst, every)))
    return sentences


def verdict(pairs: Sequence[Pair]) -> str:
    """Returns the changes of a comparison in one sentence."""
    of_benchmarks = all(pair.benchmarks for pair in pairs)
    if len(pairs) == 1 and of_benchmarks:
        return benchmarks.verdict(pairs[0])
    if of_benchmarks and pairs[0].measurement is None:
        return " ".join(f"{_against(pair)}: {benchmarks.verdict(pair)}" for pair in pairs)
    if (measurement := pairs[0].measurement) is not None:
        return measured.verdict(pairs, measurement)
    if len(pairs) > 1:
        return _best(pairs)
    return " ".join([_verdict(pairs[0]), *_thrashing(pairs)])


def _verdict(pair: Pair) -> str:
    """Returns the gain, its price, and the load."""
    if not any(change.is_tested for change in pair.changes.values()):
        return "There is too little evidence to tell changes from chance."
    parts = costs(pair)
    changes = " for ".join(
        " and ".join(parts[word]) for word in ("better", "worse") if parts[word]
    )
    # A sentence that names only the gain, or only the loss, misleads.
    if changes and (unsure := " and ".join(_unsure(pair, parts))):
        changes += f", but {unsure}"
    kinds = {difference.what for difference in pair.differences}
    if not changes and parts[BY_LOAD]:
        rate = percent(pair.changes["alloc_mib_per_s"].relative or 0.0)
        is_known = "load" in kinds
        load = (
            f"it {'explains' if is_known else 'would explain'} the change of "
            f"{' and '.join(parts[BY_LOAD])}"
        )
        changes = f"The allocation rate {'' if is_known else 'may have '}changed ({rate})"
    else:
        load = _load(pair)
        same_ = " or ".join(filter(None, (", ".join(parts["~"][:-1]), *parts["~"][-1:])))
        changes = changes or f"No significant change{same_ and f' of {same_}'}"
    if doubts := " and ".join(words for what, words in _DOUBTS.items() if what in kinds):
        load += f", {'but' if load in _EQUAL_LOADS else 'and'} {doubts}"
    return f"{changes}; {load}."


_PRICES = {"gc_cpu_share": "GC CPU", "stw_p99_ms": "p99 pauses", "heap_peak_mib": "heap peak"}
"""Figures that may be the price of a gain, in words."""


def _unsure(pair: Pair, parts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yields higher figures that may be the price of a gain, or lower ones that a loss may gain.

    What was judged is named by itself, and what runs usually differ by is no price.
    """
    sign = 1 if parts["better"] else -1
    for name, words in _PRICES.items():
        change = pair.changes.get(name)
        if change is None or change.verdict or not NAMED[name].differs(change):
            continue
        if change.no_verdict_because in (OTHER_PROCS, CONTENDED):
            continue
        if (change.relative or 0.0) * sign > _OTHER_PART:
            ends = (value(name, end) for end in (change.before, change.after))
            yield f"{words} {' → '.join(ends)} (not judged)"


def costs(pair: Pair) -> dict[str, list[str]]:
    """Returns the costs in words, by verdict; `BY_LOAD` has those that the load explains."""
    words: dict[str, list[str]] = {"better": [], "worse": [], "~": [], BY_LOAD: []}
    if pair.benchmarks:
        return words | benchmarks.costs(pair)
    if (measurement := pair.measurement) is not None:
        decider = measurement.decider.name
        words[pair.changes[decider].verdict or "~"].append(decider)
        return words
    for name, (noun, less, more) in COSTS.items():
        if (change := pair.changes.get(name)) is None:
            continue
        part = change.relative
        is_named = name == "gc_per_s" and (words["better"] or words["worse"])
        if part is None or is_named:
            continue
        if change.verdict in ("better", "worse"):
            text = f"{percent(part).lstrip('+-')} {less if part < 0 else more}"
            if part > 1:
                factor = 1 + part
                text = f"{factor:,.0f}" if factor >= 9.95 else f"{factor:.2g}"
                text += f" times the {_TIMES.get(name, noun)}"
            if name == "gc_cpu_share":
                text += _with_idle(part, pair.changes["gc_cpu_with_idle_share"].relative)
            words[change.verdict].append(text)
        elif noun and (reason := change.verdict or change.no_verdict_because) in words:
            words[reason].append(noun)
    return words


_OTHER_PART = 0.1
"""Difference of two relative changes. Above it, GC CPU with idle marking has its own sentence."""


def _with_idle(part: float, idle: float | None) -> str:
    """Returns how GC CPU with idle marking changed, if it changed differently."""
    is_other = idle is not None and abs(idle - part) >= _OTHER_PART
    return f" ({percent(idle)} with idle)" if is_other and idle is not None else ""


_TIMES = {"alloc_mib_per_s": "allocation per second", "stw_p99_ms": "p99 pauses"}
"""Words for multiplied figures that have no noun in `COSTS`."""

_DOUBTS = {
    "procs": "GOMAXPROCS differs",
    "contended": "other work or a CPU quota probably held up threads",
    "delayed": "other work or a CPU quota may have held up threads",
}
"""Possible causes other than the change and the load."""


def _load(pair: Pair) -> str:
    if "alloc_mib_per_run" in pair.changes:
        return "each run of a side does the same work"
    kinds = {difference.what for difference in pair.differences}
    alloc = pair.changes["alloc_mib_per_s"]
    if alloc.before is None or alloc.after is None:
        return "the load is unknown"
    if "load" in kinds:
        return f"but the allocation rate differs ({percent(alloc.relative or 0.0)})"
    if "unclear_load" in kinds:
        return "the load may differ"
    if alloc.no_verdict_because == ONE_RUN:
        rate = percent(alloc.relative or 0.0)
        what = f"but the allocation rate differs ({rate}), and"
        if "throughput" in kinds:
            what = f"allocation per second {rate}, but"
        return f"{what} {ONE_RUN}"
    if not pair.load_is_given and alloc.is_significant:
        return "the program probably allocates as fast as it can"
    if alloc.ends is not None and max(map(abs, alloc.ends)) > _UNCLEAR_LOAD:
        return _EQUAL_LOADS[1]
    return _EQUAL_LOADS[0] if pair.load_is_given else "same allocation rate"


_EQUAL_LOADS = "same load", "no significant difference in the allocation rate"
_UNCLEAR_LOAD = 0.25
"""Change of the allocation rate that its interval must exclude to call two loads the same."""


def _best(pairs: Sequence[Pair]) -> str:
    """Returns the side with significantly the least GC CPU, and the one with the smallest heap.

    If GC CPU was not compared for all sides, cycles decide.
    """
    named = {"gc_cpu_share": "the least GC CPU", "heap_peak_mib": "the smallest heap peak"}
    if not all(pair.changes["gc_cpu_share"].verdict for pair in pairs):
        named = {"gc_per_s": "the fewest cycles", "heap_peak_mib": "the smallest heap peak"}
    parts = []
    for metric, words in named.items():
        changes = [pair.changes[metric] for pair in pairs]
        better = [change for change in changes if change.verdict == "better"]
        if better:
            least = min(better, key=lambda change: change.after or 0.0)
            name, number = least.side, least.after
        elif all(change.verdict == "worse" for change in changes):
            name, number = pairs[0].before.label, changes[0].before
        else:
            continue
        parts.append(f"{printable(name)} has {words} ({value(metric, number)})")
    none = f"No side has significantly {' or '.join(named.values())}"
    return f"{', '.join(parts) or none}."


def same(pair: Pair) -> Iterator[str]:
    """Yields the circumstances that both sides share, besides the load."""
    procs = sorted({n for analysis in pair.before.analyses for n in analysis.procs})
    if procs:
        yield "1 proc" if procs == [1] else f"{'–'.join(map(str, procs))} procs"
    if (go := pair.before.circumstances.go) is not None:
        # Lines of a range of releases do not show that both sides have the same one.
        yield f"{go} line format" if {"+", "–"} & {*go} else go
