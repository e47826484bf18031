"""Kills of programs that ran with a GOMEMLIMIT, in the unit or container that states it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.postmortem.facts import container_for
from gctrace_analyzer.analysis.thresholds import roomy_limit
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.corpus import log_of

if TYPE_CHECKING:
    from pathlib import Path

GROUP = "/system.slice/billing-api.service"
ID = "3f4e8b7d2a1c" * 5 + "3f4e"
AT = "Mar 04 03:12:44 app-3 "
KILL = (
    AT + "kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
    "oom_memcg={group},task_memcg={group},task={comm},pid=18231,uid=998\n"
    + AT
    + "kernel: Memory cgroup out of memory: Killed process 18231 ({comm}) total-vm:3893212kB, "
    "anon-rss:{kb}kB, file-rss:20480kB, shmem-rss:0kB, UID:998 pgtables:5204kB oom_score_adj:0\n"
)
ENDS = (
    AT + "systemd[1]: billing-api.service: A process of this unit has been killed by the OOM "
    "killer.\n" + AT + "systemd[1]: billing-api.service: Failed with result 'oom-kill'.\n"
)
SHOW = (
    "$ systemctl show billing-api -p MemoryMax -p Environment\nMemoryMax=2147483648\n"
    "Environment=GOMEMLIMIT={limit} GOGC=off\n"
)
CAT = (
    "$ systemctl cat billing-api\n# /etc/systemd/system/billing-api.service\n[Service]\n"
    'ExecStart=/opt/billing-api\nEnvironment="GOMEMLIMIT={limit}" "GOGC=off"\nMemoryMax=2G\n'
)
INSPECT = {
    "Id": ID, "Name": "/billing", "HostConfig": {"Memory": 2147483648},
    "State": {"Status": "exited", "OOMKilled": True, "ExitCode": 137, "Error": ""},
    "Config": {"Env": ["GOMEMLIMIT={limit}", "GOGC=off"]},
}  # fmt: skip
PLACES = {"show": (GROUP, SHOW), "cat": (GROUP, CAT), "inspect": (f"/docker/{ID}", "")}


def said(place: str, comm: str, had_mib: int, limit: str = "1800MiB") -> tuple[str, str]:
    """Returns what is said of a kill and what is advised, with the settings of its place."""
    group, shown = PLACES[place]
    ends = ENDS if group == GROUP else ""
    shown = (shown or json.dumps([INSPECT])).replace("{limit}", limit)
    kill = KILL.format(group=group, comm=comm, kb=had_mib * 1024)
    run = read_text(f"{kill}{ends}\n{shown}\n")
    [death] = [death for death in run.post_mortems() if death.proven]
    return " ".join(death.reading), " ".join(death.advice)


def advised_mib(advice: str) -> list[int]:
    return [int(mib) for mib in re.findall(r"GOMEMLIMIT=(\d+)MiB", advice)]


@pytest.mark.parametrize("place", PLACES)
def test_a_program_that_was_killed_with_a_low_gomemlimit_gets_no_higher_one(place: str) -> None:
    reading, advice = said(place, "billing-api", 1988)
    assert (
        "GOMEMLIMIT was 1,800 MiB, 88 % of the limit of 2,048 MiB, and the program had 1,988"
        in reading
    )
    assert "at least 188 MiB" in reading
    assert not advised_mib(advice)
    assert "leave GOMEMLIMIT as it is" in advice
    assert "compare what Go counts" in advice
    assert "If billing-api is" not in advice


def test_a_live_heap_above_gomemlimit_needs_more_than_room_outside_the_heap(
    tmp_path: Path,
) -> None:
    """Also if the log ends minutes before the kill."""
    state = {
        "Status": "exited", "OOMKilled": True, "ExitCode": 137,
        "StartedAt": "2026-03-01T08:10:00Z", "FinishedAt": "2026-03-01T08:14:09Z",
    }  # fmt: skip
    env = {"Config": {"Env": ["GOMEMLIMIT=90MiB"]}, "HostConfig": {"Memory": 128 << 20}}
    (tmp_path / "inspect.json").write_text(json.dumps([INSPECT | env | {"State": state}]))
    for live, said in ((122, "and GOMEMLIMIT to 90 % of the new one"), (60, "as it is")):
        (tmp_path / "run.log").write_text(log_of(60, live=live, goal=live))
        run = gca.read(tmp_path / "run.log", tmp_path / "inspect.json")
        (death,) = run.post_mortems()
        assert said in " ".join(death.advice)


@pytest.mark.parametrize("place", PLACES)
def test_a_gomemlimit_near_the_limit_is_lowered(place: str) -> None:
    _, advice = said(place, "billing-api", 1988, limit="2000MiB")
    assert advised_mib(advice) == [1843]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("comm", ["wkhtmltopdf", "soffice.bin"])
def test_a_child_that_is_not_go_needs_room_next_to_gomemlimit(place: str, comm: str) -> None:
    reading, advice = said(place, comm, 1280)
    assert f"leaves 248 MiB of the limit to everything else, and {comm} alone had" in reading
    assert advised_mib(advice) == [563]
    assert f"run fewer {comm} processes at a time" in advice
    assert f"{comm} is written" not in advice


def test_a_child_of_unknown_language_gets_no_higher_limit_either() -> None:
    _, advice = said("show", "htmlrender", 1280)
    assert advised_mib(advice) == [563]


def test_a_child_that_leaves_no_room_is_not_made_room_for() -> None:
    _, advice = said("show", "wkhtmltopdf", 1800)
    assert not advised_mib(advice)
    assert advice.startswith("Run fewer wkhtmltopdf processes at a time")


def test_what_others_had_next_to_a_program_below_its_gomemlimit_is_looked_for() -> None:
    _, advice = said("show", "billing-api", 1500)
    assert "Find out what has the other 548 of the 2,048 MiB" in advice
    assert not advised_mib(advice)


def test_a_gomemlimit_without_a_known_limit_is_not_raised() -> None:
    kill = KILL.format(group=GROUP, comm="billing-api", kb=1988 * 1024)
    [death] = read_text(f"{kill}Environment=GOMEMLIMIT=1800MiB\n").post_mortems()
    assert "GOMEMLIMIT was 1,800 MiB, and the program had 1,988 MiB" in " ".join(death.reading)
    assert not advised_mib(" ".join(death.advice))


def test_gc_that_is_off_without_a_limit_never_runs() -> None:
    kill = KILL.format(group=GROUP, comm="billing-api", kb=1988 * 1024)
    [death] = read_text(f"{kill}Environment=GOGC=off\n").post_mortems()
    assert "without one, GC never runs" in death.reading[-1]


def test_a_setting_that_is_tried_after_the_kill_is_not_that_of_the_killed_program() -> None:
    kill = KILL.format(group=GROUP, comm="billing-api", kb=1988 * 1024)
    [death] = read_text(f"{kill}$ GOMEMLIMIT=900MiB ./billing-api\n").post_mortems()
    assert "900 MiB" not in " ".join(death.reading)


def test_the_settings_of_the_unit_may_be_in_another_input(tmp_path: Path) -> None:
    kill = KILL.format(group=GROUP, comm="billing-api", kb=1988 * 1024) + ENDS
    journal, shown = tmp_path / "journal.log", tmp_path / "show.txt"
    journal.write_text(kill)
    shown.write_text(SHOW.replace("{limit}", "1800MiB"))
    [death] = gca.read(journal, shown).post_mortems()
    assert "the limit of billing-api.service: 2,048 MiB" in death.reading[0]
    assert "GOMEMLIMIT was 1,800 MiB" in death.reading[-1]
    assert not advised_mib(" ".join(death.advice))


def test_a_limit_that_the_goals_already_show_is_not_to_be_set_again(tmp_path: Path) -> None:
    state = (
        '{"kind":"Pod","metadata":{"name":"api-1"},"spec":{"containers":[{"name":"api","resources":'
        '{"limits":{"memory":"128Mi"}}}]},"status":{"containerStatuses":[{"name":"api",'
        '"restartCount":1,"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled",'
        '"startedAt":"2026-11-30T12:00:00Z","finishedAt":"2026-11-30T12:02:06Z"}}}]}}'
    )
    pod = tmp_path / "pod.json"
    pod.write_text(state)
    run = gca.read([SAMPLES / "leak" / "service.log.gz", pod])
    (death,) = run.post_mortems()
    assert death.advice[0].startswith("To buy time, raise the limit of 128 MiB to about")
    assert not any(step.startswith("Set GOMEMLIMIT") for step in death.advice)
    # The headline and the recommended settings name one limit, with the memory outside the heap.
    (limit,) = set(re.findall(r"GOMEMLIMIT=(\d+)MiB: \d+ MiB are live heap", run.to_markdown()))
    assert float(limit) == roomy_limit(run.advice.needed_limit_mib or 0.0)
    assert f"to about {container_for(float(limit))} MiB, and set" in run.to_markdown()
