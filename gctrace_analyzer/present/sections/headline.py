"""The top of a report: the verdict, and the headline figures with their levels and trends."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.advise.phrases import (
    cost_within,
    last_printed,
    longest_pause_after_start_up,
)
from gctrace_analyzer.advise.subject import GROWS
from gctrace_analyzer.advise.verdict import too_large_for_container
from gctrace_analyzer.analysis.cycles import usual_interval_ms
from gctrace_analyzer.analysis.metrics.goroutines import GREW
from gctrace_analyzer.analysis.printed_shares import percent_text
from gctrace_analyzer.analysis.rules.finding import rate_text
from gctrace_analyzer.analysis.rules.long_pauses import deciding_p99
from gctrace_analyzer.analysis.settings.naming import (
    distinct,
    gogc_name,
    is_in_turn,
    present,
    range_name,
    short_limit,
)
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.evidence.words import OF_CRASH, after_crash
from gctrace_analyzer.ingest.rows import median as usual_of
from gctrace_analyzer.ingest.rows import not_null
from gctrace_analyzer.present.document import KeyFigure, Statement
from gctrace_analyzer.present.format import (
    assists,
    duration,
    gc_cpu,
    gc_cpu_with_idle,
    interval,
    live_heap,
    mib,
    mib_per_s,
    milliseconds,
    printable,
    rate,
    rate_of_growth,
    rounded,
    share,
)
from gctrace_analyzer.present.sections.findings import DEATHS
from gctrace_analyzer.present.sections.overview import FAR, few_sizes, over_time, usual_size
from gctrace_analyzer.present.sections.without_cycles import no_verdict, rise
from gctrace_analyzer.units import LEAST_CORES, LEAST_PERCENT, MIB, between_text, cores_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gctrace_analyzer.analysis.postmortem.post_mortems import PostMortem
    from gctrace_analyzer.analysis.summary import Summary
    from gctrace_analyzer.present.report import Report

WORDS = {
    "bad": "Action needed",
    "warn": "Worth a look",
    "info": "No problem seen",
    "ok": "Healthy",
    "none": "No verdict",
}


def crash_of(report: Report) -> str:
    """Returns the sentence about the panic or fatal error that ended the program, if one did."""
    notes = (note.split(": ", 1)[-1] for note in report.analysis.log.notes)
    return next((note for note in notes if note.startswith(OF_CRASH)), "")


def is_of_death(report: Report) -> bool:
    """Returns whether the verdict is that a program was killed, or ended for lack of memory."""
    return report.verdict is not None and report.verdict.finding in DEATHS


def has_subject_died(report: Report) -> bool:
    """Returns whether the verdict is on the death of the process that the advice is for."""
    dead = {death.process for death in report.analysis.post_mortems}
    return is_of_death(report) and report.subject in dead


def verdict(report: Report) -> Statement:
    """Returns the verdict on a report, with the time when the problem began."""
    reached = report.verdict
    if reached is None:
        sentence, action = no_verdict(report)
        if (crash := crash_of(report)) and not action:
            sentence, action = crash, after_crash(crash)
        return Statement("none", WORDS["none"], printable(sentence), action)
    parts = [reached.sentence]
    if reached.start_s is not None:
        when = f", when {reached.changed}" if reached.changed else ""
        began = report.moment(reached.process, reached.start_s)
        if f"since {began} (" not in reached.sentence:
            parts.append(f"It began at {began}{when}.")
    risen, next_step = rise(report)
    parts.extend(filter(None, [risen]))
    level, action = reached.level, f"{reached.action} {next_step}".strip()
    level = "info" if next_step and level == "ok" else level
    grew = (text for text in report.analysis.summary.warnings if text.startswith(GREW))
    if (leak := next(grew, "")) and "goroutines" not in reached.sentence:
        text, _, compare = leak.partition(": ")
        parts.append(f"{text}.")
        compare = f"{compare[0].upper()}{compare[1:]}"
        is_worse = level in ("ok", "info")
        level, action = ("warn", compare) if is_worse else (level, f"{action} {compare}")
    if (crash := crash_of(report)) and level in ("ok", "info"):
        level, action = "warn", after_crash(crash)
        parts.insert(0, crash)
    action = "\n".join(map(printable, action.split("\n")))
    growth = [own.evidence for own in report.analysis.findings if own.id == GROWS]
    is_grown = level in ("ok", "info") and any(text in reached.sentence for text in growth)
    is_open = reached.is_open and level == "info"
    word = "Live heap grew" if is_grown else WORDS["none" if is_open else level]
    return Statement(level, word, printable(" ".join(parts)), action)


_MEDIAN = "estimated median over cycles"

_SETTERS = {
    "gogc": "GOGC",
    "memory-limit": "the memory limit",
    "heap-minimum": "the heap minimum",
}

_NEARLY_ALL = 0.9
"""Share of the goals. A setter of at least this share is said to set all."""

_FEW = 0.2
"""Share of the goals. A second setter with less is not named."""

TRENDS = {
    "GC CPU": "gc_cpu_share", "Pauses": "stw_max_ms", "Frequency": "gc_per_s",
    "Mark assist": "assist_share_of_gc_cpu", "Live heap": "heap_live_mib",
}  # fmt: skip
"""The figures that a report shows over time, with the column of the windows that has them."""


def state(report: Report) -> list[KeyFigure]:
    """Returns the headline figures that the log provides."""
    s, coarse = report.analysis.summary, report.analysis.too_coarse
    figures: list[KeyFigure] = []
    if s.gc_cpu_share is not None:
        many = coarse.get("gc_cpu")
        note = f"not measurable: {many} cycles are printed with 0" if many else _cores(report)
        value = s.cost_in_all if s.is_too_short_for_rates else gc_cpu(s)
        figures.append(_with_level(report, "GC CPU", value, note, "gc_cpu"))
    if pauses := _pauses(report):
        figures.append(_with_level(report, "Pauses", *pauses, "pauses"))
    if s.gc_per_s is not None:
        forced = f"{s.forced_cycles:,} of {s.cycles:,} forced" if s.forced_cycles else ""
        gaps_ms = 1000 * report.analysis.enriched["interval_s"]
        often = interval(s, usual_interval_ms(report.analysis.enriched), gaps_ms)
        value, level = rate_text(s, s.gc_per_s, rate), "frequency"
        if gaps_ms.count() == 1 or s.is_too_short_for_rates:
            # How often cycles run, one or two times between them do not show.
            value, level = f"{s.cycles + s.missing_cycles:,} cycles", ""
            often = f"in {duration(s.span_s or 0.0)}" if s.missing_cycles else often
        note = "; ".join(filter(None, (often, forced)))
        figures.append(_with_level(report, "Frequency", value, note, level))
    # Without GC CPU, the range of its parts is unknown as well.
    if s.assist_share_of_gc_cpu is not None and s.gc_cpu_share is not None:
        value, of_all = assists(s)
        note = "of GC CPU"
        is_of_time = not (s.is_of_single_cycles or s.is_too_short_for_rates)
        if s.assist_share_of_cpu is not None and is_of_time:
            note += f"; {of_all} of all CPU"
        note = "not measurable" if coarse.get("gc_cpu") else note
        figures.append(_with_level(report, "Mark assist", value, note, "assist"))
    if s.live_heap_p50_mib is not None:
        value, note = _live(report, s.live_heap_p50_mib)
        figures.append(_with_level(report, "Live heap", value, note, "live_heap"))
    if s.heap_goal_p50_mib is not None:
        value, note = _goal(report, s.heap_goal_p50_mib)
        figures.append(_with_level(report, "Heap goal", value, note, "heap_goal"))
    return [*figures, *_allocation(report)]


def _pauses(report: Report) -> tuple[str, str] | None:
    """Returns the length of the pauses, and which ones; None if nothing is known."""
    analysis, s = report.analysis, report.analysis.summary
    most = f"max{' seen' * bool(s.missing_cycles)}"
    pauses = {"p99": s.pause_p99_ms, most: s.stw_max_ms}
    if not (known := {name: milliseconds(ms) for name, ms in pauses.items() if ms is not None}):
        return _total_of_pauses(report)
    first, value = next(iter(known.items()))
    longest = [f"{known[most]} {most}"] if first == "p99" and most in known else []
    if (late_ms := longest_pause_after_start_up(analysis)) is not None:
        longest.append(f"{milliseconds(late_ms)} max after start-up")
    # The first cycle of a process has the time since its start.
    is_alone = s.is_of_single_cycles and analysis.cycles["gc_num"].min() != 1
    time = _these(s, "the cycle", "the cycles") if is_alone else "time"
    is_known = s.stw_share is not None and (is_alone or not s.is_too_short_for_rates)
    least = "at least " * bool(s.missing_cycles)  # Pauses without a line are missing in it.
    is_known &= not least or 100 * (s.stw_share or 0.0) >= LEAST_PERCENT
    time = f"{least}{rate_text(s, s.stw_share or 0.0, share)} of {time}"
    of_time = [time] if is_known else []
    if many := analysis.too_coarse.get("pauses"):
        longest, of_time = [], [f"not measurable: {many} are printed as 0"]
    if first == "p99" and len(analysis.tables["processes"]) > 1:
        first = "p99 of all together"
    elif decides := deciding_p99(analysis.findings, s.pause_p99_ms, analysis.thresholds):
        first, value = decides[0], milliseconds(decides[1])
    return value, " · ".join((first, *longest, *of_time))


def _total_of_pauses(report: Report) -> tuple[str, str] | None:
    """Returns what the total of the pauses proves, if metrics lack single pauses."""
    s = report.analysis.summary
    if s.stw_total_ms is None:
        return None
    proved = [each.figures["max_ms"] for each in report.analysis.findings if each.id == "GC046"]
    if proved:
        of_time = [] if s.stw_share is None else [f"{rate_text(s, s.stw_share, share)} of time"]
        return f"≥ {milliseconds(max(proved))}", " · ".join(["in one cycle", *of_time])
    total = f"{milliseconds(s.stw_total_ms)} in total"
    if s.stw_share is not None:
        return rate_text(s, s.stw_share, share), f"of time; {total}"
    return "unknown", total


def _allocation(report: Report) -> Iterator[KeyFigure]:
    s = report.analysis.summary
    if s.alloc_mib_per_s is not None:
        texts = allocation(report)
        yield KeyFigure("Allocation", *((texts[1], "") if s.is_too_short_for_rates else texts))


def allocation(report: Report) -> tuple[str, str]:
    """Formats the rate of allocation and its total, and says whether they are estimates."""
    s = report.analysis.summary
    about = "about " * ("alloc_mib_per_s" in s.estimated and not s.rate_factors)
    step = max((of.resolution_mib or 0.0 for of in report.analysis.memory), default=0.0)
    total = f"{rounded(s.alloc_total_mib, step)} in total"
    if not report.analysis.by_dumps and s.alloc_total_mib is not None:
        # A span counts as full when a processor takes it, with its end that no object uses: at
        # GOGC=25, 20 % more than what Go 1.26 allocated. Truncation adds or hides 1 MiB per cycle.
        of = "without missing cycles" if s.missing_cycles else "estimated"
        if s.is_too_short_for_rates:
            # Of few cycles, one has as much as its line can stand for.
            total = f"about {max(s.alloc_total_mib, 1.0):,.0f} MiB in total"
        else:
            total = f"{of}; {total}"
    return f"{about}{rate_text(s, s.alloc_mib_per_s or 0.0, mib_per_s)}", total


def with_trends(report: Report, figures: Iterable[KeyFigure]) -> list[KeyFigure]:
    """Returns the figures with their values over time, if they are of one process.

    A single cycle or interval has no trend.
    """
    analysis = report.analysis
    number = len(analysis.dumps.between) if analysis.by_dumps else analysis.summary.cycles
    is_together = len(analysis.tables["processes"]) > 1
    if is_together or not len(analysis.trend) or number < 2:
        return list(figures)
    return [
        replace(figure, trend=analysis.trend[TRENDS[figure.label]].to_list())
        if figure.label in TRENDS
        else figure
        for figure in figures
    ]


def _with_level(report: Report, label: str, value: str, note: str, level: str) -> KeyFigure:
    own: str = report.levels.get(level, "")
    if level == "heap_goal" and own in ("ok", "info"):
        # The room for the heap helps to explain why a program was killed.
        own = "" if _death(report) is not None else own
        own = "warn" if too_large_for_container(report.advice) else own
    return KeyFigure(label, value, note, level=own, keeps_trend=level == "gc_cpu")


def _cores(report: Report) -> str:
    """Returns GC CPU in CPUs, and its share with idle marking: `0.63 of 2 CPUs; 40 % with idle`."""
    s = report.analysis.summary
    if s.is_too_short_for_rates:
        idle_s = float(report.analysis.cycles["idle_cpu_ms"].sum()) / 1000
        is_of_one = len(report.analysis.tables["processes"]) == 1
        printed = last_printed(report.analysis) if is_of_one else None
        since = "" if printed is None else f"; {percent_text(printed)} since the start"
        more = f"; {duration(idle_s)} more idle" if idle_s > 0 else ""
        return f"of CPU time in {cost_within(s)}{more}{since}"
    note = "of all CPU"
    if s.gc_cpu_most_cores is not None and s.cpus is not None:
        note = cores_text(s.gc_cpu_most_cores, s.cpus)
    is_range = s.gc_cpu_range and (s.gc_cpu_most_cores or 0) >= LEAST_CORES
    # Go 1.23 and later count only a part of the time to stop the world.
    is_high = (s.gc_cpu_share or 0.0) > DEFAULT.gc_cpu_warn
    is_high &= not report.analysis.cycles["stacks_mib"].count()
    if is_high and (s.stopped_gc_share or 0.0) > DEFAULT.stopped_gc_share:
        note += "; a pause counts as all CPUs"
    elif with_idle := gc_cpu_with_idle(s):
        note += f"; {'≤ ' * bool(s.gc_cpu_range)}{with_idle} with idle"
    if s.is_of_single_cycles:
        note += f", in {_these(s, 'this cycle', 'these cycles')}"
    return f"≤ {note}" if is_range else note


def _these(s: Summary, one: str, several: str) -> str:
    return one if s.cycles == 1 else several


def _live(report: Report, p50: float) -> tuple[str, str]:
    """Returns the live heap and its kind: the median or the last."""
    about = "about " * ("live_heap_p50_mib" in report.analysis.summary.estimated)
    if (end := _end(report)) is not None and not about:
        growth = _growth(report, "").replace("median", f"median {live_heap(p50)}")
        return live_heap(end.live_mib), f"last; {growth}"
    few = few_sizes(report, "heap_live_mib")
    p50, word = over_time(report, "heap_live_mib", p50, few)
    value, last = usual_size(p50, few), _last_if_far(report, "heap_live_mib", p50, few)
    note = _growth(report, last).replace("median", word) if few is None else last
    return f"{about}{value}", note


def _goal(report: Report, p50: float) -> tuple[str, str]:
    """Returns the heap goal for the displayed live heap, and what set it."""
    setter, end = _setter(report), _end(report)
    if end is not None and end.goal_mib:
        parts = filter(None, (end.which_goal, f"median {mib(p50)}", setter))
        return rounded(end.goal_mib, float(report.analysis.by_dumps)), "; ".join(parts)
    if of_dumps := _goals_of_few_dumps(report, p50):
        return of_dumps
    few = few_sizes(report, "heap_goal_mib")
    p50, word = over_time(report, "heap_goal_mib", p50, few)
    last = _last_if_far(report, "heap_goal_mib", p50, few)
    word = "" if word == "median" else word
    goals, cycles = report.analysis.goal_set_by.values(), report.analysis.summary.cycles
    is_of_all = len(goals) == 1 and max(goals) >= _NEARLY_ALL * cycles
    if word:
        # The effective GOGC is over cycles, and what sets most goals may not set most of the time.
        is_unclear = not is_of_all and 2 * max(goals, default=0) > cycles
        setter = "" if is_unclear else setter.partition("effective GOGC")[0].rstrip("; ")
    note = "; ".join(filter(None, (word, setter, *_large_roots(report), last)))
    median = "median" if few is None and report.analysis.summary.cycles > 1 else ""
    return usual_size(p50, few), note or (_MEDIAN if report.analysis.by_dumps else median)


def _goals_of_few_dumps(report: Report, p50: float) -> tuple[str, str] | None:
    """Returns the median of the goals in few dumps, or their range: most cycles have others."""
    if not report.analysis.by_dumps:
        return None
    rows = report.analysis.tables["memstats"].filter(pl.col("next_gc_bytes") > 0)
    goals = (rows.unique(["process", "num_gc"], keep="last")["next_gc_bytes"] / MIB).sort()
    if not 1 < len(goals) < DEFAULT.short_log_cycles:
        return None
    low, high = float(goals[0]), float(goals[-1])
    of = f"{len(goals)} {'scrapes' if report.is_scraped else 'dumps'}"
    if high > FAR * low:
        return between_text(mib(low), mib(high)), f"in {of}"
    return mib(p50), f"median of {of}"


def _large_roots(report: Report) -> Iterator[str]:
    """Yields the stacks and the globals that raise the heap goal, if they are large."""
    for finding in report.analysis.findings:
        for name in ("stacks", "globals"):
            if (size_mib := finding.figures.get(f"{name}_mib")) is not None:
                yield f"{mib(size_mib)} of {name}"


def _death(report: Report) -> PostMortem | None:
    """Returns the death that the report is about, if the last live heap before it is known."""
    if not is_of_death(report) or len(report.analysis.tables["processes"]) > 1:
        return None
    return next((each for each in report.analysis.post_mortems[::-1] if each.live_mib), None)


@frozen
class _End:
    """The last live heap, and the last or next goal, if a median would describe no moment."""

    live_mib: float | None
    goal_mib: float | None
    which_goal: str


def _end(report: Report) -> _End | None:
    """Returns the end of a process that died or whose live heap still grows or moved; else None."""
    if (death := _death(report)) is not None:
        which = "next" if death.next_goal_mib else "last"
        return _End(death.live_mib, death.next_goal_mib or death.goal_mib, which)
    analysis, process = report.analysis, report.subject
    if process is None or len(analysis.tables["processes"]) > 1 or analysis.cycles.is_empty():
        return None
    growth = analysis.live_growth(process)
    if not (growth is not None and growth.is_steady) and analysis.moved(process) is None:
        return None
    live, goals = (not_null(analysis.cycles[f"heap_{what}_mib"]) for what in ("live", "goal"))
    return _End(live[-1], goals[-1] if len(goals) else None, "last")


def _last_if_far(report: Report, column: str, median: float, few: pl.Series | None) -> str:
    """Returns the last value if the usual one does not describe it: most cycles may be early."""
    values = not_null(report.analysis.cycles[column])
    if len(report.analysis.tables["processes"]) > 1 or values.is_empty():
        return ""
    is_near = median / FAR < values[-1] < FAR * median if few is None else few.n_unique() < 2
    return "" if is_near else f"last {live_heap(values[-1])}"


def _growth(report: Report, last: str) -> str:
    s = report.analysis.summary
    highest = f"max {live_heap(s.live_heap_max_mib)}" * ("live_heap_max_mib" not in s.estimated)
    most = "; ".join(filter(None, ("median", highest, last))) if s.cycles != 1 else ""
    process = report.subject
    if "live_heap" not in report.levels or process is None:
        return most
    growth = report.analysis.live_growth(process)
    several = len(report.analysis.tables["processes"]) > 1
    if growth is None:
        live = not_null(report.analysis.cycles["heap_live_mib"])
        first, end = (usual_of(part(len(live) // 4)) for part in (live.head, live.tail))
        # A heap that was filled has grown; for the other processes it would be a guess.
        return most if several or end > FAR * first else f"{most}; no significant growth"
    if not growth.is_lasting:
        fell = growth.fall and not last
        return f"{most}; last {live_heap(growth.fell_to_mib)}" if fell else most
    grows = rate_of_growth(growth.mib_per_h, growth.low, growth.high)
    return f"process {process}: {grows}" if several else grows


def _setter(report: Report) -> str:
    """Returns what set the heap goals."""
    gogc = report.analysis.summary.effective_gogc_p50
    for finding in report.analysis.findings if len(report.analysis.summaries) == 1 else ():
        if finding.name == "limit-tight" and finding.severity != "info":
            # As in its sentence: of the cycles whose goal the limit set.
            gogc = finding.figures["effective_gogc_p50"]
    # Between samples, live heap and goal may come from different cycles.
    unclear = gogc is None or (report.analysis.by_dumps and gogc < 0)
    # A median of several settings is none of them, and one that fits GOGC is no other value.
    regimes = distinct(report.analysis.only_regimes)
    fits = gogc is not None and any(
        (own.gogc_pct_low or math.inf) <= gogc <= (own.gogc_pct_high or 0) for own in regimes
    )
    several = report.analysis.regimes["gogc_pct"].drop_nulls().n_unique() > 1
    unclear |= fits or several or len(regimes) > 1
    effective = [] if unclear else [f"effective GOGC {gogc:.0f}"]
    live = report.analysis.summary.live_heap_p50_mib or math.inf
    if effective and live < report.analysis.thresholds.gogc_min_live_mib:
        # It is the median over heaps large enough to show it.
        effective = [f"{effective[0]} in larger heaps"]
    setters, of = report.analysis.goal_set_by, report.analysis.summary.cycles
    setter, cycles = max(setters.items(), key=lambda item: item[1], default=("", 0))
    # The setter is not reported if it is known for only a few cycles.
    if len(regimes) == 1 and (regime := regimes[0]).set_by == "either":
        low, high = regime.memory_limit_mib_low or 0, regime.memory_limit_mib_high
        is_known = high and not is_in_turn(regime)
        limit = f" of {range_name(low, high).lstrip('=')} MiB" if is_known else ""
        # One large allocation may have raised the only goal.
        return f"set by {gogc_name(regime)} or a limit{limit}" * (of > 1)
    if 2 * cycles <= of:
        both = [setters.get(name, 0) for name in ("gogc", "memory-limit")]
        if 2 * sum(both) > of and min(both) >= _FEW * sum(both):
            return "; ".join(["set by GOGC and the memory limit", *effective])
        return "; ".join(effective)
    # Most programs start from the heap minimum in their first cycles.
    goals = max(sum(setters.values()), of - 1)
    if setter == "heap-minimum":
        goals = int(report.analysis.cycles["heap_goal_mib"].count() / _NEARLY_ALL)
    mostly = "mostly " if cycles < _NEARLY_ALL * goals else ""
    now = present(report.analysis.only_regimes) if setter == "memory-limit" else None
    limit = short_limit(now, report.analysis.summary.heap_goal_p50_mib or 0.0)
    is_other = "GC027" in [own.id for own in report.analysis.findings]
    if setter == "gogc" and len(regimes) == 1 and not is_other:
        # The quotient of sizes in whole MiB is close to it, and would look like another value.
        return f"set {mostly}by {gogc_name(regimes[0])}"
    # At the minimum, goals do not show GOGC.
    effective = [] if setter == "heap-minimum" else effective
    by = f"set {mostly}by {limit or _SETTERS[setter]}"
    return "; ".join([limit if limit.startswith("inferred") else by, *effective])
