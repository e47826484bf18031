"""Settings as lines of text: what they are called, their values and sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.units import size_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAMES = {
    "gogc": "GOGC", "memory_limit_mib": "GOMEMLIMIT", "container_limit_mib": "container limit",
    "cpu_limit": "CPU limit", "go_version": "Go version", "ballast_mib": "ballast",
    "off_heap_mib": "outside Go", "beside_mib": "other processes",
}  # fmt: skip


def as_lines(settings: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns one line per setting, with its value and source."""
    rows = [
        (NAMES[name], written(name, known["value"]), str(known["source"]))
        for name, known in settings.items()
    ]
    if not rows:
        return "no setting is known"
    names, values = (max(len(row[at]) for row in rows) for at in (0, 1))
    return "\n".join(
        f"{name:{names}}  {value:>{values}}  {source}" for name, value, source in rows
    )


def written(name: str, value: float | str | None) -> str:
    """Returns the value of a setting with its unit."""
    if not isinstance(value, float | int):
        return "off" if value is None else value
    return size_text(value) if name.endswith("_mib") else f"{value:g}"
