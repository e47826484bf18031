"""Metrics before and after a change, with the comparison of the same runs' gctrace as truth."""

from __future__ import annotations

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.compare.change import CONTENDED
from gctrace_analyzer.cli import main
from tests.helpers.metrics import CORPUS

OWN = CORPUS / "own"
FIGURES = (
    "gc_per_s",
    "gc_cpu_share",
    "alloc_mib_per_s",
    "live_heap_p50_mib",
    "heap_goal_p50_mib",
)


@pytest.mark.parametrize("door", ["query-raw.json.gz", "runtime-metrics.jsonl.gz"])
def test_changes_are_those_that_gctrace_shows(door: str) -> None:
    sides = [OWN / setting / door for setting in ("gogc100", "gogc200")]
    logs = [OWN / setting / "run.log.gz" for setting in ("gogc100", "gogc200")]
    found, truth = gca.compare(*sides), gca.compare(*logs)
    for name in FIGURES:
        now, then = found[name], truth[name]
        assert now.verdict == then.verdict, name
        # Other work took the CPUs.
        assert now.no_verdict_because == then.no_verdict_because, name
        if now.no_verdict_because == CONTENDED:
            continue
        assert now.delta is not None
        assert now.delta_low is not None
        assert now.delta_high is not None
        assert then.delta is not None
        assert now.delta_low <= then.delta <= now.delta_high, name


def test_the_new_setting_is_predicted_from_metrics() -> None:
    found = gca.compare(*(OWN / each / "query-raw.json.gz" for each in ("gogc100", "gogc200")))
    row = found.rows()["gc_per_s"]
    assert row["expected_low"] < row["measured"] < row["expected_high"]
    assert "GOGC 100 → 200" in str(found)
    assert "first 0.5 s" not in str(found)


def test_too_few_scrapes_give_no_verdict() -> None:
    found = gca.compare(
        *(OWN / each / "query_range-15s.json.gz" for each in ("gogc100", "gogc200"))
    )
    assert found.frame["delta_low"].null_count() == len(found.frame)
    assert "too little evidence" in str(found)
    assert (
        "a run has only 3 intervals; rates, pauses, heap sizes and allocation are compared from 5"
        in " ".join(str(found).split())
    )


def test_gctrace_is_compared_with_metrics_and_a_note() -> None:
    found = gca.compare(OWN / "gogc100" / "run.log.gz", OWN / "gogc200" / "query-raw.json.gz")
    assert found["gc_per_s"].verdict == "better"
    assert "before is from gctrace, the other side from metrics" in " ".join(str(found).split())
    assert "go_version" not in {each.what for each in found.differences}


def test_processes_of_a_service_are_runs() -> None:
    run = gca.read(OWN / "gogc100" / "query-raw.json.gz", OWN / "gogc200" / "query-raw.json.gz")
    assert len(run.processes) == 2
    row = gca.compare(run, run).rows()["gc_per_s"]
    assert (row["before_runs"], row["after_runs"], row["verdict"]) == (2, 2, "~")


def test_the_command_compares_files_of_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    sides = [str(OWN / each / "memstats.csv.gz") for each in ("gogc100", "gogc200")]
    assert main(["compare", *sides, "-f", "csv"]) == 0
    printed = pl.read_csv(capsys.readouterr().out.encode())
    row = printed.filter(metric="gc_per_s").row(0, named=True)
    assert row["verdict"] == "better"


def test_a_headline_says_that_other_work_may_explain_it() -> None:
    """The report of the first side says so: pauses of 145 ms."""
    logs = [f"samples/metrics/gogc{gogc}.json.gz" for gogc in (100, 200)]
    text = " ".join(str(gca.compare(*logs)).split())
    doubt = "same load, but other work or a CPU quota probably held up threads."
    assert f"52 % fewer cycles for 45 % more heap; {doubt}" in text
    assert "gogc100.json.gz (the two pauses of a GC cycle take up to 145 ms together)" in text
    runs = [gca.read(log) for log in (logs[0], *["samples/steady-go1.26.log"] * 2)]
    assert "may have held up" not in str(gca.compare(runs, runs[1:])), "one of three runs"
