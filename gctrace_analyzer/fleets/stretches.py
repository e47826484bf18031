"""A long file from its pieces: each read by itself, their programs joined across the seams."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.fleets import pooled, rows
from gctrace_analyzer.ingest import processes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gctrace_analyzer.fleets.cuts import Cut
    from gctrace_analyzer.fleets.inputs import Item
    from gctrace_analyzer.fleets.rows import Row
    from gctrace_analyzer.run import Run

_KEY = ("gc_num", "start_s", "heap_end_mib")
_WHOSE = ("host", "ident", "unit", "container", "pod", "namespace", "log_pid")
_ADDED = ("episodes", "thrash_s", "oom_kills", "repaired_cycles")
_OF_THE_FIRST = (
    "service", *_WHOSE, "started_at", "go_version_min", "go_version_max", "first_gc", "file",
    "file_bytes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Program:
    """A program's part in one piece.

    `row` is its row as if there were nothing else; `figures` what `fleets.pooled` needs of
    it; `before` tells its last cycle above the seam, if there is one close by.
    """

    row: Row
    figures: pooled.Stretch
    first: pl.DataFrame
    last: pl.DataFrame
    before: tuple[Any, ...] | None


@dataclass(frozen=True, slots=True)
class Piece:
    """What a stretch of a file holds; `beside` is its row if it has no program's cycles."""

    index: int
    programs: tuple[Program, ...] = ()
    beside: Row | None = None
    rejected: int = 0
    nothing: str | None = None


def read_cut(
    cut: Cut, index: int, item: Item, how: Mapping[str, Any], known: Mapping[str, str]
) -> Piece:
    """What is in a stretch; of the lines around it only what tells whose its cycles are.

    Raises:
        GctraceError: as `read`, but for nothing of ours in it.
    """
    from gctrace_analyzer.api import read

    file = io.BytesIO(cut.data)
    file.name = item.name
    try:
        whole = read(file, **{**how, "kind": how.get("kind") or "log"})
    except NoDataError as err:
        return Piece(index, nothing=str(err).partition("\n")[0].removeprefix(f"{item.name}: "))
    own = whole.lines(cut.before + 1, cut.before + cut.own)
    above = whole.cycles.filter(pl.col("line_no") <= cut.before)
    if own.cycles.is_empty():
        beside = rows.rows_of(own, item, known)[0] if own.holds_anything else None
        return Piece(index, beside=beside, rejected=len(own.rejected))
    numbers = own.processes["process"].to_list()
    programs = [
        _program(whole, own, row, above, number)
        for number, row in zip(numbers, rows.rows_of(own, item, known), strict=True)
    ]
    return Piece(index, tuple(programs), rejected=len(own.rejected))


def _program(whole: Run, own: Run, row: Row, above: pl.DataFrame, number: int) -> Program:
    mine, before = own.cycles.filter(process=number), above.filter(process=number)
    there = pl.col("line_no").is_between(own.cycles["line_no"][0], own.cycles["line_no"][-1])
    return Program(
        row, pooled.stretch(whole.corrected.filter(process=number), there, row),
        mine.head(1), mine.tail(1), before.select(_KEY).row(-1) if len(before) else None,
    )  # fmt: skip


def joined(pieces: Sequence[Piece], item: Item, known: Mapping[str, str]) -> list[Row]:
    """The rows of a file from all its pieces."""
    chains: list[list[tuple[int, Program]]] = []
    for piece in sorted(pieces, key=lambda each: each.index):
        taken: set[int] = set()
        for program in piece.programs:
            at = _continued(program, chains, taken)
            if at is None:
                at = len(chains)
                chains.append([])
            taken.add(at)
            chains[at].append((piece.index, program))
    rejected = sum(piece.rejected for piece in pieces)
    if not chains:
        return [_without_program(pieces, item, known) | {"rejected_lines": rejected}]
    found = [_row([program for _, program in chain]) for chain in chains]
    for number, row in enumerate(found):
        row |= {"process": number, "rejected_lines": rejected}
        later = (chain[0][0] for chain in chains[number + 1 :])
        if any(begin > chains[number][-1][0] for begin in later):
            row["ended_by"] = "restart"
    return found


def _continued(
    program: Program, chains: Sequence[Sequence[tuple[int, Program]]], taken: set[int]
) -> int | None:
    """Which of the programs so far goes on here: the one seen above the seam, or that fits."""
    free = [number for number in range(len(chains)) if number not in taken]
    if program.before is not None:
        for number in free:
            if chains[number][-1][1].last.select(_KEY).row(0) == program.before:
                return number
    fitting = [
        (program.first["gc_num"][0] - last.last["gc_num"][0], number)
        for number in free
        if _fits(last := chains[number][-1][1], program)
    ]
    return min(fitting)[1] if fitting else None


def _fits(one: Program, other: Program) -> bool:
    if any(one.row[name] != other.row[name] for name in _WHOSE):
        return False
    cycles = pl.concat([one.last, other.first])
    return processes.process_of([cycles])[0].to_list() == [0, 0]


def _row(parts: Sequence[Program]) -> Row:
    """One row of the parts of one program: the last one's, and what is of all of them."""
    every = [part.row for part in parts]
    last = every[-1]
    if len(every) == 1:
        return dict(last)
    worst = max(every, key=lambda row: rows.RANK.get(row["severity"], -1))
    figures = pooled.pooled([part.figures for part in parts])
    warnings = dict.fromkeys(text for row in every for text in row["warnings"])
    note = (
        f"Read in {len(every)} stretches: findings, episodes and the heap's settings are "
        "each stretch's own, the advice is the last one's."
    )
    return (
        last
        | {name: every[0][name] for name in _OF_THE_FIRST}
        | figures
        | {name: sum(row[name] or 0 for row in every) for name in _ADDED}
        | {
            "short": figures["cycles"] < DEFAULT.short_log_cycles
            or figures["gc_cpu_share"] is None,
            "severity": worst["severity"],
            "headline": worst["headline"],
            "findings": _findings(every),
            "worst_episodes": rows.worst(
                [episode for row in every for episode in row["worst_episodes"]]
            ),
            "limiter": rows.likeliest_limiter([row["limiter"] for row in every]),
            "stretches": len(every),
            "warnings": [*warnings, note],
        }
    )


def _findings(every: Sequence[Row]) -> list[str]:
    """All ids, those of the worst stretches first; healthy only if all of them are."""
    order = sorted(every, key=lambda row: -rows.RANK.get(row["severity"], -1))
    ids = list(dict.fromkeys(each for row in order for each in row["findings"]))
    ill = [each for each in ids if each not in (rows.HEALTHY, rows.SHORT)]
    return ill or ids


def _without_program(pieces: Sequence[Piece], item: Item, known: Mapping[str, str]) -> Row:
    for piece in pieces:
        if piece.beside is not None:
            return piece.beside
    nothing = next((piece.nothing for piece in pieces if piece.nothing), "nothing in it")
    return rows.error_row(item, "no-records", nothing, known)
