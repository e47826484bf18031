"""Recognises single dumps of MemStats or expvar in several files as dumps of one process.

A dump has the end times of the last 256 cycles, to the nanosecond. So two dumps of one process have
common end times unless more cycles lie between them, and dumps of two processes never have any.
Dumps that are further apart belong to one process if all of this is true: the command line, which
only expvar has, is the same, the names differ only by numbers in the order of the cycles, the
counters rise, and between two dumps there are about as many cycles per second, and bytes per cycle,
as in both. Two files alone may agree by chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import polars as pl

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.schema import IDENTITY

FEWEST = 3
"""Fewer files with rising counters may come from several processes."""

TIMES = 3.0
"""Largest ratio of cycles per second, and of bytes per cycle, between two dumps to those in them.
More may be the load of another process, or of a restarted one."""

_START_UP = 20
"""The first cycles of a program allocate less and are closer together."""

_COUNTERS = (
    "num_gc", "num_forced_gc", "total_alloc_bytes", "mallocs", "frees", "pause_total_ns",
)  # fmt: skip
_NUMBER = re.compile(r"\d+")


@frozen
class File:
    """A file whose dumps come from a single process without a name.

    Attributes:
        source: its name.
        first: the counters of its first dump.
        last: those of its last dump.
        oldest_gc: the oldest cycle with a known end.
    """

    source: str
    first: Mapping[str, int | None]
    last: Mapping[str, int | None]
    oldest_gc: int
    newest_gc: int
    oldest_s: float
    newest_s: float

    @property
    def order(self) -> tuple[int, int]:
        """Its place among the files of one process."""
        return self.newest_gc, self.last.get("total_alloc_bytes") or 0

    @property
    def rate(self) -> float | None:
        """Cycles per second; None with too few cycles."""
        length_s, cycles = self.newest_s - self.oldest_s, self.newest_gc - self.oldest_gc
        return cycles / length_s if cycles >= _START_UP and length_s > 0 else None


def joined(
    dumps: pl.DataFrame, pauses: pl.DataFrame, commands: Mapping[str, str]
) -> tuple[pl.DataFrame, list[str]]:
    """Returns the dumps with a common `target` for the files of one process, and notes.

    The dumps of such files come in the order of their cycles.

    Args:
        dumps: `schema.MEMSTATS` of every source.
        pauses: `schema.CYCLE_PAUSES` of every source.
        commands: the command line of the program, by source, where the source has it.
    """
    if pauses.is_empty() or dumps["source"].n_unique() < 2:
        return dumps, []
    files = _files(dumps, pauses)
    if len(files) < 2:
        return dumps, []
    proven = _with_common_ends(files, pauses)
    groups, notes = _by_name(proven, commands)
    targets = {file.source: group[0].source for group in groups for file in group}
    if not targets:
        return dumps, notes
    order = {name: place for place, name in enumerate(targets)}
    source = pl.col("source").cast(pl.String)
    given = "target" if "target" in dumps.columns else pl.lit(None, pl.String)
    own = pl.coalesce(source.replace_strict(targets, default=None), given)
    place = source.replace_strict(order, default=None, return_dtype=pl.Int64)
    return dumps.with_columns(target=own).sort(
        place, nulls_last=True, maintain_order=True
    ), notes


def _files(dumps: pl.DataFrame, pauses: pl.DataFrame) -> list[File]:
    """Returns the files whose dumps come from a single process without a name, with their ends."""
    source = pl.col("source").cast(pl.String)
    unnamed = [name for name in IDENTITY if name in dumps.columns]
    counters = [name for name in _COUNTERS if name in dumps.columns]
    rows = dumps.with_columns(source).group_by("source", maintain_order=True).agg(
        named=pl.any_horizontal(pl.col(unnamed).is_not_null()).any(),
        rises=(pl.col("num_gc").diff() >= 0).all(),
        first=pl.struct(counters).first(),
        last=pl.struct(counters).last(),
    )  # fmt: skip
    rings = pauses.with_columns(source).group_by("source").agg(
        oldest_gc=pl.col("gc_num").min(),
        newest_gc=pl.col("gc_num").max(),
        oldest_s=pl.col("ended_at").min().dt.epoch("us") / 1e6,
        newest_s=pl.col("ended_at").max().dt.epoch("us") / 1e6,
    )  # fmt: skip
    files = rows.join(rings, on="source", how="inner", maintain_order="left")
    known = files.filter(pl.col("rises") & ~pl.col("named")).drop("rises", "named")
    return [File(**row) for row in known.iter_rows(named=True)]


def _with_common_ends(files: list[File], pauses: pl.DataFrame) -> list[list[File]]:
    """Returns groups of files with common cycle ends, each in the order of its cycles."""
    names = [file.source for file in files]
    common = (
        pauses.select(pl.col("source").cast(pl.String), "gc_num", "ended_at")
        .drop_nulls()
        .filter(pl.col("source").is_in(names))
        .group_by("gc_num", "ended_at")
        .agg(pl.col("source").unique().sort())
        .filter(pl.col("source").list.len() > 1)["source"]
        .unique()
    )
    group_of = {name: {name} for name in names}
    for sharing in common.to_list():
        merged = set().union(*(group_of[name] for name in sharing))
        for name in merged:
            group_of[name] = merged
    by_group: dict[int, list[File]] = {}
    for file in files:
        by_group.setdefault(id(group_of[file.source]), []).append(file)
    return [sorted(group, key=lambda file: file.order) for group in by_group.values()]


def _by_name(
    proven: list[list[File]], commands: Mapping[str, str]
) -> tuple[list[list[File]], list[str]]:
    """Returns groups of files of one process by name, and notes on likely and open cases."""
    alike: dict[tuple[str, str], list[list[File]]] = {}
    joined_groups = []
    for group in proven:
        patterns = {_NUMBER.sub("#", file.source) for file in group}
        command = next((commands[f.source] for f in group if f.source in commands), "")
        if len(patterns) == 1:
            alike.setdefault((patterns.pop(), command), []).append(group)
        elif len(group) > 1:
            joined_groups.append(group)
    notes: list[str] = []
    for (_, command), groups in alike.items():
        groups.sort(key=lambda group: group[0].order)
        files = [file for group in groups for file in group]
        fits = all(_continues(a[-1], b[0]) for a, b in pairwise(groups))
        if len(groups) > 1 and fits and len(files) >= FEWEST and _is_sequence(files):
            notes.append(
                f"{len(files)} files ({_ends(files)}) were read as dumps of one process: they "
                f"have {'the same command line, and ' * bool(command)}counters that rise from "
                "name to name. If they are of several processes, name the files of one process "
                "only."
            )
            joined_groups.append(files)
            continue
        joined_groups += [group for group in groups if len(group) > 1]
        if len(groups) > 1 and fits:
            notes.append(
                f"{len(files)} files ({_ends(files)}) may be dumps of one process, but nothing "
                "proves it, so each is read as a process of its own. If they are, write them "
                "into one file in their order (`cat`), or take dumps more often."
            )
    return joined_groups, notes


def _continues(one: File, other: File) -> bool:
    """Returns whether a dump may follow in the same process without common cycles."""
    if one.newest_gc >= other.oldest_gc or one.newest_s >= other.oldest_s:
        return False
    for name in _COUNTERS:
        before, after = one.last.get(name), other.first.get(name)
        if before is not None and after is not None and before > after:
            return False
    between = (other.oldest_gc - one.newest_gc) / (other.oldest_s - one.newest_s)
    rates = [rate for rate in (one.rate, other.rate) if rate is not None]
    return all(_is_near(between, rate) for rate in rates) and _allocates_alike(one, other)


def _allocates_alike(one: File, other: File) -> bool:
    """Returns whether cycles between two dumps allocated about as much as those before them."""
    first, last = one.last.get("num_gc"), other.last.get("num_gc")
    before, after = one.last.get("total_alloc_bytes"), other.last.get("total_alloc_bytes")
    if first is None or last is None or before is None or after is None or first >= last:
        return True
    between = (after - before) / (last - first)
    means = (a / c for a, c in ((before, first), (after, last)) if c >= _START_UP)
    return all(_is_near(between, mean) for mean in means)


def _is_near(value: float, other: float) -> bool:
    return other / TIMES <= value <= other * TIMES


def _is_sequence(files: Sequence[File]) -> bool:
    """Returns whether the numbers in the names are in the order of the cycles."""
    numbers = [[int(number) for number in _NUMBER.findall(file.source)] for file in files]
    return all(a < b for a, b in pairwise(numbers))


def _ends(files: Sequence[File]) -> str:
    first, last = (re.split(r"[/\\]", files[at].source)[-1] for at in (0, -1))
    return f"{first} to {last}"


def command_of(values: Iterable[Mapping[str, Any]]) -> str | None:
    """Returns the command line that every document of expvar has; None if they differ."""
    commands = {
        "\0".join(map(str, value["cmdline"]))
        for value in values
        if isinstance(value.get("cmdline"), list)
    }
    return commands.pop() if len(commands) == 1 else None
