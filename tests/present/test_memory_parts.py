"""What the memory of a program consists of, and what the scavenger reports."""

from __future__ import annotations

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.present.sections.headline import verdict
from gctrace_analyzer.present.sections.memory_parts import memory_parts, memory_sentences
from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.present.text import plain
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS
from tests.helpers.facts import log_of
from tests.helpers.lines import LINES

GIB = 1 << 30


def dump(**fields: int) -> str:
    return "".join(f"{name} = {value}\n" for name, value in fields.items())


OTHER = dump(Sys=6 * GIB, HeapSys=GIB, HeapInuse=GIB // 2, OtherSys=9 * GIB // 2)


def test_memory_that_no_gogc_lowers_is_named() -> None:
    report = read_text(OTHER).report()
    # Said once, as what to do.
    assert not [*memory_sentences(report)]
    most = "Most of the memory is runtime (OtherSys) (4,608 MiB, 75.0 % of what "
    most += "Go obtained). What lowers it: a restart"
    assert verdict(report).action.startswith(most)
    table = memory_parts(report)
    assert table is not None
    # Sys has 512 MiB that are in none of the other fields.
    assert [row[:2] for row in table.rows] == [
        ("heap in use", "512 MiB"),
        ("not in use", "512 MiB"),
        ("runtime (OtherSys)", "4,608 MiB"),
        ("outside the heap", "512 MiB"),
    ]


def test_parts_are_called_those_of_the_last_of_several_dumps() -> None:
    for dumps, label in ((1, "Memory by use"), (2, "Memory, last dump")):
        table = memory_parts(read_text("\n".join([OTHER] * dumps)).report())
        assert table is not None
        assert table.head[0] == label


def test_shares_of_the_heap_are_of_the_heap_alone() -> None:
    """Its metadata made more than 100 % of them."""
    sizes = {"HeapAlloc": GIB // 2, "HeapInuse": GIB, "HeapIdle": GIB, "GCSys": GIB // 8}
    table = memory_parts(read_text(dump(**sizes)).report())
    assert table is not None
    assert table.head[2] == "of 2,048 MiB heap"
    names = ["heap objects", "free inside spans", "not in use"]
    assert [row[0] for row in table.rows] == names


@pytest.mark.parametrize("allocated", [{}, {"HeapAlloc": GIB // 4}], ids=["alone", "objects"])
def test_what_is_not_idle_in_the_heap_is_in_use(allocated: dict[str, int]) -> None:
    table = memory_parts(
        read_text(dump(Sys=2 * GIB, HeapSys=GIB, HeapIdle=GIB // 2, **allocated)).report()
    )
    assert table is not None
    heap = [("heap objects", "256 MiB"), ("free inside spans", "256 MiB")]
    rows = heap if allocated else [("heap in use", "512 MiB")]
    rest = [("not in use", "512 MiB"), ("outside the heap", "1,024 MiB")]
    assert [row[:2] for row in table.rows] == rows + rest


@pytest.mark.parametrize(
    ("others", "rest", "remedy"),
    [
        ({}, "512 MiB",
         "fewer goroutines if it is stacks; unknown if it is tables of the runtime"),
        # What has a row of its own is not named again; caches (MCacheSys) have none.
        ({"StackSys": GIB // 8, "MSpanSys": GIB // 8, "MCacheSys": GIB // 64},
         "256 MiB", "unknown: tables of the runtime that the input does not name"),
    ],
)  # fmt: skip
def test_the_rest_outside_the_heap_has_only_what_is_no_other_part(
    others: dict[str, int], rest: str, remedy: str
) -> None:
    table = memory_parts(read_text(OTHER + dump(**others)).report())
    assert table is not None
    by_name = {row[0]: row for row in table.rows}
    assert (by_name["outside the heap"][1], by_name["outside the heap"][3]) == (rest, remedy)
    assert ("spans" in by_name) == bool(others)


def test_resident_memory_that_is_not_go_is_a_part() -> None:
    sizes = {"HeapInuse": GIB, "HeapIdle": 2 * GIB, "HeapReleased": GIB, "Sys": 3 * GIB}
    names = {
        "HeapInuse": "heap_inuse",
        "HeapIdle": "heap_idle",
        "HeapReleased": "heap_released",
    }
    text = "".join(
        f"go_memstats_{names.get(name, 'sys')}_bytes {size}\n" for name, size in sizes.items()
    )
    table = memory_parts(read_text(f"{text}process_resident_memory_bytes {4 * GIB}\n").report())
    assert table is not None
    assert [row[:3] for row in table.rows] == [
        ("heap in use", "1,024 MiB", "25.0 %"),
        ("idle heap", "1,024 MiB", "25.0 %"),
        # Without the version of Go, what it returned may be resident.
        ("returned, or other", "1,024 MiB", "25.0 %"),
        ("outside Go (probably)", "1,024 MiB", "25.0 %"),
    ]


@pytest.mark.parametrize(
    ("version", "name", "off_heap_mib"),
    [
        ("1.14.3", "returned, kept", None),
        ("1.22.0", "outside Go (probably)", 2048),
        (None, "returned, or other", 2048),
    ],
)
def test_memory_that_old_go_returned_may_still_be_resident(
    version: str | None, name: str, off_heap_mib: int | None
) -> None:
    """Go 1.12 to 1.15 return memory with MADV_FREE: it counts until the host takes it."""
    sizes = {"heap_inuse": GIB, "heap_idle": 3 * GIB, "heap_released": 3 * GIB, "sys": 4 * GIB}
    text = "".join(f"go_memstats_{field}_bytes {size}\n" for field, size in sizes.items())
    info = f'go_info{{version="go{version}"}} 1\n' if version else ""
    run = read_text(f"{info}{text}process_resident_memory_bytes {3 * GIB}\n")
    table = memory_parts(run.report())
    assert table is not None
    assert table.rows[-1][:2] == (name, "2,048 MiB")
    assert run.settings.value("off_heap_mib") == off_heap_mib


def test_stacks_in_use_and_obtained_are_read_without_the_rest_of_a_profile() -> None:
    text = dump(Sys=3 * GIB, HeapSys=2 * GIB, HeapInuse=GIB) + f"# Stack = {GIB} / {GIB}\n"
    table = memory_parts(read_text(text).report())
    assert table is not None
    assert ("stacks", "1,024 MiB") in [row[:2] for row in table.rows]


def test_without_what_was_returned_the_rest_is_a_lower_bound() -> None:
    sizes = {
        "go_memstats_heap_inuse": GIB,
        "go_memstats_sys": 3 * GIB,
        "process_resident_memory": 4 * GIB,
    }
    text = "".join(f"api_{name}_bytes {size}\n" for name, size in sizes.items())
    table = memory_parts(read_text(text).report())
    assert table is not None
    assert table.rows[-2][:2] == ("outside Go (at least)", "1,024 MiB")
    # What is idle, returned or the runtime's own.
    assert table.rows[-1][:2] == ("other memory", "2,048 MiB")


def test_of_a_peak_only_what_go_never_had_is_outside() -> None:
    # Next to the heap, Go always has some MiB of its own.
    own = 8 << 20
    sizes = {"HeapInuse": GIB, "HeapIdle": 2 * GIB, "HeapReleased": GIB, "Sys": 3 * GIB + own}
    footer = dump(**sizes, MaxRSS=4 * GIB + own).replace("\n", "\n# ")
    run = read_text(f"heap profile: 0: 0 [0: 0] @ heap/1\n\n# runtime.MemStats\n# {footer}\n")
    assert run.memstats["rss_bytes"].to_list() == [None]
    table = memory_parts(run.report())
    assert table is not None
    assert table.rows[-1][:2] == ("outside Go (at least)", "1,024 MiB")
    assert run.settings.value("off_heap_mib") is None


@pytest.mark.parametrize("part", ["StackSys", "GCSys", "HeapIdle"])
def test_the_same_struct_has_the_same_table_whatever_the_sizes(part: str) -> None:
    sizes = {"HeapInuse": GIB, "HeapReleased": 0}
    for size in (GIB // 4, GIB // 16):
        text = dump(**sizes, Sys=GIB + size, **{part: size})
        assert memory_parts(read_text(text).report()) is not None


def test_an_unknown_rest_is_named() -> None:
    assert parts_of(dump(Alloc=GIB // 4, Sys=GIB))["other memory"][2].startswith("unknown")


def test_how_much_was_returned_is_said_so_that_the_total_of_the_table_is_explained() -> None:
    sizes = {"HeapInuse": GIB, "HeapIdle": GIB, "Sys": 2 * GIB + (2 << 20)}
    for released, said in (
        (0, "none of it"),
        (6 << 20, "6 MiB of it"),
        (GIB // 2, "512 MiB"),
    ):
        text = verdict(read_text(dump(**sizes, HeapReleased=released)).report()).sentence
        assert f"obtained 2,050 MiB from the OS and returned {said}" in text


def test_stacks_that_were_printed_are_not_the_rest() -> None:
    """As 0 MiB."""
    text = "Alloc = 700 MiB\tSys = 900 MiB\tHeapSys = 720 MiB{}\n"
    for stacks, said in (("\tStackSys = 0 MiB", "unknown"), ("", "fewer goroutines if")):
        table = memory_parts(read_text(text.format(stacks)).report())
        assert table is not None
        assert table.rows[-1][-1].startswith(said)


def test_a_size_has_no_more_digits_than_its_own_line() -> None:
    """Another line of the dump was in KB."""
    text = "- Alloc  157KB (allocated)\n- Sys    3MB (obtained)\n- Mallocs  2328\n"
    said = verdict(read_text(text).report()).sentence
    assert "heap allocated was 0.2 MiB; the runtime obtained 3 MiB from the OS" in said


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        ("Alloc = 129 MiB\tSys = 157 MiB", [("129 MiB", "82 %"), ("28 MiB", "18 %")]),
        ("Alloc = 34 MiB\tHeapSys = 463 MiB", [("34 MiB", "7 %"), ("429 MiB", "93 %")]),
        (
            "Alloc = 7000 MiB\tSys = 8192 MiB",
            [("7,000 MiB", "85.4 %"), ("1,192 MiB", "14.6 %")],
        ),
        ("Alloc = 34.5 MiB\tSys = 463.2 MiB", [("34.5 MiB", "7.4 %"), ("429 MiB", "92.6 %")]),
        ("Alloc = 35651584 \tSys = 485490688", [("34 MiB", "7.3 %"), ("429 MiB", "92.7 %")]),
    ],
)
def test_the_parts_of_printed_sizes_have_only_digits_that_those_have(
    line: str, rows: list[tuple[str, str]]
) -> None:
    table = memory_parts(read_text(line).report())
    assert table is not None
    assert [row[1:3] for row in table.rows] == rows


def test_dumps_with_what_is_idle_alone_have_parts() -> None:
    table = memory_parts(
        read_text(f"Alloc: {GIB // 4}\nHeapIdle: {GIB}\nHeapReleased: {GIB // 4}\n").report()
    )
    assert table is not None
    assert [row[:3] for row in table.rows] == [
        ("heap objects", "256 MiB", "25.0 %"),
        ("idle heap", "768 MiB", "75.0 %"),
    ]


def test_a_small_program_has_no_such_table() -> None:
    sizes = {"HeapInuse": 1 << 20, "HeapIdle": 7 << 20, "HeapReleased": 0, "Sys": 8 << 20}
    assert memory_parts(read_text(dump(**sizes)).report()) is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "scvg12: inuse: 20, idle: 740, sys: 760, released: 0, consumed: 760 (MB)",
            "of 760 MiB from the OS, 740 MiB are idle and kept, and 0 MiB are returned. Go up to ",
        ),
        (
            f"{LINES['gc14']}\nscvg4: inuse: 36, idle: 108, sys: 145, released: 108, consumed: 36 (MB)",
            "of 145 MiB from the OS, 0 MiB are idle and kept, and 108 MiB are returned.",
        ),
        (
            "scav 0 KiB work (bg), 186960 KiB work (eager), 208712 KiB now, 9% util (forced)",
            "204 MiB of the heap are returned to the OS",
        ),
    ],
)
def test_what_the_scavenger_returned_is_said(line: str, said: str) -> None:
    text = " ".join(memory_sentences(read_text(f"{line}\n").report()))
    assert said in text
    # An old Go returns at once, and nothing is left to return.
    assert ("Go 1.12 to 1.15" in text, "five minutes" in text) == (False, "scvg12" in line)


SCVG = "inuse: 3, idle: 59, sys: 63, released: 59, consumed: 4 (MB)"
RESTARTED = LINES["gc16"].replace("gc 4 @0.092s", "gc 1 @0.001s")
SCAV = "scav 2 0 KiB work, 2048 KiB total, 77% util"


@pytest.mark.parametrize(
    ("line", "forced", "when", "is_madv"),
    [
        (f"{LINES['gc16']}\nscvg: {SCVG}", "", "(after gc 4 at 92 ms)", True),
        (f"{LINES['gc16']}\nforced scvg: {SCVG}", "was called once", "after gc 4", True),
        # The cycles show Go 1.18 or later, and a line of the scavenger 1.20 or earlier.
        (f"{LINES['gc18']}\n{SCAV}", "", "line, after gc 1 at 4.0 ms)", False),
        (f"{LINES['gc18']}\n{SCAV} (forced)", "was called once", "after gc 1", False),
        (
            f"scvg-1: 3 MB released\nscvg-1: {SCVG}\n" * 2,
            "was called 2 times",
            "line: of",
            True,
        ),
        (f"{LINES['gc16']}\nscvg1: {SCVG}\n{RESTARTED}", "", "(process 0, after gc 4", True),
    ],
)
def test_a_line_of_the_scavenger_shows_when_it_was_and_who_forced_it(
    line: str, forced: str, when: str, *, is_madv: bool
) -> None:
    text = " ".join(memory_sentences(read_text(f"{line}\n").report()))
    assert when in text, text
    assert forced in text
    assert ("FreeOSMemory" in text) == bool(forced)
    assert ("Go 1.12 to 1.15" in text) == is_madv


def test_parts_larger_than_resident_memory_are_no_parts_of_it() -> None:
    dump = '{{"heap_inuse_mib": 423, "heap_alloc_mib": 422, "num_gc": 3, "rss_mib": {}}}\n'
    for rss, is_split in ((414, False), (600, True)):
        assert (memory_parts(read_text(dump.format(rss)).report()) is not None) == is_split


@pytest.mark.parametrize(
    ("idle", "released", "said"),
    [
        (1211, 0, "1,121 of 1,226 MiB are idle, more than the heap needs until its goal"),
        (1211, 1200, "of 1,226 MiB from the OS, 11"),
        (30, 10, ""),
    ],
)
def test_idle_memory_is_no_matter_of_sick_logs_alone(
    idle: int, released: int, said: str
) -> None:
    line = (
        f"scvg86: inuse: 14, idle: {idle}, sys: 1226, released: {released}, consumed: 1226 (MB)"
    )
    # Such lines are of Go 1.15 and earlier.
    log = log_of(60).replace("0 MB stacks, 0 MB globals, ", "")
    text = plain(document(read_text(f"{log}{line}\n").report()), everything=False)
    assert said in (shown := " ".join(text.split()))
    assert ("1,226 MiB" in shown) is bool(said)


@pytest.mark.parametrize(
    ("released", "name", "mib"),
    [
        ("", "not in use", "3,096 MiB"),
        ("go_memstats_heap_released_bytes_total 3.064905728e+09\n", "idle heap", "173 MiB"),
    ],
)
def test_idle_memory_may_be_returned_if_nothing_says_how_much_is(
    released: str, name: str, mib: str
) -> None:
    sizes = {"idle": 3.246276608e9, "inuse": 1.2787712e8, "sys": 3.374153728e9}
    text = "".join(f"go_memstats_heap_{part}_bytes {size}\n" for part, size in sizes.items())
    table = memory_parts(
        read_text(f"{text}process_resident_memory_bytes 4e9\n{released}").report()
    )
    assert table is not None
    assert [(row[0], row[1]) for row in table.rows if row[0] == name] == [(name, mib)]


def test_parts_that_are_more_than_what_is_resident_are_parts_of_what_go_holds() -> None:
    sizes = {
        "sys": 157,
        "heap_sys": 147,
        "heap_inuse": 89,
        "heap_idle": 58,
        "heap_released": 23,
    }
    page = "".join(f"go_memstats_{part}_bytes {size << 20}\n" for part, size in sizes.items())
    table = memory_parts(
        read_text(f"{page}process_resident_memory_bytes {114 << 20}\n").report()
    )
    assert table is not None
    assert table.head[2] == "of 134 MiB of Go"
    assert table.rows[0][:3] == ("heap in use", "89 MiB", "66.4 %")


@pytest.mark.parametrize(
    ("last_gc_s", "may_limit"), [(1_588_280_936, False), (1_700_000_000, True)]
)
def test_dumps_older_than_go_1_19_are_of_programs_without_a_memory_limit(
    last_gc_s: int, may_limit: bool
) -> None:
    table = memory_parts(read_text(OTHER + dump(LastGC=last_gc_s * 10**9)).report())
    assert ("GOMEMLIMIT" in str(table)) is may_limit


COCKROACH = (
    "I170923 19:56:24.064379 105 server/status/runtime.go:223  [n2] runtime stats: 6.4 GiB RSS, "
    "530 goroutines (stacks: 13 MiB), 2.3 GiB/3.1 GiB Go alloc/total (heap fragmentation: "
    "232 MiB, heap reserved: 511 MiB, heap released: 1.8 GiB), {} (1612.2 CGO/sec), "
    "190.1/25.3 %(u/s)time, 0.1 %gc (5x)\n"
)


def test_a_part_is_at_most_all_of_the_memory() -> None:
    """`top` prints tenths of a GiB, and MemStats bytes."""
    obtained = dump(Sys=2_158_662_128, HeapReleased=2_059_436_032, GCSys=73_363_328)
    top = "  PID USER  PR  NI    VIRT  RES   SHR S  %CPU %MEM   TIME+ COMMAND\n"
    process = "18743 work  20   0 2843936 1.9g  9788 S   3.3 12.2  551:03 server\n"
    table = memory_parts(read_text(obtained + top + process).report())
    assert table is not None
    rows = {row[0]: row for row in table.rows}
    assert rows["returned, or other"][1:3] == ("1.7–1.9 GiB", "92–98 %")


def test_what_c_code_has_is_not_memory_that_go_returned() -> None:
    rows = parts_of(COCKROACH.format("2.8 GiB/3.1 GiB CGO alloc/total").replace("I17", "I24"))
    assert rows["heap objects"][:2] == ("2.3 GiB", "36 %")
    assert rows["free inside spans"][:2] == ("232 MiB", "3.5 %")
    assert rows["C code (cgo)"][:2] == ("3.1 GiB", "48 %")
    # Three sizes of one decimal: their difference is a range.
    assert rows["returned, or other"][:2] == ("up to 0.4 GiB", "up to 6 %")


def test_before_go_112_returned_memory_was_not_resident() -> None:
    rows = parts_of(COCKROACH.format("2.8 GiB/2.1 GiB CGO alloc/total"))
    assert rows["outside Go (probably)"][0] == "1.0–1.4 GiB"
    assert not any("madvdontneed" in row[2] for row in rows.values())


def test_metrics_that_go_115_does_not_have_exclude_memory_that_it_kept() -> None:
    sizes = {"heap_inuse": 1, "heap_idle": 2, "heap_released": 1, "sys": 3}
    text = "".join(f"go_memstats_{name}_bytes {size * GIB}\n" for name, size in sizes.items())
    text += f"process_resident_memory_bytes {4 * GIB}\n"
    assert "returned, or other" in parts_of(text)
    later = parts_of(f"{text}go_gc_gomemlimit_bytes {8 * GIB}\n")
    assert later["outside Go (probably)"][0] == "2,048 MiB"


def test_a_far_goal_does_not_prove_that_free_slots_will_be_filled() -> None:
    sizes = {"Sys": GIB, "HeapSys": GIB, "HeapInuse": GIB // 2, "HeapAlloc": GIB // 4}
    sizes |= {"HeapIdle": GIB // 2, "HeapReleased": 0}
    for goal in (GIB // 2, GIB // 3):
        rows = parts_of(dump(**sizes, NextGC=goal))
        assert rows["free inside spans"][2].startswith("lower peaks")


def parts_of(text: str) -> dict[str, tuple[str, ...]]:
    """Returns the cells of each part by its name."""
    table = memory_parts(read_text(text).report())
    assert table is not None
    return {str(row[0]): tuple(map(str, row[1:])) for row in table.rows}


PEAK = "MaxRSS = 2013265920\n"
DOCKER = """CONTAINER ID   NAME         CPU %     MEM USAGE / LIMIT     MEM %
9c1f2b7a8e11   thumbnailer  148.02%   1.874GiB / 2GiB       93.70%
{}"""
HEAP = "# runtime.MemStats\n# HeapAlloc = 148210432\n# Sys = 402653184\n# HeapReleased = 117440512\n# NumGC = 6123\n"


def test_what_docker_charges_is_not_resident_memory() -> None:
    with_peak = read_text(DOCKER.format(f"{HEAP}# {PEAK}"))
    assert with_peak.memstats["rss_bytes"].to_list() == [None]
    assert (
        "(at least 1,536 MiB at its peak, 80.0 % of the peak RSS)"
        in verdict(with_peak.report()).action
    )
    said = "charged to the container, with page cache, are counted as resident memory"
    page = "go_memstats_alloc_bytes 2.98e+08\nprocess_resident_memory_bytes 1.8e+09\n"
    with_rss = read_text(DOCKER.format(page))
    assert with_rss.memstats["rss_bytes"].to_list() == [1_800_000_000]
    assert said not in " ".join(plain(document(with_rss.report())).split())
    # Without any other size it is the nearest one, and the report says so.
    alone = read_text(DOCKER.format(HEAP))
    assert said in " ".join(plain(document(alone.report())).split())


def test_what_go_holds_is_compared_with_the_limit() -> None:
    sizes = dump(Sys=400 << 20, HeapReleased=100 << 20, HeapAlloc=240 << 20)
    said = verdict(read_text(f"{sizes}GOMEMLIMIT=256MiB\n").report()).sentence
    assert "The 300 MiB that Go holds are 44 MiB above GOMEMLIMIT (256 MiB)." in said


def test_resident_memory_that_grows_without_the_heap_is_outside_go() -> None:
    line = "Time: {}s Resident size: {}MB MemStats.Sys: {}MB MemStats.Alloc: 3.1MB MemStats.TotalAlloc: {}MB\n"
    rows = [(0, 6.0, 8.0, 3.5), (51, 8.8, 9.1, 474.1), (358, 44.5, 12.1, 3280.3)]
    found = verdict(read_text("".join(line.format(*row) for row in rows)).report())
    rose = "resident memory rose from 6 MiB to 44.5 MiB, 32.4 MiB more than what Go obtained"
    assert rose in found.sentence
    assert found.action.startswith("Find out what grows outside Go")


def test_an_empty_heap_profile_is_named() -> None:
    for rate, found in ((0, True), (1048576, False)):
        run = read_text(f"heap profile: 0: 0 [0: 1] @ heap/{rate}\n\n{HEAP}")
        said = " ".join(plain(document(run.report())).split())
        assert ("profile in the input is empty: its rate is 0" in said) is found


def test_a_limit_from_a_dump_says_what_it_leaves_out() -> None:
    kill = (
        "[88123.1] Out of memory: Killed process 2211 (cockroach) total-vm:22012344kB, "
        "anon-rss:6812344kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:18012kB\n"
    )
    line = COCKROACH.format("2.8 GiB/3.1 GiB CGO alloc/total").replace("I17", "I24")
    action = verdict(read_text(line + kill).report()).action
    assert "(90 % of what it had less 3,379 MiB outside Go)" in action


def test_the_live_heap_of_a_dump_is_said() -> None:
    text = f"/gc/heap/goal:bytes {80 << 20}\n/gc/heap/live:bytes {38 << 20}\n"
    text += f"/memory/classes/heap/objects:bytes {56 << 20}\n/memory/classes/total:bytes {117 << 20}\n"
    said = verdict(read_text(text).report()).sentence
    assert "The heap goal was 80 MiB, with a live heap of 38 MiB." in said


@pytest.mark.parametrize(
    ("sizes", "name", "size"),
    [
        ({"heap_sys": 1400, "heap_inuse": 990, "heap_released": 180}, "idle heap", "230 MiB"),
        ({"heap_sys": 1400, "heap_inuse": 990}, "not in use", "410 MiB"),
        ({"heap_sys": 1400, "heap_inuse": 1400, "heap_released": 0}, "idle heap", None),
        # Stacks count as heap in some exports.
        ({"heap_sys": 900, "heap_inuse": 990, "heap_released": 0}, "idle heap", None),
    ],
)
def test_the_idle_heap_follows_from_the_other_two(
    sizes: dict[str, int], name: str, size: str | None
) -> None:
    sizes = {"sys": 1600, "alloc": 900, **sizes}
    page = "".join(f"go_memstats_{part}_bytes {size << 20}\n" for part, size in sizes.items())
    shown = parts_of(f"{page}process_resident_memory_bytes {1650 << 20}\n")
    assert shown.get(name, (None,))[0] == size


@pytest.mark.parametrize(
    ("limit_mib", "remedy"),
    [
        (1024, "fewer live objects"),
        (1250, "fewer live objects"),
        (4096, "fewer live objects, lower GOGC or GOMEMLIMIT"),
    ],
)
def test_a_lower_limit_does_not_lower_what_is_above_the_limit(
    limit_mib: int, remedy: str
) -> None:
    sizes = {"sys": 1200, "heap_alloc": 900, "heap_inuse": 950, "heap_sys": 1000}
    page = "".join(f"go_memstats_{part}_bytes {size << 20}\n" for part, size in sizes.items())
    shown = parts_of(f"{page}go_gc_gomemlimit_bytes {limit_mib << 20}\n")
    assert shown["heap objects"][-1] == remedy


def test_no_lower_limit_is_advised_where_a_limit_that_dumps_do_not_name_thrashes() -> None:
    name = "own/thrash-limit80/expvar.jsonl.gz"
    table = memory_parts(gca.read(CORPUS / "metrics" / name).report())
    assert table is not None
    assert "lower GOGC" not in str(table.rows)
    assert "GOMEMLIMIT" not in str(table.rows)


def test_shares_of_the_peak_are_not_those_of_the_resident_memory() -> None:
    fields = {"Alloc": GIB, "Sys": 2 * GIB, "HeapSys": 2 * GIB - 1, "HeapInuse": GIB}
    lines = "".join(f"# {name} = {value}\n" for name, value in fields.items())
    text = f"heap profile: 1: 2 [3: 4] @ heap/1048576\n# runtime.MemStats\n{lines}"
    table = memory_parts(read_text(f"{text}# MaxRSS = {3 * GIB}\n").report())
    assert table is not None
    assert table.head[2] == "of 3,072 MiB peak RSS"
