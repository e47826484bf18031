"""A sentence about what each chart shows: next to it, and for screen readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.present.format import (
    assists,
    gc_cpu,
    gc_cpu_with_idle,
    interval,
    mib,
    milliseconds,
    rate,
    share,
)
from gctrace_analyzer.present.sections.headline import allocation
from gctrace_analyzer.present.sections.overview import over_time

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from gctrace_analyzer.present.report import Report


_OVER_TIME = ("timeline-", "frequency-interval", "goal-gogc")
"""Charts of the drawn processes. All other charts cover all processes."""


_OF_SAMPLES = " of single samples, while lines show the mean of both ends of an interval"


def statements(report: Report, drawn: Collection[int]) -> dict[str, str]:
    """Returns the main statement of each chart by its id.

    The statements cover all processes; if only some of them are `drawn`, they say so.
    """
    said = {**dict(_statements(report)), **dict(_mmu(report, drawn))}
    several = report.analysis.tables["processes"]["process"].n_unique()
    if several <= len(drawn):
        return said
    of_all = f"{'Both' if several == 2 else f'All {several}'} processes: "
    return {
        name: of_all + text[0].lower() + text[1:] if name.startswith(_OVER_TIME) else text
        for name, text in said.items()
    }


def _statements(report: Report) -> Iterator[tuple[str, str]]:
    s = report.analysis.summary
    if s.live_heap_p50_mib is not None:
        live, which = over_time(report, "heap_live_mib", s.live_heap_p50_mib, None)
        of_goal, _ = over_time(report, "heap_goal_mib", s.heap_goal_p50_mib or 0.0, None)
        goal = "" if s.heap_goal_p50_mib is None else f"; goal {mib(of_goal)} {which}"
        yield (
            "timeline-heap",
            f"Live heap {mib(live)} {which}, {mib(s.live_heap_max_mib)} at most"
            f"{goal}{_OF_SAMPLES if report.analysis.by_dumps else ''}.{_growth(report)}",
        )
    if s.stw_max_ms is not None:
        longest = f"Longest {milliseconds(s.stw_max_ms)}{_p99(report)}."
        yield from dict.fromkeys(("timeline-pauses", "pauses-spread"), longest).items()
    if s.gc_cpu_share is not None:
        idle = gc_cpu_with_idle(s)
        more = f", {idle} with idle marking" if idle else ""
        yield "timeline-gc_cpu", f"{gc_cpu(s)} of all CPU over the run{more}."
    if s.assist_share_of_gc_cpu is not None:
        yield "timeline-assist", f"{assists(s)[0]} of GC CPU over the run."
        yield (
            "assist-against",
            "One point per cycle: assists that rise with the allocation rate mean that marking "
            "is too slow for that rate.",
        )
    if s.alloc_mib_per_s is not None:
        per_s, total = allocation(report)
        yield "timeline-allocation", f"{per_s} on average, {total}."
    if s.gc_per_s is not None and s.gc_interval_p50_ms is not None:
        every = f"a cycle {interval(s)}"
        for name in ("frequency-interval", "timeline-frequency"):
            yield name, f"{rate(s.gc_per_s)} on average; {every}."
        yield (
            "frequency-distribution",
            f"Share of the times between cycles up to a length; {every}.",
        )
    if s.effective_gogc_p50 is not None:
        yield "goal-gogc", f"Effective GOGC {max(s.effective_gogc_p50, 0):.0f} % (median)."


def _p99(report: Report) -> str:
    p99 = report.analysis.summary.pause_p99_ms
    return "" if p99 is None else f", p99 {milliseconds(p99)}"


def _growth(report: Report) -> str:
    process = report.subject
    growth = None if process is None else report.analysis.live_growth(process)
    if growth is None or not growth.is_lasting:
        return ""
    several = len(report.analysis.tables["processes"]) > 1
    which = f"That of process {process}" if several else "It"
    return f" {which} grows by {mib(growth.mib_per_h)}/h."


def _mmu(report: Report, drawn: Collection[int]) -> Iterator[tuple[str, str]]:
    """Yields what the curve shows, for the last process drawn."""
    rows = report.analysis.mmu_of([*drawn][-1] if drawn else None)
    if len(rows):
        middle = rows.row(len(rows) // 2, named=True)
        left = middle["mmu_with_assists_share"]
        if left is not None:
            several = len(report.analysis.tables["processes"]) > 1
            of = f"Process {[*drawn][-1]}: in" if several else "In"
            yield (
                "mmu-mmu",
                f"{of} the worst {milliseconds(middle['window_ms'])} the program had {share(left)} "
                "of its CPU.",
            )
