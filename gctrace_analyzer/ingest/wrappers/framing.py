"""The meaning of the frames around records: prefix, identity and time of their lines.

It is decided once for each frame, by removing the prefixes of some of its lines. If the lines of a
frame disagree, they are read like all other lines. So the result is the same as without the core,
which finds the frames.
"""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.gctrace.framed import EMPTY, INTEGERS, SLOTS, UNITS
from gctrace_analyzer.ingest.rows import constant
from gctrace_analyzer.ingest.wrappers.formats import WRAPPERS
from gctrace_analyzer.ingest.wrappers.metadata import METADATA, completed
from gctrace_analyzer.ingest.wrappers.strip import QUOTED, Stripped
from gctrace_analyzer.ingest.wrappers.tally import Tally
from gctrace_analyzer.ingest.wrappers.timestamps import TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gctrace_analyzer.ingest.gctrace.framed import Framed

MESSAGE_NAMES = frozenset(wrapper.name for wrapper in WRAPPERS if wrapper.message)
"""Prefixes that a line has only if most other lines have them."""

_QUARTER_US = 900_000_000
"""Time zones differ by quarters of an hour."""

_OWN = ("local_time", "resolution_s", "monotonic_s", "native")
_SAME = tuple(name for name in METADATA if name not in _OWN)
"""The metadata shared by all lines of a frame."""

_TEXTS = tuple(name for name in _SAME if METADATA[name] == pl.String)

_NUMBERS = ("gc_num", "heap_end_mib", "procs")
"""Columns that identify a record."""


def tally(framed: Framed) -> Tally:
    """Returns a tally for which the first line of a key stands for all others."""
    weights = dict.fromkeys(framed.probes, 0)
    weights |= {key.some[0]: key.lines for key in framed.keys}
    first = pl.Series("probe", [key.some[0] for key in framed.keys], pl.Int64)
    rows = framed.rows
    return Tally(weights, rows[["line_no"]].with_columns(probe=first[rows["key"]]))


def agreeing(framed: Framed, stripped: Stripped, read: pl.DataFrame) -> pl.DataFrame:
    """Returns `key` and the metadata of keys whose lines agree.

    Args:
        framed: the records.
        stripped: lines without their prefixes, the probes among them.
        read: the cycles of the probes, read without their prefixes.
    """
    rows = framed.rows
    probes = rows.filter(pl.col("line_no").is_in(framed.probes))
    if not stripped.is_wrapped or stripped.has_pieces or read.is_empty():
        return probes.clear()
    cycles = pl.concat(frame[["line_no", *_NUMBERS]] for frame in framed.cycles)
    # In a line with several records, one is in a frame with the others.
    single = read.filter(pl.col("line_no").is_unique())[["line_no", *_NUMBERS]]
    same = cycles.join(single, on=["line_no", *_NUMBERS], how="semi", nulls_equal=True)
    known = probes.join(same[["line_no"]], on="line_no", how="semi").join(
        stripped.lines.with_columns(pl.col("line_no").cast(pl.Int64)), on="line_no"
    )
    local_us = pl.col("local_time").cast(TIMESTAMP).to_physical()
    clock_us = (pl.col("monotonic_s") * 1e6).round().cast(pl.Int64)
    as_exact = [
        pl.when((pl.col("resolution_s") - pl.col(unit)).abs() < _TINY).then(local_us)
        for unit in UNITS
    ]
    differences = known.select(
        "key",
        *(
            _apart(us, name).alias(f"time_{name}")
            for us, name in zip(as_exact, SLOTS, strict=True)
        ),
        *(_apart(clock_us, name).alias(f"clock_{name}") for name in SLOTS),
    )
    by_key = differences.group_by("key").agg(_constant())
    slots = pl.col(SLOTS)
    varied = known.group_by("key").agg(
        ~pl.any_horizontal((slots != EMPTY).any() & (slots.n_unique() == 1)).alias("varied")
    )
    first = known.group_by("key", maintain_order=True).agg(
        pl.len().alias("probes"),
        pl.struct(*_SAME, "path").n_unique().alias("kinds"),
        pl.col("local_time", "monotonic_s").null_count().name.suffix("_nulls"),
        pl.col("path", *_SAME).first(),
    )
    expected = pl.DataFrame(
        {"key": range(len(framed.keys)), "expected": [len(key.some) for key in framed.keys]},
        schema_overrides=INTEGERS,
    )
    whole = first.join(expected, on="key").join(by_key, on="key").join(varied, on="key")
    timeless = pl.col("local_time_nulls") == pl.col("probes")
    clockless = pl.col("monotonic_s_nulls") == pl.col("probes")
    times = [pl.col(f"time_{name}") for name in SLOTS]
    # A time that differs by a multiple of a quarter of an hour only has another time zone.
    exact = [time % _QUARTER_US == 0 for time in times]
    slots_of_time = [
        *enumerate(exact),
        *((slot, time.is_not_null()) for slot, time in enumerate(times)),
    ]
    slot = pl.coalesce(pl.when(here).then(slot) for slot, here in slots_of_time)
    apart_us = pl.coalesce(
        pl.when(slot == index).then(time) for index, time in enumerate(times)
    )
    clock = pl.coalesce(
        pl.when(pl.col(f"clock_{name}") == 0).then(index) for index, name in enumerate(SLOTS)
    )
    only = (pl.sum_horizontal(time.is_not_null() for time in times) <= 1) | (
        pl.sum_horizontal(here.fill_null(value=False) for here in exact) == 1
    )
    known_keys = whole.filter(
        (pl.col("probes") == pl.col("expected"))
        & (pl.col("kinds") == 1)
        & (timeless | (slot.is_not_null() & (pl.col("local_time_nulls") == 0)))
        & (clockless | clock.is_not_null())
    )
    return known_keys.select(
        "key",
        "path",
        # A text becomes a category once, not once per line.
        *(pl.col(name).cast(pl.Categorical) if name in _TEXTS else name for name in _SAME),
        time_slot=pl.when(~timeless).then(slot),
        apart_us=pl.when(~timeless).then(apart_us),
        clock_slot=pl.when(~clockless).then(clock),
        is_sure=only & pl.col("varied") & (pl.col("probes") >= _ENOUGH_PROBES),
    ).sort("key")


def metadata(framed: Framed, known: pl.DataFrame) -> pl.DataFrame:
    """Returns `line_no` and the metadata of every record (`metadata.METADATA`).

    Args:
        framed: the records.
        known: what `agreeing` has returned: all keys of these records.
    """
    rows = framed.rows
    at = None if len(known) == 1 else rows["key"]

    def of_rows(values: pl.Series) -> pl.Series:
        return constant(values, len(rows)) if at is None else values[at]

    us, unit = _of_slots(rows, of_rows, known["time_slot"])
    clock_us, _ = _of_slots(rows, of_rows, known["clock_slot"])
    own = {
        "local_time": (us + of_rows(known["apart_us"])).cast(TIMESTAMP),
        "resolution_s": unit,
        "monotonic_s": numbers.seconds_of_us(clock_us)
        if clock_us.count()
        else clock_us.cast(pl.Float64),
        "native": constant(pl.Series([None], dtype=pl.String), len(rows)),
    }
    columns = [
        own[name].alias(name) if name in own else of_rows(known[name])
        for name in (*METADATA, "path")
    ]
    return pl.DataFrame([rows["line_no"], *columns])


def _of_slots(
    rows: pl.DataFrame, of_rows: Callable[[pl.Series], pl.Series], slots: pl.Series
) -> tuple[pl.Series, pl.Series]:
    """Returns the slot values of each row, and their units; null for a key without the slot."""
    used = slots.unique().to_list()
    if len(used) == 1:
        if used[0] is None:
            none = constant(pl.Series([None], dtype=pl.Int64), len(rows))
            return none, none.cast(pl.Float64)
        return rows[SLOTS[used[0]]], rows[UNITS[used[0]]]
    chosen = rows.with_columns(slot=of_rows(slots)).select(
        pl.coalesce(
            pl.when(pl.col("slot") == number).then(name) for number, name in enumerate(names)
        ).alias(names[0])
        for names in (SLOTS, UNITS)
    )
    return chosen.to_series(0), chosen.to_series(1)


@frozen
class Meaning:
    """The meaning of a chunk's frames, for chunks with the same frames and no other lines.

    Attributes:
        known: what `agreeing` returns.
        keys: the text of each frame, and its row in `known`.
        names: the prefixes of each frame, as a tally counts them.
        depth: how many prefixes were nested at most.
    """

    known: pl.DataFrame
    keys: Mapping[bytes, int]
    names: Mapping[bytes, tuple[str, ...]]
    depth: int


_MOST_MEANINGS = 64
_meanings: dict[frozenset[bytes], Meaning] = {}
DECIDING = Lock()
"""Held while deciding what frames mean, so that threads do not decide the same twice."""


def recalled(framed: Framed) -> tuple[Stripped, pl.DataFrame] | None:
    """Returns what an earlier chunk showed about the same frames, or None.

    The first part has the number of prefixes but no lines; the second is the result of `agreeing`.
    """
    meaning = _meanings.get(frozenset(key.text for key in framed.keys))
    if meaning is None:
        return None
    counts: Counter[str] = Counter()
    for key in framed.keys:
        for name in meaning.names[key.text]:
            counts[name] += key.lines
    known = meaning.known[[meaning.keys[key.text] for key in framed.keys]]
    return Stripped(_NO_LINES, counts, meaning.depth), known


def remember(framed: Framed, known: pl.DataFrame, tally: Tally, depth: int) -> None:
    """Stores what a chunk's frames mean, if that does not depend on their changing text."""
    if not known["is_sure"].all():
        return
    if any(MESSAGE_NAMES & tally.names(key.some[0]) for key in framed.keys):
        return
    names = {
        key.text: tuple(sorted(tally.names(key.some[0]) - {QUOTED})) for key in framed.keys
    }
    while len(_meanings) >= _MOST_MEANINGS:
        _meanings.pop(next(iter(_meanings)), None)
    keys = {key.text: row for row, key in enumerate(framed.keys)}
    _meanings[frozenset(names)] = Meaning(known, keys, names, depth)


_ENOUGH_PROBES = 5
"""Lines that prove that a frame's changing text is not part of an identity."""

_NO_LINES = completed(pl.DataFrame(schema={"line_no": pl.UInt32(), "text": pl.String()})).drop(
    "tag"
)


_TINY = 1e-9


def _apart(value: pl.Expr, slot: str) -> pl.Expr:
    return pl.when(pl.col(slot) != EMPTY).then(value - pl.col(slot))


def _constant() -> pl.Expr:
    """Returns the differences that are equal on all lines of a key; others are null."""
    every = pl.exclude("key")
    return pl.when((every.n_unique() == 1) & (every.null_count() == 0)).then(every.first())
