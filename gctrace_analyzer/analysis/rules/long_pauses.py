"""Rules about stop-the-world pauses: long ones, and single ones unlike the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.pauses import FOR_P99, longest_ms
from gctrace_analyzer.analysis.rules.cpu import high_gc_cpu, stopped_gc_share
from gctrace_analyzer.analysis.rules.finding import (
    CHECK_CPUS,
    Evidence,
    ProcessFacts,
    Severity,
    example_lines,
    maximum,
    percent,
)
from gctrace_analyzer.analysis.rules.registry import rule
from gctrace_analyzer.ingest.gctrace.columns import stopping
from gctrace_analyzer.ingest.rows import median, not_null, where
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl

    from gctrace_analyzer.analysis.rules.finding import Finding
    from gctrace_analyzer.analysis.thresholds import Thresholds

_LONG = (
    "the {t.stw_quantile:.0%} quantile is over {t.stw_warn_ms:g} ms, or the longest over "
    "{t.stw_single_ms:g} ms. A warning if the 99 % quantile after the first {t.warm_up_s:g} s is "
    "over {t.stw_single_ms:g} ms; bad if it is over {t.stw_bad_ms:g} ms."
)


@rule(
    "GC009",
    "long-stw-sweep-termination",
    meaning="The pause before marking is long. The runtime first waits until all goroutines "
    "have stopped; those that have not stopped yet keep running.",
    condition="Sweep-termination pauses: " + _LONG,
    advice=f"{CHECK_CPUS}; a loop without function calls (before Go 1.14) or clearing a large "
    "block (before 1.17) also delays the stop.",
    needs="sweep-termination pauses",
    contradicted_by="some long pauses in both phases, far above the median: the host is short "
    "of CPU",
    source="golang/go#17831, #42642, #31222",
    explained_by=("GC013",),
)
def long_sweep_termination(facts: ProcessFacts) -> Iterator[Evidence]:
    """Checks the pauses before marking."""
    advice = None if facts.may_be_before(1, 14) else f"{CHECK_CPUS}."
    yield from _long_pauses(facts, facts.cycles, "stw_sweep_term_ms", "before marking", advice)


@rule(
    "GC010",
    "long-stw-mark-termination",
    meaning="The pause at the end of a cycle is long. It is the wait until all goroutines have "
    "stopped and the time that they stay stopped.",
    condition="Mark-termination pauses (Go 1.4 and earlier: whole collections; Go 1.5 to 1.8: also "
    "those that the program forces): " + _LONG,
    advice=f"{CHECK_CPUS}; with Go 1.7 and earlier, upgrade.",
    needs="mark-termination pauses",
    contradicted_by="some long pauses in both phases, far above the median: the host is short "
    "of CPU",
    source="golang/go#42642",
    explained_by=("GC013", "GC043"),
)
def long_mark_termination(facts: ProcessFacts) -> Iterator[Evidence]:
    """Checks the pauses after marking, and those that are whole collections."""
    column, cycles = "stw_mark_term_ms", facts.cycles
    advice = None if facts.may_be_before(*_NEWER) else f"{CHECK_CPUS}."
    if (facts.go_versions[1] or _NEWER) < _NEWER:
        advice = _UPGRADE
    timed = cycles["stw_sweep_term_ms"].count() > 0
    which = "after marking" if timed else "for a whole collection"
    forced = stopping(cycles)
    others = cycles if forced.is_empty() else cycles.join(forced, "gc_num", "anti")
    pauses = [
        *_long_pauses(facts, others, column, which, advice),
        *_long_pauses(facts, forced, column, "for a forced collection", _FORCE_LESS),
    ]
    yield from sorted(pauses, key=lambda own: -own.figures["max_ms"])[:1]


_NEWER = (1, 8)
"""The first Go release whose pause after marking does not scan stacks again."""

_UPGRADE = (
    "Upgrade Go: up to 1.7, the world stops for work that later releases do concurrently."
)

_FORCE_LESS = (
    "Call `runtime.GC` less often, or upgrade: Go 1.9 and later mark while the program runs, also "
    "if GC is forced."
)

MOST_SINGLE = 2
"""Number of long pauses. This few, in a log of hours or of seconds, do not describe the program."""


def _long_pauses(
    facts: ProcessFacts, cycles: pl.DataFrame, column: str, which: str, advice: str | None
) -> Iterator[Evidence]:
    t, values = facts.thresholds, not_null(cycles[column])
    if values.is_empty():
        return
    longest = maximum(values)
    if longest <= min(t.stw_warn_ms, t.stw_single_ms):
        return
    # Interpolated, so that one of a few pauses does not decide alone.
    high = values.quantile(t.stw_quantile, "linear") or 0.0
    if high <= t.stw_warn_ms and longest <= t.stw_single_ms:
        return
    # While a program starts, nothing waits for it yet.
    warmed_up = not_null(facts.without_start_up(cycles)[column])
    as_printed = longest_ms(cycles, column) or longest
    most, usual = (duration_text(value / 1000) for value in (as_printed, median(values)))
    stops = f"The whole program stops for up to {most} {which}"
    has_wait = not which.startswith("for")
    if has_wait:
        stops = f"The pause {which} takes up to {most}"
    is_single = int((values > longest / 2).sum()) == 1
    if is_single and cycles["stw_sweep_term_ms"].count():
        took = "took" if has_wait else "stopped the whole program for"
        stops = f"One pause {which} {took} {most}"
    elif facts.summary.missing_cycles:
        stops += f" in the {len(values):,} cycles that have a line"
    headline = f"{stops}{_share(facts)}"
    of_all_ms = facts.summary.stw_max_ms or 0.0
    if of_all_ms > as_printed and (of_all := duration_text(of_all_ms / 1000)) != most:
        headline = f"The longest pause took {of_all}. {headline}"
    tail = f" The median of the {len(values):,} pauses {which} is {usual}." * (len(values) > 1)
    yield Evidence(
        severity_of(warmed_up.quantile(0.99, "linear") or 0.0, t),
        f"{stops}.{tail}",
        {
            "p50_ms": values.median(),
            "p90_ms": values.quantile(t.stw_quantile, "equiprobable"),
            "p99_ms": values.quantile(0.99, "equiprobable"),
            "late_p99_ms": warmed_up.quantile(0.99, "equiprobable") or 0.0,
            "max_ms": as_printed,
            "long": int((warmed_up > t.stw_single_ms).sum()),
        },
        examples=example_lines(cycles, column),
        advice=advice,
        headline=f"{headline}.",
        advises=None if advice in (_UPGRADE, _FORCE_LESS) else "check-cpus",
    )


def severity_of(p99_ms: float, t: Thresholds) -> Severity:
    """Returns how bad pauses are, by their 99 % quantile after the start-up."""
    if p99_ms <= t.stw_single_ms:
        return "info"
    return "bad" if p99_ms > t.stw_bad_ms else "warn"


_PHASES = {"GC009": " before marking", "GC010": " after marking"}


def deciding_p99(
    findings: Iterable[Finding], p99_ms: float | None, t: Thresholds
) -> tuple[str, float] | None:
    """Returns the 99 % quantile (name, ms) that makes pauses a problem, if that of all is none.

    With few cycles, that of one phase is near its longest pause.
    """
    worst = next((one for one in findings if one.id in _PHASES), None)
    if worst is None or p99_ms is None or worst.severity in ("info", severity_of(p99_ms, t)):
        return None
    late_p99_ms = min(worst.figures["late_p99_ms"], worst.figures["max_ms"])
    return f"p99{_PHASES[worst.id]}", late_p99_ms


def _share(facts: ProcessFacts) -> str:
    """Returns the sum of pauses if they are most of a high GC CPU, as the end of a sentence."""
    of_gc, of_time = stopped_gc_share(facts), facts.summary.stw_share
    if high_gc_cpu.id not in facts.matched or of_gc is None or of_time is None:
        return ""
    # A share of GC CPU would refer to what the runtime counts, which excludes part of the pauses.
    return f": pauses take {percent(of_time)} of the time"


@rule(
    "GC046",
    "long-gc-pauses",
    meaning="The pauses of GC are long; metrics do not show in which phase.",
    condition="Only where there are metrics and no gctrace. The two pauses of a cycle, added: "
    f"{_LONG} Where only totals and maxima are known, a pause that they do not prove to be long "
    "counts as short.",
    advice=f"{CHECK_CPUS}. GODEBUG=gctrace=1 shows which of the two pauses of a cycle is long.",
    needs="pauses from metrics",
    contradicted_by="gctrace, which shows them phase by phase",
    source="golang/go#42642; what pauses of each phase are in GC009 and GC010",
    explained_by=("GC013",),
)
def long_pauses_of_metrics(facts: ProcessFacts) -> Iterator[Evidence]:
    """Checks the pauses of whole cycles, as far as metrics prove them."""
    t, pauses = facts.thresholds, facts.cycle_pauses
    if pauses is None or (pauses.p90_ms <= t.stw_warn_ms and pauses.max_ms <= t.stw_single_ms):
        return
    longest = duration_text(max(pauses.max_ms, facts.summary.stw_max_ms or 0.0) / 1000)
    # A maximum covers the observed time only if it is known for all of it.
    upto = "up to" if pauses.exact or facts.summary.stw_max_ms is not None else "at least"
    parts = []
    if pauses.p50_ms is not None:
        parts.append(f"over {_ms(pauses.p50_ms)} in half of the cycles")
    if pauses.cycles >= FOR_P99 and pauses.p99_ms > t.stw_warn_ms:
        least = "" if pauses.exact else "at least "
        parts.append(f"p99 {least}{_ms(pauses.p99_ms)}")
    tail = f"; {', '.join(parts)}" if parts else ""
    yield Evidence(
        severity_of(pauses.late_p99_ms, t),
        f"The two pauses of a GC cycle take {upto} {longest} together{tail}. Metrics have "
        "only the sum of the two pauses of a cycle.",
        {
            "p50_ms": pauses.p50_ms,
            "p90_ms": pauses.p90_ms,
            "p99_ms": pauses.p99_ms,
            "max_ms": pauses.max_ms,
        },
        headline=f"The two pauses of a GC cycle take {upto} {longest} together.",
        advises="check-cpus",
    )


def _ms(milliseconds: float) -> str:
    return duration_text(milliseconds / 1000)


@rule(
    "GC011",
    "stw-outliers",
    meaning="Single pauses are far longer than the others.",
    condition="A pause takes over {t.outlier_times:g} times the median of its phase and over "
    "{t.stw_warn_ms:g} ms, in a log of at least {t.short_log_cycles} cycles.",
    advice="Compare the times with other work on the host, CPU quotas and page migration.",
    needs="pauses of at least {t.short_log_cycles} cycles",
    contradicted_by="pauses that follow the live heap, the stacks or GOMAXPROCS",
    source="nothing in such a log explains the spread of its pauses",
    explained_by=("GC009", "GC010", "GC016"),
)
def pause_outliers(facts: ProcessFacts) -> Iterator[Evidence]:
    """Reports the episodes in which pauses were far longer than the median."""
    outliers = where(facts.episodes, facts.episodes["kind"] == "pause-outlier")
    if outliers.is_empty():
        return
    longest = maximum(outliers["stw_max_ms"])
    yield Evidence(
        "info",
        f"Single pauses were far longer than the others: up to {duration_text(longest / 1000)}.",
        {"stw_max_ms": longest},
        examples=tuple(f"gc {number}" for number in outliers["first_gc"].head(3)),
    )
