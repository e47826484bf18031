"""The cost of GC since the start of a program, from one dump of its counters."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.metrics import since_start
from gctrace_analyzer.analysis.printed_shares import percent_text
from gctrace_analyzer.analysis.settings.known_programs import is_go
from gctrace_analyzer.ingest.believable import ABSURD_S
from gctrace_analyzer.ingest.memstats import fields
from gctrace_analyzer.ingest.rows import complete
from gctrace_analyzer.present.document import KeyFigure
from gctrace_analyzer.present.format import (
    count,
    duration,
    mib,
    mib_per_s,
    place,
    rounded,
    share,
)
from gctrace_analyzer.present.sections.overview import named
from gctrace_analyzer.units import MIB, digits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from gctrace_analyzer.analysis.postmortem.memory_of_dumps import Memory
    from gctrace_analyzer.present.report import Report


def costs_not_shown(report: Report) -> Iterator[str]:
    """Yields the cost since the start, if nothing else in the report shows it."""
    analysis = report.analysis
    if report.verdict is None or analysis.tables["memstats"].is_empty() or len(analysis.cycles):
        return
    rows, s = analysis.dumps.since_start, analysis.summary
    cpu, pauses = rows["gc_cpu_share"].count() > 0, rows["stw_max_ms"].count() > 0
    if (s.gc_cpu_share is None and cpu) or (s.stw_max_ms is None and pauses):
        yield from _since_start(report)


def costs(report: Report) -> Iterator[str]:
    """Yields the cost of GC since the start of the program, from its last dump."""
    rows = report.analysis.dumps.since_start
    if not since_start.shows_costs(rows):
        if not any(fields.PAUSES_STOPPED in note for note in report.analysis.log.notes):
            yield "What GC has cost since the start is not in the input."
        return
    yield from _since_start(report)
    if is_little(report):
        return
    dump = "scrape" if report.is_scraped else "dump"
    dumps = report.analysis.tables["memstats"]
    yield from _between(dumps)
    if len(dumps) > len(rows) or _have_no_times(dumps):
        yield f"Only {dump}s with times, and a cycle between them, show what GC costs now."
    else:
        yield f"Only a second {dump}, some time later, shows what GC costs now."


KEPT = "GODEBUG=gctrace=1 and keep its standard error"
GCTRACE = f"{KEPT}, or record several dumps with their times"


def how_to_see_costs(report: Report) -> str:
    """Returns how to see what GC costs; two dumps of its counters are enough."""
    if lack_counters(report):
        return (
            f"To see what GC costs, record NumGC and PauseTotalNs too, or run it with {KEPT}."
        )
    if not _is_second_enough(report):
        return f"To see what GC costs, run the program with {GCTRACE}."
    return (
        "To see what GC costs, take a second dump later (`gctrace-analyze "
        f"{report.title} LATER`), or run the program with {KEPT}."
    )


def _is_second_enough(report: Report) -> bool:
    """Returns whether the input is one dump, and a later one would show what GC costs."""
    dumps = report.analysis.tables["memstats"]
    counted = report.analysis.dumps.since_start["gc_cycles"].count()
    return len(dumps) == 1 and counted > 0 and not _have_no_times(dumps)


def lack_counters(report: Report) -> bool:
    """Returns whether dumps have times, but nothing that GC cost or did."""
    dumps = report.analysis.tables["memstats"]
    is_timed = len(dumps) > 1 and not report.is_scraped and not _have_no_times(dumps)
    return is_timed and not since_start.shows_costs(report.analysis.dumps.since_start)


def _have_no_times(dumps: pl.DataFrame) -> bool:
    names = ("logged_at", "elapsed_s", "last_gc_unix_ns", "pause_total_ns", "gc_cpu_s")
    return all(dumps[name].null_count() == len(dumps) for name in names)


def _between(dumps: pl.DataFrame) -> Iterator[str]:
    """Yields what lies between two dumps without times, if their counters show it."""
    counters = complete(dumps, "num_gc", "total_alloc_bytes").sort("num_gc")
    if len(counters) != 2 or not _have_no_times(dumps):
        return
    cycles, allocated = (
        counters[name][1] - counters[name][0] for name in ("num_gc", "total_alloc_bytes")
    )
    if allocated > 0:
        of = ", if they are of the same run" * (counters["process"].n_unique() > 1)
        ends = (place(*ends) for ends in counters.select("source", "line_no").rows())
        digit: Any = counters["resolution_bytes"].max() or 0
        which = "two dumps" if len(dumps) == 2 else f"dumps of {' and '.join(ends)}"
        yield (
            f"Between the {which}{of}, the program ran {count(cycles, 'GC cycle')} and allocated "
            f"{rounded(allocated / MIB, digit / MIB)}; they have no times, so there are no rates."
        )


# A word between head and heap would be another write, whose heap may be another program's.
_HEAD_OF_LINE = re.compile(
    r"gc #?\d+ @(?P<elapsed_s>\d+(?:[.,]\d+)?)s (?P<cpu>\d+)%: ?"
    r"(?:(?:[-\d.,+/ …]|ms|clock|cpu)*? \d+->\d+->(?P<live>\d+) MB, (?P<goal>\d+) MB goal)?"
)


def has_only_go(report: Report, names: Iterable[str | None]) -> bool:
    """Returns whether the programs are known to be written in Go, by their names or by notes."""
    notes = "\n".join(report.analysis.log.notes)
    return all(map(is_go, names)) or any(words in notes for words in fields.NOTES_OF_GO)


def of_unread(rejected: pl.DataFrame) -> str | None:
    """Returns what the last line that could not be read still shows of GC; None if nothing."""
    for row in rejected.reverse().iter_rows(named=True):
        heads = [*_HEAD_OF_LINE.finditer(row["text"])]
        elapsed_s = float(heads[0]["elapsed_s"].replace(",", ".")) if len(heads) == 1 else 0.0
        if not 0 < elapsed_s < ABSURD_S:
            continue
        cpu, live, goal = heads[0].group("cpu", "live", "goal")
        heap = live and (
            f" Its live heap was {mib(float(live))}, and the heap goal of that cycle was "
            f"{mib(float(goal))}."
        )
        return (
            f"Of a gctrace line that could not be read ({place(row['source'], row['line_no'])}), "
            f"the rest shows that GC took {percent_text(int(cpu))} of the CPU in the first "
            f"{duration(elapsed_s)} of the program.{heap or ''}"
        )
    return None


def _since_start(report: Report) -> Iterator[str]:
    """Yields the totals in the counters of the last dump."""
    rows = report.analysis.dumps.since_start
    if len(rows) == 1:
        row = rows.row(0, named=True)
        in_brief = bool(figures(report))
        cpu, pauses = _cpu_since_start(row), _pauses_since_start(row, in_brief=in_brief)
        cpu = cpu and row["gc_cycles"] != 0 and f"{cpu}{_judged(report)}"
        text = "; ".join(filter(None, (cpu, pauses))) or "no GC pause was measured"
        # A ring of pauses alone does not cover the time since the start.
        only_ring = not cpu and row["gc_cycles"] is None and not row["stw_total_ms"]
        at, last = row["line_no"], report.analysis.tables["memstats"]["line_no"].max()
        since = "Since the start of the program" if report.verdict else "Since its start"
        if at != last and not report.is_scraped:
            since = f"From its start to the dump of {place(row['source'], at)}"
        yield f"{text[:1].upper()}{text[1:]}." if only_ring else f"{since}, {text}."
        used = _used(row, is_little=is_little(report))
        if not in_brief:
            yield from _rates(row, used)
        elif is_little(report) and used:
            yield f"{used}."
        yield from _forced(row)
        yield from _long_pause(row, report)
    else:
        most = rows.sort("stw_total_ms", descending=True, nulls_last=True).row(0, named=True)
        if most["stw_total_ms"]:
            of = named(report, most["process"])
            yield f"Process {of} was stopped longest: {_pauses_since_start(most)}."


_FEWEST = 3
"""Rows. Fewer figures are read faster in a sentence."""


def figures(report: Report) -> list[KeyFigure]:
    """Returns what a single dump shows since the start, and its sizes; empty if that is little."""
    rows, dumps = report.analysis.dumps.since_start, report.analysis.tables["memstats"]
    if report.verdict is not None or len(dumps) != 1 or not since_start.shows_costs(rows):
        return []
    shown = [*_figures_of_costs(rows.row(0, named=True))]
    ends = report.analysis.tables["cycle_pauses"]["ended_at"].drop_nulls()
    if len(ends) > 1 and all(figure.label != "Frequency" for figure in shown):
        span_s = (ends.max() - ends.min()).total_seconds()  # type: ignore[operator, union-attr]  # times
        often = f"{digits((len(ends) - 1) / span_s, 2)}/s" if span_s else ""
        last = KeyFigure("Frequency", often, f"last {len(ends)} cycles, in {duration(span_s)}")
        shown += [last] * bool(often)
    for memory in report.analysis.memory:
        shown += _figures_of_sizes(memory, dumps.row(0, named=True))
    return shown if len(shown) >= _FEWEST else []


def _figures_of_costs(row: Mapping[str, Any]) -> Iterator[KeyFigure]:
    longest, stopped_ms, length_s = (
        row[name] for name in ("stw_max_ms", "stw_total_ms", "length_s")
    )
    of_time = share(stopped_ms / 1000 / length_s) if length_s and stopped_ms else ""
    if longest is not None and row["gc_cycles"] != 0:
        of = "a cycle" if row["pauses_are_all"] else f"the {_listed(row)}"
        in_all = [f"in all {of_time} of the time"] if of_time else []
        note = "; ".join((f"longest of {of}", *_other_pauses(row), *in_all))
        yield KeyFigure("Pauses", _pause(longest), note)
    elif of_time:
        yield KeyFigure("Pauses", of_time, "of the time since the start")
    if row["gc_per_s"]:
        over = f"{count(row['gc_cycles'], 'cycle')} in {duration(length_s)}, since the start"
        yield KeyFigure("Frequency", f"{digits(row['gc_per_s'], 2)}/s", over)
    if row["alloc_mib_per_s"]:
        yield KeyFigure(
            "Allocation", mib_per_s(row["alloc_mib_per_s"]), "on average since the start"
        )
    if row["cpu_s"] and length_s:
        used = share(row["cpu_s"] / length_s)
        yield KeyFigure("CPU used", used, "of one CPU, by GC and the program")


def _figures_of_sizes(memory: Memory, dump: Mapping[str, Any]) -> Iterator[KeyFigure]:
    step = memory.resolution_mib
    if memory.needed_mib is not None and memory.needed_is is not None:
        sizes = {"heap goal": dump["next_gc_bytes"], "live heap": dump["heap_live_bytes"]}
        parts = [
            f"{name} {mib(size / MIB)}" for name, size in sizes.items() if size is not None
        ]
        needed_is = memory.needed_is.removeprefix("the ")
        label = f"{needed_is[0].upper()}{needed_is[1:]}"
        yield KeyFigure(label, rounded(memory.needed_mib, step), "; ".join(parts))
    if memory.sys_mib is not None:
        back = memory.released_mib
        size = rounded(back, step) if back else "none"
        returned = [f"{size} of it returned"] * (back is not None)
        note = "; ".join(("obtained by the runtime", *returned))
        yield KeyFigure("From the OS", rounded(memory.sys_mib, step), note)
    if memory.rss_mib is not None:
        yield KeyFigure("Resident", rounded(memory.rss_mib, step), "physical memory now")


def is_costly(report: Report) -> bool:
    """Returns whether GC has taken a share of CPU since the start that is worth lowering."""
    t, rows = report.analysis.thresholds, _of_long_runs(report)
    is_high = rows["gc_cpu_share"] >= t.gc_cpu_warn
    return bool((is_high & ~_ended_early(rows, t.min_cycles)).any())


def _ended_early(rows: pl.DataFrame, few: int) -> pl.Series:
    """Returns whether a share is of few cycles at unknown times, which may be of the start-up."""
    of_fraction = pl.col("cycles_s").is_null() & (pl.col("gc_cycles") < few)
    return rows.select(of_fraction.fill_null(value=False)).to_series()


def is_little(report: Report) -> bool:
    """Returns whether the input proves that GC has cost little since the start."""
    t, rows = report.analysis.thresholds, _of_long_runs(report)
    # GC took at most what the whole program used, and the program may use at least one CPU.
    used = pl.col("cpu_s") / pl.when(pl.col("length_s") >= t.short_log_s).then("length_s")
    is_cheap = (pl.min_horizontal("gc_cpu_share", used) < t.gc_cpu_little) | (
        pl.col("gc_cycles") == 0
    )
    is_short = pl.col("stw_max_ms").fill_null(0.0) < t.stw_bad_ms
    return len(rows) > 0 and bool(
        rows.select((is_cheap & is_short).fill_null(value=False).all()).item()
    )


def _of_long_runs(report: Report) -> pl.DataFrame:
    """Returns the rows of programs that may have run cycles after their start-up."""
    least_s = report.analysis.thresholds.warm_up_s
    return report.analysis.dumps.since_start.filter(
        pl.col("cycles_s").fill_null(least_s) >= least_s
    )


def _judged(report: Report) -> str:
    """Returns whether the only known share of CPU is high or low, if that is clear."""
    if (rows := _of_long_runs(report)).is_empty():
        within = duration(report.analysis.thresholds.warm_up_s)
        return (
            f" up to its last cycle, and all cycles ended within {within}: too short to judge"
        )
    shares = rows["gc_cpu_share"]
    if _ended_early(rows, report.analysis.thresholds.min_cycles).any():
        return " up to its last cycle"
    if (shares < report.analysis.thresholds.gc_cpu_little).any():
        return ", which is low"
    return ", which is high" if is_costly(report) else ""


def _cpu_since_start(row: Mapping[str, Any]) -> str:
    """Returns the share of CPU that GC took, or its CPU time; empty if unknown."""
    gc_s, used_s, own_s = row["gc_cpu_with_idle_s"], row["used_cpu_s"], row["gc_cpu_s"]
    of_all = "" if row["gc_cpu_share"] is None else share(row["gc_cpu_share"])
    if gc_s is None:
        return of_all and f"GC has taken {of_all} of the CPU"
    if own_s is not None and used_s and used_s > gc_s - own_s and of_all:
        # Idle marking yields to any other work, so it is in neither figure.
        used_s -= gc_s - own_s
        idle = f" and {digits(gc_s - own_s, 3)} on idle CPUs (idle marking)" * (gc_s > own_s)
        of_used = f"{share(own_s / used_s)}, pauses on all CPUs"
        return (
            f"GC has taken {digits(own_s, 3)} of the {digits(used_s, 3)} CPU seconds that were "
            f"not idle ({of_used}){idle}; that is {of_all} of all CPU"
        )
    if used_s:
        of = f" of the {digits(used_s, 3)} CPU seconds that were not idle ({share(gc_s / used_s)})"
    elif all_s := row["available_cpu_s"]:
        of = f" of all {digits(all_s, 3)} CPU seconds ({share(gc_s / all_s)})"
    else:
        of = " CPU seconds"
    return f"GC has taken {digits(gc_s, 3)}{of}, with idle marking"


def _pauses_since_start(row: Mapping[str, Any], *, in_brief: bool = False) -> str:
    """Returns the number of cycles and the total of their pauses; empty if unknown.

    `in_brief` omits single pauses if there is a total, because `figures` shows them.
    """
    cycles, longest = row["gc_cycles"], row["stw_max_ms"]
    what = "GC" if cycles is None else count(cycles, "GC cycle")
    have = "have" if cycles is not None and cycles != 1 else "has"
    total = _stopped(row["stw_total_ms"], row["estimated"]).removeprefix(" and ")
    mean, least = row["stw_mean_ms"], _least(row["estimated"])
    parts = [
        *([total.replace("stopped", f"{have} stopped", 1)] if total else []),
        *([f"{least}{_pause(mean)} on average"] if mean and cycles > 1 else []),
    ]
    text = f"{what} {', '.join(parts)}" if parts else "" if cycles is None else f"{what} ran"
    if cycles == 0:
        return "no GC cycle ran"
    if longest is None:
        last = row["last_pause_ms"]
        return text + (f"; the last cycle stopped it for {_pause(last)}" if last else "")
    if cycles == 1 or (total and in_brief):
        return text or f"a GC cycle has stopped the program for {_pause(longest)}"
    of = "a cycle" if row["pauses_are_all"] else f"each of the {_listed(row)}"
    it = "it" if total else "the program"
    rest = f" ({others})" if (others := ", ".join(_other_pauses(row))) else ""
    # PauseNs has the sum of a cycle's pauses; since Go 1.5 there are two.
    return f"{text}{'; ' if text else ''}{of} stopped {it} for at most {_pause(longest)}{rest}"


def _listed(row: Mapping[str, Any]) -> str:
    """Returns which cycles the longest pause is of."""
    listed = row["pauses_listed"] or fields.RING
    in_all = f"{listed} cycles in the input"
    return in_all if listed < fields.RING else f"last {fields.RING} cycles"


def _other_pauses(row: Mapping[str, Any]) -> Iterator[str]:
    middle, shortest = row["stw_p50_ms"], row["stw_min_ms"]
    # With two pauses, the median among the quantiles is the longer one.
    if middle is not None and row["gc_cycles"] != 2:
        yield f"median {_pause(middle)}"
    if shortest is not None:
        yield f"shortest {_pause(shortest)}"


def _pause(length_ms: float) -> str:
    return f"{digits(length_ms, 3)} ms" if length_ms < 1000 else duration(length_ms / 1000)


def _stopped(total_ms: float | None, estimated: Collection[str]) -> str:
    length = f"{_least(estimated)}{duration((total_ms or 0) / 1000)}"
    return "" if not total_ms else f" and stopped the program for {length} in all"


def _least(estimated: Collection[str]) -> str:
    return "at least " if "stw_total_ms" in estimated else ""


def _used(row: Mapping[str, Any], *, is_little: bool) -> str:
    """Returns the CPU that the whole program used, which bounds that of GC; empty if unknown."""
    if not (row["length_s"] and row["cpu_s"]):
        return ""
    used = f"GC and the program used {share(row['cpu_s'] / row['length_s'])} of one CPU"
    return f"{used}{', so GC costs little' * is_little}"


def _rates(row: Mapping[str, Any], used: str) -> Iterator[str]:
    """Yields what GC did on average, if the time since the start is known."""
    length_s, stopped_ms = row["length_s"], row["stw_total_ms"]
    if length_s and stopped_ms and row["alloc_mib_per_s"] and row["gc_per_s"]:
        yield (
            f"On average over this time ({duration(length_s)}): "
            f"{digits(row['gc_per_s'], 2)} cycles/s, {mib_per_s(row['alloc_mib_per_s'])}, "
            f"{share(stopped_ms / 1000 / length_s)} of the time in pauses"
            f"{f'; {used}' * bool(used)}."
        )


_FORCE_LESS = (
    "Remove most calls of `runtime.GC` and `debug.FreeOSMemory`, also in the libraries that it "
    "uses: no GOGC or GOMEMLIMIT makes these cycles fewer."
)


def force_less(report: Report) -> str:
    """Returns what to do if the programs force most of their cycles; else an empty text."""
    rows = report.analysis.dumps.since_start.to_dicts()
    return _FORCE_LESS * all(map(_is_forced, rows))


def _is_forced(row: Mapping[str, Any]) -> bool:
    """Returns whether the program, not the heap goal, started most cycles."""
    return 2 * (row["forced_cycles"] or 0) > (row["gc_cycles"] or math.inf)


def _forced(row: Mapping[str, Any]) -> Iterator[str]:
    if _is_forced(row):
        yield (
            f"{row['forced_cycles']:,} of {count(row['gc_cycles'], 'cycle')} were forced "
            "(`runtime.GC`, `debug.FreeOSMemory`): look for these calls first."
        )


def _long_pause(row: Mapping[str, Any], report: Report) -> Iterator[str]:
    """Yields the meaning of a pause that the size of the heap does not explain."""
    t, heap, longest = report.analysis.thresholds, row["heap_alloc_mib"], row["stw_max_ms"]
    median = row["stw_p50_ms"]
    # If pauses rise with the heap, the only usual length is that of the longest cycles.
    usual = row["stw_p90_ms"] or median or row["stw_mean_ms"]
    if longest is None or not usual or longest <= max(t.stw_bad_ms, t.outlier_times * usual):
        return
    if median or (heap is not None and heap <= t.small_heap_mib):
        yield (
            f"The size of the heap does not explain a pause of {_pause(longest)}: check "
            "for a lack of CPU (a CPU quota with throttling in `cpu.stat`, or other work on the "
            "host)."
        )
