"""Predicts the figures of one setting from a log that was recorded under another.

The program's path through the log (live heap and allocation) is replayed under both settings with
the runtime's rules for goal and trigger; the ratio of the two replays, times what was measured, is
the prediction. Three inputs depend on the result: the allocation during marking, the live heap and
the CPU of marking. Two short replays settle them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from gctrace_analyzer.advise.prediction import pacer
from gctrace_analyzer.advise.prediction.held_back import Assists
from gctrace_analyzer.advise.prediction.load import ALWAYS_MARKING, passed
from gctrace_analyzer.advise.prediction.non_heap import NonHeap
from gctrace_analyzer.advise.prediction.replay import (
    STEPS,
    Costs,
    Rules,
    first_times,
    gap_and_work,
    replay,
)
from gctrace_analyzer.analysis.settings.limits import STACK_TIMES
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.units import size_as_set

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.advise.prediction.load import Load
    from gctrace_analyzer.advise.prediction.path import Path
    from gctrace_analyzer.advise.prediction.replay import Replay

_WARM = 1.5
"""Most that a CPU-bound program can gain, relative to the CPU that GC takes: 1.4 measured."""

LIMITED = 0.5
"""Least share of the CPU that the runtime leaves to the program (runtime/mgclimit.go)."""

THRASH_GOGC = 12.0
"""Effective GOGC. Below it, a program under a limit thrashes."""

SOMETIMES, MOSTLY = 0.1, 0.5
"""Shares of the cycles at the limit above which a program may thrash, and certainly does."""

Thrash = Literal["no", "risk", "certain"]


@frozen
class Setting:
    """GOGC in %, limit in MiB (None: off), ballast in MiB, and allocation relative to now."""

    gogc: float | None = 100.0
    limit: float | None = None
    ballast: float = 0.0
    allocation: float = 1.0

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Setting:
        """Returns the setting of a row of predictions."""
        setting = (row["gogc"], row["memory_limit_mib"], row["ballast_mib"] or 0.0)
        return cls(*setting, row["allocation"])

    def __str__(self) -> str:
        """Returns GOGC and limit as environment variables: `GOGC=200 GOMEMLIMIT=1GiB`."""
        limit = f" GOMEMLIMIT={size_as_set(round(self.limit))}" if self.limit else ""
        return f"GOGC={'off' if self.gogc is None else f'{self.gogc:.0f}'}{limit}"


@frozen
class Constants:
    """Constants that neither the log nor the runtime's source contains.

    Attributes:
        work_exponent_usual: the CPU of marking a MiB grows with the bytes allocated between cycles
            to this power: hardly at all in most real programs, whose caches are always cold.
        work_exponent_steady: the same in programs with a steady live heap that leave the CPUs idle:
            their caches go cold between cycles.
        idle_shares: idle workers' share of marking CPU, over which the exponent goes from usual to
            steady.
        variations: variation of the live heap, over which the exponent goes back to usual.
        live_exponent: a live heap that varies grows with the bytes between cycles to this power.
        refill_mib: MiB that the program allocates again after each cycle (span caches, sync.Pool).
        non_heap_mib: fixed part of the non-heap memory.
        non_heap_per_stack, non_heap_per_goal: growth of it per MiB of stacks, and of the goal.
        limit_gap: relative distance of the goal at the trigger below the printed one, under a
            limit.
        runway_times: factor on the pacer's own estimate of what is allocated during marking.
        mark_fixed_mib: the fixed cost of a cycle, as MiB of heap to mark.
        sweep: time lost to sweeping, as a share of the CPU of marking.
        least_assist: share of marking that is done in assists even if nothing needs them.
        assist_less_room: with less room, the CPU of assists relative to that of other GC rises
            with the bytes between cycles to minus this power: the first if little, the second
            if much of the room below the goal was used (`rooms_used`), at most to `assist_most`.
        assist_more_room: with more room, the CPU of assists falls with this power.
        assist_least_mib: MiB allocated during marking above which it falls.
        background_prior: weight of the usual share of background workers; the log's own has 1.
        gap_floor: least allocation per cycle that marking CPU depends on, as a share of the live
            heap.
        peak_anchor: share of the gap between measured and replayed peak that distant settings keep.
    """

    work_exponent_usual: float = 0.01
    work_exponent_steady: float = 0.18
    idle_shares: tuple[float, float] = (0.25, 0.45)
    variations: tuple[float, float] = (0.03, 0.08)
    live_exponent: float = 0.03
    refill_mib: float = 0.4
    non_heap_mib: float = 10.4
    non_heap_per_stack: float = STACK_TIMES[1]
    non_heap_per_goal: float = 0.06
    limit_gap: float = 0.02
    runway_times: float = 0.9
    mark_fixed_mib: float = 2.0
    sweep: float = 0.12
    least_assist: float = 0.1
    assist_less_room: tuple[float, float] = (0.6, 1.5)
    rooms_used: tuple[float, float] = (0.2, 0.4)
    assist_more_room: float = 0.35
    assist_most: float = 1.2
    assist_least_mib: float = 0.3
    background_prior: float = 0.5
    gap_floor: float = 0.2
    peak_anchor: float = 0.5


CONSTANTS = Constants()


@frozen
class Prediction:
    """The predicted figures of a setting: shares of all CPUs × time, sizes in MiB.

    Attributes:
        gap: MiB allocated from the start of a cycle to the start of the next.
        no_room: share of the cycles with hardly any room below the limit.
        thrash_share: share of the time that these cycles take.
        speed: how fast the program does its work, relative to now: its allocation rate, without
            objects that it allocates again only because a cycle freed them.
        gap_spread: standard deviation of ln(`gap`) over the phases of the replay.
        peak_spread: standard deviation of ln(`heap_peak`) over the phases.
    """

    goal: float
    set_by: str
    true_live: float
    marked_live: float
    gap: float
    gc_per_s: float
    gc_cpu_share: float
    gc_cpu_with_idle_share: float
    gc_cpu_cores: float
    assist_share_of_gc_cpu: float
    stw_share: float
    heap_peak: float
    effective_gogc: float
    thrash: Thrash
    thrash_share: float
    no_room: float
    non_heap: float
    speed: float
    gap_spread: float
    peak_spread: float


class Model:
    """The load of a log, ready to be replayed under other settings.

    Args:
        load: what the program does to the heap.
        now: the setting of the log.
        non_heap: memory outside the heap in MiB, if it is known.
        constants: the model's constants.
        go_1_21: False for Go 1.19 and 1.20, whose limit has less headroom.
        growth_mib: steady growth of the live heap from the load's first cycle to its last.
        limit_is_known: False if the limit of `now` was inferred from the goals, with an assumption
            about the non-heap memory.
    """

    def __init__(
        self,
        load: Load,
        now: Setting,
        *,
        non_heap: float | None = None,
        constants: Constants = CONSTANTS,
        go_1_21: bool = True,
        growth_mib: float = 0.0,
        limit_is_known: bool = True,
    ) -> None:
        self.load, self.now, self.constants = load, now, constants
        self.assists = Assists(load)
        self._given, self._limit_is_known = non_heap, limit_is_known
        self._go_1_21, self._growth_mib = go_1_21, growth_mib
        self.non_heap = self._non_heap()
        self.own = self._replay(now)

    def changed(self, *, load: Load | None = None, constants: Constants | None = None) -> Model:
        """Returns this model with another load, other constants, or both."""
        return Model(
            load or self.load,
            self.now,
            non_heap=self._given,
            constants=constants or self.constants,
            go_1_21=self._go_1_21,
            growth_mib=self._growth_mib,
            limit_is_known=self._limit_is_known,
        )

    @property
    def work_exponent(self) -> float:
        """The exponent of the CPU of marking: see `Constants`."""
        c = self.constants
        return c.work_exponent_usual + self.steadiness * (
            c.work_exponent_steady - c.work_exponent_usual
        )

    @property
    def steadiness(self) -> float:
        """1 for a steady live heap that leaves the CPUs idle, 0 for other programs."""
        c, load = self.constants, self.load
        idle = passed(load.idle_ms / load.work_ms, c.idle_shares)
        return idle * (1 - passed(load.variation, c.variations))

    @cached_property
    def _late_path(self) -> Path:
        """The path with the live heap of the end of the log."""
        return self.load.path.without_growth(self._growth_mib)

    def look(self, setting: Setting, grown_mib: float) -> Replay:
        """Returns a short replay of the program after its live heap has grown."""
        return self._replay(setting, grown_mib, STEPS // 8)

    def predict(
        self,
        other: Setting,
        *,
        shift: tuple[float, float] = (0.0, 0.0),
        grown_mib: float | None = None,
    ) -> Prediction:
        """Returns the figures under another setting.

        Args:
            other: the setting to predict.
            shift: non-heap memory to add: in MiB, and as a share of the goal.
            grown_mib: growth of the live heap since the end of the log; None: as in the log.
        """
        load, c, own = self.load, self.constants, self.own
        non_heap = self.non_heap.shifted(shift) if shift != (0.0, 0.0) else self.non_heap
        gap_0, work_0, rate_0 = load.gap_mib, load.work_ms, load.gc_per_s
        lost_in_mark = load.lost_in_mark_s
        floor = c.gap_floor * max(load.true_live, 1.0)
        exponent = self.work_exponent
        live_exponent = c.live_exponent * passed(load.variation, c.variations)
        in_mark_times = free_times = self.assists.free_in_mark_times
        live_times, hold_back = 1.0, self.assists.hold_back
        arguments = self._arguments(other, non_heap, grown_mib)
        # Only the last replay is shown; the others find the allocation during marking.
        for is_last in (False, False, True):
            if is_last:
                replayed = replay(
                    *arguments, in_mark_times=in_mark_times, live_times=live_times
                )
                gap, work = replayed.gap, replayed.work
            else:
                gap, work = gap_and_work(
                    *arguments, in_mark_times=in_mark_times, live_times=live_times
                )
            gap = gap * gap_0 / own.gap
            work = work / own.work * work_0
            work *= (max(gap, floor) / max(gap_0, floor)) ** exponent
            free = max(1 / rate_0 - lost_in_mark, 0.25 / rate_0)
            period = free * gap / gap_0 + lost_in_mark * work / work_0
            speed = gap / period / (rate_0 * gap_0)
            # Unrestrained allocation during marking does not depend on the mean rate.
            slowed = max(speed, 0.3) ** (load.cpu_bound * (1 - hold_back))
            in_mark_times = work / work_0 * slowed * free_times
            live_times = min(max((gap / gap_0) ** live_exponent, 0.95), 1.25)
        # With less allocation, all figures are those of the same work per second.
        rate = self._rate(gap, work, lost_in_mark) * other.allocation
        active = rate * self._mark_ms(replayed, work) / 1000
        set_by = "memory-limit" if replayed.by_limit >= 0.5 else "gogc"
        marked = replayed.marked * load.marked_live / own.marked
        assist, background, idle = self._shares_of_work(replayed, work, gap)
        spent = assist + background + load.stw_cpu_ms
        gogc = (
            100
            * max(replayed.goal - replayed.marked, 0.0)
            / max(replayed.marked + load.roots, 1.0)
        )
        cores = min(rate * (spent + idle) / 1000, load.cpus)
        # While GOGC sets the goals, the limit would allow higher ones, as for a larger live heap.
        cap = arguments[1].cap or 0.0
        highest = replayed.goal if replayed.by_limit >= MOSTLY else max(replayed.goal, cap)
        thrash: Thrash = "no"
        if other.limit and replayed.no_room >= MOSTLY:
            thrash = "certain"
        elif (
            other.limit and (replayed.no_room >= SOMETIMES or highest <= replayed.marked_max)
        ) or active > ALWAYS_MARKING:
            thrash = "risk"
        return Prediction(
            goal=replayed.goal,
            set_by=set_by,
            true_live=replayed.marked - replayed.in_mark,
            marked_live=marked,
            gap=gap,
            gc_per_s=rate,
            gc_cpu_share=min(rate * spent / 1000 / load.cpus, 1.0),
            gc_cpu_with_idle_share=cores / load.cpus,
            gc_cpu_cores=cores,
            assist_share_of_gc_cpu=assist / max(spent, 1e-9),
            stw_share=min(rate * load.stw_ms / 1000, 1.0),
            heap_peak=self._peak(other, replayed, gap) + load.heap_end_max - load.calm_end_max,
            effective_gogc=gogc,
            thrash=thrash,
            thrash_share=replayed.no_room_time if other.limit else 0.0,
            no_room=replayed.no_room if other.limit else 0.0,
            non_heap=non_heap.at(replayed.goal, other.ballast),
            speed=self._speed(rate / other.allocation, gap),
            gap_spread=replayed.gap_spread,
            peak_spread=replayed.peak_spread,
        )

    def _rate(self, gap: float, work: float, lost_in_mark: float) -> float:
        """Returns the cycles per second.

        The program keeps its allocation rate, runs as fast as it can, or is between the two.
        """
        load, c = self.load, self.constants
        gap_0, rate_0, times = load.gap_mib, load.gc_per_s, work / load.work_ms
        refill = self._refill(gap)
        alloc = gap_0 * rate_0
        keeps = max(alloc - refill * rate_0, 0.1 * alloc) / (gap - refill)
        stw_s, sweep_s = load.stw_ms / 1000, c.sweep * load.work_ms / 1000
        lost = lost_in_mark + sweep_s + stw_s
        free = max(1 / rate_0 - lost, 0.25 / rate_0)
        closed: float = 1 / (free * (gap - refill) / (gap_0 - refill) + lost * times)
        rate = closed**load.cpu_bound * keeps ** (1 - load.cpu_bound)
        # A cycle cannot start before the spans of the last one are swept.
        most = 1 / max(times * (load.mark_ms / 1000 + sweep_s) + stw_s, 1e-6)
        return float(min(rate, max(most, rate_0)))

    def _speed(self, rate: float, gap: float) -> float:
        """Returns how fast the program does its work, relative to now.

        The runtime's limiter leaves the program at least half of the CPU. The program gains at most
        the CPU that GC takes, and half as much again from caches that stay warm.
        """
        load, refill = self.load, self._refill(gap)
        speed = rate * (gap - refill) / (load.gc_per_s * (load.gap_mib - refill))
        left = 1 - load.gc_cpu_with_idle_share
        most = 1 / max(1 - _WARM * load.gc_cpu_with_idle_share, LIMITED)
        return min(max(speed, LIMITED / max(left, LIMITED)), most)

    def _refill(self, gap: float) -> float:
        """Returns the MiB that the program allocates again because of a cycle."""
        return min(self.constants.refill_mib, 0.5 * gap, 0.5 * self.load.gap_mib)

    def _mark_ms(self, replayed: Replay, work: float) -> float:
        """Returns how long marking runs.

        Marking takes the same time per MiB as in the log. But if assists slowed allocation in the
        log, marking with more room runs until the delayed allocation is done.
        """
        load = self.load
        usual = load.mark_ms * work / load.work_ms
        if not self.assists.hold_back:
            return usual
        until = self.assists.mark_ms_of(replayed.in_mark, work)
        until *= load.mark_ms / self.assists.mark_ms_of(self.own.in_mark, load.work_ms)
        return usual + self.assists.hold_back * (max(until, usual) - usual)

    def _shares_of_work(
        self, replayed: Replay, work: float, gap: float
    ) -> tuple[float, float, float]:
        """Returns the CPU of assists, background workers and idle workers, in ms per cycle."""
        load, c = self.load, self.constants
        mark_ms = self._mark_ms(replayed, work)
        usual = (0.25 if load.cpus >= 4 else 0.19) * load.cpus
        share = load.background_ms / load.mark_ms
        # The log's own share is right for its own setting, the usual one for distant settings.
        far = min(abs(math.log(work / load.work_ms)), 1.0) * c.background_prior
        background = min(((1 - far) * share + far * usual) * mark_ms, work)
        assist = min(self._assist_ratio(gap) * (background + load.stw_cpu_ms), work)
        needed = max(work - self.assists.workers * mark_ms, c.least_assist * work)
        assist += self.assists.hold_back * (needed - assist)
        background = min(background, max(work - assist, 0.0))
        return assist, background, max(work - assist - background, 0.0)

    def _assist_ratio(self, gap: float) -> float:
        """Returns the CPU of assists relative to all other GC CPU without idle marking.

        It changes with a power of the bytes allocated between cycles. Dedicated workers always do
        much of the marking, and a program that does not allocate during marking has no assists.
        """
        load, c = self.load, self.constants
        ratio = load.assist_ms / max(load.background_ms + load.stw_cpu_ms, 1e-9)
        if load.in_mark < c.assist_least_mib:
            return ratio
        times = gap / load.gap_mib
        if times >= 1:
            return ratio / math.pow(times, c.assist_more_room)
        little, much = c.assist_less_room
        power = little + (much - little) * passed(load.room_used, c.rooms_used)
        return min(ratio / math.pow(times, power), max(ratio, c.assist_most))

    def _peak(self, other: Setting, replayed: Replay, gap: float) -> float:
        load, c = self.load, self.constants
        near = math.exp(-abs(math.log(gap / load.gap_mib)))
        # If a limit made the peak differ from the replay, it means nothing without the limit.
        same = (self.own.by_limit >= 0.5) == (replayed.by_limit >= 0.5)
        far = c.peak_anchor if same else 0.0
        anchor = far + (1 - far) * near
        peak: float = replayed.peak * (load.calm_end_max / self.own.peak) ** anchor
        if other.limit and replayed.by_limit >= 0.5:
            if replayed.no_room >= SOMETIMES:
                return max(peak, 1.25 * replayed.goal)
            return max(min(peak, 1.12 * replayed.goal), 0.97 * replayed.goal)
        return peak

    def _replay(
        self, setting: Setting, grown_mib: float | None = None, steps: int = STEPS
    ) -> Replay:
        return replay(
            *self._arguments(setting, self.non_heap, grown_mib),
            steps=steps,
            in_mark_times=self.assists.free_in_mark_times,
        )

    def _arguments(
        self, setting: Setting, non_heap: NonHeap, grown_mib: float | None
    ) -> tuple[Path, Rules, Costs]:
        """Returns the path, the rules and the costs of a setting."""
        load, c = self.load, self.constants
        path: Path = load.path
        # A program slowed by the CPU or by assists allocates at the same rate and finishes sooner.
        free = (1 - load.cpu_bound) * (1 - self.assists.hold_back)
        rate_times = setting.allocation**free
        if grown_mib is not None:
            path = self._late_path.shifted(grown_mib)
        if setting.ballast != self.now.ballast:
            path = path.shifted(setting.ballast - self.now.ballast)
        if setting.allocation != 1.0:
            path = path.scaled(setting.allocation, rate_times)
        cap = None
        if setting.limit:
            cap = non_heap.cap(setting.limit, setting.ballast, go_1_21=self._go_1_21)
        in_mark = max(load.in_mark, 0.05)
        free_times = self.assists.free_in_mark_times
        rules = Rules(
            gogc=None if setting.gogc is None else setting.gogc / 100,
            cap=cap,
            roots=load.roots,
            runway=load.runway
            * (c.runway_times if load.new_pacer else 1.0)
            / (in_mark * free_times),
            limit_gap=c.limit_gap,
            # So a lower ratio in the log takes precedence.
            lowest_trigger=None
            if load.new_pacer
            else min(pacer.LOWEST_TRIGGER_1_17, load.trigger_share),
        )
        marks = max(load.marked_live - self.now.ballast, 0.5) + load.roots + c.mark_fixed_mib
        costs = Costs(
            fixed=c.mark_fixed_mib,
            ballast=setting.ballast,
            mark_s_per_mib=load.mark_ms / 1000 / marks,
            mib_per_s=rate_times
            * (load.alloc_off if load.alloc_off > 0 else max(load.alloc, 1e-6)),
            least_off=0.3 + 0.02 * in_mark,
            free_times=free_times,
        )
        if free_times > 1:
            costs = replace(costs, first_times=first_times(path, rules, free_times))
        return path, rules, costs

    def _non_heap(self) -> NonHeap:
        load, c, now = self.load, self.constants, self.now
        fixed = c.non_heap_mib + c.non_heap_per_stack * load.stacks
        assumed = NonHeap(fixed, c.non_heap_per_goal, "assumed", load.stacks, load.variation)
        if self._given is not None:
            return assumed.given(self._given, load.goal - now.ballast)
        limited = now.gogc is None or load.effective_gogc < 0.93 * now.gogc
        if now.limit and limited and load.goal_p50 > 1.03 * load.marked_live_p50:
            return assumed.under(now.limit, load.goal_p50, is_known=self._limit_is_known)
        return assumed
