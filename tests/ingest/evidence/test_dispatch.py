"""Messages are passed to the reader that understands them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from gctrace_analyzer.ingest.evidence import dispatch
from gctrace_analyzer.ingest.evidence.message import Message
from gctrace_analyzer.ingest.gctrace import parse
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import KILL, read_lines, records
from tests.helpers.wrappers import PREFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import gctrace_analyzer as gca


def test_every_wording_of_gos_out_of_memory_is_found(tmp_path: Path) -> None:
    for text in ("fatal error: out of memory", "fatal error: runtime: cannot allocate memory"):
        assert len(read_lines(tmp_path, text).runtime_fatal) == 1


def test_a_message_that_journalctl_omitted_is_rejected() -> None:
    texts = ["[1.2K blob data]", '{"HeapAlloc": 5, "HeapSys"', '{"HeapAlloc": 5}']
    rows = dispatch.read([Message(n, text) for n, text in enumerate(texts, 1)])["rejected"]
    assert [row["line_no"] for row in rows] == [1, 2]
    assert "use journalctl -o json" in rows[0]["reason"]
    assert rows[1]["reason"] == "JSON that ends inside a value"


def test_the_two_lines_of_gos_out_of_memory_are_one_death() -> None:
    texts = [
        "runtime: out of memory: cannot allocate 4194304-byte block (66977792 in use)",
        "fatal error: out of memory",
        "application: out of memory",
    ]
    (row,) = dispatch.read([Message(n, t) for n, t in enumerate(texts, 1)])["runtime_fatal"]
    assert (row["requested_bytes"], row["in_use_bytes"]) == (4194304, 66977792)


FATAL = (
    "runtime: out of memory: cannot allocate 597164032-byte block (3379036160 in use)",
    "fatal error: out of memory",
    "",
    "goroutine 1 [running]:",
)
KERNEL = (
    "api invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    "CPU: 4 PID: 19289 Comm: api Not tainted 5.8.0-1031-oracle #32~20.04.2-Ubuntu",
    "memory: usage 524288kB, limit 524288kB, failcnt 9",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
    "oom_memcg=/a,task_memcg=/a,task=api,pid=19289,uid=0",
    f"{KILL.format(pid=19289, comm='api', kb=500084)}",
)


def behind(prefix: str, lines: Iterable[str]) -> gca.Run:
    text = "".join(f"{prefix.format(s=n)}{line}\n" for n, line in enumerate(lines, 10))
    return read_text(text)


@pytest.mark.parametrize("name", PREFIXES)
def test_what_is_not_gctrace_is_found_behind_every_prefix(name: str) -> None:
    prefix = PREFIXES[name]
    fatal = behind(prefix, FATAL).runtime_fatal
    assert fatal["requested_bytes"].to_list() == [597164032]
    short = behind(prefix, ["fatal error: runtime: out of memory", "", "runtime stack:"])
    assert len(short.runtime_fatal) == 1
    kill = behind(prefix, KERNEL).oom_kills
    assert kill.select("pid", "comm", "limit_bytes").rows() == [(19289, "api", 512 << 20)]
    dump = behind(prefix, ["Alloc = 928 MiB\tTotalAlloc = 4588 MiB\tNumGC = 13"]).memstats
    assert dump["num_gc"].to_list() == [13]


@pytest.mark.parametrize("name", sorted({*PREFIXES} - {"Jenkins", "ts -i", "diff", "cat -n"}))
def test_the_death_of_a_program_is_found_next_to_its_cycles(name: str) -> None:
    run = behind(PREFIXES[name], [*records(12), *FATAL])
    assert len(run.cycles) == 12
    assert len(run.runtime_fatal) == 1


@pytest.mark.parametrize(
    "text",
    [
        "the application is out of memory",
        "cannot allocate memory",
        "a fatal error: out of memory was seen",
        "my.runtime: out of memory",
    ],
)
def test_what_programs_say_of_memory_is_no_death_of_the_runtime(text: str) -> None:
    rows = dispatch.read([Message(1, text)])
    assert not rows["runtime_fatal"]


def test_windows_without_memory_is_one_death() -> None:
    texts = [
        "runtime: VirtualAlloc of 1048576 bytes failed with errno=1455",
        "fatal error: out of memory",
    ]
    (row,) = dispatch.read([Message(n, t) for n, t in enumerate(texts, 1)])["runtime_fatal"]
    assert (row["requested_bytes"], row["kind"]) == (1 << 20, "out of memory")
    # Any other error of the system is none of memory, and no size is known of a part of nothing.
    other = "runtime: VirtualAlloc of 4096 bytes failed with errno=87"
    assert not dispatch.read([Message(1, other)])["runtime_fatal"]
    zero = "runtime: VirtualAlloc of 0 bytes failed with errno=1455"
    (row,) = dispatch.read([Message(1, zero)])["runtime_fatal"]
    assert row["requested_bytes"] is None


def test_memory_at_an_unusable_address_is_a_death_of_its_own_kind(tmp_path: Path) -> None:
    lines = [
        "runtime: memory allocated by OS (1626533888) not in usable range [0x9143a000,0x1143a000)",
        "runtime: out of memory: cannot allocate 268435456-byte block (3145728 in use)",
    ]
    assert read_lines(tmp_path, *lines).runtime_fatal["kind"].to_list() == ["unusable address"]
    far = [lines[0], *["a line"] * 3, lines[1]]
    assert read_lines(tmp_path, *far).runtime_fatal["kind"].to_list() == ["out of memory"]


@pytest.mark.parametrize(
    "what",
    ["out of memory (stackalloc)", "out of memory allocating heap arena map", "pageAlloc: out of memory"],
)  # fmt: skip
def test_where_the_runtime_ran_out_of_memory_may_be_named(what: str) -> None:
    assert len(dispatch.read([Message(1, f"fatal error: {what}")])["runtime_fatal"]) == 1


@pytest.mark.parametrize(
    "command",
    [
        "$ kubectl get pods -A | grep OOMKilled",
        "root@app2:~# docker inspect api | grep -E '\"(Status|OOMKilled|ExitCode)\"'",
        "[admin@host ~]$ sudo journalctl -k | grep -i 'Memory cgroup out of memory'",
        'me@host api % dmesg -T | grep -E "Killed process 12 (api) total-vm:1kB, anon-rss:1kB"',
        "kubectl get pod api-0 -o yaml | grep -A3 'reason: OOMKilled'",
    ],
)
def test_a_command_is_no_event_though_it_names_what_it_looks_for(command: str) -> None:
    rows = dispatch.read([Message(1, command)])
    assert not any(rows.values())


def test_what_a_command_finds_of_an_inspection_is_one_container() -> None:
    state = '"Status": "exited",\n"OOMKilled": true,\n"ExitCode": 137,\n"Memory": 536870912,\n'
    run = read_text(f'$ docker inspect api | grep -E "OOMKilled|ExitCode|Memory"\n{state}')
    (row,) = run.container_states.to_dicts()
    assert (row["oom_killed"], row["exit_code"], row["memory_limit_bytes"]) == (
        True,
        137,
        1 << 29,
    )


def test_the_files_of_a_cgroup_are_read_below_typed_commands() -> None:
    text = (
        "$ cat /sys/fs/cgroup/memory.peak\n524288000\n$ cat /sys/fs/cgroup/memory.max\n524288000\n"
        "$ cat /sys/fs/cgroup/memory.events\nlow 0\nhigh 0\nmax 812\noom 3\noom_kill 3\n"
    )
    state = read_text(text).container_states.row(0, named=True)
    assert (state["memory_limit_bytes"], state["memory_used_bytes"]) == (524288000, 524288000)
    assert (state["oom_killed"], state["kills"]) == (True, 3)


def test_the_search_for_other_lines_has_no_classes_of_unicode() -> None:
    """With them, a pattern of this size makes Polars search hundreds of times slower."""
    assert not {r"\d", r"\b"} & {*re.findall(r"(?<!u:)\\[db]", parse._others())}
