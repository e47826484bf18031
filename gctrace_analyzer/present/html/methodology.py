"""How a report's figures were made, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.present.format import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.present.report import Report


def how_made(report: Report) -> list[tuple[str, str]]:
    """Each kind of figure, and where it comes from."""
    return list(_made(report))


def _made(report: Report) -> Iterator[tuple[str, str]]:
    s = report.analysis.summary
    if s.cycles:
        span = duration(s.span_s)
        yield (
            "GC CPU",
            "pauses, mark assists and background marking over GOMAXPROCS × the time between "
            f"the ends of cycles, {span} in all; marking on idle processors is given "
            "apart. The percentage that gctrace prints runs from the program's start and is "
            "not used.",
        )
        yield (
            "Pauses",
            "each stop of the world by itself: sweep termination and mark termination. The "
            "runtime cuts what it prints; sums and percentiles take the middle of what a "
            "printed figure stands for.",
        )
        yield (
            "Live heap",
            "what a cycle marked, with what was allocated while it marked; the program's own "
            "live heap is smaller.",
        )
        yield (
            "Allocation",
            "from the heap's size at one cycle's end to the next one's start, and while "
            "marking.",
        )
        yield (
            "Heap peak",
            "the largest heap at a mark termination; memory as the system sees it holds stacks "
            "and the runtime's own besides.",
        )
        if s.log_check_points is not None:
            yield (
                "Self-check",
                f"the figures rebuild the printed percentage within {s.log_check_points:.2g} "
                "points.",
            )
    if report.advice.recommendations.height and not report.advice.baseline.refused:
        yield (
            "Predictions",
            "from this log and the pacer's arithmetic; intervals hold four runs of five of the "
            "loads they were measured on.",
        )
    if report.analysis.post_mortems:
        yield (
            "Deaths",
            "from the kernel's, systemd's or the container runtime's own lines; exit code 137 "
            "alone is no proof of an OOM kill.",
        )
