"""Real programs, healthy and ailing: the verdict names the cause that was given to each run."""

from __future__ import annotations

import json
from functools import cache

import pytest

import gctrace_analyzer as gca
from tests.conftest import ROOT

STATES = ROOT / "tests" / "corpus" / "states"
RUNS = {row["dir"]: row for row in json.loads((STATES / "manifest.json").read_text())["runs"]}

HEALTHY = {name for name, row in RUNS.items() if row["setting"] == "gogc100"}
# The causes, as the ids of findings, that are right for a state.
CAUSES = {
    "low-gogc": {"GC045"},
    "low-limit": {"GC016", "GC015"},
    "off-x0.8": {"GC016", "GC015"},
    "leak-limit": {"GC021"},
    "forced": {"GC024"},
    "few-cpus": {"GC012", "GC013"},
}
# A heap that outgrows a limit is a cause of its own: etcd keeps its history, NATS its messages.
GROWS = {"etcd/low-limit", "etcd/off-x0.8", "nats/off-x0.8"}
# At GOGC=10 these spend 1 to 4 % of the CPU on GC, which is not worth a warning.
CHEAP = {
    "caddy-proxy/low-gogc", "nats/low-gogc", "nsqd/low-gogc", "pushgateway/low-gogc",
    "restic/low-gogc",
}  # fmt: skip
# The live heap is 1 to 4 MiB, and sizes are printed in whole MiB.
TOO_SMALL = {"pushgateway/off-x0.8"}
# Six cycles of a growing heap, without a limit.
SHORT_LEAKS = {"nats/leak", "nsqd/leak"}
SICK = sorted(set(RUNS) - HEALTHY - CHEAP - TOO_SMALL - SHORT_LEAKS)


@cache
def run_of(name: str) -> gca.Run:
    return gca.read(STATES / name / "run.log.gz")


@pytest.mark.parametrize("name", sorted(HEALTHY | CHEAP | SHORT_LEAKS))
def test_a_healthy_program_gets_nothing_above_a_note(name: str) -> None:
    run = run_of(name)
    severities = set(run.findings()["severity"])
    assert severities <= {"ok", "info"}
    verdict = run.report().verdict
    assert verdict is not None
    assert verdict.level in ("ok", "info")
    assert not verdict.action.startswith("Set ")


@pytest.mark.parametrize("name", SICK)
def test_the_verdict_names_the_cause(name: str) -> None:
    run = run_of(name)
    verdict = run.report().verdict
    assert verdict is not None
    expected = CAUSES[RUNS[name]["setting"]] | ({"GC021"} if name in GROWS else set())
    assert verdict.finding in expected
    assert verdict.level in ("warn", "bad")
    assert verdict.action


@pytest.mark.parametrize("name", SICK)
def test_a_sick_program_gets_its_cause_and_at_most_two_other_problems(name: str) -> None:
    findings = run_of(name).findings()
    roots = findings.filter(
        findings["severity"].is_in(["warn", "bad"]) & findings["because_of"].is_null()
    )
    assert 1 <= len(roots) <= 3


@pytest.mark.parametrize("name", sorted(RUNS))
def test_the_advice_does_not_contradict_the_findings(name: str) -> None:
    run = run_of(name)
    verdict, first = run.report().verdict, run.recommend().row(0, named=True)
    assert verdict is not None
    changes = first["now"] is False
    text = str(run.summary())
    if verdict.level == "ok" and not changes:
        assert "Leave the settings as they are" in text
    if "Raise GOGC" in verdict.action:
        assert changes or not run.report().advice.is_available
    ids = set(run.findings()["id"])
    if "GC045" in ids:
        assert not ids & {"GC014", "GC015", "GC016"}


@pytest.mark.parametrize("name", sorted(RUNS))
def test_thrashing_is_one_state_not_a_series_of_blocks(name: str) -> None:
    run = run_of(name)
    thrash = run.episodes().filter(kind="limit-thrash")
    assert len(thrash) <= 3
    assert len(run.findings().filter(id="GC016")) <= 1
    assert thrash["active_share"].is_between(0, 1).all()


def test_with_more_processors_than_cpus_the_figures_are_of_the_cpus() -> None:
    summary = run_of("caddy-proxy/few-cpus").summary()
    assert summary.cpus == 2
    assert summary.gc_cpu_cores == pytest.approx(2 * (summary.gc_cpu_share or 0))
    text = str(summary)
    assert "16 procs · 2 CPUs" in text
    assert "of 2 CPUs" in text
