"""From inputs to tables: parts read, dated, told apart by program, and put together."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.errors import (
    GctraceWarning,
    NoDataError,
    UnreadableInputError,
)
from gctrace_analyzer.ingest import clock as clocks
from gctrace_analyzer.ingest import owners, processes, sniff
from gctrace_analyzer.ingest.clock import Clock
from gctrace_analyzer.ingest.evidence import dispatch
from gctrace_analyzer.ingest.evidence.message import Message
from gctrace_analyzer.ingest.gctrace.torn import Reject
from gctrace_analyzer.ingest.input import Part, read_part
from gctrace_analyzer.ingest.sources import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gctrace_analyzer.ingest.evidence.message import Row
    from gctrace_analyzer.ingest.sources import Input, SourceFacts

_COMPANIONS = ("scavenges", "pacer", "scans")
_PAYLOADS = (
    "memstats", "oom_kills", "oom_invocations", "oom_tasks", "unit_events", "container_states",
    "runtime_fatal",
)  # fmt: skip

# A line of these belongs to the cycle whose record comes next; every other to the one before.
_OF_THE_NEXT = ("pacer_assist", "pacer_new", "pacer_old")


@dataclass(frozen=True, slots=True)
class Log:
    """What the inputs hold: tables by name (`schema.TABLES`), and facts of each input.

    `runtime_lines` counts the lines that are no cycles, by shape; `impossible` the values
    that fit their type but cannot be and became null, by column; `notes` are sentences about
    the clock and what was read.
    """

    tables: dict[str, pl.DataFrame]
    sources: tuple[SourceFacts, ...]
    runtime_lines: dict[str, int]
    impossible: dict[str, int]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How inputs are read: what `read` takes beside them."""

    strict: bool = False
    kind: str | None = None
    columns: Sequence[str] | None = None
    clock: Clock = field(default_factory=Clock)
    unpack_limit: int | None = None


def read_log(
    origins: Sequence[Input],
    how: ReadOptions | None = None,
    *,
    progress: Callable[[SourceFacts], None] | None = None,
) -> Log:
    """Reads inputs, in this order, as parts of one log.

    Args:
        origins: paths, `-` for standard input, or open files.
        how: options; `strict` makes a rejected line an error.
        progress: called after each chunk with the facts of the input so far.

    Raises:
        UnreadableInputError: an input cannot be opened or is not a log; with `strict`, also
            when a line was rejected.
        NoDataError: the inputs are empty, or no line of them is recognised.
    """
    how = how or ReadOptions()
    sniff.checked(how.kind)
    parts, notes = _read_all(origins, how, progress)
    if how.strict and (part := next((part for part in parts if part.rejected), None)):
        line_no, reason, text = part.rejected[0]
        hint = f"Line: {text!r}\n  Without strict, such lines are counted and reading goes on."
        raise UnreadableInputError(part.facts.name, reason, hint, line_no=line_no)
    return log_of(parts, how, notes)


def log_of(parts: list[Part], how: ReadOptions, notes: Sequence[str]) -> Log:
    """The parts, which are used up, as one log; `notes` are what was said in reading them."""
    cycles, whose = owners.one_frame(parts)
    cycles, spans, parted = clocks.anchored(cycles, how.clock)
    companions = {table: _companions(table, parts, cycles) for table in _COMPANIONS}
    found = processes.processes(cycles, companions.values())
    found = found.update(spans, on="process").update(whose, on="process")
    tables = {
        "cycles": schema.conform("cycles", cycles),
        "processes": schema.conform("processes", found),
        **{table: schema.conform(table, frame) for table, frame in companions.items()},
        **{table: _payload(table, parts) for table in _PAYLOADS},
        "rejected": _rejected(parts),
    }
    return Log(
        tables,
        tuple(part.facts for part in parts),
        dict(sum((_shapes(part) for part in parts), Counter[str]())),
        dict(sum((part.impossible for part in parts), Counter[str]())),
        (*notes, *parted, *owners.strangers(found)),
    )


def _read_all(
    origins: Sequence[Input], how: ReadOptions, progress: Callable[[SourceFacts], None] | None
) -> tuple[list[Part], list[str]]:
    parts: list[Part] = []
    notes: list[str] = []
    nothing: list[NoDataError] = []
    for origin in origins:
        try:
            with Source(origin, unpack_limit=how.unpack_limit) as source:
                part = read_part(
                    source,
                    kind=how.kind,
                    columns=how.columns,
                    whole_bytes=how.unpack_limit,
                    progress=progress,
                )
        except NoDataError as err:
            nothing.append(err)
            continue
        notes += finish(part, how.clock)
        facts = part.facts
        if not any(facts.found.values()):
            nothing.append(NoDataError.unrecognised(facts.name, facts.lines, facts.first))
        parts.append(part)
    if nothing and len(nothing) == len(origins):
        raise nothing[0]
    for error in nothing:
        # One part of a rotated log may well be without a cycle.
        warnings.warn(str(error).partition("\n")[0], GctraceWarning, stacklevel=2)
    return parts, notes


def finish(part: Part, clock: Clock) -> list[str]:
    """Dates a part that has been read to its end, and reads its messages; what to say of it."""
    notes = _date(part, clock)
    _read_messages(part)
    part.facts.wrappers, part.facts.found = dict(part.wrappers), part.counts()
    return notes


def _date(part: Part, clock: Clock) -> list[str]:
    """Gives every frame of the part its `logged_at`; says what that would need."""
    kinds = list(part.companions)
    groups = [part.cycles, *(part.companions[kind] for kind in kinds), part.messages]
    groups.append([part.memstats] if part.memstats is not None else [])
    flat = [frame for group in groups for frame in group]
    part.newest_first = _newest_first(part.messages)
    dated, undated = clocks.dated(flat, clock)
    frames = iter(dated)
    part.cycles, *others, part.messages, table = [
        [next(frames) for _ in group] for group in groups
    ]
    part.companions = dict(zip(kinds, others, strict=True))
    part.memstats = table[0] if table else None
    if not undated:
        return []
    yearless = any("yearless" in frame.columns and frame["yearless"].any() for frame in flat)
    options = {"year": yearless and clock.year is None, "tz": clock.tz is None}
    missing = [name for name, needed in options.items() if needed]
    words = {"year": "year", "tz": "time zone"}
    lacks = " and no ".join(words[name] for name in missing) or "time there is"
    remedy = " and ".join(f"--{name}" for name in missing) or "another --tz"
    return [f"{part.facts.name}: {undated:,} stamps name no {lacks}; {remedy} dates them."]


def _read_messages(part: Part) -> None:
    """Reads everything but gctrace out of the part's messages."""
    for rows in part.rows.values():
        for row in rows:
            if (at := row.pop("at_us", None)) is not None:
                row["logged_at"] = pl.Series([at]).cast(pl.Datetime("us", "UTC"))[0]
    found = dispatch.read(_messages(part)) if part.messages else {}
    part.renumber(found)
    part.rejected += [Reject(**row) for row in found.pop("rejected", [])]
    part.rejected.sort()
    for table, rows in found.items():
        part.rows.setdefault(table, []).extend(rows)


def _messages(part: Part) -> list[Message]:
    lines = pl.concat(part.messages, how="diagonal").sort("line_no", maintain_order=True)
    absent = [name for name in Message._fields if name not in lines.columns]
    lines = lines.with_columns(pl.lit(None).alias(name) for name in absent)
    if part.newest_first or _effect_first(lines["text"]):
        lines = lines.reverse()
    return [Message._make(row) for row in lines.select(Message._fields).iter_rows()]


def _newest_first(messages: list[pl.DataFrame]) -> bool:
    """Whether messages, not yet dated, run backwards by one of their clocks."""
    for clock in ("stamp", "monotonic_s"):
        at = [
            frame.sort("line_no")[clock].drop_nulls()
            for frame in messages
            if clock in frame.columns
        ]
        if at and clocks.falls(pl.concat(at)):
            return True
    return False


def _effect_first(texts: pl.Series) -> bool:
    """Whether a kill stands above its own context: all within a second, newest first."""
    pid = texts.str.extract(r"oom-kill:constraint=.*,pid=(\d+),uid=")
    at = pid.is_not_null().arg_true()
    if at.is_empty():
        return False
    killed = texts.str.contains(f"[Kk]illed process {pid[int(at[0])]} ").arg_true()
    return bool(len(killed) and killed[0] < at[0])


def _payload(table: str, parts: list[Part]) -> pl.DataFrame:
    """A table of rows, the parts after each other, in the order of their lines."""
    frames = []
    types = schema.polars_schema(table)
    for part in parts:
        name = pl.lit(part.facts.name).cast(pl.Categorical).alias("source")
        if table == "memstats" and part.memstats is not None:
            frames.append(part.memstats.drop("resolution_s", strict=False).with_columns(name))
        if rows := part.rows.get(table):
            frames.append(
                _frame(rows, types).sort("line_no", maintain_order=True).with_columns(name)
            )
    if not frames:
        return pl.DataFrame(schema=types)
    whole = pl.concat(frames, how="diagonal_relaxed")
    more = [name for name in whole.columns if name not in types]
    conformed = schema.conform(table, whole)
    if table == "memstats":
        since = (
            pl.col("logged_at") - pl.col("logged_at").min().over("source")
        ).dt.total_microseconds()
        conformed = conformed.with_columns(
            pl.coalesce("elapsed_s", since / 1e6).alias("elapsed_s")
        )
        return conformed.hstack(whole.select(more))
    return conformed


def _frame(rows: list[Row], types: dict[str, pl.DataType]) -> pl.DataFrame:
    plain = {
        name: pl.String() if dtype == pl.Categorical else dtype
        for name, dtype in types.items()
        if name != "source"
    }
    return pl.DataFrame([{name: row.get(name) for name in plain} for row in rows], schema=plain)


def _companions(table: str, parts: list[Part], cycles: pl.DataFrame) -> pl.DataFrame:
    """A companion table with the process and cycle each of its lines belongs to."""
    frames = [
        frame.with_columns(pl.lit(part.facts.name).cast(pl.Categorical).alias("source"))
        for part in parts
        for frame in part.companions.get(table, [])
    ]
    if not frames:
        return pl.DataFrame()
    lines = pl.concat(frames, how="diagonal")
    near = cycles.select("source", "line_no", "process", "gc_num")
    if not near["line_no"].is_sorted():
        near = near.sort("line_no")
    before = lines.select("source", "line_no").join_asof(
        near, on="line_no", by="source", strategy="backward", check_sortedness=False
    )
    after = lines.select("source", "line_no").join_asof(
        near, on="line_no", by="source", strategy="forward", check_sortedness=False
    )
    # At either end of the log there is one neighbour only.
    process = (
        pl.when(of_the_next := lines["format"].cast(pl.String).is_in(_OF_THE_NEXT))
        .then(after["process"].fill_null(before["process"]))
        .otherwise(before["process"].fill_null(after["process"]))
    )
    num = pl.when(of_the_next).then(after["gc_num"]).otherwise(before["gc_num"])
    return lines.with_columns(
        process.alias("process"), num.alias("after_gc" if table == "scavenges" else "gc_num")
    )


def _rejected(parts: list[Part]) -> pl.DataFrame:
    rows = [(part.facts.name, *reject) for part in parts for reject in part.rejected]
    return pl.DataFrame(rows, schema=schema.polars_schema("rejected"), orient="row")


def _shapes(part: Part) -> Counter[str]:
    frames = chain.from_iterable(part.companions.values())
    return Counter(chain.from_iterable(frame["format"].cast(pl.String) for frame in frames))
