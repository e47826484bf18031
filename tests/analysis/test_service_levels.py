"""Service levels: parsing, how far they were kept, and findings that are judged by them."""

from __future__ import annotations

from typing import Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.pauses import pause_ranges
from gctrace_analyzer.analysis.thresholds import DEFAULT, limits, thresholds_from
from gctrace_analyzer.testing import read_text
from tests.conftest import ROOT

STEADY = ROOT / "samples" / "steady-go1.26.log"
LINE = (
    "gc {n} @{s:.3f}s 1%: {pause}+5+0.02 ms clock, {cpu}+0.5/3/1+0.04 ms cpu, "
    "40->42->20 MB, 40 MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
)


def log_with(*pauses: float) -> str:
    return "".join(
        LINE.format(n=n, s=n * 0.5, pause=f"{ms:.2f}", cpu=f"{2 * ms:.2f}")
        for n, ms in enumerate(pauses, 1)
    )


def test_limits_have_units() -> None:
    assert limits({"pause": "2ms", "gc_cpu": "5%"}) == {"pause": 2.0, "gc_cpu": 0.05}
    assert limits({"pause": "500us", "gc_cpu": 0.1}) == {"pause": 0.5, "gc_cpu": 0.1}


@pytest.mark.parametrize(
    "bad", [{"pauses": "2ms"}, {"pause": "fast"}, {"gc_cpu": "200%"}, {"pause": "0ms"}]
)
def test_a_wrong_service_level_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(gca.BadSettingError):
        gca.read(STEADY, slo=bad)


@pytest.mark.parametrize("limit", ["2", "0.5", 2, 0.002, True])
def test_a_limit_of_pauses_needs_its_unit(limit: Any) -> None:
    with pytest.raises(gca.BadSettingError, match="a limit with its unit, such as pause=2ms"):
        gca.read(STEADY, slo={"pause": limit})


def test_the_share_of_pauses_within_the_limit_is_counted(tmp_path: Any) -> None:
    path = tmp_path / "run.log"
    path.write_text(log_with(*[0.1] * 30, 3.0, 4.0))
    (level,) = gca.read(path, slo={"pause": "2ms"}).analysis.service_levels
    # Two pauses a cycle, of which 2 of 64 are longer.
    assert level.within_share == pytest.approx(62 / 64)
    assert level.worst == pytest.approx(4.0, abs=0.06)


def test_findings_are_judged_by_the_service_level(tmp_path: Any) -> None:
    path = tmp_path / "run.log"
    path.write_text(log_with(*[0.5] * 40))
    assert "GC009" not in set(gca.read(path).findings()["id"])
    found = gca.read(path, slo={"pause": "200us"}).findings().filter(id="GC009")
    assert found["severity"].to_list() == ["warn"]


def test_the_report_shows_the_service_levels() -> None:
    text = str(gca.read(STEADY, slo={"pause": "2ms", "gc_cpu": "5%"}).summary())
    assert "Service levels" in text
    assert "pauses ≤ 2 ms" in text
    assert "GC CPU (10 s windows) ≤ 5 %" in text


def test_other_thresholds_are_used() -> None:
    assert thresholds_from({"gc_cpu_warn": 0.2}).gc_cpu_warn == 0.2
    assert thresholds_from({}) == DEFAULT
    low = gca.read(STEADY, thresholds={"gc_cpu_warn": 0.0001, "min_span_s": 0})
    assert "GC001" in set(low.findings()["id"])


@pytest.mark.parametrize(
    "bad", [{"gc_cpu_wran": 0.1}, {"gc_cpu_warn": "much"}, {"gc_cpu_warn": -1}]
)
def test_a_wrong_threshold_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(gca.BadSettingError):
        gca.read(STEADY, thresholds=bad)


def test_every_pause_is_in_one_range() -> None:
    run = read_text(log_with(0.05, 0.5, 5.0, 20.0))
    rows = pause_ranges(run.analysis.corrected)
    assert [row["pauses"] for row in rows] == [5, 1, 1, 1]
    assert sum(row["share"] or 0 for row in rows) == pytest.approx(1)
