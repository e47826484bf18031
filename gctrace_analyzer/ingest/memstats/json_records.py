"""Reads MemStats and runtime/metrics from JSON: expvar, a marshalled object, or a log entry."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.ingest import identity_names, json_values, numbers
from gctrace_analyzer.ingest.memstats import fields
from gctrace_analyzer.ingest.metrics import metric_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gctrace_analyzer.ingest.evidence.message import Row

_DEPTH = 4
"""Largest number of objects around one with MemStats."""

_ENOUGH_INSIDE = 4
"""Number of MemStats fields that identify a dump inside other objects."""

_OF_BEATS = {"memory_total": ("total_alloc_bytes", 1)}
"""Other programs' names for host memory next to Beats' own name `gc_next`."""

_PRINTED = re.compile(r"(\d[\d,]{0,40}(?:\.\d{1,30})?) ?([a-zA-Zµ]{0,5})")


def is_record(value: Any) -> bool:
    """Returns whether a JSON object has fields of `runtime.MemStats`."""
    return isinstance(value, dict) and _are_of_memstats(tuple(value))


@lru_cache(maxsize=64)
def _are_of_memstats(keys: tuple[str, ...], enough: int = fields.ENOUGH) -> bool:
    return len({fields.scaled(key)[0] for key in keys if fields.is_field(key)}) >= enough


def _are_of_runtime(keys: Iterable[str]) -> bool:
    """Returns whether these are names of runtime/metrics, at least enough for a dump."""
    return len(metric_names.RUNTIME.keys() & set(keys)) >= fields.ENOUGH


def dump_of(value: Any) -> Mapping[str, Any] | None:
    """Returns the object with the fields of MemStats or runtime/metrics in a JSON value.

    Log libraries nest objects. A deeply nested one needs more fields to count as a dump, or the
    name `memstats`, because some names are common.
    """
    if not isinstance(value, dict):
        return None
    for inner in (value, *(each for each in value.values() if isinstance(each, dict))):
        if _are_of_runtime(inner) or is_record(inner):
            return {**_goroutines(value), **inner}
    dump = _deep_dump_of(value, _DEPTH)
    return None if dump is None else {**_goroutines(value), **dump}


def _goroutines(value: Mapping[str, Any]) -> Row:
    """Returns the number of goroutines published next to MemStats."""
    return {
        key: value[key] for key in value if fields.NAMES.get(fields.plain(key)) == "goroutines"
    }


def _deep_dump_of(value: Mapping[str, Any], depth: int) -> Mapping[str, Any] | None:
    for key, inner in value.items():
        if not isinstance(inner, dict):
            continue
        if "memstats" in key.lower() or _are_of_memstats(tuple(inner), _ENOUGH_INSIDE):
            return inner
        if depth and (dump := _deep_dump_of(inner, depth - 1)) is not None:
            return dump
    return None


def columns(
    dumps: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, list[Any]], dict[int, list[str]]]:
    """Returns the columns of the dumps, and per dump the names whose values are impossible.

    The dumps of a program have the same names, so each name is looked up only once, and a column of
    possible values is used unchanged.
    """
    alike: dict[tuple[str, ...], list[int]] = {}
    for row, dump in enumerate(dumps):
        alike.setdefault(tuple(dump), []).append(row)
    table = _Columns(dumps)
    for keys, rows in alike.items():
        table.add(keys, rows)
    return table.columns, table.impossible


class _Columns:
    def __init__(self, dumps: Sequence[Mapping[str, Any]]) -> None:
        self._dumps = dumps
        self.columns: dict[str, list[Any]] = {}
        self.impossible: dict[int, list[str]] = {}

    def add(self, keys: tuple[str, ...], rows: list[int]) -> None:
        """Adds the dumps of these rows, which have the same names."""
        dumps = [self._dumps[row] for row in rows]
        digits = [1] * len(rows)
        own = dict[str, list[Any]]()
        for key, column, factor in _meanings(keys):
            given = [dump[key] for dump in dumps]
            own[column] = _possible(given, column, factor, digits)
            self._put(column, rows, own[column])
            for row, value, raw in zip(rows, own[column], given, strict=True):
                if value is None and raw is not None:
                    self.impossible.setdefault(row, []).append(key)
        if max(digits) > 1:
            resolution = [digit if digit > 1 else None for digit in digits]
            self._put("resolution_bytes", rows, resolution)
        if "HeapSys" in keys and "alloc_bytes" in own and "heap_alloc_bytes" not in own:
            self._put("heap_alloc_bytes", rows, own["alloc_bytes"])
        if "PauseNs" in keys:
            counts = own.get("num_gc", [None] * len(rows))
            rings = [dump["PauseNs"] for dump in dumps]
            last = [
                fields.last_pause(ring, cycles)
                if isinstance(ring, list)
                else numbers.whole(ring)
                for ring, cycles in zip(rings, counts, strict=True)
            ]
            self._put("last_pause_ns", rows, last)
            if "PauseEnd" not in keys or len(rows) == 1:
                # With several dumps, the times of the pauses show which are new in each.
                self._add_pauses(rows, rings)
        elif "Pause" in keys or "PauseQuantiles" in keys:
            # debug.GCStats has the newest pause first.
            self._add_pauses(
                rows, [dump.get("PauseQuantiles") for dump in dumps], fields.quantiles
            )
            self._add_pauses(rows, [dump.get("Pause") for dump in dumps])

    def _add_pauses(
        self,
        rows: list[int],
        rings: list[Any],
        shown: Callable[[Sequence[Any]], dict[str, float]] = fields.pauses,
    ) -> None:
        """Adds facts about pauses without times, which cannot be rows of their own."""
        known = [shown(ring if isinstance(ring, list) else ()) for ring in rings]
        for column in ("pauses", "pause_min_s", "pause_p50_s", "pause_p90_s", "pause_max_s"):
            self._put(column, rows, [of_ring.get(column) for of_ring in known])

    def _put(self, column: str, rows: list[int], values: list[Any]) -> None:
        """Writes the values of some rows; unknown ones replace nothing."""
        into = self.columns.setdefault(column, [None] * len(self._dumps))
        if len(rows) == len(into) and into.count(None) == len(into):
            into[:] = values
            return
        for row, value in zip(rows, values, strict=True):
            if value is not None:
                into[row] = value


@lru_cache(maxsize=64)
def _meanings(keys: tuple[str, ...]) -> list[tuple[str, str, float]]:
    """Returns the names that are read, with the column of each and its unit in bytes."""
    if _are_of_runtime(keys):
        return [
            (key, metric_names.RUNTIME[key][0], 1)
            for key in metric_names.RUNTIME
            if key in keys
        ]
    scaled = ((key, *(_OF_BEATS.get(key) or fields.scaled(key))) for key in keys)
    return [
        (key, column, by)
        for key, column, by in scaled
        if column in fields.FIGURES and column and (key not in _OF_BEATS or "gc_next" in keys)
    ]


def _possible(values: list[Any], column: str, factor: float, digits: list[int]) -> list[Any]:
    """Returns the values that are possible in a column; null for the others.

    `digits` gets the bytes of the last digit of each value, if larger than before.
    """
    fits = {*map(type, values)} == {int} or column not in fields.INTEGERS
    if factor == 1 and fits and numbers.are_all_exported(values):
        return values
    read = [_quantity(column, value, factor) for value in values]
    digits[:] = [max(digit, own) for digit, (_, own) in zip(digits, read, strict=True)]
    return [value for value, _ in read]


def _quantity(column: str, given: Any, factor: float) -> tuple[float | int | None, int]:
    """Returns the number of a field, and the bytes of its last digit."""
    if isinstance(given, str):
        return _printed(column, given, factor)
    value = numbers.exported(given, column)
    if value is None or column not in fields.INTEGERS:
        return value if value is None or factor == 1 else value * factor, 1
    if isinstance(value, float):
        # Bytes and ns have no fraction, so the unit is another one, such as zap's seconds.
        is_whole = factor != 1 or value.is_integer()
        return (round(value * factor) if is_whole else None), 1
    digit = round(factor) if column.endswith("_bytes") else 1
    return (value if factor == 1 else numbers.whole(value, factor)), digit


def _printed(column: str, text: str, factor: float) -> tuple[float | int | None, int]:
    """Returns a number in text such as `18.9ms` or `87 MiB`, and the value of its last digit."""
    match = _PRINTED.fullmatch(text.strip())
    if match is None:
        return None, 1
    return fields.quantity(column, match[1].replace(",", ""), match[2].lower(), factor)


def from_record(value: Mapping[str, Any]) -> Row:
    """Returns the row of a JSON object with MemStats fields; other fields are ignored."""
    filled, _ = columns([value])
    row = {name: values[0] for name, values in filled.items() if values[0] is not None}
    if row.get("next_gc_bytes", 0) > numbers.LARGEST:
        # `^0 if disabled` in runtime/mstats.go: neither GOGC nor a memory limit sets a goal.
        row |= {"next_gc_bytes": None, "gogc_pct": -1}
    if row.get("rss_bytes", math.inf) < row.get("alloc_bytes", 0):
        # Older Beats print the change instead (#7505).
        del row["rss_bytes"]
    for key, given in value.items():
        if fields.is_time(key) and isinstance(given, str):
            row["logged_at"] = json_values.iso_utc(given)
        elif fields.scaled(key)[0] == "elapsed_s":
            row["elapsed_s"] = numbers.real(given)
    return row


def from_text(text: str) -> Row | None:
    """Returns the row of a line that is a JSON object with MemStats; None for other lines."""
    try:
        value = json_values.loads(text)
    except ValueError:
        return None
    dump = dump_of(value)
    if dump is None or _are_of_runtime(dump):
        return None
    return from_record(dump) | identity_names.of_json(value)
