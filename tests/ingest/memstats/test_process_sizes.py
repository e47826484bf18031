"""The resident memory that ps, top and /proc show next to MemStats."""

from __future__ import annotations

import pytest

from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.ingest.memstats.process_sizes import sizes
from gctrace_analyzer.ingest.memstats.size_sentences import sentences
from gctrace_analyzer.present.sections import headline
from gctrace_analyzer.present.sections.memory_parts import largest_part
from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.present.text import plain
from gctrace_analyzer.testing import read_text
from tests.helpers.lines import LINES


def shown(text: str) -> str:
    return headline.verdict(read_text(text).report()).sentence


PS = "USER   PID %CPU %MEM    VSZ    RSS TTY STAT START   TIME COMMAND\n"
TOP = "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (f"{PS}app    812 41.2 13.4 6291456 2097152 ?   Ssl  Jun04 812:40 ./app\n", 2 << 30),
        (
            f"{TOP}    812 app  20   0 6291456   1.5g   1.1g S  41.2  13.4 812:40.11 app\n",
            3 << 29,
        ),
        ("Name:\tapp\nVmHWM:\t    4096 kB\nVmRSS:\t    2048 kB\n", 2 << 20),
        ("Rss:                2048 kB\nPss:                1024 kB\n", 2 << 20),
        (
            "PID    COMMAND  %CPU TIME     #TH MEM  PURG\n123 app  85.2 12:34.56 18/1 2M 0B\n",
            2 << 20,
        ),
        ("RSS is 1.5 gig after an hour", 3 << 29),
        # Which of two processes is the one with MemStats, nothing shows.
        (f"{PS}a 1 0 0 6291456 2048 ? S 1 0 a\nb 2 0 0 6291456 4096 ? S 1 0 b\n", None),
        ("Rss:  2048 kB\nVmRSS:  4096 kB\n", None),
        (PS, None),
    ],
)
def test_the_size_of_a_single_process_is_found(text: str, size: int | None) -> None:
    assert sizes(text).get("resident") == size


def test_the_resident_memory_is_that_of_the_dump_next_to_it() -> None:
    dump = "Alloc = 9 MiB Sys = 48 MiB NumGC = 7\n"
    log = read_text(f"{PS}app 8 1 1 9 2097152 ? S 1 0 app\n{dump}")
    assert log.table("memstats")["rss_bytes"].to_list() == [2 << 30]
    two = read_text(f"{PS}app 8 1 1 9 2097152 ? S 1 0 app\n{dump}{dump}")
    assert two.table("memstats")["rss_bytes"].to_list() == [None, None]
    # Below several, it has the time of the last one.
    below = read_text(f"{dump}{dump}{PS}app 8 1 1 9 2097152 ? S 1 0 app\n")
    assert below.table("memstats")["rss_bytes"].to_list() == [None, 2 << 30]


STATUS = "VmRSS:\t204800 kB\n", "VmRSS:\t204800 kB\nRssAnon:\t40960 kB\nRssFile:\t163840 kB\n"


def test_pages_of_files_are_a_part_of_what_is_resident_beyond_go() -> None:
    dump = (
        "# runtime.MemStats\n# Sys = 41943040\n# HeapAlloc = 20971520\n# HeapSys = 33554432\n"
        "# HeapIdle = 8388608\n# HeapInuse = 25165824\n# HeapReleased = 0\n# NumGC = 12\n"
    )
    unknown, known = (read_text(dump + status).report() for status in STATUS)
    assert "pages of files (such as the executable's)" in largest_part(unknown)
    assert "is pages of files (160 MiB, 80.0 % of RSS)" in largest_part(known)
    assert unknown.analysis.settings.value("off_heap_mib") == 160
    assert known.analysis.settings.value("off_heap_mib") is None


def test_pages_of_files_may_be_what_is_resident_next_to_cycles() -> None:
    warnings = " ".join(read_text(f"{LINES['gc18']}\n{STATUS[0]}").summary().warnings)
    assert "pages of files such as the executable's" in warnings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # The totals are of the group with those below it.
        (
            "memory.usage_in_bytes 1073741824\ncache 0\nrss 10485760\nshmem 0\n"
            "total_cache 838860800\ntotal_rss 209715200\ntotal_shmem 629145600\n",
            ("200 MiB are anonymous", "200 MiB are page cache", "600 MiB are shared memory"),
        ),
        (
            "Rss: 2097152 kB\nLazyFree: 1572864 kB\n",
            ("returned 1,536 MiB", "512 MiB are resident"),
        ),
        (
            "/gc/scan/heap:bytes: 104857600\n/gc/scan/stack:bytes: 943718400\n"
            "/gc/scan/total:bytes: 1048576000\n",
            ("1,000 MiB that each GC cycle scans, 900 MiB are goroutine stacks",),
        ),
    ],
)
def test_what_memory_consists_of_is_said(text: str, said: tuple[str, ...]) -> None:
    (sentence,) = sentences(sizes(text))
    assert [part for part in said if part not in sentence] == []


def test_a_process_is_read_again_and_again_without_a_header() -> None:
    row = "dev 22918 2.4 3.1 253696 {} pts/4   Sl+  09:12   0:00 ./tmp\n"
    text = f"{row.format(250712)}[...] later\n{row.format(251904)}{row.format(47384)}"
    assert read_text(text).report().verdict is None
    assert shown(text) == (
        "Resident memory of tmp in 3 readings: 245 MiB at first, 246 MiB at most, 46 MiB at last."
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # top of Linux, and ps of macOS
        ("<pid> <user> 20 0 2039124 760264 6780 S 0.0 4.9 271:15.08 exporter\n",
         "742 MiB are resident."),
        ("ana  17204   0.6  2.9 558574212 243371 s002  Ss+   2:31pm   6:12.47 ipfs daemon\n",
         "The 545,483 MiB of address space (VSZ, VIRT) are not memory in use."),
        ("<pre>\nVmHWM:\t12403892 kB\nVmRSS:\t 9377488 kB\nRssAnon:\t 9359576 kB\n</pre>\n",
         "9,158 MiB are resident (12,113 MiB at most), 9,140 MiB of them anonymous memory."),
    ],
)  # fmt: skip
def test_the_size_of_a_process_alone_is_an_answer(text: str, said: str) -> None:
    assert said in shown(text)


@pytest.mark.parametrize("time", ["3198:01", "53h", "53:18.04"])
def test_a_row_of_top_is_read_however_long_the_process_has_run(time: str) -> None:
    rows = [
        " 8177 root 20 0 161288 4888 4340 S 1.0 0.2 0:12.18 sshd\n",
        f"19167 root 20 0 1977232 297152 10880 S 7.3 10.2 {time} minio\n",
    ]
    for text in (rows, rows[::-1]):
        assert "Resident: minio (pid 19167) 290 MiB, sshd (pid 8177) 4.8 MiB." in shown(
            TOP + "".join(text)
        )


def test_a_size_in_a_sentence_alone_is_no_answer() -> None:
    with pytest.raises(NoDataError, match="1 line, none of them gctrace output"):
        read_text("It takes as much of the memory as you have for it: RSS: 3.0 GiB here.\n")


def test_a_few_processes_of_one_name_are_distinguished_by_their_pids() -> None:
    rows = [
        f"root {pid} 12.4 0.0 3702216 {kib} ?  Ssl  Jun05 351:22 /usr/bin/dockerd -x\n"
        for pid, kib in ((411207, 191640), (1904, 3704212), (7, 51200), (8, 51200), (9, 51200))
    ]
    assert (
        "Resident: dockerd (pid 1904) 3,617 MiB, dockerd (pid 411207) 187 MiB. What"
        in shown("".join(rows[:2]))
    )
    assert "Resident: dockerd 3,955 MiB (5 processes). What" in shown("".join(rows))
    # Children inherit the environment, and a child in Go obeys it.
    assert "act on each Go process by itself (children inherit them)" in shown("".join(rows))


def test_the_memory_of_a_unit_is_that_of_its_control_group() -> None:
    status = (
        "● docker.service - Docker\n   Memory: 18.4G\n   CGroup: /system.slice/docker.service\n"
    )
    assert shown(status) == "The unit docker.service used 18.4 GiB."


def test_tasklist_has_the_working_set() -> None:
    row = "scanner.exe    9144 Services    0  2,812,344 K"
    assert sizes(row) == {"resident": 2812344 << 10}
    assert sizes('"scanner.exe","9144","Services","0","2,812,344 K"\n')


PMAP = """00010000   7304K r-x-- syncthing
02000000 131072K rw---   [ anon ]
0a000000 397312K -----   [ anon ]
 total   535688K
"""
SMAPS = """00010000-00164000 r-xp 00000000 08:17 41306217   /x
Size:               1360 kB
Rss:                1152 kB
Anonymous:             0 kB
c000000000-c004000000 rw-p 00000000 00:00 0
Size:              65536 kB
KernelPageSize:       16 kB
Rss:                4352 kB
"""
BY_COLUMNS = """$ ps -eo "pid,vsz,rss,comm" | grep container
 2114 3597920 58104 containerd
27204  12164  5316 containerd-shim

$ ps -eo "pid,vsz,rss,comm" | grep container
 2114 3597920 64412 containerd
27204  12228  7940 containerd-shim
"""


PS_AUX = (
    "root       226  0.0  0.1 1979544 3832 ?        Sl   Oct06   0:24 /opt/bin/app -f /etc/a.conf\n"
    "root     25668  0.0  0.0  11064   888 pts/1    S+   18:57   0:00 helper x\n"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PMAP, "The 523 MiB that pmap lists are address space: 388 MiB are only reserved, and 128"),
        (SMAPS, "4.2 MiB are resident where Go has its heap, and 0.0 MiB in other anonymous"),
        (PS_AUX, "Resident: app (pid 226) 3.7 MiB, helper (pid 25668) 0.9 MiB."),
        (BY_COLUMNS, "Resident: containerd (pid 2114) 63 MiB, containerd-shim (pid 27204) 7.8 MiB."),
        ("/proc/1/status:VmRSS:  36540 kB\n/proc/14/status:VmRSS:   91820 kB\n",
         "Resident: process (pid 14) 90 MiB, process (pid 1) 36 MiB."),
    ],
)  # fmt: skip
def test_parts_of_what_shows_memory_are_added_up(text: str, said: str) -> None:
    assert said in shown(text)


def test_memory_of_the_kernel_stands_next_to_what_is_charged() -> None:
    (said,) = sentences(
        sizes(
            "memory: usage 524288kB, limit 524288kB, failcnt 2\nkmem: usage 520612kB, limit 9kB\n"
            "total_cache 139264\ntotal_rss 3620864\n"
        )
    )
    assert said.startswith("Of the 512 MiB charged to its control group, 3.5 MiB are anonymous")
    assert "508 MiB are memory of the kernel" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("VmRSS:\t 8123456 kB\n", "7,933 MiB were resident; the heap of these cycles was 11 MiB at most. The rest"),
        ("VmRSS:\t 30000 kB\n", "29.3 MiB were resident; the heap of these cycles was 11 MiB at most."),
        (
            "NAME  CPU %  MEM USAGE / LIMIT  MEM %\napp  1%  1GiB / 2GiB  50%\n",
            "1,024 MiB were charged to the control group, files included",
        ),
        (f"{PS}a 1 0 0 9 2048 ? S 1 0 a\nb 2 0 0 9 4096 ? S 1 0 b\n", None),
        ("VmRSS is what counts\n", None),
    ],
)  # fmt: skip
def test_resident_memory_next_to_cycles_is_compared_with_their_heap(
    text: str, said: str | None
) -> None:
    notes = " ".join(read_text(f"{LINES['gc18']}\n{text}").analysis.log.notes)
    assert (said in notes) if said else ("resident" not in notes)
    assert notes.endswith("at most.") == bool(said and said.endswith("most."))


@pytest.mark.parametrize(
    ("limit", "columns"),
    [(67108864, (67108864, None)), (9223372036854771712, (None, None))],
)
def test_what_the_api_of_docker_has_with_cgroup_v1(
    limit: int, columns: tuple[int | None, ...]
) -> None:
    text = (
        '"memory_stats" : {\n "stats" : {\n  "total_rss" : 6537216,\n'
        f'  "hierarchical_memory_limit" : {limit}\n }},\n "max_usage" : 6651904,\n'
        f' "usage" : 6537216,\n "failcnt" : 0,\n "limit" : {limit}\n}}\n'
    )
    states = read_text(text).container_states
    names = ("memory_limit_bytes", "memory_of_host_bytes")
    rows = [tuple(row[name] for name in names) for row in states.to_dicts()]
    assert rows == ([columns] if any(columns) else [])


def test_the_limit_of_the_api_of_docker_may_be_the_memory_of_the_host() -> None:
    text = (
        '{"usage": 20401094, "stats": {"anon": 3250585, "file": 1674030}, "limit": 4294967296}'
    )
    (row,) = read_text(text).container_states.to_dicts()
    assert (row["memory_limit_bytes"], row["memory_of_host_bytes"]) == (None, 4294967296)


def test_memory_read_at_another_time_is_not_that_of_a_killed_container() -> None:
    text = (
        "Containers:\n  api:\n    Limits: memory: 4Gi\n    Last State: Terminated\n"
        "      Reason: OOMKilled\n      Exit Code: 137\n"
        "memory.usage_in_bytes: 4294967296\n"
        "cache 3221225472  # page cache\nrss 1073741824  # heap\ninactive_file 2147483648\n"
    )
    run = read_text(text)
    (death,) = run.post_mortems()
    assert death.resident_mib is None
    assert "1,024" not in str(death)
    (note,) = run.summary().warnings
    assert "1,024 MiB are anonymous" in note
    assert note.endswith("The reading is not of the moment of a kill.")


@pytest.mark.parametrize(
    ("text", "size_mib"),
    [
        ("RSS keeps ~740M for long time.", 740),
        ("the resident memory stays at about 2.5 GiB", 2560),
        ("RSS is 512 MiB higher than HeapSys", None),
        ("RSS is 3x of that", None),
        ("RSS limit is 512 MiB", None),
    ],
)
def test_sizes_in_sentences_are_read_next_to_a_dump(text: str, size_mib: int | None) -> None:
    assert sizes(text).get("resident") == (None if size_mib is None else size_mib << 20)


def test_old_go_may_keep_what_it_returned_so_that_no_memory_is_outside_it() -> None:
    """Go 1.12 to 1.15 do; of a dump from before Go 1.19 the version is not known."""
    text = (
        "RSS keeps ~740M for long time.\nAlloc = 11.74 MiB\nSys = 734.55 MiB\nNumGC = 161\n"
        "LastGC = 1592905558498324415\nHeapAlloc = 11.74 MiB\nHeapInuse = 17 MiB\n"
        "HeapIdle = 685.43 MiB\nHeapReleased = 685.24 MiB\nHeapSys = 702.43 MiB\n"
    )
    run = read_text(text)
    assert run.settings.off_heap_mib is None
    assert "Most of the memory is returned, or other (685 MiB" in " ".join(
        str(run.summary()).split()
    )


@pytest.mark.parametrize("begin", ["", "    ", "> "])
def test_all_sizes_of_proc_are_read_where_they_are_indented_or_quoted(begin: str) -> None:
    lines = ("VmRSS:\t9000 kB", "RssAnon:\t8000 kB", "RssFile:\t2000 kB", "RssShmem:\t3000 kB")
    known = sizes("Here it is:\n" + "\n".join(begin + line for line in lines))
    assert known == {
        "resident": 9000 << 10,
        "anonymous": 8000 << 10,
        "file": 2000 << 10,
        "shared": 3000 << 10,
    }


TOP_OF_POD = "NAME   CPU(cores)   MEMORY(bytes)\napi-1  704m         1545Mi\n"


def test_what_kubectl_top_shows_stands_next_to_the_heap_of_cycles() -> None:
    (note,) = [
        text
        for text in read_text(f"{TOP_OF_POD}{LINES['gc18']}\n").summary().warnings
        if "1,545 MiB were charged to the control group" in text
    ]
    assert "outside Go" in note


def test_a_column_alone_is_a_table() -> None:
    assert sizes("MEM USAGE / LIMIT\n918.5MiB / 125.5GiB\n")["charged"] == 1837 << 19


@pytest.mark.parametrize(
    ("size", "printed", "beyond", "of_all"),
    [
        ("2.5g", "2.5 GiB", "0.2–0.4 GiB", "44 %"),
        ("2621440", "2,560 MiB", "271 MiB", "43.7 %"),
        ("2.500g", "2,560 MiB", "271 MiB", "43.7 %"),
    ],
)
def test_a_size_of_top_has_no_more_digits_than_it_prints(
    size: str, printed: str, beyond: str, of_all: str
) -> None:
    """What is left of 2.5g without all of Go is no more exact."""
    top = f"  PID USER VIRT RES SHR COMMAND\n 1234 root 12.2g {size} 20172 api\n"
    dump = "HeapAlloc = 1173741824\nHeapReleased = 0\nSys = 2400000000\nNumGC = 312\n"
    report = " ".join(plain(document(read_text(top + dump).report())).split())
    assert f"Resident {printed} physical memory" in report
    assert f"outside Go (at least) {beyond}" in report
    assert f"heap objects 1,119 MiB {of_all}" in report
    assert f"{printed} are resident." in " ".join(str(read_text(top).summary()).split())
