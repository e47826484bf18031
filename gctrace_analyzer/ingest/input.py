"""Reads one input: a log in parallel chunks, or a document as a whole."""

from __future__ import annotations

import re
from collections import Counter, deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.errors import NoDataError, UnreadableInputError
from gctrace_analyzer.ingest import sniff
from gctrace_analyzer.ingest.evidence import words
from gctrace_analyzer.ingest.evidence.message import STATED
from gctrace_analyzer.ingest.gctrace import parse
from gctrace_analyzer.ingest.gctrace.chunk import Reject
from gctrace_analyzer.ingest.gctrace.patterns import RUNTIME
from gctrace_analyzer.ingest.wrappers import csv_export, strip
from gctrace_analyzer.ingest.wrappers.metadata import completed
from gctrace_analyzer.ingest.wrappers.strip import Stripped, by_depth, strip_prefixes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gctrace_analyzer.ingest.evidence.message import Rows
    from gctrace_analyzer.ingest.gctrace.chunk import ChunkResult, Suspect
    from gctrace_analyzer.ingest.profiles.profile import Profile
    from gctrace_analyzer.ingest.sources import Source, SourceFacts
    from gctrace_analyzer.ingest.wrappers.csv_export import Export

WORKERS = 3
"""Chunks parsed in parallel, partly by Polars and partly by the interpreter, so three keep two
processors busy. More need more memory and gain nothing."""

WHOLE_BYTES = 512 << 20
"""The largest document that is read; documents must fit in memory."""


@dataclass(slots=True)
class Part:
    """The content of one input.

    `companions` has the lines of other traces (scavenger, pacer, scans), and `messages` all other
    lines that may matter. Both, and `cycles`, have the metadata of their log prefixes. `rows` has
    the rows of other tables. `line_numbers` has the line of each message of a document, `command`
    the command line of an expvar document, `undated` sentences about its times, and `others` the
    documents in the same text.
    """

    facts: SourceFacts
    cycles: list[pl.DataFrame] = field(default_factory=list)
    companions: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    messages: list[pl.DataFrame] = field(default_factory=list)
    memstats: pl.DataFrame | None = None
    cycle_pauses: pl.DataFrame | None = None
    command: str | None = None
    undated: list[str] = field(default_factory=list)
    rows: Rows = field(default_factory=dict)
    profiles: list[Profile] = field(default_factory=list)
    rejected: list[Reject] = field(default_factory=list)
    impossible: Counter[str] = field(default_factory=Counter)
    wrappers: Counter[str] = field(default_factory=Counter)
    line_numbers: pl.Series | None = None
    newest_first: bool = False
    beginning: str = ""
    others: list[Part] = field(default_factory=list)

    @property
    def is_recognised(self) -> bool:
        """Whether the kind of the part is known: it has rows, or records of a known format."""
        read = self.memstats is not None or self.wrappers or self.profiles
        return bool(read or any(self.rows.values()))

    def renumber(self, rows_by_table: Rows) -> None:
        """Replaces message numbers by line numbers, here and in the given rows."""
        if self.line_numbers is None:
            return
        at = pl.col("line_no") - 1
        line_no = pl.lit(self.line_numbers).gather(at).alias("line_no")
        self.cycles = [frame.with_columns(line_no) for frame in self.cycles]
        self.companions = {
            table: [frame.with_columns(line_no) for frame in frames]
            for table, frames in self.companions.items()
        }
        numbers = self.line_numbers.to_list()
        for row in chain.from_iterable(rows_by_table.values()):
            for name in ("line_no", "kill_line_no"):
                if row.get(name):
                    row[name] = numbers[row[name] - 1]

    def counts(self) -> dict[str, int]:
        """Returns the number of rows of each table."""
        counted = {"cycles": sum(map(len, self.cycles))}
        counted |= {table: sum(map(len, frames)) for table, frames in self.companions.items()}
        counted |= {
            table: happened
            for table, rows in self.rows.items()
            if (happened := sum(row.get("event") != STATED for row in rows))
        }
        if self.memstats is not None:
            counted["memstats"] = len(self.memstats)
        if self.profiles:
            from gctrace_analyzer.ingest.profiles.debug_text import CUT

            cut = sum(CUT in profile.places["function"] for profile in self.profiles)
            counted["stacks"] = sum(len(profile.stacks) for profile in self.profiles) - cut
        return counted | ({"rejected": len(self.rejected)} if self.rejected else {})

    def add(self, result: ChunkResult) -> None:
        """Adds the contents of a chunk."""
        self.cycles.append(result.cycles)
        self.add_companions(result)
        if len(result.messages):
            self.messages.append(result.messages)
        self.wrappers += result.wrappers

    def include(self, other: Part) -> None:
        """Adds the content of another part of the same input; both have times and line numbers."""
        self.cycles = _one_frame(self.cycles + other.cycles)
        for table, frames in other.companions.items():
            self.companions[table] = _one_frame([*self.companions.get(table, []), *frames])
        self.memstats = _in_order([self.memstats, other.memstats])
        self.cycle_pauses = _in_order([self.cycle_pauses, other.cycle_pauses])
        self.command = self.command or other.command
        for table, rows in other.rows.items():
            self.rows.setdefault(table, []).extend(rows)
        self.profiles += other.profiles
        self.messages += other.messages
        self.undated += other.undated
        self.rejected = sorted(self.rejected + other.rejected)
        self.impossible += other.impossible
        self.wrappers += other.wrappers

    def add_companions(self, result: ChunkResult) -> None:
        """Adds the lines of other traces, and the count of impossible values."""
        for table, frame in result.companions.items():
            self.companions.setdefault(table, []).append(frame)
        self.impossible += result.impossible


def _in_order(frames: Sequence[pl.DataFrame | None]) -> pl.DataFrame | None:
    """Returns the rows of frames in the order of their lines."""
    known = [frame for frame in frames if frame is not None]
    if len(known) < 2:
        return known[0] if known else None
    return pl.concat(known, how="diagonal_relaxed").sort("line_no", maintain_order=True)


def _one_frame(frames: list[pl.DataFrame]) -> list[pl.DataFrame]:
    whole = _in_order([frame for frame in frames if len(frame)])
    return frames[:1] if whole is None else [whole]


def read_parts(
    source: Source,
    *,
    kind: str | None,
    columns: Sequence[str] | None,
    whole_bytes: int | None,
    progress: Callable[[SourceFacts], None] | None,
) -> list[Part]:
    """Returns the parts of an input; without `kind`, its format is detected.

    An input with documents of several kinds, or with other lines around them, has several parts
    with the same facts.

    Raises:
        UnreadableInputError: the kind of input cannot be read, or a document is too large.
        NoDataError: the input has 0 bytes.
    """
    # Readers of everything except logs are imported where they are used, here and below: loading
    # them takes longer than reading a short log.
    facts = source.facts
    raw, text = source.head(sniff.SNIFF_BYTES)
    if kind in (None, "pprof") and sniff.is_profile(raw):
        return [_profile(facts, source)]
    output = words.without_command(text)
    facts.kind = kind or ("memstats-csv" if columns else sniff.sniff(raw, output))
    if facts.kind == "journal-export":
        return [_journal_export(facts, source.whole(whole_bytes or WHOLE_BYTES))]
    if facts.kind not in ("log", "csv-export"):
        text = words.without_command(source.text(whole_bytes or WHOLE_BYTES))
        from gctrace_analyzer.ingest.evidence import sections

        is_mixed = not (kind or columns) and sections.is_mixed(facts.kind, text)
        if is_mixed and (parts := _mixed(facts, text)):
            return parts
        facts.lines = text.count("\n") + (not text.endswith("\n"))
        part = _document(facts, facts.kind, text, columns)
        part.beginning = text[: sniff.SNIFF_BYTES]
        return [part]
    chunks = source.chunks()
    first = list(islice(chunks, 2))
    is_short = kind is None and facts.kind == "log" and len(first) == 1
    if is_short and (parts := _unwrapped(facts, first[0])):
        return parts
    if (
        is_short
        and sniff.may_have_documents(first[0])
        and (parts := _mixed(facts, first[0].decode()))
    ):
        return parts
    export = csv_export.export_of(text) if facts.kind == "csv-export" else None
    part = part_of_log(facts, _parsed(first, chunks, export), progress)
    part.beginning = text
    return [part]


def _unwrapped(facts: SourceFacts, log: bytes) -> list[Part]:
    """Returns the parts of a document whose lines have a prefix; empty for other texts."""
    if len(log) > sniff.MIXED_BYTES or b" ms clock" in log:
        return []
    from gctrace_analyzer.ingest.evidence import sections

    wrapped = text = log.decode()
    for _ in range(strip.DEEPEST):
        if (plain := strip.unwrapped(text)) in (None, text):
            break
        text = plain
        output = words.without_command(text)
        kind = sniff.sniff(b"", output)
        if kind not in sniff.DOCUMENTS or sections.is_mixed(kind, output):
            parts = _mixed(facts, text, wrapped)
        else:
            try:
                parts = [_document(facts, kind, output)]
            except (UnreadableInputError, NoDataError):
                continue
            parts[0].beginning = text[: sniff.SNIFF_BYTES]
            facts.lines, facts.kind = text.count("\n"), kind
        if parts and parts[0].is_recognised:
            return parts
    facts.lines, facts.kind = 0, "log"
    return []


def _mixed(facts: SourceFacts, text: str, wrapped: str | None = None) -> list[Part]:
    """Returns the parts of a text: its documents, and one for other lines if it has any.

    Empty if there are no documents, or only pages of metrics. `wrapped` has lines with prefixes.
    """
    from gctrace_analyzer.ingest.evidence import sections

    taken, parts = [], []
    for section in sections.sections_of(text):
        try:
            part = _document(facts, section.kind, section.text)
        except (UnreadableInputError, NoDataError):
            continue
        if part.is_recognised:
            taken.append(section)
            parts.append(part)
    kinds = {section.kind for section in taken}
    rest = sections.without(wrapped or text, taken)
    has_log = sections.has_log(rest)
    if not parts or (facts.kind == "metrics" and kinds == {"metrics"} and not has_log):
        return []
    if has_log:
        parts.insert(0, part_of_log(facts, iter([parse.parse(rest.encode())])))
        parts[0].others = parts[1:]
    parts[0].beginning = text[: sniff.SNIFF_BYTES]
    facts.kind = "mixed" if has_log or len(kinds) > 1 else kinds.pop()
    facts.lines = text.count("\n") + (not text.endswith("\n"))
    return parts


def part_of_log(
    facts: SourceFacts,
    chunks: Iterator[ChunkResult],
    progress: Callable[[SourceFacts], None] | None = None,
) -> Part:
    """Returns the part of a log whose chunks follow `facts.lines` lines; counts their lines."""
    part = Part(facts)
    suspects: list[Suspect] = []
    context: list[pl.DataFrame] = []
    depth = 0
    for chunk in chunks:
        result = chunk.shifted(facts.lines)
        facts.lines += chunk.lines
        suspects += result.suspects
        context.append(result.context)
        depth = max(depth, result.depth)
        part.add(result)
        if progress:
            progress(facts)
    if suspects:
        add_rejoined(part, suspects, by_depth(pl.concat(context), depth))
    return part


def _parsed(
    first: list[bytes], chunks: Iterator[bytes], export: Export | None
) -> Iterator[ChunkResult]:
    """Yields the results of all chunks, several of which are parsed at once.

    With one Polars thread, only one is parsed at once: such a process is one of several.
    """

    def parsed(data: bytes) -> ChunkResult:
        return parse.parse(data if export is None else csv_export.as_json_lines(data, export))

    if len(first) < 2 or pl.thread_pool_size() == 1:
        yield from map(parsed, chain(first, chunks))
        return
    with ThreadPoolExecutor(WORKERS) as pool:
        pending: deque[Future[ChunkResult]] = deque()
        for data in chain(first, chunks):
            pending.append(pool.submit(parsed, data))
            if len(pending) > WORKERS:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def add_rejoined(part: Part, suspects: list[Suspect], context: pl.DataFrame) -> None:
    """Rejoins torn records and adds them, and the rejected lines, to the part.

    Args:
        part: where to add them.
        suspects: the lines that look like parts of torn records.
        context: the lines around the suspects.
    """
    from gctrace_analyzer.ingest.gctrace import torn

    numbers = pl.concat([frame.select("line_no", "gc_num") for frame in part.cycles])

    def expected_num(line_no: int) -> int | None:
        at = numbers["line_no"].search_sorted(line_no)
        last = numbers["gc_num"][at - 1] if at else None
        return None if last is None else last + 1

    rejoined = torn.rejoin(suspects, context, expected_num)
    part.rejected += rejoined.rejected
    if rejoined.forced:
        forced = pl.col("line_no").is_in(rejoined.forced)
        part.cycles = [
            frame.with_columns(forced=pl.col("forced") | forced) for frame in part.cycles
        ]
    if rejoined.joined:
        lines = pl.DataFrame(rejoined.joined, schema=["line_no", "text"], orient="row")
        result = parse.parse_records(lines.sort("line_no"), context.sort("line_no"))
        repaired = result.cycles.with_columns(repaired=pl.lit(value=True))
        part.cycles = list(_inserted(part.cycles, repaired))
        part.add_companions(result)


def _inserted(frames: list[pl.DataFrame], rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yields the frames, which are in line order, with the rows inserted in line order."""
    for index, frame in enumerate(frames):
        following = next((f["line_no"][0] for f in frames[index + 1 :] if len(f)), None)
        here = pl.lit(value=True) if following is None else pl.col("line_no") < following
        inserted, rows = rows.filter(here), rows.filter(~here)
        if len(inserted):
            both = pl.concat([frame, inserted], how="diagonal")
            yield both.sort("line_no", maintain_order=True)
        else:
            yield frame


def _profile(facts: SourceFacts, source: Source) -> Part:
    """Returns the part of a profile, which is rejected if its end is missing."""
    from gctrace_analyzer.ingest.profiles import proto

    facts.kind = "pprof"
    profile = proto.read(source.blocks(), facts.name)
    if facts.damage:
        raise NoDataError(facts.name, facts.damage, proto.AGAIN)
    part = Part(facts, profiles=[profile])
    part.wrappers[f"{profile.kind} profile"] += len(profile.stacks)
    return part


def _journal_export(facts: SourceFacts, data: bytes) -> Part:
    from gctrace_analyzer.ingest.wrappers import journal

    part = Part(facts)
    records = list(journal.export(data))
    part.wrappers["journalctl -o export"] += len(records)
    facts.lines = records[-1][0] if records else 0
    _add_lines(part, records)
    return part


def _document(
    facts: SourceFacts, kind: str, text: str, columns: Sequence[str] | None = None
) -> Part:
    """Returns the part of a text that consists of documents of one kind."""
    from gctrace_analyzer.ingest.evidence import kubernetes
    from gctrace_analyzer.ingest.memstats import csv, pprof
    from gctrace_analyzer.ingest.profiles import debug_text
    from gctrace_analyzer.ingest.wrappers import journal

    part = Part(facts)
    if kind == "journal-verbose":
        records = list(journal.verbose(text))
        part.wrappers["journalctl -o verbose"] += len(records)
        _add_lines(part, records)
    elif kind == "memstats-csv":
        part.memstats, rejected = csv.read(text, facts.name, columns)
        part.rejected += [Reject(number, why, line[:500]) for number, why, line in rejected]
    elif kind == "pprof":
        lines = text.split("\n")
        part.rows["memstats"] = pprof.read(lines)
        part.cycle_pauses = pprof.pauses(lines, part.rows["memstats"])
        part.profiles += filter(None, (debug_text.read(lines, facts.name),))
    elif kind == "metrics":
        _add_metrics(part, text)
    elif kind == "describe":
        lines = text.split("\n")
        part.rows["container_states"], events = kubernetes.describe(lines)
        part.wrappers["kubectl describe"] += len(part.rows["container_states"])
        _add_lines(part, events or list(enumerate(lines, start=1)))
    else:
        _add_values(part, kind, text)
    return part


def _add_values(part: Part, kind: str, text: str) -> None:
    """Adds the contents of JSON or YAML documents."""
    from gctrace_analyzer.ingest.evidence import documents, sections
    from gctrace_analyzer.ingest.evidence.words import JSON_FRAGMENT

    read = documents.read_yaml if kind == "yaml" else documents.read
    try:
        values = read(text, part.facts.name)
    except UnreadableInputError as err:
        # Text in braces may not be JSON, such as Logstash's output.
        if not (re.search(RUNTIME, text) or JSON_FRAGMENT.match(text)):
            raise
        line_no = min(err.line_no or 1, len(lines := text.split("\n")))
        why = f"{err.problem}; the input was read as text"
        part.rejected.append(Reject(line_no, why, lines[line_no - 1][:500]))
        _add_lines(part, enumerate(lines, start=1))
        return
    part.rows = values.rows
    part.wrappers.update(kind for kind in values.kinds)
    _add_rings(part, values.dumps)
    part.rejected += [Reject(number, why, cut[:500]) for number, why, cut in values.cut]
    # A text may have thousands of fragments without messages, such as settings of programs.
    if not JSON_FRAGMENT.match(text) or sections.have_messages(values.records):
        _add_lines(part, values.records)


def _add_rings(part: Part, dumps: list[tuple[int, dict[str, object]]]) -> None:
    """Adds the single pauses, times and command line of documents of MemStats and expvar."""
    from gctrace_analyzer.ingest.memstats import snapshots
    from gctrace_analyzer.ingest.metrics import go_json

    times = {line_no: go_json.time_of(value) for line_no, value in dumps}
    for row in part.rows.get("memstats", ()):
        row.setdefault("logged_at", times.get(row["line_no"]))
    pauses = go_json.pauses_of(dumps)
    part.cycle_pauses = pauses if len(pauses) else None
    part.command = snapshots.command_of(value for _, value in dumps)


def _add_metrics(part: Part, text: str) -> None:
    """Adds the scrapes of a metrics file, and the files of a control group next to them."""
    from gctrace_analyzer.ingest.evidence import cgroups
    from gctrace_analyzer.ingest.metrics import exposition, layouts

    metrics = layouts.read(text, part.facts.name)
    if metrics.is_empty and next(exposition.of_pauses(text), None) is None:
        if sniff.foreign(text[: sniff.SNIFF_BYTES]):
            raise sniff.unrecognised(part.facts, text[: sniff.SNIFF_BYTES])
        raise NoDataError.no_go_metrics(part.facts.name)
    part.wrappers[layouts.NAMES[metrics.layout]] += max(len(metrics.memstats), 1)
    part.memstats = metrics.memstats if len(metrics.memstats) else None
    part.cycle_pauses = metrics.pauses if len(metrics.pauses) else None
    part.rows |= metrics.containers
    part.rejected += [Reject(number, why, line[:500]) for number, why, line in metrics.rejected]
    _add_lines(part, cgroups.lines_of(text))


def _add_lines(part: Part, lines: Iterable[tuple[int, str]]) -> None:
    """Adds the messages of a document to the part of the input that is being read, one per line."""
    rows = list(lines)
    if not rows:
        return
    frame = pl.DataFrame(rows, schema={"line_no": pl.Int64, "text": pl.String}, orient="row")
    known = part.wrappers.copy()
    # A line of a document may have several messages, so each gets its own number.
    part.line_numbers = frame["line_no"]
    frame = frame.with_columns(line_no=pl.int_range(1, pl.len() + 1))
    stripped = strip_prefixes(frame)
    whole = stripped.lines if stripped.depth else completed(stripped.lines).drop("tag")
    result = parse.parse_messages(Stripped(whole, stripped.wrappers, stripped.depth))
    part.add(result)
    part.wrappers = known or stripped.wrappers
    rejected_before = len(part.rejected)
    if result.suspects:
        add_rejoined(part, result.suspects, by_depth(frame, stripped.depth))
    numbers = part.line_numbers.to_list()
    part.rejected[rejected_before:] = [
        reject._replace(line_no=numbers[reject.line_no - 1])
        for reject in part.rejected[rejected_before:]
    ]
