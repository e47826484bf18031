"""Pods that Kubernetes ended for memory: evictions, and the status that kubectl lists."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from gctrace_analyzer import NoDataError, read
from gctrace_analyzer.testing import read_text
from gctrace_analyzer.units import MIB
from tests.helpers.logs import records

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gctrace_analyzer.run import Run

POD = "api-7d9f6c5b8-k8fzz"
LOW = "The node was low on resource: memory. "
USING = "Container api was using 1843200Ki, "
# Kubernetes 1.11 to 1.26, and later releases.
MESSAGES = (
    f"{LOW}{USING}which exceeds its request of 512Mi. ",
    f"{LOW}Threshold quantity: 100Mi, available: 92736Ki. Container sidecar was using 20Mi, "
    f"request is 0, has larger consumption of memory. {USING}request is 512Mi, has larger "
    "consumption of memory. ",
)
EVENTS = f"""\
LAST SEEN   TYPE      REASON    OBJECT        MESSAGE
3m12s       Warning   Evicted   pod/{POD}     {{}}
3m12s       Normal    Killing   pod/{POD}     Stopping container api
"""
DESCRIBED = f"""\
Name:           {POD}
Namespace:      prod
Status:         Failed
Reason:         Evicted
Message:        {{0}}
Containers:
  api:
    State:          Terminated
      Reason:       Error
      Exit Code:    137
      Started:      Mon, 23 Nov 2026 10:00:14 +0000
      Finished:     Mon, 23 Nov 2026 13:12:40 +0000
    Restart Count:  0
    Limits:
      memory:  4Gi
Events:
  Type     Reason   Age    From     Message
  ----     ------   ----   ----     -------
  Warning  Evicted  3m12s  kubelet  {{0}}
"""


def pod(message: str) -> str:
    return json.dumps(
        {
            "kind": "Pod",
            "metadata": {"name": POD, "namespace": "prod"},
            "spec": {"nodeName": "n1", "containers": [{"name": "api"}]},
            "status": {"phase": "Failed", "reason": "Evicted", "message": message},
        }
    )


def event(message: str) -> str:
    about = {"kind": "Pod", "name": POD, "namespace": "prod"}
    at = {"lastTimestamp": "2026-11-23T13:12:30Z"}
    return json.dumps({"kind": "Event", "involvedObject": about, "message": message, **at})


WRITERS: dict[str, Callable[[str], str]] = {
    "kubectl get events": EVENTS.format,
    "kubectl describe pod": DESCRIBED.format,
    "kubectl get pod -o json": pod,
    "kubectl get events -o json": event,
    "kubectl get pod -o json, indented": lambda text: json.dumps(
        json.loads(pod(text)), indent=4
    ),
}


def the_eviction(run: Run) -> None:
    (kill,) = run.oom_kills.to_dicts()
    assert (kill["killer"], kill["scope"]) == ("kubelet", "global")
    assert (kill["pod"], kill["container"]) == (POD, "api")
    assert kill["anon_rss_bytes"] == 1800 * MIB
    assert kill["memory_request_bytes"] == 512 * MIB
    (death,) = run.post_mortems()
    assert (death.kind, death.victim, death.resident_mib) == ("Eviction", "api", 1800)
    assert death.cause == "by the kubelet, which counted too little memory left on its node"
    assert "The container used 1,800 MiB and requests 512 MiB" in death.reading[0]


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("writer", WRITERS)
def test_an_eviction_for_memory_is_one_death_of_the_largest_container(
    writer: str, message: str
) -> None:
    the_eviction(read_text(WRITERS[writer](message)))


@pytest.mark.parametrize(
    ("text", "container", "used_kib", "request_gib"),
    [
        # As YAML folds it, and as `yq` prints it
        ("  message: 'The node was low on resource: memory. Container node was using 35505620Ki,\n"
         "    which exceeds its request of 12Gi. '\n  phase: Failed\n", "node", 35505620, 12),
        ("The node was low on resource: memory. Threshold quantity: 100Mi, available: 87608Ki. \n"
         "Container manager was using 48458972Ki, request is 15Gi, has larger consumption of "
         "memory. \n", "manager", 48458972, 15),
        ("    The node was low on resource: memory. Container mgmt was using\n"
         "    27484Ki, which exceeds its request of 0. Container pool was using\n"
         "    51480Ki, which exceeds its request of 0. \n", "pool", 51480, 0),
    ],
)  # fmt: skip
def test_the_message_of_an_eviction_may_be_wrapped(
    text: str, container: str, used_kib: int, request_gib: int
) -> None:
    (kill,) = read_text(text).oom_kills.to_dicts()
    assert (kill["container"], kill["anon_rss_bytes"]) == (container, used_kib * 1024)
    assert kill["memory_request_bytes"] == request_gib << 30


def test_an_eviction_that_several_files_report_is_one_death(tmp_path: Path) -> None:
    for name, write in WRITERS.items():
        (tmp_path / name).write_text(write(MESSAGES[1]))
    deaths = read(*(str(tmp_path / name) for name in WRITERS)).post_mortems()
    (death,) = deaths
    assert death.logged_at == datetime(2026, 11, 23, 13, 12, 30, tzinfo=UTC)


def test_an_eviction_has_the_time_at_which_its_container_finished() -> None:
    (death,) = read_text(DESCRIBED.format(MESSAGES[0])).post_mortems()
    assert death.logged_at == datetime(2026, 11, 23, 13, 12, 40, tzinfo=UTC)


def test_an_eviction_among_records_is_found() -> None:
    lines = "".join(f"{line}\n" for line in records(200))
    run = read_text(lines + EVENTS.format(MESSAGES[1]))
    assert run.cycles.height == 200
    assert run.oom_kills["pod"].to_list() == [POD]


def test_several_evictions_of_a_program_are_counted_behind_the_verb() -> None:
    lines = (f"4m  Warning  Evicted  pod/api-{n}  {LOW}{USING}request is 0. \n" for n in (1, 2))
    headline = " ".join(str(read_text("".join(lines)).summary()).split())
    assert (
        "was evicted 2 times by the kubelet, which counted too little memory left on its node"
        in headline
    )


def test_a_container_without_a_request_is_evicted_first() -> None:
    text = f"{LOW}{USING}request is 0, has larger consumption of memory. "
    (death,) = read_text(EVENTS.format(text)).post_mortems()
    assert death.reading[0].startswith(
        "The container used 1,800 MiB and requests 0 MiB; pods that use"
    )


@pytest.mark.parametrize("low", [LOW, LOW.strip()])
def test_an_eviction_whose_message_names_no_container_is_a_death_of_the_pod(low: str) -> None:
    (death,) = read_text(EVENTS.format(low)).post_mortems()
    assert (death.kind, death.victim, death.resident_mib) == ("Eviction", POD, None)


@pytest.mark.parametrize(
    "message",
    [
        "The node was low on resource: ephemeral-storage. Container api was using 108Ki, "
        "request is 0, has larger consumption of ephemeral-storage. ",
        "The node had condition: [MemoryPressure]. ",
    ],
)
def test_an_eviction_for_something_else_is_no_kill_for_memory(message: str) -> None:
    run = read_text("".join(f"{line}\n" for line in records(3)) + EVENTS.format(message))
    assert run.oom_kills.is_empty()


KUBELET = (
    'I1123 13:12:30.2 1234 eviction_manager.go:380] "Eviction manager: must evict pod(s) to '
    'reclaim" resourceName="{}"\n'
    'I1123 13:12:40.4 1234 eviction_manager.go:627] "Eviction manager: pod is evicted '
    f'successfully" pod="prod/{POD}"\n'
)
OLD_KUBELET = (
    "W1123 13:12:30.2 1234 eviction_manager.go:330] eviction manager: must evict pod(s) to "
    "reclaim {}\n"
    f"I1123 13:12:40.4 1234 eviction_manager.go:563] eviction manager: pod {POD}_prod"
    "(0b1c-2d) is evicted successfully\n"
)


@pytest.mark.parametrize("log", [KUBELET, OLD_KUBELET])
def test_the_log_of_the_kubelet_names_the_pod_that_it_evicted(log: str) -> None:
    text = io.BytesIO(log.format("memory").encode())
    (kill,) = read(text, year=2026, tz="UTC").oom_kills.to_dicts()
    assert (kill["pod"], kill["namespace"]) == (POD, "prod")
    assert kill["logged_at"] == datetime(2026, 11, 23, 13, 12, 40, 400_000, UTC)
    other = read_text("".join(f"{line}\n" for line in records(3)) + log.format("nodefs"))
    assert other.oom_kills.is_empty()


PODS = f"""\
NAME        READY   STATUS             RESTARTS        AGE
api-0       1/1     Running            0               12d
{POD}       0/1     OOMKilled          5 (2m13s ago)   3h12m
cache-0     0/1     CrashLoopBackOff   12              45m
worker-0    0/1     Evicted            0               5h
"""
WIDE = f"""\
NAMESPACE NAME   READY STATUS         RESTARTS      AGE   IP         NODE   NOMINATED NODE
prod      api-0  1/1   Running        0             12d   10.0.0.12  n-1    <none>
prod      {POD}  0/2   Init:OOMKilled 5 (2m13s ago) 3h12m 10.0.0.13  n-1    <none>
"""


def test_a_listed_pod_that_was_killed_for_memory_is_a_death() -> None:
    run = read_text(PODS)
    states = {row["pod"]: row for row in run.container_states.to_dicts()}
    assert states[POD]["restart_count"] == 5
    assert states["cache-0"]["reason"] == "CrashLoopBackOff"
    (death,) = run.post_mortems()
    assert (death.kind, death.victim) == ("Container OOMKilled", POD)
    (state,) = read_text(WIDE).container_states.to_dicts()
    assert (state["namespace"], state["pod"], state["node"]) == ("prod", POD, "n-1")


def test_a_listed_pod_is_the_one_that_the_kernel_killed() -> None:
    kill = "Memory cgroup out of memory: Killed process 7 (api) total-vm:9kB, anon-rss:8kB, "
    kernel = f"kernel: {kill}file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0\n"
    (death,) = read_text(kernel + PODS).post_mortems()
    assert death.kind == "OOM kill"


def test_a_pod_that_is_listed_and_described_died_once(tmp_path: Path) -> None:
    described = DESCRIBED.format("none").replace("Reason:       Error", "Reason: OOMKilled")
    (tmp_path / "pods.txt").write_text(PODS)
    (tmp_path / "pod.txt").write_text(described)
    (death,) = read(str(tmp_path / "pods.txt"), str(tmp_path / "pod.txt")).post_mortems()
    assert death.limit_mib == 4096


@pytest.mark.parametrize(
    "table",
    [
        f"NAME   REASON   EXIT\napi-0   <none>   <none>\n{POD}   OOMKilled   137\n",
        f"{POD}\tapi\tOOMKilled\n",
        f"{PODS}{PODS}",
    ],
    ids=["custom-columns", "jsonpath", "listed twice"],
)
def test_a_column_of_reasons_names_the_pod_that_was_killed(table: str) -> None:
    (death,) = read_text(table).post_mortems()
    assert (death.victim, death.proven) == (POD, True)


def test_a_pod_in_two_lists_died_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(PODS)
    assert len(read(str(tmp_path / "a"), str(tmp_path / "b")).post_mortems()) == 1


CRICTL = {
    "status": {
        "id": "9f86d081884c7d65",
        "metadata": {"attempt": 3, "name": "api"},
        "state": "CONTAINER_EXITED",
        "startedAt": "2026-01-23T17:57:38.2Z",
        "finishedAt": "2026-01-23T18:57:38Z",
        "exitCode": 137,
        "reason": "OOMKilled",
        "labels": {"io.kubernetes.pod.name": POD, "io.kubernetes.pod.namespace": "prod"},
        "resources": {
            "linux": {
                "memoryLimitInBytes": "536870912",
                "cpuQuota": "150000",
                "cpuPeriod": "100000",
            }
        },
    },
    "info": {"pid": 0},
}


@pytest.mark.parametrize("indent", [None, 2])
def test_what_crictl_inspects_is_a_container(indent: int | None) -> None:
    run = read_text(json.dumps(CRICTL, indent=indent))
    (state,) = run.container_states.to_dicts()
    assert (state["pod"], state["namespace"], state["container"]) == (POD, "prod", "api")
    assert (state["memory_limit_bytes"], state["cpu_limit"]) == (512 * MIB, 1.5)
    assert (state["status"], state["restart_count"]) == ("exited", 3)
    (death,) = run.post_mortems()
    assert death.logged_at == datetime(2026, 1, 23, 18, 57, 38, tzinfo=UTC)
    assert (death.proven, death.limit_mib) == (True, 512)


@pytest.mark.parametrize(
    "status", [{"state": "CONTAINER_RUNNING"}, {"state": "CONTAINER_X", "resources": None}]
)
def test_a_container_without_an_end_is_no_death(status: dict[str, object]) -> None:
    run = read_text(json.dumps({"status": status}))
    assert len(run.container_states) == 1
    assert not run.post_mortems()


@pytest.mark.parametrize(
    "text",
    [
        "High - Pod import-29113-qz7kd in namespace batch OOMKilled results\n"
        " field | value\n"
        " Container name        | api\n"
        " Container memory      | 256MB request, 512MB limit\n",
        "container api was OOMKilled with exit code 137, memory limit: 512Mi\n",
    ],
)
def test_words_about_a_container_give_its_limit(text: str) -> None:
    (death,) = read_text(text).post_mortems()
    assert (death.victim, death.limit_mib) == ("api", 512)


def test_fields_before_the_reason_are_of_the_same_state() -> None:
    fields = 'ExitCode:137,\nFinishedAt:"2026-06-04T03:11:52Z",\nOOMKilled:true,\nPid:0,\n'
    (state,) = read_text(fields).container_states.to_dicts()
    assert (state["exit_code"], state["finished_at"].minute) == (137, 11)
    (state,) = read_text(fields.replace("137,", "1")).container_states.to_dicts()
    assert state["exit_code"] is None


SAMPLE = (
    'kube_pod_container_status_last_terminated_reason{{container="api",reason="OOMKilled"}} {}'
)


@pytest.mark.parametrize(
    "text",
    [
        SAMPLE.format(0),
        "The container may be OOMKilled, and is OOMKilled when it exceeds its limit.",
        "`kubectl describe pod` of a container that is OOMKilled repeatedly",
        "containers whose memory grows will be terminated with OOMKilled",
        'description: "Init container which reason is OOMKilled should return true",',
        "// 3. container gets OOMKilled.",
        'gomega.Expect(state.Terminated.Reason).To(gomega.Equal("OOMKilled"),',
        'Reason:   "OOMKilled",',
        'ginkgo.Entry("Ignore exit code 137", &batchv1.PodFailurePolicy{',
        "decoder.Decode(&x) // fatal error: runtime: out of memory",
        "When a container exits with exit code 137, the OOM killer killed it",
    ],
)
def test_documentation_and_source_code_are_no_kill(text: str) -> None:
    with pytest.raises(NoDataError):
        read_text(f"{text}\n")


@pytest.mark.parametrize(
    "text",
    [
        SAMPLE.format(1),
        "Pod api-1 was OOMKilled when it reached 512Mi",
        "pod api-1 could not start: container api was OOMKilled",
        'reason: Some("OOMKilled"),',
    ],
)
def test_a_report_with_the_words_of_documentation_is_a_kill(text: str) -> None:
    assert len(read_text(f"{text}\n").post_mortems()) == 1


@pytest.mark.parametrize("text", ["my pods are OOMKilled daily\n", "thanos gets OOM-killed\n"])
def test_words_about_kills_in_general_are_no_kill(text: str) -> None:
    with pytest.raises(NoDataError, match="words about an OOM kill") as error:
        read_text(text)
    assert "memory limit" in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "systemd-oomd[666]: Failed to kill any cgroups based on swap: Invalid argument\n",
            "systemd-oomd tried to kill and killed nothing.",
        ),
        (
            "I lowmemorykiller: Kill 'com.example.app' (18211), uid 10234, oom_score_adj 905 to "
            "free 312344kB rss, 40212kB swap; reason: low watermark is breached and swap is low\n",
            "Android's lmkd killed a process for lack of memory.",
        ),
        (
            "POD    CONTAINER  REQUEST  LIMIT  TERMINATION TIME\n"
            "ttl-1  ttl        128Mi    768Mi  2026-03-05 08:08:33 +0100 CET\n",
            "ended with exit code 137, which alone proves no OOM kill",
        ),
    ],
)
def test_what_a_killer_says_is_repeated_even_if_it_is_not_read(text: str, said: str) -> None:
    with pytest.raises(NoDataError, match="words about an OOM kill") as error:
        read_text(text)
    assert said in str(error.value)


def test_a_running_pod_that_was_restarted_says_how_often() -> None:
    text = "NAME  READY  STATUS  RESTARTS  AGE\nx-1  1/1  Running  5 (10m ago)  5h\ny-1  1/1  Running  0  5h\n"
    assert "Containers of the pod x-1 were restarted 5 times within 5h 00m" in " ".join(
        str(read_text(text).summary()).split()
    )
