"""A report of a death says what its input proves, and asks for what its platform can show."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.present.sections import headline
from gctrace_analyzer.present.sections.evidence import units
from gctrace_analyzer.testing import read_text

if TYPE_CHECKING:
    from pathlib import Path

SHOW = "$ systemctl show indexer.service -p MemoryMax,Result,NRestarts\n"
OF_SHOW = "Result=oom-kill\nNRestarts=4\nMemoryMax=805306368\n"
HEAD = "LAST SEEN   TYPE      REASON       OBJECT                          MESSAGE\n"
EVENTS = (
    "3m2s        Warning   Unhealthy    pod/reports-7d9f6c5b8-2xk4p     Liveness probe failed: no\n"
    "3m2s        Normal    Killing      pod/reports-7d9f6c5b8-2xk4p     Container reports failed "
    "liveness probe, will be restarted\n"
)
KILLED = "[100.1] Killed process 7 ({}) total-vm:973984kB, anon-rss:83580kB, file-rss:0kB\n"


def task(*, own_mib: int | None = None, others: int = 1) -> dict[str, Any]:
    ended = {"exitCode": 137, "reason": "OutOfMemoryError: Container killed", "memory": own_mib}
    containers = [{"name": f"sidecar-{n}", "lastStatus": "STOPPED"} for n in range(others)]
    first = {"name": "ingest", "lastStatus": "STOPPED"} | {k: v for k, v in ended.items() if v}
    return {
        "tasks": [{"taskArn": "arn:1", "memory": "1024", "containers": [first, *containers]}]
    }


@pytest.mark.parametrize(
    ("value", "is_shared"),
    [(task(), True), (task(others=0), False), (task(own_mib=512), False)],
    ids=["of the task", "alone", "own"],
)
def test_the_limit_of_a_task_is_shared_by_its_containers(
    value: dict[str, Any], *, is_shared: bool
) -> None:
    (death,) = read_text(json.dumps(value)).post_mortems()
    assert ("minus what other processes under it need" in death.advice[0]) == is_shared
    assert ("which it shares with others" in death.reading[0]) == is_shared


def test_a_unit_is_named_by_the_command_that_shows_it() -> None:
    (death,) = read_text(SHOW + OF_SHOW).post_mortems()
    assert (death.victim, death.kind) == ("indexer.service", "Killed for memory")
    assert "Its unit was restarted 4 times" in death.reading[0]


def test_what_watches_a_pod_says_its_last_restart() -> None:
    head = "NAME   READY   STATUS    RESTARTS   AGE\n"
    lines = ("Running 1 46s", "Running 2 77s", "CrashLoopBackOff 2 106s", "Running 3 2m10s")
    text = head + "".join(
        f"api-0   0/1     {'   '.join(line.split())}\n" for line in (*lines, "Running 3 3m")
    )
    (state,) = read_text(text).container_states.to_dicts()
    assert (state["restart_count"], state["restarts_in_s"]) == (3, 130)


def test_events_say_why_a_container_was_ended() -> None:
    run = read_text(HEAD + EVENTS)
    found = headline.verdict(run.report())
    assert "reports was ended: its liveness or startup probe failed." in found.sentence
    assert run.post_mortems() == []


def test_programs_that_are_not_go_get_no_setting_of_go() -> None:
    for name in ("earlyoom", "writer.py", "oom-multi.sh"):
        (death,) = read_text(KILLED.format(name)).post_mortems()
        assert "GOMEMLIMIT" not in " ".join(death.advice)


def test_windows_names_the_largest_programs() -> None:
    said = (
        "low virtual memory condition. The following: api.exe (4120) consumed 14893408256 bytes"
    )
    with pytest.raises(NoDataError, match=r"api\.exe 13\.9 GiB"):
        read_text(f"Log Name: System\nWindows successfully diagnosed a {said}.\n")


def test_an_excerpt_does_not_show_that_gc_never_ran() -> None:
    with pytest.raises(NoDataError) as refused:
        read_text("2026/11/23 listening on :8080\n")
    assert "never ran" not in str(refused.value)


TOP = "POD     NAME    CPU(cores)   MEMORY(bytes)\napi-0   {}      12m          471Mi\n"
DESCRIBED = (
    "Name:             api-0\nContainers:\n  api:\n    State:          Running\n"
    "    Restart Count:  0\n    Limits:\n      memory:  512Mi\n"
)


@pytest.mark.parametrize(
    ("container", "said"),
    [("api", "471 MiB of its 512 MiB"), ("proxy", "The container proxy used 471 MiB.")],
)
def test_what_top_shows_is_of_the_container_that_another_input_describes(
    tmp_path: Path, container: str, said: str
) -> None:
    for name, text in {"top": TOP.format(container), "describe": DESCRIBED}.items():
        (tmp_path / name).write_text(text)
    run = gca.read([tmp_path / "top", tmp_path / "describe"])
    assert said in headline.verdict(run.report()).sentence


def test_nodes_have_a_use_and_no_advice_for_a_program() -> None:
    text = (
        "NAME   CPU(cores)   CPU%   MEMORY(bytes)   MEMORY%\n"
        "n1     1840m        46%    13412Mi         88%\n"
    )
    found = headline.verdict(read_text(text).report())
    assert found.sentence.startswith("The node n1 used 13.1 GiB")
    assert "written in Go" not in found.action


def test_a_supervisor_restarts_what_uses_too_much() -> None:
    text = "[x] 'indexer' total mem amount of 2.1 GB matches resource limit [total mem amount > 2 GB]\n"
    found = headline.verdict(read_text(text + "[x] 'indexer' trying to restart\n").report())
    assert "indexer was restarted by Monit" in found.sentence


OOM_EVENT = "2025-02-02T12:10:40.1Z container oom 9b1c0f4a7d6e (image=shop, name=shop-1)\n"
DIE_EVENT = (
    "2025-02-02T12:10:44.9Z container die 9b1c0f4a7d6e (exitCode={}, image=shop, name=shop-1)\n"
)
TASK_OOM = 'time="2025-02-02T12:10:40Z" msg="TaskOOM event container_id:\\"{0}\\""\n'
TASK_EXIT = (
    'time="2025-02-02T12:10:41Z" msg="received exit event container_id:\\"{0}\\" id:\\"9b\\" '
    'pid:42 exit_status:{}"\n'
)


@pytest.mark.parametrize("code", [0, 1, 137])
@pytest.mark.parametrize(
    "text",
    [
        OOM_EVENT + DIE_EVENT,
        TASK_OOM.replace("{0}", "9b" * 32) + TASK_EXIT.replace("{0}", "9b" * 32),
    ],
    ids=["docker", "containerd"],
)
def test_a_container_that_ended_by_itself_was_not_killed(text: str, code: int) -> None:
    """The event is about any process of a container, and its main process has the exit code."""
    death = read_text(text.format(code)).post_mortems()[0]
    assert death.subject == ("The container" if code == 137 else "A process in the container")
    assert (f"ended with exit code {code}" in death.reading[0]) == (code != 137)


MANIFEST = """resources:
  limits:
    cpu: 500m
    ephemeral-storage: 2Gi
    memory: 512Mi
  requests:
    cpu: 400m
    memory: 256Mi
"""
COMPOSE = """    deploy:
      resources:
        limits:
          cpus: '0.50'
          pids: 100
          memory: 536870912
        reservations:
          memory: 64M
"""


@pytest.mark.parametrize(
    ("block", "size"), [(MANIFEST, "512 MiB"), (COMPOSE, "512 MiB"), (MANIFEST[:12], "")]
)
def test_a_limit_of_a_manifest_may_be_that_of_the_cgroup(block: str, size: str) -> None:
    kill = KILLED.format("api").replace("Killed", "Memory cgroup out of memory: Killed")
    (death,) = read_text(f"{kill}\n{block}").post_mortems()
    own = f"If the limit in the input, {size}, is its own, it reached it."
    unknown = "It reached the memory limit of its cgroup or of one above it."
    assert death.reading[0] == (own if size else unknown)


@pytest.mark.parametrize("begin", ["Memory cgroup out of memory", "Out of memory"])
def test_a_victim_that_was_already_exiting_is_named(begin: str) -> None:
    line = f"[4.1] {begin}: OOM victim 30 (httpd) is already exiting. Skip killing the task\n"
    found = headline.verdict(read_text(line).report())
    assert "httpd (pid 30), which it chose, was already exiting." in found.sentence
    assert found.action == ""
    shown = str(read_text(line + KILLED.format("httpd")).summary())
    assert "OOM killer ran and killed nothing" in shown
    assert "Add the whole message" not in shown


LOW_NODE = (
    "The node was low on resource: memory. Container node was using 35505620Ki, which exceeds its "
    "request of 12Gi. "
)
LISTED_POD = "NAME  READY  STATUS  RESTARTS  AGE\napi-0  0/1  OOMKilled  4 (57s ago)  2m40s\n\n"
LAST_STATE = "    Last State:     Terminated\n      Reason:       OOMKilled\n"


def test_a_container_may_be_called_after_its_role() -> None:
    """A validator of a block chain is a node, and often a Go program."""
    (death,) = read_text(LOW_NODE).post_mortems()
    assert (death.victim, "not written in Go" in " ".join(death.reading)) == ("node", False)
    (process,) = read_text(KILLED.format("node")).post_mortems()
    assert "not written in Go" in " ".join(process.reading)


def test_two_views_of_a_pod_may_show_the_same_kill() -> None:
    (death,) = read_text(LISTED_POD + LAST_STATE).post_mortems()
    assert (death.pod, "restarted 4 times" in death.reading[0]) == ("api-0", True)


def test_a_watched_pod_was_killed_before_and_after_its_first_restart() -> None:
    text = LISTED_POD.replace("4 (57s ago)", "0")
    text += LISTED_POD.split("\n")[1].replace("4 (57s ago)", "1 (9s ago)")
    assert len(read_text(text).post_mortems()) == 2


@pytest.mark.parametrize("later", [("5 (9s ago)", "3m22s"), ("4 (57s ago)", "40m")])
def test_the_restarts_of_a_watched_pod_are_within_the_time_of_the_same_line(
    later: tuple[str, str],
) -> None:
    line = "api-0  0/1  {state}  {restarts}  {age}\n"
    text = "NAME  READY  STATUS  RESTARTS  AGE\n"
    text += line.format(state="OOMKilled", restarts="1 (4s ago)", age="9s")
    text += line.format(state="Running", restarts=later[0], age=later[1])
    reading = read_text(text).post_mortems()[0].reading[0]
    assert (
        f"restarted {later[0][0]} times within {later[1].replace('m22s', 'm 22s')}" in reading
    )


@pytest.mark.parametrize(
    ("others", "count"),
    [("", 1), ("db-0  1/1  Running  0  1h\n", 1), ("db-0  0/1  OOMKilled  2  1h\n", 3)],
)
def test_a_part_of_a_pods_state_with_an_id_is_of_the_only_pod(others: str, count: int) -> None:
    state = (
        "lastState:\n  terminated:\n    containerID: docker://7aae52677a4542917c23\n"
        "    exitCode: 137\n    finishedAt: 2020-02-20T17:35:12Z\n    reason: OOMKilled\n"
    )
    listed = f"NAME  READY  STATUS  RESTARTS  AGE\napi-0  0/1  OOMKilled  1  24s\n{others}"
    assert len(read_text(f"{listed}\n{state}").post_mortems()) == count


def test_pods_of_one_name_in_two_namespaces_are_two_pods() -> None:
    rows = "NAMESPACE  NAME   READY  STATUS     RESTARTS     AGE\n" + "".join(
        f"{space}          api-0  0/1    OOMKilled  {count} (2m ago)  10m\n"
        for space, count in (("a", 3), ("b", 5))
    )
    deaths = read_text(rows).post_mortems()
    assert [death.pod for death in deaths] == ["a/api-0", "b/api-0"]
    assert [
        f"{count} times" in death.reading[0]
        for death, count in zip(deaths, (3, 5), strict=True)
    ] == [
        True,
        True,
    ]


def test_the_other_containers_of_an_evicted_pod_count() -> None:
    other = "Container exporter was using 9736Ki, which exceeds its request of 0. "
    (death,) = read_text(LOW_NODE + other).post_mortems()
    assert "(34,683 MiB with the others above their requests)" in death.reading[0]


def test_a_process_without_memory_was_not_what_filled_the_limit() -> None:
    line = KILLED.format("sh").replace("83580kB", "0kB")
    (death,) = read_text(
        line.replace("Killed", "Memory cgroup out of memory: Killed")
    ).post_mortems()
    assert "what else uses memory under this limit" in death.advice[0]


def test_a_container_that_runs_was_not_killed_itself() -> None:
    state = {"Status": "running", "Running": True, "OOMKilled": True, "ExitCode": 0}
    (death,) = read_text(json.dumps({"Name": "/web", "State": state})).post_mortems()
    assert (death.subject, "exit code" in death.kind) == ("A process in the container", False)


def test_a_unit_without_a_limit_shows_only_what_it_uses() -> None:
    shown = "Id=api.service\nResult=success\nMemoryCurrent=104857600\nMemoryPeak=209715200\n"
    found = headline.verdict(read_text(f"{shown}MemoryMax=infinity\n").report())
    assert found.sentence == "The unit api.service used 100 MiB (200 MiB at most)."


def test_gc_that_is_off_runs_only_near_gomemlimit() -> None:
    pod = {
        "kind": "Pod",
        "metadata": {"name": "ledger-0"},
        "spec": {"containers": [{
            "name": "ledger",
            "env": [{"name": "GOGC", "value": "off"}, {"name": "GOMEMLIMIT", "value": "1GiB"}],
            "resources": {"limits": {"memory": "1Gi"}},
        }]},
        "status": {"containerStatuses": [{
            "name": "ledger",
            "restartCount": 1,
            "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
            "state": {"running": {}},
        }]},
    }  # fmt: skip
    (death,) = read_text(json.dumps(pod)).post_mortems()
    assert "It ran with GOGC=off: GC runs only near GOMEMLIMIT, 1,024 MiB." in death.reading


_OF_HOST = "[9.{}] {}\n"
_INVOKED = "dockerd invoked oom-killer: gfp_mask={}, order={}, oom_score_adj=0"
_CONSTRAINT = (
    "oom-kill:constraint={},nodemask=1,cpuset=numa0,mems_allowed=0,global_oom,"
    "task_memcg=/system.slice/api.service,task=api,pid=7,uid=998"
)
_KILL = (
    "Out of memory: Killed process 7 (api) total-vm:2210112kB, anon-rss:812344kB, file-rss:0kB"
)
_NONE = _CONSTRAINT.format("CONSTRAINT_NONE")
_FREE = " free:{} free_pcp:0 free_cma:0"
_ZONE = "Node 0 {} free:{}kB min:67584kB low:84480kB high:101376kB active_anon:0kB"
_ORDINARY = _INVOKED.format("0xcc0(GFP_KERNEL)", 0)
_LARGE = _INVOKED.format("0xcc0(GFP_KERNEL)", 3)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "The host probably ran out of memory: the kernel's whole message"),
        ([_NONE], "The host ran out of memory; no limit"),
        ([_ORDINARY], "The host probably ran out of memory"),
        ([_ORDINARY, "262144 pages RAM"], "The host ran out of memory (1,024 MiB of RAM)"),
        ([_ORDINARY, _ZONE.format("Normal", 90000), _NONE], "The host ran out of memory;"),
        ([_ORDINARY, _ZONE.format("Normal", 611220), _NONE], "The host probably ran out"),
        ([_ORDINARY, _ZONE.format("DMA32", 611220), _NONE], "The host probably ran out"),
        ([_LARGE, _ZONE.format("Normal", 90000), _NONE], "The host ran out of memory;"),
        (
            [_LARGE, _NONE],
            "The host probably ran out of memory, or of free blocks of 32 KiB (order=3): the",
        ),
        (
            [_LARGE, _ZONE.format("DMA32", 611220), _NONE],
            "no free block of 32 KiB (order=3), although 597 MiB were free",
        ),
        (
            [_LARGE, _ZONE.format("DMA32", 611220), _ZONE.format("Normal", 90000), _NONE],
            "The host ran out of memory;",
        ),
        (
            [_LARGE, _FREE.format(201300), _ZONE.format("Normal", 278148), _NONE],
            "no free block of 32 KiB (order=3), although 786 MiB were free",
        ),
        (
            [_LARGE, _ZONE.format("Normal", 611220), _NONE],
            "no free block of 32 KiB (order=3), although 597 MiB were free",
        ),
        ([_INVOKED.format("0x0()", 0)], "A page fault got no memory (gfp_mask=0x0). Before"),
        (
            [_INVOKED.format("0x0", 0), _FREE.format(1211022), "2097034 pages RAM"],
            "4,731 MiB of 8,192 MiB were free on the host. Before Linux 5.16",
        ),
        ([_INVOKED.format("0xcc0(GFP_KERNEL)", -1), _NONE], "Somebody made the kernel kill"),
        (["SysRq : Manual OOM execution", _ORDINARY, "2097034 pages RAM"], "Somebody made"),
        (
            [_CONSTRAINT.format("CONSTRAINT_CPUSET")],
            "The memory nodes of its cpuset ran out (mems_allowed=0); no memory limit",
        ),
        (
            [_CONSTRAINT.format("CONSTRAINT_MEMORY_POLICY")],
            "memory policy (numactl, mbind) ran out (nodemask=1); no memory limit",
        ),
    ],
)
def test_a_kill_on_the_whole_host_names_the_cause_that_its_message_proves(
    lines: list[str], said: str
) -> None:
    text = "".join(_OF_HOST.format(n, line) for n, line in enumerate([*lines, _KILL]))
    (death,) = read_text(text).post_mortems()
    assert said in death.reading[0]
    advice = " ".join(death.advice)
    assert ("GOMEMLIMIT=" in advice) == ("memory nodes" in said or "ran out" in said)
    assert "Add the memory limit" not in advice


def test_what_started_one_kill_did_not_start_the_next() -> None:
    first = [_INVOKED.format("0xcc0(GFP_KERNEL)", -1), _NONE, _KILL]
    then = [line.replace("=7", "=8").replace("process 7", "process 8") for line in first[1:]]
    text = "".join(
        _OF_HOST.format(n, line) for n, line in enumerate([*first, _ORDINARY, *then])
    )
    by_hand, ordinary = read_text(text).post_mortems()
    assert "Somebody" in by_hand.reading[0]
    assert "The host ran out of memory;" in ordinary.reading[0]


@pytest.mark.parametrize(
    ("end", "at"),
    [
        ("prometheus.service: main process exited, code=killed, status=9/KILL", None),
        ("prometheus.service: Failed with result 'oom-kill'.", "Sep 29 03:30:34"),
    ],
)
def test_a_kill_without_a_time_has_the_time_of_an_end_for_memory_only(
    end: str, at: str | None
) -> None:
    kill = (
        "kernel: Out of memory: Kill process 15746 (prometheus) score 851 or sacrifice child\n"
    )
    (death,) = read_text(f"{kill}\nSep 29 03:30:34 h systemd[1]: {end}\n").post_mortems()
    assert death.printed_at == at


def test_sizes_that_systemd_rounds_have_no_more_digits() -> None:
    text = (
        "Mar 05 11:02:13 web1 systemd[1]: api.service: Failed with result 'oom-kill'.\n"
        "Mar 05 11:02:13 web1 systemd[1]: api.service: Consumed 31min 2.110s CPU time, 1.9G memory "
        "peak, 0B memory swap peak.\n"
    )
    (row,) = units(read_text(text).report()).rows  # type: ignore[union-attr]  # it has one unit
    assert row[:3] == ("api.service", "31m 02s", "1.9 GiB")


def test_a_process_of_a_unit_without_a_known_limit_may_have_filled_the_host() -> None:
    text = (
        "Mar 05 11:02:12 web1 systemd[1]: api.service: Main process exited, code=exited, status=0/OK\n"
        "Mar 05 11:02:12 web1 systemd[1]: api.service: A process of this unit has been killed by "
        "the OOM killer.\n"
        "Mar 05 11:02:13 web1 systemd[1]: api.service: Failed with result 'oom-kill'.\n"
    )
    (death,) = read_text(text).post_mortems()
    assert "leave room for it under the limit, or on its host if it has none" in death.advice[0]


def test_a_program_with_little_of_its_host_is_not_what_to_limit() -> None:
    lines = [_ORDINARY, "2097034 pages RAM", _NONE, _KILL]
    text = "".join(_OF_HOST.format(n, line) for n, line in enumerate(lines))
    (death,) = read_text(text).post_mortems()
    assert death.advice[0].startswith("Find out which program has the most memory")


@pytest.mark.parametrize(
    ("score", "action"),
    [
        (" oom_score_adj:0", "Limit the memory of java, or give the host more: by the kernel's "
         "score java had the most memory (793 MiB), unless another program's oom_score_adj is"),
        (" oom_score_adj:900", "Find out which program has the most memory, and limit it"),
        ("", "Find out which program has the most memory, and limit it"),
    ],
)  # fmt: skip
def test_the_kernel_kills_the_program_with_the_most_memory(score: str, action: str) -> None:
    """Unless a positive oom_score_adj raised its score."""
    lines = [_ORDINARY, _NONE, _KILL.replace("(api)", "(java)") + score]
    text = "".join(_OF_HOST.format(n, line) for n, line in enumerate(lines))
    (death,) = read_text(text).post_mortems()
    assert death.advice[0].startswith(action)


def test_kills_by_hand_and_others_were_not_all_for_lack_of_memory() -> None:
    by_hand = [_INVOKED.format("0xcc0(GFP_KERNEL)", -1), _NONE, _KILL]
    other = [_NONE.replace("=api", "=db"), _KILL.replace("7 (api)", "8 (db)")]
    lines = [*by_hand, _ORDINARY, *other]
    text = "".join(_OF_HOST.format(n, line) for n, line in enumerate(lines))
    said = " ".join(str(read_text(text).summary()).split())
    assert "were killed by the kernel's OOM killer" in said


FENCE = "```\n"
KILLED_POD = (
    "Name:         {pod}\nContainers:\n  {container}:\n    Last State:     Terminated\n"
    "      Reason:       OOMKilled\n      Exit Code:    137\n    Restart Count:  3\n"
)
MANIFEST = (
    "spec:\n  containers:\n  - name: {name}\n    resources:\n      limits:\n"
    "        memory: 256Mi\n    env:\n    - name: GOMEMLIMIT\n      value: 200MiB\n"
)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("api", "It reached its limit: 256 MiB (or its host was short of memory)."),
        ("worker", "It reached its memory limit (or its host was short of memory)."),
    ],
)
def test_the_limit_of_another_block_is_that_of_the_container_with_its_name(
    name: str, said: str
) -> None:
    state = KILLED_POD.format(pod="api-7d9f8c6b5d-abcde", container="api")
    run = read_text(
        f"{FENCE}{state}{FENCE}Its manifest:\n{FENCE}{MANIFEST.format(name=name)}{FENCE}"
    )
    (death,) = run.post_mortems()
    assert said in death.reading[0]
    assert ("GOMEMLIMIT was 200 MiB" in str(death)) is (name == "api")


def test_the_limit_of_a_block_without_a_name_may_be_of_another_program() -> None:
    listed = "NAME                  READY  STATUS     RESTARTS\napi-7d9f8c6b5d-abcde  0/1  OOMKilled  1\n"
    limits = "Limits:\n  cpu:     500m\n  memory:  256Mi\n"
    run = read_text(f"{FENCE}{listed}{FENCE}{FENCE}{limits}{FENCE}")
    (death,) = run.post_mortems()
    assert "If the limit in the input, 256 MiB, is its own, it reached it (or its" in str(death)


def test_the_settings_of_another_block_are_not_those_of_what_the_kernel_killed() -> None:
    kill = (
        "Jan 10 10:00:00 n1 kernel: Memory cgroup out of memory: Killed process 9 (index) "
        "total-vm:2048000kB, anon-rss:262144kB, file-rss:1024kB, shmem-rss:0kB\n"
    )
    text = f"{FENCE}{MANIFEST.format(name='web')}{FENCE}{FENCE}{kill}{FENCE}"
    (death,) = read_text(text).post_mortems()
    assert "If the limit in the input, 256 MiB, is its own" in str(death)
    assert "GOMEMLIMIT was" not in str(death)


def test_a_part_of_a_description_is_of_the_pod_that_its_command_names() -> None:
    listed = "NAME                  READY  STATUS   RESTARTS\napi-7d9f8c6b5d-abcde  1/1  Running  7\n"
    part = KILLED_POD.split("\n", 1)[1].format(container="api")
    command = "kubectl describe pod api-7d9f8c6b5d-vwxyz\n\n"
    run = read_text(f"{FENCE}{listed}{FENCE}{FENCE}{command}{part}{FENCE}")
    assert [death.pod for death in run.post_mortems()] == ["api-7d9f8c6b5d-vwxyz"]


def test_a_dump_in_the_text_around_a_kill_need_not_be_of_the_same_program() -> None:
    kill = (
        "kernel: Out of memory: Killed process 9 (index) total-vm:2048000kB, anon-rss:1262144kB"
    )
    dump = "Alloc = 12 MiB\tTotalAlloc = 300 MiB\tSys = 71 MiB\tNumGC = 42"
    (death,) = read_text(f"{FENCE}{kill}\n{FENCE}{FENCE}{dump}\n{FENCE}").post_mortems()
    assert "The last MemStats dump, if it is of the same program, shows 12 MiB" in str(death)
    assert death.advice[0].startswith("If index is written in Go, ")


OF_GROUP = (
    "memory: usage 65536kB, limit 65536kB, failcnt 9\n{0}Memory cgroup stats for /{1}:\n{0}"
)
OF_GROUP += (
    "Memory cgroup out of memory: Killed process {2} (vm) total-vm:90000kB, anon-rss:60000kB\n"
)


def test_kills_in_two_groups_with_and_without_a_year_are_neither_joined_nor_apart() -> None:
    first = "Feb  3 19:57:08 h kernel: "
    second = "[Thu May  9 14:52:38 2024] "
    text = "".join(
        f"{FENCE}{begin}{OF_GROUP.format(begin, group, pid)}{FENCE}"
        for begin, group, pid in ((first, "one", 7), (second, "two", 8))
    )
    verdict = read_text(text).report().verdict
    assert verdict is not None
    assert "apart" not in verdict.sentence
    assert "In 1 of these kills: It reached the limit of /one" in verdict.sentence


def test_what_earlyoom_asked_to_end_is_read_from_a_wrapped_line() -> None:
    text = (
        "Jan 27 23:13:00 earlyoom: low memory! at or below SIGTERM limits: mem 5.00%, swap 90%\n"
        'Jan 27 23:13:01 earlyoom: sending SIGTERM to process 803 uid 1000 "indexer":\n'
        "                         oom_score 1489, VmRSS 7013 MiB\n"
    )
    (death,) = read_text(text).post_mortems()
    assert (death.kind, death.victim, death.pid) == ("SIGTERM", "indexer", 803)


def test_memory_pressure_is_the_reason_even_if_a_pager_cut_the_line() -> None:
    text = (
        "Feb 15 17:10:20 h systemd-oomd[949]: Killed /user.slice/app.scope due to memory p>\n"
    )
    (death,) = read_text(text).post_mortems()
    assert death.cause == "by systemd-oomd for memory pressure"
    assert "nearly full" not in str(death)
    assert "memory and swap of the host" not in str(death)


def test_a_slice_is_the_only_place_of_a_kill_that_nothing_else_reports() -> None:
    line = "{}: A process of this unit has been killed by the OOM killer.\n"
    (death,) = read_text(line.format("batch.slice")).post_mortems()
    assert death.victim == "batch.slice"
    both = read_text(line.format("api.service") + line.format("batch.slice")).post_mortems()
    assert [death.victim for death in both] == ["api.service"]


def test_a_limit_in_a_unit_file_may_be_that_of_another_unit() -> None:
    file = "[Service]\nMemoryMax=4G\nRestart=always\n"
    kill = "api.service: A process of this unit has been killed by the OOM killer.\n"
    (death,) = read_text(f"{FENCE}{file}{FENCE}{FENCE}{kill}{FENCE}").post_mortems()
    assert "If the limit in the input, 4,096 MiB, is its own, it reached it" in str(death)


@pytest.mark.parametrize("path", ["/system.slice/api.service", "/system.slice/docker-7f.scope"])
def test_a_wrapped_decision_of_systemd_oomd_without_its_prefix_has_its_reason(
    path: str,
) -> None:
    text = (
        f"Marked {path} for killing due to memory pressure\n"
        "  for /system.slice being 65.15% > 50.00% for > 20s with reclaim activity\n"
    )
    (death,) = read_text(text).post_mortems()
    assert death.cause == "by systemd-oomd for memory pressure"
    assert "waited for memory 65.15 % of the time" in str(death)
