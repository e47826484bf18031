"""What a setting does and what GC costs, as parts of a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.advise.objective import run_time_text
from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.advise.prediction.outcome import whole_mib
from gctrace_analyzer.analysis.pauses import after_start_up_ms
from gctrace_analyzer.analysis.printed_shares import percent_text, printed_last
from gctrace_analyzer.analysis.rules import headline_levels
from gctrace_analyzer.analysis.rules.finding import gc_cpu_text, often_text, percent
from gctrace_analyzer.analysis.settings.naming import gogc_range
from gctrace_analyzer.analysis.trend import rise_of_few
from gctrace_analyzer.units import (
    LEAST_CORES,
    between_text,
    cores_text,
    digits,
    duration_text,
    size_text,
)

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from gctrace_analyzer.advise.advice import Advice
    from gctrace_analyzer.advise.prediction.outcome import Predictor
    from gctrace_analyzer.analysis.analysis import Analysis
    from gctrace_analyzer.analysis.summary import Summary
    from gctrace_analyzer.analysis.thresholds import Thresholds
    from gctrace_analyzer.schema import Row


def present_row(advice: Advice) -> Row:
    """Returns the figures of the present setting, which are always among the recommended ones."""
    return advice.recommendations.filter(now=True).row(0, named=True)


def order(first: Row, advice: Advice) -> str:
    """Returns an order to set something, or a suggestion to test it where the evidence is thin."""
    if first["confidence"] == "low":
        test = "; test it first with `gctrace-analyze measure`"
        return f"Try {with_effects(first, advice, test)}"
    return f"Set {with_effects(first, advice)}"


def to_set(row: Row, predictor: Predictor) -> str:
    """Returns the variables to set, without an unchanged GOGC that is not exactly known.

    Where a memory limit may set the goals as well as GOGC, both are set: a higher GOGC alone would
    change nothing under it.
    """
    setting, by_limit = Setting.of(row), predictor.may_be_by_limit
    if by_limit and setting.gogc and not setting.limit and setting != predictor.now:
        return f"{setting} GOMEMLIMIT=off"
    is_rough = row["refused"] is not None or gogc_range(predictor.regime) is not None
    stays = setting.gogc == predictor.now.gogc and is_rough
    variables = str(setting)
    return variables.partition(" ")[2] if stays and setting.limit else variables


def with_effects(first: Row, advice: Advice, after: str = "") -> str:
    """Returns a setting, and its effects as a sentence of their own, or its reason.

    Args:
        first: the setting.
        advice: the recommendations that it is from.
        after: what follows the setting in its sentence.
    """
    present = present_row(advice)
    room = ""
    larger = (first["heap_peak_mib"] or 0.0) > (present["heap_peak_mib"] or 0.0)
    if (larger or first["refused"]) and not advice.baseline.settings.value(
        "container_limit_mib"
    ):
        room = ", if the container has room for it"
    setting = f"{to_set(first, advice.baseline)}{room}{after}"
    if effects := predicted(first, advice):
        return f"{setting}. Predicted: {effects}."
    return f"{setting} ({first['why']})."


def predicted(first: Row, advice: Advice) -> str:
    """Returns the effects of a setting; empty if it changes nothing now.

    It is for another load then, which its reason names.
    """
    effects = [*_effects(first, present_row(advice), advice)]
    return ", ".join(text for text, _ in effects) if any(new for _, new in effects) else ""


def _effects(first: Row, present: Row, advice: Advice) -> Iterator[tuple[str, bool]]:
    """Yields each effect of a setting, and whether it changes anything."""
    whole, with_idle = advice.measured_gc_cpu_shares
    if run_time := run_time_text(first, present):
        yield run_time, True
    # As in the table of the recommendation
    share, now = first["gc_cpu_with_idle_share"], present["gc_cpu_with_idle_share"]
    if share is not None and now:
        # It is shown next to the GC CPU of the whole log, without idle marking.
        is_one = whole is None or percent(now) == percent(whole)
        name = "GC CPU" if is_one else "GC CPU with idle"
        text, is_new = _instead(name, percent(share), percent(now))
        load = advice.baseline.load
        # Next to it, the report shows the share of the whole log.
        if load and with_idle is not None and abs(now - with_idle) > _OTHER_SHARE * now:
            text += f" after the first {duration_text(load.begin_s)}"
        yield text, is_new
    elif first["gc_per_s"] is not None and present["gc_per_s"] is not None:
        yield _instead("cycles/s", *(digits(row["gc_per_s"], 2) for row in (first, present)))
    peak, old = first["heap_peak_mib"], present["heap_peak_mib"]
    if peak is not None and old is not None:
        ends = [first[f"heap_peak_mib_{end}"] for end in ("low", "high")]
        # The present peak may be of a burst, which the setting does not prevent.
        may_stay = peak < old <= (ends[1] or 0.0)
        # In whole MiB, as the log and the table of the recommendation have it.
        new, was = (size_text(whole_mib(size)) for size in (peak, old))
        if may_stay and new != was:
            new = between_text(*map(size_text, ends))
        yield _instead("heap peak", new, was)


_OTHER_SHARE = 0.1
"""Relative difference from the whole log, from which a share of its later part says so."""


def _instead(name: str, new: str, old: str) -> tuple[str, bool]:
    text = f"the same {name}" if new == old else f"{name} {new} instead of {old}"
    return text, new != old


_COARSE = "the clock of the log is too coarse for"


_MORE, _LEAST_PCT = 1.5, 5
"""The share since the start is printed next to the log's own if it is this many times as high and
at least this many per cent. Then the log is a calm part of the run."""


def worst_costs(analysis: Analysis, of: int | None = None) -> Iterator[str]:
    """Yields what GC costs: in a process, or in the one with most GC CPU, and its name."""
    ran = analysis.own_processes["process"]
    own, coarse = {number: analysis.summary_of(number) for number in ran}, analysis.too_coarse
    is_blind = {"gc_cpu", "pauses"} <= {*coarse}
    if of is not None or len(analysis.tables["processes"]) < 2 or is_blind:
        late_ms = longest_pause_after_start_up(analysis)
        last = last_printed(analysis, of)
        yield from costs(own.get(of, analysis.summary), coarse, last, late_ms)
        return
    # The share of a single cycle refers to that cycle's own time, and that of few to a short one.
    shares = _known(
        {
            process: (s.gc_cpu_share, s.gc_per_s)
            for process, s in own.items()
            if s.cycles != 1 and not s.is_too_short_for_rates
        }
    )
    pauses = _known(
        {
            process: (s.stw_max_ms, s.stw_total_ms and s.stw_total_ms / max(s.cycles, 1))
            for process, s in own.items()
        }
    )
    first, second = (
        max(of, key=lambda process: of[process]) for of in (shares or pauses, pauses)
    )
    ends = {process: last_printed(analysis, process) for process in (first, second)}
    all_of = [[*costs(own[process], coarse, ends[process])] for process in (first, second)]
    texts = [*(all_of[0][:1] if shares else ()), *all_of[1][1:]]
    if first == second and texts:
        both = ", both" if len(texts) > 1 else ""
        highest = f", the highest of {len(own)} processes" * (len(shares) == len(own) > 1)
        yield from texts[:-1]
        yield f"{texts[-1]}{both} in process {first}{highest}"
        return
    for text, process in zip(texts, (first, second), strict=False):
        yield f"{text} in process {process}"


def _known(figures: Mapping[int, tuple[float | None, ...]]) -> dict[int, float]:
    """Returns the first of several figures that is known, of the processes where it is known."""
    of_each = (
        {process: value for process, values in figures.items() if (value := values[at])}
        for at in range(2)
    )
    return next(filter(None, of_each), dict.fromkeys(figures, 0.0))


def last_printed(analysis: Analysis, process: int | None = None) -> int | None:
    """Returns the last printed share of GC CPU since the start, of the only process or of one.

    None if a short log has all cycles since the start, so that their CPU times are more precise.
    """
    cycles = analysis.cycles if process is None else analysis.cycles.filter(process=process)
    s = analysis.summary if process is None else analysis.summary_of(process)
    if s.is_too_short_for_rates and cycles["gc_num"].min() == 1:
        return None
    return next(iter(printed_last(cycles)["percent"].tail(1)), None)


def _gc_cpu(s: Summary, printed: int | None) -> str:
    """Returns the GC CPU as text; the arguments are those of `costs`."""
    taken = "" if printed is None else f"GC has taken {_since_start(printed)}"
    if s.is_too_short_for_rates:
        several = "in the log" if s.missing_cycles else f"these {s.cycles:,} cycles"
        what = "the cycle" if s.cycles == 1 else several
        # GOMAXPROCS may be larger than the number of CPUs.
        on = f" on up to {s.cpus:g} CPUs" if (s.cpus or 1) > 1 else ""
        time = f"{s.cost_in_all} of CPU time in {cost_within(s)}{on}"
        return f"{taken} ({what}: {time})" if taken else f"GC took {time}"
    if s.is_of_single_cycles and taken:
        return taken
    known = []
    if s.gc_cpu_most_cores and s.cpus and s.gc_cpu_most_cores >= LEAST_CORES:
        up_to = "up to " if s.gc_cpu_range else ""
        known.append(f"{up_to}{cores_text(s.gc_cpu_most_cores, s.cpus)}")
    if printed is not None and printed >= max(_MORE * 100 * (s.gc_cpu_share or 0), _LEAST_PCT):
        known.append(f"{percent_text(printed)} since the start")
    more = f" ({'; '.join(known)})" if known else ""
    when = " while its cycles ran" if s.is_of_single_cycles else ""
    return f"GC takes {gc_cpu_text(s)} of the CPU{more}{when}"


def cost_within(s: Summary) -> str:
    """Returns what the CPU time of a short log is of, as text: a duration, or a part of cycles."""
    if s.missing_cycles:
        return f"{s.cycles:,} of {s.cycles + s.missing_cycles:,} cycles"
    return duration_text(s.span_s or 0.0)


def _often(s: Summary, printed: int | None) -> str:
    """Returns how often GC runs, or what it has cost if the time is too short for a rate."""
    is_one = s.cycles == 1 and s.span_s
    if printed is not None and s.is_too_short_for_rates and not is_one:
        return f"GC has taken {_since_start(printed)}"
    between = " between the dumps" * (s.is_of_dumps and s.window == "log")
    known = f"its CPU time{between} is unknown" if printed is None else _since_start(printed)
    ran = f"1 GC cycle ran in {duration_text(s.span_s or 0)}"
    return f"{ran if is_one else f'GC runs {often_text(s)}'} ({known})"


def _since_start(printed: int) -> str:
    return f"{percent_text(printed)} of the CPU since the start"


def longest_pause_after_start_up(analysis: Analysis) -> float | None:
    """Returns the longest pause (ms) after a start-up that has a longer one; else None."""
    if len(analysis.tables["processes"]) > 1:
        return None
    return after_start_up_ms(analysis.corrected, analysis.thresholds)


def costs(
    s: Summary,
    coarse: Container[str] = (),
    printed: int | None = None,
    late_ms: float | None = None,
) -> Iterator[str]:
    """Yields what GC costs, as far as it is known: CPU or frequency, and pauses.

    Args:
        s: the figures of one process or of all.
        coarse: the figures that the clock of the log cannot show.
        printed: the last percentage of GC CPU since the start that the log has.
        late_ms: the longest pause after the start-up, if the start-up has the longest of all.
    """
    if "gc_cpu" in coarse:
        yield f"{_COARSE} the CPU time of GC"
    elif s.gc_cpu_share is not None:
        yield _gc_cpu(s, printed)
    elif s.gc_per_s is not None:
        yield _often(s, printed)
    elif printed is not None:
        yield f"GC has taken {_since_start(printed)}"
    if s.stw_max_ms is None:
        if s.gc_per_s is not None and s.stw_total_ms is not None:
            mean = duration_text(s.stw_total_ms / max(s.cycles, 1) / 1000)
            yield f"stops the program for {mean} in a cycle, on average"
        return
    if "pauses" in coarse or not s.stw_max_ms:
        yield f"{'for' if 'gc_cpu' in coarse else _COARSE} its pauses"
        return
    longest = duration_text(s.stw_max_ms / 1000)
    if late_ms is not None:
        longest += f" (during start-up; {duration_text(late_ms / 1000)} after it)"
    p99 = None if s.pause_p99_ms is None else duration_text(s.pause_p99_ms / 1000)
    if p99 in (None, longest):
        seen = "seen " * bool(s.missing_cycles or s.estimated)
        # The first dump may have earlier pauses, such as those of a start-up.
        seen += "between the dumps " * (s.is_of_dumps and s.window == "log")
        yield f"the longest pause {seen}took {longest}"
    else:
        yield f"99 % of pauses take at most {p99}, the longest {longest}"


def first_words(analysis: Analysis, *, short: bool) -> tuple[str, bool]:
    """Returns the first words on a log without a problem, and whether it is too little to judge."""
    s, t = analysis.summary, analysis.thresholds
    shown = _no_problem_with(analysis)
    lines = f"{s.cycles:,} of {s.cycles + s.missing_cycles:,} cycles"
    shows_none = shown and not _may_be_costly(analysis)
    if s.is_mostly_missing:
        judged = f"; these show no {shown}" if shows_none else ", which is too little to judge"
        return f"Only {lines} have a line{judged}", not shows_none
    seen = f" in the {lines} that have a line" if s.missing_cycles else ""
    what = "The input" if analysis.by_dumps else "The log"
    if short:
        whole = what if len(analysis.summaries) == 1 else "Each run"
        part = "The selected part" if is_range(analysis) else whole
        judged = f"short, but shows no {shown}{seen}" if shows_none else "too short to judge"
        return f"{part} is {judged}", not shows_none
    if not shown:
        return f"{what} does not show whether GC is a problem", False
    here = seen or " here"
    if hidden_figures(analysis):
        start = f"There is no {shown}{here}"
    elif s.gc_cpu_share is not None:
        start = f"GC is not a problem{here}"
    elif s.stw_max_ms is None:
        return f"{what} does not show whether GC is a problem", False
    else:
        start = f"There is no problem with pauses{here}"
    if (longest_pause_after_start_up(analysis) or s.stw_max_ms or 0) > t.stw_bad_ms:
        start += ", except for single long pauses"
    return start, False


def in_all(analysis: Analysis) -> str:
    """Returns what GC cost the only program in all, unless that is all that is said."""
    s = analysis.summary
    is_said = s.is_too_short_for_rates or len(analysis.summaries) > 1
    return "" if is_said else f" In all, GC took {s.cost_in_all} of CPU time."


def is_clear(s: Summary, t: Thresholds) -> bool:
    """Returns whether even few cycles show that GC costs little, because they took long enough."""
    if s.span_s is None or s.gc_cpu_share is None:
        return False
    # A few seconds may be of a start, before any load, whatever GC took in them.
    least_s = t.growth_min_span_s if s.cycles < t.min_cycles else t.short_log_s
    return s.span_s >= least_s and s.gc_cpu_share < t.gc_cpu_little


def rise_in_words(analysis: Analysis) -> str:
    """Returns how the live heap of the only process rose in a few cycles; else nothing."""
    s, is_one = analysis.summary, len(analysis.tables["processes"]) == 1
    rise = rise_of_few(analysis.cycles) if is_one and not s.missing_cycles else None
    if rise is None:
        return ""
    return (
        f"The live heap rose from {rise[0]:,} to {rise[1]:,} MiB in {s.cycles} cycles: a longer "
        "log shows whether that is the start-up or a leak."
    )


def is_range(analysis: Analysis) -> bool:
    """Returns whether the report is on a range of its input; a chosen process is none."""
    return analysis.log.selection is not None and analysis.log.selection.is_range


def _may_be_costly(analysis: Analysis) -> bool:
    """Returns whether a figure would be a problem, if only there were enough cycles to prove it."""
    s, t = analysis.summary, analysis.thresholds
    was_costly = bool((printed_last(analysis.cycles)["percent"] > 100 * t.gc_cpu_warn).any())
    costly = bool(headline_levels.costly(analysis.summaries.values(), t))
    if s.is_of_single_cycles and (analysis.cycles["start_s"] > t.short_log_s).all():
        # The runtime's share since the start says more than the time of a single cycle.
        return costly and was_costly
    return costly or was_costly or (s.span_s or 0.0) < t.min_span_s


def _no_problem_with(analysis: Analysis) -> str:
    """Returns the problem that this input would show; empty if it may hide any problem."""
    known = {
        "gc_cpu": ("GC CPU", analysis.summary.gc_cpu_share),
        "pauses": ("pauses", analysis.summary.stw_max_ms),
    }
    hidden = hidden_figures(analysis)
    if not hidden:
        return "problem"
    shown = [
        name
        for figure, (name, value) in known.items()
        if value is not None and figure not in hidden
    ]
    return f"problem with {shown[0]}" if shown else ""


def hidden_figures(analysis: Analysis) -> frozenset[str]:
    """Returns what may be worse than it looks: `gc_cpu` and `pauses`.

    A coarse clock hides both; dumps that are far apart, or without the longest pause, hide pauses.
    """
    uncertain = analysis.by_dumps and not analysis.dumps.pauses_are_short
    return frozenset(analysis.too_coarse) | ({"pauses"} if uncertain else set())
