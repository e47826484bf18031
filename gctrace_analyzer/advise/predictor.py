"""A log as the baseline of predictions: they replay its cycles, with 80 % intervals."""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.objective import QUANTITY
from gctrace_analyzer.advise.prediction.gain import Gain, gain, run_time
from gctrace_analyzer.advise.prediction.model import SOMETIMES, Prediction, Setting
from gctrace_analyzer.advise.prediction.outcome import Outcome, Predictor, blank
from gctrace_analyzer.advise.prediction.path import bursts_mib
from gctrace_analyzer.advise.prediction.widths import FACTORS, QUANTITIES, interval, terms_of
from gctrace_analyzer.advise.refusal import FEW_CYCLES, FRAGMENTED, fits_cpus
from gctrace_analyzer.analysis.cycles import with_held
from gctrace_analyzer.analysis.settings.limits import STACK_TIMES
from gctrace_analyzer.analysis.settings.releases import may_limit
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.rows import complete

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from gctrace_analyzer.advise.prediction.load import Load
    from gctrace_analyzer.advise.prediction.model import Model
    from gctrace_analyzer.schema import Row


@frozen
class Highest:
    """The largest live heap of a process in MiB, start-up and forced cycles included.

    Attributes:
        marked: the marked heap without bursts, which are garbage in the next cycle.
        held: the marked heap without allocation during marking: a heap with less room holds it too.
    """

    marked: float
    held: float

    @classmethod
    def of(cls, cycles: pl.DataFrame) -> Highest | None:
        """Returns the largest live heap of one process; None if its cycles do not show it."""
        known = complete(cycles, "heap_start_mib", "heap_end_mib", "heap_live_mib")
        if known.is_empty():
            return None
        marked = known["heap_live_mib"] - bursts_mib(known)
        held = with_held(known)["heap_live_mib"]
        most, least = (float(values.max() or 0) for values in (marked, held))  # type: ignore[arg-type]
        # Sizes are truncated to MiB; their difference is not.
        return cls(most + 0.5, max(least, 0.0))


@frozen
class Baseline(Predictor):
    """What predictions start from.

    Attributes:
        non_heap: memory outside the heap that counts towards GOMEMLIMIT, in MiB; None if
            unknown.
        warnings: what makes the predictions less certain than their intervals.
        observed_s: how long the program was observed.
        model: the load, ready for predictions; None if there is no load.
        heaviest: the model of the whole log, for its peaks, if `load` covers only a part.
        factors: factor on the width of the intervals, by quantity.
        evidence: other logs of the same program, at other settings.
        highest: the largest live heap of the process; None without a load.
        costly_cycle: a sentence about a cycle that took most of the GC CPU time; empty if none.
    """

    non_heap: float | None
    warnings: tuple[str, ...] = ()
    observed_s: float = 0.0
    model: Model | None = None
    heaviest: Model | None = None
    factors: Mapping[str, float] = field(default_factory=lambda: FACTORS)
    evidence: tuple[Baseline, ...] = ()
    highest: Highest | None = None
    costly_cycle: str = ""

    @property
    def no_evidence(self) -> str | None:
        """Why this log cannot help to predict another log of the program; None if it can."""
        if self.load is None or self.refused:
            return self.refused
        if self.may_be_by_limit:
            return "its goals do not show GOGC: a memory limit may set them"
        return None

    @property
    def has_limit(self) -> bool:
        """Whether this Go version has GOMEMLIMIT: Go 1.18 prints the same lines without it."""
        if self.load is not None and not self.load.new_pacer:
            return False
        return may_limit(self.settings.value("go_version"))

    @property
    def measured(self) -> Load | None:
        """The load of all cycles under the present setting, thrashing included."""
        return self.whole or self.load

    @property
    def non_heap_mib(self) -> float:
        """Non-heap memory that counts towards the limit, with the most stacks that may exist."""
        if self.model is None:
            return self.non_heap or 0.0
        at_goal = self.model.non_heap.at(self.model.load.goal, self.now.ballast)
        return at_goal + self.model.non_heap.hidden_stacks

    @property
    def hidden_stacks_mib(self) -> float:
        """Goroutine stacks that may exist at the peak beyond those assumed."""
        hidden = 0.0 if self.model is None else self.model.non_heap.hidden_stacks
        return hidden * (
            self.load.peak_stacks / self.load.stacks if self.load and hidden else 1
        )

    @property
    def live_mib(self) -> float | None:
        """The mean of the marked live heap."""
        return None if self.load is None else self.load.marked_live

    @property
    def live_max_mib(self) -> float | None:
        """The largest marked live heap of the process, including its start-up."""
        return None if self.highest is None else self.highest.marked

    @property
    def effective_gogc(self) -> float | None:
        """The GOGC that explains the goals."""
        return None if self.load is None else self.load.effective_gogc

    @property
    def non_heap_is_known(self) -> bool:
        """Whether MemStats, metrics or the goals of a known limit show it."""
        return self.model is None or self.model.non_heap.is_measured

    def at(self, setting: Setting, horizon_s: float = 0.0) -> Outcome:
        """Returns the prediction for a setting, now or at the horizon."""
        predicted = _predicted(self, setting, horizon_s)
        if predicted.center is None:
            return predicted
        row = predicted.row
        as_now = not horizon_s or self.growth is None
        if not row["refused"]:
            row |= lasts(self, setting)
            if self.evidence and not horizon_s:
                _with_evidence(self, predicted, setting)
            if setting == self.now and as_now:
                row |= _measured(self)
        # Stacks that grow are larger when the heap is largest than the predictions assume.
        assert self.load is not None
        grown = self.load.peak_stacks - self.load.stacks
        more = 0.0 if self.non_heap_is_known else STACK_TIMES[1] * grown
        row |= self.memory(row["heap_peak_mib"], predicted.center.non_heap + more, setting)
        return predicted

    def gains(self, outcome: Outcome, present: Row) -> dict[str, Gain]:
        """Returns the gains over the present setting by quantity."""
        load, center = self.load, outcome.center
        if load is None or center is None or outcome.row["refused"]:
            return {}
        return {
            name: gain(name, present[name], outcome.row[name], load, center, outcome.others)
            for name in dict.fromkeys(QUANTITY.values())
        }

    def confidence(self, row: Row) -> str:
        """Returns how reliable a prediction is: less so with few cycles or distant settings."""
        is_rough = self.warnings or not self.load_is_known
        return "low" if self.doubt(row) else "medium" if is_rough else "high"

    def doubt(self, row: Row) -> str:
        """Returns why the confidence is low; empty if it is not."""
        load = self.load
        if load is None or load.cycles < DEFAULT.short_log_cycles:
            return f"only {load.cycles:,} steady cycles" if load else "few cycles"
        if load.span_s < DEFAULT.short_log_s:
            return f"only {load.span_s:.1f} s of steady cycles"
        if self.endless and not self.growth_is_known:
            return "the live heap grows, and how far is unknown"
        if self.is_doubtful_kill and row["memory_limit_mib"] != self.now.limit:
            return "the kill may be that of another program"
        if self.costly_cycle:
            return self.costly_cycle
        far = row["gc_per_s"] and not 0.2 <= row["gc_per_s"] / load.gc_per_s <= 5
        return (
            "GC would run over five times as often, or as rarely, as in the log" if far else ""
        )

    @property
    def load_model(self) -> str:
        """The load model: `fixed-rate`, `cpu-bound` or `between`."""
        bound = self.load.cpu_bound if self.load else 0.0
        return "fixed-rate" if bound <= 0.1 else "cpu-bound" if bound >= 0.9 else "between"


def _predicted(baseline: Baseline, setting: Setting, horizon_s: float) -> Outcome:
    """Returns the prediction for one setting from one log."""
    impossible = None if baseline.load is None else baseline.impossible(setting)
    refused = impossible or baseline.refused or _horizon_refusal(baseline, horizon_s)
    row = blank(
        setting,
        load=baseline.load_model if baseline.load else None,
        horizon_s=horizon_s,
        refused=refused,
        warnings="; ".join(filter(None, (baseline.near_live_heap(setting), *baseline.warnings)))
        or None,
    )
    if baseline.load is None or impossible or (refused or "").endswith(FRAGMENTED):
        return Outcome(row)
    if horizon_s and row["refused"]:
        return Outcome(row)
    center, others = _alternatives(baseline, setting, horizon_s)
    row["refused"] = row["refused"] or _too_few(baseline.load, center)
    row |= {
        "thrash": _thrash(baseline, setting, center, others),
        "thrash_share": center.thrash_share,
        "heap_goal_mib": center.goal,
        "effective_gogc": center.effective_gogc,
        "goal_set_by": center.set_by,
        "true_live_heap_mib": center.true_live,
    }
    terms = terms_of(baseline.load, center)
    for name in QUANTITIES:
        if row["refused"] and name not in ("heap_peak_mib", "live_heap_mib"):
            continue
        low, middle, high = interval(
            name, baseline.load, center, others, baseline.factors, terms
        )
        row |= {name: middle, f"{name}_low": low, f"{name}_high": high}
    if not horizon_s:
        _keep_possible(row, baseline, setting, center)
    if baseline.load_model == "cpu-bound" and not horizon_s and not row["refused"]:
        ends = run_time(baseline.load, center)
        row |= zip(
            ("run_time_ratio_low", "run_time_ratio", "run_time_ratio_high"), ends, strict=True
        )
    return Outcome(row, center, others)


_PEAKS = ("heap_peak_mib_low", "heap_peak_mib", "heap_peak_mib_high")


def _keep_possible(row: Row, baseline: Baseline, setting: Setting, center: Prediction) -> None:
    """Takes the heap peak from the heaviest stretch, and limits its interval to possible values.

    The heap is never smaller than the largest live heap, and a limit without thrashing is never
    exceeded. With less room than now, a smaller part of the marked heap is new allocation.
    """
    assert baseline.measured is not None
    assert baseline.load is not None
    assert baseline.highest is not None
    if baseline.heaviest is not None:
        # The peak belongs to the heaviest stretch, wherever the other figures come from.
        peak = baseline.heaviest.predict(setting).heap_peak
        times = max(peak / max(row["heap_peak_mib"], 1e-9), 1.0)
        row |= {name: times * row[name] for name in _PEAKS}
    # A burst need not happen again.
    burst = baseline.load.heap_end_max - baseline.load.calm_end_max
    row["heap_peak_mib_low"] *= 1 - min(burst / row["heap_peak_mib"], 1.0)
    other_ballast = setting.ballast - baseline.now.ballast
    live = baseline.highest.marked + other_ballast
    held = baseline.highest.held + other_ballast
    row |= {name: max(row[name], held) for name in _PEAKS}
    # Near the live heap, a limit lets GC run most of the time, and the program allocates meanwhile.
    if center.gap >= baseline.load.gap_mib or baseline.near_live_heap(setting):
        if not setting.limit:
            # With more room, no peak is lower than the measured one, except for bursts.
            live = max(live, baseline.measured.calm_end_max + other_ballast)
        for name in ("heap_peak_mib", "heap_peak_mib_high"):
            row[name] = max(row[name], live)
    peak = row["heap_peak_mib"]
    row["heap_peak_mib_low"] = max(row["heap_peak_mib_low"], min(live, peak))
    if setting.limit and row["thrash"] == "no":
        high = row["heap_peak_mib_high"]
        row["heap_peak_mib_high"] = min(high, max(setting.limit, peak))
    if setting.limit and row["thrash"] != "certain":
        # A burst or thrashing may exceed the limit for a moment: only `high` includes it.
        row["heap_peak_mib"] = min(peak, max(setting.limit - center.non_heap, live))
        row["heap_peak_mib_low"] = min(row["heap_peak_mib_low"], row["heap_peak_mib"])


def _with_evidence(baseline: Baseline, own: Outcome, setting: Setting) -> None:
    """Replaces a row's predictions by the mean of the predictions from several logs.

    A log gets more weight the closer its setting is to the predicted one, measured in MiB allocated
    per cycle. The intervals do not get narrower, because the errors of the logs have common causes.
    """
    usable = [run for run in baseline.evidence if run.no_evidence is None]
    predicted = [(run, _predicted(run, setting, 0.0)) for run in usable]
    outcomes = [(baseline, own), *(one for one in predicted if not one[1].row["refused"])]
    if len(outcomes) == 1:
        return
    weights = []
    for run, other in outcomes:
        assert run.load is not None
        assert other.center is not None
        distance = math.log(other.center.gap / run.load.gap_mib)
        weights.append(1 / (distance**2 + SAME_SETTING))
    nearest = outcomes[max(range(len(outcomes)), key=weights.__getitem__)][1].row
    own.row.update({name: nearest[name] for name in ("thrash", "thrash_share")})
    for name in QUANTITIES:
        for end in ("", "_low", "_high"):
            values = [max(other.row[f"{name}{end}"] or 0.0, 1e-9) for _, other in outcomes]
            logs = (
                weight * math.log(value) for weight, value in zip(weights, values, strict=True)
            )
            own.row[f"{name}{end}"] = math.exp(sum(logs) / sum(weights))


FAR = 5.0
"""Ratio of MiB allocated per cycle, now and then, beyond which few cycles prove too little."""

SAME_SETTING = 0.1
"""Added to each log's distance, so that a log of the same setting gets no infinite weight. A log at
a distance of ×2 in MiB allocated per cycle has a sixth of its weight."""


def _measured(baseline: Baseline) -> Row:
    """Returns the measured figures of the present setting, which replace the predicted ones."""
    load = baseline.measured
    assert load is not None
    values: Row = load.figures
    # Like every prediction, with the live heap of the start-up.
    values["heap_peak_mib"] = max(load.heap_end_max, baseline.live_max_mib or 0.0)
    if not fits_cpus(load):
        values |= dict.fromkeys(("gc_cpu_share", "gc_cpu_with_idle_share", "gc_cpu_cores"))
    if baseline.load_model == "cpu-bound":
        values["run_time_ratio"] = 1.0
    ends = {
        f"{name}{end}": value for name, value in values.items() for end in ("_low", "_high")
    }
    thrash = "no"
    if baseline.whole:
        thrash = "certain"
    elif baseline.now.limit and load.no_room_share >= SOMETIMES:
        thrash = "risk"
    return values | ends | {"thrash": thrash, "thrash_share": load.no_room_share}


def _alternatives(
    baseline: Baseline, setting: Setting, horizon_s: float
) -> tuple[Prediction, tuple[Prediction, ...]]:
    """Returns the prediction, followed by those under other plausible assumptions."""
    model = baseline.model
    assert model is not None
    grown_low, middle, grown_high = _grown_mib(baseline, horizon_s)
    grown = middle if horizon_s and baseline.growth is not None else None
    center = model.predict(setting, grown_mib=grown)
    others = []
    if setting.limit:
        others = [
            model.predict(setting, shift=shift, grown_mib=grown)
            for shift in model.non_heap.ranges(under_own_limit=setting.limit == model.now.limit)
        ]
    if grown is not None:
        others += [
            model.predict(setting, grown_mib=grown_mib) for grown_mib in (grown_low, grown_high)
        ]
    return center, tuple(others)


def _thrash(
    baseline: Baseline, setting: Setting, center: Prediction, others: Sequence[Prediction]
) -> str:
    """Returns whether the setting thrashes, or may do so under a plausible assumption."""
    highest = baseline.highest
    if highest is not None and setting.limit and setting.limit <= highest.held:
        return "certain"
    if baseline.whole and center.thrash == "no" and baseline.near_live_heap(setting):
        # The calm part may lack what made the rest thrash.
        return "risk"
    is_sure = all(other.thrash == center.thrash for other in others)
    return center.thrash if is_sure else "risk"


def _too_few(load: Load, center: Prediction) -> str | None:
    """Returns why few cycles prove too little for a setting with many cycles; else None."""
    if load.cycles >= FEW_CYCLES or center.gap * FAR >= load.gap_mib:
        return None
    return (
        f"{load.cycles} steady cycles are too few to predict a setting with more than {FAR:.0f} "
        f"times as many cycles per MiB: record at least {FEW_CYCLES}"
    )


_HALVINGS = 10
"""Steps of the bisection: to a thousandth of the available memory."""


def _horizon_refusal(baseline: Baseline, horizon_s: float) -> str | None:
    """Returns why the horizon cannot be predicted; None if it can."""
    if not horizon_s or baseline.growth_is_known:
        return None
    observed_s = baseline.observed_s if baseline.growth is None else baseline.growth.span_s
    if baseline.growth is None and observed_s >= DEFAULT.growth_min_span_s:
        return None
    grows, live = ("", "the live heap")
    if baseline.growth is not None:
        grows, live = ("the live heap grows, but ", "it")
    return (
        f"{grows}{observed_s:.0f} s is too short to extrapolate {live}: record several minutes"
    )


def _grown_mib(baseline: Baseline, horizon_s: float) -> tuple[float, float, float]:
    """Returns the live heap's growth from the log's end until the horizon: low, middle, high.

    The interval covers the uncertainty of the growth (95 %).
    """
    growth = baseline.growth
    if growth is None or not horizon_s:
        return 0.0, 0.0, 0.0
    hours = horizon_s / 3600
    return hours * growth.low, hours * growth.mib_per_h, hours * growth.high


def lasts(baseline: Baseline, setting: Setting) -> dict[str, float]:
    """Returns the hours until the growing live heap thrashes or fills the container.

    Empty if the heap does not grow, if nothing bounds it, or if the log is too short. The interval
    covers the uncertainty of the growth (95 %).
    """
    growth = baseline.growth
    if growth is None or not baseline.growth_is_known:
        return {}
    most = max(setting.limit or 0.0, baseline.room_mib or 0.0)
    if not most or not _fails(baseline, setting, most):
        return {}
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _fails(baseline, setting, middle) else (middle, high)
    rates = {"": growth.mib_per_h, "_low": growth.high, "_high": growth.low}
    return {f"lasts_h{end}": low / rate for end, rate in rates.items()}


def _fails(baseline: Baseline, setting: Setting, grown: float) -> bool:
    """Returns whether the grown heap would thrash or no longer fit into the container."""
    model = baseline.model
    assert model is not None
    replayed = model.look(setting, grown)
    if setting.limit and replayed.no_room >= SOMETIMES:
        return True
    non_heap = model.non_heap.at(replayed.goal, setting.ballast)
    memory = baseline.memory_mib(replayed.peak, non_heap, setting.ballast)
    return baseline.room_mib is not None and memory > baseline.room_mib
