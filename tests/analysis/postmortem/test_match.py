"""Kills are matched to the process that was killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from tests.helpers.logs import KILL, logfile, records

if TYPE_CHECKING:
    from pathlib import Path


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
