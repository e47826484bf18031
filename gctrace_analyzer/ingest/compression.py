"""Detects compression by content, and decompresses in bounded steps."""

from __future__ import annotations

import io
import lzma
import zlib
from bz2 import BZ2Decompressor
from functools import partial
from itertools import chain
from typing import IO, TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import zipfile
    from collections.abc import Callable, Iterator

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x50\x2a\x4d\x18": "zstd",  # A skippable frame comes first, as pzstd writes it.
    b"PK\x03\x04": "zip",
}


_ZIP_STEP = 1 << 16


class DamagedError(Exception):
    """Compressed data that ends too early or does not decompress; internal to ingest."""


class _Engine(Protocol):
    """The common interface of the decompressors of bz2, lzma, zstd and `_Zlib`."""

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


def zip_archive(file: IO[bytes]) -> tuple[zipfile.ZipFile, list[str]]:
    """Returns a zip archive and the names of its files, without those that Finder adds.

    Raises:
        DamagedError: the list of files is missing or damaged.
    """
    # Hardly any log is zipped.
    import zipfile

    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError, ValueError) as err:
        msg = f"the zip archive is damaged ({err})"
        raise DamagedError(msg) from err
    added = ("/", ".DS_Store")
    names = [name for name in archive.namelist() if not name.endswith(added)]
    return archive, [name for name in names if "__MACOSX/" not in name]


def zip_pieces(opened: Callable[[], IO[bytes]], step: int) -> Iterator[bytes]:
    """Yields the bytes of a file in a zip archive, in pieces of about `step` bytes.

    Raises:
        DamagedError: the data is damaged or encrypted; everything before has been yielded.
    """
    import zipfile

    pieces: list[bytes] = []
    damage: Exception | None = None
    try:
        with opened() as member:
            # Small steps, because the step in which damage shows returns nothing.
            while piece := member.read(_ZIP_STEP):
                pieces.append(piece)
                if len(pieces) * _ZIP_STEP >= step:
                    yield b"".join(pieces)
                    pieces.clear()
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, RuntimeError) as err:
        damage = err
    yield b"".join(pieces)
    if damage:
        msg = f"the zip data is damaged ({damage})"
        raise DamagedError(msg) from damage


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


MEMBERS_BYTES = 512 << 20
"""Largest total size of an archive's files that are unpacked together."""

_TAR, _TAR_NAME, _TAR_BYTES = slice(257, 262), b"ustar", 4096
"""Position and value of the format's name in a tar archive, and the compressed bytes that show
it."""

_MEMBER_STEP = 6 << 20


def is_tar(head: bytes) -> bool:
    """Returns whether unpacked data begin like a tar archive."""
    return head[_TAR] == _TAR_NAME


def archive_kind(file: IO[bytes]) -> str | None:
    """Returns the kind of archive, `zip` or `tar`; None if the file is not an archive."""
    head = file.read(_TAR_BYTES)
    file.seek(0)
    kind = compression(head)
    if kind not in (None, "zip"):
        try:
            head = next(unpacked(kind, iter((head,)), _TAR_BYTES), b"")
        except DamagedError:
            return None
    return "zip" if kind == "zip" else "tar" if is_tar(head) else None


class _Member(io.BytesIO):
    """A file of an archive, unpacked."""

    def __init__(self, name: str, data: bytes) -> None:
        super().__init__(data)
        self.name = name


def members(file: IO[bytes], name: str) -> list[io.BytesIO]:
    """Returns the files of an archive with several; none if it is too large.

    Raises:
        DamagedError: the archive is damaged.
    """
    if archive_kind(file) == "tar":
        return _tar_members(file, name)
    archive, names = zip_archive(file)
    size = sum(archive.getinfo(member).file_size for member in names)
    if len(names) < 2 or size > MEMBERS_BYTES:
        return []
    opened = ((member, partial(archive.open, member)) for member in names)
    return [
        _Member(f"{name}/{member}", b"".join(zip_pieces(content, _MEMBER_STEP)))
        for member, content in opened
    ]


def _tar_members(file: IO[bytes], name: str) -> list[io.BytesIO]:
    # Hardly any log is in an archive.
    import tarfile

    blocks = iter(partial(file.read, _MEMBER_STEP), b"")
    head = next(blocks, b"")
    kind, both = compression(head), chain((head,), blocks)
    whole = io.BytesIO()
    for piece in both if kind is None else unpacked(kind, both, _MEMBER_STEP):
        if whole.tell() + len(piece) > MEMBERS_BYTES:
            return []
        whole.write(piece)
    whole.seek(0)
    files: list[io.BytesIO] = []
    try:
        with tarfile.TarFile(fileobj=whole) as archive:
            for entry in archive:
                if entry.isfile() and (content := archive.extractfile(entry)):
                    own = entry.name.removeprefix("./")
                    files.append(_Member(f"{name}/{own}", content.read()))
    except (tarfile.TarError, EOFError) as err:
        msg = f"the tar archive is damaged ({err})"
        raise DamagedError(msg) from err
    return files
