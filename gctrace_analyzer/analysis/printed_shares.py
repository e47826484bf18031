"""GC CPU over a log, from the percentages in its lines.

Each line prints the share of the CPU that GC took since its process started, as a whole number.
That covers the whole time, even if lines are missing or truncated times hide its length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.cycles import has_fewer_cpus
from gctrace_analyzer.analysis.spans import select
from gctrace_analyzer.ingest.gctrace.columns import end_s
from gctrace_analyzer.ingest.rows import (
    by_process,
    column_of,
    complete,
    is_one_process,
    of_each_process,
)
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gctrace_analyzer.analysis.thresholds import Thresholds

_NEAR = 0.1
"""Share of what lines add up to, by which truncated durations may move it."""

_OF_CPU = ("gc_cpu_cores", "assist_share_of_cpu")
_WITH_IDLE = ("gc_cpu_with_idle_share", "gc_cpu_with_idle_cores", "gc_cpu_nonidle_share")


def bounded(figures: Mapping[str, Any], spans: pl.DataFrame) -> dict[str, Any]:
    """Returns the figures of a summary, corrected by the printed percentages, by name.

    Args:
        figures: of the summary, over the time of lines that follow each other.
        spans: what `spans.of_cycles` returns for the same cycles.
    """
    share, low, high = (figures[f"gc_cpu_share{end}"] for end in ("", "_low", "_high"))
    printed = _bounds(spans)
    if printed is None or (share is None and spans["gc_num"][0] != 1):
        return {}
    least, most = printed
    value = sum(printed) / 2 if share is None else _within(share, printed)
    is_of_most = figures["missing_cycles"] <= figures["cycles"]
    if share is not None and figures["missing_cycles"] and value != share:
        # The few lines that follow each other are not like the others.
        value = sum(printed) / 2
    # Where most lines are missing, most of the cost may be theirs.
    elif share is not None and is_of_most and abs(value - share) <= _NEAR * share:
        least, most = _within(low or share, printed), _within(high or share, printed)
        if spans["gc_num"][0] == 1:
            # The runtime's time begins before the log's, which is in whole milliseconds.
            least, most = min(least, share), max(most, share)
    bounds = {"gc_cpu_share": value, "gc_cpu_share_low": least, "gc_cpu_share_high": most}
    if share is None:
        return {**bounds, "gc_cpu_cores": value * _procs(spans)}
    times = value / share if share else 1.0
    # The percentages leave idle marking out, so its time stays as the lines have it.
    added = {
        "gc_cpu_with_idle_share": value - share,
        "gc_cpu_with_idle_cores": (times - 1) * (figures["gc_cpu_cores"] or 0.0),
    }
    # What lines that are missing took on idle CPUs is unknown.
    unknown = _WITH_IDLE if figures["missing_cycles"] and times != 1 else ()
    scaled = {
        name: None
        if figures[name] is None or name in unknown
        else figures[name] + added[name]
        if name in added
        else figures[name] * times
        for name in (*_OF_CPU, *_WITH_IDLE)
    }
    return {**bounds, **scaled}


def with_printed(figures: Mapping[str, Any], spans: pl.DataFrame) -> dict[str, float]:
    """Returns the bound of GC CPU in a log that prints more than its lines add up to.

    The cost may be in lines that are missing.
    """
    share, printed = figures["gc_cpu_share"], _bounds(spans)
    if share is None or printed is None or printed[0] <= share:
        return {}
    low, high = (figures[f"gc_cpu_share_{end}"] or share for end in ("low", "high"))
    return {"gc_cpu_share_low": low, "gc_cpu_share_high": max(high, printed[1])}


def about_range(spans: pl.DataFrame, *, by_print: bool) -> str:
    """Returns why GC CPU is a range: the largest cause."""
    if by_print:
        why = "its lines add up to another share than the whole percentages that they print"
        return f"GC CPU is a range: {why}."
    names = ("gc_num", "waiting_cpu_ms", "gc_cpu_low_s", "gc_cpu_high_s")
    numbers, waiting_ms, low, high = select(spans, *names).get_columns()
    by_waiting = float(waiting_ms.sum()) / 1000
    by_pauses = float((high - low).sum()) - by_waiting
    is_late = len(spans) > 1 and not (numbers == 1).any()
    causes = {
        "the runtime also counts threads that wait for a CPU": by_waiting,
        "Go 1.23 and later count only a part of the time to stop the world": by_pauses,
        "the log begins and ends with a cycle, so it holds one more cycle than intervals": (
            (high[0] or 0.0) if is_late else 0.0
        ),
    }
    return f"GC CPU is a range: {max(causes, key=lambda cause: causes[cause])}."


_PRINTED = "gc_cpu_since_start_pct"


def printed_last(cycles: pl.DataFrame) -> pl.DataFrame:
    """Returns the share since the start that each process printed last, if any.

    The columns are `process`, `until_s`, `gc_num` and `percent`, a whole number. The runtime
    calculates it at the end of a cycle, which is `until_s`.
    """
    printed = complete(cycles, _PRINTED)
    ends = end_s().alias("until_s"), pl.col("gc_num"), pl.col(_PRINTED).alias("percent")
    return of_each_process(printed, *(own.last() for own in ends))


def percent_text(percent: float) -> str:
    """Formats a share that the runtime truncates to a whole number: `12 %`, `under 1 %`."""
    return f"{percent:.0f} %" if percent else "under 1 %"


def costly_since_start(cycles: pl.DataFrame, t: Thresholds) -> str:
    """Returns the GC CPU since a process's start, if it is high and the log has little of it."""
    until_s, share, last = pl.col("until_s"), pl.col("percent"), printed_last(cycles)
    # Only after some cycles, half of them later than the warm-up.
    many = (pl.col("gc_num") >= t.short_log_cycles) & (until_s >= 2 * t.warm_up_s)
    is_long = (until_s >= t.short_log_s) | many
    costly = last.filter(is_long, share > 100 * t.gc_cpu_warn)
    if costly.is_empty():
        return ""
    worst = costly.sort(share).row(-1, named=True)
    who = f", process {worst['process']}" if len(last) > 1 else ""
    return (
        f"Since the start ({duration_text(worst['until_s'])}, {worst['gc_num']:,} cycles{who}), GC "
        f"has taken {percent_text(worst['percent'])} of the CPU, as the runtime prints."
    )


_SMALL_PART = 0.1
"""Share of the time since the start. A shorter log may differ from the rest of the run."""


def about_late_log(cycles: pl.DataFrame) -> Iterator[str]:
    """Yields the GC CPU since the start of processes that a log covers only in small part."""
    if is_one_process(cycles):
        for begin_s, gc_num, share, _ in _of_late(cycles):
            yield (
                f"The log begins {duration_text(begin_s)} after the start of the process, at "
                f"cycle {gc_num:,}; since the start, GC has taken {share} of the CPU, "
                "as the runtime prints."
            )
    elif cycles["process"].n_unique() <= _FEW_PROCESSES:
        taken = [
            f"{share} in process {own['process'][0]} ({duration_text(until_s)})"
            for own in by_process(cycles)
            for _, _, share, until_s in _of_late(own)
        ]
        if taken:
            yield (
                "Since the start, GC has taken this share of the CPU, as the runtime prints: "
                f"{', '.join(taken)}."
            )


_FEW_PROCESSES = 4
"""Processes. With more, a note would be too long."""


def _of_late(own: pl.DataFrame) -> Iterator[tuple[float, int, str, float]]:
    """Yields the first time and number of a process's cycles, its share, and the time of that."""
    if column_of(own, _PRINTED).null_count() or own["gc_num"].min() == 1:
        return
    (begin, first), (end, last) = (own["start_s", "gc_num"].row(at) for at in (0, -1))
    if begin is not None and (last - first >= 2 * len(own) or end - begin < _SMALL_PART * end):
        until_s, percent = printed_last(own)["until_s", "percent"].row(0)
        yield begin, first, percent_text(percent), until_s


def _procs(spans: pl.DataFrame) -> float:
    return float(spans["procs"].mean() or 0)  # type: ignore[arg-type]  # a numeric column


def _bounds(spans: pl.DataFrame) -> tuple[float, float] | None:
    """Returns the bounds of the share of GC CPU; None if the log does not show them."""
    if spans.is_empty() or has_fewer_cpus(spans):
        # The runtime also counts workers that wait for a CPU.
        return None
    procs, ends_s, share = (pl.col(name) for name in ("procs", "end_s", _PRINTED))
    ends = of_each_process(
        spans,
        pl.col("gc_num").first(),
        share.first().alias("before"),
        share.last().alias("printed"),
        (procs * pl.col("elapsed_s")).sum().alias("time_s"),
        (procs.max() * ends_s.first()).alias("begin_s"),
        (procs.min() * ends_s.last()).alias("end_s"),
        (procs.max() == procs.min()).alias("is_same"),
    )
    least_s = most_s = whole_s = 0.0
    for _, first, before, printed, time_s, begin_s, until_s, is_same in ends.iter_rows():
        if None in (before, printed, time_s, begin_s) or not (is_same or first == 1):
            return None
        # What was taken before the first cycle of a late log is not in its lines.
        begin_s, until_s = (0.0, time_s) if first == 1 else (begin_s, until_s)
        least_s += (printed * until_s - (before + 1) * begin_s) / 100
        most_s += ((printed + 1) * until_s - before * begin_s) / 100
        whole_s += until_s - begin_s
    if not whole_s > 0:
        return None
    return max(least_s / whole_s, 0.0), min(most_s / whole_s, 1.0)


def _within(value: float, ends: tuple[float, float]) -> float:
    return min(max(value, ends[0]), ends[1])
