"""Findings of several processes, their order and their causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.caveats import MOST_DIAGNOSED, MOST_SHORT
from gctrace_analyzer.analysis.rules.finding import Finding, frame
from gctrace_analyzer.analysis.rules.levels import levels
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.facts import log_of

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.rules.finding import Severity

BUSY = log_of(60, every=0.02, background=12)


def test_a_finding_of_several_processes_is_listed_once() -> None:
    findings = read_text(BUSY * 3).findings().filter(id="GC001")
    assert len(findings) == 1
    assert "The same is true of 2 other processes" in findings["evidence"][0]
    assert "of another process" in read_text(BUSY * 2).findings()["evidence"][0]


@pytest.mark.parametrize(("cycles", "most"), [(3, MOST_SHORT), (20, MOST_DIAGNOSED)])
def test_of_a_crash_loop_only_the_longest_processes_are_diagnosed(
    cycles: int, most: int
) -> None:
    loop = log_of(cycles) * (MOST_DIAGNOSED + 5)
    run = read_text(loop + BUSY)
    assert len(run.processes) == MOST_DIAGNOSED + 6
    (caveat,) = [each for each in run.summary().warnings if "findings" in each]
    assert f"{most} processes with the most cycles of {len(run.processes)}" in caveat
    finding = run.findings().filter(id="GC001")
    assert finding["process"].to_list() == [MOST_DIAGNOSED + 5]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (log_of(19) * 10, None),  # as many short ones as are looked at
        (log_of(19) * 11, 10),
        (log_of(20) * 11, None),
        (log_of(20) * 12 + log_of(19) * 3, 12),
    ],
)
def test_few_of_the_short_processes_are_diagnosed(text: str, found: int | None) -> None:
    run = read_text(text)
    caveat = [each for each in run.summary().warnings if "findings" in each]
    assert len(caveat) == (found is not None)
    assert all(f"of the {found} processes" in each for each in caveat)


def test_a_short_process_next_to_a_long_one_is_not_reported() -> None:
    long = log_of(600)
    assert "GC042" in set(read_text(log_of(5)).findings()["id"])
    assert "GC042" not in set(read_text(log_of(5) + long).findings()["id"])


def test_the_worst_findings_come_first_and_effects_after_causes() -> None:
    for path in sorted(SAMPLES.glob("*.log")):
        findings = gca.read(path).findings()
        ranks = [("bad", "warn", "info", "ok").index(each) for each in findings["severity"]]
        assert ranks == sorted(ranks)
        for severity in findings["severity"].unique():
            explained = findings.filter(severity=severity)["because_of"].is_not_null()
            assert explained.to_list() == sorted(explained.to_list())
        assert set(findings["because_of"].drop_nulls()) <= set(findings["id"])


def test_a_process_without_cycles_has_no_findings() -> None:
    assert gca.read(SAMPLES / "describe-pod.txt").findings().filter(id="GC044").is_empty()


def finding(rule_id: str, severity: Severity, *examples: str) -> Finding:
    return Finding(
        rule_id, "a-name", severity, "It happened.", "Act.", "test", examples=examples
    )


def test_the_lines_to_look_at_are_part_of_the_evidence_of_a_row() -> None:
    table = frame([finding("GC001", "bad", "a.log:1", "a.log:2"), finding("GC002", "info")])
    assert table["evidence"].to_list() == ["It happened (a.log:1, a.log:2).", "It happened."]
    assert isinstance(table, pl.DataFrame)


def test_levels_agree_with_the_findings() -> None:
    summary = read_text(BUSY).summary()
    assert levels(summary, [], DEFAULT) == dict.fromkeys(("gc_cpu", "assist", "pauses"), "ok")
    both = levels(summary, [finding("GC001", "bad"), finding("GC005", "warn")], DEFAULT)
    assert (both["gc_cpu"], both["assist"], both["pauses"]) == ("bad", "warn", "ok")


def test_unknown_figures_have_no_level() -> None:
    summary = gca.read(SAMPLES / "go1.4.log").summary()
    assert set(levels(summary, [], DEFAULT)) == {"pauses"}
    growing = log_of(60, every=5, live=lambda n: 100 + 2 * n, goal=lambda n: 200 + 4 * n)
    assert "live_heap" in levels(read_text(growing).summary(), [], DEFAULT)


def test_episodes_are_of_the_diagnosed_processes() -> None:
    thrashing = log_of(16, every=0.05, live=100, goal=100, start=100, end=101)
    some = read_text(thrashing * MOST_SHORT).episodes()
    many = read_text(thrashing * (2 * MOST_SHORT)).episodes()
    assert some["process"].n_unique() == many["process"].n_unique() == MOST_SHORT
