"""What another setting would do: a row each, with 80 % intervals, or why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.advise import pacer
from gctrace_analyzer.advise.model import Constants, Prediction, Setting, predict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.advise.load import Load
    from gctrace_analyzer.analysis.settings import Settings

_Z80 = 1.2815515655446004
"""Four of five runs lie within."""

CURVE = (25.0, 35.0, 50.0, 70.0, 100.0, 140.0, 200.0, 280.0, 400.0, 560.0, 800.0)
"""GOGC values of a trade-off, in equal steps of ratio."""

SAFE_LIMIT = 1.25
"""Times the live heap: a limit closer to it means collecting all the time."""

_FEWEST = 5
_ROUGH = 12

_SPREAD: dict[str, tuple[float, float, float, float, float, float]] = {
    "gc_per_s": (0.04, 0.05, 0.12, 0.10, 0.14, 0.08),
    "gc_cpu_share": (0.17, 0.12, 0.30, 0.45, 0.18, 0.0),
    "gc_cpu_with_idle_share": (0.115, 0.10, 0.20, 0.25, 0.02, 0.03),
    "assist_share_of_gc_cpu": (0.24, 0.32, 0.60, 1.1, 0.0, 0.0),
    "heap_peak_mib": (0.035, 0.02, 0.02, 0.05, 0.06, 0.06),
    "live_heap_mib": (0.009, 0.005, 0.01, 0.02, 0.05, 0.02),
    "stw_share": (0.20, 0.14, 0.40, 0.40, 0.0, 0.08),
}
"""Log standard deviation of the error: at all, by the distance in cycles/s, by 1/√cycles of the
log and of the target, by how CPU-bound and how bursty the program is. Measured on 640 pairs."""

_NAME_IT = "give the one it ran under, --memory-limit (with whatif --memory-limit-now)"
_THRASHES = "the log itself thrashes: its allocation rate is only a lower bound"
_SHARES = ("gc_cpu_share", "gc_cpu_with_idle_share", "assist_share_of_gc_cpu", "stw_share")
_THRASH = {"no": "no", "tight": "no", "likely": "risk", "certain": "certain"}


@dataclass(frozen=True, slots=True)
class Base:
    """What predictions start from: the load, its own setting, what else is known.

    `refused` says why nothing but the live heap, goal and peak can be said. `whole` is the load
    of all cycles where some thrashed: `load` is then of the longest stretch without.
    """

    load: Load | None
    now: Setting
    non_heap: float | None
    refused: str | None
    warnings: tuple[str, ...]
    settings: Settings
    whole: Load | None = None

    @property
    def measured(self) -> Load | None:
        """All that was measured under the present setting."""
        return self.whole or self.load

    @property
    def beside_heap_mib(self) -> float:
        """Memory that the limit counts beside the heap: from MemStats, else as is usual."""
        if self.non_heap is not None or self.load is None:
            return self.non_heap or 0.0
        return 8 + 2.3 * self.load.stacks + 0.07 * self.load.goal

    @property
    def least_limit_mib(self) -> float | None:
        """The least memory limit that the largest live heap does not thrash under."""
        if self.measured is None:
            return None
        return SAFE_LIMIT * self.measured.marked_live_max + self.beside_heap_mib

    @property
    def kind(self) -> str:
        """The load model: `fixed-rate`, `cpu-bound` or `between`."""
        bound = self.load.cpu_bound if self.load else 0.0
        return "fixed-rate" if bound <= 0.1 else "cpu-bound" if bound >= 0.9 else "between"


def grid(
    base: Base,
    gogc: Sequence[float | None],
    limit: Sequence[float | None],
    ballast: Sequence[float],
) -> pl.DataFrame:
    """A row of `schema.WHATIF` for each combination."""
    rows = [row(base, Setting(*each)) for each in product(gogc, limit, ballast)]
    return pl.DataFrame(rows, schema=schema.polars_schema("whatif"), orient="row")


def trade_off(base: Base, like: Setting) -> pl.DataFrame:
    """`schema.WHATIF` over GOGC, all else as in `like`; no rows where nothing is predicted."""
    if base.load is None or base.refused:
        return pl.DataFrame(schema=schema.polars_schema("whatif"))
    rows = grid(base, CURVE, [like.limit], [like.ballast])
    return rows.drop_nulls(["heap_peak_mib", "gc_cpu_with_idle_share"])


def row(base: Base, setting: Setting) -> dict[str, Any]:
    """The figures of one setting as a row of `schema.WHATIF`."""
    found: dict[str, Any] = dict.fromkeys(schema.names("whatif"))
    found |= {
        "gogc": setting.gogc, "memory_limit_mib": setting.limit, "ballast_mib": setting.ballast,
        "load": base.kind if base.load else None, "refused": _refusal(base, setting),
    }  # fmt: skip
    impossible = setting.limit and base.load is not None and not base.load.go_1_19
    if base.load is None or impossible or (setting.gogc is None and not setting.limit):
        return found
    if base.refused and setting == base.now and setting.gogc is None and not setting.limit:
        return found
    center, others = _alternatives(base, setting)
    found["thrash"] = _THRASH[center.thrash]
    found |= {
        "heap_goal_mib": center.goal, "effective_gogc": center.effective_gogc,
        "goal_set_by": center.set_by, "true_live_heap_mib": center.true_live,
        "memory_peak_mib": center.heap_peak + center.non_heap,
    }  # fmt: skip
    for name in _SPREAD:
        if found["refused"] and name not in ("heap_peak_mib", "live_heap_mib"):
            continue
        low, middle, high = _interval(name, base.load, center, others)
        found |= {name: middle, f"{name}_low": low, f"{name}_high": high}
    return found


def _alternatives(base: Base, setting: Setting) -> tuple[Prediction, list[Prediction]]:
    load = base.load
    assert load is not None
    c = Constants()

    def with_(constants: Constants = c, times: float = 1.0) -> Prediction:
        return predict(
            load, base.now, setting, non_heap=base.non_heap, constants=constants,
            fragmentation_times=times,
        )  # fmt: skip

    center = with_()
    others = [with_(replace(c, work_exponent=c.work_exponent + by)) for by in (-0.12, 0.12)]
    if center.non_heap_source == "assumed" and setting.limit:
        others += [with_(times=times) for times in (0.4, 3.0)]
    return center, others


def _value(name: str, prediction: Prediction) -> float:
    names = {"heap_peak_mib": "heap_peak", "live_heap_mib": "marked_live"}
    return max(float(getattr(prediction, names.get(name, name))), 1e-9)


def _interval(
    name: str, load: Load, center: Prediction, others: Sequence[Prediction]
) -> tuple[float, float, float]:
    at_all, by_distance, by_cycles, by_target, by_bound, by_burst = _SPREAD[name]
    value = _value(name, center)
    target_cycles = max(center.gc_per_s * load.span_s, 1.5)
    distance = abs(math.log(max(center.gc_per_s, 1e-6) / load.gc_per_s))
    sd = math.sqrt(
        at_all**2 + (by_distance * distance) ** 2 + by_cycles**2 / load.cycles
        + by_target**2 / target_cycles + (by_bound * load.cpu_bound) ** 2
        + (by_burst * load.burst) ** 2
    )  # fmt: skip
    apart = [math.log(_value(name, other) / value) for other in others]
    low = -math.hypot(_Z80 * sd, min(0.0, *apart))
    high = math.hypot(_Z80 * sd, max(0.0, *apart))
    if center.thrash in ("certain", "likely") and name != "live_heap_mib":
        more = 0.2 if name == "heap_peak_mib" else 0.4
        low, high = low - more, high + more
    # The MiB floors of the log.
    floor = 0.4 if name.endswith("_mib") else 0.0
    most = 1.0 if name in _SHARES else math.inf
    return (
        max(value * math.exp(low) - floor, 0.0),
        value,
        min(value * math.exp(high) + floor, most),
    )


def _refusal(base: Base, setting: Setting) -> str | None:
    if base.load is None:
        return base.refused
    if setting.gogc is None and not setting.limit:
        return "GOGC=off without a limit: the collector never runs, the heap has no bound"
    if setting.limit and not base.load.go_1_19:
        return "this Go has no memory limit: upgrade to Go 1.19 or later"
    return base.refused


def base_of(
    load: Load | None,
    settings: Settings,
    non_heap: float | None,
    *,
    programs: int,
    why_none: str | None,
    by_limit: bool = False,
    whole: Load | None = None,
) -> Base:
    """What predictions from a log start from; its setting as given or as the log shows it."""
    if load is None:
        return Base(
            None, Setting(), non_heap, why_none or "fewer than 3 steady cycles", (), settings
        )
    now, inferred = _now(load, settings)
    refused, warnings = _checked(load, now, non_heap, inferred=inferred)
    if now.gogc is None and not now.limit:
        refused = f"GOGC=off was given without a memory limit: {_NAME_IT}"
    elif by_limit and not now.limit:
        refused = f"a memory limit sets the goal here, and it is not known: {_NAME_IT}"
    if programs > 1:
        note = f"the log holds {programs} program starts: predicted from the longest"
        warnings = (*warnings, note)
    base = Base(load, now, non_heap, refused, warnings, settings, whole)
    if whole is None:
        return base
    most, least = whole.marked_live_max, base.least_limit_mib
    if refused == _THRASHES:
        return replace(
            base,
            refused=f"{refused}. Its live heap of {most:.0f} MiB at most wants a memory limit "
            f"of {least:.0f} MiB at least",
        )
    note = (
        f"predicted from {load.begin_s:.1f} s to {load.begin_s + load.span_s:.1f} s, the "
        "longest stretch without limit-thrash; elsewhere the live heap is "
        f"{most:.0f} MiB at most, and the peak higher"
    )
    return replace(base, warnings=(*warnings, note))


def _now(load: Load, settings: Settings) -> tuple[Setting, bool]:
    gogc, limit = settings.value("gogc"), settings.value("memory_limit_mib")
    if gogc is not None:
        given = None if gogc == "off" else float(gogc)
        return Setting(given, limit), False
    seen = load.effective_gogc
    if limit is not None:
        # Under a limit GOGC shows only where it sets the goal; 100 is what nobody changes.
        return Setting(pacer.snapped(seen) if seen >= 95 else 100.0, limit), True
    return Setting(max(pacer.snapped(seen), 1.0), None), True


def _checked(
    load: Load, now: Setting, non_heap: float | None, *, inferred: bool
) -> tuple[str | None, tuple[str, ...]]:
    """Why to refuse, and what to keep in mind."""
    warnings: list[str] = []
    refused = _too_odd(load, now, inferred=inferred)
    if load.cycles < _ROUGH:
        warnings.append(f"only {load.cycles} steady cycles: GC CPU is rough")
    drift = load.true_live_last - load.true_live_first
    if abs(drift) > max(0.15 * load.true_live, 2.5):
        warnings.append(
            f"the live heap moved from {load.true_live_first:.0f} to "
            f"{load.true_live_last:.0f} MiB: "
            "predicted for its mean"
        )
    if refused is None:
        again = predict(load, now, now, non_heap=non_heap)
        if abs(math.log(max(again.gc_per_s, 1e-9) / load.gc_per_s)) > 0.18:
            warnings.append(
                f"the model gives {again.gc_per_s:.3g} cycles/s for the log's own setting, "
                f"measured {load.gc_per_s:.3g}"
            )
    return refused, tuple(warnings)


def _too_odd(load: Load, now: Setting, *, inferred: bool) -> str | None:
    """Why nothing can be predicted from it."""
    if load.cycles < _FEWEST:
        return f"{load.cycles} steady cycles: at least {_FEWEST} are needed, 20 are better"
    if load.alloc <= 0:
        return "it allocates too little to be seen in whole MiB"
    if not load.new_pacer:
        return "Go 1.17 or before, whose pacer is another"
    if load.gc_active_share > 0.9 or ((now.limit or inferred) and load.effective_gogc < 12):
        return _THRASHES
    if load.forced_share > 0.2:
        return f"{100 * load.forced_share:.0f} % of the cycles were asked for by the program"
    if load.procs_changed:
        return "GOMAXPROCS changed within the log"
    if _contradicts(load, now) and not inferred:
        seen = f"{load.effective_gogc:.0f} is in effect"
        return f"GOGC {now.gogc:.0f} was given, but {seen}: name the right one"
    return None


def _contradicts(load: Load, now: Setting) -> bool:
    """Whether the GOGC in effect is not the one somebody says."""
    if not now.gogc or now.limit or load.marked_live <= 20:
        return False
    return abs(load.effective_gogc / now.gogc - 1) > 0.10
