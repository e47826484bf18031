"""Where predictions start from, and why there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.advise import horizon
from gctrace_analyzer.advise.candidates import without_ballast
from gctrace_analyzer.advise.expectation import expectation
from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.advise.whatif import trade_off
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS
from tests.helpers.facts import log_of
from tests.helpers.lines import LINES

if TYPE_CHECKING:
    from pathlib import Path


def test_a_log_without_cycles_has_no_baseline() -> None:
    advice = read_text(LINES["gc18"][:40]).advice
    assert advice.baseline.refused == "no GC cycles"
    assert not advice.is_available
    assert advice.baseline.non_heap_mib == 0
    assert advice.baseline.least_limit_mib is None
    assert horizon.lasts(advice.baseline, Setting(100.0)) == {}
    assert trade_off(advice.baseline, Setting(100.0)).is_empty()
    assert without_ballast(advice.baseline, Setting(100.0, None, 64.0)) == ""


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"count": 4}, "steady cycles: at least 5 are needed"),
        ({"start": 100, "end": 100, "live": 100, "goal": 200}, "allocates too little"),
        ({"procs": lambda n: 2 if n < 50 else 8}, "GOMAXPROCS changed within the log"),
    ],
)
def test_a_log_that_shows_no_load_is_refused_with_the_reason(
    values: dict[str, Any], reason: str
) -> None:
    text = log_of(**({"count": 100} | values))
    assert reason in str(read_text(text).advice.baseline.refused)


def test_gogc_off_needs_a_memory_limit(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(log_of(100))
    baseline = gca.read(path, gogc="off").advice.baseline
    assert "GOGC=off was given without a memory limit" in str(baseline.refused)
    found, reason = expectation(baseline, Setting(200.0))
    assert found == {}
    assert reason == baseline.refused


def test_memory_outside_the_heap_is_taken_from_memstats(tmp_path: Path) -> None:
    path, dump = tmp_path / "run.log", tmp_path / "dump.csv"
    path.write_text(log_of(100))
    mib = 1 << 20
    dump.write_text(f"Sys,HeapIdle,HeapAlloc\n{300 * mib},{60 * mib},{180 * mib}\n")
    baseline = gca.read(path, dump).advice.baseline
    assert baseline.non_heap_mib == 60
    (row,) = gca.read(path, dump).whatif(gogc=200).iter_rows(named=True)
    assert row["memory_peak_mib"] == pytest.approx(row["heap_peak_mib"] + 60, rel=0.2)


def test_an_unusual_gogc_may_be_set_by_something_else() -> None:
    text = log_of(100, goal=lambda n: 233, start=209, end=216, live=100)
    warnings = read_text(text).advice.baseline.warnings
    assert any("an unusual value: if a memory limit or a tuner" in each for each in warnings)


def test_a_live_heap_that_varies_makes_predictions_rough() -> None:
    text = log_of(
        100,
        live=lambda n: 60 if n % 2 else 140,
        start=lambda n: 250 if n % 2 else 100,
        end=lambda n: 255 if n % 2 else 150,
        goal=lambda n: 280 if n % 2 else 120,
    )
    baseline = read_text(text).advice.baseline
    assert any("rough" in each or "varies" in each for each in baseline.warnings)


def test_the_trade_off_covers_many_values_of_gogc() -> None:
    run = gca.read(CORPUS / "advice" / "svc-big" / "gogc100" / "run.log", gogc=100)
    assert run.advice.is_available
    curve = trade_off(run.advice.baseline, run.advice.baseline.now)
    assert len(curve) > 5
    assert curve.sort("gogc")["heap_peak_mib"].is_sorted()
