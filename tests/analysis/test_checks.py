"""The grammar of conditions, and how they are checked."""

from __future__ import annotations

import re
from dataclasses import replace
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
from gctrace_analyzer.analysis.compare.change import BY_LOAD, IS_LOAD, MAXIMUM, Change
from gctrace_analyzer.analysis.rules.registry import RULES
from gctrace_analyzer.analysis.summary import FIGURES
from gctrace_analyzer.errors import BadSettingError
from tests.conftest import SAMPLES

comparisons = st.sampled_from([">", ">=", "<", "<=", "=="])

limits = st.decimals(0, 10**6, places=3).map(float)

figures = st.sampled_from(FIGURES)

numbers = st.sampled_from([name for name in FIGURES if "share" not in name])

conditions = st.one_of(
    st.builds(FigureCondition, st.just(""), numbers, comparisons, limits),
    st.builds(
        ChangeCondition,
        st.just(""),
        numbers,
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
        ("finding:GC999", "an id from GC001"),
        ("p99>2", "a figure of the summary: stw_p99_ms, "),
        ("max_pause>1", "a figure of the summary: stw_max_ms, "),
    ],
)
def test_what_a_condition_cannot_be_is_explained(text: str, expected: str) -> None:
    with pytest.raises(BadSettingError, match=expected):
        condition(text, FIGURES)


def checked(text: str, row: dict[str, Any]) -> Check:
    facts = Facts({"gc_per_s": row["after"]}, list, {"gc_per_s": Change("gc_per_s", **row)})
    return condition(text, FIGURES, changes=True).check(facts)


ROW = {"before": 2.0, "after": 3.0, "delta": 1.0, "delta_low": 0.5, "delta_high": 1.5, "verdict": "worse"}  # fmt: skip


def test_a_figure_of_benchmarks_may_be_meant_by_its_unit() -> None:
    for text, meant in (("B/op>+5%", "bytes_per_op>+5%"), ("time/op>+5%", "ns_per_op>+5%")):
        with pytest.raises(BadSettingError, match=f"Did you mean {re.escape(meant)}"):
            condition(text, FIGURES, changes=True)


def test_a_significant_change_beyond_the_limit_is_a_failure() -> None:
    assert checked("gc_per_s>+10%", ROW).held
    assert checked("gc_per_s>+0.5", ROW).held
    assert checked("gc_per_s>+60%", ROW).held is False
    assert checked("gc_per_s:worse", ROW).held
    assert checked("verdict:better", ROW).held is False


def test_a_change_that_is_not_significant_is_noise() -> None:
    check = checked("gc_per_s>+10%", {**ROW, "verdict": "~", "delta_low": -0.5})
    assert check.held is False
    assert "but that is not significant" in str(check)


def test_from_zero_every_increase_is_beyond_every_percentage() -> None:
    row = {**ROW, "before": 0.0}
    assert checked("gc_per_s>+900%", row).held
    assert checked("gc_per_s>+900%", {**row, "delta": 0.0}).held is False


def test_what_is_unknown_never_passes() -> None:
    for row in (
        {**ROW, "delta": None, "verdict": None},
        {**ROW, "delta_low": None, "verdict": None},
    ):
        assert checked("gc_per_s>+10%", row).held is None
        assert checked("gc_per_s:better", row).held is None
    assert condition("gc_per_s>1", FIGURES).check(Facts({"gc_per_s": None}, list)).held is None


def test_a_figure_and_a_finding_of_a_run_are_checked() -> None:
    run = gca.read(SAMPLES / "thrash-go1.19.log")
    figure, bad, named, absent = run.check(
        "gc_cpu_share>1%", "finding:bad", "finding:limit-thrash", "finding:GC044"
    )
    assert figure.held
    assert figure.reason.startswith("gc_cpu_share is 55.72 %")
    assert bad.held
    assert named.held
    assert "GC016 limit-thrash (bad)" in named.reason
    assert (absent.held, absent.reason) == (False, "no such finding")


@pytest.mark.parametrize(
    ("text", "row", "held", "reason"),
    [
        ("gc_per_s>+50%", {}, False, "gc_per_s is 3 after 2, +50 % (+25 % to +75 %)"),
        ("gc_per_s>=+50%", {}, True, "gc_per_s is 3 after 2, +50 % (+25 % to +75 %)"),
        ("gc_per_s>+0.5", {}, True, "gc_per_s is 3 after 2, +1 (+0.5 to +1.5)"),
        ("gc_per_s>+9%", {"delta_low": -0.5}, False, "gc_per_s is 3 after 2, +50 %, but that is not significant (-25 % to +75 %)"),
        ("gc_per_s>+90%", {"verdict": "~"}, False, "gc_per_s is 3 after 2, +50 % (+25 % to +75 %)"),
        ("gc_per_s<-10%", {"after": 1.0, "delta": -1.0, "delta_low": -1.25, "delta_high": -0.5}, True, "gc_per_s is 1 after 2, -50 % (-62.5 % to -25 %)"),
        ("gc_per_s>+900%", {"after": 22.0, "delta": 20.0, "delta_low": 2.0, "delta_high": 50.0}, True, "gc_per_s is 22 after 2, +1,000 % (+100 % to +2,500 %)"),
        ("gc_per_s>+1%", {"delta": 1.998, "after": 3.998}, True, "gc_per_s is 3.998 after 2, +99.9 % (+25 % to +75 %)"),
        ("gc_per_s>+1%", {"delta_low": None, "no_verdict_because": MAXIMUM}, None, f"gc_per_s is 3 after 2: {MAXIMUM}"),
        ("gc_per_s>+1%", {"verdict": None, "no_verdict_because": BY_LOAD}, None, f"gc_per_s is 3 after 2, +50 %: {BY_LOAD}"),
        ("gc_per_s>+1%", {"verdict": None, "no_verdict_because": IS_LOAD}, True, "gc_per_s is 3 after 2, +50 % (+25 % to +75 %)"),
        ("gc_per_s>+1%", {"delta": None}, None, "gc_per_s is unknown for these logs"),
        ("gc_per_s:worse", {}, True, "gc_per_s is 3 after 2, +50 %"),
        ("verdict:worse", {}, True, "gc_per_s is 3 after 2, +50 %"),
        ("gc_per_s:better", {}, False, "nothing is better"),
        ("verdict:better", {"delta_low": None, "verdict": None}, False, "nothing is better"),
        ("gc_per_s:worse", {"delta_low": None, "verdict": None}, None, "gc_per_s has no verdict: unknown for these logs"),
    ],
)  # fmt: skip
def test_the_reason_of_a_change(
    text: str, row: dict[str, Any], held: bool | None, reason: str
) -> None:
    check = checked(text, {**ROW, **row})
    assert (check.held, check.reason) == (held, reason)
    assert check.is_noise == ("not significant" in reason)
    assert str(check) == f"{text}: {reason}"


@pytest.mark.parametrize(
    ("text", "value", "held"),
    [
        ("gc_per_s>2", 2.0, False), ("gc_per_s>2", 2.1, True),
        ("gc_per_s>=2", 2.0, True), ("gc_per_s>=2", 1.9, False),
        ("gc_per_s<2", 2.0, False), ("gc_per_s<2", 1.9, True),
        ("gc_per_s<=2", 2.0, True), ("gc_per_s<=2", 2.1, False),
        ("gc_per_s==2", 2.0, True), ("gc_per_s==2", 2.1, False),
        (" gc_per_s > -2 ", 0.0, True), ("gc_per_s<-2", 0.0, False),
    ],
)  # fmt: skip
def test_every_comparison_of_a_figure(text: str, value: float, held: bool) -> None:
    check = condition(text, FIGURES).check(Facts({"gc_per_s": value}, list))
    assert (check.held, check.reason) == (held, f"gc_per_s is {value:g}")


@pytest.mark.parametrize(
    ("text", "changes", "kind", "limit"),
    [
        ("gc_cpu_share>-10%", False, FigureCondition, -0.1),
        ("gc_cpu_share>-10%", True, ChangeCondition, -0.1),
        ("gc_cpu_share>10%", True, FigureCondition, 0.1),
        ("gc_cpu_share>+10pp", True, ChangeCondition, 0.1),
        ("stw_p99_ms<-1s", True, ChangeCondition, -1000.0),
        ("heap_peak_mib>+1KiB", True, ChangeCondition, 1 / 1024),
        ("alloc_mib_per_s>1GiB", False, FigureCondition, 1024.0),
    ],
)
def test_a_sign_means_a_change_if_two_sides_are_compared(
    text: str, changes: bool, kind: type, limit: float
) -> None:
    parsed = condition(text, FIGURES, changes=changes)
    assert isinstance(parsed, kind)
    assert isinstance(parsed, (FigureCondition, ChangeCondition))
    assert parsed.limit == pytest.approx(limit)
    if isinstance(parsed, ChangeCondition):
        assert parsed.relative == text.endswith("%")


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        ("gc_cpu_share>+10%", False, "a limit without a +, because one run has no change"),
        ("gc_per_s>10%", False, "a limit for gc_per_s without a unit"),
        ("gc_per_s>2s", False, "a limit for gc_per_s without a unit"),
        ("stw_p99_ms>2%", False, "condition"),
        ("finding:awful", False, "finding: followed by a severity (bad, warn, info), an id from GC001"),
        ("gc_per_s:bad", True, "a verdict: better, worse"),
        ("gc_per_second:worse", True, "a figure of the summary: "),
        ("what?", True, "or gc_cpu_share>+10%"),
    ],
)  # fmt: skip
def test_what_a_condition_cannot_be_is_explained_with_an_example(
    text: str, changes: bool, expected: str
) -> None:
    with pytest.raises(BadSettingError) as found:
        condition(text, FIGURES, changes=changes)
    assert expected in str(found.value)


@pytest.mark.parametrize(
    ("text", "changes", "suggestion"),
    [
        ("gc_cpu_share>10", False, "gc_cpu_share>10%"),
        ("gc_cpu_share >= 2.5", False, "gc_cpu_share>=2.5%"),
        ("gc_cpu_share>1", False, "gc_cpu_share>1%"),
        ("stw_share<5", False, "stw_share<5%"),
        ("gc_cpu_share>10", True, "gc_cpu_share>10%"),
        ("gc_cpu_share>+10", True, "gc_cpu_share>+10%"),
        ("assist_share_of_cpu<-20", True, "assist_share_of_cpu<-20%"),
        ("gc_cpu_share>1000%", False, None),
        ("gc_cpu_share>+150pp", True, None),
    ],
)
def test_a_limit_that_no_share_reaches_was_meant_in_percent(
    text: str, changes: bool, suggestion: str | None
) -> None:
    with pytest.raises(BadSettingError, match="is a share from 0 to 1") as found:
        condition(text, FIGURES, changes=changes)
    assert found.value.suggestion == suggestion
    if suggestion:
        condition(suggestion, FIGURES, changes=changes)


@pytest.mark.parametrize("figure", [name for name in FIGURES if "share" in name])
def test_limits_that_a_share_can_reach_are_accepted(figure: str) -> None:
    for limit in (">0.1", ">=1", "<1", "==0", ">=100%", "<100%", ">0", ">99.9%"):
        condition(figure + limit, FIGURES)
    for limit in (">+0.1", "<-0.1", ">+50pp", ">+1000%", "<-100%", ">=-1", ">=+1"):
        condition(figure + limit, FIGURES, changes=True)


def test_the_nearest_name_is_suggested() -> None:
    for text, name in (
        ("finding:limit-trash", "limit-thrash"),
        ("gc_cpu_shar>1", "gc_cpu_share"),
    ):
        with pytest.raises(BadSettingError) as found:
            condition(text, FIGURES)
        assert found.value.suggestion == name
    with pytest.raises(BadSettingError) as found:
        condition("what?", FIGURES)
    assert "+10%" not in str(found.value)


@pytest.mark.parametrize(
    ("wanted", "held"),
    [("bad", False), ("warn", True), ("info", True), ("GC001", True), ("GC003", False)],
)
def test_a_severity_includes_the_worse_ones(wanted: str, held: bool) -> None:
    found = gca.read(SAMPLES / "thrash-go1.19.log").analysis.findings
    one = [replace(found[0], id="GC001", name="first", severity="warn")]
    check = FindingCondition("x", wanted).check(Facts({}, lambda: one))
    assert check.held is held
    if held:
        assert check.reason == f"GC001 first (warn): {one[0].evidence}"


def test_the_text_of_a_relative_change_has_its_percentage() -> None:
    assert str(condition("gc_per_s>+12.5%", FIGURES, changes=True)) == "gc_per_s>+12.5%"
    assert str(condition("gc_per_s<-50%", FIGURES, changes=True)) == "gc_per_s<-50.0%"
