"""Whose cycles are whose: first by what carriers say, then by numbers and times.

Lines of different hosts, units, containers or process ids are different programs', however
well their numbers would fit; within one of them `ingest.processes` tells program starts apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.ingest import processes
from gctrace_analyzer.ingest.clock import MOSTLY, falls
from gctrace_analyzer.ingest.wrappers.formats import IDENTITY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.ingest.input import Part


def one_frame(parts: Sequence[Part]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """All cycles in one frame with their `process`; and whose each process is.

    Not made contiguous, which would need the cycles twice for a while.
    """
    frames = []
    for part in parts:
        name = pl.lit(part.facts.name).cast(pl.Categorical).alias("source")
        mine = [frame.with_columns(name) for frame in part.cycles if len(frame)]
        frames += _forward(mine)
        part.cycles = []
    if not frames:
        empty = pl.DataFrame(schema=schema.polars_schema("cycles"))
        return empty.with_columns(resolution_s=pl.lit(None, pl.Float64)), _nobody()
    processes, whose = _told_apart(frames)
    drop = [name for name in IDENTITY if any(name in frame.columns for frame in frames)]
    rows = [
        (frame.drop(drop, strict=False) if drop else frame).with_columns(of.alias("process"))
        for frame, of in zip(frames, processes, strict=True)
    ]
    alike = all(frame.columns == rows[0].columns for frame in rows)
    whole = pl.concat(rows, how="vertical" if alike else "diagonal")
    return whole, whose


def _forward(frames: list[pl.DataFrame]) -> list[pl.DataFrame]:
    """The cycles of an input in the order in which they happened."""
    if not frames:
        return frames
    at = pl.concat([frame["logged_at"] for frame in frames]).drop_nulls()
    if falls(at) or _numbers_fall(frames):
        return [frame.reverse() for frame in reversed(frames)]
    return frames


def _numbers_fall(frames: list[pl.DataFrame]) -> bool:
    """Whether numbers count down, and each cycle starts before the one above it."""
    if frames[0]["gc_num"].head(3).is_sorted():
        return False
    facts = pl.concat([frame.select("gc_num", "start_s") for frame in frames])
    steps = facts.select(
        (pl.col("gc_num").diff() == -1) & (pl.col("start_s").diff() < 0)
    ).to_series()
    return len(facts) > 2 and bool(steps.sum() >= MOSTLY * (len(facts) - 1))


def _told_apart(frames: list[pl.DataFrame]) -> tuple[list[pl.Series], pl.DataFrame]:
    """The process of each cycle of each frame, and whose each process is."""
    if not any(name in frame.columns for frame in frames for name in IDENTITY):
        return processes.process_of(frames), _nobody()
    if _is_one(frames):
        numbers = processes.process_of(frames)
    else:
        numbers = _by_key(frames, [_key(frame) for frame in frames])
    return numbers, _whose(frames, numbers)


def _is_one(frames: list[pl.DataFrame]) -> bool:
    """Whether the carriers name one and the same origin throughout."""
    names = [name for name in IDENTITY if name != "stream"]
    seen = set()
    for frame in frames:
        each = [frame[name].unique() if name in frame.columns else [None] for name in names]
        if any(len(values) > 1 for values in each):
            return False
        seen.add(tuple(values[0] for values in each))
    return len(seen) == 1


def _key(frame: pl.DataFrame) -> pl.Series:
    """One text for what tells programs apart.

    Not the stream: a program may write to two. A process id tells more than any name.
    """
    names = [name for name in IDENTITY if name != "stream" and name in frame.columns]
    if not names:
        return pl.repeat("", len(frame), dtype=pl.String, eager=True).alias("key")
    parts = [pl.col(name).cast(pl.String).fill_null("") for name in names]
    return frame.select(pl.concat_str(parts, separator="\x1f").alias("key")).to_series()


def _by_key(frames: list[pl.DataFrame], keys: list[pl.Series]) -> list[pl.Series]:
    """Program starts within each of several origins, numbered as they come in the input."""
    whole = pl.concat(frames, how="diagonal").with_columns(pl.concat(keys).alias("key"))
    whole = whole.with_row_index("row")
    rows, numbers, so_far = [], [], 0
    for mine in whole.partition_by("key", maintain_order=True):
        process = processes.process_of([mine.drop("row", "key")])[0]
        rows.append(mine["row"])
        numbers.append(process + so_far)
        so_far += int(process.max() or 0) + 1  # type: ignore[arg-type]  # an integer column
    table = pl.DataFrame({"row": pl.concat(rows), "process": pl.concat(numbers)}).sort("row")
    first = table.group_by("process").agg(pl.col("row").min()).sort("row")["process"]
    order = pl.DataFrame({"process": first, "number": pl.int_range(len(first), eager=True)})
    number = table.join(order, on="process", how="left", maintain_order="left")["number"]
    found, at = [], 0
    for frame in frames:
        found.append(number[at : at + len(frame)])
        at += len(frame)
    return found


def _whose(frames: list[pl.DataFrame], processes: list[pl.Series]) -> pl.DataFrame:
    """What the carriers say of each process, in the columns of `processes`."""
    names = [column.name for column in schema.WHOSE]
    firsts = []
    for frame, process in zip(frames, processes, strict=True):
        given = [name for name in names if name in frame.columns]
        if given:
            firsts.append(
                frame.select(given)
                .with_columns(process.alias("process"))
                .group_by("process", maintain_order=True)
                .agg(pl.all().drop_nulls().first())
            )
    if not firsts:
        return _nobody()
    types = schema.polars_schema("processes")
    whole = (
        pl.concat(firsts, how="diagonal")
        .group_by("process", maintain_order=True)
        .agg(pl.all().drop_nulls().first())
    )
    return whole.cast({name: types[name] for name in whole.columns})


def strangers(processes: pl.DataFrame) -> list[str]:
    """Says so if the inputs hold several services; ids of containers are no names."""
    names = [name for name in ("unit", "container", "ident") if name in processes.columns]
    if not names:
        return []
    name = pl.coalesce(names).cast(pl.String)
    said = processes.select(name.alias("name")).to_series().drop_nulls()
    services = said.filter(~said.str.contains(r"^[0-9a-f]{12,64}$")).unique(maintain_order=True)
    if len(services) < 2:
        return []
    shown = ", ".join(services.head(4)) + (", …" if len(services) > 4 else "")
    return [
        f"The inputs hold {len(services)} services ({shown}): the figures are of all of them "
        "together; --process N shows one."
    ]


def _nobody() -> pl.DataFrame:
    return pl.DataFrame(schema={"process": pl.Int64})
