"""The compiled core, if it is installed: it does the slowest work of Python and Polars.

It reads records and replays logs. It finds the windows with the least mutator utilization, the
processes of a stream that several programs share, and the settings behind heap goals.

The core is built when the package is installed, if Rust is available (`core/`). All results are the
same without it. `GCTRACE_ANALYZER_CORE=off` in the environment switches an installed core off.
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
"""The core must have the same number; an older build in a checkout counts as no core."""


class Table(Protocol):
    """Columns of equal length."""

    def __len__(self) -> int: ...

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Hands the columns over without copying them; `polars.DataFrame` calls this."""


class Reader(Protocol):
    """Reads whole lines that consist of a record in one of some formats, or have one in a frame."""

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

        Returns five values: the number of lines; for each format its records, as `line_no` (int64)
        and its numbers (int64 or float64, by their kind), or None without any; the same for records
        inside a frame, with `key slot_0 slot_1 slot_2` (int64) and `unit_0 unit_1 unit_2`
        (float64); for each key the frame, the number of its lines, and some of them; and the other
        lines that the reader keeps, as `line_no` (uint32) and `text`.
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

        `rules` and `costs` have the attributes of `Rules` and `Costs` (`replay.py`). `change` has
        MiB to add to the live heap, a factor on it, and a factor on the allocation during marking.
        Returns for each stretch the number of cycles and the sums in the order of `_Walks` there,
        and the median of all goals.
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

        A format consists of the literal before the first number, and for each number its name, its
        kind (`whole`, `whole32` or `decimal`) and the literal after it. Other lines are kept if
        they contain one of the words or are longer than `most`; without words, all but empty lines
        are kept. `frames` lets it read records inside a line too. It has the layouts of times, the
        text that changes from line to line (both in `framed.py`), and the beginnings of records.
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
        """Returns windows with the most milliseconds lost in one, like `_worst` in `mmu.py`.

        The phases are the columns of `_phases` in that module, as `packed` returns them.
        """

    def concurrent_processes(
        self, facts: bytes, *, slack_s: float, open: int, other_live: float, lookahead: int
    ) -> Table:
        """Returns the process of each cycle (`process`, int64), like `_best_fits` in `chains.py`.

        The facts are the columns of `_Cycle` in that module, each as `packed` returns it; unknown
        values are NaN.
        """

    def settings_path(
        self,
        ranges: tuple[bytes, ...],
        states: Sequence[tuple[float, float, float]],
        costs: tuple[float, float, float, float, float, float, float, float, float],
    ) -> list[tuple[int, int]]:
        """Returns the states of the cheapest path, like `_path` in `search.py`.

        The ranges are the columns named there, as `packed` returns them.
        """

    def is_plain(self, data: bytes) -> bool:
        """Returns whether the data contain only line ends, blanks and visible ASCII characters."""

    def contains_any(self, data: bytes, words: Sequence[bytes]) -> bool:
        """Returns whether the data contain one of the words."""

    def lines(self, data: bytes, total: int, numbers: Sequence[int]) -> bytes:
        """Returns the lines with these numbers, which are in order and start at 1.

        `total` is the number of all lines in the data.
        """


def compiled() -> Core | None:
    """Returns the compiled core; None if it is not installed or is switched off."""
    return None if os.environ.get(VARIABLE) == "off" else _installed()


def described() -> str:
    """Returns which implementation reads records, for `--version`."""
    return "compiled" if compiled() else "pure Python"


def is_plain(data: bytes) -> bool:
    """Returns whether the data contain only line ends, blanks and visible ASCII characters.

    The core needs one search of the data; without the core, this is unknown (False).
    """
    return (core := compiled()) is not None and core.is_plain(data)


def contains_any(data: bytes, words: Sequence[bytes]) -> bool:
    """Returns whether the data contain one of the words; the core is five times as fast."""
    if (core := compiled()) is not None:
        return core.contains_any(data, words)
    return any(word in data for word in words)


_END_BYTES, _PADDED_BYTES = 8, 64
"""The marker at the end of a stream in Arrow's format, and the padding of its columns."""

_PACKED_AT_ONCE = 1 << 18
"""Bytes. Polars splits longer columns, from about twice this size on."""


def packed(columns: pl.DataFrame) -> tuple[bytes, ...]:
    """Returns columns of 64-bit floats without nulls in the form that the core takes.

    This form is the end of a stream in Arrow's format. It takes an eighth of the time of a list.
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
    """Returns the same for a long column, which is never in memory twice."""
    whole = io.BytesIO()
    for begin in range(0, len(numbers), _PACKED_AT_ONCE):
        whole.write(packed(numbers.slice(begin, _PACKED_AT_ONCE).to_frame())[0])
    return whole.getvalue()


def _checked(column: bytes, numbers: pl.Series) -> bytes:
    """Returns the bytes of a column, after checking that they begin and end like it.

    The format is fixed, but the library decides what follows the columns.
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
