"""Recommended settings and predictions, as rows of text for all output formats."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.advise.candidates import without_ballast
from gctrace_analyzer.advise.observed import OF_LEVEL
from gctrace_analyzer.advise.phrases import to_set
from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.advise.subject import advised_process
from gctrace_analyzer.advise.whatif import above_live_heap, is_measured, is_present, lasts_text
from gctrace_analyzer.analysis.postmortem.facts import MOST_OF_LIMIT
from gctrace_analyzer.analysis.settings.naming import (
    gogc_name,
    gogc_range,
    most_gogc,
    range_name,
)
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.present.document import Table
from gctrace_analyzer.present.format import NONE, duration, mib, share
from gctrace_analyzer.present.sections.headline import has_subject_died
from gctrace_analyzer.units import IN_GIB_FROM_MIB, MIB, digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.advise.prediction.outcome import Predictor
    from gctrace_analyzer.present.report import Report
    from gctrace_analyzer.schema import Row

MOST_ROWS = 4


def setting_text(row: Row) -> str:
    """Returns the setting of a row as text: `GOGC=200 GOMEMLIMIT=1GiB`."""
    return as_text(Setting.of(row))


def as_text(setting: Setting, predictor: Predictor | None = None) -> str:
    """Returns a setting as text: `GOGC=200 GOMEMLIMIT=1GiB`."""
    name = _about(str(setting), setting.limit, predictor)
    if predictor and setting == predictor.now:
        name = _with_gogc(name, setting.limit, predictor)
    parts = [name]
    if setting.ballast:
        parts.append(f"ballast {mib(setting.ballast)}")
    if setting.allocation != 1.0:
        parts.append(f"and {share(1 - setting.allocation)} less allocation")
    return " ".join(parts)


_THRASH = {"risk": "?", "certain": "✗"}
_HEAD = ("cycles/s", "heap peak {}")
_CPU = {
    "gc_cpu_with_idle_share": "GC CPU+idle %",
    # GCCPUFraction of MemStats does not count idle marking.
    "gc_cpu_share": "GC CPU %",
}
"""Names of the columns with GC CPU."""

_IDLE = "+idle: with marking on idle CPUs"


def _about(text: str, limit: float | None, predictor: Predictor | None) -> str:
    """Returns a setting with the range of its limit, if it is the present one and inferred."""
    regime = predictor and limit and limit == predictor.now.limit and predictor.regime
    if not regime or regime.memory_limit_source != "inferred":
        return text
    limits = range_name(regime.memory_limit_mib_low, regime.memory_limit_mib_high)
    return re.sub(r"GOMEMLIMIT=\S+", f"GOMEMLIMIT{limits}MiB", text)


def name_of(row: Row, predictor: Predictor) -> str:
    """Returns the setting of a row; for a partly known present setting, the known part."""
    regime, own = predictor.regime, str(Setting.of(row))
    name = setting_text(row).replace(
        own, own if is_present(row, predictor) else to_set(row, predictor)
    )
    name = _about(name, row["memory_limit_mib"], predictor)
    if not is_present(row, predictor):
        return name
    if (
        not predictor.gogc_is_assumed
        and most_gogc(regime) is not None
        and not row["memory_limit_mib"]
    ):
        name = gogc_name(regime) if regime else name
    return _with_gogc(name, row["memory_limit_mib"], predictor)


def _with_gogc(name: str, limit: float | None, predictor: Predictor) -> str:
    """Returns the name of the present setting, with GOGC as precise as the goals show it."""
    regime = predictor.regime
    gogc, *others = name.split(" ")
    if predictor.gogc_is_assumed:
        return " ".join([f"{gogc} (assumed)", *others])
    if regime is None:
        return name
    inferred = limit and regime.memory_limit_source == "inferred"
    if inferred and regime.gogc_pct is None:
        gogc = f"GOGC≥{regime.gogc_pct_low:.0f}" if regime.gogc_pct_low else "GOGC=?"
    if gogc_range(regime) is not None:
        gogc = gogc_name(regime)
    if regime.set_by == "either" and not limit and regime.memory_limit_mib_high:
        limits = range_name(regime.memory_limit_mib_low, regime.memory_limit_mib_high)
        gogc = f"{gogc} or GOMEMLIMIT{limits}MiB"
    return " ".join([gogc, *others])


def advice(
    rows: pl.DataFrame, predictor: Predictor, title: str = "Recommended settings"
) -> Table:
    """Returns a table of the recommended and the present setting with their figures.

    Args:
        rows: what `recommend` returns, not empty.
        predictor: the predictor, which knows the present setting.
        title: the head of the first column.
    """
    shown = rows.head(MOST_ROWS)
    unit, times = _unit_of_peaks(shown)
    cpu = _cpu_column(shown)
    body = [
        (
            f"{_mark(row)} {word_of(row):<7} {name_of(row, predictor)}",
            *_figures(row, cpu, times),
        )
        for row in shown.iter_rows(named=True)
    ]
    return _table((title, *_head(cpu, unit)), body)


def after_death(rows: pl.DataFrame, report: Report) -> pl.DataFrame:
    """Returns recommendations; after a kill, none that contradicts what its post-mortem advises."""
    first, said = rows.row(0, named=True), report.verdict.action if report.verdict else ""
    limit, gogc = first["memory_limit_mib"], first["gogc"] or 0.0
    own = f"GOMEMLIMIT={limit:.0f}MiB" if limit else f"GOGC={gogc:g}"
    is_dropped = has_subject_died(report) and (first["now"] or own not in said)
    return rows.with_columns(rank=None, why=None) if is_dropped else rows


def refusal(report: Report) -> str:
    """Returns why nothing but perhaps a memory limit can be recommended, as a sentence."""
    is_none = report.advice.recommendations["now"][0]
    what = "No recommendation" if is_none else "Only GOMEMLIMIT is recommended"
    return f"{what}: {report.advice.baseline.refused}."


def word_of(row: Row) -> str:
    """Returns the meaning of a row of `recommend` for the reader: now, advised, try or or."""
    if row["now"]:
        return "now"
    firm = "try" if row["confidence"] == "low" else "advised"
    return firm if row["rank"] == 1 else "or"


def predictions(rows: pl.DataFrame, predictor: Predictor) -> Table:
    """Returns a table of every prediction of a what-if, and of the present setting."""
    marks = any(_mark(row) != " " for row in rows.iter_rows(named=True))
    # The present setting is where it belongs in the order; off is the highest value.
    order = ("allocation", "gogc", "memory_limit_mib", "ballast_mib")
    falling = (True, *[False] * (len(order) - 1))
    rows = rows.sort(order, descending=falling, nulls_last=True) if rows["now"][-1] else rows
    body = []
    unit, times = _unit_of_peaks(rows)
    cpu = _cpu_column(rows)
    for row in rows.iter_rows(named=True):
        name = name_of(row, predictor) + " (now)" * is_present(row, predictor)
        body.append((f"{_mark(row)} {name}" if marks else name, *_figures(row, cpu, times)))
    return _table((f"What if{horizon_text(rows).replace(';', ',')}", *_head(cpu, unit)), body)


def _table(head: tuple[str, ...], body: list[tuple[str, ...]]) -> Table:
    return Table(head, "l" + "r" * (len(head) - 1), body, spare=(head.index(_HEAD[0]),))


def _cpu_column(rows: pl.DataFrame) -> str | None:
    """Returns the GC CPU column of the rows; None if the input shows no GC CPU."""
    return next((name for name in _CPU if rows[name].count()), None)


def _head(cpu: str | None, unit: str) -> tuple[str, ...]:
    return (*([] if cpu is None else [_CPU[cpu]]), *(head.format(unit) for head in _HEAD))


def lasting(rows: pl.DataFrame) -> Iterator[str]:
    """Yields how long each setting lasts if the live heap grows."""
    for row in rows.drop_nulls("lasts_h").iter_rows(named=True):
        if not row["lasts_h"]:
            yield f"{setting_text(row)}: already exceeded."
            continue
        end = "thrashes" if row["fits"] is None else "thrashes or exceeds the container"
        yield f"{setting_text(row)}: {lasts_text(row)} until the program {end}."


def horizon_text(rows: pl.DataFrame) -> str:
    """Returns the prediction horizon as text; empty for now."""
    later = rows.filter(pl.col("refused").is_null())["horizon_s"].max()
    return f"; in {duration(later)}" if isinstance(later, float) and later else ""


def ballast_notes(baseline: Predictor, rows: pl.DataFrame) -> Iterator[str]:
    """Yields the settings that replace each ballast in the rows, and what a ballast is."""
    shown = rows.head(MOST_ROWS) if "rank" in rows.columns else rows
    settings = dict.fromkeys(Setting.of(row) for row in shown.iter_rows(named=True))
    like = [
        (setting, without_ballast(baseline, setting)) for setting in settings if setting.ballast
    ]
    for setting, words in like:
        if words:
            yield f"{as_text(setting)}: {words}."
    if like:
        yield "The peaks here exclude the ballast; gctrace includes it."


def legend(shown: Table, report: Report, *, wide: bool = False) -> str:
    """Returns the meaning of the signs in a table of settings, and which cycles it leaves out."""
    signs = {row[0][:1] for row in shown.rows}
    words = [f"{sign} {word}" for sign, word in SIGNS.items() if sign in signs]
    has_cpu = any("+idle" in head for head in shown.head)
    has_intervals = any("(" in cell for row in shown.rows for cell in row[1:])
    within = ["80 % intervals in parentheses"] if wide and has_intervals else []
    cycles, process = report.analysis.cycles, advised_process(report.analysis)
    starts_s = cycles.filter(process=process)["start_s"]
    late_s = starts_s.filter(starts_s >= DEFAULT.warm_up_s).min()
    # The time from the start-up to the first steady cycle belongs to neither.
    is_late = (
        [f"without start-up (first {late_s:.1f} s)"]
        if isinstance(late_s, float) and (starts_s < DEFAULT.warm_up_s).any()
        else []
    )
    has_ballast = (report.advice.recommendations.head(MOST_ROWS)["ballast_mib"] > 0).any()
    peaks = ["peaks exclude the ballast"] if has_ballast else []
    return " · ".join([*([_IDLE, *is_late] if has_cpu else []), *peaks, *words, *within])


SIGNS = {"✗": "thrashes", "?": "may thrash", "!": "does not fit the container"}


def _mark(row: Row) -> str:
    """Returns the sign before a setting that thrashes, does not fit, or is recommended."""
    if row["fits"] is False and row["thrash"] != "certain":
        return "!"
    if row["thrash"] in _THRASH:
        return _THRASH[row["thrash"]]
    return "▸" if row.get("rank") == 1 and row["confidence"] != "none" else " "


def _unit_of_peaks(rows: pl.DataFrame) -> tuple[str, float]:
    """Returns the unit of heap peaks in a table, and its size in MiB."""
    most = rows["heap_peak_mib"].max()
    in_gib = isinstance(most, float) and most >= IN_GIB_FROM_MIB
    return ("GiB", 1 / 1024) if in_gib else ("MiB", 1.0)


def _figures(row: Row, cpu: str | None, peak_times: float) -> tuple[str, ...]:
    return tuple(
        _interval(row, name, times)
        for name, times in ((cpu, 100), ("gc_per_s", 1), ("heap_peak_mib", peak_times))
        if name is not None
    )


def _interval(row: Row, name: str, times: float) -> str:
    if row[name] is None:
        return NONE
    # A ballast takes no physical memory, so the peak is shown without it.
    ballast = (row["ballast_mib"] or 0.0) if name == "heap_peak_mib" else 0.0
    value, low, high = (
        _number(times * (row[f"{name}{end}"] - ballast)) for end in ("", "_low", "_high")
    )
    return value if is_measured(row) else f"{value} ({low}–{high})"


def _number(value: float) -> str:
    """Formats with two significant digits, large numbers in full, as sentences have them.

    >>> [_number(value) for value in (9.63, 10.94, 0.184, 142.3, 211.5, 1234.6)]
    ['9.6', '11', '0.18', '142', '211', '1,235']
    """
    return digits(value, 2) if value >= 9.95 else f"{value:.2g}"


def reasons(rows: pl.DataFrame, predictor: Predictor, said: str = "") -> list[tuple[str, str]]:
    """Returns labelled sentences: reason, memory, notes and the confidence.

    Args:
        rows: what `recommend` returns.
        predictor: the predictor, which knows the present setting.
        said: text above, such as the command that tests a setting.
    """
    first = rows.row(0, named=True)
    sentences = [("Why", first["why"])] if first["why"] else []
    if first["memory_peak_mib"] is not None:
        sentences += [("Memory", text) for text in _memory(first, predictor)]
    others = rows.filter(~pl.col("now"))
    # The figures of the present setting are measured, so nothing is predicted for a live heap.
    unsaid = OF_LEVEL if others.is_empty() and is_measured(first) else ()
    known = (first["risk"], *above_live_heap(rows, predictor), *predictor.warnings)
    notes = (text for text in known if text)
    sentences += [("Note", text) for text in notes if not text.startswith(unsaid)]
    firm = ', so "try", not "advised"' if word_of(first) == "try" else ""
    for row in others.head(1).iter_rows(named=True):
        sentences.append(confidence(row, predictor, said, firm))
    return sentences


def confidence(
    row: Row, predictor: Predictor, said: str = "", firm: str = ""
) -> tuple[str, str]:
    """Returns how reliable a prediction is, why, and how to test it, as a labelled sentence."""
    level, why = predictor.confidence(row), predictor.doubt(row) or _evidence(predictor)
    is_tested = level != "low" or "gctrace-analyze measure" in said
    test = "" if is_tested else "; test it with gctrace-analyze measure"
    return "Confidence", f"{level}{firm}{f': {why}' if why else ''}{test}"


def _evidence(predictor: Predictor) -> str:
    """Returns why the confidence in a prediction is not low."""
    load = predictor.load
    steady = f"{duration(load.span_s)} of steady cycles" if load else ""
    if predictor.warnings:
        return f"{steady}, but see the notes"
    return steady if predictor.load_is_known else f"{steady}, but the kind of load is uncertain"


def _memory(row: Row, predictor: Predictor) -> Iterator[str]:
    """Yields what a container counts at the peak, if it or memory outside Go is known."""
    room, outside = predictor.settings.value("container_limit_mib"), predictor.off_heap_mib
    if not room and not outside:
        return
    heap = row["heap_peak_mib"] - (row["ballast_mib"] or 0.0)
    other = row["memory_peak_mib"] - heap - outside
    of_room = f" (the container has {_whole_size(room)})" if room else ""
    rest = (
        f", outside Go {outside:,.0f} with file pages"
        if outside
        else "; memory outside Go and file pages are unknown and add to this"
    )
    # The parts add up as printed, and the heap has the digits of the table.
    shown = [math.ceil(size - 0.5) for size in (heap, other, outside)]
    yield (
        f"about {sum(shown):,} MiB at the peak{of_room}: heap {shown[0]:,}, other memory of Go "
        f"{shown[1]:,}{_assumed(other, predictor)}{rest}"
    )


def _assumed(outside: float, predictor: Predictor) -> str:
    """Returns that a size outside the heap is assumed (MiB), and how large it may be; or ""."""
    if predictor.non_heap_is_known:
        return ""
    most = outside + (hidden := predictor.hidden_stacks_mib)
    return f" (assumed; up to {most:,.0f} with all stacks)" if hidden >= 1 else " (assumed)"


def beyond_container(rows: pl.DataFrame, predictor: Predictor) -> Iterator[str]:
    """Yields why the first settings that do not fit, or may not fit, the container do not."""
    if (room := predictor.room_mib) is None:
        return
    outside = pl.col("memory_peak_mib") - pl.col("heap_peak_mib")
    # A limit bounds the heap, even if the interval extends above it.
    may = (pl.col("heap_peak_mib_high") + outside > room) & pl.col("memory_limit_mib").is_null()
    predicted = rows.filter(pl.col("heap_peak_mib").is_not_null())
    kinds = (
        ("may not", pl.col("fits") & may, "_high"),
        ("does not", pl.col("fits").not_(), ""),
    )
    # A kill, or a live heap that grows, contradicts that.
    is_sure = len(predicted) == len(rows) and not (
        predictor.may_lack_memory or predictor.endless
    )
    tight = predicted.filter(pl.col("memory_peak_mib") > MOST_OF_LIMIT * room)
    if is_sure and tight.is_empty() and predicted.filter(may).is_empty():
        yield f"All of these fit the {room:,.0f} MiB that the container has for the program."
    for word, which, end in kinds:
        beyond = predicted.filter(which)
        if beyond.is_empty():
            continue
        row = min(beyond.iter_rows(named=True), key=lambda row: float(row["memory_peak_mib"]))
        ballast = row["ballast_mib"] or 0.0
        size_mib = row["memory_peak_mib"] - row["heap_peak_mib"] + ballast
        others = ", nor do larger heaps" if len(beyond) > 1 and not end else ""
        yield (
            f"{setting_text(row)} {word} fit{others}: {'up to ' if end else ''}"
            f"{digits(row[f'heap_peak_mib{end}'] - ballast, 1)} MiB of heap and "
            f"{size_mib:,.0f} MiB outside it{_assumed(size_mib, predictor)} are more than the "
            f"{room:,.0f} MiB that the container has for it"
        )


def _whole_size(size_mib: float) -> str:
    """Returns a size in MiB; also in bytes if it was stated in other units.

    >>> _whole_size(2048), _whole_size(2e9 / MIB)
    ('2,048 MiB', '1,907 MiB (2,000,000,000 bytes)')
    """
    in_bytes = "" if size_mib % 1 == 0 else f" ({size_mib * MIB:,.0f} bytes)"
    return f"{size_mib:,.0f} MiB{in_bytes}"


def manifests(variables: str) -> dict[str, str]:
    """Returns the variables to paste, for each kind of deployment."""
    lines = variables.split()
    pairs = [line.split("=") for line in lines]
    return {
        "environment": "\n".join(f"export {line}" for line in lines),
        "dockerfile": "\n".join(f"ENV {line}" for line in lines),
        "kubernetes": "env:\n"
        + "\n".join(f'  - name: {name}\n    value: "{value}"' for name, value in pairs),
        "systemd": "[Service]\n" + "\n".join(f"Environment={line}" for line in lines),
    }
