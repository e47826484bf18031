"""MemStats that programs print into their logs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gctrace_analyzer.ingest.evidence.message import Message
from gctrace_analyzer.ingest.memstats import log_messages
from gctrace_analyzer.ingest.memstats.fields import OF_GO
from gctrace_analyzer.present.sections import headline
from gctrace_analyzer.testing import read_text
from tests.helpers.facts import log_of
from tests.helpers.lines import LINES
from tests.helpers.logs import read_lines
from tests.helpers.memstats import DUMPS, MEMSTATS, row_of

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


def test_a_list_of_pauses_ends_at_its_bracket() -> None:
    run = read_text(
        "{Alloc:13053720 Sys:27149576 PauseTotalNs:212126 PauseNs:[19292 192834] PauseEnd:[\n"
        "1710886383108615000 1710886385819055000]}\n"
    )
    assert run.memstats["pause_max_s"].to_list() == [192834e-9]


def test_times_without_a_zone_show_the_distances(tmp_path: Path) -> None:
    lines = [
        f"2026/11/23 03:13:{n:02} Alloc = {n} MiB TotalAlloc = {9 * n} MiB NumGC = {n}"
        for n in (10, 12, 14)
    ]
    run = read_lines(tmp_path, *lines)
    assert run.memstats["elapsed_s"].to_list() == [0, 2, 4]
    assert run.memstats["logged_at"].null_count() == 3
    assert run.summary().gc_per_s == 1
    table = "time,HeapAlloc,TotalAlloc,NumGC\n" + "\n".join(
        f"2026-11-23 03:13:{n:02},{n},{9 * n},{n}" for n in (10, 12, 14)
    )
    assert read_text(table).memstats["elapsed_s"].to_list() == [0, 2, 4]


def test_clocks_that_are_set_back_show_no_distances(tmp_path: Path) -> None:
    lines = [
        f"2026/10/25 0{at} Alloc = 5 MiB TotalAlloc = {n} MiB NumGC = {n}"
        for n, at in enumerate(("2:58:00", "2:59:00", "2:00:00", "2:01:00"), start=1)
    ]
    run = read_lines(tmp_path, *lines)
    assert run.memstats["elapsed_s"].null_count() == 4
    zoned = read_lines(tmp_path, *lines, tz="Europe/Berlin")
    assert zoned.summary().gc_per_s == pytest.approx(1 / 60)


def dumps(*lines: str) -> list[dict[str, Any]]:
    return log_messages.read(Message(n, line) for n, line in enumerate(lines, 1))


def test_a_line_that_a_message_is_about_is_not_its_own() -> None:
    (row,) = dumps("checked main.go source=2 line_no=7 Alloc = 5 MiB Sys = 9 MiB NumGC = 3")
    assert row["line_no"] == 1
    assert "source" not in row


@settings(max_examples=30)
@given(DUMPS, st.sampled_from(["{} = {}", "{}={}", "{}: {}"]))
def test_memstats_read_from_text_as_printed(dump: dict[str, int], form: str) -> None:
    line = " ".join(form.format(name, value) for name, value in dump.items())
    table = read_text(f"{line}\n{LINES['gc18']}\n").memstats
    assert table.select(MEMSTATS.values()).to_dicts() == [row_of(dump)]


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
            "{Alloc:123456 Mallocs:5000 BySize:[{Size:16 Mallocs:11 Frees:9}] NumGC:2}",
            {"mallocs": 5000, "num_gc": 2},
        ),
        (
            "Alloc = 25 MiB\nTotalAlloc = 38 MiB\nSys = 35 MiB\nNumGC = 5",
            {"sys_bytes": 35 * MIB, "num_gc": 5},
        ),
        (
            "heap_alloc=12.5MiB heap_sys=20.0MiB num_gc=7",
            {"heap_alloc_bytes": 12.5 * MIB, "num_gc": 7},
        ),
        # Fields of zap, logrus and slog, under the names that programs give them.
        (
            'memstats	{"heapAlloc": 91802152, "numGC": 5, "pauseTotal": "18.904933ms"}',
            {"heap_alloc_bytes": 91802152, "num_gc": 5, "pause_total_ns": 18_904_933},
        ),
        (
            'level=info msg="mem stats" alloc_mb=87 sys_mb=103 next_gc_mb=104.5 total_alloc_mb=95',
            {"alloc_bytes": 87 * MIB, "next_gc_bytes": 104.5 * MIB, "resolution_bytes": MIB},
        ),
        (
            '{"level":"info","ts":1795403614.51,"msg":"memstats","heapAlloc":91802152,'
            '"nextGC":109894258,"numGC":5,"pauseTotal":0.018904933}',
            # Seconds, milliseconds: the entry does not show which.
            {"heap_alloc_bytes": 91802152, "num_gc": 5, "pause_total_ns": None},
        ),
        (
            '{"alloc_mb":87,"gc_pause_total_ms":18.5,"level":"info","msg":"mem stats",'
            '"sys_mb":103,"time":"2026-11-23T03:13:34Z","total_alloc_mb":95}',
            {"alloc_bytes": 87 * MIB, "pause_total_ns": 18_500_000, "resolution_bytes": MIB},
        ),
        (
            '{"time":"2026-11-23T03:13:34Z","level":"INFO","msg":"memory","alloc":"87 MiB",'
            '"num_gc":5,"next_gc":"104 MiB"}',
            {"alloc_bytes": 87 * MIB, "next_gc_bytes": 104 * MIB},
        ),
    ],
)
def test_memstats_printed_by_programs_are_read(
    text: str, expected: dict[str, float], tmp_path: Path
) -> None:
    (row,) = read_lines(tmp_path, *text.split("\n")).memstats.to_dicts()
    assert {name: row[name] for name in expected} == expected


def test_runtime_statistics_of_cockroachdb_are_read() -> None:
    line = "runtime stats: 3.0 GiB RSS, 300 goroutines, 1.5 GiB/512 MiB/2.0 GiB GO alloc/idle/total"
    row = read_text(line + "\n").memstats.row(0, named=True)
    assert row["rss_bytes"] == 3 << 30
    assert (row["alloc_bytes"], row["heap_free_bytes"]) == (3 << 29, 1 << 29)


def test_sizes_with_units_have_the_resolution_of_their_last_digit() -> None:
    row = read_text("Alloc = 1.5 MiB\tSys = 10 MiB\tNumGC = 3\n").memstats.row(0, named=True)
    assert (row["alloc_bytes"], row["sys_bytes"], row["num_gc"]) == (3 << 19, 10 << 20, 3)
    assert row["resolution_bytes"] == 1 << 20


@pytest.mark.parametrize("before", ["", log_of(1).strip()])
def test_a_dump_that_lost_its_blanks_and_line_ends_is_read(before: str) -> None:
    """As blogs show it; the first field may stand right behind a record."""
    lost = "mem.Alloc: 100081456mem.TotalAlloc: 100101064mem.HeapAlloc: 100081456mem.NumGC: 1"
    row = read_text(f"{before}{lost}\n").memstats.row(0, named=True)
    assert (row["alloc_bytes"], row["total_alloc_bytes"]) == (100081456, 100101064)
    assert row["num_gc"] == 1
    row = read_text("Alloc = 5 MiBTotalAlloc = 9 MiBSys = 12 MiBNumGC = 1").memstats.row(
        0, named=True
    )
    assert (row["sys_bytes"], row["num_gc"]) == (12 * MIB, 1)


def test_fields_on_nearby_lines_are_one_dump_until_one_is_repeated() -> None:
    rows = dumps("Alloc = 1 MiB", "Sys = 2 MiB", "Alloc = 3 MiB", "Sys = 4 MiB")
    assert [row["sys_bytes"] for row in rows] == [2 * MIB, 4 * MIB]
    far = ["text"] * 20
    assert dumps("Alloc = 1 MiB", *far, "Sys = 2 MiB") == []


def test_json_objects_between_printed_dumps_are_dumps_or_ignored() -> None:
    rows = dumps('{"HeapAlloc": 5, "HeapSys": 9}', '{"msg": "started"}', "Alloc=1 Sys=2")
    assert [row.get("heap_sys_bytes") for row in rows] == [9, None]


def test_values_in_other_notations_are_read() -> None:
    (row,) = dumps("Alloc: 1.5e+06 Sys: 0x10 PauseTotalNs: 2ms NumGC: 3 GCCPUFraction: 0.25")
    assert (row["alloc_bytes"], row["sys_bytes"]) == (1_500_000, 16)
    assert (row["pause_total_ns"], row["gc_cpu_fraction"]) == (2_000_000, 0.25)


def test_a_count_with_a_unit_is_not_a_count() -> None:
    (row,) = dumps("Alloc = 1 Sys = 2 NumGC = 5 MiB Mallocs = 7")
    assert "num_gc" not in row
    assert row["mallocs"] == 7


def test_statistics_of_older_cockroachdb_have_no_idle_heap() -> None:
    line = "runtime stats: 3.0 GiB RSS, 300 goroutines, 1.5 GiB/2.0 GiB GO alloc/total"
    (row,) = dumps(line)
    assert row["mapped_bytes"] == 2 << 30
    assert row.keys().isdisjoint({"heap_idle_bytes", "sys_bytes"})


def test_cockroachdb_counts_gc_of_the_last_ten_seconds_not_since_the_start() -> None:
    line = (
        "runtime stats: 11 GiB RSS, 1187 goroutines (stacks: 22 MiB), 2.0 GiB/3.5 GiB Go "
        "alloc/total{} (heap fragmentation: 310 MiB, heap reserved: 512 MiB, heap released: "
        "1.5 GiB), 5.9 GiB/6.6 GiB CGO alloc/total (1.0 CGO/sec), 1.0/2.0 %(u/s)time, "
        "{} %gc ({}x), 18 MiB/22 MiB (r/w)net\n"
    )
    lines = [line.format("", "0.40", 9), line.format("(stale)", 0.2, 12)]
    row = read_text("".join(lines)).memstats.row(0, named=True)
    assert (row["sys_bytes"], row["mapped_bytes"]) == (5 << 30, 7 << 29)
    assert (row["num_gc"], row["stack_sys_bytes"]) == (None, 22 * MIB)
    note, in_c = log_messages.of_last_times(Message(n, each) for n, each in enumerate(lines))
    assert (
        "seconds (2 lines in the input): 12 cycles at most, and pauses for under 0.45 % of"
        in note
    )
    assert "5.9 GiB of 6.6 GiB" in in_c
    assert row["heap_idle_bytes"] == 2 << 30


@pytest.mark.parametrize(
    "between", ["\n", ": ", ":\n"], ids=["below", "beside", "colon, below"]
)
def test_a_dashboard_of_gitea_is_one_dump(between: str) -> None:
    page = {
        "Memory Obtained": "2.5 GiB", "Current Heap Usage": "142 MiB", "Heap Memory Idle": "390 MiB",
        "Bootstrap Stack Usage": "9 MiB", "MSpan Structures Obtained": "12 MiB",
        "Profiling Bucket Hash Table Obtained": "2 MiB", "GC Metadata Obtained": "22 MiB",
        "Other System Allocation Obtained": "1 GiB", "Time Since Last GC": "14.2s",
        "Total GC Pause": "12.6s", "Last GC Pause": "0.002s", "GC Times": "8412",
    }  # fmt: skip
    (row,) = dumps(*"\n".join(f"{n}{between}{v}" for n, v in page.items()).split("\n"))
    assert (row["sys_bytes"], row["heap_alloc_bytes"]) == (5 << 29, 142 * MIB)
    assert (row["stack_inuse_bytes"], row["mspan_sys_bytes"]) == (9 * MIB, 12 * MIB)
    assert (row["buck_hash_sys_bytes"], row["gc_sys_bytes"]) == (2 * MIB, 22 * MIB)
    assert (row["other_sys_bytes"], row["num_gc"]) == (1 << 30, 8412)
    assert (row["pause_total_ns"], row["last_pause_ns"]) == (12_600_000_000, 2_000_000)
    assert "last_gc_unix_ns" not in row


@pytest.mark.parametrize(
    "line",
    [
        "INFO Non-zero metrics in the last 30s: beat.memstats.gc_next=41 "
        "beat.memstats.memory_alloc=32 beat.memstats.memory_sys=26",
        'INFO [monitoring] log/log.go:124 Non-zero metrics in the last 30s {"monitoring": '
        '{"metrics": {"beat": {"memstats": {"gc_next":41,"memory_alloc":32,"memory_sys":26}}}}}',
    ],
)
def test_what_beats_obtained_within_30_s_is_not_all_memory(line: str) -> None:
    (row,) = dumps(line)
    assert (row["next_gc_bytes"], row["alloc_bytes"]) == (41, 32)
    assert "sys_bytes" not in row


def test_the_longest_pause_of_nsqd_is_in_microseconds() -> None:
    text = '{"memory":{"heap_idle_bytes":63,"gc_pause_usec_100":1842,"gc_total_runs":31877}}'
    row = read_text(text).memstats.row(0, named=True)
    assert (row["pause_max_s"], row["num_gc"]) == (pytest.approx(0.001842), 31877)


@pytest.mark.parametrize(
    ("unit", "size"),
    [("B", 1), ("b", 1), ("bytes", 1), ("K", 1 << 10), ("KB", 1 << 10), ("kib", 1 << 10), ("KiBytes", 1 << 10),
     ("M", 1 << 20), ("MB", 1 << 20), ("MiB", 1 << 20), ("G", 1 << 30), ("GiB", 1 << 30), ("T", 1 << 40), ("TiB", 1 << 40)],
)  # fmt: skip
@pytest.mark.parametrize("blank", ["", " "])
def test_a_size_has_its_unit(unit: str, size: int, blank: str) -> None:
    (row,) = dumps(f"HeapAlloc = 5{blank}{unit}, HeapSys = 2.5{blank}{unit}, NumGC = 3")
    assert (row["heap_alloc_bytes"], row["heap_sys_bytes"]) == (5 * size, round(2.5 * size))
    assert row.get("resolution_bytes") == (size if size > 1 else None)


@pytest.mark.parametrize(
    ("unit", "ns"),
    [("", 1), ("ns", 1), ("us", 1000), ("µs", 1000), ("ms", 10**6), ("s", 10**9)],
)
def test_a_duration_has_its_unit(unit: str, ns: int) -> None:
    (row,) = dumps(f"Alloc: 5 Sys: 7 PauseTotalNs: 3{unit}")
    assert row["pause_total_ns"] == 3 * ns


@pytest.mark.parametrize(
    ("text", "resolution"),
    [("Alloc = 5 MiB Sys = 7.25 MiB", 1 << 20), ("Alloc = 5.5 MiB Sys = 7.25 MiB", round((1 << 20) / 10)),
     ("Alloc = 5.50 MiB Sys = 7.25 MiB", round((1 << 20) / 100)), ("Alloc = 5 Sys = 7", None),
     ("Alloc = 5e6 Sys = 7 KiB", 1024)],
)  # fmt: skip
def test_the_resolution_is_the_coarsest_last_digit(text: str, resolution: int | None) -> None:
    (row,) = dumps(text)
    assert row.get("resolution_bytes") == resolution


@pytest.mark.parametrize(("apart", "together"), [(1, True), (8, True), (9, False)])
def test_fields_up_to_eight_lines_apart_are_one_dump(apart: int, together: bool) -> None:
    rows = dumps("Alloc = 1 MiB", *["text"] * (apart - 1), "Sys = 2 MiB")
    assert len(rows) == together
    chain = [
        line
        for n in ("Alloc", "Sys", "HeapSys", "HeapIdle")
        for line in (f"{n} = 1 MiB", *["x"] * (apart - 1))
    ]
    assert len(dumps(*chain)) == together, "from one field to the next"


def test_dumps_of_two_programs_may_be_mixed() -> None:
    messages = [Message(1, "Alloc = 1 Sys = 5", ident="a"), Message(2, "Alloc = 2", ident="b"),
                Message(3, "NumGC = 7", ident="a"), Message(4, "Sys = 9", ident="b")]  # fmt: skip
    rows = log_messages.read(messages)
    assert [(row["ident"], row["alloc_bytes"], row["sys_bytes"], row.get("num_gc")) for row in rows] == [
        ("a", 1, 5, 7), ("b", 2, 9, None)
    ]  # fmt: skip
    assert [row["line_no"] for row in rows] == [1, 2]


@pytest.mark.parametrize(
    "line",
    ["Alloc = 5 MiB", "allocated: 5 sys: 7", "rss = 5 MiB, gomemlimit = 7 MiB", "Alloc = x Sys = y",
     "goroutines = 5, gc = 3", "my.Alloc=5 my.Sys=7", "Alloc=5x Sys=7y"],
)  # fmt: skip
def test_a_line_with_fewer_than_two_fields_is_no_dump(line: str) -> None:
    assert dumps(line) == []


def test_thousands_separators_and_wide_equal_signs_are_read() -> None:
    (row,) = dumps("HeapAlloc＝1,234,567 HeapSys : 8,388,608  GCCPUFraction=1.5e-3")
    assert (row["heap_alloc_bytes"], row["heap_sys_bytes"]) == (1_234_567, 8_388_608)
    assert row["gc_cpu_fraction"] == 0.0015


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("runtime stats: 3.0 GiB RSS, 300 goroutines (stacks: 5 MiB), 1.5 GiB/512 MiB/2.0 GiB Go alloc/idle/total",
         {"rss_bytes": 3 << 30, "alloc_bytes": 3 << 29, "heap_free_bytes": 1 << 29, "mapped_bytes": 2 << 30,
          "stack_sys_bytes": 5 << 20, "resolution_bytes": round((1 << 30) / 10)}),
        ("runtime stats: 20 MiB RSS, 9 goroutines, 700 KiB/16 MiB GO alloc/total",
         {"rss_bytes": 20 << 20, "alloc_bytes": 700 << 10, "mapped_bytes": 16 << 20, "resolution_bytes": 1 << 20}),
        ("runtime stats: 2.0 GiB RSS, 9 goroutines, 400 MiB/700 MiB Go alloc/total (heap fragmentation: 20 MiB, "
         "heap reserved: 250 MiB, heap released: 300 MiB), 120 MiB/180 MiB CGO alloc/total",
         {"rss_bytes": 2 << 30, "alloc_bytes": 400 << 20, "mapped_bytes": 700 << 20, "sys_bytes": 1000 << 20,
          "heap_inuse_bytes": 420 << 20, "heap_idle_bytes": 550 << 20, "heap_released_bytes": 300 << 20, "cgo_bytes": 180 << 20,
          "resolution_bytes": round((1 << 30) / 10)}),
    ],
)  # fmt: skip
def test_a_line_of_cockroachdb_has_all_of_its_sizes(line: str, row: dict[str, int]) -> None:
    (found,) = dumps(line)
    assert {name: value for name, value in found.items() if name.endswith("_bytes")} == row


FULL = {
    "Alloc": 30698342168, "TotalAlloc": 3571647324080, "Sys": 59102877128, "Lookups": 7,
    "Mallocs": 36810087943, "Frees": 36543839111, "HeapAlloc": 30698342168,
    "HeapSys": 55796236288, "HeapIdle": 23416643584, "HeapInuse": 32379592704,
    "HeapReleased": 1767669760, "HeapObjects": 266248832, "StackInuse": 38338560,
    "StackSys": 38338560, "MSpanInuse": 408217328, "MSpanSys": 783368192,
    "MCacheInuse": 27776, "MCacheSys": 32768, "BuckHashSys": 61592850, "GCSys": 2324183808,
    "OtherSys": 99124662, "NextGC": 48695359040, "LastGC": 1588280936483426698,
    "PauseTotalNs": 110904381, "NumGC": 1313, "NumForcedGC": 2,
}  # fmt: skip
"""Every number of `runtime.MemStats`, in its order."""


def full_row() -> dict[str, int]:
    found = read_text(json.dumps(FULL)).memstats.row(0, named=True)
    return {name: found[name] for name in sorted(set(found) & OF_GO)}


def by_fields(form: str, arrays: tuple[str, ...], order: list[str]) -> str:
    """Returns a dump with a field in each line, and the arrays where the runtime has them."""
    lines = ["memory:"]
    for name in order:
        lines.append(form.format(name, FULL[name]))
        if name == "PauseTotalNs":
            lines += ["PauseNs: [256]uint64{", *arrays[:1] * 256, "},"]
        elif name == order[0]:
            lines += ["BySize: [", *arrays[1:] * 61, "],", "DebugGC: false"]
    return "\n".join(lines)


@pytest.mark.parametrize("order", [list(FULL), sorted(FULL)], ids=["of Go", "sorted"])
@pytest.mark.parametrize("form", ["{}: {}", "\t{} = {}", "  {}: (uint64) {},", "  {}:  {:#x},"])
def test_a_dump_of_all_fields_one_in_each_line_is_one_dump(form: str, order: list[str]) -> None:
    arrays = ("  358357,", "  {Size: 16", "   Mallocs: 5", "   Frees: 4},")
    text = by_fields(form, arrays, order)
    for run in (read_text(text), read_text(f"{LINES['gc18']}\n{text}\n{LINES['gc18']}\n")):
        assert len(run.memstats) == 1
        assert run.memstats.select(full_row().keys()).row(0, named=True) == full_row()


def test_what_gops_prints_is_read_with_exact_sizes() -> None:
    text = """\
alloc: 22.89MB (24005552 bytes)
total-alloc: 1.49GB (1602895000 bytes)
sys: 75.02MB (78660608 bytes)
lookups: 0
mallocs: 23141725
frees: 22895477
heap-alloc: 22.89MB (24005552 bytes)
heap-sys: 63.00MB (66060288 bytes)
heap-in-use: 28.29MB (29663232 bytes)
heap-objects: 246248
stack-in-use: 1.00MB (1048576 bytes)
stack-mspan-inuse: 500.44KB (512448 bytes)
next-gc: when heap-alloc >= 24.58MB (25776064 bytes)
last-gc: 2020-11-30 16:35:46.766977147 -0500 EST
gc-pause-total: 10.939682ms
gc-pause: 228800
num-gc: 140
enable-gc: true
"""
    [row] = read_text(text).memstats.to_dicts()
    del row["source"], row["line_no"], row["process"]
    assert {name: row[name] for name in row if row[name] is not None} == {
        "alloc_bytes": 24005552, "total_alloc_bytes": 1602895000, "sys_bytes": 78660608,
        "mallocs": 23141725, "frees": 22895477, "heap_alloc_bytes": 24005552,
        "heap_sys_bytes": 66060288, "heap_inuse_bytes": 29663232,
        "stack_inuse_bytes": 1048576, "mspan_inuse_bytes": 512448,
        "next_gc_bytes": 25776064, "pause_total_ns": 10939682, "num_gc": 140,
        "last_pause_ns": 228800,
    }  # fmt: skip


def test_a_table_of_names_values_and_meanings_is_a_dump() -> None:
    [row] = dumps(
        "    - Alloc       80KB   (allocated and still in use)   ",
        "    - Mallocs     15967  (number of mallocs)",
        "    - HeapSys     880KB  (obtained from system)",
        "    - HeapReleased  0B     (released to the OS)",
    )
    names = ("alloc_bytes", "mallocs", "heap_sys_bytes", "heap_released_bytes")
    assert [row[name] for name in names] == [81920, 15967, 901120, 0]
    assert row["resolution_bytes"] == 1024


@pytest.mark.parametrize(
    ("listed", "longest_s"),
    [
        (["[3000 7000]"], 7e-6),
        (["[3000 7000 ... 254 more]"], 7e-6),
        (["[", "3000, 7000,", "5000", "]"], 7e-6),
        (["[", "3000, 7000,", "... 254 more items", "]"], 7e-6),
        # The last number may have had more digits.
        (["[3000 7000 9"], 7e-6),
    ],
)
def test_of_pauses_that_were_cut_those_that_are_whole_are_read(
    listed: list[str], longest_s: float
) -> None:
    (row,) = dumps("Alloc: 5", "HeapSys: 7", f"PauseNs: {listed[0]}", *listed[1:])
    assert row["pause_max_s"] == longest_s
    assert row["pauses"] == (3 if "5000" in listed else 2)


def test_a_size_whose_unit_was_cut_off_is_not_read() -> None:
    (row,) = dumps("Alloc = 7648 MiB Sys = 8002 MiB HeapInuse = 7650 MiB HeapSys = 7687")
    assert row["heap_inuse_bytes"] == 7650 << 20
    assert row.get("heap_sys_bytes") is None


def test_the_dict_of_an_interactive_session_is_a_dump() -> None:
    (row,) = dumps("{'HeapSys': 7, 'NumGC': 2, 'EnableGC': True}")
    assert (row["heap_sys_bytes"], row["num_gc"]) == (7, 2)


def test_the_heap_may_be_printed_without_its_name() -> None:
    sizes = "sys: 6207 MB alloc: 6103 MB idle: 103 MB released: 103 MB inuse: 6103 MB"
    (dump,) = read_text(f"{sizes}\n").memstats.to_dicts()
    names = ("heap_idle_bytes", "heap_released_bytes", "heap_inuse_bytes")
    assert [dump[name] >> 20 for name in names] == [103, 103, 6103]
    # Those of a pool of connections are none.
    assert not log_messages.read([Message(1, "alloc=5 idle=3 inuse=4 wait=10 released=2")])


def test_sizes_that_are_too_small_for_bytes_are_unknown() -> None:
    """A common print of KiB names no unit; no Go program has 9,548 bytes from the OS."""
    text = (
        "2021/03/04 10:00:00 Alloc = 108 TotalAlloc = 110  Just Freed = 2 Sys = 9548 NumGC = 0\n"
        "2021/03/04 10:00:01 Alloc = 41203 TotalAlloc = 82500  Just Freed = 1 Sys = 91002 NumGC = 6\n"
    )
    run = read_text(text)
    sizes = run.memstats.select("alloc_bytes", "total_alloc_bytes", "sys_bytes")
    assert sizes.null_count().row(0) == (2, 2, 2)
    assert run.memstats["num_gc"].to_list() == [0, 6]
    assert run.report().analysis.tables["memstats"]["sys_bytes"].null_count() == 2


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("GC took 36 % of the CPU", 0.36),
        ("GOMEMLIMIT: GC took 36 % of the CPU for 3.6 s.", None),
        ("GC uses 12% of CPU in the last minute", None),
        ("The limit is too low for the live heap: GC takes 56 % of the CPU.", None),
        ("Since its start, GC has taken 12.0 % of the CPU, which is high.", None),
    ],
)
def test_a_share_of_the_cpu_with_a_time_is_not_since_the_start(
    text: str, share: float | None
) -> None:
    rows = log_messages.read([Message(1, text)])
    assert [row.get("gc_cpu_fraction") for row in rows] == ([] if share is None else [share])


QUANTILES = "[12.1µs 88.2µs 150.3µs 320.4µs 4.2ms]"


@pytest.mark.parametrize(
    "text",
    [
        f"NumGC:512 PauseTotal:153.2ms Pause:[] PauseEnd:[] PauseQuantiles:{QUANTILES}",
        f"num_gc=512 pause_total=153.2ms pause_quantiles={QUANTILES}",
        f"NumGC: 512\nPauseTotal: 153.2ms\nPauseQuantiles: {QUANTILES}",
        '{"NumGC":512,"PauseTotal":153200000,"Pause":null,'
        '"PauseQuantiles":[12100,88200,150300,320400,4200000]}',
    ],
)
def test_quantiles_of_pauses_are_no_pauses(text: str) -> None:
    row = read_text(text).memstats.row(0, named=True)
    known = [row[name] for name in ("num_gc", "pause_min_s", "pause_p50_s", "pause_max_s")]
    assert known == [512, 12.1e-6, 150.3e-6, 4.2e-3]
    assert row["pauses"] is row["pause_p90_s"] is None


def test_what_go_spew_prints_of_gcstats_has_a_type_with_a_package() -> None:
    text = "NumGC: (int64) 512,\n PauseTotal: (time.Duration) 153.2ms,\n"
    row = read_text(text).memstats.row(0, named=True)
    assert (row["num_gc"], row["pause_total_ns"]) == (512, 153200000)


@pytest.mark.parametrize("sign", [", ", ","])
def test_a_comma_may_stand_between_a_qualified_name_and_its_value(sign: str) -> None:
    fields = {"HeapAlloc": 100 * MIB, "HeapSys": 200 * MIB, "NumGC": 7}
    text = "\n".join(f"runtime.MemStats.{name}{sign}{value}" for name, value in fields.items())
    row = read_text(text).memstats.row(0, named=True)
    assert (row["heap_alloc_bytes"], row["heap_sys_bytes"], row["num_gc"]) == tuple(
        fields.values()
    )


@pytest.mark.parametrize("unit", ["meg", "megs", "Megabytes", "M"])
def test_units_may_be_words(unit: str) -> None:
    row = read_text(f"HeapAlloc: 700 {unit}\nHeapSys: 1,234K\n").memstats.row(0, named=True)
    assert (row["heap_alloc_bytes"], row["heap_sys_bytes"]) == (700 * MIB, 1234 << 10)


@pytest.mark.parametrize("cut", [0, 40])
def test_what_beats_print_is_read_though_its_line_was_cut_off(cut: int) -> None:
    line = (
        'Non-zero metrics in the last 30s {{"monitoring": {{"beat":{{"memstats":'
        '{{"gc_next":7296944,"memory_alloc":4251912,"memory_total":{},"rss":{}}},'
        '"runtime":{{"goroutines":15}}}},"libbeat":{{"config":{{}}}}}}}}'
    )
    texts = [line.format(36722840592, 43401216), line.format(36752840592, -733184)]
    run = read_text("\n".join(text[: len(text) - cut] for text in texts) + "\n")
    assert run.memstats["total_alloc_bytes"].to_list() == [36722840592, 36752840592]
    assert run.memstats["rss_bytes"].to_list() == [43401216, None]


def test_sizes_of_objects_on_one_line_are_no_second_dump() -> None:
    (row,) = read_text(
        "{\n  Alloc: 2156783744,\n  BySize: [{Frees: 0, Mallocs: 0, Size: 0}, {Frees: 12}],\n"
        "  Frees: 8923345012,\n  HeapSys: 4224360448,\n  Mallocs: 9923345012\n}\n"
    ).memstats.rows(named=True)
    assert (row["frees"], row["mallocs"]) == (8923345012, 9923345012)


def test_the_count_of_cycles_may_be_two_words() -> None:
    row = read_text("heap alloc | 120 MB\nnext gc    | 200 MB\nnum gc     | 41\n").memstats
    assert (row["next_gc_bytes"][0], row["num_gc"][0]) == (200 * MIB, 41)


def test_lines_of_elasticsearch_have_their_time() -> None:
    line = (
        '{{"@timestamp":"2026-01-01T00:0{0}:00Z",'
        '"golang":{{"memstats":{{"heap_alloc":3,"heap_sys":9,"num_gc":{0}}}}}}}\n'
    )
    run = read_text("".join(line.format(n) for n in range(1, 4)))
    assert run.summary().gc_per_s == pytest.approx(1 / 60)


def test_idle_heap_that_is_known_is_not_said_to_be_missing() -> None:
    run = read_text("Alloc=1.2GiB Sys=3.1GiB HeapIdle=1.5GiB HeapReleased=0.2GiB NumGC=918")
    assert "HeapIdle" not in headline.verdict(run.report()).sentence


@pytest.mark.parametrize("name", ["pid", "pod"])
def test_records_name_their_process(name: str) -> None:
    """Lines of two processes alternate: without their names, each would be another process."""
    of_each = {"pid": (11, 12), "pod": ("api-1", "api-2")}[name]
    lines = [
        json.dumps(
            {
                "time": f"2026-11-09T10:0{minute}:00Z",
                name: of,
                "Alloc": 20 << 20,
                "TotalAlloc": (minute + 1) * 300 * faster << 20,
                "NumGC": 12 * (minute + 1) * faster,
                "PauseTotalNs": 10**6 * (minute + 1) * faster,
            }
        )
        for minute in range(3)
        for of, faster in zip(of_each, (1, 8), strict=True)
    ]
    run = read_text("\n".join(lines))
    assert run.memstats["process"].to_list() == [0, 1] * 3
    verdict = run.report().verdict
    assert verdict is not None
    unknown = "(its CPU time between the dumps is unknown)"
    assert f"1.60 times a second {unknown} in process 1" in verdict.sentence


@pytest.mark.parametrize(
    ("printed", "share"),
    [("0.0318", 0.0318), ("0.32", None), ("3.18", None), ("3.18%", 0.0318)],
)
def test_a_share_of_the_cpu_without_a_unit_needs_the_decimals_of_a_fraction(
    printed: str, share: float | None
) -> None:
    line = "mem: heapAlloc=6MB heapSys=27MB numGC={} gcCPU={}"
    run = read_text("\n".join(line.format(number, printed) for number in (3, 4)))
    assert run.memstats["gc_cpu_fraction"].to_list() == [share, share]


def test_a_total_of_allocation_is_as_exact_as_its_text() -> None:
    line = "[10:0{}:00] Alloc: 45.2 MB, TotalAlloc: {} GB, Sys: 91.0 MB, NumGC: {}"
    run = read_text("\n".join([line.format(0, "1.2", 61), line.format(5, "5.2", 88)]) + "\n")
    assert "4.0 GiB in total" in run.to_markdown()
