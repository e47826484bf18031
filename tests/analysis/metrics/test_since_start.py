"""One dump is the time since its process started; what it lacks is unknown, not 0."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gctrace_analyzer.errors import GctraceError
from gctrace_analyzer.present import text
from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.testing import read_text

if TYPE_CHECKING:
    from gctrace_analyzer.run import Run

DUMP = {
    "Alloc": 200 << 20, "TotalAlloc": 9000 << 20, "Sys": 900 << 20, "HeapAlloc": 200 << 20,
    "HeapSys": 800 << 20, "HeapIdle": 560 << 20, "HeapInuse": 240 << 20,
    "HeapReleased": 500 << 20, "StackInuse": 5 << 20, "StackSys": 5 << 20,
    "OtherSys": 60 << 20, "NextGC": 400 << 20, "NumGC": 200, "NumForcedGC": 3,
    "PauseTotalNs": 3_000_000_000, "GCCPUFraction": 0.25,
}  # fmt: skip
METRICS = {
    "go_gc_duration_seconds_sum": 3.0,
    "go_gc_duration_seconds_count": 200,
    'go_gc_duration_seconds{quantile="0.5"}': 0.012,
    'go_gc_duration_seconds{quantile="1"}': 0.060,
    "go_memstats_alloc_bytes": 200 << 20,
    "go_memstats_heap_idle_bytes": 560 << 20,
    "go_memstats_heap_inuse_bytes": 240 << 20,
    "go_memstats_heap_released_bytes": 500 << 20,
    "go_memstats_heap_sys_bytes": 800 << 20,
    "go_memstats_next_gc_bytes": 400 << 20,
    "go_memstats_sys_bytes": 900 << 20,
    "go_cpu_classes_gc_total_cpu_seconds_total": 96.4,
    "go_cpu_classes_gc_mark_idle_cpu_seconds_total": 10.4,
    "go_cpu_classes_total_cpu_seconds_total": 400.2,
    "go_cpu_classes_idle_cpu_seconds_total": 160.2,
}


def lines(dump: dict[str, Any]) -> str:
    return "".join(f"{name} = {value}\n" for name, value in dump.items())


def one_line(dump: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in dump.items()) + "\n"


def as_json(dump: dict[str, Any]) -> str:
    return json.dumps({"memstats": dump})


def as_table(dump: dict[str, Any]) -> str:
    return ",".join(dump) + "\n" + ",".join(map(str, dump.values())) + "\n"


def profile(dump: dict[str, Any]) -> str:
    head = "heap profile: 1: 8 [1: 8] @ heap/1048576\n\n# runtime.MemStats\n"
    return head + "".join(f"# {name} = {value}\n" for name, value in dump.items())


def exposition(dump: dict[str, Any]) -> str:
    return "".join(f"{name} {value}\n" for name, value in dump.items())


FORMS = [
    *((form, DUMP) for form in (lines, one_line, as_json, as_table, profile)),
    (exposition, METRICS),
]


def shown(run: Run) -> str:
    return " ".join(text.plain(document(run.report())).split())


def figures(run: Run) -> dict[str, Any]:
    (memory,) = run.memory()
    summary = run.summary().to_dict()
    own = {**summary, **memory.to_dict()}
    # The name of a temporary file, and sentences.
    for name in ("source", "warnings", "advice", "estimated"):
        own.pop(name)
    return own


@pytest.mark.parametrize(("form", "dump"), FORMS)
def test_a_single_dump_shows_the_time_since_the_start(form: Any, dump: dict[str, Any]) -> None:
    run = read_text(form(dump))
    assert run.summary().window == "since-start"
    assert run.intervals["since_start"].to_list() == [True]
    assert run.summary().cycles == 200
    assert run.summary().stw_total_ms == 3000
    said = shown(run)
    assert "200 GC cycles have stopped the program for 3.0 s in all, 15.0 ms on average" in said
    assert "not what GC has cost." not in said


@pytest.mark.parametrize(("form", "dump"), FORMS)
def test_without_one_field_no_figure_is_a_wrong_one(form: Any, dump: dict[str, Any]) -> None:
    whole = figures(read_text(form(dump)))
    for name in dump:
        try:
            part = figures(
                read_text(form({key: value for key, value in dump.items() if key != name}))
            )
        except GctraceError:
            continue
        changed = {
            key: (value, whole[key])
            for key, value in part.items()
            if value is not None and value != pytest.approx(whole[key])
        }
        # These are numbers of what was counted.
        counts = {"cycles", "forced_cycles"}
        changed = {key: pair for key, pair in changed.items() if key not in counts or pair[0]}
        if part["needed_is"] != whole["needed_is"]:
            changed = {key: pair for key, pair in changed.items() if "needed" not in key}
        assert not changed, name


@pytest.mark.parametrize(
    ("near", "name"),
    [
        ("HeapRelease", "heap_released_bytes"),
        ("heap_release", "heap_released_bytes"),
        ("HeapInUse", "heap_inuse_bytes"),
        ("HeapAllocated", "heap_alloc_bytes"),
        ("HeapObject", "heap_objects"),
        ("NumGc", "num_gc"),
    ],
)
def test_near_spellings_of_a_field_are_read(near: str, name: str) -> None:
    run = read_text(f"{near} = 7340032\nSys = 90000000\nHeapSys = 80000000\n")
    assert run.memstats[name].to_list() == [7340032]


@pytest.mark.parametrize(
    ("dump", "said"),
    [
        ("HeapAlloc = 100\nNumGC = 200\nGCCPUFraction = 0.25\n", "taken 25.0 % of the CPU"),
        ("GCCPUFraction: 3.2%\nNumGC: 7\n", "taken 3.2 % of the CPU"),
        ("go_memstats_gc_cpu_fraction 0.12\n", "taken 12.0 % of the CPU"),
        ("num-gc: 300\nsys: 71.2MB (74659072 bytes)\ngc-cpu-fraction: 0.25\n", "taken 25.0 %"),
        ("heapAlloc=12.5MB numGC=5 gcCPU=0.3%\n", "taken 0.30 % of the CPU"),
        ("level=INFO mem.alloc=12582912 mem.num_gc=6 mem.sys=73400320\n", "6 GC cycles ran"),
        ("2021/03/04 10:00:00 GC uses 3.2 % of CPU\n", "taken 3.2 % of the CPU"),
        (
            "# HeapAlloc = 612368384\n# PauseNs = [41802117 39951026 44730951 40118233]\n"
            "# NumGC = 4\n",
            "a cycle stopped the program for at most 44.7 ms (median 41.0 ms, shortest 40.0 ms)",
        ),
        (
            "HeapAlloc: 612368384\nNumGC: 4\nPauseNs:\n\t41802117, 39951026,\n\t44730951,\n",
            "each of the 3 cycles in the input stopped the program for at most 44.7 ms",
        ),
        (
            "{LastGC:2021-03-04 09:59:58 +0000 UTC NumGC:3 PauseTotal:1m3.5s "
            "Pause:[1.2ms 3ms 230µs] PauseEnd:[]}\n",
            "3 GC cycles have stopped the program for 1m 03s in all, 21 s on average",
        ),
        (
            "/cpu/classes/gc/total:cpu-seconds: 96.4\n/cpu/classes/total:cpu-seconds: 400.2\n",
            "GC has taken 96.4 of all 400 CPU seconds (24.1 %), with idle marking",
        ),
        (
            "/cpu/classes/gc/total:cpu-seconds: 96.4\n/cpu/classes/total:cpu-seconds: 400.2\n"
            "/cpu/classes/idle:cpu-seconds: 160.2\n",
            "96.4 of the 240 CPU seconds that were not idle (40.2 %), with idle marking",
        ),
        (
            "/cpu/classes/gc/total:cpu-seconds: 96.4\n/cpu/classes/total:cpu-seconds: 400.2\n"
            "/cpu/classes/gc/mark/idle:cpu-seconds: 40.2\n/cpu/classes/idle:cpu-seconds: 160.2\n",
            # One base for both: what the program used without idle marking.
            "56.2 of the 200 CPU seconds that were not idle (28.1 %, pauses on all CPUs) and 40.2 on idle CPUs",
        ),
        (
            "Lookups = 205076351\nNumGC = 337\nHeapAlloc = 875885272\n"
            "PauseNs = [52186213 48743710 56446412]\n",
            "each of the 3 cycles in the input stopped the program for",
        ),
    ],
)
def test_costs_are_read_in_every_spelling(dump: str, said: str) -> None:
    assert said in shown(read_text(dump))


@pytest.mark.parametrize(
    "name", ["go_gc_pauses_seconds_sum", "go_sched_pauses_total_gc_seconds_sum"]
)
def test_the_sum_of_a_histogram_is_a_lower_bound(name: str) -> None:
    known = read_text(exposition(METRICS | {name: 2.8}))
    assert "for 3.0 s in all, 15.0 ms on average" in shown(known)
    unknown = {k: v for k, v in METRICS.items() if k != "go_gc_duration_seconds_sum"}
    run = read_text(exposition(unknown | {name: 2.8}))
    assert "for at least 2.8 s in all, at least 14.0 ms on average" in shown(run)
    assert "stw_total_ms" in run.summary().estimated


def test_a_pause_that_a_small_heap_does_not_explain_is_named() -> None:
    small = METRICS | {"go_memstats_alloc_bytes": 3 << 20, "go_gc_duration_seconds_sum": 0.6}
    small |= {'go_gc_duration_seconds{quantile="0.5"}': 0.0002}
    assert "check for a lack of CPU" in shown(read_text(exposition(small)))
    assert "check for a lack of CPU" not in shown(read_text(exposition(METRICS)))


def test_how_much_a_heap_holds_is_an_interval_if_what_was_returned_is_unknown() -> None:
    run = read_text(lines({k: v for k, v in DUMP.items() if k != "HeapReleased"}))
    assert run.memory()[0].held_mib is None
    assert "holds between 240 and 800 MiB" in shown(run)


def test_a_line_that_is_added_takes_no_answer_away() -> None:
    first = lines(DUMP)
    fraction = "taken 25.0 % of the CPU"
    assert fraction in shown(read_text(first))
    kill = "Out of memory: Killed process 7 (app) total-vm:9kB, anon-rss:4kB, file-rss:0kB\n"
    for more in (
        first,
        kill,
        "HeapAlloc = 1\nHeapSys = 2\nNumGC = 300\nGCCPUFraction = 0.25\n",
    ):
        assert fraction in shown(read_text(first + more)), more


def test_totals_do_not_add_the_time_before_the_first_dump() -> None:
    def at(second: int, cycles: int) -> str:
        times = f"2026-01-01T00:00:{second:02d}Z"
        return f"{times} NumGC={cycles} TotalAlloc={cycles << 20} HeapAlloc=9000000\n"

    run = read_text(at(10, 50) + at(20, 60))
    assert run.intervals["since_start"].to_list() == [True, False]
    assert run.intervals["gc_cycles"].to_list() == [50, 10]
    assert (run.summary().window, run.summary().cycles) == ("log", 10)


def test_two_pauses_have_no_median_beside_their_mean() -> None:
    names = {
        "_sum": 0.32e-3,
        "_count": 2,
        '{quantile="0"}': 0.03e-3,
        '{quantile="0.5"}': 0.29e-3,
    }
    names['{quantile="1"}'] = 0.29e-3
    lines = [f"go_gc_duration_seconds{name} {value}" for name, value in names.items()]
    said = " ".join(str(read_text("\n".join(lines) + "\n").summary()).split())
    assert "0.160 ms on average" in said
    assert "median" not in said


LAST_CYCLE = """\
process_start_time_seconds 1.7734e+09
go_memstats_last_gc_time_seconds {}
go_memstats_alloc_bytes_total 5.24288e+07
go_gc_duration_seconds_sum 0.002
go_gc_duration_seconds_count 20
"""


def test_a_scrape_without_its_time_has_no_rates_until_the_last_cycle_is_near_enough() -> None:
    """It is later than its last cycle by up to three minutes."""
    soon = shown(read_text(LAST_CYCLE.format(1773400005)))
    assert "/s" not in soon.partition("Inputs")[0]
    assert "20 cycles in 1d 01h, since the start" in shown(
        read_text(LAST_CYCLE.format(1773490005))
    )


def test_cpu_time_that_was_not_idle_is_not_called_used() -> None:
    """/cpu/classes/user is an overestimate: here, the process used less."""
    dump = (
        "go_cpu_classes_gc_total_cpu_seconds_total 0.0318\nprocess_cpu_seconds_total 0.27\n"
        "go_cpu_classes_gc_mark_idle_cpu_seconds_total 0.012\n"
        "go_cpu_classes_idle_cpu_seconds_total 9.49\ngo_cpu_classes_total_cpu_seconds_total 10.7\n"
    )
    assert "0.0198 of the 1.20 CPU seconds that were not idle" in shown(read_text(dump))
