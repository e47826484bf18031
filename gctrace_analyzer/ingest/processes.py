"""Assigns each cycle to a process, and summarises the processes.

Lines with different hosts, units, containers or process ids in their log prefix belong to
different processes. Within one such identity, `chains` finds them by numbers and times.
"""

from __future__ import annotations

import operator
from collections import Counter
from functools import cache
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.ingest import believable
from gctrace_analyzer.ingest.chains import (
    CLOCK_SLACK_S,
    RUN,
    may_be_one_process,
    only_process,
    predecessors,
    process_of,
)
from gctrace_analyzer.ingest.clock import MOSTLY, falls
from gctrace_analyzer.ingest.gctrace.columns import end_s
from gctrace_analyzer.ingest.gctrace.grammar import SHAPES, version_key
from gctrace_analyzer.ingest.profiles.bundles import age
from gctrace_analyzer.ingest.rows import constant, distinct, is_one_process, of_each_process
from gctrace_analyzer.schema import IDENTITY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gctrace_analyzer.ingest.input import Part

NAMED = "[^\x1f]"
"""Matches an identity (`key_of`) that is not empty."""

_OF_PROCESS = (*IDENTITY, RUN)
"""Columns whose values are the same for all cycles of a process."""

LOST_CYCLES = 1
"""Cycles that a file may lack at its start and still continue another one: rotation can tear a
line."""


def processes(cycles: pl.DataFrame, companions: Iterable[pl.DataFrame] = ()) -> pl.DataFrame:
    """Returns one row per process: its cycles, missing cycles, and possible Go versions."""
    if cycles.is_empty():
        return schema.empty("processes")
    spans = _spans(cycles)
    formats = dict(zip(spans["process"], spans.pop("formats"), strict=True))
    for frame in companions:
        if len(frame):
            shapes = pl.col("format").cast(pl.String).unique()
            for process, also in frame.group_by("process").agg(shapes).iter_rows():
                formats.get(process, []).extend(also)
    versions = [go_versions(each) for each in formats.values()]
    begins, ends = spans.pop("begins"), spans.pop("ends")
    # A rotated log may continue; another log belongs to another program or replica.
    logs = [age(str(source))[0] for source in spans["source"]]
    columns = {
        **spans,
        "go_version_min": [low for low, _ in versions],
        "go_version_max": [high for _, high in versions],
        "ended_by": [
            "restart" if begin > end and log == next_log else "end of input"
            for begin, end, log, next_log in zip(
                [*begins[1:], 0], ends, logs, [*logs[1:], ""], strict=True
            )
        ],
    }
    types = schema.polars_schema("processes")
    table = pl.DataFrame(columns, schema={name: types[name] for name in columns})
    missing = table["last_gc"] - table["first_gc"] + 1 - table["cycles"]
    return schema.conform("processes", table.hstack([missing.alias("missing_cycles")]))


def _spans(cycles: pl.DataFrame) -> dict[str, list[Any]]:
    """Returns the cycles of each process, its formats, and its first and last row."""
    if is_one_process(cycles):
        num = cycles["gc_num"]
        return {
            "process": [cycles["process"][0]],
            "first_gc": [num[0]],
            "last_gc": [num[-1]],
            "cycles": [len(num)],
            "formats": [[*distinct(cycles, "format")]],
            "source": [cycles["source"][0]],
            "begins": [0],
            "ends": [len(num) - 1],
        }
    return (
        cycles.lazy()
        .select("process", "gc_num", "source", pl.col("format").cast(pl.String))
        .with_row_index("row")
        .group_by("process")
        .agg(
            pl.col("gc_num").first().alias("first_gc"),
            pl.col("gc_num").last().alias("last_gc"),
            pl.len().alias("cycles"),
            pl.col("source").first(),
            formats=pl.col("format").unique(),
            begins=pl.col("row").min(),
            ends=pl.col("row").max(),
        )
        .sort("process")
        .collect()
        .to_dict(as_series=False)
    )


def known_number(processes: pl.DataFrame, number: object) -> int:
    """Returns the number of a process that is in the table.

    Raises:
        BadSettingError: the text is not a number, or no process has it.
    """
    numbers = processes["process"].to_list()
    is_number = hasattr(number, "__index__") and not isinstance(number, bool)
    if is_number and (found := operator.index(number)) in numbers:  # type: ignore[arg-type]
        return found
    if not numbers:
        expected = "a log with GC cycles, because this one has no process"
    elif len(numbers) == 1:
        expected = f"{numbers[0]}, the only process"
    else:
        expected = f"a process from {numbers[0]} to {numbers[-1]}"
    kind = "" if is_number or not numbers else f", as a number, not a {type(number).__name__}"
    raise BadSettingError("process", str(number), expected + kind)


def go_versions(formats: Iterable[str]) -> tuple[str | None, str | None]:
    """Returns the oldest and the newest Go release that print all these line formats.

    The newest is None if there is no upper limit; both are None if there is no format.
    """
    shapes = [SHAPES[name] for name in formats if name in SHAPES]
    low = max((shape.go_min for shape in shapes), key=version_key, default=None)
    high = min(
        (shape.go_max for shape in shapes if shape.go_max), key=version_key, default=None
    )
    return low, high


def take_cycles(parts: Sequence[Part]) -> tuple[pl.DataFrame, pl.DataFrame, Counter[str]]:
    """Removes the cycles from the parts; returns them with the identities of the processes.

    The cycles are one frame with a `process` column. The identities are one row per process,
    with host, unit, container and so on from the log prefix. The frame of cycles is not made
    contiguous, because that would need twice the memory.

    The third result counts the values, by column, that became null because they contradict
    other cycles.
    """
    inputs = []
    for part in parts:
        name = pl.Series("source", [part.facts.name], pl.Categorical)
        given = [
            frame.hstack([constant(name, len(frame))]) for frame in part.cycles if len(frame)
        ]
        inputs.append(_in_time_order(given))
        part.cycles = []
    frames = list(chain.from_iterable(_continuing([each for each in inputs if each])))
    if not frames:
        empty = schema.empty("cycles")
        unknown = pl.lit(None, pl.Float64)
        return empty.with_columns(resolution_s=unknown), _no_identities(), Counter()
    keys = (
        None if _has_one_identity(frames) else _continued(frames, [key_of(f) for f in frames])
    )
    contradicting = Counter[str]()
    if keys is None and may_be_one_process(frames):
        numbers = only_process(frames)
    else:
        frames, contradicting = believable.of_neighbours(frames, keys)
        numbers = process_of(frames) if keys is None else _by_key(frames, keys)
    identities = _identities(frames, numbers)
    drop = [name for name in _OF_PROCESS if any(name in frame.columns for frame in frames)]
    rows = [
        (frame.drop(drop, strict=False) if drop else frame).hstack([of.alias("process")])
        for frame, of in zip(frames, numbers, strict=True)
    ]
    alike = all(frame.columns == rows[0].columns for frame in rows)
    whole = pl.concat(rows, how="vertical" if alike else "diagonal")
    return whole, identities, contradicting


def _in_time_order(frames: list[pl.DataFrame]) -> list[pl.DataFrame]:
    """Returns the cycles of an input in the order in which they happened."""
    if not frames:
        return frames
    at = pl.concat([frame["logged_at"] for frame in frames])
    if falls(at) or _numbers_fall(frames):
        return [frame.reverse() for frame in reversed(frames)]
    return frames


def _continuing(inputs: list[list[pl.DataFrame]]) -> list[list[pl.DataFrame]]:
    """Returns the inputs, each after the one whose process it continues.

    The newest file of a rotated log often comes first, as in `api.log api.log.1`.
    """
    if len(inputs) < 2:
        return inputs
    after: dict[int, int] = {}
    for at, others in enumerate(predecessors(inputs, LOST_CYCLES)):
        before = [
            other
            for other in others
            if other not in after and _alike(inputs[other][-1], inputs[at][0])
        ]
        if len(before) == 1 or (before and at - 1 in before):
            after[at - 1 if at - 1 in before else before[0]] = at
    order: list[int] = []
    later = set(after.values())
    for begin in range(len(inputs)):
        if begin not in later:
            order.append(begin)
            while order[-1] in after:
                order.append(after[order[-1]])
    # With several processes per input, each input may seem to continue the other.
    return [inputs[at] for at in order] if len(order) == len(inputs) else inputs


def _alike(before: pl.DataFrame, later: pl.DataFrame) -> bool:
    """Returns whether names and times allow the first row of `later` to follow the last before."""
    end, begin = before["logged_at"][-1], later["logged_at"][0]
    names = [name for name in IDENTITY if name in before.columns and name in later.columns]
    alike = all(before[name][-1] == later[name][0] for name in names if name != "stream")
    return alike and (end is None or begin is None or end <= begin)


def _numbers_fall(frames: list[pl.DataFrame]) -> bool:
    """Returns whether numbers count down, and each cycle starts before the one above it."""
    if frames[0]["gc_num"].head(3).is_sorted():
        return False
    facts = pl.concat([frame.select("gc_num", "start_s") for frame in frames])
    steps = facts.select(
        (pl.col("gc_num").diff() == -1) & (pl.col("start_s").diff() < 0)
    ).to_series()
    return len(facts) > 2 and bool(steps.sum() >= MOSTLY * (len(facts) - 1))


def _has_one_identity(frames: list[pl.DataFrame]) -> bool:
    """Returns whether log prefixes and commands name at most one program."""
    names = [name for name in _OF_PROCESS if name != "stream"]
    seen = set()
    for frame in frames:
        each = [frame[name].unique() if name in frame.columns else [None] for name in names]
        if any(len(values) > 1 for values in each):
            return False
        seen.add(tuple(values[0] for values in each))
    return len(seen) == 1


def key_of(frame: pl.DataFrame) -> pl.Series:
    """Returns the identity of each line as one text.

    The stream (stdout or stderr) is left out, because one process may write to both.
    """
    names = [name for name in _OF_PROCESS if name != "stream" and name in frame.columns]
    if not names:
        return pl.repeat("", len(frame), dtype=pl.String, eager=True).alias("key")
    parts = [pl.col(name).cast(pl.String).fill_null("") for name in names]
    return frame.select(key=pl.concat_str(parts, separator="\x1f")).to_series()


def _continued(frames: list[pl.DataFrame], keys: list[pl.Series]) -> list[pl.Series]:
    """Returns the identities, also for lines without a prefix that continue a message.

    A message of several lines has a prefix only on its first line. Its other lines belong to the
    same process if their cycles follow the one above, and the next one follows them.
    """
    names = pl.concat([of.unique() for of in keys]).unique()
    are_bare = ~names.str.contains(NAMED)
    if are_bare.all() or not are_bare.any():
        return keys
    key, num, start = pl.col("key"), pl.col("gc_num"), pl.col("start_s")
    facts = [
        frame.select("gc_num", "start_s", end=end_s()).with_columns(key=of)
        for frame, of in zip(frames, keys, strict=True)
    ]
    whole = pl.concat(facts).with_columns(bare=~key.str.contains(NAMED))
    later = (start >= pl.col("end").shift() - CLOCK_SLACK_S).fill_null(value=True)
    whole = whole.with_columns(follows=pl.col("bare") & (num == num.shift() + 1) & later)
    given = pl.when("follows").then(None).otherwise("key").forward_fill().alias("key")
    above = pl.col("follows").shift().over("key")
    goes_on = (num > num.shift().over("key")) | (num == 1) | ~above
    filled = whole.with_columns(given).with_columns(goes_on=goes_on.fill_null(value=True))
    if (
        whole["follows"].sum() < MOSTLY * int(whole["bare"].sum())
        or not filled["goes_on"].all()
    ):
        return keys
    ends = list(accumulate(map(len, frames)))
    return [filled["key"][end - len(of) : end] for of, end in zip(keys, ends, strict=True)]


def _by_key(frames: list[pl.DataFrame], keys: list[pl.Series]) -> list[pl.Series]:
    """Returns the process of each cycle, found among the cycles with the same key.

    The processes are numbered in the order in which they appear in the log.
    """
    whole = pl.concat(frames, how="diagonal").with_columns(key=pl.concat(keys))
    whole = whole.with_row_index("row")
    rows, numbers, so_far = [], [], 0
    for one in whole.partition_by("key", maintain_order=True):
        process = process_of([one.drop("row", "key")])[0]
        rows.append(one["row"])
        numbers.append(process + so_far)
        so_far += int(process.max() or 0) + 1  # type: ignore[arg-type]  # an integer column
    table = pl.DataFrame({"row": pl.concat(rows), "process": pl.concat(numbers)}).sort("row")
    first = table.group_by("process").agg(pl.col("row").min()).sort("row")["process"]
    order = pl.DataFrame({"process": first, "number": pl.int_range(len(first), eager=True)})
    number = table.join(order, on="process", how="left", maintain_order="left")["number"]
    parts, at = [], 0
    for frame in frames:
        parts.append(number[at : at + len(frame)])
        at += len(frame)
    return parts


def _identities(frames: list[pl.DataFrame], processes: list[pl.Series]) -> pl.DataFrame:
    """Returns the identity of each process, in the columns of `processes`."""
    firsts = []
    for frame, process in zip(frames, processes, strict=True):
        given = [name for name in IDENTITY if name in frame.columns]
        if given:
            rows = frame[given].hstack([process.alias("process")])
            firsts.append(of_each_process(rows, *(_first_known(name) for name in given)))
    if not firsts:
        return _no_identities()
    types = schema.polars_schema("processes")
    every = pl.concat(firsts, how="diagonal")
    whole = of_each_process(every, *(_first_known(name) for name in every.columns[1:]))
    return whole.cast({name: types[name] for name in whole.columns})


def _first_known(name: str) -> pl.Expr:
    return pl.col(name).drop_nulls().first()


def longest_process(processes: pl.DataFrame) -> int | None:
    """Returns the number of the process with the most cycles; None if there is no process."""
    if len(processes) > 1:
        processes = processes.sort("cycles")
    return int(processes["process"][-1]) if len(processes) else None


_DISTINCT = (
    ("pod",), ("container",), ("pod", "container"), ("unit",), ("ident",), ("host",),
    ("host", "ident"), ("namespace", "pod"), ("source",),
)  # fmt: skip
"""Columns that may distinguish processes, the most useful names first."""


def distinct_names(rows: pl.DataFrame) -> list[str | None]:
    """Returns the names that processes with different identities have; else only nulls.

    The name is the pod, container, unit, service or host, or two of these: the first with the most
    different values; or else the name of the file. Restarts of one process have the same name.

    >>> distinct_names(pl.DataFrame({"ident": ["api", "api"], "pod": ["a-1", "a-2"]}))
    ['a-1', 'a-2']
    """
    best, most = pl.repeat(None, len(rows), dtype=pl.String, eager=True), 1
    for columns in _DISTINCT:
        if not set(columns) <= set(rows.columns):
            continue
        texts = (pl.col(name).cast(pl.String) for name in columns)
        names = rows.select(pl.concat_str(*texts, separator=" ", ignore_nulls=True)).to_series()
        if columns == ("source",):
            names = names.str.extract(r"([^/\\]+)$") if most == 1 else names.clear()
        if (different := names.replace("", None).n_unique()) > most:
            best, most = names.replace("", None), different
    return best.to_list()


def several_services(processes: pl.DataFrame) -> list[str]:
    """Returns a note if the inputs contain several services, not counting container ids."""
    if len(processes) < 2:
        return []
    name = pl.coalesce("unit", "container", "ident").cast(pl.String)
    named = processes.select(name=name).to_series().drop_nulls()
    services = named.filter(~named.str.contains(r"^[0-9a-f]{12,64}$")).unique(
        maintain_order=True
    )
    if len(services) < 2:
        return []
    shown = ", ".join(services.head(4)) + (", …" if len(services) > 4 else "")
    return [
        f"The inputs contain {len(services)} services ({shown}); the figures are for all of "
        "them together. Select one process to see it alone."
    ]


def _no_identities() -> pl.DataFrame:
    return pl.DataFrame(schema={"process": pl.Int64})


def followed(cycles: Sequence[pl.DataFrame], *, newest_first: bool) -> Callable[[int], bool]:
    """Returns a function that says whether the process before a line has more records after it.

    Args:
        cycles: the cycles of an input, with `line_no` and `gc_num`.
        newest_first: whether the lines run backwards: then this is unknown, and taken to be true.
    """

    @cache
    def records() -> pl.DataFrame:
        return pl.concat([frame[["line_no", "gc_num"]] for frame in cycles]).sort("line_no")

    def is_followed(line_no: int) -> bool:
        if not cycles or newest_first:
            return newest_first
        at = records()["line_no"].search_sorted(line_no, side="right")
        return at < len(records()) and records()["gc_num"][at] != 1

    return is_followed
