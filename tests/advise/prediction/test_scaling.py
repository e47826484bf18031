"""Predictions from metrics, of a program whose figures can be calculated by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.advise.candidates import candidates
from gctrace_analyzer.advise.policy import recommend
from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.advise.prediction.scaling import UNKNOWN, Scaling, _gogc
from gctrace_analyzer.analysis.settings.known import Known, Settings
from tests.conftest import SAMPLES

SUMMARY = replace(
    gca.read(SAMPLES / "steady-go1.26.log").summary(),
    gc_cpu_share=0.2, gc_cpu_with_idle_share=0.3, assist_share_of_gc_cpu=0.1, stw_share=0.01,
    cycles=500,
)  # fmt: skip
NOW = Setting(100.0)
PROGRAM = Scaling(
    now=NOW, settings=Settings(), summary=SUMMARY, samples=60, live_mib=100.0, live_max_mib=110.0,
    goal=200.0, peak=210.0, roots=0.0, non_heap_mib=20.0, share_of_room=0.8, alloc=80.0, rate=1.0,
    procs=4, cpu_cores=2.5, has_limit=True,
)  # fmt: skip
"""Each cycle starts after 80 of the 100 MiB between live heap and goal, once a second."""


def container(mib: float) -> Settings:
    return Settings(container_limit_mib=Known(mib, "test"))


def row(setting: Setting, **changes: Any) -> dict[str, Any]:
    return replace(PROGRAM, **changes).at(setting).row


def test_the_present_is_what_was_measured() -> None:
    found = row(NOW)
    assert (found["gc_per_s"], found["heap_peak_mib"], found["stw_share"]) == (1, 210, 0.01)
    assert (found["gc_cpu_share"], found["gc_cpu_with_idle_share"]) == (0.2, 0.3)
    assert found["gc_cpu_cores"] == pytest.approx(1.2)
    assert (found["heap_goal_mib"], found["goal_set_by"]) == (200, "gogc")
    assert found["effective_gogc"] == 100
    assert found["memory_peak_mib"] == 230
    for name in ("gc_per_s", "gc_cpu_share", "heap_peak_mib", "stw_share"):
        assert found[name] == found[f"{name}_low"] == found[f"{name}_high"]


def test_twice_the_room_has_half_of_the_cycles_and_of_their_cost() -> None:
    found = row(Setting(200.0))
    live = 100 * 2**0.03
    assert found["live_heap_mib"] == pytest.approx(live)
    assert found["heap_goal_mib"] == pytest.approx(3 * live)
    # Of the room, 81 MiB in 100 are covered: a MiB by spans, not by allocation; 0.8 MiB of
    # what is allocated refills pools in each cycle.
    rate = (80 - 0.8) / (0.81 * 2 * live - 1 - 0.8)
    assert found["gc_per_s"] == pytest.approx(rate)
    assert found["gc_cpu_share"] == pytest.approx(0.2 * rate)
    assert found["gc_cpu_with_idle_share"] == pytest.approx(0.3 * rate)
    assert found["stw_share"] == pytest.approx(0.01 * rate)
    assert found["gc_cpu_cores"] == pytest.approx(4 * 0.3 * rate)
    assert found["heap_peak_mib"] == pytest.approx(3 * live * 210 / 200)
    assert found["memory_peak_mib"] == pytest.approx(3 * live * 210 / 200 + 20)


def test_the_formula_gives_the_present_rate_for_the_present_room() -> None:
    almost = row(Setting(100.0001))
    assert almost["gc_per_s"] == pytest.approx(1, rel=1e-4)
    assert almost["gc_per_s_low"] == pytest.approx(1 / 1.22, rel=1e-4)
    assert almost["gc_per_s_high"] == pytest.approx(1.22, rel=1e-4)
    few = row(Setting(100.0001), samples=19)
    assert few["gc_per_s_high"] == pytest.approx(1.3, rel=1e-4)
    enough = row(Setting(100.0001), samples=20)
    assert enough["gc_per_s_high"] == pytest.approx(1.22, rel=1e-4)


def test_a_share_is_at_most_one() -> None:
    found = row(Setting(10.0))
    assert found["gc_per_s"] > 5
    assert found["gc_cpu_share"] == found["gc_cpu_share_high"] == 1


def test_in_a_small_heap_spans_and_refills_are_a_quarter_at_most() -> None:
    small = {"live_mib": 1.0, "goal": 2.0, "peak": 2.1, "alloc": 0.8, "roots": 0.0}
    found = row(Setting(800.0), **small)
    # The minimum of 4 MiB × GOGC / 100 sets the goal.
    assert found["heap_goal_mib"] == 32
    room = 32 - found["live_heap_mib"]
    gap = (0.8 + 0.2) / 1.0 * room - 0.2
    assert found["gc_per_s"] == pytest.approx((0.8 - 0.2) / (gap - 0.2), rel=1e-3)


def test_a_limit_sets_the_goal_below_gogc() -> None:
    program = replace(PROGRAM, now=Setting(None, 300.0))
    assert program.allowed_by(None) == math.inf
    assert program.allowed_by(300.0) == pytest.approx(280 * 0.97)
    assert program.allowed_by(40.0) == 19, "at least a MiB of headroom"
    found = program.at(Setting(400.0, 280.0)).row
    assert found["goal_set_by"] == "memory-limit"
    assert found["heap_goal_mib"] == pytest.approx(260 * 0.97)
    assert found["heap_peak_mib"] == pytest.approx(260 * 0.97), "the limit holds"
    assert program.at(Setting(50.0, 280.0)).row["goal_set_by"] == "gogc"


@pytest.mark.parametrize(
    ("limit", "thrash"), [(130.0, "certain"), (150.0, "risk"), (157.0, "risk"), (158.0, "no")]
)
def test_a_limit_near_the_live_heap_thrashes(limit: float, thrash: str) -> None:
    # 1.25 × the largest live heap of 110 MiB and 20 MiB outside: 157.5 MiB
    found = row(Setting(None, limit))
    assert found["thrash"] == thrash
    assert (found["gc_per_s"] is None) == (thrash == "certain")


def test_what_cannot_be_is_refused() -> None:
    assert "grows without bound" in row(Setting(None))["refused"]
    assert "upgrade" in row(Setting(100.0, 500.0), has_limit=False)["refused"]
    assert row(Setting(100.0, 500.0))["refused"] is None
    assert row(Setting(100.0), has_limit=False)["refused"] is None


def test_a_ballast_is_live_but_no_memory() -> None:
    found = row(Setting(100.0, None, 100.0))
    live = 200 * 2**0.03
    assert found["live_heap_mib"] == pytest.approx(live)
    assert found["memory_peak_mib"] == pytest.approx(found["heap_peak_mib"] + 20 - 100)


def test_a_container_has_room_or_not() -> None:
    assert row(NOW)["fits"] is None
    assert row(NOW, settings=container(230.0))["fits"]
    assert not row(NOW, settings=container(229.0))["fits"]
    more = Settings(container_limit_mib=Known(240.0, "test"), off_heap_mib=Known(15.0, "test"))
    found = row(NOW, settings=more)
    assert found["memory_peak_mib"] == 245


@pytest.mark.parametrize(
    ("means", "given", "expected"),
    [
        ({}, None, 100.0),
        ({"roots": 25.0}, None, 80.0),
        ({"gogc": 50}, 200.0, 50.0),  # the metric is right, not what was given
        ({"gogc": -1}, None, None),
        ({}, 200.0, 200.0),
        ({}, "off", None),
        ({"limited": 0.6}, None, None),
        ({"limited": 0.4}, None, 100.0),
        # An estimated live heap does not show GOGC.
        ({"estimated": True}, None, UNKNOWN),
        ({"estimated": True, "traced": 75.0}, None, 75.0),
    ],
)
def test_gogc_is_measured_given_or_inferred(
    means: dict[str, Any], given: float | str | None, expected: float | None
) -> None:
    all_means = {
        "gogc": None, "limited": 0.0, "roots": None, "live": 100.0, "goal": 200.0,
        "traced": None, "estimated": False,
    }  # fmt: skip
    known = Settings() if given is None else Settings(gogc=Known(given, "test"))
    assert _gogc(all_means | means, known) == expected


def ranked(**changes: Any) -> list[dict[str, Any]]:
    found = recommend(replace(PROGRAM, **changes)).to_dicts()
    assert [each["rank"] for each in found] == list(range(1, len(found) + 1))
    assert sum(each["now"] for each in found) == 1
    return found


def test_gc_cpu_above_a_tenth_is_brought_below_it() -> None:
    first, present, *_ = ranked()
    assert first["gogc"] == 200
    assert first["gc_cpu_share"] <= 0.1 + 1e-9
    assert "% fewer cycles for a peak heap of" in first["why"]
    assert (
        first["risk"]
        == "the container's memory limit is unknown: specify it (`--container-limit`)"
    )
    assert first["confidence"] == "high"
    assert first["gain_gc_cpu_share"] == pytest.approx(0.3 - first["gc_cpu_with_idle_share"])
    assert first["gain_gc_cpu_share_low"] <= first["gain_gc_cpu_share"]
    assert present["gain_gc_cpu_share"] is None


def test_gogc_is_raised_four_times_at_most() -> None:
    busy = replace(SUMMARY, gc_cpu_share=0.9, gc_cpu_with_idle_share=0.9)
    rows = ranked(summary=busy, settings=container(4096))
    assert max(row["gogc"] or 0 for row in rows) == 400
    # Without a ceiling the peak is not doubled.
    assert ranked(summary=busy)[0]["gogc"] == 200
    assert ranked(summary=busy, now=Setting(50.0), goal=150.0, peak=155.0)[0]["gogc"] == 150
    # Off under a limit counts as 100.
    limited = replace(PROGRAM, now=Setting(None, 400.0))
    assert max(each.gogc or 0 for each in candidates(limited, None)) == 400
    unlimited = replace(PROGRAM, now=Setting(None))
    assert None not in [each.gogc for each in candidates(unlimited, None)]


def test_confidence_falls_with_what_is_unknown() -> None:
    unknown = replace(SUMMARY, gc_cpu_share=None, gc_cpu_with_idle_share=None)
    assert ranked(summary=unknown, rate=40.0, alloc=3200.0)[0]["confidence"] == "medium"
    assert ranked(samples=5)[0]["confidence"] == "low"
    assert ranked(summary=replace(SUMMARY, cycles=5))[0]["confidence"] == "low"


def test_a_calm_program_keeps_its_setting() -> None:
    calm = replace(SUMMARY, gc_cpu_share=0.02, gc_cpu_with_idle_share=0.03)
    only, *_ = ranked(summary=calm)
    assert only["now"]
    assert only["why"] == "no change: GC CPU is below 10 %"


def test_a_smaller_heap_is_smaller_by_a_tenth_and_still_cheap() -> None:
    calm = replace(SUMMARY, gc_cpu_share=0.01, gc_cpu_with_idle_share=0.01)
    first, present, *_ = recommend(replace(PROGRAM, summary=calm), aim="memory").to_dicts()
    assert first["heap_peak_mib"] < 0.9 * present["heap_peak_mib"]
    assert first["gc_cpu_share"] <= 0.05
    assert first["why"].startswith("saves ")
    # Where GC takes most of what is cheap already, no smaller heap is.
    dear = replace(SUMMARY, gc_cpu_share=0.049, gc_cpu_with_idle_share=0.049)
    only, *_ = recommend(replace(PROGRAM, summary=dear), aim="memory").to_dicts()
    assert only["why"] == "no change: a smaller heap would make GC run too often"


def test_a_limit_near_the_live_heap_without_a_container_is_to_be_raised() -> None:
    """No container is known, so none is named as too small."""
    tight = replace(PROGRAM, now=Setting(100.0, 150.0), goal=126.0, peak=126.0)
    best, *_ = recommend(tight).to_dicts()
    assert best["memory_limit_mib"] == 237
    assert best["thrash"] == "no"
