"""Reads inputs into the tables of one log."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import field, replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.errors import GctraceWarning, NoDataError, UnreadableInputError
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest import clock as clocks
from gctrace_analyzer.ingest import processes, sniff
from gctrace_analyzer.ingest import rows as rows_of
from gctrace_analyzer.ingest.chains import begun_unread
from gctrace_analyzer.ingest.evidence.message import STATED
from gctrace_analyzer.ingest.gctrace import excerpts, toolchain
from gctrace_analyzer.ingest.gctrace.chunk import Reject
from gctrace_analyzer.ingest.gctrace.companions import COMPANIONS, companions_of, counted
from gctrace_analyzer.ingest.input import Part, read_parts
from gctrace_analyzer.ingest.memstats import fields, snapshots
from gctrace_analyzer.ingest.metrics import alignment
from gctrace_analyzer.ingest.metrics import scraped_processes as metrics
from gctrace_analyzer.ingest.sources import Source, is_bundle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime, tzinfo

    from gctrace_analyzer.ingest.evidence.message import Message, Rows
    from gctrace_analyzer.ingest.profiles.profile import Profile
    from gctrace_analyzer.ingest.sniff import Kind
    from gctrace_analyzer.ingest.sources import Input, SourceFacts


@frozen
class Selection:
    """The part of the inputs that a log covers.

    Attributes:
        text: the part, for a reader: `process 1 of 3, 1m to 2m`.
        processes: all processes of the inputs.
        without_end: the processes whose last cycle and death are not in the part.
        is_range: whether it leaves out cycles of its processes.
    """

    text: str
    processes: pl.DataFrame
    without_end: frozenset[int]
    is_range: bool


@frozen
class Log:
    """The contents of the inputs: tables by name (`schema.TABLES`), and facts of each input.

    `runtime_lines` counts the runtime lines other than cycles by line format. `impossible` counts,
    by column, the values that became null because they cannot be true. `notes` are sentences about
    the clock and the inputs, and `undated` those about timestamps without a year or a time zone.
    `selection` is set if the log is only a part of the inputs; `profiles` are complete even then.
    """

    tables: dict[str, pl.DataFrame]
    sources: tuple[SourceFacts, ...]
    runtime_lines: dict[str, int]
    impossible: dict[str, int]
    notes: tuple[str, ...] = ()
    undated: tuple[str, ...] = ()
    selection: Selection | None = None
    profiles: tuple[Profile, ...] = ()

    @property
    def all_processes(self) -> pl.DataFrame:
        """The processes of the inputs, including those not selected (`schema.PROCESSES`)."""
        return self.selection.processes if self.selection else self.tables["processes"]

    @property
    def needs_dates(self) -> bool:
        """Whether tables are joined by their times, so that a time zone changes figures."""
        both = all(len(self.tables[name]) for name in ("cycles", "memstats"))
        tables = {**self.tables, "container_states": self.container_reports}
        return both or any(len(tables[name]) for name in schema.OF_MESSAGES)

    @property
    def container_reports(self) -> pl.DataFrame:
        """The container states, without those that only state settings."""
        states = self.tables["container_states"]
        return states.filter(pl.col("event").ne_missing(STATED)) if len(states) else states


@frozen
class ReadOptions:
    """Options for reading inputs."""

    strict: bool = False
    kind: str | None = None
    columns: Sequence[str] | None = None
    clock: clocks.Clock = field(default_factory=clocks.Clock)
    unpack_limit: int | None = None


class InputOptions(TypedDict, total=False):
    """How inputs are read; `read` and `fleet` take them."""

    strict: bool
    kind: Kind | None
    columns: Sequence[str] | None
    year: int | None
    tz: str | tzinfo | None
    start: str | datetime | None
    unpack_limit: str | float | None


def read_log(
    origins: Sequence[Input],
    options: ReadOptions | None = None,
    *,
    progress: Callable[[SourceFacts], None] | None = None,
) -> Log:
    """Reads inputs, which are parts of one log in this order, and returns the log.

    Args:
        origins: paths, `-` for standard input, or open files.
        options: `strict` makes a rejected line an error.
        progress: called after each chunk with the facts so far.

    Raises:
        UnreadableInputError: an input is not a readable log or, with `strict`, has a rejected line.
        NoDataError: the inputs are empty, or no line of them is recognised.
    """
    options = options or ReadOptions()
    sniff.check_kind(options.kind)
    parts, notes = _read_all(origins, options, progress)
    if options.strict and (part := next((part for part in parts if part.rejected), None)):
        line_no, reason, text = part.rejected[0]
        hint = f"Line: {text!r}\n  Without strict, such lines are counted and skipped."
        raise UnreadableInputError(part.facts.name, reason, hint, line_no=line_no)
    return joined_log(parts, options, notes)


def joined_log(parts: list[Part], options: ReadOptions, notes: Sequence[str]) -> Log:
    """Joins the parts, one per input, into one log with the notes; empties their `cycles`."""
    if sum("container_states" in part.rows for part in parts) > 1:
        from gctrace_analyzer.ingest.evidence import kubernetes

        kubernetes.join_shown([part.rows.get("container_states", []) for part in parts])
    excerpted = excerpts.log_alone(parts)
    cycles, identities, contradicting = processes.take_cycles(parts)
    dumps = _table("memstats", parts)
    clock, aligned = _aligned(options.clock, cycles, dumps)
    cycles, spans, drifts = clocks.with_wall_time(cycles, clock)
    companions = {
        table: companions_of(
            table, [(part.facts.name, part.companions.get(table, [])) for part in parts], cycles
        )
        for table in COMPANIONS
    }
    of_cycles = processes.processes(cycles, companions.values())
    rows = of_cycles
    for known in (spans, identities):
        if len(known):
            rows = rows.update(known, on="process")
    pauses = _cycle_pauses(parts)
    commands = {part.facts.name: part.command for part in parts if part.command}
    dumps, of_snapshots = snapshots.joined(dumps, pauses, commands)
    memstats, of_metrics, damaged, of_others = metrics.with_processes(dumps, rows, cycles)
    contradicting.update(damaged)
    rows = rows if len(rows) else schema.conform("processes", of_metrics)
    tables = {
        "cycles": schema.conform("cycles", cycles),
        "processes": schema.conform("processes", rows),
        **{table: schema.conform(table, frame) for table, frame in companions.items()},
        "memstats": memstats,
        "cycle_pauses": metrics.with_process(pauses, memstats),
        **{table: _table(table, parts) for table in (*schema.OF_MESSAGES, "benchmarks")},
        "rejected": _rejected(parts),
    }
    return Log(
        tables,
        tuple(part.facts for part in parts),
        dict(sum((counted(part.companions.values()) for part in parts), Counter[str]())),
        dict(sum((part.impossible for part in parts), contradicting)),
        (
            *notes,
            *excerpted,
            *aligned,
            *drifts,
            *(of_snapshots + of_others),
            *processes.several_services(rows),
            *begun_unread(cycles, tables["rejected"]),
        ),
        tuple(chain.from_iterable(part.undated for part in parts)),
        profiles=tuple(
            replace(profile, name=part.facts.name)
            for part in parts
            for profile in part.profiles
        ),
    )


def _aligned(
    clock: clocks.Clock, cycles: pl.DataFrame, dumps: pl.DataFrame
) -> tuple[clocks.Clock, list[str]]:
    """Returns the clock, with a start from metrics if the log lacks timestamps, and a note."""
    aligned = None if clock.start is not None else alignment.started_at(cycles, dumps)
    if aligned is None:
        return clock, []
    start, within_s = aligned
    note = (
        "The gctrace lines have no timestamps. They are placed at the times of the metrics, which "
        f"count the same cycles; this is exact to about {max(within_s, 0.01):.2g} s."
    )
    return replace(clock, start=start), [note]


def _read_all(
    origins: Sequence[Input],
    options: ReadOptions,
    progress: Callable[[SourceFacts], None] | None,
) -> tuple[list[Part], list[str]]:
    parts: list[Part] = []
    origins, notes = _each_once(_without_bundles(origins, bundles := list[str]()))
    notes += bundles
    empty: list[NoDataError] = []
    known: set[str] = set()
    for origin in origins:
        try:
            with Source(origin, unpack_limit=options.unpack_limit) as source:
                own = read_parts(
                    source,
                    kind=options.kind,
                    columns=options.columns,
                    whole_bytes=options.unpack_limit,
                    progress=progress,
                )
        except NoDataError as err:
            empty.append(err)
            continue
        facts = own[0].facts
        # Rows are found by the name of their input and their line in it.
        facts.name = _unique(facts.name, known)
        known.add(facts.name)
        for part in own:
            notes += complete_part(part, options.clock)
        parts.append(_as_one(own))
    heaps = (frame["heap_end_mib"].max() for part in parts for frame in part.cycles)
    heap_mib = max((float(heap) for heap in heaps if isinstance(heap, int)), default=None)
    for part in parts:
        notes += with_sizes(part, heap_mib)
        if not any(part.facts.found.values()):
            empty.append(sniff.unrecognised(part.facts, part.beginning))
    if empty and len(empty) == len(origins):
        raise empty[0]
    for error in empty:
        # A part of a rotated log may have no cycles.
        warnings.warn(str(error).partition("\n")[0], GctraceWarning, stacklevel=2)
    return parts, notes


_OF_SIZES = ("RSS", "Rss:", " RES ", "MEM USAGE", "MEMORY(bytes)")


def with_sizes(part: Part, heap_mib: float | None = None) -> list[str]:
    """Adds the memory of a process in an input to its dump; returns notes on it.

    `heap_mib` is the largest heap of the cycles in all inputs; None without any.
    """
    text, has_cycles = part.beginning, any(map(len, part.cycles))
    may_show = len(text) < sniff.SNIFF_BYTES and any(word in text for word in _OF_SIZES)
    if not (may_show if has_cycles else text):
        return []
    from gctrace_analyzer.ingest.memstats import dump_times, process_sizes

    dump_times.add(part.rows.get("memstats", ()), text, part.facts.name)
    return (
        process_sizes.next_to_cycles(part)
        if has_cycles
        else process_sizes.added_to(part, heap_mib)
    )


def _as_one(parts: list[Part]) -> Part:
    """Returns the complete parts of an input as one."""
    first, *others = parts
    for part in others:
        first.include(part)
    first.facts.wrappers, first.facts.found = dict(first.wrappers), first.counts()
    return first


def _each_once(origins: Iterable[Input]) -> tuple[list[Input], list[str]]:
    """Returns the inputs without repeated files, and a note on each repetition."""
    seen: set[str] = set()
    once: list[Input] = []
    notes: list[str] = []
    for origin in origins:
        path = _real_path(origin)
        if path in seen:
            notes.append(f"{origin!s} is given more than once, and was read once.")
            continue
        once.append(origin)
        if path:
            seen.add(path)
    return once, list(dict.fromkeys(notes))


def _without_bundles(origins: Sequence[Input], notes: list[str]) -> Iterator[Input]:
    """Yields the inputs, with folders and archives replaced by their files; adds notes."""
    for origin in origins:
        if is_bundle(origin):
            from gctrace_analyzer.ingest.profiles.bundles import contents_of

            files, note = contents_of(Path(str(origin)))
            notes += [note] if note else []
            yield from files or [origin]
        else:
            yield origin


def _real_path(origin: Input) -> str:
    """Returns the path of a file without links; empty if it is not a file."""
    if not isinstance(origin, str | Path):
        return ""
    try:
        return str(Path(origin).resolve(strict=True))
    except (OSError, ValueError):
        return ""


def _unique(name: str, known: set[str]) -> str:
    """Returns the name of an input, with a number if an earlier input has the same name."""
    names = chain([name], (f"{name} ({number})" for number in count(2)))
    return next(each for each in names if each not in known)


def complete_part(part: Part, clock: clocks.Clock) -> list[str]:
    """Adds times, and the rows found in messages, to a part; returns notes."""
    if part.messages and part.memstats is None:
        from gctrace_analyzer.ingest.memstats import printed_tables

        lines = pl.concat(part.messages, how="diagonal").sort("line_no", maintain_order=True)
        part.memstats, damaged = printed_tables.read(lines)
        part.rejected += [Reject(*row) for row in damaged]
    part.undated = _add_times(part, clock)
    notes = [*part.undated, *_add_rows_of_messages(part)]
    part.facts.wrappers, part.facts.found = dict(part.wrappers), part.counts()
    part.facts.profiles_at = sniff.profiles_at(part.beginning)
    if any(map(len, part.cycles)):
        sniff.add_go_version(part.rows, part.beginning, part.cycles)
        notes += toolchain.notes_on(part.beginning)
    return notes


def _add_times(part: Part, clock: clocks.Clock) -> list[str]:
    """Adds `logged_at` to every frame of the part; returns a note on missing facts."""
    groups = [part.cycles, *part.companions.values(), part.messages]
    groups.append([part.memstats] if part.memstats is not None else [])
    flat = [frame for group in groups for frame in group]
    part.newest_first = _newest_first(part.messages)
    dated, undated = clocks.with_logged_at(flat, clock)
    frames = iter(dated)
    part.cycles, *others, part.messages, table = [
        [next(frames) for _ in group] for group in groups
    ]
    part.companions = dict(zip(part.companions, others, strict=True))
    part.memstats = table[0] if table else None
    if not undated:
        return []
    part.messages = [
        frame.hstack([clocks.local_s(before), clocks.printed(before)])
        if "local_time" in before.columns
        else frame
        for frame, before in zip(part.messages, groups[-2], strict=True)
    ]
    if part.memstats is not None and "local_time" in groups[-1][0].columns:
        part.memstats = clocks.with_local_times(part.memstats, groups[-1][0])
    yearless = any("yearless" in frame.columns and frame["yearless"].any() for frame in flat)
    options = {"year": yearless and clock.year is None, "tz": clock.tz is None}
    if not (missing := [name for name, needed in options.items() if needed]):
        return [
            f"{part.facts.name}: Some times were not used: in time zone {clock.tz}, clocks show "
            "them twice or never, and no other line shows which."
        ]
    words = {"year": "year", "tz": "time zone"}
    lacks = " or ".join(words[name] for name in missing)
    settings = " and ".join(f"`{name}`" for name in missing)
    return [f"{part.facts.name}: Times have no {lacks}; set {settings} to date them."]


def _add_rows_of_messages(part: Part) -> list[str]:
    """Adds rows of other tables from the part's messages; returns notes about them."""
    for rows in part.rows.values():
        for row in rows:
            if (at := row.pop("at_us", None)) is not None:
                row["logged_at"] = pl.Series([at]).cast(pl.Datetime("us", "UTC"))[0]
    rows_by_table = _rows_of_messages(part) if part.messages else {}
    texts = [row["note"] for row in rows_by_table.pop("notes", [])]
    dumps = chain(part.rows.get("memstats", ()), rows_by_table.get("memstats", ()))
    columns = chain(*dumps) if part.memstats is None else part.memstats.columns
    if "resolution_bytes" in columns and not any(map(len, part.cycles)):
        texts += fields.of_units(part.beginning)
    part.renumber(rows_by_table)
    part.rejected += [Reject(**row) for row in rows_by_table.pop("rejected", [])]
    part.rejected.sort()
    for table, rows in rows_by_table.items():
        part.rows.setdefault(table, []).extend(rows)
    return [f"{part.facts.name}: {text}" for text in texts]


def _rows_of_messages(part: Part) -> Rows:
    from gctrace_analyzer.ingest.evidence import dispatch

    near = (each.rows.get("container_states", ()) for each in (part, *part.others))
    return dispatch.read(
        _messages(part),
        [*chain.from_iterable(near)],
        processes.followed(part.cycles, newest_first=part.newest_first),
        part.cycles,
        part.beginning,
    )


def _messages(part: Part) -> list[Message]:
    from gctrace_analyzer.ingest.evidence.message import Message

    lines = pl.concat(part.messages, how="diagonal").sort("line_no", maintain_order=True)
    absent = [name for name in Message._fields if name not in lines.columns]
    lines = lines.with_columns(pl.lit(None).alias(name) for name in absent)
    if part.newest_first or _kill_before_context(lines["text"]):
        lines = lines.reverse()
    return [Message._make(row) for row in lines.select(Message._fields).iter_rows()]


def _newest_first(messages: list[pl.DataFrame]) -> bool:
    """Returns whether the timestamps of messages without year or zone run backwards."""
    for clock in ("local_time", "monotonic_s"):
        at = [frame.sort("line_no")[clock] for frame in messages if clock in frame.columns]
        if at and clocks.falls(pl.concat(at)):
            return True
    return False


def _kill_before_context(texts: pl.Series) -> bool:
    """True if the log is in reverse order, detected from an OOM kill before its own context."""
    pid = texts.str.extract(r"oom-kill:constraint=.*,pid=(\d+),uid=")
    at = pid.is_not_null().arg_true()
    if at.is_empty():
        return False
    killed = texts.str.contains(f"[Kk]illed process {pid[int(at[0])]} ").arg_true()
    return bool(len(killed) and killed[0] < at[0])


def _table(table: str, parts: list[Part]) -> pl.DataFrame:
    """Returns the rows of a table: part after part, in line order."""
    frames = []
    types = schema.polars_schema(table)
    for part in parts:
        name = pl.lit(part.facts.name).cast(pl.Categorical).alias("source")
        if table == "memstats" and part.memstats is not None:
            frames.append(part.memstats.drop("resolution_s", strict=False).with_columns(name))
        if rows := part.rows.get(table):
            frames.append(
                rows_of.frame(rows, {**types, "target": pl.String()})
                .sort("line_no", maintain_order=True)
                .with_columns(name)
            )
    if not frames:
        return schema.empty(table)
    whole = pl.concat(frames, how="diagonal_relaxed")
    more = [name for name in whole.columns if name not in types]
    conformed = schema.conform(table, whole)
    if table == "memstats":
        since = (
            pl.col("logged_at") - pl.col("logged_at").min().over("source")
        ).dt.total_microseconds()
        conformed = conformed.with_columns(elapsed_s=pl.coalesce("elapsed_s", since / 1e6))
        return conformed.hstack(whole.select(more))
    return conformed


def _cycle_pauses(parts: list[Part]) -> pl.DataFrame:
    frames = [
        part.cycle_pauses.with_columns(source=pl.lit(part.facts.name).cast(pl.Categorical))
        for part in parts
        if part.cycle_pauses is not None
    ]
    return pl.concat(frames) if frames else pl.DataFrame()


def _rejected(parts: list[Part]) -> pl.DataFrame:
    rows = [(part.facts.name, *reject) for part in parts for reject in part.rejected]
    return pl.DataFrame(rows, schema=schema.polars_schema("rejected"), orient="row")
