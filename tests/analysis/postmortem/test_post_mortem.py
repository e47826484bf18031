"""Post-mortems: kills matched to processes, and what dumps and units show."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.errors import UnreadableInputError
from tests.helpers.corpus import INPUTS, expectation, named, read
from tests.helpers.logs import KILL, logfile, records

if TYPE_CHECKING:
    from pathlib import Path

JOINED = [path for path in INPUTS if expectation(path)["expect"].get("post_mortem")]


@pytest.mark.parametrize("path", JOINED, ids=named)
def test_a_kill_finds_its_program(path: Path) -> None:
    expected = expectation(path)["expect"]["post_mortem"]
    (found,) = read(path).post_mortems()
    assert expected["match_by"] in found.match_by
    assert found.confidence == "high"
    assert found.last_gc_num == expected["last_gc_num"]
    assert found.gap_s == pytest.approx(
        expected["gap_s_exact"], abs=max(expected["gap_tolerance_s"], 0.001)
    )
    assert found.limit_mib == 512
    assert found.preventable == "for a while"


def journal(pid: int, ident: str, kill: str, records: list[str]) -> list[str]:
    lines = [
        f"2026-02-03T10:00:{n:02}Z h {ident}[{pid}]: {line}" for n, line in enumerate(records)
    ]
    return [*lines, f"2026-02-03T10:00:{len(records) + 1:02}Z h kernel: {kill}"]


@pytest.mark.parametrize(
    ("ident", "log_pid", "pid", "comm", "match_by", "confidence"),
    [
        ("api", 7, 7, "api", ("pid", "comm"), "high"),
        ("api", 7, 9, "api", ("comm",), "medium"),
        ("a-name-longer-than-15", 7, 9, "a-name-longer-t", ("comm",), "medium"),
        ("api", 7, 9, "other", ("time",), "low"),
        # dockerd's own pid is no match.
        ("0f1e2d3c4b5a", 1034, 1034, "other", ("time",), "low"),
    ],
)
def test_a_kill_is_matched_by_what_both_records_have_in_common(
    ident: str,
    log_pid: int,
    pid: int,
    comm: str,
    match_by: tuple[str, ...],
    confidence: str,
    tmp_path: Path,
) -> None:
    lines = journal(log_pid, ident, KILL.format(pid=pid, comm=comm, kb=500_000), records(5))
    (found,) = gca.read(logfile(tmp_path / "log", lines)).post_mortems()
    assert (found.match_by, found.confidence) == (match_by, confidence)
    assert found.last_gc_num == 5


def test_a_kill_is_matched_by_its_container_id(tmp_path: Path) -> None:
    identifier = "0f1e2d3c4b5a" + "6" * 52
    context = (
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
        f"oom_memcg=/docker/{identifier},task_memcg=/docker/{identifier},task=app,pid=9,uid=0"
    )
    lines = journal(
        1034, identifier[:12], KILL.format(pid=9, comm="app", kb=500_000), records(5)
    )
    lines.insert(-1, f"2026-02-03T10:00:06Z h kernel: {context}")
    (found,) = gca.read(logfile(tmp_path / "log", lines)).post_mortems()
    assert found.match_by == ("container",)


def test_a_kill_on_another_host_is_not_matched_by_pid(tmp_path: Path) -> None:
    lines = journal(7, "api", KILL.format(pid=7, comm="api", kb=500_000), records(5))
    lines[-1] = lines[-1].replace(" h kernel", " other kernel")
    (found,) = gca.read(logfile(tmp_path / "log", lines)).post_mortems()
    assert found.match_by in ((), ("time",))


def test_a_live_heap_that_does_not_fit_cannot_be_prevented_by_go(tmp_path: Path) -> None:
    line = (
        "gc {n} @{n}.016s 2%: 0.018+0.19+0.058 ms clock, 0.037+0.058/0.035/0.025+0.11 ms cpu, "
        "500->505->500 MB, 510 MB goal, 0 MB stacks, 0 MB globals, 2 P"
    )
    lines = journal(
        7,
        "api",
        KILL.format(pid=7, comm="api", kb=522_000),
        [line.format(n=n) for n in range(1, 9)],
    )
    run = gca.read(logfile(tmp_path / "log", lines), container_limit="512MiB")
    (found,) = run.post_mortems()
    assert found.preventable == "no"
    assert any("live heap alone" in text for text in found.reading)
    assert "GOMEMLIMIT=" not in " ".join(found.advice)


def test_exit_code_137_alone_proves_nothing(tmp_path: Path) -> None:
    state = {"Status": "exited", "OOMKilled": False, "ExitCode": 137, "Error": ""}
    (found,) = gca.read(logfile(tmp_path / "state", [json.dumps(state)])).post_mortems()
    assert not found.proven
    assert found.preventable == "cannot tell"
    assert "does not prove" in found.reading[0]


def test_limits_of_containers_become_settings(tmp_path: Path) -> None:
    run = gca.read("samples/describe-pod.txt")
    assert run.settings.value("container_limit_mib") == 512
    assert run.settings.value("memory_limit_mib") == 400
    given = gca.read("samples/describe-pod.txt", container_limit="1GiB", gogc="off")
    assert given.settings.value("container_limit_mib") == 1024
    assert given.settings.value("gogc") == "off"


def test_the_held_heap_is_compared_with_the_needed_heap(tmp_path: Path) -> None:
    mb = 1 << 20
    rows = [f"{375 * mb},{150 * mb},{300 * mb},{60 * mb},0,{n}" for n in range(1, 60)]
    (found,) = gca.read(logfile(tmp_path / "seed.csv", rows)).memory()
    assert (found.held_max_mib, found.needed_max_mib) == (375, 150)
    assert "375 MiB for 150 MiB" in found.advice[0]
    assert any("sync.Pool" in text for text in found.advice)
    rows = [
        f"{175 * mb},{150 * mb},{160 * mb},{10 * mb},0,{20 + n // 30},{n}" for n in range(1, 60)
    ]
    (recycled,) = gca.read(logfile(tmp_path / "recycled.csv", rows)).memory()
    assert recycled.pool_hit_share == pytest.approx(1 - 1 / 58, abs=0.02)
    assert any("buffer pool works" in text for text in recycled.advice)


def test_runs_with_the_same_work_and_far_more_gc_are_compared() -> None:
    run = gca.read("samples/gomemlimit-paper.txt", "samples/gomemlimit-paper-inspect.txt")
    text = " ".join(str(run.summary()).split())
    for word in ("344 instead of 31 GC cycles", "6m 24s instead of 1m 25s", "xit code 137"):
        assert word in text


def test_gc_cpu_is_a_share_of_the_cpu_time_that_the_unit_used() -> None:
    report = gca.read("samples/oom-journal.jsonl").report()
    (found,) = report.analysis.unit_cpu
    assert found.cpu_s == pytest.approx(1.217)
    assert found.gc_cpu_share == pytest.approx(found.gc_cpu_s / 1.217)  # type: ignore[operator]
    assert found.complete


def test_the_sources_of_a_service_may_come_in_any_order(tmp_path: Path) -> None:
    lines = [f"2026-02-03T10:00:{n:02}Z {line}" for n, line in enumerate(records(9))]
    log = logfile(tmp_path / "run.log", lines)
    kill = logfile(
        tmp_path / "kern.log",
        [f"2026-02-03T10:00:10Z h kernel: {KILL.format(pid=1, comm='app', kb=400_000)}"],
    )
    stats = logfile(
        tmp_path / "stats.csv",
        ["time,HeapSys,HeapAlloc,Sys", "2026-02-03T10:00:05Z,1000000,500000,2000000"],
    )
    for order in ((log, kill, stats), (stats, kill, log)):
        run = gca.read(*order)
        assert (len(run.cycles), len(run.oom_kills), len(run.memstats)) == (9, 1, 1)
        (found,) = run.post_mortems()
        assert found.last_gc_num == 9
        assert found.go_other_mib == pytest.approx(1_000_000 / 2**20)


def test_two_services_in_one_log_give_a_warning(tmp_path: Path) -> None:
    lines = [
        f"2026-02-03T10:00:0{n}Z h {who}[{n}]: {records(1)[0]}"
        for n, who in enumerate(("api", "web"))
    ]
    warnings = gca.read(logfile(tmp_path / "log", lines)).summary().warnings
    assert any("2 services (api, web)" in text for text in warnings)


def test_kind_and_columns_override(tmp_path: Path) -> None:
    rows = logfile(tmp_path / "t.csv", ["1,2,3", "4,5,6"])
    with pytest.raises(UnreadableInputError, match="columns="):
        gca.read(rows)
    run = gca.read(rows, columns=["HeapSys", "HeapAlloc", "mine"])
    assert run.memstats["heap_alloc_bytes"].to_list() == [2, 5]
    assert run.memstats["mine"].to_list() == [3, 6]
    text = logfile(tmp_path / "t.json", ['{"a":', records(1)[0]])
    with pytest.raises(UnreadableInputError, match=":2: invalid JSON at column 1"):
        gca.read(text)
    assert len(gca.read(text, kind="log").cycles) == 1


def test_a_damaged_row_is_kept_with_its_reason(tmp_path: Path) -> None:
    rows = ["HeapSys,HeapAlloc,NumGC", "1,2,3", "1,x,3", "1,2"]
    run = gca.read(logfile(tmp_path / "t.csv", rows))
    assert len(run.memstats) == 1
    assert run.rejected.select("line_no", "reason").rows() == [
        (3, "column HeapAlloc: 'x' is not a number"),
        (4, "2 cells instead of 3"),
    ]


def test_a_decompression_bomb_is_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(b"\n" * (64 << 20)))
    with pytest.raises(UnreadableInputError, match="unpack_limit="):
        gca.read(bomb, unpack_limit="16MiB")
