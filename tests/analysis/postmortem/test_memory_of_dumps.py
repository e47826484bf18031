"""What memory statistics show about a heap."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from gctrace_analyzer.analysis.postmortem.memory_of_dumps import memories
from gctrace_analyzer.testing import read_text
from gctrace_analyzer.units import MIB
from tests.helpers.logs import logfile

if TYPE_CHECKING:
    from pathlib import Path

    from gctrace_analyzer.analysis.postmortem.memory_of_dumps import Memory


def test_the_heap_in_use_is_compared_with_the_live_heap(tmp_path: Path) -> None:
    mb = 1 << 20
    rows = [f"{375 * mb},{150 * mb},{300 * mb},{60 * mb},0,{n}" for n in range(1, 60)]
    (found,) = gca.read(logfile(tmp_path / "seed.csv", rows)).memory()
    assert (found.held_max_mib, found.needed_max_mib) == (375, 150)
    assert "375 MiB from the OS, 2.5 times the 150 MiB" in found.advice[0]
    assert any("sync.Pool" in text for text in found.advice)
    rows = [
        f"{175 * mb},{150 * mb},{160 * mb},{10 * mb},0,{20 + n // 30},{n}" for n in range(1, 60)
    ]
    (recycled,) = gca.read(logfile(tmp_path / "recycled.csv", rows)).memory()
    assert recycled.pool_hit_share == pytest.approx(1 - 1 / 58, abs=0.02)
    assert any("buffer pool works" in text for text in recycled.advice)


def dump(path: Path, header: str, *rows: tuple[float, ...]) -> Memory:
    text = "\n".join(",".join(str(int(mib * (1 << 20))) for mib in row) for row in rows)
    (found,) = gca.read(logfile(path / "dump.csv", [header, text])).memory()
    return found


def test_the_heap_in_use_is_what_is_not_idle_if_no_figure_says_so(tmp_path: Path) -> None:
    found = dump(
        tmp_path,
        "Sys,HeapSys,HeapIdle,HeapReleased,HeapAlloc",
        (300, 200, 50, 20, 140),
        (320, 250, 90, 30, 130),
    )
    assert (found.heap_sys_mib, found.heap_sys_max_mib) == (250, 250)
    assert (found.held_mib, found.held_max_mib) == (220, 220)
    assert (found.needed_mib, found.needed_max_mib) == (160, 160)
    assert found.needed_is == "heap in use"
    assert found.idle_unreleased_mib == 60
    # Without a goal, the free slots may be what the heap fills until the next cycle.
    assert found.fragmentation_mib == 0
    assert (found.sys_mib, found.off_heap_go_mib, found.alloc_mib) == (320, 70, 130)
    assert found.dumps == 2


def test_sizes_that_contradict_each_other_have_no_difference(tmp_path: Path) -> None:
    lines = ["HeapAlloc = 10485760", "HeapSys = 20971520", "HeapIdle = 41943040"]
    (memory,) = memories(gca.read(logfile(tmp_path / "a.log", lines)).memstats)
    assert (memory.needed_is, memory.needed_mib) == ("heap allocated", 10)


def test_held_but_idle_memory_is_named(tmp_path: Path) -> None:
    header = "HeapSys,HeapIdle,HeapReleased,HeapInuse,HeapAlloc,NextGC"
    found = dump(tmp_path, header, (400, 300, 0, 100, 90, 90))
    assert "had 400 MiB from the OS, 4.0 times the 100 MiB of heap in use" in found.advice[0]
    assert found.spare_mib == 300
    calm = dump(tmp_path, header, (120, 20, 10, 100, 90, 90))
    assert calm.advice == ()


def memory_of(**columns: list[float | None]) -> Memory:
    """Returns the memory of one program, from sizes in MiB and counts."""
    counts = ("num_gc", "makes", "frees", "elapsed_s")
    types = schema.polars_schema("memstats")
    given = {
        name if name in counts else f"{name}_bytes": pl.Series(
            values if name in counts else [None if v is None else v * MIB for v in values],
            dtype=pl.Float64,
        )
        for name, values in columns.items()
    }
    rows = len(next(iter(given.values())))
    frame = pl.DataFrame({name: [None] * rows for name in types} | given)
    dumps = frame.with_columns(pl.col(name).cast(kind) for name, kind in types.items())
    (found,) = memories(dumps.with_columns(source=pl.lit("dump", pl.Categorical)))
    return found


@pytest.mark.parametrize(
    ("held", "needed", "sentences"),
    [(300, 200, 0), (301, 200, 1), (128, 64, 0), (130, 65, 1), (129, 65, 0), (0, 0, 0)],
)
def test_a_heap_that_holds_much_more_than_it_needs_is_named(
    held: int, needed: int, sentences: int
) -> None:
    found = memory_of(heap_sys=[held], heap_inuse=[needed], heap_released=[0])
    assert len(found.advice) == sentences


def test_a_few_idle_mib_are_not_worth_a_line() -> None:
    """Whether or not the dump has what was returned."""
    for released in ("", " HeapReleased=0"):
        for unit, lines in (("MiB", 0), ("GiB", 1)):
            text = f"HeapAlloc=2.2{unit} HeapSys=7.2{unit} NumGC=1{released}\n"
            assert len(read_text(text).memory()[0].advice) == lines


@pytest.mark.parametrize(
    ("held", "idle", "released"), [(257, 65, 0), (256, 64, 0), (257, 66, 2)]
)
def test_idle_memory_is_what_was_not_returned(held: int, idle: int, released: int) -> None:
    sizes: dict[str, list[float | None]] = {
        "heap_sys": [held],
        "heap_idle": [idle],
        "heap_released": [released],
    }
    found = memory_of(**sizes, alloc=[held / 2], next_gc=[held / 2])
    assert found.idle_unreleased_mib == idle - released
    assert found.held_mib == held - released


@pytest.mark.parametrize(
    ("makes", "frees", "share", "advice"),
    [
        ([0, 21], None, None, "21 buffers were allocated: reuse them"),
        ([0, 20], None, None, None),
        (
            [1, 21],
            [0, 40],
            0.5,
            "50 % of the freed buffers were reused: the buffer pool works.",
        ),
        ([0, 21], [0, 40], 0.475, "21 buffers were allocated and 40 freed, 48 % of which"),
        ([0, 21], [0, 0], None, "21 buffers were allocated and 0 freed, none of which"),
        ([0, 40], [0, 20], 0.0, "40 buffers were allocated and 20 freed, none of which"),
        ([0, 20], [0, 20], 0.0, None),
        ([0, 5], [0, 10], 0.5, "50 % of the freed buffers were reused"),
        ([21], [40], None, "21 buffers were allocated and 40 freed, none of which"),
    ],
)
def test_the_pool_is_advised_to_programs_that_reuse_few_buffers(
    makes: list[float], frees: list[float] | None, share: float | None, advice: str | None
) -> None:
    columns: dict[str, Any] = {"makes": makes} | ({"frees": frees} if frees else {})
    found = memory_of(heap_sys=[1] * len(makes), **columns)
    assert found.pool_hit_share == pytest.approx(share)
    assert found.frees == (frees[-1] if frees else None)
    if advice is None:
        assert found.advice == ()
    else:
        assert found.advice[0].startswith(advice)


def test_unknown_sizes_stay_unknown() -> None:
    found = memory_of(heap_alloc=[70, None], num_gc=[5, 9], elapsed_s=[1, 2])
    assert (found.needed_mib, found.needed_max_mib, found.needed_is) == (
        70,
        70,
        "heap allocated",
    )
    assert (found.heap_sys_mib, found.held_mib, found.fragmentation_mib) == (None, None, None)
    assert (found.num_gc, found.gcs_between, found.dumps) == (9, 4, 2)
    assert memory_of(num_gc=[5]).gcs_between is None
    assert memory_of(num_gc=[5]).needed_is is None


def test_a_pool_is_what_the_program_keeps() -> None:
    found = memory_of(pool=[10, 20, 15], heap_inuse=[40, 41, 42], alloc=[30, 31, 32])
    assert (found.needed_mib, found.needed_max_mib) == (15, 20)
    assert found.needed_is == "the memory in the program's own buffers"
    assert (found.alloc_mib, found.fragmentation_mib) == (32, 0)


def test_a_dump_with_more_heap_than_was_resident_is_not_the_cause() -> None:
    kill = (
        "Memory cgroup out of memory: Killed process 4242 (leak) total-vm:1258292kB, "
        "anon-rss:258048kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0\n"
    )
    dump = "Alloc = 420 MiB\tTotalAlloc = 900 MiB\tSys = 496 MiB\tNumGC = 30\n"
    reached = read_text(f"{dump}{kill}").report().verdict
    assert reached is not None
    assert "the cause" not in reached.sentence


def test_a_dump_with_several_times_the_heap_that_the_limit_allows_is_of_another() -> None:
    kill = (
        "memory: usage 196608kB, limit 196608kB, failcnt 9\n"
        "Memory cgroup out of memory: Killed process 4242 (leak) total-vm:1258292kB, "
        "anon-rss:180000kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0\n"
    )
    dump = "Alloc = {} MiB\tTotalAlloc = 900 MiB\tSys = 796 MiB\tNumGC = 30\n{}"
    for alloc, own in ((676, False), (180, True)):
        verdict = read_text(dump.format(alloc, kill)).report().verdict
        assert verdict is not None
        assert ("last MemStats dump" in verdict.sentence) is own


@pytest.mark.parametrize(
    ("sys_mib", "advice"),
    [
        (4301, "set GOMEMLIMIT=3640MiB (90 % of what Go held at its last dump)"),
        # It grew too much since the dump.
        (2301, "set GOMEMLIMIT=4502MiB (90 % of what it had)"),
    ],
)
def test_a_limit_for_go_is_below_what_go_held(sys_mib: int, advice: str) -> None:
    dump = (
        f"2025-11-20T18:02:11Z h matcher[7712]: mem: {{HeapAlloc:2097152000 Sys:{sys_mib << 20} "
        "HeapReleased:268435456 NumGC:4412}\n"
    )
    kill = (
        "2025-11-20T18:02:40Z h kernel: Memory cgroup out of memory: Killed process 7712 "
        "(matcher) total-vm:6621340kB, anon-rss:5122304kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0\n"
    )
    verdict = read_text(dump + kill).report().verdict
    assert verdict is not None
    assert advice in verdict.action


@pytest.mark.parametrize(
    ("last_gc", "said"),
    [
        (1762852490, "Its last MemStats dump shows 80 MiB"),
        (
            1762852510,
            "is unknown: the MemStats in the input are of a process that was there after",
        ),
        (
            0,
            "The last MemStats dump, if it is from before the kill and of the same program, "
            "shows 80 MiB",
        ),
    ],
    ids=["before the kill", "after it", "without a time"],
)
def test_a_dump_of_the_process_started_after_a_kill_is_not_of_the_killed_one(
    last_gc: int, said: str
) -> None:
    state = (
        "  pricer:\n    State:          Running\n"
        "      Started:      Tue, 11 Nov 2025 09:14:52 +0000\n"
        "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n"
        "      Started:      Tue, 11 Nov 2025 08:02:10 +0000\n"
        "      Finished:     Tue, 11 Nov 2025 09:14:51 +0000\n    Restart Count:  3\n"
    )
    of_gc = f', "LastGC": {last_gc}000000000' if last_gc else ""
    dump = (
        f'{{"Alloc": 83886080, "HeapAlloc": 83886080, "Sys": 163577856, "NumGC": 14{of_gc}}}\n'
    )
    verdict = read_text(state + dump).report().verdict
    assert verdict is not None
    assert said in verdict.sentence


@pytest.mark.parametrize(("forced", "dumps", "found"), [(1, 1, 0), (0, 1, 1), (1, 2, 1)])
def test_what_is_idle_after_a_forced_gc_is_no_lasting_state(
    forced: int, dumps: int, found: int
) -> None:
    sizes = {"HeapAlloc": 10, "HeapSys": 150, "HeapIdle": 139, "HeapInuse": 11, "NextGC": 20}
    values = {name: size << 20 for name, size in sizes.items()}
    values |= {
        "PauseTotalNs": 9000,
        "Sys": 160 << 20,
        "HeapReleased": 0,
        "NumGC": 17,
        "NumForcedGC": forced,
    }
    lines = [json.dumps(values | {"NumGC": 17 + number}) for number in range(dumps)]
    run = read_text("\n".join(lines))
    findings = run.findings()["id"].to_list()
    assert findings.count("GC037") == found
