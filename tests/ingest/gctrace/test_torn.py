"""Torn records are rejoined wherever the other write interrupted them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gctrace_analyzer.ingest.gctrace import torn
from gctrace_analyzer.ingest.gctrace.grammar import MODERN
from gctrace_analyzer.testing import cycles, format_cycle, read_text
from tests.helpers.lines import LINES

BEFORE = "gc 11 @0.900s 3%: 0.13+9.8+0.002 ms clock, 0.27+1.1/1.0/13+0.005 ms cpu, 43->46->27 MB, 51 MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
TORN = "gc 12 @0.972s 3%: 0.13+9.8+0.002 ms clock, 0.27+1.1/1.0/13+0.005 ms cpu, 43->46->27 MB, 51 MB goal, 0 MB stacks, 0 MB globals, 2 P (forced)"
AFTER = BEFORE.replace("gc 11 @0.900s", "gc 13 @1.031s")
APPLICATION = [
    "2026/11/21 04:02:39.561765 cache refresh done keys=10234",
    "2026/11/21 04:02:39.602102 gc worker pool resized to 16",
    "time=2026-11-21T04:02:39Z level=INFO msg=\"queue drained\"",
    '{"level":"warn","ts":1795233759.1,"msg":"slow request"}',
    "[INFO] started",
    "E1121 04:02:39.561765   12345 server.go:42] retry 3",
]  # fmt: skip
BORDERS = [match.end() for match in re.finditer(r"\d[\d.]*|[^\d.]+", TORN)][:-1]
COMPARED = (
    "gc_num",
    "start_s",
    "stw_mark_term_ms",
    "background_cpu_ms",
    "heap_goal_mib",
    "procs",
    "forced",
)


def log_of(*writes: str) -> str:
    """Returns a log with the writes of the torn record between application lines."""
    lines = [f"{line}\n" for line in APPLICATION[:3]]
    return lines[0] + BEFORE + lines[1] + "".join(writes) + lines[2] + AFTER


def assert_whole(log: str) -> None:
    run, whole = read_text(log), read_text(BEFORE + TORN + "\n" + AFTER)
    assert run.cycles["gc_num"].to_list() == [11, 12, 13]
    assert run.cycles["repaired"].to_list() == [False, True, False]
    assert run.cycles.select(COMPARED).rows() == whole.cycles.select(COMPARED).rows()
    assert len(run.rejected) == 0


@pytest.mark.parametrize("at", BORDERS)
def test_a_line_torn_at_any_token_is_joined(at: int) -> None:
    assert_whole(log_of(TORN[:at], APPLICATION[0] + "\n", TORN[at:] + "\n"))


@pytest.mark.parametrize("at", [9, 10, 11, 26, 70, 90])
def test_a_line_torn_within_a_number_is_joined(at: int) -> None:
    assert_whole(log_of(TORN[:at], APPLICATION[0] + "\n", TORN[at:] + "\n"))


@pytest.mark.parametrize("application", APPLICATION)
def test_the_other_write_may_look_like_anything(application: str) -> None:
    assert_whole(log_of(TORN[:30], application + "\n", TORN[30:] + "\n"))


@pytest.mark.parametrize("at", BORDERS[::4])
def test_the_other_write_may_have_many_lines(at: int) -> None:
    many = "".join(f"\tat com.example.Frame{n}\n" for n in range(20))
    assert_whole(log_of(TORN[:at], "2026/11/21 04:02:39.5 panic\n", many, TORN[at:] + "\n"))


def test_a_line_torn_twice_is_joined() -> None:
    first, second = TORN.index(" ms clock"), TORN.index("43->")
    writes = (TORN[:first], APPLICATION[0] + "\n", TORN[first:second], APPLICATION[1] + "\n")
    assert_whole(log_of(*writes, TORN[second:] + "\n"))


@pytest.mark.parametrize("second", [9, 10, 12, 13, 16, 26, 70, 89, 100])
def test_a_line_torn_after_its_first_word_and_once_more_is_joined(second: int) -> None:
    other = APPLICATION[0] + "\n"
    assert_whole(log_of(TORN[:3], other, TORN[3:second], other, TORN[second:] + "\n"))


def test_records_of_two_processes_mixed_on_one_line_are_rejected() -> None:
    # The first words of two processes met; the rest cannot be separated.
    braided = (
        "gc gc 1 @10.004 @s 0.0045s %5: %0.17: +0.1711++100.059+ ms clock, 0.0660.34 ms clock\n"
    )
    run = read_text(braided + BEFORE + AFTER)
    assert run.cycles["gc_num"].to_list() == [11, 13]
    assert "two processes wrote at the same time" in run.rejected["reason"].item()


def test_a_line_torn_before_its_line_end_is_complete() -> None:
    assert_whole(log_of(TORN, APPLICATION[0] + "\n", "\n"))


def test_a_forced_mark_on_its_own_line_is_found() -> None:
    record = TORN.removesuffix(" (forced)")
    assert_whole(log_of(record, APPLICATION[0] + "\n", " (forced)\n"))


def test_a_record_torn_by_another_programs_record_is_joined() -> None:
    other = LINES["gc18"].replace("gc 1 @0.004s", "gc 90 @70.004s")
    run = read_text(log_of(TORN[:30], other + "\n", TORN[30:] + "\n"))
    assert sorted(run.cycles["gc_num"]) == [11, 12, 13, 90]
    assert run.processes["cycles"].to_list() == [3, 1]


def test_a_record_behind_a_collectors_prefix_is_joined() -> None:
    log = "".join(
        f"Feb 26 12:01:09.658 {line}\n"
        for line in log_of("\0").splitlines()
        if "\0" not in line
    )
    pieces = (
        f"Feb 26 12:01:10.658 {TORN[:30]}{APPLICATION[4]}\nFeb 26 12:01:10.659 {TORN[30:]}\n"
    )
    lines = log.splitlines(keepends=True)
    run = read_text("".join(lines[:3]) + pieces + "".join(lines[3:]))
    assert run.cycles["gc_num"].to_list() == [11, 12, 13]
    assert run.cycles["repaired"].to_list() == [False, True, False]


def test_a_record_wrapped_by_mail_is_joined() -> None:
    at = TORN.index(" MB, 51")
    run = read_text(f"> {TORN[:at]}\n> {TORN[at + 1 :]}\n")
    assert run.cycles["heap_live_mib"].to_list() == [27]
    assert run.cycles["repaired"].to_list() == [True]


def test_an_indented_rest_of_a_wrapped_record_is_not_rejected() -> None:
    at = TORN.index(" 43->")
    run = read_text(f"{TORN[:at]}\n   {TORN[at:].lstrip()}\n")
    assert (len(run.cycles), len(run.rejected)) == (1, 0)


def test_an_escaped_arrow_is_read_and_counts_as_repaired() -> None:
    run = read_text(TORN.replace("->", "-&gt;") + "\n")
    assert run.cycles["repaired"].to_list() == [True]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (TORN[:40], "cut short"),
        (TORN[:60] + " ...", "cut short"),
        (TORN[:43] + "2026/11/21 04:02:39 gone", "other text than the runtime prints"),
        (LINES["gc18"].replace(" P", " procs"), "other text than the runtime prints"),
        (TORN[5:], "the beginning of the record is missing"),
        (TORN[44:], "the rest is missing"),
        (
            TORN.replace("43->", "99999999999999999999->"),
            "larger than any that the runtime prints",
        ),
        (LINES["gc18"].replace("4 MB goal, 0 MB stacks", "0 MB stacks, 4 MB goal"), "order"),
        (re.sub(r"(\d)\.(\d)", r"\1,\2", LINES["gc18"]), "commas instead of decimal points"),
        ("gc 1" * 300_000, "longer than 1 MiB"),
    ],
)
def test_an_unreadable_line_is_rejected_with_its_reason(line: str, reason: str) -> None:
    run = read_text(f"{APPLICATION[0]}\n{line}\n")
    assert len(run.cycles) == 0
    row = run.rejected.row(0, named=True)
    assert row["line_no"] == 2
    assert reason in row["reason"]
    assert row["text"] == line[:500]


@settings(max_examples=50)
@given(cycles(), st.data())
def test_any_record_torn_anywhere_is_joined(
    row: dict[str, object], data: st.DataObject
) -> None:
    record = format_cycle(row)
    at = data.draw(
        st.sampled_from([m.end() for m in re.finditer(r"\d[\d.]*|[^\d.]+", record)][:-1])
    )
    application = data.draw(st.sampled_from(APPLICATION[:3]))
    others = "".join(f"{line}\n" for line in APPLICATION[:3])
    run = read_text(f"{others}{record[:at]}{application}\n{record[at:]}\n{others}")
    assert len(run.cycles) == 1
    read = run.cycles.row(0, named=True)
    assert {name: read[name] for name in row} == row
    assert read["repaired"]


@settings(max_examples=50)
@given(
    st.lists(
        st.sampled_from([*LINES.values(), *APPLICATION]).flatmap(
            lambda line: st.tuples(st.just(line), st.integers(0, len(line)), st.booleans())
        ),
        max_size=12,
    )
)
def test_fragments_of_lines_never_make_the_reader_fail(
    pieces: list[tuple[str, int, bool]],
) -> None:
    log = "gc 1 @0.001s 0%\n" + "".join(
        line[:cut] + "\n" * newline for line, cut, newline in pieces
    )
    run = read_text(log)
    assert set(run.rejected["line_no"]) <= set(range(1, log.count("\n") + 2))


@settings(max_examples=50)
@given(st.binary(max_size=400))
def test_no_bytes_make_the_reader_fail(noise: bytes) -> None:
    run = read_text(b"x" + noise + b"\n" + LINES["gc18"].encode() + b"\n" + noise)
    assert len(run.cycles) >= 1


@pytest.mark.parametrize(
    ("name", "text", "printable"),
    [
        ("start_s", "0.004", True),
        ("start_s", "0.04", False),
        ("stw_sweep_term_ms", "0", True),
        ("stw_sweep_term_ms", "17", True),
        ("stw_sweep_term_ms", "1.7", True),
        ("stw_sweep_term_ms", "0.17", True),
        ("stw_sweep_term_ms", "0.017", True),
        ("stw_sweep_term_ms", "1.75", False),
        ("stw_sweep_term_ms", "0.175", False),
        ("stw_sweep_term_ms", "07", False),
        ("heap_live_mib", "0", True),
        ("heap_live_mib", "10", True),
        ("heap_live_mib", "010", False),
    ],
)
def test_which_numbers_the_runtime_prints(name: str, text: str, printable: bool) -> None:
    (shape,) = [each for each in MODERN if each.id == "gc18"]
    (part,) = [each for each in shape.fields if each.name == name]
    assert torn._is_printable(part, text) == printable


PLAUSIBLE = "gc 12 @0.972s 3%: 0.13+9.8+0.02 ms clock, 0.27+1.1/1.0/13+0.04 ms cpu, 43->46->27 MB, 51 MB goal, 0 MB stacks, 0 MB globals, 2 P"


@pytest.mark.parametrize(
    ("old", "new", "worse"),
    [
        ("43->46", "46->46", False),
        ("43->46", "47->46", False),  # each size is rounded down
        ("43->46", "48->46", True),
        ("46->27", "46->46", False),
        ("46->27", "46->47", False),  # the heap was all live
        ("46->27", "46->48", True),
        ("0.972s", "0.97s", True),
        ("+9.8+", "+9.85+", True),
        ("+9.8+", "+19+", False),
        ("51 MB", "051 MB", True),
        ("0.27+", "2.7+", True),  # the CPU time of a pause is that of two processors
        ("0.27+", "0.027+", True),
        ("0.27+", "0.26+", False),
        ("+0.04 ms", "+4.0 ms", True),
        (", 2 P", ", 20 P", True),
    ],
)
def test_which_records_the_runtime_would_rather_print(old: str, new: str, worse: bool) -> None:
    changed = PLAUSIBLE.replace(old, new, 1)
    assert changed != PLAUSIBLE
    assert (torn._implausibility(changed) > torn._implausibility(PLAUSIBLE) + 0.5) is worse


@pytest.mark.parametrize(
    ("cut", "other", "start_mib"),
    [("4", "1 of 5 done", 43), ("", "41 of 5 done", 3), ("4", "x1 of 5 done", 43)],
)
def test_a_cut_between_digits_is_where_the_other_write_begins_like_other_lines(
    cut: str, other: str, start_mib: int
) -> None:
    at = PLAUSIBLE.index("43->46")
    torn_line = f"{PLAUSIBLE[:at]}{cut}{other}\n3->46{PLAUSIBLE.partition('43->46')[2]}\n"
    near = re.sub(r"\d", "7", other)
    cycles = read_text(f"{BEFORE}{near}\n{torn_line}{AFTER}").cycles
    assert cycles["heap_start_mib"].to_list() == [43, start_mib, 43]


def test_the_number_of_a_torn_record_is_the_expected_one() -> None:
    """`gc 1` and `2 @0.972s`, with a number between them that could belong to it."""
    for begin, rest in (("gc 1", "2 @"), ("gc 12", " @")):
        tail = PLAUSIBLE.partition("@")[2]
        log = f"{BEFORE}{begin}7 rows\n{rest}{tail}\n{AFTER}"
        assert read_text(log).cycles["gc_num"].to_list() == [11, 12, 13]


@pytest.mark.parametrize("line_no", [31, 32, 33, 48, 64, 65, 96])
@pytest.mark.parametrize("apart", [1, 20, 31, 32])
@pytest.mark.parametrize("at", [60, TORN.index("2 P")])
def test_the_rest_of_a_record_is_found_wherever_it_is_torn(
    line_no: int, apart: int, at: int
) -> None:
    filler = [f"2026/11/21 04:02:39 request {n}" for n in range(200)]
    between = [*filler[: apart - 1], ""]
    log = [*filler[: line_no - 1], TORN[:at] + filler[0], *between[:-1], TORN[at:], *filler]
    run = read_text("\n".join(log) + "\n")
    assert run.cycles["line_no"].to_list() == [line_no]
    assert run.cycles["heap_goal_mib"].to_list() == [51]
    assert run.cycles["forced"].to_list() == [True]


def test_a_record_begins_at_the_start_of_a_line_rather_than_inside_one() -> None:
    """The rest of the record may follow both; the nearer one is the end of a message."""
    log = ["gc 12 2026/11/21 flushed", "after gc 12", " @0.972s" + TORN.partition("@0.972s")[2]]
    cycles = read_text(BEFORE + "\n".join(log) + "\n").cycles[1:]
    assert cycles.select("gc_num", "line_no", "repaired").rows() == [(12, 2, True)]


@pytest.mark.parametrize("shape", ["gc10", "gc11", "gc12x", "gc13", "gc14"])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_torn_records_of_old_go_are_joined(shape: str, share: float) -> None:
    line = LINES[shape]
    at = line.index(" ", int(share * len(line)))
    log = f"{APPLICATION[1]}\n{line[:at]}{APPLICATION[0]}\n{line[at:]}\n{APPLICATION[2]}\n"
    (cycle,) = read_text(log).cycles.to_dicts()
    (whole,) = read_text(line + "\n").cycles.to_dicts()
    assert cycle["repaired"]
    but = {"repaired", "line_no", "source"}
    assert {k: v for k, v in cycle.items() if k not in but} == {
        k: v for k, v in whole.items() if k not in but
    }


@pytest.mark.parametrize("shape", ["scvg", "scav14", "scav21"])
def test_torn_lines_of_the_scavenger_are_joined(shape: str) -> None:
    line = LINES[shape]
    at = line.index(" ", len(line) // 2)
    log = f"{BEFORE}{line[:at]}{APPLICATION[0]}\n{line[at:]}\n{AFTER}"
    run = read_text(log)
    assert len(run.table("scavenges")) == 1
    assert run.rejected.is_empty()


@pytest.mark.parametrize("cut", range(1, 5))
def test_a_line_of_the_scavenger_torn_within_a_number_ends_where_others_begin(cut: int) -> None:
    """The other write begins with digits too, as the lines around it do."""
    line = LINES["scav21"]
    at = line.index("3144") + cut
    log = f"{BEFORE}{APPLICATION[1]}\n{line[:at]}{APPLICATION[0]}\n{line[at:]}\n{AFTER}"
    run = read_text(log)
    assert run.table("scavenges")["released_total_kib"].to_list() == [3144]
    assert run.rejected.is_empty()


@pytest.mark.parametrize("before", ["", "level=info msg=", TORN[20:-9], "gc gc 5 "])
@pytest.mark.parametrize("cut", [30, 75, 100])
def test_what_precedes_a_record_on_its_line_does_not_change_its_reason(
    before: str, cut: int
) -> None:
    """Such as the rest of a record whose beginning is elsewhere."""
    run = read_text(f"{APPLICATION[0]}\n{before}{TORN[:cut]}\n{APPLICATION[0]}\n")
    assert run.rejected.select("line_no", "reason").rows() == [(2, "cut short")]


@pytest.mark.parametrize(
    "after",
    ["：第65次执行", ": the 65th cycle", ", 2 s later", "（起動から）", "`：第 1 次", "**: "],
)
def test_a_sentence_about_a_record_is_not_a_damaged_one(after: str) -> None:
    run = read_text(f"{LINES['gc18']}\n{APPLICATION[0]}\n1. gc 2 @120.093s{after}\n")
    assert run.rejected.is_empty()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("gc 7 @1.2s 3%: and then anything", "does not go on like one of any Go release"),
        ("gc 9 @60.1s 71%: ... 505->506->500 MB, 512 MB goal, 8 P", "left parts out"),
        (
            "gc 21 @8.223s 0% 0.032+3.0+0.12ms clock, 1.6+2.8/14/10+6.2ms cpu, 41->44->21 MB, "
            "43 MB goal, 52 P",
            "the colon after the percentage is missing",
        ),
        (
            "gc 21 @8.223s 0%: 0.032+3.0+0.12 ms Clock, 1.6+2.8/14/10+6.2 ms CPU, 41->44->21 MB, "
            "43 MB Goal, 52 P",
            "other capital letters than the runtime prints",
        ),
    ],
)
def test_a_line_that_begins_like_a_record_is_rejected_with_its_reason(
    line: str, reason: str
) -> None:
    run = read_text(f"{line}\n")
    assert reason in run.rejected["reason"][0]
