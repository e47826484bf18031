"""The figures of alerts and dashboards in PromQL: those that a fleet is asked for, and ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.metrics.live_from_goal import LIMIT_MOVES, TRIGGER
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.prometheus.fetch import NO_LIMIT
from gctrace_analyzer.prometheus.queries import QUERIES, written

if TYPE_CHECKING:
    from collections.abc import Mapping

TREND_WINDOW_H = 1
"""Hours over which the growth of the live heap is fitted."""


@frozen
class Figure:
    """A figure of one process.

    Attributes:
        record: the name of its recording rule.
        query: a template; see `queries.written`.
        meaning: what it is, its unit, and which collector exports it.
        window: the range of the recording rule; five minutes have five samples if a target is
            scraped once a minute.
    """

    record: str
    query: str
    meaning: str
    window: str = "5m"


def query_of(figure: Figure, matchers: str = "", window: str = "") -> str:
    """Returns the query of a figure for the processes that `matchers` select."""
    return written(figure.query, matchers, window or figure.window)


def _spread(query: str) -> str:
    return f"(max_over_time({query}[R:15s]) - min_over_time({query}[R:15s]))"


_RATE = {name: query for name, (query, _) in QUERIES.items()}
_PAUSES = (
    "rate(go_sched_pauses_total_gc_seconds_bucket{S}[R])"
    " or rate(go_gc_pauses_seconds_bucket{S}[R])"
)
_GOAL = "go_memstats_next_gc_bytes{S}"
_HEAP = "go_memstats_heap_alloc_bytes{S}"
_OTHERS = f"go_memstats_sys_bytes{{S}} - go_memstats_heap_idle_bytes{{S}} - {_HEAP}"
_PER_CYCLE = f"{_RATE['alloc_mib_per_s']} / {_RATE['gc_per_s']}"
_LIVE = "instance:go_gc_heap_live_bytes"
_LIVE_BY_GOGC = f"{_GOAL} / (1 + go_gc_gogc_percent{{S}} / 100)"
_LIVE_BY_CYCLE = f"{_GOAL} - {_PER_CYCLE} / {TRIGGER}"
_LIMIT = f"go_gc_gomemlimit_bytes{{S}} < {NO_LIMIT:.3g}"
_RUNTIME = "Only with runtime/metrics."

# fmt: off
FIGURES: Mapping[str, Figure] = {
    "cycles": Figure("instance:go_gc_cycles:rate5m", _RATE["gc_per_s"], "GC cycles per second."),
    "pause_mean": Figure(
        "instance:go_gc_pause_seconds:mean5m", f"{_RATE['stw_share']} / {_RATE['gc_per_s']}",
        "Seconds: the two pauses of a cycle, added; mean."),
    "pause_p99": Figure(
        "instance:go_gc_pause_seconds:p99_1h", f"histogram_quantile(0.99, {_PAUSES})",
        f"Seconds: 99 % quantile of pauses, interpolated between wide buckets. {_RUNTIME}", "1h"),
    "allocation": Figure(
        "instance:go_memstats_alloc_bytes:rate5m", _RATE["alloc_mib_per_s"],
        "Allocated bytes per second."),
    "room": Figure(
        "instance:go_gc_room:ratio5m", f"{_PER_CYCLE} / {_RATE['heap_goal_mib']}",
        "What a cycle allocates, as a share of the heap goal (0-1): about 0.4 at GOGC=100."),
    "above_goal": Figure(
        "instance:go_gc_heap_above_goal:share5m",
        f"avg_over_time(({_HEAP} >= bool {_GOAL})[R:15s])",
        "Share of the time that the heap is above its goal (0-1)."),
    "limit_sets_goal": Figure(
        "instance:go_gc_limit_sets_goal:ratio5m",
        f"{_spread(_GOAL)} / {_spread(f'({_GOAL} + {_OTHERS})')}",
        "How much the heap goal moves, relative to the sum of the goal and the memory outside the "
        f"heap: over {LIMIT_MOVES} where a limit that is not exported sets the goal, because then "
        "that sum is constant."),
    "gc_cpu": Figure(
        "instance:go_gc_cpu:share5m", f"({_RATE['gc_cores']}) / {_RATE['cores']}",
        f"GC CPU without idle marking, as a share of GOMAXPROCS (0-1). {_RUNTIME}"),
    "assists": Figure(
        "instance:go_gc_assist_cpu:share5m", f"{_RATE['assist_cores']} / {_RATE['cores']}",
        f"CPU of mark assists, as a share of GOMAXPROCS (0-1). {_RUNTIME}"),
    "limiter": Figure(
        "instance:go_gc_limiter:changes5m", _RATE["limiter_changes"],
        f"Above 0 if the runtime's CPU limiter was active. {_RUNTIME}"),
    "limit": Figure(
        "instance:go_gc_memory_limit_bytes", _LIMIT,
        "GOMEMLIMIT, if there is one. The default collector has it from client_golang 1.20 on."),
    "of_limit": Figure(
        "instance:go_gc_memory_of_limit:ratio5m",
        f"({_RATE['go_memory_mib']}) / ({_LIMIT})",
        "Memory that Go has from the system, as a share of GOMEMLIMIT: about 1 where the limit "
        "sets the heap goal."),
    "live": Figure(
        _LIVE,
        f"go_gc_heap_live_bytes{{S}} or ({_LIVE_BY_GOGC} > {_LIVE_BY_CYCLE})"
        f" or ({_LIVE_BY_CYCLE} and go_gc_gogc_percent{{S}})",
        "Live heap in bytes. The default collector does not export it: it follows from the heap "
        "goal and GOGC, or under a limit from what a cycle allocates."),
    "growth": Figure(
        f"{_LIVE}:deriv1h", f"deriv({_LIVE}{{S}}[R])",
        "Growth of the live heap in bytes per second.", f"{TREND_WINDOW_H}h"),
    "late_growth": Figure(
        f"{_LIVE}:deriv20m", f"deriv({_LIVE}{{S}}[R])",
        "The same over the last third: a cache that fills slows down.",
        f"{60 * TREND_WINDOW_H // 3}m"),
}
# fmt: on
