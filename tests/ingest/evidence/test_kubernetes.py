"""Pods and events as kubectl prints them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gctrace_analyzer as gca
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
                "containerID": "containerd://" + "b" * 64,
                "restartCount": 3,
                "state": {"running": {"startedAt": "2026-02-03T10:00:00Z"}},
                "lastState": {
                    "terminated": {
                        "containerID": "containerd://" + "a" * 64,
                        "reason": "OOMKilled",
                        "exitCode": 137,
                    }
                },
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


WHOLE = """\
Name:             api-7d9f5c6b8-abcde
Namespace:        shop
Node:             node-3/10.0.0.7
Status:           Running
Init Containers:
  migrate:
    Container ID:   containerd://{init}
    State:          Terminated
      Reason:       Completed
      Exit Code:    0
      Started:      Sun, 01 Mar 2026 09:00:00 +0100
      Finished:     Sun, 01 Mar 2026 09:00:04 +0100
    Ready:          True
    Restart Count:  0
    Environment:    <none>
Containers:
  api:
    Container ID:  containerd://{api}
    Image:         registry.example/shop/api:1.4.2
    Port:          8080/TCP
    Args:
      --listen:8080
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Sun, 01 Mar 2026 09:00:05 +0100
      Finished:     Sun, 01 Mar 2026 10:30:00 +0100
    Ready:          False
    Restart Count:  4
    Limits:
      cpu:     1500m
      memory:  1Gi
    Requests:
      cpu:     1
      memory:  512Mi
    Liveness:  http-get http://:8080/healthz delay=0s timeout=1s period=10s
    Environment:
      GOGC:        75
      GOMEMLIMIT:  966367641 (limits.memory)
      NAME:        a (b)
    Mounts:
      /etc/api from config (ro)
  proxy:
    Container ID:   containerd://{proxy}
    State:          Running
      Started:      Sun, 01 Mar 2026 09:00:06 +0100
    Restart Count:  0
Conditions:
  Type    Status
  Ready   False
Events:
  Type     Reason     Age                 From     Message
  ----     ------     ----                ----     -------
  Warning  BackOff    2m (x5 over 10m)    kubelet  Back-off restarting failed container
"""
IDS = {name: letter * 64 for name, letter in (("init", "1"), ("api", "2"), ("proxy", "3"))}


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-01T{clock}+00:00")


def test_every_container_of_a_description_is_read_with_all_of_its_facts() -> None:
    rows, events = kubernetes.describe(WHOLE.format(**IDS).splitlines())
    pod = {"pod": "api-7d9f5c6b8-abcde", "namespace": "shop", "node": "node-3"}
    of_init, of_api, of_proxy = rows
    assert {name: value for name, value in of_init.items() if value is not None} == {
        **pod, "line_no": 6, "container": "migrate", "name": "migrate", "container_id": "1" * 64,
        "status": "terminated", "reason": "Completed", "oom_killed": False, "exit_code": 0,
        "started_at": at("08:00:00"), "finished_at": at("08:00:04"), "restart_count": 0,
        "memory_limit_bytes": 0,
    }  # fmt: skip
    assert {name: value for name, value in of_api.items() if value is not None} == {
        **pod, "line_no": 17, "container": "api", "name": "api", "container_id": "2" * 64,
        "status": "waiting", "reason": "CrashLoopBackOff", "last_status": "terminated",
        "last_reason": "OOMKilled", "oom_killed": True, "exit_code": 137, "signal": "KILL",
        "started_at": at("08:00:05"), "finished_at": at("09:30:00"), "restart_count": 4,
        "memory_limit_bytes": 1 << 30, "memory_request_bytes": 512 << 20, "cpu_limit": 1.5,
        "gogc": "75", "gomemlimit_bytes": 966367641,
    }  # fmt: skip
    assert {name: value for name, value in of_proxy.items() if value is not None} == {
        **pod, "line_no": 45, "container": "proxy", "name": "proxy", "container_id": "3" * 64,
        "status": "running", "oom_killed": False, "started_at": at("08:00:06"), "restart_count": 0,
    }  # fmt: skip
    assert [number for number, _ in events] == [53, 54, 55, 56]


def test_a_part_of_a_description_is_read() -> None:
    """People paste the lines about one container, without its name."""
    lines = WHOLE.format(**IDS).splitlines()
    part = lines[22:37]
    (row,), events = kubernetes.describe(part)
    assert (row["container"], row.get("pod")) == (None, None)
    assert (row["last_reason"], row["exit_code"], row["restart_count"]) == ("OOMKilled", 137, 4)
    assert (row["memory_limit_bytes"], row["line_no"]) == (1 << 30, 1)
    assert events == []
    assert kubernetes.is_described("\n".join(part))
    assert kubernetes.is_described("    State:   Running\n    Last State:  Terminated\n")
    assert not kubernetes.is_described("    State:   Running\n")
    assert not kubernetes.is_described("    State:   Running\n    State of the art: Running\n")


@pytest.mark.parametrize("name", ["proxy", "2proxy"])
def test_a_part_of_a_description_does_not_give_its_place_to_the_next_container(
    name: str,
) -> None:
    lines = WHOLE.format(**IDS).replace("  proxy:", f"  {name}:").splitlines()
    rows, _ = kubernetes.describe(lines[22:52])
    known = [(row["container"], row["container_id"], row["line_no"]) for row in rows]
    assert known == [(None, None, 1), (name, "3" * 64, 23)]
    rows, _ = kubernetes.describe(lines)
    assert [row["line_no"] for row in rows] == [6, 17, 45]


@pytest.mark.parametrize(
    ("text", "age_s", "node"),
    [
        (
            "  Warning  OOMKilling  45s  kernel-monitor, node-3  Killed process 5 (api)",
            45,
            "node-3",
        ),
        ("  Warning  BackOff  2m10s (x5 over 10m)  kubelet  Back-off", 130, None),
        ("  Normal  Pulled  3d4h  kubelet, n  Image present", 273_600, "n"),
        ("shop   1y2d   Warning   SystemOOM   nodes/n1   System OOM", 31_708_800, "n1"),
        ("5h   Normal   Started   pod/node/x   Started", 18_000, None),
    ],
)
def test_an_event_has_its_age_and_its_node(text: str, age_s: float, node: str | None) -> None:
    found = kubernetes.event(text)
    assert found is not None
    assert (found.age_s, found.node) == (age_s, node)
    facts = found.facts()
    assert facts["age_s"] == age_s
    assert facts.get("host") == facts.get("node") == node
    reporters = {"OOMKilling": "node-problem-detector", "SystemOOM": "kubelet"}
    assert facts["reported_by"] == reporters.get(found.reason)


@pytest.mark.parametrize(
    ("text", "value"),
    [("500m", 0.5), ("1.5G", 1.5e9), ("2T", 2e12), ("1P", 1e15), ("2Ti", 2 << 40), ("1Pi", 1 << 50),
     ("1e3", 1000), (" 5 ", 5), ("5Xi", None), ("-1", None), ("", None)],
)  # fmt: skip
def test_a_quantity_has_its_unit(text: str, value: float | None) -> None:
    assert kubernetes.quantity(text) == value


FLAT = """\
State: Terminated
Reason: OOMKilled
Exit Code: 137
Restart Count: 2
Limits:
memory: 128Mi
"""


@pytest.mark.parametrize("indent", ["", "    "])
def test_a_state_whose_indentation_was_lost_is_read(indent: str) -> None:
    text = "".join(f"{indent}{line}\n" for line in FLAT.splitlines())
    (row,) = read_text(text).container_states.to_dicts()
    assert (row["reason"], row["oom_killed"], row["exit_code"]) == ("OOMKilled", True, 137)
    assert (row["restart_count"], row["memory_limit_bytes"]) == (2, 128 << 20)


def test_the_last_state_alone_is_read() -> None:
    text = "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n"
    (row,) = read_text(text).container_states.to_dicts()
    assert (row["last_reason"], row["oom_killed"]) == ("OOMKilled", True)
    assert not kubernetes.is_described("State:  Running\nsomething else\n")


def test_a_limit_that_kubectl_describes_is_not_called_one_of_metrics() -> None:
    run = read_text("Last State: Terminated\n  Reason: OOMKilled\nLimits:\n  memory: 64Mi\n")
    assert "container limit 64 MiB (state of the container)" in str(run.summary())


@pytest.mark.parametrize(
    ("reason", "message", "cause"),
    [
        (
            "PreemptionByScheduler",
            "preempting to accommodate a higher priority pod",
            "preempted",
        ),
        ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", "a taint"),
        ("EvictionByEvictionAPI", "Eviction API: evicting", "on request"),
        ("DeletionByPodGC", "PodGC: node no longer exists", "its node was gone"),
        ("TerminationByKubelet", "Pod was terminated: imminent node shutdown", "the kubelet"),
        ("TerminationByKubelet", "The node was low on resource: memory. Threshold …", None),
        ("AnotherReason", "", None),
    ],
)
def test_a_disrupted_pod_was_not_killed_for_memory(
    reason: str, message: str, cause: str | None
) -> None:
    ended = {"exitCode": 137, "reason": "Error", "finishedAt": "2026-06-04T03:11:52Z"}
    disrupted = {"type": "DisruptionTarget", "status": "True"}
    status = {
        "conditions": [
            {"type": "Ready"},
            {**disrupted, "reason": reason, "message": message},
        ],
        "containerStatuses": [{"name": "api", "state": {"terminated": ended}}],
    }
    (row,) = kubernetes.pods({"kind": "Pod", "status": status})
    assert (row.get("stopped_by") is None) == (cause is None)
    assert (cause or "") in (row.get("stopped_by") or "")


def test_a_word_with_a_colon_names_a_container_only_if_its_fields_follow(
    tmp_path: Path,
) -> None:
    ended = "  Last State: Terminated\n    Reason: OOMKilled\n    Exit Code: 137\n"
    for between, name in (("", "api"), ("\n", None)):
        (tmp_path / "pod.txt").write_text(f"api:\n{between}{ended}")
        states = gca.read(tmp_path / "pod.txt").container_states
        assert states["container"].to_list() == [name]


def test_the_kubelet_reports_kills_of_the_kernel() -> None:
    line = (
        "Warning  CgroupOOM  28s  kubelet  Cgroup OOM encountered, victim process: api, pid: 7"
    )
    kills = read_text(f"{line}\n").oom_kills
    assert kills.select("comm", "pid", "scope").row(0) == ("api", 7, "memcg")
    line = "kubelet[4991]: manager.go:1126] Created an OOM event in container"
    (death,) = read_text(f"api exited with code 137\n{line}\n").post_mortems()
    assert "Memory most likely ran out" in str(death)
