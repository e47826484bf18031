"""OOM kills in kernel logs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.ingest.evidence import oom
from gctrace_analyzer.ingest.evidence.message import Message, Row
from gctrace_analyzer.ingest.evidence.oom_lines import scope
from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.present.text import plain
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import KILL, RECORDS, read_lines

if TYPE_CHECKING:
    from pathlib import Path

NAMES = st.from_regex(r"[a-z][a-z0-9]{0,9}(-[a-z0-9]{1,4})?", fullmatch=True)

BLOCK = [
    "kube-proxy invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    "CPU: 1 UID: 997 PID: 4245 Comm: kube-proxy Tainted: G        W  OE      6.12.9-200.fc41 #1",
    "memory: usage 524288kB, limit 524288kB, failcnt 31",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,"
    "task_memcg=/a,task=kube-proxy,pid=7,uid=0",
    KILL.format(pid=7, comm="kube-proxy", kb=5),
]

CONTEXT = (
    "oom-kill:constraint={constraint},nodemask=(null),cpuset=/,mems_allowed=0,"
    "global_oom,task_memcg=/a.service,task=api,pid=7,uid=0"
)

KILLED = (
    "Out of memory: Killed process 7 (api) total-vm:900000kB, anon-rss:{kb}kB, file-rss:0kB, "
    "shmem-rss:0kB, UID:0 pgtables:100kB oom_score_adj:0"
)


def kernel(*texts: str) -> dict[str, list[Row]]:
    """Returns the rows of messages of the kernel, one second apart."""
    return oom.read(Message(n, text, monotonic_s=float(n)) for n, text in enumerate(texts, 1))


@settings(max_examples=30)
@given(st.integers(1, 1 << 22), NAMES, st.integers(1, 1 << 40))
def test_a_kernel_kill_reads_as_printed(pid: int, comm: str, kb: int) -> None:
    line = "kernel: " + KILL.format(pid=pid, comm=comm[:15], kb=kb)
    kill = read_text(line + "\n").oom_kills.row(0, named=True)
    assert (kill["pid"], kill["comm"], kill["scope"]) == (pid, comm[:15], "memcg")
    assert kill["anon_rss_bytes"] == kb * 1024


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("prefix", ["[  100.00000{}] ", "Feb  3 10:00:00 h kernel: "])
def test_a_kill_is_one_row_in_either_direction(
    prefix: str, newest_first: bool, tmp_path: Path
) -> None:
    lines = [prefix.format(n) + line for n, line in enumerate(BLOCK)]
    (row,) = read_lines(
        tmp_path, *(lines[::-1] if newest_first else lines)
    ).oom_kills.to_dicts()
    assert (row["pid"], row["invoker_comm"], row["order"]) == (7, "kube-proxy", 0)
    assert (row["usage_bytes"], row["kernel_release"]) == (524288 * 1024, "6.12.9-200.fc41")


@pytest.mark.parametrize(
    "line",
    [
        "2026-03-01T08:00:00Z INFO supervisor killed process 4123 (worker)",
        '2026-03-01T08:00:00Z INFO docs: it prints "Out of memory: Killed process 99 (demo) total-vm:1kB, anon-rss:1kB"',
        "2026-03-01T08:00:00Z INFO batch [12] 10 20 30 40 50 60 70 80 done",
        "2026-03-01T08:00:00Z INFO recovered error: runtime: out of memory in worker",
    ],
)
def test_an_application_message_about_kills_is_not_a_kill(line: str, tmp_path: Path) -> None:
    run = read_lines(tmp_path, line, *RECORDS)
    assert not (len(run.oom_kills) + len(run.oom_tasks) + len(run.runtime_fatal))


def test_a_kill_that_the_kubelet_reports_too_is_one_kill(tmp_path: Path) -> None:
    message = "System OOM encountered, victim process: app, pid: 7"
    run = read_lines(
        tmp_path,
        f"2026-02-03T10:00:00Z h kernel: {KILL.format(pid=7, comm='app', kb=5)}",
        f'2026-02-03T10:00:00Z h kubelet[1]: "Event occurred" reason="SystemOOM" message="{message}"',
    )
    assert len(run.oom_kills) == 1


def test_a_group_kill_marks_every_process_of_the_group() -> None:
    other = KILL.format(pid=8, comm="helper", kb=50)
    rows = kernel(
        KILL.format(pid=7, comm="api", kb=100),
        "Tasks in /a are going to be killed due to memory.oom.group set",
        KILL.format(pid=7, comm="api", kb=100),
        other,
        "oom_reaper: reaped process 7 (api), now anon-rss:1kB, file-rss:0kB, shmem-rss:2kB",
    )["oom_kills"]
    assert [(row["pid"], row["oom_group"]) for row in rows] == [(7, True), (8, True)]
    assert rows[0]["reaped"]
    assert rows[0]["reaped_shmem_rss_bytes"] == 2048


def test_a_kill_that_is_reported_again_adds_its_missing_facts() -> None:
    line = KILL.format(pid=7, comm="api", kb=100)
    rows = oom.read(
        [Message(1, line, monotonic_s=5.0), Message(2, line, ident="kernel", host="node-1")]
    )["oom_kills"]
    assert [(row["pid"], row["host"]) for row in rows] == [(7, "node-1")]


def test_a_kill_on_two_lines_has_the_sizes_of_the_second() -> None:
    (row,) = kernel(
        "Out of memory: Killed process 7 (api)",
        "  total-vm:900kB, anon-rss:100kB, file-rss:4kB",
    )["oom_kills"]
    assert (row["total_vm_bytes"], row["anon_rss_bytes"]) == (900 * 1024, 100 * 1024)
    assert row["scope"] == "global"


@pytest.mark.parametrize("quote", ["", "> "])
@pytest.mark.parametrize(
    "lines",
    [
        "{}Memory cgroup out of memory: Killed|process 7 (api) total-vm:900kB, anon-rss:100kB,|"
        "file-rss:4kB, shmem-rss:0kB, UID:0 pgtables:12kB|oom_score_adj:995",
        "{}Memory cgroup out of memory: Killed process 7 (api)|total-vm:900kB, anon-|rss:100kB, "
        "file-rss:4kB, shmem-rss:0kB",
        "{}Memory cgroup out of memory: Kill process 7|(api) score 905 or sacrifice child|"
        "{}Killed process 7 (api)|total-vm:900kB, anon-rss:100kB, file-rss:4kB",
        "{}Memory cgroup out of memory: |Killed process 7 (api) total-vm:900kB, anon-rss:100kB, "
        "file-rss:4kB, shmem-rss:0kB",
    ],
)
def test_a_kill_that_a_mail_wrapped_is_whole(lines: str, quote: str) -> None:
    begin = "Mar  4 10:00:01 node1 kernel: [12001.112] "
    text = lines.replace("{}", begin).replace("|", "\n")
    run = read_text("".join(f"{quote}{line}\n" for line in text.splitlines()))
    (row,) = run.oom_kills.to_dicts()
    sizes = row["total_vm_bytes"], row["anon_rss_bytes"], row["file_rss_bytes"]
    assert sizes == (900 * 1024, 100 * 1024, 4 * 1024)
    assert (row["pid"], row["scope"], row["host"]) == (7, "memcg", "node1")
    assert run.oom_invocations.is_empty()


@pytest.mark.parametrize(
    ("text", "pid", "scope"),
    [
        # The first line is whole, so the second one does not belong to it.
        (
            "{}Out of memory: Kill process 9 (python) score 17 or sacrifice child\n"
            "{}Killed process 7\n(sh) total-vm:900kB, anon-rss:100kB, file-rss:4kB\n",
            7, "global",
        ),
        # The head of the first line stands alone.
        (
            "{}\noom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,"
            "global_oom,task_memcg=/a,task=api,pid=7,uid=1\n{}Out of memory: Killed process 7\n"
            "(api) total-vm:900kB, anon-rss:100kB, file-rss:4kB,\nshmem-rss:0kB\n",
            7, "global",
        ),
        # Without CONFIG_CPUSETS
        (
            "{}oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),global_oom,task_memcg=/,"
            "task=api,pid=7,uid=0\n{}Out of memory: Killed process 7 (api) total-vm:900kB, "
            "anon-rss:100kB, file-rss:0kB, shmem-rss:0kB\n",
            7, "global",
        ),
        (
            "{}oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/a,task_memcg=/a,"
            "task=api,pid=7,uid=0\n{}Memory cgroup out of memory: Killed process 7 (api) "
            "total-vm:900kB, anon-rss:100kB\n",
            7, "memcg",
        ),
    ],
)  # fmt: skip
def test_a_kill_counts_once_however_its_lines_are_wrapped(
    text: str, pid: int, scope: str
) -> None:
    for head in ("Jul 22 10:42:40 n1 kernel: ", "[  100.1] "):
        run = read_text(text.replace("{}", head))
        (row,) = run.oom_kills.to_dicts()
        assert (row["pid"], row["scope"], row["anon_rss_bytes"]) == (pid, scope, 100 << 10)
    (death,) = run.post_mortems()
    is_certain = "constraint" in text
    assert any("probably" in said for said in death.reading) == (not is_certain)


def test_lines_without_a_prefix_are_not_joined() -> None:
    line = (
        "Out of memory: Killed process {} (api) total-vm:900kB, anon-rss:100kB, file-rss:4kB\n"
    )
    run = read_text(
        line.format(7) + "oom_reaper: reaped process 7 (api), now anon-rss:0kB, "
        "file-rss:0kB, shmem-rss:0kB\n" + line.format(8)
    )
    assert run.oom_kills["pid"].to_list() == [7, 8]
    assert run.oom_kills["reaped"].to_list() == [True, None]


def test_an_interrupted_kill_is_truncated_but_counts() -> None:
    (row,) = kernel(
        "api invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "CPU: 1 PID: 42 Comm: api Not tainted 5.10.0-8-amd64 #1",
        CONTEXT.format(constraint="CONSTRAINT_NONE"),
    )["oom_kills"]
    assert (row["pid"], row["truncated"], row["scope"]) == (7, True, "global")
    assert (row["invoker_pid"], row["kernel_release"]) == (42, "5.10.0-8-amd64")
    assert row["unit"] == "a.service"


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("CONSTRAINT_CPUSET", "cpuset"),
        ("CONSTRAINT_MEMORY_POLICY", "mempolicy"),
        ("CONSTRAINT_NONE", "global"),
    ],
)
def test_the_constraint_decides_the_scope_of_a_kill(constraint: str, expected: str) -> None:
    rows = kernel(CONTEXT.format(constraint=constraint), KILLED.format(kb=100))["oom_kills"]
    assert [row["scope"] for row in rows] == [expected]


def test_a_memcg_constraint_without_a_path_is_a_memcg_kill() -> None:
    context = CONTEXT.format(constraint="CONSTRAINT_MEMCG").replace("global_oom,", "")
    (row,) = kernel(context, "Killed process 7 (api) total-vm:9kB, anon-rss:1kB")["oom_kills"]
    assert row["scope"] == "memcg"


def test_a_kill_on_the_host_does_not_complete_the_one_that_a_group_announced() -> None:
    context = CONTEXT.format(constraint="CONSTRAINT_MEMCG").replace("global_oom,", "")
    rows = kernel(context, "Out of memory: Killed process 99 (other) total-vm:9kB")["oom_kills"]
    assert [(row["comm"], row["scope"]) for row in rows] == [
        ("api", "memcg"),
        ("other", "global"),
    ]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Memory cgroup out of memory", "memcg"),
        ("Out of memory", "global"),
        ("No available memory (MPOL_BIND)", "mempolicy"),
        ("No available memory in cpuset", "cpuset"),
        ("Killed", None),
        (None, None),
    ],
)
def test_the_wording_of_a_kill_decides_its_scope(
    message: str | None, expected: str | None
) -> None:
    assert scope(message) == expected


def test_page_tables_of_the_first_linux_5_4_are_bytes() -> None:
    line = KILLED.format(kb=100).replace("pgtables:100kB", "pgtables:409600kB")
    (row,) = kernel(line)["oom_kills"]
    assert row["pgtables_bytes"] == 409600


def test_the_page_size_follows_from_the_killed_task() -> None:
    head = "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name"
    rows = kernel(
        "api invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        head,
        "[      7]     0     7    20000       100   900000        0             0 api",
        "[      9]     0     9    20000        10   900000        0             0 sidecar",
        "[      x]     0",
        KILL.format(pid=7, comm="api", kb=100 * 64),
    )["oom_tasks"]
    assert [row["rss_bytes"] for row in rows] == [100 * 65536, 10 * 65536]
    assert {row["kill_line_no"] for row in rows} == {6}


def test_a_row_of_the_task_table_that_is_cut_short_is_ignored() -> None:
    rows = kernel("Out of memory: Killed process 7 (api)", "[    7]     0     7    20 x")
    assert rows["oom_tasks"] == []


def test_a_task_table_of_an_old_kernel_has_its_columns() -> None:
    table = "[ 4242]     0  4242    20000      100   1     -17          -1000 sshd"
    (row,) = kernel("Out of memory: Killed process 7 (api)", table)["oom_tasks"]
    assert (row["pid"], row["comm"], row["rss_bytes"]) == (4242, "sshd", 100 * 4096)


def test_an_incident_without_a_victim_is_an_invocation() -> None:
    rows = kernel(
        "api invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "memory: usage 1024kB, limit 1024kB, failcnt 3",
        "swap: usage 4kB, limit 9007199254740988kB, failcnt 0",
        "Out of memory and no killable processes...",
    )
    (row,) = rows["oom_invocations"]
    assert rows["oom_kills"] == []
    assert (row["scope"], row["failcnt"], row["limit_bytes"]) == ("memcg", 3, 1 << 20)
    assert (row["swap_usage_bytes"], row["swap_limit_bytes"]) == (4096, None)


@pytest.mark.parametrize(
    ("at", "comm", "runs"),
    [
        ("Sep  3 18:18:13 h kernel:", "agent", 0),
        ("Sep  3 18:18:14 h kernel:", "agent", 1),
        ("Sep  3 18:18:13 other kernel:", "agent", 1),
        ("Sep  3 18:18:13 h kernel: [  593.500000]", "agent", 1),
    ],
)
def test_a_run_of_the_oom_killer_shown_below_its_kill_has_that_victim(
    at: str, comm: str, runs: int
) -> None:
    kill = "Out of memory: Killed process 7 (api) total-vm:900kB, anon-rss:100kB, file-rss:4kB"
    run = f"{comm} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"
    for above in ("", f"Sep  3 18:18:13 h kernel: {run}\n"):
        text = f"{above}Sep  3 18:18:13 h kernel: {kill}\n\nBefore that:\n\n{at} {run}\n"
        # A kill whose run is above it does not explain another one.
        assert len(read_text(text).table("oom_invocations")) == (1 if above else runs)


def test_the_stack_of_the_oom_killer_alone_is_an_invocation() -> None:
    for stack in (
        "dump_header from oom_kill_process+0x23c/0x248",
        "oom_kill_process.cold+0xb/0x10",
    ):
        rows = oom.read([Message(1, f"[  612.195476]  {stack}"), Message(2, "Mem-Info:")])
        assert len(rows["oom_invocations"]) == 1
        assert not rows["oom_kills"]
        assert rows["oom_invocations"][0].get("scope") is None


def test_the_stack_says_that_the_limit_of_a_group_was_reached() -> None:
    stack = [
        "out_of_memory+0x6d/0xd0",
        "mem_cgroup_out_of_memory+0xbd/0xe0",
        "try_charge+0x77c",
    ]
    rows = kernel(*(f"[  612.195476]  {line}" for line in stack))
    assert rows["oom_invocations"][0]["scope"] == "memcg"
    rows = kernel(*stack, "Killed process 7 (api) total-vm:900kB, anon-rss:100kB, file-rss:4kB")
    assert rows["oom_kills"][0]["scope"] == "memcg"


def test_facts_without_an_incident_are_ignored() -> None:
    rows = kernel(
        "CPU: 1 PID: 42 Comm: api Not tainted 5.10.0-8-amd64 #1",
        "  total-vm:900kB, anon-rss:100kB, file-rss:4kB",
        "swap: usage 4kB, limit 8kB, failcnt 0",
    )
    assert rows == {"oom_kills": [], "oom_invocations": [], "oom_tasks": []}


@pytest.mark.parametrize(
    "prefix",
    [
        "[   37.12815{}][ T9185] ",
        "[   37.12815{}] [   T9185] ",
        "[   37.12815{} <    0.000001>] ",
        "[   37.12815{}                ] h kernel: ",
        "[   37.12815{} <    0.000001 >] h kernel: ",
        "[Mon Feb  2 07:08:0{} 2026 <    0.000001>] ",
    ],
)
def test_kernel_prefixes_with_caller_or_delta(prefix: str, tmp_path: Path) -> None:
    reaped = "oom_reaper: reaped process 7 (api), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB"
    lines = [prefix.format(8) + KILL.format(pid=7, comm="api", kb=5), prefix.format(9) + reaped]
    kill = read_lines(tmp_path, *lines).oom_kills.row(0, named=True)
    assert (kill["uid"], kill["reaped"]) == (0, True)


@pytest.mark.parametrize(
    "prefix",
    ["[ 1234.567890] ", "[ 1234.567890][ T9999] ", "[Thu Jan  8 12:00:01 2026] [   C3] "],
)
def test_a_caller_id_in_the_prefix_loses_nothing_of_a_kill(prefix: str, tmp_path: Path) -> None:
    lines = [
        "api invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=984",
        "memory: usage 524288kB, limit 524288kB, failcnt 222",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c1,mems_allowed=0,"
        "oom_memcg=/pod1,task_memcg=/pod1/c1,task=api,pid=4242,uid=1000",
        "Memory cgroup out of memory: Killed process 4242 (api) total-vm:2000000kB, "
        "anon-rss:520000kB, file-rss:0kB, shmem-rss:0kB, UID:1000 oom_score_adj:984",
        "Tasks in /pod1 are going to be killed due to memory.oom.group set",
        "oom_reaper: reaped process 4242 (api), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
    ]
    path = tmp_path / "kern.log"
    path.write_text("".join(f"{prefix}{line}\n" for line in lines))
    (row,) = gca.read(path, year=2026, tz="UTC").oom_kills.to_dicts()
    assert (row["uid"], row["reaped"], row["oom_group"]) == (1000, True, True)
    assert (row["oom_memcg"], row["limit_bytes"]) == ("/pod1", 512 << 20)


@pytest.mark.parametrize(
    "prefix",
    [
        "2026-02-03T10:49:30.103Z In(05) vcpu-5 - Guest: <{level}>[39261021.{us:06}] ",
        "2026-02-03T10:49:30.103Z In(05)+ vcpu-0 - Guest: <{level}>[39261021.{us:06}] ",
        "2026-02-03T10:49:30.103Z| vcpu-5| I005: Guest: <{level}>[39261021.{us:06}] ",
    ],
)
def test_a_kill_in_the_log_of_a_virtual_machines_host(prefix: str) -> None:
    lines = [
        "api invoked oom-killer: gfp_mask=0x6200ca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=999",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=api,mems_allowed=0,"
        "oom_memcg=/kubepods/pod1/api,task_memcg=/kubepods/pod1/api,task=api,pid=77,uid=0",
        KILL.format(pid=77, comm="api", kb=522_000),
    ]
    text = "".join(
        prefix.format(level=n + 3, us=91_603 + n) + line + "\n" for n, line in enumerate(lines)
    )
    run = read_text(text)
    (kill,) = run.oom_kills.to_dicts()
    assert (kill["pid"], kill["comm"], kill["anon_rss_bytes"]) == (77, "api", 522_000 << 10)
    assert kill["logged_at"] == datetime(2026, 2, 3, 10, 49, 30, 103_000, tzinfo=UTC)
    assert kill["line_no"] == 3
    assert kill["scope"] == "memcg"


INCIDENT = """\
[ 5230.100000] api invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=3, oom_score_adj=984
[ 5230.100001] CPU: 2 PID: 4243 Comm: api Not tainted 6.1.0-18-cloud-amd64 #1  Debian 6.1.76-1
[ 5230.100002] memory: usage 524288kB, limit 524288kB, failcnt 71
[ 5230.100003] swap: usage 12kB, limit 1024kB, failcnt 5
[ 5230.100004] Tasks state (memory values in pages):
[ 5230.100005] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
[ 5230.100006] [   4242]  1000  4242   226944   129969  1359872        3           984 api server
[ 5230.100007] [   4250]     0  4250      256        1    28672        0          -998 pause
[ 5230.100008] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c1,mems_allowed=0-1,\
oom_memcg=/kubepods/burstable/pod77f06c5c-4593-43e9-b970-987f6ecb825b,task_memcg=/kubepods/burstable/\
pod77f06c5c-4593-43e9-b970-987f6ecb825b/{id},task=api,pid=4242,uid=1000
[ 5230.100009] Memory cgroup out of memory: Killed process 4242 (api) total-vm:907776kB, \
anon-rss:519876kB, file-rss:1000kB, shmem-rss:8kB, UID:1000 pgtables:1328kB oom_score_adj:984
[ 5230.200000] oom_reaper: reaped process 4242 (api), now anon-rss:4kB, file-rss:8kB, shmem-rss:12kB
""".format(id="a" * 64)
POD_UID = "77f06c5c-4593-43e9-b970-987f6ecb825b"


def test_a_kill_has_every_fact_of_its_incident() -> None:
    run = read_text(INCIDENT)
    (kill,) = run.oom_kills.to_dicts()
    path = f"/kubepods/burstable/pod{POD_UID}"
    expected = {
        "monotonic_s": 5230.100009, "killer": "kernel", "scope": "memcg",
        "constraint": "CONSTRAINT_MEMCG", "pid": 4242, "comm": "api", "uid": 1000,
        "oom_memcg": path, "task_memcg": f"{path}/{'a' * 64}", "cgroup": f"{path}/{'a' * 64}",
        "pod_uid": POD_UID, "container_id": "a" * 64, "total_vm_bytes": 907776 << 10,
        "anon_rss_bytes": 519876 << 10, "file_rss_bytes": 1000 << 10, "shmem_rss_bytes": 8 << 10,
        "pgtables_bytes": 1328 << 10, "oom_score_adj": 984, "invoker_comm": "api",
        "invoker_pid": 4243, "kernel_release": "6.1.0-18-cloud-amd64",
        "gfp_mask": "0xcc0(GFP_KERNEL)", "order": 3, "usage_bytes": 524288 << 10,
        "limit_bytes": 524288 << 10, "failcnt": 71, "swap_usage_bytes": 12 << 10,
        "swap_limit_bytes": 1 << 20, "reaped": True, "reaped_anon_rss_bytes": 4 << 10,
        "reaped_file_rss_bytes": 8 << 10, "reaped_shmem_rss_bytes": 12 << 10,
        "mems_allowed": "0-1", "line_no": 10,
    }  # fmt: skip
    assert {name: kill.get(name) for name in expected} == expected
    others = {name for name, value in kill.items() if value is not None} - expected.keys()
    assert others <= {"source", "global_oom", "logged_at"}
    assert run.table("oom_tasks").select(
        "pid", "comm", "uid", "total_vm_pages", "rss_pages", "rss_bytes", "pgtables_bytes",
        "swapents_pages", "oom_score_adj", "line_no", "kill_line_no",
    ).rows() == [
        (4242, "api server", 1000, 226944, 129969, 129969 * 4096, 1359872, 3, 984, 7, 10),
        (4250, "pause", 0, 256, 1, 4096, 28672, 0, -998, 8, 10),
    ]  # fmt: skip


def test_two_incidents_do_not_share_their_facts() -> None:
    second = (
        INCIDENT.replace("4242", "5252").replace("524288", "1048576").replace("[ 52", "[ 62")
    )
    later = "".join(
        line for line in second.splitlines(keepends=True)
        if "swap" not in line and "invoked" not in line and "CPU" not in line
    )  # fmt: skip
    one, other = read_text(INCIDENT + later).oom_kills.to_dicts()
    assert (one["pid"], one["limit_bytes"], one["swap_usage_bytes"]) == (
        4242,
        512 << 20,
        12 << 10,
    )
    assert (other["pid"], other["limit_bytes"], other["swap_usage_bytes"]) == (
        5252,
        1 << 30,
        None,
    )
    assert (other["invoker_comm"], other["order"], other["kernel_release"]) == (
        None,
        None,
        None,
    )
    assert [each["reaped"] for each in (one, other)] == [True, True]


def test_incidents_of_two_hosts_may_be_mixed() -> None:
    lines = []
    for line in INCIDENT.splitlines():
        text = line.partition("] ")[2]
        lines.append(f"Feb  3 10:00:00 node-1 kernel: {text}")
        lines.append(
            f"Feb  3 10:00:00 node-2 kernel: {text.replace('4242', '99').replace('519876', '77')}"
        )
    kills = read_text("\n".join(lines) + "\n").oom_kills.sort("host").to_dicts()
    assert [(kill["host"], kill["pid"], kill["anon_rss_bytes"] >> 10) for kill in kills] == [
        ("node-1", 4242, 519876), ("node-2", 99, 77)
    ]  # fmt: skip
    assert [kill["failcnt"] for kill in kills] == [71, 71]


@pytest.mark.parametrize(
    ("rss_kb", "page"),
    [(100 * 4, 4096), (100 * 16, 16384), (100 * 64, 65536), (101 * 4, 4096), (0, 4096)],
)
def test_the_page_size_is_the_one_that_fits_best(rss_kb: int, page: int) -> None:
    head = "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name"
    rows = kernel(
        "api invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        head,
        "[      7]     0     7    20000       100   900000        0             0 api",
        KILL.format(pid=7, comm="api", kb=rss_kb),
    )["oom_tasks"]
    assert [row["rss_bytes"] for row in rows] == [100 * page]


def test_an_old_kill_has_the_score_and_the_limit_above_it() -> None:
    (row,) = kernel(
        "api invoked oom-killer: gfp_mask=0xd0, order=0, oom_score_adj=0",
        "Task in /docker/aa/x killed as a result of limit of /docker/aa",
        "memory: usage 2048kB, limit 9007199254740988kB, failcnt 3",
        "memory+swap: usage 1kB, limit 2kB, failcnt 9",
        "Memory cgroup out of memory: Kill process 4242 (api) score 1001 or sacrifice child",
        "Killed process 4242 (api) total-vm:90kB, anon-rss:51kB, file-rss:0kB",
    )["oom_kills"]
    assert (row["score"], row["scope"], row["pid"]) == (1001, "memcg", 4242)
    assert (row["oom_memcg"], row["task_memcg"]) == ("/docker/aa", "/docker/aa/x")
    assert (row["usage_bytes"], row["limit_bytes"], row["failcnt"]) == (2 << 20, None, 3)


@pytest.mark.parametrize(
    ("lines", "kills"),
    [
        (["killed process 5 (x)"], 0),
        (["Killed process 5 (x), UID 0, total-vm:1kB, anon-rss:1kB, file-rss:0kB"], 1),
        (["Killed process 5, UID 33, (x) total-vm:1kB, anon-rss:1kB, file-rss:0kB"], 1),
        (['msg="Out of memory: Killed process 5 (x) total-vm:1kB, anon-rss:1kB"'], 0),
        (['message="Out of memory: Killed process 5 (x) total-vm:1kB, anon-rss:1kB"'], 1),
        (
            [
                "Out of memory: Kill process 5 (x) score 9 or sacrifice child",
                "Killed process 5 (x)",
            ],
            1,
        ),
        (
            [
                "Out of memory: Kill process 5 (x) score 9 or sacrifice child",
                "Killed process 6 (y)",
            ],
            1,
        ),
    ],
)
def test_outside_the_kernel_log_a_kill_needs_its_sizes(lines: list[str], kills: int) -> None:
    """Other programs write that they have killed a process."""
    found = oom.read(Message(n, text) for n, text in enumerate(lines, 1))["oom_kills"]
    assert len(found) == kills


def test_the_same_pid_in_another_host_or_with_other_sizes_is_another_kill() -> None:
    line = KILL.format(pid=7, comm="api", kb=100)
    rows = oom.read([
        Message(1, line, ident="kernel", host="a"), Message(2, line, ident="kernel", host="b"),
        Message(3, line, ident="kernel", host="a"),
        Message(4, line.replace("anon-rss:100kB", "anon-rss:101kB"), ident="kernel", host="a"),
        Message(5, line.replace("(api)", "(web)"), ident="kernel", host="a"),
    ])["oom_kills"]  # fmt: skip
    assert sorted(row["line_no"] for row in rows) == [1, 2, 4, 5]
    assert [row["oom_group"] for row in rows] == [None] * 4


def test_an_event_about_a_kill_has_its_age_and_node() -> None:
    text = (
        "2m  Warning  OOMKilling  node/n1  Memory cgroup out of memory: Killed process 7 (api)"
    )
    rest = " total-vm:9kB, anon-rss:1kB, file-rss:0kB"
    (row,) = oom.read([Message(3, text + rest)])["oom_kills"]
    assert (row["age_s"], row["reported_by"], row["node"], row["host"]) == (
        120,
        "node-problem-detector",
        "n1",
        "n1",
    )
    # A table of events wraps long messages.
    (row,) = oom.read([Message(3, text), Message(4, rest)])["oom_kills"]
    assert (row["age_s"], row["anon_rss_bytes"]) == (120, 1024)


@pytest.mark.parametrize(
    ("text", "scope", "reporter"),
    [
        ("System OOM encountered, victim process: app, pid: 7", "global", "kubelet"),
        (
            '09:17:44 Triggered by PID 3 ("sh"), OOM kill of PID 7 ("app"), 131072 pages',
            None,
            "oomkill",
        ),
        ("Process OOM Killed: oom_kill_process called on app (pid: 7)", None, "Datadog"),
    ],
)
def test_a_kill_that_only_others_report_is_a_kill(
    text: str, scope: str | None, reporter: str
) -> None:
    (row,) = oom.read([Message(2, text, host="n1")])["oom_kills"]
    expected = (7, "app", scope, reporter)
    assert (row["pid"], row["comm"], row["scope"], row["reported_by"]) == expected


@pytest.mark.parametrize(
    "text", ["Out of memory and no killable processes...", "Task api is already exiting. Skip killing",
             "Out of memory: system-wide panic_on_oom is enabled"]
)  # fmt: skip
def test_an_incident_that_ends_without_a_kill_is_an_invocation(text: str) -> None:
    rows = kernel(*BLOCK[:2], CONTEXT.format(constraint="CONSTRAINT_NONE"), text, *BLOCK)
    assert len(rows["oom_invocations"]) == 1
    assert [kill["pid"] for kill in rows["oom_kills"]] == [7]
    assert rows["oom_invocations"][0]["line_no"] == 1


@pytest.mark.parametrize(
    ("kb", "page_tables"),
    [(400, 400 << 10), (409600, 409600), (409601, 409601 << 10), (12, 12 << 10)],
)
def test_page_tables_are_bytes_only_if_they_are_impossibly_large(
    kb: int, page_tables: int
) -> None:
    """More than a 64th of the address space, and whole pages."""
    (row,) = kernel(KILLED.format(kb=100).replace("pgtables:100kB", f"pgtables:{kb}kB"))[
        "oom_kills"
    ]
    assert row["pgtables_bytes"] == page_tables


@pytest.mark.parametrize(
    ("cells", "facts"),
    [
        ("0 7 20000 100 5 2 0 api", {"pgtables_bytes": 5 * 4096, "oom_score_adj": 0}),
        ("0 7 20000 100 5 6 2 -17 api", {"pgtables_bytes": 11 * 4096, "oom_score_adj": -17}),
        ("0 7 20000 100 60 30 10 900000 2 -17 api", {"pgtables_bytes": 900000, "rss_anon_pages": 60}),
    ],
)  # fmt: skip
def test_the_columns_of_a_task_without_a_header_follow_from_their_number(
    cells: str, facts: dict[str, int]
) -> None:
    (row,) = kernel(KILL.format(pid=9, comm="x", kb=5), f"[    7] {cells}")["oom_tasks"]
    assert {
        **facts,
        "pid": 7,
        "comm": "api",
        "rss_pages": 100,
        "total_vm_pages": 20000,
    }.items() <= row.items()


@pytest.mark.parametrize(
    ("limit_kb", "limit"),
    [(9007199254740988, None), (9007199254740928, None), (1 << 51, 1 << 61), (0, 0)],
)
def test_a_limit_of_as_many_pages_as_the_kernel_counts_is_none(
    limit_kb: int, limit: int | None
) -> None:
    """PAGE_COUNTER_MAX, which the kernel prints for a group without a limit."""
    for old in ("524288kB, limit 524288kB", "12kB, limit 1024kB"):
        what = "swap_limit_bytes" if old.startswith("12") else "limit_bytes"
        text = INCIDENT.replace(old, f"{old.partition('kB')[0]}kB, limit {limit_kb}kB")
        assert read_text(text).oom_kills[what].to_list() == [limit]


def test_a_kill_of_the_whole_machine_says_so_in_its_context() -> None:
    context = (
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
        "task_memcg=/system.slice/api.service,task=api,pid=4242,uid=1000"
    )
    (kill,) = read_text(f"[  5.1] {context}\n").oom_kills.to_dicts()
    assert (kill["scope"], kill["unit"], kill["uid"]) == ("global", "api.service", 1000)
    assert (kill["constraint"], kill["mems_allowed"], kill["truncated"]) == (
        "CONSTRAINT_NONE", "0", True
    )  # fmt: skip


def test_a_table_before_the_first_line_of_an_incident_belongs_to_it() -> None:
    """A log may begin within the table; without its header, the column of page tables is known."""
    table = [
        "[  38886]     0 38886      243        1    28672        0          -998 pause",
        "[  39079]   107 39079  4457263  4201766 34439168        0           986 qemu",
    ]
    context = CONTEXT.format(constraint="CONSTRAINT_NONE").replace("pid=7", "pid=39079")
    messages = [
        Message(n, text, ident="kernel") for n, text in enumerate([*table, context], start=1)
    ]
    rows = oom.read(messages)
    (kill,) = rows["oom_kills"]
    assert [task["kill_line_no"] for task in rows["oom_tasks"]] == [kill["line_no"]] * 2
    assert rows["oom_tasks"][1]["rss_bytes"] == 4201766 * 4096
    assert rows["oom_tasks"][1]["pgtables_bytes"] == 34439168


def test_a_kernel_that_finds_nothing_to_kill_says_so(tmp_path: Path) -> None:
    run = read_lines(tmp_path, *BLOCK[:2], "Out of memory and no killable processes...")
    assert run.oom_invocations["nothing_killable"].to_list() == [True]
    assert "found no process that it may kill" in " ".join(str(run.summary()).split())
    other = read_lines(tmp_path, *BLOCK[:2])
    assert other.oom_invocations["nothing_killable"].to_list() == [None]
    assert "does not show what it killed" in " ".join(str(other.summary()).split())


def test_an_old_kubelet_reports_a_kill_without_its_victim(tmp_path: Path) -> None:
    event = "  Warning  SystemOOM  17m  kubelet, node1  System OOM encountered"
    run = read_lines(tmp_path, event, event)
    assert (len(run.oom_invocations), len(run.oom_kills)) == (2, 0)
    # The kernel's own record says more.
    assert not len(read_lines(tmp_path, event, BLOCK[-1]).oom_invocations)


SLICE = "/sys/fs/cgroup/system.slice"


@pytest.mark.parametrize(
    ("lines", "said", "limit_mib"),
    [
        # A parent counts the kills in all groups below it, whatever its own limit is.
        ([f"{SLICE}/memory.max:8589934592", f"{SLICE}/memory.events:oom_kill 1"],
         "A process in the group system.slice was killed", None),
        ([f"{SLICE}/memory.max:8589934592", f"{SLICE}/memory.events.local:oom_kill 1"],
         "A process in the unit system.slice was killed", 8192),
        ([f"{SLICE}/memory.events:oom_kill 1", f"{SLICE}/api.service/memory.max:536870912",
          f"{SLICE}/api.service/memory.events:oom_kill 0"],
         "A process in the group system.slice was killed", None),
        ([f"{SLICE}/memory.events:oom_kill 1", f"{SLICE}/api.service/memory.max:536870912",
          f"{SLICE}/api.service/memory.events:oom_kill 1"],
         "A process in the unit api.service was killed", 512),
    ],
)  # fmt: skip
def test_a_count_of_kills_is_of_the_group_or_of_one_below_it(
    lines: list[str], said: str, limit_mib: int | None
) -> None:
    run = read_text("\n".join(lines) + "\n")
    (death,) = run.post_mortems()
    assert said in " ".join(str(run.summary()).split())
    assert death.limit_mib == limit_mib


def test_a_kernel_that_panics_kills_no_process(tmp_path: Path) -> None:
    panic = "Kernel panic - not syncing: Out of memory: system-wide panic_on_oom is enabled"
    run = read_lines(tmp_path, *BLOCK[:2], panic)
    assert run.oom_invocations["panicked"].to_list() == [True]
    assert "restarts the whole host" in " ".join(str(run.summary()).split())


REPORTED = "Memory cgroup out of memory: Killed process 7 (api) total-vm:900kB, anon-rss:100kB"


@pytest.mark.parametrize("before", ['  "message": "', '{\\"message\\":\\"', 'message="'])
def test_a_kill_in_the_message_of_an_event_is_a_kill(before: str) -> None:
    rows = oom.read([Message(1, f'{before}{REPORTED}, file-rss:4kB"')])
    assert [row["comm"] for row in rows["oom_kills"]] == ["api"]


@pytest.mark.parametrize(
    ("ram", "said"),
    [
        ("16384 pages of RAM\n", "The host ran out of memory (64 MiB of RAM)"),
        ("16384 pages RAM\n", "The host ran out of memory (64 MiB of RAM)"),
        ("", "The host probably ran out of memory"),
    ],
)
def test_tasks_that_the_kernel_lists_are_not_the_memory_of_the_host(
    ram: str, said: str
) -> None:
    text = (
        "sshd invoked oom-killer: gfp_mask=0x201da, order=0, oom_adj=0, oom_score_adj=0\n"
        f"{ram}[ pid ]   uid  tgid total_vm      rss cpu oom_adj oom_score_adj name\n"
        "[  713]     0   713     4157     2132   0       0             0 python\n"
        "[  738]     0   738    12586    10245   0       0             0 fcc\n"
        "Out of memory: Kill process 738 (fcc) score 639 or sacrifice child\n"
        "Killed process 738 (fcc) total-vm:50344kB, anon-rss:40956kB, file-rss:24kB\n"
    )
    shown = " ".join(str(read_text(text).summary()).split())
    assert said in shown
    assert "of the host's memory" not in shown


def test_a_small_victim_is_not_why_the_host_was_short() -> None:
    sizes = "total-vm:90000kB, anon-rss:100kB, file-rss:{}kB, shmem-rss:0kB"
    for kb, advice in ((9000, "which program has the most memory"), (900_000, "files")):
        text = f"kernel: Out of memory: Killed process 7 (api) {sizes.format(kb)}\n"
        (death,) = read_text(text).post_mortems()
        assert advice in death.advice[0]


@pytest.mark.parametrize(("adjusted", "is_largest"), [(0, True), (300, False)])
def test_the_memory_is_in_no_program_if_the_largest_is_small(
    adjusted: int, is_largest: bool
) -> None:
    sizes = "total-vm:1058452kB, anon-rss:9464kB, file-rss:4kB, shmem-rss:5736kB, UID:0"
    kill = (
        f"kernel: Out of memory: Killed process 289 (debos) {sizes} oom_score_adj:{adjusted}\n"
    )
    (death,) = read_text(kill).post_mortems()
    said = "the kernel found none with more than the 14.8 MiB of debos"
    assert (said in death.advice[0]) is is_largest


def test_the_sizes_of_a_group_say_that_its_limit_was_reached() -> None:
    stats = "Memory cgroup stats for /kubepods/pod1{}: cache:0KB rss:613460KB rss_huge:256000KB"
    rows = kernel(
        stats.format(""), stats.format("/below"), "[ 7]     0     7      242        1 28672"
    )
    (row,) = rows["oom_invocations"]
    assert (row["scope"], row["oom_memcg"]) == ("memcg", "/kubepods/pod1")


def test_the_group_of_a_context_that_somebody_shortened_is_read() -> None:
    context = (
        "kernel: oom-kill:constraint=CONSTRAINT_MEMCG, oom_memcg=/system.slice/api.service"
    )
    kill = "kernel: Killed process 7 (api) total-vm:900000kB anon-rss:200000kB"
    (row,) = read_text(f"{context}\n{kill}\n").oom_kills.to_dicts()
    assert (row["scope"], row["oom_memcg"]) == ("memcg", "/system.slice/api.service")


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (
            "__alloc_pages_slowpath.constprop.0+0xc86/0xd50",
            "because the host ran out of memory",
        ),
        (
            "mem_cgroup_out_of_memory+0xe1/0x100",
            "because a container or unit reached its memory",
        ),
        ("try_charge_memcg+0x827/0xa90", "because a container or unit reached its memory"),
        ("__mem_cgroup_charge+0x2b/0x80", "because a container or unit reached its memory"),
        # What a question mark precedes may be left over on the stack.
        ("? try_charge_memcg+0x827/0xa90", "asked for memory (<stream>:1); the input"),
    ],
)
def test_the_call_trace_shows_whose_memory_ran_out(function: str, why: str) -> None:
    text = (
        "[ 3449.2] api invoked oom-killer: gfp_mask=0x100cca(GFP_USER), order=0, "
        f"oom_score_adj=0\n[ 3449.3]  out_of_memory+0x1cf/0x520\n[ 3449.4]  {function}\n"
    )
    assert why in " ".join(plain(document(read_text(text).report())).split())


def test_an_invocation_without_its_victim_names_the_group_at_its_limit() -> None:
    group = f"/kubepods/pod0330b2c1-a15b-4cdd-b5e5-72d4a90bee82/{'b2' * 32}"
    text = (
        f"Jan  5 02:12:02 node kernel: Task in {group} killed as a result of limit of {group}\n"
        "Jan  5 02:12:02 node kernel: memory: usage 1048576kB, limit 1048576kB, failcnt 189\n"
    )
    said = (
        "because container b2b2b2b2b2b2 in pod 0330b2c1-a15b-4cdd-b5e5-72d4a90bee82 reached its "
        "memory limit, 1,024 MiB"
    )
    assert said in " ".join(plain(document(read_text(text).report())).split())


def test_a_sentence_that_quotes_the_kernel_names_no_group() -> None:
    text = (
        "I do not know why it says Memory cgroup stats for /docker/609e7ec068ac\n\n"
        "[ 13.9] mem invoked oom-killer: gfp_mask=0x14200ca(GFP_USER), order=0, oom_score_adj=0\n"
        "[ 13.9]  mem_cgroup_out_of_memory+0x36/0x50\n"
    )
    said = " ".join(plain(document(read_text(text).report())).split())
    assert ":3), because a container" in said
    assert "/docker" not in said


def test_lines_of_other_times_are_of_other_kills() -> None:
    kill = (
        "[{}] Memory cgroup out of memory: Killed process {} (api) total-vm:900kB, anon-rss:9kB"
    )
    lines = [
        kill.format("118780.618786", 7),
        "[115582.355745] Memory cgroup stats for /system.slice/other.service:",
        kill.format("113559.166744", 8),
    ]
    assert read_text("\n".join(lines)).oom_kills["oom_memcg"].to_list() == [None, None]


@pytest.mark.parametrize(
    ("group", "is_host"),
    [("/", True), ("/kubepods/burstable/pod1b2c3d4e-0000-4aaa-8bbb-0123456789ab", False)],
)
def test_an_oom_event_of_the_kubelet_is_that_of_its_group(group: str, is_host: bool) -> None:
    run = read_text(
        "Oct 10 17:41:58 n kubelet[4991]: I1010 17:41:57.858757    4991 manager.go:1126] Created "
        f'an OOM event in container "{group}" at 2017-10-10 17:41:57 +0000 UTC\n'
        "Oct 10 17:41:58 n app[1]: exit status 137\n"
        "Killed\n"
    )
    [ran] = run.table("oom_invocations").to_dicts()
    assert ran["scope"] == ("global" if is_host else "memcg")
    said = " ".join(text for death in run.post_mortems() for text in death.reading)
    assert ("the host had probably no memory left" in said) == is_host


def test_a_kill_that_a_sentence_quotes_is_one_with_its_limit() -> None:
    (death,) = read_text(
        "The diagnostics show `memory: usage 14680060kB, limit 14680064kB, failcnt 7`; the kernel "
        "reports `Memory cgroup out of memory: Killed process 165164 (plan.test)` with "
        "`anon-rss:11833132kB`.\n"
    ).post_mortems()
    assert (death.victim, death.proven, death.limit_mib) == ("plan.test", True, 14336)
    assert "not of Go" not in " ".join(death.reading)
