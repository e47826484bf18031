"""The 80 % intervals of predictions, from the errors measured on real programs."""

from __future__ import annotations

import math
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gctrace_analyzer.advise.prediction.load import Load
    from gctrace_analyzer.advise.prediction.model import Prediction


class Width(NamedTuple):
    """Terms of the standard deviation of the logarithm of an error; they add in quadrature.

    Each attribute is a coefficient: it is multiplied by the quantity named.

    Attributes:
        always: by nothing: the error at any distance.
        distance: by |ln(MiB allocated per cycle, then / now)|.
        cycles: by 1/√(cycles in the log).
        target: by 1/√(cycles in the predicted run).
        work: by the variation of the CPU of marking, and by 1/√cycles of log and predicted run.
        ends: by the variation of the time from cycle to cycle, and by 1/cycles of log and predicted
            run: where the first and the last cycle fall is chance.
        bound: by how CPU-bound the program is (0 to 1).
        variation: by the variation of the live heap.
        phases: by the spread over the phases of the replay.
        rounding: by 1/(MiB allocated per cycle), then and now, because sizes are in whole MiB.
        contended: by 1 if other work seems to compete for the CPUs.
        old_pacer: by how CPU-bound the program is, under the pacer of Go 1.17 and earlier.
        limited: by 1 if a memory limit set most goals of the log. Then the room from live heap to
            goal is what the limit leaves, and other things vary with it than under a GOGC.
    """

    always: float
    distance: float
    cycles: float
    target: float
    work: float
    ends: float
    bound: float
    variation: float
    phases: float
    rounding: float
    contended: float
    old_pacer: float
    limited: float


WIDTHS = {
    "gc_per_s": Width(.04, .10, .50, .20, .0, 3.0, .10, .20, .3, .3, .0, .1, .28),
    "gc_cpu_share": Width(.17, .08, .30, .20, .6, .0, .10, .05, .3, .45, .10, .0, .28),
    "gc_cpu_with_idle_share": Width(.16, .06, .30, .15, .6, .0, .0, .05, .3, .45, .10, .0, .22),
    "gc_cpu_cores": Width(.16, .06, .30, .15, .6, .0, .0, .05, .3, .45, .10, .0, .22),
    "assist_share_of_gc_cpu": Width(.24, .32, .60, 1.1, .0, .0, .0, .0, .0, .45, .10, .0, .40),
    "heap_peak_mib": Width(.03, .05, .20, .30, .0, .0, .03, .15, 1.0, .0, .0, .25, .08),
    "live_heap_mib": Width(.03, .02, .10, .10, .0, .0, .05, .30, .3, .0, .0, .12, .0),
    "stw_share": Width(.20, .14, .40, .40, .0, .0, .0, .08, .3, .45, .10, .0, .0),
}  # fmt: skip
"""Standard deviation of the logarithm of the error, by quantity."""

_SQUARES = {name: tuple(each**2 for each in width) for name, width in WIDTHS.items()}

FACTORS: dict[str, float] = {
    "gc_per_s": 0.85,
    "gc_cpu_share": 1.25,
    "gc_cpu_with_idle_share": 1.15,
    "gc_cpu_cores": 1.15,
    "assist_share_of_gc_cpu": 1.7,
    "heap_peak_mib": 1.05,
    "live_heap_mib": 1.5,
    "stw_share": 1.85,
}
"""Factor on it so that 80 % of the results of real programs lie inside (conformal:
`lab/evaluate predictions --fit`, rounded up)."""

QUANTITIES = tuple(WIDTHS)
"""The predicted quantities that have an interval."""

_TRUNCATION_MIB = 0.5
"""The log truncates sizes to whole MiB."""

_SHARES = ("gc_cpu_share", "gc_cpu_with_idle_share", "assist_share_of_gc_cpu", "stw_share")
_ATTRIBUTES = {"heap_peak_mib": "heap_peak", "live_heap_mib": "marked_live"}

_MOST = 50.0
"""The largest half width of an interval, as a logarithm; a wider one says nothing."""

_THRASHING = 0.3
"""Added to the standard deviation of a thrashing program, whose speed is nearly unpredictable."""


def interval(
    quantity: str,
    load: Load,
    center: Prediction,
    others: Sequence[Prediction],
    factors: Mapping[str, float] = FACTORS,
    terms: Width | None = None,
) -> tuple[float, float, float]:
    """Returns the lower end, the value and the upper end of a predicted quantity.

    Args:
        quantity: one of `QUANTITIES`.
        load: the load that the prediction starts from.
        center: the prediction.
        others: predictions under other plausible assumptions; the interval covers them.
        factors: factor on the standard deviation, by quantity.
        terms: what `terms_of` returns, if it is known.
    """
    value = value_of(quantity, center)
    by = factors[quantity] * deviation(quantity, load, center, terms)
    below, above = apart(quantity, center, others)
    low, high = min(math.hypot(by, below), _MOST), min(math.hypot(by, above), _MOST)
    truncation = _TRUNCATION_MIB if quantity.endswith("_mib") else 0.0
    most = 1.0 if quantity in _SHARES else math.inf
    low, high = value * math.exp(-low) - truncation, value * math.exp(high) + truncation
    return min(max(low, 0.0), most), min(value, most), min(max(high, 0.0), most)


def apart(
    quantity: str, center: Prediction, others: Sequence[Prediction]
) -> tuple[float, float]:
    """Returns how far the other predictions lie below and above, as logarithms of the ratio."""
    if not others:
        return 0.0, 0.0
    value = value_of(quantity, center)
    ratios = [0.0, *(math.log(value_of(quantity, other) / value) for other in others)]
    return min(ratios), max(ratios)


def deviation(
    quantity: str, load: Load, center: Prediction, terms: Width | None = None
) -> float:
    """Returns the standard deviation of the logarithm of the error, without `apart`."""
    terms = terms or terms_of(load, center)
    if quantity == "heap_peak_mib":
        terms = terms._replace(phases=center.peak_spread**2)
    width = math.sqrt(sum(map(mul, _SQUARES[quantity], terms)))
    # Heap sizes stay bounded even while thrashing.
    thrashes = center.thrash != "no" and not quantity.endswith("_mib")
    return width + (_THRASHING if thrashes else 0.0)


def terms_of(load: Load, center: Prediction) -> Width:
    """Returns the squares of the factors for the coefficients.

    They are the same for every quantity, except that the heap peak has phases of its own.
    """
    target_cycles = max(center.gc_per_s * load.span_s, 1.5)
    bound = load.cpu_bound**2
    return Width(
        always=1.0,
        distance=math.log(center.gap / load.gap_mib) ** 2,
        cycles=1 / load.cycles,
        target=1 / target_cycles,
        work=load.work_variation**2 * (1 / load.cycles + 1 / target_cycles),
        ends=load.period_variation**2 * (1 / load.cycles**2 + 1 / target_cycles**2),
        bound=bound,
        variation=load.variation**2,
        phases=center.gap_spread**2,
        rounding=1 / load.gap_mib**2 + 1 / center.gap**2,
        contended=float(load.is_contended),
        old_pacer=0.0 if load.new_pacer else bound,
        limited=float(load.limited),
    )


def value_of(quantity: str, prediction: Prediction) -> float:
    """Returns a predicted quantity, above 0."""
    return max(float(getattr(prediction, _ATTRIBUTES.get(quantity, quantity))), 1e-9)
