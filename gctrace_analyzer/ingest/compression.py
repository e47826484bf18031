"""Detects compression by content, and decompresses in bounded steps."""

from __future__ import annotations

import lzma
import zlib
from bz2 import BZ2Decompressor
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x50\x2a\x4d\x18": "zstd",  # a skippable frame first, as pzstd writes
}


class DamagedError(Exception):
    """Compressed data that ends too early or does not decompress; internal to ingest."""


class _Engine(Protocol):
    """The interface that the decompressors of bz2, lzma, zstd and `_Zlib` have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Zlib:
    def __init__(self) -> None:
        self._engine = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._engine.eof

    @property
    def needs_input(self) -> bool:
        return not self._engine.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._engine.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._engine.decompress(self._engine.unconsumed_tail + data, max_length)


def compression(head: bytes) -> str | None:
    """Returns the compression of data that begins with `head`, or None."""
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def unpacked(kind: str, blocks: Iterator[bytes], step: int) -> Iterator[bytes]:
    """Yields the decompressed bytes of all members, in pieces of at most `step` bytes.

    Raises:
        DamagedError: the data is damaged; everything before the damage has been yielded.
    """
    make, failures = _engine(kind)
    engine = make()
    data = next(blocks, b"")
    while True:
        try:
            piece = engine.decompress(data, step)
        except failures as err:
            msg = f"the {kind} data is damaged ({err})"
            raise DamagedError(msg) from err
        if piece:
            yield piece
        data = b""
        if engine.eof:
            # Zeros after a member are padding.
            data = (engine.unused_data or next(blocks, b"")).lstrip(b"\0")
            if not data:
                return
            engine = make()
        elif engine.needs_input:
            data = next(blocks, b"")
            if not data:
                msg = f"truncated: the {kind} data ends in the middle"
                raise DamagedError(msg)


def _engine(kind: str) -> tuple[Callable[[], _Engine], tuple[type[Exception], ...]]:
    if kind == "gzip":
        return _Zlib, (zlib.error,)
    if kind == "bzip2":
        return BZ2Decompressor, (OSError, ValueError)
    if kind == "xz":
        return lzma.LZMADecompressor, (lzma.LZMAError,)
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ModuleNotFoundError:  # Python before 3.14
        from backports import zstd
    return zstd.ZstdDecompressor, (zstd.ZstdError,)
