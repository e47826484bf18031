"""Kills for memory that platforms and earlyoom report."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from gctrace_analyzer.analysis.postmortem.death import BY_CODE
from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.ingest.evidence import wordings
from gctrace_analyzer.ingest.evidence.words import COARSE
from gctrace_analyzer.testing import read_text
from gctrace_analyzer.units import MIB
from tests.helpers.logs import read_lines, records

if TYPE_CHECKING:
    from pathlib import Path

EARLYOOM = "Nov 23 10:00:01 web1 earlyoom[812]: "
CALLED = 'sending SIGTERM to process 4711 uid 1000 "api (x) "1": '


@pytest.mark.parametrize(
    ("text", "rss_mib"),
    [
        (f"{CALLED}badness 1180, VmRSS 389 MiB", 389),
        (f'{CALLED}oom_score 1180, VmRSS 389 MiB, cmdline "/bin/api"', 389),
        (f"{CALLED}oom_score 1180, oom_score_adj 0, badness 99 KiB, VmRSS 389 MiB, …", 389),
        (f"{CALLED}oom_score 1180", None),
    ],
)
def test_earlyoom_is_a_kill_of_the_process_that_it_names(
    text: str, rss_mib: int | None
) -> None:
    again = text.replace("SIGTERM", "SIGKILL")
    run = read_text(f"{EARLYOOM}{text}\n{EARLYOOM}{again}\n")
    (kill,) = run.oom_kills.to_dicts()
    assert (kill["killer"], kill["scope"], kill["host"]) == ("earlyoom", "global", "web1")
    assert (kill["pid"], kill["comm"], kill["uid"]) == (4711, 'api (x) "1', 1000)
    assert kill["score"] == 1180
    assert kill["anon_rss_bytes"] == (None if rss_mib is None else rss_mib * MIB)
    (death,) = run.post_mortems()
    assert (death.killer, death.proven, death.resident_mib) == ("earlyoom", True, rss_mib)


@pytest.mark.parametrize(("signal", "kind"), [(15, "SIGTERM"), (9, "OOM kill")])
def test_the_first_releases_of_earlyoom_name_the_signal(signal: int, kind: str) -> None:
    text = f'killing process 4711 "api" with signal {signal}: badness 550, VmRSS 7609 MiB'
    kernel = "kernel: Killed process 4711 (api) total-vm:8118236kB, anon-rss:8098448kB"
    (death,) = read_text(f"{text}\n").post_mortems()
    assert (death.kind, death.killer, death.resident_mib) == (kind, "earlyoom", 7609)
    (death,) = read_text(f"{text}\n{kernel}, file-rss:0kB\n").post_mortems()
    assert (death.kind, death.killer) == ("OOM kill", "kernel" if signal == 15 else "earlyoom")


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ([], "SIGTERM"),
        (["process exited after 0.2 seconds"], "SIGTERM"),
        (["kill failed: Timer expired"], "SIGTERM without an end"),
        (["kill failed: Timer expired", "SIGTERM"], "SIGTERM without an end"),
        (["kill failed: Timer expired", "SIGKILL"], "OOM kill"),
        (["escalating to SIGKILL after 6.0 seconds", "process exited after 6.1 s"], "OOM kill"),
    ],
)
def test_a_program_that_did_not_end_after_sigterm_was_not_killed(
    lines: list[str], kind: str
) -> None:
    asked = 'sending SIGTERM to process 4711 uid 0 "api": badness 900, VmRSS 7 MiB'
    texts = [asked, *(asked.replace("SIGTERM", t) if "SIG" in t[:3] else t for t in lines)]
    run = read_text("".join(f"{EARLYOOM}{text}\n" for text in texts))
    (death,) = run.post_mortems()
    assert death.kind == kind
    headline = " ".join(str(run.summary()).split())
    assert ("was killed" in headline) == (kind == "OOM kill")
    assert ("The lines of earlyoom do not show that it ended." in headline) == (not lines)
    assert ("It ended after that." in headline) == (kind == "SIGTERM" and bool(lines))
    assert ("It had not ended ten seconds later." in headline) == (kind.endswith("an end"))


@pytest.mark.parametrize("of", ["RequestId: 3e4f Error: ", "START RequestId: 3e4f\nError "])
def test_another_request_of_a_function_does_not_prove_why_it_was_killed(of: str) -> None:
    run = read_text(
        f"{AT} REPORT RequestId: 1c2d\tMemory Size: 2688 MB\tMax Memory Used: 2581 MB\t\n"
        f"{of}Runtime exited with error: signal: killed\n"
    )
    (death,) = run.post_mortems()
    assert not death.proven
    assert death.reading == (
        "Memory probably ran out: another request used 2,581 MiB of 2,688 MiB.",
    )


def test_sigkill_of_a_function_far_below_its_memory_has_no_code() -> None:
    run = read_text(
        f"{AT} REPORT RequestId: 1c2d\tMemory Size: 2688 MB\tMax Memory Used: 581 MB\t\n"
        f"{AT} RequestId: 3e4f Error: Runtime exited with error: signal: killed\n"
    )
    (death,) = run.post_mortems()
    assert (death.kind, death.proven) == ("SIGKILL", False)
    assert "137" not in str(run.summary()) + " ".join(death.reading)


GOOGLE = "Consider increasing the memory limit"
AT = "2026-11-23T10:00:01.5Z"
STATES: dict[str, tuple[str, dict[str, Any]]] = {
    "Cloud Run": (
        f"{AT} Memory limit of 512 MiB exceeded with 530 MiB used. {GOOGLE}",
        {"memory_limit_bytes": 512 * MIB, "exit_code": None},
    ),
    "Cloud Run, older": (
        f"{AT} Memory limit of 244M exceeded with 251M used. {GOOGLE}",
        {"memory_limit_bytes": 244 * MIB},
    ),
    "Cloud Run, large": (
        f"{AT} Memory limit of 1.5 GiB exceeded with 1540 MiB used. {GOOGLE}",
        {"memory_limit_bytes": 1536 * MIB},
    ),
    "App Engine": (
        f"{AT} Exceeded soft memory limit of 512 MB with 530 MB after servicing 3 requests",
        {"memory_limit_bytes": 512 * MIB},
    ),
    "Heroku": (
        f"{AT} heroku[web.1]: Process running mem=1090M(212.9%)\n"
        f"{AT} heroku[web.1]: Error R15 (Memory quota vastly exceeded)",
        {"memory_limit_bytes": 512 * MIB, "container": "web.1", "signal": "KILL"},
    ),
    "Cloud Foundry": (
        f"   {AT} [APP/PROC/WEB/0] OUT Exit status 137 (out of memory)",
        {"name": "WEB/0", "exit_code": 137, "signal": "KILL"},
    ),
    "Nomad": (
        f'{AT}  Terminated  Exit Code: 137, Exit Message: "OOM Killed"',
        {"exit_code": 137},
    ),
    "Nomad, Docker": (
        f'{AT}  Terminated  Exit Code: 137, Exit Message: "Docker container exited", OOM Killed: true',
        {"exit_code": 137},
    ),
    "Nomad, in lower case": (f"{AT}  Terminated  OOM killed", {"exit_code": None}),
    "Nomad, its own line": (f"{AT} OOM Killed     = true", {}),
    "Nomad, the memory of a dead task": (
        f'Task "api" is "dead"\n0/500 MHz  0 B/512 MiB      300 MiB  \n{AT}  Terminated  OOM Killed',
        {"name": "api", "memory_limit_bytes": 512 * MIB},
    ),
    "Nomad, with memory_max": (
        f'Task "api" is "dead"\n0/500 MHz  0 B/300 MiB      300 MiB  \n           Max: 600 MiB\n'
        f"{AT}  Terminated  OOM Killed",
        {"name": "api", "memory_limit_bytes": 600 * MIB},
    ),
    "Nomad, the resources below the events": (
        f'{AT}  Terminated  OOM Killed\nTask "api" is "dead"\n'
        "0/500 MHz  0 B/300 MiB      300 MiB  \n           Max: 600 MiB",
        {"name": "api", "memory_limit_bytes": 600 * MIB},
    ),
    "Nomad, another task below": (
        f'Task "api" is "dead"\n0/500 MHz  0 B/300 MiB      300 MiB  \n'
        f'{AT}  Terminated  OOM Killed\nTask "log" is "dead"\n'
        "0/500 MHz  0 B/400 MiB      300 MiB  \n           Max: 900 MiB",
        {"name": "api", "memory_limit_bytes": 300 * MIB},
    ),
    "AWS ECS, a reason with its code": (
        f"{AT} Status reason\tOutOfMemoryError: Container killed due to memory usage Exit Code\t137",
        {"exit_code": 137, "signal": "KILL"},
    ),
    "AWS ECS, the code on its own line": (
        f'{AT}   "exitCode": 137,\n{AT}   "reason": "OutOfMemoryError: Container killed due to memory usage",',
        {"exit_code": 137},
    ),
    "containerd": (
        f'time="{AT}" level=info msg="TaskOOM event container_id:\\"0123456789abcdef\\""',
        {"container_id": "0123456789abcdef"},
    ),
    "containerd 1.2": (
        f'time="{AT}" level=info msg="TaskOOM event &TaskOOM{{ContainerID:0123456789abcdef,}}"',
        {"container_id": "0123456789abcdef"},
    ),
    "App Engine, private": (
        f"{AT} Exceeded soft private memory limit of 128 MB with 157 MB after servicing 126 "
        "requests total.",
        {"memory_limit_bytes": 128 * MIB, "memory_used_bytes": 157 * MIB},
    ),
    "Nomad, client": (
        f'{AT} [INFO] client: task "queue" for alloc "0f3c11aa" failed: Wait returned exit code '
        "137, signal 0, and error OOM Killed",
        {"name": "queue", "exit_code": 137},
    ),
    "Mesos": (
        f"{AT} Memory limit exceeded: Requested: 160MB Maximum Used: 161MB",
        {"memory_limit_bytes": 160 * MIB, "memory_used_bytes": 161 * MIB},
    ),
    "Render": (
        f"{AT} Ran out of memory (used over 512MB) while running your code.",
        {"memory_limit_bytes": 512 * MIB},
    ),
    "Fly.io": (f"{AT} Process appears to have been OOM killed!", {}),
    "Cloud Foundry, events": (
        f"{AT} APP/PROC/WEB: Exited with status 137 (out of memory)",
        {"exit_code": 137},
    ),
    "Cloud Foundry, with the size of the app": (
        f"{AT} APP/PROC/WEB: Exited with status 137 (out of memory)\n$ cf app a\nmemory usage:   128M",
        {"exit_code": 137, "memory_limit_bytes": 128 * MIB},
    ),
    "AWS Lambda, nearly full": (
        f"{AT} REPORT RequestId: 1c2d\tMemory Size: 2688 MB\tMax Memory Used: 2581 MB\t\n\n\n"
        f"{AT} RequestId: 1c2d Error: Runtime exited with error: signal: killed",
        # Lambda prints no exit code.
        {"memory_used_bytes": 2581 * MIB, "exit_code": None, "signal": "KILL"},
    ),
    **{
        f"a batch system: {text[:40]}": (f"{AT} {text}", expected)
        for text, expected in (
            (
                "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\n"
                "Exited with exit code 137.\n\n    Max Memory :             16384 MB\n"
                "    Total Requested Memory :             16000.00 MB",
                {
                    "exit_code": 137,
                    "memory_used_bytes": 16384 * MIB,
                    "memory_request_bytes": 16000 * MIB,
                },
            ),
            (
                "Completed <exit>; TERM_SWAP: job killed after reaching LSF swap usage limit;",
                {"exit_code": None},
            ),
            (
                "=>> PBS: job killed: mem 8404116kb exceeded limit 8388608kb",
                {"memory_limit_bytes": 8192 * MIB, "memory_used_bytes": 8404116 * 1024},
            ),
            (
                "=>> PBS: job killed: vmem 4510236672 exceeded limit 4294967296",
                {"memory_limit_bytes": 4096 * MIB, "memory_used_bytes": 4510236672},
            ),
            (
                "mem job total 2101248 kb exceeded limit 2097152 kb",
                {"memory_limit_bytes": 2048 * MIB},
            ),
            (
                "882310.14   me   11/21 17:58 Error from slot1_3@wn118: Job has gone over cgroup "
                "memory limit of 4096 megabytes. Last measured usage: 3988 megabytes.  Consider",
                {
                    "name": "882310.14",
                    "memory_limit_bytes": 4096 * MIB,
                    "memory_used_bytes": 3988 * MIB,
                },
            ),
            ("Error from slot1@w: Job has encountered an out-of-memory event.", {}),
            (
                "slurmstepd: error: StepId=39.batch exceeded memory limit (6526939136 > "
                "4294967296), being killed\nslurmstepd: error: Exceeded job memory limit",
                {"memory_limit_bytes": 4096 * MIB, "memory_used_bytes": 6526939136},
            ),
            (
                "slurmstepd: error: Job 41176 exceeded memory limit (3940736 > 2068480), being "
                "killed\nslurmstepd: error: Exceeded job memory limit",
                {"name": "41176", "memory_limit_bytes": None},
            ),
            (
                'job 88121.1 exceeds job hard limit "h_vmem" of queue "all.q@node17" '
                "(4404019200.00000 > limit:4294967296.00000) - sending SIGKILL",
                {"memory_limit_bytes": 4096 * MIB, "memory_used_bytes": 4200 * MIB},
            ),
            (
                "Container [pid=76303,containerID=container_15_02] is running beyond physical "
                "memory limits. Current usage: 1.5 GB of 1.5 GB physical memory used; 3.4 GB of",
                {"name": "container_15_02", "memory_limit_bytes": 1536 * MIB},
            ),
        )
    },
    "AWS Lambda": (
        f"{AT} REPORT RequestId: 1c2d\tMemory Size: 128 MB\tMax Memory Used: 128 MB\t\n"
        f"{AT} RequestId: 1c2d Error: Runtime exited with error: signal: killed",
        {"memory_limit_bytes": 128 * MIB},
    ),
}


def test_a_log_that_is_mostly_gctrace_is_searched_for_every_wording() -> None:
    coarse = re.compile(COARSE)
    unseen = [
        wording.word
        for wording in wordings.WORDINGS
        if wording.says in ("killed", "from the code", "in a group", "at its limit", "used")
        and not coarse.search(wording.word)
    ]
    assert not unseen


@pytest.mark.parametrize("among", [0, 200], ids=["alone", "among records"])
@pytest.mark.parametrize("platform", STATES)
def test_a_container_that_its_platform_killed_is_a_death(platform: str, among: int) -> None:
    text, expected = STATES[platform]
    lines = [f"{AT} {line}\n" for line in records(among)] if among else []
    run = read_text("".join(lines) + text + "\n")
    (state,) = run.container_states.to_dicts()
    assert state["oom_killed"] is True
    assert state["logged_at"] == datetime(2026, 11, 23, 10, 0, 1, 500_000, UTC)
    assert {name: state[name] for name in expected} == expected
    (death,) = run.post_mortems()
    assert (death.proven, death.scope) == (True, "memcg")
    if limit := expected.get("memory_limit_bytes"):
        assert death.limit_mib == limit / MIB
        known = run.settings.container_limit_mib
        assert (known is None) == ("vmem" in text)  # address space is no size
        if known is None:
            return
        assert known.value == limit / MIB
        assert known.source.startswith("message of the platform")


@pytest.mark.parametrize(
    "text",
    [
        "REPORT RequestId: 1c2d\tMemory Size: 128 MB\tMax Memory Used: 90 MB\t\n"
        "RequestId: 1c2d Error: Runtime exited with error: signal: killed\n",
        "REPORT RequestId: 1c2d\tMemory Size: 256 MB\tMax Memory Used: 18 MB\t\n"
        "RequestId: 1c2d Error: Runtime exited with error: exit status 137\n",
        "REPORT RequestId: 1c2d\tMemory Size: 128 MB\tMax Memory Used: 128 MB\t\n",
        "2026-11-23T10:00:01Z heroku[web.1]: Process running mem=517M(101.1%)\n"
        "2026-11-23T10:00:01Z heroku[web.1]: Error R14 (Memory quota exceeded)\n",
        "Exit status 137\n",
        'Exit Code: 137, Exit Message: "Docker container exited with non-zero exit code: 137"\n',
    ],
)
def test_other_ends_are_no_kill_for_memory(text: str) -> None:
    run = read_text("\n".join(records(3)) + "\n" + text)
    assert not run.container_states["oom_killed"].any()
    assert not any(death.proven for death in run.post_mortems())


@pytest.mark.parametrize(
    ("lines", "is_asked"),
    [
        (("worker-1 exited with code 137", "^CGracefully stopping... (press Ctrl+C"), False),
        (("^CGracefully stopping... (press Ctrl+C", "worker-1 exited with code 137"), True),
    ],
)
def test_only_a_stop_before_the_end_is_its_cause(
    lines: tuple[str, ...], is_asked: bool
) -> None:
    (death,) = read_text("\n".join(lines)).post_mortems()
    assert ("asked to stop" in " ".join(death.reading)) is is_asked


STOPPED = """\
2022-04-21T15:32:50Z  Terminated  Exit Code: 137, Exit Message: "{}"
2022-04-21T15:32:44Z  Killing     Sent interrupt. Waiting 5s before force killing
"""


@pytest.mark.parametrize("words", ["OOM Killed (137)", "Docker container exited with 137"])
def test_words_made_from_the_exit_code_after_a_stop_prove_nothing(words: str) -> None:
    run = read_text(STOPPED.format(words))
    (state,) = run.container_states.to_dicts()
    assert (state["oom_killed"], state["stop_requested"]) == (None, True)
    (death,) = run.post_mortems()
    assert not death.proven
    assert "It most likely got SIGKILL after it was asked to stop" in death.reading[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "REPORT RequestId: 1c2d\tMemory Size: 1536 MB\tMax Memory Used: 1536 MB\t\n",
            "The container used 1,536 MiB of its 1,536 MiB (100 %): it has reached its limit",
        ),
        (
            "2026-11-23T10:00:01Z heroku[web.1]: Process running mem=807M(157.7%)\n"
            "2026-11-23T10:00:01Z heroku[web.1]: Error R14 (Memory quota exceeded)\n",
            "The container web.1 used 807 MiB of its 512 MiB (158 %): it is over its limit",
        ),
        (
            "Process running mem=619M(118.5%)\nError R14 (Memory quota exceeded)\n",
            "used 619 MiB of its 522 MiB (119 %): it is over its limit",
        ),
        (
            "2026-11-23T10:00:01Z heroku[web.1]: source=web.1 sample#memory_total=307.20MB "
            "sample#memory_rss=300.00MB sample#memory_quota=512.00MB\n",
            "used 307 MiB of its 512 MiB (60.0 %): 205 MiB are left",
        ),
    ],
)
def test_how_near_a_container_is_to_its_limit_is_said_without_a_kill(
    text: str, said: str
) -> None:
    run = read_text(text)
    assert run.post_mortems() == []
    assert said in " ".join(str(run.summary()).split())


REPORT = (
    '{"time":"2025-06-04T18:21:07.412Z","type":"platform.report","record":{"requestId":"3f1b",'
    '"metrics":{"durationMs":4412.03,"memorySizeMB":512,"maxMemoryUsedMB":%d},"status":"%s"%s}}\n'
)


def test_lambda_reports_in_json_too() -> None:
    (death,) = read_text(
        REPORT % (512, "error", ',"errorType":"Runtime.OutOfMemory"')
    ).post_mortems()
    assert (death.proven, death.limit_mib) == (True, 512)
    well = read_text(REPORT % (301, "success", ""))
    assert well.post_mortems() == []
    assert well.container_states["memory_used_bytes"].to_list() == [301 * MIB]


def test_podman_calls_the_end_of_a_container_died() -> None:
    line = f"2025-02-02 10:00:01.1 +0000 UTC container {{}} {IDS[0]} (image=tiler:5, name=tiler{{}})"
    text = f"{line.format('oom', '')}\n{line.format('died', ', containerExitCode=137')}\n"
    (death,) = read_text(text).post_mortems()
    assert (death.victim, death.subject) == ("tiler", "The container")


JOB = """\
slurmstepd: error: Detected 2 oom_kill events in StepId=77.0. Some of the step tasks have been OOM
srun: error: cn042: task 3: Out Of Memory
JobID             State ExitCode     ReqMem     MaxRSS
77           OUT_OF_ME+    0:125         4G
77.bat+      OUT_OF_ME+    0:125                12764K
78           OUT_OF_ME+    0:125         4G
"""


def test_lines_about_one_job_are_one_death() -> None:
    deaths = read_text(JOB).post_mortems()
    assert [death.victim for death in deaths] == ["StepId=77.0", "78"]
    assert deaths[0].subject == "A process in the job"


@pytest.mark.parametrize(
    "text",
    [
        "slurmstepd: error: StepId=5.batch hit memory limit at least once during execution.\n",
        "slurmstepd: error: Exceeded step memory limit at some point.\n",
        "Cgroup memory limit exceeded: \n",
    ],
)
def test_a_limit_that_was_reached_is_no_kill(text: str) -> None:
    run = read_text(text)
    assert run.post_mortems() == []
    assert "reached its memory limit at least once" in " ".join(str(run.summary()).split())


IDS = ("9f1c2ab07e6d4d1d8a3bd0ad3b5d39f9b1fce1a1d50a0f6f3a4d1c2c1b0a9988", "b" * 64)
DIE = "2024-11-18T08:59:51Z container die {} (execDuration=5, exitCode=137, image=a, name=billing)"
POD = """\
Name:             batch-1
Containers:
  batch:
    State:          Terminated
      Reason:       Error
      Exit Code:    137
    Restart Count:  0
Events:
  Type     Reason      Age   From     Message
  ----     ------      ----  ----     -------
  Normal   Event       6m    kubelet  {}
  Normal   Killing     6m    kubelet  Stopping container batch
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (f"container kill {IDS[0]} (name=billing, signal=15)\n{DIE}", "it was asked to stop"),
        (
            f"container kill {IDS[0]} (name=billing, signal=9)\n{DIE}",
            "somebody sent it SIGKILL",
        ),
        (
            POD.format("Container batch failed liveness probe, will be restarted"),
            "its liveness",
        ),
        (POD.format("Container batch failed startup probe, will be restarted"), "its liveness"),
        (POD.format("Preempted in order to admit critical pod"), "its pod was preempted"),
        (POD.format("Preempted by default/pod-x on node n1"), "its pod was preempted"),
        (
            POD.format("Pod was active on the node longer than the specified deadline"),
            "the deadline of its pod",
        ),
        (
            POD.format("Pod was terminated in response to imminent node shutdown."),
            "its node was",
        ),
        (POD.format("The node was low on resource: ephemeral-storage."), "its pod was evicted"),
        (
            POD.format('Usage of EmptyDir volume "tmp" exceeds the limit "256Mi".'),
            "its pod was evicted because an emptyDir volume",
        ),
        (POD.format("Pulled"), "it was asked to stop"),
        ('"task: non-zero exit (137): dockerexec: unhealthy container"', "its health check"),
        ("=>> PBS: job killed: walltime 36 exceeded limit 30\nexit code: 137", "PBS ended"),
    ],
)
def test_an_end_that_the_input_gives_a_cause_other_than_memory_is_told_with_it(
    text: str, cause: str
) -> None:
    run = read_text(text.format(IDS[0]) + "\n")
    (death,) = run.post_mortems()
    assert (death.proven, death.kind) == (False, "Exit code 137")
    assert death.cause.startswith(f"with exit code 137 after {cause}")
    assert cause in " ".join(str(run.summary()).split())


def test_the_stop_of_another_container_is_no_cause() -> None:
    text = f"container kill {IDS[1]} (name=web, signal=15)\n{DIE.format(IDS[0])}\n"
    (death,) = read_text(text).post_mortems()
    assert death.cause in ("by SIGKILL", BY_CODE)


def test_containerd_names_the_container_and_its_end() -> None:
    told = f'level=info msg="{{}} container_id:\\"{IDS[0]}\\"{{}}"\n'
    text = told.format("TaskOOM event", "") + told.format(
        "received container exit event", f' id:\\"{IDS[0]}\\" pid:3 exit_status:137 exited_at:'
    )
    (death,) = read_text(text).post_mortems()
    assert (death.victim, death.subject) == ("container 9f1c2ab07e6d", "The container")


def test_a_container_without_a_name_is_called_one_once() -> None:
    state = '{{"Status": "exited", "OOMKilled": {}, "ExitCode": 137, "Pid": 0}}'
    for is_oom, deed in (("false", "ended with exit code 137"), ("true", "was killed")):
        text = f'[{{"Id": "{IDS[0]}", "State": {state.format(is_oom)}}}]'
        assert f"The container 9f1c2ab07e6d {deed}" in str(read_text(text).summary())


@pytest.mark.parametrize("code", [0, 1])
def test_a_container_that_ended_by_itself_lost_a_child(code: int) -> None:
    state = {"Status": "exited", "OOMKilled": True, "ExitCode": code, "Error": ""}
    (death,) = read_text(json.dumps(state)).post_mortems()
    assert death.subject == "A process in the container"
    assert f"The container ended with exit code {code}" in death.reading[0]


NOHANG = """\
Memory status that requires corrective actions:
  MemAvailable [312 MiB, 4.0 %] <= hard_threshold_min_mem [391 MiB, 5.0 %]
Victim status (found in 21ms):
  PID:       8841, name: indexer, state: R (running), EUID: 1000, SID: 8841 (indexer), lifetime: 2s
  badness:   1204, oom_score:  1204, oom_score_adj:  300
  Vm, MiB:   Size: 9120, RSS: 5210{}, Swap: 0
  cgroup_v2: /system.slice/indexer.service
Implementing a corrective action:
  Sending SIGKILL to the victim
"""


@pytest.mark.parametrize(
    ("detail", "rss_mib"), [("", 5210), (" (Anon: 5188, File: 22, Shmem: 1)", 5189)]
)
def test_nohang_is_a_kill_at_its_own_threshold(detail: str, rss_mib: int) -> None:
    (death,) = read_text(NOHANG.format(detail)).post_mortems()
    assert (death.killer, death.pid, death.victim) == ("nohang", 8841, "indexer")
    assert death.resident_mib == rss_mib
    assert death.reading[0].startswith(
        "312 MiB of the host's memory were available, at or below the threshold (5 %) of nohang"
    )


@pytest.mark.parametrize("why", ["failed to reclaim memory", "out of swap space"])
def test_freebsd_names_the_process_that_it_killed(why: str) -> None:
    text = f"Apr  4 23:02:43 fb kernel: pid 862 (mihomo), jid 0, uid 0, was killed: {why}\n"
    (death,) = read_text(text).post_mortems()
    assert (death.killer, death.pid, death.victim) == ("kernel", 862, "mihomo")
    short = f'The host was short of memory: its kernel gives "{why}" as the reason.'
    assert death.reading[0] == short


def test_earlyoom_acts_at_its_own_threshold() -> None:
    (death,) = read_text(
        "mem avail: 9216 of 16384 MiB (56.25%), swap free:    0 of    0 MiB ( 0.00%)\n"
        "low memory! at or below SIGTERM limits: mem 60.00%, swap 10.00%\n"
        + f"{CALLED}badness 310, VmRSS 3120 MiB\n"
        * 2
    ).post_mortems()
    assert death.cause == "by earlyoom because little memory was available"
    assert death.reading[0].startswith(
        "The lines of earlyoom do not show that it ended. 9,216 of 16,384 MiB "
        "were available, at or below the "
        "threshold (60 %) of earlyoom"
    )


def test_several_programs_were_asked_to_end() -> None:
    asked = 'sending SIGTERM to process {} uid 0 "{}": badness 900, VmRSS 7 MiB'
    lines = (asked.format(1, "api"), asked.format(2, "web"))
    run = read_text("".join(f"{EARLYOOM}{line}\n" for line in lines))
    headline = " ".join(str(run.summary()).split())
    assert headline.count("MiB resident and web with 7") == 1
    assert "were asked to end (SIGTERM) by earlyoom" in headline


MONIT = "Jun  4 03:11:22 web1 monit[1612]: 'api' "


@pytest.mark.parametrize(("lines_between", "kills"), [(1, 1), (20, 0)])
def test_a_restart_long_after_an_alert_for_memory_is_not_for_memory(
    lines_between: int, kills: int
) -> None:
    alert = f"{MONIT}mem amount of 1.2 GB matches resource limit [mem amount>1.0 GB]\n"
    between = "GET / 200\n" * lines_between
    run = read_text(f"gc 1 @0.1s\n{alert}{between}{MONIT}trying to restart\n")
    assert len(run.oom_kills) == kills
    if kills:
        (death,) = run.post_mortems()
        assert (death.kind, death.cause) == ("Restart", "by Monit for its memory use")


def test_a_supervisor_restarts_a_program_as_often_as_it_says() -> None:
    line = (
        "[PM2][WORKER] Process 3 restarted because it exceeds --max-memory-restart value "
        "(current_memory=178716672 max_memory_limit=146800640 [octets])\n"
    )
    assert read_text(line * 3).oom_kills["usage_bytes"].to_list() == [178716672] * 3


CONTAINER = {
    "containerArn": "arn:aws:ecs:eu:1:container/a",
    "name": "api",
    "exitCode": 137,
    "lastStatus": "STOPPED",
    "reason": "OutOfMemoryError: Container killed due to memory usage",
    "memory": "512",
}
TASK = {
    "taskArn": "arn:aws:ecs:eu:1:task/prod/0a1b",
    "containers": [CONTAINER, {"name": "envoy", "lastStatus": "STOPPED", "exitCode": 0}],
    "cpu": "256",
    "memory": "1024",
    "startedAt": "2026-11-23T09:00:00+00:00",
    "stoppedAt": "2026-11-23T10:00:09+00:00",
    "executionStoppedAt": "2026-11-23T10:00:01+00:00",
}


@pytest.mark.parametrize(
    "document",
    [{"tasks": [TASK], "failures": []}, {"source": "aws.ecs", "detail": TASK}, TASK],
    ids=["describe-tasks", "event", "task"],
)
@pytest.mark.parametrize("indent", [None, 4])
def test_ecs_containers_have_their_limits_and_ends(
    document: dict[str, Any], indent: int | None, tmp_path: Path
) -> None:
    run = read_lines(tmp_path, json.dumps(document, indent=indent))
    api, envoy = run.container_states.to_dicts()
    assert (api["name"], api["oom_killed"], api["exit_code"]) == ("api", True, 137)
    assert (api["memory_limit_bytes"], api["cpu_limit"]) == (512 * MIB, 0.25)
    assert api["finished_at"] == datetime(2026, 11, 23, 10, 0, 1, tzinfo=UTC)
    assert (envoy["oom_killed"], envoy["memory_limit_bytes"]) == (None, 1024 * MIB)
    (death,) = run.post_mortems()
    assert (death.victim, death.limit_mib) == ("api", 512)


def test_one_of_several_containers_of_ecs_may_have_ended_before_its_task() -> None:
    of_task = {
        "stopCode": "EssentialContainerExited",
        "stoppingAt": "2026-11-23T10:00:00+00:00",
    }
    other = {"name": "envoy", "lastStatus": "STOPPED", "exitCode": 137}
    task = {**TASK, **of_task, "containers": [CONTAINER, other]}
    api, envoy = read_text(json.dumps({"tasks": [task]})).container_states["finished_at"]
    assert (api.second, envoy) == (0, None)
    del task["stoppingAt"]
    assert read_text(json.dumps(task)).container_states["finished_at"].to_list() == [None, None]


def test_a_container_of_ecs_ended_when_its_task_began_to_stop_because_of_it(
    tmp_path: Path,
) -> None:
    """The other containers of a task may take half a minute to stop."""
    for code, second in (("EssentialContainerExited", 0), ("UserInitiated", 1)):
        task = TASK | {"stopCode": code, "stoppingAt": "2026-11-23T10:00:00+00:00"}
        (death,) = read_lines(tmp_path, json.dumps(task)).post_mortems()
        assert death.logged_at == datetime(2026, 11, 23, 10, 0, second, tzinfo=UTC)


@pytest.mark.parametrize(
    ("of_task", "cpus"),
    [({}, 0.25), ({"cpu": None}, None), ({"platformFamily": "WINDOWS_SERVER_2022_CORE"}, 0.5)],
    ids=["a task with a size", "a share", "Windows"],
)
def test_cpu_units_of_a_container_are_a_share(
    of_task: dict[str, Any], cpus: float | None, tmp_path: Path
) -> None:
    task = {**TASK, "containers": [{**CONTAINER, "cpu": "512"}], **of_task}
    run = read_lines(tmp_path, json.dumps({"tasks": [task]}))
    assert run.container_states["cpu_limit"].to_list() == [cpus]


KERNEL = (
    "{} node-1 kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,"
    "mems_allowed=0,oom_memcg=/nomad.slice/a.scope,task_memcg=/nomad.slice/a.scope,task=api,"
    "pid=4711,uid=0\n"
    "{} node-1 kernel: Memory cgroup out of memory: Killed process 4711 (api) "
    "total-vm:2048000kB, anon-rss:500000kB, file-rss:4096kB, shmem-rss:0kB\n"
)


@pytest.mark.parametrize(("second", "deaths"), [("02", 1), ("30", 2)])
def test_a_report_that_names_no_program_right_after_a_kill_is_the_same_death(
    second: str, deaths: int
) -> None:
    at = "2026-11-23T10:00:01Z"
    text = f'2026-11-23T10:00:{second}Z  Terminated  Exit Code: 137, Exit Message: "OOM Killed"'
    run = read_text(KERNEL.format(at, at) + text + "\n")
    assert len(run.post_mortems()) == deaths


def test_times_of_the_first_version_of_the_aws_command_line_are_read(tmp_path: Path) -> None:
    task = TASK | {"executionStoppedAt": 1795428001.5, "startedAt": 1795424400}
    run = read_lines(tmp_path, json.dumps({"tasks": [task]}))
    ended = datetime.fromtimestamp(1795428001.5, UTC)
    assert run.container_states["finished_at"].to_list() == [ended] * 2


@pytest.mark.parametrize("containers", [5, [5], None, {}])
def test_odd_containers_are_not_those_of_ecs(containers: object, tmp_path: Path) -> None:
    line = next(iter(records(1)))
    run = read_lines(tmp_path, json.dumps({"containers": containers, "message": line}))
    assert len(run.cycles) == 1


@pytest.mark.parametrize("among", [0, 200], ids=["alone", "among records"])
@pytest.mark.parametrize(
    "form",
    ["2026-11-23T10:00:01Z EVENT\n", '{"detail-type":"other","detail":{}}\nEVENT\nEVENT\n'],
)
def test_an_event_of_ecs_in_a_log_is_the_state_of_its_containers(form: str, among: int) -> None:
    event = json.dumps({"source": "aws.ecs", "detail": TASK})
    lines = "".join(f"{line}\n" for line in records(among))
    run = read_text(lines + form.replace("EVENT", event))
    assert set(run.container_states["name"]) >= {"api"}
    (death,) = run.post_mortems()
    assert (death.victim, death.limit_mib, death.proven) == ("api", 512, True)


@pytest.mark.parametrize("text", ["reason: {}", '7 {{"detail": 7}} {}', "7 {{cut {}"])
def test_a_text_about_a_kill_by_ecs_is_a_death(text: str) -> None:
    reason = "OutOfMemoryError: Container killed due to memory usage"
    (death,) = read_text(text.format(reason) + "\n").post_mortems()
    assert death.proven


BATCH: dict[str, Any] = {
    "jobName": "reindex",
    "status": "FAILED",
    "startedAt": 1780541500000,
    "stoppedAt": 1780541912000,
    "container": {
        "taskArn": "arn:aws:ecs:eu-west-1:000000000000:task/2",
        "exitCode": 137,
        "reason": "OutOfMemoryError: Container killed due to memory usage",
        "resourceRequirements": [
            {"value": "4", "type": "VCPU"},
            {"value": "2048", "type": "MEMORY"},
        ],
    },
}


@pytest.mark.parametrize(
    ("of_job", "deaths"),
    [
        ({}, 1),
        ({"attempts": [{"stoppedAt": 1780541400000}, {"stoppedAt": 1780541912000}]}, 2),
        ({"container": {**BATCH["container"], "reason": None}, "statusReason": "timed out"}, 0),
    ],
    ids=["a job", "two attempts", "one that was stopped"],
)
@pytest.mark.parametrize("where", ["jobs", "detail"])
def test_each_attempt_of_a_job_is_one_death(
    of_job: dict[str, Any], deaths: int, where: str, tmp_path: Path
) -> None:
    job = {**BATCH, **of_job}
    value = {"jobs": [job]} if where == "jobs" else {"detail": job}
    run = read_lines(tmp_path, json.dumps(value))
    proven = [death for death in run.post_mortems() if death.proven]
    assert [(death.victim, death.limit_mib) for death in proven] == [("reindex", 2048)] * deaths
    assert run.container_states["finished_at"].null_count() == 0
    if not deaths:
        assert "timed out" in run.container_states["stopped_by"][0]


NOMAD = """Task "{name}" is "running"
Task Resources:
CPU         Memory          Disk     Addresses
12/500 MHz  31 MiB/{limit} MiB  300 MiB

Recent Events:
Time                  Type        Description
2026-06-04T03:12:{second}Z  Started     Task started by client
2026-06-04T03:11:{second}Z  Terminated  Exit Code: 137, Exit Message: "OOM Killed"
2026-06-03T22:01:{second}Z  Terminated  Exit Code: 137, Exit Message: "OOM Killed"
"""


def test_events_of_a_task_may_be_in_reverse_order_below_its_limit() -> None:
    run = read_text(NOMAD.format(name="api", limit=300, second=11))
    assert {death.limit_mib for death in run.post_mortems()} == {300}


def test_each_task_of_an_allocation_has_its_own_kills() -> None:
    tasks = (NOMAD.format(name=name, limit=limit, second=limit % 60) for name, limit in LIMITS)
    run = read_text("".join(tasks))
    deaths = [(death.victim, death.limit_mib) for death in run.post_mortems()]
    assert sorted(deaths) == [("api", 256), ("api", 256), ("web", 512), ("web", 512)]


def test_rows_of_a_task_have_their_own_times_behind_those_of_a_collector() -> None:
    lines = enumerate(NOMAD.format(name="api", limit=300, second=11).splitlines())
    text = "".join(f"2026-06-04T08:00:{at:02}.5Z stdout F {line}\n" for at, line in lines)
    days = [death.logged_at.day for death in read_text(text).post_mortems() if death.logged_at]
    assert sorted(days) == [3, 4]


LIMITS = (("web", 512), ("api", 256))


KILLED: dict[str, str | None] = {
    "signal: killed": None,
    "go build example.com/x: /usr/local/go/pkg/tool/linux_amd64/compile: signal: killed": "compile",
    "exit status 137": None,
    "command terminated with exit code 137": None,
    "Process completed with exit code 137.": None,
    "The command '/bin/sh -c go build ./...' returned a non-zero code: 137": None,
    "make: *** [Makefile:21: lint] Error 137": None,
    "make: *** [test] Killed": None,
    "Killed": None,
    "./run.sh: line 3: 12345 Killed                  ./server -v": "server",
    "[1]+  Killed                  bin/api": "api",
    "[1]    12345 killed     ./server": "server",
    "[1]  + 12345 killed     ./server -v": "server",
    "zsh: killed     api": "api",
    "./run.sh: line 3: 12345 Killed                  A=1 B='' exec env C=2 bin/api 2>&1": "api",
    "./run.sh: line 3: 12345 Killed                  ( cd bin; ./api )": None,
    "./run.sh: line 3: 12345 Killed: 9               ./api": "api",
    "Command terminated by signal 9": None,
    "2026/11/26 10:34:35 worker 3 exited: signal: killed, restarting": None,
    "fish: Job 1, './api -v' terminated by signal SIGKILL (Forced quit)": "api",
    "Process finished with the exit code 137 (interrupted by signal 9: SIGKILL)": None,
    "INFO exited: api (terminated by SIGKILL; not expected)": "api",
    "2026-11-26 10:34:18,101 INFO exited: api (terminated by SIGKILL; not expected)": "api",
    "PM2 | App [api:0] exited with code [0] via signal [SIGKILL]": "api:0",
    "|  api   |  STOPPED  |  137  |  None  |": "api",
}


@pytest.mark.parametrize("among", [0, 200], ids=["alone", "among records"])
@pytest.mark.parametrize("text", KILLED)
def test_an_end_by_sigkill_alone_proves_nothing(text: str, among: int) -> None:
    run = read_text("".join(f"{line}\n" for line in records(among)) + f"{text}\n")
    (state,) = run.container_states.to_dicts()
    assert (state["signal"], state["oom_killed"]) == ("KILL", None)
    (death,) = run.post_mortems()
    assert (death.proven, death.victim) == (False, KILLED[text])


def test_lines_about_one_end_are_one() -> None:
    shell = "/bin/bash: line 1:  2214 Killed                  golangci-lint run ./..."
    run = read_text(f"{shell}\nmake: *** [Makefile:21: lint] Error 137\n")
    (state,) = run.container_states.to_dicts()
    assert (state["name"], state["exit_code"]) == ("golangci-lint", 137)


@pytest.mark.parametrize("text", KILLED)
def test_a_program_that_runs_on_was_not_killed(text: str) -> None:
    first, *others = records(9)
    assert not read_text("\n".join([first, text, *others, ""])).post_mortems()


def test_what_was_killed_may_start_again() -> None:
    lines = [*records(9), "signal: killed", *records(9), ""]
    (death,) = read_text("\n".join(lines)).post_mortems()
    assert (death.proven, death.line_no) == (False, 10)


@pytest.mark.parametrize(
    "text",
    ["filled", "Killed by the boss, who else", "3 jobs killed", "Error 1370", "exit status 1"],
)
def test_other_words_are_no_end(text: str) -> None:
    lines = "".join(f"{line}\n" for line in records(3))
    assert not read_text(f"{lines}{text}\n").post_mortems()


def test_a_test_that_ran_too_long_was_stopped() -> None:
    text = "*** Test killed: ran too long (11m0s).\nsignal: killed\nFAIL\tpkg\t660.012s\n"
    (death,) = read_text(text).post_mortems()
    assert "`go test -timeout`" in death.cause


def test_docker_stats_show_how_near_a_container_is_to_its_own_limit() -> None:
    row = '{{"Container":"{0}","ID":"{0}","MemPerc":"9.38%","MemUsage":"{1}MiB / {2}","Name":"{3}"}}'
    used = [
        row.format("9f1d0c6b7a31", size, "512MiB", "api-1") for size in ("401.2", "498.6", "90")
    ]
    host = row.format("51e2a77ad0c4", 2154, "31.19GiB", "db-1")
    run = read_text("\n".join([host, *used, ""]))
    sizes = run.container_states.select("name", "memory_limit_bytes").rows()
    assert sizes == [("db-1", None), ("api-1", 1 << 29)]
    said = " ".join(str(run.summary()).split())
    assert "api-1 used 499 MiB of its 512 MiB (97.4 %): 13.4 MiB are left" in said
    assert run.post_mortems() == []


@pytest.mark.parametrize(
    ("used", "quota"),
    [("526M(102.9%)", 512), ("1210M(236.5%)", 512), ("15000M(104.6%)", 14336)],
)
def test_the_quota_of_a_dyno_is_the_size_that_it_has(used: str, quota: int) -> None:
    at = "2026-03-03T00:29:10.012054+00:00 heroku[web.1]:"
    run = read_text(
        f"{at} Process running mem={used}\n{at} Error R14 (Memory quota exceeded)\n"
    )
    (state,) = run.container_states.to_dicts()
    assert state["memory_limit_bytes"] == quota * MIB


def test_a_dyno_that_was_stopped_may_have_exceeded_its_quota() -> None:
    at = "2026-03-03T00:{}:10+00:00 heroku[web.1]:"
    used = f"{at.format(29)} Process running mem=1101M(215.1%)\n"
    (death,) = read_text(
        f"{used}{at.format(34)} Stopping all processes with SIGTERM\n"
        f"{at.format(35)} Stopping remaining processes with SIGKILL\n"
        f"{at.format(35)} Process exited with status 137\n"
    ).post_mortems()
    assert not death.proven
    assert "It used 1,101 MiB at most; its limit is 512 MiB." in " ".join(death.reading)


def test_a_quota_that_was_exceeded_is_said_without_its_size() -> None:
    run = read_text(
        "2026-01-02T00:51:32.761835+00:00 heroku[web.1]: Error R14 (Memory quota exceeded)\n"
    )
    (state,) = run.container_states.to_dicts()
    assert (state["container"], state["event"]) == ("web.1", "at limit")
    assert state["oom_killed"] is None


def test_a_kill_without_a_name_is_of_the_cycles_before_it() -> None:
    lines = [*records(9), "signal: killed", *records(9), ""]
    (death,) = read_text("\n".join(lines)).post_mortems()
    assert (death.process, death.match_by) == (0, ("place in the log",))
    named = "2026-03-01T09:00:00Z r.sh: line 3: 12 Killed                  bin/api"
    for text in (named, named[21:]):
        (death,) = read_text("\n".join([*records(9), text, ""])).post_mortems()
        assert (death.process, death.match_by) == (0, ("place in the log",))
    # What was killed before the program started is something else.
    (other,) = read_text(
        "\n".join(["[1]+  Killed   bin/migrate", *records(9), ""])
    ).post_mortems()
    assert (other.process, other.victim) == (None, "migrate")


def test_that_a_program_was_killed_comes_before_what_gc_cost_it() -> None:
    log = "\n".join([*records(30), ""])
    assert "killed" not in str(read_text(log).report().verdict)
    said = read_text(f"{log}signal: killed\n").report().verdict
    assert said is not None
    assert said.sentence.startswith("The program was killed by SIGKILL")


def test_docker_stats_prints_the_memory_of_the_host_where_no_limit_is_set() -> None:
    """Only what is below that of another container is a limit for certain."""
    shown = ["9f1d0c6b7a31 ledger 41.20% 498.6MiB / 16GiB 97.38%"]
    (row,) = read_text("\n".join([*shown, ""])).container_states.to_dicts()
    assert (row["memory_limit_bytes"], row["memory_of_host_bytes"]) == (None, 16 * 1024 * MIB)
    shown.append("9f1d0c6b7a32 api 0.46% 284.3MiB / 512MiB 55.5%")
    rows = read_text("\n".join([*shown, ""])).container_states.to_dicts()
    assert [row["memory_limit_bytes"] for row in rows] == [None, 512 * MIB]
    assert [row["memory_of_host_bytes"] for row in rows] == [16 * 1024 * MIB, None]


def test_docker_stats_of_old_versions_is_read() -> None:
    (row,) = read_text(
        "CONTAINER  CPU %   MEM USAGE/LIMIT     MEM %   NET I/O\n"
        "app        51.20%  1.25 GiB/2.5 GiB    50.00%  58.48 MiB/729.5 MiB\n"
    ).container_states.to_dicts()
    assert (row["name"], row["memory_used_bytes"]) == ("app", 1280 * MIB)
    assert row["memory_limit_bytes"] == 2560 * MIB


def test_old_docker_stats_have_decimal_sizes() -> None:
    (row,) = read_text(
        "CONTAINER  CPU %   MEM USAGE / LIMIT     MEM %   NET I/O\n"
        "app        0.00%   343.7 MB / 8.372 GB   4.11%   12.43 MB / 123.6 MB\n"
    ).container_states.to_dicts()
    assert (row["memory_used_bytes"], row["memory_of_host_bytes"]) == (343700000, 8372000000)


STATS = {"BlockIO": "0B / 0B", "ID": "9f3b2a11c0de", "MemPerc": "78.59%", "Name": "thumbs"}


@pytest.mark.parametrize("indent", [None, 2])
def test_a_document_of_docker_stats_is_read(indent: int | None, tmp_path: Path) -> None:
    text = json.dumps(STATS | {"MemUsage": "201.2MiB / 256MiB"}, indent=indent)
    (row,) = read_lines(tmp_path, text).container_states.to_dicts()
    assert (row["name"], row["memory_of_host_bytes"]) == ("thumbs", 256 * MIB)


def test_a_killed_container_that_runs_again_has_the_limit_that_docker_stats_shows() -> None:
    (death,) = read_text(
        f"{AT} container oom 9f3b2a11c0de (image=reg/thumbs:9, name=thumbs)\n"
        f"{AT} container die 9f3b2a11c0de (execDuration=812, exitCode=137, name=thumbs)\n"
        "CONTAINER ID   NAME      CPU %     MEM USAGE / LIMIT     MEM %\n"
        "9f3b2a11c0de   thumbs    12.31%    201.2MiB / 256MiB     78.59%\n"
    ).post_mortems()
    assert (death.limit_mib, "memory limit as well" in str(death)) == (256, False)


@pytest.mark.parametrize("is_asked_before", [True, False])
def test_a_command_that_stops_a_container_after_its_end_is_no_cause(
    is_asked_before: bool,
) -> None:
    command, listed = (
        "$ docker stop thumbs",
        "9f3b2a11c0de   a:9   Exited (137) 4 minutes ago   thumbs",
    )
    lines = (command, listed) if is_asked_before else (listed, command)
    (death,) = read_text("\n".join([*lines, ""])).post_mortems()
    assert ("asked to stop" in death.cause) == is_asked_before


@pytest.mark.parametrize(
    "row",
    [
        "{name}  0.00%  12.5MiB / 256MiB  4.97%",
        "{name}  12.5MiB / 256MiB  4.97%",
        "{name}  0.00%  4.97%  12.5MiB / 256MiB  1.2kB / 0B",
        "{name}  0.00%  12.5MiB / 256MiB",
    ],
)
def test_docker_stats_with_a_format_of_its_own_is_read(row: str) -> None:
    text = f"{row.format(name='web')}\n{row.format(name='9f1d0c6b7a31')}\n"
    rows = read_text(text).container_states.to_dicts()
    assert [row["name"] for row in rows] == ["web", "9f1d0c6b7a31"]
    assert {row["memory_used_bytes"] for row in rows} == {12.5 * MIB}
    assert not len(read_text(text + "fetching  12.5MiB / 256MiB\n").container_states) > 2


def test_a_report_of_lambda_is_no_line_of_journald() -> None:
    run = read_text(
        "2024-09-10T13:32:59.424Z START RequestId: 7102cad9 Version: $LATEST\n"
        "2024-09-10T13:32:59.424Z REPORT RequestId: fa60295b Duration: 19266.38 ms "
        "Memory Size: 512 MB Max Memory Used: 71 MB\n"
    )
    (source,) = run.sources
    assert [*source.wrappers] == ["timestamp"]


def test_what_nomad_says_of_a_task_is_no_name() -> None:
    text = "2022-04-21T15:32:50Z  Killed      Task successfully killed\n"
    with pytest.raises(NoDataError):
        read_text(text)


def test_a_runtime_of_aws_lambda_has_no_log_of_a_kernel() -> None:
    line = "RequestId: 4f Error: Runtime exited with error: signal: killed"
    (death,) = read_text(f"{line}\nRuntime.ExitError\n").post_mortems()
    assert "journalctl" not in str(death)
    assert "Max Memory Used" in " ".join(death.advice)


@pytest.mark.parametrize(
    ("end", "deed"),
    [
        ("", "asked to end (SIGTERM)"),
        ("The victim died in 0.2s\n", "killed"),
    ],
)
def test_a_sigterm_of_nohang_is_a_request_until_the_program_died(end: str, deed: str) -> None:
    text = NOHANG.format("").replace("SIGKILL", "SIGTERM") + end
    (death,) = read_text(text).post_mortems()
    assert (death.deed, death.cause.split()[:2]) == (deed, ["by", "nohang"])
    assert "earlyoom" not in " ".join(death.reading)


@pytest.mark.parametrize("prefix", ["", "[pod/alertmanager-7d9/alertmanager] "])
def test_a_message_is_about_whom_it_names_and_not_about_who_printed_it(prefix: str) -> None:
    line = "Container ledger in pod prod/ledger-6c5f7d8b9-abcde has been OOMKilled 3 times in the last 10 minutes."
    (death,) = read_text(f"{prefix}{line}\n").post_mortems()
    assert (death.victim, death.pod) == ("ledger", "ledger-6c5f7d8b9-abcde")


@pytest.mark.parametrize("at", ["2017-03-14 11:23:{},752", "2017-03-14T11:23:{}Z"])
def test_what_a_supervisor_restarts_ends_again(at: str) -> None:
    line = f"{at} INFO exited: {{}} (terminated by SIGKILL; not expected)\n"
    text = "".join(line.format(*end) for end in ((36, "01"), (40, "11"), (44, "01")))
    assert read_text(text).container_states["name"].to_list() == ["01", "11", "01"]


def test_the_exit_code_of_a_function_that_used_little_is_its_own() -> None:
    text = (
        "REPORT RequestId: d88f  Duration: 631.51 ms  Memory Size: 256 MB  Max Memory Used: {} MB\n"
        "RequestId: d88f Error: Runtime exited with error: exit status 137\n"
    )
    small, full = (read_text(text.format(mib)).container_states for mib in (18, 256))
    assert (small["signal"].to_list(), small["memory_used_bytes"].to_list()) == (
        [None],
        [18 * MIB],
    )
    assert full["oom_killed"].to_list() == [True]


def test_an_app_that_reached_the_limit_of_ios_did_not_die_of_others() -> None:
    text = (
        "EXC_RESOURCE -> Tunnel[382] exceeded mem limit: ActiveHard 50 MB (fatal)\n"
        "memorystatus: killing_specific_process pid 382 [Tunnel] (per-process-limit 100) 51201KB - x\n"
        "Process Tunnel [382] killed by jetsam reason per-process-limit\n"
    )
    (death,) = read_text(text).post_mortems()
    assert (
        death.reading[0]
        == "macOS ended it: it used 50.0 MiB, at or above its limit there, 50 MiB."
    )
    assert "ps aux" not in " ".join(death.advice)


def test_a_supervisor_without_a_known_limit_does_not_say_that_memory_ran_low() -> None:
    text = (
        "restarted the process named api at Tue Mar 14 11:23:36 2017 because it was consuming too "
        "much memory (104857600 bytes RSS)\n"
    )
    for death in read_text(text).post_mortems():
        assert "ran low on memory" not in " ".join(death.reading)


OF_SLURM = (
    "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=191.batch cgroup. Some of your "
    "processes may have been killed by the cgroup out-of-memory handler.\n"
)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python3 main.py --epochs 400", "python3"),
        ("srun /opt/sim/bin/sim -n 3", "sim"),
        ("OMP_NUM_THREADS=4 ./sim", "sim"),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_the_shell_names_the_program_of_a_job(command: str, name: str, order: int) -> None:
    shell = (
        f"/var/spool/slurmd/slurm_script: line 28:  8156 Killed                  {command}\n"
    )
    run = read_text("".join([shell, OF_SLURM][::order]))
    (death,) = run.post_mortems()
    headline = " ".join(str(run.summary()).split())
    assert f"The program {name} was killed because memory ran out" in headline
    assert "It reached the memory limit of its job" in headline
    is_go = [text for text in death.advice if text.startswith(f"If {name} is written in Go")]
    assert bool(is_go) == (name == "sim")


def test_of_several_programs_that_a_shell_names_none_is_the_one_of_the_job() -> None:
    shell = "slurm_script: line {0}:  {0} Killed                  ./p{0}\n"
    run = read_text(shell.format(1) + shell.format(2) + OF_SLURM)
    assert "A process in the job" in " ".join(str(run.summary()).split())


def test_the_number_of_an_instance_is_no_program() -> None:
    run = read_text(
        "==> Instance failed: 7xk2p\n"
        "Ran out of memory (used over 512MB) while running your code.\n"
    )
    (death,) = run.post_mortems()
    headline = " ".join(str(run.summary()).split())
    assert "The instance 7xk2p was killed because memory ran out" in headline
    assert "(or its host" not in headline
    assert death.advice[0].startswith("If the program in it is written in Go, set GOMEMLIMIT=")


def test_the_kind_and_message_of_a_platform_are_not_those_of_kubernetes() -> None:
    line = "Memory limit of 512 MiB exceeded with 514 MiB used."
    run = read_text(f"{line}\n")
    (death,) = run.post_mortems()
    assert (death.kind, death.error) == ("Killed for memory", line)
    assert f"  Message      {line}" in str(run.summary())


def test_what_was_available_earlier_is_not_said_to_be_below_the_threshold() -> None:
    text = (
        "mem avail: 1012 of 7914 MiB (12.79%), swap free:    0 of    0 MiB ( 0.00%)\n"
        "low memory! at or below SIGTERM limits: mem 10.00%, swap 10.00%\n"
        f"{CALLED}badness 310, VmRSS 3120 MiB\n"
    )
    (death,) = read_text(text).post_mortems()
    assert "earlyoom last printed that 1,012 of " in death.reading[0]
    assert "below" not in death.reading[0]


def test_the_kills_of_a_control_group_are_counted() -> None:
    text = "memory.events\nlow 0\nhigh 0\nmax 1931\noom 12\noom_kill 3\n"
    (death,) = read_text(text).post_mortems()
    assert "3 processes in it were killed" in death.reading[0]


def test_cloud_run_prints_an_exit_code_alone() -> None:
    (death,) = read_text("Container called exit(137).\n").post_mortems()
    assert (death.kind, death.proven) == ("Exit code 137", False)


def test_a_table_of_sacct_has_the_limit_of_a_job_and_what_it_used() -> None:
    text = (
        "JobID           JobName      State ExitCode     ReqMem     MaxRSS    Elapsed \n"
        "------------ ---------- ---------- -------- ---------- ---------- ---------- \n"
        "8811           mapreads  COMPLETED      0:0         4G              00:41:12 \n"
        "8812           mapreads OUT_OF_ME+    0:125         8G              00:41:12 \n"
        "8812.batch        batch OUT_OF_ME+    0:125              8370212K   00:41:12 \n"
    )
    step = (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=8812.batch. Some of the step\n"
    )
    for before, victim in (("", "8812"), (step, "StepId=8812.batch")):
        (death,) = read_text(f"{before}{text}").post_mortems()
        assert (death.limit_mib, death.victim) == (8192, victim)
        assert "It used 8,174 MiB of its limit, 8,192 MiB." in death.reading
    (of_cpus,) = read_text(text.replace(" 8G", "8Gc")).post_mortems()
    assert of_cpus.limit_mib is None, "that is the memory of each CPU"


def test_diego_says_of_any_error_that_memory_ran_out() -> None:
    line = "2020-01-24T11:40:56.642+01:00 [{}/0] [ERR] Failed to connect (out of memory)\n"
    (death,) = read_text(line.format("HEALTH")).post_mortems()
    assert (death.kind, death.proven) == ("OOM kill in a container", True)
    # The program itself may print anything.
    with pytest.raises(NoDataError):
        read_text(line.format("APP/PROC/WEB"))


def test_the_kill_of_macos_for_low_swap_is_read() -> None:
    text = (
        "2025-11-21 18:02:44.118412+0100 0x0        Default     0x0                  0      0    "
        "kernel: low swap: killing largest compressed process with pid 48211 (gopls) and size "
        "14322 MB\n"
    )
    (death,) = read_text(text).post_mortems()
    assert (death.killer, death.victim, death.pid) == ("macOS", "gopls", 48211)
    assert "macOS ran low on memory and ended it: it used 14.0 GiB." in death.reading


def test_an_attempt_that_failed_is_not_the_end() -> None:
    asked = (
        'earlyoom[1]: sending SIGTERM to process 696 uid 1001 "ipfs": badness 9, VmRSS {} MiB'
    )
    text = "\n".join(
        f"Jun 12 06:39:{line}"
        for line in (
            f"16 h {asked.format(637)}", "26 h earlyoom[1]: kill failed: Timer expired",
            f"26 h {asked.format(656)}", "26 h earlyoom[1]: process exited after 0.1 seconds",
        )
    )  # fmt: skip
    (death,) = read_text(text).post_mortems()
    assert (death.printed_at, death.resident_mib) == ("Jun 12 06:39:26", 656)
    assert "It ended after that." in death.reading[0]


def test_the_messages_of_jetsam_are_read_without_their_beginnings() -> None:
    at_limit = (
        "16:12:49.226  kernel: memorystatus: exceeded mem limit: ActiveHard 50 MB (fatal)\n"
    )
    kill = "16:12:49.229  kernel: killing_specific_process pid 1879 [Tunnel] ... 51200KB\n"
    (death,) = read_text(at_limit + kill).post_mortems()
    assert (death.victim, death.pid, death.limit_mib) == ("Tunnel", 1879, 50)
    assert death.cause == "because it reached the memory limit that macOS sets for it"
    assert [len(read_text(text).post_mortems()) for text in (at_limit, kill)] == [1, 1]


def test_two_tasks_of_a_swarm_end_two_times() -> None:
    lines = [
        f"{task}    \\_ api.1     shop/api:3.2   node-1   Shutdown   Failed {ago} minutes ago   "
        '"task: non-zero exit (137)"\n'
        for task, ago in (("x8w1m2n3b4v5", 3), ("p0o9i8u7y6t5", 41))
    ]
    run = read_text("".join(lines))
    assert [death.victim for death in run.post_mortems()] == ["api.1", "api.1"]
    assert "Exit code 137: api.1, 2 times" in str(run.summary())
