"""Inputs for hypothesis: lines of the logs of the corpus and of samples, and damaged ones."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from hypothesis import strategies as st

from tests.conftest import CORPUS, ROOT, SAMPLES
from tests.helpers.wrappers import COLLECTORS, collected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from hypothesis.strategies import DrawFn

BROKEN = CORPUS / "broken"
PIECE_BYTES = 6000
"""Longest piece of a file: small inputs are read faster, so that more of them are tried."""

LARGE_BYTES = 1 << 20
"""Size of the few inputs that are repeated, to find what is not linear."""

_MOST_LINES = 40
_TOKENS = (
    b"NaN", b"-NaN", b"Infinity", b"inf", b"1e309", b"-1e309", b"1e-400", b"1e18", b"-1", b"0",
    b"-0.0", b"00", b"1.5.5", b"4.2e-", b".", b"-", b"+", b"", b" ", b"e", b"0x", b"1_000",
    b"18446744073709551615", b"9223372036854775807", b"9223372036854775808",
    b"-9223372036854775809", b"99999999999999999999999999", b"9" * 400, b"1" * 5000,
    b"4294967296", b"17592186044415", b"18446744073709", b"0.000000000001", b"null", b"true",
    b"[]", b"{}", b'""', b'"', b"\\", b"\\ud800", b"\x00", b"\xff", b"\x1b[31m", b"\r",
    "\u0661\u0662".encode(), "\u00b2".encode(), "\u2028".encode(), b"off", b"%", b"%s", b"{0}",
)  # fmt: skip
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_DIGIT = re.compile(rb"\d")
_WORD = re.compile(rb"[A-Za-z_][\w-]*|\"[^\"]{0,40}\"")
_NOT_LOGS = {".md", ".toml", ".py", ".bin"}
_RECORDED = {
    "advice", "contended", "phases", "procs", "profiles", "real", "retuned", "scraped", "services",
    "settings", "states", "versions",
}  # fmt: skip
"""Collections of programs under known settings, recorded by the lab: their logs have one format."""
_NOTES = ("manifest.json", "expect.json", "index.json")


@cache
def corpus() -> tuple[Path, ...]:
    """Returns every input among the tests and samples, in a fixed order.

    Those that once broke are left out: they would change all inputs that follow from a seed.
    """
    files = [*CORPUS.glob("*/**/*"), *SAMPLES.rglob("*")]
    return tuple(
        sorted(
            path
            for path in files
            if path.is_file()
            and path.parent != BROKEN
            and path.suffix not in _NOT_LOGS
            and not path.name.endswith(_NOTES)
        )
    )


def of_every_kind(paths: Iterable[Path], first: int = 0) -> list[Path]:
    """Returns every twentieth of the recordings, which differ in figures only, every twelfth of
    the inputs that were written for what is said of them, and every third of all others.

    Tests that begin with another `first` take other ones.
    """
    steps: dict[Path, int] = {}
    for path in sorted(paths):
        # Folders above the checkout may have these names, too.
        folders = {*path.relative_to(ROOT).parts}
        steps[path] = 20 if folders & _RECORDED else 12 if "written" in folders else 3
    return sorted(
        path
        for step in {*steps.values()}
        for path in [path for path, own in steps.items() if own == step][first::step]
    )


@cache
def content(path: Path) -> bytes:
    """Returns the unpacked content of a file; the packed content if it is damaged."""
    data = path.read_bytes()
    unpackers: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.decompress, ".xz": lzma.decompress, ".bz2": bz2.decompress
    }  # fmt: skip
    with suppress(OSError, EOFError, ValueError, lzma.LZMAError):
        return unpackers.get(path.suffix, bytes)(data)
    return data


Paths: TypeAlias = "Sequence[Path]"
Change: TypeAlias = "Callable[[DrawFn, bytes, Paths], bytes]"


def _below(draw: DrawFn, end: int) -> int:
    """Returns a number from 0 on that is smaller than `end`, or 0."""
    return draw(st.integers(0, max(end - 1, 0)))


def _one_of(draw: DrawFn, *choices: int) -> int:
    return draw(st.sampled_from(choices))


@st.composite
def pieces(draw: DrawFn, paths: Paths | None = None, most_bytes: int = PIECE_BYTES) -> bytes:
    """Some lines of a file; half of them are its beginning, where a header would be."""
    data = content(draw(st.sampled_from(paths or corpus())))
    # The beginning is the simplest, and drawn as often as all other places together.
    begin = _below(draw, len(data)) if draw(st.booleans()) else 0
    begin = data.rfind(b"\n", 0, begin) + 1
    lines = data[begin : begin + most_bytes].split(b"\n")
    return b"\n".join(lines[: draw(st.integers(1, _MOST_LINES))])


@st.composite
def damaged(draw: DrawFn, paths: Paths | None = None) -> bytes:
    """Some lines of a file that other bytes, lines and pieces of files have changed."""
    sources = paths or corpus()
    data = draw(pieces(sources))
    for change in draw(st.lists(st.sampled_from(_CHANGES), min_size=1, max_size=20)):
        data = change(draw, data, sources)
    if data and draw(st.integers(0, 999)) == 999:
        data *= max(LARGE_BYTES // len(data), 1)
    if draw(st.integers(0, 49)) == 49:
        packed = gzip.compress(data, mtime=0)
        data = packed[: _below(draw, len(packed) + 1)]
    return data


@st.composite
def wrapped(draw: DrawFn) -> bytes:
    """Some lines of a log as one or two log collectors write them, of which few are changed."""
    lines = draw(pieces(most_bytes=1500)).decode(errors="replace").splitlines()
    names = draw(st.lists(st.sampled_from(sorted(COLLECTORS)), min_size=1, max_size=2))
    chance = draw(st.randoms(use_true_random=False))
    data = "\n".join(
        collected(line, chance.choice(names), number) for number, line in enumerate(lines)
    ).encode()
    for change in draw(st.lists(st.sampled_from(_CHANGES), max_size=4)):
        data = change(draw, data, corpus())
    return data


def _replaced(draw: DrawFn, data: bytes, what: re.Pattern[bytes], by: bytes) -> bytes:
    """Replaces the next match after some byte."""
    at = _below(draw, len(data) + 1)
    match = what.search(data, at) or what.search(data)
    return data if match is None else data[: match.start()] + by + data[match.end() :]


def _number(draw: DrawFn, data: bytes, _: Paths) -> bytes:
    return _replaced(draw, data, _NUMBER, draw(st.sampled_from(_TOKENS)))


def _digits(draw: DrawFn, data: bytes, _: Paths) -> bytes:
    most = 10 ** _one_of(draw, 1, 3, 7, 12, 16, 19, 22)
    return _replaced(draw, data, _NUMBER, b"%d" % _below(draw, most))


def _digit(draw: DrawFn, data: bytes, _: Paths) -> bytes:
    return _replaced(draw, data, _DIGIT, _one_of(draw, *b"0123456789.-").to_bytes())


def _word(draw: DrawFn, data: bytes, _: Paths) -> bytes:
    return _replaced(draw, data, _WORD, draw(st.sampled_from(_TOKENS)))


def _byte(draw: DrawFn, data: bytes, _: Paths) -> bytes:
    at = _below(draw, len(data) + 1)
    return data[:at] + draw(st.binary(min_size=1, max_size=1)) + data[at + _below(draw, 2) :]


def _cut(draw: DrawFn, data: bytes, _: Paths) -> bytes:
    at = _below(draw, len(data) + 1)
    return data[at:] if _below(draw, 3) == 2 else data[:at]


def _delete(draw: DrawFn, data: bytes, _: Paths) -> bytes:
    at = _below(draw, len(data) + 1)
    return data[:at] + data[at + _one_of(draw, 1, 5, 30) :]


def _copy(draw: DrawFn, data: bytes, _: Paths) -> bytes:
    at, to = (_below(draw, len(data) + 1) for _ in range(2))
    return data[:to] + data[at : at + _one_of(draw, 3, 20, 200)] + data[to:]


def _lines(draw: DrawFn, data: bytes) -> tuple[list[bytes], int]:
    lines = data.split(b"\n")
    return lines, _below(draw, len(lines))


def _drop(draw: DrawFn, data: bytes, _: Paths) -> bytes:
    lines, at = _lines(draw, data)
    del lines[at : at + _one_of(draw, 1, 1, 5, 20)]
    return b"\n".join(lines)


def _swap(draw: DrawFn, data: bytes, _: Paths) -> bytes:
    lines, at = _lines(draw, data)
    other = _below(draw, len(lines))
    lines[at], lines[other] = lines[other], lines[at]
    return b"\n".join(lines)


def _repeat(draw: DrawFn, data: bytes, _: Paths) -> bytes:
    lines, at = _lines(draw, data)
    lines[at:at] = [lines[at]] * _one_of(draw, 1, 2, 5, 30)
    return b"\n".join(lines)


def _join(draw: DrawFn, data: bytes, _: Paths) -> bytes:
    lines, at = _lines(draw, data)
    lines[at : at + 2] = [draw(st.sampled_from((b"", b" "))).join(lines[at : at + 2])]
    return b"\n".join(lines)


def _splice(draw: DrawFn, data: bytes, paths: Paths) -> bytes:
    lines, at = _lines(draw, data)
    others, of = _lines(draw, draw(pieces(paths)))
    lines[at : at + _one_of(draw, 0, 1, 10)] = others[of : of + _one_of(draw, 1, 3, 20)]
    return b"\n".join(lines)


def _append(draw: DrawFn, data: bytes, paths: Paths) -> bytes:
    return data + draw(pieces(paths))


def _lengthen(draw: DrawFn, data: bytes, _: Paths) -> bytes:
    """Repeats a part of a line, seldom."""
    if _below(draw, 5) < 4:
        return data
    lines, at = _lines(draw, data)
    begin = _below(draw, len(lines[at]) + 1)
    part = lines[at][begin : begin + _one_of(draw, 1, 8, 60)]
    lines[at] += part * min(_one_of(draw, 100, 2000), 40_000 // max(len(part), 1))
    return b"\n".join(lines)


_CHANGES: tuple[Change, ...] = (
    _number, _number, _number, _digit, _digits, _word, _byte, _cut, _delete, _drop, _swap,
    _repeat, _copy, _join, _splice, _append, _lengthen,
)  # fmt: skip
