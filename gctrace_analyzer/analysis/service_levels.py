"""Service levels: how much of the pauses, or of the time, is within what a service promises."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from gctrace_analyzer import units
from gctrace_analyzer.analysis.pauses import single_pauses
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.analysis.windows import windows
from gctrace_analyzer.errors import BadSettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

Quantity: TypeAlias = Literal["pause", "gc_cpu"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)

WINDOW_S = 10.0
"""GC CPU is compared in windows of this length."""


@dataclass(frozen=True, slots=True)
class ServiceLevel:
    """A promise and how far it was kept.

    Attributes:
        quantity: `pause` or `gc_cpu`.
        limit: in milliseconds for pauses, as a share (0–1) for GC CPU.
        within_share: share of the pauses, or of the 10 s windows, within the limit; None if
            there is nothing to compare.
        worst: the longest pause in milliseconds, or the highest share of a window.
    """

    quantity: Quantity
    limit: float
    within_share: float | None
    worst: float | None

    def to_dict(self) -> dict[str, Any]:
        """Returns the values by name, ready for JSON."""
        return asdict(self)


def limits(given: Mapping[str, str | float]) -> dict[Quantity, float]:
    """Returns promised limits, given as `{"pause": "2ms", "gc_cpu": "5%"}`, as numbers.

    Raises:
        BadSettingError: a quantity is unknown, or a limit cannot be read.
    """
    found: dict[Quantity, float] = {}
    for name, value in given.items():
        quantity = next((each for each in QUANTITIES if each == name), None)
        if quantity is None:
            raise BadSettingError.unknown(argument="slo", value=name, valid=QUANTITIES)
        found[quantity] = _limit(quantity, value)
    return found


def _limit(quantity: Quantity, value: str | float) -> float:
    text = str(value).strip()
    try:
        if quantity == "pause":
            limit = 1000 * units.duration_s(value, argument="slo")
        else:
            limit = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except (ValueError, BadSettingError):
        limit = -1.0
    if limit <= 0 or (quantity == "gc_cpu" and limit >= 1):
        example = "pause=2ms" if quantity == "pause" else "gc_cpu=5%"
        raise BadSettingError(
            argument="slo", value=f"{quantity}={text}", expected=f"a limit such as {example}"
        )
    return limit


def service_levels(
    corrected: pl.DataFrame, promised: Mapping[Quantity, float]
) -> tuple[ServiceLevel, ...]:
    """Returns how far each promise was kept.

    Args:
        corrected: what `on_real_cpus` returns.
        promised: what `limits` returns.
    """
    found = []
    for quantity, limit in promised.items():
        if quantity == "pause":
            values = single_pauses(corrected)
        elif corrected["start_s"].count():
            values = windows(corrected, WINDOW_S)["gc_cpu_share"].drop_nulls()
        else:
            values = single_pauses(corrected).clear()
        within = (values <= limit).mean() if len(values) else None
        worst = values.max() if len(values) else None
        found.append(ServiceLevel(quantity, limit, within, worst))  # type: ignore[arg-type]
    return tuple(found)


def with_promises(thresholds: Thresholds, promised: Mapping[Quantity, float]) -> Thresholds:
    """Returns thresholds by which what breaks a promise is a warning."""
    changed: dict[str, Any] = {}
    if (pause := promised.get("pause")) is not None:
        changed |= {
            "stw_warn_ms": pause,
            "stw_single_ms": pause,
            "stw_bad_ms": max(DEFAULT.stw_bad_ms, pause),
        }
    if (cpu := promised.get("gc_cpu")) is not None:
        changed |= {"gc_cpu_warn": cpu, "gc_cpu_bad": max(DEFAULT.gc_cpu_bad, cpu)}
    return replace(thresholds, **changed)


_KINDS = {field.name: type(getattr(DEFAULT, field.name)) for field in fields(Thresholds)}


def thresholds_from(values: Mapping[str, Any]) -> Thresholds:
    """Returns the default thresholds with other values, by name.

    Raises:
        BadSettingError: a name is unknown, or a value is not a number.
    """
    changed: dict[str, Any] = {}
    for name, value in values.items():
        if name not in _KINDS:
            raise BadSettingError.unknown(
                argument="thresholds", value=name, valid=tuple(_KINDS)
            )
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise BadSettingError(
                argument="thresholds", value=f"{name}={value}", expected="a number, 0 or more"
            )
        if _KINDS[name] is tuple:
            raise BadSettingError(
                argument="thresholds", value=name, expected="a threshold with a single value"
            )
        changed[name] = _KINDS[name](value)
    return replace(DEFAULT, **changed)
