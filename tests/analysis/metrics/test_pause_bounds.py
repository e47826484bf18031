"""What totals, maxima and single pauses of metrics prove about the pauses of cycles."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from gctrace_analyzer.advise.verdict import verdict
from gctrace_analyzer.analysis.metrics.pause_bounds import CyclePauses, of_cycles
from gctrace_analyzer.present.sections.headline import WORDS
from gctrace_analyzer.units import duration_text
from tests.helpers.intervals import interval_rows
from tests.helpers.metrics import RECORDINGS, gctrace, recording

NONE = pl.DataFrame(schema={"row": pl.UInt32, "pause_ms": pl.Float64})
UNKNOWN: dict[str, Any] = {
    "new_max_ms": None,
    "longest_ms": None,
    "stw_total_ms": None,
    "pause_cpu_s": None,
}


def found(*rows: dict[str, Any], single: pl.DataFrame = NONE) -> CyclePauses:
    pauses = of_cycles(interval_rows(*({**UNKNOWN, **row} for row in rows)), single)
    assert pauses is not None
    return pauses


def test_the_total_of_one_cycle_is_its_pause() -> None:
    pauses = found(
        {"gc_cycles": 1, "stw_total_ms": 60.0}, {"gc_cycles": 1, "stw_total_ms": 0.2}
    )
    assert (pauses.cycles, pauses.max_ms) == (2, 60.0)
    assert pauses.p90_ms == 60.0
    assert not pauses.proven_short


def test_the_mean_is_a_lower_bound_of_the_longest() -> None:
    pauses = found({"gc_cycles": 4, "stw_total_ms": 24.0})
    assert (pauses.max_ms, pauses.exact) == (6.0, False)
    # One of 24 ms and three of none would do as well.
    assert pauses.p90_ms == pytest.approx(6.0)


def test_a_known_maximum_limits_how_few_cycles_share_the_total() -> None:
    row = {"gc_cycles": 10, "stw_total_ms": 80.0, "new_max_ms": 20.0, "longest_ms": 20.0}
    pauses = found(row)
    assert pauses.max_ms == 20.0
    # The other nine share at least 60 ms.
    assert pauses.p90_ms == pytest.approx(60 / 9)


def test_short_pauses_are_proven_by_their_total_or_their_maximum() -> None:
    assert found({"gc_cycles": 20, "stw_total_ms": 4.9}).proven_short
    assert not found({"gc_cycles": 20, "stw_total_ms": 5.1}).proven_short
    assert found({"gc_cycles": 20, "stw_total_ms": 60.0, "longest_ms": 4.0}).proven_short
    # The quantile is over the last 256 cycles only.
    assert not found({"gc_cycles": 257, "stw_total_ms": 60.0, "longest_ms": 4.0}).proven_short
    assert found({"gc_cycles": 300, "stw_total_ms": 14.9}).proven_short


def test_the_cpu_time_of_pauses_is_a_lower_bound() -> None:
    pauses = found({"gc_cycles": 1, "pause_cpu_s": 0.03, "procs": 2})
    assert pauses.max_ms == pytest.approx(15.0)
    assert not found({"gc_cycles": 1, "pause_cpu_s": 0.001, "procs": 2}).proven_short


def test_single_pauses_are_exact() -> None:
    single = pl.DataFrame(
        {"row": pl.Series([0, 0, 0], dtype=pl.UInt32), "pause_ms": [1.0, 2.0, 12.0]}
    )
    pauses = found({"gc_cycles": 3, "stw_total_ms": 15.0}, single=single)
    assert (pauses.cycles, pauses.exact, pauses.proven_short) == (3, True, False)
    assert (pauses.p50_ms, pauses.max_ms) == (2.0, 12.0)
    assert (pauses.p90_ms, pauses.p99_ms) == (12.0, 12.0)
    assert pauses.late_p99_ms == pytest.approx(11.8)


def test_the_rest_of_the_total_is_of_the_cycles_without_a_known_pause() -> None:
    single = pl.DataFrame({"row": pl.Series([0, 0], dtype=pl.UInt32), "pause_ms": [1.0, 2.0]})
    pauses = found({"gc_cycles": 3, "stw_total_ms": 15.0}, single=single)
    assert (pauses.max_ms, pauses.exact) == (12.0, False)


def test_long_pauses_of_the_start_up_do_not_count_for_the_severity() -> None:
    rows = [{"gc_cycles": 10, "stw_total_ms": 0.5} for _ in range(6)]
    pauses = found({"gc_cycles": 1, "stw_total_ms": 60.0, "end_s": 0.5}, *rows)
    assert pauses.max_ms == 60.0
    assert pauses.late_p99_ms == 0.0


def test_without_counted_cycles_nothing_is_known() -> None:
    uncounted = interval_rows({**UNKNOWN, "gc_cycles": None}, {**UNKNOWN, "gc_cycles": 1})
    assert of_cycles(uncounted.head(1), NONE) is None
    idle = found({"gc_cycles": 0})
    assert (idle.cycles, idle.max_ms, idle.proven_short) == (0, 0.0, True)


WITH_PAUSES = [
    name
    for name in RECORDINGS
    if not name.endswith(("otlp.jsonl.gz", "runtime-metrics.jsonl.gz"))
    and "/restart/" not in name
]


def test_the_p99_of_pauses_is_the_same_in_figures_finding_and_table() -> None:
    analysis = recording("own/gogc100/expvar.jsonl.gz").run.analysis
    pauses = analysis.dumps.cycle_pauses(0)
    assert pauses is not None
    assert pauses.exact
    (finding,) = (one for one in analysis.findings if one.id == "GC046")
    (row,) = analysis.pauses.to_dicts()
    p99_ms = analysis.summary.stw_p99_ms
    assert p99_ms == pauses.p99_ms == finding.figures["p99_ms"] == row["p99_ms"]
    assert analysis.summary.stw_p50_ms == pauses.p50_ms == row["p50_ms"]
    assert f"p99 {duration_text((p99_ms or 0) / 1000)}" in finding.evidence


@pytest.mark.parametrize("name", WITH_PAUSES)
def test_the_bounds_hold_for_the_gctrace_of_the_same_cycles(name: str) -> None:
    one = recording(name)
    dumps = one.run.analysis.dumps
    for process in one.processes():
        pauses, own = dumps.cycle_pauses(process), dumps.of(process)
        if pauses is None or not pauses.cycles:
            continue
        counted = own.filter(pl.col("gc_cycles").is_not_null())
        first = int((counted["num_gc"] - counted["gc_cycles"]).min())  # type: ignore[arg-type]
        last = int(counted["num_gc"].max())  # type: ignore[arg-type]
        cycles = gctrace(one.folder).filter(pl.col("gc_num").is_between(first + 1, last))
        both = cycles["stw_sweep_term_ms"] + cycles["stw_mark_term_ms"]
        # gctrace counts the time until a thread runs again after a pause, see test_scraped.
        for share, bound in ((0.9, pauses.p90_ms), (0.99, pauses.p99_ms), (1.0, pauses.max_ms)):
            truth = both.quantile(share, "equiprobable")
            assert truth is not None
            assert bound <= 1.05 * truth + 0.3
        if pauses.proven_short:
            assert (both > 5.3).sum() <= 0.01 * len(both)


@pytest.mark.parametrize(
    "name",
    [
        f"own/gogc100/{each}"
        for each in (
            "expvar.jsonl.gz",
            "memstats.csv.gz",
            "query-raw.json.gz",
            "query_range-15s.json.gz",
            "runtime-metrics.jsonl.gz",
        )
    ],
)
def test_pauses_that_gctrace_calls_bad_are_bad_in_metrics_too(name: str) -> None:
    run = recording(name).run
    (finding,) = [each for each in run.analysis.findings if each.id == "GC046"]
    assert finding.severity == "bad"
    assert "Metrics have only the sum of the two" in finding.evidence
    assert run.analysis.levels["pauses"] == "bad"
    assert "GC044" not in {each.id for each in run.analysis.findings}


def test_pauses_that_may_be_long_are_not_called_healthy() -> None:
    """Of 46 cycles, 15 s apart, the longest pause was before the first scrape."""
    run = recording("own/gogc200/query_range-15s.json.gz").run
    assert not {"GC044", "GC046"} & {each.id for each in run.analysis.findings}
    said = verdict(run.analysis, run.advice)
    assert said is not None
    assert WORDS[said.level] == "No problem seen"
    assert "in a cycle, on average" in said.sentence
