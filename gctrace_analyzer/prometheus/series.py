"""The answer to a query, and a series in the answer to an instant query."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict


class Result(TypedDict):
    """The series of an answer, as in its JSON."""

    result: list[dict[str, Any]]


class Answer(TypedDict):
    """The whole answer to a query that succeeded."""

    data: Result


class Series(NamedTuple):
    """A series: its labels and its value; None without a finite value."""

    labels: dict[str, str]
    value: float | None

    @classmethod
    def of(cls, series: Mapping[str, Any]) -> Series:
        """Returns a series of an answer."""
        try:
            value = float(series["value"][1])
        except (KeyError, IndexError, TypeError, ValueError):
            value = math.nan
        return cls(labels_of(series), value if math.isfinite(value) else None)


def labels_of(series: Mapping[str, Any]) -> dict[str, str]:
    """Returns the labels of a series of any answer."""
    labels = series.get("metric")
    if not isinstance(labels, dict):
        return {}
    return {str(name): str(value) for name, value in labels.items()}
