"""Programs that share one stream are separated by what their cycles show."""

from __future__ import annotations

import random
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from gctrace_analyzer.ingest import chains
from gctrace_analyzer.testing import read_text
from tests.helpers.core import needs_core, pure_python

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(
    autouse=True, params=[pytest.param("compiled", marks=needs_core), "pure Python"]
)
def implementation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs each test with and without the compiled core."""
    with pure_python() if request.param == "pure Python" else nullcontext():
        yield


def cycle(
    num: int,
    start_s: float,
    *,
    live: int = 20,
    grown: int = 100,
    procs: int = 2,
    stacks: int = 0,
    pct: int = 0,
    begin: int | None = None,
    length_ms: float = 10,
    cpu_ms: float = 1,
) -> str:
    """Returns the line of a cycle; `grown` is the effective GOGC, `begin` the heap at its start."""
    goal = live + live * grown // 100
    begin = goal - 1 if begin is None else begin
    return (
        f"gc {num} @{start_s:.3f}s {pct}%: 0.1+{length_ms}+0.1 ms clock, 0.1+1/{cpu_ms}/1+0.1 ms cpu, "
        f"{begin}->{begin + 1}->{live} MB, {goal} MB goal, {stacks} MB stacks, 0 MB globals, "
        f"{procs} P\n"
    )


def processes(*lines: str) -> list[int]:
    return read_text("".join(lines)).cycles["process"].to_list()


@pytest.mark.parametrize(("start_s", "same"), [(1.011, True), (1.009, True), (1.008, False)])
def test_a_cycle_may_begin_two_milliseconds_before_the_last_one_ends(
    start_s: float, same: bool
) -> None:
    """The cycle from 1 s takes 10.2 ms; printed times are truncated."""
    assert processes(cycle(1, 1.0), cycle(2, start_s)) == [0, 0 if same else 1]


def test_a_number_that_is_printed_twice_is_of_another_process() -> None:
    assert processes(cycle(1, 1.0), cycle(2, 2.0), cycle(2, 3.0)) == [0, 0, 1]


@pytest.mark.parametrize(("begin", "same"), [(60, True), (59, True), (58, False)])
def test_the_heap_does_not_shrink_between_two_cycles(begin: int, same: bool) -> None:
    """An older process, with 60 MiB live, and a newer one: which has the next number 8?"""
    lines = (cycle(6, 1.0, live=60), cycle(7, 2.0, live=60), cycle(1, 0.1, live=5), cycle(2, 0.2, live=5),
             cycle(8, 3.0, live=60, begin=begin), cycle(9, 4.0, live=60))  # fmt: skip
    found = processes(*lines)
    assert found[:4] == [0, 0, 1, 1]
    assert (found[4] == 0) is same


def test_a_cycle_that_fits_into_a_gap_is_of_another_process() -> None:
    """After 1, 2, 5, 6 a 3 begins nothing: either 5 and 6 or 3 and 4 are of another program."""
    lines = (cycle(1, 1, live=20), cycle(2, 2, live=20), cycle(5, 2.5, live=300), cycle(6, 2.6, live=300),
             cycle(3, 3, live=20), cycle(4, 4, live=20), cycle(7, 4.1, live=300))  # fmt: skip
    assert processes(*lines) == [0, 0, 1, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("one", "other"),
    [({"live": 20}, {"live": 90}), ({"grown": 30}, {"grown": 300}), ({"procs": 2}, {"procs": 8}),
     ({"stacks": 0}, {"stacks": 40}), ({}, {"cpu_ms": 300, "pct": 14})],
    ids=["live heap", "GOGC", "GOMAXPROCS", "stacks", "GC share"],
)  # fmt: skip
@pytest.mark.parametrize("seed", range(4))
def test_programs_with_equal_numbers_and_pace_are_separated_by_one_difference(
    one: dict[str, int], other: dict[str, int], seed: int
) -> None:
    """300 ms of GC CPU in each second of two processors are 15 % of it."""
    rng, lines, truth = random.Random(seed), [], []
    for n in range(1, 25):
        pair = [(0, cycle(n, n, **one)), (1, cycle(n, n + 0.02, **other))]
        rng.shuffle(pair)
        # The first cycles begin the numbering, and of the second ones nothing is known yet: then
        # the program that was seen last continues.
        for number, line in sorted(pair, reverse=n == 2) if n < 3 else pair:
            lines.append(line)
            truth.append(number)
    assert processes(*lines) == truth


@pytest.mark.parametrize("seed", range(6))
def test_programs_of_different_pace_with_lost_lines_are_separated(seed: int) -> None:
    """Each program loses some lines, and what is left of it stays together."""
    rng = random.Random(seed)
    programs = [(0.11, 20, 2), (0.17, 150, 2), (1.3, 900, 4)]
    written = []
    for number, (pace, live, procs) in enumerate(programs):
        for n in range(1, int(12 / pace)):
            at = n * pace
            lost = n > 3 and rng.random() < 0.04
            if not lost:
                written.append(
                    (at + 50 * (number > 0), number, cycle(n, at, live=live, procs=procs))
                )
    # The first program runs alone; then the others, together.
    written.sort()
    found = processes(*(line for _, _, line in written))
    pairs = {(truth, process) for (_, truth, _), process in zip(written, found, strict=True)}
    assert len(pairs) == len(programs), "one process for each program"


def test_the_process_that_was_seen_last_continues_if_several_fit_alike() -> None:
    lines = [cycle(1, 0.1), cycle(1, 0.2), cycle(2, 0.3), cycle(3, 0.4), cycle(2, 0.5)]
    assert processes(*lines) == [0, 1, 1, 1, 0]


def test_lines_that_are_left_out_after_a_restart_are_of_the_new_process() -> None:
    """Only if the old process would lack far fewer of them, it went on."""
    restarted = (cycle(1, 0.1), cycle(2, 0.2), cycle(1, 0.1))
    assert processes(*restarted, cycle(47, 128.6), cycle(48, 129)) == [0, 0, 1, 1, 1]
    assert processes(*restarted, cycle(4, 128.6)) == [0, 0, 1, 1]
    assert processes(cycle(40, 9), cycle(41, 9.2), cycle(1, 0.1), cycle(43, 9.6)) == [
        0,
        0,
        1,
        0,
    ]


def test_a_number_that_follows_later_is_left_to_its_own_process() -> None:
    """The 12 could be of the program whose last cycle is 10; but that one's 11 comes next."""
    lines = (cycle(9, 9.0, live=50), cycle(1, 0.1, live=5), cycle(10, 10.0, live=50), cycle(2, 0.2, live=5),
             cycle(12, 11.0, live=400), cycle(11, 11.5, live=50), cycle(13, 12.0, live=400),
             cycle(3, 0.3, live=5))  # fmt: skip
    assert processes(*lines) == [0, 1, 0, 1, 2, 0, 2, 1]


def test_a_crash_loop_is_a_process_per_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "OPEN_CHAINS", 4)
    lines = [cycle(n, n / 10) for _ in range(30) for n in (1, 2, 3)]
    assert processes(*lines) == [start for start in range(30) for _ in range(3)]


@pytest.mark.parametrize("between", [3, 31])
def test_many_cycles_of_another_program_may_come_between_two(between: int) -> None:
    lines = [cycle(7, 7.0, live=500)]
    lines += [cycle(n, n / 100, live=5, length_ms=1) for n in range(1, between + 1)]
    lines += [cycle(8, 8.0, live=500), cycle(9, 9.0, live=500)]
    assert processes(*lines) == [0, *[1] * between, 0, 0]


def test_checks_for_goroutine_leaks_are_of_the_same_process() -> None:
    leak = cycle(2, 2.0).replace("%:", "% (checking for goroutine leaks):")
    run = read_text(cycle(1, 1.0) + leak + cycle(3, 3.0))
    assert run.cycles["format"].cast(str).to_list() == ["gc18", "gc26", "gc18"]
    assert run.cycles["process"].to_list() == [0, 0, 0]


@pytest.mark.parametrize("size", [300, 1000, 5000])
def test_processes_do_not_depend_on_how_the_log_is_cut(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = []
    for n in range(1, 60):
        lines.append(cycle(n, n, live=20))
        if n % 7:
            lines.append(cycle(n, n + 0.3, live=300, procs=4))
    whole = processes(*lines)
    monkeypatch.setattr("gctrace_analyzer.ingest.sources.CHUNK_BYTES", size)
    assert processes(*lines) == whole
    assert set(whole) == {0, 1}


@pytest.mark.parametrize("size", [300, 1 << 20])
@pytest.mark.parametrize(("between", "own"), [(0, True), (30, True), (31, True), (32, False)])
def test_a_number_is_left_to_the_process_whose_next_one_follows_soon(
    between: int, own: bool, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After 10, a 12 of another program, cycles of a third one, and then the 11."""
    monkeypatch.setattr("gctrace_analyzer.ingest.sources.CHUNK_BYTES", size)
    lines = [
        cycle(9, 9.0, live=50),
        cycle(1, 0.1, live=5),
        cycle(10, 10.0, live=50),
        cycle(12, 11.0, live=50),
    ]
    lines += [cycle(n, 0.1 + n / 100, live=5, length_ms=1) for n in range(2, 2 + between)]
    lines.append(cycle(11, 10.5, live=50))
    found = processes(*lines)
    assert found[:3] == [0, 1, 0]
    assert (found[3] != 0) is own


def lines_of_one_program(rng: random.Random) -> list[str]:
    """Returns cycles of a program, with lost lines, restarts, and sizes of any kind."""
    num, start_s, live = rng.randint(1, 3), rng.random(), rng.choice([0, 4, 100, 1000])
    procs, found = rng.choice([2, 8]), []
    for _ in range(rng.randint(1, 40)):
        length_ms = rng.choice([1.0, 12.5, 100.0])
        found.append(
            cycle(
                num, start_s, live=live, grown=rng.choice([0, 7, 100]), procs=procs,
                stacks=rng.choice([0, 0, 5]), pct=rng.choice([0, 1, 9]), length_ms=length_ms,
                begin=max(live + rng.randint(-3, 9), 0), cpu_ms=round(9 * rng.random(), 2),
            )
        )  # fmt: skip
        num += rng.choice([1] * 12 + [2, 3])
        start_s += length_ms / 1000 + rng.choice([0.0005, 0.1]) * rng.random()
        live = max(live + rng.randint(-2, 3), 0)
        if rng.random() < 0.05:
            num, start_s, procs = 1, 0.0, rng.choice([2, 8])
    return found


@needs_core
@pytest.mark.parametrize("seed", range(20))
def test_the_core_finds_the_processes_that_python_finds(seed: int) -> None:
    rng = random.Random(seed)
    programs = [lines_of_one_program(rng) for _ in range(rng.choice([2, 3, 5, 80]))]
    lines = []
    while programs := [each for each in programs if each]:
        lines.append(rng.choice(programs).pop(0))
    found = processes(*lines)
    with pure_python():
        assert processes(*lines) == found


def test_the_gc_cpu_since_the_start_cannot_fall_within_one_process() -> None:
    run = read_text(
        "gc 73 @2.184s 4%: 0.18+1.3+0.07 ms clock, 0.8+0.9/1.6/0.0+0.3 ms cpu, 6->7->4 MB, "
        "8 MB goal, 4 P\n"
        "gc 74 @2.684s 18%: 1.8+9.4+1.1 ms clock, 12+8/18/1+6 ms cpu, 220->260->180 MB, "
        "360 MB goal, 4 P\n"
        "gc 75 @3.012s 6%: 0.20+2.0+0.10 ms clock, 1.6+3.2/4.8/0.2+0.8 ms cpu, 10->12->7 MB, "
        "14 MB goal, 8 P\n"
    )
    assert run.processes["last_gc"].to_list() == [74, 75]
    assert "agrees" not in str(run.summary())
