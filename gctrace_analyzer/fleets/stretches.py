"""Analyses a long log in sections ("stretches"), one at a time, and joins their results.

A stretch has the lines that begin in its range of bytes. So stretches can be read in any order and
on any machine. Some lines before and after it are read too: to join a record that is torn where two
stretches meet (at the seam), and to find out which process continues there.
"""

from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis import spans as spans_of
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.fleets import figures, fleet_rows
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest import chains
from gctrace_analyzer.ingest.compression import compression
from gctrace_analyzer.ingest.sniff import SNIFF_BYTES, sniff
from gctrace_analyzer.ingest.sources import LONG_LINE_BYTES, Source, encoding_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gctrace_analyzer.fleets.inputs import Item
    from gctrace_analyzer.run import Run
    from gctrace_analyzer.schema import Row

STRETCH_BYTES = 32 << 20
"""Bytes of a log that are analysed at a time: at most 0.6 GiB of memory, in the worst format."""

CONTEXT_BYTES = 1 << 16
"""Bytes that are read around a stretch: hundreds of lines. Torn records end within 32 lines."""

CYCLE_KEY = ("gc_num", "start_s", "heap_end_mib")
"""The columns that identify a cycle in `ProcessPart.before`."""

_ORIGIN = tuple(name for name in schema.IDENTITY if name not in ("container_id", "stream"))
"""The columns that identify a process in a fleet. A process may write to two streams, so the
stream is not one of them."""

_OF_VERDICT = ("severity", "headline", "action", "grows", "needed_limit_mib")
_SUMS = ("episodes", "thrash_s", "oom_kills", "repaired_cycles")
_FROM_FIRST = (
    "service", *_ORIGIN, "started_at", "go_version_min", "go_version_max", "first_gc", "file",
    "file_bytes", "modified", "parts",
)  # fmt: skip


@frozen
class Stretch:
    """Some lines of a log.

    Attributes:
        data: the lines, with neighbouring lines.
        before: the number of lines before the stretch's own.
        own: the number of its own lines.
    """

    data: bytes
    before: int
    own: int


def stretch_of_range(file: IO[bytes], begin: int, end: int) -> Stretch:
    """Returns the lines that begin in a range of bytes of an uncompressed file."""
    start = max(begin - CONTEXT_BYTES, 0)
    file.seek(start)
    data = file.read(end + LONG_LINE_BYTES + CONTEXT_BYTES - start)
    return _stretch(data, start, begin, end)


def stretches_of(chunks: Iterable[bytes], size: int) -> Iterator[Stretch]:
    """Yields the stretches of a log: its lines in ranges of `size` bytes of its text."""
    data, start, begin = b"", 0, 0
    for chunk in chunks:
        data += chunk
        while start + len(data) >= begin + size + LONG_LINE_BYTES + CONTEXT_BYTES:
            yield _stretch(data, start, begin, begin + size)
            begin += size
            kept = max(begin - CONTEXT_BYTES, 0)
            data, start = data[kept - start :], kept
    total = start + len(data)
    while begin < total:
        # The rest may be a little more than one range.
        yield _stretch(data, start, begin, begin + size)
        begin += size


def is_text_log(file: IO[bytes]) -> bool:
    """Returns whether ranges of bytes can be read: an uncompressed UTF-8 log, line by line."""
    file.seek(0)
    head = file.read(SNIFF_BYTES)
    file.seek(0)
    if compression(head) is not None or encoding_of(head) != "utf-8":
        return False
    return sniff(head, head.decode("utf-8", "replace")) == "log"


def is_log(source: Source) -> bool:
    """Returns whether the input, compressed or not, has one record per line."""
    return sniff(*source.head(SNIFF_BYTES)) == "log"


def _stretch(data: bytes, start: int, begin: int, end: int) -> Stretch:
    """Returns the stretch of lines that begin at an offset from `begin` up to `end`.

    `data` is the text around it, which starts at offset `start`.
    """
    first = _line_at(data, begin - start) if begin else 0
    last = _line_at(data, end - start)
    low = _line_at(data, first - CONTEXT_BYTES) if first > CONTEXT_BYTES else 0
    if start and low == 0:
        low = min(_line_at(data, 1), first)
    high = data.rfind(b"\n", last, last + CONTEXT_BYTES) + 1 or last
    own = data.count(b"\n", first, last)
    if last > first and data[last - 1 : last] != b"\n":
        own += 1
    return Stretch(data[low:high], data.count(b"\n", low, first), own)


def _line_at(data: bytes, at: int) -> int:
    """Returns the offset of the first line that begins at or after `at`, else the end."""
    at_ = data.find(b"\n", at - 1) if at > 0 else -1
    return at_ + 1 if at_ >= 0 else (len(data) if at > 0 else 0)


@frozen
class ProcessPart:
    """The part of one process in one stretch.

    Attributes:
        row: its row, as if the stretch were the whole log.
        figures: the data for the figures of the whole process.
        first: its first cycle.
        last: its last cycle.
        before: the key of its last cycle before the stretch, if it was read.
    """

    row: Row
    figures: figures.StretchFigures
    first: pl.DataFrame
    last: pl.DataFrame
    before: tuple[Any, ...] | None


@frozen
class StretchResult:
    """The results of one stretch.

    Attributes:
        index: its position in the file.
        parts: the parts of the processes in it.
        without_cycles: its row, if it has no GC cycle.
        rejected: the number of rejected lines.
        nothing: why nothing was recognised in it; None if something was.
    """

    index: int
    parts: tuple[ProcessPart, ...] = ()
    without_cycles: Row | None = None
    rejected: int = 0
    nothing: str | None = None


def analyse(
    stretch: Stretch,
    index: int,
    item: Item,
    options: Mapping[str, Any],
    identity: Mapping[str, str],
) -> StretchResult:
    """Analyses a stretch; the lines around it only help to assign its cycles to processes.

    Raises:
        GctraceError: as `read`, unless nothing is recognised.
    """
    from gctrace_analyzer.api import read

    file = io.BytesIO(stretch.data)
    file.name = item.name
    try:
        whole = read(file, **{**options, "kind": options.get("kind") or "log"})
    except NoDataError as err:
        return StretchResult(index, nothing=err.problem)
    own = whole.line_range(stretch.before + 1, stretch.before + stretch.own)
    above = whole.cycles.filter(pl.col("line_no") <= stretch.before)
    if own.cycles.is_empty():
        row = fleet_rows.rows_of(own, item, identity)[0] if not own.is_empty else None
        return StretchResult(index, without_cycles=row, rejected=len(own.rejected))
    numbers = own.processes["process"].to_list()
    parts = [
        _part(whole, own, row, above, number)
        for number, row in zip(numbers, fleet_rows.rows_of(own, item, identity), strict=True)
    ]
    return StretchResult(index, tuple(parts), rejected=len(own.rejected))


def _part(whole: Run, own: Run, row: Row, above: pl.DataFrame, number: int) -> ProcessPart:
    cycles, before = own.cycles.filter(process=number), above.filter(process=number)
    is_own = pl.col("line_no").is_between(own.cycles["line_no"][0], own.cycles["line_no"][-1])
    spans = spans_of.whole(whole.analysis.spans).filter(is_own, process=number)
    return ProcessPart(
        row,
        figures.of_stretch(spans, row["log_check_points"]),
        cycles.head(1),
        cycles.tail(1),
        before.select(CYCLE_KEY).row(-1) if len(before) else None,
    )


def rows_of_file(
    results: Sequence[StretchResult], item: Item, identity: Mapping[str, str]
) -> list[Row]:
    """Returns the rows of a file from the results of all its stretches."""
    chains: list[list[tuple[int, ProcessPart]]] = []
    for result in sorted(results, key=lambda result: result.index):
        taken: set[int] = set()
        for part in result.parts:
            number = _continued(part, chains, taken)
            if number is None:
                number = len(chains)
                chains.append([])
            taken.add(number)
            chains[number].append((result.index, part))
    rejected = sum(result.rejected for result in results)
    if not chains:
        return [_row_without_cycles(results, item, identity) | {"rejected_lines": rejected}]
    rows = [_row([part for _, part in chain]) for chain in chains]
    for number, row in enumerate(rows):
        row |= {"process": number, "rejected_lines": rejected}
        later = (chain[0][0] for chain in chains[number + 1 :])
        if any(begin > chains[number][-1][0] for begin in later):
            row["ended_by"] = "restart"
    return rows


def _continued(
    part: ProcessPart, chains: Sequence[Sequence[tuple[int, ProcessPart]]], taken: set[int]
) -> int | None:
    """Returns the number of the process that continues in `part`; None if it is a new process.

    It is the process whose last cycle was read just before this stretch. If no such cycle was
    read, it is the process that fits with the fewest missing cycles.
    """
    free = [number for number in range(len(chains)) if number not in taken]
    if part.before is not None:
        for number in free:
            if chains[number][-1][1].last.select(CYCLE_KEY).row(0) == part.before:
                return number
    fitting = [
        (part.first["gc_num"][0] - earlier.last["gc_num"][0], number)
        for number in free
        if _fits(earlier := chains[number][-1][1], part)
    ]
    return min(fitting)[1] if fitting else None


def _fits(earlier: ProcessPart, later: ProcessPart) -> bool:
    """Returns whether two parts fit one process, by their origin, cycle numbers and times."""
    if any(earlier.row[name] != later.row[name] for name in _ORIGIN):
        return False
    cycles = pl.concat([earlier.last, later.first])
    return chains.process_of([cycles])[0].to_list() == [0, 0]


def _row(parts: Sequence[ProcessPart]) -> Row:
    """Returns the row of a process from the rows of its parts."""
    every = [part.row for part in parts]
    last = every[-1]
    if len(every) == 1:
        return dict(last)
    worst = max(every, key=lambda row: fleet_rows.RANK.get(row["severity"], -1))
    whole = figures.combined([part.figures for part in parts])
    # A figure is unknown if the clock is too coarse for it in every section.
    hidden = [*filter(fleet_rows.is_by_clock, whole)]
    whole |= {name: None for name in hidden if all(row[name] is None for row in every)}
    warnings = dict.fromkeys(text for row in every for text in row["warnings"])
    note = (
        f"Read in {len(every)} sections: findings, episodes and settings were determined for "
        "each section separately; the recommendation is based on the last one."
    )
    return (
        last
        | {name: every[0][name] for name in _FROM_FIRST}
        | whole
        | {name: sum(row[name] or 0 for row in every) for name in _SUMS}
        | {
            "short": whole["cycles"] < DEFAULT.short_log_cycles
            or whole["gc_cpu_share"] is None,
            **{name: worst[name] for name in _OF_VERDICT},
            "findings": _findings(every),
            "worst_episodes": fleet_rows.worst(
                [episode for row in every for episode in row["worst_episodes"]]
            ),
            "limiter": fleet_rows.strongest_limiter([row["limiter"] for row in every]),
            "stretches": len(every),
            "warnings": [*warnings, note],
        }
    )


def _findings(every: Sequence[Row]) -> list[str]:
    """Returns the ids of all findings, worst stretch first; healthy only if all stretches are."""
    order = sorted(every, key=lambda row: -fleet_rows.RANK.get(row["severity"], -1))
    ids = list(dict.fromkeys(id_ for row in order for id_ in row["findings"]))
    problems = [id_ for id_ in ids if id_ not in (fleet_rows.HEALTHY, fleet_rows.SHORT)]
    return problems or ids


def _row_without_cycles(
    results: Sequence[StretchResult], item: Item, identity: Mapping[str, str]
) -> Row:
    for result in results:
        if result.without_cycles is not None:
            return result.without_cycles
    reasons = (result.nothing for result in results if result.nothing)
    return fleet_rows.error_row(item, "no-records", next(reasons, "nothing in it"), identity)
