"""How much a setting gains over the present one, and how certain that is.

The present figure is measured, and the other one is predicted from the same log. So errors that
both share (the program's own rate, the machine) cancel out. The rest was measured on real programs.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.prediction.widths import apart
from gctrace_analyzer.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.advise.prediction.load import Load
    from gctrace_analyzer.advise.prediction.model import Prediction

_Z80 = NormalDist().inv_cdf(0.9)
"""80 % of a normal distribution lies within this many standard deviations."""

_PAIRED = {
    "gc_cpu_with_idle_share": (0.22, 0.0, 0.0),
    "heap_peak_mib": (0.06, 0.05, 0.45),
    "stw_share": (0.30, 0.10, 0.40),
}
"""Standard deviation of the logarithm of the ratio: always; times |ln| of the ratio of MiB
allocated per cycle; times 1/√cycles, then and now (docs/predictions.md)."""

_CONTENDED = 1.5
"""Factor on this deviation if other work seems to compete for the CPUs."""


_RUN_TIME = (0.05, 0.3)
"""Standard deviation of the logarithm of a CPU-bound program's run time: always, and times the
logarithm itself. Measured on ten programs: nine of ten results of batch programs lie inside."""


def run_time(load: Load, center: Prediction) -> tuple[float, float, float]:
    """Returns the run time of a CPU-bound program relative to now: lower end, middle and upper end.

    The interval covers 80 %.
    """
    always, by_distance = _RUN_TIME
    width = _Z80 * math.hypot(always, by_distance * math.log(center.speed))
    width *= _CONTENDED if load.is_contended else 1.0
    middle = 1 / center.speed
    return middle * math.exp(-width), middle, middle * math.exp(width)


@frozen
class Gain:
    """The ratio of a present figure to the predicted one: above 1, the setting is better.

    Attributes:
        ratio: present / predicted.
        deviation: standard deviation of its logarithm.
    """

    ratio: float
    deviation: float

    @property
    def low(self) -> float:
        """Lower end of the 80 % interval of the ratio."""
        return self.ratio * math.exp(-_Z80 * self.deviation)

    @property
    def high(self) -> float:
        """Upper end of the 80 % interval of the ratio."""
        return self.ratio * math.exp(_Z80 * self.deviation)

    def certainty(self, least: float) -> float:
        """Returns the probability that the ratio is at least this large."""
        distance = math.log(max(self.ratio, 1e-9) / least)
        return NormalDist().cdf(distance / self.deviation)

    def saved(self, present: float) -> tuple[float, float, float]:
        """Returns the saving against `present`: lower end, middle and upper end (80 %)."""
        low, middle, high = (
            present * (1 - 1 / max(ratio, 1e-9)) for ratio in (self.low, self.ratio, self.high)
        )
        return low, middle, high


def gain(
    quantity: str,
    present: float,
    value: float,
    load: Load,
    center: Prediction,
    others: Sequence[Prediction],
) -> Gain:
    """Returns the gain of a prediction over the present measured figure.

    Args:
        quantity: `gc_cpu_with_idle_share`, `heap_peak_mib` or `stw_share`.
        present: the measured figure.
        value: the predicted figure.
        load: the load that the prediction starts from.
        center: the prediction.
        others: predictions under other plausible assumptions.
    """
    always, by_distance, by_cycles = _PAIRED[quantity]
    distance = abs(math.log(center.gap / load.gap_mib))
    cycles = 1 / load.cycles + 1 / max(center.gc_per_s * load.span_s, 2.0)
    assumed = max(map(abs, apart(quantity, center, others))) / _Z80
    times = _CONTENDED if load.is_contended else 1.0
    width = math.sqrt(
        (times * always) ** 2
        + (by_distance * distance) ** 2
        + by_cycles**2 * cycles
        + assumed**2
    )
    return Gain(max(present, 1e-9) / max(value, 1e-9), width)
