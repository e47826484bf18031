"""The grammar of conditions, and how they are checked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.checks import (
    ChangeCondition,
    Check,
    Condition,
    Facts,
    FigureCondition,
    FindingCondition,
    VerdictCondition,
    condition,
)
from gctrace_analyzer.analysis.rules.registry import RULES
from gctrace_analyzer.analysis.summary import FIGURES
from gctrace_analyzer.errors import BadSettingError
from tests.conftest import SAMPLES

comparisons = st.sampled_from([">", ">=", "<", "<=", "=="])

limits = st.decimals(0, 10**6, places=3).map(float)

figures = st.sampled_from(FIGURES)

conditions = st.one_of(
    st.builds(FigureCondition, st.just(""), figures, comparisons, limits),
    st.builds(
        ChangeCondition,
        st.just(""),
        figures,
        comparisons,
        limits,
        relative=st.just(value=False),
    ),
    st.builds(FindingCondition, st.just(""), st.sampled_from(["bad", "warn", "info", *RULES])),
    st.builds(
        VerdictCondition,
        st.just(""),
        st.one_of(st.none(), figures),
        st.sampled_from(["better", "worse"]),
    ),
)


@given(conditions)
def test_the_text_of_a_condition_is_parsed_to_the_same_condition(given_: Condition) -> None:
    parsed = condition(str(given_), FIGURES, changes=True)
    assert type(parsed) is type(given_)
    assert str(parsed) == str(given_)


@given(figures, comparisons, st.integers(-500, 500))
def test_a_relative_limit_is_parsed_as_a_share(figure: str, sign: str, percent: int) -> None:
    parsed = condition(f"{figure}{sign}{percent:+}%", FIGURES, changes=True)
    assert isinstance(parsed, ChangeCondition)
    assert parsed.relative
    assert parsed.limit == pytest.approx(percent / 100)


@given(st.text())
def test_any_other_text_is_a_bad_setting(text: str) -> None:
    with pytest.raises(BadSettingError, match="a condition such as"):
        condition(f"{text}?", FIGURES)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("gc_cpu_share>10%", 0.1),
        ("gc_cpu_share>5pp", 0.05),
        ("stw_p99_ms>2", 2),
        ("stw_p99_ms>0.5s", 500),
        ("span_s>2m", 120),
        ("heap_peak_mib>1GiB", 1024),
        ("live_heap_growth_mib_per_h<-5", -5),
    ],
)
def test_limits_are_in_the_unit_of_the_figure(text: str, limit: float) -> None:
    parsed = condition(text, FIGURES)
    assert isinstance(parsed, FigureCondition)
    assert parsed.limit == pytest.approx(limit)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gc_per_s>3MiB", "without a unit"),
        ("verdict:worse", "finding:bad, finding:GC016 or a figure"),
        ("finding:GC999", "an id such as GC001"),
        ("p99>2", "a figure of the summary"),
    ],
)
def test_what_a_condition_cannot_be_is_explained(text: str, expected: str) -> None:
    with pytest.raises(BadSettingError, match=expected):
        condition(text, FIGURES)


def checked(text: str, row: dict[str, Any]) -> Check:
    facts = Facts({"gc_per_s": row["after"]}, list, {"gc_per_s": row})
    return condition(text, FIGURES, changes=True).check(facts)


ROW = {"before": 2.0, "after": 3.0, "delta": 1.0, "delta_low": 0.5, "delta_high": 1.5, "verdict": "worse"}  # fmt: skip


def test_a_significant_change_beyond_the_limit_is_a_failure() -> None:
    assert checked("gc_per_s>+10%", ROW).held
    assert checked("gc_per_s>+0.5", ROW).held
    assert checked("gc_per_s>+60%", ROW).held is False
    assert checked("gc_per_s:worse", ROW).held
    assert checked("verdict:better", ROW).held is False


def test_a_change_that_is_not_significant_is_noise() -> None:
    check = checked("gc_per_s>+10%", {**ROW, "verdict": "~"})
    assert check.held is False
    assert "but that is not significant" in str(check)


def test_from_zero_every_increase_is_beyond_every_percentage() -> None:
    row = {**ROW, "before": 0.0}
    assert checked("gc_per_s>+900%", row).held
    assert checked("gc_per_s>+900%", {**row, "delta": 0.0}).held is False


def test_what_is_unknown_never_passes() -> None:
    for row in ({**ROW, "delta": None, "delta_low": None}, {**ROW, "delta_low": None}):
        assert checked("gc_per_s>+10%", row).held is None
        assert checked("gc_per_s:better", row).held is None
    assert condition("gc_per_s>1", FIGURES).check(Facts({"gc_per_s": None}, list)).held is None


def test_a_figure_and_a_finding_of_a_run_are_checked() -> None:
    run = gca.read(SAMPLES / "thrash-go1.19.log")
    figure, bad, named, absent = run.check(
        "gc_cpu_share>1%", "finding:bad", "finding:limit-thrash", "finding:GC044"
    )
    assert figure.held
    assert figure.reason.startswith("gc_cpu_share is 0.")
    assert bad.held
    assert named.held
    assert "GC016 limit-thrash (bad)" in named.reason
    assert (absent.held, absent.reason) == (False, "no such finding")
