"""Reads one input: its chunks side by side, its torn lines joined, or its documents."""

from __future__ import annotations

from collections import Counter, deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.ingest import sniff
from gctrace_analyzer.ingest.evidence import documents, kubernetes
from gctrace_analyzer.ingest.gctrace import parse, torn
from gctrace_analyzer.ingest.memstats import csv
from gctrace_analyzer.ingest.memstats import text as memstats_text
from gctrace_analyzer.ingest.wrappers import journal
from gctrace_analyzer.ingest.wrappers.metadata import completed
from gctrace_analyzer.ingest.wrappers.peel import Peeled, by_depth, peel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gctrace_analyzer.ingest.evidence.message import Rows
    from gctrace_analyzer.ingest.gctrace.chunk import ChunkResult, Suspect
    from gctrace_analyzer.ingest.sources import Source, SourceFacts

WORKERS = 3
"""Chunks parsed at once. Polars and the interpreter take turns, so this many keep two
processors busy; more cost memory and gain nothing."""

WHOLE_BYTES = 512 << 20
"""The most that is read of an input that can only be read whole."""


@dataclass(slots=True)
class Part:
    """What one input holds.

    `cycles`, `companions` and `messages` have what a carrier said of their lines; `rows` come
    from documents, which need no carrier.
    """

    facts: SourceFacts
    cycles: list[pl.DataFrame] = field(default_factory=list)
    companions: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    messages: list[pl.DataFrame] = field(default_factory=list)
    memstats: pl.DataFrame | None = None
    rows: Rows = field(default_factory=dict)
    rejected: list[torn.Reject] = field(default_factory=list)
    impossible: Counter[str] = field(default_factory=Counter)
    wrappers: Counter[str] = field(default_factory=Counter)
    numbers: pl.Series | None = None
    newest_first: bool = False

    def renumber(self, found: Rows) -> None:
        """Gives messages of a document, and rows `found` in them, the lines they stand on."""
        if self.numbers is None:
            return
        at = pl.col("line_no") - 1
        line_no = pl.lit(self.numbers).gather(at).alias("line_no")
        self.cycles = [frame.with_columns(line_no) for frame in self.cycles]
        self.companions = {
            table: [frame.with_columns(line_no) for frame in frames]
            for table, frames in self.companions.items()
        }
        here = self.numbers.to_list()
        for row in chain.from_iterable(found.values()):
            for name in ("line_no", "kill_line_no"):
                if row.get(name):
                    row[name] = here[row[name] - 1]

    def counts(self) -> dict[str, int]:
        """How much there is of each table."""
        counted = {"cycles": sum(map(len, self.cycles))}
        counted |= {table: sum(map(len, frames)) for table, frames in self.companions.items()}
        counted |= {table: len(rows) for table, rows in self.rows.items() if rows}
        if self.memstats is not None:
            counted["memstats"] = len(self.memstats)
        return counted | ({"rejected": len(self.rejected)} if self.rejected else {})

    def add(self, found: ChunkResult) -> None:
        """Adds what a chunk holds."""
        self.cycles.append(found.cycles)
        for table, frame in found.companions.items():
            self.companions.setdefault(table, []).append(frame)
        if len(found.messages):
            self.messages.append(found.messages)
        self.impossible += found.impossible
        self.wrappers += found.wrappers


def read_part(
    source: Source,
    *,
    kind: str | None,
    columns: Sequence[str] | None,
    whole_bytes: int | None,
    progress: Callable[[SourceFacts], None] | None,
) -> Part:
    """What an input holds, read as `kind` or as what it looks like.

    Raises:
        UnreadableInputError: it is of a kind that cannot be read, or not whole.
        NoDataError: 0 bytes.
    """
    part = Part(source.facts)
    raw, text = source.head(sniff.SNIFF_BYTES)
    found = kind or ("memstats-csv" if columns else sniff.sniff(raw, text))
    part.facts.kind = found
    if found == "log":
        _read_log(part, source, progress)
    else:
        _read_whole(part, source, columns, whole_bytes or WHOLE_BYTES)
    return part


def _read_log(
    part: Part, source: Source, progress: Callable[[SourceFacts], None] | None
) -> None:
    suspects: list[Suspect] = []
    near: list[pl.DataFrame] = []
    depth = 0
    for found in _chunks(source):
        here = found.shifted(source.facts.lines)
        source.facts.lines += found.lines
        suspects += here.suspects
        near.append(here.near)
        depth = max(depth, here.depth)
        part.add(here)
        if progress:
            progress(source.facts)
    if suspects:
        mend(part, suspects, by_depth(pl.concat(near), depth))


def _chunks(source: Source) -> Iterator[ChunkResult]:
    """The chunks' contents in order, the next ones being parsed meanwhile."""
    with ThreadPoolExecutor(WORKERS) as pool:
        pending: deque[Future[ChunkResult]] = deque()
        for data in source.chunks():
            pending.append(pool.submit(parse.parse, data))
            if len(pending) > WORKERS:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def mend(part: Part, suspects: list[Suspect], near: pl.DataFrame) -> None:
    """Puts torn records where they begin; keeps what could not be read."""
    numbers = pl.concat([frame.select("line_no", "gc_num") for frame in part.cycles])

    def expected_num(line_no: int) -> int | None:
        at = numbers["line_no"].search_sorted(line_no)
        last = numbers["gc_num"][at - 1] if at else None
        return None if last is None else last + 1

    mended = torn.mend(suspects, near, expected_num)
    part.rejected += mended.rejected
    if mended.forced:
        apart = pl.col("line_no").is_in(mended.forced)
        part.cycles = [
            frame.with_columns(forced=pl.col("forced") | apart) for frame in part.cycles
        ]
    if mended.joined:
        lines = pl.DataFrame(mended.joined, schema=["line_no", "text"], orient="row")
        found = parse.parse_records(lines.sort("line_no"), near.sort("line_no"))
        joined = found.cycles.with_columns(repaired=pl.lit(value=True))
        part.cycles = list(_inserted(part.cycles, joined))
        found.cycles.clear()
        for table, frame in found.companions.items():
            part.companions.setdefault(table, []).append(frame)
        part.impossible += found.impossible


def _inserted(frames: list[pl.DataFrame], rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The frames, which are in line order, with the rows where they belong."""
    for index, frame in enumerate(frames):
        following = next((f["line_no"][0] for f in frames[index + 1 :] if len(f)), None)
        here = pl.lit(value=True) if following is None else pl.col("line_no") < following
        mine, rows = rows.filter(here), rows.filter(~here)
        if len(mine):
            both = pl.concat([frame, mine], how="diagonal")
            yield both.sort("line_no", maintain_order=True)
        else:
            yield frame


def _read_whole(part: Part, source: Source, columns: Sequence[str] | None, most: int) -> None:
    facts = part.facts
    if facts.kind == "journal-export":
        records = list(journal.export(source.whole(most)))
        part.wrappers["journalctl -o export"] += len(records)
        facts.lines = records[-1][0] if records else 0
        _add_lines(part, records)
        return
    text = source.text(most)
    lines = text.split("\n")
    facts.lines = len(lines) - (not lines[-1])
    if facts.kind == "journal-verbose":
        records = list(journal.verbose(text))
        part.wrappers["journalctl -o verbose"] += len(records)
        _add_lines(part, records)
    elif facts.kind == "memstats-csv":
        part.memstats, rejected = csv.read(text, facts.name, columns)
        part.rejected += [
            torn.Reject(number, why, line[:500]) for number, why, line in rejected
        ]
    elif facts.kind == "pprof":
        part.rows["memstats"] = memstats_text.pprof(lines)
    elif facts.kind == "metrics":
        part.rows["memstats"] = memstats_text.exposition(lines)
    elif facts.kind == "describe":
        rows, events = kubernetes.describe(lines)
        part.rows["container_states"] = rows
        _add_lines(part, events or list(enumerate(lines, start=1)))
    else:
        values = documents.read(text, facts.name)
        part.rows = values.rows
        part.wrappers.update(kind for kind in values.kinds)
        part.rejected += [
            torn.Reject(number, why, cut[:500]) for number, why, cut in values.cut
        ]
        _add_lines(part, values.records)


def _add_lines(part: Part, lines: Iterable[tuple[int, str]]) -> None:
    """Adds the messages of a document, a line each."""
    frame = pl.DataFrame(
        list(lines), schema={"line_no": pl.Int64, "text": pl.String}, orient="row"
    )
    if frame.is_empty():
        return
    known = part.wrappers.copy()
    # Several messages may stand on one line of a document; here each has its own.
    part.numbers = frame["line_no"]
    frame = frame.with_columns(line_no=pl.int_range(1, pl.len() + 1))
    before, part.rejected = part.rejected, []
    peeled = peel(frame)
    whole = peeled.lines if peeled.depth else completed(peeled.lines).drop("tag")
    found = parse.parse_messages(Peeled(whole, peeled.wrappers, peeled.depth))
    part.add(found)
    part.wrappers = known or peeled.wrappers
    if found.suspects:
        mend(part, found.suspects, by_depth(frame, peeled.depth))
    here = part.numbers.to_list()
    part.rejected = before + [
        reject._replace(line_no=here[reject.line_no - 1]) for reject in part.rejected
    ]
