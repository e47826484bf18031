"""Cuts a long log into stretches of lines that can be analysed one at a time.

A stretch has the lines that begin in its range of bytes, so ranges can be read in any order and
anywhere. Some lines before and after come along: torn records are joined across the seam, and
the cycles before it tell which program goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from gctrace_analyzer.ingest.compression import compression
from gctrace_analyzer.ingest.sniff import SNIFF_BYTES, sniff
from gctrace_analyzer.ingest.sources import LONG_LINE_BYTES, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

STRETCH_BYTES = 32 << 20
"""So much of a log is analysed at a time: in the most expensive shape in 0.6 GiB of memory."""

CONTEXT_BYTES = 1 << 16
"""Hundreds of lines; torn records have their rest within 32."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Lines of a log: `own` of them after `before`, and some more."""

    data: bytes
    before: int
    own: int


def range_of(file: IO[bytes], begin: int, end: int) -> Cut:
    """The lines that begin in a range of the bytes of an uncompressed file."""
    start = max(begin - CONTEXT_BYTES, 0)
    file.seek(start)
    return _cut(file.read(end + LONG_LINE_BYTES + CONTEXT_BYTES - start), start, begin, end)


def stretches_of(source: Source, size: int) -> Iterator[Cut]:
    """All lines of an input, by ranges of `size` bytes of its text."""
    data, start, begin = b"", 0, 0
    for chunk in source.chunks():
        data += chunk
        while start + len(data) >= begin + size + LONG_LINE_BYTES + CONTEXT_BYTES:
            yield _cut(data, start, begin, begin + size)
            begin += size
            kept = max(begin - CONTEXT_BYTES, 0)
            data, start = data[kept - start :], kept
    total = start + len(data)
    while begin < total:
        # What is left may be a little more than one range.
        yield _cut(data, start, begin, begin + size)
        begin += size


def is_text(file: IO[bytes]) -> bool:
    """Whether a file can be cut by ranges: neither compressed nor UTF-16, a record a line."""
    file.seek(0)
    head = file.read(SNIFF_BYTES)
    file.seek(0)
    return compression(head) is None and not _wide(head) and sniff(head, _text(head)) == "log"


def is_log(source: Source) -> bool:
    """Whether the input, compressed or not, has a record a line."""
    return sniff(*source.head(SNIFF_BYTES)) == "log"


def _text(head: bytes) -> str:
    return head.decode("utf-8", "replace")


def _wide(head: bytes) -> bool:
    return (
        head[:2] in (b"\xff\xfe", b"\xfe\xff") or head[:4096].count(0) > len(head[:4096]) // 4
    )


def _cut(data: bytes, start: int, begin: int, end: int) -> Cut:
    first = _line_at(data, begin - start) if begin else 0
    last = _line_at(data, end - start)
    low = _line_at(data, first - CONTEXT_BYTES) if first > CONTEXT_BYTES else 0
    if start and low == 0:
        low = min(_line_at(data, 1), first)
    high = data.rfind(b"\n", last, last + CONTEXT_BYTES) + 1 or last
    own = data.count(b"\n", first, last)
    if last > first and data[last - 1 : last] != b"\n":
        own += 1
    return Cut(data[low:high], data.count(b"\n", low, first), own)


def _line_at(data: bytes, at: int) -> int:
    """Where the first line begins that begins at `at` or after; the end if there is none."""
    found = data.find(b"\n", at - 1) if at > 0 else -1
    return found + 1 if found >= 0 else (len(data) if at > 0 else 0)
