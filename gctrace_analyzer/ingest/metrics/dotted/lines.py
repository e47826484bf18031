"""Reads lines of Graphite and StatsD, and what the libraries called go-metrics print."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import polars as pl

from gctrace_analyzer.ingest.metrics.dotted import names
from gctrace_analyzer.ingest.metrics.exposition import numbered
from gctrace_analyzer.ingest.metrics.samples import unix_us

if TYPE_CHECKING:
    from gctrace_analyzer.ingest.metrics.samples import Rejected, Samples

Kind = Literal["graphite", "statsd", "go-metrics"]

_NUMBER = r"[+-]?[0-9][0-9.eE+-]*"
_FORMS: dict[Kind, tuple[str, ...]] = {
    "graphite": (
        rf"^(?P<path>[^\s=|:,{{}}\"\[\]]+)(?P<tags>;[^\s]+)? +(?P<value>{_NUMBER}) +"
        r"(?P<at>\d{9,13}(?:\.\d+)?)\s*$",
        r'^"?(?P<path>[^",]+?)(?P<tags>;[^",]+)?"?,(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),'
        rf"(?P<value>{_NUMBER})\s*$",
    ),
    "statsd": (
        rf"^(?P<path>[^\s:|]+):(?P<value>{_NUMBER})\|g(?:\|@[0-9.]+)?(?:\|#(?P<tags>[^|\s]*))?"
        r"(?:\|c:[^|\s]*)?(?:\|T(?P<at>\d{9,13}))?\s*$",
    ),
    "go-metrics": (
        r"^\[(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]*)\]\[G\] '(?P<path>[^';]+)(?P<tags>;[^']+)?"
        rf"': (?P<value>{_NUMBER})\s*$",
    ),
}
"""A line that is read, by what wrote it: name and value, time and labels if it has them."""

_ALIKE: dict[Kind, str] = {
    "graphite": "",
    "statsd": r"^[^\s:|]+:[^\s|]*\|(?:g|c|ms|h|d|s)\b",
    "go-metrics": r"^\[\d{4}-\d\d-\d\d [^\]]*\]\[[A-Z]\] '"
    r"|(?:^|\s)(?:gauge|counter|histogram|meter|timer|healthcheck) \S+$"
    r"|(?:^|\s)[\w.%][\w.% -]{0,20}: +-?[0-9.]+(?:\.[0-9]+)?$",
}
"""A line that shows what the lines are, although it is not read."""

_GAUGE = r"^(?P<before>.*?)gauge (?P<path>[^\s:]+)\s*$"
_VALUE = rf"^.*?\bvalue: +(?P<value>{_NUMBER})\s*$"
_STAMP = r"(?P<at>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?)"
_SAMPLE_LINES = 40
_ONE_DUMP_US = 500_000
"""Lines of one dump are printed closer together than this."""


def kind_of(head: str) -> Kind | None:
    """Returns what wrote the lines of a text that begins like this, if there are Go metrics."""
    every = [line for line in head.split("\n") if line.strip()]
    first = every[:_SAMPLE_LINES]
    for kind, forms in _FORMS.items():
        alike = re.compile("|".join(filter(None, (*_plain(forms), _ALIKE[kind]))))
        if 2 * sum(map(bool, map(alike.search, first))) > len(first) and _has_go(every, kind):
            return kind
    return None


def _plain(forms: tuple[str, ...]) -> list[str]:
    return [re.sub(r"\?P<\w+>", "?:", form) for form in forms]


def _has_go(lines: list[str], kind: Kind) -> bool:
    forms = [re.compile(form) for form in (*_FORMS[kind], *([_GAUGE] * (kind == "go-metrics")))]
    paths = (found["path"] for line in lines for form in forms if (found := form.match(line)))
    return any(map(names.metric_of, paths))


def read(text: str, samples: Samples) -> list[Rejected]:
    """Adds the samples of every metric that is read; returns the damaged lines."""
    kind = kind_of(text[: 1 << 16]) or "graphite"
    lines = numbered(text.replace("\r\n", "\n"))
    parts = [_parts(lines, form) for form in _FORMS[kind]]
    if kind == "go-metrics":
        parts.append(_gauges(lines))
    found = pl.concat(parts).drop_nulls("path")
    rejected = _rejected(lines.join(found, on="line_no", how="anti"), kind)
    if found.is_empty():
        return rejected
    series = found.select("path", "tags").unique(maintain_order=True)
    numbers = [_series(path, tags or "", samples) for path, tags in series.iter_rows()]
    series = series.with_columns(pl.Series("number", numbers, dtype=pl.Int64))
    found = found.join(series, on=["path", "tags"], how="left", nulls_equal=True)
    found = found.drop_nulls("number").sort("line_no")
    if len(found):
        samples.add(
            found["number"],
            _at_us(found, samples, together=kind == "go-metrics"),
            found["value"].str.strip_prefix("+").cast(pl.Float64, strict=False),
            found["line_no"],
            has_time=found["at"].is_not_null(),
        )
    return rejected


_COLUMNS = ("path", "tags", "value", "at")


def _parts(lines: pl.DataFrame, form: str) -> pl.DataFrame:
    groups = lines.select("line_no", pl.col("text").str.extract_groups(form)).unnest("text")
    return groups.select(
        "line_no",
        *(
            pl.col(name) if name in groups.columns else pl.lit(None, pl.String).alias(name)
            for name in _COLUMNS
        ),
    )


def _gauges(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns the gauges of rcrowley/go-metrics: a line with the name, and one with the value."""
    text = pl.col("text")
    pairs = lines.with_columns(following=text.shift(-1)).select(
        "line_no", text.str.extract_groups(_GAUGE).alias("gauge"), "following"
    )
    return pairs.select(
        "line_no",
        pl.col("gauge").struct.field("path"),
        tags=pl.lit(None, pl.String),
        value=pl.col("following").str.extract(_VALUE),
        at=pl.col("gauge").struct.field("before").str.extract(_STAMP),
    )


def _series(path: str, tags: str, samples: Samples) -> int | None:
    found = names.metric_of(path)
    if found is None:
        return None
    pairs = (re.split("[:=]", each, maxsplit=1) for each in re.split("[,;]", tags) if each)
    labels = {key: "".join(value) for key, *value in pairs}
    return samples.series_of(found[0], names.labels_of(found[1], labels))


def _at_us(found: pl.DataFrame, samples: Samples, *, together: bool) -> pl.Series:
    """Returns the times; those of lines that are printed `together` are that of the first one."""
    texts = found["at"]
    if texts.null_count() == len(texts):
        return unix_us(texts)
    at_us = samples.times(texts)
    if not together:
        return at_us
    frame = pl.DataFrame({"at": at_us})
    begins = (pl.col("at").diff().abs() >= _ONE_DUMP_US).fill_null(value=True)
    return frame.select(pl.col("at").first().over(begins.cum_sum())).to_series()


def _rejected(others: pl.DataFrame, kind: Kind) -> list[Rejected]:
    """Returns lines that begin with the name of a metric that is read, but are damaged."""
    word = others.with_columns(
        word=pl.col("text").str.extract(r"""^(?:\[[^\]]*\]\[G\] ')?"?([^\s:|,;"']+)""")
    ).drop_nulls("word")
    meant = {each for each in word["word"].unique() if names.metric_of(each)}
    lost = word.filter(pl.col("word").is_in(list(meant)))
    return [
        (number, f"not a line of {kind}", text)
        for number, text in lost.select("line_no", "text").iter_rows()
    ]
