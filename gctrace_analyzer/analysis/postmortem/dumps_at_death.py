"""Sentences about a death without GC cycles: the victim, and the heap in MemStats."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.postmortem.group_memory import has_no_heap
from gctrace_analyzer.analysis.postmortem.match import (
    WITH_SWAP,
    is_named_not_go,
    is_of,
    is_of_another,
    lived_after,
    of_neighbour,
    outlived,
    shared_place,
)
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gctrace_analyzer.analysis.postmortem.facts import Evidence
    from gctrace_analyzer.analysis.postmortem.memory_of_dumps import Memory

MOSTLY = 0.8
"""Share of the resident memory. A heap below it may have grown until the kill."""


def is_known_not_go(facts: Evidence) -> bool:
    """Returns whether the killed process is known not to be Go: a child or a neighbour."""
    return not (facts.death.by_runtime or facts.match) and is_named_not_go(facts.death)


def reading_of_dumps(
    facts: Evidence, dumps: list[Memory], tables: Mapping[str, pl.DataFrame]
) -> Iterator[str]:
    """Yields what the size at the kill and MemStats dumps show about a death.

    Args:
        facts: what is known about the death.
        dumps: what `dumps_of` returns.
        tables: the tables of the log.
    """
    resident = facts.memory.resident_mib
    if is_known_not_go(facts):
        place = shared_place(facts.death, tables["processes"])
        where = "" if place is None else f" It ran in the {place} of the Go program."
        yield (
            f"If this {facts.death.victim} is the well-known one, it is not written in Go: no "
            f"GOGC or GOMEMLIMIT changes its memory.{where}"
        )
    elif not dumps and (facts.death.in_use_bytes is not None or has_no_heap(facts)):
        return  # The error has the size of the heap, or there was none.
    elif not dumps:
        if (why := _why_unknown(facts, tables)) is not None:
            yield f"How much of its memory was the Go heap is unknown: {why}."
    elif len(dumps) == 1:
        is_dated = tables["processes"]["ended_at"].count() > 0
        doubts = ["from before the kill"] * bool(facts.death.is_restarted and not is_dated)
        doubts += ["of the same program"] * is_doubtful(facts, tables["processes"])
        its = f"The last MemStats dump, if it is {' and '.join(doubts)},"
        its = its if doubts else "Its last MemStats dump"
        yield _last_dump(dumps[0], resident, its)
    else:
        sizes = sorted(each.alloc_mib or 0.0 for each in dumps)
        yield (
            f"The input has MemStats of {len(sizes)} programs, with {sizes[0]:,.0f} to "
            f"{sizes[-1]:,.0f} MiB of heap allocated, and does not say which of them was killed."
        )


def _why_unknown(facts: Evidence, tables: Mapping[str, pl.DataFrame]) -> str | None:
    """Returns why cycles or dumps in the input do not show the heap; None if there are none."""
    gap_s, processes = facts.minute.gap_s, tables["processes"]
    if not processes["cycles"].sum():
        if any(lived_after(facts.death, row) for row in processes.to_dicts()):
            return "the MemStats in the input are of a process that was there after the kill"
        return None
    if facts.new_run_s is not None:
        return _of_new_run(facts)
    if facts.match is not None and gap_s is not None:
        if gap_s < 0:
            return "the GC cycles in the input are of a longer run than the one that was killed"
        return f"its GC cycles in the input end {duration_text(gap_s)} before"
    if others := _neighbours(facts, tables):
        return f"the GC cycles in the input are those of {others}"
    death = facts.death
    named = [row for row in processes.to_dicts() if is_of(death, row) is not False]
    if not named:
        return "by their names, the GC cycles in the input are of another program"
    if death.logged_at and facts.match is None and all(outlived(death, row) for row in named):
        after_s = (min(row["ended_at"] for row in named) - death.logged_at).total_seconds()
        return f"the GC cycles in the input go on for {duration_text(after_s)} after it"
    return "the input does not show which GC cycles in it, if any, are its own"


def _of_new_run(facts: Evidence) -> str:
    those = "those of the container that was started after the kill"
    if not facts.is_new_run:
        return f"the GC cycles in the input are, or may be, {those}"
    why = "go on for longer than the killed one ran" if facts.new_run_s else "begin after it"
    return f"the GC cycles in the input are probably {those}, because they {why}"


def _neighbours(facts: Evidence, tables: Mapping[str, pl.DataFrame]) -> str:
    """Returns the other containers that all processes run in."""
    states = tables["container_states"].to_dicts()
    others = [of_neighbour(facts.death, row, states) for row in tables["processes"].to_dicts()]
    if facts.match is not None or None in others:
        return ""
    return " and ".join(dict.fromkeys(row["container"] or row["name"] for row in others if row))


def dumps_of(facts: Evidence, tables: Mapping[str, pl.DataFrame]) -> list[Memory]:
    """Returns the MemStats of the killed process, or of all that it may be if it is unknown."""
    dumps = tables.get("memstats")
    if dumps is None or dumps.is_empty():
        return []
    from gctrace_analyzer.analysis.postmortem.memory_of_dumps import memories

    if facts.match is not None:
        dumps = dumps.filter(process=facts.match.process)
    later = [
        row["process"]
        for row in tables["processes"].to_dicts()
        if lived_after(facts.death, row)
    ]
    dumps = dumps.filter(~pl.col("process").is_in(later))
    most = WITH_SWAP * (facts.limit.limit_mib or math.inf)
    return [each for each in memories(dumps) if 0 <= (each.alloc_mib or -1.0) <= most]


def is_doubtful(facts: Evidence, processes: pl.DataFrame) -> bool:
    """Returns whether only the lack of others connects dumps with a death in the same text.

    Several inputs are of one service, but a text may be about several programs.
    """
    if facts.match is not None:
        if not facts.match.match_by[0].startswith("only "):
            return False
        processes = processes.filter(process=facts.match.process)
    return facts.death.source in processes["source"].cast(pl.String)


def _last_dump(memory: Memory, resident: float | None, its: str) -> str:
    alloc = memory.alloc_mib or 0.0
    text = f"{its} shows {alloc:,.0f} MiB of heap allocated"
    if memory.sys_mib is not None:
        text += f" and {memory.sys_mib:,.0f} MiB obtained from the system"
    if not resident or alloc > resident / MOSTLY:
        return f"{text}."
    later = "; it may have grown since the dump" * (alloc <= MOSTLY * resident)
    return f"{text}: the heap was {100 * alloc / resident:.0f} % of the resident memory{later}."


def log_of(facts: Evidence, states: pl.DataFrame) -> str | None:
    """Returns the command that prints the log of a container with gctrace; None without one."""
    death, is_new_run = facts.death, pl.lit(facts.new_run_s is not None)
    is_traced = pl.col("godebug").str.contains(r"\bgctrace=[1-9]")
    rows = states.filter(is_traced | is_new_run).sort(
        pl.col("line_no") != (death.line_no or -1)
    )
    for row in rows.iter_rows(named=True):
        names = {row["name"], row["container"], row["pod"], row["container_id"]} - {None}
        if not names & {*death.names} or is_of_another(death, row):
            continue
        if (row["pod"] or row["container"]) is None:
            return f"docker logs {row['name'] or row['container_id']}"
        namespace = f" -n {row['namespace']}" if row["namespace"] else ""
        container = f" -c {row['container']}" if row["container"] else ""
        return f"kubectl logs --previous{namespace} {row['pod'] or 'POD'}{container}"
    return None
