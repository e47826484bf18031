"""Numbers and times that contradict the cycles before and after them."""

from __future__ import annotations

import pytest

from gctrace_analyzer.testing import read_text


def cycle(num: int, start_s: float, mark_ms: float = 9.8, *, live: int = 20) -> str:
    return (
        f"gc {num} @{start_s:.3f}s 3%: 0.13+{mark_ms}+0.002 ms clock, 0.27+1.1/1.0/13+0.005 ms cpu, "
        f"{2 * live - 3}->{2 * live}->{live} MB, {2 * live} MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
    )


def pod(name: str, line: str) -> str:
    return f"{name} | {line}"


@pytest.mark.parametrize("start_s", [15.2, 4e6])
def test_a_start_after_that_of_the_next_cycle_is_null(start_s: float) -> None:
    run = read_text(cycle(1, 0.1) + cycle(2, start_s) + cycle(3, 0.2) + cycle(4, 0.3))
    assert run.cycles["start_s"].to_list() == [0.1, None, 0.2, 0.3]
    assert run.cycles["process"].to_list() == [0, 0, 0, 0]
    assert any("1 impossible value" in text for text in run.summary().warnings)


def test_a_start_before_that_of_the_last_cycle_is_null() -> None:
    run = read_text(cycle(1, 500.1) + cycle(2, 5.0) + cycle(3, 500.2) + cycle(4, 500.3))
    assert run.cycles["start_s"].to_list() == [500.1, None, 500.2, 500.3]
    assert len(run.processes) == 1


def test_a_long_rest_is_none() -> None:
    run = read_text(cycle(1, 0.1) + cycle(2, 0.2) + cycle(3, 4e6) + cycle(4, 4e6 + 1))
    assert run.cycles["start_s"].null_count() == 0


@pytest.mark.parametrize(
    "lines",
    [
        # By less than ten seconds, or not a hundred times the time between the neighbours
        [cycle(1, 0.1), cycle(2, 10.1), cycle(3, 0.2)],
        [cycle(1, 10.0), cycle(2, 40.0), cycle(3, 11.0)],
        # Other numbers are other processes.
        [cycle(1, 0.1), cycle(7, 40.0), cycle(3, 0.3)],
        [cycle(6, 500.1), cycle(7, 500.2), cycle(1, 0.1), cycle(2, 0.2)],
    ],
)
def test_what_several_programs_may_have_printed_is_kept(lines: list[str]) -> None:
    run = read_text("".join(lines))
    assert run.cycles["start_s"].null_count() == 0
    assert not any("impossible" in text for text in run.summary().warnings)


def test_a_phase_that_lasts_beyond_the_next_cycle_is_null() -> None:
    run = read_text(cycle(1, 0.1) + cycle(2, 0.2, 4e6) + cycle(3, 0.3) + cycle(4, 0.4))
    assert run.cycles["concurrent_mark_ms"].to_list() == [9.8, None, 9.8, 9.8]
    assert run.cycles["process"].to_list() == [0, 0, 0, 0]


def test_a_phase_that_may_have_lasted_is_kept() -> None:
    run = read_text(cycle(1, 0.1) + cycle(2, 0.2, 11_000) + cycle(3, 11.3) + cycle(4, 11.4))
    assert run.cycles["concurrent_mark_ms"].to_list() == [9.8, 11_000, 9.8, 9.8]


def test_a_number_follows_from_those_of_its_neighbours() -> None:
    run = read_text(cycle(5, 0.1) + cycle(4294, 0.2) + cycle(7, 0.3) + cycle(8, 0.4))
    assert run.cycles["gc_num"].to_list() == [5, 6, 7, 8]
    assert run.cycles["repaired"].to_list() == [False, True, False, False]
    assert run.processes["missing_cycles"].to_list() == [0]


@pytest.mark.parametrize(
    "middle",
    [
        cycle(4294, 0.05),  # before the last one
        cycle(4294, 0.35),  # after the next one
        cycle(4294, 0.2, live=40),  # the heap shrinks to the next cycle
        cycle(4294, 0.2, live=5),  # and from the last one
        cycle(4294, 0.2).replace("2 P", "4 P"),
    ],
)
def test_a_cycle_of_another_program_keeps_its_number(middle: str) -> None:
    run = read_text(cycle(5, 0.1) + middle + cycle(7, 0.3) + cycle(8, 0.4))
    assert 4294 in run.cycles["gc_num"].to_list()
    assert not run.cycles["repaired"].any()


def test_neighbours_are_of_the_same_pod() -> None:
    one = [cycle(1, 500.1), cycle(2, 500.2), cycle(3, 4e6), cycle(4, 500.4), cycle(5, 500.5)]
    other = [cycle(1, 0.1), cycle(2, 0.2), cycle(3, 0.3), cycle(4, 0.4), cycle(5, 0.5)]
    run = read_text(
        "".join(
            pod("api-0", first) + pod("api-1", second)
            for first, second in zip(one, other, strict=True)
        )
    )
    assert run.processes["cycles"].to_list() == [5, 5]
    starts = run.cycles["start_s"].to_list()
    assert starts[::2] == [500.1, 500.2, None, 500.4, 500.5]
    assert starts[1::2] == [0.1, 0.2, 0.3, 0.4, 0.5]
