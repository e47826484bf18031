"""Several inputs are read as one log, in any order and in any pieces."""

from __future__ import annotations

import io
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
    text = logfile(tmp_path / "t.json", ['{"a":', records(1)[0]])
    with pytest.raises(UnreadableInputError, match=":2: invalid JSON at column 1"):
        gca.read(text)
    assert len(gca.read(text, kind="log").cycles) == 1
