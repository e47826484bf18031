"""Every input of the corpus reads as the file next to it expects."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.errors import GctraceError
from tests.conftest import CORPUS, SAMPLES
from tests.helpers.corpus import INPUTS, expectation, named, read

if TYPE_CHECKING:
    from pathlib import Path


TABLES = {"gc_cycles": "cycles", "oom_invocations_without_kill": "oom_invocations"}
NAMES = {
    "ts": "logged_at",
    "at_s": "start_s",
    "gc_cpu_pct": "gc_cpu_since_start_pct",
    "log_unit": "unit",
    "heap_start_mb": "heap_start_mib",
    "heap_end_mb": "heap_end_mib",
    "heap_live_mb": "heap_live_mib",
    "heap_goal_mb": "heap_goal_mib",
    "state": "status",
    "last_state": "last_status",
    "pause_total_s": "pause_total_ns",
    "rss_kb": "rss_bytes",
}
FREE = {("kernel_oom/k5.x-uid-pgtables-seed.log", "host")}
NOTES = {"ts_note", "ts_min"}
BROKEN_ERRORS = {
    "csv-unknown-columns.csv": ("date", "price", "HeapAlloc"),
    "empty.log": ("0 bytes",),
    "inspect-invalid.json": ("json:1:", "column"),
}


def expected_frames(path: Path) -> dict[str, Any]:
    expect = expectation(path)["expect"]
    if sibling := expect.get("same_frames_as"):
        return expected_frames(path.with_name(sibling))
    frames: dict[str, Any] = expect["frames"]
    return frames


def rows_of(run: gca.Run, table: str) -> list[dict[str, Any]]:
    frame = run.table(table)  # type: ignore[arg-type]  # a name from the sidecar
    if table == "cycles":
        identity = run.processes.select(
            "process", "host", "ident", "log_pid", "unit", "container", "pod", "stream"
        )
        frame = frame.join(identity, on="process", how="left", maintain_order="left")
    return frame.to_dicts()


def same(name: str, expected: Any, found: Any) -> bool:
    if name == "pause_total_s":
        return math.isclose(expected, found / 1e9)
    if name in ("ts", "started_at", "finished_at") and isinstance(expected, str):
        return bool(found == datetime.fromisoformat(expected).astimezone(UTC))
    if isinstance(expected, float) and found is not None:
        return math.isclose(expected, found, rel_tol=1e-9)
    return bool(expected == found)


@pytest.mark.parametrize(
    "path", [p for p in INPUTS if expectation(p)["expect"]["error"] is None], ids=named
)
def test_an_input_reads_as_its_sidecar_expects(path: Path) -> None:
    run = read(path)
    for table, frame in expected_frames(path).items():
        if table == "platform_memory_events":
            continue
        found = rows_of(run, TABLES.get(table, table))
        assert len(found) == frame["count"], f"{table}: {found}"
        for number, (expected, row) in enumerate(
            zip(frame.get("rows", []), found, strict=False)
        ):
            for name, value in (expected or {}).items():
                column = NAMES.get(name, name)
                if (
                    (named(path), name) in FREE
                    or name in NOTES
                    or (column == "name" and column not in row)
                ):
                    continue
                assert same(name, value, row[column]), (table, number, name, value, row[column])
    assert len(run.rejected) == expectation(path)["expect"]["skipped_malformed_count"], (
        run.rejected
    )


@pytest.mark.parametrize("name", BROKEN_ERRORS)
def test_unreadable_inputs_explain_why(name: str) -> None:
    with pytest.raises(GctraceError) as error:
        gca.read(CORPUS / "inputs" / "broken" / name)
    for word in (name, *BROKEN_ERRORS[name]):
        assert word in str(error.value)


def test_parts_of_a_log_are_one_process_in_any_order(tmp_path: Path) -> None:
    lines = (SAMPLES / "steady-go1.26.log").read_text().splitlines(keepends=True)
    older, newer = tmp_path / "run.log.1", tmp_path / "run.log"
    older.write_text("".join(lines[:20]))
    newer.write_text("".join(lines[20:]))
    for parts in ((older, newer), (newer, older)):
        assert gca.read(*parts).processes["missing_cycles"].to_list() == [0]


def test_dumps_and_kills_may_come_before_or_after_the_log() -> None:
    log, state = SAMPLES / "gomemlimit-paper.txt", SAMPLES / "gomemlimit-paper-inspect.txt"
    runs = gca.read(log, state), gca.read(state, log)
    assert runs[0].summary().to_dict() == runs[1].summary().to_dict()
    assert len(runs[0].post_mortems()) == len(runs[1].post_mortems()) == 1
    log, kill = SAMPLES / "leak-into-limit-go1.24.log", SAMPLES / "describe-pod.txt"
    runs = gca.read(log, kill), gca.read(kill, log)
    assert runs[0].summary().to_dict() == runs[1].summary().to_dict()
