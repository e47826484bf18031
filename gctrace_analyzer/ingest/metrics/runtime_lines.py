"""Reads metrics of the runtime/metrics package that a program prints into its log.

Each is on a separate line, as in the example of the package's documentation (`/gc/heap/live:bytes:
4194304`), or a line has several as fields or JSON.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.ingest import json_values, numbers
from gctrace_analyzer.ingest.memstats import json_records, log_messages
from gctrace_analyzer.ingest.metrics import go_json, metric_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from gctrace_analyzer.ingest.evidence.message import Message, Row

HINT = r"/(?:gc|memory|cpu|sched|godebug|sync)/[a-zA-Z0-9/_-]+:[a-z-]+\W"

_ANY = re.compile(r"/(?:gc|memory|cpu|sched|godebug|sync)/[\w/-]{1,80}:[a-z]")
_PAIR = re.compile(
    r"(?P<name>/(?:gc|memory|cpu|sched)/[a-z/-]{1,60}:[a-z-]{1,20})\"?(?:\s*[:=|,]\s*|\s+)\"?"
    r"(?P<value>\d{1,20}(?:\.\d{0,20})?(?:e[+-]?\d{1,3})?)"
    # Not values that a program formats with its own unit, such as 4.2 MB.
    r"(?![\w.%]| ?(?:[KMGTkmgt]i?[Bb]|[nuµm]s)\b)"
)
_NEAR_LINES = 8
"""Most lines of other text between two metrics of one dump."""

_ENOUGH = 2
"""Number of metrics that make a dump."""


def read(messages: Iterable[Message]) -> list[Row]:
    """Returns one row per dump: one line, or several up to the first repeated metric."""
    places: list[Row] = []
    dumps: list[dict[str, object]] = []
    building: dict[object, tuple[int, dict[str, object]]] = {}
    for message in messages:
        if not _ANY.search(message.text):
            continue
        stream = tuple((message.identity() | dict.fromkeys(_PLACE)).values())
        last_line, dump = building.get(stream, (-_NEAR_LINES, {}))
        metrics, at = _metrics(message.text)
        if metrics and (
            metrics.keys() & dump.keys()
            or message.line_no - last_line > _NEAR_LINES
            or not dump
        ):
            dump = {}
            dumps.append(dump)
            place = log_messages.place(message)
            places.append(place if at is None else place | {"logged_at": at})
        dump |= metrics
        building[stream] = (message.line_no, dump)
    kept = [index for index, dump in enumerate(dumps) if len(dump) >= _ENOUGH]
    if not kept:
        return []
    figures = go_json.figures([dumps[index] for index in kept]).to_dicts()
    rows = [
        places[index] | {name: value for name, value in row.items() if value is not None}
        for index, row in zip(kept, figures, strict=True)
    ]
    return log_messages.with_distances(rows)


_PLACE = ("line_no", "logged_at", "monotonic_s")


def _metrics(line: str) -> tuple[Mapping[str, Any], datetime | None]:
    """Returns the relevant metrics on a line by name, and the time of a JSON object."""
    if line.startswith("{"):
        try:
            value = json_values.loads(line)
        except ValueError:
            value = None
        if own := json_records.dump_of(value):
            metrics = {name: own[name] for name in metric_names.RUNTIME if name in own}
            return metrics, go_json.time_of(value)
    pairs = ((each["name"], each["value"]) for each in _PAIR.finditer(line))
    # A whole number may have more digits than a float.
    return {
        name: int(value) if value.isdigit() else numbers.real(value)
        for name, value in pairs
        if name in metric_names.RUNTIME
    }, None
