"""Deaths as tools print them, with a truth that is known because they are written here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20
AT = "2026-03-14T09:21:07"


@dataclass(frozen=True)
class Truth:
    """What happened.

    Attributes:
        limit: memory limit in MiB; None if there is none.
        used: the most that was used, in MiB, as far as the tool prints it.
        name: the name of the container or process.
        code: the exit code, as far as the tool prints it.
        proven: whether the tool says that memory was the reason.
    """

    limit: int | None = 512
    used: int = 512
    name: str = "ledger"
    code: int = 137
    proven: bool = True


def docker_inspect(it: Truth) -> str:
    return json.dumps(
        [
            {
                "Id": "3f2a9c1b7d5e" + "0" * 52,
                "State": {
                    "Status": "exited",
                    "Running": False,
                    "OOMKilled": it.proven,
                    "ExitCode": it.code,
                    "Error": "",
                    "StartedAt": "2026-03-14T08:00:00.1Z",
                    "FinishedAt": f"{AT}.5Z",
                },
                "Name": f"/{it.name}",
                "RestartCount": 0,
                "HostConfig": {"Memory": (it.limit or 0) * MIB},
                "Config": {"Image": f"registry.local/{it.name}:1.4", "Cmd": [f"/{it.name}"]},
            }
        ],
        indent=4,
    )


def template(it: Truth) -> str:
    what = "{{.State.OOMKilled}} {{.State.ExitCode}} {{.HostConfig.Memory}}"
    return (
        f"$ docker inspect {it.name} --format '{what}'\n"
        f"{str(it.proven).lower()} {it.code} {(it.limit or 0) * MIB}\n"
    )


def describe(it: Truth) -> str:
    limits = f"    Limits:\n      memory:  {it.limit}Mi\n    Requests:\n      memory:  {it.limit}Mi\n"
    return f"""\
Name:             {it.name}-6b9c8d7f5-x2x4z
Namespace:        prod
Node:             node-3/10.0.0.3
Status:           Running
Containers:
  {it.name}:
    Container ID:   containerd://3f2a9c1b7d5e{"0" * 52}
    Image:          registry.local/{it.name}:1.4
    State:          Running
      Started:      Sat, 14 Mar 2026 09:21:09 +0000
    Last State:     Terminated
      Reason:       {"OOMKilled" if it.proven else "Error"}
      Exit Code:    {it.code}
      Started:      Sat, 14 Mar 2026 08:00:00 +0000
      Finished:     Sat, 14 Mar 2026 09:21:07 +0000
    Ready:          True
    Restart Count:  1
{limits if it.limit else ""}    Environment:    <none>
QoS Class:                   {"Guaranteed" if it.limit else "BestEffort"}
Events:                      <none>
"""


def pod(it: Truth) -> dict[str, object]:
    limit = {"limits": {"memory": f"{it.limit}Mi"}} if it.limit else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{it.name}-6b9c8d7f5-x2x4z", "namespace": "prod"},
        "spec": {
            "containers": [
                {
                    "name": it.name,
                    "image": f"registry.local/{it.name}:1.4",
                    "resources": limit,
                }
            ],
            "nodeName": "node-3",
        },
        "status": {
            "qosClass": "Burstable" if it.limit else "BestEffort",
            "containerStatuses": [
                {
                    "name": it.name,
                    "restartCount": 1,
                    "state": {"running": {"startedAt": "2026-03-14T09:21:09Z"}},
                    "lastState": {
                        "terminated": {
                            "exitCode": it.code,
                            "reason": "OOMKilled" if it.proven else "Error",
                            "startedAt": "2026-03-14T08:00:00Z",
                            "finishedAt": f"{AT}Z",
                        }
                    },
                }
            ],
        },
    }


def pod_json(it: Truth) -> str:
    return json.dumps(pod(it), indent=4)


def systemctl_show(it: Truth) -> str:
    limit = it.limit * MIB if it.limit else "infinity"
    return f"""\
$ systemctl show {it.name} -p Result,ExecMainStatus,ExecMainCode,MemoryMax,MemoryPeak,NRestarts,ActiveState
Result={"oom-kill" if it.proven else "signal"}
ExecMainCode=2
ExecMainStatus=9
MemoryMax={limit}
MemoryPeak={it.used * MIB}
NRestarts=0
ActiveState=failed
"""


def systemctl_status(it: Truth) -> str:
    limit = f" (max: {it.limit}.0M available: 0B peak: {it.used}.0M)" if it.limit else ""
    peak = "" if it.limit else f"\n     Memory: 4.0M (peak: {it.used}.0M)"
    return f"""\
× {it.name}.service - The {it.name} service
     Loaded: loaded (/etc/systemd/system/{it.name}.service; enabled)
     Active: failed (Result: {"oom-kill" if it.proven else "signal"}) since Sat 2026-03-14 09:21:07 UTC; 3min ago
    Process: 4711 ExecStart=/usr/bin/{it.name} (code=killed, signal=KILL)
   Main PID: 4711 (code=killed, signal=KILL){peak}{f"{chr(10)}     Memory: 4.0M{limit}" if limit else ""}
        CPU: 3min 12.5s

Mar 14 09:21:07 web1 systemd[1]: {it.name}.service: A process of this unit has been killed by the OOM killer.
Mar 14 09:21:07 web1 systemd[1]: {it.name}.service: Main process exited, code=killed, status=9/KILL
Mar 14 09:21:07 web1 systemd[1]: {it.name}.service: Failed with result 'oom-kill'.
"""


def kernel_group(it: Truth) -> str:
    """Cgroup v2 on Linux 6.1; only for limits."""
    limit, used = (it.limit or 512) * 1024, it.used * 1024
    group = f"/system.slice/{it.name}.service"
    head = "Mar 14 09:21:07 web1 kernel: "
    lines = f"""\
{it.name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
memory: usage {limit}kB, limit {limit}kB, failcnt 812
swap: usage 0kB, limit 0kB, failcnt 0
Memory cgroup stats for {group}:
anon {used * 1024}
file 0
kernel {(limit - used) * 1024}
shmem 0
Tasks state (memory values in pages):
[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
[   4711]   998  4711   400000   {used // 4}  2310144        0             0 {it.name}
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg={group},task_memcg={group},task={it.name},pid=4711,uid=998
Memory cgroup out of memory: Killed process 4711 ({it.name}) total-vm:1600000kB, anon-rss:{used}kB, file-rss:0kB, shmem-rss:0kB, UID:998 pgtables:2256kB oom_score_adj:0
"""
    return "".join(f"{head}{line}\n" for line in lines.splitlines())


def kernel_host(it: Truth) -> str:
    """The host ran out of memory; another process may be the largest."""
    used = it.used * 1024
    head = "2026-03-14T09:21:07.120000+00:00 web1 kernel: "
    lines = f"""\
sshd invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0
524288 pages RAM
0 pages HighMem/MovableOnly
Tasks state (memory values in pages):
[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
[   4711]   998  4711   400000   {used // 4}  2310144        0             0 {it.name}
[   5120]     0  5120   900000   300000  2310144        0             0 postgres
oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/system.slice/{it.name}.service,task={it.name},pid=4711,uid=998
Out of memory: Killed process 4711 ({it.name}) total-vm:1600000kB, anon-rss:{used}kB, file-rss:0kB, shmem-rss:0kB, UID:998 pgtables:2256kB oom_score_adj:0
"""
    return "".join(f"{head}{line}\n" for line in lines.splitlines())


def cgroup_files(it: Truth) -> str:
    folder = f"/sys/fs/cgroup/system.slice/{it.name}.service"
    limit = it.limit * MIB if it.limit else "max"
    return f"""\
$ cd {folder}; cat memory.max memory.peak memory.events
{limit}
{it.used * MIB}
low 0
high 0
max 12
oom 1
oom_kill 1
oom_group_kill 0
"""


def ecs(it: Truth) -> str:
    own = {"memory": str(it.limit)} if it.limit else {}
    reason = "OutOfMemoryError: Container killed due to memory usage"
    return json.dumps(
        {
            "tasks": [
                {
                    "taskArn": "arn:aws:ecs:eu-west-1:123456789012:task/prod/0f1e2d3c4b5a",
                    "lastStatus": "STOPPED",
                    "launchType": "EC2",
                    "stopCode": "EssentialContainerExited",
                    "stoppedReason": "Essential container in task exited",
                    "stoppedAt": f"{AT}.918000+00:00",
                    "containers": [
                        {
                            "name": it.name,
                            "lastStatus": "STOPPED",
                            "exitCode": it.code,
                            **({"reason": reason} if it.proven else {}),
                            **own,
                        }
                    ],
                }
            ],
            "failures": [],
        },
        indent=4,
    )


def sacct(it: Truth) -> str:
    state = "OUT_OF_ME+" if it.proven else "FAILED"
    return f"""\
$ sacct -j 8812 --format=JobID,JobName,State,ExitCode,ReqMem,MaxRSS,Elapsed
JobID           JobName      State ExitCode     ReqMem     MaxRSS    Elapsed
------------ ---------- ---------- -------- ---------- ---------- ----------
8812         {it.name:>10} {state:>10}    0:125 {f"{it.limit}M" if it.limit else "":>10}              00:41:12
8812.batch        batch {state:>10}    0:125            {f"{it.used * 1024}K":>10}   00:41:12
8812.extern      extern  COMPLETED      0:0                  128K   00:41:13
"""


def lambda_report(it: Truth) -> str:
    return (
        f"{AT}.418Z\tREPORT RequestId: fa4e6a1f-083b-573d-ace2-090d2b00a3ac\tDuration: 6954.19 ms\t"
        f"Billed Duration: 6955 ms\tMemory Size: {it.limit} MB\tMax Memory Used: {it.used} MB\t"
        "Status: error\tError Type: Runtime.OutOfMemory\n"
    )


def nomad(it: Truth) -> str:
    return f"""\
ID                  = 0f3c11aa-9b1d-4c1e-8f0a-5c1d2e3f4a5b
Name                = {it.name}.web[0]
Node Name           = nomad-client-3
Client Status       = failed

Task "{it.name}" is "dead"
Task Resources:
CPU         Memory          Disk     Addresses
12/500 MHz  31 MiB/{it.limit} MiB  300 MiB

Recent Events:
Time                  Type        Description
{AT}Z  Terminated  Exit Code: {it.code}, Exit Message: "OOM Killed"
2026-03-14T08:00:00Z  Started     Task started by client
"""


def oomkilling(it: Truth) -> str:
    return json.dumps(
        {
            "kind": "Event",
            "apiVersion": "v1",
            "involvedObject": {"kind": "Node", "name": "node-3"},
            "reason": "OOMKilling",
            "message": f"Memory cgroup out of memory: Killed process 4711 ({it.name}) "
            f"total-vm:1600000kB, anon-rss:{it.used * 1024}kB, file-rss:0kB, shmem-rss:0kB, "
            "UID:998 pgtables:2256kB oom_score_adj:0",
            "lastTimestamp": f"{AT}Z",
        },
        indent=4,
    )


ALWAYS_LIMITED = ("kernel_group", "lambda_report", "nomad", "oomkilling")
"""Tools that report only kills at a limit."""

SHOWS_USED = (
    "systemctl_show", "systemctl_status", "cgroup_files", "kernel_group", "kernel_host",
    "lambda_report", "sacct", "oomkilling",
)  # fmt: skip
"""Tools that print what was used."""

SHOWS_CODE = ("docker_inspect", "template", "describe", "pod_json", "ecs")
SHOWS_UNIT = ("systemctl_show", "systemctl_status", "cgroup_files")

TOOLS: dict[str, Callable[[Truth], str]] = {
    tool.__name__: tool
    for tool in (
        docker_inspect, template, describe, pod_json, systemctl_show, systemctl_status,
        kernel_group, kernel_host, cgroup_files, ecs, sacct, lambda_report, nomad, oomkilling,
    )
}  # fmt: skip
