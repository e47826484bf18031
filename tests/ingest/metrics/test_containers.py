"""Metrics about containers: which are read, and what identifies a container."""

from __future__ import annotations

import pytest

from gctrace_analyzer.ingest.metrics.containers import column_of, identity

API = {"namespace": "shop", "pod": "api-1", "container": "api"}


@pytest.mark.parametrize(
    ("name", "labels", "column"),
    [
        ("container_spec_memory_limit_bytes", {}, "memory_limit_bytes"),
        ("kube_pod_container_resource_limits", {"resource": "memory"}, "memory_limit_bytes"),
        ("kube_pod_container_resource_limits", {"resource": "cpu"}, "cpu_limit"),
        ("kube_pod_container_resource_limits", {"resource": "storage"}, None),
        ("kube_pod_container_resource_limits", {}, None),
        (
            "kube_pod_container_resource_requests",
            {"resource": "memory"},
            "memory_request_bytes",
        ),
        ("kube_pod_container_resource_requests", {"resource": "cpu"}, None),
        ("kube_pod_container_status_restarts_total", {}, "restart_count"),
        (
            "kube_pod_container_status_last_terminated_reason",
            {"reason": "OOMKilled"},
            "oom_killed",
        ),
        ("kube_pod_container_status_last_terminated_reason", {"reason": "Error"}, None),
        ("container_memory_rss", {}, None),
    ],
)
def test_a_metric_fills_a_column(name: str, labels: dict[str, str], column: str | None) -> None:
    assert column_of(name, {**API, **labels}) == column


@pytest.mark.parametrize("container", ["", "POD", None])
def test_metrics_of_a_whole_pod_or_of_its_network_are_not_read(container: str | None) -> None:
    labels = {k: v for k, v in API.items() if k != "container"}
    if container is not None:
        labels["container"] = container
    assert column_of("container_spec_memory_limit_bytes", labels) is None


def test_labels_that_prometheus_or_old_kubernetes_renamed_identify_a_container() -> None:
    assert identity(API) == (("namespace", "shop"), ("pod", "api-1"), ("container", "api"))
    renamed = {"exported_namespace": "shop", "pod_name": "api-1", "container_name": "api"}
    assert identity(renamed) == identity(API)
    assert identity({"pod": "api-1", "container": ""}) == (("pod", "api-1"),)
    assert column_of("container_spec_memory_limit_bytes", renamed) == "memory_limit_bytes"
