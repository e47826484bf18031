"""Whether the compiled core is there, which does what takes Python and Polars longest.

It reads records, replays logs, and finds the windows that leave least to the program, the processes
of a stream that several programs share, and the settings behind heap goals.

The core is built while the package is installed, if Rust is there (`core/`). Every result is the
same without it. With `GCTRACE_ANALYZER_CORE=off` in the environment, a core that is there is not
used.
"""

from __future__ import annotations

import io
import os
import struct
from array import array
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

VARIABLE = "GCTRACE_ANALYZER_CORE"

INTERFACE = 12
"""The core must have the same number; an older build in a checkout counts as none."""


class Table(Protocol):
    """Columns of equal length."""

    def __len__(self) -> int: ...

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Hands the columns over without copying them; `polars.DataFrame` calls this."""


class Reader(Protocol):
    """Reads whole lines that are a record of one of some formats, or have one in a frame."""

    def read(
        self, data: bytes
    ) -> tuple[
        int,
        list[Table | None],
        list[Table | None],
        list[tuple[bytes, int, list[int]]],
        Table,
    ]:
        """Reads lines, which are numbered from 1.

        Returns how many lines there are; the records of each format, `line_no` (int64) and its
        numbers (int64 or float64, by their kind), or None without any; the same of records inside a
        frame, with `key slot_0 slot_1 slot_2` (int64) and `unit_0 unit_1 unit_2` (float64); of each
        key the frame, how many lines have it, and some of them; and the other lines that the reader
        keeps: `line_no` (uint32) and `text`.
        """


Sums: TypeAlias = tuple[
    float, float, float, float, float, float, float, float, float, float, float, float
]


class Walker(Protocol):
    """Walks the path of a program under other settings."""

    def walk(
        self,
        rules: object,
        costs: object,
        change: tuple[float, float, float],
        stretches: Sequence[tuple[float, float, float, int]],
    ) -> tuple[list[tuple[int, Sums]], float]:
        """Walks stretches of the path: begin, stop, phase and most cycles of each.

        `rules` and `costs` have the attributes of `Rules` and `Costs` (`replay.py`). `change` is
        what is added to the live heap in MiB, a factor on it and one on what is allocated during
        marking. Returns of each stretch the number of cycles and the sums in the order of `_Walks`
        there, and the median of all goals.
        """


class Core(Protocol):
    """The compiled module."""

    INTERFACE: int

    def __hash__(self) -> int: ...

    def Reader(  # noqa: N802  # a class
        self,
        formats: Sequence[tuple[bytes, Sequence[tuple[str, str, bytes]]]],
        words: Sequence[bytes],
        most: int,
        frames: tuple[Sequence[bytes], Sequence[tuple[bytes, str]], bytes] | None = None,
    ) -> Reader:
        """Returns a reader of formats.

        Each is the literal before the first number, and for each number its name, its kind
        (`whole`, `whole32` or `decimal`) and the literal after it. Of the other lines, it keeps
        those that contain one of the words or are longer than `most`; without words, it keeps all
        but empty ones. With `frames` it reads records inside a line too: the layouts of times, what
        changes from line to line (`framed.py` has both), and how records begin.
        """

    def Walker(  # noqa: N802  # a class
        self,
        columns: Iterator[bytes],
        *,
        lowest_trigger: float,
        highest_trigger: float,
        highest_trigger_1_17: float,
        least_runway_mib: float,
        heap_minimum_mib: float,
        no_room: float,
    ) -> Walker:
        """Returns a walker of a path: MiB, one entry per cycle (`path.py`), at least two.

        The columns `at`, `live` and `in_mark`, as `packed` returns them, come one by one: the core
        copies each. The constants are those of `pacer.py` and of the model.
        """

    def worst_windows(
        self,
        phases: tuple[bytes, bytes, bytes, bytes, bytes],
        windows: Sequence[float],
    ) -> list[tuple[float, float, float, float]]:
        """Returns windows with the most milliseconds lost in one, as `_worst` does (`mmu.py`).

        The phases are the columns that `_phases` makes there, as `packed` returns them.
        """

    def concurrent_processes(
        self, facts: bytes, *, slack_s: float, open: int, lookahead: int
    ) -> Table:
        """Returns the process of each cycle (`process`, int64), as `_best_fits` (`chains.py`).

        The facts are those of `_Cycle` there, column after column, each as `packed` returns it;
        what is unknown is not a number (NaN).
        """

    def settings_path(
        self,
        ranges: tuple[bytes, ...],
        states: Sequence[tuple[float, float, float]],
        costs: tuple[float, float, float, float, float, float, float, float, float],
    ) -> list[tuple[int, int]]:
        """Returns the states of the cheapest path, as `_path` does (`search.py`).

        The ranges are the columns named there, as `packed` returns them.
        """

    def is_plain(self, data: bytes) -> bool:
        """Returns whether there are only line ends, blanks and visible characters of ASCII."""

    def contains_any(self, data: bytes, words: Sequence[bytes]) -> bool:
        """Returns whether the data contain one of the words."""

    def lines(self, data: bytes, total: int, numbers: Sequence[int]) -> bytes:
        """Returns the lines with these numbers, which are in order and begin with 1.

        `total` is the number of all lines.
        """


def compiled() -> Core | None:
    """Returns the compiled core; None if it is not installed or switched off."""
    return None if os.environ.get(VARIABLE) == "off" else _installed()


def described() -> str:
    """Returns which implementation reads records, for `--version`."""
    return "compiled" if compiled() else "pure Python"


def is_plain(data: bytes) -> bool:
    """Returns whether the core sees only line ends, blanks and visible characters of ASCII.

    It takes one search of the data; without the core, this is not known.
    """
    return (core := compiled()) is not None and core.is_plain(data)


def contains_any(data: bytes, words: Sequence[bytes]) -> bool:
    """Returns whether the data contain one of the words; the core is five times as fast."""
    if (core := compiled()) is not None:
        return core.contains_any(data, words)
    return any(word in data for word in words)


_END_BYTES, _PADDED_BYTES = 8, 64
"""The marker at the end of a stream in Arrow's format, and what its columns are padded to."""

_PACKED_AT_ONCE = 1 << 18
"""Polars divides a longer column, from about twice as many values on."""


def packed(columns: pl.DataFrame) -> tuple[bytes, ...]:
    """Returns columns of 64-bit floats without nulls as the core takes them.

    They are the end of a stream in Arrow's format, which takes an eighth of the time of a list.
    """
    if len(columns) > _PACKED_AT_ONCE:
        return tuple(map(_packed_in_pieces, columns.iter_columns()))
    size = 8 * len(columns)
    step = size + -size % _PADDED_BYTES
    stream = io.BytesIO()
    columns.rechunk().write_ipc_stream(stream, compression="uncompressed")
    first = stream.tell() - _END_BYTES - step * columns.width
    return tuple(
        _checked(bytes(stream.getbuffer()[first + step * number :][:size]), numbers)
        for number, numbers in enumerate(columns.get_columns())
    )


def _packed_in_pieces(numbers: pl.Series) -> bytes:
    """Returns the same of a long column, which is never in memory twice."""
    whole = io.BytesIO()
    for begin in range(0, len(numbers), _PACKED_AT_ONCE):
        whole.write(packed(numbers.slice(begin, _PACKED_AT_ONCE).to_frame())[0])
    return whole.getvalue()


def _checked(column: bytes, numbers: pl.Series) -> bytes:
    """Returns the bytes of a column: these if they begin and end as it does.

    The format is fixed, but what follows the columns is up to the library.
    """
    ends = struct.pack("=2d", numbers[0], numbers[-1]) if len(numbers) else b""
    is_it = column[:8] + column[-8:] == ends
    return column if is_it else array("d", numbers.to_list()).tobytes()


@cache
def _installed() -> Core | None:
    try:
        module = import_module("gctrace_analyzer._core")
    except ImportError:
        return None
    return cast("Core", module) if module.INTERFACE == INTERFACE else None
