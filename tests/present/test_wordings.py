"""Wordings and layouts of the wild that one reading of the formats would miss."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from tests.helpers.logs import AT, KILL, RECORDS, logfile

if TYPE_CHECKING:
    from pathlib import Path


def read(tmp_path: Path, *lines: str, **options: Any) -> gca.Run:
    return gca.read(logfile(tmp_path / "log", list(lines)), **options)


@pytest.mark.parametrize(
    "pattern",
    [
        'time="2026-02-03T10:00:00.005Z" level=info msg="{}"',
        'ts=2026-02-03T10:00:00.005Z caller=main.go:12 level=info msg="{}"',
        'time=2026-02-03T11:00:00.005+01:00 level=INFO msg="{}"',
    ],
)
def test_logfmt_has_its_time(pattern: str, tmp_path: Path) -> None:
    run = read(tmp_path, *(pattern.format(record) for record in RECORDS))
    assert run.cycles["gc_num"].to_list() == [1, 2]
    assert run.cycles["logged_at"][0] == AT


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (
            "app.scope: The kernel OOM killer killed some processes in this unit.",
            "oom_killed_process",
        ),
        (
            "app.scope: systemd-oomd killed some process(es) in this unit.",
            "oomd_killed_processes",
        ),
        (
            "dbus-:1.2-org.x@0.service: Main process exited, code=exited, status=1/FAILURE",
            "main_exited",
        ),
    ],
)
def test_systemd(line: str, event: str, tmp_path: Path) -> None:
    run = read(tmp_path, f"2026-02-03T10:00:00Z h systemd[1]: {line}")
    (row,) = run.unit_events.to_dicts()
    assert (row["event"], row["unit"]) == (event, line.split(": ")[0])


PODS = """\
Name:             {name}
Namespace:        shop
Containers:
  app:
    Container ID:  containerd://{id}
    State:         Running
      Started:     Sun, 01 Mar 2026 09:00:05 +0100
    Restart Count: 0
    Limits:
      memory:  512Mi
    Environment:
      GOMEMLIMIT:  536870912 (limits.memory)
Volumes:
  cfg:
    Type:  ConfigMap (a volume populated by a ConfigMap)
    Name:  orders-config
Events:
  Type     Reason   Age  From     Message
  ----     ------   ---- ----     -------
  Warning  BackOff  2m   kubelet  Back-off restarting failed container
"""


def test_several_pods_keep_their_names(tmp_path: Path) -> None:
    text = PODS.format(name="a-1", id="a" * 64) + "\n" + PODS.format(name="b-2", id="b" * 64)
    run = read(tmp_path, *text.split("\n"))
    assert run.container_states["pod"].to_list() == ["a-1", "b-2"]
    assert run.container_states["gomemlimit_bytes"].to_list() == [536870912] * 2


BLOCK = [
    "kube-proxy invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    "CPU: 1 UID: 997 PID: 4245 Comm: kube-proxy Tainted: G        W  OE      6.12.9-200.fc41 #1",
    "memory: usage 524288kB, limit 524288kB, failcnt 31",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,"
    "task_memcg=/a,task=kube-proxy,pid=7,uid=0",
    KILL.format(pid=7, comm="kube-proxy", kb=5),
]


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("stamp", ["[  100.00000{}] ", "Feb  3 10:00:00 h kernel: "])
def test_a_kill_is_one_row_in_either_direction(
    stamp: str, newest_first: bool, tmp_path: Path
) -> None:
    lines = [stamp.format(n) + line for n, line in enumerate(BLOCK)]
    (row,) = read(tmp_path, *(lines[::-1] if newest_first else lines)).oom_kills.to_dicts()
    assert (row["pid"], row["invoker_comm"], row["order"]) == (7, "kube-proxy", 0)
    assert (row["usage_bytes"], row["kernel_release"]) == (524288 * 1024, "6.12.9-200.fc41")


MIB = 1 << 20


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Alloc = 25 mb TotalAlloc = 38 mb Sys = 35 mb NumGC = 5",
            {"alloc_bytes": 25 * MIB, "sys_bytes": 35 * MIB},
        ),
        ("Alloc=12M Sys=30M NumGC=3", {"alloc_bytes": 12 * MIB, "sys_bytes": 30 * MIB}),
        ("Alloc = 1 MiB Sys = 2 MiB PauseTotal = 1.5ms", {"pause_total_ns": 1_500_000}),
        (
            "runtime.MemStats{Alloc:0x1e240, TotalAlloc:0x23cace, NumGC:0x2}",
            {"alloc_bytes": 0x1E240, "num_gc": 2},
        ),
        (
            "{Alloc:123456 Mallocs:5000 Frees:4000 NumGC:2 BySize:[{Size:0 Mallocs:0 Frees:0} {Size:16 Mallocs:11 Frees:9}]}",
            {"mallocs": 5000, "frees": 4000},
        ),
        (
            "Alloc = 25 MiB\nTotalAlloc = 38 MiB\nSys = 35 MiB\nNumGC = 5",
            {"sys_bytes": 35 * MIB, "num_gc": 5},
        ),
        (
            "heap_alloc=12.5MiB heap_sys=20.0MiB num_gc=7",
            {"heap_alloc_bytes": 12.5 * MIB, "num_gc": 7},
        ),
    ],
)
def test_printed_memstats(text: str, expected: dict[str, float], tmp_path: Path) -> None:
    (row,) = read(tmp_path, *text.split("\n")).memstats.to_dicts()
    assert {name: row[name] for name in expected} == expected


def test_metrics_of_several_pods_are_kept_apart(tmp_path: Path) -> None:
    names = ("heap_alloc_bytes", "heap_sys_bytes", "next_gc_bytes")
    lines = [
        f'go_memstats_{name}{{pod="{pod}"}} {n}e6 1772352000.123'
        for n, name in enumerate(names, 1)
        for pod in "ab"
    ]
    run = read(tmp_path, *lines)
    assert run.memstats["pod"].to_list() == ["a", "b"]
    assert run.memstats["heap_sys_bytes"].to_list() == [2_000_000] * 2
    assert {at.year for at in run.memstats["logged_at"]} == {2026}


@pytest.mark.parametrize(
    "line",
    [
        "2026-03-01T08:00:00Z INFO supervisor killed process 4123 (worker)",
        '2026-03-01T08:00:00Z INFO docs: it prints "Out of memory: Killed process 99 (demo) total-vm:1kB, anon-rss:1kB"',
        "2026-03-01T08:00:00Z INFO batch [12] 10 20 30 40 50 60 70 80 done",
        "2026-03-01T08:00:00Z INFO recovered error: runtime: out of memory in worker",
    ],
)
def test_what_an_application_says_is_no_kill(line: str, tmp_path: Path) -> None:
    run = read(tmp_path, line, *RECORDS)
    assert not (len(run.oom_kills) + len(run.oom_tasks) + len(run.runtime_fatal))


def test_the_kubelet_tells_of_the_same_kill(tmp_path: Path) -> None:
    told = "System OOM encountered, victim process: app, pid: 7"
    run = read(
        tmp_path,
        f"2026-02-03T10:00:00Z h kernel: {KILL.format(pid=7, comm='app', kb=5)}",
        f'2026-02-03T10:00:00Z h kubelet[1]: "Event occurred" reason="SystemOOM" message="{told}"',
    )
    assert len(run.oom_kills) == 1


def test_what_is_not_the_heap_is_not_gos_to_prevent(tmp_path: Path) -> None:
    lines = [
        f"2026-02-03T10:00:{n:02}Z h api[7]: gc {n} @{n}.016s 0%: 0.018+0.19+0.058 ms clock, "
        "0.037+0.058/0.035/0.025+0.11 ms cpu, 4->4->1 MB, 5 MB goal, 2 P"
        for n in range(1, 20)
    ]
    lines.append(f"2026-02-03T10:00:20Z h kernel: {KILL.format(pid=7, comm='api', kb=523_000)}")
    (found,) = read(tmp_path, *lines, container_limit="512MiB").post_mortems()
    assert found.preventable == "cannot tell"
    assert not any("GOMEMLIMIT=" in text for text in found.advice)


def test_gos_own_end_in_every_wording(tmp_path: Path) -> None:
    for text in ("fatal error: out of memory", "fatal error: runtime: cannot allocate memory"):
        assert len(read(tmp_path, text).runtime_fatal) == 1


def test_spreadsheets(tmp_path: Path) -> None:
    run = read(tmp_path, "sep=;", "HeapAlloc;HeapSys;NumGC;GCCPUFraction", "1;2;3;0,0012")
    assert run.memstats["gc_cpu_fraction"].to_list() == [0.0012]


@pytest.mark.parametrize(
    "text",
    [
        "time,HeapAlloc (MiB),heap_sys_mb,HeapIdleKB,NumGC\n2026-01-01T00:00:00Z,12.5,64,20480,3\n",
        '{"time":"2026-01-01T00:00:00Z","heap_alloc_mib":12.5,"heapSysMB":64,'
        '"heap_idle_kib":20480,"num_gc":3}\n',
    ],
    ids=("csv", "json"),
)
def test_names_that_carry_a_unit(text: str, tmp_path: Path) -> None:
    path = tmp_path / "memory"
    path.write_text(text)
    row = gca.read(path).memstats.row(0, named=True)
    assert row["heap_alloc_bytes"] == 12.5 * (1 << 20)
    assert (row["heap_sys_bytes"], row["heap_idle_bytes"]) == (64 << 20, 20 << 20)
    assert row["num_gc"] == 3


def test_the_kernels_messages_as_json(tmp_path: Path) -> None:
    kill = KILL.format(pid=4242, comm="api", kb=524288)
    entry = {"fac": "kern", "pri": "warn", "time": 5.5, "msg": kill}
    row = read(tmp_path, json.dumps({"dmesg": [entry]}, indent=3)).oom_kills.row(0, named=True)
    assert (row["pid"], row["comm"], row["anon_rss_bytes"]) == (4242, "api", 512 << 20)
    assert row["monotonic_s"] == 5.5
