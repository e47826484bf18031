"""The figures of a comparison as tables: changes, effect of the load, predictions, settings."""

from __future__ import annotations

from string import ascii_uppercase
from typing import TYPE_CHECKING

from gctrace_analyzer import units
from gctrace_analyzer.advise.sides import Pair, sides_of
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.present.document import Table
from gctrace_analyzer.present.format import (
    NONE,
    count,
    duration,
    mib,
    mib_per_s,
    milliseconds,
    nanoseconds,
    printable,
    rate,
    share,
)
from gctrace_analyzer.units import between_text, digits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gctrace_analyzer.advise.sides import Side
    from gctrace_analyzer.analysis.compare.change import Change

LABELS = {
    "wall_s": "Run time",
    "cpu_s": "CPU time",
    "max_rss_mib": "Resident memory",
    "alloc_mib_per_run": "Allocated per run",
    "cycles_per_run": "Cycles per run",
    "bytes_per_op": "B/op",
    "allocs_per_op": "allocs/op",
    "ns_per_op": "time/op",
    "gc_cpu_ns_per_op": "GC CPU/op",
    "gc_cpu_share": "GC CPU",
    "gc_cpu_with_idle_share": "GC CPU with idle",
    "gc_per_s": "Frequency",
    "assist_share_of_gc_cpu": "Mark assist, of GC",
    "assist_share_of_cpu": "Mark assist, of CPU",
    "stw_share": "Pauses, of time",
    "stw_p50_ms": "Pauses p50",
    "stw_p99_ms": "Pauses p99",
    "stw_max_ms": "Pauses max",
    "stw_sweep_term_p50_ms": "sweep termination p50",
    "stw_sweep_term_p99_ms": "sweep termination p99",
    "stw_mark_term_p50_ms": "mark termination p50",
    "stw_mark_term_p99_ms": "mark termination p99",
    "alloc_mib_per_s": "Allocation",
    "live_heap_p50_mib": "Live heap median",
    "true_live_heap_mib": "Live heap, est.",
    "heap_goal_p50_mib": "Heap goal median",
    "heap_peak_mib": "Heap peak",
}

HEADLINES = (
    "gc_cpu_share", "gc_cpu_with_idle_share", "gc_per_s", "assist_share_of_cpu",
    "stw_p99_ms", "alloc_mib_per_s", "true_live_heap_mib", "heap_peak_mib",
    "alloc_mib_per_run", "cycles_per_run",
)  # fmt: skip
"""The figures that a pull request shows first."""

_SETTING_COLUMNS = (
    ("gc_cpu_share", "GC CPU %", 100.0),
    ("gc_cpu_with_idle_share", "with idle %", 100.0),
    ("gc_per_s", "cycles/s", 1.0),
    ("stw_p99_ms", "p99 pause ms", 1.0),
    ("heap_peak_mib", "peak MiB", 1.0),
)
_MEASURED_HEADS = {"wall_s": "time s", "cpu_s": "CPU s", "max_rss_mib": "memory MiB"}
_BESIDE_MEASURED = 1
"""GC columns that fit next to the figures measured from outside."""

MAIN = tuple(metric for metric, _, _ in _SETTING_COLUMNS)
"""The metrics that a page draws by setting."""

_MORE_SETTING_COLUMNS = (
    ("assist_share_of_cpu", "mark assist CPU %", 100.0),
    ("stw_share", "pauses % of time", 100.0),
    ("alloc_mib_per_s", "alloc MiB/s", 1.0),
    ("true_live_heap_mib", "live mean MiB", 1.0),
    ("heap_goal_p50_mib", "goal MiB", 1.0),
)

LOAD_NOTE = (
    "An estimate for the same live heap and goal: the cost of a cycle stays the same, and the "
    "number of cycles follows the allocation rate."
)
LEAST_SETTING = 12
"""The number of characters of a setting's name that are always shown."""

_LONGEST_NAME = 15
"""Length from which names of sides leave too little room in a table."""

_TENFOLD = 9.0
"""A change of this factor is shown as a factor, not in per cent."""

_ANY_FACTOR = 99.0
"""An interval up to this change, a hundredfold, says nothing."""


def label_of(metric: str) -> str:
    """Returns the name of a metric; a user's metric keeps its name."""
    return LABELS.get(metric) or printable(metric)


def figures(pair: Pair, *, headline: bool = False, brief: Sequence[str] = ()) -> Table:
    """Returns every figure that the logs provide, with its change.

    Args:
        pair: the sides.
        headline: only the most important figures.
        brief: the letters of the sides, if their names do not fit.
    """
    own = pair.measurement.metrics if pair.measurement else ()
    shown = [*HEADLINES, *(metric.name for metric in own)]
    if pair.changes["true_live_heap_mib"].delta is None:
        shown.append("live_heap_p50_mib")
    body = [
        (
            label_of(name),
            value(name, change.before, change.unit),
            value(name, change.after, change.unit),
            NONE if change.relative is None else percent(change.relative),
            interval(change),
            change.verdict or NONE,
        )
        for name, change in pair.changes.items()
        if (change.before is not None or change.after is not None)
        and (name in shown or not (headline or says_nothing(change)))
    ]
    return Table(
        ("", *names_of(pair, brief), "change", "95 % interval", ""), "lrrrrl", body, verdict=5
    )


def names_of(pair: Pair, brief: Sequence[str] = ()) -> tuple[str, ...]:
    """Returns the column names of both sides, by `brief` or name; a file is no name of a side."""
    names = _apart(printable(pair.before.label), printable(pair.after.label))
    sides = pair.before, pair.after
    is_file = any(f"/{name}".endswith(f"/{one.label}") for one in sides for name in one.names)
    if not pair.measurement and (is_file or max(map(len, names)) > _LONGEST_NAME):
        return ("before", "after")
    return tuple(brief) or names


def says_nothing(change: Change) -> bool:
    """Returns whether a change is within chance, and chance may be tenfold."""
    low, high = change.ends or (0.0, 0.0)
    return change.verdict == "~" and 1 + high > _TENFOLD * (1 + low)


def letters(pairs: Sequence[Pair]) -> Sequence[str]:
    """Returns a letter for each side if a table has no room for their names; else nothing."""
    labels = [printable(side.label) for side in sides_of(pairs)]
    if len(pairs) == 1:
        labels = [*_apart(*labels)] if pairs[0].measurement else []
    is_long = any(len(label) > _LONGEST_NAME for label in labels)
    return ascii_uppercase[: len(labels)] if is_long else ""


def _apart(before: str, after: str) -> tuple[str, str]:
    """Returns the names of two sides without their common parts.

    >>> _apart("GOGC=100 GOMEMLIMIT=off", "GOGC=100 GOMEMLIMIT=1GiB"), _apart("base", "head")
    (('GOMEMLIMIT=off', 'GOMEMLIMIT=1GiB'), ('base', 'head'))
    """
    words = before.split(), after.split()
    own, others = (
        [word for word in side if word not in other] for side, other in (words, words[::-1])
    )
    return (" ".join(own), " ".join(others)) if own and others else (before, after)


def of_load(pair: Pair) -> Table | None:
    """Returns the changes that the load explains at least in part; None if there are none."""
    body = []
    for name, change in pair.changes.items():
        before, by_load, delta = change.before, change.by_load, change.delta
        if before is None or by_load is None or not delta or not change.is_significant:
            continue
        if (part := by_load / delta) > 0:
            ends = (before, before + by_load, change.after)
            explained = "all of it" if part >= 1 else f"{100 * part:.0f} % of it"
            body.append((LABELS[name], *(value(name, end) for end in ends), explained))
    if not body:
        return None
    was, now = names_of(pair)
    return Table(("Explained by the load", was, "load alone", now, ""), "lrrrl", body)


def few_cycles(sides: Iterable[Side]) -> Iterator[str]:
    """Yields which sides have a run that is too short to compare its figures."""
    for side in sides:
        if few := [part for part in side.measured if not part.long_enough]:
            least = min(few, key=lambda part: part.evidence)
            what = "cycle" if least.summary.cycles < DEFAULT.min_cycles else "interval"
            yield (
                f"{printable(side.label)}: a run has only {count(least.evidence, what)}; rates, "
                f"pauses, heap sizes and allocation are compared from {DEFAULT.min_cycles} on."
            )


def gc_cpu_ranges(sides: Iterable[Side]) -> Iterator[str]:
    """Yields the range of GC CPU over the reports of each side, if one shows no single value."""
    for side in sides:
        summaries = [run.summary for run in side.measured]
        if any(summary.gc_cpu_range for summary in summaries):
            values = (one.gc_cpu_range or (one.gc_cpu_share,) for one in summaries)
            ends = [end for both in values for end in both if end is not None]
            low, high = map(units.percent, (min(ends), max(ends)))
            if low != high:
                yield f"{printable(side.label)} {between_text(low, high)}"


def expectation(pair: Pair) -> Table | None:
    """Returns the predicted and the measured figures; None if nothing was predicted."""
    body = []
    for name, change in pair.changes.items():
        low, high, after = change.expected_low, change.expected_high, change.measured
        if change.expected is None or low is None or high is None or after is None:
            continue
        least, most = change.measured_low, change.measured_high
        body.append(
            (
                label_of(name),
                value(name, change.expected),
                _between(name, low, high),
                value(name, after),
                _between(name, least, most),
                held(change),
            )
        )
    if not body:
        return None
    head = ("Prediction", "predicted", "80 % interval", "measured", "95 % interval", "")
    return Table(head, "lrrrrl", body)


def _between(metric: str, low: float | None, high: float | None) -> str:
    """Formats an interval, with its unit only once.

    >>> _between("gc_cpu_share", 0.071, 0.141), _between("heap_peak_mib", 300.0, 2048.0)
    ('7.1–14.1 %', '300–2,048 MiB')
    """
    if low is None or high is None:
        return NONE
    if metric.endswith("_share"):
        low, high = max(low, 0.0), min(high, 1.0)
    return between_text(value(metric, low), value(metric, high))


def held(change: Change) -> str:
    """Returns whether a prediction came true: held, not held or undecided."""
    if change.held is None:
        return "undecided"
    return "held" if change.held else "not held"


def expectation_note(pair: Pair) -> str:
    """Returns what the table of predictions compares."""
    of = f'Predicted from the "{names_of(pair)[0]}" run for the same load.'
    if pair.promise:
        of = f"{printable(pair.promise[0].upper() + pair.promise[1:])}."
    if pair.measurement is not None:
        after, before = printable(pair.after.label), printable(pair.before.label)
        of = f"Predicted for {after} from one run of {before} alone."
    shown = {name for name, change in pair.changes.items() if change.measured is not None}
    late = (
        ""
        if pair.after.by_metrics or shown <= {"wall_s"}
        else " In this table, GC is without the first 0.5 s."
    )
    return f"{of}{late}{what_held(pair)}"


def what_held(pair: Pair) -> str:
    """Returns the meaning of the last column in the table of predictions, as sentences."""
    reasons = dict.fromkeys(filter(None, (c.open_because for c in pair.changes.values())))
    is_open = f" Undecided: {'; or '.join(reasons)}." if reasons else ""
    return f" Held: what was measured is in the predicted interval.{is_open}"


def settings(pairs: Sequence[Pair], brief: Sequence[str] = ()) -> list[Table]:
    """Returns tables with one row per side: first the main figures, then the others.

    Args:
        pairs: the sides.
        brief: the letters of the sides, if their names do not fit.
    """
    tables = []
    measurement = pairs[0].measurement
    values = [change for pair in pairs for change in pair.changes.values()]
    known = {one.metric for one in values if one.before is not None or one.after is not None}
    own = [
        (
            one.name,
            _MEASURED_HEADS.get(one.name, f"{printable(one.name)} {one.unit}".strip()),
            1.0,
        )
        for one in (measurement.metrics if measurement else ())
    ]
    main = (*own, *(_SETTING_COLUMNS[:_BESIDE_MEASURED] if own else _SETTING_COLUMNS))
    for title, columns in (("Setting", main), ("Also", _MORE_SETTING_COLUMNS)):
        shown = [column for column in columns if column[0] in known]
        names = [printable(side.label) for side in sides_of(pairs)]
        if brief:
            whole = [" ".join(both) for both in zip(brief, names, strict=True)]
            names = whole if columns is main else [*brief]
        first = [_number(pairs[0].changes[name].before, times) for name, _, times in shown]
        others = (
            [_cell(pair.changes[name], times) for name, _, times in shown] for pair in pairs
        )
        body = [(name, *row) for name, row in zip(names, (first, *others), strict=True)]
        head = (title, *(head for _, head, _ in shown))
        tables.append(Table(head, "l" + "r" * len(shown), body, least=(LEAST_SETTING,)))
    return [table for table in tables if len(table.head) > 1]


def value(metric: str, number: float | None, unit: str = "") -> str:
    """Formats the value of a metric with its unit; `unit` is for metrics of other names."""
    if metric in ("wall_s", "cpu_s"):
        return duration(number)
    if metric.endswith("ns_per_op"):
        return nanoseconds(number)
    if metric.endswith("_per_op"):
        return NONE if number is None else f"{number:,.0f}"
    if metric not in LABELS:
        if unit == "ms" and number is not None:
            return duration(number / 1000)
        return NONE if number is None else digits(number, 3)
    if metric.endswith("_per_s") and "mib" not in metric:
        return rate(number)
    if "share" in metric:
        return share(number)
    if metric == "cycles_per_run":
        return NONE if number is None else digits(number, 3)
    if metric.endswith("_ms"):
        return milliseconds(number)
    return mib_per_s(number) if metric.endswith("_per_s") else mib(number)


def percent(part: float) -> str:
    """Formats a change as a percentage, or as a factor if it is large.

    >>> percent(-0.482), percent(0.004), percent(1.5), percent(24.0), percent(0.0001)
    ('-48 %', '+0.4 %', '+150 %', '×25', '0 %')

    A small remainder is not rounded to nothing.

    >>> percent(-0.9991), percent(-0.99999), percent(-1.0)
    ('-99.9 %', '-99.9 %', '-100 %')
    """
    return f"×{1 + part:,.0f}" if part >= _TENFOLD else _percent(part)


def _percent(part: float) -> str:
    hundred = 100 * part
    if abs(hundred) < 0.05:
        return "0 %"
    if -100 < hundred < -99.5:
        return f"{max(hundred, -99.9):+.1f} %"
    return f"{hundred:+,.0f} %" if abs(hundred) >= 9.95 else f"{hundred:+.1f} %"


def interval(change: Change) -> str:
    """Formats the interval of a relative change, in per cent or as factors like the change."""
    if change.ends is None or (change.ends[1] >= _ANY_FACTOR and not change.is_significant):
        return NONE
    if (change.relative or 0.0) >= _TENFOLD:
        return " to ".join(f"×{digits(1 + part, 2)}" for part in change.ends)
    low, high = (end_text(part, exact=change.is_significant) for part in change.ends)
    if change.ends[1] >= _TENFOLD:
        return f"{low} to {percent(change.ends[1])}"
    return f"{low.removesuffix(' %')} to {high}"


def end_text(part: float, *, exact: bool) -> str:
    """Formats an end of an interval; an `exact` one is not rounded to no change.

    >>> end_text(-0.0003, exact=True), end_text(-0.0003, exact=False), end_text(-0.069, exact=True)
    ('-0.03 %', '0 %', '-6.9 %')
    """
    shown = _percent(part)
    return f"{100 * part:+.1g} %" if exact and shown == "0 %" and part else shown


def _cell(change: Change, times: float) -> str:
    """Formats the value of a side with its change, or `~` if that is not significant.

    >>> from gctrace_analyzer.analysis.compare.change import Change
    >>> _cell(Change("gc_per_s", 4.0, 1.0, -3.0, -3.5, -2.5, "better"), 1.0)
    '1.00 -75 %'
    >>> _cell(Change("gc_per_s", 4.0, 1.0, -3.0, -3.5, 0.5, "~"), 1.0)
    '1.00 ~'
    >>> _cell(Change("gc_per_s", 4.0, 1.0, -3.0), 1.0)
    '1.00'
    """
    number = _number(change.after, times)
    if not change.is_tested or change.relative is None:
        return number
    judged = change.verdict in ("better", "worse")
    return f"{number} {percent(change.relative) if judged else change.verdict or NONE}"


def _number(value: float | None, times: float) -> str:
    """Formats with three digits.

    >>> [_number(value, 1.0) for value in (525.0, 16.5, 0.4, 0.013)]
    ['525', '16.5', '0.40', '0.013']
    """
    if value is None:
        return NONE
    number = times * value
    if number >= 99.5:
        return f"{number:,.0f}"
    decimals = 1 if number >= 9.95 else 2 if number >= 0.1 else 3
    return f"{number:.{decimals}f}"
