"""Reads metrics from any other JSON with their names: prom2json, Grafana frames, and so on.

A member such as `name`, or a label, names the metric. Its number is next to the name, or at the
same place of a list. Each metric becomes a line of a metrics page.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.ingest import json_values, numbers
from gctrace_analyzer.ingest.metrics import exposition, metric_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gctrace_analyzer.ingest.metrics.samples import Rejected, Samples

_NAMES = ("__name__", "name", "Name", "metric", "metric_name", "key", "id")
_LABELS = ("labels", "Labels", "tags", "attributes", "metric")
_VALUES = ("value", "Value", "gauge", "counter", "val", "last", "sum_value")
_DEPTH = 12
_NAMED = re.compile(rf'"(?:{"|".join(_NAMES)})"\s*:\s*"([\w.:/-]{{1,200}})"')


def is_named(head: str) -> bool:
    """Returns whether a text with this beginning is JSON that names metrics."""
    is_json = head.lstrip()[:1] in ("{", "[")
    return is_json and any(map(metric_names.may_be_read, _NAMED.findall(head)))


def read(text: str, samples: Samples) -> list[Rejected]:
    """Adds the samples of every relevant metric; returns the damaged parts."""
    try:
        value = json_values.loads(text)
    except ValueError:
        value = json_values.before_cut(text)
    lines = dict.fromkeys(_lines(value, "", {}, _DEPTH))
    return exposition.read("".join(f"{line}\n" for line in lines), samples)


def _lines(value: Any, name: str, labels: Mapping[str, str], depth: int) -> Iterator[str]:
    """Yields the samples in a value that belongs to the metric `name`, if it is not empty."""
    if isinstance(value, list) and depth:
        for item in value:
            yield from _lines(item, name, labels, depth - 1)
    if not isinstance(value, dict) or not depth:
        return
    own = [labels, *(value[key] for key in _LABELS if isinstance(value.get(key), dict))]
    labels = {key: str(text) for part in own for key, text in part.items()}
    given = (value.get(key) or labels.get(key) for key in _NAMES)
    name = next((text for text in given if isinstance(text, str) and _is_read(text)), name)
    if name:
        plain = {key: text for key, text in labels.items() if key not in _NAMES}
        yield from _samples(value, name, plain)
    schema = value.get("schema")
    if isinstance(schema, dict) and isinstance(value.get("data"), dict):
        # A frame of Grafana has column names apart from the values.
        columns = zip(schema.get("fields", ()), value["data"].get("values", ()), strict=False)
        for field, column in columns:
            yield from _lines({**field, "value": column[-1:]}, "", {}, depth - 1)
    for key, inner in value.items():
        if key not in ("schema", *_LABELS):
            yield from _lines(inner, name, labels, depth - 1)


def _samples(value: Mapping[str, Any], name: str, labels: Mapping[str, str]) -> Iterator[str]:
    """Yields the samples of a metric in an object."""
    for key in _VALUES:
        given = value.get(key)
        yield from _line(
            name, labels, given[-1] if isinstance(given, list) and given else given
        )
    for part in ("count", "sum"):
        yield from _line(f"{name}_{part}", labels, value.get(part))
    quantiles = value.get("quantiles")
    for quantile, given in quantiles.items() if isinstance(quantiles, dict) else ():
        yield from _line(name, {**labels, "quantile": quantile}, given)


def _line(name: str, labels: Mapping[str, str], value: Any) -> Iterator[str]:
    number = numbers.real(value) if isinstance(value, int | float | str) else None
    if number is not None:
        pairs = ",".join(f"{key}={json.dumps(text)}" for key, text in labels.items())
        yield f"{name}{{{pairs}}} {number}"


def _is_read(name: str) -> bool:
    return any(map(metric_names.may_be_read, (name, f"{name}_count", f"{name}_sum")))
