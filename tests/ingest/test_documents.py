"""JSON documents and Kubernetes descriptions read as their tools print them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gctrace_analyzer.ingest.evidence import docker
from gctrace_analyzer.ingest.evidence.message import Message
from gctrace_analyzer.ingest.evidence.systemd import read as read_systemd
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import KILL, records

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


@pytest.mark.parametrize(
    "document", [POD, {"kind": "List", "items": [POD]}, {"kind": "PodList", "items": [POD]}]
)
def test_a_pod_has_its_limits_and_settings(document: dict[str, Any]) -> None:
    row = read_text(json.dumps(document, indent=1)).container_states.row(0, named=True)
    assert (row["pod"], row["restart_count"], row["signal"]) == ("api-0", 3, "KILL")
    assert row["memory_limit_bytes"] == row["gomemlimit_bytes"] == 512 << 20
    assert (row["gogc"], row["cpu_limit"], row["oom_killed"]) == ("50", 1.5, True)


def test_kubernetes_events_are_messages() -> None:
    event = {
        "kind": "Event",
        "involvedObject": {"kind": "Node", "name": "n1"},
        "message": KILL.format(pid=7, comm="api", kb=1000),
        "lastTimestamp": "2026-02-03T10:00:00Z",
    }
    kills = read_text(json.dumps({"kind": "List", "items": [event]}, indent=1)).oom_kills
    assert kills.select("pid", "host").rows() == [(7, "n1")]


def test_kernel_messages_in_json_have_times_since_boot() -> None:
    entries = [{"pri": 3, "time": 12.5, "msg": KILL.format(pid=7, comm="api", kb=1000)}]
    kills = read_text(json.dumps({"dmesg": entries}, indent=1)).oom_kills
    assert kills.select("pid", "monotonic_s").rows() == [(7, 12.5)]


def test_a_payload_with_a_message_is_a_log_entry() -> None:
    entries = [{"jsonPayload": {"message": line}} for line in records(2)]
    assert len(read_text(json.dumps(entries, indent=1)).cycles) == 2


def test_a_docker_event_has_its_signal_and_time() -> None:
    event = {
        "Type": "container",
        "Action": "die",
        "Actor": {"ID": "a" * 64, "Attributes": {"exitCode": "137", "name": "api"}},
        "timeNano": 1770112800005000000,
    }
    row = docker.from_event(event)
    assert (row["event"], row["signal"], row["name"]) == ("die", "KILL", "api")
    assert f"{row['logged_at']:%Y-%m-%d %H:%M:%S.%f}" == "2026-02-03 10:00:00.005000"
    seconds = docker.from_event({**event, "timeNano": None, "time": 1770112800})
    assert f"{seconds['logged_at']:%H:%M:%S}" == "10:00:00"


def test_a_cpu_quota_is_a_limit() -> None:
    host = {"CpuQuota": 150_000, "CpuPeriod": 100_000}
    assert docker.inspected({"State": {}, "HostConfig": host})["cpu_limit"] == 1.5
    nano = {"NanoCpus": 2_000_000_000}
    assert docker.inspected({"State": {}, "HostConfig": nano})["cpu_limit"] == 2.0


def test_kills_by_systemd_oomd_have_their_reason() -> None:
    texts = [
        "Killed /system.slice/api.service due to memory pressure for /system.slice being "
        "72.50% > 60.00% for > 20s with reclaim activity",
        "Killed /system.slice/api.service due to memory used (900) / total (1000) and swap used",
    ]
    pressure, used = read_systemd([Message(n, t) for n, t in enumerate(texts, 1)])["oom_kills"]
    assert (pressure["unit"], pressure["pressure_pct"]) == ("api.service", 72.5)
    assert pressure["pressure_window_s"] == 20
    assert (used["reason"], used["usage_bytes"]) == ("memory_used", 900)
