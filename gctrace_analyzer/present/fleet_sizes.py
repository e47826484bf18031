"""Cores and sizes of a fleet as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.present.format import NONE

if TYPE_CHECKING:
    from collections.abc import Callable

_HUNDREDTH = 0.01


def cores(value: float | None) -> str:
    """Formats cores or GiB with two digits.

    >>> cores(412.3), cores(3.14), cores(0.0412), cores(-0.2), cores(0), cores(0.0037)
    ('412', '3.1', '0.04', '-0.20', '0', '0.004')
    """
    if value is None:
        return NONE
    if value == 0:
        return "0"
    if abs(value) < _HUNDREDTH:
        # 0.00 would hide the base of a change.
        return "<0.001" if abs(value) < _HUNDREDTH / 10 else f"{value:.3f}"
    return f"{value:,.{0 if abs(value) >= 10 else 1 if abs(value) >= 1 else 2}f}"


def gib(value: float | None) -> str:
    """Formats MiB as GiB, without the unit."""
    return cores(None if value is None else value / 1024)


def mib_number(value: float | None) -> str:
    """Formats MiB without the unit.

    >>> mib_number(14.2), mib_number(0.31), mib_number(0)
    ('14', '0.3', '0')
    """
    if value is None:
        return NONE
    return f"{value:,.{0 if abs(value) >= 10 or value == 0 else 1}f}"


def size_unit(*several: float | None) -> tuple[str, Callable[[float | None], str]]:
    """Returns a common unit for sizes in MiB, and the function that formats them.

    >>> size_unit(14.2, 30.0)[0], size_unit(900.0, 2048.0)[0]
    ('MiB', 'GiB')
    """
    largest = max((abs(size) for size in several if size is not None), default=0.0)
    return ("GiB", gib) if largest >= _GIB_MIB else ("MiB", mib_number)


_GIB_MIB = 1024
