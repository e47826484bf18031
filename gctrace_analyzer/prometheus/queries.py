"""Figures of many processes, computed by a server with a few instant queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.metrics.samples import NO_LIMIT
from gctrace_analyzer.prometheus import discovery, selector
from gctrace_analyzer.prometheus.problems import RefusedError
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gctrace_analyzer.prometheus.discovery import Identity, Target
    from gctrace_analyzer.prometheus.question import Question
    from gctrace_analyzer.prometheus.selector import Matcher
    from gctrace_analyzer.prometheus.series import Series

BATCH = 2_000
"""Most processes per query: an answer then has less than 1 MB."""

_SERVICE = ("service", "app", "app_kubernetes_io_name", "container")
"""Labels that name the service if there is no job."""

_PER_MIB = 1 / MIB

QUERIES: Mapping[str, tuple[str, float]] = {
    "gc_per_s": ("rate(go_gc_duration_seconds_count{S}[R])", 1),
    "stw_share": ("rate(go_gc_duration_seconds_sum{S}[R])", 1),
    "stw_max_ms": ('max_over_time(go_gc_duration_seconds{S,quantile="1"}[R])', 1000),
    "alloc_mib_per_s": ("rate(go_memstats_alloc_bytes_total{S}[R])", _PER_MIB),
    "heap_goal_mib": ("avg_over_time(go_memstats_next_gc_bytes{S}[R])", _PER_MIB),
    "heap_goal_max_mib": ("max_over_time(go_memstats_next_gc_bytes{S}[R])", _PER_MIB),
    "heap_live_mib": ("avg_over_time(go_gc_heap_live_bytes{S}[R])", _PER_MIB),
    "heap_live_max_mib": ("max_over_time(go_gc_heap_live_bytes{S}[R])", _PER_MIB),
    "go_memory_mib": (
        "avg_over_time(go_memstats_sys_bytes{S}[R])"
        " - avg_over_time(go_memstats_heap_released_bytes{S}[R])",
        _PER_MIB,
    ),
    "rss_max_mib": ("max_over_time(process_resident_memory_bytes{S}[R])", _PER_MIB),
    "gc_cores": (
        "rate(go_cpu_classes_gc_total_cpu_seconds_total{S}[R])"
        " - rate(go_cpu_classes_gc_mark_idle_cpu_seconds_total{S}[R])",
        1,
    ),
    "cores": ("rate(go_cpu_classes_total_cpu_seconds_total{S}[R])", 1),
    "assist_cores": ("rate(go_cpu_classes_gc_mark_assist_cpu_seconds_total{S}[R])", 1),
    "limiter_changes": ("changes(go_gc_limiter_last_enabled_gc_cycle{S}[R])", 1),
    "restarts": ("changes(process_start_time_seconds{S}[R])", 1),
    "covered_s": ("count_over_time(go_gc_duration_seconds_count{S}[R:STEP])", 1),
    "gogc": ("last_over_time(go_gc_gogc_percent{S}[R])", 1),
    "memory_limit_mib": ("last_over_time(go_gc_gomemlimit_bytes{S}[R])", _PER_MIB),
}
"""A query for each figure, and the factor for its values. `S` stands for label matchers, `R` for
the time range. The pause of `quantile="1"` is the longest of the last 256 cycles.

`covered_s` counts the steps at which a process existed: `rate` divides by the whole range, even for
a process that existed only part of the time (`analysis.fleet.scraped` corrects that)."""

_STEPS = 200
_SHORTEST_STEP_S = 1

_CONTAINER_LIMIT = (
    'max by (namespace, pod, container) (kube_pod_container_resource_limits{S,resource="memory"})',
    "max by (namespace, pod, container) "
    '(container_spec_memory_limit_bytes{S,container!="",container!="POD"} > 0)',
)
_OOM_KILLED = (
    "max by (namespace, pod, container) "
    '(kube_pod_container_status_last_terminated_reason{S,reason="OOMKilled"} > 0)'
    " and on (namespace, pod, container) "
    "max by (namespace, pod, container) "
    "(changes(kube_pod_container_status_restarts_total{S}[R])) > 0"
)
"""The reason is a state that stays until the next restart, so it counts only with a restart in
the time range."""

QUERIES_PER_BATCH = len(QUERIES) + len(_CONTAINER_LIMIT) + 1


Figures: TypeAlias = "dict[str, float | str | None]"
"""Figures of one process from a server, by name; figures that it does not export are missing."""


@frozen
class TargetBatch:
    """Processes of one query, and the matchers that select them."""

    matchers: Sequence[Matcher]
    targets: Sequence[Target]


def figures(asked: Question, batch: TargetBatch, tick: Callable[[], None]) -> list[Figures]:
    """Returns the figures of each process of a batch, in the order of its targets.

    Args:
        asked: the server and the time range.
        batch: the processes.
        tick: called after each of `QUERIES_PER_BATCH` queries.

    Raises:
        UnreadableInputError: the server does not answer.
    """
    rows: dict[Identity, Figures] = {
        target.identity: {**identified(target)} for target in batch.targets
    }
    for name, (template, factor) in QUERIES.items():
        for series in _asked(asked, template, batch.matchers):
            row = rows.get(discovery.identity(series.labels))
            if row is not None and series.value is not None and row.get(name) is None:
                row[name] = _figure(name, series.value, factor, asked.span.seconds)
        tick()
    _add_containers(asked, list(rows.values()), tick)
    return list(rows.values())


def _figure(name: str, value: float, factor: float, seconds: float) -> float | str | None:
    """Returns a figure of the answer; None for a limit that means no limit."""
    if name == "covered_s":
        return min(seconds, value * _step_s(seconds))
    if name == "gogc":
        return "off" if value >= NO_LIMIT else f"{value:.0f}"
    return None if value >= NO_LIMIT else value * factor


def batches(asked: Question) -> Iterator[TargetBatch]:
    """Yields the processes of a question in groups for one query each."""
    targets_ = asked.targets
    if len(targets_) <= BATCH:
        yield TargetBatch(asked.matchers, targets_)
        return
    named = [target for target in targets_ if target.labels.get("instance")]
    by_instance = sorted(named, key=lambda target: target.labels["instance"])
    for begin in range(0, len(by_instance), BATCH):
        targets = by_instance[begin : begin + BATCH]
        instances = [target.labels["instance"] for target in targets]
        yield TargetBatch([*asked.matchers, selector.one_of("instance", instances)], targets)
    if len(named) < len(targets_):
        nameless = [target for target in targets_ if not target.labels.get("instance")]
        yield TargetBatch([*asked.matchers, selector.Matcher("instance", "=", '""')], nameless)


def identified(target: Target) -> dict[str, str | None]:
    """Returns the identity of a process from its labels."""
    labels = target.labels
    service = target.jobs[0] if target.jobs else None
    return {
        "service": service or next((labels[n] for n in _SERVICE if labels.get(n)), None),
        "instance": target.name,
        "namespace": labels.get("namespace"),
        "pod": labels.get("pod"),
        "container": labels.get("container"),
        "go_version": next(iter(reversed(target.go_versions)), "").removeprefix("go") or None,
    }


def _asked(asked: Question, template: str, matchers: Sequence[Matcher]) -> list[Series]:
    """Returns the result of a query; an empty one if the server refuses or cannot compute it."""
    query = written(template, ",".join(map(str, matchers)), f"{round(asked.span.seconds)}s")
    query = query.replace("STEP", f"{_step_s(asked.span.seconds)}s")
    try:
        return asked.server.instant(query, asked.span.end)
    except RefusedError as err:
        if err.status in (401, 403, 429):
            raise
        return []


def written(template: str, matchers: str, window: str) -> str:
    """Returns a query with its label matchers (`S`) and its time range (`R`).

    >>> written("rate(go_gc_duration_seconds_count{S}[R])", 'job="api"', "5m")
    'rate(go_gc_duration_seconds_count{job="api"}[5m])'
    """
    query = template.replace("{S,", f"{{{matchers}," if matchers else "{")
    query = query.replace("{S}", f"{{{matchers}}}" if matchers else "")
    return query.replace("[R", f"[{window}")


def _add_containers(asked: Question, rows: Sequence[Figures], tick: Callable[[], None]) -> None:
    """Adds the memory limit of each container, and whether it was killed for memory."""
    of_pod: dict[tuple[str, str], list[Figures]] = {}
    for row in rows:
        if row["pod"] and row["namespace"]:
            of_pod.setdefault((str(row["namespace"]), str(row["pod"])), []).append(row)
    pods = {pod for _, pod in of_pod}
    for column, template in (
        *(("container_limit_mib", template_) for template_ in _CONTAINER_LIMIT),
        ("oom_killed", _OOM_KILLED),
    ):
        answers = _asked(asked, template, [selector.one_of("pod", pods)]) if pods else []
        tick()
        per_pod: dict[tuple[str, str], list[tuple[str, float | None]]] = {}
        for labels, value in answers:
            key = labels.get("namespace", ""), labels.get("pod", "")
            per_pod.setdefault(key, []).append((labels.get("container", ""), value))
        for key, values in per_pod.items():
            for row in of_pod.get(key, []):
                value = _of_container(values, row["container"])
                if value is not None and value < NO_LIMIT and row.get(column) is None:
                    row[column] = value > 0 if column == "oom_killed" else value / MIB


def _of_container(
    values: Sequence[tuple[str, float | None]], container: float | str | None
) -> float | None:
    """Returns the value of a container; of the only one if its name is unknown."""
    if container:
        return next((value for name, value in values if name == container), None)
    return values[0][1] if len(values) == 1 else None


def _step_s(seconds: float) -> int:
    return max(_SHORTEST_STEP_S, round(seconds / _STEPS))
