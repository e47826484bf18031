"""Recording and alerting rules for Prometheus, with the texts and thresholds of the findings."""

from __future__ import annotations

from textwrap import fill, indent
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.metrics.live_from_goal import LIMIT_MOVES
from gctrace_analyzer.analysis.metrics.thrashing import CALM_TIMES
from gctrace_analyzer.analysis.rules.registry import RULES
from gctrace_analyzer.analysis.thresholds import DEFAULT as T
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present.monitoring.promql import FIGURES, TREND_WINDOW_H, query_of
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = """\
# What Go's garbage collector costs, as rules for Prometheus. Copy this file, name it under
# rule_files in prometheus.yml, and check it: promtool check rules rules.yml
#
# The rules need nothing but the metrics of client_golang. What its default collector cannot
# show is noted at each rule; one line of Go exports everything:
#   collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll))
#
# The texts and thresholds are those of gctrace-analyzer. This file is generated from them by
# scripts/docs --write.

groups:
"""


@frozen
class Alert:
    """An alerting rule.

    Attributes:
        name: what Prometheus calls it.
        rule: the id of the finding whose texts it has.
        severity: `critical` for a service that is slowed down now, otherwise `warning`.
        hold_min: minutes for which the state has to last.
        within_min: minutes after the start of the state by which it fires.
        note: how it follows from the metrics of which collector.
        condition: the expression.
        evidence: sentences with figures, as templates.
    """

    name: str
    rule: str
    severity: str
    hold_min: int
    within_min: int
    note: str
    condition: str
    evidence: str


def _is(figure: str, comparison: str = "") -> str:
    return f"{FIGURES[figure].record} {comparison}".rstrip()


def _all(*conditions: str) -> str:
    return "(\n    " + "\n  and ".join(conditions) + "\n)"


def _any(*conditions: str) -> str:
    return "\nor\n".join(conditions)


def _either(one: str, other: str) -> str:
    return f"(\n        {one}\n      or {other}\n    )"


def _unknown_limit(condition: str) -> str:
    moves = _is("limit_sets_goal", f"> {LIMIT_MOVES}")
    shown = _either(moves, _is("above_goal", f"> {T.thrash_limited_share:g}"))
    return f"{_all(condition, _RUNS, shown)}\nunless go_gc_gomemlimit_bytes"


def _grows_into(limit: str, value: str, slope: str, late_slope: str) -> str:
    return _all(
        f"{value} + {3600 * T.alert_hours_to_limit:g} * {slope} > {limit}",
        f"{_WINDOW_S} * {slope} > {T.growth_min_share:g} * {value}",
        f"{_WINDOW_S} * {slope} > {T.growth_min_mib * MIB:.0f}",
        f"{late_slope} > {T.growth_steady:g} * {slope}",
    )


def _says(text: str, figure: str, form: str = "humanizePercentage") -> str:
    """Returns a sentence for a description; nothing where the figure is not exported."""
    value = f"{{{{ . | first | value | {form} }}}}"
    asked = f'{{{{ with query (print "{FIGURES[figure].record}" $of) }}}}'
    return f"{asked}{text.format(value)} {{{{ end }}}}"


_WINDOW_S = 3600 * TREND_WINDOW_H
_RUNS = _is("cycles", f"> {T.server_min_per_s:g}")
_AT_LIMIT = _is("of_limit", f"> {T.server_at_limit_share:g}")
_TIGHT = _is("room", f"< {T.server_near_cycle_share:g}")
_RESIDENT = "process_resident_memory_bytes"
_CONTAINER_LIMIT = """\
on (namespace, pod, container) group_left ()
      max by (namespace, pod, container) (kube_pod_container_resource_limits{resource="memory"})"""
_GC_CPU = _says("GC takes {} of the CPU.", "gc_cpu")
_ROOM = _says("A cycle allocates {} of the heap goal before the next one starts.", "room")
_LIMIT = _says("GOMEMLIMIT is {}B.", "limit", "humanize1024")
_LIVE = _says("The live heap is {}B.", "live", "humanize1024")

# fmt: off
ALERTS = (
    Alert(
        "GoGCLimitThrash", "GC016", "critical", 5, 10,
        "At its GOMEMLIMIT a cycle allocates next to nothing, with either collector; the goals "
        "show a limit that client_golang before 1.20 does not export. With runtime/metrics also: "
        "the runtime's CPU limiter acted, or GC CPU is near the half that it allows.",
        _any(
            _all(_is("room", f"< {T.server_thrash_cycle_share:g}"), _RUNS, _AT_LIMIT),
            _unknown_limit(_is("room", f"< {T.metrics_thrash_room_unknown:g}")),
            _all(_is("limiter", "> 0"), _AT_LIMIT, _either(
                _is("gc_cpu", f"> {T.gc_cpu_bad:g}"),
                _is("room", f"< {CALM_TIMES * T.metrics_thrash_room:g}"))),
            _all(_is("gc_cpu", f"> {T.server_thrash_gc_cpu_share:g}"), _AT_LIMIT),
        ),
        _GC_CPU + _ROOM + _LIMIT + _LIVE,
    ),
    Alert(
        "GoGCMemoryLimitTight", "GC015", "warning", 15, 20,
        "With either collector: what a cycle allocates at its GOMEMLIMIT, as a share of the heap "
        "goal; and the live heap as a share of GOMEMLIMIT, from client_golang 1.20 on.",
        _any(
            _all(_TIGHT, _RUNS, _AT_LIMIT),
            _unknown_limit(_TIGHT),
            f"{_is('live')} > {T.fleet_limit_share:g} * {_is('limit')}",
        ),
        _LIVE + _LIMIT + _ROOM + _GC_CPU,
    ),
    *(
        Alert(
            "GoGCHighCPU", "GC001", severity, 10, 15,
            "Only with runtime/metrics: the default collector has nothing that shows GC CPU.",
            _is("gc_cpu", f"> {least:g}"),
            _GC_CPU + _says("{} cycles per second.", "cycles", "humanize"),
        )
        for severity, least in (("warning", T.gc_cpu_warn), ("critical", T.gc_cpu_bad))
    ),
    Alert(
        "GoGCMarkAssists", "GC005", "warning", 10, 15,
        "Only with runtime/metrics: the default collector has nothing that shows assists.",
        _all(
            _is("assists", f"> {T.assist_warn_cpu_share:g}"),
            f"{_is('assists')} > {T.assist_warn:g} * {_is('gc_cpu')}",
        ),
        _says("Mark assists take {} of the CPU.", "assists") + _GC_CPU,
    ),
    Alert(
        "GoGCHeapReachesLimit", "GC021", "warning", 15, 50,
        f"The live heap reaches GOMEMLIMIT within {T.alert_hours_to_limit:g} hours at this rate, "
        "or resident memory the limit of the container. Growth that slows down, and the first "
        f"{_WINDOW_S // 120} minutes of a process, do not count. With either collector "
        "(client_golang 1.20 or later); the container needs kube-state-metrics, and targets with "
        "the labels namespace, pod and container.",
        "(\n" + _any(
            _grows_into(_is("limit"), _is("live"), _is("growth"), _is("late_growth")),
            _grows_into(
                _CONTAINER_LIMIT, _RESIDENT, f"deriv({_RESIDENT}[{FIGURES['growth'].window}])",
                f"deriv({_RESIDENT}[{FIGURES['late_growth'].window}])"),
        ) + f"\n)\nunless time() - process_start_time_seconds < {_WINDOW_S // 2}",
        _LIVE + _says("It grows by {}B per second.", "growth", "humanize1024") + _LIMIT,
    ),
    Alert(
        "GoGCLongPauses", "GC046", "warning", 10, 15,
        f"The targets, {T.stw_single_ms:g} ms for the mean of a cycle's two pauses and "
        f"{T.stw_bad_ms:g} ms for 99 in 100 pauses of an hour: replace them by what the service "
        "promises. The second needs runtime/metrics, whose buckets end at 0.9, 10.5 and 117 ms.",
        _any(
            _is("pause_mean", f"> {T.stw_single_ms / 1000:g}"),
            _all(_is("pause_p99", f"> {T.stw_bad_ms / 1000:g}"), _RUNS),
        ),
        _says("Both pauses of a cycle take {}s (mean).", "pause_mean", "humanize")
        + _says("1 in 100 pauses of an hour takes more than about {}s.", "pause_p99", "humanize"),
    ),
)
# fmt: on


def rules_file() -> str:
    """Returns the rules as YAML."""
    groups = {
        "go-gc-figures": "".join(_record(name) for name in FIGURES),
        "go-gc-alerts": "".join(text for alert in ALERTS for text in _alert(alert)),
    }
    head = "  - name: {}\n    interval: 1m\n    rules:\n{}"
    return _HEAD + "\n".join(head.format(name, text) for name, text in groups.items())


def _record(name: str) -> str:
    figure = FIGURES[name]
    named = f"      - record: {figure.record}\n        expr: |-\n"
    query = query_of(figure).replace(" or ", "\nor ")
    return f"{_comment(figure.meaning)}{named}{indent(query, 10 * ' ')}\n"


def _alert(alert: Alert) -> Iterator[str]:
    rule = RULES[alert.rule]
    matchers = '{job="{{ $labels.job }}",instance="{{ $labels.instance }}"}'
    texts = {
        "summary": f"{{{{ $labels.job }}}} {{{{ $labels.instance }}}}: {rule.meaning}",
        "description": '{{ $of := printf "{job=%q,instance=%q}" $labels.job $labels.instance }}'
        f"{alert.evidence}{rule.advice}",
        "command": "gctrace-analyze prometheus {{ $externalURL }} "
        f"--match '{matchers}' --since 1h",
        "explain": f"gctrace-analyze explain {rule.id}",
        "runbook": rule.page,
    }
    note = f"{alert.note} Fires within {alert.within_min} minutes."
    yield _comment(f"{rule.id} {rule.name}. {note}")
    yield f"      - alert: {alert.name}\n        expr: |-\n{indent(alert.condition, 10 * ' ')}\n"
    yield f"        for: {alert.hold_min}m\n        labels:\n          severity: {alert.severity}\n"
    yield f"          finding: {rule.id}\n        annotations:\n"
    yield from (f"          {name}: >-\n            {text}\n" for name, text in texts.items())


def _comment(text: str) -> str:
    return fill(text, 96, initial_indent="      # ", subsequent_indent="      # ") + "\n"
