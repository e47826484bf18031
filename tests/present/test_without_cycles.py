"""Inputs without GC cycles: what they show, and what to add."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.cli import main
from gctrace_analyzer.present.html import report_page
from gctrace_analyzer.present.sections import evidence, findings, headline
from gctrace_analyzer.present.sections.evidence import figures_of_deaths
from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.present.sections.without_cycles import no_verdict
from gctrace_analyzer.present.text import plain
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS, SAMPLES
from tests.helpers.lines import LINES
from tests.helpers.logs import records

if TYPE_CHECKING:
    from pathlib import Path

WILD = CORPUS / "wild"


@pytest.mark.parametrize(
    ("name", "shows", "to_add"),
    [
        (
            "oom-dmesg-relative-delta-time",
            "The OOM killer ran while prometheus asked for memory (",
            "`journalctl -k`",
        ),
        ("oom-prometheus8533-task-table", "The kernel listed 6 tasks", "`journalctl -k`"),
    ],
)
def test_parts_of_a_kill_say_what_is_missing(name: str, shows: str, to_add: str) -> None:
    found = headline.verdict(gca.read(WILD / f"{name}.log").report())
    assert found.level == "none"
    assert found.sentence.startswith(shows)
    assert to_add in found.action


@pytest.mark.parametrize(
    ("name", "unit", "ended"),
    [
        ("wild/oom-prometheus7987-systemd", "prometheus", "was killed by SIGKILL"),
        (
            "written/k14-systemd-137-na-d",
            "ledger",
            "ended with exit code 137 (SIGKILL to it, or",
        ),
        ("written/k12-systemd-watchdog-b", "sensord", "was killed by SIGABRT after it did not"),
    ],
)
def test_the_end_of_a_unit_alone_proves_no_lack_of_memory(
    name: str, unit: str, ended: str
) -> None:
    found = headline.verdict(gca.read(CORPUS / f"{name}.log").report())
    assert found.sentence.startswith(f"The main process of the unit {unit}.service {ended}")
    assert "nothing in the input proves that memory was the reason" in found.sentence


@pytest.mark.parametrize(
    "text",
    [
        "memory.limit_in_bytes 536870912\nmemory.oom_control\noom_kill_disable 1\nunder_oom 1\n",
        '[{"Id": "3f2a9d1c5e7b", "Name": "/api", "State": {"Status": "running", "OOMKilled": true,'
        '"ExitCode": 0}, "HostConfig": {"Memory": 536870912, "OomKillDisable": true}}]',
    ],
)
def test_a_group_without_the_oom_killer_waits(text: str) -> None:
    found = headline.verdict(read_text(text).report())
    assert "reached its memory limit of 512 MiB with its OOM killer off" in found.sentence
    assert "turn its OOM killer on" in found.action


def test_the_buffers_of_a_program_are_a_sentence() -> None:
    found = headline.verdict(gca.read(SAMPLES / "buffers-go1.16.csv").report())
    assert found.sentence.startswith(
        "The memory in the program's own buffers rose from 20 MiB to 200 MiB."
    )


def test_a_few_sizes_of_memory_say_what_to_record() -> None:
    log = CORPUS / "inputs" / "memstats" / "printmemusage-go126.txt"
    found = headline.verdict(gca.read(log).report())
    assert (
        "The heap allocated rose from 25 MiB to 233 MiB, and was 213 MiB at the end; the runtime "
        "obtained 272 MiB from the OS." in found.sentence
    )
    assert "To see what holds the heap, take a heap profile" in found.action.split("\n")[-1]


def test_dumps_within_a_cycle_are_no_change() -> None:
    def said(*sizes: int) -> str:
        text = "".join(f"HeapInuse = {mib << 20}\nHeapSys = {1 << 28}\n" for mib in sizes)
        return headline.verdict(read_text(text).report()).sentence

    assert said(60, 110, 90).startswith("The heap in use was 110 MiB at most in the dumps.")
    assert said(110, 20).startswith("The heap in use fell from 110 MiB to 20 MiB.")
    assert said(0, 30, 0).startswith("The heap in use was 30 MiB at most in the dumps.")
    assert said(10, 90, 70).startswith(
        "The heap in use rose from 10 MiB to 90 MiB, and was 70 MiB at the end."
    )


@pytest.mark.parametrize(
    "rest", ["idle: {} MB", "released: {} MB", "idle: {} MB released: 0 MB"]
)
@pytest.mark.parametrize(("more", "of"), [(0, "heap_sys"), (1, "heap_sys"), (40, "sys")])
def test_a_sum_that_leaves_no_room_for_the_rest_is_that_of_the_heap(
    rest: str, more: int, of: str
) -> None:
    lines = ((1526, 73), (4577, 1629))
    text = "".join(
        f"sys: {use + other + more} MB alloc: {use - 1} MB {rest.format(other)} inuse: {use} MB\n"
        for use, other in lines
    )
    dumps = read_text(text).analysis.tables["memstats"]
    given = [name for name in ("heap_sys", "sys") if dumps[f"{name}_bytes"].count()]
    assert given == [of]


def test_a_heap_in_use_that_is_not_given_is_not_the_allocated_heap() -> None:
    table = evidence.memory(read_text("Alloc=5242880 Sys=73400320 NumGC=8").report())
    assert table is not None
    assert table.head[2:4] == ("heap objects", "all from OS"), "what is unknown has no column"
    assert table.rows[0][2:4] == ("5 MiB", "70 MiB")


def test_the_page_of_a_kill_has_its_figures_once() -> None:
    report = gca.read(WILD / "seed-docker-memstats-oneline.log").report()
    figures = {each.label: (each.value, each.note) for each in figures_of_deaths(report)}
    assert figures == {
        "OOM kills": ("1", "test"),
        "Resident at the kill": ("7,329 MiB", "RSS"),
        "Memory limit": ("none reached", "the host ran out of memory"),
        "Heap allocated": ("6,789 MiB", "last MemStats dump"),
    }
    text = report_page.dumps(report).replace("\N{NO-BREAK SPACE}", " ")
    assert 'href="#deaths"' in text
    assert 'id="GC039"' not in text
    assert "with 6,773 to 6,789 MiB of heap allocated, and does not say which" in text


def test_kills_of_unknown_limits_say_so() -> None:
    report = gca.read(WILD / "oom-go-service-gomemlimit-192mib.log").report()
    figures = {each.label: (each.value, each.note) for each in figures_of_deaths(report)}
    assert figures["Memory limit"] == ("unknown", "add it to the input")
    assert figures["Resident at the kill"] == (
        "239 MiB",
        "RSS (without file pages); the smallest was 237 MiB",
    )
    known = gca.read(WILD / "k8s-describe-pod-oomkilled-restart230.log").report()
    assert {"Memory limit": "2,048 MiB"}.items() <= {
        each.label: each.value for each in figures_of_deaths(known)
    }.items()


def test_the_terminal_says_that_an_oom_killer_ran_and_where() -> None:
    log = (
        "api invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
        "memory: usage 1048576kB, limit 1048576kB, failcnt 3\n"
    )
    text = str(gca.read(io.BytesIO(log.encode())).summary())
    said = (
        "The OOM killer ran while api asked for memory (<stream>:1), because a container or "
        "unit reached its memory limit, 1,024 MiB; the input does not show what it killed."
    )
    assert said in " ".join(text.split())
    assert "journalctl -k" in text
    assert max(map(len, text.splitlines())) <= 80


def test_dumps_that_count_nothing_show_their_goals_and_what_is_missing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = [f"2026-11-20T10:00:{15 * at:02}Z,41943040,{(80 + at) << 20},150" for at in range(3)]
    path = tmp_path / "dumps.csv"
    path.write_text("\n".join(["time,heap_alloc,next_gc,GOGC", *rows]) + "\n")
    shown = {}
    for words in ([], ["recommend"], ["whatif", "--gogc", "200"]):
        assert main([*words, str(path)]) == 0
        shown["".join(words[:1])] = " ".join(capsys.readouterr().out.split())
    assert "GOGC 150 (metrics)" in shown[""]
    assert "The heap goal was 80 to 82 MiB within 30 s." in shown[""]
    assert all("record NumGC and PauseTotalNs too" in text for text in shown.values())
    why = "the input does not show what GC costs now."
    assert f"No recommendation: {why}" in shown["recommend"]
    assert f"No prediction: {why}" in shown["whatif"]
    assert "GOGC=200" not in shown["whatif"]


def test_benchmarks_without_gctrace_are_for_comparing() -> None:
    said = str(read_text("BenchmarkSum-8   1000   1234 ns/op\nPASS\n").summary())
    assert "1 run of benchmarks, and no gctrace" in said
    assert "compare base.log head.log" in " ".join(said.split())


@pytest.mark.parametrize(
    ("text", "shows"),
    [
        (
            "scvg1: inuse: 12, idle: 340, sys: 352, released: 330, consumed: 22 (MB)\n",
            "of 352 MiB from the OS, 10 MiB are idle and kept, and 330 MiB are returned.",
        ),
        (
            "scav 1404 KiB work (bg), 0 KiB work (eager), 20480 KiB now, 12% util\n",
            "20 MiB of the heap are returned to the OS",
        ),
        (
            "    State:          Running\n    Last State:     Terminated\n"
            "      Reason:       Error\n      Exit Code:    2\n    Restart Count:  5\n",
            "ended with exit code 2 (in Go, that of a panic, a fatal error or a wrong flag), not by",
        ),
    ],
)
def test_the_scavenger_alone_and_other_ends_are_said(text: str, shows: str) -> None:
    found = headline.verdict(read_text(text).report())
    assert shows in found.sentence
    assert "GODEBUG=gctrace=1" in found.action


def test_memory_that_was_returned_is_named() -> None:
    text = (
        "go_memstats_heap_alloc_bytes 74448896\n"
        "go_memstats_heap_inuse_bytes 105906176\n"
        "go_memstats_heap_released_bytes 842006528\n"
        "go_memstats_heap_sys_bytes 968884224\n"
        "go_memstats_sys_bytes 1008730112\n"
    )
    found = headline.verdict(read_text(text).report())
    assert (
        "the runtime obtained 962 MiB from the OS and returned 803 MiB of it." in found.sentence
    )


DESCRIBED = """Containers:
  simmemleak:
    Container ID:  docker://4cca
    Image:         saadali/simmemleak
    State:         {state}
    Ready:         False
    Restart Count: 5
    Limits:
      memory:  50Mi
"""


def test_restarts_of_an_unknown_end_are_said() -> None:
    text = DESCRIBED.format(state="Running\n      Started:   Tue, 01 Sep 2020 14:12:18 +0000")
    found = headline.verdict(read_text(text).report())
    assert found.sentence == (
        "The container simmemleak was restarted 5 times; the input does not say why."
    )
    assert found.action.startswith("Read what it printed last")


def test_a_kill_soon_after_the_start_is_no_leak() -> None:
    ended = (
        "Terminated\n      Reason:    OOMKilled\n      Exit Code: 137\n"
        "      Started:   Tue, 01 Sep 2020 14:12:18 +0000\n"
        "      Finished:  Tue, 01 Sep 2020 14:{}:44 +0000"
    )
    soon, late = (
        " ".join(
            plain(
                document(read_text(DESCRIBED.format(state=ended.format(minute))).report())
            ).split()
        )
        for minute in (12, 49)
    )
    assert "14:12:44 UTC, 26 s after its start." in soon
    assert "14:49:44 UTC, 37m 26s after its start." in late
    assert "a leak" not in late


@pytest.mark.parametrize(
    ("kib", "said"),
    [
        (
            40960,
            "obtained 30 MiB from the OS; 40 MiB were resident, at least 10 MiB of it",
        ),
        (20480, "obtained 30 MiB from the OS; 20 MiB were resident."),
        (4 << 20, "obtained 30 MiB from the OS; 4,096 MiB were resident."),
    ],
)
def test_resident_memory_is_said_once(kib: int, said: str) -> None:
    sizes = {"HeapAlloc": 10 << 20, "HeapInuse": 12 << 20, "HeapSys": 20 << 20, "Sys": 30 << 20}
    dump = "".join(f"{name} = {size}\n" for name, size in sizes.items())
    sentence = headline.verdict(read_text(f"{dump}VmRSS: {kib} kB\n").report()).sentence
    assert said in sentence
    assert sentence.count("were resident") == 1


def test_memory_that_was_returned_is_said_next_to_what_is_resident() -> None:
    dump = f"HeapInuse = {10 << 20}\nHeapSys = {200 << 20}\nHeapReleased = {150 << 20}\n"
    sentence = headline.verdict(read_text(f"{dump}VmRSS: 40960 kB\n").report()).sentence
    assert "150 MiB were returned to the OS; 40 MiB were resident." in sentence


@pytest.mark.parametrize(
    "second",
    ["2024-05-01T10:00:30Z ", ""],
)
def test_several_dumps_without_a_cycle_between_them_say_what_is_missing(second: str) -> None:
    first = "2024-05-01T10:00:00Z " if second else ""
    dump = "Alloc = 9 MiB TotalAlloc = 30 MiB Sys = 48 MiB NumGC = 7\n"
    text, _ = no_verdict(read_text(f"{first}{dump}{second}{dump}").report())
    assert "Only dumps with times, and a cycle between them, show what GC costs now." in text


def test_the_maximum_of_one_dump_and_the_rest_of_another_are_no_sum() -> None:
    dumps = "Alloc = 9 MiB Sys = 15 MiB NumGC = 3\nAlloc = 120 MiB Sys = 135 MiB NumGC = 3\nAlloc = 0 MiB Sys = 135 MiB NumGC = 4\n"
    text, _ = no_verdict(read_text(dumps).report())
    assert "to 120 MiB, and was under 1 MiB at the end; the runtime obtained 135 MiB" in text
    assert "other" not in text


@pytest.mark.parametrize(("name", "is_go"), [("java", False), ("minio", True)])
def test_what_is_not_go_gets_no_advice_for_go(name: str, is_go: bool) -> None:
    row = "root {} 0.8 2.1 9979544 {} ? Sl Oct06 0:24 /usr/bin/{} -a\n"
    _, advice = no_verdict(
        read_text(row.format(6, 712188, name) + row.format(18, 3544, "bash")).report()
    )
    assert ("GODEBUG" in advice) is is_go
    assert (f"Limit the memory of {name}" in advice) is not is_go


def test_maxima_are_those_of_all_dumps() -> None:
    dump = "{} Alloc = {} MiB HeapInuse = {} MiB Sys = 900 MiB NumGC = {}\n"
    text = dump.format("m=+1.5", 800, 810, 3) + dump.format("m=+9.5", 500, 510, 4)
    table = evidence.memory(read_text(text).report())
    assert table is not None
    assert {"800 MiB", "810 MiB"} <= set(table.rows[0])


def test_a_program_of_a_time_before_memory_limits_is_not_advised_to_set_one() -> None:
    line = (
        "I{} 18:50:53.961613 105 server/status/runtime.go:223  [n2] runtime stats: 1.4 GiB RSS, "
        "139 goroutines, 802 MiB/209 MiB/1.1 GiB GO alloc/idle/total, 127 MiB/156 MiB CGO "
        "alloc/total, 40.41cgo/sec, 0.27/0.11 %(u/s)time, 0.00 %gc (0x)\n"
    )
    assert "GOMEMLIMIT, debug" not in plain(document(read_text(line.format(170923)).report()))
    later = plain(document(read_text(line.format(250923)).report()))
    assert "GOMEMLIMIT, debug" in " ".join(later.split())


def test_the_time_that_a_log_prints_is_that_of_what_happened() -> None:
    at = "Mar 10 21:04:02"
    run = read_text(
        f"{at} h kernel: Out of memory: Killed process 7 (api) total-vm:9kB, anon-rss:8kB\n"
    )
    (problem,) = findings.problems(run.report())
    assert problem.when == at


CRASH = "panic: runtime error: index out of range [7]\n\ngoroutine 1 [running]:\nmain.main()\n"


def test_a_crash_comes_before_what_gc_cost() -> None:
    log = "".join(f"{line}\n" for line in records(8))
    report = read_text(f"{log}{CRASH}").report()
    shown = headline.verdict(report)
    assert shown.sentence.startswith("The program crashed with `panic: runtime error")
    assert "in the traceback after it" in shown.action
    assert plain(document(report), everything=False).count("The program crashed") == 1


@pytest.mark.parametrize(
    ("files", "used"),
    [
        (
            "$ cat memory.max_usage_in_bytes\n501346304\n$ cat memory.max_usage_in_bytes\n"
            "524292096\n$ cat memory.limit_in_bytes\n524288000\n$ cat memory.failcnt\n18231\n",
            "used 500 MiB of its 500 MiB (100 %): it has reached its limit, and hit",
        ),
        (
            "memory.current 501346304\nmemory.max 524288000\nmemory.peak 524292096\n"
            "memory.failcnt 18231\n",
            "used 478 MiB of its 500 MiB (95.6 %): 21.9 MiB are left, and hit",
        ),
    ],
)
def test_the_files_of_a_control_group_are_read_next_to_metrics(files: str, used: str) -> None:
    metrics = "go_memstats_heap_alloc_bytes 1.2e+08\ngo_memstats_sys_bytes 2.01e+08\n"
    run = read_text(f"{files}Then /metrics:\n{metrics}process_resident_memory_bytes 2.3e+08\n")
    said = " ".join(str(run.summary()).split())
    assert f"Its control group {used}" in said
    assert ("It used at most 500 MiB (100 %)." in said) == ("current" in files)
    assert "hit that 18,231 times" in said
    assert "were resident" in said


@pytest.mark.parametrize(("last", "said"), [(240, True), (150, False), (40, False)])
def test_memory_that_rises_from_dump_to_dump_is_named(last: int, said: bool) -> None:
    sizes = ((100, 4), ((100 + last) // 2, 9), (last, 13))
    text = "".join(
        f"2026/11/28 10:00:{10 * n:02} Alloc = {alloc} MiB\tSys = 300 MiB\tNumGC = {cycles}\n"
        for n, (alloc, cycles) in enumerate(sizes)
    )
    sentence = headline.verdict(read_text(text).report()).sentence
    text = f"Within 20 s, the heap allocated rose from 100 MiB to {last} MiB."
    assert (text in sentence) is said


TOP = "POD    NAME   CPU(cores)   MEMORY(bytes)\napi-1  api    250m         498Mi\napi-1  proxy  10m          58Mi\n"


def test_kubectl_top_stands_next_to_the_limit_of_the_same_container() -> None:
    assert "The container api used 498 MiB." in str(read_text(TOP).summary())
    described = DESCRIBED.format(state="Running").replace("simmemleak", "api")
    said = " ".join(str(read_text(f"{TOP}\nName: api-1\n{described}").summary()).split())
    assert "The container api used 498 MiB of its 50 MiB" in said
    killed = "Terminated\n      Reason: OOMKilled\n      Exit Code: 137"
    described = DESCRIBED.format(state=killed).replace("simmemleak", "api")
    said = " ".join(str(read_text(f"{TOP}\nName: api-1\n{described}").summary()).split())
    assert "When inspected, it used 498 MiB (996 % of the limit)." in said


def test_what_a_dyno_uses_has_its_swap() -> None:
    line = "sample#memory_total=721.43MB sample#memory_rss=511.86MB sample#memory_swap=209.35MB"
    said = str(read_text(f"source=web.1 {line} sample#memory_quota=512.00MB\n").summary())
    assert "used 721 MiB of its 512 MiB (141 %), 209 MiB of it swapped out" in " ".join(
        said.split()
    )


def test_one_size_of_the_heap_is_enough_for_metrics() -> None:
    name, mib = "go_memstats_heap_inuse_bytes", 1 << 20
    text = "".join(f'{name}{{instance="{n}:80"}} {n * mib}\n' for n in (46, 49))
    rows = read_text(text).memory()
    assert [(row.needed_is, row.needed_max_mib) for row in rows] == [
        ("heap in use", 46.0),
        ("heap in use", 49.0),
    ]


def _dumps(sizes: list[int], cycles: list[int]) -> str:
    return "".join(
        f"2026/11/29 10:00:0{at} Alloc = {size} MiB TotalAlloc = {size} MiB NumGC = {gcs}\n"
        for at, (size, gcs) in enumerate(zip(sizes, cycles, strict=True))
    )


@pytest.mark.parametrize(
    ("sizes", "cycles", "is_said"),
    [
        ([3, 20, 40, 60, 80], [0, 2, 3, 4, 5], True),
        ([3, 20, 40, 80, 80], [0, 2, 3, 4, 5], False),  # It stopped.
        ([3, 60, 40, 60, 80], [0, 2, 3, 4, 5], False),  # A cycle freed something.
        ([3, 20, 40, 60, 80], [0, 0, 0, 1, 2], False),  # Too few cycles.
    ],
)
def test_a_heap_that_never_falls_over_cycles_is_said_of_short_inputs_too(
    sizes: list[int], cycles: list[int], *, is_said: bool
) -> None:
    found = headline.verdict(read_text(_dumps(sizes, cycles)).report())
    # Between two dumps, it may have fallen.
    assert ("no lower in any of 5 dumps than in the one before" in found.sentence) == is_said
    assert ("compare two heap profiles" in found.action) == is_said


def test_a_scrape_of_a_program_that_hardly_uses_a_cpu_proves_that_gc_costs_little() -> None:
    scrape = (
        "go_gc_duration_seconds_sum 0.3\ngo_gc_duration_seconds_count 4811\n"
        "go_memstats_alloc_bytes_total 5e10\nprocess_start_time_seconds 1764000000\n"
        "go_memstats_last_gc_time_seconds 1764250000\n"
    )
    little = headline.verdict(read_text(f"{scrape}process_cpu_seconds_total 1821\n").report())
    assert "used 0.73 % of one CPU, so GC costs little" in little.sentence
    assert "second scrape" not in little.sentence
    assert not little.action
    much = headline.verdict(read_text(f"{scrape}process_cpu_seconds_total 91021\n").report())
    assert "costs little" not in much.sentence
    assert much.action


@pytest.mark.parametrize(
    "text",
    [
        '{"NumGC":0,"NextGC":18446744073709551615,"HeapAlloc":50000000,"Sys":60000000}\n',
        '{"NumGC":0,"NextGC":18446744073709551615,"HeapAlloc":50000000,"Sys":60000000}\n' * 2,
        "go_gc_duration_seconds_count 0\ngo_memstats_next_gc_bytes 1.8446744073709552e+19\n"
        "go_memstats_heap_alloc_bytes 5e7\ngo_memstats_sys_bytes 6e7\n",
    ],
)
def test_a_goal_of_64_bits_is_that_of_gogc_off_and_no_damage(text: str) -> None:
    run = read_text(text)
    assert run.settings.value("gogc") == "off"
    assert not len(run.table("rejected"))
    assert headline.verdict(run.report()).action.startswith("GOGC is off")


def test_a_dump_before_the_first_cycle_has_no_date_of_1970() -> None:
    run = read_text('{"NumGC":0,"LastGC":0,"HeapAlloc":68816,"Sys":7821576,"NextGC":4194304}\n')
    assert run.settings.value("go_version") is None
    assert "of the CPU" not in headline.verdict(run.report()).sentence


def test_one_of_two_programs_without_a_cycle_does_not_hide_the_other() -> None:
    scrape = "".join(
        f'go_memstats_heap_inuse_bytes{{pod="{pod}"}} 1e8\n'
        f'go_gc_duration_seconds_count{{pod="{pod}"}} {cycles}\n'
        f'go_gc_duration_seconds_sum{{pod="{pod}"}} {cycles / 100}\n'
        for pod, cycles in (("a", 0), ("b", 40))
    )
    found = headline.verdict(read_text(scrape).report())
    assert (
        "(b) was stopped longest: 40 GC cycles have stopped the program for 400 ms"
        in found.sentence
    )
    assert "under load" not in found.action


def test_a_heap_that_rises_in_every_dump_is_not_healthy() -> None:
    rows = "".join(
        f"2024-05-05T10:{n}0:00Z,{100 * n << 20},{n * 50},{n * 10**6}\n" for n in range(1, 5)
    )
    found = headline.verdict(read_text(f"time,HeapAlloc,NumGC,PauseTotalNs\n{rows}").report())
    assert found.level == "info"
    assert "rose from 100 MiB to 400 MiB" in found.sentence
    assert "No problem" not in found.sentence


@pytest.mark.parametrize(("forced", "is_said"), [(299_000, True), (90_000, False), (0, False)])
def test_cycles_that_the_program_forces_obey_no_setting(forced: int, *, is_said: bool) -> None:
    dump = (
        '{"memstats": {"NumGC": 300000, "NumForcedGC": %d, "GCCPUFraction": 0.12, "Sys": 142606336,'
        ' "HeapAlloc": 52428800, "HeapSys": 125829120, "PauseTotalNs": 900000000000}}'
    )
    action = headline.verdict(read_text(dump % forced).report()).action
    assert ("Remove most calls of `runtime.GC`" in action) == is_said
    assert ("gctrace=1" in action) != is_said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "heroku[web.1]: Process running mem=512M(100.0%)\n",
            "fit and the program was built with Go 1.19 or later. Otherwise",
        ),
        (
            "2026-03-14T09:21:07Z heroku[web.1]: Process running mem=512M(100.0%)\n",
            "fit and the program was built with Go 1.19 or later. Otherwise",
        ),
        (
            "$ cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.peak\n536870912\n536870912\n"
            "$ cat /sys/fs/cgroup/memory.events\nlow 0\nhigh 0\nmax 18221\noom 0\noom_kill 0\n",
            "Read `memory.stat` first: page cache",
        ),
    ],
)
def test_a_container_at_its_limit_gets_advice_with_its_conditions(
    text: str, words: str
) -> None:
    action = headline.verdict(read_text(text).report()).action
    assert words in action
    assert "if its live heap and the memory outside Go fit" in action


_GROUP = (
    "$ cd /sys/fs/cgroup/system.slice/api.service; cat memory.max memory.peak memory.events memory.stat"
    "\n536870912\n536870912\nlow 0\nhigh 0\nmax 1200\noom 0\noom_kill {}\noom_group_kill 0\n"
    "anon {}\nfile {}\nkernel 12582912\nshmem 0\n"
)


@pytest.mark.parametrize(
    ("kills", "anon", "said"),
    [
        (0, 104857600, "Only 100 MiB of it are anonymous memory"),
        (0, 419430400, "set GOMEMLIMIT=460MiB"),
        # The memory of the victim is not in it any more.
        (1, 104857600, "set GOMEMLIMIT=460MiB"),
    ],
)
def test_memory_stat_in_the_input_is_not_asked_for(kills: int, anon: int, said: str) -> None:
    text = _GROUP.format(kills, anon, 503316480 - anon)
    shown = " ".join(str(read_text(text).summary()).split())
    assert said in shown
    assert "Read `memory.stat`" not in shown
    assert "100 MiB resident" not in shown


def test_a_recommendation_for_a_dump_asks_first_for_the_limit_of_its_container() -> None:
    """A second dump shows what GC costs, and a heap profile gives no setting."""
    dump = "Alloc=104857600 HeapInuse=115343360 Sys=150000000 NextGC=125829120 NumGC=8"
    run = read_text(f"{dump} HeapSys=130000000\n")
    said = str(run.recommend())
    assert said.index("add the memory limit of its container") < said.index(
        "To see what GC costs"
    )
    assert "heap profile" not in said


INVOKED = (
    "START RequestId: 6f747bd1 Version: $LATEST\n"
    "RequestId: 6f747bd1 Error: fork/exec /var/task/bootstrap: exec format error\n"
    "Runtime.InvalidEntrypoint\n"
    "REPORT RequestId: 6f747bd1\tDuration: 11.26 ms\tMemory Size: 128 MB\tMax Memory Used: 3 MB\n"
)
TYPED = (
    "REPORT RequestId: 6f747bd1\tMemory Size: 128 MB\tMax Memory Used: 3 MB\tStatus: error\t"
    "Error Type: Runtime.InvalidEntrypoint\n"
)
CREATED = (
    '[{"Name":"/api","State":{"Status":"created","OOMKilled":false,"ExitCode":127,"Error":"OCI '
    'runtime create failed: exec: \\"/api\\": stat /api: no such file or directory"}}]'
)
NOT_CREATED = (
    "Containers:\n  api:\n    State:          Waiting\n      Reason:       CrashLoopBackOff\n"
    "    Last State:     Terminated\n      Reason:       StartError\n"
    '      Message:      exec: "/api": permission denied\n      Exit Code:    128\n'
    "    Restart Count:  4\n"
)


@pytest.mark.parametrize(
    ("text", "why", "to_do"),
    [
        (INVOKED, "fork/exec /var/task/bootstrap: exec format error", "GOARCH"),
        (TYPED, "Runtime.InvalidEntrypoint", "`bootstrap`"),
        (CREATED, "no such file or directory", "path of the command"),
        (NOT_CREATED, 'exec: "/api": permission denied', "chmod +x"),
    ],
)
def test_what_kept_a_program_from_starting_comes_before_gctrace(
    text: str, why: str, to_do: str
) -> None:
    sentence, action = no_verdict(read_text(text).report())
    assert "did not start: " in sentence
    assert f"{why}." in sentence
    assert to_do in action
    assert "gctrace" not in action


WRAPPED = LINES["gc16"].replace("@0.", "@18446744073.").replace("11%", "0%")


@pytest.mark.parametrize("line", [WRAPPED, WRAPPED.rpartition(",")[0]])
def test_a_clock_that_wrapped_around_proves_no_share_of_the_cpu(line: str) -> None:
    assert "@18446744073" in line
    assert "% of the CPU" not in str(read_text(f"{line}\n").summary())
