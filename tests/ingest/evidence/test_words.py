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
    assert "used up to 256 MiB of its 512 MiB (50.0 %)" in " ".join(str(run.summary()).split())


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
