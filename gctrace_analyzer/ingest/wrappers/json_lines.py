"""Reads logs with one JSON object per line: Docker, journald, cloud and library loggers.

They have a message, a time and an identity in common, under various names. Polars decodes the
lines, and Python those that Polars cannot.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.ingest import identity_names, json_values, numbers
from gctrace_analyzer.ingest.rows import with_replaced
from gctrace_analyzer.ingest.wrappers import csv_export
from gctrace_analyzer.ingest.wrappers.metadata import completed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gctrace_analyzer.ingest.wrappers.tally import Tally

SAMPLE_LINES = 32

DOCKER_BYTES = 16 << 10
"""Bytes of the longest piece of a line in a Docker file."""

JSON_LINE = r"^(?:data: |\x1e)?\s*\{.*\}[,\s]*$"

_MESSAGES = (
    "MESSAGE",
    "log",
    "textPayload",
    "jsonPayload/message",
    "jsonPayload/msg",
    "message",
    "msg",
    "Message",
    "line",
    "@message",
    "LogMessage",
    "LogEntry",
    "Log",
    "_raw",
    "_msg",
    "_line",
    "short_message",
    "Output",
    "body",
    "Body",
    csv_export.MESSAGE,
    "event",
    "log/original",
    "event/original",
    "log.original",
    "event.original",
)
"""The names of the message, the best first; `a/b` is the member b of a."""

_NAMES = {name.rpartition("/")[2] for name in _MESSAGES}
MESSAGE_FIELD = rf'"(?:{"|".join(sorted(_NAMES))})":'
"""Every record with a message matches, if `json.dumps` has written it."""

_WITHIN = ("_source", "result", "data", "attributes", "content", "body", "event", "object")
"""Members in which log services put an entry: search indexes, Splunk, SigNoz, Datadog, Quickwit,
watches of Kubernetes."""

_TEXTS = tuple(name for name in _MESSAGES if "/" not in name)
_HIT = (
    rf'"(?:{"|".join(_WITHIN)})"\s*:\s*\{{[^{{}}]*"(?:{"|".join(_TEXTS)})"\s*:'
    r'|"_source"\s*:\s*\{'
    # Reports of a Kubernetes watch or an event router
    r'|"(?:event|object)"\s*:\s*\{\s*"(?:kind|apiVersion|metadata)"'
)
_ODD = rf'"(?:{"|".join((*_TEXTS, "host"))})"\s*:\s*[\[{{]'

_TIMES = (
    "__REALTIME_TIMESTAMP", "timeNano", "time", "timestamp", "ts", "@timestamp", "t",
    "Timestamp",
    "datetime", "eventTime", "asctime", "TimeGenerated", "_time", "Time", "date", "Date", "dt",
    "_ts", "timestamp_nanos", "observedTimestamp", "TimeStamp", "lastTimestamp",
)  # fmt: skip
_NATIVE = (
    "UNIT",
    "_TRANSPORT",
    "CPU_USAGE_NSEC",
    "MEMORY_PEAK",
    "MEMORY_SWAP_PEAK",
    "MESSAGE_ID",
)
_UNKNOWN = "?"
_FIELDS = tuple(
    dict.fromkeys(
        (
            *_MESSAGES,
            *_TIMES,
            *chain.from_iterable(identity_names.JSON.values()),
            "__MONOTONIC_TIMESTAMP",
            "__CURSOR",
            *_NATIVE,
        )
    )
)
_MEMSTATS = (
    r'"(?i:heap_?(?:alloc|sys|inuse|idle|released)|total_?alloc|next_?gc|num_?gc|alloc_?[mk]i?b)'
    r'(?i:_?(?:bytes|[kmg]i?b))?"\s*:\s*"?\d|"/(?:gc/heap|memory/classes)/[\w/-]+:\w+"\s*:\s*\d'
    r'|"(?i:mem_?stats)"\s*:\s*\{'
)
_MEMSTATS_WORDS = ["alloc", "heap", "/memory/", "nextgc", "next_gc", "numgc", "num_gc", "stats"]
"""Every match of `_MEMSTATS` has one of these; most lines of a log have none."""
_CYCLE = r"gc \d+ @"
_CYCLE_FIELD = r'"([^"\\]*gc \d+ @(?:[^"\\]|\\u003[eE])*)'
"""A field whose value has a cycle: programs log a child's output next to their own message, and
collectors keep the original line."""
_WHICH_CYCLE = r"gc \d+ @[0-9.]+"

_KIND = (
    ("journalctl -o json", ("MESSAGE", "__REALTIME_TIMESTAMP", "__CURSOR")),
    ("docker json-file", ("log",)),
    ("GCP logging", ("textPayload", "jsonPayload/message", "jsonPayload/msg")),
    ("CSV export", (csv_export.MESSAGE,)),
    ("stern -o json", ("podName",)),
    ("JSON log", _MESSAGES[3:]),
)


def decode(lines: pl.DataFrame, tally: Tally) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Decodes lines of JSON, and counts the messages by log format.

    Returns the messages with their metadata (`metadata.completed`), and the lines without a
    message.
    """
    texts = _sources(lines["text"].str.strip_prefix("data: ").str.strip_chars("\x1e, \t"))
    fields = _fields_of(texts)
    given = set(fields.columns)
    known = _of(given, _MESSAGES)
    if not known and not (given and texts.str.contains(_CYCLE).any()):
        return completed(lines.clear()), lines
    table = lines.select("line_no", whole="text").hstack(fields)
    # If the fields of an entry are MemStats, the whole entry is the message.
    holds = texts.str.contains_any(_MEMSTATS_WORDS, ascii_case_insensitive=True)
    own = (
        pl.when(pl.col("whole").str.contains(_MEMSTATS)).then("whole") if holds.any() else None
    )
    messages = [*([] if own is None else [own]), *known, pl.lit(None, pl.String)]
    table = table.with_columns(text=pl.coalesce(messages))
    table = _with_other_cycles(table)
    has = table["text"].is_not_null()
    others = table.filter(~has).select("line_no", text=pl.col("whole"))
    table = table.filter(has)
    _count(table, tally)
    metadata = {
        column: pl.coalesce(_of(given, names))
        for column, names in identity_names.JSON.items()
        if _of(given, names)
    }
    if _of(given, _TIMES):
        metadata["at"] = pl.coalesce(_of(given, _TIMES))
    if "__MONOTONIC_TIMESTAMP" in given:
        clock = numbers.real_column(pl.col("__MONOTONIC_TIMESTAMP"))
        metadata["monotonic_s"] = numbers.seconds_of_us(clock)
    if native := _of(given, _NATIVE):
        some = pl.any_horizontal(pl.col(name).is_not_null() for name in native)
        metadata["native"] = pl.when(some).then(pl.struct(native).struct.json_encode())
    if "log" in given:
        # Docker splits lines at 16 KiB; only the last piece has a line end. Collectors that read
        # Docker's files remove it from every line.
        ended = pl.col("text").str.ends_with("\n")
        by_docker = 4 * ended.sum() >= pl.col("log").count()
        long = pl.col("text").str.len_bytes() >= DOCKER_BYTES
        last = pl.int_range(pl.len()) == pl.len() - 1
        piece = pl.col("log").is_not_null() & ~ended & (by_docker | long) & ~last
        metadata["tag"] = pl.when(piece).then(pl.lit("P"))
    one_line = (
        pl.col("text").str.strip_chars_end("\r\n").str.replace_all("\n", " ", literal=True)
    )
    return completed(table.with_columns(text=one_line, **metadata)), others


def _with_other_cycles(table: pl.DataFrame) -> pl.DataFrame:
    """Replaces a message without a cycle by another field of the entry with one.

    If other fields have several cycles, the whole entry is the message.
    """
    text, whole = pl.col("text"), pl.col("whole")
    elsewhere = ~text.str.contains(_CYCLE).fill_null(value=False) & whole.str.contains(_CYCLE)
    here = table.select(elsewhere).to_series()
    if not here.any():
        return table
    others = table.filter(here).select(
        pl.when(whole.str.extract_all(_WHICH_CYCLE).list.n_unique() > 1)
        .then(whole)
        .otherwise(
            pl.coalesce(
                whole.str.extract(_CYCLE_FIELD).str.replace_all(r"\\u003[eE]", ">"), text
            )
        )
    )
    at = pl.int_range(len(table), eager=True).filter(here)
    return with_replaced(table, table["text"].scatter(at, others.to_series()))


def _sources(texts: pl.Series) -> pl.Series:
    """Replaces each search hit of a log index by the document that it contains."""
    hits = texts.str.contains(_HIT)
    if not hits.any():
        return texts
    entries = [json.dumps(source(_value(text))) for text in texts.filter(hits)]
    at = pl.int_range(len(texts), eager=True).filter(hits)
    return texts.scatter(at, pl.Series(entries, dtype=pl.String))


def source(hit: dict[str, Any]) -> dict[str, object]:
    """Returns the entry of a search hit."""
    entry = hit
    if not any(isinstance(hit.get(name), str) for name in _MESSAGES):
        inside = (hit[name] for name in _WITHIN if isinstance(hit.get(name), dict))
        entry = {**hit, **next(inside, {})}
        if isinstance(fields := hit.get("fields"), dict):
            # Elasticsearch returns fields as lists of values, and Kibana requests only these.
            lists = {name: value for name, value in fields.items() if isinstance(value, list)}
            entry |= {name: value[0] for name, value in lists.items() if len(value) == 1}
    return entry


def _of(given: set[str], names: Iterable[str]) -> list[str]:
    return [name for name in names if name in given]


def _count(table: pl.DataFrame, tally: Tally) -> None:
    left = table
    for name, keys in _KIND:
        known = pl.any_horizontal(
            pl.lit(value=False),
            *(pl.col(key).is_not_null() for key in keys if key in left.columns),
        )
        matching, left = left.filter(known), left.filter(~known)
        if len(matching):
            tally.add(name, matching)


def _fields_of(texts: pl.Series) -> pl.DataFrame:
    """Returns the known fields of each line, as text."""
    if (table := _by_polars(texts)) is not None:
        return table
    odd = texts.str.contains(_ODD)
    rest = _by_polars(texts.filter(~odd)) if odd.any() else None
    if rest is None:
        return _by_python(texts)
    rows = pl.int_range(len(texts), eager=True).alias("row")
    # A frame without columns, if the others have no known field, has no rows either.
    parts = [
        pl.DataFrame([rows.filter(~odd), *rest]),
        _by_python(texts.filter(odd)).with_columns(rows.filter(odd)),
    ]
    return pl.concat(parts, how="diagonal").sort("row").drop("row")


def _by_polars(texts: pl.Series) -> pl.DataFrame | None:
    """Returns the fields of the lines; None if Polars cannot decode every line."""
    step = max(1, len(texts) // SAMPLE_LINES)
    types = _types(_FIELDS, [_value(text) for text in texts.gather_every(step)])
    if not types:
        return pl.DataFrame()
    try:
        table = texts.str.json_decode(pl.Struct(types)).struct.unnest()
    except pl.exceptions.PolarsError:
        return None
    return table.select(_members(types))


def _types(names: Iterable[str], values: list[dict[str, object]]) -> dict[str, pl.DataType]:
    """Returns the types of the fields with these names that occur in the values.

    A field that is an object has its members with known names.
    """
    given = {key for value in values for key in value}
    objects: dict[str, list[dict[str, object]]] = {}
    for value in values:
        for key, inner in value.items():
            if isinstance(inner, dict):
                objects.setdefault(key, []).append(inner)
    types: dict[str, pl.DataType] = {}
    members: dict[str, list[str]] = {}
    for name in names:
        outer, _, member = name.partition("/")
        if outer in objects:
            members.setdefault(outer, []).extend([member] if member else [])
        elif outer in given and not member:
            types[outer] = pl.String()
    for outer, inside in members.items():
        # Even without known members it stays an object, so that Polars refuses other values.
        types[outer] = pl.Struct(_types(inside, objects[outer]) or {_UNKNOWN: pl.String()})
    return types


def _members(types: Mapping[str, Any], within: str = "") -> Iterator[pl.Expr]:
    """Yields the texts in columns of these types; inner ones have names such as `a/b`."""
    for name, dtype in types.items():
        path = f"{within}{name}"
        if isinstance(dtype, pl.Struct):
            yield from _members(dtype.to_schema(), f"{path}/")
            continue
        outer, *inner = path.split("/")
        member = pl.col(outer)
        for each in inner:
            member = member.struct.field(each)
        yield member.alias(path)


def _by_python(texts: pl.Series) -> pl.DataFrame:
    """Decodes the lines in Python, which is slower: for invalid JSON and byte-array messages."""
    rows = [_fields(text) for text in texts]
    return pl.DataFrame(rows, schema=dict.fromkeys(_FIELDS, pl.String()), orient="row")


def _value(text: str) -> dict[str, object]:
    try:
        value = json_values.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _fields(text: str) -> list[str | None]:
    value = _value(text)
    return [record_field(value, name) for name in _FIELDS]


def record_field(value: Any, name: str) -> str | None:
    """Returns a field of a JSON record as text; `a/b` is the field b of a."""
    outer, _, inner = name.partition("/")
    if not isinstance(value, dict):
        return None
    if inner:
        return record_field(value.get(outer), inner)
    member = value.get(name)
    if isinstance(member, list):
        return from_bytes(member)
    if member is None or isinstance(member, dict):
        return None
    return member if isinstance(member, str) else json.dumps(member)


def from_bytes(values: Iterable[Any]) -> str | None:
    """Returns the text of an array of bytes, which journald writes for unclean messages."""
    try:
        return bytes(values).decode(errors="replace")
    except (TypeError, ValueError):
        return None
