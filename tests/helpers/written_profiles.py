"""Writes profiles in profile.proto and in text, as Go does."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HEAP = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")
UNITS = {"alloc_space": "bytes", "inuse_space": "bytes", "cpu": "nanoseconds"}

Frame = tuple[str, str, int]
Stack = Sequence[Sequence[Frame]]


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    octets = bytearray()
    while number > 127:
        octets.append(number & 127 | 128)
        number >>= 7
    return bytes([*octets, number])


def message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def profile(
    samples: Iterable[tuple[Stack, Sequence[int]]],
    types: Sequence[str] = HEAP,
    *,
    taken_s: int = 1_700_000_000,
    period: int = 524_288,
    duration_s: float = 0,
    packed: bool = True,
) -> bytes:
    """Returns a profile, not compressed.

    Args:
        samples: each a stack, with the innermost location first, and its values. A location has
            the frames that were inlined into each other, the innermost first.
        types: the types of the values.
        taken_s: when it was taken, since 1970.
        period: the sampling rate.
        duration_s: the time that it is of.
        packed: numbers are packed, as Go does it where there are more than two.
    """
    strings = {"": 0}
    functions: dict[tuple[str, str], int] = {}
    locations: dict[tuple[Frame, ...], int] = {}

    def text(string: str) -> int:
        return strings.setdefault(string, len(strings))

    def numbers(field: int, values: Sequence[int]) -> bytes:
        if packed:
            return message(field, b"".join(map(varint, values)))
        return b"".join(number(field, value) for value in values)

    out = [
        message(1, number(1, text(kind)) + number(2, text(UNITS.get(kind, "count"))))
        for kind in types
    ]
    for stack, values in samples:
        at = [locations.setdefault(tuple(frames), len(locations) + 1) for frames in stack]
        out.append(message(2, numbers(2, values) + numbers(1, at)))
    for frames, own in locations.items():
        lines = b""
        for function, file, line in frames:
            key = functions.setdefault((function, file), len(functions) + 1)
            lines += message(4, number(1, key) + number(2, line))
        out.append(message(4, number(1, own) + number(3, 0x480000 + own) + lines))
    for (function, file), own in functions.items():
        names = number(2, text(function)) + number(3, text(function)) + number(4, text(file))
        out.append(message(5, number(1, own) + names))
    out += [message(6, string.encode()) for string in strings]
    out += [number(9, taken_s * 10**9), number(10, round(duration_s * 1e9)), number(12, period)]
    return b"".join(out)


MAIN: Sequence[Frame] = [("main.main", "/src/main.go", 10)]
RUNTIME: Sequence[Frame] = [("runtime.main", "/go/src/runtime/proc.go", 283)]
DECODE: Sequence[Frame] = [("main.decode", "/src/json.go", 88)]
UNMARSHAL: Sequence[Frame] = [
    ("encoding/json.Unmarshal", "/go/src/encoding/json/decode.go", 97)
]
ENCODE: Sequence[Frame] = [
    ("main.grow", "/src/buffer.go", 5),
    ("main.encode", "/src/json.go", 40),
]


def service(*, decode: int = 600, encode: int = 300, main: int = 100, live: int = 50) -> bytes:
    """Returns a heap profile of a service: MiB allocated by three sites, and live of the first.

    `decode` allocates in the standard library, and `encode` in a function that is inlined.
    """
    mib = 1 << 20
    return gzip.compress(
        profile(
            [
                ([UNMARSHAL, DECODE, MAIN, RUNTIME], [decode, decode * mib, live, live * mib]),
                ([ENCODE, MAIN, RUNTIME], [encode, encode * mib, 0, 0]),
                ([MAIN, RUNTIME], [main, main * mib, 1, mib]),
            ]
        )
    )


def text(head: str, records: Mapping[str, Stack], trailer: Sequence[str] = ()) -> str:
    """Returns a profile in text form: its first line, and the stack of each record."""
    lines = [head]
    for values, stack in records.items():
        frames = [frame for location in stack for frame in location]
        lines.append(f"{values} @ " + " ".join(f"0x{at:x}" for at, _ in enumerate(frames, 1)))
        lines += [
            f"#\t0x{at:x}\t{function}+0x2f\t\t{file}:{line}"
            for at, (function, file, line) in enumerate(frames, 1)
        ]
        lines.append("")
    return "\n".join([*lines, *trailer, ""])
