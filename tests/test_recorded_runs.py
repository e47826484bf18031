"""Runs of a program whose settings, sizes and times are known, read without knowing them."""

from __future__ import annotations

import gzip
import json
import math
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.testing import read_text
from tests.helpers.audit_gctrace import audit

if TYPE_CHECKING:
    from gctrace_analyzer import Run

RUNS = sorted((Path(__file__).parent / "data" / "runs").glob("*.log.gz"))


@cache
def run_of(name: str) -> Run:
    (path,) = (path for path in RUNS if path.name == f"{name}.log.gz")
    return gca.read(path)


def report_of(name: str) -> str:
    return re.sub(r"\s+", " ", run_of(name).to_markdown().replace("\\", ""))


def last_regime(name: str) -> dict[str, Any]:
    return run_of(name).regimes().row(-1, named=True)


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name.partition(".log")[0])
def test_no_statement_contradicts_its_log(path: Path) -> None:
    run = run_of(path.name.removesuffix(".log.gz"))
    text = gzip.decompress(path.read_bytes()).decode()
    assert audit(text, json.loads(run.to_json()), run.to_markdown()) == []


def test_goals_that_the_heap_raised_show_no_memory_limit() -> None:
    """GOGC went from 400 to 30 while the heap was above the new goal; there was no limit."""
    regime = last_regime("gogc-lowered-go1.24")
    assert regime["gogc_pct"] == 400
    assert regime["memory_limit_mib"] is None
    assert "memory limit" not in report_of("gogc-lowered-go1.24")


def test_go_1_19_counts_only_the_scanned_part_of_the_stacks_that_it_prints() -> None:
    """GOGC was 75, and 31 MiB of stacks were allocated."""
    regime = last_regime("stacks-go1.19")
    assert regime["gogc_pct_low"] <= 75 <= regime["gogc_pct_high"]
    assert "set by GOGC≤107" in report_of("stacks-go1.19")
    (path,) = (path for path in RUNS if path.name.startswith("stacks-go1.19"))
    newer = gca.read(path, go_version="1.22").regimes().row(-1, named=True)
    assert newer["gogc_pct_high"] < 75


def test_the_highest_goal_under_a_limit_bounds_it() -> None:
    """The limit was 330 MiB; it left 243 to 303 MiB to the heap."""
    regime = last_regime("limit-drifts-go1.21")
    assert regime["memory_limit_mib_low"] <= 330 <= regime["memory_limit_mib_high"]


def test_up_to_go_1_22_all_pauses_count_on_the_cpus_that_there_are() -> None:
    """GCCPUFraction was 0.1035 of GOMAXPROCS=4, with 2 CPUs."""
    summary = run_of("fewer-cpus-go1.22").summary()
    assert summary.gc_cpu_share_low is not None
    assert summary.gc_cpu_share_high is not None
    assert summary.gc_cpu_share_low < 2 * 0.1035 < 1.01 * summary.gc_cpu_share_high


def test_no_share_of_a_time_since_a_change_is_over_100_percent() -> None:
    report = report_of("limit-set-fewer-cpus-go1.26")
    assert re.search(r"since 4\.5 s .*? takes \d\d–100 % of the CPU", report)


def test_goals_at_the_live_heap_count_in_forced_cycles_too() -> None:
    assert "in 15 of 23 cycles" in report_of("thrash-forced-go1.19")


def test_an_inferred_low_gogc_has_the_range_that_its_goals_allow() -> None:
    """GOGC went from 75 to 30."""
    report = report_of("gogc-lowered-go1.14")
    assert "GOGC is low (23–34)" in report
    assert "may grow by only 23–34 % of the live heap" in report


def test_a_cache_that_filled_is_not_said_to_grow() -> None:
    report = report_of("cache-fewer-cpus-go1.26")
    assert "The live heap grew, and with it" in report
    assert "live heap grows" not in report


def test_a_goal_is_not_said_to_be_raised_where_a_block_may_only_fill_the_room() -> None:
    """A block as large as the room starts a cycle at its goal, as one that raises it does."""
    said = report_of("large-blocks")
    assert "median over time" in said
    assert "raised to the heap" not in said
    assert math.isfinite(run_of("large-blocks").summary().heap_goal_p50_mib or math.nan)


LINE = (
    "gc {n} @{at:.3f}s 14%: 0.01+5+0.01 ms clock, 0.04+0/{cpu}/0+0.04 ms cpu, 40->44->20 MB, "
    "40 MB goal, 0 MB stacks, 0 MB globals, 4 P\n"
)


def test_a_setting_advised_for_the_cost_after_the_start_up_names_that_cost() -> None:
    """The whole log has less than 10 %, so its figure would say that nothing is to be changed."""
    calm = [LINE.format(n=n + 1, at=0.01 + n * 0.05, cpu=1) for n in range(8)]
    busy = [LINE.format(n=9 + n, at=1.2 + n * 0.02, cpu=9) for n in range(90)]
    run = read_text("".join(calm + busy).replace(" 14%", " 9%"))
    first = run.recommend().row(0, named=True)
    assert not first["now"]
    assert "GC CPU is 11 % after the first 1.2 s, above 10 %" in first["why"]
    shown = run.report()
    assert shown.levels["gc_cpu"] == "info"
    assert "without start-up (first 1.2 s)" in str(run.summary())


def test_gc_cpu_that_is_low_since_the_start_up_is_said_to_be() -> None:
    """The whole log has 17 %: its start-up is not what settings are for."""
    fast = [LINE.format(n=n + 1, at=n * 0.008, cpu=20) for n in range(60)]
    slow = [LINE.format(n=61 + n, at=0.48 + n * 0.05, cpu=10) for n in range(40)]
    why = read_text("".join(fast + slow)).recommend()["why"]
    assert why[0] == "no change: GC CPU is 5.0 % after the first 530 ms, below 10 %"
