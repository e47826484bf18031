"""Kills for memory that platforms and earlyoom report."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

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
    "AWS Lambda, another run": (
        f"{AT} REPORT RequestId: 1c2d\tMemory Size: 2688 MB\tMax Memory Used: 2581 MB\t\n\n\n"
        f"{AT} RequestId: 3e4f Error: Runtime exited with error: signal: killed",
        {"memory_limit_bytes": 2688 * MIB, "memory_used_bytes": 2581 * MIB},
    ),
    "AWS Lambda": (
        f"{AT} REPORT RequestId: 1c2d\tMemory Size: 128 MB\tMax Memory Used: 128 MB\t\n"
        f"{AT} RequestId: 1c2d Error: Runtime exited with error: signal: killed",
        {"memory_limit_bytes": 128 * MIB},
    ),
}


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
        assert known is not None
        assert known.value == limit / MIB
        assert known.source.startswith("message of the platform")


@pytest.mark.parametrize(
    "text",
    [
        "REPORT RequestId: 1c2d\tMemory Size: 128 MB\tMax Memory Used: 90 MB\t\n"
        "RequestId: 1c2d Error: Runtime exited with error: signal: killed\n",
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
    assert "It was asked to stop shortly before" in death.reading[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "REPORT RequestId: 1c2d\tMemory Size: 1536 MB\tMax Memory Used: 1536 MB\t\n",
            "It used up to 1,536 MiB of its 1,536 MiB (100 %): it has reached its limit",
        ),
        (
            "2026-11-23T10:00:01Z heroku[web.1]: Process running mem=807M(157.7%)\n"
            "2026-11-23T10:00:01Z heroku[web.1]: Error R14 (Memory quota exceeded)\n",
            "The container web.1 used up to 807 MiB of its 512 MiB (158 %): it is over its limit",
        ),
        (
            "2026-11-23T10:00:01Z heroku[web.1]: source=web.1 sample#memory_total=307.20MB "
            "sample#memory_rss=300.00MB sample#memory_quota=512.00MB\n",
            "used up to 307 MiB of its 512 MiB (60.0 %): it is below its limit",
        ),
    ],
)
def test_how_near_a_container_is_to_its_limit_is_said_without_a_kill(
    text: str, said: str
) -> None:
    run = read_text(text)
    assert run.post_mortems() == []
    assert said in " ".join(str(run.summary()).split())


def test_earlyoom_acts_at_its_own_threshold() -> None:
    (death,) = read_text(
        "mem avail: 9216 of 16384 MiB (56.25%), swap free:    0 of    0 MiB ( 0.00%)\n"
        "low memory! at or below SIGTERM limits: mem 60.00%, swap 10.00%\n"
        + f"{CALLED}badness 310, VmRSS 3120 MiB\n"
        * 2
    ).post_mortems()
    assert death.cause == "by earlyoom because little memory was available"
    assert death.reading[0].startswith(
        "56.25 % of the host's memory (9,216 of 16,384 MiB) was available, at or below its own "
        "threshold of 60 %"
    )


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
