"""The summary of a fleet as rows of text, for the terminal and for Markdown."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.analysis.fleet import OUTLYING
from gctrace_analyzer.present import markdown, text
from gctrace_analyzer.present.format import (
    NONE,
    count,
    duration,
    mib,
    mib_per_s,
    printable,
    rate,
    share,
    wrap,
)
from gctrace_analyzer.present.format import milliseconds as ms
from gctrace_analyzer.present.sections.overview import Table
from gctrace_analyzer.present.table import table as text_table
from gctrace_analyzer.present.table import width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import polars as pl

    from gctrace_analyzer.analysis.fleet import Answers
    from gctrace_analyzer.present.table import Line

SCHEMA_VERSION = 1
MOST_ROWS = 10
_NAME_CHARS = 26
_WRITTEN: Mapping[str, Callable[[float | None], str]] = {
    "gc_cpu_share": share, "live_heap_p50_mib": mib, "alloc_mib_per_s": mib_per_s,
    "stw_p99_ms": ms, "gc_per_s": rate,
}  # fmt: skip


def lines(answers: Answers, most: int = MOST_ROWS) -> Iterator[Line]:
    """Yields the summary for a terminal line by line."""
    for index, sentence in enumerate(facts(answers)):
        yield ((sentence, "bold" if index == 0 else ""),)
    yield ()
    for label, value, note in state(answers):
        first, *others = wrap(note, width() - 28)
        yield ((f"  {label:<12}", ""), (f"{value:>12}", "bold"), (f"  {first}", ""))
        yield from (((f"{'':28}{line}", ""),) for line in others)
    for table in tables(answers, most):
        yield from text_table(table)
    yield ()
    for sentence in notes(answers):
        for line in text.wrapped(sentence):
            yield ((f"  {line}", "dim"),)


def dumps(answers: Answers, most: int = MOST_ROWS) -> str:
    """Returns the summary as Markdown text."""
    first, *others = facts(answers)
    body = ["## Go garbage collection of a fleet", "", first, *(f"\n{each}" for each in others)]
    head = Table(("Figure", "value", ""), "lrl", state(answers))
    for table in (head, *tables(answers, most)):
        body += markdown.table(table)
    body += [f"\n> {markdown.escaped(each)}" for each in notes(answers)]
    return "\n".join(body) + "\n"


def to_json(answers: Answers) -> str:
    """Returns the summary as one JSON object; unknown values are null."""
    document = {"schema_version": SCHEMA_VERSION, **answers.to_dict()}
    return json.dumps(finite(document), indent=2, ensure_ascii=False) + "\n"


def finite(value: Any) -> Any:
    """Returns a document of plain values with null for infinite values and NaN."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def facts(answers: Answers) -> list[str]:
    """Returns how much was read, and what could not be used."""
    t = answers.totals
    read = [
        count(t.files, "file"),
        count(t.processes, "process", "processes")
        + (f" of {count(t.services, 'service')}" if t.services else ""),
        count(t.cycles, "cycle"),
    ]
    less = {
        "could not be read": t.unread,
        "without GC cycles": t.without_program,
        "processes with too few cycles": t.short,
        "killed for memory": t.killed,
    }
    parts = [f"{number:,} {what}" for what, number in less.items() if number]
    return [" · ".join(read), *(["  " + " · ".join(parts)] if parts else [])]


def state(answers: Answers) -> list[tuple[str, str, str]]:
    """Returns the headline figures: cores spent on GC, thrashing, possible savings."""
    t = answers.totals
    found = []
    if t.gc_cores is not None:
        of = f"of {cores(t.cores)}" + (f" ({share(t.gc_cores / t.cores)})" if t.cores else "")
        with_idle = f"; {cores(t.gc_with_idle_cores)} with idle marking"
        found.append(("GC CPU", f"{cores(t.gc_cores)} cores", of + with_idle))
    near = len(answers.thrash) - t.thrashing
    found.append(("Thrashing", f"{t.thrashing:,} now", f"{near:,} earlier or nearly"))
    if t.advised:
        ends = (t.saved_cores_low, t.saved_cores_high)
        by = f"of GC CPU: new settings for {count(t.advised, 'process', 'processes')}"
        found.append(_change(t.saved_cores, ends, "cores", cores, by))
        heap = (t.saved_heap_mib_low, t.saved_heap_mib_high)
        found.append(
            _change(t.saved_heap_mib, heap, "GiB", _gib, "of heap for the same processes")
        )
    elif t.processes:
        unknown = int(answers.services["without_advice"].sum())
        unchanged = int(answers.services["files"].sum()) - unknown
        note = f"{count(unchanged, 'process', 'processes')} need no change" + (
            f", no recommendation for {unknown:,}" if unknown else ""
        )
        found.append(("Advice", "none", note))
    return found


def _change(
    saved: float,
    ends: tuple[float, float],
    unit: str,
    written: Callable[[float | None], str],
    what: str,
) -> tuple[str, str, str]:
    sign = 1 if saved >= 0 else -1
    low, high = sorted(sign * end for end in ends)
    note = f"{what} ({written(low)} to {written(high)})"
    return ("Saves" if sign > 0 else "Costs", f"{written(sign * saved)} {unit}", note)


def notes(answers: Answers) -> list[str]:
    """Returns sentences about how the figures were computed."""
    t = answers.totals
    sentences = [
        "GC cores: CPU seconds spent on GC per second, without idle marking, summed over all "
        "files as if their processes ran at the same time."
    ]
    if t.advised:
        sentences.append(
            "Savings: the recommended against the present setting, with idle marking, for the "
            "last process of each file; 80 % intervals. Negative values are costs."
        )
    if t.unnamed:
        sentences.append(
            f"{count(t.unnamed, 'process', 'processes')} without a service: "
            "a pattern (id) such as '{service}/{pod}.log' reads it from the paths."
        )
    return sentences


def tables(answers: Answers, most: int = MOST_ROWS) -> list[Table]:
    """Returns the tables that have rows, each with at most `most` of them."""
    saving = answers.services.filter(answers.services["advised"] > 0).sort(
        "saved_cores", "service", descending=[True, False]
    )
    made = (
        ranked(answers.services, _services, most),
        ranked(saving, _savings, most),
        ranked(answers.thrash, _thrash, most),
        ranked(answers.limits, _limits, most),
        ranked(answers.outliers, _outliers, most),
        ranked(answers.versions, _versions, most),
        ranked(answers.settings, _settings, most),
        ranked(answers.errors, _errors, most),
    )
    return [each for each in made if each.rows]


def ranked(
    frame: pl.DataFrame, row: tuple[tuple[str, ...], str, Callable[..., Any]], most: int
) -> Table:
    """Returns the first rows of a frame as a table, with how many are left out."""
    head, align, cells = row
    left = len(frame) - most
    more = f"… and {left:,} more" if left > 0 else ""
    return Table(head, align, [cells(each) for each in frame.head(most).to_dicts()], more)


_services = (
    ("Services by GC CPU", "files", "GC cores", "GC CPU", "assists", "live heap", "pauses p99"),
    "lrrrrrr",
    lambda row: (
        short_name(row["service"]),
        f"{row['files']:,}",
        cores(row["gc_cores"]),
        share(row["gc_cpu_share"]),
        share(row["assist_share_of_gc_cpu"]),
        mib(row["live_heap_p50_mib"]),
        ms(row["stw_p99_ms"]),
    ),
)
_savings = (
    ("Possible savings", "processes", "cores", "GiB of heap"),
    "lrrr",
    lambda row: (
        short_name(row["service"]),
        f"{row['advised']:,}",
        _interval(row, "saved_cores", cores),
        _interval(row, "saved_heap_mib", _gib),
    ),
)
_thrash = (
    (
        "Thrashing or close to it",
        "state",
        "GC CPU",
        "eff. GOGC",
        "live",
        "limit",
        "limiter/due",
    ),
    "llrrrrl",
    lambda row: (
        _file(row),
        row["state"],
        share(row["gc_cpu_share"]),
        _gogc(row["effective_gogc_p50"]),
        mib(row["live_heap_max_mib"]),
        mib(row["limit_mib"]),
        row["limiter"] or _in(row["hours_to_limit"]),
    ),
)
_limits = (
    ("GOMEMLIMIT too close to the live heap", "live heap", "limit", "share", "eff. GOGC"),
    "lrrrr",
    lambda row: (
        _file(row),
        mib(row["live_heap_max_mib"]),
        mib(row["limit_mib"]),
        share(row["live_share_of_limit"]),
        _gogc(row["effective_gogc_p50"]),
    ),
)
_versions = (
    ("Go version (inferred from line format)", "processes", "services", "GC cores"),
    "lrrr",
    lambda row: (
        row["go"],
        f"{row['processes']:,}",
        f"{row['services']:,}",
        cores(row["gc_cores"]),
    ),
)
_settings = (
    ("GOGC", "GOMEMLIMIT", "processes", "services", "GC cores"),
    "llrrr",
    lambda row: (
        row["gogc"],
        row["limit"],
        f"{row['processes']:,}",
        f"{row['services']:,}",
        cores(row["gc_cores"]),
    ),
)
_outliers = (
    ("Different from its replicas", "figure", "value", "median", "replicas"),
    "llrrr",
    lambda row: (
        _file(row),
        OUTLYING[row["figure"]],
        _WRITTEN[row["figure"]](row["value"]),
        _WRITTEN[row["figure"]](row["usual"]),
        f"{row['replicas']:,}",
    ),
)
_errors = (
    ("Could not be read", "files", "for example"),
    "lrl",
    lambda row: (
        row["kind"],
        f"{row['files']:,}",
        f"{short_name(row['example'])}: {_cut(row['error'])}",
    ),
)


def _file(row: Mapping[str, Any]) -> str:
    """Returns the end of the file name, and the number of the process if it is not the first."""
    number = f" #{row['process']}" if row["process"] else ""
    return short_name(row["file"], _NAME_CHARS - len(number)) + number


def short_name(name: str, most: int = _NAME_CHARS) -> str:
    """Shortens a name for a table; its end is the most useful part.

    >>> short_name("logs/eu-west-1/checkout/checkout-7d9f8c-x2k9v.log")
    '…checkout-7d9f8c-x2k9v.log'
    """
    shown = printable(name)
    return shown if len(shown) <= most else "…" + shown[1 - most :]


def _cut(problem: str) -> str:
    return problem if len(problem) <= 60 else problem[:59] + "…"


def cores(value: float | None) -> str:
    """Formats cores or GiB with two digits.

    >>> cores(412.3), cores(3.14), cores(0.0412), cores(-0.2), cores(0)
    ('412', '3.1', '0.04', '-0.20', '0')
    """
    if value is None:
        return NONE
    if value == 0:
        return "0"
    return f"{value:,.{0 if abs(value) >= 10 else 1 if abs(value) >= 1 else 2}f}"


def _gib(value: float | None) -> str:
    return cores(None if value is None else value / 1024)


def _interval(row: Mapping[str, Any], name: str, written: Callable[[float | None], str]) -> str:
    low, high = (written(row[f"{name}_{end}"]) for end in ("low", "high"))
    return f"{written(row[name])} ({low} to {high})"


def _gogc(value: float | None) -> str:
    return NONE if value is None else f"{value:.0f}"


def _in(hours: float | None) -> str:
    return NONE if hours is None else f"in {duration(max(hours, 0.0) * 3600)}"
