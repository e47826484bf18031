"""Several inputs are read as one log, in any order and in any pieces."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.errors import UnreadableInputError
from gctrace_analyzer.ingest import sources
from gctrace_analyzer.testing import read_text
from tests.helpers.lines import LINES
from tests.helpers.logs import logfile, records

if TYPE_CHECKING:
    from pathlib import Path


@settings(max_examples=20)
@given(st.integers(1, 12), st.integers(1, 12), st.randoms(use_true_random=False))
def test_interleaved_logs_of_two_services_give_the_cycles_of_each(
    one: int, other: int, random: Any
) -> None:
    queues = {
        name: [f"2026-02-03T10:00:00Z host {name}[{pid}]: {line}" for line in records(count)]
        for name, pid, count in (("api", 11, one), ("web", 12, other))
    }
    lines = []
    while any(queues.values()):
        lines.append(random.choice([queue for queue in queues.values() if queue]).pop(0))
    processes = read_text("\n".join(lines) + "\n").processes
    assert dict(processes.select("ident", "cycles").iter_rows()) == {"api": one, "web": other}
    assert processes["missing_cycles"].sum() == 0


@settings(max_examples=20)
@given(st.permutations(range(3)))
def test_the_order_of_unrelated_inputs_does_not_matter(order: list[int]) -> None:
    parts = [
        "".join(f"2026-02-03T10:00:00Z h svc{n}[{n}]: {line}\n" for line in records(n + 2))
        for n in range(3)
    ]
    run = gca.read(*(io.BytesIO(parts[n].encode()) for n in order))
    counts = run.processes.select("ident", "cycles").sort("ident").rows()
    assert counts == [("svc0", 2), ("svc1", 3), ("svc2", 4)]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(size=st.integers(64, 2000), count=st.integers(1, 12), cut=st.integers(3, 60))
def test_chunk_borders_do_not_matter(
    monkeypatch: pytest.MonkeyPatch, size: int, count: int, cut: int
) -> None:
    lines = records(count)
    log = "\n".join(
        [*lines, f"{LINES['gc18'][:cut]}2026/11/21 12:00 x", LINES["gc18"][cut:], ""]
    )
    monkeypatch.setattr(sources, "CHUNK_BYTES", 1 << 20)
    whole = read_text(log)
    monkeypatch.setattr(sources, "CHUNK_BYTES", size)
    parts = read_text(log)
    assert parts.cycles.equals(whole.cycles)
    assert parts.rejected.equals(whole.rejected)


def test_kind_and_columns_override(tmp_path: Path) -> None:
    rows = logfile(tmp_path / "t.csv", ["1,2,3", "4,5,6"])
    with pytest.raises(UnreadableInputError, match="columns="):
        gca.read(rows)
    run = gca.read(rows, columns=["HeapSys", "HeapAlloc", "mine"])
    assert run.memstats["heap_alloc_bytes"].to_list() == [2, 5]
    assert run.memstats["mine"].to_list() == [3, 6]
    text = logfile(tmp_path / "t.json", ['{"a":', "b"])
    with pytest.raises(UnreadableInputError, match=":2: invalid JSON at column 1"):
        gca.read(text)
    text = logfile(tmp_path / "t.json", ['{"a":', records(1)[0]])
    run = gca.read(text)
    assert len(run.cycles) == 1
    reason = "invalid JSON at column 1: Expecting value; the input was read as text"
    assert run.rejected.select("line_no", "reason").rows() == [(2, reason)]
    run = gca.read(text, kind="log")
    assert (len(run.cycles), len(run.rejected)) == (1, 0)


KILL_OF_3_10 = (
    "api invoked oom-killer: gfp_mask=0xd0, order=0, oom_score_adj=0",
    "Task in /docker/aa killed as a result of limit of /docker/aa",
    "memory: usage 524288kB, limit 524288kB, failcnt 71",
    "Memory cgroup out of memory: Kill process 4242 (api) score 1001 or sacrifice child",
    "Killed process 4242 (api) total-vm:907776kB, anon-rss:519876kB, file-rss:0kB",
)


def test_a_kill_that_is_listed_newest_line_first_has_the_limit_above_it() -> None:
    lines = [f"Feb  3 10:00:{n:02} web-1 kernel: {line}" for n, line in enumerate(KILL_OF_3_10)]
    kills = [
        read_text("\n".join(each) + "\n").oom_kills.drop("line_no").to_dicts()
        for each in (lines, lines[::-1])
    ]
    (kill,) = kills[0]
    assert (kill["limit_bytes"], kill["failcnt"], kill["pid"]) == (512 << 20, 71, 4242)
    assert kills[0] == kills[1]


def test_an_input_says_what_it_is_and_not_what_its_messages_look_like() -> None:
    events = [
        {"timestamp": 1770112800000 + n, "message": f"2026-02-03T10:00:0{n}Z api[1]: {line}"}
        for n, line in enumerate(records(3))
    ]
    run = read_text(json.dumps({"events": events}))
    assert len(run.cycles) == 3
    assert run.sources[0].wrappers == {"CloudWatch events": 1}


def test_a_table_of_one_row_without_a_line_end_is_a_table() -> None:
    (row,) = read_text("66649928,1024,45018456,20307968,18481152,20,7").memstats.to_dicts()
    assert (row["heap_sys_bytes"], row["heap_alloc_bytes"]) == (66649928, 45018456)


def test_rare_lines_with_another_prefix_are_found_among_many_records() -> None:
    """Of few lines all prefixes are tried; of many, a sample shows which there are."""
    many = [f"2026-02-03T10:00:00.5Z stderr F {line}" for line in records(2000)]
    kernel = "Feb  3 10:00:01 web-1 kernel: Killed process 4242 (api) total-vm:907776kB, anon-rss:519876kB, file-rss:0kB"
    run = read_text("\n".join([*many[:1111], kernel, *many[1111:]]) + "\n")
    assert len(run.cycles) == 2000
    (kill,) = run.oom_kills.to_dicts()
    assert (kill["host"], kill["pid"]) == ("web-1", 4242)


def test_a_note_says_if_the_inputs_are_of_several_services() -> None:
    def notes(*names: str) -> list[str]:
        lines = [
            f"2026-02-03T10:00:0{n}Z web-1 {name}[{pid}]: {line}"
            for pid, name in enumerate(names)
            for n, line in enumerate(records(3))
        ]
        warnings = read_text("\n".join(lines) + "\n").summary().warnings
        return [note for note in warnings if "services" in note]

    (note,) = notes("api", "web", "api")
    assert note.startswith("The inputs contain 2 services (api, web);")
    assert notes("api", "api") == []
    assert notes("api") == []
    # A container without a name has only its id.
    assert notes("api", "0123456789ab", "0123456789ac") == []


def test_scavenges_are_numbered_by_the_cycle_before_them() -> None:
    log = [*records(2), LINES["scav21"], records(3)[2], LINES["pacer_new"], records(4)[3]]
    run = read_text("\n".join(log) + "\n")
    assert run.table("scavenges")["after_gc"].to_list() == [2]
    assert run.table("pacer")["gc_num"].to_list() == [4]


def test_a_file_that_is_given_twice_is_read_once(tmp_path: Path) -> None:
    path = logfile(tmp_path / "run.log", [LINES["gc18"]])
    link = tmp_path / "link.log"
    link.symlink_to(path)
    run = gca.read(path, str(path), link)
    assert len(run.cycles) == 1
    assert len(run.sources) == 1
    assert any("is given more than once" in note for note in run.summary().warnings)


def companions(run: gca.Run, table: Any = "scavenges") -> list[tuple[Any, ...]]:
    """Returns process and cycle of each line of another trace."""
    name = "after_gc" if table == "scavenges" else "gc_num"
    return run.table(table).select("process", name).rows()


def test_lines_of_other_traces_belong_to_the_cycles_around_them() -> None:
    """The scavenger's follow their cycle, the pacer's precede it; the first and the last ones
    have a cycle on one side only."""
    first = [f"2026-02-03T10:00:00Z h api[1]: {line}" for line in records(2)]
    second = [f"2026-02-03T10:00:09Z h web[2]: {line}" for line in records(2)]
    log = [LINES["scav21"], *first, LINES["scav21"], *second, LINES["scav21"]]
    assert companions(read_text("\n".join(log) + "\n")) == [(0, None), (0, 2), (1, 2)]
    log = [LINES["pacer_new"], *first, LINES["pacer_new"], *second, LINES["pacer_new"]]
    assert companions(read_text("\n".join(log) + "\n"), "pacer") == [(0, 1), (1, 1), (1, None)]


def test_lines_of_other_traces_in_a_reversed_log_belong_to_their_cycles() -> None:
    lines = [*records(3), LINES["scav21"], *records(5)[3:]]
    log = [f"2026-02-03T10:00:0{n}Z h api[1]: {line}" for n, line in enumerate(lines)]
    run = read_text("\n".join(log[::-1]) + "\n")
    assert run.cycles["gc_num"].to_list() == [1, 2, 3, 4, 5]
    assert len(companions(run)) == 1
    assert companions(run)[0][0] == 0


def test_lines_of_other_traces_belong_to_the_cycles_of_their_own_input() -> None:
    one = "\n".join([*records(2), LINES["scav21"], ""])
    other = "\n".join([*records(5), LINES["scav21"], ""])
    run = gca.read(*(io.BytesIO(each.encode()) for each in (one, other)))
    assert [num for _, num in companions(run)] == [2, 5]


def test_a_log_of_other_traces_alone_has_no_process() -> None:
    assert companions(read_text(f"{LINES['scav21']}\n")) == [(None, None)]


@pytest.mark.parametrize(
    "quotes",
    [
        ["11. e.g. {old}"],
        ["系统内存回收信息：{old}"],
        ["`{record}`。", "", "`{old}`"],
        ["例えば、{record}"],
        ["For example: {record}"],
        ["Line:", "```", "{record}", "```", "where @0.004s表示程序执行的总时间"],
    ],
)
def test_lines_that_the_text_around_a_log_quotes_are_not_of_the_log(quotes: list[str]) -> None:
    old = "scvg0: inuse: 6, idle: 12, sys: 18, released: 0, consumed: 18 (MB)"
    quoted = "\n".join(quotes).format(old=old, record=LINES["gc18"])
    log = "\n".join([*records(3), LINES["scav21"]])
    run = read_text(f"{log}\nExplained:\n{quoted}\n")
    assert run.cycles["gc_num"].to_list() == [1, 2, 3]
    assert companions(run) == [(0, 3)]
    assert "gctrace that the text around the log quotes is not counted" in str(run.summary())
    assert run.report().analysis.log.sources[0].found["cycles"] == 3
    # Alone, it is the log.
    if "{record}" in quoted:
        assert read_text(quoted).cycles["gc_num"].to_list() == [1]
    # A command above it runs another program.
    again = f"{log}\n$ GODEBUG=gctrace=1 ./other\n{LINES['gc18']}\n@0.004s\n"
    assert read_text(again).cycles["gc_num"].to_list() == [1, 2, 3, 1]


def test_a_damaged_line_with_the_time_of_a_cycle_does_not_explain_it() -> None:
    """Programs that crash at once may start at the same time."""
    log = "\n".join([*records(3), LINES["gc18"], "gc 1 @0.004s 3%: 0.17+1"])
    assert read_text(f"{log}\n").cycles["gc_num"].to_list() == [1, 2, 3, 1]


@pytest.mark.parametrize(
    ("command", "is_stopped"),
    [
        ("GODEBUG=gcstoptheworld=1,gctrace=1 ./demo", True),
        ("GODEBUG=gctrace=1,gcstoptheworld=2 ./demo", True),
        ("$env:GODEBUG = 'gctrace=1,gcstoptheworld=1'", True),
        ('export GODEBUG="gctrace=1,gcstoptheworld=1"', True),
        ("GODEBUG=gctrace=1,gcstoptheworld=0 ./demo", False),
    ],
)
def test_pauses_of_a_stopped_world_are_said_to_be_longer(
    command: str, is_stopped: bool
) -> None:
    log = "\n".join(records(3))
    for text, is_named in ((f"{command}\n{log}\n", is_stopped), (f"{log}\n{command}\n", False)):
        warnings = read_text(text).summary().warnings
        assert ("GODEBUG=gcstoptheworld=" in str(warnings[:1])) == is_named


def test_a_line_of_the_scavenger_that_a_text_shows_again_is_not_its_last() -> None:
    first, last = (
        f"scvg{num}: inuse: {num}, idle: {idle}, sys: {num + idle}, released: 0, consumed: 9 (MB)"
        for num, idle in ((3, 6), (4, 67))
    )
    for again in (f"    - `{first}`", f"// {first}", first):
        lines = [LINES["gc18"], first, last, "Explained:", again]
        run = read_text("\n".join(lines) + "\n")
        assert run.table("scavenges")["scavenge_num"].to_list() == [3, 4]
    # Calls of debug.FreeOSMemory have no number.
    for call in (first.replace("scvg3", "scvg-1"), LINES["scav21"], LINES["scvg13"]):
        assert (
            len(read_text(f"{LINES['gc18']}\n{call}\nfreed\n{call}\n").table("scavenges")) == 2
        )


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_records_without_times_that_count_down_are_a_reversed_log(count: int) -> None:
    """Two cycles may also be two programs."""
    run = read_text("\n".join(records(count)[::-1]) + "\n")
    expected = list(range(1, count + 1))
    assert run.cycles["gc_num"].to_list() == (expected if count != 2 else [2, 1])
    assert len(run.processes) == 1 + (count == 2)


@pytest.mark.parametrize(
    ("missing", "reverse"), [((), True), ((5, 8), True), ((3, 5, 8), False)]
)
def test_numbers_that_mostly_fall_by_one_are_a_reversed_log(
    missing: tuple[int, ...], reverse: bool
) -> None:
    """Four of five steps, of ten."""
    count = 11 + len(missing)
    lines = [line for n, line in enumerate(records(count), 1) if n not in missing]
    found = read_text("\n".join(lines[::-1]) + "\n").cycles["line_no"].to_list()
    assert found == (list(range(11, 0, -1)) if reverse else list(range(1, 12)))


def test_of_several_inputs_without_data_the_first_is_named(tmp_path: Path) -> None:
    one, other = logfile(tmp_path / "one.log", ["text"]), logfile(tmp_path / "other.log", ["x"])
    with pytest.raises(gca.NoDataError, match=r"one\.log"):
        gca.read(one, other)
    (tmp_path / "empty.log").write_bytes(b"")
    with pytest.raises(gca.NoDataError, match=r"empty\.log"):
        gca.read(tmp_path / "empty.log", one, other)
