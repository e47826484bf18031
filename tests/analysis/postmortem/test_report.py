"""Post-mortems: kills matched to processes, and what dumps and units show."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from tests.helpers.corpus import INPUTS, expectation, named, read
from tests.helpers.logs import KILL, logfile, read_lines, records

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
    assert "not proven" in found.reading[0]


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


def test_a_kill_for_memory_outside_the_heap_is_not_preventable_by_go(tmp_path: Path) -> None:
    lines = [
        f"2026-02-03T10:00:{n:02}Z h api[7]: gc {n} @{n}.016s 0%: 0.018+0.19+0.058 ms clock, "
        "0.037+0.058/0.035/0.025+0.11 ms cpu, 4->4->1 MB, 5 MB goal, 2 P"
        for n in range(1, 20)
    ]
    lines.append(f"2026-02-03T10:00:20Z h kernel: {KILL.format(pid=7, comm='api', kb=523_000)}")
    (found,) = read_lines(tmp_path, *lines, container_limit="512MiB").post_mortems()
    assert found.preventable == "cannot tell"
    assert not any("GOMEMLIMIT=" in text for text in found.advice)
