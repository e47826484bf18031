"""Rules about the log itself: incomplete, short, from an old Go, or healthy."""

from __future__ import annotations

from collections.abc import Iterator

from gctrace_analyzer.analysis.rules.finding import (
    Evidence,
    OverallFacts,
    ProcessFacts,
    cycles_text,
    example_lines,
    gc_cpu_text,
)
from gctrace_analyzer.analysis.rules.registry import rule
from gctrace_analyzer.ingest.gctrace.grammar import OLD
from gctrace_analyzer.ingest.rows import distinct
from gctrace_analyzer.units import duration_text


@rule(
    "GC041",
    "log-incomplete",
    meaning="Lines are missing, so totals of CPU, pauses and allocation are too low.",
    condition="Cycle numbers are missing, or the GC CPU share that the lines add up to differs "
    "from the printed one by over {t.log_check_points:g} point.",
    advice="Use the complete stderr of a single program.",
    needs="cycle numbers, or printed GC CPU percentages",
    contradicted_by="nothing: the runtime numbers cycles without gaps",
    source="self-check of the log",
)
def log_incomplete(facts: ProcessFacts) -> Iterator[Evidence]:
    """Checks for missing cycles, and compares the sum of the lines with the printed GC CPU."""
    t, check, missing = facts.thresholds, facts.summary.log_check_points, facts.missing_cycles
    parts = []
    if missing:
        whole = cycles_text(missing + facts.summary.cycles)
        parts.append(f"{missing:,} of {whole} have no line")
    if check is not None and abs(check) > t.log_check_points:
        parts.append(
            f"the lines add up to {abs(check):.1f} points {'more' if check > 0 else 'less'} GC "
            "CPU than the log prints"
        )
    if parts:
        text = "; ".join(parts)
        yield Evidence(
            "info",
            f"{text[0].upper()}{text[1:]}.",
            {"missing_cycles": missing, "log_check_points": check},
        )


@rule(
    "GC042",
    "short-log",
    meaning="The log is too short for reliable percentiles, trends and advice.",
    condition="No process has at least {t.short_log_cycles} cycles over at least "
    "{t.short_log_s:g} s (if its times are unknown, only the cycles count).",
    advice="Run the program longer, under its usual load.",
    needs="the number of cycles and their time",
    contradicted_by="a program that ended, or that hardly allocates: then the log is complete",
    source="with fewer cycles, single ones decide percentiles and trends",
)
def short_log(facts: ProcessFacts) -> Iterator[Evidence]:
    """Reports a short process; `diagnose` drops this if another process is long enough."""
    t, cycles, span = facts.thresholds, facts.summary.cycles, facts.summary.span_s
    if cycles < t.short_log_cycles or (span is not None and span < t.short_log_s):
        time = "" if span is None else f" in {duration_text(span)}"
        yield Evidence(
            "info",
            f"The log has only {cycles_text(cycles)}{time}.",
            {"cycles": cycles, "span_s": span},
        )


_BETTER_SINCE = (
    (1, 5, "Go 1.5 marks while the program runs"),
    (1, 8, "Go 1.8 brought pauses below 1 ms"),
    (1, 14, "Go 1.14 can stop loops without function calls"),
    (1, 18, "Go 1.18 has a better pacer"),
    (1, 19, "Go 1.19 has a memory limit"),
)


@rule(
    "GC043",
    "old-go",
    meaning="A newer Go may solve a problem that this log shows.",
    condition="A line has a format from before Go 1.5 (a warning if GC010 matches), or the lines "
    "are from Go 1.17 or earlier and GC005, GC009 or GC010 matches (a note).",
    advice="Upgrade Go: " + "; ".join(words for *_, words in _BETTER_SINCE) + ".",
    needs="the format of the lines",
    contradicted_by="a version that was given",
    source="Go release notes",
)
def old_go(facts: ProcessFacts) -> Iterator[Evidence]:
    """Looks for line formats of old Go releases, and for problems that newer ones have solved."""
    newest = facts.go_versions[1]
    better = [
        words
        for major, minor, words in _BETTER_SINCE
        if newest is None or (major, minor) > newest
    ]
    advice = f"Upgrade Go: {'; '.join(better)}."
    shapes = {str(shape) for shape in distinct(facts.cycles, "format")}
    # `matched` is a set, but the text lists the rules in the order of their ids.
    helped = [rule_id for rule_id in ("GC005", "GC009", "GC010") if rule_id in facts.matched]
    if any(shape.id in shapes for shape in OLD):
        longest = duration_text((facts.summary.stw_max_ms or 0) / 1000)
        text = f"Go 1.4 and earlier stop the program while they mark: here for up to {longest}."
        yield Evidence(
            "warn" if "GC010" in facts.matched else "info",
            text,
            {"formats": sorted(shapes), "max_ms": facts.summary.stw_max_ms},
            examples=example_lines(facts.cycles),
            advice=advice,
            headline=text,
        )
    elif not facts.new_pacer and helped:
        yield Evidence(
            "info",
            f"The log is from Go 1.17 or earlier, and newer releases improve on "
            f"{' and '.join(helped)}.",
            {"findings": helped},
            advice=advice,
        )


@rule(
    "GC044",
    "healthy",
    meaning="No action needed.",
    condition="No finding is a warning, in at least {t.warn_min_cycles} cycles. GC CPU is below "
    "{t.gc_cpu_warn:.0%}, most cycles have a line, and most pauses and CPU times are not 0. "
    "The evidence compares the 99 % quantile of the pauses with the {t.stw_single_ms:g} ms of "
    "GC009 and GC010.",
    advice="Leave the settings alone.",
    needs="at least 3 cycles",
    contradicted_by="any warning",
    source="all other findings",
)
def healthy(facts: OverallFacts) -> Iterator[Evidence]:
    """Reports that no finding needs action, and compares figures with their thresholds."""
    t = facts.thresholds
    if facts.too_coarse or any(finding.needs_action for finding in facts.findings):
        return
    summaries = facts.summaries.values()
    if any(s.is_mostly_missing for s in summaries):
        return
    costly = max(summaries, key=lambda s: s.gc_cpu_share or 0.0, default=None)
    if ((costly and costly.gc_cpu_share) or 0.0) > t.gc_cpu_warn or all(
        0 < s.cycles < t.warn_min_cycles for s in summaries
    ):
        return
    pauses = [s.stw_p99_ms for s in summaries if s.stw_p99_ms is not None]
    parts = []
    if costly and costly.gc_cpu_share is not None:
        most = "at most " * (sum(s.gc_cpu_share is not None for s in summaries) > 1)
        parts.append(f"GC CPU {most}{gc_cpu_text(costly)} (warns at {100 * t.gc_cpu_warn:g} %)")
    # Longer pauses are no problem during a start-up, and a minor finding reports them.
    if pauses and max(pauses) <= t.stw_single_ms:
        p99, limit = (duration_text(ms / 1000) for ms in (max(pauses), t.stw_single_ms))
        parts.append(f"pauses {p99} p99 (warns at {limit})")
    yield Evidence("ok", "; ".join(parts) or "nothing stands out")
