"""Random ends of containers, as Docker and Kubernetes print them, with a truth that is known.

The formats are those of moby (api/types, cli/command), kubectl (describe.go) and the kubelet
(eviction/helpers.go).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import yaml

from tests.helpers.written_kills import cycles

if TYPE_CHECKING:
    from random import Random

MIB = 1 << 20
START = datetime(2026, 3, 14, 8, 0, tzinfo=UTC)
GO = ("ledger", "billing-api", "gateway", "searcher")
HOST_MIB = 7963.4
"""What `docker stats` prints as the limit of a container without one."""

NOT_GO = ("postgres", "redis", "mysql", "nginx")


@dataclass(frozen=True)
class Container:
    """A container and its last end.

    Attributes:
        end: `oom` if the kernel killed its main process at the limit, `child` if another process
            of it, `kill` if somebody sent SIGKILL, `panic` if it ended with exit code 2, `done`
            if with 0, and `running` if it never ended.
        limit: in MiB; None if it has none.
        used: in MiB, of one that runs now.
        after_s: seconds from the start of the input to its last end.
        ran_s: seconds that it ran before.
        restarts: what its supervisor counts, the last one included.
        pod: the number of the pod that it is in.
        is_init: whether it is an init container.
        is_up: whether it runs again after its end.
    """

    name: str
    id: str
    end: str
    limit: int | None
    used: int
    after_s: float
    ran_s: float
    restarts: int
    pod: int = 0
    is_init: bool = False
    is_up: bool = False

    @property
    def code(self) -> int:
        return {"oom": 137, "kill": 137, "panic": 2, "done": 0, "running": 0, "child": 1}[
            self.end
        ]

    @property
    def at(self) -> datetime:
        return START + timedelta(seconds=self.after_s)

    @property
    def began(self) -> datetime:
        return self.at - timedelta(seconds=self.ran_s)


def containers(random: Random, ends: Sequence[str]) -> list[Container]:
    """Returns containers of different names, each with an end of its own."""
    count = random.choice([1, 1, 2, 3, 4])
    names = random.sample([*GO, *GO, *NOT_GO], 12)
    names = list(dict.fromkeys(names))[:count]
    found = []
    for name in names:
        end = random.choice(ends)
        limit = random.choice([None, 64, 100, 256, 512, 1000, 2048])
        if end == "oom" and random.random() < 0.8:
            limit = limit or 300
        found.append(
            Container(
                name,
                f"{random.getrandbits(256):064x}",
                end,
                limit,
                int((limit or 700) * random.uniform(0.1, 0.9)),
                round(random.uniform(4000, 40_000)),
                round(random.uniform(5, 3900)),
                random.choice([0, 0, 1, 7]),
            )
        )
    return found


def _zulu(at: datetime, digits: str = ".123456789") -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}{digits}Z"


# ---- Docker


def inspect(found: Sequence[Container]) -> str:
    """Returns what `docker inspect` prints; it never sets a time that there is not."""
    never = "0001-01-01T00:00:00Z"
    return json.dumps(
        [
            {
                "Id": it.id,
                "Created": _zulu(START - timedelta(days=1)),
                "Path": f"/usr/bin/{it.name}",
                "Args": [],
                "State": {
                    "Status": "running" if it.end == "running" else "exited",
                    "Running": it.end == "running",
                    "Paused": False,
                    "Restarting": False,
                    "OOMKilled": it.end in ("oom", "child"),
                    "Dead": False,
                    "Pid": 4711 if it.end == "running" else 0,
                    "ExitCode": it.code,
                    "Error": "",
                    "StartedAt": _zulu(it.began),
                    "FinishedAt": never if it.end == "running" else _zulu(it.at),
                },
                "Image": f"sha256:{it.id[::-1]}",
                "Name": f"/{it.name}",
                "RestartCount": it.restarts,
                "Driver": "overlay2",
                "HostConfig": {
                    "NetworkMode": "default",
                    "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
                    "CpuShares": 0,
                    "Memory": (it.limit or 0) * MIB,
                    "NanoCpus": 0,
                    "MemoryReservation": 0,
                    "MemorySwap": (it.limit or 0) * 2 * MIB,
                    "MemorySwappiness": None,
                    "OomKillDisable": None,
                },
                "Config": {
                    "Hostname": it.id[:12],
                    "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
                    "Cmd": [f"/usr/bin/{it.name}"],
                    "Image": f"registry.local/{it.name}:1.4",
                },
            }
            for it in found
        ],
        indent=4,
    )  # fmt: skip


def _event_times(found: Sequence[Container]) -> list[tuple[datetime, Container, str, str]]:
    rows = []
    for it in found:
        rows.append((it.began, it, "start", ""))
        if it.end == "running":
            continue
        if it.end in ("oom", "child"):
            rows.append((it.at - timedelta(milliseconds=90), it, "oom", ""))
        if it.end == "kill":
            rows.append((it.at - timedelta(milliseconds=90), it, "kill", "9"))
        rows.append((it.at, it, "die", ""))
    return sorted(rows, key=lambda row: row[0])


def _attributes(it: Container, event: str, signal: str) -> dict[str, str]:
    known = {"image": f"registry.local/{it.name}:1.4", "name": it.name}
    if event == "die":
        known = {"execDuration": f"{it.ran_s:.0f}", "exitCode": f"{it.code}", **known}
    return known | ({"signal": signal} if signal else {})


def events(found: Sequence[Container]) -> str:
    """Returns what `docker events` prints."""
    text = ""
    for at, it, event, signal in _event_times(found):
        attributes = _attributes(it, event, signal)
        listed = ", ".join(f"{key}={value}" for key, value in attributes.items())
        text += f"{at:%Y-%m-%dT%H:%M:%S.%f}789Z container {event} {it.id} ({listed})\n"
    return text


def events_json(found: Sequence[Container]) -> str:
    """Returns what `docker events --format json` prints."""
    text = ""
    for at, it, event, signal in _event_times(found):
        attributes = _attributes(it, event, signal)
        seconds = int(at.timestamp())
        value = {
            "status": event,
            "id": it.id,
            "from": attributes["image"],
            "Type": "container",
            "Action": event,
            "Actor": {"ID": it.id, "Attributes": attributes},
            "scope": "local",
            "time": seconds,
            "timeNano": seconds * 10**9 + at.microsecond * 1000,
        }
        text += json.dumps(value, separators=(",", ":")) + "\n"
    return text


def ps(found: Sequence[Container]) -> str:
    """Returns what `docker ps -a` prints."""
    rows = [("CONTAINER ID", "IMAGE", "COMMAND", "CREATED", "STATUS", "PORTS", "NAMES")]
    for it in found:
        status = "Up 3 hours" if it.end == "running" else f"Exited ({it.code}) 4 minutes ago"
        rows.append(
            (
                it.id[:12],
                f"registry.local/{it.name}:1.4",
                f'"/usr/bin/{it.name}"',
                "3 hours ago",
                status,
                "",
                it.name,
            )
        )
    return _columns(rows)


def stats(found: Sequence[Container]) -> str:
    """Returns what `docker stats --no-stream` prints of those that run."""
    rows = [
        ("CONTAINER ID", "NAME", "CPU %", "MEM USAGE / LIMIT", "MEM %", "NET I/O", "BLOCK I/O", "PIDS")
    ]  # fmt: skip
    for it in found:
        if it.end != "running":
            continue
        limit = it.limit or HOST_MIB
        size = f"{limit / 1024:.4g}GiB" if limit >= 1024 else f"{limit:.4g}MiB"
        used = f"{it.used / 1024:.4g}GiB" if it.used >= 1024 else f"{it.used:.4g}MiB"
        rows.append(
            (
                it.id[:12],
                it.name,
                "1.50%",
                f"{used} / {size}",
                f"{100 * it.used / limit:.2f}%",
                "1.2kB / 0B",
                "0B / 0B",
                "12",
            )
        )
    return _columns(rows)


def _columns(rows: Sequence[Sequence[str]], gap: int = 3) -> str:
    widths = [max(len(row[at]) for row in rows) + gap for at in range(len(rows[0]))]
    return "".join(
        "".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        + "\n"
        for row in rows
    )


# ---- Kubernetes

_REASONS = {"oom": "OOMKilled", "kill": "Error", "panic": "Error", "done": "Completed", "child": "OOMKilled"}  # fmt: skip


def pods(random: Random) -> list[Container]:
    """Returns the containers of one pod or of several."""
    ends = random.choice([("oom", "running"), ("oom", "kill", "panic", "done", "running")])
    found = containers(random, ends)
    count = random.choice([1, 1, len(found)])
    result = []
    for number, it in enumerate(found):
        one = replace(it, pod=number % count, is_up=it.end != "done" and random.random() < 0.6)
        one = replace(
            one,
            restarts=max(it.restarts, 1) if one.is_up and it.end != "running" else it.restarts,
        )
        if it.end in ("oom", "done", "panic") and random.random() < 0.2 and number >= count:
            one = replace(one, is_init=True, is_up=False)
        result.append(one)
    return result


def _terminated(it: Container) -> dict[str, object]:
    return {
        "containerID": f"containerd://{it.id}",
        "exitCode": it.code,
        "finishedAt": _zulu(it.at, ""),
        "reason": _REASONS[it.end],
        "startedAt": _zulu(it.began, ""),
    }


def _status(it: Container) -> dict[str, object]:
    state: dict[str, object]
    last: dict[str, object] = {}
    if it.end == "running":
        state = {"running": {"startedAt": _zulu(it.began, "")}}
    elif it.is_up:
        state = {"running": {"startedAt": _zulu(it.at + timedelta(seconds=2), "")}}
        last = {"terminated": _terminated(it)}
    elif it.restarts and not it.is_init and it.end != "done":
        state = {
            "waiting": {
                "message": f"back-off 5m0s restarting failed container={it.name} pod={pod_name(it)}_prod(0a1b2c3d)",
                "reason": "CrashLoopBackOff",
            }
        }
        last = {"terminated": _terminated(it)}
    else:
        state = {"terminated": _terminated(it)}
    return {
        "containerID": f"containerd://{it.id}",
        "image": f"registry.local/{it.name}:1.4",
        "imageID": f"registry.local/{it.name}@sha256:{it.id[::-1]}",
        "lastState": last,
        "name": it.name,
        "ready": "running" in state,
        "restartCount": it.restarts,
        "started": "running" in state,
        "state": state,
    }


def pod_name(it: Container) -> str:
    return f"shop-{it.pod}-6b9c8d7f5-x2x4z"


def _spec(it: Container) -> dict[str, object]:
    resources = (
        {"limits": {"memory": f"{it.limit}Mi"}, "requests": {"memory": "32Mi"}}
        if it.limit
        else {}
    )
    return {
        "image": f"registry.local/{it.name}:1.4",
        "imagePullPolicy": "IfNotPresent",
        "name": it.name,
        "resources": resources,
        "terminationMessagePath": "/dev/termination-log",
    }


def by_pod(found: Sequence[Container]) -> list[list[Container]]:
    numbers = sorted({it.pod for it in found})
    return [[it for it in found if it.pod == number] for number in numbers]


def _pod(found: Sequence[Container]) -> dict[str, Any]:
    own = [it for it in found if not it.is_init]
    init = [it for it in found if it.is_init]
    spec: dict[str, object] = {
        "containers": [_spec(it) for it in own],
        "nodeName": "node-3",
        "restartPolicy": "Always",
    }
    status: dict[str, object] = {
        "containerStatuses": [_status(it) for it in own],
        "phase": "Running",
        "qosClass": "Burstable",
        "startTime": _zulu(START, ""),
    }
    if init:
        spec["initContainers"] = [_spec(it) for it in init]
        status["initContainerStatuses"] = [_status(it) for it in init]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "creationTimestamp": _zulu(START, ""),
            "name": pod_name(found[0]),
            "namespace": "prod",
            "uid": f"0a1b2c3d-0000-4000-8000-00000000000{found[0].pod}",
        },
        "spec": spec,
        "status": status,
    }


def _list(found: Sequence[Container]) -> dict[str, Any]:
    every = [_pod(those) for those in by_pod(found)]
    if len(every) == 1:
        return every[0]
    return {
        "apiVersion": "v1",
        "items": every,
        "kind": "List",
        "metadata": {"resourceVersion": ""},
    }


def pod_json(found: Sequence[Container]) -> str:
    return json.dumps(_list(found), indent=4)


def pod_yaml(found: Sequence[Container]) -> str:
    return yaml.safe_dump(_list(found), default_flow_style=False)


def describe(found: Sequence[Container]) -> str:
    """Returns what `kubectl describe pods` prints."""
    return "\n\n".join(map(_described, by_pod(found)))


def _described(found: Sequence[Container]) -> str:
    own = [it for it in found if not it.is_init]
    init = [it for it in found if it.is_init]
    text = f"""\
Name:             {pod_name(found[0])}
Namespace:        prod
Priority:         0
Service Account:  default
Node:             node-3/10.0.0.3
Start Time:       {_rfc1123(START)}
Labels:           app=shop
Annotations:      <none>
Status:           Running
IP:               10.1.0.7
IPs:
  IP:           10.1.0.7
Controlled By:  ReplicaSet/shop-6b9c8d7f5
"""
    if init:
        text += "Init Containers:\n" + "".join(map(_described_container, init))
    text += "Containers:\n" + "".join(map(_described_container, own))
    return (
        text
        + """\
Conditions:
  Type                        Status
  PodReadyToStartContainers   True
  Initialized                 True
  Ready                       False
  ContainersReady             False
  PodScheduled                True
Volumes:
  kube-api-access-abcde:
    Type:                    Projected (a volume that contains injected data from multiple sources)
    TokenExpirationSeconds:  3607
QoS Class:                   Burstable
Node-Selectors:              <none>
Tolerations:                 node.kubernetes.io/not-ready:NoExecute op=Exists for 300s
                             node.kubernetes.io/unreachable:NoExecute op=Exists for 300s
Events:                      <none>
"""
    )


def _rfc1123(at: datetime) -> str:
    return f"{at:%a, %d %b %Y %H:%M:%S} +0000"


def _described_container(it: Container) -> str:
    status = _status(it)
    text = f"""\
  {it.name}:
    Container ID:   containerd://{it.id}
    Image:          registry.local/{it.name}:1.4
    Image ID:       registry.local/{it.name}@sha256:{it.id[::-1]}
    Port:           <none>
    Host Port:      <none>
"""
    for title, state in (("State", status["state"]), ("Last State", status["lastState"])):
        assert isinstance(state, dict)
        head = f"    {title + ':':<16}"
        if "running" in state:
            at = it.began if it.end == "running" else it.at + timedelta(seconds=2)
            text += f"{head}Running\n      Started:      {_rfc1123(at)}\n"
        elif "waiting" in state:
            text += f"{head}Waiting\n      Reason:       CrashLoopBackOff\n"
        elif "terminated" in state:
            text += (
                f"{head}Terminated\n      Reason:       {_REASONS[it.end]}\n"
                f"      Exit Code:    {it.code}\n      Started:      {_rfc1123(it.began)}\n"
                f"      Finished:     {_rfc1123(it.at)}\n"
            )
    text += f"    Ready:          {status['ready']}\n    Restart Count:  {it.restarts}\n"
    if it.limit:
        text += (
            f"    Limits:\n      memory:  {it.limit}Mi\n    Requests:\n      memory:     32Mi\n"
        )
    return (
        text
        + """\
    Environment:  <none>
    Mounts:
      /var/run/secrets/kubernetes.io/serviceaccount from kube-api-access-abcde (ro)
"""
    )


TOOLS: dict[str, Callable[[Sequence[Container]], str]] = {
    "docker inspect": inspect,
    "docker events": events,
    "docker events, JSON": events_json,
    "docker ps": ps,
    "docker stats": stats,
    "pod JSON": pod_json,
    "pod YAML": pod_yaml,
    "describe": describe,
}
OF_PODS = ("pod JSON", "pod YAML", "describe")
SHOWS_LIMIT = ("docker inspect", *OF_PODS)


def written(random: Random) -> tuple[str, list[Container], str]:
    """Returns the tool, the truth, and what the tool prints."""
    tool = random.choice([*TOOLS])
    if tool in OF_PODS:
        found = pods(random)
    elif tool == "docker stats":
        found = containers(random, ("running",))
    else:
        found = containers(
            random,
            random.choice(
                [("oom", "running"), ("oom", "kill", "child", "panic", "done", "running")]
            ),
        )
    return tool, found, TOOLS[tool](found)


# ---- gctrace of one of them


def traced(
    random: Random,
) -> tuple[str, list[Container], str, Container | None, str, str]:
    """Returns the tool, the truth, what the tool prints, and a log of one of the programs.

    It is followed by the form of the log, and the log. There is none if no program is Go.
    """
    tool, found, text = written(random)
    of_go = [it for it in found if it.name in GO]
    form = random.choice(OF_KUBECTL if tool in OF_PODS else OF_DOCKER)
    if not of_go:
        return tool, found, text, None, form, ""
    own = random.choice(of_go)
    return tool, found, text, own, form, log(random, own, form)


def log(random: Random, it: Container, form: str) -> str:
    """Returns gctrace of a container up to its last end, or until it was read."""
    lines = cycles(random, it.limit or 700, it.ran_s)
    write = LOGS[form]
    return "".join(
        write(it, it.began + timedelta(seconds=at_s), line) + "\n" for at_s, line in lines
    )


LOGS: dict[str, Callable[[Container, datetime, str], str]] = {
    "plain": lambda it, at, line: line,
    "timestamps": lambda it, at, line: f"{_zulu(at)} {line}",
    "compose": lambda it, at, line: f"{it.name}  | {line}",
    "compose, timestamps": lambda it, at, line: f"{it.name}  | {_zulu(at)} {line}",
    "kubectl --prefix": lambda it, at, line: f"[pod/{pod_name(it)}/{it.name}] {line}",
    "kubectl --prefix --timestamps": lambda it, at, line: (
        f"[pod/{pod_name(it)}/{it.name}] {_zulu(at)} {line}"
    ),
}
OF_DOCKER = ("plain", "timestamps", "compose", "compose, timestamps")
OF_KUBECTL = ("plain", "timestamps", "kubectl --prefix", "kubectl --prefix --timestamps")
