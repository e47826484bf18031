"""Reads series from JSON: answers of the Prometheus API, and VictoriaMetrics exports.

Both are objects with a `metric`, its labels. In an answer, `values` are pairs of time and value,
`value` is one such pair; an export has `values` and `timestamps`. The objects are decoded one by
one, wherever they are. So several answers in one file, truncated ones and re-indented ones are read
too.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.ingest import json_values
from gctrace_analyzer.ingest.metrics import metric_names
from gctrace_analyzer.ingest.metrics.samples import unix_us

if TYPE_CHECKING:
    from gctrace_analyzer.ingest.metrics.samples import Rejected, Samples


_METRIC = re.compile(r'\{\s*"metric"\s*:\s*(?=\{)')
_NAME = re.compile(r'[{,]\s*"__name__"\s*:\s*"([\w:.]+)"')
_MEMBER = re.compile(r'(?<!\s)\s*,\s*"(values|value|timestamps|histograms|histogram)"\s*:\s*')
_PAIRS, _PAIRS_END = re.compile(r"\[\s*\["), re.compile(r"\]\s*\]")
_BLANK = re.compile(r"\s+")
_ERROR = re.compile(
    r'\A\s*\{\s*"status"\s*:\s*"error"(?:(?!"error"\s*:).){0,500}"error"\s*:\s*'
    r'"(?P<text>(?:[^"\\]|\\.){0,2000})',
    re.DOTALL,
)
_MOST_CHARS = 1 << 25
_MOST_LABELS, _LONGEST_LABELS = 1 << 16, 1 << 12
"""Number of label texts that are kept, and their greatest length."""


def error_of(text: str) -> str | None:
    """Returns the message of an answer to a failed query; None for other texts."""
    match = _ERROR.match(text[:4096])
    return match["text"] if match else None


def read(text: str, samples: Samples) -> list[Rejected]:
    """Adds the samples of all relevant series; returns the damaged series."""
    rejected: list[Rejected] = []
    batch = _Batch(samples)
    line_no, counted = 1, 0
    match = _METRIC.search(text)
    while match is not None:
        at = match.end()
        line_no += text.count("\n", counted, at)
        counted = at
        end = at
        try:
            series, end = batch.series_at(text, at)
            if series is not None:
                end = _read_values(text, end, series, line_no, batch)
        except ValueError:
            rejected.append(
                (line_no, json_values.CUT, text[match.start() : match.start() + 200])
            )
        match = _METRIC.search(text, max(end, at))
    batch.flush()
    rejected += batch.rejected
    closers = text[len(text.rstrip("]} \n")) :]
    if not rejected and "}" not in closers:
        line_no += text.count("\n", counted)
        rejected.append((line_no, json_values.CUT, text[-200:]))
    return rejected


def _read_values(text: str, at: int, series: int, line_no: int, batch: _Batch) -> int:
    """Adds the samples of the series whose labels end at `at`; returns where it ends.

    Raises:
        ValueError: the JSON is damaged; samples before the damage are added.
    """
    arrays: dict[str, str] = {}
    member = _MEMBER.match(text, at)
    while member is not None:
        name, begin = member[1], member.end()
        if name.startswith("histogram"):
            _, at = json_values.raw_decode(text, begin)
        else:
            try:
                arrays[name], at = _array(text, begin)
            except ValueError:
                if name == "values" and not arrays:
                    batch.add_pairs(series, _before_damage(text, begin), line_no)
                raise
        member = _MEMBER.match(text, at)
    if "timestamps" in arrays:
        batch.add_arrays(series, arrays["timestamps"], arrays.get("values", ""), line_no)
    elif "value" in arrays:
        batch.add_pairs(series, f"[{arrays['value']}]", line_no)
    else:
        batch.add_pairs(series, arrays.get("values", ""), line_no)
    return at


def _array(text: str, at: int) -> tuple[str, int]:
    """Returns the text inside an array of numbers or of pairs, without blanks; and its end.

    Raises:
        ValueError: there is no such array, or it is truncated.
    """
    if not text.startswith("[", at):
        raise ValueError(json_values.CUT)
    is_of_pairs = _PAIRS.match(text, at) is not None
    end = text.find("]]" if is_of_pairs else "]", at)
    if end < 0 or "{" in text[at:end]:
        # Re-indented JSON has a line end between the brackets.
        closing = _PAIRS_END.search(text, at) if is_of_pairs else None
        if closing is None or "{" in text[at : closing.start()]:
            raise ValueError(json_values.CUT)
        return _BLANK.sub("", text[at + 1 : closing.start() + 1]), closing.end()
    inside = text[at + 1 : end + is_of_pairs]
    if " " in inside or "\n" in inside:
        inside = _BLANK.sub("", inside)
    return inside, end + 1 + is_of_pairs


def _before_damage(text: str, at: int) -> str:
    """Returns the text of the complete pairs in a truncated array."""
    following = _METRIC.search(text, at)
    end = text.rfind("]", at, following.start() if following else len(text))
    pairs = _BLANK.sub("", text[at + 1 : end + 1])
    return pairs if pairs.startswith("[") else ""


class _Batch:
    """Collected texts of samples, until there are enough for a frame."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self._pairs: list[tuple[int, int, str]] = []
        self._arrays: list[tuple[int, int, str, str]] = []
        self._chars = 0
        self.rejected: list[Rejected] = []
        self._series_of: dict[str, int | None] = {}

    def series_at(self, text: str, at: int) -> tuple[int | None, int]:
        """Returns the series whose labels begin at `at`, None if it is not read; and their end.

        In a file of several answers, each repeats the labels of its series.

        Raises:
            ValueError: the JSON is damaged.
        """
        # A brace inside a value ends this text too early, so that it is no text of labels.
        seen = text[at : text.find("}", at, at + _LONGEST_LABELS) + 1]
        if seen in self._series_of:
            return self._series_of[seen], at + len(seen)
        if (name := _NAME.search(seen)) and not metric_names.may_be_read(name[1]):
            return None, at + len(seen)
        labels, end = json_values.raw_decode(text, at)
        if not _MEMBER.match(text, end):
            return None, end
        labels = {k: v for k, v in labels.items() if isinstance(v, str)}
        series = self.samples.series_of(labels.get("__name__", ""), labels)
        if end == at + len(seen) and len(self._series_of) < _MOST_LABELS:
            self._series_of[seen] = series
        return series, end

    def add_pairs(self, series: int, pairs: str, line_no: int) -> None:
        """Adds samples given as the text of pairs: `[1,"2"],[3,"4"]`.

        Raises:
            ValueError: the text is not pairs.
        """
        if pairs and not pairs.startswith("["):
            raise ValueError(json_values.CUT)
        if pairs:
            self._pairs.append((series, line_no, pairs))
            self._grow(pairs)

    def add_arrays(self, series: int, times: str, values: str, line_no: int) -> None:
        """Adds samples given as the texts of times and of values: `1,3` and `2,4`."""
        if times or values:
            self._arrays.append((series, line_no, times, values))
            self._grow(values)

    def _grow(self, text: str) -> None:
        self._chars += len(text)
        if self._chars >= _MOST_CHARS:
            self.flush()

    def flush(self) -> None:
        """Adds the collected texts to the samples."""
        self._flush_pairs()
        self._flush_arrays()
        self._chars = 0

    def _flush_pairs(self) -> None:
        if not self._pairs:
            return
        frame = pl.DataFrame(self._pairs, schema=["series", "line_no", "text"], orient="row")
        parts = frame.with_columns(pl.col("text").str.split("],[")).explode("text")
        pair = parts["text"].str.splitn(",", 2).struct
        self.samples.add(
            parts["series"],
            unix_us(pair.field("field_0").str.strip_chars_start("[")),
            _floats(pair.field("field_1")),
            parts["line_no"],
        )
        self._pairs = []

    def _flush_arrays(self) -> None:
        if not self._arrays:
            return
        frame = pl.DataFrame(
            self._arrays, schema=["series", "line_no", "times", "values"], orient="row"
        )
        both = frame.with_columns(pl.col("times", "values").str.split(","))
        same = pl.col("times").list.len() == pl.col("values").list.len()
        for number in both.filter(~same)["line_no"]:
            self.rejected.append((number, "not as many values as times", ""))
        parts = both.filter(same).explode("times", "values")
        self.samples.add(
            parts["series"], unix_us(parts["times"]), _floats(parts["values"]), parts["line_no"]
        )
        self._arrays = []


def _floats(texts: pl.Series) -> pl.Series:
    """Returns numbers in texts; NaN for missing values, null for damaged ones."""
    texts = texts.str.strip_chars('"]')
    value = texts.str.strip_prefix("+").cast(pl.Float64, strict=False)
    is_missing = texts.is_in(["null", "None"])
    return value.zip_with(~is_missing, pl.Series([math.nan])) if is_missing.any() else value
