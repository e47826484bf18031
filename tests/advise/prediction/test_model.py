"""The model, where a program is so simple that its figures under another setting are known."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest

from gctrace_analyzer.advise.prediction.model import CONSTANTS, Constants, Model, Setting
from gctrace_analyzer.advise.prediction.non_heap import NonHeap
from tests.helpers.loads import OLD_LINE, steady_load

if TYPE_CHECKING:
    from gctrace_analyzer.advise.prediction.load import Load

NOW = Setting(100.0)
PLAIN = replace(
    CONSTANTS, work_exponent_usual=0.0, work_exponent_steady=0.0, live_exponent=0.0,
    refill_mib=0.0, sweep=0.0, assist_less_room=(0.0, 0.0), assist_more_room=0.0, background_prior=0.0,
)  # fmt: skip
"""No corrections: what remains is arithmetic."""

LARGE: dict[str, Any] = {
    "start": 340, "end": 352, "live": 200, "goal": 400, "mark": 40, "background": 18,
    "assist": 2,
}  # fmt: skip
"""A heap that is so large that neither minimum nor rounding matters; 140 + 12 MiB per cycle."""


HELD: dict[str, Any] = {"start": 340, "end": 400, "assist": 48, "background": 20, "every": 0.1}
"""Assists do most of the marking, so that the heap ends at its goal."""


def load_of(**values: Any) -> Load:
    return steady_load(**{**LARGE, **values})


def model_of(
    constants: Constants = PLAIN, non_heap: float | None = None, **values: Any
) -> Model:
    return Model(load_of(**values), NOW, non_heap=non_heap, constants=constants)


@pytest.mark.parametrize("constants", [CONSTANTS, PLAIN], ids=["usual", "plain"])
@pytest.mark.parametrize("values", [{}, {"idle": 12}, {"background": 10, "stacks": 3}])
def test_the_present_setting_is_predicted_to_be_what_it_is(
    constants: Constants, values: dict[str, Any]
) -> None:
    model = model_of(constants, **values)
    load, found = model.load, model.predict(NOW)
    assert found.gc_per_s == pytest.approx(load.gc_per_s, rel=0.01)
    assert found.gap == pytest.approx(load.gap_mib, rel=0.01)
    assert found.heap_peak == pytest.approx(load.heap_end_max, rel=0.01)
    assert found.marked_live == pytest.approx(load.marked_live, rel=0.01)
    assert found.true_live == pytest.approx(load.true_live, rel=0.01)
    assert found.gc_cpu_share == pytest.approx(load.gc_cpu_share, rel=0.02)
    assert found.gc_cpu_with_idle_share == pytest.approx(load.gc_cpu_with_idle_share, rel=0.02)
    assert found.gc_cpu_cores == pytest.approx(load.gc_cpu_with_idle_cores, rel=0.02)
    assert found.assist_share_of_gc_cpu == pytest.approx(
        load.assist_ms / load.spent_ms, rel=0.02
    )
    assert found.stw_share == pytest.approx(load.gc_per_s * load.stw_ms / 1000, rel=0.01)
    assert found.effective_gogc == pytest.approx(100, rel=0.02)
    assert (found.thrash, found.set_by, found.no_room, found.thrash_share) == (
        "no", "gogc", 0, 0,
    )  # fmt: skip


@pytest.mark.parametrize("gogc", [50.0, 200.0, 400.0])
def test_a_program_that_keeps_its_rate_allocates_as_much_as_before(gogc: float) -> None:
    model = model_of()
    assert model.load.cpu_bound == 0
    found = model.predict(Setting(gogc))
    assert found.gc_per_s * found.gap == pytest.approx(model.load.alloc, rel=1e-6)
    # Marked: 200.5 MiB, of which 12 were allocated meanwhile.
    assert found.goal == pytest.approx(200.5 * (1 + gogc / 100), rel=0.01)
    assert found.marked_live == pytest.approx(200.5, rel=0.01)
    assert found.effective_gogc == pytest.approx(gogc, rel=0.01)


def test_the_cost_of_a_cycle_is_that_of_its_live_heap() -> None:
    model = model_of()
    half, double = model.predict(Setting(50.0)), model.predict(Setting(200.0))
    now = model.predict(NOW)
    for found in (half, double):
        per_cycle = found.gc_cpu_share / found.gc_per_s
        assert per_cycle == pytest.approx(now.gc_cpu_share / now.gc_per_s, rel=0.02)
        assert found.stw_share / found.gc_per_s == pytest.approx(0.04 / 1000)
        assert found.gc_cpu_cores / found.gc_cpu_with_idle_share == pytest.approx(2)
    assert half.gc_per_s > 1.8 * now.gc_per_s
    assert double.gc_per_s < 0.55 * now.gc_per_s
    assert half.heap_peak < 0.8 * now.heap_peak
    assert double.heap_peak > 1.4 * now.heap_peak


def test_a_program_that_runs_as_fast_as_it_can_gains_the_time_of_marking() -> None:
    load = replace(load_of(), alloc_in=0.0)
    assert load.cpu_bound == 1
    model = Model(load, NOW, constants=PLAIN)
    found = model.predict(Setting(200.0))
    # Nothing is allocated while marking: 40 ms of each 500 ms are lost, once per cycle.
    free_s = (0.5 - 0.040 - 0.00004) * found.gap / load.gap_mib
    assert 1 / found.gc_per_s == pytest.approx(free_s + 0.04004, rel=0.02)
    # The same load at a fixed rate starts cycles less often.
    fixed = Model(load_of(), NOW, constants=PLAIN).predict(Setting(200.0))
    assert found.gc_per_s > 1.02 * fixed.gc_per_s


def test_what_a_cycle_makes_the_program_allocate_again_does_not_count_as_its_rate() -> None:
    model = model_of(replace(PLAIN, refill_mib=20.0))
    now = model.load
    found = model.predict(Setting(200.0))
    own_rate = now.alloc - 20 * now.gc_per_s
    assert found.gc_per_s == pytest.approx(own_rate / (found.gap - 20), rel=1e-6)


def test_sweeping_and_marking_limit_how_often_a_cycle_can_start() -> None:
    model = model_of(replace(PLAIN, sweep=10.0))
    load = model.load
    found = model.predict(Setting(1.0))
    # 40 ms of marking, and ten times its 20 ms of CPU for sweeping
    assert found.gc_per_s <= 1 / (0.040 + 10 * 0.020) * 1.05
    assert found.gc_per_s > load.gc_per_s


def test_the_cpu_of_marking_grows_with_what_is_allocated_between_cycles() -> None:
    plain = model_of(end=341).predict(Setting(400.0))
    model = model_of(replace(PLAIN, work_exponent_usual=0.5), end=341)
    found = model.predict(Setting(400.0))
    times = (found.gap / model.load.gap_mib) ** 0.5
    cost = found.gc_cpu_share / found.gc_per_s - 0.08 / 1000 / 2
    plain_cost = plain.gc_cpu_share / plain.gc_per_s - 0.08 / 1000 / 2
    assert cost / plain_cost == pytest.approx(times, rel=0.03)


def test_caches_go_cold_in_steady_programs_that_leave_the_cpus_idle() -> None:
    # Idle workers did none, 35 % and 60 % of the marking.
    for idle, steadiness in ((0, 0.0), (20 * 0.35 / 0.65, 0.5), (30, 1.0)):
        model = model_of(CONSTANTS, idle=idle)
        assert model.steadiness == pytest.approx(steadiness)
        assert model.work_exponent == pytest.approx(0.01 + steadiness * 0.17)
    varied = Model(replace(load_of(idle=30), variation=0.055), NOW)
    assert varied.steadiness == pytest.approx(0.5)
    assert Model(replace(load_of(idle=30), variation=0.2), NOW).steadiness == 0


def test_assists_change_with_the_bytes_between_cycles() -> None:
    model = model_of(replace(PLAIN, assist_less_room=(1.0, 2.0), assist_more_room=0.5))
    assert model.load.room_used <= CONSTANTS.rooms_used[0]
    own, work, gap = model.own, model.load.work_ms, model.load.gap_mib
    rest = 18 + model.load.stw_cpu_ms
    assert model._shares_of_work(own, work, gap) == pytest.approx((2, 18, 0))
    # Relative to other GC, without what does not fit into the marking any more.
    assert model._assist_ratio(gap / 2) == pytest.approx(2 * 2 / rest)
    assert model._assist_ratio(4 * gap) == pytest.approx(2 / rest / 2)
    # Dedicated workers do half of it even without any room.
    assert model._assist_ratio(gap / 1000) == CONSTANTS.assist_most
    # The nearer the heap came to its goal, the more it needs them with less room.
    full = Model(replace(model.load, room_used=0.5), NOW, constants=model.constants)
    assert full._assist_ratio(gap / 2) == pytest.approx(4 * 2 / rest)
    busy = model_of(PLAIN, assist=38, background=2)
    now = busy._assist_ratio(busy.load.gap_mib)
    assert now > 1
    assert busy._assist_ratio(busy.load.gap_mib / 1000) == now


def test_a_log_without_allocation_while_marking_has_no_more_assists_with_less_room() -> None:
    model = model_of(PLAIN, end=340)
    assert model._assist_ratio(model.load.gap_mib / 10) == model._assist_ratio(
        model.load.gap_mib
    )


def test_far_from_the_present_setting_workers_take_their_usual_share() -> None:
    # The log's own: 18 ms of CPU in 40 ms, on 8 processors. Usual: a quarter of the processors.
    values = {"procs": 8, "sweep_cpu": 0.16, "term_cpu": 0.16, "idle": 100, "end": 341}
    model = model_of(replace(PLAIN, background_prior=1.0, work_exponent_steady=1.0), **values)
    found = model.predict(Setting(400.0))
    times = found.gap / model.load.gap_mib
    assert math.log(times) > 1, "so far that only the usual share counts"
    background = 0.25 * 8 * 40 * times
    spent = (background + 0.32) * (1 + model._assist_ratio(found.gap))
    assert found.gc_cpu_share / found.gc_per_s * 8 * 1000 == pytest.approx(spent, rel=0.02)


def test_few_processors_have_a_smaller_usual_share() -> None:
    model = model_of(
        replace(PLAIN, background_prior=1.0, work_exponent_steady=1.0), idle=20, end=341
    )
    found = model.predict(Setting(400.0))
    times = found.gap / model.load.gap_mib
    background = 0.19 * 2 * 40 * times
    spent = background + 2 * times + 0.08
    assert found.gc_cpu_share / found.gc_per_s * 2 * 1000 == pytest.approx(spent, rel=0.02)


def test_a_limit_sets_the_goal_and_too_small_a_limit_thrashes() -> None:
    model = model_of(non_heap=20.0)
    limited = model.predict(Setting(None, 400.0))
    assert limited.set_by == "memory-limit"
    # 3 % of headroom below the limit without the memory outside the heap
    assert limited.goal + limited.non_heap == pytest.approx(400 - 0.03 * 390, rel=0.01)
    assert limited.heap_peak <= 1.12 * limited.goal
    assert (limited.thrash, limited.no_room, limited.thrash_share) == ("no", 0, 0)
    wide = model.predict(Setting(100.0, 4000.0))
    assert wide.set_by == "gogc"
    assert wide.goal == pytest.approx(model.predict(NOW).goal)
    tight = model.predict(Setting(None, 230.0))
    assert (tight.thrash, tight.no_room) == ("certain", 1)
    assert tight.thrash_share == 1
    assert tight.heap_peak >= 1.25 * tight.goal
    # Without a limit there is room below none.
    assert model.predict(Setting(5.0)).no_room == 0


def test_always_marking_is_a_risk() -> None:
    found = model_of(mark=350, background=170).predict(Setting(10.0))
    assert found.thrash == "risk"
    assert found.gc_cpu_share <= 1
    assert found.stw_share <= 1


def test_a_ballast_raises_the_goal_but_is_not_marked() -> None:
    model = model_of()
    now, ballast = model.predict(NOW), model.predict(Setting(100.0, None, 200.0))
    assert ballast.goal == pytest.approx(now.goal + 400, rel=0.01)
    assert ballast.gap == pytest.approx(now.gap * 400 / 200, rel=0.15)
    cost, now_cost = (f.gc_cpu_share / f.gc_per_s for f in (ballast, now))
    assert cost == pytest.approx(now_cost, rel=0.02)


def test_growth_since_the_log_is_added_to_its_last_live_heap() -> None:
    load = load_of()
    model = Model(load, NOW, constants=PLAIN, growth_mib=0.0)
    assert model.predict(NOW, grown_mib=0.0).goal == pytest.approx(model.predict(NOW).goal)
    grown = model.predict(NOW, grown_mib=100.0)
    # Marking takes half as long again, and so much more is allocated meanwhile.
    assert grown.marked_live == pytest.approx(300.5 + 6, rel=0.01)
    assert grown.goal == pytest.approx(613, rel=0.01)
    # A heap that grew by 50 MiB during the log begins where it ended: 25 above the mean.
    late = Model(load, NOW, constants=PLAIN, growth_mib=50.0)
    assert late.look(NOW, 0.0).marked == pytest.approx(load.marked_live + 25, rel=0.02)
    assert late.look(NOW, 0.0).gap == pytest.approx(model.own.gap * 225.5 / 200.5, rel=0.1)


def test_non_heap_memory_is_given_measured_or_assumed() -> None:
    load = load_of(stacks=2)
    assumed = Model(load, NOW).non_heap
    assert assumed == NonHeap(10.4 + 1.8 * 2.5, 0.06, "assumed", stacks=2.5)
    given = Model(load, NOW, non_heap=55.4).non_heap
    # What exceeds the fixed part is a share of the goal of 400.5 MiB.
    assert (given.fixed, given.share) == pytest.approx((14.9, 40.5 / 400.5))
    assert given.source == "given"
    assert Model(load, NOW, non_heap=5.0).non_heap == NonHeap(5.0, 0.0, "given")


def test_a_limit_that_sets_the_goals_shows_the_non_heap_memory() -> None:
    limit = Setting(None, 460.0)
    found = Model(load_of(), limit).non_heap
    outside = 460 - 400.5 / 0.97
    assert found.source == "the log's own limit"
    assert found.at(400.5) == pytest.approx(outside)
    assert found.share == pytest.approx(0.06)
    # GOGC sets the goals: the limit shows nothing.
    assert Model(load_of(), Setting(100.0, 460.0)).non_heap.source == "assumed"
    assert Model(load_of(), Setting(110.0, 460.0)).non_heap.source == "the log's own limit"
    # The heap is at its limit, or the limit is wrong.
    assert Model(load_of(goal=205), limit).non_heap.source == "assumed"
    assert Model(load_of(), Setting(None, 390.0)).non_heap.source == "assumed"


def test_other_assumptions_about_the_non_heap_memory_shift_it() -> None:
    model = model_of(CONSTANTS)
    more = model.predict(Setting(None, 400.0), shift=(20.0, 0.0))
    now = model.predict(Setting(None, 400.0))
    assert now.goal - more.goal == pytest.approx(20 * 0.97 / (1 + 0.97 * 0.06), rel=0.02)


@pytest.mark.parametrize("constants", [CONSTANTS, PLAIN])
def test_other_constants_are_tried_on_the_same_load(constants: Constants) -> None:
    model = Model(load_of(), NOW, non_heap=33.0, go_1_21=False, growth_mib=7.0)
    other = model.changed(constants=constants)
    direct = Model(
        model.load, NOW, non_heap=33.0, constants=constants, go_1_21=False, growth_mib=7.0
    )
    limited = Setting(None, 300.0)
    assert other.constants == constants
    assert other.predict(limited) == direct.predict(limited)
    assert other.look(limited, 3.0) == direct.look(limited, 3.0)


def test_the_peak_keeps_what_it_exceeded_the_replay_by() -> None:
    usual = load_of()
    most = 2 * usual.heap_end_max
    spike = replace(usual, heap_end_max=most, calm_end_max=most)
    plain, high = (Model(load, NOW) for load in (usual, spike))
    assert high.predict(NOW).heap_peak == pytest.approx(2 * plain.predict(NOW).heap_peak)
    far = Setting(800.0)
    found, expected = (model.predict(far) for model in (high, plain))
    # At e^-|ln(gap ratio)| of the way; half of it remains at any distance.
    near = plain.load.gap_mib / expected.gap
    assert found.heap_peak / expected.heap_peak == pytest.approx(2 ** (0.5 + 0.5 * near))
    # Under a limit that sets other goals, it says nothing at a distance.
    limited = Setting(None, 2000.0)
    found, expected = (model.predict(limited) for model in (high, plain))
    near = plain.load.gap_mib / expected.gap
    unbounded = expected.heap_peak * 2**near
    assert found.heap_peak == pytest.approx(min(unbounded, 1.12 * found.goal), rel=0.02)


def test_a_program_that_assists_held_back_allocates_more_with_more_room() -> None:
    model = model_of(**HELD)
    now, more, most = (model.predict(Setting(gogc)) for gogc in (100.0, 200.0, 800.0))
    assert now.heap_peak == pytest.approx(model.load.heap_end_max, rel=0.01)
    assert now.gc_per_s == pytest.approx(model.load.gc_per_s, rel=0.01)
    assert now.assist_share_of_gc_cpu == pytest.approx(
        model.load.assist_ms / model.load.spent_ms, rel=0.02
    )
    # Twice the room allows twice as much during marking, which counts as live and raises the goal.
    in_marks = [each.marked_live - each.true_live for each in (now, more, most)]
    assert in_marks[1] > 2 * in_marks[0]
    free = model.load.in_mark * model.assists.free_in_mark_times
    assert in_marks[2] == pytest.approx(free, rel=0.05)
    assert more.goal == pytest.approx(3 * more.marked_live, rel=0.02)
    # Then nobody has to assist.
    assert most.assist_share_of_gc_cpu < 0.2
    # One that is not held back has its goal from the log's own allocation.
    other = model_of(**{**HELD, "assist": 10, "background": 58}).predict(Setting(800.0))
    assert other.heap_peak < 0.8 * most.heap_peak


def test_the_old_pacer_starts_no_earlier_than_its_lowest_trigger() -> None:
    # 140 of 200 MiB of room: its lowest ratio is 0.6, the log's own 0.7.
    values = {"line": OLD_LINE, "mark": 400, "background": 190}
    late = Model(load_of(start=340, end=460, **values), NOW).own
    assert (late.trigger - late.marked) / (late.goal - late.marked) == pytest.approx(
        0.6, rel=0.03
    )
    # A log of Go 1.13 shows a lower one.
    early = Model(load_of(start=260, end=380, **values), NOW).own
    assert 0.3 < (early.trigger - early.marked) / (early.goal - early.marked) < 0.58


def test_assists_are_a_share_of_little_gc_cpu_too() -> None:
    values = {"assist": 0.01, "background": 0.2, "sweep_cpu": 0.004, "term_cpu": 0.004}
    model = model_of(PLAIN, **values)
    assert model.predict(NOW).assist_share_of_gc_cpu == pytest.approx(
        0.01 / (0.21 + 0.008), rel=0.02
    )


@pytest.mark.parametrize("name", [each.name for each in fields(Constants)])
def test_each_constant_has_an_effect(name: str) -> None:
    """Somewhere: on programs that are idle or busy, steady or not, limited or not."""
    value = getattr(CONSTANTS, name)
    changed = (value[0] / 2, value[1] / 2) if isinstance(value, tuple) else 1.5 * value
    others = replace(CONSTANTS, **{name: changed})  # type: ignore[arg-type]
    loads = [
        load_of(idle=9, stacks=4),
        replace(load_of(idle=9, assist=4), variation=0.06, alloc_in=250.0),
        replace(load_of(background=14), heap_end_max=700.0, variation=0.2),
        load_of(**HELD),
        replace(load_of(assist=8), in_mark=0.4, room_used=0.3),
    ]
    settings = [Setting(20.0), Setting(400.0), Setting(None, 300.0), Setting(None, 800.0)]
    assert any(
        Model(load, NOW, constants=others).predict(each)
        != Model(load, NOW, constants=CONSTANTS).predict(each)
        for load in loads
        for each in settings
    )
