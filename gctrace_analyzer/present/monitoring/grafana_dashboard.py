"""A dashboard for Grafana: figures in the order of a report, with the thresholds of the rules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from gctrace_analyzer.analysis.thresholds import DEFAULT as T
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present.monitoring.alerts import rules_file
from gctrace_analyzer.present.monitoring.promql import FIGURES, TREND_WINDOW_H, query_of
from gctrace_analyzer.prometheus.queries import QUERIES, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Json: TypeAlias = "dict[str, object]"
Steps: TypeAlias = "tuple[tuple[float | None, str], ...]"
"""From which value on a colour holds; the first colour is that of all below."""

_SCHEMA = 42
"""`schemaVersion` of Grafana 12 and 13."""

_SELECTED = 'job=~"$job",instance=~"$instance"', "$__rate_interval"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# fmt: off
_STYLES: Mapping[str, tuple[Json, Json, Json]] = {
    "stat": (
        {"colorMode": "background", "graphMode": "none", "justifyMode": "auto", "textMode": "auto",
         "wideLayout": True, "showPercentChange": False, "percentChangeColorMode": "standard",
         "orientation": "auto", "reduceOptions": {"calcs": ["lastNotNull"]}},
        {"color": {"mode": "thresholds"}, "noValue": "–"},
        {},
    ),
    "timeseries": (
        {"legend": {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []},
         "tooltip": {"mode": "multi", "sort": "desc"}},
        {"color": {"mode": "palette-classic"}},
        {"fillOpacity": 0, "thresholdsStyle": {"mode": "dashed"}},
    ),
}
# fmt: on
"""Of a kind of panel: its options, its defaults for a field, and those of the panel's own."""


@frozen
class Panel:
    """A panel.

    Attributes:
        title: what it shows.
        note: what it means, and which rules have its thresholds.
        unit: the id of a unit of Grafana.
        queries: each query by what the legend adds to the instance.
        steps: the thresholds.
    """

    title: str
    note: str
    unit: str
    queries: Mapping[str, str]
    steps: Steps = ((None, "green"),)


def _of(template: str) -> str:
    return written(template, *_SELECTED)


# fmt: off
_FIGURE = {name: query_of(figure, *_SELECTED) for name, figure in FIGURES.items()}
_LIVE, _LIMIT = f"({_FIGURE['live']})", f"({_FIGURE['limit']})"
_GROWTH = f"deriv({_LIVE}[{TREND_WINDOW_H}h:1m])"
_LEAST_GROWTH = _of(
    f"{T.growth_min_share / (3600 * TREND_WINDOW_H):.3g} * go_memstats_next_gc_bytes{{S}}")
_RESIDENT = _of("process_resident_memory_bytes{S}")
_CONTAINER_LIMIT = (
    'max by (namespace, pod, container) (kube_pod_container_resource_limits{resource="memory"})'
    f" and on (namespace, pod, container) {_RESIDENT}"
)
_CPU_STEPS: Steps = ((None, "green"), (T.gc_cpu_warn, "yellow"), (T.gc_cpu_bad, "red"))
_PAUSE_STEPS: Steps = (
    (None, "green"), (T.stw_single_ms / 1000, "yellow"), (T.stw_bad_ms / 1000, "red"))
_CPU_NOTE = "Share of the CPU, without idle marking (GC001). Needs runtime/metrics."

VERDICT = (
    Panel("GC CPU", _CPU_NOTE, "percentunit", {"": f"max({_FIGURE['gc_cpu']})"}, _CPU_STEPS),
    Panel("Mark assists", "Share of the CPU (GC005). Needs runtime/metrics.", "percentunit",
          {"": f"max({_FIGURE['assists']})"},
          ((None, "green"), (T.assist_warn_cpu_share, "yellow"))),
    Panel("Pauses per cycle", "Both pauses of a cycle, added; mean (GC046).", "s",
          {"": f"max({_FIGURE['pause_mean']})"}, _PAUSE_STEPS),
    Panel("Room under GOMEMLIMIT", "What a cycle allocates where the limit sets the heap goal, as "
          "a share of the goal: next to nothing is thrashing (GC016, GC015).", "percentunit",
          {"": f"min({_FIGURE['room']} and {_FIGURE['of_limit']} > {T.server_at_limit_share:g})"},
          ((None, "red"), (T.server_thrash_cycle_share, "yellow"),
           (T.server_near_cycle_share, "green"))),
    Panel("Live heap", "As a share of GOMEMLIMIT (GC015).", "percentunit",
          {"": f"max({_LIVE} / {_LIMIT})"}, ((None, "green"), (T.fleet_limit_share, "yellow"))),
    Panel("Time to GOMEMLIMIT", "Until the live heap reaches it, if it grows as in the last "
          f"{TREND_WINDOW_H} h: by {T.growth_min_share:.0%} of the goal or more (GC021).", "s",
          {"": f"min(({_LIMIT} - {_LIVE}) / ({_GROWTH} > {_LEAST_GROWTH}))"},
          ((None, "red"), (3600 * T.alert_hours_to_limit, "yellow"),
           (3600 * T.hours_to_limit, "green"))),
)
CHARTS = (
    Panel("GC CPU", _CPU_NOTE, "percentunit", {
        "GC": _FIGURE["gc_cpu"], "mark assists": _FIGURE["assists"], "with idle marking": _of(
            f"rate(go_cpu_classes_gc_total_cpu_seconds_total{{S}}[R]) / {QUERIES['cores'][0]}"),
    }, _CPU_STEPS),
    Panel("Pauses", "Both pauses of a cycle, added; the longest is of the last 256 cycles. The "
          "99 % quantile is of single pauses, interpolated between wide buckets.", "s", {
        "mean": _FIGURE["pause_mean"], "99 % quantile": _FIGURE["pause_p99"],
        "longest": _of('go_gc_duration_seconds{S,quantile="1"}'),
    }, _PAUSE_STEPS),
    Panel("Heap", "Without runtime/metrics the live heap follows from the goal.", "bytes", {
        "heap": _of("go_memstats_heap_alloc_bytes{S}"), "live": _LIVE,
        "goal": _of("go_memstats_next_gc_bytes{S} or go_gc_heap_goal_bytes{S}"),
        "GOMEMLIMIT": _LIMIT,
    }),
    Panel("Allocation", "Allocated bytes per second.", "binBps", {"": _FIGURE["allocation"]}),
    Panel("Memory", "Resident memory, what Go has from the system, and the limits; that of the "
          "container needs kube-state-metrics.", "bytes", {
        "resident": _RESIDENT,
        "Go": _of("go_memstats_sys_bytes{S} - go_memstats_heap_released_bytes{S}"),
        "GOMEMLIMIT": _LIMIT, "container limit": _CONTAINER_LIMIT,
    }),
    Panel("GC cycles", "Cycles per second.", "ops", {"": _FIGURE["cycles"]}),
)


def dashboard_file() -> str:
    """Returns the dashboard as JSON."""
    places = [{"h": 4, "w": 4, "x": 4 * number, "y": 0} for number in range(len(VERDICT))] + [
        {"h": 9, "w": 12, "x": 12 * (number % 2), "y": 4 + 9 * (number // 2)}
        for number in range(len(CHARTS))]
    kinds = ["stat"] * len(VERDICT) + ["timeseries"] * len(CHARTS)
    panels = zip(kinds, VERDICT + CHARTS, places, strict=True)
    document = {
        "uid": "gctrace-analyzer", "title": "Go garbage collection", "tags": ["go"],
        "description": "Order and thresholds are those of the reports of gctrace-analyzer: "
        "gctrace-analyze prometheus URL --match '{job=\"…\"}' --since 1h",
        "schemaVersion": _SCHEMA, "editable": True, "graphTooltip": 1, "refresh": "1m",
        "annotations": {}, "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [*_variables()]},
        "panels": [_panel(number, *panel) for number, panel in enumerate(panels, 1)],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _variables() -> Iterator[Json]:
    yield {"name": "datasource", "type": "datasource", "label": "Data source",
           "query": "prometheus"}
    for name, series in (("job", "go_goroutines"), ("instance", 'go_goroutines{job=~"$job"}')):
        query = f"label_values({series}, {name})"
        yield {
            "name": name, "type": "query", "label": name.capitalize(), "datasource": _SOURCE,
            "definition": query, "query": {"query": query, "refId": name}, "refresh": 2, "sort": 1,
            "multi": True, "includeAll": True, "current": {"text": ["All"], "value": ["$__all"]},
        }


def _panel(number: int, kind: str, panel: Panel, place: Mapping[str, int]) -> Json:
    options, defaults, custom = _STYLES[kind]
    steps = [{"value": value, "color": colour} for value, colour in panel.steps]
    thresholds = {"mode": "absolute", "steps": steps}
    own = {"unit": panel.unit, "min": 0, "thresholds": thresholds, "custom": custom}
    return {
        "id": number, "type": kind, "title": panel.title, "description": panel.note,
        "datasource": _SOURCE, "gridPos": place, "options": options,
        "fieldConfig": {"defaults": defaults | own, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + position), "datasource": _SOURCE, "expr": query,
             "legendFormat": f"{{{{instance}}}} {legend}".rstrip()}
            for position, (legend, query) in enumerate(panel.queries.items())],
    }
# fmt: on


FILES: Mapping[str, Callable[[], str]] = {
    "examples/rules.yml": rules_file,
    "examples/dashboard.json": dashboard_file,
}
"""The files that people copy, by their paths in docs."""
