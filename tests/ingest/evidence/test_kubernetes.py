"""Pods and events as kubectl prints them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer.ingest.evidence import kubernetes
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import read_lines

if TYPE_CHECKING:
    from pathlib import Path

KUBERNETES_UNITS = {"": 1, "k": 1e3, "M": 1e6, "Ki": 1024, "Mi": 1 << 20, "Gi": 1 << 30}

PODS = """\
Name:             {name}
Namespace:        shop
Containers:
  app:
    Container ID:  containerd://{id}
    State:         Running
      Started:     Sun, 01 Mar 2026 09:00:05 +0100
    Restart Count: 0
    Limits:
      memory:  512Mi
    Environment:
      GOMEMLIMIT:  536870912 (limits.memory)
Volumes:
  cfg:
    Type:  ConfigMap (a volume populated by a ConfigMap)
    Name:  orders-config
Events:
  Type     Reason   Age  From     Message
  ----     ------   ---- ----     -------
  Warning  BackOff  2m   kubelet  Back-off restarting failed container
"""

POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "api-0", "namespace": "shop"},
    "spec": {
        "nodeName": "n1",
        "containers": [
            {
                "name": "api",
                "resources": {"limits": {"memory": "512Mi", "cpu": "1500m"}},
                "env": [
                    {"name": "GOGC", "value": "50"},
                    {
                        "name": "GOMEMLIMIT",
                        "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}},
                    },
                ],
            }
        ],
    },
    "status": {
        "containerStatuses": [
            {
                "name": "api",
                "containerID": "containerd://" + "a" * 64,
                "restartCount": 3,
                "state": {"running": {"startedAt": "2026-02-03T10:00:00Z"}},
                "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
            }
        ]
    },
}

DESCRIBED = """\
Name:         api-0
Containers:
  api:
    Restart Count:  1
    State:          Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      no date
    Limits:
      cpu:     500m
Conditions:
  Type    Status
  Ready:  False
"""


@given(st.integers(0, 10**9), st.sampled_from(sorted(KUBERNETES_UNITS)))
def test_a_kubernetes_quantity_reads_as_written(number: int, unit: str) -> None:
    assert kubernetes.quantity(f"{number}{unit}") == number * KUBERNETES_UNITS[unit]


@given(st.text(max_size=30))
def test_any_text_is_a_kubernetes_quantity_or_none(text: str) -> None:
    assert (kubernetes.quantity(text) or 0) >= 0


def test_several_pods_keep_their_names(tmp_path: Path) -> None:
    text = PODS.format(name="a-1", id="a" * 64) + "\n" + PODS.format(name="b-2", id="b" * 64)
    run = read_lines(tmp_path, *text.split("\n"))
    assert run.container_states["pod"].to_list() == ["a-1", "b-2"]
    assert run.container_states["gomemlimit_bytes"].to_list() == [536870912] * 2


@pytest.mark.parametrize(
    "document", [POD, {"kind": "List", "items": [POD]}, {"kind": "PodList", "items": [POD]}]
)
def test_a_pod_has_its_limits_and_settings(document: dict[str, Any]) -> None:
    row = read_text(json.dumps(document, indent=1)).container_states.row(0, named=True)
    assert (row["pod"], row["restart_count"], row["signal"]) == ("api-0", 3, "KILL")
    assert row["memory_limit_bytes"] == row["gomemlimit_bytes"] == 512 << 20
    assert (row["gogc"], row["cpu_limit"], row["oom_killed"]) == ("50", 1.5, True)
    assert (row["container_id"], row["node"]) == ("a" * 64, "n1")


def test_a_document_that_is_not_a_pod_has_no_containers() -> None:
    assert kubernetes.pods({"kind": "Service"}) == []
    assert kubernetes.pods({"kind": "PodList", "items": [5]}) == []


def test_an_event_of_a_pod_is_reported_without_a_node() -> None:
    found = kubernetes.event("5m30s   Warning   BackOff   pod/api-0   Back-off restarting")
    assert found is not None
    assert (found.age_s, found.node, found.message) == (330, None, "Back-off restarting")
    unknown = kubernetes.event("<unknown>  Normal  Pulled  pod/api-0  Image is present")
    assert unknown is not None
    assert unknown.age_s is None
    node = kubernetes.event("2m  Warning  SystemOOM  node/n1  System OOM encountered")
    assert node is not None
    assert node.facts() == {"age_s": 120, "reported_by": "kubelet", "node": "n1", "host": "n1"}
    assert kubernetes.event("no event") is None


def test_a_time_without_a_zone_is_unknown() -> None:
    running = {"state": {"running": {"startedAt": "2026-02-03T10:00:00"}}}
    pod = {"kind": "Pod", "status": {"containerStatuses": [{"name": "api", **running}]}}
    assert kubernetes.pods(pod)[0]["started_at"] is None
    described = PODS.format(name="api", id="a" * 64)
    (row,), _ = kubernetes.describe(described.splitlines())
    assert row["started_at"] is not None
    (row,), _ = kubernetes.describe(described.replace(" +0100", "").splitlines())
    assert row["started_at"] is None


def test_a_variable_from_a_secret_is_unknown() -> None:
    variables = [{"name": "GOGC", "valueFrom": {"secretKeyRef": {"name": "gc"}}}]
    pod = {
        "kind": "Pod",
        "spec": {"containers": [{"name": "api", "env": variables}]},
        "status": {
            "containerStatuses": [
                {"name": "api", "state": {"running": {"startedAt": "yesterday"}}}
            ]
        },
    }
    (row,) = kubernetes.pods(pod)
    assert "gogc" not in row
    assert row["started_at"] is None


def test_what_follows_the_containers_of_a_description_is_not_a_container() -> None:
    rows, events = kubernetes.describe(DESCRIBED.splitlines())
    (row,) = rows
    assert (row["pod"], row["container"], row["signal"]) == ("api-0", "api", "KILL")
    assert (row["cpu_limit"], row["started_at"], row["oom_killed"]) == (0.5, None, True)
    assert events == []
