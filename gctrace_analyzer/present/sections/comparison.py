"""Comparisons as documents: whether they are fair, figures, effect of the load, prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.compare.compare import MIN_CYCLES
from gctrace_analyzer.present.document import (
    Folded,
    Gap,
    Paragraphs,
    Sentence,
    Sentences,
    Statement,
    Table,
    Title,
)
from gctrace_analyzer.present.format import (
    NONE,
    count,
    duration,
    mib,
    mib_per_s,
    milliseconds,
    printable,
    rate,
    share,
    short_paths,
)
from gctrace_analyzer.present.report import Report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gctrace_analyzer.advise.comparison import SeveralSides, Side, TwoSides
    from gctrace_analyzer.present.document import Block, Document

LABELS = {
    "gc_cpu_share": "GC CPU",
    "gc_cpu_with_idle_share": "GC CPU with idle",
    "gc_per_s": "Frequency",
    "assist_share_of_gc_cpu": "Assists, of GC CPU",
    "assist_share_of_cpu": "Assists, of all CPU",
    "stw_share": "Time stopped",
    "stw_p50_ms": "Pauses p50",
    "stw_p99_ms": "Pauses p99",
    "stw_max_ms": "Pauses max",
    "stw_sweep_term_p50_ms": "sweep termination p50",
    "stw_sweep_term_p99_ms": "sweep termination p99",
    "stw_mark_term_p50_ms": "mark termination p50",
    "stw_mark_term_p99_ms": "mark termination p99",
    "alloc_mib_per_s": "Allocation",
    "live_heap_p50_mib": "Live heap p50",
    "true_live_heap_mib": "True live heap",
    "heap_goal_p50_mib": "Heap goal p50",
    "heap_peak_mib": "Heap peak",
}

HEADLINES = (
    "gc_cpu_share", "gc_cpu_with_idle_share", "gc_per_s", "assist_share_of_cpu",
    "stw_p99_ms", "alloc_mib_per_s", "live_heap_p50_mib", "heap_peak_mib",
)  # fmt: skip
"""The figures that a pull request shows first."""

_SETTING_COLUMNS = (
    ("gc_cpu_share", "GC CPU %", 100.0),
    ("gc_cpu_with_idle_share", "with idle %", 100.0),
    ("gc_per_s", "cycles/s", 1.0),
    ("stw_p99_ms", "p99 pause ms", 1.0),
    ("heap_peak_mib", "peak MiB", 1.0),
)
MAIN = tuple(metric for metric, _, _ in _SETTING_COLUMNS)
"""The metrics that a page draws by setting."""

_MORE_SETTING_COLUMNS = (
    ("assist_share_of_cpu", "assists %", 100.0),
    ("stw_share", "stopped %", 100.0),
    ("alloc_mib_per_s", "alloc MiB/s", 1.0),
    ("true_live_heap_mib", "true live MiB", 1.0),
    ("heap_goal_p50_mib", "goal MiB", 1.0),
)

LEAST_SETTING = 12
"""The number of characters of a setting's name that are always shown."""

_UNKNOWN = 3.0
"""Times the value. A larger interval is shown as such, because its size in units means nothing."""

_VERDICTS = {"better": "Improved", "worse": "Regressed"}
_DECIDING = ("gc_cpu_share", "heap_peak_mib")

METHOD = (
    "Change: relative to the value before, with its 95 % interval. ~: not significant. "
    "Intervals: block bootstrap over cycles, or over scrapes; the variation between runs is "
    "measured from repeated runs, or estimated from other programs."
)
SWEEP_METHOD = (
    "▸ best; ≈ not significantly worse than the best. ±: 95 % interval over cycles (block "
    "bootstrap) and repeats."
)
LOAD_NOTE = (
    "An estimate for the same live heap and goal: the cost of a cycle stays the same, and the "
    "number of cycles follows the allocation rate."
)
_EXPECTED_NOTE = 'Predicted from the "before" run for the same load; 80 % interval.'


_FIRST = ("other_gogc", "changed_gogc", "live_heap", "unclear_load")
"""Differences that are shown first: several settings of one side have no common figure, and with a
different live heap, the load is not the same."""
_STYLES = {"Improved": "green", "Regressed": "bold red", "Same": "dim"}
_KINDS = {"incomparable": "bold yellow", "changed": "bold", "note": ""}


def two_sides(found: TwoSides) -> Document:
    """Returns the comparison of two sides: whether it is fair, the verdict, the figures."""
    return [*_two_sides(found)]


def _two_sides(found: TwoSides) -> Iterator[Block]:
    yield Title("Go garbage collection, before and after")
    sides = ((found.before, "before"), (found.after, "after"))
    yield _labelled(Sentence(word, source(side), "bold") for side, word in sides)
    yield Gap()
    yield Statement("none", "", verdict(found))
    yield Gap()
    yield _labelled([*circumstances(found), *conclusion(found.frame)])
    yield Folded("All figures", [figures(found.frame)], [figures(found.frame, headline=True)])
    for table, note in further_tables(found):
        yield table
        yield _remark(note)
    if expectation(found.frame) is None and found.no_expectation:
        yield Gap()
        yield _remark(f"The new setting was not predicted: {found.no_expectation}.")
    yield Gap()
    yield _labelled(Sentence("Note", text, "bold") for text in further_notes(found))
    yield _remark(METHOD)


def several_sides(found: SeveralSides) -> Document:
    """Returns the comparison of several settings: one row for each, with the best marked."""
    return [*_several_sides(found)]


def _several_sides(found: SeveralSides) -> Iterator[Block]:
    yield Title("Go garbage collection by setting")
    yield Paragraphs([source(side, label=True) for side in found.sides], "bold", hanging=2)
    if (text := best(found.frame)) is not None:
        yield Gap()
        yield Statement("none", "", text)
    if found.differences:
        yield Gap()
        yield _labelled(
            Sentence(
                "Load" if each.what == "load" else "Note", each.sentence, _KINDS[each.kind]
            )
            for each in found.differences
        )
    yield from settings(found.frame)
    yield Gap()
    yield _labelled(Sentence("Note", text, "bold") for text in notes(found.sides))
    yield _remark(SWEEP_METHOD)


def _labelled(sentences: Iterable[Sentence]) -> Sentences:
    return Sentences([*sentences], width=11, indent=0)


def _remark(text: str) -> Paragraphs:
    return Paragraphs([text], "dim", indent=2)


def further_tables(found: TwoSides) -> Iterator[tuple[Table, str]]:
    """Yields the tables about the load and the prediction, each with its note."""
    if (load := of_load(found.frame)) is not None:
        yield load, LOAD_NOTE
    if (predicted := expectation(found.frame)) is not None:
        yield predicted, expectation_note(found)


def source(side: Side, *, label: bool = False) -> str:
    """Returns the inputs, runs, time and cycles of a side."""
    names = short_paths([printable(name) for name in side.names])
    shown = printable(side.names[0]) if len(names) == 1 else ", ".join(names[:3])
    shown += f" and {len(names) - 3} more" if len(names) > 3 else ""
    parts = [shown if names else Report(side.analyses[0], side.advices[0]).title]
    if len(side.measured) > 1:
        parts.append(count(len(side.measured), "run"))
    parts += [
        duration(side.seconds) if side.seconds else "no times",
        count(side.cycles, "cycle"),
    ]
    title = printable(side.label)
    if label and (len(names) != 1 or title not in (names[0], shown)):
        parts.insert(0, title)
    return " · ".join(parts)


def notes(sides: Sequence[Side]) -> Iterator[str]:
    """Yields sentences about what limits the figures of the sides."""
    for side in sides:
        few = [part for part in side.measured if not part.long_enough]
        if few:
            least = min(few, key=lambda part: part.evidence)
            what = "cycle" if least.summary.cycles < MIN_CYCLES else "interval"
            yield (
                f"{side.label}: a run has only {count(least.evidence, what)}; a comparison needs "
                f"at least {MIN_CYCLES}."
            )
        if side.processes > len(side.measured):
            runs = count(len(side.measured), "run")
            yield (
                f"{side.label}: {side.processes} processes in {runs}: the figures cover all of "
                "them together."
            )
    if any(len(side.measured) < 2 for side in sides):
        yield (
            "Only one run per side: the variation between runs is estimated from other programs "
            "(docs/comparison.md). Compare three runs per side to measure it."
        )


def further_notes(found: TwoSides) -> Iterator[str]:
    """Yields the notes about the inputs, except those shown first."""
    for each in found.differences:
        if each.kind == "note" and each.what not in _FIRST:
            yield each.sentence
    yield from notes((found.before, found.after))


def circumstances(found: TwoSides) -> Iterator[Sentence]:
    """Yields whether a comparison is fair, which settings changed, and what was predicted."""
    broken = [each for each in found.differences if each.kind == "incomparable"]
    other = [each for each in found.differences if each.what in _FIRST]
    changed = [each.sentence for each in found.differences if each.kind == "changed"]
    for each in (*broken, *other):
        yield Sentence("Note", each.sentence, _KINDS["incomparable"])
    if not broken:
        yield Sentence("Same", "; ".join(same(found)), "green")
    if changed:
        yield Sentence("Changed", ", ".join(changed), "bold")
    if (text := expected_and_measured(found.frame)) is not None:
        yield Sentence(
            "Predicted", f"{', '.join(changed) or 'the new setting'}: {text}", "bold"
        )


def figures(frame: pl.DataFrame, *, headline: bool = False) -> Table:
    """Returns every figure that the logs provide, with its change."""
    body = []
    for row in frame.iter_rows(named=True):
        if row["before"] is None and row["after"] is None:
            continue
        if headline and row["metric"] not in HEADLINES:
            continue
        body.append(
            (
                LABELS[row["metric"]],
                value(row["metric"], row["before"]),
                value(row["metric"], row["after"]),
                _change(row, row["delta"]),
                interval(row),
                NONE if row["delta_low"] is None else row["verdict"],
            )
        )
    return Table(
        ("", "before", "after", "change", "95 % interval", ""), "lrrrrl", body, verdict=5
    )


_CHANGES = {
    "gc_cpu_share": ("less GC CPU", "more GC CPU"),
    "gc_per_s": ("fewer cycles", "more cycles"),
    "stw_p99_ms": ("shorter p99 pauses", "longer p99 pauses"),
    "heap_peak_mib": ("less heap", "more heap"),
}
"""What decides, in this order: how less and more of it are called."""


def verdict(found: TwoSides) -> str:
    """Returns the comparison in one sentence: what was gained, for what, under which load."""
    rows = found.rows()
    if all(row["delta_low"] is None for row in rows.values()):
        return "There is too little evidence to tell changes from chance."
    gained: list[str] = []
    paid: list[str] = []
    # Shares of different numbers of CPUs are no change of GC CPU.
    other_procs = any(each.what == "procs" for each in found.differences)
    for metric, (less, more) in _CHANGES.items():
        row = rows[metric]
        if metric == "gc_cpu_share" and other_procs:
            continue
        if metric == "gc_per_s" and rows["gc_cpu_share"]["verdict"] is not None:
            continue
        if row["verdict"] in _VERDICTS and row["before"]:
            part = row["delta"] / row["before"]
            text = f"{percent(part).lstrip('+-')} {less if part < 0 else more}"
            (gained if row["verdict"] == "better" else paid).append(text)
    changes = " for ".join(" and ".join(each) for each in (gained, paid) if each)
    changes = changes or "No significant change of GC CPU, pauses or heap"
    load, doubts = _load(found, rows), " and ".join(_doubts(found))
    if doubts:
        load += f", {'and' if load.startswith('but') else 'but'} {doubts}"
    return f"{changes}; {load}."


def _doubts(found: TwoSides) -> Iterator[str]:
    """Yields what else than the change may be the cause, and is not the load."""
    kinds = {each.what for each in found.differences}
    if "procs" in kinds:
        yield "GOMAXPROCS differs"
    if "contended" in kinds:
        yield "other work probably competed for the CPUs of one side"


def _load(found: TwoSides, rows: dict[str, dict[str, Any]]) -> str:
    kinds = {each.what for each in found.differences}
    alloc = rows["alloc_mib_per_s"]
    if alloc["before"] is None or alloc["after"] is None:
        return "the load is unknown"
    if "load" in kinds:
        part = alloc["delta"] / alloc["before"]
        return f"but the allocation rate differs ({percent(part)})"
    if "unclear_load" in kinds:
        return "the load may differ"
    return "same load" if found.load_is_given else "the program is CPU-bound"


def best(frame: pl.DataFrame) -> str | None:
    """Returns which of several settings has the least GC CPU, and which the smallest heap."""
    named = {"gc_cpu_share": "the least GC CPU", "heap_peak_mib": "the smallest heap peak"}
    parts = [
        f"{printable(row['setting'])} has {named[row['metric']]} "
        f"({value(row['metric'], row['value'])})"
        for metric in named
        for row in frame.filter(metric=metric, standing="best").iter_rows(named=True)
    ]
    return f"{', '.join(parts)}." if parts else None


def conclusion(frame: pl.DataFrame) -> Iterator[Sentence]:
    """Yields which figures improved and which regressed."""
    rows = list(frame.iter_rows(named=True))
    for verdict in ("better", "worse"):
        named = [LABELS[row["metric"]] for row in rows if row["verdict"] == verdict]
        if named:
            yield _concluded(_VERDICTS[verdict], "; ".join(named))
    if all(row["delta_low"] is None for row in rows):
        yield _concluded("Unclear", "there is too little evidence to tell changes from chance")
    elif not any(row["verdict"] in ("better", "worse") for row in rows):
        yield _concluded("Same", "no figure changed significantly")


def _concluded(word: str, sentence: str) -> Sentence:
    return Sentence(word, sentence, _STYLES.get(word, "bold"))


def same(found: TwoSides) -> Iterator[str]:
    """Yields the circumstances that both sides share."""
    rows = found.rows()
    listed = {each.what for each in found.differences} & {"unclear_load", "throughput"}
    alloc = rows["alloc_mib_per_s"]
    if not listed and None not in (alloc["before"], alloc["after"]):
        rates = f"{mib_per_s(alloc['before'])} and {mib_per_s(alloc['after'])} allocated"
        yield f"load ({rates})" if found.load_is_given else f"CPU-bound ({rates})"
    procs = sorted({n for analysis in found.before.analyses for n in analysis.procs})
    if procs:
        yield "1 proc" if procs == [1] else f"{'–'.join(map(str, procs))} procs"
    if (go := found.before.circumstances.go) is not None:
        yield go


def of_load(frame: pl.DataFrame) -> Table | None:
    """Returns the part of each change that the load explains; None if the load is the same."""
    body = []
    for row in frame.iter_rows(named=True):
        if row["by_load"] is None or row["delta"] is None:
            continue
        metric, before = row["metric"], row["before"]
        alone = before + row["by_load"]
        explained = row["by_load"] / row["delta"] if row["delta"] else None
        body.append(
            (
                LABELS[metric],
                value(metric, before),
                value(metric, alone),
                value(metric, row["after"]),
                _explained(explained, row["verdict"]),
            )
        )
    if not body:
        return None
    return Table(("Explained by the load", "before", "load alone", "after", ""), "lrrrl", body)


def expectation(frame: pl.DataFrame) -> Table | None:
    """Returns the predicted and the measured figures; None if nothing was predicted."""
    body = []
    for row in frame.iter_rows(named=True):
        low, high, after = row["expected_low"], row["expected_high"], row["measured"]
        if row["expected"] is None or after is None:
            continue
        metric = row["metric"]
        ends = " to ".join(value(metric, end) for end in (low, high))
        verdict = "as predicted" if low <= after <= high else "less" if after < low else "more"
        body.append(
            (
                LABELS[metric],
                value(metric, row["expected"]),
                ends,
                value(metric, after),
                verdict,
            )
        )
    if not body:
        return None
    head = ("Prediction", "predicted", "80 % interval", "measured", "")
    return Table(head, "lrrrl", body)


def expectation_note(found: TwoSides) -> str:
    """Returns what the table of predictions compares."""
    if found.after.by_metrics:
        return _EXPECTED_NOTE
    return f"{_EXPECTED_NOTE} Both values leave out the first 0.5 s."


def expected_and_measured(frame: pl.DataFrame) -> str | None:
    """Returns predicted and measured GC CPU and peak heap, as a sentence."""
    parts = []
    for row in frame.filter(pl.col("metric").is_in(_DECIDING)).iter_rows(named=True):
        if row["expected"] is None or row["measured"] is None:
            continue
        metric, low, high = row["metric"], row["expected_low"], row["expected_high"]
        ends = f"{bare(value(metric, low))}–{bare(value(metric, high))}"
        parts.append(
            f"{LABELS[metric]} {value(metric, row['expected'])} ({ends}), "
            f"measured {value(metric, row['measured'])}"
        )
    return "; ".join(parts) or None


def settings(frame: pl.DataFrame) -> list[Table]:
    """Returns tables with one row per setting: first the main figures, then the others."""
    names = frame["setting"].unique(maintain_order=True).to_list()
    rows = {(row["setting"], row["metric"]): row for row in frame.iter_rows(named=True)}
    tables = []
    for title, columns in (
        ("Setting", _SETTING_COLUMNS),
        ("Also", _MORE_SETTING_COLUMNS),
    ):
        shown = [
            column
            for column in columns
            if any(rows[name, column[0]]["value"] is not None for name in names)
        ]
        cells = [
            [_cell(rows[name, metric], times) for metric, _, times in shown] for name in names
        ]
        body = [(printable(name), *row) for name, row in zip(names, cells, strict=True)]
        head = (title, *(head for _, head, _ in shown))
        tables.append(Table(head, "l" + "r" * len(shown), body, least=(LEAST_SETTING,)))
    return [table for table in tables if len(table.head) > 1]


def value(metric: str, number: float | None) -> str:
    """Formats the value of a metric with its unit."""
    if metric.endswith("_per_s") and "mib" not in metric:
        return rate(number)
    if "share" in metric:
        return share(number)
    if metric.endswith("_ms"):
        return milliseconds(number)
    return mib_per_s(number) if metric.endswith("_per_s") else mib(number)


def percent(part: float) -> str:
    """Formats a change as a percentage, or as a factor if it is large.

    >>> percent(-0.482), percent(0.004), percent(1.5), percent(24.0), percent(0.0001)
    ('-48 %', '+0.4 %', '+150 %', '×25', '0 %')

    What is left of something is not rounded to nothing.

    >>> percent(-0.9991), percent(-0.99999), percent(-1.0)
    ('-99.9 %', '-99.9 %', '-100 %')
    """
    if part >= 9:
        return f"×{1 + part:,.0f}"
    hundred = 100 * part
    if abs(hundred) < 0.05:
        return "0 %"
    if -100 < hundred < -99.5:
        return f"{max(hundred, -99.9):+.1f} %"
    return f"{hundred:+.0f} %" if abs(hundred) >= 9.95 else f"{hundred:+.1f} %"


def bare(shown: str) -> str:
    """Returns a formatted figure without its unit."""
    return shown.partition(" ")[0]


def _change(row: dict[str, Any], delta: float | None) -> str:
    if delta is None or not row["before"]:
        return NONE
    return percent(delta / row["before"])


def interval(row: dict[str, Any]) -> str:
    """Formats the interval of a relative change (`schema.COMPARISON`)."""
    if row["delta_low"] is None or not row["before"]:
        return NONE
    ends = (row[end] / row["before"] for end in ("delta_low", "delta_high"))
    low, high = (_end(part, exact=row["verdict"] != "~") for part in ends)
    return f"{low.removesuffix(' %') if high.endswith(' %') else low} to {high}"


def _end(part: float, *, exact: bool) -> str:
    """Formats the end of an interval; an `exact` one is not rounded to no change.

    >>> _end(-0.0003, exact=True), _end(-0.0003, exact=False), _end(-0.069, exact=True)
    ('-0.03 %', '0 %', '-6.9 %')
    """
    shown = percent(part)
    return f"{100 * part:+.1g} %" if exact and shown == "0 %" and part else shown


def _explained(part: float | None, verdict: str | None) -> str:
    if part is None or verdict in (None, "~"):
        return "not significant"
    if part < 0:
        return "opposite direction"
    return "more than 100 % of it" if part > 1 else f"{100 * part:.0f} % of it"


def _cell(row: dict[str, Any], times: float) -> str:
    """Formats the value of a setting with half of its interval.

    >>> of = {"standing": "~", "value": 299.0, "value_low": 1.0, "value_high": 380.0}
    >>> _cell(of, 1.0), _cell({**of, "value_high": 126_907.0}, 1.0)
    ('≈299 ±298', '≈299 ±>300 %')
    """
    if row["value"] is None:
        return NONE
    mark = {"best": "▸", "~": "≈"}.get(row["standing"], "")
    value, low, high = (row[name] for name in ("value", "value_low", "value_high"))
    number = _number(times * value)
    if low is None:
        return number
    half = times * max(high - value, value - low)
    if half > _UNKNOWN * times * abs(value):
        return f"{mark}{number} ±>{100 * _UNKNOWN:.0f} %"
    decimals = len(number.partition(".")[2])
    least = 0.1**decimals
    return f"{mark}{number} ±{max(half, least):.{decimals}f}"


def _number(number: float) -> str:
    """Formats with three digits, which an interval needs."""
    if number >= 99.5:
        return f"{number:,.0f}"
    return (
        f"{number:.1f}"
        if number >= 9.95
        else f"{number:.2f}"
        if number >= 0.1
        else (f"{number:.3f}")
    )
