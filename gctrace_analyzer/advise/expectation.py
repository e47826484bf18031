"""Predicted figures for a change of settings that was then made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.advise.prediction.model import Setting
    from gctrace_analyzer.advise.predictor import Predictor

SAME_GOGC = 0.08
"""Relative difference below which two values of GOGC, if inferred, are the same setting."""

_METRICS = (
    "gc_per_s",
    "gc_cpu_share",
    "gc_cpu_with_idle_share",
    "assist_share_of_gc_cpu",
    "stw_share",
    "heap_peak_mib",
    "run_time_ratio",
)
"""The metrics that are compared with predictions. The live heap is not compared, because
its prediction is a mean and the report's figure is a median."""

Expectation: TypeAlias = dict[str, tuple[float | None, ...]]


def expectation(predictor: Predictor, wanted: Setting) -> tuple[Expectation, str | None]:
    """Returns the prediction and the ends of its interval by metric, or why there are none.

    Args:
        predictor: what was observed before.
        wanted: the setting to predict.
    """
    row = predictor.at(wanted).row
    if row["refused"]:
        return {}, str(row["refused"])
    return of_row(row), None


def of_row(row: Mapping[str, Any]) -> Expectation:
    """Returns what a row of `schema.WHATIF` or `schema.RECOMMENDATIONS` predicts, by metric."""
    ends = {
        name: tuple(row.get(f"{name}{end}") for end in ("", "_low", "_high"))
        for name in _METRICS
    }
    return {name: values for name, values in ends.items() if values[0] is not None}


def same_gogc(one: float | None, other: float | None) -> bool:
    """Returns whether two values of GOGC, which may be inferred, are the same setting."""
    if one is None or other is None:
        return False
    return one == other or abs(one / other - 1) < SAME_GOGC
