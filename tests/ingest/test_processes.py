"""Processes in one stream are separated by number and time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.ingest.processes import go_versions, longest_process
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.lines import LINES
from tests.helpers.logs import logfile

if TYPE_CHECKING:
    from pathlib import Path


def cycle(num: int, start_s: float, *, procs: int = 2, live: int = 20, pct: int = 3) -> str:
    return (
        f"gc {num} @{start_s:.3f}s {pct}%: 0.13+9.8+0.002 ms clock, 0.27+1.1/1.0/13+0.005 ms cpu, "
        f"{2 * live - 3}->{2 * live}->{live} MB, {2 * live} MB goal, 0 MB stacks, 0 MB globals, {procs} P\n"
    )


def processes(*lines: str) -> list[int]:
    return read_text("".join(lines)).cycles["process"].to_list()


def test_consecutive_numbers_are_one_process() -> None:
    assert processes(cycle(1, 0.1), cycle(2, 0.2), cycle(3, 0.3)) == [0, 0, 0]


@pytest.mark.parametrize(
    ("command", "is_start"),
    [
        ("% GODEBUG=gctrace=1 ./x", True),
        ("user@host:~/x$ time GODEBUG=madvdontneed=1,gctrace=1 go run .", True),
        ("$ docker run -it \\\n    -e GODEBUG=gctrace=1 \\\n    --rm alpine", True),
        ("+ GODEBUG=gctrace=1 ./x", True),
        ("We ran it with GODEBUG=gctrace=1 for an hour.", False),
    ],
)
def test_a_command_that_starts_a_program_again_is_a_restart(
    command: str, *, is_start: bool
) -> None:
    """Numbers and times rise: of the second process, the first lines are missing."""
    first, second = cycle(2, 0.1) + cycle(3, 0.2), cycle(145, 5.1) + cycle(146, 5.2)
    found = processes(f"{command}\n{first}", f"done\n{command}\n{second}")
    assert found == ([0, 0, 1, 1] if is_start else [0] * 4)


def test_a_number_and_a_time_that_fall_are_a_restart() -> None:
    run = read_text(cycle(7, 4.1) + cycle(8, 4.2) + cycle(1, 0.1) + cycle(2, 0.3))
    assert run.cycles["process"].to_list() == [0, 0, 1, 1]
    assert run.processes["ended_by"].to_list() == ["restart", "end of input"]


def test_a_lost_line_is_a_gap_and_not_a_restart() -> None:
    run = read_text(cycle(1, 0.1) + cycle(2, 0.2) + cycle(5, 0.9) + cycle(6, 1.1))
    assert run.processes["missing_cycles"].to_list() == [2]
    assert "2 of 6 cycles have no line in the log" in str(run.summary())


def test_a_time_that_falls_is_a_restart() -> None:
    assert processes(cycle(3, 9.0), cycle(4, 0.2), cycle(5, 0.4)) == [0, 1, 1]


def test_a_cycle_of_an_older_process_is_not_a_restart() -> None:
    lines = (
        cycle(13, 5.0, live=60),
        cycle(1, 0.01),
        cycle(2, 0.03),
        cycle(14, 5.2, live=60),
        cycle(1, 0.02),
    )
    assert processes(*lines) == [0, 1, 1, 0, 2]


def test_processes_at_the_same_pace_are_separated_by_their_heap() -> None:
    pairs = [
        (cycle(n, n / 10, live=20), cycle(n, n / 10 + 0.02, live=300, pct=40))
        for n in range(1, 9)
    ]
    assert processes(*(line for pair in pairs for line in pair)) == [0, 1] * 8


def test_a_change_of_procs_does_not_start_a_process() -> None:
    assert processes(
        cycle(1, 0.1, procs=32), cycle(2, 0.2, procs=3), cycle(3, 0.3, procs=4)
    ) == [0, 0, 0]


@pytest.mark.parametrize("first", [True, False])
def test_other_procs_and_another_live_heap_after_missing_lines_are_another_process(
    *, first: bool
) -> None:
    large, small = {"procs": 1, "live": 210, "pct": 1}, {"procs": 8, "live": 4, "pct": 1}
    before, after = (large, small) if first else (small, large)
    assert processes(cycle(3, 46.9, **before), cycle(15, 121.3, **after)) == [0, 1]
    assert processes(cycle(3, 46.9, **before), cycle(4, 121.3, **before | {"procs": 4})) == [
        0,
        0,
    ]
    near = after | {"live": before["live"]}
    assert processes(cycle(3, 46.9, **before), cycle(15, 121.3, **near)) == [0, 0]


def test_code_blocks_are_of_other_processes_unless_their_numbers_continue() -> None:
    fence = "```\n\nLater:\n\n```\n"
    assert processes("```\n", cycle(3, 1.0), fence, cycle(4, 2.0), "```\n") == [0, 0]
    assert processes("```\n", cycle(3, 1.0), fence, cycle(9, 2.0), "```\n") == [0, 1]
    # Cycles of the same run: its clock goes on as its numbers do.
    first, later = (cycle(3, 1.0), cycle(4, 2.0)), (cycle(44, 41.0), cycle(45, 42.0))
    assert processes("```\n", *first, fence, *later, "```\n") == [0, 0, 0, 0]
    other = (cycle(44, 2.5), cycle(45, 3.5))
    assert processes("```\n", *first, fence, *other, "```\n") == [0, 0, 1, 1]


def test_two_shapes_are_two_processes() -> None:
    assert processes(
        LINES["gc16"] + "\n", LINES["gc18"].replace("gc 1 @0.0", "gc 9 @9.0") + "\n"
    ) == [0, 1]


def test_cycles_without_times_are_separated_by_number() -> None:
    old = [LINES["gc14"].replace("gc6(", f"gc{n}(") + "\n" for n in (6, 7, 1, 2, 3)]
    assert processes(*old) == [0, 0, 1, 1, 1]


def test_two_real_processes_in_one_log_are_separated() -> None:
    run = read_text((SAMPLES / "together-go1.22.log").read_bytes())
    assert run.processes["cycles"].to_list() == [28, 27]
    assert run.processes["missing_cycles"].sum() == 0


def test_a_wrapped_time_does_not_split_a_process() -> None:
    wrapped = cycle(2, 18446653480.186)
    run = read_text(cycle(1, 0.1) + wrapped + cycle(3, 0.3))
    assert run.cycles["process"].to_list() == [0, 0, 0]
    assert run.cycles["start_s"].to_list() == [0.1, None, 0.3]
    assert (
        "1 impossible value of start_s was ignored: perhaps a clock wrapped around, or lines are "
        "damaged." in run.summary().warnings
    )


@pytest.mark.parametrize("goal", [17592186044415, 8532210231539])
def test_no_goal_is_null_and_counted(goal: int) -> None:
    run = read_text(cycle(1, 0.1).replace("40 MB goal", f"{goal} MB goal"))
    assert run.cycles["heap_goal_mib"].to_list() == [None]
    assert "1 cycle had no heap goal: GOGC was off." in run.summary().warnings


def test_an_absurd_duration_is_null() -> None:
    run = read_text(
        cycle(1, 0.1).replace("9.8+0.002 ms clock", "18446744073709+0.002 ms clock")
    )
    assert run.cycles["concurrent_mark_ms"].to_list() == [None]


def test_a_forced_cycle_of_old_go_has_no_stale_cpu() -> None:
    forced = "gc 43 @5.570s 0%: 8.4+0+15 ms clock, 33+0.005/52/0.25+61 ms cpu, 1711->1711->1647 MB, 1711 MB goal, 32 P (forced)\n"
    row = read_text(forced).cycles.row(0, named=True)
    assert (row["assist_cpu_ms"], row["background_cpu_ms"], row["idle_cpu_ms"]) == (
        None,
        None,
        None,
    )
    assert row["stw_mark_term_cpu_ms"] == 61


def test_two_containers_of_one_log_are_two_processes_though_their_cycles_fit_together() -> None:
    lines = [
        f"2026-02-03T10:00:0{n}Z web-1 {name}[{pid}]: {cycle(n, n)}"
        for n, (name, pid) in enumerate([("api", 11)] * 4 + [("web", 12)] * 4, start=1)
    ]
    assert processes(*lines) == [0] * 4 + [1] * 4
    one = [line.replace("web[12]", "api[11]") for line in lines]
    assert processes(*one) == [0] * 8


def of(name: str, *lines: str) -> list[str]:
    return [f"2026-02-03T10:00:00Z h {name}[7]: {line}" for line in lines]


def test_processes_are_numbered_in_the_order_of_their_first_cycle() -> None:
    """Of two services, the one that appears first restarts twice."""
    api = of("api", *(cycle(n, n) for n in (1, 2, 1, 2, 1, 2)))
    web = of("web", *(cycle(n, n) for n in (1, 2, 3, 4)))
    assert processes(*api[:2], *web[:2], *api[2:4], *web[2:], *api[4:]) == [
        0, 0, 1, 1, 2, 2, 1, 1, 3, 3
    ]  # fmt: skip
    run = read_text("".join([*web[:1], *api, *web[1:]]))
    assert run.processes["ident"].to_list() == ["web", "api", "api", "api"]
    ends = run.processes["ended_by"].to_list()
    assert ends == ["end of input", "restart", "restart", "end of input"]


def test_lines_with_and_without_a_prefix_are_of_several_processes() -> None:
    bare = [cycle(n, n) for n in (1, 2)]
    run = read_text("".join([*of("api", cycle(1, 1), cycle(2, 2)), *bare]))
    assert run.cycles["process"].to_list() == [0, 0, 1, 1]
    assert run.processes["ident"].to_list() == ["api", None]


def test_both_streams_of_a_container_are_one_process() -> None:
    lines = [
        f"2026-02-03T10:00:0{n}Z {stream} F {cycle(n, n)}"
        for n, stream in enumerate(["stderr", "stdout"] * 3, start=1)
    ]
    assert processes(*lines) == [0] * 6


@pytest.mark.parametrize(
    ("formats", "versions"),
    [
        (["gc18"], ("1.18", None)),
        (["gc18", "gc26"], ("1.26", None)),
        (["gc16"], ("1.6", "1.17")),
        (["gc16", "scav14"], ("1.14", "1.17")),
        (["gc18", "scav14"], ("1.18", "1.20")),
        (["gc18", "scav21", "unknown"], ("1.21", None)),
        ([], (None, None)),
    ],
)
def test_the_formats_of_a_program_show_which_releases_it_may_be(
    formats: list[str], versions: tuple[str | None, str | None]
) -> None:
    assert go_versions(formats) == versions
    known = [LINES[name] for name in formats if name in LINES]
    if any(line.startswith("gc ") for line in known):
        (row,) = read_text("\n".join(known) + "\n").processes.to_dicts()[-1:]
        if len({name for name in formats if name.startswith("gc")}) == 1:
            assert (row["go_version_min"], row["go_version_max"]) == versions


@pytest.mark.parametrize(
    ("cycles", "longest"), [((3,), 0), ((2, 5, 4), 1), ((5, 2), 0), ((), None)]
)
def test_the_longest_process_has_the_most_cycles(
    cycles: tuple[int, ...], longest: int | None
) -> None:
    table = pl.DataFrame(
        {"process": range(len(cycles)), "cycles": cycles},
        schema={"process": pl.Int64, "cycles": pl.Int64},
    )
    assert longest_process(table) == longest


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["api", "web"], "2 services (api, web)"),
        (["a", "b", "c", "d"], "4 services (a, b, c, d)"),
        (["a", "b", "c", "d", "e"], "5 services (a, b, c, d, …)"),
    ],
)
def test_up_to_four_services_are_named(names: list[str], shown: str) -> None:
    lines = [line for name in names for line in of(name, cycle(1, 1), cycle(2, 2))]
    notes = read_text("".join(lines)).summary().warnings
    assert any(f"The inputs contain {shown};" in note for note in notes)


PREFIX = "Nov 23 09:59:58 web1 api[4711]: "


def test_lines_without_a_prefix_continue_the_message_above() -> None:
    lines = [cycle(n, n / 10) for n in range(1, 8)]
    log = [("" if n % 3 else PREFIX) + line for n, line in enumerate(lines)]
    run = read_text("".join(log))
    assert run.cycles["process"].to_list() == [0] * 7
    assert run.processes["log_pid"].to_list() == [4711]


def test_lines_of_a_restart_without_a_prefix_are_no_continuation() -> None:
    log = PREFIX + cycle(1, 0.1) + cycle(2, 0.2) + PREFIX + cycle(1, 0.05) + cycle(2, 0.3)
    assert processes(log) == [0, 0, 1, 1]


def test_a_program_without_a_prefix_next_to_one_with_a_prefix_stays_another_process() -> None:
    bare = [cycle(n, n / 10 + 0.05, live=200) for n in range(1, 9)]
    prefixed = [PREFIX + cycle(n, n / 10) for n in range(1, 9)]
    together = [line for pair in zip(bare, prefixed, strict=True) for line in pair]
    assert processes(*together) == [0, 1] * 8


def inputs(tmp_path: Path, **texts: str) -> list[Path]:
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return [tmp_path / name for name in texts]


STAMPED = "2026-11-23T10:00:{:06.3f}Z {}"


@pytest.mark.parametrize("stamped", [False, True])
def test_rotated_files_given_newest_first_are_one_process(
    tmp_path: Path, *, stamped: bool
) -> None:
    lines = [cycle(n, n / 10) for n in range(1, 16)]
    if stamped:
        lines = [STAMPED.format(n / 10 + 0.01, line) for n, line in enumerate(lines, start=1)]
    newest, older, oldest = ("".join(part) for part in (lines[10:], lines[5:10], lines[:5]))
    run = gca.read(*inputs(tmp_path, api=newest, api1=older, api2=oldest))
    assert run.cycles["gc_num"].to_list() == list(range(1, 16))
    assert run.cycles["process"].unique().to_list() == [0]
    assert run.cycles["line_no"].to_list() == [1, 2, 3, 4, 5] * 3


def test_a_restart_in_a_rotated_log_is_found_in_any_order(tmp_path: Path) -> None:
    old = cycle(8, 4.1) + cycle(9, 4.2) + cycle(1, 0.1) + cycle(2, 0.2)
    run = gca.read(*inputs(tmp_path, new=cycle(3, 0.3) + cycle(4, 0.4), old=old))
    assert run.cycles["gc_num"].to_list() == [8, 9, 1, 2, 3, 4]
    assert run.processes["ended_by"].to_list() == ["restart", "end of input"]


def test_inputs_that_do_not_continue_each_other_keep_their_order(tmp_path: Path) -> None:
    one = cycle(7, 9.0) + cycle(8, 9.5)
    other = cycle(2, 0.2) + cycle(3, 0.3)
    run = gca.read(*inputs(tmp_path, one=one, other=other))
    assert run.cycles["gc_num"].to_list() == [7, 8, 2, 3]


def test_files_of_pods_are_not_joined_although_their_numbers_would_fit(tmp_path: Path) -> None:
    pods = [
        f"[pod/api-7d9f-{name}/api] {line}"
        for name, line in (("aaaaa", cycle(2, 0.2)), ("bbbbb", cycle(1, 0.1)))
    ]
    run = gca.read(*inputs(tmp_path, a=pods[0], b=pods[1]))
    assert run.cycles["gc_num"].to_list() == [2, 1]
    assert run.cycles["process"].to_list() == [0, 1]


def test_logs_that_overlap_count_once(tmp_path: Path) -> None:
    lines = [cycle(n, n / 10) for n in range(1, 11)]
    run = gca.read(*inputs(tmp_path, a="".join(lines[:7]), b="".join(lines[3:])))
    assert run.cycles["gc_num"].to_list() == list(range(1, 11))
    assert run.cycles["process"].unique().to_list() == [0]
    name = tmp_path / "b"
    note = f"{name}: cycles that are in another input as well are counted once (4)."
    assert note in run.summary().warnings


def test_of_a_log_saved_twice_the_lines_with_timestamps_are_kept(tmp_path: Path) -> None:
    lines = [cycle(n, n / 10) for n in range(1, 5)]
    dated = [STAMPED.format(n / 10 + 0.01, line) for n, line in enumerate(lines, start=1)]
    run = gca.read(*inputs(tmp_path, bare="".join(lines), dated="".join(dated)))
    assert run.cycles["gc_num"].to_list() == [1, 2, 3, 4]
    assert run.cycles["logged_at"].null_count() == 0


def test_runs_that_begin_alike_are_no_overlap(tmp_path: Path) -> None:
    alike = cycle(1, 0.1) + cycle(2, 0.2)
    one, other = alike + cycle(3, 0.35, live=21), alike + cycle(3, 0.33, live=22)
    run = gca.read(*inputs(tmp_path, one=one, other=other))
    assert run.cycles["gc_num"].to_list() == [1, 2, 3, 1, 2, 3]
    crash = cycle(1, 0.1) * 5
    assert len(read_text(crash).cycles) == 5


def test_a_line_that_a_text_shows_again_is_one_cycle() -> None:
    lines = [cycle(n, n / 10) for n in range(1, 5)]
    torn = lines[2].replace("0.13+", "2019/04/06 14:28:27 force gc.\n0.13+")
    for again in (torn, lines[2]):
        run = read_text(f"{''.join(lines[:3])}As it came out:\n{again}{lines[3]}")
        assert run.cycles["gc_num"].to_list() == [1, 2, 3, 4]
        assert not run.cycles["repaired"].any()
        assert run.processes["cycles"].to_list() == [4]
        assert "cycles that are in this input as well are counted once (1)." in str(
            run.summary()
        )
        # The first line as well, and the only one.
        first = torn.replace("gc 3 @0.3", "gc 1 @0.1") if again == torn else lines[0]
        for shown in (lines, lines[:1]):
            run = read_text(f"{''.join(shown)}The first one:\n{first}")
            assert run.processes["cycles"].to_list() == [len(shown)]
    other = read_text("".join([*lines, lines[2].replace("9.8", "9.7")]))
    assert other.processes["cycles"].to_list() == [4, 1]


@pytest.mark.parametrize(
    "shown", ["sed -n 5p", "sed -n '5p'", "head -n 1", "tail -1", "grep -m1 'gc 5 '"]
)
def test_commands_that_each_show_one_line_are_runs_of_their_own(shown: str) -> None:
    command = f"GODEBUG=gctrace=1 ./gc 2>&1 | {shown}\n"
    rows = cycle(5, 0.011), cycle(29, 0.195)
    run = read_text(f"```\n{command * 2}```\n\n```\n{''.join(rows)}```\n")
    assert run.processes["cycles"].to_list() == [1, 1]
    run = read_text(f"```\n{command}```\n\n```\n{''.join(rows)}```\n")
    assert run.processes["cycles"].to_list() == [2]


def test_inputs_that_seem_to_continue_each_other_lose_nothing(tmp_path: Path) -> None:
    """Each ends with one process and begins with another."""
    one = cycle(9, 1.0) + cycle(5, 0.5)
    other = cycle(6, 0.6) + cycle(8, 0.9)
    run = gca.read(*inputs(tmp_path, one=one, other=other))
    assert sorted(run.cycles["gc_num"]) == [5, 6, 8, 9]


def test_the_process_of_another_log_is_no_restart(tmp_path: Path) -> None:
    for names, end in (
        (("a-0.log", "a-1.log"), "end of input"),
        (("a.log.1", "a.log"), "restart"),
    ):
        logs = [
            logfile(tmp_path / name, [cycle(n, n * second) for n in (1, 2, 3)])
            for second, name in enumerate(names, 2)
        ]
        run = gca.read(*logs)
        assert run.processes["ended_by"].to_list() == [end, "end of input"]
