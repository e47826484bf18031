"""Figures from metrics, compared with the gctrace of the same run."""

from __future__ import annotations

from statistics import median

import polars as pl
import pytest

import gctrace_analyzer as gca
from tests.helpers.intervals import between_dumps
from tests.helpers.metrics import CORPUS, RECORDINGS, recording

ROUNDED = 0.5
"""Half a MiB is 6 % of the live heap of 8 MiB that caddy has."""


def _off(measured: float, true: float) -> float:
    return abs(measured / true - 1)


@pytest.mark.parametrize("name", RECORDINGS)
def test_cycles_per_second_agree_with_gctrace(name: str) -> None:
    found = recording(name)
    for process in found.processes():
        rate, truth = found.figures(process)["gc_per_s"], found.truth(process)
        if rate is None:
            assert "otlp" in name
            continue
        # An answer with steps has the values of one step and the time of another.
        steps = 2.0 if "query_range" in name else 1.0
        cycles = rate * truth["cycles"] / truth["gc_per_s"]
        assert _off(rate, truth["gc_per_s"]) <= 0.02 or abs(cycles - truth["cycles"]) <= steps


@pytest.mark.parametrize("name", RECORDINGS)
def test_pause_totals_agree_with_gctrace(name: str) -> None:
    found = recording(name)
    for process in found.processes():
        total, truth = found.figures(process)["stw_total_ms"], found.truth(process)
        if total is None:
            assert "otlp" in name or "runtime-metrics" in name
            continue
        assert _off(total, truth["stw_total_ms"]) <= (0.09 if "query_range" in name else 0.03)


@pytest.mark.parametrize("name", RECORDINGS)
def test_live_heaps_agree_with_gctrace(name: str) -> None:
    found = recording(name)
    for process in found.processes():
        live, truth = found.figures(process)["live_heap_p50_mib"], found.truth(process)
        if live is None:
            # Under a limit the live heap follows from the allocation per cycle.
            assert "otlp" in name
            assert "limit" in name
            continue
        off_mib = abs(live - truth["live_mib"])
        # Four scrapes of a minute can all hit large cycles.
        few = len(between_dumps(found.run).filter(process=process)) < 4
        assert off_mib <= max((0.20 if few else 0.15) * truth["live_mib"], ROUNDED)


def test_live_heaps_are_within_five_percent_in_the_median() -> None:
    errors = []
    for name in RECORDINGS:
        found = recording(name)
        for process in found.processes():
            live = found.figures(process)["live_heap_p50_mib"]
            if live is not None:
                errors.append(_off(live, found.truth(process)["live_mib"]))
    assert len(errors) > 40
    assert median(errors) <= 0.05


@pytest.mark.parametrize("name", RECORDINGS)
def test_marking_cpu_agrees_with_gctrace_where_metrics_have_it(name: str) -> None:
    found = recording(name)
    for process in found.processes():
        own = between_dumps(found.run).filter(process=process)
        if not own["pause_cpu_s"].count() or "query_range" in name:
            continue
        marking = pl.col("gc_cpu_s").sum() - pl.col("pause_cpu_s").sum()
        share = own.select(marking / pl.col("available_cpu_s").sum()).item()
        assert _off(share, found.truth(process)["mark_share"]) <= 0.05


@pytest.mark.parametrize("name", [each for each in RECORDINGS if "otlp" not in each])
def test_only_the_runs_that_thrash_have_an_episode_of_thrashing(name: str) -> None:
    found = recording(name).run
    kinds = set(found.episodes()["kind"])
    assert ("limit-thrash" in kinds) == ("thrash" in name)
    assert ("GC016" in set(found.findings()["id"])) == ("thrash" in name)


@pytest.mark.parametrize("name", [each for each in RECORDINGS if "restart/" in each])
def test_a_restart_begins_another_process(name: str) -> None:
    found = recording(name)
    one = any(word in name for word in ("memstats", "runtime-metrics"))
    assert len(found.processes()) == (1 if one else 2)


def test_every_layout_of_one_run_has_the_same_allocation() -> None:
    rates = {
        name: recording(name).run.summary().alloc_mib_per_s
        for name in RECORDINGS
        if name.startswith("own/gogc100/")
    }
    assert len(rates) >= 7
    assert all(_off(rate or 0, 113.5) <= 0.02 for rate in rates.values()), rates


def test_gctrace_and_the_runtime_differ_in_the_cpu_of_pauses_only() -> None:
    folder = CORPUS / "own/thrash-limit80"
    metrics = gca.read(folder / "runtime-metrics.jsonl.gz").memstats.drop_nulls("gc_cpu_s")
    first, last = metrics.row(0, named=True), metrics.row(-1, named=True)

    def counted(name: str) -> float:
        return float(last[name] - first[name])

    of_these = pl.col("gc_num").is_between(first["num_gc"] + 1, last["num_gc"])
    cycles = gca.read(folder / "run.log.gz").cycles.filter(of_these)

    def printed(*names: str) -> float:
        return float(cycles.select(pl.sum_horizontal(names).sum() / 1000).item())

    pauses = ("stw_sweep_term_cpu_ms", "stw_mark_term_cpu_ms")
    marking = ("assist_cpu_ms", "background_cpu_ms", "idle_cpu_ms")
    assert printed("assist_cpu_ms") == pytest.approx(counted("gc_cpu_assist_s"), rel=0.02)
    all_but_pauses = counted("gc_cpu_s") - counted("gc_cpu_pause_s")
    assert printed(*marking) == pytest.approx(all_but_pauses, rel=0.02)
    assert printed(*pauses) > 4 * counted("gc_cpu_pause_s")
