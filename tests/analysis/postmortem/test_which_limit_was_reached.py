"""Who had the memory, and which limit was reached: what follows for the advice after a death."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gctrace_analyzer.testing import read_text

SHOW = "$ systemctl show api -p Result,MemoryMax,MemoryPeak\nResult={}\nMemoryMax={}\nMemoryPeak={}\n"
STATUS = (
    "× api.service - API\n"
    "     Active: failed (Result: oom-kill) since Sat 2026-03-14 10:11:12 UTC; 3min ago\n"
    "     Memory: {} (max: 1.0G available: 1.0G peak: 300.2M)\n"
)
DESCRIBED = """Name:             importer-5d6f
Containers:
  importer:
    State:          Running
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
    Restart Count:  1
{}QoS Class:                   {}
"""


def pod(own: dict[str, Any], **of_pod: Any) -> str:
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    status = {
        "name": "importer",
        "restartCount": 1,
        "state": {"running": {}},
        "lastState": ended,
    }
    spec = {"containers": [{"name": "importer", "resources": own}], **of_pod}
    about = {"kind": "Pod", "metadata": {"name": "importer-x"}, "spec": spec}
    return json.dumps(about | {"status": {"containerStatuses": [status]}})


def inspected(memory: int) -> str:
    state = {"Status": "exited", "OOMKilled": True, "ExitCode": 137}
    return json.dumps([{"Name": "/api", "State": state, "HostConfig": {"Memory": memory}}])


CRICTL = json.dumps(
    {
        "status": {
            "metadata": {"name": "api"},
            "state": "CONTAINER_EXITED",
            "exitCode": 137,
            "reason": "OOMKilled",
            "resources": {"linux": {"memoryLimitInBytes": "0"}},
        }
    }
)
REQUESTS = "    Requests:\n      memory:  64Mi\n"
LIMITS = "    Limits:\n      memory:  512Mi\n"


@pytest.mark.parametrize(
    "text",
    [
        DESCRIBED.format("", "BestEffort"),
        DESCRIBED.format(REQUESTS, "Burstable"),
        pod({}),
        pod({"requests": {"memory": "64Mi"}}),
        inspected(0),
        CRICTL,
        SHOW.format("oom-kill", "infinity", 10**9),
    ],
)
def test_without_a_limit_the_host_ran_out(text: str) -> None:
    (death,) = read_text(text).post_mortems()
    assert death.reading[0].startswith("It has no memory limit: its host ran out of memory")
    assert not any("aise" in advice or "memory limit" in advice for advice in death.advice)


@pytest.mark.parametrize(
    "text",
    [
        DESCRIBED.format("", "Burstable"),
        pod({}, resources={"limits": {"memory": "1Gi"}}),
        pod({"limits": {"memory": "512Mi"}}),
        DESCRIBED.format(LIMITS, "Burstable"),
        inspected(512 << 20),
    ],
)
def test_a_limit_that_may_be_there_may_have_been_reached(text: str) -> None:
    (death,) = read_text(text).post_mortems()
    assert "its host was short of memory" in death.reading[0]


@pytest.mark.parametrize(
    "text",
    [SHOW.format("oom-kill", 512 << 20, 288 << 20), STATUS.format("0B"), STATUS.format("980B")],
)
def test_a_limit_above_the_peak_was_not_reached(text: str) -> None:
    (death,) = read_text(text).post_mortems()
    assert "at most and so never reached its limit" in death.reading[0]
    assert not any("GOMEMLIMIT" in advice for advice in death.advice)


def test_a_unit_that_got_sigkill_says_so_and_its_peak() -> None:
    text = SHOW.format("signal", 512 << 20, 288 << 20) + "ExecMainCode=2\nExecMainStatus=9\n"
    (death,) = read_text(text).post_mortems()
    assert (death.proven, death.victim) == (False, "api.service")
    assert "It used 288 MiB at most; its limit is 512 MiB." in death.reading[0]


KILL = (
    "[99.1] memory: usage 1048576kB, limit 1048576kB, failcnt 2\n"
    "[99.2] Memory cgroup stats for /system.slice/api.service:\n{stats}"
    "{tasks}"
    "[99.5] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,oom_memcg=/system.slice/"
    "api.service,task_memcg=/system.slice/api.service,task=api,pid=7,uid=0\n"
    "[99.6] Memory cgroup out of memory: Killed process 7 (api) total-vm:1263412kB, "
    "anon-rss:{anon}kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1200kB oom_score_adj:995\n"
)
HEAD = "[99.3] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n"
TASK = "[99.4] [{0:7}]     0 {0:5}   315853 {1:8}  1228800        0           995 {2}\n"


@pytest.mark.parametrize(
    ("anon", "stats", "setting"),
    [
        (990_000, "", "=921MiB (90 % of the limit)"),
        (600_000, "", "=527MiB (90 % of what it had)"),
        (
            540_000,
            "[99.2] anon 614400000\n[99.2] file 400000000\n[99.2] shmem 400000000\n",
            "=474MiB (90 % of what it had)",
        ),
        (
            660_000,
            "[99.2] anon 675840000\n[99.2] file 400000000\n[99.2] shmem 400000000\n",
            "=540MiB (90 % of the limit less the 381 MiB of files in memory)",
        ),
    ],
)
def test_a_memory_limit_lies_below_what_go_had(anon: int, stats: str, setting: str) -> None:
    (death,) = read_text(KILL.format(anon=anon, stats=stats, tasks="")).post_mortems()
    assert f"set GOMEMLIMIT{setting}" in death.advice[0]


def test_the_process_with_most_memory_is_named_and_not_asked_for() -> None:
    tasks = HEAD + TASK.format(7, 20_000, "api") + TASK.format(8, 220_000, "ffmpeg")
    (death,) = read_text(KILL.format(anon=80_000, stats="", tasks=tasks)).post_mortems()
    assert death.advice == (
        "Limit the memory of ffmpeg (859 MiB), or raise the limit of 1,024 MiB: no GC setting of "
        "api makes up for it.",
    )


def test_a_child_that_was_killed_gets_its_own_room() -> None:
    state = {"Status": "exited", "OOMKilled": True, "ExitCode": 2}
    text = json.dumps([{"Name": "/api", "State": state, "HostConfig": {"Memory": 512 << 20}}])
    (death,) = read_text(text).post_mortems()
    assert "code of a panic, a fatal error or a wrong flag" in death.reading[0]
    (advice,) = death.advice
    assert "which process was killed" in advice


def test_the_name_of_a_container_is_no_program() -> None:
    (death,) = read_text(pod({"limits": {"memory": "512Mi"}})).post_mortems()
    assert death.subject == "The container"
    assert death.advice[0].startswith(
        "If the program in it is written in Go, set GOMEMLIMIT=460"
    )
    (proxy,) = read_text(pod({}).replace('"importer"', '"envoy"')).post_mortems()
    assert "it is not written in Go" in proxy.reading[1]


def test_what_has_its_memory_from_macos_is_asked_for_less() -> None:
    text = (
        "2026-03-14 12:01:09.114148+0100 0x1a2b     Default     0x0                  0      0    "
        "kernel: memorystatus: killing_specific_process pid 4127 [gopls] "
        "(vm-compressor-space-shortage 100) 9412336KB - memorystatus_available_pages: 12021\n"
    )
    (death,) = read_text(text).post_mortems()
    assert "GOMEMLIMIT=8272MiB (90 % of what it had)" in death.advice[0]


KILLED = (
    "[ 1.5] Memory cgroup out of memory: Killed process 20 (api) total-vm:6291456kB, "
    "anon-rss:520000kB, file-rss:0kB, shmem-rss:0kB\n"
)
GROUP = (
    "[ 1.1] api invoked oom-killer: gfp_mask=0xcc0, order=0\n"
    "[ 1.2] memory: usage 524288kB, limit 524288kB, failcnt 10\n"
    "[ 1.3] swap: usage {}kB, limit 262144kB, failcnt 0\n"
    "[ 1.4] oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/system.slice/api.service,"
    "task_memcg=/system.slice/api.service,task=api,pid=20,uid=0\n"
)
FILES = "$ cat memory.max memory.swap.max memory.events\n536870912\n{}\nlow 0\nhigh 0\nmax 12\noom 1\noom_kill 1\n"
SHOWN = "$ systemctl show api\nResult=oom-kill\nMemoryMax=536870912\nMemorySwapMax={}\n"
STATUS_WITH_SWAP = STATUS.replace(
    "available: 1.0G peak: 300.2M", "peak: 1.0G swap: 0B swap peak: {}"
)


def with_swap(both: int) -> str:
    state = {"Status": "exited", "OOMKilled": True, "ExitCode": 137}
    host = {"Memory": 1 << 29, "MemorySwap": both}
    return json.dumps([{"Name": "/api", "State": state, "HostConfig": host}])


@pytest.mark.parametrize(
    ("text", "swap"),
    [
        (with_swap(1 << 30), "up to 512 MiB of swap if its host has any"),
        (with_swap(-1), "as much swap as its host has"),
        ("services:\n  api:\n    mem_limit: 512m\n    memswap_limit: 1g\n" + KILLED, "512 MiB of swap"),
        ("$ docker run -m 512m --memory-swap 1g api\n" + KILLED, "512 MiB of swap"),
        (FILES.format(268435456), "256 MiB of swap"),
        (FILES.format("max"), "as much swap as its host has"),
        (SHOWN.format(268435456), "256 MiB of swap"),
        (SHOWN.format("infinity"), "as much swap as its host has"),
        (STATUS_WITH_SWAP.format("1.0G", "300.0M"), "300 MiB of swap"),
        (GROUP.format(200000) + KILLED, "195 MiB of swap"),
    ],
)  # fmt: skip
def test_with_swap_the_limit_is_not_all_that_it_had(text: str, swap: str) -> None:
    (death,) = read_text(text).post_mortems()
    assert swap in " ".join(death.reading)
    assert "GOMEMLIMIT" not in " ".join(death.advice)


@pytest.mark.parametrize(
    "text",
    [
        with_swap(1 << 29),
        "$ docker run --memory-swap=512m --memory=512m api\n" + KILLED,
        FILES.format(0),
        SHOWN.format(0),
        STATUS_WITH_SWAP.format("512.0M", "0B").replace("1.0G", "512.0M"),
        GROUP.format(0) + KILLED,
    ],
)
def test_without_swap_a_limit_of_go_helps(text: str) -> None:
    (death,) = read_text(text).post_mortems()
    assert "swap" not in " ".join(death.reading)
    assert "GOMEMLIMIT=460MiB" in " ".join(death.advice)


EVENT = "Memory cgroup out of memory: Killed process {pid} ({comm}) total-vm:54937284kB, anon-rss:{kb}kB\n"
OF_HOST = "[   {s}.000000] Out of memory: Killed process {pid} ({comm}) total-vm:54937284kB, anon-rss:{kb}kB\n"
OF_EARLYOOM = (
    '2026-03-14T10:11:{s}Z earlyoom[5]: sending SIGKILL to process {pid} "{comm}": badness 800, '
    "VmRSS {mib} MiB\n"
)
OF_MACOS = (
    "2026-03-14T10:11:{s}Z kernel: memorystatus: killing_top_process pid {pid} [{comm}] "
    "(vm-pageshortage) {kb}KB\n"
)


@pytest.mark.parametrize(
    ("line", "advice"),
    [(EVENT, "find out what else"), *((line, "move worker (5,000 MiB)") for line in (OF_HOST, OF_EARLYOOM, OF_MACOS))],
)  # fmt: skip
def test_a_small_victim_next_to_a_much_larger_one_filled_no_limit(
    line: str, advice: str
) -> None:
    sizes = {"db": 7855, "app": 400, "worker": 5000}
    killed = [
        line.format(pid=20 + number, comm=comm, mib=mib, kb=1024 * mib, s=10 + number)
        for number, (comm, mib) in enumerate(sizes.items())
    ]
    for order in (killed, killed[::-1]):
        deaths = {death.victim: death for death in read_text("".join(order)).post_mortems()}
        assert advice in " ".join(deaths["app"].advice)
        assert "GOMEMLIMIT" not in " ".join(deaths["app"].advice)
        # More than half as much is not much smaller.
        assert advice not in " ".join(deaths["worker"].advice)
    if "{s}" in line:
        later = killed[1].replace("10:11:", "10:19:").replace(" 11.000000", "911.000000")
        (_, app) = read_text(killed[0] + later).post_mortems()
        assert advice not in " ".join(app.advice)
