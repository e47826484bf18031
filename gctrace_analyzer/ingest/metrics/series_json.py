"""Reads series from JSON: answers of the Prometheus API, and VictoriaMetrics exports.

Both are objects with a `metric`, its labels. In an answer, `values` are pairs of time and value,
`value` is one such pair; an export has `values` and `timestamps`. The objects are decoded one
by one, wherever they are: several answers in one file, cut ones and re-indented ones read alike.
"""

from __future__ import annotations

import math
import re
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.ingest import json_values
from gctrace_analyzer.ingest.metrics import names
from gctrace_analyzer.ingest.metrics.samples import unix_us

if TYPE_CHECKING:
    from gctrace_analyzer.ingest.metrics.samples import Samples

Rejected = tuple[int, str, str]

_METRIC = re.compile(r'\{\s*"metric"\s*:\s*(?=\{)')
_NAME = re.compile(r'[{,]\s*"__name__"\s*:\s*"([\w:.]+)"')
_MEMBER = re.compile(r'(?<!\s)\s*,\s*"(values|value|timestamps|histograms|histogram)"\s*:\s*')
_ERROR = re.compile(
    r'\A\s*\{\s*"status"\s*:\s*"error"(?:(?!"error"\s*:).){0,500}"error"\s*:\s*'
    r'"(?P<text>(?:[^"\\]|\\.){0,2000})',
    re.DOTALL,
)
_MOST_SAMPLES = 1 << 20
_MOST_CHARS = 1 << 25
_MOST_LABELS, _LONGEST_LABELS = 1 << 16, 1 << 12
"""How many texts of labels are kept, and how long each may be."""
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
            series, end = batch.series_at(text, at)
            if series is not None:
                end = _read_values(text, end, series, line_no, batch)
        except ValueError:
            rejected.append((line_no, _CUT, text[found.start() : found.start() + 200]))
        found = _METRIC.search(text, max(end, at))
    batch.flush()
    rejected += batch.rejected
    if not rejected and "}" not in _closers(text):
        line_no += text.count("\n", counted)
        rejected.append((line_no, _CUT, text[-200:]))
    return rejected


def _closers(text: str) -> str:
    """Returns the brackets and braces that end a text."""
    return text[len(text.rstrip("]} \n")) :]


def _read_values(text: str, at: int, series: int, line_no: int, batch: _Batch) -> int:
    """Adds the samples of the series whose labels end at `at`; returns where it ends.

    Raises:
        ValueError: the JSON is damaged; what comes before the damage is added.
    """
    member = _MEMBER.match(text, at)
    members: dict[str, Any] = {}
    while member is not None:
        begin = member.end()
        members[member[1]], at = _quick(text, begin)
        if members[member[1]] is None:
            try:
                members[member[1]], at = json_values.raw_decode(text, begin)
            except ValueError:
                if list(members) == ["values"]:
                    batch.add_pairs(series, _before_damage(text, begin), line_no)
                raise
        member = _MEMBER.match(text, at)
    _add(batch, series, members, line_no)
    return at


def _add(batch: _Batch, series: int, members: dict[str, Any], line_no: int) -> None:
    """Adds the samples of a series: pairs, two arrays, or one pair.

    Raises:
        ValueError: they are of other types.
    """
    values, times = members.get("values"), members.get("timestamps")
    if times is None and isinstance(values, str) and values.startswith("["):
        batch.add_text_pairs(series, values, line_no)
    elif times is None and "value" in members:
        batch.add_pairs(series, [members["value"]], line_no)
    elif times is None:
        batch.add_pairs(series, values, line_no)
    elif isinstance(times, str) and isinstance(values, str):
        batch.add_texts(series, times, values, line_no)
    else:
        batch.add(series, _items(times), _items(values), line_no)


def _items(array: Any) -> Any:
    return json_values.loads(f"[{array}]") if isinstance(array, str) else array


def _quick(text: str, at: int) -> tuple[str | None, int]:
    """Returns the text inside an array of numbers, or of pairs, without blanks; and its end.

    Returns None for anything else, which is decoded as JSON instead.
    """
    if not text.startswith("[", at):
        return None, at
    pairs = text.startswith("[[", at)
    end = text.find("]]" if pairs else "]", at)
    if end < 0:
        return None, at
    inside = text[at + 1 : end + pairs]
    is_text = not pairs and (not inside or '"' in inside)
    if is_text or " " in inside or "\n" in inside:
        return None, at
    return inside, end + 1 + pairs


def _before_damage(text: str, at: int) -> list[Any]:
    """Returns the pairs of a cut array of pairs."""
    following = _METRIC.search(text, at)
    end = text.rfind("]", at, following.start() if following else len(text))
    try:
        pairs = json_values.loads(text[at : end + 1] + "]")
    except ValueError:
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
        self._pairs: list[tuple[int, int, str]] = []
        self._columns: list[tuple[int, int, str, str]] = []
        self._chars = 0
        self.rejected: list[Rejected] = []
        self._series_of: dict[str, int | None] = {}

    def series_at(self, text: str, at: int) -> tuple[int | None, int]:
        """Returns the series whose labels begin at `at`, None if it is not read; and their end.

        A file of several answers repeats the labels of each series in each of them.

        Raises:
            ValueError: the JSON is damaged.
        """
        # A brace inside a value ends this text too early, and then it is no text of labels.
        seen = text[at : text.find("}", at, at + _LONGEST_LABELS) + 1]
        if seen in self._series_of:
            return self._series_of[seen], at + len(seen)
        if (name := _NAME.search(seen)) and not names.may_be_read(name[1]):
            return None, at + len(seen)
        labels, end = json_values.raw_decode(text, at)
        if not _MEMBER.match(text, end):
            return None, end
        labels = {k: v for k, v in labels.items() if isinstance(v, str)}
        series = self.samples.series_of(labels.get("__name__", ""), labels)
        if end == at + len(seen) and len(self._series_of) < _MOST_LABELS:
            self._series_of[seen] = series
        return series, end

    def add_pairs(self, series: int, pairs: Any, line_no: int) -> None:
        """Adds samples given as pairs of time and value.

        Raises:
            ValueError: they are not such pairs.
        """
        if not pairs:
            return
        if not isinstance(pairs, list):
            raise ValueError(_CUT)
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

    def add_text_pairs(self, series: int, pairs: str, line_no: int) -> None:
        """Adds samples given as the text of pairs: `[1,"2"],[3,"4"]`."""
        self._pairs.append((series, line_no, pairs))
        self._grow(pairs)

    def add_texts(self, series: int, times: str, values: str, line_no: int) -> None:
        """Adds samples given as the texts of times and of values: `1,3` and `2,4`."""
        self._columns.append((series, line_no, times, values))
        self._grow(values)

    def _grow(self, text: str) -> None:
        self._chars += len(text)
        if self._chars >= _MOST_CHARS:
            self.flush()

    def flush(self) -> None:
        """Adds what was collected to the samples."""
        self._flush_pairs()
        self._flush_columns()
        if not self._times:
            return
        self.samples.add(
            _repeated(self._series, self._counts),
            unix_us(_numbers(self._times)),
            _numbers(self._values),
            _repeated(self._lines, self._counts),
        )
        for each in (self._series, self._lines, self._counts, self._times, self._values):
            each.clear()

    def _flush_pairs(self) -> None:
        if not self._pairs:
            return
        frame = pl.DataFrame(self._pairs, schema=["series", "line_no", "text"], orient="row")
        parts = frame.with_columns(pl.col("text").str.split("],[")).explode("text")
        pair = parts["text"].str.splitn(",", 2).struct
        self.samples.add(
            parts["series"],
            unix_us(pair.field("field_0").str.strip_chars_start("[")),
            _floats(pair.field("field_1").str.strip_chars('"]')),
            parts["line_no"],
        )
        self._pairs, self._chars = [], 0

    def _flush_columns(self) -> None:
        if not self._columns:
            return
        frame = pl.DataFrame(
            self._columns, schema=["series", "line_no", "times", "values"], orient="row"
        )
        both = frame.with_columns(pl.col("times", "values").str.split(","))
        same = pl.col("times").list.len() == pl.col("values").list.len()
        for number in both.filter(~same)["line_no"]:
            self.rejected.append((number, "not as many values as times", ""))
        parts = both.filter(same).explode("times", "values")
        self.samples.add(
            parts["series"], unix_us(parts["times"]), _floats(parts["values"]), parts["line_no"]
        )
        self._columns, self._chars = [], 0


def _repeated(numbers: list[int], counts: list[int]) -> pl.Series:
    return pl.Series(list(chain.from_iterable(map(repeat, numbers, counts))), dtype=pl.Int64)


def _numbers(values: list[Any]) -> pl.Series:
    """Returns numbers that are given as numbers or texts; null for all else."""
    if {*map(type, values)} <= {float, int}:
        return pl.Series(values, dtype=pl.Float64, strict=False)
    return _floats(pl.Series(list(map(str, values)), dtype=pl.String))


def _floats(texts: pl.Series) -> pl.Series:
    """Returns numbers given as texts; NaN where a value is missing, null where it is damaged."""
    value = texts.str.strip_prefix("+").cast(pl.Float64, strict=False)
    is_missing = texts.is_in(["null", "None"])
    return value.zip_with(~is_missing, pl.Series([math.nan])) if is_missing.any() else value
