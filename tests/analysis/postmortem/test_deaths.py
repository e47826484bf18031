"""One death is one post-mortem, whoever reports it; two deaths stay two."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from gctrace_analyzer.analysis.postmortem.death import Death
from gctrace_analyzer.analysis.postmortem.deaths import _states
from gctrace_analyzer.present.sections import evidence
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import KILL, logfile, read_lines, records

if TYPE_CHECKING:
    from pathlib import Path

    from gctrace_analyzer.analysis.postmortem.post_mortems import PostMortem

OF_A_PROCESS = "A process of this unit has been killed by the OOM killer."
MAIN = "Main process exited, code=killed, status=9/KILL"
FAILED = "Failed with result 'oom-kill'."
SCAN = (
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
    "oom_memcg={path},task_memcg={path},task={comm},pid={pid},uid=0"
)


def kernel(text: str, *, at: str = "10:00:20", host: str = "h") -> str:
    return f"2026-02-03T{at}Z {host} kernel: {text}"


def kill(pid: int = 7, comm: str = "api", *, at: str = "10:00:20", host: str = "h") -> str:
    return kernel(KILL.format(pid=pid, comm=comm, kb=500_000 + pid), at=at, host=host)


def unit(
    *texts: str, name: str = "api.service", at: str = "10:00:20", host: str = "h"
) -> list[str]:
    return [f"2026-02-03T{at}Z {host} systemd[1]: {name}: {text}" for text in texts]


def deaths(tmp_path: Path, *lines: str) -> list[tuple[str | None, str]]:
    return [(each.victim, each.kind) for each in read_lines(tmp_path, *lines).post_mortems()]


@pytest.mark.parametrize("order", [1, -1], ids=["kernel first", "systemd first"])
@pytest.mark.parametrize(
    "texts",
    [
        (OF_A_PROCESS, MAIN, FAILED),
        (MAIN, FAILED),
        (OF_A_PROCESS,),
        (FAILED,),
        ("The kernel OOM killer killed some processes in this unit.", MAIN),
    ],
    ids=["all", "no notice", "notice", "result", "notice of systemd 257"],
)
def test_a_kill_that_kernel_and_systemd_report_is_one_death(
    texts: tuple[str, ...], order: int, tmp_path: Path
) -> None:
    blocks = [[kill()], unit(*texts)][::order]
    run = read_lines(tmp_path, *[line for block in blocks for line in block])
    (found,) = run.post_mortems()
    assert (found.kind, found.victim, found.pid, found.killer) == (
        "OOM kill", "api", 7, "kernel"
    )  # fmt: skip
    assert found.resident_mib == pytest.approx(500_007 / 1024)


def test_the_post_mortem_has_what_both_know(tmp_path: Path) -> None:
    # The program logs to a pipe of the unit: the kernel's process id is of no use, and only
    # the unit, which systemd names, connects the kill with the cycles.
    own = [
        f"2026-02-03T10:00:{n:02}Z h api[99]: {line}" for n, line in enumerate(records(9), 1)
    ]
    other = [line.replace("api[99]", "web[98]") for line in own]
    run = read_lines(tmp_path, *other, *own, kill(7, "run"), *unit(OF_A_PROCESS, MAIN, FAILED))
    (found,) = run.post_mortems()
    assert (found.victim, found.pid, found.last_gc_num) == ("run", 7, 9)
    assert (found.match_by, found.confidence) == (("unit",), "high")
    processes = run.table("processes").filter(process=found.process)
    assert processes["ident"].item() == "api"


def test_a_kill_from_dmesg_gets_the_time_of_the_unit(tmp_path: Path) -> None:
    dmesg = logfile(
        tmp_path / "dmesg", [f"[ 9321.447102] {KILL.format(pid=7, comm='api', kb=5000)}"]
    )
    journal = logfile(tmp_path / "journal", unit(OF_A_PROCESS, MAIN, FAILED))
    for order in ((dmesg, journal), (journal, dmesg)):
        (found,) = gca.read(*order).post_mortems()
        assert (found.kind, found.pid) == ("OOM kill", 7)
        assert found.logged_at is not None
        assert found.monotonic_s == 9321.447102


def test_the_same_kill_in_dmesg_and_journal_is_one_death(tmp_path: Path) -> None:
    dmesg = logfile(
        tmp_path / "dmesg", [f"[ 9321.447102] {KILL.format(pid=7, comm='api', kb=500_007)}"]
    )
    journal = logfile(
        tmp_path / "journal",
        [kernel(SCAN.format(path="/system.slice/api.service", comm="api", pid=7)), kill()],
    )
    run = gca.read(dmesg, journal)
    assert len(run.oom_kills) == 2
    (found,) = run.post_mortems()
    assert found.logged_at is not None


def test_a_unit_that_is_killed_twice_has_two_deaths(tmp_path: Path) -> None:
    again = "Scheduled restart job, restart counter is at 1."
    first = unit(OF_A_PROCESS, MAIN, FAILED, again)
    second = unit(OF_A_PROCESS, MAIN, FAILED, at="11:00:20")
    by_systemd = ("api.service", "Unit killed for memory")
    by_kernel = ("api", "OOM kill")
    assert deaths(tmp_path, *first, *second) == [by_systemd, by_systemd]
    assert deaths(tmp_path, kill(), *first, *second) == [by_kernel, by_systemd]
    assert deaths(tmp_path, *first, kill(8, at="11:00:19"), *second) == [by_kernel, by_systemd]
    both = deaths(tmp_path, kill(), *first, kill(8, at="11:00:20"), *second)
    assert both == [by_kernel, by_kernel]


def test_a_unit_with_a_known_cgroup_is_killed_as_often_as_either_says(tmp_path: Path) -> None:
    path = "/system.slice/api.service"
    known = [kernel(SCAN.format(path=path, comm="api", pid=7)), kill()]
    first = unit(OF_A_PROCESS, MAIN, FAILED)
    second = unit(OF_A_PROCESS, MAIN, FAILED, at="11:00:20")
    assert len(deaths(tmp_path, *known, *first)) == 1
    assert len(deaths(tmp_path, *known, *first, *second)) == 2
    # Of a cgroup that is killed as a whole, the kernel reports every task.
    tasks = [kill(8, "worker"), kill(9, "worker")]
    assert len(deaths(tmp_path, *known, *tasks, *first)) == 3


def test_children_that_are_killed_hours_apart_are_deaths_of_their_own(tmp_path: Path) -> None:
    notices = [
        line
        for at in ("10:00:20", "10:00:22", "12:00:00")
        for line in unit(OF_A_PROCESS, at=at)
    ]
    assert len(deaths(tmp_path, *notices)) == 2


def test_a_unit_that_takes_long_to_stop_dies_once(tmp_path: Path) -> None:
    slow = [
        *unit(OF_A_PROCESS),
        *unit("Main process exited, code=killed, status=9/KILL", FAILED, at="10:01:50"),
    ]
    assert len(deaths(tmp_path, *slow)) == 1
    assert deaths(tmp_path, kill(), *slow) == [("api", "OOM kill")]


@pytest.mark.parametrize(
    "apart",
    [
        unit(OF_A_PROCESS, FAILED, at="10:00:31"),
        unit(OF_A_PROCESS, FAILED, at="10:00:18"),
        unit(OF_A_PROCESS, FAILED, host="other"),
        unit("systemd-oomd killed 3 process(es) in this unit."),
    ],
    ids=["later", "before", "other host", "systemd-oomd"],
)
def test_a_kill_and_the_death_of_a_unit_elsewhere_are_two(
    apart: list[str], tmp_path: Path
) -> None:
    assert len(deaths(tmp_path, kill(9, "batch"), *apart)) == 2


def test_a_kill_in_another_cgroup_is_not_that_of_the_unit(tmp_path: Path) -> None:
    for path in ("/system.slice/web.service", "/kubepods/pod1/" + "a" * 64):
        other = [kernel(SCAN.format(path=path, comm="web", pid=9)), kill(9, "web")]
        assert len(deaths(tmp_path, *other, *unit(OF_A_PROCESS, FAILED))) == 2


def test_kills_of_the_same_second_go_to_the_units_with_their_names(tmp_path: Path) -> None:
    run = read_lines(
        tmp_path,
        kill(7, "api"),
        kill(9, "a-very-long-nam"),
        *unit(OF_A_PROCESS, MAIN, FAILED, name="a-very-long-name.service"),
        *unit(OF_A_PROCESS, MAIN, FAILED, name="api.service"),
        *unit(OF_A_PROCESS, MAIN, FAILED, name="third.service"),
    )
    found = [(each.victim, each.limit_is) for each in run.post_mortems()]
    assert found == [("api", None), ("a-very-long-nam", None), ("third.service", None)]


def test_without_a_clock_the_name_or_the_order_of_lines_decides(tmp_path: Path) -> None:
    events = [line.partition("h ")[2] for line in unit(OF_A_PROCESS, MAIN, FAILED)]
    text = "kernel: " + KILL.format(pid=7, comm="{}", kb=500)
    for comm in ("api", "java"):
        assert len(deaths(tmp_path, text.format(comm), *events)) == 1
    assert len(deaths(tmp_path, *events, text.format("api"))) == 1
    assert len(deaths(tmp_path, *events, text.format("java"))) == 2


def test_the_manager_of_a_user_reports_the_kill_in_one_of_its_units(tmp_path: Path) -> None:
    path = "/user.slice/user-1021.slice/user@1021.service/app.slice/run-1.scope"
    named = [kernel(SCAN.format(path=path, comm="api", pid=7)), kill()]
    events = [
        *unit(OF_A_PROCESS, name="run-1.scope"),
        *unit(OF_A_PROCESS, name="user@1021.service"),
        *unit(OF_A_PROCESS, name="user.slice"),
    ]
    assert deaths(tmp_path, *named, *events) == [("api", "OOM kill")]
    assert deaths(tmp_path, kill(), *events) == [("api", "OOM kill")]
    assert deaths(tmp_path, *events) == [("run-1.scope", "Unit killed for memory")]


def test_the_end_of_a_unit_without_a_word_about_memory_names_the_unit_only(
    tmp_path: Path,
) -> None:
    # systemd before version 243 does not know about OOM kills.
    old = unit(MAIN, "Failed with result 'signal'.")
    own = [
        f"2026-02-03T10:00:{n:02}Z h api[99]: {line}" for n, line in enumerate(records(9), 1)
    ]
    other = [line.replace("api[99]", "web[98]") for line in own]
    assert deaths(tmp_path, *old) == [("api.service", "SIGKILL")]
    assert deaths(tmp_path, *other, *old) == []
    (found,) = read_lines(tmp_path, *own, *other, kill(7, "run"), *old).post_mortems()
    assert (found.victim, found.match_by) == ("run", ("unit",))


def state(finished: str | None, **more: Any) -> str:
    given = {"Status": "exited", "OOMKilled": True, "ExitCode": 137, "FinishedAt": finished}
    return json.dumps({
        "Id": "a" * 64, "Name": "/web", "State": given,
        "HostConfig": {"Memory": 512 << 20}, **more,
    })  # fmt: skip


def with_state(tmp_path: Path, finished: str | None, *lines: str) -> list[PostMortem]:
    states = logfile(tmp_path / "state.json", [state(finished)])
    log = logfile(tmp_path / "kern.log", list(lines))
    return gca.read(log, states).post_mortems()


def test_the_state_of_a_container_completes_the_kill_that_ended_it(tmp_path: Path) -> None:
    (found,) = with_state(tmp_path, "2026-02-03T10:00:21.5Z", kill(7, "run"))
    assert (found.kind, found.victim, found.pid) == ("OOM kill", "run", 7)
    assert (found.limit_mib, found.limit_is) == (512, f"the limit of {'web'}")
    assert len(with_state(tmp_path, "2026-02-03T10:05:00Z", kill(7, "run"))) == 2


def test_the_scope_of_a_container_is_not_a_second_death(tmp_path: Path) -> None:
    scope = unit(OF_A_PROCESS, name=f"docker-{'a' * 64}.scope")
    (found,) = with_state(tmp_path, "2026-02-03T10:00:20Z", *scope)
    assert found.kind == "Container OOMKilled (exit code 137)"
    (found,) = with_state(tmp_path, "2026-02-03T10:00:20Z", kill(7, "run"), *scope)
    assert (found.kind, found.limit_mib) == ("OOM kill", 512)


def test_a_container_after_one_with_a_recorded_kill_is_still_a_death(tmp_path: Path) -> None:
    known = [kernel(SCAN.format(path=f"/docker/{'a' * 64}", comm="web", pid=7)), kill(7, "web")]
    finished = "2026-02-03T10:00:21Z"
    other = state(finished, Id="b" * 64, Name="/db")
    log = logfile(tmp_path / "log", known)
    path = logfile(tmp_path / "state.json", [f"[{state(finished)},{other}]"])
    found = gca.read(log, path).post_mortems()
    assert [each.victim for each in found] == ["web", "db"]
    assert found[0].limit_mib == 512


@pytest.mark.parametrize("order", [1, -1], ids=["exit first", "kill first"])
def test_of_several_states_of_a_container_the_one_that_proves_the_kill_counts(
    order: int,
) -> None:
    types = schema.polars_schema("container_states")
    unproven = {"container_id": "a" * 64, "exit_code": 137, "oom_killed": False}
    proven = {"container_id": "a" * 64, "exit_code": 137, "oom_killed": True}
    unknown = {"container_id": "a" * 64, "exit_code": 137, "oom_killed": None}
    rows = [{**dict.fromkeys(types), **row} for row in (unproven, unknown, proven)][::order]
    (found,) = _states(pl.DataFrame(rows, schema=types), [])
    assert found.proven is True
    assert found.kind == "Container OOMKilled (exit code 137)"
    # Of other exits there is no death.
    fine = [{**row, "exit_code": 0, "oom_killed": False} for row in rows]
    assert list(_states(pl.DataFrame(fine, schema=types), [])) == []


def test_the_state_of_a_killed_pod_completes_the_kill() -> None:
    types = schema.polars_schema("container_states")
    state = {"pod": "api-0", "container": "api", "exit_code": 137, "oom_killed": True,
             "memory_limit_bytes": 64, "restart_count": 3, "name": "api"}  # fmt: skip
    table = pl.DataFrame([{**dict.fromkeys(types), **state}], schema=types)
    kill = Death(pod="api-0", container="api")
    kills = [kill]
    assert list(_states(table, kills)) == []
    assert (kills[0].limit_bytes, kills[0].restart_count, kills[0].name) == (64, 3, "api")
    for other in (replace(kill, pod="api-1"), replace(kill, container="proxy")):
        assert len(list(_states(table, [other]))) == 1
    # Without a pod, the id of the container decides.
    alone = table.with_columns(
        pod=pl.lit(None, pl.String), container_id=pl.lit("a" * 64, pl.String)
    )
    assert len(list(_states(alone, [replace(kill, pod=None)]))) == 1
    assert list(_states(alone, [replace(kill, pod=None, container_id="a" * 12)])) == []


def test_a_process_that_two_killers_name_dies_once() -> None:
    run = read_text(
        'Nov 23 10:00:01 web1 earlyoom[8]: sending SIGTERM to process 4711 uid 0 "api": badness '
        "118, VmRSS 389 MiB\n"
        "Nov 23 10:00:09 web1 kernel: Out of memory: Killed process 4711 (api) total-vm:900kB, "
        "anon-rss:400kB, file-rss:0kB, shmem-rss:0kB\n"
        "Nov 23 10:00:09 web1 kernel: Out of memory: Killed process 4711 (api)\n"
    )
    assert len(run.post_mortems()) == 1
    assert sorted(run.oom_kills["killer"]) == ["earlyoom", "kernel"]


UNIT = "Nov 23 10:00:01 web1 systemd[1]: api.service: "


@pytest.mark.parametrize(
    ("more", "subject"),
    [
        ("", "A process in the unit"),
        (f"{UNIT}Main process exited, code=killed, status=9/KILL\n", "A process of the unit"),
        (f"{UNIT}Failed with result 'oom-kill'.\n", "A process of the unit"),
    ],
)
def test_a_unit_of_which_a_process_was_killed_may_live_on(more: str, subject: str) -> None:
    notice = f"{UNIT}A process of this unit has been killed by the OOM killer.\n"
    (death,) = read_text(notice + more).post_mortems()
    assert (death.subject, death.victim) == (subject, "api.service")


@pytest.mark.parametrize("order", [1, -1], ids=["kernel first", "systemd first"])
@pytest.mark.parametrize("day", ["Apr 18", "Feb 29"])
def test_times_without_a_year_pair_a_kill_with_the_notice_of_systemd(
    day: str, order: int
) -> None:
    """The name of the unit is not that of the program."""
    at = f"{day} 14:22:18 h "
    lines = [
        f"{at}kernel: Memory cgroup out of memory: Kill process 28 (oracle) score 892 or "
        "sacrifice child\n",
        f"{at}systemd[1]: ohasd.service: {OF_A_PROCESS}\n",
    ][::order]
    (death,) = read_text("".join(lines)).post_mortems()
    assert (death.victim, death.pid) == ("oracle", 28)


def test_what_the_kernel_chose_may_not_be_what_it_killed() -> None:
    """Up to Linux 5.1 it kills a child instead, which only the line "Killed process" names."""
    table = (
        "[1.0] [ pid ]   uid  tgid total_vm rss pgtables_bytes swapents oom_score_adj name\n"
        "[1.0] [    28]     0    28     2925 679   65536        0    0 sh\n"
    )
    chosen = (
        "[1.0] Memory cgroup out of memory: Kill process 28 (sh) score 0 or sacrifice child\n"
    )
    run = read_text(table + chosen)
    (death,) = run.post_mortems()
    assert death.resident_mib is None
    assert "The program sh or a child of it was killed" in " ".join(str(run.summary()).split())
    named = read_text(
        f"{table}{chosen}[1.0] Killed process 29 (cp) total-vm:9kB, anon-rss:8kB, file-rss:0kB\n"
    )
    assert [death.victim for death in named.post_mortems()] == ["cp"]


def test_times_without_a_year_that_are_apart_are_of_two_deaths() -> None:
    kill = "Memory cgroup out of memory: Kill process 28 (oracle) score 892 or sacrifice child"
    notice = f"systemd[1]: ohasd.service: {OF_A_PROCESS}"
    text = f"Apr 18 14:22:18 h kernel: {kill}\nApr 18 15:22:18 h {notice}\n"
    assert len(read_text(text).post_mortems()) == 2


def test_the_reaper_alone_proves_a_kill() -> None:
    run = read_text(
        "[ 1201.114502] oom_reaper: reaped process 2840 (app), now anon-rss:0kB, file-rss:0kB, "
        "shmem-rss:0kB\n"
    )
    (death,) = run.post_mortems()
    assert (death.victim, death.pid, death.proven) == ("app", 2840, True)


def test_what_the_watchdog_of_systemd_ends_was_killed_and_not_for_memory(
    tmp_path: Path,
) -> None:
    """Go ends with exit status 2 after SIGABRT."""
    own = [
        f"2026-02-03T10:00:{n:02}Z h api[99]: {line}" for n, line in enumerate(records(9), 1)
    ]
    for ended in (
        "exited, status=2/INVALIDARGUMENT",
        "dumped, status=6/ABRT",
        "killed, status=9/KILL",
    ):
        end = unit(f"Main process exited, code={ended}", "Failed with result 'watchdog'.")
        (found,) = read_lines(tmp_path, *own, *end).post_mortems()
        assert (found.process, found.proven) == (0, False)
        signal = "SIGKILL" if "KILL" in ended else "SIGABRT"
        assert found.cause.startswith(f"by {signal} after it did not report to the watchdog")
        assert found.advice[0].startswith("Find out why it hung")


def test_a_part_of_a_description_is_of_the_pod_that_is_listed() -> None:
    (found,) = read_text(
        "NAME            READY   STATUS      RESTARTS      AGE\n"
        "worker-h4kpz    0/1     OOMKilled   3 (30s ago)   6m18s\n"
        "    Last State:     Terminated\n"
        "      Reason:       OOMKilled\n"
        "      Exit Code:    137\n"
        "      Finished:     Mon, 23 Jun 2026 14:11:47 +0000\n"
    ).post_mortems()
    assert found.victim == "worker-h4kpz"
    assert found.logged_at is not None


def test_the_manager_of_a_user_may_be_all_that_reports_a_kill(tmp_path: Path) -> None:
    events = [
        *unit(OF_A_PROCESS, name="user@1021.service"),
        *unit(OF_A_PROCESS, name="user.slice"),
    ]
    user = ("user@1021.service", "Unit killed for memory")
    assert deaths(tmp_path, *events) == [user]


def test_the_slice_of_a_template_reports_kills_in_its_instances_only(tmp_path: Path) -> None:
    of_slice = unit(OF_A_PROCESS, name="system-postgresql.slice")
    other = unit(OF_A_PROCESS, name="api.service")
    instance = unit(OF_A_PROCESS, name="postgresql@14-main.service")
    killed = "Unit killed for memory"
    both = [("system-postgresql.slice", killed), ("api.service", killed)]
    assert deaths(tmp_path, *of_slice, *other) == both
    own = [("postgresql@14-main.service", killed)]
    assert deaths(tmp_path, *of_slice, *instance) == own


def test_what_a_shell_prints_of_a_kill_in_a_container_is_the_same_death(tmp_path: Path) -> None:
    path = f"/system.slice/docker-{'a' * 64}.scope"
    line = "./run.sh: line 7:    7 Killed                  A=1 ./{}"
    for name, number in (("api", 1), ("web", 2)):
        log = tmp_path / "run.log"
        log.write_text("\n".join([*records(9), line.format(name), ""]))
        kern = tmp_path / "kern.log"
        kern.write_text(
            "\n".join([kernel(SCAN.format(path=path, comm="api", pid=7)), kill(), ""])
        )
        found = gca.read(log, kern).post_mortems()
        assert [death.proven for death in found] == [True, False][:number]
        by = [death.match_by for death in found]
        assert by == [[("place in the log",)], [(), ()]][number - 1]


def test_what_compose_prints_of_a_kill_is_the_same_death(tmp_path: Path) -> None:
    path = f"/system.slice/docker-{'a' * 64}.scope"
    log, kern = tmp_path / "compose.log", tmp_path / "kern.log"
    end = "api-1 exited with code 137"
    lines = [f"{name}-1  | {line}" for name in ("api", "web", "api") for line in records(9)]
    log.write_text("\n".join([*lines[:18], end, *lines[18:], ""]))
    kern.write_text("\n".join([kernel(SCAN.format(path=path, comm="api", pid=7)), kill(), ""]))
    (found,) = gca.read(log, kern).post_mortems()
    assert (found.proven, found.process, found.match_by) == (True, 0, ("container",))


def test_a_small_victim_of_a_group_is_not_told_to_set_a_limit() -> None:
    """The kernel kills the largest process, which may have little of what the group is charged."""
    killed = (
        "[ 8120.1] memory: usage 524288kB, limit 524288kB, failcnt 612\n"
        "[ 8120.2] oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a.slice,task_memcg=/a.slice,"
        "task=ledger,pid=30718,uid=0\n"
        "[ 8120.3] Memory cgroup out of memory: Killed process 30718 (ledger) total-vm:1302540kB, "
        "anon-rss:{}kB, file-rss:10240kB, shmem-rss:0kB, UID:0 pgtables:412kB oom_score_adj:0\n"
    )
    (small,), (large,) = (
        read_text(killed.format(kib)).post_mortems() for kib in (86016, 500000)
    )
    assert "428 of the 512 MiB" in small.advice[0]
    assert "GOMEMLIMIT=" not in " ".join(small.advice)
    assert "set GOMEMLIMIT=460MiB" in large.advice[0]


def test_a_run_of_the_oom_killer_whose_victim_is_missing_is_reported_next_to_a_kill() -> None:
    kill = (
        "[7063.247407] Memory cgroup out of memory: Killed process 63 (api) anon-rss:1649kB\n"
    )
    run = "[7093.543707] api invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0\n"
    found = dict(evidence.deaths(read_text(kill + run).report()))
    assert len(found) == 2
    (story,) = (rows for title, rows in found.items() if title.startswith("OOM killer ran"))
    assert "while api asked for memory" in story[0][1]
    assert len(dict(evidence.deaths(read_text(kill).report()))) == 1


def test_a_container_may_be_marked_because_its_host_ran_out_of_memory() -> None:
    """With cgroup v2, memory.events counts every OOM kill in a group (oom_kill)."""
    event = "2026-03-01T08:14:09Z container oom 3f4b8d1c9a77 (image=x, name=orders)\n"
    (death,) = read_text(event).post_mortems()
    assert " (or its host was short of memory)" in death.reading[1]
    kill = "[7063.2] Memory cgroup out of memory: Killed process 63 (api) anon-rss:1649kB\n"
    (death,) = read_text(kill).post_mortems()
    assert "host" not in death.reading[0]


POD_OF_API = """Name:         api-7c9f-x2x9k
Start Time:   Tue, 03 Feb 2026 09:00:00 +0000
Containers:
  api:
    Container ID:   containerd://{id}
    State:          Running
      Started:      Tue, 03 Feb 2026 10:00:22 +0000
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Tue, 03 Feb 2026 09:58:00 +0000
      Finished:     Tue, 03 Feb 2026 10:00:20 +0000
    Restart Count:  6
"""


def test_the_id_of_a_container_that_was_restarted_is_not_that_of_the_one_that_was_killed() -> (
    None
):
    path = f"/kubepods.slice/cri-containerd-{'a' * 64}.scope"
    lines = [kernel(SCAN.format(path=path, comm="api", pid=7)), kill()]
    (death,) = read_text("\n".join([*lines, "", POD_OF_API.format(id="b" * 64)])).post_mortems()
    assert (death.pid, death.pod) == (7, "api-7c9f-x2x9k")
    assert "restarted 6 times within 1h 00m" in " ".join(death.reading)


@pytest.mark.parametrize(
    "text",
    [
        "api-7c9f-x2x9k  0/1  OOMKilled  6 (2m ago)  1h\n",
        '{"State": {"Status": "restarting", "OOMKilled": true, "ExitCode": 137, '
        '"FinishedAt": "2026-02-03T10:00:00Z"}, "Name": "/api", "RestartCount": 6, '
        '"Created": "2026-02-03T09:00:00Z"}',
    ],
)
def test_restarts_are_over_a_time(text: str) -> None:
    (death,) = read_text(text).post_mortems()
    assert "restarted 6 times within 1h 00m" in " ".join(death.reading)


def test_the_counter_of_systemd_is_of_the_unit_that_was_killed() -> None:
    unit = "2026-02-03T10:00:2{}Z h systemd[1]: api.service: {}"
    said = (OF_A_PROCESS, MAIN, FAILED, "Scheduled restart job, restart counter is at 5.")
    text = "\n".join(unit.format(n, line) for n, line in enumerate(said))
    (death,) = read_text(text).post_mortems()
    assert "Its unit was restarted 5 times." in death.reading[0]


def test_what_is_killed_with_its_group_is_no_death_of_its_own(tmp_path: Path) -> None:
    lines = [
        kernel(SCAN.format(path="/a", comm="api", pid=7)),
        kill(),
        kernel("Tasks in /a are going to be killed due to memory.oom.group set"),
        kill(8, "sh"),
        kill(),
        kill(9, "sh"),
    ]
    (death,) = read_lines(tmp_path, *lines).post_mortems()
    assert (death.victim, death.pid) == ("api", 7)
    assert "With it, the whole group was killed (memory.oom.group): sh." in death.reading


def test_the_line_of_a_kill_that_a_message_quotes_is_the_death_that_it_reports() -> None:
    words = "Your “shop” application hosted on Fly.io crashed because it ran out of memory."
    line = f"Out of memory: {KILL.format(pid=513, comm='ruby', kb=187304).partition(': ')[2]}"
    (death,) = read_text(f"{words}\n\nHere’s the raw log message:\n\n{line}\n").post_mortems()
    assert (death.victim, death.pid, death.scope) == ("ruby", 513, "global")


RAN = "kernel: dockerd invoked oom-killer: gfp_mask=0x201da, order=0, oom_score_adj=-500"


@pytest.mark.parametrize(
    ("at", "said"),
    [("04:10:02", "and the kernel's OOM killer ran"), ("09:10:02", "nothing in the input")],
)
def test_a_unit_ended_with_137_when_the_oom_killer_ran(at: str, said: str) -> None:
    text = (
        f"2026-11-20T04:10:01+00:00 n1 {RAN}\n"
        f"2026-11-20T{at}+00:00 n1 systemd[1]: orders.service: Main process exited, "
        "code=exited, status=137/n/a\n"
    )
    run = read_text(text)
    (death,) = run.report().analysis.post_mortems
    assert death.victim == "orders.service"
    shown = " ".join(str(run.summary()).split())
    assert said in shown
    assert "kubelet" not in shown
    assert "dockerd asked for memory" in shown


@pytest.mark.parametrize(
    ("text", "is_inside"),
    [
        ("OOMKilled=true Running=true Pid=4711", True),
        ("OOMKilled:true Running:true", True),
        ("OOMKilled=true Running=false ExitCode=137", False),
        ("OOMKilled=true", False),
    ],
)
def test_the_flag_of_a_running_container_is_of_a_process_in_it(
    text: str, is_inside: bool
) -> None:
    shown = " ".join(str(read_text(f"{text}\n").summary()).split())
    assert ("it may have gone on running" in shown) is is_inside


OF_NODE = (
    "kubectl describe po | grep -A5 'Last State'\n"
    "    Last State:     Terminated\n      Reason:       OOMKilled\n"
    "      Exit Code:    137\n      Finished:     Mon, 19 May 2025 10:14:43 +0000\n\n"
    "kubectl describe no\n"
    "  Warning  OOMKilling   65s    kernel-monitor    {kill}\n"
)
OF_MEMCG = (
    "Memory cgroup out of memory: Killed process {pid} (api) total-vm:7169492kB, "
    "anon-rss:{kb}kB, file-rss:44kB, shmem-rss:0kB, UID:0 pgtables:14076kB oom_score_adj:1000"
)


@pytest.mark.parametrize(
    ("pid", "kb", "kills"), [(77, 716582, 1), (78, 716582, 2), (77, 716583, 2)]
)
@pytest.mark.parametrize("fence", ["", "```\n"])
def test_a_kill_in_several_parts_of_a_text_is_one(
    fence: str, pid: int, kb: int, kills: int
) -> None:
    """The clock of the node may have another zone."""
    event = OF_NODE.format(kill=OF_MEMCG.format(pid=77, kb=716582))
    line = f"May 19 18:14:43 n kernel: {OF_MEMCG.format(pid=pid, kb=kb)}\n"
    text = f"{fence}{event}{fence}\n{fence}cat /var/log/syslog\n{line}{fence}"
    proven = [death for death in read_text(text).post_mortems() if death.pid]
    assert len(proven) == kills
