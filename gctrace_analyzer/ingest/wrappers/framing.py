"""What the frames around records mean: the prefix, identity and time of their lines.

It is decided once for each frame, by removing the prefixes of some of its lines as of any other. A
frame whose lines do not agree is not used: they are read like all others. So the result is the same
as without the core, which finds the frames.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.gctrace.framed import EMPTY, INTEGERS, SLOTS
from gctrace_analyzer.ingest.rows import constant
from gctrace_analyzer.ingest.wrappers.formats import WRAPPERS
from gctrace_analyzer.ingest.wrappers.metadata import METADATA, completed
from gctrace_analyzer.ingest.wrappers.strip import QUOTED, Stripped
from gctrace_analyzer.ingest.wrappers.tally import Tally
from gctrace_analyzer.ingest.wrappers.timestamps import TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.ingest.gctrace.framed import Framed

MESSAGE_NAMES = frozenset(wrapper.name for wrapper in WRAPPERS if wrapper.message)
"""Prefixes that a line has only if most other lines have them."""

_QUARTER_US = 900_000_000
"""Time zones differ by quarters of an hour."""

_OWN = ("local_time", "resolution_s", "monotonic_s", "native")
_SAME = tuple(name for name in METADATA if name not in _OWN)
"""The metadata that all lines of a frame have in common."""

_NUMBERS = ("gc_num", "heap_end_mib", "procs")
"""Columns by which a record is recognised."""


def tally(framed: Framed) -> Tally:
    """Returns a tally for which the first line of a key stands for all others."""
    weights = dict.fromkeys(framed.probes, 0)
    weights |= {key.some[0]: key.lines for key in framed.keys}
    first = pl.Series("probe", [key.some[0] for key in framed.keys], pl.Int64)
    rows = framed.rows
    return Tally(weights, rows[["line_no"]].with_columns(probe=first[rows["key"]]))


def agreeing(framed: Framed, stripped: Stripped, read: pl.DataFrame) -> pl.DataFrame:
    """Returns `key` and the metadata of the keys whose lines agree.

    Args:
        framed: the records.
        stripped: lines without their prefixes, the probes among them.
        read: the cycles of the probes, read from what is left of them.
    """
    rows = framed.rows
    probes = rows.filter(pl.col("line_no").is_in(framed.probes))
    if not stripped.is_wrapped or stripped.has_pieces or read.is_empty():
        return probes.clear()
    cycles = pl.concat(frame[["line_no", *_NUMBERS]] for frame in framed.cycles)
    # A line with several records has one that is in a frame with the others.
    single = read.filter(pl.col("line_no").is_unique())[["line_no", *_NUMBERS]]
    same = cycles.join(single, on=["line_no", *_NUMBERS], how="semi", nulls_equal=True)
    known = probes.join(same[["line_no"]], on="line_no", how="semi").join(
        stripped.lines.with_columns(pl.col("line_no").cast(pl.Int64)), on="line_no"
    )
    local_us = pl.col("local_time").cast(TIMESTAMP).to_physical()
    clock_us = (pl.col("monotonic_s") * 1e6).round().cast(pl.Int64)
    as_exact = [
        pl.when((pl.col("resolution_s") - _resolution_s(name)).abs() < _TINY).then(local_us)
        for name in SLOTS
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
    constant = known.group_by("key").agg(
        ((slots != EMPTY).any() & (slots.n_unique() == 1)).name.suffix("_same")
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
    whole = first.join(expected, on="key").join(by_key, on="key").join(constant, on="key")
    timeless = pl.col("local_time_nulls") == pl.col("probes")
    clockless = pl.col("monotonic_s_nulls") == pl.col("probes")
    shown = pl.coalesce(f"time_{name}" for name in SLOTS).is_not_null()
    clock = pl.any_horizontal(pl.col(f"clock_{name}") == 0 for name in SLOTS)
    return whole.filter(
        (pl.col("probes") == pl.col("expected"))
        & (pl.col("kinds") == 1)
        & (timeless | (shown & (pl.col("local_time_nulls") == 0)))
        & (clockless | clock)
    ).with_columns(has_time=~timeless, has_clock=~clockless)


def metadata(framed: Framed, known: pl.DataFrame) -> pl.DataFrame:
    """Returns `line_no` and the metadata of every record (`metadata.METADATA`).

    Args:
        framed: the records.
        known: what `agreeing` has returned: all keys of these records.
    """
    rows = framed.rows
    if len(known) == 1:
        # A text is a category once, not once for each line.
        texts = [name for name in _SAME if known.schema[name] == pl.String]
        one = known.drop("key").with_columns(pl.col(texts).cast(pl.Categorical))
        rows = rows.hstack([constant(value, len(rows)) for value in one])
    else:
        rows = rows.join(known, on="key", maintain_order="left")
    whole = [f"time_{name}" for name in SLOTS]
    # A time that is a multiple of a quarter of an hour apart has only another time zone.
    exact = [pl.col(name) % _QUARTER_US == 0 for name in whole]
    slots = [
        *zip(exact, whole, SLOTS, strict=True),
        *zip((pl.col(name).is_not_null() for name in whole), whole, SLOTS, strict=True),
    ]
    local = pl.coalesce(
        pl.when(here).then(_micros(slot) + pl.col(apart)) for here, apart, slot in slots
    )
    exactness = pl.coalesce(pl.when(here).then(_resolution_s(slot)) for here, _, slot in slots)
    clock = pl.coalesce(
        pl.when(pl.col(f"clock_{name}") == 0).then(_micros(name)) for name in SLOTS
    )
    types = {**METADATA, "path": pl.String()}
    own = {
        "local_time": pl.when("has_time").then(local).cast(TIMESTAMP),
        "resolution_s": pl.when("has_time").then(exactness),
        "monotonic_s": numbers.seconds_of_us(pl.when("has_clock").then(clock)),
        "native": pl.lit(None, pl.String),
    }
    return rows.select(
        "line_no", *(own[name].alias(name) if name in own else name for name in types)
    )


@frozen
class Meaning:
    """What the frames of a chunk mean, for chunks with the same ones and no other lines.

    Attributes:
        known: `text` of each frame, and what `agreeing` returns.
        names: the prefixes of each frame, as a tally counts them.
        depth: how many prefixes were nested at most.
    """

    known: pl.DataFrame
    names: Mapping[bytes, tuple[str, ...]]
    depth: int


_MOST_MEANINGS = 64
_meanings: dict[frozenset[bytes], Meaning] = {}


def recalled(framed: Framed) -> tuple[Stripped, pl.DataFrame] | None:
    """Returns what an earlier chunk has shown of the same frames, or None.

    The first part has no lines, but the number of prefixes; the second is what `agreeing` returns.
    """
    meaning = _meanings.get(frozenset(key.text for key in framed.keys))
    if meaning is None:
        return None
    counts: Counter[str] = Counter()
    for key in framed.keys:
        for name in meaning.names[key.text]:
            counts[name] += key.lines
    texts = pl.DataFrame({"text": [key.text for key in framed.keys]}).with_row_index("key")
    known = meaning.known.join(texts, on="text").with_columns(pl.col("key").cast(pl.Int64))
    return Stripped(_NO_LINES, counts, meaning.depth), known.drop("text")


def remember(framed: Framed, known: pl.DataFrame, tally: Tally, depth: int) -> None:
    """Keeps what the frames of a chunk mean, if that does not depend on what changes in them."""
    exact = pl.sum_horizontal(
        (pl.col(f"time_{name}") % _QUARTER_US == 0).fill_null(value=False) for name in SLOTS
    )
    possible = pl.sum_horizontal(pl.col(f"time_{name}").is_not_null() for name in SLOTS)
    sure = known.select(
        ((exact == 1) | (possible <= 1))
        & (pl.col("probes") >= _ENOUGH_PROBES)
        & ~pl.any_horizontal(f"{name}_same" for name in SLOTS)
    ).to_series()
    if not sure.all() or any(MESSAGE_NAMES & tally.names(key.some[0]) for key in framed.keys):
        return
    texts = pl.Series("text", [key.text for key in framed.keys])
    names = {
        key.text: tuple(sorted(tally.names(key.some[0]) - {QUOTED})) for key in framed.keys
    }
    while len(_meanings) >= _MOST_MEANINGS:
        _meanings.pop(next(iter(_meanings)), None)
    _meanings[frozenset(names)] = Meaning(
        known.with_columns(text=texts[known["key"]]).drop("key"), names, depth
    )


_ENOUGH_PROBES = 5
"""Lines that show that what changes in a frame is no part of an identity."""

_NO_LINES = completed(pl.DataFrame(schema={"line_no": pl.UInt32(), "text": pl.String()})).drop(
    "tag"
)


_DIGITS = 8
"""A slot is microseconds times this, and the number of digits that were printed of a second."""

_TINY = 1e-9


def _micros(slot: str) -> pl.Expr:
    return pl.col(slot) // _DIGITS


def _resolution_s(slot: str) -> pl.Expr:
    return pl.lit(10.0).pow(-(pl.col(slot) % _DIGITS).cast(pl.Float64))


def _apart(value: pl.Expr, slot: str) -> pl.Expr:
    return pl.when(pl.col(slot) != EMPTY).then(value - _micros(slot))


def _constant() -> pl.Expr:
    """Returns the differences that are the same on all lines of a key; others are null."""
    every = pl.exclude("key")
    return pl.when((every.n_unique() == 1) & (every.null_count() == 0)).then(every.first())
