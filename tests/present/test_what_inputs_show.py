"""Reports of inputs without GC cycles say what the input shows, and no more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.ingest.evidence.words import after_crash
from gctrace_analyzer.present.sections import headline
from gctrace_analyzer.testing import read_text

if TYPE_CHECKING:
    from pathlib import Path

RESIDENT = "Time: {}s  Resident size: {}MB  MemStats.Sys: {}MB  MemStats.Alloc: 3.1MB\n"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("runtime/cgo: pthread_create failed: Resource temporarily unavailable", "ulimit -u"),
        ("runtime: failed to create new OS thread (have 772 already; errno=11)", "ulimit -u"),
        ("runtime: failed to create new OS thread (have 2 already; errno=22)", "emulators"),
        ("fatal error: all goroutines are asleep - deadlock!", "Every goroutine waits"),
        ("panic: runtime error: index out of range [3]", "What failed stands in the error"),
    ],
)
def test_the_advice_after_a_crash_is_about_its_cause(error: str, said: str) -> None:
    assert said in after_crash(error)
    with pytest.raises(NoDataError, match=said.replace("-", ".")):
        read_text(f"{error}\n\ngoroutine 1 [chan receive]:\nmain.main()\n")


def test_a_crash_may_begin_behind_other_text_on_its_line() -> None:
    error = "runtime/cgo: pthread_create failed: Resource temporarily unavailable"
    rest = (
        "SIGABRT: abort\nPC=0x6b220e m=0 sigcode=18446744073709551610\n\ngoroutine 0 [idle]:\n"
    )
    with pytest.raises(NoDataError, match=r"crash of a Go program(?s:.)*kernel\.threads-max"):
        read_text(f"  Warning  Failed  25m  kubelet, n1  Error: runc failed: {error}\n{rest}")


@pytest.mark.parametrize(("last", "beyond"), [((14.5, 12.1), None), ((40, 12), "28 MiB more")])
def test_what_is_resident_beyond_go_is_a_difference_of_sizes(
    last: tuple[float, float], beyond: str | None
) -> None:
    """At first, parts of what Go had obtained may not have been resident."""
    shown = str(read_text(RESIDENT.format(0, 6, 8) + RESIDENT.format(60, *last)).summary())
    assert ("what grows outside Go" in shown) == (beyond is not None)
    assert beyond is None or beyond in " ".join(shown.split())


def test_a_watched_pod_has_the_last_number_of_its_restarts() -> None:
    head = "NAME   READY   STATUS    RESTARTS   AGE\n"
    lines = (
        "OOMKilled 3 3d2h",
        "Running 4 3d2h",
        "OOMKilled 4 3d2h",
        "CrashLoopBackOff 4 3d2h",
    )
    text = head + "".join(f"checkout-5f7c9b9c4d-m2ltw   0/1   {line}\n" for line in lines)
    deaths = read_text(text).post_mortems()
    assert len(deaths) == 2
    assert all("restarted 4 times within" in death.reading[0] for death in deaths)


def test_the_name_of_a_pod_is_no_event() -> None:
    usage = [{"name": "stress", "usage": {"cpu": "0", "memory": "19732Ki"}}]
    pod = {"metadata": {"name": "oomkilled-85d9cf68b6-wfrt9"}, "containers": usage}
    shown = str(read_text(json.dumps({"kind": "PodMetricsList", "items": [pod]})).summary())
    assert "The container stress used 19.3 MiB" in shown


def test_a_zone_in_front_of_a_message_is_read() -> None:
    text = "2026-03-14 09:21:07.884 CET Memory limit of 512 MiB exceeded with 527 MiB used."
    (death,) = read_text(text).post_mortems()
    assert str(death.logged_at) == "2026-03-14 08:21:07.884000+00:00"
    assert death.error is not None
    assert death.error.startswith("Memory limit")


STATUS = (
    "● api.service - API\n"
    "     Active: active (running) since Sat 2026-03-14 08:11:12 UTC; 3h ago\n     Memory: {}\n"
)


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        (
            "899.8M (high: 900.0M max: 1.0G available: 184.0K peak: 900.4M)",
            "has reached its MemoryHigh, 900 MiB",
        ),
        (
            "611.3M (high: 700.0M max: 800.0M available: 88.6M peak: 700.1M)",
            "used 611 MiB, and has reached its MemoryHigh, 700 MiB",
        ),
        (
            "1.9G (high: 1.8G max: 2.0G available: 0B peak: 2.0G swap: 310.2M swap peak: 402.0M)",
            "its MemoryHigh, 1,843 MiB: above it, the kernel takes memory back and slows its "
            "processes down, and kills none; 310 MiB more are in swap. ▸ If the program in the "
            "unit api.service is written in Go, set GOMEMLIMIT=1658MiB (90 % of MemoryHigh)",
        ),
        ("412.0M (high: 900.0M max: 1.0G available: 488.0M)", "used 412 MiB of its 1,024 MiB"),
        ("1.0G (max: 1.0G available: 0B)", "page cache included"),
        ("412.3M (max: 1.0G available: 611.6M)", "612 MiB are left"),
    ],
)
def test_the_nearest_limit_of_a_unit_is_said(memory: str, said: str) -> None:
    shown = " ".join(str(read_text(STATUS.format(memory)).summary()).split())
    assert said in shown


def test_a_threshold_that_slows_a_unit_down_is_no_limit() -> None:
    run = read_text(
        "$ systemctl show ingestd -p MemoryMax,MemoryHigh,MemoryCurrent,NRestarts,Environment\n"
        f"NRestarts=4\nMemoryMax=infinity\nMemoryHigh={2 << 30}\nMemoryCurrent={2 << 30}\n"
        "Environment=GOGC=100 GOMEMLIMIT=3GiB\n"
    )
    shown = " ".join(str(run.summary()).split())
    assert "▸ Set GOMEMLIMIT=1843MiB, 90 % of MemoryHigh, if the live heap is smaller." in shown
    assert "container limit" not in shown


@pytest.mark.parametrize(("limit", "said"), [("512", True), ("400", False)])
def test_a_memory_limit_that_fills_the_container_is_said_before_it_is_killed(
    limit: str, said: bool
) -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: api-0\nspec:\n  containers:\n"
        f"  - name: api\n    env:\n    - name: GOMEMLIMIT\n      value: {limit}MiB\n"
        "    resources:\n      limits:\n        memory: 512Mi\n"
        "status:\n  phase: Running\n  containerStatuses:\n  - name: api\n    restartCount: 0\n"
    )
    shown = " ".join(str(read_text(text).summary()).split())
    assert ("▸ Set GOMEMLIMIT=460MiB, 90 % of the limit, if the live" in shown) is said


STATS = (
    "services:\n  api:\n    environment:\n      - GOMEMLIMIT={}MiB\n    mem_limit: 384m\n\n"
    "CONTAINER ID   NAME   CPU %   MEM USAGE / LIMIT     MEM %    PIDS\n"
    "fe7834d3e921   api    0.01%   360.3MiB / 384MiB     93.82%   4\n"
)


def test_a_memory_limit_that_leaves_room_is_not_raised_where_none_is_left(
    tmp_path: Path,
) -> None:
    alone = tmp_path / "stats.txt"
    alone.write_text(STATS[STATS.index("CONTAINER") :])
    for run in (read_text(STATS.format(320)), gca.read(alone, memory_limit="320MiB")):
        shown = " ".join(str(run.summary()).split())
        assert (
            "▸ GOMEMLIMIT is 320 MiB already. If the program in the container api is written in "
            "Go, at least 40.3 MiB are memory that Go does not count, page cache included, or its "
            "live heap does not fit: raise the limit, or lower GOMEMLIMIT if the live heap is "
            "smaller." in shown
        )
    shown = " ".join(str(read_text(STATS.format(370)).summary()).split())
    assert "▸ Set GOMEMLIMIT=345MiB, 90 % of the limit, if the live heap is smaller." in shown
    run = read_text(
        "$ systemctl show api -p MemoryHigh,MemoryCurrent,Environment\n"
        f"MemoryHigh={2 << 30}\nMemoryCurrent={2 << 30}\nEnvironment=GOMEMLIMIT=1700MiB\n"
    )
    shown = " ".join(str(run.summary()).split())
    assert "does not fit: raise MemoryHigh, or lower GOMEMLIMIT" in shown


@pytest.mark.parametrize(
    ("line", "cpu", "heap"),
    [
        ("gc 105 @5291.789s 33%: ... 18348->20183->18309 MB, 18348 MB goal, 12 P", 33, True),
        ("gc 105 @5291.789s 7%: 0.018+1.2", 7, False),
        ("gc 105 @5291.789s 7%: 0.01and then 18348->20183->18309 MB, 18348 MB goal", 7, False),
    ],
)
def test_the_rest_of_a_line_that_was_not_read_shows_what_gc_costs(
    line: str, cpu: int, heap: bool
) -> None:
    shown = " ".join(str(read_text(f"{line}\n").summary()).split())
    assert f"GC took {cpu} % of the CPU in the first 1h 28m of the program." in shown
    assert ("Its live heap was 17.9 GiB" in shown) is heap


def test_values_below_a_command_are_those_of_its_files() -> None:
    text = (
        "$ cd /sys/fs/cgroup/system.slice/api.service; cat memory.max memory.current memory.peak "
        "memory.events\n1073741824\n640016384\n1073741824\nlow 0\nhigh 0\nmax 812\noom 3\n"
        "oom_kill 3\noom_group_kill 0\n"
    )
    (death,) = read_text(text).post_mortems()
    assert (death.subject, death.victim) == ("A process in the unit", "api.service")
    assert "It reached its limit: 1,024 MiB, with 1,024 MiB in use" in " ".join(death.reading)
    assert "it used 610 MiB" in " ".join(death.reading)


def test_a_number_of_pm2_is_no_program() -> None:
    text = (
        "PM2 log: [PM2][WORKER] Process 0 restarted because it exceeds --max-memory-restart value "
        "(current_memory=330403840 max_memory_limit=314572800 [octets])\n"
    )
    (death,) = read_text(text).post_mortems()
    assert death.subject == "The instance"
    assert death.advice[0].startswith("If the program in it is written in Go")


def test_an_index_of_cloud_foundry_is_an_instance() -> None:
    text = "2026-03-14T11:10:31.10+0000 [APP/PROC/WEB/0] OUT Exit status 137 (out of memory)\n"
    (death,) = read_text(text).post_mortems()
    assert (death.subject, death.victim) == ("The instance", "WEB/0")
    assert not any("WEB/0 is written" in advice for advice in death.advice)


def test_one_metric_of_a_process_is_no_program_without_metrics() -> None:
    text = (
        'process_resident_memory_bytes{job="api"} =>\n210001920 @[1773460800]\n'
        "293118976 @[1773461100]\n"
    )
    with pytest.raises(NoDataError, match="ask the server"):
        read_text(text)


QUERIED = '{}{{instance="{}:8080", job="api"}} => {} @[1741082400.123]\n'


@pytest.mark.parametrize("metric", ["go_memstats_alloc_bytes", "go_memstats_sys_bytes"])
def test_one_metric_of_the_memory_of_go_is_read(metric: str) -> None:
    command = f"$ promtool query instant http://localhost:9090 {metric}\n"
    lines = (QUERIED.format(metric, host, 183020112) for host in ("a", "b"))
    assert "175 MiB" in str(read_text(command + "".join(lines)).summary())


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((200, 248, 291, 391), "rose from 200 MiB to 391 MiB"),
        ((200, 248, 391, 291), "was 391 MiB at most"),
        ((200, 391), "was 391 MiB at most"),
        ((300, 310, 320, 330), "was 330 MiB at most"),
    ],
)
def test_a_size_that_is_highest_in_the_last_of_several_dumps_rose(
    sizes: tuple[int, ...], said: str
) -> None:
    head = '"Time","go_memstats_heap_inuse_bytes{instance=""a""}"\n'
    rows = (f"2025-03-01 1{at}:00:00,{size << 20}\n" for at, size in enumerate(sizes))
    assert f"The heap in use {said}" in str(read_text(head + "".join(rows)).summary())


def test_a_size_has_no_more_digits_than_were_printed() -> None:
    text = "".join(f"Alloc = {size} MiB\tSys = 39 MiB\tNumGC = 4\n" for size in (7, 30, 0))
    shown = " ".join(str(read_text(text).summary()).split())
    assert "rose from 7 MiB to 30 MiB, and was under 1 MiB at the end" in shown
    assert "39.0" not in shown


OF_UNIT = (
    "● {0}.service - A service\n     Active: active (running) since Mon\n     Memory: {1}\n"
)


@pytest.mark.parametrize(
    ("memory", "said", "advice"),
    [
        ("38.4M (peak: 61.2M)", "used 38.4 MiB (61.2 MiB at most).", "If it is written in Go"),
        ("38.4M", "used 38.4 MiB.", "If it is written in Go"),
        ("38.4M (swap: 3.0M swap peak: 9.0M)", "used 38.4 MiB.", "If it is written in Go"),
        (
            "56.0M (high: 30.0M available: 0B)",
            "used 56 MiB, and has reached its MemoryHigh, 30 MiB",
            "GOMEMLIMIT=27MiB",
        ),
        ("97.0M (limit: 100.0M)", "used 97 MiB of its 100 MiB", "GOMEMLIMIT=90MiB"),
    ],
)
def test_the_status_of_a_unit_shows_its_memory(memory: str, said: str, advice: str) -> None:
    found = headline.verdict(read_text(OF_UNIT.format("orders", memory)).report())
    assert found.sentence.startswith(f"The unit orders.service {said}")
    assert advice in found.action


def test_figures_do_not_cover_a_process_with_one_dump() -> None:
    dumps = [(1, 11), (1, 12), (2, 31), (2, 33), (3, 90)]
    text = "".join(
        f"2026-11-20T04:10:0{at}Z app-{pod} app[{pod}]: Alloc=2300000 Sys=74000000 NumGC={cycles}\n"
        for at, (pod, cycles) in enumerate(dumps)
    )
    shown = " ".join(str(read_text(text).summary()).split())
    assert "2 of 3 processes together" in shown
    assert "The figures cover 2 processes together" in shown


IF_GO = "If it is written in Go"


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("/usr/local/bin/containerd", "Run the program"),
        ("/usr/bin/kubelet --config=x", "Run the program"),
        ("./orders -p 80", IF_GO),
        ("/usr/bin/python3 a.py", "Limit the memory of python3"),
    ],
)
def test_a_table_names_its_only_process(command: str, advice: str) -> None:
    text = (
        "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n"
        f"root      969765  7.6 63.1 50808908 41557296 ?   Ssl  Mar05 1635:51 {command}\n"
    )
    found = headline.verdict(read_text(text).report())
    name = command.split()[0].rpartition("/")[2]
    assert found.sentence.startswith(f"Memory of {name}: 40,583 MiB are resident.")
    assert found.action.startswith(advice)


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        ("1.4G", "used 1.4 GiB."),
        ("841.0M", "used 841 MiB."),
        ("22.3M (peak: 1.2G)", "used 22.3 MiB (1.2 GiB at most)."),
    ],
)
def test_a_status_has_tenths_of_gib(memory: str, said: str) -> None:
    assert (
        said in headline.verdict(read_text(OF_UNIT.format("orders", memory)).report()).sentence
    )


def test_two_known_programs_are_each_one_of_them() -> None:
    text = "".join(OF_UNIT.format(name, "1.4G") for name in ("k3s", "containerd"))
    assert headline.verdict(read_text(text).report()).action.startswith("Run one of them with")


def test_a_goroutine_profile_is_of_a_program_in_go() -> None:
    used = "POD      NAME    CPU(cores)   MEMORY(bytes)\norders-1 orders  2m           1543Mi\n"
    for profile, advice in (
        ("", IF_GO),
        ("goroutine profile: total 1204\n", "Run the program"),
    ):
        report = read_text(f"{used}{profile}").report()
        assert headline.verdict(report).action.startswith(advice)
        shown = "".join(report.analysis.log.notes)
        assert ("Goroutines in the profile: 1,204." in shown) is bool(profile)


def test_the_share_of_a_start_up_is_not_judged() -> None:
    ended = 1741082400 * 10**9
    ends = [ended + 10**7 * at for at in (4, 1, 2, 3)]
    dump = {
        "HeapAlloc": 41482616, "HeapSys": 45744128, "HeapIdle": 3629056, "HeapInuse": 42115072,
        "HeapReleased": 0, "Sys": 51476744, "NextGC": 71 << 20, "LastGC": ends[0], "NumGC": 4,
        "PauseTotalNs": 13841600, "PauseNs": [34100, 13700000, 67600, 39900] + [0] * 252,
        "GCCPUFraction": 0.374, "NumForcedGC": 0,
    }  # fmt: skip
    for step, said in ((1, "too short to judge"), (1000, "which is high")):
        later = [ended + step * (end - ended) for end in ends] + [0] * 252
        text = json.dumps({"memstats": dump | {"LastGC": max(later), "PauseEnd": later}})
        assert said in " ".join(str(read_text(text).summary()).split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('1.1.1.4 - - [04/Mar/2025:08:00:01 +0000] "GET /oom HTTP/1.1" 200 612', "access log"),
        (
            "ok  \texample.com/store 44.120s\n##[error]Process completed with exit code 143.",
            "SIGTERM",
        ),
    ],
)
def test_a_log_of_something_else_gets_no_advice_for_go(text: str, said: str) -> None:
    with pytest.raises(NoDataError, match=said) as caught:
        read_text(text)
    assert "GODEBUG" not in str(caught.value)


def test_a_list_of_containers_has_their_exit_codes() -> None:
    line = '2b3c4d5e6f70  shop:dev  "/app/worker"  2 hours ago  Exited (2) 2 hours ago    worker-1\n'
    found = headline.verdict(read_text(line).report())
    ended = "The container worker-1 ended with exit code 2 (in Go, that of a panic"
    assert found.sentence.startswith(ended)
    killed = line.replace("(2)", "(137)").replace("worker-1", "api-1").replace("2b3c", "9b1c")
    assert ended in " ".join(str(read_text(killed + line).summary()).split())


def test_the_share_of_a_start_up_in_a_heap_profile_is_not_judged() -> None:
    ends = " ".join(str(1795955019000000000 + at * 10**7) for at in range(1, 7))
    text = (
        "heap profile: 1: 8 [1: 8] @ heap/1048576\n1: 8 [1: 8] @ 0x47e02c\n"
        "# runtime.MemStats\n# Sys = 235718968\n# HeapSys = 230424576\n# HeapInuse = 144662528\n"
        f"# PauseNs = [27326709 1 2 3 4 5 {'0 ' * 249}0]\n# PauseEnd = [{ends} {'0 ' * 249}0]\n"
        "# NumGC = 6\n# GCCPUFraction = 0.199\n"
    )
    assert "too short to judge" in " ".join(str(read_text(text).summary()).split())


def test_a_heap_that_goes_up_and_down_has_not_risen() -> None:
    rows = (
        f"2026-11-28 10:{at:02}:00,{(180, 220, 221)[at % 3]} MiB,{240 + 9 * at} MiB"
        for at in range(60)
    )
    text = "\n".join(("Time,go_memstats_heap_inuse_bytes,process_resident_memory_bytes", *rows))
    found = headline.verdict(read_text(text).report())
    assert found.sentence.startswith(
        "The heap in use was 221 MiB at most in the dumps; resident memory rose"
    )
    assert "heap profile" not in found.action


def test_the_cpu_of_a_program_bounds_that_of_its_gc() -> None:
    page = (
        "go_gc_duration_seconds_sum 0.3194\ngo_gc_duration_seconds_count 4811\n"
        "go_memstats_alloc_bytes 1.4e7\ngo_memstats_alloc_bytes_total 5.2e10\n"
        "go_memstats_last_gc_time_seconds 1796149991\nprocess_start_time_seconds 1795900000\n"
        "process_cpu_seconds_total 1821.4\n"
    )
    shown = " ".join(str(read_text(page).summary()).split())
    assert "CPU used 0.73 % of one CPU, by GC and the program" in shown
