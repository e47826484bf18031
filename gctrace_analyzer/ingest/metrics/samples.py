"""Collects the samples of series, and turns them into one row per scrape."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest import identity_names, numbers
from gctrace_analyzer.ingest.metrics import containers
from gctrace_analyzer.ingest.metrics.metric_names import PARTS, PER_METRIC, SUMS, VERSION
from gctrace_analyzer.ingest.metrics.metric_names import metric as metric_of
from gctrace_analyzer.ingest.wrappers import timestamps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gctrace_analyzer.ingest.evidence.message import Row
    from gctrace_analyzer.ingest.metrics.metric_names import Metric

Rejected = tuple[int, str, str]

MAX_SECONDS, MAX_MS, MAX_US = 1e11, 1e14, 1e17
"""Largest Unix times in seconds, milliseconds and microseconds; larger ones are in nanoseconds."""

NO_LIMIT = 1 << 62
"""Limits above this mean "no limit", as exported by Go (math.MaxInt64) and cAdvisor."""

GOGC_OFF = -1
"""The runtime's value for GOGC=off: -1 exported as an unsigned number, 1.8e19."""

_ABSURD_GOGC = 1e9
_LONGEST_IDENTITY = 200
_IS_CONTAINER = ("", "container")
"""Marks the labels of a container, to keep them apart from those of a process."""

_MOVED_MS = 1000
"""A process whose start time changes by more than this is a new one."""

_ENOUGH = 2
_ENOUGH_ALONE = (
    "num_gc", "total_alloc_bytes", "next_gc_bytes", "heap_alloc_bytes", "gc_cpu_fraction",
    "pause_total_ns", "gc_cpu_s", "pause_max_s", "pause_longest_s", "heap_inuse_bytes",
    "heap_idle_bytes", "heap_sys_bytes", "heap_released_bytes", "heap_live_bytes", "alloc_bytes",
    "sys_bytes",
)  # fmt: skip
"""Columns that only a Go program has: one of them is enough for a row."""


@frozen
class Target:
    """One set of labels: a process, or several in succession.

    `key` identifies the labels. `same` is equal for sets of labels that differ only in the job, so
    they may belong to one process.
    """

    key: str
    same: str
    identity: dict[str, str]
    items: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Samples:
    """Samples of the relevant metrics, each with its series, time and value."""

    targets: list[Target] = field(default_factory=list)
    series: list[tuple[int, Metric]] = field(default_factory=list)
    frames: list[pl.DataFrame] = field(default_factory=list)
    is_local: bool = False
    _target_of: dict[tuple[tuple[str, str], ...], int] = field(default_factory=dict)
    _series_of: dict[tuple[int, Metric], int] = field(default_factory=dict)

    def series_of(self, name: str, labels: Mapping[str, str]) -> int | None:
        """Returns the number of a series; None if its metric is not read."""
        metric = metric_of(name, labels)
        if metric is None:
            return None
        own = PER_METRIC if metric.value is None else (*PER_METRIC, "version")
        items = tuple(sorted((k, v) for k, v in labels.items() if k not in own and v))
        if metric.is_of_container:
            items = (_IS_CONTAINER, *containers.identity(labels).items())
        target = self._target_of.setdefault(items, len(self.targets))
        if target == len(self.targets):
            self.targets.append(_target(items))
        series = self._series_of.setdefault((target, metric), len(self.series))
        if series == len(self.series):
            self.series.append((target, metric))
        return series

    def times(self, texts: pl.Series) -> pl.Series:
        """Returns Unix times or dates in microseconds since 1970; null where there is none.

        Dates without a zone are in the zone of the machine that wrote them (`is_local`).
        """
        texts = texts.str.strip_chars(' "')
        if texts.str.contains(r"^\d{9,19}(?:\.\d+)?$").all():
            return unix_us(texts)
        read = timestamps.read(texts)
        known = read["local_time"].is_not_null() & ~read["yearless"].fill_null(value=True)
        if read.filter(known)["zone"].null_count():
            self.is_local = True
        return (
            pl.select(pl.when(known).then(read["local_time"].dt.epoch("us")))
            .to_series()
            .alias("at_us")
        )

    def add(
        self,
        series: int | pl.Series,
        at_us: pl.Series,
        values: pl.Series,
        line_no: int | pl.Series,
        *,
        has_time: pl.Series | bool = True,
    ) -> None:
        """Adds samples: null is a damaged value, NaN a missing one.

        A null time counts as damaged too, unless `has_time` says that the source has none.
        """
        given = {"series": series, "line_no": line_no, "has_time": has_time}
        self.frames.append(
            pl.DataFrame({"at_us": at_us, "value": values}).with_columns(
                (each if isinstance(each, pl.Series) else pl.lit(each))
                .cast(pl.Boolean if name == "has_time" else pl.Int64)
                .alias(name)
                for name, each in given.items()
            )
        )


def _target(items: Sequence[tuple[str, str]]) -> Target:
    labels = dict(items)
    identity = {
        column: value[:_LONGEST_IDENTITY]
        for column, value in identity_names.of_labels(labels).items()
    }
    if "instance" in labels:
        names_ = ("exported_instance", "instance", "namespace", "pod")
        same = [(name, labels.get(name, "")) for name in names_]
    else:
        same = [item for item in items if item[0] not in ("job", "exported_job")]
    return Target(_hashed(items), _hashed(same), identity, tuple(items))


def _hashed(items: Sequence[tuple[str, str]]) -> str:
    return hashlib.sha1(repr(list(items)).encode(), usedforsecurity=False).hexdigest()


def unix_us(times: pl.Series) -> pl.Series:
    """Returns Unix times in s, ms, µs or ns, as their size shows, in microseconds."""
    at = pl.col("at")
    factor = (
        pl.when(at < MAX_SECONDS)
        .then(1e6)
        .when(at < MAX_MS)
        .then(1e3)
        .when(at < MAX_US)
        .then(1)
    ).otherwise(1e-3)
    frame = pl.DataFrame({"at": times.cast(pl.Float64, strict=False)})
    us = (at * factor).round()
    # Times after the year 9999 are not times.
    valid = at.is_finite() & us.is_between(0, 2.5e17)
    return frame.select(at_us=pl.when(valid).then(us).cast(pl.Int64)).to_series()


def rows(samples: Samples) -> tuple[pl.DataFrame, list[Rejected]]:
    """Returns one row per process and scrape, and the samples that were rejected.

    A row has the columns of `schema.MEMSTATS`, and `local_time`, `zone` and `yearless` for the
    clock, `target` and `same_target` for recognising processes. Samples may be in any order. Of two
    samples of one series at one time, the later one in the input counts. NaN marks the end of a
    series in Prometheus, so it is not damage.
    """
    if not samples.frames:
        return pl.DataFrame(), []
    every = _of_go(samples)
    damaged = pl.col("value").is_null() | (pl.col("has_time") & pl.col("at_us").is_null())
    rejected = _rejected(
        every.filter(damaged), samples, "{} with an impossible value or time: {}"
    )
    every = every.filter(~damaged & pl.col("value").is_not_nan())
    several = pl.col("value").n_unique().over("series", "at_us") > 1
    rejected += _rejected(
        every.filter(pl.col("at_us").is_not_null()).filter(several),
        samples,
        "{} with different values at one time, of which the last is used: {}",
    )
    wide = _pivoted(every, samples) if len(every) else pl.DataFrame()
    if wide.is_empty():
        return pl.DataFrame(), rejected
    wide = completed(_with_versions(wide, samples))
    memory = [name for name in wide.columns if name.endswith("_bytes")]
    known = pl.sum_horizontal(pl.col(name).is_not_null() for name in memory)
    counted = pl.any_horizontal(
        pl.col(name).is_not_null() for name in _ENOUGH_ALONE if name in wide.columns
    )
    wide = wide.filter(counted | (known >= _ENOUGH))
    scrapes = (
        _with_times(wide, is_local=samples.is_local)
        .hstack(_identities(wide["target_no"], samples.targets))
        .drop("target_no", "at_us", "scrape")
    )
    return scrapes, rejected


def _rejected(damaged: pl.DataFrame, samples: Samples, reason: str) -> list[Rejected]:
    """Returns one rejected row for each series with such samples."""
    if damaged.is_empty():
        return []
    counted = damaged.group_by("series", maintain_order=True).agg(
        pl.col("line_no").min(), count=pl.len()
    )
    rejected = []
    for series, line_no, count in counted.iter_rows():
        target, metric = samples.series[series]
        of = ", ".join(f"{name}={value[:60]}" for name, value in samples.targets[target].items)
        what = "1 sample" if count == 1 else f"{count:,} samples"
        rejected.append((line_no, reason.format(what, metric.column), of))
    return rejected


def _is_of_container(samples: Samples) -> pl.Series:
    return pl.Series([m.is_of_container for _, m in samples.series], dtype=pl.Boolean)


def _of_go(samples: Samples) -> pl.DataFrame:
    """Returns the samples of Go programs in the units of their columns, or null if impossible."""
    every = pl.concat(samples.frames)
    every = every.filter(~_is_of_container(samples).gather(every["series"]))
    column, factor = (
        pl.Series(values, dtype=dtype).gather(every["series"])
        for values, dtype in (
            ([metric.column for _, metric in samples.series], pl.String),
            ([metric.factor for _, metric in samples.series], pl.Float64),
        )
    )
    value = pl.col("value") * pl.lit(factor)
    gated = numbers.exported_column(value, pl.lit(column))
    return every.with_columns(value=pl.when(value.is_nan()).then(value).otherwise(gated))


def of_containers(samples: Samples, of_go: pl.DataFrame) -> dict[str, list[Row]]:
    """Returns rows of `container_states` and `oom_kills` of the containers that run the programs.

    Args:
        samples: everything that was read.
        of_go: what `rows` returns. If its pods are known, only containers in them count; otherwise
            only a single container counts, or, without metrics of a Go program, containers killed
            for memory.
    """
    which = _is_of_container(samples)
    if not samples.frames or not which.any():
        return {}
    every = pl.concat(samples.frames)
    possible = numbers.real_column(pl.col("value").fill_nan(None)).is_not_null()
    every = every.filter(possible & which.gather(every["series"]))
    pods = set(of_go["pod"].drop_nulls()) if "pod" in of_go.columns else set()
    own = {
        number: dict(target.items[1:])
        for number, target in enumerate(samples.targets)
        if target.items[:1] == (_IS_CONTAINER,)
        and (not pods or dict(target.items).get("pod") in pods)
    }
    targets = pl.Series([target for target, _ in samples.series], dtype=pl.Int64)
    columns = pl.Series([metric.column for _, metric in samples.series], dtype=pl.String)
    every = every.with_columns(
        container=targets.gather(every["series"]),
        column=columns.gather(every["series"]),
    )
    if not pods and len(own) > 1:
        is_oom = pl.col("column").is_in(["oom_killed", "failcnt"]) & (pl.col("value") > 0)
        killed = {*every.filter(is_oom)["container"]} if of_go.is_empty() else set()
        own = {number: names for number, names in own.items() if number in killed}
    if not own:
        return {}
    every = every.filter(pl.col("container").is_in(list(own)))
    place = {number: at for at, number in enumerate(own)}
    every = every.with_columns(pl.col("container").replace_strict(place, return_dtype=pl.Int64))
    places = list(own.values())
    return {
        "container_states": containers.states(every, places, is_alone=of_go.is_empty()),
        "oom_kills": containers.kills(every, places, _restarts(of_go, places)),
    }


def _restarts(of_go: pl.DataFrame, owners: list[dict[str, str]]) -> pl.DataFrame:
    """Returns the scrapes between which the start time of a pod's only process changed."""
    types = {"container": pl.Int64, "before_us": pl.Int64, "at_us": pl.Int64}
    pods = [each.get("pod") for each in owners]
    place = {pod: at for at, pod in enumerate(pods) if pods.count(pod) == 1}
    if of_go.is_empty():
        return pl.DataFrame(schema=types)
    known = of_go.drop_nulls(["started_at", "local_time"]).sort("pod", "local_time")
    at = pl.col("local_time").dt.epoch("us")
    moved = pl.col("started_at").diff().over("pod").dt.total_milliseconds().abs() > _MOVED_MS
    return (
        known.select(
            pl.col("pod").replace_strict(place, default=None, return_dtype=pl.Int64),
            before_us=at.shift().over("pod"),
            at_us=at,
            moved=moved,
        )
        .rename({"pod": "container"})
        .filter("moved")
        .drop_nulls()
        .select(list(types))
    )


def _pivoted(every: pl.DataFrame, samples: Samples) -> pl.DataFrame:
    meta = pl.DataFrame(
        {
            "target_no": [target for target, _ in samples.series],
            "column": [metric.column for _, metric in samples.series],
            "rank": [metric.rank for _, metric in samples.series],
            "text": [metric.value for _, metric in samples.series],
        },
        schema_overrides={"text": pl.String},
    ).with_row_index("series")
    series = every["series"]
    long = every.with_columns(
        meta["target_no"].gather(series),
        meta["column"].gather(series),
        # If the value of a metric is a text, it is the number of its series.
        value=pl.when(meta["text"].is_not_null().gather(series))
        .then(series)
        .otherwise("value"),
        # Without times, the first samples of all series form one scrape, and so on.
        scrape=pl.when(pl.col("at_us").is_null()).then(pl.int_range(pl.len()).over("series")),
    )
    if meta.select(pl.struct("target_no", "column").is_duplicated().any()).item():
        ranks = meta["rank"].gather(series)
        long = long.with_columns(rank=ranks).sort("rank", descending=True, maintain_order=True)
    index = ["target_no", "at_us", "scrape"]
    lines = long.group_by(index, maintain_order=True).agg(pl.col("line_no").min())
    wide = long.pivot(
        on="column", index=index, values="value", aggregate_function="last", maintain_order=True
    )
    return wide.join(lines, on=index, how="left", nulls_equal=True).sort(
        "target_no", "at_us", "scrape", maintain_order=True
    )


def _with_versions(wide: pl.DataFrame, samples: Samples) -> pl.DataFrame:
    if VERSION not in wide.columns:
        return wide
    texts = pl.Series(
        [(metric.value or "")[2:] for _, metric in samples.series], dtype=pl.String
    )
    return wide.with_columns(texts.gather(wide[VERSION].cast(pl.Int64)).alias(VERSION))


def completed(wide: pl.DataFrame) -> pl.DataFrame:
    """Returns rows of numbers with the derived columns, in the right types."""
    settings = ("gogc_pct", "gomemlimit_bytes", "next_gc_bytes")
    names = (*SUMS, *chain.from_iterable(SUMS.values()), "started_s", *settings)
    wide = wide.with_columns(
        pl.lit(None, pl.Float64).alias(name)
        for name in dict.fromkeys(names)
        if name not in wide.columns
    )
    for name, parts in SUMS.items():
        of_parts = pl.sum_horizontal(parts, ignore_nulls=False)
        wide = wide.with_columns(pl.coalesce(name, of_parts))
    gogc, limit, goal = (pl.col(name) for name in settings)
    # Without a goal, NextGC is the largest number (`^0 if disabled` in runtime/mstats.go).
    is_off = (gogc >= _ABSURD_GOGC).fill_null(goal >= NO_LIMIT)
    started_us = (pl.col("started_s") * 1e6).round().cast(pl.Int64)
    wide = wide.with_columns(
        gogc_pct=pl.when(is_off).then(GOGC_OFF).otherwise(gogc),
        next_gc_bytes=pl.when(goal < NO_LIMIT).then(goal),
        gomemlimit_bytes=pl.when(limit < NO_LIMIT).then(limit),
        gomemlimit_off=limit >= NO_LIMIT,
        started_at=pl.from_epoch(started_us, "us").dt.replace_time_zone("UTC"),
    )
    types = schema.polars_schema("memstats")
    wide = wide.drop(*PARTS, "started_s")
    whole = [name for name in wide.columns if types.get(name) == pl.Int64]
    return wide.with_columns(pl.col(whole).round().cast(pl.Int64, strict=False))


def _with_times(wide: pl.DataFrame, *, is_local: bool) -> pl.DataFrame:
    at = pl.col("at_us")
    since = (at - at.min()) / 1e6
    return wide.with_columns(
        local_time=pl.from_epoch(at, "us"),
        zone=pl.lit(None if is_local else "UTC", pl.String),
        yearless=pl.lit(value=False),
        elapsed_s=since,
    )


def _identities(target_no: pl.Series, targets: list[Target]) -> pl.DataFrame:
    table = pl.DataFrame(
        [{"target": each.key, "same_target": each.same, **each.identity} for each in targets],
        schema=dict.fromkeys(("target", "same_target", *identity_names.OF_METRICS), pl.String),
    )
    return pl.DataFrame([column.gather(target_no) for column in table])
