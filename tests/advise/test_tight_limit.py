"""The memory limit that is advised where the present one is too low."""

from __future__ import annotations

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.analysis.thresholds import DEFAULT
from tests.conftest import SAMPLES

LIMITS = SAMPLES / "limits"


@pytest.mark.parametrize("mib", [64, 72, 80, 88, 100, 120])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_no_limit_that_is_advised_is_itself_too_tight(mib: int, number: int) -> None:
    """One program: with 120 MiB, `limit-tight` matches; with 140 (measured) and 160, it does not."""
    report = gca.read(LIMITS / f"{mib}-mib-{number}.log.gz").report()
    limit = report.advice.higher_limit_mib
    assert limit is not None
    assert limit >= 150
    predicted = report.advice.baseline.at(Setting(100.0, limit)).row
    assert predicted["effective_gogc"] >= DEFAULT.limit_gogc_warn
    changes = report.advice.recommendations.filter(~report.advice.recommendations["now"])
    assert (changes["memory_limit_mib"].drop_nulls() >= 140).all()
    assert report.verdict is not None
    if report.verdict.finding == "GC016":
        assert f"at least {limit:,.0f} MiB" in report.verdict.action


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_roomy_limits_of_the_same_program_are_not_reported_as_tight(number: int) -> None:
    findings = gca.read(LIMITS / f"160-mib-{number}.log.gz").findings()
    assert "GC015" not in findings["id"].to_list()
