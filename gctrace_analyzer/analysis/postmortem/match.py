"""Which program a kill has hit: joined by what both sides say of themselves.

The order is that of certainty: process id, unit, container, pod, name, and last the only
program that ended within a minute before. Docker's journald driver logs dockerd's own process
id, and ids inside a container are not the kernel's, so these never match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

Confidence = Literal["high", "medium", "low"]
Row = dict[str, Any]

NEAR = timedelta(seconds=60)
"""A program that logs nothing for so long before a kill need not be the one killed."""

_SHORT_ID = re.compile(r"[0-9a-f]{12,64}")
_COMM_BYTES = 15


@dataclass(frozen=True, slots=True)
class Link:
    """A kill's program: `match_by` says what agrees, the most certain first."""

    process: int
    match_by: tuple[str, ...]
    confidence: Confidence


def link(kill: Row, processes: pl.DataFrame) -> Link | None:
    """The program that `kill`, a row of `oom_kills`, has hit; None if none can be named."""
    found: list[tuple[tuple[str, ...], int]] = []
    rows = processes.to_dicts()
    for row in rows:
        if kill.get("host") and row["host"] and kill["host"] != row["host"]:
            continue
        if _before(kill, row):
            continue
        agrees = tuple(_agreeing(kill, row))
        if agrees:
            found.append((agrees, row["process"]))
    if found:
        order = ("pid", "unit", "container", "pod", "comm")
        # Of a crash loop's starts the last one is the one that was killed.
        best = min(found, key=lambda each: (order.index(each[0][0]), -len(each[0]), -each[1]))
        sure = best[0][0] != "comm" or len(best[0]) > 1
        return Link(best[1], best[0], "high" if sure else "medium")
    return _only_one_near(kill, rows)


def tasks_at(kill: Row, tasks: pl.DataFrame) -> pl.DataFrame:
    """The rows of `oom_tasks` that the kernel listed at `kill`."""
    mine = pl.col("kill_line_no") == (kill.get("line_no") or -1)
    return tasks.filter(mine & (pl.col("source").cast(pl.String) == str(kill.get("source"))))


def _agreeing(kill: Row, row: Row) -> list[str]:
    agrees = []
    by_docker = bool(_SHORT_ID.fullmatch(row["ident"] or ""))
    if kill.get("pid") and kill["pid"] == row["log_pid"] and not by_docker:
        agrees.append("pid")
    if unit := kill.get("unit"):
        stem = unit.rpartition(".")[0]
        if unit == row["unit"] or (not row["unit"] and stem and stem == row["ident"]):
            agrees.append("unit")
    if identifier := kill.get("container_id"):
        known = row["container_id"] or (row["ident"] if by_docker else None)
        if known and (identifier.startswith(known) or known.startswith(identifier)):
            agrees.append("container")
    if kill.get("pod") and kill["pod"] == row["pod"]:
        same = not kill.get("container") or kill["container"] == row["container"]
        agrees += ["pod"] if same else []
    comm = kill.get("comm")
    names = [name for name in (row["ident"], row["container"]) if name]
    if comm and any(
        name.encode()[:_COMM_BYTES].decode(errors="ignore") == comm for name in names
    ):
        agrees.append("comm")
    return agrees


def _before(kill: Row, row: Row) -> bool:
    """Whether the program started only after the kill."""
    at, started = kill.get("logged_at"), row["started_at"]
    return bool(at and started and started > at + timedelta(seconds=1))


def _only_one_near(kill: Row, rows: Sequence[Row]) -> Link | None:
    at = kill.get("logged_at")
    if len(rows) == 1 and (at is None or rows[0]["ended_at"] is None):
        return Link(rows[0]["process"], ("only program",), "low")
    near = [
        row
        for row in rows
        if at and row["ended_at"] and timedelta(seconds=-1) <= at - row["ended_at"] <= NEAR
    ]
    return Link(near[0]["process"], ("time",), "low") if len(near) == 1 else None
