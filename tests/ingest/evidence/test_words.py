"""Lines that say OOMKilled in words of their own, and the files of a control group."""

from __future__ import annotations

from typing import Any

import pytest

from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.testing import read_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Reason: OOMKilled\nExit Code: 137\n", {"exit_code": 137}),
        (
            "Container api in pod api-1 terminated with OOMKilled\n",
            {"container": "api", "pod": "api-1"},
        ),
        ("level=warn reason=OOMKilled object=pod/api-1\n", {"pod": "api-1"}),
        (
            '{"level":"warn","msg":"pod shop/api-1 container api terminated (OOMKilled)"}\n',
            {"pod": "api-1", "namespace": "shop", "container": "api"},
        ),
        (
            "2026-03-06T09:17:44Z,payments,pay-api-6d4f8db7bd-kkj2m,pay-api,37,Terminated,"
            "OOMKilled,137\n",
            {
                "pod": "pay-api-6d4f8db7bd-kkj2m",
                "container": "pay-api",
                "restart_count": 37,
                "exit_code": 137,
            },
        ),
        ("api-0\tTerminated\tOOMKilled\t137\n", {"pod": "api-0"}),
        ("container=api status=Terminated:OOMKilled restarts=4\n", {"restart_count": 4}),
        ("The pod api-1 was OOMKilled, exit code 137\n", {"pod": "api-1", "exit_code": 137}),
        (
            "ERROR: Job failed: Error in container build: exit code: 137, reason: 'OOMKilled'\n",
            {"container": "build", "exit_code": 137},
        ),
        ("x build  build-x9z-1  12m  OOMKilled (exit code 137)\n", {"exit_code": 137}),
        (
            "Container 'api' was terminated with exit code '137' and reason 'OOMKilled'\n",
            {"container": "api"},
        ),
        (
            '"container limit 2Gi, 230 restarts", reason: OOMKilled, pod memory 1Gi\n',
            {"container": None, "pod": None},
        ),
    ],
)
def test_a_container_is_reported_in_any_words(text: str, expected: dict[str, Any]) -> None:
    run = read_text(text)
    (row,) = run.container_states.to_dicts()
    assert row["oom_killed"] is True
    assert {name: row[name] for name in expected} == expected
    assert run.findings()["id"].to_list() == ["GC039"]


@pytest.mark.parametrize(
    "text",
    [
        "pod api-1 is not OOMKilled\n",
        "why was my pod OOMKilled?\n",
        "OOMKilled=false exit=1\n",
        "alert if a container is OOMKilled\n",
    ],
)
def test_a_line_that_denies_or_asks_reports_nothing(text: str) -> None:
    with pytest.raises(NoDataError):
        read_text(text)


EVENTS = "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\n"
KILL = (
    "[ 1201.114502] Memory cgroup out of memory: Killed process 2047 (app) total-vm:6291456kB, "
    "anon-rss:520000kB, file-rss:0kB, shmem-rss:0kB\n"
)


def test_the_files_of_a_control_group_show_hits_of_its_limit_and_kills() -> None:
    run = read_text("memory.events\n" + EVENTS)
    (row,) = run.container_states.to_dicts()
    assert (row["failcnt"], row["oom_killed"]) == (12, True)
    (death,) = run.post_mortems()
    assert death.subject == "A process in the container"
    assert "12 times" in " ".join(death.reading)


@pytest.mark.parametrize("limit", ["memory.max 536870912", "memory.limit_in_bytes: 536870912"])
def test_the_files_give_a_kill_in_the_same_input_its_limit(limit: str) -> None:
    run = read_text(f"{limit}\n{EVENTS}{KILL}")
    assert run.container_states.is_empty()
    (death,) = run.post_mortems()
    assert (death.limit_mib, run.oom_kills["failcnt"][0]) == (512, 12)
    assert "It reached its limit: 512 MiB. The limit was hit 12 times." in death.reading


def test_a_group_without_a_kill_shows_how_near_it_is() -> None:
    run = read_text("memory.max 536870912\nmemory.current 268435456\n")
    assert run.post_mortems() == []
    assert "used 256 MiB of its 512 MiB (50.0 %)" in " ".join(str(run.summary()).split())


def test_the_files_may_have_their_values_below_their_names() -> None:
    run = read_text(
        "== memory.max\n268435456\n==> memory.peak <==\n268435456\n== memory.events\n"
        + EVENTS.replace("oom_kill 1", "oom_kill 0")
    )
    (row,) = run.container_states.to_dicts()
    assert (row["memory_limit_bytes"], row["memory_used_bytes"]) == (268435456, 268435456)
    assert run.post_mortems() == []
    assert "has reached its limit, and hit that 12 times" in " ".join(
        str(run.summary()).split()
    )


def test_two_units_that_systemctl_shows_are_two() -> None:
    killed = "Result=oom-kill\nMemoryPeak=512\nMemoryMax=536870912\nId=api.service\n"
    others = "Result=success\nMemoryPeak=64\nMemoryMax=1073741824\nId=web.service\n"
    unlimited = "Result=success\nMemoryMax=infinity\nId=db.service\n"
    states = read_text(f"{killed}\n{others}\n{unlimited}").table("container_states")
    columns = ["name", "memory_limit_bytes", "oom_killed"]
    assert states.select(columns).rows() == [
        ("api.service", 512 << 20, True),
        ("web.service", 1 << 30, None),
    ]


@pytest.mark.parametrize(
    "command",
    [
        "$ curl -s localhost:8080/metrics",
        "ops@web1:~$ curl -s \\\n  localhost:8080/metrics",
        "PS C:\\> irm http://localhost:8080/metrics",
        "/ # curl -s localhost:8080/metrics",
    ],
)
def test_what_a_command_printed_is_read_like_its_output_alone(command: str) -> None:
    page = "go_gc_duration_seconds_count\t7\ngo_memstats_alloc_bytes\t4096\n"
    log = read_text(f"{command}\n{page}")
    assert log.table("memstats")["num_gc"].to_list() == [7]
    assert log.table("memstats")["line_no"].to_list() == [command.count("\n") + 2]


def test_a_part_of_json_without_commas_is_read_as_lines() -> None:
    text = '"OOMKilled": true,\n"ExitCode": 137\n"Memory": 536870912,\n'
    (row,) = read_text(text).table("container_states").to_dicts()
    assert row["memory_limit_bytes"] == 512 << 20
    assert row["oom_killed"]
