"""How a report computes its figures, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.present.format import duration
from gctrace_analyzer.present.glossary import find_word, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.present.report import Report


_FIGURES = {
    "idle marking": "gc_cpu_with_idle_share",
    "mark assist": "assist_share_of_gc_cpu",
    "live heap": "live_heap_p50_mib",
    "heap goal": "heap_goal_p50_mib",
    "effective GOGC": "effective_gogc_p50",
}
"""Words, with the summary figure that the page shows for each."""


def _of_dumps(report: Report) -> Iterator[tuple[str, str]]:
    s = report.analysis.summary
    if s.gc_cpu_share is not None:
        yield (
            "GC CPU",
            "the growth of the counters of GC CPU time, divided by the CPU time that was available "
            f"between the samples ({duration(s.span_s)} in total). Idle marking is shown "
            "separately.",
        )
    if s.stw_max_ms is not None or s.stw_total_ms is not None:
        yield (
            "Pauses",
            "the growth of the total between two samples; the longest is known only of cycles "
            "whose pause was sampled.",
        )
    yield (
        "Live heap",
        "what the last cycle before each sample marked, as printed or from the heap goal and GOGC.",
    )
    yield (
        "Allocation",
        "the growth of the counter of allocated bytes, divided by the time between the samples.",
    )


def methodology(report: Report) -> Iterator[tuple[str, str]]:
    """Yields each kind of figure with its method."""
    s = report.analysis.summary
    if report.analysis.by_dumps:
        yield from _of_dumps(report)
    elif s.cycles:
        if s.gc_cpu_share is not None:
            cpus = next(iter(report.other_cpus), "GOMAXPROCS")
            yield (
                "GC CPU",
                f"CPU time of pauses, mark assists and background marking, divided by {cpus} × "
                f"the time between the ends of cycles ({duration(s.span_s)} in total). Idle "
                "marking is shown separately. From Go 1.23 on, the runtime counts "
                "the time to stop the world only as far as CPU time is lost, while the lines "
                "print it for every processor. The percentages that gctrace prints limit how much "
                "of that time counts; the middle of the possible range is used. The start of a "
                "cycle is printed in whole milliseconds, so a log of one cycle is taken to last "
                "at least as long as that cycle.",
            )
        pauses = (
            "every stop-the-world pause on its own: sweep termination and mark termination"
            if report.analysis.tables["cycles"]["stw_sweep_term_ms"].count()
            else "one for each cycle, which stops the program while it marks"
        )
        yield (
            "Pauses",
            f"{pauses}. The runtime truncates the values it prints; sums and percentiles use the "
            "middle of the range that a printed value stands for.",
        )
        if s.alloc_mib_per_s is not None:
            yield (
                "Allocation",
                "from the heap size at the end of one cycle to the start of the next, plus what "
                "was allocated during marking.",
            )
        if s.log_check_points is not None:
            yield (
                "Self-check",
                "GC CPU computed from the lines matches the percentage that the runtime printed, "
                f"{_difference(s.log_check_points)}.",
            )
    if report.advice.is_available:
        yield (
            "Predictions",
            f"computed from {'these metrics' if report.analysis.by_dumps else 'this log'} with "
            "the formulas of the pacer; the 80 % intervals were measured on test loads.",
        )
    yield from ((word[:1].upper() + word[1:], words()[word]) for word in _words(report))


def _words(report: Report) -> Iterator[str]:
    """Yields the words on the page that it does not explain otherwise."""
    s = report.analysis.summary
    if s.cycles and not report.analysis.by_dumps:
        yield from (word for word, figure in _FIGURES.items() if getattr(s, figure) is not None)
        yield "heap peak"
    kinds = report.analysis.episodes["kind"].unique(maintain_order=True)
    yield from filter(None, (find_word(kind) for kind in kinds))
    if report.analysis.post_mortems:
        yield "OOMKilled"


def _difference(points: float) -> str:
    """Returns how far two percentages differ, with one decimal.

    >>> _difference(0.022), _difference(-1.34)
    ('to less than 0.1 points', 'to 1.3 points')
    """
    return f"to {abs(points):.1f} points" if abs(points) >= 0.1 else "to less than 0.1 points"
