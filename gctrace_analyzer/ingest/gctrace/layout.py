"""Numbers out of lines of one constant shape, by translation and Polars' CSV reader.

A layout is a variant of a shape made ready for that: the few punctuation characters that
separate its numbers become commas, every other character but digits and dots is deleted, and
the numbers stand at known columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import polars as pl

from gctrace_analyzer.ingest.gctrace.grammar import FLOAT_KINDS, MODERN, Variant

NUMERIC = b"0123456789."
"""What a number is made of; a line without these is its skeleton."""


@dataclass(frozen=True)
class Layout:
    """A variant of a shape and how to cut its lines.

    `skeleton` is what its lines look like without digits and dots.
    """

    variant: Variant
    skeleton: str
    table: bytes
    delete: bytes
    types: dict[str, pl.DataType]
    columns: list[int]

    def explains(self, bones: bytes, lines: int) -> bool:
        """Whether `bones`, so many lines without digits and dots, are all of this skeleton."""
        line = self.skeleton.encode() + b"\n"
        return len(bones) + 1 == len(line) * lines and (line * lines).startswith(bones)

    def read(self, data: bytes) -> pl.DataFrame:
        """The numbers of lines that have this skeleton; null where one does not fit."""
        cells = data.translate(self.table, self.delete)
        return pl.read_csv(
            cells,
            has_header=False,
            quote_char=None,
            schema=self.types,
            columns=self.columns,
            ignore_errors=True,
        )


@cache
def layouts() -> tuple[Layout, ...]:
    """A layout for each variant of the lines of Go 1.5 and later, the commonest first."""
    variants = [variant for shape in MODERN for variant in shape.variants]
    # A forced cycle is the exception, and so is the `#` of the 2015 development tree.
    variants.sort(key=lambda variant: sum(present for _, present in variant.choices))
    return tuple(_layout(variant) for variant in variants)


COMMON = 3
"""So many of `layouts()` explain nearly every line: Go 1.6 and later, not forced."""


def _layout(variant: Variant) -> Layout:
    separators = _separators(variant)
    types: dict[str, pl.DataType] = {}
    columns: list[int] = []
    column = 0
    for part in variant.parts:
        if isinstance(part, str):
            column += sum(part.count(char) for char in separators)
        else:
            types |= {f"empty_{n}": pl.String() for n in range(len(types), column)}
            types[part.name] = pl.Float64() if part.kind in FLOAT_KINDS else pl.Int64()
            columns.append(column)
    types |= {f"empty_{n}": pl.String() for n in range(len(types), column + 1)}
    kept = NUMERIC + b"\n" + separators.encode()
    return Layout(
        variant,
        skeleton=variant.skeleton,
        table=bytes.maketrans(separators.encode(), b"," * len(separators)),
        delete=bytes(byte for byte in range(256) if byte not in kept),
        types=types,
        columns=columns,
    )


def _separators(variant: Variant) -> str:
    """The fewest characters of which every gap between two numbers has one."""
    literals = [part for part in variant.parts if isinstance(part, str)]
    gaps = literals[1:-1] if isinstance(variant.parts[-1], str) else literals[1:]
    chosen = ""
    while uncovered := [gap for gap in gaps if not set(gap) & set(chosen)]:
        candidates = sorted(set("".join(uncovered)) - set("äé"))
        chosen += max(
            candidates,
            key=lambda char: (
                sum(char in gap for gap in uncovered)
                - 0.25 * sum(part.count(char) for part in literals)
            ),
        )
    return chosen
