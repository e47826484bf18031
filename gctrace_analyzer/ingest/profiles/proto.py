"""Reads profile.proto, the format of Go's profiles, block by block.

The reader is our own. A protobuf library would need a definition of the messages as long as the
loop below, build every message in memory (several times the size of the profile), and depend on the
version of its runtime. Python would still take the values from each sample. Here the numbers of all
samples of a block are decoded at once, and equal stacks are kept once.

Source: https://github.com/google/pprof/blob/main/proto/profile.proto. Heap profiles are scaled
by the runtime (`scaleHeapSample` in runtime/pprof/protomem.go), so their values are used as they
are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import polars as pl

from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.ingest.profiles.profile import (
    COLUMNS,
    STACKS_AT_ONCE,
    UNKNOWN,
    Profile,
    kind_of,
)

_VARINT, _BYTES = 0, 2
_TAGS = frozenset(
    [field << 3 | _VARINT for field in (7, 8, 9, 10, 12, 13, 14, 15)]
    + [field << 3 | _BYTES for field in (1, 2, 3, 4, 5, 6, 11, 13, 15)]
)
"""First bytes of top-level fields: the number of a field and its encoding."""

_TYPES = frozenset({1, 11})
"""Fields that name types: of the samples, and of the period."""

_FEWEST_FIELDS, _MANY_FIELDS = 3, 50
"""Text that looks like a few fields by chance names no type, and text never looks like many
fields."""

_MOST_BYTES = 64 << 20
"""Longer messages are damage: samples and names have at most a few kilobytes."""

AGAIN = "Take it again, and copy it as a binary file."
_FIXED = {1: 8, 5: 4}
_LAST = 0x80
_MOST_SHIFT = 63
_BITS = 0x7F
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _DamagedProfileError(Exception):
    """Bytes that are not a message of a profile."""


class _IncompleteError(IndexError):
    """Names, addresses or the end of a message are missing."""


def is_profile(head: bytes) -> bool:
    """Returns whether the first bytes of an input are profile fields and nothing else.

    >>> is_profile(bytes([0x0A, 4, 8, 1, 16, 2, 0x60, 1, 0x48, 1])), is_profile(b"gc 1 @0.1s 0%")
    (True, False)
    """
    numbers = set()
    fields = 0
    try:
        for number, begin, end, data in _messages(iter((head,)), whole=False):
            if not number:
                continue
            if number in _TYPES and not dict(_fields(data, begin, end)).keys() <= {1, 2}:
                return False
            numbers.add(number)
            fields += 1
    except (IndexError, _DamagedProfileError):
        return False
    return fields >= _FEWEST_FIELDS and bool(numbers & _TYPES or fields >= _MANY_FIELDS)


def read(blocks: Iterable[bytes], name: str) -> Profile:
    """Returns the profile in the blocks of an input.

    Raises:
        NoDataError: it is truncated or damaged, does not come from a Go program, or says nothing
            about memory, CPU or goroutines.
    """
    contents = _Contents()
    try:
        for number, begin, end, data in _messages(iter(blocks)):
            contents.add(number, begin, end, data)
        return contents.profile(name)
    except IndexError as err:
        raise NoDataError(name, "a truncated profile: a part of it is missing", AGAIN) from err
    except (_DamagedProfileError, OverflowError) as err:
        problem = "a damaged profile: its bytes are not those of profile.proto"
        raise NoDataError(name, problem, AGAIN) from err


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Returns a number, and where the next one begins."""
    value = shift = 0
    while (octet := data[at]) >= _LAST:
        value |= (octet & _BITS) << shift
        shift += 7
        at += 1
    if shift > _MOST_SHIFT:
        raise _DamagedProfileError
    return value | octet << shift, at + 1


def _messages(
    blocks: Iterator[bytes], *, whole: bool = True
) -> Iterator[tuple[int, int, int, bytes]]:
    """Yields the top-level fields: number, begin, end, and the bytes they are in.

    The value of a number is its bytes. An empty message after each block has the number 0.
    """
    rest = b""
    for block in blocks:
        data = rest + block if rest else block
        at, size = 0, len(data)
        while at < size:
            begin = at
            try:
                if (tag := data[at]) not in _TAGS:
                    raise _DamagedProfileError
                at += 1
                if tag & 7 == _BYTES:
                    # Most messages are shorter than 128 bytes.
                    length, at = (n, at + 1) if (n := data[at]) < _LAST else _varint(data, at)
                    end = at + length
                else:
                    end = _varint(data, at)[1]
            except IndexError:
                at = begin
                break
            if end - at > _MOST_BYTES:
                raise _DamagedProfileError
            if end > size:
                at = begin
                break
            yield tag >> 3, at, end, data
            at = end
        rest = data[at:]
        yield 0, 0, 0, b""
    if rest and whole:
        raise _IncompleteError


def _fixed(tag: int) -> int:
    if (size := _FIXED.get(tag & 7)) is None:
        raise _DamagedProfileError
    return size


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields the numeric fields of a message, and where a message inside begins.

    Its length, which precedes it, gives its end.
    """
    while at < end:
        tag, at = _varint(data, at)
        if tag & 7 == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
        elif tag & 7 == _BYTES:
            yield tag >> 3, at
            length, at = _varint(data, at)
            at += length
        else:
            at += _fixed(tag)
    if at > end:
        raise _DamagedProfileError


def _numbers(data: bytes) -> tuple[pl.Series, pl.Series]:
    """Decodes all numbers in bytes at once; returns them (UInt64), and where each ends."""
    octets = pl.Series(values=array("B", data), dtype=pl.UInt8)
    ends = (octets < _LAST).arg_true()
    begins = ends.shift(1, fill_value=0) + (pl.int_range(len(ends), eager=True) > 0)
    begins = begins.cast(pl.UInt32)
    values = pl.zeros(len(ends), pl.UInt64, eager=True)
    longest = (ends - begins).cast(pl.Int64).max()
    for place in range(longest + 1 if isinstance(longest, int) else 0):
        at = begins + place
        part = (octets.gather(at.clip(upper_bound=len(octets) - 1)) & _BITS).cast(pl.UInt64)
        values += part * (at <= ends).cast(pl.UInt64) * (1 << 7 * place)
    return values, ends + 1


class _Contents:
    """The content of a profile read so far."""

    def __init__(self) -> None:
        self.types: list[int] = []
        self.strings: list[str] = []
        self.numbers: dict[int, int] = {}
        self.functions: list[tuple[int, int, int]] = []
        self.locations = array("Q")
        self.lines: list[tuple[int, int, int]] = []
        self._stacks: dict[bytes, int] = {}
        self._of_block: list[int] = []
        self._values: list[bytes] = []
        self._sums: list[pl.DataFrame] = []

    def add(self, number: int, begin: int, end: int, data: bytes) -> None:
        """Adds a field of the profile, between two positions of the bytes."""
        if number == 2:
            self._add_sample(data, begin, end)
        elif number == 4:
            self._add_location(data, begin, end)
        elif number == 5:
            fields = dict(_fields(data, begin, end))
            names = fields.get(2, 0) or fields.get(3, 0)
            self.functions.append((fields.get(1, 0), names, fields.get(4, 0)))
        elif number == 6:
            self.strings.append(data[begin:end].decode(errors="replace"))
        elif number == 1:
            self.types.append(dict(_fields(data, begin, end)).get(1, 0))
        elif number in (9, 10, 12):
            self.numbers[number] = _varint(data, begin)[0]
        elif number == 0:
            self._sum_block()

    def _add_sample(self, data: bytes, at: int, end: int) -> None:
        stack = values = b""
        while at < end:
            tag, at = data[at], at + 1
            begin = at
            if tag & 7 == _BYTES:
                length, begin = (n, at + 1) if (n := data[at]) < _LAST else _varint(data, at)
                at = begin + length
            elif tag & 7 == _VARINT:
                at = _varint(data, at)[1]
            else:
                at += _fixed(tag)
            if tag >> 3 == 1:
                stack += data[begin:at]
            elif tag >> 3 == 2:
                values += data[begin:at]
        self._of_block.append(self._stacks.setdefault(stack, len(self._stacks)))
        self._values.append(values)

    def _add_location(self, data: bytes, begin: int, end: int) -> None:
        number = len(self.locations)
        self.locations.append(0)
        for field, value in _fields(data, begin, end):
            if field == 1:
                self.locations[number] = value
            elif field == 4:
                length, at = _varint(data, value)
                line = dict(_fields(data, at, at + length))
                self.lines.append((number, line.get(1, 0), line.get(2, 0)))

    def _sum_block(self) -> None:
        """Adds up the values of the samples of a block by stack."""
        if not self._of_block:
            return
        values, _ = _numbers(b"".join(self._values))
        width = len(self.types)
        if len(values) != width * len(self._of_block):
            raise _DamagedProfileError
        columns = (
            values.gather_every(width, at).reinterpret(signed=True).alias(str(at))
            for at in range(width)
        )
        rows = pl.DataFrame([pl.Series("stack", self._of_block, pl.UInt32), *columns])
        self._sums.append(rows.group_by("stack").sum())
        self._of_block, self._values = [], []

    def profile(self, name: str) -> Profile:
        """Returns the profile, after its last block was added."""
        types = [self._string(number) for number in self.types]
        columns = {str(at): COLUMNS[one] for at, one in enumerate(types) if one in COLUMNS}
        if len(set(types)) < len(types):
            raise _DamagedProfileError
        places, of_locations = self._places()
        if not self._sums:
            raise NoDataError(name, "a profile without samples", "Take it again, under load.")
        kind = kind_of(name, types, places)
        sums = pl.concat(self._sums).group_by("stack").sum().sort("stack")
        values = sums.select(pl.col(at).alias(column) for at, column in columns.items())
        since, length = self.numbers.get(9, 0), self.numbers.get(10, 0)
        return Profile(
            name,
            kind,
            values.hstack([self._places_of_stacks(of_locations)]),
            places,
            self.numbers.get(12),
            _EPOCH + timedelta(microseconds=since // 1000) if since else None,
            length / 1e9 if length else None,
        )

    def _string(self, number: int) -> str:
        if not 0 <= number < len(self.strings):
            raise _IncompleteError
        return self.strings[number]

    def _places(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Returns the places, and a list of them for the `number` of each location."""
        functions = pl.DataFrame(
            [(at, self._string(name), self._string(file)) for at, name, file in self.functions],
            schema={"number": pl.UInt64, "function": pl.String, "file": pl.String},
            orient="row",
        ).unique("number", keep="first")
        kinds = {"at": pl.UInt32, "number": pl.UInt64, "line": pl.UInt64}
        lines = pl.DataFrame(self.lines, schema=kinds, orient="row").with_columns(
            pl.col("line").reinterpret(signed=True)
        )
        locations = pl.DataFrame({"of": pl.Series(values=self.locations, dtype=pl.UInt64)})
        rows = (
            locations.with_row_index("at")
            .join(lines, on="at", how="left", maintain_order="left_right")
            .join(functions, on="number", how="left", maintain_order="left")
            .with_columns(
                # Code without symbols, such as that of C libraries.
                pl.col("function").fill_null("").replace("", UNKNOWN),
                pl.col("file").fill_null(""),
            )
        )
        key = ["function", "file", "line"]
        places = rows.select(key).unique(maintain_order=True)
        numbered = rows.join(
            places.with_row_index("places"), on=key, nulls_equal=True, maintain_order="left"
        )
        lists = numbered.group_by("at", maintain_order=True).agg(pl.first("of"), "places")
        own = lists.select(pl.col("of").alias("number"), "places")
        return places, own.unique("number", keep="first")

    def _places_of_stacks(self, of_locations: pl.DataFrame) -> pl.Series:
        stacks = list(self._stacks)
        self._stacks = {}
        return pl.concat(
            _listed(stacks[at : at + STACKS_AT_ONCE], of_locations)
            for at in range(0, len(stacks), STACKS_AT_ONCE)
        )


def _listed(stacks: list[bytes], of_locations: pl.DataFrame) -> pl.Series:
    """Returns the places of stacks whose locations are given as bytes."""
    numbers, ends = _numbers(b"".join(stacks))
    lists = pl.DataFrame({"number": numbers}).join(
        of_locations, on="number", how="left", maintain_order="left"
    )["places"]
    if lists.has_nulls():
        raise _IncompleteError
    sizes = pl.Series(list(map(len, stacks)), dtype=pl.UInt64)
    last = ends.search_sorted(sizes.cum_sum(), side="right")
    at = pl.int_range(len(stacks), dtype=pl.UInt32, eager=True)
    counts = pl.DataFrame({"at": at, "times": last - last.shift(1, fill_value=0)})
    owner = counts.filter(pl.col("times") > 0).select(pl.col("at").repeat_by("times").explode())
    frames = owner.with_columns(places=lists).explode("places")
    own = frames.group_by("at", maintain_order=True).agg("places")
    return counts.join(own, on="at", how="left", maintain_order="left")["places"]
