"""What the kernel counted in a control group when a process in it was killed."""

from __future__ import annotations

import pytest

from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.present.text import plain
from gctrace_analyzer.testing import read_text

MIB = 1 << 20
AT = "Jun 04 03:11:52 node7 kernel: "
LIMIT = f"{AT}memory: usage 524288kB, limit 524288kB, failcnt 612\n"
KILL = (
    f"{AT}Memory cgroup out of memory: Killed process 30718 (ledger) total-vm:1302540kB, "
    "anon-rss:{kb}kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:412kB oom_score_adj:984\n"
)
OF_V2 = (
    "anon {anon}\n{i}file {file}\n{i}kernel {kernel}\n{i}kernel_stack 16384\n{i}shmem {shmem}"
)
OF_V1 = (
    "{at}kmem: usage 8192kB, limit 9007199254740988kB, failcnt 0\n"
    "{at}Memory cgroup stats for /pod: cache:0KB rss:0KB rss_huge:0KB shmem:0KB mapped_file:0KB\n"
    "{at}Memory cgroup stats for /pod/a: cache:{file}KB rss:{anon}KB rss_huge:0KB shmem:{shmem}KB\n"
)


def v2(between: str, **sizes: int) -> str:
    parts = {name: mib * MIB for name, mib in sizes.items()}
    lines = OF_V2.format(i="\n", **parts).replace("\n\n", between)
    return f"{LIMIT}{AT}Memory cgroup stats for /pod:\n{AT}{lines}\n"


def v1(**sizes: int) -> str:
    return LIMIT + OF_V1.format(at=AT, **{name: mib * 1024 for name, mib in sizes.items()})


def shown(text: str) -> str:
    return " ".join(plain(document(read_text(text).report())).split())


@pytest.mark.parametrize("between", ["\n" + 30 * " ", f"\n{AT}", "#012"])
def test_the_parts_of_a_group_are_read_however_a_log_breaks_their_lines(between: str) -> None:
    text = v2(between, anon=84, file=420, kernel=8, shmem=400) + KILL.format(kb=86016)
    [kill] = read_text(text).table("oom_kills").to_dicts()
    parts = {name: kill[f"group_{name}_bytes"] for name in ("anon", "file", "shmem", "kernel")}
    assert parts == {
        "anon": 84 * MIB, "file": 420 * MIB, "shmem": 400 * MIB, "kernel": 8 * MIB
    }  # fmt: skip


def test_groups_of_version_1_are_added_up() -> None:
    [kill] = (
        read_text(v1(anon=84, file=420, shmem=400) + KILL.format(kb=1))
        .table("oom_kills")
        .to_dicts()
    )
    assert (kill["group_anon_bytes"], kill["group_shmem_bytes"]) == (84 * MIB, 400 * MIB)
    assert (kill["group_kernel_bytes"], kill["limit_bytes"]) == (8 * MIB, 512 * MIB)


@pytest.mark.parametrize(
    ("sizes", "meaning", "action"),
    [
        ((84, 420, 8, 420), "420 MiB were files in memory", "writes the 420 MiB of files in"),
        ((84, 420, 8, 0), "420 MiB were page cache", "420 MiB of page cache"),
        ((84, 4, 424, 0), "424 MiB were memory of the kernel", "its own 424 MiB are"),
        ((504, 0, 8, 0), "420 MiB of it in other processes", "processes of the group have 420"),
    ],
)
def test_the_largest_part_that_the_victim_did_not_have_is_named(
    sizes: tuple[int, int, int, int], meaning: str, action: str
) -> None:
    anon, file, kernel, shmem = sizes
    text = v2(f"\n{AT}", anon=anon, file=file, kernel=kernel, shmem=shmem)
    report = shown(text + KILL.format(kb=86016))
    assert meaning in report
    assert action in report


@pytest.mark.parametrize("limit_mib", [48, 512])
def test_advice_for_go_is_on_condition_if_nothing_shows_that_the_program_is_go(
    limit_mib: int,
) -> None:
    size = f"{limit_mib * 1024}kB"
    text = LIMIT.replace("524288kB", size) + KILL.format(kb=int(limit_mib * 900))
    report = shown(text)
    assert "Go heap" not in report
    assert "prevents" not in report
    assert report.count("GOMEMLIMIT") == report.count(
        "If ledger is written in Go, set GOMEMLIMIT"
    )


def test_nothing_is_said_of_a_group_that_its_victim_had_whole() -> None:
    text = v2("\n", anon=500, file=4, kernel=8, shmem=0) + KILL.format(kb=500 * 1024)
    assert "kernel counted" not in shown(text)


TASK = "{at}[ {pid} ]   0  {pid} 5063909  {pages}    1661   1000        0 {name}\n"
LISTED = f"{AT}[ pid ]   uid  tgid total_vm      rss nr_ptes swapents oom_score_adj name\n"


def listed(*tasks: tuple[int, int, str]) -> str:
    rows = (TASK.format(at=AT, pid=pid, pages=pages, name=name) for pid, pages, name in tasks)
    return LISTED + "".join(rows).replace("[ ", "[").replace(" ]", "]")


def test_other_processes_are_looked_for_unless_the_kernel_listed_all() -> None:
    kill = KILL.format(kb=43008)
    text = shown(LIMIT + kill)
    assert "other processes of the group, files in memory" in text
    assert "anon, shmem, file and kernel (cgroup v1: rss, shmem and cache)" in text
    alone = shown(LIMIT + listed((30718, 10752, "ledger")) + kill)
    assert "MiB: files in memory" in alone
    assert "charged to the container" not in alone


def test_a_victim_without_anonymous_memory_had_no_heap() -> None:
    report = shown(v1(anon=0, file=500, shmem=0) + KILL.format(kb=268))
    assert "500 MiB were page cache" in report
    assert "Go heap is unknown" not in report
    assert "is written in Go" not in report


def test_the_limit_of_memory_and_swap_together_has_a_count_of_its_own() -> None:
    usage = "{at}{what}: usage 524288kB, limit 524288kB, failcnt {n}\n"
    text = usage.format(at=AT, what="memory", n=0) + usage.format(
        at=AT, what="memory+swap", n=38
    )
    [kill] = read_text(text + KILL.format(kb=1)).table("oom_kills").to_dicts()
    assert kill["failcnt"] == 38


HOST = (
    "{at}kthreadd invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, "
    "oom_score_adj=0\n{at}Free swap  = {free}kB\n{at}Total swap = {total}kB\n"
    "{at}2074986 pages RAM\n"
    "{at}Out of memory: Killed process 37007 (geth) total-vm:9778776kB, anon-rss:6812060kB, "
    "file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:14900kB oom_score_adj:0\n"
)


@pytest.mark.parametrize(
    ("free", "total", "said"),
    [
        (0, 0, "ran out of memory (8,105 MiB of RAM, no swap);"),
        (0, 2097152, "(8,105 MiB of RAM, and 2,048 MiB of 2,048 MiB of swap in use);"),
    ],
)
def test_the_memory_of_the_host_is_that_of_the_kernels_report(
    free: int, total: int, said: str
) -> None:
    text = HOST.format(at=AT, free=free, total=total)
    assert said in shown(text)
    [kill] = read_text(text).table("oom_kills").to_dicts()
    assert kill["host_bytes"] == 2074986 * 4096


def test_memory_that_the_victim_shared_is_not_page_cache_of_others() -> None:
    """Linux 4.4 prints no `shmem:` among the stats of a group."""
    kill = KILL.format(kb=86016).replace("shmem-rss:0kB", f"shmem-rss:{300 * 1024}kB")
    assert "120 MiB were page cache" in shown(v1(anon=84, file=420, shmem=0) + kill)


def test_a_group_of_a_program_other_than_go_has_no_memory_of_go() -> None:
    java = KILL.format(kb=86016).replace("ledger", "java")
    text = shown(v2("\n", anon=84, file=420, kernel=8, shmem=400) + java)
    assert "The kernel counted 84 MiB of anonymous memory in its group;" in text


def test_a_limit_that_was_hit_once_was_not_hit_several_times() -> None:
    text = shown(f"{LIMIT}{KILL.format(kb=520000)}".replace("failcnt 612", "failcnt 1"))
    assert "The limit was hit once." in text


def test_several_processes_of_one_program_can_be_the_largest_of_a_host() -> None:
    row = "[ {0}]  1000  {0}   900000 {1:8} 2310144        0             0 node\n"
    kill = (
        KILL.format(kb=1_800_000).replace("Memory cgroup out", "Out").replace("ledger", "node")
    )
    head = (
        f"{AT}node invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
    )
    head += f"{AT}1048576 pages RAM\n{AT}Tasks state (memory values in pages):\n"
    columns = (
        "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name"
    )
    rows = [AT + row.format(pid, pages) for pid, pages in ((30718, 450_000), (30720, 440_000))]
    text = shown(f"{head}{AT}{columns}\n{''.join(rows)}{kill}")
    assert "Limit the memory of node, or give the host more" in text
    assert "Find out which program" not in text


def test_the_recommended_limit_is_that_of_the_post_mortem() -> None:
    """90 % of the cgroup's limit are more than the program had: GC would not have run."""
    cycle = (
        "gc {0} @{1}.100s 1%: 0.03+10+0.01 ms clock, 0.06+0.5/9/2+0.02 ms cpu, 90->91->50 MB, "
        "100 MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
    )
    stamp = "2026-06-04T{:02}:{:02}:{:02}+0000 node7 ledger[30718]: "
    cycles = "".join(
        stamp.format(2, 40 + second // 60, second % 60) + cycle.format(number, second)
        for number, second in enumerate(range(2, 600, 20), 1)
    )
    kill = f"{LIMIT}{KILL.format(kb=300 * 1024)}".replace("Jun 04 ", "2026-06-04T")
    run = read_text(cycles + kill.replace(" node7", "+0000 node7"))
    (death,) = run.post_mortems()
    assert "GOMEMLIMIT=270MiB (90 % of what it had)" in death.advice[0]
    advised = {row["memory_limit_mib"] for row in run.recommend().to_dicts() if not row["now"]}
    assert max(filter(None, advised)) <= 270


@pytest.mark.parametrize(
    ("anon", "shmem", "others"),
    [
        # The other process maps the 320 MiB of files in memory: 53 MiB are its own.
        (
            679,
            320,
            "the 52.8 MiB of other processes under it and the 320 MiB of files in memory",
        ),
        # Never more than what the group used.
        (None, None, "the 375 MiB of other processes under it"),
    ],
)
def test_files_in_memory_that_others_map_count_once(
    anon: int | None, shmem: int | None, others: str
) -> None:
    stats = "" if anon is None else f"{AT}Memory cgroup stats for /pod:\n{AT}"
    sizes = {"anon": anon, "file": shmem, "kernel": 21, "shmem": shmem}
    stats += (
        ""
        if anon is None
        else f"\n{AT}".join(f"{name} {(size or 0) * MIB}" for name, size in sizes.items())
    )
    head = "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name"
    rows = ((30718, 160_302, "ledger"), (30720, 96_120, "sidecar"))
    table = [head] + [
        f"[{pid:7d}] 65532 {pid:5d}   512344 {pages:8d}  1773568        0           969 {name}"
        for pid, pages, name in rows
    ]
    limit = LIMIT.replace("524288", "1048576")
    text = limit + stats + "\n" + "".join(f"{AT}{row}\n" for row in table)
    (death,) = read_text(text + KILL.format(kb=641_208)).post_mortems()
    assert others in death.advice[0]
