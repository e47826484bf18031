"""Post-mortems: kills matched to processes, and what dumps and units show."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.postmortem.death import Death
from gctrace_analyzer.analysis.postmortem.facts import Limit
from gctrace_analyzer.analysis.postmortem.post_mortems import _limit
from gctrace_analyzer.analysis.settings.known import Known, Settings
from gctrace_analyzer.ingest.evidence import yaml_documents
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.corpus import INPUTS, expectation, named, read
from tests.helpers.logs import KILL, journal, logfile, read_lines, records

if TYPE_CHECKING:
    from pathlib import Path

JOINED = [path for path in INPUTS if expectation(path)["expect"].get("post_mortem")]


def unit(*texts: str) -> list[str]:
    return [
        f"2026-02-03T10:00:{n:02}Z h systemd[1]: {text}" for n, text in enumerate(texts, 10)
    ]


@pytest.mark.parametrize("path", JOINED, ids=named)
def test_a_kill_finds_its_program(path: Path) -> None:
    expected = expectation(path)["expect"]["post_mortem"]
    (found,) = read(path).post_mortems()
    assert expected["match_by"] in found.match_by
    assert found.confidence == "high"
    assert found.last_gc_num == expected["last_gc_num"]
    assert found.gap_s == pytest.approx(
        expected["gap_s_exact"], abs=max(expected["gap_tolerance_s"], 0.001)
    )
    assert found.limit_mib == 512
    # 164 to 279 of the 511 MiB can have been heap (164 if the log has no fractions of a second).
    assert found.go_heap_mib == 164
    assert found.go_heap_most_mib == pytest.approx(277.2, abs=2)
    assert found.off_heap_mib == pytest.approx(510.8 - 277.2, abs=2)
    assert found.preventable == "unknown"


def test_a_live_heap_that_does_not_fit_cannot_be_prevented_by_go(tmp_path: Path) -> None:
    line = (
        "gc {n} @{n}.016s 2%: 0.018+0.19+0.058 ms clock, 0.037+0.058/0.035/0.025+0.11 ms cpu, "
        "500->505->500 MB, 510 MB goal, 0 MB stacks, 0 MB globals, 2 P"
    )
    lines = journal(
        7,
        "api",
        KILL.format(pid=7, comm="api", kb=522_000),
        [line.format(n=n) for n in range(1, 9)],
    )
    run = gca.read(logfile(tmp_path / "log", lines), container_limit="512MiB")
    (found,) = run.post_mortems()
    assert found.preventable == "no"
    assert any("live heap alone" in text for text in found.reading)
    assert "GOMEMLIMIT=" not in " ".join(found.advice)


def test_exit_code_137_alone_proves_nothing(tmp_path: Path) -> None:
    state = {"Status": "exited", "OOMKilled": False, "ExitCode": 137, "Error": ""}
    (found,) = gca.read(logfile(tmp_path / "state", [json.dumps(state)])).post_mortems()
    assert not found.proven
    assert found.preventable == "unknown"
    assert "OOMKilled=false, which does not rule out an OOM kill" in found.reading[0]


@pytest.mark.parametrize(
    "lines",
    [
        ["4f5e6d7c8b9a   api   Exited (137) 3 minutes ago   api"],
        [
            "    Last State:     Terminated",
            "      Reason:       Error",
            "      Exit Code:    137",
        ],
    ],
    ids=["docker ps", "kubectl describe"],
)
def test_a_state_that_leaves_it_open_denies_nothing(lines: list[str], tmp_path: Path) -> None:
    (found,) = gca.read(logfile(tmp_path / "list", lines)).post_mortems()
    assert not found.proven
    assert "any process may have sent" in found.reading[0].lower()


def test_the_sources_of_a_service_may_come_in_any_order(tmp_path: Path) -> None:
    lines = [f"2026-02-03T10:00:{n:02}Z {line}" for n, line in enumerate(records(9))]
    log = logfile(tmp_path / "run.log", lines)
    kill = logfile(
        tmp_path / "kern.log",
        [f"2026-02-03T10:00:10Z h kernel: {KILL.format(pid=1, comm='app', kb=400_000)}"],
    )
    stats = logfile(
        tmp_path / "stats.csv",
        ["time,HeapSys,HeapAlloc,Sys", "2026-02-03T10:00:05Z,1000000,500000,2000000"],
    )
    for order in ((log, kill, stats), (stats, kill, log)):
        run = gca.read(*order)
        assert (len(run.cycles), len(run.oom_kills), len(run.memstats)) == (9, 1, 1)
        (found,) = run.post_mortems()
        assert found.last_gc_num == 9
        assert found.go_other_mib == pytest.approx(1_000_000 / 2**20)


def test_a_kill_for_memory_outside_the_heap_is_not_preventable_by_go(tmp_path: Path) -> None:
    lines = [
        f"2026-02-03T10:00:{n:02}Z h api[7]: gc {n} @{n}.016s 0%: 0.018+0.19+0.058 ms clock, "
        "0.037+0.058/0.035/0.025+0.11 ms cpu, 4->4->1 MB, 5 MB goal, 2 P"
        for n in range(1, 20)
    ]
    lines.append(f"2026-02-03T10:00:20Z h kernel: {KILL.format(pid=7, comm='api', kb=523_000)}")
    (found,) = read_lines(tmp_path, *lines, container_limit="512MiB").post_mortems()
    assert found.preventable == "no"
    assert not any("GOMEMLIMIT=" in text for text in found.advice)


def test_a_unit_that_systemd_reports_as_killed_has_one_post_mortem(tmp_path: Path) -> None:
    lines = unit(
        "api.service: A process of this unit has been killed by the OOM killer.",
        "api.service: Failed with result 'oom-kill'.",
        "web.service: Failed with result 'exit-code'.",
    )
    (found,) = gca.read(logfile(tmp_path / "log", lines)).post_mortems()
    assert (found.kind, found.victim, found.proven) == (
        "Unit killed for memory",
        "api.service",
        True,
    )
    assert found.to_dict()["match_by"] == []


def test_gos_own_out_of_memory_is_a_death(tmp_path: Path) -> None:
    fatal = "runtime: out of memory: cannot allocate 4194304-byte block (66977792 in use)"
    lines = journal(7, "api", KILL.format(pid=9, comm="x", kb=5), records(5))[:-1]
    lines.append(f"2026-02-03T10:00:09Z h api[7]: {fatal}")
    (found,) = gca.read(logfile(tmp_path / "log", lines)).post_mortems()
    assert (found.kind, found.killer) == ("Out of memory in the Go runtime", "the Go runtime")
    assert found.last_gc_num == 5


def test_a_kill_for_the_memory_of_the_host_names_who_held_it(tmp_path: Path) -> None:
    head = "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name"
    task = "[{pid:7d}]     0 {pid:5d}   200000 {rss:8d}   900000        0             0 {name}"
    kill = KILL.format(pid=7, comm="api", kb=400_000).replace("Memory cgroup out", "Out")
    for sizes, expected in (
        ((100_000, 300), "api 391 MiB, db 1.2 MiB"),
        ((100, 9000), "db 562 MiB, api 6.2 MiB"),
    ):
        block = [
            "api invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
            head,
            task.format(pid=7, rss=sizes[0], name="api"),
            task.format(pid=9, rss=sizes[1], name="db"),
            kill,
        ]
        lines = [f"2026-02-03T10:00:06Z h kernel: {line}" for line in block]
        own = journal(7, "api", "", records(5))[:-1]
        (found,) = gca.read(logfile(tmp_path / "log", [*own, *lines])).post_mortems()
        assert found.limit_is == "the host's memory"
        assert expected in found.reading[1]


def test_a_container_state_of_a_recorded_kill_is_not_a_second_death(tmp_path: Path) -> None:
    identifier = "a" * 64
    context = (
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
        f"oom_memcg=/docker/{identifier},task_memcg=/docker/{identifier},task=app,pid=9,uid=0"
    )
    texts = [context, KILL.format(pid=9, comm="app", kb=500_000)]
    log = logfile(
        tmp_path / "kern.log", [f"2026-02-03T10:00:06Z h kernel: {text}" for text in texts]
    )
    state: dict[str, Any] = {
        "Id": identifier,
        "State": {"Status": "exited", "OOMKilled": True, "ExitCode": 137},
    }
    states = logfile(tmp_path / "state.json", [json.dumps(state)])
    (found,) = gca.read(log, states).post_mortems()
    assert found.kind == "OOM kill"
    (alone,) = gca.read(states).post_mortems()
    assert alone.kind == "Container OOMKilled (exit code 137)"


UID, DEAD, LATER = "11112222-3333-4444-5555-666677778888", "a" * 64, "b" * 64
RESTARTED: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "api-0", "uid": UID},
    "spec": {"containers": [{"name": "api", "resources": {"limits": {"memory": "1Gi"}}}]},
    "status": {
        "containerStatuses": [
            {
                "name": "api",
                "containerID": f"containerd://{LATER}",
                "state": {"running": {"startedAt": "2026-02-03T10:00:07Z"}},
                "lastState": {
                    "terminated": {
                        "containerID": f"containerd://{DEAD}",
                        "exitCode": 137,
                        "reason": "OOMKilled",
                        "finishedAt": "2026-02-03T10:00:06Z",
                    }
                },
            }
        ]
    },
}
RESTARTED_DESCRIBED = f"""\
Name:         api-0
Containers:
  api:
    Container ID:   containerd://{LATER}
    State:          Running
      Started:      Tue, 03 Feb 2026 10:00:07 +0000
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Finished:     Tue, 03 Feb 2026 10:00:06 +0000
    Restart Count:  1
    Limits:
      memory:  1Gi
"""


def in_pod(tmp_path: Path, comm: str, identifier: str) -> Path:
    group = f"/kubepods/burstable/pod{UID}/{identifier}"
    lines = (
        "memory: usage 1048576kB, limit 1048576kB, failcnt 3",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
        f"oom_memcg={group},task_memcg={group},task={comm},pid=9,uid=0",
        KILL.format(pid=9, comm=comm, kb=500_000),
    )
    return logfile(
        tmp_path / "kern.log", [f"2026-02-03T10:00:06Z h kernel: {text}" for text in lines]
    )


@pytest.mark.parametrize("comm", ["server", "api"])
@pytest.mark.parametrize("state", [json.dumps(RESTARTED), RESTARTED_DESCRIBED])
def test_a_pod_that_was_started_again_died_once(comm: str, state: str, tmp_path: Path) -> None:
    pod = logfile(tmp_path / "pod.txt", state.splitlines())
    (found,) = gca.read(in_pod(tmp_path, comm, DEAD), pod).post_mortems()
    assert (found.victim, found.pod, found.limit_mib) == (comm, "api-0", 1024)
    assert found.resident_mib is not None


def test_an_earlier_container_of_a_pod_died_too(tmp_path: Path) -> None:
    pod = logfile(tmp_path / "pod.json", [json.dumps(RESTARTED)])
    run = gca.read(in_pod(tmp_path, "server", "c" * 64), pod)
    assert [found.pod for found in run.post_mortems()] == ["api-0", "api-0"]
    assert run.container_states["container_id"].to_list() == [DEAD]


def test_a_kill_before_the_first_cycle_has_no_last_cycle(tmp_path: Path) -> None:
    lines = journal(7, "api", KILL.format(pid=7, comm="api", kb=500_000), records(5))
    lines[-1] = lines[-1].replace("10:00:06Z", "09:59:59Z")
    (found,) = gca.read(logfile(tmp_path / "log", lines)).post_mortems()
    assert found.last_gc_num is None
    assert found.gc_cpu_share is None


def test_a_unit_that_systemd_oomd_killed_has_a_post_mortem_without_a_count(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.log"
    path.write_text(
        "2026-01-01T00:00:01+0000 node systemd[1]: api.service: systemd-oomd killed some "
        "process(es) in this unit.\n"
    )
    (death,) = gca.read(path).post_mortems()
    assert (death.kind, death.killer) == ("Unit killed for memory", "systemd-oomd")
    assert (death.victim, death.proven) == ("api.service", True)


def test_deaths_of_several_containers_are_not_all_of_the_only_program(tmp_path: Path) -> None:
    def state(name: str, identifier: str) -> dict[str, Any]:
        return {
            "Id": identifier * 64,
            "Name": f"/{name}",
            "State": {
                "Status": "exited", "OOMKilled": True, "ExitCode": 137,
                "StartedAt": "2026-01-01T00:00:00Z", "FinishedAt": "2026-01-01T00:01:00Z",
            },
            "HostConfig": {"Memory": 1 << 29},
        }  # fmt: skip

    log = logfile(tmp_path / "run.log", records(30))
    path = tmp_path / "inspect.json"
    path.write_text(json.dumps([state("api", "a")]))
    (death,) = gca.read(log, path).post_mortems()
    assert (death.process, death.match_by) == (0, ("only program",))
    path.write_text(json.dumps([state("api", "a"), state("worker", "b")]))
    deaths = gca.read(log, path).post_mortems()
    assert [(each.victim, each.process) for each in deaths] == [("api", None), ("worker", None)]


@pytest.mark.parametrize(
    ("known", "mib", "of"),
    [
        (
            {"oom_memcg": "/a", "unit": "u", "name": "n", "container": "c"},
            64,
            "the limit of /a",
        ),
        ({"unit": "u", "name": "n", "container": "c"}, 64, "the limit of u"),
        ({"name": "n", "container": "c"}, 64, "the limit of n"),
        ({"container": "c"}, 64, "the limit of c"),
        ({}, 64, "its limit"),
        ({"limit_bytes": None, "unit": "u"}, 96, "the container's limit"),
        ({"limit_bytes": 0}, 96, "the container's limit"),
        ({"scope": "global"}, None, "the host's memory"),
    ],
)
def test_a_limit_has_the_most_exact_name_that_is_known(
    known: dict[str, Any], mib: float | None, of: str
) -> None:
    settings = Settings(container_limit_mib=Known(96.0, "given"))
    death: dict[str, Any] = {"scope": "memcg", "limit_bytes": 64 << 20, **known}
    assert _limit(Death(**death), settings) == Limit(mib, of)
    unknown: dict[str, Any] = {**death, "limit_bytes": None, "scope": None}
    assert _limit(Death(**unknown), Settings()) == Limit()


def test_printed_it_is_what_the_report_says() -> None:
    (death,) = gca.read(SAMPLES / "oom-journal.jsonl").post_mortems()
    first, *others = str(death).splitlines()
    assert first == "OOM kill: leakd"
    assert others == [*death.reading, *(f"▸ {text}" for text in death.advice)]
    assert "None" not in repr(death)


def test_a_kill_and_the_finding_give_the_same_growth_for_the_same_time() -> None:
    pod = "Name:  batch-1\nContainers:\n  batch:\n    State:  Terminated\n"
    pod += "      Reason: OOMKilled\n      Exit Code:  137\n    Restart Count:  0\n"
    run = gca.read(SAMPLES / "leak-go1.26.log", io.StringIO(pod))
    (death,), findings = run.post_mortems(), run.report().analysis.findings
    (growth,) = (finding for finding in findings if finding.id == "GC021")
    (said,) = (text for text in death.reading if "live heap grew" in text)
    assert growth.evidence.startswith(said.partition(". ")[0])


_OF_HOST = (
    "[Mon Jun 19 05:16:10 {}] Out of memory: Kill process 1877 (influxd) score 760 or sacrifice child\n"
    "[Mon Jun 19 05:16:10 {}] Killed process 1877 (influxd) total-vm:4928944kB, "
    "anon-rss:1551316kB, file-rss:0kB\n"
)


@pytest.mark.parametrize(("year", "has_limits"), [(2017, False), (2023, True)])
def test_a_program_that_died_before_go_had_memory_limits_is_not_told_to_set_one(
    year: int, has_limits: bool
) -> None:
    (death,) = read_text(_OF_HOST.replace("{}", str(year))).post_mortems()
    assert ("GOMEMLIMIT" in " ".join(death.advice)) is has_limits


@pytest.mark.parametrize(("anon_kb", "is_small"), [(18812, True), (189000, False)])
@pytest.mark.parametrize("name", ["envoy", "api"])
def test_a_small_victim_of_an_unknown_limit_is_not_what_filled_it(
    name: str, anon_kb: int, is_small: bool
) -> None:
    line = (
        f"[113782.638786] Memory cgroup out of memory: Killed process 1949510 ({name}) "
        f"total-vm:3264844kB, anon-rss:{anon_kb}kB, file-rss:30452kB, shmem-rss:4kB\n"
    )
    (death,) = read_text(line).post_mortems()
    advice = " ".join(death.advice)
    assert ("what else uses memory under this limit" in advice) is is_small
    assert not (is_small and ("Limit the memory of" in advice or "raise its" in advice))


def test_a_reason_of_kubernetes_that_names_no_memory_is_said(tmp_path: Path) -> None:
    lines = [
        "    Last State:     Terminated",
        "      Reason:       Error",
        "      Exit Code:    137",
    ]
    (found,) = gca.read(logfile(tmp_path / "list", lines)).post_mortems()
    assert "The reason is Error, not OOMKilled" in found.reading[0]
    assert "kubectl get events" in found.advice[0]


@pytest.mark.parametrize(
    "lines",
    [
        [
            "● worker.service - batch worker",
            "     Active: failed (Result: oom-kill) since Sat 2026-05-02 08:12:01 UTC; 3min ago",
            "   Main PID: 4242 (code=exited, status=3)",
        ],
        [
            "worker.service: A process of this unit has been killed by the OOM killer.",
            "worker.service: Main process exited, code=exited, status=3/NOTIMPLEMENTED",
            "worker.service: Failed with result 'oom-kill'.",
        ],
    ],
    ids=["status", "journal"],
)
def test_a_unit_whose_main_process_exited_lost_a_child(
    lines: list[str], tmp_path: Path
) -> None:
    at = "" if lines[0].startswith("●") else "May 02 08:12:01 node1 systemd[1]: "
    (found,) = gca.read(
        logfile(tmp_path / "list", [at + line for line in lines])
    ).post_mortems()
    assert found.proven
    assert (
        "The unit ended with exit code 3, so its main process was not killed"
        in found.reading[0]
    )


def test_a_build_that_lost_its_compiler_is_said_to(tmp_path: Path) -> None:
    at = "2026-05-02T08:12:01"
    lines = [
        f"{at}.123Z Memory limit of 512 MiB exceeded with 541 MiB used.",
        f"{at}.300Z go build acme.org/app: /usr/local/go/pkg/tool/linux_amd64/link: signal: killed",
    ]
    (found,) = gca.read(logfile(tmp_path / "list", lines)).post_mortems()
    assert (found.subject, found.victim, found.limit_mib) == ("The program", "link", 512)
    assert "go build -p 1" in found.advice[0]


def test_a_state_of_docker_with_names_and_no_quotes(tmp_path: Path) -> None:
    line = (
        "State:{Status:exited Running:false OOMKilled:true Dead:false Pid:0 ExitCode:137 Error: "
        "StartedAt:2026-05-02T08:00:01Z FinishedAt:2026-05-02T08:12:01Z}"
    )
    (found,) = gca.read(logfile(tmp_path / "list", [line])).post_mortems()
    assert found.proven
    assert f"{found.logged_at:%H:%M:%S}" == "08:12:01"


@pytest.mark.parametrize(
    ("line", "subject"),
    [
        ("worker exited: signal: killed", "A child of the program"),
        ("Epoch 0 terminated with an error: signal: killed        ", "A child of the program"),
        ("/usr/local/go/pkg/tool/linux_amd64/compile: signal: killed", "The program compile"),
    ],
)
def test_what_os_exec_says_is_of_a_child(line: str, subject: str, tmp_path: Path) -> None:
    run = gca.read(logfile(tmp_path / "out", [line]))
    assert (verdict := run.report().verdict)
    (found,) = run.post_mortems()
    assert verdict.sentence.startswith(f"{subject} was killed by SIGKILL")
    is_child = subject.startswith("A child")
    assert ("exec.CommandContext" in found.reading[0]) is is_child


def test_an_end_that_the_app_and_the_api_of_cloud_foundry_print_is_one(tmp_path: Path) -> None:
    at = "2025-01-02T10:00:00.00+0000"
    lines = [
        f"{at} [APP/PROC/WEB/0] OUT Exit status 137 (out of memory)",
        f'{at} [API/1] OUT App instance exited with guid 8a payload: {{"reason"=>"CRASHED", '
        '"exit_description"=>"APP/PROC/WEB: Exited with status 137 (out of memory)"}',
    ]
    (found,) = gca.read(logfile(tmp_path / "out", lines)).post_mortems()
    assert found.victim == "WEB/0"


def test_a_stop_after_a_kill_is_an_end_of_its_own(tmp_path: Path) -> None:
    lines = [
        "2025-06-11T10:12:41.1+02:00 container oom 4f1c8d (image=api:1.2, name=api)",
        "2025-06-11T10:12:41.4+02:00 container die 4f1c8d (exitCode=137, name=api)",
        "2025-06-11T10:40:03.5+02:00 container kill 4f1c8d (image=api:1.2, name=api, signal=15)",
        "2025-06-11T10:40:13.5+02:00 container kill 4f1c8d (image=api:1.2, name=api, signal=9)",
        "2025-06-11T10:40:13.7+02:00 container die 4f1c8d (exitCode=137, name=api)",
        "$ docker inspect -f '{{.HostConfig.Memory}} {{.Config.Env}}' api",
        "536870912 [GOMEMLIMIT=480MiB GOGC=100]",
    ]
    run = gca.read(logfile(tmp_path / "out", lines))
    killed, stopped = run.post_mortems()
    assert (killed.proven, killed.limit_mib, stopped.proven) == (True, 512, False)
    assert "longer grace period" in stopped.advice[0]
    assert run.settings.value("memory_limit_mib") == 480


LIMITS = "    - resources:\n        limits:\n          cpu: '1'\n          memory: 256Mi\n"
STATE = (
    "lastState:\n        terminated:\n          exitCode: 137\n          reason: OOMKilled\n"
)


def test_a_limit_above_the_state_of_an_unnamed_container_is_its_own(tmp_path: Path) -> None:
    path = logfile(tmp_path / "out", [f"  containers:\n{LIMITS}....\n{STATE}"])
    (found,) = gca.read(path).post_mortems()
    assert found.limit_mib == 256


def test_an_item_may_have_lost_a_part_of_its_first_indentation(tmp_path: Path) -> None:
    text = (
        " - containerID: cri-o://4e196253a9478ddc52a19bedadf1\n    image: registry.org/operator\n"
        "    lastState:\n      terminated:\n        exitCode: 137\n        reason: OOMKilled\n"
        "    name: controller\n    ready: false\n    restartCount: 7\n"
    )
    (found,) = gca.read(logfile(tmp_path / "out", [text])).post_mortems()
    assert found.victim == "controller"
    assert "restarted 7 times" in " ".join(found.reading)


@pytest.mark.parametrize(
    "text",
    [
        "- lastState:\n      terminated:\n        exitCode: 137\n  name: controller\n",
        "- message: |\n      text: of several lines\n  name: controller\n",
        '- message: "one:\n      two: three"\n  name: controller\n',
        "- limits: {\n      memory: 1Gi}\n  name: controller\n",
        "- limits: &small\n      memory: 1Gi\n  name: controller\n",
        "- lastState: # of the first\n      exitCode: 137\n  name: controller\n",
    ],
)
def test_an_item_that_begins_with_a_value_of_several_lines_keeps_it(text: str) -> None:
    ((_, found),) = yaml_documents.values(text)
    assert found == yaml.safe_load(text)


def test_a_limit_of_jetsam_cannot_be_raised(tmp_path: Path) -> None:
    line = (
        "memorystatus: killing_specific_process pid 4242 [org.acme.ios.network-extension] "
        "(per-process-limit 3) - memorystatus_available_pages: 40123"
    )
    (found,) = gca.read(logfile(tmp_path / "out", [line])).post_mortems()
    assert "debug.SetMemoryLimit" in found.advice[0]
    # The cause says it.
    assert not any("reached its memory limit" in text for text in found.reading)
    assert not any("kubectl" in step for step in found.advice)
