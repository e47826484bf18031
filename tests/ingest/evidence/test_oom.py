"""OOM kills in kernel logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
