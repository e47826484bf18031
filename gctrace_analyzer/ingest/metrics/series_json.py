"""Reads series from JSON: answers of the Prometheus API, and VictoriaMetrics exports.

Both are objects with a `metric`, its labels. In an answer, `values` are pairs of time and value,
`value` is one such pair; an export has `values` and `timestamps`. The objects are decoded one
by one, wherever they are: several answers in one file, cut ones and re-indented ones read alike.
"""

from __future__ import annotations

import json
import re
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.ingest import json_values
from gctrace_analyzer.ingest.metrics.names import metric
from gctrace_analyzer.ingest.metrics.samples import unix_us

if TYPE_CHECKING:
    from gctrace_analyzer.ingest.metrics.samples import Samples

Rejected = tuple[int, str, str]

_METRIC = re.compile(r'\{\s*"metric"\s*:\s*(?=\{)')
_MEMBER = re.compile(r'\s*,\s*"(values|value|timestamps|histograms|histogram)"\s*:\s*')
_ERROR = re.compile(
    r'\A\s*\{\s*"status"\s*:\s*"error"(?:(?!"error"\s*:).){0,500}"error"\s*:\s*'
    r'"(?P<text>(?:[^"\\]|\\.){0,2000})',
    re.DOTALL,
)
_MOST_SAMPLES = 1 << 20
_CUT = "JSON that ends inside a value"


def error_of(text: str) -> str | None:
    """Returns the message of an answer that says the query failed; None for other texts."""
    found = _ERROR.match(text[:4096])
    return found["text"] if found else None


def read(text: str, samples: Samples) -> list[Rejected]:
    """Adds the samples of every series that is read; returns the damaged series."""
    rejected: list[Rejected] = []
    batch = _Batch(samples)
    line_no, counted = 1, 0
    found = _METRIC.search(text)
    while found is not None:
        at = found.end()
        line_no += text.count("\n", counted, at)
        counted = at
        end = at
        try:
            labels, end = json_values.raw_decode(text, at)
            end = _read_series(text, end, labels, line_no, batch)
        except ValueError:
            rejected.append((line_no, _CUT, text[found.start() : found.start() + 200]))
        found = _METRIC.search(text, max(end, at))
    batch.flush()
    return rejected


def _read_series(text: str, at: int, labels: Any, line_no: int, batch: _Batch) -> int:
    """Adds the samples of the series whose labels end at `at`; returns where it ends.

    Raises:
        ValueError: the JSON is damaged; what comes before the damage is added.
    """
    labels = {k: v for k, v in labels.items() if isinstance(v, str)}
    name = labels.get("__name__", "")
    member = _MEMBER.match(text, at)
    if member is None or metric(name, labels) is None:
        return at
    series = batch.samples.series_of(name, labels)
    assert series is not None
    members: dict[str, Any] = {}
    while member is not None:
        begin = member.end()
        try:
            members[member[1]], at = json_values.raw_decode(text, begin)
        except ValueError:
            if member[1] == "values" and not members:
                whole = _before_damage(text, begin)
                batch.add_pairs(series, whole, line_no)
            raise
        member = _MEMBER.match(text, at)
    if "timestamps" in members:
        batch.add(series, members["timestamps"], members.get("values"), line_no)
    elif "values" in members:
        batch.add_pairs(series, members["values"], line_no)
    elif "value" in members:
        batch.add_pairs(series, [members["value"]], line_no)
    return at


def _before_damage(text: str, at: int) -> list[Any]:
    """Returns the pairs of a cut array of pairs."""
    following = _METRIC.search(text, at)
    end = text.rfind("]", at, following.start() if following else len(text))
    try:
        pairs = json.loads(text[at : end + 1] + "]")
    except (ValueError, RecursionError):
        return []
    return pairs if isinstance(pairs, list) else []


class _Batch:
    """Samples that are still Python values, until there are enough for a frame."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self._series: list[int] = []
        self._lines: list[int] = []
        self._counts: list[int] = []
        self._times: list[Any] = []
        self._values: list[Any] = []

    def add_pairs(self, series: int, pairs: Any, line_no: int) -> None:
        """Adds samples given as pairs of time and value.

        Raises:
            ValueError: they are not such pairs.
        """
        if not isinstance(pairs, list) or not pairs:
            return
        try:
            times, values = zip(*pairs, strict=True)
        except TypeError as err:
            raise ValueError(_CUT) from err
        self.add(series, times, values, line_no)

    def add(self, series: int, times: Any, values: Any, line_no: int) -> None:
        """Adds samples given as times and values.

        Raises:
            ValueError: they are not lists of equal length.
        """
        if not isinstance(times, list | tuple) or not isinstance(values, list | tuple):
            raise ValueError(_CUT)
        if len(times) != len(values):
            raise ValueError(_CUT)
        self._series.append(series)
        self._lines.append(line_no)
        self._counts.append(len(times))
        self._times += times
        self._values += values
        if len(self._times) >= _MOST_SAMPLES:
            self.flush()

    def flush(self) -> None:
        """Adds what was collected to the samples."""
        if not self._times:
            return
        self.samples.add(
            _repeated(self._series, self._counts),
            unix_us(_numbers(self._times)),
            _numbers(self._values),
            _repeated(self._lines, self._counts),
        )
        self.__init__(self.samples)  # type: ignore[misc]  # empties every list


def _repeated(numbers: list[int], counts: list[int]) -> pl.Series:
    return pl.Series(list(chain.from_iterable(map(repeat, numbers, counts))), dtype=pl.Int64)


def _numbers(values: list[Any]) -> pl.Series:
    """Returns numbers that are given as numbers or texts; null for all else."""
    if {*map(type, values)} <= {float, int}:
        return pl.Series(values, dtype=pl.Float64, strict=False)
    texts = pl.Series(list(map(str, values)), dtype=pl.String)
    return texts.str.strip_prefix("+").cast(pl.Float64, strict=False)
