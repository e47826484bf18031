"""The metrics to fetch, by their names in Prometheus."""

from __future__ import annotations

GO = (
    "go_info",
    # Pauses; the count is the number of cycles.
    "go_gc_duration_seconds",
    "go_gc_duration_seconds_count",
    "go_gc_duration_seconds_sum",
    # runtime.MemStats, which every client_golang exports.
    "go_memstats_alloc_bytes_total",
    "go_memstats_gc_cpu_fraction",
    "go_memstats_heap_alloc_bytes",
    "go_memstats_heap_idle_bytes",
    "go_memstats_heap_inuse_bytes",
    "go_memstats_heap_released_bytes",
    "go_memstats_heap_sys_bytes",
    "go_memstats_last_gc_time_seconds",
    "go_memstats_next_gc_bytes",
    "go_memstats_stack_inuse_bytes",
    "go_memstats_sys_bytes",
    # runtime/metrics, in part from client_golang 1.20 on, all of them with MetricsAll.
    "go_cpu_classes_gc_mark_assist_cpu_seconds_total",
    "go_cpu_classes_gc_mark_dedicated_cpu_seconds_total",
    "go_cpu_classes_gc_mark_idle_cpu_seconds_total",
    "go_cpu_classes_gc_pause_cpu_seconds_total",
    "go_cpu_classes_gc_total_cpu_seconds_total",
    "go_cpu_classes_idle_cpu_seconds_total",
    "go_cpu_classes_total_cpu_seconds_total",
    "go_gc_cycles_forced_gc_cycles_total",
    "go_gc_cycles_total_gc_cycles_total",
    "go_gc_gogc_percent",
    "go_gc_gomemlimit_bytes",
    "go_gc_heap_goal_bytes",
    "go_gc_heap_live_bytes",
    "go_gc_limiter_last_enabled_gc_cycle",
    "go_gc_scan_globals_bytes",
    "go_gc_scan_stack_bytes",
    "go_memory_classes_heap_free_bytes",
    "go_memory_classes_heap_unused_bytes",
    "go_sched_gomaxprocs_threads",
    # The same metrics in VictoriaMetrics' library, which its own programs and others use.
    "go_gc_forced_count",
    "go_gomaxprocs",
    "go_memlimit_bytes",
    # The process, as the operating system sees it.
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
)
"""The metrics of a Go process. Histograms are not among them: they have a third of the samples,
and the quantiles of `go_gc_duration_seconds` and its sum say the same about pauses."""

SERIES = 40
"""Most series of these metrics for one process, including 5 quantiles."""

CONTAINER = (
    # cAdvisor
    "container_memory_working_set_bytes",
    "container_oom_events_total",
    "container_spec_cpu_period",
    "container_spec_cpu_quota",
    "container_spec_memory_limit_bytes",
    # kube-state-metrics
    "kube_pod_container_resource_limits",
    "kube_pod_container_status_last_terminated_exitcode",
    "kube_pod_container_status_last_terminated_reason",
    "kube_pod_container_status_restarts_total",
)
"""What Kubernetes exports about the container of a process: limits, restarts, and their reasons."""

FINDING = ("go_info", "go_goroutines")
"""Metrics that every Go process exports: one series each; the second is used if the first was
dropped."""


def any_of(names: tuple[str, ...]) -> str:
    """Returns the matcher for several names."""
    return f'__name__=~"{"|".join(names)}"'
