"""MemStats dumps and OOM kills."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.rules import memory
from gctrace_analyzer.analysis.rules.finding import DeathFacts, MemoryFacts
from gctrace_analyzer.analysis.thresholds import DEFAULT
from tests.helpers.logs import KILL, logfile, records

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


def dumps(tmp_path: Path, **sizes_mib: int) -> MemoryFacts:
    names, values = zip(*sizes_mib.items(), strict=True)
    lines = [",".join(names), *[",".join(str(size * MIB) for size in values)] * 2]
    run = gca.read(logfile(tmp_path / "stats.csv", lines))
    return MemoryFacts(run.memory()[0], DEFAULT)


@pytest.mark.parametrize(
    ("allocated", "goal", "found"),
    [
        (100, {}, 1),
        (200, {}, 0),  # the heap may be on its way to a goal of 400 MiB
        (200, {"NextGC": 220}, 1),
        (200, {"NextGC": 400}, 0),
        (350, {"NextGC": 360}, 0),
    ],
)
def test_partly_filled_spans_are_fragmentation_beyond_what_the_heap_fills_until_its_goal(
    allocated: int, goal: dict[str, int], found: int, tmp_path: Path
) -> None:
    heap = {"HeapSys": 400, "HeapInuse": 400, "HeapIdle": 0, "HeapReleased": 0, "Sys": 420}
    facts = dumps(tmp_path, **heap, HeapAlloc=allocated, **goal)
    assert len(list(memory.fragmentation.check(facts))) == found


def idle_dumps(tmp_path: Path, **sizes_mib: int) -> MemoryFacts:
    """A heap of 400 MiB, of which 300 are idle."""
    usual = {"HeapSys": 400, "HeapInuse": 100, "HeapIdle": 300, "HeapReleased": 0}
    return dumps(tmp_path, **usual | {"HeapAlloc": 90, "Sys": 420, "NextGC": 90} | sizes_mib)


@pytest.mark.parametrize(("released", "found"), [(0, 1), (250, 0)])
def test_idle_memory_that_is_not_returned_is_a_warning(
    released: int, found: int, tmp_path: Path
) -> None:
    facts = idle_dumps(tmp_path, HeapReleased=released)
    assert len(list(memory.unreleased_idle.check(facts))) == found


@pytest.mark.parametrize(("goal", "found"), [(100, 1), (190, 1), (300, 0), (380, 0)])
def test_idle_memory_below_the_heap_goal_is_used_again(
    goal: int, found: int, tmp_path: Path
) -> None:
    """Right after a cycle under GOGC=100, half of the heap goal is idle."""
    facts = idle_dumps(tmp_path, NextGC=goal)
    assert len(list(memory.unreleased_idle.check(facts))) == found


@pytest.mark.parametrize(
    ("idle", "found"),
    [((2, 2, 2, 2, 2, 300), 0), ((2, 300, 2, 300), 0), ((2, 300, 300, 280), 1), ((300,), 1)],
)
def test_memory_that_is_idle_only_in_the_last_dump_may_be_on_its_way_back(
    idle: tuple[int, ...], found: int, tmp_path: Path
) -> None:
    names = "HeapSys,HeapInuse,HeapIdle,HeapReleased,HeapAlloc,Sys,NextGC"
    sizes = ((400, 100, each, 0, 90, 420, 90) for each in idle)
    rows = [",".join(str(size * MIB) for size in row) for row in sizes]
    run = gca.read(logfile(tmp_path / "stats.csv", [names, *rows]))
    findings = [*memory.unreleased_idle.check(MemoryFacts(run.memory()[0], DEFAULT))]
    assert len(findings) == found
    assert not found or idle[-1] == 300 or "At least 280 MiB" in findings[0].evidence
    assert "whole run" not in str(run.summary())


@pytest.mark.parametrize(
    ("resident", "found"),
    [
        ((100, 120, 300, 500), 1),
        ((100, 300, 500), 0),  # too few
        ((300, 500, 300, 500), 0),  # no more than before
        ((1000, 1010, 1050, 1080), 0),  # little of it
        ((20, 20, 25, 60), 0),  # less than 64 MiB
    ],
)
def test_memory_outside_go_that_grows_is_a_warning(
    resident: tuple[int, ...], found: int, tmp_path: Path
) -> None:
    rows = [f"{40 * MIB},{10 * MIB},{size * MIB}" for size in resident]
    run = gca.read(logfile(tmp_path / "stats.csv", ["Sys,HeapReleased,RSS", *rows]))
    facts = MemoryFacts(run.memory()[0], DEFAULT)
    assert len(list(memory.off_heap_growth.check(facts))) == found
    beyond = resident[-1] - 30
    assert facts.memory.outside_mib in (None, beyond if beyond > 0 else 0)


def test_dumps_without_these_figures_give_no_finding(tmp_path: Path) -> None:
    facts = dumps(tmp_path, HeapAlloc=100, NumGC=1)
    assert not list(memory.fragmentation.check(facts))
    assert not list(memory.unreleased_idle.check(facts))


def deaths(path: Path) -> list[DeathFacts]:
    return [DeathFacts(death, DEFAULT) for death in gca.read(path).post_mortems()]


def test_a_kill_is_reported_with_its_off_heap_memory(tmp_path: Path) -> None:
    lines = [f"2026-02-03T10:00:{n:02}Z h api[7]: {line}" for n, line in enumerate(records(5))]
    kill = KILL.format(pid=7, comm="api", kb=500_000)
    (facts,) = deaths(
        logfile(tmp_path / "log", [*lines, f"2026-02-03T10:00:06Z h kernel: {kill}"])
    )
    (finding,) = memory.oom_kill.check(facts)
    assert finding.severity == "bad"
    assert finding.evidence == "OOM kill of api, 2.0 s after the last GC cycle."
    (off_heap,) = memory.off_heap_heavy.check(facts)
    assert off_heap.figures["off_heap_mib"] > 400
    assert not list(memory.oom_not_proven.check(facts))


def test_exit_code_137_without_a_record_is_not_called_an_oom_kill(tmp_path: Path) -> None:
    state = {"Status": "exited", "OOMKilled": False, "ExitCode": 137, "Error": ""}
    (facts,) = deaths(logfile(tmp_path / "state", [json.dumps(state)]))
    assert not list(memory.oom_kill.check(facts))
    assert not list(memory.off_heap_heavy.check(facts))
    (finding,) = memory.oom_not_proven.check(facts)
    assert "the container's state records no OOM kill" in finding.evidence
    assert finding.headline.startswith("The program ended with exit code 137")
    assert "perhaps" not in finding.headline


@pytest.mark.parametrize(
    ("proven", "off_heap", "resident", "found"),
    [
        (True, 20.1, 100.0, 1),
        (True, 20.0, 100.0, 0),
        (False, 90.0, 100.0, 0),
        (True, None, 100.0, 0),
        (True, 90.0, None, 0),
        (True, 90.0, 0.0, 0),
    ],
)
def test_much_memory_outside_the_heap_of_a_proven_kill_is_a_note(
    proven: bool, off_heap: float | None, resident: float | None, found: int, tmp_path: Path
) -> None:
    state = {"Status": "exited", "OOMKilled": True, "ExitCode": 137, "Error": ""}
    (facts,) = deaths(logfile(tmp_path / "state", [json.dumps(state)]))
    death = replace(facts.death, proven=proven, off_heap_mib=off_heap, resident_mib=resident)
    assert len(list(memory.off_heap_heavy.check(replace(facts, death=death)))) == found


@pytest.mark.parametrize(
    ("victim", "gap_s", "evidence"),
    [
        ("api", 2.0, "OOM kill of api, 2.0 s after the last GC cycle."),
        ("api", 0.0, "OOM kill of api."),
        (None, None, "OOM kill."),
    ],
)
def test_what_is_said_about_a_kill(
    victim: str | None, gap_s: float | None, evidence: str, tmp_path: Path
) -> None:
    state = {"Status": "exited", "OOMKilled": True, "ExitCode": 137, "Error": ""}
    (facts,) = deaths(logfile(tmp_path / "state", [json.dumps(state)]))
    death = replace(
        facts.death, kind="OOM kill", victim=victim, gap_s=gap_s, source="kern.log", line_no=3
    )
    (found,) = memory.oom_kill.check(replace(facts, death=death))
    assert found.evidence == evidence
    assert found.examples == ("kern.log:3",)
    nowhere = replace(facts, death=replace(death, source=None))
    assert next(iter(memory.oom_kill.check(nowhere))).examples == ()
