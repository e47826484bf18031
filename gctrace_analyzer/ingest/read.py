"""From inputs to tables: chunks read side by side, torn lines joined, programs told apart."""

from __future__ import annotations

import warnings
from collections import Counter, deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.errors import (
    DamagedInputError,
    EmptyInputError,
    GctraceWarning,
    NoRecordsError,
)
from gctrace_analyzer.ingest import gctrace, stitch, torn
from gctrace_analyzer.ingest.sources import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gctrace_analyzer.ingest.found import Found, Suspect
    from gctrace_analyzer.ingest.sources import Input, SourceFacts

WORKERS = 3
"""Chunks parsed at once. Polars and the interpreter take turns, so this many keep two
processors busy; more cost memory and gain nothing."""

_COMPANIONS = ("scavenges", "pacer", "scans")

# A line of these belongs to the cycle whose record comes next; every other to the one before.
_OF_THE_NEXT = ("pacer_assist", "pacer_new", "pacer_old")


@dataclass(frozen=True, slots=True)
class Log:
    """What the inputs hold: tables by name (`schema.TABLES`), and facts of each input.

    `runtime_lines` counts the lines that are no cycles, by shape; `impossible` the values
    that fit their type but cannot be and became null, by column.
    """

    tables: dict[str, pl.DataFrame]
    sources: tuple[SourceFacts, ...]
    runtime_lines: dict[str, int]
    impossible: dict[str, int]


@dataclass(slots=True)
class _Part:
    """What one input holds."""

    facts: SourceFacts
    cycles: list[pl.DataFrame] = field(default_factory=list)
    companions: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    rejected: list[torn.Reject] = field(default_factory=list)
    impossible: Counter[str] = field(default_factory=Counter)

    def is_empty(self) -> bool:
        return not (self.rejected or self.companions or any(map(len, self.cycles)))


def read_log(
    origins: Sequence[Input],
    *,
    strict: bool = False,
    progress: Callable[[SourceFacts], None] | None = None,
) -> Log:
    """Reads inputs, in this order, as parts of one log.

    Args:
        origins: paths, `-` for standard input, or open files.
        strict: a rejected line is an error.
        progress: called after each chunk with the facts of the input so far.

    Raises:
        UnreadableInputError: an input cannot be opened or is no log.
        EmptyInputError: 0 bytes in all.
        NoRecordsError: nothing of ours, and nothing that looks like it.
        DamagedInputError: `strict`, and a line was rejected.
    """
    parts = _read_all(origins, progress)
    if strict and (part := next((part for part in parts if part.rejected), None)):
        raise DamagedInputError(part.facts.name, *part.rejected[0])
    cycles = _one_frame(parts)
    companions = {table: _companions(table, parts, cycles) for table in _COMPANIONS}
    tables = {
        "cycles": schema.conform("cycles", cycles),
        "processes": stitch.processes(cycles, companions.values()),
        **{table: schema.conform(table, frame) for table, frame in companions.items()},
        "rejected": _rejected(parts),
    }
    return Log(
        tables,
        tuple(part.facts for part in parts),
        dict(sum((_shapes(part) for part in parts), Counter[str]())),
        dict(sum((part.impossible for part in parts), Counter[str]())),
    )


def _read_all(
    origins: Sequence[Input], progress: Callable[[SourceFacts], None] | None
) -> list[_Part]:
    parts: list[_Part] = []
    nothing: list[EmptyInputError | NoRecordsError] = []
    for origin in origins:
        source = Source(origin)
        try:
            part = _read_source(source, progress)
        except EmptyInputError as err:
            nothing.append(err)
            continue
        if part.is_empty():
            facts = part.facts
            nothing.append(NoRecordsError(facts.name, facts.lines, facts.first))
        parts.append(part)
    if nothing and len(nothing) == len(origins):
        raise nothing[0]
    for error in nothing:
        # One part of a rotated log may well be without a cycle.
        warnings.warn(str(error).partition("\n")[0], GctraceWarning, stacklevel=2)
    return parts


def _read_source(source: Source, progress: Callable[[SourceFacts], None] | None) -> _Part:
    part = _Part(source.facts)
    suspects: list[Suspect] = []
    context: dict[int, str] = {}
    for found in _parsed(source):
        here = found.shifted(source.facts.lines)
        source.facts.lines += found.lines
        suspects += here.suspects
        context |= here.context
        part.cycles.append(here.cycles)
        _add_others(part, here)
        if progress:
            progress(source.facts)
    if suspects:
        _mend(part, suspects, context)
    return part


def _parsed(source: Source) -> Iterator[Found]:
    """The chunks' contents in order, the next ones being parsed meanwhile."""
    with ThreadPoolExecutor(WORKERS) as pool:
        pending: deque[Future[Found]] = deque()
        for data in source.chunks():
            pending.append(pool.submit(gctrace.parse, data))
            if len(pending) > WORKERS:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _add_others(part: _Part, found: Found) -> None:
    for table, frame in found.companions.items():
        part.companions.setdefault(table, []).append(frame)
    part.impossible += found.impossible


def _mend(part: _Part, suspects: list[Suspect], context: dict[int, str]) -> None:
    """Puts torn records where they begin; keeps what could not be read."""
    numbers = pl.concat([frame.select("line_no", "gc_num") for frame in part.cycles])

    def expected_num(line_no: int) -> int | None:
        at = numbers["line_no"].search_sorted(line_no)
        last = numbers["gc_num"][at - 1] if at else None
        return None if last is None else last + 1

    mended = torn.mend(suspects, context, expected_num)
    part.rejected = mended.rejected
    if mended.forced:
        apart = pl.col("line_no").is_in(mended.forced)
        part.cycles = [
            frame.with_columns(forced=pl.col("forced") | apart) for frame in part.cycles
        ]
    if mended.joined:
        lines = pl.DataFrame(mended.joined, schema=["line_no", "text"], orient="row")
        found = gctrace.parse_records(lines.sort("line_no"))
        joined = found.cycles.with_columns(repaired=pl.lit(value=True))
        part.cycles = list(_inserted(part.cycles, joined))
        _add_others(part, found)


def _inserted(frames: list[pl.DataFrame], rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The frames, which are in line order, with the rows where they belong."""
    for index, frame in enumerate(frames):
        following = next((f["line_no"][0] for f in frames[index + 1 :] if len(f)), None)
        here = pl.lit(value=True) if following is None else pl.col("line_no") < following
        mine, rows = rows.filter(here), rows.filter(~here)
        both = pl.concat([frame, mine])
        yield both.sort("line_no", maintain_order=True) if len(mine) else frame


def _one_frame(parts: list[_Part]) -> pl.DataFrame:
    """All cycles in one frame; not made contiguous, which would need them twice for a while."""
    frames = []
    for part in parts:
        name = pl.lit(part.facts.name).cast(pl.Categorical).alias("source")
        frames += [frame.with_columns(name) for frame in part.cycles if len(frame)]
        part.cycles.clear()
    if not frames:
        return pl.DataFrame(schema=schema.polars_schema("cycles"))
    process = stitch.process_of(frames)
    return pl.concat(
        frame.with_columns(of.alias("process"))
        for frame, of in zip(frames, process, strict=True)
    )


def _companions(table: str, parts: list[_Part], cycles: pl.DataFrame) -> pl.DataFrame:
    """A companion table with the process and cycle each of its lines belongs to."""
    frames = [
        frame.with_columns(pl.lit(part.facts.name).cast(pl.Categorical).alias("source"))
        for part in parts
        for frame in part.companions.get(table, [])
    ]
    if not frames:
        return pl.DataFrame()
    lines = pl.concat(frames)
    near = cycles.select("source", "line_no", "process", "gc_num")
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


def _rejected(parts: list[_Part]) -> pl.DataFrame:
    rows = [(part.facts.name, *reject) for part in parts for reject in part.rejected]
    return pl.DataFrame(rows, schema=schema.polars_schema("rejected"), orient="row")


def _shapes(part: _Part) -> Counter[str]:
    frames = chain.from_iterable(part.companions.values())
    return Counter(chain.from_iterable(frame["format"].cast(pl.String) for frame in frames))
