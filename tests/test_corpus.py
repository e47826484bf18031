"""Real logs with known truth: what was printed is read, and what it means comes out right."""

from __future__ import annotations

import json
from functools import cache
from statistics import median
from typing import Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.summary import Summary, summarize
from tests.conftest import CORPUS

RUNS = {
    run["dir"]: run
    for run in json.loads((CORPUS / "gctrace/manifest.json").read_text())["runs"]
}
OLD = sorted(path.stem for path in (CORPUS / "gctrace/pre-1.9").glob("*.json"))
WILD = sorted(
    path.stem
    for path in (CORPUS / "wild").glob("*.json")
    if json.loads(path.read_text()).get("kind") in ("gctrace", "decoy")
)

# Our columns by the names of the sidecars.
OF_OLD = {
    "n": "gc_num", "start_s": "start_s", "util": "gc_cpu_since_start_pct", "leakcheck": "leak_check",
    "w_sweepterm": "stw_sweep_term_ms", "w_markterm": "stw_mark_term_ms",
    "c_sweepterm": "stw_sweep_term_cpu_ms", "c_markterm": "stw_mark_term_cpu_ms",
    "heap0_mb": "heap_start_mib", "heap1_mb": "heap_end_mib", "heap2_mb": "heap_live_mib",
    "goal_mb": "heap_goal_mib", "p": "procs", "forced": "forced", "shape": "format",
}  # fmt: skip
OF_WILD = {
    "line": "line_no", "n": "gc_num", "t_s": "start_s", "gc_cpu_percent": "gc_cpu_since_start_pct",
    "stw_sweep_term_ms": "stw_sweep_term_ms", "stw_mark_term_ms": "stw_mark_term_ms",
    "sweep_term_cpu_ms": "stw_sweep_term_cpu_ms", "mark_term_cpu_ms": "stw_mark_term_cpu_ms",
    "heap_start_mb": "heap_start_mib", "heap_end_mb": "heap_end_mib",
    "heap_live_mb": "heap_live_mib", "heap_goal_mb": "heap_goal_mib", "stacks_mb": "stacks_mib",
    "globals_mb": "globals_mib", "procs": "procs", "forced": "forced",
}  # fmt: skip
CPU_OF_WILD = {
    "assist_cpu_ms": "assist_cpu_ms",
    "bg_cpu_ms": "background_cpu_ms",
    "idle_cpu_ms": "idle_cpu_ms",
}


@cache
def run_of(name: str) -> gca.Run:
    return gca.read(str(CORPUS / "gctrace" / name / "run.log"))


def truths(name: str) -> list[dict[str, Any]]:
    return [
        json.loads(p.read_text())
        for p in sorted((CORPUS / "gctrace" / name).glob("truth*.json"))
    ]


@cache
def against_truth() -> list[tuple[str, Summary, dict[str, Any]]]:
    """Each program start: up to the cycle at which the program took its own measure."""
    found = []
    for name in RUNS:
        run = run_of(name)
        for process, truth in enumerate(truths(name)):
            mine = (pl.col("process") == process) & (pl.col("gc_num") <= truth["NumGC"])
            rows = run.processes.filter(process=process)
            found.append((name, summarize(run.cycles.filter(mine), rows), truth))
    return found


@pytest.mark.parametrize("name", RUNS)
def test_every_line_of_a_run_is_counted(name: str) -> None:
    run, expected = run_of(name), RUNS[name]
    assert len(run.processes) == expected["processes"]
    assert len(run.cycles) == expected["gc_lines_total"]
    assert run.cycles["repaired"].sum() == expected["gc_lines_torn"]
    assert run.cycles["forced"].sum() == expected["gc_lines_marked_forced"]
    assert run.cycles["leak_check"].sum() == expected["gc_lines_leak_check"]
    assert run.analysis.log.runtime_lines == expected["other_runtime_lines"]
    assert len(run.rejected) == 0


@pytest.mark.parametrize("name", RUNS)
def test_cycle_numbers_of_a_run_have_no_gap(name: str) -> None:
    processes = run_of(name).processes
    assert processes["missing_cycles"].sum() == 0
    assert processes["first_gc"].to_list() == [1] * len(processes)


@pytest.mark.parametrize("name", RUNS)
def test_the_go_version_is_within_the_range_that_the_lines_show(name: str) -> None:
    def key(version: str) -> tuple[int, ...]:
        return tuple(map(int, version.split(".")))

    version = key(RUNS[name]["go_version"].removeprefix("go").rpartition(".")[0])
    for row in run_of(name).processes.iter_rows(named=True):
        assert key(row["go_version_min"]) <= version
        assert row["go_version_max"] is None or version <= key(row["go_version_max"])


def test_pauses_add_up_to_what_the_runtime_measured() -> None:
    off = [
        summary.stw_total_ms / (truth["PauseTotalNs"] / 1e6) - 1
        for name, summary, truth in against_truth()
        # Leak checks restart mark termination; that pause is not in the printed ones.
        if summary.stw_total_ms is not None and not RUNS[name]["gc_lines_leak_check"]
    ]
    assert median(map(abs, off)) < 0.01
    assert max(map(abs, off)) < 0.025


def test_gc_cpu_is_what_the_runtime_measured() -> None:
    for name, summary, truth in against_truth():
        if summary.cycles < 20:
            continue
        version = tuple(map(int, RUNS[name]["go_version"].removeprefix("go").split(".")))
        real = truth["GCCPUFraction"]
        allowed = max(0.05 * real, 0.005) if version < (1, 23) else max(0.08 * real, 0.01)
        assert summary.gc_cpu_share == pytest.approx(real, abs=allowed), name


def test_allocation_is_what_the_runtime_measured() -> None:
    """At the end of the last cycle, between the two samples of MemStats around it."""
    for name in RUNS:
        for (_, summary, truth), suffix in zip(
            [entry for entry in against_truth() if entry[0] == name],
            [""] if RUNS[name]["processes"] == 1 else [".1", ".2"],
            strict=True,
        ):
            samples = pl.read_csv(CORPUS / "gctrace" / name / f"memstats{suffix}.csv")
            last = truth["cycles"][-1]["pause_end_unix_ns"]
            unix_ns, total = pl.col("unix_ns"), pl.col("TotalAlloc") / 2**20
            before, after = samples.select(
                total.filter(unix_ns <= last).max().fill_null(0).alias("before"),
                total.filter(unix_ns >= last).min().fill_null(truth["TotalAlloc"] / 2**20),
            ).row(0)
            low, high = 0.95 * before, 1.05 * after
            assert summary.alloc_total_mib is not None
            assert low <= summary.alloc_total_mib <= high, name


def test_undamaged_logs_do_not_contradict_themselves() -> None:
    checks = [summary.log_check_points for _, summary, _ in against_truth()]
    assert max(abs(check) for check in checks if check is not None) < 0.3


@pytest.mark.parametrize("name", OLD)
def test_lines_of_old_go_are_read_as_printed(name: str) -> None:
    sidecar = json.loads((CORPUS / f"gctrace/pre-1.9/{name}.json").read_text())
    run = gca.read(str(CORPUS / f"gctrace/pre-1.9/{name}.log"))
    assert len(run.cycles) == sidecar["gc_cycles"]
    assert run.cycles["forced"].sum() == sidecar["forced"]
    assert len(run.rejected) == 0
    if not sidecar["gc_cycles"]:
        assert sum(run.analysis.log.runtime_lines.values()) == sidecar["lines"]
        return
    pauses = run.cycles.select(pl.col("stw_sweep_term_ms", "stw_mark_term_ms").sum())
    total = sum(pauses.row(0))
    assert total == pytest.approx(sidecar["total_stw_ms"])
    for row, expected in zip(
        run.cycles.iter_rows(named=True), sidecar["expected"], strict=True
    ):
        stale = row["forced"] and row["concurrent_mark_ms"] == 0
        for theirs, ours in OF_OLD.items():
            if theirs in expected:
                wanted = "gc13" if expected[theirs] == "gc14" else expected[theirs]
                assert row[ours] in (wanted, expected[theirs], "gc14"), (theirs, row)
        if "c_assist" in expected:
            assert row["assist_cpu_ms"] == (None if stale else expected["c_assist"])
        if "w_scan" in expected:
            marked = expected["w_scan"] + expected["w_installwb"] + expected["w_mark"]
            assert row["concurrent_mark_ms"] == pytest.approx(marked)


@pytest.mark.parametrize("name", WILD)
def test_excerpts_from_the_wild_are_read_as_posted(name: str) -> None:
    sidecar = json.loads((CORPUS / f"wild/{name}.json").read_text())
    run = gca.read(str(CORPUS / f"wild/{name}.log"))
    joined = "expected_joined_cycle" in sidecar
    assert len(run.cycles) == sidecar["n_gc_cycles"] + joined
    assert len(run.processes) >= sidecar["n_gc_runs"]
    for expected in sidecar["expected_cycles"]:
        row = run.cycles.row(by_predicate=pl.col("line_no") == expected["line"], named=True)
        for theirs, ours in OF_WILD.items():
            value = expected.get(theirs)
            if value is not None and ours != "forced":
                no_goal = ours == "heap_goal_mib" and value >= 1 << 40
                assert row[ours] == (None if no_goal else value), theirs
        if expected.get("mark_ms") is not None and expected["format"] == "go1.6+":
            assert row["concurrent_mark_ms"] == expected["mark_ms"]
            stale = row["forced"] and expected["mark_ms"] == 0
            for theirs, ours in CPU_OF_WILD.items():
                assert row[ours] == (None if stale else expected[theirs])
        if "pause_total_ms" in expected:
            assert row["stw_mark_term_ms"] == pytest.approx(expected["pause_total_ms"])
    damaged = set() if joined else set(sidecar["expected_malformed_lines"])
    assert set(run.rejected["line_no"]) == damaged
    assert sum(len(run.table(table)) for table in ("scavenges",)) == len(
        sidecar["scavenger_lines"]
    )
    assert len(run.pacer) == len(sidecar["pacer_lines"])
    assert run.analysis.log.runtime_lines.get("forcegc", 0) == len(
        sidecar["gc_forced_marker_lines"]
    )


def test_a_record_wrapped_by_hand_is_joined_and_marked() -> None:
    sidecar = json.loads((CORPUS / "wild/experiment-line-wrapped-by-hand.json").read_text())
    row = gca.read(str(CORPUS / "wild/experiment-line-wrapped-by-hand.log")).cycles.row(
        0, named=True
    )
    expected = sidecar["expected_joined_cycle"]
    assert row["repaired"]
    assert (row["heap_goal_mib"], row["procs"]) == (expected["heap_goal_mb"], expected["procs"])
    assert row["background_cpu_ms"] == expected["bg_cpu_ms"]
