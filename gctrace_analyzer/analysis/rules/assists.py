"""Rules about mark assists: goroutines that have to mark before they may allocate."""

from __future__ import annotations

from collections.abc import Iterator

from gctrace_analyzer.analysis.cycles import metrics
from gctrace_analyzer.analysis.rules.cpu import is_start_up
from gctrace_analyzer.analysis.rules.finding import (
    ALLOCATE_LESS,
    Evidence,
    ProcessFacts,
    cycles_text,
    example_lines,
    percent,
    total,
)
from gctrace_analyzer.analysis.rules.registry import rule
from gctrace_analyzer.ingest.rows import median, not_null, where
from gctrace_analyzer.units import between_text


@rule(
    "GC005",
    "assist-pressure",
    meaning="Goroutines have to help with marking when they allocate, which slows them down.",
    condition="Mark assists are over {t.assist_warn:.0%} of GC CPU time (Go 1.17 and earlier: "
    "{t.assist_warn_old:.0%}), also after the start-up, and either they are at least "
    "{t.assist_min_cpu_share:.0%} of all CPU time, or together with background workers they use "
    "at least {t.mark_pressure:.0%} of the CPUs while marking (median of the cycles that mark for "
    "{t.mark_min_ms:g} ms and longer). A warning from {t.assist_warn_cpu_share:.0%} of all CPU "
    "time on, in at least {t.min_cycles} cycles over {t.min_span_s:g} s.",
    advice=f"Use a recommended setting, or {ALLOCATE_LESS}.",
    needs="assist times of cycles that mark for {t.mark_min_ms:g} ms and longer",
    contradicted_by="a throughput that does not fall while GC is marking (GC033)",
    source="golang/go#40225, #56966; the pacer of Go 1.10 to 1.17 plans for 5 % of CPU in assists",
    explained_by=("GC016", "GC015", "GC024", "GC045", "GC001"),
)
def assist_pressure(facts: ProcessFacts) -> Iterator[Evidence]:
    """Checks the share of assists in GC CPU time, if they also matter for the program."""
    t, summary = facts.thresholds, facts.summary
    most = t.assist_warn if facts.new_pacer else t.assist_warn_old
    share, late = summary.assist_share_of_gc_cpu, facts.warmed_up
    # The points of metrics have no CPU times.
    is_timed = late["assist_cpu_ms"].count() > 0
    few = is_timed and total(late["assist_cpu_ms"]) <= most * total(late["gc_cpu_ms"])
    if share is None or share <= most or few:
        return
    of_all_cpu = summary.assist_share_of_cpu or 0.0
    pressure = median(facts.long_marks["pressure"])
    if of_all_cpu >= t.assist_min_cpu_share or pressure >= t.mark_pressure:
        yield Evidence(
            "warn"
            if of_all_cpu >= t.assist_warn_cpu_share and not is_start_up(facts)
            else "info",
            _assisted(facts, share),
            {"assist_share_of_gc_cpu": share, "mark_pressure": pressure or None},
            headline="Goroutines have to help with marking when they allocate: mark assists take "
            f"{between_text(*map(percent, summary.assist_cpu_range))} of the CPU.",
            examples=example_lines(facts.cycles, "assist_share"),
        )


def _assisted(facts: ProcessFacts, share: float) -> str:
    """Returns how much goroutines mark: GC CPU also has waits for the world to stop."""
    by_assists, by_workers = (
        total(facts.cycles[f"{who}_cpu_ms"]) for who in ("assist", "background")
    )
    if not by_assists:
        return f"Mark assists take {percent(share)} of the CPU time of GC."
    of_marking = percent(by_assists / (by_assists + by_workers))
    return f"Goroutines do {of_marking} of the marking in mark assists, not counting idle CPUs."


@rule(
    "GC006",
    "assist-spike",
    meaning="In some cycles, mark assists take most of the processors, so goroutines that "
    "allocate meanwhile are slow.",
    condition="Assists / (marking time × GOMAXPROCS) is over {t.assist_spike:.0%} in a cycle "
    "that marks for at least {t.mark_min_ms:g} ms.",
    advice="Find out what allocates at these times.",
    needs="assist time of the cycle, marking for {t.mark_min_ms:g} ms and longer",
    contradicted_by="a host that took the CPU away in that cycle: its other phases are late "
    "too",
    source="golang/go#27732",
    explained_by=("GC016", "GC015", "GC005"),
)
def assist_spike(facts: ProcessFacts) -> Iterator[Evidence]:
    """Looks for cycles in which assists take most of the processors."""
    limit = facts.thresholds.assist_spike
    long = facts.long_marks
    spikes = where(long, long["assisted"] > limit)
    if len(spikes):
        yield Evidence(
            "info",
            f"In {cycles_text(len(spikes))} mark assists took over {percent(limit)} of the "
            "processors while marking.",
            {"cycles": len(spikes)},
            examples=example_lines(spikes, "assisted"),
        )


@rule(
    "GC007",
    "trigger-pinned-low",
    meaning="Cycles start as early as the pacer may start them, and that is not early enough.",
    condition="The rule assist-pressure (GC005) matches, and after the first {t.warm_up_s:g} s "
    "the median of (heap at start - live heap) / (goal - live heap) is at most "
    "{t.early_trigger:g} (Go 1.17 and earlier: {t.early_trigger_old:g}).",
    advice="Marking cannot keep up with the allocation, which explains the assists: give the "
    "heap more room or allocate less.",
    needs="heap at start, live heap and goal of the cycles",
    contradicted_by="cycles that are forced: they start anywhere",
    source="minTriggerRatioDistance in runtime/mgcpacer.go",
    explained_by=("GC005", "GC016", "GC015"),
)
def trigger_pinned_low(facts: ProcessFacts) -> Iterator[Evidence]:
    """Checks where cycles start on the way from the live heap to the goal."""
    t = facts.thresholds
    if "GC005" not in facts.matched:
        return
    shares = facts.warmed_up.select(metrics()["trigger_share"]).to_series()
    trigger = not_null(shares).median()
    earliest = t.early_trigger if facts.new_pacer else t.early_trigger_old
    if isinstance(trigger, float) and trigger <= earliest:
        yield Evidence(
            "info",
            f"Cycles start {percent(trigger)} of the way from the live heap to the goal, as "
            "early as the pacer may start them.",
            {"trigger_share_p50": trigger},
        )
