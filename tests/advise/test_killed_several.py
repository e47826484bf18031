"""The first sentences about several programs that were killed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.present.text import plain
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.corpus import log_of
from tests.helpers.logs import logfile

if TYPE_CHECKING:
    from pathlib import Path

CHOSEN = (
    "Mar  5 15:53:{:02} h kernel: [649549.5] Out of memory: Kill process {} ({}) score 142 or "
    "sacrifice child\n"
)
NAMED = (
    "Mar  5 15:53:59 h kernel: [649589.5] Killed process 26 (du) total-vm:17528kB, anon-rss:268kB, "
    "file-rss:1376kB, shmem-rss:0kB\n"
)
LIMIT = (
    "Mar 04 03:12:44 n1 kernel: Memory cgroup out of memory: Killed process 18231 (api) "
    "total-vm:3893212kB, anon-rss:521216kB, file-rss:2000kB, shmem-rss:0kB\n"
)
OF_NODE = "Mar 04 03:14:02 n1 kubelet[4991]: System OOM encountered, victim process: postgres, pid: 7\n"
ASKED = (
    'Mar 04 09:14:51 n1 earlyoom[812]: sending SIGTERM to process 40122 uid 1000 "gopls": '
    "oom_score 1105, VmRSS 4231 MiB\n"
    "Mar 04 09:14:52 n1 earlyoom[812]: process 40122 exited after 0.6 seconds\n"
)


def headline(text: str) -> str:
    return " ".join(str(read_text(text).summary()).split())


def test_what_the_kernel_chose_is_not_said_to_be_killed() -> None:
    lines = [(27, 1, "geth"), (28, 2, "apt-check"), (29, 3, "geth")]
    said = headline("".join(CHOSEN.format(*line) for line in lines))
    assert "geth (2 times) and apt-check were chosen by the kernel's OOM killer" in said
    assert "The input does not show whether these or their children were killed" in said
    assert "were killed because" not in said


def test_of_some_the_victim_is_known() -> None:
    text = CHOSEN.format(27, 1, "geth") + CHOSEN.format(58, 25, "bash") + NAMED
    said = headline(text)
    assert "du with 1.6 MiB resident and geth were killed" in said
    assert "The input does not show whether all of these or their children were killed" in said


def test_the_card_of_what_was_chosen_says_so() -> None:
    run = read_text(CHOSEN.format(27, 1, "geth"))
    assert run.post_mortems()[0].who == "geth or a child of it"
    assert "OOM kill: geth or a child of it" in str(run.post_mortems()[0])


@pytest.mark.parametrize("text", [LIMIT + OF_NODE, OF_NODE + LIMIT])
def test_a_size_and_a_reason_are_those_of_their_program(text: str) -> None:
    said = headline(text)
    assert "api with 509 MiB resident (without file pages) and postgres were killed" in said
    assert "api reached the memory limit of its cgroup" in said
    assert "postgres: The host probably ran out of memory" in said


UNNAMED = "OOMKilled=true\nreason: OutOfMemoryError: Container killed due to memory usage\n"


def test_reports_without_names_and_times_may_be_of_one_kill() -> None:
    said = headline(UNNAMED)
    assert "killed at least once (2 reports, possibly of the same kill)" in said
    named = '[{"Name": "/web", "State": {"Status": "running", "OOMKilled": true, "Pid": 4}}]\n'
    for text in (named + UNNAMED, UNNAMED + named):
        assert "A process in the container web was killed because" in headline(text)


def test_a_program_that_was_asked_to_end_was_not_killed() -> None:
    said = headline(LIMIT + ASKED)
    assert (
        "api with 509 MiB resident (without file pages) was killed, and gopls with 4,231"
        in said
    )
    assert "was asked to end (SIGTERM) for lack of memory" in said
    assert "It ended after that. earlyoom acts" in said


@pytest.mark.parametrize(
    ("comm", "advice"),
    [
        ("go", "If go is part of the Go toolchain, build where there is more memory"),
        ("uvicorn", "Limit the memory of uvicorn by its own settings"),
    ],
)
def test_a_well_known_program_is_not_asked_whether_it_is_written_in_go(
    comm: str, advice: str
) -> None:
    (death,) = read_text(LIMIT.replace("(api)", f"({comm})")).post_mortems()
    assert death.advice[0].startswith(advice)


@pytest.mark.parametrize(
    ("resident", "advice"),
    [
        (
            23964,
            "Limit the memory of cluster, or give the host more: it had 75 % of the host's",
        ),
        (9000, "Find out which program has the most memory"),
    ],
)
def test_the_program_with_most_of_the_host_is_the_one_to_limit(
    resident: int, advice: str
) -> None:
    begin = "Feb 16 13:58:29 n1 earlyoom[9]: "
    text = (
        f"{begin}mem avail:  2430 of 31808 MiB ( 7.64%), swap free: 1419 of 15903 MiB ( 8.93%)\n"
        f"{begin}low memory! at or below SIGTERM limits: mem 10.00%, swap 10.00%\n"
        f'{begin}sending SIGTERM to process 29410 uid 1000 "cluster": badness 1264, VmRSS '
        f"{resident} MiB\n{begin}process exited after 0.1 seconds\n"
    )
    (death,) = read_text(text).post_mortems()
    assert death.advice[0].startswith(advice)


def test_a_program_that_is_not_go_is_not_blamed_without_a_size() -> None:
    [death] = read_text(CHOSEN.format(27, 1, "python")).post_mortems()
    assert "Find out which program has the most memory" in death.advice[0]


def test_a_size_of_one_kill_is_not_that_of_all_and_a_child_stays_possible() -> None:
    victim = NAMED.replace("26 (du)", "3 (geth)")
    said = headline("".join(CHOSEN.format(27 + n, n, "geth") for n in (1, 2, 3)) + victim)
    assert "geth or a child of it was killed 3 times" in said
    assert "once with 1.6 MiB resident" in said


AT_LIMIT = (
    "[{0}.000001] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
    "oom_memcg=/docker/a,task_memcg=/docker/a,task=mysqld,pid={0},uid=1\n"
)
OF_HOST = "[{0}.000001] Out of memory: Killed process {0} (mysqld)\n"


@pytest.mark.parametrize("host_at", [50, 550, 900])
def test_kills_at_a_limit_are_not_explained_by_a_kill_for_lack_of_host_memory(
    host_at: int,
) -> None:
    lines = {300: AT_LIMIT, 800: AT_LIMIT, host_at: OF_HOST}
    run = read_text("".join(lines[at].format(at) for at in sorted(lines)))
    said = " ".join(str(run.summary()).split())
    assert "In 2 of these kills: It reached the memory limit of /docker/a." in said
    assert "In 1 of these kills: The host probably ran out of memory" in said
    action = str(run.summary()).partition("▸")[2].partition("\n\n")[0]
    assert "host" not in action


@pytest.mark.parametrize("name", ["svc", "other"])
def test_a_kill_with_other_memory_has_one_answer(tmp_path: Path, name: str) -> None:
    """The limit of the pod may be shared, so that of the container is unknown."""
    group = "/kubepods.slice/kubepods-pod1.slice"
    kernel = [
        f"[10.0] {name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=9",
        "[10.1] memory: usage 131072kB, limit 131072kB, failcnt 342",
        f"[10.2] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg={group},"
        f"task_memcg={group}/cri-abc.scope,task={name},pid=31337,uid=0",
        f"[10.3] Memory cgroup out of memory: Killed process 31337 ({name}) total-vm:1734420kB, "
        "anon-rss:127040kB, file-rss:4096kB, shmem-rss:0kB",
    ]

    def live(n: int) -> int:
        return 35 + n // 7 % 3

    gc = log_of(
        195, every=0.04, live=live, start=64, end=66, goal=lambda n: 2 * live(n - 1) + 1
    )
    log = logfile(tmp_path / "svc.log", gc.splitlines())
    run = gca.read([log, logfile(tmp_path / "dmesg.txt", kernel)])
    report, first = run.report(), run.recommend().row(0, named=True)
    assert report.verdict is not None
    limit = f"GOMEMLIMIT={first['memory_limit_mib']:.0f}MiB"
    assert first["confidence"] == "low"
    assert report.verdict.action.startswith(f"Try {limit}: it leaves")
    text = " ".join(plain(document(report)).split())
    assert f"Try {limit}" in text
    assert "Set GOMEMLIMIT" not in text
    assert "No recommendation" not in text
    assert "could have prevented it only by thrashing." in text


def test_the_json_has_the_advice_that_the_report_shows() -> None:
    """A setting that is only to try was to set there."""
    log, usage = (
        (SAMPLES / "leak-go1.26.log").read_text(),
        "kernel: memory: usage {0}, limit {0}",
    )
    usage = f"Mar 04 03:12:44 n1 {usage.format('524288kB')}, failcnt 20\n"
    run = read_text(log + usage + LIMIT.replace("api", "leak"))
    shown = " ".join(plain(document(run.report())).split())
    (advice,) = (death["advice"] for death in json.loads(run.to_json())["post_mortems"])
    assert advice[0].startswith("Try GOMEMLIMIT=460MiB")
    assert all(step in shown for step in advice)


def test_a_growing_heap_that_may_be_of_the_next_container_is_looked_into() -> None:
    pod = (
        "Name:             api-6c9f7d-abcde\nNamespace:        prod\nContainers:\n  api:\n"
        "    State:          Running\n      Started:      Sun, 01 Mar 2026 08:14:25 +0000\n"
        "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n"
        "      Started:      Sun, 01 Mar 2026 08:10:00 +0000\n"
        "      Finished:     Sun, 01 Mar 2026 08:14:09 +0000\n"
        "    Limits:\n      memory:  512Mi\n"
    )
    said = "If the live heap grows further, a limit only buys time"
    for log, grows in (("leak-go1.26", True), ("steady-go1.26", False)):
        cycles = (SAMPLES / f"{log}.log").read_text()
        text = plain(document(read_text(pod + cycles).report()))
        assert "may be, those of the container" in (shown := " ".join(text.split()))
        assert (said in shown) is grows
