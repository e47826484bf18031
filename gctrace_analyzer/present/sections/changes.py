"""The figures of a comparison as tables: changes, effect of the load, predictions, settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.present.document import Table
from gctrace_analyzer.present.format import (
    NONE,
    mib,
    mib_per_s,
    milliseconds,
    printable,
    rate,
    share,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.advise.sides import Pair

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

_DECIDING = ("gc_cpu_share", "heap_peak_mib")

_EXPECTED_NOTE = 'Predicted from the "before" run for the same load; 80 % interval.'


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


def expectation_note(pair: Pair) -> str:
    """Returns what the table of predictions compares."""
    if pair.after.by_metrics:
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


def settings(pairs: Sequence[Pair]) -> list[Table]:
    """Returns tables with one row per side: first the main figures, then the others."""
    rows = [pair.rows() for pair in pairs]
    tables = []
    for title, columns in (("Setting", _SETTING_COLUMNS), ("Also", _MORE_SETTING_COLUMNS)):
        shown = [
            column
            for column in columns
            if any(
                row[column[0]][end] is not None for row in rows for end in ("before", "after")
            )
        ]
        body = [
            (
                printable(pairs[0].before.label),
                *(_number(rows[0][metric]["before"], times) for metric, _, times in shown),
            ),
            *(
                (
                    printable(pair.after.label),
                    *(_cell(row[metric], times) for metric, _, times in shown),
                )
                for pair, row in zip(pairs, rows, strict=True)
            ),
        ]
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
    """Formats the value of a side with its change, `~` if that is not significant.

    >>> of = {"before": 4.0, "after": 1.0, "delta": -3.0, "delta_low": -3.5, "verdict": "better"}
    >>> _cell(of, 1.0), _cell({**of, "verdict": "~"}, 1.0), _cell({**of, "delta_low": None}, 1.0)
    ('1.00 -75 %', '1.00 ~', '1.00')
    """
    number = _number(row["after"], times)
    if row["delta_low"] is None or not row["before"]:
        return number
    return f"{number} {'~' if row['verdict'] == '~' else percent(row['delta'] / row['before'])}"


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
